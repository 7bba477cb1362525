/* Completion for zsh. */
#include "manual.h"

/* Text in single quotes, in a place where ':' and ']' are markup. */
static void write_description(FILE *stream, const char *text) {
  for (; *text != '\0'; ++text) {
    if (*text == '\'')
      fputs("'\\''", stream);
    else if (*text == ':' || *text == '[' || *text == ']')
      fprintf(stream, "\\%c", *text);
    else
      fputc(*text, stream);
  }
}

static void write_option(FILE *stream, const struct kcp_command *command,
                         const struct kcp_flag *flag) {
  fprintf(stream, " \\\n        '--%s%s[", flag->name, flag->value != NULL ? "=" : "");
  write_description(stream, flag->help);
  fputc(']', stream);
  if (flag->value != NULL) {
    fputc(':', stream);
    write_description(stream, flag->value);
    fputc(':', stream);
    bool is_list = command->kind == KCP_COMMAND_BENCH && kcp_flag_is_swept(flag);
    if (manual_has_words(flag)) {
      fputs(is_list ? "_sequence compadd - " : "(", stream);
      manual_write_words(stream, flag);
      if (!is_list) fputc(')', stream);
    } else if (manual_is_file(flag)) {
      fputs("_files", stream);
    }
  }
  fputc('\'', stream);
}

static void write_command(FILE *stream, const struct kcp_command *command) {
  fprintf(stream, "    %s)\n      _arguments -s -S '1: :_kcp_commands'", command->name);
  if (manual_has_operand_words(command)) {
    fputs(" '2: :(", stream);
    manual_write_operand_words(stream, command);
    fputs(")'", stream);
  }
  fputs(" '*: :_files'", stream);
  for (const struct kcp_flag *flag = kcp_flags; flag->name != NULL; ++flag)
    if (manual_takes(command, flag)) write_option(stream, command, flag);
  fputs("\n      ;;\n", stream);
}

void manual_write_zsh(FILE *stream) {
  fputs(
      "#compdef kcp\n"
      "# Completion of kcp for zsh; made from its tables of options, commands and algorithms.\n"
      "_kcp_commands() {\n"
      "  local -a commands=(",
      stream);
  for (const struct kcp_command *command = kcp_commands; command->name != NULL; ++command) {
    fprintf(stream, "\n    '%s:", command->name);
    write_description(stream, command->summary);
    fputc('\'', stream);
  }
  fputs(
      "\n  )\n"
      "  _alternative 'commands:command:{_describe command commands}' 'files:file:_files'\n"
      "}\n"
      "_kcp() {\n"
      "  local command=query word\n"
      "  for word in ${words[2,CURRENT-1]}; do\n"
      "    case $word in\n"
      "      (",
      stream);
  for (const struct kcp_command *command = kcp_commands; command->name != NULL; ++command)
    fprintf(stream, command != kcp_commands ? "|%s" : "%s", command->name);
  fputs(
      ") command=$word; break ;;\n"
      "    esac\n"
      "  done\n"
      "  case $command in\n",
      stream);
  for (const struct kcp_command *command = kcp_commands; command->name != NULL; ++command)
    write_command(stream, command);
  fputs(
      "  esac\n"
      "}\n"
      "_kcp \"$@\"\n",
      stream);
}

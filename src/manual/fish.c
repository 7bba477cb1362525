/* Completion for fish. */
#include "manual.h"

/* Text in single quotes. */
static void write_quoted(FILE *stream, const char *text) {
  fputc('\'', stream);
  for (; *text != '\0'; ++text) {
    if (*text == '\'' || *text == '\\') fputc('\\', stream);
    fputc(*text, stream);
  }
  fputc('\'', stream);
}

static void write_option(FILE *stream, const struct kcp_command *command,
                         const struct kcp_flag *flag) {
  fprintf(stream, "complete -c kcp -n '__kcp_is %s' -l %s", command->name, flag->name);
  if (manual_is_file(flag)) {
    fputs(" -r -F", stream);
  } else if (flag->value != NULL) {
    fputs(" -x", stream);
  }
  if (manual_has_words(flag)) {
    bool is_list = command->kind == KCP_COMMAND_BENCH && kcp_flag_is_swept(flag);
    fputs(is_list ? " -a '(__fish_append , " : " -a '", stream);
    manual_write_words(stream, flag);
    fputs(is_list ? ")'" : "'", stream);
  }
  fputs(" -d ", stream);
  write_quoted(stream, flag->help);
  fputc('\n', stream);
}

void manual_write_fish(FILE *stream) {
  fputs(
      "# Completion of kcp for fish; made from its tables of options, commands and algorithms.\n"
      "function __kcp_is\n"
      "    set -l command query\n"
      "    for word in (commandline -opc)[2..]\n"
      "        switch $word\n"
      "            case",
      stream);
  for (const struct kcp_command *command = kcp_commands; command->name != NULL; ++command)
    fprintf(stream, " %s", command->name);
  fputs(
      "\n"
      "                set command $word\n"
      "                break\n"
      "        end\n"
      "    end\n"
      "    test $command = $argv[1]\n"
      "end\n",
      stream);
  for (const struct kcp_command *command = kcp_commands; command->name != NULL; ++command) {
    fprintf(stream, "complete -c kcp -n __fish_use_subcommand -a %s -d ", command->name);
    write_quoted(stream, command->summary);
    fputc('\n', stream);
    if (manual_has_operand_words(command)) {
      fprintf(stream, "complete -c kcp -n '__kcp_is %s' -a '", command->name);
      manual_write_operand_words(stream, command);
      fputs("'\n", stream);
    }
    for (const struct kcp_flag *flag = kcp_flags; flag->name != NULL; ++flag)
      if (manual_takes(command, flag)) write_option(stream, command, flag);
  }
}

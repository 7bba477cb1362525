/* Completion for bash. */
#include "manual.h"

static void write_options(FILE *stream, const struct kcp_command *command) {
  const char *gap = "";
  for (const struct kcp_flag *flag = kcp_flags; flag->name != NULL; ++flag) {
    if (!manual_takes(command, flag)) continue;
    fprintf(stream, "%s--%s", gap, flag->name);
    gap = " ";
  }
}

/* One case a command and option whose value is one of some words. */
static void write_values(FILE *stream) {
  for (const struct kcp_command *command = kcp_commands; command->name != NULL; ++command)
    for (const struct kcp_flag *flag = kcp_flags; flag->name != NULL; ++flag) {
      if (!manual_takes(command, flag) || !manual_has_words(flag)) continue;
      fprintf(stream, "    %s:--%s) words='", command->name, flag->name);
      manual_write_words(stream, flag);
      fputs("' ;;\n", stream);
    }
}

/* One pattern of all options whose value nothing is known of, or whose value is a file. */
static void write_pattern(FILE *stream, bool files) {
  const char *gap = "    ";
  for (const struct kcp_command *command = kcp_commands; command->name != NULL; ++command)
    for (const struct kcp_flag *flag = kcp_flags; flag->name != NULL; ++flag) {
      bool is_plain = manual_takes(command, flag) && flag->value != NULL && !manual_has_words(flag);
      if (!is_plain || manual_is_file(flag) != files) continue;
      fprintf(stream, "%s%s:--%s", gap, command->name, flag->name);
      gap = " |\\\n      ";
    }
}

static void write_command_words(FILE *stream) {
  for (const struct kcp_command *command = kcp_commands; command->name != NULL; ++command)
    fprintf(stream, command != kcp_commands ? " %s" : "%s", command->name);
}

static void write_command_pattern(FILE *stream) {
  for (const struct kcp_command *command = kcp_commands; command->name != NULL; ++command)
    fprintf(stream, command != kcp_commands ? " | %s" : "%s", command->name);
}

void manual_write_bash(FILE *stream) {
  fputs(
      "# Completion of kcp for bash; made from its tables of options, commands and algorithms.\n"
      "_kcp() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}\n"
      "  local command= words= files= done_part= i\n"
      "  if [[ $word == '=' ]]; then\n"
      "    word=\n"
      "  elif [[ $option == '=' ]]; then\n"
      "    option=${COMP_WORDS[COMP_CWORD - 2]}\n"
      "  fi\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    case ${COMP_WORDS[i]} in\n"
      "    ",
      stream);
  write_command_pattern(stream);
  fputs(
      ") command=${COMP_WORDS[i]}; break ;;\n"
      "    esac\n"
      "  done\n"
      "  case ${command:-query}:$option in\n",
      stream);
  write_values(stream);
  write_pattern(stream, true);
  fputs(") files=1 ;;\n", stream);
  write_pattern(stream, false);
  fputs(") return ;;\n", stream);
  for (const struct kcp_command *command = kcp_commands; command->name != NULL; ++command)
    if (manual_has_operand_words(command)) {
      fprintf(stream, "    %s:%s) words='", command->name, command->name);
      manual_write_operand_words(stream, command);
      fputs("' ;;\n", stream);
    }
  fputs(
      "    *)\n"
      "      if [[ $word == -* ]]; then\n"
      "        case ${command:-query} in\n",
      stream);
  for (const struct kcp_command *command = kcp_commands; command->name != NULL; ++command) {
    fprintf(stream, "        %s) words='", command->name);
    write_options(stream, command);
    fputs("' ;;\n", stream);
  }
  fputs(
      "        esac\n"
      "      else\n"
      "        files=1\n"
      "        if [[ -z $command ]]; then words='",
      stream);
  write_command_words(stream);
  fputs(
      "'; fi\n"
      "      fi\n"
      "      ;;\n"
      "  esac\n"
      "  # bench takes lists: the last value of one is completed.\n"
      "  if [[ $command == bench && $word == *,* ]]; then\n"
      "    done_part=${word%,*},\n"
      "    word=${word##*,}\n"
      "  fi\n"
      "  mapfile -t COMPREPLY < <(compgen -P \"$done_part\" -W \"$words\" -- \"$word\")\n"
      "  if [[ -n $files ]]; then\n"
      "    compopt -o filenames\n"
      "    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$word\")\n"
      "  fi\n"
      "}\n"
      "complete -F _kcp kcp\n",
      stream);
}

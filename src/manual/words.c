#include <string.h>

#include "kcp/algorithm.h"
#include "kcp/generate.h"
#include "kcp/value_array.h"
#include "manual.h"

bool manual_takes(const struct kcp_command *command, const struct kcp_flag *flag) {
  /* bench refuses --out of the options of a query: it writes no answers. */
  if (command->kind == KCP_COMMAND_BENCH && strcmp(flag->name, "out") == 0) return false;
  return (flag->commands & kcp_flag_commands(command->kind)) != 0;
}

bool manual_is_file(const struct kcp_flag *flag) {
  return flag->type == KCP_FLAG_TEXT && strstr(flag->value, "FILE") != NULL;
}

bool manual_has_words(const struct kcp_flag *flag) {
  return flag->type == KCP_FLAG_ALGORITHM ||
         (flag->type != KCP_FLAG_TEXT && flag->value != NULL && strchr(flag->value, '|') != NULL);
}

/* Names that a shell takes as they are, '+' included. */
static void write_algorithms(FILE *stream) {
  for (const struct kcp_algorithm *row = kcp_algorithms; row->name != NULL; ++row) {
    fprintf(stream, " %s", row->name);
    if (row->spelling != NULL) fprintf(stream, " %s", row->spelling);
  }
}

void manual_write_words(FILE *stream, const struct kcp_flag *flag) {
  if (flag->type == KCP_FLAG_ALGORITHM) {
    fputs("auto", stream);
    write_algorithms(stream);
    return;
  }
  if (!manual_has_words(flag)) return;
  const char *gap = "";
  for (const char *word = flag->value; *word != '\0';) {
    int length = (int)strcspn(word, "|");
    int colon = (int)strcspn(word, ":");
    bool is_placeholder = *word >= 'A' && *word <= 'Z';
    if (!is_placeholder) {
      fprintf(stream, "%s%.*s", gap, colon < length ? colon + 1 : length, word);
      gap = " ";
    }
    word += length;
    if (*word == '|') ++word;
  }
}

bool manual_has_operand_words(const struct kcp_command *command) {
  return command->kind == KCP_COMMAND_GEN || command->kind == KCP_COMMAND_GEN_VALUES ||
         command->kind == KCP_COMMAND_HELP;
}

static void write_list(FILE *stream, const char *const *words) {
  for (int i = 0; words[i] != NULL; ++i) fprintf(stream, i > 0 ? " %s" : "%s", words[i]);
}

void manual_write_operand_words(FILE *stream, const struct kcp_command *command) {
  if (command->kind == KCP_COMMAND_GEN) write_list(stream, kcp_distributions);
  if (command->kind == KCP_COMMAND_GEN_VALUES) write_list(stream, kcp_value_distributions);
  if (command->kind != KCP_COMMAND_HELP) return;
  for (const struct kcp_command *row = kcp_commands; row->name != NULL; ++row)
    fprintf(stream, row != kcp_commands ? " %s" : "%s", row->name);
  write_algorithms(stream);
}

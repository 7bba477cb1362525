/* kcp(1), in the man macros. */
#include <string.h>

#include "kcp/algorithm.h"
#include "kcp_version.h"
#include "manual.h"

/* Text in which nothing is markup: a dash stays a dash, and no line begins with a control. */
static void write_text(FILE *stream, const char *text) {
  if (*text == '.' || *text == '\'') fputs("\\&", stream);
  for (; *text != '\0'; ++text) {
    if (*text == '\\')
      fputs("\\e", stream);
    else if (*text == '-')
      fputs("\\-", stream);
    else
      fputc(*text, stream);
  }
}

static void write_line(FILE *stream, const char *text) {
  write_text(stream, text);
  fputc('\n', stream);
}

static void write_paragraph(FILE *stream, const char *text) {
  fputs(".PP\n", stream);
  write_line(stream, text);
}

static void write_heading(FILE *stream, const char *heading) {
  fprintf(stream, ".SH %s\n", heading);
}

static void write_term(FILE *stream, const char *term) {
  fputs(".TP\n.B ", stream);
  write_line(stream, term);
}

static void write_option(FILE *stream, const struct kcp_flag *flag) {
  fputs(".TP\n.BR \\-\\-", stream);
  write_text(stream, flag->name);
  if (flag->value != NULL) {
    fputs(" \" \" \\fI", stream);
    write_text(stream, flag->value);
    fputs("\\fR", stream);
  }
  fputc('\n', stream);
  write_text(stream, flag->help);
  if (flag->unit != NULL) fprintf(stream, ", in %s", flag->unit);
  fputs(" (", stream);
  write_text(stream, flag->standard);
  fputs(").\n", stream);
}

static void write_options(FILE *stream, const struct kcp_command *command) {
  for (const struct kcp_flag *flag = kcp_flags; flag->name != NULL; ++flag)
    if ((flag->commands & command->kind) != 0) write_option(stream, flag);
}

static void write_synopsis(FILE *stream) {
  write_heading(stream, "SYNOPSIS");
  for (const struct kcp_command *command = kcp_commands; command->name != NULL; ++command) {
    if (command != kcp_commands) fputs(".br\n", stream);
    fputs(".B kcp\n", stream);
    write_line(stream, command->usage + strlen("kcp "));
  }
}

static void write_description(FILE *stream) {
  write_heading(stream, "DESCRIPTION");
  write_line(stream,
             "kcp answers exact proximity queries on large files of points or values, on a GPU or "
             "a CPU. Every algorithm, device, partition size and number of threads gives the same "
             "bytes: distances are those of IEEE binary64 without contraction, and answers are in "
             "one total order.");
  write_paragraph(stream,
                  "Answers go to standard output as CSV, or to --out; everything else goes to "
                  "standard error. Output files appear whole or not at all.");
}

static void write_commands(FILE *stream) {
  write_heading(stream, "COMMANDS");
  for (const struct kcp_command *command = kcp_commands; command->name != NULL; ++command) {
    fputs(".SS ", stream);
    write_line(stream, command->name);
    write_line(stream, command->description);
    if (command->kind != KCP_COMMAND_QUERY) write_options(stream, command);
  }
}

static void write_query_options(FILE *stream) {
  write_heading(stream, "OPTIONS OF A QUERY");
  write_line(stream,
             "The default stands in parentheses. N is a whole number, R a real one, SIZE a number "
             "of bytes with K, M, G or T for powers of 1024. kcp help NAME says which of them an "
             "algorithm reads.");
  write_options(stream, kcp_command_of(KCP_COMMAND_QUERY));
}

static void write_algorithms(FILE *stream) {
  write_heading(stream, "ALGORITHMS");
  for (const struct kcp_algorithm *row = kcp_algorithms; row->name != NULL; ++row) {
    fputs(".TP\n.B ", stream);
    write_text(stream, row->name);
    fputc('\n', stream);
    if (row->spelling != NULL) {
      fputs("Also spelled ", stream);
      write_text(stream, row->spelling);
      fputs(". ", stream);
    }
    write_text(stream, row->description);
    fputs(" Source: ", stream);
    write_text(stream, row->source);
    fputs(".\n", stream);
  }
}

static void write_files(FILE *stream) {
  write_heading(stream, "FILES");
  write_line(stream, "The ending of a name tells the format.");
  write_term(stream, ".bin");
  write_line(stream,
             "Records of 32 bytes, little-endian, no header: an unsigned 64-bit id and x, y, z in "
             "binary64. 2-D data has z = 0.");
  write_term(stream, ".csv .txt .tsv");
  write_line(stream,
             "With a header its names decide (id, x or lon, y or lat, z); without one the columns "
             "are id,x,y[,z...], or x,y when there are two. --columns says otherwise.");
  write_term(stream, ".npy .fvecs .fbin");
  write_line(stream, "Vectors of any dimension; the number of a record is its id.");
  write_term(stream, ".f32 .f64 .i32 .u32 .i64");
  write_line(stream, "Raw arrays of values, little-endian, for a top-k.");
}

static void write_exit_status(FILE *stream) {
  static const char *const meanings[][2] = {
      {"0", "Done."},
      {"1", "Failed while running, or stopped; kcp bench --compare found something slower."},
      {"2", "Wrong usage or wrong input."},
      {"3", "A wrong answer was found: by --verify, by kcp bench, or between two runs."},
      {"4", "The device or feature that was asked for is not there."}};
  write_heading(stream, "EXIT STATUS");
  for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; ++i) {
    write_term(stream, meanings[i][0]);
    write_line(stream, meanings[i][1]);
  }
}

static void write_examples(FILE *stream) {
  write_heading(stream, "EXAMPLES");
  for (const struct kcp_command *command = kcp_commands; command->name != NULL; ++command)
    if (command->least_operands > 0) {
      fputs(".TP\n", stream);
      write_line(stream, command->example);
      write_line(stream, command->summary);
    }
}

void manual_write_page(FILE *stream) {
  fprintf(stream, ".TH KCP 1 \"\" \"kcp %s\" \"User Commands\"\n", KCP_VERSION);
  write_heading(stream, "NAME");
  fputs("kcp \\- exact proximity queries on large point files\n", stream);
  write_synopsis(stream);
  write_description(stream);
  write_commands(stream);
  write_query_options(stream);
  write_algorithms(stream);
  write_files(stream);
  write_exit_status(stream);
  write_examples(stream);
}

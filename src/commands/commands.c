#include "kcp/commands.h"

#include <errno.h>
#include <omp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct kcp_command kcp_commands[] = {
    {.name = "query",
     .kind = KCP_COMMAND_QUERY,
     .least_operands = 1,
     .most_operands = 2,
     .usage = "kcp [options] D1 D2",
     .summary = "the k closest pairs of two files or one (--self); the first k values",
     .description =
         "Prints the k closest pairs of D1 x D2 as id1,id2,distance in the order of distance, id1, "
         "id2. With one file of values (.f32 .f64 .i32 .u32 .i64, or .npy and --algo select) "
         "prints its k largest values (--order smallest: smallest) as index,value. With --eps R "
         "counts all pairs within R of each other, of one file or of two, and writes them to "
         "--out. With --algo influence-pairs or influence-partners, the sites of P.csv and Q.csv "
         "that share enough of a weighted domain. The word query may be left out.",
     .example = "kcp --k 10 D1.bin D2.bin",
     .run = kcp_command_query},
    {.name = "bench",
     .kind = KCP_COMMAND_BENCH,
     .least_operands = 1,
     .most_operands = 2,
     .usage = "kcp bench [options] D1 D2",
     .summary = "the same query in many configurations, timed and checked",
     .description =
         "Takes the options of a query (kcp help query), each with one value, a list A,B,C or a "
         "range A:B:STEP, and runs the product of all, every configuration in a process of its "
         "own. Answers are not printed: each must have the checksum of the first configuration "
         "that asks for the same. Prints a row a configuration; one that cannot run is a row with "
         "its reason. An interrupt keeps what is done. With --compare A.json B.json compares two "
         "reports: exit code 1 when any configuration of B is slower beyond the spread of both "
         "(its fastest run is slower than the slowest of A), 3 when an answer differs.",
     .example = "kcp bench --algo dbf,dspp,dspp-pea --buffer list,heap --k 20:140:60 --runs 3 "
                "D1.bin D2.bin",
     .run = kcp_command_bench},
    {.name = "list",
     .kind = KCP_COMMAND_LIST,
     .usage = "kcp list",
     .summary = "the algorithms, and where each can run here",
     .description = "Lists every algorithm with what it computes, the backends it has on this "
                    "machine, its buffers and its place in the paper.",
     .example = "kcp list",
     .run = kcp_command_list},
    {.name = "info",
     .kind = KCP_COMMAND_INFO,
     .least_operands = 1,
     .most_operands = 1,
     .usage = "kcp info [options] FILE",
     .summary = "what a point file holds",
     .description = "Reads and checks the whole file: records, dimensions, bounding box, constant "
                    "coordinates, repeated ids and coincident points.",
     .example = "kcp info D1.bin",
     .run = kcp_command_info},
    {.name = "gen",
     .kind = KCP_COMMAND_GEN,
     .least_operands = 3,
     .most_operands = 3,
     .usage = "kcp gen DIST N OUT [options]",
     .summary = "a synthetic point set of N points",
     .description =
         "DIST is uniform, gaussian, bit, diagonal, sierpinski or parcel. N is a number of points: "
         "1000000, or 1M (K, M, G are thousands). OUT's ending names the format.",
     .example = "kcp gen uniform 1M D1.bin --seed 1",
     .run = kcp_command_gen},
    {.name = "gen-values",
     .kind = KCP_COMMAND_GEN_VALUES,
     .least_operands = 3,
     .most_operands = 3,
     .usage = "kcp gen-values DIST N OUT [options]",
     .summary = "a synthetic array of N values for top-k",
     .description =
         "DIST is uniform, sorted, reversed, equal, duplicates (of 16 values) or adversarial (all "
         "within a unit in the last place of one value). N is a number of values: 1000000, or 1M "
         "(K, M, G are thousands). OUT ends in .f32, .f64, .i32, .u32 or .i64.",
     .example = "kcp gen-values uniform 1M values.f32 --seed 1",
     .run = kcp_command_gen_values},
    {.name = "convert",
     .kind = KCP_COMMAND_CONVERT,
     .least_operands = 2,
     .most_operands = 2,
     .usage = "kcp convert IN OUT [options]",
     .summary = "a point file in another format, named by its ending",
     .description = "Formats are .bin, .csv, .txt, .tsv, .npy, .fvecs and .fbin. Warns of what the "
                    "new format cannot keep.",
     .example = "kcp convert D1.bin D1.csv",
     .run = kcp_command_convert},
    {.name = "help",
     .kind = KCP_COMMAND_HELP,
     .most_operands = 1,
     .usage = "kcp help [NAME]",
     .summary = "this screen, or more about a command or algorithm",
     .description = "NAME is a command or an algorithm.",
     .example = "kcp help dspp-pea",
     .run = kcp_command_help},
    {.name = "version",
     .kind = KCP_COMMAND_VERSION,
     .usage = "kcp version",
     .summary = "version, revision and how it was built",
     .description = "Prints version, git revision, compiler and CUDA toolkit.",
     .example = "kcp version",
     .run = kcp_command_version},
    {.name = NULL}};

const struct kcp_command *kcp_command_find(const char *name) {
  for (const struct kcp_command *command = kcp_commands; command->name != NULL; ++command)
    if (strcmp(command->name, name) == 0) return command;
  return NULL;
}

const struct kcp_command *kcp_command_of(enum kcp_command_kind kind) {
  const struct kcp_command *command = kcp_commands;
  while (command->kind != kind) ++command;
  return command;
}

enum kcp_status kcp_command_run(const struct kcp_request *request, struct kcp_error *error) {
  if (request->threads > 0) omp_set_num_threads((int)request->threads);
  return kcp_command_of(request->command)->run(request, error);
}

enum kcp_status kcp_finish_stdout(struct kcp_error *error) {
  errno = 0;
  bool failed = ferror(stdout) != 0;
  int cause = errno;
  if (fflush(stdout) != 0) {
    failed = true;
    cause = errno;
  }
  if (!failed) return KCP_OK;
  return kcp_fail(error, KCP_FAILED, "cannot write to stdout: %s",
                  strerror(cause != 0 ? cause : EIO));
}

bool kcp_shows_progress(const struct kcp_request *request) {
  return !request->quiet && isatty(STDERR_FILENO) == 1;
}

void kcp_warn(const struct kcp_request *request, const char *format, ...) {
  if (request->quiet) return;
  va_list arguments;
  fputs("kcp: warning: ", stderr);
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
}

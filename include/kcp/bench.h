/* kcp bench: the parts of a benchmark of many configurations.
 *
 * A configuration is a query that runs in a process of its own and tells of itself by its report
 * (report.h), whatever kind of query it is. The report of bench is one report of all of them: each
 * element of its `results` has in addition
 *   argv       the command line of the query
 *   options    name and text of each option that was given
 *   date, revision   of its run
 *   checked    "first": the first configuration with an answer to this question; "yes": has the
 *              checksum of that one; "no": has another; null: has no answer
 *   speedup_over_first   of the first row that has a time
 * and status "skipped" or "error" with its reason when it could not run. */
#ifndef KCP_BENCH_H
#define KCP_BENCH_H

#include <jansson.h>
#include <stdio.h>

#include "kcp/sweep.h"
#include "kcp/table.h"

#ifdef __cplusplus
extern "C" {
#endif

enum kcp_bench_status {
  KCP_BENCH_OK,
  KCP_BENCH_WRONG,
  KCP_BENCH_SKIPPED, /* refused before work */
  KCP_BENCH_ERROR    /* failed while running */
};

/* What the tables show of a result. Texts point into it. */
struct kcp_bench_figures {
  enum kcp_bench_status status;
  const char *reason;    /* "" of an ok result */
  const char *algorithm; /* "" when there was nothing to search, or it was refused */
  const char *backend;   /* "" likewise */
  const char *checksum;  /* "" without an answer */
  const char *checked;   /* as in the report; "" while it is not known */
  bool verified;
  size_t sample_count; /* 0 without times */
  double median_s;     /* of the compared phase, as minimum and maximum */
  double minimum_s;
  double maximum_s;
  double distance_evaluations; /* -1 when there are none */
  double peak_host_bytes;
  double peak_device_bytes; /* 0 on the CPU */
  double speedup;           /* over the first row that has a time; 0 while it is not known */
};

/* `phase` as in struct kcp_request. */
struct kcp_bench_figures kcp_bench_figures_of(const json_t *result, int phase);

/* How a configuration ended: its report, or the status and reason for which there is none. */
struct kcp_bench_outcome {
  json_t *report; /* owned; NULL when there is none */
  enum kcp_status status;
  char reason[1024];
};

/* Runs the query in a child process with the answer thrown away. `tick` is called a few times a
 * second. KCP_OK however the query ended; KCP_INTERRUPTED when bench itself was asked to stop. */
enum kcp_status kcp_bench_run_configuration(const struct kcp_configuration *configuration,
                                            void (*tick)(void *context), void *context,
                                            struct kcp_bench_outcome *outcome,
                                            struct kcp_error *error);

/* An element of `results` for a configuration that ended so; new, owned by the caller. Takes the
 * result out of the outcome's report. NULL without memory. */
json_t *kcp_bench_result(const struct kcp_sweep *sweep, uint64_t number,
                         const struct kcp_configuration *configuration,
                         struct kcp_bench_outcome *outcome);

/* Reads a report of bench. KCP_BAD_INPUT when it is none; KCP_UNAVAILABLE when there is no file. */
enum kcp_status kcp_bench_read(const char *path, json_t **report, struct kcp_error *error);

/* The result with that command line, borrowed; NULL when there is none or it has no time. */
json_t *kcp_bench_find(const json_t *report, const struct kcp_configuration *configuration);

/* Whole or not at all. */
enum kcp_status kcp_bench_write(const char *path, const json_t *report, struct kcp_error *error);

/* Which columns a table of the sweep has; `results` may still be empty. */
struct kcp_bench_table {
  const struct kcp_sweep *sweep;
  int phase;
  int shown_axes[KCP_MAX_GIVEN]; /* those with several values, but for --algo */
  int shown_count;
  int algorithm_axis; /* -1 when --algo was not given */
  struct kcp_table_column columns[KCP_TABLE_MOST_COLUMNS];
  int column_count;
};
void kcp_bench_table_make(const struct kcp_sweep *sweep, int phase, struct kcp_bench_table *table);
void kcp_bench_table_head(FILE *stream, enum kcp_table_style style,
                          const struct kcp_bench_table *table);
void kcp_bench_table_row(FILE *stream, enum kcp_table_style style,
                         const struct kcp_bench_table *table, uint64_t number,
                         const json_t *result);

/* Every figure of the results (NULL: not run) of configurations 0 .. count - 1, in full precision.
 */
void kcp_bench_write_csv(FILE *stream, const struct kcp_sweep *sweep, int phase,
                         json_t *const *results, uint64_t count);

/* The table of two reports on stdout. KCP_FAILED when a configuration of the second is slower
 * beyond the spread, KCP_WRONG_ANSWER when an answer differs. */
enum kcp_status kcp_bench_compare(const struct kcp_request *request, struct kcp_error *error);

#ifdef __cplusplus
}
#endif
#endif

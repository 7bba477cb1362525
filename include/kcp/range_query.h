/* A range join of the command line: what was run, for summary, report and files. */
#ifndef KCP_RANGE_QUERY_H
#define KCP_RANGE_QUERY_H

#include <stdbool.h>
#include <stdio.h>

#include "kcp/range_run.h"
#include "kcp/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What kcp_result has of a range join in place of closest pairs. */
struct kcp_range_result {
  double eps;         /* of the request, or found for its selectivity */
  bool eps_was_found; /* by sampling */
  double wanted_selectivity;
  bool self;
  uint64_t query_count;
  uint64_t reference_count;
  uint64_t pair_count; /* |R|, self included */
  uint64_t held_bytes; /* of them in host memory; 0 when they were counted or did not fit */
  struct kcp_range_work *works; /* one a timed run; owned by the query */
};

/* Pairs of distinct records: |R| - |D| of a self-join. */
uint64_t kcp_range_pairs_without_self(const struct kcp_range_result *range);
/* Mean neighbours of a query besides itself; 0 without a query. */
double kcp_range_selectivity(const struct kcp_range_result *range);

/* Whether the request is for a range join: by its algorithm, or auto with --eps or --selectivity.
 */
bool kcp_asks_for_range_join(const struct kcp_request *request);

/* kcp_command_query for a range join. */
enum kcp_status kcp_range_query(const struct kcp_request *request, struct kcp_error *error);

/* The power of two to read coordinates with, so that eps * eps and the squares that decide neither
 * overflow nor underflow (DESIGN.md, Exactness 5); 0 for any eps between 2^-250 and 2^500. Reads
 * the files when eps is not. KCP_BAD_INPUT when no scale serves. */
enum kcp_status kcp_range_scale(struct kcp_dataset *reference, struct kcp_dataset *query,
                                double eps, struct kcp_progress *progress, int *exponent,
                                struct kcp_error *error);

/* The eps for which a query has `selectivity` neighbours besides itself on average, from the pairs
 * of a sample of both sets. */
enum kcp_status kcp_range_find_eps(struct kcp_dataset *reference, struct kcp_dataset *query,
                                   double selectivity, double *eps, struct kcp_error *error);

/* Counts neighbours again with code of its own, of all queries or of an even sample of them when
 * all pairs are many. Points are read at their scale, eps is scaled likewise. KCP_WRONG_ANSWER says
 * what is wrong. */
enum kcp_status kcp_verify_range(struct kcp_dataset *reference, struct kcp_dataset *query,
                                 double eps, const uint64_t *counts, struct kcp_error *error);

/* FNV-1a over the counts of the queries in the order of the file. */
uint64_t kcp_range_checksum(const uint64_t *counts, uint64_t count);

/* `name,value` lines: pairs, pairs_without_self (of a self-join), selectivity, eps. */
void kcp_range_write_counts(FILE *stream, const struct kcp_range_result *range);

#ifdef __cplusplus
}
#endif
#endif

/* Runs a range join over files of any size: slices of D, and for each the queries block by block,
 * as the engine has room for. */
#ifndef KCP_RANGE_RUN_H
#define KCP_RANGE_RUN_H

#include "kcp/range_join.h"
#include "kcp/range_pairs.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kcp_range_runner {
  const struct kcp_range_engine *engine;
  struct kcp_range_join *join;
  struct kcp_dataset *reference; /* D */
  struct kcp_dataset *query;     /* Q; of a self-join the same */
  bool self;
  struct kcp_progress *progress; /* may be NULL */
  struct kcp_range_capacity capacity;
  uint64_t slice_count;
  uint64_t slice_in_place; /* slice_count when there is none */
  struct kcp_points slice; /* owned */
  struct kcp_points block; /* owned */
  uint64_t *reference_ids; /* of all of D when they are kept; owned */
  uint64_t *query_ids;     /* of all of Q; owned unless it is that of D */
};

/* The runner borrows everything it is given. With keep_ids, the ids of both sets are in its arrays
 * after a run over all queries. */
enum kcp_status kcp_range_runner_create(const struct kcp_range_engine *engine,
                                        struct kcp_range_join *join, struct kcp_dataset *reference,
                                        struct kcp_dataset *query, bool keep_ids,
                                        struct kcp_progress *progress,
                                        struct kcp_range_runner *runner, struct kcp_error *error);
void kcp_range_runner_free(struct kcp_range_runner *runner); /* a zeroed struct is allowed */

/* The next run reads D again, as the first one did. */
void kcp_range_runner_rewind(struct kcp_range_runner *runner);

/* Joins queries first .. first + count - 1 with D. counts[i] becomes the neighbours of query
 * first + i; with `pairs` not NULL (kcp_range_pairs_begin of the same queries) they are collected
 * there. Adds to measurement and work; the caller takes the total time. KCP_INTERRUPTED when asked
 * to stop. */
enum kcp_status kcp_range_run(struct kcp_range_runner *runner, uint64_t first, uint64_t count,
                              uint64_t *counts, struct kcp_range_pairs *pairs,
                              struct kcp_measurement *measurement, struct kcp_range_work *work,
                              struct kcp_error *error);

#ifdef __cplusplus
}
#endif
#endif

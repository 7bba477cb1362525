/* The dealing of refinement work (RT-HiSS, sections IV-D and VIII): heavy primitives first, in
 * equal parts. */
#ifndef KCP_RANGE_TASKS_H
#define KCP_RANGE_TASKS_H

#include <stdint.h>

#include "kcp/range_options.h"
#include "kcp/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KCP_RANGE_BLOCK_THREADS 256 /* of a block of the refinement; a task is one block's */

/* Queries that meet a primitive: entries first .. last - 1. */
struct kcp_range_task {
  uint64_t first, last;
  uint32_t primitive;
};

struct kcp_range_tasks {
  struct kcp_range_task *tasks; /* owned: free */
  uint64_t count;
  uint64_t comparisons; /* of all tasks */
};

/* Primitive p has points firsts[p] .. firsts[p + 1] - 1 and entries entry_firsts[p] ..
 * entry_firsts[p + 1] - 1. With --fixed-work a task has work_per_thread * 256 comparisons or fewer
 * (but one entry at least), else it is a primitive. */
enum kcp_status kcp_range_deal(const struct kcp_range_options *options, uint64_t primitives,
                               const uint32_t *firsts, const uint64_t *entry_firsts,
                               struct kcp_range_tasks *tasks, struct kcp_error *error);

#ifdef __cplusplus
}
#endif
#endif

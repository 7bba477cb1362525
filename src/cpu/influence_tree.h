/* Common influence regions by descent of a tree of cells (CPU).
 *
 * From the domain down, each cell keeps the sites whose share of it is undecided and the
 * competitors that can decide it; a pair is settled at the largest cell that lies in both regions,
 * and forgotten in cells of which either has nothing. Only what crosses a cell of the grid is
 * looked at there. */
#ifndef KCP_CPU_INFLUENCE_TREE_H
#define KCP_CPU_INFLUENCE_TREE_H

#include "kcp/influence.h"

/* What a descent works on. */
struct kcp_influence_descent {
  const struct kcp_influence_plan *plan;
  uint32_t depth; /* times that cells of the grid may be split */
  /* With depth > 0: the pairs that matter; cells are split for them alone, and the sums are
   * theirs. */
  const struct kcp_influence_sums *wanted;
  struct kcp_progress *progress;
};

/* Runs on all threads. Adds the bounds and ranks it computed to *evaluations. */
enum kcp_status kcp_influence_descend(const struct kcp_influence_descent *descent,
                                      struct kcp_influence_sums *sums, uint64_t *evaluations,
                                      struct kcp_error *error);

#endif

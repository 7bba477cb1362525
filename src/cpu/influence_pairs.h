/* The paper's method (common influence regions, section 3): distances of the k-th nearest sites
 * from every cell's centre, then every pair against every cell (CPU). */
#ifndef KCP_CPU_INFLUENCE_PAIRS_H
#define KCP_CPU_INFLUENCE_PAIRS_H

#include "kcp/influence.h"

/* Section 3.1: kth[i] is the rank of the k-th nearest site of `set` from the centre of cell i. */
enum kcp_status kcp_kth_ranks(const struct kcp_influence_plan *plan, int set, double *kth,
                              struct kcp_error *error);

/* Section 3.2: areas[i * m' + j] of the i-th selected group of P with the j-th of Q. With
 * stop_below > 0, units of weight, a row of P ends behind the first area below it (the paper's CPU
 * version of the partners query), and the rest of the row is 0. */
enum kcp_status kcp_pair_areas(const struct kcp_influence_plan *plan, const double *const kth[2],
                               uint64_t stop_below, uint64_t *areas, struct kcp_progress *progress,
                               struct kcp_error *error);

#endif

/* Points ordered along the Morton curve (CPU). */
#ifndef KCP_CPU_MORTON_ORDER_H
#define KCP_CPU_MORTON_ORDER_H

#include "kcp/morton.h"
#include "point_set.h"
#include "radix_sort.h"

/* Quantiles of a sample of the set's coordinates into `knots` (KCP_MAX_AXES * KCP_MORTON_KNOTS);
 * low and high are their extremes along the axes. */
void kcp_morton_find_knots(const struct kcp_cells *axes, const struct kcp_point_set *set,
                           const double *low, const double *high, double *knots);

/* `count` points spread evenly over `from` (all of them when it has no more), of those with ids
 * from first_id to last_id, in Morton order into `to`: columns, records, and ids when both have
 * them. Sets to->count. *keys, when not NULL, becomes their keys, valid until the sorter is used
 * again. */
void kcp_morton_order(struct kcp_radix_sorter *sorter, const struct kcp_cells *axes,
                      const struct kcp_morton_frame *frame, uint32_t dimensions,
                      const struct kcp_point_set *from, uint64_t count, uint64_t first_id,
                      uint64_t last_id, struct kcp_point_set *to, const uint64_t **keys);

#endif

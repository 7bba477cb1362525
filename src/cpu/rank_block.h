/* Ranks of a run of points against one query point, vectorised (CPU). */
#ifndef KCP_CPU_RANK_BLOCK_H
#define KCP_CPU_RANK_BLOCK_H

#include <stdint.h>

#include "kcp/metric.h"

/* Points in one call at most: their ranks fit in the first-level cache. */
#define KCP_RANK_BLOCK 256

/* ranks[i] of point i of `count` <= KCP_RANK_BLOCK points, whose coordinate j is
 * columns[j * stride + i], to query[0 .. dimensions-1]. Returns how many are <= limit. */
uint32_t kcp_rank_block(struct kcp_metric metric, uint32_t dimensions, const double *columns,
                        uint64_t stride, uint32_t count, const double *query, double limit,
                        double *ranks);

#endif

/* Groups of near points by a balanced kd-tree (RT-HiSS, section IV-B; CPU). */
#ifndef KCP_CPU_RANGE_KD_TREE_H
#define KCP_CPU_RANGE_KD_TREE_H

#include "kcp/range_primitives.h"

/* Orders `places`, which becomes a permutation of 0 .. n - 1, so that leaf i of a tree of `height`
 * levels has places kcp_kd_first(n, height - 1, i) .. kcp_kd_first(n, height - 1, i + 1) - 1. A
 * node is split at its median along its longest side. axes[j][i]: point i along axis j. */
void kcp_kd_tree_order(uint64_t n, uint32_t axis_count, const float *const *axes, uint32_t height,
                       uint32_t *places);

#endif

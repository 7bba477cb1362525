/* Sets of points on the device as the global-threshold search passes them on. */
#ifndef KCP_KERNELS_THRESHOLD_POINTS_CUH
#define KCP_KERNELS_THRESHOLD_POINTS_CUH

#include <cstdint>

#include "kcp/cells.h"

/* Columns (dimension-major, `stride` apart, which is the room there is), record numbers, and ids
 * once they were looked up. With records NULL, point i is record first_record + i. How many points
 * there are may be known on the device alone: then *live, and `count` is the most it can be. A
 * view: the engine owns the memory. */
struct kcp_point_set {
  double *columns;
  uint64_t stride;
  uint64_t *records;
  uint64_t *ids;
  uint64_t first_record;
  uint32_t count;
  const unsigned long long *live; /* NULL: count itself */
};

__device__ static inline uint32_t kcp_set_count(const struct kcp_point_set &set) {
  if (set.live == NULL) return set.count;
  unsigned long long live = *set.live;
  return live < set.count ? (uint32_t)live : set.count;
}

__device__ static inline uint64_t kcp_set_record(const struct kcp_point_set &set, uint32_t i) {
  return set.records != NULL ? set.records[i] : set.first_record + i;
}

/* The id of point i: where none was looked up, ids ascend as records do. */
__device__ static inline uint64_t kcp_set_id(const struct kcp_point_set &set, uint32_t i) {
  return set.ids != NULL ? set.ids[i] : kcp_set_record(set, i);
}

/* The coordinates of point i along the axes. */
__device__ static inline void kcp_set_axes(const struct kcp_point_set &set,
                                           const struct kcp_cells &cells, uint32_t i,
                                           double *point) {
#pragma unroll
  for (uint32_t j = 0; j < KCP_MAX_AXES; ++j)
    point[j] = j < cells.axes ? set.columns[cells.axis[j] * set.stride + i] : 0;
}

#endif

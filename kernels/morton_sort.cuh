/* Points ordered along the Morton curve on the device (CUB radix sort). */
#ifndef KCP_KERNELS_MORTON_SORT_CUH
#define KCP_KERNELS_MORTON_SORT_CUH

#include "device.cuh"
#include "kcp/morton.h"
#include "threshold_points.cuh"

/* Quantiles of a sample of the set's coordinates into `knots` (device memory for KCP_MAX_AXES *
 * KCP_MORTON_KNOTS); low and high (host) are their extremes along the axes. */
enum kcp_status kcp_morton_find_knots(const struct kcp_cells *axes, const struct kcp_point_set *set,
                                      const double *low, const double *high, double *knots,
                                      cudaStream_t stream, struct kcp_error *error);

/* Scratch for up to `capacity` points, owned by the memory it was taken from. */
struct kcp_morton_sorter {
  uint64_t capacity;
  uint64_t *keys, *sorted_keys;
  uint32_t *indices, *order;
  void *scratch;
  size_t scratch_bytes;
};

enum kcp_status kcp_morton_sorter_create(struct kcp_device_memory *memory, uint64_t capacity,
                                         struct kcp_morton_sorter *sorter, struct kcp_error *error);

/* The points of the set in Morton order: sorter->sorted_keys ascending, sorter->order the points'
 * indices in the set. Points of other ids than first_id to last_id come last, with the key
 * UINT64_MAX. */
enum kcp_status kcp_morton_sort(struct kcp_morton_sorter *sorter, const struct kcp_cells *axes,
                                const struct kcp_morton_frame *frame,
                                const struct kcp_point_set *set, uint64_t first_id,
                                uint64_t last_id, cudaStream_t stream, struct kcp_error *error);

#endif

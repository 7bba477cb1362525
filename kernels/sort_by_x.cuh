/* Ordering the points of a partition by x on the device (CUB radix sort). */
#ifndef KCP_KERNELS_SORT_BY_X_CUH
#define KCP_KERNELS_SORT_BY_X_CUH

#include "device.cuh"

/* Scratch for up to `capacity` points, owned by the memory it was taken from; for one stream. */
struct kcp_x_sorter {
  uint64_t capacity;
  uint32_t *identity; /* 0, 1, 2, ... */
  void *scratch;
  size_t scratch_bytes;
};

enum kcp_status kcp_x_sorter_create(struct kcp_device_memory *memory, uint64_t capacity,
                                    struct kcp_x_sorter *sorter, struct kcp_error *error);

/* Columns (dimension-major, `stride` apart) and ids of `count` <= capacity points into x order;
 * `order` keeps where each came from. Bytes: 8 passes over 12 of key and index, then one gather. */
enum kcp_status kcp_sort_by_x(struct kcp_x_sorter *sorter, uint64_t count, uint32_t dimensions,
                              const double *columns, uint64_t stride, const uint64_t *ids,
                              double *sorted_columns, uint64_t *sorted_ids, uint32_t *order,
                              cudaStream_t stream, struct kcp_error *error);

#endif

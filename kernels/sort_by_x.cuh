/* Ordering the points of a partition by x on the device (CUB radix sort). */
#ifndef KCP_KERNELS_SORT_BY_X_CUH
#define KCP_KERNELS_SORT_BY_X_CUH

#include "device.cuh"

/* Whether points of one x keep their order or go by y, then z. */
enum kcp_equal_x { KCP_EQUAL_X_AS_READ, KCP_EQUAL_X_BY_Y_Z };

/* Scratch for up to `capacity` points, owned by the memory it was taken from; for one stream. */
struct kcp_x_sorter {
  uint64_t capacity;
  enum kcp_equal_x equal_x;
  uint32_t *identity;         /* 0, 1, 2, ... */
  double *keys, *sorted_keys; /* of the passes before the one by x */
  uint32_t *pass_order;
  void *scratch;
  size_t scratch_bytes;
};

enum kcp_status kcp_x_sorter_create(struct kcp_device_memory *memory, uint64_t capacity,
                                    enum kcp_equal_x equal_x, struct kcp_x_sorter *sorter,
                                    struct kcp_error *error);

/* Columns (dimension-major, `stride` apart) and ids of `count` <= capacity points into x order;
 * `order` keeps where each came from. Bytes: for each coordinate sorted by 8 passes over 12 of key
 * and index, then one gather. */
enum kcp_status kcp_sort_by_x(struct kcp_x_sorter *sorter, uint64_t count, uint32_t dimensions,
                              const double *columns, uint64_t stride, const uint64_t *ids,
                              double *sorted_columns, uint64_t *sorted_ids, uint32_t *order,
                              cudaStream_t stream, struct kcp_error *error);

#endif

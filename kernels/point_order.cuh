/* The order in which the points of a partition are searched, made on the device (CUB). */
#ifndef KCP_KERNELS_POINT_ORDER_CUH
#define KCP_KERNELS_POINT_ORDER_CUH

#include "device.cuh"

/* Scratch for up to `capacity` points, owned by the memory it was taken from; for one stream. */
struct kcp_point_sorter {
  uint64_t capacity;
  uint32_t *identity;           /* 0, 1, 2, ... */
  uint64_t *keys, *sorted_keys; /* of passes that gather their keys */
  uint32_t *pass_order;
  uint32_t *answer; /* what a kernel or a selection found out */
  void *scratch;
  size_t scratch_bytes;
};

enum kcp_status kcp_point_sorter_create(struct kcp_device_memory *memory, uint64_t capacity,
                                        struct kcp_point_sorter *sorter, struct kcp_error *error);

/* Points as uploaded: columns (dimension-major, `stride` apart) and ids of `count` <= capacity. */
struct kcp_uploaded_points {
  const double *columns;
  uint64_t stride;
  const uint64_t *ids;
  uint32_t count;
  uint32_t dimensions;
};

/* Where a sort leaves them: columns of the same stride, and where each point came from. */
struct kcp_sorted_points {
  double *columns;
  uint64_t *ids;
  uint32_t *order;
};

/* For queries: by x, in up to 3 dimensions of equal x by y, then z. Bytes: for each coordinate
 * sorted by 8 passes over 12 of key and index, then one gather. */
enum kcp_status kcp_order_by_coordinates(struct kcp_point_sorter *sorter,
                                         const struct kcp_uploaded_points *points,
                                         const struct kcp_sorted_points *sorted,
                                         cudaStream_t stream, struct kcp_error *error);

/* For a reference partition of DSPP: by x. Of more than `of_a_place` points at one place keeps
 * those first by id (of equal ids by record): *kept <= count are left. Waits for the stream. */
enum kcp_status kcp_order_by_x(struct kcp_point_sorter *sorter,
                               const struct kcp_uploaded_points *points, uint64_t of_a_place,
                               const struct kcp_sorted_points *sorted, uint32_t *kept,
                               cudaStream_t stream, struct kcp_error *error);

/* For brute force: by id. *is_sorted false: they ascend already, and nothing was written. Waits for
 * the stream. */
enum kcp_status kcp_order_by_id(struct kcp_point_sorter *sorter,
                                const struct kcp_uploaded_points *points,
                                const struct kcp_sorted_points *sorted, bool *is_sorted,
                                cudaStream_t stream, struct kcp_error *error);

#endif

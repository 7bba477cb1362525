/* The join by hashed cells: for held points that are few in every cell of the size of the rank. */
#ifndef KCP_KERNELS_CELL_JOIN_CUH
#define KCP_KERNELS_CELL_JOIN_CUH

#include "device.cuh"
#include "join_pairs.cuh"
#include "kcp/cells.h"

/* Held points by bucket of hashed cells: entries starts[b] .. starts[b + 1] - 1 are the indices of
 * bucket b's. Owned by the memory it was taken from. */
struct kcp_cell_table {
  uint64_t capacity;    /* points */
  uint32_t bucket_bits; /* of the last fill: 2^bucket_bits buckets, as many as points or more */
  uint32_t *counts;     /* scratch, a bucket each */
  uint32_t *starts;
  uint32_t *entries;
  unsigned *fullest; /* device: points of the fullest bucket */
  void *scratch;
  size_t scratch_bytes;
};

enum kcp_status kcp_cell_table_create(struct kcp_device_memory *memory, uint64_t capacity,
                                      struct kcp_cell_table *table, struct kcp_error *error);

/* Fills the table with the held points by the cells they lie in. *fullest (host) becomes the points
 * of the fullest bucket; waits for the stream. */
enum kcp_status kcp_cell_table_fill(struct kcp_cell_table *table, const struct kcp_cells *cells,
                                    const struct kcp_point_set *held, unsigned *fullest,
                                    cudaStream_t stream, struct kcp_error *error);

/* Emits the pairs asked for, of the held points in the table; `cells` are those of the fill and
 * reach as far as asked->rank. The counter counts pairs beyond the capacity too, but not all. */
enum kcp_status kcp_cell_join(const struct kcp_cell_table *table, const struct kcp_cells *cells,
                              const struct kcp_join_question *asked, cudaStream_t stream,
                              struct kcp_error *error);

#endif

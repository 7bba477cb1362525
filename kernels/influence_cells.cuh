/* The sparse method: every tile of cells adds to the pairs of its own sites. */
#ifndef KCP_KERNELS_INFLUENCE_CELLS_CUH
#define KCP_KERNELS_INFLUENCE_CELLS_CUH

#include "influence_lists.cuh"
#include "influence_table.cuh"

/* Weights of cells on the device. */
struct kcp_device_weights {
  const uint64_t *cells; /* NULL: every cell weighs `each` */
  uint64_t each;
};

/* Queues it over the smallest tiles of both sets. Adds the ranks and bounds it computes to
 * *evaluations. */
enum kcp_status kcp_cells_launch(const struct kcp_influence_grid *grid,
                                 const struct kcp_device_sites sites[2], const uint64_t k[2],
                                 const struct kcp_list_levels levels[2],
                                 const struct kcp_device_weights *weights,
                                 const struct kcp_device_pair_table *table,
                                 unsigned long long *evaluations, cudaStream_t stream,
                                 struct kcp_error *error);

#endif

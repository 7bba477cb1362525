/* The paper's method (common influence regions, section 3). */
#ifndef KCP_KERNELS_INFLUENCE_PAIRS_CUH
#define KCP_KERNELS_INFLUENCE_PAIRS_CUH

#include "influence_cells.cuh"

/* Memory for it; owned by the memory it was taken from. */
struct kcp_paper_method {
  double *kth[2];  /* a cell: the rank of its k-th nearest site of P, of Q */
  double *nearest; /* k x nearest_cells: the smallest ranks so far of a part of the cells */
  uint64_t nearest_cells;
  unsigned long long *areas; /* n' x m' */
};

enum kcp_status kcp_paper_method_create(const struct kcp_influence_grid *grid,
                                        const struct kcp_device_sites sites[2], const uint64_t k[2],
                                        struct kcp_device_memory *memory,
                                        struct kcp_paper_method *method, struct kcp_error *error);

/* Section 3.1: queues the distances of the k-th nearest sites from all cells. */
enum kcp_status kcp_kth_launch(const struct kcp_influence_grid *grid,
                               const struct kcp_device_sites sites[2], const uint64_t k[2],
                               const struct kcp_paper_method *method, cudaStream_t stream,
                               struct kcp_error *error);

/* Section 3.2: queues the areas of all pairs. */
enum kcp_status kcp_pair_areas_launch(const struct kcp_influence_grid *grid,
                                      const struct kcp_device_sites sites[2],
                                      const struct kcp_device_weights *weights,
                                      const struct kcp_paper_method *method,
                                      uint32_t multiprocessors, cudaStream_t stream,
                                      struct kcp_error *error);

#endif

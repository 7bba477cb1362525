/* The final merge on the device: the first k candidates of all lists (radix select). */
#ifndef KCP_KERNELS_SELECT_CANDIDATES_CUH
#define KCP_KERNELS_SELECT_CANDIDATES_CUH

#include "device.cuh"
#include "kcp/candidate.h"

/* Planes of candidate slots (candidate_list.h); a rank of +inf marks an unused slot. */
struct kcp_candidate_planes {
  const double *ranks;
  const uint64_t *id1;
  const uint64_t *id2;
  uint64_t count; /* slots */
};

/* Scratch for selecting up to k, owned by the memory it was taken from. */
struct kcp_selector {
  uint64_t k;
  unsigned long long *histogram;      /* device */
  unsigned long long *host_histogram; /* pinned */
  struct kcp_candidate *selected;     /* device, k */
};

enum kcp_status kcp_selector_create(struct kcp_device_memory *memory, uint64_t k,
                                    struct kcp_selector *selector, struct kcp_error *error);

/* The first min(k, used slots) candidates in the order (rank, id1, id2), sorted, into host memory
 * `pairs`. Each pass reads 8 bytes a slot and settles 12 bits; distinct ranks take 3 to 5 passes.
 */
enum kcp_status kcp_select_candidates(struct kcp_selector *selector,
                                      const struct kcp_candidate_planes *planes,
                                      struct kcp_candidate *pairs, uint64_t *count,
                                      struct kcp_error *error);

/* The rank of the `wanted`-th (from 1) smallest of `count` >= wanted finite ranks on the device. */
enum kcp_status kcp_select_rank(struct kcp_selector *selector, const double *ranks, uint64_t count,
                                uint64_t wanted, double *rank, struct kcp_error *error);

#endif

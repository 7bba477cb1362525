/* The join by ranking all pairs: for few points on one side, as ties of one id leave them. */
#ifndef KCP_KERNELS_ALL_PAIRS_JOIN_CUH
#define KCP_KERNELS_ALL_PAIRS_JOIN_CUH

#include "device.cuh"
#include "join_pairs.cuh"

/* Emits the pairs asked for; the counter counts pairs beyond the capacity too, but not all. */
enum kcp_status kcp_all_pairs_join(const struct kcp_join_question *asked, cudaStream_t stream,
                                   struct kcp_error *error);

#endif

/* Geometry: 256 threads a block, a thread a held point, all streamed points one after the other:
 * the same for all threads, so that a warp reads one. */
#include "all_pairs_join.cuh"

static const int threads = 256;

__global__ static void join(const struct kcp_join_question asked) {
  uint32_t h = blockIdx.x * blockDim.x + threadIdx.x;
  if (h >= asked.held.count) return;
  for (uint32_t q = 0; q < asked.streamed.count; ++q) {
    double rank = kcp_rank_of_pair(asked, h, q);
    if (kcp_pair_belongs(asked, h, q, rank))
      kcp_append_pair(asked.pairs, rank, kcp_set_record(asked.held, h),
                      kcp_set_record(asked.streamed, q));
  }
}

enum kcp_status kcp_all_pairs_join(const struct kcp_join_question *asked, cudaStream_t stream,
                                   struct kcp_error *error) {
  if (asked->held.count == 0 || asked->streamed.count == 0) return KCP_OK;
  join<<<(asked->held.count + threads - 1) / threads, threads, 0, stream>>>(*asked);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

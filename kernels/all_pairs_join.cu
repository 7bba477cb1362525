/* Geometry: 256 threads a block, a thread a held point, 64 streamed points a block or more, one
 * after the other: the same for all threads, so that a warp reads one.
 *
 * History:
 *  1. all streamed points in every thread: few held points left most of the device without work.
 */
#include "all_pairs_join.cuh"

static const int threads = 256;
static const uint32_t least_chunk = 64, most_chunks = 65535;

__global__ static void join(const struct kcp_join_question asked, uint32_t chunk) {
  uint32_t h = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * chunk;
  if (h >= asked.held.count || kcp_out_of_room(asked.pairs)) return;
  uint32_t last = min(first + chunk, asked.streamed.count);
  for (uint32_t q = first; q < last; ++q) {
    double rank = kcp_rank_of_pair(asked, h, q);
    if (kcp_pair_belongs(asked, h, q, rank))
      kcp_append_pair(asked.pairs, rank, kcp_set_record(asked.held, h),
                      kcp_set_record(asked.streamed, q));
  }
}

enum kcp_status kcp_all_pairs_join(const struct kcp_join_question *asked, cudaStream_t stream,
                                   struct kcp_error *error) {
  uint32_t streamed = asked->streamed.count;
  if (asked->held.count == 0 || streamed == 0) return KCP_OK;
  uint32_t chunk = streamed / most_chunks + 1;
  if (chunk < least_chunk) chunk = least_chunk;
  dim3 grid((asked->held.count + threads - 1) / threads, (streamed + chunk - 1) / chunk);
  join<<<grid, threads, 0, stream>>>(*asked, chunk);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

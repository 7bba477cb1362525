/* Open pairs, from a list or all of an entry: 8 lanes a pair read its rows, 32 bytes at a time, so
 * that neighbours in the list, which are of the same tiles, find them in the cache. 8 bytes of list
 * and 2 d values a pair. */
#include "range_tiles_decide.cuh"

static const int threads = 256;
static const uint32_t lanes = 8; /* of a pair */
static const uint64_t pairs_of_block = threads / lanes * 32ull;

template <typename T>
__global__ static void __launch_bounds__(threads)
    decide(struct kcp_tile_work work, uint64_t count) {
  const uint64_t begin = blockIdx.x * pairs_of_block;
  for (uint64_t i = begin; i < begin + pairs_of_block && i < count; i += threads / lanes) {
    const uint64_t own = i + threadIdx.x / lanes;
    const bool is_pair = own < count;
    kcp_tile_settle<T>(work, kcp_open_unpack(work.open[is_pair ? own : i]), is_pair, lanes, ~0u);
  }
}

/* A block a task: its entries one after the other. */
template <typename T>
__global__ static void __launch_bounds__(threads) decide_all(struct kcp_tile_work work) {
  const struct kcp_tile_task task = work.tasks[blockIdx.x];
  const uint32_t rows = kcp_tile_size(work.queries, task.tile);
  for (uint64_t entry = task.first; entry < task.first + task.count; ++entry) {
    const uint32_t columns = kcp_tile_size(work.points, work.met[entry]);
    for (uint32_t i = 0; i < rows * columns; i += threads / lanes) {
      const uint32_t own = i + threadIdx.x / lanes, pair = own < rows * columns ? own : i;
      const struct kcp_open_pair open = {entry, pair / columns, pair % columns};
      kcp_tile_settle<T>(work, open, own < rows * columns, lanes, ~0u);
    }
  }
}

enum kcp_status kcp_tiles_decide(struct kcp_range_join *join, const struct kcp_tile_work *work,
                                 uint64_t count, struct kcp_error *error) {
  if (count == 0) return KCP_OK;
  const unsigned blocks = (unsigned)((count + pairs_of_block - 1) / pairs_of_block);
  void (*kernel)(struct kcp_tile_work, uint64_t) = join->is_narrow ? decide<float> : decide<double>;
  kernel<<<blocks, threads, 0, join->stream>>>(*work, count);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

enum kcp_status kcp_tiles_decide_all(struct kcp_range_join *join, const struct kcp_tile_work *work,
                                     uint64_t first, uint64_t count, struct kcp_error *error) {
  if (count == 0) return KCP_OK;
  struct kcp_tile_work part = *work;
  part.tasks = work->tasks + first;
  void (*kernel)(struct kcp_tile_work) = join->is_narrow ? decide_all<float> : decide_all<double>;
  kernel<<<(unsigned)count, threads, 0, join->stream>>>(part);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

/* Top-k by sorting everything, the baseline of the paper: CUB's radix sort of (key, index) pairs,
 * then the first k of each row. Rows are sorted together: by key, then stably by row.
 *
 * Launch geometry: make_keys, count_equal and take_first have a thread a value (256 a block), CUB
 * chooses its own. Memory: two pairs of arrays, 2 * (bytes of a key + 4) a value, and CUB's
 * scratch. Cost: make_keys reads and writes each value once; the sort moves 2 * (bytes of a key +
 * 4) bytes a value for each 8 bits of the key. History: 1. keys and identity written by one kernel,
 * DoubleBuffer sort. Measured: see docs/results/top-k-h200.md. */
#include <cstdlib>
#include <cub/device/device_radix_sort.cuh>

#include "top_k.cuh"

static const int threads = 256;

static unsigned blocks_for(uint64_t count) {
  return (unsigned)((count + threads - 1) / threads);
}

/* Adds the NaN of a warp to the outcome of their row. */
__device__ static void count_nan(bool is_nan, uint32_t row, uint32_t rows,
                                 struct kcp_row_outcome *outcomes) {
  const unsigned lanes = __ballot_sync(0xffffffffu, is_nan);
  if (lanes == 0) return;
  if (rows > 1) {
    if (is_nan) atomicAdd(&outcomes[row].nan_count, 1ull);
  } else if (threadIdx.x % 32 == 0) {
    atomicAdd(&outcomes[0].nan_count, (unsigned long long)__popc(lanes));
  }
}

template <typename Codec>
__global__ static void make_keys(const typename Codec::raw *values, uint32_t count, uint32_t rows,
                                 uint32_t columns, typename Codec::raw flip,
                                 typename Codec::key *keys, uint32_t *indices,
                                 struct kcp_row_outcome *outcomes) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  bool is_nan = false;
  if (i < count) {
    const typename Codec::native value = Codec::directed(values[i], flip);
    is_nan = kcp_is_nan(value);
    keys[i] = Codec::key_of(value);
    indices[i] = i;
  }
  count_nan(is_nan, i / columns, rows, outcomes);
}

__global__ static void make_row_keys(const uint32_t *indices, uint32_t count, uint32_t columns,
                                     uint32_t *row_keys) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) row_keys[i] = indices[i] / columns;
}

template <typename Codec>
__global__ static void take_first(const typename Codec::raw *values, uint32_t rows,
                                  uint32_t columns, typename Codec::raw flip, uint32_t width,
                                  const uint32_t *sorted, typename Codec::key *keys_out,
                                  uint32_t *indices_out, struct kcp_row_outcome *outcomes) {
  const uint32_t place = blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= rows * width) return;
  const uint32_t row = place / width, j = place % width;
  const uint32_t from = sorted[(uint64_t)row * columns + j];
  keys_out[place] = Codec::key_of(Codec::directed(values[from], flip));
  indices_out[place] = from - row * columns;
  if (j > 0) return;
  const unsigned long long valid = columns - outcomes[row].nan_count;
  outcomes[row].count = valid < width ? valid : width;
}

/* Blocks take turns at the rows: block b works on row b / blocks_per_row. */
template <typename Codec>
__global__ static void count_equal(const typename Codec::raw *values, uint32_t columns,
                                   typename Codec::raw flip, uint32_t width,
                                   uint32_t blocks_per_row, const typename Codec::key *keys,
                                   struct kcp_row_outcome *outcomes) {
  const uint32_t row = blockIdx.x / blocks_per_row, part = blockIdx.x % blocks_per_row;
  const uint32_t count = (uint32_t)outcomes[row].count;
  if (count == 0) return;
  const typename Codec::native last = Codec::native_of(keys[(uint64_t)row * width + count - 1]);
  const typename Codec::raw *from = values + (uint64_t)row * columns;
  uint32_t equal = 0;
#pragma unroll 8
  for (uint32_t i = part * blockDim.x + threadIdx.x; i < columns; i += blocks_per_row * blockDim.x)
    equal += Codec::directed(from[i], flip) == last;
  for (int mask = 16; mask > 0; mask /= 2) equal += __shfl_xor_sync(0xffffffffu, equal, mask);
  if (threadIdx.x % 32 == 0 && equal > 0)
    atomicAdd(&outcomes[row].equal, (unsigned long long)equal);
}

template <typename Codec>
static enum kcp_status queue_count_equal(const struct kcp_top_k_shape *shape,
                                         const struct kcp_top_k_batch *batch,
                                         const struct kcp_top_k_results *results,
                                         cudaStream_t stream, struct kcp_error *error) {
  typedef typename Codec::raw raw;
  const uint64_t width = shape->k < batch->columns ? shape->k : batch->columns;
  const uint64_t useful = (batch->columns + 16 * threads - 1) / (16 * threads);
  const uint64_t wanted = (16ull * shape->multiprocessors + batch->rows - 1) / batch->rows;
  const uint32_t blocks_per_row = (uint32_t)(useful < wanted ? useful : wanted);
  count_equal<Codec><<<(unsigned)(batch->rows * blocks_per_row), threads, 0, stream>>>(
      (const raw *)batch->values, (uint32_t)batch->columns,
      (raw)kcp_direction_flip(shape->type, shape->order), (uint32_t)width, blocks_per_row,
      (const typename Codec::key *)results->keys, results->outcomes);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

enum kcp_status kcp_count_equal(const struct kcp_top_k_shape *shape,
                                const struct kcp_top_k_batch *batch,
                                const struct kcp_top_k_results *results, cudaStream_t stream,
                                struct kcp_error *error) {
  KCP_WITH_CODEC(shape->type, return, queue_count_equal, shape, batch, results, stream, error);
  return KCP_OK;
}

template <typename Key>
static enum kcp_status sort_pairs(struct kcp_pair_arrays *arrays, uint64_t count, int bits,
                                  cudaStream_t stream, struct kcp_error *error) {
  cub::DoubleBuffer<Key> keys((Key *)arrays->keys[0], (Key *)arrays->keys[1]);
  cub::DoubleBuffer<uint32_t> values(arrays->values[0], arrays->values[1]);
  KCP_CUDA_TRY(cub::DeviceRadixSort::SortPairs(arrays->scratch, arrays->scratch_bytes, keys, values,
                                               (uint32_t)count, 0, bits, stream));
  arrays->keys[0] = keys.Current();
  arrays->keys[1] = keys.Alternate();
  arrays->values[0] = values.Current();
  arrays->values[1] = values.Alternate();
  return KCP_OK;
}

enum kcp_status kcp_sort_pairs(struct kcp_pair_arrays *arrays, uint32_t key_bytes, uint64_t count,
                               int bits, cudaStream_t stream, struct kcp_error *error) {
  if (count == 0 || bits == 0) return KCP_OK;
  return key_bytes == 8 ? sort_pairs<uint64_t>(arrays, count, bits, stream, error)
                        : sort_pairs<uint32_t>(arrays, count, bits, stream, error);
}

enum kcp_status kcp_sort_values(struct kcp_pair_arrays *arrays, uint64_t count, int bits,
                                cudaStream_t stream, struct kcp_error *error) {
  if (count == 0) return KCP_OK;
  cub::DoubleBuffer<uint32_t> values(arrays->values[0], arrays->values[1]);
  KCP_CUDA_TRY(cub::DeviceRadixSort::SortKeys(arrays->scratch, arrays->scratch_bytes, values,
                                              (uint32_t)count, 0, bits, stream));
  arrays->values[0] = values.Current();
  arrays->values[1] = values.Alternate();
  return KCP_OK;
}

template <typename Key>
static enum kcp_status scratch_bytes(uint64_t count, size_t *bytes, struct kcp_error *error) {
  cub::DoubleBuffer<Key> keys(NULL, NULL);
  cub::DoubleBuffer<uint32_t> values(NULL, NULL);
  *bytes = 0;
  KCP_CUDA_TRY(cub::DeviceRadixSort::SortPairs(NULL, *bytes, keys, values, (uint32_t)count, 0,
                                               (int)(8 * sizeof(Key)), (cudaStream_t)0));
  return KCP_OK;
}

/* Sorting values alone may take more than sorting as many pairs: its tiles are others. */
enum kcp_status kcp_pair_sort_bytes(uint32_t key_bytes, uint64_t count, size_t *bytes,
                                    struct kcp_error *error) {
  cub::DoubleBuffer<uint32_t> values(NULL, NULL);
  size_t alone = 0;
  KCP_TRY(key_bytes == 8 ? scratch_bytes<uint64_t>(count, bytes, error)
                         : scratch_bytes<uint32_t>(count, bytes, error));
  KCP_CUDA_TRY(cub::DeviceRadixSort::SortKeys(NULL, alone, values, (uint32_t)count, 0,
                                              (int)(8 * sizeof(uint32_t)), (cudaStream_t)0));
  if (alone > *bytes) *bytes = alone;
  return KCP_OK;
}

struct sorter {
  struct kcp_top_k_shape shape;
  uint32_t key_bytes;
  struct kcp_pair_arrays arrays;
};

static bool takes_rows(const struct kcp_top_k_shape *shape) {
  (void)shape;
  return true;
}

static uint64_t bytes(const struct kcp_top_k_shape *shape) {
  const uint64_t count = shape->rows * shape->columns;
  const uint64_t scratch = count / 4 + (1u << 20); /* CUB takes less */
  return count * 2 * (kcp_value_bytes(shape->type) + sizeof(uint32_t)) + scratch;
}

static enum kcp_status create(const struct kcp_top_k_shape *shape, struct kcp_device_memory *memory,
                              void **state, struct kcp_error *error) {
  const uint64_t count = shape->rows * shape->columns;
  const uint32_t key_bytes = kcp_value_bytes(shape->type);
  struct kcp_pair_arrays arrays;
  size_t row_scratch;
  for (int copy = 0; copy < 2; ++copy) {
    KCP_TRY(kcp_device_take(memory, count, key_bytes, &arrays.keys[copy], "keys", error));
    KCP_TRY(kcp_device_array(memory, count, &arrays.values[copy], "indices", error));
  }
  KCP_TRY(kcp_pair_sort_bytes(key_bytes, count, &arrays.scratch_bytes, error));
  KCP_TRY(kcp_pair_sort_bytes(sizeof(uint32_t), count, &row_scratch, error));
  if (row_scratch > arrays.scratch_bytes) arrays.scratch_bytes = row_scratch;
  KCP_TRY(kcp_device_take(memory, arrays.scratch_bytes, 1, &arrays.scratch, "sorting", error));
  struct sorter *made = (struct sorter *)malloc(sizeof *made);
  if (made == NULL) return kcp_out_of_memory(error, "the search", sizeof *made);
  made->shape = *shape;
  made->key_bytes = key_bytes;
  made->arrays = arrays;
  *state = made;
  return KCP_OK;
}

template <typename Codec>
static enum kcp_status queue(struct sorter *sorter, const struct kcp_top_k_batch *batch,
                             const struct kcp_top_k_results *results, cudaStream_t stream,
                             struct kcp_error *error) {
  typedef typename Codec::raw raw;
  typedef typename Codec::key key;
  const struct kcp_top_k_shape *shape = &sorter->shape;
  struct kcp_pair_arrays *arrays = &sorter->arrays;
  const uint64_t count = batch->rows * batch->columns;
  const uint64_t width = shape->k < batch->columns ? shape->k : batch->columns;
  const raw flip = (raw)kcp_direction_flip(shape->type, shape->order);
  KCP_CUDA_TRY(
      cudaMemsetAsync(results->outcomes, 0, batch->rows * sizeof *results->outcomes, stream));
  make_keys<Codec><<<blocks_for(count), threads, 0, stream>>>(
      (const raw *)batch->values, (uint32_t)count, (uint32_t)batch->rows, (uint32_t)batch->columns,
      flip, (key *)arrays->keys[0], arrays->values[0], results->outcomes);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_TRY(kcp_sort_pairs(arrays, sorter->key_bytes, count, (int)(8 * sorter->key_bytes), stream,
                         error));
  if (batch->rows > 1) {
    make_row_keys<<<blocks_for(count), threads, 0, stream>>>(
        arrays->values[0], (uint32_t)count, (uint32_t)batch->columns, (uint32_t *)arrays->keys[0]);
    KCP_CUDA_TRY(cudaGetLastError());
    KCP_TRY(kcp_sort_pairs(arrays, sizeof(uint32_t), count, kcp_bits_of(batch->rows - 1), stream,
                           error));
  }
  take_first<Codec><<<blocks_for(batch->rows * width), threads, 0, stream>>>(
      (const raw *)batch->values, (uint32_t)batch->rows, (uint32_t)batch->columns, flip,
      (uint32_t)width, arrays->values[0], (key *)results->keys, results->indices,
      results->outcomes);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

static enum kcp_status launch(void *state, const struct kcp_top_k_batch *batch,
                              const struct kcp_top_k_results *results, cudaStream_t stream,
                              struct kcp_error *error) {
  struct sorter *sorter = (struct sorter *)state;
  KCP_WITH_CODEC(sorter->shape.type, return, queue, sorter, batch, results, stream, error);
  return KCP_OK;
}

static enum kcp_status certify(void *state, const struct kcp_top_k_batch *batch,
                               const struct kcp_top_k_results *results, cudaStream_t stream,
                               struct kcp_error *error) {
  return kcp_count_equal(&((struct sorter *)state)->shape, batch, results, stream, error);
}

static void destroy(void *state) {
  free(state);
}

const struct kcp_top_k_device_method kcp_top_k_by_sort = {takes_rows, bytes,   create, launch,
                                                          NULL,       certify, destroy};

/* Top-k in one read of the values: which way a batch takes, the room for it, and its launches.
 * What the kernels do and cost: top_k_select.cuh. */
#include <cmath>
#include <cstdlib>

#include "top_k_select.cuh"

static const uint64_t most_by_block = PLACE; /* k up to which one block finishes */
static const uint64_t unsampled = 32768;     /* n up to which every value survives */
/* k > n / 32: sort everything. On 2^22 values select took 0.183 ms against 0.228 for k = n / 64,
 * and 0.231 against 0.228 for k = n / 16. */
static const uint64_t sort_from = 32;
static const uint64_t longest_row = 65536; /* that one block works on */

/* How a batch is gone about. */
enum way { BY_BLOCK, BY_SORTED_SURVIVORS, BY_SORT, BY_ROWS };

struct selector {
  struct kcp_top_k_shape shape;
  enum way way; /* of the last batch */
  uint32_t key_bytes;
  uint64_t capacity;                            /* survivors */
  uint32_t finish_stage_bytes, row_stage_bytes; /* shared memory of a block */
  bool follows_closely;                         /* finish compact, and that the sample */
  uint32_t compact_blocks;                      /* that the device holds at a time */
  void *list;                                   /* samples */
  void *survivors;
  void *state, *digits;
  struct kcp_pair_arrays arrays; /* of survivors, with k > PLACE */
  void *sorter;                  /* of kcp_top_k_by_sort */
};

static enum way way_of(uint64_t k, uint64_t columns) {
  if (k <= most_by_block) return BY_BLOCK;
  return k > columns / sort_from ? BY_SORT : BY_SORTED_SURVIVORS;
}

/* The sample for a batch of one row. */
struct sample {
  uint64_t samples; /* 0: none, every value survives */
  uint64_t rank;    /* r */
};

static struct sample sample_for(uint64_t k, uint64_t n) {
  struct sample sample = {0, 0};
  if (n <= unsampled) return sample;
  uint64_t samples = n / 256;
  if (samples < 1 << 14) samples = 1 << 14;
  if (samples > 1 << 18) samples = 1 << 18;
  const double mean = (double)k * (double)samples / (double)n;
  sample.samples = samples;
  sample.rank = (uint64_t)ceil(mean + 4.3 * sqrt(mean) + 2.6);
  return sample;
}

/* Room for the survivors of a batch of one row: what the bound lets pass, with 6 standard
 * deviations and 8 samples to spare. */
static uint64_t room_for(uint64_t k, uint64_t n) {
  const struct sample sample = sample_for(k, n);
  if (sample.samples == 0) return n;
  const double rank = (double)sample.rank;
  const double room = (rank + 6 * sqrt(rank) + 8) * (double)n / (double)sample.samples;
  return room < (double)n ? (uint64_t)room : n;
}

static bool takes_rows(const struct kcp_top_k_shape *shape) {
  return shape->k <= most_by_block && shape->columns <= longest_row;
}

/* The shape of one row alone, for kcp_top_k_by_sort. */
static struct kcp_top_k_shape row_shape(const struct kcp_top_k_shape *shape) {
  struct kcp_top_k_shape row = *shape;
  row.rows = 1;
  return row;
}

/* Room for batches of up to shape->columns values in a row: shorter ones are unsampled, or have a
 * share of survivors that is no smaller. */
static uint64_t capacity_for(const struct kcp_top_k_shape *shape) {
  const uint64_t room = room_for(shape->k, shape->columns);
  const uint64_t least = shape->columns < unsampled ? shape->columns : unsampled;
  return room > least ? room : least;
}

static bool may_sort(const struct kcp_top_k_shape *shape) {
  return shape->k > most_by_block;
}

static uint64_t bytes(const struct kcp_top_k_shape *shape) {
  uint64_t total = sizeof(struct digit_state<kcp_wide_item>) + 4096;
  if (shape->rows > 1) return total;
  const uint64_t capacity = capacity_for(shape);
  total += (capacity + sample_for(shape->k, shape->columns).samples) * kcp_item_bytes(shape);
  if (way_of(shape->k, shape->columns) == BY_SORTED_SURVIVORS)
    total += capacity * 2 * (kcp_value_bytes(shape->type) + sizeof(uint32_t)) + capacity / 4 +
             (1u << 20);
  const struct kcp_top_k_shape row = row_shape(shape);
  if (may_sort(shape)) total += kcp_top_k_by_sort.bytes(&row);
  return total;
}

/* The dynamic shared memory that a kernel may have beside its own. */
template <typename Kernel>
static enum kcp_status raise_shared(Kernel kernel, uint32_t shared_bytes, uint32_t *stage_bytes,
                                    struct kcp_error *error) {
  cudaFuncAttributes attributes;
  KCP_CUDA_TRY(cudaFuncGetAttributes(&attributes, kernel));
  *stage_bytes = shared_bytes - (uint32_t)attributes.sharedSizeBytes;
  KCP_CUDA_TRY(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)*stage_bytes));
  return KCP_OK;
}

template <typename Codec>
static enum kcp_status fit_to_device(struct selector *selector, struct kcp_error *error) {
  const uint32_t shared_bytes = selector->shape.shared_bytes;
  int blocks = 0;
  KCP_TRY(kcp_can_follow_closely(compact<Codec>, &selector->follows_closely, error));
  KCP_TRY(raise_shared(finish<Codec>, shared_bytes, &selector->finish_stage_bytes, error));
  KCP_TRY(raise_shared(select_rows<Codec>, shared_bytes, &selector->row_stage_bytes, error));
  KCP_CUDA_TRY(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, compact<Codec>, COMPACT_THREADS, 0));
  selector->compact_blocks = (blocks > 0 ? blocks : 1) * selector->shape.multiprocessors;
  return KCP_OK;
}

static enum kcp_status allocate_pairs(struct selector *selector, struct kcp_device_memory *memory,
                                      struct kcp_error *error) {
  struct kcp_pair_arrays *arrays = &selector->arrays;
  size_t by_index;
  for (int copy = 0; copy < 2; ++copy) {
    KCP_TRY(kcp_device_take(memory, selector->capacity, selector->key_bytes, &arrays->keys[copy],
                            "survivors", error));
    KCP_TRY(
        kcp_device_array(memory, selector->capacity, &arrays->values[copy], "survivors", error));
  }
  KCP_TRY(
      kcp_pair_sort_bytes(selector->key_bytes, selector->capacity, &arrays->scratch_bytes, error));
  KCP_TRY(kcp_pair_sort_bytes(sizeof(uint32_t), selector->capacity, &by_index, error));
  if (by_index > arrays->scratch_bytes) arrays->scratch_bytes = by_index;
  return kcp_device_take(memory, arrays->scratch_bytes, 1, &arrays->scratch, "sorting", error);
}

static enum kcp_status allocate(struct selector *selector, struct kcp_device_memory *memory,
                                struct kcp_error *error) {
  const struct kcp_top_k_shape *shape = &selector->shape;
  const uint64_t size = kcp_item_bytes(shape);
  const struct kcp_top_k_shape row = row_shape(shape);
  if (shape->rows > 1) return KCP_OK;
  selector->capacity = capacity_for(shape);
  KCP_TRY(kcp_device_take(memory, sample_for(shape->k, shape->columns).samples, size,
                          &selector->list, "samples", error));
  KCP_TRY(
      kcp_device_take(memory, selector->capacity, size, &selector->survivors, "survivors", error));
  KCP_TRY(kcp_device_take(memory, 1, sizeof(struct select_state<kcp_wide_item>), &selector->state,
                          "selection", error));
  KCP_TRY(kcp_device_take(memory, 1, sizeof(struct digit_state<kcp_wide_item>), &selector->digits,
                          "selection", error));
  KCP_CUDA_TRY(cudaMemset(selector->state, 0, sizeof(struct select_state<kcp_wide_item>)));
  if (way_of(shape->k, shape->columns) == BY_SORTED_SURVIVORS)
    KCP_TRY(allocate_pairs(selector, memory, error));
  if (may_sort(shape)) KCP_TRY(kcp_top_k_by_sort.create(&row, memory, &selector->sorter, error));
  return KCP_OK;
}

static void destroy(void *state) {
  struct selector *selector = (struct selector *)state;
  if (selector == NULL) return;
  kcp_top_k_by_sort.destroy(selector->sorter);
  free(selector);
}

static enum kcp_status create(const struct kcp_top_k_shape *shape, struct kcp_device_memory *memory,
                              void **state, struct kcp_error *error) {
  struct selector *selector = (struct selector *)calloc(1, sizeof *selector);
  enum kcp_status status = KCP_OK;
  if (selector == NULL) return kcp_out_of_memory(error, "the search", sizeof *selector);
  selector->shape = *shape;
  selector->key_bytes = kcp_value_bytes(shape->type);
  KCP_WITH_CODEC(shape->type, status =, fit_to_device, selector, error);
  if (status == KCP_OK) status = allocate(selector, memory, error);
  if (status != KCP_OK) {
    destroy(selector);
    return status;
  }
  *state = selector;
  return KCP_OK;
}

/* A batch of one row with the types spelled out. */
template <typename Codec>
struct row_work {
  typedef typename Codec::item item;
  struct selector *selector;
  const typename Codec::raw *values;
  uint32_t n, k;
  typename Codec::raw flip;
  item limit; /* only items before it are needed */
  item *survivors;
  struct select_state<item> *state;
  const struct kcp_top_k_results *results;
  cudaStream_t stream;
};

template <typename Codec>
static row_work<Codec> work_on(struct selector *selector, const struct kcp_top_k_batch *batch,
                               const struct kcp_top_k_results *results, cudaStream_t stream) {
  typedef typename Codec::raw raw;
  typedef typename Codec::item item;
  const struct kcp_top_k_shape *shape = &selector->shape;
  const uint64_t k = shape->k < batch->columns ? shape->k : batch->columns;
  row_work<Codec> work = {selector,
                          (const raw *)batch->values,
                          (uint32_t)batch->columns,
                          (uint32_t)k,
                          (raw)kcp_direction_flip(shape->type, shape->order),
                          batch->limited
                              ? kcp_item_of<Codec>((typename Codec::key)batch->limit_key, 0)
                              : kcp_open_bound<Codec>(),
                          (item *)selector->survivors,
                          (struct select_state<item> *)selector->state,
                          results,
                          stream};
  return work;
}

/* Step 1. */
template <typename Codec>
static enum kcp_status queue_bound(const row_work<Codec> *work, struct kcp_error *error) {
  typedef typename Codec::item item;
  const struct sample sample = sample_for(work->k, work->n);
  if (sample.samples == 0) {
    set_bound<item><<<1, 1, 0, work->stream>>>(work->limit, work->state);
  } else {
    const unsigned blocks = (unsigned)((sample.samples + PLACE - 1) / PLACE);
    const struct sample_grid grid = {(uint32_t)sample.samples,
                                     ((uint64_t)work->n << 32) / sample.samples};
    sample_bound<Codec><<<blocks, BLOCK_THREADS, 0, work->stream>>>(
        work->values, grid, work->flip, (uint32_t)sample.rank, work->limit,
        (item *)work->selector->list, work->state);
  }
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

/* Step 2. */
template <typename Codec>
static enum kcp_status queue_compact(const row_work<Codec> *work, struct kcp_error *error) {
  typedef typename Codec::raw raw;
  const uint32_t past = (uint32_t)((uintptr_t)work->values % 16 / sizeof(raw));
  uint32_t head = past > 0 ? (uint32_t)(16 / sizeof(raw)) - past : 0;
  if (head > work->n) head = work->n;
  const uint64_t useful = (work->n + COMPACT_THREADS - 1) / COMPACT_THREADS;
  const uint64_t most = work->selector->compact_blocks;
  KCP_CUDA_TRY(kcp_launch_closely(
      work->selector->follows_closely, compact<Codec>, (unsigned)(useful < most ? useful : most),
      (unsigned)COMPACT_THREADS, 0, work->stream, work->values, work->n, head, work->flip,
      work->selector->capacity, work->survivors, work->state));
  return KCP_OK;
}

/* Step 3. */
template <typename Codec>
static enum kcp_status queue_finish(const row_work<Codec> *work, struct kcp_error *error) {
  const struct selector *selector = work->selector;
  const uint64_t size = sizeof(typename Codec::item), all = selector->capacity * size;
  const uint64_t stage = all < selector->finish_stage_bytes ? all : selector->finish_stage_bytes;
  KCP_CUDA_TRY(kcp_launch_closely(
      selector->follows_closely, finish<Codec>, 1u, (unsigned)BLOCK_THREADS, (size_t)stage,
      work->stream, work->n, work->k, work->limit, selector->capacity, stage / size,
      work->survivors, work->state, (typename Codec::key *)work->results->keys,
      work->results->indices, work->results->outcomes));
  return KCP_OK;
}

/* A bound that is exact enough, whatever the sample said. */
template <typename Codec>
static enum kcp_status queue_exact_bound(const row_work<Codec> *work, struct kcp_error *error) {
  typedef typename Codec::item item;
  struct digit_state<item> *digits = (struct digit_state<item> *)work->selector->digits;
  const int bits = 8 * (int)(sizeof(typename Codec::key) + sizeof(uint32_t));
  const unsigned blocks = 2 * work->selector->shape.multiprocessors;
  KCP_CUDA_TRY(cudaMemsetAsync(digits, 0, sizeof *digits, work->stream));
  for (int settled = 0; settled < bits; settled += KCP_DIGIT_BITS) {
    settle_digit<Codec><<<blocks, SETTLE_THREADS, 0, work->stream>>>(
        work->values, work->n, work->flip, work->k, (uint32_t)work->selector->capacity, work->limit,
        digits, work->state);
    KCP_CUDA_TRY(cudaGetLastError());
  }
  return KCP_OK;
}

/* Steps 1 to 3 for k <= PLACE: nothing waits for the host. */
template <typename Codec>
static enum kcp_status queue_by_block(const row_work<Codec> *work, struct kcp_error *error) {
  KCP_TRY(queue_bound(work, error));
  KCP_TRY(queue_compact(work, error));
  return queue_finish(work, error);
}

template <typename Codec>
static enum kcp_status queue_again_by_block(const row_work<Codec> *work, struct kcp_error *error) {
  KCP_TRY(queue_exact_bound(work, error));
  KCP_TRY(queue_compact(work, error));
  return queue_finish(work, error);
}

/* Reads how many survived; sets *misled as finish does. */
template <typename Codec>
static enum kcp_status read_survivors(const row_work<Codec> *work, uint32_t *count, bool *misled,
                                      struct kcp_error *error) {
  struct select_state<typename Codec::item> state;
  KCP_CUDA_TRY(
      cudaMemcpyAsync(&state, work->state, sizeof state, cudaMemcpyDeviceToHost, work->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(work->stream));
  const uint32_t valid = work->n - state.nan_count;
  *count = state.survivors;
  *misled = *count > work->selector->capacity ||
            (*count < work->k && state.bound < work->limit && *count < valid);
  return KCP_OK;
}

template <typename Codec>
static enum kcp_status sort_survivors(const row_work<Codec> *work, uint32_t count,
                                      struct kcp_error *error) {
  typedef typename Codec::key key;
  const uint32_t key_bytes = work->selector->key_bytes;
  const uint64_t taken = count < work->k ? count : work->k;
  struct kcp_pair_arrays *arrays = &work->selector->arrays;
  const unsigned blocks = (count + SPLIT_THREADS - 1) / SPLIT_THREADS;
  if (count == 0) return KCP_OK;
  take_indices<<<blocks, SPLIT_THREADS, 0, work->stream>>>(work->survivors, count,
                                                           arrays->values[0]);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_TRY(kcp_sort_values(arrays, count, kcp_bits_of(work->n), work->stream, error));
  gather_keys<Codec><<<blocks, SPLIT_THREADS, 0, work->stream>>>(
      work->values, work->flip, arrays->values[0], count, (key *)arrays->keys[0]);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_TRY(kcp_sort_pairs(arrays, key_bytes, count, (int)(8 * key_bytes), work->stream, error));
  KCP_CUDA_TRY(cudaMemcpyAsync(work->results->keys, arrays->keys[0], taken * key_bytes,
                               cudaMemcpyDeviceToDevice, work->stream));
  KCP_CUDA_TRY(cudaMemcpyAsync(work->results->indices, arrays->values[0], taken * sizeof(uint32_t),
                               cudaMemcpyDeviceToDevice, work->stream));
  return KCP_OK;
}

/* The same for larger k: the host waits to learn how many survivors there are to sort. */
template <typename Codec>
static enum kcp_status queue_by_sorted_survivors(const row_work<Codec> *work,
                                                 struct kcp_error *error) {
  uint32_t count;
  bool misled;
  KCP_TRY(queue_bound(work, error));
  KCP_TRY(queue_compact(work, error));
  KCP_TRY(read_survivors(work, &count, &misled, error));
  if (misled) {
    KCP_CUDA_TRY(cudaMemsetAsync(work->state, 0, sizeof *work->state, work->stream));
    KCP_TRY(queue_exact_bound(work, error));
    KCP_TRY(queue_compact(work, error));
    KCP_TRY(read_survivors(work, &count, &misled, error));
  }
  KCP_TRY(sort_survivors(work, count, error));
  conclude<Codec>
      <<<1, 1, 0, work->stream>>>((const typename Codec::key *)work->selector->arrays.keys[0],
                                  work->k, work->state, work->results->outcomes);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

template <typename Codec>
static enum kcp_status queue_rows(struct selector *selector, const struct kcp_top_k_batch *batch,
                                  const struct kcp_top_k_results *results, cudaStream_t stream,
                                  struct kcp_error *error) {
  typedef typename Codec::raw raw;
  typedef typename Codec::key key;
  const struct kcp_top_k_shape *shape = &selector->shape;
  const uint64_t all = (batch->columns * sizeof(key) + 15) / 16 * 16;
  const uint64_t stage = all < selector->row_stage_bytes ? all : 0; /* none but whole rows */
  const uint64_t most = 2ull * shape->multiprocessors;
  KCP_CUDA_TRY(
      cudaMemsetAsync(results->outcomes, 0, batch->rows * sizeof *results->outcomes, stream));
  select_rows<Codec><<<(unsigned)(batch->rows < most ? batch->rows : most), BLOCK_THREADS,
                       (size_t)stage, stream>>>(
      (const raw *)batch->values, (uint32_t)batch->rows, (uint32_t)batch->columns,
      (raw)kcp_direction_flip(shape->type, shape->order), (uint32_t)shape->k,
      (uint32_t)(stage / sizeof(key)), (key *)results->keys, results->indices, results->outcomes);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

template <typename Codec>
static enum kcp_status queue(struct selector *selector, const struct kcp_top_k_batch *batch,
                             const struct kcp_top_k_results *results, cudaStream_t stream,
                             struct kcp_error *error) {
  const row_work<Codec> work = work_on<Codec>(selector, batch, results, stream);
  selector->way = selector->shape.rows > 1 ? BY_ROWS : way_of(work.k, work.n);
  switch (selector->way) {
    case BY_ROWS: return queue_rows<Codec>(selector, batch, results, stream, error);
    case BY_BLOCK: return queue_by_block(&work, error);
    case BY_SORTED_SURVIVORS: return queue_by_sorted_survivors(&work, error);
    default: return kcp_top_k_by_sort.launch(selector->sorter, batch, results, stream, error);
  }
}

static enum kcp_status launch(void *state, const struct kcp_top_k_batch *batch,
                              const struct kcp_top_k_results *results, cudaStream_t stream,
                              struct kcp_error *error) {
  struct selector *selector = (struct selector *)state;
  KCP_WITH_CODEC(selector->shape.type, return, queue, selector, batch, results, stream, error);
  return KCP_OK;
}

template <typename Codec>
static enum kcp_status queue_again(struct selector *selector, const struct kcp_top_k_batch *batch,
                                   const struct kcp_top_k_results *results, cudaStream_t stream,
                                   struct kcp_error *error) {
  const row_work<Codec> work = work_on<Codec>(selector, batch, results, stream);
  return queue_again_by_block(&work, error);
}

static enum kcp_status relaunch(void *state, const struct kcp_top_k_batch *batch,
                                const struct kcp_top_k_results *results, cudaStream_t stream,
                                struct kcp_error *error) {
  struct selector *selector = (struct selector *)state;
  KCP_WITH_CODEC(selector->shape.type, return, queue_again, selector, batch, results, stream,
                 error);
  return KCP_OK;
}

/* The other ways counted the equal values as they went. */
static enum kcp_status certify(void *state, const struct kcp_top_k_batch *batch,
                               const struct kcp_top_k_results *results, cudaStream_t stream,
                               struct kcp_error *error) {
  struct selector *selector = (struct selector *)state;
  if (selector->way != BY_SORT) return KCP_OK;
  return kcp_count_equal(&selector->shape, batch, results, stream, error);
}

const struct kcp_top_k_device_method kcp_top_k_by_select = {takes_rows, bytes,   create, launch,
                                                            relaunch,   certify, destroy};

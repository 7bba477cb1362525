/* The paper's bitonic top-k: values are sorted into runs of K (the power of two from k on) by a
 * bitonic network; two runs are merged by keeping the earlier of each pair (i, K - 1 - i), which
 * leaves the first K of both as a bitonic sequence, and that is rebuilt (sorted) in log2 K steps;
 * until one run a row is left.
 *
 * K <= 1,024 (the paper's range): `merge_stretch` has 512 threads and a tile of 1,024 items a
 * block, two blocks a multiprocessor, each on a stretch of a row. Neighbours are compared in
 * registers, items less than 64 apart by shuffles, others through shared memory; no branch depends
 * on a value. A block keeps its first K so far; values behind its k-th do not enter a tile, so that
 * most batches of 8,192 values cost a comparison each. `merge_runs` merges the blocks' runs, 2
 * tiles a block, until one is left. Memory: K items a block (8 or 16 bytes each), twice; shared:
 * 2,048 items. Cost: one read of the values; log2 K (log2 K + 1) / 2 + log2(tile / K) (1 + log2 K)
 * steps for each tile of values that pass: about K ln(n / K) values a block in random order, all of
 * them when the best come last.
 *
 * K > 1,024 (the paper's future work): several blocks work on each step over the whole row. Steps
 * of a distance from 1,024 on are a launch each over memory, the others are done tile by tile.
 * Memory: n items, padded to whole runs. Cost: (log2 K)^2 / 2 steps of 2 * 8 or 16 bytes an item,
 * of which those within a tile are one pass together.
 *
 * History: 1. every value through the network: 98 instructions a value at k = 64, arithmetic-bound.
 * 2. values behind the block's k-th left out: 0.527 ms at n = 2^28, k = 64. 3. only warps with
 * values that pass do more than compare, the k-th is renewed after 4 runs, runs are merged by more
 * blocks. Measured: see docs/results/top-k-h200.md. */
#include <cstdlib>

#include "block_order.cuh"
#include "top_k.cuh"

enum {
  THREADS = 512,
  TILE = 2 * THREADS,
  EACH_BYTES = 64,   /* that a thread reads at a time */
  RUNS_A_TURN = 4,   /* that make a tile worth taking */
  TILES_A_BLOCK = 2, /* of sorted runs, in merge_runs */
  STEP_THREADS = 256
};

/* Merges the tile, sorted runs of `run` items, into the best run. x holds the tile, in which the
 * first `filled` items (a power of two times `run`) are all there are. */
template <typename Item>
__device__ static void absorb(Item (&x)[2], uint32_t filled, uint32_t run, Item *tile, Item *best) {
  const uint32_t first = 2 * threadIdx.x;
  for (uint32_t active = filled; active > run; active /= 2) {
    kcp_network_step(x, 2 * run - 1, run, tile, kcp_whole_block());
    __syncthreads();
    if (first < active && (first & run) == 0) {
      const uint32_t to = first / (2 * run) * run + (first & (run - 1));
      tile[to] = x[0];
      tile[to + 1] = x[1];
    }
    __syncthreads();
    for (int e = 0; e < 2; ++e)
      x[e] = first < active / 2 ? tile[first + e] : kcp_padding_item<Item>();
    kcp_rebuild(x, run, tile, kcp_whole_block());
  }
  for (int e = 0; e < 2; ++e)
    if (first < run && best[run - 1 - first - e] < x[e]) x[e] = best[run - 1 - first - e];
  kcp_rebuild(x, run, tile, kcp_whole_block());
  __syncthreads();
  for (int e = 0; e < 2; ++e)
    if (first < run) best[first + e] = x[e];
  __syncthreads();
}

/* Sorts the `queued` items of the tile and merges them into the best. */
template <typename Item>
__device__ static void take_tile(uint32_t queued, uint32_t run, Item *tile, Item *best) {
  Item x[2];
  for (int e = 0; e < 2; ++e) {
    const uint32_t i = 2 * threadIdx.x + e;
    x[e] = i < queued ? tile[i] : kcp_padding_item<Item>();
  }
  kcp_sort_runs(x, run, tile, kcp_whole_block());
  uint32_t filled = run;
  while (filled < queued) filled *= 2;
  absorb(x, filled, run, tile, best);
}

/* The first `run` items of each stretch of a row: block b has part b % parts of row b / parts. */
template <typename Codec>
__global__ static __launch_bounds__(THREADS, 2) void merge_stretch(
    const typename Codec::raw *values, uint32_t columns, uint32_t stretch, uint32_t parts,
    typename Codec::raw flip, uint32_t k, uint32_t run, typename Codec::item *runs,
    struct kcp_row_outcome *outcomes) {
  typedef typename Codec::raw raw;
  typedef typename Codec::native native;
  typedef typename Codec::item item;
  __shared__ item tile[TILE], best[TILE];
  __shared__ uint32_t queued;
  const uint32_t row = blockIdx.x / parts, part = blockIdx.x % parts;
  constexpr int EACH = EACH_BYTES / sizeof(raw), BATCH = THREADS * EACH;
  const raw *from = values + (uint64_t)row * columns;
  const uint32_t start = part * stretch;
  const uint32_t end = columns - start < stretch ? columns : start + stretch;
  native limit = Codec::native_of(Codec::last_key);
  uint32_t limit_index = UINT32_MAX, nan_count = 0;
  for (uint32_t i = threadIdx.x; i < TILE; i += THREADS) best[i] = kcp_padding_item<item>();
  if (threadIdx.x == 0) queued = 0;
  const uint32_t enough = run < TILE / RUNS_A_TURN ? RUNS_A_TURN * run : TILE;
  __syncthreads();

  for (uint32_t base = start;; base += BATCH) {
    const bool over = base >= end; /* then what is left in the tile is taken */
    const uint32_t mine = base + threadIdx.x;
    raw v[EACH] = {};
    uint32_t passing = 0;
    if (!over) {
      bool behind = end - base >= BATCH;
      if (behind) {
#pragma unroll
        for (int e = 0; e < EACH; ++e) v[e] = __ldcs(from + mine + e * THREADS);
#pragma unroll
        for (int e = 0; e < EACH; ++e) behind &= Codec::directed(v[e], flip) > limit;
      } else {
#pragma unroll
        for (int e = 0; e < EACH; ++e)
          v[e] = mine + e * THREADS < end ? from[mine + e * THREADS] : 0;
      }
      if (!behind) {
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
          const native value = Codec::directed(v[e], flip);
          const uint32_t i = mine + e * THREADS;
          const bool passes = value < limit || (value == limit && i < limit_index);
          if (i < end && passes) passing |= 1u << e;
          if (i < end && kcp_is_nan(value)) ++nan_count;
        }
      }
    }
    for (;;) {
      if (__any_sync(KCP_WHOLE_WARP, passing != 0)) {
        uint32_t at = kcp_warp_reserve(&queued, __popc(passing));
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
          if ((passing >> e & 1) == 0) continue;
          if (at < TILE) {
            tile[at] =
                kcp_item_of<Codec>(Codec::key_of(Codec::directed(v[e], flip)), mine + e * THREADS);
            passing &= ~(1u << e);
          }
          ++at;
        }
      }
      const uint32_t waiting = threadIdx.x == 0 ? atomicAdd(&queued, 0u) : 0;
      const bool wants_turn = waiting >= enough || (over && waiting > 0);
      if (!__syncthreads_or(passing != 0 || wants_turn)) break;
      const uint32_t in_tile = queued < TILE ? queued : TILE;
      __syncthreads();
      if (threadIdx.x == 0) queued = 0;
      take_tile<item>(in_tile, run, tile, best);
      const item last = best[k - 1];
      if (last == kcp_padding_item<item>()) continue;
      limit = Codec::native_of(kcp_key_of_item<Codec>(last));
      limit_index = (uint32_t)last;
#pragma unroll
      for (int e = 0; e < EACH; ++e) {
        const native value = Codec::directed(v[e], flip);
        const bool passes = value < limit || (value == limit && mine + e * THREADS < limit_index);
        if (!passes) passing &= ~(1u << e);
      }
    }
    if (over) break;
  }
  nan_count = kcp_warp_sum(nan_count);
  if (threadIdx.x % 32 == 0 && nan_count > 0)
    atomicAdd(&outcomes[row].nan_count, (unsigned long long)nan_count);
  for (uint32_t i = threadIdx.x; i < run; i += THREADS)
    runs[(uint64_t)blockIdx.x * run + i] = best[i];
}

/* Merges the sorted runs of each row, `fan` of them a block: block b has group b % groups of row
 * b / groups. */
template <typename Item>
__global__ static __launch_bounds__(THREADS) void merge_runs(const Item *runs, uint32_t runs_a_row,
                                                             uint32_t fan, uint32_t groups,
                                                             uint32_t run, Item *merged) {
  __shared__ Item tile[TILE], best[TILE];
  const uint32_t row = blockIdx.x / groups, group = blockIdx.x % groups;
  const uint32_t start = group * fan;
  const uint32_t end = runs_a_row - start < fan ? runs_a_row : start + fan;
  const Item *from = runs + (uint64_t)row * runs_a_row * run;
  for (uint32_t i = threadIdx.x; i < TILE; i += THREADS) best[i] = kcp_padding_item<Item>();
  __syncthreads();
  for (uint32_t base = start; base < end; base += TILE / run) {
    Item x[2];
    for (int e = 0; e < 2; ++e) {
      const uint32_t i = 2 * threadIdx.x + e;
      x[e] = base + i / run < end ? from[(uint64_t)base * run + i] : kcp_padding_item<Item>();
    }
    absorb(x, (uint32_t)TILE, run, tile, best);
  }
  for (uint32_t i = threadIdx.x; i < run; i += THREADS)
    merged[(uint64_t)blockIdx.x * run + i] = best[i];
}

/* The results from one run a row. */
template <typename Codec>
__global__ static void take_runs(const typename Codec::item *runs, uint64_t run, uint32_t rows,
                                 uint32_t columns, uint32_t width, typename Codec::key *keys,
                                 uint32_t *indices, struct kcp_row_outcome *outcomes) {
  const uint32_t place = blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= rows * width) return;
  const uint32_t row = place / width, j = place % width;
  const typename Codec::item item = runs[row * run + j];
  keys[place] = kcp_key_of_item<Codec>(item);
  indices[place] = (uint32_t)item;
  if (j > 0) return;
  const unsigned long long valid = columns - outcomes[row].nan_count;
  outcomes[row].count = valid < width ? valid : width;
}

/* Several blocks: the items of one row, padded. */
template <typename Codec>
__global__ static void load_items(const typename Codec::raw *values, uint32_t columns,
                                  typename Codec::raw flip, uint64_t padded,
                                  typename Codec::item *items, struct kcp_row_outcome *outcomes) {
  const uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  bool is_nan = false;
  typename Codec::item item = kcp_padding_item<typename Codec::item>();
  if (i < columns) {
    const typename Codec::native value = Codec::directed(values[i], flip);
    is_nan = kcp_is_nan(value);
    if (!is_nan) item = kcp_item_of<Codec>(Codec::key_of(value), (uint32_t)i);
  }
  const unsigned lanes = __ballot_sync(KCP_WHOLE_WARP, is_nan);
  if (threadIdx.x % 32 == 0 && lanes != 0)
    atomicAdd(&outcomes->nan_count, (unsigned long long)__popc(lanes));
  if (i < padded) items[i] = item;
}

/* Where item i of the runs at work lies: only one run in `spacing / run` is. */
__device__ static uint64_t place_of(uint64_t i, uint64_t run, uint64_t spacing) {
  return i / run * spacing + i % run;
}

/* Sorts tiles, or rebuilds them. */
enum tile_work { SORT_TILES, REBUILD_TILES };
template <typename Item, enum tile_work WORK>
__global__ static __launch_bounds__(THREADS) void work_on_tiles(Item *items, uint64_t run,
                                                                uint64_t spacing) {
  __shared__ Item tile[TILE];
  Item *at = items + place_of((uint64_t)blockIdx.x * TILE + 2 * threadIdx.x, run, spacing);
  Item x[2] = {at[0], at[1]};
  if (WORK == SORT_TILES)
    kcp_sort_runs(x, TILE, tile, kcp_whole_block());
  else
    kcp_rebuild(x, TILE, tile, kcp_whole_block());
  at[0] = x[0];
  at[1] = x[1];
}

/* One step of the network over memory. */
template <typename Item>
__global__ static void step_in_memory(Item *items, uint64_t pairs, uint64_t mask, uint64_t top,
                                      uint64_t run, uint64_t spacing) {
  const uint64_t pair = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (pair >= pairs) return;
  const uint64_t i = (pair & ~(top - 1)) << 1 | (pair & (top - 1));
  Item *a = items + place_of(i, run, spacing), *b = items + place_of(i ^ mask, run, spacing);
  const Item x = *a, y = *b;
  *a = x < y ? x : y;
  *b = x < y ? y : x;
}

/* Keeps the earlier items of each two runs in the first of them; run r + gap is merged into r. */
template <typename Item>
__global__ static void keep_earlier(Item *items, uint64_t count, uint64_t run, uint64_t gap,
                                    uint64_t runs) {
  const uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const uint64_t r = i / run * 2 * gap, j = i % run;
  if (r + gap >= runs) return;
  Item *kept = items + r * run + j;
  const Item other = items[(r + gap) * run + (run - 1 - j)];
  if (other < *kept) *kept = other;
}

struct merger {
  struct kcp_top_k_shape shape;
  uint64_t run;   /* K */
  void *items[2]; /* runs; with long runs all items in the first */
};

static uint64_t run_length(uint64_t k) {
  uint64_t run = 2;
  while (run < k) run *= 2;
  return run;
}

/* How a row is cut: as many parts as fill the device, whole batches each. */
struct cut {
  uint32_t stretch, parts;
};

static uint64_t batch_values(const struct kcp_top_k_shape *shape) {
  return THREADS * EACH_BYTES / kcp_value_bytes(shape->type);
}

static struct cut cut_of(const struct kcp_top_k_shape *shape, uint64_t rows, uint64_t columns) {
  const uint64_t wanted = (2ull * shape->multiprocessors + rows - 1) / rows;
  const uint64_t batch = batch_values(shape);
  uint64_t stretch = (columns + wanted - 1) / wanted;
  stretch = (stretch + batch - 1) / batch * batch;
  const struct cut cut = {(uint32_t)stretch, (uint32_t)((columns + stretch - 1) / stretch)};
  return cut;
}

static bool takes_rows(const struct kcp_top_k_shape *shape) {
  return run_length(shape->k) <= TILE;
}

/* Items of the first buffer. The last batch may have fewer rows, cut into more parts, but no part
 * is shorter than a batch of a block. */
static uint64_t item_count(const struct kcp_top_k_shape *shape) {
  const uint64_t run = run_length(shape->k);
  if (run > TILE) return (shape->columns + run - 1) / run * run;
  const uint64_t longest =
      shape->rows * ((shape->columns + batch_values(shape) - 1) / batch_values(shape));
  const uint64_t most = shape->rows + 2ull * shape->multiprocessors;
  return run * (longest < most ? longest : most);
}

static uint64_t bytes(const struct kcp_top_k_shape *shape) {
  return item_count(shape) * kcp_item_bytes(shape) * (takes_rows(shape) ? 2 : 1);
}

static enum kcp_status create(const struct kcp_top_k_shape *shape, struct kcp_device_memory *memory,
                              void **state, struct kcp_error *error) {
  struct merger made = {*shape, run_length(shape->k), {NULL, NULL}};
  const int buffers = takes_rows(shape) ? 2 : 1;
  for (int buffer = 0; buffer < buffers; ++buffer)
    KCP_TRY(kcp_device_take(memory, item_count(shape), kcp_item_bytes(shape), &made.items[buffer],
                            "bitonic runs", error));
  struct merger *merger = (struct merger *)malloc(sizeof *merger);
  if (merger == NULL) return kcp_out_of_memory(error, "the search", sizeof *merger);
  *merger = made;
  *state = merger;
  return KCP_OK;
}

static unsigned step_blocks(uint64_t count) {
  return (unsigned)((count + STEP_THREADS - 1) / STEP_THREADS);
}

/* Runs of at most a tile. Leaves the final runs in *merged. */
template <typename Codec>
static enum kcp_status queue_short(struct merger *merger, const struct kcp_top_k_batch *batch,
                                   uint32_t k, const struct kcp_top_k_results *results,
                                   const typename Codec::item **merged, cudaStream_t stream,
                                   struct kcp_error *error) {
  typedef typename Codec::raw raw;
  typedef typename Codec::item item;
  const struct kcp_top_k_shape *shape = &merger->shape;
  const uint32_t run = (uint32_t)merger->run, fan = TILES_A_BLOCK * TILE / run;
  const struct cut cut = cut_of(shape, batch->rows, batch->columns);
  item *runs = (item *)merger->items[0], *other = (item *)merger->items[1];
  merge_stretch<Codec><<<(unsigned)batch->rows * cut.parts, THREADS, 0, stream>>>(
      (const raw *)batch->values, (uint32_t)batch->columns, cut.stretch, cut.parts,
      (raw)kcp_direction_flip(shape->type, shape->order), k, run, runs, results->outcomes);
  KCP_CUDA_TRY(cudaGetLastError());
  for (uint32_t left = cut.parts; left > 1;) {
    const uint32_t groups = (left + fan - 1) / fan;
    merge_runs<item><<<(unsigned)batch->rows * groups, THREADS, 0, stream>>>(runs, left, fan,
                                                                             groups, run, other);
    KCP_CUDA_TRY(cudaGetLastError());
    item *swapped = runs;
    runs = other;
    other = swapped;
    left = groups;
  }
  *merged = runs;
  return KCP_OK;
}

/* The steps of a network over runs that are `spacing` apart. */
template <typename Item>
struct network {
  Item *items;
  uint64_t count; /* items at work, whole runs */
  uint64_t run, spacing;
  cudaStream_t stream;
};

template <typename Item>
static enum kcp_status queue_step(const struct network<Item> *network, uint64_t mask, uint64_t top,
                                  struct kcp_error *error) {
  const uint64_t pairs = network->count / 2;
  step_in_memory<Item><<<step_blocks(pairs), STEP_THREADS, 0, network->stream>>>(
      network->items, pairs, mask, top, network->run, network->spacing);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

template <typename Item>
static enum kcp_status queue_rebuild(const struct network<Item> *network, uint64_t length,
                                     struct kcp_error *error) {
  for (uint64_t stride = length / 2; stride >= TILE; stride /= 2)
    KCP_TRY(queue_step(network, stride, stride, error));
  work_on_tiles<Item, REBUILD_TILES>
      <<<(unsigned)(network->count / TILE), THREADS, 0, network->stream>>>(
          network->items, network->run, network->spacing);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

/* Runs of more than a tile, of one row. */
template <typename Codec>
static enum kcp_status queue_long(struct merger *merger, const struct kcp_top_k_batch *batch,
                                  const struct kcp_top_k_results *results, cudaStream_t stream,
                                  struct kcp_error *error) {
  typedef typename Codec::raw raw;
  typedef typename Codec::item item;
  const struct kcp_top_k_shape *shape = &merger->shape;
  const uint64_t run = merger->run, runs = (batch->columns + run - 1) / run;
  item *items = (item *)merger->items[0];
  struct network<item> network = {
    items, runs *run, run, run, stream
  };
  load_items<Codec><<<step_blocks(runs * run), STEP_THREADS, 0, stream>>>(
      (const raw *)batch->values, (uint32_t)batch->columns,
      (raw)kcp_direction_flip(shape->type, shape->order), runs * run, items, results->outcomes);
  KCP_CUDA_TRY(cudaGetLastError());
  work_on_tiles<item, SORT_TILES>
      <<<(unsigned)(runs * run / TILE), THREADS, 0, stream>>>(items, run, run);
  KCP_CUDA_TRY(cudaGetLastError());
  for (uint64_t size = 2 * TILE; size <= run; size *= 2) {
    KCP_TRY(queue_step(&network, size - 1, size / 2, error));
    KCP_TRY(queue_rebuild(&network, size / 2, error));
  }
  for (uint64_t gap = 1; gap < runs; gap *= 2) {
    const uint64_t kept = (runs + 2 * gap - 1) / (2 * gap);
    network.count = kept * run;
    network.spacing = 2 * gap * run;
    keep_earlier<item><<<step_blocks(network.count), STEP_THREADS, 0, stream>>>(
        items, network.count, run, gap, runs);
    KCP_CUDA_TRY(cudaGetLastError());
    KCP_TRY(queue_rebuild(&network, run, error));
  }
  return KCP_OK;
}

template <typename Codec>
static enum kcp_status queue(struct merger *merger, const struct kcp_top_k_batch *batch,
                             const struct kcp_top_k_results *results, cudaStream_t stream,
                             struct kcp_error *error) {
  typedef typename Codec::item item;
  const uint64_t width = merger->shape.k < batch->columns ? merger->shape.k : batch->columns;
  const item *runs = (const item *)merger->items[0];
  KCP_CUDA_TRY(
      cudaMemsetAsync(results->outcomes, 0, batch->rows * sizeof *results->outcomes, stream));
  if (merger->run <= TILE)
    KCP_TRY(queue_short<Codec>(merger, batch, (uint32_t)merger->shape.k, results, &runs, stream,
                               error));
  else
    KCP_TRY(queue_long<Codec>(merger, batch, results, stream, error));
  take_runs<Codec><<<step_blocks(batch->rows * width), STEP_THREADS, 0, stream>>>(
      runs, merger->run, (uint32_t)batch->rows, (uint32_t)batch->columns, (uint32_t)width,
      (typename Codec::key *)results->keys, results->indices, results->outcomes);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

static enum kcp_status launch(void *state, const struct kcp_top_k_batch *batch,
                              const struct kcp_top_k_results *results, cudaStream_t stream,
                              struct kcp_error *error) {
  struct merger *merger = (struct merger *)state;
  KCP_WITH_CODEC(merger->shape.type, return, queue, merger, batch, results, stream, error);
  return KCP_OK;
}

static enum kcp_status certify(void *state, const struct kcp_top_k_batch *batch,
                               const struct kcp_top_k_results *results, cudaStream_t stream,
                               struct kcp_error *error) {
  return kcp_count_equal(&((struct merger *)state)->shape, batch, results, stream, error);
}

static void destroy(void *state) {
  free(state);
}

const struct kcp_top_k_device_method kcp_top_k_by_bitonic = {takes_rows, bytes,   create, launch,
                                                             NULL,       certify, destroy};

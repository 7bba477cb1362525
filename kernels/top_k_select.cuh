/* The kernels of top-k in one read of the values.
 *
 * 1. sample_bound: blocks of 1,024 threads read one value of each of s slices (s = n / 256, from
 *    2^14 to 2^18; at a place that is random within its slice, so that neither order nor period of
 *    the data matters), each block keeps its first r or a few more, and the last block to finish
 *    selects the r-th of all: the bound. r is as far as the first k values reach into the sample,
 *    with so much to spare that the bound is short of k for one array in 80,000 (the tail of the
 *    Poisson distribution at r).
 * 2. compact: every warp reads tiles of 2 KiB (four 16-byte loads a lane in flight), compares, and
 *    appends the items before the bound. One compare a value where no value passes. Ties are no
 *    exception: a bound is an item, a value with an index, so that of equal values the lower
 *    indices pass. Values equal to the bound's and NaN are counted on the way.
 * 3. finish: one block narrows the survivors, about r n / s of them, to at most 2,048 by radix
 *    digits in shared memory, these to a run that k just fits into, sorts that and counts what the
 *    certificate needs.
 * The kernels follow closely (device.cuh): while the last block of 1 is at work, the first tiles of
 * 2 are on their way to the cache. Should fewer than k have passed, or more than there is room for,
 * the host asks once more: settle_digit then finds an exact bound by radix digits, 11 bits a read
 * of the values, without the host, and 2 and 3 are run again.
 *
 * k > 2,048: the same bound and compaction; the survivors are sorted by CUB (their indices, then
 * the keys of these stably). k > n / 32: everything is sorted. Rows of up to 65,536 values: a block
 * a row does step 3 on the row itself, held in shared memory where it fits.
 *
 * Launch geometry: 1,024 threads a block and s / 2,048 blocks; 512 threads and as many blocks as
 * the device holds at a time; 1 block of 1,024. Memory: room for survivors, (r + 6 sqrt(r) + 8) n /
 * s items of 8 or 16 bytes. Cost: bytes of the values once, 32 bytes (a sector) for each sample,
 * about 3 passes over the survivors in shared memory and log2 K (log2 K + 1) / 2 steps of a sorting
 * network of K, the power of two from k on.
 *
 * History (n = 2^28, k = 64): 1. sample sorted by one block, survivors sorted by one block: 0.15 ms
 * beside the read. 2. sample selected by many blocks, survivors by radix digits: 0.279 ms, of which
 * 33 us for the sample and 19 us to finish; but 5.1 ms on equal values, as the bound was the end of
 * a radix bucket in a list that lacked most items of that bucket. 3. the bound is an item; fewer
 * barriers, only what is needed is sorted, kernels overlap. Measured: see
 * docs/results/top-k-h200.md. */
#ifndef KCP_KERNELS_TOP_K_SELECT_CUH
#define KCP_KERNELS_TOP_K_SELECT_CUH

#include "block_order.cuh"
#include "kcp/random.h"
#include "top_k.cuh"

enum {
  BLOCK_THREADS = 1024,
  PLACE = 2 * BLOCK_THREADS, /* items that a block sorts */
  COMPACT_THREADS = 512,
  VECTORS = 4, /* of 16 bytes, in flight in a thread */
  AHEAD = 2,   /* tiles of a warp that are on their way to the cache before the bound is known */
  LINE = 128,
  TILE_LINES = 32 * VECTORS * 16 / LINE,
  SETTLE_THREADS = 512,
  SPLIT_THREADS = 256
};
static const uint64_t share_of_one_block = 1024; /* r up to which blocks leave out samples */

/* Shared by the kernels of a launch; all zero in between, but for the bound. */
template <typename Item>
struct select_state {
  Item bound; /* items before it survive */
  uint32_t listed, sampled_blocks;
  uint32_t survivors, equal, nan_count; /* equal: values with the bound's key */
};

/* How samples lie in the values: one in each slice. */
struct sample_grid {
  uint32_t samples;
  uint64_t slice; /* values of a slice in 2^-32 */
};

/* Where sample s lies: at random in its slice. */
__device__ static uint32_t place_of_sample(const struct sample_grid &grid, uint64_t s) {
  const uint32_t start = (uint32_t)(s * grid.slice >> 32);
  const uint32_t end = (uint32_t)((s + 1) * grid.slice >> 32);
  const uint64_t random = kcp_random_words(0, 0, s, 0).word[0];
  return start + (uint32_t)(random * (end - start) >> 32);
}

/* The bound from the list of all blocks: behind the item of rank `wanted`. What the blocks left out
 * is behind that too, but not behind every bound that so many of the list are before. */
template <typename Item, typename Source>
__device__ static Item bound_of_list(const Source &list, uint32_t listed, uint32_t wanted,
                                     kcp_order_space<Item> &space) {
  const Item loose = kcp_narrow(list, listed, wanted, wanted, space);
  return kcp_last_before(list, listed, loose, space) + 1;
}

/* Step 1. */
template <typename Codec>
__global__ static __launch_bounds__(BLOCK_THREADS) void sample_bound(
    const typename Codec::raw *values, struct sample_grid grid, typename Codec::raw flip,
    uint32_t wanted, typename Codec::item limit, typename Codec::item *list,
    struct select_state<typename Codec::item> *state) {
  typedef typename Codec::item item;
  __shared__ item place[PLACE];
  __shared__ kcp_order_space<item> space;
  __shared__ bool is_last;
  __shared__ uint32_t taken, list_start, listed;
  kcp_let_next_start();
  const uint32_t first = blockIdx.x * PLACE;
  const uint32_t here = grid.samples - first < PLACE ? grid.samples - first : PLACE;
  for (uint32_t i = threadIdx.x; i < here; i += BLOCK_THREADS) {
    const uint32_t at = place_of_sample(grid, first + i);
    place[i] = kcp_item_of<Codec>(Codec::key_of(Codec::directed(values[at], flip)), at);
  }
  if (threadIdx.x == 0) taken = here;
  __syncthreads();
  if (wanted <= share_of_one_block && wanted < here) {
    const kcp_plain_source<item> mine = {place};
    kcp_keep(place, here, kcp_narrow(mine, here, wanted, 2 * wanted, space), &taken);
  }
  if (threadIdx.x == 0) list_start = atomicAdd(&state->listed, taken);
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < taken; i += BLOCK_THREADS) list[list_start + i] = place[i];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    is_last = atomicAdd(&state->sampled_blocks, 1u) == gridDim.x - 1;
    __threadfence();
    listed = atomicAdd(&state->listed, 0u);
  }
  __syncthreads();
  if (!is_last) return;

  __threadfence();
  const kcp_fenced_source<item> all = {list};
  item bound;
  if (listed <= PLACE) {
    for (uint32_t i = threadIdx.x; i < listed; i += BLOCK_THREADS) place[i] = all(i);
    __syncthreads();
    const kcp_plain_source<item> staged = {place};
    bound = bound_of_list(staged, listed, wanted, space);
  } else {
    bound = bound_of_list(all, listed, wanted, space);
  }
  if (threadIdx.x == 0) state->bound = bound < limit ? bound : limit;
}

template <typename Item>
__global__ static void set_bound(Item bound, struct select_state<Item> *state) {
  state->bound = bound;
}

/* The bound in the terms of the values. */
template <typename Codec>
struct native_bound {
  typename Codec::native value;
  uint32_t index; /* of equal values, lower indices are before the bound */
};

/* What a thread of `compact` counts. */
struct tally {
  uint32_t equal, nan_count;
};

/* Warp: values v[e] with indices first + e % PER + e / PER * stride, those with e < count, of which
 * some are not behind the bound: counts, and appends those before it. */
template <typename Codec, int COUNT, int PER>
__device__ static void take(const typename Codec::raw (&v)[COUNT], uint32_t count, uint32_t first,
                            uint32_t stride, typename Codec::raw flip,
                            const native_bound<Codec> &bound, uint32_t capacity,
                            typename Codec::item *survivors,
                            struct select_state<typename Codec::item> *state, tally &tally) {
  uint32_t passing = 0;
#pragma unroll
  for (int e = 0; e < COUNT; ++e) {
    const typename Codec::native value = Codec::directed(v[e], flip);
    const bool counts = e < (int)count, equals = value == bound.value;
    const uint32_t index = first + e % PER + e / PER * stride;
    if (counts && equals) ++tally.equal;
    if (counts && kcp_is_nan(value)) ++tally.nan_count;
    if (counts && (value < bound.value || (equals && index < bound.index))) passing |= 1u << e;
  }
  if (!__any_sync(KCP_WHOLE_WARP, passing != 0)) return;
  uint32_t at = kcp_warp_reserve(&state->survivors, __popc(passing));
#pragma unroll
  for (int e = 0; e < COUNT; ++e) {
    if ((passing >> e & 1) == 0) continue;
    const uint32_t index = first + e % PER + e / PER * stride;
    if (at < capacity)
      survivors[at] = kcp_item_of<Codec>(Codec::key_of(Codec::directed(v[e], flip)), index);
    ++at;
  }
}

/* Loads 16 bytes that are read once. */
__device__ static void load_vector(const uint32_t *from, uint32_t (&v)[16], int at) {
  const uint4 loaded = __ldcs((const uint4 *)from);
  v[at] = loaded.x;
  v[at + 1] = loaded.y;
  v[at + 2] = loaded.z;
  v[at + 3] = loaded.w;
}

__device__ static void load_vector(const uint64_t *from, uint64_t (&v)[8], int at) {
  const ulonglong2 loaded = __ldcs((const ulonglong2 *)from);
  v[at] = loaded.x;
  v[at + 1] = loaded.y;
}

/* Step 2. The first `head` values lie before an address that is a multiple of 16. Its blocks start
 * as soon as those of step 1 leave them room. */
template <typename Codec>
__global__ static __launch_bounds__(COMPACT_THREADS, 2) void compact(
    const typename Codec::raw *values, uint32_t n, uint32_t head, typename Codec::raw flip,
    uint32_t capacity, typename Codec::item *survivors,
    struct select_state<typename Codec::item> *state) {
  typedef typename Codec::raw raw;
  constexpr int PER = 16 / sizeof(raw), COUNT = VECTORS * PER;
  constexpr uint32_t TILE = 32 * COUNT;
  const uint32_t lane = threadIdx.x % 32, warps = gridDim.x * (COMPACT_THREADS / 32);
  const uint32_t warp = threadIdx.x / 32 * gridDim.x + blockIdx.x; /* neighbours on other SMs */
  const uint32_t tiles = (n - head) / TILE;
  kcp_let_next_start();
  for (uint32_t tile = warp; tile < tiles && tile < warp + AHEAD * warps; tile += warps)
    if (lane < TILE_LINES) kcp_prefetch((const char *)(values + head + tile * TILE) + lane * LINE);
  kcp_wait_for_last();
  const typename Codec::item item_bound = state->bound;
  const native_bound<Codec> bound = {Codec::native_of(kcp_key_of_item<Codec>(item_bound)),
                                     (uint32_t)item_bound};
  tally tally = {0, 0};
  for (uint32_t tile = warp; tile < tiles; tile += warps) {
    const uint32_t first = head + tile * TILE + lane * PER;
    raw v[COUNT];
#pragma unroll
    for (int j = 0; j < VECTORS; ++j) load_vector(values + first + j * 32 * PER, v, j * PER);
    bool behind = true;
#pragma unroll
    for (int e = 0; e < COUNT; ++e) behind &= Codec::directed(v[e], flip) > bound.value;
    if (__any_sync(KCP_WHOLE_WARP, !behind))
      take<Codec, COUNT, PER>(v, COUNT, first, 32 * PER, flip, bound, capacity, survivors, state,
                              tally);
  }

  /* What is not in whole tiles, a value a lane. */
  const uint32_t body_end = head + tiles * TILE, rest = n - tiles * TILE;
  for (uint32_t start = warp * 32; start < rest; start += warps * 32) {
    const uint32_t j = start + lane, index = j < head ? j : body_end + (j - head);
    const raw one[1] = {j < rest ? values[index] : 0};
    take<Codec, 1, 1>(one, j < rest ? 1 : 0, index, 0, flip, bound, capacity, survivors, state,
                      tally);
  }
  const uint32_t equal = kcp_warp_sum(tally.equal), nan_count = kcp_warp_sum(tally.nan_count);
  if (lane == 0 && equal > 0) atomicAdd(&state->equal, equal);
  if (lane == 0 && nan_count > 0) atomicAdd(&state->nan_count, nan_count);
}

/* The first `wanted` items of the source, in order, as results; returns how many have the key of
 * the last. `place` has room for PLACE items; wanted <= PLACE. */
template <typename Codec, typename Source>
__device__ static uint32_t order_first(const Source &source, uint32_t count, uint32_t wanted,
                                       typename Codec::item *place,
                                       kcp_order_space<typename Codec::item> &space,
                                       uint32_t *taken, typename Codec::key *keys,
                                       uint32_t *indices) {
  typedef typename Codec::item item;
  const uint32_t run = kcp_run_length(wanted);
  const item bound = kcp_narrow(source, count, wanted, (uint32_t)PLACE, space);
  if (threadIdx.x == 0) *taken = 0;
  __syncthreads();
  kcp_collect(source, count, bound, place, taken);
  const uint32_t collected = *taken;
  item mine[2];
  for (uint32_t e = 0; e < 2; ++e) {
    const uint32_t i = threadIdx.x + e * BLOCK_THREADS;
    mine[e] = i < collected ? place[i] : kcp_padding_item<item>();
  }
  if (collected > run) {
    const kcp_plain_source<item> from = {place};
    kcp_keep(place, collected, kcp_narrow(from, collected, wanted, run, space), taken);
  }
  kcp_sort_place(place, *taken);
  for (uint32_t i = threadIdx.x; i < wanted; i += BLOCK_THREADS) {
    keys[i] = kcp_key_of_item<Codec>(place[i]);
    indices[i] = (uint32_t)place[i];
  }
  const typename Codec::key last = kcp_key_of_item<Codec>(place[wanted - 1]);
  uint32_t equal = 0;
  if (bound == kcp_padding_item<item>() || kcp_key_of_item<Codec>(bound) > last) {
    for (int e = 0; e < 2; ++e) /* all that are equal were collected */
      equal += mine[e] != kcp_padding_item<item>() && kcp_key_of_item<Codec>(mine[e]) == last;
  } else {
    for (uint32_t i = threadIdx.x; i < count; i += BLOCK_THREADS)
      equal += kcp_key_of_item<Codec>(source(i)) == last;
  }
  return kcp_block_sum(equal, space);
}

/* Step 3. The survivors are staged in `stage` when they fit. */
template <typename Codec>
__global__ static __launch_bounds__(BLOCK_THREADS) void finish(
    uint32_t n, uint32_t k, typename Codec::item limit, uint32_t capacity, uint32_t stage_capacity,
    const typename Codec::item *survivors, struct select_state<typename Codec::item> *state,
    typename Codec::key *keys, uint32_t *indices, struct kcp_row_outcome *outcome) {
  typedef typename Codec::item item;
  extern __shared__ __align__(16) unsigned char stage_bytes[];
  item *stage = (item *)stage_bytes;
  __shared__ item place[PLACE];
  __shared__ kcp_order_space<item> space;
  __shared__ uint32_t taken;
  kcp_wait_for_last();
  const uint32_t count = state->survivors, nan_count = state->nan_count;
  const uint32_t equal_to_bound = state->equal;
  const item bound = state->bound;
  const uint32_t valid = n - nan_count, wanted = k < count ? k : count;
  const bool short_of_k = count < k && bound < limit && count < valid;
  const bool misled = count > capacity || short_of_k;
  uint32_t equal = 0;
  if (!misled && wanted > 0) {
    const bool staged = count <= stage_capacity;
    if (staged)
      for (uint32_t i = threadIdx.x; i < count; i += BLOCK_THREADS) stage[i] = survivors[i];
    __syncthreads();
    const kcp_plain_source<item> source = {staged ? stage : survivors};
    equal = order_first<Codec>(source, count, wanted, place, space, &taken, keys, indices);
    if (kcp_key_of_item<Codec>(place[wanted - 1]) == kcp_key_of_item<Codec>(bound))
      equal = equal_to_bound;
  }
  __syncthreads();
  if (threadIdx.x > 0) return;
  outcome->count = misled ? 0 : wanted;
  outcome->equal = equal;
  outcome->nan_count = nan_count;
  outcome->limited = 1;
  outcome->limit_key = kcp_key_of_item<Codec>(bound);
  outcome->limit_equal = equal_to_bound;
  outcome->misled = misled;
  state->listed = state->sampled_blocks = 0;
  state->survivors = state->equal = state->nan_count = 0;
}

/* A bound found digit by digit: what is settled so far. All zero before the first digit. */
template <typename Item>
struct digit_state {
  Item prefix;
  uint32_t bits; /* of it */
  uint32_t before, settled, done_blocks;
  uint32_t histogram[KCP_BUCKETS];
};

/* One digit more of the bound that at least `wanted` and at most `capacity` items are before. */
template <typename Codec>
__global__ static __launch_bounds__(SETTLE_THREADS) void settle_digit(
    const typename Codec::raw *values, uint32_t n, typename Codec::raw flip, uint32_t wanted,
    uint32_t capacity, typename Codec::item limit, struct digit_state<typename Codec::item> *digits,
    struct select_state<typename Codec::item> *state) {
  typedef typename Codec::item item;
  __shared__ kcp_order_space<item> space;
  __shared__ bool is_last;
  if (digits->settled) return;
  const int bits = 8 * (int)(sizeof(typename Codec::key) + sizeof(uint32_t)) - (int)digits->bits;
  const int shift = bits > KCP_DIGIT_BITS ? bits - KCP_DIGIT_BITS : 0;
  const uint32_t mask = (1u << (bits - shift)) - 1;
  const item prefix = digits->prefix;
  for (uint32_t b = threadIdx.x; b < KCP_BUCKETS; b += SETTLE_THREADS) space.histogram[b] = 0;
  __syncthreads();
  /* Values of one bucket after another are counted together: equal values would queue up. */
  uint32_t bucket = 0, run = 0;
#pragma unroll 8
  for (uint32_t i = blockIdx.x * SETTLE_THREADS + threadIdx.x; i < n;
       i += gridDim.x * SETTLE_THREADS) {
    const typename Codec::native value = Codec::directed(values[i], flip);
    const item at = kcp_item_of<Codec>(Codec::key_of(value), i);
    if (kcp_is_nan(value) || at >= limit || kcp_bits_above(at, bits) != prefix) continue;
    const uint32_t next = (uint32_t)(at >> shift) & mask;
    if (next != bucket && run > 0) {
      atomicAdd(&space.histogram[bucket], run);
      run = 0;
    }
    bucket = next;
    ++run;
  }
  if (run > 0) atomicAdd(&space.histogram[bucket], run);
  __syncthreads();
  for (uint32_t b = threadIdx.x; b < KCP_BUCKETS; b += SETTLE_THREADS)
    if (space.histogram[b] > 0) atomicAdd(&digits->histogram[b], space.histogram[b]);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(&digits->done_blocks, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!is_last) return;
  __threadfence();

  uint32_t total = 0;
  for (uint32_t b = threadIdx.x; b < KCP_BUCKETS; b += SETTLE_THREADS) {
    space.histogram[b] = atomicExch(&digits->histogram[b], 0u);
    total += space.histogram[b];
  }
  total = kcp_block_sum(total, space);
  const uint32_t before = digits->before;
  const bool too_few = before + total < wanted; /* seen with the first digit: all come along */
  if (!too_few) kcp_find_bucket(wanted - before, space);
  __syncthreads();
  if (threadIdx.x > 0) return;
  digits->done_blocks = 0;
  if (too_few) {
    state->bound = limit;
    digits->settled = 1;
    return;
  }
  const item longer = prefix << (bits - shift) | space.bucket;
  digits->prefix = longer;
  digits->bits += bits - shift;
  digits->before = before + space.before;
  if (before + space.before + space.here > capacity) return;
  const item after = (longer + 1) << shift;
  state->bound = after < limit && after > 0 ? after : limit;
  digits->settled = 1;
}

/* k > PLACE: the survivors' indices. */
template <typename Item>
__global__ static void take_indices(const Item *survivors, uint32_t count, uint32_t *indices) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) indices[i] = (uint32_t)survivors[i];
}

/* The keys of the values with these indices. */
template <typename Codec>
__global__ static void gather_keys(const typename Codec::raw *values, typename Codec::raw flip,
                                   const uint32_t *indices, uint32_t count,
                                   typename Codec::key *keys) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) keys[i] = Codec::key_of(Codec::directed(values[indices[i]], flip));
}

/* The place behind the last of `count` sorted keys that is at most `key`, or before it. */
template <typename Key>
__device__ static uint32_t place_of(const Key *keys, uint32_t count, Key key, bool behind) {
  uint32_t low = 0, high = count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (behind ? keys[middle] <= key : keys[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The outcome of a row whose survivors were sorted; one thread. */
template <typename Codec>
__global__ static void conclude(const typename Codec::key *sorted, uint32_t k,
                                struct select_state<typename Codec::item> *state,
                                struct kcp_row_outcome *outcome) {
  const uint32_t count = state->survivors, wanted = k < count ? k : count;
  const typename Codec::key bound = kcp_key_of_item<Codec>(state->bound);
  outcome->count = wanted;
  outcome->nan_count = state->nan_count;
  outcome->limited = 1;
  outcome->limit_key = bound;
  outcome->limit_equal = state->equal;
  outcome->misled = 0;
  outcome->equal = 0;
  if (wanted > 0) {
    const typename Codec::key last = sorted[wanted - 1];
    outcome->equal =
        last == bound ? state->equal
                      : place_of(sorted, count, last, true) - place_of(sorted, count, last, false);
  }
  state->listed = state->sampled_blocks = 0;
  state->survivors = state->equal = state->nan_count = 0;
}

/* Items of a row: from its keys in shared memory, or from its values. */
template <typename Codec>
struct row_source {
  const typename Codec::key *keys; /* NULL: from the values */
  const typename Codec::raw *values;
  typename Codec::raw flip;
  __device__ typename Codec::item operator()(uint32_t i) const {
    const typename Codec::key key =
        keys != NULL ? keys[i] : Codec::key_of(Codec::directed(values[i], flip));
    return kcp_item_of<Codec>(key, i);
  }
};

/* Rows of up to 65,536 values, a block each in turn. */
template <typename Codec>
__global__ static __launch_bounds__(BLOCK_THREADS) void select_rows(
    const typename Codec::raw *values, uint32_t rows, uint32_t columns, typename Codec::raw flip,
    uint32_t width, uint32_t stage_capacity, typename Codec::key *keys, uint32_t *indices,
    struct kcp_row_outcome *outcomes) {
  typedef typename Codec::item item;
  extern __shared__ __align__(16) unsigned char stage_bytes[];
  typename Codec::key *stage = (typename Codec::key *)stage_bytes;
  __shared__ item place[PLACE];
  __shared__ kcp_order_space<item> space;
  __shared__ uint32_t taken;
  for (uint32_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const typename Codec::raw *from = values + (uint64_t)row * columns;
    const bool staged = columns <= stage_capacity;
    uint32_t nan_count = 0;
    for (uint32_t i = threadIdx.x; i < columns; i += BLOCK_THREADS) {
      const typename Codec::native value = Codec::directed(from[i], flip);
      if (kcp_is_nan(value)) ++nan_count;
      if (staged) stage[i] = Codec::key_of(value);
    }
    nan_count = kcp_block_sum(nan_count, space);
    const uint32_t valid = columns - nan_count, wanted = valid < width ? valid : width;
    const row_source<Codec> source = {staged ? stage : NULL, from, flip};
    uint32_t equal = 0;
    if (wanted > 0)
      equal = order_first<Codec>(source, columns, wanted, place, space, &taken,
                                 keys + (uint64_t)row * width, indices + (uint64_t)row * width);
    if (threadIdx.x == 0) {
      outcomes[row].count = wanted;
      outcomes[row].equal = equal;
      outcomes[row].nan_count = nan_count;
    }
    __syncthreads();
  }
}

#endif

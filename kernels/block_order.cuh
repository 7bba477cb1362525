/* Sorting, selecting and counting by the threads of one block. All functions are for all threads of
 * the block together unless they say "warp". */
#ifndef KCP_KERNELS_BLOCK_ORDER_CUH
#define KCP_KERNELS_BLOCK_ORDER_CUH

#include "value_codec.cuh"

#define KCP_WHOLE_WARP 0xffffffffu

__device__ inline uint64_t kcp_shuffle_xor(uint64_t value, int mask) {
  return __shfl_xor_sync(KCP_WHOLE_WARP, (unsigned long long)value, mask);
}

__device__ inline kcp_wide_item kcp_shuffle_xor(kcp_wide_item value, int mask) {
  uint64_t high = kcp_shuffle_xor((uint64_t)(value >> 64), mask);
  uint64_t low = kcp_shuffle_xor((uint64_t)value, mask);
  return (kcp_wide_item)high << 64 | low;
}

/* Loads what other blocks of the same launch wrote: past this multiprocessor's own cache. */
__device__ inline uint64_t kcp_load_shared_by_blocks(const uint64_t *from) {
  return __ldcg((const unsigned long long *)from);
}

__device__ inline kcp_wide_item kcp_load_shared_by_blocks(const kcp_wide_item *from) {
  const ulonglong2 halves = __ldcg((const ulonglong2 *)from);
  return (kcp_wide_item)halves.y << 64 | halves.x;
}

/* Warp: the sum over the lanes up to this one. */
__device__ inline uint32_t kcp_warp_sum_to(uint32_t value) {
  const uint32_t lane = threadIdx.x % 32;
  for (int distance = 1; distance < 32; distance *= 2) {
    const uint32_t before = __shfl_up_sync(KCP_WHOLE_WARP, value, distance);
    if (lane >= (uint32_t)distance) value += before;
  }
  return value;
}

/* Warp: a place for `mine` elements of each lane behind those that *counter counts; in the order of
 * the lanes. One atomic a warp, none when no lane has any. */
__device__ inline uint32_t kcp_warp_reserve(uint32_t *counter, uint32_t mine) {
  const uint32_t sum = kcp_warp_sum_to(mine);
  uint32_t base = 0;
  if (threadIdx.x % 32 == 31 && sum > 0) base = atomicAdd(counter, sum);
  return __shfl_sync(KCP_WHOLE_WARP, base, 31) + sum - mine;
}

/* Warp: the sum over its lanes, in all of them. */
__device__ inline uint32_t kcp_warp_sum(uint32_t value) {
  for (int mask = 16; mask > 0; mask /= 2) value += __shfl_xor_sync(KCP_WHOLE_WARP, value, mask);
  return value;
}

/* Sorting. Every thread of a group holds two neighbours: items 2 t and 2 t + 1. The group is the
 * whole block, or its first threads, a multiple of 32; the others only take part in the barriers.
 */

struct kcp_whole_block {
  __device__ bool works() const {
    return true;
  }
};

struct kcp_first_threads {
  uint32_t count;
  __device__ bool works() const {
    return threadIdx.x < count;
  }
};

/* One step of a bitonic network: of each pair (i, i ^ mask) the earlier item goes to the smaller i.
 * `top` is the highest bit of the mask; a mask of 2^m - 1 mirrors, one of 2^m strides. Neighbours
 * stay in registers, masks below 64 in the warp; others go through `shared` (two items a thread).
 */
template <typename Item, typename Group>
__device__ void kcp_network_step(Item (&x)[2], uint32_t mask, uint32_t top, Item *shared,
                                 const Group &group) {
  const uint32_t first = 2 * threadIdx.x;
  Item other[2];
  if (mask >= 64) {
    __syncthreads();
    if (group.works()) {
      shared[first] = x[0];
      shared[first + 1] = x[1];
    }
    __syncthreads();
  }
  if (!group.works()) return;
  if (mask == 1) {
    const Item smaller = x[1] < x[0] ? x[1] : x[0];
    x[1] = x[1] < x[0] ? x[0] : x[1];
    x[0] = smaller;
    return;
  }
  if (mask < 64) {
    const bool mirrored = (mask & 1) != 0;
    const Item low = x[0], high = x[1];
    other[0] = kcp_shuffle_xor(mirrored ? high : low, (int)(mask / 2));
    other[1] = kcp_shuffle_xor(mirrored ? low : high, (int)(mask / 2));
  } else {
    other[0] = shared[first ^ mask];
    other[1] = shared[(first + 1) ^ mask];
  }
  const bool keeps_earlier = (first & top) == 0;
  for (int e = 0; e < 2; ++e)
    if ((other[e] < x[e]) == keeps_earlier) x[e] = other[e];
}

/* Sorts bitonic sequences of `length`, a power of two from 2 to twice the group's threads. */
template <typename Item, typename Group>
__device__ void kcp_rebuild(Item (&x)[2], uint32_t length, Item *shared, const Group &group) {
#pragma unroll 1
  for (uint32_t stride = length / 2; stride > 0; stride /= 2)
    kcp_network_step(x, stride, stride, shared, group);
}

/* Sorts runs of `length`, ascending all. */
template <typename Item, typename Group>
__device__ void kcp_sort_runs(Item (&x)[2], uint32_t length, Item *shared, const Group &group) {
#pragma unroll 1
  for (uint32_t size = 2; size <= length; size *= 2) {
    kcp_network_step(x, size - 1, size / 2, shared, group);
    kcp_rebuild(x, size / 2, shared, group);
  }
}

/* Selecting. */

enum { KCP_DIGIT_BITS = 11, KCP_BUCKETS = 1 << KCP_DIGIT_BITS };

template <typename Item>
struct kcp_order_space {
  uint32_t histogram[KCP_BUCKETS];
  Item any[32], all[32]; /* of each warp */
  uint32_t sums[32];     /* the same */
  uint32_t bucket, before, here;
};

/* The sum over the block, in all threads. */
template <typename Item>
__device__ uint32_t kcp_block_sum(uint32_t value, kcp_order_space<Item> &space) {
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  value = kcp_warp_sum(value);
  __syncthreads();
  if (lane == 0) space.sums[warp] = value;
  __syncthreads();
  return kcp_warp_sum(lane < warps ? space.sums[lane] : 0);
}

/* The sum over the threads before this one. */
template <typename Item>
__device__ uint32_t kcp_block_sum_before(uint32_t value, kcp_order_space<Item> &space) {
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const uint32_t to_here = kcp_warp_sum_to(value);
  __syncthreads();
  if (lane == 31) space.sums[warp] = to_here;
  __syncthreads();
  const uint32_t to_warp = kcp_warp_sum_to(lane < warps ? space.sums[lane] : 0);
  const uint32_t before_warp = __shfl_sync(KCP_WHOLE_WARP, to_warp, (int)(warp + 31) % 32);
  return (warp > 0 ? before_warp : 0) + to_here - value;
}

/* Finds the bucket of the histogram with the item of rank `wanted` (from 1 on); sets space.bucket,
 * space.before (items in buckets before it) and space.here. There are as many items. */
template <typename Item>
__device__ void kcp_find_bucket(uint32_t wanted, kcp_order_space<Item> &space) {
  const uint32_t each = KCP_BUCKETS / blockDim.x;
  const uint32_t first = threadIdx.x * each;
  uint32_t mine = 0;
  for (uint32_t b = 0; b < each; ++b) mine += space.histogram[first + b];
  uint32_t before = kcp_block_sum_before(mine, space);
  if (before < wanted && wanted <= before + mine) {
    uint32_t bucket = first;
    while (before + space.histogram[bucket] < wanted) before += space.histogram[bucket++];
    space.bucket = bucket;
    space.before = before;
    space.here = space.histogram[bucket];
  }
  __syncthreads();
}

__device__ inline int kcp_bit_length(uint64_t value) {
  return 64 - __clzll((long long)value);
}

__device__ inline int kcp_bit_length(kcp_wide_item value) {
  const uint64_t high = (uint64_t)(value >> 64);
  return high != 0 ? 64 + kcp_bit_length(high) : kcp_bit_length((uint64_t)value);
}

/* item >> bits, also for all bits of it. */
template <typename Item>
__device__ Item kcp_bits_above(Item item, int bits) {
  return bits >= (int)(8 * sizeof(Item)) ? (Item)0 : item >> bits;
}

/* Warp: the bits that are set in any lane's item, and in all of them. */
template <typename Item>
__device__ void kcp_warp_any_all(Item &any, Item &all) {
  for (int mask = 16; mask > 0; mask /= 2) {
    any |= kcp_shuffle_xor(any, mask);
    all &= kcp_shuffle_xor(all, mask);
  }
}

/* Warp: the last of the lanes' items. */
template <typename Item>
__device__ Item kcp_warp_last(Item item) {
  for (int mask = 16; mask > 0; mask /= 2) {
    const Item other = kcp_shuffle_xor(item, mask);
    item = other > item ? other : item;
  }
  return item;
}

/* The bits of all `count` items that are not the same in all of them, as how many low bits hold
 * them, and the bits above those. source(i) is item i. */
template <typename Item, typename Source>
__device__ int kcp_varying_bits(const Source &source, uint32_t count, Item *common,
                                kcp_order_space<Item> &space) {
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  Item any = 0, all = ~(Item)0;
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    const Item item = source(i);
    any |= item;
    all &= item;
  }
  kcp_warp_any_all(any, all);
  __syncthreads();
  if (lane == 0) {
    space.any[warp] = any;
    space.all[warp] = all;
  }
  __syncthreads();
  any = space.any[lane % warps];
  all = space.all[lane % warps];
  kcp_warp_any_all(any, all);
  const int bits = kcp_bit_length(any ^ all);
  *common = kcp_bits_above(all, bits);
  return bits;
}

/* A bound that at least `wanted` and at most `capacity` of the items are before (wanted <=
 * capacity, wanted <= count; items are distinct). By radix digits from the highest bit that varies,
 * each a pass over the items, until the bucket that the bound falls into may come along whole: two
 * or three passes for most data, one for each 11 bits at worst. The block has at most KCP_BUCKETS
 * threads, a power of two. */
template <typename Item, typename Source>
__device__ Item kcp_narrow(const Source &source, uint32_t count, uint32_t wanted, uint32_t capacity,
                           kcp_order_space<Item> &space) {
  if (count <= capacity) return kcp_padding_item<Item>();
  Item prefix;
  int bits = kcp_varying_bits(source, count, &prefix, space);
  uint32_t before = 0;
  for (;;) {
    const int shift = bits > KCP_DIGIT_BITS ? bits - KCP_DIGIT_BITS : 0;
    const uint32_t mask = (1u << (bits - shift)) - 1;
    for (uint32_t b = threadIdx.x; b < KCP_BUCKETS; b += blockDim.x) space.histogram[b] = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
      const Item item = source(i);
      if (kcp_bits_above(item, bits) == prefix)
        atomicAdd(&space.histogram[(uint32_t)(item >> shift) & mask], 1u);
    }
    __syncthreads();
    kcp_find_bucket(wanted - before, space);
    prefix = prefix << (bits - shift) | space.bucket;
    before += space.before;
    bits = shift;
    const bool fits = before + space.here <= capacity;
    __syncthreads();
    if (fits) break;
  }
  const Item last = prefix << bits | (((Item)1 << bits) - 1);
  return last == kcp_padding_item<Item>() ? last : last + 1;
}

/* The last of the items that are before `bound`; there is one. */
template <typename Item, typename Source>
__device__ Item kcp_last_before(const Source &source, uint32_t count, Item bound,
                                kcp_order_space<Item> &space) {
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  Item last = 0;
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    const Item item = source(i);
    if (item < bound && item > last) last = item;
  }
  last = kcp_warp_last(last);
  __syncthreads();
  if (lane == 0) space.any[warp] = last;
  __syncthreads();
  return kcp_warp_last(space.any[lane % warps]);
}

/* Copies the items before `bound` to `place`, in any order; *taken counts them and is 0 before. */
template <typename Item, typename Source>
__device__ void kcp_collect(const Source &source, uint32_t count, Item bound, Item *place,
                            uint32_t *taken) {
  for (uint32_t first = 0; first < count; first += blockDim.x) {
    const uint32_t i = first + threadIdx.x;
    Item item = 0;
    bool takes = i < count;
    if (takes) {
      item = source(i);
      takes = item < bound;
    }
    const uint32_t at = kcp_warp_reserve(taken, takes ? 1 : 0);
    if (takes) place[at] = item;
  }
  __syncthreads();
}

/* The power of two from `count` on, at least 2. */
__device__ inline uint32_t kcp_run_length(uint32_t count) {
  uint32_t length = 2;
  while (length < count) length *= 2;
  return length;
}

/* Of `taken` items of `place`, at most two a thread, keeps those before `bound`; *kept counts them.
 */
template <typename Item>
__device__ void kcp_keep(Item *place, uint32_t taken, Item bound, uint32_t *kept) {
  Item mine[2];
  bool keeps[2];
  for (uint32_t e = 0; e < 2; ++e) {
    const uint32_t i = threadIdx.x + e * blockDim.x;
    mine[e] = i < taken ? place[i] : kcp_padding_item<Item>();
    keeps[e] = mine[e] < bound;
  }
  __syncthreads();
  if (threadIdx.x == 0) *kept = 0;
  __syncthreads();
  for (int e = 0; e < 2; ++e) {
    const uint32_t at = kcp_warp_reserve(kept, keeps[e] ? 1 : 0);
    if (keeps[e]) place[at] = mine[e];
  }
  __syncthreads();
}

/* Sorts `taken` items of `place` (room for 2 * blockDim.x), in place, with as many threads as they
 * keep busy. */
template <typename Item>
__device__ void kcp_sort_place(Item *place, uint32_t taken) {
  const uint32_t length = kcp_run_length(taken);
  const kcp_first_threads group = {length < 64 ? 32 : length / 2};
  Item x[2] = {0, 0};
  for (int e = 0; e < 2; ++e) {
    const uint32_t i = 2 * threadIdx.x + e;
    if (group.works()) x[e] = i < taken ? place[i] : kcp_padding_item<Item>();
  }
  kcp_sort_runs(x, length, place, group);
  __syncthreads();
  if (group.works())
    for (int e = 0; e < 2; ++e) place[2 * threadIdx.x + e] = x[e];
  __syncthreads();
}

/* Items in memory of the block or the device that no other block writes meanwhile. */
template <typename Item>
struct kcp_plain_source {
  const Item *items;
  __device__ Item operator()(uint32_t i) const {
    return items[i];
  }
};

/* Items that other blocks of the same launch wrote before a fence. */
template <typename Item>
struct kcp_fenced_source {
  const Item *items;
  __device__ Item operator()(uint32_t i) const {
    return kcp_load_shared_by_blocks(&items[i]);
  }
};

#endif

/* Section IV-F1 of RT-HiSS on the device: lists of neighbours, each in the order of its records,
 * from masks or from pairs.
 *
 * A block makes the list of a query: it sets the bit of each neighbour in a bitmap of the records
 * in shared memory, and another for each bitmap word that has one; prefix sums over the ones, in
 * the order of the bitmap, are places in the list. So masks are read once and lists written once, 4
 * bytes a neighbour, and nothing is compared. Where a list goes follows from prefix sums over the
 * totals of the refinement. The bitmap takes 132 bytes for 1,024 records; 1.7 million fit 227 KB,
 * more go in windows, for each of which the masks are read again. The words of a mask are looked
 * through by a warp each, so that a neighbour's record is one of 32 adjoining ones that are loaded
 * together.
 *
 * Short lists among many records would cost mostly the look at an empty bitmap; there, the ones are
 * compacted as they come and lists are sorted as segments. Estimates, not measurements: 1,000
 * cycles a window, and 30 cycles a neighbour of a multiprocessor.
 *
 * Measured on an H200: 1 million x 18 with 249 neighbours and with 3,900, 500,000 x 90 with 271.
 * 1. A thread an entry, counts of ones of every entry and their prefix sums (8 bytes an entry), and
 *    a segmented sort of all lists; pairs by a radix sort over 64 bits. Never timed.
 * 2. The bitmap, a warp 32 words of masks, a nonzero word after the other: 38, 145 and 8 ms. A
 *    million records leave room for a block a multiprocessor, so that nothing hides a warp's wait
 *    for the records of a word, and at 249 neighbours 11 warps of 32 had words.
 * 3. Words for all warps, and records of 8 words loaded before any is marked: 38 to 34 ms and, with
 *    3,900 neighbours, 117 to 75 ms. */
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_sort.cuh>

#include "range_join.cuh"

static const int threads = 256;
static const int most_threads = 1024;
static const uint64_t summary_records = 1024; /* of a word of the summary: 32 words of 32 bits */
static const uint64_t summary_bytes = summary_records / 8 + sizeof(uint32_t);
static const uint64_t most_windows = 8;
static const uint64_t window_cycles = 1000, sorting_cycles = 30; /* estimates, see above */
static const uint32_t few = 32;     /* neighbours that a thread lists by itself */
static const int words_at_once = 8; /* whose records are on their way to a warp */

static unsigned blocks_for(uint64_t count) {
  return (unsigned)((count + threads - 1) / threads);
}

__global__ static void widen_totals(const uint32_t *totals, uint64_t count, uint64_t *wide) {
  const uint64_t i = (uint64_t)blockIdx.x * threads + threadIdx.x;
  if (i <= count) wide[i] = i < count ? totals[i] : 0;
}

enum kcp_status kcp_range_offsets(struct kcp_range_join *join, const uint32_t *totals,
                                  uint64_t count, uint64_t **offsets, struct kcp_error *error) {
  size_t bytes = 0;
  void *scratch;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_OFFSETS, count + 1, offsets, error));
  widen_totals<<<blocks_for(count + 1), threads, 0, join->stream>>>(totals, count, *offsets);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cub::DeviceScan::ExclusiveSum(NULL, bytes, *offsets, *offsets, (int64_t)(count + 1),
                                             join->stream));
  KCP_TRY(kcp_range_scratch(join, bytes, &scratch, error));
  KCP_CUDA_TRY(cub::DeviceScan::ExclusiveSum(scratch, bytes, *offsets, *offsets,
                                             (int64_t)(count + 1), join->stream));
  return KCP_OK;
}

__global__ static void scatter_pairs(const unsigned long long *pairs, uint64_t total,
                                     uint64_t first_query, const uint64_t *offsets,
                                     uint32_t *cursors, uint32_t *lists) {
  const uint64_t i = (uint64_t)blockIdx.x * threads + threadIdx.x;
  if (i >= total) return;
  const uint64_t query = (pairs[i] >> 32) - first_query;
  lists[offsets[query] + atomicAdd(&cursors[query], 1u)] = (uint32_t)pairs[i];
}

enum kcp_status kcp_range_scatter(struct kcp_range_join *join, const unsigned long long *pairs,
                                  uint64_t total, uint64_t first_query, uint64_t query_count,
                                  const uint64_t *offsets, uint32_t **lists,
                                  struct kcp_error *error) {
  uint32_t *cursors;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_CURSORS, query_count, &cursors, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_LISTS, total, lists, error));
  KCP_CUDA_TRY(cudaMemsetAsync(cursors, 0, query_count * sizeof *cursors, join->stream));
  if (total == 0) return KCP_OK;
  scatter_pairs<<<blocks_for(total), threads, 0, join->stream>>>(pairs, total, first_query, offsets,
                                                                 cursors, *lists);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

/* ---- words of masks ---- */

/* The mask words of a query. */
struct query_words {
  uint64_t first_entry;
  uint64_t count;
};

__device__ static struct query_words words_of(const struct kcp_range_listing &from, uint64_t q) {
  const uint64_t first =
      from.query_firsts != NULL ? from.query_firsts[q] - from.query_base : q * from.primitives;
  const uint64_t last = from.query_firsts != NULL ? from.query_firsts[q + 1] - from.query_base
                                                  : first + from.primitives;
  const struct query_words words = {first, (last - first) * from.mask_words};
  return words;
}

/* Word number i of the query, 0 behind the last; *point becomes what its first bit stands for. */
__device__ static uint32_t load_word(const struct kcp_range_listing &from,
                                     const struct query_words &words, uint64_t i, uint32_t *point) {
  *point = 0;
  if (i >= words.count) return 0;
  /* The primitive is loaded whatever the word is, so that one load does not wait for the other. */
  const uint64_t entry = words.first_entry + i / from.mask_words;
  const uint32_t part = (uint32_t)(i % from.mask_words);
  const uint32_t primitive =
      from.met != NULL ? from.met[entry] : (uint32_t)(entry % from.primitives);
  *point = from.firsts[primitive] + part * 32;
  return from.masks[words.first_entry * from.mask_words + i];
}

/* ---- lists by a bitmap ---- */

/* The block's: records first .. first + window - 1, of which window is a multiple of 1,024. */
struct bitmap {
  uint64_t first;
  uint32_t window;
  uint32_t *words;   /* bit r % 32 of word r / 32 */
  uint32_t *summary; /* bit w % 32 of word w / 32: word w has a one */
  uint32_t *totals;  /* of the warps */
};

__device__ static void mark(const struct bitmap &map, uint32_t record) {
  const uint64_t place = record - map.first; /* wraps below the window */
  if (place >= map.window) return;
  const uint32_t word = (uint32_t)place / 32, bit = 1u << (place % 32);
  if (atomicOr(&map.words[word], bit) == 0) atomicOr(&map.summary[word / 32], 1u << (word % 32));
}

__device__ static void mark_masks(const struct kcp_range_listing &from, uint64_t q,
                                  const struct bitmap &map) {
  const struct query_words words = words_of(from, q);
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const uint64_t share = (words.count + warps - 1) / warps;
  const uint32_t step = share < 32 ? (uint32_t)share : 32; /* so that few words are for all warps */
  for (uint64_t i = (uint64_t)warp * step; i < words.count; i += (uint64_t)warps * step) {
    uint32_t point = 0;
    const uint32_t word = lane < step ? load_word(from, words, i + lane, &point) : 0;
    for (uint32_t some = __ballot_sync(~0u, word != 0); some != 0;) {
      uint32_t records[words_at_once], here = 0;
#pragma unroll
      for (int k = 0; k < words_at_once; ++k) {
        const int owner = some != 0 ? __ffs(some) - 1 : 0;
        const uint32_t bits = __shfl_sync(~0u, word, owner);
        const uint32_t first = __shfl_sync(~0u, point, owner);
        if (some != 0 && (bits >> lane & 1) != 0) {
          records[k] = from.places[first + lane];
          here |= 1u << k;
        }
        some &= some - 1;
      }
#pragma unroll
      for (int k = 0; k < words_at_once; ++k)
        if ((here >> k & 1) != 0) mark(map, records[k]);
    }
  }
}

__device__ static void mark_list(const struct kcp_range_listing &from, uint64_t q,
                                 const struct bitmap &map) {
  const uint64_t last = from.offsets[q + 1];
  for (uint64_t i = from.offsets[q] + threadIdx.x; i < last; i += blockDim.x)
    mark(map, from.lists[i]);
}

__device__ static uint32_t ones_of(const struct bitmap &map, uint32_t s) {
  uint32_t ones = 0;
  for (uint32_t some = map.summary[s]; some != 0; some &= some - 1)
    ones += __popc(map.words[s * 32 + __ffs(some) - 1]);
  return ones;
}

/* Sums over the warp's lanes up to and with this one. */
__device__ static uint32_t sums_to(uint32_t value) {
  const int lane = threadIdx.x % 32;
  for (int offset = 1; offset < 32; offset *= 2) {
    const uint32_t before = __shfl_up_sync(~0u, value, offset);
    if (lane >= offset) value += before;
  }
  return value;
}

/* The ones of a bitmap word as records, in order; the word becomes 0. */
__device__ static void list_word(const struct bitmap &map, uint32_t w, uint32_t *to) {
  const uint32_t record = (uint32_t)map.first + w * 32;
  for (uint32_t bits = map.words[w]; bits != 0; bits &= bits - 1) *to++ = record + __ffs(bits) - 1;
  map.words[w] = 0;
}

/* The window's records to `to`, and the bitmap is empty again; returns how many. Each warp has a
 * run of the summary. */
__device__ static uint32_t list_window(const struct bitmap &map, uint32_t *to) {
  const uint32_t count = map.window / (uint32_t)summary_records, warps = blockDim.x / 32;
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t share = (count + warps - 1) / warps;
  const uint32_t first = min(warp * share, count), last = min(first + share, count);
  uint32_t sum = 0;
  for (uint32_t s = first + lane; s < last; s += 32) sum += ones_of(map, s);
  sum = __shfl_sync(~0u, sums_to(sum), 31);
  if (lane == 0) map.totals[warp] = sum;
  __syncthreads();
  const uint32_t ends = sums_to(lane < warps ? map.totals[lane] : 0);
  to += __shfl_sync(~0u, ends, (int)warp) - sum;
  for (uint32_t begin = first; begin < last; begin += 32) {
    const uint32_t s = begin + lane;
    const uint32_t ones = s < last ? ones_of(map, s) : 0, end = sums_to(ones);
    uint32_t *own = to + (end - ones);
    if (ones > 0 && ones <= few) {
      for (uint32_t some = map.summary[s]; some != 0; some &= some - 1) {
        const uint32_t w = s * 32 + __ffs(some) - 1, in_word = __popc(map.words[w]);
        list_word(map, w, own);
        own += in_word;
      }
    }
    /* Many ones of one summary word are listed by the whole warp. */
    for (uint32_t many = __ballot_sync(~0u, ones > few); many != 0; many &= many - 1) {
      const int owner = __ffs(many) - 1;
      const uint32_t w = (begin + owner) * 32 + lane, in_word = __popc(map.words[w]);
      const uint32_t place = __shfl_sync(~0u, end - ones, owner) + sums_to(in_word) - in_word;
      list_word(map, w, to + place);
    }
    if (s < last) map.summary[s] = 0;
    to += __shfl_sync(~0u, end, 31);
  }
  return __shfl_sync(~0u, ends, 31);
}

__global__ static void __launch_bounds__(most_threads)
    list_by_bitmap(struct kcp_range_listing from, uint64_t records, uint32_t window,
                   uint32_t *neighbours) {
  extern __shared__ uint32_t memory[];
  struct bitmap map;
  map.window = window;
  map.words = memory;
  map.summary = map.words + window / 32;
  map.totals = map.summary + window / summary_records;
  for (uint32_t i = threadIdx.x; i < window / 32 + window / summary_records; i += blockDim.x)
    memory[i] = 0;
  __syncthreads();
  const uint64_t before = from.offsets[from.first];
  for (uint64_t q = from.first + blockIdx.x; q < from.last; q += gridDim.x) {
    uint32_t *to = neighbours + (from.offsets[q] - before);
    if (from.offsets[q] == from.offsets[q + 1]) continue;
    for (map.first = 0; map.first < records; map.first += window) {
      if (from.masks != NULL)
        mark_masks(from, q, map);
      else
        mark_list(from, q, map);
      __syncthreads();
      to += list_window(map, to);
      __syncthreads();
    }
  }
}

/* How the kernel is launched. */
struct bitmap_launch {
  uint64_t windows;
  uint32_t window;
  int block_threads, blocks; /* of a multiprocessor */
  size_t bytes;
};

static enum kcp_status plan_bitmap(const struct kcp_range_join *join, struct bitmap_launch *launch,
                                   struct kcp_error *error) {
  const uint64_t records = join->points.count, totals_bytes = 32 * sizeof(uint32_t);
  int most = 0;
  KCP_CUDA_TRY(
      cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, join->device.index));
  uint64_t room = (uint64_t)most;
  const uint64_t wanted = join->plan.options.shared_memory_bytes;
  if (wanted > 0 && wanted < room) room = wanted;
  if (room < summary_bytes + totals_bytes) room = summary_bytes + totals_bytes;
  const uint64_t most_records = (room - totals_bytes) / summary_bytes * summary_records;
  launch->windows = (records + most_records - 1) / most_records;
  const uint64_t share = (records + launch->windows - 1) / launch->windows;
  launch->window = (uint32_t)((share + summary_records - 1) / summary_records * summary_records);
  launch->bytes = launch->window / summary_records * summary_bytes + totals_bytes;
  launch->block_threads = launch->bytes > 96u << 10   ? most_threads
                          : launch->bytes > 40u << 10 ? most_threads / 2
                                                      : threads;
  KCP_CUDA_TRY(cudaFuncSetAttribute(list_by_bitmap, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    (int)launch->bytes));
  KCP_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&launch->blocks, list_by_bitmap,
                                                             launch->block_threads, launch->bytes));
  if (launch->blocks < 1) launch->blocks = 1;
  return KCP_OK;
}

/* ---- lists by sorting ---- */

/* A query's ones as they come. */
__global__ static void list_ones(struct kcp_range_listing from, uint32_t *lists) {
  __shared__ uint32_t used;
  const uint32_t lane = threadIdx.x % 32;
  const uint64_t before = from.offsets[from.first];
  for (uint64_t q = from.first + blockIdx.x; q < from.last; q += gridDim.x) {
    if (from.offsets[q] == from.offsets[q + 1]) continue;
    const struct query_words words = words_of(from, q);
    uint32_t *list = lists + (from.offsets[q] - before);
    if (threadIdx.x == 0) used = 0;
    __syncthreads();
    for (uint64_t i = threadIdx.x - lane; i < words.count; i += blockDim.x) {
      uint32_t point, base = 0;
      const uint32_t word = load_word(from, words, i + lane, &point);
      const uint32_t ones = __popc(word), end = sums_to(ones);
      if (lane == 31 && end > 0) base = atomicAdd(&used, end);
      uint32_t *to = list + __shfl_sync(~0u, base, 31) + (end - ones);
      for (uint32_t bits = word; bits != 0; bits &= bits - 1)
        *to++ = from.places[point + __ffs(bits) - 1];
    }
    __syncthreads();
  }
}

__global__ static void shift_offsets(const uint64_t *offsets, uint64_t count, uint64_t *shifted) {
  const uint64_t i = (uint64_t)blockIdx.x * threads + threadIdx.x;
  if (i <= count) shifted[i] = offsets[i] - offsets[0];
}

/* Lists into the order of records, a segment each. */
static enum kcp_status sort_lists(struct kcp_range_join *join,
                                  const struct kcp_range_listing *listing, const uint32_t *lists,
                                  uint64_t total, uint32_t *sorted, struct kcp_error *error) {
  const uint64_t count = listing->last - listing->first;
  uint64_t *offsets;
  size_t bytes = 0;
  void *scratch;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_RUN_OFFSETS, count + 1, &offsets, error));
  shift_offsets<<<blocks_for(count + 1), threads, 0, join->stream>>>(
      listing->offsets + listing->first, count, offsets);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cub::DeviceSegmentedSort::SortKeys(NULL, bytes, lists, sorted, (int64_t)total,
                                                  (int64_t)count, offsets, offsets + 1,
                                                  join->stream));
  KCP_TRY(kcp_range_scratch(join, bytes, &scratch, error));
  KCP_CUDA_TRY(cub::DeviceSegmentedSort::SortKeys(scratch, bytes, lists, sorted, (int64_t)total,
                                                  (int64_t)count, offsets, offsets + 1,
                                                  join->stream));
  return KCP_OK;
}

static enum kcp_status list_by_sorting(struct kcp_range_join *join,
                                       const struct kcp_range_listing *listing, uint64_t total,
                                       unsigned blocks, uint32_t *neighbours,
                                       struct kcp_error *error) {
  uint64_t before = 0;
  uint32_t *lists;
  if (listing->masks == NULL) {
    KCP_CUDA_TRY(cudaMemcpyAsync(&before, listing->offsets + listing->first, sizeof before,
                                 cudaMemcpyDeviceToHost, join->stream));
    KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
    return sort_lists(join, listing, listing->lists + before, total, neighbours, error);
  }
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_LISTS, total, &lists, error));
  list_ones<<<blocks, threads, 0, join->stream>>>(*listing, lists);
  KCP_CUDA_TRY(cudaGetLastError());
  return sort_lists(join, listing, lists, total, neighbours, error);
}

enum kcp_status kcp_range_list(struct kcp_range_join *join, const struct kcp_range_listing *listing,
                               uint64_t total, uint32_t *neighbours, struct kcp_error *error) {
  const uint64_t count = listing->last - listing->first;
  struct bitmap_launch launch;
  int multiprocessors = 0;
  if (total == 0) return KCP_OK;
  KCP_TRY(plan_bitmap(join, &launch, error));
  KCP_CUDA_TRY(
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, join->device.index));
  const bool sorts =
      launch.windows > most_windows ||
      launch.windows * window_cycles * count / (uint64_t)launch.blocks > total * sorting_cycles;
  const int block_threads = sorts ? threads : launch.block_threads;
  uint64_t blocks =
      (uint64_t)multiprocessors * (uint64_t)(sorts ? 2048 / block_threads : launch.blocks);
  if (blocks > count) blocks = count;
  if (sorts) return list_by_sorting(join, listing, total, (unsigned)blocks, neighbours, error);
  list_by_bitmap<<<(unsigned)blocks, block_threads, launch.bytes, join->stream>>>(
      *listing, join->points.count, launch.window, neighbours);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

/* ---- pairs ---- */

__global__ static void pair_up(struct kcp_range_listing run, uint64_t first_query,
                               const uint32_t *neighbours, uint64_t *pairs) {
  const uint64_t before = run.offsets[run.first];
  for (uint64_t q = run.first + blockIdx.x; q < run.last; q += gridDim.x) {
    const uint64_t last = run.offsets[q + 1] - before;
    for (uint64_t i = run.offsets[q] - before + threadIdx.x; i < last; i += threads)
      pairs[i] = (first_query + q) << 32 | neighbours[i];
  }
}

enum kcp_status kcp_range_pair_up(struct kcp_range_join *join,
                                  const struct kcp_range_listing *listing, uint64_t first_query,
                                  const uint32_t *neighbours, uint64_t *pairs,
                                  struct kcp_error *error) {
  const uint64_t count = listing->last - listing->first, most_blocks = 1u << 16;
  pair_up<<<(unsigned)(count < most_blocks ? count : most_blocks), threads, 0, join->stream>>>(
      *listing, first_query, neighbours, pairs);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

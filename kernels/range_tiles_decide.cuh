/* Pairs that the products leave open: sums of rows in their own precision, and where these leave a
 * pair open as well, its rank in binary64 (range_limit.h). */
#ifndef KCP_KERNELS_RANGE_TILES_DECIDE_CUH
#define KCP_KERNELS_RANGE_TILES_DECIDE_CUH

#include "range_tiles.cuh"

/* A pair of an entry. */
struct kcp_open_pair {
  uint64_t entry;
  uint32_t row, column;
};

__device__ static inline unsigned long long kcp_open_pack(uint64_t entry, uint32_t row,
                                                          uint32_t column) {
  return entry << 14 | row << 7 | column;
}

__device__ static inline struct kcp_open_pair kcp_open_unpack(unsigned long long packed) {
  struct kcp_open_pair pair = {packed >> 14, (uint32_t)(packed >> 7) & 127, (uint32_t)packed & 127};
  return pair;
}

/* The first of four mask words of a query (row) of the entry. */
__device__ static inline uint32_t *kcp_tile_mask(const struct kcp_tile_work &work, uint32_t tile,
                                                 uint64_t entry, uint32_t row) {
  const uint32_t i = tile - work.first_tile;
  const uint64_t begin = work.entry_firsts[i], count = work.entry_firsts[i + 1] - begin;
  return work.masks + (work.mask_firsts[i] + row * count + (entry - begin)) * 4;
}

/* Decides a pair by `lanes` neighbouring threads, a power of two; all of the warp are to be here. A
 * pair that is none (is_pair false) reads like one. */
template <typename T>
__device__ static inline void kcp_tile_settle(const struct kcp_tile_work &work,
                                              struct kcp_open_pair pair, bool is_pair,
                                              uint32_t lanes, uint32_t mask) {
  const uint32_t query_tile = work.met_by[pair.entry], tile = work.met[pair.entry];
  const uint64_t a = kcp_tile_first(work.queries, query_tile) + pair.row;
  const uint64_t b = kcp_tile_first(work.points, tile) + pair.column;
  const T *row_a = (const T *)work.query_points.rows + a * work.dimensions;
  const T *row_b = (const T *)work.point_points.rows + b * work.dimensions;
  T sum = 0;
  for (uint32_t j = threadIdx.x % lanes; j < work.dimensions; j += lanes) {
    const T difference = row_a[j] - row_b[j];
    sum = fma(difference, difference, sum);
  }
  for (uint32_t offset = lanes / 2; offset > 0; offset /= 2)
    sum += __shfl_xor_sync(mask, sum, offset);
  if (!is_pair || threadIdx.x % lanes != 0 || sum > (T)work.beyond) return;
  if (!(sum <= (T)work.within)) {
    atomicAdd(work.rechecks, 1ull);
    const struct kcp_device_points &queries = work.query_points, &points = work.point_points;
    if (!(kcp_range_rank(work.dimensions, points.columns, points.count, points.places[b],
                         queries.columns, queries.count, queries.places[a]) <= work.rank))
      return;
  }
  atomicAdd(&work.totals[a], 1u);
  if (work.mirrors && query_tile != tile) atomicAdd(&work.totals[b], 1u);
  if (work.masks != NULL)
    atomicOr(kcp_tile_mask(work, query_tile, pair.entry, pair.row) + pair.column / 32,
             1u << pair.column % 32);
}

#endif

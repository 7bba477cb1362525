#include "range_scan.h"

#define RUN_TILES 256 /* tested before their masks are read */

/* Lanes of tile `tile` that lie in first .. last - 1. */
static uint32_t lanes_of(uint64_t tile, uint64_t first, uint64_t last) {
  const uint64_t begin = tile * KCP_RANGE_TILE, end = begin + KCP_RANGE_TILE;
  uint32_t lanes = (1u << KCP_RANGE_TILE) - 1;
  if (first > begin) lanes &= ~0u << (first - begin);
  if (last < end) lanes &= (1u << (last - begin)) - 1;
  return lanes;
}

/* The open points that are within after all. */
static uint32_t recheck(const struct kcp_range_scan *scan, const struct kcp_range_scan_query *query,
                        uint64_t tile, uint32_t open, struct kcp_range_scan_work *work) {
  uint32_t within = 0;
  for (; open != 0; open &= open - 1) {
    const uint32_t lane = (uint32_t)__builtin_ctz(open);
    const double rank =
        kcp_range_rank(scan->slice->dimensions, scan->slice->coordinates, scan->slice->stride,
                       scan->records[tile * KCP_RANGE_TILE + lane], query->points->coordinates,
                       query->points->stride, query->place);
    within |= (uint32_t)(rank <= scan->limit.rank) << lane;
    ++work->rechecks;
  }
  return within;
}

static enum kcp_status add_neighbours(const struct kcp_range_scan *scan, uint64_t tile,
                                      uint32_t within, struct kcp_range_results *results,
                                      struct kcp_error *error) {
  const uint64_t count = (uint64_t)__builtin_popcount(within);
  uint32_t *room = kcp_range_results_room(results, count, error);
  if (room == NULL) return KCP_FAILED;
  for (; within != 0; within &= within - 1)
    *room++ = scan->records[tile * KCP_RANGE_TILE + (uint32_t)__builtin_ctz(within)];
  kcp_range_results_added(results, count);
  return KCP_OK;
}

enum kcp_status kcp_range_scan_points(const struct kcp_range_scan *scan,
                                      const struct kcp_range_scan_query *query, uint64_t first,
                                      uint64_t last, uint64_t *count,
                                      struct kcp_range_results *results,
                                      struct kcp_range_scan_work *work, struct kcp_error *error) {
  struct kcp_range_mask masks[RUN_TILES];
  if (first >= last) return KCP_OK;
  const uint64_t last_tile = (last - 1) / KCP_RANGE_TILE;
  work->evaluations += last - first;
  for (uint64_t tile = first / KCP_RANGE_TILE; tile <= last_tile; tile += RUN_TILES) {
    const uint64_t left = last_tile - tile + 1, run = left < RUN_TILES ? left : RUN_TILES;
    uint64_t open;
    const uint64_t within =
        kcp_range_tiles_test(kcp_range_tile(scan->tiles, tile), run, scan->tiles->dimensions,
                             query->values, &scan->limit, masks, &open);
    if (within == 0 && open == 0) continue;
    for (uint64_t i = 0; i < run; ++i) {
      const uint32_t lanes = lanes_of(tile + i, first, last);
      uint32_t found = masks[i].within & lanes;
      if ((masks[i].open & lanes) != 0)
        found |= recheck(scan, query, tile + i, masks[i].open & lanes, work);
      if (found == 0) continue;
      *count += (uint64_t)__builtin_popcount(found);
      if (results == NULL) continue;
      enum kcp_status status = add_neighbours(scan, tile + i, found, results, error);
      if (status != KCP_OK) return status;
    }
  }
  return KCP_OK;
}

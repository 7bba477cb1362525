#include "range_tiles.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "vectors.h"

#define VALUES_BEFORE_A_CHECK 16 /* dimensions summed between two looks at the sums */

/* Half a tile: eight points side by side, in as many registers as the machine needs. */
typedef double half_tile __attribute__((vector_size(64)));
_Static_assert(sizeof(half_tile) * 2 == KCP_RANGE_TILE * sizeof(double), "two halves make a tile");

enum kcp_status kcp_range_tiles_create(uint64_t capacity, uint32_t dimensions,
                                       struct kcp_range_tiles *tiles, struct kcp_error *error) {
  const uint64_t tile_count = (capacity + KCP_RANGE_TILE - 1) / KCP_RANGE_TILE + 1;
  uint64_t values, bytes;
  memset(tiles, 0, sizeof *tiles);
  if (__builtin_mul_overflow(tile_count, (uint64_t)KCP_RANGE_TILE * dimensions, &values) ||
      __builtin_mul_overflow(values, sizeof(double), &bytes))
    return kcp_out_of_memory(error, "tiles of points", UINT64_MAX);
  tiles->values = aligned_alloc(sizeof(half_tile), bytes);
  if (tiles->values == NULL) return kcp_out_of_memory(error, "tiles of points", bytes);
  tiles->capacity = capacity;
  tiles->dimensions = dimensions;
  return KCP_OK;
}

void kcp_range_tiles_free(struct kcp_range_tiles *tiles) {
  free(tiles->values);
  memset(tiles, 0, sizeof *tiles);
}

void kcp_range_tiles_fill(struct kcp_range_tiles *tiles, const struct kcp_points *points,
                          const uint32_t *places, const uint32_t *order) {
  const uint32_t dimensions = tiles->dimensions;
  tiles->count = points->count;
#pragma omp parallel for schedule(static)
  for (uint64_t tile = 0; tile < kcp_range_tile_count(tiles); ++tile) {
    double *values = tiles->values + tile * KCP_RANGE_TILE * dimensions;
    for (uint32_t j = 0; j < dimensions; ++j) {
      const double *column = kcp_points_column(points, order != NULL ? order[j] : j);
      for (uint64_t lane = 0; lane < KCP_RANGE_TILE; ++lane) {
        const uint64_t i = tile * KCP_RANGE_TILE + lane;
        double *value = values + j * KCP_RANGE_TILE + lane;
        *value = i >= tiles->count ? INFINITY : column[places != NULL ? places[i] : i];
      }
    }
  }
}

/* Sums of squared differences of all points of the tile; 0 when all passed `beyond` on the way,
 * with sums of no use. */
static inline __attribute__((always_inline)) uint64_t sum_squares(const double *tile,
                                                                  uint32_t dimensions,
                                                                  const double *query,
                                                                  double beyond, double *sums) {
  const half_tile *values = (const half_tile *)tile;
  half_tile low = {0}, high = {0};
  uint64_t within = 0;
  for (uint32_t first = 0; first < dimensions; first += VALUES_BEFORE_A_CHECK) {
    const uint32_t left = dimensions - first;
    const uint32_t last = left > VALUES_BEFORE_A_CHECK ? first + VALUES_BEFORE_A_CHECK : dimensions;
    for (uint32_t j = first; j < last; ++j) {
      half_tile low_difference = values[2 * j] - query[j];
      half_tile high_difference = values[2 * j + 1] - query[j];
      low += low_difference * low_difference;
      high += high_difference * high_difference;
    }
    memcpy(sums, &low, sizeof low);
    memcpy(sums + KCP_RANGE_TILE / 2, &high, sizeof high);
    within = 0;
    for (int lane = 0; lane < KCP_RANGE_TILE; ++lane) within += sums[lane] <= beyond;
    if (within == 0) return 0;
  }
  return within;
}

KCP_WIDEST_VECTORS uint64_t kcp_range_tiles_test(const double *values, uint64_t tile_count,
                                                 uint32_t dimensions, const double *query,
                                                 const struct kcp_range_limit *limit,
                                                 struct kcp_range_mask *masks, uint64_t *open) {
  double sums[KCP_RANGE_TILE];
  const double within_limit = limit->within, beyond = limit->beyond;
  uint64_t count = 0, open_count = 0;
  for (uint64_t tile = 0; tile < tile_count; ++tile) {
    uint32_t within = 0, below = 0;
    const uint64_t possible =
        sum_squares(values + tile * KCP_RANGE_TILE * dimensions, dimensions, query, beyond, sums);
    for (uint32_t lane = 0; lane < KCP_RANGE_TILE && possible > 0; ++lane) {
      within |= (uint32_t)(sums[lane] <= within_limit) << lane;
      below |= (uint32_t)(sums[lane] <= beyond) << lane;
    }
    masks[tile] = (struct kcp_range_mask){(uint16_t)within, (uint16_t)(below & ~within)};
    count += (uint64_t)__builtin_popcount(within);
    open_count += (uint64_t)__builtin_popcount(below & ~within);
  }
  *open = open_count;
  return count;
}

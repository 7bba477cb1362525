#include "range_tiles.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "vectors.h"

#define VALUES_BEFORE_A_CHECK 16 /* dimensions summed between two looks at the sums */

#define ALIGNMENT 64 /* of the widest vectors */

enum kcp_status kcp_range_tiles_create(uint64_t capacity, uint32_t dimensions,
                                       struct kcp_range_tiles *tiles, struct kcp_error *error) {
  const uint64_t tile_count = (capacity + KCP_RANGE_TILE - 1) / KCP_RANGE_TILE + 1;
  uint64_t values, bytes;
  memset(tiles, 0, sizeof *tiles);
  if (__builtin_mul_overflow(tile_count, (uint64_t)KCP_RANGE_TILE * dimensions, &values) ||
      __builtin_mul_overflow(values, sizeof(double), &bytes))
    return kcp_out_of_memory(error, "tiles of points", UINT64_MAX);
  tiles->values = aligned_alloc(ALIGNMENT, bytes);
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

#define TEST_NAME test_in_2_lanes
#define TEST_TARGET
#define TEST_LANES 2
#include "range_tile_test.h"

#ifdef KCP_X86_64
#define TEST_NAME test_in_4_lanes
#define TEST_TARGET __attribute__((target("avx2,popcnt")))
#define TEST_LANES 4
#include "range_tile_test.h"

#define TEST_NAME test_in_8_lanes
#define TEST_TARGET __attribute__((target("avx512f,popcnt")))
#define TEST_LANES 8
#include "range_tile_test.h"
#endif

uint64_t kcp_range_tiles_test(const double *values, uint64_t tile_count, uint32_t dimensions,
                              const double *query, const struct kcp_range_limit *limit,
                              struct kcp_range_mask *masks, uint64_t *open) {
#ifdef KCP_X86_64
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("popcnt"))
    return test_in_8_lanes(values, tile_count, dimensions, query, limit, masks, open);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt"))
    return test_in_4_lanes(values, tile_count, dimensions, query, limit, masks, open);
#endif
  return test_in_2_lanes(values, tile_count, dimensions, query, limit, masks, open);
}

/* Points in tiles of 16, dimension after dimension, and the test of a tile against a query (CPU).
 */
#ifndef KCP_CPU_RANGE_TILES_H
#define KCP_CPU_RANGE_TILES_H

#include <stdint.h>

#include "kcp/points.h"
#include "kcp/range_limit.h"

#define KCP_RANGE_TILE 16 /* points */

/* Tile t begins at values + t * KCP_RANGE_TILE * dimensions; in it, coordinate j of its point i is
 * at j * KCP_RANGE_TILE + i. Lanes behind the last point hold +inf, which is within no eps. */
struct kcp_range_tiles {
  uint64_t capacity; /* points */
  uint64_t count;
  uint32_t dimensions;
  double *values; /* owned */
};

/* Room for `capacity` points. */
enum kcp_status kcp_range_tiles_create(uint64_t capacity, uint32_t dimensions,
                                       struct kcp_range_tiles *tiles, struct kcp_error *error);
void kcp_range_tiles_free(struct kcp_range_tiles *tiles); /* a zeroed struct is allowed */

/* Point i of the tiles becomes points[places[i]] (places NULL: point i), its dimension j the
 * points' dimension order[j] (order NULL: j). */
void kcp_range_tiles_fill(struct kcp_range_tiles *tiles, const struct kcp_points *points,
                          const uint32_t *places, const uint32_t *order);

static inline uint64_t kcp_range_tile_count(const struct kcp_range_tiles *tiles) {
  return (tiles->count + KCP_RANGE_TILE - 1) / KCP_RANGE_TILE;
}

static inline const double *kcp_range_tile(const struct kcp_range_tiles *tiles, uint64_t tile) {
  return tiles->values + tile * KCP_RANGE_TILE * tiles->dimensions;
}

/* What a tile holds of a query's neighbours: a bit a point. */
struct kcp_range_mask {
  uint16_t within; /* surely */
  uint16_t open;   /* left open by the filter's sum */
};

/* Tests `tile_count` tiles from `values` on against a query (`dimensions` values in the tiles'
 * order), a mask a tile; stops with a tile once no point of it can be within. Returns how many
 * points are within, and in *open how many are left open. */
uint64_t kcp_range_tiles_test(const double *values, uint64_t tile_count, uint32_t dimensions,
                              const double *query, const struct kcp_range_limit *limit,
                              struct kcp_range_mask *masks, uint64_t *open);

#endif

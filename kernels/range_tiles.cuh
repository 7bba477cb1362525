/* Range joins on matrix units, tile against tile (include/kcp/range_tiles.h): the parts. */
#ifndef KCP_KERNELS_RANGE_TILES_CUH
#define KCP_KERNELS_RANGE_TILES_CUH

#include "range_join.cuh"

#define KCP_TILE_GROUP 32 /* tiles that are tested together, a lane each */

__host__ __device__ static inline uint64_t kcp_tile_first(const struct kcp_tile_set &set,
                                                          uint32_t tile) {
  return tile < set.near_count
             ? (uint64_t)tile * KCP_TILE_POINTS
             : set.near_points + (uint64_t)(tile - set.near_count) * KCP_TILE_POINTS;
}

__host__ __device__ static inline uint32_t kcp_tile_size(const struct kcp_tile_set &set,
                                                         uint32_t tile) {
  const uint64_t first = kcp_tile_first(set, tile);
  const uint64_t end = tile < set.near_count ? set.near_points : set.points;
  return end - first < KCP_TILE_POINTS ? (uint32_t)(end - first) : KCP_TILE_POINTS;
}

/* ---- points (range_tiles_quantise.cu) ---- */

/* The scale for D and eps, from the points on the device and the order of dimensions: whether there
 * is one, and whether the filter is worth its while with it. */
enum kcp_status kcp_tiles_choose_scale(struct kcp_range_join *join, bool *possible, bool *serves,
                                       struct kcp_error *error);
/* Fills the set and the places of the points. D becomes rows and columns of products, queries
 * become rows. */
enum kcp_status kcp_tiles_make(struct kcp_range_join *join, struct kcp_device_points *points,
                               struct kcp_tile_set *set, struct kcp_range_work *work,
                               struct kcp_error *error);

/* ---- which tiles meet (range_tiles_meet.cu) ---- */

/* What a tile of queries meets. */
struct kcp_tile_count {
  uint64_t points;
  uint32_t tiles, far_tiles; /* the far ones come last */
};

struct kcp_tile_test {
  struct kcp_tile_set queries, points;
  uint32_t dimensions;
  float reach;
  bool half; /* of a self-join: tiles from one's own on */
};

/* counts[tile] for every tile of queries (device). */
enum kcp_status kcp_tiles_count_met(struct kcp_range_join *join, const struct kcp_tile_test *test,
                                    struct kcp_tile_count *counts, struct kcp_error *error);
/* The same tiles as lists, of tiles first .. last - 1: those of tile t begin at firsts[t - first]
 * (device), ascending. met[entry] is the tile, met_by[entry] the tile of queries. */
enum kcp_status kcp_tiles_list_met(struct kcp_range_join *join, const struct kcp_tile_test *test,
                                   uint32_t first, uint32_t last, const uint64_t *firsts,
                                   uint32_t *met, uint32_t *met_by, struct kcp_error *error);

/* ---- pairs of tiles (range_tiles_multiply.cu, range_tiles_decide.cu) ---- */

/* Entries first .. first + count - 1, all of one tile of queries. */
struct kcp_tile_task {
  uint64_t first;
  uint32_t tile, count;
};

/* A batch of entries and where it goes. A pair is its entry << 14 | row << 7 | column. */
struct kcp_tile_work {
  struct kcp_tile_set queries, points;
  struct kcp_device_points query_points, point_points;
  struct kcp_tile_limits limits;
  uint32_t dimensions, blocks; /* of 16 dimensions in a row */
  double rank, within, beyond; /* of sums of rows */
  bool mirrors;                /* a pair of two tiles counts for both */
  const struct kcp_tile_task *tasks;
  const uint32_t *met, *met_by;
  uint32_t *totals;             /* by place of the query */
  uint32_t *masks;              /* four words a query and entry; NULL when not wanted */
  const uint64_t *mask_firsts;  /* where those of each tile from first_tile on begin: entries of
                                   its queries, query after query */
  const uint64_t *entry_firsts; /* likewise its entries */
  uint32_t first_tile;
  unsigned long long *open;       /* pairs that were left open */
  unsigned long long *open_count; /* grows, also beyond the capacity */
  uint64_t open_capacity;
  unsigned long long *rechecks;
};

/* Whether the units have the one property that is needed. */
enum kcp_status kcp_tiles_check_units(struct kcp_range_join *join, bool *exact,
                                      struct kcp_error *error);
/* The tasks first .. first + count - 1: what is surely a pair is counted, what is open is listed;
 * where the list is full it is decided on the spot. */
enum kcp_status kcp_tiles_multiply(struct kcp_range_join *join, const struct kcp_tile_work *work,
                                   uint64_t first, uint64_t count, struct kcp_error *error);
/* The first `count` open pairs. */
enum kcp_status kcp_tiles_decide(struct kcp_range_join *join, const struct kcp_tile_work *work,
                                 uint64_t count, struct kcp_error *error);
/* All pairs of the entries of the tasks first .. first + count - 1. */
enum kcp_status kcp_tiles_decide_all(struct kcp_range_join *join, const struct kcp_tile_work *work,
                                     uint64_t first, uint64_t count, struct kcp_error *error);

/* ---- the join (range_tiles.cu) ---- */

/* Whether the tiles may serve; KCP_BAD_INPUT names what cannot be had with --refine tensor. */
enum kcp_status kcp_tiles_check_options(const struct kcp_range_options *options, bool *wanted,
                                        struct kcp_error *error);
/* D in tiles, when it is *built; else nothing but the order of dimensions was found. */
enum kcp_status kcp_tiles_build(struct kcp_range_join *join, bool *built,
                                struct kcp_range_work *work, struct kcp_error *error);
/* As kcp_range_join_batches, of join->queries; `self` when they are D. */
enum kcp_status kcp_tiles_join(struct kcp_range_join *join, bool self, uint64_t *counts,
                               const struct kcp_range_sink *sink,
                               struct kcp_measurement *measurement, struct kcp_range_work *work,
                               struct kcp_error *error);

#endif

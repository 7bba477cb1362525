/* The first intersection test, tile against tile (this project, after RT-HiSS, section IV-D): two
 * passes with prefix sums between them.
 *
 * A block has 32 tiles of queries, and goes through the tiles of points 32 at a time: a warp has
 * four of the former, a lane one of the latter. Two tiles are too far apart when the gap between
 * their boxes is, or that between the spheres around the boxes' middles: 7 operations a dimension
 * and pair of tiles. Groups of 32 whose common boxes are too far apart are passed over.
 *
 * Differences of bounds are rounded once, relative to themselves; all else is a sum of squares of
 * d terms, or exact (bounds of near tiles are multiples of 1/16 below 2^12): the margins are twice
 * what that amounts to. */
#include "range_tiles.cuh"

static const int threads = 256;
static const int warps = threads / 32;
static const int rows = KCP_TILE_GROUP / warps; /* tiles of queries of a warp */
static const int step = 32;                     /* dimensions staged at a time */

/* What a block needs. */
struct meeting {
  struct kcp_tile_test test;
  float margin; /* factor of sums of squares, below 1 */
  float square; /* of the reach */
  uint32_t first_group;
  /* the second pass: */
  uint32_t first, last; /* tiles of queries */
  const uint64_t *firsts;
  uint32_t *met, *met_by;
};

__device__ static uint32_t groups_of(const struct kcp_tile_set &set) {
  return (set.count + KCP_TILE_GROUP - 1) / KCP_TILE_GROUP;
}

__device__ static float gap_of(float2 a, float2 b) {
  return fmaxf(fmaxf(a.x - b.y, b.x - a.y), 0.0f);
}

/* Whether tiles of two groups may meet; the whole warp. */
__device__ static bool groups_reach(const struct meeting &work, uint32_t group, uint32_t other) {
  const uint32_t query_groups = groups_of(work.test.queries),
                 point_groups = groups_of(work.test.points);
  float sum = 0;
  for (uint32_t j = threadIdx.x % 32; j < work.test.dimensions; j += 32) {
    const float gap = gap_of(work.test.queries.group_bounds[(uint64_t)j * query_groups + group],
                             work.test.points.group_bounds[(uint64_t)j * point_groups + other]);
    sum = fmaf(gap, gap, sum);
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
  return sum * work.margin <= work.square;
}

/* Bounds of a group's tiles, step dimensions from j on. */
__device__ static void stage(const struct kcp_tile_set &set, uint32_t dimensions, uint32_t group,
                             uint32_t j, float2 (*to)[KCP_TILE_GROUP]) {
  for (uint32_t i = threadIdx.x; i < step * KCP_TILE_GROUP; i += threads) {
    const uint32_t dimension = j + i / KCP_TILE_GROUP,
                   tile = group * KCP_TILE_GROUP + i % KCP_TILE_GROUP;
    if (dimension < dimensions && tile < set.count)
      to[i / KCP_TILE_GROUP][i % KCP_TILE_GROUP] =
          set.bounds[(uint64_t)dimension * set.count + tile];
  }
}

/* Bit b of meets[i]: whether the warp's tile i of queries meets tile b of the other group. */
__device__ static void test_groups(const struct meeting &work, uint32_t group, uint32_t other,
                                   float2 (*query_bounds)[KCP_TILE_GROUP],
                                   float2 (*point_bounds)[KCP_TILE_GROUP], uint32_t meets[rows]) {
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t dimensions = work.test.dimensions;
  float gaps[rows] = {0}, spans[rows] = {0};
  for (uint32_t j = 0; j < dimensions; j += step) {
    bool alive = false;
#pragma unroll
    for (int i = 0; i < rows; ++i) alive |= gaps[i] * work.margin <= work.square;
    if (__syncthreads_or(alive) == 0) break;
    stage(work.test.queries, dimensions, group, j, query_bounds);
    stage(work.test.points, dimensions, other, j, point_bounds);
    __syncthreads();
    const uint32_t here = dimensions - j < step ? dimensions - j : step;
    for (uint32_t k = 0; k < here; ++k) {
      const float2 b = point_bounds[k][lane];
#pragma unroll
      for (int i = 0; i < rows; ++i) {
        const float2 a = query_bounds[k][warp * rows + i];
        const float above = a.x - b.y, below = b.x - a.y;
        /* Twice the difference of the middles. */
        const float span = above - below;
        const float gap = fmaxf(fmaxf(above, below), 0.0f);
        gaps[i] = fmaf(gap, gap, gaps[i]);
        spans[i] = fmaf(span, span, spans[i]);
      }
    }
  }
  const uint32_t tile = other * KCP_TILE_GROUP + lane;
  const bool is_tile = tile < work.test.points.count;
  const float radius = is_tile ? work.test.points.radii[tile] : 0;
#pragma unroll
  for (int i = 0; i < rows; ++i) {
    const uint32_t query_tile = group * KCP_TILE_GROUP + warp * rows + i;
    bool met = is_tile && query_tile < work.test.queries.count &&
               (!work.test.half || tile >= query_tile) && gaps[i] * work.margin <= work.square;
    if (met) {
      const float apart =
          2 * (work.test.reach + radius + work.test.queries.radii[query_tile]) * (1 + 0x1p-20f);
      met = !(spans[i] * work.margin > apart * apart * (1 + 0x1p-20f));
    }
    meets[i] = __ballot_sync(~0u, met);
  }
}

/* What a tile lacks to be full, when it is one of the group's set bits. */
__device__ static uint32_t lacking(const struct kcp_tile_set &set, uint32_t group, uint32_t tiles,
                                   uint32_t tile) {
  if (tile / KCP_TILE_GROUP != group || (tiles >> tile % KCP_TILE_GROUP & 1) == 0) return 0;
  return KCP_TILE_POINTS - kcp_tile_size(set, tile);
}

/* Points of the tiles of a group whose bits are set. */
__device__ static uint32_t points_of(const struct kcp_tile_set &set, uint32_t group,
                                     uint32_t tiles) {
  uint32_t points = KCP_TILE_POINTS * __popc(tiles);
  points -= lacking(set, group, tiles, set.count - 1);
  if (set.near_count > 0 && set.near_count < set.count)
    points -= lacking(set, group, tiles, set.near_count - 1);
  return points;
}

/* Entries of the set bits, from `entry` on. */
__device__ static void list_tiles(const struct meeting &work, uint32_t query_tile, uint32_t group,
                                  uint32_t tiles, uint64_t entry) {
  const uint32_t lane = threadIdx.x % 32;
  if ((tiles >> lane & 1) == 0) return;
  entry += __popc(tiles & ((1u << lane) - 1));
  work.met[entry] = group * KCP_TILE_GROUP + lane;
  work.met_by[entry] = query_tile;
}

template <bool LISTS>
__global__ static void __launch_bounds__(threads)
    meet(struct meeting work, struct kcp_tile_count *counts) {
  __shared__ float2 query_bounds[step][KCP_TILE_GROUP], point_bounds[step][KCP_TILE_GROUP];
  __shared__ bool reached[warps];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t group = work.first_group + blockIdx.x, groups = groups_of(work.test.points);
  const uint32_t first_tile = group * KCP_TILE_GROUP + warp * rows;
  struct kcp_tile_count found[rows] = {};
  uint64_t entries[rows] = {0};
#pragma unroll
  for (int i = 0; i < rows; ++i)
    if (LISTS && first_tile + i >= work.first && first_tile + i < work.last)
      entries[i] = work.firsts[first_tile + i - work.first];
  for (uint32_t first = work.test.half ? group : 0; first < groups; first += warps) {
    const bool reaches = first + warp < groups && groups_reach(work, group, first + warp);
    __syncthreads();
    if (lane == 0) reached[warp] = reaches;
    __syncthreads();
    for (uint32_t other = first; other < first + warps && other < groups; ++other) {
      uint32_t meets[rows];
      if (!reached[other - first]) continue;
      test_groups(work, group, other, query_bounds, point_bounds, meets);
#pragma unroll
      for (int i = 0; i < rows; ++i) {
        if (LISTS) {
          if (first_tile + i < work.first || first_tile + i >= work.last) continue;
          list_tiles(work, first_tile + i, other, meets[i], entries[i]);
          entries[i] += __popc(meets[i]);
        } else {
          const uint32_t near_count = work.test.points.near_count;
          const bool is_far = other * KCP_TILE_GROUP + lane >= near_count;
          found[i].tiles += __popc(meets[i]);
          found[i].far_tiles += __popc(meets[i] & __ballot_sync(~0u, is_far));
          found[i].points += points_of(work.test.points, other, meets[i]);
        }
      }
      __syncthreads();
    }
  }
#pragma unroll
  for (int i = 0; i < rows; ++i)
    if (!LISTS && lane == 0 && first_tile + i < work.test.queries.count)
      counts[first_tile + i] = found[i];
}

static struct meeting make_meeting(const struct kcp_tile_test *test) {
  struct meeting work = {};
  work.test = *test;
  work.margin = (float)(1 - (test->dimensions + 16.0) * 0x1p-22);
  if (!(work.margin > 0)) work.margin = 0;
  work.square = test->reach * test->reach * (1 + 0x1p-20f);
  return work;
}

enum kcp_status kcp_tiles_count_met(struct kcp_range_join *join, const struct kcp_tile_test *test,
                                    struct kcp_tile_count *counts, struct kcp_error *error) {
  const struct meeting work = make_meeting(test);
  const uint32_t groups = (test->queries.count + KCP_TILE_GROUP - 1) / KCP_TILE_GROUP;
  meet<false><<<groups, threads, 0, join->stream>>>(work, counts);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

enum kcp_status kcp_tiles_list_met(struct kcp_range_join *join, const struct kcp_tile_test *test,
                                   uint32_t first, uint32_t last, const uint64_t *firsts,
                                   uint32_t *met, uint32_t *met_by, struct kcp_error *error) {
  struct meeting work = make_meeting(test);
  work.first = first;
  work.last = last;
  work.firsts = firsts;
  work.met = met;
  work.met_by = met_by;
  work.first_group = first / KCP_TILE_GROUP;
  const uint32_t groups = (last - 1) / KCP_TILE_GROUP - work.first_group + 1;
  meet<true><<<groups, threads, 0, join->stream>>>(work, NULL);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

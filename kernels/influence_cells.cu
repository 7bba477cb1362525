/* Areas and bounds of pairs, tile by tile.
 *
 * Launch: a block of 64 threads a tile of 8 x 8 cells, a thread a cell. The sites that can matter
 * (influence_lists.cu) pass through shared memory 128 at a time; each thread counts for 8 selected
 * sites at once how many sites are closer to its centre, and how many may be or surely are over
 * its cell. The shares of 64 sites of P and 64 of Q become masks of 64 bits, by ballot; then a
 * thread takes a pair, intersects masks, and adds their weights, or counts bits where all cells
 * weigh the same. A pair touches global memory once a tile.
 *
 * Memory: 8 KiB of shared memory a block. Work: for a tile with c sites of which s are selected,
 * 64 c ceil(s / 8) evaluations of about 45 operations of binary64, a division among them, and
 * 64 c s 3 comparisons, for P and for Q (again for each 64 sites of P when Q has more than 64).
 * Small tiles have short lists: c and s both shrink with the tile. */
#include "influence_cells.cuh"

static const int threads = kcp_tile_side * kcp_tile_side;
static const int warps = threads / 32;
static const uint32_t chunk = 128; /* sites in shared memory */
static const uint32_t batch = 64;  /* selected sites whose masks are kept */
static const uint32_t at_once = 8; /* selected sites a thread counts for */

/* Sites on their way past the threads. */
struct passing_sites {
  double x[chunk], y[chunk], squared_weight[chunk], inverse_square[chunk];
  uint32_t multiplicity[chunk];
};

/* A bit a cell for each of a batch of selected sites. */
struct share_masks {
  uint32_t inside[batch][warps]; /* the whole cell lies in the region */
  uint32_t maybe[batch][warps];  /* it is not known to lie outside */
  uint32_t centre[batch][warps]; /* its centre lies in the region */
};

/* A cell as its thread has it. */
struct cell_view {
  struct kcp_cell place;
  double x, y; /* centre */
  bool exists; /* tiles reach beyond the grid */
};

/* The list of one set in this tile. */
struct tile_list {
  const uint32_t *groups;
  uint32_t count, selected;
};

__device__ static struct tile_list list_of(const struct kcp_tile_lists lists, uint32_t tile) {
  const struct tile_list list = {lists.pool + lists.first[tile], lists.count[tile],
                                 lists.selected[tile]};
  return list;
}

__device__ static struct cell_view view_of(const struct kcp_influence_grid grid, uint32_t row,
                                           uint32_t column) {
  const struct kcp_cell cell = {(double)column, column + 1.0, (double)row, row + 1.0};
  struct cell_view view;
  view.place = kcp_cell_place(&grid, cell);
  view.x = kcp_cell_centre_x(&grid, cell);
  view.y = kcp_cell_centre_y(&grid, cell);
  view.exists = row < grid.rows && column < grid.columns;
  return view;
}

__device__ static void load_chunk(const struct kcp_device_sites sites, const struct tile_list list,
                                  uint32_t first, struct passing_sites *passing) {
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < chunk && first + i < list.count; i += threads) {
    const uint32_t group = list.groups[first + i];
    passing->x[i] = sites.x[group];
    passing->y[i] = sites.y[group];
    passing->squared_weight[i] = sites.squared_weight[group];
    passing->inverse_square[i] = sites.inverse_square[group];
    passing->multiplicity[i] = sites.multiplicity[group];
  }
  __syncthreads();
}

/* What a thread knows of the selected sites it counts for. */
struct own_sites {
  double low[at_once], high[at_once], rank[at_once];
  uint32_t maybe_closer[at_once], surely_closer[at_once], closer[at_once];
};

__device__ static void begin_counts(const struct kcp_device_sites sites,
                                    const struct tile_list list, uint32_t first, uint32_t end,
                                    const struct cell_view view, struct own_sites *own) {
#pragma unroll
  for (uint32_t j = 0; j < at_once; ++j) {
    const uint32_t group = list.groups[first + j < end ? first + j : first];
    const double x = sites.x[group], y = sites.y[group], inverse = sites.inverse_square[group];
    own->low[j] = kcp_rank_low(x, y, inverse, view.place);
    own->high[j] = kcp_rank_high(x, y, inverse, view.place);
    own->rank[j] = kcp_weighted_rank(x - view.x, y - view.y, sites.squared_weight[group]);
    own->maybe_closer[j] = 0u - sites.multiplicity[group]; /* itself is counted below */
    own->surely_closer[j] = 0;
    own->closer[j] = 0;
  }
}

__device__ static void count_chunk(const struct passing_sites *passing, uint32_t count,
                                   const struct cell_view view, struct own_sites *own) {
  for (uint32_t i = 0; i < count; ++i) {
    const double x = passing->x[i], y = passing->y[i], inverse = passing->inverse_square[i];
    const uint32_t multiplicity = passing->multiplicity[i];
    const double low = kcp_rank_low(x, y, inverse, view.place);
    const double high = kcp_rank_high(x, y, inverse, view.place);
    const double rank = kcp_weighted_rank(x - view.x, y - view.y, passing->squared_weight[i]);
#pragma unroll
    for (uint32_t j = 0; j < at_once; ++j) {
      own->maybe_closer[j] += low < own->high[j] ? multiplicity : 0;
      own->surely_closer[j] += high < own->low[j] ? multiplicity : 0;
      own->closer[j] += rank < own->rank[j] ? multiplicity : 0;
    }
  }
}

__device__ static void store_masks(const struct own_sites *own, uint64_t k, uint32_t first,
                                   uint32_t count, bool exists, struct share_masks *masks) {
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (uint32_t j = 0; j < at_once; ++j) {
    if (first + j >= count) continue; /* the same for all threads */
    const enum kcp_cell_share share = kcp_share_of(own->maybe_closer[j], own->surely_closer[j], k);
    const uint32_t inside = __ballot_sync(0xffffffffu, exists && share == KCP_CELL_INSIDE);
    const uint32_t maybe = __ballot_sync(0xffffffffu, exists && share != KCP_CELL_OUTSIDE);
    const uint32_t centre = __ballot_sync(0xffffffffu, exists && own->closer[j] < k);
    if (lane != 0) continue;
    masks->inside[first + j][warp] = inside;
    masks->maybe[first + j][warp] = maybe;
    masks->centre[first + j][warp] = centre;
  }
}

/* The masks of selected sites first .. first + count - 1 of the tile's list, count <= batch. */
__device__ static void classify(const struct kcp_device_sites sites, const struct tile_list list,
                                uint64_t k, uint32_t first, uint32_t count,
                                const struct cell_view view, struct passing_sites *passing,
                                struct share_masks *masks) {
  for (uint32_t done = 0; done < count; done += at_once) {
    struct own_sites own;
    begin_counts(sites, list, first + done, first + count, view, &own);
    for (uint32_t from = 0; from < list.count; from += chunk) {
      if (done == 0 || list.count > chunk) load_chunk(sites, list, from, passing);
      const uint32_t left = list.count - from;
      count_chunk(passing, left < chunk ? left : chunk, view, &own);
    }
    store_masks(&own, k, done, count, view.exists, masks);
  }
}

__device__ static unsigned long long weight_of(uint32_t mask, const uint64_t *cells,
                                               const struct kcp_device_weights weights) {
  if (weights.cells == NULL) return __popc(mask) * weights.each;
  unsigned long long weight = 0;
  for (; mask != 0; mask &= mask - 1) weight += cells[__ffs(mask) - 1];
  return weight;
}

/* The two sets as a kernel takes them. */
struct both_sets {
  struct kcp_device_sites sites[2];
  struct kcp_tile_lists lists[2];
  uint64_t k[2];
};

__device__ static void add_pairs(const struct both_sets sets, const struct tile_list p_list,
                                 const struct tile_list q_list, uint32_t p_first, uint32_t p_count,
                                 uint32_t q_first, uint32_t q_count,
                                 const struct share_masks *masks, const uint64_t *cells,
                                 const struct kcp_device_weights weights,
                                 const struct kcp_device_pair_table table) {
  for (uint32_t pair = threadIdx.x; pair < p_count * q_count; pair += threads) {
    const uint32_t i = pair / q_count, j = pair % q_count;
    struct kcp_device_pair_weight sum = {0, 0, 0};
    for (uint32_t warp = 0; warp < warps; ++warp) {
      const uint32_t inside = masks[0].inside[i][warp] & masks[1].inside[j][warp];
      const uint32_t unsure = masks[0].maybe[i][warp] & masks[1].maybe[j][warp] & ~inside;
      const uint32_t centre = masks[0].centre[i][warp] & masks[1].centre[j][warp] & unsure;
      sum.sure += weight_of(inside, cells + 32 * warp, weights);
      sum.unsure += weight_of(unsure, cells + 32 * warp, weights);
      sum.centre += weight_of(centre, cells + 32 * warp, weights);
    }
    if (sum.sure + sum.unsure == 0) continue;
    const struct kcp_group_pair groups = {p_list.groups[p_first + i], q_list.groups[q_first + j]};
    kcp_add_to_pair(table, sets.sites[0], sets.sites[1], groups, sum);
  }
}

__device__ static uint32_t batch_at(uint32_t first, uint32_t count) {
  return count - first < batch ? count - first : batch;
}

__device__ static unsigned long long evaluations_of(const struct tile_list list) {
  return (unsigned long long)threads * list.count * ((list.selected + at_once - 1) / at_once);
}

__global__ static void __launch_bounds__(threads, 8)
    add_tiles(const struct kcp_influence_grid grid, const struct both_sets sets,
              const struct kcp_device_weights weights, const struct kcp_device_pair_table table,
              unsigned long long *evaluations) {
  __shared__ struct passing_sites passing;
  __shared__ struct share_masks masks[2];
  __shared__ uint64_t cells[threads];
  const uint32_t tile = blockIdx.x;
  const struct tile_list p_list = list_of(sets.lists[0], tile);
  const struct tile_list q_list = list_of(sets.lists[1], tile);
  const uint32_t row = tile / sets.lists[0].columns * kcp_tile_side + threadIdx.x / kcp_tile_side;
  const uint32_t column =
      tile % sets.lists[0].columns * kcp_tile_side + threadIdx.x % kcp_tile_side;
  const struct cell_view view = view_of(grid, row, column);
  uint64_t weight = 0;
  if (p_list.selected == 0 || q_list.selected == 0) return;
  if (view.exists)
    weight =
        weights.cells != NULL ? weights.cells[(uint64_t)row * grid.columns + column] : weights.each;
  cells[threadIdx.x] = weight;
  if (__syncthreads_or(weight != 0) == 0) return;
  for (uint32_t p = 0; p < p_list.selected; p += batch) {
    const uint32_t p_count = batch_at(p, p_list.selected);
    classify(sets.sites[0], p_list, sets.k[0], p, p_count, view, &passing, &masks[0]);
    for (uint32_t q = 0; q < q_list.selected; q += batch) {
      const uint32_t q_count = batch_at(q, q_list.selected);
      if (p == 0 || q_list.selected > batch)
        classify(sets.sites[1], q_list, sets.k[1], q, q_count, view, &passing, &masks[1]);
      __syncthreads();
      add_pairs(sets, p_list, q_list, p, p_count, q, q_count, masks, cells, weights, table);
      __syncthreads();
    }
  }
  if (threadIdx.x == 0) atomicAdd(evaluations, evaluations_of(p_list) + evaluations_of(q_list));
}

enum kcp_status kcp_cells_launch(const struct kcp_influence_grid *grid,
                                 const struct kcp_device_sites sites[2], const uint64_t k[2],
                                 const struct kcp_list_levels levels[2],
                                 const struct kcp_device_weights *weights,
                                 const struct kcp_device_pair_table *table,
                                 unsigned long long *evaluations, cudaStream_t stream,
                                 struct kcp_error *error) {
  struct both_sets sets;
  for (int set = 0; set < 2; ++set) {
    sets.sites[set] = sites[set];
    sets.lists[set] = levels[set].levels[levels[set].count - 1];
    sets.k[set] = k[set];
  }
  const uint32_t tiles = sets.lists[0].rows * sets.lists[0].columns;
  add_tiles<<<tiles, threads, 0, stream>>>(*grid, sets, *weights, *table, evaluations);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

/* Lists of the sites that can matter in a tile.
 *
 * A site can matter in a tile when its lowest rank over it is at most a rank that at least k sites
 * surely do not exceed: beyond that, k sites are closer at every point, and they decide every
 * count that is asked for (kcp_share_of) in the same way. Lists of tiles of 8 x 8 cells are made
 * from those of tiles 8 times as wide, and so on while all sites for every tile would be too many.
 *
 * Launch: a block of 256 threads a tile. The k-th lowest of the highest ranks is bracketed by
 * bisection on the upper 32 bits of the binary64 values, up to k / 8 too many being good enough;
 * the first 4096 of them stay in shared memory (16 KiB). Work: about 10 passes over the parent's
 * list, 10 operations of binary64 for each site beyond the first 4096; 4 bytes written a site
 * kept. */
#include "influence_lists.cuh"

static const int threads = 256;
static const int warps = threads / 32;
static const uint32_t kept_in_shared = 4096;
static const uint64_t direct_work = UINT64_C(1) << 24; /* tiles x sites that need no larger tiles */
static const uint32_t widening = 8;

__device__ static uint32_t upper_word(double value) {
  return (uint32_t)(__double_as_longlong(value) >> 32);
}

/* The sum over the block, for all threads. */
__device__ static uint32_t block_sum(uint32_t own, uint32_t *shared) {
  for (int step = 16; step > 0; step /= 2) own += __shfl_down_sync(0xffffffffu, own, step);
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = own;
  __syncthreads();
  uint32_t sum = 0;
  for (int warp = 0; warp < warps; ++warp) sum += shared[warp];
  return sum;
}

/* The least over the block, for all threads. */
__device__ static uint32_t block_least(uint32_t own, uint32_t *shared) {
  for (int step = 16; step > 0; step /= 2) own = min(own, __shfl_down_sync(0xffffffffu, own, step));
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = own;
  __syncthreads();
  uint32_t least = shared[0];
  for (int warp = 1; warp < warps; ++warp) least = min(least, shared[warp]);
  return least;
}

/* A tile's parent list; `groups` NULL means all groups in order. */
struct parent_list {
  const uint32_t *groups;
  uint32_t count;
};

__device__ static uint32_t group_at(const struct parent_list parent, uint32_t i) {
  return parent.groups != NULL ? parent.groups[i] : i;
}

__device__ static struct kcp_cell tile_place(const struct kcp_influence_grid grid,
                                             const struct kcp_tile_lists lists, uint32_t tile) {
  const uint32_t row = tile / lists.columns, column = tile % lists.columns;
  struct kcp_cell cell;
  cell.left = (double)column * lists.side;
  cell.bottom = (double)row * lists.side;
  cell.right = fmin(cell.left + lists.side, (double)grid.columns);
  cell.top = fmin(cell.bottom + lists.side, (double)grid.rows);
  return kcp_cell_place(&grid, cell);
}

__device__ static uint32_t highest_of(const struct kcp_device_sites sites, uint32_t group,
                                      const struct kcp_cell place) {
  return upper_word(
      kcp_rank_high(sites.x[group], sites.y[group], sites.inverse_square[group], place));
}

__device__ static uint32_t lowest_of(const struct kcp_device_sites sites, uint32_t group,
                                     const struct kcp_cell place) {
  return upper_word(
      kcp_rank_low(sites.x[group], sites.y[group], sites.inverse_square[group], place));
}

/* An upper word that the highest ranks of at least k sites of the list do not exceed. */
__device__ static uint32_t find_limit(const struct kcp_device_sites sites,
                                      const struct parent_list parent, const struct kcp_cell place,
                                      uint64_t k, uint32_t *highest, uint32_t *sums) {
  if (parent.count <= k) return UINT32_MAX;
  uint32_t least = UINT32_MAX, most = 0;
  for (uint32_t i = threadIdx.x; i < parent.count; i += threads) {
    const uint32_t own = highest_of(sites, group_at(parent, i), place);
    if (i < kept_in_shared) highest[i] = own;
    least = min(least, own);
    most = max(most, own);
  }
  uint32_t low = block_least(least, sums), high = ~block_least(~most, sums);
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    uint32_t own = 0;
    for (uint32_t i = threadIdx.x; i < parent.count; i += threads)
      own += (i < kept_in_shared ? highest[i] : highest_of(sites, group_at(parent, i), place)) <=
             middle;
    const uint32_t count = block_sum(own, sums);
    if (count < k) {
      low = middle + 1;
    } else {
      high = middle;
      if (count <= k + k / 8) break;
    }
  }
  return high;
}

__global__ static void __launch_bounds__(threads)
    narrow_lists(const struct kcp_influence_grid grid, const struct kcp_device_sites sites,
                 uint64_t k, const struct kcp_tile_lists parents, bool has_parents,
                 const struct kcp_tile_lists lists) {
  __shared__ uint32_t highest[kept_in_shared];
  __shared__ uint32_t sums[warps];
  __shared__ uint64_t first;
  __shared__ bool fits;
  __shared__ uint32_t cursors[2];
  const uint32_t tile = blockIdx.x;
  const struct kcp_cell place = tile_place(grid, lists, tile);
  struct parent_list parent = {NULL, sites.count};
  if (has_parents) {
    const uint32_t ratio = parents.side / lists.side;
    const uint64_t above =
        (uint64_t)(tile / lists.columns / ratio) * parents.columns + tile % lists.columns / ratio;
    parent.groups = parents.pool + parents.first[above];
    parent.count = parents.count[above];
  }
  const uint32_t limit = find_limit(sites, parent, place, k, highest, sums);
  uint32_t selected = 0, others = 0;
  for (uint32_t i = threadIdx.x; i < parent.count; i += threads) {
    const uint32_t group = group_at(parent, i);
    if (lowest_of(sites, group, place) > limit) continue;
    if (sites.number[group] != kcp_not_selected)
      ++selected;
    else
      ++others;
  }
  selected = block_sum(selected, sums);
  others = block_sum(others, sums);
  if (threadIdx.x == 0) {
    const uint32_t count = selected + others;
    first = atomicAdd(lists.used, (unsigned long long)count);
    fits = first + count <= lists.capacity;
    lists.first[tile] = first;
    lists.count[tile] = fits ? count : 0;
    lists.selected[tile] = fits ? selected : 0;
    cursors[0] = 0;
    cursors[1] = selected;
  }
  __syncthreads();
  if (!fits) return;
  for (uint32_t i = threadIdx.x; i < parent.count; i += threads) {
    const uint32_t group = group_at(parent, i);
    if (lowest_of(sites, group, place) > limit) continue;
    const int kind = sites.number[group] != kcp_not_selected ? 0 : 1;
    lists.pool[first + atomicAdd(&cursors[kind], 1u)] = group;
  }
}

static uint32_t tiles_of(uint32_t cells, uint32_t side) {
  return (cells + side - 1) / side;
}

static struct kcp_tile_lists shape_of(const struct kcp_influence_grid *grid, uint32_t side) {
  struct kcp_tile_lists lists = {};
  lists.side = side;
  lists.rows = tiles_of(grid->rows, side);
  lists.columns = tiles_of(grid->columns, side);
  return lists;
}

static uint64_t tile_count(const struct kcp_tile_lists *lists) {
  return (uint64_t)lists->rows * lists->columns;
}

/* A guess of what a tile's list holds: enough, or the pool is enlarged. */
static uint64_t guess_capacity(const struct kcp_tile_lists *lists, uint64_t sites, uint64_t k) {
  const uint64_t guess = 6 * k + 64, tiles = tile_count(lists);
  const uint64_t wide = lists->side > kcp_tile_side ? sites : 0;
  return tiles * (guess < sites ? guess : sites) + 8 * wide;
}

static enum kcp_status allocate_level(struct kcp_tile_lists *lists, uint64_t capacity,
                                      struct kcp_device_memory *memory, struct kcp_error *error) {
  const uint64_t tiles = tile_count(lists);
  lists->capacity = capacity;
  KCP_TRY(kcp_device_array(memory, tiles, &lists->first, "lists of sites", error));
  KCP_TRY(kcp_device_array(memory, tiles, &lists->count, "lists of sites", error));
  KCP_TRY(kcp_device_array(memory, tiles, &lists->selected, "lists of sites", error));
  KCP_TRY(kcp_device_array(memory, 1, &lists->used, "lists of sites", error));
  return kcp_device_array(memory, capacity, &lists->pool, "lists of sites", error);
}

enum kcp_status kcp_list_levels_create(const struct kcp_influence_grid *grid,
                                       const struct kcp_device_sites *sites, uint64_t k,
                                       struct kcp_list_levels *levels, struct kcp_error *error) {
  uint32_t side = kcp_tile_side;
  levels->count = 1;
  for (struct kcp_tile_lists widest = shape_of(grid, side);
       levels->count < KCP_TILE_LEVELS && tile_count(&widest) > 1 &&
       tile_count(&widest) * sites->count > direct_work;
       widest = shape_of(grid, side)) {
    side *= widening;
    ++levels->count;
  }
  for (int level = 0; level < levels->count; ++level, side /= widening) {
    struct kcp_tile_lists *lists = &levels->levels[level];
    *lists = shape_of(grid, side);
    KCP_TRY(allocate_level(lists, guess_capacity(lists, sites->count, k), &levels->memory[level],
                           error));
  }
  return KCP_OK;
}

void kcp_list_levels_free(struct kcp_list_levels *levels) {
  for (int level = 0; level < KCP_TILE_LEVELS; ++level)
    kcp_device_memory_free(&levels->memory[level]);
}

uint64_t kcp_list_levels_bytes(const struct kcp_list_levels *levels) {
  uint64_t bytes = 0;
  for (int level = 0; level < levels->count; ++level) bytes += levels->memory[level].device_bytes;
  return bytes;
}

enum kcp_status kcp_list_levels_launch(const struct kcp_influence_grid *grid,
                                       const struct kcp_device_sites *sites, uint64_t k,
                                       const struct kcp_list_levels *levels, cudaStream_t stream,
                                       struct kcp_error *error) {
  for (int level = 0; level < levels->count; ++level) {
    const struct kcp_tile_lists *lists = &levels->levels[level];
    const struct kcp_tile_lists *parents = &levels->levels[level > 0 ? level - 1 : 0];
    KCP_CUDA_TRY(cudaMemsetAsync(lists->used, 0, sizeof *lists->used, stream));
    narrow_lists<<<(uint32_t)tile_count(lists), threads, 0, stream>>>(*grid, *sites, k, *parents,
                                                                      level > 0, *lists);
    KCP_CUDA_TRY(cudaGetLastError());
  }
  return KCP_OK;
}

enum kcp_status kcp_list_levels_check(struct kcp_list_levels *levels, bool *complete,
                                      cudaStream_t stream, struct kcp_error *error) {
  unsigned long long used[KCP_TILE_LEVELS];
  *complete = true;
  for (int level = 0; level < levels->count; ++level)
    KCP_CUDA_TRY(cudaMemcpyAsync(&used[level], levels->levels[level].used, sizeof used[level],
                                 cudaMemcpyDeviceToHost, stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(stream));
  for (int level = 0; level < levels->count; ++level) {
    struct kcp_tile_lists *lists = &levels->levels[level];
    if (used[level] <= lists->capacity) continue;
    *complete = false;
    kcp_device_memory_free(&levels->memory[level]);
    KCP_TRY(allocate_level(lists, used[level], &levels->memory[level], error));
  }
  return KCP_OK;
}

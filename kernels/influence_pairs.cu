/* The two steps of the paper.
 *
 * k-th nearest sites (section 3.1, after CudaKNN): a thread a cell, blocks of 256; all sites pass
 * through shared memory 256 at a time (7 KiB), and each thread keeps its k smallest ranks in
 * order, in global memory, coalesced. Work: cells x sites ranks, and an insertion for each that is
 * among the k smallest so far.
 *
 * Areas (section 3.2): a thread a pair, blocks of 256; the cells pass through shared memory 256 at
 * a time: centre, weight, and the two distances (10 KiB). The paper gives each pair all cells; here
 * slices of the cells are dealt over the second dimension of the launch, because n' m' threads
 * alone leave most of a GPU of today idle, and a slice ends with one atomic addition. Work: cells
 * x n' m' x 2 ranks. */
#include "influence_pairs.cuh"

static const int threads = 256;
static const uint64_t nearest_bytes = UINT64_C(1) << 28;
static const uint32_t blocks_a_multiprocessor = 8;

__device__ static struct kcp_cell cell_at(const struct kcp_influence_grid grid, uint64_t cell) {
  const double row = (double)(cell / grid.columns), column = (double)(cell % grid.columns);
  const struct kcp_cell place = {column, column + 1.0, row, row + 1.0};
  return place;
}

/* Puts a rank among the k smallest, `multiplicity` times. */
__device__ static void insert(double rank, uint32_t multiplicity, uint64_t k, uint64_t stride,
                              double *nearest) {
  for (uint32_t times = 0; times < multiplicity && rank < nearest[(k - 1) * stride]; ++times) {
    uint64_t place = k - 1;
    for (; place > 0 && nearest[(place - 1) * stride] > rank; --place)
      nearest[place * stride] = nearest[(place - 1) * stride];
    nearest[place * stride] = rank;
  }
}

__global__ static void __launch_bounds__(threads)
    find_kth(const struct kcp_influence_grid grid, const struct kcp_device_sites sites, uint64_t k,
             uint64_t first, uint64_t count, uint64_t stride, double *nearest, double *kth) {
  __shared__ double x[threads], y[threads], squared_weight[threads];
  __shared__ uint32_t multiplicity[threads];
  const uint64_t place = (uint64_t)blockIdx.x * threads + threadIdx.x;
  const bool exists = place < count;
  const struct kcp_cell cell = cell_at(grid, first + (exists ? place : 0));
  const double cx = kcp_cell_centre_x(&grid, cell), cy = kcp_cell_centre_y(&grid, cell);
  double *own = nearest + place; /* touched only where it exists */
  double last = INFINITY;
  for (uint64_t j = 0; j < k && exists; ++j) own[j * stride] = INFINITY;
  for (uint32_t from = 0; from < sites.count; from += threads) {
    const uint32_t i = from + threadIdx.x;
    __syncthreads();
    if (i < sites.count) {
      x[threadIdx.x] = sites.x[i];
      y[threadIdx.x] = sites.y[i];
      squared_weight[threadIdx.x] = sites.squared_weight[i];
      multiplicity[threadIdx.x] = sites.multiplicity[i];
    }
    __syncthreads();
    const uint32_t left = sites.count - from;
    for (uint32_t s = 0; s < threads && s < left && exists; ++s) {
      const double rank = kcp_weighted_rank(x[s] - cx, y[s] - cy, squared_weight[s]);
      if (rank >= last) continue;
      insert(rank, multiplicity[s], k, stride, own);
      last = own[(k - 1) * stride];
    }
  }
  if (exists) kth[first + place] = last;
}

struct slices {
  uint64_t cells; /* of a slice, a multiple of the threads */
  uint64_t all;
};

__global__ static void __launch_bounds__(threads)
    add_areas(const struct kcp_influence_grid grid, const struct kcp_device_sites p_sites,
              const struct kcp_device_sites q_sites, const struct kcp_device_weights weights,
              const double *kth_p, const double *kth_q, const struct slices slices,
              unsigned long long *areas) {
  __shared__ double x[threads], y[threads], nearest_p[threads], nearest_q[threads];
  __shared__ uint64_t weight[threads];
  const uint64_t pair = (uint64_t)blockIdx.x * threads + threadIdx.x;
  const bool exists = pair < (uint64_t)p_sites.selected_count * q_sites.selected_count;
  const uint32_t p = p_sites.selected[exists ? pair / q_sites.selected_count : 0];
  const uint32_t q = q_sites.selected[exists ? pair % q_sites.selected_count : 0];
  const double px = p_sites.x[p], py = p_sites.y[p], p_weight = p_sites.squared_weight[p];
  const double qx = q_sites.x[q], qy = q_sites.y[q], q_weight = q_sites.squared_weight[q];
  const uint64_t begin = blockIdx.y * slices.cells;
  const uint64_t end = begin + slices.cells < slices.all ? begin + slices.cells : slices.all;
  unsigned long long area = 0;
  for (uint64_t from = begin; from < end; from += threads) {
    const uint64_t own = from + threadIdx.x;
    __syncthreads();
    if (own < end) {
      const struct kcp_cell cell = cell_at(grid, own);
      x[threadIdx.x] = kcp_cell_centre_x(&grid, cell);
      y[threadIdx.x] = kcp_cell_centre_y(&grid, cell);
      nearest_p[threadIdx.x] = kth_p[own];
      nearest_q[threadIdx.x] = kth_q[own];
      weight[threadIdx.x] = weights.cells != NULL ? weights.cells[own] : weights.each;
    }
    __syncthreads();
    const uint64_t left = end - from;
    for (uint32_t i = 0; i < threads && i < left; ++i)
      if (kcp_weighted_rank(px - x[i], py - y[i], p_weight) <= nearest_p[i] &&
          kcp_weighted_rank(qx - x[i], qy - y[i], q_weight) <= nearest_q[i])
        area += weight[i];
  }
  if (exists && area > 0) atomicAdd(&areas[pair], area);
}

static uint64_t cells_of(const struct kcp_influence_grid *grid) {
  return (uint64_t)grid->rows * grid->columns;
}

static uint64_t pairs_of(const struct kcp_device_sites sites[2]) {
  return (uint64_t)sites[0].selected_count * sites[1].selected_count;
}

enum kcp_status kcp_paper_method_create(const struct kcp_influence_grid *grid,
                                        const struct kcp_device_sites sites[2], const uint64_t k[2],
                                        struct kcp_device_memory *memory,
                                        struct kcp_paper_method *method, struct kcp_error *error) {
  const uint64_t cells = cells_of(grid), most = k[0] > k[1] ? k[0] : k[1];
  const uint64_t fitting = nearest_bytes / sizeof(double) / most;
  method->nearest_cells = fitting < threads ? threads : fitting < cells ? fitting : cells;
  for (int set = 0; set < 2; ++set)
    KCP_TRY(kcp_device_array(memory, cells, &method->kth[set], "k-th nearest sites", error));
  KCP_TRY(kcp_device_array(memory, most * method->nearest_cells, &method->nearest, "nearest sites",
                           error));
  return kcp_device_array(memory, pairs_of(sites), &method->areas, "areas", error);
}

enum kcp_status kcp_kth_launch(const struct kcp_influence_grid *grid,
                               const struct kcp_device_sites sites[2], const uint64_t k[2],
                               const struct kcp_paper_method *method, cudaStream_t stream,
                               struct kcp_error *error) {
  const uint64_t cells = cells_of(grid);
  for (int set = 0; set < 2; ++set)
    for (uint64_t first = 0; first < cells; first += method->nearest_cells) {
      const uint64_t left = cells - first;
      const uint64_t count = left < method->nearest_cells ? left : method->nearest_cells;
      find_kth<<<(uint32_t)((count + threads - 1) / threads), threads, 0, stream>>>(
          *grid, sites[set], k[set], first, count, method->nearest_cells, method->nearest,
          method->kth[set]);
      KCP_CUDA_TRY(cudaGetLastError());
    }
  return KCP_OK;
}

enum kcp_status kcp_pair_areas_launch(const struct kcp_influence_grid *grid,
                                      const struct kcp_device_sites sites[2],
                                      const struct kcp_device_weights *weights,
                                      const struct kcp_paper_method *method,
                                      uint32_t multiprocessors, cudaStream_t stream,
                                      struct kcp_error *error) {
  const uint64_t pairs = pairs_of(sites), blocks = (pairs + threads - 1) / threads;
  const uint64_t wanted = (uint64_t)multiprocessors * blocks_a_multiprocessor;
  const uint64_t most = wanted > blocks ? wanted / blocks : 1;
  struct slices slices = {0, cells_of(grid)};
  slices.cells = ((slices.all + most - 1) / most + threads - 1) / threads * threads;
  const dim3 launch((uint32_t)blocks, (uint32_t)((slices.all + slices.cells - 1) / slices.cells));
  KCP_CUDA_TRY(cudaMemsetAsync(method->areas, 0, pairs * sizeof *method->areas, stream));
  add_areas<<<launch, threads, 0, stream>>>(*grid, sites[0], sites[1], *weights, method->kth[0],
                                            method->kth[1], slices, method->areas);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

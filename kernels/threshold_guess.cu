#include "threshold_guess.cuh"

#include <cfloat>

static const int threads = 256;
static const int find_threads = 1024;

__device__ static double rank_between(struct kcp_metric metric, uint32_t dimensions,
                                      const struct kcp_point_set &a, uint32_t i,
                                      const struct kcp_point_set &b, uint32_t j) {
  double rank = 0;
  for (uint32_t c = 0; c < dimensions; ++c)
    rank = kcp_metric_combine(
        metric.kind, rank,
        kcp_metric_term(metric.kind, metric.power,
                        a.columns[c * a.stride + i] - b.columns[c * b.stride + j]));
  return rank;
}

/* Adds one to the bucket for every thread of the warp that asks, once for all that ask alike. */
__device__ static void count_rank(unsigned *histogram, bool counts, double rank) {
  unsigned bucket = (unsigned)((unsigned long long)__double_as_longlong(rank) >> kcp_guess_shift);
  unsigned asking = __ballot_sync(0xffffffffu, counts);
  if (!counts) return;
  unsigned alike = __match_any_sync(asking, bucket);
  if ((threadIdx.x & 31) == __ffs(alike) - 1) atomicAdd(&histogram[bucket], __popc(alike));
}

__global__ static void count_sample(const struct kcp_cells axes,
                                    const struct kcp_morton_frame frame, struct kcp_metric metric,
                                    bool self, uint32_t dimensions, const struct kcp_point_set held,
                                    const uint64_t *keys, const uint32_t *order,
                                    uint32_t held_count, const struct kcp_point_set sample,
                                    uint32_t window, unsigned *histogram) {
  uint32_t q = blockIdx.x * blockDim.x + threadIdx.x;
  bool active = q < sample.count;
  uint32_t first = 0, last = 0;
  if (active) {
    double point[KCP_MAX_AXES];
    kcp_set_axes(sample, axes, q, point);
    uint64_t key = kcp_morton_key(&frame, point);
    uint32_t low = 0, high = held_count;
    while (low < high) {
      uint32_t middle = low + (high - low) / 2;
      if (keys[middle] < key)
        low = middle + 1;
      else
        high = middle;
    }
    first = low > window ? low - window : 0;
    last = held_count - low > window ? low + window : held_count;
    if (window >= held_count) first = 0, last = held_count;
  }
  for (uint32_t at = first; __any_sync(0xffffffffu, at < last); ++at) {
    bool counts = at < last;
    double rank = 0;
    if (counts) {
      uint32_t h = order[at];
      rank = rank_between(metric, dimensions, held, h, sample, q);
      counts = rank <= DBL_MAX && (!self || kcp_set_record(held, h) < kcp_set_record(sample, q));
    }
    count_rank(histogram, counts, rank);
  }
}

/* One block: the sums of shares of buckets, each summed by a warp so that reads are coalesced, then
 * the share that holds the wanted-th, then the bucket in it. */
__global__ static void find_rank(const unsigned *histogram, unsigned long long wanted,
                                 double *rank) {
  __shared__ unsigned long long sums[find_threads];
  const uint32_t share = kcp_guess_buckets / find_threads;
  uint32_t lane = threadIdx.x % 32;
  for (uint32_t s = threadIdx.x / 32; s < find_threads; s += find_threads / 32) {
    unsigned long long sum = 0;
    for (uint32_t b = lane; b < share; b += 32) sum += histogram[s * share + b];
    for (int offset = 16; offset > 0; offset /= 2)
      sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (lane == 0) sums[s] = sum;
  }
  __syncthreads();
  unsigned long long own = sums[threadIdx.x];
  for (int step = 1; step < find_threads; step *= 2) {
    unsigned long long before = (int)threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
    __syncthreads();
    sums[threadIdx.x] += before;
    __syncthreads();
  }
  if (threadIdx.x == 0 && sums[find_threads - 1] < wanted) *rank = INFINITY;
  unsigned long long reached = sums[threadIdx.x] - own;
  if (reached >= wanted || sums[threadIdx.x] < wanted) return;
  uint32_t bucket = threadIdx.x * share;
  while ((reached += histogram[bucket]) < wanted) ++bucket;
  *rank =
      __longlong_as_double((long long)(((unsigned long long)bucket + 1) << kcp_guess_shift) - 1);
}

enum kcp_status kcp_guess_count(const struct kcp_cells *axes, const struct kcp_morton_frame *frame,
                                struct kcp_metric metric, bool self, uint32_t dimensions,
                                const struct kcp_point_set *held,
                                const struct kcp_morton_sorter *sorter, uint32_t held_count,
                                const struct kcp_point_set *sample, uint32_t window,
                                unsigned *histogram, cudaStream_t stream, struct kcp_error *error) {
  KCP_CUDA_TRY(cudaMemsetAsync(histogram, 0, kcp_guess_buckets * sizeof *histogram, stream));
  if (held_count == 0 || sample->count == 0) return KCP_OK;
  count_sample<<<(sample->count + threads - 1) / threads, threads, 0, stream>>>(
      *axes, *frame, metric, self, dimensions, *held, sorter->sorted_keys, sorter->order,
      held_count, *sample, window, histogram);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

enum kcp_status kcp_guess_find(const unsigned *histogram, uint64_t wanted, double *rank,
                               cudaStream_t stream, struct kcp_error *error) {
  find_rank<<<1, find_threads, 0, stream>>>(histogram, wanted, rank);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

/* Geometry: blocks of 256 streamed by 256 held points for the coarse rank, the held ones in shared
 * memory; a thread a point to build and to walk the chains; one block to find a rank in the
 * histogram. Cost: 4,096 by 8,192 pairs ranked, and about as many pairs again as points sampled.
 *
 * History (H200, 1M x 100K uniform 3-D, 131,072 by 65,536 points sampled):
 *  1. both samples in Morton order, ranks to 8 neighbours in it: 370 us of kernels, of which 136 us
 *     ranked pairs, 110 us eight passes of radix sort, 55 us knots of the keys.
 *  2. no sorting: a coarse rank from 4,096 by 8,192 pairs, then chains of held points in hashed
 *     cells as wide as that: 156 us of kernels, of which 58 us the coarse rank, 63 us the walk
 *     along the chains, 18 us finding ranks in histograms, 7 us building; one wait.
 */
#include "threshold_guess.cuh"

#include <cfloat>
#include <cmath>

#include "bounding_box.cuh"

static const int threads = 256;
static const int run = 256; /* held points of which the least rank counts */
static const int find_threads = 1024;
static const uint32_t none = 0xffffffffu;
static const uint64_t few_pairs = UINT64_C(1) << 22; /* so few are counted all */
static const uint32_t coarse_held = 4096, coarse_streamed = 8192;

/* The place of the i-th of `taken` points spread evenly over `count`. */
__device__ static inline uint32_t spread(uint32_t i, uint32_t taken, uint32_t count) {
  return (uint32_t)((uint64_t)i * count / taken);
}

__device__ static double rank_between(const struct kcp_guess_question &asked, uint32_t h,
                                      uint32_t q) {
  double rank = 0;
  for (uint32_t c = 0; c < asked.dimensions; ++c)
    rank =
        kcp_metric_combine(asked.metric.kind, rank,
                           kcp_metric_term(asked.metric.kind, asked.metric.power,
                                           asked.held.columns[c * asked.held.stride + h] -
                                               asked.sample.columns[c * asked.sample.stride + q]));
  return rank;
}

/* Adds one to the bucket for every thread that comes here with a rank that counts, once for all
 * that come together and ask alike. */
__device__ static void count_rank(unsigned *histogram, bool counts, double rank) {
  unsigned bucket = (unsigned)((unsigned long long)__double_as_longlong(rank) >> kcp_guess_shift);
  if (!counts) return;
  unsigned alike = __match_any_sync(__activemask(), bucket);
  if ((int)(threadIdx.x & 31) == __ffs(alike) - 1) atomicAdd(&histogram[bucket], __popc(alike));
}

/* The streamed points of blockIdx.x against the held points of blockIdx.y, of samples of this size.
 * DIMENSIONS 2 and 3: squares of differences; 0: any dimensions and metric. */
template <int DIMENSIONS>
__global__ static void __launch_bounds__(threads)
    count_runs(const struct kcp_guess_question asked, uint32_t held_taken, uint32_t streamed_taken,
               bool every, unsigned *histogram) {
  __shared__ double tile[DIMENSIONS > 0 ? DIMENSIONS : 1][run];
  __shared__ uint64_t records[run];
  uint32_t first = blockIdx.y * run, i = blockIdx.x * threads + threadIdx.x;
  int here = (int)min((uint32_t)run, held_taken - first);
  if ((int)threadIdx.x < here) {
    uint32_t h = spread(first + threadIdx.x, held_taken, asked.held.count);
    records[threadIdx.x] = kcp_set_record(asked.held, h);
#pragma unroll
    for (int c = 0; c < DIMENSIONS; ++c)
      tile[c][threadIdx.x] = asked.held.columns[c * asked.held.stride + h];
  }
  __syncthreads();
  if (i >= streamed_taken) return;
  uint32_t q = spread(i, streamed_taken, asked.sample.count);
  uint64_t record = kcp_set_record(asked.sample, q);
  double point[DIMENSIONS > 0 ? DIMENSIONS : 1];
#pragma unroll
  for (int c = 0; c < DIMENSIONS; ++c) point[c] = asked.sample.columns[c * asked.sample.stride + q];
  double least = INFINITY;
#pragma unroll 4
  for (int h = 0; h < here; ++h) {
    double rank = 0;
    if (DIMENSIONS == 0) {
      rank = rank_between(asked, spread(first + h, held_taken, asked.held.count), q);
    } else {
#pragma unroll
      for (int c = 0; c < DIMENSIONS; ++c)
        rank += (tile[c][h] - point[c]) * (tile[c][h] - point[c]);
    }
    if (asked.self && records[h] >= record) rank = INFINITY;
    if (every) count_rank(histogram, rank <= DBL_MAX, rank);
    least = fmin(least, rank);
  }
  if (!every) count_rank(histogram, least <= DBL_MAX, least);
}

/* The held sample into chains by bucket of the cells; points of a warp in one bucket enter it as
 * one piece of chain. */
__global__ static void enter_sample(const struct kcp_guess_question asked,
                                    const struct kcp_cells *cells_there, uint32_t bucket_bits,
                                    uint32_t *heads, uint32_t *next) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= asked.held_count) return;
  const struct kcp_cells cells = *cells_there;
  double point[KCP_MAX_AXES];
  kcp_set_axes(asked.held, cells, spread(i, asked.held_count, asked.held.count), point);
  uint32_t bucket = kcp_cell_bucket(kcp_cell_of(&cells, point), bucket_bits);
  unsigned alike = __match_any_sync(__activemask(), bucket);
  unsigned lane = threadIdx.x % 32, later = lane == 31 ? 0 : alike >> (lane + 1) << (lane + 1);
  uint32_t old = 0;
  int leader = __ffs(alike) - 1;
  if ((int)lane == leader) old = atomicExch(&heads[bucket], i);
  old = __shfl_sync(alike, old, leader);
  next[i] = later != 0 ? i + (__ffs(later) - 1 - lane) : old;
}

/* Counts the ranks within *coarse of each streamed sample point to the held sample points in the
 * cells around it, `most` of them at most. */
__global__ static void count_near(const struct kcp_guess_question asked,
                                  const struct kcp_cells *cells_there, uint32_t bucket_bits,
                                  const uint32_t *heads, const uint32_t *next, uint32_t most,
                                  const double *coarse, unsigned *histogram) {
  uint32_t q = blockIdx.x * blockDim.x + threadIdx.x;
  if (q >= asked.sample.count) return;
  const struct kcp_cells cells = *cells_there;
  const double within = *coarse;
  if (!(within <= DBL_MAX)) return;
  uint64_t record = kcp_set_record(asked.sample, q);
  double point[KCP_MAX_AXES];
  kcp_set_axes(asked.sample, cells, q, point);
  struct kcp_cell_box box = kcp_cell_box_of(&cells, point);
  uint32_t seen[1 << KCP_MAX_AXES], ranked = 0;
  int count = 0;
  for (int64_t a = box.first[0]; a <= box.last[0]; ++a)
    for (int64_t b = box.first[1]; b <= box.last[1]; ++b)
      for (int64_t c = box.first[2]; c <= box.last[2]; ++c) {
        uint32_t bucket = kcp_cell_bucket(kcp_cell_at(&cells, a, b, c), bucket_bits);
        bool known = count >= 1 << KCP_MAX_AXES;
        for (int s = 0; s < count; ++s) known |= seen[s] == bucket;
        if (known) continue;
        seen[count++] = bucket;
        for (uint32_t i = heads[bucket]; i != none && ranked < most; i = next[i], ++ranked) {
          uint32_t h = spread(i, asked.held_count, asked.held.count);
          double rank = rank_between(asked, h, q);
          bool counts = rank <= within && rank <= DBL_MAX &&
                        (!asked.self || kcp_set_record(asked.held, h) < record);
          count_rank(histogram, counts, rank);
        }
      }
}

/* A rank's distance, near enough to choose cells by. */
__device__ static double distance_of(struct kcp_metric metric, double rank) {
  if (metric.kind == KCP_L2) return sqrt(rank);
  return metric.kind == KCP_LP ? pow(rank, 1.0 / metric.power) : rank;
}

__device__ static struct kcp_cells cells_within(const struct kcp_guess_question &asked, double rank,
                                                uint32_t bucket_bits) {
  double low[KCP_MAX_AXES] = {}, high[KCP_MAX_AXES] = {};
  for (uint32_t j = 0; j < asked.axes; ++j) {
    low[j] = kcp_from_ordered_bits(asked.box[j]);
    high[j] = kcp_from_ordered_bits(asked.box[kcp_box_axes + j]);
  }
  return kcp_cells_make(asked.axes, asked.axis, low, high, distance_of(asked.metric, rank),
                        UINT64_C(1) << bucket_bits, 0);
}

/* One block. *rank = the upper edge of the bucket of the wanted-th smallest, +inf when there are
 * fewer; *cells of that scale when not NULL. A warp sums 2,048 buckets, 512 bytes at a time. */
__global__ static void __launch_bounds__(find_threads)
    find_rank(const unsigned *histogram, unsigned long long wanted,
              const struct kcp_guess_question asked, uint32_t bucket_bits, double *rank,
              struct kcp_cells *cells) {
  __shared__ unsigned long long sums[32];
  __shared__ double found;
  const int loads = kcp_guess_buckets / 32 / 4 / 32;
  int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
  const uint4 *own = (const uint4 *)histogram + warp * loads * 32 + lane;
  unsigned long long sum = 0, before = 0;
#pragma unroll
  for (int l = 0; l < loads; ++l) {
    uint4 four = own[l * 32];
    sum += (unsigned long long)four.x + four.y + four.z + four.w;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (lane == 0) sums[warp] = sum;
  if (threadIdx.x == 0) found = INFINITY;
  __syncthreads();
  for (int w = 0; w < warp; ++w) before += sums[w];
  if (before < wanted && before + sum >= wanted) {
    for (int l = 0; l < loads; ++l) {
      uint4 four = own[l * 32];
      unsigned counts[4] = {four.x, four.y, four.z, four.w};
      unsigned long long through = (unsigned long long)four.x + four.y + four.z + four.w;
      for (int offset = 1; offset < 32; offset *= 2) {
        unsigned long long left = __shfl_up_sync(0xffffffffu, through, offset);
        if (lane >= offset) through += left;
      }
      unsigned long long all = __shfl_sync(0xffffffffu, through, 31), reached = before + through;
      for (int c = 3; c >= 0; --c) { /* the bucket that the wanted-th is in, from behind */
        unsigned long long here = reached;
        reached -= counts[c];
        if (reached >= wanted || here < wanted) continue;
        unsigned long long bucket = (unsigned long long)((warp * loads + l) * 32 + lane) * 4 + c;
        found = __longlong_as_double((long long)((bucket + 1) << kcp_guess_shift) - 1);
      }
      before += all;
    }
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  *rank = found;
  if (cells != NULL) *cells = cells_within(asked, found, bucket_bits);
}

enum kcp_status kcp_guess_create(struct kcp_device_memory *memory, uint64_t held_sample,
                                 struct kcp_guess *guess, struct kcp_error *error) {
  uint64_t capacity = held_sample > 0 ? held_sample : 1;
  guess->bucket_bits = 1;
  while (UINT64_C(1) << guess->bucket_bits < capacity) ++guess->bucket_bits;
  KCP_TRY(kcp_device_array(memory, 1, &guess->rank, "the guess", error));
  KCP_TRY(kcp_device_array(memory, kcp_guess_buckets, &guess->histogram, "the guess", error));
  KCP_TRY(kcp_device_array(memory, 1, &guess->cells, "the guess", error));
  KCP_TRY(kcp_device_array(memory, UINT64_C(1) << guess->bucket_bits, &guess->heads, "the guess",
                           error));
  return kcp_device_array(memory, capacity, &guess->next, "the guess", error);
}

static enum kcp_status clear(const struct kcp_guess *guess, cudaStream_t stream,
                             struct kcp_error *error) {
  KCP_CUDA_TRY(
      cudaMemsetAsync(guess->histogram, 0, kcp_guess_buckets * sizeof *guess->histogram, stream));
  return KCP_OK;
}

static enum kcp_status count_pairs(const struct kcp_guess *guess,
                                   const struct kcp_guess_question *asked, uint32_t held_taken,
                                   uint32_t streamed_taken, bool every, cudaStream_t stream,
                                   struct kcp_error *error) {
  dim3 grid((streamed_taken + threads - 1) / threads, (held_taken + run - 1) / run);
  KCP_TRY(clear(guess, stream, error));
  bool squares = asked->metric.kind == KCP_L2;
  if (squares && asked->dimensions == 2)
    count_runs<2>
        <<<grid, threads, 0, stream>>>(*asked, held_taken, streamed_taken, every, guess->histogram);
  else if (squares && asked->dimensions == 3)
    count_runs<3>
        <<<grid, threads, 0, stream>>>(*asked, held_taken, streamed_taken, every, guess->histogram);
  else
    count_runs<0>
        <<<grid, threads, 0, stream>>>(*asked, held_taken, streamed_taken, every, guess->histogram);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

static uint32_t between(uint32_t least, uint64_t value, uint32_t most) {
  return value < least ? least : value > most ? most : (uint32_t)value;
}

static uint32_t smaller(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

/* The coarse rank, within which the wanted pairs of the whole samples surely are, and its cells. */
static enum kcp_status find_coarse(const struct kcp_guess *guess,
                                   const struct kcp_guess_question *asked, double pairs,
                                   cudaStream_t stream, struct kcp_error *error) {
  /* In many dimensions fewer pairs are worth ranking. */
  uint32_t held = between(run, UINT64_C(3) * coarse_held / asked->dimensions, coarse_held);
  uint32_t streamed =
      between(threads, UINT64_C(48) * coarse_streamed / asked->dimensions, coarse_streamed);
  held = smaller(held, asked->held_count);
  streamed = smaller(streamed, asked->sample.count);
  double expected = (double)asked->wanted * ((double)held * streamed / pairs);
  KCP_TRY(count_pairs(guess, asked, held, streamed, false, stream, error));
  find_rank<<<1, find_threads, 0, stream>>>(guess->histogram,
                                            (uint64_t)ceil(expected + 4 * sqrt(expected)) + 3,
                                            *asked, guess->bucket_bits, guess->rank, guess->cells);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

enum kcp_status kcp_guess_rank(const struct kcp_guess *guess,
                               const struct kcp_guess_question *asked, cudaStream_t stream,
                               struct kcp_error *error) {
  double pairs = (double)asked->held_count * asked->sample.count;
  uint64_t buckets = UINT64_C(1) << guess->bucket_bits;
  if (pairs == 0) {
    KCP_TRY(clear(guess, stream, error));
  } else if (pairs <= (double)few_pairs) {
    KCP_TRY(count_pairs(guess, asked, asked->held_count, asked->sample.count, true, stream, error));
  } else {
    uint32_t most = between(8, 192 / asked->dimensions, 96);
    KCP_TRY(find_coarse(guess, asked, pairs, stream, error));
    KCP_TRY(clear(guess, stream, error));
    KCP_CUDA_TRY(cudaMemsetAsync(guess->heads, 0xff, buckets * sizeof *guess->heads, stream));
    enter_sample<<<(asked->held_count + threads - 1) / threads, threads, 0, stream>>>(
        *asked, guess->cells, guess->bucket_bits, guess->heads, guess->next);
    count_near<<<(asked->sample.count + threads - 1) / threads, threads, 0, stream>>>(
        *asked, guess->cells, guess->bucket_bits, guess->heads, guess->next, most, guess->rank,
        guess->histogram);
    KCP_CUDA_TRY(cudaGetLastError());
  }
  find_rank<<<1, find_threads, 0, stream>>>(guess->histogram, asked->wanted, *asked,
                                            guess->bucket_bits, guess->rank, NULL);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

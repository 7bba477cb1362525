/* A refinement that filters on tensor cores (this project): |q - p|^2 = |q|^2 + |p|^2 - 2 q p with
 * the product in binary16 and sums in binary32, 64 queries x 64 points a tile, 32 dimensions at a
 * time.
 *
 * The form cancels when eps is small against the norms, so the centre of the primitive is taken off
 * its points and their queries first: errors are relative to its size. Queries and points are
 * rounded to binary16, which moves them by at most 2^-11 of their norm; norms are those of the
 * rounded values, so that only the summation errs further. Each query has its own limits, from its
 * norm and the largest of the points'. Pairs between them go to a sum in binary32, and those that
 * this leaves open to binary64 in the order of the file.
 *
 * 2 d operations a pair on tensor cores, and about 20 instructions a pair on the others: staging
 * takes 4 a value, which 64 pairs share, the epilogue reads 4 bytes of shared memory a pair.
 * Shared memory 30 KiB. */
#include <mma.h>

#include "range_refine.cuh"

using namespace nvcuda;

static const int chunk = 32;            /* dimensions staged at a time */
static const int chunk_stride = 40;     /* spreads rows over the banks, a multiple of 8 */
static const int sum_stride = tile + 4; /* a multiple of 4 */
static const int fragment = 16;         /* of wmma: 16 x 16 x 16 */
static const int segment = 8;           /* dimensions of a row that a thread stages */
static_assert(threads * segment == tile * chunk, "every thread stages one segment of a row");

/* Bounds of what the filter errs by, at the scale of the rows. */
struct tensor_limits {
  float eps;
  float displacement; /* of rows in binary32, and of subnormal values in binary16 */
  float rounding;     /* of binary16: times a norm */
  float summation;    /* times the sum of two squared norms */
};

struct tensor_work {
  struct refinement refinement;
  struct tensor_limits limits;
  const float *bounds; /* of primitives in all dimensions: low, high */
};

/* A thread's segment of a row less the centre, rounded; returns the sum of its squares. */
__device__ static float stage_segment(const float *row, const float *bounds, uint32_t dimensions,
                                      uint32_t first, __half *to) {
  float square = 0;
#pragma unroll
  for (int i = 0; i < segment; ++i) {
    const uint32_t j = first + i;
    float value = 0;
    if (row != NULL && j < dimensions) {
      /* Halves first: their sum cannot overflow. */
      const float centre = 0.5f * bounds[2 * j] + 0.5f * bounds[2 * j + 1];
      value = row[j] - centre;
    }
    to[i] = __float2half_rn(value);
    const float rounded = __half2float(to[i]);
    square = fmaf(rounded, rounded, square);
  }
  return square;
}

/* The sum of four neighbouring threads' values, which stage one row. */
__device__ static float sum_of_row(float value) {
  value += __shfl_xor_sync(~0u, value, 1);
  return value + __shfl_xor_sync(~0u, value, 2);
}

/* The limits of a query with this norm: what is at most *within is surely within eps, what is above
 * *beyond surely not. */
__device__ static void limits_of(const struct tensor_limits &limits, float query_square,
                                 float largest_square, float *within, float *beyond) {
  const float norms = sqrtf(query_square) + sqrtf(largest_square);
  const float moved = limits.displacement + limits.rounding * norms;
  const float summed = limits.summation * (query_square + largest_square);
  const float inner = limits.eps - moved, outer = limits.eps + moved;
  *within = inner > 0 ? inner * inner * (1 - 0x1p-20f) - summed : -1;
  *beyond = outer * outer * (1 + 0x1p-20f) + summed;
}

/* A pair that the tensor cores leave open: binary32 decides, or leaves it to binary64. */
__device__ static bool decide(const struct refinement &work, uint32_t query, uint32_t point) {
  const float *a = (const float *)work.queries.rows + (uint64_t)query * work.dimensions;
  const float *b = (const float *)work.points.rows + (uint64_t)point * work.dimensions;
  const float within = (float)work.within, beyond = (float)work.beyond;
  float sum = 0;
  for (uint32_t j = 0; j < work.dimensions; ++j) {
    const float difference = a[j] - b[j];
    sum = fmaf(difference, difference, sum);
    if (sum > beyond) return false;
  }
  if (sum <= within) return true;
  return recheck(work, work.queries.places[query], work.points.places[point]);
}

__global__ static void __launch_bounds__(KCP_RANGE_BLOCK_THREADS)
    refine_on_tensor_cores(struct tensor_work tensor) {
  __shared__ __align__(32) __half staged_queries[tile * chunk_stride];
  __shared__ __align__(32) __half staged_points[tile * chunk_stride];
  __shared__ __align__(32) float sums[tile * sum_stride];
  __shared__ float query_squares[tile], point_squares[tile], within_limits[tile],
      beyond_limits[tile];
  __shared__ struct entry entries[tile];
  const struct refinement &work = tensor.refinement;
  const struct kcp_range_task task = work.tasks[blockIdx.x];
  const uint32_t begin = work.firsts[task.primitive], end = work.firsts[task.primitive + 1];
  const uint32_t dimensions = work.dimensions;
  const float *bounds = tensor.bounds + 2 * (uint64_t)task.primitive * dimensions;
  const float *queries = (const float *)work.queries.rows,
              *points = (const float *)work.points.rows;
  const int x = threadIdx.x % lanes, y = threadIdx.x / lanes;
  const int row = threadIdx.x / (chunk / segment);
  const int segment_first = threadIdx.x % (chunk / segment) * segment;
  const int warp_row = threadIdx.x / 64 * fragment, warp_column = threadIdx.x / 32 % 2 * 32;
  for (uint64_t first_query = task.first; first_query < task.last; first_query += tile) {
    const int query_count = task.last - first_query < tile ? (int)(task.last - first_query) : tile;
    __syncthreads();
    if (threadIdx.x < tile)
      entries[threadIdx.x] = entry_of(
          work, task.primitive, first_query + ((int)threadIdx.x < query_count ? threadIdx.x : 0));
    __syncthreads();
    const float *query_row =
        row < query_count ? queries + (uint64_t)entries[row].query * dimensions : NULL;
    for (uint32_t point = begin; point < end; point += tile) {
      const int point_count = end - point < tile ? (int)(end - point) : tile;
      const float *point_row =
          row < point_count ? points + (uint64_t)(point + row) * dimensions : NULL;
      wmma::fragment<wmma::accumulator, fragment, fragment, fragment, float> products[2];
      wmma::fill_fragment(products[0], 0.0f);
      wmma::fill_fragment(products[1], 0.0f);
      float query_square = 0, point_square = 0;
      for (uint32_t first = 0; first < dimensions; first += chunk) {
        const int to = row * chunk_stride + segment_first;
        query_square += stage_segment(query_row, bounds, dimensions, first + segment_first,
                                      staged_queries + to);
        point_square +=
            stage_segment(point_row, bounds, dimensions, first + segment_first, staged_points + to);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < chunk; k += fragment) {
          wmma::fragment<wmma::matrix_a, fragment, fragment, fragment, __half, wmma::row_major> a;
          wmma::load_matrix_sync(a, staged_queries + warp_row * chunk_stride + k, chunk_stride);
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            wmma::fragment<wmma::matrix_b, fragment, fragment, fragment, __half, wmma::col_major> b;
            wmma::load_matrix_sync(
                b, staged_points + (warp_column + half * fragment) * chunk_stride + k,
                chunk_stride);
            wmma::mma_sync(products[half], a, b, products[half]);
          }
        }
        __syncthreads();
      }
      query_square = sum_of_row(query_square);
      point_square = sum_of_row(point_square);
      if (segment_first == 0) {
        query_squares[row] = query_square;
        point_squares[row] = point_square;
      }
#pragma unroll
      for (int half = 0; half < 2; ++half)
        wmma::store_matrix_sync(sums + warp_row * sum_stride + warp_column + half * fragment,
                                products[half], sum_stride, wmma::mem_row_major);
      __syncthreads();
      if (threadIdx.x < tile) {
        float largest = 0;
        for (int i = 0; i < tile; ++i)
          largest = !(point_squares[i] <= largest) ? point_squares[i] : largest;
        limits_of(tensor.limits, query_squares[threadIdx.x], largest, &within_limits[threadIdx.x],
                  &beyond_limits[threadIdx.x]);
      }
      __syncthreads();
      uint32_t point_places[side];
#pragma unroll
      for (int b = 0; b < side; ++b)
        point_places[b] =
            work.points.places[point + (x * side + b < point_count ? x * side + b : 0)];
#pragma unroll
      for (int a = 0; a < side; ++a) {
        const int q = y * side + a;
        const float square = query_squares[q], within = within_limits[q], beyond = beyond_limits[q];
        uint32_t bits = 0;
#pragma unroll
        for (int b = 0; b < side; ++b) {
          const int p = x * side + b;
          const float sum = square + point_squares[p] - 2 * sums[q * sum_stride + p];
          if (q >= query_count || p >= point_count || sum > beyond) continue;
          const bool is_within = sum <= within || decide(work, entries[q].query, point + p);
          bits |= (uint32_t)is_within << b;
        }
        note(work, entries[q], q < query_count, (point - begin) / 32, bits, point_places);
      }
    }
  }
}

/* Roundings of binary16 and binary32 as they add up, each with room to spare. Tensor cores sum
 * products of 16 at a time and may truncate: 2^-21 of the largest sum for every addition. */
static struct tensor_limits make_limits(const struct kcp_range_join *join) {
  struct tensor_limits limits;
  const double dimensions = join->plan.dimensions;
  const double narrow = (join->point_norm + join->query_norm) * 0x1p-24 * (1 + 0x1p-10);
  limits.eps = (float)(join->plan.eps * join->narrow_scale);
  limits.displacement =
      (float)((narrow + sqrt(dimensions) * 0x1p-23 + limits.eps * 0x1p-22) * (1 + 0x1p-10));
  limits.rounding = 0x1p-11f * (1 + 0x1p-6f);
  limits.summation = (float)((dimensions + 64) * 0x1p-21);
  return limits;
}

enum kcp_status kcp_range_refine_tensor(struct kcp_range_join *join, const struct refinement *work,
                                        uint64_t task_count, struct kcp_error *error) {
  struct tensor_work part = {*work, make_limits(join),
                             kcp_range_array<float>(join, KCP_BUFFER_BOUNDS)};
  for (uint64_t first = 0; first < task_count; first += 1u << 30) {
    const uint64_t count = task_count - first < (1u << 30) ? task_count - first : 1u << 30;
    part.refinement.tasks = work->tasks + first;
    refine_on_tensor_cores<<<(unsigned)count, threads, 0, join->stream>>>(part);
    KCP_CUDA_TRY(cudaGetLastError());
  }
  return KCP_OK;
}

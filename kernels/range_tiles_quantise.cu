/* Points as integers in tiles of 128, for products on matrix units (include/kcp/range_tiles.h).
 *
 * Norms: a thread a point reads its coordinates once, neighbours next to each other. A histogram of
 * the norms' upper bits finds how far nearly all points are: what lies far beyond (at most 1 of
 * 1,024) is not allowed to make the step coarse; it comes into tiles of its own, which are not
 * filtered. Tiles: a block each, a thread a point, two passes over the coordinates in the order of
 * the places, 32 bytes of device memory each; 4 bytes a dimension and point are written. */
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "range_tiles.cuh"

static const int threads = 256;
static const int bins = 4096; /* of the upper 12 bits of a norm's square */
static const int bin_shift = 51;
static const uint64_t far_share = 1024; /* one of so many points may be far */
static const double far_factor = 4;     /* beyond so many times the norm of the others */
static const uint32_t most_sample = 255;

static unsigned blocks_for(uint64_t count) {
  return (unsigned)((count + threads - 1) / threads);
}

/* ---- norms ---- */

/* What is known of all points. */
struct norm_survey {
  unsigned long long largest; /* bits of the largest square */
  int lowest_exponent;
  unsigned int histogram[bins];
};

/* Squares of distances from the centre; not smaller than they are. */
__global__ static void measure_norms(const double *columns, uint64_t count, uint32_t dimensions,
                                     const uint32_t *order, const double *centre, double *squares,
                                     struct norm_survey *survey) {
  const uint64_t i = (uint64_t)blockIdx.x * threads + threadIdx.x;
  const bool is_point = i < count;
  double square = 0;
  int lowest = INT_MAX;
  for (uint32_t j = 0; j < dimensions && is_point; ++j) {
    const double value = columns[order[j] * count + i], moved = value - centre[j];
    square += moved * moved;
    const int exponent = kcp_lowest_exponent(value);
    lowest = exponent < lowest ? exponent : lowest;
  }
  square *= 1 + 0x1p-20;
  if (!(square <= 0x1p1000)) square = INFINITY; /* NaN, when a difference overflows */
  unsigned long long bits = (unsigned long long)__double_as_longlong(square);
  if (is_point) {
    squares[i] = square;
    if (survey != NULL) atomicAdd(&survey->histogram[bits >> bin_shift], 1u);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    const unsigned long long other = __shfl_xor_sync(~0u, bits, offset);
    const int other_lowest = __shfl_xor_sync(~0u, lowest, offset);
    bits = bits > other ? bits : other;
    lowest = lowest < other_lowest ? lowest : other_lowest;
  }
  if (threadIdx.x % 32 != 0 || survey == NULL) return;
  atomicMax(&survey->largest, bits);
  atomicMin(&survey->lowest_exponent, lowest);
}

__global__ static void mark_near(const double *squares, uint64_t count, double most,
                                 unsigned char *is_near, unsigned long long *near_count) {
  const uint64_t i = (uint64_t)blockIdx.x * threads + threadIdx.x;
  const bool near = i < count && squares[i] <= most;
  if (i < count) is_near[i] = near;
  const unsigned lanes = __ballot_sync(~0u, near);
  if (threadIdx.x % 32 == 0 && lanes != 0) atomicAdd(near_count, (unsigned long long)__popc(lanes));
}

static double largest_square(const struct norm_survey *survey) {
  double largest;
  memcpy(&largest, &survey->largest, sizeof largest);
  return largest;
}

/* The square of norms up to which points are near. */
static double choose_near(const struct norm_survey *survey, uint64_t count) {
  const double largest = largest_square(survey);
  uint64_t beyond = 0;
  int bin = bins - 1;
  for (; bin > 0; --bin) {
    beyond += survey->histogram[bin];
    if (beyond > count / far_share) break;
  }
  /* The bin's upper end; the next one begins there. */
  const uint64_t bits = (uint64_t)(bin + 1) << bin_shift;
  double end;
  memcpy(&end, &bits, sizeof end);
  return largest <= far_factor * far_factor * end ? largest : end;
}

static enum kcp_status survey_norms(struct kcp_range_join *join, struct norm_survey *host,
                                    struct kcp_error *error) {
  const uint64_t count = join->points.count;
  double *squares;
  struct norm_survey *survey;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_TILE_NORMS, count, &squares, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_PARTIAL, 1, &survey, error));
  *host = {};
  host->lowest_exponent = INT_MAX;
  KCP_CUDA_TRY(cudaMemcpyAsync(survey, host, sizeof *host, cudaMemcpyHostToDevice, join->stream));
  measure_norms<<<blocks_for(count), threads, 0, join->stream>>>(
      join->points.columns, count, join->plan.dimensions,
      kcp_range_array<uint32_t>(join, KCP_BUFFER_ORDER),
      kcp_range_array<double>(join, KCP_BUFFER_CENTRE), squares, survey);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cudaMemcpyAsync(host, survey, sizeof *host, cudaMemcpyDeviceToHost, join->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  return KCP_OK;
}

__global__ static void take_sample(const double *columns, uint64_t count, uint32_t dimensions,
                                   const uint32_t *order, uint32_t sample, double *values) {
  const uint64_t i = (uint64_t)blockIdx.x * threads + threadIdx.x;
  if (i >= (uint64_t)sample * dimensions) return;
  values[i] = columns[order[i / sample] * count + (i % sample) * (count / sample)];
}

/* Far points draw the mean away from all others: the median of a sample becomes the centre. */
static enum kcp_status take_medians(struct kcp_range_join *join, struct kcp_error *error) {
  const uint64_t count = join->points.count, dimensions = join->plan.dimensions;
  const uint32_t sample = count < most_sample ? (uint32_t)count : most_sample;
  double *values;
  std::vector<double> host(sample * dimensions), medians(dimensions);
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_PARTIAL, host.size(), &values, error));
  take_sample<<<blocks_for(host.size()), threads, 0, join->stream>>>(
      join->points.columns, count, join->plan.dimensions,
      kcp_range_array<uint32_t>(join, KCP_BUFFER_ORDER), sample, values);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cudaMemcpyAsync(host.data(), values, host.size() * sizeof(double),
                               cudaMemcpyDeviceToHost, join->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  for (uint64_t j = 0; j < dimensions; ++j) {
    double *first = host.data() + j * sample;
    std::nth_element(first, first + sample / 2, first + sample);
    medians[j] = first[sample / 2];
  }
  KCP_CUDA_TRY(cudaMemcpyAsync(kcp_range_array<double>(join, KCP_BUFFER_CENTRE), medians.data(),
                               dimensions * sizeof(double), cudaMemcpyHostToDevice, join->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  return KCP_OK;
}

enum kcp_status kcp_tiles_choose_scale(struct kcp_range_join *join, bool *possible, bool *serves,
                                       struct kcp_error *error) {
  const uint32_t dimensions = join->plan.dimensions;
  std::vector<struct norm_survey> survey(1);
  *possible = *serves = false;
  KCP_TRY(survey_norms(join, survey.data(), error));
  double square = choose_near(survey.data(), join->points.count);
  if (square < largest_square(survey.data())) {
    KCP_TRY(take_medians(join, error));
    KCP_TRY(survey_norms(join, survey.data(), error));
    square = choose_near(survey.data(), join->points.count);
  }
  if (!kcp_tile_can_hold(dimensions) || !isfinite(square)) return KCP_OK;
  *possible = true;
  join->near_norm = sqrt(square) * (1 + 0x1p-40);
  join->tile_scale =
      kcp_tile_choose_scale(join->near_norm, join->plan.eps, dimensions, survey[0].lowest_exponent);
  /* Rounding takes about sqrt(d / 12) of a row, up to half as much again of the worst. */
  const double residual = join->tile_scale.is_exact ? 0 : 3 * sqrt((double)dimensions / 12);
  *serves = !kcp_tile_is_too_coarse(
      kcp_tile_make_limits(join->tile_scale, join->plan.eps, dimensions, residual));
  return KCP_OK;
}

/* ---- tiles ---- */

struct quantising {
  const double *columns;
  uint64_t count;
  uint32_t dimensions, blocks;
  const uint32_t *order, *places;
  const double *centre;
  struct kcp_tile_scale scale;
  bool is_exact; /* the points are known to be multiples of the step */
  struct kcp_tile_set set;
  __half *rows, *tile_columns; /* the latter may be NULL */
  float2 *bounds;
  float *radii;
  unsigned long long *residual; /* bits of the largest */
};

__device__ static double steps_of(const struct quantising &work, uint64_t place, uint32_t j) {
  return kcp_tile_in_steps(work.scale, work.columns[work.order[j] * work.count + place],
                           kcp_tile_centre(work.scale, work.centre[j]));
}

/* Bounds of steps; outward, by more than the steps' own rounding. */
__device__ static float2 bounds_of(double low, double high, bool near) {
  if (near)
    return make_float2((float)(floor((low - 0x1p-30) * KCP_TILE_BOX_UNITS) / KCP_TILE_BOX_UNITS),
                       (float)(ceil((high + 0x1p-30) * KCP_TILE_BOX_UNITS) / KCP_TILE_BOX_UNITS));
  low = fmax(fmin(low, 1e18), -1e18);
  high = fmax(fmin(high, 1e18), -1e18);
  return make_float2(__double2float_rd(low - fabs(low) * 0x1p-40),
                     __double2float_ru(high + fabs(high) * 0x1p-40));
}

/* The box of the tile's points, dimension by dimension: a warp takes every fourth, a lane four
 * points. */
__device__ static void bound_tile(const struct quantising &work, const uint32_t *places,
                                  uint32_t size, bool near) {
  const uint32_t lane = threadIdx.x % 32;
  for (uint32_t j = threadIdx.x / 32; j < work.dimensions; j += KCP_TILE_POINTS / 32) {
    double low = INFINITY, high = -INFINITY;
    for (uint32_t i = lane; i < size; i += 32) {
      const double steps = steps_of(work, places[i], j);
      low = fmin(low, steps);
      high = fmax(high, steps);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
      low = fmin(low, __shfl_xor_sync(~0u, low, offset));
      high = fmax(high, __shfl_xor_sync(~0u, high, offset));
    }
    if (lane == 0)
      work.bounds[(uint64_t)j * work.set.count + blockIdx.x] = bounds_of(low, high, near);
  }
}

/* Eight halves, written at once. */
struct __align__(16) chunk {
  __half value[8];
};

__device__ static void store_chunk(__half *tile, uint32_t place, uint32_t number,
                                   const struct chunk &chunk) {
  *(struct chunk *)(tile + kcp_tile_chunk_place(place, number)) = chunk;
}

/* The value of dimension d + i: as a row 4096, 1, -high, -low, and as a column the pairs the other
 * way round, so that each row's half meets the units of the column and the other way round. */
__device__ static __half extra(uint32_t half, uint32_t i) {
  const int unit = i & 1 ? 1 : KCP_TILE_HALF_UNIT;
  const int part = i & 1 ? kcp_tile_half_low(half) : kcp_tile_half_high(half);
  return __int2half_rn(i < 2 ? unit : -part);
}

/* One point's integers, row and column; returns its half square. A chunk at a time. */
__device__ static void write_point(const struct quantising &work, uint32_t point, bool is_point,
                                   uint64_t place, double *residual, double *radius_square) {
  const uint64_t tile_halves = (uint64_t)work.blocks * 16 * KCP_TILE_POINTS;
  __half *rows = work.rows + blockIdx.x * tile_halves;
  __half *columns = work.tile_columns != NULL ? work.tile_columns + blockIdx.x * tile_halves : NULL;
  struct kcp_tile_row row = {0, 0};
  double around = 0;
  for (uint32_t number = 0; number < work.blocks * 2; ++number) {
    struct chunk as_row, as_column;
#pragma unroll
    for (uint32_t i = 0; i < 8; ++i) {
      const uint32_t j = number * 8 + i;
      as_row.value[i] = as_column.value[i] = __int2half_rn(0);
      if (j < work.dimensions && is_point) {
        const float2 bounds = work.bounds[(uint64_t)j * work.set.count + blockIdx.x];
        const double steps = steps_of(work, place, j), integer = kcp_tile_round(steps);
        const double difference = steps - 0.5 * ((double)bounds.x + (double)bounds.y);
        kcp_tile_add(&row, steps, integer);
        around += difference * difference;
        as_row.value[i] = as_column.value[i] = __double2half(integer);
      } else if (j >= work.dimensions && j < work.dimensions + KCP_TILE_EXTRA_DIMENSIONS) {
        /* All other dimensions came before: the square is whole. */
        const uint32_t half = is_point ? row.square / 2 : KCP_TILE_NO_POINT;
        as_row.value[i] = extra(half, j - work.dimensions);
        as_column.value[i] = extra(half, (j - work.dimensions) ^ 2);
      }
    }
    store_chunk(rows, kcp_tile_row_place(point), number, as_row);
    if (columns != NULL) store_chunk(columns, kcp_tile_column_place(point), number, as_column);
  }
  *residual = is_point ? kcp_tile_residual(work.is_exact, row.residual_square) : 0;
  *radius_square = around;
}

__device__ static double largest_of_warp(double value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmax(value, __shfl_xor_sync(~0u, value, offset));
  return value;
}

/* Far points are none for the products. */
__global__ static void __launch_bounds__(KCP_TILE_POINTS) quantise(struct quantising work) {
  __shared__ uint32_t places[KCP_TILE_POINTS];
  __shared__ double squares[KCP_TILE_POINTS / 32];
  const uint64_t first = kcp_tile_first(work.set, blockIdx.x);
  const uint32_t size = kcp_tile_size(work.set, blockIdx.x);
  const bool near = blockIdx.x < work.set.near_count;
  const uint32_t point = threadIdx.x;
  places[point] = work.places[first + (point < size ? point : 0)];
  __syncthreads();
  bound_tile(work, places, size, near);
  __syncthreads();
  double residual, square;
  write_point(work, point, near && point < size, places[point], &residual, &square);
  residual = largest_of_warp(residual);
  square = largest_of_warp(square);
  if (point % 32 == 0) {
    squares[point / 32] = square;
    if (residual > 0) atomicMax(work.residual, (unsigned long long)__double_as_longlong(residual));
  }
  __syncthreads();
  if (point != 0) return;
  for (int warp = 1; warp < KCP_TILE_POINTS / 32; ++warp) square = fmax(square, squares[warp]);
  work.radii[blockIdx.x] = near ? __double2float_ru(sqrt(square) * (1 + 0x1p-30)) : INFINITY;
}

/* A thread a group and dimension. */
__global__ static void bound_groups(uint32_t tiles, uint32_t dimensions, const float2 *bounds,
                                    float2 *group_bounds) {
  const uint32_t groups = (tiles + KCP_TILE_GROUP - 1) / KCP_TILE_GROUP;
  const uint64_t i = (uint64_t)blockIdx.x * threads + threadIdx.x;
  if (i >= (uint64_t)groups * dimensions) return;
  const uint32_t j = (uint32_t)(i / groups), group = (uint32_t)(i % groups);
  const uint32_t first = group * KCP_TILE_GROUP;
  float2 own = bounds[(uint64_t)j * tiles + first];
  for (uint32_t tile = first + 1; tile < tiles && tile < first + KCP_TILE_GROUP; ++tile) {
    const float2 other = bounds[(uint64_t)j * tiles + tile];
    own.x = fminf(own.x, other.x);
    own.y = fmaxf(own.y, other.y);
  }
  group_bounds[i] = own;
}

/* Which points are near, when not all are. */
static enum kcp_status find_near(struct kcp_range_join *join,
                                 const struct kcp_device_points *points, bool measured,
                                 uint64_t *near_count, struct kcp_error *error) {
  double *squares;
  unsigned char *is_near;
  unsigned long long *counter, near;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_TILE_NORMS, points->count, &squares, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_NEAR, points->count, &is_near, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_PARTIAL, 1, &counter, error));
  KCP_CUDA_TRY(cudaMemsetAsync(counter, 0, sizeof *counter, join->stream));
  if (!measured) {
    measure_norms<<<blocks_for(points->count), threads, 0, join->stream>>>(
        points->columns, points->count, join->plan.dimensions,
        kcp_range_array<uint32_t>(join, KCP_BUFFER_ORDER),
        kcp_range_array<double>(join, KCP_BUFFER_CENTRE), squares, NULL);
    KCP_CUDA_TRY(cudaGetLastError());
  }
  /* The norm is rounded up: the points that it comes from are near. */
  mark_near<<<blocks_for(points->count), threads, 0, join->stream>>>(
      squares, points->count, join->near_norm * join->near_norm, is_near, counter);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cudaMemcpyAsync(&near, counter, sizeof near, cudaMemcpyDeviceToHost, join->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  *near_count = near;
  return KCP_OK;
}

/* Places of the points in an order that keeps tiles small. */
static enum kcp_status order_points(struct kcp_range_join *join, struct kcp_device_points *points,
                                    const struct kcp_tile_set *set, struct kcp_error *error) {
  const bool is_reference = points == &join->points;
  struct kcp_grouping grouping = {};
  uint32_t *grouped = NULL, *places;
  grouping.columns = points->columns;
  grouping.count = points->count;
  grouping.members = set->near_points;
  grouping.is_member = kcp_range_array<unsigned char>(join, KCP_BUFFER_NEAR);
  grouping.axes = is_reference ? KCP_BUFFER_ROWS : KCP_BUFFER_QUERY_ROWS;
  grouping.unit = KCP_TILE_POINTS;
  grouping.height = kcp_kd_height(set->near_count > 0 ? set->near_count : 1, KCP_KD_HEIGHT_MAX);
  grouping.axis_count = kcp_group_axes(join->plan.dimensions, KCP_BOUND_FULL);
  if (is_reference) join->height = grouping.height;
  KCP_TRY(kcp_range_group(join, &grouping, &grouped, error));
  KCP_TRY(kcp_range_room(join, is_reference ? KCP_BUFFER_PLACES : KCP_BUFFER_QUERY_PLACES,
                         points->count, &places, error));
  if (places != grouped)
    KCP_CUDA_TRY(cudaMemcpyAsync(places, grouped, points->count * sizeof *places,
                                 cudaMemcpyDeviceToDevice, join->stream));
  points->places = places;
  return KCP_OK;
}

static enum kcp_status make_room(struct kcp_range_join *join, bool is_reference,
                                 struct quantising *work, float2 **group_bounds,
                                 struct kcp_error *error) {
  const uint64_t tiles = work->set.count, dimensions = work->dimensions;
  const uint64_t halves = tiles * work->blocks * 16 * KCP_TILE_POINTS;
  const uint64_t groups = (tiles + KCP_TILE_GROUP - 1) / KCP_TILE_GROUP;
  KCP_TRY(kcp_range_room(join, is_reference ? KCP_BUFFER_TILE_ROWS : KCP_BUFFER_QUERY_TILE_ROWS,
                         halves, &work->rows, error));
  if (is_reference)
    KCP_TRY(kcp_range_room(join, KCP_BUFFER_TILE_COLUMNS, halves, &work->tile_columns, error));
  KCP_TRY(kcp_range_room(join, is_reference ? KCP_BUFFER_TILE_BOUNDS : KCP_BUFFER_QUERY_TILE_BOUNDS,
                         tiles * dimensions, &work->bounds, error));
  KCP_TRY(kcp_range_room(
      join, is_reference ? KCP_BUFFER_TILE_GROUP_BOUNDS : KCP_BUFFER_QUERY_TILE_GROUP_BOUNDS,
      groups * dimensions, group_bounds, error));
  KCP_TRY(kcp_range_room(join, is_reference ? KCP_BUFFER_TILE_RADII : KCP_BUFFER_QUERY_TILE_RADII,
                         tiles, &work->radii, error));
  return kcp_range_room(join, KCP_BUFFER_PARTIAL, 1, &work->residual, error);
}

static enum kcp_status quantise_points(struct kcp_range_join *join,
                                       const struct kcp_device_points *points,
                                       struct kcp_tile_set *set, struct kcp_error *error) {
  struct quantising work = {};
  float2 *group_bounds = NULL;
  unsigned long long bits;
  work.columns = points->columns;
  work.count = points->count;
  work.dimensions = join->plan.dimensions;
  work.blocks = kcp_tile_width(work.dimensions) / 16;
  work.order = kcp_range_array<uint32_t>(join, KCP_BUFFER_ORDER);
  work.centre = kcp_range_array<double>(join, KCP_BUFFER_CENTRE);
  work.places = points->places;
  work.scale = join->tile_scale;
  work.is_exact = work.scale.is_exact && points == &join->points;
  work.set = *set;
  KCP_TRY(make_room(join, points == &join->points, &work, &group_bounds, error));
  KCP_CUDA_TRY(cudaMemsetAsync(work.residual, 0, sizeof *work.residual, join->stream));
  quantise<<<set->count, KCP_TILE_POINTS, 0, join->stream>>>(work);
  KCP_CUDA_TRY(cudaGetLastError());
  const uint64_t groups = (set->count + KCP_TILE_GROUP - 1) / KCP_TILE_GROUP;
  bound_groups<<<blocks_for(groups * work.dimensions), threads, 0, join->stream>>>(
      set->count, work.dimensions, work.bounds, group_bounds);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(
      cudaMemcpyAsync(&bits, work.residual, sizeof bits, cudaMemcpyDeviceToHost, join->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  memcpy(&set->residual, &bits, sizeof bits);
  set->rows = work.rows;
  set->columns = work.tile_columns;
  set->bounds = work.bounds;
  set->group_bounds = group_bounds;
  set->radii = work.radii;
  return KCP_OK;
}

enum kcp_status kcp_tiles_make(struct kcp_range_join *join, struct kcp_device_points *points,
                               struct kcp_tile_set *set, struct kcp_range_work *work,
                               struct kcp_error *error) {
  const bool is_reference = points == &join->points;
  double started = kcp_now();
  *set = {};
  set->points = points->count;
  KCP_TRY(find_near(join, points, is_reference, &set->near_points, error));
  const uint64_t near_tiles = (set->near_points + KCP_TILE_POINTS - 1) / KCP_TILE_POINTS;
  const uint64_t far_tiles =
      (set->points - set->near_points + KCP_TILE_POINTS - 1) / KCP_TILE_POINTS;
  set->near_count = (uint32_t)near_tiles;
  set->count = (uint32_t)(near_tiles + far_tiles);
  KCP_TRY(order_points(join, points, set, error));
  KCP_TRY(kcp_range_lap(join, &started, &work->phase_s[KCP_RANGE_PHASE_KD_TREE], error));
  KCP_TRY(kcp_range_make_rows(join, points, is_reference ? KCP_BUFFER_ROWS : KCP_BUFFER_QUERY_ROWS,
                              is_reference ? &join->point_norm : &join->query_norm, error));
  KCP_TRY(kcp_range_lap(join, &started, &work->phase_s[KCP_RANGE_PHASE_REARRANGE], error));
  KCP_TRY(quantise_points(join, points, set, error));
  return kcp_range_lap(join, &started, &work->phase_s[KCP_RANGE_PHASE_PRIMITIVES], error);
}

/* Section IV-E of RT-HiSS on the device: a block of 256 threads a task, that is a primitive and
 * some of the queries that meet it.
 *
 * The block goes through tiles of 64 queries x 64 points; a thread sums 4 x 4 pairs in registers,
 * `step` dimensions at a time. Staged points lie dimension after dimension in shared memory (step *
 * 68 values a side: 8.5 KiB for both in binary32 with 16 dimensions a step). After each step the
 * block stops with the tile if every sum is beyond eps (early exit on the running sum). A pair
 * takes 2 d operations of the arithmetic units and, staged, d / 16 of shared memory's 128-bit
 * loads. What the sum leaves open is ranked in binary64 in the order of the file by the thread that
 * has it. */
#include <cmath>

#include "range_refine.cuh"

static const int tile_stride = tile + 4; /* so that writing by dimension spreads over the banks */
static const int standard_step = 16;     /* dimensions */

template <typename T>
__device__ static T beyond_all();
template <>
__device__ float beyond_all<float>() {
  return INFINITY;
}
template <>
__device__ double beyond_all<double>() {
  return INFINITY;
}

/* Values first .. last - 1 of up to 64 rows into shared memory, dimension after dimension. */
template <typename T>
__device__ static void stage(const T *rows, uint32_t dimensions, const uint32_t *which, int count,
                             uint32_t first, uint32_t last, T *shared) {
  const int width = (int)(last - first);
  for (int i = threadIdx.x; i < tile * width; i += threads) {
    const int row = i / width, j = i % width;
    shared[j * tile_stride + row] =
        row < count ? rows[(uint64_t)which[row] * dimensions + first + j] : (T)0;
  }
}

/* Four values that are read at once. */
template <typename T>
struct __align__(16) quad {
  T value[side];
};

/* The dimension j of the thread's four rows. */
template <typename T, bool STAGED>
__device__ static void load(const T *shared, const T *rows, uint32_t dimensions,
                            const uint32_t *which, int lane, uint32_t first, uint32_t j,
                            T *values) {
  if (STAGED) {
    const quad<T> four = *(const quad<T> *)(shared + j * tile_stride + lane * side);
#pragma unroll
    for (int i = 0; i < side; ++i) values[i] = four.value[i];
  } else {
#pragma unroll
    for (int i = 0; i < side; ++i)
      values[i] = rows[(uint64_t)which[lane * side + i] * dimensions + first + j];
  }
}

/* Sums of the thread's pairs; false when the whole tile passed `beyond` on the way. */
template <typename T, bool STAGES_POINTS, bool STAGES_QUERIES>
__device__ static bool sum_tile(const struct refinement &work, const uint32_t *point_rows,
                                int point_count, const uint32_t *query_rows, int query_count,
                                T beyond, T *staged_points, T *staged_queries, T sums[side][side]) {
  const T *points = (const T *)work.points.rows, *queries = (const T *)work.queries.rows;
  const int x = threadIdx.x % lanes, y = threadIdx.x / lanes;
#pragma unroll
  for (int a = 0; a < side; ++a)
#pragma unroll
    for (int b = 0; b < side; ++b)
      sums[a][b] =
          y * side + a < query_count && x * side + b < point_count ? (T)0 : beyond_all<T>();
  for (uint32_t first = 0; first < work.dimensions; first += work.step) {
    const uint32_t last = work.dimensions - first > work.step ? first + work.step : work.dimensions;
    if (STAGES_POINTS)
      stage(points, work.dimensions, point_rows, point_count, first, last, staged_points);
    if (STAGES_QUERIES)
      stage(queries, work.dimensions, query_rows, query_count, first, last, staged_queries);
    __syncthreads();
    for (uint32_t j = 0; j < last - first; ++j) {
      T point[side], query[side];
      load<T, STAGES_POINTS>(staged_points, points, work.dimensions, point_rows, x, first, j,
                             point);
      load<T, STAGES_QUERIES>(staged_queries, queries, work.dimensions, query_rows, y, first, j,
                              query);
#pragma unroll
      for (int a = 0; a < side; ++a)
#pragma unroll
        for (int b = 0; b < side; ++b) {
          const T difference = query[a] - point[b];
          sums[a][b] = fma(difference, difference, sums[a][b]);
        }
    }
    bool alive = false;
#pragma unroll
    for (int a = 0; a < side; ++a)
#pragma unroll
      for (int b = 0; b < side; ++b) alive |= !(sums[a][b] > beyond);
    if (__syncthreads_or(alive) == 0) return false;
  }
  return true;
}

template <typename T, bool STAGES_POINTS, bool STAGES_QUERIES>
__global__ static void __launch_bounds__(KCP_RANGE_BLOCK_THREADS)
    refine_tasks(struct refinement work) {
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ uint32_t point_rows[tile], query_rows[tile];
  __shared__ struct entry entries[tile];
  T *staged_points = (T *)memory;
  T *staged_queries = staged_points + (STAGES_POINTS ? work.step * tile_stride : 0);
  const struct kcp_range_task task = work.tasks[blockIdx.x];
  const uint32_t begin = work.firsts[task.primitive], end = work.firsts[task.primitive + 1];
  const T within = (T)work.within, beyond = (T)work.beyond;
  const int x = threadIdx.x % lanes, y = threadIdx.x / lanes;
  for (uint64_t query = task.first; query < task.last; query += tile) {
    const int query_count = task.last - query < tile ? (int)(task.last - query) : tile;
    __syncthreads();
    if (threadIdx.x < tile) {
      const int i = (int)threadIdx.x < query_count ? (int)threadIdx.x : 0;
      entries[threadIdx.x] = entry_of(work, task.primitive, query + i);
      query_rows[threadIdx.x] = entries[threadIdx.x].query;
    }
    for (uint32_t point = begin; point < end; point += tile) {
      const int point_count = end - point < tile ? (int)(end - point) : tile;
      T sums[side][side];
      __syncthreads();
      if (threadIdx.x < tile)
        point_rows[threadIdx.x] = point + ((int)threadIdx.x < point_count ? threadIdx.x : 0);
      __syncthreads();
      if (!sum_tile<T, STAGES_POINTS, STAGES_QUERIES>(work, point_rows, point_count, query_rows,
                                                      query_count, beyond, staged_points,
                                                      staged_queries, sums))
        continue;
      uint32_t point_places[side];
#pragma unroll
      for (int b = 0; b < side; ++b) point_places[b] = work.points.places[point_rows[x * side + b]];
#pragma unroll
      for (int a = 0; a < side; ++a) {
        const struct entry entry = entries[y * side + a];
        uint32_t bits = 0;
#pragma unroll
        for (int b = 0; b < side; ++b) {
          const T sum = sums[a][b];
          bool is_within = sum <= within;
          /* A sum that is no number is open too; infinite ones of no pair are beyond. */
          if (!is_within && !(sum > beyond) && y * side + a < query_count &&
              x * side + b < point_count)
            is_within = recheck(work, work.queries.places[entry.query], point_places[b]);
          bits |= (uint32_t)is_within << b;
        }
        note(work, entry, y * side + a < query_count, (point - begin) / 32, bits, point_places);
      }
    }
  }
}

template <typename T>
static enum kcp_status launch(struct kcp_range_join *join, const struct refinement *work,
                              uint64_t task_count, struct kcp_error *error) {
  const enum kcp_range_refine refine = join->refine;
  const bool both = refine == KCP_REFINE_SHARED_BOTH;
  const bool points = both || refine == KCP_REFINE_SHARED_PRIMITIVE;
  const bool queries = both || refine == KCP_REFINE_SHARED_QUERY;
  const size_t bytes = (size_t)work->step * tile_stride * sizeof(T) * (points + queries);
  void (*kernel)(struct refinement) = refine_tasks<T, false, false>;
  if (points && queries) kernel = refine_tasks<T, true, true>;
  if (points && !queries) kernel = refine_tasks<T, true, false>;
  if (!points && queries) kernel = refine_tasks<T, false, true>;
  KCP_CUDA_TRY(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
  struct refinement part = *work;
  for (uint64_t first = 0; first < task_count; first += 1u << 30) {
    const uint64_t count = task_count - first < (1u << 30) ? task_count - first : 1u << 30;
    part.tasks = work->tasks + first;
    kernel<<<(unsigned)count, threads, bytes, join->stream>>>(part);
    KCP_CUDA_TRY(cudaGetLastError());
  }
  return KCP_OK;
}

/* Dimensions that are staged at a time: what --shared-memory has room for, else 16. */
static enum kcp_status choose_step(const struct kcp_range_join *join, size_t value_bytes,
                                   uint32_t *step, struct kcp_error *error) {
  int most = 0;
  uint64_t wanted = standard_step;
  const uint64_t static_bytes = 2048; /* of the kernel besides */
  const uint64_t dimension_bytes = 2 * tile_stride * value_bytes;
  KCP_CUDA_TRY(
      cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, join->device.index));
  if (join->plan.options.shared_memory_bytes > 0)
    wanted = join->plan.options.shared_memory_bytes / dimension_bytes;
  const uint64_t possible = ((uint64_t)most - static_bytes) / dimension_bytes;
  if (wanted > possible) wanted = possible;
  if (wanted > join->plan.dimensions) wanted = join->plan.dimensions;
  *step = wanted > 0 ? (uint32_t)wanted : 1;
  return KCP_OK;
}

struct kcp_range_limit kcp_range_row_limit(const struct kcp_range_join *join) {
  const double eps = join->plan.eps;
  if (!join->is_narrow) return kcp_range_limit_reordered(eps, join->plan.dimensions);
  return kcp_range_limit_rows(eps, join->narrow_scale, join->plan.dimensions,
                              join->point_norm + join->query_norm);
}

enum kcp_status kcp_range_refine(struct kcp_range_join *join,
                                 const struct kcp_range_meeting *meeting,
                                 const struct kcp_range_tasks *tasks,
                                 const struct kcp_range_found *found, struct kcp_error *error) {
  const struct kcp_range_limit limit = kcp_range_row_limit(join);
  struct kcp_range_task *device_tasks;
  struct refinement work = {};
  if (tasks->count == 0) return KCP_OK;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_TASKS, tasks->count, &device_tasks, error));
  KCP_CUDA_TRY(cudaMemcpyAsync(device_tasks, tasks->tasks, tasks->count * sizeof *device_tasks,
                               cudaMemcpyHostToDevice, join->stream));
  work.tasks = device_tasks;
  work.points = join->points;
  work.queries = join->queries;
  work.firsts = kcp_range_array<uint32_t>(join, KCP_BUFFER_FIRSTS);
  work.dimensions = join->plan.dimensions;
  work.rank = join->plan.eps * join->plan.eps;
  work.within = limit.within;
  work.beyond = limit.beyond;
  work.batch_first = meeting->first;
  work.batch_count = meeting->count;
  work.everyone_meets = meeting->everyone_meets;
  work.primitives = join->primitive_count;
  work.entries = meeting->entries;
  work.met_by = meeting->met_by;
  work.found = *found;
  const size_t value_bytes = join->is_narrow ? sizeof(float) : sizeof(double);
  KCP_TRY(choose_step(join, value_bytes, &work.step, error));
  return join->is_narrow ? launch<float>(join, &work, tasks->count, error)
                         : launch<double>(join, &work, tasks->count, error);
}

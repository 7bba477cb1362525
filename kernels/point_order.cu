#include "point_order.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include "kcp/coordinate_hash.h"

static const int threads = 256;

static unsigned blocks_for(uint64_t count) {
  return (unsigned)((count + threads - 1) / threads);
}

struct larger {
  __host__ __device__ uint32_t operator()(uint32_t a, uint32_t b) const {
    return a < b ? b : a;
  }
};

__global__ static void fill_identity(uint32_t *identity, uint32_t count) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) identity[i] = i;
}

static enum kcp_status measure_scratch(uint64_t capacity, size_t *bytes, struct kcp_error *error) {
  size_t sort = 0, scan = 0, select = 0;
  KCP_CUDA_TRY(cub::DeviceRadixSort::SortPairs(NULL, sort, (const uint64_t *)NULL, (uint64_t *)NULL,
                                               (const uint32_t *)NULL, (uint32_t *)NULL,
                                               (int64_t)capacity));
  KCP_CUDA_TRY(cub::DeviceScan::InclusiveScan(NULL, scan, (const uint32_t *)NULL, (uint32_t *)NULL,
                                              larger(), (int64_t)capacity));
  KCP_CUDA_TRY(cub::DeviceSelect::Flagged(NULL, select, (const uint32_t *)NULL,
                                          (const uint32_t *)NULL, (uint32_t *)NULL,
                                          (uint32_t *)NULL, (int64_t)capacity));
  *bytes = sort > scan ? sort : scan;
  if (*bytes < select) *bytes = select;
  return KCP_OK;
}

enum kcp_status kcp_point_sorter_create(struct kcp_device_memory *memory, uint64_t capacity,
                                        struct kcp_point_sorter *sorter, struct kcp_error *error) {
  sorter->capacity = capacity;
  KCP_TRY(measure_scratch(capacity, &sorter->scratch_bytes, error));
  KCP_TRY(kcp_device_array(memory, capacity, &sorter->identity, "sort indices", error));
  KCP_TRY(kcp_device_array(memory, capacity, &sorter->keys, "sort keys", error));
  KCP_TRY(kcp_device_array(memory, capacity, &sorter->sorted_keys, "sort keys", error));
  KCP_TRY(kcp_device_array(memory, capacity, &sorter->pass_order, "sort indices", error));
  KCP_TRY(kcp_device_array(memory, 1, &sorter->answer, "sorting", error));
  KCP_TRY(kcp_device_take(memory, sorter->scratch_bytes, 1, &sorter->scratch, "sorting", error));
  fill_identity<<<blocks_for(capacity), threads>>>(sorter->identity, (uint32_t)capacity);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cudaDeviceSynchronize()); /* other streams read it */
  return KCP_OK;
}

/* Stable. Keys are doubles or unsigned integers. */
template <typename KEY>
static enum kcp_status sort_pairs(struct kcp_point_sorter *sorter, uint32_t count, const KEY *keys,
                                  KEY *sorted_keys, const uint32_t *order, uint32_t *sorted_order,
                                  cudaStream_t stream, struct kcp_error *error) {
  KCP_CUDA_TRY(cub::DeviceRadixSort::SortPairs(sorter->scratch, sorter->scratch_bytes, keys,
                                               sorted_keys, order, sorted_order, (int64_t)count, 0,
                                               64, stream));
  return KCP_OK;
}

__global__ static void gather_coordinate(uint32_t count, const uint32_t *order,
                                         const double *column, uint64_t *keys) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) keys[i] = kcp_ordered_bits(column[order[i]]);
}

/* A pass by coordinate j, on from the order `from`. */
static enum kcp_status sort_by_coordinate(struct kcp_point_sorter *sorter,
                                          const struct kcp_uploaded_points *points, uint32_t j,
                                          const uint32_t *from, uint32_t *into, cudaStream_t stream,
                                          struct kcp_error *error) {
  gather_coordinate<<<blocks_for(points->count), threads, 0, stream>>>(
      points->count, from, points->columns + j * points->stride, sorter->keys);
  KCP_CUDA_TRY(cudaGetLastError());
  return sort_pairs(sorter, points->count, sorter->keys, sorter->sorted_keys, from, into, stream,
                    error);
}

__global__ static void gather_points(const struct kcp_uploaded_points points,
                                     const struct kcp_sorted_points sorted, uint32_t count,
                                     uint32_t first_column) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  uint32_t from = sorted.order[i];
  sorted.ids[i] = points.ids[from];
  for (uint32_t j = first_column; j < points.dimensions; ++j)
    sorted.columns[j * points.stride + i] = points.columns[j * points.stride + from];
}

static enum kcp_status gather(const struct kcp_uploaded_points *points,
                              const struct kcp_sorted_points *sorted, uint32_t count,
                              uint32_t first_column, cudaStream_t stream, struct kcp_error *error) {
  gather_points<<<blocks_for(count), threads, 0, stream>>>(*points, *sorted, count, first_column);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

/* By x alone; the sorted x are in place afterwards, the other columns are not. */
static enum kcp_status sort_by_x(struct kcp_point_sorter *sorter,
                                 const struct kcp_uploaded_points *points,
                                 const struct kcp_sorted_points *sorted, cudaStream_t stream,
                                 struct kcp_error *error) {
  return sort_pairs(sorter, points->count, points->columns, sorted->columns, sorter->identity,
                    sorted->order, stream, error);
}

enum kcp_status kcp_order_by_coordinates(struct kcp_point_sorter *sorter,
                                         const struct kcp_uploaded_points *points,
                                         const struct kcp_sorted_points *sorted,
                                         cudaStream_t stream, struct kcp_error *error) {
  uint32_t dimensions = points->dimensions;
  if (points->count == 0) return KCP_OK;
  if (dimensions == 1 || dimensions > 3) {
    KCP_TRY(sort_by_x(sorter, points, sorted, stream, error));
    return gather(points, sorted, points->count, 1, stream, error);
  }
  /* Sorts are stable: by the last coordinate first, by x last. */
  const uint32_t *so_far = sorter->identity;
  for (uint32_t j = dimensions; j-- > 0;) {
    /* The last pass must leave its result in the order: they alternate. */
    uint32_t *into = j % 2 == 1 ? sorter->pass_order : sorted->order;
    KCP_TRY(sort_by_coordinate(sorter, points, j, so_far, into, stream, error));
    so_far = into;
  }
  return gather(points, sorted, points->count, 0, stream, error);
}

/* *answer becomes 1 where more than k points have one x (sorted). */
__global__ static void find_long_run(uint32_t count, uint32_t k, const double *x,
                                     uint32_t *answer) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= k && i < count && x[i] == x[i - k]) *answer = 1;
}

/* *answer becomes 1 where an id is less than the one before. */
__global__ static void find_descent(uint32_t count, const uint64_t *ids, uint32_t *answer) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 1 && i < count && ids[i] < ids[i - 1]) *answer = 1;
}

static enum kcp_status read_answer(struct kcp_point_sorter *sorter, uint32_t *answer,
                                   cudaStream_t stream, struct kcp_error *error) {
  KCP_CUDA_TRY(
      cudaMemcpyAsync(answer, sorter->answer, sizeof *answer, cudaMemcpyDeviceToHost, stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(stream));
  return KCP_OK;
}

__global__ static void hash_coordinates(const struct kcp_uploaded_points points,
                                        const uint32_t *order, uint64_t *keys) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= points.count) return;
  keys[i] = kcp_coordinate_hash(points.columns, points.stride, points.dimensions, order[i]);
}

/* first[i] = i where a place differs from the one before, else 0. */
__global__ static void mark_places(const struct kcp_uploaded_points points, const uint32_t *order,
                                   uint32_t *first) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= points.count) return;
  bool differs = false;
  if (i > 0)
    for (uint32_t j = 0; j < points.dimensions && !differs; ++j) {
      const double *column = points.columns + j * points.stride;
      differs = column[order[i]] != column[order[i - 1]];
    }
  first[i] = differs ? i : 0;
}

__global__ static void mark_kept(uint32_t count, uint32_t k, const uint32_t *first,
                                 uint32_t *kept) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) kept[i] = i - first[i] < k;
}

/* By id, then by place, then by x, so that the points of a place are neighbours in the order of
 * their ids; then the first k of each place. (Places of one hash, should there be any, may mix:
 * then more is kept.) */
static enum kcp_status drop_coincident(struct kcp_point_sorter *sorter,
                                       const struct kcp_uploaded_points *points, uint32_t k,
                                       const struct kcp_sorted_points *sorted, uint32_t *kept,
                                       cudaStream_t stream, struct kcp_error *error) {
  uint32_t count = points->count;
  unsigned blocks = blocks_for(count);
  uint32_t *first = (uint32_t *)sorter->keys, *flags = first + count;
  uint32_t *first_so_far = (uint32_t *)sorter->sorted_keys;
  KCP_TRY(sort_pairs(sorter, count, points->ids, sorter->sorted_keys, sorter->identity,
                     sorter->pass_order, stream, error));
  hash_coordinates<<<blocks, threads, 0, stream>>>(*points, sorter->pass_order, sorter->keys);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_TRY(sort_pairs(sorter, count, sorter->keys, sorter->sorted_keys, sorter->pass_order,
                     sorted->order, stream, error));
  KCP_TRY(sort_by_coordinate(sorter, points, 0, sorted->order, sorter->pass_order, stream, error));
  mark_places<<<blocks, threads, 0, stream>>>(*points, sorter->pass_order, first);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cub::DeviceScan::InclusiveScan(sorter->scratch, sorter->scratch_bytes, first,
                                              first_so_far, larger(), (int64_t)count, stream));
  mark_kept<<<blocks, threads, 0, stream>>>(count, k, first_so_far, flags);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cub::DeviceSelect::Flagged(sorter->scratch, sorter->scratch_bytes,
                                          sorter->pass_order, flags, sorted->order, sorter->answer,
                                          (int64_t)count, stream));
  KCP_TRY(read_answer(sorter, kept, stream, error));
  return gather(points, sorted, *kept, 0, stream, error);
}

enum kcp_status kcp_order_by_x(struct kcp_point_sorter *sorter,
                               const struct kcp_uploaded_points *points, uint64_t of_a_place,
                               const struct kcp_sorted_points *sorted, uint32_t *kept,
                               cudaStream_t stream, struct kcp_error *error) {
  uint32_t long_run = 0;
  *kept = points->count;
  if (points->count == 0) return KCP_OK;
  KCP_TRY(sort_by_x(sorter, points, sorted, stream, error));
  if (of_a_place < points->count) { /* only points of one x can coincide */
    KCP_CUDA_TRY(cudaMemsetAsync(sorter->answer, 0, sizeof *sorter->answer, stream));
    find_long_run<<<blocks_for(points->count), threads, 0, stream>>>(
        points->count, (uint32_t)of_a_place, sorted->columns, sorter->answer);
    KCP_CUDA_TRY(cudaGetLastError());
    KCP_TRY(read_answer(sorter, &long_run, stream, error));
  }
  if (long_run != 0)
    return drop_coincident(sorter, points, (uint32_t)of_a_place, sorted, kept, stream, error);
  return gather(points, sorted, points->count, 1, stream, error);
}

enum kcp_status kcp_order_by_id(struct kcp_point_sorter *sorter,
                                const struct kcp_uploaded_points *points,
                                const struct kcp_sorted_points *sorted, bool *is_sorted,
                                cudaStream_t stream, struct kcp_error *error) {
  uint32_t descends = 0;
  *is_sorted = false;
  if (points->count == 0) return KCP_OK;
  KCP_CUDA_TRY(cudaMemsetAsync(sorter->answer, 0, sizeof *sorter->answer, stream));
  find_descent<<<blocks_for(points->count), threads, 0, stream>>>(points->count, points->ids,
                                                                  sorter->answer);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_TRY(read_answer(sorter, &descends, stream, error));
  if (descends == 0) return KCP_OK;
  *is_sorted = true;
  KCP_TRY(sort_pairs(sorter, points->count, points->ids, sorter->sorted_keys, sorter->identity,
                     sorted->order, stream, error));
  return gather(points, sorted, points->count, 0, stream, error);
}

#include "morton_sort.cuh"

#include <cub/block/block_radix_sort.cuh>
#include <cub/device/device_radix_sort.cuh>

#include "kcp/ordered_bits.h"

static const int threads = 256;

static const int knot_threads = 1024;
static const int knots_per_thread = KCP_MORTON_SAMPLE / knot_threads;

struct ends {
  double low[KCP_MAX_AXES], high[KCP_MAX_AXES];
};

/* A block an axis. */
__global__ static void find_knots(const struct kcp_cells axes, const struct kcp_point_set set,
                                  const struct ends ends, double *knots) {
  typedef cub::BlockRadixSort<uint64_t, knot_threads, knots_per_thread> sort;
  __shared__ typename sort::TempStorage storage;
  const uint32_t axis = blockIdx.x;
  const double *column = set.columns + axes.axis[axis] * set.stride;
  uint64_t sampled[knots_per_thread];
  double *own = knots + axis * KCP_MORTON_KNOTS;
#pragma unroll
  for (int s = 0; s < knots_per_thread; ++s) {
    uint64_t number = threadIdx.x * knots_per_thread + s;
    sampled[s] = kcp_ordered_bits(column[number * set.count / KCP_MORTON_SAMPLE]);
  }
  sort(storage).Sort(sampled);
#pragma unroll
  for (int s = 0; s < knots_per_thread; ++s) {
    uint32_t number = threadIdx.x * knots_per_thread + s;
    if (number % KCP_MORTON_SPACING == 0)
      own[number / KCP_MORTON_SPACING] = kcp_from_ordered_bits(sampled[s]);
  }
  __syncthreads();
  if (threadIdx.x == 0) own[0] = ends.low[axis];
  if (threadIdx.x == 1) own[KCP_MORTON_PIECES] = ends.high[axis];
}

enum kcp_status kcp_morton_find_knots(const struct kcp_cells *axes, const struct kcp_point_set *set,
                                      const double *low, const double *high, double *knots,
                                      cudaStream_t stream, struct kcp_error *error) {
  struct ends ends = {};
  if (set->count == 0) return KCP_OK;
  for (uint32_t j = 0; j < axes->axes; ++j) {
    ends.low[j] = low[j];
    ends.high[j] = high[j];
  }
  find_knots<<<axes->axes, knot_threads, 0, stream>>>(*axes, *set, ends, knots);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

enum kcp_status kcp_morton_sorter_create(struct kcp_device_memory *memory, uint64_t capacity,
                                         struct kcp_morton_sorter *sorter,
                                         struct kcp_error *error) {
  sorter->capacity = capacity;
  sorter->scratch_bytes = 0;
  KCP_CUDA_TRY(cub::DeviceRadixSort::SortPairs(NULL, sorter->scratch_bytes, (const uint64_t *)NULL,
                                               (uint64_t *)NULL, (const uint32_t *)NULL,
                                               (uint32_t *)NULL, (int64_t)capacity));
  KCP_TRY(kcp_device_array(memory, capacity, &sorter->keys, "sort keys", error));
  KCP_TRY(kcp_device_array(memory, capacity, &sorter->sorted_keys, "sort keys", error));
  KCP_TRY(kcp_device_array(memory, capacity, &sorter->indices, "sort indices", error));
  KCP_TRY(kcp_device_array(memory, capacity, &sorter->order, "sort indices", error));
  return kcp_device_take(memory, sorter->scratch_bytes, 1, &sorter->scratch, "sorting", error);
}

__global__ static void fill_keys(const struct kcp_cells axes, const struct kcp_morton_frame frame,
                                 const struct kcp_point_set set, uint64_t first_id,
                                 uint64_t last_id, uint64_t *keys, uint32_t *indices) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= set.count) return;
  double point[KCP_MAX_AXES];
  kcp_set_axes(set, axes, i, point);
  bool all = first_id == 0 && last_id == UINT64_MAX;
  uint64_t id = all ? 0 : kcp_set_id(set, i);
  bool left_out = id < first_id || id > last_id;
  keys[i] = left_out ? UINT64_MAX : kcp_morton_key(&frame, point);
  indices[i] = i;
}

enum kcp_status kcp_morton_sort(struct kcp_morton_sorter *sorter, const struct kcp_cells *axes,
                                const struct kcp_morton_frame *frame,
                                const struct kcp_point_set *set, uint64_t first_id,
                                uint64_t last_id, cudaStream_t stream, struct kcp_error *error) {
  uint32_t count = set->count;
  if (count == 0) return KCP_OK;
  fill_keys<<<(count + threads - 1) / threads, threads, 0, stream>>>(
      *axes, *frame, *set, first_id, last_id, sorter->keys, sorter->indices);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cub::DeviceRadixSort::SortPairs(sorter->scratch, sorter->scratch_bytes, sorter->keys,
                                               sorter->sorted_keys, sorter->indices, sorter->order,
                                               (int64_t)count, 0, 64, stream));
  return KCP_OK;
}

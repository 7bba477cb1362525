#include "morton_sort.cuh"

#include <cub/device/device_radix_sort.cuh>

static const int threads = 256;

struct kcp_morton_frame kcp_morton_frame_of(uint32_t axes, const double *low, const double *high) {
  struct kcp_morton_frame frame = {};
  double longest = 0;
  for (uint32_t j = 0; j < axes; ++j) {
    frame.low[j] = low[j];
    longest = fmax(longest, high[j] - low[j]);
  }
  frame.scale = longest > 0 ? fmin(2097152.0 / longest, 1e300) : 1;
  return frame;
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
                                 const struct kcp_point_set set, double step, uint32_t count,
                                 uint64_t id_limit, uint64_t *keys, uint32_t *indices) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  uint32_t index = min((uint32_t)(i * step), set.count - 1);
  double point[KCP_MAX_AXES];
  kcp_set_axes(set, axes, index, point);
  bool left_out = set.ids != NULL && set.ids[index] > id_limit;
  keys[i] = left_out ? UINT64_MAX : kcp_morton_key(axes.axes, frame.low, frame.scale, point);
  indices[i] = index;
}

enum kcp_status kcp_morton_sort(struct kcp_morton_sorter *sorter, const struct kcp_cells *axes,
                                const struct kcp_morton_frame *frame,
                                const struct kcp_point_set *set, double step, uint32_t count,
                                uint64_t id_limit, cudaStream_t stream, struct kcp_error *error) {
  if (count == 0) return KCP_OK;
  fill_keys<<<(count + threads - 1) / threads, threads, 0, stream>>>(
      *axes, *frame, *set, step, count, id_limit, sorter->keys, sorter->indices);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cub::DeviceRadixSort::SortPairs(sorter->scratch, sorter->scratch_bytes, sorter->keys,
                                               sorter->sorted_keys, sorter->indices, sorter->order,
                                               (int64_t)count, 0, 64, stream));
  return KCP_OK;
}

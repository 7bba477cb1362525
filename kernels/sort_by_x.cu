#include "sort_by_x.cuh"

#include <cub/device/device_radix_sort.cuh>

static const int gather_threads = 256;

__global__ static void fill_identity(uint32_t *identity, uint32_t count) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) identity[i] = i;
}

__global__ static void gather(uint32_t count, uint32_t dimensions, const uint32_t *order,
                              const double *columns, uint64_t stride, const uint64_t *ids,
                              double *sorted_columns, uint64_t *sorted_ids) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  uint32_t from = order[i];
  sorted_ids[i] = ids[from];
  for (uint32_t j = 1; j < dimensions; ++j)
    sorted_columns[j * stride + i] = columns[j * stride + from];
}

static unsigned blocks_for(uint64_t count) {
  return (unsigned)((count + gather_threads - 1) / gather_threads);
}

enum kcp_status kcp_x_sorter_create(struct kcp_device_memory *memory, uint64_t capacity,
                                    struct kcp_x_sorter *sorter, struct kcp_error *error) {
  sorter->capacity = capacity;
  sorter->scratch_bytes = 0;
  KCP_CUDA_TRY(cub::DeviceRadixSort::SortPairs(NULL, sorter->scratch_bytes, (const double *)NULL,
                                               (double *)NULL, (const uint32_t *)NULL,
                                               (uint32_t *)NULL, (int64_t)capacity));
  KCP_TRY(kcp_device_array(memory, capacity, &sorter->identity, "sort indices", error));
  KCP_TRY(kcp_device_take(memory, sorter->scratch_bytes, 1, &sorter->scratch, "sorting", error));
  fill_identity<<<blocks_for(capacity), gather_threads>>>(sorter->identity, (uint32_t)capacity);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cudaDeviceSynchronize()); /* other streams read it */
  return KCP_OK;
}

enum kcp_status kcp_sort_by_x(struct kcp_x_sorter *sorter, uint64_t count, uint32_t dimensions,
                              const double *columns, uint64_t stride, const uint64_t *ids,
                              double *sorted_columns, uint64_t *sorted_ids, uint32_t *order,
                              cudaStream_t stream, struct kcp_error *error) {
  if (count == 0) return KCP_OK;
  KCP_CUDA_TRY(cub::DeviceRadixSort::SortPairs(sorter->scratch, sorter->scratch_bytes, columns,
                                               sorted_columns, sorter->identity, order,
                                               (int64_t)count, 0, 64, stream));
  gather<<<blocks_for(count), gather_threads, 0, stream>>>(
      (uint32_t)count, dimensions, order, columns, stride, ids, sorted_columns, sorted_ids);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

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
                                    enum kcp_equal_x equal_x, struct kcp_x_sorter *sorter,
                                    struct kcp_error *error) {
  sorter->capacity = capacity;
  sorter->equal_x = equal_x;
  sorter->scratch_bytes = 0;
  KCP_CUDA_TRY(cub::DeviceRadixSort::SortPairs(NULL, sorter->scratch_bytes, (const double *)NULL,
                                               (double *)NULL, (const uint32_t *)NULL,
                                               (uint32_t *)NULL, (int64_t)capacity));
  KCP_TRY(kcp_device_array(memory, capacity, &sorter->identity, "sort indices", error));
  if (equal_x == KCP_EQUAL_X_BY_Y_Z) {
    KCP_TRY(kcp_device_array(memory, capacity, &sorter->keys, "sort keys", error));
    KCP_TRY(kcp_device_array(memory, capacity, &sorter->sorted_keys, "sort keys", error));
    KCP_TRY(kcp_device_array(memory, capacity, &sorter->pass_order, "sort indices", error));
  }
  KCP_TRY(kcp_device_take(memory, sorter->scratch_bytes, 1, &sorter->scratch, "sorting", error));
  fill_identity<<<blocks_for(capacity), gather_threads>>>(sorter->identity, (uint32_t)capacity);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cudaDeviceSynchronize()); /* other streams read it */
  return KCP_OK;
}

__global__ static void gather_keys(uint32_t count, const uint32_t *order, const double *column,
                                   double *keys) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) keys[i] = column[order[i]];
}

static enum kcp_status sort_pairs(struct kcp_x_sorter *sorter, uint64_t count, const double *keys,
                                  double *sorted_keys, const uint32_t *order,
                                  uint32_t *sorted_order, cudaStream_t stream,
                                  struct kcp_error *error) {
  KCP_CUDA_TRY(cub::DeviceRadixSort::SortPairs(sorter->scratch, sorter->scratch_bytes, keys,
                                               sorted_keys, order, sorted_order, (int64_t)count, 0,
                                               64, stream));
  return KCP_OK;
}

/* Sorts are stable: by the last coordinate first, by x last. */
static enum kcp_status sort_by_coordinates(struct kcp_x_sorter *sorter, uint64_t count,
                                           uint32_t dimensions, const double *columns,
                                           uint64_t stride, double *sorted_x, uint32_t *order,
                                           cudaStream_t stream, struct kcp_error *error) {
  const uint32_t *so_far = sorter->identity;
  for (uint32_t j = dimensions - 1; j > 0; --j) {
    /* The last of the passes must leave its result in `order`: they alternate. */
    uint32_t *into = j % 2 == 1 ? sorter->pass_order : order;
    gather_keys<<<blocks_for(count), gather_threads, 0, stream>>>(
        (uint32_t)count, so_far, columns + j * stride, sorter->keys);
    KCP_TRY(
        sort_pairs(sorter, count, sorter->keys, sorter->sorted_keys, so_far, into, stream, error));
    so_far = into;
  }
  gather_keys<<<blocks_for(count), gather_threads, 0, stream>>>((uint32_t)count, so_far, columns,
                                                                sorter->keys);
  KCP_CUDA_TRY(cudaGetLastError());
  return sort_pairs(sorter, count, sorter->keys, sorted_x, so_far, order, stream, error);
}

enum kcp_status kcp_sort_by_x(struct kcp_x_sorter *sorter, uint64_t count, uint32_t dimensions,
                              const double *columns, uint64_t stride, const uint64_t *ids,
                              double *sorted_columns, uint64_t *sorted_ids, uint32_t *order,
                              cudaStream_t stream, struct kcp_error *error) {
  if (count == 0) return KCP_OK;
  if (sorter->equal_x == KCP_EQUAL_X_BY_Y_Z && dimensions > 1)
    KCP_TRY(sort_by_coordinates(sorter, count, dimensions, columns, stride, sorted_columns, order,
                                stream, error));
  else
    KCP_TRY(
        sort_pairs(sorter, count, columns, sorted_columns, sorter->identity, order, stream, error));
  gather<<<blocks_for(count), gather_threads, 0, stream>>>(
      (uint32_t)count, dimensions, order, columns, stride, ids, sorted_columns, sorted_ids);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

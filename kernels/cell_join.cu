/* Geometry: 256 threads a block; a thread a held point to fill the table, a thread a streamed point
 * to join. Cost of the join: a streamed point looks into the 1 to 2^axes buckets of the cells that
 * its box touches (2.25 on average in two dimensions), and ranks the points there. Pairs are
 * appended by warps.
 *
 * History (H200, 114.7M x 11.5M uniform 2-D, k 10^6):
 *  1. a tree of boxes in Morton order, a warp descending for each point: 58 ms, and 5 ms to sort.
 */
#include "cell_join.cuh"

#include <cub/device/device_scan.cuh>

static const int threads = 256;

static unsigned blocks_for(uint64_t count) {
  return (unsigned)((count + threads - 1) / threads);
}

static uint32_t bucket_bits_for(uint64_t points) {
  uint32_t bits = 1;
  while (bits < 31 && UINT64_C(1) << bits < points) ++bits;
  return bits;
}

enum kcp_status kcp_cell_table_create(struct kcp_device_memory *memory, uint64_t capacity,
                                      struct kcp_cell_table *table, struct kcp_error *error) {
  uint64_t buckets = UINT64_C(1) << bucket_bits_for(capacity);
  table->capacity = capacity;
  table->scratch_bytes = 0;
  KCP_CUDA_TRY(cub::DeviceScan::ExclusiveSum(NULL, table->scratch_bytes, (const uint32_t *)NULL,
                                             (uint32_t *)NULL, (int64_t)buckets + 1));
  KCP_TRY(kcp_device_array(memory, buckets + 1, &table->counts, "cells", error));
  KCP_TRY(kcp_device_array(memory, buckets + 1, &table->starts, "cells", error));
  KCP_TRY(kcp_device_array(memory, capacity, &table->entries, "cells", error));
  KCP_TRY(kcp_device_array(memory, 1, &table->fullest, "cells", error));
  return kcp_device_take(memory, table->scratch_bytes, 1, &table->scratch, "cells", error);
}

__device__ static inline uint32_t bucket_of(const struct kcp_cells &cells, uint32_t bucket_bits,
                                            const struct kcp_point_set &set, uint32_t i) {
  double point[KCP_MAX_AXES];
  kcp_set_axes(set, cells, i, point);
  return kcp_cell_bucket(kcp_cell_of(&cells, point), bucket_bits);
}

__global__ static void count_points(const struct kcp_cells cells, uint32_t bucket_bits,
                                    const struct kcp_point_set held, uint32_t *counts,
                                    unsigned *fullest) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned count =
      i < held.count ? atomicAdd(&counts[bucket_of(cells, bucket_bits, held, i)], 1u) + 1 : 0;
  for (int offset = 16; offset > 0; offset /= 2)
    count = max(count, __shfl_xor_sync(0xffffffffu, count, offset));
  if (threadIdx.x % 32 == 0 && count > *(volatile unsigned *)fullest) atomicMax(fullest, count);
}

__global__ static void enter_points(const struct kcp_cells cells, uint32_t bucket_bits,
                                    const struct kcp_point_set held, const uint32_t *starts,
                                    uint32_t *counts, uint32_t *entries) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= held.count) return;
  uint32_t bucket = bucket_of(cells, bucket_bits, held, i);
  entries[starts[bucket] + atomicSub(&counts[bucket], 1u) - 1] = i;
}

enum kcp_status kcp_cell_table_fill(struct kcp_cell_table *table, const struct kcp_cells *cells,
                                    const struct kcp_point_set *held, unsigned *fullest,
                                    cudaStream_t stream, struct kcp_error *error) {
  table->bucket_bits = bucket_bits_for(held->count);
  uint64_t buckets = UINT64_C(1) << table->bucket_bits;
  KCP_CUDA_TRY(cudaMemsetAsync(table->counts, 0, (buckets + 1) * sizeof *table->counts, stream));
  KCP_CUDA_TRY(cudaMemsetAsync(table->fullest, 0, sizeof *table->fullest, stream));
  if (held->count > 0)
    count_points<<<blocks_for(held->count), threads, 0, stream>>>(*cells, table->bucket_bits, *held,
                                                                  table->counts, table->fullest);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cub::DeviceScan::ExclusiveSum(table->scratch, table->scratch_bytes, table->counts,
                                             table->starts, (int64_t)buckets + 1, stream));
  if (held->count > 0)
    enter_points<<<blocks_for(held->count), threads, 0, stream>>>(
        *cells, table->bucket_bits, *held, table->starts, table->counts, table->entries);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(
      cudaMemcpyAsync(fullest, table->fullest, sizeof *fullest, cudaMemcpyDeviceToHost, stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(stream));
  return KCP_OK;
}

__device__ static inline void join_bucket(const struct kcp_cell_table &table,
                                          const struct kcp_join_question &asked, uint32_t bucket,
                                          uint32_t q) {
  uint32_t last = table.starts[bucket + 1];
  for (uint32_t at = table.starts[bucket]; at < last; ++at) {
    uint32_t h = table.entries[at];
    double rank = kcp_rank_of_pair(asked, h, q);
    if (kcp_pair_belongs(asked, h, q, rank))
      kcp_append_pair(asked.pairs, rank, kcp_set_record(asked.held, h),
                      kcp_set_record(asked.streamed, q));
  }
}

/* Two cells of a box may share a bucket, which is looked into once. */
__global__ static void join(const struct kcp_cell_table table, const struct kcp_cells cells,
                            const struct kcp_join_question asked) {
  uint32_t q = blockIdx.x * blockDim.x + threadIdx.x;
  if (q >= asked.streamed.count || kcp_out_of_room(asked.pairs)) return;
  double point[KCP_MAX_AXES];
  kcp_set_axes(asked.streamed, cells, q, point);
  struct kcp_cell_box box = kcp_cell_box_of(&cells, point);
  uint32_t seen[8];
  int count = 0;
  for (int64_t a = box.first[0]; a <= box.last[0]; ++a)
    for (int64_t b = box.first[1]; b <= box.last[1]; ++b)
      for (int64_t c = box.first[2]; c <= box.last[2]; ++c) {
        uint32_t bucket = kcp_cell_bucket(kcp_cell_at(&cells, a, b, c), table.bucket_bits);
        bool known = false;
        for (int s = 0; s < count; ++s) known |= seen[s] == bucket;
        if (known) continue;
        if (count < 8) seen[count++] = bucket;
        join_bucket(table, asked, bucket, q);
      }
}

enum kcp_status kcp_cell_join(const struct kcp_cell_table *table, const struct kcp_cells *cells,
                              const struct kcp_join_question *asked, cudaStream_t stream,
                              struct kcp_error *error) {
  if (asked->held.count == 0 || asked->streamed.count == 0) return KCP_OK;
  join<<<blocks_for(asked->streamed.count), threads, 0, stream>>>(*table, *cells, *asked);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

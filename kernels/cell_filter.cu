/* Geometry: 256 threads a block; probing takes 4 points a thread, so that 4 independent bitmap
 * words are in flight, and appends once a block (1,024 points). Cost of probing n points of d
 * coordinates: 8 d n bytes read in order and n words of the bitmap read at random, from the L2
 * while it fits there. Marking: 2.25 (2-D) or 3.4 (3-D) atomic ORs a point on average, since a cell
 * is twice as wide as the box. */
#include "cell_filter.cuh"

static const int threads = 256;
static const int points_per_thread = 4;

__device__ static inline bool is_marked(const uint32_t *bitmap, uint64_t bit) {
  return __ldg(bitmap + (bit >> 5)) >> (bit & 31) & 1;
}

/* Calls visit(bit) for each cell that the box around the point touches, until it returns true. */
template <class VISIT>
__device__ static inline bool any_touched(const struct kcp_cells &cells, const double *point,
                                          VISIT visit) {
  struct kcp_cell_box box = kcp_cell_box_of(&cells, point);
  for (int64_t a = box.first[0]; a <= box.last[0]; ++a)
    for (int64_t b = box.first[1]; b <= box.last[1]; ++b)
      for (int64_t c = box.first[2]; c <= box.last[2]; ++c)
        if (visit(kcp_cell_bit_of(&cells, a, b, c))) return true;
  return false;
}

template <enum kcp_cell_touch TOUCH>
__global__ static void mark(const struct kcp_cells cells, const struct kcp_point_set set,
                            uint32_t *bitmap) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= set.count) return;
  double point[KCP_MAX_AXES];
  kcp_set_axes(set, cells, i, point);
  auto set_bit = [bitmap](uint64_t bit) {
    atomicOr(bitmap + (bit >> 5), 1u << (bit & 31));
    return false;
  };
  if (TOUCH == KCP_TOUCH_BOX)
    any_touched(cells, point, set_bit);
  else
    set_bit(kcp_cell_bit(&cells, point));
}

enum kcp_status kcp_cells_mark(const struct kcp_cells *cells, const struct kcp_point_set *set,
                               enum kcp_cell_touch touch, uint32_t *bitmap, cudaStream_t stream,
                               struct kcp_error *error) {
  KCP_CUDA_TRY(cudaMemsetAsync(bitmap, 0, (cells->mask + 1) / 8, stream));
  if (set->count == 0) return KCP_OK;
  unsigned blocks = (set->count + threads - 1) / threads;
  if (touch == KCP_TOUCH_BOX)
    mark<KCP_TOUCH_BOX><<<blocks, threads, 0, stream>>>(*cells, *set, bitmap);
  else
    mark<KCP_TOUCH_POINT><<<blocks, threads, 0, stream>>>(*cells, *set, bitmap);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

template <enum kcp_cell_touch TOUCH>
__global__ static void probe(const struct kcp_cells cells, uint32_t dimensions,
                             const struct kcp_point_set set, const uint32_t *bitmap,
                             const struct kcp_point_set kept, unsigned long long *counter) {
  __shared__ unsigned block_count;
  __shared__ unsigned long long block_base;
  if (threadIdx.x == 0) block_count = 0;
  __syncthreads();
  uint32_t first = blockIdx.x * (threads * points_per_thread) + threadIdx.x;
  bool keep[points_per_thread];
  unsigned kept_here = 0;
#pragma unroll
  for (int p = 0; p < points_per_thread; ++p) {
    uint32_t i = first + p * threads;
    keep[p] = i < set.count;
    if (!keep[p] || bitmap == NULL) continue;
    double point[KCP_MAX_AXES];
    kcp_set_axes(set, cells, i, point);
    auto marked = [bitmap](uint64_t bit) { return is_marked(bitmap, bit); };
    keep[p] = TOUCH == KCP_TOUCH_BOX ? any_touched(cells, point, marked)
                                     : marked(kcp_cell_bit(&cells, point));
  }
#pragma unroll
  for (int p = 0; p < points_per_thread; ++p) kept_here += keep[p];
  unsigned place = kept_here > 0 ? atomicAdd(&block_count, kept_here) : 0;
  __syncthreads();
  if (threadIdx.x == 0 && block_count > 0) block_base = atomicAdd(counter, block_count);
  __syncthreads();
  for (int p = 0; p < points_per_thread; ++p) {
    if (!keep[p]) continue;
    uint32_t i = first + p * threads;
    uint64_t to = block_base + place++;
    for (uint32_t j = 0; j < dimensions; ++j)
      kept.columns[j * kept.stride + to] = set.columns[j * set.stride + i];
    kept.records[to] = kcp_set_record(set, i);
  }
}

enum kcp_status kcp_cells_probe(const struct kcp_cells *cells, uint32_t dimensions,
                                const struct kcp_point_set *set, enum kcp_cell_touch touch,
                                const uint32_t *bitmap, const struct kcp_point_set *kept,
                                unsigned long long *counter, cudaStream_t stream,
                                struct kcp_error *error) {
  if (set->count == 0) return KCP_OK;
  uint32_t per_block = threads * points_per_thread;
  unsigned blocks = (set->count + per_block - 1) / per_block;
  if (touch == KCP_TOUCH_BOX)
    probe<KCP_TOUCH_BOX>
        <<<blocks, threads, 0, stream>>>(*cells, dimensions, *set, bitmap, *kept, counter);
  else
    probe<KCP_TOUCH_POINT>
        <<<blocks, threads, 0, stream>>>(*cells, dimensions, *set, bitmap, *kept, counter);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

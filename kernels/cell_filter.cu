/* Geometry: 256 threads a block; probing the cells of points takes 4 points a thread: their
 * coordinates are loaded first, 16 bytes at a time, then 4 independent words of the bitmap are in
 * flight; survivors are appended once a block (1,024 points). Probing boxes takes 2 points a
 * thread. Cost of probing n points of d coordinates: 8 d n bytes read in order and n words of the
 * bitmap read at random, from the L2 while it fits there. Marking: 1.27 to 2.25 (2-D) or 1.42 to
 * 3.4 (3-D) atomic ORs a point, as cells are 16 to 4 reaches wide.
 *
 * History (H200, 11.5M points marked, 114.7M probed in blocks of 2^20, uniform 2-D):
 *  1. one bit a cell in 2^29 bits, cells of 4 reaches, points loaded one by one, floor and three
 *     rounds of SplitMix64 a cell: 0.90 ms marking, 3.60 ms probing, 4.7% pass.
 *  2. all loads of a thread first, 16 bytes each: 2.56 ms probing. A cheaper hash changes nothing
 *     there (2.53).
 *  3. cells of 16 reaches: 0.55 ms marking, 2.50 probing.
 *  4. 2^27 bits, which the L2 holds: 0.17 and 1.69 ms, but 10.3% pass.
 *  5. two bits of a 64-bit word a cell: 0.17 and 1.57 ms, 4.2% pass. 8 points a thread: 1.53;
 * 2: 1.60; streaming loads: 1.49; two bits of a 32-bit word: 1.79 and 4.6% pass.
 *  6. looking before each atomic OR whether the bits are set: 0.33 ms marking instead of 0.17.
 *     With 5, the whole search, guess and joins included, went from 9.4 to 5.1 ms.
 *  7. with --self, a second bitmap of cells that two points mark: 1M uniform 3-D 0.38 ms of search;
 *     before, the filter kept every point.
 */
#include "cell_filter.cuh"

static const int threads = 256;

/* Calls visit(hash) for each cell that the box around the point touches, until it returns true. */
template <class VISIT>
__device__ static inline bool any_touched(const struct kcp_cells &cells, const double *point,
                                          VISIT visit) {
  struct kcp_cell_box box = kcp_cell_box_of(&cells, point);
  for (int64_t a = box.first[0]; a <= box.last[0]; ++a)
    for (int64_t b = box.first[1]; b <= box.last[1]; ++b)
      for (int64_t c = box.first[2]; c <= box.last[2]; ++c)
        if (visit(kcp_cell_at(&cells, a, b, c))) return true;
  return false;
}

template <enum kcp_cell_touch TOUCH>
__global__ static void mark(const struct kcp_cells cells, const struct kcp_point_set set,
                            const struct kcp_cell_marks marks) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= kcp_set_count(set)) return;
  double point[KCP_MAX_AXES];
  kcp_set_axes(set, cells, i, point);
  auto set_bits = [&cells, &marks](uint64_t hash) {
    unsigned long long mask = kcp_cell_mask(hash);
    uint64_t word = kcp_cell_word(&cells, hash);
    unsigned long long *once = (unsigned long long *)marks.once + word;
    if (marks.twice == NULL) {
      atomicOr(once, mask);
    } else if ((atomicOr(once, mask) & mask) == mask) {
      atomicOr((unsigned long long *)marks.twice + word, mask);
    }
    return false;
  };
  if (TOUCH == KCP_TOUCH_BOX)
    any_touched(cells, point, set_bits);
  else
    set_bits(kcp_cell_of(&cells, point));
}

enum kcp_status kcp_cells_mark(const struct kcp_cells *cells, const struct kcp_point_set *set,
                               enum kcp_cell_touch touch, const struct kcp_cell_marks *marks,
                               cudaStream_t stream, struct kcp_error *error) {
  size_t bytes = sizeof *marks->once << cells->word_bits;
  KCP_CUDA_TRY(cudaMemsetAsync(marks->once, 0, bytes, stream));
  if (marks->twice != NULL) KCP_CUDA_TRY(cudaMemsetAsync(marks->twice, 0, bytes, stream));
  if (set->count == 0) return KCP_OK;
  unsigned blocks = (set->count + threads - 1) / threads;
  if (touch == KCP_TOUCH_BOX)
    mark<KCP_TOUCH_BOX><<<blocks, threads, 0, stream>>>(*cells, *set, *marks);
  else
    mark<KCP_TOUCH_POINT><<<blocks, threads, 0, stream>>>(*cells, *set, *marks);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

/* The words that the cells of POINTS points have in the bitmap, and whether their bits are set. */
template <int POINTS>
__device__ static inline void probe_points(const struct kcp_cells &cells,
                                           const struct kcp_point_set &set,
                                           const struct kcp_cell_marks &marks,
                                           const double (&point)[POINTS][KCP_MAX_AXES],
                                           const uint32_t (&index)[POINTS], bool (&keep)[POINTS]) {
  uint64_t mask[POINTS], found[POINTS];
  const uint64_t *word[POINTS];
#pragma unroll
  for (int p = 0; p < POINTS; ++p) {
    uint64_t hash = kcp_cell_of(&cells, point[p]);
    const uint64_t *bitmap = marks.once;
    if (marks.twice != NULL) bitmap = kcp_marks_for(&marks, kcp_set_record(set, index[p]));
    mask[p] = kcp_cell_mask(hash);
    word[p] = bitmap + kcp_cell_word(&cells, hash);
  }
#pragma unroll
  for (int p = 0; p < POINTS; ++p) found[p] = __ldg((const unsigned long long *)word[p]);
#pragma unroll
  for (int p = 0; p < POINTS; ++p) keep[p] = keep[p] && (found[p] & mask[p]) == mask[p];
}

template <int AXES, enum kcp_cell_touch TOUCH, int POINTS>
__global__ static void __launch_bounds__(threads)
    probe(const struct kcp_cells cells, uint32_t dimensions, const struct kcp_point_set set,
          const struct kcp_cell_marks marks, const struct kcp_point_set kept,
          unsigned long long *counter) {
  __shared__ unsigned block_count;
  __shared__ unsigned long long block_base;
  const uint32_t count = kcp_set_count(set), block_first = blockIdx.x * (threads * POINTS);
  if (block_first >= count) return;
  if (threadIdx.x == 0) block_count = 0;
  __syncthreads();
  double point[POINTS][KCP_MAX_AXES] = {};
  uint32_t index[POINTS];
  bool keep[POINTS];
#pragma unroll
  for (int p = 0; p < POINTS; p += 2) {
    uint32_t i = block_first + p * threads + 2 * threadIdx.x;
    uint32_t pair = min(i, (count - 1) & ~1u); /* the last of an odd count reads one too many */
#pragma unroll
    for (int j = 0; j < AXES; ++j) {
      double2 both = *(const double2 *)(set.columns + cells.axis[j] * set.stride + pair);
      point[p][j] = both.x;
      point[p + 1][j] = both.y;
    }
    for (int half = 0; half < 2; ++half) {
      index[p + half] = min(i + half, count - 1);
      keep[p + half] = i + half < count;
    }
  }
  if (marks.once != NULL && TOUCH == KCP_TOUCH_POINT) {
    probe_points<POINTS>(cells, set, marks, point, index, keep);
  } else if (marks.once != NULL) {
    auto marked = [&cells, &marks](uint64_t hash) {
      unsigned long long mask = kcp_cell_mask(hash);
      return (__ldg((const unsigned long long *)marks.once + kcp_cell_word(&cells, hash)) & mask) ==
             mask;
    };
#pragma unroll
    for (int p = 0; p < POINTS; ++p) keep[p] = keep[p] && any_touched(cells, point[p], marked);
  }
  unsigned kept_here = 0;
#pragma unroll
  for (int p = 0; p < POINTS; ++p) kept_here += keep[p];
  unsigned place = kept_here > 0 ? atomicAdd(&block_count, kept_here) : 0;
  __syncthreads();
  if (threadIdx.x == 0 && block_count > 0) block_base = atomicAdd(counter, block_count);
  __syncthreads();
#pragma unroll
  for (int p = 0; p < POINTS; ++p) {
    uint64_t to = block_base + place;
    if (!keep[p]) continue;
    ++place;
    if (to >= kept.stride) continue;
    for (uint32_t j = 0; j < dimensions; ++j)
      kept.columns[j * kept.stride + to] = set.columns[j * set.stride + index[p]];
    kept.records[to] = kcp_set_record(set, index[p]);
  }
}

template <enum kcp_cell_touch TOUCH, int POINTS>
static void launch(const struct kcp_cells &cells, uint32_t dimensions,
                   const struct kcp_point_set &set, const struct kcp_cell_marks &marks,
                   const struct kcp_point_set &kept, unsigned long long *counter,
                   cudaStream_t stream) {
  const uint32_t per_block = threads * POINTS;
  unsigned blocks = (unsigned)(((uint64_t)set.count + per_block - 1) / per_block);
  if (cells.axes == 1)
    probe<1, TOUCH, POINTS>
        <<<blocks, threads, 0, stream>>>(cells, dimensions, set, marks, kept, counter);
  else if (cells.axes == 2)
    probe<2, TOUCH, POINTS>
        <<<blocks, threads, 0, stream>>>(cells, dimensions, set, marks, kept, counter);
  else
    probe<3, TOUCH, POINTS>
        <<<blocks, threads, 0, stream>>>(cells, dimensions, set, marks, kept, counter);
}

enum kcp_status kcp_cells_probe(const struct kcp_cells *cells, uint32_t dimensions,
                                const struct kcp_point_set *set, enum kcp_cell_touch touch,
                                const struct kcp_cell_marks *marks,
                                const struct kcp_point_set *kept, unsigned long long *counter,
                                cudaStream_t stream, struct kcp_error *error) {
  struct kcp_cell_marks none = {};
  if (set->count == 0) return KCP_OK;
  if (touch == KCP_TOUCH_BOX)
    launch<KCP_TOUCH_BOX, 2>(*cells, dimensions, *set, marks != NULL ? *marks : none, *kept,
                             counter, stream);
  else
    launch<KCP_TOUCH_POINT, 4>(*cells, dimensions, *set, marks != NULL ? *marks : none, *kept,
                               counter, stream);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

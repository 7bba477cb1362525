/* What the refinement kernels share: their tiles, a task's entries, and where what is found goes. A
 * thread has a square of 4 x 4 pairs of a tile, in which queries go down and points across. */
#ifndef KCP_KERNELS_RANGE_REFINE_CUH
#define KCP_KERNELS_RANGE_REFINE_CUH

#include <cmath>

#include "range_join.cuh"

static const int threads = KCP_RANGE_BLOCK_THREADS;
static const int tile = 64;           /* queries and points of a tile */
static const int side = 4;            /* of a thread's square of pairs */
static const int lanes = tile / side; /* threads along a side of the block */

struct refinement {
  const struct kcp_range_task *tasks;
  struct kcp_device_points points, queries;
  const uint32_t *firsts; /* of primitives */
  uint32_t dimensions, step;
  double rank, within, beyond;
  uint64_t batch_first, batch_count;
  bool everyone_meets;
  uint64_t primitives;
  const uint32_t *entries, *met_by;
  struct kcp_range_found found;
};

/* A task's entry number i: which one, and whose. */
struct entry {
  uint64_t number;
  uint32_t query;
};

__device__ static struct entry entry_of(const struct refinement &work, uint32_t primitive,
                                        uint64_t i) {
  struct entry entry;
  if (work.everyone_meets) {
    const uint64_t place = i - primitive * work.batch_count;
    entry.query = (uint32_t)(work.batch_first + place);
    entry.number = place * work.primitives + primitive;
  } else {
    entry.number = work.entries[i];
    entry.query = work.met_by[entry.number];
  }
  return entry;
}

/* A pair that the sum leaves open. */
__device__ static bool recheck(const struct refinement &work, uint32_t query_place,
                               uint32_t point_place) {
  atomicAdd(work.found.rechecks, 1ull);
  return kcp_range_rank(work.dimensions, work.points.columns, work.points.count, point_place,
                        work.queries.columns, work.queries.count, query_place) <= work.rank;
}

/* Appends a warp's neighbours of one query as pairs. */
__device__ static void append_pairs(const struct refinement &work, uint32_t bits, uint32_t query,
                                    const uint32_t *point_places) {
  const int lane = threadIdx.x % 32, count = __popc(bits);
  int before = count;
  for (int offset = 1; offset < 32; offset *= 2) {
    const int other = __shfl_up_sync(~0u, before, offset);
    if (lane >= offset) before += other;
  }
  unsigned long long base = 0;
  if (lane == 31 && before > 0) base = atomicAdd(work.found.pair_count, (unsigned long long)before);
  base = __shfl_sync(~0u, base, 31) + (unsigned long long)(before - count);
  for (; bits != 0; bits &= bits - 1)
    work.found.pairs[base++] = (unsigned long long)query << 32 | point_places[__ffs(bits) - 1];
}

/* What the thread found for one of its queries: `bits` of its four points. */
__device__ static void note(const struct refinement &work, struct entry entry, bool is_query,
                            uint32_t first_word, uint32_t bits, const uint32_t *point_places) {
  const int x = threadIdx.x % lanes;
  if (work.found.pairs != NULL) append_pairs(work, is_query ? bits : 0, entry.query, point_places);
  uint32_t word = bits << (side * (x % 8));
  for (int offset = 1; offset < 8; offset *= 2) word |= __shfl_xor_sync(~0u, word, offset);
  const uint32_t other_word = __shfl_xor_sync(~0u, word, 8);
  if (!is_query) return;
  if (work.found.masks != NULL && x % 8 == 0 && first_word + x / 8 < work.found.mask_words)
    work.found.masks[entry.number * work.found.mask_words + first_word + x / 8] = word;
  if (x == 0 && (word | other_word) != 0)
    atomicAdd(&work.found.totals[entry.query - work.batch_first],
              (uint32_t)(__popc(word) + __popc(other_word)));
}

#endif

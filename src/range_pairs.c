#include "kcp/range_pairs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kcp/range_limit.h"

#define LEAST_RESERVED 1024 /* pairs */

uint64_t kcp_range_pair_bytes(bool wants_ranks) {
  return sizeof(uint32_t) + (wants_ranks ? sizeof(double) : 0);
}

/* Address space without memory; NULL when there is none. Large pages make the first write to it
 * many times cheaper. */
static void *reserve_space(uint64_t bytes) {
  void *space =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) return NULL;
  madvise(space, bytes, MADV_HUGEPAGE);
  return space;
}

static void release_neighbours(struct kcp_range_pairs *pairs) {
  if (pairs->neighbours != NULL)
    munmap(pairs->neighbours, pairs->capacity * sizeof *pairs->neighbours);
  if (pairs->ranks != NULL) munmap(pairs->ranks, pairs->capacity * sizeof *pairs->ranks);
  pairs->neighbours = NULL;
  pairs->ranks = NULL;
  pairs->count = pairs->capacity = 0;
}

/* Room for `capacity` pairs, or for fewer where address space is limited; without any, the first
 * pair overflows. */
static void reserve(struct kcp_range_pairs *pairs, uint64_t capacity) {
  for (; capacity > 0; capacity = capacity > LEAST_RESERVED ? capacity / 2 : 0) {
    pairs->capacity = capacity;
    pairs->neighbours = reserve_space(capacity * sizeof *pairs->neighbours);
    if (pairs->neighbours != NULL && pairs->wants_ranks)
      pairs->ranks = reserve_space(capacity * sizeof *pairs->ranks);
    if (pairs->neighbours != NULL && (pairs->ranks != NULL || !pairs->wants_ranks)) return;
    release_neighbours(pairs);
  }
}

enum kcp_status kcp_range_pairs_begin(uint64_t first_query, uint64_t query_count,
                                      uint64_t slice_count, uint64_t slice_records,
                                      bool wants_ranks, uint64_t budget_bytes, uint64_t most_pairs,
                                      struct kcp_range_pairs *pairs, struct kcp_error *error) {
  uint64_t piece_count, all_pairs;
  memset(pairs, 0, sizeof *pairs);
  if (__builtin_mul_overflow(query_count, slice_count, &piece_count))
    return kcp_out_of_memory(error, "places of neighbours", UINT64_MAX);
  *pairs = (struct kcp_range_pairs){.first_query = first_query,
                                    .query_count = query_count,
                                    .slice_count = slice_count,
                                    .slice_records = slice_records,
                                    .wants_ranks = wants_ranks};
  pairs->pieces = calloc(piece_count + 1, sizeof *pairs->pieces);
  if (pairs->pieces == NULL)
    return kcp_out_of_memory(error, "places of neighbours", piece_count * sizeof *pairs->pieces);
  if (!__builtin_mul_overflow(piece_count, slice_records, &all_pairs) && all_pairs < most_pairs)
    most_pairs = all_pairs;
  const uint64_t affordable = budget_bytes / kcp_range_pair_bytes(wants_ranks);
  reserve(pairs, most_pairs < affordable ? most_pairs : affordable);
  return KCP_OK;
}

void kcp_range_pairs_free(struct kcp_range_pairs *pairs) {
  release_neighbours(pairs);
  free(pairs->pieces);
  memset(pairs, 0, sizeof *pairs);
}

void kcp_range_pairs_end(struct kcp_range_pairs *pairs) {
  if (pairs->overflowed) release_neighbours(pairs);
}

uint32_t *kcp_range_pairs_room(struct kcp_range_pairs *pairs, uint64_t count) {
  if (count == 0 || __atomic_load_n(&pairs->overflowed, __ATOMIC_RELAXED)) return NULL;
  const uint64_t first = __atomic_fetch_add(&pairs->count, count, __ATOMIC_RELAXED);
  if (first <= pairs->capacity && count <= pairs->capacity - first)
    return pairs->neighbours + first;
  __atomic_store_n(&pairs->overflowed, true, __ATOMIC_RELAXED);
  return NULL;
}

static void add_ranks(double *ranks, const uint32_t *neighbours, uint64_t count, uint32_t query,
                      const struct kcp_points *slice, const struct kcp_points *block) {
  for (uint64_t i = 0; i < count; ++i)
    ranks[i] = kcp_range_rank(slice->dimensions, slice->coordinates, slice->stride, neighbours[i],
                              block->coordinates, block->stride, query);
}

/* Where the batch's neighbours are among all, copied there unless they are. */
static bool place(struct kcp_range_pairs *pairs, const struct kcp_range_batch *batch,
                  uint64_t *first) {
  const uint64_t count = batch->offsets[batch->query_count];
  const uintptr_t space = (uintptr_t)pairs->neighbours, there = (uintptr_t)batch->neighbours;
  uint32_t *room;
  if (there >= space && there - space < pairs->capacity * sizeof *room) {
    *first = (uint64_t)(batch->neighbours - pairs->neighbours);
    return true;
  }
  room = kcp_range_pairs_room(pairs, count);
  if (room == NULL) return false;
  memcpy(room, batch->neighbours, count * sizeof *room);
  *first = (uint64_t)(room - pairs->neighbours);
  return true;
}

void kcp_range_pairs_add(struct kcp_range_pairs *pairs, const struct kcp_range_batch *batch,
                         uint64_t block_first, uint64_t slice,
                         const struct kcp_points *slice_points,
                         const struct kcp_points *block_points) {
  const uint64_t total = batch->offsets[batch->query_count];
  uint64_t first;
  if (total == 0 || !place(pairs, batch, &first)) return;
  for (uint64_t i = 0; i < batch->query_count; ++i) {
    const uint64_t count = batch->offsets[i + 1] - batch->offsets[i];
    const uint64_t query = block_first + batch->queries[i] - pairs->first_query;
    if (count > 0)
      pairs->pieces[query * pairs->slice_count + slice] =
          (struct kcp_range_piece){first + batch->offsets[i], count};
  }
  if (!pairs->wants_ranks) return;
#pragma omp parallel for schedule(dynamic, 16)
  for (uint64_t i = 0; i < batch->query_count; ++i)
    add_ranks(pairs->ranks + first + batch->offsets[i], batch->neighbours + batch->offsets[i],
              batch->offsets[i + 1] - batch->offsets[i], batch->queries[i], slice_points,
              block_points);
}

#include "kcp/range_pairs.h"

#include <stdlib.h>
#include <string.h>

#include "kcp/range_limit.h"

uint64_t kcp_range_pair_bytes(bool wants_ranks) {
  return sizeof(uint32_t) + (wants_ranks ? sizeof(double) : 0);
}

enum kcp_status kcp_range_pairs_begin(uint64_t first_query, uint64_t query_count,
                                      uint64_t slice_count, uint64_t slice_records,
                                      bool wants_ranks, uint64_t budget_bytes,
                                      struct kcp_range_pairs *pairs, struct kcp_error *error) {
  uint64_t piece_count;
  memset(pairs, 0, sizeof *pairs);
  if (__builtin_mul_overflow(query_count, slice_count, &piece_count))
    return kcp_out_of_memory(error, "places of neighbours", UINT64_MAX);
  *pairs = (struct kcp_range_pairs){.first_query = first_query,
                                    .query_count = query_count,
                                    .slice_count = slice_count,
                                    .slice_records = slice_records,
                                    .wants_ranks = wants_ranks,
                                    .budget_bytes = budget_bytes};
  pairs->pieces = calloc(piece_count + 1, sizeof *pairs->pieces);
  if (pairs->pieces != NULL) return KCP_OK;
  return kcp_out_of_memory(error, "places of neighbours", piece_count * sizeof *pairs->pieces);
}

static void release_neighbours(struct kcp_range_pairs *pairs) {
  free(pairs->neighbours);
  free(pairs->ranks);
  pairs->neighbours = NULL;
  pairs->ranks = NULL;
  pairs->count = pairs->capacity = 0;
}

void kcp_range_pairs_free(struct kcp_range_pairs *pairs) {
  release_neighbours(pairs);
  free(pairs->pieces);
  memset(pairs, 0, sizeof *pairs);
}

/* Room for `more` neighbours; false when memory is short or the budget does not allow it. */
static bool reserve(struct kcp_range_pairs *pairs, uint64_t more) {
  const uint64_t most = pairs->budget_bytes / kcp_range_pair_bytes(pairs->wants_ranks);
  uint64_t needed = pairs->count + more;
  if (needed <= pairs->capacity) return true;
  if (needed > most) return false;
  uint64_t room = needed + needed / 2 + 1024;
  if (room > most) room = most;
  void *neighbours = realloc(pairs->neighbours, room * sizeof *pairs->neighbours);
  if (neighbours == NULL) return false;
  pairs->neighbours = neighbours;
  if (pairs->wants_ranks) {
    void *ranks = realloc(pairs->ranks, room * sizeof *pairs->ranks);
    if (ranks == NULL) return false;
    pairs->ranks = ranks;
  }
  pairs->capacity = room;
  return true;
}

static void add_ranks(struct kcp_range_pairs *pairs, const uint32_t *neighbours, uint64_t count,
                      uint32_t query, const struct kcp_points *slice,
                      const struct kcp_points *block) {
  for (uint64_t i = 0; i < count; ++i)
    pairs->ranks[pairs->count + i] =
        kcp_range_rank(slice->dimensions, slice->coordinates, slice->stride, neighbours[i],
                       block->coordinates, block->stride, query);
}

enum kcp_status kcp_range_pairs_add(struct kcp_range_pairs *pairs,
                                    const struct kcp_range_batch *batch, uint64_t block_first,
                                    uint64_t slice, const struct kcp_points *slice_points,
                                    const struct kcp_points *block_points,
                                    struct kcp_error *error) {
  (void)error;
  if (pairs->overflowed) return KCP_OK;
  if (!reserve(pairs, batch->offsets[batch->query_count])) {
    pairs->overflowed = true;
    release_neighbours(pairs);
    return KCP_OK;
  }
  for (uint64_t i = 0; i < batch->query_count; ++i) {
    const uint32_t *neighbours = batch->neighbours + batch->offsets[i];
    const uint64_t count = batch->offsets[i + 1] - batch->offsets[i];
    const uint64_t query = block_first + batch->queries[i] - pairs->first_query;
    if (count == 0) continue;
    pairs->pieces[query * pairs->slice_count + slice] =
        (struct kcp_range_piece){pairs->count, count};
    memcpy(pairs->neighbours + pairs->count, neighbours, count * sizeof *neighbours);
    if (pairs->wants_ranks)
      add_ranks(pairs, neighbours, count, batch->queries[i], slice_points, block_points);
    pairs->count += count;
  }
  return KCP_OK;
}

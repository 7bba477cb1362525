/* Section IV-D of RT-HiSS on the CPU: the first intersection test, and the two passes of a batch.
 *
 * Queries are dealt to threads in equal runs, the same in both passes. Each thread counts what it
 * meets by primitive; prefix sums over primitives and threads give every thread its places to
 * write to, so that nothing is updated by two of them. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "rt_hiss.h"

#define BLOCK_THREADS                                                         \
  256 /* --work-per-thread is given for threads of a GPU block; a task is one \
       */

void kcp_rt_hiss_first_test(const struct kcp_range_join *join, const struct kcp_rearranged *queries,
                            uint32_t *hits) {
  const struct kcp_primitive_index *index = &join->index.index;
#pragma omp parallel for schedule(dynamic, 256)
  for (uint64_t q = 0; q < queries->count; ++q) {
    struct kcp_primitive_walk walk =
        kcp_primitive_walk_begin(index, kcp_rearranged_frame_point(join, queries, q));
    uint32_t primitive, met = 0;
    const double *row = queries->rows + q * join->plan.dimensions;
    while (kcp_rt_next(join, &walk, row, &primitive)) ++met;
    hits[q] = met;
  }
}

void kcp_rt_hiss_window(const struct kcp_rearranged *queries, const uint32_t *hits, uint64_t first,
                        uint64_t most, struct kcp_rt_batch *batch) {
  memset(batch, 0, sizeof *batch);
  batch->queries = queries;
  batch->first = first;
  for (uint64_t q = first; q < queries->count; ++q) {
    if (q > first && batch->intersections + hits[q] > most) break;
    batch->intersections += hits[q];
    ++batch->count;
  }
}

void kcp_rt_batch_free(struct kcp_rt_batch *batch) {
  free(batch->entry_firsts);
  free(batch->entries);
  memset(batch, 0, sizeof *batch);
}

/* The run of queries that a thread of so many takes. */
struct share {
  uint64_t first, last;
};

static struct share share_of(const struct kcp_rt_batch *batch, uint64_t thread, uint64_t threads) {
  struct share share = {batch->first + batch->count * thread / threads,
                        batch->first + batch->count * (thread + 1) / threads};
  return share;
}

/* First pass: places[thread * primitives + primitive] = entries that the thread has there. */
static void count_entries(const struct kcp_range_join *join, const struct kcp_rt_batch *batch,
                          uint64_t threads, uint64_t *places) {
  const struct kcp_primitive_index *index = &join->index.index;
#pragma omp parallel for schedule(static, 1)
  for (uint64_t thread = 0; thread < threads; ++thread) {
    const struct share share = share_of(batch, thread, threads);
    uint64_t *own = places + thread * join->primitive_count;
    for (uint64_t q = share.first; q < share.last; ++q) {
      struct kcp_primitive_walk walk =
          kcp_primitive_walk_begin(index, kcp_rearranged_frame_point(join, batch->queries, q));
      uint32_t primitive;
      const double *row = batch->queries->rows + q * join->plan.dimensions;
      while (kcp_rt_next(join, &walk, row, &primitive)) ++own[primitive];
    }
  }
}

/* Counts become places: primitive after primitive, in it thread after thread. */
static void place_entries(uint64_t primitives, uint64_t threads, uint64_t *places,
                          uint64_t *entry_firsts) {
  uint64_t sum = 0;
  for (uint64_t primitive = 0; primitive < primitives; ++primitive) {
    entry_firsts[primitive] = sum;
    for (uint64_t thread = 0; thread < threads; ++thread) {
      const uint64_t count = places[thread * primitives + primitive];
      places[thread * primitives + primitive] = sum;
      sum += count;
    }
  }
  entry_firsts[primitives] = sum;
}

/* Second pass: every query to its places. */
static void write_entries(const struct kcp_range_join *join, struct kcp_rt_batch *batch,
                          uint64_t threads, uint64_t *places) {
  const struct kcp_primitive_index *index = &join->index.index;
#pragma omp parallel for schedule(static, 1)
  for (uint64_t thread = 0; thread < threads; ++thread) {
    const struct share share = share_of(batch, thread, threads);
    uint64_t *own = places + thread * join->primitive_count;
    for (uint64_t q = share.first; q < share.last; ++q) {
      struct kcp_primitive_walk walk =
          kcp_primitive_walk_begin(index, kcp_rearranged_frame_point(join, batch->queries, q));
      uint32_t primitive;
      const double *row = batch->queries->rows + q * join->plan.dimensions;
      while (kcp_rt_next(join, &walk, row, &primitive))
        batch->entries[own[primitive]++] = (uint32_t)q;
    }
  }
}

enum kcp_status kcp_rt_hiss_meet(const struct kcp_range_join *join, struct kcp_rt_batch *batch,
                                 struct kcp_range_work *work, struct kcp_error *error) {
  const uint64_t primitives = join->primitive_count;
  uint64_t threads = (uint64_t)omp_get_max_threads();
  if (threads > batch->count) threads = batch->count;
  double started = kcp_now();
  uint64_t *places = calloc(threads * primitives + 1, sizeof *places);
  batch->entry_firsts = malloc((primitives + 1) * sizeof *batch->entry_firsts);
  batch->entries = malloc((batch->intersections + 1) * sizeof *batch->entries);
  if (places == NULL || batch->entry_firsts == NULL || batch->entries == NULL) {
    free(places);
    return kcp_out_of_memory(error, "intersections", batch->intersections * 4);
  }
  count_entries(join, batch, threads, places);
  place_entries(primitives, threads, places, batch->entry_firsts);
  work->phase_s[KCP_RANGE_PHASE_COUNT_PASS] += kcp_now() - started;

  started = kcp_now();
  write_entries(join, batch, threads, places);
  work->phase_s[KCP_RANGE_PHASE_FILL_PASS] += kcp_now() - started;
  work->intersections += batch->intersections;
  free(places);
  return KCP_OK;
}

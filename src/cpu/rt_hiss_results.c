/* Section IV-F of RT-HiSS on the CPU: from masks or pairs by primitive to lists by query.
 *
 * Entries of a primitive are in the order of queries, so that a run of queries is a run of entries
 * in each. Runs are as long as the memory for their neighbours allows. */
#include <stdlib.h>
#include <string.h>

#include "rt_hiss.h"
#include "sort_records.h"

/* A run of the batch's queries and their lists. */
struct run {
  const struct kcp_range_join *join;
  const struct kcp_rt_batch *batch;
  const struct kcp_rt_found *found;
  uint64_t first, last; /* queries, from the batch's first on */
  uint64_t *offsets;    /* of the run's queries, and one behind */
  uint64_t *next;       /* where the next neighbour of each goes */
  uint32_t *neighbours; /* records */
};

struct entry_range {
  uint64_t first, last;
};

static uint64_t first_entry_from(const struct kcp_rt_batch *batch, uint64_t low, uint64_t high,
                                 uint64_t query) {
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (batch->entries[middle] < query)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The entries of a primitive that are of the run's queries. */
static struct entry_range entries_of(const struct run *run, uint64_t primitive) {
  const struct kcp_rt_batch *batch = run->batch;
  const uint64_t low = batch->entry_firsts[primitive], high = batch->entry_firsts[primitive + 1];
  struct entry_range range;
  range.first = first_entry_from(batch, low, high, batch->first + run->first);
  range.last = first_entry_from(batch, range.first, high, batch->first + run->last);
  return range;
}

/* Room for `count` neighbours of an entry's query. */
static uint32_t *take_room(const struct run *run, uint64_t entry, uint64_t count) {
  const uint64_t query = run->batch->entries[entry] - run->batch->first - run->first;
  return run->neighbours + __atomic_fetch_add(&run->next[query], count, __ATOMIC_RELAXED);
}

static uint64_t count_of_mask(const uint16_t *mask, uint64_t words) {
  uint64_t count = 0;
  for (uint64_t word = 0; word < words; ++word) count += (uint64_t)__builtin_popcount(mask[word]);
  return count;
}

/* Straight from the masks. */
static void scatter_masks(const struct run *run, uint64_t primitive, struct entry_range range) {
  const struct kcp_rt_found *found = run->found;
  const uint32_t *places = run->join->points.places + run->join->firsts[primitive];
  for (uint64_t entry = range.first; entry < range.last; ++entry) {
    const uint16_t *mask = found->masks + entry * found->mask_words;
    const uint64_t count = count_of_mask(mask, found->mask_words);
    if (count == 0) continue;
    uint32_t *room = take_room(run, entry, count);
    for (uint64_t word = 0; word < found->mask_words; ++word)
      for (uint32_t bits = mask[word]; bits != 0; bits &= bits - 1)
        *room++ = places[word * 16 + (uint32_t)__builtin_ctz(bits)];
  }
}

static void scatter_pairs(const struct run *run, struct entry_range range) {
  const struct kcp_rt_found *found = run->found;
  for (uint64_t entry = range.first; entry < range.last; ++entry) {
    const uint64_t count = found->pair_counts[entry];
    const uint32_t *pair = found->pair_values + 2 * entry * found->pair_room;
    uint32_t *room = count > 0 ? take_room(run, entry, count) : NULL;
    for (uint64_t i = 0; i < count; ++i) room[i] = pair[2 * i + 1];
  }
}

/* The places of the ones of a primitive's masks: entry * bits of a mask + bit. */
static uint64_t compact_masks(const struct run *run, struct entry_range range, uint64_t *ones) {
  const struct kcp_rt_found *found = run->found;
  uint64_t count = 0;
  for (uint64_t entry = range.first; entry < range.last; ++entry)
    for (uint64_t word = 0; word < found->mask_words; ++word)
      for (uint32_t bits = found->masks[entry * found->mask_words + word]; bits != 0;
           bits &= bits - 1)
        ones[count++] = (entry * found->mask_words + word) * 16 + (uint32_t)__builtin_ctz(bits);
  return count;
}

static void scatter_ones(const struct run *run, uint64_t primitive, const uint64_t *ones,
                         uint64_t count) {
  const uint64_t bits = run->found->mask_words * 16;
  const uint32_t *places = run->join->points.places + run->join->firsts[primitive];
  for (uint64_t i = 0; i < count;) {
    const uint64_t entry = ones[i] / bits;
    uint64_t same = 1;
    while (i + same < count && ones[i + same] / bits == entry) ++same;
    uint32_t *room = take_room(run, entry, same);
    for (uint64_t end = i + same; i < end; ++i) *room++ = places[ones[i] % bits];
  }
}

/* Stream compaction of all masks of the run, then the lists from the places of the ones. */
static enum kcp_status scatter_compacted(const struct run *run, struct kcp_range_work *work,
                                         struct kcp_error *error) {
  const uint64_t primitives = run->join->primitive_count;
  const uint64_t total = run->offsets[run->last - run->first];
  double started = kcp_now();
  uint64_t *ones = malloc((total + 1) * sizeof *ones);
  uint64_t *firsts = malloc((primitives + 1) * sizeof *firsts);
  if (ones == NULL || firsts == NULL) {
    free(ones);
    free(firsts);
    return kcp_out_of_memory(error, "compaction", total * sizeof *ones);
  }
#pragma omp parallel for schedule(dynamic, 16)
  for (uint64_t primitive = 0; primitive < primitives; ++primitive) {
    const struct entry_range range = entries_of(run, primitive);
    firsts[primitive] = count_of_mask(run->found->masks + range.first * run->found->mask_words,
                                      (range.last - range.first) * run->found->mask_words);
  }
  uint64_t sum = 0;
  for (uint64_t primitive = 0; primitive < primitives; ++primitive) {
    const uint64_t count = firsts[primitive];
    firsts[primitive] = sum;
    sum += count;
  }
  firsts[primitives] = sum;
#pragma omp parallel for schedule(dynamic, 16)
  for (uint64_t primitive = 0; primitive < primitives; ++primitive)
    compact_masks(run, entries_of(run, primitive), ones + firsts[primitive]);
  work->phase_s[KCP_RANGE_PHASE_COMPACT] += kcp_now() - started;
#pragma omp parallel for schedule(dynamic, 16)
  for (uint64_t primitive = 0; primitive < primitives; ++primitive)
    scatter_ones(run, primitive, ones + firsts[primitive],
                 firsts[primitive + 1] - firsts[primitive]);
  free(ones);
  free(firsts);
  return KCP_OK;
}

static void scatter_as_they_are(const struct run *run) {
#pragma omp parallel for schedule(dynamic, 16)
  for (uint64_t primitive = 0; primitive < run->join->primitive_count; ++primitive) {
    const struct entry_range range = entries_of(run, primitive);
    if (run->found->form == KCP_RESULT_PAIRS)
      scatter_pairs(run, range);
    else
      scatter_masks(run, primitive, range);
  }
}

static void sort_lists(const struct run *run, uint32_t *scratch) {
#pragma omp parallel for schedule(dynamic, 64)
  for (uint64_t q = 0; q < run->last - run->first; ++q)
    kcp_sort_records(run->neighbours + run->offsets[q], run->offsets[q + 1] - run->offsets[q],
                     scratch + run->offsets[q]);
}

static enum kcp_status pass_on_run(struct run *run, const struct kcp_range_sink *sink,
                                   struct kcp_range_work *work, struct kcp_error *error) {
  const uint64_t count = run->last - run->first;
  enum kcp_status status = KCP_OK;
  run->offsets[0] = 0;
  for (uint64_t q = 0; q < count; ++q) {
    run->next[q] = run->offsets[q];
    run->offsets[q + 1] = run->offsets[q] + run->found->totals[run->first + q];
  }
  const uint64_t total = run->offsets[count];
  uint32_t *room = sink->room != NULL ? sink->room(sink->context, total) : NULL;
  run->neighbours = room != NULL ? room : malloc((total + 1) * sizeof *run->neighbours);
  uint32_t *scratch = malloc((total + 1) * sizeof *scratch);
  if (run->neighbours == NULL || scratch == NULL)
    status = kcp_out_of_memory(error, "neighbours", total * sizeof *run->neighbours);
  else if (run->found->form == KCP_RESULT_MASK)
    status = scatter_compacted(run, work, error);
  else
    scatter_as_they_are(run);
  if (status == KCP_OK) {
    const struct kcp_range_batch lists = {
        count, run->batch->queries->places + run->batch->first + run->first, run->offsets,
        run->neighbours};
    sort_lists(run, scratch);
    const double started = kcp_now();
    status = sink->take(sink->context, &lists, error);
    work->phase_s[KCP_RANGE_PHASE_COLLECT] += kcp_now() - started;
  }
  if (room == NULL) free(run->neighbours);
  free(scratch);
  return status;
}

enum kcp_status kcp_rt_hiss_pass_on(const struct kcp_range_join *join,
                                    const struct kcp_rt_batch *batch,
                                    const struct kcp_rt_found *found, uint64_t bytes,
                                    const struct kcp_range_sink *sink, struct kcp_range_work *work,
                                    struct kcp_error *error) {
  /* A neighbour takes its record twice, for sorting, and the place of its one. */
  const uint64_t most = bytes / (2 * sizeof(uint32_t) + sizeof(uint64_t));
  struct run run = {.join = join, .batch = batch, .found = found};
  enum kcp_status status = KCP_OK;
  const double started = kcp_now();
  const double others =
      work->phase_s[KCP_RANGE_PHASE_COMPACT] + work->phase_s[KCP_RANGE_PHASE_COLLECT];
  run.offsets = malloc((batch->count + 1) * sizeof *run.offsets);
  run.next = malloc((batch->count + 1) * sizeof *run.next);
  if (run.offsets == NULL || run.next == NULL)
    status = kcp_out_of_memory(error, "neighbours", batch->count * 16);
  while (run.first < batch->count && status == KCP_OK) {
    uint64_t sum = found->totals[run.first];
    run.last = run.first + 1;
    while (run.last < batch->count && sum + found->totals[run.last] <= most)
      sum += found->totals[run.last++];
    status = pass_on_run(&run, sink, work, error);
    run.first = run.last;
  }
  free(run.offsets);
  free(run.next);
  work->phase_s[KCP_RANGE_PHASE_COPY] +=
      kcp_now() - started -
      (work->phase_s[KCP_RANGE_PHASE_COMPACT] + work->phase_s[KCP_RANGE_PHASE_COLLECT] - others);
  return status;
}

/* The paper's bitonic top-k on the CPU: values are sorted into runs of K (the power of two from k
 * on) by a bitonic network; two runs are merged by keeping the earlier of each pair (i, K - 1 - i),
 * which leaves the first K of both as a bitonic sequence, and that is sorted again (rebuilt) in
 * log2 K steps; until one run is left.
 *
 * Short runs: each thread merges the runs of its share into one as it reads them, and values behind
 * its k-th so far are not put into a run. Long runs (the paper's future work): all threads work on
 * each step of the network over the whole array.
 *
 * Cost: log2 K (log2 K + 1) / 2 steps over every value that gets into a run. */
#include <stdlib.h>
#include <string.h>

#include "top_k_methods.h"

enum { SHORTEST_RUN = 32, LONGEST_SHORT_RUN = 8192, SCAN_EXCESS = 512 };

static const struct kcp_ranked_key padding = {UINT64_MAX, UINT64_MAX};

static uint64_t run_length(uint64_t k) {
  uint64_t length = SHORTEST_RUN;
  while (length < k) length *= 2;
  return length;
}

static inline bool is_padding(struct kcp_ranked_key item) {
  return item.index == UINT64_MAX;
}

static inline void order_pair(struct kcp_ranked_key *a, struct kcp_ranked_key *b) {
  struct kcp_ranked_key x = *a, y = *b;
  bool swap = kcp_ranked_before(y, x);
  *a = swap ? y : x;
  *b = swap ? x : y;
}

/* One step of the network over `count` items: the pairs (i, i ^ mask), where `top` is the highest
 * bit of the mask. */
static void network_step(struct kcp_ranked_key *items, uint64_t count, uint64_t mask,
                         uint64_t top) {
  const uint64_t pairs = count / 2;
#pragma omp parallel for if (pairs >= 16384)
  for (uint64_t pair = 0; pair < pairs; ++pair) {
    uint64_t i = (pair & ~(top - 1)) << 1 | (pair & (top - 1));
    order_pair(&items[i], &items[i ^ mask]);
  }
}

/* Sorts bitonic sequences of `length`. */
static void rebuild(struct kcp_ranked_key *items, uint64_t count, uint64_t length) {
  for (uint64_t stride = length / 2; stride > 0; stride /= 2)
    network_step(items, count, stride, stride);
}

/* Sorts runs of `length`. Each step to a longer run starts with the mirrored pairs, so that all
 * runs ascend. */
static void sort_runs(struct kcp_ranked_key *items, uint64_t count, uint64_t length) {
  for (uint64_t size = 2; size <= length; size *= 2) {
    network_step(items, count, size - 1, size / 2);
    rebuild(items, count, size / 2);
  }
}

/* Short runs: what a thread has. */
struct worker {
  struct kcp_value_scan scan; /* its items are the run that is being filled */
  uint64_t k, length;
  struct kcp_ranked_key *best; /* sorted; padded */
};

/* Merges the sorted run into the best and counts what that leaves out with the key of the limit. */
static void merge_run(struct worker *worker, struct kcp_ranked_key *run) {
  for (uint64_t i = 0; i < worker->length; ++i)
    order_pair(&worker->best[i], &run[worker->length - 1 - i]);
  rebuild(worker->best, worker->length, worker->length);
  struct kcp_ranked_key last = worker->best[worker->k - 1];
  if (is_padding(last)) return;
  uint64_t left_out = 0;
  for (uint64_t i = 0; i < worker->length; ++i)
    left_out += run[i].key == last.key && !is_padding(run[i]);
  kcp_scan_tighten(&worker->scan, last, left_out);
}

/* Takes the first `length` items into the best; those behind them start the next run. */
static void take_run(struct worker *worker) {
  struct kcp_value_scan *scan = &worker->scan;
  for (; scan->count < worker->length; ++scan->count) scan->items[scan->count] = padding;
  sort_runs(scan->items, worker->length, worker->length);
  merge_run(worker, scan->items);
  scan->count -= worker->length;
  memmove(scan->items, scan->items + worker->length, scan->count * sizeof *scan->items);
}

static void take_piece(void *state, const void *values, uint64_t count, uint64_t first_index) {
  struct worker *worker = state;
  const size_t bytes = kcp_value_bytes(worker->scan.type);
  for (uint64_t done = 0; done < count;) {
    done += kcp_scan_values(&worker->scan, (const char *)values + done * bytes, count - done,
                            first_index + done);
    while (worker->scan.count >= worker->length) take_run(worker);
  }
}

static enum kcp_status create_workers(const struct kcp_top_k_plan *plan, int count,
                                      struct worker *workers, struct kcp_error *error) {
  uint64_t length = run_length(plan->k);
  uint64_t room = 2 * length + SCAN_EXCESS;
  for (int w = 0; w < count; ++w) {
    struct kcp_ranked_key *items = malloc(room * sizeof *items);
    if (items == NULL) return kcp_out_of_memory(error, "runs", room * sizeof *items);
    workers[w] = (struct worker){.k = plan->k, .length = length, .best = items};
    workers[w].scan = (struct kcp_value_scan){.type = plan->type,
                                              .order = plan->order,
                                              .limit = kcp_no_limit(plan->type),
                                              .most = length - 1,
                                              .items = items + length};
    for (uint64_t i = 0; i < length; ++i) items[i] = padding;
  }
  return KCP_OK;
}

/* Merges the workers' runs into a new one, the answer. */
static enum kcp_status merge_workers(const struct kcp_top_k_plan *plan, struct worker *workers,
                                     int count, struct kcp_range_answer *answer,
                                     struct kcp_error *error) {
  const uint64_t length = workers[0].length;
  struct worker all = {.k = plan->k, .length = length};
  struct kcp_ranked_key *run = malloc(length * sizeof *run);
  all.best = malloc(length * sizeof *all.best);
  if (run == NULL || all.best == NULL) {
    free(run);
    free(all.best);
    return kcp_out_of_memory(error, "runs", 2 * length * sizeof *run);
  }
  for (uint64_t i = 0; i < length; ++i) all.best[i] = padding;
  for (int w = 0; w < count; ++w) {
    if (workers[w].scan.count > 0) take_run(&workers[w]);
    memcpy(run, workers[w].best, length * sizeof *run);
    merge_run(&all, run);
    answer->nan_count += workers[w].scan.nan_count;
  }
  free(run);
  answer->items = all.best;
  while (answer->count < plan->k && !is_padding(all.best[answer->count])) ++answer->count;
  if (answer->count == 0) return KCP_OK;
  for (int w = 0; w < count; ++w) {
    uint64_t real = 0;
    while (real < length && !is_padding(workers[w].best[real])) ++real;
    answer->equal += kcp_scan_count_key(&workers[w].scan, workers[w].best, real,
                                        answer->items[answer->count - 1].key);
  }
  return KCP_OK;
}

static enum kcp_status merge_short_runs(const struct kcp_top_k_plan *plan,
                                        const struct kcp_value_range *range,
                                        struct kcp_range_answer *answer, struct kcp_error *error) {
  int count = kcp_workers_for(range->count);
  struct worker *workers = calloc((size_t)count, sizeof *workers);
  if (workers == NULL)
    return kcp_out_of_memory(error, "threads", (unsigned long long)count * sizeof *workers);
  enum kcp_status status = create_workers(plan, count, workers, error);
  if (status == KCP_OK)
    status = kcp_read_pieces(range, plan->type, take_piece, workers, sizeof *workers, count, error);
  if (status == KCP_OK) status = merge_workers(plan, workers, count, answer, error);
  for (int w = 0; w < count; ++w) free(workers[w].best);
  free(workers);
  return status;
}

/* Merges the runs of two at a time, in place: run r is merged into run r - gap. */
static void merge_long_runs(struct kcp_ranked_key *items, uint64_t runs, uint64_t length) {
  for (uint64_t gap = 1; gap < runs; gap *= 2)
    for (uint64_t r = 0; r + gap < runs; r += 2 * gap) {
      struct kcp_ranked_key *kept = items + r * length, *other = kept + gap * length;
#pragma omp parallel for
      for (uint64_t i = 0; i < length; ++i) order_pair(&kept[i], &other[length - 1 - i]);
      rebuild(kept, length, length);
    }
}

static enum kcp_status merge_whole(const struct kcp_top_k_plan *plan,
                                   const struct kcp_value_range *range,
                                   struct kcp_range_answer *answer, struct kcp_error *error) {
  uint64_t length = run_length(plan->k < range->count ? plan->k : range->count);
  uint64_t runs = range->count > 0 ? (range->count - 1) / length + 1 : 1;
  struct kcp_ranked_key *items = malloc(runs * length * sizeof *items);
  if (items == NULL) return kcp_out_of_memory(error, "runs", runs * length * sizeof *items);
  answer->items = items;
  enum kcp_status status = kcp_read_keys(plan, range, items, &answer->nan_count, error);
  if (status != KCP_OK) return status;
  for (uint64_t i = 0; i < range->count; ++i)
    if (kcp_key_is_nan(plan->type, items[i].key)) items[i] = padding;
  for (uint64_t i = range->count; i < runs * length; ++i) items[i] = padding;
  sort_runs(items, runs * length, length);
  merge_long_runs(items, runs, length);
  uint64_t valid = range->count - answer->nan_count;
  answer->count = plan->k < valid ? plan->k : valid;
  if (answer->count == 0) return KCP_OK;
  return kcp_count_key(plan, range, items[answer->count - 1].key, &answer->equal, error);
}

uint64_t kcp_cpu_top_k_bitonic_bytes(uint64_t k, uint64_t count) {
  return run_length(k < count ? k : count) > LONGEST_SHORT_RUN ? 2 * sizeof(struct kcp_ranked_key)
                                                               : 0;
}

enum kcp_status kcp_cpu_top_k_bitonic(const struct kcp_top_k_plan *plan,
                                      const struct kcp_value_range *range,
                                      struct kcp_range_answer *answer, struct kcp_error *error) {
  memset(answer, 0, sizeof *answer);
  enum kcp_status status = kcp_cpu_top_k_bitonic_bytes(plan->k, range->count) == 0
                               ? merge_short_runs(plan, range, answer, error)
                               : merge_whole(plan, range, answer, error);
  if (status != KCP_OK) {
    free(answer->items);
    answer->items = NULL;
  }
  return status;
}

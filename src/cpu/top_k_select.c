/* Top-k in one read: every thread scans its share for values before its limit, which the candidates
 * found so far set: whenever there are enough of them, the k first are selected by radix digits and
 * the k-th becomes the limit. A piece of which many values pass (sorted data) is sampled first for
 * a limit of its own; should the sample have misled, so that fewer than k passed, the piece is
 * scanned without it. Values of the shares' candidates are selected and sorted at the end.
 *
 * Cost: a comparison a value, and a few operations for each candidate: about k ln(n / k) of them a
 * thread for values in random order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/random.h"
#include "ranked_keys.h"
#include "top_k_methods.h"

enum { SAMPLES = 512, LEAST_CANDIDATES = 8192, ATTEMPT = 4096 };
static const uint64_t sort_from = 16; /* k > n / 16: most values would be candidates */

struct worker {
  struct kcp_value_scan scan;
  uint64_t k;
  uint64_t enough; /* candidates at which the k first are selected */
};

/* The k first remain, the last of them is the limit. */
static void keep_first(struct worker *worker) {
  struct kcp_value_scan *scan = &worker->scan;
  if (scan->count <= worker->k) return;
  kcp_ranked_select(scan->items, scan->count, worker->k);
  struct kcp_ranked_key last = scan->items[0];
  for (uint64_t i = 1; i < worker->k; ++i)
    if (kcp_ranked_before(last, scan->items[i])) last = scan->items[i];
  uint64_t dropped_equal = 0;
  for (uint64_t i = worker->k; i < scan->count; ++i)
    dropped_equal += scan->items[i].key == last.key;
  scan->count = worker->k;
  kcp_scan_tighten(scan, last, dropped_equal);
}

/* How far into the sorted sample of a piece its first k values reach, with 4.5 standard deviations
 * to spare. */
static uint64_t sample_rank(uint64_t k, uint64_t count) {
  double mean = (double)k * SAMPLES / (double)count;
  return (uint64_t)ceil(mean + 4.5 * sqrt(mean) + 4);
}

/* A limit that about rank / SAMPLES of the piece pass; one value of each of as many slices. */
static struct kcp_ranked_key sample_limit(const struct kcp_value_scan *scan, const void *values,
                                          uint64_t count, uint64_t first_index, uint64_t rank) {
  struct kcp_ranked_key sample[SAMPLES];
  const size_t bytes = kcp_value_bytes(scan->type);
  const uint64_t slice = count / SAMPLES;
  for (uint64_t s = 0; s < SAMPLES; ++s) {
    uint64_t at = s * slice + kcp_random_words(0, 0, first_index + s, 0).word[0] % slice;
    kcp_values_to_keys(scan->type, scan->order, (const char *)values + at * bytes, 1,
                       first_index + at, &sample[s]);
  }
  kcp_ranked_select(sample, SAMPLES, rank);
  struct kcp_ranked_key limit = sample[0];
  for (uint64_t s = 1; s < rank; ++s)
    if (kcp_ranked_before(limit, sample[s])) limit = sample[s];
  return limit;
}

/* Scans the piece with a limit from a sample; false when that helps nothing, and the scan is then
 * as it was. */
static bool scan_sampled(struct worker *worker, const void *values, uint64_t count,
                         uint64_t first_index, uint64_t rank) {
  struct kcp_value_scan attempt = worker->scan;
  struct kcp_ranked_key limit = sample_limit(&attempt, values, count, first_index, rank);
  if (!kcp_ranked_before(limit, attempt.limit)) return false;
  kcp_scan_tighten(&attempt, limit, 0);
  kcp_scan_values(&attempt, values, count, first_index);
  if (attempt.count - worker->scan.count < worker->k) return false;
  worker->scan = attempt;
  return true;
}

static void take_piece(void *state, const void *values, uint64_t count, uint64_t first_index) {
  struct worker *worker = state;
  struct kcp_value_scan *scan = &worker->scan;
  uint64_t rank = sample_rank(worker->k, count);
  bool worth_sampling = rank < SAMPLES / 4 && count >= 8 * SAMPLES;
  if (worth_sampling) {
    struct kcp_value_scan attempt = *scan;
    attempt.most = scan->count + (worker->k > ATTEMPT ? worker->k : ATTEMPT);
    if (kcp_scan_values(&attempt, values, count, first_index) == count) {
      attempt.most = UINT64_MAX;
      *scan = attempt;
    } else if (!scan_sampled(worker, values, count, first_index, rank)) {
      kcp_scan_values(scan, values, count, first_index);
    }
  } else {
    kcp_scan_values(scan, values, count, first_index);
  }
  if (scan->count >= worker->enough) keep_first(worker);
}

static enum kcp_status create_workers(const struct kcp_top_k_plan *plan,
                                      const struct kcp_value_range *range, int count,
                                      struct worker *workers, struct kcp_error *error) {
  uint64_t piece = KCP_PIECE_BYTES / kcp_value_bytes(plan->type);
  uint64_t enough = 2 * plan->k > LEAST_CANDIDATES ? 2 * plan->k : LEAST_CANDIDATES;
  uint64_t room = enough + piece < range->count ? enough + piece : range->count;
  for (int w = 0; w < count; ++w) {
    workers[w] = (struct worker){.k = plan->k, .enough = enough};
    workers[w].scan =
        (struct kcp_value_scan){.type = plan->type,
                                .order = plan->order,
                                .limit = kcp_no_limit(plan->type),
                                .most = UINT64_MAX,
                                .items = malloc(room * sizeof(struct kcp_ranked_key))};
    if (workers[w].scan.items == NULL)
      return kcp_out_of_memory(error, "candidates", room * sizeof(struct kcp_ranked_key));
  }
  return KCP_OK;
}

/* The answer from the candidates of all workers. */
static enum kcp_status finish(const struct kcp_top_k_plan *plan, const struct worker *workers,
                              int worker_count, struct kcp_range_answer *answer,
                              struct kcp_error *error) {
  uint64_t total = 0;
  for (int w = 0; w < worker_count; ++w) total += workers[w].scan.count;
  answer->count = plan->k < total ? plan->k : total;
  struct kcp_ranked_key *items = malloc((total > 0 ? total : 1) * sizeof *items);
  struct kcp_ranked_key *spare = malloc((answer->count > 0 ? answer->count : 1) * sizeof *spare);
  if (items == NULL || spare == NULL) {
    free(items);
    free(spare);
    return kcp_out_of_memory(error, "candidates", 2 * total * sizeof *items);
  }
  total = 0;
  for (int w = 0; w < worker_count; ++w) {
    memcpy(items + total, workers[w].scan.items, workers[w].scan.count * sizeof *items);
    total += workers[w].scan.count;
    answer->nan_count += workers[w].scan.nan_count;
  }
  kcp_ranked_select(items, total, answer->count);
  answer->items = kcp_ranked_sort(items, spare, answer->count, KCP_SORT_BY_KEY_AND_INDEX);
  free(answer->items == items ? spare : items);
  if (answer->count == 0) return KCP_OK;
  uint64_t last = answer->items[answer->count - 1].key;
  for (int w = 0; w < worker_count; ++w)
    answer->equal +=
        kcp_scan_count_key(&workers[w].scan, workers[w].scan.items, workers[w].scan.count, last);
  return KCP_OK;
}

uint64_t kcp_cpu_top_k_select_bytes(uint64_t k, uint64_t count) {
  return k > count / sort_from ? KCP_CPU_SORT_BYTES : 0;
}

enum kcp_status kcp_cpu_top_k_select(const struct kcp_top_k_plan *plan,
                                     const struct kcp_value_range *range,
                                     struct kcp_range_answer *answer, struct kcp_error *error) {
  if (plan->k > range->count / sort_from) return kcp_cpu_top_k_sort(plan, range, answer, error);
  memset(answer, 0, sizeof *answer);
  int count = kcp_workers_for(range->count);
  uint64_t useful = range->count / (4 * plan->k); /* more threads would only have more candidates */
  if ((uint64_t)count > useful) count = (int)useful;
  struct worker *workers = calloc((size_t)count, sizeof *workers);
  if (workers == NULL)
    return kcp_out_of_memory(error, "threads", (unsigned long long)count * sizeof *workers);
  enum kcp_status status = create_workers(plan, range, count, workers, error);
  if (status == KCP_OK)
    status = kcp_read_pieces(range, plan->type, take_piece, workers, sizeof *workers, count, error);
  if (status == KCP_OK) status = finish(plan, workers, count, answer, error);
  for (int w = 0; w < count; ++w) free(workers[w].scan.items);
  free(workers);
  return status;
}

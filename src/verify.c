#include "kcp/verify.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/interrupt.h"
#include "kcp/scan.h"
#include "kcp/winners.h"

#define SWEEP_FROM_PAIRS 1e9

/* The order of pairs and the rank, written once more on purpose. */

static bool pair_precedes(double rank_a, uint64_t a1, uint64_t a2, double rank_b, uint64_t b1,
                          uint64_t b2) {
  if (rank_a < rank_b) return true;
  if (rank_a > rank_b) return false;
  return a1 < b1 || (a1 == b1 && a2 < b2);
}

static double term_of(struct kcp_metric metric, double difference) {
  double magnitude = difference < 0 ? -difference : difference;
  double term = magnitude;
  uint32_t factors = metric.kind == KCP_L2 ? 2 : metric.kind == KCP_LP ? metric.power : 1;
  while (--factors > 0) term *= magnitude;
  return term;
}

static double rank_of(struct kcp_metric metric, const struct kcp_points *a, uint64_t i,
                      const struct kcp_points *b, uint64_t j) {
  double rank = 0;
  for (uint32_t d = 0; d < a->dimensions; ++d) {
    double term =
        term_of(metric, a->coordinates[d * a->stride + i] - b->coordinates[d * b->stride + j]);
    if (metric.kind != KCP_LINF)
      rank = rank + term;
    else if (term > rank)
      rank = term;
  }
  return rank;
}

static double largest_rank(const struct kcp_job *job) {
  double distance = job->request->max_distance;
  if (isinf(distance)) return DBL_MAX;
  double rank = term_of(job->request->metric, ldexp(distance, job->scale_exponent));
  return rank < DBL_MAX ? rank : DBL_MAX;
}

static enum kcp_status check_order(const struct kcp_job *job, const struct kcp_answer *answer,
                                   struct kcp_error *error) {
  double limit = largest_rank(job);
  for (uint64_t i = 0; i < answer->count; ++i) {
    const struct kcp_candidate *pair = &answer->pairs[i];
    if (!(pair->rank <= limit))
      return kcp_fail(error, KCP_WRONG_ANSWER, "wrong answer: pair %llu is beyond --max-distance",
                      (unsigned long long)i);
    if (job->request->self && pair->id1 > pair->id2)
      return kcp_fail(error, KCP_WRONG_ANSWER, "wrong answer: pair %llu has its larger id first",
                      (unsigned long long)i);
    const struct kcp_candidate *before = i > 0 ? pair - 1 : pair;
    if (pair_precedes(pair->rank, pair->id1, pair->id2, before->rank, before->id1, before->id2))
      return kcp_fail(error, KCP_WRONG_ANSWER,
                      "wrong answer: pair %llu belongs before the one ahead of it",
                      (unsigned long long)i);
  }
  return KCP_OK;
}

static bool has_rank(const struct kcp_winners *winners, uint64_t i, uint64_t j,
                     const struct kcp_candidate *pair, const void *context) {
  const struct kcp_metric *metric = context;
  return rank_of(*metric, &winners->reference, i, &winners->query, j) == pair->rank;
}

/* A pair named n times needs n pairs of records with its ids and rank. */
static enum kcp_status check_ranks(const struct kcp_job *job, const struct kcp_answer *answer,
                                   struct kcp_error *error) {
  struct kcp_winners winners;
  enum kcp_status status =
      kcp_winners_find(job, answer->pairs, answer->count, job->scale_exponent, &winners, error);
  if (status != KCP_OK) return status;
  const struct kcp_metric *metric = &job->request->metric;
  for (uint64_t i = 0; i < answer->count && status == KCP_OK;) {
    const struct kcp_candidate *pair = &answer->pairs[i];
    uint64_t times = 1;
    while (i + times < answer->count &&
           !pair_precedes(pair->rank, pair->id1, pair->id2, pair[times].rank, pair[times].id1,
                          pair[times].id2))
      ++times;
    uint64_t found = kcp_winners_count(&winners, pair, times, has_rank, metric);
    if (found == 0)
      status = kcp_fail(
          error, KCP_WRONG_ANSWER,
          "wrong answer: pair %llu (%llu, %llu) has another distance in the files, or "
          "is not in them",
          (unsigned long long)i, (unsigned long long)pair->id1, (unsigned long long)pair->id2);
    else if (found < times)
      status = kcp_fail(
          error, KCP_WRONG_ANSWER, "wrong answer: pair %llu (%llu, %llu) is named more than once",
          (unsigned long long)i, (unsigned long long)pair->id1, (unsigned long long)pair->id2);
    i += times;
  }
  kcp_winners_free(&winners);
  return status;
}

static enum kcp_status append_block(void *context, const struct kcp_points *block, uint64_t first,
                                    struct kcp_error *error) {
  struct kcp_points *all = context;
  (void)first;
  (void)error;
  memcpy(all->ids + all->count, block->ids, block->count * sizeof *block->ids);
  for (uint32_t d = 0; d < block->dimensions; ++d)
    memcpy(all->coordinates + d * all->stride + all->count, block->coordinates + d * block->stride,
           block->count * sizeof(double));
  all->count += block->count;
  return KCP_OK;
}

static enum kcp_status load(struct kcp_dataset *dataset, struct kcp_points *points,
                            struct kcp_error *error) {
  enum kcp_status status = kcp_points_allocate(kcp_dataset_count(dataset),
                                               kcp_dataset_dimensions(dataset), points, error);
  if (status == KCP_OK) status = kcp_scan(dataset, append_block, points, NULL, error);
  return status;
}

struct sweep_key {
  double value;
  uint64_t slot;
};

static int compare_keys(const void *a, const void *b) {
  const struct sweep_key *x = a, *y = b;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  return (x->slot > y->slot) - (x->slot < y->slot);
}

static uint32_t widest_dimension(const struct kcp_points *points) {
  uint32_t widest = 0;
  double largest_width = -1;
  for (uint32_t d = 0; d < points->dimensions; ++d) {
    const double *column = points->coordinates + d * points->stride;
    double low = INFINITY, high = -INFINITY;
    for (uint64_t i = 0; i < points->count; ++i) {
      if (column[i] < low) low = column[i];
      if (column[i] > high) high = column[i];
    }
    if (high - low <= largest_width) continue;
    largest_width = high - low;
    widest = d;
  }
  return widest;
}

/* Puts the points in ascending order of one coordinate. */
static enum kcp_status order_along(struct kcp_points *points, uint32_t dimension,
                                   struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  uint64_t n = points->count;
  struct sweep_key *keys = malloc((n + 1) * sizeof *keys);
  uint64_t *spare = malloc((n + 1) * sizeof *spare);
  if (keys == NULL || spare == NULL) {
    status = kcp_out_of_memory(error, "the check of the answer", n * sizeof *keys);
    goto cleanup;
  }
  for (uint64_t i = 0; i < n; ++i)
    keys[i] = (struct sweep_key){points->coordinates[dimension * points->stride + i], i};
  qsort(keys, n, sizeof *keys, compare_keys);
  for (uint64_t i = 0; i < n; ++i) spare[i] = points->ids[keys[i].slot];
  memcpy(points->ids, spare, n * sizeof *spare);
  for (uint32_t d = 0; d < points->dimensions; ++d) {
    double *column = points->coordinates + d * points->stride;
    for (uint64_t i = 0; i < n; ++i) memcpy(&spare[i], &column[keys[i].slot], sizeof *spare);
    memcpy(column, spare, n * sizeof *spare);
  }

cleanup:
  free(keys);
  free(spare);
  return status;
}

/* Everything up to and including `last` is counted. */
struct count_task {
  const struct kcp_points *reference;
  const struct kcp_points *query;
  struct kcp_metric metric;
  struct kcp_candidate last;
  bool self;
  bool sweep; /* the reference points ascend along `dimension` */
  uint32_t dimension;
};

/* The first reference slot that the query can reach along the sweep from below (or the first that
 * it cannot reach above). */
static uint64_t window_edge(const struct count_task *task, double value, bool upper) {
  const double *column = task->reference->coordinates + task->dimension * task->reference->stride;
  uint64_t low = 0, high = task->reference->count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    bool near = term_of(task->metric, column[middle] - value) <= task->last.rank;
    bool right = upper ? (near || column[middle] < value) : (!near && column[middle] < value);
    if (right)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static uint64_t count_query(const struct count_task *task, uint64_t j) {
  const struct kcp_points *reference = task->reference, *query = task->query;
  uint64_t first = 0, end = reference->count, counted = 0;
  if (task->sweep) {
    double value = query->coordinates[task->dimension * query->stride + j];
    first = window_edge(task, value, false);
    end = window_edge(task, value, true);
  }
  if (task->self && end > j) end = j;
  for (uint64_t i = first; i < end; ++i) {
    double rank = rank_of(task->metric, reference, i, query, j);
    if (rank > task->last.rank) continue;
    uint64_t id1 = reference->ids[i], id2 = query->ids[j];
    if (task->self && id1 > id2) {
      id1 = query->ids[j];
      id2 = reference->ids[i];
    }
    counted += !pair_precedes(task->last.rank, task->last.id1, task->last.id2, rank, id1, id2);
  }
  return counted;
}

static enum kcp_status count_pairs(const struct count_task *task, uint64_t *count,
                                   struct kcp_error *error) {
  uint64_t counted = 0;
#pragma omp parallel for schedule(dynamic, 64) reduction(+ : counted)
  for (uint64_t j = 0; j < task->query->count; ++j)
    if (!kcp_interrupted()) counted += count_query(task, j);
  *count = counted;
  if (kcp_interrupted()) return kcp_fail(error, KCP_INTERRUPTED, "interrupted");
  return KCP_OK;
}

static enum kcp_status check_count(const struct kcp_job *job, const struct kcp_answer *answer,
                                   struct kcp_error *error) {
  struct kcp_points reference = {0}, query = {0};
  bool self = job->request->self;
  struct count_task task = {.reference = &reference,
                            .query = self ? &reference : &query,
                            .metric = job->request->metric,
                            .last = {largest_rank(job), UINT64_MAX, UINT64_MAX},
                            .self = self};
  uint64_t counted = 0;
  if (answer->count == job->pair_count && answer->count > 0)
    task.last = answer->pairs[answer->count - 1];
  enum kcp_status status = load(job->reference, &reference, error);
  if (status == KCP_OK && !self) status = load(job->query, &query, error);
  if (status != KCP_OK) goto cleanup;
  task.sweep = (double)reference.count * (double)task.query->count > SWEEP_FROM_PAIRS;
  if (task.sweep) {
    task.dimension = widest_dimension(&reference);
    status = order_along(&reference, task.dimension, error);
    if (status != KCP_OK) goto cleanup;
  }
  status = count_pairs(&task, &counted, error);
  if (status == KCP_OK && counted != answer->count)
    status = kcp_fail(error, KCP_WRONG_ANSWER,
                      "wrong answer: it has %llu pairs, but %llu pairs of the files lie at or "
                      "before its last one",
                      (unsigned long long)answer->count, (unsigned long long)counted);

cleanup:
  kcp_points_free(&reference);
  kcp_points_free(&query);
  return status;
}

enum kcp_status kcp_verify_pairs(const struct kcp_job *job, const struct kcp_answer *answer,
                                 struct kcp_error *error) {
  if (answer->count > job->pair_count)
    return kcp_fail(error, KCP_WRONG_ANSWER, "wrong answer: %llu pairs where %llu were asked for",
                    (unsigned long long)answer->count, (unsigned long long)job->pair_count);
  enum kcp_status status = check_order(job, answer, error);
  if (status == KCP_OK) status = check_ranks(job, answer, error);
  if (status == KCP_OK) status = check_count(job, answer, error);
  return status;
}

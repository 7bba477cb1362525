#include "oracle.h"

#include <stdlib.h>
#include <string.h>

/* Pairs found so far; cut to the first k of them whenever there is no more room. */
struct collection {
  struct oracle_pair *pairs;
  uint64_t count;
  uint64_t room;
  uint64_t k;
  bool full; /* `last` is valid: the k-th pair when pairs were last sorted */
  struct oracle_pair last;
};

static int order_of(const struct oracle_pair *a, const struct oracle_pair *b) {
  if (a->rank < b->rank) return -1;
  if (a->rank > b->rank) return 1;
  if (a->id1 < b->id1) return -1;
  if (a->id1 > b->id1) return 1;
  if (a->id2 < b->id2) return -1;
  return a->id2 > b->id2;
}

static int order_for_qsort(const void *a, const void *b) {
  return order_of(a, b);
}

static void sort_and_cut(struct collection *found) {
  qsort(found->pairs, found->count, sizeof *found->pairs, order_for_qsort);
  if (found->count < found->k) return;
  found->count = found->k;
  found->full = true;
  found->last = found->pairs[found->k - 1];
}

static void collect(struct collection *found, const struct oracle_pair *pair) {
  if (found->full && order_of(pair, &found->last) >= 0) return;
  found->pairs[found->count++] = *pair;
  if (found->count == found->room) sort_and_cut(found);
}

static double magnitude_of(double a) {
  return a < 0 ? -a : a;
}

static double power_of(double base, unsigned power) {
  double product = base;
  while (--power > 0) product *= base;
  return product;
}

double oracle_rank(enum oracle_metric metric, unsigned power, uint32_t dimensions, const double *a,
                   const double *b) {
  double rank = 0;
  for (uint32_t j = 0; j < dimensions; ++j) {
    double difference = magnitude_of(a[j] - b[j]);
    switch (metric) {
      case ORACLE_L1: rank += difference; break;
      case ORACLE_L2: rank += difference * difference; break;
      case ORACLE_LINF:
        if (difference > rank) rank = difference;
        break;
      case ORACLE_LP: rank += power_of(difference, power); break;
    }
  }
  return rank;
}

double oracle_rank_of_distance(enum oracle_metric metric, unsigned power, double distance) {
  const double origin = 0;
  return oracle_rank(metric, power, 1, &distance, &origin);
}

/* A pair of distinct records counts once: smaller id first, of equal ids the earlier record. */
static bool counts_in_self_join(const struct oracle_points *points, uint64_t i, uint64_t j) {
  if (points->ids[i] < points->ids[j]) return true;
  return points->ids[i] == points->ids[j] && i < j;
}

uint64_t oracle_closest_pairs(const struct oracle_points *reference,
                              const struct oracle_points *query,
                              const struct oracle_question *question, struct oracle_pair *pairs) {
  struct collection found = {.k = question->k, .room = 2 * question->k + 1000};
  bool limited = question->max_distance < (double)__builtin_inf();
  double limit =
      limited ? oracle_rank_of_distance(question->metric, question->power, question->max_distance)
              : 0;
  found.pairs = malloc(found.room * sizeof *found.pairs);
  if (found.pairs == NULL) abort();
  for (uint64_t i = 0; i < reference->count; ++i)
    for (uint64_t j = 0; j < query->count; ++j) {
      if (question->self && !counts_in_self_join(reference, i, j)) continue;
      struct oracle_pair pair = {
          oracle_rank(question->metric, question->power, reference->dimensions,
                      reference->coordinates + i * reference->dimensions,
                      query->coordinates + j * query->dimensions),
          reference->ids[i], query->ids[j]};
      if (limited && pair.rank > limit) continue;
      collect(&found, &pair);
    }
  sort_and_cut(&found);
  memcpy(pairs, found.pairs, found.count * sizeof *pairs);
  free(found.pairs);
  return found.count;
}

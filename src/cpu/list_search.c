/* k closest pairs with candidate lists on the CPU: brute force (Algorithm 2) and the DSPP walk
 * (Algorithm 5), a list for each group of query points, groups dealt to all cores.
 *
 * --kernel plain evaluates pair by pair; tiled evaluates runs of 256 points with vector
 * instructions and looks at ranks within the threshold only. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/interrupt.h"
#include "kcp/pair_search.h"
#include "kcp/sorting.h"
#include "kcp/subpartition.h"
#include "point_order.h"
#include "rank_block.h"

struct slot {
  struct kcp_ordered_points queries;
  double *ranks; /* lists_per_slot lists of k + 1 slots, each in a row */
  uint64_t *id1;
  uint64_t *id2;
};

struct kcp_pair_search {
  struct kcp_pair_plan plan;
  struct kcp_ordered_points reference;
  double *first_x; /* the sub-partition index */
  double *last_x;
  struct slot *slots;
  struct kcp_radix_sorter sorter;
  struct kcp_measurement measurement;
};

static bool sorts_reference(const struct kcp_pair_plan *plan) {
  return plan->variant.traversal == KCP_TRAVERSE_SUBPARTITIONS;
}

static bool sorts_queries(const struct kcp_pair_plan *plan) {
  return sorts_reference(plan) && plan->order == KCP_ORDER_X;
}

static void destroy(struct kcp_pair_search *search) {
  if (search == NULL) return;
  kcp_ordered_points_free(&search->reference);
  for (uint32_t s = 0; search->slots != NULL && s < search->plan.slots; ++s) {
    kcp_ordered_points_free(&search->slots[s].queries);
    free(search->slots[s].ranks);
    free(search->slots[s].id1);
    free(search->slots[s].id2);
  }
  free(search->slots);
  free(search->first_x);
  free(search->last_x);
  kcp_radix_sorter_free(&search->sorter);
  free(search);
}

static enum kcp_status make_slot(const struct kcp_pair_plan *plan, struct slot *slot,
                                 struct kcp_error *error) {
  uint64_t candidates = plan->lists_per_slot * (plan->k + 1);
  enum kcp_status status = kcp_ordered_points_allocate(plan->query_partition, plan->dimensions,
                                                       sorts_queries(plan), &slot->queries, error);
  if (status != KCP_OK) return status;
  slot->ranks = malloc(candidates * sizeof(double));
  slot->id1 = malloc(candidates * sizeof(uint64_t));
  slot->id2 = malloc(candidates * sizeof(uint64_t));
  if (slot->ranks == NULL || slot->id1 == NULL || slot->id2 == NULL)
    return kcp_out_of_memory(error, "candidate lists", candidates * KCP_CANDIDATE_BYTES);
  return KCP_OK;
}

static enum kcp_status create(const struct kcp_pair_plan *plan,
                              const struct kcp_device_info *device, struct kcp_pair_search **out,
                              struct kcp_error *error) {
  (void)device;
  struct kcp_pair_search *search = calloc(1, sizeof *search);
  if (search == NULL) return kcp_out_of_memory(error, "the search", sizeof *search);
  enum kcp_status status = KCP_OK;
  uint64_t subpartitions = plan->reference_partition / plan->subpartition_size + 1;
  search->plan = *plan;
  search->first_x = malloc(subpartitions * sizeof(double));
  search->last_x = malloc(subpartitions * sizeof(double));
  search->slots = calloc(plan->slots, sizeof *search->slots);
  if (search->first_x == NULL || search->last_x == NULL || search->slots == NULL) {
    status = kcp_out_of_memory(error, "the index", 2 * subpartitions * sizeof(double));
    goto failed;
  }
  status = kcp_ordered_points_allocate(plan->reference_partition, plan->dimensions, true,
                                       &search->reference, error);
  if (status != KCP_OK) goto failed;
  for (uint32_t s = 0; s < plan->slots; ++s) {
    status = make_slot(plan, &search->slots[s], error);
    if (status != KCP_OK) goto failed;
  }
  uint64_t larger = plan->reference_partition > plan->query_partition ? plan->reference_partition
                                                                      : plan->query_partition;
  status = kcp_radix_sorter_create(larger, &search->sorter, error);
  if (status != KCP_OK) goto failed;
  *out = search;
  return KCP_OK;

failed:
  destroy(search);
  return status;
}

static struct kcp_candidate_list list_of(const struct kcp_pair_search *search,
                                         const struct slot *slot, uint64_t number) {
  uint64_t offset = number * (search->plan.k + 1);
  struct kcp_candidate_list list = {slot->ranks + offset, slot->id1 + offset, slot->id2 + offset, 1,
                                    search->plan.k};
  return list;
}

static enum kcp_status reset(struct kcp_pair_search *search, struct kcp_error *error) {
  (void)error;
  memset(&search->measurement, 0, sizeof search->measurement);
  for (uint32_t s = 0; s < search->plan.slots; ++s) {
#pragma omp parallel for
    for (uint64_t i = 0; i < search->plan.lists_per_slot; ++i) {
      struct kcp_candidate_list list = list_of(search, &search->slots[s], i);
      kcp_list_clear(&list);
    }
  }
  return KCP_OK;
}

static struct kcp_points *reference_block(struct kcp_pair_search *search) {
  return &search->reference.block;
}

static struct kcp_points *query_block(struct kcp_pair_search *search, uint32_t slot) {
  return &search->slots[slot].queries.block;
}

static void fill_index(struct kcp_pair_search *search) {
  const struct kcp_points *sorted = &search->reference.sorted;
  uint32_t size = search->plan.subpartition_size;
  for (uint64_t first = 0, i = 0; first < sorted->count; first += size, ++i) {
    uint64_t last = first + size < sorted->count ? first + size : sorted->count;
    search->first_x[i] = sorted->coordinates[first];
    search->last_x[i] = sorted->coordinates[last - 1];
  }
}

static enum kcp_status load_reference(struct kcp_pair_search *search, uint64_t first_record,
                                      struct kcp_error *error) {
  (void)error;
  double started = kcp_now();
  search->reference.first_record = first_record;
  if (sorts_reference(&search->plan)) {
    kcp_order_by_x(&search->sorter, &search->reference);
    if (search->plan.kernel == KCP_KERNEL_TILED)
      kcp_drop_coincident(&search->sorter, search->plan.k, &search->reference);
    fill_index(search);
  } else {
    kcp_order_by_id(&search->sorter, &search->reference);
  }
  search->measurement.phase_s[KCP_PHASE_INDEX] += kcp_now() - started;
  return KCP_OK;
}

static enum kcp_status load_queries(struct kcp_pair_search *search, uint32_t slot,
                                    uint64_t first_record, struct kcp_error *error) {
  (void)error;
  double started = kcp_now();
  struct kcp_ordered_points *queries = &search->slots[slot].queries;
  queries->first_record = first_record;
  if (sorts_queries(&search->plan))
    kcp_order_by_x(&search->sorter, queries);
  else
    kcp_keep_order(queries);
  search->measurement.phase_s[KCP_PHASE_INDEX] += kcp_now() - started;
  return KCP_OK;
}

/* One query point at work: what examine needs to know of it. */
struct query {
  const double *coordinates; /* dimensions values */
  uint64_t id;
  uint64_t record;
};

struct examination {
  const struct kcp_pair_plan *plan;
  const struct kcp_ordered_points *partition; /* of D1 */
  const struct kcp_points *reference;         /* its points as searched */
  uint32_t dimensions;                        /* that differ */
};

static void consider(const struct examination *with, const struct query *query, uint64_t i,
                     double rank, const struct kcp_candidate_list *list,
                     struct kcp_threshold *threshold) {
  struct kcp_candidate candidate = {rank, with->reference->ids[i], query->id};
  if (!kcp_threshold_accepts(threshold, &candidate)) return;
  if (with->plan->self) {
    uint64_t record = kcp_searched_record(with->partition, i);
    if (!kcp_self_pair_counts(candidate.id1, record, candidate.id2, query->record)) return;
  }
  kcp_list_insert(with->plan->buffer, list, candidate, threshold);
}

static void examine_pair_by_pair(const struct examination *with, const struct query *query,
                                 uint64_t first, uint64_t last,
                                 const struct kcp_candidate_list *list,
                                 struct kcp_threshold *threshold) {
  struct kcp_metric metric = with->plan->metric;
  for (uint64_t i = first; i < last; ++i) {
    double rank = kcp_metric_rank_of(metric.kind, metric.power, with->dimensions,
                                     with->reference->coordinates, with->reference->stride, i,
                                     query->coordinates);
    if (rank <= threshold->last.rank) consider(with, query, i, rank, list, threshold);
  }
}

static void examine_in_blocks(const struct examination *with, const struct query *query,
                              uint64_t first, uint64_t last, const struct kcp_candidate_list *list,
                              struct kcp_threshold *threshold) {
  double ranks[KCP_RANK_BLOCK];
  for (uint64_t block = first; block < last; block += KCP_RANK_BLOCK) {
    uint32_t count = last - block < KCP_RANK_BLOCK ? (uint32_t)(last - block) : KCP_RANK_BLOCK;
    uint32_t within = kcp_rank_block(with->plan->metric, with->dimensions,
                                     with->reference->coordinates + block, with->reference->stride,
                                     count, query->coordinates, threshold->last.rank, ranks);
    for (uint32_t i = 0; within > 0 && i < count; ++i)
      if (ranks[i] <= threshold->last.rank)
        consider(with, query, block + i, ranks[i], list, threshold);
  }
}

/* Points of the reference partition first .. last - 1 against a query point. */
static uint64_t examine(const struct examination *with, const struct query *query, uint64_t first,
                        uint64_t last, const struct kcp_candidate_list *list,
                        struct kcp_threshold *threshold) {
  if (with->plan->kernel == KCP_KERNEL_PLAIN)
    examine_pair_by_pair(with, query, first, last, list, threshold);
  else
    examine_in_blocks(with, query, first, last, list, threshold);
  return last - first;
}

/* Algorithm 5 for one query point; returns the distances evaluated. */
static uint64_t walk_subpartitions(const struct examination *with,
                                   const struct kcp_subpartition_index *index,
                                   const struct query *query, const struct kcp_candidate_list *list,
                                   struct kcp_threshold *threshold) {
  struct kcp_metric metric = with->plan->metric;
  struct kcp_walk walk;
  double x = query->coordinates[0];
  uint64_t evaluated = 0, count = with->reference->count;
  uint32_t current = kcp_walk_start(index, x, &walk);
  do {
    uint64_t first = (uint64_t)current * index->size;
    uint64_t last = first + index->size < count ? first + index->size : count;
    evaluated += examine(with, query, first, last, list, threshold);
  } while (
      kcp_walk_next(index, metric.kind, metric.power, x, threshold->last.rank, &walk, &current));
  return evaluated;
}

static enum kcp_status search_slot(struct kcp_pair_search *search, uint32_t slot_number, bool flat,
                                   struct kcp_error *error) {
  (void)error;
  const struct kcp_pair_plan *plan = &search->plan;
  const struct slot *slot = &search->slots[slot_number];
  const struct kcp_points *queries = kcp_searched_points(&slot->queries);
  const struct kcp_points *reference = kcp_searched_points(&search->reference);
  struct examination with = {plan, &search->reference, reference, flat ? 2 : plan->dimensions};
  struct kcp_subpartition_index index = {
      search->first_x, search->last_x,
      (uint32_t)((reference->count + plan->subpartition_size - 1) / plan->subpartition_size),
      plan->subpartition_size};
  uint64_t evaluated = 0;
  uint64_t lists = (queries->count + plan->points_per_thread - 1) / plan->points_per_thread;
  double started = kcp_now();
  if (reference->count == 0) return KCP_OK;

  double *coordinates = malloc((size_t)omp_get_max_threads() * plan->dimensions * sizeof(double));
  if (coordinates == NULL)
    return kcp_out_of_memory(error, "query points", plan->dimensions * sizeof(double));
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : evaluated)
  for (uint64_t number = 0; number < lists; ++number) {
    struct kcp_candidate_list list = list_of(search, slot, number);
    struct kcp_threshold threshold = kcp_list_threshold(plan->buffer, &list, plan->rank_limit);
    double *point = coordinates + (size_t)omp_get_thread_num() * plan->dimensions;
    uint64_t first = number * plan->points_per_thread, last = first + plan->points_per_thread;
    for (uint64_t q = first; q < last && q < queries->count && !kcp_interrupted(); ++q) {
      struct query query = {point, queries->ids[q], kcp_searched_record(&slot->queries, q)};
      for (uint32_t j = 0; j < plan->dimensions; ++j) point[j] = kcp_points_column(queries, j)[q];
      if (plan->variant.traversal == KCP_TRAVERSE_ALL)
        evaluated += examine(&with, &query, 0, reference->count, &list, &threshold);
      else
        evaluated += walk_subpartitions(&with, &index, &query, &list, &threshold);
    }
  }
  free(coordinates);
  search->measurement.distance_evaluations += evaluated;
  search->measurement.phase_s[KCP_PHASE_KERNEL] += kcp_now() - started;
  return KCP_OK;
}

static enum kcp_status synchronize(struct kcp_pair_search *search, struct kcp_error *error) {
  (void)search;
  (void)error;
  return KCP_OK;
}

/* One more heap of k takes every candidate of every list. */
static enum kcp_status merge(struct kcp_pair_search *search, struct kcp_candidate *pairs,
                             uint64_t *count, struct kcp_measurement *measurement,
                             struct kcp_error *error) {
  const struct kcp_pair_plan *plan = &search->plan;
  double started = kcp_now();
  uint64_t slots = plan->k + 1;
  struct kcp_candidate_list best = {malloc(slots * sizeof(double)),
                                    malloc(slots * sizeof(uint64_t)),
                                    malloc(slots * sizeof(uint64_t)), 1, plan->k};
  enum kcp_status status = KCP_OK;
  if (best.rank == NULL || best.id1 == NULL || best.id2 == NULL) {
    status = kcp_out_of_memory(error, "merging", slots * KCP_CANDIDATE_BYTES);
    goto cleanup;
  }
  kcp_list_clear(&best);
  struct kcp_threshold threshold = kcp_list_threshold(KCP_BUFFER_HEAP, &best, plan->rank_limit);
  for (uint32_t s = 0; s < plan->slots; ++s)
    for (uint64_t number = 0; number < plan->lists_per_slot; ++number) {
      struct kcp_candidate_list list = list_of(search, &search->slots[s], number);
      uint64_t filled = kcp_list_count(&list);
      for (uint64_t i = 1; i <= filled; ++i) {
        struct kcp_candidate candidate = kcp_list_get(&list, i);
        if (kcp_threshold_accepts(&threshold, &candidate))
          kcp_list_insert(KCP_BUFFER_HEAP, &best, candidate, &threshold);
      }
    }
  *count = kcp_list_count(&best);
  for (uint64_t i = 0; i < *count; ++i) pairs[i] = kcp_list_get(&best, i + 1);
  status = kcp_sort_candidates(pairs, *count, error);
  search->measurement.phase_s[KCP_PHASE_MERGE] += kcp_now() - started;
  for (int phase = 0; phase < KCP_PHASE_COUNT; ++phase)
    measurement->phase_s[phase] += search->measurement.phase_s[phase];
  measurement->distance_evaluations += search->measurement.distance_evaluations;

cleanup:
  free(best.rank);
  free(best.id1);
  free(best.id2);
  return status;
}

const struct kcp_pair_engine kcp_cpu_pair_engine = {.create = create,
                                                    .destroy = destroy,
                                                    .reset = reset,
                                                    .reference_block = reference_block,
                                                    .query_block = query_block,
                                                    .load_reference = load_reference,
                                                    .load_queries = load_queries,
                                                    .search = search_slot,
                                                    .synchronize = synchronize,
                                                    .merge = merge};

#include "kcp/winners.h"

#include <stdlib.h>
#include <string.h>

#include "kcp/scan.h"

static int compare_ids(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* Ascending and distinct ids to look for. */
struct id_set {
  uint64_t *ids;
  uint64_t count;
};

static void sort_set(struct id_set *set) {
  if (set->count == 0) return;
  qsort(set->ids, set->count, sizeof *set->ids, compare_ids);
  uint64_t kept = 1;
  for (uint64_t i = 1; i < set->count; ++i)
    if (set->ids[i] != set->ids[kept - 1]) set->ids[kept++] = set->ids[i];
  set->count = kept;
}

static bool contains(const struct id_set *set, uint64_t id) {
  return set->count > 0 &&
         bsearch(&id, set->ids, set->count, sizeof *set->ids, compare_ids) != NULL;
}

struct collection {
  const struct id_set *wanted;
  struct kcp_points points;
  uint64_t capacity;
};

static enum kcp_status grow(struct collection *collection, struct kcp_error *error) {
  struct kcp_points larger;
  const struct kcp_points *old = &collection->points;
  uint64_t capacity = 2 * collection->capacity;
  enum kcp_status status = kcp_points_allocate(capacity, old->dimensions, &larger, error);
  if (status != KCP_OK) return status;
  memcpy(larger.ids, old->ids, old->count * sizeof *old->ids);
  for (uint32_t j = 0; j < old->dimensions; ++j)
    memcpy(kcp_points_column(&larger, j), kcp_points_column(old, j), old->count * sizeof(double));
  larger.count = old->count;
  kcp_points_free(&collection->points);
  collection->points = larger;
  collection->capacity = capacity;
  return KCP_OK;
}

static enum kcp_status collect_block(void *context, const struct kcp_points *block, uint64_t first,
                                     struct kcp_error *error) {
  struct collection *collection = context;
  (void)first;
  for (uint64_t i = 0; i < block->count; ++i) {
    if (!contains(collection->wanted, block->ids[i])) continue;
    if (collection->points.count == collection->capacity) {
      enum kcp_status status = grow(collection, error);
      if (status != KCP_OK) return status;
    }
    struct kcp_points *points = &collection->points;
    uint64_t slot = points->count++;
    points->ids[slot] = block->ids[i];
    for (uint32_t j = 0; j < block->dimensions; ++j)
      kcp_points_column(points, j)[slot] = kcp_points_column(block, j)[i];
  }
  return KCP_OK;
}

struct numbered_id {
  uint64_t id;
  uint64_t slot;
};

static int compare_numbered(const void *a, const void *b) {
  const struct numbered_id *x = a, *y = b;
  if (x->id != y->id) return x->id < y->id ? -1 : 1;
  return (x->slot > y->slot) - (x->slot < y->slot);
}

static enum kcp_status order_by_id(const struct kcp_points *points, struct kcp_points *ordered,
                                   struct kcp_error *error) {
  struct numbered_id *order = malloc((points->count + 1) * sizeof *order);
  if (order == NULL)
    return kcp_out_of_memory(error, "the records of the answer", points->count * sizeof *order);
  enum kcp_status status = kcp_points_allocate(points->count, points->dimensions, ordered, error);
  if (status == KCP_OK) {
    for (uint64_t i = 0; i < points->count; ++i) order[i] = (struct numbered_id){points->ids[i], i};
    qsort(order, points->count, sizeof *order, compare_numbered);
    for (uint64_t i = 0; i < points->count; ++i) ordered->ids[i] = order[i].id;
    for (uint32_t j = 0; j < points->dimensions; ++j)
      for (uint64_t i = 0; i < points->count; ++i)
        kcp_points_column(ordered, j)[i] = kcp_points_column(points, j)[order[i].slot];
    ordered->count = points->count;
  }
  free(order);
  return status;
}

static enum kcp_status find_records(struct kcp_dataset *dataset, const struct id_set *wanted,
                                    struct kcp_points *found, struct kcp_error *error) {
  struct collection collection = {.wanted = wanted, .capacity = wanted->count + 16};
  enum kcp_status status = kcp_points_allocate(collection.capacity, kcp_dataset_dimensions(dataset),
                                               &collection.points, error);
  if (status == KCP_OK) status = kcp_scan(dataset, collect_block, &collection, NULL, error);
  if (status == KCP_OK) status = order_by_id(&collection.points, found, error);
  kcp_points_free(&collection.points);
  return status;
}

enum kcp_status kcp_winners_find(const struct kcp_job *job, const struct kcp_candidate *pairs,
                                 uint64_t count, int exponent, struct kcp_winners *winners,
                                 struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  bool self = job->request->self;
  struct id_set sets[2] = {{malloc((2 * count + 1) * sizeof(uint64_t)), 0},
                           {malloc((count + 1) * sizeof(uint64_t)), 0}};
  memset(winners, 0, sizeof *winners);
  winners->self = self;
  if (sets[0].ids == NULL || sets[1].ids == NULL) {
    status = kcp_out_of_memory(error, "the ids of the answer", 24 * count);
    goto cleanup;
  }
  for (uint64_t i = 0; i < count; ++i) {
    struct id_set *query_set = &sets[self ? 0 : 1];
    sets[0].ids[sets[0].count++] = pairs[i].id1;
    query_set->ids[query_set->count++] = pairs[i].id2;
  }
  sort_set(&sets[0]);
  sort_set(&sets[1]);
  kcp_dataset_set_scale(job->reference, exponent);
  kcp_dataset_set_scale(job->query, exponent);
  status = find_records(job->reference, &sets[0], &winners->reference, error);
  if (status == KCP_OK && !self)
    status = find_records(job->query, &sets[1], &winners->query, error);
  if (self) winners->query = winners->reference;
  kcp_dataset_set_scale(job->reference, job->scale_exponent);
  kcp_dataset_set_scale(job->query, job->scale_exponent);

cleanup:
  free(sets[0].ids);
  free(sets[1].ids);
  if (status != KCP_OK) kcp_winners_free(winners);
  return status;
}

void kcp_winners_free(struct kcp_winners *winners) {
  if (!winners->self) kcp_points_free(&winners->query);
  kcp_points_free(&winners->reference);
  memset(winners, 0, sizeof *winners);
}

/* The first slot whose id is not below `id`. */
static uint64_t lower_bound(const struct kcp_points *points, uint64_t id) {
  uint64_t low = 0, high = points->count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (points->ids[middle] < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

uint64_t kcp_winners_count(const struct kcp_winners *winners, const struct kcp_candidate *pair,
                           uint64_t limit, kcp_winner_test *test, const void *context) {
  const struct kcp_points *reference = &winners->reference, *query = &winners->query;
  bool same_group = winners->self && pair->id1 == pair->id2;
  uint64_t passed = 0;
  uint64_t first_query = lower_bound(query, pair->id2);
  for (uint64_t i = lower_bound(reference, pair->id1);
       i < reference->count && reference->ids[i] == pair->id1 && passed < limit; ++i)
    for (uint64_t j = same_group ? i + 1 : first_query;
         j < query->count && query->ids[j] == pair->id2 && passed < limit; ++j)
      passed += test(winners, i, j, pair, context);
  return passed;
}

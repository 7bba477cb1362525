/* The range join of two trees on the CPU (this project): leaves of up to 64 points of a balanced
 * kd-tree, with boxes in all dimensions, against the tree of the others.
 *
 * A node that no point of a leaf can reach is skipped; one that lies within eps of all of them is
 * counted as a whole; what is left is tested leaf against leaf. A self-join that counts tests each
 * pair of leaves once: rows of the masks count for the one, columns for the other. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kcp/interrupt.h"
#include "kcp/range_join.h"
#include "kcp/range_order.h"
#include "kcp/range_primitives.h"
#include "range_leaves.h"
#include "range_results.h"

#define MUCH_TO_FLUSH 65536
#define LEAST_RECORDS 64
/* Leaves whose points binary32 may keep too coarsely: one in so many. */
#define COARSE_LEAVES 16
#define COUNTER_BITS 7 /* for up to 64 queries */

struct kcp_range_join {
  struct kcp_range_plan plan;
  struct kcp_range_limit limit; /* of sums in binary64 in another order */
  double scale;                 /* a power of two: eps becomes 1 to 2 */
  uint32_t *order;              /* of dimensions */
  double *centre;               /* by place in the order */
  struct kcp_range_leaves points, queries;
};

/* Leaf pairs that a leaf of queries meets. */
struct meeting {
  uint64_t leaf;
  bool whole; /* every pair is within eps */
};

/* One thread's own. */
struct worker {
  void *query;
  struct meeting *meetings;
  uint64_t meeting_count, meeting_capacity;
  struct kcp_range_results results;
  uint64_t evaluations, rechecks, intersections;
};

/* One call of the join. */
struct joining {
  const struct kcp_range_join *join;
  const struct kcp_range_leaves *queries;
  bool symmetric;
  uint64_t *totals;  /* of each query in the order of the leaves */
  uint64_t *pending; /* of each node: counts for every point in it; NULL unless symmetric */
  const struct kcp_range_sink *sink;
};

static void destroy(struct kcp_range_join *join) {
  if (join == NULL) return;
  kcp_range_leaves_free(&join->points);
  kcp_range_leaves_free(&join->queries);
  free(join->order);
  free(join->centre);
  free(join);
}

static enum kcp_status create(const struct kcp_range_plan *plan,
                              const struct kcp_device_info *device, struct kcp_range_join **out,
                              struct kcp_error *error) {
  (void)device;
  struct kcp_range_join *join = calloc(1, sizeof *join);
  *out = NULL;
  if (join == NULL) return kcp_out_of_memory(error, "a join", sizeof *join);
  join->plan = *plan;
  join->scale = kcp_range_narrow_scale(plan->eps);
  join->limit = kcp_range_limit_reordered(plan->eps, plan->dimensions);
  join->order = malloc(plan->dimensions * sizeof *join->order);
  join->centre = malloc(plan->dimensions * sizeof *join->centre);
  if (join->order == NULL || join->centre == NULL) {
    destroy(join);
    return kcp_out_of_memory(error, "dimensions", 12ULL * plan->dimensions);
  }
  *out = join;
  return KCP_OK;
}

/* A point takes its coordinates, up to twice as many in its leaf, a sixteenth of that for boxes,
 * and what grouping takes. */
static struct kcp_range_capacity capacity(const struct kcp_range_join *join) {
  const uint64_t coordinates = 8 * (uint64_t)join->plan.dimensions;
  const uint64_t point = 4 * coordinates + 4 * KCP_GROUP_AXES + 32;
  struct kcp_range_capacity room = {join->plan.memory_bytes / 2 / point,
                                    join->plan.memory_bytes / 4 / point};
  if (room.reference_records < LEAST_RECORDS) room.reference_records = LEAST_RECORDS;
  if (room.query_records < LEAST_RECORDS) room.query_records = LEAST_RECORDS;
  if (room.reference_records > UINT32_MAX) room.reference_records = UINT32_MAX;
  if (room.query_records > UINT32_MAX) room.query_records = UINT32_MAX;
  return room;
}

static size_t parameters(const struct kcp_range_join *join, struct kcp_parameter *list) {
  list[0] = (struct kcp_parameter){.name = "filter"};
  snprintf(list[0].value, sizeof list[0].value, "%s",
           join->points.is_narrow ? "binary32" : "binary64");
  return 1;
}

/* ---- the tree of D ---- */

static enum kcp_status order_dimensions(struct kcp_range_join *join,
                                        const struct kcp_points *reference,
                                        struct kcp_error *error) {
  double *variances = malloc(join->plan.dimensions * sizeof *variances);
  if (variances == NULL)
    return kcp_out_of_memory(error, "dimensions", 8ULL * join->plan.dimensions);
  kcp_range_variances(reference, variances);
  kcp_range_order(variances, join->plan.dimensions, join->plan.options.reorder, join->order);
  free(variances);
  return KCP_OK;
}

/* Whether binary32 keeps nearly all leaves well enough for eps. */
static bool narrow_serves(const struct kcp_range_join *join) {
  const struct kcp_range_leaves *points = &join->points;
  uint64_t coarse = 0;
  for (uint64_t leaf = 0; leaf < kcp_leaf_count(points); ++leaf)
    coarse += !kcp_range_narrow_serves(join->plan.eps, join->scale, (double)points->norms[leaf]);
  return coarse <= kcp_leaf_count(points) / COARSE_LEAVES;
}

static enum kcp_status fill(struct kcp_range_join *join, struct kcp_range_leaves *leaves,
                            struct kcp_error *error) {
  const struct kcp_narrow_frame frame = {join->scale, join->centre};
  if (leaves != &join->points)
    return kcp_range_leaves_fill(leaves, join->order, join->points.is_narrow ? &frame : NULL,
                                 error);
  const double *bounds = kcp_node_bounds(leaves, 0);
  for (uint32_t j = 0; j < leaves->dimensions; ++j)
    join->centre[j] = 0.5 * bounds[2 * j] + 0.5 * bounds[2 * j + 1];
  enum kcp_status status = kcp_range_leaves_fill(leaves, join->order, &frame, error);
  if (status == KCP_OK && !narrow_serves(join))
    status = kcp_range_leaves_fill(leaves, join->order, NULL, error);
  return status;
}

static enum kcp_status set_reference(struct kcp_range_join *join,
                                     const struct kcp_points *reference,
                                     struct kcp_measurement *measurement,
                                     struct kcp_range_work *work, struct kcp_error *error) {
  const double started = kcp_now();
  enum kcp_status status = KCP_OK;
  kcp_range_leaves_free(&join->points);
  if (reference->count == 0) return KCP_OK;
  status = order_dimensions(join, reference, error);
  const double ordered = kcp_now();
  if (status == KCP_OK)
    status = kcp_range_leaves_build(reference, join->order, &join->points, error);
  const double built = kcp_now();
  if (status == KCP_OK) status = fill(join, &join->points, error);
  work->phase_s[KCP_RANGE_PHASE_REORDER] += ordered - started;
  work->phase_s[KCP_RANGE_PHASE_KD_TREE] += built - ordered;
  work->phase_s[KCP_RANGE_PHASE_REARRANGE] += kcp_now() - built;
  measurement->phase_s[KCP_PHASE_INDEX] += kcp_now() - started;
  if (status == KCP_OK) work->primitives += kcp_leaf_count(&join->points);
  return status;
}

/* ---- boxes ---- */

/* How a box lies to another. Rounding is monotone: each square here is at most (at least) that of
 * any two points in them, and so is the sum of squares in this order (range_boxes.h). */
enum reach { OUT_OF_REACH, PARTLY_IN_REACH, WHOLLY_IN_REACH };

static enum reach reach_of(const struct kcp_range_join *join, const double *a, const double *b) {
  double nearest = 0, farthest = 0;
  for (uint32_t j = 0; j < join->plan.dimensions; ++j) {
    const double above = b[2 * j + 1] - a[2 * j], below = a[2 * j + 1] - b[2 * j];
    const double gap = fmax(b[2 * j] - a[2 * j + 1], a[2 * j] - b[2 * j + 1]);
    const double span = fmax(above, below);
    if (gap > 0) nearest += gap * gap;
    farthest += span * span;
    if (nearest > join->limit.beyond) return OUT_OF_REACH;
  }
  return farthest <= join->limit.within ? WHOLLY_IN_REACH : PARTLY_IN_REACH;
}

/* ---- leaf against leaf ---- */

static uint64_t first_of(const struct kcp_range_leaves *leaves, uint64_t leaf) {
  return kcp_kd_first(leaves->count, leaves->leaf_level, leaf);
}

static uint64_t bits_of(uint64_t count) {
  return count >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1;
}

/* Those of the open points that are within after all. */
static uint64_t recheck(const struct joining *joining, uint64_t query, uint64_t first,
                        uint64_t open, struct worker *worker) {
  const struct kcp_range_leaves *points = &joining->join->points, *queries = joining->queries;
  uint64_t within = 0;
  for (; open != 0; open &= open - 1) {
    const uint64_t i = (uint64_t)__builtin_ctzll(open);
    const double rank =
        kcp_range_rank(points->dimensions, points->given->coordinates, points->given->stride,
                       points->places[first + i], queries->given->coordinates,
                       queries->given->stride, queries->places[query]);
    within |= (uint64_t)(rank <= joining->join->limit.rank) << i;
    ++worker->rechecks;
  }
  return within;
}

/* masks[i] becomes what query i of a leaf has within eps in another. */
static void test_leaves(const struct joining *joining, uint64_t query_leaf, uint64_t leaf,
                        struct worker *worker, uint64_t *masks, uint64_t stride) {
  const struct kcp_range_join *join = joining->join;
  const struct kcp_range_leaves *points = &join->points, *queries = joining->queries;
  const uint64_t first = first_of(points, leaf), first_query = first_of(queries, query_leaf);
  const uint64_t count = first_of(points, leaf + 1) - first;
  const uint32_t query_count = (uint32_t)(first_of(queries, query_leaf + 1) - first_query);
  const struct kcp_range_limit limit =
      kcp_range_leaf_limit(queries, query_leaf, points, leaf, join->plan.eps, join->scale);
  const uint64_t there = bits_of(count);
  for (uint32_t i = 0; i < query_count; ++i) {
    kcp_range_leaf_query(queries, query_leaf, i, worker->query);
    struct kcp_leaf_mask mask = kcp_range_leaf_test(points, leaf, worker->query, &limit);
    uint64_t within = mask.within & there;
    if ((mask.open & there) != 0)
      within |= recheck(joining, first_query + i, first, mask.open & there, worker);
    masks[i * stride] = within;
  }
  worker->evaluations += query_count * count;
  worker->intersections += query_count;
}

static void add(uint64_t *total, uint64_t count) {
  if (count > 0) __atomic_fetch_add(total, count, __ATOMIC_RELAXED);
}

/* Counts the masks' rows for the queries, and unless `columns` is NULL their columns for the
 * points: vertical counters, a plane a binary digit. */
static void count_masks(const uint64_t *masks, uint32_t rows, uint64_t *row_totals,
                        uint64_t *columns) {
  uint64_t planes[COUNTER_BITS] = {0}, seen = 0;
  for (uint32_t i = 0; i < rows; ++i) {
    add(&row_totals[i], (uint64_t)__builtin_popcountll(masks[i]));
    seen |= masks[i];
    uint64_t carry = masks[i];
    for (int plane = 0; plane < COUNTER_BITS && carry != 0; ++plane) {
      const uint64_t both = planes[plane] & carry;
      planes[plane] ^= carry;
      carry = both;
    }
  }
  for (; columns != NULL && seen != 0; seen &= seen - 1) {
    const int i = __builtin_ctzll(seen);
    uint64_t count = 0;
    for (int plane = 0; plane < COUNTER_BITS; ++plane) count |= (planes[plane] >> i & 1) << plane;
    add(&columns[i], count);
  }
}

/* ---- the walk of a leaf of queries through the tree ---- */

static enum kcp_status note_meeting(struct worker *worker, uint64_t leaf, bool whole,
                                    struct kcp_error *error) {
  if (worker->meeting_count == worker->meeting_capacity) {
    const uint64_t capacity = 2 * worker->meeting_capacity + 256;
    struct meeting *larger = realloc(worker->meetings, capacity * sizeof *larger);
    if (larger == NULL) return kcp_out_of_memory(error, "leaves", capacity * sizeof *larger);
    worker->meetings = larger;
    worker->meeting_capacity = capacity;
  }
  worker->meetings[worker->meeting_count++] = (struct meeting){leaf, whole};
  return KCP_OK;
}

/* A node wholly in reach of a leaf of queries, when they are counted. */
static void count_whole(const struct joining *joining, uint64_t query_leaf, uint64_t node,
                        uint64_t count, bool is_own) {
  const uint64_t first = first_of(joining->queries, query_leaf);
  const uint64_t last = first_of(joining->queries, query_leaf + 1);
  for (uint64_t i = first; i < last; ++i) add(&joining->totals[i], count);
  if (joining->symmetric && !is_own) add(&joining->pending[node], last - first);
}

/* Leaves that a leaf of queries meets, in the order of the tree; counts what lies wholly in reach
 * unless there is a sink. A symmetric join looks at leaves from its own on. */
static enum kcp_status walk(const struct joining *joining, uint64_t query_leaf,
                            struct worker *worker, struct kcp_error *error) {
  const struct kcp_range_join *join = joining->join;
  const struct kcp_range_leaves *points = &join->points;
  const uint64_t query_node = kcp_leaf_count(joining->queries) - 1 + query_leaf;
  const double *own = kcp_node_bounds(joining->queries, query_node);
  uint64_t stack[66];
  int depth = 0;
  enum kcp_status status = KCP_OK;
  worker->meeting_count = 0;
  stack[depth++] = 0;
  while (depth > 0 && status == KCP_OK) {
    const uint64_t node = stack[--depth];
    const uint32_t level = 63 - (uint32_t)__builtin_clzll(node + 1);
    const uint64_t i = node + 1 - (UINT64_C(1) << level);
    const uint32_t below = points->leaf_level - level;
    const uint64_t first_leaf = i << below, last_leaf = ((i + 1) << below) - 1;
    const uint64_t count =
        kcp_kd_first(points->count, level, i + 1) - kcp_kd_first(points->count, level, i);
    if (count == 0 || (joining->symmetric && last_leaf < query_leaf)) continue;
    const enum reach reach = reach_of(join, own, kcp_node_bounds(points, node));
    if (reach == OUT_OF_REACH) continue;
    const bool is_own = joining->symmetric && node == query_node;
    if (reach == WHOLLY_IN_REACH && joining->sink == NULL &&
        (!joining->symmetric || first_leaf > query_leaf || is_own)) {
      count_whole(joining, query_leaf, node, count, is_own);
    } else if (level == points->leaf_level) {
      status = note_meeting(worker, i, reach == WHOLLY_IN_REACH, error);
    } else {
      stack[depth++] = 2 * node + 2;
      stack[depth++] = 2 * node + 1;
    }
  }
  return status;
}

static void count_leaf(const struct joining *joining, uint64_t query_leaf, struct worker *worker) {
  const uint64_t first_query = first_of(joining->queries, query_leaf);
  const uint32_t queries = (uint32_t)(first_of(joining->queries, query_leaf + 1) - first_query);
  uint64_t masks[KCP_LEAF_POINTS];
  for (uint64_t m = 0; m < worker->meeting_count; ++m) {
    const uint64_t leaf = worker->meetings[m].leaf;
    test_leaves(joining, query_leaf, leaf, worker, masks, 1);
    uint64_t *columns = joining->symmetric && leaf != query_leaf
                            ? joining->totals + first_of(&joining->join->points, leaf)
                            : NULL;
    count_masks(masks, queries, joining->totals + first_query, columns);
  }
}

/* ---- neighbours ---- */

static enum kcp_status list_query(const struct joining *joining, const struct worker *found,
                                  const uint64_t *masks, uint32_t query,
                                  struct kcp_range_results *results, struct kcp_error *error) {
  const struct kcp_range_leaves *points = &joining->join->points;
  enum kcp_status status = kcp_range_results_open(results, query, error);
  for (uint64_t m = 0; m < found->meeting_count && status == KCP_OK; ++m) {
    const uint64_t first = first_of(points, found->meetings[m].leaf);
    const uint64_t count = (uint64_t)__builtin_popcountll(masks[m]);
    uint32_t *room = kcp_range_results_room(results, count, error);
    if (room == NULL) return KCP_FAILED;
    for (uint64_t left = masks[m]; left != 0; left &= left - 1)
      *room++ = points->places[first + (uint64_t)__builtin_ctzll(left)];
    kcp_range_results_added(results, count);
  }
  return status == KCP_OK ? kcp_range_results_sort(results, error) : status;
}

/* All meetings first, leaf after leaf while it is in the cache; then query after query. */
static enum kcp_status list_leaf(const struct joining *joining, uint64_t query_leaf,
                                 struct worker *worker, struct kcp_error *error) {
  const struct kcp_range_leaves *points = &joining->join->points, *queries = joining->queries;
  const uint64_t first_query = first_of(queries, query_leaf), meetings = worker->meeting_count;
  const uint32_t count = (uint32_t)(first_of(queries, query_leaf + 1) - first_query);
  uint64_t *masks = malloc((count * meetings + 1) * sizeof *masks);
  if (masks == NULL) return kcp_out_of_memory(error, "masks", count * meetings * sizeof *masks);
  for (uint64_t m = 0; m < meetings; ++m) {
    const uint64_t leaf = worker->meetings[m].leaf;
    if (!worker->meetings[m].whole) {
      test_leaves(joining, query_leaf, leaf, worker, masks + m, meetings);
      continue;
    }
    for (uint32_t i = 0; i < count; ++i)
      masks[i * meetings + m] = bits_of(first_of(points, leaf + 1) - first_of(points, leaf));
  }
  enum kcp_status status = KCP_OK;
  for (uint32_t i = 0; i < count && status == KCP_OK; ++i) {
    const uint64_t *own = masks + i * meetings;
    uint64_t found = 0;
    for (uint64_t m = 0; m < meetings; ++m) found += (uint64_t)__builtin_popcountll(own[m]);
    joining->totals[first_query + i] += found;
    status =
        list_query(joining, worker, own, queries->places[first_query + i], &worker->results, error);
  }
  free(masks);
  if (status == KCP_OK)
    status = kcp_range_results_flush(&worker->results, MUCH_TO_FLUSH, joining->sink, error);
  return status;
}

/* ---- the join ---- */

static enum kcp_status join_leaves(const struct joining *joining,
                                   struct kcp_measurement *measurement, struct kcp_range_work *work,
                                   struct kcp_error *error) {
  enum kcp_status result = KCP_OK;
  uint64_t evaluations = 0, rechecks = 0, intersections = 0;
#pragma omp parallel reduction(+ : evaluations, rechecks, intersections)
  {
    struct kcp_error own;
    struct worker worker = {.query = malloc(joining->join->plan.dimensions * sizeof(double))};
    enum kcp_status status = KCP_OK;
    if (worker.query == NULL)
      status = kcp_out_of_memory(&own, "a query", 8ULL * joining->join->plan.dimensions);
#pragma omp for schedule(dynamic, 1)
    for (uint64_t leaf = 0; leaf < kcp_leaf_count(joining->queries); ++leaf) {
      if (status != KCP_OK || kcp_interrupted()) continue;
      status = walk(joining, leaf, &worker, &own);
      if (status != KCP_OK) continue;
      if (joining->sink == NULL)
        count_leaf(joining, leaf, &worker);
      else
        status = list_leaf(joining, leaf, &worker, &own);
    }
    if (status == KCP_OK && joining->sink != NULL)
      status = kcp_range_results_flush(&worker.results, 0, joining->sink, &own);
    if (status != KCP_OK) {
#pragma omp critical(kcp_range_failure)
      {
        result = status;
        *error = own;
      }
    }
    evaluations += worker.evaluations;
    rechecks += worker.rechecks;
    intersections += worker.intersections;
    kcp_range_results_free(&worker.results);
    free(worker.meetings);
    free(worker.query);
  }
  measurement->distance_evaluations += evaluations;
  work->rechecks += rechecks;
  work->intersections += intersections;
  ++work->batches;
  return result;
}

/* What nodes were counted as a whole, down to their points. */
static void settle(const struct joining *joining) {
  const struct kcp_range_leaves *queries = joining->queries;
  const uint64_t leaves = kcp_leaf_count(queries);
  for (uint64_t node = 1; node < 2 * leaves - 1; ++node)
    joining->pending[node] += joining->pending[(node - 1) / 2];
  for (uint64_t leaf = 0; leaf < leaves; ++leaf)
    for (uint64_t i = first_of(queries, leaf); i < first_of(queries, leaf + 1); ++i)
      joining->totals[i] += joining->pending[leaves - 1 + leaf];
}

static enum kcp_status join_queries(const struct kcp_range_join *join,
                                    const struct kcp_range_leaves *queries, uint64_t *counts,
                                    const struct kcp_range_sink *sink,
                                    struct kcp_measurement *measurement,
                                    struct kcp_range_work *work, struct kcp_error *error) {
  struct joining joining = {.join = join, .queries = queries, .sink = sink};
  const uint64_t nodes = 2 * kcp_leaf_count(queries) - 1;
  joining.symmetric = queries == &join->points && sink == NULL;
  joining.totals = calloc(queries->count, sizeof *joining.totals);
  joining.pending = calloc(nodes, sizeof *joining.pending);
  enum kcp_status status = KCP_OK;
  if (joining.totals == NULL || joining.pending == NULL)
    status = kcp_out_of_memory(error, "counts", 8 * (queries->count + nodes));
  if (status == KCP_OK) status = join_leaves(&joining, measurement, work, error);
  if (status == KCP_OK) {
    settle(&joining);
    for (uint64_t i = 0; i < queries->count; ++i) counts[queries->places[i]] += joining.totals[i];
  }
  free(joining.totals);
  free(joining.pending);
  return status;
}

static enum kcp_status join_all(struct kcp_range_join *join, const struct kcp_points *queries,
                                uint64_t *counts, const struct kcp_range_sink *sink,
                                struct kcp_measurement *measurement, struct kcp_range_work *work,
                                struct kcp_error *error) {
  const struct kcp_range_leaves *leaves = &join->points;
  double started = kcp_now();
  enum kcp_status status = KCP_OK;
  if (join->points.count == 0 || (queries != NULL && queries->count == 0)) return KCP_OK;
  if (queries != NULL) {
    leaves = &join->queries;
    status = kcp_range_leaves_build(queries, join->order, &join->queries, error);
    if (status == KCP_OK) status = fill(join, &join->queries, error);
    work->phase_s[KCP_RANGE_PHASE_FIRST_TEST] += kcp_now() - started;
    measurement->phase_s[KCP_PHASE_INDEX] += kcp_now() - started;
    if (status != KCP_OK) return status;
    started = kcp_now();
  }
  status = join_queries(join, leaves, counts, sink, measurement, work, error);
  work->phase_s[KCP_RANGE_PHASE_REFINE] += kcp_now() - started;
  measurement->phase_s[KCP_PHASE_KERNEL] += kcp_now() - started;
  return status;
}

const struct kcp_range_engine kcp_cpu_range_dual_tree = {.create = create,
                                                         .destroy = destroy,
                                                         .capacity = capacity,
                                                         .parameters = parameters,
                                                         .set_reference = set_reference,
                                                         .join = join_all};

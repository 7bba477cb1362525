/* Section IV-E of RT-HiSS on the CPU: a task stages points of its primitive in a buffer of its own,
 * dimension after dimension, and tests every query that meets the primitive against them. What the
 * sums in the order of the variances leave open is ranked in the order of the file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/interrupt.h"
#include "range_scan.h"
#include "rt_hiss.h"

#define STANDARD_STAGE_BYTES 32768 /* that stay in a first-level cache */

struct refinement {
  const struct kcp_range_join *join;
  const struct kcp_rt_batch *batch;
  struct kcp_rt_found *found;
  bool stages_points, stages_queries;
  uint64_t stage_points; /* of a primitive, staged at a time; a multiple of a tile */
};

struct worker {
  struct kcp_range_tiles stage;
  double *query;
  struct kcp_range_mask *masks; /* of the staged tiles */
  uint64_t rechecks;
};

uint64_t kcp_rt_intersection_bytes(const struct kcp_range_join *join, bool counts_alone) {
  const uint64_t entry = sizeof(uint32_t);
  if (counts_alone) return entry;
  if (join->plan.options.result == KCP_RESULT_PAIRS)
    return entry + sizeof(uint32_t) + join->largest_primitive * 2 * sizeof(uint32_t);
  return entry + (join->largest_primitive + 15) / 16 * sizeof(uint16_t);
}

enum kcp_status kcp_rt_found_create(const struct kcp_range_join *join,
                                    const struct kcp_rt_batch *batch, bool counts_alone,
                                    struct kcp_rt_found *found, struct kcp_error *error) {
  memset(found, 0, sizeof *found);
  found->form = join->plan.options.result;
  if (found->form == KCP_RESULT_COUNT) found->form = KCP_RESULT_MASK;
  found->mask_words = (join->largest_primitive + 15) / 16;
  found->pair_room = join->largest_primitive;
  found->totals = calloc(batch->count + 1, sizeof *found->totals);
  bool complete = found->totals != NULL;
  if (!counts_alone && found->form == KCP_RESULT_PAIRS) {
    found->pair_values =
        malloc((batch->intersections * found->pair_room + 1) * 2 * sizeof *found->pair_values);
    found->pair_counts = calloc(batch->intersections + 1, sizeof *found->pair_counts);
    complete &= found->pair_values != NULL && found->pair_counts != NULL;
  } else if (!counts_alone) {
    found->masks = calloc(batch->intersections * found->mask_words + 1, sizeof *found->masks);
    complete &= found->masks != NULL;
  }
  if (complete) return KCP_OK;
  kcp_rt_found_free(found);
  return kcp_out_of_memory(error, "results",
                           batch->intersections * kcp_rt_intersection_bytes(join, counts_alone));
}

void kcp_rt_found_free(struct kcp_rt_found *found) {
  free(found->masks);
  free(found->pair_values);
  free(found->pair_counts);
  free(found->totals);
  memset(found, 0, sizeof *found);
}

static enum kcp_status worker_create(const struct refinement *refinement, struct worker *worker,
                                     struct kcp_error *error) {
  const uint32_t dimensions = refinement->join->plan.dimensions;
  memset(worker, 0, sizeof *worker);
  enum kcp_status status =
      kcp_range_tiles_create(refinement->stage_points, dimensions, &worker->stage, error);
  worker->query = malloc(dimensions * sizeof *worker->query);
  worker->masks = malloc((refinement->stage_points / KCP_RANGE_TILE + 1) * sizeof *worker->masks);
  if (status == KCP_OK && (worker->query == NULL || worker->masks == NULL))
    status = kcp_out_of_memory(error, "a stage", dimensions * sizeof *worker->query);
  return status;
}

static void worker_free(struct worker *worker) {
  kcp_range_tiles_free(&worker->stage);
  free(worker->query);
  free(worker->masks);
}

/* The rank of point `point` of D' and a query, in the order of the file. */
static bool is_within(const struct refinement *refinement, uint64_t point, uint64_t query) {
  const struct kcp_rearranged *points = &refinement->join->points;
  const struct kcp_rearranged *queries = refinement->batch->queries;
  return kcp_range_rank(refinement->join->plan.dimensions, points->given->coordinates,
                        points->given->stride, points->places[point], queries->given->coordinates,
                        queries->given->stride,
                        queries->places[query]) <= refinement->join->limit.rank;
}

/* The points `first` + bits of the mask are neighbours of an entry. */
static void note(const struct refinement *refinement, uint64_t entry, uint64_t primitive_first,
                 uint64_t first, uint32_t mask, uint64_t *count) {
  struct kcp_rt_found *found = refinement->found;
  *count += (uint64_t)__builtin_popcount(mask);
  if (found->masks != NULL) {
    found->masks[entry * found->mask_words + (first - primitive_first) / 16] |= (uint16_t)mask;
    return;
  }
  if (found->pair_values == NULL) return;
  for (; mask != 0; mask &= mask - 1) {
    uint32_t *pair =
        found->pair_values + 2 * (entry * found->pair_room + found->pair_counts[entry]++);
    pair[0] = refinement->batch->entries[entry];
    pair[1] = refinement->join->points.places[first + (uint32_t)__builtin_ctz(mask)];
  }
}

/* Tests an entry against points first .. last - 1, which are staged. */
static uint64_t test_staged(const struct refinement *refinement, struct worker *worker,
                            uint64_t entry, const double *query, uint64_t primitive_first,
                            uint64_t first, uint64_t last) {
  const uint64_t tiles = (last - first + KCP_RANGE_TILE - 1) / KCP_RANGE_TILE;
  const uint32_t query_place = refinement->batch->entries[entry];
  uint64_t open, count = 0;
  const uint64_t within =
      kcp_range_tiles_test(worker->stage.values, tiles, worker->stage.dimensions, query,
                           &refinement->join->limit, worker->masks, &open);
  if (within == 0 && open == 0) return 0;
  for (uint64_t tile = 0; tile < tiles; ++tile) {
    uint32_t mask = worker->masks[tile].within;
    for (uint32_t left = worker->masks[tile].open; left != 0; left &= left - 1) {
      const uint32_t lane = (uint32_t)__builtin_ctz(left);
      mask |= (uint32_t)is_within(refinement, first + tile * KCP_RANGE_TILE + lane, query_place)
              << lane;
      ++worker->rechecks;
    }
    if (mask != 0)
      note(refinement, entry, primitive_first, first + tile * KCP_RANGE_TILE, mask, &count);
  }
  return count;
}

/* The same from the rows of D', point after point. */
static uint64_t test_rows(const struct refinement *refinement, struct worker *worker,
                          uint64_t entry, const double *query, uint64_t primitive_first,
                          uint64_t first, uint64_t last) {
  const struct kcp_range_join *join = refinement->join;
  const uint32_t dimensions = join->plan.dimensions;
  uint64_t count = 0;
  uint32_t mask = 0;
  for (uint64_t i = first; i < last; ++i) {
    const uint32_t lane = (uint32_t)((i - primitive_first) % KCP_RANGE_TILE);
    const double sum = kcp_range_row_sum(dimensions, join->points.rows + i * dimensions, query,
                                         join->limit.beyond);
    bool within = sum <= join->limit.within;
    if (!within && sum <= join->limit.beyond) {
      within = is_within(refinement, i, refinement->batch->entries[entry]);
      ++worker->rechecks;
    }
    mask |= (uint32_t)within << lane;
    if (mask != 0 && (lane == KCP_RANGE_TILE - 1 || i + 1 == last)) {
      note(refinement, entry, primitive_first, i - lane, mask, &count);
      mask = 0;
    }
  }
  return count;
}

/* Points first .. last - 1 of D' into the worker's buffer, dimension after dimension. */
static void stage_points(const struct kcp_range_join *join, struct worker *worker, uint64_t first,
                         uint64_t last) {
  const uint32_t dimensions = join->plan.dimensions;
  const uint64_t padded = (last - first + KCP_RANGE_TILE - 1) / KCP_RANGE_TILE * KCP_RANGE_TILE;
  for (uint64_t i = 0; i < padded; ++i) {
    double *lane = worker->stage.values + i / KCP_RANGE_TILE * KCP_RANGE_TILE * dimensions +
                   i % KCP_RANGE_TILE;
    const double *row = join->points.rows + (first + i) * dimensions;
    for (uint32_t j = 0; j < dimensions; ++j)
      lane[j * KCP_RANGE_TILE] = first + i < last ? row[j] : INFINITY;
  }
}

static void refine_task(const struct refinement *refinement, const struct kcp_range_task *task,
                        struct worker *worker) {
  const struct kcp_range_join *join = refinement->join;
  const struct kcp_rearranged *queries = refinement->batch->queries;
  const uint32_t dimensions = join->plan.dimensions;
  const uint64_t begin = join->firsts[task->primitive], end = join->firsts[task->primitive + 1];
  for (uint64_t first = begin; first < end; first += refinement->stage_points) {
    const uint64_t last =
        end - first > refinement->stage_points ? first + refinement->stage_points : end;
    if (refinement->stages_points) stage_points(join, worker, first, last);
    for (uint64_t entry = task->first; entry < task->last; ++entry) {
      const uint32_t place = refinement->batch->entries[entry];
      const double *query = queries->rows + (uint64_t)place * dimensions;
      if (refinement->stages_queries)
        query = memcpy(worker->query, query, dimensions * sizeof *query);
      const uint64_t count = refinement->stages_points
                                 ? test_staged(refinement, worker, entry, query, begin, first, last)
                                 : test_rows(refinement, worker, entry, query, begin, first, last);
      if (count > 0)
        __atomic_fetch_add(&refinement->found->totals[place - refinement->batch->first], count,
                           __ATOMIC_RELAXED);
    }
  }
}

static uint64_t staged_points(const struct kcp_range_join *join) {
  uint64_t bytes = join->plan.options.shared_memory_bytes;
  if (bytes == 0) bytes = STANDARD_STAGE_BYTES;
  const uint64_t tiles =
      bytes / (KCP_RANGE_TILE * sizeof(double) * (uint64_t)join->plan.dimensions);
  const uint64_t needed = (join->largest_primitive + KCP_RANGE_TILE - 1) / KCP_RANGE_TILE;
  const uint64_t used = tiles < needed ? tiles : needed;
  return (used > 0 ? used : 1) * KCP_RANGE_TILE;
}

enum kcp_status kcp_rt_hiss_refine(const struct kcp_range_join *join,
                                   const struct kcp_rt_batch *batch,
                                   const struct kcp_range_tasks *tasks, struct kcp_rt_found *found,
                                   uint64_t *rechecks, struct kcp_error *error) {
  const enum kcp_range_refine refine = join->plan.options.refine;
  const struct refinement refinement = {
      .join = join,
      .batch = batch,
      .found = found,
      .stages_points = refine == KCP_REFINE_SHARED_BOTH || refine == KCP_REFINE_SHARED_PRIMITIVE,
      .stages_queries = refine == KCP_REFINE_SHARED_BOTH || refine == KCP_REFINE_SHARED_QUERY,
      .stage_points = staged_points(join)};
  enum kcp_status result = KCP_OK;
  uint64_t recheck_sum = 0;
#pragma omp parallel reduction(+ : recheck_sum)
  {
    struct worker worker;
    struct kcp_error own;
    const enum kcp_status status = worker_create(&refinement, &worker, &own);
#pragma omp for schedule(dynamic, 1)
    for (uint64_t i = 0; i < tasks->count; ++i)
      if (status == KCP_OK && !kcp_interrupted())
        refine_task(&refinement, &tasks->tasks[i], &worker);
    if (status != KCP_OK) {
#pragma omp critical(kcp_range_failure)
      {
        result = status;
        *error = own;
      }
    }
    recheck_sum += worker.rechecks;
    worker_free(&worker);
  }
  *rechecks += recheck_sum;
  return result;
}

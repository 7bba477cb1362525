/* The range join by a grid on the CPU, as GDS-Join does it: points sorted by cell, in up to six of
 * the dimensions with the highest variance; only cells that hold points exist.
 *
 * Queries are sorted by cell too. Those of one cell share the runs of points to test: for every
 * combination of neighbouring numbers along all but the last dimension, the three cells along the
 * last lie next to each other. Numbers that no point has along a dimension are left out. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/interrupt.h"
#include "kcp/range_cells.h"
#include "kcp/range_join.h"
#include "kcp/range_order.h"
#include "radix_sort.h"
#include "range_results.h"
#include "range_scan.h"
#include "range_tiles.h"

#define MUCH_TO_FLUSH 65536
#define MOST_RUNS 243    /* 3^5 */
#define GROUP_QUERIES 64 /* that a thread takes at a time */

/* Points or queries sorted by cell. */
struct sorted_points {
  uint64_t count;
  uint64_t cell_count;
  uint32_t *places; /* of the sorted points among the given */
  uint64_t *keys;   /* of each cell */
  uint32_t *firsts; /* of each cell, and one behind */
  uint64_t capacity;
};

struct kcp_range_join {
  struct kcp_range_plan plan;
  struct kcp_range_limit limit;
  const struct kcp_points *reference;
  uint32_t *order;   /* of dimensions */
  double *variances; /* of dimensions; then scratch for the corners */
  struct kcp_range_cells cells;
  uint64_t *present[KCP_MAX_GRID_DIMENSIONS]; /* numbers along a dimension that points have */
  uint64_t present_count[KCP_MAX_GRID_DIMENSIONS];
  struct sorted_points points;
  struct sorted_points queries;
  struct kcp_radix_sorter sorter;
  struct kcp_range_tiles tiles;
};

/* A run of sorted points. */
struct run {
  uint64_t first, last;
};

struct worker {
  double *query; /* in the order of dimensions */
  struct kcp_range_results results;
  struct kcp_range_scan_work work;
};

static uint32_t grid_dimensions(const struct kcp_range_plan *plan) {
  uint64_t wanted = plan->options.grid_dimensions;
  if (wanted == 0 || wanted > KCP_MAX_GRID_DIMENSIONS) wanted = KCP_MAX_GRID_DIMENSIONS;
  return wanted < plan->dimensions ? (uint32_t)wanted : plan->dimensions;
}

static void sorted_points_free(struct sorted_points *sorted) {
  free(sorted->places);
  free(sorted->keys);
  free(sorted->firsts);
  memset(sorted, 0, sizeof *sorted);
}

static void destroy(struct kcp_range_join *join) {
  if (join == NULL) return;
  sorted_points_free(&join->points);
  sorted_points_free(&join->queries);
  kcp_radix_sorter_free(&join->sorter);
  kcp_range_tiles_free(&join->tiles);
  for (int i = 0; i < KCP_MAX_GRID_DIMENSIONS; ++i) free(join->present[i]);
  free(join->order);
  free(join->variances);
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
  join->limit = kcp_range_limit_reordered(plan->eps, plan->dimensions);
  join->order = malloc(plan->dimensions * sizeof *join->order);
  join->variances = malloc(2 * sizeof *join->variances * plan->dimensions);
  if (join->order == NULL || join->variances == NULL) {
    destroy(join);
    return kcp_out_of_memory(error, "dimensions", 20ULL * plan->dimensions);
  }
  *out = join;
  return KCP_OK;
}

/* A point takes its coordinates, their tile, and what sorting takes. */
static struct kcp_range_capacity capacity(const struct kcp_range_join *join) {
  const uint64_t coordinates = 8 + 8 * (uint64_t)join->plan.dimensions, sorting = 64;
  struct kcp_range_capacity room = {
      join->plan.memory_bytes / 4 * 3 / (2 * coordinates + sorting + 8 * KCP_MAX_GRID_DIMENSIONS),
      join->plan.memory_bytes / 4 / (coordinates + sorting)};
  if (room.reference_records < KCP_RANGE_TILE) room.reference_records = KCP_RANGE_TILE;
  if (room.query_records < GROUP_QUERIES) room.query_records = GROUP_QUERIES;
  if (room.reference_records > UINT32_MAX) room.reference_records = UINT32_MAX;
  if (room.query_records > UINT32_MAX) room.query_records = UINT32_MAX;
  return room;
}

static size_t parameters(const struct kcp_range_join *join, struct kcp_parameter *list) {
  list[0] = (struct kcp_parameter){.name = "grid-dims", .is_number = true};
  snprintf(list[0].value, sizeof list[0].value, "%" PRIu32, grid_dimensions(&join->plan));
  return 1;
}

/* ---- points by cell ---- */

static enum kcp_status reserve(struct kcp_range_join *join, uint64_t count,
                               struct sorted_points *sorted, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  if (join->sorter.capacity < count) {
    kcp_radix_sorter_free(&join->sorter);
    status = kcp_radix_sorter_create(count, &join->sorter, error);
    if (status != KCP_OK) return status;
  }
  if (sorted->capacity >= count && sorted->places != NULL) return KCP_OK;
  sorted_points_free(sorted);
  sorted->places = malloc((count + 1) * sizeof *sorted->places);
  sorted->keys = malloc((count + 1) * sizeof *sorted->keys);
  sorted->firsts = malloc((count + 1) * sizeof *sorted->firsts);
  if (sorted->places == NULL || sorted->keys == NULL || sorted->firsts == NULL)
    return kcp_out_of_memory(error, "cells", (count + 1) * 16);
  sorted->capacity = count;
  return KCP_OK;
}

static enum kcp_status sort_by_cell(struct kcp_range_join *join, const struct kcp_points *points,
                                    struct sorted_points *sorted, struct kcp_error *error) {
  const struct kcp_range_cells *cells = &join->cells;
  enum kcp_status status = reserve(join, points->count, sorted, error);
  if (status != KCP_OK) return status;
  uint64_t *keys = join->sorter.keys[0];
  const uint64_t *sorted_keys;
#pragma omp parallel for schedule(static)
  for (uint64_t i = 0; i < points->count; ++i) {
    uint64_t numbers[KCP_MAX_GRID_DIMENSIONS];
    for (uint32_t j = 0; j < cells->count; ++j)
      numbers[j] =
          kcp_range_cell_number(cells, j, kcp_points_column(points, cells->dimension[j])[i]);
    keys[i] = kcp_range_cell_key(cells, numbers);
  }
  const uint32_t *places = kcp_radix_sort_keys(&join->sorter, points->count, &sorted_keys);
  sorted->count = points->count;
  sorted->cell_count = 0;
  memcpy(sorted->places, places, points->count * sizeof *places);
  for (uint64_t i = 0; i < points->count; ++i) {
    if (i > 0 && sorted_keys[i] == sorted_keys[i - 1]) continue;
    sorted->keys[sorted->cell_count] = sorted_keys[i];
    sorted->firsts[sorted->cell_count++] = (uint32_t)i;
  }
  sorted->firsts[sorted->cell_count] = (uint32_t)points->count;
  return KCP_OK;
}

static int compare_numbers(const void *a, const void *b) {
  const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
  return left < right ? -1 : left > right;
}

/* The numbers of a cell along each dimension. */
static void numbers_of_key(const struct kcp_range_cells *cells, uint64_t key, uint64_t *numbers) {
  for (uint32_t j = cells->count; j-- > 0;) {
    numbers[j] = key % cells->numbers[j];
    key /= cells->numbers[j];
  }
}

/* The numbers along each dimension but the last that some cell has, in order. */
static enum kcp_status list_present(struct kcp_range_join *join, struct kcp_error *error) {
  const struct sorted_points *points = &join->points;
  for (uint32_t j = 0; j + 1 < join->cells.count; ++j) {
    free(join->present[j]);
    join->present[j] = malloc((points->cell_count + 1) * sizeof *join->present[j]);
    if (join->present[j] == NULL)
      return kcp_out_of_memory(error, "cells", (points->cell_count + 1) * 8);
    for (uint64_t cell = 0; cell < points->cell_count; ++cell) {
      uint64_t numbers[KCP_MAX_GRID_DIMENSIONS];
      numbers_of_key(&join->cells, points->keys[cell], numbers);
      join->present[j][cell] = numbers[j];
    }
    if (j > 0) /* those of the first dimension are in order */
      qsort(join->present[j], points->cell_count, sizeof *join->present[j], compare_numbers);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < points->cell_count; ++i)
      if (kept == 0 || join->present[j][kept - 1] != join->present[j][i])
        join->present[j][kept++] = join->present[j][i];
    join->present_count[j] = kept;
  }
  return KCP_OK;
}

static void find_corners(const struct kcp_points *points, double *low, double *high) {
#pragma omp parallel for schedule(dynamic, 1)
  for (uint32_t j = 0; j < points->dimensions; ++j) {
    const double *column = kcp_points_column(points, j);
    low[j] = high[j] = points->count > 0 ? column[0] : 0;
    for (uint64_t i = 1; i < points->count; ++i) {
      low[j] = column[i] < low[j] ? column[i] : low[j];
      high[j] = column[i] > high[j] ? column[i] : high[j];
    }
  }
}

static enum kcp_status index_points(struct kcp_range_join *join, const struct kcp_points *reference,
                                    struct kcp_range_work *work, struct kcp_error *error) {
  const uint32_t dimensions = join->plan.dimensions;
  double started = kcp_now();
  kcp_range_variances(reference, join->variances);
  kcp_range_order(join->variances, dimensions, join->plan.options.reorder, join->order);
  work->phase_s[KCP_RANGE_PHASE_REORDER] += kcp_now() - started;
  started = kcp_now();
  find_corners(reference, join->variances, join->variances + dimensions);
  join->cells = kcp_range_cells_make(grid_dimensions(&join->plan), join->order, join->variances,
                                     join->variances + dimensions, join->plan.eps);
  enum kcp_status status = sort_by_cell(join, reference, &join->points, error);
  work->phase_s[KCP_RANGE_PHASE_KD_TREE] += kcp_now() - started;
  started = kcp_now();
  if (status == KCP_OK) status = list_present(join, error);
  work->phase_s[KCP_RANGE_PHASE_INDEX] += kcp_now() - started;
  return status;
}

static enum kcp_status set_reference(struct kcp_range_join *join,
                                     const struct kcp_points *reference,
                                     struct kcp_measurement *measurement,
                                     struct kcp_range_work *work, struct kcp_error *error) {
  const double started = kcp_now();
  join->reference = reference;
  enum kcp_status status = index_points(join, reference, work, error);
  const double indexed = kcp_now();
  if (status == KCP_OK && join->tiles.capacity < reference->count) {
    kcp_range_tiles_free(&join->tiles);
    status = kcp_range_tiles_create(reference->count, reference->dimensions, &join->tiles, error);
  }
  if (status != KCP_OK) return status;
  kcp_range_tiles_fill(&join->tiles, reference, join->points.places, join->order);
  work->phase_s[KCP_RANGE_PHASE_REARRANGE] += kcp_now() - indexed;
  work->primitives += join->points.cell_count;
  measurement->phase_s[KCP_PHASE_INDEX] += kcp_now() - started;
  return KCP_OK;
}

/* ---- the join ---- */

/* The first of `count` ascending numbers that is not below `number`. */
static uint64_t lower_bound(const uint64_t *numbers, uint64_t count, uint64_t number) {
  uint64_t low = 0;
  while (count > 0) {
    const uint64_t half = count / 2;
    if (numbers[low + half] < number) {
      low += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return low;
}

/* Those of number - 1, number and number + 1 that some cell has along dimension j. */
static uint32_t neighbours_along(const struct kcp_range_join *join, uint32_t j, uint64_t number,
                                 uint64_t *found) {
  const uint64_t *present = join->present[j];
  uint64_t at = lower_bound(present, join->present_count[j], number - 1);
  uint32_t count = 0;
  while (at < join->present_count[j] && present[at] <= number + 1) found[count++] = present[at++];
  return count;
}

/* The runs of points in the cells around the one of the key; returns how many. */
static uint32_t find_runs(const struct kcp_range_join *join, uint64_t key, struct run *runs) {
  const struct kcp_range_cells *cells = &join->cells;
  const struct sorted_points *points = &join->points;
  const uint32_t last = cells->count - 1;
  uint64_t numbers[KCP_MAX_GRID_DIMENSIONS] = {0}, choices[KCP_MAX_GRID_DIMENSIONS][3];
  uint32_t choice_count[KCP_MAX_GRID_DIMENSIONS], chosen[KCP_MAX_GRID_DIMENSIONS] = {0};
  uint32_t count = 0;
  numbers_of_key(cells, key, numbers);
  const uint64_t number = numbers[last];
  for (uint32_t j = 0; j < last; ++j) {
    choice_count[j] = neighbours_along(join, j, numbers[j], choices[j]);
    if (choice_count[j] == 0) return 0;
  }
  for (;;) {
    for (uint32_t j = 0; j < last; ++j) numbers[j] = choices[j][chosen[j]];
    numbers[last] = number - 1;
    const uint64_t first_key = kcp_range_cell_key(cells, numbers);
    uint64_t cell = lower_bound(points->keys, points->cell_count, first_key);
    const uint64_t first_cell = cell;
    while (cell < points->cell_count && points->keys[cell] <= first_key + 2) ++cell;
    if (cell > first_cell)
      runs[count++] = (struct run){points->firsts[first_cell], points->firsts[cell]};
    uint32_t j = last;
    while (j > 0 && ++chosen[j - 1] == choice_count[j - 1]) chosen[--j] = 0;
    if (j == 0) return count;
  }
}

static enum kcp_status join_query(const struct kcp_range_join *join,
                                  const struct kcp_range_scan *scan,
                                  const struct kcp_points *queries, uint32_t place,
                                  const struct run *runs, uint32_t run_count, struct worker *worker,
                                  uint64_t *count, bool lists, struct kcp_error *error) {
  const struct kcp_range_scan_query query = {worker->query, queries, place};
  enum kcp_status status = KCP_OK;
  for (uint32_t j = 0; j < join->plan.dimensions; ++j)
    worker->query[j] = kcp_points_column(queries, join->order[j])[place];
  if (lists) status = kcp_range_results_open(&worker->results, place, error);
  for (uint32_t r = 0; r < run_count && status == KCP_OK; ++r)
    status = kcp_range_scan_points(scan, &query, runs[r].first, runs[r].last, count,
                                   lists ? &worker->results : NULL, &worker->work, error);
  return lists && status == KCP_OK ? kcp_range_results_sort(&worker->results, error) : status;
}

/* The cell of sorted point i. */
static uint64_t cell_of(const struct sorted_points *sorted, uint64_t i) {
  uint64_t low = 0, high = sorted->cell_count;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    if (sorted->firsts[middle] <= i)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* The sorted queries first .. first + GROUP_QUERIES - 1, of one cell after the other. */
static enum kcp_status join_group(const struct kcp_range_join *join,
                                  const struct kcp_range_scan *scan,
                                  const struct kcp_points *queries,
                                  const struct sorted_points *sorted, uint64_t first,
                                  struct worker *worker, uint64_t *counts,
                                  const struct kcp_range_sink *sink, struct kcp_error *error) {
  struct run runs[MOST_RUNS];
  uint64_t last = first + GROUP_QUERIES, cell = cell_of(sorted, first);
  uint32_t run_count = find_runs(join, sorted->keys[cell], runs);
  enum kcp_status status = KCP_OK;
  if (last > sorted->count) last = sorted->count;
  for (uint64_t i = first; i < last && status == KCP_OK; ++i) {
    const uint32_t place = sorted->places[i];
    if (i == sorted->firsts[cell + 1]) run_count = find_runs(join, sorted->keys[++cell], runs);
    status = join_query(join, scan, queries, place, runs, run_count, worker, &counts[place],
                        sink != NULL, error);
  }
  if (sink != NULL && status == KCP_OK)
    status = kcp_range_results_flush(&worker->results, MUCH_TO_FLUSH, sink, error);
  return status;
}

static enum kcp_status join_sorted(struct kcp_range_join *join, const struct kcp_points *queries,
                                   const struct sorted_points *sorted, uint64_t *counts,
                                   const struct kcp_range_sink *sink,
                                   struct kcp_measurement *measurement, struct kcp_range_work *work,
                                   struct kcp_error *error) {
  const struct kcp_range_scan scan = {&join->tiles, join->points.places, join->reference,
                                      join->limit};
  enum kcp_status result = KCP_OK;
  uint64_t evaluations = 0, rechecks = 0;
#pragma omp parallel reduction(+ : evaluations, rechecks)
  {
    struct kcp_error own;
    struct worker worker = {.query = malloc(join->plan.dimensions * sizeof(double))};
    enum kcp_status status = KCP_OK;
    if (worker.query == NULL)
      status = kcp_out_of_memory(&own, "a query", join->plan.dimensions * sizeof(double));
#pragma omp for schedule(dynamic, 1)
    for (uint64_t first = 0; first < sorted->count; first += GROUP_QUERIES)
      if (status == KCP_OK && !kcp_interrupted())
        status = join_group(join, &scan, queries, sorted, first, &worker, counts, sink, &own);
    if (status == KCP_OK && sink != NULL)
      status = kcp_range_results_flush(&worker.results, 0, sink, &own);
    if (status != KCP_OK) {
#pragma omp critical(kcp_range_failure)
      {
        result = status;
        *error = own;
      }
    }
    evaluations += worker.work.evaluations;
    rechecks += worker.work.rechecks;
    kcp_range_results_free(&worker.results);
    free(worker.query);
  }
  measurement->distance_evaluations += evaluations;
  work->rechecks += rechecks;
  return result;
}

static enum kcp_status join_all(struct kcp_range_join *join, const struct kcp_points *queries,
                                uint64_t *counts, const struct kcp_range_sink *sink,
                                struct kcp_measurement *measurement, struct kcp_range_work *work,
                                struct kcp_error *error) {
  const struct sorted_points *sorted = &join->points;
  double started = kcp_now();
  enum kcp_status status = KCP_OK;
  if (queries != NULL) {
    sorted = &join->queries;
    status = sort_by_cell(join, queries, &join->queries, error);
    work->phase_s[KCP_RANGE_PHASE_FIRST_TEST] += kcp_now() - started;
    measurement->phase_s[KCP_PHASE_INDEX] += kcp_now() - started;
    if (status != KCP_OK) return status;
  } else {
    queries = join->reference;
  }
  started = kcp_now();
  status = join_sorted(join, queries, sorted, counts, sink, measurement, work, error);
  ++work->batches;
  work->phase_s[KCP_RANGE_PHASE_REFINE] += kcp_now() - started;
  measurement->phase_s[KCP_PHASE_KERNEL] += kcp_now() - started;
  return status;
}

const struct kcp_range_engine kcp_cpu_range_grid = {.create = create,
                                                    .destroy = destroy,
                                                    .capacity = capacity,
                                                    .parameters = parameters,
                                                    .set_reference = set_reference,
                                                    .join = join_all};

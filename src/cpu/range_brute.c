/* The range join by all pairs on the CPU, in the order of the file: nothing is left open.
 *
 * A thread takes 32 queries at a time through panels of tiles that stay in its cache. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/interrupt.h"
#include "kcp/range_join.h"
#include "range_results.h"
#include "range_tiles.h"

#define GROUP_QUERIES 32
#define PANEL_BYTES 32768
#define MUCH_TO_FLUSH 65536

struct kcp_range_join {
  struct kcp_range_plan plan;
  struct kcp_range_limit limit;
  const struct kcp_points *reference;
  struct kcp_range_tiles tiles;
};

/* One thread's scratch. */
struct worker {
  double *queries;              /* those of a group, one after the other */
  struct kcp_range_mask *masks; /* of each query of a group, one a tile; of one panel when only
                                   counts are wanted */
  struct kcp_range_results results;
};

static enum kcp_status create(const struct kcp_range_plan *plan,
                              const struct kcp_device_info *device, struct kcp_range_join **out,
                              struct kcp_error *error) {
  (void)device;
  *out = calloc(1, sizeof **out);
  if (*out == NULL) return kcp_out_of_memory(error, "a join", sizeof **out);
  (*out)->plan = *plan;
  (*out)->limit = kcp_range_limit_exact(plan->eps);
  return KCP_OK;
}

static void destroy(struct kcp_range_join *join) {
  if (join == NULL) return;
  kcp_range_tiles_free(&join->tiles);
  free(join);
}

/* A quarter of the memory for queries, the rest for points, their tiles and the masks. */
static struct kcp_range_capacity capacity(const struct kcp_range_join *join) {
  const uint64_t point = 8 + 8 * (uint64_t)join->plan.dimensions;
  const uint64_t masks = (uint64_t)omp_get_max_threads() * GROUP_QUERIES *
                         sizeof(struct kcp_range_mask) / KCP_RANGE_TILE;
  struct kcp_range_capacity room = {join->plan.memory_bytes / 4 * 3 / (2 * point + masks),
                                    join->plan.memory_bytes / 4 / point};
  if (room.reference_records < KCP_RANGE_TILE) room.reference_records = KCP_RANGE_TILE;
  if (room.query_records < GROUP_QUERIES) room.query_records = GROUP_QUERIES;
  if (room.reference_records > UINT32_MAX) room.reference_records = UINT32_MAX;
  if (room.query_records > UINT32_MAX) room.query_records = UINT32_MAX;
  return room;
}

static size_t parameters(const struct kcp_range_join *join, struct kcp_parameter *list) {
  (void)join;
  (void)list;
  return 0;
}

static enum kcp_status set_reference(struct kcp_range_join *join,
                                     const struct kcp_points *reference,
                                     struct kcp_measurement *measurement,
                                     struct kcp_range_work *work, struct kcp_error *error) {
  double started = kcp_now();
  join->reference = reference;
  if (join->tiles.capacity < reference->count) {
    kcp_range_tiles_free(&join->tiles);
    enum kcp_status status =
        kcp_range_tiles_create(reference->count, reference->dimensions, &join->tiles, error);
    if (status != KCP_OK) return status;
  }
  kcp_range_tiles_fill(&join->tiles, reference, NULL, NULL);
  work->phase_s[KCP_RANGE_PHASE_REARRANGE] += kcp_now() - started;
  measurement->phase_s[KCP_PHASE_INDEX] += kcp_now() - started;
  return KCP_OK;
}

static uint64_t panel_tiles(uint32_t dimensions) {
  const uint64_t tiles = PANEL_BYTES / (KCP_RANGE_TILE * sizeof(double) * dimensions);
  return tiles > 0 ? tiles : 1;
}

static enum kcp_status worker_create(const struct kcp_range_join *join, bool keeps_masks,
                                     struct worker *worker, struct kcp_error *error) {
  const uint64_t tiles = kcp_range_tile_count(&join->tiles);
  const uint64_t masks = keeps_masks ? GROUP_QUERIES * tiles : panel_tiles(join->plan.dimensions);
  memset(worker, 0, sizeof *worker);
  worker->queries = malloc(GROUP_QUERIES * sizeof(double) * join->plan.dimensions);
  worker->masks = malloc((masks + 1) * sizeof *worker->masks);
  if (worker->queries != NULL && worker->masks != NULL) return KCP_OK;
  return kcp_out_of_memory(error, "masks", masks * sizeof *worker->masks);
}

static void worker_free(struct worker *worker) {
  free(worker->queries);
  free(worker->masks);
  kcp_range_results_free(&worker->results);
}

/* Adds the neighbours of each query of the group; keeps its masks. */
static void count_group(const struct kcp_range_join *join, uint32_t queries, bool keeps_masks,
                        struct worker *worker, uint64_t *counts) {
  const uint64_t tiles = kcp_range_tile_count(&join->tiles);
  const uint32_t dimensions = join->plan.dimensions;
  const uint64_t panel = panel_tiles(dimensions);
  for (uint64_t tile = 0; tile < tiles; tile += panel)
    for (uint32_t q = 0; q < queries; ++q) {
      const uint64_t here = tiles - tile < panel ? tiles - tile : panel;
      uint64_t open;
      counts[q] += kcp_range_tiles_test(
          kcp_range_tile(&join->tiles, tile), here, dimensions, worker->queries + q * dimensions,
          &join->limit, worker->masks + (keeps_masks ? q * tiles + tile : 0), &open);
    }
}

/* The neighbours of one query of the group from its masks. */
static enum kcp_status list_neighbours(const struct kcp_range_join *join, uint32_t query,
                                       const struct kcp_range_mask *masks, uint64_t count,
                                       struct kcp_range_results *results, struct kcp_error *error) {
  enum kcp_status status = kcp_range_results_open(results, query, error);
  if (status != KCP_OK) return status;
  uint32_t *room = kcp_range_results_room(results, count, error);
  if (room == NULL) return KCP_FAILED;
  for (uint64_t tile = 0; tile < kcp_range_tile_count(&join->tiles); ++tile)
    for (uint32_t mask = masks[tile].within; mask != 0; mask &= mask - 1)
      *room++ = (uint32_t)(tile * KCP_RANGE_TILE + (uint32_t)__builtin_ctz(mask));
  kcp_range_results_added(results, count);
  return KCP_OK;
}

static enum kcp_status join_group(const struct kcp_range_join *join,
                                  const struct kcp_points *queries, uint64_t first,
                                  struct worker *worker, uint64_t *counts,
                                  const struct kcp_range_sink *sink, struct kcp_error *error) {
  const uint64_t left = queries->count - first;
  const uint32_t group = left < GROUP_QUERIES ? (uint32_t)left : GROUP_QUERIES;
  uint64_t found[GROUP_QUERIES] = {0};
  for (uint32_t q = 0; q < group; ++q)
    for (uint32_t j = 0; j < join->plan.dimensions; ++j)
      worker->queries[q * join->plan.dimensions + j] = kcp_points_column(queries, j)[first + q];
  count_group(join, group, sink != NULL, worker, found);
  enum kcp_status status = KCP_OK;
  const uint64_t tiles = kcp_range_tile_count(&join->tiles);
  for (uint32_t q = 0; q < group && status == KCP_OK; ++q) {
    counts[first + q] += found[q];
    if (sink != NULL)
      status = list_neighbours(join, (uint32_t)(first + q), worker->masks + q * tiles, found[q],
                               &worker->results, error);
  }
  if (sink != NULL && status == KCP_OK)
    status = kcp_range_results_flush(&worker->results, MUCH_TO_FLUSH, sink, error);
  return status;
}

static enum kcp_status join_all(struct kcp_range_join *join, const struct kcp_points *queries,
                                uint64_t *counts, const struct kcp_range_sink *sink,
                                struct kcp_measurement *measurement, struct kcp_range_work *work,
                                struct kcp_error *error) {
  double started = kcp_now();
  enum kcp_status result = KCP_OK;
  if (queries == NULL) queries = join->reference;
#pragma omp parallel
  {
    struct worker worker;
    struct kcp_error own;
    enum kcp_status status = worker_create(join, sink != NULL, &worker, &own);
#pragma omp for schedule(dynamic, 1)
    for (uint64_t first = 0; first < queries->count; first += GROUP_QUERIES)
      if (status == KCP_OK && !kcp_interrupted())
        status = join_group(join, queries, first, &worker, counts, sink, &own);
    if (status == KCP_OK && sink != NULL)
      status = kcp_range_results_flush(&worker.results, 0, sink, &own);
    if (status != KCP_OK) {
#pragma omp critical(kcp_range_failure)
      {
        result = status;
        *error = own;
      }
    }
    worker_free(&worker);
  }
  ++work->batches;
  work->phase_s[KCP_RANGE_PHASE_REFINE] += kcp_now() - started;
  measurement->phase_s[KCP_PHASE_KERNEL] += kcp_now() - started;
  measurement->distance_evaluations += queries->count * join->reference->count;
  return result;
}

const struct kcp_range_engine kcp_cpu_range_brute = {.create = create,
                                                     .destroy = destroy,
                                                     .capacity = capacity,
                                                     .parameters = parameters,
                                                     .set_reference = set_reference,
                                                     .join = join_all};

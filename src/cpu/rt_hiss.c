/* RT-HiSS on the CPU: the paper's pipeline with OpenMP, a part of it a function with its own time.
 */
#include "rt_hiss.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/interrupt.h"
#include "range_tiles.h"

#define LEAST_QUERIES 64

static void destroy(struct kcp_range_join *join) {
  if (join == NULL) return;
  kcp_built_index_free(&join->index);
  kcp_radix_sorter_free(&join->sorter);
  free(join->points.places);
  free(join->points.rows);
  free(join->queries.places);
  free(join->queries.rows);
  free(join->firsts);
  free(join->bounds);
  free(join->order);
  free(join->variances);
  free(join);
}

static enum kcp_status create(const struct kcp_range_plan *plan,
                              const struct kcp_device_info *device, struct kcp_range_join **out,
                              struct kcp_error *error) {
  (void)device;
  *out = NULL;
  if (plan->options.refine == KCP_REFINE_TENSOR)
    return kcp_fail(error, KCP_UNAVAILABLE,
                    "--refine tensor needs a CUDA device; run without it, or with --device cuda");
  if (plan->options.index == KCP_RANGE_INDEX_OPTIX)
    return kcp_fail(error, KCP_UNAVAILABLE,
                    "--index optix needs a CUDA device; run without it, or with --device cuda");
  struct kcp_range_join *join = calloc(1, sizeof *join);
  if (join == NULL) return kcp_out_of_memory(error, "a join", sizeof *join);
  join->plan = *plan;
  if (join->plan.options.refine == KCP_REFINE_AUTO)
    join->plan.options.refine = KCP_REFINE_SHARED_BOTH;
  if (join->plan.options.work_per_thread == 0)
    join->plan.options.work_per_thread = KCP_WORK_PER_THREAD;
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

/* Half of the memory for D: its coordinates twice, and what grouping and sorting take; a quarter
 * for queries likewise; a quarter for batches. */
static struct kcp_range_capacity capacity(const struct kcp_range_join *join) {
  const uint64_t point = 8 + 16 * (uint64_t)join->plan.dimensions;
  uint64_t grouping = 48;
  if (join->plan.options.kd_height == KCP_KD_HEIGHT_MAX)
    grouping += 128 + 8 * (uint64_t)omp_get_max_threads();
  struct kcp_range_capacity room = {join->plan.memory_bytes / 2 / (point + grouping),
                                    join->plan.memory_bytes / 4 / (point + 48)};
  if (room.reference_records < KCP_RANGE_TILE) room.reference_records = KCP_RANGE_TILE;
  if (room.query_records < LEAST_QUERIES) room.query_records = LEAST_QUERIES;
  if (room.reference_records > UINT32_MAX) room.reference_records = UINT32_MAX;
  if (room.query_records > UINT32_MAX) room.query_records = UINT32_MAX;
  return room;
}

static size_t parameters(const struct kcp_range_join *join, struct kcp_parameter *list) {
  return kcp_range_list_parameters(&join->plan.options, join->height, join->largest_primitive,
                                   list);
}

static enum kcp_status set_reference(struct kcp_range_join *join,
                                     const struct kcp_points *reference,
                                     struct kcp_measurement *measurement,
                                     struct kcp_range_work *work, struct kcp_error *error) {
  const double started = kcp_now();
  enum kcp_status status = kcp_rt_hiss_index(join, reference, work, error);
  measurement->phase_s[KCP_PHASE_INDEX] += kcp_now() - started;
  return status;
}

static enum kcp_status join_batch(struct kcp_range_join *join, struct kcp_rt_batch *batch,
                                  uint64_t *counts, const struct kcp_range_sink *sink,
                                  struct kcp_measurement *measurement, struct kcp_range_work *work,
                                  struct kcp_error *error) {
  struct kcp_range_tasks tasks = {0};
  struct kcp_rt_found found = {0};
  enum kcp_status status = kcp_rt_hiss_meet(join, batch, work, error);
  const double started = kcp_now();
  if (status == KCP_OK)
    status = kcp_range_deal(&join->plan.options, join->primitive_count, join->firsts,
                            batch->entry_firsts, &tasks, error);
  if (status == KCP_OK) status = kcp_rt_found_create(join, batch, sink == NULL, &found, error);
  if (status == KCP_OK)
    status = kcp_rt_hiss_refine(join, batch, &tasks, &found, &work->rechecks, error);
  work->phase_s[KCP_RANGE_PHASE_REFINE] += kcp_now() - started;
  for (uint64_t q = 0; q < batch->count && status == KCP_OK; ++q)
    counts[batch->queries->places[batch->first + q]] += found.totals[q];
  if (status == KCP_OK && sink != NULL)
    status =
        kcp_rt_hiss_pass_on(join, batch, &found, join->plan.memory_bytes / 8, sink, work, error);
  measurement->distance_evaluations += tasks.comparisons;
  ++work->batches;
  free(tasks.tasks);
  kcp_rt_found_free(&found);
  return status;
}

/* Batch after batch, as many queries in each as the memory for intersections allows. */
static enum kcp_status join_batches(struct kcp_range_join *join,
                                    const struct kcp_rearranged *queries, const uint32_t *hits,
                                    uint64_t *counts, const struct kcp_range_sink *sink,
                                    struct kcp_measurement *measurement,
                                    struct kcp_range_work *work, struct kcp_error *error) {
  const uint64_t most = join->plan.memory_bytes / 8 / kcp_rt_intersection_bytes(join, sink == NULL);
  enum kcp_status status = KCP_OK;
  for (uint64_t first = 0; first < queries->count && status == KCP_OK;) {
    struct kcp_rt_batch batch;
    kcp_rt_hiss_window(queries, hits, first, most, &batch);
    first += batch.count;
    status = join_batch(join, &batch, counts, sink, measurement, work, error);
    kcp_rt_batch_free(&batch);
    if (status == KCP_OK && kcp_interrupted())
      status = kcp_fail(error, KCP_INTERRUPTED, "interrupted");
  }
  return status;
}

static enum kcp_status join_all(struct kcp_range_join *join, const struct kcp_points *queries,
                                uint64_t *counts, const struct kcp_range_sink *sink,
                                struct kcp_measurement *measurement, struct kcp_range_work *work,
                                struct kcp_error *error) {
  const struct kcp_rearranged *rearranged = &join->points;
  const double started = kcp_now();
  enum kcp_status status = KCP_OK;
  if (queries != NULL) {
    rearranged = &join->queries;
    status = kcp_rt_hiss_order_queries(join, queries, error);
    if (status != KCP_OK) return status;
  }
  if (join->primitive_count == 0) return KCP_OK;
  uint32_t *hits = malloc((rearranged->count + 1) * sizeof *hits);
  if (hits == NULL) return kcp_out_of_memory(error, "intersections", 4 * rearranged->count);
  kcp_rt_hiss_first_test(join, rearranged, hits);
  work->phase_s[KCP_RANGE_PHASE_FIRST_TEST] += kcp_now() - started;
  status = join_batches(join, rearranged, hits, counts, sink, measurement, work, error);
  free(hits);
  measurement->phase_s[KCP_PHASE_KERNEL] += kcp_now() - started;
  return status;
}

const struct kcp_range_engine kcp_cpu_rt_hiss = {.create = create,
                                                 .destroy = destroy,
                                                 .capacity = capacity,
                                                 .parameters = parameters,
                                                 .set_reference = set_reference,
                                                 .join = join_all};

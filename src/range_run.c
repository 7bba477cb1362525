#include "kcp/range_run.h"

#include <stdlib.h>
#include <string.h>

#include "kcp/interrupt.h"

/* One call of kcp_range_run. */
struct run {
  struct kcp_range_runner *runner;
  uint64_t first, count; /* its queries */
  uint64_t *counts;
  struct kcp_range_pairs *pairs; /* or NULL */
  struct kcp_measurement *measurement;
  struct kcp_range_work *work;
  uint64_t slice;
  uint64_t block_first;
  const struct kcp_points *block; /* the queries being joined */
};

static uint64_t minimum(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static enum kcp_status keep_ids_of(uint64_t count, uint64_t **ids, struct kcp_error *error) {
  *ids = calloc(count + 1, sizeof **ids);
  return *ids != NULL ? KCP_OK : kcp_out_of_memory(error, "ids", (count + 1) * sizeof **ids);
}

enum kcp_status kcp_range_runner_create(const struct kcp_range_engine *engine,
                                        struct kcp_range_join *join, struct kcp_dataset *reference,
                                        struct kcp_dataset *query, bool keep_ids,
                                        struct kcp_progress *progress,
                                        struct kcp_range_runner *runner, struct kcp_error *error) {
  const uint64_t count = kcp_dataset_count(reference), query_count = kcp_dataset_count(query);
  const uint32_t dimensions = kcp_dataset_dimensions(reference);
  enum kcp_status status = KCP_OK;
  memset(runner, 0, sizeof *runner);
  *runner = (struct kcp_range_runner){.engine = engine,
                                      .join = join,
                                      .reference = reference,
                                      .query = query,
                                      .self = reference == query,
                                      .progress = progress,
                                      .capacity = engine->capacity(join)};
  struct kcp_range_capacity *capacity = &runner->capacity;
  capacity->reference_records = minimum(capacity->reference_records, count > 0 ? count : 1);
  capacity->query_records = minimum(capacity->query_records, query_count > 0 ? query_count : 1);
  runner->slice_count = (count + capacity->reference_records - 1) / capacity->reference_records;
  runner->slice_in_place = runner->slice_count;
  status = kcp_points_allocate(capacity->reference_records, dimensions, &runner->slice, error);
  /* A self-join in one slice takes its queries from there. */
  if (status == KCP_OK && !(runner->self && runner->slice_count <= 1))
    status = kcp_points_allocate(capacity->query_records, dimensions, &runner->block, error);
  if (status == KCP_OK && keep_ids) status = keep_ids_of(count, &runner->reference_ids, error);
  if (status == KCP_OK && keep_ids) {
    if (runner->self)
      runner->query_ids = runner->reference_ids;
    else
      status = keep_ids_of(query_count, &runner->query_ids, error);
  }
  if (status != KCP_OK) kcp_range_runner_free(runner);
  return status;
}

void kcp_range_runner_free(struct kcp_range_runner *runner) {
  kcp_points_free(&runner->slice);
  kcp_points_free(&runner->block);
  if (runner->query_ids != runner->reference_ids) free(runner->query_ids);
  free(runner->reference_ids);
  memset(runner, 0, sizeof *runner);
}

void kcp_range_runner_rewind(struct kcp_range_runner *runner) {
  runner->slice_in_place = runner->slice_count;
}

static enum kcp_status read_points(struct run *run, struct kcp_dataset *dataset, uint64_t first,
                                   uint64_t count, struct kcp_points *points, uint64_t *kept_ids,
                                   struct kcp_error *error) {
  double started = kcp_now();
  enum kcp_status status = kcp_dataset_read(dataset, first, count, points, error);
  if (status != KCP_OK) return status;
  if (kept_ids != NULL) memcpy(kept_ids + first, points->ids, count * sizeof *kept_ids);
  run->measurement->phase_s[KCP_PHASE_READ] += kcp_now() - started;
  run->measurement->bytes_read += (uint64_t)((double)kcp_dataset_file_bytes(dataset) *
                                             (double)count / (double)kcp_dataset_count(dataset));
  return KCP_OK;
}

static enum kcp_status place_slice(struct run *run, uint64_t slice, struct kcp_error *error) {
  struct kcp_range_runner *runner = run->runner;
  run->slice = slice;
  if (runner->slice_in_place == slice) return KCP_OK;
  const uint64_t first = slice * runner->capacity.reference_records;
  const uint64_t count =
      minimum(runner->capacity.reference_records, kcp_dataset_count(runner->reference) - first);
  runner->slice_in_place = runner->slice_count;
  enum kcp_status status = read_points(run, runner->reference, first, count, &runner->slice,
                                       runner->reference_ids, error);
  if (status == KCP_OK)
    status = runner->engine->set_reference(runner->join, &runner->slice, run->measurement,
                                           run->work, error);
  if (status == KCP_OK) runner->slice_in_place = slice;
  return status;
}

static enum kcp_status take(void *context, const struct kcp_range_batch *batch,
                            struct kcp_error *error) {
  const struct run *run = context;
  (void)error;
  kcp_range_pairs_add(run->pairs, batch, run->block_first, run->slice, &run->runner->slice,
                      run->block);
  return KCP_OK;
}

static uint32_t *room(void *context, uint64_t count) {
  const struct run *run = context;
  return kcp_range_pairs_room(run->pairs, count);
}

/* The queries first .. first + count - 1 as a view of the slice, which holds all of D. */
static struct kcp_points view_of(const struct kcp_points *slice, uint64_t first, uint64_t count) {
  struct kcp_points view = *slice;
  view.count = count;
  view.ids += first;
  view.coordinates += first;
  return view;
}

static enum kcp_status join_block(struct run *run, uint64_t first, uint64_t count,
                                  struct kcp_error *error) {
  struct kcp_range_runner *runner = run->runner;
  const struct kcp_range_sink sink = {run, take, room};
  const bool in_place = runner->self && runner->slice_count == 1;
  const bool whole = in_place && count == kcp_dataset_count(runner->query);
  struct kcp_points view;
  if (in_place) {
    view = view_of(&runner->slice, first, count);
    run->block = &view;
  } else {
    uint64_t *kept_ids = runner->self ? NULL : runner->query_ids;
    enum kcp_status status =
        read_points(run, runner->query, first, count, &runner->block, kept_ids, error);
    if (status != KCP_OK) return status;
    run->block = &runner->block;
  }
  run->block_first = first;
  return runner->engine->join(runner->join, whole ? NULL : run->block,
                              run->counts + (first - run->first), run->pairs != NULL ? &sink : NULL,
                              run->measurement, run->work, error);
}

static enum kcp_status join_slice(struct run *run, struct kcp_error *error) {
  struct kcp_range_runner *runner = run->runner;
  const bool in_place = runner->self && runner->slice_count == 1;
  const uint64_t step = in_place ? run->count : runner->capacity.query_records;
  for (uint64_t at = 0; at < run->count; at += step) {
    const uint64_t count = minimum(step, run->count - at);
    enum kcp_status status = join_block(run, run->first + at, count, error);
    if (status != KCP_OK) return status;
    if (kcp_interrupted()) return kcp_fail(error, KCP_INTERRUPTED, "interrupted");
    const uint64_t done = run->slice * run->count + at + count;
    kcp_progress_update(runner->progress, "join", done, run->count * runner->slice_count, done);
  }
  return KCP_OK;
}

enum kcp_status kcp_range_run(struct kcp_range_runner *runner, uint64_t first, uint64_t count,
                              uint64_t *counts, struct kcp_range_pairs *pairs,
                              struct kcp_measurement *measurement, struct kcp_range_work *work,
                              struct kcp_error *error) {
  struct run run = {.runner = runner,
                    .first = first,
                    .count = count,
                    .counts = counts,
                    .pairs = pairs,
                    .measurement = measurement,
                    .work = work};
  memset(counts, 0, count * sizeof *counts);
  for (uint64_t slice = 0; slice < runner->slice_count; ++slice) {
    enum kcp_status status = place_slice(&run, slice, error);
    if (status == KCP_OK && count > 0) status = join_slice(&run, error);
    if (status != KCP_OK) return status;
  }
  if (pairs != NULL) kcp_range_pairs_end(pairs);
  return KCP_OK;
}

/* Every pair is ranked, and the k first so far are kept in order. Holds both sets in memory;
 * evaluates |D1| |D2| distances and moves up to k pairs for each that is kept. */
#include "kcp/nested_loop.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/interrupt.h"

enum { MOST_DIMENSIONS = 64 };

/* Both sets; with --self the second is the first. */
struct nested_loop {
  struct kcp_points reference; /* owned */
  struct kcp_points query;     /* owned; empty with --self */
};

static uint64_t bytes_of(const struct kcp_dataset *dataset) {
  return kcp_dataset_count(dataset) * 8 * (1 + (uint64_t)kcp_dataset_dimensions(dataset));
}

enum kcp_status kcp_nested_loop_supports(const struct kcp_job *job, struct kcp_error *error) {
  uint64_t needed = bytes_of(job->reference) + bytes_of(job->query);
  uint64_t limit = job->request->memory_bytes;
  if (kcp_dataset_dimensions(job->reference) > MOST_DIMENSIONS)
    return kcp_fail(error, KCP_BAD_INPUT, "nested-loop takes at most %d dimensions; use auto",
                    MOST_DIMENSIONS);
  if (limit == 0) limit = job->device.free_bytes;
  if (needed <= limit) return KCP_OK;
  return kcp_fail(error, KCP_BAD_INPUT,
                  "nested-loop holds both sets in memory: needs %" PRIu64 " bytes, has %" PRIu64
                  "; use dspp+ or auto",
                  needed, limit);
}

void kcp_nested_loop_release(void *state) {
  struct nested_loop *sets = state;
  if (sets == NULL) return;
  kcp_points_free(&sets->reference);
  kcp_points_free(&sets->query);
  free(sets);
}

enum kcp_status kcp_nested_loop_prepare(const struct kcp_job *job, void **state,
                                        struct kcp_parameter *parameters, size_t *parameter_count,
                                        struct kcp_error *error) {
  (void)parameters;
  struct nested_loop *sets = calloc(1, sizeof *sets);
  *state = sets;
  *parameter_count = 0;
  if (sets == NULL) return kcp_out_of_memory(error, "nested-loop", sizeof *sets);
  enum kcp_status status =
      kcp_points_allocate(kcp_dataset_count(job->reference), kcp_dataset_dimensions(job->reference),
                          &sets->reference, error);
  if (status == KCP_OK && job->query != job->reference)
    status = kcp_points_allocate(kcp_dataset_count(job->query), kcp_dataset_dimensions(job->query),
                                 &sets->query, error);
  return status;
}

static enum kcp_status read_all(struct kcp_dataset *dataset, struct kcp_points *points,
                                struct kcp_error *error) {
  return kcp_dataset_read(dataset, 0, kcp_dataset_count(dataset), points, error);
}

/* Puts a pair in its place, if it has one among the first `room`. */
static void keep(struct kcp_answer *answer, uint64_t room, struct kcp_candidate pair) {
  if (answer->count == room && !kcp_candidate_before(&pair, &answer->pairs[room - 1])) return;
  uint64_t place = answer->count < room ? answer->count++ : room - 1;
  for (; place > 0 && kcp_candidate_before(&pair, &answer->pairs[place - 1]); --place)
    answer->pairs[place] = answer->pairs[place - 1];
  answer->pairs[place] = pair;
}

static void search(const struct kcp_job *job, const struct kcp_points *reference,
                   const struct kcp_points *query, uint64_t query_record,
                   struct kcp_answer *answer) {
  const struct kcp_metric metric = job->request->metric;
  const double limit =
      isinf(job->request->max_distance)
          ? DBL_MAX
          : kcp_metric_rank(metric, ldexp(job->request->max_distance, job->scale_exponent));
  double place[MOST_DIMENSIONS];
  for (uint32_t j = 0; j < reference->dimensions; ++j)
    place[j] = kcp_points_column(query, j)[query_record];
  for (uint64_t i = 0; i < reference->count; ++i) {
    uint64_t id1 = reference->ids[i], id2 = query->ids[query_record];
    if (job->request->self && !kcp_self_pair_counts(id1, i, id2, query_record)) continue;
    double rank = kcp_metric_rank_of(metric.kind, metric.power, reference->dimensions,
                                     reference->coordinates, reference->stride, i, place);
    if (rank <= limit) keep(answer, job->pair_count, (struct kcp_candidate){rank, id1, id2});
  }
}

enum kcp_status kcp_nested_loop_run(const struct kcp_job *job, void *state,
                                    struct kcp_answer *answer, struct kcp_measurement *measurement,
                                    struct kcp_error *error) {
  struct nested_loop *sets = state;
  const double start = kcp_now();
  const struct kcp_points *query = job->request->self ? &sets->reference : &sets->query;
  answer->pairs = malloc(job->pair_count * sizeof *answer->pairs);
  if (answer->pairs == NULL)
    return kcp_out_of_memory(error, "the answer", job->pair_count * sizeof *answer->pairs);
  enum kcp_status status = read_all(job->reference, &sets->reference, error);
  if (status == KCP_OK && !job->request->self) status = read_all(job->query, &sets->query, error);
  const double read = kcp_now();
  for (uint64_t record = 0; status == KCP_OK && record < query->count; ++record) {
    if (kcp_interrupted()) status = KCP_INTERRUPTED;
    search(job, &sets->reference, query, record, answer);
    kcp_progress_update(job->progress, "search", record, query->count,
                        record * sets->reference.count);
  }
  measurement->phase_s[KCP_PHASE_READ] = read - start;
  measurement->phase_s[KCP_PHASE_KERNEL] = kcp_now() - read;
  measurement->total_s = kcp_now() - start;
  measurement->distance_evaluations = sets->reference.count * query->count;
  return status;
}

#include "kcp/execute.h"

#include <stdlib.h>
#include <string.h>

#include "kcp/scaling.h"

/* One run in place of the answer before it. */
static enum kcp_status run_once(const struct kcp_job *job, void *state, struct kcp_answer *answer,
                                struct kcp_measurement *measurement, struct kcp_error *error) {
  free(answer->pairs);
  memset(answer, 0, sizeof *answer);
  bool progress_enabled = job->progress->enabled;
  kcp_progress_start(job->progress, progress_enabled);
  enum kcp_status status = job->algorithm->run(job, state, answer, measurement, error);
  kcp_progress_finish(job->progress);
  return status;
}

static enum kcp_status prepare(const struct kcp_job *job, struct kcp_result *result, void **state,
                               struct kcp_error *error) {
  return job->algorithm->prepare(job, state, result->parameters, &result->parameter_count, error);
}

static void set_scale(struct kcp_job *job, int exponent) {
  job->scale_exponent = exponent;
  kcp_dataset_set_scale(job->reference, exponent);
  kcp_dataset_set_scale(job->query, exponent);
}

/* Runs until the scale is one that the answer is exact at. */
static enum kcp_status run_to_exact(struct kcp_job *job, struct kcp_result *result, void **state,
                                    struct kcp_answer *answer, struct kcp_measurement *measurement,
                                    struct kcp_error *error) {
  for (int attempt = 0; attempt < KCP_SCALING_ATTEMPTS; ++attempt) {
    int exponent;
    enum kcp_status status = run_once(job, *state, answer, measurement, error);
    if (status == KCP_OK) status = kcp_scaling_check(job, answer, &exponent, error);
    if (status != KCP_OK || exponent == job->scale_exponent) return status;
    set_scale(job, exponent);
    job->algorithm->release(*state);
    *state = NULL;
    status = prepare(job, result, state, error);
    if (status != KCP_OK) return status;
  }
  return kcp_scaling_refuse(error);
}

enum kcp_status kcp_execute(struct kcp_job *job, struct kcp_result *result,
                            struct kcp_answer *answer, struct kcp_error *error) {
  uint64_t warmup = job->request->warmup, runs = job->request->runs;
  uint64_t checksum = 0;
  void *state = NULL;
  memset(answer, 0, sizeof *answer);
  result->warmup_count = warmup;
  result->sample_count = 0;
  result->samples = calloc(runs, sizeof *result->samples);
  result->scratch = calloc(runs, sizeof *result->scratch);
  if (result->samples == NULL || result->scratch == NULL)
    return kcp_out_of_memory(error, "the measurements", runs * sizeof *result->samples);
  enum kcp_status status = prepare(job, result, &state, error);
  for (uint64_t run = 0; run < warmup + runs && status == KCP_OK; ++run) {
    struct kcp_measurement measurement;
    memset(&measurement, 0, sizeof measurement);
    status = run == 0 ? run_to_exact(job, result, &state, answer, &measurement, error)
                      : run_once(job, state, answer, &measurement, error);
    if (status != KCP_OK) break;
    if (run == 0) checksum = kcp_answer_checksum(answer);
    if (kcp_answer_checksum(answer) != checksum)
      status =
          kcp_fail(error, KCP_WRONG_ANSWER, "wrong answer: run %llu differs from the first run",
                   (unsigned long long)run);
    if (run >= warmup) result->samples[result->sample_count++] = measurement;
  }
  job->algorithm->release(state);
  return status;
}

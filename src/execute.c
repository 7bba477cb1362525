#include "kcp/execute.h"

#include <stdlib.h>
#include <string.h>

#include "kcp/measured_runs.h"
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

/* What the runs of a job share. */
struct execution {
  struct kcp_job *job;
  struct kcp_result *result;
  struct kcp_answer *answer;
  void *state; /* of the algorithm */
};

static enum kcp_status run_of_job(void *context, uint64_t number,
                                  struct kcp_measurement *measurement, uint64_t *checksum,
                                  struct kcp_error *error) {
  struct execution *with = context;
  enum kcp_status status =
      number == 0
          ? run_to_exact(with->job, with->result, &with->state, with->answer, measurement, error)
          : run_once(with->job, with->state, with->answer, measurement, error);
  if (status == KCP_OK) *checksum = kcp_answer_checksum(with->answer);
  return status;
}

enum kcp_status kcp_execute(struct kcp_job *job, struct kcp_result *result,
                            struct kcp_answer *answer, struct kcp_error *error) {
  struct execution with = {job, result, answer, NULL};
  memset(answer, 0, sizeof *answer);
  enum kcp_status status = prepare(job, result, &with.state, error);
  if (status == KCP_OK) status = kcp_measure_runs(job->request, result, run_of_job, &with, error);
  job->algorithm->release(with.state);
  return status;
}

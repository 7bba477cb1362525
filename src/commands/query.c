/* The driver of a query: files, device and algorithm are chosen, the search runs, and its answer is
 * checked, written and told about. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/backend_choice.h"
#include "kcp/commands.h"
#include "kcp/execute.h"
#include "kcp/influence_query.h"
#include "kcp/range_query.h"
#include "kcp/report.h"
#include "kcp/scan.h"
#include "kcp/top_k_query.h"
#include "kcp/verify.h"
#include "query_ending.h"

struct query {
  const struct kcp_request *request;
  struct kcp_dataset *datasets[2]; /* owned; the second is NULL with --self */
  struct kcp_job job;
  struct kcp_progress progress;
  struct kcp_answer answer;   /* owned */
  struct kcp_result result;   /* owned */
  struct kcp_output_file out; /* --out */
  struct kcp_query_ending ending;
};

static enum kcp_status check_dimensions(const struct query *query, struct kcp_error *error) {
  uint32_t d1 = kcp_dataset_dimensions(query->job.reference);
  uint32_t d2 = kcp_dataset_dimensions(query->job.query);
  if (d1 == d2) return KCP_OK;
  return kcp_fail(error, KCP_BAD_INPUT,
                  "%s has %" PRIu32 " coordinates a record, %s has %" PRIu32
                  "; both files need the same (kcp convert can make a .bin of either, or --columns "
                  "choose)",
                  query->request->inputs[0], d1, query->request->inputs[1], d2);
}

static enum kcp_status open_files(struct query *query, struct kcp_error *error) {
  const struct kcp_request *request = query->request;
  struct kcp_job *job = &query->job;
  struct kcp_dataset_options options = {.columns = request->columns,
                                        .text_layout = KCP_TEXT_ID_FIRST};
  for (int i = 0; i < request->input_count; ++i) {
    enum kcp_status status =
        kcp_dataset_open(request->inputs[i], &options, &query->datasets[i], error);
    if (status != KCP_OK) return status;
  }
  job->reference = query->datasets[0];
  job->query = request->self ? query->datasets[0] : query->datasets[1];
  uint64_t n1 = kcp_dataset_count(job->reference), n2 = kcp_dataset_count(job->query);
  uint64_t pairs = kcp_possible_pairs(request->self, n1, n2);
  job->pair_count = request->k < pairs ? request->k : pairs;
  query->result.possible_evaluations = (double)n1 * (double)n2;
  return check_dimensions(query, error);
}

static enum kcp_status open_outputs(struct query *query, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  if (query->request->out_path != NULL)
    status = kcp_output_file_open(query->request->out_path, &query->out, error);
  if (status == KCP_OK) status = kcp_query_open_report(&query->ending, error);
  return status;
}

static enum kcp_status choose_device(struct query *query, struct kcp_error *error) {
  struct kcp_backend_choice choice;
  enum kcp_status status = kcp_choose_backend(query->request, &choice, error);
  query->job.backend = query->result.backend = choice.backend;
  query->job.device = query->result.device = choice.device;
  query->result.no_gpu = choice.no_gpu;
  return status;
}

static enum kcp_status choose_algorithm(struct query *query, struct kcp_error *error) {
  const struct kcp_request *request = query->request;
  struct kcp_job *job = &query->job;
  query->result.chosen = strcmp(request->algorithm, "auto") == 0;
  job->algorithm = query->result.chosen ? kcp_algorithm_choose(request, job->backend)
                                        : kcp_algorithm_find(request->algorithm);
  query->result.algorithm = job->algorithm;
  if ((job->algorithm->backends & job->backend->kind) == 0)
    return kcp_fail(error, KCP_UNAVAILABLE, "%s does not run on %s; use --device or another --algo",
                    job->algorithm->name, job->backend->name);
  if (job->pair_count == 0) return KCP_OK;
  enum kcp_status status = job->algorithm->supports(job, error);
  if (status == KCP_OK || !query->result.chosen) return status;
  job->algorithm = query->result.algorithm = kcp_algorithm_find("dspp+pea");
  return job->algorithm->supports(job, error);
}

/* Nothing to search: the files are still read, since a wrong one is an error. */
static enum kcp_status check_files_alone(struct query *query, struct kcp_error *error) {
  query->result.algorithm = NULL;
  for (int i = 0; i < query->request->input_count; ++i) {
    enum kcp_status status = kcp_scan(query->datasets[i], NULL, NULL, &query->progress, error);
    if (status != KCP_OK) return status;
  }
  return KCP_OK;
}

static void take_facts(struct query *query) {
  query->result.dataset_count = query->request->input_count;
  for (int i = 0; i < query->result.dataset_count; ++i)
    query->result.datasets[i] = kcp_dataset_facts_of(query->datasets[i]);
}

static enum kcp_status search(struct query *query, struct kcp_error *error) {
  enum kcp_status status = query->job.pair_count > 0
                               ? kcp_execute(&query->job, &query->result, &query->answer, error)
                               : check_files_alone(query, error);
  kcp_progress_finish(&query->progress);
  if (status == KCP_INTERRUPTED)
    return kcp_fail(error, status, "stopped at %.0f%%; nothing written",
                    100 * query->progress.fraction);
  if (status != KCP_OK) return status;
  take_facts(query);
  kcp_result_take_answer(&query->result, &query->job, &query->answer);
  return KCP_OK;
}

static enum kcp_status verify(void *context, struct kcp_error *error) {
  struct query *query = context;
  return kcp_verify_pairs(&query->job, &query->answer, error);
}

static void write_pairs(void *context, FILE *stream, bool as_json) {
  const struct query *query = context;
  (as_json ? kcp_pairs_write_json : kcp_pairs_write_csv)(stream, &query->job, &query->answer);
}

static enum kcp_status write_answer(void *context, struct kcp_error *error) {
  struct query *query = context;
  return kcp_query_write_answer(query->request, &query->out, write_pairs, query, error);
}

static void warn_of_short_answer(void *context) {
  const struct query *query = context;
  const struct kcp_request *request = query->request;
  uint64_t pairs = kcp_possible_pairs(request->self, kcp_dataset_count(query->job.reference),
                                      kcp_dataset_count(query->job.query));
  if (request->k > pairs && pairs > 0)
    kcp_warn(request, "--k %" PRIu64 " is more than the %" PRIu64 " pair%s there %s", request->k,
             pairs, pairs == 1 ? "" : "s", pairs == 1 ? "is" : "are");
}

static enum kcp_status run(struct query *query, struct kcp_error *error) {
  enum kcp_status status = open_files(query, error);
  if (status == KCP_OK) status = choose_device(query, error);
  if (status == KCP_OK) status = choose_algorithm(query, error);
  if (status == KCP_OK) status = open_outputs(query, error);
  if (status == KCP_OK) status = search(query, error);
  if (status != KCP_OK) return status;
  query->ending.algorithm = query->job.algorithm;
  return kcp_query_end(&query->ending, error);
}

enum kcp_status kcp_command_query(const struct kcp_request *request, struct kcp_error *error) {
  if (kcp_asks_for_top_k(request)) return kcp_top_k_query(request, error);
  if (kcp_asks_for_influence(request)) return kcp_influence_query(request, error);
  if (kcp_asks_for_range_join(request)) return kcp_range_query(request, error);
  struct query query = {.request = request};
  query.ending = (struct kcp_query_ending){.request = request,
                                           .result = &query.result,
                                           .query = &query,
                                           .verify = verify,
                                           .warn = warn_of_short_answer,
                                           .write_answer = write_answer};
  query.job.request = request;
  query.job.progress = &query.progress;
  kcp_progress_start(&query.progress, kcp_shows_progress(request));
  enum kcp_status status = run(&query, error);
  kcp_output_file_discard(&query.out);
  kcp_output_file_discard(&query.ending.report);
  kcp_result_free(&query.result);
  free(query.answer.pairs);
  kcp_dataset_close(query.datasets[0]);
  kcp_dataset_close(query.datasets[1]);
  return status;
}

/* The driver of a query: files, device and algorithm are chosen, the search runs, and its answer is
 * checked, written and told about. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/backend_choice.h"
#include "kcp/commands.h"
#include "kcp/execute.h"
#include "kcp/floor.h"
#include "kcp/influence_query.h"
#include "kcp/range_query.h"
#include "kcp/report.h"
#include "kcp/scan.h"
#include "kcp/top_k_query.h"
#include "kcp/verify.h"

struct query {
  const struct kcp_request *request;
  struct kcp_dataset *datasets[2]; /* owned; the second is NULL with --self */
  struct kcp_job job;
  struct kcp_progress progress;
  struct kcp_answer answer;      /* owned */
  struct kcp_result result;      /* owned */
  struct kcp_output_file out;    /* --out */
  struct kcp_output_file report; /* --json */
};

static double possible_evaluations(bool self, uint64_t n1, uint64_t n2) {
  double a = (double)n1, b = (double)n2;
  return self ? a * (a - 1) / 2 : a * b;
}

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
  query->result.possible_evaluations = possible_evaluations(request->self, n1, n2);
  return check_dimensions(query, error);
}

static enum kcp_status open_outputs(struct query *query, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  if (query->request->out_path != NULL)
    status = kcp_output_file_open(query->request->out_path, &query->out, error);
  if (status == KCP_OK && query->request->json_path != NULL)
    status = kcp_output_file_open(query->request->json_path, &query->report, error);
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

/* A wrong answer is no failure yet: the report tells of it. */
static enum kcp_status verify(struct query *query, struct kcp_error *error) {
  if (!query->request->verify) return KCP_OK;
  enum kcp_status status = kcp_verify_pairs(&query->job, &query->answer, error);
  if (status == KCP_INTERRUPTED)
    return kcp_fail(error, status, "stopped while verifying; nothing written");
  query->result.verified = status == KCP_OK;
  if (status == KCP_WRONG_ANSWER) {
    query->result.status = KCP_RESULT_WRONG;
    snprintf(query->result.reason, sizeof query->result.reason, "%s", error->message);
  }
  return status;
}

/* After the search, when the files are where they were for it. */
static enum kcp_status measure_floor(struct query *query, struct kcp_error *error) {
  const struct kcp_request *request = query->request;
  if (!request->floor) return KCP_OK;
  return kcp_measure_floor(query->job.backend, &query->job.device, request->inputs,
                           request->input_count, &query->result.floor_s, error);
}

static void write_pairs(const struct query *query, FILE *stream, const char *path) {
  const char *ending = path != NULL ? strrchr(path, '.') : NULL;
  if (ending != NULL && strcmp(ending, ".json") == 0)
    kcp_pairs_write_json(stream, &query->job, &query->answer);
  else
    kcp_pairs_write_csv(stream, &query->job, &query->answer);
}

static enum kcp_status write_answer(struct query *query, struct kcp_error *error) {
  if (query->request->out_path == NULL) {
    write_pairs(query, stdout, NULL);
    return kcp_finish_stdout(error);
  }
  write_pairs(query, query->out.stream, query->request->out_path);
  return kcp_output_file_commit(&query->out, error);
}

static enum kcp_status write_report(struct query *query, struct kcp_error *error) {
  if (query->request->json_path == NULL) return KCP_OK;
  enum kcp_status status =
      kcp_report_write(query->report.stream, query->request, &query->result, 1, error);
  if (status == KCP_OK) status = kcp_output_file_commit(&query->report, error);
  return status;
}

static void warn_of_short_answer(const struct query *query) {
  const struct kcp_request *request = query->request;
  uint64_t pairs = kcp_possible_pairs(request->self, kcp_dataset_count(query->job.reference),
                                      kcp_dataset_count(query->job.query));
  if (request->k > pairs && pairs > 0)
    kcp_warn(request, "--k %" PRIu64 " is more than the %" PRIu64 " pair%s there %s", request->k,
             pairs, pairs == 1 ? "" : "s", pairs == 1 ? "is" : "are");
}

static enum kcp_status tell(struct query *query, struct kcp_error *error) {
  bool quiet = query->request->quiet;
  warn_of_short_answer(query);
  if (!quiet) kcp_summary_begin(stderr, &query->result);
  enum kcp_status status = write_answer(query, error);
  if (status == KCP_OK) status = write_report(query, error);
  if (status == KCP_OK && !quiet) kcp_summary_end(stderr, query->request, &query->result);
  return status;
}

static enum kcp_status run(struct query *query, struct kcp_error *error) {
  enum kcp_status status = open_files(query, error);
  if (status == KCP_OK) status = choose_device(query, error);
  if (status == KCP_OK) status = choose_algorithm(query, error);
  if (status == KCP_OK) status = open_outputs(query, error);
  if (status == KCP_OK) status = search(query, error);
  if (status == KCP_OK) status = measure_floor(query, error);
  if (status == KCP_OK) status = verify(query, error);
  if (status == KCP_WRONG_ANSWER && query->result.status == KCP_RESULT_WRONG) {
    struct kcp_error unwritten;
    if (write_report(query, &unwritten) != KCP_OK)
      kcp_warn(query->request, "%s", unwritten.message);
    return status;
  }
  if (status == KCP_OK) kcp_warn_of_unused_options(query->request, query->job.algorithm);
  if (status == KCP_OK) status = tell(query, error);
  return status;
}

enum kcp_status kcp_command_query(const struct kcp_request *request, struct kcp_error *error) {
  if (kcp_asks_for_top_k(request)) return kcp_top_k_query(request, error);
  if (kcp_asks_for_influence(request)) return kcp_influence_query(request, error);
  if (kcp_asks_for_range_join(request)) return kcp_range_query(request, error);
  struct query query = {.request = request};
  query.job.request = request;
  query.job.progress = &query.progress;
  kcp_progress_start(&query.progress, kcp_shows_progress(request));
  enum kcp_status status = run(&query, error);
  kcp_output_file_discard(&query.out);
  kcp_output_file_discard(&query.report);
  kcp_result_free(&query.result);
  free(query.answer.pairs);
  kcp_dataset_close(query.datasets[0]);
  kcp_dataset_close(query.datasets[1]);
  return status;
}

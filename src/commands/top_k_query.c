/* The driver of a top-k query: the array is opened, device and algorithm are chosen, the search
 * runs, and its answer is checked, written and told about. */
#include "kcp/top_k_query.h"
#include "kcp/floor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/backend_choice.h"
#include "kcp/commands.h"
#include "kcp/floor.h"
#include "kcp/output_file.h"
#include "kcp/report.h"
#include "kcp/text.h"

struct top_k_query {
  const struct kcp_request *request;
  struct kcp_value_array *array; /* owned */
  struct kcp_value_array_facts facts;
  struct kcp_top_k_plan plan;
  const struct kcp_top_k_engine *engine;
  struct kcp_device_info device;
  struct kcp_top_k_search *search; /* owned */
  struct kcp_top_k_answer answer;  /* owned */
  struct kcp_top_k_result facts_of_answer;
  struct kcp_result result;      /* owned */
  struct kcp_output_file out;    /* --out */
  struct kcp_output_file report; /* --json */
};

bool kcp_asks_for_top_k(const struct kcp_request *request) {
  const struct kcp_algorithm *algorithm = kcp_algorithm_find(request->algorithm);
  if (algorithm != NULL) return algorithm->query == KCP_QUERY_TOP_K;
  return !request->self && request->input_count == 1 && kcp_is_raw_array(request->inputs[0]);
}

/* What "auto" stands for: on every backend the one that reads the values once. */
static const struct kcp_algorithm *choose_algorithm(const struct kcp_request *request) {
  const struct kcp_algorithm *algorithm = kcp_algorithm_find(request->algorithm);
  return algorithm != NULL ? algorithm : kcp_algorithm_find("select");
}

static enum kcp_status make_plan(struct top_k_query *query, struct kcp_error *error) {
  const struct kcp_request *request = query->request;
  struct kcp_result *result = &query->result;
  struct kcp_backend_choice choice;
  enum kcp_status status = kcp_value_array_open(request->inputs[0], &query->array, error);
  if (status != KCP_OK) return status;
  query->facts = kcp_value_array_facts(query->array);
  status = kcp_choose_backend(request, &choice, error);
  if (status != KCP_OK) return status;
  result->backend = choice.backend;
  result->device = query->device = choice.device;
  result->no_gpu = choice.no_gpu;
  result->algorithm = choose_algorithm(request);
  result->chosen = strcmp(request->algorithm, "auto") == 0;
  query->engine = choice.backend->top_k;
  query->plan =
      (struct kcp_top_k_plan){.type = query->facts.type,
                              .order = request->value_order,
                              .method = *(const enum kcp_top_k_method *)result->algorithm->variant,
                              .k = request->k,
                              .rows = query->facts.rows,
                              .columns = query->facts.columns,
                              .memory_bytes = request->memory_bytes,
                              .resident = request->resident};
  return query->engine->create(&query->plan, &query->device, &query->search, error);
}

static enum kcp_status open_outputs(struct top_k_query *query, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  if (query->request->out_path != NULL)
    status = kcp_output_file_open(query->request->out_path, &query->out, error);
  if (status == KCP_OK && query->request->json_path != NULL)
    status = kcp_output_file_open(query->request->json_path, &query->report, error);
  return status;
}

/* Runs request->warmup + request->runs times; all answers must agree. */
static enum kcp_status search(struct top_k_query *query, struct kcp_error *error) {
  const uint64_t warmup = query->request->warmup, runs = query->request->runs;
  const struct kcp_value_source source = kcp_value_array_source(query->array);
  struct kcp_result *result = &query->result;
  enum kcp_status status = KCP_OK;
  result->warmup_count = warmup;
  result->samples = calloc(runs, sizeof *result->samples);
  result->scratch = calloc(runs, sizeof *result->scratch);
  if (result->samples == NULL || result->scratch == NULL)
    return kcp_out_of_memory(error, "the measurements", runs * sizeof *result->samples);
  for (uint64_t run = 0; run < warmup + runs && status == KCP_OK; ++run) {
    struct kcp_measurement measurement;
    kcp_top_k_answer_free(&query->answer);
    status = query->engine->run(query->search, &source, &query->answer, &measurement, error);
    if (status != KCP_OK) break;
    uint64_t checksum = kcp_top_k_checksum(&query->answer);
    if (run == 0) result->checksum = checksum;
    if (checksum != result->checksum)
      status = kcp_fail(error, KCP_WRONG_ANSWER,
                        "wrong answer: run %" PRIu64 " differs from the first run", run);
    if (run >= warmup) result->samples[result->sample_count++] = measurement;
  }
  if (status == KCP_INTERRUPTED) kcp_fail(error, status, "stopped; nothing written");
  return status;
}

static void take_facts(struct top_k_query *query) {
  struct kcp_top_k_result *facts = &query->facts_of_answer;
  facts->array = query->facts;
  facts->order = query->plan.order;
  facts->answer = &query->answer;
  for (uint64_t row = 0; row < query->answer.rows; ++row) {
    facts->nan_count += query->answer.certificates[row].nan_count;
    facts->value_count += query->answer.certificates[row].count;
  }
  query->result.top_k = facts;
  query->result.peak_host_bytes = kcp_peak_host_bytes();
}

/* A wrong answer is no failure yet: the report tells of it. */
static enum kcp_status verify(struct top_k_query *query, struct kcp_error *error) {
  if (!query->request->verify) return KCP_OK;
  const struct kcp_value_source source = kcp_value_array_source(query->array);
  enum kcp_status status = kcp_verify_top_k(&query->plan, &source, &query->answer, error);
  if (status == KCP_INTERRUPTED)
    return kcp_fail(error, status, "stopped while verifying; nothing written");
  query->result.verified = status == KCP_OK;
  if (status == KCP_WRONG_ANSWER) {
    query->result.status = KCP_RESULT_WRONG;
    snprintf(query->result.reason, sizeof query->result.reason, "%s", error->message);
  }
  return status;
}

static void warn(const struct top_k_query *query) {
  const struct kcp_value_array_facts *facts = &query->facts;
  const uint64_t nan_count = query->facts_of_answer.nan_count;
  if (query->plan.k > facts->columns)
    kcp_warn(query->request, "--k %" PRIu64 " is more than the %" PRIu64 " value%s %s",
             query->plan.k, facts->columns, facts->columns == 1 ? "" : "s",
             facts->has_rows ? "of a row" : "there are");
  if (nan_count > 0)
    kcp_warn(query->request, "%s: %s value%s NaN and never chosen", facts->path,
             kcp_text_grouped(nan_count).text, nan_count == 1 ? " is" : "s are");
}

static void write_values(const struct top_k_query *query, FILE *stream, const char *path) {
  const char *ending = path != NULL ? strrchr(path, '.') : NULL;
  if (ending != NULL && strcmp(ending, ".json") == 0)
    kcp_top_k_write_json(stream, &query->facts_of_answer);
  else
    kcp_top_k_write_csv(stream, &query->facts_of_answer);
}

static enum kcp_status write_answer(struct top_k_query *query, struct kcp_error *error) {
  if (query->request->out_path == NULL) {
    write_values(query, stdout, NULL);
    return kcp_finish_stdout(error);
  }
  write_values(query, query->out.stream, query->request->out_path);
  return kcp_output_file_commit(&query->out, error);
}

static enum kcp_status write_report(struct top_k_query *query, struct kcp_error *error) {
  if (query->request->json_path == NULL) return KCP_OK;
  enum kcp_status status =
      kcp_report_write(query->report.stream, query->request, &query->result, 1, error);
  if (status == KCP_OK) status = kcp_output_file_commit(&query->report, error);
  return status;
}

static enum kcp_status tell(struct top_k_query *query, struct kcp_error *error) {
  bool quiet = query->request->quiet;
  kcp_warn_of_unused_options(query->request, query->result.algorithm);
  warn(query);
  if (!quiet) kcp_summary_begin(stderr, &query->result);
  enum kcp_status status = write_answer(query, error);
  if (status == KCP_OK) status = write_report(query, error);
  if (status == KCP_OK && !quiet) kcp_summary_end(stderr, query->request, &query->result);
  return status;
}

static enum kcp_status run(struct top_k_query *query, struct kcp_error *error) {
  enum kcp_status status = make_plan(query, error);
  if (status == KCP_OK) status = open_outputs(query, error);
  if (status == KCP_OK) status = search(query, error);
  if (status != KCP_OK) return status;
  take_facts(query);
  if (query->request->floor)
    status = kcp_measure_floor(query->result.backend, &query->result.device, query->request->inputs,
                               1, &query->result.floor_s, error);
  if (status == KCP_OK) status = verify(query, error);
  if (status == KCP_WRONG_ANSWER) {
    struct kcp_error unwritten;
    if (write_report(query, &unwritten) != KCP_OK)
      kcp_warn(query->request, "%s", unwritten.message);
    return status;
  }
  return status == KCP_OK ? tell(query, error) : status;
}

enum kcp_status kcp_top_k_query(const struct kcp_request *request, struct kcp_error *error) {
  struct top_k_query query = {.request = request};
  enum kcp_status status = run(&query, error);
  kcp_output_file_discard(&query.out);
  kcp_output_file_discard(&query.report);
  kcp_result_free(&query.result);
  kcp_top_k_answer_free(&query.answer);
  if (query.search != NULL) query.engine->destroy(query.search);
  kcp_value_array_close(query.array);
  return status;
}

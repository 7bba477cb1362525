/* The driver of a top-k query: the array is opened, device and algorithm are chosen, the search
 * runs, and its answer is checked, written and told about. */
#include "kcp/top_k_query.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/backend_choice.h"
#include "kcp/commands.h"
#include "kcp/floor.h"
#include "kcp/measured_runs.h"
#include "kcp/output_file.h"
#include "kcp/text.h"
#include "query_ending.h"

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
  struct kcp_result result;   /* owned */
  struct kcp_output_file out; /* --out */
  struct kcp_query_ending ending;
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
  if (status == KCP_OK) status = kcp_query_open_report(&query->ending, error);
  return status;
}

static enum kcp_status run_once(void *context, uint64_t number, struct kcp_measurement *measurement,
                                uint64_t *checksum, struct kcp_error *error) {
  struct top_k_query *query = context;
  const struct kcp_value_source source = kcp_value_array_source(query->array);
  (void)number;
  kcp_top_k_answer_free(&query->answer);
  enum kcp_status status =
      query->engine->run(query->search, &source, &query->answer, measurement, error);
  if (status == KCP_OK) *checksum = kcp_top_k_checksum(&query->answer);
  return status;
}

static enum kcp_status search(struct top_k_query *query, struct kcp_error *error) {
  enum kcp_status status = kcp_measure_runs(query->request, &query->result, run_once, query, error);
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

static enum kcp_status verify(void *context, struct kcp_error *error) {
  struct top_k_query *query = context;
  const struct kcp_value_source source = kcp_value_array_source(query->array);
  return kcp_verify_top_k(&query->plan, &source, &query->answer, error);
}

static void warn(void *context) {
  const struct top_k_query *query = context;
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

static void write_values(void *context, FILE *stream, bool as_json) {
  const struct top_k_query *query = context;
  (as_json ? kcp_top_k_write_json : kcp_top_k_write_csv)(stream, &query->facts_of_answer);
}

static enum kcp_status write_answer(void *context, struct kcp_error *error) {
  struct top_k_query *query = context;
  return kcp_query_write_answer(query->request, &query->out, write_values, query, error);
}

static enum kcp_status run(struct top_k_query *query, struct kcp_error *error) {
  enum kcp_status status = make_plan(query, error);
  if (status == KCP_OK) status = open_outputs(query, error);
  if (status == KCP_OK) status = search(query, error);
  if (status != KCP_OK) return status;
  take_facts(query);
  query->ending.algorithm = query->result.algorithm;
  return kcp_query_end(&query->ending, error);
}

enum kcp_status kcp_top_k_query(const struct kcp_request *request, struct kcp_error *error) {
  struct top_k_query query = {.request = request};
  query.ending = (struct kcp_query_ending){.request = request,
                                           .result = &query.result,
                                           .query = &query,
                                           .verify = verify,
                                           .warn = warn,
                                           .write_answer = write_answer};
  enum kcp_status status = run(&query, error);
  kcp_output_file_discard(&query.out);
  kcp_output_file_discard(&query.ending.report);
  kcp_result_free(&query.result);
  kcp_top_k_answer_free(&query.answer);
  if (query.search != NULL) query.engine->destroy(query.search);
  kcp_value_array_close(query.array);
  return status;
}

/* The driver of a range join: files are opened, device and algorithm are chosen, eps is found when
 * a selectivity is asked for, the join runs, and its answer is checked, written and told about. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/backend_choice.h"
#include "kcp/commands.h"
#include "kcp/measured_runs.h"
#include "kcp/range_query.h"
#include "kcp/range_writer.h"
#include "kcp/scan.h"
#include "kcp/text.h"
#include "query_ending.h"

struct range_query {
  const struct kcp_request *request;
  struct kcp_dataset *datasets[2]; /* owned; the second is NULL in a self-join */
  struct kcp_dataset *reference, *query;
  const struct kcp_range_engine *engine;
  struct kcp_range_join *join; /* owned */
  struct kcp_range_runner runner;
  struct kcp_range_pairs pairs; /* those of --out or --result, as far as they fit */
  uint64_t pairs_budget;        /* bytes for them */
  uint64_t *counts;             /* owned */
  double scaled_eps;
  struct kcp_progress progress;
  struct kcp_range_result facts_of_answer;
  struct kcp_result result; /* owned */
  struct kcp_range_writer out;
  struct kcp_query_ending ending;
};

bool kcp_asks_for_range_join(const struct kcp_request *request) {
  const struct kcp_algorithm *algorithm = kcp_algorithm_find(request->algorithm);
  if (algorithm != NULL) return algorithm->query == KCP_QUERY_RANGE_JOIN;
  return !isnan(request->range.eps) || !isnan(request->range.selectivity);
}

static enum kcp_status check_request(const struct kcp_request *request, struct kcp_error *error) {
  const bool has_eps = !isnan(request->range.eps);
  const bool has_selectivity = !isnan(request->range.selectivity);
  if (has_eps && has_selectivity)
    return kcp_fail(error, KCP_BAD_INPUT, "--eps and --selectivity: give one of them");
  if (!has_eps && !has_selectivity)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "%s needs --eps R, the search radius, or --selectivity S, from which it is "
                    "found",
                    request->algorithm);
  if (request->metric.kind != KCP_L2)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "a range join uses the Euclidean distance; leave --metric out");
  return KCP_OK;
}

static enum kcp_status open_files(struct range_query *query, struct kcp_error *error) {
  const struct kcp_request *request = query->request;
  const struct kcp_dataset_options options = {.columns = request->columns,
                                              .text_layout = KCP_TEXT_COORDINATES_ONLY};
  for (int i = 0; i < request->input_count; ++i) {
    enum kcp_status status =
        kcp_dataset_open(request->inputs[i], &options, &query->datasets[i], error);
    if (status != KCP_OK) return status;
  }
  query->reference = query->datasets[0];
  query->query = request->input_count == 1 ? query->datasets[0] : query->datasets[1];
  const uint32_t d = kcp_dataset_dimensions(query->reference);
  const uint32_t q = kcp_dataset_dimensions(query->query);
  if (d == q) return KCP_OK;
  return kcp_fail(error, KCP_BAD_INPUT,
                  "%s has %" PRIu32 " coordinates a record, %s has %" PRIu32
                  "; both files need the same (--columns chooses)",
                  request->inputs[0], d, request->inputs[1], q);
}

static enum kcp_status choose_algorithm(struct range_query *query, struct kcp_error *error) {
  struct kcp_backend_choice choice;
  struct kcp_result *result = &query->result;
  enum kcp_status status = kcp_choose_backend(query->request, &choice, error);
  if (status != KCP_OK) return status;
  result->backend = choice.backend;
  result->device = choice.device;
  result->no_gpu = choice.no_gpu;
  result->chosen = strcmp(query->request->algorithm, "auto") == 0;
  result->algorithm = result->chosen ? kcp_range_choose(choice.backend)
                                     : kcp_algorithm_find(query->request->algorithm);
  if ((result->algorithm->backends & choice.backend->kind) == 0 ||
      choice.backend->range_joins == NULL)
    return kcp_fail(error, KCP_UNAVAILABLE, "%s does not run on %s; use --device or another --algo",
                    result->algorithm->name, choice.backend->name);
  const enum kcp_range_method method = *(const enum kcp_range_method *)result->algorithm->variant;
  query->engine = choice.backend->range_joins[method];
  return KCP_OK;
}

static enum kcp_status find_eps(struct range_query *query, struct kcp_error *error) {
  const struct kcp_range_options *options = &query->request->range;
  struct kcp_range_result *facts = &query->facts_of_answer;
  facts->wanted_selectivity = options->selectivity;
  facts->eps_was_found = !isnan(options->selectivity);
  facts->eps = options->eps;
  facts->self = query->query == query->reference;
  facts->query_count = kcp_dataset_count(query->query);
  facts->reference_count = kcp_dataset_count(query->reference);
  enum kcp_status status = KCP_OK;
  if (facts->eps_was_found)
    status = kcp_range_find_eps(query->reference, query->query, options->selectivity, &facts->eps,
                                error);
  if (status == KCP_OK)
    status = kcp_range_scale(query->reference, query->query, facts->eps, &query->progress,
                             &query->result.scale_exponent, error);
  if (status != KCP_OK) return status;
  query->scaled_eps = ldexp(facts->eps, query->result.scale_exponent);
  kcp_dataset_set_scale(query->reference, query->result.scale_exponent);
  kcp_dataset_set_scale(query->query, query->result.scale_exponent);
  return KCP_OK;
}

/* Whether the pairs are wanted in host memory and not their counts alone. */
static bool keeps_pairs(const struct kcp_request *request) {
  return request->out_path != NULL || request->range.result != KCP_RESULT_COUNT;
}

static enum kcp_status make_plan(struct range_query *query, struct kcp_error *error) {
  const struct kcp_request *request = query->request;
  const struct kcp_result *result = &query->result;
  const bool on_cpu = result->backend->kind == KCP_BACKEND_CPU;
  const bool keeps = keeps_pairs(request);
  uint64_t memory = request->memory_bytes;
  if (memory == 0) memory = result->device.free_bytes / 10 * 9;
  /* Pairs are held in host memory, of which the CPU's join is a part. */
  query->pairs_budget = on_cpu ? memory / 2 : kcp_host_free_bytes() / 2;
  struct kcp_range_plan plan = {
      .method = *(const enum kcp_range_method *)result->algorithm->variant,
      .options = request->range,
      .eps = query->scaled_eps,
      .dimensions = kcp_dataset_dimensions(query->reference),
      .memory_bytes = on_cpu && keeps ? memory - query->pairs_budget : memory};
  if (keeps && plan.options.result == KCP_RESULT_COUNT) plan.options.result = KCP_RESULT_MASK;
  enum kcp_status status = query->engine->create(&plan, &result->device, &query->join, error);
  if (status == KCP_OK)
    status = kcp_range_runner_create(query->engine, query->join, query->reference, query->query,
                                     keeps, &query->progress, &query->runner, error);
  if (status != KCP_OK) return status;
  query->counts = calloc(query->facts_of_answer.query_count + 1, sizeof *query->counts);
  if (query->counts != NULL) return KCP_OK;
  return kcp_out_of_memory(error, "counts", query->facts_of_answer.query_count * 8);
}

static enum kcp_status open_outputs(struct range_query *query, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  if (query->request->out_path != NULL)
    status = kcp_range_writer_open(query->request->out_path, &query->out, error);
  if (status == KCP_OK) status = kcp_query_open_report(&query->ending, error);
  query->out.scale_exponent = query->result.scale_exponent;
  return status;
}

static bool wants_ranks(const struct range_query *query) {
  return query->request->out_path != NULL && kcp_range_writer_wants_ranks(&query->out);
}

/* Pairs that only --out can do with when they are too many for the memory. */
static enum kcp_status check_room(const struct range_query *query, struct kcp_error *error) {
  uint64_t count = 0;
  if (!query->pairs.overflowed || query->request->out_path != NULL) return KCP_OK;
  for (uint64_t i = 0; i < query->facts_of_answer.query_count; ++i) count += query->counts[i];
  return kcp_fail(error, KCP_FAILED,
                  "%s pairs take %s of host memory, and %s may be used; without --result they are "
                  "counted, --out writes them however many there are",
                  kcp_text_grouped(count).text,
                  kcp_text_bytes((double)count * (double)kcp_range_pair_bytes(false)).text,
                  kcp_text_bytes((double)query->pairs_budget).text);
}

/* One run from files to counts and, when they are wanted, to pairs in host memory as long as they
 * fit. Its pages are new in every run, as they are in the only run of most people. */
static enum kcp_status run_once(void *context, uint64_t number, struct kcp_measurement *measurement,
                                uint64_t *checksum, struct kcp_error *error) {
  struct range_query *query = context;
  struct kcp_range_work work = {0};
  const uint64_t warmup = query->request->warmup, query_count = query->facts_of_answer.query_count;
  struct kcp_range_pairs *pairs = NULL;
  enum kcp_status status = KCP_OK;
  kcp_range_pairs_free(&query->pairs);
  const double started = kcp_now();
  kcp_range_runner_rewind(&query->runner);
  if (keeps_pairs(query->request)) {
    pairs = &query->pairs;
    status = kcp_range_pairs_begin(0, query_count, query->runner.slice_count,
                                   query->runner.capacity.reference_records, wants_ranks(query),
                                   query->pairs_budget, UINT64_MAX, pairs, error);
  }
  if (status == KCP_OK)
    status = kcp_range_run(&query->runner, 0, query_count, query->counts, pairs, measurement, &work,
                           error);
  /* Without D there was nothing to join Q with, but a wrong file is still an error. */
  if (status == KCP_OK && query->facts_of_answer.reference_count == 0 && query_count > 0)
    status = kcp_scan(query->query, NULL, NULL, &query->progress, error);
  measurement->total_s = kcp_now() - started;
  if (status == KCP_OK) status = check_room(query, error);
  if (status != KCP_OK) return status;
  if (number >= warmup) query->facts_of_answer.works[number - warmup] = work;
  *checksum = kcp_range_checksum(query->counts, query_count);
  return KCP_OK;
}

static enum kcp_status search(struct range_query *query, struct kcp_error *error) {
  struct kcp_range_result *facts = &query->facts_of_answer;
  facts->works = calloc(query->request->runs, sizeof *facts->works);
  if (facts->works == NULL)
    return kcp_out_of_memory(error, "the measurements",
                             query->request->runs * sizeof *facts->works);
  enum kcp_status status = kcp_measure_runs(query->request, &query->result, run_once, query, error);
  kcp_progress_finish(&query->progress);
  if (status == KCP_INTERRUPTED)
    kcp_fail(error, status, "stopped at %.0f%%; nothing written", 100 * query->progress.fraction);
  return status;
}

static void take_facts(struct range_query *query) {
  struct kcp_range_result *facts = &query->facts_of_answer;
  struct kcp_result *result = &query->result;
  facts->pair_count = 0;
  for (uint64_t i = 0; i < facts->query_count; ++i) facts->pair_count += query->counts[i];
  if (keeps_pairs(query->request) && !query->pairs.overflowed)
    facts->held_bytes = query->pairs.count * kcp_range_pair_bytes(wants_ranks(query));
  result->range = facts;
  result->pair_count = facts->pair_count;
  result->possible_evaluations = (double)facts->query_count * (double)facts->reference_count;
  result->dataset_count = query->request->input_count;
  for (int i = 0; i < result->dataset_count; ++i)
    result->datasets[i] = kcp_dataset_facts_of(query->datasets[i]);
  result->parameter_count = query->engine->parameters(query->join, result->parameters);
  result->peak_host_bytes = kcp_peak_host_bytes();
}

static enum kcp_status verify(void *context, struct kcp_error *error) {
  struct range_query *query = context;
  return kcp_verify_range(query->reference, query->query, query->scaled_eps, query->counts, error);
}

/* The queries from `first` on whose pairs fit the budget together; at least one. */
static uint64_t window_of(const struct range_query *query, uint64_t first) {
  const uint64_t bytes = kcp_range_pair_bytes(wants_ranks(query));
  uint64_t end = first, left = query->pairs_budget / bytes;
  while (end < query->facts_of_answer.query_count && query->counts[end] <= left)
    left -= query->counts[end++];
  return end > first ? end - first : 1;
}

/* Pairs beyond the memory: joins again, for as many queries at a time as it holds. */
static enum kcp_status write_in_windows(struct range_query *query, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  struct kcp_measurement measurement = {0};
  struct kcp_range_work work = {0};
  for (uint64_t first = 0; first < query->facts_of_answer.query_count && status == KCP_OK;) {
    const uint64_t count = window_of(query, first);
    uint64_t pair_count = 0;
    struct kcp_range_pairs pairs;
    for (uint64_t i = 0; i < count; ++i) pair_count += query->counts[first + i];
    uint64_t *counts = calloc(count, sizeof *counts);
    if (counts == NULL) return kcp_out_of_memory(error, "counts", count * sizeof *counts);
    status = kcp_range_pairs_begin(first, count, query->runner.slice_count,
                                   query->runner.capacity.reference_records, wants_ranks(query),
                                   UINT64_MAX, pair_count, &pairs, error);
    if (status == KCP_OK)
      status =
          kcp_range_run(&query->runner, first, count, counts, &pairs, &measurement, &work, error);
    if (status == KCP_OK && pairs.overflowed)
      status = kcp_out_of_memory(error, "the neighbours of a query", query->pairs_budget);
    if (status == KCP_OK && memcmp(counts, query->counts + first, count * sizeof *counts) != 0)
      status = kcp_fail(error, KCP_WRONG_ANSWER, "wrong answer: two joins differ");
    if (status == KCP_OK) status = kcp_range_writer_add(&query->out, &query->runner, &pairs, error);
    kcp_range_pairs_free(&pairs);
    free(counts);
    first += count;
  }
  kcp_progress_finish(&query->progress);
  return status;
}

static enum kcp_status write_pairs(struct range_query *query, struct kcp_error *error) {
  if (query->request->out_path == NULL) return KCP_OK;
  enum kcp_status status =
      kcp_range_writer_begin(&query->out, &query->runner, query->facts_of_answer.pair_count, error);
  if (status != KCP_OK) return status;
  if (query->pairs.overflowed)
    status = write_in_windows(query, error);
  else
    status = kcp_range_writer_add(&query->out, &query->runner, &query->pairs, error);
  return status == KCP_OK ? kcp_range_writer_commit(&query->out, error) : status;
}

static enum kcp_status write_answer(void *context, struct kcp_error *error) {
  struct range_query *query = context;
  enum kcp_status status = write_pairs(query, error);
  if (status != KCP_OK) return status;
  kcp_range_write_counts(stdout, &query->facts_of_answer);
  return kcp_finish_stdout(error);
}

static enum kcp_status run(struct range_query *query, struct kcp_error *error) {
  enum kcp_status status = check_request(query->request, error);
  if (status == KCP_OK) status = open_files(query, error);
  if (status == KCP_OK) status = choose_algorithm(query, error);
  if (status == KCP_OK) status = find_eps(query, error);
  if (status == KCP_OK) status = open_outputs(query, error);
  if (status == KCP_OK) status = make_plan(query, error);
  if (status == KCP_OK) status = search(query, error);
  if (status != KCP_OK) return status;
  take_facts(query);
  query->ending.algorithm = query->result.algorithm;
  return kcp_query_end(&query->ending, error);
}

enum kcp_status kcp_range_query(const struct kcp_request *request, struct kcp_error *error) {
  struct range_query query = {.request = request};
  query.ending = (struct kcp_query_ending){.request = request,
                                           .result = &query.result,
                                           .query = &query,
                                           .verify = verify,
                                           .write_answer = write_answer};
  kcp_progress_start(&query.progress, kcp_shows_progress(request));
  enum kcp_status status = run(&query, error);
  kcp_range_writer_discard(&query.out);
  kcp_output_file_discard(&query.ending.report);
  kcp_range_pairs_free(&query.pairs);
  kcp_range_runner_free(&query.runner);
  if (query.join != NULL) query.engine->destroy(query.join);
  kcp_result_free(&query.result);
  free(query.facts_of_answer.works);
  free(query.counts);
  kcp_dataset_close(query.datasets[0]);
  kcp_dataset_close(query.datasets[1]);
  return status;
}

/* Results of configurations: made from the reports of queries, read for tables, kept in a file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kcp/bench.h"
#include "kcp/json_text.h"
#include "kcp/measurement.h"
#include "kcp/output_file.h"
#include "kcp/report.h"

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text != NULL ? text : "";
}

static double number_of(const json_t *object, const char *key, double otherwise) {
  const json_t *number = json_object_get(object, key);
  return json_is_number(number) ? json_number_value(number) : otherwise;
}

static enum kcp_bench_status status_of(const char *word) {
  static const char *const words[] = {"ok", "wrong", "skipped"};
  for (int i = 0; i < 3; ++i)
    if (strcmp(word, words[i]) == 0) return (enum kcp_bench_status)i;
  return KCP_BENCH_ERROR;
}

struct kcp_bench_figures kcp_bench_figures_of(const json_t *result, int phase) {
  const char *phase_name = phase == 0 ? "total" : kcp_phase_name((enum kcp_phase)(phase - 1));
  const json_t *statistics = json_object_get(json_object_get(result, "statistics"), phase_name);
  const json_t *answer = json_object_get(result, "answer");
  const json_t *work = json_object_get(result, "work");
  return (struct kcp_bench_figures){
      .status = status_of(text_of(result, "status")),
      .reason = text_of(result, "reason"),
      .algorithm = text_of(result, "algorithm"),
      .backend = text_of(result, "backend"),
      .checksum = text_of(answer, "checksum"),
      .checked = text_of(result, "checked"),
      .verified = json_is_true(json_object_get(answer, "verified")),
      .sample_count = statistics != NULL ? json_array_size(json_object_get(result, "samples")) : 0,
      .median_s = number_of(statistics, "median_s", 0),
      .minimum_s = number_of(statistics, "min_s", 0),
      .maximum_s = number_of(statistics, "max_s", 0),
      .distance_evaluations = number_of(work, "distance_evaluations", -1),
      .peak_host_bytes = number_of(result, "peak_host_bytes", 0),
      .peak_device_bytes = number_of(result, "peak_device_bytes", 0),
      .speedup = number_of(result, "speedup_over_first", 0)};
}

static json_t *options_of(const struct kcp_sweep *sweep, uint64_t number) {
  json_t *options = json_object();
  for (int i = 0; i < sweep->axis_count; ++i) {
    const char *value = kcp_sweep_value(sweep, i, number);
    json_object_set_new(options, sweep->axes[i].flag->name,
                        value != NULL ? kcp_json_text(value) : json_true());
  }
  return options;
}

static json_t *argv_of(const struct kcp_configuration *configuration) {
  json_t *argv = json_array();
  for (int i = 0; i < configuration->argument_count; ++i)
    json_array_append_new(argv, kcp_json_text(configuration->arguments[i]));
  return argv;
}

/* The result of a configuration that has no report. */
static json_t *result_without_report(const struct kcp_bench_outcome *outcome) {
  const char *status = outcome->status == KCP_WRONG_ANSWER ? "wrong"
                       : outcome->status == KCP_BAD_INPUT || outcome->status == KCP_UNAVAILABLE
                           ? "skipped"
                           : "error";
  json_t *result = json_object();
  json_object_set_new(result, "algorithm", json_null());
  json_object_set_new(result, "backend", json_null());
  json_object_set_new(result, "status", json_string(status));
  json_object_set_new(result, "reason", kcp_json_text(outcome->reason));
  return result;
}

json_t *kcp_bench_result(const struct kcp_sweep *sweep, uint64_t number,
                         const struct kcp_configuration *configuration,
                         struct kcp_bench_outcome *outcome) {
  json_t *report = outcome->report;
  json_t *result = json_array_get(json_object_get(report, "results"), 0);
  result = result != NULL ? json_incref(result) : result_without_report(outcome);
  json_object_set_new(result, "argv", argv_of(configuration));
  json_object_set_new(result, "options", options_of(sweep, number));
  json_object_set(result, "date", json_object_get(json_object_get(report, "context"), "date"));
  json_object_set(result, "revision", json_object_get(json_object_get(report, "tool"), "revision"));
  json_object_set_new(result, "checked", json_null());
  json_object_set_new(result, "speedup_over_first", json_null());
  return result;
}

enum kcp_status kcp_bench_read(const char *path, json_t **report, struct kcp_error *error) {
  json_error_t problem;
  *report = NULL;
  if (access(path, F_OK) != 0 && errno == ENOENT)
    return kcp_fail(error, KCP_UNAVAILABLE, "%s: %s", path, strerror(ENOENT));
  json_t *root = json_load_file(path, 0, &problem);
  if (root == NULL)
    return kcp_fail(error, KCP_BAD_INPUT, "%s: line %d: %s", path, problem.line, problem.text);
  json_t *results = json_object_get(root, "results"), *result;
  bool is_bench =
      json_is_array(results) &&
      json_integer_value(json_object_get(root, "schema_version")) == KCP_REPORT_SCHEMA_VERSION;
  size_t i;
  json_array_foreach(results, i, result) is_bench &=
      json_is_array(json_object_get(result, "argv")) &&
      json_is_object(json_object_get(result, "options"));
  if (!is_bench) {
    json_decref(root);
    return kcp_fail(error, KCP_BAD_INPUT, "%s: not a report of kcp bench (--json) of this version",
                    path);
  }
  *report = root;
  return KCP_OK;
}

json_t *kcp_bench_find(const json_t *report, const struct kcp_configuration *configuration) {
  json_t *argv = argv_of(configuration), *result, *found = NULL;
  size_t i;
  json_array_foreach(json_object_get(report, "results"), i, result) {
    struct kcp_bench_figures figures = kcp_bench_figures_of(result, 0);
    if (figures.status == KCP_BENCH_OK && json_equal(json_object_get(result, "argv"), argv))
      found = result;
  }
  json_decref(argv);
  return found;
}

enum kcp_status kcp_bench_write(const char *path, const json_t *report, struct kcp_error *error) {
  struct kcp_output_file file;
  enum kcp_status status = kcp_output_file_open(path, &file, error);
  if (status != KCP_OK) return status;
  bool written = json_dumpf(report, file.stream, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) == 0 &&
                 fputc('\n', file.stream) != EOF;
  status = written ? kcp_output_file_commit(&file, error)
                   : kcp_fail(error, KCP_FAILED, "%s: the report could not be written", path);
  kcp_output_file_discard(&file);
  return status;
}

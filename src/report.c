#include "kcp/report.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kcp/influence_what_if.h"
#include "kcp/json_text.h"
#include "kcp_version.h"
#include "range_report.h"

/* jansson's integers are signed: what exceeds them becomes a real. */
static json_t *counter(uint64_t value) {
  return value <= INT64_MAX ? json_integer((json_int_t)value) : json_real((double)value);
}

/* null for what JSON has no number for. */
static json_t *real(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

static json_t *text(const char *value) {
  return kcp_json_text(value);
}

static json_t *tool(void) {
  json_t *object = json_object();
  json_object_set_new(object, "name", text("kcp"));
  json_object_set_new(object, "version", text(KCP_VERSION));
  json_object_set_new(object, "revision", text(KCP_REVISION));
  json_object_set_new(object, "build_flags", text(KCP_BUILD_FLAGS));
  json_object_set_new(object, "cuda",
                      KCP_CUDA_VERSION[0] != '\0' ? text(KCP_CUDA_VERSION) : json_null());
  return object;
}

static json_t *context(const struct kcp_request *request, const struct kcp_result *result) {
  char host[256] = "", date[32] = "";
  time_t now = time(NULL);
  struct tm utc;
  struct kcp_error ignored;
  struct kcp_device_info cpu;
  memset(&cpu, 0, sizeof cpu);
  kcp_backend_cpu()->probe(0, &cpu, &ignored);
  gethostname(host, sizeof host - 1);
  if (gmtime_r(&now, &utc) != NULL) strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
  bool on_gpu = result->backend != NULL && result->backend->kind == KCP_BACKEND_CUDA;

  json_t *object = json_object(), *arguments = json_array();
  for (int i = 0; i < request->argument_count; ++i)
    json_array_append_new(arguments, text(request->arguments[i]));
  json_object_set_new(object, "argv", arguments);
  json_object_set_new(object, "date", text(date));
  json_object_set_new(object, "host", text(host));
  json_object_set_new(object, "cpu", text(cpu.name));
  json_object_set_new(object, "cpu_threads", counter(cpu.units));
  json_object_set_new(object, "host_memory_bytes", counter(cpu.memory_bytes));
  json_object_set_new(object, "gpu", on_gpu ? text(result->device.name) : json_null());
  json_object_set_new(object, "driver", on_gpu ? text(result->device.driver) : json_null());
  json_object_set_new(object, "device_memory_bytes",
                      on_gpu ? counter(result->device.memory_bytes) : json_null());
  json_object_set_new(object, "device_startup_s",
                      on_gpu ? real(result->device.startup_seconds) : json_null());
  return object;
}

/* The array of a top-k query. */
static json_t *value_array(const struct kcp_value_array_facts *facts) {
  json_t *object = json_object();
  json_object_set_new(object, "role", text("values"));
  json_object_set_new(object, "path", text(facts->path));
  json_object_set_new(object, "format", text(facts->format));
  json_object_set_new(object, "type", text(kcp_value_type_name(facts->type)));
  json_object_set_new(object, "rows", counter(facts->rows));
  json_object_set_new(object, "n", counter(facts->columns));
  json_object_set_new(object, "file_bytes", counter(facts->file_bytes));
  return object;
}

static json_t *datasets(const struct kcp_result *result) {
  json_t *array = json_array();
  if (result->top_k != NULL) json_array_append_new(array, value_array(&result->top_k->array));
  for (int i = 0; i < result->dataset_count; ++i) {
    const struct kcp_dataset_facts *facts = &result->datasets[i];
    json_t *object = json_object();
    json_object_set_new(object, "role", text(i == 0 ? "D1" : "D2"));
    json_object_set_new(object, "path", text(facts->path));
    json_object_set_new(object, "format", text(facts->format));
    json_object_set_new(object, "n", counter(facts->count));
    json_object_set_new(object, "d", counter(facts->dimensions));
    json_object_set_new(object, "file_bytes", counter(facts->file_bytes));
    json_array_append_new(array, object);
  }
  return array;
}

static json_t *parameters(const struct kcp_request *request, const struct kcp_result *result) {
  char metric[16];
  json_t *object = json_object();
  kcp_metric_name(request->metric, metric);
  json_object_set_new(object, "k", counter(request->k));
  json_object_set_new(object, "metric", text(metric));
  json_object_set_new(object, "self", json_boolean(request->self));
  json_object_set_new(object, "max-distance", real(request->max_distance));
  json_object_set_new(object, "memory_bytes",
                      request->memory_bytes > 0 ? counter(request->memory_bytes) : json_null());
  json_object_set_new(object, "scale_exponent", json_integer(result->scale_exponent));
  for (size_t i = 0; i < result->parameter_count; ++i) {
    const struct kcp_parameter *parameter = &result->parameters[i];
    json_object_set_new(object, parameter->name,
                        parameter->is_number ? counter(strtoull(parameter->value, NULL, 10))
                                             : text(parameter->value));
  }
  return object;
}

static json_t *top_k_parameters(const struct kcp_request *request,
                                const struct kcp_result *result) {
  json_t *object = json_object();
  json_object_set_new(object, "k", counter(request->k));
  json_object_set_new(object, "order",
                      text(result->top_k->order == KCP_LARGEST_FIRST ? "largest" : "smallest"));
  json_object_set_new(object, "memory_bytes",
                      request->memory_bytes > 0 ? counter(request->memory_bytes) : json_null());
  return object;
}

static json_t *statistics(struct kcp_statistics values) {
  json_t *object = json_object();
  json_object_set_new(object, "median_s", real(values.median));
  json_object_set_new(object, "min_s", real(values.minimum));
  json_object_set_new(object, "max_s", real(values.maximum));
  json_object_set_new(object, "mean_s", real(values.mean));
  json_object_set_new(object, "stddev_s", real(values.deviation));
  return object;
}

/* "kernel_s" from "kernel". */
static void set_seconds(json_t *object, const char *phase, json_t *value) {
  char key[32];
  snprintf(key, sizeof key, "%s_s", phase);
  json_object_set_new(object, key, value);
}

static json_t *sample(const struct kcp_measurement *measurement) {
  json_t *object = json_object();
  for (int phase = 0; phase < KCP_PHASE_COUNT; ++phase)
    set_seconds(object, kcp_phase_name((enum kcp_phase)phase), real(measurement->phase_s[phase]));
  set_seconds(object, "total", real(measurement->total_s));
  return object;
}

/* Medians as plain numbers, all samples, and the statistics of each phase. */
static void set_times(json_t *object, const struct kcp_result *result) {
  json_t *phases = json_object(), *samples = json_array(), *all = json_object();
  for (size_t i = 0; i < result->sample_count; ++i)
    json_array_append_new(samples, sample(&result->samples[i]));
  if (result->sample_count > 0) {
    for (int phase = 0; phase < KCP_PHASE_COUNT; ++phase) {
      const char *name = kcp_phase_name((enum kcp_phase)phase);
      struct kcp_statistics values = kcp_result_phase(result, (enum kcp_phase)phase);
      set_seconds(phases, name, real(values.median));
      json_object_set_new(all, name, statistics(values));
    }
    set_seconds(phases, "total", real(kcp_result_total(result).median));
    json_object_set_new(all, "total", statistics(kcp_result_total(result)));
  }
  json_object_set_new(object, "phases", phases);
  json_object_set_new(object, "warmup", counter(result->warmup_count));
  json_object_set_new(object, "samples", samples);
  json_object_set_new(object, "statistics", all);
}

static json_t *work(const struct kcp_result *result) {
  static const struct kcp_measurement nothing;
  const struct kcp_measurement *last =
      result->sample_count > 0 ? &result->samples[result->sample_count - 1] : &nothing;
  double evaluated = (double)last->distance_evaluations;
  json_t *object = json_object();
  if (result->influence != NULL)
    json_object_set_new(object, "distance_evaluations", counter(last->distance_evaluations));
  else if (result->top_k == NULL) {
    json_object_set_new(object, "distance_evaluations", counter(last->distance_evaluations));
    json_object_set_new(object, "possible_evaluations", real(result->possible_evaluations));
    json_object_set_new(object, "pruned_fraction",
                        result->possible_evaluations > 0
                            ? real(fmax(0, 1 - evaluated / result->possible_evaluations))
                            : json_null());
  }
  json_object_set_new(object, "read_bytes", counter(last->bytes_read));
  json_object_set_new(object, "h2d_bytes", counter(last->bytes_uploaded));
  json_object_set_new(object, "d2h_bytes", counter(last->bytes_downloaded));
  return object;
}

/* A value as JSON has it: a number, or null when it is not finite. */
static json_t *value(enum kcp_value_type type, union kcp_value number) {
  if (!kcp_value_is_finite(type, number)) return json_null();
  switch (type) {
    case KCP_VALUE_F32: return json_real((double)number.f32);
    case KCP_VALUE_F64: return json_real(number.f64);
    case KCP_VALUE_I32: return json_integer(number.i32);
    case KCP_VALUE_U32: return json_integer(number.u32);
    default: return json_integer(number.i64);
  }
}

static json_t *top_k_answer(const struct kcp_result *result) {
  char checksum[24];
  const struct kcp_top_k_result *top_k = result->top_k;
  json_t *object = json_object();
  snprintf(checksum, sizeof checksum, "%016llx", (unsigned long long)result->checksum);
  json_object_set_new(object, "values", counter(top_k->value_count));
  json_object_set_new(object, "nan", counter(top_k->nan_count));
  if (!top_k->array.has_rows) {
    const struct kcp_top_k_certificate *certificate = &top_k->answer->certificates[0];
    json_object_set_new(
        object, "kth_value",
        certificate->count > 0 ? value(top_k->array.type, certificate->last) : json_null());
    json_object_set_new(object, "above_kth", counter(certificate->above));
    json_object_set_new(object, "equal_to_kth", counter(certificate->equal));
  }
  json_object_set_new(object, "checksum", text(checksum));
  json_object_set_new(object, "verified", json_boolean(result->verified));
  return object;
}

static json_t *influence_parameters(const struct kcp_influence_result *influence) {
  static const char *const methods[] = {"sparse", "pairs"}, *const kinds[] = {"density", "count"};
  const struct kcp_influence_options *options = influence->options;
  json_t *object = json_object(), *domain = json_array(), *weights = json_array();
  const double corners[] = {influence->domain.x0, influence->domain.y0, influence->domain.x1,
                            influence->domain.y1};
  for (int i = 0; i < 4; ++i) json_array_append_new(domain, real(corners[i]));
  for (uint32_t i = 0; i < options->min_weights.count; ++i)
    json_array_append_new(weights, real(options->min_weights.values[i]));
  json_object_set_new(object, "k", counter(influence->k[0]));
  json_object_set_new(object, "k2", counter(influence->k[1]));
  json_object_set_new(object, "p_chosen", counter(influence->files[0]->chosen_count));
  json_object_set_new(object, "q_chosen", counter(influence->files[1]->chosen_count));
  json_object_set_new(object, "min_weights", weights);
  json_object_set_new(object, "method", text(methods[options->method]));
  json_object_set_new(object, "grid_rows", counter(options->grid.rows));
  json_object_set_new(object, "grid_columns", counter(options->grid.columns));
  json_object_set_new(object, "domain", domain);
  json_object_set_new(object, "density",
                      options->density_path != NULL ? text(options->density_path) : json_null());
  json_object_set_new(object, "density-is", text(kinds[options->density_is]));
  json_object_set_new(object, "total_weight", real(influence->total_weight));
  json_object_set_new(object, "outside_weight", real(influence->outside_weight));
  json_object_set_new(object, "nodata", counter(influence->nodata_count));
  json_object_set_new(object, "tolerance",
                      options->tolerance > 0 ? real(options->tolerance) : json_null());
  json_object_set_new(object, "decide", json_boolean(options->decide));
  return object;
}

static json_t *what_if(const struct kcp_influence_difference *difference) {
  if (difference == NULL) return json_null();
  json_t *object = json_object();
  json_object_set_new(object, "gained", counter(difference->counts[KCP_CHANGE_GAINED]));
  json_object_set_new(object, "lost", counter(difference->counts[KCP_CHANGE_LOST]));
  json_object_set_new(object, "changed", counter(difference->counts[KCP_CHANGE_AREA]));
  json_object_set_new(object, "affected_cells", counter(difference->cells));
  return object;
}

static json_t *influence_answer(const struct kcp_result *result) {
  char checksum[24];
  const struct kcp_influence_result *influence = result->influence;
  const uint32_t weights = influence->options->min_weights.count;
  json_t *object = json_object(), *counts = json_array();
  snprintf(checksum, sizeof checksum, "%016llx", (unsigned long long)result->checksum);
  for (uint32_t i = 0; i < (weights > 0 ? weights : 1); ++i)
    json_array_append_new(counts, counter(influence->answer_counts[i]));
  json_object_set_new(object, influence->kind == KCP_INFLUENCE_PAIRS ? "pairs" : "partners",
                      counts);
  json_object_set_new(object, "splits", counter(influence->depth));
  json_object_set_new(object, "undecided_pairs", counter(influence->undecided));
  json_object_set_new(object, "widest_bounds", real(influence->widest));
  json_object_set_new(object, "what_if", what_if(influence->difference));
  json_object_set_new(object, "checksum", text(checksum));
  json_object_set_new(object, "verified", json_boolean(result->verified));
  return object;
}

static json_t *answer(const struct kcp_result *result) {
  char checksum[24];
  json_t *object = json_object();
  snprintf(checksum, sizeof checksum, "%016llx", (unsigned long long)result->checksum);
  json_object_set_new(object, "pairs", counter(result->pair_count));
  json_object_set_new(object, "zero_distance_pairs", counter(result->zero_count));
  json_object_set_new(object, "kth_distance",
                      result->pair_count > 0 ? real(result->last_distance) : json_null());
  json_object_set_new(object, "checksum", text(checksum));
  json_object_set_new(object, "verified", json_boolean(result->verified));
  return object;
}

static json_t *any_parameters(const struct kcp_request *request, const struct kcp_result *result) {
  if (result->top_k != NULL) return top_k_parameters(request, result);
  if (result->influence != NULL) return influence_parameters(result->influence);
  if (result->range != NULL) return kcp_range_report_parameters(request, result);
  return parameters(request, result);
}

static json_t *any_answer(const struct kcp_result *result) {
  if (result->top_k != NULL) return top_k_answer(result);
  if (result->influence != NULL) return influence_answer(result);
  return result->range != NULL ? kcp_range_report_answer(result) : answer(result);
}

static json_t *one_result(const struct kcp_request *request, const struct kcp_result *result) {
  json_t *object = json_object();
  bool wrong = result->status == KCP_RESULT_WRONG;
  uint64_t device_bytes =
      result->sample_count > 0 ? result->samples[result->sample_count - 1].peak_device_bytes : 0;
  json_object_set_new(object, "algorithm",
                      result->algorithm != NULL ? text(result->algorithm->name) : json_null());
  json_object_set_new(object, "backend",
                      result->backend != NULL ? text(result->backend->name) : json_null());
  json_object_set_new(object, "datasets", datasets(result));
  json_object_set_new(object, "parameters", any_parameters(request, result));
  json_object_set_new(object, "status", text(wrong ? "wrong" : "ok"));
  json_object_set_new(object, "reason", wrong ? text(result->reason) : json_null());
  set_times(object, result);
  json_object_set_new(object, "work", work(result));
  json_object_set_new(object, "peak_device_bytes", counter(device_bytes));
  json_object_set_new(object, "floor_s", result->floor_s > 0 ? real(result->floor_s) : json_null());
  json_object_set_new(object, "peak_host_bytes", counter(result->peak_host_bytes));
  if (result->range != NULL)
    json_object_set_new(object, "range_join", kcp_range_report_work(result));
  json_object_set_new(object, "answer", any_answer(result));
  return object;
}

enum kcp_status kcp_report_write(FILE *stream, const struct kcp_request *request,
                                 const struct kcp_result *results, size_t count,
                                 struct kcp_error *error) {
  json_t *report = json_object(), *array = json_array();
  json_object_set_new(report, "schema_version", json_integer(KCP_REPORT_SCHEMA_VERSION));
  json_object_set_new(report, "tool", tool());
  json_object_set_new(report, "context", context(request, &results[0]));
  for (size_t i = 0; i < count; ++i) json_array_append_new(array, one_result(request, &results[i]));
  json_object_set_new(report, "results", array);
  bool written = json_dumpf(report, stream, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) == 0 &&
                 fputc('\n', stream) != EOF;
  json_decref(report);
  if (!written) return kcp_fail(error, KCP_FAILED, "the report could not be written");
  return KCP_OK;
}

/* What is told about a range join: counts on stdout, lines of the summary, objects of the report.
 */
#include "range_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "kcp/statistics.h"
#include "kcp/text.h"

#define FNV_OFFSET UINT64_C(14695981039346656037)
#define FNV_PRIME UINT64_C(1099511628211)

uint64_t kcp_range_pairs_without_self(const struct kcp_range_result *range) {
  return range->self ? range->pair_count - range->query_count : range->pair_count;
}

double kcp_range_selectivity(const struct kcp_range_result *range) {
  if (range->query_count == 0) return 0;
  return (double)kcp_range_pairs_without_self(range) / (double)range->query_count;
}

uint64_t kcp_range_checksum(const uint64_t *counts, uint64_t count) {
  uint64_t hash = FNV_OFFSET;
  for (uint64_t i = 0; i < count; ++i)
    for (int byte = 0; byte < 8; ++byte)
      hash = (hash ^ (counts[i] >> (8 * byte) & 0xff)) * FNV_PRIME;
  return hash;
}

void kcp_range_write_counts(FILE *stream, const struct kcp_range_result *range) {
  fprintf(stream, "name,value\npairs,%" PRIu64 "\n", range->pair_count);
  if (range->self)
    fprintf(stream, "pairs_without_self,%" PRIu64 "\n", kcp_range_pairs_without_self(range));
  fprintf(stream, "selectivity,%.17g\neps,%.17g\n", kcp_range_selectivity(range), range->eps);
}

void kcp_range_summary(FILE *stream, const struct kcp_result *result) {
  const struct kcp_range_result *range = result->range;
  fprintf(stream, "  %s pair%s within %.6g", kcp_text_grouped(range->pair_count).text,
          range->pair_count == 1 ? "" : "s", range->eps);
  if (range->self)
    fprintf(stream, ", %s without self",
            kcp_text_grouped(kcp_range_pairs_without_self(range)).text);
  fprintf(stream, ", selectivity %.6g", kcp_range_selectivity(range));
  if (range->eps_was_found) fprintf(stream, " (%.6g wanted)", range->wanted_selectivity);
  if (range->held_bytes > 0)
    fprintf(stream, ", %s in host memory", kcp_text_bytes((double)range->held_bytes).text);
  fputs(result->verified ? ", verified\n" : "\n", stream);
}

static struct kcp_statistics phase_statistics(const struct kcp_result *result,
                                              enum kcp_range_phase phase) {
  const struct kcp_range_work *works = result->range->works;
  _Static_assert(sizeof *works % sizeof(double) == 0, "a whole number of doubles apart");
  return kcp_statistics_of(&works[0].phase_s[phase], sizeof *works / sizeof(double),
                           result->sample_count, result->scratch);
}

json_t *kcp_range_report_parameters(const struct kcp_request *request,
                                    const struct kcp_result *result) {
  json_t *object = json_object();
  const struct kcp_range_result *range = result->range;
  json_object_set_new(object, "eps", json_real(range->eps));
  json_object_set_new(object, "selectivity",
                      range->eps_was_found ? json_real(range->wanted_selectivity) : json_null());
  json_object_set_new(object, "self", json_boolean(range->self));
  json_object_set_new(
      object, "memory_bytes",
      request->memory_bytes > 0 ? json_integer((json_int_t)request->memory_bytes) : json_null());
  json_object_set_new(object, "scale_exponent", json_integer(result->scale_exponent));
  for (size_t i = 0; i < result->parameter_count; ++i) {
    const struct kcp_parameter *parameter = &result->parameters[i];
    json_object_set_new(object, parameter->name,
                        parameter->is_number
                            ? json_integer((json_int_t)strtoll(parameter->value, NULL, 10))
                            : json_string(parameter->value));
  }
  return object;
}

json_t *kcp_range_report_answer(const struct kcp_result *result) {
  const struct kcp_range_result *range = result->range;
  char checksum[24];
  json_t *object = json_object();
  snprintf(checksum, sizeof checksum, "%016" PRIx64, result->checksum);
  json_object_set_new(object, "pairs", json_integer((json_int_t)range->pair_count));
  json_object_set_new(object, "pairs_without_self",
                      json_integer((json_int_t)kcp_range_pairs_without_self(range)));
  json_object_set_new(object, "selectivity", json_real(kcp_range_selectivity(range)));
  json_object_set_new(object, "eps", json_real(range->eps));
  json_object_set_new(object, "checksum", json_string(checksum));
  json_object_set_new(object, "verified", json_boolean(result->verified));
  return object;
}

json_t *kcp_range_report_work(const struct kcp_result *result) {
  json_t *object = json_object(), *phases = json_object();
  if (result->sample_count > 0) {
    const struct kcp_range_work *last = &result->range->works[result->sample_count - 1];
    json_object_set_new(object, "batches", json_integer((json_int_t)last->batches));
    json_object_set_new(object, "primitives", json_integer((json_int_t)last->primitives));
    json_object_set_new(object, "intersections", json_integer((json_int_t)last->intersections));
    json_object_set_new(object, "rechecks", json_integer((json_int_t)last->rechecks));
    json_object_set_new(object, "held_bytes", json_integer((json_int_t)result->range->held_bytes));
    for (int phase = 0; phase < KCP_RANGE_PHASE_COUNT; ++phase) {
      char key[32];
      snprintf(key, sizeof key, "%s_s", kcp_range_phase_name((enum kcp_range_phase)phase));
      json_object_set_new(phases, key,
                          json_real(phase_statistics(result, (enum kcp_range_phase)phase).median));
    }
  }
  json_object_set_new(object, "phases", phases);
  return object;
}

void kcp_range_summary_phases(FILE *stream, const struct kcp_result *result) {
  const struct kcp_range_work *last = &result->range->works[result->sample_count - 1];
  bool any = false;
  for (int phase = 0; phase < KCP_RANGE_PHASE_COUNT; ++phase) {
    const double seconds = phase_statistics(result, (enum kcp_range_phase)phase).median;
    if (seconds < 1e-4) continue;
    fprintf(stream, "%s%s %s", any ? "   " : "  ",
            kcp_range_phase_name((enum kcp_range_phase)phase), kcp_text_duration(seconds).text);
    any = true;
  }
  if (any) fputs("\n", stream);
  if (last->intersections == 0) return;
  fprintf(stream, "  %s primitives, %s intersections, %s batch%s\n",
          kcp_text_grouped(last->primitives).text, kcp_text_grouped(last->intersections).text,
          kcp_text_grouped(last->batches).text, last->batches == 1 ? "" : "es");
}

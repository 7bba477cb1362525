#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kcp/report.h"
#include "kcp/text.h"
#include "kcp_version.h"
#include "range_report.h"

#define SHORTEST_SHOWN_SECONDS 1e-6

static const char *file_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

static void print_dataset(FILE *stream, const struct kcp_result *result, int number, int name_width,
                          int count_width) {
  const struct kcp_dataset_facts *facts = &result->datasets[number];
  fprintf(stream, "  D%d  %-*s  %*s points, %" PRIu32 "-D, %s\n", number + 1, name_width,
          file_name(facts->path), count_width, kcp_text_grouped(facts->count).text,
          facts->dimensions, kcp_text_bytes((double)facts->file_bytes).text);
}

static void print_choice(FILE *stream, const struct kcp_result *result) {
  fprintf(stream, "kcp %s: ", KCP_VERSION);
  if (result->algorithm == NULL) {
    fputs("nothing to search\n", stream);
    return;
  }
  fprintf(stream, "%s%s on ", result->chosen ? "auto chose " : "", result->algorithm->name);
  if (result->backend->kind == KCP_BACKEND_CUDA)
    fprintf(stream, "cuda:%d, %s", result->device.index, result->device.name);
  else
    fprintf(stream, "cpu, %" PRIu32 " thread%s", result->device.units,
            result->device.units == 1 ? "" : "s");
  fputs(result->no_gpu ? " (no GPU found)\n" : "\n", stream);
}

static void print_value_array(FILE *stream, const struct kcp_value_array_facts *facts) {
  fprintf(stream, "  %s  ", file_name(facts->path));
  if (facts->has_rows) fprintf(stream, "%s rows of ", kcp_text_grouped(facts->rows).text);
  fprintf(stream, "%s values, %s, %s\n", kcp_text_grouped(facts->columns).text,
          kcp_value_type_name(facts->type), kcp_text_bytes((double)facts->file_bytes).text);
}

void kcp_summary_begin(FILE *stream, const struct kcp_result *result) {
  int name_width = 0, count_width = 0;
  print_choice(stream, result);
  if (result->top_k != NULL) print_value_array(stream, &result->top_k->array);
  for (int i = 0; i < result->dataset_count; ++i) {
    int name = (int)strlen(file_name(result->datasets[i].path));
    int count = (int)strlen(kcp_text_grouped(result->datasets[i].count).text);
    if (name > name_width) name_width = name;
    if (count > count_width) count_width = count;
  }
  for (int i = 0; i < result->dataset_count; ++i)
    print_dataset(stream, result, i, name_width, count_width);
  if (result->influence != NULL) kcp_influence_summary_begin(stream, result->influence);
}

static void print_pairs(FILE *stream, const struct kcp_result *result) {
  fprintf(stream, "  %s pair%s", kcp_text_grouped(result->pair_count).text,
          result->pair_count == 1 ? "" : "s");
  if (result->pair_count > 0)
    fprintf(stream, ", %s at distance 0, k-th distance %.3g",
            kcp_text_grouped(result->zero_count).text, result->last_distance);
  if (result->verified) fputs(", verified", stream);
  fputs("\n", stream);
}

/* The certificate: what proves the answer of an array. */
static void print_values(FILE *stream, const struct kcp_result *result) {
  const struct kcp_top_k_result *top_k = result->top_k;
  const struct kcp_top_k_certificate *certificate = &top_k->answer->certificates[0];
  fprintf(stream, "  %s value%s", kcp_text_grouped(top_k->value_count).text,
          top_k->value_count == 1 ? "" : "s");
  if (top_k->array.has_rows)
    fprintf(stream, " of %s rows", kcp_text_grouped(top_k->array.rows).text);
  else if (certificate->count > 0)
    fprintf(stream, ", k-th value %s, %s above it, %s equal to it",
            kcp_value_text(top_k->array.type, certificate->last).text,
            kcp_text_grouped(certificate->above).text, kcp_text_grouped(certificate->equal).text);
  fprintf(stream, ", %s NaN", kcp_text_grouped(top_k->nan_count).text);
  if (result->verified) fputs(", verified", stream);
  fputs("\n", stream);
}

/* The words of the summary for the phases of the report. */
static const char *const phase_words[KCP_PHASE_COUNT] = {"read",   "upload",   "index",
                                                         "search", "download", "merge"};

static void print_phases(FILE *stream, const struct kcp_result *result) {
  fputs("  ", stream);
  for (int phase = 0; phase < KCP_PHASE_COUNT; ++phase) {
    double seconds = kcp_result_phase(result, (enum kcp_phase)phase).median;
    if (seconds >= SHORTEST_SHOWN_SECONDS)
      fprintf(stream, "%s %s   ", phase_words[phase], kcp_text_duration(seconds).text);
  }
  struct kcp_statistics total = kcp_result_total(result);
  fprintf(stream, "total %s\n", kcp_text_duration(total.median).text);
  if (result->floor_s > 0)
    fprintf(stream, "  reading%s all bytes alone %s\n",
            result->backend->kind == KCP_BACKEND_CUDA ? " and uploading" : "",
            kcp_text_duration(result->floor_s).text);
  if (result->sample_count > 1)
    fprintf(stream, "  %zu runs: median %s, min %s, max %s, deviation %s\n", result->sample_count,
            kcp_text_duration(total.median).text, kcp_text_duration(total.minimum).text,
            kcp_text_duration(total.maximum).text, kcp_text_duration(total.deviation).text);
}

static void print_work(FILE *stream, const struct kcp_result *result) {
  const struct kcp_measurement *last = &result->samples[result->sample_count - 1];
  if (result->influence != NULL)
    fprintf(stream, "  %s distances and bounds evaluated ",
            kcp_text_amount((double)last->distance_evaluations).text);
  else if (result->top_k == NULL) {
    double evaluated = (double)last->distance_evaluations;
    fprintf(stream, "  %s distances evaluated of %s", kcp_text_amount(evaluated).text,
            kcp_text_amount(result->possible_evaluations).text);
    double percent = 100 * evaluated / result->possible_evaluations;
    fprintf(stream, percent < 9.95 ? " (%.2g%%) " : " (%.0f%%) ", percent);
  }
  fprintf(stream, "  peak memory %s", kcp_text_bytes((double)result->peak_host_bytes).text);
  if (last->peak_device_bytes > 0)
    fprintf(stream, ", device %s", kcp_text_bytes((double)last->peak_device_bytes).text);
  fputs("\n", stream);
}

void kcp_summary_end(FILE *stream, const struct kcp_request *request,
                     const struct kcp_result *result) {
  if (result->top_k != NULL)
    print_values(stream, result);
  else if (result->influence != NULL)
    kcp_influence_summary_end(stream, result->influence, result->verified);
  else if (result->range != NULL)
    kcp_range_summary(stream, result);
  else
    print_pairs(stream, result);
  if (request->out_path != NULL) fprintf(stream, "  written to %s\n", request->out_path);
  if (result->sample_count == 0) return;
  print_phases(stream, result);
  if (result->range != NULL) kcp_range_summary_phases(stream, result);
  print_work(stream, result);
}

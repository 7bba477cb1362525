/* Two reports of bench side by side. A difference counts when it is beyond the spread: all runs of
 * one are on one side of all runs of the other. */
#include <stdlib.h>
#include <string.h>

#include "kcp/bench.h"
#include "kcp/commands.h"
#include "kcp/measurement.h"

enum { LEAST_SAMPLES = 3, LONGEST_LABEL = 512 };

/* "dspp-pea k=20 buffer=heap D1.bin D2.bin", without the folders of the files. */
static void write_label(char *label, const json_t *result) {
  FILE *stream = fmemopen(label, LONGEST_LABEL, "w");
  label[0] = '\0';
  if (stream == NULL) return;
  const char *name;
  json_t *options = json_object_get(result, "options"), *value, *word;
  const char *algorithm = json_string_value(json_object_get(options, "algo"));
  fputs(algorithm != NULL ? algorithm : "auto", stream);
  json_object_foreach(options, name, value) {
    if (strcmp(name, "algo") == 0 || strcmp(name, "runs") == 0 || strcmp(name, "warmup") == 0 ||
        strcmp(name, "run-time") == 0)
      continue;
    fprintf(stream, " %s", name);
    if (json_is_string(value)) fprintf(stream, "=%s", json_string_value(value));
  }
  json_t *datasets = json_object_get(result, "datasets");
  size_t i;
  json_array_foreach(datasets, i, word) {
    const char *path = json_string_value(json_object_get(word, "path"));
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    if (path != NULL) fprintf(stream, " %s", slash != NULL ? slash + 1 : path);
  }
  fclose(stream);
}

/* The result of the report with that label and a time; NULL when there is none. */
static const json_t *find_label(const json_t *report, const char *label) {
  json_t *result;
  size_t i;
  json_array_foreach(json_object_get(report, "results"), i, result) {
    char other[LONGEST_LABEL];
    write_label(other, result);
    if (strcmp(other, label) == 0 && kcp_bench_figures_of(result, 0).sample_count > 0)
      return result;
  }
  return NULL;
}

enum verdict { SAME, FASTER, SLOWER, TOO_FEW_RUNS, DIFFERENT_ANSWER };

static enum verdict judge(const struct kcp_bench_figures *a, const struct kcp_bench_figures *b) {
  if (strcmp(a->checksum, b->checksum) != 0) return DIFFERENT_ANSWER;
  if (a->sample_count < LEAST_SAMPLES || b->sample_count < LEAST_SAMPLES) return TOO_FEW_RUNS;
  if (b->minimum_s > a->maximum_s) return SLOWER;
  return b->maximum_s < a->minimum_s ? FASTER : SAME;
}

static double spread(const struct kcp_bench_figures *figures) {
  return 50 * (figures->maximum_s - figures->minimum_s) / figures->median_s;
}

static void print_row(const struct kcp_table_column *columns, const char *label,
                      const struct kcp_bench_figures *a, const struct kcp_bench_figures *b,
                      enum verdict verdict) {
  static const char *const verdicts[] = {"same", "faster", "SLOWER", "same or not: too few runs",
                                         "ANSWER DIFFERS"};
  char cells[5][32];
  snprintf(cells[0], sizeof cells[0], "%.3f ms", 1e3 * a->median_s);
  snprintf(cells[1], sizeof cells[1], "±%.1f%%", spread(a));
  snprintf(cells[2], sizeof cells[2], "%.3f ms", 1e3 * b->median_s);
  snprintf(cells[3], sizeof cells[3], "±%.1f%%", spread(b));
  snprintf(cells[4], sizeof cells[4], "%.3f", b->median_s / a->median_s);
  const char *row[] = {label, cells[0], cells[1], cells[2], cells[3], cells[4], verdicts[verdict]};
  kcp_table_write_row(stdout, KCP_TABLE_ALIGNED, columns, 7, row);
}

struct tally {
  uint64_t compared;
  uint64_t verdicts[DIFFERENT_ANSWER + 1];
};

static int widest_label(const json_t *report) {
  json_t *result;
  size_t i;
  int width = 0;
  json_array_foreach(json_object_get(report, "results"), i, result) {
    char label[LONGEST_LABEL];
    write_label(label, result);
    if ((int)strlen(label) > width) width = (int)strlen(label);
  }
  return width;
}

static void print_rows(const json_t *a, const json_t *b, int phase, struct tally *tally) {
  const struct kcp_table_column columns[] = {{"configuration", widest_label(b), false},
                                             {"A", 12, true},
                                             {"spread", 7, true},
                                             {"B", 12, true},
                                             {"spread", 7, true},
                                             {"B / A", 7, true},
                                             {"B is", 6, false}};
  json_t *result;
  size_t i;
  kcp_table_write_head(stdout, KCP_TABLE_ALIGNED, columns, 7);
  json_array_foreach(json_object_get(b, "results"), i, result) {
    char label[LONGEST_LABEL];
    struct kcp_bench_figures after = kcp_bench_figures_of(result, phase);
    write_label(label, result);
    const json_t *before_result = find_label(a, label);
    if (before_result == NULL || after.sample_count == 0) continue;
    struct kcp_bench_figures before = kcp_bench_figures_of(before_result, phase);
    enum verdict verdict = judge(&before, &after);
    print_row(columns, label, &before, &after, verdict);
    ++tally->compared;
    ++tally->verdicts[verdict];
  }
}

static enum kcp_status conclude(const struct kcp_request *request, const json_t *a, const json_t *b,
                                const struct tally *tally, struct kcp_error *error) {
  const unsigned long long compared = tally->compared;
  size_t a_count = json_array_size(json_object_get(a, "results"));
  size_t b_count = json_array_size(json_object_get(b, "results"));
  if (compared == 0)
    return kcp_fail(error, KCP_BAD_INPUT, "%s and %s have no configuration in common",
                    request->inputs[0], request->inputs[1]);
  if (compared < a_count || compared < b_count)
    kcp_warn(request, "%llu in common of %zu and %zu configurations", compared, a_count, b_count);
  enum kcp_status status = kcp_finish_stdout(error);
  if (status != KCP_OK) return status;
  if (tally->verdicts[DIFFERENT_ANSWER] > 0)
    return kcp_fail(error, KCP_WRONG_ANSWER, "%llu of %llu answers differ",
                    (unsigned long long)tally->verdicts[DIFFERENT_ANSWER], compared);
  if (tally->verdicts[SLOWER] > 0)
    return kcp_fail(error, KCP_FAILED, "%llu of %llu configurations are slower beyond the spread",
                    (unsigned long long)tally->verdicts[SLOWER], compared);
  return KCP_OK;
}

enum kcp_status kcp_bench_compare(const struct kcp_request *request, struct kcp_error *error) {
  json_t *reports[2] = {NULL, NULL};
  struct tally tally = {.compared = 0};
  enum kcp_status status = KCP_OK;
  if (request->input_count != 2)
    return kcp_fail(error, KCP_BAD_INPUT, "--compare takes two reports: A.json B.json");
  for (int i = 0; i < 2 && status == KCP_OK; ++i)
    status = kcp_bench_read(request->inputs[i], &reports[i], error);
  if (status == KCP_UNAVAILABLE) status = KCP_BAD_INPUT;
  if (status == KCP_OK) {
    print_rows(reports[0], reports[1], request->phase, &tally);
    status = conclude(request, reports[0], reports[1], &tally, error);
  }
  json_decref(reports[0]);
  json_decref(reports[1]);
  return status;
}

/* The driver of a benchmark: every configuration of the sweep is run, checked against the first
 * that asks for the same, shown as a row, and kept. */
#include "kcp/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kcp/algorithm.h"
#include "kcp/commands.h"
#include "kcp/interrupt.h"
#include "kcp/json_text.h"
#include "kcp/output_file.h"
#include "kcp/report.h"
#include "kcp/text.h"

#define SECONDS_BETWEEN_SAVES 5.0

struct bench {
  const struct kcp_request *request;
  struct kcp_sweep sweep;               /* owned */
  const char *report_path;              /* NULL when none is asked for */
  json_t *earlier;                      /* owned: the report of --resume; or NULL */
  json_t *head;                         /* owned: tool and context; NULL while nothing ran */
  json_t **results;                     /* owned, as its elements: one a configuration, or NULL */
  char **questions;                     /* owned: what each asks for; equal ones must agree */
  uint64_t done;                        /* rows that were shown */
  uint64_t counts[KCP_BENCH_ERROR + 1]; /* of these, by status */
  enum kcp_status first_status;         /* how the first configuration ended */
  double first_median_s;                /* of the first row with a time; 0 while there is none */
  struct kcp_bench_table table;
  struct kcp_progress progress;
  double started_s;
  double row_started_s;
  double saved_s;
};

static enum kcp_status open_inputs(const struct kcp_request *request, struct kcp_error *error) {
  for (int i = 0; i < request->input_count; ++i)
    if (access(request->inputs[i], R_OK) != 0)
      return kcp_fail(error, KCP_BAD_INPUT, "%s: %s", request->inputs[i], strerror(errno));
  return KCP_OK;
}

/* Every value is checked before the first configuration runs. */
static enum kcp_status check_configurations(const struct bench *bench, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  for (uint64_t i = 0; i < bench->sweep.count && status == KCP_OK; ++i) {
    struct kcp_configuration configuration;
    status = kcp_configuration_make(&bench->sweep, i, bench->request, &configuration, error);
    kcp_configuration_free(&configuration);
  }
  return status;
}

/* That each can be written is found out before work starts. */
static enum kcp_status check_outputs(const struct bench *bench, struct kcp_error *error) {
  const char *paths[] = {bench->report_path, bench->request->csv_path,
                         bench->request->markdown_path};
  enum kcp_status status = KCP_OK;
  for (int i = 0; i < 3 && status == KCP_OK; ++i) {
    struct kcp_output_file file;
    if (paths[i] == NULL) continue;
    status = kcp_output_file_open(paths[i], &file, error);
    if (status == KCP_OK) kcp_output_file_discard(&file);
  }
  return status;
}

/* Results of --resume go to their places; a file that is not there yet has none. */
static enum kcp_status take_earlier(struct bench *bench, struct kcp_error *error) {
  const char *path = bench->request->resume_path;
  uint64_t found = 0;
  if (path == NULL) return KCP_OK;
  enum kcp_status status = kcp_bench_read(path, &bench->earlier, error);
  if (status == KCP_UNAVAILABLE) {
    kcp_warn(bench->request, "%s is not there yet: every configuration runs", path);
    return KCP_OK;
  }
  for (uint64_t i = 0; i < bench->sweep.count && status == KCP_OK; ++i) {
    struct kcp_configuration configuration;
    status = kcp_configuration_make(&bench->sweep, i, bench->request, &configuration, error);
    if (status == KCP_OK)
      bench->results[i] = json_incref(kcp_bench_find(bench->earlier, &configuration));
    found += bench->results[i] != NULL;
    kcp_configuration_free(&configuration);
  }
  if (status == KCP_OK && !bench->request->quiet)
    fprintf(stderr, "%s has %" PRIu64 " of %" PRIu64 " configurations\n", path, found,
            bench->sweep.count);
  return status;
}

static enum kcp_status prepare(struct bench *bench, struct kcp_error *error) {
  const struct kcp_request *request = bench->request;
  bench->report_path = request->json_path != NULL ? request->json_path : request->resume_path;
  enum kcp_status status = kcp_sweep_make(request, &bench->sweep, error);
  if (status == KCP_OK) status = check_configurations(bench, error);
  if (status == KCP_OK) status = open_inputs(request, error);
  if (status == KCP_OK) status = check_outputs(bench, error);
  if (status != KCP_OK) return status;
  bench->results = calloc(bench->sweep.count, sizeof *bench->results);
  bench->questions = calloc(bench->sweep.count, sizeof *bench->questions);
  if (bench->results == NULL || bench->questions == NULL)
    return kcp_out_of_memory(error, "the results", bench->sweep.count * sizeof *bench->results);
  kcp_bench_table_make(&bench->sweep, request->phase, &bench->table);
  return take_earlier(bench, error);
}

/* "1 of 24: dspp-pea heap 20   0:07   about 3:10 left" */
static void show_progress(void *context) {
  struct bench *bench = context;
  char line[256];
  double now = kcp_now();
  int length = snprintf(line, sizeof line, "running %" PRIu64 " of %" PRIu64 ":", bench->done + 1,
                        bench->sweep.count);
  for (int i = 0; i < bench->sweep.axis_count && length < (int)sizeof line; ++i)
    if (bench->sweep.axes[i].count > 1)
      length += snprintf(line + length, sizeof line - (size_t)length, " %s",
                         kcp_sweep_value(&bench->sweep, i, bench->done));
  if (length < (int)sizeof line)
    length += snprintf(line + length, sizeof line - (size_t)length, "   %s",
                       kcp_text_clock(now - bench->row_started_s).text);
  double each =
      bench->done > 0 ? (bench->row_started_s - bench->started_s) / (double)bench->done : 0;
  double left = each * (double)(bench->sweep.count - bench->done) - (now - bench->row_started_s);
  if (left > 0 && length < (int)sizeof line)
    snprintf(line + length, sizeof line - (size_t)length, "   about %s left",
             kcp_text_clock(left).text);
  kcp_progress_show(&bench->progress, line);
}

/* Tool and context are those of the first report; what it does not know of a GPU a later one may.
 */
static void take_head(struct bench *bench, const json_t *report) {
  static const char *const of_device[] = {"gpu", "driver", "device_memory_bytes",
                                          "device_startup_s"};
  if (report == NULL) return;
  json_t *context = json_object_get(report, "context");
  if (bench->head == NULL) {
    json_t *argv = json_array();
    for (int i = 0; i < bench->request->argument_count; ++i)
      json_array_append_new(argv, kcp_json_text(bench->request->arguments[i]));
    bench->head = json_deep_copy(report);
    json_object_set_new(json_object_get(bench->head, "context"), "argv", argv);
    return;
  }
  json_t *known = json_object_get(bench->head, "context");
  for (int i = 0; i < 4; ++i)
    if (json_is_null(json_object_get(known, of_device[i])))
      json_object_set(known, of_device[i], json_object_get(context, of_device[i]));
}

static enum kcp_status run_configuration(struct bench *bench, uint64_t number,
                                         struct kcp_error *error) {
  struct kcp_configuration configuration;
  struct kcp_bench_outcome outcome = {.report = NULL};
  enum kcp_status status =
      kcp_configuration_make(&bench->sweep, number, bench->request, &configuration, error);
  if (status == KCP_OK)
    status = kcp_bench_run_configuration(&configuration, show_progress, bench, &outcome, error);
  kcp_progress_finish(&bench->progress);
  if (status == KCP_OK) {
    take_head(bench, outcome.report);
    if (number == 0) bench->first_status = outcome.status;
    bench->results[number] = kcp_bench_result(&bench->sweep, number, &configuration, &outcome);
    if (bench->results[number] == NULL) status = kcp_out_of_memory(error, "a result", 1);
  }
  json_decref(outcome.report);
  kcp_configuration_free(&configuration);
  return status;
}

/* What configurations of one right answer have in common: the kind of query, and the options that
 * make a difference to it. New, owned by the caller; NULL without memory. */
static char *question_of(const struct bench *bench, uint64_t number, const char *algorithm) {
  char *question = NULL;
  size_t size;
  FILE *stream = open_memstream(&question, &size);
  if (stream == NULL) return NULL;
  const struct kcp_algorithm *row = kcp_algorithm_find(algorithm);
  fprintf(stream, "%d", row != NULL ? (int)row->query : -1);
  for (int i = 0; i < bench->sweep.axis_count; ++i)
    if ((bench->sweep.axes[i].flag->commands & KCP_CHANGES_ANSWER) != 0 &&
        bench->sweep.axes[i].count > 1)
      fprintf(stream, "\n%s", kcp_sweep_value(&bench->sweep, i, number));
  return fclose(stream) == 0 ? question : NULL;
}

/* "first", "yes" or "no"; NULL when there is no answer to check. */
static const char *check_answer(const struct bench *bench, uint64_t number,
                                const struct kcp_bench_figures *figures) {
  if (figures->status != KCP_BENCH_OK || bench->questions[number] == NULL) return NULL;
  for (uint64_t i = 0; i < number; ++i) {
    struct kcp_bench_figures first = kcp_bench_figures_of(bench->results[i], bench->request->phase);
    if (strcmp(first.checked, "first") != 0 || bench->questions[i] == NULL ||
        strcmp(bench->questions[i], bench->questions[number]) != 0)
      continue;
    return strcmp(first.checksum, figures->checksum) == 0 ? "yes" : "no";
  }
  return "first";
}

static enum kcp_status check_result(struct bench *bench, uint64_t number, struct kcp_error *error) {
  json_t *result = bench->results[number];
  struct kcp_bench_figures figures = kcp_bench_figures_of(result, bench->request->phase);
  bench->questions[number] = question_of(bench, number, figures.algorithm);
  if (bench->questions[number] == NULL) return kcp_out_of_memory(error, "a row", 1);
  const char *checked = check_answer(bench, number, &figures);
  json_object_set_new(result, "checked", checked != NULL ? json_string(checked) : json_null());
  if (bench->first_median_s <= 0 && figures.sample_count > 0)
    bench->first_median_s = figures.median_s;
  bool has_speedup = figures.sample_count > 0 && figures.median_s > 0;
  json_object_set_new(
      result, "speedup_over_first",
      has_speedup ? json_real(bench->first_median_s / figures.median_s) : json_null());
  bool is_wrong = checked != NULL && strcmp(checked, "no") == 0;
  ++bench->counts[is_wrong ? KCP_BENCH_WRONG : figures.status];
  return KCP_OK;
}

/* Whether a result of the earlier report belongs to no configuration of this sweep. */
static bool is_foreign(const struct bench *bench, const json_t *earlier_result) {
  for (uint64_t i = 0; i < bench->sweep.count; ++i)
    if (bench->results[i] != NULL && json_equal(json_object_get(bench->results[i], "argv"),
                                                json_object_get(earlier_result, "argv")))
      return false;
  return true;
}

/* All results so far; those of the earlier report that are not of this sweep stay at its end. */
static enum kcp_status save_report(struct bench *bench, struct kcp_error *error) {
  if (bench->report_path == NULL) return KCP_OK;
  json_t *head = bench->head != NULL ? bench->head : bench->earlier;
  json_t *report = head != NULL ? json_copy(head)
                                : json_pack("{s:i}", "schema_version", KCP_REPORT_SCHEMA_VERSION);
  json_t *results = json_array(), *result;
  size_t place;
  for (uint64_t i = 0; i < bench->sweep.count; ++i)
    if (bench->results[i] != NULL) json_array_append(results, bench->results[i]);
  json_array_foreach(json_object_get(bench->earlier, "results"), place, result) {
    if (is_foreign(bench, result)) json_array_append(results, result);
  }
  json_object_set_new(report, "results", results);
  enum kcp_status status = kcp_bench_write(bench->report_path, report, error);
  json_decref(report);
  bench->saved_s = kcp_now();
  return status;
}

static enum kcp_status run_all(struct bench *bench, struct kcp_error *error) {
  kcp_bench_table_head(stdout, KCP_TABLE_ALIGNED, &bench->table);
  enum kcp_status status = kcp_finish_stdout(error);
  for (uint64_t i = 0; i < bench->sweep.count && status == KCP_OK; ++i) {
    bench->row_started_s = kcp_now();
    if (kcp_interrupted()) return KCP_INTERRUPTED;
    if (bench->results[i] == NULL) status = run_configuration(bench, i, error);
    if (status == KCP_OK) status = check_result(bench, i, error);
    if (status != KCP_OK) break;
    ++bench->done;
    kcp_bench_table_row(stdout, KCP_TABLE_ALIGNED, &bench->table, i, bench->results[i]);
    status = kcp_finish_stdout(error);
    bool is_due = bench->head != NULL && kcp_now() - bench->saved_s >= SECONDS_BETWEEN_SAVES;
    if (status == KCP_OK && is_due) status = save_report(bench, error);
  }
  return status;
}

static enum kcp_status save_tables(const struct bench *bench, struct kcp_error *error) {
  const struct kcp_request *request = bench->request;
  struct kcp_output_file file;
  enum kcp_status status = KCP_OK;
  if (request->csv_path != NULL) {
    status = kcp_output_file_open(request->csv_path, &file, error);
    if (status != KCP_OK) return status;
    kcp_bench_write_csv(file.stream, &bench->sweep, request->phase, bench->results, bench->done);
    status = kcp_output_file_commit(&file, error);
  }
  if (status != KCP_OK || request->markdown_path == NULL) return status;
  status = kcp_output_file_open(request->markdown_path, &file, error);
  if (status != KCP_OK) return status;
  kcp_bench_table_head(file.stream, KCP_TABLE_MARKDOWN, &bench->table);
  for (uint64_t i = 0; i < bench->done; ++i)
    kcp_bench_table_row(file.stream, KCP_TABLE_MARKDOWN, &bench->table, i, bench->results[i]);
  return kcp_output_file_commit(&file, error);
}

static bool ran_any(const struct bench *bench) {
  return bench->counts[KCP_BENCH_OK] + bench->counts[KCP_BENCH_WRONG] > 0;
}

/* The reason of the first configuration, when none could run. */
static enum kcp_status refuse(const struct bench *bench, struct kcp_error *error) {
  struct kcp_bench_figures first = kcp_bench_figures_of(bench->results[0], 0);
  return kcp_fail(error, bench->first_status, "no configuration could run; the first: %s",
                  first.reason);
}

static enum kcp_status judge(const struct bench *bench, enum kcp_status status,
                             struct kcp_error *error) {
  const bool is_kept = ran_any(bench) && bench->report_path != NULL;
  if (status == KCP_INTERRUPTED)
    return kcp_fail(error, status, "stopped after %" PRIu64 " of %" PRIu64 " configurations%s%s",
                    bench->done, bench->sweep.count, is_kept ? "; go on with --resume " : "",
                    is_kept ? bench->report_path : "");
  if (status != KCP_OK) return status;
  if (bench->counts[KCP_BENCH_WRONG] > 0)
    return kcp_fail(error, KCP_WRONG_ANSWER,
                    "%" PRIu64 " of %" PRIu64 " configurations gave a wrong answer",
                    bench->counts[KCP_BENCH_WRONG], bench->sweep.count);
  if (bench->counts[KCP_BENCH_ERROR] > 0)
    return kcp_fail(error, KCP_FAILED,
                    "%" PRIu64 " of %" PRIu64 " configurations failed while running",
                    bench->counts[KCP_BENCH_ERROR], bench->sweep.count);
  return KCP_OK;
}

static enum kcp_status run(struct bench *bench, struct kcp_error *error) {
  enum kcp_status status = prepare(bench, error);
  if (status != KCP_OK) return status;
  bench->started_s = bench->saved_s = kcp_now();
  kcp_progress_start(&bench->progress, kcp_shows_progress(bench->request));
  status = run_all(bench, error);
  if (!ran_any(bench)) return status == KCP_OK ? refuse(bench, error) : judge(bench, status, error);
  struct kcp_error unsaved;
  enum kcp_status saved = save_report(bench, &unsaved);
  if (saved == KCP_OK) saved = save_tables(bench, &unsaved);
  if (saved == KCP_OK) return judge(bench, status, error);
  *error = unsaved;
  return saved;
}

enum kcp_status kcp_command_bench(const struct kcp_request *request, struct kcp_error *error) {
  if (request->compare) return kcp_bench_compare(request, error);
  struct bench bench = {.request = request};
  enum kcp_status status = run(&bench, error);
  for (uint64_t i = 0; i < bench.sweep.count; ++i) {
    if (bench.results != NULL) json_decref(bench.results[i]);
    if (bench.questions != NULL) free(bench.questions[i]);
  }
  free(bench.results);
  free(bench.questions);
  json_decref(bench.head);
  json_decref(bench.earlier);
  kcp_sweep_free(&bench.sweep);
  return status;
}

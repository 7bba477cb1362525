/* The results of bench in columns. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/algorithm.h"
#include "kcp/bench.h"
#include "kcp/measurement.h"
#include "kcp/text.h"

enum { LONGEST_CELL = 1280 };

/* The texts of a row's figures. */
struct cells {
  const char *cell[KCP_TABLE_MOST_COLUMNS];
  int count;
  char number[16][32];
  int number_count;
  char last[LONGEST_CELL];
};

static void add_cell(struct cells *cells, const char *text) {
  cells->cell[cells->count++] = text;
}

/* Room for the text of a number. */
static char *add_number(struct cells *cells) {
  char *text = cells->number[cells->number_count++];
  add_cell(cells, text);
  return text;
}

static void add_column(struct kcp_bench_table *table, const char *name, int width,
                       bool is_numeric) {
  table->columns[table->column_count++] = (struct kcp_table_column){name, width, is_numeric};
}

static int widest(char *const *values, uint64_t count) {
  size_t width = 0;
  for (uint64_t i = 0; i < count; ++i)
    if (strlen(values[i]) > width) width = strlen(values[i]);
  return (int)width;
}

static int widest_algorithm(void) {
  size_t width = 0;
  for (const struct kcp_algorithm *row = kcp_algorithms; row->name != NULL; ++row)
    if (strlen(row->name) > width) width = strlen(row->name);
  return (int)width;
}

static bool is_numeric(const struct kcp_flag *flag) {
  return flag->type == KCP_FLAG_COUNT || flag->type == KCP_FLAG_COUNT32 ||
         flag->type == KCP_FLAG_SIZE || flag->type == KCP_FLAG_REAL;
}

/* The algorithm as asked for; of auto what it came to. */
static const char *algorithm_name(const struct kcp_bench_table *table, uint64_t number,
                                  const struct kcp_bench_figures *figures) {
  const char *asked = table->algorithm_axis >= 0
                          ? kcp_sweep_value(table->sweep, table->algorithm_axis, number)
                          : "auto";
  return strcmp(asked, "auto") == 0 && *figures->algorithm != '\0' ? figures->algorithm : asked;
}

void kcp_bench_table_make(const struct kcp_sweep *sweep, int phase, struct kcp_bench_table *table) {
  memset(table, 0, sizeof *table);
  table->sweep = sweep;
  table->phase = phase;
  table->algorithm_axis = -1;
  int algorithm_width = widest_algorithm();
  for (int i = 0; i < sweep->axis_count; ++i) {
    const struct kcp_axis *axis = &sweep->axes[i];
    if (axis->flag->type == KCP_FLAG_ALGORITHM) {
      table->algorithm_axis = i;
      algorithm_width = widest(axis->values, axis->count);
      for (uint64_t j = 0; j < axis->count; ++j)
        if (strcmp(axis->values[j], "auto") == 0) algorithm_width = widest_algorithm();
    } else if (axis->count > 1) {
      table->shown_axes[table->shown_count++] = i;
    }
  }
  add_column(table, "algo", algorithm_width, false);
  for (int i = 0; i < table->shown_count; ++i) {
    const struct kcp_axis *axis = &sweep->axes[table->shown_axes[i]];
    add_column(table, axis->flag->name, widest(axis->values, axis->count), is_numeric(axis->flag));
  }
  add_column(table, phase == 0 ? "median" : kcp_phase_name((enum kcp_phase)(phase - 1)), 9, true);
  add_column(table, "spread", 7, true);
  add_column(table, "vs first", 8, true);
  add_column(table, "distances", 9, true);
  add_column(table, "memory", 9, true);
  add_column(table, "checked", 8, false);
}

/* Four digits: 113.6 ms. */
static void write_duration(char *text, size_t size, double seconds) {
  double scaled = seconds < 1 ? seconds * 1e3 : seconds;
  const char *unit = seconds < 1 ? "ms" : "s";
  int decimals = scaled < 9.9995 ? 3 : scaled < 99.995 ? 2 : 1;
  snprintf(text, size, "%.*f %s", decimals, scaled, unit);
}

/* Half of what lies between the fastest and the slowest run, of the median. */
static void write_spread(char *text, size_t size, const struct kcp_bench_figures *figures) {
  if (figures->sample_count < 2 || figures->median_s <= 0)
    snprintf(text, size, "one run");
  else
    snprintf(text, size, "±%.1f%%",
             50 * (figures->maximum_s - figures->minimum_s) / figures->median_s);
}

static void write_check(char *text, size_t size, const struct kcp_bench_figures *figures) {
  static const char *const words[] = {"", "WRONG", "skipped", "FAILED"};
  if (figures->status != KCP_BENCH_OK)
    snprintf(text, size, "%s: %s", words[figures->status], figures->reason);
  else if (strcmp(figures->checked, "no") == 0)
    snprintf(text, size, "NO: its answer is not that of the first");
  else if (strcmp(figures->checked, "first") == 0 && figures->verified)
    snprintf(text, size, "verified");
  else
    snprintf(text, size, "%s", figures->checked);
}

static void add_figures(struct cells *cells, const struct kcp_bench_figures *figures) {
  const size_t size = sizeof cells->number[0];
  bool has_times = figures->sample_count > 0;
  bool on_device = figures->peak_device_bytes > 0;
  char *text = add_number(cells);
  if (has_times)
    write_duration(text, size, figures->median_s);
  else
    strcpy(text, "-");
  text = add_number(cells);
  if (has_times)
    write_spread(text, size, figures);
  else
    strcpy(text, "-");
  text = add_number(cells);
  if (figures->speedup > 0)
    snprintf(text, size, "%.2f", figures->speedup);
  else
    strcpy(text, "-");
  text = add_number(cells);
  if (has_times && figures->distance_evaluations >= 0)
    snprintf(text, size, "%.2e", figures->distance_evaluations);
  else
    strcpy(text, "-");
  text = add_number(cells);
  if (has_times)
    snprintf(
        text, size, "%s",
        kcp_text_bytes(on_device ? figures->peak_device_bytes : figures->peak_host_bytes).text);
  else
    strcpy(text, "-");
}

void kcp_bench_table_head(FILE *stream, enum kcp_table_style style,
                          const struct kcp_bench_table *table) {
  kcp_table_write_head(stream, style, table->columns, table->column_count);
}

void kcp_bench_table_row(FILE *stream, enum kcp_table_style style,
                         const struct kcp_bench_table *table, uint64_t number,
                         const json_t *result) {
  struct kcp_bench_figures figures = kcp_bench_figures_of(result, table->phase);
  struct cells cells = {.count = 0};
  add_cell(&cells, algorithm_name(table, number, &figures));
  for (int i = 0; i < table->shown_count; ++i)
    add_cell(&cells, kcp_sweep_value(table->sweep, table->shown_axes[i], number));
  add_figures(&cells, &figures);
  write_check(cells.last, sizeof cells.last, &figures);
  add_cell(&cells, cells.last);
  kcp_table_write_row(stream, style, table->columns, cells.count, cells.cell);
}

static const char *const csv_names[] = {"algorithm",
                                        "backend",
                                        "status",
                                        "reason",
                                        "samples",
                                        "median_s",
                                        "min_s",
                                        "max_s",
                                        "speedup_over_first",
                                        "distance_evaluations",
                                        "peak_host_bytes",
                                        "peak_device_bytes",
                                        "checksum",
                                        "checked"};
enum { CSV_COUNT = sizeof csv_names / sizeof csv_names[0] };

static void add_exact(struct cells *cells, bool known, const char *format, double value) {
  char *text = add_number(cells);
  text[0] = '\0';
  if (known) snprintf(text, sizeof cells->number[0], format, value);
}

static void write_csv_row(FILE *stream, const struct kcp_sweep *sweep, int phase, uint64_t number,
                          const json_t *result) {
  static const char *const statuses[] = {"ok", "wrong", "skipped", "error"};
  struct kcp_bench_figures figures = kcp_bench_figures_of(result, phase);
  struct cells cells = {.count = 0};
  bool has_times = figures.sample_count > 0;
  for (int i = 0; i < sweep->axis_count; ++i) {
    const char *value = kcp_sweep_value(sweep, i, number);
    add_cell(&cells, value != NULL ? value : "yes");
  }
  add_cell(&cells, figures.algorithm);
  add_cell(&cells, figures.backend);
  add_cell(&cells, statuses[figures.status]);
  add_cell(&cells, figures.reason);
  add_exact(&cells, true, "%.0f", (double)figures.sample_count);
  add_exact(&cells, has_times, "%.17g", figures.median_s);
  add_exact(&cells, has_times, "%.17g", figures.minimum_s);
  add_exact(&cells, has_times, "%.17g", figures.maximum_s);
  add_exact(&cells, figures.speedup > 0, "%.17g", figures.speedup);
  add_exact(&cells, has_times && figures.distance_evaluations >= 0, "%.0f",
            figures.distance_evaluations);
  add_exact(&cells, has_times, "%.0f", figures.peak_host_bytes);
  add_exact(&cells, has_times, "%.0f", figures.peak_device_bytes);
  add_cell(&cells, figures.checksum);
  add_cell(&cells, figures.checked);
  kcp_table_write_row(stream, KCP_TABLE_CSV, NULL, cells.count, cells.cell);
}

void kcp_bench_write_csv(FILE *stream, const struct kcp_sweep *sweep, int phase,
                         json_t *const *results, uint64_t count) {
  const char *names[KCP_MAX_GIVEN + CSV_COUNT];
  int name_count = 0;
  for (int i = 0; i < sweep->axis_count; ++i) names[name_count++] = sweep->axes[i].flag->name;
  for (int i = 0; i < CSV_COUNT; ++i) names[name_count++] = csv_names[i];
  kcp_table_write_row(stream, KCP_TABLE_CSV, NULL, name_count, names);
  for (uint64_t i = 0; i < count; ++i)
    if (results[i] != NULL) write_csv_row(stream, sweep, phase, i, results[i]);
}

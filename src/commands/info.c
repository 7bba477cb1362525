#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/backend.h"
#include "kcp/commands.h"
#include "kcp/repeats.h"
#include "kcp/scan.h"
#include "kcp/text.h"

#define SHOWN_DIMENSIONS 8

/* What one pass over the file finds. */
struct findings {
  struct kcp_points all; /* every record, when they fit in memory */
  bool keeps_all;
  uint64_t numbered; /* records whose id is their number */
  uint64_t lowest_id;
  uint64_t highest_id;
  uint64_t repeated_places;
  uint64_t repeated_ids;
};

static enum kcp_status look_at_block(void *context, const struct kcp_points *block, uint64_t first,
                                     struct kcp_error *error) {
  struct findings *findings = context;
  (void)error;
  for (uint64_t i = 0; i < block->count; ++i) {
    uint64_t id = block->ids[i];
    findings->numbered += id == first + i;
    if (id < findings->lowest_id) findings->lowest_id = id;
    if (id > findings->highest_id) findings->highest_id = id;
  }
  if (!findings->keeps_all) return KCP_OK;
  struct kcp_points *all = &findings->all;
  memcpy(all->ids + all->count, block->ids, block->count * sizeof *block->ids);
  for (uint32_t j = 0; j < block->dimensions; ++j)
    memcpy(kcp_points_column(all, j) + all->count, kcp_points_column(block, j),
           block->count * sizeof(double));
  all->count += block->count;
  return KCP_OK;
}

static bool fits_in_memory(const struct kcp_dataset *dataset) {
  struct kcp_device_info cpu;
  if (kcp_backend_cpu()->probe(0, &cpu, NULL) != KCP_OK) return false;
  uint64_t count = kcp_dataset_count(dataset);
  double bytes = (double)count * 8 * (1 + kcp_dataset_dimensions(dataset)) +
                 32 * (double)count; /* at most, of the table */
  return bytes < 0.7 * (double)cpu.free_bytes;
}

static enum kcp_status look(struct kcp_dataset *dataset, struct findings *findings,
                            struct kcp_progress *progress, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  findings->lowest_id = UINT64_MAX;
  findings->keeps_all = fits_in_memory(dataset);
  if (findings->keeps_all)
    status = kcp_points_allocate(kcp_dataset_count(dataset), kcp_dataset_dimensions(dataset),
                                 &findings->all, error);
  if (status == KCP_OK) status = kcp_scan(dataset, look_at_block, findings, progress, error);
  if (status != KCP_OK || !findings->keeps_all) return status;
  status = kcp_count_repeated_places(&findings->all, &findings->repeated_places, error);
  if (status == KCP_OK)
    status = kcp_count_repeated_ids(&findings->all, &findings->repeated_ids, error);
  return status;
}

/* The shortest decimal that reads back as the same number. */
static struct kcp_text shortest(double value) {
  value += 0.0; /* -0 is shown as 0 */
  struct kcp_text result;
  for (int digits = 15; digits <= 17; ++digits) {
    snprintf(result.text, sizeof result.text, "%.*g", digits, value);
    if (strtod(result.text, NULL) == value) break;
  }
  return result;
}

static void print_ids(const struct kcp_dataset *dataset, const struct findings *findings) {
  uint64_t count = kcp_dataset_count(dataset);
  if (!kcp_dataset_has_ids(dataset)) {
    puts("  ids         none in the file: a record has its number, from 0");
  } else if (count > 0 && findings->numbered == count) {
    puts("  ids         the record numbers, from 0");
  } else if (count > 0) {
    printf("  ids         from %" PRIu64 " to %" PRIu64, findings->lowest_id, findings->highest_id);
    if (!findings->keeps_all)
      puts("; not looked at for repeats (too large for memory)");
    else if (findings->repeated_ids == 0)
      puts(", all different");
    else
      printf("; %s repeat an earlier one\n", kcp_text_grouped(findings->repeated_ids).text);
  }
}

static void print_coordinates(const struct kcp_dataset *dataset) {
  const struct kcp_coordinate_range *range = kcp_dataset_range(dataset);
  for (uint32_t j = 0; j < range->dimensions && j < SHOWN_DIMENSIONS; ++j) {
    char name[16];
    if (range->dimensions <= 3)
      snprintf(name, sizeof name, "%c", "xyz"[j]);
    else
      snprintf(name, sizeof name, "%" PRIu32, j);
    if (range->minimum[j] == range->maximum[j])
      printf("  %-10s  %s everywhere\n", name, shortest(range->minimum[j]).text);
    else
      printf("  %-10s  %s to %s\n", name, shortest(range->minimum[j]).text,
             shortest(range->maximum[j]).text);
  }
  if (range->dimensions > SHOWN_DIMENSIONS)
    printf("  ...         %" PRIu32 " more coordinates\n", range->dimensions - SHOWN_DIMENSIONS);
}

static uint32_t count_constant(const struct kcp_coordinate_range *range) {
  uint32_t constant = 0;
  for (uint32_t j = 0; j < range->dimensions; ++j)
    constant += range->minimum[j] == range->maximum[j];
  return constant;
}

static void print_findings(const struct kcp_dataset *dataset, const struct findings *findings) {
  uint64_t count = kcp_dataset_count(dataset);
  uint32_t constant = count > 0 ? count_constant(kcp_dataset_range(dataset)) : 0;
  printf("%s\n", kcp_dataset_path(dataset));
  printf("  format      %s, %s\n", kcp_dataset_format(dataset),
         kcp_text_bytes((double)kcp_dataset_file_bytes(dataset)).text);
  printf("  records     %s\n", kcp_text_grouped(count).text);
  printf("  dimensions  %" PRIu32, kcp_dataset_dimensions(dataset));
  if (constant > 0) printf(", of which %" PRIu32 " constant", constant);
  puts("");
  print_ids(dataset, findings);
  if (count == 0) return;
  print_coordinates(dataset);
  if (findings->keeps_all)
    printf("  coincident  %s record%s at the place of an earlier one\n",
           kcp_text_grouped(findings->repeated_places).text,
           findings->repeated_places == 1 ? "" : "s");
  else
    puts("  coincident  not looked at (too large for memory)");
}

enum kcp_status kcp_command_info(const struct kcp_request *request, struct kcp_error *error) {
  struct kcp_dataset *dataset = NULL;
  struct findings findings = {.keeps_all = false};
  struct kcp_progress progress;
  struct kcp_dataset_options options = {.columns = request->columns,
                                        .text_layout = KCP_TEXT_ID_FIRST};
  enum kcp_status status = kcp_dataset_open(request->inputs[0], &options, &dataset, error);
  if (status != KCP_OK) return status;
  kcp_progress_start(&progress, kcp_shows_progress(request));
  status = look(dataset, &findings, &progress, error);
  kcp_progress_finish(&progress);
  if (status == KCP_INTERRUPTED)
    kcp_fail(error, status, "stopped at %.0f%%", 100 * progress.fraction);
  if (status == KCP_OK) {
    print_findings(dataset, &findings);
    status = kcp_finish_stdout(error);
  }
  kcp_points_free(&findings.all);
  kcp_dataset_close(dataset);
  return status;
}

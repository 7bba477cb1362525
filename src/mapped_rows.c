#include "kcp/mapped_rows.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "coordinate_survey.h"
#include "cpu/vectors.h"
#include "formats/formats.h"
#include "kcp/interrupt.h"
#include "mapping_guard.h"

/* Rows that a thread reads at a time, at most. */
#define PIECE_BYTES (UINT64_C(4) << 20)
/* Rows whose columns stay in a core's first cache while they are looked at once more. */
#define TILE_ROWS 512

bool kcp_dataset_map(struct kcp_dataset *dataset) {
  struct kcp_row_layout layout;
  if (dataset->mapping != NULL) return true;
  if (dataset->drop_invalid || dataset->file_bytes == 0 || dataset->format->layout == NULL ||
      !dataset->format->layout(dataset, &layout) || layout.element != KCP_FLOAT64)
    return false;
  void *mapping = mmap(NULL, dataset->file_bytes, PROT_READ, MAP_SHARED, dataset->descriptor, 0);
  if (mapping == MAP_FAILED) return false;
  kcp_guard_mappings();
  dataset->mapping = mapping;
  dataset->layout = layout;
  return true;
}

/* Whether the file still has all its bytes. The rest of a last page beyond its end reads as zeros,
 * so this is looked at after what was read. */
static bool is_whole(const struct kcp_dataset *dataset) {
  struct stat facts;
  return fstat(dataset->descriptor, &facts) == 0 && (uint64_t)facts.st_size >= dataset->file_bytes;
}

/* One call of kcp_dataset_read_leading, shared by the threads that work on it. */
struct reading {
  const struct kcp_dataset *dataset;
  const double *rest;
  const struct kcp_points *points; /* record `first` is at place 0 */
  uint64_t first;
};

/* Column j of `count` rows, of which the first is at `row`. */
static void copy_column(const unsigned char *row, uint64_t row_bytes, uint32_t j, uint64_t count,
                        double *restrict column) {
  row += j * sizeof(double);
  for (uint64_t i = 0; i < count; ++i) memcpy(column + i, row + i * row_bytes, sizeof *column);
}

/* Rows of an id and three coordinates, which vector instructions take apart together. */
KCP_WIDEST_VECTORS static void copy_bin_columns(const unsigned char *row, uint64_t count,
                                                double *restrict x, double *restrict y,
                                                double *restrict z) {
  const double *values = (const double *)row; /* from x on */
  for (uint64_t i = 0; i < count; ++i) {
    x[i] = values[4 * i];
    y[i] = values[4 * i + 1];
    z[i] = values[4 * i + 2];
  }
}

static void scale_values(const double scale[2], double *values, uint64_t count) {
  if (scale[0] == 1.0 && scale[1] == 1.0) return;
  for (uint64_t i = 0; i < count; ++i) values[i] = values[i] * scale[0] * scale[1];
}

KCP_WIDEST_VECTORS static bool all_equal(const double *values, uint64_t count, double expected) {
  uint64_t differing = 0;
  for (uint64_t i = 0; i < count; ++i) differing += values[i] != expected;
  return differing == 0;
}

/* Whether the ids of rows are in no ascending order, that of the row before them included. */
static bool any_descends(const struct kcp_dataset *dataset, uint64_t first, uint64_t count) {
  const uint64_t row_bytes = dataset->layout.row_bytes, skipped = first == 0;
  const unsigned char *row =
      (const unsigned char *)dataset->mapping + dataset->layout.data_offset + first * row_bytes;
  uint64_t descents = 0;
  for (uint64_t i = skipped; i < count; ++i) {
    uint64_t id, before;
    memcpy(&id, row + i * row_bytes, sizeof id);
    memcpy(&before, row + i * row_bytes - row_bytes, sizeof before);
    descents += id <= before;
  }
  return descents > 0;
}

bool kcp_dataset_ids_ascend(const struct kcp_dataset *dataset) {
  if (!dataset->has_ids) return !dataset->drop_invalid;
  return dataset->mapping != NULL && dataset->layout.prefix_bytes == sizeof(uint64_t) &&
         !dataset->ids_descend;
}

enum outcome { READ_WELL, READ_OTHER_REST, READ_WRONG };

/* A few rows: copied, looked at while they are in the cache, then scaled. */
static enum outcome read_tile(const struct reading *reading, uint64_t first, uint64_t count,
                              struct kcp_survey *survey) {
  const struct kcp_dataset *dataset = reading->dataset;
  const struct kcp_row_layout *layout = &dataset->layout;
  const struct kcp_points *points = reading->points;
  const unsigned char *row = (const unsigned char *)dataset->mapping + layout->data_offset +
                             first * layout->row_bytes + layout->prefix_bytes;
  double spare[TILE_ROWS];
  double *columns[3];
  bool is_bin = layout->row_bytes == 32 && dataset->dimensions == 3 && points->dimensions >= 2;
  for (uint32_t j = 0; is_bin && j < 3; ++j)
    columns[j] =
        j < points->dimensions ? kcp_points_column(points, j) + (first - reading->first) : spare;
  if (is_bin) copy_bin_columns(row, count, columns[0], columns[1], columns[2]);
  for (uint32_t j = 0; j < dataset->dimensions; ++j) {
    bool leading = j < points->dimensions;
    double *values = leading ? kcp_points_column(points, j) + (first - reading->first) : spare;
    if (!is_bin) copy_column(row, layout->row_bytes, j, count, values);
    /* Of values that are all the same, one tells all. */
    if (!leading && !all_equal(values, count, values[0])) return READ_OTHER_REST;
    if (!kcp_survey_values(j, values, leading ? count : 1, survey)) return READ_WRONG;
    scale_values(dataset->scale, values, leading ? count : 1);
    if (!leading && values[0] != reading->rest[j - points->dimensions]) return READ_OTHER_REST;
  }
  return READ_WELL;
}

/* Rows first .. end - 1 for one thread. */
struct piece {
  const struct reading *reading;
  uint64_t first, end;
  struct kcp_survey *survey;
  enum outcome outcome;
  bool ids_descend;
};

static void read_tiles(void *context) {
  struct piece *piece = context;
  const struct kcp_dataset *dataset = piece->reading->dataset;
  bool has_ids =
      dataset->has_ids && !dataset->ids_descend && dataset->layout.prefix_bytes == sizeof(uint64_t);
  piece->outcome = READ_WELL;
  for (uint64_t at = piece->first; piece->outcome == READ_WELL && at < piece->end;
       at += TILE_ROWS) {
    uint64_t left = piece->end - at;
    uint64_t count = left < TILE_ROWS ? left : TILE_ROWS;
    piece->outcome = read_tile(piece->reading, at, count, piece->survey);
    if (has_ids && !piece->ids_descend) piece->ids_descend = any_descends(dataset, at, count);
  }
}

static enum outcome read_piece(const struct reading *reading, uint64_t first, uint64_t end,
                               struct kcp_survey *survey, bool *ids_descend) {
  struct piece piece = {reading, first, end, survey, READ_WRONG, false};
  bool touched = kcp_touch_mapping(read_tiles, &piece);
  *ids_descend = piece.ids_descend;
  return touched && is_whole(reading->dataset) ? piece.outcome : READ_WRONG;
}

/* What kcp_dataset_read has to say of rows that are not as they should be. */
static enum kcp_status explain(struct kcp_dataset *dataset, uint64_t first, uint64_t count,
                               struct kcp_error *error) {
  struct kcp_points points = {0};
  enum kcp_status status = kcp_points_allocate(count, dataset->dimensions, &points, error);
  if (status == KCP_OK) status = kcp_dataset_read(dataset, first, count, &points, error);
  kcp_points_free(&points);
  return status != KCP_OK
             ? status
             : kcp_fail(error, KCP_FAILED, "%s: changed while it was being read", dataset->path);
}

enum kcp_status kcp_dataset_read_leading(struct kcp_dataset *dataset, uint64_t first,
                                         uint64_t count, const double *rest,
                                         struct kcp_points *points, bool *rest_differs,
                                         struct kcp_error *error) {
  struct reading reading = {dataset, rest, points, first};
  uint64_t piece = PIECE_BYTES / dataset->layout.row_bytes;
  piece = piece < count / 64 ? piece : count / 64 + 1; /* enough of them for all threads */
  uint64_t pieces = count > 0 ? (count - 1) / piece + 1 : 0, wrong_at = UINT64_MAX;
  bool differs = false, descends = false;
  points->count = 0;
#pragma omp parallel reduction(min : wrong_at) reduction(|| : differs, descends) if (pieces > 1)
  {
    struct kcp_survey survey;
    struct kcp_error ignored;
    bool begun = kcp_survey_begin(dataset->dimensions, &survey, &ignored) == KCP_OK;
    if (!begun) wrong_at = first;
#pragma omp for schedule(dynamic)
    for (uint64_t p = 0; p < pieces; ++p) {
      uint64_t begin = first + p * piece;
      uint64_t end = begin + piece < first + count ? begin + piece : first + count;
      if (!begun || differs || wrong_at != UINT64_MAX || kcp_interrupted()) continue;
      bool ids_descend = false;
      enum outcome outcome = read_piece(&reading, begin, end, &survey, &ids_descend);
      if (ids_descend) descends = true;
      if (outcome == READ_OTHER_REST) differs = true;
      if (outcome == READ_WRONG) wrong_at = begin;
    }
    if (begun) {
#pragma omp critical(kcp_dataset_range)
      kcp_range_add(&dataset->range, &survey);
      kcp_survey_free(&survey);
    }
  }
  if (descends) dataset->ids_descend = true;
  if (kcp_interrupted())
    return kcp_fail(error, KCP_INTERRUPTED, "%s: stopped while reading", dataset->path);
  if (wrong_at != UINT64_MAX) return explain(dataset, first, count, error);
  *rest_differs = differs;
  points->count = count;
  return KCP_OK;
}

#include "kcp/dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coordinate_survey.h"
#include "formats/formats.h"
#include "kcp/interrupt.h"

enum { MOST_DIMENSIONS = 1024 * 1024 };

/* One kcp_dataset_read, shared by the threads that work on it. */
struct reading {
  struct kcp_dataset *dataset;
  uint64_t first;
  uint64_t end;
  struct kcp_points *points;
  uint64_t first_chunk;
  uint64_t *kept; /* per chunk, records that were not left out; NULL without drop_invalid */

  uint64_t failed_chunk; /* the lowest one that failed; UINT64_MAX when none has */
  enum kcp_status status;
  struct kcp_error error;
};

enum kcp_status kcp_scratch_reserve(struct kcp_scratch *scratch, size_t bytes,
                                    struct kcp_error *error) {
  if (bytes == 0) bytes = 1; /* a buffer, also of nothing */
  if (bytes <= scratch->capacity) return KCP_OK;
  free(scratch->bytes);
  scratch->bytes = malloc(bytes);
  scratch->capacity = scratch->bytes != NULL ? bytes : 0;
  if (scratch->bytes == NULL) return kcp_out_of_memory(error, "a read buffer", bytes);
  return KCP_OK;
}

void kcp_scratch_free(struct kcp_scratch *scratch) {
  free(scratch->bytes);
  memset(scratch, 0, sizeof *scratch);
}

struct kcp_coordinate_name kcp_coordinate_name(uint32_t dimensions, uint32_t coordinate) {
  struct kcp_coordinate_name name;
  if (dimensions <= 3)
    snprintf(name.text, sizeof name.text, "%c", "xyz"[coordinate]);
  else
    snprintf(name.text, sizeof name.text, "coordinate %" PRIu32, coordinate);
  return name;
}

static enum kcp_status open_failed(const char *path, int cause, struct kcp_error *error) {
  return kcp_fail(error, KCP_BAD_INPUT, "%s: %s", path, strerror(cause));
}

enum kcp_status kcp_dataset_open_file(struct kcp_dataset *dataset, struct kcp_error *error) {
  struct stat facts;
  /* Looked at before it is opened, since opening a pipe waits for its writer. */
  if (stat(dataset->path, &facts) != 0) return open_failed(dataset->path, errno, error);
  if (S_ISDIR(facts.st_mode))
    return kcp_fail(error, KCP_BAD_INPUT, "%s: is a directory, not a file", dataset->path);
  if (!S_ISREG(facts.st_mode))
    return kcp_fail(error, KCP_BAD_INPUT,
                    "%s: is a pipe or device, which cannot be read at any position; save it to a "
                    "file first",
                    dataset->path);
  dataset->descriptor = open(dataset->path, O_RDONLY | O_CLOEXEC);
  if (dataset->descriptor < 0 || fstat(dataset->descriptor, &facts) != 0)
    return open_failed(dataset->path, errno, error);
  dataset->file_bytes = (uint64_t)facts.st_size;
  return KCP_OK;
}

static enum kcp_status range_begin(struct kcp_dataset *dataset, struct kcp_error *error) {
  struct kcp_survey survey = {0};
  enum kcp_status status = kcp_survey_begin(dataset->dimensions, &survey, error);
  if (status != KCP_OK) return status;
  dataset->range = (struct kcp_coordinate_range){.smallest_magnitude = INFINITY,
                                                 .dimensions = dataset->dimensions,
                                                 .minimum = survey.minimum,
                                                 .maximum = survey.maximum};
  return KCP_OK;
}

static enum kcp_status open_as(const char *path, const struct kcp_format *format,
                               const struct kcp_dataset_options *options, struct kcp_dataset **out,
                               struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  *out = NULL;
  const struct kcp_dataset_options defaults = {0};
  if (options == NULL) options = &defaults;
  struct kcp_dataset *dataset = calloc(1, sizeof *dataset);
  if (dataset == NULL) return kcp_out_of_memory(error, "a data set", sizeof *dataset);
  dataset->format = format;
  dataset->descriptor = -1;
  dataset->drop_invalid = options->drop_invalid;
  kcp_dataset_set_scale(dataset, 0);
  dataset->path = strdup(path);
  if (dataset->path == NULL) {
    status = kcp_out_of_memory(error, "a file name", strlen(path));
    goto cleanup;
  }
  status = kcp_dataset_open_file(dataset, error);
  if (status != KCP_OK) goto cleanup;
  if (format == NULL || format->open == NULL) {
    char endings[256];
    kcp_format_endings(endings, sizeof endings);
    status = kcp_fail(error, KCP_BAD_INPUT, "no reader for '%s'; formats are %s", path, endings);
    goto cleanup;
  }
  status = format->open(dataset, options, error);
  if (status != KCP_OK) goto cleanup;
  if (dataset->dimensions > MOST_DIMENSIONS) {
    status = kcp_fail(error, KCP_BAD_INPUT, "%s: %" PRIu32 " dimensions; kcp reads up to %d", path,
                      dataset->dimensions, MOST_DIMENSIONS);
    goto cleanup;
  }
  if (dataset->chunk_starts == NULL)
    dataset->chunk_count =
        dataset->count / dataset->chunk_records + (dataset->count % dataset->chunk_records != 0);
  status = range_begin(dataset, error);

cleanup:
  if (status == KCP_OK)
    *out = dataset;
  else
    kcp_dataset_close(dataset);
  return status;
}

enum kcp_status kcp_dataset_open(const char *path, const struct kcp_dataset_options *options,
                                 struct kcp_dataset **out, struct kcp_error *error) {
  return open_as(path, kcp_format_of_path(path), options, out, error);
}

enum kcp_status kcp_dataset_open_as(const char *path, const char *format_name,
                                    const struct kcp_dataset_options *options,
                                    struct kcp_dataset **out, struct kcp_error *error) {
  return open_as(path, kcp_format_named(format_name), options, out, error);
}

void kcp_dataset_close(struct kcp_dataset *dataset) {
  if (dataset == NULL) return;
  if (dataset->format != NULL && dataset->format->close != NULL) dataset->format->close(dataset);
  if (dataset->mapping != NULL) munmap(dataset->mapping, dataset->file_bytes);
  if (dataset->descriptor >= 0) close(dataset->descriptor);
  free(dataset->range.minimum);
  free(dataset->chunk_starts);
  free(dataset->path);
  free(dataset);
}

const char *kcp_dataset_path(const struct kcp_dataset *dataset) {
  return dataset->path;
}

const char *kcp_dataset_format(const struct kcp_dataset *dataset) {
  return dataset->format->name;
}

uint64_t kcp_dataset_count(const struct kcp_dataset *dataset) {
  return dataset->count;
}

uint32_t kcp_dataset_dimensions(const struct kcp_dataset *dataset) {
  return dataset->dimensions;
}

uint64_t kcp_dataset_file_bytes(const struct kcp_dataset *dataset) {
  return dataset->file_bytes;
}

bool kcp_dataset_has_ids(const struct kcp_dataset *dataset) {
  return dataset->has_ids;
}

const struct kcp_coordinate_range *kcp_dataset_range(const struct kcp_dataset *dataset) {
  return &dataset->range;
}

uint64_t kcp_dataset_dropped(const struct kcp_dataset *dataset) {
  return dataset->dropped;
}

void kcp_dataset_set_scale(struct kcp_dataset *dataset, int exponent) {
  /* Powers of two from 2^-1022 to 2^1023 are normal numbers, so that one factor does it. Beyond,
   * the extreme power comes second and makes the only rounding. */
  int second = 0;
  if (exponent > 1023) second = 1023;
  if (exponent < -1022) second = -1022;
  dataset->scale[0] = ldexp(1.0, exponent - second);
  dataset->scale[1] = ldexp(1.0, second);
}

enum kcp_status kcp_dataset_pread(const struct kcp_dataset *dataset, void *bytes, size_t count,
                                  uint64_t offset, struct kcp_error *error) {
  unsigned char *target = bytes;
  while (count > 0) {
    ssize_t got = pread(dataset->descriptor, target, count, (off_t)offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return kcp_fail(error, KCP_FAILED, "%s: cannot be read: %s", dataset->path, strerror(errno));
    if (got == 0)
      return kcp_fail(error, KCP_FAILED, "%s: became shorter while it was being read",
                      dataset->path);
    target += got;
    count -= (size_t)got;
    offset += (uint64_t)got;
  }
  return KCP_OK;
}

static uint64_t chunk_start(const struct kcp_dataset *dataset, uint64_t chunk) {
  if (dataset->chunk_starts != NULL) return dataset->chunk_starts[chunk];
  uint64_t start;
  if (__builtin_mul_overflow(chunk, dataset->chunk_records, &start)) return dataset->count;
  return start < dataset->count ? start : dataset->count;
}

uint64_t kcp_dataset_chunk_of(const struct kcp_dataset *dataset, uint64_t record) {
  if (dataset->chunk_starts == NULL) return record / dataset->chunk_records;
  uint64_t low = 0;
  uint64_t high = dataset->chunk_count;
  while (high - low > 1) {
    uint64_t middle = low + (high - low) / 2;
    if (dataset->chunk_starts[middle] <= record)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* The first coordinate of point `i` that is not finite; `dimensions` when all are. */
static uint32_t invalid_coordinate(const struct kcp_points *points, uint64_t i) {
  for (uint32_t j = 0; j < points->dimensions; ++j)
    if (!isfinite(kcp_points_column(points, j)[i])) return j;
  return points->dimensions;
}

static void move_points(struct kcp_points *points, uint64_t to, uint64_t from, uint64_t count) {
  if (to == from) return;
  memmove(points->ids + to, points->ids + from, count * sizeof *points->ids);
  for (uint32_t j = 0; j < points->dimensions; ++j) {
    double *column = kcp_points_column(points, j);
    memmove(column + to, column + from, count * sizeof *column);
  }
}

static void leave_out_invalid(struct kcp_points *points) {
  uint64_t kept = 0;
  for (uint64_t i = 0; i < points->count; ++i)
    if (invalid_coordinate(points, i) == points->dimensions) move_points(points, kept++, i, 1);
  points->count = kept;
}

static enum kcp_status invalid_record(const struct kcp_dataset *dataset,
                                      const struct kcp_points *points, uint64_t first,
                                      struct kcp_error *error) {
  uint64_t i = 0;
  while (invalid_coordinate(points, i) == points->dimensions) ++i;
  uint32_t coordinate = invalid_coordinate(points, i);
  struct kcp_coordinate_name name = kcp_coordinate_name(points->dimensions, coordinate);
  bool is_nan = isnan(kcp_points_column(points, coordinate)[i]);
  char line_note[40] = "";
  uint64_t line =
      dataset->format->line_of != NULL ? dataset->format->line_of(dataset, first + i) : 0;
  if (line > 0) snprintf(line_note, sizeof line_note, " (line %" PRIu64 ")", line);
  return kcp_fail(error, KCP_BAD_INPUT,
                  "%s: %s of record %" PRIu64
                  "%s is %s; every coordinate must be finite (kcp "
                  "convert --drop-invalid removes such records)",
                  dataset->path, name.text, first + i, line_note, is_nan ? "NaN" : "infinite");
}

static void scale_points(const double scale[2], struct kcp_points *points) {
  if (scale[0] == 1.0 && scale[1] == 1.0) return;
  for (uint32_t j = 0; j < points->dimensions; ++j) {
    double *column = kcp_points_column(points, j);
    for (uint64_t i = 0; i < points->count; ++i) column[i] = column[i] * scale[0] * scale[1];
  }
}

/* Reads records first .. end - 1, which lie in one chunk, to their place among the points. */
static enum kcp_status read_chunk(const struct reading *reading, uint64_t first, uint64_t end,
                                  struct kcp_scratch *scratch, struct kcp_survey *survey,
                                  uint64_t *kept, struct kcp_error *error) {
  const struct kcp_dataset *dataset = reading->dataset;
  uint64_t offset = first - reading->first;
  struct kcp_points points = {.stride = reading->points->stride,
                              .dimensions = dataset->dimensions,
                              .ids = reading->points->ids + offset,
                              .coordinates = reading->points->coordinates + offset};
  enum kcp_status status =
      dataset->format->read(dataset, first, end - first, scratch, &points, error);
  if (!dataset->has_ids)
    for (uint64_t i = 0; i < points.count; ++i) points.ids[i] = first + i;
  if (dataset->drop_invalid) leave_out_invalid(&points);
  /* A record that is not finite comes before the one at which decoding stopped. */
  if (!kcp_survey_points(&points, survey)) return invalid_record(dataset, &points, first, error);
  scale_points(dataset->scale, &points);
  *kept = points.count;
  return status;
}

/* Failures are reported in file order, whichever thread meets its own first: a chunk is passed over
 * only when a lower one has failed. */
static void note_failure(struct reading *reading, uint64_t chunk, enum kcp_status status,
                         const struct kcp_error *error) {
#pragma omp critical(kcp_dataset_failure)
  if (chunk < reading->failed_chunk) {
#pragma omp atomic write
    reading->failed_chunk = chunk;
    reading->status = status;
    reading->error = *error;
  }
}

static void read_one(struct reading *reading, uint64_t chunk, struct kcp_scratch *scratch,
                     struct kcp_survey *survey) {
  const struct kcp_dataset *dataset = reading->dataset;
  uint64_t failed_chunk;
#pragma omp atomic read
  failed_chunk = reading->failed_chunk;
  if (chunk > failed_chunk) return;
  struct kcp_error error;
  enum kcp_status status;
  uint64_t first = chunk_start(dataset, chunk);
  uint64_t end = chunk_start(dataset, chunk + 1);
  if (first < reading->first) first = reading->first;
  if (end > reading->end) end = reading->end;
  uint64_t kept = 0;
  if (kcp_interrupted())
    status = kcp_fail(&error, KCP_INTERRUPTED, "%s: stopped while reading", dataset->path);
  else if (first < end)
    status = read_chunk(reading, first, end, scratch, survey, &kept, &error);
  else
    status = KCP_OK;
  if (reading->kept != NULL) reading->kept[chunk - reading->first_chunk] = kept;
  if (status != KCP_OK) note_failure(reading, chunk, status, &error);
}

static void read_chunks(struct reading *reading, uint64_t end_chunk) {
  struct kcp_dataset *dataset = reading->dataset;
#pragma omp parallel if (end_chunk - reading->first_chunk > 1)
  {
    struct kcp_error error;
    struct kcp_scratch scratch = {0};
    struct kcp_survey survey = {0};
    enum kcp_status begun = kcp_survey_begin(dataset->dimensions, &survey, &error);
    if (begun != KCP_OK) note_failure(reading, 0, begun, &error);
#pragma omp for schedule(dynamic)
    for (uint64_t chunk = reading->first_chunk; chunk < end_chunk; ++chunk)
      if (begun == KCP_OK) read_one(reading, chunk, &scratch, &survey);
    if (begun == KCP_OK && reading->status == KCP_OK) {
#pragma omp critical(kcp_dataset_range)
      kcp_range_add(&dataset->range, &survey);
    }
    if (begun == KCP_OK) kcp_survey_free(&survey);
    kcp_scratch_free(&scratch);
  }
}

/* Closes the gaps that records left out have made between chunks. */
static void close_gaps(struct reading *reading, uint64_t end_chunk) {
  uint64_t filled = 0;
  for (uint64_t chunk = reading->first_chunk; chunk < end_chunk; ++chunk) {
    uint64_t first = chunk_start(reading->dataset, chunk);
    if (first < reading->first) first = reading->first;
    uint64_t kept = reading->kept[chunk - reading->first_chunk];
    move_points(reading->points, filled, first - reading->first, kept);
    filled += kept;
  }
  reading->dataset->dropped += reading->points->count - filled;
  reading->points->count = filled;
}

enum kcp_status kcp_dataset_read(struct kcp_dataset *dataset, uint64_t first, uint64_t count,
                                 struct kcp_points *points, struct kcp_error *error) {
  points->count = 0;
  if (first > dataset->count || count > dataset->count - first)
    return kcp_fail(error, KCP_FAILED,
                    "%s: %" PRIu64 " records from record %" PRIu64 " on asked for, of %" PRIu64,
                    dataset->path, count, first, dataset->count);
  if (count == 0) return KCP_OK;
  struct reading reading = {.dataset = dataset,
                            .first = first,
                            .end = first + count,
                            .points = points,
                            .first_chunk = kcp_dataset_chunk_of(dataset, first),
                            .failed_chunk = UINT64_MAX};
  uint64_t end_chunk = kcp_dataset_chunk_of(dataset, first + count - 1) + 1;
  if (dataset->drop_invalid) {
    uint64_t chunks = end_chunk - reading.first_chunk;
    reading.kept = calloc(chunks, sizeof *reading.kept);
    if (reading.kept == NULL) return kcp_out_of_memory(error, "chunk counts", 8 * chunks);
  }
  read_chunks(&reading, end_chunk);
  if (reading.status == KCP_OK) {
    points->count = count;
    if (reading.kept != NULL) close_gaps(&reading, end_chunk);
  } else if (error != NULL) {
    *error = reading.error;
  }
  free(reading.kept);
  return reading.status;
}

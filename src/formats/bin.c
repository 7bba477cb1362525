/* .bin: records of 32 bytes, little-endian, without a header: u64 id, f64 x, y, z. */
#include <inttypes.h>

#include "formats/formats.h"

struct record {
  uint64_t id;
  double x, y, z;
};
_Static_assert(sizeof(struct record) == 32, "a .bin record has 32 bytes");

static enum kcp_status bin_open(struct kcp_dataset *dataset,
                                const struct kcp_dataset_options *options,
                                struct kcp_error *error) {
  (void)options;
  uint64_t excess = dataset->file_bytes % sizeof(struct record);
  if (excess != 0)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "%s: its size of %" PRIu64 " bytes is not a multiple of 32 (%" PRIu64
                    " bytes over); a record is u64 id, f64 x, y, z",
                    dataset->path, dataset->file_bytes, excess);
  dataset->count = dataset->file_bytes / sizeof(struct record);
  dataset->dimensions = 3;
  dataset->has_ids = true;
  dataset->chunk_records = kcp_rows_per_chunk(sizeof(struct record));
  return KCP_OK;
}

static enum kcp_status bin_read(const struct kcp_dataset *dataset, uint64_t first, uint64_t count,
                                struct kcp_scratch *scratch, struct kcp_points *points,
                                struct kcp_error *error) {
  size_t bytes = (size_t)(count * sizeof(struct record));
  enum kcp_status status = kcp_scratch_reserve(scratch, bytes, error);
  if (status != KCP_OK) return status;
  status = kcp_dataset_pread(dataset, scratch->bytes, bytes, first * sizeof(struct record), error);
  if (status != KCP_OK) return status;
  const struct record *records = (const struct record *)scratch->bytes;
  uint64_t *restrict ids = points->ids;
  double *restrict x = kcp_points_column(points, 0);
  double *restrict y = kcp_points_column(points, 1);
  double *restrict z = kcp_points_column(points, 2);
  for (uint64_t i = 0; i < count; ++i) {
    ids[i] = records[i].id;
    x[i] = records[i].x;
    y[i] = records[i].y;
    z[i] = records[i].z;
  }
  points->count = count;
  return KCP_OK;
}

static bool bin_layout(const struct kcp_dataset *dataset, struct kcp_row_layout *layout) {
  (void)dataset;
  *layout = (struct kcp_row_layout){.row_bytes = sizeof(struct record),
                                    .prefix_bytes = offsetof(struct record, x),
                                    .element = KCP_FLOAT64};
  return true;
}

static enum kcp_status bin_begin(struct kcp_point_writer *writer, struct kcp_error *error) {
  if (writer->dimensions <= 3) return KCP_OK;
  return kcp_fail(error, KCP_BAD_INPUT,
                  "%s: a .bin record holds 3 coordinates, these points have %" PRIu32
                  "; write .npy or .csv",
                  writer->path, writer->dimensions);
}

static enum kcp_status bin_append(struct kcp_point_writer *writer, const struct kcp_points *points,
                                  struct kcp_error *error) {
  uint64_t chunk_rows = kcp_rows_per_chunk(sizeof(struct record));
  enum kcp_status status =
      kcp_scratch_reserve(&writer->scratch, chunk_rows * sizeof(struct record), error);
  if (status != KCP_OK) return status;
  struct record *records = (struct record *)writer->scratch.bytes;
  const double *x = kcp_points_column(points, 0);
  const double *y = points->dimensions > 1 ? kcp_points_column(points, 1) : NULL;
  const double *z = points->dimensions > 2 ? kcp_points_column(points, 2) : NULL;
  for (uint64_t first = 0; first < points->count; first += chunk_rows) {
    uint64_t rows = points->count - first < chunk_rows ? points->count - first : chunk_rows;
    for (uint64_t i = 0; i < rows; ++i)
      records[i] = (struct record){.id = points->ids[first + i],
                                   .x = x[first + i],
                                   .y = y != NULL ? y[first + i] : 0.0,
                                   .z = z != NULL ? z[first + i] : 0.0};
    status = kcp_point_writer_put(writer, records, rows * sizeof(struct record), error);
    if (status != KCP_OK) return status;
  }
  return KCP_OK;
}

const struct kcp_format kcp_format_bin = {
    .name = "bin",
    .endings = ".bin",
    .open = bin_open,
    .read = bin_read,
    .layout = bin_layout,
    .begin = bin_begin,
    .append = bin_append,
};

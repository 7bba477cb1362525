/* .fvecs: records of i32 d and d float32, little-endian; every record has the same d. */
#include <inttypes.h>
#include <string.h>

#include "formats/formats.h"

static struct kcp_row_layout layout_of(uint32_t dimensions) {
  return (struct kcp_row_layout){.row_bytes = sizeof(int32_t) + dimensions * sizeof(float),
                                 .prefix_bytes = sizeof(int32_t),
                                 .element = KCP_FLOAT32};
}

static enum kcp_status fvecs_open(struct kcp_dataset *dataset,
                                  const struct kcp_dataset_options *options,
                                  struct kcp_error *error) {
  (void)options;
  dataset->chunk_records = 1;
  dataset->dimensions = 2;
  if (dataset->file_bytes == 0) return KCP_OK;
  int32_t dimensions;
  if (dataset->file_bytes < sizeof dimensions)
    return kcp_fail(error, KCP_BAD_INPUT, "%s: ends within the dimension of record 0",
                    dataset->path);
  enum kcp_status status = kcp_dataset_pread(dataset, &dimensions, sizeof dimensions, 0, error);
  if (status != KCP_OK) return status;
  if (dimensions <= 0)
    return kcp_fail(error, KCP_BAD_INPUT, "%s: record 0 has dimension %" PRId32, dataset->path,
                    dimensions);
  struct kcp_row_layout layout = layout_of((uint32_t)dimensions);
  if (dataset->file_bytes % layout.row_bytes != 0)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "%s: its size of %" PRIu64 " bytes is not a multiple of the %" PRIu64
                    " bytes of a record of dimension %" PRId32
                    " (cut off, or records of differing dimension)",
                    dataset->path, dataset->file_bytes, layout.row_bytes, dimensions);
  dataset->count = dataset->file_bytes / layout.row_bytes;
  dataset->dimensions = (uint32_t)dimensions;
  dataset->chunk_records = kcp_rows_per_chunk(layout.row_bytes);
  return KCP_OK;
}

static enum kcp_status fvecs_read(const struct kcp_dataset *dataset, uint64_t first, uint64_t count,
                                  struct kcp_scratch *scratch, struct kcp_points *points,
                                  struct kcp_error *error) {
  struct kcp_row_layout layout = layout_of(dataset->dimensions);
  enum kcp_status status = kcp_rows_read(dataset, &layout, first, count, scratch, points, error);
  if (status != KCP_OK) return status;
  for (uint64_t i = 0; i < count; ++i) {
    int32_t dimensions;
    memcpy(&dimensions, scratch->bytes + i * layout.row_bytes, sizeof dimensions);
    if (dimensions < 0 || (uint32_t)dimensions != dataset->dimensions) {
      points->count = i;
      return kcp_fail(error, KCP_BAD_INPUT,
                      "%s: record %" PRIu64 " has dimension %" PRId32 ", record 0 has %" PRIu32,
                      dataset->path, first + i, dimensions, dataset->dimensions);
    }
  }
  return KCP_OK;
}

static enum kcp_status fvecs_begin(struct kcp_point_writer *writer, struct kcp_error *error) {
  if (writer->dimensions <= INT32_MAX) return KCP_OK;
  return kcp_fail(error, KCP_BAD_INPUT, "%s: .fvecs holds up to %" PRId32 " dimensions",
                  writer->path, INT32_MAX);
}

static enum kcp_status fvecs_append(struct kcp_point_writer *writer,
                                    const struct kcp_points *points, struct kcp_error *error) {
  int32_t dimensions = (int32_t)writer->dimensions;
  kcp_point_writer_note_ids(writer, points);
  return kcp_rows_append_float32(writer, points, &dimensions, sizeof dimensions, error);
}

const struct kcp_format kcp_format_fvecs = {
    .name = "fvecs",
    .endings = ".fvecs",
    .open = fvecs_open,
    .read = fvecs_read,
    .begin = fvecs_begin,
    .append = fvecs_append,
};

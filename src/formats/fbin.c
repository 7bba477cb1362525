/* .fbin: u32 n, u32 d, then n rows of d float32, little-endian. */
#include <inttypes.h>

#include "formats/formats.h"

struct header {
  uint32_t count;
  uint32_t dimensions;
};

static struct kcp_row_layout layout_of(uint32_t dimensions) {
  return (struct kcp_row_layout){.data_offset = sizeof(struct header),
                                 .row_bytes = (uint64_t)dimensions * sizeof(float),
                                 .element = KCP_FLOAT32};
}

static enum kcp_status fbin_open(struct kcp_dataset *dataset,
                                 const struct kcp_dataset_options *options,
                                 struct kcp_error *error) {
  (void)options;
  struct header header;
  if (dataset->file_bytes < sizeof header)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "%s: its %" PRIu64 " bytes are fewer than the 8 of a .fbin header",
                    dataset->path, dataset->file_bytes);
  enum kcp_status status = kcp_dataset_pread(dataset, &header, sizeof header, 0, error);
  if (status != KCP_OK) return status;
  if (header.dimensions == 0)
    return kcp_fail(error, KCP_BAD_INPUT, "%s: its header says dimension 0", dataset->path);
  struct kcp_row_layout layout = layout_of(header.dimensions);
  uint64_t expected;
  bool overflow = __builtin_mul_overflow(layout.row_bytes, header.count, &expected);
  overflow |= __builtin_add_overflow(expected, sizeof header, &expected);
  if (overflow || expected != dataset->file_bytes)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "%s: its header says %" PRIu32 " records of dimension %" PRIu32
                    ", which its size of %" PRIu64 " bytes does not match",
                    dataset->path, header.count, header.dimensions, dataset->file_bytes);
  dataset->count = header.count;
  dataset->dimensions = header.dimensions;
  dataset->chunk_records = kcp_rows_per_chunk(layout.row_bytes);
  return KCP_OK;
}

static enum kcp_status fbin_read(const struct kcp_dataset *dataset, uint64_t first, uint64_t count,
                                 struct kcp_scratch *scratch, struct kcp_points *points,
                                 struct kcp_error *error) {
  struct kcp_row_layout layout = layout_of(dataset->dimensions);
  return kcp_rows_read(dataset, &layout, first, count, scratch, points, error);
}

static enum kcp_status check_count(const struct kcp_point_writer *writer, uint64_t count,
                                   struct kcp_error *error) {
  if (count <= UINT32_MAX) return KCP_OK;
  return kcp_fail(error, KCP_BAD_INPUT,
                  "%s: .fbin holds up to %" PRIu32 " records, not %" PRIu64
                  "; write .fvecs or .npy",
                  writer->path, UINT32_MAX, count);
}

static enum kcp_status fbin_begin(struct kcp_point_writer *writer, struct kcp_error *error) {
  enum kcp_status status = check_count(writer, writer->expected, error);
  if (status != KCP_OK) return status;
  struct header header = {(uint32_t)writer->expected, writer->dimensions};
  return kcp_point_writer_put(writer, &header, sizeof header, error);
}

static enum kcp_status fbin_append(struct kcp_point_writer *writer, const struct kcp_points *points,
                                   struct kcp_error *error) {
  kcp_point_writer_note_ids(writer, points);
  return kcp_rows_append_float32(writer, points, NULL, 0, error);
}

static enum kcp_status fbin_finish(struct kcp_point_writer *writer, struct kcp_error *error) {
  if (writer->written == writer->expected) return KCP_OK;
  enum kcp_status status = check_count(writer, writer->written, error);
  if (status != KCP_OK) return status;
  struct header header = {(uint32_t)writer->written, writer->dimensions};
  return kcp_point_writer_rewrite_header(writer, &header, sizeof header, error);
}

const struct kcp_format kcp_format_fbin = {
    .name = "fbin",
    .endings = ".fbin",
    .open = fbin_open,
    .read = fbin_read,
    .begin = fbin_begin,
    .append = fbin_append,
    .finish = fbin_finish,
};

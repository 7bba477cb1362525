#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "formats/formats.h"

enum {
  CHUNK_BYTES = 256 * 1024, /* rows and the columns made of them stay in a core's cache */
  TILE_ROWS = 32            /* rows whose coordinates are spread over the columns at a time */
};

size_t kcp_element_bytes(enum kcp_element element) {
  switch (element) {
    case KCP_INT8:
    case KCP_UINT8: return 1;
    case KCP_INT16:
    case KCP_UINT16: return 2;
    case KCP_FLOAT32:
    case KCP_INT32:
    case KCP_UINT32: return 4;
    case KCP_FLOAT64:
    case KCP_INT64:
    case KCP_UINT64: return 8;
  }
  return 8;
}

#define ALWAYS_EXACT(value) true
#define EXACT_UNSIGNED(value) ((value) <= UINT64_C(1) << 53)
#define EXACT_SIGNED(value) ((value) <= INT64_C(1) << 53 && (value) >= -(INT64_C(1) << 53))

#define DEFINE_CONVERSION(name, type, is_exact)                                                    \
  static uint64_t name(const unsigned char *source, size_t step, uint64_t count, double *target) { \
    for (uint64_t i = 0; i < count; ++i) {                                                         \
      type value;                                                                                  \
      memcpy(&value, source + i * step, sizeof value);                                             \
      if (!is_exact(value)) return i;                                                              \
      target[i] = (double)value;                                                                   \
    }                                                                                              \
    return count;                                                                                  \
  }

DEFINE_CONVERSION(convert_float32, float, ALWAYS_EXACT)
DEFINE_CONVERSION(convert_float64, double, ALWAYS_EXACT)
DEFINE_CONVERSION(convert_int8, int8_t, ALWAYS_EXACT)
DEFINE_CONVERSION(convert_uint8, uint8_t, ALWAYS_EXACT)
DEFINE_CONVERSION(convert_int16, int16_t, ALWAYS_EXACT)
DEFINE_CONVERSION(convert_uint16, uint16_t, ALWAYS_EXACT)
DEFINE_CONVERSION(convert_int32, int32_t, ALWAYS_EXACT)
DEFINE_CONVERSION(convert_uint32, uint32_t, ALWAYS_EXACT)
DEFINE_CONVERSION(convert_int64, int64_t, EXACT_SIGNED)
DEFINE_CONVERSION(convert_uint64, uint64_t, EXACT_UNSIGNED)

uint64_t kcp_elements_to_binary64(enum kcp_element element, const unsigned char *source,
                                  size_t step, uint64_t count, double *target) {
  switch (element) {
    case KCP_FLOAT32: return convert_float32(source, step, count, target);
    case KCP_FLOAT64: return convert_float64(source, step, count, target);
    case KCP_INT8: return convert_int8(source, step, count, target);
    case KCP_UINT8: return convert_uint8(source, step, count, target);
    case KCP_INT16: return convert_int16(source, step, count, target);
    case KCP_UINT16: return convert_uint16(source, step, count, target);
    case KCP_INT32: return convert_int32(source, step, count, target);
    case KCP_UINT32: return convert_uint32(source, step, count, target);
    case KCP_INT64: return convert_int64(source, step, count, target);
    case KCP_UINT64: return convert_uint64(source, step, count, target);
  }
  return 0;
}

enum kcp_status kcp_element_too_large(const struct kcp_dataset *dataset, uint64_t record,
                                      uint32_t coordinate, struct kcp_error *error) {
  struct kcp_coordinate_name name = kcp_coordinate_name(dataset->dimensions, coordinate);
  return kcp_fail(error, KCP_BAD_INPUT,
                  "%s: %s of record %" PRIu64
                  " is an integer beyond 2^53, which binary64 cannot be relied on to hold",
                  dataset->path, name.text, record);
}

uint64_t kcp_rows_per_chunk(uint64_t record_bytes) {
  return record_bytes < CHUNK_BYTES ? CHUNK_BYTES / record_bytes : 1;
}

enum kcp_status kcp_rows_read(const struct kcp_dataset *dataset,
                              const struct kcp_row_layout *layout, uint64_t first, uint64_t count,
                              struct kcp_scratch *scratch, struct kcp_points *points,
                              struct kcp_error *error) {
  size_t bytes = (size_t)(count * layout->row_bytes);
  enum kcp_status status = kcp_scratch_reserve(scratch, bytes, error);
  if (status != KCP_OK) return status;
  status = kcp_dataset_pread(dataset, scratch->bytes, bytes,
                             layout->data_offset + first * layout->row_bytes, error);
  if (status != KCP_OK) return status;

  size_t element_bytes = kcp_element_bytes(layout->element);
  for (uint64_t tile = 0; tile < count; tile += TILE_ROWS) {
    uint64_t rows = count - tile < TILE_ROWS ? count - tile : TILE_ROWS;
    const unsigned char *row = scratch->bytes + tile * layout->row_bytes + layout->prefix_bytes;
    uint64_t converted = rows;
    uint32_t wrong_coordinate = 0;
    for (uint32_t j = 0; j < points->dimensions; ++j) {
      uint64_t exact =
          kcp_elements_to_binary64(layout->element, row + j * element_bytes, layout->row_bytes,
                                   rows, kcp_points_column(points, j) + tile);
      if (exact < converted) {
        converted = exact;
        wrong_coordinate = j;
      }
    }
    points->count = tile + converted;
    if (converted < rows)
      return kcp_element_too_large(dataset, first + points->count, wrong_coordinate, error);
  }
  return KCP_OK;
}

/* Rounds the coordinates of one point to float32. Returns the coordinate that is beyond its range,
 * or `dimensions`. */
static uint32_t round_point(const struct kcp_points *points, uint64_t i, unsigned char *target,
                            uint64_t *rounded_count) {
  for (uint32_t j = 0; j < points->dimensions; ++j) {
    double value = kcp_points_column(points, j)[i];
    float rounded = (float)value;
    if (!isfinite(rounded)) return j;
    *rounded_count += (double)rounded != value;
    memcpy(target + j * sizeof rounded, &rounded, sizeof rounded);
  }
  return points->dimensions;
}

enum kcp_status kcp_rows_append_float32(struct kcp_point_writer *writer,
                                        const struct kcp_points *points, const void *prefix,
                                        size_t prefix_bytes, struct kcp_error *error) {
  size_t row_bytes = prefix_bytes + points->dimensions * sizeof(float);
  uint64_t chunk_rows = kcp_rows_per_chunk(row_bytes);
  enum kcp_status status = kcp_scratch_reserve(&writer->scratch, chunk_rows * row_bytes, error);
  if (status != KCP_OK) return status;
  for (uint64_t first = 0; first < points->count; first += chunk_rows) {
    uint64_t rows = points->count - first < chunk_rows ? points->count - first : chunk_rows;
    for (uint64_t i = 0; i < rows; ++i) {
      unsigned char *row = writer->scratch.bytes + i * row_bytes;
      if (prefix_bytes > 0) memcpy(row, prefix, prefix_bytes);
      uint32_t wrong =
          round_point(points, first + i, row + prefix_bytes, &writer->loss.rounded_count);
      if (wrong < points->dimensions)
        return kcp_fail(error, KCP_BAD_INPUT,
                        "%s: %s of record %" PRIu64
                        " is %.17g, beyond the float32 of this format; write .bin, .csv or .npy",
                        writer->path, kcp_coordinate_name(points->dimensions, wrong).text,
                        writer->written + first + i, kcp_points_column(points, wrong)[first + i]);
    }
    status = kcp_point_writer_put(writer, writer->scratch.bytes, rows * row_bytes, error);
    if (status != KCP_OK) return status;
  }
  return KCP_OK;
}

/* .npy (NumPy's own format, versions 1.0 to 3.0): a header in the words of a Python dictionary,
 * then the elements of an n x d array. One dimension is read as n x 1. Written as binary64 in C
 * order. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/decimal.h"
#include "formats/formats.h"

enum {
  PREAMBLE_BYTES = 8, /* magic and version */
  WRITTEN_HEADER_BYTES = 128,
  LONGEST_HEADER = 1024 * 1024,
  FORTRAN_CHUNK_RECORDS = 16384
};
static const char magic[6] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

static const struct {
  const char *description; /* without the byte order */
  enum kcp_element element;
} elements[] = {
    {"f4", KCP_FLOAT32}, {"f8", KCP_FLOAT64}, {"i1", KCP_INT8},  {"u1", KCP_UINT8},
    {"i2", KCP_INT16},   {"u2", KCP_UINT16},  {"i4", KCP_INT32}, {"u4", KCP_UINT32},
    {"i8", KCP_INT64},   {"u8", KCP_UINT64},
};

static enum kcp_status header_error(const struct kcp_dataset *dataset, const char *reason,
                                    struct kcp_error *error) {
  return kcp_fail(error, KCP_BAD_INPUT, "%s: is no .npy file that kcp can read: %s", dataset->path,
                  reason);
}

/* The value of a key in the header; NULL when it is not there. */
static const char *value_of(const char *header, const char *key) {
  const char *at = strstr(header, key);
  if (at == NULL) return NULL;
  at += strlen(key);
  at += strspn(at, " ");
  if (*at++ != ':') return NULL;
  return at + strspn(at, " ");
}

static enum kcp_status parse_element(const struct kcp_dataset *dataset, const char *header,
                                     enum kcp_element *element, struct kcp_error *error) {
  const char *value = value_of(header, "'descr'");
  if (value == NULL) return header_error(dataset, "its header has no 'descr'", error);
  size_t length = *value == '\'' ? strcspn(value + 1, "'") : 0;
  bool is_plain = length > 0 && length <= 16;
  for (size_t i = 1; i <= length && is_plain; ++i) is_plain = isgraph((unsigned char)value[i]) != 0;
  if (!is_plain) return header_error(dataset, "its elements are not plain numbers", error);
  const char *description = value + 1;
  bool byte_order_known = strchr("<|=", *description) != NULL;
  for (size_t i = 0; i < sizeof elements / sizeof elements[0] && byte_order_known; ++i) {
    if (length != 3 || strncmp(description + 1, elements[i].description, 2) != 0) continue;
    *element = elements[i].element;
    return KCP_OK;
  }
  return kcp_fail(error, KCP_BAD_INPUT,
                  "%s: elements of type '%.*s'; kcp reads little-endian f4, f8, i1 to i8 and u1 to "
                  "u8",
                  dataset->path, (int)length, description);
}

static enum kcp_status parse_order(const struct kcp_dataset *dataset, const char *header,
                                   bool *fortran_order, struct kcp_error *error) {
  const char *value = value_of(header, "'fortran_order'");
  bool is_true = value != NULL && strncmp(value, "True", 4) == 0;
  bool is_false = value != NULL && strncmp(value, "False", 5) == 0;
  if (!is_true && !is_false)
    return header_error(dataset, "its header has no 'fortran_order'", error);
  *fortran_order = is_true;
  return KCP_OK;
}

static enum kcp_status parse_shape(const struct kcp_dataset *dataset, const char *header,
                                   struct kcp_npy_header *facts, struct kcp_error *error) {
  const char *value = value_of(header, "'shape'");
  facts->axis_count = 0;
  facts->axes[0] = 0;
  facts->axes[1] = 1;
  if (value == NULL || *value != '(')
    return header_error(dataset, "its header has no 'shape'", error);
  ++value;
  for (;;) {
    value += strspn(value, " ");
    if (*value == ')') break;
    uint64_t axis;
    if (!kcp_decimal_to_uint64(&value, &axis))
      return header_error(dataset, "its shape is not a list of numbers", error);
    if (facts->axis_count < 2) facts->axes[facts->axis_count] = axis;
    ++facts->axis_count;
    value += strspn(value, " ");
    if (*value == ',')
      ++value;
    else if (*value != ')')
      return header_error(dataset, "its shape is not a list of numbers", error);
  }
  if (facts->axis_count < 1 || facts->axis_count > 2)
    return kcp_fail(error, KCP_BAD_INPUT, "%s: an array of %" PRIu32 " axes; kcp reads one or two",
                    dataset->path, facts->axis_count);
  return KCP_OK;
}

static enum kcp_status check_size(const struct kcp_dataset *dataset,
                                  const struct kcp_npy_header *header, struct kcp_error *error) {
  uint64_t bytes;
  bool overflow =
      __builtin_mul_overflow(header->axes[1], kcp_element_bytes(header->element), &bytes);
  overflow |= __builtin_mul_overflow(bytes, header->axes[0], &bytes);
  uint64_t data_bytes = dataset->file_bytes - header->data_offset;
  if (overflow || bytes != data_bytes)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "%s: its header says %" PRIu64 " x %" PRIu64
                    " elements of %zu bytes, which the %" PRIu64 " bytes behind it do not match",
                    dataset->path, header->axes[0], header->axes[1],
                    kcp_element_bytes(header->element), data_bytes);
  return KCP_OK;
}

/* Reads the dictionary as a string that the caller frees, and where the elements start. */
static enum kcp_status read_dictionary(const struct kcp_dataset *dataset, char **header,
                                       uint64_t *data_offset, struct kcp_error *error) {
  unsigned char preamble[PREAMBLE_BYTES];
  uint32_t length = 0;
  if (dataset->file_bytes < PREAMBLE_BYTES)
    return header_error(dataset, "it is shorter than a header", error);
  enum kcp_status status = kcp_dataset_pread(dataset, preamble, sizeof preamble, 0, error);
  if (status != KCP_OK) return status;
  if (memcmp(preamble, magic, sizeof magic) != 0)
    return header_error(dataset, "it does not start with \\x93NUMPY", error);
  unsigned version = preamble[6];
  if (version < 1 || version > 3)
    return header_error(dataset, "its version is none of 1, 2 and 3", error);
  size_t length_bytes = version == 1 ? sizeof(uint16_t) : sizeof(uint32_t);
  *data_offset = PREAMBLE_BYTES + length_bytes;
  if (dataset->file_bytes < *data_offset)
    return header_error(dataset, "it ends within its header", error);
  status = kcp_dataset_pread(dataset, &length, length_bytes, PREAMBLE_BYTES, error);
  if (status != KCP_OK) return status;
  if (length > LONGEST_HEADER || length > dataset->file_bytes - *data_offset)
    return header_error(dataset, "it ends within its header", error);
  *header = calloc(length + 1, 1);
  if (*header == NULL) return kcp_out_of_memory(error, "a header", length);
  status = kcp_dataset_pread(dataset, *header, length, *data_offset, error);
  *data_offset += length;
  return status;
}

enum kcp_status kcp_npy_read_header(const struct kcp_dataset *dataset,
                                    struct kcp_npy_header *header, struct kcp_error *error) {
  char *dictionary = NULL;
  enum kcp_status status = read_dictionary(dataset, &dictionary, &header->data_offset, error);
  if (status == KCP_OK) status = parse_element(dataset, dictionary, &header->element, error);
  if (status == KCP_OK) status = parse_order(dataset, dictionary, &header->fortran_order, error);
  if (status == KCP_OK) status = parse_shape(dataset, dictionary, header, error);
  if (status == KCP_OK) status = check_size(dataset, header, error);
  free(dictionary);
  return status;
}

static enum kcp_status npy_open(struct kcp_dataset *dataset,
                                const struct kcp_dataset_options *options,
                                struct kcp_error *error) {
  (void)options;
  struct kcp_npy_header *header = calloc(1, sizeof *header);
  if (header == NULL) return kcp_out_of_memory(error, "an array", sizeof *header);
  dataset->state = header;
  enum kcp_status status = kcp_npy_read_header(dataset, header, error);
  if (status != KCP_OK) return status;
  if (header->axes[1] == 0)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "%s: an array of %" PRIu64 " x 0: points without coordinates", dataset->path,
                    header->axes[0]);
  if (header->axes[1] > UINT32_MAX)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "%s: an array of %" PRIu64 " x %" PRIu64 ": points of too many coordinates",
                    dataset->path, header->axes[0], header->axes[1]);
  dataset->count = header->axes[0];
  dataset->dimensions = (uint32_t)header->axes[1];
  dataset->chunk_records =
      header->fortran_order
          ? FORTRAN_CHUNK_RECORDS
          : kcp_rows_per_chunk(header->axes[1] * kcp_element_bytes(header->element));
  return KCP_OK;
}

static void npy_close(struct kcp_dataset *dataset) {
  free(dataset->state);
}

static enum kcp_status read_columns(const struct kcp_dataset *dataset,
                                    const struct kcp_npy_header *array, uint64_t first,
                                    uint64_t count, struct kcp_scratch *scratch,
                                    struct kcp_points *points, struct kcp_error *error) {
  size_t element_bytes = kcp_element_bytes(array->element);
  uint64_t converted = count;
  uint32_t wrong_coordinate = 0;
  enum kcp_status status = kcp_scratch_reserve(scratch, (size_t)count * element_bytes, error);
  for (uint32_t j = 0; j < points->dimensions && status == KCP_OK; ++j) {
    uint64_t offset = array->data_offset + (j * dataset->count + first) * element_bytes;
    status =
        kcp_dataset_pread(dataset, scratch->bytes, (size_t)count * element_bytes, offset, error);
    if (status != KCP_OK) return status;
    uint64_t exact = kcp_elements_to_binary64(array->element, scratch->bytes, element_bytes, count,
                                              kcp_points_column(points, j));
    if (exact < converted) {
      converted = exact;
      wrong_coordinate = j;
    }
  }
  if (status != KCP_OK) return status;
  points->count = converted;
  if (converted == count) return KCP_OK;
  return kcp_element_too_large(dataset, first + converted, wrong_coordinate, error);
}

static bool npy_layout(const struct kcp_dataset *dataset, struct kcp_row_layout *layout) {
  const struct kcp_npy_header *array = dataset->state;
  *layout = (struct kcp_row_layout){
      .data_offset = array->data_offset,
      .row_bytes = (uint64_t)dataset->dimensions * kcp_element_bytes(array->element),
      .element = array->element};
  return !array->fortran_order;
}

static enum kcp_status npy_read(const struct kcp_dataset *dataset, uint64_t first, uint64_t count,
                                struct kcp_scratch *scratch, struct kcp_points *points,
                                struct kcp_error *error) {
  const struct kcp_npy_header *array = dataset->state;
  if (array->fortran_order)
    return read_columns(dataset, array, first, count, scratch, points, error);
  struct kcp_row_layout layout;
  npy_layout(dataset, &layout);
  return kcp_rows_read(dataset, &layout, first, count, scratch, points, error);
}

/* A header of one size for every count, so that it can be corrected. */
struct header {
  char bytes[WRITTEN_HEADER_BYTES];
};

static struct header header_of(uint64_t count, uint32_t dimensions) {
  struct header header;
  char text[WRITTEN_HEADER_BYTES];
  const uint16_t length = WRITTEN_HEADER_BYTES - PREAMBLE_BYTES - sizeof length;
  int used =
      snprintf(text, sizeof text,
               "{'descr': '<f8', 'fortran_order': False, 'shape': (%" PRIu64 ", %" PRIu32 "), }",
               count, dimensions);
  memset(&header, ' ', sizeof header);
  memcpy(header.bytes, magic, sizeof magic);
  header.bytes[6] = 1;
  header.bytes[7] = 0;
  memcpy(header.bytes + PREAMBLE_BYTES, &length, sizeof length);
  memcpy(header.bytes + PREAMBLE_BYTES + sizeof length, text, (size_t)used);
  header.bytes[WRITTEN_HEADER_BYTES - 1] = '\n';
  return header;
}

static enum kcp_status npy_begin(struct kcp_point_writer *writer, struct kcp_error *error) {
  struct header header = header_of(writer->expected, writer->dimensions);
  return kcp_point_writer_put(writer, header.bytes, sizeof header.bytes, error);
}

static enum kcp_status npy_append(struct kcp_point_writer *writer, const struct kcp_points *points,
                                  struct kcp_error *error) {
  kcp_point_writer_note_ids(writer, points);
  uint64_t row_bytes = (uint64_t)points->dimensions * sizeof(double);
  uint64_t chunk_rows = kcp_rows_per_chunk(row_bytes);
  enum kcp_status status =
      kcp_scratch_reserve(&writer->scratch, (size_t)(chunk_rows * row_bytes), error);
  if (status != KCP_OK) return status;
  double *rows = (double *)writer->scratch.bytes;
  for (uint64_t first = 0; first < points->count; first += chunk_rows) {
    uint64_t count = points->count - first < chunk_rows ? points->count - first : chunk_rows;
    for (uint64_t i = 0; i < count; ++i)
      for (uint32_t j = 0; j < points->dimensions; ++j)
        rows[i * points->dimensions + j] = kcp_points_column(points, j)[first + i];
    status = kcp_point_writer_put(writer, rows, (size_t)(count * row_bytes), error);
    if (status != KCP_OK) return status;
  }
  return KCP_OK;
}

static enum kcp_status npy_finish(struct kcp_point_writer *writer, struct kcp_error *error) {
  if (writer->written == writer->expected) return KCP_OK;
  struct header header = header_of(writer->written, writer->dimensions);
  return kcp_point_writer_rewrite_header(writer, header.bytes, sizeof header.bytes, error);
}

const struct kcp_format kcp_format_npy = {
    .name = "npy",
    .endings = ".npy",
    .open = npy_open,
    .read = npy_read,
    .layout = npy_layout,
    .close = npy_close,
    .begin = npy_begin,
    .append = npy_append,
    .finish = npy_finish,
};

#include "kcp/value_array.h"

#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "formats/formats.h"

#define SLICE_BYTES (UINT64_C(1) << 20) /* what a thread reads at a time */

static const char *const type_names[KCP_VALUE_TYPES] = {"f32", "f64", "i32", "u32", "i64"};

/* The file as a dataset has it: path, descriptor, size. */
struct kcp_value_array {
  struct kcp_dataset file;
  struct kcp_value_array_facts facts;
  uint64_t data_offset;
};

const char *kcp_value_type_name(enum kcp_value_type type) {
  return type_names[type];
}

bool kcp_value_type_of_path(const char *path, enum kcp_value_type *type) {
  const char *ending = strrchr(path, '.');
  if (ending == NULL) return false;
  for (int i = 0; i < KCP_VALUE_TYPES; ++i)
    if (strcasecmp(ending + 1, type_names[i]) == 0) {
      *type = (enum kcp_value_type)i;
      return true;
    }
  return false;
}

bool kcp_is_raw_array(const char *path) {
  enum kcp_value_type type;
  return kcp_value_type_of_path(path, &type);
}

static enum kcp_status look_at_raw(struct kcp_value_array *array, struct kcp_error *error) {
  struct kcp_value_array_facts *facts = &array->facts;
  const uint32_t bytes = kcp_value_bytes(facts->type);
  facts->format = type_names[facts->type];
  facts->rows = 1;
  facts->columns = facts->file_bytes / bytes;
  if (facts->file_bytes % bytes != 0)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "%s: %" PRIu64 " bytes are not a whole number of values of %" PRIu32 " bytes",
                    facts->path, facts->file_bytes, bytes);
  return KCP_OK;
}

static enum kcp_status look_at_npy(struct kcp_value_array *array, struct kcp_error *error) {
  static const struct {
    enum kcp_element element;
    enum kcp_value_type type;
  } types[] = {{KCP_FLOAT32, KCP_VALUE_F32},
               {KCP_FLOAT64, KCP_VALUE_F64},
               {KCP_INT32, KCP_VALUE_I32},
               {KCP_UINT32, KCP_VALUE_U32},
               {KCP_INT64, KCP_VALUE_I64}};
  struct kcp_value_array_facts *facts = &array->facts;
  struct kcp_npy_header header;
  size_t i = 0;
  enum kcp_status status = kcp_npy_read_header(&array->file, &header, error);
  if (status != KCP_OK) return status;
  while (i < sizeof types / sizeof types[0] && types[i].element != header.element) ++i;
  if (i == sizeof types / sizeof types[0])
    return kcp_fail(error, KCP_BAD_INPUT,
                    "%s: top-k takes elements of type f4, f8, i4, u4 or i8; convert the array with "
                    "astype",
                    facts->path);
  facts->format = "npy";
  facts->type = types[i].type;
  facts->has_rows = header.axis_count == 2;
  facts->rows = facts->has_rows ? header.axes[0] : 1;
  facts->columns = header.axes[facts->has_rows];
  array->data_offset = header.data_offset;
  if (header.fortran_order && facts->rows > 1 && facts->columns > 1)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "%s: its rows do not lie together (Fortran order); save it after "
                    "numpy.ascontiguousarray",
                    facts->path);
  return KCP_OK;
}

static enum kcp_status look(struct kcp_value_array *array, struct kcp_error *error) {
  enum kcp_status status = kcp_dataset_open_file(&array->file, error);
  if (status != KCP_OK) return status;
  array->facts.path = array->file.path;
  array->facts.file_bytes = array->file.file_bytes;
  if (kcp_value_type_of_path(array->file.path, &array->facts.type))
    return look_at_raw(array, error);
  const char *ending = strrchr(array->file.path, '.');
  if (ending != NULL && strcasecmp(ending, ".npy") == 0) return look_at_npy(array, error);
  return kcp_fail(error, KCP_BAD_INPUT,
                  "%s: top-k takes a file of values: .f32 .f64 .i32 .u32 .i64 or .npy",
                  array->file.path);
}

enum kcp_status kcp_value_array_open(const char *path, struct kcp_value_array **out,
                                     struct kcp_error *error) {
  struct kcp_value_array *array = calloc(1, sizeof *array);
  if (array == NULL) return kcp_out_of_memory(error, "an array", sizeof *array);
  array->file.descriptor = -1;
  array->file.path = strdup(path);
  enum kcp_status status = array->file.path != NULL
                               ? look(array, error)
                               : kcp_out_of_memory(error, "a path", strlen(path) + 1);
  if (status != KCP_OK) {
    kcp_value_array_close(array);
    return status;
  }
  *out = array;
  return KCP_OK;
}

void kcp_value_array_close(struct kcp_value_array *array) {
  if (array == NULL) return;
  if (array->file.descriptor >= 0) close(array->file.descriptor);
  free(array->file.path);
  free(array);
}

struct kcp_value_array_facts kcp_value_array_facts(const struct kcp_value_array *array) {
  return array->facts;
}

static enum kcp_status read_values(void *context, uint64_t first, uint64_t count, void *out,
                                   struct kcp_error *error) {
  const struct kcp_value_array *array = context;
  const uint32_t size = kcp_value_bytes(array->facts.type);
  const uint64_t bytes = count * size, offset = array->data_offset + first * size;
  enum kcp_status status = KCP_OK;
  if (bytes <= SLICE_BYTES || omp_in_parallel())
    return kcp_dataset_pread(&array->file, out, bytes, offset, error);
#pragma omp parallel for schedule(dynamic)
  for (uint64_t done = 0; done < bytes; done += SLICE_BYTES) {
    struct kcp_error reason;
    uint64_t here = bytes - done < SLICE_BYTES ? bytes - done : SLICE_BYTES;
    enum kcp_status mine =
        kcp_dataset_pread(&array->file, (char *)out + done, here, offset + done, &reason);
    if (mine == KCP_OK) continue;
#pragma omp critical(kcp_value_array_read)
    if (status == KCP_OK) {
      status = mine;
      if (error != NULL) *error = reason;
    }
  }
  return status;
}

struct kcp_value_source kcp_value_array_source(struct kcp_value_array *array) {
  struct kcp_value_source source = {array, read_values};
  return source;
}

/* Files of plain values: .f32 .f64 .i32 .u32 .i64 (little-endian, no header) and .npy of one axis
 * or two (rows). Their ending names the type. */
#ifndef KCP_VALUE_ARRAY_H
#define KCP_VALUE_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "kcp/status.h"
#include "kcp/top_k.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kcp_value_array;

struct kcp_value_array_facts {
  const char *path;
  const char *format; /* "f32", ..., "npy" */
  enum kcp_value_type type;
  bool has_rows; /* two axes */
  uint64_t rows; /* 1 with one axis */
  uint64_t columns;
  uint64_t file_bytes;
};

/* Whether the path ends in .f32, .f64, .i32, .u32 or .i64: a file that holds nothing but values. */
bool kcp_is_raw_array(const char *path);

/* "f32", "f64", "i32", "u32" or "i64". */
const char *kcp_value_type_name(enum kcp_value_type type);
/* The type that a raw array's ending names; false when it names none. */
bool kcp_value_type_of_path(const char *path, enum kcp_value_type *type);

/* Names of what gen-values makes; ends with NULL (src/commands/gen_values.c). */
extern const char *const kcp_value_distributions[];

/* Opens and checks the size against type and header. KCP_BAD_INPUT with file and reason. */
enum kcp_status kcp_value_array_open(const char *path, struct kcp_value_array **out,
                                     struct kcp_error *error);
void kcp_value_array_close(struct kcp_value_array *array); /* NULL is allowed */

struct kcp_value_array_facts kcp_value_array_facts(const struct kcp_value_array *array);

/* Reads its values; large requests on all threads. The array outlives the source. */
struct kcp_value_source kcp_value_array_source(struct kcp_value_array *array);

#ifdef __cplusplus
}
#endif
#endif

/* What a point file format provides, and what the generic readers and writers give it.
 *
 * A format is one file here and one row of the table in formats.c. Reading: `open` looks at the
 * header and fills in the facts of the dataset, `read` decodes the records of one chunk; the
 * generic part (dataset.c) deals chunks to threads, checks that coordinates are finite, scales them
 * and numbers records that have no ids. Writing: `begin`, `append`..., `finish` on a stream that
 * the generic part (point_writer.c) opened and will rename or remove. */
#ifndef KCP_FORMATS_FORMATS_H
#define KCP_FORMATS_FORMATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kcp/dataset.h"
#include "kcp/output_file.h"
#include "kcp/point_writer.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the binary formats are read and written without swapping bytes");

/* A buffer that one thread keeps from chunk to chunk. */
struct kcp_scratch {
  unsigned char *bytes;
  size_t capacity;
};

/* Room for that many bytes, at least one; what was there is lost when it grows. */
enum kcp_status kcp_scratch_reserve(struct kcp_scratch *scratch, size_t bytes,
                                    struct kcp_error *error);
void kcp_scratch_free(struct kcp_scratch *scratch);

enum kcp_element {
  KCP_FLOAT32,
  KCP_FLOAT64,
  KCP_INT8,
  KCP_UINT8,
  KCP_INT16,
  KCP_UINT16,
  KCP_INT32,
  KCP_UINT32,
  KCP_INT64,
  KCP_UINT64
};

/* Rows of equal size, the first at `data_offset`, each with its coordinates after `prefix_bytes`.
 */
struct kcp_row_layout {
  uint64_t data_offset;
  uint64_t row_bytes;
  uint32_t prefix_bytes;
  enum kcp_element element;
};

struct kcp_format {
  const char *name;
  const char *endings; /* separated by blanks: ".csv .txt" */

  /* Fills in count, dimensions, has_ids, the chunks and `state` of a dataset whose path, descriptor
   * and file_bytes are set. On failure `close` is called all the same. */
  enum kcp_status (*open)(struct kcp_dataset *dataset, const struct kcp_dataset_options *options,
                          struct kcp_error *error);
  /* Decodes records first .. first + count - 1, which lie in one chunk, into `points` (room for
   * them; ids are left alone when the file has none). Sets points->count to the records that are
   * whole, on failure those before the one that is wrong. Called by several threads at once. */
  enum kcp_status (*read)(const struct kcp_dataset *dataset, uint64_t first, uint64_t count,
                          struct kcp_scratch *scratch, struct kcp_points *points,
                          struct kcp_error *error);
  /* The line of text, from 1, that holds a record; 0 when it cannot be found again. NULL for
   * formats without lines. */
  uint64_t (*line_of)(const struct kcp_dataset *dataset, uint64_t record);
  /* Where the records are, when they are rows of equal size; else false. NULL when they never are.
   */
  bool (*layout)(const struct kcp_dataset *dataset, struct kcp_row_layout *layout);
  void (*close)(struct kcp_dataset *dataset); /* frees `state`; NULL when there is none */

  enum kcp_status (*begin)(struct kcp_point_writer *writer, struct kcp_error *error);
  enum kcp_status (*append)(struct kcp_point_writer *writer, const struct kcp_points *points,
                            struct kcp_error *error);
  /* Completes the file: corrects the header when `written` is not `expected`. NULL when there is
   * nothing to do. */
  enum kcp_status (*finish)(struct kcp_point_writer *writer, struct kcp_error *error);
};

extern const struct kcp_format kcp_format_bin;
extern const struct kcp_format kcp_format_csv;
extern const struct kcp_format kcp_format_tsv;
extern const struct kcp_format kcp_format_npy;
extern const struct kcp_format kcp_format_fvecs;
extern const struct kcp_format kcp_format_fbin;

/* The format that the ending of `path` names, in any case of letters; NULL when none does. */
const struct kcp_format *kcp_format_of_path(const char *path);
const struct kcp_format *kcp_format_named(const char *name); /* NULL when there is none */
/* ".bin .csv .txt ..." for messages; cut to `size` bytes. */
void kcp_format_endings(char *text, size_t size);

struct kcp_dataset {
  const struct kcp_format *format;
  char *path;
  int descriptor;
  uint64_t file_bytes;

  uint64_t count;
  uint32_t dimensions;
  bool has_ids;
  /* Chunks are what a thread reads at a time. Chunk c starts at record c * chunk_records, or at
   * chunk_starts[c] when that is set (chunk_count + 1 elements, ascending, the last one `count`).
   */
  uint64_t chunk_records;
  uint64_t *chunk_starts;
  uint64_t chunk_count;
  void *state; /* of the format */

  void *mapping;                /* of the whole file; NULL until kcp_dataset_map made it */
  bool ids_descend;             /* a record read from it has no greater id than the one before */
  struct kcp_row_layout layout; /* of the mapping */

  bool drop_invalid;
  uint64_t dropped;
  double scale[2]; /* coordinates are multiplied by one, then by the other */
  struct kcp_coordinate_range range;
};

/* kcp_dataset_open for a file whatever its ending: `format_name` is the name of a format. */
enum kcp_status kcp_dataset_open_as(const char *path, const char *format_name,
                                    const struct kcp_dataset_options *options,
                                    struct kcp_dataset **out, struct kcp_error *error);

/* Opens the file at dataset->path; sets descriptor and file_bytes. */
enum kcp_status kcp_dataset_open_file(struct kcp_dataset *dataset, struct kcp_error *error);

/* Reads exactly `bytes` bytes; KCP_FAILED when the file has become shorter than it was. */
enum kcp_status kcp_dataset_pread(const struct kcp_dataset *dataset, void *bytes, size_t count,
                                  uint64_t offset, struct kcp_error *error);

/* The chunk that holds `record`, which must be less than the count. */
uint64_t kcp_dataset_chunk_of(const struct kcp_dataset *dataset, uint64_t record);

/* What a coordinate is called in messages: x, y, z up to three dimensions, else "coordinate 7". */
struct kcp_coordinate_name {
  char text[24];
};
struct kcp_coordinate_name kcp_coordinate_name(uint32_t dimensions, uint32_t coordinate);

struct kcp_point_writer {
  const struct kcp_format *format;
  char *path;
  struct kcp_output_file file;
  uint32_t dimensions;
  uint64_t expected; /* records announced */
  uint64_t written;  /* records appended so far */
  struct kcp_point_writer_loss loss;
  struct kcp_scratch scratch;
};

/* fwrite with the reason of a failure. */
enum kcp_status kcp_point_writer_put(struct kcp_point_writer *writer, const void *bytes,
                                     size_t count, struct kcp_error *error);
/* Writes `bytes` over the start of the file; KCP_FAILED on a pipe. */
enum kcp_status kcp_point_writer_rewrite_header(struct kcp_point_writer *writer, const void *bytes,
                                                size_t count, struct kcp_error *error);
/* Notes that a format without ids loses those that are not record numbers. */
void kcp_point_writer_note_ids(struct kcp_point_writer *writer, const struct kcp_points *points);

/* Rows of equal size: what .npy, .fvecs and .fbin share (rows.c). */

size_t kcp_element_bytes(enum kcp_element element);

/* What the header of a .npy file says (npy.c). */
struct kcp_npy_header {
  enum kcp_element element;
  bool fortran_order;
  uint32_t axis_count; /* 1 or 2 */
  uint64_t axes[2];    /* 1 for the second when there is none */
  uint64_t data_offset;
};

/* Reads it and checks the size of the file against it; path, descriptor and file_bytes are set. */
enum kcp_status kcp_npy_read_header(const struct kcp_dataset *dataset,
                                    struct kcp_npy_header *header, struct kcp_error *error);

/* Converts `count` elements, `step` bytes apart, and returns how many were converted: fewer than
 * `count` when the next one is an integer beyond 2^53, which binary64 need not hold. */
uint64_t kcp_elements_to_binary64(enum kcp_element element, const unsigned char *source,
                                  size_t step, uint64_t count, double *target);
/* KCP_BAD_INPUT for the element that kcp_elements_to_binary64 stopped at. */
enum kcp_status kcp_element_too_large(const struct kcp_dataset *dataset, uint64_t record,
                                      uint32_t coordinate, struct kcp_error *error);

/* Records per chunk for records of `record_bytes`. */
uint64_t kcp_rows_per_chunk(uint64_t record_bytes);

/* Reads rows as the layout describes. The rows themselves stay in `scratch` for further checks. */
enum kcp_status kcp_rows_read(const struct kcp_dataset *dataset,
                              const struct kcp_row_layout *layout, uint64_t first, uint64_t count,
                              struct kcp_scratch *scratch, struct kcp_points *points,
                              struct kcp_error *error);

/* Appends the points as rows of `prefix` and float32 coordinates. Counts those that were rounded;
 * KCP_BAD_INPUT for one beyond the range of float32. */
enum kcp_status kcp_rows_append_float32(struct kcp_point_writer *writer,
                                        const struct kcp_points *points, const void *prefix,
                                        size_t prefix_bytes, struct kcp_error *error);

#endif

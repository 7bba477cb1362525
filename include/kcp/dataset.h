/* Point files: opened, checked and read by record range, whatever their format.
 *
 * A dataset never needs to be in memory as a whole: kcp_dataset_read gives any range of records.
 * Formats are rows of one table (src/formats/formats.c); a new one is a new file and a row. */
#ifndef KCP_DATASET_H
#define KCP_DATASET_H

#include <stdbool.h>
#include <stdint.h>

#include "kcp/points.h"
#include "kcp/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a text file without a header and without --columns holds. */
enum kcp_text_layout {
  KCP_TEXT_ID_FIRST,        /* id,x,y[,z...]; two columns are x,y (k closest pairs, influence) */
  KCP_TEXT_COORDINATES_ONLY /* every column is a coordinate (range join) */
};

struct kcp_dataset_options {
  const char *columns; /* --columns, e.g. "id,x,y,-,z"; NULL when not given */
  enum kcp_text_layout text_layout;
  /* Names of columns of text files to be read as coordinates 2, 3, ... (weights of sites); no
   * other column may then be z. */
  const char *const *attributes;
  uint32_t attribute_count;
  bool drop_invalid; /* leave out records with a coordinate that is not finite (convert) */
};

/* What was seen of the coordinates in the records read so far. With no record read, maximum is
 * -inf and minimum +inf for each dimension. */
struct kcp_coordinate_range {
  double largest_magnitude;  /* max |c|; 0 when none */
  double smallest_magnitude; /* min |c| over c != 0; +inf when none */
  uint32_t dimensions;
  double *minimum; /* per dimension; owned by the dataset */
  double *maximum;
};

struct kcp_dataset;

/* Opens `path` by its ending and checks what can be checked without reading it all (size against
 * the header or record size, columns of the first line, ...). Coordinates are checked when read.
 * KCP_BAD_INPUT with file and reason when it cannot be right. */
enum kcp_status kcp_dataset_open(const char *path, const struct kcp_dataset_options *options,
                                 struct kcp_dataset **out, struct kcp_error *error);
void kcp_dataset_close(struct kcp_dataset *dataset); /* NULL is allowed */

const char *kcp_dataset_path(const struct kcp_dataset *dataset);
const char *kcp_dataset_format(const struct kcp_dataset *dataset); /* "bin", "csv", ... */
uint64_t kcp_dataset_count(const struct kcp_dataset *dataset);
uint32_t kcp_dataset_dimensions(const struct kcp_dataset *dataset); /* 3 for .bin */
uint64_t kcp_dataset_file_bytes(const struct kcp_dataset *dataset);
bool kcp_dataset_has_ids(const struct kcp_dataset *dataset); /* false: ids are record numbers */

/* Reads records first .. first + count - 1 into `points`, whose memory the caller owns: room for
 * `count` points at its own stride, `dimensions` as the dataset's. Sets points->count. Every
 * coordinate is finite afterwards, else KCP_BAD_INPUT naming file, record (or line) and column.
 * Coordinates are multiplied by 2^exponent of kcp_dataset_set_scale. All cores are used inside;
 * calls on one dataset must not overlap. KCP_INTERRUPTED when kcp_interrupted() became true. */
enum kcp_status kcp_dataset_read(struct kcp_dataset *dataset, uint64_t first, uint64_t count,
                                 struct kcp_points *points, struct kcp_error *error);

/* Extremes of the unscaled coordinates of all records read so far. */
const struct kcp_coordinate_range *kcp_dataset_range(const struct kcp_dataset *dataset);

/* From now on coordinates are read times 2^exponent (exact unless they underflow); 0 at first.
 * DESIGN.md, exactness rule 5. */
void kcp_dataset_set_scale(struct kcp_dataset *dataset, int exponent);

/* Leaves out invalid records only with options.drop_invalid; how many were left out so far. With
 * it, kcp_dataset_read may set points->count to fewer than asked for. */
uint64_t kcp_dataset_dropped(const struct kcp_dataset *dataset);

#ifdef __cplusplus
}
#endif
#endif

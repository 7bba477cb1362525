/* Point files being written, in the format that the path's ending names (src/formats/formats.c). */
#ifndef KCP_POINT_WRITER_H
#define KCP_POINT_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "kcp/points.h"
#include "kcp/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kcp_point_writer;

/* Opens a file beside `path` for points of `dimensions` coordinates; `count` records are expected
 * (a header may need it; kcp_point_writer_commit corrects it when fewer were written).
 * KCP_BAD_INPUT when the format cannot hold them (a .bin of more than 3 dimensions, ...). */
enum kcp_status kcp_point_writer_open(const char *path, uint64_t count, uint32_t dimensions,
                                      struct kcp_point_writer **out, struct kcp_error *error);
enum kcp_status kcp_point_writer_append(struct kcp_point_writer *writer,
                                        const struct kcp_points *points, struct kcp_error *error);

/* What the format could not keep of what was appended, for a warning. */
struct kcp_point_writer_loss {
  bool ids;               /* ids other than the record number, in a format without ids */
  uint64_t rounded_count; /* coordinates that a float32 format rounded */
};
struct kcp_point_writer_loss kcp_point_writer_loss(const struct kcp_point_writer *writer);

/* Completes the file and renames it to its final name. Frees the writer in any case. */
enum kcp_status kcp_point_writer_commit(struct kcp_point_writer *writer, struct kcp_error *error);
/* Removes what was written; the final name is untouched. NULL is allowed. */
void kcp_point_writer_discard(struct kcp_point_writer *writer);

#ifdef __cplusplus
}
#endif
#endif

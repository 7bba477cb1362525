/* The pairs of a range join as files: an array of ids with an array of offsets (.npy), or lines of
 * text (.csv). Queries are written in the order of their file, and so never all held. */
#ifndef KCP_RANGE_WRITER_H
#define KCP_RANGE_WRITER_H

#include "kcp/output_file.h"
#include "kcp/range_pairs.h"
#include "kcp/range_run.h"

#ifdef __cplusplus
extern "C" {
#endif

enum kcp_range_file { KCP_RANGE_FILE_CSV, KCP_RANGE_FILE_NPY };

struct kcp_range_writer {
  enum kcp_range_file kind;
  const char *path;
  struct kcp_output_file pairs;   /* OUT */
  struct kcp_output_file offsets; /* of OUT.npy: OUT.offsets.npy */
  char *offsets_path;
  bool self;
  int scale_exponent; /* at which the ranks were computed */
  unsigned id_bytes;  /* of OUT.npy: 4, or 8 when an id needs it */
  uint64_t offset;    /* pairs written */
};

/* Opens the files beside their final names; a zeroed struct before. */
enum kcp_status kcp_range_writer_open(const char *path, struct kcp_range_writer *writer,
                                      struct kcp_error *error);
/* Whether it wants the ranks of the pairs. */
bool kcp_range_writer_wants_ranks(const struct kcp_range_writer *writer);
/* Before the first pair: headers, and whether the disk has room. KCP_FAILED when not. */
enum kcp_status kcp_range_writer_begin(struct kcp_range_writer *writer,
                                       const struct kcp_range_runner *runner, uint64_t pair_count,
                                       struct kcp_error *error);
/* The next queries. .csv: `id1,id2,distance`, id1 of D and id2 of Q; of a self-join, whose pairs
 * come both ways, id1 is the query, so that lines are in the order of (record 1, record 2). */
enum kcp_status kcp_range_writer_add(struct kcp_range_writer *writer,
                                     const struct kcp_range_runner *runner,
                                     const struct kcp_range_pairs *pairs, struct kcp_error *error);
/* Completes the files and gives them their names. */
enum kcp_status kcp_range_writer_commit(struct kcp_range_writer *writer, struct kcp_error *error);
void kcp_range_writer_discard(struct kcp_range_writer *writer); /* a zeroed struct is allowed */

#ifdef __cplusplus
}
#endif
#endif

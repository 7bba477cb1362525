/* Output files that appear whole or not at all: written beside their final name, then renamed. */
#ifndef KCP_OUTPUT_FILE_H
#define KCP_OUTPUT_FILE_H

#include <stdio.h>

#include "kcp/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kcp_output_file {
  FILE *stream; /* write here; owned */
  char *final_path;
  char *partial_path;
};

/* KCP_BAD_INPUT when the place cannot be written to. */
enum kcp_status kcp_output_file_open(const char *path, struct kcp_output_file *file,
                                     struct kcp_error *error);
/* Flushes, syncs errors out of the stream, renames. KCP_FAILED (disk full, ...) discards it. */
enum kcp_status kcp_output_file_commit(struct kcp_output_file *file, struct kcp_error *error);
/* Closes and removes the partial file; does nothing to a zeroed struct. */
void kcp_output_file_discard(struct kcp_output_file *file);

#ifdef __cplusplus
}
#endif
#endif

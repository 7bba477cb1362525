/* A pass over all records of a dataset, block by block. */
#ifndef KCP_SCAN_H
#define KCP_SCAN_H

#include "kcp/dataset.h"
#include "kcp/progress.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called for each block in order; `first` is the number of its first record before any were
 * dropped. NULL to read (and so check) the records only. */
typedef enum kcp_status kcp_block_visitor(void *context, const struct kcp_points *block,
                                          uint64_t first, struct kcp_error *error);

/* Reads everything once and calls `visit` with `context`. A block takes about 64 MiB. Progress may
 * be NULL. */
enum kcp_status kcp_scan(struct kcp_dataset *dataset, kcp_block_visitor *visit, void *context,
                         struct kcp_progress *progress, struct kcp_error *error);

/* The records of one block. */
uint64_t kcp_scan_block_records(uint32_t dimensions);

#ifdef __cplusplus
}
#endif
#endif

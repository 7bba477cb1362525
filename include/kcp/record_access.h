/* Random access to few records of a large file: samples, and the ids of winners. */
#ifndef KCP_RECORD_ACCESS_H
#define KCP_RECORD_ACCESS_H

#include "kcp/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* About `wanted` records spread evenly over the file in short runs, or all of them when there are
 * no more: coordinates (scaled as in kcp_dataset_read) into `points` (room for `wanted`; ids are
 * record numbers), sets points->count. All cores are used. A sampled coordinate that is not finite
 * is an error as in kcp_dataset_read. Text files, where records are found by parsing, give few long
 * runs. */
enum kcp_status kcp_dataset_sample(struct kcp_dataset *dataset, uint64_t wanted,
                                   struct kcp_points *points, struct kcp_error *error);

/* ids[i] = the id of record records[i], i < count, in any order, repeats allowed. All cores are
 * used. */
enum kcp_status kcp_dataset_ids_of(struct kcp_dataset *dataset, const uint64_t *records,
                                   uint64_t count, uint64_t *ids, struct kcp_error *error);

#ifdef __cplusplus
}
#endif
#endif

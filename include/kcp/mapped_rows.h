/* Reading the coordinates alone of files of fixed rows, from a mapping of the file: of a .bin in
 * two dimensions, half of the bytes are never copied. */
#ifndef KCP_MAPPED_ROWS_H
#define KCP_MAPPED_ROWS_H

#include "kcp/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the dataset can be read so: rows of binary64 (.bin, .npy of float64 in C order), none
 * left out. Maps it the first time; the dataset owns the mapping. */
bool kcp_dataset_map(struct kcp_dataset *dataset);

/* The first points->dimensions coordinates of records first .. first + count - 1 of a dataset that
 * kcp_dataset_map accepted, into `points` (room for `count`; ids are not touched), scaled and
 * checked as by kcp_dataset_read. The other coordinates must be rest[0], rest[1], ... (scaled) in
 * every record; else *rest_differs becomes true and the points are of no use. All cores are used
 * inside; calls on one dataset must not overlap. */
enum kcp_status kcp_dataset_read_leading(struct kcp_dataset *dataset, uint64_t first,
                                         uint64_t count, const double *rest,
                                         struct kcp_points *points, bool *rest_differs,
                                         struct kcp_error *error);

/* Whether ids ascend strictly from record to record, as far as kcp_dataset_read_leading has read
 * from the first record on; it looks at the ids as it passes them. True without ids, since records
 * are the ids then; false when the dataset was not read so. */
bool kcp_dataset_ids_ascend(const struct kcp_dataset *dataset);

#ifdef __cplusplus
}
#endif
#endif

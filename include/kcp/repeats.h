/* Counts rows that equal an earlier one. */
#ifndef KCP_REPEATS_H
#define KCP_REPEATS_H

#include "kcp/points.h"

/* Bytes that counting among `count` rows takes beside the rows themselves. */
uint64_t kcp_repeats_bytes(uint64_t count);

/* How many of the points have all coordinates of an earlier one (0.0 equals -0.0), and how many
 * have the id of an earlier one. */
enum kcp_status kcp_count_repeated_places(const struct kcp_points *points, uint64_t *repeats,
                                          struct kcp_error *error);
enum kcp_status kcp_count_repeated_ids(const struct kcp_points *points, uint64_t *repeats,
                                       struct kcp_error *error);

#endif

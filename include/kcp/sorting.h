/* Sorting on all cores what may be many. */
#ifndef KCP_SORTING_H
#define KCP_SORTING_H

#include "kcp/candidate.h"
#include "kcp/status.h"

/* Candidates into their total order (candidate.h), in place. KCP_FAILED when memory is short. */
enum kcp_status kcp_sort_candidates(struct kcp_candidate *candidates, uint64_t count,
                                    struct kcp_error *error);

/* Ids into ascending order, in place. KCP_FAILED when memory is short. */
enum kcp_status kcp_sort_ids(uint64_t *ids, uint64_t count, struct kcp_error *error);

#endif

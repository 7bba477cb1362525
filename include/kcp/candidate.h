/* A candidate pair and the total order of the answer (DESIGN.md, Exactness 2). */
#ifndef KCP_CANDIDATE_H
#define KCP_CANDIDATE_H

#include <stdbool.h>
#include <stdint.h>

#include "kcp/host_device.h"

struct kcp_candidate {
  double rank;  /* see metric.h; finite */
  uint64_t id1; /* of the reference point (D1) */
  uint64_t id2; /* of the query point (D2) */
};

/* The order (rank, id1, id2). */
KCP_HD static inline bool kcp_candidate_before(const struct kcp_candidate *a,
                                               const struct kcp_candidate *b) {
  if (a->rank != b->rank) return a->rank < b->rank;
  if (a->id1 != b->id1) return a->id1 < b->id1;
  return a->id2 < b->id2;
}

/* --self: whether this order of two records is the one that counts: each pair of distinct records
 * once, the smaller id first (of equal ids the smaller record number). */
KCP_HD static inline bool kcp_self_pair_counts(uint64_t id1, uint64_t record1, uint64_t id2,
                                               uint64_t record2) {
  return id1 != id2 ? id1 < id2 : record1 < record2;
}

#endif

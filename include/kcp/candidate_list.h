/* The candidate lists of the k-CP paper, section 2.3.3: a plain list (KCP-DLB) and a binary
 * max-heap (KCP-MHDLB), each the k first candidates seen so far in the total order of candidate.h.
 *
 * A list is k + 1 slots in three planes (rank, id1, id2), slot s at plane[s * stride], so that the
 * lists of neighbouring threads interleave (stride = number of lists) or lie in a row (stride 1).
 * Slots 1 .. count hold candidates; slot 0 is the heap's sentinel (rank +inf, larger than any
 * candidate, which ends an upward walk without a bounds test) and holds the count in its id1 and,
 * for the plain list, the slot of the largest candidate in its id2. Unused slots hold rank +inf.
 *
 * The caller owns the planes; one thread at a time works on a list. */
#ifndef KCP_CANDIDATE_LIST_H
#define KCP_CANDIDATE_LIST_H

#include <math.h>

#include "kcp/candidate.h"

enum kcp_buffer { KCP_BUFFER_LIST, KCP_BUFFER_HEAP };

/* Bytes of one slot over the three planes. */
#define KCP_CANDIDATE_BYTES 24u

struct kcp_candidate_list {
  double *rank;
  uint64_t *id1;
  uint64_t *id2;
  uint64_t stride;
  uint64_t k; /* >= 1 */
};

/* The last candidate that a list still accepts, kept in registers while a list is worked on. */
struct kcp_threshold {
  struct kcp_candidate last; /* rank alone counts while the list is not full */
  bool full;
};

KCP_HD static inline struct kcp_candidate kcp_list_get(const struct kcp_candidate_list *list,
                                                       uint64_t slot) {
  struct kcp_candidate candidate;
  candidate.rank = list->rank[slot * list->stride];
  candidate.id1 = list->id1[slot * list->stride];
  candidate.id2 = list->id2[slot * list->stride];
  return candidate;
}

KCP_HD static inline void kcp_list_set(const struct kcp_candidate_list *list, uint64_t slot,
                                       struct kcp_candidate candidate) {
  list->rank[slot * list->stride] = candidate.rank;
  list->id1[slot * list->stride] = candidate.id1;
  list->id2[slot * list->stride] = candidate.id2;
}

KCP_HD static inline uint64_t kcp_list_count(const struct kcp_candidate_list *list) {
  return list->id1[0];
}

/* The threshold of a list as it lies in memory. `rank_limit`: no candidate beyond it is accepted
 * (finite: rank +inf never is). */
KCP_HD static inline struct kcp_threshold kcp_list_threshold(enum kcp_buffer buffer,
                                                             const struct kcp_candidate_list *list,
                                                             double rank_limit) {
  struct kcp_threshold threshold;
  threshold.full = kcp_list_count(list) == list->k;
  if (threshold.full) {
    threshold.last = kcp_list_get(list, buffer == KCP_BUFFER_HEAP ? 1 : list->id2[0]);
  } else {
    threshold.last.rank = rank_limit;
    threshold.last.id1 = threshold.last.id2 = UINT64_MAX;
  }
  return threshold;
}

/* Whether the list would take this candidate. */
KCP_HD static inline bool kcp_threshold_accepts(const struct kcp_threshold *threshold,
                                                const struct kcp_candidate *candidate) {
  if (candidate->rank != threshold->last.rank) return candidate->rank < threshold->last.rank;
  return !threshold->full || kcp_candidate_before(candidate, &threshold->last);
}

/* KCP-DLB: the slot of the largest candidate of a full list, O(k). Ids are read on ties alone. */
KCP_HD static inline uint64_t kcp_list_find_largest(const struct kcp_candidate_list *list) {
  uint64_t largest = 1;
  double largest_rank = list->rank[list->stride];
  for (uint64_t slot = 2; slot <= list->k; ++slot) {
    double rank = list->rank[slot * list->stride];
    if (rank < largest_rank) continue;
    if (rank == largest_rank) {
      struct kcp_candidate a = kcp_list_get(list, largest), b = kcp_list_get(list, slot);
      if (!kcp_candidate_before(&a, &b)) continue;
    }
    largest = slot;
    largest_rank = rank;
  }
  return largest;
}

/* KCP-MHDLB: moves a hole at `slot` up until the candidate fits below its parent. */
KCP_HD static inline void kcp_heap_sift_up(const struct kcp_candidate_list *list, uint64_t slot,
                                           struct kcp_candidate candidate) {
  for (;;) {
    struct kcp_candidate parent = kcp_list_get(list, slot / 2);
    if (!kcp_candidate_before(&parent, &candidate)) break; /* the sentinel never is */
    kcp_list_set(list, slot, parent);
    slot /= 2;
  }
  kcp_list_set(list, slot, candidate);
}

/* KCP-MHDLB: moves a hole at the root down until the candidate fits above its children. */
KCP_HD static inline void kcp_heap_sift_down(const struct kcp_candidate_list *list,
                                             struct kcp_candidate candidate) {
  uint64_t slot = 1;
  for (;;) {
    uint64_t child = 2 * slot;
    if (child > list->k) break;
    struct kcp_candidate larger = kcp_list_get(list, child);
    if (child < list->k) {
      struct kcp_candidate right = kcp_list_get(list, child + 1);
      if (kcp_candidate_before(&larger, &right)) {
        larger = right;
        ++child;
      }
    }
    if (!kcp_candidate_before(&candidate, &larger)) break;
    kcp_list_set(list, slot, larger);
    slot = child;
  }
  kcp_list_set(list, slot, candidate);
}

/* Takes a candidate that the threshold accepts, in place of the largest when the list is full, and
 * renews the threshold. */
KCP_HD static inline void kcp_list_insert(enum kcp_buffer buffer,
                                          const struct kcp_candidate_list *list,
                                          struct kcp_candidate candidate,
                                          struct kcp_threshold *threshold) {
  if (!threshold->full) {
    uint64_t count = list->id1[0] + 1;
    list->id1[0] = count;
    if (buffer == KCP_BUFFER_HEAP) {
      kcp_heap_sift_up(list, count, candidate);
    } else {
      kcp_list_set(list, count, candidate);
      if (count == list->k) list->id2[0] = kcp_list_find_largest(list);
    }
    if (count < list->k) return;
    threshold->full = true;
  } else if (buffer == KCP_BUFFER_HEAP) {
    kcp_heap_sift_down(list, candidate);
  } else {
    kcp_list_set(list, list->id2[0], candidate);
    list->id2[0] = kcp_list_find_largest(list);
  }
  threshold->last = kcp_list_get(list, buffer == KCP_BUFFER_HEAP ? 1 : list->id2[0]);
}

/* An empty list: all ranks +inf, count 0. */
KCP_HD static inline void kcp_list_clear(const struct kcp_candidate_list *list) {
  struct kcp_candidate none;
  none.rank = INFINITY;
  none.id1 = none.id2 = 0;
  for (uint64_t slot = 0; slot <= list->k; ++slot) kcp_list_set(list, slot, none);
}

#endif

/* Selection and sorting of keys with their indices (CPU). */
#ifndef KCP_CPU_RANKED_KEYS_H
#define KCP_CPU_RANKED_KEYS_H

#include "kcp/top_k_carry.h"

/* Brings the `wanted` first items in the order (key, index) to the front, in any order. Items are
 * distinct; wanted <= count. By radix digits from the highest that differs: linear in `count`,
 * whatever the keys. */
void kcp_ranked_select(struct kcp_ranked_key *items, uint64_t count, uint64_t wanted);

enum kcp_ranked_sort_by {
  KCP_SORT_BY_KEY, /* stable */
  KCP_SORT_BY_KEY_AND_INDEX
};

/* Sorts on all threads that the caller's parallel region leaves; the result is in `items` or in
 * `spare` (as much room), which is returned. Digits in which all items agree cost nothing. */
struct kcp_ranked_key *kcp_ranked_sort(struct kcp_ranked_key *items, struct kcp_ranked_key *spare,
                                       uint64_t count, enum kcp_ranked_sort_by by);

#endif

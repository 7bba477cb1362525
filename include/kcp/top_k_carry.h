/* The first k of an array that comes in parts, carried from part to part, with the counts that its
 * certificate needs. */
#ifndef KCP_TOP_K_CARRY_H
#define KCP_TOP_K_CARRY_H

#include <stdbool.h>
#include <stdint.h>

#include "kcp/top_k.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A value as its key (ordered_key.h) and its index; ordered by (key, index). */
struct kcp_ranked_key {
  uint64_t key;
  uint64_t index;
};

KCP_HD static inline bool kcp_ranked_before(struct kcp_ranked_key a, struct kcp_ranked_key b) {
  return a.key != b.key ? a.key < b.key : a.index < b.index;
}

/* The first values of one part. Parts come in the order of their indices. */
struct kcp_top_k_part {
  const struct kcp_ranked_key *items; /* in order */
  uint64_t count;
  uint64_t equal;     /* values of the part with the key of the last item */
  uint64_t nan_count; /* in the part */
  bool limited;       /* values at or behind limit_key may have been left out of the items */
  uint64_t limit_key;
  uint64_t limit_equal; /* values of the part with limit_key */
};

struct kcp_top_k_carry {
  struct kcp_ranked_key *items; /* in order */
  uint64_t count;
  uint64_t equal; /* values so far with the key of the last item */
  uint64_t nan_count;
  uint64_t k;                   /* room */
  struct kcp_ranked_key *spare; /* as much room */
};

enum kcp_status kcp_top_k_carry_create(uint64_t k, struct kcp_top_k_carry *carry,
                                       struct kcp_error *error);
void kcp_top_k_carry_free(struct kcp_top_k_carry *carry); /* a zeroed struct is allowed */
void kcp_top_k_carry_reset(struct kcp_top_k_carry *carry);
void kcp_top_k_carry_add(struct kcp_top_k_carry *carry, const struct kcp_top_k_part *part);

/* The k-th key when there are k values: later parts matter only before it. */
static inline bool kcp_top_k_carry_is_full(const struct kcp_top_k_carry *carry) {
  return carry->count == carry->k;
}

/* Room for the plan's answer, all certificates zero. */
enum kcp_status kcp_top_k_answer_allocate(const struct kcp_top_k_plan *plan,
                                          struct kcp_top_k_answer *answer, struct kcp_error *error);

/* Writes a row of the answer: `count` items in order, with indices of the whole array. */
void kcp_top_k_answer_set_row(const struct kcp_top_k_plan *plan, uint64_t row,
                              const struct kcp_ranked_key *items, uint64_t count, uint64_t equal,
                              uint64_t nan_count, struct kcp_top_k_answer *answer);

#ifdef __cplusplus
}
#endif
#endif

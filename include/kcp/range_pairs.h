/* Neighbours of consecutive queries, collected from the batches of a join in host memory. */
#ifndef KCP_RANGE_PAIRS_H
#define KCP_RANGE_PAIRS_H

#include "kcp/range_join.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the neighbours of one query in one slice of D are. */
struct kcp_range_piece {
  uint64_t first; /* place among the neighbours */
  uint64_t count;
};

struct kcp_range_pairs {
  uint64_t first_query;
  uint64_t query_count;
  uint64_t slice_count;
  uint64_t slice_records;         /* neighbour v of slice s is record s * slice_records + v */
  struct kcp_range_piece *pieces; /* query after query, a piece for each slice; owned */
  uint32_t *neighbours;           /* owned */
  double *ranks;                  /* of the pairs, when they are wanted; owned */
  bool wants_ranks;
  uint64_t count;    /* neighbours so far */
  uint64_t capacity; /* room for neighbours */
  uint64_t budget_bytes;
  bool overflowed; /* they need more than the budget: nothing is kept */
};

enum kcp_status kcp_range_pairs_begin(uint64_t first_query, uint64_t query_count,
                                      uint64_t slice_count, uint64_t slice_records,
                                      bool wants_ranks, uint64_t budget_bytes,
                                      struct kcp_range_pairs *pairs, struct kcp_error *error);
void kcp_range_pairs_free(struct kcp_range_pairs *pairs); /* a zeroed struct is allowed */

/* Bytes of a pair in memory. */
uint64_t kcp_range_pair_bytes(bool wants_ranks);

/* A batch of queries that begin at record `block_first` of Q, in slice number `slice`. */
enum kcp_status kcp_range_pairs_add(struct kcp_range_pairs *pairs,
                                    const struct kcp_range_batch *batch, uint64_t block_first,
                                    uint64_t slice, const struct kcp_points *slice_points,
                                    const struct kcp_points *block_points, struct kcp_error *error);

#ifdef __cplusplus
}
#endif
#endif

/* Neighbours of consecutive queries, collected from the batches of a join in host memory.
 *
 * They lie in one stretch of address space that is reserved at the start and takes memory page by
 * page as it is written to: nothing is ever copied to grow, a batch can be written to its place by
 * many threads at once, and batches can be added by many at once. A neighbour takes 4 bytes, with
 * ranks 12; a query 16 for each slice. */
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
  bool overflowed;   /* they need more than the budget: kcp_range_pairs_end keeps nothing */
};

/* `most_pairs`: as many as there can be, UINT64_MAX when it is not known. Of these, what fits
 * budget_bytes and the address space gets room. */
enum kcp_status kcp_range_pairs_begin(uint64_t first_query, uint64_t query_count,
                                      uint64_t slice_count, uint64_t slice_records,
                                      bool wants_ranks, uint64_t budget_bytes, uint64_t most_pairs,
                                      struct kcp_range_pairs *pairs, struct kcp_error *error);
void kcp_range_pairs_free(struct kcp_range_pairs *pairs); /* a zeroed struct is allowed */

/* Bytes of a pair in memory. */
uint64_t kcp_range_pair_bytes(bool wants_ranks);

/* Room for the `count` neighbours of a batch, to be added with them in it; NULL for 0, and, with
 * `overflowed`, when there is none. Any thread. */
uint32_t *kcp_range_pairs_room(struct kcp_range_pairs *pairs, uint64_t count);

/* A batch of queries that begin at record `block_first` of Q, in slice number `slice`. Neighbours
 * that lie elsewhere than in a room are copied. Any thread. */
void kcp_range_pairs_add(struct kcp_range_pairs *pairs, const struct kcp_range_batch *batch,
                         uint64_t block_first, uint64_t slice,
                         const struct kcp_points *slice_points,
                         const struct kcp_points *block_points);

/* After the last batch: gives memory back when they overflowed. */
void kcp_range_pairs_end(struct kcp_range_pairs *pairs);

#ifdef __cplusplus
}
#endif
#endif

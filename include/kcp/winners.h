/* The records that the pairs of an answer name, looked up in the files by id. Ids need not be
 * distinct: a pair then stands for any of the records with its ids. */
#ifndef KCP_WINNERS_H
#define KCP_WINNERS_H

#include <stdbool.h>

#include "kcp/algorithm.h"
#include "kcp/points.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kcp_winners {
  struct kcp_points reference; /* ordered by id */
  struct kcp_points query;     /* with --self the same memory as reference */
  bool self;
};

/* Reads both files once. Coordinates are read times 2^exponent; afterwards the datasets have the
 * job's scale again. The caller frees the winners. */
enum kcp_status kcp_winners_find(const struct kcp_job *job, const struct kcp_candidate *pairs,
                                 uint64_t count, int exponent, struct kcp_winners *winners,
                                 struct kcp_error *error);
void kcp_winners_free(struct kcp_winners *winners); /* a zeroed struct is allowed */

/* Whether reference record i and query record j of the winners match a pair. */
typedef bool kcp_winner_test(const struct kcp_winners *winners, uint64_t i, uint64_t j,
                             const struct kcp_candidate *pair, const void *context);

/* How many pairs of records with the ids of `pair` pass the test, counted up to `limit`. */
uint64_t kcp_winners_count(const struct kcp_winners *winners, const struct kcp_candidate *pair,
                           uint64_t limit, kcp_winner_test *test, const void *context);

#ifdef __cplusplus
}
#endif
#endif

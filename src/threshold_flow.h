/* What the parts of the global-threshold search share on the host, whatever engine does the work:
 * its plan (threshold_plan.c), the pairs taken over from the engine (threshold_pairs.c), ties that
 * are too many (threshold_ties.c), and the flow itself (threshold_search.c). */
#ifndef KCP_THRESHOLD_FLOW_H
#define KCP_THRESHOLD_FLOW_H

#include "kcp/threshold_search.h"

struct kcp_threshold_flow {
  const struct kcp_job *job;
  const struct kcp_threshold_engine *engine;
  struct kcp_threshold_engine_state *state;
  struct kcp_threshold_plan plan;
  struct kcp_dataset *held, *streamed;
  uint64_t held_count, streamed_count;
  double all_pairs; /* how many pairs there are in all */
  bool held_is_reference;
  double rank_limit; /* of --max-distance; DBL_MAX when not given */
  struct kcp_measurement *measurement;
  struct kcp_candidate *best; /* pairs taken over from the engine: sorted, at most k */
  uint64_t best_count;
  uint64_t held_loaded_from; /* first record of what the engine holds; UINT64_MAX: nothing */
  uint64_t held_part;        /* records held at a time */
  bool part_too_large;       /* more of them were kept than there is room for */
  double guessed_pairs;      /* expected within the guessed rank; 0: not known, or no longer */
  uint64_t points_streamed;
  uint32_t dimensions; /* coordinates that are read: all, or all but a last one that is constant */
  double constant;     /* that last one */
  bool not_constant;   /* it turned out otherwise */
};

static inline uint64_t kcp_lesser(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static inline uint64_t kcp_greater(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

/* ---- plan (threshold_plan.c) ---- */

/* Which file is held: the smaller. */
bool kcp_threshold_holds_reference(const struct kcp_job *job);
struct kcp_dataset *kcp_threshold_held(const struct kcp_job *job);
struct kcp_dataset *kcp_threshold_streamed(const struct kcp_job *job);
/* How many points and pairs the engine has room for within the memory of the job. */
enum kcp_status kcp_threshold_make_plan(const struct kcp_job *job, struct kcp_threshold_plan *plan,
                                        struct kcp_error *error);

/* ---- pairs (threshold_pairs.c) ---- */

/* Whether records come in the order of their ids, as far as they were read. */
bool kcp_threshold_ids_ascend(const struct kcp_threshold_flow *flow);
/* The side whose ids come first in the order of pairs. */
enum kcp_side kcp_threshold_first_side(const struct kcp_threshold_flow *flow);
/* Moves the engine's pairs to `best`: the first k alone where their order can be told by records.
 */
enum kcp_status kcp_threshold_take_over(struct kcp_threshold_flow *flow, struct kcp_error *error);
/* Lowers the rank to a bound of the k-th pair's, when there is one, and forgets what lies beyond.
 */
enum kcp_status kcp_threshold_tighten(struct kcp_threshold_flow *flow, double *rank,
                                      struct kcp_error *error);
/* Leaves at least half of the engine's room for pairs free: at least k. */
enum kcp_status kcp_threshold_make_room(struct kcp_threshold_flow *flow, struct kcp_error *error);

/* ---- ties (threshold_ties.c) ---- */

/* The first k pairs, or more, in the order of ids among those at `rank`, of what reduce left. */
enum kcp_status kcp_threshold_join_ties(struct kcp_threshold_flow *flow, double rank,
                                        struct kcp_error *error);

#endif

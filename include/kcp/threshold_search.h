/* k closest pairs with one global threshold instead of a list a point.
 *
 * The smaller set is held, the larger is streamed once. (1) A sample of pairs tells a rank within
 * which a few more than k pairs lie: a guess, which later counting confirms or corrects. (2) Hashed
 * cells of that scale (cells.h): the held set marks the cells it touches, and of the streamed set
 * only points in marked cells survive. (3) Survivors and held points filter each other until both
 * are few; a tree of boxes then emits all pairs within the rank. (4) When at least k were found,
 * the first k of them are the answer: no pair outside can rank before them. Else the rank grows and
 * the pass repeats.
 *
 * The flow is written once (src/threshold_search.c) over an engine that each backend provides. */
#ifndef KCP_THRESHOLD_SEARCH_H
#define KCP_THRESHOLD_SEARCH_H

#include "kcp/algorithm.h"
#include "kcp/cells.h"
#include "kcp/points.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kcp_threshold_plan {
  struct kcp_metric metric;
  bool self; /* held and streamed are the same file */
  uint32_t dimensions;
  uint64_t k;              /* min(k, pairs), >= 1 */
  uint64_t held_capacity;  /* points of the held set at a time */
  uint64_t kept_capacity;  /* of them, those near survivors; >= held_sample */
  uint64_t block_capacity; /* points of a block on its way from a file */
  uint64_t
      survivor_capacity;  /* streamed points that may survive before a join; >= block_capacity */
  uint64_t pair_capacity; /* pairs kept; >= 2 k */
  uint64_t held_sample, streamed_sample; /* points sampled for the guess, at most */
};

/* A pair by record numbers. */
struct kcp_record_pair {
  double rank;
  uint64_t held;
  uint64_t streamed;
};

/* Which pairs a join emits. With self, WITHIN and BEFORE emit held record < streamed record, and
 * TIES the order in which the streamed point comes first by kcp_self_pair_counts.
 */
enum kcp_join_kind {
  KCP_JOIN_WITHIN, /* rank <= the given one */
  KCP_JOIN_BEFORE, /* rank < it */
  KCP_JOIN_TIES    /* rank == it */
};

enum kcp_side { KCP_SIDE_HELD, KCP_SIDE_STREAMED };

struct kcp_threshold_engine_state;

/* Calls come from one thread. Blocks are host memory of block_capacity points, two of them, filled
 * in turn; `block` waits until the engine no longer needs it. */
struct kcp_threshold_engine {
  enum kcp_status (*create)(const struct kcp_threshold_plan *plan,
                            const struct kcp_device_info *device,
                            struct kcp_threshold_engine_state **out, struct kcp_error *error);
  void (*destroy)(struct kcp_threshold_engine_state *state);
  /* Forgets everything but the plan. From now on points have their first `dimensions` coordinates,
   * at most the plan's. */
  enum kcp_status (*reset)(struct kcp_threshold_engine_state *state, uint32_t dimensions,
                           struct kcp_error *error);
  enum kcp_status (*block)(struct kcp_threshold_engine_state *state, uint32_t which,
                           struct kcp_points **block, struct kcp_error *error);

  /* The held set: emptied, then appended to block by block (records from first_record on). */
  enum kcp_status (*clear_held)(struct kcp_threshold_engine_state *state, struct kcp_error *error);
  enum kcp_status (*append_held)(struct kcp_threshold_engine_state *state, uint32_t which,
                                 uint64_t first_record, struct kcp_error *error);

  /* The sample of the streamed set (ids are record numbers; owned by the caller, not kept). Then
   * the rank of the `wanted`-th closest among the sampled pairs: those of a streamed sample point
   * and its neighbours in Morton order among an even sample of the held set, each pair once. +inf
   * when there are fewer. */
  enum kcp_status (*load_sample)(struct kcp_threshold_engine_state *state,
                                 const struct kcp_points *sample, struct kcp_error *error);
  enum kcp_status (*guess)(struct kcp_threshold_engine_state *state, uint64_t wanted, double *rank,
                           struct kcp_error *error);
  /* Held points in the sample of the last guess. */
  uint64_t (*held_sampled)(const struct kcp_threshold_engine_state *state);

  /* Marks the cells of all held points for pairs within `rank`. */
  enum kcp_status (*mark)(struct kcp_threshold_engine_state *state, double rank,
                          struct kcp_error *error);
  /* Keeps the points of the block that lie in marked cells as survivors. */
  enum kcp_status (*filter)(struct kcp_threshold_engine_state *state, uint32_t which,
                            uint64_t first_record, struct kcp_error *error);
  enum kcp_status (*survivors)(struct kcp_threshold_engine_state *state, uint64_t *count,
                               struct kcp_error *error);

  /* Filters survivors and held points against each other until both are few, for pairs within
   * `rank` (one of mark's). Sets *fits to false when more than kept_capacity held points are left:
   * then nothing can be joined, and a smaller part of the set has to be held. */
  enum kcp_status (*reduce)(struct kcp_threshold_engine_state *state, double rank, bool *fits,
                            struct kcp_error *error);
  /* Emits the pairs of what reduce left, of the kind given. *found counts all of them; only those
   * for which there is room are kept, and the engine may stop early once it is out of room (then
   * pair_count is pair_capacity and *found more than there was room for). */
  enum kcp_status (*join)(struct kcp_threshold_engine_state *state, double rank,
                          enum kcp_join_kind kind, uint64_t *found, struct kcp_error *error);
  enum kcp_status (*clear_survivors)(struct kcp_threshold_engine_state *state,
                                     struct kcp_error *error);

  /* Pairs kept so far; and forgetting those after the first `count`, or those of rank > `rank`. */
  uint64_t (*pair_count)(const struct kcp_threshold_engine_state *state);
  enum kcp_status (*truncate_pairs)(struct kcp_threshold_engine_state *state, uint64_t count,
                                    struct kcp_error *error);
  enum kcp_status (*drop_beyond)(struct kcp_threshold_engine_state *state, double rank,
                                 struct kcp_error *error);
  /* The rank of the `wanted`-th (from 1) closest kept pair, wanted <= pair_count. */
  enum kcp_status (*rank_of)(struct kcp_threshold_engine_state *state, uint64_t wanted,
                             double *rank, struct kcp_error *error);
  /* All kept pairs, in any order, into `pairs` (room for pair_count). */
  enum kcp_status (*download)(struct kcp_threshold_engine_state *state,
                              struct kcp_record_pair *pairs, struct kcp_error *error);

  /* The first k kept pairs by rank, the record of the side `first`, and the other; with self by the
   * smaller record, then the larger. Into `pairs` (room for k, *count of them), in that order;
   * forgets all pairs. For sets whose ids ascend with the records. NULL in engines that have no
   * faster way than a download. */
  enum kcp_status (*take_first)(struct kcp_threshold_engine_state *state, enum kcp_side first,
                                struct kcp_record_pair *pairs, uint64_t *count,
                                struct kcp_error *error);

  /* What reduce left of a side, the ids that belong to it in that order (D1 or D2 ids, whichever
   * file the side is), and leaving all points but those of ids first_id to last_id out of the joins
   * until the next restrict of that side or the next reduce. Without set_ids, records are the ids.
   */
  uint64_t (*side_count)(const struct kcp_threshold_engine_state *state, enum kcp_side side);
  enum kcp_status (*side_records)(struct kcp_threshold_engine_state *state, enum kcp_side side,
                                  uint64_t *records, struct kcp_error *error);
  enum kcp_status (*set_ids)(struct kcp_threshold_engine_state *state, enum kcp_side side,
                             const uint64_t *ids, struct kcp_error *error);
  enum kcp_status (*restrict_ids)(struct kcp_threshold_engine_state *state, enum kcp_side side,
                                  uint64_t first_id, uint64_t last_id, struct kcp_error *error);

  void (*measure)(const struct kcp_threshold_engine_state *state,
                  struct kcp_measurement *measurement);
};

enum kcp_status kcp_threshold_supports(const struct kcp_job *job, struct kcp_error *error);
enum kcp_status kcp_threshold_prepare(const struct kcp_job *job, void **state,
                                      struct kcp_parameter *parameters, size_t *parameter_count,
                                      struct kcp_error *error);
enum kcp_status kcp_threshold_run(const struct kcp_job *job, void *state, struct kcp_answer *answer,
                                  struct kcp_measurement *measurement, struct kcp_error *error);
void kcp_threshold_release(void *state);

#ifdef __cplusplus
}
#endif
#endif

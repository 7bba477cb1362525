/* Pairs taken over from the engine of a global-threshold search: ids looked up, in order, the first
 * k kept. */
#include <stdlib.h>

#include "kcp/mapped_rows.h"
#include "kcp/record_access.h"
#include "kcp/sorting.h"
#include "threshold_flow.h"

#define PARALLEL_FROM 100000 /* short work on this many pairs is worth all cores */

static void name_pair(const struct kcp_threshold_flow *flow, uint64_t held_id, uint64_t streamed_id,
                      double rank, struct kcp_candidate *pair) {
  bool held_first = flow->plan.self ? held_id < streamed_id : flow->held_is_reference;
  pair->rank = rank;
  pair->id1 = held_first ? held_id : streamed_id;
  pair->id2 = held_first ? streamed_id : held_id;
}

static enum kcp_status look_up_ids(struct kcp_dataset *dataset, const struct kcp_record_pair *pairs,
                                   enum kcp_side side, uint64_t count, uint64_t *records,
                                   uint64_t *ids, struct kcp_error *error) {
#pragma omp parallel for if (count > PARALLEL_FROM)
  for (uint64_t i = 0; i < count; ++i)
    records[i] = side == KCP_SIDE_HELD ? pairs[i].held : pairs[i].streamed;
  return kcp_dataset_ids_of(dataset, records, count, ids, error);
}

bool kcp_threshold_ids_ascend(const struct kcp_threshold_flow *flow) {
  return kcp_dataset_ids_ascend(flow->held) && kcp_dataset_ids_ascend(flow->streamed);
}

enum kcp_side kcp_threshold_first_side(const struct kcp_threshold_flow *flow) {
  return flow->plan.self || !flow->held_is_reference ? KCP_SIDE_STREAMED : KCP_SIDE_HELD;
}

enum kcp_status kcp_threshold_take_over(struct kcp_threshold_flow *flow, struct kcp_error *error) {
  uint64_t count = flow->engine->pair_count(flow->state);
  bool first_alone =
      count > flow->plan.k && flow->engine->take_first != NULL && kcp_threshold_ids_ascend(flow);
  uint64_t room = kcp_greater(1, first_alone ? flow->plan.k : count);
  struct kcp_record_pair *pairs = malloc(room * sizeof *pairs);
  uint64_t *ids = malloc(3 * room * sizeof *ids); /* records, held ids, streamed ids */
  struct kcp_candidate *grown = realloc(flow->best, (room + flow->best_count) * sizeof *flow->best);
  if (grown != NULL) flow->best = grown;
  enum kcp_status status = KCP_OK;
  if (pairs == NULL || ids == NULL || grown == NULL) {
    status = kcp_out_of_memory(error, "pairs", room * (sizeof *pairs + 3 * sizeof *ids));
    goto cleanup;
  }
  status = first_alone ? flow->engine->take_first(flow->state, kcp_threshold_first_side(flow),
                                                  pairs, &count, error)
                       : flow->engine->download(flow->state, pairs, error);
  if (status == KCP_OK)
    status = look_up_ids(flow->held, pairs, KCP_SIDE_HELD, count, ids, ids + room, error);
  if (status == KCP_OK)
    status =
        look_up_ids(flow->streamed, pairs, KCP_SIDE_STREAMED, count, ids, ids + 2 * room, error);
  if (status == KCP_OK) status = flow->engine->truncate_pairs(flow->state, 0, error);
  if (status != KCP_OK) goto cleanup;
#pragma omp parallel for if (count > PARALLEL_FROM)
  for (uint64_t i = 0; i < count; ++i)
    name_pair(flow, ids[room + i], ids[2 * room + i], pairs[i].rank,
              &flow->best[flow->best_count + i]);
  flow->best_count += count;
  status = kcp_sort_candidates(flow->best, flow->best_count, error);
  flow->best_count = kcp_lesser(flow->best_count, flow->plan.k);

cleanup:
  free(pairs);
  free(ids);
  return status;
}

enum kcp_status kcp_threshold_tighten(struct kcp_threshold_flow *flow, double *rank,
                                      struct kcp_error *error) {
  double bound = *rank;
  enum kcp_status status = KCP_OK;
  if (flow->best_count == flow->plan.k) bound = flow->best[flow->plan.k - 1].rank;
  if (flow->engine->pair_count(flow->state) >= flow->plan.k) {
    double kept = bound;
    status = flow->engine->rank_of(flow->state, flow->plan.k, &kept, error);
    bound = fmin(bound, kept);
  }
  if (status != KCP_OK || bound >= *rank) return status;
  *rank = bound;
  return flow->engine->drop_beyond(flow->state, bound, error);
}

enum kcp_status kcp_threshold_make_room(struct kcp_threshold_flow *flow, struct kcp_error *error) {
  if (flow->engine->pair_count(flow->state) <= flow->plan.pair_capacity / 2) return KCP_OK;
  return kcp_threshold_take_over(flow, error);
}

/* Ties of a global-threshold search: more pairs at one rank than the engine has room for. The first
 * of them in the order of ids are those of the smallest ids: the engine joins points of ids up to a
 * limit, of the side whose ids come first, and when one id gives too many, of the other side. */
#include <math.h>
#include <stdlib.h>

#include "kcp/record_access.h"
#include "kcp/sorting.h"
#include "threshold_flow.h"

#define MOST_GROWTH 64.0 /* of a prefix of ids that gave too few ties */

/* The ids of what reduce left of a side in ascending order. Without a list, as records that are the
 * ids: then all records of the file, of which those that are left take part. */
struct id_order {
  uint64_t *sorted; /* owned; NULL: 0, 1, 2, ... */
  uint64_t count;
};

static uint64_t id_at(const struct id_order *order, uint64_t place) {
  return order->sorted != NULL ? order->sorted[place] : place;
}

/* Looks up the ids of a side, gives them to the engine, and sorts them. */
static enum kcp_status load_ids(struct kcp_threshold_flow *flow, enum kcp_side side,
                                struct id_order *order, struct kcp_error *error) {
  struct kcp_dataset *dataset = side == KCP_SIDE_HELD ? flow->held : flow->streamed;
  uint64_t count = flow->engine->side_count(flow->state, side);
  uint64_t *records = malloc(kcp_greater(1, count) * sizeof *records);
  uint64_t *ids = malloc(kcp_greater(1, count) * sizeof *ids);
  enum kcp_status status = KCP_OK;
  if (records == NULL || ids == NULL) {
    status = kcp_out_of_memory(error, "ids", 2 * count * sizeof *ids);
  } else {
    status = flow->engine->side_records(flow->state, side, records, error);
    if (status == KCP_OK) status = kcp_dataset_ids_of(dataset, records, count, ids, error);
    if (status == KCP_OK) status = flow->engine->set_ids(flow->state, side, ids, error);
    if (status == KCP_OK) status = kcp_sort_ids(ids, count, error);
  }
  free(records);
  if (status != KCP_OK) {
    free(ids);
    return status;
  }
  *order = (struct id_order){ids, count};
  return KCP_OK;
}

/* Joins the ties of a side's points with ids from first to last. */
static enum kcp_status join_ids(struct kcp_threshold_flow *flow, enum kcp_side side, uint64_t first,
                                uint64_t last, double rank, uint64_t *found,
                                struct kcp_error *error) {
  enum kcp_status status = flow->engine->restrict_ids(flow->state, side, first, last, error);
  if (status != KCP_OK) return status;
  return flow->engine->join(flow->state, rank, KCP_JOIN_TIES, found, error);
}

/* How many more ids to try when the first `prefix` gave `found` pairs, fewer than k. */
static uint64_t next_prefix(const struct kcp_threshold_flow *flow, uint64_t prefix, uint64_t found,
                            uint64_t count) {
  double factor = found > 0 ? 2 * (double)flow->plan.k / (double)found : MOST_GROWTH;
  double grown = (double)prefix * fmin(fmax(factor, 2), MOST_GROWTH);
  return grown < (double)count ? (uint64_t)grown : count;
}

/* Joins the ties of the points of `side` with the smallest ids: as few of them as give k pairs, but
 * no more pairs than there is room for. Sets *fits to false when one id more takes it from fewer
 * than k to too many: then the ties of the ids before are kept, and the restriction to that id is
 * left in force. */
static enum kcp_status join_smallest_ids(struct kcp_threshold_flow *flow, enum kcp_side side,
                                         const struct id_order *order, double rank, bool *fits,
                                         struct kcp_error *error) {
  const struct kcp_threshold_engine *engine = flow->engine;
  uint64_t count = order->count, kept = engine->pair_count(flow->state), found = 0;
  uint64_t few = 0, many = count + 1; /* prefixes known to give fewer than k, and too many */
  uint64_t left = engine->side_count(flow->state, side);
  uint64_t prefix = kcp_lesser(count, left > 0 ? kcp_greater(1, count / left) : 0);
  *fits = true;
  while (prefix > few) {
    enum kcp_status status = join_ids(flow, side, 0, id_at(order, prefix - 1), rank, &found, error);
    if (status != KCP_OK) return status;
    bool overflow = found > flow->plan.pair_capacity - kept;
    if (!overflow && (found >= flow->plan.k || prefix == count)) return KCP_OK;
    status = engine->truncate_pairs(flow->state, kept, error);
    if (status != KCP_OK) return status;
    if (overflow)
      many = prefix;
    else
      few = prefix;
    prefix = many > count ? next_prefix(flow, few, found, count) : few + (many - few) / 2;
  }
  if (many > count) return KCP_OK; /* there is no point */
  /* Ids may be equal: the one that is too much begins where it differs from the one before. */
  uint64_t id = id_at(order, few);
  while (few > 0 && id_at(order, few - 1) == id) --few;
  *fits = false;
  if (few > 0) {
    enum kcp_status status = join_ids(flow, side, 0, id_at(order, few - 1), rank, &found, error);
    if (status != KCP_OK) return status;
  }
  return engine->restrict_ids(flow->state, side, id, id, error);
}

enum kcp_status kcp_threshold_join_ties(struct kcp_threshold_flow *flow, double rank,
                                        struct kcp_error *error) {
  enum kcp_side first = kcp_threshold_first_side(flow);
  enum kcp_side second = first == KCP_SIDE_HELD ? KCP_SIDE_STREAMED : KCP_SIDE_HELD;
  struct id_order orders[2] = {{NULL, flow->held_count}, {NULL, flow->streamed_count}};
  bool fits = true;
  enum kcp_status status = KCP_OK;
  if (!kcp_threshold_ids_ascend(flow)) {
    status = load_ids(flow, first, &orders[first], error);
    if (status == KCP_OK) status = load_ids(flow, second, &orders[second], error);
  }
  if (status == KCP_OK) status = join_smallest_ids(flow, first, &orders[first], rank, &fits, error);
  if (status == KCP_OK && !fits)
    status = join_smallest_ids(flow, second, &orders[second], rank, &fits, error);
  free(orders[0].sorted);
  free(orders[1].sorted);
  if (status == KCP_OK && !fits)
    return kcp_fail(error, KCP_FAILED,
                    "more than %llu pairs of one distance and one pair of ids; use dspp+pea",
                    (unsigned long long)flow->plan.pair_capacity);
  return status;
}

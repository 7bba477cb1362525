#include "kcp/threshold_search.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/interrupt.h"
#include "kcp/mapped_rows.h"
#include "kcp/record_access.h"
#include "kcp/sorting.h"

#define GPU_BLOCK_POINTS (UINT64_C(1) << 20)
#define CPU_BLOCK_POINTS (UINT64_C(1) << 17) /* stay in the caches */
#define HELD_SAMPLE (UINT64_C(1) << 17)
#define STREAMED_SAMPLE (UINT64_C(1) << 16)
#define MIN_PAIR_CAPACITY (UINT64_C(1) << 22)
/* With no more pairs than this in all, every pair is a candidate and nothing is guessed. */
#define ALL_PAIRS 0x1p22
/* Parts of a long stream after which the rank is tightened: the first, and then so many times as
 * much. */
#define FIRST_TIGHTENING 32
#define NEXT_TIGHTENING 8
#define FEW_PAIRS_LEFT 0x1p16              /* within the rank of the k-th found: no more to gain */
#define MOST_GROWTH 64.0                   /* of a prefix of ids that gave too few ties */
#define PARALLEL_FROM 100000               /* short work on this many pairs is worth all cores */
#define CAPACITY_LIMIT (UINT64_C(1) << 31) /* indices of points on a device are 32 bits */

static uint64_t minimum(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static uint64_t maximum(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

/* ---- plan ---- */

/* Which file is held: the smaller. */
static bool holds_reference(const struct kcp_job *job) {
  return kcp_dataset_count(job->reference) < kcp_dataset_count(job->query);
}

static struct kcp_dataset *held_dataset(const struct kcp_job *job) {
  return holds_reference(job) ? job->reference : job->query;
}

static struct kcp_dataset *streamed_dataset(const struct kcp_job *job) {
  return holds_reference(job) ? job->query : job->reference;
}

/* Bytes that a held point takes as it is loaded, with its bits in the bitmaps. */
static double loaded_bytes(const struct kcp_threshold_plan *plan) {
  return 8.0 * plan->dimensions + (plan->self ? 6 : 3);
}

/* Bytes that a point which passed a filter takes, on either side: in two buffers, with records, ids
 * and sort keys, in the table and the tree. */
static double kept_bytes(const struct kcp_threshold_plan *plan) {
  return 2 * 8.0 * plan->dimensions + 100;
}

/* Memory for points: the loaded ones take half of it at most, then kept and surviving points share
 * the rest; of each there is room for a block at least. */
static void share_memory(struct kcp_threshold_plan *plan, double bytes, uint64_t held,
                         uint64_t streamed) {
  uint64_t least = minimum(4 * plan->block_capacity, CAPACITY_LIMIT);
  double for_loaded = fmin((double)held, bytes / 2 / loaded_bytes(plan));
  plan->held_capacity =
      minimum(maximum((uint64_t)for_loaded, minimum(plan->block_capacity, maximum(1, held))),
              CAPACITY_LIMIT);
  double kept = (bytes - (double)plan->held_capacity * loaded_bytes(plan)) / kept_bytes(plan);
  double for_held = fmin((double)plan->held_capacity, fmax(kept / 2, (double)least));
  plan->kept_capacity = maximum((uint64_t)for_held, plan->held_sample);
  double for_survivors = fmin((double)streamed, fmax(kept - for_held, (double)least));
  plan->survivor_capacity =
      minimum(maximum((uint64_t)for_survivors, plan->block_capacity), CAPACITY_LIMIT);
}

static enum kcp_status make_plan(const struct kcp_job *job, struct kcp_threshold_plan *plan,
                                 struct kcp_error *error) {
  const struct kcp_request *request = job->request;
  uint64_t held = kcp_dataset_count(held_dataset(job));
  uint64_t streamed = kcp_dataset_count(streamed_dataset(job));
  double available = request->memory_bytes > 0 ? (double)request->memory_bytes
                                               : 0.8 * (double)job->device.free_bytes;
  memset(plan, 0, sizeof *plan);
  plan->metric = request->metric;
  plan->self = request->self;
  plan->dimensions = kcp_dataset_dimensions(job->reference);
  plan->k = maximum(1, minimum(request->k, job->pair_count));
  plan->held_sample = minimum(HELD_SAMPLE, held);
  bool on_gpu = job->backend->kind == KCP_BACKEND_CUDA;
  plan->streamed_sample = minimum(STREAMED_SAMPLE, streamed);

  /* Pairs take a quarter of the memory at most, and as much again to move them; blocks and samples
   * a sixteenth, points the rest. */
  uint64_t pair_room = maximum(MIN_PAIR_CAPACITY, plan->k < UINT64_MAX / 4 ? 4 * plan->k : plan->k);
  double pair_bytes = sizeof(struct kcp_record_pair);
  if ((double)pair_room * pair_bytes > available / 4)
    pair_room = (uint64_t)(available / 4 / pair_bytes);
  if (pair_room / 2 < plan->k)
    return kcp_fail(
        error, KCP_BAD_INPUT,
        "global-threshold keeps 2 k pairs in memory: needs %.3g GB, %.3g GB free; use a "
        "smaller --k or more --memory",
        2 * (double)plan->k * pair_bytes / 1e9, available / 4e9);
  plan->pair_capacity = pair_room;
  double blocks = available / 16 / kept_bytes(plan);
  plan->block_capacity =
      minimum(on_gpu ? GPU_BLOCK_POINTS : CPU_BLOCK_POINTS, blocks < 1 ? 1 : (uint64_t)blocks);
  plan->block_capacity = minimum(plan->block_capacity, maximum(1, streamed));
  plan->held_sample = minimum(plan->held_sample, (uint64_t)maximum(64, plan->block_capacity));
  plan->streamed_sample = minimum(plan->streamed_sample, maximum(64, plan->block_capacity));
  share_memory(plan, available * 15 / 16 - 2 * pair_bytes * (double)pair_room, held, streamed);
  return KCP_OK;
}

enum kcp_status kcp_threshold_supports(const struct kcp_job *job, struct kcp_error *error) {
  struct kcp_threshold_plan plan;
  if (job->backend->threshold == NULL)
    return kcp_fail(error, KCP_UNAVAILABLE, "%s does not run on %s", job->algorithm->name,
                    job->backend->name);
  return make_plan(job, &plan, error);
}

/* ---- flow ---- */

struct flow {
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
  uint64_t points_streamed;
  uint32_t dimensions; /* coordinates that are read: all, or all but a last one that is constant */
  double constant;     /* that last one */
  bool not_constant;   /* it turned out otherwise */
};

enum kcp_status kcp_threshold_prepare(const struct kcp_job *job, void **state,
                                      struct kcp_parameter *parameters, size_t *parameter_count,
                                      struct kcp_error *error) {
  struct flow *flow = calloc(1, sizeof *flow);
  if (flow == NULL) return kcp_out_of_memory(error, "the search", sizeof *flow);
  flow->engine = job->backend->threshold;
  flow->held = held_dataset(job);
  flow->streamed = streamed_dataset(job);
  flow->held_count = kcp_dataset_count(flow->held);
  flow->streamed_count = kcp_dataset_count(flow->streamed);
  flow->held_is_reference = holds_reference(job);
  flow->all_pairs = job->request->self
                        ? (double)flow->held_count * ((double)flow->held_count - 1) / 2
                        : (double)flow->held_count * (double)flow->streamed_count;
  flow->rank_limit = DBL_MAX;
  enum kcp_status status = make_plan(job, &flow->plan, error);
  if (isfinite(job->request->max_distance))
    flow->rank_limit = fmin(
        DBL_MAX,
        kcp_metric_rank(flow->plan.metric, ldexp(job->request->max_distance, job->scale_exponent)));
  if (status == KCP_OK)
    status = flow->engine->create(&flow->plan, &job->device, &flow->state, error);
  if (status != KCP_OK) {
    kcp_threshold_release(flow);
    return status;
  }
  *parameter_count = 0;
  struct {
    const char *name;
    uint64_t value;
  } const shown[] = {{"held-points", flow->plan.held_capacity},
                     {"block-points", flow->plan.block_capacity},
                     {"pair-capacity", flow->plan.pair_capacity}};
  for (size_t i = 0; i < sizeof shown / sizeof shown[0]; ++i) {
    struct kcp_parameter *parameter = &parameters[(*parameter_count)++];
    parameter->name = shown[i].name;
    parameter->is_number = true;
    snprintf(parameter->value, sizeof parameter->value, "%llu", (unsigned long long)shown[i].value);
  }
  *state = flow;
  return KCP_OK;
}

void kcp_threshold_release(void *state) {
  struct flow *flow = state;
  if (flow == NULL) return;
  if (flow->state != NULL) flow->engine->destroy(flow->state);
  free(flow->best);
  free(flow);
}

/* Reads records into one of the engine's two blocks. */
static enum kcp_status read_block(struct flow *flow, struct kcp_dataset *dataset, uint64_t first,
                                  uint64_t count, uint32_t which, struct kcp_error *error) {
  struct kcp_points *block;
  enum kcp_status status = flow->engine->block(flow->state, which, &block, error);
  if (status != KCP_OK) return status;
  double started = kcp_now();
  if (kcp_dataset_map(dataset))
    status = kcp_dataset_read_leading(dataset, first, count, &flow->constant, block,
                                      &flow->not_constant, error);
  else
    status = kcp_dataset_read(dataset, first, count, block, error);
  flow->measurement->phase_s[KCP_PHASE_READ] += kcp_now() - started;
  flow->measurement->bytes_read += count * (8 + 8 * (uint64_t)flow->plan.dimensions);
  if (status == KCP_OK && flow->not_constant)
    return kcp_fail(error, KCP_FAILED, "the last coordinate is not constant");
  return status;
}

static enum kcp_status load_held(struct flow *flow, uint64_t first, struct kcp_error *error) {
  if (flow->held_loaded_from == first) return KCP_OK;
  flow->held_loaded_from = UINT64_MAX;
  uint64_t last = minimum(flow->held_count, first + flow->held_part);
  enum kcp_status status = flow->engine->clear_held(flow->state, error);
  uint32_t which = 0;
  for (uint64_t at = first; status == KCP_OK && at < last; at += flow->plan.block_capacity) {
    uint64_t count = minimum(flow->plan.block_capacity, last - at);
    status = read_block(flow, flow->held, at, count, which, error);
    if (status == KCP_OK) status = flow->engine->append_held(flow->state, which, at, error);
    which = 1 - which;
  }
  if (status == KCP_OK) flow->held_loaded_from = first;
  return status;
}

/* ---- the rank to begin with ---- */

/* A rank that is `factor` times farther. */
static double farther(const struct flow *flow, double rank, double factor) {
  double distance = kcp_metric_distance(flow->plan.metric, rank) * factor;
  return fmin(kcp_metric_rank(flow->plan.metric, distance), DBL_MAX);
}

static double axes_of(const struct flow *flow) {
  return flow->dimensions < KCP_MAX_AXES ? flow->dimensions : KCP_MAX_AXES;
}

/* How many of the sampled pairs are wanted so that k of all pairs are surely closer: the expected
 * number, four standard deviations, and a little; exactly k when everything is sampled. */
static uint64_t wanted_in_sample(const struct flow *flow, uint64_t streamed_sampled) {
  double share = (double)flow->engine->held_sampled(flow->state) / (double)flow->held_count *
                 ((double)streamed_sampled / (double)flow->streamed_count);
  if (share >= 1) return flow->plan.k;
  double expected = (double)flow->plan.k * share;
  return (uint64_t)ceil(expected + 4 * sqrt(expected) + 8);
}

static enum kcp_status guess_rank(struct flow *flow, double *rank, struct kcp_error *error) {
  struct kcp_points sample;
  *rank = flow->rank_limit;
  if (flow->all_pairs <= ALL_PAIRS || flow->all_pairs / 4 < (double)flow->plan.k) return KCP_OK;
  double started = kcp_now();
  enum kcp_status status =
      kcp_points_allocate(flow->plan.streamed_sample, flow->plan.dimensions, &sample, error);
  if (status == KCP_OK)
    status = kcp_dataset_sample(flow->streamed, flow->plan.streamed_sample, &sample, error);
  flow->measurement->phase_s[KCP_PHASE_READ] += kcp_now() - started;
  sample.dimensions = flow->dimensions;
  if (status == KCP_OK) status = flow->engine->load_sample(flow->state, &sample, error);
  uint64_t wanted = wanted_in_sample(flow, sample.count), asked = wanted;
  double guess = INFINITY;
  while (status == KCP_OK && asked > 0) {
    status = flow->engine->guess(flow->state, asked, &guess, error);
    if (isfinite(guess)) break;
    asked /= 2;
  }
  kcp_points_free(&sample);
  if (status != KCP_OK || !isfinite(guess))
    return status; /* no pair seen: every pair is in reach */
  if (asked < wanted)
    guess = farther(flow, guess, pow((double)wanted / (double)asked, 1 / axes_of(flow)));
  *rank = fmin(guess, flow->rank_limit);
  return KCP_OK;
}

/* ---- pairs taken over: ids looked up, in order, the first k kept ---- */

static void name_pair(const struct flow *flow, uint64_t held_id, uint64_t streamed_id, double rank,
                      struct kcp_candidate *pair) {
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

/* Whether records come in the order of their ids, as far as they were read. */
static bool ids_ascend(const struct flow *flow) {
  return kcp_dataset_ids_ascend(flow->held) && kcp_dataset_ids_ascend(flow->streamed);
}

/* The side whose ids come first in the order of pairs. */
static enum kcp_side first_side(const struct flow *flow) {
  return flow->plan.self || !flow->held_is_reference ? KCP_SIDE_STREAMED : KCP_SIDE_HELD;
}

/* Moves the engine's pairs to `best`: the first k alone where their order can be told by records.
 */
static enum kcp_status take_over(struct flow *flow, struct kcp_error *error) {
  uint64_t count = flow->engine->pair_count(flow->state);
  bool first_alone = count > flow->plan.k && flow->engine->take_first != NULL && ids_ascend(flow);
  uint64_t room = maximum(1, first_alone ? flow->plan.k : count);
  struct kcp_record_pair *pairs = malloc(room * sizeof *pairs);
  uint64_t *ids = malloc(3 * room * sizeof *ids); /* records, held ids, streamed ids */
  struct kcp_candidate *grown = realloc(flow->best, (room + flow->best_count) * sizeof *flow->best);
  if (grown != NULL) flow->best = grown;
  enum kcp_status status = KCP_OK;
  if (pairs == NULL || ids == NULL || grown == NULL) {
    status = kcp_out_of_memory(error, "pairs", room * (sizeof *pairs + 3 * sizeof *ids));
    goto cleanup;
  }
  status = first_alone
               ? flow->engine->take_first(flow->state, first_side(flow), pairs, &count, error)
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
  flow->best_count = minimum(flow->best_count, flow->plan.k);

cleanup:
  free(pairs);
  free(ids);
  return status;
}

/* Lowers the rank to a bound of the k-th pair's, when there is one, and forgets what lies beyond.
 */
static enum kcp_status tighten(struct flow *flow, double *rank, struct kcp_error *error) {
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

/* Leaves at least half of the engine's room for pairs free: at least k. */
static enum kcp_status make_room(struct flow *flow, struct kcp_error *error) {
  if (flow->engine->pair_count(flow->state) <= flow->plan.pair_capacity / 2) return KCP_OK;
  return take_over(flow, error);
}

/* ---- ties: more pairs at one rank than there is room for ---- */

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
static enum kcp_status load_ids(struct flow *flow, enum kcp_side side, struct id_order *order,
                                struct kcp_error *error) {
  struct kcp_dataset *dataset = side == KCP_SIDE_HELD ? flow->held : flow->streamed;
  uint64_t count = flow->engine->side_count(flow->state, side);
  uint64_t *records = malloc(maximum(1, count) * sizeof *records);
  uint64_t *ids = malloc(maximum(1, count) * sizeof *ids);
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
static enum kcp_status join_ids(struct flow *flow, enum kcp_side side, uint64_t first,
                                uint64_t last, double rank, uint64_t *found,
                                struct kcp_error *error) {
  enum kcp_status status = flow->engine->restrict_ids(flow->state, side, first, last, error);
  if (status != KCP_OK) return status;
  return flow->engine->join(flow->state, rank, KCP_JOIN_TIES, found, error);
}

/* How many more ids to try when the first `prefix` gave `found` pairs, fewer than k. */
static uint64_t next_prefix(const struct flow *flow, uint64_t prefix, uint64_t found,
                            uint64_t count) {
  double factor = found > 0 ? 2 * (double)flow->plan.k / (double)found : MOST_GROWTH;
  double grown = (double)prefix * fmin(fmax(factor, 2), MOST_GROWTH);
  return grown < (double)count ? (uint64_t)grown : count;
}

/* Joins the ties of the points of `side` with the smallest ids: as few of them as give k pairs, but
 * no more pairs than there is room for. Sets *fits to false when one id more takes it from fewer
 * than k to too many: then the ties of the ids before are kept, and the restriction to that id is
 * left in force. */
static enum kcp_status join_smallest_ids(struct flow *flow, enum kcp_side side,
                                         const struct id_order *order, double rank, bool *fits,
                                         struct kcp_error *error) {
  const struct kcp_threshold_engine *engine = flow->engine;
  uint64_t count = order->count, kept = engine->pair_count(flow->state), found = 0;
  uint64_t few = 0, many = count + 1; /* prefixes known to give fewer than k, and too many */
  uint64_t left = engine->side_count(flow->state, side);
  uint64_t prefix = minimum(count, left > 0 ? maximum(1, count / left) : 0);
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

/* The first k pairs, or more, in the order of ids among those at `rank`. */
static enum kcp_status join_ties(struct flow *flow, double rank, struct kcp_error *error) {
  enum kcp_side first = first_side(flow);
  enum kcp_side second = first == KCP_SIDE_HELD ? KCP_SIDE_STREAMED : KCP_SIDE_HELD;
  struct id_order orders[2] = {{NULL, flow->held_count}, {NULL, flow->streamed_count}};
  bool fits = true;
  enum kcp_status status = KCP_OK;
  if (!ids_ascend(flow)) {
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

/* ---- a pass ---- */

/* Adds the pairs of the survivors within *rank to the kept ones; lowers *rank when they are too
 * many. */
static enum kcp_status join_survivors(struct flow *flow, double *rank, struct kcp_error *error) {
  const struct kcp_threshold_engine *engine = flow->engine;
  enum kcp_status status = make_room(flow, error);
  bool fits = true;
  if (status == KCP_OK) status = engine->reduce(flow->state, *rank, &fits, error);
  if (status == KCP_OK && !fits) {
    flow->part_too_large = true;
    return kcp_fail(error, KCP_FAILED, "too many held points are near others");
  }
  enum kcp_join_kind kind = KCP_JOIN_WITHIN;
  while (status == KCP_OK) {
    uint64_t kept = engine->pair_count(flow->state), found = 0;
    double before = *rank;
    /* Nothing ranks before 0. */
    if (kind == KCP_JOIN_WITHIN || *rank > 0)
      status = engine->join(flow->state, *rank, kind, &found, error);
    if (status != KCP_OK) break;
    if (found <= flow->plan.pair_capacity - kept) {
      if (kind == KCP_JOIN_WITHIN) break;
      /* All that rank before the ties are kept; with k of them no tie counts. */
      status = tighten(flow, rank, error);
      if (status == KCP_OK && *rank == before) status = make_room(flow, error);
      if (status == KCP_OK && *rank == before) status = join_ties(flow, *rank, error);
      break;
    }
    /* Out of room: the k-th of those kept bounds the answer; find all within it. */
    status = engine->rank_of(flow->state, flow->plan.k, rank, error);
    if (status == KCP_OK) status = engine->truncate_pairs(flow->state, kept, error);
    if (status == KCP_OK) status = engine->drop_beyond(flow->state, *rank, error);
    kind = *rank<before && * rank> 0 ? KCP_JOIN_WITHIN : KCP_JOIN_BEFORE;
  }
  return status == KCP_OK ? engine->clear_survivors(flow->state, error) : status;
}

/* The survivors so far, joined before the stream goes on: k pairs found in a part of it bound the
 * rank better than a sample could, and what follows is filtered by that. */
static enum kcp_status tighten_midway(struct flow *flow, double *rank, struct kcp_error *error) {
  double before = *rank;
  enum kcp_status status = join_survivors(flow, rank, error);
  if (status == KCP_OK) status = tighten(flow, rank, error);
  if (status == KCP_OK && *rank < before) status = flow->engine->mark(flow->state, *rank, error);
  return status;
}

/* The streamed set against what is held. */
static enum kcp_status stream_once(struct flow *flow, double *rank, struct kcp_error *error) {
  const struct kcp_threshold_engine *engine = flow->engine;
  enum kcp_status status = engine->mark(flow->state, *rank, error);
  uint64_t survivors_at_most = 0;
  uint64_t long_stream = FIRST_TIGHTENING * flow->plan.block_capacity;
  uint64_t tighten_at =
      flow->streamed_count > long_stream ? flow->streamed_count / FIRST_TIGHTENING : UINT64_MAX;
  uint32_t which = 0;
  for (uint64_t first = 0; status == KCP_OK && first < flow->streamed_count;
       first += flow->plan.block_capacity) {
    uint64_t count = minimum(flow->plan.block_capacity, flow->streamed_count - first);
    if (first >= tighten_at) {
      status = tighten_midway(flow, rank, error);
      survivors_at_most = 0;
      double expected = (double)flow->plan.k * (double)flow->streamed_count / (double)first;
      tighten_at = expected > FEW_PAIRS_LEFT ? first * NEXT_TIGHTENING : UINT64_MAX;
    }
    if (status == KCP_OK && survivors_at_most + count > flow->plan.survivor_capacity) {
      status = engine->survivors(flow->state, &survivors_at_most, error);
      if (status == KCP_OK && survivors_at_most + count > flow->plan.survivor_capacity) {
        status = join_survivors(flow, rank, error);
        survivors_at_most = 0;
      }
    }
    if (status == KCP_OK) status = read_block(flow, flow->streamed, first, count, which, error);
    if (status == KCP_OK) status = engine->filter(flow->state, which, first, error);
    survivors_at_most += count;
    which = 1 - which;
    flow->points_streamed += count;
    kcp_progress_update(flow->job->progress, "search", first + count, flow->streamed_count,
                        flow->points_streamed);
    if (kcp_interrupted()) status = kcp_fail(error, KCP_INTERRUPTED, "interrupted");
  }
  return status == KCP_OK ? join_survivors(flow, rank, error) : status;
}

/* All pairs within *rank, or within the k-th of them when they were too many (then *rank is that).
 */
static enum kcp_status pass(struct flow *flow, double *rank, struct kcp_error *error) {
  enum kcp_status status = flow->engine->truncate_pairs(flow->state, 0, error);
  flow->best_count = 0;
  for (uint64_t first = 0; status == KCP_OK && first < flow->held_count; first += flow->held_part) {
    status = load_held(flow, first, error);
    if (status == KCP_OK) status = stream_once(flow, rank, error);
    if (status == KCP_OK) status = tighten(flow, rank, error);
  }
  return status;
}

static enum kcp_status search(struct flow *flow, struct kcp_error *error) {
  double rank;
  enum kcp_status status = flow->engine->reset(flow->state, flow->dimensions, error);
  if (status == KCP_OK) status = load_held(flow, 0, error);
  if (status == KCP_OK) status = guess_rank(flow, &rank, error);
  while (status == KCP_OK) {
    status = pass(flow, &rank, error);
    if (flow->part_too_large) {
      /* All of a part can be kept. What was found so far bounds the rank all the same. */
      flow->part_too_large = false;
      flow->held_part = flow->plan.kept_capacity;
      flow->held_loaded_from = UINT64_MAX;
      status = KCP_OK;
      continue;
    }
    if (status != KCP_OK) return status;
    uint64_t found = flow->engine->pair_count(flow->state) + flow->best_count;
    if (found >= flow->plan.k || rank >= flow->rank_limit) return KCP_OK;
    /* Too near a guess: as much farther as evenly spread pairs would need, and a bit. */
    double missing = found > 0 ? 1.2 * (double)flow->plan.k / (double)found : 64;
    double grown = farther(flow, rank, fmin(16, fmax(1.25, pow(missing, 1 / axes_of(flow)))));
    rank = fmin(flow->rank_limit, grown > rank ? grown : fmax(DBL_MIN, rank * 4));
  }
  return status;
}

/* A third coordinate that is 0 throughout is what two dimensions look like in a .bin: where the
 * first records have one and the same, the others are tried without it. Reading checks that they
 * have it too. */
static enum kcp_status choose_dimensions(struct flow *flow, struct kcp_error *error) {
  struct kcp_dataset *datasets[] = {flow->held, flow->streamed};
  double third[2];
  flow->dimensions = flow->plan.dimensions;
  flow->not_constant = false;
  if (flow->dimensions != 3) return KCP_OK;
  for (int d = 0; d < 2; ++d) {
    struct kcp_points first;
    if (!kcp_dataset_map(datasets[d])) return KCP_OK;
    enum kcp_status status = kcp_points_allocate(1, 3, &first, error);
    if (status == KCP_OK) status = kcp_dataset_read(datasets[d], 0, 1, &first, error);
    if (status == KCP_OK) third[d] = first.coordinates[2];
    kcp_points_free(&first);
    if (status != KCP_OK) return status;
  }
  flow->constant = third[0];
  if (third[0] == third[1]) flow->dimensions = 2;
  return KCP_OK;
}

enum kcp_status kcp_threshold_run(const struct kcp_job *job, void *state, struct kcp_answer *answer,
                                  struct kcp_measurement *measurement, struct kcp_error *error) {
  struct flow *flow = state;
  double started = kcp_now();
  memset(measurement, 0, sizeof *measurement);
  memset(answer, 0, sizeof *answer);
  flow->job = job;
  flow->measurement = measurement;
  flow->held_loaded_from = UINT64_MAX;
  flow->points_streamed = 0;
  flow->held_part = flow->plan.held_capacity;
  flow->part_too_large = false;
  if (job->pair_count == 0) return KCP_OK;
  enum kcp_status status = choose_dimensions(flow, error);
  if (status == KCP_OK) status = search(flow, error);
  if (flow->not_constant) {
    flow->dimensions = flow->plan.dimensions;
    flow->not_constant = false;
    flow->held_loaded_from = UINT64_MAX;
    status = search(flow, error);
  }
  double merging = kcp_now();
  if (status == KCP_OK) status = take_over(flow, error);
  if (status != KCP_OK) return status;
  measurement->phase_s[KCP_PHASE_MERGE] += kcp_now() - merging;
  flow->engine->measure(flow->state, measurement);
  answer->pairs = flow->best;
  answer->count = flow->best_count;
  flow->best = NULL;
  flow->best_count = 0;
  measurement->total_s = kcp_now() - started;
  return KCP_OK;
}

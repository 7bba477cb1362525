/* The flow of a global-threshold search: the smaller set is held, a part of it at a time, the other
 * streamed against it. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/interrupt.h"
#include "kcp/mapped_rows.h"
#include "kcp/record_access.h"
#include "threshold_flow.h"

/* With no more pairs than this in all, every pair is a candidate and nothing is guessed. */
#define ALL_PAIRS 0x1p22
/* Parts of a long stream after which the rank is tightened: the first, and then so many times as
 * much. */
#define FIRST_TIGHTENING 32
#define NEXT_TIGHTENING 8
#define ENOUGH_PAIRS 8 /* times k, found in a part of the stream: then its k-th is worth a look */
#define LEAST_PART 16  /* of a block, that is looked at before the rank is tightened */
#define FEW_PAIRS_LEFT 0x1p16 /* within the rank of the k-th found: no more to gain */

enum kcp_status kcp_threshold_prepare(const struct kcp_job *job, void **state,
                                      struct kcp_parameter *parameters, size_t *parameter_count,
                                      struct kcp_error *error) {
  struct kcp_threshold_flow *flow = calloc(1, sizeof *flow);
  if (flow == NULL) return kcp_out_of_memory(error, "the search", sizeof *flow);
  flow->engine = job->backend->threshold;
  flow->held = kcp_threshold_held(job);
  flow->streamed = kcp_threshold_streamed(job);
  flow->held_count = kcp_dataset_count(flow->held);
  flow->streamed_count = kcp_dataset_count(flow->streamed);
  flow->held_is_reference = kcp_threshold_holds_reference(job);
  flow->all_pairs = job->request->self
                        ? (double)flow->held_count * ((double)flow->held_count - 1) / 2
                        : (double)flow->held_count * (double)flow->streamed_count;
  flow->rank_limit = DBL_MAX;
  enum kcp_status status = kcp_threshold_make_plan(job, &flow->plan, error);
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
  struct kcp_threshold_flow *flow = state;
  if (flow == NULL) return;
  if (flow->state != NULL) flow->engine->destroy(flow->state);
  free(flow->best);
  free(flow);
}

/* Reads records into one of the engine's two blocks. */
static enum kcp_status read_block(struct kcp_threshold_flow *flow, struct kcp_dataset *dataset,
                                  uint64_t first, uint64_t count, uint32_t which,
                                  struct kcp_error *error) {
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

static enum kcp_status load_held(struct kcp_threshold_flow *flow, uint64_t first,
                                 struct kcp_error *error) {
  if (flow->held_loaded_from == first) return KCP_OK;
  flow->held_loaded_from = UINT64_MAX;
  uint64_t last = kcp_lesser(flow->held_count, first + flow->held_part);
  enum kcp_status status = flow->engine->clear_held(flow->state, error);
  uint32_t which = 0;
  for (uint64_t at = first; status == KCP_OK && at < last; at += flow->plan.block_capacity) {
    uint64_t count = kcp_lesser(flow->plan.block_capacity, last - at);
    status = read_block(flow, flow->held, at, count, which, error);
    if (status == KCP_OK) status = flow->engine->append_held(flow->state, which, at, error);
    which = 1 - which;
  }
  if (status == KCP_OK) flow->held_loaded_from = first;
  return status;
}

/* ---- the rank to begin with ---- */

/* A rank that is `factor` times farther. */
static double farther(const struct kcp_threshold_flow *flow, double rank, double factor) {
  double distance = kcp_metric_distance(flow->plan.metric, rank) * factor;
  return fmin(kcp_metric_rank(flow->plan.metric, distance), DBL_MAX);
}

static double axes_of(const struct kcp_threshold_flow *flow) {
  return flow->dimensions < KCP_MAX_AXES ? flow->dimensions : KCP_MAX_AXES;
}

/* How many of the sampled pairs are wanted so that k of all pairs are surely closer: the expected
 * number, four standard deviations, and a little; exactly k when everything is sampled. */
static uint64_t wanted_in_sample(const struct kcp_threshold_flow *flow, double share) {
  if (share >= 1) return flow->plan.k;
  double expected = (double)flow->plan.k * share;
  return (uint64_t)ceil(expected + 4 * sqrt(expected) + 8);
}

static enum kcp_status guess_rank(struct kcp_threshold_flow *flow, double *rank,
                                  struct kcp_error *error) {
  struct kcp_points sample;
  *rank = flow->rank_limit;
  flow->guessed_pairs = 0;
  if (flow->all_pairs <= ALL_PAIRS || flow->all_pairs / 4 < (double)flow->plan.k) return KCP_OK;
  double started = kcp_now();
  enum kcp_status status =
      kcp_points_allocate(flow->plan.streamed_sample, flow->plan.dimensions, &sample, error);
  if (status == KCP_OK)
    status = kcp_dataset_sample(flow->streamed, flow->plan.streamed_sample, &sample, error);
  flow->measurement->phase_s[KCP_PHASE_READ] += kcp_now() - started;
  sample.dimensions = flow->dimensions;
  if (status == KCP_OK) status = flow->engine->load_sample(flow->state, &sample, error);
  double share = (double)flow->engine->held_sampled(flow->state) / (double)flow->held_count *
                 ((double)sample.count / (double)flow->streamed_count);
  uint64_t wanted = wanted_in_sample(flow, share), asked = wanted;
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
  flow->guessed_pairs = (double)wanted / share;
  *rank = fmin(guess, flow->rank_limit);
  return KCP_OK;
}

/* ---- a pass ---- */

/* Adds the pairs of the survivors within *rank to the kept ones; lowers *rank when they are too
 * many. */
static enum kcp_status join_survivors(struct kcp_threshold_flow *flow, double *rank,
                                      struct kcp_error *error) {
  const struct kcp_threshold_engine *engine = flow->engine;
  enum kcp_status status = kcp_threshold_make_room(flow, error);
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
      status = kcp_threshold_tighten(flow, rank, error);
      if (status == KCP_OK && *rank == before) status = kcp_threshold_make_room(flow, error);
      if (status == KCP_OK && *rank == before) status = kcp_threshold_join_ties(flow, *rank, error);
      break;
    }
    /* Out of room: the k-th of those kept bounds the answer; find all within it. */
    status = engine->rank_of(flow->state, flow->plan.k, rank, error);
    if (status == KCP_OK) status = engine->truncate_pairs(flow->state, kept, error);
    if (status == KCP_OK) status = engine->drop_beyond(flow->state, *rank, error);
    bool lowered = *rank < before;
    kind = lowered && *rank != 0 ? KCP_JOIN_WITHIN : KCP_JOIN_BEFORE;
  }
  return status == KCP_OK ? engine->clear_survivors(flow->state, error) : status;
}

/* The survivors so far, joined before the stream goes on: k pairs found in a part of it bound the
 * rank better than a sample could, and what follows is filtered by that. */
static enum kcp_status tighten_midway(struct kcp_threshold_flow *flow, double *rank,
                                      struct kcp_error *error) {
  double before = *rank;
  enum kcp_status status = join_survivors(flow, rank, error);
  if (status == KCP_OK) status = kcp_threshold_tighten(flow, rank, error);
  if (status == KCP_OK && *rank < before) status = flow->engine->mark(flow->state, *rank, error);
  return status;
}

/* How much of the stream is filtered before the rank is tightened first. Where a guess of a small
 * sample lets so much pass that filtering is of little use, and too many held points are near the
 * survivors, soon: when a few times k pairs are expected to be found. */
static uint64_t first_tightening(const struct kcp_threshold_flow *flow) {
  uint64_t streamed = flow->streamed_count, block = flow->plan.block_capacity;
  if (streamed <= FIRST_TIGHTENING * block) return UINT64_MAX;
  uint64_t part = streamed / FIRST_TIGHTENING;
  if (flow->guessed_pairs <= (double)part) return part;
  double enough = ENOUGH_PAIRS * (double)flow->plan.k / flow->guessed_pairs * (double)streamed;
  return enough < (double)part ? kcp_greater((uint64_t)enough, block / LEAST_PART + 1) : part;
}

/* The streamed set against what is held. */
static enum kcp_status stream_once(struct kcp_threshold_flow *flow, double *rank,
                                   struct kcp_error *error) {
  const struct kcp_threshold_engine *engine = flow->engine;
  enum kcp_status status = engine->mark(flow->state, *rank, error);
  uint64_t survivors_at_most = 0;
  uint64_t tighten_at = first_tightening(flow), count = 0;
  uint32_t which = 0;
  for (uint64_t first = 0; status == KCP_OK && first < flow->streamed_count; first += count) {
    count = kcp_lesser(flow->plan.block_capacity, flow->streamed_count - first);
    if (first >= tighten_at) {
      status = tighten_midway(flow, rank, error);
      survivors_at_most = 0;
      double expected = (double)flow->plan.k * (double)flow->streamed_count / (double)first;
      double few = fmin(FEW_PAIRS_LEFT, (double)flow->streamed_count / FIRST_TIGHTENING);
      tighten_at = expected > few ? first * NEXT_TIGHTENING : UINT64_MAX;
    }
    if (first < tighten_at) count = kcp_lesser(count, tighten_at - first);
    if (status == KCP_OK && survivors_at_most + count > flow->plan.survivor_capacity) {
      status = engine->survivors(flow->state, &survivors_at_most, error);
      if (status == KCP_OK && survivors_at_most + count > flow->plan.survivor_capacity) {
        status = tighten_midway(flow, rank, error);
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
static enum kcp_status pass(struct kcp_threshold_flow *flow, double *rank,
                            struct kcp_error *error) {
  enum kcp_status status = flow->engine->truncate_pairs(flow->state, 0, error);
  flow->best_count = 0;
  for (uint64_t first = 0; status == KCP_OK && first < flow->held_count; first += flow->held_part) {
    status = load_held(flow, first, error);
    if (status == KCP_OK) status = stream_once(flow, rank, error);
    flow->guessed_pairs = 0; /* the rank is another now */
    if (status == KCP_OK) status = kcp_threshold_tighten(flow, rank, error);
  }
  return status;
}

static enum kcp_status search(struct kcp_threshold_flow *flow, struct kcp_error *error) {
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
static enum kcp_status choose_dimensions(struct kcp_threshold_flow *flow, struct kcp_error *error) {
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
  struct kcp_threshold_flow *flow = state;
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
  if (status == KCP_OK) status = kcp_threshold_take_over(flow, error);
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

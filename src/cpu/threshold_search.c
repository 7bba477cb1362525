/* The CPU engine of the global-threshold search: memory and the order of work around cell_filter,
 * threshold_guess, morton_order and box_tree.
 *
 * Memory a held point: 8 d bytes as loaded, up to 3 in the bitmap (6 with --self). A point that is
 * kept, of either side: twice 8 d while it is filtered, 16 for its records, 16 for ids, 24 to sort,
 * 4 in the tree. Pages that are never written are never taken. */
#include "kcp/threshold_search.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "box_tree.h"
#include "cell_filter.h"
#include "kcp/axes.h"
#include "kcp/interrupt.h"
#include "morton_order.h"
#include "rank_select.h"
#include "threshold_guess.h"

#define GUESS_WINDOW 4
#define ALL_SAMPLE_PAIRS (UINT64_C(1) << 22) /* so few are compared all */
#define BITS_PER_POINT 11
#define FEWEST_BITS (UINT64_C(1) << 16)
#define MOST_BITS (UINT64_C(1) << 31)
#define FEW_POINTS (UINT64_C(1) << 14) /* not worth another round of filtering */
#define ENDLESS_DISTANCE 0x1p500       /* everything is in reach */

/* One side's points after reduce: two buffers for filtering back and forth; joins work on the
 * points in Morton order, which are in the buffer that `kept` is not in. */
struct side {
  struct kcp_point_set kept, sorted;
  double *columns[2];
  uint64_t *records[2];
  uint64_t *ids, *sorted_ids;
  uint64_t capacity;
  bool is_sorted;
};

struct kcp_threshold_engine_state {
  struct kcp_threshold_plan plan;
  uint32_t dimensions; /* of the points since reset */
  struct kcp_points blocks[2];
  struct kcp_point_set held; /* all that is loaded */
  struct kcp_point_set sample;
  uint64_t *histogram; /* of the sampled ranks */
  bool sample_counted;
  struct kcp_axes axes;                          /* that may index */
  struct kcp_cells cells;                        /* of the last mark; its axes are those that do */
  double low[KCP_MAX_AXES], high[KCP_MAX_AXES];  /* of the held points along the axes */
  double knots[KCP_MAX_AXES * KCP_MORTON_KNOTS]; /* of their Morton keys */
  bool box_known;
  bool endless;
  uint64_t *bitmap;      /* with --self two, one after the other */
  bool bitmap_is_marked; /* with the cells of the last mark */
  uint64_t round;        /* seeds the hash of each filtering */
  struct side sides[2];
  struct kcp_radix_sorter sorter;
  struct kcp_box_tree tree;
  struct kcp_pair_room pairs;
  struct kcp_measurement measurement;
};

typedef struct kcp_threshold_engine_state engine_state;

static uint64_t minimum(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static uint64_t maximum(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

static uint64_t bits_for(uint64_t points) {
  uint64_t bits = FEWEST_BITS;
  while (bits < points * BITS_PER_POINT && bits < MOST_BITS) bits *= 2;
  return bits;
}

/* Adds the time since `started` to a phase. */
static enum kcp_status end_phase(engine_state *state, enum kcp_phase phase, double started,
                                 struct kcp_error *error) {
  state->measurement.phase_s[phase] += kcp_now() - started;
  return kcp_interrupted() ? kcp_fail(error, KCP_INTERRUPTED, "interrupted") : KCP_OK;
}

/* ---- memory ---- */

static void *array(uint64_t count, uint64_t bytes) {
  uint64_t all;
  if (__builtin_mul_overflow(maximum(count, 1), bytes, &all)) return NULL;
  return malloc(all);
}

static bool make_side(engine_state *state, uint64_t capacity, struct side *side) {
  side->capacity = capacity;
  side->ids = array(capacity, sizeof *side->ids);
  side->sorted_ids = array(capacity, sizeof *side->sorted_ids);
  bool made = side->ids != NULL && side->sorted_ids != NULL;
  for (int b = 0; b < 2; ++b) {
    side->columns[b] = array(capacity, state->plan.dimensions * sizeof(double));
    side->records[b] = array(capacity, sizeof(uint64_t));
    made = made && side->columns[b] != NULL && side->records[b] != NULL;
  }
  return made;
}

static void free_side(struct side *side) {
  for (int b = 0; b < 2; ++b) {
    free(side->columns[b]);
    free(side->records[b]);
  }
  free(side->ids);
  free(side->sorted_ids);
}

static void destroy(engine_state *state) {
  if (state == NULL) return;
  for (int b = 0; b < 2; ++b) {
    kcp_points_free(&state->blocks[b]);
    free_side(&state->sides[b]);
  }
  free(state->held.columns);
  free(state->sample.columns);
  free(state->sample.records);
  free(state->histogram);
  free(state->bitmap);
  kcp_radix_sorter_free(&state->sorter);
  kcp_box_tree_free(&state->tree);
  free(state->pairs.pairs);
  free(state);
}

static enum kcp_status allocate(engine_state *state, struct kcp_error *error) {
  const struct kcp_threshold_plan *plan = &state->plan;
  uint64_t streamed = maximum(plan->survivor_capacity, plan->streamed_sample);
  uint64_t larger = maximum(plan->kept_capacity, streamed);
  uint64_t bits = bits_for(maximum(plan->held_capacity, streamed));
  uint64_t point = plan->dimensions * sizeof(double);
  state->held.stride = plan->held_capacity;
  state->held.columns = array(plan->held_capacity, point);
  state->sample.stride = maximum(plan->streamed_sample, 1);
  state->sample.columns = array(state->sample.stride, point);
  state->sample.records = array(state->sample.stride, sizeof *state->sample.records);
  state->histogram = array(KCP_GUESS_BUCKETS, sizeof *state->histogram);
  state->bitmap = array(bits / 64, (plan->self ? 2 : 1) * sizeof *state->bitmap);
  state->pairs.capacity = plan->pair_capacity;
  state->pairs.pairs = array(plan->pair_capacity, sizeof *state->pairs.pairs);
  bool made = make_side(state, plan->kept_capacity, &state->sides[KCP_SIDE_HELD]) &&
              make_side(state, streamed, &state->sides[KCP_SIDE_STREAMED]);
  if (!made || state->held.columns == NULL || state->sample.columns == NULL ||
      state->sample.records == NULL || state->histogram == NULL || state->bitmap == NULL ||
      state->pairs.pairs == NULL)
    return kcp_out_of_memory(error, "the search", (plan->held_capacity + larger) * 3 * point);
  enum kcp_status status = kcp_radix_sorter_create(larger, &state->sorter, error);
  if (status == KCP_OK) status = kcp_box_tree_create(plan->kept_capacity, &state->tree, error);
  for (int b = 0; status == KCP_OK && b < 2; ++b)
    status = kcp_points_allocate(plan->block_capacity, plan->dimensions, &state->blocks[b], error);
  return status;
}

static enum kcp_status create(const struct kcp_threshold_plan *plan,
                              const struct kcp_device_info *device, engine_state **out,
                              struct kcp_error *error) {
  (void)device;
  engine_state *state = calloc(1, sizeof *state);
  if (state == NULL) return kcp_out_of_memory(error, "the search", sizeof *state);
  state->plan = *plan;
  enum kcp_status status = allocate(state, error);
  if (status != KCP_OK) {
    destroy(state);
    return status;
  }
  *out = state;
  return KCP_OK;
}

static enum kcp_status reset(engine_state *state, uint32_t dimensions, struct kcp_error *error) {
  (void)error;
  memset(&state->measurement, 0, sizeof state->measurement);
  state->held.count = state->sample.count = state->pairs.count = 0;
  state->sample_counted = state->box_known = state->bitmap_is_marked = false;
  for (int s = 0; s < 2; ++s) state->sides[s].kept.count = state->sides[s].sorted.count = 0;
  state->dimensions = dimensions;
  for (int b = 0; b < 2; ++b) state->blocks[b].dimensions = dimensions;
  state->axes = kcp_axes_first(dimensions);
  return KCP_OK;
}

/* ---- blocks and the held set ---- */

static enum kcp_status block(engine_state *state, uint32_t which, struct kcp_points **points,
                             struct kcp_error *error) {
  (void)error;
  *points = &state->blocks[which];
  return KCP_OK;
}

static enum kcp_status clear_held(engine_state *state, struct kcp_error *error) {
  (void)error;
  state->held.count = 0;
  state->box_known = state->sample_counted = false;
  return KCP_OK;
}

static enum kcp_status append_held(engine_state *state, uint32_t which, uint64_t first_record,
                                   struct kcp_error *error) {
  const struct kcp_points *points = &state->blocks[which];
  double started = kcp_now();
  if (state->held.count == 0) state->held.first_record = first_record;
  for (uint32_t j = 0; j < points->dimensions; ++j)
    memcpy(state->held.columns + j * state->held.stride + state->held.count,
           kcp_points_column(points, j), points->count * sizeof(double));
  state->held.count += points->count;
  return end_phase(state, KCP_PHASE_READ, started, error);
}

/* The box and the Morton frame of the held points along the axes, once for each held set. */
static void find_frame(engine_state *state) {
  struct kcp_axes axes = state->axes;
  if (state->box_known) return;
  for (uint32_t j = 0; j < axes.count; ++j) {
    const double *column = state->held.columns + axes.axis[j] * state->held.stride;
    double low = INFINITY, high = -INFINITY;
#pragma omp parallel for simd reduction(min : low) reduction(max : high)
    for (uint64_t i = 0; i < state->held.count; ++i) {
      low = column[i] < low ? column[i] : low;
      high = column[i] > high ? column[i] : high;
    }
    state->low[j] = low;
    state->high[j] = high;
  }
  kcp_axes_drop_constant(&axes, state->low, state->high);
  state->cells.axes = axes.count;
  for (uint32_t j = 0; j < axes.count; ++j) state->cells.axis[j] = axes.axis[j];
  kcp_morton_find_knots(&state->cells, &state->held, state->low, state->high, state->knots);
  state->box_known = true;
}

/* ---- the guess ---- */

static enum kcp_status load_sample(engine_state *state, const struct kcp_points *sample,
                                   struct kcp_error *error) {
  (void)error;
  state->axes = kcp_axes_of_sample(sample);
  state->box_known = false;
  for (uint32_t j = 0; j < sample->dimensions; ++j)
    memcpy(state->sample.columns + j * state->sample.stride, kcp_points_column(sample, j),
           sample->count * sizeof(double));
  memcpy(state->sample.records, sample->ids, sample->count * sizeof *sample->ids);
  state->sample.count = sample->count;
  state->sample_counted = false;
  return KCP_OK;
}

static uint64_t held_sampled(const engine_state *state) {
  return minimum(state->held.count, state->plan.held_sample);
}

static struct kcp_point_set buffer_of(const struct side *side, int which) {
  return (struct kcp_point_set){
      .columns = side->columns[which], .stride = side->capacity, .records = side->records[which]};
}

static enum kcp_status count_sample(engine_state *state, struct kcp_error *error) {
  uint64_t sampled = held_sampled(state);
  bool all = sampled * state->sample.count <= ALL_SAMPLE_PAIRS;
  find_frame(state);
  struct kcp_morton_frame frame = {state->cells.axes, state->knots};
  struct kcp_point_set sorted = buffer_of(&state->sides[KCP_SIDE_HELD], 0);
  struct kcp_point_set streamed = buffer_of(&state->sides[KCP_SIDE_STREAMED], 0);
  const uint64_t *keys;
  uint64_t *streamed_keys = state->sides[KCP_SIDE_STREAMED].ids; /* not in use yet */
  kcp_morton_order(&state->sorter, &state->cells, &frame, state->dimensions, &state->sample,
                   state->sample.count, 0, UINT64_MAX, &streamed, &keys);
  memcpy(streamed_keys, keys, streamed.count * sizeof *keys);
  kcp_morton_order(&state->sorter, &state->cells, &frame, state->dimensions, &state->held, sampled,
                   0, UINT64_MAX, &sorted, &keys);
  struct kcp_guess_sample sample = {.metric = state->plan.metric,
                                    .dimensions = state->dimensions,
                                    .self = state->plan.self,
                                    .held = &sorted,
                                    .streamed = &streamed,
                                    .held_keys = keys,
                                    .streamed_keys = streamed_keys};
  enum kcp_status status =
      kcp_guess_count(&sample, all ? sampled : GUESS_WINDOW, state->histogram, error);
  state->sample_counted = status == KCP_OK;
  return status;
}

static enum kcp_status guess(engine_state *state, uint64_t wanted, double *rank,
                             struct kcp_error *error) {
  double started = kcp_now();
  enum kcp_status status = state->sample_counted ? KCP_OK : count_sample(state, error);
  if (status != KCP_OK) return status;
  *rank = kcp_guess_find(state->histogram, wanted);
  return end_phase(state, KCP_PHASE_INDEX, started, error);
}

/* ---- filtering ---- */

static struct kcp_cells cells_for(engine_state *state, double rank, uint64_t points) {
  double distance = kcp_metric_distance(state->plan.metric, rank);
  return kcp_cells_make(state->cells.axes, state->cells.axis, state->low, state->high, distance,
                        bits_for(points), ++state->round);
}

/* Where points mark cells; through their boxes, held points also find those of others. */
static struct kcp_cell_marks marks_by(const engine_state *state, const struct kcp_cells *cells,
                                      enum kcp_cell_touch touch) {
  struct kcp_cell_marks marks = {.once = state->bitmap};
  if (!state->plan.self || touch != KCP_TOUCH_BOX) return marks;
  marks.twice = state->bitmap + (UINT64_C(1) << cells->word_bits);
  marks.own_first = state->held.first_record;
  marks.own_count = state->held.count;
  return marks;
}

static void mark_held(engine_state *state) {
  struct kcp_cell_marks marks = marks_by(state, &state->cells, KCP_TOUCH_BOX);
  kcp_cells_mark(&state->cells, &state->held, KCP_TOUCH_BOX, &marks);
  state->bitmap_is_marked = true;
}

static enum kcp_status mark(engine_state *state, double rank, struct kcp_error *error) {
  double started = kcp_now();
  find_frame(state);
  state->endless = !(kcp_metric_distance(state->plan.metric, rank) < ENDLESS_DISTANCE);
  if (!state->endless) {
    state->cells = cells_for(state, rank, state->held.count);
    mark_held(state);
  }
  state->sides[KCP_SIDE_STREAMED].kept = buffer_of(&state->sides[KCP_SIDE_STREAMED], 0);
  return end_phase(state, KCP_PHASE_KERNEL, started, error);
}

static enum kcp_status filter(engine_state *state, uint32_t which, uint64_t first_record,
                              struct kcp_error *error) {
  double started = kcp_now();
  struct kcp_points *points = &state->blocks[which];
  struct kcp_point_set set = {.columns = points->coordinates,
                              .stride = points->stride,
                              .first_record = first_record,
                              .count = points->count};
  if (!state->endless && !state->bitmap_is_marked) mark_held(state);
  struct kcp_cell_marks marks = marks_by(state, &state->cells, KCP_TOUCH_BOX);
  kcp_cells_probe(&state->cells, state->dimensions, &set, KCP_TOUCH_POINT,
                  state->endless ? NULL : &marks, &state->sides[KCP_SIDE_STREAMED].kept);
  return end_phase(state, KCP_PHASE_KERNEL, started, error);
}

static enum kcp_status survivors(engine_state *state, uint64_t *count, struct kcp_error *error) {
  (void)error;
  *count = state->sides[KCP_SIDE_STREAMED].kept.count;
  return KCP_OK;
}

/* Keeps, of `from`, what touches the marked cells, in the side's other buffer; false without room.
 */
static bool keep_marked(engine_state *state, const struct kcp_cells *cells, struct side *side,
                        const struct kcp_point_set *from, enum kcp_cell_touch touch,
                        const struct kcp_cell_marks *marks) {
  struct kcp_point_set kept = buffer_of(side, from->columns == side->columns[0] ? 1 : 0);
  kcp_cells_probe(cells, state->dimensions, from, touch, marks, &kept);
  side->kept = kept;
  return kept.count <= kept.stride;
}

/* Keeps the held points whose boxes touch the cells of streamed points. */
static bool filter_held(engine_state *state, double rank, const struct kcp_point_set *held,
                        const struct kcp_point_set *streamed) {
  struct kcp_cells cells = cells_for(state, rank, streamed->count);
  struct kcp_cell_marks marks = marks_by(state, &cells, KCP_TOUCH_POINT);
  kcp_cells_mark(&cells, streamed, KCP_TOUCH_POINT, &marks);
  return keep_marked(state, &cells, &state->sides[KCP_SIDE_HELD], held, KCP_TOUCH_BOX, &marks);
}

/* Keeps the streamed points in cells that the boxes of held points touch. Each streamed point that
 * is held itself is among those (filter_held kept it, by its own cell). */
static void filter_streamed(engine_state *state, double rank, const struct kcp_point_set *held,
                            const struct kcp_point_set *streamed) {
  struct kcp_cells cells = cells_for(state, rank, held->count);
  struct kcp_cell_marks marks = marks_by(state, &cells, KCP_TOUCH_BOX);
  kcp_cells_mark(&cells, held, KCP_TOUCH_BOX, &marks);
  keep_marked(state, &cells, &state->sides[KCP_SIDE_STREAMED], streamed, KCP_TOUCH_POINT, &marks);
}

/* The two sides filter each other in turn, each time with another hash, while that halves them.
 * False when there is no room for the held points. */
static bool filter_mutually(engine_state *state, double rank) {
  struct side *held = &state->sides[KCP_SIDE_HELD];
  struct side *streamed = &state->sides[KCP_SIDE_STREAMED];
  struct kcp_point_set held_now = state->held, streamed_now = streamed->kept;
  uint64_t before, after;
  state->bitmap_is_marked = false;
  do {
    before = held_now.count + streamed_now.count;
    if (!filter_held(state, rank, &held_now, &streamed_now)) return false;
    held_now = held->kept;
    if (held_now.count + streamed_now.count <= FEW_POINTS) return true;
    filter_streamed(state, rank, &held_now, &streamed_now);
    streamed_now = streamed->kept;
    after = held_now.count + streamed_now.count;
  } while (after > FEW_POINTS && after <= before / 2);
  return true;
}

static enum kcp_status reduce(engine_state *state, double rank, bool *fits,
                              struct kcp_error *error) {
  double started = kcp_now();
  *fits = state->endless ? keep_marked(state, &state->cells, &state->sides[KCP_SIDE_HELD],
                                       &state->held, KCP_TOUCH_BOX, NULL)
                         : filter_mutually(state, rank);
  for (int s = 0; s < 2; ++s) state->sides[s].is_sorted = false;
  return end_phase(state, KCP_PHASE_KERNEL, started, error);
}

/* The bitmap was used for other cells: the next filter marks it again. */
static enum kcp_status clear_survivors(engine_state *state, struct kcp_error *error) {
  (void)error;
  struct side *streamed = &state->sides[KCP_SIDE_STREAMED];
  streamed->kept = buffer_of(streamed, 0);
  for (int s = 0; s < 2; ++s) state->sides[s].kept.count = state->sides[s].sorted.count = 0;
  return KCP_OK;
}

/* ---- joining ---- */

/* Orders what the side kept along the Morton curve, in its other buffer, but for points of other
 * ids than first_id to last_id. */
static void sort_side(engine_state *state, enum kcp_side number, uint64_t first_id,
                      uint64_t last_id) {
  struct side *side = &state->sides[number];
  struct kcp_morton_frame frame = {state->cells.axes, state->knots};
  side->sorted = buffer_of(side, side->kept.columns == side->columns[0] ? 1 : 0);
  if (side->kept.ids != NULL) side->sorted.ids = side->sorted_ids;
  kcp_morton_order(&state->sorter, &state->cells, &frame, state->dimensions, &side->kept,
                   side->kept.count, first_id, last_id, &side->sorted, NULL);
  if (number == KCP_SIDE_HELD) kcp_box_tree_build(&state->tree, &state->cells, &side->sorted);
  side->is_sorted = true;
}

static enum kcp_status join(engine_state *state, double rank, enum kcp_join_kind kind,
                            uint64_t *found, struct kcp_error *error) {
  double started = kcp_now();
  for (enum kcp_side side = KCP_SIDE_HELD; side <= KCP_SIDE_STREAMED; ++side)
    if (!state->sides[side].is_sorted) sort_side(state, side, 0, UINT64_MAX);
  struct kcp_join what = {.tree = &state->tree,
                          .axes = &state->cells,
                          .metric = state->plan.metric,
                          .dimensions = state->dimensions,
                          .self = state->plan.self,
                          .held = &state->sides[KCP_SIDE_HELD].sorted,
                          .streamed = &state->sides[KCP_SIDE_STREAMED].sorted,
                          .rank = rank,
                          .kind = kind};
  uint64_t before = state->pairs.count;
  enum kcp_status status =
      kcp_box_tree_join(&what, &state->pairs, &state->measurement.distance_evaluations, error);
  *found = state->pairs.count - before;
  state->pairs.count = minimum(state->pairs.count, state->pairs.capacity);
  if (status != KCP_OK) return status;
  return end_phase(state, KCP_PHASE_KERNEL, started, error);
}

static uint64_t side_count(const engine_state *state, enum kcp_side side) {
  return state->sides[side].kept.count;
}

static enum kcp_status side_records(engine_state *state, enum kcp_side side, uint64_t *records,
                                    struct kcp_error *error) {
  (void)error;
  const struct kcp_point_set *kept = &state->sides[side].kept;
  memcpy(records, kept->records, kept->count * sizeof *records);
  return KCP_OK;
}

static enum kcp_status set_ids(engine_state *state, enum kcp_side number, const uint64_t *ids,
                               struct kcp_error *error) {
  (void)error;
  struct side *side = &state->sides[number];
  memcpy(side->ids, ids, side->kept.count * sizeof *ids);
  side->kept.ids = side->ids;
  side->is_sorted = false;
  return KCP_OK;
}

static enum kcp_status restrict_ids(engine_state *state, enum kcp_side side, uint64_t first_id,
                                    uint64_t last_id, struct kcp_error *error) {
  double started = kcp_now();
  sort_side(state, side, first_id, last_id);
  return end_phase(state, KCP_PHASE_KERNEL, started, error);
}

/* ---- pairs ---- */

static uint64_t pair_count(const engine_state *state) {
  return state->pairs.count;
}

static enum kcp_status truncate_pairs(engine_state *state, uint64_t count,
                                      struct kcp_error *error) {
  (void)error;
  state->pairs.count = minimum(state->pairs.count, count);
  return KCP_OK;
}

static enum kcp_status drop_beyond(engine_state *state, double rank, struct kcp_error *error) {
  double started = kcp_now();
  uint64_t kept = 0;
  for (uint64_t i = 0; i < state->pairs.count; ++i)
    if (state->pairs.pairs[i].rank <= rank) state->pairs.pairs[kept++] = state->pairs.pairs[i];
  state->pairs.count = kept;
  return end_phase(state, KCP_PHASE_MERGE, started, error);
}

static enum kcp_status rank_of(engine_state *state, uint64_t wanted, double *rank,
                               struct kcp_error *error) {
  double started = kcp_now();
  *rank = kcp_select_rank(state->pairs.pairs, state->pairs.count, wanted);
  return end_phase(state, KCP_PHASE_MERGE, started, error);
}

static enum kcp_status download(engine_state *state, struct kcp_record_pair *pairs,
                                struct kcp_error *error) {
  (void)error;
  memcpy(pairs, state->pairs.pairs, state->pairs.count * sizeof *pairs);
  return KCP_OK;
}

static void measure(const engine_state *state, struct kcp_measurement *measurement) {
  for (int phase = 0; phase < KCP_PHASE_COUNT; ++phase)
    measurement->phase_s[phase] += state->measurement.phase_s[phase];
  measurement->distance_evaluations += state->measurement.distance_evaluations;
}

const struct kcp_threshold_engine kcp_cpu_threshold_engine = {.create = create,
                                                              .destroy = destroy,
                                                              .reset = reset,
                                                              .block = block,
                                                              .clear_held = clear_held,
                                                              .append_held = append_held,
                                                              .load_sample = load_sample,
                                                              .guess = guess,
                                                              .held_sampled = held_sampled,
                                                              .mark = mark,
                                                              .filter = filter,
                                                              .survivors = survivors,
                                                              .reduce = reduce,
                                                              .join = join,
                                                              .clear_survivors = clear_survivors,
                                                              .pair_count = pair_count,
                                                              .truncate_pairs = truncate_pairs,
                                                              .drop_beyond = drop_beyond,
                                                              .rank_of = rank_of,
                                                              .download = download,
                                                              .side_count = side_count,
                                                              .side_records = side_records,
                                                              .set_ids = set_ids,
                                                              .restrict_ids = restrict_ids,
                                                              .measure = measure};

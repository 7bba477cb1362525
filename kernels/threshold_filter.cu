/* The CUDA engine of the global-threshold search: blocks, the guess, and filtering.
 *
 * Waits: the guess waits once (for the box and the rank), mark and filter never, reduce once as
 * long as one round of filtering is enough, and once more where so many points were streamed that
 * the bitmap is made for those that survived. */
#include <cstring>

#include "threshold_state.cuh"

static const uint32_t few_points = 1u << 14;        /* not worth another round of filtering */
static const uint64_t few_bits = UINT64_C(1) << 24; /* not worth a wait to clear fewer */
static const double endless_distance = 0x1p500;     /* everything is in reach */
static const uint32_t box_threads = 256, most_box_blocks = 1024;
static const uint32_t box_points = 1024; /* a block */

/* ---- blocks ---- */

static enum kcp_status collect_block(engine_state *state, struct kcp_threshold_block *block,
                                     struct kcp_error *error) {
  struct kcp_device_timer *upload = &block->upload, *filter = &block->filter;
  KCP_TRY(
      kcp_device_timers_collect(&upload, 1, &state->measurement.phase_s[KCP_PHASE_UPLOAD], error));
  return kcp_device_timers_collect(&filter, 1, &state->measurement.phase_s[KCP_PHASE_KERNEL],
                                   error);
}

enum kcp_status kcp_threshold_wait_for_block(engine_state *state, uint32_t which,
                                             struct kcp_points **points, struct kcp_error *error) {
  struct kcp_threshold_block *block = &state->blocks[which];
  KCP_CUDA_TRY(cudaEventSynchronize(block->done));
  KCP_TRY(collect_block(state, block, error));
  *points = &block->points;
  return KCP_OK;
}

/* The coordinates of a block to `columns` of the given stride. */
static enum kcp_status upload(engine_state *state, struct kcp_threshold_block *block,
                              double *columns, uint64_t stride, struct kcp_error *error) {
  uint64_t bytes = block->points.count * sizeof(double);
  KCP_TRY(kcp_device_timer_begin(&block->upload, state->stream, error));
  for (uint32_t j = 0; j < block->points.dimensions; ++j)
    KCP_CUDA_TRY(cudaMemcpyAsync(columns + j * stride, kcp_points_column(&block->points, j), bytes,
                                 cudaMemcpyHostToDevice, state->stream));
  KCP_TRY(kcp_device_timer_end(&block->upload, state->stream, error));
  state->measurement.bytes_uploaded += bytes * block->points.dimensions;
  return KCP_OK;
}

enum kcp_status kcp_threshold_clear_held(engine_state *state, struct kcp_error *error) {
  (void)error;
  state->held.count = 0;
  state->box_known = state->knots_known = false;
  return KCP_OK;
}

enum kcp_status kcp_threshold_append_held(engine_state *state, uint32_t which,
                                          uint64_t first_record, struct kcp_error *error) {
  struct kcp_threshold_block *block = &state->blocks[which];
  if (state->held.count == 0) state->held.first_record = first_record;
  KCP_TRY(upload(state, block, state->held.columns + state->held.count, state->held.stride, error));
  state->held.count += (uint32_t)block->points.count;
  KCP_CUDA_TRY(cudaEventRecord(block->done, state->stream));
  return KCP_OK;
}

/* ---- the box and the guess ---- */

/* Starts finding the box of the held points, on its way to the host behind it. */
static enum kcp_status start_box(engine_state *state, struct kcp_error *error) {
  struct kcp_box_columns which = {state->axes.count,
                                  {state->axes.axis[0], state->axes.axis[1], state->axes.axis[2]}};
  uint32_t blocks = state->held.count / box_points + 1;
  if (blocks > most_box_blocks) blocks = most_box_blocks;
  kcp_box_clear<<<1, kcp_box_words, 0, state->stream>>>(state->box);
  kcp_box_grow<<<blocks, box_threads, 0, state->stream>>>(
      state->held.count, which, state->held.columns, state->held.stride, state->box);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cudaMemcpyAsync(state->host_words, state->box, kcp_box_words * sizeof *state->box,
                               cudaMemcpyDeviceToHost, state->stream));
  return KCP_OK;
}

/* Takes the box that the stream has brought. */
static void take_box(engine_state *state) {
  struct kcp_axes axes = state->axes;
  for (uint32_t j = 0; j < axes.count; ++j) {
    state->low[j] = kcp_from_ordered_bits(state->host_words[j]);
    state->high[j] = kcp_from_ordered_bits(state->host_words[kcp_box_axes + j]);
  }
  kcp_axes_drop_constant(&axes, state->low, state->high);
  state->cells.axes = axes.count;
  for (uint32_t j = 0; j < axes.count; ++j) state->cells.axis[j] = axes.axis[j];
  state->box_known = true;
  state->knots_known = false;
}

static enum kcp_status find_box(engine_state *state, struct kcp_error *error) {
  if (state->box_known) return KCP_OK;
  KCP_TRY(start_box(state, error));
  KCP_CUDA_TRY(cudaStreamSynchronize(state->stream));
  take_box(state);
  return KCP_OK;
}

enum kcp_status kcp_threshold_load_sample(engine_state *state, const struct kcp_points *sample,
                                          struct kcp_error *error) {
  state->axes = kcp_axes_of_sample(sample);
  state->box_known = false;
  /* From pageable memory, which is read before the calls return. */
  for (uint32_t j = 0; j < sample->dimensions; ++j)
    KCP_CUDA_TRY(cudaMemcpyAsync(state->sample.columns + j * state->sample.stride,
                                 kcp_points_column(sample, j), sample->count * sizeof(double),
                                 cudaMemcpyHostToDevice, state->stream));
  KCP_CUDA_TRY(cudaMemcpyAsync(state->sample.records, sample->ids, sample->count * sizeof(uint64_t),
                               cudaMemcpyHostToDevice, state->stream));
  state->sample.count = (uint32_t)sample->count;
  return KCP_OK;
}

uint64_t kcp_threshold_held_sampled(const engine_state *state) {
  uint64_t wanted = state->plan.held_sample;
  return state->held.count < wanted ? state->held.count : wanted;
}

enum kcp_status kcp_threshold_guess(engine_state *state, uint64_t wanted, double *rank,
                                    struct kcp_error *error) {
  struct kcp_guess_question asked = {};
  bool box_known = state->box_known;
  asked.metric = state->plan.metric;
  asked.dimensions = state->dimensions;
  asked.self = state->plan.self;
  asked.axes = state->axes.count;
  for (uint32_t j = 0; j < state->axes.count; ++j) asked.axis[j] = state->axes.axis[j];
  asked.held = state->held;
  asked.held_count = (uint32_t)kcp_threshold_held_sampled(state);
  asked.sample = state->sample;
  asked.box = state->box;
  asked.wanted = wanted;
  KCP_TRY(kcp_threshold_begin(state, error));
  if (!box_known) KCP_TRY(start_box(state, error));
  KCP_TRY(kcp_guess_rank(&state->guess, &asked, state->stream, error));
  KCP_CUDA_TRY(cudaMemcpyAsync(state->host_ranks, state->guess.rank, sizeof *state->guess.rank,
                               cudaMemcpyDeviceToHost, state->stream));
  KCP_TRY(kcp_threshold_end(state, KCP_PHASE_INDEX, error));
  if (!box_known) take_box(state);
  *rank = state->host_ranks[0];
  return KCP_OK;
}

/* ---- marking and filtering ---- */

struct kcp_cells kcp_threshold_cells(engine_state *state, double rank, uint64_t points) {
  double distance = kcp_metric_distance(state->plan.metric, rank);
  return kcp_cells_make(state->cells.axes, state->cells.axis, state->low, state->high, distance,
                        kcp_threshold_bits(points), ++state->round);
}

/* Where points mark cells; through their boxes, held points also find those of others. */
static struct kcp_cell_marks marks_by(const engine_state *state, const struct kcp_cells *cells,
                                      enum kcp_cell_touch touch) {
  struct kcp_cell_marks marks = {};
  marks.once = state->bitmap;
  if (!state->plan.self || touch != KCP_TOUCH_BOX) return marks;
  marks.twice = state->bitmap + (UINT64_C(1) << cells->word_bits);
  marks.own_first = state->held.first_record;
  marks.own_count = state->held.count;
  return marks;
}

static enum kcp_status mark_held(engine_state *state, struct kcp_error *error) {
  struct kcp_cell_marks marks = marks_by(state, &state->cells, KCP_TOUCH_BOX);
  state->bitmap_is_marked = true;
  return kcp_cells_mark(&state->cells, &state->held, KCP_TOUCH_BOX, &marks, state->stream, error);
}

/* The time of the last mark, once the stream is past it. */
static enum kcp_status collect_mark(engine_state *state, struct kcp_error *error) {
  struct kcp_device_timer *timer = &state->mark_timer;
  return kcp_device_timers_collect(&timer, 1, &state->measurement.phase_s[KCP_PHASE_KERNEL], error);
}

enum kcp_status kcp_threshold_mark(engine_state *state, double rank, struct kcp_error *error) {
  if (state->mark_timer.pending) {
    KCP_CUDA_TRY(cudaStreamSynchronize(state->stream));
    KCP_TRY(collect_mark(state, error));
  }
  KCP_TRY(kcp_device_timer_begin(&state->mark_timer, state->stream, error));
  KCP_TRY(find_box(state, error));
  state->endless = !(kcp_metric_distance(state->plan.metric, rank) < endless_distance);
  state->bitmap_is_marked = false;
  if (!state->endless) {
    state->cells = kcp_threshold_cells(state, rank, state->held.count);
    KCP_TRY(mark_held(state, error));
  }
  KCP_TRY(kcp_threshold_clear_survivors(state, error));
  return kcp_device_timer_end(&state->mark_timer, state->stream, error);
}

enum kcp_status kcp_threshold_filter(engine_state *state, uint32_t which, uint64_t first_record,
                                     struct kcp_error *error) {
  struct kcp_threshold_block *block = &state->blocks[which];
  struct kcp_point_set set = {};
  struct kcp_point_set kept = kcp_side_buffer(&state->sides[KCP_SIDE_STREAMED], 0);
  set.columns = block->columns;
  set.stride = block->stride;
  set.first_record = first_record;
  set.count = (uint32_t)block->points.count;
  KCP_TRY(upload(state, block, block->columns, block->stride, error));
  KCP_TRY(kcp_device_timer_begin(&block->filter, state->stream, error));
  if (!state->endless && !state->bitmap_is_marked) KCP_TRY(mark_held(state, error));
  struct kcp_cell_marks marks = marks_by(state, &state->cells, KCP_TOUCH_BOX);
  KCP_TRY(kcp_cells_probe(&state->cells, state->dimensions, &set, KCP_TOUCH_POINT,
                          state->endless ? NULL : &marks, &kept,
                          state->counters + KCP_COUNT_SURVIVORS, state->stream, error));
  KCP_TRY(kcp_device_timer_end(&block->filter, state->stream, error));
  KCP_CUDA_TRY(cudaEventRecord(block->done, state->stream));
  state->filtered += block->points.count;
  return KCP_OK;
}

enum kcp_status kcp_threshold_survivors(engine_state *state, uint64_t *count,
                                        struct kcp_error *error) {
  return kcp_threshold_count(state, KCP_COUNT_SURVIVORS, count, error);
}

/* ---- reducing ---- */

/* Keeps, of `from`, what touches the marked cells, in the side's other buffer: how many is known
 * on the device. */
static enum kcp_status keep_marked(engine_state *state, const struct kcp_cells *cells,
                                   enum kcp_side number, const struct kcp_point_set *from,
                                   enum kcp_cell_touch touch, const struct kcp_cell_marks *marks,
                                   struct kcp_error *error) {
  struct kcp_threshold_side *side = &state->sides[number];
  enum kcp_threshold_counter which = number == KCP_SIDE_HELD ? KCP_COUNT_HELD : KCP_COUNT_STREAMED;
  int into = from->columns == side->columns[0] ? 1 : 0;
  struct kcp_point_set kept = kcp_side_buffer(side, into);
  KCP_TRY(kcp_threshold_clear(state, which, 1, error));
  KCP_TRY(kcp_cells_probe(cells, state->dimensions, from, touch, marks, &kept,
                          state->counters + which, state->stream, error));
  kept.count = from->count < kept.stride ? from->count : (uint32_t)kept.stride;
  kept.live = state->counters + which;
  side->kept = kept;
  side->current = into;
  return KCP_OK;
}

/* Each side filters the other once, each time with another hash. A streamed point that is held
 * itself meets its held self, since that is kept by its own cell. */
static enum kcp_status filter_once(engine_state *state, double rank,
                                   const struct kcp_point_set *held,
                                   const struct kcp_point_set *streamed, struct kcp_error *error) {
  struct kcp_cells cells = kcp_threshold_cells(state, rank, streamed->count);
  struct kcp_cell_marks marks = marks_by(state, &cells, KCP_TOUCH_POINT);
  KCP_TRY(kcp_cells_mark(&cells, streamed, KCP_TOUCH_POINT, &marks, state->stream, error));
  KCP_TRY(keep_marked(state, &cells, KCP_SIDE_HELD, held, KCP_TOUCH_BOX, &marks, error));
  struct kcp_point_set held_now = state->sides[KCP_SIDE_HELD].kept;
  cells = kcp_threshold_cells(state, rank, held_now.count);
  marks = marks_by(state, &cells, KCP_TOUCH_BOX);
  KCP_TRY(kcp_cells_mark(&cells, &held_now, KCP_TOUCH_BOX, &marks, state->stream, error));
  return keep_marked(state, &cells, KCP_SIDE_STREAMED, streamed, KCP_TOUCH_POINT, &marks, error);
}

/* Waits, and takes the counts that the device has: of survivors, and of what each side kept. False
 * in *fits when the held side had no room. */
static enum kcp_status take_counts(engine_state *state, uint64_t *survivors, bool *fits,
                                   struct kcp_error *error) {
  unsigned long long *words = state->host_words + kcp_box_words;
  KCP_CUDA_TRY(cudaMemcpyAsync(words, state->counters, KCP_COUNTERS * sizeof *words,
                               cudaMemcpyDeviceToHost, state->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(state->stream));
  *survivors = words[KCP_COUNT_SURVIVORS];
  struct kcp_threshold_side *held = &state->sides[KCP_SIDE_HELD];
  struct kcp_threshold_side *streamed = &state->sides[KCP_SIDE_STREAMED];
  *fits = words[KCP_COUNT_HELD] <= held->capacity;
  held->kept.count = (uint32_t)(*fits ? words[KCP_COUNT_HELD] : 0);
  if (streamed->kept.live != NULL) streamed->kept.count = (uint32_t)words[KCP_COUNT_STREAMED];
  held->kept.live = streamed->kept.live = NULL;
  return KCP_OK;
}

/* The two sides filter each other in turn while that halves them. */
static enum kcp_status filter_mutually(engine_state *state, double rank, bool *fits,
                                       struct kcp_error *error) {
  struct kcp_threshold_side *held = &state->sides[KCP_SIDE_HELD];
  struct kcp_threshold_side *streamed = &state->sides[KCP_SIDE_STREAMED];
  uint64_t before, after, survivors = state->filtered;
  state->bitmap_is_marked = false;
  if (kcp_threshold_bits(survivors) > few_bits)
    KCP_TRY(kcp_threshold_count(state, KCP_COUNT_SURVIVORS, &survivors, error));
  streamed->kept.count =
      (uint32_t)(survivors < streamed->capacity ? survivors : streamed->capacity);
  streamed->kept.live = state->counters + KCP_COUNT_SURVIVORS;
  struct kcp_point_set held_now = state->held;
  bool is_first = true;
  do {
    struct kcp_point_set streamed_now = streamed->kept;
    before = (uint64_t)held_now.count + streamed_now.count;
    KCP_TRY(filter_once(state, rank, &held_now, &streamed_now, error));
    KCP_TRY(take_counts(state, &survivors, fits, error));
    if (is_first) before = (uint64_t)held_now.count + survivors;
    is_first = false;
    held_now = held->kept;
    after = (uint64_t)held_now.count + streamed->kept.count;
  } while (*fits && after > few_points && after <= before / 2);
  return KCP_OK;
}

/* Everything is near everything. */
static enum kcp_status keep_all(engine_state *state, bool *fits, struct kcp_error *error) {
  uint64_t survivors = 0;
  KCP_TRY(
      keep_marked(state, &state->cells, KCP_SIDE_HELD, &state->held, KCP_TOUCH_BOX, NULL, error));
  KCP_TRY(take_counts(state, &survivors, fits, error));
  state->sides[KCP_SIDE_STREAMED].kept.count = (uint32_t)survivors;
  return KCP_OK;
}

enum kcp_status kcp_threshold_reduce(engine_state *state, double rank, bool *fits,
                                     struct kcp_error *error) {
  struct kcp_threshold_side *streamed = &state->sides[KCP_SIDE_STREAMED];
  KCP_TRY(kcp_threshold_begin(state, error));
  streamed->current = 0; /* where filter appends */
  streamed->kept = kcp_side_buffer(streamed, 0);
  if (state->endless)
    KCP_TRY(keep_all(state, fits, error));
  else
    KCP_TRY(filter_mutually(state, rank, fits, error));
  for (struct kcp_threshold_side &side : state->sides) {
    side.chosen = side.kept;
    side.first_id = 0;
    side.last_id = UINT64_MAX;
    side.order = KCP_ORDER_NONE;
  }
  KCP_TRY(kcp_threshold_end(state, KCP_PHASE_KERNEL, error));
  KCP_TRY(collect_mark(state, error));
  for (int b = 0; b < 2; ++b) KCP_TRY(collect_block(state, &state->blocks[b], error));
  return KCP_OK;
}

/* The bitmap was used for other cells: the next filter marks it again. */
enum kcp_status kcp_threshold_clear_survivors(engine_state *state, struct kcp_error *error) {
  state->filtered = 0;
  for (struct kcp_threshold_side &side : state->sides) side.kept.count = side.chosen.count = 0;
  return kcp_threshold_clear(state, KCP_COUNT_SURVIVORS, 1, error);
}

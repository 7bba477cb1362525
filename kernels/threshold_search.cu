/* The CUDA engine of the global-threshold search: memory, streams and the order of kernels around
 * cell_filter, threshold_guess, morton_sort and box_tree. */
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "all_pairs_join.cuh"
#include "bounding_box.cuh"
#include "box_tree.cuh"
#include "cell_filter.cuh"
#include "cell_join.cuh"
#include "device.cuh"
#include "kcp/axes.h"
#include "kcp/threshold_search.h"
#include "select_candidates.cuh"
#include "threshold_guess.cuh"

static const uint32_t guess_window = 4;
static const uint64_t all_sample_pairs = UINT64_C(1) << 22; /* so few are compared all */
static const uint64_t bits_per_point = 24;
static const uint64_t fewest_bits = UINT64_C(1) << 16, most_bits = UINT64_C(1) << 31;
static const uint32_t few_points = 1u << 14; /* not worth another round of filtering */
static const uint64_t ranks_on_host = UINT64_C(1) << 15;
static const unsigned fullest_cell = 64; /* held points of a cell that a join by cells ranks */
static const uint64_t few_pairs = UINT64_C(1) << 26; /* so few are ranked all */
static const double endless_distance = 0x1p500;      /* everything is in reach */

/* A block of points on its way from a file. */
struct block {
  struct kcp_points points; /* pinned */
  double *columns;          /* on the device */
  cudaEvent_t done;         /* the device no longer needs it */
  struct kcp_device_timer upload, filter;
};

/* One side's points after reduce: two buffers for filtering back and forth, and the points in
 * Morton order that joins work on. */
struct side {
  struct kcp_point_set kept; /* in buffers[current] */
  struct kcp_point_set sorted;
  double *columns[2];
  uint64_t *records[2];
  double *sorted_columns;
  uint64_t *sorted_records, *ids, *sorted_ids;
  struct kcp_morton_sorter sorter;
  int current;
  uint64_t capacity;
  bool is_sorted;
};

struct kcp_threshold_engine_state {
  struct kcp_threshold_plan plan;
  uint32_t dimensions; /* of the points since reset */
  struct kcp_device_memory memory;
  cudaStream_t stream;
  struct block blocks[2];
  struct kcp_point_set held; /* all that is loaded */
  struct kcp_point_set sample;
  uint64_t held_sampled;
  bool sample_counted;
  struct kcp_axes axes;                         /* that may index */
  struct kcp_cells cells;                       /* of the last mark; its axes are those that do */
  double low[KCP_MAX_AXES], high[KCP_MAX_AXES]; /* of the held points along the axes */
  double *knots;                                /* of their Morton keys, on the device */
  bool box_known;
  bool endless;
  struct side sides[2];
  uint32_t *bitmap;
  bool bitmap_is_marked; /* with the cells of the last mark */
  uint64_t round;        /* seeds the hash of each filtering */
  struct kcp_cell_table table;
  struct kcp_box_tree tree;
  struct kcp_pair_planes pairs, spare_pairs;
  uint64_t pair_count;
  unsigned *histogram;
  double *guessed;
  unsigned long long *box, *counters; /* device: box; pairs, survivors, kept */
  unsigned long long *host_words;     /* pinned */
  double *host_ranks;                 /* pinned, ranks_on_host */
  struct kcp_selector selector;
  struct kcp_device_timer timer;
  struct kcp_measurement measurement;
};

typedef struct kcp_threshold_engine_state engine_state;

enum counter { COUNT_PAIRS, COUNT_SURVIVORS, COUNT_KEPT, COUNTERS };

static uint64_t power_of_two_from(uint64_t value) {
  uint64_t power = fewest_bits;
  while (power < value && power < most_bits) power *= 2;
  return power;
}

static uint64_t bits_for(uint64_t points) {
  return power_of_two_from(points * bits_per_point);
}

static struct kcp_box_columns box_columns(const struct kcp_axes *axes) {
  struct kcp_box_columns which = {axes->count, {axes->axis[0], axes->axis[1], axes->axis[2]}};
  return which;
}

/* ---- memory ---- */

static enum kcp_status make_side(engine_state *state, uint64_t capacity, struct side *side,
                                 struct kcp_error *error) {
  struct kcp_device_memory *memory = &state->memory;
  uint64_t values = capacity * state->plan.dimensions;
  side->capacity = capacity;
  for (int b = 0; b < 2; ++b) {
    KCP_TRY(kcp_device_array(memory, values, &side->columns[b], "survivors", error));
    KCP_TRY(kcp_device_array(memory, capacity, &side->records[b], "survivors", error));
  }
  KCP_TRY(kcp_device_array(memory, capacity, &side->ids, "ids", error));
  return kcp_morton_sorter_create(memory, capacity, &side->sorter, error);
}

static enum kcp_status make_block(engine_state *state, struct block *block,
                                  struct kcp_error *error) {
  uint64_t capacity = state->plan.block_capacity, values = capacity * state->plan.dimensions;
  block->points.stride = capacity;
  block->points.dimensions = state->plan.dimensions;
  /* Ids stay on the host, where most files never read them into the block. */
  block->points.ids = (uint64_t *)malloc(capacity * sizeof *block->points.ids);
  if (block->points.ids == NULL)
    return kcp_out_of_memory(error, "a block", capacity * sizeof *block->points.ids);
  KCP_TRY(kcp_pinned_array(&state->memory, values, &block->points.coordinates, "a block", error));
  KCP_TRY(kcp_device_array(&state->memory, values, &block->columns, "a block", error));
  KCP_CUDA_TRY(cudaEventCreateWithFlags(&block->done, cudaEventDisableTiming));
  KCP_TRY(kcp_device_timer_create(&block->upload, error));
  return kcp_device_timer_create(&block->filter, error);
}

static enum kcp_status make_pairs(engine_state *state, struct kcp_pair_planes *pairs,
                                  struct kcp_error *error) {
  pairs->capacity = state->plan.pair_capacity;
  pairs->counter = state->counters + COUNT_PAIRS;
  KCP_TRY(kcp_device_array(&state->memory, pairs->capacity, &pairs->ranks, "pairs", error));
  KCP_TRY(kcp_device_array(&state->memory, pairs->capacity, &pairs->held, "pairs", error));
  return kcp_device_array(&state->memory, pairs->capacity, &pairs->streamed, "pairs", error);
}

static enum kcp_status allocate(engine_state *state, struct kcp_error *error) {
  const struct kcp_threshold_plan *plan = &state->plan;
  struct kcp_device_memory *memory = &state->memory;
  uint64_t larger =
      plan->held_capacity > plan->survivor_capacity ? plan->held_capacity : plan->survivor_capacity;
  KCP_CUDA_TRY(cudaStreamCreateWithFlags(&state->stream, cudaStreamNonBlocking));
  KCP_TRY(kcp_device_array(memory, COUNTERS, &state->counters, "counters", error));
  KCP_TRY(kcp_device_array(memory, kcp_box_words, &state->box, "the box", error));
  KCP_TRY(kcp_device_array(memory, KCP_MAX_AXES * KCP_MORTON_KNOTS, &state->knots, "knots", error));
  KCP_TRY(
      kcp_pinned_array(memory, kcp_box_words + COUNTERS, &state->host_words, "counters", error));
  KCP_TRY(kcp_pinned_array(memory, ranks_on_host, &state->host_ranks, "ranks", error));
  for (int b = 0; b < 2; ++b) KCP_TRY(make_block(state, &state->blocks[b], error));
  state->held.stride = plan->held_capacity;
  KCP_TRY(kcp_device_array(memory, plan->held_capacity * plan->dimensions, &state->held.columns,
                           "held points", error));
  state->sample.stride = plan->streamed_sample > 0 ? plan->streamed_sample : 1;
  KCP_TRY(kcp_device_array(memory, state->sample.stride * plan->dimensions, &state->sample.columns,
                           "the sample", error));
  KCP_TRY(
      kcp_device_array(memory, state->sample.stride, &state->sample.records, "the sample", error));
  KCP_TRY(make_side(state, plan->held_capacity, &state->sides[KCP_SIDE_HELD], error));
  KCP_TRY(make_side(state, plan->survivor_capacity, &state->sides[KCP_SIDE_STREAMED], error));
  KCP_TRY(kcp_device_array(memory, bits_for(larger) / 32, &state->bitmap, "the bitmap", error));
  KCP_TRY(kcp_cell_table_create(memory, plan->held_capacity, &state->table, error));
  KCP_TRY(kcp_box_tree_create(memory, plan->held_capacity, &state->tree, error));
  KCP_TRY(make_pairs(state, &state->pairs, error));
  KCP_TRY(make_pairs(state, &state->spare_pairs, error));
  KCP_TRY(kcp_device_array(memory, kcp_guess_buckets, &state->histogram, "the guess", error));
  KCP_TRY(kcp_device_array(memory, 1, &state->guessed, "the guess", error));
  KCP_TRY(kcp_selector_create(memory, 1, &state->selector, error));
  return kcp_device_timer_create(&state->timer, error);
}

static void destroy(engine_state *state) {
  if (state == NULL) return;
  cudaDeviceSynchronize();
  for (int b = 0; b < 2; ++b) {
    free(state->blocks[b].points.ids);
    if (state->blocks[b].done != NULL) cudaEventDestroy(state->blocks[b].done);
    kcp_device_timer_destroy(&state->blocks[b].upload);
    kcp_device_timer_destroy(&state->blocks[b].filter);
  }
  kcp_device_timer_destroy(&state->timer);
  if (state->stream != NULL) cudaStreamDestroy(state->stream);
  kcp_device_memory_free(&state->memory);
  free(state);
}

static enum kcp_status create(const struct kcp_threshold_plan *plan,
                              const struct kcp_device_info *device, engine_state **out,
                              struct kcp_error *error) {
  KCP_CUDA_TRY(cudaSetDevice(device->index));
  engine_state *state = (engine_state *)calloc(1, sizeof *state);
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

/* ---- counting and timing ---- */

static enum kcp_status begin_kernels(engine_state *state, struct kcp_error *error) {
  return kcp_device_timer_begin(&state->timer, state->stream, error);
}

/* Waits for the stream and adds the time since begin_kernels to a phase. */
static enum kcp_status end_kernels(engine_state *state, enum kcp_phase phase,
                                   struct kcp_error *error) {
  struct kcp_device_timer *timer = &state->timer;
  KCP_TRY(kcp_device_timer_end(timer, state->stream, error));
  KCP_CUDA_TRY(cudaStreamSynchronize(state->stream));
  return kcp_device_timers_collect(&timer, 1, &state->measurement.phase_s[phase], error);
}

static enum kcp_status set_counter(engine_state *state, enum counter which, uint64_t value,
                                   struct kcp_error *error) {
  unsigned long long *word = state->host_words + kcp_box_words + which;
  *word = value;
  KCP_CUDA_TRY(cudaMemcpyAsync(state->counters + which, word, sizeof *word, cudaMemcpyHostToDevice,
                               state->stream));
  return KCP_OK;
}

static enum kcp_status get_counter(engine_state *state, enum counter which, uint64_t *value,
                                   struct kcp_error *error) {
  unsigned long long *word = state->host_words + kcp_box_words + which;
  KCP_CUDA_TRY(cudaMemcpyAsync(word, state->counters + which, sizeof *word, cudaMemcpyDeviceToHost,
                               state->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(state->stream));
  *value = *word;
  return KCP_OK;
}

static enum kcp_status reset(engine_state *state, uint32_t dimensions, struct kcp_error *error) {
  memset(&state->measurement, 0, sizeof state->measurement);
  state->held.count = 0;
  state->sample.count = 0;
  state->sample_counted = false;
  state->box_known = false;
  state->bitmap_is_marked = false;
  state->pair_count = 0;
  state->sides[KCP_SIDE_HELD].kept.count = state->sides[KCP_SIDE_STREAMED].kept.count = 0;
  state->dimensions = dimensions;
  for (int b = 0; b < 2; ++b) state->blocks[b].points.dimensions = dimensions;
  state->axes = kcp_axes_first(dimensions);
  KCP_CUDA_TRY(
      cudaMemsetAsync(state->counters, 0, COUNTERS * sizeof *state->counters, state->stream));
  return KCP_OK;
}

/* ---- blocks ---- */

static enum kcp_status collect_block(engine_state *state, struct block *block,
                                     struct kcp_error *error) {
  struct kcp_device_timer *upload = &block->upload, *filter = &block->filter;
  KCP_TRY(
      kcp_device_timers_collect(&upload, 1, &state->measurement.phase_s[KCP_PHASE_UPLOAD], error));
  return kcp_device_timers_collect(&filter, 1, &state->measurement.phase_s[KCP_PHASE_KERNEL],
                                   error);
}

static enum kcp_status wait_for_block(engine_state *state, uint32_t which,
                                      struct kcp_points **points, struct kcp_error *error) {
  struct block *block = &state->blocks[which];
  KCP_CUDA_TRY(cudaEventSynchronize(block->done));
  KCP_TRY(collect_block(state, block, error));
  *points = &block->points;
  return KCP_OK;
}

/* The coordinates of a block to `columns` of the given stride. */
static enum kcp_status upload(engine_state *state, struct block *block, double *columns,
                              uint64_t stride, struct kcp_error *error) {
  uint64_t bytes = block->points.count * sizeof(double);
  KCP_TRY(kcp_device_timer_begin(&block->upload, state->stream, error));
  for (uint32_t j = 0; j < block->points.dimensions; ++j)
    KCP_CUDA_TRY(cudaMemcpyAsync(columns + j * stride, kcp_points_column(&block->points, j), bytes,
                                 cudaMemcpyHostToDevice, state->stream));
  KCP_TRY(kcp_device_timer_end(&block->upload, state->stream, error));
  state->measurement.bytes_uploaded += bytes * block->points.dimensions;
  return KCP_OK;
}

static enum kcp_status clear_held(engine_state *state, struct kcp_error *error) {
  (void)error;
  state->held.count = 0;
  state->box_known = false;
  return KCP_OK;
}

static enum kcp_status append_held(engine_state *state, uint32_t which, uint64_t first_record,
                                   struct kcp_error *error) {
  struct block *block = &state->blocks[which];
  if (state->held.count == 0) state->held.first_record = first_record;
  KCP_TRY(upload(state, block, state->held.columns + state->held.count, state->held.stride, error));
  state->held.count += (uint32_t)block->points.count;
  KCP_CUDA_TRY(cudaEventRecord(block->done, state->stream));
  return KCP_OK;
}

/* ---- the guess ---- */

static enum kcp_status load_sample(engine_state *state, const struct kcp_points *sample,
                                   struct kcp_error *error) {
  state->axes = kcp_axes_of_sample(sample);
  state->box_known = false;
  for (uint32_t j = 0; j < sample->dimensions; ++j)
    KCP_CUDA_TRY(cudaMemcpyAsync(state->sample.columns + j * state->sample.stride,
                                 kcp_points_column(sample, j), sample->count * sizeof(double),
                                 cudaMemcpyHostToDevice, state->stream));
  KCP_CUDA_TRY(cudaMemcpyAsync(state->sample.records, sample->ids, sample->count * sizeof(uint64_t),
                               cudaMemcpyHostToDevice, state->stream));
  KCP_CUDA_TRY(
      cudaStreamSynchronize(state->stream)); /* the caller's memory is pageable and brief */
  state->sample.count = (uint32_t)sample->count;
  state->sample_counted = false;
  return KCP_OK;
}

/* The box and the Morton frame of the held points along the axes, once for each held set. */
static enum kcp_status find_frame(engine_state *state, struct kcp_error *error) {
  if (state->box_known) return KCP_OK;
  uint64_t wanted_blocks = ((uint64_t)state->held.count + 255) / 256;
  unsigned blocks = wanted_blocks < 1 ? 1 : wanted_blocks > 1024 ? 1024 : (unsigned)wanted_blocks;
  kcp_box_clear<<<1, kcp_box_words, 0, state->stream>>>(state->box);
  kcp_box_grow<<<blocks, 256, 0, state->stream>>>(state->held.count, box_columns(&state->axes),
                                                  state->held.columns, state->held.stride,
                                                  state->box);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cudaMemcpyAsync(state->host_words, state->box, kcp_box_words * sizeof *state->box,
                               cudaMemcpyDeviceToHost, state->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(state->stream));
  struct kcp_axes axes = state->axes;
  for (uint32_t j = 0; j < axes.count; ++j) {
    state->low[j] = kcp_from_ordered_bits(state->host_words[j]);
    state->high[j] = kcp_from_ordered_bits(state->host_words[kcp_box_axes + j]);
  }
  kcp_axes_drop_constant(&axes, state->low, state->high);
  state->cells.axes = axes.count;
  for (uint32_t j = 0; j < axes.count; ++j) state->cells.axis[j] = axes.axis[j];
  KCP_TRY(kcp_morton_find_knots(&state->cells, &state->held, state->low, state->high, state->knots,
                                state->stream, error));
  state->box_known = true;
  return KCP_OK;
}

static enum kcp_status count_sample(engine_state *state, struct kcp_error *error) {
  uint64_t wanted = state->plan.held_sample;
  uint32_t sampled = state->held.count < wanted ? state->held.count : (uint32_t)wanted;
  struct kcp_morton_sorter *sorter = &state->sides[KCP_SIDE_HELD].sorter;
  KCP_TRY(find_frame(state, error));
  struct kcp_morton_frame frame = {state->cells.axes, state->knots};
  double step = sampled > 0 ? (double)state->held.count / sampled : 1;
  bool all = (uint64_t)sampled * state->sample.count <= all_sample_pairs;
  KCP_TRY(kcp_morton_sort(sorter, &state->cells, &frame, &state->held, step, sampled, UINT64_MAX,
                          state->stream, error));
  KCP_TRY(kcp_guess_count(&state->cells, &frame, state->plan.metric, state->plan.self,
                          state->dimensions, &state->held, sorter, sampled, &state->sample,
                          all ? sampled : guess_window, state->histogram, state->stream, error));
  state->held_sampled = sampled;
  state->sample_counted = true;
  return KCP_OK;
}

static enum kcp_status guess(engine_state *state, uint64_t wanted, double *rank,
                             struct kcp_error *error) {
  KCP_TRY(begin_kernels(state, error));
  if (!state->sample_counted) KCP_TRY(count_sample(state, error));
  KCP_TRY(kcp_guess_find(state->histogram, wanted, state->guessed, state->stream, error));
  KCP_CUDA_TRY(cudaMemcpyAsync(state->host_ranks, state->guessed, sizeof *state->guessed,
                               cudaMemcpyDeviceToHost, state->stream));
  KCP_TRY(end_kernels(state, KCP_PHASE_INDEX, error));
  *rank = state->host_ranks[0];
  return KCP_OK;
}

static uint64_t held_sampled(const engine_state *state) {
  uint64_t wanted = state->plan.held_sample;
  return state->held.count < wanted ? state->held.count : wanted;
}

/* ---- filtering ---- */

static struct kcp_cells cells_for(engine_state *state, double rank, uint64_t points) {
  double distance = kcp_metric_distance(state->plan.metric, rank);
  return kcp_cells_make(state->cells.axes, state->cells.axis, state->low, state->high, distance,
                        bits_for(points), ++state->round);
}

static enum kcp_status mark(engine_state *state, double rank, struct kcp_error *error) {
  KCP_TRY(begin_kernels(state, error));
  KCP_TRY(find_frame(state, error));
  state->endless = !(kcp_metric_distance(state->plan.metric, rank) < endless_distance);
  if (!state->endless) {
    state->cells = cells_for(state, rank, state->held.count);
    KCP_TRY(kcp_cells_mark(&state->cells, &state->held, KCP_TOUCH_BOX, state->bitmap, state->stream,
                           error));
  }
  state->bitmap_is_marked = !state->endless;
  struct side *survivors = &state->sides[KCP_SIDE_STREAMED];
  survivors->current = 0;
  KCP_TRY(set_counter(state, COUNT_SURVIVORS, 0, error));
  return end_kernels(state, KCP_PHASE_KERNEL, error);
}

static struct kcp_point_set buffer_of(const struct side *side, int which) {
  struct kcp_point_set set = {};
  set.columns = side->columns[which];
  set.stride = side->capacity;
  set.records = side->records[which];
  return set;
}

static enum kcp_status filter(engine_state *state, uint32_t which, uint64_t first_record,
                              struct kcp_error *error) {
  struct block *block = &state->blocks[which];
  struct kcp_point_set set = {};
  struct kcp_point_set kept = buffer_of(&state->sides[KCP_SIDE_STREAMED], 0);
  set.columns = block->columns;
  set.stride = block->points.stride;
  set.first_record = first_record;
  set.count = (uint32_t)block->points.count;
  KCP_TRY(upload(state, block, block->columns, block->points.stride, error));
  KCP_TRY(kcp_device_timer_begin(&block->filter, state->stream, error));
  if (!state->endless && !state->bitmap_is_marked) {
    KCP_TRY(kcp_cells_mark(&state->cells, &state->held, KCP_TOUCH_BOX, state->bitmap, state->stream,
                           error));
    state->bitmap_is_marked = true;
  }
  KCP_TRY(kcp_cells_probe(&state->cells, state->dimensions, &set, KCP_TOUCH_POINT,
                          state->endless ? NULL : state->bitmap, &kept,
                          state->counters + COUNT_SURVIVORS, state->stream, error));
  KCP_TRY(kcp_device_timer_end(&block->filter, state->stream, error));
  KCP_CUDA_TRY(cudaEventRecord(block->done, state->stream));
  return KCP_OK;
}

static enum kcp_status survivors(engine_state *state, uint64_t *count, struct kcp_error *error) {
  return get_counter(state, COUNT_SURVIVORS, count, error);
}

/* Keeps, of `from`, what touches the marked cells, in the side's other buffer. */
static enum kcp_status keep_marked(engine_state *state, enum kcp_side number,
                                   const struct kcp_point_set *from, enum kcp_cell_touch touch,
                                   const uint32_t *bitmap, struct kcp_error *error) {
  struct side *side = &state->sides[number];
  int into = from->columns == side->columns[0] ? 1 : 0;
  struct kcp_point_set kept = buffer_of(side, into);
  uint64_t count = 0;
  KCP_TRY(set_counter(state, COUNT_KEPT, 0, error));
  KCP_TRY(kcp_cells_probe(&state->cells, state->dimensions, from, touch, bitmap, &kept,
                          state->counters + COUNT_KEPT, state->stream, error));
  KCP_TRY(get_counter(state, COUNT_KEPT, &count, error));
  side->kept = kept;
  side->kept.count = (uint32_t)count;
  side->current = into;
  return KCP_OK;
}

/* The two sides filter each other in turn, each time with another hash, while that halves them. */
static enum kcp_status filter_mutually(engine_state *state, double rank, struct kcp_error *error) {
  struct side *held = &state->sides[KCP_SIDE_HELD];
  struct side *streamed = &state->sides[KCP_SIDE_STREAMED];
  struct kcp_point_set held_now = state->held;
  state->bitmap_is_marked = false;
  for (;;) {
    uint64_t before = (uint64_t)held_now.count + streamed->kept.count;
    state->cells = cells_for(state, rank, streamed->kept.count);
    KCP_TRY(kcp_cells_mark(&state->cells, &streamed->kept, KCP_TOUCH_POINT, state->bitmap,
                           state->stream, error));
    KCP_TRY(keep_marked(state, KCP_SIDE_HELD, &held_now, KCP_TOUCH_BOX, state->bitmap, error));
    held_now = held->kept;
    if ((uint64_t)held_now.count + streamed->kept.count <= few_points) return KCP_OK;
    state->cells = cells_for(state, rank, held_now.count);
    KCP_TRY(kcp_cells_mark(&state->cells, &held_now, KCP_TOUCH_BOX, state->bitmap, state->stream,
                           error));
    struct kcp_point_set streamed_now = streamed->kept;
    KCP_TRY(keep_marked(state, KCP_SIDE_STREAMED, &streamed_now, KCP_TOUCH_POINT, state->bitmap,
                        error));
    uint64_t after = (uint64_t)held_now.count + streamed->kept.count;
    if (after <= few_points || after > before / 2) return KCP_OK;
  }
}

static enum kcp_status reduce(engine_state *state, double rank, struct kcp_error *error) {
  struct side *streamed = &state->sides[KCP_SIDE_STREAMED];
  uint64_t count = 0;
  for (int b = 0; b < 2; ++b) {
    KCP_CUDA_TRY(cudaEventSynchronize(state->blocks[b].done));
    KCP_TRY(collect_block(state, &state->blocks[b], error));
  }
  KCP_TRY(begin_kernels(state, error));
  KCP_TRY(get_counter(state, COUNT_SURVIVORS, &count, error));
  streamed->current = 0; /* where filter appends */
  streamed->kept = buffer_of(streamed, 0);
  streamed->kept.count = (uint32_t)count;
  struct kcp_cells marked = state->cells;
  if (state->endless)
    KCP_TRY(keep_marked(state, KCP_SIDE_HELD, &state->held, KCP_TOUCH_BOX, NULL, error));
  else
    KCP_TRY(filter_mutually(state, rank, error));
  state->cells = marked;
  for (struct side &side : state->sides) side.is_sorted = false;
  return end_kernels(state, KCP_PHASE_KERNEL, error);
}

/* The bitmap was used for other cells: the next filter marks it again. */
static enum kcp_status clear_survivors(engine_state *state, struct kcp_error *error) {
  KCP_TRY(set_counter(state, COUNT_SURVIVORS, 0, error));
  for (struct side &side : state->sides) side.kept.count = side.sorted.count = 0;
  return KCP_OK;
}

/* ---- joining ---- */

__global__ static void gather(uint32_t count, uint32_t dimensions, const uint32_t *order,
                              const struct kcp_point_set from, const struct kcp_point_set to) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  uint32_t source = order[i];
  for (uint32_t j = 0; j < dimensions; ++j)
    to.columns[j * to.stride + i] = from.columns[j * from.stride + source];
  to.records[i] = from.records[source];
  if (to.ids != NULL) to.ids[i] = from.ids[source];
}

/* The first index whose key is at least `key`. */
__global__ static void find_key(const uint64_t *keys, uint32_t count, uint64_t key,
                                unsigned long long *found) {
  uint32_t low = 0, high = count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (keys[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  *found = low;
}

/* Orders what the side kept along the Morton curve, in its other buffer; points with ids beyond the
 * limit are left out. */
static enum kcp_status sort_side(engine_state *state, enum kcp_side number, uint64_t id_limit,
                                 struct kcp_error *error) {
  struct side *side = &state->sides[number];
  struct kcp_morton_frame frame = {state->cells.axes, state->knots};
  uint64_t count = side->kept.count;
  side->sorted = buffer_of(side, 1 - side->current);
  side->is_sorted = true;
  if (count == 0) return KCP_OK;
  if (side->kept.ids != NULL && side->sorted_ids == NULL)
    KCP_TRY(kcp_device_array(&state->memory, side->capacity, &side->sorted_ids, "ids", error));
  if (side->kept.ids != NULL) side->sorted.ids = side->sorted_ids;
  KCP_TRY(kcp_morton_sort(&side->sorter, &state->cells, &frame, &side->kept, 1, (uint32_t)count,
                          id_limit, state->stream, error));
  if (side->kept.ids != NULL && id_limit != UINT64_MAX) {
    find_key<<<1, 1, 0, state->stream>>>(side->sorter.sorted_keys, (uint32_t)count, UINT64_MAX,
                                         state->counters + COUNT_KEPT);
    KCP_CUDA_TRY(cudaGetLastError());
    KCP_TRY(get_counter(state, COUNT_KEPT, &count, error));
  }
  side->sorted.count = (uint32_t)count;
  if (count > 0)
    gather<<<(unsigned)((count + 255) / 256), 256, 0, state->stream>>>(
        (uint32_t)count, state->dimensions, side->sorter.order, side->kept, side->sorted);
  KCP_CUDA_TRY(cudaGetLastError());
  if (number == KCP_SIDE_HELD)
    KCP_TRY(kcp_box_tree_build(&state->tree, &state->cells, &side->sorted, state->stream, error));
  return KCP_OK;
}

static struct kcp_join_question question(const engine_state *state, double rank,
                                         enum kcp_join_kind kind) {
  struct kcp_join_question asked = {};
  asked.metric = state->plan.metric;
  asked.dimensions = state->dimensions;
  asked.self = state->plan.self;
  asked.rank = rank;
  asked.kind = kind;
  asked.pairs = state->pairs;
  return asked;
}

/* By cells, as the points lie; *joined false where too many held points share a cell. */
static enum kcp_status join_by_cells(engine_state *state, double rank, enum kcp_join_kind kind,
                                     bool *joined, struct kcp_error *error) {
  struct kcp_join_question asked = question(state, rank, kind);
  unsigned fullest = 0;
  asked.held = state->sides[KCP_SIDE_HELD].kept;
  asked.streamed = state->sides[KCP_SIDE_STREAMED].kept;
  struct kcp_cells cells = cells_for(state, rank, 1);
  cells.mask = kcp_cell_table_buckets(asked.held.count) - 1;
  KCP_TRY(kcp_cell_table_fill(&state->table, &cells, &asked.held, &fullest, state->stream, error));
  *joined = fullest <= fullest_cell;
  return *joined ? kcp_cell_join(&state->table, &cells, &asked, state->stream, error) : KCP_OK;
}

/* In Morton order, by the tree, or all pairs where they are few. */
static enum kcp_status join_sorted(engine_state *state, double rank, enum kcp_join_kind kind,
                                   struct kcp_error *error) {
  struct kcp_join_question asked = question(state, rank, kind);
  for (enum kcp_side side : {KCP_SIDE_HELD, KCP_SIDE_STREAMED})
    if (!state->sides[side].is_sorted) KCP_TRY(sort_side(state, side, UINT64_MAX, error));
  asked.held = state->sides[KCP_SIDE_HELD].sorted;
  asked.streamed = state->sides[KCP_SIDE_STREAMED].sorted;
  if ((uint64_t)asked.held.count * asked.streamed.count <= few_pairs)
    return kcp_all_pairs_join(&asked, state->stream, error);
  return kcp_box_tree_join(&state->tree, &state->cells, &asked, state->stream, error);
}

static enum kcp_status join(engine_state *state, double rank, enum kcp_join_kind kind,
                            uint64_t *found, struct kcp_error *error) {
  uint64_t total = 0;
  bool sorted = state->sides[KCP_SIDE_HELD].is_sorted || state->sides[KCP_SIDE_STREAMED].is_sorted;
  bool joined = false;
  KCP_TRY(begin_kernels(state, error));
  KCP_TRY(set_counter(state, COUNT_PAIRS, state->pair_count, error));
  if (!sorted && !state->endless) KCP_TRY(join_by_cells(state, rank, kind, &joined, error));
  if (!joined) KCP_TRY(join_sorted(state, rank, kind, error));
  KCP_TRY(get_counter(state, COUNT_PAIRS, &total, error));
  KCP_TRY(end_kernels(state, KCP_PHASE_KERNEL, error));
  *found = total - state->pair_count;
  state->pair_count = total < state->pairs.capacity ? total : state->pairs.capacity;
  return KCP_OK;
}

static uint64_t side_count(const engine_state *state, enum kcp_side side) {
  return state->sides[side].kept.count;
}

static enum kcp_status side_records(engine_state *state, enum kcp_side side, uint64_t *records,
                                    struct kcp_error *error) {
  const struct kcp_point_set *kept = &state->sides[side].kept;
  KCP_CUDA_TRY(cudaMemcpyAsync(records, kept->records, kept->count * sizeof *records,
                               cudaMemcpyDeviceToHost, state->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(state->stream));
  return KCP_OK;
}

static enum kcp_status set_ids(engine_state *state, enum kcp_side number, const uint64_t *ids,
                               struct kcp_error *error) {
  struct side *side = &state->sides[number];
  KCP_CUDA_TRY(cudaMemcpyAsync(side->ids, ids, side->kept.count * sizeof *ids,
                               cudaMemcpyHostToDevice, state->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(state->stream));
  side->kept.ids = side->ids;
  side->is_sorted = false;
  return KCP_OK;
}

static enum kcp_status restrict_ids(engine_state *state, enum kcp_side side, uint64_t id_limit,
                                    struct kcp_error *error) {
  return sort_side(state, side, id_limit, error);
}

/* ---- pairs ---- */

static uint64_t pair_count(const engine_state *state) {
  return state->pair_count;
}

static enum kcp_status truncate_pairs(engine_state *state, uint64_t count,
                                      struct kcp_error *error) {
  (void)error;
  if (count < state->pair_count) state->pair_count = count;
  return KCP_OK;
}

__global__ static void keep_within(const struct kcp_pair_planes from, uint64_t count, double rank,
                                   const struct kcp_pair_planes to, unsigned long long *counter) {
  uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count || from.ranks[i] > rank) return;
  uint64_t place = atomicAdd(counter, 1ull);
  to.ranks[place] = from.ranks[i];
  to.held[place] = from.held[i];
  to.streamed[place] = from.streamed[i];
}

static enum kcp_status drop_beyond(engine_state *state, double rank, struct kcp_error *error) {
  if (state->pair_count == 0) return KCP_OK;
  KCP_TRY(begin_kernels(state, error));
  KCP_TRY(set_counter(state, COUNT_KEPT, 0, error));
  keep_within<<<(unsigned)((state->pair_count + 255) / 256), 256, 0, state->stream>>>(
      state->pairs, state->pair_count, rank, state->spare_pairs, state->counters + COUNT_KEPT);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_TRY(get_counter(state, COUNT_KEPT, &state->pair_count, error));
  struct kcp_pair_planes kept = state->spare_pairs;
  state->spare_pairs = state->pairs;
  state->pairs = kept;
  return end_kernels(state, KCP_PHASE_MERGE, error);
}

static int compare_ranks(const void *a, const void *b) {
  double left = *(const double *)a, right = *(const double *)b;
  return left < right ? -1 : left > right;
}

static enum kcp_status rank_of(engine_state *state, uint64_t wanted, double *rank,
                               struct kcp_error *error) {
  KCP_TRY(begin_kernels(state, error));
  if (state->pair_count <= ranks_on_host) {
    KCP_CUDA_TRY(cudaMemcpyAsync(state->host_ranks, state->pairs.ranks,
                                 state->pair_count * sizeof(double), cudaMemcpyDeviceToHost,
                                 state->stream));
    KCP_CUDA_TRY(cudaStreamSynchronize(state->stream));
    qsort(state->host_ranks, state->pair_count, sizeof(double), compare_ranks);
    *rank = state->host_ranks[wanted - 1];
  } else {
    KCP_TRY(kcp_select_rank(&state->selector, state->pairs.ranks, state->pair_count, wanted, rank,
                            error));
  }
  return end_kernels(state, KCP_PHASE_MERGE, error);
}

static enum kcp_status download(engine_state *state, struct kcp_record_pair *pairs,
                                struct kcp_error *error) {
  uint64_t count = state->pair_count;
  uint64_t *words = (uint64_t *)malloc((count > 0 ? count : 1) * 3 * sizeof *words);
  if (words == NULL) return kcp_out_of_memory(error, "pairs", count * 3 * sizeof *words);
  const void *planes[3] = {state->pairs.ranks, state->pairs.held, state->pairs.streamed};
  cudaError_t code = cudaSuccess;
  for (int p = 0; p < 3 && code == cudaSuccess; ++p)
    code = cudaMemcpy(words + p * count, planes[p], count * sizeof *words, cudaMemcpyDeviceToHost);
  for (uint64_t i = 0; i < count && code == cudaSuccess; ++i) {
    memcpy(&pairs[i].rank, &words[i], sizeof pairs[i].rank);
    pairs[i].held = words[count + i];
    pairs[i].streamed = words[2 * count + i];
  }
  free(words);
  KCP_CUDA_TRY(code);
  state->measurement.bytes_downloaded += count * 3 * sizeof *words;
  return KCP_OK;
}

static void measure(const engine_state *state, struct kcp_measurement *measurement) {
  for (int phase = 0; phase < KCP_PHASE_COUNT; ++phase)
    measurement->phase_s[phase] += state->measurement.phase_s[phase];
  measurement->bytes_uploaded += state->measurement.bytes_uploaded;
  measurement->bytes_downloaded += state->measurement.bytes_downloaded;
  measurement->peak_device_bytes = state->memory.device_bytes;
}

extern "C" {
extern const struct kcp_threshold_engine kcp_cuda_threshold_engine;
const struct kcp_threshold_engine kcp_cuda_threshold_engine = {
    create,      destroy,        reset,       wait_for_block, clear_held,
    append_held, load_sample,    guess,       held_sampled,   mark,
    filter,      survivors,      reduce,      join,           clear_survivors,
    pair_count,  truncate_pairs, drop_beyond, rank_of,        download,
    side_count,  side_records,   set_ids,     restrict_ids,   measure};
}

/* Memory of the CUDA engine of the global-threshold search, its counters and timers. */
#include <cstdlib>
#include <cstring>

#include "threshold_state.cuh"

static const uint64_t bits_per_point = 11;
static const uint64_t fewest_bits = UINT64_C(1) << 16, most_bits = UINT64_C(1) << 31;

uint64_t kcp_threshold_bits(uint64_t points) {
  uint64_t bits = fewest_bits;
  while (bits < points * bits_per_point && bits < most_bits) bits *= 2;
  return bits;
}

static uint64_t even(uint64_t count) {
  return count + (count & 1);
}

static enum kcp_status make_side(engine_state *state, uint64_t capacity,
                                 struct kcp_threshold_side *side, struct kcp_error *error) {
  struct kcp_device_memory *memory = &state->memory;
  side->capacity = even(capacity);
  for (int b = 0; b < 2; ++b) {
    KCP_TRY(kcp_device_array(memory, side->capacity * state->plan.dimensions, &side->columns[b],
                             "survivors", error));
    KCP_TRY(kcp_device_array(memory, side->capacity, &side->records[b], "survivors", error));
  }
  return kcp_morton_sorter_create(memory, capacity, &side->sorter, error);
}

static enum kcp_status make_block(engine_state *state, struct kcp_threshold_block *block,
                                  struct kcp_error *error) {
  uint64_t capacity = state->plan.block_capacity;
  uint32_t dimensions = state->plan.dimensions;
  block->points.stride = capacity;
  block->points.dimensions = dimensions;
  block->stride = even(capacity);
  /* Ids stay on the host, where most files never read them into the block. */
  block->points.ids = (uint64_t *)malloc(capacity * sizeof *block->points.ids);
  if (block->points.ids == NULL)
    return kcp_out_of_memory(error, "a block", capacity * sizeof *block->points.ids);
  KCP_TRY(kcp_pinned_array(&state->memory, capacity * dimensions, &block->points.coordinates,
                           "a block", error));
  KCP_TRY(kcp_device_array(&state->memory, block->stride * dimensions, &block->columns, "a block",
                           error));
  KCP_CUDA_TRY(cudaEventCreateWithFlags(&block->done, cudaEventDisableTiming));
  KCP_TRY(kcp_device_timer_create(&block->upload, error));
  return kcp_device_timer_create(&block->filter, error);
}

static enum kcp_status make_pairs(engine_state *state, struct kcp_pair_planes *pairs,
                                  struct kcp_error *error) {
  pairs->capacity = state->plan.pair_capacity;
  pairs->counter = state->counters + KCP_COUNT_PAIRS;
  KCP_TRY(kcp_device_array(&state->memory, pairs->capacity, &pairs->ranks, "pairs", error));
  KCP_TRY(kcp_device_array(&state->memory, pairs->capacity, &pairs->held, "pairs", error));
  return kcp_device_array(&state->memory, pairs->capacity, &pairs->streamed, "pairs", error);
}

static enum kcp_status make_sets(engine_state *state, struct kcp_error *error) {
  const struct kcp_threshold_plan *plan = &state->plan;
  struct kcp_device_memory *memory = &state->memory;
  state->held.stride = even(plan->held_capacity);
  KCP_TRY(kcp_device_array(memory, state->held.stride * plan->dimensions, &state->held.columns,
                           "held points", error));
  state->sample.stride = plan->streamed_sample > 0 ? plan->streamed_sample : 1;
  KCP_TRY(kcp_device_array(memory, state->sample.stride * plan->dimensions, &state->sample.columns,
                           "the sample", error));
  KCP_TRY(
      kcp_device_array(memory, state->sample.stride, &state->sample.records, "the sample", error));
  KCP_TRY(make_side(state, plan->kept_capacity, &state->sides[KCP_SIDE_HELD], error));
  return make_side(state, plan->survivor_capacity, &state->sides[KCP_SIDE_STREAMED], error);
}

static enum kcp_status allocate(engine_state *state, struct kcp_error *error) {
  const struct kcp_threshold_plan *plan = &state->plan;
  struct kcp_device_memory *memory = &state->memory;
  uint64_t larger =
      plan->held_capacity > plan->survivor_capacity ? plan->held_capacity : plan->survivor_capacity;
  uint64_t words = kcp_threshold_bits(larger) / KCP_CELL_WORD;
  KCP_CUDA_TRY(cudaStreamCreateWithFlags(&state->stream, cudaStreamNonBlocking));
  KCP_TRY(kcp_device_array(memory, KCP_COUNTERS, &state->counters, "counters", error));
  KCP_TRY(kcp_device_array(memory, kcp_box_words, &state->box, "the box", error));
  KCP_TRY(kcp_device_array(memory, KCP_MAX_AXES * KCP_MORTON_KNOTS, &state->knots, "knots", error));
  KCP_TRY(kcp_pinned_array(memory, kcp_box_words + KCP_COUNTERS, &state->host_words, "counters",
                           error));
  KCP_TRY(kcp_pinned_array(memory, kcp_ranks_on_host, &state->host_ranks, "ranks", error));
  for (int b = 0; b < 2; ++b) KCP_TRY(make_block(state, &state->blocks[b], error));
  KCP_TRY(make_sets(state, error));
  KCP_TRY(
      kcp_device_array(memory, words * (plan->self ? 2 : 1), &state->bitmap, "the bitmap", error));
  KCP_TRY(kcp_cell_table_create(memory, plan->kept_capacity, &state->table, error));
  KCP_TRY(kcp_box_tree_create(memory, plan->kept_capacity, &state->tree, error));
  KCP_TRY(make_pairs(state, &state->pairs, error));
  KCP_TRY(make_pairs(state, &state->spare_pairs, error));
  KCP_TRY(kcp_guess_create(memory, plan->held_sample, &state->guess, error));
  KCP_TRY(kcp_selector_create(memory, 1, &state->selector, error));
  KCP_TRY(kcp_device_timer_create(&state->mark_timer, error));
  return kcp_device_timer_create(&state->timer, error);
}

void kcp_threshold_destroy(engine_state *state) {
  if (state == NULL) return;
  cudaDeviceSynchronize();
  for (int b = 0; b < 2; ++b) {
    free(state->blocks[b].points.ids);
    if (state->blocks[b].done != NULL) cudaEventDestroy(state->blocks[b].done);
    kcp_device_timer_destroy(&state->blocks[b].upload);
    kcp_device_timer_destroy(&state->blocks[b].filter);
  }
  kcp_device_timer_destroy(&state->mark_timer);
  kcp_device_timer_destroy(&state->timer);
  if (state->stream != NULL) cudaStreamDestroy(state->stream);
  kcp_device_memory_free(&state->memory);
  free(state);
}

enum kcp_status kcp_threshold_create(const struct kcp_threshold_plan *plan,
                                     const struct kcp_device_info *device, engine_state **out,
                                     struct kcp_error *error) {
  KCP_CUDA_TRY(cudaSetDevice(device->index));
  engine_state *state = (engine_state *)calloc(1, sizeof *state);
  if (state == NULL) return kcp_out_of_memory(error, "the search", sizeof *state);
  state->plan = *plan;
  enum kcp_status status = allocate(state, error);
  if (status != KCP_OK) {
    kcp_threshold_destroy(state);
    return status;
  }
  *out = state;
  return KCP_OK;
}

enum kcp_status kcp_threshold_reset(engine_state *state, uint32_t dimensions,
                                    struct kcp_error *error) {
  memset(&state->measurement, 0, sizeof state->measurement);
  state->held.count = 0;
  state->sample.count = 0;
  state->box_known = state->knots_known = false;
  state->bitmap_is_marked = false;
  state->filtered = 0;
  state->pair_count = 0;
  state->sides[KCP_SIDE_HELD].kept.count = state->sides[KCP_SIDE_STREAMED].kept.count = 0;
  state->dimensions = dimensions;
  for (int b = 0; b < 2; ++b) state->blocks[b].points.dimensions = dimensions;
  state->axes = kcp_axes_first(dimensions);
  return kcp_threshold_clear(state, KCP_COUNT_PAIRS, KCP_COUNTERS, error);
}

enum kcp_status kcp_threshold_begin(engine_state *state, struct kcp_error *error) {
  return kcp_device_timer_begin(&state->timer, state->stream, error);
}

enum kcp_status kcp_threshold_end(engine_state *state, enum kcp_phase phase,
                                  struct kcp_error *error) {
  struct kcp_device_timer *timer = &state->timer;
  KCP_TRY(kcp_device_timer_end(timer, state->stream, error));
  KCP_CUDA_TRY(cudaStreamSynchronize(state->stream));
  return kcp_device_timers_collect(&timer, 1, &state->measurement.phase_s[phase], error);
}

enum kcp_status kcp_threshold_clear(engine_state *state, enum kcp_threshold_counter first,
                                    int count, struct kcp_error *error) {
  KCP_CUDA_TRY(
      cudaMemsetAsync(state->counters + first, 0, count * sizeof *state->counters, state->stream));
  return KCP_OK;
}

enum kcp_status kcp_threshold_count(engine_state *state, enum kcp_threshold_counter which,
                                    uint64_t *value, struct kcp_error *error) {
  unsigned long long *word = state->host_words + kcp_box_words + which;
  KCP_CUDA_TRY(cudaMemcpyAsync(word, state->counters + which, sizeof *word, cudaMemcpyDeviceToHost,
                               state->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(state->stream));
  *value = *word;
  return KCP_OK;
}

/* The CUDA engine of the global-threshold search: joins of what reduce left, and restrictions by
 * id. Few pairs are ranked all; else held points go into a table of cells, as the points lie; where
 * too many share a cell, both sides are sorted for the tree of boxes. */
#include "all_pairs_join.cuh"
#include "threshold_state.cuh"

static const unsigned fullest_cell = 512; /* held points of a cell that a join by cells ranks */
static const uint64_t few_pairs = UINT64_C(1) << 24; /* ranked all at once */
static const uint64_t some_pairs = UINT64_C(1)
                                   << 26; /* and so many rather than sort for the tree */
static const int threads = 256;

static unsigned blocks_for(uint64_t count) {
  return (unsigned)((count + threads - 1) / threads);
}

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

/* Appends the points of ids from first_id to last_id to `to`. */
__global__ static void choose(uint32_t dimensions, const struct kcp_point_set from,
                              uint64_t first_id, uint64_t last_id, const struct kcp_point_set to,
                              unsigned long long *counter) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= from.count) return;
  uint64_t id = kcp_set_id(from, i);
  if (id < first_id || id > last_id) return;
  uint64_t place = atomicAdd(counter, 1ull);
  for (uint32_t j = 0; j < dimensions; ++j)
    to.columns[j * to.stride + place] = from.columns[j * from.stride + i];
  to.records[place] = from.records[i];
  if (to.ids != NULL) to.ids[place] = from.ids[i];
}

/* The side's other buffer, for a selection or another order of what it kept. */
static struct kcp_point_set other_buffer(const struct kcp_threshold_side *side) {
  struct kcp_point_set set = kcp_side_buffer(side, 1 - side->current);
  if (side->kept.ids != NULL) set.ids = side->sorted_ids;
  return set;
}

static enum kcp_status find_knots(engine_state *state, struct kcp_error *error) {
  if (state->knots_known) return KCP_OK;
  state->knots_known = true;
  return kcp_morton_find_knots(&state->cells, &state->held, state->low, state->high, state->knots,
                               state->stream, error);
}

/* Orders what the side is restricted to along the Morton curve, in its other buffer. */
static enum kcp_status sort_side(engine_state *state, enum kcp_side number,
                                 struct kcp_error *error) {
  struct kcp_threshold_side *side = &state->sides[number];
  struct kcp_morton_frame frame = {state->cells.axes, state->knots};
  uint32_t count = side->chosen.count; /* the left out have the last keys */
  KCP_TRY(find_knots(state, error));
  side->chosen = other_buffer(side);
  side->chosen.count = count;
  side->order = KCP_ORDER_MORTON;
  if (count == 0) return KCP_OK;
  KCP_TRY(kcp_morton_sort(&side->sorter, &state->cells, &frame, &side->kept, side->first_id,
                          side->last_id, state->stream, error));
  gather<<<blocks_for(count), threads, 0, state->stream>>>(
      count, state->dimensions, side->sorter.order, side->kept, side->chosen);
  KCP_CUDA_TRY(cudaGetLastError());
  if (number == KCP_SIDE_HELD)
    KCP_TRY(kcp_box_tree_build(&state->tree, &state->cells, &side->chosen, state->stream, error));
  return KCP_OK;
}

/* By cells; *joined false where too many held points share a cell. */
static enum kcp_status join_by_cells(engine_state *state, const struct kcp_join_question *asked,
                                     bool *joined, struct kcp_error *error) {
  unsigned fullest = 0;
  struct kcp_cells cells = kcp_threshold_cells(state, asked->rank, asked->held.count);
  KCP_TRY(kcp_cell_table_fill(&state->table, &cells, &asked->held, &fullest, state->stream, error));
  *joined = fullest <= fullest_cell;
  return *joined ? kcp_cell_join(&state->table, &cells, asked, state->stream, error) : KCP_OK;
}

static enum kcp_status join_by_tree(engine_state *state, struct kcp_join_question *asked,
                                    struct kcp_error *error) {
  for (enum kcp_side side : {KCP_SIDE_HELD, KCP_SIDE_STREAMED})
    if (state->sides[side].order != KCP_ORDER_MORTON) KCP_TRY(sort_side(state, side, error));
  asked->held = state->sides[KCP_SIDE_HELD].chosen;
  asked->streamed = state->sides[KCP_SIDE_STREAMED].chosen;
  return kcp_box_tree_join(&state->tree, &state->cells, asked, state->stream, error);
}

static enum kcp_status join_chosen(engine_state *state, struct kcp_join_question *asked,
                                   struct kcp_error *error) {
  uint64_t pairs = (uint64_t)asked->held.count * asked->streamed.count;
  bool joined = false;
  if (pairs <= few_pairs) return kcp_all_pairs_join(asked, state->stream, error);
  bool sorted = state->sides[KCP_SIDE_HELD].order == KCP_ORDER_MORTON &&
                state->sides[KCP_SIDE_STREAMED].order == KCP_ORDER_MORTON;
  if (!sorted && !state->endless) KCP_TRY(join_by_cells(state, asked, &joined, error));
  if (joined) return KCP_OK;
  if (pairs <= some_pairs) return kcp_all_pairs_join(asked, state->stream, error);
  return join_by_tree(state, asked, error);
}

enum kcp_status kcp_threshold_join(engine_state *state, double rank, enum kcp_join_kind kind,
                                   uint64_t *found, struct kcp_error *error) {
  struct kcp_join_question asked = {};
  uint64_t total = 0;
  asked.metric = state->plan.metric;
  asked.dimensions = state->dimensions;
  asked.self = state->plan.self;
  asked.held = state->sides[KCP_SIDE_HELD].chosen;
  asked.streamed = state->sides[KCP_SIDE_STREAMED].chosen;
  asked.rank = rank;
  asked.kind = kind;
  asked.pairs = state->pairs;
  KCP_TRY(kcp_threshold_begin(state, error));
  unsigned long long *word = state->host_words + kcp_box_words + KCP_COUNT_PAIRS;
  *word = state->pair_count;
  KCP_CUDA_TRY(cudaMemcpyAsync(state->counters + KCP_COUNT_PAIRS, word, sizeof *word,
                               cudaMemcpyHostToDevice, state->stream));
  KCP_TRY(join_chosen(state, &asked, error));
  KCP_CUDA_TRY(cudaMemcpyAsync(word, state->counters + KCP_COUNT_PAIRS, sizeof *word,
                               cudaMemcpyDeviceToHost, state->stream));
  KCP_TRY(kcp_threshold_end(state, KCP_PHASE_KERNEL, error));
  total = *word;
  *found = total - state->pair_count;
  state->pair_count = total < state->pairs.capacity ? total : state->pairs.capacity;
  return KCP_OK;
}

uint64_t kcp_threshold_side_count(const engine_state *state, enum kcp_side side) {
  return state->sides[side].kept.count;
}

enum kcp_status kcp_threshold_side_records(engine_state *state, enum kcp_side side,
                                           uint64_t *records, struct kcp_error *error) {
  const struct kcp_point_set *kept = &state->sides[side].kept;
  KCP_CUDA_TRY(cudaMemcpyAsync(records, kept->records, kept->count * sizeof *records,
                               cudaMemcpyDeviceToHost, state->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(state->stream));
  return KCP_OK;
}

enum kcp_status kcp_threshold_set_ids(engine_state *state, enum kcp_side number,
                                      const uint64_t *ids, struct kcp_error *error) {
  struct kcp_threshold_side *side = &state->sides[number];
  if (side->ids == NULL) {
    KCP_TRY(kcp_device_array(&state->memory, side->capacity, &side->ids, "ids", error));
    KCP_TRY(kcp_device_array(&state->memory, side->capacity, &side->sorted_ids, "ids", error));
  }
  KCP_CUDA_TRY(cudaMemcpyAsync(side->ids, ids, side->kept.count * sizeof *ids,
                               cudaMemcpyHostToDevice, state->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(state->stream));
  side->kept.ids = side->ids;
  side->chosen = side->kept;
  side->order = KCP_ORDER_NONE;
  side->first_id = 0;
  side->last_id = UINT64_MAX;
  return KCP_OK;
}

enum kcp_status kcp_threshold_restrict_ids(engine_state *state, enum kcp_side number,
                                           uint64_t first_id, uint64_t last_id,
                                           struct kcp_error *error) {
  struct kcp_threshold_side *side = &state->sides[number];
  uint64_t count = 0;
  KCP_TRY(kcp_threshold_begin(state, error));
  KCP_TRY(kcp_threshold_clear(state, KCP_COUNT_KEPT, 1, error));
  side->first_id = first_id;
  side->last_id = last_id;
  side->chosen = other_buffer(side);
  side->order = KCP_ORDER_NONE;
  if (side->kept.count > 0)
    choose<<<blocks_for(side->kept.count), threads, 0, state->stream>>>(
        state->dimensions, side->kept, first_id, last_id, side->chosen,
        state->counters + KCP_COUNT_KEPT);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_TRY(kcp_threshold_count(state, KCP_COUNT_KEPT, &count, error));
  side->chosen.count = (uint32_t)count;
  return kcp_threshold_end(state, KCP_PHASE_KERNEL, error);
}

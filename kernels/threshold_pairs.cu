/* The CUDA engine of the global-threshold search: the pairs kept so far. */
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "threshold_state.cuh"

static const int threads = 256;

static unsigned blocks_for(uint64_t count) {
  return (unsigned)((count + threads - 1) / threads);
}

uint64_t kcp_threshold_pair_count(const engine_state *state) {
  return state->pair_count;
}

enum kcp_status kcp_threshold_truncate_pairs(engine_state *state, uint64_t count,
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

enum kcp_status kcp_threshold_drop_beyond(engine_state *state, double rank,
                                          struct kcp_error *error) {
  if (state->pair_count == 0) return KCP_OK;
  KCP_TRY(kcp_threshold_begin(state, error));
  KCP_TRY(kcp_threshold_clear(state, KCP_COUNT_KEPT, 1, error));
  keep_within<<<blocks_for(state->pair_count), threads, 0, state->stream>>>(
      state->pairs, state->pair_count, rank, state->spare_pairs, state->counters + KCP_COUNT_KEPT);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_TRY(kcp_threshold_count(state, KCP_COUNT_KEPT, &state->pair_count, error));
  std::swap(state->pairs, state->spare_pairs);
  return kcp_threshold_end(state, KCP_PHASE_MERGE, error);
}

enum kcp_status kcp_threshold_rank_of(engine_state *state, uint64_t wanted, double *rank,
                                      struct kcp_error *error) {
  KCP_TRY(kcp_threshold_begin(state, error));
  if (state->pair_count <= kcp_ranks_on_host) {
    double *ranks = state->host_ranks;
    KCP_CUDA_TRY(cudaMemcpyAsync(ranks, state->pairs.ranks, state->pair_count * sizeof *ranks,
                                 cudaMemcpyDeviceToHost, state->stream));
    KCP_CUDA_TRY(cudaStreamSynchronize(state->stream));
    std::nth_element(ranks, ranks + (wanted - 1), ranks + state->pair_count);
    *rank = ranks[wanted - 1];
  } else {
    KCP_TRY(kcp_select_rank(&state->selector, state->pairs.ranks, state->pair_count, wanted, rank,
                            error));
  }
  return kcp_threshold_end(state, KCP_PHASE_MERGE, error);
}

/* Within one set: the smaller record becomes `held`. */
__global__ static void order_records(const struct kcp_pair_planes pairs, uint64_t count) {
  uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  uint64_t a = pairs.held[i], b = pairs.streamed[i];
  if (a < b) return;
  pairs.held[i] = b;
  pairs.streamed[i] = a;
}

enum kcp_status kcp_threshold_take_first(engine_state *state, enum kcp_side first,
                                         struct kcp_record_pair *pairs, uint64_t *count,
                                         struct kcp_error *error) {
  struct kcp_selector *selector = &state->first_selector;
  const uint64_t *held = state->pairs.held, *streamed = state->pairs.streamed;
  bool held_first = state->plan.self || first == KCP_SIDE_HELD;
  if (selector->selected == NULL)
    KCP_TRY(kcp_selector_create(&state->memory, state->plan.k, selector, error));
  if (state->plan.self && state->pair_count > 0) {
    order_records<<<blocks_for(state->pair_count), threads, 0, state->stream>>>(state->pairs,
                                                                                state->pair_count);
    KCP_CUDA_TRY(cudaGetLastError());
  }
  KCP_CUDA_TRY(cudaStreamSynchronize(state->stream));
  struct kcp_candidate *candidates =
      (struct kcp_candidate *)malloc(state->plan.k * sizeof *candidates);
  if (candidates == NULL)
    return kcp_out_of_memory(error, "pairs", state->plan.k * sizeof *candidates);
  const struct kcp_candidate_planes planes = {state->pairs.ranks, held_first ? held : streamed,
                                              held_first ? streamed : held, state->pair_count};
  enum kcp_status status = kcp_select_candidates(selector, &planes, candidates, count, error);
  for (uint64_t i = 0; status == KCP_OK && i < *count; ++i) {
    pairs[i].rank = candidates[i].rank;
    pairs[i].held = held_first ? candidates[i].id1 : candidates[i].id2;
    pairs[i].streamed = held_first ? candidates[i].id2 : candidates[i].id1;
  }
  free(candidates);
  if (status == KCP_OK) {
    state->pair_count = 0;
    state->measurement.bytes_downloaded += *count * sizeof *candidates;
  }
  return status;
}

enum kcp_status kcp_threshold_download(engine_state *state, struct kcp_record_pair *pairs,
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

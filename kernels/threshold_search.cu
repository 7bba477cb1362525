/* The CUDA engine of the global-threshold search: the list of its parts. Memory, counters and
 * timers are in threshold_memory.cu, blocks, the guess and filtering in threshold_filter.cu, joins
 * in threshold_join.cu, pairs in threshold_pairs.cu; what they share is in threshold_state.cuh. */
#include "threshold_state.cuh"

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
    kcp_threshold_create,          kcp_threshold_destroy,
    kcp_threshold_reset,           kcp_threshold_wait_for_block,
    kcp_threshold_clear_held,      kcp_threshold_append_held,
    kcp_threshold_load_sample,     kcp_threshold_guess,
    kcp_threshold_held_sampled,    kcp_threshold_mark,
    kcp_threshold_filter,          kcp_threshold_survivors,
    kcp_threshold_reduce,          kcp_threshold_join,
    kcp_threshold_clear_survivors, kcp_threshold_pair_count,
    kcp_threshold_truncate_pairs,  kcp_threshold_drop_beyond,
    kcp_threshold_rank_of,         kcp_threshold_download,
    kcp_threshold_take_first,      kcp_threshold_side_count,
    kcp_threshold_side_records,    kcp_threshold_set_ids,
    kcp_threshold_restrict_ids,    measure};
}

#include "kcp/range_join.h"

const char *kcp_range_phase_name(enum kcp_range_phase phase) {
  static const char *const names[KCP_RANGE_PHASE_COUNT] = {
      [KCP_RANGE_PHASE_REORDER] = "reorder",
      [KCP_RANGE_PHASE_KD_TREE] = "kd_tree",
      [KCP_RANGE_PHASE_PRIMITIVES] = "primitives",
      [KCP_RANGE_PHASE_REARRANGE] = "rearrange",
      [KCP_RANGE_PHASE_INDEX] = "index",
      [KCP_RANGE_PHASE_FIRST_TEST] = "first_test",
      [KCP_RANGE_PHASE_COUNT_PASS] = "count_pass",
      [KCP_RANGE_PHASE_FILL_PASS] = "fill_pass",
      [KCP_RANGE_PHASE_REFINE] = "refine",
      [KCP_RANGE_PHASE_COMPACT] = "compact",
      [KCP_RANGE_PHASE_COPY] = "copy"};
  return names[phase];
}

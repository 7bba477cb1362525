#include "kcp/range_join.h"

#include <inttypes.h>
#include <stdio.h>

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
      [KCP_RANGE_PHASE_COPY] = "copy",
      [KCP_RANGE_PHASE_COLLECT] = "collect"};
  return names[phase];
}

static void set_number(struct kcp_parameter *parameter, const char *name, uint64_t value) {
  *parameter = (struct kcp_parameter){.name = name, .is_number = true};
  snprintf(parameter->value, sizeof parameter->value, "%" PRIu64, value);
}

static void set_word(struct kcp_parameter *parameter, const char *name, const char *value) {
  *parameter = (struct kcp_parameter){.name = name};
  snprintf(parameter->value, sizeof parameter->value, "%s", value);
}

size_t kcp_range_list_parameters(const struct kcp_range_options *options, uint32_t kd_height,
                                 uint64_t largest_primitive, struct kcp_parameter *list) {
  static const char *const reorders[] = {"highest", "lowest", "random"};
  static const char *const indexes[] = {"bvh", "bvh", "grid"};
  static const char *const bounds[] = {"sphere", "box", "full"};
  static const char *const refines[] = {"shared-both", "shared-primitive", "shared-query",
                                        "shared-none", "tensor"};
  static const char *const results[] = {"count", "mask", "mask-raw", "pairs"};
  static const char *const switches[] = {"on", "off"};
  size_t count = 0;
  set_word(&list[count++], "reorder", reorders[options->reorder]);
  set_number(&list[count++], "kd-height", kd_height);
  set_number(&list[count++], "largest-primitive", largest_primitive);
  set_word(&list[count++], "index", indexes[options->index]);
  set_word(&list[count++], "bound", bounds[options->bound]);
  set_word(&list[count++], "refine", refines[options->refine]);
  set_word(&list[count++], "result", results[options->result]);
  set_word(&list[count++], "sort-work", switches[options->sort_work]);
  set_word(&list[count++], "fixed-work", switches[options->fixed_work]);
  set_number(&list[count++], "work-per-thread", options->work_per_thread);
  return count;
}

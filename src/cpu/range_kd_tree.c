#include "range_kd_tree.h"

#define NODE_WORTH_A_TASK 8192 /* points */

struct kd_tree {
  uint64_t n;
  uint32_t axis_count;
  const float *const *axes;
  uint32_t leaf_level;
  uint32_t *places;
};

static float middle_of_three(float a, float b, float c) {
  if (a > b) {
    const float kept = a;
    a = b;
    b = kept;
  }
  if (c <= a) return a;
  return c < b ? c : b;
}

/* Brings the `rank`-th smallest of places first .. last - 1 by `keys` to its place, smaller ones
 * before it and larger ones behind it (quickselect with Hoare's partition). */
static void select_place(const float *keys, uint32_t *places, uint64_t first, uint64_t last,
                         uint64_t rank) {
  while (last - first > 1) {
    const float pivot = middle_of_three(
        keys[places[first]], keys[places[first + (last - first) / 2]], keys[places[last - 1]]);
    uint64_t low = first, high = last - 1;
    while (low <= high) {
      while (keys[places[low]] < pivot) ++low;
      while (keys[places[high]] > pivot) --high;
      if (low > high) break;
      const uint32_t kept = places[low];
      places[low++] = places[high];
      places[high] = kept;
      if (high-- == 0) break;
    }
    /* Places first .. high are at most the pivot, low .. last - 1 at least; between them equal. */
    if (rank < low && rank > high) return;
    if (rank >= low)
      first = low;
    else
      last = high + 1;
  }
}

static uint32_t longest_axis(const struct kd_tree *tree, uint64_t first, uint64_t last) {
  uint32_t longest = 0;
  float longest_extent = -1;
  for (uint32_t j = 0; j < tree->axis_count; ++j) {
    const float *keys = tree->axes[j];
    float low = keys[tree->places[first]], high = low;
    for (uint64_t i = first + 1; i < last; ++i) {
      const float key = keys[tree->places[i]];
      low = key < low ? key : low;
      high = key > high ? key : high;
    }
    if (high - low <= longest_extent) continue;
    longest_extent = high - low;
    longest = j;
  }
  return longest;
}

static void split(const struct kd_tree *tree, uint32_t level, uint64_t node) {
  const uint64_t first = kcp_kd_first(tree->n, level, node);
  const uint64_t last = kcp_kd_first(tree->n, level, node + 1);
  if (level == tree->leaf_level || last - first < 2) return;
  const uint64_t middle = kcp_kd_first(tree->n, level + 1, 2 * node + 1);
  const uint32_t axis = longest_axis(tree, first, last);
  if (middle > first && middle < last)
    select_place(tree->axes[axis], tree->places, first, last, middle);
#pragma omp task if (last - first > NODE_WORTH_A_TASK)
  split(tree, level + 1, 2 * node);
  split(tree, level + 1, 2 * node + 1);
}

void kcp_kd_tree_order(uint64_t n, uint32_t axis_count, const float *const *axes, uint32_t height,
                       uint32_t *places) {
  const struct kd_tree tree = {n, axis_count, axes, height - 1, places};
#pragma omp parallel for schedule(static)
  for (uint64_t i = 0; i < n; ++i) places[i] = (uint32_t)i;
#pragma omp parallel
#pragma omp single
  split(&tree, 0, 0);
}

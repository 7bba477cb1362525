#include "morton_order.h"

#include <stdlib.h>

#define LEFT_OUT UINT64_MAX /* greater than any key: keys have 63 bits */

static int compare_doubles(const void *a, const void *b) {
  double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

void kcp_morton_find_knots(const struct kcp_cells *axes, const struct kcp_point_set *set,
                           const double *low, const double *high, double *knots) {
  if (set->count == 0) return;
#pragma omp parallel for
  for (uint32_t j = 0; j < axes->axes; ++j) {
    const double *column = set->columns + axes->axis[j] * set->stride;
    double *own = knots + j * KCP_MORTON_KNOTS;
    double sampled[KCP_MORTON_SAMPLE];
    for (uint64_t i = 0; i < KCP_MORTON_SAMPLE; ++i)
      sampled[i] = column[i * set->count / KCP_MORTON_SAMPLE];
    qsort(sampled, KCP_MORTON_SAMPLE, sizeof *sampled, compare_doubles);
    own[0] = low[j];
    for (uint32_t i = 1; i < KCP_MORTON_PIECES; ++i) own[i] = sampled[i * KCP_MORTON_SPACING];
    own[KCP_MORTON_PIECES] = high[j];
  }
}

/* The place in `from` of the i-th of `count` evenly spread points. */
static uint64_t place_of(const struct kcp_point_set *from, uint64_t count, uint64_t i) {
  if (count == from->count) return i;
  uint64_t place = (uint64_t)((double)i * ((double)from->count / (double)count));
  return place < from->count ? place : from->count - 1;
}

void kcp_morton_order(struct kcp_radix_sorter *sorter, const struct kcp_cells *axes,
                      const struct kcp_morton_frame *frame, uint32_t dimensions,
                      const struct kcp_point_set *from, uint64_t count, uint64_t first_id,
                      uint64_t last_id, struct kcp_point_set *to, const uint64_t **keys) {
  uint64_t *unsorted = sorter->keys[0];
  const uint64_t *sorted;
  if (count > from->count) count = from->count;
#pragma omp parallel for
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t place = place_of(from, count, i);
    double point[KCP_MAX_AXES];
    kcp_set_axes(from, axes, place, point);
    uint64_t id = kcp_set_id(from, place);
    bool left_out = id < first_id || id > last_id;
    unsorted[i] = left_out ? LEFT_OUT : kcp_morton_key(frame, point);
  }
  const uint32_t *order = kcp_radix_sort_keys(sorter, count, &sorted);
  to->count = count;
  while (to->count > 0 && sorted[to->count - 1] == LEFT_OUT) --to->count;
#pragma omp parallel for
  for (uint64_t i = 0; i < to->count; ++i) {
    uint64_t place = place_of(from, count, order[i]);
    for (uint32_t j = 0; j < dimensions; ++j)
      to->columns[j * to->stride + i] = from->columns[j * from->stride + place];
    to->records[i] = kcp_set_record(from, place);
    if (from->ids != NULL && to->ids != NULL) to->ids[i] = from->ids[place];
  }
  if (keys != NULL) *keys = sorted;
}

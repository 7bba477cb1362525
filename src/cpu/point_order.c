#include "point_order.h"

#include <stdlib.h>
#include <string.h>

#include "kcp/coordinate_hash.h"

enum kcp_status kcp_ordered_points_allocate(uint64_t capacity, uint32_t dimensions, bool sorted,
                                            struct kcp_ordered_points *points,
                                            struct kcp_error *error) {
  enum kcp_status status = kcp_points_allocate(capacity, dimensions, &points->block, error);
  if (status != KCP_OK || !sorted) return status;
  points->order = malloc((capacity > 0 ? capacity : 1) * sizeof *points->order);
  if (points->order == NULL)
    return kcp_out_of_memory(error, "an order", capacity * sizeof *points->order);
  return kcp_points_allocate(capacity, dimensions, &points->sorted, error);
}

void kcp_ordered_points_free(struct kcp_ordered_points *points) {
  kcp_points_free(&points->block);
  kcp_points_free(&points->sorted);
  free(points->order);
}

void kcp_keep_order(struct kcp_ordered_points *points) {
  points->is_sorted = false;
}

/* Fills `sorted` with the first `count` points of the order. */
static void gather(struct kcp_ordered_points *points, uint64_t count) {
  const struct kcp_points *block = &points->block;
  struct kcp_points *sorted = &points->sorted;
#pragma omp parallel for
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t from = points->order[i];
    sorted->ids[i] = block->ids[from];
    for (uint32_t j = 0; j < block->dimensions; ++j)
      kcp_points_column(sorted, j)[i] = kcp_points_column(block, j)[from];
  }
  sorted->count = count;
  points->is_sorted = true;
}

static void set_order(struct kcp_ordered_points *points, const uint32_t *order) {
  memcpy(points->order, order, points->block.count * sizeof *order);
}

void kcp_order_by_x(struct kcp_radix_sorter *sorter, struct kcp_ordered_points *points) {
  set_order(points, kcp_radix_sort(sorter, points->block.coordinates, points->block.count));
  gather(points, points->block.count);
}

static bool ids_ascend(const struct kcp_points *points) {
  for (uint64_t i = 1; i < points->count; ++i)
    if (points->ids[i - 1] > points->ids[i]) return false;
  return true;
}

static void sort_ids(struct kcp_radix_sorter *sorter, struct kcp_ordered_points *points) {
  memcpy(sorter->keys[0], points->block.ids, points->block.count * sizeof *points->block.ids);
  set_order(points, kcp_radix_sort_keys(sorter, points->block.count, NULL));
}

void kcp_order_by_id(struct kcp_radix_sorter *sorter, struct kcp_ordered_points *points) {
  kcp_keep_order(points);
  if (ids_ascend(&points->block)) return;
  sort_ids(sorter, points);
  gather(points, points->block.count);
}

static bool coincide(const struct kcp_points *points, uint32_t a, uint32_t b) {
  for (uint32_t j = 0; j < points->dimensions; ++j)
    if (kcp_points_column(points, j)[a] != kcp_points_column(points, j)[b]) return false;
  return true;
}

/* Only points of one x can coincide: whether more than k have one. */
static bool may_drop(const struct kcp_points *sorted, uint64_t k) {
  for (uint64_t i = k; i < sorted->count; ++i)
    if (sorted->coordinates[i] == sorted->coordinates[i - k]) return true;
  return false;
}

void kcp_drop_coincident(struct kcp_radix_sorter *sorter, uint64_t k,
                         struct kcp_ordered_points *points) {
  const struct kcp_points *block = &points->block;
  if (!may_drop(&points->sorted, k)) return;
  sort_ids(sorter, points);
  for (uint64_t i = 0; i < block->count; ++i)
    sorter->keys[0][i] =
        kcp_coordinate_hash(block->coordinates, block->stride, block->dimensions, points->order[i]);
  kcp_radix_sort_on(sorter, block->count, points->order);
  for (uint64_t i = 0; i < block->count; ++i)
    sorter->keys[0][i] = kcp_ordered_bits(block->coordinates[points->order[i]]);
  kcp_radix_sort_on(sorter, block->count, points->order);

  uint64_t kept = 0, run = 0; /* points at this place so far */
  uint32_t before = 0;
  for (uint64_t i = 0; i < block->count; ++i) {
    uint32_t here = points->order[i];
    run = i > 0 && coincide(block, before, here) ? run + 1 : 0;
    before = here;
    if (run < k) points->order[kept++] = here;
  }
  gather(points, kept);
}

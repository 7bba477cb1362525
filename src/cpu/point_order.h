/* The order in which the points of a partition are searched (CPU). */
#ifndef KCP_CPU_POINT_ORDER_H
#define KCP_CPU_POINT_ORDER_H

#include <stdbool.h>

#include "kcp/points.h"
#include "radix_sort.h"

/* Points of a partition: as read, and as searched. */
struct kcp_ordered_points {
  struct kcp_points block;  /* as read */
  struct kcp_points sorted; /* zeroed when the order of the file always serves */
  uint32_t *order;          /* sorted[i] is block[order[i]] */
  bool is_sorted;           /* `sorted` is what is searched; else `block` is */
  uint64_t first_record;    /* of the block, from 0 in the file */
};

/* Room for `capacity` points, twice when they may be sorted; owned by the caller, also on failure.
 */
enum kcp_status kcp_ordered_points_allocate(uint64_t capacity, uint32_t dimensions, bool sorted,
                                            struct kcp_ordered_points *points,
                                            struct kcp_error *error);
void kcp_ordered_points_free(struct kcp_ordered_points *points);

static inline const struct kcp_points *kcp_searched_points(
    const struct kcp_ordered_points *points) {
  return points->is_sorted ? &points->sorted : &points->block;
}

/* The number of the record of a searched point. */
static inline uint64_t kcp_searched_record(const struct kcp_ordered_points *points, uint64_t i) {
  return points->first_record + (points->is_sorted ? points->order[i] : i);
}

/* The block is searched as it was read. */
void kcp_keep_order(struct kcp_ordered_points *points);

/* By x; equal x as read. */
void kcp_order_by_x(struct kcp_radix_sorter *sorter, struct kcp_ordered_points *points);

/* By id, where they do not ascend already. */
void kcp_order_by_id(struct kcp_radix_sorter *sorter, struct kcp_ordered_points *points);

/* Of the points at one place keeps the k first by id (of equal ids by record) and leaves out the
 * rest. For points that were ordered by x, and stay so. */
void kcp_drop_coincident(struct kcp_radix_sorter *sorter, uint64_t k,
                         struct kcp_ordered_points *points);

#endif

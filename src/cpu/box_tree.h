/* A tree of bounding boxes over points in Morton order, and the join that descends it (CPU). */
#ifndef KCP_CPU_BOX_TREE_H
#define KCP_CPU_BOX_TREE_H

#include <stdbool.h>

#include "kcp/metric.h"
#include "kcp/threshold_search.h"
#include "point_set.h"

#define KCP_TREE_FANOUT 16 /* points of a leaf, children of a node */
#define KCP_TREE_LEVELS 8  /* 16^8 = 2^32 */

/* Boxes of all levels, leaves first; corner planes of `capacity` nodes: low of each axis, then
 * high. */
struct kcp_box_tree {
  double *corners;
  uint64_t capacity;
  uint32_t level_count;
  uint64_t first[KCP_TREE_LEVELS]; /* node where a level begins */
  uint64_t count[KCP_TREE_LEVELS];
};

/* Room for trees over up to `points` points, at most 2^32; the caller owns it. */
enum kcp_status kcp_box_tree_create(uint64_t points, struct kcp_box_tree *tree,
                                    struct kcp_error *error);
void kcp_box_tree_free(struct kcp_box_tree *tree);

/* Builds the tree over `set`, whose points are in Morton order. */
void kcp_box_tree_build(struct kcp_box_tree *tree, const struct kcp_cells *axes,
                        const struct kcp_point_set *set);

/* What is joined: `held` is in the tree, `streamed` in Morton order too. */
struct kcp_join {
  const struct kcp_box_tree *tree;
  const struct kcp_cells *axes; /* which columns the boxes bound */
  struct kcp_metric metric;
  uint32_t dimensions;
  bool self;
  const struct kcp_point_set *held, *streamed;
  double rank;
  enum kcp_join_kind kind;
};

/* Where pairs go: behind the `count` there are. What is found beyond the capacity is counted only.
 */
struct kcp_pair_room {
  struct kcp_record_pair *pairs;
  uint64_t capacity;
  uint64_t count;
};

/* Emits the pairs of the kind; stops early once room->count is past the capacity. *evaluated grows
 * by the distances evaluated. */
enum kcp_status kcp_box_tree_join(const struct kcp_join *join, struct kcp_pair_room *room,
                                  uint64_t *evaluated, struct kcp_error *error);

#endif

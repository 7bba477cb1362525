/* Points of a balanced kd-tree in leaves of up to 64, with boxes in all dimensions, and the test of
 * a leaf against a query (CPU).
 *
 * Coordinates are kept in binary32, less the points' centre and times a power of two that brings
 * eps to 1 .. 2, where their rounding is little against eps; else as they are, in binary64. */
#ifndef KCP_CPU_RANGE_LEAVES_H
#define KCP_CPU_RANGE_LEAVES_H

#include <stdbool.h>
#include <stdint.h>

#include "kcp/points.h"
#include "kcp/range_limit.h"

#define KCP_LEAF_POINTS 64

/* Node i of level l (the root's is 0) has points kcp_kd_first(count, l, i) on, and is number
 * (1 << l) - 1 + i; the nodes of the last level are the leaves. */
struct kcp_range_leaves {
  const struct kcp_points *given;
  uint64_t count;
  uint32_t dimensions, leaf_level;
  uint32_t *places; /* of point i among the given; owned */
  double *bounds;   /* of each node: low, high of one dimension after the other, in the order of
                       kcp_range_leaves_build; owned */
  bool is_narrow;   /* values are binary32 */
  void *values;     /* coordinate j of point i of leaf l at (l * dimensions + j) * 64 + i; owned */
  float *norms;     /* largest of each leaf, when narrow; owned */
};

/* How coordinates become binary32, the same for both sets of a join. */
struct kcp_narrow_frame {
  double scale;
  const double *centre; /* by place in the order */
};

/* A bit for each point of a leaf. */
struct kcp_leaf_mask {
  uint64_t within; /* surely */
  uint64_t open;   /* left open by the filter */
};

static inline uint64_t kcp_leaf_count(const struct kcp_range_leaves *leaves) {
  return UINT64_C(1) << leaves->leaf_level;
}

static inline const double *kcp_node_bounds(const struct kcp_range_leaves *leaves, uint64_t node) {
  return leaves->bounds + 2 * node * leaves->dimensions;
}

/* Groups the points, of which there is at least one; `order` lists the dimensions, those that
 * spread most first. Values are not there yet. */
enum kcp_status kcp_range_leaves_build(const struct kcp_points *points, const uint32_t *order,
                                       struct kcp_range_leaves *leaves, struct kcp_error *error);
/* Fills the values: narrow with a frame, else in binary64. */
enum kcp_status kcp_range_leaves_fill(struct kcp_range_leaves *leaves, const uint32_t *order,
                                      const struct kcp_narrow_frame *frame,
                                      struct kcp_error *error);
void kcp_range_leaves_free(struct kcp_range_leaves *leaves); /* zeroed is allowed */

/* Point i of a leaf as a query: `dimensions` values of the leaves' precision. */
void kcp_range_leaf_query(const struct kcp_range_leaves *leaves, uint64_t leaf, uint32_t i,
                          void *query);
/* Tests all points of a leaf, against limits that kcp_range_leaf_limit made. Bits of points that
 * the leaf does not have may be set as open. */
struct kcp_leaf_mask kcp_range_leaf_test(const struct kcp_range_leaves *leaves, uint64_t leaf,
                                         const void *query, const struct kcp_range_limit *limit);
/* For queries of one leaf and points of another; `scale` is the frame's. */
struct kcp_range_limit kcp_range_leaf_limit(const struct kcp_range_leaves *queries,
                                            uint64_t query_leaf,
                                            const struct kcp_range_leaves *points, uint64_t leaf,
                                            double eps, double scale);

#endif

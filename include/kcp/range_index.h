/* What finds the primitives whose box holds a query: a hierarchy of boxes over primitives in Morton
 * order, or a uniform grid. One body for host and device; a walk gives the primitives in ascending
 * order and the same ones however often it is taken, so that a counting and a writing pass agree.
 *
 * Source: RT-HiSS, section IV-D, without ray-tracing cores. */
#ifndef KCP_RANGE_INDEX_H
#define KCP_RANGE_INDEX_H

#include "kcp/range_primitives.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KCP_BVH_SHIFT 3 /* a node has 8 children */
#define KCP_BVH_FANOUT (1u << KCP_BVH_SHIFT)
#define KCP_BVH_LEVELS 12 /* 8^11 > 2^32 */

/* A hierarchy without pointers: node i of a level bounds nodes 8 i .. 8 i + 7 of the level below;
 * level 0 are the primitives, the top level is one node. */
struct kcp_primitive_bvh {
  const struct kcp_primitive_box *boxes; /* level after level */
  uint32_t levels;
  uint32_t first[KCP_BVH_LEVELS]; /* box where a level begins */
  uint32_t count[KCP_BVH_LEVELS];
};

/* Cells of the frame's unit cube, each with the primitives whose box touches it. */
struct kcp_primitive_grid {
  const struct kcp_primitive_box *boxes; /* of the primitives */
  uint32_t side;                         /* cells along an axis */
  const uint32_t *firsts;                /* side^3 + 1 */
  const uint32_t *primitives;            /* of cell c: firsts[c] .. firsts[c + 1] - 1 */
};

struct kcp_primitive_index {
  enum kcp_range_index kind; /* BVH or GRID; OPTIX has the boxes of the primitives in `bvh`, and
                                rays walk it */
  struct kcp_primitive_bvh bvh;
  struct kcp_primitive_grid grid;
};

/* The levels of a hierarchy over `primitives` >= 1 boxes; returns how many boxes it has. */
static inline uint64_t kcp_bvh_shape(uint64_t primitives, struct kcp_primitive_bvh *bvh) {
  uint64_t boxes = 0, count = primitives;
  bvh->levels = 0;
  for (;;) {
    bvh->first[bvh->levels] = (uint32_t)boxes;
    bvh->count[bvh->levels++] = (uint32_t)count;
    boxes += count;
    if (count == 1) return boxes;
    count = (count + KCP_BVH_FANOUT - 1) >> KCP_BVH_SHIFT;
  }
}

/* The cell number of a coordinate in the frame; the border takes what lies outside. */
KCP_HD static inline uint32_t kcp_primitive_cell(uint32_t side, float coordinate) {
  float cell = coordinate * (float)side;
  cell = cell > 0 ? cell : 0;
  cell = cell < (float)(side - 1) ? cell : (float)(side - 1);
  return (uint32_t)cell;
}

/* The state of a walk: of the hierarchy the node to look at next, of the grid a place in a list. */
struct kcp_primitive_walk {
  struct kcp_frame_point point;
  uint32_t level, node;
  uint32_t end;
};

KCP_HD static inline struct kcp_primitive_walk kcp_primitive_walk_begin(
    const struct kcp_primitive_index *index, struct kcp_frame_point point) {
  struct kcp_primitive_walk walk;
  walk.point = point;
  if (index->kind == KCP_RANGE_INDEX_GRID) {
    const struct kcp_primitive_grid *grid = &index->grid;
    const uint32_t x = kcp_primitive_cell(grid->side, point.axis[0]);
    const uint32_t y = kcp_primitive_cell(grid->side, point.axis[1]);
    const uint32_t z = kcp_primitive_cell(grid->side, point.axis[2]);
    const uint32_t cell = (z * grid->side + y) * grid->side + x;
    walk.level = 0;
    walk.node = grid->firsts[cell];
    walk.end = grid->firsts[cell + 1];
  } else {
    walk.level = index->bvh.levels - 1;
    walk.node = walk.end = 0;
  }
  return walk;
}

/* The node behind the subtree of the walk's; false when there is none. */
KCP_HD static inline bool kcp_bvh_leave(const struct kcp_primitive_bvh *bvh,
                                        struct kcp_primitive_walk *walk) {
  ++walk->node;
  if (walk->node == bvh->count[walk->level]) {
    walk->end = 1;
    return false;
  }
  while ((walk->node & (KCP_BVH_FANOUT - 1)) == 0) {
    walk->node >>= KCP_BVH_SHIFT;
    ++walk->level;
  }
  return true;
}

KCP_HD static inline bool kcp_bvh_next(const struct kcp_primitive_bvh *bvh,
                                       struct kcp_primitive_walk *walk, uint32_t *primitive) {
  if (walk->end != 0) return false;
  for (;;) {
    const bool holds =
        kcp_box_holds(&bvh->boxes[bvh->first[walk->level] + walk->node], walk->point);
    if (holds && walk->level > 0) {
      --walk->level;
      walk->node <<= KCP_BVH_SHIFT;
      continue;
    }
    *primitive = walk->node;
    if (!kcp_bvh_leave(bvh, walk) && !holds) return false;
    if (holds) return true;
  }
}

KCP_HD static inline bool kcp_grid_next(const struct kcp_primitive_grid *grid,
                                        struct kcp_primitive_walk *walk, uint32_t *primitive) {
  while (walk->node < walk->end) {
    *primitive = grid->primitives[walk->node++];
    if (kcp_box_holds(&grid->boxes[*primitive], walk->point)) return true;
  }
  return false;
}

/* The next primitive whose box holds the point; false when there is none. */
KCP_HD static inline bool kcp_primitive_walk_next(const struct kcp_primitive_index *index,
                                                  struct kcp_primitive_walk *walk,
                                                  uint32_t *primitive) {
  return index->kind == KCP_RANGE_INDEX_GRID ? kcp_grid_next(&index->grid, walk, primitive)
                                             : kcp_bvh_next(&index->bvh, walk, primitive);
}

#ifdef __cplusplus
}
#endif
#endif

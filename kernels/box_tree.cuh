/* A tree of bounding boxes over points in Morton order, and the join that descends it. */
#ifndef KCP_KERNELS_BOX_TREE_CUH
#define KCP_KERNELS_BOX_TREE_CUH

#include "device.cuh"
#include "join_pairs.cuh"

static const uint32_t kcp_tree_fanout = 32; /* points of a leaf, children of a node: a warp */
static const int kcp_tree_levels = 7;       /* 32^7 > 2^32 */

/* Boxes of all levels, leaves first; corner planes of `capacity` nodes: low of each axis, then
 * high. */
struct kcp_box_tree {
  double *corners;
  uint64_t capacity;
  uint32_t level_count;
  uint32_t first[kcp_tree_levels]; /* node where a level begins */
  uint32_t count[kcp_tree_levels];
};

/* Room for trees over up to `points` points. */
enum kcp_status kcp_box_tree_create(struct kcp_device_memory *memory, uint64_t points,
                                    struct kcp_box_tree *tree, struct kcp_error *error);

/* Builds the tree over `set`, whose points are in Morton order. */
enum kcp_status kcp_box_tree_build(struct kcp_box_tree *tree, const struct kcp_cells *axes,
                                   const struct kcp_point_set *set, cudaStream_t stream,
                                   struct kcp_error *error);

/* Emits the pairs asked for, of held points (those of the tree) and streamed ones (in Morton
 * order). Stops early once the counter is past the capacity. One warp takes 32 streamed points and
 * descends by the box around them. */
enum kcp_status kcp_box_tree_join(const struct kcp_box_tree *tree, const struct kcp_cells *axes,
                                  const struct kcp_join_question *asked, cudaStream_t stream,
                                  struct kcp_error *error);

#endif

/* Options of a range join on the command line (RT-HiSS, sections IV and VIII-A). A word's place in
 * its flag is its value here; 0 is the default of each. */
#ifndef KCP_RANGE_OPTIONS_H
#define KCP_RANGE_OPTIONS_H

#include <stdint.h>

/* Which dimensions come first, by variance. */
enum kcp_range_reorder { KCP_REORDER_HIGHEST, KCP_REORDER_LOWEST, KCP_REORDER_RANDOM };
/* What finds the primitives that hold a query. */
enum kcp_range_index { KCP_RANGE_INDEX_AUTO, KCP_RANGE_INDEX_BVH, KCP_RANGE_INDEX_GRID };
/* What bounds a primitive's neighbourhood. */
enum kcp_range_bound {
  KCP_BOUND_SPHERE, /* a sphere in the three indexing dimensions, as in the paper */
  KCP_BOUND_BOX,    /* a box in these */
  KCP_BOUND_FULL /* that box, and a sphere in all dimensions, by more of which points are grouped */
};
/* Which points of the refinement are staged in shared memory (a thread's own buffer on a CPU). */
enum kcp_range_refine {
  KCP_REFINE_SHARED_BOTH,
  KCP_REFINE_SHARED_PRIMITIVE,
  KCP_REFINE_SHARED_QUERY,
  KCP_REFINE_SHARED_NONE,
  KCP_REFINE_TENSOR /* a filter on tensor cores (this project; CUDA) */
};
/* How results leave the refinement, and with them whether they do. */
enum kcp_range_result_form {
  KCP_RESULT_COUNT,    /* counts alone; where neighbours are wanted all the same, as a mask */
  KCP_RESULT_MASK,     /* a bit a comparison, compacted to the places of the ones */
  KCP_RESULT_MASK_RAW, /* the bits as they are */
  KCP_RESULT_PAIRS     /* key-value pairs */
};
enum kcp_range_switch { KCP_SWITCH_ON, KCP_SWITCH_OFF };
enum kcp_host_memory { KCP_HOST_PINNED, KCP_HOST_PAGEABLE };

#define KCP_KD_HEIGHT_MAX UINT64_MAX /* --kd-height max: one point a primitive */

struct kcp_range_options {
  double eps;         /* NaN when not given */
  double selectivity; /* NaN when not given */
  uint64_t grid_dimensions;
  enum kcp_range_reorder reorder;
  uint64_t kd_height; /* levels of the kd-tree; 0 = floor(ln |D|) */
  enum kcp_range_index index;
  enum kcp_range_bound bound;
  enum kcp_range_refine refine;
  enum kcp_range_result_form result;
  enum kcp_range_switch sort_work;
  enum kcp_range_switch fixed_work;
  uint64_t work_per_thread;     /* comparisons */
  uint64_t shared_memory_bytes; /* of a block; 0 = what the device has */
  uint64_t copy_threads;
  uint64_t pinned_bytes;
  enum kcp_host_memory host_memory;
};

#endif

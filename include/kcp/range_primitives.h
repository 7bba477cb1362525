/* The geometry of RT-HiSS (sections IV-A to IV-C), one body for host and device: the frame of the
 * indexing dimensions, the shape of the balanced kd-tree, and the boxes of primitives.
 *
 * Boxes and queries are compared in binary32, in a frame of the data's own size. The way into the
 * frame is a monotone function, taken the same on both sides: a query within a primitive's bounds
 * is within its box, whatever is rounded. */
#ifndef KCP_RANGE_PRIMITIVES_H
#define KCP_RANGE_PRIMITIVES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "kcp/host_device.h"
#include "kcp/morton.h"
#include "kcp/range_options.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KCP_RANGE_AXES 3  /* what ray tracing indexes */
#define KCP_GROUP_AXES 16 /* along which points are grouped with KCP_BOUND_FULL */

struct kcp_range_frame {
  uint32_t axes;                      /* 1 to 3 */
  uint32_t dimension[KCP_RANGE_AXES]; /* of the points; the first of the order by variance */
  double origin[KCP_RANGE_AXES];      /* lower corner of D */
  double scale;                       /* 1 / its longest side */
};

struct kcp_frame_point {
  float axis[KCP_RANGE_AXES]; /* 0 beyond the frame's axes */
};

struct kcp_primitive_box {
  struct kcp_frame_point low, high;
};

/* The frame of points between `low` and `high` (by dimension). */
static inline struct kcp_range_frame kcp_range_frame_make(uint32_t dimensions,
                                                          const uint32_t *order, const double *low,
                                                          const double *high) {
  struct kcp_range_frame frame;
  double longest = 0;
  frame.axes = dimensions < KCP_RANGE_AXES ? dimensions : KCP_RANGE_AXES;
  for (uint32_t j = 0; j < KCP_RANGE_AXES; ++j) {
    frame.dimension[j] = j < frame.axes ? order[j] : 0;
    frame.origin[j] = j < frame.axes ? low[order[j]] : 0;
    if (j < frame.axes) longest = fmax(longest, high[order[j]] - low[order[j]]);
  }
  frame.scale = longest > 0 ? fmin(1 / longest, 1e300) : 1;
  if (isinf(longest)) { /* the span overflows */
    frame.scale = 0x1p-1000;
    for (uint32_t j = 0; j < KCP_RANGE_AXES; ++j) frame.origin[j] = 0;
  }
  return frame;
}

/* A coordinate along axis j in the frame; monotone. */
KCP_HD static inline float kcp_into_frame(const struct kcp_range_frame *frame, uint32_t j,
                                          double coordinate) {
  return (float)((coordinate - frame->origin[j]) * frame->scale);
}

/* Point i of columns, `stride` apart. */
KCP_HD static inline struct kcp_frame_point kcp_frame_point_of(const struct kcp_range_frame *frame,
                                                               const double *columns,
                                                               uint64_t stride, uint64_t i) {
  struct kcp_frame_point point;
  for (uint32_t j = 0; j < KCP_RANGE_AXES; ++j)
    point.axis[j] =
        j < frame->axes ? kcp_into_frame(frame, j, columns[frame->dimension[j] * stride + i]) : 0;
  return point;
}

KCP_HD static inline bool kcp_box_holds(const struct kcp_primitive_box *box,
                                        struct kcp_frame_point point) {
  return box->low.axis[0] <= point.axis[0] && point.axis[0] <= box->high.axis[0] &&
         box->low.axis[1] <= point.axis[1] && point.axis[1] <= box->high.axis[1] &&
         box->low.axis[2] <= point.axis[2] && point.axis[2] <= box->high.axis[2];
}

KCP_HD static inline struct kcp_primitive_box kcp_box_around(const struct kcp_primitive_box *a,
                                                             const struct kcp_primitive_box *b) {
  struct kcp_primitive_box box;
  for (uint32_t j = 0; j < KCP_RANGE_AXES; ++j) {
    box.low.axis[j] = a->low.axis[j] < b->low.axis[j] ? a->low.axis[j] : b->low.axis[j];
    box.high.axis[j] = a->high.axis[j] > b->high.axis[j] ? a->high.axis[j] : b->high.axis[j];
  }
  return box;
}

/* The place on the Morton curve of a box's centre: 63 bits. */
KCP_HD static inline uint64_t kcp_box_morton_key(const struct kcp_primitive_box *box) {
  const double corner[KCP_RANGE_AXES] = {0, 0, 0};
  double centre[KCP_RANGE_AXES];
  for (uint32_t j = 0; j < KCP_RANGE_AXES; ++j)
    centre[j] = 0.5 * ((double)box->low.axis[j] + (double)box->high.axis[j]);
  return kcp_morton_key_in_box(KCP_RANGE_AXES, corner, 0x1p21, centre);
}

/* The same for a point. */
KCP_HD static inline uint64_t kcp_frame_morton_key(struct kcp_frame_point point) {
  struct kcp_primitive_box box;
  box.low = box.high = point;
  return kcp_box_morton_key(&box);
}

/* ---- the balanced kd-tree ---- */

/* How many of the dimensions with the highest variance the tree may split along. */
static inline uint32_t kcp_group_axes(uint32_t dimensions, enum kcp_range_bound bound) {
  const uint32_t most = bound == KCP_BOUND_FULL ? KCP_GROUP_AXES : KCP_RANGE_AXES;
  return dimensions < most ? dimensions : most;
}

/* Levels of the tree over n >= 1 points for --kd-height: floor(ln n) when it is 0, and not more
 * than it takes for one point a leaf. */
static inline uint32_t kcp_kd_height(uint64_t n, uint64_t wanted) {
  uint32_t most = 1;
  while (most < 33 && (UINT64_C(1) << (most - 1)) < n) ++most;
  if (wanted == 0) wanted = n > 2 ? (uint64_t)log((double)n) : 1;
  return wanted < most ? (uint32_t)wanted : most;
}

/* Where node i of level `level` (the root's is 0) begins among n < 2^32 points; node i + 1 begins
 * where it ends. Nodes of a level differ by at most one point. */
KCP_HD static inline uint64_t kcp_kd_first(uint64_t n, uint32_t level, uint64_t i) {
  return (n * i) >> level;
}

/* ---- bounds of a primitive's neighbourhood ---- */

/* What must be added to a bound so that no query within eps is beyond it: the rank's rounding, and
 * that of the sum itself with coordinates up to `magnitude`. */
KCP_HD static inline double kcp_range_reach(double eps, double magnitude) {
  return eps * (1 + 0x1p-40) + magnitude * 0x1p-50;
}

/* The box of the neighbourhood of points in the box low .. high; `radius` is the largest distance
 * of a point from that box's centre along the axes. With KCP_BOUND_SPHERE it is the box around
 * their bounding sphere grown by eps, as in the paper; else theirs grown by eps. */
KCP_HD static inline struct kcp_primitive_box kcp_primitive_box_of(
    const struct kcp_range_frame *frame, const double *low, const double *high, double radius,
    double eps, enum kcp_range_bound bound) {
  struct kcp_primitive_box box;
  for (uint32_t j = 0; j < KCP_RANGE_AXES; ++j) {
    box.low.axis[j] = box.high.axis[j] = 0;
    if (j >= frame->axes) continue;
    const double centre = low[j] + (high[j] - low[j]) / 2;
    const double magnitude = fmax(fabs(low[j]), fabs(high[j]));
    const double reach = kcp_range_reach(eps, magnitude);
    double least = low[j] - reach, greatest = high[j] + reach;
    if (bound == KCP_BOUND_SPHERE) {
      least = fmin(least, centre - (radius * (1 + 0x1p-40) + reach));
      greatest = fmax(greatest, centre + (radius * (1 + 0x1p-40) + reach));
    }
    box.low.axis[j] = kcp_into_frame(frame, j, least);
    box.high.axis[j] = kcp_into_frame(frame, j, greatest);
  }
  return box;
}

#ifdef __cplusplus
}
#endif
#endif

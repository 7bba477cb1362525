/* Morton keys: of an evenly cut box, and keys that adapt to skew, where an axis is cut at quantiles
 * of the points, so that neither outliers nor clusters within clusters leave many points with one
 * key. One body for host and device.
 *
 * Keys only order points: any value is right, near points with near keys are faster. */
#ifndef KCP_MORTON_H
#define KCP_MORTON_H

#include <stdint.h>

#include "kcp/cells.h"
#include "kcp/host_device.h"

#define KCP_MORTON_PIECES 1024 /* an axis is cut into; about as many points lie in each */
#define KCP_MORTON_KNOTS (KCP_MORTON_PIECES + 1)
/* Points whose coordinates give the quantiles: in ascending order, every KCP_MORTON_SPACING-th. */
#define KCP_MORTON_SPACING 4
#define KCP_MORTON_SAMPLE (KCP_MORTON_SPACING * KCP_MORTON_PIECES)

struct kcp_morton_frame {
  uint32_t axes;
  /* The ends of the pieces, KCP_MORTON_KNOTS ascending values an axis, one axis after the other:
   * the extremes, and quantiles between them. Owned by whoever made the frame. */
  const double *knots;
};

/* Spreads the low 21 bits of a number three apart. */
KCP_HD static inline uint64_t kcp_spread_bits(uint64_t value) {
  value &= 0x1fffff;
  value = (value | value << 32) & UINT64_C(0x1f00000000ffff);
  value = (value | value << 16) & UINT64_C(0x1f0000ff0000ff);
  value = (value | value << 8) & UINT64_C(0x100f00f00f00f00f);
  value = (value | value << 4) & UINT64_C(0x10c30c30c30c30c3);
  return (value | value << 2) & UINT64_C(0x1249249249249249);
}

/* The key of a point in a box with the lower corner `low`, an axis cut evenly: `scale` is 2^21 over
 * the longest side. Points outside go to its border. */
KCP_HD static inline uint64_t kcp_morton_key_in_box(uint32_t axes, const double *low, double scale,
                                                    const double *point) {
  uint64_t key = 0;
  for (uint32_t j = 0; j < axes; ++j) {
    double cell = (point[j] - low[j]) * scale;
    cell = cell > 0 ? cell : 0;
    cell = cell < 2097151 ? cell : 2097151;
    key |= kcp_spread_bits((uint64_t)cell) << j;
  }
  return key;
}

/* The place of a coordinate on its axis, 0 to 2^21 - 1: its piece, and where it lies within. */
KCP_HD static inline uint32_t kcp_morton_place(const double *knots, double coordinate) {
  const uint32_t steps = (1u << 21) / KCP_MORTON_PIECES; /* in a piece */
  uint32_t piece = 0;
  for (uint32_t half = KCP_MORTON_PIECES / 2; half > 0; half /= 2)
    piece += knots[piece + half] <= coordinate ? half : 0;
  double width = knots[piece + 1] - knots[piece];
  double within = width > 0 ? (coordinate - knots[piece]) / width * steps : 0;
  within = within > 0 ? within : 0;
  return piece * steps + (within < steps - 1 ? (uint32_t)within : steps - 1);
}

/* The key of a point given by its coordinates along the axes; it has 63 bits. */
KCP_HD static inline uint64_t kcp_morton_key(const struct kcp_morton_frame *frame,
                                             const double *point) {
  uint64_t key = 0;
  for (uint32_t j = 0; j < frame->axes; ++j)
    key |= kcp_spread_bits(kcp_morton_place(frame->knots + j * KCP_MORTON_KNOTS, point[j])) << j;
  return key;
}

#endif

/* A box around each primitive's points in all dimensions (--bound full; this project): a query that
 * is farther than eps from the box has no neighbour there. It prunes what three dimensions cannot
 * tell apart.
 *
 * Rounding is monotone: every square that leads to the box is at most the one that leads to a point
 * in it, and so is every sum of them in the same order. What a filter's sum may not be beyond for a
 * pair (range_limit.h) is therefore the limit here, for rows of the same values. One body for host
 * and device, and for rows of either precision. */
#ifndef KCP_RANGE_BOXES_H
#define KCP_RANGE_BOXES_H

#include <stdbool.h>
#include <stdint.h>

#include "kcp/host_device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Defines NAME(dimensions, row, bounds, beyond): whether the square of the distance from a row to a
 * box, whose bounds are low, high of one dimension after the other, may be at most `beyond`. */
#define KCP_DEFINE_BOX_REACHES(NAME, TYPE)                                                 \
  KCP_HD static inline bool NAME(uint32_t dimensions, const TYPE *row, const TYPE *bounds, \
                                 TYPE beyond) {                                            \
    TYPE sum = 0;                                                                          \
    for (uint32_t j = 0; j < dimensions; ++j) {                                            \
      TYPE below = bounds[2 * j] - row[j], above = row[j] - bounds[2 * j + 1];             \
      TYPE outside = below > above ? below : above;                                        \
      outside = outside > 0 ? outside : 0;                                                 \
      sum = sum + outside * outside;                                                       \
      if (sum > beyond) return false;                                                      \
    }                                                                                      \
    return true;                                                                           \
  }

KCP_DEFINE_BOX_REACHES(kcp_box_reaches, double)
KCP_DEFINE_BOX_REACHES(kcp_narrow_box_reaches, float)

#ifdef __cplusplus
}
#endif
#endif

/* Which coordinates index: at most three, those that spread most and differ at all.
 *
 * Any choice gives valid bounds, since a rank is never less than its part along some coordinates.
 * That holds with rounding too: axes are in ascending order, so that both sums take their terms in
 * the same order, and rounding is monotone. */
#ifndef KCP_AXES_H
#define KCP_AXES_H

#include "kcp/cells.h"
#include "kcp/points.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kcp_axes {
  uint32_t count;                /* 1 to KCP_MAX_AXES */
  uint32_t axis[KCP_MAX_AXES];   /* ascending */
  double constant[KCP_MAX_AXES]; /* what all of the sample have along it; NaN when they differ */
};

/* The first coordinates, before a sample was seen. */
struct kcp_axes kcp_axes_first(uint32_t dimensions);

/* Of more than KCP_MAX_AXES coordinates, those of the largest variance in the sample. */
struct kcp_axes kcp_axes_of_sample(const struct kcp_points *sample);

/* Drops axes along which the sample and the other set's points, between low and high (one value an
 * axis), have one and the same coordinate, with their low and high; one axis always stays. */
void kcp_axes_drop_constant(struct kcp_axes *axes, double *low, double *high);

#ifdef __cplusplus
}
#endif
#endif

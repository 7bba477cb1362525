/* The order of dimensions by variance (RT-HiSS, section IV-A): those in which points are spread
 * most come first, since they prune best and let a sum of squares pass eps * eps soonest. */
#ifndef KCP_RANGE_ORDER_H
#define KCP_RANGE_ORDER_H

#include "kcp/points.h"
#include "kcp/range_options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* variances[j] = the variance of dimension j over the points; +inf when it overflows. */
void kcp_range_variances(const struct kcp_points *points, double *variances);

/* order[i] = the dimension that comes i-th; equal variances keep the order of the file, and random
 * is the same on every run. */
void kcp_range_order(const double *variances, uint32_t dimensions, enum kcp_range_reorder reorder,
                     uint32_t *order);

#ifdef __cplusplus
}
#endif
#endif

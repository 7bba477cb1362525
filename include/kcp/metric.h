/* Minkowski metrics and the rank that orders pairs (DESIGN.md, Exactness 1; k-CP paper,
 * section 2.1).
 *
 * The rank of a pair is computed in binary64 without contraction, coordinate by coordinate in file
 * order: L1 sum of |dx|, L2 sum of dx*dx, Linf maximum of |dx|, Lt sum of |dx|^t by repeated
 * multiplication. The distance is a monotone function of the rank and computed for output only.
 *
 * Rounding is monotone, and every term is >= 0, so the rank is never less than the term of any one
 * coordinate, computed the same way: kcp_metric_term of a smaller difference is a lower bound that
 * needs no padding. */
#ifndef KCP_METRIC_H
#define KCP_METRIC_H

#include <math.h>
#include <stdint.h>

#include "kcp/host_device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum kcp_metric_kind { KCP_L1, KCP_L2, KCP_LINF, KCP_LP };

struct kcp_metric {
  enum kcp_metric_kind kind;
  uint32_t power; /* t of KCP_LP, 3 to 16; else unused */
};

/* What one coordinate difference adds to the rank. Pass constants for `kind` where speed counts. */
KCP_HD static inline double kcp_metric_term(enum kcp_metric_kind kind, uint32_t power,
                                            double difference) {
  double magnitude = fabs(difference);
  if (kind == KCP_L2) return difference * difference;
  if (kind != KCP_LP) return magnitude;
  double product = magnitude;
  for (uint32_t i = 1; i < power; ++i) product = product * magnitude;
  return product;
}

/* The rank after one more term. */
KCP_HD static inline double kcp_metric_combine(enum kcp_metric_kind kind, double rank,
                                               double term) {
  if (kind == KCP_LINF) return rank > term ? rank : term;
  return rank + term;
}

/* The rank of point i, whose coordinate j is columns[j * stride + i], to `query` (one value a
 * dimension). */
KCP_HD static inline double kcp_metric_rank_of(enum kcp_metric_kind kind, uint32_t power,
                                               uint32_t dimensions, const double *columns,
                                               uint64_t stride, uint64_t i, const double *query) {
  double rank = 0;
  for (uint32_t j = 0; j < dimensions; ++j)
    rank = kcp_metric_combine(kind, rank,
                              kcp_metric_term(kind, power, columns[j * stride + i] - query[j]));
  return rank;
}

/* The rank of a distance, rounded as a pair's would be: eps*eps for L2. distance >= 0. */
double kcp_metric_rank(struct kcp_metric metric, double distance);

/* The distance of a rank: its square root for L2, its t-th root for Lt. */
double kcp_metric_distance(struct kcp_metric metric, double rank);

/* The power of the difference in the rank: 1, 2 or t; bounds overflow and underflow. */
uint32_t kcp_metric_degree(struct kcp_metric metric);

/* "l2", "lp:3", ... into `name`, at least 16 bytes. */
void kcp_metric_name(struct kcp_metric metric, char *name);

#ifdef __cplusplus
}
#endif
#endif

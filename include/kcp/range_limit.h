/* When a pair is within eps (DESIGN.md, Exactness 3): its rank, the sum of squared differences in
 * the order of the file, is at most eps * eps, all in binary64. A filter may sum the same squares
 * in another order; what its sum leaves open is ranked again in the order of the file. */
#ifndef KCP_RANGE_LIMIT_H
#define KCP_RANGE_LIMIT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "kcp/host_device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kcp_range_limit {
  double rank;   /* eps * eps */
  double within; /* a filter's sum at or below it: the rank is at most eps * eps */
  double beyond; /* a filter's sum above it: the rank is not */
};

/* Sums in the order of the file: nothing is left open. */
KCP_HD static inline struct kcp_range_limit kcp_range_limit_exact(double eps) {
  struct kcp_range_limit limit = {eps * eps, eps * eps, eps * eps};
  return limit;
}

/* The same squares summed in another order, binary64. Each sum of d terms >= 0 is off by a factor
 * of at most 1 + (d - 1) 2^-53 (1 + 2^-30); the margin is twice what two of them can differ by. */
KCP_HD static inline struct kcp_range_limit kcp_range_limit_reordered(double eps,
                                                                      uint32_t dimensions) {
  double rank = eps * eps, margin = (4.0 * dimensions + 16) * 0x1p-53;
  struct kcp_range_limit limit = {rank, rank * (1 - margin), rank * (1 + margin)};
  return limit;
}

/* Sums in binary32 of coordinates that were moved and rounded to it. `displacement` bounds how far
 * the difference vector of two points is from the true one, at the scale of eps. The sum is off by
 * a factor of at most 1 + (d + 3) 2^-24 (1 + 2^-10); the margin is more than twice that. A pair
 * whose sum is no number is left open. */
KCP_HD static inline struct kcp_range_limit kcp_range_limit_narrow(double eps, uint32_t dimensions,
                                                                   double displacement) {
  double margin = (dimensions + 8.0) * 0x1p-22;
  double inner = eps - displacement, outer = eps + displacement;
  struct kcp_range_limit limit;
  limit.rank = eps * eps;
  limit.within = inner > 0 && margin < 1 ? inner * inner * (1 - margin) : -1;
  limit.beyond = outer * outer * (1 + margin);
  return limit;
}

/* ---- rows in binary32: coordinates less a centre, times a power of two ---- */

/* The power of two that brings eps to 1 .. 2. */
static inline double kcp_range_narrow_scale(double eps) {
  int exponent = 0;
  if (eps > 0) frexp(eps, &exponent);
  return ldexp(1.0, 1 - exponent);
}

/* Whether rounding rows of norms up to `norm`, at that scale, is little against eps. */
static inline bool kcp_range_narrow_serves(double eps, double scale, double norm) {
  return 2 * norm * 0x1p-24 <= eps * scale / 8;
}

/* The limits of a sum over such rows, of norms that add up to at most `norms`, rounded to binary32
 * on their safe sides. Each rounding to binary32 moves a row by at most its norm times 2^-24. */
static inline struct kcp_range_limit kcp_range_limit_rows(double eps, double scale,
                                                          uint32_t dimensions, double norms) {
  struct kcp_range_limit limit =
      kcp_range_limit_narrow(eps * scale, dimensions, norms * 0x1p-24 * (1 + 0x1p-10) + 1e-30);
  float within = (float)limit.within, beyond = (float)limit.beyond;
  if ((double)within > limit.within) within = nextafterf(within, -INFINITY);
  if ((double)beyond < limit.beyond) beyond = nextafterf(beyond, INFINITY);
  limit.within = within;
  limit.beyond = beyond;
  return limit;
}

/* The sum of squares of two points held as rows, in the order of the rows; stops once it is beyond
 * (section IV-E). */
KCP_HD static inline double kcp_range_row_sum(uint32_t dimensions, const double *a, const double *b,
                                              double beyond) {
  double sum = 0;
  for (uint32_t j = 0; j < dimensions && sum <= beyond; ++j) {
    double difference = a[j] - b[j];
    sum = sum + difference * difference;
  }
  return sum;
}

/* The rank of two points of columns: coordinate j of point i is columns[j * stride + i]. */
KCP_HD static inline double kcp_range_rank(uint32_t dimensions, const double *columns_a,
                                           uint64_t stride_a, uint64_t a, const double *columns_b,
                                           uint64_t stride_b, uint64_t b) {
  double rank = 0;
  for (uint32_t j = 0; j < dimensions; ++j) {
    double difference = columns_a[j * stride_a + a] - columns_b[j * stride_b + b];
    rank = rank + difference * difference;
  }
  return rank;
}

#ifdef __cplusplus
}
#endif
#endif

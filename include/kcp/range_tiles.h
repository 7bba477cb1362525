/* The exact filter of range joins on matrix units (this project; `--refine tensor`): points as
 * integers, tiles of 128 of them against each other. One body for host and device.
 *
 * A point x becomes the integers q nearest to (x - c) / step, such that |q| <= KCP_TILE_NORM. Half
 * of a squared distance is then, but for one unit, the integer
 *
 *   y = floor(|a|^2 / 2) + floor(|b|^2 / 2) - a b,   2 y <= |a - b|^2 <= 2 y + 2,
 *
 * and the units compute x = limit - y: limit is what they start from, the halves are two columns
 * more a side, each times 4096 or 1. The ONLY property of the units that is used: products of
 * integers of binary16 are exact, and so are sums of integers as long as every one of their partial
 * sums is below 2^24 in magnitude, in whatever order. Partial sums are: the terms of a b over any
 * set of dimensions are at most N^2 = KCP_TILE_NORM^2 together (Cauchy-Schwarz), a column of halves
 * at most N^2 / 2 + 4096, and limit at most N^2, so that a sum lies between -(2 N^2 + 8192) and
 * 2 N^2 + 8192 < 2^24. Of rows that are no points, q is 0 and the half is KCP_TILE_NO_POINT, above
 * the limit: -2 * KCP_TILE_NO_POINT > -2^24.
 *
 * The distance of two points differs from step |a - b| by at most the sum of their residuals
 * |x - c - step q|. Hence x <= 0 is surely no pair, x >= within surely one (struct
 * kcp_tile_limits), and what lies between is decided otherwise. */
#ifndef KCP_RANGE_TILES_H
#define KCP_RANGE_TILES_H

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kcp/host_device.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KCP_TILE_POINTS 128
#define KCP_TILE_NORM 2895          /* of an integer row */
#define KCP_TILE_REACH 4000         /* of eps and two residuals in steps; 4000^2 / 2 < N^2 */
#define KCP_TILE_HALF_UNIT 4096     /* of the upper column of a half */
#define KCP_TILE_NO_POINT 8384512   /* 2047 * 4096 */
#define KCP_TILE_EXTRA_DIMENSIONS 4 /* two columns a side */
#define KCP_TILE_BOX_UNITS 16       /* bounds are multiples of 1/16 step */

/* ---- the step ---- */

/* Bounds of a row's rounding: 1/2 a coordinate, and 1 in the one that may be beyond 2048, where
 * binary16 holds even integers. */
KCP_HD static inline double kcp_tile_most_residual(uint32_t dimensions) {
  return sqrt((double)dimensions) / 2 + 1;
}

/* Whether integers of that norm are left when rounding took its share. */
static inline bool kcp_tile_can_hold(uint32_t dimensions) {
  return 4 * kcp_tile_most_residual(dimensions) < KCP_TILE_NORM;
}

struct kcp_tile_scale {
  double step;   /* > 0 */
  bool is_exact; /* coordinates are multiples of the step: the centre is to be one, too */
};

/* The step for points of at most `norm` from the centre. All coordinates are multiples of
 * 2^lowest_exponent; INT_MAX when all are 0. */
static inline struct kcp_tile_scale kcp_tile_choose_scale(double norm, double eps,
                                                          uint32_t dimensions,
                                                          int lowest_exponent) {
  const double rounding = kcp_tile_most_residual(dimensions) + 1;
  double needed = norm / (KCP_TILE_NORM - rounding);
  const double for_eps = eps / (KCP_TILE_REACH - 2 * rounding - 2);
  struct kcp_tile_scale scale;
  if (for_eps > needed) needed = for_eps;
  scale.is_exact = lowest_exponent < 1000 && ldexp(1.0, lowest_exponent) >= needed;
  scale.step = needed > 0 ? needed : 1;
  if (scale.is_exact) scale.step = ldexp(1.0, lowest_exponent);
  return scale;
}

/* The exponent of the lowest bit that is set; INT_MAX of 0. */
KCP_HD static inline int kcp_lowest_exponent(double value) {
  uint64_t bits, power_bits;
  memcpy(&bits, &value, sizeof bits);
  const int field = (int)(bits >> 52 & 0x7ff);
  uint64_t digits = bits & ((UINT64_C(1) << 52) - 1);
  if (field != 0) digits |= UINT64_C(1) << 52;
  if (digits == 0) return INT_MAX;
  const double power = (double)(digits & (~digits + 1));
  memcpy(&power_bits, &power, sizeof power_bits);
  return (field != 0 ? field : 1) - 1075 + (int)(power_bits >> 52) - 1023;
}

/* A coordinate of the centre. */
KCP_HD static inline double kcp_tile_centre(struct kcp_tile_scale scale, double mean) {
  return scale.is_exact ? rint(mean / scale.step) * scale.step : mean;
}

/* ---- a point ---- */

/* A coordinate in steps. The two roundings are 2^-52 of it or less; with an exact step there are
 * none. */
KCP_HD static inline double kcp_tile_in_steps(struct kcp_tile_scale scale, double coordinate,
                                              double centre) {
  return (coordinate - centre) / scale.step;
}

/* The nearest integer that binary16 holds. */
KCP_HD static inline double kcp_tile_round(double steps) {
  return fabs(steps) <= 2048 ? rint(steps) : 2 * rint(steps / 2);
}

/* Sums over a row's coordinates, from zeros. */
struct kcp_tile_row {
  uint32_t square;        /* of the integers */
  double residual_square; /* of what rounding took */
};

KCP_HD static inline void kcp_tile_add(struct kcp_tile_row *row, double steps, double integer) {
  const double residual = steps - integer;
  row->square += (uint32_t)(integer * integer);
  row->residual_square += residual * residual;
}

/* An upper bound of a row's residual, in steps; without roundings of the steps themselves when the
 * row's coordinates are known to be multiples of the step. */
KCP_HD static inline double kcp_tile_residual(bool is_exact, double residual_square) {
  if (is_exact && residual_square == 0) return 0;
  return sqrt(residual_square) * (1 + 0x1p-30) + 0x1p-39;
}

/* The half of a square as its two columns: low from -2048 to 2047. */
KCP_HD static inline int kcp_tile_half_high(uint32_t half) {
  return (int)((half + KCP_TILE_HALF_UNIT / 2) / KCP_TILE_HALF_UNIT);
}

KCP_HD static inline int kcp_tile_half_low(uint32_t half) {
  return (int)half - kcp_tile_half_high(half) * KCP_TILE_HALF_UNIT;
}

/* ---- limits ---- */

struct kcp_tile_limits {
  int32_t limit;  /* x = limit - y; x <= 0: farther apart than eps */
  int32_t within; /* x >= within: not farther; >= 2 */
  float reach;    /* eps in steps, rounded up: no pair is of boxes farther apart */
};

/* `residual` bounds the sum of two points' residuals. A rank is off by a factor of at most
 * 1 + (d + 3) 2^-53, eps * eps by 1 + 2^-53: with d + 16 there is room for the roundings here. */
static inline struct kcp_tile_limits kcp_tile_make_limits(struct kcp_tile_scale scale, double eps,
                                                          uint32_t dimensions, double residual) {
  const double steps = eps / scale.step, margin = (dimensions + 16.0) * 0x1p-51;
  const double outer = (steps * (1 + margin) + residual) * (1 + 0x1p-45);
  const double inner = (steps * (1 - margin) - residual) * (1 - 0x1p-45);
  struct kcp_tile_limits limits;
  int32_t surely = -2; /* y is -1 or more */
  if (inner >= 0) surely = (int32_t)(inner * inner * (1 - 0x1p-45) / 2) - 1;
  limits.limit = (int32_t)(outer * outer * (1 + 0x1p-45) / 2) + 1;
  limits.within = limits.limit - surely;
  limits.reach = (float)(steps * (1 + margin) * (1 + 0x1p-20));
  return limits;
}

/* Whether the filter leaves so much open that it is not worth its while: what it decides is less
 * than half of the square of eps. */
static inline bool kcp_tile_is_too_coarse(struct kcp_tile_limits limits) {
  return limits.within > limits.limit / 2;
}

/* ---- where points are in a tile ---- */

/* Rows of the first factor, and columns of the second, are permuted so that what a lane of a warp
 * finds are consecutive bits: range_tiles_multiply.cu. */
KCP_HD static inline uint32_t kcp_tile_row_place(uint32_t point) {
  return (point & 96) + (point & 2) * 8 + (point & 1) * 8 + (point >> 2 & 7);
}

KCP_HD static inline uint32_t kcp_tile_column_place(uint32_t point) {
  return (point & 64) + (point >> 1 & 7) * 8 + (point >> 4 & 3) * 2 + (point & 1);
}

/* Where 8 halves of dimensions 8 * chunk .. + 7 of the point at `place` begin, in halves: blocks of
 * 16 dimensions, of 128 rows of 32 bytes, whose halves change places every 4 rows so that 8 rows
 * are in different banks. */
KCP_HD static inline uint32_t kcp_tile_chunk_place(uint32_t place, uint32_t chunk) {
  return (chunk / 2) * (KCP_TILE_POINTS * 16) + place * 16 + (((chunk & 1) ^ (place >> 2 & 1)) * 8);
}

/* Dimensions with the extra ones, a multiple of 16. */
KCP_HD static inline uint32_t kcp_tile_width(uint32_t dimensions) {
  return (dimensions + KCP_TILE_EXTRA_DIMENSIONS + 15) / 16 * 16;
}

#ifdef __cplusplus
}
#endif
#endif

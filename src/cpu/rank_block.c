#include "rank_block.h"

#include "vectors.h"

KCP_WIDEST_VECTORS static uint32_t squares_2d(const double *x, const double *y, uint32_t count,
                                              double qx, double qy, double limit, double *ranks) {
  uint64_t within = 0;
  for (uint32_t i = 0; i < count; ++i) {
    double dx = x[i] - qx, dy = y[i] - qy;
    double rank = dx * dx + dy * dy;
    ranks[i] = rank;
    within += rank <= limit;
  }
  return (uint32_t)within;
}

KCP_WIDEST_VECTORS static uint32_t squares_3d(const double *x, const double *y, const double *z,
                                              uint32_t count, double qx, double qy, double qz,
                                              double limit, double *ranks) {
  uint64_t within = 0;
  for (uint32_t i = 0; i < count; ++i) {
    double dx = x[i] - qx, dy = y[i] - qy, dz = z[i] - qz;
    double rank = (dx * dx + dy * dy) + dz * dz;
    ranks[i] = rank;
    within += rank <= limit;
  }
  return (uint32_t)within;
}

#define DEFINE_ACCUMULATE(NAME, KIND)                                                             \
  KCP_WIDEST_VECTORS static void NAME(const double *column, uint32_t count, double q,             \
                                      uint32_t power, double *ranks) {                            \
    for (uint32_t i = 0; i < count; ++i)                                                          \
      ranks[i] = kcp_metric_combine(KIND, ranks[i], kcp_metric_term(KIND, power, column[i] - q)); \
  }
DEFINE_ACCUMULATE(accumulate_l1, KCP_L1)
DEFINE_ACCUMULATE(accumulate_l2, KCP_L2)
DEFINE_ACCUMULATE(accumulate_linf, KCP_LINF)
DEFINE_ACCUMULATE(accumulate_lp, KCP_LP)

KCP_WIDEST_VECTORS static uint32_t count_within(const double *ranks, uint32_t count, double limit) {
  uint64_t within = 0;
  for (uint32_t i = 0; i < count; ++i) within += ranks[i] <= limit;
  return (uint32_t)within;
}

uint32_t kcp_rank_block(struct kcp_metric metric, uint32_t dimensions, const double *columns,
                        uint64_t stride, uint32_t count, const double *query, double limit,
                        double *ranks) {
  static void (*const accumulate[])(const double *, uint32_t, double, uint32_t, double *) = {
      [KCP_L1] = accumulate_l1,
      [KCP_L2] = accumulate_l2,
      [KCP_LINF] = accumulate_linf,
      [KCP_LP] = accumulate_lp};
  if (metric.kind == KCP_L2 && dimensions == 2)
    return squares_2d(columns, columns + stride, count, query[0], query[1], limit, ranks);
  if (metric.kind == KCP_L2 && dimensions == 3)
    return squares_3d(columns, columns + stride, columns + 2 * stride, count, query[0], query[1],
                      query[2], limit, ranks);
  for (uint32_t i = 0; i < count; ++i) ranks[i] = 0;
  for (uint32_t j = 0; j < dimensions; ++j)
    accumulate[metric.kind](columns + j * stride, count, query[j], metric.power, ranks);
  return count_within(ranks, count, limit);
}

/* What regions have of a cell: bounds of ranks over it, and the shares that follow (CPU).
 *
 * Sites that can matter for a site under question are its competitors, itself included. */
#ifndef KCP_CPU_CELL_SHARES_H
#define KCP_CPU_CELL_SHARES_H

#include "kcp/influence_geometry.h"

/* Columns of `count` elements. */
struct kcp_competitors {
  uint32_t count;
  double *x, *y, *squared_weight, *inverse_square;
  uint64_t *multiplicity;
  uint32_t *group;
};

/* Bounds of all competitors over a cell. */
void kcp_competitor_bounds(const struct kcp_competitors *sites, struct kcp_cell place, double *low,
                           double *high);
/* Their ranks at a point. */
void kcp_competitor_ranks(const struct kcp_competitors *sites, double x, double y, double *ranks);

/* The n-th smallest of `count` values >= 0, of which value i is there multiplicity[i] times; n
 * >= 1. +inf when there are fewer. */
double kcp_nth_value(const double *values, const uint64_t *multiplicity, uint32_t count,
                     uint64_t n);

/* A rank that k sites surely do not exceed, those of the `closer` sites included that are not
 * listed and are closer at every point than any site under question. A site whose lowest rank is
 * above it lies outside, and matters to no other: where it might, k sites are closer already. */
double kcp_outside_limit(const struct kcp_competitors *sites, const double *high, uint64_t closer,
                         uint64_t k);

/* shares[i] of the competitor undecided[i], i < undecided_count. `limit` is that of
 * kcp_outside_limit, or NULL. */
void kcp_shares_of(const struct kcp_competitors *sites, const double *low, const double *high,
                   const uint32_t *undecided, uint32_t undecided_count, uint64_t closer, uint64_t k,
                   const double *limit, uint8_t *shares);

/* inside[i]: whether fewer than k sites have a smaller rank than undecided[i]. */
void kcp_insides_of(const struct kcp_competitors *sites, const double *ranks,
                    const uint32_t *undecided, uint32_t undecided_count, uint64_t closer,
                    uint64_t k, uint8_t *inside);

#endif

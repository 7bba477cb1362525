#include "cell_shares.h"

#include <math.h>
#include <string.h>

#include "vectors.h"

/* Up to so many sites under question each count their competitors; for more, the ranks at which
 * counts reach k are found first. Both give the same shares. */
#define MOST_COUNTED 48

KCP_WIDEST_VECTORS void kcp_competitor_bounds(const struct kcp_competitors *sites,
                                              struct kcp_cell place, double *restrict low,
                                              double *restrict high) {
  const double *restrict x = sites->x, *restrict y = sites->y;
  const double *restrict inverse = sites->inverse_square;
  for (uint32_t i = 0; i < sites->count; ++i) {
    low[i] = kcp_rank_low(x[i], y[i], inverse[i], place);
    high[i] = kcp_rank_high(x[i], y[i], inverse[i], place);
  }
}

KCP_WIDEST_VECTORS void kcp_competitor_ranks(const struct kcp_competitors *sites, double x,
                                             double y, double *restrict ranks) {
  const double *restrict sx = sites->x, *restrict sy = sites->y;
  const double *restrict squared = sites->squared_weight;
  for (uint32_t i = 0; i < sites->count; ++i)
    ranks[i] = kcp_weighted_rank(sx[i] - x, sy[i] - y, squared[i]);
}

KCP_WIDEST_VECTORS static uint64_t count_up_to(const double *restrict values,
                                               const uint64_t *restrict multiplicity,
                                               uint32_t count, double limit) {
  uint64_t times = 0;
  for (uint32_t i = 0; i < count; ++i) times += values[i] <= limit ? multiplicity[i] : 0;
  return times;
}

KCP_WIDEST_VECTORS static double largest_up_to(const double *restrict values, uint32_t count,
                                               double limit) {
  double largest = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const double value = values[i] <= limit ? values[i] : 0;
    largest = value > largest ? value : largest;
  }
  return largest;
}

KCP_WIDEST_VECTORS static double smallest_of(const double *restrict values, uint32_t count) {
  double smallest = INFINITY;
  for (uint32_t i = 0; i < count; ++i) smallest = values[i] < smallest ? values[i] : smallest;
  return smallest;
}

/* Bits of numbers that are not negative are in the order of the numbers. */
static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static double value_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Bisection by counting, which vectorises, until one count is n. */
double kcp_nth_value(const double *values, const uint64_t *multiplicity, uint32_t count,
                     uint64_t n) {
  if (count_up_to(values, multiplicity, count, INFINITY) < n) return INFINITY;
  uint64_t low = bits_of(smallest_of(values, count));
  uint64_t high = bits_of(largest_up_to(values, count, INFINITY));
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    const uint64_t times = count_up_to(values, multiplicity, count, value_of(middle));
    if (times == n) return largest_up_to(values, count, value_of(middle));
    if (times < n)
      low = middle + 1;
    else
      high = middle;
  }
  return value_of(low);
}

KCP_WIDEST_VECTORS static void count_shares(const struct kcp_competitors *sites,
                                            const double *restrict low, const double *restrict high,
                                            const uint32_t *undecided, uint32_t undecided_count,
                                            uint64_t closer, uint64_t k, uint8_t *shares) {
  const uint64_t *restrict multiplicity = sites->multiplicity;
  for (uint32_t u = 0; u < undecided_count; ++u) {
    const double own_low = low[undecided[u]], own_high = high[undecided[u]];
    uint64_t maybe = 0, surely = 0;
    for (uint32_t i = 0; i < sites->count; ++i) {
      maybe += low[i] < own_high ? multiplicity[i] : 0;
      surely += high[i] < own_low ? multiplicity[i] : 0;
    }
    maybe -= multiplicity[undecided[u]];
    shares[u] = (uint8_t)kcp_share_of(closer + maybe, closer + surely, k);
  }
}

/* The same for many: fewer than n sites are below a value when the n-th smallest is not. */
static void find_shares(const struct kcp_competitors *sites, const double *low, const double *high,
                        const uint32_t *undecided, uint32_t undecided_count, uint64_t left,
                        double limit, uint8_t *shares) {
  uint64_t times = 0;
  double maybe_from = 0;
  for (uint32_t u = 0; u < undecided_count; ++u) {
    const uint32_t site = undecided[u];
    if (sites->multiplicity[site] != times) {
      times = sites->multiplicity[site];
      maybe_from = kcp_nth_value(low, sites->multiplicity, sites->count, left + times);
    }
    shares[u] = maybe_from >= high[site] ? KCP_CELL_INSIDE
                : limit < low[site]      ? KCP_CELL_OUTSIDE
                                         : KCP_CELL_UNDECIDED;
  }
}

double kcp_outside_limit(const struct kcp_competitors *sites, const double *high, uint64_t closer,
                         uint64_t k) {
  return kcp_nth_value(high, sites->multiplicity, sites->count, k - closer);
}

void kcp_shares_of(const struct kcp_competitors *sites, const double *low, const double *high,
                   const uint32_t *undecided, uint32_t undecided_count, uint64_t closer, uint64_t k,
                   const double *limit, uint8_t *shares) {
  if (undecided_count <= MOST_COUNTED)
    count_shares(sites, low, high, undecided, undecided_count, closer, k, shares);
  else
    find_shares(sites, low, high, undecided, undecided_count, k - closer,
                limit != NULL ? *limit : kcp_outside_limit(sites, high, closer, k), shares);
}

KCP_WIDEST_VECTORS static void count_insides(const struct kcp_competitors *sites,
                                             const double *restrict ranks,
                                             const uint32_t *undecided, uint32_t undecided_count,
                                             uint64_t closer, uint64_t k, uint8_t *inside) {
  const uint64_t *restrict multiplicity = sites->multiplicity;
  for (uint32_t u = 0; u < undecided_count; ++u) {
    const double own = ranks[undecided[u]];
    uint64_t before = closer;
    for (uint32_t i = 0; i < sites->count; ++i) before += ranks[i] < own ? multiplicity[i] : 0;
    inside[u] = before < k;
  }
}

void kcp_insides_of(const struct kcp_competitors *sites, const double *ranks,
                    const uint32_t *undecided, uint32_t undecided_count, uint64_t closer,
                    uint64_t k, uint8_t *inside) {
  if (undecided_count <= MOST_COUNTED) {
    count_insides(sites, ranks, undecided, undecided_count, closer, k, inside);
    return;
  }
  const double kth = kcp_nth_value(ranks, sites->multiplicity, sites->count, k - closer);
  for (uint32_t u = 0; u < undecided_count; ++u) inside[u] = ranks[undecided[u]] <= kth;
}

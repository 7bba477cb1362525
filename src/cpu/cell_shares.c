#include "cell_shares.h"

#include <math.h>
#include <string.h>

#include "vectors.h"

/* Up to so many sites under question each count their competitors; for more, the ranks at which
 * counts reach k are found first. Both give the same shares. */
#define MOST_COUNTED 48

_Static_assert(sizeof(double) == sizeof(uint64_t), "values and multiplicities share scratch");

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

static void swap(double *values, uint64_t *multiplicity, uint32_t a, uint32_t b) {
  double value = values[a];
  uint64_t times = multiplicity[a];
  values[a] = values[b];
  multiplicity[a] = multiplicity[b];
  values[b] = value;
  multiplicity[b] = times;
}

static double middle_of(double a, double b, double c) {
  return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

double kcp_nth_value(double *values, uint64_t *multiplicity, uint32_t count, uint64_t n) {
  uint32_t first = 0, end = count;
  while (first < end) {
    const double pivot =
        middle_of(values[first], values[first + (end - first) / 2], values[end - 1]);
    /* Values below the pivot come first, then equal ones, then those above. */
    uint32_t below = first, above = end;
    uint64_t below_times = 0, equal_times = 0;
    for (uint32_t i = first; i < above;) {
      if (values[i] < pivot) {
        below_times += multiplicity[i];
        swap(values, multiplicity, i++, below++);
      } else if (values[i] > pivot) {
        swap(values, multiplicity, i, --above);
      } else {
        equal_times += multiplicity[i++];
      }
    }
    if (n <= below_times) {
      end = below;
    } else if (n - below_times <= equal_times) {
      return pivot;
    } else {
      n -= below_times + equal_times;
      first = above;
    }
  }
  return INFINITY;
}

static double nth_of_copy(const double *values, const struct kcp_competitors *sites, uint64_t n,
                          double *scratch) {
  uint64_t *times = (uint64_t *)(scratch + sites->count);
  memcpy(scratch, values, sites->count * sizeof *values);
  memcpy(times, sites->multiplicity, sites->count * sizeof *times);
  return kcp_nth_value(scratch, times, sites->count, n);
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
                        double *scratch, uint8_t *shares) {
  const double surely_from = nth_of_copy(high, sites, left, scratch);
  uint64_t times = 0;
  double maybe_from = 0;
  for (uint32_t u = 0; u < undecided_count; ++u) {
    const uint32_t site = undecided[u];
    if (sites->multiplicity[site] != times) {
      times = sites->multiplicity[site];
      maybe_from = nth_of_copy(low, sites, left + times, scratch);
    }
    shares[u] = maybe_from >= high[site]  ? KCP_CELL_INSIDE
                : surely_from < low[site] ? KCP_CELL_OUTSIDE
                                          : KCP_CELL_UNDECIDED;
  }
}

void kcp_shares_of(const struct kcp_competitors *sites, const double *low, const double *high,
                   const uint32_t *undecided, uint32_t undecided_count, uint64_t closer, uint64_t k,
                   double *scratch, uint8_t *shares) {
  if (undecided_count <= MOST_COUNTED)
    count_shares(sites, low, high, undecided, undecided_count, closer, k, shares);
  else
    find_shares(sites, low, high, undecided, undecided_count, k - closer, scratch, shares);
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
                    uint64_t k, double *scratch, uint8_t *inside) {
  if (undecided_count <= MOST_COUNTED) {
    count_insides(sites, ranks, undecided, undecided_count, closer, k, inside);
    return;
  }
  const double kth = nth_of_copy(ranks, sites, k - closer, scratch);
  for (uint32_t u = 0; u < undecided_count; ++u) inside[u] = ranks[undecided[u]] <= kth;
}

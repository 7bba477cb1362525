#include <math.h>

#include "kcp/range_query.h"
#include "kcp/scan.h"

/* Within these bounds of eps, squares that underflow are too small to change a comparison with
 * eps * eps, and those that overflow are beyond it. */
#define LEAST_EXPONENT (-250)
#define LARGEST_EXPONENT 500
#define SIGNIFICAND_BITS 52
#define FINEST_SQUARED (-511) /* the square of 2^-511 is a normal number */

/* Exponents of the largest and the finest coordinate of both sets; false when all are 0. */
static bool find_extremes(struct kcp_dataset *reference, struct kcp_dataset *query, int *largest,
                          int *finest) {
  const struct kcp_coordinate_range *a = kcp_dataset_range(reference);
  const struct kcp_coordinate_range *b = kcp_dataset_range(query);
  const double magnitude = fmax(a->largest_magnitude, b->largest_magnitude);
  if (magnitude == 0) return false;
  *largest = ilogb(magnitude);
  *finest = ilogb(fmin(a->smallest_magnitude, b->smallest_magnitude)) - SIGNIFICAND_BITS;
  return true;
}

static bool is_comfortable(double eps) {
  return ilogb(eps) >= LEAST_EXPONENT && ilogb(eps) < LARGEST_EXPONENT;
}

enum kcp_status kcp_range_scale(struct kcp_dataset *reference, struct kcp_dataset *query,
                                double eps, struct kcp_progress *progress, int *exponent,
                                struct kcp_error *error) {
  int largest, finest;
  *exponent = 0;
  if (eps > 0 && is_comfortable(eps)) return KCP_OK;
  enum kcp_status status = kcp_scan(reference, NULL, NULL, progress, error);
  if (status == KCP_OK && query != reference) status = kcp_scan(query, NULL, NULL, progress, error);
  if (status != KCP_OK || !find_extremes(reference, query, &largest, &finest)) return status;
  const int limit = 1021 - largest; /* no coordinate and no difference overflows */
  bool possible = true;
  if (eps == 0) {
    if (finest < FINEST_SQUARED) *exponent = limit;
    possible = finest + *exponent >= FINEST_SQUARED;
  } else {
    *exponent = -ilogb(eps) < limit ? -ilogb(eps) : limit;
    possible = ilogb(eps) + *exponent >= LEAST_EXPONENT;
  }
  if (possible) return KCP_OK;
  return kcp_fail(
      error, KCP_BAD_INPUT,
      "--eps %g and the coordinates span too many orders of magnitude to decide exactly; "
      "move the origin or round tiny coordinates to 0",
      eps);
}

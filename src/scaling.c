#include "kcp/scaling.h"

#include <float.h>
#include <math.h>

#include "kcp/winners.h"

#define LARGEST_EXPONENT 1023   /* of binary64: values below 2^1024 */
#define NORMAL_EXPONENT (-1022) /* the smallest normal number is 2^-1022 */
#define FINEST_EXPONENT (-1074) /* every number is a multiple of 2^-1074 */
#define SIGNIFICAND_BITS 52
#define COMFORTABLE_EXPONENT 1000 /* where the largest rank that matters is brought to */

/* What the two files hold, as exponents of two. */
struct extent {
  int largest;  /* |c| < 2^(largest + 1) */
  int finest;   /* every coordinate, and so every difference, is a multiple of 2^finest */
  bool any_set; /* some coordinate is not 0 */
  int degree;   /* of a difference in a rank */
  int dimensions;
};

static struct extent find_extent(const struct kcp_job *job) {
  const struct kcp_coordinate_range *a = kcp_dataset_range(job->reference);
  const struct kcp_coordinate_range *b = kcp_dataset_range(job->query);
  struct extent extent = {.degree = (int)kcp_metric_degree(job->request->metric),
                          .dimensions = (int)kcp_dataset_dimensions(job->reference)};
  double largest = fmax(a->largest_magnitude, b->largest_magnitude);
  double smallest = fmin(a->smallest_magnitude, b->smallest_magnitude);
  extent.any_set = largest > 0;
  if (!extent.any_set) return extent;
  extent.largest = ilogb(largest);
  extent.finest = ilogb(smallest) - SIGNIFICAND_BITS;
  if (extent.finest < FINEST_EXPONENT) extent.finest = FINEST_EXPONENT;
  return extent;
}

static int ceiling_log2(int number) {
  int exponent = 0;
  while (exponent < 30 && (1 << exponent) < number) ++exponent;
  return exponent;
}

static int divide_down(int a, int b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/* The largest scale at which no rank overflows: d terms, each below 2^(degree (largest + 2 + e)).
 */
static int overflow_limit(const struct extent *extent) {
  int room = LARGEST_EXPONENT - ceiling_log2(extent->dimensions);
  return divide_down(room, extent->degree) - extent->largest - 2;
}

/* No nonzero difference is finer than 2^finest, so no term underflows at this scale. */
static bool cannot_underflow(const struct extent *extent, int exponent) {
  int finest = extent->finest + exponent;
  if (finest < FINEST_EXPONENT) return false;
  return extent->degree == 1 || extent->degree * finest >= NORMAL_EXPONENT;
}

/* A rank at or above this is exact whatever underflowed in it: each further term can carry an error
 * up by at most the 54 bits of a half-way case. More than eight such cases in one pair are left
 * out of account. */
static double exact_from(const struct extent *extent) {
  int terms = extent->dimensions < 8 ? extent->dimensions : 8;
  return ldexp(1.0, NORMAL_EXPONENT + 55 * terms);
}

static double limit_rank(const struct kcp_job *job) {
  if (isinf(job->request->max_distance)) return INFINITY;
  return kcp_metric_rank(job->request->metric,
                         ldexp(job->request->max_distance, job->scale_exponent));
}

/* Pairs whose rank overflowed are left out of an answer; true when none of them belongs to it. */
static bool is_complete(const struct kcp_job *job, const struct kcp_answer *answer,
                        const struct extent *extent) {
  if (job->scale_exponent <= overflow_limit(extent)) return true;
  return answer->count == job->pair_count || limit_rank(job) < DBL_MAX;
}

static bool coincide(const struct kcp_winners *winners, uint64_t i, uint64_t j,
                     const struct kcp_candidate *pair, const void *context) {
  (void)pair;
  (void)context;
  for (uint32_t d = 0; d < winners->reference.dimensions; ++d)
    if (kcp_points_column(&winners->reference, d)[i] != kcp_points_column(&winners->query, d)[j])
      return false;
  return true;
}

/* Whether the pairs below the rank that is surely exact are all pairs of coincident points. */
static enum kcp_status small_pairs_coincide(const struct kcp_job *job,
                                            const struct kcp_answer *answer, double exact_rank,
                                            bool *result, struct kcp_error *error) {
  uint64_t small = 0;
  while (small < answer->count && answer->pairs[small].rank < exact_rank) ++small;
  *result = true;
  if (small == 0) return KCP_OK;
  if (answer->pairs[small - 1].rank > 0) {
    *result = false;
    return KCP_OK;
  }
  struct kcp_winners winners;
  enum kcp_status status = kcp_winners_find(job, answer->pairs, small, 0, &winners, error);
  if (status != KCP_OK) return status;
  for (uint64_t i = 0; i < small && *result;) {
    const struct kcp_candidate *pair = &answer->pairs[i];
    uint64_t same = 1;
    while (i + same < small && pair[same].id1 == pair->id1 && pair[same].id2 == pair->id2) ++same;
    *result = kcp_winners_count(&winners, pair, same, coincide, NULL) == same;
    i += same;
  }
  kcp_winners_free(&winners);
  return KCP_OK;
}

/* As large as it can be: no difference between coordinates may overflow, and neither the k-th rank
 * nor the limit. */
static int scale_for_answer(const struct kcp_job *job, const struct kcp_answer *answer,
                            const struct extent *extent) {
  int by_coordinates = LARGEST_EXPONENT - 2 - extent->largest;
  int farthest; /* exponent of the unscaled largest distance that matters */
  if (answer->count == job->pair_count) {
    double last = answer->count > 0 ? answer->pairs[answer->count - 1].rank : 0;
    int rank_exponent = last > 0 ? ilogb(last) + 1 : FINEST_EXPONENT + 1;
    farthest = -divide_down(-rank_exponent, extent->degree) - job->scale_exponent;
  } else {
    double limit = fmin(job->request->max_distance, DBL_MAX);
    farthest = limit > 0 ? ilogb(limit) + 1 : FINEST_EXPONENT;
  }
  int by_rank = COMFORTABLE_EXPONENT / extent->degree - farthest;
  if (by_rank < overflow_limit(extent)) by_rank = overflow_limit(extent);
  return by_rank < by_coordinates ? by_rank : by_coordinates;
}

enum kcp_status kcp_scaling_refuse(struct kcp_error *error) {
  return kcp_fail(error, KCP_BAD_INPUT,
                  "the coordinates span too many orders of magnitude to order the closest pairs "
                  "exactly; move the origin or round tiny coordinates to 0");
}

enum kcp_status kcp_scaling_check(const struct kcp_job *job, const struct kcp_answer *answer,
                                  int *exponent, struct kcp_error *error) {
  struct extent extent = find_extent(job);
  *exponent = job->scale_exponent;
  if (!extent.any_set) return KCP_OK;
  if (!is_complete(job, answer, &extent)) {
    *exponent = overflow_limit(&extent);
    return KCP_OK;
  }
  if (cannot_underflow(&extent, job->scale_exponent)) return KCP_OK;
  double exact_rank = exact_from(&extent);
  double limit = limit_rank(job);
  bool exact = false;
  if (limit >= exact_rank || job->request->max_distance == 0) {
    enum kcp_status status = small_pairs_coincide(job, answer, exact_rank, &exact, error);
    if (status != KCP_OK) return status;
  }
  if (exact) return KCP_OK;
  *exponent = scale_for_answer(job, answer, &extent);
  if (*exponent <= job->scale_exponent) return kcp_scaling_refuse(error);
  return KCP_OK;
}

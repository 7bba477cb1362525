#include "kcp/range_order.h"

#include <stdbool.h>
#include <stdlib.h>

#include "kcp/random.h"

#define RANDOM_SEED 1

static double variance_of(const double *column, uint64_t count) {
  const double share = 1 / (double)count;
  double mean = 0, sum = 0;
  for (uint64_t i = 0; i < count; ++i) mean += column[i] * share;
  for (uint64_t i = 0; i < count; ++i) {
    const double difference = column[i] - mean;
    sum += difference * difference;
  }
  return sum * share;
}

void kcp_range_variances(const struct kcp_points *points, double *variances) {
#pragma omp parallel for schedule(dynamic, 1)
  for (uint32_t j = 0; j < points->dimensions; ++j)
    variances[j] = points->count > 0 ? variance_of(kcp_points_column(points, j), points->count) : 0;
}

static void shuffle(uint32_t dimensions, uint32_t *order) {
  for (uint32_t i = dimensions; i > 1; --i) {
    const uint32_t other =
        (uint32_t)(kcp_random_unit(kcp_random_pair(RANDOM_SEED, 5, i, 0).first) * i);
    const uint32_t kept = order[i - 1];
    order[i - 1] = order[other];
    order[other] = kept;
  }
}

/* Whether dimension a comes before b. */
static bool comes_before(const double *variances, enum kcp_range_reorder reorder, uint32_t a,
                         uint32_t b) {
  if (variances[a] == variances[b]) return a < b;
  return (variances[a] > variances[b]) == (reorder == KCP_REORDER_HIGHEST);
}

/* A merge sort of few elements: dimensions are up to a million. */
static void merge_sort(const double *variances, enum kcp_range_reorder reorder, uint32_t count,
                       uint32_t *order, uint32_t *spare) {
  for (uint64_t width = 1; width < count; width *= 2) {
    for (uint64_t low = 0; low < count; low += 2 * width) {
      const uint64_t middle = low + width < count ? low + width : count;
      const uint64_t high = low + 2 * width < count ? low + 2 * width : count;
      uint64_t a = low, b = middle;
      for (uint64_t to = low; to < high; ++to) {
        const bool from_first =
            b == high || (a < middle && !comes_before(variances, reorder, order[b], order[a]));
        spare[to] = from_first ? order[a++] : order[b++];
      }
    }
    for (uint64_t i = 0; i < count; ++i) order[i] = spare[i];
  }
}

void kcp_range_order(const double *variances, uint32_t dimensions, enum kcp_range_reorder reorder,
                     uint32_t *order) {
  for (uint32_t j = 0; j < dimensions; ++j) order[j] = j;
  if (reorder == KCP_REORDER_RANDOM) {
    shuffle(dimensions, order);
    return;
  }
  uint32_t *spare = malloc(((uint64_t)dimensions + 1) * sizeof *spare);
  if (spare == NULL) return; /* the order of the file serves as well */
  merge_sort(variances, reorder, dimensions, order, spare);
  free(spare);
}

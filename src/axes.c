#include "kcp/axes.h"

#include <math.h>

struct kcp_axes kcp_axes_first(uint32_t dimensions) {
  struct kcp_axes axes = {.count = dimensions < KCP_MAX_AXES ? dimensions : KCP_MAX_AXES};
  for (uint32_t j = 0; j < axes.count; ++j) {
    axes.axis[j] = j;
    axes.constant[j] = NAN;
  }
  return axes;
}

static double spread_of(const double *column, uint64_t count) {
  double mean = 0, spread = 0;
  for (uint64_t i = 0; i < count; ++i) mean += column[i] / (double)count;
  for (uint64_t i = 0; i < count; ++i) spread += (column[i] - mean) * (column[i] - mean);
  return spread;
}

static void put_in_order(struct kcp_axes *axes) {
  for (uint32_t j = 1; j < axes->count; ++j)
    for (uint32_t i = j; i > 0 && axes->axis[i - 1] > axes->axis[i]; --i) {
      uint32_t larger = axes->axis[i - 1];
      axes->axis[i - 1] = axes->axis[i];
      axes->axis[i] = larger;
    }
}

static void choose_by_spread(const struct kcp_points *sample, struct kcp_axes *axes) {
  double best[KCP_MAX_AXES] = {-1, -1, -1};
  for (uint32_t j = 0; j < sample->dimensions; ++j) {
    double spread = spread_of(kcp_points_column(sample, j), sample->count);
    uint32_t place = KCP_MAX_AXES;
    for (; place > 0 && spread > best[place - 1]; --place) {
      if (place == KCP_MAX_AXES) continue;
      best[place] = best[place - 1];
      axes->axis[place] = axes->axis[place - 1];
    }
    if (place == KCP_MAX_AXES) continue;
    best[place] = spread;
    axes->axis[place] = j;
  }
  put_in_order(axes);
}

static double constant_of(const double *column, uint64_t count) {
  for (uint64_t i = 1; i < count; ++i)
    if (column[i] != column[0]) return NAN;
  return count > 0 ? column[0] : NAN;
}

struct kcp_axes kcp_axes_of_sample(const struct kcp_points *sample) {
  struct kcp_axes axes = kcp_axes_first(sample->dimensions);
  if (sample->dimensions > KCP_MAX_AXES) choose_by_spread(sample, &axes);
  for (uint32_t j = 0; j < axes.count; ++j)
    axes.constant[j] = constant_of(kcp_points_column(sample, axes.axis[j]), sample->count);
  return axes;
}

void kcp_axes_drop_constant(struct kcp_axes *axes, double *low, double *high) {
  uint32_t kept = 0;
  for (uint32_t j = 0; j < axes->count; ++j) {
    bool last_chance = j + 1 == axes->count && kept == 0;
    if (low[j] == high[j] && low[j] == axes->constant[j] && !last_chance) continue;
    axes->axis[kept] = axes->axis[j];
    low[kept] = low[j];
    high[kept++] = high[j];
  }
  axes->count = kept;
}

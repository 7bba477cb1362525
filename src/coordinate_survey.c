#include "coordinate_survey.h"

#include <math.h>
#include <stdlib.h>

struct column_extremes {
  double minimum;
  double maximum;
  double smallest_magnitude;
  bool finite;
};

enum kcp_status kcp_survey_begin(uint32_t dimensions, struct kcp_survey *survey,
                                 struct kcp_error *error) {
  survey->smallest_magnitude = INFINITY;
  survey->minimum = calloc(2 * (size_t)dimensions, sizeof *survey->minimum);
  if (survey->minimum == NULL)
    return kcp_out_of_memory(error, "coordinate ranges", 16ULL * dimensions);
  survey->maximum = survey->minimum + dimensions;
  for (uint32_t j = 0; j < dimensions; ++j) {
    survey->minimum[j] = INFINITY;
    survey->maximum[j] = -INFINITY;
  }
  return KCP_OK;
}

void kcp_survey_free(struct kcp_survey *survey) {
  free(survey->minimum);
}

void kcp_range_add(struct kcp_coordinate_range *range, const struct kcp_survey *survey) {
  for (uint32_t j = 0; j < range->dimensions; ++j) {
    range->minimum[j] = fmin(range->minimum[j], survey->minimum[j]);
    range->maximum[j] = fmax(range->maximum[j], survey->maximum[j]);
    if (range->minimum[j] > range->maximum[j]) continue;
    double magnitude = fmax(fabs(range->minimum[j]), fabs(range->maximum[j]));
    range->largest_magnitude = fmax(range->largest_magnitude, magnitude);
  }
  range->smallest_magnitude = fmin(range->smallest_magnitude, survey->smallest_magnitude);
}

/* Several independent lanes, since each extreme depends on the one before it. */
enum { LANES = 4 };

static struct column_extremes column_extremes(const double *values, uint64_t count) {
  double minimum[LANES], maximum[LANES], smallest[LANES], residue[LANES];
  for (int lane = 0; lane < LANES; ++lane) {
    minimum[lane] = INFINITY;
    maximum[lane] = -INFINITY;
    smallest[lane] = INFINITY;
    residue[lane] = 0.0;
  }
  uint64_t whole = count - count % LANES;
  for (uint64_t i = 0; i < whole; i += LANES) {
    for (int lane = 0; lane < LANES; ++lane) {
      double value = values[i + (uint64_t)lane];
      double magnitude = value == 0.0 ? INFINITY : fabs(value);
      minimum[lane] = value < minimum[lane] ? value : minimum[lane];
      maximum[lane] = value > maximum[lane] ? value : maximum[lane];
      smallest[lane] = magnitude < smallest[lane] ? magnitude : smallest[lane];
      residue[lane] += value - value; /* NaN from the first value that is not finite */
    }
  }
  for (uint64_t i = whole; i < count; ++i) {
    double value = values[i];
    minimum[0] = fmin(minimum[0], value);
    maximum[0] = fmax(maximum[0], value);
    if (value != 0.0) smallest[0] = fmin(smallest[0], fabs(value));
    residue[0] += value - value;
  }
  struct column_extremes extremes = {minimum[0], maximum[0], smallest[0], residue[0] == 0.0};
  for (int lane = 1; lane < LANES; ++lane) {
    extremes.minimum = fmin(extremes.minimum, minimum[lane]);
    extremes.maximum = fmax(extremes.maximum, maximum[lane]);
    extremes.smallest_magnitude = fmin(extremes.smallest_magnitude, smallest[lane]);
    extremes.finite &= residue[lane] == 0.0;
  }
  return extremes;
}

bool kcp_survey_values(uint32_t j, const double *values, uint64_t count,
                       struct kcp_survey *survey) {
  struct column_extremes extremes = column_extremes(values, count);
  survey->minimum[j] = fmin(survey->minimum[j], extremes.minimum);
  survey->maximum[j] = fmax(survey->maximum[j], extremes.maximum);
  survey->smallest_magnitude = fmin(survey->smallest_magnitude, extremes.smallest_magnitude);
  return extremes.finite;
}

bool kcp_survey_points(const struct kcp_points *points, struct kcp_survey *survey) {
  bool finite = true;
  for (uint32_t j = 0; j < points->dimensions; ++j)
    finite &= kcp_survey_values(j, kcp_points_column(points, j), points->count, survey);
  return finite;
}

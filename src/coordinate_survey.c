#include "coordinate_survey.h"

#include <math.h>
#include <stdlib.h>

#include "cpu/vectors.h"

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

KCP_WIDEST_VECTORS static struct column_extremes column_extremes(const double *values,
                                                                 uint64_t count) {
  double minimum = INFINITY, maximum = -INFINITY, smallest = INFINITY, residue = 0;
#pragma omp simd reduction(min : minimum, smallest) reduction(max : maximum) reduction(+ : residue)
  for (uint64_t i = 0; i < count; ++i) {
    double value = values[i];
    double magnitude = value == 0.0 ? INFINITY : fabs(value);
    minimum = value < minimum ? value : minimum;
    maximum = value > maximum ? value : maximum;
    smallest = magnitude < smallest ? magnitude : smallest;
    residue += value - value; /* NaN from the first value that is not finite */
  }
  return (struct column_extremes){minimum, maximum, smallest, residue == 0.0};
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

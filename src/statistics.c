#include "kcp/statistics.h"

#include <math.h>
#include <stdlib.h>

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

struct kcp_statistics kcp_statistics_of(const double *values, size_t stride, size_t count,
                                        double *scratch) {
  double sum = 0, squares = 0;
  for (size_t i = 0; i < count; ++i) {
    scratch[i] = values[i * stride];
    sum += scratch[i];
  }
  double mean = sum / (double)count;
  for (size_t i = 0; i < count; ++i) squares += (scratch[i] - mean) * (scratch[i] - mean);
  qsort(scratch, count, sizeof *scratch, compare_doubles);
  double upper = scratch[count / 2];
  double lower = scratch[(count - 1) / 2];
  struct kcp_statistics result = {.median = lower + (upper - lower) / 2,
                                  .minimum = scratch[0],
                                  .maximum = scratch[count - 1],
                                  .mean = mean,
                                  .deviation = count > 1 ? sqrt(squares / (double)(count - 1)) : 0};
  return result;
}

/* Cells of side eps in up to six dimensions, for the grid join (GDS-Join, which RT-HiSS section
 * II-B1 describes): two points within eps lie in cells that differ by at most one along each. */
#ifndef KCP_RANGE_CELLS_H
#define KCP_RANGE_CELLS_H

#include <math.h>
#include <stdint.h>

#include "kcp/host_device.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KCP_MAX_GRID_DIMENSIONS 6

struct kcp_range_cells {
  uint32_t count;                              /* 1 to 6 dimensions */
  uint32_t dimension[KCP_MAX_GRID_DIMENSIONS]; /* which of the points' they are */
  double origin[KCP_MAX_GRID_DIMENSIONS];      /* lower corner of the points */
  double inverse[KCP_MAX_GRID_DIMENSIONS];     /* 1 / side */
  uint64_t numbers[KCP_MAX_GRID_DIMENSIONS];   /* cell numbers are below it, and at least 0 */
};

/* The number of a coordinate's cell along dimension i of the grid. Points of the set that the grid
 * was made for have numbers from 2 to numbers - 3, so that neighbours are numbers too; others go to
 * the border at the nearest. */
KCP_HD static inline uint64_t kcp_range_cell_number(const struct kcp_range_cells *cells, uint32_t i,
                                                    double coordinate) {
  const double highest = (double)(cells->numbers[i] - 2);
  double number = floor((coordinate - cells->origin[i]) * cells->inverse[i]) + 2;
  number = number > 1 ? number : 1;
  return (uint64_t)(number < highest ? number : highest);
}

/* Cells for points between `low` and `high` (by dimension of the points) along the given
 * dimensions. A side is at least eps, and long enough for keys of 63 bits. The padding is more than
 * the rounding of cell numbers, which are below 2^31. */
static inline struct kcp_range_cells kcp_range_cells_make(uint32_t count, const uint32_t *dimension,
                                                          const double *low, const double *high,
                                                          double eps) {
  struct kcp_range_cells cells;
  const int bits = count == 1 ? 30 : 60 / (int)count;
  cells.count = count;
  for (uint32_t i = 0; i < count; ++i) {
    const double lower = low[dimension[i]], extent = high[dimension[i]] - lower;
    const double side = fmax(eps * (1 + 0x1p-18), extent * ldexp(1.0, -bits));
    cells.dimension[i] = dimension[i];
    cells.origin[i] = lower;
    cells.inverse[i] = side > 0 ? fmin(1 / side, 1e300) : 1;
    cells.numbers[i] = (uint64_t)fmin(floor(extent * cells.inverse[i]), ldexp(1.0, bits)) + 5;
  }
  return cells;
}

/* Cells in the order of their numbers, the last dimension fastest. */
KCP_HD static inline uint64_t kcp_range_cell_key(const struct kcp_range_cells *cells,
                                                 const uint64_t *numbers) {
  uint64_t key = 0;
  for (uint32_t i = 0; i < cells->count; ++i) key = key * cells->numbers[i] + numbers[i];
  return key;
}

#ifdef __cplusplus
}
#endif
#endif

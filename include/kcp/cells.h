/* Hashed grid cells at the scale of a threshold: the filter of the global-threshold algorithm, one
 * body for host and device.
 *
 * A filter is a bitmap. One set marks the cells that the box (point +- reach) of each of its points
 * touches, the other set probes the one cell that each of its points lies in. A pair within reach
 * in every coordinate is never lost: cell numbers are a monotone function of the coordinate,
 * computed the same way on both sides, and `reach` is padded for the rounding of point +- reach. */
#ifndef KCP_CELLS_H
#define KCP_CELLS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "kcp/host_device.h"

#define KCP_MAX_AXES 3

struct kcp_cells {
  uint32_t axes;               /* 1 to 3 coordinates that index */
  uint32_t axis[KCP_MAX_AXES]; /* which columns they are */
  double origin[KCP_MAX_AXES]; /* any point; the lower corner keeps cell numbers small */
  double inverse;              /* 1 / side; side >= 2 reach */
  double reach;                /* padded */
  uint64_t seed;               /* another hash for every round of filtering */
  uint64_t mask;               /* bits in the bitmap - 1, a power of two minus one */
};

/* A well-mixed 64-bit hash (the finalizer of SplitMix64). */
KCP_HD static inline uint64_t kcp_mix(uint64_t value) {
  value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
  return value ^ (value >> 31);
}

/* The cell number of a coordinate along axis j; within +-2^62 for any finite coordinate. */
KCP_HD static inline int64_t kcp_cell_number(const struct kcp_cells *cells, uint32_t j,
                                             double coordinate) {
  double scaled = floor((coordinate - cells->origin[j]) * cells->inverse);
  const double limit = 4611686018427387904.0;
  if (scaled > limit) scaled = limit;
  if (scaled < -limit) scaled = -limit;
  return (int64_t)scaled;
}

/* Folds one more cell number into the hash of a cell. */
KCP_HD static inline uint64_t kcp_cell_hash(uint64_t hash, int64_t number) {
  return kcp_mix(hash + (uint64_t)number * UINT64_C(0x9e3779b97f4a7c15));
}

/* The bit of the cell that holds a point given by its coordinates along the axes. */
KCP_HD static inline uint64_t kcp_cell_bit(const struct kcp_cells *cells, const double *point) {
  uint64_t hash = cells->seed;
  for (uint32_t j = 0; j < cells->axes; ++j)
    hash = kcp_cell_hash(hash, kcp_cell_number(cells, j, point[j]));
  return hash & cells->mask;
}

/* The cell numbers that the box point +- reach spans along each axis. */
struct kcp_cell_box {
  int64_t first[KCP_MAX_AXES];
  int64_t last[KCP_MAX_AXES];
};

KCP_HD static inline struct kcp_cell_box kcp_cell_box_of(const struct kcp_cells *cells,
                                                         const double *point) {
  struct kcp_cell_box box;
  for (uint32_t j = 0; j < KCP_MAX_AXES; ++j) {
    box.first[j] = box.last[j] = 0;
    if (j >= cells->axes) continue;
    box.first[j] = kcp_cell_number(cells, j, point[j] - cells->reach);
    box.last[j] = kcp_cell_number(cells, j, point[j] + cells->reach);
  }
  return box;
}

/* The bit of the cell with these numbers. */
KCP_HD static inline uint64_t kcp_cell_bit_of(const struct kcp_cells *cells, int64_t a, int64_t b,
                                              int64_t c) {
  uint64_t hash = kcp_cell_hash(cells->seed, a);
  if (cells->axes > 1) hash = kcp_cell_hash(hash, b);
  if (cells->axes > 2) hash = kcp_cell_hash(hash, c);
  return hash & cells->mask;
}

/* Cells for pairs whose coordinates along every axis differ by at most `distance`, in a bitmap of
 * `bits` (a power of two). `low` and `high` bound all coordinates along each axis. */
static inline struct kcp_cells kcp_cells_make(uint32_t axes, const uint32_t *axis,
                                              const double *low, const double *high,
                                              double distance, uint64_t bits, uint64_t seed) {
  struct kcp_cells cells;
  double largest = 0, extent = 0;
  cells.axes = axes;
  for (uint32_t j = 0; j < KCP_MAX_AXES; ++j) {
    cells.axis[j] = j < axes ? axis[j] : 0;
    cells.origin[j] = 0;
    if (j >= axes) continue;
    largest = fmax(largest, fmax(fabs(low[j]), fabs(high[j])));
    extent = fmax(extent, high[j] - low[j]);
  }
  /* Adding the largest coordinate's rounding error makes point +- reach safe. */
  cells.reach = distance * (1 + 0x1p-40) + largest * 0x1p-50;
  /* Cells of twice the box keep touched cells few; the floor keeps cell numbers exact integers. */
  double side = fmax(4 * cells.reach, extent * 0x1p-40);
  cells.inverse = side > 0 ? fmin(1 / side, 0x1p1000) : 1;
  /* A coordinate that is constant lies in the middle of a cell: its box touches no other. */
  for (uint32_t j = 0; j < axes; ++j) cells.origin[j] = low[j] - side / 2;
  cells.seed = kcp_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
  cells.mask = bits - 1;
  return cells;
}

#endif

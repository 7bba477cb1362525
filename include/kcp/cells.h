/* Hashed grid cells at the scale of a threshold: the filter of the global-threshold algorithm, one
 * body for host and device.
 *
 * A filter is a bitmap of 64-bit words; a cell is two bits of one word (a blocked Bloom filter, so
 * that a probe costs one access). One set marks the cells that the box (point +- reach) of each of
 * its points touches, the other set probes the one cell that each of its points lies in. A pair
 * within reach in every coordinate is never lost: cell numbers are a monotone function of the
 * coordinate, computed the same way on both sides, and `reach` is padded for the rounding of
 * point +- reach.
 *
 * Within one set every point lies in a cell that it marked itself. A second bitmap then holds the
 * cells that were marked twice: a cell that the boxes of two points touch is in it, since marking
 * is atomic and the second finds both bits set. */
#ifndef KCP_CELLS_H
#define KCP_CELLS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kcp/host_device.h"

#define KCP_MAX_AXES 3
#define KCP_CELL_WORD 64 /* bits */

struct kcp_cells {
  uint32_t axes;               /* 1 to 3 coordinates that index */
  uint32_t axis[KCP_MAX_AXES]; /* which columns they are */
  double origin[KCP_MAX_AXES]; /* any point; the lower corner keeps cell numbers small */
  double inverse;              /* 1 / side; side >= 4 reach */
  double reach;                /* padded */
  uint64_t seed, multiplier;   /* another hash for every round of filtering */
  uint32_t word_bits;          /* the bitmap has 2^word_bits words, 1 <= word_bits <= 32 */
};

/* A well-mixed 64-bit hash (the finalizer of SplitMix64). */
KCP_HD static inline uint64_t kcp_mix(uint64_t value) {
  value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
  return value ^ (value >> 31);
}

/* The cell number of a coordinate along axis j: scaled, rounded to a whole number by adding
 * 1.5 * 2^52 (|scaled| <= 2^50, where doubles are whole), and its bits taken for an integer:
 * neighbouring cells have neighbouring numbers. Every step is monotone. */
KCP_HD static inline int64_t kcp_cell_number(const struct kcp_cells *cells, uint32_t j,
                                             double coordinate) {
  double scaled = (coordinate - cells->origin[j]) * cells->inverse;
  scaled = scaled < 0x1p50 ? scaled : 0x1p50;
  scaled = scaled > -0x1p50 ? scaled : -0x1p50;
  scaled += 0x1.8p52;
  int64_t number;
  memcpy(&number, &scaled, sizeof number);
  return number;
}

/* What the number along axis j adds to a cell's sum of numbers, which begins with the seed. */
KCP_HD static inline uint64_t kcp_cell_term(uint32_t j, int64_t number) {
  const uint64_t odd = j == 0   ? UINT64_C(0x9e3779b97f4a7c15)
                       : j == 1 ? UINT64_C(0xc2b2ae3d27d4eb4f)
                                : UINT64_C(0x165667b19e3779f9);
  return (uint64_t)number * odd;
}

/* The hash of a cell by its sum. Its high bits are good, its low ones are not. */
KCP_HD static inline uint64_t kcp_cell_hash(const struct kcp_cells *cells, uint64_t sum) {
  return (sum ^ sum >> 32) * cells->multiplier;
}

/* The hash of the cell that holds a point given by its coordinates along the axes. */
KCP_HD static inline uint64_t kcp_cell_of(const struct kcp_cells *cells, const double *point) {
  uint64_t sum = cells->seed;
  for (uint32_t j = 0; j < KCP_MAX_AXES; ++j)
    if (j < cells->axes) sum += kcp_cell_term(j, kcp_cell_number(cells, j, point[j]));
  return kcp_cell_hash(cells, sum);
}

/* The hash of the cell with these numbers, 0 along axes that there are not. */
KCP_HD static inline uint64_t kcp_cell_at(const struct kcp_cells *cells, int64_t a, int64_t b,
                                          int64_t c) {
  return kcp_cell_hash(
      cells, cells->seed + kcp_cell_term(0, a) + kcp_cell_term(1, b) + kcp_cell_term(2, c));
}

/* The word of a cell in the bitmap, and its two bits (which may be one). */
KCP_HD static inline uint64_t kcp_cell_word(const struct kcp_cells *cells, uint64_t hash) {
  return hash >> (KCP_CELL_WORD - cells->word_bits);
}

KCP_HD static inline uint64_t kcp_cell_mask(uint64_t hash) {
  return UINT64_C(1) << (hash >> 20 & 63) | UINT64_C(1) << (hash >> 26 & 63);
}

/* The number of a cell's bucket among 2^bucket_bits, 1 <= bucket_bits <= 32. */
KCP_HD static inline uint32_t kcp_cell_bucket(uint64_t hash, uint32_t bucket_bits) {
  return (uint32_t)(hash >> (KCP_CELL_WORD - bucket_bits));
}

/* The cell numbers that the box point +- reach spans along each axis: one or two, since a cell is
 * wider than the box. */
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

/* Bitmaps of marked cells: those marked, and, when not NULL, those marked twice, where the points
 * of the records from own_first on (own_count of them) find whether another than themselves is
 * near. */
struct kcp_cell_marks {
  uint64_t *once, *twice;
  uint64_t own_first, own_count;
};

/* The bitmap that a point of this record probes. */
KCP_HD static inline const uint64_t *kcp_marks_for(const struct kcp_cell_marks *marks,
                                                   uint64_t record) {
  return marks->twice != NULL && record - marks->own_first < marks->own_count ? marks->twice
                                                                              : marks->once;
}

/* How many times as wide as the reach cells are. Wide cells are touched by few boxes (2.25 cells a
 * box in two dimensions at 4, 1.27 at 16), but points share them: wide only where the box of all
 * points has many more cells than the bitmap has bits, so that chance, not nearness, decides what
 * passes. */
KCP_HD static inline double kcp_cell_width(uint32_t axes, const double *low, const double *high,
                                           double reach, double bits) {
  for (double width = 16; width > 4; width /= 2) {
    double cells = 1;
    for (uint32_t j = 0; j < axes; ++j) cells *= fmax(1.0, (high[j] - low[j]) / (width * reach));
    if (cells >= 64 * bits) return width;
  }
  return 4;
}

/* Cells for pairs whose coordinates along every axis differ by at most `distance`, in a bitmap of
 * `bits` (a power of two, 128 to 2^38). `low` and `high` bound all coordinates along each axis. */
KCP_HD static inline struct kcp_cells kcp_cells_make(uint32_t axes, const uint32_t *axis,
                                                     const double *low, const double *high,
                                                     double distance, uint64_t bits,
                                                     uint64_t seed) {
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
  /* The floor keeps cell numbers exact integers. */
  double width = kcp_cell_width(axes, low, high, cells.reach, (double)bits);
  double side = fmax(width * cells.reach, extent * 0x1p-40);
  cells.inverse = side > 0 ? fmin(1 / side, 0x1p1000) : 1;
  /* A coordinate that is constant lies in the middle of a cell: its box touches no other. */
  for (uint32_t j = 0; j < axes; ++j) cells.origin[j] = low[j] - side;
  cells.seed = kcp_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
  cells.multiplier = kcp_mix(cells.seed) | 1;
  cells.word_bits = 1;
  while (cells.word_bits < 32 && UINT64_C(128) << (cells.word_bits - 1) < bits) ++cells.word_bits;
  return cells;
}

#endif

/* Weighted distances of sites and their bounds over cells, one body for host and device.
 *
 * The weighted distance of a point to a site of weight w is d / w (common influence regions,
 * section 2). Sites are ranked by its square, ((dx*dx) + (dy*dy)) / (w*w), in binary64 without
 * contraction, so that distances that are equal in numbers that binary64 holds are equal here.
 *
 * Bounds over a cell are padded by more than all roundings, their own and those of the rank, so
 * that what they decide holds for every point of the cell in exact arithmetic, and for the rank of
 * its centre as computed. They are monotone: those of a cell within another lie within its bounds,
 * bit for bit, since every operation rounds monotonically. What is decided for a cell is therefore
 * decided in the same way for all cells within it, and an answer does not depend on the cell at
 * which it was found. */
#ifndef KCP_INFLUENCE_GEOMETRY_H
#define KCP_INFLUENCE_GEOMETRY_H

#include <stdint.h>

#include "kcp/host_device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A grid of rows x columns cells over a rectangle; its lines are where kcp_grid_line says. */
struct kcp_influence_grid {
  double x0, y0;         /* the corner of least x and y */
  double step_x, step_y; /* sides of a cell */
  uint32_t columns, rows;
};

/* A rectangle in grid coordinates: a cell is [i, i + 1] x [j, j + 1]; parts of cells are fractions
 * with a power of two below. */
struct kcp_cell {
  double left, right, bottom, top;
};

/* Place of the grid line `t`, a whole number or a fraction of a cell; monotone in t. */
KCP_HD static inline double kcp_grid_line(double origin, double step, double t) {
  return origin + t * step;
}

/* The cell in the units of the sites. */
KCP_HD static inline struct kcp_cell kcp_cell_place(const struct kcp_influence_grid *grid,
                                                    struct kcp_cell cell) {
  struct kcp_cell place;
  place.left = kcp_grid_line(grid->x0, grid->step_x, cell.left);
  place.right = kcp_grid_line(grid->x0, grid->step_x, cell.right);
  place.bottom = kcp_grid_line(grid->y0, grid->step_y, cell.bottom);
  place.top = kcp_grid_line(grid->y0, grid->step_y, cell.top);
  return place;
}

/* Its centre, where the paper's method looks. */
KCP_HD static inline double kcp_cell_centre_x(const struct kcp_influence_grid *grid,
                                              struct kcp_cell cell) {
  return kcp_grid_line(grid->x0, grid->step_x, 0.5 * (cell.left + cell.right));
}

KCP_HD static inline double kcp_cell_centre_y(const struct kcp_influence_grid *grid,
                                              struct kcp_cell cell) {
  return kcp_grid_line(grid->y0, grid->step_y, 0.5 * (cell.bottom + cell.top));
}

/* The square of the weighted distance; `squared_weight` is w * w. */
KCP_HD static inline double kcp_weighted_rank(double dx, double dy, double squared_weight) {
  return (dx * dx + dy * dy) / squared_weight;
}

/* 1 / (w * w), which the bounds multiply with. */
KCP_HD static inline double kcp_inverse_square(double squared_weight) {
  return 1.0 / squared_weight;
}

KCP_HD static inline double kcp_gap_least(double at, double low, double high) {
  double below = low - at, above = at - high;
  double gap = below > above ? below : above;
  return gap > 0 ? gap : 0;
}

KCP_HD static inline double kcp_gap_most(double at, double low, double high) {
  double below = at - low, above = high - at;
  return below > above ? below : above;
}

#define KCP_BOUND_PADDING 1.7763568394002505e-15 /* 2^-49 */

/* No point of `place` has a rank below it. */
KCP_HD static inline double kcp_rank_low(double x, double y, double inverse_square,
                                         struct kcp_cell place) {
  double dx = kcp_gap_least(x, place.left, place.right);
  double dy = kcp_gap_least(y, place.bottom, place.top);
  return (dx * dx + dy * dy) * inverse_square * (1.0 - KCP_BOUND_PADDING);
}

/* No point of `place` has a rank above it. */
KCP_HD static inline double kcp_rank_high(double x, double y, double inverse_square,
                                          struct kcp_cell place) {
  double dx = kcp_gap_most(x, place.left, place.right);
  double dy = kcp_gap_most(y, place.bottom, place.top);
  return (dx * dx + dy * dy) * inverse_square * (1.0 + KCP_BOUND_PADDING);
}

/* What a site's region has of a cell: all of it, nothing, or that is not decided. */
enum kcp_cell_share { KCP_CELL_OUTSIDE, KCP_CELL_UNDECIDED, KCP_CELL_INSIDE };

/* `maybe_closer` counts the other sites whose lowest rank over the cell is below the site's
 * highest, `surely_closer` those whose highest is below its lowest. A point belongs to the region
 * when fewer than k sites are closer to it. */
KCP_HD static inline enum kcp_cell_share kcp_share_of(uint64_t maybe_closer, uint64_t surely_closer,
                                                      uint64_t k) {
  if (maybe_closer < k) return KCP_CELL_INSIDE;
  return surely_closer >= k ? KCP_CELL_OUTSIDE : KCP_CELL_UNDECIDED;
}

/* The share of quarter i, 0 to 3, of a cell of uniform density: the four sum to the whole. */
KCP_HD static inline uint64_t kcp_quarter(uint64_t weight, uint32_t i) {
  return (weight >> 2) + (((weight & 3) + i) >> 2);
}

#ifdef __cplusplus
}
#endif
#endif

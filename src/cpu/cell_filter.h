/* The bitmap filter of the global-threshold search (kcp/cells.h) on all cores. Both functions
 * return early, their work undone, once kcp_interrupted() is true. */
#ifndef KCP_CPU_CELL_FILTER_H
#define KCP_CPU_CELL_FILTER_H

#include "point_set.h"

/* How a set meets the cells: through the box around each point, or the cell that holds it. */
enum kcp_cell_touch { KCP_TOUCH_BOX, KCP_TOUCH_POINT };

/* Clears the bitmap (cells->mask + 1 bits, a multiple of 64) and sets the cells that the points
 * touch. With KCP_TOUCH_BOX the points must lie in the box that the cells were made for. */
void kcp_cells_mark(const struct kcp_cells *cells, const struct kcp_point_set *set,
                    enum kcp_cell_touch touch, uint64_t *bitmap);

/* Appends the points that touch a marked cell to `kept` (columns and records; adds to its count).
 * With bitmap NULL every point is kept. There must be room for all of `set`. */
void kcp_cells_probe(const struct kcp_cells *cells, uint32_t dimensions,
                     const struct kcp_point_set *set, enum kcp_cell_touch touch,
                     const uint64_t *bitmap, struct kcp_point_set *kept);

#endif

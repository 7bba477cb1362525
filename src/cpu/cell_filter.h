/* The bitmap filter of the global-threshold search (kcp/cells.h) on all cores. Both functions
 * return early, their work undone, once kcp_interrupted() is true. */
#ifndef KCP_CPU_CELL_FILTER_H
#define KCP_CPU_CELL_FILTER_H

#include "point_set.h"

/* How a set meets the cells: through the box around each point, or the cell that holds it. */
enum kcp_cell_touch { KCP_TOUCH_BOX, KCP_TOUCH_POINT };

/* Clears the bitmaps (2^cells->word_bits words) and marks the cells that the points touch. With
 * KCP_TOUCH_BOX the points must lie in the box that the cells were made for. */
void kcp_cells_mark(const struct kcp_cells *cells, const struct kcp_point_set *set,
                    enum kcp_cell_touch touch, const struct kcp_cell_marks *marks);

/* Appends the points that touch a marked cell to `kept` (columns and records; adds to its count).
 * With marks NULL every point is kept. When kept->count comes out beyond kept->stride, there was no
 * room, and what is kept is of no use. */
void kcp_cells_probe(const struct kcp_cells *cells, uint32_t dimensions,
                     const struct kcp_point_set *set, enum kcp_cell_touch touch,
                     const struct kcp_cell_marks *marks, struct kcp_point_set *kept);

#endif

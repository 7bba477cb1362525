/* The bitmap filter of the global-threshold search (cells.h). */
#ifndef KCP_KERNELS_CELL_FILTER_CUH
#define KCP_KERNELS_CELL_FILTER_CUH

#include "device.cuh"
#include "threshold_points.cuh"

/* How a set meets the cells: through the box around each point, or the cell that holds it. */
enum kcp_cell_touch { KCP_TOUCH_BOX, KCP_TOUCH_POINT };

/* Clears the bitmaps (2^cells->word_bits words) and marks the cells that the points touch. */
enum kcp_status kcp_cells_mark(const struct kcp_cells *cells, const struct kcp_point_set *set,
                               enum kcp_cell_touch touch, const struct kcp_cell_marks *marks,
                               cudaStream_t stream, struct kcp_error *error);

/* Appends the points that touch a marked cell to `kept` (columns and records) behind the *counter
 * points that it holds, and adds to *counter (device). With marks NULL every point is kept. What
 * comes out beyond kept->stride is counted, but not kept. Columns of `set` begin at a multiple of
 * 16 bytes, and its stride is even. */
enum kcp_status kcp_cells_probe(const struct kcp_cells *cells, uint32_t dimensions,
                                const struct kcp_point_set *set, enum kcp_cell_touch touch,
                                const struct kcp_cell_marks *marks,
                                const struct kcp_point_set *kept, unsigned long long *counter,
                                cudaStream_t stream, struct kcp_error *error);

#endif

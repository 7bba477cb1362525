/* Sets of points as the global-threshold search on the CPU passes them on. */
#ifndef KCP_CPU_POINT_SET_H
#define KCP_CPU_POINT_SET_H

#include <stddef.h>
#include <stdint.h>

#include "kcp/cells.h"

/* Columns (`stride` apart), record numbers, and ids once they were looked up. With records NULL,
 * point i is record first_record + i. A view: the engine owns the memory. */
struct kcp_point_set {
  double *columns;
  uint64_t stride;
  uint64_t *records;
  uint64_t *ids;
  uint64_t first_record;
  uint64_t count;
};

static inline uint64_t kcp_set_record(const struct kcp_point_set *set, uint64_t i) {
  return set->records != NULL ? set->records[i] : set->first_record + i;
}

/* The id of point i: where none was looked up, ids ascend as records do. */
static inline uint64_t kcp_set_id(const struct kcp_point_set *set, uint64_t i) {
  return set->ids != NULL ? set->ids[i] : kcp_set_record(set, i);
}

/* The coordinates of point i along the axes of the cells. */
static inline void kcp_set_axes(const struct kcp_point_set *set, const struct kcp_cells *cells,
                                uint64_t i, double *point) {
  for (uint32_t j = 0; j < KCP_MAX_AXES; ++j)
    point[j] = j < cells->axes ? set->columns[cells->axis[j] * set->stride + i] : 0;
}

#endif

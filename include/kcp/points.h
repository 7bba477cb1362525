/* A block of points held as columns.
 *
 * Shapes: `ids` has `count` elements; column j of the coordinates is `coordinates + j * stride`,
 * j < dimensions, each with `count` elements; stride >= count. Units are those of the file.
 * A block either owns its memory (kcp_points_allocate) or is a view into memory of another owner.
 */
#ifndef KCP_POINTS_H
#define KCP_POINTS_H

#include <stdint.h>

#include "kcp/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kcp_points {
  uint64_t count;
  uint64_t stride; /* elements from one coordinate column to the next */
  uint32_t dimensions;
  uint64_t *ids;
  double *coordinates;
};

/* Room for `capacity` points (stride = capacity, count = 0); the caller owns it and calls
 * kcp_points_free. KCP_FAILED when memory is short. */
enum kcp_status kcp_points_allocate(uint64_t capacity, uint32_t dimensions,
                                    struct kcp_points *points, struct kcp_error *error);

/* Frees what kcp_points_allocate took; does nothing to a zeroed block. */
void kcp_points_free(struct kcp_points *points);

static inline double *kcp_points_column(const struct kcp_points *points, uint32_t dimension) {
  return points->coordinates + dimension * points->stride;
}

#ifdef __cplusplus
}
#endif
#endif

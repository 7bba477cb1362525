#include "kcp/points.h"

#include <stdlib.h>
#include <string.h>

enum kcp_status kcp_points_allocate(uint64_t capacity, uint32_t dimensions,
                                    struct kcp_points *points, struct kcp_error *error) {
  memset(points, 0, sizeof *points);
  uint64_t room = capacity > 0 ? capacity : 1;
  uint64_t id_bytes, column_bytes, coordinate_bytes;
  if (__builtin_mul_overflow(room, sizeof(uint64_t), &id_bytes) ||
      __builtin_mul_overflow(room, sizeof(double), &column_bytes) ||
      __builtin_mul_overflow(column_bytes, dimensions, &coordinate_bytes))
    return kcp_out_of_memory(error, "points", UINT64_MAX);
  points->ids = malloc(id_bytes);
  points->coordinates = malloc(coordinate_bytes);
  if (points->ids == NULL || points->coordinates == NULL) {
    kcp_points_free(points);
    return kcp_out_of_memory(error, "points", id_bytes + coordinate_bytes);
  }
  points->stride = room;
  points->dimensions = dimensions;
  return KCP_OK;
}

void kcp_points_free(struct kcp_points *points) {
  free(points->ids);
  free(points->coordinates);
  memset(points, 0, sizeof *points);
}

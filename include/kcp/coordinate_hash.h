/* Keys that coincident points share. One body for C17 and CUDA C++. */
#ifndef KCP_COORDINATE_HASH_H
#define KCP_COORDINATE_HASH_H

#include <stdint.h>

#include "kcp/ordered_bits.h"

/* A hash of the coordinates of point i (columns `stride` apart). Equal points have equal hashes;
 * others may, rarely. */
KCP_HD static inline uint64_t kcp_coordinate_hash(const double *columns, uint64_t stride,
                                                  uint32_t dimensions, uint64_t i) {
  uint64_t hash = 0;
  for (uint32_t j = 0; j < dimensions; ++j) {
    hash = (hash ^ kcp_ordered_bits(columns[j * stride + i])) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 32;
  }
  return hash;
}

#endif

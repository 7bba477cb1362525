/* Doubles as unsigned integers of the same order. One body for C17 and CUDA C++. */
#ifndef KCP_ORDERED_BITS_H
#define KCP_ORDERED_BITS_H

#include <stdint.h>
#include <string.h>

#include "kcp/host_device.h"

/* Unsigned integers in the order of finite doubles; -0 and +0 become equal. */
KCP_HD static inline uint64_t kcp_ordered_bits(double value) {
  double normal = value + 0.0;
  uint64_t bits;
  memcpy(&bits, &normal, sizeof bits);
  return bits ^ ((bits >> 63) != 0 ? UINT64_MAX : UINT64_C(1) << 63);
}

KCP_HD static inline double kcp_from_ordered_bits(uint64_t ordered) {
  uint64_t bits = ordered ^ ((ordered >> 63) != 0 ? UINT64_C(1) << 63 : UINT64_MAX);
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

#endif

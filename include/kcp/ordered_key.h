/* Values of an array as unsigned keys in the order of a top-k query: the first value has the
 * smallest key. One body for C17 and CUDA C++.
 *
 * A value is first "directed": its bits are flipped so that, compared as what they are (float,
 * double, signed integers), smaller comes first. This is one exclusive-or, and what the inner loops
 * do. The key is made of the directed bits where they are needed:
 * - zeros have one key: -0 equals +0, and a key turns back into +0;
 * - NaN of either sign has the largest key of all, KCP_NAN_KEY_32 or KCP_NAN_KEY_64, which no other
 *   float or double has (integers use every key).
 * Types of 32 bits have keys of 32 bits, kept in 64 where both are handled alike. */
#ifndef KCP_ORDERED_KEY_H
#define KCP_ORDERED_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "kcp/host_device.h"

enum kcp_value_type {
  KCP_VALUE_F32,
  KCP_VALUE_F64,
  KCP_VALUE_I32,
  KCP_VALUE_U32,
  KCP_VALUE_I64,
  KCP_VALUE_TYPES
};

enum kcp_value_order { KCP_LARGEST_FIRST, KCP_SMALLEST_FIRST };

#define KCP_NAN_KEY_32 UINT32_MAX
#define KCP_NAN_KEY_64 UINT64_MAX

KCP_HD static inline uint32_t kcp_value_bytes(enum kcp_value_type type) {
  return type == KCP_VALUE_F64 || type == KCP_VALUE_I64 ? 8 : 4;
}

KCP_HD static inline bool kcp_value_is_float(enum kcp_value_type type) {
  return type == KCP_VALUE_F32 || type == KCP_VALUE_F64;
}

/* What directs the bits of a value: directed = bits ^ flip. Directed integers are signed. */
KCP_HD static inline uint64_t kcp_direction_flip(enum kcp_value_type type,
                                                 enum kcp_value_order order) {
  const bool reverse = order == KCP_LARGEST_FIRST;
  switch (type) {
    case KCP_VALUE_F32: return reverse ? UINT64_C(0x80000000) : 0;
    case KCP_VALUE_I32: return reverse ? UINT64_C(0xffffffff) : 0;
    case KCP_VALUE_U32: return reverse ? UINT64_C(0x7fffffff) : UINT64_C(0x80000000);
    case KCP_VALUE_F64: return reverse ? UINT64_C(1) << 63 : 0;
    default: return reverse ? UINT64_MAX : 0;
  }
}

/* Keys of directed bits, and back. The key of NaN has no way back but to some NaN. */
KCP_HD static inline uint32_t kcp_key_of_f32(uint32_t directed) {
  const uint32_t magnitude = directed & UINT32_C(0x7fffffff);
  if (magnitude > UINT32_C(0x7f800000)) return KCP_NAN_KEY_32;
  if (magnitude == 0) directed = 0;
  return directed ^ ((directed >> 31) != 0 ? UINT32_MAX : UINT32_C(0x80000000));
}

KCP_HD static inline uint32_t kcp_f32_of_key(uint32_t key) {
  return key ^ ((key >> 31) != 0 ? UINT32_C(0x80000000) : UINT32_MAX);
}

KCP_HD static inline uint64_t kcp_key_of_f64(uint64_t directed) {
  const uint64_t magnitude = directed & (UINT64_MAX >> 1);
  if (magnitude > UINT64_C(0x7ff0000000000000)) return KCP_NAN_KEY_64;
  if (magnitude == 0) directed = 0;
  return directed ^ ((directed >> 63) != 0 ? UINT64_MAX : UINT64_C(1) << 63);
}

KCP_HD static inline uint64_t kcp_f64_of_key(uint64_t key) {
  return key ^ ((key >> 63) != 0 ? UINT64_C(1) << 63 : UINT64_MAX);
}

KCP_HD static inline uint32_t kcp_key_of_i32(uint32_t directed) {
  return directed ^ UINT32_C(0x80000000);
}

KCP_HD static inline uint64_t kcp_key_of_i64(uint64_t directed) {
  return directed ^ UINT64_C(1) << 63;
}

/* The largest key that is not NaN's: of +inf in the direction of the order, or of the last integer.
 */
#define KCP_LAST_KEY_F32 UINT32_C(0xff800000)
#define KCP_LAST_KEY_F64 UINT64_C(0xfff0000000000000)

/* The key of a value given by its bits (zero-extended), for any type. */
KCP_HD static inline uint64_t kcp_ordered_key(enum kcp_value_type type, enum kcp_value_order order,
                                              uint64_t bits) {
  const uint64_t directed = bits ^ kcp_direction_flip(type, order);
  switch (type) {
    case KCP_VALUE_F32: return kcp_key_of_f32((uint32_t)directed);
    case KCP_VALUE_F64: return kcp_key_of_f64(directed);
    case KCP_VALUE_I64: return kcp_key_of_i64(directed);
    default: return kcp_key_of_i32((uint32_t)directed);
  }
}

/* The bits of the value that has this key; +0 for either zero. */
KCP_HD static inline uint64_t kcp_ordered_value(enum kcp_value_type type,
                                                enum kcp_value_order order, uint64_t key) {
  const uint64_t flip = kcp_direction_flip(type, order);
  uint64_t bits;
  switch (type) {
    case KCP_VALUE_F32:
      bits = kcp_f32_of_key((uint32_t)key) ^ flip;
      return bits == UINT64_C(0x80000000) ? 0 : bits;
    case KCP_VALUE_F64:
      bits = kcp_f64_of_key(key) ^ flip;
      return bits == UINT64_C(1) << 63 ? 0 : bits;
    case KCP_VALUE_I64: return kcp_key_of_i64(key) ^ flip;
    default: return kcp_key_of_i32((uint32_t)key) ^ flip;
  }
}

/* Whether the key is that of NaN. */
KCP_HD static inline bool kcp_key_is_nan(enum kcp_value_type type, uint64_t key) {
  if (type == KCP_VALUE_F32) return key == KCP_NAN_KEY_32;
  return type == KCP_VALUE_F64 && key == KCP_NAN_KEY_64;
}

#endif

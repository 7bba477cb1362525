#include "value_scan.h"

#include <string.h>

#include "vectors.h"

enum { BLOCK = 256 };

struct kcp_ranked_key kcp_no_limit(enum kcp_value_type type) {
  struct kcp_ranked_key limit = {UINT64_MAX, UINT64_MAX};
  if (type == KCP_VALUE_F32) limit.key = KCP_LAST_KEY_F32;
  if (type == KCP_VALUE_F64) limit.key = KCP_LAST_KEY_F64;
  if (type == KCP_VALUE_I32 || type == KCP_VALUE_U32) limit.key = UINT32_MAX;
  return limit;
}

/* The loops of one class of values. RAW: its bits; NATIVE: what directed bits are compared as;
 * MASK: an integer as wide, so that comparisons and sums stay in one vector width. */
#define DEFINE_LOOPS(NAME, RAW, NATIVE, MASK, KEY_OF, RAW_OF_KEY)                             \
  static inline __attribute__((always_inline))                                                \
  NATIVE directed_##NAME(const RAW *values, uint64_t i, RAW flip) {                           \
    RAW bits = values[i] ^ flip;                                                              \
    NATIVE value;                                                                             \
    memcpy(&value, &bits, sizeof value);                                                      \
    return value;                                                                             \
  }                                                                                           \
                                                                                              \
  KCP_WIDEST_VECTORS                                                                          \
  static uint64_t to_keys_##NAME(const RAW *values, uint64_t count, RAW flip,                 \
                                 uint64_t first_index, struct kcp_ranked_key *keys) {         \
    uint64_t nan_count = 0;                                                                   \
    for (uint64_t i = 0; i < count; ++i) {                                                    \
      NATIVE value = directed_##NAME(values, i, flip);                                        \
      nan_count += value != value;                                                            \
      keys[i].key = KEY_OF((RAW)(values[i] ^ flip));                                          \
      keys[i].index = first_index + i;                                                        \
    }                                                                                         \
    return nan_count;                                                                         \
  }                                                                                           \
                                                                                              \
  KCP_WIDEST_VECTORS                                                                          \
  static uint64_t count_##NAME(const RAW *values, uint64_t count, RAW flip, RAW key) {        \
    RAW key_bits = RAW_OF_KEY(key);                                                           \
    NATIVE wanted;                                                                            \
    memcpy(&wanted, &key_bits, sizeof wanted);                                                \
    uint64_t equal = 0;                                                                       \
    for (uint64_t i = 0; i < count; ++i) equal += directed_##NAME(values, i, flip) == wanted; \
    return equal;                                                                             \
  }                                                                                           \
                                                                                              \
  /* Whether all values lie behind the limit's. */                                            \
  static inline __attribute__((always_inline)) bool all_behind_##NAME(                        \
      const RAW *values, uint64_t count, RAW flip, NATIVE limit) {                            \
    MASK others = 0;                                                                          \
    for (uint64_t i = 0; i < count; ++i)                                                      \
      others |= -(MASK) !(directed_##NAME(values, i, flip) > limit);                          \
    return others == 0;                                                                       \
  }                                                                                           \
                                                                                              \
  static inline __attribute__((always_inline)) void scan_block_##NAME(                        \
      struct kcp_value_scan *scan, const RAW *values, uint64_t count, uint64_t first_index,   \
      RAW flip, NATIVE limit) {                                                               \
    MASK before = 0, equal = 0, nan_count = 0;                                                \
    for (uint64_t i = 0; i < count; ++i) {                                                    \
      NATIVE value = directed_##NAME(values, i, flip);                                        \
      before += value < limit;                                                                \
      equal += value == limit;                                                                \
      nan_count += value != value;                                                            \
    }                                                                                         \
    scan->nan_count += (uint64_t)nan_count;                                                   \
    scan->equal += (uint64_t)equal;                                                           \
    if (before == 0 && (equal == 0 || first_index >= scan->limit.index)) return;              \
    for (uint64_t i = 0; i < count; ++i) {                                                    \
      NATIVE value = directed_##NAME(values, i, flip);                                        \
      bool ties = value == limit && first_index + i < scan->limit.index;                      \
      if (!(value < limit || ties)) continue;                                                 \
      scan->items[scan->count].key = KEY_OF((RAW)(values[i] ^ flip));                         \
      scan->items[scan->count++].index = first_index + i;                                     \
      scan->equal -= ties;                                                                    \
    }                                                                                         \
  }                                                                                           \
                                                                                              \
  KCP_WIDEST_VECTORS                                                                          \
  static uint64_t scan_##NAME(struct kcp_value_scan *scan, const RAW *values, uint64_t count, \
                              uint64_t first_index, RAW flip) {                               \
    RAW limit_bits = RAW_OF_KEY((RAW)scan->limit.key);                                        \
    NATIVE limit;                                                                             \
    memcpy(&limit, &limit_bits, sizeof limit);                                                \
    uint64_t done = 0;                                                                        \
    while (done < count && scan->count <= scan->most) {                                       \
      uint64_t here = count - done < BLOCK ? count - done : BLOCK;                            \
      if (!all_behind_##NAME(values + done, here, flip, limit))                               \
        scan_block_##NAME(scan, values + done, here, first_index + done, flip, limit);        \
      done += here;                                                                           \
    }                                                                                         \
    return done;                                                                              \
  }

DEFINE_LOOPS(f32, uint32_t, float, int32_t, kcp_key_of_f32, kcp_f32_of_key)
DEFINE_LOOPS(f64, uint64_t, double, int64_t, kcp_key_of_f64, kcp_f64_of_key)
DEFINE_LOOPS(i32, uint32_t, int32_t, int32_t, kcp_key_of_i32, kcp_key_of_i32)
DEFINE_LOOPS(i64, uint64_t, int64_t, int64_t, kcp_key_of_i64, kcp_key_of_i64)

uint64_t kcp_values_to_keys(enum kcp_value_type type, enum kcp_value_order order,
                            const void *values, uint64_t count, uint64_t first_index,
                            struct kcp_ranked_key *keys) {
  const uint64_t flip = kcp_direction_flip(type, order);
  switch (type) {
    case KCP_VALUE_F32: return to_keys_f32(values, count, (uint32_t)flip, first_index, keys);
    case KCP_VALUE_F64: return to_keys_f64(values, count, flip, first_index, keys);
    case KCP_VALUE_I64: return to_keys_i64(values, count, flip, first_index, keys);
    default: return to_keys_i32(values, count, (uint32_t)flip, first_index, keys);
  }
}

uint64_t kcp_count_values(enum kcp_value_type type, enum kcp_value_order order, const void *values,
                          uint64_t count, uint64_t key) {
  const uint64_t flip = kcp_direction_flip(type, order);
  switch (type) {
    case KCP_VALUE_F32: return count_f32(values, count, (uint32_t)flip, (uint32_t)key);
    case KCP_VALUE_F64: return count_f64(values, count, flip, key);
    case KCP_VALUE_I64: return count_i64(values, count, flip, key);
    default: return count_i32(values, count, (uint32_t)flip, (uint32_t)key);
  }
}

uint64_t kcp_scan_values(struct kcp_value_scan *scan, const void *values, uint64_t count,
                         uint64_t first_index) {
  const uint64_t flip = kcp_direction_flip(scan->type, scan->order);
  switch (scan->type) {
    case KCP_VALUE_F32: return scan_f32(scan, values, count, first_index, (uint32_t)flip);
    case KCP_VALUE_F64: return scan_f64(scan, values, count, first_index, flip);
    case KCP_VALUE_I64: return scan_i64(scan, values, count, first_index, flip);
    default: return scan_i32(scan, values, count, first_index, (uint32_t)flip);
  }
}

/* Values, keys and items of a top-k on the device.
 *
 * A codec stands for a class of values (integers of a width share one: the flip of ordered_key.h
 * directs them). An item is a key with an index of 32 bits below it: all items of an array are
 * distinct, and their order as unsigned integers is the order of the answer. Selection and sorting
 * work on items alone. */
#ifndef KCP_KERNELS_VALUE_CODEC_CUH
#define KCP_KERNELS_VALUE_CODEC_CUH

#include <cstdint>

#include "kcp/ordered_key.h"

typedef unsigned __int128 kcp_wide_item; /* of 64-bit keys */

struct kcp_codec_f32 {
  typedef uint32_t raw;
  typedef float native;
  typedef uint32_t key;
  typedef uint64_t item;
  static const key last_key = KCP_LAST_KEY_F32;
  __device__ static native directed(raw bits, raw flip) {
    return __uint_as_float(bits ^ flip);
  }
  __device__ static native native_of(key k) {
    return __uint_as_float(kcp_f32_of_key(k));
  }
  __device__ static key key_of(native value) {
    return kcp_key_of_f32(__float_as_uint(value));
  }
};

struct kcp_codec_f64 {
  typedef uint64_t raw;
  typedef double native;
  typedef uint64_t key;
  typedef kcp_wide_item item;
  static const key last_key = KCP_LAST_KEY_F64;
  __device__ static native directed(raw bits, raw flip) {
    return __longlong_as_double((long long)(bits ^ flip));
  }
  __device__ static native native_of(key k) {
    return __longlong_as_double((long long)kcp_f64_of_key(k));
  }
  __device__ static key key_of(native value) {
    return kcp_key_of_f64((uint64_t)__double_as_longlong(value));
  }
};

struct kcp_codec_i32 {
  typedef uint32_t raw;
  typedef int32_t native;
  typedef uint32_t key;
  typedef uint64_t item;
  static const key last_key = UINT32_MAX;
  __device__ static native directed(raw bits, raw flip) {
    return (native)(bits ^ flip);
  }
  __device__ static native native_of(key k) {
    return (native)kcp_key_of_i32(k);
  }
  __device__ static key key_of(native value) {
    return kcp_key_of_i32((raw)value);
  }
};

struct kcp_codec_i64 {
  typedef uint64_t raw;
  typedef int64_t native;
  typedef uint64_t key;
  typedef kcp_wide_item item;
  static const key last_key = UINT64_MAX;
  __device__ static native directed(raw bits, raw flip) {
    return (native)(bits ^ flip);
  }
  __device__ static native native_of(key k) {
    return (native)kcp_key_of_i64(k);
  }
  __device__ static key key_of(native value) {
    return kcp_key_of_i64((raw)value);
  }
};

/* NaN is the one value that differs from itself. */
template <typename Native>
__device__ bool kcp_is_nan(Native value) {
  return value != value;
}

/* Before no item; pads what is short. No item is as large: indices stay below 2^32 - 1. */
template <typename Item>
__host__ __device__ constexpr Item kcp_padding_item() {
  return ~(Item)0;
}

template <typename Codec>
__host__ __device__ typename Codec::item kcp_item_of(typename Codec::key key, uint32_t index) {
  return (typename Codec::item)key << 32 | index;
}

template <typename Codec>
__host__ __device__ typename Codec::key kcp_key_of_item(typename Codec::item item) {
  return (typename Codec::key)(item >> 32);
}

/* The bound that every item but NaN is before. */
template <typename Codec>
__host__ __device__ typename Codec::item kcp_open_bound() {
  return kcp_item_of<Codec>(Codec::last_key, UINT32_MAX);
}

/* Calls FUNCTION<codec of `type`>ARGUMENTS. */
#define KCP_WITH_CODEC(TYPE, RESULT, FUNCTION, ...)                         \
  switch (TYPE) {                                                           \
    case KCP_VALUE_F32: RESULT FUNCTION<kcp_codec_f32>(__VA_ARGS__); break; \
    case KCP_VALUE_F64: RESULT FUNCTION<kcp_codec_f64>(__VA_ARGS__); break; \
    case KCP_VALUE_I64: RESULT FUNCTION<kcp_codec_i64>(__VA_ARGS__); break; \
    default: RESULT FUNCTION<kcp_codec_i32>(__VA_ARGS__); break;            \
  }

#endif

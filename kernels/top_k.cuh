/* The three ways to a top-k on the device, over arrays that lie there. The engine (top_k.cu) brings
 * the values, batch by batch, and takes the results. */
#ifndef KCP_KERNELS_TOP_K_CUH
#define KCP_KERNELS_TOP_K_CUH

#include "device.cuh"
#include "kcp/top_k.h"
#include "value_codec.cuh"

/* Values of a batch at most: indices on the device have 32 bits. */
#define KCP_LARGEST_BATCH (UINT64_C(1) << 30)

/* The largest batch that a search will see, and the device. */
struct kcp_top_k_shape {
  enum kcp_value_type type;
  enum kcp_value_order order;
  uint64_t k; /* <= columns */
  uint64_t rows, columns;
  uint32_t multiprocessors;
  uint32_t shared_bytes; /* a block may have */
};

/* Bytes of an item (value_codec.cuh) of its type. */
static inline uint64_t kcp_item_bytes(const struct kcp_top_k_shape *shape) {
  return kcp_value_bytes(shape->type) == 8 ? sizeof(kcp_wide_item) : sizeof(uint64_t);
}

/* How many low bits hold the value. */
static inline int kcp_bits_of(uint64_t value) {
  int bits = 0;
  while (bits < 64 && value >> bits != 0) ++bits;
  return bits;
}

/* Rows of values in device memory, aligned as their type. A batch is whole rows, or a part of one
 * row; then a limit may be given. */
struct kcp_top_k_batch {
  const void *values;
  uint64_t rows, columns;
  bool limited; /* values with limit_key or behind it are not needed */
  uint64_t limit_key;
};

/* What is known of a row when all is done. */
struct kcp_row_outcome {
  unsigned long long count; /* of the results */
  unsigned long long equal; /* values with the key of the last */
  unsigned long long nan_count;
  unsigned long long limited; /* not 0: values at or behind limit_key may be missing */
  unsigned long long limit_key;
  unsigned long long limit_equal; /* values with limit_key */
  unsigned long long misled;      /* not 0: the results are void, see relaunch */
};

/* Device memory of the results: place j of row r at r * width + j, width = min(k, columns). */
struct kcp_top_k_results {
  void *keys; /* of 4 or 8 bytes, as the type */
  uint32_t *indices;
  struct kcp_row_outcome *outcomes;
};

struct kcp_top_k_device_method {
  /* Whether it takes batches of several rows. */
  bool (*takes_rows)(const struct kcp_top_k_shape *shape);
  /* Device memory that create takes. */
  uint64_t (*bytes)(const struct kcp_top_k_shape *shape);
  enum kcp_status (*create)(const struct kcp_top_k_shape *shape, struct kcp_device_memory *memory,
                            void **state, struct kcp_error *error);
  /* Queues the search of a batch no larger than the shape. */
  enum kcp_status (*launch)(void *state, const struct kcp_top_k_batch *batch,
                            const struct kcp_top_k_results *results, cudaStream_t stream,
                            struct kcp_error *error);
  /* The search of a row whose outcome said that it was misled; never is again. May be NULL. */
  enum kcp_status (*relaunch)(void *state, const struct kcp_top_k_batch *batch,
                              const struct kcp_top_k_results *results, cudaStream_t stream,
                              struct kcp_error *error);
  /* Completes the outcomes by what the certificate alone needs. */
  enum kcp_status (*certify)(void *state, const struct kcp_top_k_batch *batch,
                             const struct kcp_top_k_results *results, cudaStream_t stream,
                             struct kcp_error *error);
  void (*destroy)(void *state); /* NULL is allowed */
};

extern const struct kcp_top_k_device_method kcp_top_k_by_sort;    /* top_k_sort.cu */
extern const struct kcp_top_k_device_method kcp_top_k_by_bitonic; /* top_k_bitonic.cu */
extern const struct kcp_top_k_device_method kcp_top_k_by_select;  /* top_k_select.cu */

/* Stable sort of pairs of a key and 32 bits by the lowest `bits` of the key (top_k_sort.cu). The
 * arrays change places so that [0] is sorted. */
struct kcp_pair_arrays {
  void *keys[2];
  uint32_t *values[2];
  void *scratch;
  size_t scratch_bytes;
};
enum kcp_status kcp_pair_sort_bytes(uint32_t key_bytes, uint64_t count, size_t *bytes,
                                    struct kcp_error *error);
enum kcp_status kcp_sort_pairs(struct kcp_pair_arrays *arrays, uint32_t key_bytes, uint64_t count,
                               int bits, cudaStream_t stream, struct kcp_error *error);

/* Sorts `count` of the values alone, of which only the lowest bits differ from 0. */
enum kcp_status kcp_sort_values(struct kcp_pair_arrays *arrays, uint64_t count, int bits,
                                cudaStream_t stream, struct kcp_error *error);

/* Counts the values with the last key of each row into its outcome: one more read. */
enum kcp_status kcp_count_equal(const struct kcp_top_k_shape *shape,
                                const struct kcp_top_k_batch *batch,
                                const struct kcp_top_k_results *results, cudaStream_t stream,
                                struct kcp_error *error);

#endif

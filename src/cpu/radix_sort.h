/* Parallel stable sort of indices by a key of 64 bits (CPU). */
#ifndef KCP_CPU_RADIX_SORT_H
#define KCP_CPU_RADIX_SORT_H

#include <stdint.h>

#include "kcp/status.h"

struct kcp_radix_counts; /* of each worker and digit */

/* Scratch for up to `capacity` keys; owned by the caller. */
struct kcp_radix_sorter {
  uint64_t capacity;
  uint64_t *keys[2];
  uint32_t *indices[2];
  struct kcp_radix_counts *counts;
};

enum kcp_status kcp_radix_sorter_create(uint64_t capacity, struct kcp_radix_sorter *sorter,
                                        struct kcp_error *error);
void kcp_radix_sorter_free(struct kcp_radix_sorter *sorter);

/* The order of `count` finite keys, ascending, equal keys in their order of input: the result
 * (valid until the next call) lists their indices. count <= capacity and < 2^32. */
const uint32_t *kcp_radix_sort(struct kcp_radix_sorter *sorter, const double *keys, uint64_t count);

/* The same for unsigned keys, which the caller has put into sorter->keys[0]. *sorted, when not
 * NULL, becomes the keys in order. */
const uint32_t *kcp_radix_sort_keys(struct kcp_radix_sorter *sorter, uint64_t count,
                                    const uint64_t **sorted);

/* Sorts on: entry i of sorter->keys[0] is the key of order[i], and `order` is rearranged by them,
 * equal keys in their order so far. */
void kcp_radix_sort_on(struct kcp_radix_sorter *sorter, uint64_t count, uint32_t *order);

#endif

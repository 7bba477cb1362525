/* The three ways to a top-k on the CPU, and what they share. */
#ifndef KCP_CPU_TOP_K_METHODS_H
#define KCP_CPU_TOP_K_METHODS_H

#include <stddef.h>

#include "kcp/top_k.h"
#include "value_scan.h"

/* Values first .. first + count - 1 of the source, a row or a part of one; the first of them has
 * index first_index in its row. */
struct kcp_value_range {
  const struct kcp_value_source *source;
  uint64_t first;
  uint64_t count;
  uint64_t first_index;
};

/* The first min(k, values that are not NaN) of a range, in order. */
struct kcp_range_answer {
  struct kcp_ranked_key *items; /* the caller frees them */
  uint64_t count;
  uint64_t equal; /* values of the range with the key of the last item */
  uint64_t nan_count;
};

typedef enum kcp_status kcp_cpu_top_k(const struct kcp_top_k_plan *plan,
                                      const struct kcp_value_range *range,
                                      struct kcp_range_answer *answer, struct kcp_error *error);

kcp_cpu_top_k kcp_cpu_top_k_sort;
kcp_cpu_top_k kcp_cpu_top_k_bitonic;
kcp_cpu_top_k kcp_cpu_top_k_select;

/* Bytes of working memory for each value of a range; 0 when the method reads it piece by piece. */
uint64_t kcp_cpu_top_k_bitonic_bytes(uint64_t k, uint64_t count);
uint64_t kcp_cpu_top_k_select_bytes(uint64_t k, uint64_t count);
#define KCP_CPU_SORT_BYTES (2 * sizeof(struct kcp_ranked_key))

/* Reads go by pieces that stay in a core's cache. */
#define KCP_PIECE_BYTES (256u * 1024u)

/* Threads that are worth their start for so many values; 1 inside a parallel region. */
int kcp_workers_for(uint64_t count);

/* Reads a range on `workers` threads, each a share in order of index, and calls `use` for every
 * piece with the thread's state: states + worker * state_bytes. */
typedef void kcp_piece_user(void *state, const void *values, uint64_t count, uint64_t first_index);
enum kcp_status kcp_read_pieces(const struct kcp_value_range *range, enum kcp_value_type type,
                                kcp_piece_user *use, void *states, size_t state_bytes, int workers,
                                struct kcp_error *error);

/* All keys of a range, NaN included. */
enum kcp_status kcp_read_keys(const struct kcp_top_k_plan *plan,
                              const struct kcp_value_range *range, struct kcp_ranked_key *keys,
                              uint64_t *nan_count, struct kcp_error *error);

/* Values of the range with this key, read once more. */
enum kcp_status kcp_count_key(const struct kcp_top_k_plan *plan,
                              const struct kcp_value_range *range, uint64_t key, uint64_t *equal,
                              struct kcp_error *error);

/* Moves the limit of a scan forward; `left_out` items with the new limit's key were dropped just
 * now. From then on scan->equal counts the values with that key that are not among the items. */
void kcp_scan_tighten(struct kcp_value_scan *scan, struct kcp_ranked_key limit, uint64_t left_out);

/* Values with this key that the scan has seen: those among `count` items and those left out. The
 * key is not behind the limit's. */
uint64_t kcp_scan_count_key(const struct kcp_value_scan *scan, const struct kcp_ranked_key *items,
                            uint64_t count, uint64_t key);

#endif

/* The inner loops over plain values (CPU): conversion to keys, and the scan for values before a
 * limit. */
#ifndef KCP_CPU_VALUE_SCAN_H
#define KCP_CPU_VALUE_SCAN_H

#include "kcp/top_k_carry.h"

/* The limit that lets every value but NaN pass. */
struct kcp_ranked_key kcp_no_limit(enum kcp_value_type type);

/* Keys of `count` values with indices from first_index on, NaN included. Returns how many are NaN.
 */
uint64_t kcp_values_to_keys(enum kcp_value_type type, enum kcp_value_order order,
                            const void *values, uint64_t count, uint64_t first_index,
                            struct kcp_ranked_key *keys);

/* How many of `count` values have this key, which is not NaN's. */
uint64_t kcp_count_values(enum kcp_value_type type, enum kcp_value_order order, const void *values,
                          uint64_t count, uint64_t key);

/* A scan: what it looks for and what it found so far. */
struct kcp_value_scan {
  enum kcp_value_type type;
  enum kcp_value_order order;
  struct kcp_ranked_key limit;  /* values at or behind it do not pass */
  struct kcp_ranked_key *items; /* those that passed; room for the values of one call more */
  uint64_t count;
  uint64_t most;  /* a call ends early when there are more items */
  uint64_t equal; /* values that did not pass and have the limit's key */
  uint64_t nan_count;
};

/* Scans values with indices from first_index on; returns how many it looked at. */
uint64_t kcp_scan_values(struct kcp_value_scan *scan, const void *values, uint64_t count,
                         uint64_t first_index);

#endif

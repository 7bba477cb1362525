/* Sums of weight by pair of selected groups on the device: a matrix while the pairs are few, else
 * a hash table. */
#ifndef KCP_KERNELS_INFLUENCE_TABLE_CUH
#define KCP_KERNELS_INFLUENCE_TABLE_CUH

#include "influence_sites.cuh"

/* What cells add to a pair, as in src/cpu/pair_table.h. */
struct kcp_device_pair_weight {
  unsigned long long sure, unsure, centre;
};

struct kcp_device_pair_table {
  unsigned long long *keys; /* NULL: a matrix, slot = number of p * columns + number of q */
  uint32_t columns;
  uint64_t slots; /* of a hash table, a power of two */
  struct kcp_device_pair_weight *weights;
  uint32_t *overflowed; /* set when a pair found no slot */
};

static const unsigned long long kcp_no_pair = UINT64_MAX;
static const uint32_t kcp_longest_probe = 256;

/* Two selected groups. */
struct kcp_group_pair {
  uint32_t p, q;
};

__device__ static inline uint64_t kcp_find_pair_slot(const struct kcp_device_pair_table table,
                                                     const struct kcp_group_pair pair) {
  const unsigned long long key = (unsigned long long)pair.p << 32 | pair.q;
  const uint64_t hash = key * UINT64_C(0x9E3779B97F4A7C15);
  uint64_t slot = (hash ^ hash >> 32) & (table.slots - 1);
  for (uint32_t probe = 0; probe < kcp_longest_probe; ++probe) {
    unsigned long long found = *(volatile unsigned long long *)&table.keys[slot];
    if (found == kcp_no_pair) found = atomicCAS(&table.keys[slot], kcp_no_pair, key);
    if (found == key || found == kcp_no_pair) return slot;
    slot = (slot + 1) & (table.slots - 1);
  }
  *table.overflowed = 1;
  return UINT64_MAX;
}

__device__ static inline void kcp_add_to_pair(const struct kcp_device_pair_table table,
                                              const struct kcp_device_sites p_sites,
                                              const struct kcp_device_sites q_sites,
                                              const struct kcp_group_pair pair,
                                              const struct kcp_device_pair_weight weight) {
  const uint64_t slot =
      table.keys == NULL ? (uint64_t)p_sites.number[pair.p] * table.columns + q_sites.number[pair.q]
                         : kcp_find_pair_slot(table, pair);
  if (slot == UINT64_MAX) return;
  struct kcp_device_pair_weight *sum = &table.weights[slot];
  if (weight.sure > 0) atomicAdd(&sum->sure, weight.sure);
  if (weight.unsure > 0) atomicAdd(&sum->unsure, weight.unsure);
  if (weight.centre > 0) atomicAdd(&sum->centre, weight.centre);
}

/* A table with the memory it owns: kcp_device_memory_free(&memory). */
struct kcp_pair_store {
  struct kcp_device_pair_table table;
  struct kcp_device_memory memory;
};

enum kcp_status kcp_pair_store_create(const struct kcp_device_sites sites[2],
                                      struct kcp_pair_store *store, struct kcp_error *error);
enum kcp_status kcp_pair_store_clear(const struct kcp_pair_store *store, cudaStream_t stream,
                                     struct kcp_error *error);
/* Behind the kernels that add: waits, and enlarges a table that was too small. */
enum kcp_status kcp_pair_store_check(struct kcp_pair_store *store, bool *complete,
                                     cudaStream_t stream, struct kcp_error *error);
/* The pairs with an upper bound above 0, sorted, on the host; sums->pairs is new. *device_bytes
 * becomes what that took on the device. `sets` are those of `sites`. */
enum kcp_status kcp_pair_store_collect(const struct kcp_pair_store *store,
                                       const struct kcp_site_groups *const sets[2],
                                       const struct kcp_device_sites sites[2],
                                       struct kcp_influence_sums *sums,
                                       struct kcp_measurement *measurement, uint64_t *device_bytes,
                                       cudaStream_t stream, struct kcp_error *error);

#endif

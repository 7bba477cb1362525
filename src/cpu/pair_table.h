/* Sums of weight by pair of groups: a hash table of one thread, and the sorted union of several. */
#ifndef KCP_CPU_PAIR_TABLE_H
#define KCP_CPU_PAIR_TABLE_H

#include "kcp/influence.h"

/* What cells add to a pair. */
struct kcp_pair_weight {
  uint64_t sure;   /* of cells within both regions */
  uint64_t unsure; /* of cells that are not, but of which no part is known to lie outside */
  uint64_t centre; /* of the unsure ones, those whose centre lies in both */
};

struct kcp_pair_table {
  uint64_t slots; /* a power of two, or 0 at first */
  uint64_t count;
  uint64_t *keys;
  struct kcp_pair_weight *weights;
};

/* The weights of a pair, 0 when it is new; valid until the next call. NULL when memory is short. */
struct kcp_pair_weight *kcp_pair_table_at(struct kcp_pair_table *table, uint32_t p, uint32_t q);
void kcp_pair_table_free(struct kcp_pair_table *table);

/* The pairs of all tables with an upper bound above 0. */
enum kcp_status kcp_pair_tables_collect(const struct kcp_pair_table *const *tables, uint32_t count,
                                        struct kcp_influence_sums *sums, struct kcp_error *error);

#endif

#include "pair_table.h"

#include <stdlib.h>
#include <string.h>

#include "radix_sort.h"

#define FIRST_SLOTS 1024
#define EMPTY UINT64_MAX /* no pair: groups are numbered below 2^32 - 1 */

static uint64_t key_of(uint32_t p, uint32_t q) {
  return (uint64_t)p << 32 | q;
}

static uint64_t slot_of(const struct kcp_pair_table *table, uint64_t key) {
  uint64_t hash = key * UINT64_C(0x9E3779B97F4A7C15);
  uint64_t slot = (hash ^ hash >> 32) & (table->slots - 1);
  while (table->keys[slot] != EMPTY && table->keys[slot] != key)
    slot = (slot + 1) & (table->slots - 1);
  return slot;
}

static bool grow(struct kcp_pair_table *table) {
  struct kcp_pair_table larger = {.slots = table->slots > 0 ? 2 * table->slots : FIRST_SLOTS,
                                  .count = table->count};
  larger.keys = malloc(larger.slots * sizeof *larger.keys);
  larger.weights = calloc(larger.slots, sizeof *larger.weights);
  if (larger.keys == NULL || larger.weights == NULL) {
    kcp_pair_table_free(&larger);
    return false;
  }
  memset(larger.keys, 0xff, larger.slots * sizeof *larger.keys);
  for (uint64_t i = 0; i < table->slots; ++i) {
    if (table->keys[i] == EMPTY) continue;
    uint64_t slot = slot_of(&larger, table->keys[i]);
    larger.keys[slot] = table->keys[i];
    larger.weights[slot] = table->weights[i];
  }
  kcp_pair_table_free(table);
  *table = larger;
  return true;
}

struct kcp_pair_weight *kcp_pair_table_at(struct kcp_pair_table *table, uint32_t p, uint32_t q) {
  if (2 * table->count >= table->slots && !grow(table)) return NULL;
  const uint64_t key = key_of(p, q);
  const uint64_t slot = slot_of(table, key);
  if (table->keys[slot] == EMPTY) {
    table->keys[slot] = key;
    ++table->count;
  }
  return &table->weights[slot];
}

void kcp_pair_table_free(struct kcp_pair_table *table) {
  free(table->keys);
  free(table->weights);
  memset(table, 0, sizeof *table);
}

/* The entries of all tables, in any order. */
static uint64_t list_entries(const struct kcp_pair_table *const *tables, uint32_t count,
                             uint64_t *keys, struct kcp_pair_weight *weights) {
  uint64_t listed = 0;
  for (uint32_t i = 0; i < count; ++i)
    for (uint64_t slot = 0; slot < tables[i]->slots; ++slot) {
      const struct kcp_pair_weight *weight = &tables[i]->weights[slot];
      if (tables[i]->keys[slot] == EMPTY || weight->sure + weight->unsure == 0) continue;
      keys[listed] = tables[i]->keys[slot];
      weights[listed++] = *weight;
    }
  return listed;
}

static uint64_t add_up(const uint64_t *sorted, const uint32_t *order,
                       const struct kcp_pair_weight *weights, uint64_t count,
                       struct kcp_influence_sum *pairs) {
  uint64_t pair_count = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const struct kcp_pair_weight *weight = &weights[order[i]];
    if (i == 0 || sorted[i] != sorted[i - 1])
      pairs[pair_count++] =
          (struct kcp_influence_sum){.p = (uint32_t)(sorted[i] >> 32), .q = (uint32_t)sorted[i]};
    struct kcp_influence_sum *pair = &pairs[pair_count - 1];
    pair->lower += weight->sure;
    pair->upper += weight->sure + weight->unsure;
    pair->area += weight->sure + weight->centre;
  }
  return pair_count;
}

enum kcp_status kcp_pair_tables_collect(const struct kcp_pair_table *const *tables, uint32_t count,
                                        struct kcp_influence_sums *sums, struct kcp_error *error) {
  uint64_t entries = 1;
  struct kcp_radix_sorter sorter;
  for (uint32_t i = 0; i < count; ++i) entries += tables[i]->count;
  sums->count = 0;
  sums->pairs = malloc(entries * sizeof *sums->pairs);
  struct kcp_pair_weight *weights = malloc(entries * sizeof *weights);
  enum kcp_status status = kcp_radix_sorter_create(entries, &sorter, error);
  if (status == KCP_OK && (sums->pairs == NULL || weights == NULL || entries > UINT32_MAX))
    status = kcp_out_of_memory(error, "the pairs", entries * sizeof *sums->pairs);
  if (status == KCP_OK) {
    const uint64_t *sorted;
    const uint64_t listed = list_entries(tables, count, sorter.keys[0], weights);
    const uint32_t *order = kcp_radix_sort_keys(&sorter, listed, &sorted);
    sums->count = add_up(sorted, order, weights, listed, sums->pairs);
  }
  kcp_radix_sorter_free(&sorter);
  free(weights);
  if (status != KCP_OK) {
    free(sums->pairs);
    memset(sums, 0, sizeof *sums);
  }
  return status;
}

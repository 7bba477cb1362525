#include "kcp/repeats.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EMPTY UINT64_MAX

/* A table of row numbers by hash, at most half full, searched slot after slot. */
static uint64_t table_slots(uint64_t count) {
  uint64_t slots = 16;
  while (slots < 2 * count) slots *= 2;
  return slots;
}

uint64_t kcp_repeats_bytes(uint64_t count) {
  return table_slots(count) * sizeof(uint64_t);
}

static uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
  hash = (hash ^ hash >> 32) * UINT64_C(0xD6E8FEB86659FD93);
  return hash ^ hash >> 32;
}

struct row_kind {
  uint64_t (*hash)(const struct kcp_points *points, uint64_t row);
  bool (*equal)(const struct kcp_points *points, uint64_t a, uint64_t b);
};

static uint64_t hash_place(const struct kcp_points *points, uint64_t row) {
  uint64_t hash = 0;
  for (uint32_t j = 0; j < points->dimensions; ++j) {
    double value = kcp_points_column(points, j)[row] + 0.0; /* -0.0 becomes 0.0 */
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    hash = mix(hash, bits);
  }
  return hash;
}

static bool equal_places(const struct kcp_points *points, uint64_t a, uint64_t b) {
  for (uint32_t j = 0; j < points->dimensions; ++j)
    if (kcp_points_column(points, j)[a] != kcp_points_column(points, j)[b]) return false;
  return true;
}

static uint64_t hash_id(const struct kcp_points *points, uint64_t row) {
  return mix(0, points->ids[row]);
}

static bool equal_ids(const struct kcp_points *points, uint64_t a, uint64_t b) {
  return points->ids[a] == points->ids[b];
}

static enum kcp_status count_repeats(const struct kcp_points *points, struct row_kind kind,
                                     uint64_t *repeats, struct kcp_error *error) {
  uint64_t slots = table_slots(points->count);
  uint64_t *table = malloc(slots * sizeof *table);
  if (table == NULL) return kcp_out_of_memory(error, "a table of records", slots * sizeof *table);
  memset(table, 0xff, slots * sizeof *table);
  *repeats = 0;
  for (uint64_t row = 0; row < points->count; ++row) {
    uint64_t slot = kind.hash(points, row) & (slots - 1);
    while (table[slot] != EMPTY && !kind.equal(points, table[slot], row))
      slot = (slot + 1) & (slots - 1);
    if (table[slot] == EMPTY)
      table[slot] = row;
    else
      ++*repeats;
  }
  free(table);
  return KCP_OK;
}

enum kcp_status kcp_count_repeated_places(const struct kcp_points *points, uint64_t *repeats,
                                          struct kcp_error *error) {
  struct row_kind places = {hash_place, equal_places};
  return count_repeats(points, places, repeats, error);
}

enum kcp_status kcp_count_repeated_ids(const struct kcp_points *points, uint64_t *repeats,
                                       struct kcp_error *error) {
  struct row_kind ids = {hash_id, equal_ids};
  return count_repeats(points, ids, repeats, error);
}

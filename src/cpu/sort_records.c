#include "sort_records.h"

#include <string.h>

#define DIGIT_BITS 8
#define BUCKETS (1 << DIGIT_BITS)

static void insert_each(uint32_t *records, uint64_t count) {
  for (uint64_t i = 1; i < count; ++i) {
    const uint32_t record = records[i];
    uint64_t at = i;
    for (; at > 0 && records[at - 1] > record; --at) records[at] = records[at - 1];
    records[at] = record;
  }
}

static void sort_by_digit(const uint32_t *from, uint64_t count, int shift, uint32_t *to) {
  uint64_t places[BUCKETS] = {0}, sum = 0;
  for (uint64_t i = 0; i < count; ++i) ++places[from[i] >> shift & (BUCKETS - 1)];
  for (int bucket = 0; bucket < BUCKETS; ++bucket) {
    const uint64_t here = places[bucket];
    places[bucket] = sum;
    sum += here;
  }
  for (uint64_t i = 0; i < count; ++i) to[places[from[i] >> shift & (BUCKETS - 1)]++] = from[i];
}

void kcp_sort_records(uint32_t *records, uint64_t count, uint32_t *scratch) {
  if (count <= KCP_SORT_WITHOUT_SCRATCH) {
    insert_each(records, count);
    return;
  }
  uint32_t varying = 0, *from = records, *to = scratch;
  for (uint64_t i = 1; i < count; ++i) varying |= records[i] ^ records[0];
  for (int shift = 0; shift < 32; shift += DIGIT_BITS) {
    if ((varying >> shift & (BUCKETS - 1)) == 0) continue;
    sort_by_digit(from, count, shift, to);
    uint32_t *kept = from;
    from = to;
    to = kept;
  }
  if (from != records) memcpy(records, from, count * sizeof *records);
}

#include "kcp/range_decode.h"

#include <stddef.h>

#include "cpu/sort_records.h"

static uint32_t *decode_entry(const struct kcp_range_masks *masks, uint64_t entry, uint32_t *to) {
  const uint64_t primitive = masks->met != NULL ? masks->met[entry] : entry % masks->primitives;
  const uint32_t *places = masks->places + masks->firsts[primitive];
  const uint32_t *words = masks->words + entry * masks->mask_words;
  for (uint32_t word = 0; word < masks->mask_words; ++word)
    for (uint32_t bits = words[word]; bits != 0; bits &= bits - 1)
      *to++ = places[word * 32 + (uint32_t)__builtin_ctz(bits)];
  return to;
}

void kcp_range_decode_masks(const struct kcp_range_masks *masks, uint64_t count,
                            const uint64_t *entry_firsts, const uint64_t *offsets,
                            uint32_t *neighbours, uint32_t *scratch) {
#pragma omp parallel for schedule(dynamic, 64)
  for (uint64_t q = 0; q < count; ++q) {
    uint32_t *to = neighbours + offsets[q];
    for (uint64_t entry = entry_firsts[q]; entry < entry_firsts[q + 1]; ++entry)
      to = decode_entry(masks, entry, to);
    kcp_sort_records(neighbours + offsets[q], offsets[q + 1] - offsets[q], scratch + offsets[q]);
  }
}

void kcp_range_decode_pairs(const uint64_t *pairs, uint64_t count, uint32_t *neighbours) {
#pragma omp parallel for schedule(static)
  for (uint64_t i = 0; i < count; ++i) neighbours[i] = (uint32_t)pairs[i];
}

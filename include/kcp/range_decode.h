/* Lists of neighbours from results that come to the host as they are: masks, and key-value
 * pairs (RT-HiSS, section IV-F). */
#ifndef KCP_RANGE_DECODE_H
#define KCP_RANGE_DECODE_H

#include <stdint.h>

#include "kcp/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Masks of entries, query after query: bit i of entry e is point firsts[met[e]] + i of D', whose
 * record is places[that]. With met NULL, entry e is of primitive e % primitives. */
struct kcp_range_masks {
  const uint32_t *words; /* mask_words each entry */
  uint32_t mask_words;
  const uint32_t *met;
  uint64_t primitives;
  const uint32_t *firsts;
  const uint32_t *places;
};

/* The neighbours of queries 0 .. count - 1, ascending: those of query q, whose entries are
 * entry_firsts[q] .. entry_firsts[q + 1] - 1, at neighbours + offsets[q]. `scratch` has as much
 * room. All cores are used. */
void kcp_range_decode_masks(const struct kcp_range_masks *masks, uint64_t count,
                            const uint64_t *entry_firsts, const uint64_t *offsets,
                            uint32_t *neighbours, uint32_t *scratch);

/* The low halves of pairs. */
void kcp_range_decode_pairs(const uint64_t *pairs, uint64_t count, uint32_t *neighbours);

#ifdef __cplusplus
}
#endif
#endif

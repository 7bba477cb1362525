#include "ranked_keys.h"

#include <omp.h>
#include <string.h>

#define DIGIT_BITS 8
#define BUCKETS (1 << DIGIT_BITS)
#define MAX_WORKERS 64

enum word { KEY, INDEX };

static inline uint64_t word_of(const struct kcp_ranked_key *item, enum word word) {
  return word == KEY ? item->key : item->index;
}

static inline void swap(struct kcp_ranked_key *a, struct kcp_ranked_key *b) {
  struct kcp_ranked_key copy = *a;
  *a = *b;
  *b = copy;
}

/* The bits in which the items' words differ. */
static uint64_t differing_bits(const struct kcp_ranked_key *items, uint64_t count, enum word word) {
  uint64_t bits = 0, first = word_of(&items[0], word);
  for (uint64_t i = 1; i < count; ++i) bits |= word_of(&items[i], word) ^ first;
  return bits;
}

/* Orders the items into those whose digit is below `digit`, at it, and above it. */
static void partition(struct kcp_ranked_key *items, uint64_t count, enum word word, int shift,
                      uint64_t digit) {
  uint64_t at = 0, i = 0, above = count;
  while (i < above) {
    uint64_t here = word_of(&items[i], word) >> shift & (BUCKETS - 1);
    if (here < digit)
      swap(&items[i++], &items[at++]);
    else if (here > digit)
      swap(&items[i], &items[--above]);
    else
      ++i;
  }
}

void kcp_ranked_select(struct kcp_ranked_key *items, uint64_t count, uint64_t wanted) {
  enum word word = KEY;
  while (wanted > 0 && wanted < count) {
    uint64_t counts[BUCKETS] = {0};
    uint64_t bits = differing_bits(items, count, word);
    if (bits == 0) {
      if (word == INDEX) return;
      word = INDEX;
      continue;
    }
    int width = 64 - __builtin_clzll(bits);
    int shift = width > DIGIT_BITS ? width - DIGIT_BITS : 0;
    for (uint64_t i = 0; i < count; ++i)
      ++counts[word_of(&items[i], word) >> shift & (BUCKETS - 1)];
    uint64_t digit = 0, below = 0;
    while (below + counts[digit] < wanted) below += counts[digit++];
    partition(items, count, word, shift, digit);
    items += below;
    wanted -= below;
    count = counts[digit];
  }
}

/* One pass over a digit, each worker on its share: count, then scatter in order. */
static void sort_by_digit(const struct kcp_ranked_key *items, struct kcp_ranked_key *out,
                          uint64_t count, enum word word, int shift, int workers_wanted) {
  uint64_t offsets[MAX_WORKERS][BUCKETS];
#pragma omp parallel num_threads(workers_wanted)
  {
    int worker = omp_get_thread_num(), workers = omp_get_num_threads();
    uint64_t first = count / (uint64_t)workers * (uint64_t)worker;
    uint64_t last = worker + 1 == workers ? count : first + count / (uint64_t)workers;
    uint64_t *offset = offsets[worker];
    memset(offset, 0, sizeof offsets[0]);
    for (uint64_t i = first; i < last; ++i)
      ++offset[word_of(&items[i], word) >> shift & (BUCKETS - 1)];
#pragma omp barrier
#pragma omp single
    {
      uint64_t sum = 0;
      for (int bucket = 0; bucket < BUCKETS; ++bucket)
        for (int w = 0; w < workers; ++w) {
          uint64_t here = offsets[w][bucket];
          offsets[w][bucket] = sum;
          sum += here;
        }
    }
    for (uint64_t i = first; i < last; ++i)
      out[offset[word_of(&items[i], word) >> shift & (BUCKETS - 1)]++] = items[i];
  }
}

struct kcp_ranked_key *kcp_ranked_sort(struct kcp_ranked_key *items, struct kcp_ranked_key *spare,
                                       uint64_t count, enum kcp_ranked_sort_by by) {
  static const uint64_t share_worth_a_thread = 16384;
  if (count < 2) return items;
  uint64_t workers = count / share_worth_a_thread + 1;
  if (workers > (uint64_t)omp_get_max_threads()) workers = (uint64_t)omp_get_max_threads();
  if (workers > MAX_WORKERS) workers = MAX_WORKERS;
  for (int word = by == KCP_SORT_BY_KEY ? KEY : INDEX; word >= KEY; --word) {
    uint64_t bits = differing_bits(items, count, (enum word)word);
    for (int shift = 0; shift < 64; shift += DIGIT_BITS) {
      if ((bits >> shift & (BUCKETS - 1)) == 0) continue;
      sort_by_digit(items, spare, count, (enum word)word, shift, (int)workers);
      struct kcp_ranked_key *sorted = spare;
      spare = items;
      items = sorted;
    }
  }
  return items;
}

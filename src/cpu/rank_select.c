#include "rank_select.h"

#include <string.h>

#define DIGIT_BITS 8
#define BUCKETS (1 << DIGIT_BITS)

static uint64_t bits_of(double rank) {
  uint64_t bits;
  memcpy(&bits, &rank, sizeof bits);
  return bits;
}

double kcp_select_rank(const struct kcp_record_pair *pairs, uint64_t count, uint64_t wanted) {
  uint64_t prefix = 0, known = 0; /* the leading digits found, and which bits they are */
  for (int shift = 64 - DIGIT_BITS; shift >= 0; shift -= DIGIT_BITS) {
    uint64_t counts[BUCKETS] = {0};
#pragma omp parallel for reduction(+ : counts) if (count > 65536)
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t bits = bits_of(pairs[i].rank);
      if ((bits & known) == prefix) ++counts[(bits >> shift) & (BUCKETS - 1)];
    }
    uint64_t digit = 0;
    while (wanted > counts[digit]) wanted -= counts[digit++];
    prefix |= digit << shift;
    known |= (uint64_t)(BUCKETS - 1) << shift;
  }
  double rank;
  memcpy(&rank, &prefix, sizeof rank);
  return rank;
}

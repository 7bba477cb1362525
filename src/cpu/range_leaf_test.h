/* The body of the test of a leaf against a query, for one precision and one width of vectors:
 * range_leaves.c includes it once for each. TEST_NAME is the function's name, TEST_TARGET its
 * attribute, TEST_TYPE and TEST_WORD a coordinate and an integer of its size, TEST_LANES how many
 * of them a register of that target holds. */

#define TEST_PASTE(a, b) a##b
#define TEST_JOIN(a, b) TEST_PASTE(a, b)
#define TEST_VECTOR TEST_JOIN(TEST_NAME, _vector)
#define TEST_WORDS TEST_JOIN(TEST_NAME, _words)
#define TEST_BITS TEST_JOIN(TEST_NAME, _bits)
#define TEST_WORD_BITS (8 * (int)sizeof(TEST_WORD))
/* Sums that are kept in registers at a time: eight hide the latency of an addition. */
#define TEST_PARTS (KCP_LEAF_POINTS / TEST_LANES < 8 ? KCP_LEAF_POINTS / TEST_LANES : 8)
#define TEST_GROUP (TEST_PARTS * TEST_LANES)

typedef TEST_TYPE TEST_VECTOR __attribute__((vector_size(sizeof(TEST_TYPE) * TEST_LANES)));
typedef TEST_WORD TEST_WORDS __attribute__((vector_size(sizeof(TEST_TYPE) * TEST_LANES)));

/* A bit for each lane of the flags, which are 0 or -1. */
TEST_TARGET static inline __attribute__((always_inline)) uint64_t TEST_BITS(
    const TEST_WORDS *flags) {
  uint64_t bits = 0;
  for (int at = 0; at < TEST_GROUP; at += TEST_WORD_BITS) {
    TEST_WORDS own = {0};
    for (int part = at / TEST_LANES; part < TEST_PARTS && part < (at + TEST_WORD_BITS) / TEST_LANES;
         ++part) {
      TEST_WORDS bit;
      for (int lane = 0; lane < TEST_LANES; ++lane)
        bit[lane] = (TEST_WORD)((uint64_t)1 << (part * TEST_LANES - at + lane));
      own |= flags[part] & bit;
    }
    uint64_t word = 0;
    for (int lane = 0; lane < TEST_LANES; ++lane)
      word |= (uint64_t)own[lane] & (~UINT64_C(0) >> (64 - TEST_WORD_BITS));
    bits |= word << at;
  }
  return bits;
}

TEST_TARGET static struct kcp_leaf_mask TEST_NAME(const TEST_TYPE *leaf, uint32_t dimensions,
                                                  const TEST_TYPE *query, double within_limit,
                                                  double beyond_limit) {
  const TEST_TYPE within = (TEST_TYPE)within_limit, beyond = (TEST_TYPE)beyond_limit;
  struct kcp_leaf_mask mask = {0, 0};
  for (int first_point = 0; first_point < KCP_LEAF_POINTS; first_point += TEST_GROUP) {
    const TEST_VECTOR *from = (const TEST_VECTOR *)(leaf + first_point);
    TEST_VECTOR sums[TEST_PARTS] = {{0}};
    TEST_WORDS below[TEST_PARTS] = {{0}};
    bool possible = true;
    for (uint32_t first = 0; first < dimensions && possible; first += VALUES_BEFORE_A_CHECK) {
      const uint32_t left = dimensions - first;
      const uint32_t last =
          left > VALUES_BEFORE_A_CHECK ? first + VALUES_BEFORE_A_CHECK : dimensions;
      for (uint32_t j = first; j < last; ++j)
        for (int part = 0; part < TEST_PARTS; ++part) {
          const TEST_VECTOR difference =
              from[KCP_LEAF_POINTS / TEST_LANES * (uint64_t)j + (uint32_t)part] - query[j];
          sums[part] += difference * difference;
        }
      TEST_WORDS any = {0};
      for (int part = 0; part < TEST_PARTS; ++part) {
        below[part] = ~(sums[part] > beyond); /* also when the sum is no number */
        any |= below[part];
      }
      TEST_WORD some = 0;
      for (int lane = 0; lane < TEST_LANES; ++lane) some |= any[lane];
      possible = some != 0;
    }
    if (!possible) continue;
    TEST_WORDS open[TEST_PARTS], any = {0};
    for (int part = 0; part < TEST_PARTS; ++part) {
      open[part] = below[part] & ~(sums[part] <= within);
      any |= open[part];
    }
    const uint64_t below_bits = TEST_BITS(below);
    uint64_t open_bits = 0;
    TEST_WORD some = 0;
    for (int lane = 0; lane < TEST_LANES; ++lane) some |= any[lane];
    if (some != 0) open_bits = TEST_BITS(open);
    mask.within |= (below_bits & ~open_bits) << first_point;
    mask.open |= open_bits << first_point;
  }
  return mask;
}

#undef TEST_PASTE
#undef TEST_JOIN
#undef TEST_VECTOR
#undef TEST_WORDS
#undef TEST_BITS
#undef TEST_WORD_BITS
#undef TEST_PARTS
#undef TEST_GROUP
#undef TEST_NAME
#undef TEST_TARGET
#undef TEST_TYPE
#undef TEST_WORD
#undef TEST_LANES

/* The body of the test of tiles against a query, for one width of vectors: range_tiles.c includes
 * it once a width. TEST_NAME is the function's name, TEST_TARGET its attribute, TEST_LANES how many
 * binary64 a register of that target holds; a wider vector than the target has is taken apart
 * through memory, at a fortieth of the speed. */

#define TEST_PASTE(a, b) a##b
#define TEST_JOIN(a, b) TEST_PASTE(a, b)
#define TEST_VECTOR TEST_JOIN(TEST_NAME, _vector)
#define TEST_WORDS TEST_JOIN(TEST_NAME, _words)
#define TEST_PARTS (KCP_RANGE_TILE / TEST_LANES)

typedef double TEST_VECTOR __attribute__((vector_size(8 * TEST_LANES)));
typedef int64_t TEST_WORDS __attribute__((vector_size(8 * TEST_LANES)));

TEST_TARGET static uint64_t TEST_NAME(const double *values, uint64_t tile_count,
                                      uint32_t dimensions, const double *query,
                                      const struct kcp_range_limit *limit,
                                      struct kcp_range_mask *masks, uint64_t *open) {
  const double within_limit = limit->within, beyond = limit->beyond;
  uint64_t count = 0, open_count = 0;
  for (uint64_t tile = 0; tile < tile_count; ++tile) {
    const TEST_VECTOR *from = (const TEST_VECTOR *)(values + tile * KCP_RANGE_TILE * dimensions);
    TEST_VECTOR sums[TEST_PARTS] = {{0}};
    uint32_t within = 0, below = 0;
    int64_t possible = 1;
    for (uint32_t first = 0; first < dimensions && possible != 0; first += VALUES_BEFORE_A_CHECK) {
      const uint32_t left = dimensions - first;
      const uint32_t last =
          left > VALUES_BEFORE_A_CHECK ? first + VALUES_BEFORE_A_CHECK : dimensions;
      for (uint32_t j = first; j < last; ++j)
        for (int part = 0; part < TEST_PARTS; ++part) {
          const TEST_VECTOR difference = from[TEST_PARTS * j + part] - query[j];
          sums[part] += difference * difference;
        }
      TEST_WORDS any = {0};
      for (int part = 0; part < TEST_PARTS; ++part) any |= sums[part] <= beyond;
      possible = 0;
      for (int lane = 0; lane < TEST_LANES; ++lane) possible |= any[lane];
    }
    if (possible != 0) {
      /* Every lane's own bit, where it is within or below; collected over the lanes at the end. */
      TEST_WORDS is_within = {0}, is_below = {0};
      for (int part = 0; part < TEST_PARTS; ++part) {
        TEST_WORDS bits;
        for (int lane = 0; lane < TEST_LANES; ++lane)
          bits[lane] = (int64_t)1 << (part * TEST_LANES + lane);
        is_within |= (sums[part] <= within_limit) & bits;
        is_below |= (sums[part] <= beyond) & bits;
      }
      for (int lane = 0; lane < TEST_LANES; ++lane) {
        within |= (uint32_t)is_within[lane];
        below |= (uint32_t)is_below[lane];
      }
      count += (uint64_t)__builtin_popcount(within);
      open_count += (uint64_t)__builtin_popcount(below & ~within);
    }
    masks[tile] = (struct kcp_range_mask){(uint16_t)within, (uint16_t)(below & ~within)};
  }
  *open = open_count;
  return count;
}

#undef TEST_PASTE
#undef TEST_JOIN
#undef TEST_VECTOR
#undef TEST_WORDS
#undef TEST_PARTS
#undef TEST_NAME
#undef TEST_TARGET
#undef TEST_LANES

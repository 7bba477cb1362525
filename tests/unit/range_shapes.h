/* Points of shapes at which range joins go wrong. Include after cmocka. */
#ifndef KCP_TESTS_RANGE_SHAPES_H
#define KCP_TESTS_RANGE_SHAPES_H

#include <math.h>

#include "kcp/points.h"
#include "kcp/random.h"

enum shape {
  UNIFORM,
  CLUSTERED,    /* few tight clusters */
  LATTICE,      /* whole numbers: many pairs at exactly eps */
  EQUAL,        /* one place */
  REPEATED,     /* each place several times */
  FLAT,         /* every dimension but the first constant */
  FAR_FROM_ZERO /* near 5e6, a thousandth apart */
};

static inline double unit(uint64_t seed, uint64_t i, uint32_t j) {
  return kcp_random_unit(kcp_random_pair(seed, 3, i, j).first);
}

static inline double coordinate(enum shape shape, uint64_t seed, uint64_t i, uint32_t j) {
  switch (shape) {
    case UNIFORM: return 2 * unit(seed, i, j) - 1;
    case CLUSTERED: return unit(99, i % 5, j) + 0.01 * unit(seed, i, j) * (j + 1);
    case LATTICE: return floor(6 * unit(seed, i, j)) - 3;
    case EQUAL: return 0.1 * (j + 1);
    case REPEATED: return unit(99, i % 37, j);
    case FLAT: return j == 0 ? unit(seed, i, j) : 7;
    default: return 5e6 + 1e-3 * floor(40 * unit(seed, i, j));
  }
}

static inline struct kcp_points points_of(enum shape shape, uint64_t seed, uint64_t count,
                                          uint32_t dimensions) {
  struct kcp_points points;
  /* A stride beyond the count, as in a block that is not full. */
  assert_int_equal(kcp_points_allocate(count + 5, dimensions, &points, NULL), KCP_OK);
  points.count = count;
  for (uint64_t i = 0; i < count; ++i) {
    points.ids[i] = i;
    for (uint32_t j = 0; j < dimensions; ++j)
      kcp_points_column(&points, j)[i] = coordinate(shape, seed, i, j);
  }
  return points;
}

#endif

/* The bodies that range joins on matrix units share with the device: what their limits say of a
 * pair is what its rank says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/random.h"
#include "kcp/range_join.h"
#include "kcp/range_limit.h"
#include "kcp/range_tiles.h"

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])
#define POINTS 60
#define MOST_DIMENSIONS 1024

enum shape {
  UNIFORM,
  CLUSTERED,
  WHOLE,         /* whole numbers from 0 to 255 */
  EQUAL,         /* one place */
  EIGHTHS,       /* multiples of 1/8 */
  LONG,          /* one dimension as long as all others together: integers beyond 2048 */
  FAR_FROM_ZERO, /* near 5e6, a thousandth apart */
  TINY,          /* near 1e-70 */
  SHAPES
};

static double unit(uint64_t i, uint32_t j) {
  return kcp_random_unit(kcp_random_pair(11, 3, i, j).first);
}

static double coordinate(enum shape shape, uint64_t i, uint32_t j) {
  switch (shape) {
    case UNIFORM: return 2 * unit(i, j) - 1;
    case CLUSTERED: return unit(1000 + i % 5, j) + 0.01 * unit(i, j);
    case WHOLE: return floor(256 * unit(i, j));
    case EQUAL: return 0.1 * (j + 1);
    case EIGHTHS: return floor(64 * unit(i, j)) / 8;
    case LONG: return j == 0 ? 100 * unit(i, j) : unit(i, j) / 64;
    case FAR_FROM_ZERO: return 5e6 + 1e-3 * floor(40 * unit(i, j));
    default: return 1e-70 * unit(i, j);
  }
}

/* Points as columns, as the device has them, and as integers. */
struct points {
  uint32_t dimensions;
  double *columns, *centre;
  double norm;
  int lowest_exponent;
  struct kcp_tile_scale scale;
  double *integers; /* [point][dimension] */
  uint32_t squares[POINTS];
  double residual;
};

static struct points make_points(enum shape shape, uint32_t dimensions) {
  struct points points = {.dimensions = dimensions, .lowest_exponent = INT_MAX};
  points.columns = calloc((size_t)POINTS * dimensions, sizeof(double));
  points.integers = calloc((size_t)POINTS * dimensions, sizeof(double));
  points.centre = calloc(dimensions, sizeof(double));
  for (uint32_t j = 0; j < dimensions; ++j) {
    for (uint32_t i = 0; i < POINTS; ++i) {
      const double value = coordinate(shape, i, j);
      const int exponent = kcp_lowest_exponent(value);
      points.columns[j * POINTS + i] = value;
      points.centre[j] += value / POINTS;
      if (exponent < points.lowest_exponent) points.lowest_exponent = exponent;
    }
  }
  for (uint32_t i = 0; i < POINTS; ++i) {
    double square = 0;
    for (uint32_t j = 0; j < dimensions; ++j)
      square += pow(points.columns[j * POINTS + i] - points.centre[j], 2);
    points.norm = fmax(points.norm, sqrt(square * (1 + 0x1p-20)));
  }
  return points;
}

static void free_points(struct points *points) {
  free(points->columns);
  free(points->integers);
  free(points->centre);
}

static void quantise(struct points *points, double eps) {
  points->scale =
      kcp_tile_choose_scale(points->norm, eps, points->dimensions, points->lowest_exponent);
  points->residual = 0;
  for (uint32_t i = 0; i < POINTS; ++i) {
    struct kcp_tile_row row = {0, 0};
    for (uint32_t j = 0; j < points->dimensions; ++j) {
      const double steps = kcp_tile_in_steps(points->scale, points->columns[j * POINTS + i],
                                             kcp_tile_centre(points->scale, points->centre[j]));
      const double integer = kcp_tile_round(steps);
      kcp_tile_add(&row, steps, integer);
      points->integers[(size_t)i * points->dimensions + j] = integer;
      assert_true(integer == floor(integer) &&
                  (fabs(integer) <= 2048 || fmod(integer, 2) == 0)); /* in binary16 */
    }
    assert_true(row.square <= KCP_TILE_NORM * KCP_TILE_NORM);
    points->squares[i] = row.square;
    points->residual =
        fmax(points->residual, kcp_tile_residual(points->scale.is_exact, row.residual_square));
  }
  assert_true(points->residual <= kcp_tile_most_residual(points->dimensions));
}

/* x of a pair; no partial sum of its terms reaches 2^24, in whatever order. */
static int64_t product_of(const struct points *points, struct kcp_tile_limits limits, uint32_t a,
                          uint32_t b) {
  const double *row = points->integers + (size_t)a * points->dimensions;
  const double *column = points->integers + (size_t)b * points->dimensions;
  const uint32_t halves[] = {points->squares[a] / 2, points->squares[b] / 2};
  int64_t sum = limits.limit, above = limits.limit, below = 0;
  for (uint32_t j = 0; j < points->dimensions + 4; ++j) {
    int64_t term;
    if (j < points->dimensions) {
      term = (int64_t)(row[j] * column[j]);
    } else {
      const uint32_t half = halves[(j - points->dimensions) / 2];
      const int high = kcp_tile_half_high(half), low = kcp_tile_half_low(half);
      assert_in_range(high, 0, 2048);
      assert_true(-2048 <= low && low <= 2047);
      term = (j - points->dimensions) % 2 == 0 ? -(int64_t)high * KCP_TILE_HALF_UNIT : -low;
    }
    sum += term;
    above += term > 0 ? term : 0;
    below += term < 0 ? term : 0;
  }
  assert_true(above < 1 << 24 && below > -(1 << 24));
  return sum;
}

static void check_pairs(struct points *points, double eps, uint64_t *open) {
  quantise(points, eps);
  const struct kcp_tile_limits limits =
      kcp_tile_make_limits(points->scale, eps, points->dimensions, 2 * points->residual);
  assert_true(limits.limit > 0 && limits.limit < KCP_TILE_NO_POINT);
  assert_true(limits.within >= 2);
  for (uint32_t a = 0; a < POINTS; ++a)
    for (uint32_t b = 0; b < POINTS; ++b) {
      const int64_t x = product_of(points, limits, a, b);
      const double rank = kcp_range_rank(points->dimensions, points->columns, POINTS, a,
                                         points->columns, POINTS, b);
      if (x <= 0 && rank <= eps * eps) fail_msg("%u, %u, eps %g: lost", a, b, eps);
      if (x >= limits.within && !(rank <= eps * eps))
        fail_msg("%u, %u, eps %g: too far", a, b, eps);
      *open += x > 0 && x < limits.within;
    }
}

/* An eps whose square is a pair's rank, or all but. */
static double distance_of(const struct points *points, uint32_t a, uint32_t b) {
  return sqrt(
      kcp_range_rank(points->dimensions, points->columns, POINTS, a, points->columns, POINTS, b));
}

static void test_limits_agree_with_ranks(void **state) {
  static const uint32_t dimensions[] = {1, 2, 3, 17, 18, 90, 130, MOST_DIMENSIONS};
  (void)state;
  for (int shape = UNIFORM; shape < SHAPES; ++shape)
    for (size_t d = 0; d < COUNT(dimensions); ++d) {
      struct points points = make_points((enum shape)shape, dimensions[d]);
      uint64_t open = 0;
      for (uint32_t other = 0; other < POINTS; other += 13) {
        const double eps = distance_of(&points, 1, other);
        check_pairs(&points, eps, &open);
        check_pairs(&points, nextafter(eps, INFINITY), &open);
        check_pairs(&points, nextafter(eps, 0), &open);
        check_pairs(&points, 2.5 * eps, &open);
      }
      check_pairs(&points, 1000 * points.norm, &open);
      /* Uniform points are not left open by more than the border's pairs. */
      if (shape == UNIFORM && dimensions[d] <= 18) assert_in_range(open, 0, 5 * POINTS * POINTS);
      free_points(&points);
    }
}

static void test_whole_numbers_are_not_rounded(void **state) {
  static const uint32_t dimensions[] = {2, 18, 128};
  (void)state;
  for (size_t d = 0; d < COUNT(dimensions); ++d) {
    struct points points = make_points(WHOLE, dimensions[d]);
    quantise(&points, 100);
    assert_true(points.scale.is_exact && points.scale.step == 1 && points.residual == 0);
    free_points(&points);
    points = make_points(EIGHTHS, dimensions[d]);
    quantise(&points, 10);
    assert_true(points.scale.is_exact && points.scale.step == 0.125 && points.residual == 0);
    const struct kcp_tile_limits limits =
        kcp_tile_make_limits(points.scale, 10, dimensions[d], points.residual);
    assert_true(limits.within <= 4); /* two values of x are open at most */
    assert_false(kcp_tile_is_too_coarse(limits));
    free_points(&points);
  }
}

static void test_coarse_steps_are_told(void **state) {
  (void)state;
  struct points points = make_points(UNIFORM, 18);
  quantise(&points, 1e-5);
  assert_true(
      kcp_tile_is_too_coarse(kcp_tile_make_limits(points.scale, 1e-5, 18, 2 * points.residual)));
  quantise(&points, 0.5);
  assert_false(
      kcp_tile_is_too_coarse(kcp_tile_make_limits(points.scale, 0.5, 18, 2 * points.residual)));
  free_points(&points);
}

static void test_lowest_exponents(void **state) {
  (void)state;
  assert_int_equal(kcp_lowest_exponent(0), INT_MAX);
  assert_int_equal(kcp_lowest_exponent(-0.0), INT_MAX);
  assert_int_equal(kcp_lowest_exponent(1), 0);
  assert_int_equal(kcp_lowest_exponent(-12), 2);
  assert_int_equal(kcp_lowest_exponent(0.375), -3);
  assert_int_equal(kcp_lowest_exponent(0x1p1023), 1023);
  assert_int_equal(kcp_lowest_exponent(5e-324), -1074);
  assert_int_equal(kcp_lowest_exponent(0x3p-1073), -1073);
  assert_int_equal(kcp_lowest_exponent(1 + 0x1p-52), -52);
}

/* Every point, and every chunk of it, has a place of its own. */
static void test_places(void **state) {
  unsigned char rows[KCP_TILE_POINTS] = {0}, columns[KCP_TILE_POINTS] = {0};
  unsigned char chunks[KCP_TILE_POINTS * 6] = {0};
  (void)state;
  for (uint32_t point = 0; point < KCP_TILE_POINTS; ++point) {
    assert_in_range(kcp_tile_row_place(point), 0, KCP_TILE_POINTS - 1);
    assert_in_range(kcp_tile_column_place(point), 0, KCP_TILE_POINTS - 1);
    assert_int_equal(rows[kcp_tile_row_place(point)]++, 0);
    assert_int_equal(columns[kcp_tile_column_place(point)]++, 0);
    for (uint32_t chunk = 0; chunk < 6; ++chunk) {
      const uint32_t place = kcp_tile_chunk_place(point, chunk);
      assert_int_equal(place % 8, 0);
      assert_in_range(place / 8, 0, COUNT(chunks) - 1);
      assert_int_equal(chunks[place / 8]++, 0);
    }
  }
  /* Eight rows that are read together are in different banks of 16 bytes. */
  for (uint32_t row = 0; row < KCP_TILE_POINTS; row += 8)
    for (uint32_t chunk = 0; chunk < 6; ++chunk) {
      unsigned banks = 0;
      for (uint32_t i = 0; i < 8; ++i) banks |= 1u << kcp_tile_chunk_place(row + i, chunk) / 8 % 8;
      assert_int_equal(banks, 255);
    }
}

static void test_options_of_the_papers_pipeline(void **state) {
  const struct kcp_range_options plain = {.refine = KCP_REFINE_TENSOR,
                                          .reorder = KCP_REORDER_RANDOM,
                                          .result = KCP_RESULT_MASK_RAW,
                                          .copy_threads = 3,
                                          .pinned_bytes = 1 << 20,
                                          .host_memory = KCP_HOST_PAGEABLE};
  static const struct kcp_range_options others[] = {{.kd_height = 3},
                                                    {.index = KCP_RANGE_INDEX_BVH},
                                                    {.bound = KCP_BOUND_FULL},
                                                    {.result = KCP_RESULT_PAIRS},
                                                    {.work_per_thread = 128},
                                                    {.shared_memory_bytes = 1024},
                                                    {.sort_work = KCP_SWITCH_OFF},
                                                    {.fixed_work = KCP_SWITCH_OFF}};
  static const char *const names[] = {"--kd-height",     "--index",           "--bound",
                                      "--result pairs",  "--work-per-thread", "--shared-memory",
                                      "--sort-work off", "--fixed-work off"};
  (void)state;
  assert_null(kcp_range_option_of_primitives(&plain));
  for (size_t i = 0; i < COUNT(others); ++i)
    assert_string_equal(kcp_range_option_of_primitives(&others[i]), names[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_limits_agree_with_ranks),
      cmocka_unit_test(test_whole_numbers_are_not_rounded),
      cmocka_unit_test(test_coarse_steps_are_told),
      cmocka_unit_test(test_lowest_exponents),
      cmocka_unit_test(test_places),
      cmocka_unit_test(test_options_of_the_papers_pipeline),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

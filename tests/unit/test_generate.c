/* Synthetic point sets: same bytes whatever the blocks, the SpiderWeb definitions, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/generate.h"
#include "kcp/random.h"

enum { DISTRIBUTIONS = KCP_PARCEL + 1, SAMPLE = 100000 };

static struct kcp_generate_options options_of(enum kcp_distribution distribution, uint64_t count) {
  struct kcp_generate_options options = kcp_generate_defaults();
  options.distribution = distribution;
  options.count = count;
  options.dimensions = 3;
  options.seed = 1;
  return options;
}

/* All records in blocks of `block`; the caller frees the points. */
static struct kcp_points generate(const struct kcp_generate_options *options, uint64_t block) {
  struct kcp_error error;
  struct kcp_points points;
  struct kcp_generator *generator;
  assert_int_equal(kcp_points_allocate(options->count, 3, &points, &error), KCP_OK);
  assert_int_equal(kcp_generator_create(options, &generator, &error), KCP_OK);
  for (uint64_t first = 0; first < options->count; first += block) {
    const uint64_t left = options->count - first;
    struct kcp_points view = points;
    view.ids += first;
    view.coordinates += first;
    kcp_generate_block(generator, first, left < block ? left : block, &view);
    assert_int_equal(view.count, left < block ? left : block);
  }
  points.count = options->count;
  kcp_generator_free(generator);
  return points;
}

/* FNV-1a over the records as a .bin file holds them. */
static uint64_t checksum(const struct kcp_points *points) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (uint64_t i = 0; i < points->count; ++i) {
    uint64_t record[4] = {points->ids[i]};
    for (uint32_t j = 0; j < 3; ++j) {
      memcpy(&record[1 + j], kcp_points_column(points, j) + i, sizeof(uint64_t));
    }
    for (int byte = 0; byte < 32; ++byte) {
      hash = (hash ^ (record[byte / 8] >> (byte % 8 * 8) & 0xff)) * UINT64_C(0x100000001b3);
    }
  }
  return hash;
}

static double mean_of(const double *values, uint64_t count) {
  double sum = 0.0;
  for (uint64_t i = 0; i < count; ++i) sum += values[i];
  return sum / (double)count;
}

static double covariance_of(const double *a, const double *b, uint64_t count) {
  const double mean_a = mean_of(a, count), mean_b = mean_of(b, count);
  double sum = 0.0;
  for (uint64_t i = 0; i < count; ++i) sum += (a[i] - mean_a) * (b[i] - mean_b);
  return sum / (double)count;
}

static double deviation_of(const double *values, uint64_t count) {
  return sqrt(covariance_of(values, values, count));
}

static void assert_near(double value, double expected, double tolerance) {
  if (!(fabs(value - expected) <= tolerance)) {
    fail_msg("%.17g is not within %g of %.17g", value, tolerance, expected);
  }
}

static void test_same_bytes_whatever_the_blocks(void **state) {
  (void)state;
  static const uint64_t blocks[] = {1, 3, 7, 64, 999};
  for (int distribution = 0; distribution < DISTRIBUTIONS; ++distribution) {
    struct kcp_generate_options options = options_of(distribution, 1000);
    options.parcel_split_range = 0.2;
    struct kcp_points whole = generate(&options, options.count);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; ++i) {
      struct kcp_points parts = generate(&options, blocks[i]);
      assert_memory_equal(parts.ids, whole.ids, 1000 * sizeof(uint64_t));
      assert_memory_equal(parts.coordinates, whole.coordinates, 3 * 1000 * sizeof(double));
      kcp_points_free(&parts);
    }
    kcp_points_free(&whole);
  }
}

/* Renewed only when the definition of a distribution is changed on purpose. */
static void test_golden_checksums(void **state) {
  (void)state;
  static const uint64_t golden[DISTRIBUTIONS][2] = {
      [KCP_UNIFORM] = {UINT64_C(0xac502d5713cefe1b), UINT64_C(0xd13951d48fc45002)},
      [KCP_GAUSSIAN] = {UINT64_C(0x157eb8f3711883df), UINT64_C(0x42a3b8c96389e88d)},
      [KCP_BIT] = {UINT64_C(0x2b9ac88141087927), UINT64_C(0xd5bf0dd423648029)},
      [KCP_DIAGONAL] = {UINT64_C(0xe1770cd90949f164), UINT64_C(0x52ad4687fd24a9ef)},
      [KCP_SIERPINSKI] = {UINT64_C(0x5e5828e42b58e17d), UINT64_C(0xb7c073a0e5ac394a)},
      [KCP_PARCEL] = {UINT64_C(0x22677901c9444426), UINT64_C(0xc3d36db13aacad35)},
  };
  for (int distribution = 0; distribution < DISTRIBUTIONS; ++distribution) {
    for (uint32_t dimensions = 2; dimensions <= 3; ++dimensions) {
      struct kcp_generate_options options = options_of(distribution, 1000);
      options.dimensions = dimensions;
      options.parcel_split_range = 0.3;
      struct kcp_points points = generate(&options, options.count);
      const uint64_t sum = checksum(&points);
      if (sum != golden[distribution][dimensions - 2]) {
        fail_msg("distribution %d in %u-D: checksum 0x%016" PRIx64, distribution, dimensions, sum);
      }
      kcp_points_free(&points);
    }
  }
}

static void test_seeds_give_different_points(void **state) {
  (void)state;
  for (int distribution = 0; distribution < DISTRIBUTIONS; ++distribution) {
    struct kcp_generate_options options = options_of(distribution, 1000);
    struct kcp_points one = generate(&options, options.count);
    options.seed = UINT64_C(1) << 40 | 1;
    struct kcp_points other = generate(&options, options.count);
    assert_int_not_equal(checksum(&one), checksum(&other));
    kcp_points_free(&one);
    kcp_points_free(&other);
  }
}

static void test_ids_are_record_numbers_and_z_is_0_in_2d(void **state) {
  (void)state;
  for (int distribution = 0; distribution < DISTRIBUTIONS; ++distribution) {
    struct kcp_generate_options options = options_of(distribution, 500);
    struct kcp_points space = generate(&options, 100);
    options.dimensions = 2;
    struct kcp_points plane = generate(&options, 100);
    for (uint64_t i = 0; i < options.count; ++i) {
      assert_int_equal(plane.ids[i], i);
      assert_true(kcp_points_column(&plane, 2)[i] == 0.0);
    }
    assert_memory_equal(plane.coordinates, space.coordinates, 2 * 500 * sizeof(double));
    kcp_points_free(&space);
    kcp_points_free(&plane);
  }
}

static void test_points_lie_in_the_unit_cube(void **state) {
  (void)state;
  for (int distribution = 0; distribution < DISTRIBUTIONS; ++distribution) {
    struct kcp_generate_options options = options_of(distribution, SAMPLE);
    options.gaussian_deviation = 2.0;
    options.diagonal_buffer = 5.0;
    options.parcel_split_range = 0.0;
    struct kcp_points points = generate(&options, options.count);
    for (uint64_t i = 0; i < 3 * options.count; ++i) {
      assert_true(points.coordinates[i] >= 0.0 && points.coordinates[i] < 1.0);
    }
    kcp_points_free(&points);
  }
}

/* z comes from the x of a further set: distributed as x, but independent of x and y. */
static void test_z_is_like_x_but_independent(void **state) {
  (void)state;
  for (int distribution = 0; distribution < DISTRIBUTIONS; ++distribution) {
    struct kcp_generate_options options = options_of(distribution, SAMPLE);
    options.parcel_split_range = 0.4;
    struct kcp_points points = generate(&options, 10000);
    const double *x = kcp_points_column(&points, 0), *z = kcp_points_column(&points, 2);
    const double deviation = deviation_of(x, SAMPLE);
    if (distribution != KCP_PARCEL) { /* another tree of boxes: its moments are its own */
      assert_near(mean_of(z, SAMPLE), mean_of(x, SAMPLE), 0.01);
      assert_near(deviation_of(z, SAMPLE), deviation, 0.01);
    }
    for (uint32_t j = 0; j < 2; ++j) {
      const double *column = kcp_points_column(&points, j);
      const double correlation =
          covariance_of(column, z, SAMPLE) / (deviation_of(column, SAMPLE) * deviation);
      assert_near(correlation, 0.0, 0.02);
    }
    kcp_points_free(&points);
  }
}

static void test_uniform_fills_the_cells_evenly(void **state) {
  (void)state;
  enum { SIDE = 16, CELLS = SIDE * SIDE };
  const struct kcp_generate_options options = options_of(KCP_UNIFORM, SAMPLE);
  struct kcp_points points = generate(&options, options.count);
  for (uint32_t other = 1; other <= 2; ++other) {
    uint32_t cells[CELLS] = {0};
    for (uint64_t i = 0; i < SAMPLE; ++i) {
      const int column = (int)(kcp_points_column(&points, 0)[i] * SIDE);
      const int row = (int)(kcp_points_column(&points, other)[i] * SIDE);
      ++cells[row * SIDE + column];
    }
    double chi_square = 0.0;
    for (int cell = 0; cell < CELLS; ++cell) {
      const double expected = (double)SAMPLE / CELLS, difference = cells[cell] - expected;
      chi_square += difference * difference / expected;
    }
    assert_near(chi_square, CELLS - 1, 5.0 * sqrt(2.0 * (CELLS - 1)));
  }
  kcp_points_free(&points);
}

static void test_gaussian_is_normal(void **state) {
  (void)state;
  const struct kcp_generate_options options = options_of(KCP_GAUSSIAN, SAMPLE);
  struct kcp_points points = generate(&options, options.count);
  for (uint32_t j = 0; j < 3; ++j) {
    const double *column = kcp_points_column(&points, j);
    double within_one = 0.0, within_two = 0.0, third = 0.0, fourth = 0.0;
    for (uint64_t i = 0; i < SAMPLE; ++i) {
      const double deviate = (column[i] - 0.5) / 0.1;
      within_one += fabs(deviate) < 1.0;
      within_two += fabs(deviate) < 2.0;
      third += deviate * deviate * deviate;
      fourth += deviate * deviate * deviate * deviate;
    }
    assert_near(mean_of(column, SAMPLE), 0.5, 0.0015);
    assert_near(deviation_of(column, SAMPLE), 0.1, 0.001);
    assert_near(within_one / SAMPLE, 0.682689, 0.007);
    assert_near(within_two / SAMPLE, 0.954500, 0.004);
    assert_near(third / SAMPLE, 0.0, 0.05);
    assert_near(fourth / SAMPLE, 3.0, 0.1);
  }
  assert_near(covariance_of(kcp_points_column(&points, 0), kcp_points_column(&points, 1), SAMPLE),
              0.0, 0.0002);
  kcp_points_free(&points);
}

/* With the spread of the square itself, what is left of the normal distribution is truncated. */
static void test_gaussian_outside_the_square_is_drawn_again(void **state) {
  (void)state;
  struct kcp_generate_options options = options_of(KCP_GAUSSIAN, SAMPLE);
  options.gaussian_deviation = 0.5;
  struct kcp_points points = generate(&options, options.count);
  /* The normal distribution between -1 and 1 deviation: sqrt(1 - 2 phi(1) / (2 Phi(1) - 1)). */
  assert_near(deviation_of(kcp_points_column(&points, 0), SAMPLE), 0.5 * 0.539561, 0.003);
  assert_near(mean_of(kcp_points_column(&points, 1), SAMPLE), 0.5, 0.005);
  kcp_points_free(&points);
}

static void test_bit_frequencies(void **state) {
  (void)state;
  static const struct {
    double probability;
    uint32_t digits;
  } cases[] = {{0.2, 10}, {0.2, 20}, {0.5, 53}, {0.75, 1}, {1e-3, 30}};
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; ++c) {
    struct kcp_generate_options options = options_of(KCP_BIT, SAMPLE);
    options.bit_probability = cases[c].probability;
    options.bit_digits = cases[c].digits;
    struct kcp_points points = generate(&options, options.count);
    uint32_t ones[3][53] = {{0}};
    for (uint64_t i = 0; i < SAMPLE; ++i) {
      for (uint32_t j = 0; j < 3; ++j) {
        const double scaled = ldexp(kcp_points_column(&points, j)[i], (int)cases[c].digits);
        const uint64_t bits = (uint64_t)scaled;
        assert_true(scaled == (double)bits && bits >> cases[c].digits == 0);
        for (uint32_t b = 0; b < cases[c].digits; ++b) ones[j][b] += bits >> b & 1;
      }
    }
    const double spread = sqrt(cases[c].probability * (1.0 - cases[c].probability) / SAMPLE);
    for (uint32_t j = 0; j < 3; ++j) {
      for (uint32_t b = 0; b < cases[c].digits; ++b) {
        assert_near((double)ones[j][b] / SAMPLE, cases[c].probability, 5.0 * spread);
      }
    }
    kcp_points_free(&points);
  }
}

static void test_bit_with_probability_0_and_1(void **state) {
  (void)state;
  struct kcp_generate_options options = options_of(KCP_BIT, 100);
  for (int probability = 0; probability <= 1; ++probability) {
    options.bit_probability = probability;
    struct kcp_points points = generate(&options, options.count);
    for (uint64_t i = 0; i < 300; ++i) {
      assert_true(points.coordinates[i] == probability * (1.0 - 0x1p-10));
    }
    kcp_points_free(&points);
  }
}

/* Points off the diagonal leave the square with probability 2 E|delta| / sqrt(2), delta ~ N(0,
 * buffer / 5), and are then drawn again as a whole, which raises the share on the diagonal. */
static void test_diagonal_share_and_spread(void **state) {
  (void)state;
  struct kcp_generate_options options = options_of(KCP_DIAGONAL, SAMPLE);
  options.diagonal_percentage = 0.3;
  options.diagonal_buffer = 0.1;
  struct kcp_points points = generate(&options, options.count);
  const double *x = kcp_points_column(&points, 0), *y = kcp_points_column(&points, 1);
  const double pi = 3.14159265358979323846, deviation = options.diagonal_buffer / 5.0;
  const double kept = 1.0 - 2.0 * deviation / sqrt(2.0) * sqrt(2.0 / pi);
  uint64_t on = 0;
  double offset_squares = 0.0;
  for (uint64_t i = 0; i < SAMPLE; ++i) {
    on += x[i] == y[i];
    offset_squares += (x[i] - y[i]) * (x[i] - y[i]) / 2.0;
  }
  assert_near((double)on / SAMPLE, 0.3 / (0.3 + 0.7 * kept), 0.008);
  assert_near(sqrt(offset_squares / (double)(SAMPLE - on)), deviation, 0.0004);
  kcp_points_free(&points);
}

static void test_diagonal_of_percentage_1_is_the_diagonal(void **state) {
  (void)state;
  struct kcp_generate_options options = options_of(KCP_DIAGONAL, 1000);
  options.diagonal_percentage = 1.0;
  struct kcp_points points = generate(&options, options.count);
  assert_memory_equal(kcp_points_column(&points, 0), kcp_points_column(&points, 1),
                      1000 * sizeof(double));
  kcp_points_free(&points);
}

/* Every record is the midpoint of the one before and a corner, chosen with 2/5, 2/5, 1/5. */
static void test_sierpinski_is_the_chain_of_midpoints(void **state) {
  (void)state;
  const double corners[3][2] = {{0.0, 0.0}, {1.0, 0.0}, {0.5, sqrt(3.0) / 2.0}};
  const struct kcp_generate_options options = options_of(KCP_SIERPINSKI, SAMPLE);
  struct kcp_points points = generate(&options, options.count);
  const double *x = kcp_points_column(&points, 0), *y = kcp_points_column(&points, 1);
  uint64_t chosen[3] = {0};
  for (uint64_t i = 0; i < SAMPLE; ++i) {
    assert_true(y[i] <= sqrt(3.0) * fmin(x[i], 1.0 - x[i]) + 1e-15);
    if (i == 0) continue;
    int matches = 0;
    for (int corner = 0; corner < 3; ++corner) {
      const bool match = fabs(x[i] - (x[i - 1] + corners[corner][0]) / 2.0) < 1e-15 &&
                         fabs(y[i] - (y[i - 1] + corners[corner][1]) / 2.0) < 1e-15;
      chosen[corner] += match;
      matches += match;
    }
    assert_int_equal(matches, 1);
  }
  assert_near((double)chosen[0] / SAMPLE, 0.4, 0.008);
  assert_near((double)chosen[1] / SAMPLE, 0.4, 0.008);
  assert_near((double)chosen[2] / SAMPLE, 0.2, 0.008);
  kcp_points_free(&points);
}

/* SpiderWeb's loop: take the first box of the queue, split it across its longer side, put both
 * halves at the end, until there are n; then shrink each. Box i of the queue is record i. */
static void test_parcel_is_the_queue_of_boxes(void **state) {
  (void)state;
  enum { LARGEST = 300 };
  static double boxes[2 * LARGEST][4]; /* x, y, width, height; queue from `first` to `end` */
  for (uint64_t n = 1; n <= LARGEST; n += n < 20 ? 1 : 40) {
    struct kcp_generate_options options = options_of(KCP_PARCEL, n);
    options.dimensions = 2;
    options.parcel_split_range = 0.25;
    struct kcp_points points = generate(&options, options.count);
    uint64_t first = 0, end = 1;
    memcpy(boxes[0], (double[4]){0.0, 0.0, 1.0, 1.0}, sizeof boxes[0]);
    while (end - first < n) {
      const uint64_t number = first + 1;
      const double u = kcp_random_unit(kcp_random_pair(options.seed, 0, number, 0).first);
      const double *box = boxes[first++];
      const int axis = box[2] > box[3] ? 0 : 1;
      const double cut = box[2 + axis] * (0.25 + 0.5 * u);
      memcpy(boxes[end], box, sizeof boxes[0]);
      memcpy(boxes[end + 1], box, sizeof boxes[0]);
      boxes[end][2 + axis] = cut;
      boxes[end + 1][axis] += cut;
      boxes[end + 1][2 + axis] -= cut;
      end += 2;
    }
    for (uint64_t i = 0; i < n; ++i) {
      const double *box = boxes[first + i];
      const struct kcp_random_pair bits = kcp_random_pair(options.seed, 0, n + i, 1);
      const double width = box[2] * (1.0 - 0.5 * kcp_random_unit(bits.first));
      const double height = box[3] * (1.0 - 0.5 * kcp_random_unit(bits.second));
      assert_true(kcp_points_column(&points, 0)[i] == box[0] + width / 2.0);
      assert_true(kcp_points_column(&points, 1)[i] == box[1] + height / 2.0);
    }
    kcp_points_free(&points);
  }
}

static int compare_numbers(const void *a, const void *b) {
  const double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

/* Halved boxes without dither are a grid, the same for the further set: z is x in another order. */
static void test_parcel_z_is_a_shuffle_of_the_further_set(void **state) {
  (void)state;
  for (uint64_t n = 1; n <= 4096; n = n * 3 + 1) {
    struct kcp_generate_options options = options_of(KCP_PARCEL, n);
    options.parcel_dither = 0.0;
    struct kcp_points points = generate(&options, 100);
    double *x = kcp_points_column(&points, 0), *z = kcp_points_column(&points, 2);
    if (n > 100) assert_memory_not_equal(x, z, n * sizeof *x);
    qsort(x, n, sizeof *x, compare_numbers);
    qsort(z, n, sizeof *z, compare_numbers);
    assert_memory_equal(x, z, n * sizeof *x);
    kcp_points_free(&points);
  }
}

static void test_no_points(void **state) {
  (void)state;
  for (int distribution = 0; distribution < DISTRIBUTIONS; ++distribution) {
    const struct kcp_generate_options options = options_of(distribution, 0);
    struct kcp_generator *generator;
    struct kcp_points points = {.count = 9, .dimensions = 3};
    assert_int_equal(kcp_generator_create(&options, &generator, NULL), KCP_OK);
    kcp_generate_block(generator, 0, 0, &points);
    assert_int_equal(points.count, 0);
    kcp_generator_free(generator);
  }
}

static void test_far_records_of_a_huge_set(void **state) {
  (void)state;
  for (int distribution = 0; distribution < DISTRIBUTIONS; ++distribution) {
    struct kcp_generate_options options = options_of(distribution, (UINT64_C(1) << 58) - 1);
    options.parcel_split_range = 0.1;
    struct kcp_generator *generator;
    struct kcp_points points;
    assert_int_equal(kcp_generator_create(&options, &generator, NULL), KCP_OK);
    assert_int_equal(kcp_points_allocate(10, 3, &points, NULL), KCP_OK);
    kcp_generate_block(generator, options.count - 10, 10, &points);
    for (uint64_t i = 0; i < 10; ++i) assert_int_equal(points.ids[i], options.count - 10 + i);
    for (uint64_t i = 0; i < 30; ++i) {
      assert_true(points.coordinates[i] >= 0.0 && points.coordinates[i] < 1.0);
    }
    kcp_points_free(&points);
    kcp_generator_free(generator);
  }
}

static void assert_refused(const struct kcp_generate_options *options) {
  struct kcp_error error = {.message = ""};
  struct kcp_generator *generator = NULL;
  assert_int_equal(kcp_generate_check(options, &error), KCP_BAD_INPUT);
  assert_int_not_equal(error.message[0], '\0');
  assert_null(strchr(error.message, '\n'));
  assert_int_equal(kcp_generator_create(options, &generator, &error), KCP_BAD_INPUT);
  assert_null(generator);
}

static void test_bad_numbers_are_refused(void **state) {
  (void)state;
  static const struct {
    size_t offset;
    double least, most;
  } parameters[] = {
      {offsetof(struct kcp_generate_options, gaussian_mean), 0.0, 1.0},
      {offsetof(struct kcp_generate_options, gaussian_deviation), 0.0, 10.0},
      {offsetof(struct kcp_generate_options, bit_probability), 0.0, 1.0},
      {offsetof(struct kcp_generate_options, diagonal_percentage), 0.0, 1.0},
      {offsetof(struct kcp_generate_options, diagonal_buffer), 0.0, 10.0},
      {offsetof(struct kcp_generate_options, parcel_split_range), 0.0, 0.5},
      {offsetof(struct kcp_generate_options, parcel_dither), 0.0, 1.0},
  };
  for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; ++i) {
    struct kcp_generate_options options = options_of(KCP_UNIFORM, 10);
    double *value = (double *)((char *)&options + parameters[i].offset);
    *value = parameters[i].least;
    assert_int_equal(kcp_generate_check(&options, NULL), KCP_OK);
    *value = parameters[i].most;
    assert_int_equal(kcp_generate_check(&options, NULL), KCP_OK);
    const double bad[] = {nextafter(parameters[i].least, -1.0),
                          nextafter(parameters[i].most, INFINITY),
                          -1.0,
                          INFINITY,
                          -INFINITY,
                          NAN};
    for (size_t b = 0; b < sizeof bad / sizeof bad[0]; ++b) {
      *value = bad[b];
      assert_refused(&options);
    }
  }
}

static void test_bad_counts_are_refused(void **state) {
  (void)state;
  struct kcp_generate_options options = options_of(KCP_BIT, 10);
  options.bit_digits = 0;
  assert_refused(&options);
  options.bit_digits = 54;
  assert_refused(&options);
  options = options_of(KCP_UNIFORM, 10);
  options.dimensions = 1;
  assert_refused(&options);
  options.dimensions = 4;
  assert_refused(&options);
  options = options_of(KCP_UNIFORM, UINT64_C(1) << 58);
  assert_refused(&options);
  options = options_of((enum kcp_distribution)DISTRIBUTIONS, 10);
  assert_refused(&options);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same_bytes_whatever_the_blocks),
      cmocka_unit_test(test_golden_checksums),
      cmocka_unit_test(test_seeds_give_different_points),
      cmocka_unit_test(test_ids_are_record_numbers_and_z_is_0_in_2d),
      cmocka_unit_test(test_points_lie_in_the_unit_cube),
      cmocka_unit_test(test_z_is_like_x_but_independent),
      cmocka_unit_test(test_uniform_fills_the_cells_evenly),
      cmocka_unit_test(test_gaussian_is_normal),
      cmocka_unit_test(test_gaussian_outside_the_square_is_drawn_again),
      cmocka_unit_test(test_bit_frequencies),
      cmocka_unit_test(test_bit_with_probability_0_and_1),
      cmocka_unit_test(test_diagonal_share_and_spread),
      cmocka_unit_test(test_diagonal_of_percentage_1_is_the_diagonal),
      cmocka_unit_test(test_sierpinski_is_the_chain_of_midpoints),
      cmocka_unit_test(test_parcel_is_the_queue_of_boxes),
      cmocka_unit_test(test_parcel_z_is_a_shuffle_of_the_further_set),
      cmocka_unit_test(test_no_points),
      cmocka_unit_test(test_far_records_of_a_huge_set),
      cmocka_unit_test(test_bad_numbers_are_refused),
      cmocka_unit_test(test_bad_counts_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

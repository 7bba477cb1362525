/* The walk over sub-partitions, metrics, and the sort and rank blocks beneath them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <omp.h>

#include "cpu/radix_sort.h"
#include "cpu/rank_block.h"
#include "kcp/subpartition.h"

#define POINTS 97

static uint64_t next_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *state >> 33;
}

static int compare_doubles(const void *a, const void *b) {
  double left = *(const double *)a, right = *(const double *)b;
  return left < right ? -1 : left > right;
}

static double gap_to(double x, double first, double last) {
  return x < first ? first - x : x > last ? x - last : 0;
}

/* Walks with a fixed threshold: nearest first, each once, and none left out that is within it. */
static void check_walk(const double *x, uint32_t count, uint32_t size, double query,
                       double threshold) {
  double first_x[POINTS], last_x[POINTS];
  bool visited[POINTS] = {false};
  uint32_t slices = (count + size - 1) / size;
  for (uint32_t i = 0; i < slices; ++i) {
    first_x[i] = x[i * size];
    last_x[i] = x[((i + 1) * size < count ? (i + 1) * size : count) - 1];
  }
  struct kcp_subpartition_index index = {first_x, last_x, slices, size};
  struct kcp_walk walk;
  uint32_t current = kcp_walk_start(&index, query, &walk);
  double nearest = INFINITY, gap_before = 0;
  for (uint32_t i = 0; i < slices; ++i)
    nearest = fmin(nearest, gap_to(query, first_x[i], last_x[i]));
  assert_true(gap_to(query, first_x[current], last_x[current]) == nearest);
  do {
    double gap = gap_to(query, first_x[current], last_x[current]);
    assert_false(visited[current]);
    visited[current] = true;
    assert_true(gap >= gap_before);
    gap_before = gap;
  } while (kcp_walk_next(&index, KCP_L2, 0, query, threshold, &walk, &current));
  for (uint32_t i = 0; i < count; ++i)
    if ((x[i] - query) * (x[i] - query) <= threshold) assert_true(visited[i / size]);
}

static void test_walk(void **state) {
  uint64_t random = 1;
  (void)state;
  for (int round = 0; round < 2000; ++round) {
    double x[POINTS];
    uint32_t count = 1 + (uint32_t)(next_random(&random) % POINTS);
    uint64_t values = round % 3 == 0 ? 4 : 1000; /* runs of equal x, or few */
    for (uint32_t i = 0; i < count; ++i) x[i] = (double)(next_random(&random) % values) / 7;
    qsort(x, count, sizeof x[0], compare_doubles);
    uint32_t size = 1 + (uint32_t)(next_random(&random) % 9);
    double query = (double)next_random(&random) / 2147483648.0 * 200 - 30;
    if (round % 2) query = x[next_random(&random) % count]; /* on a point, maybe on a border */
    if (round % 5 == 0) query = nextafter(query, round % 10 ? 1e9 : -1e9);
    static const double thresholds[] = {0, 1e-320, 0.01, 3, 1e4, 1.7976931348623157e308};
    check_walk(x, count, size, query, thresholds[next_random(&random) % 6]);
  }
}

static void test_metric_values(void **state) {
  static const double a[] = {1, 5, -2}, b[] = {4, 1, -2.5};
  (void)state;
  assert_true(kcp_metric_rank_of(KCP_L1, 0, 3, a, 1, 0, b) == 7.5);
  assert_true(kcp_metric_rank_of(KCP_L2, 0, 3, a, 1, 0, b) == 25.25);
  assert_true(kcp_metric_rank_of(KCP_LINF, 0, 3, a, 1, 0, b) == 4);
  assert_true(kcp_metric_rank_of(KCP_LP, 3, 3, a, 1, 0, b) == 27 + 64 + 0.125);
  assert_true(kcp_metric_term(KCP_LP, 16, -2) == 65536);
  struct kcp_metric l2 = {KCP_L2, 0}, lp = {KCP_LP, 4};
  assert_true(kcp_metric_distance(l2, 25) == 5 && kcp_metric_rank(l2, 1.5) == 2.25);
  assert_true(kcp_metric_distance(lp, 16) == 2 && kcp_metric_rank(lp, 2) == 16);
  assert_int_equal(kcp_metric_degree(lp), 4);
}

static void test_rank_block(void **state) {
  static double columns[8 * KCP_RANK_BLOCK], ranks[KCP_RANK_BLOCK];
  static const struct kcp_metric metrics[] = {{KCP_L1, 0}, {KCP_L2, 0}, {KCP_LINF, 0}, {KCP_LP, 5}};
  double query[8];
  uint64_t random = 7;
  (void)state;
  for (size_t i = 0; i < 8 * KCP_RANK_BLOCK; ++i) columns[i] = (double)next_random(&random) / 3e8;
  for (int j = 0; j < 8; ++j) query[j] = (double)next_random(&random) / 3e8;
  for (int m = 0; m < 4; ++m)
    for (uint32_t dimensions = 1; dimensions <= 8; ++dimensions)
      for (uint32_t count = 1; count <= KCP_RANK_BLOCK; count += 51) {
        double limit = kcp_metric_rank_of(metrics[m].kind, metrics[m].power, dimensions, columns,
                                          KCP_RANK_BLOCK, count / 2, query);
        uint32_t expected = 0;
        uint32_t within = kcp_rank_block(metrics[m], dimensions, columns, KCP_RANK_BLOCK, count,
                                         query, limit, ranks);
        for (uint32_t i = 0; i < count; ++i) {
          double rank = kcp_metric_rank_of(metrics[m].kind, metrics[m].power, dimensions, columns,
                                           KCP_RANK_BLOCK, i, query);
          assert_memory_equal(&rank, &ranks[i], sizeof rank);
          expected += rank <= limit;
        }
        assert_int_equal(within, expected);
      }
}

static void check_sort(uint64_t count, uint64_t values) {
  struct kcp_radix_sorter sorter;
  struct kcp_error error;
  double *keys = malloc((count + 1) * sizeof *keys);
  bool *seen = calloc(count + 1, 1);
  uint64_t random = count + values;
  for (uint64_t i = 0; i < count; ++i) {
    keys[i] = (double)(next_random(&random) % values) - (double)(values / 2);
    if (keys[i] == 0 && next_random(&random) % 2) keys[i] = -0.0;
    if (next_random(&random) % 50 == 0) keys[i] *= 1e200;
  }
  assert_int_equal(kcp_radix_sorter_create(count, &sorter, &error), KCP_OK);
  const uint32_t *order = kcp_radix_sort(&sorter, keys, count);
  for (uint64_t i = 0; i < count; ++i) {
    assert_false(seen[order[i]]);
    seen[order[i]] = true;
    if (i == 0) continue;
    assert_true(keys[order[i - 1]] <= keys[order[i]]);
    if (keys[order[i - 1]] == keys[order[i]]) assert_true(order[i - 1] < order[i]); /* stable */
  }
  kcp_radix_sorter_free(&sorter);
  free(keys);
  free(seen);
}

static void test_radix_sort(void **state) {
  static const uint64_t counts[] = {0, 1, 2, 255, 256, 257, 16383, 16384, 16385, 100003};
  int threads = omp_get_max_threads();
  (void)state;
  for (int t = 1; t <= 5; t += 2) {
    omp_set_num_threads(t);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
      check_sort(counts[i], 1000000);
      check_sort(counts[i], 3);
    }
  }
  omp_set_num_threads(threads);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_walk), cmocka_unit_test(test_metric_values),
      cmocka_unit_test(test_rank_block), cmocka_unit_test(test_radix_sort)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

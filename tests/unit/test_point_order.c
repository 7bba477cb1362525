/* The orders in which partitions are searched on the CPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/point_order.h"

#define CAPACITY 2000

struct fixture {
  struct kcp_ordered_points points;
  struct kcp_radix_sorter sorter;
};

static uint64_t next_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *state >> 33;
}

/* Few places, few x, zeros of both signs, ids in any order and some twice. */
static void fill(struct fixture *with, uint32_t dimensions, uint64_t count, uint64_t places,
                 uint64_t *random) {
  struct kcp_error error;
  memset(with, 0, sizeof *with);
  assert_int_equal(kcp_ordered_points_allocate(CAPACITY, dimensions, true, &with->points, &error),
                   KCP_OK);
  assert_int_equal(kcp_radix_sorter_create(CAPACITY, &with->sorter, &error), KCP_OK);
  struct kcp_points *block = &with->points.block;
  block->count = count;
  with->points.first_record = 1000;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t place = next_random(random) % places;
    block->ids[i] = next_random(random) % (count + 5);
    for (uint32_t j = 0; j < dimensions; ++j) {
      double value = (double)(place / (j + 1) % 5);
      kcp_points_column(block, j)[i] = value == 0 && next_random(random) % 2 ? -0.0 : value;
    }
  }
}

static void release(struct fixture *with) {
  kcp_ordered_points_free(&with->points);
  kcp_radix_sorter_free(&with->sorter);
}

static bool same_place(const struct kcp_points *points, uint64_t a, uint64_t b) {
  for (uint32_t j = 0; j < points->dimensions; ++j)
    if (kcp_points_column(points, j)[a] != kcp_points_column(points, j)[b]) return false;
  return true;
}

/* How many points of the place come before point i by (id, record). */
static uint64_t before_at_place(const struct kcp_points *block, uint64_t i) {
  uint64_t before = 0;
  for (uint64_t other = 0; other < block->count; ++other)
    before +=
        (block->ids[other] < block->ids[i] || (block->ids[other] == block->ids[i] && other < i)) &&
        same_place(block, other, i);
  return before;
}

/* `sorted` holds every point that it should, once, with its own id and coordinates. */
static void check_points(const struct kcp_ordered_points *points, uint64_t k) {
  const struct kcp_points *block = &points->block, *searched = kcp_searched_points(points);
  bool *seen = calloc(block->count + 1, 1);
  for (uint64_t i = 0; i < searched->count; ++i) {
    uint64_t from = kcp_searched_record(points, i) - points->first_record;
    assert_true(from < block->count && !seen[from]);
    seen[from] = true;
    assert_true(searched->ids[i] == block->ids[from]);
    for (uint32_t j = 0; j < block->dimensions; ++j)
      assert_true(kcp_points_column(searched, j)[i] == kcp_points_column(block, j)[from]);
  }
  for (uint64_t i = 0; i < block->count; ++i)
    assert_true(seen[i] || before_at_place(block, i) >= k);
  free(seen);
}

static void test_coincident_points(void **state) {
  static const uint64_t places[] = {1, 2, 30, 100000};
  uint64_t random = 1;
  (void)state;
  for (uint32_t dimensions = 1; dimensions <= 4; ++dimensions)
    for (uint64_t count = 0; count <= 600; count = 2 * count + 1)
      for (int p = 0; p < 4; ++p)
        for (uint64_t k = 1; k <= 300; k *= 4) {
          struct fixture with;
          fill(&with, dimensions, count, places[p], &random);
          kcp_order_by_x(&with.sorter, &with.points);
          check_points(&with.points, UINT64_MAX);
          kcp_drop_coincident(&with.sorter, k, &with.points);
          check_points(&with.points, k);
          const struct kcp_points *sorted = &with.points.sorted;
          for (uint64_t i = 1; i < sorted->count; ++i)
            assert_true(sorted->coordinates[i - 1] <= sorted->coordinates[i]);
          if (places[p] == 1) assert_true(sorted->count == (count < k ? count : k));
          release(&with);
        }
}

static void test_order_by_id(void **state) {
  uint64_t random = 2;
  (void)state;
  for (uint64_t count = 0; count <= 1200; count = 2 * count + 1) {
    struct fixture with;
    fill(&with, 2, count, 20, &random);
    kcp_order_by_id(&with.sorter, &with.points);
    check_points(&with.points, UINT64_MAX);
    const struct kcp_points *searched = kcp_searched_points(&with.points);
    for (uint64_t i = 1; i < searched->count; ++i) {
      assert_true(searched->ids[i - 1] <= searched->ids[i]);
      if (searched->ids[i - 1] == searched->ids[i]) /* stable */
        assert_true(kcp_searched_record(&with.points, i - 1) <
                    kcp_searched_record(&with.points, i));
    }
    /* Ids that ascend leave the block as it is. */
    for (uint64_t i = 0; i < count; ++i) with.points.block.ids[i] = i / 2;
    kcp_order_by_id(&with.sorter, &with.points);
    assert_false(with.points.is_sorted);
    release(&with);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_coincident_points),
                                     cmocka_unit_test(test_order_by_id)};
  return cmocka_run_group_tests_name("point_order", tests, NULL, NULL);
}

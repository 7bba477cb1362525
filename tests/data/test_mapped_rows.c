/* Coordinates read from a mapping: what kcp_dataset_read gives, without the constant ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <unistd.h>

#include "kcp/mapped_rows.h"
#include "kcp/record_access.h"
#include "scratch_folder.h"

enum { COUNT = 50021 };

static struct kcp_error message;

struct record {
  uint64_t id;
  double x, y, z;
};

static struct record *make_records(double z) {
  struct record *records = malloc(COUNT * sizeof *records);
  for (uint64_t i = 0; i < COUNT; ++i)
    records[i] = (struct record){UINT64_MAX - i, (double)i + 0.5, -(double)i, z};
  return records;
}

static struct kcp_dataset *open_records(const struct record *records) {
  struct kcp_dataset *dataset = NULL;
  const char *path = write_scratch_file("a.bin", records, COUNT * sizeof *records);
  if (kcp_dataset_open(path, NULL, &dataset, &message) != KCP_OK) fail_msg("%s", message.message);
  return dataset;
}

/* Every range read both ways, with `leading` coordinates wanted. */
static void check_ranges(struct kcp_dataset *dataset, uint32_t leading, double rest) {
  static const uint64_t ranges[][2] = {{0, COUNT}, {0, 1}, {COUNT - 1, 1}, {777, 40000}, {5, 0}};
  struct kcp_points all, some;
  assert_int_equal(kcp_points_allocate(COUNT, 3, &all, &message), KCP_OK);
  assert_int_equal(kcp_points_allocate(COUNT, leading, &some, &message), KCP_OK);
  assert_true(kcp_dataset_map(dataset));
  for (size_t r = 0; r < sizeof ranges / sizeof ranges[0]; ++r) {
    uint64_t first = ranges[r][0], count = ranges[r][1];
    bool differs = true;
    assert_int_equal(kcp_dataset_read(dataset, first, count, &all, &message), KCP_OK);
    assert_int_equal(
        kcp_dataset_read_leading(dataset, first, count, &rest, &some, &differs, &message), KCP_OK);
    if (count > 0) assert_false(differs);
    assert_int_equal(some.count, count);
    for (uint32_t j = 0; j < leading; ++j)
      assert_memory_equal(kcp_points_column(&some, j), kcp_points_column(&all, j),
                          count * sizeof(double));
  }
  kcp_points_free(&all);
  kcp_points_free(&some);
}

static void coordinates_are_those_of_a_read(void **state) {
  (void)state;
  struct record *records = make_records(7);
  struct kcp_dataset *dataset = open_records(records);
  check_ranges(dataset, 2, 7);
  check_ranges(dataset, 3, NAN);
  const struct kcp_coordinate_range *range = kcp_dataset_range(dataset);
  assert_true(range->minimum[2] == 7 && range->maximum[2] == 7);
  assert_true(range->minimum[1] == -(double)(COUNT - 1) && range->maximum[0] == COUNT - 0.5);
  assert_true(range->smallest_magnitude == 0.5);
  kcp_dataset_set_scale(dataset, 3);
  check_ranges(dataset, 2, 56);
  kcp_dataset_close(dataset);
  free(records);
}

static void another_rest_is_noticed(void **state) {
  static const uint64_t places[] = {0, 1, 511, 512, 20000, COUNT - 1};
  (void)state;
  for (size_t p = 0; p < sizeof places / sizeof places[0]; ++p) {
    struct record *records = make_records(0);
    records[places[p]].z = 5e-324;
    struct kcp_dataset *dataset = open_records(records);
    struct kcp_points points;
    const double rest = 0;
    bool differs = false;
    assert_int_equal(kcp_points_allocate(COUNT, 2, &points, &message), KCP_OK);
    assert_true(kcp_dataset_map(dataset));
    assert_int_equal(
        kcp_dataset_read_leading(dataset, 0, COUNT, &rest, &points, &differs, &message), KCP_OK);
    assert_true(differs);
    kcp_points_free(&points);
    kcp_dataset_close(dataset);
    free(records);
  }
}

static void faults_are_reported_as_by_a_read(void **state) {
  (void)state;
  for (int column = 0; column < 2; ++column) {
    struct record *records = make_records(0);
    *(column == 0 ? &records[40000].x : &records[40000].y) = NAN;
    struct kcp_dataset *dataset = open_records(records);
    struct kcp_points points;
    const double rest = 0;
    bool differs = false;
    assert_int_equal(kcp_points_allocate(COUNT, 2, &points, &message), KCP_OK);
    assert_true(kcp_dataset_map(dataset));
    assert_int_equal(
        kcp_dataset_read_leading(dataset, 0, COUNT, &rest, &points, &differs, &message),
        KCP_BAD_INPUT);
    assert_non_null(strstr(message.message, "of record 40000 is NaN"));
    kcp_points_free(&points);
    kcp_dataset_close(dataset);
    free(records);
  }
}

static void a_file_that_became_shorter_is_refused(void **state) {
  (void)state;
  struct record *records = make_records(0);
  struct kcp_dataset *dataset = open_records(records);
  struct kcp_points points;
  const double rest = 0;
  bool differs = false;
  assert_int_equal(kcp_points_allocate(COUNT, 2, &points, &message), KCP_OK);
  assert_true(kcp_dataset_map(dataset));
  uint64_t ids[2];
  /* Whole pages less, and less than a page. */
  static const long sizes[] = {32 * 1000, 32 * 1000 - 1, 0};
  assert_int_equal(truncate(scratch_path("a.bin"), 32 * (COUNT - 1)), 0);
  assert_int_equal(
      kcp_dataset_read_leading(dataset, COUNT - 1, 1, &rest, &points, &differs, &message),
      KCP_FAILED);
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    assert_int_equal(truncate(scratch_path("a.bin"), sizes[i]), 0);
    message.message[0] = '\0';
    assert_int_equal(
        kcp_dataset_read_leading(dataset, 0, COUNT, &rest, &points, &differs, &message),
        KCP_FAILED);
    assert_non_null(strstr(message.message, "became shorter"));
    assert_int_equal(
        kcp_dataset_ids_of(dataset, (const uint64_t[]){5, COUNT - 1}, 2, ids, &message),
        KCP_FAILED);
    assert_non_null(strstr(message.message, "became shorter"));
  }
  kcp_points_free(&points);
  kcp_dataset_close(dataset);
  free(records);
}

static void ids_come_from_the_mapping(void **state) {
  (void)state;
  struct record *records = make_records(0);
  struct kcp_dataset *dataset = open_records(records);
  enum { WANTED = 9000 };
  uint64_t *numbers = malloc(2 * WANTED * sizeof *numbers), *ids = numbers + WANTED;
  assert_true(kcp_dataset_map(dataset));
  for (uint64_t i = 0; i < WANTED; ++i) numbers[i] = i * 7919 % COUNT;
  assert_int_equal(kcp_dataset_ids_of(dataset, numbers, WANTED, ids, &message), KCP_OK);
  for (uint64_t i = 0; i < WANTED; ++i) assert_true(ids[i] == UINT64_MAX - numbers[i]);
  free(numbers);
  kcp_dataset_close(dataset);
  free(records);
}

static void text_is_not_mapped(void **state) {
  (void)state;
  struct kcp_dataset *dataset = NULL;
  const char *path = write_scratch_file("a.csv", "1,2,3\n", 6);
  assert_int_equal(kcp_dataset_open(path, NULL, &dataset, &message), KCP_OK);
  assert_false(kcp_dataset_map(dataset));
  kcp_dataset_close(dataset);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(coordinates_are_those_of_a_read),
                                     cmocka_unit_test(another_rest_is_noticed),
                                     cmocka_unit_test(faults_are_reported_as_by_a_read),
                                     cmocka_unit_test(a_file_that_became_shorter_is_refused),
                                     cmocka_unit_test(ids_come_from_the_mapping),
                                     cmocka_unit_test(text_is_not_mapped)};
  return cmocka_run_group_tests_name("mapped_rows", tests, make_scratch_folder,
                                     remove_scratch_folder);
}

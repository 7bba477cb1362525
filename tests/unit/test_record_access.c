/* Samples of a file and ids of chosen records, in every kind of format. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../data/scratch_folder.h"
#include "kcp/cells.h"
#include "kcp/record_access.h"

#define RECORDS 50000 /* several chunks in each format */

/* The j-th coordinate and the id of a record, wherever it is stored. */
static double coordinate_of(uint64_t record, uint32_t j) {
  return (double)(record * 4 + j);
}

static uint64_t id_of(uint64_t record) {
  return kcp_mix(record);
}

static void write_bin(FILE *stream, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t id = id_of(i);
    double point[3] = {coordinate_of(i, 0), coordinate_of(i, 1), coordinate_of(i, 2)};
    fwrite(&id, sizeof id, 1, stream);
    fwrite(point, sizeof point, 1, stream);
  }
}

static void write_csv(FILE *stream, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i)
    fprintf(stream, "%llu,%.17g,%.17g,%.17g\n", (unsigned long long)id_of(i), coordinate_of(i, 0),
            coordinate_of(i, 1), coordinate_of(i, 2));
}

/* .fbin: no ids, float32, which holds these whole numbers. */
static void write_fbin(FILE *stream, uint64_t count) {
  uint32_t header[2] = {(uint32_t)count, 3};
  fwrite(header, sizeof header, 1, stream);
  for (uint64_t i = 0; i < count; ++i)
    for (uint32_t j = 0; j < 3; ++j) {
      float value = (float)coordinate_of(i, j);
      fwrite(&value, sizeof value, 1, stream);
    }
}

struct kind {
  const char *name;
  void (*write)(FILE *stream, uint64_t count);
};

static const struct kind kinds[] = {
    {"points.bin", write_bin}, {"points.csv", write_csv}, {"points.fbin", write_fbin}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static struct kcp_dataset *open_points(const char *name) {
  struct kcp_dataset_options options = {.text_layout = KCP_TEXT_ID_FIRST};
  struct kcp_dataset *dataset;
  struct kcp_error error;
  if (kcp_dataset_open(scratch_path(name), &options, &dataset, &error) != KCP_OK)
    fail_msg("%s", error.message);
  return dataset;
}

static struct kcp_dataset *make_points(const struct kind *kind, uint64_t count) {
  FILE *stream = fopen(scratch_path(kind->name), "wb");
  kind->write(stream, count);
  fclose(stream);
  return open_points(kind->name);
}

static void check_sample(struct kcp_dataset *dataset, uint64_t wanted, double scale) {
  struct kcp_points points;
  struct kcp_error error;
  uint64_t all = kcp_dataset_count(dataset), room = wanted < all ? wanted : all;
  assert_int_equal(kcp_points_allocate(wanted, 3, &points, &error), KCP_OK);
  if (kcp_dataset_sample(dataset, wanted, &points, &error) != KCP_OK) fail_msg("%s", error.message);
  assert_int_equal(points.count, room);
  uint64_t in_halves[2] = {0, 0};
  for (uint64_t i = 0; i < points.count; ++i) {
    assert_true(points.ids[i] < all);
    ++in_halves[points.ids[i] >= all / 2];
    for (uint32_t j = 0; j < 3; ++j)
      assert_true(kcp_points_column(&points, j)[i] == scale * coordinate_of(points.ids[i], j));
    if (wanted >= all) assert_int_equal(points.ids[i], i);
  }
  /* Evenly spread, but for text's few runs. */
  if (room >= 20000) assert_true(in_halves[0] >= room / 4 && in_halves[1] >= room / 4);
  kcp_points_free(&points);
}

static void test_samples(void **state) {
  (void)state;
  static const uint64_t wanted[] = {1, 31, 33, 1000, 20000, RECORDS - 1, RECORDS, RECORDS + 7};
  for (int kind = 0; kind < KINDS; ++kind) {
    struct kcp_dataset *dataset = make_points(&kinds[kind], RECORDS);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; ++i)
      check_sample(dataset, wanted[i], 1);
    kcp_dataset_set_scale(dataset, -3);
    check_sample(dataset, 1000, 0.125);
    check_sample(dataset, RECORDS, 0.125);
    kcp_dataset_close(dataset);
  }
}

static void test_samples_of_few(void **state) {
  (void)state;
  for (int kind = 0; kind < KINDS; ++kind)
    for (uint64_t count = kind == 0 ? 0 : 1; count < 70; count += 23) {
      struct kcp_dataset *dataset = make_points(&kinds[kind], count);
      for (uint64_t wanted = 1; wanted < 75; wanted += 4) check_sample(dataset, wanted, 1);
      kcp_dataset_close(dataset);
    }
}

static void test_coordinate_not_finite(void **state) {
  (void)state;
  struct kcp_points points;
  struct kcp_error error;
  struct kcp_dataset *dataset = make_points(&kinds[0], RECORDS);
  kcp_dataset_close(dataset);
  FILE *stream = fopen(scratch_path(kinds[0].name), "r+b");
  double nan = NAN;
  fseek(stream, 16, SEEK_SET); /* y of the first record, which every sample has */
  fwrite(&nan, sizeof nan, 1, stream);
  fclose(stream);
  dataset = open_points(kinds[0].name);
  assert_int_equal(kcp_points_allocate(RECORDS, 3, &points, &error), KCP_OK);
  for (uint64_t wanted = 10; wanted <= RECORDS; wanted *= 5) {
    assert_int_equal(kcp_dataset_sample(dataset, wanted, &points, &error), KCP_BAD_INPUT);
    assert_non_null(strstr(error.message, "y of record 0 is NaN"));
  }
  kcp_points_free(&points);
  kcp_dataset_close(dataset);
}

static void test_ids(void **state) {
  (void)state;
  static const uint64_t counts[] = {0, 1, 5, 900, 30000};
  static const uint64_t within[] = {1, 100, RECORDS}; /* all the same, near each other, far apart */
  uint64_t *records = malloc(30000 * sizeof *records), *ids = malloc(30000 * sizeof *ids);
  struct kcp_error error;
  for (int kind = 0; kind < KINDS; ++kind) {
    struct kcp_dataset *dataset = make_points(&kinds[kind], RECORDS);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; ++c)
      for (size_t w = 0; w < sizeof within / sizeof within[0]; ++w) {
        for (uint64_t i = 0; i < counts[c]; ++i)
          records[i] = RECORDS - 1 - kcp_mix(i + 17) % within[w];
        if (kcp_dataset_ids_of(dataset, records, counts[c], ids, &error) != KCP_OK)
          fail_msg("%s", error.message);
        for (uint64_t i = 0; i < counts[c]; ++i)
          assert_int_equal(ids[i], kcp_dataset_has_ids(dataset) ? id_of(records[i]) : records[i]);
      }
    kcp_dataset_close(dataset);
  }
  free(records);
  free(ids);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_samples), cmocka_unit_test(test_samples_of_few),
      cmocka_unit_test(test_coordinate_not_finite), cmocka_unit_test(test_ids)};
  return cmocka_run_group_tests(tests, make_scratch_folder, remove_scratch_folder);
}

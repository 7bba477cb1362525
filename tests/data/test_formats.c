/* The binary formats and what all formats share: opening, ranges, scaling, invalid records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <omp.h>
#include <sys/stat.h>

#include "formats/formats.h"
#include "kcp/dataset.h"
#include "kcp/points.h"
#include "scratch_folder.h"

static struct kcp_error message;

struct record {
  uint64_t id;
  double x, y, z;
};

static struct kcp_dataset *open_or_fail(const char *path,
                                        const struct kcp_dataset_options *options) {
  struct kcp_dataset *dataset = NULL;
  if (kcp_dataset_open(path, options, &dataset, &message) != KCP_OK)
    fail_msg("%s", message.message);
  return dataset;
}

static struct kcp_points room_for(const struct kcp_dataset *dataset) {
  struct kcp_points points;
  assert_int_equal(kcp_points_allocate(kcp_dataset_count(dataset), kcp_dataset_dimensions(dataset),
                                       &points, &message),
                   KCP_OK);
  return points;
}

/* Reads all of a file; its status, with the message in `message`. */
static enum kcp_status read_all(const char *path) {
  struct kcp_dataset *dataset;
  enum kcp_status status = kcp_dataset_open(path, NULL, &dataset, &message);
  if (status != KCP_OK) {
    assert_null(dataset);
    return status;
  }
  struct kcp_points points = room_for(dataset);
  status = kcp_dataset_read(dataset, 0, kcp_dataset_count(dataset), &points, &message);
  kcp_points_free(&points);
  kcp_dataset_close(dataset);
  return status;
}

static void assert_refused(const char *path, enum kcp_status expected, const char *reason) {
  message.message[0] = '\0';
  assert_int_equal(read_all(path), expected);
  if (strstr(message.message, reason) == NULL)
    fail_msg("'%s' does not say '%s'", message.message, reason);
  assert_null(strchr(message.message, '\n'));
}

static struct record *make_records(uint64_t count) {
  struct record *records = malloc((count + 1) * sizeof *records);
  for (uint64_t i = 0; i < count; ++i)
    records[i] = (struct record){UINT64_MAX - i, (double)i + 0.5, -(double)i, 1e-3 * (double)i};
  return records;
}

static void bin_is_read_whole_and_in_ranges(void **state) {
  (void)state;
  enum { COUNT = 100003 };
  struct record *records = make_records(COUNT);
  const char *path = write_scratch_file("a.bin", records, COUNT * sizeof *records);
  struct kcp_dataset *dataset = open_or_fail(path, NULL);
  assert_string_equal(kcp_dataset_format(dataset), "bin");
  assert_string_equal(kcp_dataset_path(dataset), path);
  assert_int_equal(kcp_dataset_count(dataset), COUNT);
  assert_int_equal(kcp_dataset_dimensions(dataset), 3);
  assert_int_equal(kcp_dataset_file_bytes(dataset), COUNT * 32);
  assert_true(kcp_dataset_has_ids(dataset));
  struct kcp_points points = room_for(dataset);
  const uint64_t ranges[][2] = {{0, COUNT}, {0, 0},     {COUNT, 0},   {0, 1},        {COUNT - 1, 1},
                                {8191, 2},  {8192, 1},  {8191, 8194}, {8192, 16384}, {5000, 70000},
                                {16383, 1}, {99999, 4}, {1, 8191},    {12345, 0}};
  for (size_t r = 0; r < sizeof ranges / sizeof ranges[0]; ++r) {
    uint64_t first = ranges[r][0];
    uint64_t count = ranges[r][1];
    assert_int_equal(kcp_dataset_read(dataset, first, count, &points, &message), KCP_OK);
    assert_int_equal(points.count, count);
    for (uint64_t i = 0; i < count; ++i) {
      const struct record *record = &records[first + i];
      assert_true(points.ids[i] == record->id);
      assert_true(kcp_points_column(&points, 0)[i] == record->x);
      assert_true(kcp_points_column(&points, 1)[i] == record->y);
      assert_true(kcp_points_column(&points, 2)[i] == record->z);
    }
  }
  assert_int_equal(kcp_dataset_read(dataset, 0, COUNT + 1, &points, &message), KCP_FAILED);
  assert_int_equal(kcp_dataset_read(dataset, COUNT + 1, 0, &points, &message), KCP_FAILED);
  assert_int_equal(kcp_dataset_read(dataset, 5, UINT64_MAX, &points, &message), KCP_FAILED);
  kcp_points_free(&points);
  kcp_dataset_close(dataset);
  free(records);
}

static void bin_of_a_wrong_size_is_refused(void **state) {
  (void)state;
  char bytes[100] = {0};
  assert_refused(write_scratch_file("a.bin", bytes, 31), KCP_BAD_INPUT,
                 "its size of 31 bytes is not a multiple of 32");
  assert_refused(write_scratch_file("a.bin", bytes, 65), KCP_BAD_INPUT, "(1 bytes over)");
  assert_int_equal(read_all(write_scratch_file("a.bin", bytes, 0)), KCP_OK);
}

static void every_invalid_coordinate_is_found(void **state) {
  (void)state;
  enum { COUNT = 1000 };
  const double values[] = {NAN, -NAN, INFINITY, -INFINITY};
  const uint64_t places[] = {0, 1, 617, 998, 999};
  struct record *records = make_records(COUNT);
  for (size_t v = 0; v < 4; ++v) {
    for (size_t p = 0; p < 5; ++p) {
      for (int column = 0; column < 3; ++column) {
        struct record *record = &records[places[p]];
        double *coordinates[] = {&record->x, &record->y, &record->z};
        double saved = *coordinates[column];
        *coordinates[column] = values[v];
        char expected[128];
        snprintf(expected, sizeof expected,
                 "a.bin: %c of record %d is %s; every coordinate must be finite (kcp convert "
                 "--drop-invalid removes such records)",
                 "xyz"[column], (int)places[p], isnan(values[v]) ? "NaN" : "infinite");
        assert_refused(write_scratch_file("a.bin", records, COUNT * sizeof *records), KCP_BAD_INPUT,
                       expected);
        *coordinates[column] = saved;
      }
    }
  }
  free(records);
}

static void the_first_invalid_record_is_named_by_any_number_of_threads(void **state) {
  (void)state;
  enum { COUNT = 200000 };
  struct record *records = make_records(COUNT);
  for (uint64_t i = 70001; i < COUNT; i += 777) records[i].z = NAN;
  records[70001].y = INFINITY;
  const char *path = write_scratch_file("a.bin", records, COUNT * sizeof *records);
  for (int threads = 1; threads <= 8; ++threads) {
    omp_set_num_threads(threads);
    for (int repeat = 0; repeat < 5; ++repeat)
      assert_refused(path, KCP_BAD_INPUT, "y of record 70001 is infinite");
  }
  omp_set_num_threads(omp_get_num_procs());
  free(records);
}

static void invalid_records_are_left_out_when_asked(void **state) {
  (void)state;
  enum { COUNT = 50000 };
  struct record *records = make_records(COUNT);
  uint64_t invalid = 0;
  for (uint64_t i = 0; i < COUNT; i += 1 + i % 97, ++invalid)
    *(i % 2 == 0 ? &records[i].x : &records[i].z) = i % 3 == 0 ? NAN : -INFINITY;
  for (uint64_t i = 20000; i < 40000; ++i) { /* whole chunks */
    invalid += isfinite(records[i].x) && isfinite(records[i].z);
    records[i].z = NAN;
  }
  struct kcp_dataset_options options = {.drop_invalid = true};
  const char *path = write_scratch_file("a.bin", records, COUNT * sizeof *records);
  for (int threads = 1; threads <= 4; ++threads) {
    omp_set_num_threads(threads);
    struct kcp_dataset *dataset = open_or_fail(path, &options);
    struct kcp_points points = room_for(dataset);
    assert_int_equal(kcp_dataset_read(dataset, 0, COUNT, &points, &message), KCP_OK);
    assert_int_equal(points.count, COUNT - invalid);
    assert_int_equal(kcp_dataset_dropped(dataset), invalid);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < COUNT; ++i) {
      if (!isfinite(records[i].x) || !isfinite(records[i].z)) continue;
      assert_true(points.ids[kept] == records[i].id);
      assert_true(kcp_points_column(&points, 0)[kept] == records[i].x);
      assert_true(kcp_points_column(&points, 1)[kept] == records[i].y);
      assert_true(kcp_points_column(&points, 2)[kept] == records[i].z);
      ++kept;
    }
    assert_int_equal(kept, points.count);
    assert_true(isfinite(kcp_dataset_range(dataset)->largest_magnitude));
    kcp_points_free(&points);
    kcp_dataset_close(dataset);
  }
  omp_set_num_threads(omp_get_num_procs());
  free(records);
}

static void extremes_are_those_of_the_records_read(void **state) {
  (void)state;
  const struct record records[] = {{1, -3.0, 0.0, 1e-300},
                                   {2, 7.0, -0.0, 5.0},
                                   {3, 1e200, 2.0, -8.0},
                                   {4, 1.0, 1.0, 1.0},
                                   {5, 2.0, 2.0, 2.0}};
  struct kcp_dataset *dataset =
      open_or_fail(write_scratch_file("a.bin", records, sizeof records), NULL);
  struct kcp_points points = room_for(dataset);
  const struct kcp_coordinate_range *range = kcp_dataset_range(dataset);
  assert_int_equal(range->dimensions, 3);
  assert_true(range->largest_magnitude == 0.0);
  assert_true(range->smallest_magnitude == INFINITY);
  assert_true(range->minimum[2] == INFINITY && range->maximum[2] == -INFINITY);
  assert_int_equal(kcp_dataset_read(dataset, 0, 2, &points, &message), KCP_OK);
  assert_true(range->largest_magnitude == 7.0);
  assert_true(range->smallest_magnitude == 1e-300);
  assert_true(range->minimum[0] == -3.0 && range->maximum[0] == 7.0);
  assert_true(range->minimum[1] == 0.0 && range->maximum[1] == 0.0);
  assert_true(signbit(kcp_points_column(&points, 1)[1]));
  kcp_dataset_set_scale(dataset, -10);
  assert_int_equal(kcp_dataset_read(dataset, 2, 3, &points, &message), KCP_OK);
  assert_true(range->largest_magnitude == 1e200);
  assert_true(range->minimum[2] == -8.0 && range->maximum[2] == 5.0);
  kcp_points_free(&points);
  kcp_dataset_close(dataset);
}

static void scaling_is_that_of_ldexp(void **state) {
  (void)state;
  const double values[] = {1.0,   -3.7,   1e-300,   1e300,     DBL_MIN, DBL_TRUE_MIN, 5e6 + 1e-3,
                           1e154, 1e-308, 7.1e-320, -1.3e-310, 0.0,     -0.0,         DBL_MAX};
  enum { COUNT = sizeof values / sizeof values[0] };
  struct record records[COUNT];
  for (int i = 0; i < COUNT; ++i) records[i] = (struct record){0, values[i], 1.0, 1.0};
  struct kcp_dataset *dataset =
      open_or_fail(write_scratch_file("a.bin", records, sizeof records), NULL);
  struct kcp_points points = room_for(dataset);
  const int exponents[] = {0, 1, -1, 500, -500, 1023, -1022, 1024, -1023, 1074, -1080, 2046, -2044};
  for (size_t e = 0; e < sizeof exponents / sizeof exponents[0]; ++e) {
    kcp_dataset_set_scale(dataset, exponents[e]);
    assert_int_equal(kcp_dataset_read(dataset, 0, COUNT, &points, &message), KCP_OK);
    for (int i = 0; i < COUNT; ++i) {
      double expected = ldexp(values[i], exponents[e]);
      if (memcmp(&expected, &kcp_points_column(&points, 0)[i], sizeof expected) != 0)
        fail_msg("%g times 2^%d: %g instead of %g", values[i], exponents[e],
                 kcp_points_column(&points, 0)[i], expected);
    }
  }
  kcp_points_free(&points);
  kcp_dataset_close(dataset);
}

static void what_is_no_file_of_points_is_refused(void **state) {
  (void)state;
  assert_refused(scratch_path("absent.bin"), KCP_BAD_INPUT,
                 "absent.bin: No such file or directory");
  assert_refused(scratch_path("absent.xyz"), KCP_BAD_INPUT,
                 "absent.xyz: No such file or directory");
  assert_refused(write_scratch_file("a.xyz", "", 0), KCP_BAD_INPUT,
                 "a.xyz'; formats are .bin .csv .txt .tsv .npy .fvecs .fbin");
  assert_refused(write_scratch_file("noending", "", 0), KCP_BAD_INPUT, "no reader for '");
  assert_refused(write_scratch_file("a.bin.", "", 0), KCP_BAD_INPUT, "no reader for '");
  assert_refused(scratch_folder, KCP_BAD_INPUT, "is a directory");
  assert_refused("/dev/null", KCP_BAD_INPUT, "is a pipe or device");
  const char *pipe = scratch_path("pipe.csv");
  assert_int_equal(mkfifo(pipe, 0600), 0);
  assert_refused(pipe, KCP_BAD_INPUT, "is a pipe or device");
  const char *closed = write_scratch_file("closed.bin", "", 0);
  assert_int_equal(chmod(closed, 0), 0);
  if (access(closed, R_OK) != 0) assert_refused(closed, KCP_BAD_INPUT, "Permission denied");
  assert_int_equal(read_all(write_scratch_file("UPPER.BIN", "", 0)), KCP_OK);
  kcp_dataset_close(NULL);
}

static void a_file_that_shrinks_is_reported(void **state) {
  (void)state;
  struct record *records = make_records(20000);
  const char *text = "1,2\n3,4\n5,6\n7,8\n";
  const char *paths[] = {write_scratch_file("a.bin", records, 20000 * sizeof *records),
                         write_scratch_file("a.csv", text, strlen(text))};
  for (int i = 0; i < 2; ++i) {
    struct kcp_dataset *dataset = open_or_fail(paths[i], NULL);
    struct kcp_points points = room_for(dataset);
    assert_int_equal(truncate(paths[i], 8), 0);
    assert_int_equal(kcp_dataset_read(dataset, 0, kcp_dataset_count(dataset), &points, &message),
                     KCP_FAILED);
    assert_non_null(strstr(message.message, "became shorter while it was being read"));
    kcp_points_free(&points);
    kcp_dataset_close(dataset);
  }
  free(records);
}

/* An .npy file with this dictionary and `data_bytes` bytes of `data`. */
static const char *write_npy(int version, const char *dictionary, const void *data,
                             size_t data_bytes) {
  unsigned char bytes[4096] = "\x93NUMPY";
  uint32_t length = (uint32_t)strlen(dictionary);
  size_t used = 8 + (version == 1 ? 2 : 4);
  bytes[6] = (unsigned char)version;
  memcpy(bytes + 8, &length, used - 8);
  memcpy(bytes + used, dictionary, length);
  memcpy(bytes + used + length, data, data_bytes);
  return write_scratch_file("a.npy", bytes, used + length + data_bytes);
}

/* Each element type holds 1, 2, ... 6 as an array of 3 x 2. */
static void npy_element_types_and_orders_are_read(void **state) {
  (void)state;
  const float f4[] = {1, 2, 3, 4, 5, 6};
  const double f8[] = {1, 2, 3, 4, 5, 6};
  const int8_t i1[] = {1, 2, 3, 4, 5, 6};
  const uint8_t u1[] = {1, 2, 3, 4, 5, 6};
  const int16_t i2[] = {1, 2, 3, 4, 5, 6};
  const uint16_t u2[] = {1, 2, 3, 4, 5, 6};
  const int32_t i4[] = {1, 2, 3, 4, 5, 6};
  const uint32_t u4[] = {1, 2, 3, 4, 5, 6};
  const int64_t i8[] = {1, 2, 3, 4, 5, 6};
  const uint64_t u8[] = {1, 2, 3, 4, 5, 6};
  const struct {
    const char *description;
    const void *data;
    size_t bytes;
  } cases[] = {{"<f4", f4, sizeof f4}, {"<f8", f8, sizeof f8}, {"|i1", i1, sizeof i1},
               {"|u1", u1, sizeof u1}, {"<i2", i2, sizeof i2}, {"<u2", u2, sizeof u2},
               {"<i4", i4, sizeof i4}, {"<u4", u4, sizeof u4}, {"<i8", i8, sizeof i8},
               {"<u8", u8, sizeof u8}, {"=f8", f8, sizeof f8}};
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; ++c) {
    for (int fortran = 0; fortran <= 1; ++fortran) {
      char dictionary[128];
      snprintf(dictionary, sizeof dictionary,
               "{'descr': '%s', 'fortran_order': %s, 'shape': (3, 2), }  \n", cases[c].description,
               fortran ? "True" : "False");
      const char *path = write_npy(1 + (int)(c % 3), dictionary, cases[c].data, cases[c].bytes);
      struct kcp_dataset *dataset = open_or_fail(path, NULL);
      assert_int_equal(kcp_dataset_count(dataset), 3);
      assert_int_equal(kcp_dataset_dimensions(dataset), 2);
      assert_false(kcp_dataset_has_ids(dataset));
      struct kcp_points points = room_for(dataset);
      assert_int_equal(kcp_dataset_read(dataset, 1, 2, &points, &message), KCP_OK);
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) {
          double expected = fortran ? 1 + j * 3 + (i + 1) : 1 + (i + 1) * 2 + j;
          assert_true(kcp_points_column(&points, (uint32_t)j)[i] == expected);
        }
      assert_int_equal(points.ids[0], 1);
      assert_int_equal(points.ids[1], 2);
      kcp_points_free(&points);
      kcp_dataset_close(dataset);
    }
  }
}

static void npy_shapes_are_read_or_refused(void **state) {
  (void)state;
  const double data[6] = {1, 2, 3, 4, 5, 6};
  const struct {
    const char *shape;
    size_t bytes;
    const char *reason; /* NULL: it is read */
    uint64_t count;
    uint32_t dimensions;
  } cases[] = {
      {"(6,)", 48, NULL, 6, 1},
      {"(6)", 48, NULL, 6, 1},
      {"(1, 6)", 48, NULL, 1, 6},
      {"( 2 , 3 , )", 48, NULL, 2, 3},
      {"(0, 3)", 0, NULL, 0, 3},
      {"(0,)", 0, NULL, 0, 1},
      {"(3, 0)", 0, "points without coordinates", 0, 0},
      {"()", 8, "an array of 0 axes", 0, 0},
      {"(1, 2, 3)", 48, "an array of 3 axes", 0, 0},
      {"(3, 2)", 47, "its header says 3 x 2 elements of 8 bytes, which the 47 bytes", 0, 0},
      {"(2, 2)", 48, "do not match", 0, 0},
      {"(4611686018427387904, 4)", 0, "do not match", 0, 0},
      {"(0, 18446744073709551615)", 0, "do not match", 0, 0},
      {"(18446744073709551616, 2)", 0, "its shape is not a list of numbers", 0, 0},
      {"(0, 4000000000)", 0, "4000000000 dimensions; kcp reads up to 1048576", 0, 0},
      {"(-3, 2)", 48, "its shape is not a list of numbers", 0, 0},
      {"(3; 2)", 48, "its shape is not a list of numbers", 0, 0},
      {"(3, 2", 48, "its shape is not a list of numbers", 0, 0},
      {"3", 48, "its header has no 'shape'", 0, 0},
  };
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; ++c) {
    char dictionary[128];
    snprintf(dictionary, sizeof dictionary, "{'shape': %s, 'fortran_order': False, 'descr': '<f8'}",
             cases[c].shape);
    const char *path = write_npy(1, dictionary, data, cases[c].bytes);
    if (cases[c].reason != NULL) {
      assert_refused(path, KCP_BAD_INPUT, cases[c].reason);
      continue;
    }
    struct kcp_dataset *dataset = open_or_fail(path, NULL);
    assert_int_equal(kcp_dataset_count(dataset), cases[c].count);
    assert_int_equal(kcp_dataset_dimensions(dataset), cases[c].dimensions);
    kcp_dataset_close(dataset);
    assert_int_equal(read_all(path), KCP_OK);
  }
}

static void npy_headers_that_are_wrong_are_refused(void **state) {
  (void)state;
  const double data[6] = {1, 2, 3, 4, 5, 6};
  const struct {
    const char *dictionary;
    const char *reason;
  } cases[] = {
      {"", "its header has no 'descr'"},
      {"{'descr': '>f8', 'fortran_order': False, 'shape': (3, 2)}", "elements of type '>f8'"},
      {"{'descr': '<f2', 'fortran_order': False, 'shape': (3, 2)}", "elements of type '<f2'"},
      {"{'descr': '<c16', 'fortran_order': False, 'shape': (3, 2)}", "elements of type '<c16'"},
      {"{'descr': '|b1', 'fortran_order': False, 'shape': (3, 2)}", "elements of type '|b1'"},
      {"{'descr': '', 'fortran_order': False, 'shape': (3, 2)}", "not plain numbers"},
      {"{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (3,)}", "not plain numbers"},
      {"{'descr': '<f8', 'shape': (3, 2)}", "its header has no 'fortran_order'"},
      {"{'descr': '<f8', 'fortran_order': Maybe, 'shape': (3, 2)}", "no 'fortran_order'"},
      {"{'descr': '<f8', 'fortran_order': False}", "its header has no 'shape'"},
  };
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; ++c)
    assert_refused(write_npy(1, cases[c].dictionary, data, sizeof data), KCP_BAD_INPUT,
                   cases[c].reason);
  assert_refused(write_npy(4, "{}", data, 8), KCP_BAD_INPUT, "its version");
  assert_refused(write_scratch_file("a.npy", "", 0), KCP_BAD_INPUT, "shorter than a header");
  assert_refused(write_scratch_file("a.npy", "NUMPYNUMPYNUMPY", 15), KCP_BAD_INPUT,
                 "does not start with");
  assert_refused(write_scratch_file("a.npy", "\x93NUMPY\1\0\5", 9), KCP_BAD_INPUT,
                 "ends within its header");
  assert_refused(write_scratch_file("a.npy", "\x93NUMPY\2\0\xff\xff\xff\xff{}", 14), KCP_BAD_INPUT,
                 "ends within its header");
}

static void npy_integers_beyond_binary64_are_refused(void **state) {
  (void)state;
  const char *orders[] = {"False", "True"};
  for (int order = 0; order < 2; ++order) {
    int64_t data[6] = {1, INT64_C(1) << 53, -(INT64_C(1) << 53), 4, 5, 6};
    char dictionary[128];
    snprintf(dictionary, sizeof dictionary,
             "{'descr': '<i8', 'fortran_order': %s, 'shape': (3, 2)}", orders[order]);
    assert_int_equal(read_all(write_npy(1, dictionary, data, sizeof data)), KCP_OK);
    data[4] = (INT64_C(1) << 53) + 1;
    assert_refused(write_npy(1, dictionary, data, sizeof data), KCP_BAD_INPUT,
                   order == 0 ? "x of record 2 is an integer beyond 2^53"
                              : "y of record 1 is an integer beyond 2^53");
    data[3] = INT64_MIN;
    assert_refused(write_npy(1, dictionary, data, sizeof data), KCP_BAD_INPUT,
                   order == 0 ? "y of record 1 is" : "y of record 0 is");
  }
}

static void many_dimensions_are_read_by_any_number_of_threads(void **state) {
  (void)state;
  enum { COUNT = 3001, DIMENSIONS = 131 };
  float *rows = malloc(sizeof(float) * COUNT * DIMENSIONS + 8);
  const uint32_t header[2] = {COUNT, DIMENSIONS};
  memcpy(rows, header, sizeof header);
  for (int i = 0; i < COUNT * DIMENSIONS; ++i) rows[i + 2] = (float)(i * 0.37 - 50.0);
  const char *path =
      write_scratch_file("a.fbin", rows, sizeof(float) * COUNT * DIMENSIONS + sizeof header);
  for (int threads = 1; threads <= 4; ++threads) {
    omp_set_num_threads(threads);
    struct kcp_dataset *dataset = open_or_fail(path, NULL);
    assert_int_equal(kcp_dataset_count(dataset), COUNT);
    assert_int_equal(kcp_dataset_dimensions(dataset), DIMENSIONS);
    struct kcp_points points = room_for(dataset);
    assert_int_equal(kcp_dataset_read(dataset, 100, COUNT - 100, &points, &message), KCP_OK);
    for (uint64_t i = 0; i < COUNT - 100; ++i)
      for (uint32_t j = 0; j < DIMENSIONS; ++j)
        assert_true(kcp_points_column(&points, j)[i] ==
                    (double)rows[2 + (i + 100) * DIMENSIONS + j]);
    kcp_points_free(&points);
    kcp_dataset_close(dataset);
  }
  omp_set_num_threads(omp_get_num_procs());
  rows[2 + 2000 * DIMENSIONS + 7] = NAN;
  path = write_scratch_file("a.fbin", rows, sizeof(float) * COUNT * DIMENSIONS + sizeof header);
  assert_refused(path, KCP_BAD_INPUT, "coordinate 7 of record 2000 is NaN");
  free(rows);
}

static void fbin_files_that_are_wrong_are_refused(void **state) {
  (void)state;
  uint32_t words[8] = {2, 3};
  assert_int_equal(read_all(write_scratch_file("a.fbin", words, 32)), KCP_OK);
  assert_refused(write_scratch_file("a.fbin", words, 31), KCP_BAD_INPUT,
                 "its header says 2 records of dimension 3, which its size of 31 bytes");
  assert_refused(write_scratch_file("a.fbin", words, 7), KCP_BAD_INPUT,
                 "its 7 bytes are fewer than the 8");
  assert_refused(write_scratch_file("a.fbin", words, 0), KCP_BAD_INPUT, "fewer than the 8");
  words[0] = 3;
  assert_refused(write_scratch_file("a.fbin", words, 32), KCP_BAD_INPUT, "does not match");
  words[0] = words[1] = UINT32_MAX;
  assert_refused(write_scratch_file("a.fbin", words, 32), KCP_BAD_INPUT, "does not match");
  words[0] = 0;
  assert_refused(write_scratch_file("a.fbin", words, 8), KCP_BAD_INPUT, "4294967295 dimensions");
  words[1] = 0;
  assert_refused(write_scratch_file("a.fbin", words, 8), KCP_BAD_INPUT, "says dimension 0");
  words[1] = 5;
  assert_int_equal(read_all(write_scratch_file("a.fbin", words, 8)), KCP_OK);
}

static void fvecs_files_that_are_wrong_are_refused(void **state) {
  (void)state;
  int32_t words[12] = {2, 0, 0, 2, 0, 0, 2, 0, 0, 2, 0, 0};
  assert_int_equal(read_all(write_scratch_file("a.fvecs", words, sizeof words)), KCP_OK);
  assert_int_equal(read_all(write_scratch_file("a.fvecs", words, 0)), KCP_OK);
  assert_refused(write_scratch_file("a.fvecs", words, 3), KCP_BAD_INPUT,
                 "ends within the dimension of record 0");
  assert_refused(write_scratch_file("a.fvecs", words, 40), KCP_BAD_INPUT,
                 "its size of 40 bytes is not a multiple of the 12 bytes");
  words[6] = 3;
  assert_refused(write_scratch_file("a.fvecs", words, sizeof words), KCP_BAD_INPUT,
                 "record 2 has dimension 3, record 0 has 2");
  words[6] = -2;
  assert_refused(write_scratch_file("a.fvecs", words, sizeof words), KCP_BAD_INPUT,
                 "record 2 has dimension -2");
  float invalid = NAN;
  memcpy(&words[5], &invalid, sizeof invalid);
  assert_refused(write_scratch_file("a.fvecs", words, sizeof words), KCP_BAD_INPUT,
                 "y of record 1 is NaN");
  words[0] = 0;
  assert_refused(write_scratch_file("a.fvecs", words, sizeof words), KCP_BAD_INPUT,
                 "record 0 has dimension 0");
  words[0] = -1;
  assert_refused(write_scratch_file("a.fvecs", words, sizeof words), KCP_BAD_INPUT,
                 "record 0 has dimension -1");
  words[0] = INT32_MAX;
  assert_refused(write_scratch_file("a.fvecs", words, sizeof words), KCP_BAD_INPUT,
                 "is not a multiple");
}

static void a_format_can_be_named(void **state) {
  (void)state;
  struct kcp_dataset *dataset;
  const char *path = write_scratch_file("data", "1,2\n", 4);
  assert_int_equal(kcp_dataset_open_as(path, "csv", NULL, &dataset, &message), KCP_OK);
  assert_int_equal(kcp_dataset_count(dataset), 1);
  kcp_dataset_close(dataset);
  assert_int_equal(kcp_dataset_open_as(path, "xyz", NULL, &dataset, &message), KCP_BAD_INPUT);
}

static int clean(void **state) {
  (void)state;
  empty_scratch_folder();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(bin_is_read_whole_and_in_ranges, clean),
      cmocka_unit_test_setup(bin_of_a_wrong_size_is_refused, clean),
      cmocka_unit_test_setup(every_invalid_coordinate_is_found, clean),
      cmocka_unit_test_setup(the_first_invalid_record_is_named_by_any_number_of_threads, clean),
      cmocka_unit_test_setup(invalid_records_are_left_out_when_asked, clean),
      cmocka_unit_test_setup(extremes_are_those_of_the_records_read, clean),
      cmocka_unit_test_setup(scaling_is_that_of_ldexp, clean),
      cmocka_unit_test_setup(what_is_no_file_of_points_is_refused, clean),
      cmocka_unit_test_setup(a_file_that_shrinks_is_reported, clean),
      cmocka_unit_test_setup(npy_element_types_and_orders_are_read, clean),
      cmocka_unit_test_setup(npy_shapes_are_read_or_refused, clean),
      cmocka_unit_test_setup(npy_headers_that_are_wrong_are_refused, clean),
      cmocka_unit_test_setup(npy_integers_beyond_binary64_are_refused, clean),
      cmocka_unit_test_setup(many_dimensions_are_read_by_any_number_of_threads, clean),
      cmocka_unit_test_setup(fbin_files_that_are_wrong_are_refused, clean),
      cmocka_unit_test_setup(fvecs_files_that_are_wrong_are_refused, clean),
      cmocka_unit_test_setup(a_format_can_be_named, clean),
  };
  return cmocka_run_group_tests(tests, make_scratch_folder, remove_scratch_folder);
}

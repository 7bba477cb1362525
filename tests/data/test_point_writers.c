/* Every writer against its reader, and what a format cannot keep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <locale.h>
#include <math.h>
#include <omp.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "kcp/dataset.h"
#include "kcp/point_writer.h"
#include "kcp/points.h"
#include "scratch_folder.h"

static struct kcp_error message;

static uint64_t next_random(uint64_t *random) {
  *random ^= *random << 13;
  *random ^= *random >> 7;
  *random ^= *random << 17;
  return *random;
}

/* Points with coordinates of all magnitudes, or exact in float32, and ids near 2^64 or record
 * numbers. */
static struct kcp_points make_points(uint64_t count, uint32_t dimensions, bool float32,
                                     bool far_ids) {
  struct kcp_points points;
  assert_int_equal(kcp_points_allocate(count, dimensions, &points, &message), KCP_OK);
  uint64_t random = 88172645463325252u;
  points.count = count;
  for (uint64_t i = 0; i < count; ++i) {
    points.ids[i] = far_ids ? UINT64_MAX - 3 * i : i;
    for (uint32_t j = 0; j < dimensions; ++j) {
      double value;
      do {
        uint64_t bits = next_random(&random);
        memcpy(&value, &bits, sizeof value);
      } while (!isfinite(value));
      if (float32) value = (double)(float)(remainder(value, 1e6));
      kcp_points_column(&points, j)[i] = i == 3 ? -0.0 : value;
    }
  }
  return points;
}

static void write_points(const char *path, const struct kcp_points *points, uint64_t expected,
                         struct kcp_point_writer_loss *loss) {
  struct kcp_point_writer *writer;
  if (kcp_point_writer_open(path, expected, points->dimensions, &writer, &message) != KCP_OK)
    fail_msg("%s", message.message);
  const uint64_t pieces[] = {0, 1, 9000, points->count};
  uint64_t written = 0;
  for (size_t p = 0; p < 4; ++p) {
    struct kcp_points piece = *points;
    uint64_t left = points->count - written;
    piece.count = pieces[p] < left ? pieces[p] : left;
    piece.ids += written;
    piece.coordinates += written;
    assert_int_equal(kcp_point_writer_append(writer, &piece, &message), KCP_OK);
    written += piece.count;
  }
  *loss = kcp_point_writer_loss(writer);
  assert_int_equal(access(path, F_OK), -1);
  assert_int_equal(kcp_point_writer_commit(writer, &message), KCP_OK);
}

static void assert_same_file(const char *path, const struct kcp_points *points, uint32_t dimensions,
                             bool with_ids) {
  struct kcp_dataset *dataset;
  if (kcp_dataset_open(path, NULL, &dataset, &message) != KCP_OK) fail_msg("%s", message.message);
  assert_int_equal(kcp_dataset_count(dataset), points->count);
  if (points->count > 0 || strstr(path, ".fvecs") == NULL)
    assert_int_equal(kcp_dataset_dimensions(dataset), dimensions);
  assert_int_equal(kcp_dataset_has_ids(dataset), with_ids);
  struct kcp_points read;
  assert_int_equal(
      kcp_points_allocate(points->count, kcp_dataset_dimensions(dataset), &read, &message), KCP_OK);
  if (kcp_dataset_read(dataset, 0, points->count, &read, &message) != KCP_OK)
    fail_msg("%s", message.message);
  for (uint64_t i = 0; i < points->count; ++i) {
    assert_true(read.ids[i] == (with_ids ? points->ids[i] : i));
    for (uint32_t j = 0; j < dimensions; ++j) {
      double expected = j < points->dimensions ? kcp_points_column(points, j)[i] : 0.0;
      assert_memory_equal(&kcp_points_column(&read, j)[i], &expected, sizeof expected);
    }
  }
  kcp_points_free(&read);
  kcp_dataset_close(dataset);
}

static const struct {
  const char *name;
  bool float32;
  bool with_ids;
  uint32_t most_dimensions;
} formats[] = {
    {"a.bin", false, true, 3},     {"a.csv", false, true, 4096},  {"a.txt", false, true, 4096},
    {"a.tsv", false, true, 4096},  {"a.npy", false, false, 4096}, {"a.fvecs", true, false, 4096},
    {"a.fbin", true, false, 4096},
};
enum { FORMAT_COUNT = sizeof formats / sizeof formats[0] };

static void what_is_written_is_read_again(void **state) {
  (void)state;
  const uint64_t counts[] = {0, 1, 7, 12011};
  const uint32_t dimensions[] = {1, 2, 3, 4, 13};
  for (size_t f = 0; f < FORMAT_COUNT; ++f) {
    for (size_t c = 0; c < 4; ++c) {
      for (size_t d = 0; d < 5 && dimensions[d] <= formats[f].most_dimensions; ++d) {
        for (int threads = 1; threads <= 3; threads += 2) {
          omp_set_num_threads(threads);
          empty_scratch_folder();
          struct kcp_point_writer_loss loss;
          const char *path = scratch_path(formats[f].name);
          struct kcp_points points =
              make_points(counts[c], dimensions[d], formats[f].float32, true);
          write_points(path, &points, counts[c], &loss);
          assert_int_equal(loss.ids, !formats[f].with_ids && counts[c] > 0);
          assert_int_equal(loss.rounded_count, 0);
          assert_same_file(path, &points, formats[f].most_dimensions == 3 ? 3 : dimensions[d],
                           formats[f].with_ids);
          assert_int_equal(count_scratch_files(), 1);
          kcp_points_free(&points);
        }
      }
    }
  }
  omp_set_num_threads(omp_get_num_procs());
}

static void a_header_is_corrected_when_the_count_was_another(void **state) {
  (void)state;
  const uint64_t expected[] = {0, 5, 99, 1000000000};
  for (size_t f = 0; f < FORMAT_COUNT; ++f) {
    for (size_t e = 0; e < 4; ++e) {
      struct kcp_point_writer_loss loss;
      struct kcp_points points = make_points(20, 3, formats[f].float32, false);
      empty_scratch_folder();
      const char *path = scratch_path(formats[f].name);
      write_points(path, &points, expected[e], &loss);
      assert_false(loss.ids);
      assert_same_file(path, &points, 3, formats[f].with_ids);
      kcp_points_free(&points);
    }
  }
}

static void text_has_a_header_and_all_digits(void **state) {
  (void)state;
  struct kcp_point_writer_loss loss;
  struct kcp_points points = make_points(1, 2, false, true);
  size_t bytes;
  points.ids[0] = 18011072989319135231u;
  points.coordinates[0] = 0.1;
  points.coordinates[1] = -5000000.001;
  write_points(scratch_path("a.csv"), &points, 1, &loss);
  char *text = read_scratch_file("a.csv", &bytes);
  assert_string_equal(text,
                      "id,x,y\n18011072989319135231,0.10000000000000001,-5000000.0010000002\n");
  free(text);
  write_points(scratch_path("a.tsv"), &points, 1, &loss);
  text = read_scratch_file("a.tsv", &bytes);
  assert_string_equal(text,
                      "id\tx\ty\n18011072989319135231\t0.10000000000000001\t-5000000.0010000002\n");
  free(text);
  kcp_points_free(&points);
  points = make_points(0, 4, false, true);
  write_points(scratch_path("b.csv"), &points, 0, &loss);
  text = read_scratch_file("b.csv", &bytes);
  assert_string_equal(text, "id,c0,c1,c2,c3\n");
  free(text);
  kcp_points_free(&points);
}

static void float32_formats_count_what_they_round(void **state) {
  (void)state;
  const char *names[] = {"a.fvecs", "a.fbin"};
  for (int n = 0; n < 2; ++n) {
    struct kcp_points points = make_points(4, 2, true, false);
    struct kcp_point_writer_loss loss;
    points.coordinates[0] = 0.1;
    points.coordinates[2] = 16777217.0;
    points.coordinates[5] = 1e-60;
    points.coordinates[6] = FLT_MAX;
    write_points(scratch_path(names[n]), &points, 4, &loss);
    assert_int_equal(loss.rounded_count, 3);
    assert_false(loss.ids);
    points.coordinates[6] = -1e39;
    struct kcp_point_writer *writer;
    const char *path = scratch_path(n == 0 ? "b.fvecs" : "b.fbin");
    assert_int_equal(kcp_point_writer_open(path, 4, 2, &writer, &message), KCP_OK);
    assert_int_equal(kcp_point_writer_append(writer, &points, &message), KCP_BAD_INPUT);
    assert_non_null(strstr(message.message, "y of record 2 is"));
    assert_non_null(strstr(message.message, "beyond the float32"));
    kcp_point_writer_discard(writer);
    assert_int_equal(access(path, F_OK), -1);
    kcp_points_free(&points);
  }
}

static void what_a_format_cannot_hold_is_refused(void **state) {
  (void)state;
  struct kcp_point_writer *writer;
  const struct {
    const char *name;
    uint64_t count;
    uint32_t dimensions;
    const char *reason;
  } cases[] = {
      {"a.bin", 1, 4, "a .bin record holds 3 coordinates, these points have 4"},
      {"a.bin", 1, 0, "points without coordinates"},
      {"a.fbin", UINT64_C(1) << 32, 2, ".fbin holds up to 4294967295 records, not 4294967296"},
      {"a.fvecs", 1, UINT32_MAX, ".fvecs holds up to 2147483647 dimensions"},
      {"a.xyz", 1, 2, "a.xyz'; formats are .bin .csv"},
      {"noending", 1, 2, "no writer for '"},
      {"absent/a.bin", 1, 2, "No such file or directory"},
  };
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; ++c) {
    assert_int_equal(kcp_point_writer_open(scratch_path(cases[c].name), cases[c].count,
                                           cases[c].dimensions, &writer, &message),
                     KCP_BAD_INPUT);
    assert_null(writer);
    if (strstr(message.message, cases[c].reason) == NULL)
      fail_msg("'%s' does not say '%s'", message.message, cases[c].reason);
    assert_int_equal(count_scratch_files(), 0);
  }
  kcp_point_writer_discard(NULL);
}

static void points_of_other_dimensions_are_refused(void **state) {
  (void)state;
  struct kcp_point_writer *writer;
  struct kcp_points points = make_points(2, 3, false, false);
  assert_int_equal(kcp_point_writer_open(scratch_path("a.npy"), 2, 2, &writer, &message), KCP_OK);
  assert_int_equal(kcp_point_writer_append(writer, &points, &message), KCP_FAILED);
  kcp_point_writer_discard(writer);
  assert_int_equal(count_scratch_files(), 0);
  kcp_points_free(&points);
}

static void a_pipe_takes_points_but_no_corrected_header(void **state) {
  (void)state;
  struct kcp_point_writer *writer;
  struct kcp_points points = make_points(2, 2, true, false);
  const char *path = scratch_path("pipe.fbin");
  assert_int_equal(mkfifo(path, 0600), 0);
  for (uint64_t expected = 2; expected <= 3; ++expected) {
    pid_t reader = fork();
    if (reader == 0) {
      char byte;
      FILE *stream = fopen(path, "rb");
      while (stream != NULL && fread(&byte, 1, 1, stream) == 1) continue;
      _exit(0);
    }
    assert_int_equal(kcp_point_writer_open(path, expected, 2, &writer, &message), KCP_OK);
    assert_int_equal(kcp_point_writer_append(writer, &points, &message), KCP_OK);
    assert_int_equal(kcp_point_writer_commit(writer, &message),
                     expected == 2 ? KCP_OK : KCP_FAILED);
    waitpid(reader, NULL, 0);
  }
  assert_non_null(strstr(message.message, "cannot correct the record count"));
  kcp_points_free(&points);
}

/* In a locale with a decimal comma, where there is one, text stays the same. */
static void the_locale_does_not_matter(void **state) {
  (void)state;
  const char *locales[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
  bool found = false;
  for (int i = 0; i < 4 && !found; ++i) found = setlocale(LC_ALL, locales[i]) != NULL;
  if (!found) skip();
  struct kcp_point_writer_loss loss;
  struct kcp_points points = make_points(100, 3, false, true);
  const char *path = scratch_path("a.csv");
  write_points(path, &points, 100, &loss);
  assert_same_file(path, &points, 3, true);
  kcp_points_free(&points);
  setlocale(LC_ALL, "C");
}

static int clean(void **state) {
  (void)state;
  empty_scratch_folder();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(what_is_written_is_read_again, clean),
      cmocka_unit_test_setup(a_header_is_corrected_when_the_count_was_another, clean),
      cmocka_unit_test_setup(text_has_a_header_and_all_digits, clean),
      cmocka_unit_test_setup(float32_formats_count_what_they_round, clean),
      cmocka_unit_test_setup(what_a_format_cannot_hold_is_refused, clean),
      cmocka_unit_test_setup(points_of_other_dimensions_are_refused, clean),
      cmocka_unit_test_setup(a_pipe_takes_points_but_no_corrected_header, clean),
      cmocka_unit_test_setup(the_locale_does_not_matter, clean),
  };
  return cmocka_run_group_tests(tests, make_scratch_folder, remove_scratch_folder);
}

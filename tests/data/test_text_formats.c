/* .csv, .txt and .tsv: headers, columns, delimiters, line ends, wrong lines, large files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <omp.h>

#include "kcp/dataset.h"
#include "kcp/points.h"
#include "scratch_folder.h"

static struct kcp_error message;

static const struct kcp_dataset_options id_first = {.text_layout = KCP_TEXT_ID_FIRST};
static const struct kcp_dataset_options coordinates_only = {.text_layout =
                                                                KCP_TEXT_COORDINATES_ONLY};

struct table {
  uint64_t count;
  uint32_t dimensions;
  uint64_t ids[4];
  double rows[4][4];
};

static struct kcp_dataset *open_or_fail(const char *path,
                                        const struct kcp_dataset_options *options) {
  struct kcp_dataset *dataset = NULL;
  if (kcp_dataset_open(path, options, &dataset, &message) != KCP_OK)
    fail_msg("%s", message.message);
  return dataset;
}

static enum kcp_status read_all(const char *path, const struct kcp_dataset_options *options,
                                struct kcp_points *points) {
  struct kcp_dataset *dataset;
  memset(points, 0, sizeof *points);
  enum kcp_status status = kcp_dataset_open(path, options, &dataset, &message);
  if (status != KCP_OK) return status;
  status = kcp_points_allocate(kcp_dataset_count(dataset), kcp_dataset_dimensions(dataset), points,
                               &message);
  if (status == KCP_OK)
    status = kcp_dataset_read(dataset, 0, kcp_dataset_count(dataset), points, &message);
  kcp_dataset_close(dataset);
  return status;
}

static void assert_table(const char *name, const char *text,
                         const struct kcp_dataset_options *options, struct table expected) {
  struct kcp_points points;
  if (read_all(write_scratch_file(name, text, strlen(text)), options, &points) != KCP_OK)
    fail_msg("'%s': %s", text, message.message);
  if (points.count != expected.count || points.dimensions != expected.dimensions)
    fail_msg("'%s': %u records of %u", text, (unsigned)points.count, points.dimensions);
  for (uint64_t i = 0; i < expected.count; ++i) {
    if (points.ids[i] != expected.ids[i]) fail_msg("'%s': id of record %u", text, (unsigned)i);
    for (uint32_t j = 0; j < expected.dimensions; ++j)
      if (kcp_points_column(&points, j)[i] != expected.rows[i][j])
        fail_msg("'%s': coordinate %u of record %u is %g", text, j, (unsigned)i,
                 kcp_points_column(&points, j)[i]);
  }
  kcp_points_free(&points);
}

static void assert_refused(const char *text, const struct kcp_dataset_options *options,
                           const char *reason) {
  struct kcp_points points;
  message.message[0] = '\0';
  enum kcp_status status =
      read_all(write_scratch_file("a.csv", text, strlen(text)), options, &points);
  kcp_points_free(&points);
  if (status != KCP_BAD_INPUT || strstr(message.message, reason) == NULL)
    fail_msg("'%s': status %d, '%s' does not say '%s'", text, status, message.message, reason);
  assert_null(strchr(message.message, '\n'));
}

static void headers_decide_by_name(void **state) {
  (void)state;
  const struct table two = {2, 2, {7, 9}, {{1, 2}, {3, 4}}};
  const struct table two_without_ids = {2, 2, {0, 1}, {{1, 2}, {3, 4}}};
  const struct table three = {1, 3, {7}, {{1, 2, 3}}};
  assert_table("a.csv", "id,x,y\n7,1,2\n9,3,4\n", &id_first, two);
  assert_table("a.csv", "id,x,y\n7,1,2\n9,3,4\n", &coordinates_only, two);
  assert_table("a.csv", "ID,Lon,LAT\n7,1,2\n9,3,4\n", &id_first, two);
  assert_table("a.csv", "latitude,longitude,id\n2,1,7\n4,3,9\n", &id_first, two);
  assert_table("a.csv", "x,y,id,weight\n1,2,7,100\n3,4,9,0.5\n", &id_first, two);
  assert_table("a.csv", "x,y\n1,2\n3,4\n", &id_first, two_without_ids);
  assert_table("a.csv", " \"id\" , \"x\" , \"y\" \n7,1,2\n9,3,4\n", &id_first, two);
  assert_table("a.csv", "z,y,x,id\n3,2,1,7\n", &id_first, three);
  assert_table("a.csv", "id,east,north\n7,1,2\n9,3,4\n", &id_first, two);
  assert_table("a.csv", "east,north,id\n1,2,7\n3,4,9\n", &coordinates_only, two);
  assert_table("a.csv", "east,north,weight\n1,2,5\n3,4,6\n", &id_first, two_without_ids);
  assert_table("a.csv", "id,c0,c1,c2,c3\n7,1,2,3,4\n", &id_first,
               (struct table){1, 4, {7}, {{1, 2, 3, 4}}});
  assert_table("a.csv", "name,lon,lat,elevation\nFoo,1,2,9\n\"Bar, Baz\",3,4,\n", &id_first,
               two_without_ids);
  assert_table("a.csv", "name,id,lon,lat\n\"A \"\"B\"\", C\",7,1,2\n\"\",9,\"3\",\" 4 \"\n",
               &id_first, two);
  assert_table("a.csv", ",x,y\n0,1,2\n1,3,4\n", &id_first, two_without_ids);
  assert_table("a.csv", "id,2010,2011\n7,1,2\n9,3,4\n", &id_first, two);
  assert_table("a.csv", "x\n5\n6\n", &id_first, (struct table){2, 1, {0, 1}, {{5}, {6}}});
}

static void attributes_are_read_by_name(void **state) {
  (void)state;
  static const char *const names[] = {"weight", "open"};
  struct kcp_dataset_options options = {.attributes = names, .attribute_count = 2};
  const struct table two = {2, 4, {7, 9}, {{1, 2, 100, 1}, {3, 4, 0.5, 0}}};
  assert_table("a.csv", "open,x,y,id,Weight\n1,1,2,7,100\n0,3,4,9,0.5\n", &options, two);
  assert_table("a.csv", "id,east,weight,north,OPEN\n7,1,100,2,1\n9,3,0.5,4,0\n", &options, two);
  assert_table("a.csv", "7,1,2,100,1\n9,3,4,0.5,0\n", &options, two);
  assert_refused("id,x,y,open\n7,1,2,1\n", &options,
                 "no column is coordinate 2, but one is coordinate 3");
  options.attribute_count = 1;
  assert_table("a.csv", "id,x,y,open,weight\n7,1,2,1,100\n", &options,
               (struct table){1, 3, {7}, {{1, 2, 100}}});
  assert_table("a.csv", "id,x,y\n7,1,2\n", &options, (struct table){1, 2, {7}, {{1, 2}}});
  assert_refused("id,x,y,z,weight\n7,1,2,1,100\n", &options, "columns 4 and 5 are both z");
  options.columns = "id,x,y,-,weight";
  assert_table("a.csv", "id,x,y,z,weight\n7,1,2,1,100\n", &options,
               (struct table){1, 3, {7}, {{1, 2, 100}}});
}

static void headers_that_do_not_fit_are_refused(void **state) {
  (void)state;
  assert_refused("id,y\n1,2\n", &id_first, "a.csv: line 1: no column is x, but one is y");
  assert_refused("x,z\n1,2\n", &id_first, "line 1: no column is y, but one is z");
  assert_refused("\n\nx,lon,y\n1,2,3\n", &id_first, "line 3: columns 1 and 2 are both x");
  assert_refused("id,id,x,y\n1,2,3,4\n", &id_first, "columns 1 and 2 are both the id");
  assert_refused("id\n1\n", &id_first, "no column holds a coordinate");
  assert_refused("id,weight\n1,2\n", &id_first, "no column holds a coordinate");
  assert_refused("id,\"x,y\n1,2,3\n", &id_first, "line 1, column 2: a quote is not closed");
}

static void without_a_header_the_layout_decides(void **state) {
  (void)state;
  assert_table("a.csv", "7,1,2\n9,3,4\n", &id_first,
               (struct table){2, 2, {7, 9}, {{1, 2}, {3, 4}}});
  assert_table("a.csv", "7,1,2\n9,3,4\n", NULL, (struct table){2, 2, {7, 9}, {{1, 2}, {3, 4}}});
  assert_table("a.csv", "7,1,2,3\n", &id_first, (struct table){1, 3, {7}, {{1, 2, 3}}});
  assert_table("a.csv", "1,2\n3,4\n", &id_first, (struct table){2, 2, {0, 1}, {{1, 2}, {3, 4}}});
  assert_table("a.csv", "5\n6\n", &id_first, (struct table){2, 1, {0, 1}, {{5}, {6}}});
  assert_table("a.csv", "7,1,2\n9,3,4\n", &coordinates_only,
               (struct table){2, 3, {0, 1}, {{7, 1, 2}, {9, 3, 4}}});
  assert_table("a.csv", "7.5,1,2\n", &coordinates_only, (struct table){1, 3, {0}, {{7.5, 1, 2}}});
}

static void columns_can_be_given(void **state) {
  (void)state;
  struct kcp_dataset_options options = {.columns = "id,x,y,-,z"};
  const struct table expected = {1, 3, {7}, {{1, 2, 3}}};
  assert_table("a.csv", "7,1,2,text,3\n", &options, expected);
  assert_table("a.csv", "a,b,c,d,e\n7,1,2,text,3\n", &options, expected);
  assert_table("a.csv", "y,x,id,z,weight\n7,1,2,text,3\n", &options, expected);
  assert_table("a.csv", "7;1;2;\"a;b\";3\n", &options, expected);
  options.columns = "-,-,-,lat,LON";
  assert_table("a.csv", "7,1,2,5,3\n", &options, (struct table){1, 2, {0}, {{3, 5}}});
  options.columns = "c3, c1,c0 ,c2,weight";
  assert_table("a.csv", "7,1,2,5,3\n", &options, (struct table){1, 4, {0}, {{2, 1, 5, 7}}});
  assert_table("a.csv", "", &options, (struct table){0, 4, {0}, {{0}}});
  options.columns = "id,x,y";
  assert_refused("1,2,3,4\n", &options, "line 1: 4 columns where 3 were expected");
  assert_refused("x,y\n1,2,3,4\n", &options, "line 1: 2 columns where 3 were expected");
  const struct {
    const char *columns;
    const char *reason;
  } cases[] = {{"id,x,q", "--columns: 'q' is none of id, x, y, z"},
               {"", "'' is none of"},
               {"id,x,", "'' is none of"},
               {"id", "--columns: no column holds a coordinate"},
               {"x,x", "--columns: columns 1 and 2 are both x"},
               {"c7,c7", "columns 1 and 2 are both coordinate 7"},
               {"x,y,c0", "columns 1 and 3 are both x"},
               {"id,y", "no column is x, but one is y"},
               {"c4,c0", "no column is coordinate 1, but one is coordinate 4"},
               {"c4096", "'c4096' is none of"},
               {"c-1", "'c-1' is none of"},
               {"c99999999999999999999", "is none of"}};
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; ++c) {
    options.columns = cases[c].columns;
    assert_refused("1,2,3\n", &options, cases[c].reason);
  }
}

static void delimiters_come_from_the_first_line(void **state) {
  (void)state;
  const struct table expected = {2, 2, {7, 9}, {{1.5, -2}, {3, 4e2}}};
  const char *texts[] = {"7,1.5,-2\n9,3,4e2\n",
                         " 7 ,  1.5 , -2 \n9,3,4e2\n",
                         "7;1.5;-2\n9; 3 ;4e2\n",
                         "7\t1.5\t-2\n9\t3\t4e2\n",
                         "7 1.5 -2\n9   3\t 4e2  \n",
                         "   7  1.5  -2\n\t9 3 4e2\n",
                         "id x y\n7 1.5 -2\n9 3 4e2\n",
                         "id\tx\ty\n7\t 1.5\t-2 \n9\t3\t4e2\r\n",
                         "id;x;y;weight\n7;1.5;-2;\n9;3;4e2;0\n"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i) {
    assert_table("a.csv", texts[i], &id_first, expected);
    assert_table("a.txt", texts[i], &id_first, expected);
    assert_table("a.tsv", texts[i], &id_first, expected);
  }
  assert_table("a.tsv", "note, free\tx\ty\na, b\t1\t2\n", &id_first,
               (struct table){1, 2, {0}, {{1, 2}}});
  assert_table("a.csv", "\"a b;c\",x,y\nq,1,2\n", &id_first, (struct table){1, 2, {0}, {{1, 2}}});
}

static void no_row_is_lost_whatever_the_line_ends(void **state) {
  (void)state;
  const struct table expected = {2, 2, {7, 9}, {{1, 2}, {3, 4}}};
  const char *texts[] = {"7,1,2\n9,3,4",
                         "7,1,2\r\n9,3,4\r\n",
                         "7,1,2\r\n9,3,4",
                         "\xEF\xBB\xBF"
                         "7,1,2\n9,3,4\n",
                         "\xEF\xBB\xBF"
                         "id,x,y\r\n7,1,2\r\n9,3,4",
                         "\n\n7,1,2\n\n  \n\t\n9,3,4\n\n\n",
                         "\r\n7,1,2\r\n\r\n \r\n9,3,4\r\n\r\n",
                         "\n \nid,x,y\n\n7,1,2\n9,3,4\n   ",
                         "\xEF\xBB\xBF\n7,1,2\n9,3,4 "};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i)
    assert_table("a.csv", texts[i], &id_first, expected);
}

static void empty_files_hold_nothing(void **state) {
  (void)state;
  const char *texts[] = {"", "\n", "\r\n\r\n", "   \n\t", "\xEF\xBB\xBF", "\xEF\xBB\xBF\n"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i)
    assert_table("a.csv", texts[i], &id_first, (struct table){0, 2, {0}, {{0}}});
  assert_table("a.csv", "id,x,y,z\n", &id_first, (struct table){0, 3, {0}, {{0}}});
  assert_table("a.csv", "id,x,y,z", &id_first, (struct table){0, 3, {0}, {{0}}});
}

static void wrong_lines_are_named(void **state) {
  (void)state;
  assert_refused("1,2,3,4\n1,2,3,4\n\n1,2,3\n", &id_first,
                 "a.csv: line 4: 3 columns where 4 were expected");
  assert_refused("1,2\n3\n", &id_first, "line 2: 1 column where 2 were expected");
  assert_refused("1\n2,3\n", &id_first, "line 2: 2 columns where 1 was expected");
  assert_refused("1,2,3\n1,2,3,\n", &id_first, "line 2: 4 columns where 3 were expected");
  assert_refused("1 2 3\n1 2\n", &id_first, "line 2: 2 columns where 3 were expected");
  assert_refused("id,x,y\n1,2,3\n2,3,abc\n", &id_first,
                 "a.csv: line 3, column 3 (y): 'abc' is not a number");
  assert_refused("1,2,3\nx,2,3\n", &id_first, "line 2, column 1 (id): 'x' is no id");
  assert_refused("1,2,3\n1,,3\n", &id_first, "line 2, column 2 (x): is empty");
  assert_refused("1,2,\n", &id_first, "line 1, column 3 (y): is empty");
  assert_refused(",2,3\n", &id_first, "line 1, column 1 (id): is empty");
  assert_refused("1,0x10,3\n2,1,1\n", &id_first, "line 1, column 2 (x): '0x10' is not a number");
  assert_refused("1,2,3\n1,2,3e\n", &id_first, "'3e' is not a number");
  assert_refused("1,2,3\n1,2,3 4\n", &id_first, "'3 4' is not a number");
  assert_refused("1,2,3\n1,2,1.5.5\n", &id_first, "'1.5.5' is not a number");
  assert_refused("1,2,3\n1,2,3\n1,\"2,3\n", &id_first, "line 3, column 2: a quote is not closed");
  assert_refused("1,2,3\n1,2,\x1b[31mred\n", &id_first, "'?[31mred' is not a number");
  assert_refused("1,2,3\n1,2,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
                 &id_first, "aaaaa...' is not a number");
  assert_refused("1,2,3,4,5\n1,2,3,4,word\n", &coordinates_only,
                 "line 2, column 5 (coordinate 4): 'word' is not a number");
  assert_refused(
      "\xFF\xFE"
      "1,2,3\n",
      &id_first, "is UTF-16 text");
}

/* A first record with a word in it is a wrong record, not a header that may be thrown away. */
static void a_wrong_first_record_is_no_header(void **state) {
  (void)state;
  assert_refused("1,abc,3\n2,3,4\n", &id_first, "line 1, column 2 (x): 'abc' is not a number");
  assert_refused("1.5,2.0x\n2,3\n", &id_first, "line 1, column 2 (y): '2.0x' is not a number");
  assert_refused("x,y\n1,2\nx,y\n3,4\n", &id_first, "line 3, column 1 (x): 'x' is not a number");
}

static void ids_are_whole_numbers(void **state) {
  (void)state;
  assert_table(
      "a.csv", "18011072989319135231,1,2\n18446744073709551615,3,4\n0,5,6\n", &id_first,
      (struct table){3, 2, {18011072989319135231u, UINT64_MAX, 0}, {{1, 2}, {3, 4}, {5, 6}}});
  assert_table("a.csv", "\"18011072989319135231\",1,2\n", &id_first,
               (struct table){1, 2, {18011072989319135231u}, {{1, 2}}});
  const char *ids[] = {"5.0", "-1", "1e3", "18446744073709551616", "+1", "nan", "0x1"};
  for (size_t i = 0; i < sizeof ids / sizeof ids[0]; ++i) {
    char text[64], reason[96];
    snprintf(text, sizeof text, "1,2,3\n%s,2,3\n", ids[i]);
    snprintf(reason, sizeof reason,
             "line 2, column 1 (id): '%s' is no id; ids are whole numbers from 0 to "
             "18446744073709551615",
             ids[i]);
    assert_refused(text, &id_first, reason);
  }
}

static void coordinates_that_are_not_finite_are_named(void **state) {
  (void)state;
  const char *words[] = {"nan", "NaN", "-nan", "inf", "-Infinity", "1e999"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i) {
    char text[64], reason[128];
    snprintf(text, sizeof text, "\n1,2,3\n\n5,6,%s\n7,8,abc\n", words[i]);
    snprintf(reason, sizeof reason,
             "a.csv: y of record 1 (line 4) is %s; every coordinate must be finite (kcp convert",
             i < 3 ? "NaN" : "infinite");
    assert_refused(text, &id_first, reason);
  }
  assert_refused("id,x,y\n1,nan,3\n", &id_first, "x of record 0 (line 2) is NaN");
  assert_refused("nan,nan\n1,2\n", &id_first, "x of record 0 (line 1) is NaN");
  assert_refused("1,2\n3,4x\n5,nan\n", &id_first, "line 2, column 2 (y): '4x' is not a number");
  struct kcp_dataset_options drop = {.drop_invalid = true};
  assert_table("a.csv", "1,2\nnan,4\n5,inf\n6,7\n", &drop,
               (struct table){2, 2, {0, 3}, {{1, 2}, {6, 7}}});
  assert_refused("1,2\nnan,4\n5,abc\n6,7\n", &drop, "line 3, column 2 (y): 'abc'");
}

static void numbers_keep_all_their_digits(void **state) {
  (void)state;
  assert_table(
      "a.csv", "5000000.001,4999999.999\n1e154,1e-308\n-0.1,.5\n", &id_first,
      (struct table){3, 2, {0, 1, 2}, {{5000000.001, 4999999.999}, {1e154, 1e-308}, {-0.1, .5}}});
}

/* Enough lines for many blocks, with blank ones among them. */
static char *make_large_text(uint64_t count, uint64_t *bytes) {
  char *text = malloc(count * 64 + 64);
  char *at = text + sprintf(text, "id,x,y\n");
  for (uint64_t i = 0; i < count; ++i) {
    at += sprintf(at, "%lu,%.17g,%.6f%s", (unsigned long)(UINT64_MAX - i), (double)i / 7.0,
                  -(double)i, i % 3 == 0 ? "\r\n" : "\n");
    if (i % 1000 == 17) at += sprintf(at, " \n\n");
  }
  *bytes = (uint64_t)(at - text);
  return text;
}

static void any_range_of_a_large_file_is_read(void **state) {
  (void)state;
  enum { COUNT = 60000 };
  uint64_t bytes;
  char *text = make_large_text(COUNT, &bytes);
  const char *path = write_scratch_file("large.csv", text, bytes - 1);
  const uint64_t ranges[][2] = {{0, COUNT},     {COUNT, 0},     {0, 1},
                                {COUNT - 1, 1}, {6000, 12000},  {17, 2},
                                {59000, 999},   {12345, 20000}, {COUNT - 3, 3}};
  for (int threads = 1; threads <= 4; ++threads) {
    omp_set_num_threads(threads);
    struct kcp_dataset *dataset = open_or_fail(path, &id_first);
    assert_int_equal(kcp_dataset_count(dataset), COUNT);
    struct kcp_points points;
    assert_int_equal(kcp_points_allocate(COUNT, 2, &points, &message), KCP_OK);
    for (size_t r = 0; r < sizeof ranges / sizeof ranges[0]; ++r) {
      assert_int_equal(kcp_dataset_read(dataset, ranges[r][0], ranges[r][1], &points, &message),
                       KCP_OK);
      assert_int_equal(points.count, ranges[r][1]);
      for (uint64_t i = 0; i < points.count; ++i) {
        uint64_t record = ranges[r][0] + i;
        assert_true(points.ids[i] == UINT64_MAX - record);
        assert_true(kcp_points_column(&points, 0)[i] == (double)record / 7.0);
        assert_true(kcp_points_column(&points, 1)[i] == -(double)record);
      }
    }
    for (uint64_t record = 5000; record < 15000; record += 7) {
      assert_int_equal(kcp_dataset_read(dataset, record, 1, &points, &message), KCP_OK);
      assert_true(points.ids[0] == UINT64_MAX - record);
    }
    kcp_points_free(&points);
    kcp_dataset_close(dataset);
  }
  omp_set_num_threads(omp_get_num_procs());
  free(text);
}

static void the_first_wrong_line_is_named_by_any_number_of_threads(void **state) {
  (void)state;
  enum { COUNT = 60000 };
  uint64_t bytes;
  char *text = make_large_text(COUNT, &bytes);
  uint64_t lines = 0, first_wrong = 0;
  for (char *at = text; at < text + bytes; at = strchr(at, '\n') + 1) {
    ++lines;
    if (lines < 20000 || *at < '0' || *at > '9') continue;
    *strchr(at, ',') = ';';
    if (first_wrong == 0) first_wrong = lines;
  }
  char reason[64];
  snprintf(reason, sizeof reason, "line %lu: 2 columns where 3 were", (unsigned long)first_wrong);
  for (int threads = 1; threads <= 8; ++threads) {
    omp_set_num_threads(threads);
    assert_refused(text, &id_first, reason);
  }
  omp_set_num_threads(omp_get_num_procs());
  free(text);
}

/* Lines that start, end and stay blank at the borders of blocks. */
static void lines_across_block_borders_are_read_once(void **state) {
  (void)state;
  enum { BLOCK = 256 * 1024, SIZE = 3 * BLOCK + 64 };
  char *text = malloc(SIZE + 1);
  for (int shift = -9; shift <= 9; ++shift) {
    for (int filling = 0; filling < 2; ++filling) {
      memset(text, filling == 0 ? ' ' : '\n', SIZE);
      text[SIZE] = '\0';
      memcpy(text, "1,2,3\n", 6);
      for (int border = 1; border <= 3; ++border)
        memcpy(text + border * BLOCK + shift, "\n4,5,6\n", 7);
      struct kcp_points points;
      const char *path = write_scratch_file("border.csv", text, SIZE);
      if (read_all(path, &id_first, &points) != KCP_OK) fail_msg("%s", message.message);
      assert_int_equal(points.count, 4);
      for (int i = 1; i < 4; ++i) assert_int_equal(points.ids[i], 4);
      kcp_points_free(&points);
    }
  }
  free(text);
}

static void lines_that_are_too_long_are_refused(void **state) {
  (void)state;
  enum { LIMIT = 1024 * 1024 };
  char *text = malloc(4 * LIMIT);
  const size_t lengths[] = {LIMIT + 1, LIMIT + 300000, 3 * LIMIT};
  const char fillings[] = {'1', ' '};
  for (int f = 0; f < 2; ++f) {
    for (int l = 0; l < 3; ++l) {
      strcpy(text, "1,2\n3,4\n");
      memset(text + 8, fillings[f], lengths[l]);
      strcpy(text + 8 + lengths[l], "\n5,6\n");
      assert_refused(text, &id_first, "line 3 is longer than 1048576 bytes");
    }
    memset(text, fillings[f], 3 * LIMIT);
    text[3 * LIMIT] = '\0';
    assert_refused(text, &id_first, "line 1 is longer than 1048576 bytes");
    strcpy(text, "1,2\n");
    memset(text + 4, fillings[f], LIMIT);
    strcpy(text + 4 + LIMIT, "\n5,6\n");
    if (f == 0)
      assert_refused(text, &id_first, "line 2: 1 column where 2");
    else
      assert_table("a.csv", text, &id_first, (struct table){2, 2, {0, 1}, {{1, 2}, {5, 6}}});
  }
  free(text);
}

static void many_columns_are_read_up_to_a_limit(void **state) {
  (void)state;
  enum { MOST = 4096 };
  char *text = malloc(2 * 20000 + 1);
  for (int i = 0; i < MOST; ++i) memcpy(text + 2 * i, "1,", 2);
  strcpy(text + 2 * MOST - 1, "\n");
  struct kcp_points points;
  assert_int_equal(
      read_all(write_scratch_file("a.csv", text, 2 * MOST), &coordinates_only, &points), KCP_OK);
  assert_int_equal(points.dimensions, MOST);
  kcp_points_free(&points);
  strcpy(text + 2 * MOST - 1, ",1\n");
  assert_refused(text, &coordinates_only, "line 1: 4097 coordinates, at most 4096");
  for (int i = 0; i < 17000; ++i) memcpy(text + 2 * i, "1,", 2);
  strcpy(text + 2 * 17000, "\n");
  assert_refused(text, &coordinates_only, "line 1: more than 16384 columns");
  free(text);
}

static int clean(void **state) {
  (void)state;
  empty_scratch_folder();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(headers_decide_by_name, clean),
      cmocka_unit_test_setup(attributes_are_read_by_name, clean),
      cmocka_unit_test_setup(headers_that_do_not_fit_are_refused, clean),
      cmocka_unit_test_setup(without_a_header_the_layout_decides, clean),
      cmocka_unit_test_setup(columns_can_be_given, clean),
      cmocka_unit_test_setup(delimiters_come_from_the_first_line, clean),
      cmocka_unit_test_setup(no_row_is_lost_whatever_the_line_ends, clean),
      cmocka_unit_test_setup(empty_files_hold_nothing, clean),
      cmocka_unit_test_setup(wrong_lines_are_named, clean),
      cmocka_unit_test_setup(a_wrong_first_record_is_no_header, clean),
      cmocka_unit_test_setup(ids_are_whole_numbers, clean),
      cmocka_unit_test_setup(coordinates_that_are_not_finite_are_named, clean),
      cmocka_unit_test_setup(numbers_keep_all_their_digits, clean),
      cmocka_unit_test_setup(any_range_of_a_large_file_is_read, clean),
      cmocka_unit_test_setup(the_first_wrong_line_is_named_by_any_number_of_threads, clean),
      cmocka_unit_test_setup(lines_across_block_borders_are_read_once, clean),
      cmocka_unit_test_setup(lines_that_are_too_long_are_refused, clean),
      cmocka_unit_test_setup(many_columns_are_read_up_to_a_limit, clean),
  };
  return cmocka_run_group_tests(tests, make_scratch_folder, remove_scratch_folder);
}

/* Top-k of arrays and of rows: every method, type and order against a stable sort written here.
 *
 * KCP_TEST_BACKEND=cuda runs it on a GPU; without one the exit code 77 tells CTest to skip.
 * KCP_TEST_LARGE=1 adds an array of 2^31 + 7 values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/random.h"
#include "kcp/top_k.h"
#include "kcp/top_k_query.h"

#define SKIPPED 77
#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

enum { METHODS = KCP_TOP_K_SELECT + 1, ORDERS = KCP_SMALLEST_FIRST + 1 };

static const struct kcp_backend *backend;
static struct kcp_device_info device;

static const char *const type_names[] = {"f32", "f64", "i32", "u32", "i64"};
static const char *const method_names[] = {"sort", "bitonic", "select"};
static const char *const order_names[] = {"largest", "smallest"};

/* A matrix of values of one type. */
struct matrix {
  enum kcp_value_type type;
  uint64_t rows, columns;
  unsigned char *bytes;
};

static uint64_t value_count(const struct matrix *matrix) {
  return matrix->rows * matrix->columns;
}

static size_t size_of(enum kcp_value_type type) {
  return type == KCP_VALUE_F64 || type == KCP_VALUE_I64 ? 8 : 4;
}

static struct matrix matrix_of(enum kcp_value_type type, uint64_t rows, uint64_t columns) {
  struct matrix matrix = {type, rows, columns, malloc(rows * columns * size_of(type) + 1)};
  assert_non_null(matrix.bytes);
  return matrix;
}

static void set_bits(struct matrix *matrix, uint64_t i, uint64_t bits) {
  memcpy(matrix->bytes + i * size_of(matrix->type), &bits, size_of(matrix->type));
}

/* Sets a value from a number that fits the type. */
static void set_number(struct matrix *matrix, uint64_t i, double number) {
  float f32 = (float)number;
  int32_t i32 = (int32_t)number;
  uint32_t u32 = (uint32_t)(int64_t)number;
  int64_t i64 = (int64_t)number;
  const void *from[] = {&f32, &number, &i32, &u32, &i64};
  memcpy(matrix->bytes + i * size_of(matrix->type), from[matrix->type], size_of(matrix->type));
}

static uint64_t random_bits(uint64_t seed, uint64_t i) {
  return kcp_random_pair(seed, 7, i, 0).first;
}

enum filling {
  ANY_BITS, /* NaN, denormals, infinities and all */
  UNIFORM,
  SORTED,
  REVERSED,
  EQUAL,
  FEW_DISTINCT,
  BARELY_DISTINCT, /* one common value, a few a little beside it */
  SPECIAL,         /* zeros, infinities and NaN of both signs */
  MOSTLY_NAN,
  FILLINGS
};

static void fill_special(struct matrix *matrix, uint64_t i, uint64_t draw) {
  static const uint32_t f32[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                 0xffc00000, 0x7f800001, 0x3f800000, 0xbf800000, 0x00000001};
  static const uint64_t f64[] = {0,
                                 UINT64_C(1) << 63,
                                 UINT64_C(0x7ff0000000000000),
                                 UINT64_C(0xfff0000000000000),
                                 UINT64_C(0x7ff8000000000000),
                                 UINT64_C(0xfff8000000000000),
                                 UINT64_C(0xfff0000000000001),
                                 UINT64_C(0x3ff0000000000000),
                                 UINT64_C(0xbff0000000000000),
                                 1};
  static const uint64_t integers[] = {0, 1, UINT64_MAX, UINT64_C(1) << 63, UINT64_MAX >> 1};
  if (matrix->type == KCP_VALUE_F32)
    set_bits(matrix, i, f32[draw % COUNT(f32)]);
  else if (matrix->type == KCP_VALUE_F64)
    set_bits(matrix, i, f64[draw % COUNT(f64)]);
  else if (matrix->type == KCP_VALUE_I64)
    set_bits(matrix, i, integers[draw % COUNT(integers)]);
  else
    set_bits(matrix, i, integers[draw % COUNT(integers)] >> 32);
}

static void fill(struct matrix *matrix, enum filling filling, uint64_t seed) {
  const uint64_t n = value_count(matrix);
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t bits = random_bits(seed, i);
    const double unit = kcp_random_unit(bits);
    switch (filling) {
      case ANY_BITS: set_bits(matrix, i, bits); break;
      case UNIFORM: set_number(matrix, i, floor(unit * 1e9)); break;
      case SORTED: set_number(matrix, i, (double)(i / 3)); break;
      case REVERSED: set_number(matrix, i, (double)((n - i) / 3)); break;
      case EQUAL: set_number(matrix, i, 42); break;
      case FEW_DISTINCT: set_number(matrix, i, floor(unit * 5)); break;
      case BARELY_DISTINCT:
        set_number(matrix, i, bits % 97 == 0 ? 1000 + (double)(bits >> 60) - 8 : 1000);
        break;
      case SPECIAL: fill_special(matrix, i, bits >> 8); break;
      default:
        if (bits % 50 == 0 || !(matrix->type == KCP_VALUE_F32 || matrix->type == KCP_VALUE_F64))
          set_number(matrix, i, floor(unit * 100));
        else if (matrix->type == KCP_VALUE_F32)
          set_bits(matrix, i, bits % 2 == 0 ? 0x7fc00001 : 0xffffffff);
        else
          set_bits(matrix, i, bits % 2 == 0 ? UINT64_C(0x7ff8000000000001) : UINT64_MAX);
    }
  }
}

/* The oracle: values of a row as they are, in the asked order by a merge sort. */
struct element {
  union kcp_value value;
  uint64_t index;
};

static bool comes_after(enum kcp_value_type type, union kcp_value a, union kcp_value b) {
  switch (type) {
    case KCP_VALUE_F32: return a.f32 > b.f32;
    case KCP_VALUE_F64: return a.f64 > b.f64;
    case KCP_VALUE_I32: return a.i32 > b.i32;
    case KCP_VALUE_U32: return a.u32 > b.u32;
    default: return a.i64 > b.i64;
  }
}

static bool is_nan(enum kcp_value_type type, union kcp_value value) {
  if (type == KCP_VALUE_F32) return isnan(value.f32);
  return type == KCP_VALUE_F64 && isnan(value.f64);
}

static bool must_follow(enum kcp_value_type type, enum kcp_value_order order, union kcp_value a,
                        union kcp_value b) {
  return order == KCP_LARGEST_FIRST ? comes_after(type, b, a) : comes_after(type, a, b);
}

static void merge_sort(enum kcp_value_type type, enum kcp_value_order order, struct element *from,
                       struct element *to, uint64_t count) {
  if (count < 2) return;
  const uint64_t half = count / 2;
  merge_sort(type, order, from, to, half);
  merge_sort(type, order, from + half, to + half, count - half);
  uint64_t left = 0, right = half;
  for (uint64_t i = 0; i < count; ++i) {
    const bool take_left =
        right == count ||
        (left < half && !must_follow(type, order, from[left].value, from[right].value));
    to[i] = take_left ? from[left++] : from[right++];
  }
  memcpy(from, to, count * sizeof *from);
}

/* All values of a row but NaN, sorted; the caller frees them. */
static struct element *sorted_row(const struct matrix *matrix, enum kcp_value_order order,
                                  uint64_t row, uint64_t *count) {
  struct element *elements = malloc((matrix->columns + 1) * sizeof *elements);
  struct element *scratch = malloc((matrix->columns + 1) * sizeof *scratch);
  *count = 0;
  for (uint64_t i = 0; i < matrix->columns; ++i) {
    struct element element = {.index = i};
    memcpy(&element.value, matrix->bytes + (row * matrix->columns + i) * size_of(matrix->type),
           size_of(matrix->type));
    if (!is_nan(matrix->type, element.value)) elements[(*count)++] = element;
  }
  merge_sort(matrix->type, order, elements, scratch, *count);
  free(scratch);
  return elements;
}

static bool same_value(enum kcp_value_type type, union kcp_value a, union kcp_value b) {
  return !comes_after(type, a, b) && !comes_after(type, b, a);
}

/* Bits as the answer has them: of the value, but +0 for -0. */
static uint64_t expected_bits(enum kcp_value_type type, union kcp_value value) {
  if (type == KCP_VALUE_F32 && value.f32 == 0) return 0;
  if (type == KCP_VALUE_F64 && value.f64 == 0) return 0;
  return value.bits;
}

static enum kcp_status read_matrix(void *context, uint64_t first, uint64_t count, void *out,
                                   struct kcp_error *error) {
  const struct matrix *matrix = context;
  if (first + count < first || first + count > value_count(matrix))
    return kcp_fail(error, KCP_FAILED, "read past the end: %" PRIu64 " values from %" PRIu64, count,
                    first);
  memcpy(out, matrix->bytes + first * size_of(matrix->type), count * size_of(matrix->type));
  return KCP_OK;
}

static const char *describe(const struct kcp_top_k_plan *plan, const char *data) {
  static char text[256];
  snprintf(text, sizeof text, "%s %s %s first, %s: k %" PRIu64 ", %" PRIu64 " x %" PRIu64,
           method_names[plan->method], type_names[plan->type], order_names[plan->order], data,
           plan->k, plan->rows, plan->columns);
  return text;
}

static void check_row(const struct kcp_top_k_plan *plan, const struct kcp_top_k_answer *answer,
                      const struct element *sorted, uint64_t valid, uint64_t row,
                      const char *data) {
  const struct kcp_top_k_certificate *certificate = &answer->certificates[row];
  const struct kcp_top_value *values = answer->values + row * answer->width;
  const uint64_t count = plan->k < valid ? plan->k : valid;
  if (certificate->count != count)
    fail_msg("%s: row %" PRIu64 " has %" PRIu64 " values, not %" PRIu64, describe(plan, data), row,
             certificate->count, count);
  for (uint64_t i = 0; i < count; ++i)
    if (values[i].index != sorted[i].index ||
        values[i].value.bits != expected_bits(plan->type, sorted[i].value))
      fail_msg("%s: row %" PRIu64 ", place %" PRIu64 ": index %" PRIu64 " (%016" PRIx64
               "), not %" PRIu64 " (%016" PRIx64 ")",
               describe(plan, data), row, i, values[i].index, values[i].value.bits, sorted[i].index,
               sorted[i].value.bits);
  uint64_t above = 0, equal = 0;
  if (count > 0) {
    while (!same_value(plan->type, sorted[above].value, sorted[count - 1].value)) ++above;
    while (above + equal < valid &&
           same_value(plan->type, sorted[above + equal].value, sorted[count - 1].value))
      ++equal;
  }
  if (certificate->above != above || certificate->equal != equal ||
      certificate->nan_count != plan->columns - valid)
    fail_msg("%s: row %" PRIu64 ": above %" PRIu64 ", equal %" PRIu64 ", NaN %" PRIu64
             "; not %" PRIu64 ", %" PRIu64 ", %" PRIu64,
             describe(plan, data), row, certificate->above, certificate->equal,
             certificate->nan_count, above, equal, plan->columns - valid);
  if (count > 0)
    assert_int_equal(certificate->last.bits, expected_bits(plan->type, sorted[count - 1].value));
}

/* Runs one plan, for some k twice with one search, and checks the answers against the sorted rows.
 */
static void run_plan(const struct kcp_top_k_plan *plan, const struct matrix *matrix,
                     struct element *const *sorted, const uint64_t *valid, const char *data) {
  struct kcp_error error = {.message = ""};
  struct kcp_top_k_search *search = NULL;
  const struct kcp_value_source source = {(void *)matrix, read_matrix};
  if (backend->top_k->create(plan, &device, &search, &error) != KCP_OK)
    fail_msg("%s: %s", describe(plan, data), error.message);
  for (uint64_t run = 0; run <= plan->k % 2; ++run) {
    struct kcp_top_k_answer answer;
    struct kcp_measurement measurement;
    if (backend->top_k->run(search, &source, &answer, &measurement, &error) != KCP_OK)
      fail_msg("%s: %s", describe(plan, data), error.message);
    assert_int_equal(answer.rows, plan->rows);
    for (uint64_t row = 0; row < plan->rows; ++row)
      check_row(plan, &answer, sorted[row], valid[row], row, data);
    kcp_top_k_answer_free(&answer);
  }
  backend->top_k->destroy(search);
}

/* All methods and orders on a matrix, with each k. */
static void check_matrix(const struct matrix *matrix, const uint64_t *ks, size_t k_count,
                         uint64_t memory_bytes, const char *data) {
  struct element **sorted = calloc(matrix->rows + 1, sizeof *sorted);
  uint64_t *valid = calloc(matrix->rows + 1, sizeof *valid);
  for (int order = 0; order < ORDERS; ++order) {
    for (uint64_t row = 0; row < matrix->rows; ++row)
      sorted[row] = sorted_row(matrix, (enum kcp_value_order)order, row, &valid[row]);
    for (int method = 0; method < METHODS; ++method)
      for (size_t i = 0; i < k_count; ++i) {
        const struct kcp_top_k_plan plan = {.type = matrix->type,
                                            .order = (enum kcp_value_order)order,
                                            .method = (enum kcp_top_k_method)method,
                                            .k = ks[i],
                                            .rows = matrix->rows,
                                            .columns = matrix->columns,
                                            .memory_bytes = memory_bytes,
                                            .resident = memory_bytes == 0 && ks[i] % 2 == 1};
        run_plan(&plan, matrix, sorted, valid, data);
      }
    for (uint64_t row = 0; row < matrix->rows; ++row) free(sorted[row]);
  }
  free(sorted);
  free(valid);
}

static const char *filling_name(enum filling filling) {
  static const char *const names[] = {"any bits",        "uniform",        "sorted",
                                      "reversed",        "equal",          "few distinct",
                                      "barely distinct", "special values", "mostly NaN"};
  return names[filling];
}

static void test_small_arrays(void **state) {
  (void)state;
  static const uint64_t sizes[] = {1,  2,   3,   31,  32,  33,   63,   64,
                                   65, 127, 255, 256, 257, 1023, 1024, 1025};
  for (size_t s = 0; s < COUNT(sizes); ++s)
    for (int filling = 0; filling < FILLINGS; ++filling) {
      const uint64_t n = sizes[s];
      const uint64_t ks[] = {1, n > 1 ? n - 1 : 1, n, n + 1, (n + 1) / 2};
      const enum kcp_value_type type =
          (enum kcp_value_type)((s + (size_t)filling) % KCP_VALUE_TYPES);
      struct matrix matrix = matrix_of(type, 1, n);
      fill(&matrix, (enum filling)filling, s + 1);
      check_matrix(&matrix, ks, COUNT(ks), 0, filling_name((enum filling)filling));
      free(matrix.bytes);
    }
}

static void test_every_k_of_a_short_array(void **state) {
  (void)state;
  uint64_t ks[80];
  for (uint64_t k = 0; k < COUNT(ks); ++k) ks[k] = k + 1;
  struct matrix matrix = matrix_of(KCP_VALUE_F32, 1, 77);
  fill(&matrix, SPECIAL, 3);
  check_matrix(&matrix, ks, COUNT(ks), 0, "special values");
  free(matrix.bytes);
}

static void test_sizes_around_blocks(void **state) {
  (void)state;
  static const uint64_t bases[] = {2048, 4096, 8192, 16384, 32768, 65536};
  static const uint64_t ks[] = {1, 64, 1024, 1025, 2049};
  for (size_t b = 0; b < COUNT(bases); ++b)
    for (int64_t difference = -1; difference <= 1; ++difference)
      for (int filling = 0; filling < FILLINGS; filling += b < 2 ? 2 : 4) {
        struct matrix matrix =
            matrix_of((enum kcp_value_type)((b + (size_t)filling) % KCP_VALUE_TYPES), 1,
                      bases[b] + (uint64_t)difference);
        fill(&matrix, (enum filling)filling, 17);
        check_matrix(&matrix, ks, COUNT(ks), 0, filling_name((enum filling)filling));
        free(matrix.bytes);
      }
}

static void test_large_arrays(void **state) {
  (void)state;
  static const uint64_t ks[] = {10, 1024, 5000, 100000};
  static const uint64_t sizes[] = {1 << 18, (1 << 19) + 12345};
  for (int filling = 0; filling < FILLINGS; ++filling) {
    const enum kcp_value_type type = (enum kcp_value_type)(filling % KCP_VALUE_TYPES);
    struct matrix matrix = matrix_of(type, 1, sizes[filling % (int)COUNT(sizes)]);
    fill(&matrix, (enum filling)filling, 5);
    check_matrix(&matrix, ks, COUNT(ks), 0, filling_name((enum filling)filling));
    free(matrix.bytes);
  }
}

/* The k-th value sits among values that differ from it by one unit in the last place. */
static void test_values_just_around_the_threshold(void **state) {
  (void)state;
  static const uint64_t ks[] = {1, 63, 64, 65, 1000};
  enum { N = 300001 };
  struct matrix matrix = matrix_of(KCP_VALUE_F32, 1, N);
  const float centre = 0.9999f;
  for (uint64_t i = 0; i < N; ++i) {
    uint32_t bits;
    memcpy(&bits, &centre, sizeof bits);
    set_bits(&matrix, i, bits + (uint32_t)(random_bits(9, i) % 3) - 1);
  }
  check_matrix(&matrix, ks, COUNT(ks), 0, "around one value");
  free(matrix.bytes);
}

/* The values at the places that select samples on the GPU (top_k_select.cuh) are the largest of
 * all: the bound from them lets too few pass, or in the other order too many for the room there is.
 */
static void test_misleading_samples(void **state) {
  (void)state;
  static const uint64_t ks[] = {64, 1000, 5000};
  enum { N = 400011, SAMPLES = 1 << 14 };
  for (int type = KCP_VALUE_F32; type <= KCP_VALUE_F64; ++type) {
    struct matrix matrix = matrix_of((enum kcp_value_type)type, 1, N);
    fill(&matrix, UNIFORM, 43);
    for (uint64_t s = 0; s < SAMPLES; ++s) {
      const uint64_t start = s * N / SAMPLES, end = (s + 1) * N / SAMPLES;
      const uint64_t random = kcp_random_words(0, 0, s, 0).word[0];
      union kcp_value largest = {.bits = 0};
      if (type == KCP_VALUE_F32)
        largest.f32 = 1000 + (float)s;
      else
        largest.f64 = 1000 + (double)s;
      set_bits(&matrix, start + (random * (end - start) >> 32), largest.bits);
    }
    check_matrix(&matrix, ks, COUNT(ks), 0, "a misleading sample");
    free(matrix.bytes);
  }
}

static void test_rows(void **state) {
  (void)state;
  static const struct {
    uint64_t rows, columns;
  } shapes[] = {{1, 1},     {2, 3},     {7, 1000},  {300, 33},
                {64, 2049}, {3, 65537}, {5, 70001}, {1000, 1}};
  static const uint64_t ks[] = {1, 8, 100, 1100, 3000};
  for (size_t s = 0; s < COUNT(shapes); ++s)
    for (int filling = 0; filling < FILLINGS; filling += s < 5 ? 2 : 4) {
      struct matrix matrix =
          matrix_of((enum kcp_value_type)((s + (size_t)filling) % KCP_VALUE_TYPES), shapes[s].rows,
                    shapes[s].columns);
      fill(&matrix, (enum filling)filling, 23);
      check_matrix(&matrix, ks, COUNT(ks), 0, filling_name((enum filling)filling));
      free(matrix.bytes);
    }
}

static void test_nothing(void **state) {
  (void)state;
  static const uint64_t ks[] = {1, 100};
  for (int type = 0; type < KCP_VALUE_TYPES; ++type) {
    struct matrix empty = matrix_of((enum kcp_value_type)type, 1, 0);
    check_matrix(&empty, ks, COUNT(ks), 0, "nothing");
    struct matrix empty_rows = matrix_of((enum kcp_value_type)type, 5, 0);
    check_matrix(&empty_rows, ks, COUNT(ks), 0, "nothing");
    struct matrix no_rows = matrix_of((enum kcp_value_type)type, 0, 5);
    check_matrix(&no_rows, ks, COUNT(ks), 0, "nothing");
    free(empty.bytes);
    free(empty_rows.bytes);
    free(no_rows.bytes);
  }
}

/* With little memory an array streams in chunks with a carried threshold. */
static void test_chunks(void **state) {
  (void)state;
  static const uint64_t ks[] = {1, 100, 1024, 5000};
  for (int filling = 0; filling < FILLINGS; ++filling)
    for (int other = 0; other < 2; ++other) {
      struct matrix matrix =
          matrix_of((enum kcp_value_type)((filling + 3 * other) % KCP_VALUE_TYPES), 1, 400011);
      fill(&matrix, (enum filling)filling, 29);
      check_matrix(&matrix, ks, COUNT(ks), UINT64_C(6) << 20, filling_name((enum filling)filling));
      free(matrix.bytes);
    }
  struct matrix matrix = matrix_of(KCP_VALUE_F32, 3, 300001);
  fill(&matrix, FEW_DISTINCT, 31);
  check_matrix(&matrix, ks, COUNT(ks), UINT64_C(8) << 20, "few distinct");
  free(matrix.bytes);
}

/* The answer for k is the start of that for k + 1, also among equal values. */
static void test_prefix_property(void **state) {
  (void)state;
  struct matrix matrix = matrix_of(KCP_VALUE_I32, 1, 5000);
  fill(&matrix, FEW_DISTINCT, 1);
  uint64_t ks[40];
  for (uint64_t i = 0; i < COUNT(ks); ++i) ks[i] = 990 + i;
  check_matrix(&matrix, ks, COUNT(ks), 0, "few distinct");
  free(matrix.bytes);
}

static enum kcp_status failing_read(void *context, uint64_t first, uint64_t count, void *out,
                                    struct kcp_error *error) {
  (void)context;
  (void)first;
  memset(out, 0, count);
  return kcp_fail(error, KCP_BAD_INPUT, "cannot be read");
}

static void test_failing_source(void **state) {
  (void)state;
  const struct kcp_value_source source = {NULL, failing_read};
  for (int method = 0; method < METHODS; ++method)
    for (uint64_t rows = 1; rows <= 1000; rows += 999) {
      const struct kcp_top_k_plan plan = {.type = KCP_VALUE_F32,
                                          .method = (enum kcp_top_k_method)method,
                                          .k = 10,
                                          .rows = rows,
                                          .columns = 100000 / rows};
      struct kcp_error error = {.message = ""};
      struct kcp_top_k_search *search = NULL;
      struct kcp_top_k_answer answer;
      struct kcp_measurement measurement;
      assert_int_equal(backend->top_k->create(&plan, &device, &search, &error), KCP_OK);
      assert_int_equal(backend->top_k->run(search, &source, &answer, &measurement, &error),
                       KCP_BAD_INPUT);
      assert_string_equal(error.message, "cannot be read");
      backend->top_k->destroy(search);
    }
}

/* One search, checked by the independent verification. */
static void search_and_verify(const struct kcp_top_k_plan *plan, struct matrix *matrix,
                              const char *what) {
  const struct kcp_value_source source = {matrix, read_matrix};
  struct kcp_error error = {.message = ""};
  struct kcp_top_k_search *search = NULL;
  struct kcp_top_k_answer answer;
  struct kcp_measurement measurement;
  if (backend->top_k->create(plan, &device, &search, &error) != KCP_OK ||
      backend->top_k->run(search, &source, &answer, &measurement, &error) != KCP_OK ||
      kcp_verify_top_k(plan, &source, &answer, &error) != KCP_OK)
    fail_msg("%s: %s", describe(plan, what), error.message);
  kcp_top_k_answer_free(&answer);
  backend->top_k->destroy(search);
}

/* Around the k from which everything is sorted, where what survives a threshold is many. */
static void test_large_k(void **state) {
  (void)state;
  const uint64_t n = (UINT64_C(1) << 20) + 3;
  const uint64_t ks[] = {n / 64,    n / 16, n / 8, n / 4 - 1, n / 4,
                         n / 4 + 1, n / 2,  n - 1, n,         n + 1};
  struct matrix matrix = matrix_of(KCP_VALUE_F32, 1, n);
  fill(&matrix, UNIFORM, 48);
  for (size_t i = 0; i < COUNT(ks); ++i) {
    const struct kcp_top_k_plan plan = {
        .type = KCP_VALUE_F32, .method = KCP_TOP_K_SELECT, .k = ks[i], .rows = 1, .columns = n};
    search_and_verify(&plan, &matrix, "large k");
  }
  free(matrix.bytes);
}

/* Enough values for many blocks to sample; checked by kcp_verify_top_k, for sorting them takes
 * long.
 */
static void test_many_values(void **state) {
  (void)state;
  static const uint64_t ks[] = {1, 64, 1024, 5000};
  if (backend != kcp_backend_cuda() && getenv("KCP_TEST_LARGE") == NULL) skip();
  for (int filling = 0; filling < FILLINGS; ++filling) {
    struct matrix matrix = matrix_of(KCP_VALUE_F32, 1, (UINT64_C(1) << 25) + 3);
    fill(&matrix, (enum filling)filling, 47);
    for (int method = 0; method < METHODS; ++method)
      for (size_t i = 0; i < COUNT(ks); ++i) {
        const struct kcp_top_k_plan plan = {.type = KCP_VALUE_F32,
                                            .method = (enum kcp_top_k_method)method,
                                            .k = ks[i],
                                            .rows = 1,
                                            .columns = matrix.columns};
        search_and_verify(&plan, &matrix, filling_name((enum filling)filling));
      }
    free(matrix.bytes);
  }
}

/* Values whose place is their number, but for a few. */
static enum kcp_status read_huge(void *context, uint64_t first, uint64_t count, void *out,
                                 struct kcp_error *error) {
  float *values = out;
  const uint64_t n = *(const uint64_t *)context;
  (void)error;
  for (uint64_t i = 0; i < count; ++i) values[i] = (float)((first + i) % 1000);
  for (uint64_t i = 0; i < 3; ++i) {
    const uint64_t at = i == 0 ? 12345 : n - i;
    if (at >= first && at < first + count) values[at - first] = 5000;
  }
  return KCP_OK;
}

static void test_more_than_31_bits(void **state) {
  (void)state;
  if (getenv("KCP_TEST_LARGE") == NULL) skip();
  uint64_t n = (UINT64_C(1) << 31) + 7;
  const struct kcp_value_source source = {&n, read_huge};
  for (int method = 0; method < METHODS; ++method) {
    const struct kcp_top_k_plan plan = {.type = KCP_VALUE_F32,
                                        .method = (enum kcp_top_k_method)method,
                                        .k = 5,
                                        .rows = 1,
                                        .columns = n};
    const uint64_t expected[] = {12345, n - 2, n - 1, 999, 1999};
    struct kcp_error error = {.message = ""};
    struct kcp_top_k_search *search = NULL;
    struct kcp_top_k_answer answer;
    struct kcp_measurement measurement;
    if (backend->top_k->create(&plan, &device, &search, &error) != KCP_OK)
      fail_msg("%s", error.message);
    if (backend->top_k->run(search, &source, &answer, &measurement, &error) != KCP_OK)
      fail_msg("%s", error.message);
    for (int i = 0; i < 5; ++i) assert_int_equal(answer.values[i].index, expected[i]);
    assert_int_equal(answer.certificates[0].above, 3);
    assert_int_equal(answer.certificates[0].equal, n / 1000);
    kcp_top_k_answer_free(&answer);
    backend->top_k->destroy(search);
  }
}

static void test_keys_are_in_the_order_of_values(void **state) {
  (void)state;
  for (int type = 0; type < KCP_VALUE_TYPES; ++type) {
    struct matrix matrix = matrix_of((enum kcp_value_type)type, 1, 3000);
    fill(&matrix, ANY_BITS, 41);
    for (uint64_t i = 0; i < 300; ++i) fill_special(&matrix, i, i);
    for (int order = 0; order < ORDERS; ++order)
      for (uint64_t i = 0; i + 1 < 3000; ++i) {
        union kcp_value a = {.bits = 0}, b = {.bits = 0};
        memcpy(&a, matrix.bytes + i * size_of(matrix.type), size_of(matrix.type));
        memcpy(&b, matrix.bytes + (i + 1) * size_of(matrix.type), size_of(matrix.type));
        const uint64_t key_a = kcp_ordered_key(matrix.type, (enum kcp_value_order)order, a.bits);
        const uint64_t key_b = kcp_ordered_key(matrix.type, (enum kcp_value_order)order, b.bits);
        assert_int_equal(kcp_key_is_nan(matrix.type, key_a), is_nan(matrix.type, a));
        if (is_nan(matrix.type, a)) continue;
        assert_int_equal(kcp_ordered_value(matrix.type, (enum kcp_value_order)order, key_a),
                         expected_bits(matrix.type, a));
        if (is_nan(matrix.type, b)) continue;
        assert_int_equal(key_a > key_b,
                         must_follow(matrix.type, (enum kcp_value_order)order, a, b));
      }
    free(matrix.bytes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_keys_are_in_the_order_of_values),
      cmocka_unit_test(test_nothing),
      cmocka_unit_test(test_small_arrays),
      cmocka_unit_test(test_every_k_of_a_short_array),
      cmocka_unit_test(test_sizes_around_blocks),
      cmocka_unit_test(test_values_just_around_the_threshold),
      cmocka_unit_test(test_prefix_property),
      cmocka_unit_test(test_misleading_samples),
      cmocka_unit_test(test_rows),
      cmocka_unit_test(test_chunks),
      cmocka_unit_test(test_failing_source),
      cmocka_unit_test(test_large_arrays),
      cmocka_unit_test(test_large_k),
      cmocka_unit_test(test_many_values),
      cmocka_unit_test(test_more_than_31_bits),
  };
  const char *wanted = getenv("KCP_TEST_BACKEND");
  const bool on_gpu = wanted != NULL && strcmp(wanted, "cuda") == 0;
  struct kcp_error error;
  backend = on_gpu ? kcp_backend_cuda() : kcp_backend_cpu();
  if (backend->probe(0, &device, &error) != KCP_OK) {
    fprintf(stderr, "skipped: %s\n", error.message);
    return SKIPPED;
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}

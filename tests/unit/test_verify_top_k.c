/* The independent check of a top-k answer: it accepts a right answer and tells every kind of wrong
 * one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kcp/top_k_query.h"

enum { COUNT = 600000, K = 4 }; /* more than one block of the check */

static float array[COUNT];

static enum kcp_status read_array(void *context, uint64_t first, uint64_t count, void *out,
                                  struct kcp_error *error) {
  (void)context;
  (void)error;
  memcpy(out, array + first, count * sizeof *array);
  return KCP_OK;
}

/* 9 at 500000, 7 at 10, 300000 and 599999, NaN at 20; else 1. The first four of them. */
static struct kcp_top_value values[K];
static struct kcp_top_k_certificate certificate;
static struct kcp_top_k_answer answer;

static const struct kcp_top_k_plan plan = {
    .type = KCP_VALUE_F32, .order = KCP_LARGEST_FIRST, .k = K, .rows = 1, .columns = COUNT};

static int set_up(void **state) {
  static const uint64_t indices[K] = {500000, 10, 300000, 599999};
  (void)state;
  for (uint64_t i = 0; i < COUNT; ++i) array[i] = 1;
  array[20] = NAN;
  for (int i = 0; i < K; ++i) {
    array[indices[i]] = i == 0 ? 9 : 7;
    values[i] = (struct kcp_top_value){.index = indices[i], .value = {.bits = 0}};
    values[i].value.f32 = array[indices[i]];
  }
  certificate = (struct kcp_top_k_certificate){
      .count = K, .last = values[K - 1].value, .above = 1, .equal = 3, .nan_count = 1};
  answer = (struct kcp_top_k_answer){1, K, values, &certificate};
  return 0;
}

static enum kcp_status verify(struct kcp_error *error) {
  const struct kcp_value_source source = {NULL, read_array};
  return kcp_verify_top_k(&plan, &source, &answer, error);
}

static void expect_wrong(const char *what) {
  struct kcp_error error = {.message = ""};
  assert_int_equal(verify(&error), KCP_WRONG_ANSWER);
  if (strstr(error.message, what) == NULL) fail_msg("'%s' in '%s'", what, error.message);
}

static void test_right_answer(void **state) {
  struct kcp_error error = {.message = ""};
  (void)state;
  assert_int_equal(verify(&error), KCP_OK);
}

static void test_order(void **state) {
  const struct kcp_top_value first = values[1];
  (void)state;
  values[1] = values[2];
  values[2] = first;
  expect_wrong("out of order");
}

static void test_index_of_another_value(void **state) {
  (void)state;
  values[0].index = 500001;
  expect_wrong("found at their index");
}

static void test_value_that_is_not_there(void **state) {
  (void)state;
  values[0].value.f32 = 8;
  expect_wrong("found at their index");
}

static void test_later_index_of_equal_values(void **state) {
  (void)state;
  array[100] = 7; /* one more, which comes before two of the answer's */
  certificate.equal = 4;
  expect_wrong("equal values up to the last index");
}

static void test_value_left_out(void **state) {
  (void)state;
  array[400000] = 8;
  expect_wrong("values above the k-th");
}

static void test_counts_of_the_certificate(void **state) {
  (void)state;
  certificate.equal = 2;
  expect_wrong("values equal to the k-th");
  certificate.equal = 3;
  certificate.nan_count = 0;
  expect_wrong("NaN");
  certificate.nan_count = 1;
  certificate.count = 3;
  certificate.last = values[2].value;
  expect_wrong("values due");
}

static enum kcp_status failing_read(void *context, uint64_t first, uint64_t count, void *out,
                                    struct kcp_error *error) {
  (void)context;
  (void)first;
  memset(out, 0, count * sizeof(float));
  return kcp_fail(error, KCP_BAD_INPUT, "cannot be read");
}

static void test_failing_source(void **state) {
  const struct kcp_value_source source = {NULL, failing_read};
  struct kcp_error error = {.message = ""};
  (void)state;
  assert_int_equal(kcp_verify_top_k(&plan, &source, &answer, &error), KCP_BAD_INPUT);
  assert_string_equal(error.message, "cannot be read");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_right_answer, set_up),
      cmocka_unit_test_setup(test_order, set_up),
      cmocka_unit_test_setup(test_index_of_another_value, set_up),
      cmocka_unit_test_setup(test_value_that_is_not_there, set_up),
      cmocka_unit_test_setup(test_later_index_of_equal_values, set_up),
      cmocka_unit_test_setup(test_value_left_out, set_up),
      cmocka_unit_test_setup(test_counts_of_the_certificate, set_up),
      cmocka_unit_test_setup(test_failing_source, set_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The runs of a job, and the scale that extreme coordinates need. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "job_fixture.h"
#include "kcp/execute.h"

static struct kcp_error message;

struct outcome {
  enum kcp_status status;
  struct kcp_answer answer;
  struct kcp_result result;
};

static struct outcome execute(struct job_fixture *fixture) {
  struct outcome outcome = {.status = KCP_OK};
  static struct kcp_progress progress;
  fixture->job.progress = &progress;
  fixture->job.backend = kcp_backend_cpu();
  fixture->job.algorithm = kcp_algorithm_find("dspp+pea");
  assert_int_equal(fixture->job.backend->probe(0, &fixture->job.device, &message), KCP_OK);
  outcome.status = kcp_execute(&fixture->job, &outcome.result, &outcome.answer, &message);
  return outcome;
}

static void release(struct outcome *outcome) {
  kcp_result_free(&outcome->result);
  free(outcome->answer.pairs);
}

static void plain_coordinates_are_not_scaled(void **state) {
  (void)state;
  struct job_fixture fixture;
  open_job(&fixture, "1,0,0\n2,5,5\n", "3,3,4\n", 1);
  fixture.request.runs = 3;
  fixture.request.warmup = 2;
  struct outcome outcome = execute(&fixture);
  assert_int_equal(outcome.status, KCP_OK);
  assert_int_equal(fixture.job.scale_exponent, 0);
  assert_int_equal(outcome.result.sample_count, 3);
  assert_int_equal(outcome.result.warmup_count, 2);
  assert_int_equal(outcome.answer.count, 1);
  assert_true(outcome.answer.pairs[0].rank == 5);
  release(&outcome);
  close_job(&fixture);
}

/* Checks the nearest pair, its distance, and whether it took another scale. */
static void assert_nearest(const char *reference, const char *query, uint64_t id1, uint64_t id2,
                           double distance, bool scaled) {
  struct job_fixture fixture;
  open_job(&fixture, reference, query, 1);
  struct outcome outcome = execute(&fixture);
  assert_int_equal(outcome.status, KCP_OK);
  assert_int_equal(outcome.answer.count, 1);
  assert_true(outcome.answer.pairs[0].id1 == id1 && outcome.answer.pairs[0].id2 == id2);
  assert_true(kcp_job_distance(&fixture.job, outcome.answer.pairs[0].rank) == distance);
  assert_int_equal(fixture.job.scale_exponent != 0, scaled);
  release(&outcome);
  close_job(&fixture);
}

static void squares_that_overflow_are_scaled(void **state) {
  (void)state;
  assert_nearest("1,0,0\n2,1e200,0\n", "3,-2e200,0\n4,4e200,0\n", 1, 3, 2e200, true);
  assert_nearest("1,1.5e308,0\n", "3,0,0\n4,-1.5e307,0\n", 1, 3, 1.5e308, true);
  /* near pairs of far points need no other scale */
  assert_nearest("1,1e200,0\n2,-1e200,0\n", "3,0,0\n4,1e200,1\n", 1, 4, 1, false);
}

static void squares_that_underflow_are_scaled(void **state) {
  (void)state;
  assert_nearest("1,0,0\n2,1e-200,0\n", "3,-2e-200,0\n4,4e-200,0\n", 1, 3, 2e-200, true);
  assert_nearest("1,0,0\n", "3,1e-323,0\n4,5e-324,0\n", 1, 4, 5e-324, true);
}

static void wide_ranges_follow_the_answer(void **state) {
  (void)state;
  assert_nearest("1,0,0\n2,1,1\n", "3,2e-300,0\n4,1e-300,0\n5,7,7\n", 1, 4, 1e-300, true);
  /* coincident points are at rank 0 at any scale */
  assert_nearest("1,1e-300,0\n2,1,1\n", "3,0,0\n4,1e-300,0\n", 1, 4, 0, true);
  assert_nearest("1,1e-300,0\n2,1,1\n", "3,1,1\n4,5,1\n", 2, 3, 0, false);
}

static void ranges_beyond_any_scale_are_refused(void **state) {
  (void)state;
  struct job_fixture fixture;
  open_job(&fixture, "1,0,0\n2,1,1\n", "3,2e-300,0\n4,1e-300,0\n", 4);
  struct outcome outcome = execute(&fixture);
  assert_int_equal(outcome.status, KCP_BAD_INPUT);
  assert_non_null(strstr(message.message, "orders of magnitude"));
  release(&outcome);
  close_job(&fixture);
}

static void the_largest_distance_is_scaled_too(void **state) {
  (void)state;
  struct job_fixture fixture;
  open_job(&fixture, "1,0,0\n2,1,1\n", "3,2e-300,0\n4,1e-300,0\n5,3e-300,0\n", 6);
  fixture.request.max_distance = 2e-300;
  struct outcome outcome = execute(&fixture);
  assert_int_equal(outcome.status, KCP_OK);
  assert_int_equal(outcome.answer.count, 2);
  assert_true(outcome.answer.pairs[0].id2 == 4 && outcome.answer.pairs[1].id2 == 3);
  release(&outcome);
  close_job(&fixture);
}

/* The first answer at scale 0 holds (1,3) and (1,4) at rank 0, though only one coincides. */
static void true_zeros_come_before_underflowed_ones(void **state) {
  (void)state;
  assert_nearest("1,1e-300,0\n2,1,1\n", "3,0,0\n4,1e-300,0\n5,2,2\n", 1, 4, 0, true);
}

static void pairs_are_counted_without_wrap_around(void **state) {
  (void)state;
  assert_true(kcp_possible_pairs(false, 70000, 70000) == UINT64_C(4900000000));
  assert_true(kcp_possible_pairs(false, UINT64_C(1) << 33, UINT64_C(1) << 33) == UINT64_MAX);
  assert_true(kcp_possible_pairs(false, UINT64_MAX, 0) == 0);
  assert_true(kcp_possible_pairs(true, 0, 0) == 0);
  assert_true(kcp_possible_pairs(true, 1, 1) == 0);
  assert_true(kcp_possible_pairs(true, 4, 4) == 6);
  assert_true(kcp_possible_pairs(true, 5, 5) == 10);
  assert_true(kcp_possible_pairs(true, UINT64_C(1) << 32, 0) ==
              (UINT64_C(1) << 31) * ((UINT64_C(1) << 32) - 1));
  assert_true(kcp_possible_pairs(true, UINT64_C(1) << 40, 0) == UINT64_MAX);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plain_coordinates_are_not_scaled),
      cmocka_unit_test(squares_that_overflow_are_scaled),
      cmocka_unit_test(squares_that_underflow_are_scaled),
      cmocka_unit_test(wide_ranges_follow_the_answer),
      cmocka_unit_test(ranges_beyond_any_scale_are_refused),
      cmocka_unit_test(the_largest_distance_is_scaled_too),
      cmocka_unit_test(true_zeros_come_before_underflowed_ones),
      cmocka_unit_test(pairs_are_counted_without_wrap_around),
  };
  return cmocka_run_group_tests(tests, make_scratch_folder, remove_scratch_folder);
}

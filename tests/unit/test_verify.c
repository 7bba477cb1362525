#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "job_fixture.h"
#include "kcp/verify.h"

/* Points on a line at 0, 1, 2, 4 and at 0, 2, 7: squared distances
 * (10,20) 0, (12,21) 0, (11,20) 1, (11,21) 1, (10,21) 4, (12,20) 4, (13,21) 4, (13,22) 9, ... */
static const char reference[] = "10,0,5\n11,1,5\n12,2,5\n13,4,5\n";
static const char query[] = "20,0,5\n21,2,5\n22,7,5\n";
static const struct kcp_candidate right[] = {{0, 10, 20}, {0, 12, 21}, {1, 11, 20}, {1, 11, 21},
                                             {4, 10, 21}, {4, 12, 20}, {4, 13, 21}, {9, 13, 22}};

static struct kcp_error message;

static enum kcp_status verify(const struct job_fixture *fixture, const struct kcp_candidate *pairs,
                              uint64_t count) {
  struct kcp_candidate copy[16];
  struct kcp_answer answer = {copy, count};
  memcpy(copy, pairs, count * sizeof *pairs);
  message.message[0] = '\0';
  return kcp_verify_pairs(&fixture->job, &answer, &message);
}

static void right_answers_pass(void **state) {
  (void)state;
  for (uint64_t k = 1; k <= 8; ++k) {
    struct job_fixture fixture;
    open_job(&fixture, reference, query, k);
    assert_int_equal(verify(&fixture, right, k), KCP_OK);
    close_job(&fixture);
  }
}

/* Checks that the answer with `changed` in place of pair `place` is refused with these words. */
static void assert_caught(uint64_t place, struct kcp_candidate changed, const char *words) {
  struct kcp_candidate pairs[8];
  struct job_fixture fixture;
  memcpy(pairs, right, sizeof right);
  pairs[place] = changed;
  open_job(&fixture, reference, query, 8);
  assert_int_equal(verify(&fixture, pairs, 8), KCP_WRONG_ANSWER);
  assert_non_null(strstr(message.message, words));
  close_job(&fixture);
}

static void planted_faults_are_caught(void **state) {
  (void)state;
  assert_caught(2, (struct kcp_candidate){0.5, 11, 20}, "another distance");
  assert_caught(2, (struct kcp_candidate){nextafter(1, 2), 11, 20}, "belongs before");
  assert_caught(7, (struct kcp_candidate){nextafter(9, 10), 13, 22}, "another distance");
  assert_caught(3, (struct kcp_candidate){1, 11, 99}, "not in them");
  assert_caught(3, right[2], "more than once");
  assert_caught(7, (struct kcp_candidate){25, 12, 22}, "lie at or before");
  assert_caught(0, right[1], "more than once");
}

static void swapped_pairs_are_caught(void **state) {
  (void)state;
  struct kcp_candidate pairs[8];
  struct job_fixture fixture;
  memcpy(pairs, right, sizeof right);
  pairs[4] = right[5];
  pairs[5] = right[4];
  open_job(&fixture, reference, query, 8);
  assert_int_equal(verify(&fixture, pairs, 8), KCP_WRONG_ANSWER);
  assert_non_null(strstr(message.message, "belongs before"));
  close_job(&fixture);
}

static void a_missing_pair_is_caught(void **state) {
  (void)state;
  struct kcp_candidate pairs[8];
  struct job_fixture fixture;
  memcpy(pairs, right, sizeof right);
  memmove(pairs + 3, pairs + 4, 4 * sizeof *pairs);
  open_job(&fixture, reference, query, 7);
  assert_int_equal(verify(&fixture, pairs, 7), KCP_WRONG_ANSWER);
  assert_non_null(strstr(message.message, "8 pairs of the files"));
  assert_int_equal(verify(&fixture, right, 6), KCP_WRONG_ANSWER);
  assert_int_equal(verify(&fixture, right, 0), KCP_WRONG_ANSWER);
  assert_int_equal(verify(&fixture, right, 8), KCP_WRONG_ANSWER);
  close_job(&fixture);
}

static void the_largest_distance_is_respected(void **state) {
  (void)state;
  struct job_fixture fixture;
  open_job(&fixture, reference, query, 8);
  fixture.request.max_distance = 2;
  assert_int_equal(verify(&fixture, right, 7), KCP_OK);
  assert_int_equal(verify(&fixture, right, 6), KCP_WRONG_ANSWER);
  assert_int_equal(verify(&fixture, right, 8), KCP_WRONG_ANSWER);
  assert_non_null(strstr(message.message, "--max-distance"));
  fixture.request.max_distance = 0;
  assert_int_equal(verify(&fixture, right, 2), KCP_OK);
  close_job(&fixture);
}

static void self_pairs_are_unordered(void **state) {
  (void)state;
  const struct kcp_candidate pairs[] = {{1, 10, 11}, {1, 11, 12}, {4, 10, 12}};
  const struct kcp_candidate turned[] = {{1, 11, 10}, {1, 11, 12}, {4, 10, 12}};
  const struct kcp_candidate itself[] = {{0, 10, 10}, {1, 10, 11}, {1, 11, 12}};
  struct job_fixture fixture;
  open_job(&fixture, reference, NULL, 3);
  assert_int_equal(verify(&fixture, pairs, 3), KCP_OK);
  assert_int_equal(verify(&fixture, turned, 3), KCP_WRONG_ANSWER);
  assert_int_equal(verify(&fixture, itself, 3), KCP_WRONG_ANSWER);
  close_job(&fixture);
}

static void repeated_ids_stand_for_any_of_their_records(void **state) {
  (void)state;
  const char twins[] = "7,0,0\n7,1,0\n7,1,0\n8,5,0\n";
  const struct kcp_candidate pairs[] = {{0, 7, 7}, {1, 7, 7}, {1, 7, 7}, {16, 7, 8}, {16, 7, 8}};
  const struct kcp_candidate thrice[] = {{0, 7, 7}, {1, 7, 7}, {1, 7, 7}, {1, 7, 7}, {16, 7, 8}};
  struct job_fixture fixture;
  open_job(&fixture, twins, NULL, 5);
  assert_int_equal(verify(&fixture, pairs, 5), KCP_OK);
  assert_int_equal(verify(&fixture, thrice, 5), KCP_WRONG_ANSWER);
  close_job(&fixture);
}

static void every_metric_has_its_own_rank(void **state) {
  (void)state;
  static const struct {
    struct kcp_metric metric;
    double rank;
  } cases[] = {{{KCP_L1, 1}, 7}, {{KCP_L2, 2}, 25}, {{KCP_LINF, 1}, 4}, {{KCP_LP, 3}, 91}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    struct job_fixture fixture;
    struct kcp_candidate pair = {cases[i].rank, 1, 2};
    open_job(&fixture, "1,0,0\n", "2,3,-4\n", 1);
    fixture.request.metric = cases[i].metric;
    assert_int_equal(verify(&fixture, &pair, 1), KCP_OK);
    pair.rank += 1;
    assert_int_equal(verify(&fixture, &pair, 1), KCP_WRONG_ANSWER);
    close_job(&fixture);
  }
}

static void ranks_are_those_of_the_scale(void **state) {
  (void)state;
  struct job_fixture fixture;
  const struct kcp_candidate pair = {ldexp(25, -20), 1, 2};
  open_job(&fixture, "1,0,0\n", "2,3,-4\n", 1);
  fixture.job.scale_exponent = -10;
  kcp_dataset_set_scale(fixture.job.reference, -10);
  kcp_dataset_set_scale(fixture.job.query, -10);
  assert_int_equal(verify(&fixture, &pair, 1), KCP_OK);
  fixture.request.max_distance = 5;
  assert_int_equal(verify(&fixture, &pair, 1), KCP_OK);
  fixture.request.max_distance = 4.5;
  assert_int_equal(verify(&fixture, &pair, 1), KCP_WRONG_ANSWER);
  close_job(&fixture);
}

/* More than 10^9 pairs, so that the count sweeps. */
static void large_inputs_are_swept(void **state) {
  (void)state;
  enum { POINTS = 40000 };
  char *text = malloc(POINTS * 32);
  size_t used = 0;
  for (int i = 0; i < POINTS; ++i)
    used += (size_t)snprintf(text + used, 32, "%d,1,%d\n", i, (i * 7) % POINTS * 3);
  const struct kcp_candidate none = {9, 0, 5714};
  struct job_fixture fixture;
  struct kcp_candidate *pairs = malloc(POINTS * sizeof *pairs);
  struct kcp_answer answer = {pairs, POINTS};
  open_job(&fixture, text, text, POINTS);
  for (uint64_t i = 0; i < POINTS; ++i) pairs[i] = (struct kcp_candidate){0, i, i};
  assert_int_equal(kcp_verify_pairs(&fixture.job, &answer, &message), KCP_OK);
  pairs[POINTS - 1] = none;
  assert_int_equal(kcp_verify_pairs(&fixture.job, &answer, &message), KCP_WRONG_ANSWER);
  close_job(&fixture);
  free(pairs);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(right_answers_pass),
      cmocka_unit_test(planted_faults_are_caught),
      cmocka_unit_test(swapped_pairs_are_caught),
      cmocka_unit_test(a_missing_pair_is_caught),
      cmocka_unit_test(the_largest_distance_is_respected),
      cmocka_unit_test(self_pairs_are_unordered),
      cmocka_unit_test(repeated_ids_stand_for_any_of_their_records),
      cmocka_unit_test(every_metric_has_its_own_rank),
      cmocka_unit_test(ranks_are_those_of_the_scale),
      cmocka_unit_test(large_inputs_are_swept),
  };
  return cmocka_run_group_tests(tests, make_scratch_folder, remove_scratch_folder);
}

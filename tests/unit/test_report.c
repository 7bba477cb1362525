#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>

#include "job_fixture.h"
#include "kcp/report.h"

static struct kcp_error message;

/* A result with figures whose statistics are easy to see. */
struct report_fixture {
  struct job_fixture job;
  struct kcp_result result;
  struct kcp_measurement samples[3];
  double scratch[3];
  struct kcp_candidate pairs[2];
  struct kcp_answer answer;
};

static void make_result(struct report_fixture *fixture) {
  memset(fixture, 0, sizeof *fixture);
  open_job(&fixture->job, "1,0,0\n", "2,3,4\n", 2);
  fixture->pairs[0] = (struct kcp_candidate){0, 1, UINT64_MAX};
  fixture->pairs[1] = (struct kcp_candidate){25, 1, 2};
  fixture->answer = (struct kcp_answer){fixture->pairs, 2};
  for (int i = 0; i < 3; ++i) {
    fixture->samples[i].total_s = 3 - i;
    fixture->samples[i].phase_s[KCP_PHASE_KERNEL] = 0.25;
    fixture->samples[i].distance_evaluations = UINT64_MAX;
  }
  struct kcp_result *result = &fixture->result;
  result->algorithm = kcp_algorithm_find("dbf");
  result->backend = kcp_backend_cpu();
  result->samples = fixture->samples;
  result->scratch = fixture->scratch;
  result->sample_count = 3;
  result->possible_evaluations = 1e20;
  result->dataset_count = 2;
  result->datasets[0] = (struct kcp_dataset_facts){"a\xff.bin", "bin", UINT64_MAX, 2, 32};
  result->datasets[1] = (struct kcp_dataset_facts){"b.bin", "bin", 7, 3, 224};
  result->parameters[0] = (struct kcp_parameter){"d1-partition", "1000", true};
  result->parameters[1] = (struct kcp_parameter){"buffer", "heap", false};
  result->parameter_count = 2;
  kcp_result_take_answer(result, &fixture->job.job, &fixture->answer);
}

static json_t *write_and_read(const struct report_fixture *fixture) {
  const char *path = scratch_path("report.json");
  FILE *stream = fopen(path, "w");
  assert_int_equal(kcp_report_write(stream, &fixture->job.request, &fixture->result, 1, &message),
                   KCP_OK);
  fclose(stream);
  json_error_t error;
  json_t *report = json_load_file(path, 0, &error);
  assert_non_null(report);
  return report;
}

static double number(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  assert_true(json_is_number(value));
  return json_number_value(value);
}

static const char *string(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  assert_true(json_is_string(value));
  return json_string_value(value);
}

static void the_report_has_its_schema(void **state) {
  (void)state;
  struct report_fixture fixture;
  make_result(&fixture);
  json_t *report = write_and_read(&fixture);
  assert_true(number(report, "schema_version") == 1);
  const json_t *tool = json_object_get(report, "tool");
  assert_string_equal(string(tool, "name"), "kcp");
  assert_non_null(string(tool, "version"));
  assert_non_null(string(tool, "revision"));
  assert_non_null(string(tool, "build_flags"));
  assert_non_null(json_object_get(tool, "cuda"));
  const json_t *context = json_object_get(report, "context");
  assert_true(json_is_array(json_object_get(context, "argv")));
  assert_int_equal(strlen(string(context, "date")), strlen("2026-01-01T00:00:00Z"));
  assert_non_null(string(context, "cpu"));
  assert_true(json_is_null(json_object_get(context, "gpu")));
  assert_true(number(context, "host_memory_bytes") > 0);

  const json_t *result = json_array_get(json_object_get(report, "results"), 0);
  assert_string_equal(string(result, "algorithm"), "dbf");
  assert_string_equal(string(result, "backend"), "cpu");
  assert_string_equal(string(result, "status"), "ok");
  assert_true(json_is_null(json_object_get(result, "reason")));
  assert_true(number(json_object_get(result, "phases"), "kernel_s") == 0.25);
  assert_true(number(json_object_get(result, "phases"), "total_s") == 2);
  assert_int_equal(json_array_size(json_object_get(result, "samples")), 3);
  const json_t *total = json_object_get(json_object_get(result, "statistics"), "total");
  assert_true(number(total, "median_s") == 2 && number(total, "min_s") == 1);
  assert_true(number(total, "max_s") == 3 && number(total, "mean_s") == 2);
  assert_true(number(total, "stddev_s") == 1);
  const json_t *parameters = json_object_get(result, "parameters");
  assert_true(number(parameters, "k") == 2 && number(parameters, "d1-partition") == 1000);
  assert_string_equal(string(parameters, "buffer"), "heap");
  assert_string_equal(string(parameters, "metric"), "l2");
  json_decref(report);
  close_job(&fixture.job);
}

static void numbers_beyond_int64_are_numbers(void **state) {
  (void)state;
  struct report_fixture fixture;
  make_result(&fixture);
  json_t *report = write_and_read(&fixture);
  const json_t *result = json_array_get(json_object_get(report, "results"), 0);
  const json_t *dataset = json_array_get(json_object_get(result, "datasets"), 0);
  assert_true(number(dataset, "n") == 0x1p64);
  assert_string_equal(string(dataset, "path"), "a?.bin"); /* JSON holds no other bytes */
  assert_true(number(json_object_get(result, "work"), "distance_evaluations") == 0x1p64);
  json_decref(report);
  close_job(&fixture.job);
}

static void the_answer_is_summed_up(void **state) {
  (void)state;
  struct report_fixture fixture;
  make_result(&fixture);
  json_t *report = write_and_read(&fixture);
  const json_t *result = json_array_get(json_object_get(report, "results"), 0);
  const json_t *answer = json_object_get(result, "answer");
  assert_true(number(answer, "pairs") == 2 && number(answer, "zero_distance_pairs") == 1);
  assert_true(number(answer, "kth_distance") == 5);
  assert_int_equal(strlen(string(answer, "checksum")), 16);
  json_decref(report);
  close_job(&fixture.job);
}

static void checksums_depend_on_every_field(void **state) {
  (void)state;
  struct kcp_candidate pairs[] = {{1, 2, 3}, {4, 5, 6}};
  struct kcp_answer answer = {pairs, 2}, none = {NULL, 0};
  assert_true(kcp_answer_checksum(&none) == UINT64_C(0xcbf29ce484222325));
  uint64_t whole = kcp_answer_checksum(&answer);
  pairs[1].id2 = 7;
  assert_true(kcp_answer_checksum(&answer) != whole);
  pairs[1].id2 = 6;
  pairs[0].rank = 1.0000000000000002;
  assert_true(kcp_answer_checksum(&answer) != whole);
  pairs[0].rank = 1;
  pairs[0].id1 = 3;
  pairs[0].id2 = 2;
  assert_true(kcp_answer_checksum(&answer) != whole);
  pairs[0].id1 = 2;
  pairs[0].id2 = 3;
  assert_true(kcp_answer_checksum(&answer) == whole);
}

static void wrong_answers_are_told(void **state) {
  (void)state;
  struct report_fixture fixture;
  make_result(&fixture);
  fixture.result.status = KCP_RESULT_WRONG;
  strcpy(fixture.result.reason, "pair 3 is wrong");
  json_t *report = write_and_read(&fixture);
  const json_t *result = json_array_get(json_object_get(report, "results"), 0);
  assert_string_equal(string(result, "status"), "wrong");
  assert_string_equal(string(result, "reason"), "pair 3 is wrong");
  json_decref(report);
  close_job(&fixture.job);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_report_has_its_schema),
      cmocka_unit_test(numbers_beyond_int64_are_numbers),
      cmocka_unit_test(the_answer_is_summed_up),
      cmocka_unit_test(checksums_depend_on_every_field),
      cmocka_unit_test(wrong_answers_are_told),
  };
  return cmocka_run_group_tests(tests, make_scratch_folder, remove_scratch_folder);
}

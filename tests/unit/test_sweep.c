#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "kcp/sweep.h"

enum { MOST_ARGUMENTS = 32 };

static struct kcp_request request;
static struct kcp_sweep sweep;
static struct kcp_error message;

/* Makes the sweep of the words of `line`, which are separated by single blanks. */
static enum kcp_status make(const char *line) {
  static char copy[512];
  static char *arguments[MOST_ARGUMENTS + 1];
  int count = 0;
  snprintf(copy, sizeof copy, "kcp bench %s", line);
  for (char *word = strtok(copy, " "); word != NULL && count < MOST_ARGUMENTS;
       word = strtok(NULL, " "))
    arguments[count++] = word;
  arguments[count] = NULL;
  message.message[0] = '\0';
  enum kcp_status status = kcp_args_parse(count, arguments, &request, &message);
  assert_int_equal(status, KCP_OK);
  return kcp_sweep_make(&request, &sweep, &message);
}

/* The values of an axis, separated by blanks. */
static const char *values_of(int axis) {
  static char text[512];
  text[0] = '\0';
  for (uint64_t i = 0; i < sweep.axes[axis].count; ++i) {
    if (i > 0) strcat(text, " ");
    strcat(text, sweep.axes[axis].values[i]);
  }
  return text;
}

static void assert_values(const char *line, const char *values) {
  assert_int_equal(make(line), KCP_OK);
  assert_string_equal(values_of(0), values);
  kcp_sweep_free(&sweep);
}

static void assert_refused(const char *line) {
  assert_int_equal(make(line), KCP_BAD_INPUT);
  assert_true(message.message[0] != '\0');
  assert_null(strchr(message.message, '\n'));
  kcp_sweep_free(&sweep);
}

static void lists_and_ranges_become_values(void **state) {
  (void)state;
  assert_values("--k 7 a.bin b.bin", "7");
  assert_values("--k 20,140,60 a.bin b.bin", "20 140 60");
  assert_values("--k 20:140:40 a.bin b.bin", "20 60 100 140");
  assert_values("--k 1:10:4 a.bin b.bin", "1 5 9");
  assert_values("--k 3:3:9 a.bin b.bin", "3");
  assert_values("--k 1,10:30:10,99 a.bin b.bin", "1 10 20 30 99");
  assert_values("--memory 1K:3K:1K a.bin b.bin", "1024 2048 3072");
  assert_values("--memory 64K,2G a.bin b.bin", "64K 2G");
  assert_values("--max-distance 0.1:0.3:0.1 a.bin b.bin", "0.1 0.2 0.3");
  assert_values("--metric l2,lp:3 a.bin b.bin", "l2 lp:3");
  assert_values("--device cpu,cuda:1 a.bin b.bin", "cpu cuda:1");
  assert_values("--columns id,x,y a.csv b.csv", "id,x,y");
  assert_values("--k 18446744073709551613:18446744073709551615:1 a.bin b.bin",
                "18446744073709551613 18446744073709551614 18446744073709551615");
}

static void wrong_lists_are_refused(void **state) {
  (void)state;
  assert_refused("--k 1,,2 a.bin b.bin");
  assert_refused("--k 1, a.bin b.bin");
  assert_refused("--k= a.bin b.bin");
  assert_refused("--k 1:2 a.bin b.bin");
  assert_refused("--k 1:2:3:4 a.bin b.bin");
  assert_refused("--k 9:1:1 a.bin b.bin");
  assert_refused("--warmup 1:9:0 a.bin b.bin");
  assert_refused("--max-distance 1:2:0 a.bin b.bin");
  assert_refused("--k 1:100001:1 a.bin b.bin");
  assert_refused("--k 1:1000:1 --threads 1:1000:1 a.bin b.bin");
}

static void the_last_option_varies_first(void **state) {
  (void)state;
  static const char *const expected[] = {
      "kcp query --algo dbf --k 1 --self a.bin", "kcp query --algo dbf --k 2 --self a.bin",
      "kcp query --algo dspp --k 1 --self a.bin", "kcp query --algo dspp --k 2 --self a.bin"};
  assert_int_equal(make("--algo dbf,dspp --k 1,2 --self --json out.json a.bin"), KCP_OK);
  assert_int_equal(sweep.count, 4);
  for (uint64_t i = 0; i < 4; ++i) {
    struct kcp_configuration configuration;
    char line[256] = "";
    assert_int_equal(kcp_configuration_make(&sweep, i, &request, &configuration, &message), KCP_OK);
    for (int j = 0; j < configuration.argument_count; ++j) {
      if (j > 0) strcat(line, " ");
      strcat(line, configuration.arguments[j]);
    }
    assert_string_equal(line, expected[i]);
    assert_int_equal(configuration.request.command, KCP_COMMAND_QUERY);
    assert_int_equal(configuration.request.k, i % 2 + 1);
    assert_true(configuration.request.self);
    assert_null(configuration.request.json_path);
    kcp_configuration_free(&configuration);
  }
  kcp_sweep_free(&sweep);
}

static void a_repeated_option_counts_once(void **state) {
  (void)state;
  assert_int_equal(make("--k 1,2,3 --algo dbf --k 5,6 a.bin b.bin"), KCP_OK);
  assert_int_equal(sweep.axis_count, 2);
  assert_int_equal(sweep.count, 2);
  assert_string_equal(values_of(0), "5 6");
  kcp_sweep_free(&sweep);
}

static void wrong_values_are_found_when_a_configuration_is_made(void **state) {
  (void)state;
  struct kcp_configuration configuration;
  assert_int_equal(make("--k 5,x a.bin b.bin"), KCP_OK);
  assert_int_equal(kcp_configuration_make(&sweep, 0, &request, &configuration, &message), KCP_OK);
  kcp_configuration_free(&configuration);
  assert_int_equal(kcp_configuration_make(&sweep, 1, &request, &configuration, &message),
                   KCP_BAD_INPUT);
  kcp_configuration_free(&configuration);
  kcp_sweep_free(&sweep);
}

static void files_named_like_commands_or_options_stay_files(void **state) {
  (void)state;
  struct kcp_configuration configuration;
  assert_int_equal(make("--k 5 -- list -b.bin"), KCP_OK);
  assert_int_equal(kcp_configuration_make(&sweep, 0, &request, &configuration, &message), KCP_OK);
  assert_int_equal(configuration.request.command, KCP_COMMAND_QUERY);
  assert_string_equal(configuration.request.inputs[0], "list");
  assert_string_equal(configuration.request.inputs[1], "-b.bin");
  kcp_configuration_free(&configuration);
  kcp_sweep_free(&sweep);
}

/* Answers are compared over all values of these. An option of a query that is not among them must
 * carry KCP_CHANGES_ANSWER: a new one is put into one of the two places. */
static const char *const tuning[] = {"algo",
                                     "run-time",
                                     "device",
                                     "memory",
                                     "threads",
                                     "buffer",
                                     "d1-partition",
                                     "d2-partition",
                                     "kernel",
                                     "order-d2",
                                     "points-per-thread",
                                     "out",
                                     "json",
                                     "block-threads",
                                     "streams",
                                     "runs",
                                     "subpartitions",
                                     "warmup",
                                     "verify",
                                     "quiet",
                                     "floor",
                                     "resident",
                                     "method",
                                     "map",
                                     "map-show",
                                     "reorder",
                                     "kd-height",
                                     "index",
                                     "bound",
                                     "refine",
                                     "result",
                                     "sort-work",
                                     "fixed-work",
                                     "work-per-thread",
                                     "shared-memory",
                                     "copy-threads",
                                     "pinned",
                                     "host-memory",
                                     "grid-dims",
                                     NULL};

static bool is_tuning(const char *name) {
  for (int i = 0; tuning[i] != NULL; ++i)
    if (strcmp(tuning[i], name) == 0) return true;
  return false;
}

static void every_option_is_known_to_change_the_answer_or_not(void **state) {
  (void)state;
  for (const struct kcp_flag *flag = kcp_flags; flag->name != NULL; ++flag) {
    if ((flag->commands & KCP_COMMAND_QUERY) == 0) continue;
    if (is_tuning(flag->name) == ((flag->commands & KCP_CHANGES_ANSWER) != 0))
      fail_msg("--%s: either it carries KCP_CHANGES_ANSWER or it stands in `tuning`", flag->name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lists_and_ranges_become_values),
      cmocka_unit_test(wrong_lists_are_refused),
      cmocka_unit_test(the_last_option_varies_first),
      cmocka_unit_test(a_repeated_option_counts_once),
      cmocka_unit_test(wrong_values_are_found_when_a_configuration_is_made),
      cmocka_unit_test(every_option_is_known_to_change_the_answer_or_not),
      cmocka_unit_test(files_named_like_commands_or_options_stay_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

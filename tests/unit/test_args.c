#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kcp/args.h"
#include "kcp/commands.h"

enum { MOST_ARGUMENTS = 32 };

static struct kcp_request request;
static struct kcp_error message;

/* Parses the words of `line`, which are separated by single blanks. */
static enum kcp_status parse(const char *line) {
  static char copy[512];
  static char *arguments[MOST_ARGUMENTS + 1];
  int count = 0;
  snprintf(copy, sizeof copy, "kcp %s", line);
  for (char *word = strtok(copy, " "); word != NULL && count < MOST_ARGUMENTS;
       word = strtok(NULL, " "))
    arguments[count++] = word;
  arguments[count] = NULL;
  message.message[0] = '\0';
  return kcp_args_parse(count, arguments, &request, &message);
}

static void assert_refused(const char *line) {
  assert_int_equal(parse(line), KCP_BAD_INPUT);
  assert_true(message.message[0] != '\0');
  assert_null(strchr(message.message, '\n'));
}

static void defaults_are_those_of_the_design(void **state) {
  (void)state;
  assert_int_equal(parse("a.bin b.bin"), KCP_OK);
  assert_int_equal(request.command, KCP_COMMAND_QUERY);
  assert_string_equal(request.algorithm, "auto");
  assert_int_equal(request.k, 10);
  assert_int_equal(request.metric.kind, KCP_L2);
  assert_true(isinf(request.max_distance));
  assert_int_equal(request.runs, 1);
  assert_int_equal(request.warmup, 0);
  assert_int_equal(request.device, KCP_DEVICE_AUTO);
  assert_int_equal(request.given_count, 0);
  assert_int_equal(request.input_count, 2);
  assert_string_equal(request.inputs[0], "a.bin");
  assert_string_equal(request.inputs[1], "b.bin");
}

static void every_option_reaches_its_field(void **state) {
  (void)state;
  assert_int_equal(parse("--algo dspp-pea --k 7 --metric lp:16 --max-distance 2.5 --device cuda:3 "
                         "--memory 2g --threads 4 a.bin b.bin"),
                   KCP_OK);
  assert_string_equal(request.algorithm, "dspp-pea");
  assert_int_equal(request.k, 7);
  assert_int_equal(request.metric.kind, KCP_LP);
  assert_int_equal(request.metric.power, 16);
  assert_true(request.max_distance == 2.5);
  assert_int_equal(request.device, KCP_DEVICE_CUDA);
  assert_int_equal(request.device_index, 3);
  assert_true(request.memory_bytes == UINT64_C(2) << 30);
  assert_int_equal(request.threads, 4);
  assert_int_equal(parse("--buffer heap --kernel plain --order-d2 file --d1-partition 11 "
                         "--d2-partition 12 a.bin b.bin"),
                   KCP_OK);
  assert_int_equal(request.buffer, KCP_CHOOSE_HEAP);
  assert_int_equal(request.kernel, KCP_KERNEL_PLAIN);
  assert_int_equal(request.order_d2, KCP_ORDER_FILE);
  assert_int_equal(request.d1_partition, 11);
  assert_int_equal(request.d2_partition, 12);
  assert_int_equal(
      parse("--subpartitions 13 --block-threads 14 --streams 15 --points-per-thread 16 "
            "--columns id,x,y a.csv b.csv"),
      KCP_OK);
  assert_int_equal(request.subpartitions, 13);
  assert_int_equal(request.block_threads, 14);
  assert_int_equal(request.streams, 15);
  assert_int_equal(request.points_per_thread, 16);
  assert_string_equal(request.columns, "id,x,y");
  assert_int_equal(
      parse("--out o.json --json r.json --runs 5 --warmup 2 --verify --quiet --self a.bin"),
      KCP_OK);
  assert_string_equal(request.out_path, "o.json");
  assert_string_equal(request.json_path, "r.json");
  assert_int_equal(request.runs, 5);
  assert_int_equal(request.warmup, 2);
  assert_true(request.verify && request.quiet && request.self);
  assert_int_equal(request.input_count, 1);
}

static void options_of_gen_reach_their_fields(void **state) {
  (void)state;
  assert_int_equal(parse("gen diagonal 3M o.bin --seed 18446744073709551615 --dims 3 --buffer 0.25 "
                         "--percentage 0.75"),
                   KCP_OK);
  assert_int_equal(request.command, KCP_COMMAND_GEN);
  assert_int_equal(request.generate.distribution, KCP_DIAGONAL);
  assert_int_equal(request.generate.count, 3000000);
  assert_true(request.generate.seed == UINT64_MAX);
  assert_int_equal(request.generate.dimensions, 3);
  assert_true(request.generate.diagonal_buffer == 0.25);
  assert_true(request.generate.diagonal_percentage == 0.75);
  assert_string_equal(request.out_path, "o.bin");
  assert_int_equal(request.buffer, KCP_CHOOSE_BUFFER);
}

static void values_stand_behind_a_blank_or_an_equals_sign(void **state) {
  (void)state;
  assert_int_equal(parse("--k=5 a.bin b.bin"), KCP_OK);
  assert_int_equal(request.k, 5);
  assert_int_equal(parse("a.bin b.bin --k 6 --k 7"), KCP_OK);
  assert_int_equal(request.k, 7);
  assert_int_equal(parse("--k 18446744073709551615 a.bin b.bin"), KCP_OK);
  assert_true(request.k == UINT64_MAX);
}

static void two_dashes_end_the_options(void **state) {
  (void)state;
  assert_int_equal(parse("--k 5 -- --self -x"), KCP_OK);
  assert_string_equal(request.inputs[0], "--self");
  assert_string_equal(request.inputs[1], "-x");
  assert_false(request.self);
  assert_int_equal(parse("-- list b.bin"), KCP_OK);
  assert_int_equal(request.command, KCP_COMMAND_QUERY);
  assert_string_equal(request.inputs[0], "list");
}

static void the_first_word_may_be_a_command(void **state) {
  (void)state;
  assert_int_equal(parse("list"), KCP_OK);
  assert_int_equal(request.command, KCP_COMMAND_LIST);
  assert_int_equal(parse("--quiet convert a.bin b.csv"), KCP_OK);
  assert_int_equal(request.command, KCP_COMMAND_CONVERT);
  assert_string_equal(request.inputs[0], "a.bin");
  assert_string_equal(request.out_path, "b.csv");
  assert_int_equal(parse("--columns list a.csv b.csv"), KCP_OK);
  assert_int_equal(request.command, KCP_COMMAND_QUERY);
  assert_int_equal(parse("./list b.bin"), KCP_OK);
  assert_int_equal(request.command, KCP_COMMAND_QUERY);
}

static void help_and_version_are_options_too(void **state) {
  (void)state;
  assert_int_equal(parse("--k x --version"), KCP_OK);
  assert_int_equal(request.command, KCP_COMMAND_VERSION);
  assert_int_equal(parse("gen --help"), KCP_OK);
  assert_int_equal(request.command, KCP_COMMAND_HELP);
  assert_string_equal(request.inputs[0], "gen");
  assert_int_equal(parse("help dspp+"), KCP_OK);
  assert_string_equal(request.inputs[0], "dspp+");
  assert_int_equal(parse(""), KCP_OK);
  assert_int_equal(request.command, KCP_COMMAND_HELP);
}

static void wrong_usage_is_refused_in_one_line(void **state) {
  (void)state;
  static const char *const lines[] = {
      "--k 0 a.bin b.bin",
      "--k -1 a.bin b.bin",
      "--k 0.5 a.bin b.bin",
      "--k +5 a.bin b.bin",
      "--k 99999999999999999999 a.bin b.bin",
      "--k 0x10 a.bin b.bin",
      "--memory 16777216T a.bin b.bin",
      "--memory K a.bin b.bin",
      "--memory 5KK a.bin b.bin",
      "--max-distance inf a.bin b.bin",
      "--max-distance 0x a.bin b.bin",
      "--metric lp: a.bin b.bin",
      "--metric lp:18446744073709551619 a.bin b.bin",
      "--device cuda: a.bin b.bin",
      "--device cuda:99999999999999999999 a.bin b.bin",
      "--buffer= a.bin b.bin",
      "--buffer list|heap a.bin b.bin",
      "--drop-invalid a.bin b.bin",
      "--self a.bin b.bin",
      "a.bin",
      "--verify",
      "gen uniform 18446744073709551615G o.bin",
      "gen uniform 1e6 o.bin",
      "gen uniform -5 o.bin",
      "--json a.bin a.bin b.bin",
  };
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; ++i) assert_refused(lines[i]);
}

static void long_and_odd_words_are_refused(void **state) {
  (void)state;
  char line[300] = "--";
  memset(line + 2, 'q', 250);
  strcpy(line + 252, " a.bin b.bin");
  assert_refused(line);
  assert_refused("--=5 a.bin b.bin");
  assert_refused("--- a.bin b.bin");
  assert_refused("-q a.bin b.bin");
  memset(line, 'q', 200);
  line[200] = '\0';
  assert_refused(line);
}

static void each_row_of_the_table_is_complete(void **state) {
  (void)state;
  for (const struct kcp_flag *flag = kcp_flags; flag->name != NULL; ++flag) {
    assert_non_null(flag->help);
    assert_non_null(flag->standard);
    assert_int_not_equal(flag->commands, 0);
    assert_int_equal(flag->value == NULL, flag->type == KCP_FLAG_SWITCH);
    for (const struct kcp_flag *other = kcp_flags; other != flag; ++other)
      assert_true(strcmp(other->name, flag->name) != 0 || (other->commands & flag->commands) == 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(defaults_are_those_of_the_design),
      cmocka_unit_test(every_option_reaches_its_field),
      cmocka_unit_test(options_of_gen_reach_their_fields),
      cmocka_unit_test(values_stand_behind_a_blank_or_an_equals_sign),
      cmocka_unit_test(two_dashes_end_the_options),
      cmocka_unit_test(the_first_word_may_be_a_command),
      cmocka_unit_test(help_and_version_are_options_too),
      cmocka_unit_test(wrong_usage_is_refused_in_one_line),
      cmocka_unit_test(long_and_odd_words_are_refused),
      cmocka_unit_test(each_row_of_the_table_is_complete),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

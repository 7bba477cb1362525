#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kcp/text.h"

static void counts_are_grouped(void **state) {
  (void)state;
  assert_string_equal(kcp_text_grouped(0).text, "0");
  assert_string_equal(kcp_text_grouped(999).text, "999");
  assert_string_equal(kcp_text_grouped(28104).text, "28,104");
  assert_string_equal(kcp_text_grouped(UINT64_MAX).text, "18,446,744,073,709,551,615");
}

static void large_numbers_are_scaled(void **state) {
  (void)state;
  assert_string_equal(kcp_text_amount(412).text, "412");
  assert_string_equal(kcp_text_amount(4100000).text, "4.10 million");
  assert_string_equal(kcp_text_amount(4.06e9).text, "4.06 billion");
  assert_string_equal(kcp_text_amount(999999).text, "1.00 million");
  assert_string_equal(kcp_text_amount(3.4e38).text, "3.4e+23 quadrillion");
  assert_string_equal(kcp_text_short(70200000).text, "70.2M");
  assert_string_equal(kcp_text_short(12).text, "12");
  assert_string_equal(kcp_text_bytes(0).text, "0 bytes");
  assert_string_equal(kcp_text_bytes(640000).text, "640 kB");
  assert_string_equal(kcp_text_bytes(4.6e6).text, "4.60 MB");
}

static void durations_have_fitting_units(void **state) {
  (void)state;
  assert_string_equal(kcp_text_duration(0).text, "0 ms");
  assert_string_equal(kcp_text_duration(0.000012).text, "0.012 ms");
  assert_string_equal(kcp_text_duration(0.0021).text, "2.1 ms");
  assert_string_equal(kcp_text_duration(0.028).text, "28 ms");
  assert_string_equal(kcp_text_duration(0.9996).text, "1.00 s");
  assert_string_equal(kcp_text_duration(12.34).text, "12.3 s");
  assert_string_equal(kcp_text_duration(100).text, "1:40");
  assert_string_equal(kcp_text_clock(18).text, "0:18");
  assert_string_equal(kcp_text_clock(3723).text, "1:02:03");
}

static void edit_distance_counts_single_slips(void **state) {
  (void)state;
  assert_int_equal(kcp_edit_distance("list", "list"), 0);
  assert_int_equal(kcp_edit_distance("lsit", "list"), 1);
  assert_int_equal(kcp_edit_distance("lis", "list"), 1);
  assert_int_equal(kcp_edit_distance("dsp-pea", "dspp+pea"), 2);
  assert_int_equal(kcp_edit_distance("", "abc"), 3);
}

static void suggestions_are_near_or_none(void **state) {
  (void)state;
  struct kcp_suggestion near = kcp_suggestion_for("convrt");
  kcp_suggestion_offer(&near, "list");
  kcp_suggestion_offer(&near, "convert");
  assert_string_equal(near.word, "convert");
  near = kcp_suggestion_for("frobnicate");
  kcp_suggestion_offer(&near, "list");
  kcp_suggestion_offer(&near, "convert");
  assert_null(near.word);
  near = kcp_suggestion_for("x");
  kcp_suggestion_offer(&near, "k");
  assert_null(near.word);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(counts_are_grouped),
      cmocka_unit_test(large_numbers_are_scaled),
      cmocka_unit_test(durations_have_fitting_units),
      cmocka_unit_test(edit_distance_counts_single_slips),
      cmocka_unit_test(suggestions_are_near_or_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

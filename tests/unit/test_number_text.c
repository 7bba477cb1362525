/* Numbers as text against printf. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kcp/number_text.h"
#include "kcp/random.h"

static void check(double value) {
  char expected[64], text[KCP_NUMBER_TEXT_BYTES + 1];
  snprintf(expected, sizeof expected, "%.17g", value);
  *kcp_write_binary64(value, text) = '\0';
  if (strcmp(text, expected) != 0) fail_msg("%a is %s, not %s", value, expected, text);
}

static double from_bits(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void test_any_value(void **state) {
  (void)state;
  for (uint64_t i = 0; i < 300000; ++i) {
    const struct kcp_random_pair pair = kcp_random_pair(1, 2, i, 0);
    const double value = fabs(from_bits(pair.first));
    if (isfinite(value)) check(value);
    /* Near 1, where distances are. */
    check(ldexp(1 + ldexp((double)(pair.second >> 12), -52), (int)(i % 90) - 40));
  }
}

static void test_whole_and_short_values(void **state) {
  (void)state;
  for (uint64_t i = 0; i < 200000; ++i) {
    check((double)i);
    check((double)i / 1000);
    check((double)i / 1024);
    check(sqrt((double)i));
  }
}

/* One unit in the last place around powers of ten, ties, and ends of the range. */
static void test_borders(void **state) {
  (void)state;
  for (int power = -323; power <= 308; ++power) {
    char text[16];
    double value;
    snprintf(text, sizeof text, "1e%d", power);
    sscanf(text, "%lf", &value);
    check(value);
    check(nextafter(value, 0));
    check(nextafter(value, INFINITY));
  }
  for (int e = -60; e < 60; ++e) {
    check(ldexp(1, e));
    check(ldexp(3, e));
    check(ldexp(1, 53) + ldexp(1, e));
  }
  check(5e-324);
  check(1.7976931348623157e308);
  check(0.1);
  check(9.9999999999999995e-5);
  check(0.00012345678901234567);
}

static void test_whole_numbers(void **state) {
  (void)state;
  for (int shift = 0; shift < 64; ++shift)
    for (int step = -1; step <= 1; ++step) {
      const uint64_t value = (UINT64_C(1) << shift) + (uint64_t)(int64_t)step;
      char expected[32], text[KCP_NUMBER_TEXT_BYTES + 1];
      snprintf(expected, sizeof expected, "%" PRIu64, value);
      *kcp_write_uint64(value, text) = '\0';
      assert_string_equal(text, expected);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_any_value),
      cmocka_unit_test(test_whole_and_short_values),
      cmocka_unit_test(test_borders),
      cmocka_unit_test(test_whole_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

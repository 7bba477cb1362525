#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/decimal.h"

static locale_t c_locale;

static int make_locale(void **state) {
  (void)state;
  c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  return c_locale == (locale_t)0 ? -1 : 0;
}

static int free_locale(void **state) {
  (void)state;
  freelocale(c_locale);
  return 0;
}

/* Parses all of `text`, which must go through to its end, behind which other digits lie. */
static double parse(const char *text) {
  char buffer[2048];
  memset(buffer, '7', sizeof buffer);
  size_t length = strlen(text);
  memcpy(buffer, text, length);
  buffer[length] = ',';
  const char *cursor = buffer;
  double value = -1.0;
  if (!kcp_decimal_to_binary64(&cursor, c_locale, &value)) fail_msg("'%s' is refused", text);
  if (cursor != buffer + length) fail_msg("'%s' is read up to %td", text, cursor - buffer);
  return value;
}

static void assert_same_bits(double a, double b, const char *text) {
  if (memcmp(&a, &b, sizeof a) != 0) fail_msg("'%s': %.17g instead of %.17g", text, a, b);
}

static void numbers_are_those_of_strtod(void **state) {
  (void)state;
  const char *texts[] = {
      "0",
      "-0",
      "+0",
      "0.0",
      "-0.0e5",
      "1",
      "-1",
      "+1",
      "1.",
      ".5",
      "-.5",
      "1e5",
      "1E+5",
      "1e-5",
      "123456789",
      "12345678",
      "1234567.12345678",
      "0.1",
      "0.30000000000000004",
      "9007199254740992",
      "9007199254740993",
      "9007199254740993.0",
      "9007199254740995",
      "18446744073709551615",
      "18446744073709551616",
      "99999999999999999999999",
      "0.000000000000000000000000000000000000012345678901234567890",
      "1e22",
      "1e23",
      "8.5e23",
      "1.7976931348623157e308",
      "1.7976931348623159e308",
      "1e400",
      "-1e400",
      "5e-324",
      "2e-324",
      "2.2250738585072011e-308",
      "2.2250738585072014e-308",
      "1e-400",
      "1e99999",
      "1e-99999",
      "0e99999",
      "000000000000000000000000000012.5",
      "0.00000000000000000000000000001",
      "1.00000000000000011102230246251565", /* half between 1 and its successor, and around */
      "1.00000000000000011102230246251566",
      ("1.0000000000000001110223024625156540423631668090820312"
       "5"),
      "7.2057594037927933e16",
      "1e00005",
      "6929495644600919.5",
      "3.5844466002796428e298",
      "0.50000000000000005551115123125783",
      "5000000.001",
      "179.90000000000001"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i)
    assert_same_bits(parse(texts[i]), strtod_l(texts[i], NULL, c_locale), texts[i]);
}

static uint64_t next_random(uint64_t *random) {
  *random ^= *random << 13;
  *random ^= *random >> 7;
  *random ^= *random << 17;
  return *random;
}

static void random_numbers_are_those_of_strtod(void **state) {
  (void)state;
  const char *formats[] = {"%.17g", "%.16g", "%.15g", "%.19g", "%.6f", "%.20f", "%.12e", "%.25g"};
  uint64_t random = 88172645463325252u;
  for (int i = 0; i < 400000; ++i) {
    char text[400];
    double value;
    uint64_t bits = next_random(&random);
    if (i % 2 == 0) {
      memcpy(&value, &bits, sizeof value);
      if (!isfinite(value) || fabs(value) > 1e250) continue;
    } else {
      value = ((double)bits - 9e18) / pow(10.0, (double)(next_random(&random) % 30));
    }
    snprintf(text, sizeof text, formats[next_random(&random) % 8], value);
    assert_same_bits(parse(text), strtod_l(text, NULL, c_locale), text);
  }
}

/* Decimal numbers of 18 and 19 digits next to the middle between two neighbours: the hardest. */
static void numbers_near_a_tie_are_those_of_strtod(void **state) {
  (void)state;
  uint64_t random = 2463534242u;
  for (int i = 0; i < 300000; ++i) {
    char text[64];
    uint64_t odd =
        (next_random(&random) >> 10) | (UINT64_C(1) << 53) | 1; /* 54 bits, last one set */
    int shift = (int)(next_random(&random) % 10);
    uint64_t near = (odd << shift) + next_random(&random) % 3 - 1;
    snprintf(text, sizeof text, "%lue%d", (unsigned long)near,
             (int)(next_random(&random) % 56) - 28);
    assert_same_bits(parse(text), strtod_l(text, NULL, c_locale), text);
  }
}

static void words_are_not_finite(void **state) {
  (void)state;
  assert_true(isnan(parse("nan")));
  assert_true(isnan(parse("-NaN")));
  assert_true(parse("inf") == INFINITY);
  assert_true(parse("+Inf") == INFINITY);
  assert_true(parse("-INFINITY") == -INFINITY);
}

static void other_text_is_no_number(void **state) {
  (void)state;
  const char *texts[] = {"",    "-", "+",  ".",  "-.",  "e5", ".e5",
                         "abc", "n", "na", "in", "--1", "+-1"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i) {
    char buffer[32] = {0};
    strcpy(buffer, texts[i]);
    const char *cursor = buffer;
    double value;
    assert_false(kcp_decimal_to_binary64(&cursor, c_locale, &value));
    assert_ptr_equal(cursor, buffer);
  }
}

static void a_number_ends_where_its_grammar_does(void **state) {
  (void)state;
  const struct {
    const char *text;
    double value;
    size_t length;
  } cases[] = {{"1e", 1, 1},       {"1e+", 1, 1},  {"0x10", 0, 1}, {"1.5.5", 1.5, 3},
               {"1,5", 1, 1},      {"1d5", 1, 1},  {"1 2", 1, 1},  {"nanny", NAN, 3},
               {"2e3e4", 2000, 3}, {"12-5", 12, 2}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    char buffer[32] = {0};
    strcpy(buffer, cases[i].text);
    const char *cursor = buffer;
    double value;
    assert_true(kcp_decimal_to_binary64(&cursor, c_locale, &value));
    assert_int_equal(cursor - buffer, cases[i].length);
    assert_true(value == cases[i].value || (isnan(value) && isnan(cases[i].value)));
  }
}

static void ids_use_all_64_bits(void **state) {
  (void)state;
  const char *cursor = "18011072989319135231,";
  uint64_t value;
  assert_true(kcp_decimal_to_uint64(&cursor, &value));
  assert_true(value == UINT64_C(18011072989319135231));
  assert_int_equal(*cursor, ',');
  cursor = "18446744073709551615";
  assert_true(kcp_decimal_to_uint64(&cursor, &value));
  assert_true(value == UINT64_MAX);
  cursor = "18446744073709551616";
  assert_false(kcp_decimal_to_uint64(&cursor, &value));
  cursor = "-1";
  assert_false(kcp_decimal_to_uint64(&cursor, &value));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_are_those_of_strtod),
      cmocka_unit_test(random_numbers_are_those_of_strtod),
      cmocka_unit_test(numbers_near_a_tie_are_those_of_strtod),
      cmocka_unit_test(words_are_not_finite),
      cmocka_unit_test(other_text_is_no_number),
      cmocka_unit_test(a_number_ends_where_its_grammar_does),
      cmocka_unit_test(ids_use_all_64_bits),
  };
  return cmocka_run_group_tests(tests, make_locale, free_locale);
}

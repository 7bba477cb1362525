#include "formats/decimal.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST_DIGITS = 19,           /* of a mantissa that always fits 64 bits */
  LARGEST_EXACT_POWER = 22,   /* 10^22 is a binary64 */
  LARGEST_EXTENDED_POWER = 27 /* 10^27 is an 80-bit extended number */
};

static const double exact_powers[LARGEST_EXACT_POWER + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static bool is_digit(char c) {
  return (unsigned char)(c - '0') < 10;
}

/* Whether the 8 bytes, first one lowest, are all digits. */
static bool are_8_digits(uint64_t bytes) {
  return ((bytes & 0xF0F0F0F0F0F0F0F0) |
          (((bytes + 0x0606060606060606) & 0xF0F0F0F0F0F0F0F0) >> 4)) == 0x3333333333333333;
}

/* Joins neighbours three times: digits to pairs, pairs to fours, fours to the number. */
static uint64_t value_of_8_digits(uint64_t bytes) {
  bytes -= 0x3030303030303030;
  bytes = bytes * 10 + (bytes >> 8);
  uint64_t low = (bytes & 0x000000FF000000FF) * (100 + (UINT64_C(1000000) << 32));
  uint64_t high = ((bytes >> 16) & 0x000000FF000000FF) * (1 + (UINT64_C(10000) << 32));
  return (low + high) >> 32;
}

/* Appends the digits at `text` to the mantissa, which wraps around beyond 19 of them. */
static const char *read_digits(const char *text, uint64_t *mantissa) {
  uint64_t bytes;
  uint64_t sum = *mantissa;
  for (memcpy(&bytes, text, sizeof bytes); are_8_digits(bytes);
       memcpy(&bytes, text, sizeof bytes)) {
    sum = sum * 100000000 + value_of_8_digits(bytes);
    text += 8;
  }
  while (is_digit(*text)) sum = sum * 10 + (uint64_t)(*text++ - '0');
  *mantissa = sum;
  return text;
}

#if LDBL_MANT_DIG == 64
static const long double extended_powers[LARGEST_EXTENDED_POWER + 1] = {
    1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
    1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L,
    1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};

/* Both operands are exact, so the 64-bit result is off by at most half its last place. Rounding it
 * again to 53 bits is right unless the 11 bits that fall away are just at the half. */
static bool extended_product(uint64_t mantissa, int exponent, double *value) {
  if (exponent < -LARGEST_EXTENDED_POWER || exponent > LARGEST_EXTENDED_POWER) return false;
  long double result = exponent < 0 ? (long double)mantissa / extended_powers[-exponent]
                                    : (long double)mantissa * extended_powers[exponent];
  uint64_t significand;
  memcpy(&significand, &result, sizeof significand);
  *value = (double)result;
  return (significand & 0x7FF) != 0x400;
}
#else
static bool extended_product(uint64_t mantissa, int exponent, double *value) {
  (void)mantissa, (void)exponent, (void)value;
  return false;
}
#endif

static bool scaled_mantissa(uint64_t mantissa, int exponent, double *value) {
  if (mantissa < UINT64_C(1) << 53 && exponent >= -LARGEST_EXACT_POWER &&
      exponent <= LARGEST_EXACT_POWER) {
    *value = exponent < 0 ? (double)mantissa / exact_powers[-exponent]
                          : (double)mantissa * exact_powers[exponent];
    return true;
  }
  return extended_product(mantissa, exponent, value);
}

static bool matches_word(const char *text, const char *word) {
  for (; *word != '\0'; ++text, ++word)
    if ((*text | 0x20) != *word) return false;
  return true;
}

static bool read_word(const char **cursor, bool negative, double *value) {
  const char *text = *cursor;
  if (matches_word(text, "nan")) {
    *value = NAN;
    *cursor = text + strlen("nan");
    return true;
  }
  if (!matches_word(text, "inf")) return false;
  *value = negative ? -INFINITY : INFINITY;
  *cursor = text + (matches_word(text, "infinity") ? strlen("infinity") : strlen("inf"));
  return true;
}

/* Reads an exponent that may follow a mantissa; leaves the cursor alone when it is none. False when
 * it has more digits than the fast path cares for. */
static bool read_exponent(const char **cursor, int *exponent) {
  const char *text = *cursor + 1;
  bool negative = *text == '-';
  if (*text == '-' || *text == '+') ++text;
  const char *digits = text;
  int magnitude = 0;
  for (; is_digit(*text); ++text)
    if (text - digits < 4) magnitude = magnitude * 10 + (*text - '0');
  if (text == digits) return true;
  *cursor = text;
  *exponent += negative ? -magnitude : magnitude;
  return text - digits <= 4;
}

bool kcp_decimal_to_binary64(const char **cursor, locale_t c_locale, double *value) {
  const char *start = *cursor;
  const char *text = start;
  bool negative = *text == '-';
  if (*text == '-' || *text == '+') ++text;
  const char *digits = text;
  uint64_t mantissa = 0;
  int exponent = 0;
  text = read_digits(text, &mantissa);
  long digit_count = text - digits;
  long fraction_count = 0;
  if (*text == '.') {
    const char *fraction = ++text;
    text = read_digits(text, &mantissa);
    fraction_count = text - fraction;
    digit_count += fraction_count;
  }
  if (digit_count == 0) {
    *cursor = digits;
    bool is_word = read_word(cursor, negative, value);
    if (!is_word) *cursor = start;
    return is_word;
  }
  bool fast = true;
  if ((*text | 0x20) == 'e') fast = read_exponent(&text, &exponent);
  *cursor = text;
  if (digit_count > MOST_DIGITS)
    for (const char *zero = digits; *zero == '0' || *zero == '.'; ++zero)
      digit_count -= *zero == '0';
  if (fast && digit_count <= MOST_DIGITS &&
      scaled_mantissa(mantissa, exponent - (int)fraction_count, value)) {
    if (negative) *value = -*value;
    return true;
  }
  *value = strtod_l(start, NULL, c_locale);
  return true;
}

bool kcp_decimal_to_uint64(const char **cursor, uint64_t *value) {
  const char *text = *cursor;
  uint64_t sum = 0;
  for (; is_digit(*text); ++text)
    if (__builtin_mul_overflow(sum, 10, &sum) ||
        __builtin_add_overflow(sum, (uint64_t)(*text - '0'), &sum))
      return false;
  if (text == *cursor) return false;
  *cursor = text;
  *value = sum;
  return true;
}

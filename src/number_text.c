#include "kcp/number_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define DIGITS 17
#define LARGEST_POWER 27

__extension__ typedef unsigned __int128 wide;

/* A decimal number of DIGITS digits: digits * 10^(exponent - DIGITS + 1). */
struct decimal {
  uint64_t digits;
  int exponent;
};

static const uint64_t least = UINT64_C(10000000000000000); /* of 17 digits */

/* Powers of 5 up to LARGEST_POWER, below 2^63. */
static const uint64_t fives[LARGEST_POWER + 1] = {UINT64_C(1),
                                                  UINT64_C(5),
                                                  UINT64_C(25),
                                                  UINT64_C(125),
                                                  UINT64_C(625),
                                                  UINT64_C(3125),
                                                  UINT64_C(15625),
                                                  UINT64_C(78125),
                                                  UINT64_C(390625),
                                                  UINT64_C(1953125),
                                                  UINT64_C(9765625),
                                                  UINT64_C(48828125),
                                                  UINT64_C(244140625),
                                                  UINT64_C(1220703125),
                                                  UINT64_C(6103515625),
                                                  UINT64_C(30517578125),
                                                  UINT64_C(152587890625),
                                                  UINT64_C(762939453125),
                                                  UINT64_C(3814697265625),
                                                  UINT64_C(19073486328125),
                                                  UINT64_C(95367431640625),
                                                  UINT64_C(476837158203125),
                                                  UINT64_C(2384185791015625),
                                                  UINT64_C(11920928955078125),
                                                  UINT64_C(59604644775390625),
                                                  UINT64_C(298023223876953125),
                                                  UINT64_C(1490116119384765625),
                                                  UINT64_C(7450580596923828125)};

char *kcp_write_uint64(uint64_t value, char *to) {
  char reversed[20];
  int count = 0;
  do {
    reversed[count++] = (char)('0' + value % 10);
    value /= 10;
  } while (value > 0);
  while (count > 0) *to++ = reversed[--count];
  return to;
}

/* value * 10^power to the nearest whole number, ties to even as printf has it: value is m * 2^e
 * with m < 2^53, and m * 5^power < 2^116 is exact; what is shifted out decides. False when nothing
 * is to be shifted out, or all is. */
static bool scale(double value, int power, uint64_t *rounded) {
  int exponent;
  const uint64_t m = (uint64_t)ldexp(frexp(value, &exponent), 53);
  const int shift = 53 - exponent - power;
  const wide product = (wide)m * fives[power];
  if (shift <= 0 || shift >= 127) return false;
  const wide rest = product & (((wide)1 << shift) - 1), half = (wide)1 << (shift - 1);
  *rounded = (uint64_t)(product >> shift);
  if (rest > half || (rest == half && (*rounded & 1) != 0)) ++*rounded;
  return true;
}

/* False where 128 bits do not serve. */
static bool round_to_digits(double value, struct decimal *decimal) {
  if (!(value >= 1e-10 && value < 1e15)) return false;
  int exponent;
  frexp(value, &exponent); /* value >= 2^(exponent - 1) */
  decimal->exponent = (int)floor((exponent - 1) * 0.30102999566398120); /* or one less */
  for (int attempt = 0; attempt < 2; ++attempt) {
    const int power = DIGITS - 1 - decimal->exponent;
    if (power < 0 || power > LARGEST_POWER || !scale(value, power, &decimal->digits)) return false;
    if (decimal->digits < least) {
      --decimal->exponent;
    } else if (decimal->digits >= 10 * least) {
      ++decimal->exponent; /* too low a guess, or 9.99...: then it is 1 and zeros */
    } else {
      return true;
    }
  }
  return false;
}

/* All DIGITS of them: the upper nine and the lower eight side by side, so that neither waits for
 * the other's divisions. */
static void write_digits(uint64_t number, char *digits) {
  uint32_t upper = (uint32_t)(number / 100000000), lower = (uint32_t)(number % 100000000);
  for (int i = 7; i >= 0; --i) {
    digits[i + 1] = (char)('0' + upper % 10);
    digits[i + 9] = (char)('0' + lower % 10);
    upper /= 10;
    lower /= 10;
  }
  digits[0] = (char)('0' + upper);
}

char *kcp_write_binary64(double value, char *to) {
  struct decimal decimal;
  char digits[DIGITS];
  int count = DIGITS;
  if (value == 0 && !signbit(value)) {
    *to++ = '0';
    return to;
  }
  if (!round_to_digits(value, &decimal) || decimal.exponent < -4)
    return to + snprintf(to, KCP_NUMBER_TEXT_BYTES, "%.17g", value);
  write_digits(decimal.digits, digits);
  while (count > 1 && digits[count - 1] == '0') --count;
  const int whole = decimal.exponent + 1; /* digits before the point, when that is positive */
  if (whole <= 0) {
    *to++ = '0';
    *to++ = '.';
    for (int i = whole; i < 0; ++i) *to++ = '0';
    memcpy(to, digits, (size_t)count);
    return to + count;
  }
  for (int i = 0; i < whole; ++i) *to++ = i < count ? digits[i] : '0';
  if (count <= whole) return to;
  *to++ = '.';
  memcpy(to, digits + whole, (size_t)(count - whole));
  return to + (count - whole);
}

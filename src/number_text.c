#include "kcp/number_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define DIGITS 17
#define LARGEST_POWER 27 /* 5^27 < 2^63 */

__extension__ typedef unsigned __int128 wide;

/* A decimal number of DIGITS digits: digits * 10^(exponent - DIGITS + 1). */
struct decimal {
  uint64_t digits;
  int exponent;
};

static const uint64_t least = UINT64_C(10000000000000000); /* of 17 digits */

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
  uint64_t fives = 1;
  const uint64_t m = (uint64_t)ldexp(frexp(value, &exponent), 53);
  const int shift = 53 - exponent - power;
  for (int i = 0; i < power; ++i) fives *= 5;
  const wide product = (wide)m * fives;
  if (shift <= 0 || shift >= 127) return false;
  const wide rest = product & (((wide)1 << shift) - 1), half = (wide)1 << (shift - 1);
  *rounded = (uint64_t)(product >> shift);
  if (rest > half || (rest == half && (*rounded & 1) != 0)) ++*rounded;
  return true;
}

/* False where 128 bits do not serve. */
static bool round_to_digits(double value, struct decimal *decimal) {
  if (!(value >= 1e-10 && value < 1e15)) return false;
  decimal->exponent = (int)floor(log10(value)); /* or one off */
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
  for (int i = DIGITS - 1; i >= 0; --i) {
    digits[i] = (char)('0' + decimal.digits % 10);
    decimal.digits /= 10;
  }
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

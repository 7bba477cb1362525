/* Numbers in text: exact, whatever the locale, and fast. */
#ifndef KCP_FORMATS_DECIMAL_H
#define KCP_FORMATS_DECIMAL_H

#include <locale.h>
#include <stdbool.h>
#include <stdint.h>

/* Bytes that must be readable after the text, none of which matters. */
enum { KCP_DECIMAL_PADDING = 8 };

/* Reads [+-]digits[.digits][e[+-]digits] or [+-]nan|inf|infinity at `*cursor` as the nearest
 * binary64, ties to even, and moves the cursor behind it. Too large a number becomes infinite.
 * The text must go on with something that is no part of a number, such as a delimiter or NUL.
 * `c_locale` is newlocale(LC_ALL_MASK, "C", 0). False when there is no number. */
bool kcp_decimal_to_binary64(const char **cursor, locale_t c_locale, double *value);

/* Reads decimal digits as a number up to 2^64 - 1. False when there are none or too many. */
bool kcp_decimal_to_uint64(const char **cursor, uint64_t *value);

#endif

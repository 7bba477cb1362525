#include "kcp/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LARGEST_PLAIN 1e6 /* numbers beyond the largest unit are written with an exponent */

enum { LONGEST_WORD = 64 };

struct kcp_text kcp_text_grouped(uint64_t number) {
  struct kcp_text result;
  char digits[24];
  int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
  char *target = result.text;
  for (int i = 0; i < length; ++i) {
    *target++ = digits[i];
    int left = length - 1 - i;
    if (left > 0 && left % 3 == 0) *target++ = ',';
  }
  *target = '\0';
  return result;
}

/* Three significant digits, but no fewer than the whole part has. */
static int decimals_of(double scaled) {
  return scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0;
}

static struct kcp_text scaled_text(double number, double base, const char *const *units,
                                   int unit_count) {
  struct kcp_text result;
  int unit = 0;
  while (unit + 1 < unit_count && number >= 0.9995 * base) {
    number /= base;
    ++unit;
  }
  int decimals = unit == 0 && number == floor(number) ? 0 : decimals_of(number);
  if (number < LARGEST_PLAIN)
    snprintf(result.text, sizeof result.text, "%.*f%s", decimals, number, units[unit]);
  else
    snprintf(result.text, sizeof result.text, "%.3g%s", number, units[unit]);
  return result;
}

struct kcp_text kcp_text_amount(double number) {
  static const char *const units[] = {"", " million", " billion", " trillion", " quadrillion"};
  if (number < 999500) return kcp_text_grouped((uint64_t)number);
  return scaled_text(number / 1000, 1000, units, sizeof units / sizeof units[0]);
}

struct kcp_text kcp_text_short(double number) {
  static const char *const units[] = {"", "K", "M", "G", "T", "P"};
  return scaled_text(number, 1000, units, sizeof units / sizeof units[0]);
}

struct kcp_text kcp_text_bytes(double bytes) {
  static const char *const units[] = {" bytes", " kB", " MB", " GB", " TB", " PB"};
  return scaled_text(bytes, 1000, units, sizeof units / sizeof units[0]);
}

struct kcp_text kcp_text_duration(double seconds) {
  struct kcp_text result;
  if (seconds < 1e-6) {
    snprintf(result.text, sizeof result.text, "0 ms");
  } else if (seconds < 0.9995) {
    double milliseconds = seconds * 1e3;
    int decimals = milliseconds < 0.0995 ? 3 : milliseconds < 9.95 ? 1 : 0;
    snprintf(result.text, sizeof result.text, "%.*f ms", decimals, milliseconds);
  } else if (seconds < 99.95) {
    snprintf(result.text, sizeof result.text, "%.*f s", decimals_of(seconds), seconds);
  } else {
    return kcp_text_clock(seconds);
  }
  return result;
}

struct kcp_text kcp_text_clock(double seconds) {
  struct kcp_text result;
  unsigned long long whole = seconds > 0 ? (unsigned long long)(seconds + 0.5) : 0;
  unsigned long long hours = whole / 3600, minutes = whole / 60 % 60, rest = whole % 60;
  if (hours > 0)
    snprintf(result.text, sizeof result.text, "%llu:%02llu:%02llu", hours, minutes, rest);
  else
    snprintf(result.text, sizeof result.text, "%llu:%02llu", minutes, rest);
  return result;
}

static size_t minimum(size_t a, size_t b) {
  return a < b ? a : b;
}

size_t kcp_edit_distance(const char *a, const char *b) {
  size_t a_length = strlen(a), b_length = strlen(b);
  size_t rows[3][LONGEST_WORD + 1];
  if (a_length > LONGEST_WORD || b_length > LONGEST_WORD) return SIZE_MAX;
  size_t *before_last = rows[0], *last = rows[1], *current = rows[2];
  for (size_t j = 0; j <= b_length; ++j) last[j] = j;
  for (size_t i = 1; i <= a_length; ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b_length; ++j) {
      size_t change = last[j - 1] + (a[i - 1] != b[j - 1]);
      current[j] = minimum(change, minimum(last[j], current[j - 1]) + 1);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = minimum(current[j], before_last[j - 2] + 1);
    }
    size_t *oldest = before_last;
    before_last = last;
    last = current;
    current = oldest;
  }
  return last[b_length];
}

struct kcp_suggestion kcp_suggestion_for(const char *typed) {
  /* More than a third of the word wrong is another word. */
  struct kcp_suggestion suggestion = {typed, NULL, strlen(typed) / 3 + 2};
  return suggestion;
}

void kcp_suggestion_offer(struct kcp_suggestion *suggestion, const char *word) {
  size_t distance = kcp_edit_distance(suggestion->typed, word);
  if (distance >= suggestion->distance || distance >= strlen(word)) return;
  suggestion->word = word;
  suggestion->distance = distance;
}

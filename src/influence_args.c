#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/args.h"
#include "kcp/influence_options.h"

#define MOST_GRID_CELLS (UINT64_C(1) << 31)

/* Digits at `*text`, which is left behind them; 0 when there are none, or too many. */
static uint32_t read_count(const char **text) {
  char *end;
  if (**text < '0' || **text > '9') return 0;
  errno = 0;
  const unsigned long long number = strtoull(*text, &end, 10);
  *text = end;
  return errno == 0 && number <= UINT32_MAX ? (uint32_t)number : 0;
}

enum kcp_status kcp_parse_grid(const struct kcp_flag *flag, const char *text, void *field,
                               struct kcp_error *error) {
  const char *at = text;
  struct kcp_grid_size size = {0, 0};
  size.rows = read_count(&at);
  if (*at == 'x' || *at == 'X') {
    ++at;
    size.columns = read_count(&at);
  }
  if (*at != '\0' || size.rows == 0 || size.columns == 0)
    return kcp_fail(error, KCP_BAD_INPUT, "--%s takes rows x columns such as 400x400, not '%s'",
                    flag->name, text);
  if ((uint64_t)size.rows * size.columns > MOST_GRID_CELLS)
    return kcp_fail(error, KCP_BAD_INPUT, "--%s %s has more than 2^31 cells", flag->name, text);
  *(struct kcp_grid_size *)field = size;
  return KCP_OK;
}

/* Finite numbers separated by commas; returns how many, or -1 when the text is not that or holds
 * more than `capacity`. */
static int read_numbers(const char *text, double *numbers, int capacity) {
  for (int count = 0; count < capacity; ++count) {
    char *end;
    if (*text == '\0' || strchr("0123456789.+-", *text) == NULL) return -1;
    numbers[count] = strtod(text, &end);
    if (end == text || !isfinite(numbers[count])) return -1;
    if (*end == '\0') return count + 1;
    if (*end != ',') return -1;
    text = end + 1;
  }
  return -1;
}

enum kcp_status kcp_parse_domain(const struct kcp_flag *flag, const char *text, void *field,
                                 struct kcp_error *error) {
  double numbers[4];
  struct kcp_domain_option *option = field;
  if (read_numbers(text, numbers, 4) != 4)
    return kcp_fail(error, KCP_BAD_INPUT, "--%s takes x0,y0,x1,y1, not '%s'", flag->name, text);
  if (!(numbers[0] < numbers[2] && numbers[1] < numbers[3]))
    return kcp_fail(error, KCP_BAD_INPUT,
                    "--%s %s has no area: x0,y0 is the lower left corner, x1,y1 the upper right",
                    flag->name, text);
  option->given = true;
  option->domain = (struct kcp_domain){numbers[0], numbers[1], numbers[2], numbers[3]};
  return KCP_OK;
}

static int compare_reals(const void *a, const void *b) {
  const double left = *(const double *)a, right = *(const double *)b;
  return left < right ? -1 : left > right;
}

enum kcp_status kcp_parse_min_weights(const struct kcp_flag *flag, const char *text, void *field,
                                      struct kcp_error *error) {
  struct kcp_min_weights *weights = field;
  const int count = read_numbers(text, weights->values, KCP_MAX_MIN_WEIGHTS);
  if (count < 0)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "--%s takes a number, or up to %d separated by commas, not '%s'", flag->name,
                    KCP_MAX_MIN_WEIGHTS, text);
  for (int i = 0; i < count; ++i)
    if (!(weights->values[i] > 0))
      return kcp_fail(error, KCP_BAD_INPUT, "--%s %s: a minimum weight is more than 0", flag->name,
                      text);
  weights->count = (uint32_t)count;
  qsort(weights->values, weights->count, sizeof weights->values[0], compare_reals);
  return KCP_OK;
}

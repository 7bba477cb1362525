#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "kcp/statistics.h"

static void one_value_is_its_own_statistics(void **state) {
  (void)state;
  double value = 2.5, scratch[1];
  struct kcp_statistics result = kcp_statistics_of(&value, 1, 1, scratch);
  assert_true(result.median == 2.5 && result.minimum == 2.5 && result.maximum == 2.5);
  assert_true(result.mean == 2.5 && result.deviation == 0);
}

static void even_counts_take_the_middle_of_two(void **state) {
  (void)state;
  double values[] = {4, 1, 3, 2}, scratch[4];
  struct kcp_statistics result = kcp_statistics_of(values, 1, 4, scratch);
  assert_true(result.median == 2.5 && result.minimum == 1 && result.maximum == 4);
  assert_true(result.mean == 2.5);
  assert_true(fabs(result.deviation - sqrt(5.0 / 3.0)) < 1e-15);
  assert_true(values[0] == 4); /* the samples keep their order */
}

static void values_may_lie_apart(void **state) {
  (void)state;
  double values[] = {9, -1, 5, -1, 7, -1}, scratch[3];
  struct kcp_statistics result = kcp_statistics_of(values, 2, 3, scratch);
  assert_true(result.median == 7 && result.minimum == 5 && result.maximum == 9);
  assert_true(result.mean == 7 && result.deviation == 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_value_is_its_own_statistics),
      cmocka_unit_test(even_counts_take_the_middle_of_two),
      cmocka_unit_test(values_may_lie_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

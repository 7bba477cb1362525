/* Random numbers against the published known answers of Philox4x32-10. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kcp/random.h"

/* Random123 1.14.0, tests/kat_vectors, lines "philox4x32 10". */
static void test_known_answers(void **state) {
  (void)state;
  static const struct {
    struct kcp_random_words counter;
    uint64_t key;
    struct kcp_random_words answer;
  } vectors[] = {
      {{{0, 0, 0, 0}}, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}},
       UINT64_MAX,
       {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       UINT64_C(0x299f31d0a4093822),
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
  };
  for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; ++i) {
    const struct kcp_random_words words = kcp_philox4x32(vectors[i].counter, vectors[i].key);
    assert_memory_equal(words.word, vectors[i].answer.word, sizeof words.word);
  }
}

/* The arguments of a draw are the counter's words and the key, so the known answer holds for it. */
static void test_draw_is_the_known_block(void **state) {
  (void)state;
  const struct kcp_random_pair pair = kcp_random_pair(UINT64_C(0x299f31d0a4093822), 0x03707344,
                                                      UINT64_C(0x85a308d3243f6a88), 0x13198a2e);
  assert_int_equal(pair.first, UINT64_C(0x94fdccebd16cfe09));
  assert_int_equal(pair.second, UINT64_C(0x24126ea15001e420));
}

static void test_every_argument_counts(void **state) {
  (void)state;
  const uint64_t first = kcp_random_pair(1, 2, 3, 4).first;
  assert_int_not_equal(first, kcp_random_pair(2, 2, 3, 4).first);
  assert_int_not_equal(first, kcp_random_pair(1, 3, 3, 4).first);
  assert_int_not_equal(first, kcp_random_pair(1, 2, 4, 4).first);
  assert_int_not_equal(first, kcp_random_pair(1, 2, 3, 5).first);
  assert_int_not_equal(first, kcp_random_pair(1 + (UINT64_C(1) << 32), 2, 3, 4).first);
  assert_int_not_equal(first, kcp_random_pair(1, 2, 3 + (UINT64_C(1) << 32), 4).first);
}

static void test_unit_interval(void **state) {
  (void)state;
  assert_true(kcp_random_unit(0) == 0.0);
  assert_true(kcp_random_unit(UINT64_MAX) == 1.0 - 0x1p-53);
  assert_true(kcp_random_unit(UINT64_C(1) << 63) == 0.5);
  assert_true(kcp_random_unit(UINT64_C(1) << 11) == 0x1p-53);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known_answers),
      cmocka_unit_test(test_draw_is_the_known_block),
      cmocka_unit_test(test_every_argument_counts),
      cmocka_unit_test(test_unit_interval),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

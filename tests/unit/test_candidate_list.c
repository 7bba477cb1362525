/* The list and the heap buffer against a sorted array. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kcp/candidate_list.h"
#include "kcp/cells.h"

#define MAX_K 200
#define LISTS 3

static int compare(const void *a, const void *b) {
  const struct kcp_candidate *left = a, *right = b;
  if (left->rank != right->rank) return left->rank < right->rank ? -1 : 1;
  if (left->id1 != right->id1) return left->id1 < right->id1 ? -1 : 1;
  return left->id2 < right->id2 ? -1 : left->id2 > right->id2;
}

/* Offers `count` candidates to the middle one of three interleaved lists and checks what it keeps.
 */
static void check_list(enum kcp_buffer buffer, uint64_t k, uint64_t stride, uint32_t count,
                       unsigned rank_values, double rank_limit) {
  static double ranks[(MAX_K + 1) * LISTS];
  static uint64_t id1[(MAX_K + 1) * LISTS], id2[(MAX_K + 1) * LISTS];
  struct kcp_candidate offered[1000], kept[MAX_K];
  uint64_t offset = stride == 1 ? k + 1 : 1;
  struct kcp_candidate_list list = {ranks + offset, id1 + offset, id2 + offset, stride, k};
  for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; ++i) ranks[i] = -7;
  kcp_list_clear(&list);
  struct kcp_threshold threshold = kcp_list_threshold(buffer, &list, rank_limit);
  uint32_t within = 0;
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t draw = kcp_mix(i * 1000003 + count + 17 * k + rank_values);
    struct kcp_candidate candidate = {(double)(draw % rank_values), draw >> 60,
                                      UINT64_MAX - (draw >> 40) % 50};
    if (candidate.rank <= rank_limit) offered[within++] = candidate;
    if (kcp_threshold_accepts(&threshold, &candidate))
      kcp_list_insert(buffer, &list, candidate, &threshold);
    if (i % 37 == 0) threshold = kcp_list_threshold(buffer, &list, rank_limit); /* as on re-entry */
  }
  qsort(offered, within, sizeof offered[0], compare);
  uint64_t expected = within < k ? within : k;
  assert_int_equal(kcp_list_count(&list), expected);
  for (uint64_t i = 0; i < expected; ++i) kept[i] = kcp_list_get(&list, i + 1);
  qsort(kept, expected, sizeof kept[0], compare);
  for (uint64_t i = 0; i < expected; ++i) assert_int_equal(compare(&kept[i], &offered[i]), 0);
  for (uint64_t slot = expected + 1; slot <= k; ++slot)
    assert_true(isinf(ranks[offset + slot * stride]));
  if (stride > 1) assert_true(ranks[0] == -7 && ranks[2] == -7); /* the neighbours' slots */
}

static void test_against_sorted_array(void **state) {
  static const uint64_t ks[] = {1, 2, 3, 7, 8, 20, 140, 200};
  (void)state;
  for (int buffer = KCP_BUFFER_LIST; buffer <= KCP_BUFFER_HEAP; ++buffer)
    for (size_t i = 0; i < sizeof ks / sizeof ks[0]; ++i)
      for (uint64_t stride = 1; stride <= LISTS; stride += 2) {
        check_list((enum kcp_buffer)buffer, ks[i], stride, 1000, 1000000, 1e300); /* few ties */
        check_list((enum kcp_buffer)buffer, ks[i], stride, 1000, 3, 1e300);       /* many ties */
        check_list((enum kcp_buffer)buffer, ks[i], stride, 1000, 1, 1e300);       /* ties alone */
        check_list((enum kcp_buffer)buffer, ks[i], stride, 5, 100, 1e300);        /* not full */
        check_list((enum kcp_buffer)buffer, ks[i], stride, 0, 100, 1e300);
        check_list((enum kcp_buffer)buffer, ks[i], stride, 1000, 10,
                   4); /* up to the limit, with it */
      }
}

/* An infinite rank, which an overflow gives, is never taken: it marks unused slots. */
static void test_infinite_rank(void **state) {
  double ranks[3];
  uint64_t id1[3], id2[3];
  struct kcp_candidate_list list = {ranks, id1, id2, 1, 2};
  struct kcp_candidate far = {INFINITY, 1, 1};
  (void)state;
  kcp_list_clear(&list);
  struct kcp_threshold threshold =
      kcp_list_threshold(KCP_BUFFER_HEAP, &list, 1.7976931348623157e308);
  assert_false(kcp_threshold_accepts(&threshold, &far));
}

static void test_order(void **state) {
  struct kcp_candidate a = {1, 5, 9}, b = {1, 5, UINT64_MAX}, c = {1, 6, 0}, d = {2, 0, 0};
  (void)state;
  assert_true(kcp_candidate_before(&a, &b) && kcp_candidate_before(&b, &c));
  assert_true(kcp_candidate_before(&c, &d) && !kcp_candidate_before(&d, &a));
  assert_false(kcp_candidate_before(&a, &a));
  assert_true(kcp_self_pair_counts(1, 9, 2, 3) && !kcp_self_pair_counts(2, 3, 1, 9));
  assert_true(kcp_self_pair_counts(4, 1, 4, 2) && !kcp_self_pair_counts(4, 2, 4, 1));
  assert_false(kcp_self_pair_counts(4, 2, 4, 2)); /* a record with itself */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_sorted_array),
                                     cmocka_unit_test(test_infinite_rank),
                                     cmocka_unit_test(test_order)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

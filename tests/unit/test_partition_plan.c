/* The plan of a list-based search: sizes from k, data and memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../data/scratch_folder.h"
#include "kcp/args.h"
#include "kcp/pair_search.h"

static struct kcp_dataset *open_zeros(const char *name, uint64_t count) {
  struct kcp_dataset_options options = {0};
  struct kcp_dataset *dataset;
  struct kcp_error error;
  void *records = calloc(count + 1, 32);
  const char *path = write_scratch_file(name, records, 32 * count);
  free(records);
  if (kcp_dataset_open(path, &options, &dataset, &error) != KCP_OK) fail_msg("%s", error.message);
  return dataset;
}

struct case_of_plan {
  struct kcp_request request;
  struct kcp_job job;
};

static void make_case(struct case_of_plan *made, const char *algorithm, uint64_t n1, uint64_t n2,
                      uint64_t k) {
  struct kcp_error error;
  memset(made, 0, sizeof *made);
  made->request = kcp_request_defaults();
  made->request.k = k;
  made->job.request = &made->request;
  made->job.algorithm = kcp_algorithm_find(algorithm);
  made->job.backend = kcp_backend_cpu();
  made->job.backend->probe(0, &made->job.device, &error);
  made->job.device.thread_slots = 64;
  made->job.reference = open_zeros("d1.bin", n1);
  made->job.query = open_zeros("d2.bin", n2);
  made->job.pair_count = k;
}

static void end_case(struct case_of_plan *made) {
  kcp_dataset_close(made->job.reference);
  kcp_dataset_close(made->job.query);
}

static void test_memory_is_respected(void **state) {
  static const char *const names[] = {"dbf", "dspp", "dspp+", "dspp+p", "dspp+pea"};
  static const uint64_t sizes[] = {100000, 1000000, 10000000, 100000000};
  (void)state;
  for (size_t a = 0; a < 5; ++a)
    for (size_t m = 0; m < 4; ++m) {
      struct case_of_plan made;
      struct kcp_pair_plan plan;
      struct kcp_error error = {""};
      make_case(&made, names[a], 20000, 5000, 20);
      made.request.memory_bytes = sizes[m];
      enum kcp_status status = kcp_pair_plan_make(&made.job, &plan, &error);
      if (status == KCP_OK) {
        assert_true(plan.device_bytes <= sizes[m]);
        assert_true(plan.reference_partition >= 1 && plan.reference_partition <= 20000);
        assert_true(plan.query_partition >= 1 && plan.query_partition <= 5000);
        assert_true(plan.lists_per_slot * plan.points_per_thread >= plan.query_partition);
      } else {
        assert_int_equal(status, KCP_BAD_INPUT);
        assert_non_null(strstr(error.message, "GB free"));
        assert_false(plan.variant.partitions_queries);
      }
      end_case(&made);
    }
}

/* What is chosen gives way to --memory as long as one list of k fits; what is asked for does not.
 */
static void test_choices_give_way_to_memory(void **state) {
  static const char *const names[] = {"dspp+", "dspp+p", "dspp+pea"};
  static const uint64_t ks[] = {1, 20, 5000}, sizes[] = {128 << 10, 256 << 10, 1 << 20, 2 << 20};
  struct case_of_plan made;
  struct kcp_pair_plan plan;
  struct kcp_error error;
  (void)state;
  for (size_t a = 0; a < 3; ++a)
    for (size_t i = 0; i < 3; ++i)
      for (size_t m = 0; m < 4; ++m) {
        make_case(&made, names[a], 20000, 50000, ks[i]);
        made.job.device.thread_slots = 1; /* makes a large l */
        made.request.memory_bytes = sizes[m];
        if (kcp_pair_plan_make(&made.job, &plan, &error) != KCP_OK) fail_msg("%s", error.message);
        assert_true(plan.device_bytes <= sizes[m]);
        end_case(&made);
      }
  make_case(&made, "dspp+pea", 20000, 50000, 5000);
  made.request.memory_bytes = 128 << 10;
  made.request.streams = 4;
  assert_int_equal(kcp_pair_plan_make(&made.job, &plan, &error), KCP_BAD_INPUT);
  made.request.memory_bytes = 1 << 20;
  made.request.points_per_thread = 4096;
  assert_int_equal(kcp_pair_plan_make(&made.job, &plan, &error), KCP_BAD_INPUT);
  end_case(&made);
}

/* dbfs and the others that must hold D2 say what they need and what to use. */
static void test_what_does_not_fit(void **state) {
  struct case_of_plan made;
  struct kcp_pair_plan plan;
  struct kcp_error error;
  (void)state;
  make_case(&made, "dbfs", 20000, 5000, 140);
  made.request.memory_bytes = 1000000;
  assert_int_equal(kcp_pair_plan_make(&made.job, &plan, &error), KCP_BAD_INPUT);
  assert_non_null(strstr(error.message, "dbfs holds both sets and k lists a point"));
  assert_non_null(strstr(error.message, "use dspp+"));
  made.request.memory_bytes = 0;
  assert_int_equal(kcp_pair_plan_make(&made.job, &plan, &error), KCP_OK);
  assert_int_equal(plan.reference_partition, 20000);
  assert_int_equal(plan.query_partition, 5000);
  end_case(&made);
}

static void test_flags_win(void **state) {
  struct case_of_plan made;
  struct kcp_pair_plan plan;
  struct kcp_error error;
  (void)state;
  make_case(&made, "dspp+pea", 20000, 5000, 20);
  made.request.d1_partition = 3001;
  made.request.d2_partition = 1111;
  made.request.subpartitions = 10;
  made.request.streams = 3;
  made.request.points_per_thread = 7;
  made.request.block_threads = 128;
  made.request.buffer = KCP_CHOOSE_HEAP;
  assert_int_equal(kcp_pair_plan_make(&made.job, &plan, &error), KCP_OK);
  assert_int_equal(plan.reference_partition, 3001);
  assert_int_equal(plan.query_partition, 1111);
  assert_int_equal(plan.subpartition_size, 301);
  assert_int_equal(plan.slots, 3);
  assert_int_equal(plan.points_per_thread, 7);
  assert_int_equal(plan.lists_per_slot, 159);
  assert_int_equal(plan.block_threads, 128);
  assert_int_equal(plan.buffer, KCP_BUFFER_HEAP);
  end_case(&made);
}

/* l grows with D2 so that lists fill the device and no more; only dspp+pea groups. */
static void test_points_per_thread(void **state) {
  struct case_of_plan made;
  struct kcp_pair_plan plan;
  struct kcp_error error;
  (void)state;
  make_case(&made, "dspp+pea", 20, 50000, 20);
  assert_int_equal(kcp_pair_plan_make(&made.job, &plan, &error), KCP_OK);
  assert_int_equal(plan.points_per_thread, 50000 / (64 * 8));
  made.job.algorithm = kcp_algorithm_find("dspp+p");
  assert_int_equal(kcp_pair_plan_make(&made.job, &plan, &error), KCP_OK);
  assert_int_equal(plan.points_per_thread, 1);
  end_case(&made);
  make_case(&made, "dspp+pea", 20, 500, 20);
  assert_int_equal(kcp_pair_plan_make(&made.job, &plan, &error), KCP_OK);
  assert_int_equal(plan.points_per_thread, 1);
  end_case(&made);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_memory_is_respected), cmocka_unit_test(test_what_does_not_fit),
      cmocka_unit_test(test_choices_give_way_to_memory), cmocka_unit_test(test_flags_win),
      cmocka_unit_test(test_points_per_thread)};
  return cmocka_run_group_tests(tests, make_scratch_folder, remove_scratch_folder);
}

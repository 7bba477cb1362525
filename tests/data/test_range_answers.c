/* Counts of real data that are known: geo-100k.csv and sift-5k.csv in the folder that
 * KCP_TEST_DATA names; without them the exit code 77 tells CTest to skip. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kcp/range_run.h"

#define SKIPPED 77
#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

static const char *folder;
static const struct kcp_backend *backend;
static struct kcp_device_info device;

static void path_of(const char *name, char *path, size_t size) {
  snprintf(path, size, "%s/%s", folder, name);
}

static uint64_t pairs_of(const char *name, enum kcp_range_method method, double eps,
                         uint64_t memory_bytes) {
  char path[4096];
  struct kcp_dataset *dataset;
  struct kcp_error error;
  const struct kcp_dataset_options options = {.text_layout = KCP_TEXT_COORDINATES_ONLY};
  path_of(name, path, sizeof path);
  if (kcp_dataset_open(path, &options, &dataset, &error) != KCP_OK) fail_msg("%s", error.message);
  const struct kcp_range_engine *engine = backend->range_joins[method];
  const struct kcp_range_plan plan = {.method = method,
                                      .eps = eps,
                                      .dimensions = kcp_dataset_dimensions(dataset),
                                      .memory_bytes = memory_bytes};
  const uint64_t count = kcp_dataset_count(dataset);
  uint64_t *counts = calloc(count, sizeof *counts), sum = 0;
  struct kcp_range_join *join;
  struct kcp_range_runner runner;
  struct kcp_measurement measurement = {0};
  struct kcp_range_work work = {0};
  if (engine->create(&plan, &device, &join, &error) != KCP_OK ||
      kcp_range_runner_create(engine, join, dataset, dataset, false, NULL, &runner, &error) !=
          KCP_OK ||
      kcp_range_run(&runner, 0, count, counts, NULL, &measurement, &work, &error) != KCP_OK)
    fail_msg("%s", error.message);
  for (uint64_t i = 0; i < count; ++i) sum += counts[i];
  kcp_range_runner_free(&runner);
  engine->destroy(join);
  kcp_dataset_close(dataset);
  free(counts);
  return sum;
}

static void test_known_answers(void **state) {
  static const struct {
    const char *name;
    double eps;
    uint64_t pairs;
    uint64_t little_memory; /* also with so much; 0: not */
  } answers[] = {{"geo-100k.csv", 1, 27982048, 0},
                 {"sift-5k.csv", 200, 16758, 6 << 20},
                 {"sift-5k.csv", 250, 147618, 6 << 20},
                 {"sift-5k.csv", 300, 910416, 6 << 20}};
  (void)state;
  for (int method = 0; method < KCP_RANGE_METHODS; ++method) {
    if (backend->range_joins[method] == NULL) continue;
    for (size_t i = 0; i < COUNT(answers); ++i) {
      assert_int_equal(pairs_of(answers[i].name, (enum kcp_range_method)method, answers[i].eps,
                                device.free_bytes / 2),
                       answers[i].pairs);
      if (backend->kind == KCP_BACKEND_CPU && answers[i].little_memory > 0)
        assert_int_equal(pairs_of(answers[i].name, (enum kcp_range_method)method, answers[i].eps,
                                  answers[i].little_memory),
                         answers[i].pairs);
    }
  }
}

static bool is_there(const char *name) {
  char path[4096];
  path_of(name, path, sizeof path);
  return access(path, R_OK) == 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_answers)};
  struct kcp_error error = {"no data"};
  const char *wanted = getenv("KCP_TEST_BACKEND");
  folder = getenv("KCP_TEST_DATA");
  backend = wanted != NULL && strcmp(wanted, "cuda") == 0 ? kcp_backend_cuda() : kcp_backend_cpu();
  if (folder == NULL || !is_there("geo-100k.csv") || !is_there("sift-5k.csv") ||
      backend->probe(0, &device, &error) != KCP_OK || backend->range_joins == NULL) {
    printf("skipped: %s\n", error.message);
    return SKIPPED;
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* RT-HiSS over every index: the same primitives are met and the same pairs counted as over the
 * hierarchy, and what --index auto comes to.
 *
 * KCP_TEST_BACKEND=cuda runs it on a GPU; without one the exit code 77 tells CTest to skip. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/range_join.h"
#include "range_shapes.h"

#define SKIPPED 77
#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

static const struct kcp_backend *backend;
static struct kcp_device_info device;

/* Joins the points with themselves and with the queries; counts come one after the other. */
static struct kcp_range_work join_both(struct kcp_range_join *join,
                                       const struct kcp_points *reference,
                                       const struct kcp_points *query, uint64_t *counts) {
  const struct kcp_range_engine *engine = backend->range_joins[KCP_RANGE_RT_HISS];
  struct kcp_measurement measurement = {0};
  struct kcp_range_work work = {0};
  struct kcp_error error;
  memset(counts, 0, (reference->count + query->count) * sizeof *counts);
  if (engine->set_reference(join, reference, &measurement, &work, &error) != KCP_OK ||
      engine->join(join, NULL, counts, NULL, &measurement, &work, &error) != KCP_OK ||
      engine->join(join, query, counts + reference->count, NULL, &measurement, &work, &error) !=
          KCP_OK)
    fail_msg("%s", error.message);
  return work;
}

/* An index of that kind and the hierarchy meet the same primitives and count the same pairs. */
static void compare_indexes(struct kcp_range_plan plan, struct kcp_range_join *of_kind,
                            enum kcp_range_index kind, const struct kcp_points *reference,
                            const struct kcp_points *query) {
  const struct kcp_range_engine *engine = backend->range_joins[KCP_RANGE_RT_HISS];
  const uint64_t count = reference->count + query->count;
  uint64_t *expected = malloc(count * sizeof *expected), *counts = malloc(count * sizeof *counts);
  struct kcp_range_join *join;
  plan.options.index = KCP_RANGE_INDEX_BVH;
  assert_int_equal(engine->create(&plan, &device, &join, NULL), KCP_OK);
  const struct kcp_range_work of_bvh = join_both(join, reference, query, expected);
  const struct kcp_range_work work = join_both(of_kind, reference, query, counts);
  if (work.intersections != of_bvh.intersections || work.primitives != of_bvh.primitives)
    fail_msg("index %d, d %u, eps %g, bound %d: %" PRIu64 " intersections, of bvh %" PRIu64,
             (int)kind, plan.dimensions, plan.eps, (int)plan.options.bound, work.intersections,
             of_bvh.intersections);
  assert_memory_equal(counts, expected, count * sizeof *counts);
  assert_true(work.intersections > 0);
  engine->destroy(join);
  free(expected);
  free(counts);
}

/* An engine; the test ends here where its index is not to be had. */
static struct kcp_range_join *open_join(const struct kcp_range_plan *plan) {
  struct kcp_range_join *join;
  struct kcp_error error;
  const enum kcp_status status =
      backend->range_joins[plan->method]->create(plan, &device, &join, &error);
  if (status == KCP_UNAVAILABLE) {
    printf("%s\n", error.message);
    skip();
  }
  if (status != KCP_OK) fail_msg("%s", error.message);
  return join;
}

/* One engine over all shapes: opening OptiX takes long. */
static void compare_all_shapes(enum kcp_range_index kind, uint32_t dimensions,
                               struct kcp_range_options options, double eps) {
  const struct kcp_range_engine *engine = backend->range_joins[KCP_RANGE_RT_HISS];
  struct kcp_range_plan plan = {.method = KCP_RANGE_RT_HISS,
                                .options = options,
                                .eps = eps,
                                .dimensions = dimensions,
                                .memory_bytes = UINT64_C(1) << 28};
  plan.options.index = kind;
  struct kcp_range_join *join = open_join(&plan);
  for (int shape = UNIFORM; shape <= FAR_FROM_ZERO; ++shape) {
    struct kcp_points reference = points_of((enum shape)shape, 11, 900, dimensions);
    struct kcp_points query = points_of((enum shape)shape, 12, 300, dimensions);
    /* Queries outside of everything, near and so far that binary32 knows no such number. */
    for (uint32_t j = 0; j < dimensions; ++j) {
      kcp_points_column(&query, j)[5] = -40;
      kcp_points_column(&query, j)[6] = 1e70;
    }
    compare_indexes(plan, join, kind, &reference, &query);
    kcp_points_free(&reference);
    kcp_points_free(&query);
  }
  engine->destroy(join);
}

static void compare_options(enum kcp_range_index kind) {
  static const struct kcp_range_options every[] = {
      {.kd_height = 0},
      {.kd_height = KCP_KD_HEIGHT_MAX, .bound = KCP_BOUND_BOX},
      {.bound = KCP_BOUND_FULL, .kd_height = 9},
      {.kd_height = 1}};
  static const uint32_t dimensions[] = {1, 3, 18};
  for (size_t d = 0; d < COUNT(dimensions); ++d)
    for (size_t i = 0; i < COUNT(every); ++i)
      compare_all_shapes(kind, dimensions[d], every[i], i % 2 == 0 ? 0.1 : 0.002);
}

static void test_indexes_agree(void **state) {
  (void)state;
  compare_options(KCP_RANGE_INDEX_GRID);
}

static void test_rays_agree(void **state) {
  (void)state;
  compare_options(KCP_RANGE_INDEX_OPTIX);
}

/* The index that --index auto comes to. */
static void expect_index(struct kcp_range_options options, uint32_t dimensions,
                         const char *expected) {
  const struct kcp_range_plan plan = {
      .method = KCP_RANGE_RT_HISS, .options = options, .eps = 0.1, .dimensions = dimensions};
  const struct kcp_range_engine *engine = backend->range_joins[plan.method];
  struct kcp_parameter parameters[KCP_MAX_PARAMETERS];
  struct kcp_range_join *join = open_join(&plan);
  const size_t count = engine->parameters(join, parameters);
  size_t i = 0;
  while (i < count && strcmp(parameters[i].name, "index") != 0) ++i;
  assert_true(i < count);
  assert_string_equal(parameters[i].value, expected);
  engine->destroy(join);
}

static void test_auto(void **state) {
  (void)state;
  const char *const of_full = backend->kind == KCP_BACKEND_CUDA ? "grid" : "bvh";
  const struct kcp_range_options sphere = {.refine = KCP_REFINE_SHARED_BOTH};
  const struct kcp_range_options full = {.refine = KCP_REFINE_SHARED_BOTH, .bound = KCP_BOUND_FULL};
  struct kcp_range_options other = full;
  expect_index(sphere, 18, "bvh");
  expect_index(full, 18, of_full);
  expect_index(full, 3, "bvh");
  other.kd_height = KCP_KD_HEIGHT_MAX;
  expect_index(other, 18, "bvh");
  other = full;
  other.index = KCP_RANGE_INDEX_BVH;
  expect_index(other, 18, "bvh");
}

static uint64_t reference_capacity(struct kcp_range_plan plan, uint64_t kd_height) {
  plan.options.kd_height = kd_height;
  struct kcp_range_join *join = open_join(&plan);
  const struct kcp_range_engine *engine = backend->range_joins[plan.method];
  const uint64_t records = engine->capacity(join).reference_records;
  engine->destroy(join);
  return records;
}

/* A structure over single points takes room from them. */
static void test_room_for_rays(void **state) {
  (void)state;
  const struct kcp_range_plan plan = {
      .method = KCP_RANGE_RT_HISS,
      .options = {.index = KCP_RANGE_INDEX_OPTIX, .refine = KCP_REFINE_SHARED_BOTH},
      .eps = 0.1,
      .dimensions = 4,
      .memory_bytes = UINT64_C(1) << 28};
  assert_true(reference_capacity(plan, KCP_KD_HEIGHT_MAX) < reference_capacity(plan, 0));
}

/* With an argument, the tests that its pattern names. */
int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_indexes_agree),
                                     cmocka_unit_test(test_rays_agree), cmocka_unit_test(test_auto),
                                     cmocka_unit_test(test_room_for_rays)};
  struct kcp_error error;
  const char *wanted = getenv("KCP_TEST_BACKEND");
  backend = wanted != NULL && strcmp(wanted, "cuda") == 0 ? kcp_backend_cuda() : kcp_backend_cpu();
  if (backend->probe(0, &device, &error) != KCP_OK || backend->range_joins == NULL) {
    printf("%s\n", error.message);
    return SKIPPED;
  }
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Range joins of every method against all pairs counted here, over shapes that go wrong elsewhere.
 *
 * KCP_TEST_BACKEND=cuda runs it on a GPU; without one the exit code 77 tells CTest to skip. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/random.h"
#include "kcp/range_join.h"

#define SKIPPED 77
#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

enum { METHODS = KCP_RANGE_METHODS };

static const struct kcp_backend *backend;
static struct kcp_device_info device;
static const char *const method_names[METHODS] = {"range-brute", "range-grid", "rt-hiss"};

enum shape {
  UNIFORM,
  CLUSTERED,    /* few tight clusters */
  LATTICE,      /* whole numbers: many pairs at exactly eps */
  EQUAL,        /* one place */
  REPEATED,     /* each place several times */
  FLAT,         /* every dimension but the first constant */
  FAR_FROM_ZERO /* near 5e6, a thousandth apart */
};

static double unit(uint64_t seed, uint64_t i, uint32_t j) {
  return kcp_random_unit(kcp_random_pair(seed, 3, i, j).first);
}

static double coordinate(enum shape shape, uint64_t seed, uint64_t i, uint32_t j) {
  switch (shape) {
    case UNIFORM: return 2 * unit(seed, i, j) - 1;
    case CLUSTERED: return unit(99, i % 5, j) + 0.01 * unit(seed, i, j) * (j + 1);
    case LATTICE: return floor(6 * unit(seed, i, j)) - 3;
    case EQUAL: return 0.1 * (j + 1);
    case REPEATED: return unit(99, i % 37, j);
    case FLAT: return j == 0 ? unit(seed, i, j) : 7;
    default: return 5e6 + 1e-3 * floor(40 * unit(seed, i, j));
  }
}

static struct kcp_points points_of(enum shape shape, uint64_t seed, uint64_t count,
                                   uint32_t dimensions) {
  struct kcp_points points;
  /* A stride beyond the count, as in a block that is not full. */
  assert_int_equal(kcp_points_allocate(count + 5, dimensions, &points, NULL), KCP_OK);
  points.count = count;
  for (uint64_t i = 0; i < count; ++i) {
    points.ids[i] = i;
    for (uint32_t j = 0; j < dimensions; ++j)
      kcp_points_column(&points, j)[i] = coordinate(shape, seed, i, j);
  }
  return points;
}

/* All pairs, one after the other. */
static bool is_neighbour(const struct kcp_points *reference, uint64_t i,
                         const struct kcp_points *query, uint64_t q, double eps) {
  double total = 0;
  for (uint32_t j = 0; j < reference->dimensions; ++j) {
    const double difference = reference->coordinates[j * reference->stride + i] -
                              query->coordinates[j * query->stride + q];
    total += difference * difference;
  }
  return total <= eps * eps;
}

/* What a sink was given: a byte a pair. */
struct seen {
  uint64_t reference_count, query_count;
  unsigned char *pairs;
  unsigned char *queries;
};

static enum kcp_status take(void *context, const struct kcp_range_batch *batch,
                            struct kcp_error *error) {
  struct seen *seen = context;
  (void)error;
  assert_int_equal(batch->offsets[0], 0);
  for (uint64_t i = 0; i < batch->query_count; ++i) {
    const uint32_t query = batch->queries[i];
    assert_in_range(query, 0, seen->query_count - 1);
    assert_true(batch->offsets[i] <= batch->offsets[i + 1]);
    assert_int_equal(seen->queries[query]++, 0);
    for (uint64_t v = batch->offsets[i]; v < batch->offsets[i + 1]; ++v) {
      const uint32_t neighbour = batch->neighbours[v];
      assert_in_range(neighbour, 0, seen->reference_count - 1);
      if (v > batch->offsets[i]) assert_true(batch->neighbours[v - 1] < neighbour);
      seen->pairs[query * seen->reference_count + neighbour] = 1;
    }
  }
  return KCP_OK;
}

struct job {
  enum kcp_range_method method;
  struct kcp_range_options options;
  double eps;
  uint64_t memory_bytes;
  const struct kcp_points *reference;
  const struct kcp_points *query; /* NULL: self-join */
};

static void check_answer(const struct job *job, const uint64_t *counts, const uint64_t *counted,
                         const struct seen *seen, struct kcp_range_work work) {
  const struct kcp_points *query = job->query != NULL ? job->query : job->reference;
  uint64_t total = 0;
  for (uint64_t q = 0; q < query->count; ++q) {
    uint64_t expected = 0;
    for (uint64_t i = 0; i < job->reference->count; ++i) {
      const bool within = is_neighbour(job->reference, i, query, q, job->eps);
      if (seen->pairs[q * job->reference->count + i] != within)
        fail_msg("%s, eps %g, d %u: query %" PRIu64 ", point %" PRIu64 " should be %d",
                 method_names[job->method], job->eps, query->dimensions, q, i, within);
      expected += within;
    }
    if (counts[q] != expected + 7 || counted[q] != expected)
      fail_msg("%s, eps %g, d %u: query %" PRIu64 " has %" PRIu64 " neighbours, not %" PRIu64
               " and %" PRIu64,
               method_names[job->method], job->eps, query->dimensions, q, expected, counts[q] - 7,
               counted[q]);
    total += expected;
  }
  assert_true(query->count == 0 || work.batches > 0);
  (void)total;
}

static void run_job(const struct job *job) {
  const struct kcp_range_engine *engine = backend->range_joins[job->method];
  const struct kcp_points *query = job->query != NULL ? job->query : job->reference;
  const struct kcp_range_plan plan = {
      .method = job->method,
      .options = job->options,
      .eps = job->eps,
      .dimensions = job->reference->dimensions,
      .memory_bytes = job->memory_bytes > 0 ? job->memory_bytes : UINT64_C(1) << 28};
  struct kcp_range_join *join;
  struct kcp_error error;
  struct kcp_measurement measurement = {0};
  struct kcp_range_work work = {0};
  struct kcp_parameter parameters[KCP_MAX_PARAMETERS];
  struct seen seen = {job->reference->count, query->count,
                      calloc(job->reference->count * query->count + 1, 1),
                      calloc(query->count + 1, 1)};
  const struct kcp_range_sink sink = {&seen, take};
  uint64_t *counts = calloc(query->count + 1, sizeof *counts);
  uint64_t *counted = calloc(query->count + 1, sizeof *counted);
  for (uint64_t q = 0; q < query->count; ++q) counts[q] = 7; /* they are added to */
  if (engine->create(&plan, &device, &join, &error) != KCP_OK) fail_msg("%s", error.message);
  if (engine->set_reference(join, job->reference, &measurement, &work, &error) != KCP_OK ||
      engine->join(join, job->query, counts, &sink, &measurement, &work, &error) != KCP_OK ||
      engine->join(join, job->query, counted, NULL, &measurement, &work, &error) != KCP_OK)
    fail_msg("%s: %s", method_names[job->method], error.message);
  check_answer(job, counts, counted, &seen, work);
  assert_true(engine->parameters(join, parameters) <= KCP_MAX_PARAMETERS);
  engine->destroy(join);
  free(seen.pairs);
  free(seen.queries);
  free(counts);
  free(counted);
}

/* RT-HiSS with each value of each option, and some together. */
static void run_variants(struct job job) {
  static const struct kcp_range_options variants[] = {
      {.index = KCP_RANGE_INDEX_GRID},
      {.bound = KCP_BOUND_BOX, .kd_height = 3},
      {.kd_height = KCP_KD_HEIGHT_MAX},
      {.kd_height = 1, .shared_memory_bytes = 1, .result = KCP_RESULT_PAIRS},
      {.reorder = KCP_REORDER_LOWEST, .refine = KCP_REFINE_SHARED_PRIMITIVE},
      {.reorder = KCP_REORDER_RANDOM, .refine = KCP_REFINE_SHARED_QUERY, .kd_height = 2},
      {.refine = KCP_REFINE_SHARED_NONE, .result = KCP_RESULT_MASK_RAW, .kd_height = 4},
      {.result = KCP_RESULT_PAIRS, .sort_work = KCP_SWITCH_OFF, .work_per_thread = 1},
      {.result = KCP_RESULT_MASK_RAW, .fixed_work = KCP_SWITCH_OFF, .kd_height = 2},
      {.bound = KCP_BOUND_FULL},
      {.refine = KCP_REFINE_TENSOR, .kd_height = 2},
      {.refine = KCP_REFINE_TENSOR, .bound = KCP_BOUND_FULL, .result = KCP_RESULT_PAIRS},
      {.bound = KCP_BOUND_FULL, .kd_height = KCP_KD_HEIGHT_MAX, .reorder = KCP_REORDER_LOWEST},
      {.index = KCP_RANGE_INDEX_GRID, .kd_height = KCP_KD_HEIGHT_MAX, .bound = KCP_BOUND_BOX}};
  const bool has_tensor = backend->kind == KCP_BACKEND_CUDA;
  for (size_t i = 0; i < COUNT(variants); ++i) {
    if (variants[i].refine == KCP_REFINE_TENSOR && !has_tensor) continue;
    static unsigned turn;
    job.options = variants[i];
    /* Every other time many batches, and few queries passed on at once. */
    job.memory_bytes = turn++ % 2 == 0 ? 0 : 4096;
    run_job(&job);
  }
}

/* The ways that a method can go for these points. */
static void run_method(struct job job) {
  run_job(&job);
  if (job.method == KCP_RANGE_RT_HISS) {
    run_variants(job);
  } else if (job.method == KCP_RANGE_GRID) {
    for (job.options.grid_dimensions = 1; job.options.grid_dimensions < 6;
         job.options.grid_dimensions += 2)
      run_job(&job);
  }
}

static void run_all(const struct kcp_points *reference, const struct kcp_points *query,
                    double eps) {
  for (int method = 0; method < METHODS; ++method) {
    if (backend->range_joins[method] == NULL) continue;
    run_method((struct job){.method = (enum kcp_range_method)method,
                            .eps = eps,
                            .reference = reference,
                            .query = query});
  }
}

static void test_shapes(void **state) {
  static const uint32_t dimensions[] = {1, 2, 3, 7, 18, 130};
  static const double eps[][3] = {[UNIFORM] = {0.05, 0.5, 2},
                                  [CLUSTERED] = {0.01, 0.3, 1},
                                  [LATTICE] = {0, 1, 2},
                                  [EQUAL] = {0, 1e-9, 1},
                                  [REPEATED] = {0, 0.25, 3},
                                  [FLAT] = {0, 1e-3, 0.5},
                                  [FAR_FROM_ZERO] = {0, 2e-3, 0.012}};
  (void)state;
  for (int shape = UNIFORM; shape <= FAR_FROM_ZERO; ++shape)
    for (size_t d = 0; d < COUNT(dimensions); ++d) {
      struct kcp_points reference = points_of((enum shape)shape, 1, 161, dimensions[d]);
      struct kcp_points query = points_of((enum shape)shape, 2, 50, dimensions[d]);
      for (size_t e = 0; e < COUNT(eps[shape]); ++e) {
        run_all(&reference, NULL, eps[shape][e]);
        run_all(&reference, &query, eps[shape][e]);
      }
      kcp_points_free(&reference);
      kcp_points_free(&query);
    }
}

static void test_sizes(void **state) {
  static const uint64_t sizes[] = {1, 2, 3, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129};
  (void)state;
  for (size_t i = 0; i < COUNT(sizes); ++i)
    for (uint32_t dimensions = 2; dimensions <= 5; dimensions += 3) {
      struct kcp_points reference = points_of(UNIFORM, 3, sizes[i], dimensions);
      struct kcp_points query = points_of(UNIFORM, 4, sizes[COUNT(sizes) - 1 - i], dimensions);
      run_all(&reference, NULL, 0.7);
      run_all(&reference, &query, 0.7);
      kcp_points_free(&reference);
      kcp_points_free(&query);
    }
}

/* Pairs at exactly eps, and one unit in the last place beyond. */
static void test_border(void **state) {
  (void)state;
  for (uint32_t dimensions = 1; dimensions <= 40; dimensions += 13) {
    struct kcp_points points = points_of(UNIFORM, 5, 90, dimensions);
    double total = 0;
    for (uint32_t j = 0; j < dimensions; ++j) {
      const double difference =
          points.coordinates[j * points.stride] - points.coordinates[j * points.stride + 1];
      total += difference * difference;
    }
    double eps = sqrt(total);
    while (eps * eps > total) eps = nextafter(eps, 0);
    run_all(&points, NULL, eps);
    run_all(&points, NULL, nextafter(eps, 10));
    run_all(&points, NULL, nextafter(nextafter(eps, 10), 10));
    kcp_points_free(&points);
  }
}

/* One engine, several slices and blocks: nothing of the former stays. */
static void test_second_reference(void **state) {
  (void)state;
  for (int method = 0; method < METHODS; ++method) {
    const struct kcp_range_engine *engine = backend->range_joins[method];
    if (engine == NULL) continue;
    const struct kcp_range_plan plan = {.method = (enum kcp_range_method)method,
                                        .eps = 0.4,
                                        .dimensions = 4,
                                        .memory_bytes = UINT64_C(1) << 28};
    struct kcp_points slices[] = {points_of(UNIFORM, 6, 50, 4), points_of(CLUSTERED, 7, 300, 4),
                                  points_of(UNIFORM, 8, 20, 4)};
    struct kcp_points query = points_of(UNIFORM, 9, 120, 4);
    struct kcp_range_join *join;
    struct kcp_measurement measurement = {0};
    struct kcp_range_work work = {0};
    uint64_t counts[120] = {0};
    assert_int_equal(engine->create(&plan, &device, &join, NULL), KCP_OK);
    for (size_t s = 0; s < COUNT(slices); ++s) {
      assert_int_equal(engine->set_reference(join, &slices[s], &measurement, &work, NULL), KCP_OK);
      assert_int_equal(engine->join(join, &query, counts, NULL, &measurement, &work, NULL), KCP_OK);
    }
    for (uint64_t q = 0; q < query.count; ++q) {
      uint64_t expected = 0;
      for (size_t s = 0; s < COUNT(slices); ++s)
        for (uint64_t i = 0; i < slices[s].count; ++i)
          expected += is_neighbour(&slices[s], i, &query, q, plan.eps);
      assert_int_equal(counts[q], expected);
    }
    engine->destroy(join);
    for (size_t s = 0; s < COUNT(slices); ++s) kcp_points_free(&slices[s]);
    kcp_points_free(&query);
  }
}

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

/* Rays against all pairs, also in many batches. */
static void test_rays(void **state) {
  (void)state;
  static const struct kcp_range_options variants[] = {
      {.index = KCP_RANGE_INDEX_OPTIX, .kd_height = KCP_KD_HEIGHT_MAX},
      {.index = KCP_RANGE_INDEX_OPTIX, .bound = KCP_BOUND_FULL, .result = KCP_RESULT_MASK_RAW},
      {.index = KCP_RANGE_INDEX_OPTIX, .kd_height = 4, .result = KCP_RESULT_PAIRS}};
  const struct kcp_range_plan plan = {.method = KCP_RANGE_RT_HISS,
                                      .options = variants[0],
                                      .eps = 0.1,
                                      .dimensions = 4,
                                      .memory_bytes = UINT64_C(1) << 28};
  /* A structure over single points takes room from them. */
  assert_true(reference_capacity(plan, KCP_KD_HEIGHT_MAX) < reference_capacity(plan, 0));
  struct kcp_points reference = points_of(CLUSTERED, 13, 301, 4);
  struct kcp_points query = points_of(CLUSTERED, 14, 99, 4);
  for (size_t i = 0; i < COUNT(variants); ++i)
    for (int many = 0; many < 2; ++many) {
      struct job job = {.method = KCP_RANGE_RT_HISS,
                        .options = variants[i],
                        .eps = 0.1,
                        .memory_bytes = many ? 4096 : 0,
                        .reference = &reference,
                        .query = many ? &query : NULL};
      run_job(&job);
    }
  kcp_points_free(&reference);
  kcp_points_free(&query);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shapes),        cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_border),        cmocka_unit_test(test_second_reference),
      cmocka_unit_test(test_indexes_agree), cmocka_unit_test(test_rays_agree),
      cmocka_unit_test(test_auto),          cmocka_unit_test(test_rays),
  };
  struct kcp_error error;
  const char *wanted = getenv("KCP_TEST_BACKEND");
  backend = wanted != NULL && strcmp(wanted, "cuda") == 0 ? kcp_backend_cuda() : kcp_backend_cpu();
  if (backend->probe(0, &device, &error) != KCP_OK || backend->range_joins == NULL) {
    printf("%s\n", error.message);
    return SKIPPED;
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}

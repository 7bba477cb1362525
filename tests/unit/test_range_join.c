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
static unsigned jobs; /* run so far: they take turns in how results are passed on */
static struct kcp_device_info device;
static const char *const method_names[METHODS] = {"range-brute", "range-grid", "rt-hiss",
                                                  "range-dual-tree"};

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
  uint32_t *space; /* for neighbours */
  uint64_t used, turns;
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

/* Room that the sink has for every other batch; of each, some is left. */
static uint32_t *room(void *context, uint64_t count) {
  struct seen *seen = context;
  const uint64_t turn = __atomic_fetch_add(&seen->turns, 1, __ATOMIC_RELAXED);
  if (turn % 2 == 0) return NULL;
  const uint64_t first = __atomic_fetch_add(&seen->used, count, __ATOMIC_RELAXED);
  return first + count <= seen->reference_count * seen->query_count ? seen->space + first : NULL;
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
  struct seen seen = {job->reference->count,
                      query->count,
                      calloc(job->reference->count * query->count + 1, 1),
                      calloc(query->count + 1, 1),
                      calloc(job->reference->count * query->count + 1, sizeof(uint32_t)),
                      0,
                      jobs++};
  const struct kcp_range_sink sink = {&seen, take, jobs % 3 == 0 ? NULL : room};
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
  free(seen.space);
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
      {.result = KCP_RESULT_MASK, .copy_threads = 3, .pinned_bytes = 3001},
      {.result = KCP_RESULT_PAIRS, .kd_height = 3, .copy_threads = 5, .pinned_bytes = 4099},
      {.result = KCP_RESULT_PAIRS, .sort_work = KCP_SWITCH_OFF, .work_per_thread = 1},
      {.result = KCP_RESULT_MASK_RAW, .fixed_work = KCP_SWITCH_OFF, .kd_height = 2},
      {.bound = KCP_BOUND_FULL},
      {.refine = KCP_REFINE_TENSOR, .kd_height = 2},
      {.refine = KCP_REFINE_TENSOR, .bound = KCP_BOUND_FULL, .result = KCP_RESULT_PAIRS},
      {.bound = KCP_BOUND_FULL, .kd_height = KCP_KD_HEIGHT_MAX, .reorder = KCP_REORDER_LOWEST},
      {.index = KCP_RANGE_INDEX_GRID, .kd_height = KCP_KD_HEIGHT_MAX, .bound = KCP_BOUND_BOX}};
  const bool has_tensor = backend->kind == KCP_BACKEND_CUDA;
  for (size_t i = 0; i < COUNT(variants); ++i) {
    static unsigned turn;
    if (variants[i].refine == KCP_REFINE_TENSOR && !has_tensor) continue;
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

/* More records than lists are made of at once where a block has little memory: some windows of
 * them, and so many that lists are sorted; many neighbours and few. */
static void test_many_records(void **state) {
  static const uint64_t sizes[] = {3000, 9300};
  static const double eps[] = {0.02, 0.8};
  static const enum kcp_range_result_form forms[] = {KCP_RESULT_MASK, KCP_RESULT_MASK_RAW,
                                                     KCP_RESULT_PAIRS};
  (void)state;
  for (size_t i = 0; i < COUNT(sizes); ++i) {
    struct kcp_points reference = points_of(UNIFORM, 10, sizes[i], 2);
    struct kcp_points query = points_of(UNIFORM, 11, 60, 2);
    for (size_t e = 0; e < COUNT(eps); ++e)
      for (size_t form = 0; form < COUNT(forms); ++form)
        for (int little = 0; little < 2; ++little)
          run_job(&(struct job){.method = KCP_RANGE_RT_HISS,
                                .options = {.result = forms[form],
                                            .kd_height = 4 + form,
                                            .shared_memory_bytes = little ? 300 : 0,
                                            .copy_threads = little ? 0 : 4,
                                            .pinned_bytes = little ? 0 : 10000},
                                .eps = eps[e],
                                .memory_bytes = form == 1 ? 4096 : 0,
                                .reference = &reference,
                                .query = &query});
    kcp_points_free(&reference);
    kcp_points_free(&query);
  }
}

/* More pairs than are passed on at once where memory is short. */
static void test_many_pairs(void **state) {
  static const enum kcp_range_result_form forms[] = {KCP_RESULT_MASK, KCP_RESULT_MASK_RAW,
                                                     KCP_RESULT_PAIRS};
  struct kcp_points points = points_of(EQUAL, 12, 2500, 2);
  (void)state;
  for (size_t form = 0; form < COUNT(forms); ++form)
    for (int method = 0; method < METHODS; ++method)
      if (backend->range_joins[method] != NULL)
        run_job(&(struct job){.method = (enum kcp_range_method)method,
                              .options = {.result = forms[form]},
                              .eps = 0.5,
                              .memory_bytes = 4096,
                              .reference = &points});
  kcp_points_free(&points);
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

/* With an argument, the tests that its pattern names. */
int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shapes),     cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_border),     cmocka_unit_test(test_many_records),
      cmocka_unit_test(test_many_pairs), cmocka_unit_test(test_second_reference),
  };
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

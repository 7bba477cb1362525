/* One answer, whatever computes it: every closest-pairs algorithm, buffer, kernel, order and
 * partitioning against the brute force of oracle.c, byte for byte.
 *
 * KCP_TEST_BACKEND=cuda runs it on a GPU; without one the exit code 77 tells CTest to skip.
 * KCP_TEST_ALGORITHM=NAME tries one row alone. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "../oracle.h"
#include "kcp/algorithm.h"
#include "kcp/args.h"
#include "kcp/execute.h"
#include "point_sets.h"

#define SKIPPED 77

static const struct kcp_backend *backend;
static struct kcp_device_info device;
static uint64_t compared, refused;
static uint64_t bytes_read;   /* by the last run of check_one */
static uint64_t seed_at_work; /* of the random problem, for the message of a failure */

static bool is_tested(const struct kcp_algorithm *row) {
  const char *name = getenv("KCP_TEST_ALGORITHM");
  if (name != NULL && strcmp(name, row->name) != 0) return false;
  return row->query == KCP_QUERY_CLOSEST_PAIRS && (row->backends & backend->kind) != 0;
}

/* Two sets, their files, and the question put to them. */
struct problem {
  struct point_set reference, query; /* with self, the query is unused */
  enum file_format format;
  struct oracle_question question;
  /* Of extreme coordinates: the oracle works on them times 2^oracle_scale, and the driver may
   * take another scale than 2^0. */
  int oracle_scale;
};

static const char *metric_name(const struct oracle_question *question) {
  static const char *const names[] = {"l1", "l2", "linf", "lp"};
  return names[question->metric];
}

static struct kcp_dataset *open_points(const struct point_set *points, enum file_format format,
                                       const char *name) {
  struct kcp_dataset_options options = {.text_layout = KCP_TEXT_ID_FIRST};
  struct kcp_dataset *dataset;
  struct kcp_error error;
  const char *path = points_write(points, format, name);
  if (kcp_dataset_open(path, &options, &dataset, &error) != KCP_OK) fail_msg("%s", error.message);
  return dataset;
}

static struct oracle_points for_oracle(const struct point_set *points, enum file_format format,
                                       uint64_t *numbers) {
  struct oracle_points view = {points->count, points->dimensions, points->ids, points->coordinates};
  for (uint64_t i = 0; i < points->count; ++i) numbers[i] = i;
  if (format == FILE_NPY) view.ids = numbers;
  return view;
}

static struct point_set scaled_copy(const struct point_set *points, int exponent) {
  struct point_set copy = points_make(SHAPE_EQUAL, points->count, points->dimensions, 0);
  memcpy(copy.ids, points->ids, points->count * sizeof *copy.ids);
  for (uint64_t i = 0; i < points->count * points->dimensions; ++i)
    copy.coordinates[i] = ldexp(points->coordinates[i], exponent);
  return copy;
}

static uint64_t ask_oracle_unscaled(const struct problem *problem, struct oracle_pair *pairs) {
  uint64_t *numbers1 = malloc((problem->reference.count + 1) * sizeof *numbers1);
  uint64_t *numbers2 = malloc((problem->query.count + 1) * sizeof *numbers2);
  struct oracle_points reference = for_oracle(&problem->reference, problem->format, numbers1);
  struct oracle_points query = for_oracle(&problem->query, problem->format, numbers2);
  uint64_t count = oracle_closest_pairs(&reference, problem->question.self ? &reference : &query,
                                        &problem->question, pairs);
  free(numbers1);
  free(numbers2);
  return count;
}

static uint64_t ask_oracle(const struct problem *problem, struct oracle_pair *pairs) {
  struct problem scaled = *problem;
  if (problem->oracle_scale == 0) return ask_oracle_unscaled(problem, pairs);
  scaled.reference = scaled_copy(&problem->reference, problem->oracle_scale);
  scaled.query = scaled_copy(&problem->query, problem->oracle_scale);
  uint64_t count = ask_oracle_unscaled(&scaled, pairs);
  points_free(&scaled.reference);
  points_free(&scaled.query);
  return count;
}

static const char *describe(const struct kcp_request *request, const struct kcp_algorithm *row,
                            const struct problem *problem) {
  static char text[512];
  snprintf(text, sizeof text,
           "%s buffer %d kernel %d order %d d1 %llu of %llu d2 %llu of %llu sub %llu l %llu S %llu "
           "threads %llu memory %llu k %llu %s:%u limit %.17g self %d d %u seed %llu",
           row->name, request->buffer, request->kernel, request->order_d2,
           (unsigned long long)request->d1_partition, (unsigned long long)problem->reference.count,
           (unsigned long long)request->d2_partition, (unsigned long long)problem->query.count,
           (unsigned long long)request->subpartitions,
           (unsigned long long)request->points_per_thread, (unsigned long long)request->streams,
           (unsigned long long)request->block_threads, (unsigned long long)request->memory_bytes,
           (unsigned long long)request->k, metric_name(&problem->question), problem->question.power,
           problem->question.max_distance, problem->question.self, problem->reference.dimensions,
           (unsigned long long)seed_at_work);
  return text;
}

/* Only what must hold D2 as a whole, or has no partitions at all, may refuse for want of memory. */
static bool may_refuse(const struct kcp_algorithm *row, const struct kcp_request *request,
                       const struct problem *problem) {
  bool plain_on_gpu = request->kernel == KCP_KERNEL_PLAIN && problem->reference.dimensions > 3 &&
                      backend->kind == KCP_BACKEND_CUDA;
  return plain_on_gpu || (request->memory_bytes > 0 && strncmp(row->name, "dspp+", 5) != 0);
}

/* The power of two between a rank at the oracle's scale and at the driver's. */
static int rescaling(const struct problem *problem, int scale_exponent) {
  static const int degrees[] = {1, 2, 1};
  const struct oracle_question *question = &problem->question;
  int degree = question->metric == ORACLE_LP ? (int)question->power : degrees[question->metric];
  return degree * (scale_exponent - problem->oracle_scale);
}

static bool same_pair(const struct kcp_candidate *answer, const struct oracle_pair *expected,
                      int exponent) {
  double rank = ldexp(expected->rank, exponent);
  return memcmp(&answer->rank, &rank, sizeof rank) == 0 && answer->id1 == expected->id1 &&
         answer->id2 == expected->id2;
}

static void check_one(const struct kcp_algorithm *row, const struct kcp_request *request,
                      const struct problem *problem, struct kcp_dataset *reference,
                      struct kcp_dataset *query, const struct oracle_pair *expected,
                      uint64_t expected_count) {
  struct kcp_progress progress = {0};
  struct kcp_result result;
  struct kcp_answer answer;
  struct kcp_error error = {""};
  struct kcp_job job = {.request = request,
                        .algorithm = row,
                        .backend = backend,
                        .device = device,
                        .reference = reference,
                        .query = query,
                        .progress = &progress};
  uint64_t possible =
      kcp_possible_pairs(request->self, kcp_dataset_count(reference), kcp_dataset_count(query));
  job.pair_count = request->k < possible ? request->k : possible;
  memset(&result, 0, sizeof result);
  kcp_dataset_set_scale(reference, 0);
  kcp_dataset_set_scale(query, 0);
  enum kcp_status status = row->supports(&job, &error);
  if (status == KCP_OK) status = kcp_execute(&job, &result, &answer, &error);
  if (status == KCP_BAD_INPUT && may_refuse(row, request, problem) && error.message[0] != '\0') {
    ++refused;
    kcp_result_free(&result);
    return;
  }
  if (status != KCP_OK) fail_msg("%s: %s", describe(request, row, problem), error.message);
  bool same =
      answer.count == expected_count && (job.scale_exponent == 0 || problem->oracle_scale != 0);
  for (uint64_t i = 0; same && i < expected_count; ++i)
    same = same_pair(&answer.pairs[i], &expected[i], rescaling(problem, job.scale_exponent));
  if (!same)
    fail_msg("%s: another answer (%llu pairs for %llu, scale 2^%d)",
             describe(request, row, problem), (unsigned long long)answer.count,
             (unsigned long long)expected_count, job.scale_exponent);
  ++compared;
  bytes_read = result.samples[result.sample_count - 1].bytes_read;
  free(answer.pairs);
  kcp_result_free(&result);
}

/* Partition sizes with short last partitions and borders everywhere, but not too many partitions.
 */
static uint64_t choose_partition(uint64_t count, uint64_t *random) {
  uint64_t choices[] = {0,
                        count,
                        count + 1,
                        count > 1 ? count - 1 : 1,
                        count / 3 + 1,
                        count <= 2000 ? 64 : 0,
                        count <= 200 ? 7 : 0,
                        count <= 20 ? 1 : 0};
  return choices[random_below(random, sizeof choices / sizeof choices[0])];
}

static uint64_t choose(const uint64_t *choices, size_t count, uint64_t *random) {
  return choices[random_below(random, count)];
}

static void choose_parameters(struct kcp_request *request, const struct problem *problem,
                              uint64_t *random) {
  static const uint64_t groups[] = {0, 1, 3, 16}, streams[] = {0, 1, 3}, threads[] = {0, 32, 96};
  const struct point_set *query = problem->question.self ? &problem->reference : &problem->query;
  uint64_t slices[] = {0, 1, 3, problem->reference.count + 1};
  request->d1_partition = choose_partition(problem->reference.count, random);
  request->d2_partition = choose_partition(query->count, random);
  request->subpartitions = choose(slices, 4, random);
  request->points_per_thread = choose(groups, 4, random);
  request->streams = choose(streams, 3, random);
  request->block_threads = choose(threads, 3, random);
}

static struct kcp_request make_request(const struct problem *problem) {
  static const enum kcp_metric_kind kinds[] = {KCP_L1, KCP_L2, KCP_LINF, KCP_LP};
  struct kcp_request request = kcp_request_defaults();
  request.k = problem->question.k;
  request.metric.kind = kinds[problem->question.metric];
  request.metric.power = problem->question.power;
  request.self = problem->question.self;
  request.max_distance = problem->question.max_distance;
  /* The driver fails when a second run on the same state gives another answer. */
  request.runs = problem->reference.count * problem->query.count <= 100000 ? 2 : 1;
  return request;
}

/* Every row in every variant on one problem. memory > 0 caps it instead of choosing partitions. */
static void check_all(const struct problem *problem, uint64_t memory, uint64_t *random) {
  uint64_t room = problem->question.k;
  uint64_t all = problem->reference.count *
                 (problem->question.self ? problem->reference.count : problem->query.count);
  struct oracle_pair *expected = malloc(((room < all ? room : all) + 1) * sizeof *expected);
  struct problem bounded = *problem;
  if (bounded.question.k > all) bounded.question.k = all + 1;
  uint64_t count = ask_oracle(&bounded, expected);
  struct kcp_dataset *reference = open_points(&problem->reference, problem->format, "reference");
  struct kcp_dataset *query = reference;
  if (!problem->question.self) query = open_points(&problem->query, problem->format, "query");
  for (const struct kcp_algorithm *row = kcp_algorithms; row->name != NULL; ++row) {
    if (!is_tested(row)) continue;
    bool has_buffers = strcmp(row->buffers, "-") != 0;
    for (int variant = 0; variant < (has_buffers ? 8 : 1); ++variant) {
      struct kcp_request request = make_request(problem);
      request.buffer = variant & 1 ? KCP_CHOOSE_HEAP : KCP_CHOOSE_LIST;
      request.kernel = variant & 2 ? KCP_KERNEL_PLAIN : KCP_KERNEL_TILED;
      request.order_d2 = variant & 4 ? KCP_ORDER_FILE : KCP_ORDER_X;
      if (memory > 0)
        request.memory_bytes = memory;
      else
        choose_parameters(&request, problem, random);
      check_one(row, &request, problem, reference, query, expected, count);
    }
  }
  if (query != reference) kcp_dataset_close(query);
  kcp_dataset_close(reference);
  free(expected);
}

static struct problem make_problem(enum shape shape, uint64_t n1, uint64_t n2, uint32_t dimensions,
                                   enum numbering numbering, uint64_t seed) {
  struct problem problem;
  memset(&problem, 0, sizeof problem);
  problem.reference = points_make(shape, n1, dimensions, seed);
  problem.query = points_make(shape, n2, dimensions, seed + 1000);
  points_number(&problem.reference, numbering, seed);
  points_number(&problem.query, numbering, seed + 1);
  problem.format = dimensions == 3 ? FILE_BIN : numbering == IDS_ASCENDING ? FILE_NPY : FILE_CSV;
  problem.question.k = 20;
  problem.question.metric = ORACLE_L2;
  problem.question.max_distance = INFINITY;
  return problem;
}

static void free_problem(struct problem *problem) {
  points_free(&problem->reference);
  points_free(&problem->query);
}

static void check_and_free(struct problem *problem, uint64_t seed) {
  uint64_t random = seed;
  check_all(problem, 0, &random);
  free_problem(problem);
}

static void test_sizes(void **state) {
  static const uint64_t sizes[][2] = {{0, 0},    {0, 5},    {5, 0},    {1, 1},
                                      {8, 8},    {1, 500},  {500, 1},  {256, 255},
                                      {257, 64}, {513, 65}, {511, 512}};
  (void)state;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    struct problem problem =
        make_problem(SHAPE_UNIFORM, sizes[i][0], sizes[i][1], 3, IDS_RANDOM, 10 + i);
    check_and_free(&problem, i);
  }
}

static void test_shapes(void **state) {
  (void)state;
  for (int shape = 0; shape < SHAPE_COUNT; ++shape)
    for (uint32_t dimensions = 2; dimensions <= 3; ++dimensions) {
      struct problem problem = make_problem(shape, 700, 300, dimensions,
                                            (enum numbering)(shape % IDS_COUNT), 100 + shape);
      problem.question.k = shape % 2 ? 140 : 20;
      check_and_free(&problem, 31 * (uint64_t)shape + dimensions);
    }
}

static void test_constant_third_coordinate(void **state) {
  static const double heights[][2] = {{0, 0}, {2.5, 2.5}, {0, 3}};
  (void)state;
  for (int i = 0; i < 3; ++i) {
    struct problem problem = make_problem(SHAPE_UNIFORM, 600, 250, 3, IDS_ASCENDING, 200);
    points_set_coordinate(&problem.reference, 2, heights[i][0]);
    points_set_coordinate(&problem.query, 2, heights[i][1]);
    check_and_free(&problem, 40 + (uint64_t)i);
  }
  /* Constant but for one record: the last of either file. */
  for (int i = 0; i < 2; ++i) {
    struct problem problem = make_problem(SHAPE_UNIFORM, 2600, 1250, 3, IDS_ASCENDING, 200);
    points_set_coordinate(&problem.reference, 2, 1);
    points_set_coordinate(&problem.query, 2, 1);
    struct point_set *other = i == 0 ? &problem.reference : &problem.query;
    other->coordinates[3 * other->count - 1] = 1.5;
    check_and_free(&problem, 43 + (uint64_t)i);
  }
}

static void test_numberings(void **state) {
  (void)state;
  for (int numbering = 0; numbering < IDS_COUNT; ++numbering) {
    struct problem problem = make_problem(SHAPE_GRID, 400, 200, 3, (enum numbering)numbering, 300);
    problem.question.k = 140;
    check_and_free(&problem, 50 + (uint64_t)numbering);
  }
}

/* The answer for k is a prefix of that for k + 1, also where ties are cut. */
static void test_k(void **state) {
  static const uint64_t ks[] = {1, 2, 3, 48, 49, 140, 141, 5000, 100000, UINT64_MAX};
  (void)state;
  for (size_t i = 0; i < sizeof ks / sizeof ks[0]; ++i) {
    struct problem problem = make_problem(SHAPE_GRID, 150, 120, 3, IDS_RANDOM, 400);
    problem.question.k = ks[i];
    check_and_free(&problem, 60 + i);
  }
}

static void test_metrics(void **state) {
  static const struct {
    enum oracle_metric metric;
    unsigned power;
  } metrics[] = {{ORACLE_L1, 0}, {ORACLE_LINF, 0}, {ORACLE_LP, 3}, {ORACLE_LP, 16}};
  static const enum shape shapes[] = {SHAPE_UNIFORM, SHAPE_GRID, SHAPE_CLUSTERED};
  (void)state;
  for (size_t m = 0; m < 4; ++m)
    for (size_t s = 0; s < 3; ++s) {
      struct problem problem =
          make_problem(shapes[s], 500, 200, s == 0 ? 2 : 3, IDS_DESCENDING, 500 + m);
      problem.question.metric = metrics[m].metric;
      problem.question.power = metrics[m].power;
      check_and_free(&problem, 70 + m);
    }
}

static void test_dimensions(void **state) {
  static const uint32_t dimensions[] = {1, 4, 7, 128};
  (void)state;
  for (size_t i = 0; i < 4; ++i)
    for (int numbering = 0; numbering < 2; ++numbering) {
      struct problem problem = make_problem(SHAPE_UNIFORM, 300, 150, dimensions[i],
                                            numbering ? IDS_RANDOM : IDS_ASCENDING, 600 + i);
      check_and_free(&problem, 80 + i);
    }
  for (size_t i = 0; i < 4; ++i)
    for (int metric = ORACLE_L1; metric <= ORACLE_LP; ++metric) {
      if (metric == ORACLE_L2) continue;
      struct problem problem = make_problem(SHAPE_GRID, 130, 65, dimensions[i], IDS_RANDOM, 610);
      problem.question.metric = (enum oracle_metric)metric;
      problem.question.power = 3;
      check_and_free(&problem, 84 + i);
    }
}

/* Coordinates whose squares or powers leave the range of binary64. */
static void test_extreme_coordinates(void **state) {
  static const struct {
    double factor;
    enum oracle_metric metric;
    unsigned power;
  } cases[] = {{1e154, ORACLE_L2, 0},  {1e300, ORACLE_L2, 0},   {1e-170, ORACLE_L2, 0},
               {1e-290, ORACLE_L2, 0}, {1e30, ORACLE_LP, 16},   {1e-30, ORACLE_LP, 16},
               {1e300, ORACLE_L1, 0},  {1e-290, ORACLE_LINF, 0}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    struct problem problem = make_problem(SHAPE_GRID, 150, 90, 3, IDS_RANDOM, 620 + i);
    for (uint64_t j = 0; j < 150 * 3; ++j)
      problem.reference.coordinates[j] =
          (problem.reference.coordinates[j] + 0.125) * cases[i].factor;
    for (uint64_t j = 0; j < 90 * 3; ++j) problem.query.coordinates[j] *= cases[i].factor;
    problem.question.metric = cases[i].metric;
    problem.question.power = cases[i].power;
    problem.oracle_scale = -ilogb(cases[i].factor);
    check_and_free(&problem, 88 + i);
  }
}

static void test_self(void **state) {
  (void)state;
  for (int shape = 0; shape < SHAPE_COUNT; ++shape)
    for (int numbering = 0; numbering < IDS_COUNT; numbering += 2) {
      struct problem problem = make_problem(shape, 350, 1, 3, (enum numbering)numbering, 700);
      problem.question.self = true;
      problem.question.k = numbering ? 140 : 20;
      check_and_free(&problem, 90 + (uint64_t)shape);
    }
  for (uint64_t count = 0; count <= 3; ++count) {
    struct problem problem = make_problem(SHAPE_EQUAL, count, 1, 3, IDS_DUPLICATED, 710);
    problem.question.self = true;
    check_and_free(&problem, count);
  }
}

static void test_max_distance(void **state) {
  static const double distances[] = {0, 1, 1.4142135623730951, 2, 0.5};
  (void)state;
  for (size_t i = 0; i < 5; ++i)
    for (int metric = ORACLE_L1; metric <= ORACLE_LINF; ++metric) {
      struct problem problem = make_problem(SHAPE_GRID, 300, 200, 3, IDS_RANDOM, 800);
      problem.question.k = 3000;
      problem.question.metric = (enum oracle_metric)metric;
      problem.question.max_distance = distances[i];
      check_and_free(&problem, 100 + i);
    }
}

static void test_memory(void **state) {
  static const uint64_t sizes[] = {64 << 10, 256 << 10, 1 << 20};
  (void)state;
  for (size_t i = 0; i < 3; ++i) {
    struct problem problem = make_problem(SHAPE_UNIFORM, 3000, 2000, 3, IDS_RANDOM, 900);
    uint64_t random = i, before = compared;
    check_all(&problem, sizes[i], &random);
    assert_true(compared > before); /* some algorithm fits */
    free_problem(&problem);
  }
}

/* At the k-th distance, one id of D1 has a few partners, of the largest ids of D2, and the next id
 * more than there is memory for: a hundred points have it. Either file is the larger one. */
static void test_ties_of_one_id(void **state) {
  static const uint64_t sizes[][2] = {{101, 3020}, {3101, 3020}};
  (void)state;
  for (int i = 0; i < 2; ++i) {
    uint64_t n1 = sizes[i][0], n2 = sizes[i][1];
    struct problem problem = make_problem(SHAPE_EQUAL, n1, n2, 3, IDS_ASCENDING, 910);
    for (uint64_t p = 0; p < n1; ++p) {
      problem.reference.ids[p] = p == 0 ? 1 : p <= 100 ? 2 : p;
      problem.reference.coordinates[3 * p] = p == 0 ? 5 : p <= 100 ? 7 : 100 + (double)p;
    }
    for (uint64_t p = 0; p < n2; ++p) problem.query.coordinates[3 * p] = p < 3000 ? 7 : 5;
    points_set_coordinate(&problem.reference, 1, 1);
    points_set_coordinate(&problem.query, 1, 1);
    problem.question.k = 140;
    uint64_t random = 7;
    check_all(&problem, 1 << 20, &random);
    free_problem(&problem);
  }
}

/* So many held points are near others that they cannot be kept at once: they are held in parts. */
static void test_held_in_parts(void **state) {
  static const enum shape shapes[] = {SHAPE_EQUAL, SHAPE_GRID};
  (void)state;
  for (int i = 0; i < 2; ++i)
    for (int self = 0; self < 2; ++self) {
      struct problem problem = make_problem(shapes[i], 2600, 2500, 3, IDS_RANDOM, 920);
      problem.question.k = 140;
      problem.question.self = self == 1;
      uint64_t random = 8;
      check_all(&problem, 1 << 20, &random);
      free_problem(&problem);
    }
}

/* A guess from small samples, within which nearly every point is near another: it is lowered before
 * too many points to keep are near the survivors, and both files are read once. */
static void test_files_are_read_once(void **state) {
  (void)state;
  const struct kcp_algorithm *row = kcp_algorithms;
  while (row->name != NULL && strcmp(row->name, "global-threshold") != 0) ++row;
  if (!is_tested(row)) return;
  struct problem problem = make_problem(SHAPE_UNIFORM, 40000, 6000, 3, IDS_RANDOM, 930);
  points_set_coordinate(&problem.reference, 2, 0);
  points_set_coordinate(&problem.query, 2, 0);
  problem.question.k = 1;
  struct oracle_pair expected;
  assert_int_equal(ask_oracle(&problem, &expected), 1);
  struct kcp_dataset *reference = open_points(&problem.reference, problem.format, "reference");
  struct kcp_dataset *query = open_points(&problem.query, problem.format, "query");
  struct kcp_request request = make_request(&problem);
  request.memory_bytes = 1 << 20;
  check_one(row, &request, &problem, reference, query, &expected, 1);
  assert_int_equal(bytes_read, 46000 * 32);
  kcp_dataset_close(query);
  kcp_dataset_close(reference);
  free_problem(&problem);
}

/* The same pairs with their columns swapped when the files are. */
static void test_swapped_files(void **state) {
  (void)state;
  struct problem problem = make_problem(SHAPE_CENTRED, 300, 200, 3, IDS_RANDOM, 1000);
  struct oracle_pair *pairs = malloc(20 * sizeof *pairs), *swapped = malloc(20 * sizeof *swapped);
  assert_int_equal(ask_oracle(&problem, pairs), 20);
  struct problem other = problem;
  other.reference = problem.query;
  other.query = problem.reference;
  assert_int_equal(ask_oracle(&other, swapped), 20);
  for (int i = 0; i < 20; ++i) {
    assert_true(pairs[i].id1 == swapped[i].id2 && pairs[i].id2 == swapped[i].id1);
  }
  uint64_t random = 5;
  check_all(&problem, 0, &random);
  check_all(&other, 0, &random);
  free_problem(&problem);
  free(pairs);
  free(swapped);
}

/* All points of each set at one place, the sets apart or not: the answer is known, and it comes in
 * about the time of distinct points. Brute force is left out where its n1 * n2 distances are too
 * many. */
static void check_equal_points(uint64_t count, double apart, bool by_brute_force) {
  struct problem problem = make_problem(SHAPE_EQUAL, count, count, 3, IDS_DESCENDING, 1100);
  struct oracle_pair expected[140];
  problem.question.k = 140;
  for (uint64_t i = 0; i < count; ++i) problem.query.coordinates[3 * i] += apart;
  double gap = problem.query.coordinates[0] - problem.reference.coordinates[0];
  for (uint64_t i = 0; i < 140; ++i) expected[i] = (struct oracle_pair){gap * gap, 0, i};
  struct kcp_dataset *reference = open_points(&problem.reference, FILE_BIN, "reference");
  struct kcp_dataset *query = open_points(&problem.query, FILE_BIN, "query");
  for (const struct kcp_algorithm *row = kcp_algorithms; row->name != NULL; ++row) {
    if (!is_tested(row) || (!by_brute_force && strncmp(row->name, "dbf", 3) == 0)) continue;
    for (int heap = 0; heap < 2; ++heap) {
      struct kcp_request request = make_request(&problem);
      request.buffer = heap ? KCP_CHOOSE_HEAP : KCP_CHOOSE_LIST;
      clock_t begin = clock(); /* of the processor: other work does not count */
      check_one(row, &request, &problem, reference, query, expected, 140);
      assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 20);
    }
  }
  kcp_dataset_close(reference);
  kcp_dataset_close(query);
  free_problem(&problem);
}

static void test_many_equal_points(void **state) {
  (void)state;
  check_equal_points(6000, 0, true);
  check_equal_points(6000, 1, true);
  check_equal_points(100000, 0, false);
  check_equal_points(100000, 1, false);
}

static void test_random_problems(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    uint64_t random = seed_at_work = seed;
    uint64_t largest = seed % 4 == 0 ? 400 : 60;
    uint32_t dimensions = 1 + (uint32_t)random_below(&random, 4);
    struct problem problem =
        make_problem((enum shape)random_below(&random, SHAPE_TINY), random_below(&random, largest),
                     random_below(&random, largest), dimensions,
                     (enum numbering)random_below(&random, IDS_COUNT), seed);
    problem.question.k = 1 + random_below(&random, 200);
    problem.question.metric = (enum oracle_metric)random_below(&random, 4);
    problem.question.power = 3 + (unsigned)random_below(&random, 3);
    problem.question.self = random_below(&random, 4) == 0;
    if (random_below(&random, 3) == 0 && problem.reference.count > 0 && problem.query.count > 0)
      problem.question
          .max_distance = /* of some pair in x: for some shapes exactly that of others */
          fabs(problem.reference.coordinates[0] - problem.query.coordinates[0]);
    check_and_free(&problem, seed);
  }
  seed_at_work = 0;
}

int main(void) {
  const char *name = getenv("KCP_TEST_BACKEND");
  struct kcp_error error;
  backend = name != NULL && strcmp(name, "cuda") == 0 ? kcp_backend_cuda() : kcp_backend_cpu();
  if (backend->probe(0, &device, &error) != KCP_OK) {
    printf("skipped: %s\n", error.message);
    return SKIPPED;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes),
                                     cmocka_unit_test(test_shapes),
                                     cmocka_unit_test(test_numberings),
                                     cmocka_unit_test(test_constant_third_coordinate),
                                     cmocka_unit_test(test_k),
                                     cmocka_unit_test(test_metrics),
                                     cmocka_unit_test(test_dimensions),
                                     cmocka_unit_test(test_extreme_coordinates),
                                     cmocka_unit_test(test_self),
                                     cmocka_unit_test(test_max_distance),
                                     cmocka_unit_test(test_memory),
                                     cmocka_unit_test(test_ties_of_one_id),
                                     cmocka_unit_test(test_held_in_parts),
                                     cmocka_unit_test(test_files_are_read_once),
                                     cmocka_unit_test(test_swapped_files),
                                     cmocka_unit_test(test_many_equal_points),
                                     cmocka_unit_test(test_random_problems)};
  int failed =
      cmocka_run_group_tests_name("parity", tests, points_folder_make, points_folder_remove);
  printf("%llu answers compared on %s, %llu configurations refused with a reason\n",
         (unsigned long long)compared, backend->name, (unsigned long long)refused);
  return failed;
}

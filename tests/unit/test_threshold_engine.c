/* The engine of the global-threshold search by itself: nothing near is filtered out, joins find
 * exactly the pairs of their kind, and room, ids and repeated passes are as the contract says.
 *
 * KCP_TEST_BACKEND=cuda runs it on a GPU; without one the exit code 77 tells CTest to skip. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kcp/backend.h"
#include "kcp/threshold_search.h"

#define SKIPPED 77
#define BLOCK 256

static const struct kcp_backend *backend;
static struct kcp_device_info device;

/* Points record after record, d values each. */
struct set {
  uint64_t count;
  uint32_t dimensions;
  double *values;
};

struct bench {
  struct kcp_threshold_plan plan;
  const struct kcp_threshold_engine *engine;
  struct kcp_threshold_engine_state *state;
  const struct set *held, *streamed;
};

/* Whole numbers when `spread` is set, for ties; else [0,1). */
static struct set make_set(uint64_t count, uint32_t dimensions, int spread, uint64_t seed) {
  struct set set = {count, dimensions, malloc((count * dimensions + 1) * sizeof(double))};
  for (uint64_t i = 0; i < count * dimensions; ++i) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    double unit = (double)(seed >> 11) * 0x1p-53;
    set.values[i] = spread > 0 ? floor(unit * spread) : unit;
  }
  return set;
}

/* Sums of squares, or the greatest difference; written apart from kcp/metric.h. */
static double rank_between(const struct bench *bench, uint64_t h, uint64_t q) {
  uint32_t d = bench->plan.dimensions;
  double sum = 0, greatest = 0;
  for (uint32_t j = 0; j < d; ++j) {
    double difference = bench->held->values[h * d + j] - bench->streamed->values[q * d + j];
    sum += difference * difference;
    greatest = fmax(greatest, fabs(difference));
  }
  return bench->plan.metric.kind == KCP_LINF ? greatest : sum;
}

static uint64_t count_within(const struct bench *bench, uint64_t first, uint64_t last,
                             double rank) {
  uint64_t count = 0;
  for (uint64_t q = first; q < last; ++q)
    for (uint64_t h = 0; h < bench->held->count; ++h)
      count += rank_between(bench, h, q) <= rank && (!bench->plan.self || h < q);
  return count;
}

static void check(enum kcp_status status, const struct kcp_error *error) {
  if (status != KCP_OK) fail_msg("%s", error->message);
}

static void fill(const struct set *set, uint64_t first, uint64_t count, struct kcp_points *block) {
  block->count = count;
  for (uint64_t i = 0; i < count; ++i) {
    block->ids[i] = first + i;
    for (uint32_t j = 0; j < set->dimensions; ++j)
      kcp_points_column(block, j)[i] = set->values[(first + i) * set->dimensions + j];
  }
}

static void load_held(struct bench *bench) {
  struct kcp_error error;
  struct kcp_points *block;
  check(bench->engine->clear_held(bench->state, &error), &error);
  for (uint64_t first = 0, turn = 0; first < bench->held->count; first += BLOCK, ++turn) {
    uint64_t rest = bench->held->count - first;
    check(bench->engine->block(bench->state, turn % 2, &block, &error), &error);
    fill(bench->held, first, rest < BLOCK ? rest : BLOCK, block);
    check(bench->engine->append_held(bench->state, turn % 2, first, &error), &error);
  }
}

/* Streamed records first .. last - 1 through the filter. */
static void filter(struct bench *bench, uint64_t first, uint64_t last) {
  struct kcp_error error;
  struct kcp_points *block;
  for (uint32_t turn = 0; first < last; first += BLOCK, ++turn) {
    uint64_t count = last - first < BLOCK ? last - first : BLOCK;
    check(bench->engine->block(bench->state, turn % 2, &block, &error), &error);
    fill(bench->streamed, first, count, block);
    check(bench->engine->filter(bench->state, turn % 2, first, &error), &error);
  }
}

static void begin_with_room(struct bench *bench, const struct set *held, const struct set *streamed,
                            enum kcp_metric_kind metric, uint64_t pair_capacity,
                            uint64_t kept_capacity) {
  struct kcp_error error;
  memset(bench, 0, sizeof *bench);
  bench->held = held;
  bench->streamed = streamed;
  bench->plan = (struct kcp_threshold_plan){.metric = {.kind = metric},
                                            .self = held == streamed,
                                            .dimensions = held->dimensions,
                                            .k = pair_capacity / 2,
                                            .held_capacity = held->count,
                                            .kept_capacity = kept_capacity,
                                            .block_capacity = BLOCK,
                                            .survivor_capacity = streamed->count + BLOCK,
                                            .pair_capacity = pair_capacity,
                                            .held_sample = kept_capacity,
                                            .streamed_sample = streamed->count};
  bench->engine = backend->threshold;
  check(bench->engine->create(&bench->plan, &device, &bench->state, &error), &error);
  check(bench->engine->reset(bench->state, bench->plan.dimensions, &error), &error);
  load_held(bench);
}

static void begin(struct bench *bench, const struct set *held, const struct set *streamed,
                  enum kcp_metric_kind metric, uint64_t pair_capacity) {
  begin_with_room(bench, held, streamed, metric, pair_capacity, held->count);
}

static void end(struct bench *bench) {
  bench->engine->destroy(bench->state);
}

static void mark(struct bench *bench, double rank) {
  struct kcp_error error;
  check(bench->engine->mark(bench->state, rank, &error), &error);
}

static void reduce(struct bench *bench, double rank) {
  struct kcp_error error;
  bool fits = false;
  check(bench->engine->reduce(bench->state, rank, &fits, &error), &error);
  assert_true(fits);
}

static uint64_t join(struct bench *bench, double rank, enum kcp_join_kind kind) {
  struct kcp_error error;
  uint64_t found = 0;
  check(bench->engine->join(bench->state, rank, kind, &found, &error), &error);
  return found;
}

static void truncate_pairs(struct bench *bench, uint64_t count) {
  struct kcp_error error;
  check(bench->engine->truncate_pairs(bench->state, count, &error), &error);
}

/* The kept pairs are those within `rank` of streamed records first .. last - 1: as many, each with
 * the right rank, and none twice. */
static void check_pairs(struct bench *bench, uint64_t first, uint64_t last, double rank) {
  struct kcp_error error;
  uint64_t count = bench->engine->pair_count(bench->state), held = bench->held->count;
  struct kcp_record_pair *pairs = malloc((count + 1) * sizeof *pairs);
  unsigned char *seen = calloc(held * bench->streamed->count + 1, 1);
  assert_int_equal(count, count_within(bench, first, last, rank));
  check(bench->engine->download(bench->state, pairs, &error), &error);
  for (uint64_t i = 0; i < count; ++i) {
    assert_true(pairs[i].held < held && pairs[i].streamed >= first && pairs[i].streamed < last);
    assert_true(pairs[i].rank == rank_between(bench, pairs[i].held, pairs[i].streamed));
    assert_true(pairs[i].rank <= rank);
    if (bench->plan.self) assert_true(pairs[i].held < pairs[i].streamed);
    assert_int_equal(seen[pairs[i].streamed * held + pairs[i].held]++, 0);
  }
  free(pairs);
  free(seen);
}

static void test_nothing_near_is_lost(void **state) {
  (void)state;
  static const enum kcp_metric_kind metrics[] = {KCP_L2, KCP_LINF};
  static const double ranks[] = {0, 1e-5, 1e-3, 0.1};
  for (uint32_t d = 2; d <= 5; ++d)
    for (int m = 0; m < 2; ++m)
      for (int self = 0; self < 2; ++self) {
        struct set held = make_set(700, d, 0, d), streamed = make_set(900, d, 0, 10 + d);
        struct bench bench;
        begin(&bench, &held, self ? &held : &streamed, metrics[m], 700 * 900);
        for (size_t r = 0; r < sizeof ranks / sizeof ranks[0]; ++r) {
          truncate_pairs(&bench, 0);
          mark(&bench, ranks[r]);
          filter(&bench, 0, bench.streamed->count);
          reduce(&bench, ranks[r]);
          join(&bench, ranks[r], KCP_JOIN_WITHIN);
          check_pairs(&bench, 0, bench.streamed->count, ranks[r]);
        }
        end(&bench);
        free(held.values);
        free(streamed.values);
      }
}

static void test_far_points_are_filtered(void **state) {
  (void)state;
  struct kcp_error error;
  struct set held = make_set(500, 3, 0, 1), streamed = make_set(4000, 3, 0, 2);
  struct bench bench;
  uint64_t survivors;
  begin(&bench, &held, &streamed, KCP_L2, 1000);
  mark(&bench, 1e-6);
  filter(&bench, 0, streamed.count);
  check(bench.engine->survivors(bench.state, &survivors, &error), &error);
  assert_true(survivors < streamed.count / 4);
  end(&bench);
  free(held.values);
  free(streamed.values);
}

/* Directions of length 5 in a metric, along axes and diagonals. */
struct directions {
  enum kcp_metric_kind metric;
  double rank;
  int count;
  double ways[8][2];
};

static const struct directions directions[] = {
    {KCP_L1, 5, 6, {{5, 0}, {-5, 0}, {0, 5}, {0, -5}, {2, 3}, {-3, -2}}},
    {KCP_L2, 25, 8, {{5, 0}, {-5, 0}, {0, 5}, {0, -5}, {3, 4}, {-4, 3}, {-3, -4}, {4, -3}}},
    {KCP_LINF, 5, 8, {{5, 0}, {-5, 0}, {0, 5}, {0, -5}, {5, 5}, {-5, 5}, {-5, -5}, {5, -5}}}};

/* Pairs whose distance is the reach itself, in every direction, from points at every place of a
 * cell: cells are 80 wide at most, and the points' places in them differ by 5/256, so that some of
 * them see a reach that is a hundredth too short. The first two coordinates, or the last two. */
static void check_reach(const struct directions *to, uint32_t dimensions, uint32_t from) {
  const uint64_t points = 4096;
  const uint64_t strides[] = {1, 7, 13};
  uint64_t ways = (uint64_t)to->count, d = dimensions;
  struct set held = make_set(points, dimensions, 0, 1);
  struct set streamed = make_set(points * ways, dimensions, 0, 1);
  struct bench bench;
  for (uint64_t i = 0; i < points; ++i)
    for (uint64_t j = 0; j < d; ++j) {
      double place = (double)i * 1024 + (double)(i * strides[j] % points) * 5 / 256;
      held.values[i * d + j] = place;
      for (uint64_t w = 0; w < ways; ++w)
        streamed.values[(w * points + i) * d + j] =
            place + (j >= from && j < from + 2 ? to->ways[w][j - from] : 0);
    }
  begin(&bench, &held, &streamed, to->metric, 2 * points * ways);
  mark(&bench, to->rank);
  filter(&bench, 0, streamed.count);
  reduce(&bench, to->rank);
  assert_int_equal(join(&bench, to->rank, KCP_JOIN_WITHIN), points * ways);
  end(&bench);
  free(held.values);
  free(streamed.values);
}

static void test_pairs_at_the_reach(void **state) {
  (void)state;
  for (size_t m = 0; m < sizeof directions / sizeof directions[0]; ++m) {
    check_reach(&directions[m], 2, 0);
    check_reach(&directions[m], 3, 1);
  }
}

/* More held points are near than there is room for, with a short and an endless rank; then fewer.
 */
static void test_no_room_for_held(void **state) {
  (void)state;
  static const double ranks[] = {0.01, 0x1p1023};
  struct set held = make_set(5000, 2, 0, 1), streamed = make_set(5000, 2, 0, 2);
  struct kcp_error error;
  struct bench bench;
  begin_with_room(&bench, &held, &streamed, KCP_L2, 1 << 20, 300);
  for (int r = 0; r < 2; ++r) {
    bool fits = true;
    mark(&bench, ranks[r]);
    filter(&bench, 0, 5000);
    check(bench.engine->reduce(bench.state, ranks[r], &fits, &error), &error);
    assert_false(fits);
    check(bench.engine->clear_survivors(bench.state, &error), &error);
  }
  mark(&bench, 1e-6);
  filter(&bench, 0, 50);
  reduce(&bench, 1e-6);
  join(&bench, 1e-6, KCP_JOIN_WITHIN);
  check_pairs(&bench, 0, 50, 1e-6);
  end(&bench);
  free(held.values);
  free(streamed.values);
}

/* With a rank beyond all reach every point survives. */
static void test_endless_rank(void **state) {
  (void)state;
  struct kcp_error error;
  struct set held = make_set(60, 3, 0, 1), streamed = make_set(70, 3, 0, 2);
  struct bench bench;
  uint64_t survivors;
  begin(&bench, &held, &streamed, KCP_L2, 60 * 70);
  mark(&bench, 0x1p1023);
  filter(&bench, 0, 70);
  check(bench.engine->survivors(bench.state, &survivors, &error), &error);
  assert_int_equal(survivors, 70);
  reduce(&bench, 0x1p1023);
  assert_int_equal(bench.engine->side_count(bench.state, KCP_SIDE_HELD), 60);
  assert_int_equal(join(&bench, 0x1p1023, KCP_JOIN_WITHIN), 60 * 70);
  check_pairs(&bench, 0, 70, 0x1p1023);
  end(&bench);
  free(held.values);
  free(streamed.values);
}

/* Several rounds of filter, reduce and join after one mark: few and many survivors in turn, and
 * ranks that fall. */
static void test_rounds_after_one_mark(void **state) {
  (void)state;
  static const uint64_t borders[] = {0, 40, 20000, 20010, 20500, 41000};
  static const double ranks[] = {4e-4, 4e-4, 2e-4, 1e-4, 1e-4};
  struct kcp_error error;
  struct set held = make_set(400, 2, 0, 3), streamed = make_set(41000, 2, 0, 4);
  struct bench bench;
  begin(&bench, &held, &streamed, KCP_L2, 1 << 20);
  mark(&bench, ranks[0]);
  for (size_t round = 0; round < sizeof ranks / sizeof ranks[0]; ++round) {
    truncate_pairs(&bench, 0);
    filter(&bench, borders[round], borders[round + 1]);
    reduce(&bench, ranks[round]);
    join(&bench, ranks[round], KCP_JOIN_WITHIN);
    check_pairs(&bench, borders[round], borders[round + 1], ranks[round]);
    check(bench.engine->clear_survivors(bench.state, &error), &error);
  }
  end(&bench);
  free(held.values);
  free(streamed.values);
}

static void test_kinds_of_join(void **state) {
  (void)state;
  struct set held = make_set(300, 3, 6, 5), streamed = make_set(200, 3, 6, 6);
  struct bench bench;
  begin(&bench, &held, &streamed, KCP_L2, 300 * 200);
  mark(&bench, 5);
  filter(&bench, 0, 200);
  reduce(&bench, 5);
  assert_int_equal(join(&bench, 5, KCP_JOIN_BEFORE), count_within(&bench, 0, 200, 4.5));
  check_pairs(&bench, 0, 200, 4.5);
  join(&bench, 5, KCP_JOIN_TIES);
  check_pairs(&bench, 0, 200, 5);
  end(&bench);
  free(held.values);
  free(streamed.values);
}

static void test_out_of_room(void **state) {
  (void)state;
  struct set held = make_set(300, 3, 1, 5), streamed = make_set(200, 3, 1, 6);
  struct bench bench;
  begin(&bench, &held, &streamed, KCP_L2, 1000);
  mark(&bench, 0);
  filter(&bench, 0, 200);
  reduce(&bench, 0);
  assert_true(join(&bench, 0, KCP_JOIN_WITHIN) > 1000);
  assert_int_equal(bench.engine->pair_count(bench.state), 1000);
  truncate_pairs(&bench, 400);
  assert_true(join(&bench, 0, KCP_JOIN_TIES) > 600);
  assert_int_equal(bench.engine->pair_count(bench.state), 1000);
  truncate_pairs(&bench, 400);
  assert_int_equal(join(&bench, 0, KCP_JOIN_BEFORE), 0);
  assert_int_equal(bench.engine->pair_count(bench.state), 400);
  end(&bench);
  free(held.values);
  free(streamed.values);
}

/* Gives each point of a side the id top - record. */
static void number_side(struct bench *bench, enum kcp_side side, uint64_t top) {
  struct kcp_error error;
  uint64_t count = bench->engine->side_count(bench->state, side);
  uint64_t *ids = malloc((count + 1) * sizeof *ids);
  check(bench->engine->side_records(bench->state, side, ids, &error), &error);
  for (uint64_t i = 0; i < count; ++i) ids[i] = top - ids[i];
  check(bench->engine->set_ids(bench->state, side, ids, &error), &error);
  free(ids);
}

static uint64_t restricted_ties(struct bench *bench, enum kcp_side side, uint64_t first,
                                uint64_t last) {
  struct kcp_error error;
  truncate_pairs(bench, 0);
  check(bench->engine->restrict_ids(bench->state, side, first, last, &error), &error);
  return join(bench, 0, KCP_JOIN_TIES);
}

static void test_restricted_ids(void **state) {
  (void)state;
  struct kcp_error error;
  struct set held = make_set(100, 3, 1, 5), streamed = make_set(80, 3, 1, 6);
  struct bench bench;
  begin(&bench, &held, &streamed, KCP_L2, 100 * 80);
  mark(&bench, 0);
  filter(&bench, 0, 80);
  reduce(&bench, 0);
  number_side(&bench, KCP_SIDE_HELD, UINT64_MAX);
  number_side(&bench, KCP_SIDE_STREAMED, 1000);
  assert_int_equal(restricted_ties(&bench, KCP_SIDE_STREAMED, 0, 1000 - 70), 10 * 80 + 2 * 100);
  assert_int_equal(restricted_ties(&bench, KCP_SIDE_STREAMED, 0, 920), 0);
  assert_int_equal(restricted_ties(&bench, KCP_SIDE_STREAMED, 0, 921), 100);
  assert_int_equal(restricted_ties(&bench, KCP_SIDE_HELD, 0, UINT64_MAX - 97), 3);
  assert_int_equal(restricted_ties(&bench, KCP_SIDE_HELD, 0, UINT64_MAX), 100);
  assert_int_equal(restricted_ties(&bench, KCP_SIDE_STREAMED, 925, 930), 6 * 100);
  check(bench.engine->clear_survivors(bench.state, &error), &error);
  filter(&bench, 0, 80);
  reduce(&bench, 0); /* forgets ids and limits */
  truncate_pairs(&bench, 0);
  assert_int_equal(join(&bench, 0, KCP_JOIN_WITHIN), 100 * 80);
  end(&bench);
  free(held.values);
  free(streamed.values);
}

/* Within one set, ties come with the smaller id streamed; ids here descend. */
static void test_ties_within_one_set(void **state) {
  (void)state;
  struct kcp_error error;
  struct kcp_record_pair pairs[90];
  struct set set = make_set(10, 3, 1, 5);
  struct bench bench;
  begin(&bench, &set, &set, KCP_L2, 90);
  mark(&bench, 0);
  filter(&bench, 0, 10);
  reduce(&bench, 0);
  assert_int_equal(join(&bench, 0, KCP_JOIN_WITHIN), 45);
  number_side(&bench, KCP_SIDE_HELD, 9);
  number_side(&bench, KCP_SIDE_STREAMED, 9);
  assert_int_equal(restricted_ties(&bench, KCP_SIDE_STREAMED, 0, 1), 9 + 8);
  check(bench.engine->download(bench.state, pairs, &error), &error);
  for (int i = 0; i < 17; ++i) assert_true(pairs[i].streamed > pairs[i].held);
  end(&bench);
  free(set.values);
}

/* Without set_ids, ties go by records; so do the first pairs, where the engine selects them. */
static void test_ties_by_records(void **state) {
  (void)state;
  struct kcp_error error;
  for (int self = 0; self < 2; ++self) {
    struct set held = make_set(300, 3, 1, 5), streamed = make_set(200, 3, 1, 6);
    struct kcp_record_pair pairs[8000];
    struct bench bench;
    uint64_t count = 0;
    begin(&bench, &held, self ? &held : &streamed, KCP_L2, 16000);
    mark(&bench, 0);
    filter(&bench, 0, bench.streamed->count);
    reduce(&bench, 0);
    uint64_t expected = self ? 299 + 298 + 297 : 3 * 300;
    assert_int_equal(restricted_ties(&bench, KCP_SIDE_STREAMED, 0, 2), expected);
    assert_int_equal(restricted_ties(&bench, KCP_SIDE_STREAMED, 2, 2), self ? 297 : 300);
    assert_int_equal(restricted_ties(&bench, KCP_SIDE_STREAMED, 0, 39),
                     self ? 40 * 300 - 40 * 41 / 2 : 40 * 300);
    if (bench.engine->take_first != NULL) {
      check(bench.engine->take_first(bench.state, KCP_SIDE_STREAMED, pairs, &count, &error),
            &error);
      assert_int_equal(count, 8000);
      assert_int_equal(bench.engine->pair_count(bench.state), 0);
      for (uint64_t i = 0, a = 0, b = self ? 1 : 0; i < count; ++i) {
        assert_int_equal(self ? pairs[i].held : pairs[i].streamed, a);
        assert_int_equal(self ? pairs[i].streamed : pairs[i].held, b);
        if (++b == 300) ++a, b = self ? a + 1 : 0;
      }
    }
    end(&bench);
    free(held.values);
    free(streamed.values);
  }
}

static int compare_doubles(const void *a, const void *b) {
  double left = *(const double *)a, right = *(const double *)b;
  return left < right ? -1 : left > right;
}

/* All ranks between the sets, ascending; the caller frees them. */
static double *sorted_ranks(const struct bench *bench) {
  uint64_t held = bench->held->count, count = held * bench->streamed->count;
  double *ranks = malloc(count * sizeof *ranks);
  for (uint64_t i = 0; i < count; ++i) ranks[i] = rank_between(bench, i % held, i / held);
  qsort(ranks, count, sizeof *ranks, compare_doubles);
  return ranks;
}

static void test_ranks_of_kept_pairs(void **state) {
  (void)state;
  struct kcp_error error;
  const uint64_t count = 400 * 300;
  struct set held = make_set(400, 3, 0, 7), streamed = make_set(300, 3, 0, 8);
  struct bench bench;
  begin(&bench, &held, &streamed, KCP_L2, count);
  double *ranks = sorted_ranks(&bench);
  mark(&bench, 4);
  filter(&bench, 0, 300);
  reduce(&bench, 4);
  assert_int_equal(join(&bench, 4, KCP_JOIN_WITHIN), count);
  const uint64_t wanted[] = {1, 2, 77, count / 2, count};
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; ++i) {
    double rank = -1;
    check(bench.engine->rank_of(bench.state, wanted[i], &rank, &error), &error);
    assert_true(rank == ranks[wanted[i] - 1]);
  }
  check(bench.engine->drop_beyond(bench.state, ranks[999], &error), &error);
  check_pairs(&bench, 0, 300, ranks[999]);
  double rank = -1;
  check(bench.engine->rank_of(bench.state, 1000, &rank, &error), &error);
  assert_true(rank == ranks[999]);
  free(ranks);
  end(&bench);
  free(held.values);
  free(streamed.values);
}

/* With few points all sampled pairs are ranked; the guess is the wanted rank, a bit rounded up. */
static void test_guess(void **state) {
  (void)state;
  struct kcp_error error;
  struct set held = make_set(200, 3, 0, 9), streamed = make_set(100, 3, 0, 10);
  struct kcp_points sample;
  struct bench bench;
  begin(&bench, &held, &streamed, KCP_L2, 1000);
  double *ranks = sorted_ranks(&bench);
  check(kcp_points_allocate(100, 3, &sample, &error), &error);
  fill(&streamed, 0, 100, &sample);
  check(bench.engine->load_sample(bench.state, &sample, &error), &error);
  assert_int_equal(bench.engine->held_sampled(bench.state), 200);
  const uint64_t wanted[] = {1, 140, 20000};
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; ++i) {
    double rank = -1;
    check(bench.engine->guess(bench.state, wanted[i], &rank, &error), &error);
    assert_true(rank >= ranks[wanted[i] - 1] && rank <= 1.04 * ranks[wanted[i] - 1]);
  }
  double rank = -1;
  check(bench.engine->guess(bench.state, 20001, &rank, &error), &error);
  assert_true(isinf(rank));
  kcp_points_free(&sample);
  free(ranks);
  end(&bench);
  free(held.values);
  free(streamed.values);
}

int main(void) {
  const char *name = getenv("KCP_TEST_BACKEND");
  struct kcp_error error;
  backend = name != NULL && strcmp(name, "cuda") == 0 ? kcp_backend_cuda() : kcp_backend_cpu();
  if (backend->probe(0, &device, &error) != KCP_OK) {
    printf("skipped: %s\n", error.message);
    return SKIPPED;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nothing_near_is_lost), cmocka_unit_test(test_far_points_are_filtered),
      cmocka_unit_test(test_endless_rank),         cmocka_unit_test(test_rounds_after_one_mark),
      cmocka_unit_test(test_kinds_of_join),        cmocka_unit_test(test_out_of_room),
      cmocka_unit_test(test_restricted_ids),       cmocka_unit_test(test_ties_within_one_set),
      cmocka_unit_test(test_ranks_of_kept_pairs),  cmocka_unit_test(test_guess),
      cmocka_unit_test(test_pairs_at_the_reach),   cmocka_unit_test(test_no_room_for_held),
      cmocka_unit_test(test_ties_by_records)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Common influence regions against brute force written here: every method, on the grid and with
 * cells split.
 *
 * KCP_TEST_BACKEND=cuda runs it on a GPU; without one the exit code 77 tells CTest to skip. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/influence.h"
#include "kcp/random.h"

#define SKIPPED 77

static const struct kcp_backend *backend;
static struct kcp_device_info device;

/* Where sites lie. */
enum layout { UNIFORM, LATTICE, COINCIDENT, ONE_PLACE, CORNER };
enum site_weights { EQUAL, WHOLE, REAL };
enum densities { PLAIN, RASTER };

struct scene {
  const char *name;
  uint64_t counts[2];   /* n, m */
  uint64_t selected[2]; /* n', m' */
  uint64_t k[2];
  uint32_t rows, columns;
  enum layout layout;
  enum site_weights weights;
  enum densities density;
};

static const struct scene scenes[] = {
    {"one pair", {1, 1}, {1, 1}, {1, 1}, 1, 1, UNIFORM, EQUAL, PLAIN},
    {"one cell", {9, 7}, {9, 7}, {2, 3}, 1, 1, UNIFORM, WHOLE, PLAIN},
    {"one row", {12, 9}, {12, 9}, {3, 2}, 1, 37, UNIFORM, REAL, PLAIN},
    {"one column", {12, 9}, {5, 9}, {3, 2}, 41, 1, UNIFORM, REAL, RASTER},
    {"Voronoi regions", {20, 15}, {20, 15}, {1, 1}, 30, 40, UNIFORM, EQUAL, PLAIN},
    {"weighted", {40, 30}, {13, 7}, {5, 4}, 33, 47, UNIFORM, WHOLE, PLAIN},
    {"real weights over a raster", {40, 30}, {13, 7}, {5, 4}, 64, 32, UNIFORM, REAL, RASTER},
    {"ties", {36, 25}, {36, 25}, {4, 3}, 24, 24, LATTICE, EQUAL, PLAIN},
    {"weighted ties", {36, 25}, {36, 25}, {4, 3}, 24, 24, LATTICE, WHOLE, RASTER},
    {"coincident sites", {40, 30}, {40, 30}, {5, 4}, 32, 32, COINCIDENT, EQUAL, PLAIN},
    {"coincident sites of several weights",
     {40, 30},
     {20, 30},
     {5, 4},
     32,
     32,
     COINCIDENT,
     WHOLE,
     RASTER},
    {"all at one place", {30, 20}, {30, 20}, {7, 20}, 17, 19, ONE_PLACE, EQUAL, PLAIN},
    {"in a corner", {50, 40}, {50, 40}, {3, 6}, 40, 25, CORNER, WHOLE, PLAIN},
    {"k = n", {25, 20}, {10, 5}, {25, 20}, 21, 22, UNIFORM, WHOLE, RASTER},
    {"large k", {300, 260}, {200, 150}, {150, 120}, 12, 13, UNIFORM, WHOLE, PLAIN},
    {"many pairs", {300, 200}, {300, 200}, {9, 6}, 50, 60, UNIFORM, WHOLE, RASTER},
};
enum { SCENES = sizeof scenes / sizeof scenes[0] };

/* A scene in numbers. */
struct world {
  const struct scene *scene;
  struct kcp_points sites[2];
  bool *chosen[2];
  struct kcp_site_groups groups[2];
  struct kcp_raster raster;
  struct kcp_cell_weights weights;
  struct kcp_influence_plan plan;
};

static double draw(uint64_t seed, uint64_t i, uint32_t number) {
  return kcp_random_unit(kcp_random_pair(seed, 11, i, number).first);
}

static double site_weight(enum site_weights kind, uint64_t seed, uint64_t i) {
  if (kind == EQUAL) return 3;
  const double unit = draw(seed, i, 2);
  return kind == WHOLE ? 1 + floor(15 * unit) : 0.25 + unit;
}

static void place_sites(const struct scene *scene, int set, struct kcp_points *sites) {
  struct kcp_error error;
  const uint64_t count = scene->counts[set], seed = 5 + (uint64_t)set;
  assert_int_equal(kcp_points_allocate(count, 3, sites, &error), KCP_OK);
  sites->count = count;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t place = scene->layout == COINCIDENT ? i / 3 : i;
    double x = draw(seed, place, 0), y = draw(seed, place, 1);
    if (scene->layout == ONE_PLACE) x = y = 0.375;
    if (scene->layout == CORNER) x = x * x * x * x, y = y * y * y * y;
    if (scene->layout == LATTICE) {
      const uint64_t side = (uint64_t)sqrt((double)count);
      x = (double)(i % side) / (double)side;
      y = (double)(i / side) / (double)side;
    }
    sites->ids[i] = i;
    kcp_points_column(sites, 0)[i] = 2 * x - 1; /* the domain is [-1, 1] x [0, 1.5] */
    kcp_points_column(sites, 1)[i] = 1.5 * y;
    kcp_points_column(sites, 2)[i] = site_weight(scene->weights, seed, i / 2);
  }
}

static void make_raster(struct kcp_raster *raster) {
  *raster = (struct kcp_raster){.columns = 17, .rows = 11, .extent = {-1.25, -0.125, 0.875, 1.5}};
  raster->values = malloc(17 * 11 * sizeof *raster->values);
  for (uint64_t i = 0; i < 17 * 11; ++i) {
    const double unit = draw(77, i, 0);
    raster->values[i] = unit < 0.2 ? 0 : 1000 * unit;
  }
}

static void make_weights(struct world *world, uint32_t rows, uint32_t columns,
                         struct kcp_cell_weights *weights) {
  struct kcp_error error;
  const struct kcp_influence_grid grid = {.x0 = -1,
                                          .y0 = 0,
                                          .step_x = 2.0 / columns,
                                          .step_y = 1.5 / rows,
                                          .columns = columns,
                                          .rows = rows};
  const struct kcp_raster *raster = world->scene->density == RASTER ? &world->raster : NULL;
  assert_int_equal(kcp_cell_weights_make(&grid, raster, weights, &error), KCP_OK);
}

static void open_world(const struct scene *scene, enum kcp_influence_method method,
                       struct world *world) {
  struct kcp_error error;
  memset(world, 0, sizeof *world);
  world->scene = scene;
  make_raster(&world->raster);
  make_weights(world, scene->rows, scene->columns, &world->weights);
  world->plan.grid = world->weights.grid;
  world->plan.weights = &world->weights;
  world->plan.method = method;
  for (int set = 0; set < 2; ++set) {
    place_sites(scene, set, &world->sites[set]);
    world->chosen[set] = calloc(scene->counts[set], sizeof(bool));
    for (uint64_t i = 0; i < scene->selected[set]; ++i)
      world->chosen[set][i * scene->counts[set] / scene->selected[set]] = true;
    assert_int_equal(
        kcp_site_groups_make(&world->sites[set], world->chosen[set], &world->groups[set], &error),
        KCP_OK);
    world->plan.sets[set] = &world->groups[set];
    world->plan.k[set] = scene->k[set];
  }
}

static void close_world(struct world *world) {
  for (int set = 0; set < 2; ++set) {
    kcp_points_free(&world->sites[set]);
    kcp_site_groups_free(&world->groups[set]);
    free(world->chosen[set]);
  }
  kcp_raster_free(&world->raster);
  kcp_cell_weights_free(&world->weights);
}

/* --- brute force ------------------------------------------------------------------------------ */

/* Whether (x, y) lies in the region of site i: fewer than k are nearer. */
static bool is_in_region(const struct world *world, int set, uint64_t i, double x, double y) {
  const struct kcp_points *sites = &world->sites[set];
  const double *sx = kcp_points_column(sites, 0), *sy = kcp_points_column(sites, 1);
  const double *w = kcp_points_column(sites, 2);
  const double own = ((sx[i] - x) * (sx[i] - x) + (sy[i] - y) * (sy[i] - y)) / (w[i] * w[i]);
  uint64_t nearer = 0;
  for (uint64_t j = 0; j < sites->count; ++j)
    nearer += ((sx[j] - x) * (sx[j] - x) + (sy[j] - y) * (sy[j] - y)) / (w[j] * w[j]) < own;
  return nearer < world->scene->k[set];
}

/* What the cells weigh whose centre lies in the common region, for every pair of sites. */
static uint64_t *brute_force(const struct world *world, const struct kcp_cell_weights *weights) {
  const uint64_t n = world->scene->counts[0], m = world->scene->counts[1];
  const struct kcp_influence_grid *grid = &weights->grid;
  uint64_t *areas = calloc(n * m, sizeof *areas);
  bool *in_q = malloc(m * sizeof *in_q);
  for (uint32_t row = 0; row < grid->rows; ++row)
    for (uint32_t column = 0; column < grid->columns; ++column) {
      const double x = grid->x0 + (column + 0.5) * grid->step_x;
      const double y = grid->y0 + (row + 0.5) * grid->step_y;
      const uint64_t weight = weights->cells[(uint64_t)row * grid->columns + column];
      for (uint64_t j = 0; j < m; ++j) in_q[j] = is_in_region(world, 1, j, x, y);
      for (uint64_t i = 0; i < n; ++i) {
        if (!is_in_region(world, 0, i, x, y)) continue;
        for (uint64_t j = 0; j < m; ++j) areas[i * m + j] += in_q[j] ? weight : 0;
      }
    }
  free(in_q);
  return areas;
}

/* --- the engine ------------------------------------------------------------------------------- */

static struct kcp_influence_answer run_with(const struct world *world,
                                            const struct kcp_influence_goal *goal) {
  struct kcp_error error = {""};
  struct kcp_influence_search *search = NULL;
  struct kcp_influence_answer answer = {.depth = 0};
  struct kcp_measurement measurement = {0};
  const struct kcp_influence_engine *engine = backend->influence;
  if (engine->create(&world->plan, &device, &search, &error) != KCP_OK ||
      kcp_influence_run(engine, search, &world->plan, goal, &answer, &measurement, NULL, &error) !=
          KCP_OK)
    fail_msg("%s: %s", world->scene->name, error.message);
  engine->destroy(search);
  return answer;
}

static struct kcp_influence_answer run_grid(const struct world *world) {
  const struct kcp_influence_goal goal = {0};
  return run_with(world, &goal);
}

/* The sums of a pair of sites; zeros when it is not listed. */
static struct kcp_influence_sum sum_of(const struct world *world,
                                       const struct kcp_influence_answer *answer, uint64_t i,
                                       uint64_t j) {
  const struct kcp_influence_sum nothing = {0};
  const uint32_t p = world->groups[0].group_of[i], q = world->groups[1].group_of[j];
  uint64_t low = 0, high = answer->sums.count;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    const struct kcp_influence_sum *pair = &answer->sums.pairs[middle];
    if (pair->p < p || (pair->p == p && pair->q < q))
      low = middle + 1;
    else
      high = middle;
  }
  const struct kcp_influence_sum *pairs = answer->sums.pairs;
  if (low < answer->sums.count && pairs[low].p == p && pairs[low].q == q) return pairs[low];
  return nothing;
}

static void check_pairs(const struct world *world, const struct kcp_influence_answer *answer) {
  const uint64_t m = world->scene->counts[1];
  uint64_t *areas = brute_force(world, &world->weights);
  for (uint64_t i = 0; i < world->scene->counts[0]; ++i)
    for (uint64_t j = 0; j < m; ++j) {
      if (!world->chosen[0][i] || !world->chosen[1][j]) continue;
      const struct kcp_influence_sum sum = sum_of(world, answer, i, j);
      if (sum.area != areas[i * m + j] || sum.lower > sum.area || sum.upper < sum.area)
        fail_msg("%s: pair (%" PRIu64 ", %" PRIu64 "): %" PRIu64 " <= %" PRIu64 " <= %" PRIu64
                 ", area %" PRIu64,
                 world->scene->name, i, j, sum.lower, sum.area, sum.upper, areas[i * m + j]);
    }
  for (uint64_t pair = 0; pair < answer->sums.count; ++pair) {
    const struct kcp_influence_sum *sum = &answer->sums.pairs[pair];
    assert_true(world->groups[0].selected[sum->p] && world->groups[1].selected[sum->q]);
    assert_true(sum->upper > 0);
    if (pair > 0) assert_true(sum[-1].p < sum->p || (sum[-1].p == sum->p && sum[-1].q < sum->q));
  }
  free(areas);
}

static void test_areas_are_those_of_brute_force(void **state) {
  (void)state;
  for (int scene = 0; scene < SCENES; ++scene)
    for (int method = KCP_INFLUENCE_SPARSE; method <= KCP_INFLUENCE_PAIRWISE; ++method) {
      struct world world;
      open_world(&scenes[scene], (enum kcp_influence_method)method, &world);
      struct kcp_influence_answer answer = run_grid(&world);
      check_pairs(&world, &answer);
      free(answer.sums.pairs);
      close_world(&world);
    }
}

static void test_methods_give_the_same_sums(void **state) {
  (void)state;
  for (int scene = 0; scene < SCENES; ++scene) {
    struct world worlds[2];
    struct kcp_influence_answer answers[2];
    for (int method = 0; method < 2; ++method) {
      open_world(&scenes[scene], (enum kcp_influence_method)method, &worlds[method]);
      answers[method] = run_grid(&worlds[method]);
    }
    assert_int_equal(answers[0].sums.count, answers[1].sums.count);
    for (uint64_t pair = 0; pair < answers[0].sums.count; ++pair) {
      const struct kcp_influence_sum *a = &answers[0].sums.pairs[pair];
      const struct kcp_influence_sum *b = &answers[1].sums.pairs[pair];
      assert_true(a->p == b->p && a->q == b->q && a->area == b->area && a->lower == b->lower &&
                  a->upper == b->upper);
    }
    for (int method = 0; method < 2; ++method) {
      free(answers[method].sums.pairs);
      close_world(&worlds[method]);
    }
  }
}

static void test_bounds_hold_the_area_on_a_finer_grid(void **state) {
  (void)state;
  enum { FINER = 16 };
  const struct scene scene = {"finer", {30, 20}, {12, 9}, {4, 3}, 12, 10, UNIFORM, WHOLE, RASTER};
  struct world world;
  struct kcp_cell_weights finer;
  open_world(&scene, KCP_INFLUENCE_SPARSE, &world);
  make_weights(&world, FINER * scene.rows, FINER * scene.columns, &finer);
  uint64_t *areas = brute_force(&world, &finer);
  const double total = kcp_cell_weights_real(&finer, finer.total);
  const struct kcp_influence_goal goals[] = {{0},
                                             {.has_tolerance = true, .tolerance = 0.01 * total}};
  for (int goal = 0; goal < 2; ++goal) {
    struct kcp_influence_answer answer = run_with(&world, &goals[goal]);
    for (uint64_t i = 0; i < scene.counts[0]; ++i)
      for (uint64_t j = 0; j < scene.counts[1]; ++j) {
        if (!world.chosen[0][i] || !world.chosen[1][j]) continue;
        const struct kcp_influence_sum sum = sum_of(&world, &answer, i, j);
        const double area = kcp_cell_weights_real(&finer, areas[i * scene.counts[1] + j]);
        assert_true(kcp_cell_weights_real(&world.weights, sum.lower) <= area + 1e-12 * total);
        assert_true(kcp_cell_weights_real(&world.weights, sum.upper) >= area - 1e-12 * total);
      }
    free(answer.sums.pairs);
  }
  free(areas);
  kcp_cell_weights_free(&finer);
  close_world(&world);
}

static void test_tolerance_is_met(void **state) {
  (void)state;
  for (int scene = 0; scene < SCENES; ++scene) {
    struct world world;
    open_world(&scenes[scene], KCP_INFLUENCE_SPARSE, &world);
    const double total = kcp_cell_weights_real(&world.weights, world.weights.total);
    const struct kcp_influence_goal goal = {.has_tolerance = true, .tolerance = total / 200};
    struct kcp_influence_answer coarse = run_grid(&world), fine = run_with(&world, &goal);
    assert_true(fine.widest <= goal.tolerance);
    for (uint64_t i = 0; i < scenes[scene].counts[0]; ++i)
      for (uint64_t j = 0; j < scenes[scene].counts[1]; ++j) {
        if (!world.chosen[0][i] || !world.chosen[1][j]) continue;
        const struct kcp_influence_sum before = sum_of(&world, &coarse, i, j);
        const struct kcp_influence_sum after = sum_of(&world, &fine, i, j);
        assert_true(before.lower <= after.lower && after.lower <= after.area);
        assert_true(after.area <= after.upper && after.upper <= before.upper);
        assert_true(kcp_cell_weights_real(&world.weights, after.upper - after.lower) <=
                    goal.tolerance);
      }
    free(coarse.sums.pairs);
    free(fine.sums.pairs);
    close_world(&world);
  }
}

static void test_decisions_are_made(void **state) {
  (void)state;
  const struct scene scene = {"decide", {30, 20}, {12, 9}, {9, 8}, 12, 10, UNIFORM, WHOLE, RASTER};
  struct world world;
  open_world(&scene, KCP_INFLUENCE_SPARSE, &world);
  const double total = kcp_cell_weights_real(&world.weights, world.weights.total);
  const double thresholds[] = {total / 50, total / 20};
  for (int partners = 0; partners < 2; ++partners) {
    struct kcp_influence_goal goal = {
        .thresholds = thresholds, .threshold_count = 2, .partners = partners == 1};
    struct kcp_influence_answer open = run_with(&world, &goal);
    assert_true(open.undecided > 0);
    goal.decide = true;
    struct kcp_influence_answer decided = run_with(&world, &goal);
    assert_int_equal(decided.undecided, 0);
    assert_true(decided.depth > 0);
    for (uint64_t pair = 0; pair < decided.sums.count && partners == 0; ++pair)
      for (int t = 0; t < 2; ++t) {
        const struct kcp_influence_sum *sum = &decided.sums.pairs[pair];
        assert_true(kcp_cell_weights_real(&world.weights, sum->lower) >= thresholds[t] ||
                    kcp_cell_weights_real(&world.weights, sum->upper) < thresholds[t]);
      }
    free(open.sums.pairs);
    free(decided.sums.pairs);
  }
  close_world(&world);
}

static void test_whole_domain_with_k_of_all(void **state) {
  (void)state;
  struct scene scene = {"all", {25, 20}, {10, 5}, {25, 20}, 21, 22, COINCIDENT, WHOLE, RASTER};
  for (int method = 0; method < 2; ++method) {
    struct world world;
    open_world(&scene, (enum kcp_influence_method)method, &world);
    struct kcp_influence_answer answer = run_grid(&world);
    assert_int_equal(answer.sums.count,
                     world.groups[0].selected_count * world.groups[1].selected_count);
    for (uint64_t pair = 0; pair < answer.sums.count; ++pair) {
      assert_int_equal(answer.sums.pairs[pair].area, world.weights.total);
      assert_int_equal(answer.sums.pairs[pair].lower, world.weights.total);
      assert_int_equal(answer.sums.pairs[pair].upper, world.weights.total);
    }
    free(answer.sums.pairs);
    close_world(&world);
  }
}

static void test_nearest_regions_cover_the_domain_once(void **state) {
  (void)state;
  const struct scene scene = {"cover", {60, 1}, {60, 1}, {1, 1}, 50, 50, UNIFORM, WHOLE, RASTER};
  struct world world;
  open_world(&scene, KCP_INFLUENCE_SPARSE, &world);
  struct kcp_influence_answer answer = run_grid(&world);
  uint64_t area = 0, lower = 0, upper = 0;
  for (uint64_t pair = 0; pair < answer.sums.count; ++pair) {
    area += answer.sums.pairs[pair].area;
    lower += answer.sums.pairs[pair].lower;
    upper += answer.sums.pairs[pair].upper;
  }
  assert_int_equal(area, world.weights.total);
  assert_true(lower < area && area < upper);
  free(answer.sums.pairs);
  close_world(&world);
}

static void test_coincident_sites_share_their_region(void **state) {
  (void)state;
  /* Three at one place and one elsewhere; each of the three is nearest in the left half. */
  const double x[] = {-0.5, -0.5, -0.5, 0.5}, y[] = {0.75, 0.75, 0.75, 0.75};
  const struct scene scene = {"halves", {4, 1}, {4, 1}, {1, 1}, 8, 8, UNIFORM, EQUAL, PLAIN};
  struct world world;
  struct kcp_error error;
  open_world(&scene, KCP_INFLUENCE_SPARSE, &world);
  for (int i = 0; i < 4; ++i) {
    kcp_points_column(&world.sites[0], 0)[i] = x[i];
    kcp_points_column(&world.sites[0], 1)[i] = y[i];
  }
  kcp_site_groups_free(&world.groups[0]);
  assert_int_equal(kcp_site_groups_make(&world.sites[0], NULL, &world.groups[0], &error), KCP_OK);
  assert_int_equal(world.groups[0].count, 2);
  struct kcp_influence_answer answer = run_grid(&world);
  for (uint64_t i = 0; i < 4; ++i) {
    const struct kcp_influence_sum sum = sum_of(&world, &answer, i, 0);
    assert_int_equal(sum.area, world.weights.total / 2);
  }
  free(answer.sums.pairs);
  close_world(&world);
}

static void test_early_stop_keeps_the_partners(void **state) {
  (void)state;
  const struct scene scene = {"stop", {30, 12}, {12, 6}, {20, 9}, 24, 20, UNIFORM, WHOLE, PLAIN};
  struct world world;
  open_world(&scene, KCP_INFLUENCE_PAIRWISE, &world);
  struct kcp_influence_answer whole = run_grid(&world);
  const uint64_t threshold = world.weights.total / 10, q_count = world.groups[1].selected_count;
  world.plan.stop_below = threshold;
  struct kcp_influence_answer stopped = run_grid(&world);
  uint64_t partners = 0, failures = 0;
  for (uint64_t group = 0; group < world.groups[0].count; ++group) {
    uint64_t feasible[2] = {0, 0};
    for (uint64_t pair = 0; pair < whole.sums.count; ++pair)
      feasible[0] += whole.sums.pairs[pair].p == group && whole.sums.pairs[pair].area >= threshold;
    for (uint64_t pair = 0; pair < stopped.sums.count; ++pair)
      feasible[1] +=
          stopped.sums.pairs[pair].p == group && stopped.sums.pairs[pair].area >= threshold;
    assert_int_equal(feasible[0] == q_count, feasible[1] == q_count);
    partners += feasible[0] == q_count;
    failures += world.groups[0].selected[group] && feasible[0] < q_count;
  }
  assert_true(partners > 0 && failures > 0);
  free(whole.sums.pairs);
  free(stopped.sums.pairs);
  close_world(&world);
}

static void test_weights_of_cells_sum_to_the_raster(void **state) {
  (void)state;
  struct kcp_error error;
  struct kcp_raster raster;
  double total = 0;
  make_raster(&raster);
  for (int i = 0; i < 17 * 11; ++i) total += raster.values[i] * (2.125 / 17) * (1.625 / 11);
  const uint32_t sizes[][2] = {{1, 1}, {11, 17}, {22, 34}, {5, 3}, {64, 128}};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    struct kcp_cell_weights weights;
    const uint32_t rows = sizes[i][0], columns = sizes[i][1];
    const struct kcp_influence_grid grid = {-1.5, -0.5, 3.0 / columns, 2.5 / rows, columns, rows};
    assert_int_equal(kcp_cell_weights_make(&grid, &raster, &weights, &error), KCP_OK);
    assert_true(fabs(kcp_cell_weights_real(&weights, weights.total) - total) < 1e-12 * total);
    assert_int_equal(kcp_cell_weights_sum(&weights, 0, rows, 0, columns), weights.total);
    for (uint32_t row = 0; row < rows; ++row) {
      const struct kcp_cell cell = {0, 1, row, row + 1.0};
      uint64_t quarters[4];
      kcp_cell_weights_split(&weights, cell, weights.cells[(uint64_t)row * columns], quarters);
      assert_int_equal(quarters[0] + quarters[1] + quarters[2] + quarters[3],
                       weights.cells[(uint64_t)row * columns]);
    }
    kcp_cell_weights_free(&weights);
  }
  kcp_raster_free(&raster);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_weights_of_cells_sum_to_the_raster),
      cmocka_unit_test(test_areas_are_those_of_brute_force),
      cmocka_unit_test(test_methods_give_the_same_sums),
      cmocka_unit_test(test_bounds_hold_the_area_on_a_finer_grid),
      cmocka_unit_test(test_tolerance_is_met),
      cmocka_unit_test(test_decisions_are_made),
      cmocka_unit_test(test_whole_domain_with_k_of_all),
      cmocka_unit_test(test_nearest_regions_cover_the_domain_once),
      cmocka_unit_test(test_coincident_sites_share_their_region),
      cmocka_unit_test(test_early_stop_keeps_the_partners),
  };
  const char *wanted = getenv("KCP_TEST_BACKEND");
  const bool on_gpu = wanted != NULL && strcmp(wanted, "cuda") == 0;
  struct kcp_error error;
  backend = on_gpu ? kcp_backend_cuda() : kcp_backend_cpu();
  if (backend->probe(0, &device, &error) != KCP_OK) {
    fprintf(stderr, "skipped: %s\n", error.message);
    return SKIPPED;
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/influence_query.h"
#include "kcp/interrupt.h"

#define MOST_PAIRS (UINT64_C(1) << 27)
#define MOST_CELLS (UINT64_C(1) << 28)
#define WEIGHT_ERROR 1e-12 /* of the total, where weights of parts of cells are computed twice */

/* A set under check: its sites as they are in the file, and the chosen ones by id. */
struct set {
  const double *x, *y, *weight;
  uint64_t count, k;
  uint64_t chosen_count;
  uint64_t *chosen; /* places in the file, in the order of ids */
};

struct check {
  const struct kcp_influence_plan *plan;
  const struct kcp_influence_result *result;
  struct set sets[2];
  uint64_t parts;  /* a cell of the grid is parts x parts cells here */
  uint64_t *areas; /* chosen of P x chosen of Q, in units of weight */
};

static double rank_at(const struct set *set, uint64_t site, double x, double y) {
  const double dx = set->x[site] - x, dy = set->y[site] - y;
  return (dx * dx + dy * dy) / (set->weight[site] * set->weight[site]);
}

/* The k-th smallest, by Hoare's selection. */
static double kth_smallest(double *values, uint64_t count, uint64_t k) {
  int64_t low = 0, high = (int64_t)count - 1;
  const int64_t wanted = (int64_t)k - 1;
  while (low < high) {
    const double pivot = values[wanted];
    int64_t i = low, j = high;
    while (i <= j) {
      while (values[i] < pivot) ++i;
      while (values[j] > pivot) --j;
      if (i > j) break;
      const double value = values[i];
      values[i++] = values[j];
      values[j--] = value;
    }
    if (j < wanted) low = i;
    if (wanted < i) high = j;
  }
  return values[wanted];
}

/* The chosen sites in whose regions (x, y) lies, as numbers among the chosen; returns how many. */
static uint64_t find_regions(const struct set *set, double x, double y, double *ranks,
                             uint64_t *found) {
  uint64_t count = 0;
  for (uint64_t i = 0; i < set->count; ++i) ranks[i] = rank_at(set, i, x, y);
  const double kth = kth_smallest(ranks, set->count, set->k);
  for (uint64_t i = 0; i < set->chosen_count; ++i)
    if (rank_at(set, set->chosen[i], x, y) <= kth) found[count++] = i;
  return count;
}

/* The weight of a cell of the finer grid in units. */
static uint64_t units_at(const struct check *check, uint64_t row, uint64_t column) {
  const struct kcp_cell_weights *weights = check->plan->weights;
  const double part = 1.0 / (double)check->parts;
  if (check->parts == 1) return weights->cells[row * weights->grid.columns + column];
  const struct kcp_cell cell = {(double)column * part, ((double)column + 1) * part,
                                (double)row * part, ((double)row + 1) * part};
  const struct kcp_cell place = kcp_cell_place(&weights->grid, cell);
  const double weight = weights->raster != NULL
                            ? kcp_raster_weight(weights->raster, place)
                            : (place.right - place.left) * (place.top - place.bottom);
  return (uint64_t)llrint(weight / weights->measure * weights->measure_units);
}

static void add_row(const struct check *check, uint64_t row, double *ranks, uint64_t *found_p,
                    uint64_t *found_q) {
  const struct kcp_influence_grid *grid = &check->plan->grid;
  const double part = 1.0 / (double)check->parts;
  const double y = grid->y0 + grid->step_y * (((double)row + 0.5) * part);
  for (uint64_t column = 0; column < grid->columns * check->parts; ++column) {
    const double x = grid->x0 + grid->step_x * (((double)column + 0.5) * part);
    const uint64_t units = units_at(check, row, column);
    if (units == 0) continue;
    const uint64_t p_count = find_regions(&check->sets[0], x, y, ranks, found_p);
    const uint64_t q_count = p_count > 0 ? find_regions(&check->sets[1], x, y, ranks, found_q) : 0;
    for (uint64_t i = 0; i < p_count; ++i)
      for (uint64_t j = 0; j < q_count; ++j) {
#pragma omp atomic
        check->areas[found_p[i] * check->sets[1].chosen_count + found_q[j]] += units;
      }
  }
}

static enum kcp_status add_all(const struct check *check, struct kcp_error *error) {
  const uint64_t rows = check->plan->grid.rows * check->parts;
  const uint64_t most =
      check->sets[0].count > check->sets[1].count ? check->sets[0].count : check->sets[1].count;
  bool short_of_memory = false;
#pragma omp parallel
  {
    double *ranks = malloc(most * sizeof *ranks);
    uint64_t *found = malloc(2 * most * sizeof *found);
    if (ranks == NULL || found == NULL) {
#pragma omp atomic write
      short_of_memory = true;
    }
#pragma omp for schedule(dynamic)
    for (uint64_t row = 0; row < rows; ++row)
      if (ranks != NULL && found != NULL && !kcp_interrupted())
        add_row(check, row, ranks, found, found + most);
    free(ranks);
    free(found);
  }
  if (short_of_memory) return kcp_out_of_memory(error, "verification", 24 * most);
  return kcp_interrupted() ? kcp_fail(error, KCP_INTERRUPTED, "stopped") : KCP_OK;
}

/* --- comparison ------------------------------------------------------------------------------- */

static const uint64_t *ids_of(const struct check *check, int set) {
  return check->result->files[set]->sites.ids;
}

/* The number of an id among the chosen; chosen_count when it is not there. */
static uint64_t number_of(const struct check *check, int set, uint64_t id) {
  const struct set *sites = &check->sets[set];
  uint64_t low = 0, high = sites->chosen_count;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (ids_of(check, set)[sites->chosen[middle]] < id)
      low = middle + 1;
    else
      high = middle;
  }
  const bool found = low < sites->chosen_count && ids_of(check, set)[sites->chosen[low]] == id;
  return found ? low : sites->chosen_count;
}

static double area_of(const struct check *check, uint64_t p, uint64_t q) {
  return kcp_cell_weights_real(check->plan->weights,
                               check->areas[p * check->sets[1].chosen_count + q]);
}

static enum kcp_status check_row(const struct check *check, const struct kcp_influence_row *row,
                                 struct kcp_error *error) {
  const uint64_t p = number_of(check, 0, row->id1), q = number_of(check, 1, row->id2);
  if (p == check->sets[0].chosen_count || q == check->sets[1].chosen_count)
    return kcp_fail(error, KCP_WRONG_ANSWER,
                    "wrong answer: (%" PRIu64 ", %" PRIu64 ") is no pair of chosen sites", row->id1,
                    row->id2);
  const double area = area_of(check, p, q);
  const double slack = check->parts > 1 ? WEIGHT_ERROR * check->result->total_weight : 0;
  const bool right = check->parts == 1 ? row->area == area : true;
  if (right && row->lower <= row->area && row->area <= row->upper && row->lower <= area + slack &&
      area <= row->upper + slack)
    return KCP_OK;
  return kcp_fail(error, KCP_WRONG_ANSWER,
                  "wrong answer: pair (%" PRIu64 ", %" PRIu64
                  "): area %.17g within %.17g and %.17g, but brute force finds %.17g",
                  row->id1, row->id2, row->area, row->lower, row->upper, area);
}

static uint64_t count_positive(const struct check *check, uint64_t p) {
  uint64_t count = 0;
  for (uint64_t q = 0; q < check->sets[1].chosen_count; ++q) count += area_of(check, p, q) > 0;
  return count;
}

/* Every pair with an area is listed, or every p that shares something with all q. */
static enum kcp_status check_count(const struct check *check, struct kcp_error *error) {
  const struct kcp_influence_result *result = check->result;
  const bool partners = result->kind == KCP_INFLUENCE_PARTNERS && !result->options->list_areas;
  uint64_t expected = 0, listed = 0;
  for (uint64_t p = 0; p < check->sets[0].chosen_count; ++p) {
    const uint64_t positive = count_positive(check, p);
    expected += partners ? positive == check->sets[1].chosen_count : positive;
  }
  for (uint64_t i = 0; i < result->row_count; ++i) listed += result->rows[i].area > 0;
  if (expected == listed) return KCP_OK;
  return kcp_fail(error, KCP_WRONG_ANSWER,
                  "wrong answer: %" PRIu64 " %s have an area, the answer has %" PRIu64, expected,
                  partners ? "sites" : "pairs", listed);
}

static enum kcp_status compare(const struct check *check, struct kcp_error *error) {
  for (uint64_t i = 0; i < check->result->row_count; ++i) {
    enum kcp_status status = check_row(check, &check->result->rows[i], error);
    if (status != KCP_OK) return status;
  }
  return check->parts == 1 ? check_count(check, error) : KCP_OK;
}

/* --- all -------------------------------------------------------------------------------------- */

struct id_place {
  uint64_t id, place;
};

static int compare_ids(const void *a, const void *b) {
  const uint64_t left = ((const struct id_place *)a)->id, right = ((const struct id_place *)b)->id;
  return left < right ? -1 : left > right;
}

static bool open_set(const struct kcp_site_file *file, uint64_t k, struct set *set) {
  set->x = kcp_points_column(&file->sites, 0);
  set->y = kcp_points_column(&file->sites, 1);
  set->weight = kcp_points_column(&file->sites, 2);
  set->count = file->sites.count;
  set->k = k;
  set->chosen = malloc((file->chosen_count + 1) * sizeof *set->chosen);
  struct id_place *places = malloc((file->chosen_count + 1) * sizeof *places);
  const bool ready = set->chosen != NULL && places != NULL;
  for (uint64_t i = 0; i < file->sites.count && ready; ++i)
    if (file->chosen[i]) places[set->chosen_count++] = (struct id_place){file->sites.ids[i], i};
  if (ready) qsort(places, set->chosen_count, sizeof *places, compare_ids);
  for (uint64_t i = 0; i < set->chosen_count; ++i) set->chosen[i] = places[i].place;
  free(places);
  return ready;
}

enum kcp_status kcp_verify_influence(const struct kcp_influence_plan *plan,
                                     const struct kcp_influence_result *result,
                                     struct kcp_error *error) {
  struct check check = {.plan = plan, .result = result, .parts = UINT64_C(1) << result->depth};
  const uint64_t pairs = result->files[0]->chosen_count * result->files[1]->chosen_count;
  const double cells =
      (double)plan->grid.rows * plan->grid.columns * ldexp(1, 2 * (int)result->depth);
  enum kcp_status status = KCP_OK;
  if (pairs > MOST_PAIRS || cells > (double)MOST_CELLS)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "--verify: %" PRIu64
                    " pairs and %.3g cells are too many for brute force; choose fewer sites or a "
                    "larger --tolerance",
                    pairs, cells);
  check.areas = calloc(pairs + 1, sizeof *check.areas);
  const bool ready = check.areas != NULL &&
                     open_set(result->files[0], plan->k[0], &check.sets[0]) &&
                     open_set(result->files[1], plan->k[1], &check.sets[1]);
  if (!ready) status = kcp_out_of_memory(error, "verification", 8 * pairs);
  if (status == KCP_OK) status = add_all(&check, error);
  if (status == KCP_OK) status = compare(&check, error);
  free(check.areas);
  free(check.sets[0].chosen);
  free(check.sets[1].chosen);
  return status;
}

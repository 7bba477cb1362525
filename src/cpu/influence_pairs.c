#include "influence_pairs.h"

#include <stdlib.h>
#include <string.h>

#include "cell_shares.h"
#include "kcp/interrupt.h"
#include "vectors.h"

static struct kcp_cell cell_at(uint32_t row, uint32_t column) {
  return (struct kcp_cell){column, column + 1.0, row, row + 1.0};
}

static struct kcp_competitors all_sites(const struct kcp_site_groups *set) {
  return (struct kcp_competitors){.count = (uint32_t)set->count,
                                  .x = set->x,
                                  .y = set->y,
                                  .squared_weight = set->squared_weight,
                                  .inverse_square = set->inverse_square,
                                  .multiplicity = set->multiplicity};
}

enum kcp_status kcp_kth_ranks(const struct kcp_influence_plan *plan, int set, double *kth,
                              struct kcp_error *error) {
  const struct kcp_influence_grid *grid = &plan->grid;
  const struct kcp_competitors sites = all_sites(plan->sets[set]);
  bool short_of_memory = false;
#pragma omp parallel
  {
    double *ranks = malloc(sites.count * sizeof *ranks);
    const bool ready = ranks != NULL;
    if (!ready) {
#pragma omp atomic write
      short_of_memory = true;
    }
#pragma omp for schedule(dynamic)
    for (uint32_t row = 0; row < grid->rows; ++row)
      for (uint32_t column = 0; column < grid->columns && ready && !kcp_interrupted(); ++column) {
        const struct kcp_cell cell = cell_at(row, column);
        kcp_competitor_ranks(&sites, kcp_cell_centre_x(grid, cell), kcp_cell_centre_y(grid, cell),
                             ranks);
        kth[(uint64_t)row * grid->columns + column] =
            kcp_nth_value(ranks, sites.multiplicity, sites.count, plan->k[set]);
      }
    free(ranks);
  }
  if (short_of_memory) return kcp_out_of_memory(error, "the nearest sites", 8 * sites.count);
  if (kcp_interrupted()) return kcp_fail(error, KCP_INTERRUPTED, "stopped");
  return KCP_OK;
}

struct site {
  double x, y, squared_weight;
};

static struct site site_at(const struct kcp_site_groups *set, uint32_t group) {
  return (struct site){set->x[group], set->y[group], set->squared_weight[group]};
}

/* What the cells of a row whose centres lie in both regions weigh. */
KCP_WIDEST_VECTORS static uint64_t area_of_row(const double *restrict x, double y, uint32_t columns,
                                               struct site p, struct site q,
                                               const double *restrict kth_p,
                                               const double *restrict kth_q,
                                               const uint64_t *restrict weights) {
  uint64_t area = 0;
  for (uint32_t i = 0; i < columns; ++i) {
    const double rank_p = kcp_weighted_rank(p.x - x[i], p.y - y, p.squared_weight);
    const double rank_q = kcp_weighted_rank(q.x - x[i], q.y - y, q.squared_weight);
    area += ((rank_p <= kth_p[i]) & (rank_q <= kth_q[i])) ? weights[i] : 0;
  }
  return area;
}

static uint64_t area_of_pair(const struct kcp_influence_plan *plan, const double *const kth[2],
                             const double *x, struct site p, struct site q) {
  const struct kcp_influence_grid *grid = &plan->grid;
  uint64_t area = 0;
  for (uint32_t row = 0; row < grid->rows; ++row) {
    const uint64_t first = (uint64_t)row * grid->columns;
    area += area_of_row(x, kcp_cell_centre_y(grid, cell_at(row, 0)), grid->columns, p, q,
                        kth[0] + first, kth[1] + first, plan->weights->cells + first);
  }
  return area;
}

static uint32_t *list_selected(const struct kcp_site_groups *set) {
  uint32_t *selected = malloc((set->selected_count + 1) * sizeof *selected);
  uint64_t count = 0;
  for (uint32_t group = 0; group < set->count && selected != NULL; ++group)
    if (set->selected[group]) selected[count++] = group;
  return selected;
}

enum kcp_status kcp_pair_areas(const struct kcp_influence_plan *plan, const double *const kth[2],
                               uint64_t stop_below, uint64_t *areas, struct kcp_progress *progress,
                               struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  const struct kcp_influence_grid *grid = &plan->grid;
  const uint64_t rows = plan->sets[0]->selected_count, columns = plan->sets[1]->selected_count;
  uint32_t *selected[2] = {list_selected(plan->sets[0]), list_selected(plan->sets[1])};
  double *x = malloc(grid->columns * sizeof *x);
  uint64_t done = 0;
  if (selected[0] == NULL || selected[1] == NULL || x == NULL) {
    status = kcp_out_of_memory(error, "the pairs", 4 * (rows + columns) + 8 * grid->columns);
    goto cleanup;
  }
  for (uint32_t column = 0; column < grid->columns; ++column)
    x[column] = kcp_cell_centre_x(grid, cell_at(0, column));
  memset(areas, 0, rows * columns * sizeof *areas);
#pragma omp parallel for schedule(dynamic)
  for (uint64_t i = 0; i < rows; ++i) {
    const struct site p = site_at(plan->sets[0], selected[0][i]);
    for (uint64_t j = 0; j < columns && !kcp_interrupted(); ++j) {
      const struct site q = site_at(plan->sets[1], selected[1][j]);
      const uint64_t area = area_of_pair(plan, kth, x, p, q);
      areas[i * columns + j] = area;
      if (area < stop_below) break;
    }
#pragma omp critical(kcp_influence_progress)
    {
      ++done;
      kcp_progress_update(progress, "pairs", done, rows, done);
    }
  }
  if (kcp_interrupted()) status = kcp_fail(error, KCP_INTERRUPTED, "stopped");

cleanup:
  free(selected[0]);
  free(selected[1]);
  free(x);
  return status;
}

#include "kcp/density.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The total weight comes to less than 2^TOTAL_BITS units. */
#define TOTAL_BITS 61

void kcp_raster_free(struct kcp_raster *raster) {
  free(raster->values);
  memset(raster, 0, sizeof *raster);
}

static double region_width(const struct kcp_raster *raster) {
  return (raster->extent.x1 - raster->extent.x0) / raster->columns;
}

static double region_height(const struct kcp_raster *raster) {
  return (raster->extent.y1 - raster->extent.y0) / raster->rows;
}

void kcp_raster_set_kind(struct kcp_raster *raster, enum kcp_density_kind kind) {
  if (kind == KCP_DENSITY_PER_AREA) return;
  const double area = region_width(raster) * region_height(raster);
  const uint64_t count = (uint64_t)raster->rows * raster->columns;
  for (uint64_t i = 0; i < count; ++i) raster->values[i] /= area;
}

/* The regions that lie within [low, high] of an axis, as first and end. */
struct span {
  uint32_t first, end;
};

static struct span regions_within(double low, double high, double origin, double step,
                                  uint32_t count) {
  double first = floor((low - origin) / step) - 1, end = ceil((high - origin) / step) + 1;
  struct span span = {0, 0};
  if (end <= 0 || first >= count) return span;
  span.first = first > 0 ? (uint32_t)first : 0;
  span.end = end < count ? (uint32_t)end : count;
  return span;
}

static double overlap(double low, double high, double origin, double step, uint32_t region) {
  double from = fmax(low, kcp_grid_line(origin, step, region));
  double to = fmin(high, kcp_grid_line(origin, step, region + 1.0));
  return to > from ? to - from : 0;
}

double kcp_raster_weight(const struct kcp_raster *raster, struct kcp_cell place) {
  const double width = region_width(raster), height = region_height(raster);
  const struct kcp_domain *extent = &raster->extent;
  struct span columns = regions_within(place.left, place.right, extent->x0, width, raster->columns);
  struct span rows = regions_within(place.bottom, place.top, extent->y0, height, raster->rows);
  double weight = 0;
  for (uint32_t row = rows.first; row < rows.end; ++row) {
    const double high = overlap(place.bottom, place.top, extent->y0, height, row);
    const double *values = raster->values + (uint64_t)row * raster->columns;
    double of_row = 0;
    if (high == 0) continue;
    for (uint32_t column = columns.first; column < columns.end; ++column)
      of_row += values[column] * overlap(place.left, place.right, extent->x0, width, column);
    weight += of_row * high;
  }
  return weight;
}

static struct kcp_cell cell_at(uint32_t row, uint32_t column) {
  return (struct kcp_cell){column, column + 1.0, row, row + 1.0};
}

double kcp_cell_weights_real(const struct kcp_cell_weights *weights, uint64_t units) {
  return (double)units * weights->measure / weights->measure_units;
}

static double weight_over_raster(const struct kcp_cell_weights *weights, struct kcp_cell cell) {
  return kcp_raster_weight(weights->raster, kcp_cell_place(&weights->grid, cell));
}

/* Over a raster. */
static uint64_t units_of(const struct kcp_cell_weights *weights, double weight) {
  return (uint64_t)llrint(weight / weights->measure);
}

static void sum_cells(struct kcp_cell_weights *weights) {
  const uint32_t rows = weights->grid.rows, columns = weights->grid.columns;
  const uint64_t width = columns + UINT64_C(1);
  for (uint32_t row = 0; row < rows; ++row) {
    const uint64_t *cells = weights->cells + (uint64_t)row * columns;
    const uint64_t *below = weights->sums + row * width;
    uint64_t *above = weights->sums + (row + 1) * width;
    uint64_t of_row = 0;
    for (uint32_t column = 0; column < columns; ++column) {
      of_row += cells[column];
      above[column + 1] = below[column + 1] + of_row;
    }
  }
  weights->total = weights->sums[rows * width + columns];
}

/* The largest b with count * 2^b < 2^TOTAL_BITS. */
static int spare_bits(uint64_t count) {
  int bits = 0;
  while (count << bits < UINT64_C(1) << (TOTAL_BITS - 1)) ++bits;
  return bits;
}

/* Every cell of a plain area weighs the same. */
static void set_equal(struct kcp_cell_weights *weights) {
  const struct kcp_influence_grid *grid = &weights->grid;
  const uint64_t count = (uint64_t)grid->rows * grid->columns;
  const uint64_t units = UINT64_C(1) << spare_bits(count);
  for (uint64_t i = 0; i < count; ++i) weights->cells[i] = units;
  weights->uniform = true;
  weights->measure = grid->step_x * grid->columns * (grid->step_y * grid->rows);
  weights->measure_units = (double)(count * units);
}

static enum kcp_status weigh_cells(struct kcp_cell_weights *weights, struct kcp_error *error) {
  const struct kcp_influence_grid *grid = &weights->grid;
  const uint64_t count = (uint64_t)grid->rows * grid->columns;
  double *real = malloc(count * sizeof *real);
  double total = 0;
  int bits = 0;
  if (real == NULL) return kcp_out_of_memory(error, "the weights of the grid", 8 * count);
#pragma omp parallel for schedule(static)
  for (uint32_t row = 0; row < grid->rows; ++row)
    for (uint32_t column = 0; column < grid->columns; ++column)
      real[(uint64_t)row * grid->columns + column] =
          weight_over_raster(weights, cell_at(row, column));
  for (uint64_t i = 0; i < count; ++i) total += real[i];
  frexp(total, &bits);
  weights->measure = ldexp(1, bits - TOTAL_BITS);
  weights->measure_units = 1;
  const bool usable = isfinite(total) && (total == 0 || isnormal(weights->measure));
  for (uint64_t i = 0; i < count && usable; ++i) weights->cells[i] = units_of(weights, real[i]);
  free(real);
  if (usable) return KCP_OK;
  return kcp_fail(error, KCP_BAD_INPUT, "the weight of the domain, %g, is beyond binary64", total);
}

static enum kcp_status allocate_cells(struct kcp_cell_weights *weights, struct kcp_error *error) {
  const struct kcp_influence_grid *grid = &weights->grid;
  const uint64_t count = (uint64_t)grid->rows * grid->columns;
  const uint64_t corners = (grid->rows + UINT64_C(1)) * (grid->columns + UINT64_C(1));
  weights->cells = malloc(count * sizeof *weights->cells);
  weights->sums = calloc(corners, sizeof *weights->sums);
  if (weights->cells != NULL && weights->sums != NULL) return KCP_OK;
  kcp_cell_weights_free(weights);
  return kcp_out_of_memory(error, "the weights of the grid", 8 * (count + corners));
}

enum kcp_status kcp_cell_weights_mask(const struct kcp_cell_weights *weights, const uint8_t *mask,
                                      struct kcp_cell_weights *masked, struct kcp_error *error) {
  const uint64_t count = (uint64_t)weights->grid.rows * weights->grid.columns;
  *masked = *weights;
  masked->uniform = false;
  enum kcp_status status = allocate_cells(masked, error);
  if (status != KCP_OK) return status;
  for (uint64_t i = 0; i < count; ++i) masked->cells[i] = mask[i] != 0 ? weights->cells[i] : 0;
  sum_cells(masked);
  return KCP_OK;
}

enum kcp_status kcp_cell_weights_make(const struct kcp_influence_grid *grid,
                                      const struct kcp_raster *raster,
                                      struct kcp_cell_weights *weights, struct kcp_error *error) {
  *weights = (struct kcp_cell_weights){.grid = *grid, .raster = raster};
  enum kcp_status status = allocate_cells(weights, error);
  if (status != KCP_OK) return status;
  if (raster != NULL)
    status = weigh_cells(weights, error);
  else
    set_equal(weights);
  if (status == KCP_OK)
    sum_cells(weights);
  else
    kcp_cell_weights_free(weights);
  return status;
}

void kcp_cell_weights_free(struct kcp_cell_weights *weights) {
  free(weights->cells);
  free(weights->sums);
  memset(weights, 0, sizeof *weights);
}

uint64_t kcp_cell_weights_sum(const struct kcp_cell_weights *weights, uint32_t first_row,
                              uint32_t end_row, uint32_t first_column, uint32_t end_column) {
  const uint64_t width = weights->grid.columns + UINT64_C(1);
  const uint64_t *first = weights->sums + first_row * width;
  const uint64_t *end = weights->sums + end_row * width;
  return end[end_column] - end[first_column] - (first[end_column] - first[first_column]);
}

static bool lies_in_one_region(const struct kcp_raster *raster, struct kcp_cell place) {
  const double width = region_width(raster), height = region_height(raster);
  const struct kcp_domain *extent = &raster->extent;
  const double column = floor((place.left - extent->x0) / width);
  const double row = floor((place.bottom - extent->y0) / height);
  return place.left >= kcp_grid_line(extent->x0, width, column) &&
         place.right <= kcp_grid_line(extent->x0, width, column + 1) &&
         place.bottom >= kcp_grid_line(extent->y0, height, row) &&
         place.top <= kcp_grid_line(extent->y0, height, row + 1);
}

void kcp_cell_weights_split(const struct kcp_cell_weights *weights, struct kcp_cell cell,
                            uint64_t weight, uint64_t quarters[4]) {
  if (weights->raster == NULL ||
      lies_in_one_region(weights->raster, kcp_cell_place(&weights->grid, cell))) {
    for (uint32_t i = 0; i < 4; ++i) quarters[i] = kcp_quarter(weight, i);
    return;
  }
  const double x = 0.5 * (cell.left + cell.right), y = 0.5 * (cell.bottom + cell.top);
  const struct kcp_cell parts[3] = {
      {cell.left, x, cell.bottom, y}, {x, cell.right, cell.bottom, y}, {cell.left, x, y, cell.top}};
  uint64_t left = weight;
  for (int i = 0; i < 3; ++i) {
    const uint64_t units = units_of(weights, weight_over_raster(weights, parts[i]));
    quarters[i] = units < left ? units : left;
    left -= quarters[i];
  }
  quarters[3] = left;
}

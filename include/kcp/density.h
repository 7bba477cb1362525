/* The weighted partition of the domain (common influence regions, section 1.1): a raster of
 * densities, and what a grid's cells weigh over it. */
#ifndef KCP_DENSITY_H
#define KCP_DENSITY_H

#include <stdbool.h>
#include <stdint.h>

#include "kcp/influence_geometry.h"
#include "kcp/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A rectangle; sides longer than 0. */
struct kcp_domain {
  double x0, y0, x1, y1;
};

/* rows x columns regions of equal size over `extent`. Owned: kcp_raster_free. */
struct kcp_raster {
  uint32_t columns, rows;
  struct kcp_domain extent;
  double *values; /* row after row from the one of least y; finite, >= 0; nodata is 0 */
  uint64_t nodata_count;
};

/* What a value says: weight a unit of area, or weight of the region as a whole. */
enum kcp_density_kind { KCP_DENSITY_PER_AREA, KCP_DENSITY_COUNT };

/* Reads a raster by its ending: an ESRI ASCII grid (.asc), or an array of two axes (.npy) over
 * `extent`, its first row the one of largest y as in an image. `extent` may be NULL for formats
 * that state their own. KCP_BAD_INPUT with file and line or element: values are finite numbers of
 * at least 0, or nodata (NaN in an array). */
enum kcp_status kcp_raster_read(const char *path, const struct kcp_domain *extent,
                                struct kcp_raster *raster, struct kcp_error *error);
void kcp_raster_free(struct kcp_raster *raster);

/* Turns counts into densities. */
void kcp_raster_set_kind(struct kcp_raster *raster, enum kcp_density_kind kind);

/* The weight within a rectangle; what lies outside the raster weighs nothing. */
double kcp_raster_weight(const struct kcp_raster *raster, struct kcp_cell place);

/* Weights of the cells of a grid in whole units. Owned: kcp_cell_weights_free. */
struct kcp_cell_weights {
  struct kcp_influence_grid grid;
  const struct kcp_raster *raster; /* NULL: plain area */
  /* `measure_units` units weigh `measure`: a power of two and 1 over a raster; the area of the
   * domain and the units of all cells, equal ones, of a plain area. */
  bool uniform; /* all cells weigh the same */
  double measure;
  double measure_units;
  uint64_t *cells; /* rows x columns, from the cell of least x and y */
  uint64_t *sums;  /* (rows + 1) x (columns + 1): of all cells below and left */
  uint64_t total;  /* < 2^62 */
};

/* The raster outlives the weights. With a total weight of 0 all cells weigh 0. */
enum kcp_status kcp_cell_weights_make(const struct kcp_influence_grid *grid,
                                      const struct kcp_raster *raster,
                                      struct kcp_cell_weights *weights, struct kcp_error *error);
void kcp_cell_weights_free(struct kcp_cell_weights *weights);

/* Units as a weight: what is printed and compared with W0. Monotone. */
double kcp_cell_weights_real(const struct kcp_cell_weights *weights, uint64_t units);

/* The same weights, but 0 for cells whose mask is 0. */
enum kcp_status kcp_cell_weights_mask(const struct kcp_cell_weights *weights, const uint8_t *mask,
                                      struct kcp_cell_weights *masked, struct kcp_error *error);

/* The weight of the cells first_row .. end_row - 1 of columns first_column .. end_column - 1. */
uint64_t kcp_cell_weights_sum(const struct kcp_cell_weights *weights, uint32_t first_row,
                              uint32_t end_row, uint32_t first_column, uint32_t end_column);

/* The weights of the quarters of a cell, or part of a cell, of weight `weight`: left below, right
 * below, left above, right above. They sum to `weight`. */
void kcp_cell_weights_split(const struct kcp_cell_weights *weights, struct kcp_cell cell,
                            uint64_t weight, uint64_t quarters[4]);

#ifdef __cplusplus
}
#endif
#endif

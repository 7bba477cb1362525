/* Sections IV-A to IV-C of RT-HiSS on the CPU: what is built over D before the first query. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/range_order.h"
#include "range_kd_tree.h"
#include "rt_hiss.h"

static enum kcp_status reserve_sorter(struct kcp_range_join *join, uint64_t count,
                                      struct kcp_error *error) {
  if (join->sorter.keys[0] != NULL && join->sorter.capacity >= count) return KCP_OK;
  kcp_radix_sorter_free(&join->sorter);
  return kcp_radix_sorter_create(count, &join->sorter, error);
}

static enum kcp_status reserve_points(struct kcp_rearranged *points, uint64_t count,
                                      uint32_t dimensions, struct kcp_error *error) {
  points->count = count;
  if (points->places != NULL && points->capacity >= count) return KCP_OK;
  free(points->places);
  free(points->rows);
  points->places = malloc((count + 1) * sizeof *points->places);
  points->rows = malloc((count + 1) * sizeof *points->rows * dimensions);
  points->capacity = count;
  if (points->places != NULL && points->rows != NULL) return KCP_OK;
  return kcp_out_of_memory(error, "rearranged points", (count + 1) * sizeof(double) * dimensions);
}

/* Coordinates of the points in their new order, the dimensions in theirs. */
static void fill_rows(const struct kcp_range_join *join, struct kcp_rearranged *points) {
  const uint32_t dimensions = join->plan.dimensions;
#pragma omp parallel for schedule(static)
  for (uint64_t i = 0; i < points->count; ++i)
    for (uint32_t j = 0; j < dimensions; ++j)
      points->rows[i * dimensions + j] =
          kcp_points_column(points->given, join->order[j])[points->places[i]];
}

/* ---- IV-A ---- */

static void order_dimensions(struct kcp_range_join *join, const struct kcp_points *reference) {
  const uint32_t dimensions = join->plan.dimensions;
  kcp_range_variances(reference, join->variances);
  kcp_range_order(join->variances, dimensions, join->plan.options.reorder, join->order);
  double *low = join->variances, *high = join->variances + dimensions;
  const uint32_t axes = kcp_group_axes(dimensions, join->plan.options.bound);
  for (uint32_t j = 0; j < axes; ++j) {
    const uint32_t dimension = join->order[j];
    const double *column = kcp_points_column(reference, dimension);
    double least = INFINITY, greatest = -INFINITY;
#pragma omp parallel for schedule(static) reduction(min : least) reduction(max : greatest)
    for (uint64_t i = 0; i < reference->count; ++i) {
      least = column[i] < least ? column[i] : least;
      greatest = column[i] > greatest ? column[i] : greatest;
    }
    low[dimension] = least;
    high[dimension] = greatest;
  }
  join->frame = kcp_range_frame_make(dimensions, join->order, low, high);
}

/* ---- IV-B ---- */

static enum kcp_status group_points(struct kcp_range_join *join, const struct kcp_points *reference,
                                    uint32_t *places, struct kcp_error *error) {
  const uint64_t n = reference->count;
  const uint32_t axis_count = kcp_group_axes(join->plan.dimensions, join->plan.options.bound);
  const float *axes[KCP_GROUP_AXES];
  float *values = malloc((n * axis_count + 1) * sizeof *values);
  if (values == NULL) return kcp_out_of_memory(error, "a kd-tree", n * axis_count * 4);
  for (uint32_t j = 0; j < axis_count; ++j) {
    const double *column = kcp_points_column(reference, join->order[j]);
    const double origin = join->variances[join->order[j]]; /* the lower corner */
    float *axis = values + j * n;
#pragma omp parallel for schedule(static)
    for (uint64_t i = 0; i < n; ++i) axis[i] = (float)((column[i] - origin) * join->frame.scale);
    axes[j] = axis;
  }
  kcp_kd_tree_order(n, axis_count, axes, join->height, places);
  free(values);
  return KCP_OK;
}

/* The box of the neighbourhood of the points in places first .. last - 1. */
static struct kcp_primitive_box bound_points(const struct kcp_range_join *join,
                                             const struct kcp_points *reference,
                                             const uint32_t *places, uint64_t first,
                                             uint64_t last) {
  double low[KCP_RANGE_AXES], high[KCP_RANGE_AXES], centre[KCP_RANGE_AXES], square = 0;
  for (uint32_t j = 0; j < join->frame.axes; ++j) {
    const double *column = kcp_points_column(reference, join->frame.dimension[j]);
    low[j] = high[j] = column[places[first]];
    for (uint64_t i = first + 1; i < last; ++i) {
      low[j] = fmin(low[j], column[places[i]]);
      high[j] = fmax(high[j], column[places[i]]);
    }
    centre[j] = low[j] + (high[j] - low[j]) / 2;
  }
  for (uint64_t i = first; i < last; ++i) {
    double sum = 0;
    for (uint32_t j = 0; j < join->frame.axes; ++j) {
      const double difference =
          kcp_points_column(reference, join->frame.dimension[j])[places[i]] - centre[j];
      sum += difference * difference;
    }
    square = fmax(square, sum);
  }
  return kcp_primitive_box_of(&join->frame, low, high, sqrt(square), join->plan.eps,
                              join->plan.options.bound);
}

/* ---- IV-C ---- */

/* Primitives without points, of which there are some when the height is greatest, are left out. */
struct leaves {
  uint64_t count;
  uint64_t *firsts;
  uint64_t *lasts;
  struct kcp_primitive_box *boxes;
};

static enum kcp_status leaves_create(uint64_t most, struct leaves *leaves,
                                     struct kcp_error *error) {
  leaves->count = 0;
  leaves->firsts = malloc((most + 1) * sizeof *leaves->firsts);
  leaves->lasts = malloc((most + 1) * sizeof *leaves->lasts);
  leaves->boxes = malloc((2 * most + 1) * sizeof *leaves->boxes);
  if (leaves->firsts != NULL && leaves->lasts != NULL && leaves->boxes != NULL) return KCP_OK;
  return kcp_out_of_memory(error, "primitives", (2 * most + 1) * sizeof *leaves->boxes);
}

static void leaves_free(struct leaves *leaves) {
  free(leaves->firsts);
  free(leaves->lasts);
  free(leaves->boxes);
}

static void find_leaves(struct kcp_range_join *join, uint64_t n, struct leaves *leaves) {
  const uint64_t most = UINT64_C(1) << (join->height - 1);
  join->largest_primitive = 0;
  for (uint64_t leaf = 0; leaf < most; ++leaf) {
    const uint64_t first = kcp_kd_first(n, join->height - 1, leaf);
    const uint64_t last = kcp_kd_first(n, join->height - 1, leaf + 1);
    if (first == last) continue;
    leaves->firsts[leaves->count] = first;
    leaves->lasts[leaves->count++] = last;
    if (last - first > join->largest_primitive) join->largest_primitive = last - first;
  }
}

/* The primitives in Morton order: points of each together, boxes behind the leaves' own. */
static enum kcp_status rearrange(struct kcp_range_join *join, const uint32_t *grouped,
                                 struct leaves *leaves, struct kcp_error *error) {
  enum kcp_status status = reserve_sorter(join, leaves->count, error);
  if (status != KCP_OK) return status;
  for (uint64_t i = 0; i < leaves->count; ++i)
    join->sorter.keys[0][i] = kcp_box_morton_key(&leaves->boxes[i]);
  const uint32_t *order = kcp_radix_sort_keys(&join->sorter, leaves->count, NULL);
  uint64_t at = 0;
  for (uint64_t i = 0; i < leaves->count; ++i) {
    const uint32_t leaf = order[i];
    const uint64_t points = leaves->lasts[leaf] - leaves->firsts[leaf];
    memcpy(join->points.places + at, grouped + leaves->firsts[leaf], points * sizeof *grouped);
    join->firsts[i] = (uint32_t)at;
    leaves->boxes[leaves->count + i] = leaves->boxes[leaf];
    at += points;
  }
  join->firsts[leaves->count] = (uint32_t)at;
  fill_rows(join, &join->points);
  return KCP_OK;
}

/* Boxes around the points of each primitive in all dimensions. */
static enum kcp_status bound_fully(struct kcp_range_join *join, struct kcp_error *error) {
  const uint32_t dimensions = join->plan.dimensions;
  const uint64_t count = join->primitive_count;
  free(join->bounds);
  join->bounds = malloc((2 * count * dimensions + 1) * sizeof *join->bounds);
  if (join->bounds == NULL)
    return kcp_out_of_memory(error, "boxes", 2 * count * dimensions * sizeof *join->bounds);
#pragma omp parallel for schedule(dynamic, 16)
  for (uint64_t primitive = 0; primitive < count; ++primitive) {
    double *bounds = join->bounds + 2 * primitive * dimensions;
    for (uint32_t j = 0; j < dimensions; ++j) {
      double low = INFINITY, high = -INFINITY;
      for (uint64_t i = join->firsts[primitive]; i < join->firsts[primitive + 1]; ++i) {
        low = fmin(low, join->points.rows[i * dimensions + j]);
        high = fmax(high, join->points.rows[i * dimensions + j]);
      }
      bounds[2 * j] = low;
      bounds[2 * j + 1] = high;
    }
  }
  return KCP_OK;
}

static enum kcp_status reserve_primitives(struct kcp_range_join *join, uint64_t count,
                                          struct kcp_error *error) {
  join->primitive_count = count;
  if (join->firsts != NULL && join->primitive_capacity >= count) return KCP_OK;
  free(join->firsts);
  join->firsts = malloc((count + 1) * sizeof *join->firsts);
  join->primitive_capacity = count;
  return join->firsts != NULL ? KCP_OK : kcp_out_of_memory(error, "primitives", 4 * count);
}

static enum kcp_status build(struct kcp_range_join *join, const struct kcp_points *reference,
                             uint32_t *grouped, struct leaves *leaves, struct kcp_range_work *work,
                             struct kcp_error *error) {
  double started = kcp_now();
  enum kcp_status status = group_points(join, reference, grouped, error);
  work->phase_s[KCP_RANGE_PHASE_KD_TREE] += kcp_now() - started;
  if (status != KCP_OK) return status;

  started = kcp_now();
  find_leaves(join, reference->count, leaves);
#pragma omp parallel for schedule(static)
  for (uint64_t i = 0; i < leaves->count; ++i)
    leaves->boxes[i] = bound_points(join, reference, grouped, leaves->firsts[i], leaves->lasts[i]);
  work->phase_s[KCP_RANGE_PHASE_PRIMITIVES] += kcp_now() - started;

  started = kcp_now();
  status = reserve_primitives(join, leaves->count, error);
  if (status == KCP_OK) status = rearrange(join, grouped, leaves, error);
  work->phase_s[KCP_RANGE_PHASE_REARRANGE] += kcp_now() - started;
  if (status != KCP_OK) return status;

  started = kcp_now();
  if (join->plan.options.bound == KCP_BOUND_FULL) status = bound_fully(join, error);
  work->phase_s[KCP_RANGE_PHASE_PRIMITIVES] += kcp_now() - started;
  if (status != KCP_OK) return status;

  started = kcp_now();
  const enum kcp_range_index kind =
      join->plan.options.index == KCP_RANGE_INDEX_GRID ? KCP_RANGE_INDEX_GRID : KCP_RANGE_INDEX_BVH;
  kcp_built_index_free(&join->index);
  status = kcp_built_index_create(kind, leaves->boxes + leaves->count, leaves->count, &join->index,
                                  error);
  work->phase_s[KCP_RANGE_PHASE_INDEX] += kcp_now() - started;
  work->primitives += leaves->count;
  return status;
}

enum kcp_status kcp_rt_hiss_index(struct kcp_range_join *join, const struct kcp_points *reference,
                                  struct kcp_range_work *work, struct kcp_error *error) {
  const uint64_t n = reference->count;
  double started = kcp_now();
  join->primitive_count = 0;
  if (n == 0) return KCP_OK;
  order_dimensions(join, reference);
  work->phase_s[KCP_RANGE_PHASE_REORDER] += kcp_now() - started;
  join->height = kcp_kd_height(n, join->plan.options.kd_height);
  join->points.given = reference;
  struct leaves leaves = {0};
  uint32_t *grouped = malloc((n + 1) * sizeof *grouped);
  enum kcp_status status = grouped != NULL
                               ? leaves_create(UINT64_C(1) << (join->height - 1), &leaves, error)
                               : kcp_out_of_memory(error, "a kd-tree", n * sizeof *grouped);
  if (status == KCP_OK) status = reserve_points(&join->points, n, join->plan.dimensions, error);
  if (status == KCP_OK) status = build(join, reference, grouped, &leaves, work, error);
  free(grouped);
  leaves_free(&leaves);
  return status;
}

enum kcp_status kcp_rt_hiss_order_queries(struct kcp_range_join *join,
                                          const struct kcp_points *queries,
                                          struct kcp_error *error) {
  const uint64_t count = queries->count;
  enum kcp_status status = reserve_points(&join->queries, count, join->plan.dimensions, error);
  if (status == KCP_OK) status = reserve_sorter(join, count, error);
  if (status != KCP_OK) return status;
  join->queries.given = queries;
#pragma omp parallel for schedule(static)
  for (uint64_t i = 0; i < count; ++i)
    join->sorter.keys[0][i] = kcp_frame_morton_key(
        kcp_frame_point_of(&join->frame, queries->coordinates, queries->stride, i));
  const uint32_t *order = kcp_radix_sort_keys(&join->sorter, count, NULL);
  memcpy(join->queries.places, order, count * sizeof *order);
  fill_rows(join, &join->queries);
  return KCP_OK;
}

#include "range_leaves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/range_primitives.h"
#include "range_kd_tree.h"
#include "vectors.h"

#define VALUES_BEFORE_A_CHECK 16 /* dimensions summed between two looks at the sums */
#define ALIGNMENT 64             /* of the widest vectors */

/* ---- the test ---- */

#define TEST_NAME test_floats_by_4
#define TEST_TARGET
#define TEST_TYPE float
#define TEST_WORD int32_t
#define TEST_LANES 4
#include "range_leaf_test.h"

#define TEST_NAME test_doubles_by_2
#define TEST_TARGET
#define TEST_TYPE double
#define TEST_WORD int64_t
#define TEST_LANES 2
#include "range_leaf_test.h"

#ifdef KCP_X86_64
#define TEST_NAME test_floats_by_8
#define TEST_TARGET __attribute__((target("avx2,fma")))
#define TEST_TYPE float
#define TEST_WORD int32_t
#define TEST_LANES 8
#include "range_leaf_test.h"

#define TEST_NAME test_doubles_by_4
#define TEST_TARGET __attribute__((target("avx2,fma")))
#define TEST_TYPE double
#define TEST_WORD int64_t
#define TEST_LANES 4
#include "range_leaf_test.h"

#define TEST_NAME test_floats_by_16
#define TEST_TARGET __attribute__((target("avx512f")))
#define TEST_TYPE float
#define TEST_WORD int32_t
#define TEST_LANES 16
#include "range_leaf_test.h"

#define TEST_NAME test_doubles_by_8
#define TEST_TARGET __attribute__((target("avx512f")))
#define TEST_TYPE double
#define TEST_WORD int64_t
#define TEST_LANES 8
#include "range_leaf_test.h"
#endif

struct kcp_leaf_mask kcp_range_leaf_test(const struct kcp_range_leaves *leaves, uint64_t leaf,
                                         const void *query, const struct kcp_range_limit *limit) {
  const uint32_t dimensions = leaves->dimensions;
  const uint64_t at = leaf * dimensions * KCP_LEAF_POINTS;
  const double within = limit->within, beyond = limit->beyond;
  const float *floats = (const float *)leaves->values + at;
  const double *doubles = (const double *)leaves->values + at;
#ifdef KCP_X86_64
  if (__builtin_cpu_supports("avx512f"))
    return leaves->is_narrow ? test_floats_by_16(floats, dimensions, query, within, beyond)
                             : test_doubles_by_8(doubles, dimensions, query, within, beyond);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return leaves->is_narrow ? test_floats_by_8(floats, dimensions, query, within, beyond)
                             : test_doubles_by_4(doubles, dimensions, query, within, beyond);
#endif
  return leaves->is_narrow ? test_floats_by_4(floats, dimensions, query, within, beyond)
                           : test_doubles_by_2(doubles, dimensions, query, within, beyond);
}

struct kcp_range_limit kcp_range_leaf_limit(const struct kcp_range_leaves *queries,
                                            uint64_t query_leaf,
                                            const struct kcp_range_leaves *points, uint64_t leaf,
                                            double eps, double scale) {
  if (!points->is_narrow) return kcp_range_limit_reordered(eps, points->dimensions);
  return kcp_range_limit_rows(eps, scale, points->dimensions,
                              (double)queries->norms[query_leaf] + (double)points->norms[leaf]);
}

/* ---- the tree ---- */

void kcp_range_leaves_free(struct kcp_range_leaves *leaves) {
  free(leaves->places);
  free(leaves->bounds);
  free(leaves->values);
  free(leaves->norms);
  memset(leaves, 0, sizeof *leaves);
}

/* Orders the points by the dimensions in which they are spread most; what binary32 does not tell
 * apart may come in any order. */
static enum kcp_status group(const struct kcp_points *points, const uint32_t *order,
                             struct kcp_range_leaves *leaves, struct kcp_error *error) {
  const uint64_t n = points->count;
  const uint32_t axis_count =
      points->dimensions < KCP_GROUP_AXES ? points->dimensions : KCP_GROUP_AXES;
  const float *axes[KCP_GROUP_AXES];
  float *values = malloc((n * axis_count + 1) * sizeof *values);
  if (values == NULL) return kcp_out_of_memory(error, "a kd-tree", n * axis_count * 4);
  for (uint32_t j = 0; j < axis_count; ++j) {
    const double *column = kcp_points_column(points, order[j]);
    const double origin = column[0];
    float *axis = values + j * n;
#pragma omp parallel for schedule(static)
    for (uint64_t i = 0; i < n; ++i) {
      const double value = column[i] - origin;
      axis[i] = (float)(value > 1e30 ? 1e30 : value < -1e30 ? -1e30 : value);
    }
    axes[j] = axis;
  }
  kcp_kd_tree_order(n, axis_count, axes, leaves->leaf_level + 1, leaves->places);
  free(values);
  return KCP_OK;
}

static void bound_leaf(const struct kcp_range_leaves *leaves, const uint32_t *order, uint64_t leaf,
                       double *bounds) {
  const uint64_t first = kcp_kd_first(leaves->count, leaves->leaf_level, leaf);
  const uint64_t last = kcp_kd_first(leaves->count, leaves->leaf_level, leaf + 1);
  for (uint32_t j = 0; j < leaves->dimensions; ++j) {
    const double *column = kcp_points_column(leaves->given, order[j]);
    double low = INFINITY, high = -INFINITY; /* of no point */
    for (uint64_t i = first; i < last; ++i) {
      const double value = column[leaves->places[i]];
      low = value < low ? value : low;
      high = value > high ? value : high;
    }
    bounds[2 * j] = low;
    bounds[2 * j + 1] = high;
  }
}

static void bound_parent(uint32_t dimensions, const double *left, const double *right,
                         double *bounds) {
  for (uint32_t j = 0; j < dimensions; ++j) {
    bounds[2 * j] = left[2 * j] < right[2 * j] ? left[2 * j] : right[2 * j];
    bounds[2 * j + 1] = left[2 * j + 1] > right[2 * j + 1] ? left[2 * j + 1] : right[2 * j + 1];
  }
}

static void bound_nodes(struct kcp_range_leaves *leaves, const uint32_t *order) {
  const uint64_t width = 2 * (uint64_t)leaves->dimensions, leaf_count = kcp_leaf_count(leaves);
#pragma omp parallel for schedule(dynamic, 16)
  for (uint64_t leaf = 0; leaf < leaf_count; ++leaf)
    bound_leaf(leaves, order, leaf, leaves->bounds + (leaf_count - 1 + leaf) * width);
  for (uint64_t node = leaf_count - 1; node-- > 0;)
    bound_parent(leaves->dimensions, kcp_node_bounds(leaves, 2 * node + 1),
                 kcp_node_bounds(leaves, 2 * node + 2), leaves->bounds + node * width);
}

enum kcp_status kcp_range_leaves_build(const struct kcp_points *points, const uint32_t *order,
                                       struct kcp_range_leaves *leaves, struct kcp_error *error) {
  kcp_range_leaves_free(leaves);
  leaves->given = points;
  leaves->count = points->count;
  leaves->dimensions = points->dimensions;
  while (points->count > (uint64_t)KCP_LEAF_POINTS << leaves->leaf_level) ++leaves->leaf_level;
  const uint64_t nodes = 2 * kcp_leaf_count(leaves) - 1;
  const uint64_t bytes = nodes * 2 * points->dimensions * sizeof *leaves->bounds;
  leaves->places = malloc(points->count * sizeof *leaves->places);
  leaves->bounds = malloc(bytes);
  if (leaves->places == NULL || leaves->bounds == NULL)
    return kcp_out_of_memory(error, "a tree of boxes", bytes + 4 * points->count);
  enum kcp_status status = group(points, order, leaves, error);
  if (status == KCP_OK) bound_nodes(leaves, order);
  return status;
}

/* ---- values ---- */

static void fill_leaf(struct kcp_range_leaves *leaves, const uint32_t *order, uint64_t leaf) {
  const uint64_t first = kcp_kd_first(leaves->count, leaves->leaf_level, leaf);
  const uint64_t count = kcp_kd_first(leaves->count, leaves->leaf_level, leaf + 1) - first;
  double *values = (double *)leaves->values + leaf * leaves->dimensions * KCP_LEAF_POINTS;
  for (uint32_t j = 0; j < leaves->dimensions; ++j) {
    const double *column = kcp_points_column(leaves->given, order[j]);
    for (uint64_t i = 0; i < KCP_LEAF_POINTS; ++i)
      *values++ = i < count ? column[leaves->places[first + i]] : INFINITY;
  }
}

static void fill_narrow_leaf(struct kcp_range_leaves *leaves, const uint32_t *order,
                             const struct kcp_narrow_frame *frame, uint64_t leaf) {
  const uint64_t first = kcp_kd_first(leaves->count, leaves->leaf_level, leaf);
  const uint64_t count = kcp_kd_first(leaves->count, leaves->leaf_level, leaf + 1) - first;
  float *values = (float *)leaves->values + leaf * leaves->dimensions * KCP_LEAF_POINTS;
  double squares[KCP_LEAF_POINTS] = {0}, largest = 0;
  for (uint32_t j = 0; j < leaves->dimensions; ++j) {
    const double *column = kcp_points_column(leaves->given, order[j]);
    for (uint64_t i = 0; i < KCP_LEAF_POINTS; ++i, ++values) {
      *values = INFINITY;
      if (i >= count) continue;
      *values = (float)((column[leaves->places[first + i]] - frame->centre[j]) * frame->scale);
      squares[i] += (double)*values * (double)*values;
    }
  }
  for (uint64_t i = 0; i < count; ++i) largest = fmax(largest, squares[i]);
  leaves->norms[leaf] = (float)(sqrt(largest) * (1 + 0x1p-20));
}

enum kcp_status kcp_range_leaves_fill(struct kcp_range_leaves *leaves, const uint32_t *order,
                                      const struct kcp_narrow_frame *frame,
                                      struct kcp_error *error) {
  const uint64_t leaf_count = kcp_leaf_count(leaves);
  const uint64_t values = leaf_count * leaves->dimensions * KCP_LEAF_POINTS;
  const uint64_t bytes = values * (frame != NULL ? sizeof(float) : sizeof(double));
  leaves->is_narrow = frame != NULL;
  free(leaves->values);
  free(leaves->norms);
  leaves->values = aligned_alloc(ALIGNMENT, bytes);
  leaves->norms = malloc(leaf_count * sizeof *leaves->norms);
  if (leaves->values == NULL || leaves->norms == NULL)
    return kcp_out_of_memory(error, "leaves", bytes);
#pragma omp parallel for schedule(dynamic, 16)
  for (uint64_t leaf = 0; leaf < leaf_count; ++leaf)
    if (frame != NULL)
      fill_narrow_leaf(leaves, order, frame, leaf);
    else
      fill_leaf(leaves, order, leaf);
  return KCP_OK;
}

void kcp_range_leaf_query(const struct kcp_range_leaves *leaves, uint64_t leaf, uint32_t i,
                          void *query) {
  const uint32_t dimensions = leaves->dimensions;
  const uint64_t at = leaf * dimensions * KCP_LEAF_POINTS + i;
  for (uint32_t j = 0; j < dimensions; ++j)
    if (leaves->is_narrow)
      ((float *)query)[j] = ((const float *)leaves->values)[at + j * KCP_LEAF_POINTS];
    else
      ((double *)query)[j] = ((const double *)leaves->values)[at + j * KCP_LEAF_POINTS];
}

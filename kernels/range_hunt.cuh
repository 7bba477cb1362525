/* A query's hunt for the primitives that it meets: what the two passes need, the same on CUDA cores
 * (rt_hiss_batch.cu) and as rays (rt_hiss_rays.cu, optix/rays.cu). */
#ifndef KCP_KERNELS_RANGE_HUNT_CUH
#define KCP_KERNELS_RANGE_HUNT_CUH

#include "kcp/range_boxes.h"
#include "range_join.cuh"

struct kcp_range_hunt {
  struct kcp_primitive_index index;
  struct kcp_range_frame frame;
  struct kcp_device_points queries;
  uint32_t dimensions;
  bool is_narrow;     /* rows and bounds are binary32 */
  const void *bounds; /* of primitives in all dimensions; NULL without --bound full */
  double beyond;
};

/* Where the second pass writes: entries of queries first .. first + count - 1, at their places less
 * `base`. */
struct kcp_hunt_listing {
  uint64_t first, count, base;
  const uint64_t *hit_firsts;
  uint32_t *met, *met_by, *numbers;
};

struct kcp_range_hunt kcp_range_make_hunt(const struct kcp_range_join *join);

__device__ inline struct kcp_frame_point kcp_hunt_point(const struct kcp_range_hunt &hunt,
                                                        uint64_t q) {
  const struct kcp_device_points &queries = hunt.queries;
  return kcp_frame_point_of(&hunt.frame, queries.columns, queries.count, queries.places[q]);
}

__device__ inline bool kcp_row_reaches(uint32_t dimensions, const float *row, const float *bounds,
                                       double beyond) {
  return kcp_narrow_box_reaches(dimensions, row, bounds, (float)beyond);
}

__device__ inline bool kcp_row_reaches(uint32_t dimensions, const double *row, const double *bounds,
                                       double beyond) {
  return kcp_box_reaches(dimensions, row, bounds, beyond);
}

/* Whether query q, in the box of the primitive, is near enough in all dimensions too. */
template <typename T>
__device__ bool kcp_hunt_reaches(const struct kcp_range_hunt &hunt, uint64_t q,
                                 uint32_t primitive) {
  const T *row = (const T *)hunt.queries.rows + q * hunt.dimensions;
  const T *bounds = (const T *)hunt.bounds;
  return bounds == NULL ||
         kcp_row_reaches(hunt.dimensions, row, bounds + 2 * (uint64_t)primitive * hunt.dimensions,
                         hunt.beyond);
}

/* ---- as rays (rt_hiss_rays.cu) ---- */

/* The structure over the primitives' boxes (device), which are copied. */
enum kcp_status kcp_rays_build(struct kcp_range_join *join, const struct kcp_primitive_box *boxes,
                               struct kcp_error *error);
/* First pass: hits[q] = primitives that query q meets, or more where OptiX shows one twice; 0
 * behind the last. */
enum kcp_status kcp_rays_count(struct kcp_range_join *join, uint64_t *hits,
                               struct kcp_error *error);
/* Second pass. An entry that says again what one before it said fills a place that is left over. */
enum kcp_status kcp_rays_write(struct kcp_range_join *join, const struct kcp_hunt_listing *listing,
                               struct kcp_error *error);
/* Entries listed primitive after primitive, each query once in a primitive: from *sorted and
 * *listed into lists of their own, `count` of them left. */
enum kcp_status kcp_rays_drop_repeats(struct kcp_range_join *join, const uint32_t *met_by,
                                      uint32_t **sorted, uint32_t **listed, uint64_t *count,
                                      struct kcp_error *error);

#endif

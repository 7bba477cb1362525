/* What a launch of kernels/optix/rays.cu gets, from both sides. */
#ifndef KCP_KERNELS_OPTIX_LAUNCH_CUH
#define KCP_KERNELS_OPTIX_LAUNCH_CUH

#include "range_hunt.cuh"

/* Boxes and rays are cut off here, which is far beyond the frame's unit cube: OptiX wants finite
 * numbers. Cutting off is monotone, so that no box loses a ray. */
#define KCP_RAY_REACH 0x1p20f

#define KCP_RAY_PAYLOAD 5
#define KCP_RAY_LAUNCH_NAME "kcp_ray_launch_"

struct kcp_ray_launch {
  uint64_t structure;
  struct kcp_range_hunt hunt;
  uint64_t first; /* query of the first ray */
  uint64_t *hits; /* first pass; NULL in the second */
  struct kcp_hunt_listing listing;
  unsigned long long *disagreements; /* queries whose passes differ; grows */
};

KCP_HD static inline float kcp_ray_coordinate(float coordinate) {
  coordinate = coordinate > -KCP_RAY_REACH ? coordinate : -KCP_RAY_REACH;
  return coordinate < KCP_RAY_REACH ? coordinate : KCP_RAY_REACH;
}

#endif

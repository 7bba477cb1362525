/* The index of RT-HiSS as an acceleration structure of OptiX (--index optix), as in the paper: the
 * boxes of the primitives, and both passes of section IV-D as rays (optix/rays.cu).
 *
 * Boxes are given to OptiX wider than they are, by 2^-20 of a coordinate and 2^-30, a hundred times
 * what the arithmetic of a traversal in binary32 can err by, and the program tests the boxes
 * themselves; so nothing rests on how OptiX rounds, and flat boxes are not flat.
 *
 * OptiX may call the program more than once for a primitive that it has split. The first pass then
 * counts a primitive twice, which is room to spare; the second writes it twice; after the sort by
 * primitive both are neighbours in the list, as numbers of entries ascend there and those of a
 * query are consecutive, and the second is dropped. What is left is each query once in a primitive,
 * in either case: intersections are counted from it. Passes that differ otherwise are an error.
 *
 * Memory: the structure (77 bytes a primitive) and, while it is built, OptiX's scratch (53).
 * Geometry: a thread a primitive, a thread an entry, a ray a query.
 *
 * History (H200, rays in software):
 *  1. built for fast traversal: 0.5 ms for 8,192 primitives, 2.4 ms for a million. Both passes over
 *     4,096 primitives, 1M x 18: 4.1 and 3.0 ms, of the hierarchy 5.5 and 5.6 ms; over a million:
 *     98 and 204 ms, of the hierarchy 87 and 367 ms.
 *  2. compacted: 72.1 instead of 76.4 bytes a primitive (a million), 0.45 ms more; not kept. */
#include <cub/device/device_select.cuh>

#include "optix/launch.cuh"
#include "optix_pipeline.cuh"

static const int threads = 256;

static unsigned blocks_for(uint64_t count) {
  return (unsigned)((count + threads - 1) / threads);
}

/* ---- the structure ---- */

__device__ static float wider(float coordinate, float sign) {
  const float cut = kcp_ray_coordinate(coordinate);
  return cut + sign * (fabsf(cut) * 0x1p-20f + 0x1p-30f);
}

__global__ static void widen_boxes(uint64_t primitives, const struct kcp_primitive_box *boxes,
                                   struct kcp_primitive_box *wide) {
  const uint64_t i = (uint64_t)blockIdx.x * threads + threadIdx.x;
  if (i >= primitives) return;
  for (int j = 0; j < KCP_RANGE_AXES; ++j) {
    wide[i].low.axis[j] = wider(boxes[i].low.axis[j], -1);
    wide[i].high.axis[j] = wider(boxes[i].high.axis[j], 1);
  }
}

static enum kcp_status build_structure(struct kcp_range_join *join,
                                       const struct kcp_primitive_box *wide,
                                       struct kcp_error *error) {
  struct kcp_optix *optix = join->optix;
  static const unsigned flags = KCP_OPTIX_DISABLE_ANYHIT;
  const kcp_optix_address buffer = (kcp_optix_address)(uintptr_t)wide;
  struct kcp_optix_build_options options = {};
  struct kcp_optix_build_input input = {};
  struct kcp_optix_build_sizes sizes;
  unsigned char *structure;
  void *scratch;
  static_assert(sizeof(struct kcp_primitive_box) == 6 * sizeof(float), "a box of OptiX");
  options.flags = KCP_OPTIX_PREFER_FAST_TRACE;
  options.operation = KCP_OPTIX_OPERATION_BUILD;
  input.type = KCP_OPTIX_INPUT_CUSTOM;
  input.boxes.buffers = &buffer;
  input.boxes.primitives = (unsigned)join->primitive_count;
  input.boxes.flags = &flags;
  input.boxes.records = 1;
  KCP_OPTIX_TRY(optix, measure_structure(optix->context, &options, &input, 1, &sizes));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_STRUCTURE, sizes.output, &structure, error));
  KCP_TRY(kcp_range_scratch(join, sizes.scratch, &scratch, error));
  KCP_OPTIX_TRY(optix, build_structure(optix->context, join->stream, &options, &input, 1,
                                       (kcp_optix_address)(uintptr_t)scratch, sizes.scratch,
                                       (kcp_optix_address)(uintptr_t)structure, sizes.output,
                                       &join->structure, NULL, 0));
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  return KCP_OK;
}

enum kcp_status kcp_rays_build(struct kcp_range_join *join, const struct kcp_primitive_box *boxes,
                               struct kcp_error *error) {
  const uint64_t primitives = join->primitive_count;
  struct kcp_primitive_box *kept, *wide;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_BOXES, primitives, &kept, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_MASKS, primitives, &wide, error));
  KCP_CUDA_TRY(cudaMemcpyAsync(kept, boxes, primitives * sizeof *kept, cudaMemcpyDeviceToDevice,
                               join->stream));
  join->index = {};
  join->index.kind = KCP_RANGE_INDEX_OPTIX;
  join->index.bvh.boxes = kept;
  widen_boxes<<<blocks_for(primitives), threads, 0, join->stream>>>(primitives, boxes, wide);
  KCP_CUDA_TRY(cudaGetLastError());
  return build_structure(join, wide, error);
}

/* ---- the passes ---- */

/* Rays of queries first .. first + count - 1. */
static enum kcp_status launch_rays(struct kcp_range_join *join, struct kcp_ray_launch *launch,
                                   uint64_t first, uint64_t count, struct kcp_error *error) {
  struct kcp_ray_launch *parameters;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_LAUNCH, 1, &parameters, error));
  launch->structure = join->structure;
  launch->hunt = kcp_range_make_hunt(join);
  for (uint64_t done = 0; done < count;) {
    const uint64_t left = count - done;
    const unsigned here = left < KCP_OPTIX_MOST_LAUNCHED ? (unsigned)left : KCP_OPTIX_MOST_LAUNCHED;
    launch->first = first + done;
    KCP_CUDA_TRY(
        cudaMemcpyAsync(parameters, launch, sizeof *launch, cudaMemcpyHostToDevice, join->stream));
    KCP_TRY(
        kcp_optix_launch(join->optix, join->stream, parameters, sizeof *parameters, here, error));
    done += here;
  }
  return KCP_OK;
}

enum kcp_status kcp_rays_count(struct kcp_range_join *join, uint64_t *hits,
                               struct kcp_error *error) {
  struct kcp_ray_launch launch = {};
  const uint64_t count = join->queries.count;
  launch.hits = hits;
  KCP_CUDA_TRY(cudaMemsetAsync(hits + count, 0, sizeof *hits, join->stream));
  return launch_rays(join, &launch, 0, count, error);
}

enum kcp_status kcp_rays_write(struct kcp_range_join *join, const struct kcp_hunt_listing *listing,
                               struct kcp_error *error) {
  struct kcp_ray_launch launch = {};
  unsigned long long *disagreements, found;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_PARTIAL, 1, &disagreements, error));
  KCP_CUDA_TRY(cudaMemsetAsync(disagreements, 0, sizeof *disagreements, join->stream));
  launch.listing = *listing;
  launch.disagreements = disagreements;
  KCP_TRY(launch_rays(join, &launch, listing->first, listing->count, error));
  KCP_CUDA_TRY(
      cudaMemcpyAsync(&found, disagreements, sizeof found, cudaMemcpyDeviceToHost, join->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  if (found == 0) return KCP_OK;
  return kcp_fail(error, KCP_FAILED,
                  "OptiX: two passes over the same structure differ for %llu queries; run with "
                  "--index bvh",
                  found);
}

/* Entries i - 1 and i of the sorted list are of one primitive: are they of one query too? */
__global__ static void mark_first_ones(uint64_t count, const uint32_t *met_by,
                                       const uint32_t *sorted, const uint32_t *listed,
                                       unsigned char *marks) {
  const uint64_t i = (uint64_t)blockIdx.x * threads + threadIdx.x;
  if (i >= count) return;
  marks[i] =
      i == 0 || sorted[i - 1] != sorted[i] || met_by[listed[i - 1]] != met_by[listed[i]] ? 1 : 0;
}

static enum kcp_status keep_marked(struct kcp_range_join *join, const uint32_t *from,
                                   const unsigned char *marks, uint32_t *to, uint64_t count,
                                   uint64_t *kept, struct kcp_error *error) {
  size_t bytes = 0;
  void *scratch;
  KCP_CUDA_TRY(
      cub::DeviceSelect::Flagged(NULL, bytes, from, marks, to, kept, (int)count, join->stream));
  KCP_TRY(kcp_range_scratch(join, bytes, &scratch, error));
  KCP_CUDA_TRY(
      cub::DeviceSelect::Flagged(scratch, bytes, from, marks, to, kept, (int)count, join->stream));
  return KCP_OK;
}

enum kcp_status kcp_rays_drop_repeats(struct kcp_range_join *join, const uint32_t *met_by,
                                      uint32_t **sorted, uint32_t **listed, uint64_t *count,
                                      struct kcp_error *error) {
  unsigned char *marks;
  uint32_t *kept_sorted, *kept_listed;
  uint64_t *kept;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_KEYS, *count, &marks, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_SORTED_KEYS, *count, &kept_sorted, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_VALUES, *count, &kept_listed, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_PARTIAL, 1, &kept, error));
  if (*count == 0) return KCP_OK;
  mark_first_ones<<<blocks_for(*count), threads, 0, join->stream>>>(*count, met_by, *sorted,
                                                                    *listed, marks);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_TRY(keep_marked(join, *sorted, marks, kept_sorted, *count, kept, error));
  KCP_TRY(keep_marked(join, *listed, marks, kept_listed, *count, kept, error));
  KCP_CUDA_TRY(cudaMemcpyAsync(count, kept, sizeof *kept, cudaMemcpyDeviceToHost, join->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  *sorted = kept_sorted;
  *listed = kept_listed;
  return KCP_OK;
}

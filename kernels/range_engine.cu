/* The state of a range join on the device, and the way of points there. */
#include <cstdlib>
#include <cstring>

#include "optix_pipeline.cuh"
#include "range_join.cuh"

enum kcp_status kcp_range_scratch(struct kcp_range_join *join, size_t bytes, void **scratch,
                                  struct kcp_error *error) {
  unsigned char *memory;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_SCRATCH, bytes, &memory, error));
  *scratch = memory;
  return KCP_OK;
}

/* What finds primitives for --index auto, as measured on an H200 (docs/results/range-h200.md). With
 * --bound full a step of the walk is long, and queries side by side go through the same list of a
 * grid together: 84 against 99 ms (1M x 18), 110 against 130 ms (500K x 90). Else the hierarchy is
 * as fast or faster, and so is building it over many primitives. Rays of OptiX took at most 23 ms
 * less in both passes over the primitives of the default, and opening OptiX 101 to 158 ms. */
static enum kcp_range_index choose_index(const struct kcp_range_plan *plan) {
  const struct kcp_range_options *options = &plan->options;
  if (options->index != KCP_RANGE_INDEX_AUTO) return options->index;
  const bool asks_long = options->bound == KCP_BOUND_FULL && plan->dimensions > KCP_RANGE_AXES;
  return asks_long && options->kd_height == 0 ? KCP_RANGE_INDEX_GRID : KCP_RANGE_INDEX_BVH;
}

enum kcp_status kcp_range_join_create(const struct kcp_range_plan *plan,
                                      const struct kcp_device_info *device,
                                      struct kcp_range_join **out, struct kcp_error *error) {
  struct kcp_range_join *join = (struct kcp_range_join *)calloc(1, sizeof *join);
  *out = NULL;
  if (join == NULL) return kcp_out_of_memory(error, "a join", sizeof *join);
  join->plan = *plan;
  join->device = *device;
  join->refine = plan->options.refine;
  join->plan.options.index = choose_index(plan);
  if (join->plan.options.work_per_thread == 0)
    join->plan.options.work_per_thread = KCP_WORK_PER_THREAD;
  join->order = (uint32_t *)malloc(plan->dimensions * sizeof *join->order);
  if (join->order == NULL) {
    free(join);
    return kcp_out_of_memory(error, "dimensions", 4ull * plan->dimensions);
  }
  join->narrow_scale = kcp_range_narrow_scale(plan->eps);
  cudaError_t code = cudaSetDevice(device->index);
  if (code == cudaSuccess) code = cudaStreamCreateWithFlags(&join->stream, cudaStreamNonBlocking);
  if (code != cudaSuccess) {
    kcp_range_join_destroy(join);
    KCP_CUDA_TRY(code);
  }
  if (plan->method == KCP_RANGE_RT_HISS && plan->options.index == KCP_RANGE_INDEX_OPTIX) {
    const enum kcp_status status = kcp_optix_create(&join->optix, error);
    if (status != KCP_OK) {
      kcp_range_join_destroy(join);
      return status;
    }
  }
  *out = join;
  return KCP_OK;
}

void kcp_range_join_destroy(struct kcp_range_join *join) {
  if (join == NULL) return;
  kcp_range_copier_free(join->copier);
  for (int i = 0; i < KCP_BUFFER_COUNT; ++i) kcp_device_buffer_free(&join->buffers[i]);
  kcp_optix_destroy(join->optix);
  if (join->stream != NULL) cudaStreamDestroy(join->stream);
  free(join->order);
  free(join->firsts);
  free(join);
}

static uint64_t buffer_bytes(const struct kcp_range_join *join, int count) {
  uint64_t sum = 0;
  for (int i = 0; i < count; ++i) sum += join->buffers[i].bytes;
  return sum;
}

uint64_t kcp_range_device_bytes(const struct kcp_range_join *join) {
  return buffer_bytes(join, KCP_BUFFER_COUNT);
}

uint64_t kcp_range_kept_bytes(const struct kcp_range_join *join) {
  return buffer_bytes(join, KCP_BUFFER_MET);
}

enum kcp_status kcp_range_upload(struct kcp_range_join *join, const struct kcp_points *points,
                                 enum kcp_range_buffer which, struct kcp_measurement *measurement,
                                 struct kcp_error *error) {
  const uint64_t count = points->count, dimensions = points->dimensions;
  double *columns;
  KCP_TRY(kcp_range_room(join, which, count * dimensions, &columns, error));
  if (points->stride == count) /* the columns touch */
    return kcp_range_copy_in(join, columns, points->coordinates,
                             count * dimensions * sizeof *columns, measurement, error);
  for (uint32_t j = 0; j < dimensions; ++j)
    KCP_TRY(kcp_range_copy_in(join, columns + j * count, kcp_points_column(points, j),
                              count * sizeof *columns, measurement, error));
  return KCP_OK;
}

enum kcp_status kcp_range_lap(struct kcp_range_join *join, double *started, double *seconds,
                              struct kcp_error *error) {
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  const double now = kcp_now();
  *seconds += now - *started;
  *started = now;
  return KCP_OK;
}

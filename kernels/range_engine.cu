/* The state of a range join on the device, and the way of points there. */
#include <cstdlib>
#include <cstring>

#include "range_join.cuh"

enum kcp_status kcp_range_scratch(struct kcp_range_join *join, size_t bytes, void **scratch,
                                  struct kcp_error *error) {
  unsigned char *memory;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_SCRATCH, bytes, &memory, error));
  *scratch = memory;
  return KCP_OK;
}

enum kcp_status kcp_range_join_create(const struct kcp_range_plan *plan,
                                      const struct kcp_device_info *device,
                                      struct kcp_range_join **out, struct kcp_error *error) {
  struct kcp_range_join *join = (struct kcp_range_join *)calloc(1, sizeof *join);
  *out = NULL;
  if (join == NULL) return kcp_out_of_memory(error, "a join", sizeof *join);
  join->plan = *plan;
  join->device = *device;
  if (join->plan.options.work_per_thread == 0)
    join->plan.options.work_per_thread = KCP_WORK_PER_THREAD;
  join->order = (uint32_t *)malloc(plan->dimensions * sizeof *join->order);
  if (join->order == NULL) {
    free(join);
    return kcp_out_of_memory(error, "dimensions", 4ull * plan->dimensions);
  }
  int exponent = 0;
  if (plan->eps > 0) frexp(plan->eps, &exponent);
  join->narrow_scale = ldexp(1.0, 1 - exponent);
  cudaError_t code = cudaSetDevice(device->index);
  if (code == cudaSuccess) code = cudaStreamCreateWithFlags(&join->stream, cudaStreamNonBlocking);
  if (code != cudaSuccess) {
    kcp_range_join_destroy(join);
    KCP_CUDA_TRY(code);
  }
  *out = join;
  return KCP_OK;
}

void kcp_range_join_destroy(struct kcp_range_join *join) {
  if (join == NULL) return;
  kcp_range_copier_free(join->copier);
  for (int i = 0; i < KCP_BUFFER_COUNT; ++i) kcp_device_buffer_free(&join->buffers[i]);
  if (join->stream != NULL) cudaStreamDestroy(join->stream);
  free(join->order);
  free(join->firsts);
  free(join);
}

uint64_t kcp_range_device_bytes(const struct kcp_range_join *join) {
  uint64_t sum = 0;
  for (int i = 0; i < KCP_BUFFER_COUNT; ++i) sum += join->buffers[i].bytes;
  return sum;
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

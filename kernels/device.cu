#include "device.cuh"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kcp/backend.h"
#include "kcp/measurement.h"
#include "kcp/range_join.h"

enum kcp_status kcp_cuda_failure(cudaError_t code, const char *expression, const char *file,
                                 int line, struct kcp_error *error) {
  const char *name = strrchr(file, '/');
  return kcp_fail(error, KCP_FAILED, "CUDA: %s (%s at %s:%d)", cudaGetErrorString(code), expression,
                  name != NULL ? name + 1 : file, line);
}

static bool checked_bytes(uint64_t count, uint64_t size, size_t *bytes) {
  uint64_t product = (count > 0 ? count : 1) * size;
  *bytes = (size_t)product;
  return count == 0 || product / size == count;
}

enum kcp_status kcp_device_take(struct kcp_device_memory *memory, uint64_t count, uint64_t size,
                                void **out, const char *what, struct kcp_error *error) {
  size_t bytes;
  if (!checked_bytes(count, size, &bytes) || memory->device_count == memory->capacity ||
      cudaMalloc(out, bytes) != cudaSuccess) {
    cudaGetLastError();
    return kcp_fail(error, KCP_FAILED, "out of device memory: %llu bytes for %s",
                    (unsigned long long)bytes, what);
  }
  memory->device[memory->device_count++] = *out;
  memory->device_bytes += bytes;
  return KCP_OK;
}

enum kcp_status kcp_pinned_take(struct kcp_device_memory *memory, uint64_t count, uint64_t size,
                                void **out, const char *what, struct kcp_error *error) {
  size_t bytes;
  if (!checked_bytes(count, size, &bytes) || memory->pinned_count == memory->capacity ||
      cudaHostAlloc(out, bytes, cudaHostAllocDefault) != cudaSuccess) {
    cudaGetLastError();
    return kcp_fail(error, KCP_FAILED, "out of pinned memory: %llu bytes for %s",
                    (unsigned long long)bytes, what);
  }
  memory->pinned[memory->pinned_count++] = *out;
  return KCP_OK;
}

void kcp_device_memory_free(struct kcp_device_memory *memory) {
  for (int i = 0; i < memory->device_count; ++i) cudaFree(memory->device[i]);
  for (int i = 0; i < memory->pinned_count; ++i) cudaFreeHost(memory->pinned[i]);
  memset(memory, 0, sizeof *memory);
}

enum kcp_status kcp_device_timer_create(struct kcp_device_timer *timer, struct kcp_error *error) {
  timer->pending = false;
  KCP_CUDA_TRY(cudaEventCreate(&timer->begin));
  KCP_CUDA_TRY(cudaEventCreate(&timer->end));
  return KCP_OK;
}

void kcp_device_timer_destroy(struct kcp_device_timer *timer) {
  if (timer->begin != NULL) cudaEventDestroy(timer->begin);
  if (timer->end != NULL) cudaEventDestroy(timer->end);
  memset(timer, 0, sizeof *timer);
}

enum kcp_status kcp_device_timer_begin(struct kcp_device_timer *timer, cudaStream_t stream,
                                       struct kcp_error *error) {
  KCP_CUDA_TRY(cudaEventRecord(timer->begin, stream));
  return KCP_OK;
}

enum kcp_status kcp_device_timer_end(struct kcp_device_timer *timer, cudaStream_t stream,
                                     struct kcp_error *error) {
  KCP_CUDA_TRY(cudaEventRecord(timer->end, stream));
  timer->pending = true;
  return KCP_OK;
}

struct span {
  float begin, end; /* milliseconds after the first timer's begin */
};

static int compare_spans(const void *a, const void *b) {
  float left = ((const struct span *)a)->begin, right = ((const struct span *)b)->begin;
  return left < right ? -1 : left > right;
}

static double union_of(struct span *spans, uint32_t count) {
  double milliseconds = 0;
  float covered_to = -INFINITY;
  qsort(spans, count, sizeof *spans, compare_spans);
  for (uint32_t i = 0; i < count; ++i) {
    float begin = spans[i].begin > covered_to ? spans[i].begin : covered_to;
    if (spans[i].end <= begin) continue;
    milliseconds += spans[i].end - begin;
    covered_to = spans[i].end;
  }
  return milliseconds;
}

enum kcp_status kcp_device_timers_collect(struct kcp_device_timer *const *timers, uint32_t count,
                                          double *seconds, struct kcp_error *error) {
  struct span *spans = (struct span *)malloc((count > 0 ? count : 1) * sizeof *spans);
  if (spans == NULL) return kcp_out_of_memory(error, "timers", count * sizeof *spans);
  uint32_t used = 0;
  cudaEvent_t base = NULL;
  cudaError_t code = cudaSuccess;
  for (uint32_t i = 0; i < count && code == cudaSuccess; ++i) {
    if (!timers[i]->pending) continue;
    if (base == NULL) base = timers[i]->begin;
    code = cudaEventElapsedTime(&spans[used].begin, base, timers[i]->begin);
    if (code == cudaSuccess) code = cudaEventElapsedTime(&spans[used].end, base, timers[i]->end);
    timers[i]->pending = false;
    ++used;
  }
  if (code == cudaSuccess) *seconds += 1e-3 * union_of(spans, used);
  free(spans);
  KCP_CUDA_TRY(code);
  return KCP_OK;
}

extern "C" {

extern const struct kcp_pair_engine kcp_cuda_pair_engine;           /* list_search.cu */
extern const struct kcp_threshold_engine kcp_cuda_threshold_engine; /* threshold_search.cu */
extern const struct kcp_top_k_engine kcp_cuda_top_k_engine;         /* top_k.cu */
extern const struct kcp_transfer_engine kcp_cuda_transfer_engine;   /* transfer.cu */
extern const struct kcp_influence_engine kcp_cuda_influence_engine; /* influence.cu */
extern const struct kcp_range_engine kcp_cuda_range_brute;          /* range_engines.cu */
extern const struct kcp_range_engine kcp_cuda_rt_hiss;              /* range_engines.cu */

/* By enum kcp_range_method; the grid is a baseline of the CPU. */
static const struct kcp_range_engine *const range_joins[KCP_RANGE_METHODS] = {
    &kcp_cuda_range_brute, nullptr, &kcp_cuda_rt_hiss};

static enum kcp_status probe(int index, struct kcp_device_info *info, struct kcp_error *error) {
  memset(info, 0, sizeof *info);
  setenv("CUDA_MODULE_LOADING", "LAZY", 0);
  double started = kcp_now();
  int count = 0, driver = 0;
  cudaDriverGetVersion(&driver);
  if (driver == 0)
    return kcp_fail(
        error, KCP_UNAVAILABLE,
        "no CUDA device: driver not found (libcuda.so.1); run with --device cpu or auto");
  cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess || count == 0)
    return kcp_fail(error, KCP_UNAVAILABLE, "no CUDA device: %s; run with --device cpu or auto",
                    code != cudaSuccess ? cudaGetErrorString(code) : "the driver lists none");
  if (index < 0 || index >= count)
    return kcp_fail(error, KCP_UNAVAILABLE, "no CUDA device %d: there %s %d (cuda:0%s)", index,
                    count == 1 ? "is" : "are", count, count == 1 ? "" : " and up");
  cudaDeviceProp properties;
  code = cudaSetDevice(index);
  if (code == cudaSuccess) code = cudaGetDeviceProperties(&properties, index);
  size_t free_bytes = 0, total_bytes = 0;
  if (code == cudaSuccess) code = cudaMemGetInfo(&free_bytes, &total_bytes); /* makes the context */
  if (code != cudaSuccess)
    return kcp_fail(error, KCP_UNAVAILABLE,
                    "CUDA device %d cannot be used: %s; run with --device cpu", index,
                    cudaGetErrorString(code));
  snprintf(info->name, sizeof info->name, "%.*s", (int)sizeof info->name - 1, properties.name);
  snprintf(info->driver, sizeof info->driver, "%d.%d", driver / 1000, driver % 1000 / 10);
  info->index = index;
  info->units = (uint32_t)properties.multiProcessorCount;
  info->thread_slots =
      (uint64_t)properties.multiProcessorCount * properties.maxThreadsPerMultiProcessor;
  info->memory_bytes = total_bytes;
  info->free_bytes = free_bytes;
  info->startup_seconds = kcp_now() - started;
  return KCP_OK;
}

const struct kcp_backend *kcp_backend_cuda(void) {
  static const struct kcp_backend backend = {KCP_BACKEND_CUDA,
                                             "cuda",
                                             probe,
                                             &kcp_cuda_pair_engine,
                                             &kcp_cuda_threshold_engine,
                                             &kcp_cuda_top_k_engine,
                                             &kcp_cuda_influence_engine,
                                             range_joins,
                                             &kcp_cuda_transfer_engine};
  return &backend;
}
}

/* Device memory, streams, timing and error checks: the one place for them. */
#ifndef KCP_KERNELS_DEVICE_CUH
#define KCP_KERNELS_DEVICE_CUH

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kcp/status.h"

/* Records the failed expression, file and line, and returns the status. */
enum kcp_status kcp_cuda_failure(cudaError_t code, const char *expression, const char *file,
                                 int line, struct kcp_error *error);

#define KCP_CUDA_TRY(EXPRESSION)                                                 \
  do {                                                                           \
    cudaError_t kcp_code = (EXPRESSION);                                         \
    if (kcp_code != cudaSuccess)                                                 \
      return kcp_cuda_failure(kcp_code, #EXPRESSION, __FILE__, __LINE__, error); \
  } while (0)

#define KCP_TRY(EXPRESSION)                        \
  do {                                             \
    enum kcp_status kcp_status_ = (EXPRESSION);    \
    if (kcp_status_ != KCP_OK) return kcp_status_; \
  } while (0)

/* Allocations of one owner, counted, and freed together. */
struct kcp_device_memory {
  static const int capacity = 128;
  void *device[capacity];
  void *pinned[capacity];
  int device_count;
  int pinned_count;
  uint64_t device_bytes;
};

/* `count` elements of `size` bytes on the device, or pinned on the host, owned by `memory`. */
enum kcp_status kcp_device_take(struct kcp_device_memory *memory, uint64_t count, uint64_t size,
                                void **out, const char *what, struct kcp_error *error);
enum kcp_status kcp_pinned_take(struct kcp_device_memory *memory, uint64_t count, uint64_t size,
                                void **out, const char *what, struct kcp_error *error);
void kcp_device_memory_free(struct kcp_device_memory *memory);

template <typename T>
enum kcp_status kcp_device_array(struct kcp_device_memory *memory, uint64_t count, T **out,
                                 const char *what, struct kcp_error *error) {
  return kcp_device_take(memory, count, sizeof(T), (void **)out, what, error);
}

template <typename T>
enum kcp_status kcp_pinned_array(struct kcp_device_memory *memory, uint64_t count, T **out,
                                 const char *what, struct kcp_error *error) {
  return kcp_pinned_take(memory, count, sizeof(T), (void **)out, what, error);
}

/* A span of work on a stream, timed by events; read after the stream was synchronized. */
struct kcp_device_timer {
  cudaEvent_t begin, end;
  bool pending;
};

enum kcp_status kcp_device_timer_create(struct kcp_device_timer *timer, struct kcp_error *error);
void kcp_device_timer_destroy(struct kcp_device_timer *timer);
enum kcp_status kcp_device_timer_begin(struct kcp_device_timer *timer, cudaStream_t stream,
                                       struct kcp_error *error);
enum kcp_status kcp_device_timer_end(struct kcp_device_timer *timer, cudaStream_t stream,
                                     struct kcp_error *error);
/* The seconds during which at least one of the timers' spans ran: spans of several streams overlap,
 * and only their union is time that passed. Adds it to *seconds; spans count once. */
enum kcp_status kcp_device_timers_collect(struct kcp_device_timer *const *timers, uint32_t count,
                                          double *seconds, struct kcp_error *error);

/* Kernels that follow closely (programmatic dependent launch, from compute capability 9.0 on): the
 * next is started while the last still runs, as soon as all blocks of that have let it, and waits
 * for its end before it touches what that writes. Without the capability these do nothing, and
 * kcp_launch_closely is to be told so. */
__device__ inline void kcp_let_next_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

__device__ inline void kcp_wait_for_last() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

/* Brings the line of an address to the cache that all multiprocessors share. */
__device__ inline void kcp_prefetch(const void *address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

/* Whether a kernel was compiled for such a device. */
template <typename Kernel>
enum kcp_status kcp_can_follow_closely(Kernel kernel, bool *can, struct kcp_error *error) {
  cudaFuncAttributes attributes;
  KCP_CUDA_TRY(cudaFuncGetAttributes(&attributes, kernel));
  *can = attributes.ptxVersion >= 90;
  return KCP_OK;
}

template <typename... Parameters, typename... Arguments>
cudaError_t kcp_launch_closely(bool closely, void (*kernel)(Parameters...), unsigned blocks,
                               unsigned threads, size_t shared_bytes, cudaStream_t stream,
                               Arguments... arguments) {
  cudaLaunchAttribute attribute;
  cudaLaunchConfig_t config = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = closely ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, (Parameters)arguments...);
}

#endif

/* Section IV-F2 of RT-HiSS: results to host memory through a small pinned staging area, shared by
 * threads with a stream each, so that one's copy from or to pageable memory overlaps another's
 * transfer. Points go to the device the same way. */
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "range_join.cuh"

static const uint64_t standard_pinned_bytes = 16u << 20;
static const uint64_t standard_threads = 8;

/* A transfer, dealt to threads chunk by chunk. */
struct transfer {
  char *host;
  char *device;
  cudaMemcpyKind kind;
  uint64_t bytes, chunk_bytes;
  std::atomic<uint64_t> next;
  std::atomic<int> code; /* the first failure */
};

static cudaError_t copy_chunk(const struct transfer *transfer, uint64_t at, char *pinned,
                              cudaStream_t stream) {
  const uint64_t left = transfer->bytes - at;
  const uint64_t bytes = left < transfer->chunk_bytes ? left : transfer->chunk_bytes;
  const bool in = transfer->kind == cudaMemcpyHostToDevice;
  if (in) memcpy(pinned, transfer->host + at, bytes);
  cudaError_t code =
      in ? cudaMemcpyAsync(transfer->device + at, pinned, bytes, cudaMemcpyHostToDevice, stream)
         : cudaMemcpyAsync(pinned, transfer->device + at, bytes, cudaMemcpyDeviceToHost, stream);
  if (code == cudaSuccess) code = cudaStreamSynchronize(stream);
  if (code == cudaSuccess && !in) memcpy(transfer->host + at, pinned, bytes);
  return code;
}

static void run_thread(struct transfer *transfer, int device, char *pinned) {
  cudaStream_t stream = NULL;
  cudaError_t code = cudaSetDevice(device);
  if (code == cudaSuccess) code = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  while (code == cudaSuccess) {
    const uint64_t at = transfer->next.fetch_add(transfer->chunk_bytes);
    if (at >= transfer->bytes) break;
    code = copy_chunk(transfer, at, pinned, stream);
  }
  if (stream != NULL) cudaStreamDestroy(stream);
  if (code != cudaSuccess) transfer->code = code;
}

/* The staging area, made at the first transfer and kept. */
static enum kcp_status reserve_pinned(struct kcp_range_join *join, uint64_t bytes,
                                      struct kcp_error *error) {
  if (join->pinned != NULL) return KCP_OK;
  KCP_CUDA_TRY(cudaHostAlloc(&join->pinned, bytes, cudaHostAllocDefault));
  return KCP_OK;
}

static enum kcp_status copy_staged(struct kcp_range_join *join, struct transfer *transfer,
                                   struct kcp_error *error) {
  const struct kcp_range_options *options = &join->plan.options;
  const uint64_t pinned_bytes =
      options->pinned_bytes > 0 ? options->pinned_bytes : standard_pinned_bytes;
  uint64_t count = options->copy_threads > 0 ? options->copy_threads : standard_threads;
  if (count > pinned_bytes) count = pinned_bytes;
  transfer->chunk_bytes = pinned_bytes / count;
  const uint64_t chunks = (transfer->bytes + transfer->chunk_bytes - 1) / transfer->chunk_bytes;
  if (count > chunks) count = chunks;
  KCP_TRY(reserve_pinned(join, pinned_bytes, error));
  char *pinned = (char *)join->pinned;
  std::vector<std::thread> threads;
  for (uint64_t i = 1; i < count; ++i)
    threads.emplace_back(run_thread, transfer, join->device.index,
                         pinned + i * transfer->chunk_bytes);
  run_thread(transfer, join->device.index, pinned);
  for (std::thread &thread : threads) thread.join();
  KCP_CUDA_TRY((cudaError_t)transfer->code.load());
  return KCP_OK;
}

static enum kcp_status copy(struct kcp_range_join *join, void *host, void *device, uint64_t bytes,
                            cudaMemcpyKind kind, struct kcp_error *error) {
  struct transfer transfer = {(char *)host, (char *)device, kind, bytes, bytes, {0}, {0}};
  if (bytes == 0) return KCP_OK;
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream)); /* the other streams do not wait for it */
  if (join->plan.options.host_memory == KCP_HOST_PINNED) return copy_staged(join, &transfer, error);
  if (kind == cudaMemcpyHostToDevice)
    KCP_CUDA_TRY(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
  else
    KCP_CUDA_TRY(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
  return KCP_OK;
}

enum kcp_status kcp_range_copy_out(struct kcp_range_join *join, void *host, const void *device,
                                   uint64_t bytes, struct kcp_measurement *measurement,
                                   struct kcp_error *error) {
  const double started = kcp_now();
  KCP_TRY(copy(join, host, const_cast<void *>(device), bytes, cudaMemcpyDeviceToHost, error));
  measurement->bytes_downloaded += bytes;
  measurement->phase_s[KCP_PHASE_DOWNLOAD] += kcp_now() - started;
  return KCP_OK;
}

enum kcp_status kcp_range_copy_in(struct kcp_range_join *join, void *device, const void *host,
                                  uint64_t bytes, struct kcp_measurement *measurement,
                                  struct kcp_error *error) {
  const double started = kcp_now();
  KCP_TRY(copy(join, const_cast<void *>(host), device, bytes, cudaMemcpyHostToDevice, error));
  measurement->bytes_uploaded += bytes;
  measurement->phase_s[KCP_PHASE_UPLOAD] += kcp_now() - started;
  return KCP_OK;
}

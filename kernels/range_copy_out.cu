/* Section IV-F2 of RT-HiSS: results to host memory through a small pinned staging area, shared by
 * threads with a stream each, so that one's copy to pageable memory overlaps another's transfer. */
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
  const char *device;
  uint64_t bytes, chunk_bytes;
  std::atomic<uint64_t> next;
  std::atomic<int> code; /* the first failure */
};

static cudaError_t copy_chunks(struct transfer *transfer, char *pinned, cudaStream_t stream) {
  for (;;) {
    const uint64_t at = transfer->next.fetch_add(transfer->chunk_bytes);
    if (at >= transfer->bytes) return cudaSuccess;
    const uint64_t left = transfer->bytes - at;
    const uint64_t bytes = left < transfer->chunk_bytes ? left : transfer->chunk_bytes;
    cudaError_t code =
        cudaMemcpyAsync(pinned, transfer->device + at, bytes, cudaMemcpyDeviceToHost, stream);
    if (code == cudaSuccess) code = cudaStreamSynchronize(stream);
    if (code != cudaSuccess) return code;
    memcpy(transfer->host + at, pinned, bytes);
  }
}

static void run_thread(struct transfer *transfer, int device, char *pinned) {
  cudaStream_t stream = NULL;
  cudaError_t code = cudaSetDevice(device);
  if (code == cudaSuccess) code = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (code == cudaSuccess) code = copy_chunks(transfer, pinned, stream);
  if (stream != NULL) cudaStreamDestroy(stream);
  if (code != cudaSuccess) transfer->code = code;
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
  char *pinned;
  KCP_CUDA_TRY(cudaHostAlloc((void **)&pinned, pinned_bytes, cudaHostAllocDefault));
  std::vector<std::thread> threads;
  for (uint64_t i = 1; i < count; ++i)
    threads.emplace_back(run_thread, transfer, join->device.index,
                         pinned + i * transfer->chunk_bytes);
  run_thread(transfer, join->device.index, pinned);
  for (std::thread &thread : threads) thread.join();
  cudaFreeHost(pinned);
  KCP_CUDA_TRY((cudaError_t)transfer->code.load());
  return KCP_OK;
}

enum kcp_status kcp_range_copy_out(struct kcp_range_join *join, void *host, const void *device,
                                   uint64_t bytes, struct kcp_measurement *measurement,
                                   struct kcp_error *error) {
  const double started = kcp_now();
  struct transfer transfer = {(char *)host, (const char *)device, bytes, bytes, {0}, {0}};
  if (bytes == 0) return KCP_OK;
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream)); /* the other streams do not wait for it */
  if (join->plan.options.host_memory == KCP_HOST_PINNED)
    KCP_TRY(copy_staged(join, &transfer, error));
  else
    KCP_CUDA_TRY(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
  measurement->bytes_downloaded += bytes;
  measurement->phase_s[KCP_PHASE_DOWNLOAD] += kcp_now() - started;
  return KCP_OK;
}

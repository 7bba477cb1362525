/* Section IV-F2 of RT-HiSS: results to host memory through a small pinned staging area, shared by
 * threads with a stream each, so that one's copy from or to pageable memory overlaps another's
 * transfer. Points go to the device the same way.
 *
 * The threads live as long as the join and take chunks of the transfers in turn, so that a transfer
 * goes on while the caller works, and the next begins before the last chunk of this one is there. A
 * chunk (2 MB) ends where a large page of the host ends, so that the first write to a page is one
 * thread's.
 *
 * The link gives 55 GB/s. Measured on an H200's host with 16 cores, 15.6 GB to fresh memory: 8
 * threads 27 GB/s, 16 threads 31, 32 threads 22; chunks of 1 MB 19; pageable memory 3.8. Two chunks
 * a thread, one on the link while the other is copied, were no faster: clearing and writing fresh
 * pages decides. */
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "range_join.cuh"

static const uint64_t standard_bytes_of_thread = 2u << 20;
static const uint64_t most_standard_threads = 16;

struct kcp_range_copier {
  int device;
  uint64_t chunk_bytes, most_threads; /* a thread has a chunk of the staging area */
  std::vector<std::thread> threads;
  std::mutex mutex; /* for all below, and transfers that are under way */
  std::condition_variable wake, done;
  std::deque<struct kcp_range_transfer *> queue; /* those with chunks left */
  bool stopping;
};

static cudaError_t copy_chunk(const struct kcp_range_transfer *transfer, uint64_t at,
                              uint64_t bytes, char *pinned, cudaStream_t stream) {
  const bool in = transfer->kind == cudaMemcpyHostToDevice;
  if (in) memcpy(pinned, transfer->host + at, bytes);
  cudaError_t code =
      in ? cudaMemcpyAsync(transfer->device + at, pinned, bytes, cudaMemcpyHostToDevice, stream)
         : cudaMemcpyAsync(pinned, transfer->device + at, bytes, cudaMemcpyDeviceToHost, stream);
  if (code == cudaSuccess) code = cudaStreamSynchronize(stream);
  if (code == cudaSuccess && !in) memcpy(transfer->host + at, pinned, bytes);
  return code;
}

/* The next chunk of the oldest transfer; the lock is held. */
static struct kcp_range_transfer *take_chunk(struct kcp_range_copier *copier, uint64_t *at,
                                             uint64_t *bytes) {
  struct kcp_range_transfer *transfer = copier->queue.front();
  *at = transfer->dealt;
  *bytes = copier->chunk_bytes - (uintptr_t)(transfer->host + *at) % copier->chunk_bytes;
  if (*bytes > transfer->bytes - *at) *bytes = transfer->bytes - *at;
  if (*at == 0) transfer->started = kcp_now();
  transfer->dealt += *bytes;
  if (transfer->dealt == transfer->bytes) copier->queue.pop_front();
  return transfer;
}

static void run_thread(struct kcp_range_copier *copier) {
  cudaStream_t stream = NULL;
  char *pinned = NULL;
  cudaError_t started = cudaSetDevice(copier->device);
  if (started == cudaSuccess)
    started = cudaHostAlloc((void **)&pinned, copier->chunk_bytes, cudaHostAllocDefault);
  if (started == cudaSuccess) started = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  std::unique_lock<std::mutex> lock(copier->mutex);
  for (;;) {
    copier->wake.wait(lock, [=] { return copier->stopping || !copier->queue.empty(); });
    if (copier->queue.empty()) break;
    uint64_t at, bytes;
    struct kcp_range_transfer *transfer = take_chunk(copier, &at, &bytes);
    lock.unlock();
    const cudaError_t code =
        started == cudaSuccess ? copy_chunk(transfer, at, bytes, pinned, stream) : started;
    lock.lock();
    if (code != cudaSuccess) transfer->code = code;
    transfer->done += bytes;
    if (transfer->done < transfer->bytes) continue;
    transfer->ended = kcp_now();
    copier->done.notify_all();
  }
  lock.unlock();
  if (stream != NULL) cudaStreamDestroy(stream);
  if (pinned != NULL) cudaFreeHost(pinned);
}

void kcp_range_copier_free(struct kcp_range_copier *copier) {
  if (copier == NULL) return;
  {
    std::lock_guard<std::mutex> lock(copier->mutex);
    copier->stopping = true;
  }
  copier->wake.notify_all();
  for (std::thread &thread : copier->threads) thread.join();
  delete copier;
}

/* As many threads as a transfer of that many bytes has work for; they are kept. */
static void start_threads(struct kcp_range_join *join, uint64_t bytes) {
  const struct kcp_range_options *options = &join->plan.options;
  struct kcp_range_copier *copier = join->copier;
  if (copier == NULL) {
    uint64_t count = options->copy_threads;
    if (count == 0) {
      count = std::thread::hardware_concurrency();
      if (count == 0 || count > most_standard_threads) count = most_standard_threads;
    }
    const uint64_t pinned_bytes =
        options->pinned_bytes > 0 ? options->pinned_bytes : count * standard_bytes_of_thread;
    if (count > pinned_bytes) count = pinned_bytes;
    join->copier = copier = new kcp_range_copier();
    copier->device = join->device.index;
    copier->most_threads = count;
    copier->chunk_bytes = pinned_bytes / count;
  }
  while (copier->threads.empty() || (copier->threads.size() < copier->most_threads &&
                                     copier->threads.size() * copier->chunk_bytes < bytes))
    copier->threads.emplace_back(run_thread, copier);
}

enum kcp_status kcp_range_copy_begin(struct kcp_range_join *join, void *to, const void *from,
                                     uint64_t bytes, cudaMemcpyKind kind,
                                     struct kcp_range_transfer *transfer, struct kcp_error *error) {
  const bool in = kind == cudaMemcpyHostToDevice;
  *transfer = {};
  transfer->host = (char *)(in ? const_cast<void *>(from) : to);
  transfer->device = (char *)(in ? to : const_cast<void *>(from));
  transfer->kind = kind;
  if (bytes == 0) return KCP_OK;
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream)); /* the other streams do not wait for it */
  if (join->plan.options.host_memory == KCP_HOST_PAGEABLE) {
    transfer->started = kcp_now();
    KCP_CUDA_TRY(cudaMemcpy(to, from, bytes, kind));
    transfer->ended = kcp_now();
    transfer->bytes = transfer->dealt = transfer->done = bytes;
    return KCP_OK;
  }
  start_threads(join, bytes);
  {
    std::lock_guard<std::mutex> lock(join->copier->mutex);
    join->copier->queue.push_back(transfer);
    transfer->bytes = bytes;
  }
  join->copier->wake.notify_all();
  return KCP_OK;
}

void kcp_range_copy_wait(struct kcp_range_join *join, struct kcp_range_transfer *transfer) {
  if (join->copier == NULL) return;
  std::unique_lock<std::mutex> lock(join->copier->mutex);
  join->copier->done.wait(lock, [=] { return transfer->done == transfer->bytes; });
}

enum kcp_status kcp_range_copy_end(struct kcp_range_join *join, struct kcp_range_transfer *transfer,
                                   struct kcp_measurement *measurement, struct kcp_error *error) {
  kcp_range_copy_wait(join, transfer);
  KCP_CUDA_TRY(transfer->code);
  const bool in = transfer->kind == cudaMemcpyHostToDevice;
  *(in ? &measurement->bytes_uploaded : &measurement->bytes_downloaded) += transfer->bytes;
  measurement->phase_s[in ? KCP_PHASE_UPLOAD : KCP_PHASE_DOWNLOAD] +=
      transfer->ended - transfer->started;
  return KCP_OK;
}

enum kcp_status kcp_range_copy_out(struct kcp_range_join *join, void *host, const void *device,
                                   uint64_t bytes, struct kcp_measurement *measurement,
                                   struct kcp_error *error) {
  struct kcp_range_transfer transfer;
  KCP_TRY(
      kcp_range_copy_begin(join, host, device, bytes, cudaMemcpyDeviceToHost, &transfer, error));
  return kcp_range_copy_end(join, &transfer, measurement, error);
}

enum kcp_status kcp_range_copy_in(struct kcp_range_join *join, void *device, const void *host,
                                  uint64_t bytes, struct kcp_measurement *measurement,
                                  struct kcp_error *error) {
  struct kcp_range_transfer transfer;
  KCP_TRY(
      kcp_range_copy_begin(join, device, host, bytes, cudaMemcpyHostToDevice, &transfer, error));
  return kcp_range_copy_end(join, &transfer, measurement, error);
}

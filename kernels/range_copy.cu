/* Section IV-F2 of RT-HiSS: results to host memory through a small pinned staging area, shared by
 * threads with a stream each, so that one's copy from or to pageable memory overlaps another's
 * transfer. Points go to the device the same way.
 *
 * The threads live as long as the join and take chunks of the transfers in turn, so that a transfer
 * goes on while the caller works, and the next begins before the last chunk of this one is there. A
 * chunk (2 MB) ends where a large page of the host ends, so that the first write to a page is one
 * thread's.
 *
 * Measured to fresh memory in large pages, an H200 and 16 cores, 15.6 GB:
 * 1. A chunk a thread, its transfer and its copy in turn: 16 threads 500 ms (31 GB/s), 8 threads
 *    581 ms, 32 threads 717 ms; 8 threads with chunks of 1 MB, so that two threads can meet in
 *    a page, 835 ms; cudaMemcpy to pageable memory 4,056 ms. Of a thread's time, the clearing of
 *    pages is a large part.
 * 2. Two chunks a thread, one on the link while the other is copied. */
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "range_join.cuh"

static const uint64_t standard_bytes_of_thread = 4u << 20;
static const uint64_t most_standard_threads = 16;

/* A chunk on its way. */
struct chunk {
  struct kcp_range_transfer *transfer; /* NULL when there is none */
  uint64_t at, bytes;
  char *pinned;
  cudaStream_t stream;
  cudaError_t code;
};

struct kcp_range_copier {
  int device;
  uint64_t chunk_bytes, most_threads; /* a thread has two chunks of the staging area */
  std::vector<std::thread> threads;
  std::mutex mutex; /* for all below, and transfers that are under way */
  std::condition_variable wake, done;
  std::deque<struct kcp_range_transfer *> queue; /* those with chunks left */
  bool stopping;
};

static cudaError_t open_chunk(const struct kcp_range_copier *copier, struct chunk *chunk) {
  const cudaError_t code =
      cudaHostAlloc((void **)&chunk->pinned, copier->chunk_bytes, cudaHostAllocDefault);
  return code == cudaSuccess ? cudaStreamCreateWithFlags(&chunk->stream, cudaStreamNonBlocking)
                             : code;
}

static void close_chunk(struct chunk *chunk) {
  if (chunk->stream != NULL) cudaStreamDestroy(chunk->stream);
  if (chunk->pinned != NULL) cudaFreeHost(chunk->pinned);
}

/* The next chunk of the oldest transfer; the lock is held. */
static void take_chunk(struct kcp_range_copier *copier, struct chunk *chunk) {
  struct kcp_range_transfer *transfer = copier->queue.front();
  chunk->transfer = transfer;
  chunk->at = transfer->dealt;
  chunk->bytes =
      copier->chunk_bytes - (uintptr_t)(transfer->host + chunk->at) % copier->chunk_bytes;
  if (chunk->bytes > transfer->bytes - chunk->at) chunk->bytes = transfer->bytes - chunk->at;
  if (chunk->at == 0) transfer->started = kcp_now();
  transfer->dealt += chunk->bytes;
  if (transfer->dealt == transfer->bytes) copier->queue.pop_front();
}

static void begin_chunk(struct chunk *chunk) {
  const struct kcp_range_transfer *transfer = chunk->transfer;
  char *host = transfer->host + chunk->at, *device = transfer->device + chunk->at;
  if (transfer->kind == cudaMemcpyHostToDevice) {
    memcpy(chunk->pinned, host, chunk->bytes);
    chunk->code =
        cudaMemcpyAsync(device, chunk->pinned, chunk->bytes, transfer->kind, chunk->stream);
  } else {
    chunk->code =
        cudaMemcpyAsync(chunk->pinned, device, chunk->bytes, transfer->kind, chunk->stream);
  }
}

static void end_chunk(struct chunk *chunk) {
  const struct kcp_range_transfer *transfer = chunk->transfer;
  if (chunk->code == cudaSuccess) chunk->code = cudaStreamSynchronize(chunk->stream);
  if (chunk->code == cudaSuccess && transfer->kind == cudaMemcpyDeviceToHost)
    memcpy(transfer->host + chunk->at, chunk->pinned, chunk->bytes);
}

/* The chunk is there; the lock is held. */
static void report_chunk(struct kcp_range_copier *copier, struct chunk *chunk) {
  struct kcp_range_transfer *transfer = chunk->transfer;
  if (chunk->code != cudaSuccess) transfer->code = chunk->code;
  chunk->transfer = NULL;
  transfer->done += chunk->bytes;
  if (transfer->done < transfer->bytes) return;
  transfer->ended = kcp_now();
  copier->done.notify_all();
}

/* One chunk is on the link while the thread copies the other from or to pageable memory. */
static void run_thread(struct kcp_range_copier *copier) {
  struct chunk chunks[2] = {};
  cudaError_t opened = cudaSetDevice(copier->device);
  for (struct chunk &chunk : chunks)
    if (opened == cudaSuccess) opened = open_chunk(copier, &chunk);
  std::unique_lock<std::mutex> lock(copier->mutex);
  for (int next = 0;; next ^= 1) {
    struct chunk *chunk = &chunks[next], *before = &chunks[next ^ 1];
    if (before->transfer == NULL)
      copier->wake.wait(lock, [=] { return copier->stopping || !copier->queue.empty(); });
    if (!copier->queue.empty())
      take_chunk(copier, chunk);
    else if (before->transfer == NULL)
      break;
    lock.unlock();
    chunk->code = opened;
    if (chunk->transfer != NULL && opened == cudaSuccess) begin_chunk(chunk);
    if (before->transfer != NULL) end_chunk(before);
    lock.lock();
    if (before->transfer != NULL) report_chunk(copier, before);
  }
  lock.unlock();
  for (struct chunk &chunk : chunks) close_chunk(&chunk);
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
    if (count > pinned_bytes / 2) count = pinned_bytes > 1 ? pinned_bytes / 2 : 1;
    join->copier = copier = new kcp_range_copier();
    copier->device = join->device.index;
    copier->most_threads = count;
    copier->chunk_bytes = pinned_bytes > 1 ? pinned_bytes / count / 2 : 1;
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

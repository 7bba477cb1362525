/* Bytes to the device: a pinned buffer, a device buffer and a stream for each lane. */
#include <cstdlib>

#include "device.cuh"
#include "kcp/floor.h"

struct lane {
  void *pinned;
  void *device;
  cudaStream_t stream;
};

struct kcp_transfer {
  struct kcp_device_memory memory;
  struct lane *lanes;
  uint32_t count;
};

static void destroy(struct kcp_transfer *transfer) {
  if (transfer == NULL) return;
  cudaDeviceSynchronize();
  for (uint32_t l = 0; l < transfer->count; ++l)
    if (transfer->lanes[l].stream != NULL) cudaStreamDestroy(transfer->lanes[l].stream);
  kcp_device_memory_free(&transfer->memory);
  free(transfer->lanes);
  free(transfer);
}

/* All lanes' buffers are parts of two allocations. */
static enum kcp_status allocate(struct kcp_transfer *transfer, uint64_t bytes,
                                struct kcp_error *error) {
  unsigned char *pinned, *device;
  KCP_TRY(kcp_pinned_array(&transfer->memory, transfer->count * bytes, &pinned, "buffers", error));
  KCP_TRY(kcp_device_array(&transfer->memory, transfer->count * bytes, &device, "buffers", error));
  for (uint32_t l = 0; l < transfer->count; ++l) {
    struct lane *lane = &transfer->lanes[l];
    lane->pinned = pinned + l * bytes;
    lane->device = device + l * bytes;
    KCP_CUDA_TRY(cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking));
  }
  return KCP_OK;
}

static enum kcp_status create(const struct kcp_device_info *device, uint32_t lanes, uint64_t bytes,
                              struct kcp_transfer **out, struct kcp_error *error) {
  KCP_CUDA_TRY(cudaSetDevice(device->index));
  struct kcp_transfer *transfer = (struct kcp_transfer *)calloc(1, sizeof *transfer);
  if (transfer == NULL) return kcp_out_of_memory(error, "a transfer", sizeof *transfer);
  transfer->lanes = (struct lane *)calloc(lanes, sizeof *transfer->lanes);
  transfer->count = transfer->lanes != NULL ? lanes : 0;
  enum kcp_status status = transfer->lanes != NULL
                               ? allocate(transfer, bytes, error)
                               : kcp_out_of_memory(error, "lanes", lanes * sizeof(struct lane));
  if (status != KCP_OK) {
    destroy(transfer);
    return status;
  }
  *out = transfer;
  return KCP_OK;
}

static enum kcp_status buffer(struct kcp_transfer *transfer, uint32_t lane, void **out,
                              struct kcp_error *error) {
  KCP_CUDA_TRY(cudaStreamSynchronize(transfer->lanes[lane].stream));
  *out = transfer->lanes[lane].pinned;
  return KCP_OK;
}

static enum kcp_status send(struct kcp_transfer *transfer, uint32_t number, uint64_t bytes,
                            struct kcp_error *error) {
  struct lane *lane = &transfer->lanes[number];
  KCP_CUDA_TRY(
      cudaMemcpyAsync(lane->device, lane->pinned, bytes, cudaMemcpyHostToDevice, lane->stream));
  return KCP_OK;
}

static enum kcp_status finish(struct kcp_transfer *transfer, struct kcp_error *error) {
  (void)transfer;
  KCP_CUDA_TRY(cudaDeviceSynchronize());
  return KCP_OK;
}

extern "C" {
extern const struct kcp_transfer_engine kcp_cuda_transfer_engine;
const struct kcp_transfer_engine kcp_cuda_transfer_engine = {create, destroy, buffer, send, finish};
}

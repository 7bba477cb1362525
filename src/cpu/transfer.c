/* Bytes that stay on the host: they are only read. */
#include <stdlib.h>

#include "kcp/floor.h"

struct kcp_transfer {
  uint64_t stride;
  unsigned char *buffers;
};

static enum kcp_status create(const struct kcp_device_info *device, uint32_t lanes, uint64_t bytes,
                              struct kcp_transfer **out, struct kcp_error *error) {
  (void)device;
  struct kcp_transfer *transfer = malloc(sizeof *transfer);
  unsigned char *buffers = malloc(lanes * bytes);
  if (transfer == NULL || buffers == NULL) {
    free(transfer);
    free(buffers);
    return kcp_out_of_memory(error, "read buffers", lanes * bytes);
  }
  *transfer = (struct kcp_transfer){bytes, buffers};
  *out = transfer;
  return KCP_OK;
}

static void destroy(struct kcp_transfer *transfer) {
  if (transfer == NULL) return;
  free(transfer->buffers);
  free(transfer);
}

static enum kcp_status buffer(struct kcp_transfer *transfer, uint32_t lane, void **out,
                              struct kcp_error *error) {
  (void)error;
  *out = transfer->buffers + lane * transfer->stride;
  return KCP_OK;
}

static enum kcp_status send(struct kcp_transfer *transfer, uint32_t lane, uint64_t bytes,
                            struct kcp_error *error) {
  (void)transfer, (void)lane, (void)bytes, (void)error;
  return KCP_OK;
}

static enum kcp_status finish(struct kcp_transfer *transfer, struct kcp_error *error) {
  (void)transfer, (void)error;
  return KCP_OK;
}

const struct kcp_transfer_engine kcp_cpu_transfer_engine = {
    .create = create, .destroy = destroy, .buffer = buffer, .send = send, .finish = finish};

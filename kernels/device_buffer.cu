#include "device_buffer.cuh"

enum kcp_status kcp_device_reserve(struct kcp_device_buffer *buffer, uint64_t count, uint64_t size,
                                   const char *what, struct kcp_error *error) {
  const uint64_t bytes = (count > 0 ? count : 1) * size;
  if (buffer->memory != NULL && buffer->bytes >= bytes) return KCP_OK;
  kcp_device_buffer_free(buffer);
  if (bytes / size != (count > 0 ? count : 1) ||
      cudaMalloc(&buffer->memory, bytes) != cudaSuccess) {
    cudaGetLastError();
    buffer->memory = NULL;
    return kcp_fail(error, KCP_FAILED, "out of device memory: %llu bytes for %s",
                    (unsigned long long)bytes, what);
  }
  buffer->bytes = bytes;
  return KCP_OK;
}

void kcp_device_buffer_free(struct kcp_device_buffer *buffer) {
  if (buffer->memory != NULL) cudaFree(buffer->memory);
  buffer->memory = NULL;
  buffer->bytes = 0;
}

/* Device memory that grows with what is asked of it. */
#ifndef KCP_KERNELS_DEVICE_BUFFER_CUH
#define KCP_KERNELS_DEVICE_BUFFER_CUH

#include "device.cuh"

/* Owned; zero at first. */
struct kcp_device_buffer {
  void *memory;
  uint64_t bytes;
};

/* Room for `count` elements of `size` bytes; what was there is lost when it grows. */
enum kcp_status kcp_device_reserve(struct kcp_device_buffer *buffer, uint64_t count, uint64_t size,
                                   const char *what, struct kcp_error *error);
void kcp_device_buffer_free(struct kcp_device_buffer *buffer);

/* The buffer as an array of `count` elements, into *out. */
template <typename T>
enum kcp_status kcp_device_room(struct kcp_device_buffer *buffer, uint64_t count, T **out,
                                const char *what, struct kcp_error *error) {
  KCP_TRY(kcp_device_reserve(buffer, count, sizeof(T), what, error));
  *out = (T *)buffer->memory;
  return KCP_OK;
}

#endif

/* The streaming floor: the time to read whole files with pread into transfer memory on all cores
 * and to upload them where there is a device. A search that needs every byte takes at least this.
 */
#ifndef KCP_FLOOR_H
#define KCP_FLOOR_H

#include "kcp/backend.h"
#include "kcp/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kcp_transfer; /* a backend's state */

/* What a backend does with bytes on their way. Calls for one lane come from one thread. */
struct kcp_transfer_engine {
  /* `lanes` buffers of `bytes` each, and what it takes to send them off. */
  enum kcp_status (*create)(const struct kcp_device_info *device, uint32_t lanes, uint64_t bytes,
                            struct kcp_transfer **out, struct kcp_error *error);
  void (*destroy)(struct kcp_transfer *transfer); /* NULL is allowed */
  /* The lane's buffer, once what was sent from it before has left. */
  enum kcp_status (*buffer)(struct kcp_transfer *transfer, uint32_t lane, void **buffer,
                            struct kcp_error *error);
  /* Sends the first `bytes` of the lane's buffer to the device; may return early. */
  enum kcp_status (*send)(struct kcp_transfer *transfer, uint32_t lane, uint64_t bytes,
                          struct kcp_error *error);
  /* Waits for all lanes. */
  enum kcp_status (*finish)(struct kcp_transfer *transfer, struct kcp_error *error);
};

/* Reads and sends all bytes of the files; the time without that to set up goes to *seconds. */
enum kcp_status kcp_measure_floor(const struct kcp_backend *backend,
                                  const struct kcp_device_info *device, const char *const *paths,
                                  int count, double *seconds, struct kcp_error *error);

#ifdef __cplusplus
}
#endif
#endif

/* Where a query runs. */
#ifndef KCP_BACKEND_CHOICE_H
#define KCP_BACKEND_CHOICE_H

#include <stdbool.h>

#include "kcp/backend.h"
#include "kcp/request.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kcp_backend_choice {
  const struct kcp_backend *backend;
  struct kcp_device_info device;
  bool no_gpu; /* auto looked for one and found none */
};

/* What --device asks for, probed; auto takes a GPU where there is one. KCP_UNAVAILABLE with the
 * reason. */
enum kcp_status kcp_choose_backend(const struct kcp_request *request,
                                   struct kcp_backend_choice *choice, struct kcp_error *error);

#ifdef __cplusplus
}
#endif
#endif

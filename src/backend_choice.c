#include "kcp/backend_choice.h"

#include <string.h>

enum kcp_status kcp_choose_backend(const struct kcp_request *request,
                                   struct kcp_backend_choice *choice, struct kcp_error *error) {
  struct kcp_error reason;
  memset(choice, 0, sizeof *choice);
  choice->backend = kcp_backend_cpu();
  if (request->device == KCP_DEVICE_CUDA) {
    choice->backend = kcp_backend_cuda();
    return choice->backend->probe(request->device_index, &choice->device, error);
  }
  if (request->device == KCP_DEVICE_AUTO) {
    if (kcp_backend_cuda()->probe(0, &choice->device, &reason) == KCP_OK) {
      choice->backend = kcp_backend_cuda();
      return KCP_OK;
    }
    choice->no_gpu = true;
  }
  return choice->backend->probe(0, &choice->device, error);
}

/* The CUDA backend of a program built without CUDA: its probe says so. */
#include "kcp/backend.h"

#ifndef KCP_HAVE_CUDA

static enum kcp_status probe(int index, struct kcp_device_info *info, struct kcp_error *error) {
  (void)index;
  (void)info;
  return kcp_fail(error, KCP_UNAVAILABLE,
                  "no CUDA device: this kcp was built without CUDA (cmake -DKCP_CUDA=ON); run with "
                  "--device cpu or auto");
}

const struct kcp_backend *kcp_backend_cuda(void) {
  static const struct kcp_backend backend = {
      .kind = KCP_BACKEND_CUDA, .name = "cuda", .probe = probe};
  return &backend;
}

#endif

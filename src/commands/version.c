#include <stdio.h>

#include "kcp/commands.h"
#include "kcp_version.h"

enum kcp_status kcp_command_version(const struct kcp_request *request, struct kcp_error *error) {
  (void)request;
  const char *cuda = KCP_CUDA_VERSION;
  printf("kcp %s\nrevision %s\nbuilt %s, %s%s\n", KCP_VERSION, KCP_REVISION, KCP_BUILD_FLAGS,
         cuda[0] != '\0' ? "CUDA " : "without CUDA", cuda);
  return kcp_finish_stdout(error);
}

#include <stdio.h>
#include <string.h>

#include "kcp/algorithm.h"
#include "kcp/commands.h"

struct widths {
  int name;
  int summary;
  int buffers;
};

static void widen(int *width, const char *text) {
  int length = (int)strlen(text);
  if (length > *width) *width = length;
}

/* "cpu cuda", of those that the algorithm has and that are here. */
static const char *backends_here(unsigned backends) {
  switch (backends) {
    case KCP_BACKEND_CPU | KCP_BACKEND_CUDA: return "cpu cuda";
    case KCP_BACKEND_CPU: return "cpu";
    case KCP_BACKEND_CUDA: return "cuda";
    default: return "-";
  }
}

enum kcp_status kcp_command_list(const struct kcp_request *request, struct kcp_error *error) {
  (void)request;
  struct kcp_device_info device;
  struct kcp_error reason;
  unsigned here = KCP_BACKEND_CPU;
  bool has_cuda = kcp_backend_cuda()->probe(0, &device, &reason) == KCP_OK;
  if (has_cuda) here |= KCP_BACKEND_CUDA;

  struct widths widths = {4, 8, 7};
  for (const struct kcp_algorithm *row = kcp_algorithms; row->name != NULL; ++row) {
    widen(&widths.name, row->name);
    widen(&widths.summary, row->summary);
    widen(&widths.buffers, row->buffers);
  }
  printf("%-*s  %-*s  %-8s  %-*s  %s\n", widths.name, "name", widths.summary, "computes", "here",
         widths.buffers, "buffers", "paper");
  for (const struct kcp_algorithm *row = kcp_algorithms; row->name != NULL; ++row)
    printf("%-*s  %-*s  %-8s  %-*s  %s\n", widths.name, row->name, widths.summary, row->summary,
           backends_here(row->backends & here), widths.buffers, row->buffers, row->source);
  if (has_cuda)
    printf("\ncuda is %s\n", device.name);
  else
    printf("\ncuda is not here: %s\n", reason.message);
  puts("--algo auto (the default) chooses one; kcp help NAME tells more");
  return kcp_finish_stdout(error);
}

#include "kcp/status.h"

#include <stdarg.h>
#include <stdio.h>

enum kcp_status kcp_fail(struct kcp_error *error, enum kcp_status status, const char *format, ...) {
  if (error == NULL) return status;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->message, sizeof error->message, format, arguments);
  va_end(arguments);
  return status;
}

enum kcp_status kcp_out_of_memory(struct kcp_error *error, const char *what,
                                  unsigned long long bytes) {
  return kcp_fail(error, KCP_FAILED, "out of memory: %llu bytes for %s (--memory SIZE lowers it)",
                  bytes, what);
}

int kcp_exit_code(enum kcp_status status) {
  switch (status) {
    case KCP_OK: return 0;
    case KCP_FAILED: return 1;
    case KCP_BAD_INPUT: return 2;
    case KCP_WRONG_ANSWER: return 3;
    case KCP_UNAVAILABLE: return 4;
    case KCP_INTERRUPTED: return 1;
  }
  return 1;
}

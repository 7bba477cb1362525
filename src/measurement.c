#include "kcp/measurement.h"

#include <time.h>

const char *kcp_phase_name(enum kcp_phase phase) {
  static const char *const names[KCP_PHASE_COUNT] = {"read",   "h2d", "index",
                                                     "kernel", "d2h", "merge"};
  return names[phase];
}

double kcp_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#include "kcp/interrupt.h"

#include <signal.h>
#include <string.h>

static volatile sig_atomic_t stop_requested;

static void request_stop(int signal_number) {
  (void)signal_number;
  stop_requested = 1;
}

void kcp_interrupt_install(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = request_stop;
  action.sa_flags = (int)SA_RESETHAND; /* a second Ctrl-C ends the program at once */
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

bool kcp_interrupted(void) {
  return stop_requested != 0;
}

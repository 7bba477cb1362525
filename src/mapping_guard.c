#include "mapping_guard.h"

#include <setjmp.h>
#include <signal.h>
#include <stddef.h>

/* Where the thread goes on when it touches what is not there; NULL while it touches no mapping. */
static _Thread_local sigjmp_buf *way_back;

static void handle_bus_error(int signal_number) {
  if (way_back != NULL) siglongjmp(*way_back, 1);
  signal(signal_number, SIG_DFL); /* not of a mapping: a fault that ends the program */
  raise(signal_number);
}

void kcp_guard_mappings(void) {
  struct sigaction action = {.sa_handler = handle_bus_error};
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, NULL);
}

bool kcp_touch_mapping(void (*work)(void *context), void *context) {
  sigjmp_buf here;
  if (sigsetjmp(here, 1) != 0) {
    way_back = NULL;
    return false;
  }
  way_back = &here;
  work(context);
  way_back = NULL;
  return true;
}

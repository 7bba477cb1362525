/* kcp: exact proximity queries on large point files. */
#include <signal.h>
#include <stdio.h>

#include "kcp/args.h"
#include "kcp/commands.h"
#include "kcp/interrupt.h"

int main(int argument_count, char **arguments) {
  struct kcp_request request;
  struct kcp_error error = {""};

  kcp_interrupt_install();
  signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of the write to it */

  enum kcp_status status = kcp_args_parse(argument_count, arguments, &request, &error);
  if (status == KCP_OK) status = kcp_command_run(&request, &error);
  if (status != KCP_OK) fprintf(stderr, "kcp: %s\n", error.message);
  return kcp_exit_code(status);
}

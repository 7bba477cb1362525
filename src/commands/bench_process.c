/* A configuration in a process of its own: its peak memory is its own, and one that crashes or is
 * killed is a row like any other. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kcp/bench.h"
#include "kcp/commands.h"
#include "kcp/interrupt.h"

enum { TICK_MILLISECONDS = 100, BLOCK_BYTES = 1 << 16 };

/* What the child has written so far. */
struct text {
  char *bytes; /* owned */
  size_t length;
};

/* The child: a query as any other, whose report goes to the pipe and whose answer goes nowhere. A
 * query that fails writes its message there. Does not return. */
static void run_in_child(const struct kcp_configuration *configuration, int pipe_end) {
  struct kcp_request request = configuration->request;
  struct kcp_error error = {""};
  char path[32];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0) _exit(KCP_FAILED);
  snprintf(path, sizeof path, "/dev/fd/%d", pipe_end);
  request.quiet = true;
  request.json_path = path;
  enum kcp_status status = kcp_command_run(&request, &error);
  if (status != KCP_OK) {
    ssize_t written = write(pipe_end, error.message, strlen(error.message));
    (void)written; /* the exit status tells that there is no report */
  }
  _exit((int)status);
}

/* Reads what is there; false at the end. */
static bool take(int pipe_end, struct text *text) {
  char *bytes = realloc(text->bytes, text->length + BLOCK_BYTES + 1);
  if (bytes == NULL) return false;
  text->bytes = bytes;
  ssize_t count = read(pipe_end, bytes + text->length, BLOCK_BYTES);
  if (count < 0) return errno == EINTR;
  text->length += (size_t)count;
  bytes[text->length] = '\0';
  return count > 0;
}

/* Until the child closes its end. An interrupt is passed on to it once. */
static void listen(pid_t child, int pipe_end, void (*tick)(void *context), void *context,
                   struct text *text) {
  bool passed_on = false;
  struct pollfd source = {.fd = pipe_end, .events = POLLIN};
  for (bool open = true; open;) {
    int ready = poll(&source, 1, TICK_MILLISECONDS);
    if (kcp_interrupted() && !passed_on) passed_on = kill(child, SIGINT) == 0;
    if (ready > 0) open = take(pipe_end, text);
    tick(context);
  }
}

/* The report stands first; a text that is none is the reason. */
static void read_outcome(const struct text *text, int wait_status,
                         struct kcp_bench_outcome *outcome) {
  const char *bytes = text->bytes != NULL ? text->bytes : "";
  outcome->report = json_loadb(bytes, text->length, JSON_DISABLE_EOF_CHECK, NULL);
  if (WIFSIGNALED(wait_status)) {
    int signal_number = WTERMSIG(wait_status);
    outcome->status = KCP_FAILED;
    snprintf(outcome->reason, sizeof outcome->reason, "killed by signal %d (%s)%s", signal_number,
             strsignal(signal_number),
             signal_number == SIGKILL ? ", perhaps for want of memory" : "");
    return;
  }
  outcome->status = (enum kcp_status)WEXITSTATUS(wait_status);
  if (outcome->report == NULL)
    snprintf(outcome->reason, sizeof outcome->reason, "%s",
             *bytes != '\0' ? bytes : "ended without a report");
}

enum kcp_status kcp_bench_run_configuration(const struct kcp_configuration *configuration,
                                            void (*tick)(void *context), void *context,
                                            struct kcp_bench_outcome *outcome,
                                            struct kcp_error *error) {
  int ends[2];
  int wait_status = 0;
  struct text text = {NULL, 0};
  memset(outcome, 0, sizeof *outcome);
  if (pipe2(ends, O_CLOEXEC) != 0)
    return kcp_fail(error, KCP_FAILED, "cannot make a pipe: %s", strerror(errno));
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    run_in_child(configuration, ends[1]);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return kcp_fail(error, KCP_FAILED, "cannot start a process: %s", strerror(errno));
  }
  listen(child, ends[0], tick, context, &text);
  close(ends[0]);
  while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR) continue;
  read_outcome(&text, wait_status, outcome);
  free(text.bytes);
  /* Ctrl-C reaches both processes, in any order. */
  bool stopped = kcp_interrupted() || outcome->status == KCP_INTERRUPTED;
  return stopped ? KCP_INTERRUPTED : KCP_OK;
}

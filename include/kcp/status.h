/* Status codes and messages: what every fallible function of kcp returns.
 *
 * A function that can fail returns `enum kcp_status` and takes a `struct kcp_error *` as its last
 * parameter. On failure it has written one line there (no newline): what is wrong, where (file,
 * record or line), and what to do about it. Only main() exits and prints. */
#ifndef KCP_STATUS_H
#define KCP_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

enum kcp_status {
  KCP_OK = 0,
  KCP_FAILED,       /* failed while running: out of memory, disk full, device fault */
  KCP_BAD_INPUT,    /* wrong usage or wrong input */
  KCP_WRONG_ANSWER, /* --verify found a difference */
  KCP_UNAVAILABLE,  /* the asked-for device or feature is not there */
  KCP_INTERRUPTED   /* SIGINT or SIGTERM */
};

struct kcp_error {
  char message[1024];
};

/* Formats the message and returns `status`, so that callers write `return kcp_fail(...)`. `error`
 * may be NULL. */
enum kcp_status kcp_fail(struct kcp_error *error, enum kcp_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* kcp_fail(KCP_FAILED) for an allocation of `bytes` for `what`. */
enum kcp_status kcp_out_of_memory(struct kcp_error *error, const char *what,
                                  unsigned long long bytes);

/* The process exit code of a status: 0 done, 1 failed, 2 bad input, 3 wrong answer, 4 unavailable.
 */
int kcp_exit_code(enum kcp_status status);

#ifdef __cplusplus
}
#endif
#endif

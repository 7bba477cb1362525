/* The commands of the program: one table for dispatch and help. */
#ifndef KCP_COMMANDS_H
#define KCP_COMMANDS_H

#include "kcp/algorithm.h"
#include "kcp/request.h"
#include "kcp/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kcp_command {
  const char *name; /* the word on the command line; "query" needs none */
  enum kcp_command_kind kind;
  int least_operands;
  int most_operands;
  const char *usage;   /* "kcp gen DIST N OUT [options]" */
  const char *summary; /* one line for kcp help */
  const char *description;
  const char *example; /* a command line that runs */
  enum kcp_status (*run)(const struct kcp_request *request, struct kcp_error *error);
};

/* The table; ends with a row whose name is NULL. */
extern const struct kcp_command kcp_commands[];

const struct kcp_command *kcp_command_find(const char *name); /* NULL when there is none */
const struct kcp_command *kcp_command_of(enum kcp_command_kind kind);

/* Runs the request's command on the CPU threads that it asks for. */
enum kcp_status kcp_command_run(const struct kcp_request *request, struct kcp_error *error);

enum kcp_status kcp_command_query(const struct kcp_request *request, struct kcp_error *error);
enum kcp_status kcp_command_bench(const struct kcp_request *request, struct kcp_error *error);
enum kcp_status kcp_command_list(const struct kcp_request *request, struct kcp_error *error);
enum kcp_status kcp_command_info(const struct kcp_request *request, struct kcp_error *error);
enum kcp_status kcp_command_gen(const struct kcp_request *request, struct kcp_error *error);
enum kcp_status kcp_command_gen_values(const struct kcp_request *request, struct kcp_error *error);
enum kcp_status kcp_command_convert(const struct kcp_request *request, struct kcp_error *error);
enum kcp_status kcp_command_version(const struct kcp_request *request, struct kcp_error *error);
enum kcp_status kcp_command_help(const struct kcp_request *request, struct kcp_error *error);

/* Warns of options that were given and that some algorithms read, but not this one. */
void kcp_warn_of_unused_options(const struct kcp_request *request,
                                const struct kcp_algorithm *algorithm);

/* Flushes stdout; KCP_FAILED when something could not be written (closed pipe, full disk). */
enum kcp_status kcp_finish_stdout(struct kcp_error *error);

/* Whether a progress line may be shown: stderr is a terminal and --quiet was not given. */
bool kcp_shows_progress(const struct kcp_request *request);

/* One line on stderr unless --quiet was given. */
void kcp_warn(const struct kcp_request *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif

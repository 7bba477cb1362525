/* How every query ends, whatever it asked: the answer is checked, written and told about. */
#ifndef KCP_COMMANDS_QUERY_ENDING_H
#define KCP_COMMANDS_QUERY_ENDING_H

#include "kcp/output_file.h"
#include "kcp/request.h"
#include "kcp/result.h"

/* Owned by the query that it is a part of; `query` is passed on to its functions. */
struct kcp_query_ending {
  const struct kcp_request *request;
  struct kcp_result *result;
  const struct kcp_algorithm *algorithm; /* that ran, or would have */
  void *query;
  /* Checks the answer independently; NULL when there is nothing to check. */
  enum kcp_status (*verify)(void *query, struct kcp_error *error);
  void (*warn)(void *query); /* of what the answer is not; may be NULL */
  enum kcp_status (*write_answer)(void *query, struct kcp_error *error);
  struct kcp_output_file report; /* --json */
};

/* Opens --json, so that a path that cannot be written to is known before the search. */
enum kcp_status kcp_query_open_report(struct kcp_query_ending *ending, struct kcp_error *error);

/* --floor and --verify, warnings, summary, answer and report. A wrong answer is reported, and
 * nothing else is written of it. */
enum kcp_status kcp_query_end(struct kcp_query_ending *ending, struct kcp_error *error);

/* Writes an answer to stdout or, with --out, to the file that was opened for it, as its ending
 * says. */
enum kcp_status kcp_query_write_answer(const struct kcp_request *request,
                                       struct kcp_output_file *out,
                                       void (*write)(void *query, FILE *stream, bool as_json),
                                       void *query, struct kcp_error *error);

#endif

#include "query_ending.h"

#include <stdio.h>
#include <string.h>

#include "kcp/commands.h"
#include "kcp/floor.h"
#include "kcp/report.h"

enum kcp_status kcp_query_open_report(struct kcp_query_ending *ending, struct kcp_error *error) {
  const char *path = ending->request->json_path;
  return path != NULL ? kcp_output_file_open(path, &ending->report, error) : KCP_OK;
}

static enum kcp_status write_report(struct kcp_query_ending *ending, struct kcp_error *error) {
  if (ending->request->json_path == NULL) return KCP_OK;
  enum kcp_status status =
      kcp_report_write(ending->report.stream, ending->request, ending->result, 1, error);
  return status == KCP_OK ? kcp_output_file_commit(&ending->report, error) : status;
}

/* After the search, when the files are where they were for it. */
static enum kcp_status measure_floor(struct kcp_query_ending *ending, struct kcp_error *error) {
  const struct kcp_request *request = ending->request;
  struct kcp_result *result = ending->result;
  if (!request->floor) return KCP_OK;
  return kcp_measure_floor(result->backend, &result->device, request->inputs, request->input_count,
                           &result->floor_s, error);
}

static enum kcp_status verify(struct kcp_query_ending *ending, struct kcp_error *error) {
  struct kcp_result *result = ending->result;
  if (!ending->request->verify || ending->verify == NULL) return KCP_OK;
  enum kcp_status status = ending->verify(ending->query, error);
  if (status == KCP_INTERRUPTED)
    return kcp_fail(error, status, "stopped while verifying; nothing written");
  result->verified = status == KCP_OK;
  if (status == KCP_WRONG_ANSWER) {
    result->status = KCP_RESULT_WRONG;
    snprintf(result->reason, sizeof result->reason, "%s", error->message);
  }
  return status;
}

static enum kcp_status tell(struct kcp_query_ending *ending, struct kcp_error *error) {
  const struct kcp_request *request = ending->request;
  kcp_warn_of_unused_options(request, ending->algorithm);
  if (ending->warn != NULL) ending->warn(ending->query);
  if (!request->quiet) kcp_summary_begin(stderr, ending->result);
  enum kcp_status status = ending->write_answer(ending->query, error);
  if (status == KCP_OK) status = write_report(ending, error);
  if (status == KCP_OK && !request->quiet) kcp_summary_end(stderr, request, ending->result);
  return status;
}

enum kcp_status kcp_query_end(struct kcp_query_ending *ending, struct kcp_error *error) {
  enum kcp_status status = measure_floor(ending, error);
  if (status == KCP_OK) status = verify(ending, error);
  if (status == KCP_OK) return tell(ending, error);
  struct kcp_error unwritten;
  if (status == KCP_WRONG_ANSWER && write_report(ending, &unwritten) != KCP_OK)
    kcp_warn(ending->request, "%s", unwritten.message);
  return status;
}

enum kcp_status kcp_query_write_answer(const struct kcp_request *request,
                                       struct kcp_output_file *out,
                                       void (*write)(void *query, FILE *stream, bool as_json),
                                       void *query, struct kcp_error *error) {
  const char *ending = request->out_path != NULL ? strrchr(request->out_path, '.') : NULL;
  if (request->out_path == NULL) {
    write(query, stdout, false);
    return kcp_finish_stdout(error);
  }
  write(query, out->stream, ending != NULL && strcmp(ending, ".json") == 0);
  return kcp_output_file_commit(out, error);
}

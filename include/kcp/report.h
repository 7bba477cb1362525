/* What is told about a query besides its pairs: the summary for people and the report in JSON. */
#ifndef KCP_REPORT_H
#define KCP_REPORT_H

#include <stdio.h>

#include "kcp/output_file.h"
#include "kcp/result.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KCP_REPORT_SCHEMA_VERSION 1

/* Before the pairs: algorithm, backend and files. */
void kcp_summary_begin(FILE *stream, const struct kcp_result *result);
/* After them: counts, times, work. */
void kcp_summary_end(FILE *stream, const struct kcp_request *request,
                     const struct kcp_result *result);

/* Writes the report of `count` results (DESIGN.md, "Report (JSON)"). */
enum kcp_status kcp_report_write(FILE *stream, const struct kcp_request *request,
                                 const struct kcp_result *results, size_t count,
                                 struct kcp_error *error);

/* Writes the pairs: `id1,id2,distance`, or as a JSON array of objects. Errors stay in the
 * stream. */
void kcp_pairs_write_csv(FILE *stream, const struct kcp_job *job, const struct kcp_answer *answer);
void kcp_pairs_write_json(FILE *stream, const struct kcp_job *job, const struct kcp_answer *answer);

#ifdef __cplusplus
}
#endif
#endif

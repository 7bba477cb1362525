/* The parts of summary and report (kcp/report.h) that a range join has instead of those of pairs.
 */
#ifndef KCP_RANGE_REPORT_H
#define KCP_RANGE_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "kcp/range_query.h"
#include "kcp/result.h"

void kcp_range_summary(FILE *stream, const struct kcp_result *result);        /* the counts */
void kcp_range_summary_phases(FILE *stream, const struct kcp_result *result); /* its own phases */

/* Objects of the report; the caller owns them. */
json_t *kcp_range_report_parameters(const struct kcp_request *request,
                                    const struct kcp_result *result);
json_t *kcp_range_report_answer(const struct kcp_result *result);
json_t *kcp_range_report_work(const struct kcp_result *result);

#endif

/* Runs an algorithm on a job: warm-up, timed runs, and the repetition at another scale that
 * extreme coordinates need. */
#ifndef KCP_EXECUTE_H
#define KCP_EXECUTE_H

#include "kcp/result.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Prepares, runs request->warmup + request->runs times and fills the result's parameters and
 * samples. The answer is the caller's to free. Sets job->scale_exponent. KCP_WRONG_ANSWER when two
 * runs differ. */
enum kcp_status kcp_execute(struct kcp_job *job, struct kcp_result *result,
                            struct kcp_answer *answer, struct kcp_error *error);

#ifdef __cplusplus
}
#endif
#endif

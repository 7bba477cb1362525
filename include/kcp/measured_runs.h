/* A query run --warmup + --runs times. */
#ifndef KCP_MEASURED_RUNS_H
#define KCP_MEASURED_RUNS_H

#include "kcp/request.h"
#include "kcp/result.h"

/* Calls run(query, number, ...) for number 0, 1, ...: a run in place of the one before it, which
 * sets the measurement (zeroed) and the checksum of its answer. The measurements after the warm-up
 * become the samples of the result; there is one at least, and --run-time ends them early.
 * KCP_WRONG_ANSWER when a checksum differs from the first. */
enum kcp_status kcp_measure_runs(const struct kcp_request *request, struct kcp_result *result,
                                 enum kcp_status (*run)(void *query, uint64_t number,
                                                        struct kcp_measurement *measurement,
                                                        uint64_t *checksum,
                                                        struct kcp_error *error),
                                 void *query, struct kcp_error *error);

#endif

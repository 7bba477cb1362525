/* The example of docs/adding-an-algorithm.md: k closest pairs by two nested loops. */
#ifndef KCP_NESTED_LOOP_H
#define KCP_NESTED_LOOP_H

#include "kcp/algorithm.h"

enum kcp_status kcp_nested_loop_supports(const struct kcp_job *job, struct kcp_error *error);
enum kcp_status kcp_nested_loop_prepare(const struct kcp_job *job, void **state,
                                        struct kcp_parameter *parameters, size_t *parameter_count,
                                        struct kcp_error *error);
enum kcp_status kcp_nested_loop_run(const struct kcp_job *job, void *state,
                                    struct kcp_answer *answer, struct kcp_measurement *measurement,
                                    struct kcp_error *error);
void kcp_nested_loop_release(void *state);

#endif

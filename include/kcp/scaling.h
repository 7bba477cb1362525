/* Coordinates whose powers overflow or underflow (DESIGN.md, Exactness 5).
 *
 * Multiplying every coordinate by one power of two changes neither the order of pairs nor a bit of
 * a significand, as long as nothing overflows or underflows. A run is therefore looked at
 * afterwards: when its answer may have suffered, it is thrown away and repeated at another scale.
 */
#ifndef KCP_SCALING_H
#define KCP_SCALING_H

#include "kcp/algorithm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Attempts after which an answer is refused. */
#define KCP_SCALING_ATTEMPTS 6

/* After a run at job->scale_exponent: sets `exponent` to the scale at which to run again, or to
 * job->scale_exponent when the answer is exact. KCP_BAD_INPUT when no scale can make it so. May
 * read the files again when coordinates are extreme. */
enum kcp_status kcp_scaling_check(const struct kcp_job *job, const struct kcp_answer *answer,
                                  int *exponent, struct kcp_error *error);

/* For coordinates that no scale serves. */
enum kcp_status kcp_scaling_refuse(struct kcp_error *error);

#ifdef __cplusplus
}
#endif
#endif

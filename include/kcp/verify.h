/* An independent check of an answer: it shares no code with the algorithms, not even the rank. */
#ifndef KCP_VERIFY_H
#define KCP_VERIFY_H

#include "kcp/algorithm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the answer of a closest-pairs job against its files, read at the job's scale:
 * - the pairs are in order, and no pair of records is named twice;
 * - every rank is that of records with these ids, and within --max-distance;
 * - as many pairs of the whole input lie at or before the last pair (or, when the answer is short,
 *   within --max-distance) as the answer has.
 * The last is counted over all pairs, or over a sweep along the widest coordinate when there are
 * more than 10^9. Holds both sets in memory. KCP_WRONG_ANSWER says what is wrong. */
enum kcp_status kcp_verify_pairs(const struct kcp_job *job, const struct kcp_answer *answer,
                                 struct kcp_error *error);

#ifdef __cplusplus
}
#endif
#endif

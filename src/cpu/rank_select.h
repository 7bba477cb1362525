/* The n-th smallest rank of kept pairs (CPU). */
#ifndef KCP_CPU_RANK_SELECT_H
#define KCP_CPU_RANK_SELECT_H

#include "kcp/threshold_search.h"

/* The rank of the `wanted`-th (from 1) closest of `count` pairs, wanted <= count. Ranks are >= 0,
 * so that their bits order them: digit by digit, the one in which the wanted-th lies is found by
 * counting. The pairs are left where they are; all cores are used. */
double kcp_select_rank(const struct kcp_record_pair *pairs, uint64_t count, uint64_t wanted);

#endif

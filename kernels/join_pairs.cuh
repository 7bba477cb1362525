/* What joins of the global-threshold search share: the question, and whether a pair answers it. */
#ifndef KCP_KERNELS_JOIN_PAIRS_CUH
#define KCP_KERNELS_JOIN_PAIRS_CUH

#include "kcp/candidate.h"
#include "kcp/metric.h"
#include "kcp/threshold_search.h"
#include "threshold_points.cuh"

/* Where a join puts its pairs: planes of `capacity`, *counter counts all found (device). */
struct kcp_pair_planes {
  double *ranks;
  uint64_t *held;
  uint64_t *streamed;
  uint64_t capacity;
  unsigned long long *counter;
};

/* All pairs of `held` and `streamed` of the kind, as to `rank`. */
struct kcp_join_question {
  struct kcp_metric metric;
  uint32_t dimensions;
  bool self;
  struct kcp_point_set held, streamed;
  double rank;
  enum kcp_join_kind kind;
  struct kcp_pair_planes pairs;
};

/* Whether pairs of at least this rank can be of the wanted kind. */
__device__ static inline bool kcp_may_belong(const struct kcp_join_question &asked,
                                             double least_rank) {
  return asked.kind == KCP_JOIN_BEFORE ? least_rank < asked.rank : least_rank <= asked.rank;
}

__device__ static inline double kcp_rank_of_pair(const struct kcp_join_question &asked, uint32_t h,
                                                 uint32_t q) {
  double rank = 0;
  for (uint32_t c = 0; c < asked.dimensions; ++c)
    rank = kcp_metric_combine(
        asked.metric.kind, rank,
        kcp_metric_term(asked.metric.kind, asked.metric.power,
                        asked.held.columns[c * asked.held.stride + h] -
                            asked.streamed.columns[c * asked.streamed.stride + q]));
  return rank;
}

/* Whether the pair, of this rank, is of the wanted kind. */
__device__ static inline bool kcp_pair_belongs(const struct kcp_join_question &asked, uint32_t h,
                                               uint32_t q, double rank) {
  if (!kcp_may_belong(asked, rank) || (asked.kind == KCP_JOIN_TIES && rank != asked.rank))
    return false;
  if (!asked.self) return true;
  uint64_t held_record = kcp_set_record(asked.held, h);
  uint64_t streamed_record = kcp_set_record(asked.streamed, q);
  if (asked.kind != KCP_JOIN_TIES) return held_record < streamed_record;
  return kcp_self_pair_counts(kcp_set_id(asked.streamed, q), streamed_record,
                              kcp_set_id(asked.held, h), held_record);
}

/* Whether more pairs were found than there is room for: the rest need not be. */
__device__ static inline bool kcp_out_of_room(const struct kcp_pair_planes &pairs) {
  return *(volatile unsigned long long *)pairs.counter > pairs.capacity;
}

/* Appends a pair; the threads that come here together take their places together. */
__device__ static inline void kcp_append_pair(const struct kcp_pair_planes &pairs, double rank,
                                              uint64_t held_record, uint64_t streamed_record) {
  unsigned together = __activemask();
  unsigned lane = threadIdx.x % 32, leader = __ffs(together) - 1;
  unsigned long long base = 0;
  if (lane == leader) base = atomicAdd(pairs.counter, (unsigned long long)__popc(together));
  base = __shfl_sync(together, base, leader);
  uint64_t place = base + __popc(together & ((1u << lane) - 1));
  if (place >= pairs.capacity) return;
  pairs.ranks[place] = rank;
  pairs.held[place] = held_record;
  pairs.streamed[place] = streamed_record;
}

#endif

/* The rank to begin the global-threshold search with, from a sample of pairs (CPU). */
#ifndef KCP_CPU_THRESHOLD_GUESS_H
#define KCP_CPU_THRESHOLD_GUESS_H

#include <stdbool.h>

#include "kcp/metric.h"
#include "kcp/status.h"
#include "morton_order.h"

/* Ranks are counted by their leading 17 bits: a bucket is 2^-5 of a rank wide. */
#define KCP_GUESS_BUCKETS (UINT32_C(1) << 16) /* of finite ranks, which are >= 0 */

/* The held and the streamed sample, both in Morton order with their keys. */
struct kcp_guess_sample {
  struct kcp_metric metric;
  uint32_t dimensions;
  bool self;
  const struct kcp_point_set *held, *streamed;
  const uint64_t *held_keys, *streamed_keys;
};

/* Counts the ranks of each streamed sample point to its `window` neighbours on either side in the
 * held sample into histogram[KCP_GUESS_BUCKETS]; all of them when window >= held->count. */
enum kcp_status kcp_guess_count(const struct kcp_guess_sample *sample, uint64_t window,
                                uint64_t *histogram, struct kcp_error *error);

/* The upper edge of the bucket of the wanted-th smallest; +inf when there are fewer. */
double kcp_guess_find(const uint64_t *histogram, uint64_t wanted);

#endif

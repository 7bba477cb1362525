/* The rank to begin the global-threshold search with, from a sample of pairs. */
#ifndef KCP_KERNELS_THRESHOLD_GUESS_CUH
#define KCP_KERNELS_THRESHOLD_GUESS_CUH

#include "kcp/metric.h"
#include "morton_sort.cuh"

/* Ranks are counted by their leading 17 bits: a bucket is 2^-5 of a rank wide. */
static const int kcp_guess_shift = 47;
static const uint32_t kcp_guess_buckets = 1u << 16; /* of finite ranks, which are >= 0 */

/* Counts the ranks of each streamed sample point to its `window` neighbours on either side in the
 * sorted held sample (sorter, held_count points); all of them when window >= held_count. */
enum kcp_status kcp_guess_count(const struct kcp_cells *axes, const struct kcp_morton_frame *frame,
                                struct kcp_metric metric, bool self, uint32_t dimensions,
                                const struct kcp_point_set *held,
                                const struct kcp_morton_sorter *sorter, uint32_t held_count,
                                const struct kcp_point_set *sample, uint32_t window,
                                unsigned *histogram, cudaStream_t stream, struct kcp_error *error);

/* *rank (device) = the upper edge of the bucket of the wanted-th smallest; +inf when there are
 * fewer. */
enum kcp_status kcp_guess_find(const unsigned *histogram, uint64_t wanted, double *rank,
                               cudaStream_t stream, struct kcp_error *error);

#endif

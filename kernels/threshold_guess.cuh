/* The rank to begin the global-threshold search with, from a sample of pairs.
 *
 * Of few sampled points all pairs are ranked: the least rank of every 256 held points to a streamed
 * one is counted, which never counts more pairs than there are. That gives a coarse rank; hashed
 * cells of its scale then find the near pairs of a larger sample, and the wanted one among those is
 * the guess. Nothing waits: box, cells and ranks stay on the device. */
#ifndef KCP_KERNELS_THRESHOLD_GUESS_CUH
#define KCP_KERNELS_THRESHOLD_GUESS_CUH

#include "device.cuh"
#include "kcp/metric.h"
#include "threshold_points.cuh"

/* Ranks are counted by their leading 17 bits: a bucket is 2^-5 of a rank wide. */
static const int kcp_guess_shift = 47;
static const uint32_t kcp_guess_buckets = 1u << 16; /* of finite ranks, which are >= 0 */

struct kcp_guess_question {
  struct kcp_metric metric;
  uint32_t dimensions;
  bool self; /* pairs of held record < streamed record only */
  uint32_t axes, axis[KCP_MAX_AXES];
  struct kcp_point_set held;
  uint32_t held_count;           /* of them, spread evenly, are sampled */
  struct kcp_point_set sample;   /* of the streamed set, with records */
  const unsigned long long *box; /* device: of the held points along the axes (bounding_box.cuh) */
  uint64_t wanted;               /* of the pairs of both samples, 1 or more */
};

/* Scratch, owned by the memory it was taken from. */
struct kcp_guess {
  double *rank; /* device: the answer */
  unsigned *histogram;
  struct kcp_cells *cells;
  uint32_t *heads, *next; /* the held sample by bucket of cells, in chains */
  uint32_t bucket_bits;
};

enum kcp_status kcp_guess_create(struct kcp_device_memory *memory, uint64_t held_sample,
                                 struct kcp_guess *guess, struct kcp_error *error);

/* *guess->rank (device) = about the rank of the wanted-th closest of the sampled pairs, hardly ever
 * less, rounded up; +inf when fewer were seen. */
enum kcp_status kcp_guess_rank(const struct kcp_guess *guess,
                               const struct kcp_guess_question *asked, cudaStream_t stream,
                               struct kcp_error *error);

#endif

/* How the memory of a global-threshold search is shared out. */
#include <math.h>
#include <string.h>

#include "threshold_flow.h"

#define GPU_BLOCK_POINTS (UINT64_C(1) << 20)
#define CPU_BLOCK_POINTS (UINT64_C(1) << 17) /* stay in the caches */
#define HELD_SAMPLE (UINT64_C(1) << 17)
#define STREAMED_SAMPLE (UINT64_C(1) << 16)
#define MIN_PAIR_CAPACITY (UINT64_C(1) << 22)
#define CAPACITY_LIMIT (UINT64_C(1) << 31) /* indices of points on a device are 32 bits */

bool kcp_threshold_holds_reference(const struct kcp_job *job) {
  return kcp_dataset_count(job->reference) < kcp_dataset_count(job->query);
}

struct kcp_dataset *kcp_threshold_held(const struct kcp_job *job) {
  return kcp_threshold_holds_reference(job) ? job->reference : job->query;
}

struct kcp_dataset *kcp_threshold_streamed(const struct kcp_job *job) {
  return kcp_threshold_holds_reference(job) ? job->query : job->reference;
}

/* Bytes that a held point takes as it is loaded, with its bits in the bitmaps. */
static double loaded_bytes(const struct kcp_threshold_plan *plan) {
  return 8.0 * plan->dimensions + (plan->self ? 6 : 3);
}

/* Bytes that a point which passed a filter takes, on either side: in two buffers, with records, ids
 * and sort keys, in the table and the tree. */
static double kept_bytes(const struct kcp_threshold_plan *plan) {
  return 2 * 8.0 * plan->dimensions + 100;
}

/* Memory for points: the loaded ones take half of it at most, then kept and surviving points share
 * the rest; of each there is room for a block at least. */
static void share_memory(struct kcp_threshold_plan *plan, double bytes, uint64_t held,
                         uint64_t streamed) {
  uint64_t least = kcp_lesser(4 * plan->block_capacity, CAPACITY_LIMIT);
  double for_loaded = fmin((double)held, bytes / 2 / loaded_bytes(plan));
  plan->held_capacity = kcp_lesser(
      kcp_greater((uint64_t)for_loaded, kcp_lesser(plan->block_capacity, kcp_greater(1, held))),
      CAPACITY_LIMIT);
  double kept = (bytes - (double)plan->held_capacity * loaded_bytes(plan)) / kept_bytes(plan);
  double for_held = fmin((double)plan->held_capacity, fmax(kept / 2, (double)least));
  plan->kept_capacity = kcp_greater((uint64_t)for_held, plan->held_sample);
  double for_survivors = fmin((double)streamed, fmax(kept - for_held, (double)least));
  plan->survivor_capacity =
      kcp_lesser(kcp_greater((uint64_t)for_survivors, plan->block_capacity), CAPACITY_LIMIT);
}

enum kcp_status kcp_threshold_make_plan(const struct kcp_job *job, struct kcp_threshold_plan *plan,
                                        struct kcp_error *error) {
  const struct kcp_request *request = job->request;
  uint64_t held = kcp_dataset_count(kcp_threshold_held(job));
  uint64_t streamed = kcp_dataset_count(kcp_threshold_streamed(job));
  double available = request->memory_bytes > 0 ? (double)request->memory_bytes
                                               : 0.8 * (double)job->device.free_bytes;
  memset(plan, 0, sizeof *plan);
  plan->metric = request->metric;
  plan->self = request->self;
  plan->dimensions = kcp_dataset_dimensions(job->reference);
  plan->k = kcp_greater(1, kcp_lesser(request->k, job->pair_count));
  plan->held_sample = kcp_lesser(HELD_SAMPLE, held);
  bool on_gpu = job->backend->kind == KCP_BACKEND_CUDA;
  plan->streamed_sample = kcp_lesser(STREAMED_SAMPLE, streamed);

  /* Pairs take a quarter of the memory at most, and as much again to move them; blocks and samples
   * a sixteenth, points the rest. */
  uint64_t pair_room =
      kcp_greater(MIN_PAIR_CAPACITY, plan->k < UINT64_MAX / 4 ? 4 * plan->k : plan->k);
  double pair_bytes = sizeof(struct kcp_record_pair);
  if ((double)pair_room * pair_bytes > available / 4)
    pair_room = (uint64_t)(available / 4 / pair_bytes);
  if (pair_room / 2 < plan->k)
    return kcp_fail(
        error, KCP_BAD_INPUT,
        "global-threshold keeps 2 k pairs in memory: needs %.3g GB, %.3g GB free; use a "
        "smaller --k or more --memory",
        2 * (double)plan->k * pair_bytes / 1e9, available / 4e9);
  plan->pair_capacity = pair_room;
  double blocks = available / 16 / kept_bytes(plan);
  plan->block_capacity =
      kcp_lesser(on_gpu ? GPU_BLOCK_POINTS : CPU_BLOCK_POINTS, blocks < 1 ? 1 : (uint64_t)blocks);
  plan->block_capacity = kcp_lesser(plan->block_capacity, kcp_greater(1, streamed));
  plan->held_sample =
      kcp_lesser(plan->held_sample, (uint64_t)kcp_greater(64, plan->block_capacity));
  plan->streamed_sample = kcp_lesser(plan->streamed_sample, kcp_greater(64, plan->block_capacity));
  share_memory(plan, available * 15 / 16 - 2 * pair_bytes * (double)pair_room, held, streamed);
  return KCP_OK;
}

enum kcp_status kcp_threshold_supports(const struct kcp_job *job, struct kcp_error *error) {
  struct kcp_threshold_plan plan;
  if (job->backend->threshold == NULL)
    return kcp_fail(error, KCP_UNAVAILABLE, "%s does not run on %s", job->algorithm->name,
                    job->backend->name);
  return kcp_threshold_make_plan(job, &plan, error);
}

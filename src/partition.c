/* The plan of a list-based search: which sizes the partitions, lists and groups get. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kcp/pair_search.h"

/* Beyond this, a larger D1 partition only takes longer to read before the search can start. */
#define REFERENCE_PARTITION_LIMIT (UINT64_C(1) << 24)
#define PARTITION_LIMIT (UINT64_C(1) << 31) /* indices of points in a partition are 32 bits */
#define DEFAULT_SUBPARTITION_SIZE 256
#define DEFAULT_BLOCK_THREADS 64 /* paper, 4.1.3 */
#define DEFAULT_STREAMS 4
#define HEAP_PAYS_FROM_K 48
/* Lists wanted on a GPU: this part of the threads that it can hold. On an H200 a quarter is near
 * the best l for 500K and for 5.8M query points (docs/results/k-cp-h200.md). */
#define GPU_SHARE 4
#define LISTS_PER_CORE 8 /* on a CPU: enough to balance the cores */

static uint64_t minimum(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static uint64_t maximum(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

static uint64_t divide_up(uint64_t a, uint64_t b) {
  return a / b + (a % b != 0);
}

/* Bytes that a point of a partition takes: its columns and id as read and as sorted, keys and
 * indices of the sort in two copies and the library's scratch for as much, its binary32 copy for
 * the filter. */
static uint64_t point_bytes(const struct kcp_pair_plan *plan) {
  uint64_t columns = 8 + 8 * (uint64_t)plan->dimensions;
  return 2 * columns + 2 * (8 + 4) + 16 + 16;
}

static double list_bytes(const struct kcp_pair_plan *plan) {
  return (double)KCP_CANDIDATE_BYTES * ((double)plan->k + 1);
}

/* Bytes of one D2 partition of this many points, with its lists. */
static double query_bytes(const struct kcp_pair_plan *plan, uint64_t points) {
  double lists = (double)divide_up(points, plan->points_per_thread);
  return (double)points * (double)point_bytes(plan) + lists * list_bytes(plan);
}

static enum kcp_status does_not_fit(const struct kcp_job *job, double needed, double available,
                                    struct kcp_error *error) {
  const struct kcp_pair_variant *variant = job->algorithm->variant;
  const char *what = !variant->partitions_reference ? "both sets and k lists a point"
                     : !variant->partitions_queries ? "D2 and a list of k for each of its points"
                                                    : "a partition of each set with its lists";
  const char *instead = !variant->partitions_queries ? "use dspp+, dspp+pea or auto"
                                                     : "use a smaller --k or more --memory";
  return kcp_fail(error, KCP_BAD_INPUT, "%s holds %s in memory: needs %.3g GB, %.3g GB free; %s",
                  job->algorithm->name, what, needed / 1e9, available / 1e9, instead);
}

/* The points that share a list (l). Lists that fill the device are enough: more of them mean looser
 * thresholds, fewer leave it idle. */
static uint64_t choose_points_per_thread(const struct kcp_job *job,
                                         const struct kcp_pair_plan *plan) {
  if (!plan->variant.groups_queries) return 1;
  if (job->request->points_per_thread > 0)
    return minimum(job->request->points_per_thread, maximum(plan->query_count, 1));
  uint64_t slots = job->device.thread_slots;
  uint64_t lists_wanted = maximum(
      1, job->backend->kind == KCP_BACKEND_CUDA ? slots / GPU_SHARE : slots * LISTS_PER_CORE);
  return maximum(1, minimum(plan->query_count / lists_wanted, 4096));
}

/* The largest D2 partition, at most `wanted`, whose points and lists fit in `budget` bytes for all
 * slots; 0 when not even one list does. */
static uint64_t fitting_queries(const struct kcp_pair_plan *plan, double budget, uint64_t wanted) {
  double group = (double)plan->points_per_thread * (double)point_bytes(plan) + list_bytes(plan);
  double groups = floor(budget / plan->slots / group);
  if (groups < 1) return 0;
  double points = groups * (double)plan->points_per_thread;
  return points < (double)wanted ? (uint64_t)points : wanted;
}

static uint64_t wanted_queries(const struct kcp_job *job, const struct kcp_pair_plan *plan) {
  if (!plan->variant.partitions_queries) return plan->query_count;
  if (job->request->d2_partition > 0) return job->request->d2_partition;
  uint64_t filling = maximum(job->device.thread_slots, 1024) * plan->points_per_thread;
  /* With streams, a partition for each: transfers of one overlap the search of another. */
  uint64_t share = divide_up(maximum(plan->query_count, 1), plan->slots);
  return maximum(1, plan->variant.overlaps ? minimum(filling, share) : filling);
}

/* What was chosen, not asked for, gives way until a group of `least_queries` or more fits for each
 * stream: streams where lists of k are what takes the room, else the points that share a list. */
static void shrink_groups(const struct kcp_request *request, double budget, uint64_t least_queries,
                          struct kcp_pair_plan *plan) {
  bool grouped = plan->variant.groups_queries && request->points_per_thread == 0;
  bool streamed = plan->variant.overlaps && request->streams == 0;
  for (;;) {
    uint64_t queries = maximum(least_queries, plan->points_per_thread);
    bool more_streams = streamed && plan->slots > 1;
    if (plan->slots * query_bytes(plan, queries) <= budget) return;
    if (more_streams && plan->slots * list_bytes(plan) > budget / 2)
      --plan->slots;
    else if (grouped && queries > least_queries && plan->points_per_thread > 1)
      plan->points_per_thread /= 2;
    else if (more_streams)
      --plan->slots;
    else
      return;
  }
}

static enum kcp_status plan_partitions(const struct kcp_job *job, struct kcp_pair_plan *plan,
                                       struct kcp_error *error) {
  const struct kcp_request *request = job->request;
  double available = request->memory_bytes > 0 ? (double)request->memory_bytes
                                               : 0.9 * (double)job->device.free_bytes;
  uint64_t reference_wanted = plan->reference_count;
  if (plan->variant.partitions_reference)
    reference_wanted = request->d1_partition > 0
                           ? request->d1_partition
                           : minimum(plan->reference_count, REFERENCE_PARTITION_LIMIT);
  reference_wanted = maximum(1, minimum(reference_wanted, plan->reference_count));
  double per_point = (double)point_bytes(plan);

  /* Half of the memory beside a list for D1 where it can be cut, the rest for D2 and its lists. */
  double for_queries = available - (double)reference_wanted * per_point;
  if (plan->variant.partitions_reference && request->d1_partition == 0)
    for_queries = fmax(for_queries, (available + list_bytes(plan)) / 2);
  bool must_hold = !plan->variant.partitions_queries || request->d2_partition > 0;
  shrink_groups(request, for_queries, must_hold ? wanted_queries(job, plan) : 1, plan);
  uint64_t query_wanted =
      maximum(1, minimum(wanted_queries(job, plan), maximum(plan->query_count, 1)));
  uint64_t queries = fitting_queries(plan, for_queries, query_wanted);
  if (must_hold && queries < query_wanted) {
    /* A resident D2 may need more than its half. */
    double needed = plan->slots * query_bytes(plan, query_wanted);
    if (needed > available - per_point)
      return does_not_fit(job, needed + per_point, available, error);
    queries = query_wanted;
  }
  if (queries == 0)
    return does_not_fit(job, plan->slots * query_bytes(plan, plan->points_per_thread) + per_point,
                        available, error);
  double for_reference = available - plan->slots * query_bytes(plan, queries);
  double reference = floor(for_reference / per_point);
  if (reference < (double)reference_wanted &&
      (!plan->variant.partitions_reference || request->d1_partition > 0 || reference < 1))
    return does_not_fit(
        job, (double)reference_wanted * per_point + plan->slots * query_bytes(plan, queries),
        available, error);
  plan->query_partition = minimum(queries, PARTITION_LIMIT);
  plan->reference_partition =
      reference < (double)reference_wanted ? (uint64_t)reference : reference_wanted;
  plan->reference_partition = minimum(plan->reference_partition, PARTITION_LIMIT);
  if (plan->reference_partition < plan->reference_count && !plan->variant.partitions_reference)
    return kcp_fail(error, KCP_BAD_INPUT, "%s takes at most 2^31 points of D1; use dbf or dspp+pea",
                    job->algorithm->name);
  if (plan->query_partition < plan->query_count && !plan->variant.partitions_queries)
    return kcp_fail(error, KCP_BAD_INPUT, "%s takes at most 2^31 points of D2; use dspp+pea",
                    job->algorithm->name);
  return KCP_OK;
}

enum kcp_status kcp_pair_plan_make(const struct kcp_job *job, struct kcp_pair_plan *plan,
                                   struct kcp_error *error) {
  const struct kcp_request *request = job->request;
  memset(plan, 0, sizeof *plan);
  plan->variant = *(const struct kcp_pair_variant *)job->algorithm->variant;
  plan->metric = request->metric;
  plan->kernel = request->kernel;
  plan->order = request->order_d2;
  plan->self = request->self;
  plan->dimensions = kcp_dataset_dimensions(job->reference);
  plan->reference_count = kcp_dataset_count(job->reference);
  plan->query_count = kcp_dataset_count(job->query);
  plan->k = maximum(1, minimum(request->k, job->pair_count));
  plan->rank_limit = DBL_MAX;
  if (isfinite(request->max_distance))
    plan->rank_limit = fmin(
        DBL_MAX, kcp_metric_rank(plan->metric, ldexp(request->max_distance, job->scale_exponent)));
  plan->buffer = request->buffer == KCP_CHOOSE_LIST   ? KCP_BUFFER_LIST
                 : request->buffer == KCP_CHOOSE_HEAP ? KCP_BUFFER_HEAP
                 : plan->k >= HEAP_PAYS_FROM_K        ? KCP_BUFFER_HEAP
                                                      : KCP_BUFFER_LIST;
  plan->block_threads =
      (uint32_t)(request->block_threads > 0 ? request->block_threads : DEFAULT_BLOCK_THREADS);
  plan->slots = 1;
  if (plan->variant.overlaps)
    plan->slots = (uint32_t)(request->streams > 0 ? request->streams : DEFAULT_STREAMS);
  plan->points_per_thread = (uint32_t)choose_points_per_thread(job, plan);
  if (plan->kernel == KCP_KERNEL_PLAIN && plan->dimensions > 3 &&
      job->backend->kind == KCP_BACKEND_CUDA)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "--kernel plain works on records of 3 coordinates, not %u; use --kernel tiled",
                    plan->dimensions);
  enum kcp_status status = plan_partitions(job, plan, error);
  if (status != KCP_OK) return status;

  uint64_t subpartitions = request->subpartitions;
  if (subpartitions == 0)
    subpartitions = divide_up(plan->reference_partition, DEFAULT_SUBPARTITION_SIZE);
  subpartitions = minimum(subpartitions, plan->reference_partition);
  plan->subpartition_size = (uint32_t)divide_up(plan->reference_partition, subpartitions);
  plan->lists_per_slot = divide_up(plan->query_partition, plan->points_per_thread);
  plan->device_bytes = (uint64_t)((double)plan->reference_partition * (double)point_bytes(plan) +
                                  plan->slots * query_bytes(plan, plan->query_partition));
  return KCP_OK;
}

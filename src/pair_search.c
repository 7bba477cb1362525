#include "kcp/pair_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/interrupt.h"

/* What prepare makes and run uses. */
struct pair_state {
  struct kcp_pair_plan plan;
  const struct kcp_pair_engine *engine;
  struct kcp_pair_search *search;
};

/* The constant that a partition's third coordinate has everywhere, if it has one. */
struct flatness {
  bool flat;
  double value;
};

static struct flatness find_flatness(const struct kcp_points *points) {
  struct flatness result = {false, 0};
  if (points->dimensions != 3 || points->count == 0) return result;
  const double *z = kcp_points_column(points, 2);
  for (uint64_t i = 1; i < points->count; ++i)
    if (z[i] != z[0]) return result;
  result.flat = true;
  result.value = z[0];
  return result;
}

enum kcp_status kcp_pair_supports(const struct kcp_job *job, struct kcp_error *error) {
  struct kcp_pair_plan plan;
  if (job->backend->pairs == NULL)
    return kcp_fail(error, KCP_UNAVAILABLE, "%s does not run on %s", job->algorithm->name,
                    job->backend->name);
  return kcp_pair_plan_make(job, &plan, error);
}

static void add_number(struct kcp_parameter *parameters, size_t *count, const char *name,
                       uint64_t value) {
  struct kcp_parameter *parameter = &parameters[(*count)++];
  parameter->name = name;
  parameter->is_number = true;
  snprintf(parameter->value, sizeof parameter->value, "%llu", (unsigned long long)value);
}

static void add_word(struct kcp_parameter *parameters, size_t *count, const char *name,
                     const char *value) {
  struct kcp_parameter *parameter = &parameters[(*count)++];
  parameter->name = name;
  parameter->is_number = false;
  snprintf(parameter->value, sizeof parameter->value, "%s", value);
}

static void describe(const struct kcp_job *job, const struct kcp_pair_plan *plan,
                     struct kcp_parameter *parameters, size_t *count) {
  bool dspp = plan->variant.traversal == KCP_TRAVERSE_SUBPARTITIONS;
  *count = 0;
  add_word(parameters, count, "buffer", plan->buffer == KCP_BUFFER_HEAP ? "heap" : "list");
  add_word(parameters, count, "kernel", plan->kernel == KCP_KERNEL_PLAIN ? "plain" : "tiled");
  add_word(parameters, count, "order-d2", plan->order == KCP_ORDER_X ? "x" : "file");
  add_number(parameters, count, "d1-partition", plan->reference_partition);
  add_number(parameters, count, "d2-partition", plan->query_partition);
  if (dspp)
    add_number(parameters, count, "subpartitions",
               (plan->reference_partition + plan->subpartition_size - 1) / plan->subpartition_size);
  if (plan->variant.overlaps) add_number(parameters, count, "streams", plan->slots);
  if (plan->variant.groups_queries)
    add_number(parameters, count, "points-per-thread", plan->points_per_thread);
  if (job->backend->kind == KCP_BACKEND_CUDA)
    add_number(parameters, count, "block-threads", plan->block_threads);
}

enum kcp_status kcp_pair_prepare(const struct kcp_job *job, void **state,
                                 struct kcp_parameter *parameters, size_t *parameter_count,
                                 struct kcp_error *error) {
  struct pair_state *made = calloc(1, sizeof *made);
  if (made == NULL) return kcp_out_of_memory(error, "the search", sizeof *made);
  made->engine = job->backend->pairs;
  enum kcp_status status = kcp_pair_plan_make(job, &made->plan, error);
  if (status == KCP_OK)
    status = made->engine->create(&made->plan, &job->device, &made->search, error);
  if (status != KCP_OK) {
    kcp_pair_release(made);
    return status;
  }
  describe(job, &made->plan, parameters, parameter_count);
  *state = made;
  return KCP_OK;
}

void kcp_pair_release(void *state) {
  struct pair_state *made = state;
  if (made == NULL) return;
  if (made->search != NULL) made->engine->destroy(made->search);
  free(made);
}

/* Which D2 partition each slot holds, so that one that is still there is not read again. */
struct slot_content {
  uint64_t partition;
  struct flatness flatness;
};

struct loop {
  const struct kcp_job *job;
  const struct pair_state *state;
  struct kcp_measurement *measurement;
  struct slot_content *slots;
  uint64_t points_searched;
};

static enum kcp_status read_block(const struct loop *loop, struct kcp_dataset *dataset,
                                  uint64_t first, uint64_t count, struct kcp_points *block,
                                  struct kcp_error *error) {
  double started = kcp_now();
  enum kcp_status status = kcp_dataset_read(dataset, first, count, block, error);
  loop->measurement->phase_s[KCP_PHASE_READ] += kcp_now() - started;
  loop->measurement->bytes_read += count * (8 + 8 * (uint64_t)block->dimensions);
  return status;
}

static enum kcp_status fill_slot(const struct loop *loop, uint32_t slot, uint64_t partition,
                                 struct kcp_error *error) {
  const struct kcp_pair_plan *plan = &loop->state->plan;
  const struct kcp_pair_engine *engine = loop->state->engine;
  if (loop->slots[slot].partition == partition) return KCP_OK;
  struct kcp_points *block = engine->query_block(loop->state->search, slot);
  uint64_t first = partition * plan->query_partition;
  uint64_t left = plan->query_count - first;
  uint64_t count = left < plan->query_partition ? left : plan->query_partition;
  enum kcp_status status = read_block(loop, loop->job->query, first, count, block, error);
  if (status != KCP_OK) return status;
  loop->slots[slot].partition = partition;
  loop->slots[slot].flatness = find_flatness(block);
  return engine->load_queries(loop->state->search, slot, first, error);
}

/* All D2 partitions against the loaded D1 partition, in batches of one a slot (paper, 2.4.3). */
static enum kcp_status search_queries(struct loop *loop, const struct flatness *reference,
                                      uint64_t reference_done, struct kcp_error *error) {
  const struct kcp_pair_plan *plan = &loop->state->plan;
  const struct kcp_pair_engine *engine = loop->state->engine;
  struct kcp_pair_search *search = loop->state->search;
  uint64_t partitions = (plan->query_count - 1) / plan->query_partition + 1;
  for (uint64_t batch = 0; batch < partitions; batch += plan->slots) {
    uint64_t in_batch = partitions - batch < plan->slots ? partitions - batch : plan->slots;
    for (uint32_t slot = 0; slot < in_batch; ++slot) {
      enum kcp_status status = fill_slot(loop, slot, batch + slot, error);
      if (status != KCP_OK) return status;
      const struct flatness *queries = &loop->slots[slot].flatness;
      bool flat = reference->flat && queries->flat && reference->value == queries->value;
      status = engine->search(search, slot, flat, error);
      if (status != KCP_OK) return status;
      if (kcp_interrupted()) return kcp_fail(error, KCP_INTERRUPTED, "interrupted");
    }
    enum kcp_status status = engine->synchronize(search, error);
    if (status != KCP_OK) return status;
    uint64_t last = batch + in_batch;
    uint64_t queries_done = last == partitions ? plan->query_count : last * plan->query_partition;
    uint64_t left = plan->reference_count - reference_done;
    uint64_t in_partition = left < plan->reference_partition ? left : plan->reference_partition;
    double share = (double)queries_done / (double)plan->query_count;
    loop->points_searched += in_batch * plan->query_partition;
    kcp_progress_update(loop->job->progress, "search",
                        reference_done + (uint64_t)(share * (double)in_partition),
                        plan->reference_count, loop->points_searched);
  }
  return KCP_OK;
}

static enum kcp_status search_partitions(struct loop *loop, struct kcp_error *error) {
  const struct kcp_pair_plan *plan = &loop->state->plan;
  const struct kcp_pair_engine *engine = loop->state->engine;
  struct kcp_pair_search *search = loop->state->search;
  for (uint64_t first = 0; first < plan->reference_count; first += plan->reference_partition) {
    uint64_t left = plan->reference_count - first;
    uint64_t count = left < plan->reference_partition ? left : plan->reference_partition;
    struct kcp_points *block = engine->reference_block(search);
    enum kcp_status status = read_block(loop, loop->job->reference, first, count, block, error);
    if (status != KCP_OK) return status;
    struct flatness flatness = find_flatness(block);
    status = engine->load_reference(search, first, error);
    if (status == KCP_OK) status = search_queries(loop, &flatness, first, error);
    if (status != KCP_OK) return status;
  }
  return KCP_OK;
}

enum kcp_status kcp_pair_run(const struct kcp_job *job, void *state, struct kcp_answer *answer,
                             struct kcp_measurement *measurement, struct kcp_error *error) {
  struct pair_state *made = state;
  struct loop loop = {job, made, measurement, NULL, 0};
  enum kcp_status status = KCP_OK;
  struct kcp_candidate *pairs = NULL;
  uint64_t count = 0;
  double started = kcp_now();
  memset(measurement, 0, sizeof *measurement);
  memset(answer, 0, sizeof *answer);

  loop.slots = malloc(made->plan.slots * sizeof *loop.slots);
  pairs = malloc(made->plan.k * sizeof *pairs);
  if (loop.slots == NULL || pairs == NULL) {
    status = kcp_out_of_memory(error, "the answer", made->plan.k * sizeof *pairs);
    goto cleanup;
  }
  for (uint32_t slot = 0; slot < made->plan.slots; ++slot) loop.slots[slot].partition = UINT64_MAX;
  status = made->engine->reset(made->search, error);
  if (status == KCP_OK && made->plan.query_count > 0) status = search_partitions(&loop, error);
  if (status == KCP_OK)
    status = made->engine->merge(made->search, pairs, &count, measurement, error);
  if (status != KCP_OK) goto cleanup;
  measurement->total_s = kcp_now() - started;
  answer->pairs = pairs;
  answer->count = count;
  pairs = NULL;

cleanup:
  free(pairs);
  free(loop.slots);
  return status;
}

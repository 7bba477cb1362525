/* The top-k engine of the GPU: values travel through pinned slots into device memory, batch by
 * batch, and a method (sort, bitonic, select) searches each batch where it lies.
 *
 * A batch is as much as memory holds, at most 2^30 values: whole rows together where the method
 * takes them, else one row or a part of one. With more than one batch there are two buffers: the
 * next batch is read and uploaded while the device searches the last, and the first k of a row so
 * far are carried from part to part (top_k_carry.h); select leaves out what they rule out.
 *
 * A resident plan has one buffer, which later runs search as it is. They send a part of what it
 * holds once more, so that the search starts as in a first run: queued behind a copy, and no launch
 * waits for the host.
 *
 * Memory: one or two buffers of values, the results (k keys and indices a row), what the method
 * takes; pinned: 3 slots of 32 MiB. Cost: the values once over the link. */
#include <cstdlib>
#include <cstring>

#include "kcp/interrupt.h"
#include "kcp/measurement.h"
#include "kcp/top_k_carry.h"
#include "top_k.cuh"

static const int slot_count = 3;
static const uint64_t slot_bytes = 32u << 20;
static const uint64_t least_batch = 4096;    /* values */
static const uint64_t lead_bytes = 4u << 20; /* sent ahead of a resident search */

/* Pinned memory that a piece passes through on its way to the device. */
struct slot {
  void *bytes;
  struct kcp_device_timer copy; /* the last that left it */
};

struct kcp_top_k_search {
  struct kcp_top_k_plan plan; /* k at most the columns */
  const struct kcp_top_k_device_method *method;
  void *state; /* the method's */
  struct kcp_top_k_shape shape;
  bool whole_rows; /* a batch is shape.rows rows; else a part of one, shape.columns values */
  int buffer_count;
  uint64_t buffer_values; /* room of each */

  struct kcp_device_memory memory;
  void *buffers[2];
  cudaEvent_t uploaded[2];
  struct kcp_top_k_results results;
  struct slot slots[slot_count];
  int next_slot;
  uint64_t piece_values; /* of a slot */
  cudaStream_t copying, searching;
  struct kcp_device_timer search_timer, certify_timer;

  struct kcp_row_outcome *outcomes; /* on the host, as the results */
  void *keys;
  uint32_t *indices;
  struct kcp_ranked_key *ranked; /* of one row */
  struct kcp_top_k_carry carry;

  bool is_resident;     /* the buffer holds all values */
  struct slot *at_hand; /* the slot that still has the last of them, and */
  void *place_of_it;    /* where in the buffer that went */
  uint64_t at_hand_bytes;
};

/* A batch by its place in the array. */
struct piece_of_work {
  uint64_t first; /* value */
  uint64_t row, rows;
  uint64_t offset, columns; /* in its row */
  int buffer;
};

struct run {
  struct kcp_top_k_search *search;
  const struct kcp_value_source *source;
  struct kcp_top_k_answer *answer;
  struct kcp_measurement *measurement;
};

static uint64_t width_of(const struct kcp_top_k_shape *shape) {
  return shape->k < shape->columns ? shape->k : shape->columns;
}

static uint64_t device_bytes(const struct kcp_top_k_search *search,
                             const struct kcp_top_k_shape *shape) {
  const uint64_t size = kcp_value_bytes(shape->type), count = shape->rows * shape->columns;
  const uint64_t all = search->plan.rows * search->plan.columns;
  const uint64_t held = search->plan.resident || count >= all ? all : 2 * count;
  return held * size +
         shape->rows *
             (width_of(shape) * (size + sizeof(uint32_t)) + sizeof(struct kcp_row_outcome)) +
         search->method->bytes(shape);
}

/* Batches of whole rows, as many as fit; false when none does. */
static bool fit_rows(struct kcp_top_k_search *search, uint64_t budget) {
  const struct kcp_top_k_plan *plan = &search->plan;
  struct kcp_top_k_shape shape = search->shape;
  shape.columns = plan->columns;
  shape.rows = KCP_LARGEST_BATCH / plan->columns;
  if (plan->rows < 2 || shape.rows == 0 || !search->method->takes_rows(&shape)) return false;
  if (shape.rows > plan->rows) shape.rows = plan->rows;
  while (shape.rows > 1 && device_bytes(search, &shape) > budget)
    shape.rows -= (shape.rows + 9) / 10;
  if (shape.rows < 2) return false;
  search->shape = shape;
  search->whole_rows = true;
  return true;
}

/* Batches that are a row or a part of one. */
static enum kcp_status fit_part(struct kcp_top_k_search *search, uint64_t budget,
                                struct kcp_error *error) {
  const struct kcp_top_k_plan *plan = &search->plan;
  struct kcp_top_k_shape shape = search->shape;
  shape.rows = 1;
  shape.columns = plan->columns < KCP_LARGEST_BATCH ? plan->columns : KCP_LARGEST_BATCH;
  for (;;) {
    shape.k = plan->k < shape.columns ? plan->k : shape.columns;
    if (device_bytes(search, &shape) <= budget) break;
    if (shape.columns <= least_batch)
      return kcp_fail(error, KCP_BAD_INPUT,
                      "the first %llu of an array need more than the %llu bytes of device memory "
                      "that may be used",
                      (unsigned long long)plan->k, (unsigned long long)budget);
    shape.columns -= (shape.columns + 9) / 10;
  }
  search->shape = shape;
  return KCP_OK;
}

static enum kcp_status plan_batches(struct kcp_top_k_search *search,
                                    const struct kcp_device_info *device, struct kcp_error *error) {
  const struct kcp_top_k_plan *plan = &search->plan;
  const uint64_t usable = device->free_bytes / 16 * 15;
  uint64_t budget = plan->memory_bytes > 0 ? plan->memory_bytes : usable;
  int shared_bytes = 0;
  if (budget > usable) budget = usable;
  KCP_CUDA_TRY(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                      device->index));
  search->shape.type = plan->type;
  search->shape.order = plan->order;
  search->shape.k = plan->k;
  search->shape.multiprocessors = device->units;
  search->shape.shared_bytes = (uint32_t)shared_bytes;
  const uint64_t values = plan->rows * plan->columns;
  if (plan->resident && values > budget / kcp_value_bytes(plan->type))
    return kcp_fail(
        error, KCP_BAD_INPUT, "resident values need %llu bytes of device memory, %llu may be used",
        (unsigned long long)(values * kcp_value_bytes(plan->type)), (unsigned long long)budget);
  if (!fit_rows(search, budget)) KCP_TRY(fit_part(search, budget, error));
  search->buffer_values = search->shape.rows * search->shape.columns;
  if (plan->resident) search->buffer_values = values;
  search->buffer_count = search->buffer_values < values ? 2 : 1;
  return KCP_OK;
}

static enum kcp_status allocate_device(struct kcp_top_k_search *search, struct kcp_error *error) {
  const struct kcp_top_k_shape *shape = &search->shape;
  const uint64_t size = kcp_value_bytes(shape->type), places = shape->rows * width_of(shape);
  struct kcp_device_memory *memory = &search->memory;
  for (int buffer = 0; buffer < search->buffer_count; ++buffer) {
    KCP_TRY(kcp_device_take(memory, search->buffer_values, size, &search->buffers[buffer], "values",
                            error));
    KCP_CUDA_TRY(cudaEventCreateWithFlags(&search->uploaded[buffer], cudaEventDisableTiming));
  }
  KCP_TRY(kcp_device_take(memory, places, size, &search->results.keys, "results", error));
  KCP_TRY(kcp_device_array(memory, places, &search->results.indices, "results", error));
  KCP_TRY(kcp_device_array(memory, shape->rows, &search->results.outcomes, "results", error));
  KCP_CUDA_TRY(cudaStreamCreateWithFlags(&search->copying, cudaStreamNonBlocking));
  KCP_CUDA_TRY(cudaStreamCreateWithFlags(&search->searching, cudaStreamNonBlocking));
  KCP_TRY(kcp_device_timer_create(&search->search_timer, error));
  KCP_TRY(kcp_device_timer_create(&search->certify_timer, error));
  KCP_TRY(search->method->create(shape, memory, &search->state, error));
  KCP_CUDA_TRY(cudaDeviceSynchronize()); /* the streams above do not wait for what it filled */
  return KCP_OK;
}

static enum kcp_status allocate_host(struct kcp_top_k_search *search, struct kcp_error *error) {
  const struct kcp_top_k_shape *shape = &search->shape;
  const uint64_t size = kcp_value_bytes(shape->type), places = shape->rows * width_of(shape);
  const uint64_t batch = shape->rows * shape->columns;
  search->piece_values = slot_bytes / size < batch ? slot_bytes / size : batch;
  for (int s = 0; s < slot_count; ++s) {
    KCP_TRY(kcp_pinned_take(&search->memory, search->piece_values, size, &search->slots[s].bytes,
                            "values on their way", error));
    KCP_TRY(kcp_device_timer_create(&search->slots[s].copy, error));
  }
  KCP_TRY(kcp_pinned_array(&search->memory, shape->rows, &search->outcomes, "results", error));
  search->keys = malloc(places * size);
  search->indices = (uint32_t *)malloc(places * sizeof *search->indices);
  search->ranked = (struct kcp_ranked_key *)malloc(width_of(shape) * sizeof *search->ranked);
  if (search->keys == NULL || search->indices == NULL || search->ranked == NULL)
    return kcp_out_of_memory(error, "results", places * (size + sizeof(uint32_t)));
  if (search->whole_rows || shape->columns == search->plan.columns) return KCP_OK;
  return kcp_top_k_carry_create(search->plan.k, &search->carry, error);
}

static void destroy(struct kcp_top_k_search *search) {
  if (search == NULL) return;
  if (search->method != NULL) search->method->destroy(search->state);
  for (int s = 0; s < slot_count; ++s) kcp_device_timer_destroy(&search->slots[s].copy);
  kcp_device_timer_destroy(&search->search_timer);
  kcp_device_timer_destroy(&search->certify_timer);
  for (int buffer = 0; buffer < 2; ++buffer)
    if (search->uploaded[buffer] != NULL) cudaEventDestroy(search->uploaded[buffer]);
  if (search->copying != NULL) cudaStreamDestroy(search->copying);
  if (search->searching != NULL) cudaStreamDestroy(search->searching);
  kcp_device_memory_free(&search->memory);
  kcp_top_k_carry_free(&search->carry);
  free(search->keys);
  free(search->indices);
  free(search->ranked);
  free(search);
}

static enum kcp_status prepare(struct kcp_top_k_search *search,
                               const struct kcp_device_info *device, struct kcp_error *error) {
  KCP_CUDA_TRY(cudaSetDevice(device->index));
  KCP_TRY(plan_batches(search, device, error));
  KCP_TRY(allocate_device(search, error));
  return allocate_host(search, error);
}

static enum kcp_status create(const struct kcp_top_k_plan *plan,
                              const struct kcp_device_info *device, struct kcp_top_k_search **out,
                              struct kcp_error *error) {
  static const struct kcp_top_k_device_method *const methods[] = {
      &kcp_top_k_by_sort, &kcp_top_k_by_bitonic, &kcp_top_k_by_select};
  struct kcp_top_k_search *search = (struct kcp_top_k_search *)calloc(1, sizeof *search);
  if (search == NULL) return kcp_out_of_memory(error, "the search", sizeof *search);
  search->plan = *plan;
  search->method = methods[plan->method];
  if (plan->k > plan->columns) search->plan.k = plan->columns;
  enum kcp_status status =
      plan->rows > 0 && plan->columns > 0 ? prepare(search, device, error) : KCP_OK;
  if (status != KCP_OK) {
    destroy(search);
    return status;
  }
  *out = search;
  return KCP_OK;
}

/* The batch that starts at a value: of whole rows, or what is left of a row up to a batch. */
static struct piece_of_work work_at(const struct kcp_top_k_search *search, uint64_t row,
                                    uint64_t offset, int buffer) {
  const struct kcp_top_k_plan *plan = &search->plan;
  const uint64_t rows_left = plan->rows - row, left = plan->columns - offset;
  struct piece_of_work work = {row * plan->columns + offset, row, 1, offset, plan->columns, buffer};
  if (search->whole_rows)
    work.rows = rows_left < search->shape.rows ? rows_left : search->shape.rows;
  else
    work.columns = left < search->shape.columns ? left : search->shape.columns;
  return work;
}

/* The batch behind another; false when that was the last. */
static bool next_work(const struct kcp_top_k_search *search, const struct piece_of_work *work,
                      struct piece_of_work *next) {
  const struct kcp_top_k_plan *plan = &search->plan;
  const int buffer = search->buffer_count > 1 ? 1 - work->buffer : 0;
  const bool row_is_done = search->whole_rows || work->offset + work->columns == plan->columns;
  const uint64_t row = row_is_done ? work->row + work->rows : work->row;
  if (row == plan->rows) return false;
  *next = work_at(search, row, row_is_done ? 0 : work->offset + work->columns, buffer);
  return true;
}

/* Adds the seconds of a span that has ended. */
static enum kcp_status collect_time(struct kcp_device_timer *timer, double *seconds,
                                    struct kcp_error *error) {
  return kcp_device_timers_collect(&timer, 1, seconds, error);
}

/* Where a batch lies on the device. */
static void *place_of(const struct kcp_top_k_search *search, const struct piece_of_work *work) {
  const uint64_t within = search->plan.resident ? work->first : 0;
  return (char *)search->buffers[work->buffer] + within * kcp_value_bytes(search->plan.type);
}

/* Reads a batch and sends it on its way; its place is free. */
static enum kcp_status upload(const struct run *run, const struct piece_of_work *work,
                              struct kcp_error *error) {
  struct kcp_top_k_search *search = run->search;
  const uint64_t size = kcp_value_bytes(search->plan.type), count = work->rows * work->columns;
  for (uint64_t done = 0; done < count; done += search->piece_values) {
    const uint64_t left = count - done;
    const uint64_t here = left < search->piece_values ? left : search->piece_values;
    struct slot *slot = &search->slots[search->next_slot];
    search->next_slot = (search->next_slot + 1) % slot_count;
    if (slot->copy.pending) KCP_CUDA_TRY(cudaEventSynchronize(slot->copy.end));
    KCP_TRY(collect_time(&slot->copy, &run->measurement->phase_s[KCP_PHASE_UPLOAD], error));
    const double started = kcp_now();
    KCP_TRY(run->source->read(run->source->context, work->first + done, here, slot->bytes, error));
    run->measurement->phase_s[KCP_PHASE_READ] += kcp_now() - started;
    if (kcp_interrupted()) return kcp_fail(error, KCP_INTERRUPTED, "interrupted");
    KCP_TRY(kcp_device_timer_begin(&slot->copy, search->copying, error));
    char *to = (char *)place_of(search, work) + done * size;
    KCP_CUDA_TRY(
        cudaMemcpyAsync(to, slot->bytes, here * size, cudaMemcpyHostToDevice, search->copying));
    KCP_TRY(kcp_device_timer_end(&slot->copy, search->copying, error));
    search->at_hand = slot;
    search->place_of_it = to;
    search->at_hand_bytes = here * size;
  }
  run->measurement->bytes_read += count * size;
  run->measurement->bytes_uploaded += count * size;
  KCP_CUDA_TRY(cudaEventRecord(search->uploaded[work->buffer], search->copying));
  return KCP_OK;
}

/* Sends what is at hand of the resident values once more. */
static enum kcp_status send_lead(struct kcp_top_k_search *search, struct kcp_error *error) {
  const uint64_t bytes = search->at_hand_bytes < lead_bytes ? search->at_hand_bytes : lead_bytes;
  KCP_CUDA_TRY(cudaMemcpyAsync(search->place_of_it, search->at_hand->bytes, bytes,
                               cudaMemcpyHostToDevice, search->copying));
  KCP_CUDA_TRY(cudaEventRecord(search->uploaded[0], search->copying));
  return KCP_OK;
}

/* Sees to it that a batch is on the device or on its way there. */
static enum kcp_status bring(const struct run *run, const struct piece_of_work *work,
                             struct kcp_error *error) {
  if (!run->search->is_resident) return upload(run, work, error);
  return work->first == 0 ? send_lead(run->search, error) : KCP_OK;
}

static struct kcp_top_k_batch batch_of(const struct kcp_top_k_search *search,
                                       const struct piece_of_work *work) {
  struct kcp_top_k_batch batch = {place_of(search, work), work->rows, work->columns, false, 0};
  if (work->offset > 0 && kcp_top_k_carry_is_full(&search->carry)) {
    batch.limited = true;
    batch.limit_key = search->carry.items[search->carry.count - 1].key;
  }
  return batch;
}

/* Queues the search of a batch behind its upload. */
static enum kcp_status launch(struct kcp_top_k_search *search, const struct kcp_top_k_batch *batch,
                              int buffer, struct kcp_error *error) {
  KCP_CUDA_TRY(cudaStreamWaitEvent(search->searching, search->uploaded[buffer], 0));
  KCP_TRY(kcp_device_timer_begin(&search->search_timer, search->searching, error));
  KCP_TRY(search->method->launch(search->state, batch, &search->results, search->searching, error));
  return kcp_device_timer_end(&search->search_timer, search->searching, error);
}

/* Waits for the search and brings the outcomes; searches again what was misled. */
static enum kcp_status settle(const struct run *run, const struct kcp_top_k_batch *batch,
                              struct kcp_error *error) {
  struct kcp_top_k_search *search = run->search;
  double *kernel_s = &run->measurement->phase_s[KCP_PHASE_KERNEL];
  const size_t bytes = batch->rows * sizeof *search->outcomes;
  for (;;) {
    KCP_CUDA_TRY(cudaMemcpyAsync(search->outcomes, search->results.outcomes, bytes,
                                 cudaMemcpyDeviceToHost, search->searching));
    KCP_CUDA_TRY(cudaStreamSynchronize(search->searching));
    KCP_TRY(collect_time(&search->search_timer, kernel_s, error));
    if (batch->rows > 1 || !search->outcomes[0].misled) break;
    KCP_TRY(kcp_device_timer_begin(&search->search_timer, search->searching, error));
    KCP_TRY(
        search->method->relaunch(search->state, batch, &search->results, search->searching, error));
    KCP_TRY(kcp_device_timer_end(&search->search_timer, search->searching, error));
  }
  KCP_TRY(kcp_device_timer_begin(&search->certify_timer, search->searching, error));
  KCP_TRY(
      search->method->certify(search->state, batch, &search->results, search->searching, error));
  KCP_TRY(kcp_device_timer_end(&search->certify_timer, search->searching, error));
  KCP_CUDA_TRY(cudaMemcpyAsync(search->outcomes, search->results.outcomes, bytes,
                               cudaMemcpyDeviceToHost, search->searching));
  KCP_CUDA_TRY(cudaStreamSynchronize(search->searching));
  return collect_time(&search->certify_timer, &run->measurement->phase_s[KCP_PHASE_MERGE], error);
}

static enum kcp_status download(const struct run *run, const struct kcp_top_k_batch *batch,
                                struct kcp_error *error) {
  struct kcp_top_k_search *search = run->search;
  const uint64_t size = kcp_value_bytes(search->plan.type);
  const uint64_t width = search->shape.k < batch->columns ? search->shape.k : batch->columns;
  const uint64_t places = batch->rows > 1 ? batch->rows * width : search->outcomes[0].count;
  const double started = kcp_now();
  KCP_CUDA_TRY(cudaMemcpyAsync(search->keys, search->results.keys, places * size,
                               cudaMemcpyDeviceToHost, search->searching));
  KCP_CUDA_TRY(cudaMemcpyAsync(search->indices, search->results.indices, places * sizeof(uint32_t),
                               cudaMemcpyDeviceToHost, search->searching));
  KCP_CUDA_TRY(cudaStreamSynchronize(search->searching));
  run->measurement->phase_s[KCP_PHASE_DOWNLOAD] += kcp_now() - started;
  run->measurement->bytes_downloaded += places * (size + sizeof(uint32_t));
  return KCP_OK;
}

/* The results of row `row` of a batch, as (key, index) with indices from `offset` on. */
static void rank_row(struct kcp_top_k_search *search, uint64_t row, uint64_t width, uint64_t count,
                     uint64_t offset) {
  const bool wide = kcp_value_bytes(search->plan.type) == 8;
  for (uint64_t j = 0; j < count; ++j) {
    const uint64_t place = row * width + j;
    search->ranked[j].key =
        wide ? ((const uint64_t *)search->keys)[place] : ((const uint32_t *)search->keys)[place];
    search->ranked[j].index = offset + search->indices[place];
  }
}

/* Rows that a batch completes. */
static void take_rows(const struct run *run, const struct piece_of_work *work) {
  struct kcp_top_k_search *search = run->search;
  const uint64_t width = search->plan.k;
  for (uint64_t r = 0; r < work->rows; ++r) {
    const struct kcp_row_outcome *outcome = &search->outcomes[r];
    rank_row(search, r, width, outcome->count, 0);
    kcp_top_k_answer_set_row(&search->plan, work->row + r, search->ranked, outcome->count,
                             outcome->equal, outcome->nan_count, run->answer);
  }
}

/* A part of a row. */
static void take_part(const struct run *run, const struct piece_of_work *work) {
  struct kcp_top_k_search *search = run->search;
  struct kcp_top_k_carry *carry = &search->carry;
  const struct kcp_row_outcome *outcome = &search->outcomes[0];
  rank_row(search, 0, 0, outcome->count, work->offset);
  const struct kcp_top_k_part part = {
      search->ranked,        outcome->count,     outcome->equal,      outcome->nan_count,
      outcome->limited != 0, outcome->limit_key, outcome->limit_equal};
  if (work->offset == 0) kcp_top_k_carry_reset(carry);
  kcp_top_k_carry_add(carry, &part);
  if (work->offset + work->columns == search->plan.columns)
    kcp_top_k_answer_set_row(&search->plan, work->row, carry->items, carry->count, carry->equal,
                             carry->nan_count, run->answer);
}

static enum kcp_status collect(const struct run *run, const struct piece_of_work *work,
                               const struct kcp_top_k_batch *batch, struct kcp_error *error) {
  KCP_TRY(settle(run, batch, error));
  KCP_TRY(download(run, batch, error));
  const double started = kcp_now();
  if (work->columns == run->search->plan.columns)
    take_rows(run, work);
  else
    take_part(run, work);
  run->measurement->phase_s[KCP_PHASE_MERGE] += kcp_now() - started;
  return KCP_OK;
}

/* All batches: the next is uploaded while the last is searched. */
static enum kcp_status search_all(const struct run *run, struct kcp_error *error) {
  struct kcp_top_k_search *search = run->search;
  struct piece_of_work work = work_at(search, 0, 0, 0), next;
  KCP_TRY(bring(run, &work, error));
  for (bool more = true; more; work = next) {
    const struct kcp_top_k_batch batch = batch_of(search, &work);
    KCP_TRY(launch(search, &batch, work.buffer, error));
    more = next_work(search, &work, &next);
    if (more) KCP_TRY(bring(run, &next, error));
    KCP_TRY(collect(run, &work, &batch, error));
  }
  search->is_resident = search->plan.resident;
  for (int s = 0; s < slot_count; ++s)
    KCP_TRY(
        collect_time(&search->slots[s].copy, &run->measurement->phase_s[KCP_PHASE_UPLOAD], error));
  return KCP_OK;
}

static enum kcp_status run(struct kcp_top_k_search *search, const struct kcp_value_source *source,
                           struct kcp_top_k_answer *answer, struct kcp_measurement *measurement,
                           struct kcp_error *error) {
  const double started = kcp_now();
  const struct run run = {search, source, answer, measurement};
  memset(measurement, 0, sizeof *measurement);
  enum kcp_status status = kcp_top_k_answer_allocate(&search->plan, answer, error);
  if (status == KCP_OK && search->plan.rows > 0 && search->plan.columns > 0)
    status = search_all(&run, error);
  if (status != KCP_OK) {
    cudaDeviceSynchronize(); /* nothing may still use the slots */
    kcp_top_k_answer_free(answer);
    return status;
  }
  measurement->total_s = kcp_now() - started;
  measurement->peak_device_bytes = search->memory.device_bytes;
  return KCP_OK;
}

extern "C" const struct kcp_top_k_engine kcp_cuda_top_k_engine = {create, destroy, run};

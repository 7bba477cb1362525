/* The top-k engine of the CPU: rows on one thread each when there are enough of them, else one row
 * after another on all threads; parts of a row where the memory does not hold it. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/interrupt.h"
#include "top_k_methods.h"

struct kcp_top_k_search {
  struct kcp_top_k_plan plan; /* k at most the columns */
  kcp_cpu_top_k *method;
  uint64_t part_values; /* of a row that are worked on at a time */
  bool rows_in_parallel;
  void *values; /* all of them, of a resident plan after its first run */
};

static void destroy(struct kcp_top_k_search *search) {
  if (search != NULL) free(search->values);
  free(search);
}

static uint64_t bytes_of_values(const struct kcp_top_k_plan *plan) {
  return plan->rows * plan->columns * kcp_value_bytes(plan->type);
}

/* Bytes a value that the method holds. */
static uint64_t held_bytes(const struct kcp_top_k_plan *plan) {
  switch (plan->method) {
    case KCP_TOP_K_SORT: return KCP_CPU_SORT_BYTES;
    case KCP_TOP_K_BITONIC: return kcp_cpu_top_k_bitonic_bytes(plan->k, plan->columns);
    default: return kcp_cpu_top_k_select_bytes(plan->k, plan->columns);
  }
}

/* Sets how much of a row is worked on at a time. Parts need at least k values to be worth it. */
static enum kcp_status plan_parts(struct kcp_top_k_search *search, uint64_t memory_bytes,
                                  struct kcp_error *error) {
  const struct kcp_top_k_plan *plan = &search->plan;
  uint64_t bytes = held_bytes(plan);
  uint64_t at_once = search->rows_in_parallel ? (uint64_t)omp_get_max_threads() : 1;
  search->part_values = plan->columns;
  if (bytes == 0 || plan->columns == 0) return KCP_OK;
  uint64_t fit = memory_bytes / at_once / bytes;
  if (fit >= plan->columns) return KCP_OK;
  if (fit < 2 * plan->k)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "k %llu needs %llu bytes of memory with this algorithm, %llu may be used; use "
                    "select, or more --memory",
                    (unsigned long long)plan->k,
                    (unsigned long long)(2 * plan->k * at_once * bytes),
                    (unsigned long long)memory_bytes);
  search->part_values = fit;
  return KCP_OK;
}

static enum kcp_status create(const struct kcp_top_k_plan *plan,
                              const struct kcp_device_info *device, struct kcp_top_k_search **out,
                              struct kcp_error *error) {
  static kcp_cpu_top_k *const methods[] = {kcp_cpu_top_k_sort, kcp_cpu_top_k_bitonic,
                                           kcp_cpu_top_k_select};
  struct kcp_top_k_search *search = calloc(1, sizeof *search);
  if (search == NULL) return kcp_out_of_memory(error, "the search", sizeof *search);
  search->plan = *plan;
  if (plan->k > plan->columns) search->plan.k = plan->columns > 0 ? plan->columns : 1;
  search->method = methods[plan->method];
  search->rows_in_parallel = plan->rows >= 2 * (uint64_t)omp_get_max_threads();
  uint64_t memory_bytes = plan->memory_bytes > 0 ? plan->memory_bytes : device->free_bytes;
  uint64_t resident_bytes = plan->resident ? bytes_of_values(plan) : 0;
  enum kcp_status status = KCP_OK;
  if (resident_bytes > memory_bytes)
    status = kcp_fail(error, KCP_BAD_INPUT,
                      "resident values need %llu bytes of memory, %llu may be used",
                      (unsigned long long)resident_bytes, (unsigned long long)memory_bytes);
  if (status == KCP_OK) status = plan_parts(search, memory_bytes - resident_bytes, error);
  if (status != KCP_OK) {
    destroy(search);
    return status;
  }
  *out = search;
  return KCP_OK;
}

/* Reads through another source and adds up the time. */
struct timed_source {
  const struct kcp_value_source *source;
  double seconds; /* of all threads */
};

static enum kcp_status timed_read(void *context, uint64_t first, uint64_t count, void *out,
                                  struct kcp_error *error) {
  struct timed_source *timed = context;
  double started = kcp_now();
  enum kcp_status status = timed->source->read(timed->source->context, first, count, out, error);
  double seconds = kcp_now() - started;
#pragma omp atomic
  timed->seconds += seconds;
  if (status == KCP_OK && kcp_interrupted()) return kcp_fail(error, KCP_INTERRUPTED, "interrupted");
  return status;
}

static enum kcp_status search_row_in_parts(const struct kcp_top_k_search *search,
                                           const struct kcp_value_source *source, uint64_t row,
                                           struct kcp_top_k_answer *answer,
                                           struct kcp_error *error) {
  const struct kcp_top_k_plan *plan = &search->plan;
  struct kcp_top_k_carry carry;
  enum kcp_status status = kcp_top_k_carry_create(plan->k, &carry, error);
  for (uint64_t offset = 0; offset < plan->columns && status == KCP_OK;
       offset += search->part_values) {
    uint64_t left = plan->columns - offset;
    struct kcp_value_range range = {source, row * plan->columns + offset,
                                    left < search->part_values ? left : search->part_values,
                                    offset};
    struct kcp_range_answer part;
    status = search->method(plan, &range, &part, error);
    if (status != KCP_OK) break;
    kcp_top_k_carry_add(&carry, &(struct kcp_top_k_part){.items = part.items,
                                                         .count = part.count,
                                                         .equal = part.equal,
                                                         .nan_count = part.nan_count});
    free(part.items);
  }
  if (status == KCP_OK)
    kcp_top_k_answer_set_row(plan, row, carry.items, carry.count, carry.equal, carry.nan_count,
                             answer);
  kcp_top_k_carry_free(&carry);
  return status;
}

static enum kcp_status search_row(const struct kcp_top_k_search *search,
                                  const struct kcp_value_source *source, uint64_t row,
                                  struct kcp_top_k_answer *answer, struct kcp_error *error) {
  const struct kcp_top_k_plan *plan = &search->plan;
  if (search->part_values < plan->columns)
    return search_row_in_parts(search, source, row, answer, error);
  struct kcp_value_range range = {source, row * plan->columns, plan->columns, 0};
  struct kcp_range_answer whole;
  enum kcp_status status = search->method(plan, &range, &whole, error);
  if (status != KCP_OK) return status;
  kcp_top_k_answer_set_row(plan, row, whole.items, whole.count, whole.equal, whole.nan_count,
                           answer);
  free(whole.items);
  return KCP_OK;
}

static enum kcp_status search_rows(const struct kcp_top_k_search *search,
                                   const struct kcp_value_source *source,
                                   struct kcp_top_k_answer *answer, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
#pragma omp parallel for schedule(dynamic) if (search->rows_in_parallel)
  for (uint64_t row = 0; row < search->plan.rows; ++row) {
    struct kcp_error reason;
    enum kcp_status known, mine;
#pragma omp atomic read
    known = status;
    if (known != KCP_OK) continue;
    mine = search_row(search, source, row, answer, &reason);
    if (mine == KCP_OK) continue;
#pragma omp critical(kcp_search_rows)
    if (status == KCP_OK) {
      status = mine;
      if (error != NULL) *error = reason;
    }
  }
  return status;
}

/* Reads all values of a resident plan, once. */
static enum kcp_status hold_values(struct kcp_top_k_search *search,
                                   const struct kcp_value_source *source, struct kcp_error *error) {
  const uint64_t bytes = bytes_of_values(&search->plan);
  if (search->values != NULL) return KCP_OK;
  search->values = malloc(bytes > 0 ? bytes : 1);
  if (search->values == NULL) return kcp_out_of_memory(error, "the values", bytes);
  enum kcp_status status = source->read(
      source->context, 0, search->plan.rows * search->plan.columns, search->values, error);
  if (status == KCP_OK) return KCP_OK;
  free(search->values);
  search->values = NULL;
  return status;
}

static enum kcp_status read_held(void *context, uint64_t first, uint64_t count, void *out,
                                 struct kcp_error *error) {
  const struct kcp_top_k_search *search = context;
  const uint64_t size = kcp_value_bytes(search->plan.type);
  (void)error;
  memcpy(out, (const char *)search->values + first * size, count * size);
  return KCP_OK;
}

static enum kcp_status run(struct kcp_top_k_search *search, const struct kcp_value_source *source,
                           struct kcp_top_k_answer *answer, struct kcp_measurement *measurement,
                           struct kcp_error *error) {
  const struct kcp_value_source held = {search, read_held};
  struct timed_source timed = {search->plan.resident ? &held : source, 0};
  struct kcp_value_source values = {&timed, timed_read};
  memset(measurement, 0, sizeof *measurement);
  const double started = kcp_now();
  const bool reads = !search->plan.resident || search->values == NULL;
  enum kcp_status status = KCP_OK;
  if (search->plan.resident) status = hold_values(search, source, error);
  if (status != KCP_OK) return status;
  const double held_s = kcp_now() - started;
  status = kcp_top_k_answer_allocate(&search->plan, answer, error);
  if (status == KCP_OK && search->plan.columns > 0)
    status = search_rows(search, &values, answer, error);
  if (status != KCP_OK) {
    kcp_top_k_answer_free(answer);
    return status;
  }
  measurement->total_s = kcp_now() - started;
  measurement->phase_s[KCP_PHASE_READ] = held_s + timed.seconds / omp_get_max_threads();
  measurement->phase_s[KCP_PHASE_KERNEL] =
      measurement->total_s - measurement->phase_s[KCP_PHASE_READ];
  measurement->bytes_read = reads ? bytes_of_values(&search->plan) : 0;
  return KCP_OK;
}

const struct kcp_top_k_engine kcp_cpu_top_k_engine = {create, destroy, run};

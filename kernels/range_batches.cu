/* The join of queries with primitives on the device, batch after batch: as many intersections at a
 * time as there is memory for (RT-HiSS, section IV-D). */
#include <cstdlib>
#include <memory>
#include <vector>

#include "kcp/interrupt.h"
#include "range_join.cuh"

static const uint64_t most_entries = (UINT64_C(1) << 31) - 1;
static const uint64_t least_memory = 64u << 20; /* a batch gets, whatever was asked for */
static const uint64_t entry_bytes =
    5 * sizeof(uint32_t); /* lists of entries, before and after sorting */
static const uint64_t repeat_bytes =
    sizeof(uint32_t) + 1; /* rays: marks, and what is left of them */

/* One call of the join. */
struct joining {
  struct kcp_range_join *join;
  bool everyone_meets;
  uint64_t *counts;
  const struct kcp_range_sink *sink; /* or NULL */
  struct kcp_measurement *measurement;
  struct kcp_range_work *work;
  std::vector<uint32_t> query_places;
  std::vector<uint64_t> query_firsts; /* entries, unless everyone meets */
  uint64_t batch_bytes, result_bytes;
  std::unique_ptr<struct kcp_range_results, void (*)(struct kcp_range_results *)> results = {
      NULL, kcp_range_results_free}; /* when there is a sink */
};

static uint32_t mask_words(const struct kcp_range_join *join) {
  return (uint32_t)((join->largest_primitive + 31) / 32);
}

static bool makes_pairs(const struct joining *joining) {
  return joining->sink != NULL && joining->join->plan.options.result == KCP_RESULT_PAIRS;
}

static uint64_t intersection_bytes(const struct joining *joining) {
  uint64_t bytes = joining->everyone_meets ? 0 : entry_bytes;
  if (joining->join->optix != NULL) bytes += repeat_bytes;
  if (makes_pairs(joining))
    bytes += joining->join->largest_primitive * sizeof(uint64_t);
  else if (joining->sink != NULL)
    bytes += mask_words(joining->join) * sizeof(uint32_t);
  return bytes > 0 ? bytes : 1;
}

/* Half of what is left besides points, index and queries is for results, when there are some. */
static void share_memory(struct joining *joining) {
  const uint64_t used = kcp_range_kept_bytes(joining->join);
  const uint64_t memory = joining->join->plan.memory_bytes;
  uint64_t left = memory > used ? memory - used : 0;
  if (left < least_memory) left = least_memory;
  left -= left / 16; /* scratch */
  joining->result_bytes = joining->sink != NULL ? left / 2 : 0;
  joining->batch_bytes = left - joining->result_bytes;
}

/* Queries from `first` on whose intersections fit; at least one. */
static struct kcp_range_meeting choose_batch(const struct joining *joining, uint64_t first) {
  struct kcp_range_meeting meeting = {};
  const uint64_t count = joining->join->queries.count;
  uint64_t most = joining->batch_bytes / intersection_bytes(joining), last = first + 1;
  if (most > most_entries) most = most_entries;
  meeting.first = first;
  meeting.everyone_meets = joining->everyone_meets;
  if (joining->everyone_meets) {
    const uint64_t queries = most / joining->join->primitive_count;
    last = first + (queries > 0 ? queries : 1);
    if (last > count) last = count;
    meeting.intersections = (last - first) * joining->join->primitive_count;
  } else {
    const std::vector<uint64_t> &firsts = joining->query_firsts;
    while (last < count && firsts[last + 1] - firsts[first] <= most) ++last;
    meeting.query_firsts = firsts.data() + first;
    meeting.query_base = firsts[first];
    meeting.intersections = firsts[last] - firsts[first];
  }
  meeting.count = last - first;
  return meeting;
}

/* Where entries of each primitive would be if there was a list of all. */
static enum kcp_status list_everyone(struct kcp_range_join *join, struct kcp_range_meeting *meeting,
                                     struct kcp_error *error) {
  const uint64_t primitives = join->primitive_count;
  meeting->entry_firsts = (uint64_t *)malloc((primitives + 1) * sizeof *meeting->entry_firsts);
  if (meeting->entry_firsts == NULL)
    return kcp_out_of_memory(error, "intersections", 8 * primitives);
  for (uint64_t i = 0; i <= primitives; ++i) meeting->entry_firsts[i] = i * meeting->count;
  return KCP_OK;
}

static enum kcp_status make_room(const struct joining *joining,
                                 const struct kcp_range_meeting *meeting,
                                 struct kcp_range_found *found, struct kcp_error *error) {
  struct kcp_range_join *join = joining->join;
  unsigned long long *counters;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_TOTALS, meeting->count, &found->totals, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_PARTIAL, 2, &counters, error));
  KCP_CUDA_TRY(
      cudaMemsetAsync(found->totals, 0, meeting->count * sizeof *found->totals, join->stream));
  KCP_CUDA_TRY(cudaMemsetAsync(counters, 0, 2 * sizeof *counters, join->stream));
  found->rechecks = counters;
  if (makes_pairs(joining)) {
    found->pair_count = counters + 1;
    KCP_TRY(kcp_range_room(join, KCP_BUFFER_PAIRS, meeting->intersections * join->largest_primitive,
                           &found->pairs, error));
  } else if (joining->sink != NULL) {
    const uint64_t words = meeting->intersections * mask_words(join);
    found->mask_words = mask_words(join);
    KCP_TRY(kcp_range_room(join, KCP_BUFFER_MASKS, words, &found->masks, error));
    KCP_CUDA_TRY(cudaMemsetAsync(found->masks, 0, words * sizeof *found->masks, join->stream));
  }
  return KCP_OK;
}

/* What the batch found, by query, to the host. */
static enum kcp_status take_totals(struct joining *joining, const struct kcp_range_meeting *meeting,
                                   const struct kcp_range_found *found,
                                   std::vector<uint32_t> *totals, struct kcp_error *error) {
  unsigned long long rechecks;
  totals->resize(meeting->count);
  KCP_CUDA_TRY(cudaMemcpyAsync(totals->data(), found->totals, meeting->count * sizeof(uint32_t),
                               cudaMemcpyDeviceToHost, joining->join->stream));
  KCP_CUDA_TRY(cudaMemcpyAsync(&rechecks, found->rechecks, sizeof rechecks, cudaMemcpyDeviceToHost,
                               joining->join->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(joining->join->stream));
  joining->work->rechecks += rechecks;
  for (uint64_t i = 0; i < meeting->count; ++i)
    joining->counts[joining->query_places[meeting->first + i]] += (*totals)[i];
  return KCP_OK;
}

static enum kcp_status join_batch(struct joining *joining, struct kcp_range_meeting *meeting,
                                  struct kcp_range_tasks *tasks, struct kcp_error *error) {
  struct kcp_range_join *join = joining->join;
  struct kcp_range_found found = {};
  std::vector<uint32_t> totals;
  double started = kcp_now(), kernel = started;
  if (joining->everyone_meets)
    KCP_TRY(list_everyone(join, meeting, error));
  else
    KCP_TRY(kcp_rt_hiss_meet(join, meeting, joining->work, error));
  started = kcp_now();
  KCP_TRY(kcp_range_deal(&join->plan.options, join->primitive_count, join->firsts,
                         meeting->entry_firsts, tasks, error));
  KCP_TRY(make_room(joining, meeting, &found, error));
  KCP_TRY(kcp_range_refine(join, meeting, tasks, &found, error));
  KCP_TRY(kcp_range_lap(join, &started, &joining->work->phase_s[KCP_RANGE_PHASE_REFINE], error));
  joining->measurement->phase_s[KCP_PHASE_KERNEL] += kcp_now() - kernel;
  joining->measurement->distance_evaluations += tasks->comparisons;
  ++joining->work->batches;
  KCP_TRY(take_totals(joining, meeting, &found, &totals, error));
  if (joining->sink != NULL)
    KCP_TRY(kcp_range_pass_on(joining->results.get(), meeting, &found, totals.data(), error));
  return KCP_OK;
}

static enum kcp_status join_all(struct joining *joining, struct kcp_error *error) {
  struct kcp_range_join *join = joining->join;
  const uint64_t count = join->queries.count;
  double started = kcp_now();
  joining->query_places.resize(count);
  KCP_CUDA_TRY(cudaMemcpyAsync(joining->query_places.data(), join->queries.places,
                               count * sizeof(uint32_t), cudaMemcpyDeviceToHost, join->stream));
  if (!joining->everyone_meets) {
    joining->query_firsts.resize(count + 1);
    KCP_TRY(kcp_rt_hiss_first_test(join, joining->query_firsts.data(), error));
    joining->measurement->phase_s[KCP_PHASE_KERNEL] += kcp_now() - started;
    KCP_TRY(
        kcp_range_lap(join, &started, &joining->work->phase_s[KCP_RANGE_PHASE_FIRST_TEST], error));
  }
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  share_memory(joining);
  if (joining->sink != NULL)
    joining->results.reset(
        kcp_range_results_create(join, joining->sink, joining->query_places.data(),
                                 joining->result_bytes, joining->measurement, joining->work));
  for (uint64_t first = 0; first < count;) {
    struct kcp_range_meeting meeting = choose_batch(joining, first);
    struct kcp_range_tasks tasks = {};
    enum kcp_status status = join_batch(joining, &meeting, &tasks, error);
    free(tasks.tasks);
    free(meeting.entry_firsts);
    KCP_TRY(status);
    if (kcp_interrupted()) return kcp_fail(error, KCP_INTERRUPTED, "interrupted");
    first += meeting.count;
  }
  if (joining->sink != NULL) KCP_TRY(kcp_range_results_end(joining->results.get(), error));
  const uint64_t bytes = kcp_range_device_bytes(join);
  if (bytes > joining->measurement->peak_device_bytes)
    joining->measurement->peak_device_bytes = bytes;
  return KCP_OK;
}

enum kcp_status kcp_range_join_batches(struct kcp_range_join *join, bool everyone_meets,
                                       uint64_t *counts, const struct kcp_range_sink *sink,
                                       struct kcp_measurement *measurement,
                                       struct kcp_range_work *work, struct kcp_error *error) {
  struct joining joining = {};
  joining.join = join;
  joining.everyone_meets = everyone_meets;
  joining.counts = counts;
  joining.sink = sink;
  joining.measurement = measurement;
  joining.work = work;
  if (join->queries.count == 0 || join->primitive_count == 0) return KCP_OK;
  return join_all(&joining, error);
}

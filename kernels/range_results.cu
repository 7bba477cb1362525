/* Section IV-F of RT-HiSS: from masks or pairs to lists of neighbours by query, in host memory.
 *
 * Masks come entry after entry of a query, so that prefix sums over their ones are places in the
 * lists (stream compaction): 4 bytes a mask word read twice, 8 an entry, 4 a neighbour written. The
 * lists are then sorted by record, a segment each. Runs of queries are as long as there is room. */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_sort.cuh>

#include <vector>

#include "kcp/range_decode.h"
#include "range_join.cuh"

static const int threads = 256;
static const uint64_t most_neighbours = 1u << 30;     /* of a run */
static const uint64_t bytes_of_neighbour = 4 + 4 + 8; /* twice, and what sorting takes */
static const uint64_t bytes_of_pair = 8 + 8 + 4;

static unsigned blocks_for(uint64_t count) {
  return (unsigned)((count + threads - 1) / threads);
}

/* A run of the batch's queries. */
struct run {
  struct kcp_range_join *join;
  const struct kcp_range_meeting *meeting;
  const struct kcp_range_found *found;
  uint64_t first, last;             /* queries, from the batch's first on */
  uint64_t first_entry, last_entry; /* of the batch */
  std::vector<uint64_t> offsets;    /* of the run's lists, and one behind */
  std::vector<uint32_t> neighbours; /* records */
  struct kcp_measurement *measurement;
  struct kcp_range_work *work;
};

/* The first entry of the batch's query number i. */
static uint64_t entry_of_query(const struct run *run, uint64_t i) {
  const struct kcp_range_meeting *meeting = run->meeting;
  return meeting->everyone_meets ? i * run->join->primitive_count
                                 : meeting->query_firsts[i] - meeting->query_base;
}

__global__ static void count_ones(const uint32_t *masks, uint32_t mask_words, uint64_t first,
                                  uint64_t count, uint64_t *ones) {
  const uint64_t i = (uint64_t)blockIdx.x * threads + threadIdx.x;
  if (i > count) return;
  uint64_t sum = 0;
  for (uint32_t word = 0; word < mask_words && i < count; ++word)
    sum += __popc(masks[(first + i) * mask_words + word]);
  ones[i] = sum;
}

__global__ static void write_ones(const uint32_t *masks, uint32_t mask_words, uint64_t first,
                                  uint64_t count, const uint64_t *offsets, const uint32_t *met,
                                  uint64_t primitives, const uint32_t *firsts,
                                  const uint32_t *places, uint32_t *neighbours) {
  const uint64_t i = (uint64_t)blockIdx.x * threads + threadIdx.x;
  if (i >= count) return;
  const uint64_t entry = first + i;
  const uint32_t primitive = met != NULL ? met[entry] : (uint32_t)(entry % primitives);
  const uint32_t *points = places + firsts[primitive];
  uint32_t *to = neighbours + offsets[i];
  for (uint32_t word = 0; word < mask_words; ++word)
    for (uint32_t bits = masks[entry * mask_words + word]; bits != 0; bits &= bits - 1)
      *to++ = points[word * 32 + __ffs(bits) - 1];
}

static enum kcp_status scan_ones(struct run *run, uint64_t *ones, uint64_t count,
                                 struct kcp_error *error) {
  size_t bytes = 0;
  void *scratch;
  KCP_CUDA_TRY(
      cub::DeviceScan::ExclusiveSum(NULL, bytes, ones, ones, (int64_t)count, run->join->stream));
  KCP_TRY(kcp_range_scratch(run->join, bytes, &scratch, error));
  KCP_CUDA_TRY(
      cub::DeviceScan::ExclusiveSum(scratch, bytes, ones, ones, (int64_t)count, run->join->stream));
  return KCP_OK;
}

/* Puts each list into the order of records. */
static enum kcp_status sort_lists(struct run *run, const uint32_t *neighbours, uint32_t *sorted,
                                  struct kcp_error *error) {
  struct kcp_range_join *join = run->join;
  const uint64_t count = run->last - run->first, total = run->offsets[count];
  uint64_t *offsets;
  size_t bytes = 0;
  void *scratch;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_OFFSETS, count + 1, &offsets, error));
  KCP_CUDA_TRY(cudaMemcpyAsync(offsets, run->offsets.data(), (count + 1) * sizeof *offsets,
                               cudaMemcpyHostToDevice, join->stream));
  KCP_CUDA_TRY(cub::DeviceSegmentedSort::SortKeys(NULL, bytes, neighbours, sorted, (int64_t)total,
                                                  (int64_t)count, offsets, offsets + 1,
                                                  join->stream));
  KCP_TRY(kcp_range_scratch(join, bytes, &scratch, error));
  KCP_CUDA_TRY(cub::DeviceSegmentedSort::SortKeys(scratch, bytes, neighbours, sorted,
                                                  (int64_t)total, (int64_t)count, offsets,
                                                  offsets + 1, join->stream));
  return KCP_OK;
}

/* --result mask: compacted on the device. */
static enum kcp_status take_compacted(struct run *run, struct kcp_error *error) {
  struct kcp_range_join *join = run->join;
  const struct kcp_range_found *found = run->found;
  const uint64_t entries = run->last_entry - run->first_entry, total = run->neighbours.size();
  double started = kcp_now();
  uint64_t *ones;
  uint32_t *neighbours, *sorted;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_ENTRY_COUNTS, entries + 1, &ones, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_NEIGHBOURS, total, &neighbours, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_SORTED_NEIGHBOURS, total, &sorted, error));
  count_ones<<<blocks_for(entries + 1), threads, 0, join->stream>>>(
      found->masks, found->mask_words, run->first_entry, entries, ones);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_TRY(scan_ones(run, ones, entries + 1, error));
  write_ones<<<blocks_for(entries + 1), threads, 0, join->stream>>>(
      found->masks, found->mask_words, run->first_entry, entries, ones,
      run->meeting->everyone_meets ? NULL : run->meeting->met, join->primitive_count,
      kcp_range_array<uint32_t>(join, KCP_BUFFER_FIRSTS), join->points.places, neighbours);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_TRY(sort_lists(run, neighbours, sorted, error));
  KCP_TRY(kcp_range_lap(join, &started, &run->work->phase_s[KCP_RANGE_PHASE_COMPACT], error));
  KCP_TRY(kcp_range_copy_out(join, run->neighbours.data(), sorted, total * sizeof *sorted,
                             run->measurement, error));
  return kcp_range_lap(join, &started, &run->work->phase_s[KCP_RANGE_PHASE_COPY], error);
}

/* --result mask-raw: the host reads the masks. */
static enum kcp_status take_masks(struct run *run, struct kcp_error *error) {
  struct kcp_range_join *join = run->join;
  const struct kcp_range_found *found = run->found;
  const bool everyone = run->meeting->everyone_meets;
  const uint64_t entries = run->last_entry - run->first_entry, count = run->last - run->first;
  double started = kcp_now();
  std::vector<uint32_t> words(entries * found->mask_words), met(everyone ? 0 : entries);
  std::vector<uint32_t> places(join->points.count), scratch(run->neighbours.size());
  std::vector<uint64_t> firsts(count + 1);
  KCP_TRY(kcp_range_copy_out(join, words.data(),
                             found->masks + run->first_entry * found->mask_words,
                             words.size() * sizeof words[0], run->measurement, error));
  if (!everyone)
    KCP_TRY(kcp_range_copy_out(join, met.data(), run->meeting->met + run->first_entry,
                               met.size() * sizeof met[0], run->measurement, error));
  KCP_TRY(kcp_range_copy_out(join, places.data(), join->points.places,
                             places.size() * sizeof places[0], run->measurement, error));
  for (uint64_t i = 0; i <= count; ++i)
    firsts[i] = entry_of_query(run, run->first + i) - run->first_entry;
  const struct kcp_range_masks masks = {
      words.data(),          found->mask_words, everyone ? NULL : met.data(),
      join->primitive_count, join->firsts,      places.data()};
  kcp_range_decode_masks(&masks, count, firsts.data(), run->offsets.data(), run->neighbours.data(),
                         scratch.data());
  return kcp_range_lap(join, &started, &run->work->phase_s[KCP_RANGE_PHASE_COPY], error);
}

/* The batch's pairs in the order of query and record. */
static enum kcp_status sort_pairs(struct kcp_range_join *join, const struct kcp_range_found *found,
                                  uint64_t total, uint64_t **sorted, struct kcp_error *error) {
  size_t bytes = 0;
  void *scratch;
  const uint64_t *pairs = (const uint64_t *)found->pairs;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_SORTED_NEIGHBOURS, total, sorted, error));
  KCP_CUDA_TRY(cub::DeviceRadixSort::SortKeys(NULL, bytes, pairs, *sorted, (int64_t)total, 0, 64,
                                              join->stream));
  KCP_TRY(kcp_range_scratch(join, bytes, &scratch, error));
  KCP_CUDA_TRY(cub::DeviceRadixSort::SortKeys(scratch, bytes, pairs, *sorted, (int64_t)total, 0, 64,
                                              join->stream));
  return KCP_OK;
}

/* --result pairs: keys and values go to the host. */
static enum kcp_status take_pairs(struct run *run, const uint64_t *sorted, uint64_t first,
                                  struct kcp_error *error) {
  struct kcp_range_join *join = run->join;
  const uint64_t total = run->neighbours.size();
  double started = kcp_now();
  std::vector<uint64_t> pairs(total);
  KCP_TRY(kcp_range_copy_out(join, pairs.data(), sorted + first, total * sizeof pairs[0],
                             run->measurement, error));
  kcp_range_decode_pairs(pairs.data(), total, run->neighbours.data());
  return kcp_range_lap(join, &started, &run->work->phase_s[KCP_RANGE_PHASE_COPY], error);
}

/* Queries from run->first on whose neighbours there is room for; at least one. */
static void choose_run(struct run *run, const uint32_t *totals, uint64_t most) {
  const uint64_t count = run->meeting->count;
  uint64_t sum = totals[run->first];
  run->offsets.assign({0, sum});
  run->last = run->first + 1;
  for (; run->last < count && sum + totals[run->last] <= most; ++run->last) {
    sum += totals[run->last];
    run->offsets.push_back(sum);
  }
  run->first_entry = entry_of_query(run, run->first);
  run->last_entry = entry_of_query(run, run->last);
  run->neighbours.resize(sum);
}

static enum kcp_status pass_on(struct run *run, const uint32_t *totals,
                               const uint32_t *query_places, uint64_t most,
                               const struct kcp_range_sink *sink, struct kcp_error *error) {
  const enum kcp_range_result_form form =
      run->found->pairs != NULL ? KCP_RESULT_PAIRS : run->join->plan.options.result;
  uint64_t *sorted = NULL, done = 0, total = 0;
  if (form == KCP_RESULT_PAIRS) {
    for (uint64_t q = 0; q < run->meeting->count; ++q) total += totals[q];
    KCP_TRY(sort_pairs(run->join, run->found, total, &sorted, error));
  }
  for (run->first = 0; run->first < run->meeting->count; run->first = run->last) {
    choose_run(run, totals, most);
    if (form == KCP_RESULT_PAIRS)
      KCP_TRY(take_pairs(run, sorted, done, error));
    else if (form == KCP_RESULT_MASK_RAW)
      KCP_TRY(take_masks(run, error));
    else
      KCP_TRY(take_compacted(run, error));
    done += run->neighbours.size();
    const struct kcp_range_batch lists = {run->last - run->first,
                                          query_places + run->meeting->first + run->first,
                                          run->offsets.data(), run->neighbours.data()};
    const double started = kcp_now();
    KCP_TRY(sink->take(sink->context, &lists, error));
    run->work->phase_s[KCP_RANGE_PHASE_COPY] += kcp_now() - started;
  }
  return KCP_OK;
}

enum kcp_status kcp_range_pass_on(struct kcp_range_join *join,
                                  const struct kcp_range_meeting *meeting,
                                  const struct kcp_range_found *found, const uint32_t *totals,
                                  const uint32_t *query_places, uint64_t room_bytes,
                                  const struct kcp_range_sink *sink,
                                  struct kcp_measurement *measurement, struct kcp_range_work *work,
                                  struct kcp_error *error) {
  uint64_t most = room_bytes / (found->pairs != NULL ? bytes_of_pair : bytes_of_neighbour);
  if (most > most_neighbours) most = most_neighbours;
  struct run run = {};
  run.join = join;
  run.meeting = meeting;
  run.found = found;
  run.measurement = measurement;
  run.work = work;
  return pass_on(&run, totals, query_places, most, sink, error);
}

/* Section IV-F of RT-HiSS: from masks or pairs to lists of neighbours by query, in host memory.
 *
 * The batch's queries go run by run, a run being as many as have 2^25 neighbours (128 MB) or there
 * is room for. While a run is on its way to the host, the next one is listed, and while the last
 * of a batch is, the next batch is searched. A neighbour is copied from the staging area to its
 * last place, when the sink has one.
 *
 * Bytes over the link: mask 4 a pair, pairs 8 a pair, mask-raw 4 (words of a mask + 1) an
 * intersection, whatever is found.
 *
 * Measured on an H200 with 16 cores, ms beside a search of 65 and of 579 (pairs: 654):
 *                        249 million pairs           3.90 billion
 *                    total copy lists collect  total copy lists collect
 *    1. mask           159   32    38      23   1044  501   145      20
 *       pairs          266  112    33      95   2536 1523   228    1185
 *       mask-raw       417   98     0     260   3754  806     0    2957
 *    Down came, of 249 million and of 3.90 billion pairs: mask 1.00 and 15.6 GB, pairs 2.00 and
 *    31.2, mask-raw 1.62 and 12.3.
 *    2. Two chunks a copying thread, places of queries entered by four threads, batches of 2^26
 *       intersections and larger runs, so that the copy begins earlier: on one machine one after
 *       the other 109 against 110 and 542 to 590 against 535 ms; six batches for one. Taken back.
 */
#include <cstdlib>
#include <memory>
#include <vector>

#include "kcp/range_decode.h"
#include "range_join.cuh"

static const uint64_t most_neighbours = 1u << 25; /* of a run, unless one query has more */
static const uint64_t most_mask_words = 1u << 26; /* of a run that goes as masks */
/* Of device memory: two runs' results, and what one that is sorted takes besides. */
static const uint64_t bytes_of_neighbour = 2 * sizeof(uint32_t) + 2 * sizeof(uint32_t);
static const uint64_t bytes_of_pair = 2 * sizeof(uint64_t) + 2 * sizeof(uint32_t);
static const uint64_t bytes_of_list = sizeof(uint32_t); /* a pair of the batch, before its run */

/* Memory of the host that is not written to before it is needed. */
struct host_memory {
  std::unique_ptr<void, void (*)(void *)> memory = {NULL, free};
  uint64_t bytes = 0;
};

template <typename T>
static enum kcp_status host_room(struct host_memory *room, uint64_t count, T **out,
                                 struct kcp_error *error) {
  const uint64_t bytes = (count > 0 ? count : 1) * sizeof(T);
  *out = NULL;
  if (room->bytes < bytes) {
    room->bytes = 0;
    room->memory.reset();
    room->memory.reset(malloc(bytes));
    if (room->memory == NULL) return kcp_out_of_memory(error, "results", bytes);
    room->bytes = bytes;
  }
  *out = (T *)room->memory.get();
  return KCP_OK;
}

/* Queries first .. last - 1 of a batch, and their lists on the way. */
struct run {
  bool is_underway = false;
  enum kcp_range_result_form form = KCP_RESULT_MASK;
  uint64_t first = 0, last = 0;
  uint64_t first_entry = 0, last_entry = 0; /* of the batch */
  std::vector<uint64_t> offsets;            /* of the lists, and one behind */
  const uint32_t *queries = NULL;           /* their places */
  uint32_t *neighbours = NULL;              /* in the sink's room or here */
  struct host_memory own, raw, met, scratch;
  std::vector<uint64_t> entry_firsts; /* of masks */
  struct kcp_range_masks masks = {};
  struct kcp_range_transfer transfers[2] = {};
};

struct kcp_range_results {
  struct kcp_range_join *join;
  const struct kcp_range_sink *sink;
  const uint32_t *query_places;
  uint64_t room_bytes;
  struct kcp_measurement *measurement;
  struct kcp_range_work *work;
  struct run runs[2];
  int next;
  std::vector<uint32_t> point_places; /* of D' on the host, when masks go there */
};

struct kcp_range_results *kcp_range_results_create(
    struct kcp_range_join *join, const struct kcp_range_sink *sink, const uint32_t *query_places,
    uint64_t room_bytes, struct kcp_measurement *measurement, struct kcp_range_work *work) {
  struct kcp_range_results *results = new kcp_range_results();
  results->join = join;
  results->sink = sink;
  results->query_places = query_places;
  results->room_bytes = room_bytes;
  results->measurement = measurement;
  results->work = work;
  return results;
}

void kcp_range_results_free(struct kcp_range_results *results) {
  if (results == NULL) return;
  for (struct run &run : results->runs)
    for (struct kcp_range_transfer &transfer : run.transfers)
      kcp_range_copy_wait(results->join, &transfer);
  delete results;
}

/* ---- a run's arrival ---- */

static enum kcp_status await(struct kcp_range_results *results, struct run *run,
                             struct kcp_error *error) {
  struct kcp_measurement *measurement = results->measurement;
  const double before = measurement->phase_s[KCP_PHASE_DOWNLOAD];
  for (struct kcp_range_transfer &transfer : run->transfers) {
    KCP_TRY(kcp_range_copy_end(results->join, &transfer, measurement, error));
    transfer = {};
  }
  results->work->phase_s[KCP_RANGE_PHASE_COPY] += measurement->phase_s[KCP_PHASE_DOWNLOAD] - before;
  return KCP_OK;
}

/* Waits for the run and passes it to the sink. */
static enum kcp_status finish(struct kcp_range_results *results, struct run *run,
                              struct kcp_error *error) {
  if (!run->is_underway) return KCP_OK;
  run->is_underway = false;
  const uint64_t count = run->last - run->first, total = run->offsets[count];
  KCP_TRY(await(results, run, error));
  const double started = kcp_now();
  if (run->form == KCP_RESULT_PAIRS) {
    kcp_range_decode_pairs((const uint64_t *)run->raw.memory.get(), total, run->neighbours);
  } else if (run->form == KCP_RESULT_MASK_RAW) {
    uint32_t *scratch = NULL;
    KCP_TRY(host_room(&run->scratch, total, &scratch, error));
    kcp_range_decode_masks(&run->masks, count, run->entry_firsts.data(), run->offsets.data(),
                           run->neighbours, scratch);
  }
  const struct kcp_range_batch lists = {count, run->queries, run->offsets.data(), run->neighbours};
  const enum kcp_status status = results->sink->take(results->sink->context, &lists, error);
  results->work->phase_s[KCP_RANGE_PHASE_COLLECT] += kcp_now() - started;
  return status;
}

enum kcp_status kcp_range_results_end(struct kcp_range_results *results, struct kcp_error *error) {
  for (int i = 0; i < 2; ++i) {
    KCP_TRY(finish(results, &results->runs[results->next], error));
    results->next ^= 1;
  }
  return KCP_OK;
}

/* ---- a run's departure ---- */

static enum kcp_status send(struct kcp_range_results *results, struct kcp_range_transfer *transfer,
                            void *to, const void *from, uint64_t bytes, struct kcp_error *error) {
  return kcp_range_copy_begin(results->join, to, from, bytes, cudaMemcpyDeviceToHost, transfer,
                              error);
}

/* Where the run's neighbours are to be on the host. */
static enum kcp_status place(struct kcp_range_results *results, struct run *run,
                             struct kcp_error *error) {
  const struct kcp_range_sink *sink = results->sink;
  const uint64_t total = run->offsets.back();
  run->neighbours = sink->room != NULL ? sink->room(sink->context, total) : NULL;
  if (run->neighbours != NULL) return KCP_OK;
  return host_room(&run->own, total, &run->neighbours, error);
}

template <typename T>
static enum kcp_status device_room(struct kcp_range_results *results, const struct run *run,
                                   uint64_t count, T **out, struct kcp_error *error) {
  const enum kcp_range_buffer which =
      run == &results->runs[0] ? KCP_BUFFER_RESULTS : KCP_BUFFER_NEXT_RESULTS;
  return kcp_range_room(results->join, which, count, out, error);
}

/* --result mask: compacted on the device. */
static enum kcp_status send_lists(struct kcp_range_results *results, struct run *run,
                                  const struct kcp_range_listing *listing,
                                  struct kcp_error *error) {
  struct kcp_range_join *join = results->join;
  const uint64_t total = run->offsets.back();
  double started = kcp_now();
  uint32_t *neighbours;
  KCP_TRY(device_room(results, run, total, &neighbours, error));
  KCP_TRY(kcp_range_list(join, listing, total, neighbours, error));
  KCP_TRY(kcp_range_lap(join, &started, &results->work->phase_s[KCP_RANGE_PHASE_COMPACT], error));
  return send(results, &run->transfers[0], run->neighbours, neighbours, total * sizeof *neighbours,
              error);
}

/* --result pairs: keys and values go to the host. */
static enum kcp_status send_pairs(struct kcp_range_results *results, struct run *run,
                                  const struct kcp_range_listing *listing, uint64_t first_query,
                                  struct kcp_error *error) {
  struct kcp_range_join *join = results->join;
  const uint64_t total = run->offsets.back();
  double started = kcp_now();
  uint32_t *neighbours;
  uint64_t *pairs, *raw = NULL;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_NEIGHBOURS, total, &neighbours, error));
  KCP_TRY(device_room(results, run, total, &pairs, error));
  KCP_TRY(kcp_range_list(join, listing, total, neighbours, error));
  KCP_TRY(kcp_range_pair_up(join, listing, first_query, neighbours, pairs, error));
  KCP_TRY(kcp_range_lap(join, &started, &results->work->phase_s[KCP_RANGE_PHASE_COMPACT], error));
  KCP_TRY(host_room(&run->raw, total, &raw, error));
  return send(results, &run->transfers[0], raw, pairs, total * sizeof *pairs, error);
}

/* --result mask-raw: the host reads the masks. */
static enum kcp_status send_masks(struct kcp_range_results *results, struct run *run,
                                  const struct kcp_range_meeting *meeting,
                                  const struct kcp_range_found *found, struct kcp_error *error) {
  struct kcp_range_join *join = results->join;
  const bool everyone = meeting->everyone_meets;
  const uint64_t entries = run->last_entry - run->first_entry;
  const uint64_t words = entries * found->mask_words;
  uint32_t *masks = NULL, *met = NULL;
  if (results->point_places.empty()) {
    results->point_places.resize(join->points.count);
    KCP_TRY(kcp_range_copy_out(join, results->point_places.data(), join->points.places,
                               join->points.count * sizeof(uint32_t), results->measurement, error));
  }
  KCP_TRY(host_room(&run->raw, words, &masks, error));
  if (!everyone) KCP_TRY(host_room(&run->met, entries, &met, error));
  run->masks = {masks,        found->mask_words,           met, join->primitive_count,
                join->firsts, results->point_places.data()};
  run->entry_firsts.resize(run->last - run->first + 1);
  for (uint64_t i = run->first; i <= run->last; ++i)
    run->entry_firsts[i - run->first] =
        (everyone ? i * join->primitive_count : meeting->query_firsts[i] - meeting->query_base) -
        run->first_entry;
  KCP_TRY(send(results, &run->transfers[0], masks,
               found->masks + run->first_entry * found->mask_words, words * sizeof *masks, error));
  if (everyone) return KCP_OK;
  return send(results, &run->transfers[1], met, meeting->met + run->first_entry,
              entries * sizeof *met, error);
}

/* ---- the runs of a batch ---- */

/* What a batch's runs have in common. */
struct batch {
  const struct kcp_range_meeting *meeting;
  const struct kcp_range_found *found;
  const uint32_t *totals;
  struct kcp_range_listing listing;
  enum kcp_range_result_form form;
  uint64_t most; /* neighbours of a run */
};

static uint64_t entry_of_query(const struct kcp_range_results *results, const struct batch *batch,
                               uint64_t i) {
  const struct kcp_range_meeting *meeting = batch->meeting;
  return meeting->everyone_meets ? i * results->join->primitive_count
                                 : meeting->query_firsts[i] - meeting->query_base;
}

/* Queries from `first` on whose neighbours there is room for; at least one. */
static void choose_run(const struct kcp_range_results *results, const struct batch *batch,
                       uint64_t first, struct run *run) {
  const uint64_t count = batch->meeting->count, first_entry = entry_of_query(results, batch, first);
  const uint64_t most_entries =
      batch->form == KCP_RESULT_MASK_RAW ? most_mask_words / batch->found->mask_words : UINT64_MAX;
  uint64_t sum = batch->totals[first], last = first + 1;
  run->offsets.assign({0, sum});
  for (; last < count && sum + batch->totals[last] <= batch->most &&
         entry_of_query(results, batch, last + 1) - first_entry <= most_entries;
       ++last) {
    sum += batch->totals[last];
    run->offsets.push_back(sum);
  }
  run->first = first;
  run->last = last;
  run->first_entry = first_entry;
  run->last_entry = entry_of_query(results, batch, last);
  run->form = batch->form;
  run->queries = results->query_places + batch->meeting->first + first;
}

/* Offsets of lists, and what they are made from. */
static enum kcp_status prepare(struct kcp_range_results *results, struct batch *batch,
                               struct kcp_error *error) {
  struct kcp_range_join *join = results->join;
  const struct kcp_range_meeting *meeting = batch->meeting;
  const struct kcp_range_found *found = batch->found;
  struct kcp_range_listing *listing = &batch->listing;
  double started = kcp_now();
  uint64_t *offsets = NULL, total = 0, room = results->room_bytes;
  batch->most = room / bytes_of_neighbour;
  if (batch->most > most_neighbours) batch->most = most_neighbours;
  if (batch->form == KCP_RESULT_MASK_RAW) return KCP_OK;
  KCP_TRY(kcp_range_offsets(join, found->totals, meeting->count, &offsets, error));
  listing->offsets = offsets;
  for (uint64_t q = 0; q < meeting->count; ++q) total += batch->totals[q];
  if (batch->form == KCP_RESULT_PAIRS) {
    uint32_t *lists = NULL;
    KCP_TRY(kcp_range_scatter(join, found->pairs, total, meeting->first, meeting->count, offsets,
                              &lists, error));
    listing->lists = lists;
    room -= room / 2 < total * bytes_of_list ? room / 2 : total * bytes_of_list;
    if (batch->most > room / bytes_of_pair) batch->most = room / bytes_of_pair;
  } else {
    listing->masks = found->masks;
    listing->mask_words = found->mask_words;
    listing->primitives = join->primitive_count;
    listing->firsts = kcp_range_array<uint32_t>(join, KCP_BUFFER_FIRSTS);
    listing->places = join->points.places;
    if (!meeting->everyone_meets) {
      uint64_t *query_firsts;
      KCP_TRY(
          kcp_range_room(join, KCP_BUFFER_QUERY_FIRSTS, meeting->count + 1, &query_firsts, error));
      KCP_CUDA_TRY(cudaMemcpyAsync(query_firsts, meeting->query_firsts,
                                   (meeting->count + 1) * sizeof *query_firsts,
                                   cudaMemcpyHostToDevice, join->stream));
      listing->query_firsts = query_firsts;
      listing->query_base = meeting->query_base;
      listing->met = meeting->met;
    }
  }
  return kcp_range_lap(join, &started, &results->work->phase_s[KCP_RANGE_PHASE_COMPACT], error);
}

static enum kcp_status send_run(struct kcp_range_results *results, struct batch *batch,
                                struct run *run, struct kcp_error *error) {
  const double started = kcp_now();
  KCP_TRY(place(results, run, error));
  results->work->phase_s[KCP_RANGE_PHASE_COLLECT] += kcp_now() - started;
  batch->listing.first = run->first;
  batch->listing.last = run->last;
  run->is_underway = true;
  if (batch->form == KCP_RESULT_MASK_RAW)
    return send_masks(results, run, batch->meeting, batch->found, error);
  if (batch->form == KCP_RESULT_PAIRS)
    return send_pairs(results, run, &batch->listing, batch->meeting->first, error);
  return send_lists(results, run, &batch->listing, error);
}

enum kcp_status kcp_range_pass_on(struct kcp_range_results *results,
                                  const struct kcp_range_meeting *meeting,
                                  const struct kcp_range_found *found, const uint32_t *totals,
                                  struct kcp_error *error) {
  struct batch batch = {};
  batch.meeting = meeting;
  batch.found = found;
  batch.totals = totals;
  batch.form = results->join->plan.options.result;
  if (batch.form == KCP_RESULT_COUNT) batch.form = KCP_RESULT_MASK;
  KCP_TRY(prepare(results, &batch, error));
  for (uint64_t first = 0; first < meeting->count;) {
    struct run *run = &results->runs[results->next];
    KCP_TRY(finish(results, run, error));
    choose_run(results, &batch, first, run);
    KCP_TRY(send_run(results, &batch, run, error));
    results->next ^= 1;
    first = run->last;
  }
  /* The next batch writes to the masks. */
  return batch.form == KCP_RESULT_MASK_RAW ? kcp_range_results_end(results, error) : KCP_OK;
}

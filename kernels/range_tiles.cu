/* Range joins on matrix units, tile against tile: the order of the work. D, and the queries of a
 * join of two files, come into tiles; the first intersection test lists the pairs of tiles; these
 * are multiplied, and what the products leave open is decided, in parts for which the list of open
 * pairs has room. Counting a self-join, a pair of tiles is done once for both. With a sink, masks
 * hold each query's row, in batches as there is memory (range_results.cu takes it from there).
 *
 * History (H200; see docs/results/range-h200.md):
 * 1. Primitives against lists of their queries, binary16 rows around each primitive's centre, a
 *    bound that assumed how the units round: 1M x 18 223 ms, 500K x 90 2.8 s with 3,900 neighbours.
 * 2. Tiles against tiles, integers, no assumption but exact sums of them. */
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "kcp/interrupt.h"
#include "range_tiles.cuh"

static const int threads = 256;
static const uint64_t least_memory = 64u << 20;       /* a batch gets, whatever was asked for */
static const uint64_t most_entries = 1u << 28;        /* of a batch: 2 GB of lists */
static const uint64_t most_open_bytes = 1ull << 30;   /* list of open pairs */
static const uint64_t entry_bytes = 8;                /* lists of an entry */
static const uint64_t query_entry_bytes = 16 + 4 + 8; /* mask, tile, and what compaction takes */
static const uint32_t most_task_entries = 256;
static const uint32_t least_task_entries = 4;
static const uint64_t first_part = 1u << 16; /* entries, before it is known how many are open */

/* One call of the join. */
struct joining {
  struct kcp_range_join *join;
  const struct kcp_range_sink *sink;
  struct kcp_measurement *measurement;
  struct kcp_range_work *work;
  struct kcp_tile_test test;
  struct kcp_tile_work pairs;
  std::vector<struct kcp_tile_count> met; /* by tile of queries */
  std::vector<uint32_t> query_places;
  std::vector<uint64_t> query_firsts; /* entries of the batch's queries */
  uint64_t batch_bytes, result_bytes;
  uint64_t part_entries; /* to multiply at a time */
  std::unique_ptr<struct kcp_range_results, void (*)(struct kcp_range_results *)> results = {
      NULL, kcp_range_results_free}; /* when there is a sink */
};

/* Tiles of queries and what they meet. */
struct batch {
  uint32_t first, last;
  std::vector<uint64_t> entry_firsts, mask_firsts; /* of each tile, and one behind */
  std::vector<struct kcp_tile_task> tasks;         /* of near tiles, then of far ones */
  uint64_t near_tasks;
};

/* ---- D ---- */

enum kcp_status kcp_tiles_check_options(const struct kcp_range_options *options, bool *wanted,
                                        struct kcp_error *error) {
  const char *other = kcp_range_option_of_primitives(options);
  *wanted =
      options->refine == KCP_REFINE_TENSOR || (options->refine == KCP_REFINE_AUTO && other == NULL);
  if (options->refine != KCP_REFINE_TENSOR || other == NULL) return KCP_OK;
  return kcp_fail(error, KCP_BAD_INPUT,
                  "--refine tensor joins tiles of 128 points and has no use for %s; leave one out",
                  other);
}

static enum kcp_status note_primitives(struct kcp_range_join *join, struct kcp_error *error) {
  const struct kcp_tile_set *set = &join->point_tiles;
  uint32_t *firsts;
  join->primitive_count = set->count;
  join->largest_primitive = set->points < KCP_TILE_POINTS ? set->points : KCP_TILE_POINTS;
  free(join->firsts);
  join->firsts = (uint32_t *)malloc((set->count + 1ull) * sizeof *join->firsts);
  if (join->firsts == NULL) return kcp_out_of_memory(error, "tiles", 4ull * set->count);
  for (uint32_t tile = 0; tile < set->count; ++tile)
    join->firsts[tile] = (uint32_t)kcp_tile_first(*set, tile);
  join->firsts[set->count] = (uint32_t)set->points;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_FIRSTS, set->count + 1ull, &firsts, error));
  KCP_CUDA_TRY(cudaMemcpyAsync(firsts, join->firsts, (set->count + 1ull) * sizeof *firsts,
                               cudaMemcpyHostToDevice, join->stream));
  return KCP_OK;
}

enum kcp_status kcp_tiles_build(struct kcp_range_join *join, bool *built,
                                struct kcp_range_work *work, struct kcp_error *error) {
  double started = kcp_now();
  bool possible, serves;
  *built = false;
  KCP_TRY(kcp_range_order_dimensions(join, join->plan.options.reorder, error));
  KCP_TRY(kcp_tiles_choose_scale(join, &possible, &serves, error));
  KCP_TRY(kcp_range_lap(join, &started, &work->phase_s[KCP_RANGE_PHASE_REORDER], error));
  if (!possible || (!serves && join->plan.options.refine == KCP_REFINE_AUTO)) return KCP_OK;
  KCP_TRY(kcp_tiles_make(join, &join->points, &join->point_tiles, work, error));
  work->primitives += join->point_tiles.count;
  *built = true;
  return note_primitives(join, error);
}

/* ---- batches ---- */

/* What the lists of a batch may take; half of what is left is for results, when there are some. */
static enum kcp_status share_memory(struct joining *joining, struct kcp_error *error) {
  struct kcp_range_join *join = joining->join;
  const uint64_t used = kcp_range_kept_bytes(join), memory = join->plan.memory_bytes;
  uint64_t left = memory > used ? memory - used : 0;
  if (left < least_memory) left = least_memory;
  left -= left / 16; /* scratch */
  const uint64_t open_bytes = std::min(left / 4, most_open_bytes);
  left -= open_bytes;
  joining->result_bytes = joining->sink != NULL ? left / 2 : 0;
  joining->batch_bytes = left - joining->result_bytes;
  joining->pairs.open_capacity = open_bytes / sizeof *joining->pairs.open;
  joining->part_entries = first_part;
  return kcp_range_room(join, KCP_BUFFER_PAIRS, joining->pairs.open_capacity, &joining->pairs.open,
                        error);
}

/* Tiles from `first` on whose entries there is room for; at least one. */
static void choose_batch(const struct joining *joining, uint32_t first, struct batch *batch) {
  uint64_t bytes = 0;
  batch->first = batch->last = first;
  batch->entry_firsts.assign(1, 0);
  batch->mask_firsts.assign(1, 0);
  while (batch->last < joining->pairs.queries.count) {
    const uint64_t entries = joining->met[batch->last].tiles;
    const uint64_t rows = kcp_tile_size(joining->pairs.queries, batch->last);
    bytes += entries * (entry_bytes + (joining->sink != NULL ? rows * query_entry_bytes : 0));
    const bool is_full =
        bytes > joining->batch_bytes || batch->entry_firsts.back() + entries > most_entries;
    if (is_full && batch->last > first) break;
    batch->entry_firsts.push_back(batch->entry_firsts.back() + entries);
    batch->mask_firsts.push_back(batch->mask_firsts.back() + entries * rows);
    ++batch->last;
  }
}

static void add_tasks(struct batch *batch, uint32_t tile, uint64_t first, uint64_t count,
                      uint32_t step) {
  for (uint64_t done = 0; done < count; done += step)
    batch->tasks.push_back({first + done, tile, (uint32_t)std::min<uint64_t>(step, count - done)});
}

/* Entries of two near tiles first; those with a far tile are not multiplied. */
static void deal_tasks(const struct joining *joining, struct batch *batch) {
  const uint64_t blocks = 16ull * joining->join->device.units;
  const uint32_t step = (uint32_t)std::max<uint64_t>(
      least_task_entries,
      std::min<uint64_t>(most_task_entries, batch->entry_firsts.back() / (blocks + 1)));
  const uint32_t near_count = joining->pairs.queries.near_count;
  batch->tasks.clear();
  for (uint32_t tile = batch->first; tile < batch->last && tile < near_count; ++tile)
    add_tasks(batch, tile, batch->entry_firsts[tile - batch->first],
              joining->met[tile].tiles - joining->met[tile].far_tiles, step);
  batch->near_tasks = batch->tasks.size();
  for (uint32_t tile = batch->first; tile < batch->last; ++tile) {
    const struct kcp_tile_count *met = &joining->met[tile];
    const uint32_t far = tile < near_count ? met->far_tiles : met->tiles;
    add_tasks(batch, tile, batch->entry_firsts[tile - batch->first] + met->tiles - far, far,
              least_task_entries);
  }
}

/* A block a tile: the tile met of each entry of its queries. */
__global__ static void spread_met(struct kcp_tile_work work, uint32_t *spread) {
  const uint64_t begin = work.entry_firsts[blockIdx.x];
  const uint64_t count = work.entry_firsts[blockIdx.x + 1] - begin;
  const uint64_t to = work.mask_firsts[blockIdx.x], entries = work.mask_firsts[blockIdx.x + 1] - to;
  for (uint64_t i = threadIdx.x; i < entries; i += threads)
    spread[to + i] = work.met[begin + i % count];
}

/* Lists, tasks and room for results on the device. */
static enum kcp_status place_batch(struct joining *joining, const struct batch *batch,
                                   struct kcp_error *error) {
  struct kcp_range_join *join = joining->join;
  struct kcp_tile_work *pairs = &joining->pairs;
  const uint64_t tiles = batch->last - batch->first, entries = batch->entry_firsts.back();
  uint64_t *firsts;
  uint32_t *met, *met_by;
  struct kcp_tile_task *tasks;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_TILE_FIRSTS, 2 * (tiles + 1), &firsts, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_MET, entries, &met, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_MET_BY, entries, &met_by, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_TASKS, batch->tasks.size(), &tasks, error));
  KCP_CUDA_TRY(cudaMemcpyAsync(firsts, batch->entry_firsts.data(), (tiles + 1) * sizeof *firsts,
                               cudaMemcpyHostToDevice, join->stream));
  KCP_CUDA_TRY(cudaMemcpyAsync(firsts + tiles + 1, batch->mask_firsts.data(),
                               (tiles + 1) * sizeof *firsts, cudaMemcpyHostToDevice, join->stream));
  KCP_CUDA_TRY(cudaMemcpyAsync(tasks, batch->tasks.data(), batch->tasks.size() * sizeof *tasks,
                               cudaMemcpyHostToDevice, join->stream));
  pairs->entry_firsts = firsts;
  pairs->mask_firsts = firsts + tiles + 1;
  pairs->first_tile = batch->first;
  pairs->met = met;
  pairs->met_by = met_by;
  pairs->tasks = tasks;
  return kcp_tiles_list_met(join, &joining->test, batch->first, batch->last, firsts, met, met_by,
                            error);
}

static enum kcp_status place_masks(struct joining *joining, const struct batch *batch,
                                   struct kcp_range_meeting *meeting, struct kcp_range_found *found,
                                   struct kcp_error *error) {
  struct kcp_range_join *join = joining->join;
  const uint64_t entries = batch->mask_firsts.back();
  uint32_t *spread;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_SORTED_MET, entries, &spread, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_MASKS, entries * 4, &found->masks, error));
  KCP_CUDA_TRY(cudaMemsetAsync(found->masks, 0, entries * 4 * sizeof *found->masks, join->stream));
  joining->pairs.masks = found->masks;
  found->mask_words = 4;
  spread_met<<<batch->last - batch->first, threads, 0, join->stream>>>(joining->pairs, spread);
  KCP_CUDA_TRY(cudaGetLastError());
  meeting->met = spread;
  return KCP_OK;
}

/* ---- pairs of tiles ---- */

/* As many entries next time as the list of open pairs has room for, going by the last ones. */
static void adapt_part(struct joining *joining, uint64_t entries, uint64_t open) {
  const double room = 0.7 * (double)joining->pairs.open_capacity;
  const double next = open > 0 ? room * (double)entries / (double)open : 1e9;
  joining->part_entries = (uint64_t)std::min(1e9, std::max(1024.0, next));
}

static enum kcp_status multiply_part(struct joining *joining, uint64_t first, uint64_t count,
                                     uint64_t entries, struct kcp_error *error) {
  struct kcp_range_join *join = joining->join;
  const struct kcp_tile_work *pairs = &joining->pairs;
  unsigned long long open;
  KCP_CUDA_TRY(cudaMemsetAsync(pairs->open_count, 0, sizeof open, join->stream));
  KCP_TRY(kcp_tiles_multiply(join, pairs, first, count, error));
  KCP_CUDA_TRY(
      cudaMemcpyAsync(&open, pairs->open_count, sizeof open, cudaMemcpyDeviceToHost, join->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  joining->work->left_open += open;
  adapt_part(joining, entries, open);
  return kcp_tiles_decide(join, pairs, std::min<uint64_t>(open, pairs->open_capacity), error);
}

static enum kcp_status refine_batch(struct joining *joining, const struct batch *batch,
                                    struct kcp_error *error) {
  for (uint64_t first = 0; first < batch->near_tasks;) {
    uint64_t last = first, entries = 0;
    while (last < batch->near_tasks && entries < joining->part_entries)
      entries += batch->tasks[last++].count;
    KCP_TRY(multiply_part(joining, first, last - first, entries, error));
    if (kcp_interrupted()) return kcp_fail(error, KCP_INTERRUPTED, "interrupted");
    first = last;
  }
  return kcp_tiles_decide_all(joining->join, &joining->pairs, batch->near_tasks,
                              batch->tasks.size() - batch->near_tasks, error);
}

/* ---- results ---- */

static enum kcp_status pass_on(struct joining *joining, const struct batch *batch,
                               struct kcp_range_meeting *meeting,
                               const struct kcp_range_found *found, struct kcp_error *error) {
  struct kcp_range_join *join = joining->join;
  std::vector<uint64_t> &query_firsts = joining->query_firsts;
  std::vector<uint32_t> totals(meeting->count);
  query_firsts.clear();
  query_firsts.reserve(meeting->count + 1);
  for (uint32_t tile = batch->first; tile < batch->last; ++tile) {
    const uint32_t rows = kcp_tile_size(joining->pairs.queries, tile);
    for (uint32_t row = 0; row < rows; ++row)
      query_firsts.push_back(batch->mask_firsts[tile - batch->first] +
                             (uint64_t)row * joining->met[tile].tiles);
  }
  query_firsts.push_back(batch->mask_firsts.back());
  meeting->query_firsts = query_firsts.data();
  KCP_CUDA_TRY(cudaMemcpyAsync(totals.data(), found->totals + meeting->first,
                               meeting->count * sizeof(uint32_t), cudaMemcpyDeviceToHost,
                               join->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  return kcp_range_pass_on(joining->results.get(), meeting, found, totals.data(), error);
}

static enum kcp_status join_batch(struct joining *joining, struct batch *batch,
                                  struct kcp_error *error) {
  struct kcp_range_join *join = joining->join;
  const struct kcp_tile_set *queries = &joining->pairs.queries;
  struct kcp_range_meeting meeting = {};
  struct kcp_range_found found = {};
  double started = kcp_now(), kernel = started;
  meeting.first = kcp_tile_first(*queries, batch->first);
  meeting.count = kcp_tile_first(*queries, batch->last - 1) +
                  kcp_tile_size(*queries, batch->last - 1) - meeting.first;
  meeting.intersections = batch->mask_firsts.back();
  deal_tasks(joining, batch);
  KCP_TRY(place_batch(joining, batch, error));
  if (joining->sink != NULL) KCP_TRY(place_masks(joining, batch, &meeting, &found, error));
  found.totals = joining->pairs.totals;
  found.rechecks = joining->pairs.rechecks;
  KCP_TRY(kcp_range_lap(join, &started, &joining->work->phase_s[KCP_RANGE_PHASE_FILL_PASS], error));
  KCP_TRY(refine_batch(joining, batch, error));
  KCP_TRY(kcp_range_lap(join, &started, &joining->work->phase_s[KCP_RANGE_PHASE_REFINE], error));
  joining->measurement->phase_s[KCP_PHASE_KERNEL] += kcp_now() - kernel;
  joining->work->intersections += meeting.intersections;
  ++joining->work->batches;
  for (uint32_t tile = batch->first; tile < batch->last; ++tile)
    joining->measurement->distance_evaluations +=
        kcp_tile_size(*queries, tile) * joining->met[tile].points;
  return joining->sink != NULL ? pass_on(joining, batch, &meeting, &found, error) : KCP_OK;
}

/* ---- the join ---- */

static enum kcp_status begin_join(struct joining *joining, bool self, struct kcp_error *error) {
  struct kcp_range_join *join = joining->join;
  struct kcp_tile_work *pairs = &joining->pairs;
  const struct kcp_range_limit limit = kcp_range_row_limit(join);
  unsigned long long *counters;
  pairs->points = join->point_tiles;
  pairs->queries = self ? join->point_tiles : join->query_tiles;
  pairs->point_points = join->points;
  pairs->query_points = join->queries;
  pairs->dimensions = join->plan.dimensions;
  pairs->blocks = kcp_tile_width(pairs->dimensions) / 16;
  pairs->limits = kcp_tile_make_limits(join->tile_scale, join->plan.eps, pairs->dimensions,
                                       pairs->points.residual + pairs->queries.residual);
  pairs->rank = join->plan.eps * join->plan.eps;
  pairs->within = limit.within;
  pairs->beyond = limit.beyond;
  pairs->mirrors = self && joining->sink == NULL;
  joining->test.points = pairs->points;
  joining->test.queries = pairs->queries;
  joining->test.dimensions = pairs->dimensions;
  joining->test.reach = pairs->limits.reach;
  joining->test.half = pairs->mirrors;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_TOTALS, join->queries.count, &pairs->totals, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_PARTIAL, 2, &counters, error));
  KCP_CUDA_TRY(
      cudaMemsetAsync(pairs->totals, 0, join->queries.count * sizeof *pairs->totals, join->stream));
  KCP_CUDA_TRY(cudaMemsetAsync(counters, 0, 2 * sizeof *counters, join->stream));
  pairs->rechecks = counters;
  pairs->open_count = counters + 1;
  return KCP_OK;
}

/* The first pass, for all tiles of queries. */
static enum kcp_status count_met(struct joining *joining, struct kcp_error *error) {
  struct kcp_range_join *join = joining->join;
  const uint64_t tiles = joining->pairs.queries.count;
  struct kcp_tile_count *counts;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_TILE_COUNTS, tiles, &counts, error));
  KCP_TRY(kcp_tiles_count_met(join, &joining->test, counts, error));
  joining->met.resize(tiles);
  KCP_CUDA_TRY(cudaMemcpyAsync(joining->met.data(), counts, tiles * sizeof *counts,
                               cudaMemcpyDeviceToHost, join->stream));
  if (joining->sink != NULL) {
    joining->query_places.resize(join->queries.count);
    KCP_CUDA_TRY(cudaMemcpyAsync(joining->query_places.data(), join->queries.places,
                                 join->queries.count * sizeof(uint32_t), cudaMemcpyDeviceToHost,
                                 join->stream));
  }
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  return KCP_OK;
}

/* Into the order of the file, on the device: the host would wait for each place. */
__global__ static void order_totals(uint64_t count, const uint32_t *totals, const uint32_t *places,
                                    uint32_t *ordered) {
  const uint64_t i = (uint64_t)blockIdx.x * threads + threadIdx.x;
  if (i < count) ordered[places[i]] = totals[i];
}

static enum kcp_status take_totals(struct joining *joining, uint64_t *counts,
                                   struct kcp_error *error) {
  struct kcp_range_join *join = joining->join;
  const uint64_t count = join->queries.count;
  std::vector<uint32_t> totals(count);
  unsigned long long rechecks;
  uint32_t *ordered;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_HITS, count, &ordered, error));
  order_totals<<<(unsigned)((count + threads - 1) / threads), threads, 0, join->stream>>>(
      count, joining->pairs.totals, join->queries.places, ordered);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cudaMemcpyAsync(totals.data(), ordered, count * sizeof(uint32_t),
                               cudaMemcpyDeviceToHost, join->stream));
  KCP_CUDA_TRY(cudaMemcpyAsync(&rechecks, joining->pairs.rechecks, sizeof rechecks,
                               cudaMemcpyDeviceToHost, join->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  joining->work->rechecks += rechecks;
  for (uint64_t i = 0; i < count; ++i) counts[i] += totals[i];
  return KCP_OK;
}

enum kcp_status kcp_tiles_join(struct kcp_range_join *join, bool self, uint64_t *counts,
                               const struct kcp_range_sink *sink,
                               struct kcp_measurement *measurement, struct kcp_range_work *work,
                               struct kcp_error *error) {
  struct joining joining = {};
  struct batch batch = {};
  joining.join = join;
  joining.sink = sink;
  joining.measurement = measurement;
  joining.work = work;
  if (join->queries.count == 0 || join->primitive_count == 0) return KCP_OK;
  double started = kcp_now();
  const double kernel = started;
  KCP_TRY(begin_join(&joining, self, error));
  KCP_TRY(count_met(&joining, error));
  KCP_TRY(kcp_range_lap(join, &started, &work->phase_s[KCP_RANGE_PHASE_FIRST_TEST], error));
  measurement->phase_s[KCP_PHASE_KERNEL] += kcp_now() - kernel;
  KCP_TRY(share_memory(&joining, error));
  if (sink != NULL)
    joining.results.reset(kcp_range_results_create(join, sink, joining.query_places.data(),
                                                   joining.result_bytes, measurement, work));
  for (uint32_t first = 0; first < joining.pairs.queries.count; first = batch.last) {
    choose_batch(&joining, first, &batch);
    KCP_TRY(join_batch(&joining, &batch, error));
    if (kcp_interrupted()) return kcp_fail(error, KCP_INTERRUPTED, "interrupted");
  }
  if (sink != NULL) KCP_TRY(kcp_range_results_end(joining.results.get(), error));
  measurement->peak_device_bytes =
      std::max(measurement->peak_device_bytes, kcp_range_device_bytes(join));
  return take_totals(&joining, counts, error);
}

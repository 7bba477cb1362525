#include "kcp/record_access.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/formats.h"
#include "mapping_guard.h"

#define RUN_RECORDS 32        /* of files whose records can be found at once */
#define TEXT_RUN_RECORDS 8192 /* of files that are parsed to find a record */
#define GAP_WORTH_A_READ 64   /* wanted records nearer than this are read in one go */

static uint64_t minimum(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* The format's own read of a run within one chunk, scaled, checked, and numbered. False when a
 * record is not as it should be: kcp_dataset_read then says which. */
static bool read_run(const struct kcp_dataset *dataset, uint64_t first, uint64_t count,
                     struct kcp_scratch *scratch, struct kcp_points *run) {
  struct kcp_error ignored;
  if (dataset->format->read(dataset, first, count, scratch, run, &ignored) != KCP_OK ||
      run->count != count)
    return false;
  for (uint32_t j = 0; j < run->dimensions; ++j) {
    double *column = kcp_points_column(run, j);
    for (uint64_t i = 0; i < count; ++i) {
      if (!isfinite(column[i])) return false;
      column[i] = column[i] * dataset->scale[0] * dataset->scale[1];
    }
  }
  for (uint64_t i = 0; i < count; ++i) run->ids[i] = first + i;
  return true;
}

/* Part of `points` from place `at` on. */
static struct kcp_points part_of(const struct kcp_points *points, uint64_t at) {
  struct kcp_points part = *points;
  part.ids += at;
  part.coordinates += at;
  part.count = 0;
  return part;
}

enum kcp_status kcp_dataset_sample(struct kcp_dataset *dataset, uint64_t wanted,
                                   struct kcp_points *points, struct kcp_error *error) {
  bool is_text = dataset->format->line_of != NULL;
  uint64_t run_records = is_text ? TEXT_RUN_RECORDS : RUN_RECORDS;
  uint64_t count = minimum(wanted, dataset->count);
  uint64_t runs = (count + run_records - 1) / run_records;
  uint64_t failed_at = UINT64_MAX;
  points->count = 0;
  if (count == dataset->count || is_text) {
    /* The whole file, or few long runs one after the other. */
    if (count == dataset->count) runs = count > 0, run_records = count;
    for (uint64_t run = 0; run < runs; ++run) {
      uint64_t at = run * run_records, length = minimum(run_records, count - at);
      uint64_t first = (uint64_t)((double)(dataset->count - length) * (double)run /
                                  (double)(runs > 1 ? runs - 1 : 1));
      struct kcp_points part = part_of(points, at);
      enum kcp_status status = kcp_dataset_read(dataset, first, length, &part, error);
      if (status != KCP_OK) return status;
      for (uint64_t i = 0; i < length; ++i) part.ids[i] = first + i;
    }
    points->count = count;
    return KCP_OK;
  }
#pragma omp parallel
  {
    struct kcp_scratch scratch = {0};
#pragma omp for reduction(min : failed_at)
    for (uint64_t run = 0; run < runs; ++run) {
      uint64_t at = run * run_records, length = minimum(run_records, count - at);
      uint64_t first = (uint64_t)((double)(dataset->count - length) / (double)runs * (double)run);
      struct kcp_points part = part_of(points, at);
      uint64_t chunk = kcp_dataset_chunk_of(dataset, first);
      /* A run that would cross into the next chunk begins where it ends in this one. */
      if (kcp_dataset_chunk_of(dataset, first + length - 1) != chunk)
        first = (chunk + 1) * dataset->chunk_records;
      if (first + length > dataset->count) first = dataset->count - length;
      if (!read_run(dataset, first, length, &scratch, &part)) failed_at = minimum(failed_at, first);
    }
    kcp_scratch_free(&scratch);
  }
  points->count = count;
  if (failed_at == UINT64_MAX) return KCP_OK;
  struct kcp_points part = part_of(points, 0);
  uint64_t length = minimum(minimum(run_records, count), dataset->count - failed_at);
  enum kcp_status status = kcp_dataset_read(dataset, failed_at, length, &part, error);
  return status != KCP_OK
             ? status
             : kcp_fail(error, KCP_FAILED, "%s: changed while it was being read", dataset->path);
}

struct wanted_record {
  uint64_t record;
  uint64_t place; /* in the caller's arrays */
};

static int compare_records(const void *a, const void *b) {
  uint64_t left = ((const struct wanted_record *)a)->record;
  uint64_t right = ((const struct wanted_record *)b)->record;
  return left < right ? -1 : left > right;
}

/* The end of the group of wanted records that one read covers: in one chunk, and near each other
 * unless the chunk is parsed from its start for any of them. */
static uint64_t group_end(const struct kcp_dataset *dataset, const struct wanted_record *wanted,
                          uint64_t begin, uint64_t count) {
  uint64_t chunk = kcp_dataset_chunk_of(dataset, wanted[begin].record);
  uint64_t widest_gap = dataset->format->line_of != NULL ? UINT64_MAX : GAP_WORTH_A_READ;
  uint64_t end = begin + 1;
  while (end < count && wanted[end].record - wanted[end - 1].record <= widest_gap &&
         kcp_dataset_chunk_of(dataset, wanted[end].record) == chunk)
    ++end;
  return end;
}

static enum kcp_status read_group(struct kcp_dataset *dataset, const struct wanted_record *wanted,
                                  uint64_t begin, uint64_t end, struct kcp_scratch *scratch,
                                  struct kcp_points *block, uint64_t *ids,
                                  struct kcp_error *error) {
  uint64_t first = wanted[begin].record, count = wanted[end - 1].record - first + 1;
  if (block->stride < count) {
    kcp_points_free(block);
    enum kcp_status status = kcp_points_allocate(count, dataset->dimensions, block, error);
    if (status != KCP_OK) return status;
  }
  block->count = 0;
  enum kcp_status status = dataset->format->read(dataset, first, count, scratch, block, error);
  if (status != KCP_OK) return status;
  if (block->count != count)
    return kcp_fail(error, KCP_FAILED, "%s: changed while it was being read", dataset->path);
  for (uint64_t i = begin; i < end; ++i)
    ids[wanted[i].place] = block->ids[wanted[i].record - first];
  return KCP_OK;
}

/* A thread's share of ids that are looked up in a mapping. */
struct id_share {
  const struct kcp_dataset *dataset;
  const uint64_t *records;
  uint64_t *ids;
  uint64_t count;
};

static void look_up_share(void *context) {
  const struct id_share *share = context;
  const struct kcp_row_layout *layout = &share->dataset->layout;
  const unsigned char *rows = (const unsigned char *)share->dataset->mapping + layout->data_offset;
  for (uint64_t i = 0; i < share->count; ++i)
    memcpy(share->ids + i, rows + share->records[i] * layout->row_bytes, sizeof *share->ids);
}

/* From a mapping whose pages the search has just read. */
static enum kcp_status mapped_ids_of(const struct kcp_dataset *dataset, const uint64_t *records,
                                     uint64_t count, uint64_t *ids, struct kcp_error *error) {
  struct stat facts;
  bool there = true;
  int workers = count < 4096 ? 1 : omp_get_max_threads();
#pragma omp parallel num_threads(workers) reduction(&& : there)
  {
    uint64_t thread = (uint64_t)omp_get_thread_num(), threads = (uint64_t)omp_get_num_threads();
    uint64_t begin = count / threads * thread + minimum(thread, count % threads);
    uint64_t own = count / threads + (thread < count % threads);
    struct id_share share = {dataset, records + begin, ids + begin, own};
    there = kcp_touch_mapping(look_up_share, &share);
  }
  if (there && fstat(dataset->descriptor, &facts) == 0 &&
      (uint64_t)facts.st_size >= dataset->file_bytes)
    return KCP_OK;
  return kcp_fail(error, KCP_FAILED, "%s: became shorter while it was being read", dataset->path);
}

enum kcp_status kcp_dataset_ids_of(struct kcp_dataset *dataset, const uint64_t *records,
                                   uint64_t count, uint64_t *ids, struct kcp_error *error) {
  if (!dataset->has_ids) {
    memcpy(ids, records, count * sizeof *ids);
    return KCP_OK;
  }
  if (count == 0) return KCP_OK;
  if (dataset->mapping != NULL && dataset->layout.prefix_bytes == sizeof *ids)
    return mapped_ids_of(dataset, records, count, ids, error);
  struct wanted_record *wanted = malloc(count * sizeof *wanted);
  if (wanted == NULL) return kcp_out_of_memory(error, "record numbers", count * sizeof *wanted);
  for (uint64_t i = 0; i < count; ++i) wanted[i] = (struct wanted_record){records[i], i};
  qsort(wanted, count, sizeof *wanted, compare_records);
  enum kcp_status status = KCP_OK;
  int workers = count < 1024 ? 1 : omp_get_max_threads();
#pragma omp parallel num_threads(workers)
  {
    struct kcp_scratch scratch = {0};
    struct kcp_points block = {0};
    struct kcp_error here;
    enum kcp_status mine = KCP_OK;
    uint64_t share = (uint64_t)omp_get_thread_num(), shares = (uint64_t)omp_get_num_threads();
    uint64_t begin = count / shares * share + minimum(share, count % shares);
    uint64_t last = begin + count / shares + (share < count % shares);
    while (mine == KCP_OK && begin < last) {
      uint64_t end = group_end(dataset, wanted, begin, last);
      mine = read_group(dataset, wanted, begin, end, &scratch, &block, ids, &here);
      begin = end;
    }
    kcp_scratch_free(&scratch);
    kcp_points_free(&block);
    if (mine != KCP_OK) {
#pragma omp critical
      {
        status = mine;
        if (error != NULL) *error = here;
      }
    }
  }
  free(wanted);
  return status;
}

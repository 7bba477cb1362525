#include "threshold_guess.h"

#include <float.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "rank_block.h"

#define SHIFT 47
#define MOST_WORKERS 16 /* each has a histogram; samples are not worth more */
#define CHUNK 4096      /* points that a worker takes at a time */

static uint64_t minimum(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* The first place whose key is not less. */
static uint64_t place_of_key(const uint64_t *keys, uint64_t count, uint64_t key) {
  uint64_t low = 0, high = count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (keys[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void count_rank(double rank, uint64_t *histogram) {
  uint64_t bits;
  memcpy(&bits, &rank, sizeof bits);
  ++histogram[bits >> SHIFT];
}

/* The ranks of streamed point q to the held points first .. last - 1. */
static void count_run(const struct kcp_guess_sample *sample, uint64_t q, const double *query,
                      uint64_t first, uint64_t last, uint64_t *histogram) {
  const struct kcp_point_set *held = sample->held;
  double ranks[KCP_RANK_BLOCK];
  for (; first < last; first += KCP_RANK_BLOCK) {
    uint32_t count = (uint32_t)minimum(KCP_RANK_BLOCK, last - first);
    kcp_rank_block(sample->metric, sample->dimensions, held->columns + first, held->stride, count,
                   query, DBL_MAX, ranks);
    for (uint32_t i = 0; i < count; ++i) {
      bool counts =
          !sample->self || kcp_set_record(held, first + i) < kcp_set_record(sample->streamed, q);
      if (counts && ranks[i] <= DBL_MAX) count_rank(ranks[i], histogram);
    }
  }
}

/* Streamed points first .. last - 1. Their keys ascend, so that their places do too. */
static void count_points(const struct kcp_guess_sample *sample, uint64_t first, uint64_t last,
                         uint64_t window, double *query, uint64_t *histogram) {
  const struct kcp_point_set *streamed = sample->streamed;
  uint64_t held_count = sample->held->count;
  uint64_t place = place_of_key(sample->held_keys, held_count, sample->streamed_keys[first]);
  for (uint64_t q = first; q < last; ++q) {
    uint64_t key = sample->streamed_keys[q], begin = 0, end = held_count;
    while (place < held_count && sample->held_keys[place] < key) ++place;
    if (window < held_count) {
      begin = place > window ? place - window : 0;
      end = minimum(held_count, place + window);
    }
    for (uint32_t j = 0; j < sample->dimensions; ++j)
      query[j] = streamed->columns[j * streamed->stride + q];
    count_run(sample, q, query, begin, end, histogram);
  }
}

enum kcp_status kcp_guess_count(const struct kcp_guess_sample *sample, uint64_t window,
                                uint64_t *histogram, struct kcp_error *error) {
  uint64_t count = sample->streamed->count, chunks = count / CHUNK + 1;
  int workers = (int)minimum(minimum(chunks, MOST_WORKERS), (uint64_t)omp_get_max_threads());
  uint64_t share = KCP_GUESS_BUCKETS + sample->dimensions; /* a histogram, a query point */
  uint64_t *scratch = calloc((size_t)workers * share, sizeof *scratch);
  if (scratch == NULL)
    return kcp_out_of_memory(error, "the guess", (uint64_t)workers * share * sizeof *scratch);
#pragma omp parallel num_threads(workers)
  {
    uint64_t *own = scratch + (uint64_t)omp_get_thread_num() * share;
    double *query = (double *)(own + KCP_GUESS_BUCKETS);
#pragma omp for schedule(dynamic)
    for (uint64_t first = 0; first < count; first += CHUNK)
      count_points(sample, first, minimum(first + CHUNK, count), window, query, own);
  }
  memset(histogram, 0, KCP_GUESS_BUCKETS * sizeof *histogram);
  for (int worker = 0; worker < workers; ++worker)
    for (uint32_t bucket = 0; bucket < KCP_GUESS_BUCKETS; ++bucket)
      histogram[bucket] += scratch[(uint64_t)worker * share + bucket];
  free(scratch);
  return KCP_OK;
}

double kcp_guess_find(const uint64_t *histogram, uint64_t wanted) {
  uint64_t reached = 0;
  for (uint64_t bucket = 0; bucket < KCP_GUESS_BUCKETS; ++bucket) {
    reached += histogram[bucket];
    if (reached < wanted) continue;
    uint64_t bits = ((bucket + 1) << SHIFT) - 1;
    double rank;
    memcpy(&rank, &bits, sizeof rank);
    return rank;
  }
  return INFINITY;
}

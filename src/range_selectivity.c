/* eps for a wanted selectivity: the rank of which the wanted share of sampled pairs is at or below.
 * Two passes over the pairs narrow it down by the leading bits of the rank, so that nothing but
 * histograms is held. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/interrupt.h"
#include "kcp/random.h"
#include "kcp/range_limit.h"
#include "kcp/range_query.h"
#include "kcp/scan.h"

#define SAMPLED_QUERIES 1024
#define SAMPLED_VALUES 1e9 /* squares summed in a pass */
#define LEAST_REFERENCES 4096
#define DIGIT_BITS 20
#define BUCKETS (1 << DIGIT_BITS)

struct sample {
  struct kcp_points reference, query; /* ids are record numbers */
  bool self;
  uint64_t buckets[BUCKETS];
};

/* Ranks are >= 0, so that their bits order them; the sign bit is left out. */
static uint64_t bits_of(double rank) {
  uint64_t bits;
  memcpy(&bits, &rank, sizeof bits);
  return bits << 1;
}

/* Counts the sampled pairs whose rank begins with `prefix`, of `prefix_bits`, by the next digit. */
static enum kcp_status count_pairs(struct sample *sample, uint64_t prefix, int prefix_bits,
                                   struct kcp_error *error) {
  memset(sample->buckets, 0, sizeof sample->buckets);
  const struct kcp_points *reference = &sample->reference, *query = &sample->query;
#pragma omp parallel for schedule(dynamic, 4)
  for (uint64_t q = 0; q < query->count; ++q) {
    if (kcp_interrupted()) continue;
    for (uint64_t i = 0; i < reference->count; ++i) {
      if (sample->self && reference->ids[i] == query->ids[q]) continue;
      uint64_t bits =
          bits_of(kcp_range_rank(query->dimensions, reference->coordinates, reference->stride, i,
                                 query->coordinates, query->stride, q));
      if (prefix_bits > 0 && bits >> (64 - prefix_bits) != prefix) continue;
      uint64_t digit = bits << prefix_bits >> (64 - DIGIT_BITS);
      __atomic_fetch_add(&sample->buckets[digit], 1, __ATOMIC_RELAXED);
    }
  }
  return kcp_interrupted() ? kcp_fail(error, KCP_INTERRUPTED, "stopped; nothing written") : KCP_OK;
}

/* The bucket that holds number *place; *place becomes its place in there. */
static uint64_t find_bucket(const struct sample *sample, uint64_t *place) {
  uint64_t last = 0;
  for (uint64_t bucket = 0; bucket < BUCKETS; ++bucket) {
    if (sample->buckets[bucket] == 0) continue;
    if (*place < sample->buckets[bucket]) return bucket;
    *place -= sample->buckets[bucket];
    last = bucket;
  }
  *place = 0;
  return last;
}

/* One record at random of each of `wanted` even parts of a data set. */
struct even_sample {
  struct kcp_points *points;
  uint64_t count, wanted;
};

static uint64_t sampled_record(const struct even_sample *sample, uint64_t part) {
  const double width = (double)sample->count / (double)sample->wanted;
  const double unit = kcp_random_unit(kcp_random_pair(1, 0, part, 0).first);
  const uint64_t record = (uint64_t)(((double)part + unit) * width);
  return record < sample->count ? record : sample->count - 1;
}

static enum kcp_status pick(void *context, const struct kcp_points *block, uint64_t first,
                            struct kcp_error *error) {
  struct even_sample *sample = context;
  struct kcp_points *points = sample->points;
  (void)error;
  while (points->count < sample->wanted) {
    const uint64_t record = sampled_record(sample, points->count);
    if (record >= first + block->count) break;
    points->ids[points->count] = record;
    for (uint32_t j = 0; j < block->dimensions; ++j)
      kcp_points_column(points, j)[points->count] = kcp_points_column(block, j)[record - first];
    ++points->count;
  }
  return KCP_OK;
}

static enum kcp_status take_sample(struct kcp_dataset *dataset, uint64_t wanted,
                                   struct kcp_points *points, struct kcp_error *error) {
  struct even_sample sample = {points, kcp_dataset_count(dataset), wanted};
  if (sample.wanted > sample.count) sample.wanted = sample.count;
  enum kcp_status status =
      kcp_points_allocate(sample.wanted, kcp_dataset_dimensions(dataset), points, error);
  return status == KCP_OK ? kcp_scan(dataset, pick, &sample, NULL, error) : status;
}

static enum kcp_status find_rank(struct sample *sample, uint64_t place, double *rank,
                                 struct kcp_error *error) {
  uint64_t prefix = 0;
  for (int bits = 0; bits < 2 * DIGIT_BITS; bits += DIGIT_BITS) {
    enum kcp_status status = count_pairs(sample, prefix, bits, error);
    if (status != KCP_OK) return status;
    prefix = prefix << DIGIT_BITS | find_bucket(sample, &place);
  }
  /* The largest rank that begins so. */
  const uint64_t last = (prefix << (64 - 2 * DIGIT_BITS) | UINT64_MAX >> 2 * DIGIT_BITS) >> 1;
  memcpy(rank, &last, sizeof *rank);
  return KCP_OK;
}

enum kcp_status kcp_range_find_eps(struct kcp_dataset *reference, struct kcp_dataset *query,
                                   double selectivity, double *eps, struct kcp_error *error) {
  const double dimensions = kcp_dataset_dimensions(reference);
  const double affordable = SAMPLED_VALUES / (SAMPLED_QUERIES * dimensions);
  const uint64_t references =
      affordable > LEAST_REFERENCES ? (uint64_t)affordable : LEAST_REFERENCES;
  const double count = (double)kcp_dataset_count(reference);
  double rank = 0;
  *eps = 0;
  if (count == 0 || kcp_dataset_count(query) == 0) return KCP_OK;
  struct sample *sample = calloc(1, sizeof *sample);
  if (sample == NULL) return kcp_out_of_memory(error, "a sample", sizeof *sample);
  sample->self = reference == query;
  enum kcp_status status = take_sample(reference, references, &sample->reference, error);
  if (status == KCP_OK) status = take_sample(query, SAMPLED_QUERIES, &sample->query, error);
  const double pairs = (double)sample->query.count * (double)sample->reference.count;
  const double wanted = floor(selectivity / count * pairs + 0.5);
  if (status == KCP_OK && wanted >= 1)
    status = find_rank(sample, wanted < pairs ? (uint64_t)wanted - 1 : (uint64_t)pairs - 1, &rank,
                       error);
  if (status == KCP_OK) *eps = sqrt(rank);
  kcp_points_free(&sample->reference);
  kcp_points_free(&sample->query);
  free(sample);
  return status;
}

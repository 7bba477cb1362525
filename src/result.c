#include "kcp/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define FNV_OFFSET UINT64_C(14695981039346656037)
#define FNV_PRIME UINT64_C(1099511628211)

static uint64_t saturating_product(uint64_t a, uint64_t b) {
  uint64_t product;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

struct kcp_dataset_facts kcp_dataset_facts_of(const struct kcp_dataset *dataset) {
  const struct kcp_coordinate_range *range = kcp_dataset_range(dataset);
  uint32_t dimensions = kcp_dataset_dimensions(dataset);
  bool flat = strcmp(kcp_dataset_format(dataset), "bin") == 0 && dimensions == 3 &&
              range->minimum[2] == 0 && range->maximum[2] == 0;
  return (struct kcp_dataset_facts){.path = kcp_dataset_path(dataset),
                                    .format = kcp_dataset_format(dataset),
                                    .count = kcp_dataset_count(dataset),
                                    .dimensions = flat ? 2 : dimensions,
                                    .file_bytes = kcp_dataset_file_bytes(dataset)};
}

uint64_t kcp_possible_pairs(bool self, uint64_t n1, uint64_t n2) {
  if (!self) return saturating_product(n1, n2);
  if (n1 < 2) return 0;
  return n1 % 2 == 0 ? saturating_product(n1 / 2, n1 - 1) : saturating_product(n1, (n1 - 1) / 2);
}

static uint64_t hash_word(uint64_t hash, uint64_t word) {
  for (int byte = 0; byte < 8; ++byte) {
    hash ^= word >> (8 * byte) & 0xff;
    hash *= FNV_PRIME;
  }
  return hash;
}

uint64_t kcp_answer_checksum(const struct kcp_answer *answer) {
  uint64_t hash = FNV_OFFSET;
  for (uint64_t i = 0; i < answer->count; ++i) {
    uint64_t rank_bits;
    memcpy(&rank_bits, &answer->pairs[i].rank, sizeof rank_bits);
    hash = hash_word(hash, rank_bits);
    hash = hash_word(hash, answer->pairs[i].id1);
    hash = hash_word(hash, answer->pairs[i].id2);
  }
  return hash;
}

double kcp_job_distance(const struct kcp_job *job, double rank) {
  return ldexp(kcp_metric_distance(job->request->metric, rank), -job->scale_exponent);
}

uint64_t kcp_peak_host_bytes(void) {
  struct rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return (uint64_t)usage.ru_maxrss * 1024;
}

void kcp_result_take_answer(struct kcp_result *result, const struct kcp_job *job,
                            const struct kcp_answer *answer) {
  result->pair_count = answer->count;
  result->scale_exponent = job->scale_exponent;
  result->peak_host_bytes = kcp_peak_host_bytes();
  result->zero_count = 0;
  while (result->zero_count < answer->count && answer->pairs[result->zero_count].rank == 0)
    ++result->zero_count;
  result->last_distance =
      answer->count > 0 ? kcp_job_distance(job, answer->pairs[answer->count - 1].rank) : 0;
  result->checksum = kcp_answer_checksum(answer);
}

static struct kcp_statistics statistics_at(const struct kcp_result *result, const double *first) {
  size_t stride = sizeof *result->samples / sizeof(double);
  return kcp_statistics_of(first, stride, result->sample_count, result->scratch);
}

_Static_assert(sizeof(struct kcp_measurement) % sizeof(double) == 0,
               "samples of one quantity are a whole number of doubles apart");

struct kcp_statistics kcp_result_total(const struct kcp_result *result) {
  return statistics_at(result, &result->samples[0].total_s);
}

struct kcp_statistics kcp_result_phase(const struct kcp_result *result, enum kcp_phase phase) {
  return statistics_at(result, &result->samples[0].phase_s[phase]);
}

void kcp_result_free(struct kcp_result *result) {
  free(result->samples);
  free(result->scratch);
  result->samples = NULL;
  result->scratch = NULL;
}

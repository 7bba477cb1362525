/* One configuration that was run: what feeds the summary and the report alike. */
#ifndef KCP_RESULT_H
#define KCP_RESULT_H

#include "kcp/algorithm.h"
#include "kcp/influence_query.h"
#include "kcp/range_query.h"
#include "kcp/statistics.h"
#include "kcp/top_k_query.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kcp_dataset_facts {
  const char *path;
  const char *format;
  uint64_t count;
  uint32_t dimensions; /* 2 when the third coordinate of a .bin is 0 everywhere */
  uint64_t file_bytes;
};

/* The facts of a dataset after it was read. */
struct kcp_dataset_facts kcp_dataset_facts_of(const struct kcp_dataset *dataset);

enum kcp_result_status { KCP_RESULT_OK, KCP_RESULT_WRONG };

struct kcp_result {
  const struct kcp_algorithm *algorithm; /* NULL when there was nothing to search */
  bool chosen;                           /* by auto */
  const struct kcp_backend *backend;
  struct kcp_device_info device;
  bool no_gpu; /* auto looked for one and found none */

  const struct kcp_top_k_result *top_k; /* of a top-k query, in place of all about pairs; or NULL */
  const struct kcp_influence_result *influence; /* of an influence query, likewise; or NULL */
  const struct kcp_range_result *range; /* of a range join, in place of k-th and order; or NULL */

  struct kcp_dataset_facts datasets[2];
  int dataset_count;

  struct kcp_parameter parameters[KCP_MAX_PARAMETERS];
  size_t parameter_count;
  int scale_exponent;

  struct kcp_measurement *samples; /* one a timed run; owned, see kcp_result_free */
  double *scratch;                 /* for their statistics: one number a sample; owned */
  size_t sample_count;
  uint64_t warmup_count;

  double possible_evaluations; /* of brute force; with --self it meets each pair twice */
  uint64_t pair_count;         /* of the answer */
  uint64_t zero_count;         /* of these, pairs at distance 0 */
  double last_distance;        /* of the k-th pair; 0 when there is none */
  uint64_t checksum;           /* FNV-1a over rank, id1, id2 of every pair, little-endian */

  uint64_t peak_host_bytes; /* of the whole program, before any verification */

  double floor_s; /* of --floor; 0 when it was not asked for */

  bool verified;
  enum kcp_result_status status;
  char reason[1024]; /* of a status other than ok */
};

/* Pairs between sets of n1 and n2 records, or of distinct records of one set; UINT64_MAX when there
 * are more. */
uint64_t kcp_possible_pairs(bool self, uint64_t n1, uint64_t n2);

/* Fills in what the answer tells: counts, k-th distance, checksum; and peak memory so far. */
void kcp_result_take_answer(struct kcp_result *result, const struct kcp_job *job,
                            const struct kcp_answer *answer);

/* Of the whole program so far. */
uint64_t kcp_peak_host_bytes(void);

uint64_t kcp_answer_checksum(const struct kcp_answer *answer);

/* The distance of a rank in the units of the files. */
double kcp_job_distance(const struct kcp_job *job, double rank);

/* Total time, or that of one phase, over all samples. sample_count >= 1. */
struct kcp_statistics kcp_result_total(const struct kcp_result *result);
struct kcp_statistics kcp_result_phase(const struct kcp_result *result, enum kcp_phase phase);

void kcp_result_free(struct kcp_result *result);

#ifdef __cplusplus
}
#endif
#endif

/* An algorithm: a row of the one table (src/algorithms.c) that drives dispatch, help and lists. */
#ifndef KCP_ALGORITHM_H
#define KCP_ALGORITHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kcp/backend.h"
#include "kcp/candidate.h"
#include "kcp/dataset.h"
#include "kcp/measurement.h"
#include "kcp/progress.h"
#include "kcp/request.h"

#ifdef __cplusplus
extern "C" {
#endif

enum kcp_query {
  KCP_QUERY_CLOSEST_PAIRS,
  KCP_QUERY_TOP_K,
  KCP_QUERY_INFLUENCE,
  KCP_QUERY_RANGE_JOIN
};

/* Everything an algorithm works on; owned by the driver (src/commands/query.c). */
struct kcp_job {
  const struct kcp_request *request;
  const struct kcp_algorithm *algorithm;
  const struct kcp_backend *backend;
  struct kcp_device_info device;
  struct kcp_dataset *reference; /* D1 */
  struct kcp_dataset *query;     /* D2; with --self the same dataset as the reference */
  struct kcp_progress *progress;
  int scale_exponent;  /* coordinates are read times 2^this; distances in the request are not */
  uint64_t pair_count; /* pairs the answer has: min(k, |D1| |D2|), or of distinct records */
};

/* The parameters that "auto" came to, for the summary, help and the report: name and text. */
struct kcp_parameter {
  const char *name; /* the flag's name without dashes */
  char value[32];
  bool is_number;
};
#define KCP_MAX_PARAMETERS 16

/* The answer of a closest-pairs query: sorted, unique, owned by the driver (free with free). */
struct kcp_answer {
  struct kcp_candidate *pairs;
  uint64_t count;
};

struct kcp_algorithm {
  const char *name;        /* "dspp+pea" */
  const char *spelling;    /* a second spelling without '+', or NULL */
  const char *summary;     /* one line for kcp list */
  const char *description; /* two sentences for kcp help NAME */
  const char *source;      /* section of the paper */
  enum kcp_query query;
  unsigned backends;          /* bits of enum kcp_backend_kind */
  const char *const *options; /* names of flags that it reads, NULL-terminated */
  const char *buffers;        /* "list heap", or "-" */
  const void *variant;        /* what the module's functions need to tell their rows apart */

  /* The functions below are those of closest-pairs rows; others have none: the `variant` of a top-k
   * row is its enum kcp_top_k_method, that of an influence row its enum kcp_influence_answer_kind,
   * that of a range join its enum kcp_range_method. */
  /* Whether it can serve the job; KCP_BAD_INPUT or KCP_UNAVAILABLE with the reason and what to use
   * instead, before any work starts. */
  enum kcp_status (*supports)(const struct kcp_job *job, struct kcp_error *error);
  /* Plans and allocates; `state` is the module's own. Fills parameters (at most
   * KCP_MAX_PARAMETERS). */
  enum kcp_status (*prepare)(const struct kcp_job *job, void **state,
                             struct kcp_parameter *parameters, size_t *parameter_count,
                             struct kcp_error *error);
  /* One run from files to answer. May be called several times. The answer's memory is new. */
  enum kcp_status (*run)(const struct kcp_job *job, void *state, struct kcp_answer *answer,
                         struct kcp_measurement *measurement, struct kcp_error *error);
  void (*release)(void *state); /* NULL state is allowed */
};

/* The table; ends with a row whose name is NULL. */
extern const struct kcp_algorithm kcp_algorithms[];

/* By name or second spelling, case as written; NULL when there is none. "auto" is no row: see
 * kcp_algorithm_choose. */
const struct kcp_algorithm *kcp_algorithm_find(const char *name);

/* What "auto" stands for on this backend. */
const struct kcp_algorithm *kcp_algorithm_choose(const struct kcp_request *request,
                                                 const struct kcp_backend *backend);

/* The same for a range join. */
const struct kcp_algorithm *kcp_range_choose(const struct kcp_backend *backend);

#ifdef __cplusplus
}
#endif
#endif

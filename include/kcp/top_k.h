/* The k first values of an array, or of each row of a matrix, with their indices.
 *
 * One answer, whatever computes it: values in the asked order, of equal values the lower index
 * first; -0 equals +0 (and is given as +0); NaN is never chosen but counted; +-inf are values. With
 * fewer than k values that are not NaN, all of them.
 *
 * Source: "GPU-Based Top-K Query Processing" (the paper's bitonic and sort-based top-k); `select`
 * is ours. */
#ifndef KCP_TOP_K_H
#define KCP_TOP_K_H

#include <stdbool.h>
#include <stdint.h>

#include "kcp/backend.h"
#include "kcp/measurement.h"
#include "kcp/ordered_key.h"
#include "kcp/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum kcp_top_k_method {
  KCP_TOP_K_SORT,    /* sort everything, take the first k */
  KCP_TOP_K_BITONIC, /* the paper's: sorted runs of k, merged by keeping the better half */
  KCP_TOP_K_SELECT   /* sample a threshold, keep what passes it in one read, order the few */
};

/* A query. */
struct kcp_top_k_plan {
  enum kcp_value_type type;
  enum kcp_value_order order;
  enum kcp_top_k_method method;
  uint64_t k;            /* >= 1; more than a row has is allowed */
  uint64_t rows;         /* 1 for an array */
  uint64_t columns;      /* values of each row; rows * columns <= 2^60 */
  uint64_t memory_bytes; /* working memory to use at most: of the device, or of the host on the CPU
                          */
  bool resident; /* runs after the first find the values where that one left them and do not read
                  * the source again: they time the search alone */
};

/* Where values come from: `read` copies values first .. first + count - 1 (row after row) to `out`.
 * It may be called from several threads at once. */
struct kcp_value_source {
  void *context;
  enum kcp_status (*read)(void *context, uint64_t first, uint64_t count, void *out,
                          struct kcp_error *error);
};

union kcp_value {
  float f32;
  double f64;
  int32_t i32;
  uint32_t u32;
  int64_t i64;
  uint64_t bits; /* zero-extended */
};

struct kcp_top_value {
  uint64_t index; /* within its row, from 0 */
  union kcp_value value;
};

/* What proves the answer of a row: exact counts over all its values. */
struct kcp_top_k_certificate {
  uint64_t count;       /* values in the answer: min(k, values that are not NaN) */
  union kcp_value last; /* the last of them, the k-th; bits 0 when there is none */
  uint64_t above;       /* values of the row before it */
  uint64_t equal;       /* values of the row equal to it */
  uint64_t nan_count;   /* NaN in the row */
};

struct kcp_top_k_answer {
  uint64_t rows;
  uint64_t width;                             /* min(k, columns): room for each row */
  struct kcp_top_value *values;               /* those of row r from r * width on */
  struct kcp_top_k_certificate *certificates; /* one a row */
};

/* Frees what kcp_top_k_engine.run allocated; does nothing to a zeroed struct. */
void kcp_top_k_answer_free(struct kcp_top_k_answer *answer);

struct kcp_top_k_search; /* an engine's state */

/* A backend's top-k. */
struct kcp_top_k_engine {
  /* Allocates what the plan needs; arrays that exceed the memory stream in chunks. KCP_BAD_INPUT
   * when k itself is too large for the memory, or the values of a resident plan are. */
  enum kcp_status (*create)(const struct kcp_top_k_plan *plan, const struct kcp_device_info *device,
                            struct kcp_top_k_search **out, struct kcp_error *error);
  void (*destroy)(struct kcp_top_k_search *search); /* NULL is allowed */
  /* One run from source to answer (new memory, the caller's). Fills the measurement: "kernel" is
   * the search with the values in place (on the device by its own clock, from the first kernel to
   * the last), "merge" what the certificate and chunks need beyond it. */
  enum kcp_status (*run)(struct kcp_top_k_search *search, const struct kcp_value_source *source,
                         struct kcp_top_k_answer *answer, struct kcp_measurement *measurement,
                         struct kcp_error *error);
};

#ifdef __cplusplus
}
#endif
#endif

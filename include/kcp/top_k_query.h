/* A top-k query of the command line: what was run, for summary, report and files. */
#ifndef KCP_TOP_K_QUERY_H
#define KCP_TOP_K_QUERY_H

#include <stdbool.h>
#include <stdio.h>

#include "kcp/request.h"
#include "kcp/top_k.h"
#include "kcp/value_array.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What kcp_result has of a top-k query in place of pairs. */
struct kcp_top_k_result {
  struct kcp_value_array_facts array;
  enum kcp_value_order order;
  const struct kcp_top_k_answer *answer; /* NULL while there is none */
  uint64_t nan_count;                    /* over all rows */
  uint64_t value_count;                  /* of the answer, over all rows */
};

/* Whether the request is for a top-k: by its algorithm, or a raw array alone with auto. */
bool kcp_asks_for_top_k(const struct kcp_request *request);

/* kcp_command_query for a top-k. */
enum kcp_status kcp_top_k_query(const struct kcp_request *request, struct kcp_error *error);

/* Checks an answer in one pass over the values, with code of its own: order, indices, values, and
 * every count of the certificates. KCP_WRONG_ANSWER says what is wrong. */
enum kcp_status kcp_verify_top_k(const struct kcp_top_k_plan *plan,
                                 const struct kcp_value_source *source,
                                 const struct kcp_top_k_answer *answer, struct kcp_error *error);

/* "0.5", "inf", "-17": a value as it is printed, floats as %.17g. */
struct kcp_value_text {
  char text[32];
};
struct kcp_value_text kcp_value_text(enum kcp_value_type type, union kcp_value value);

/* Whether JSON has a number for it. */
bool kcp_value_is_finite(enum kcp_value_type type, union kcp_value value);

/* `index,value` lines, or `row,index,value` of a matrix; or an array of JSON objects, in which a
 * value that is not finite is null. Errors stay in the stream. */
void kcp_top_k_write_csv(FILE *stream, const struct kcp_top_k_result *result);
void kcp_top_k_write_json(FILE *stream, const struct kcp_top_k_result *result);

/* FNV-1a over index and bits of every value, row after row. */
uint64_t kcp_top_k_checksum(const struct kcp_top_k_answer *answer);

#ifdef __cplusplus
}
#endif
#endif

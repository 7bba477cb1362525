/* Neighbours that a thread finds, on their way to the sink (CPU). */
#ifndef KCP_CPU_RANGE_RESULTS_H
#define KCP_CPU_RANGE_RESULTS_H

#include "kcp/range_join.h"

/* A thread's own; zero at first. */
struct kcp_range_results {
  uint64_t query_count, query_capacity;
  uint64_t neighbour_capacity;
  uint32_t *queries;
  uint64_t *offsets;
  uint32_t *neighbours;
  uint64_t scratch_capacity;
  uint32_t *scratch;
};

void kcp_range_results_free(struct kcp_range_results *results);

/* Opens the list of a query; neighbours that follow are its. */
enum kcp_status kcp_range_results_open(struct kcp_range_results *results, uint32_t query,
                                       struct kcp_error *error);
/* Room for `count` more neighbours of the open list: write them there, then _added. */
uint32_t *kcp_range_results_room(struct kcp_range_results *results, uint64_t count,
                                 struct kcp_error *error); /* NULL when memory is short */
static inline void kcp_range_results_added(struct kcp_range_results *results, uint64_t count) {
  results->offsets[results->query_count] += count;
}
/* Puts the neighbours of the open list into ascending order. */
enum kcp_status kcp_range_results_sort(struct kcp_range_results *results, struct kcp_error *error);

/* Passes the lists to the sink and empties them. `much` lists or neighbours
 * may be gathered first: nothing is passed before that. */
enum kcp_status kcp_range_results_flush(struct kcp_range_results *results, uint64_t much,
                                        const struct kcp_range_sink *sink, struct kcp_error *error);

#endif

/* k closest pairs with candidate lists: the host loop of the k-CP paper (Algorithms 1, 3, 4, 6) is
 * written once (src/pair_search.c) over an engine that each backend provides. */
#ifndef KCP_PAIR_SEARCH_H
#define KCP_PAIR_SEARCH_H

#include "kcp/algorithm.h"
#include "kcp/points.h"

#ifdef __cplusplus
extern "C" {
#endif

enum kcp_traversal {
  KCP_TRAVERSE_ALL,          /* brute force, Algorithm 2 */
  KCP_TRAVERSE_SUBPARTITIONS /* DSPP, Algorithm 5 */
};

/* What tells the six algorithms apart (paper, Table 1); algorithm rows point here. */
struct kcp_pair_variant {
  enum kcp_traversal traversal;
  bool partitions_reference; /* else D1 must fit as a whole */
  bool partitions_queries;   /* else D2 and its lists must fit as a whole */
  bool overlaps;             /* pinned buffers and streams */
  bool groups_queries;       /* several query points share a list */
};

/* A plan: every number of a search, chosen before it starts. Sizes are in points unless named. */
struct kcp_pair_plan {
  struct kcp_pair_variant variant;
  struct kcp_metric metric;
  enum kcp_buffer buffer;
  enum kcp_kernel_choice kernel;
  enum kcp_query_order order;
  uint64_t k;        /* of each list: min(k, number of pairs) */
  double rank_limit; /* of --max-distance; DBL_MAX when not given */
  bool self;
  uint32_t dimensions;
  uint64_t reference_count, query_count;         /* of the files */
  uint64_t reference_partition, query_partition; /* at most; <= 2^31 */
  uint32_t subpartition_size;
  uint32_t block_threads;
  uint32_t slots; /* streams S: D2 partitions in flight */
  uint32_t points_per_thread;
  uint64_t lists_per_slot; /* ceil(query_partition / points_per_thread) */
  uint64_t device_bytes;   /* what the engine will take, estimated from above */
};

/* Chooses what the request leaves open from k, sizes and memory. KCP_BAD_INPUT when it cannot fit.
 */
enum kcp_status kcp_pair_plan_make(const struct kcp_job *job, struct kcp_pair_plan *plan,
                                   struct kcp_error *error);

struct kcp_pair_search; /* an engine's state */

/* A backend's search. Calls come from one thread, in this order: create; then for every D1
 * partition load_reference; for every D2 partition load_queries into a slot and search it;
 * synchronize before a slot's block is filled again; merge at the end (then, for another run,
 * reset). */
struct kcp_pair_engine {
  /* Allocates all it needs for the plan. */
  enum kcp_status (*create)(const struct kcp_pair_plan *plan, const struct kcp_device_info *device,
                            struct kcp_pair_search **out, struct kcp_error *error);
  void (*destroy)(struct kcp_pair_search *search); /* NULL is allowed */
  /* Empties all lists and counters. */
  enum kcp_status (*reset)(struct kcp_pair_search *search, struct kcp_error *error);
  /* Host memory to read the next partition into (room for a whole one; owned by the engine). */
  struct kcp_points *(*reference_block)(struct kcp_pair_search *search);
  struct kcp_points *(*query_block)(struct kcp_pair_search *search, uint32_t slot);
  /* Takes the block (block->count points, records from first_record): uploads, sorts by x and
   * indexes for KCP_TRAVERSE_SUBPARTITIONS, orders by id for KCP_TRAVERSE_ALL, so that of pairs of
   * one rank the first come first. Of more than k points at one place a sorted partition keeps the
   * k first by id (not for KCP_KERNEL_PLAIN, the baseline): with any query point they come before
   * the others, so no list can want those. */
  enum kcp_status (*load_reference)(struct kcp_pair_search *search, uint64_t first_record,
                                    struct kcp_error *error);
  /* The same for a D2 partition; orders it by x when the plan says so. May return early. */
  enum kcp_status (*load_queries)(struct kcp_pair_search *search, uint32_t slot,
                                  uint64_t first_record, struct kcp_error *error);
  /* Searches the loaded reference for the slot's queries. May return early. `flat`: the last of
   * three coordinates is the same constant in both, and adds nothing to a rank. */
  enum kcp_status (*search)(struct kcp_pair_search *search, uint32_t slot, bool flat,
                            struct kcp_error *error);
  enum kcp_status (*synchronize)(struct kcp_pair_search *search, struct kcp_error *error);
  /* The first k candidates over all lists, in order, into `pairs` (room for plan->k). Adds the
   * engine's phases and counters to the measurement. */
  enum kcp_status (*merge)(struct kcp_pair_search *search, struct kcp_candidate *pairs,
                           uint64_t *count, struct kcp_measurement *measurement,
                           struct kcp_error *error);
};

/* The functions of the table's rows. */
enum kcp_status kcp_pair_supports(const struct kcp_job *job, struct kcp_error *error);
enum kcp_status kcp_pair_prepare(const struct kcp_job *job, void **state,
                                 struct kcp_parameter *parameters, size_t *parameter_count,
                                 struct kcp_error *error);
enum kcp_status kcp_pair_run(const struct kcp_job *job, void *state, struct kcp_answer *answer,
                             struct kcp_measurement *measurement, struct kcp_error *error);
void kcp_pair_release(void *state);

#ifdef __cplusplus
}
#endif
#endif

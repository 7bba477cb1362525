/* The range join: all pairs of a point of D and a query of Q within eps of each other.
 *
 * Definitions (RT-HiSS, section II-A): a pair belongs to the result R when its rank is at most
 * eps * eps (range_limit.h). Without a second file Q = D (self-join): pairs are ordered, and a
 * point is its own neighbour. |R| is the number of pairs; without self it is |R| - |D|; the
 * selectivity is (|R| - |D|) / |D|, of a join of two files |R| / |Q|: mean neighbours of a query.
 *
 * One answer, whatever computes it: the counts of each query, and, when they are asked for, its
 * neighbours in the order of their records. */
#ifndef KCP_RANGE_JOIN_H
#define KCP_RANGE_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kcp/algorithm.h"
#include "kcp/points.h"
#include "kcp/range_options.h"

#ifdef __cplusplus
extern "C" {
#endif

enum kcp_range_method {
  KCP_RANGE_BRUTE,    /* every pair */
  KCP_RANGE_GRID,     /* cells of side eps in up to 6 dimensions, as GDS-Join */
  KCP_RANGE_RT_HISS,  /* the paper's pipeline */
  KCP_RANGE_DUAL_TREE /* leaves of a kd-tree against a tree (this project) */
};

#define KCP_RANGE_METHODS 4

/* Parts of a join with a time of their own. The first seven are of RT-HiSS (sections IV-A to IV-D),
 * the grid takes what it needs of them. */
enum kcp_range_phase {
  KCP_RANGE_PHASE_REORDER,    /* variance of each dimension, and the order of dimensions */
  KCP_RANGE_PHASE_KD_TREE,    /* grouping; of the grid, sorting by cell */
  KCP_RANGE_PHASE_PRIMITIVES, /* bounds of the groups */
  KCP_RANGE_PHASE_REARRANGE,  /* points of a group together, groups in Morton order */
  KCP_RANGE_PHASE_INDEX,      /* the hierarchy or grid over the primitives */
  KCP_RANGE_PHASE_FIRST_TEST, /* intersections of every query, and batches from them */
  KCP_RANGE_PHASE_COUNT_PASS, /* first pass of a batch, with its prefix sums */
  KCP_RANGE_PHASE_FILL_PASS,  /* second pass */
  KCP_RANGE_PHASE_REFINE,     /* distances */
  KCP_RANGE_PHASE_COMPACT,    /* lists of neighbours from masks or pairs */
  KCP_RANGE_PHASE_COPY,       /* results to host memory; on a GPU other phases go on meanwhile */
  KCP_RANGE_PHASE_COLLECT, /* what is left for the host to do: lists from raw results, and take */
  KCP_RANGE_PHASE_COUNT
};

/* "kd_tree", ...: its key in the report, without unit. */
const char *kcp_range_phase_name(enum kcp_range_phase phase);

/* Comparisons of a thread unless --work-per-thread says otherwise (section VIII). */
#define KCP_WORK_PER_THREAD 128

/* What the options of RT-HiSS came to, for the report; returns how many. */
size_t kcp_range_list_parameters(const struct kcp_range_options *options, uint32_t kd_height,
                                 uint64_t largest_primitive, struct kcp_parameter *list);

/* What a run did beside its measurement. */
struct kcp_range_work {
  double phase_s[KCP_RANGE_PHASE_COUNT];
  uint64_t batches;
  uint64_t primitives;    /* over all slices of D */
  uint64_t intersections; /* of queries with primitives */
  uint64_t rechecks;      /* pairs that a filter left open */
};

struct kcp_range_plan {
  enum kcp_range_method method;
  struct kcp_range_options options;
  double eps; /* at the scale of the points that the join gets; eps * eps neither overflows nor
                 loses bits */
  uint32_t dimensions;
  uint64_t memory_bytes; /* working memory: of the device, or of the host on the CPU */
};

/* The neighbours of some queries, complete for the slice of D that is in place: those of query
 * queries[i] are neighbours[offsets[i]] .. neighbours[offsets[i + 1] - 1]. Queries and neighbours
 * are places in the block and in the slice; neighbours ascend. Each query of a join comes in one
 * batch, those without a neighbour in none or in one. */
struct kcp_range_batch {
  uint64_t query_count;
  const uint32_t *queries;
  const uint64_t *offsets; /* query_count + 1 */
  const uint32_t *neighbours;
};

/* Where neighbours go. Threads may call at the same time. */
struct kcp_range_sink {
  void *context;
  enum kcp_status (*take)(void *context, const struct kcp_range_batch *batch,
                          struct kcp_error *error);
  /* May be NULL. Room in the sink for the `count` neighbours of a batch, so that `take`, which is
   * called with them there, need not copy them; NULL when there is none: `take` all the same. */
  uint32_t *(*room)(void *context, uint64_t count);
};

struct kcp_range_join; /* an engine's state */

/* Records of a slice of D and of a block of queries that a join takes at a time; < 2^32. */
struct kcp_range_capacity {
  uint64_t reference_records;
  uint64_t query_records;
};

/* A backend's range join. Engines are used by kcp_range_run (range_run.h): for each slice of D,
 * set_reference, and then join for each block of queries. */
struct kcp_range_engine {
  /* KCP_BAD_INPUT when the memory is too small for anything. */
  enum kcp_status (*create)(const struct kcp_range_plan *plan, const struct kcp_device_info *device,
                            struct kcp_range_join **out, struct kcp_error *error);
  void (*destroy)(struct kcp_range_join *join); /* NULL is allowed */
  struct kcp_range_capacity (*capacity)(const struct kcp_range_join *join);
  /* What "auto" came to, at most KCP_MAX_PARAMETERS; complete after a run. */
  size_t (*parameters)(const struct kcp_range_join *join, struct kcp_parameter *parameters);
  /* Indexes a slice, which stays in place and unchanged until the next one. */
  enum kcp_status (*set_reference)(struct kcp_range_join *join, const struct kcp_points *reference,
                                   struct kcp_measurement *measurement, struct kcp_range_work *work,
                                   struct kcp_error *error);
  /* Adds the neighbours that each query has in the slice to counts[its place]; passes them to the
   * sink unless it is NULL. With queries NULL, the slice is joined with itself. Times, work and
   * distance evaluations are added to what is there. */
  enum kcp_status (*join)(struct kcp_range_join *join, const struct kcp_points *queries,
                          uint64_t *counts, const struct kcp_range_sink *sink,
                          struct kcp_measurement *measurement, struct kcp_range_work *work,
                          struct kcp_error *error);
};

#ifdef __cplusplus
}
#endif
#endif

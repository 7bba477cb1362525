/* RT-HiSS on the CPU: what its parts share. */
#ifndef KCP_CPU_RT_HISS_H
#define KCP_CPU_RT_HISS_H

#include "kcp/range_boxes.h"
#include "kcp/range_built_index.h"
#include "kcp/range_join.h"
#include "kcp/range_limit.h"
#include "kcp/range_primitives.h"
#include "kcp/range_tasks.h"
#include "radix_sort.h"

/* Points in the order in which they are worked on, their dimensions by variance. */
struct kcp_rearranged {
  uint64_t count, capacity;
  const struct kcp_points *given;
  uint32_t *places; /* of point i among the given */
  double *rows;     /* point after point */
};

struct kcp_range_join {
  struct kcp_range_plan plan;
  struct kcp_range_limit limit;
  uint32_t *order;   /* of dimensions */
  double *variances; /* of dimensions; then their corners */
  struct kcp_range_frame frame;
  uint32_t height;             /* levels of the kd-tree */
  uint64_t primitive_count;    /* those that hold points */
  uint64_t primitive_capacity; /* room for them */
  uint64_t largest_primitive;  /* |L|: points of the largest */
  uint32_t *firsts;            /* where the points of a primitive begin, and one behind */
  struct kcp_built_index index;
  double *bounds; /* of primitives in all dimensions, with KCP_BOUND_FULL (range_boxes.h); owned */
  struct kcp_rearranged points;  /* D' */
  struct kcp_rearranged queries; /* of a block that is not D itself */
  struct kcp_radix_sorter sorter;
};

/* Sections IV-A to IV-C: order of dimensions, groups, primitives, order of points, index. */
enum kcp_status kcp_rt_hiss_index(struct kcp_range_join *join, const struct kcp_points *reference,
                                  struct kcp_range_work *work, struct kcp_error *error);

/* Queries of their own in Morton order, so that near ones come together. */
enum kcp_status kcp_rt_hiss_order_queries(struct kcp_range_join *join,
                                          const struct kcp_points *queries,
                                          struct kcp_error *error);

static inline struct kcp_frame_point kcp_rearranged_frame_point(const struct kcp_range_join *join,
                                                                const struct kcp_rearranged *points,
                                                                uint64_t i) {
  return kcp_frame_point_of(&join->frame, points->given->coordinates, points->given->stride,
                            points->places[i]);
}

/* The next primitive that a query meets; `row` is the query's. */
static inline bool kcp_rt_next(const struct kcp_range_join *join, struct kcp_primitive_walk *walk,
                               const double *row, uint32_t *primitive) {
  const uint32_t dimensions = join->plan.dimensions;
  while (kcp_primitive_walk_next(&join->index.index, walk, primitive))
    if (join->plan.options.bound != KCP_BOUND_FULL ||
        kcp_box_reaches(dimensions, row, join->bounds + 2 * (uint64_t)*primitive * dimensions,
                        join->limit.beyond))
      return true;
  return false;
}

/* ---- section IV-D: batches and the two passes over them ---- */

/* Queries first .. first + count - 1 of the rearranged, and what they meet. */
struct kcp_rt_batch {
  const struct kcp_rearranged *queries;
  uint64_t first, count;
  uint64_t intersections;
  uint64_t *entry_firsts; /* of each primitive among the entries, and one behind */
  uint32_t *entries;      /* queries that meet it, ascending */
};

/* The first intersection test: hits[q] = primitives that query q meets. */
void kcp_rt_hiss_first_test(const struct kcp_range_join *join, const struct kcp_rearranged *queries,
                            uint32_t *hits);

/* Queries from `first` on whose intersections are at most `most` together; at least one. Sets the
 * batch's first, count and intersections. */
void kcp_rt_hiss_window(const struct kcp_rearranged *queries, const uint32_t *hits, uint64_t first,
                        uint64_t most, struct kcp_rt_batch *batch);

/* Both passes: fills entry_firsts and entries, which the batch owns from now on. */
enum kcp_status kcp_rt_hiss_meet(const struct kcp_range_join *join, struct kcp_rt_batch *batch,
                                 struct kcp_range_work *work, struct kcp_error *error);
void kcp_rt_batch_free(struct kcp_rt_batch *batch);

/* ---- section IV-E: refinement ---- */

/* What a batch found, by entry. Only what the form of results needs is there. */
struct kcp_rt_found {
  enum kcp_range_result_form form;
  uint64_t mask_words;   /* 16-bit words an entry has */
  uint16_t *masks;       /* bit i of an entry: point i of its primitive; NULL for counts alone */
  uint64_t pair_room;    /* pairs an entry has room for */
  uint32_t *pair_values; /* of KCP_RESULT_PAIRS: query and record, one after the other */
  uint32_t *pair_counts; /* of each entry */
  uint64_t *totals;      /* neighbours of each query of the batch */
};

/* Bytes that an intersection takes in a batch. */
uint64_t kcp_rt_intersection_bytes(const struct kcp_range_join *join, bool counts_alone);

enum kcp_status kcp_rt_found_create(const struct kcp_range_join *join,
                                    const struct kcp_rt_batch *batch, bool counts_alone,
                                    struct kcp_rt_found *found, struct kcp_error *error);
void kcp_rt_found_free(struct kcp_rt_found *found);

/* Tests every entry of the tasks against the points of its primitive. */
enum kcp_status kcp_rt_hiss_refine(const struct kcp_range_join *join,
                                   const struct kcp_rt_batch *batch,
                                   const struct kcp_range_tasks *tasks, struct kcp_rt_found *found,
                                   uint64_t *rechecks, struct kcp_error *error);

/* ---- section IV-F: results ---- */

/* Passes the neighbours of the batch's queries to the sink, as many queries at a time as `bytes`
 * allow. */
enum kcp_status kcp_rt_hiss_pass_on(const struct kcp_range_join *join,
                                    const struct kcp_rt_batch *batch,
                                    const struct kcp_rt_found *found, uint64_t bytes,
                                    const struct kcp_range_sink *sink, struct kcp_range_work *work,
                                    struct kcp_error *error);

#endif

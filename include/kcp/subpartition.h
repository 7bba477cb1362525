/* The sub-partition index of DSPP and the walk over it (k-CP paper, section 2.4.1, Algorithm 5).
 *
 * The points of a D1 partition, sorted by x, are cut into sub-partitions of `size` points (the last
 * may be shorter). The index holds the first and last x of each. A walk starts at the sub-partition
 * nearest to a query's x and takes the nearer unexamined neighbour, left or right, until the x gap
 * alone ranks behind the candidate threshold (Proposition 1). */
#ifndef KCP_SUBPARTITION_H
#define KCP_SUBPARTITION_H

#include <stdbool.h>

#include "kcp/metric.h"

struct kcp_subpartition_index {
  const double *first_x; /* `count` values, ascending */
  const double *last_x;  /* `count` values, ascending */
  uint32_t count;        /* >= 1 */
  uint32_t size;         /* points in each but the last */
};

/* Sub-partitions left .. right have been examined or are about to be. */
struct kcp_walk {
  uint32_t left;
  uint32_t right;
};

/* The sub-partition that contains x or is nearest to it (find_initial_subpartition). */
KCP_HD static inline uint32_t kcp_walk_start(const struct kcp_subpartition_index *index, double x,
                                             struct kcp_walk *walk) {
  uint32_t low = 0, high = index->count - 1; /* the first whose last_x >= x, else the last */
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (index->last_x[middle] < x)
      low = middle + 1;
    else
      high = middle;
  }
  if (low > 0 && x < index->first_x[low] && x - index->last_x[low - 1] < index->first_x[low] - x)
    --low;
  walk->left = walk->right = low;
  return low;
}

/* The gap in x between a query and the unexamined sub-partitions on the left, or on the right; +inf
 * when there are none. */
KCP_HD static inline double kcp_walk_left_gap(const struct kcp_subpartition_index *index,
                                              const struct kcp_walk *walk, double x) {
  return walk->left > 0 ? x - index->last_x[walk->left - 1] : INFINITY;
}

KCP_HD static inline double kcp_walk_right_gap(const struct kcp_subpartition_index *index,
                                               const struct kcp_walk *walk, double x) {
  return walk->right + 1 < index->count ? index->first_x[walk->right + 1] - x : INFINITY;
}

/* Whether a point beyond the gap can have a rank <= threshold_rank (finite). Its difference in x is
 * at least the gap and rounding is monotone, so the term of the gap is a lower bound of its rank.
 * Equal ranks are within reach, since their ids may come first. */
KCP_HD static inline bool kcp_walk_reaches(enum kcp_metric_kind kind, uint32_t power, double gap,
                                           double threshold_rank) {
  return gap <= 0 || kcp_metric_term(kind, power, gap) <= threshold_rank;
}

/* The next nearest sub-partition into `next` (find_next_closest_sub_partition). False when none can
 * hold a point of rank <= threshold_rank. */
KCP_HD static inline bool kcp_walk_next(const struct kcp_subpartition_index *index,
                                        enum kcp_metric_kind kind, uint32_t power, double x,
                                        double threshold_rank, struct kcp_walk *walk,
                                        uint32_t *next) {
  double left_gap = kcp_walk_left_gap(index, walk, x);
  double right_gap = kcp_walk_right_gap(index, walk, x);
  bool go_left = left_gap < right_gap;
  if (!kcp_walk_reaches(kind, power, go_left ? left_gap : right_gap, threshold_rank)) return false;
  if (go_left)
    *next = --walk->left;
  else
    *next = ++walk->right;
  return true;
}

#endif

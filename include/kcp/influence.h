/* Common influence regions: what two sets of weighted sites share of a weighted domain.
 *
 * The k-influence region of a site is where fewer than k sites of its set are nearer in weighted
 * distance, so that ties at the k-th distance count. The common region of p in P and q in Q is the
 * intersection of the k-region of p in P and the k'-region of q in Q; its weighted area is the
 * weight of the domain within it.
 *
 * Weights of cells are whole numbers of one unit with a sum below 2^62: their sums do not depend on
 * order. The area of a pair is the paper's: the weights of the cells whose centre
 * lies in both regions. Beside it stand a lower bound, the cells that lie in both regions as a
 * whole, and an upper bound, the cells of which no part is known to lie outside. The true weighted
 * area lies between them, and so does the paper's. Cells that leave a pair undecided are split when
 * closer bounds are asked for.
 *
 * Source: Fort, Sellares: "Solving common influence region queries with the GPU". Regions:
 * section 2; the `pairs` method: section 3. The sparse method and the bounds are this project's. */
#ifndef KCP_INFLUENCE_H
#define KCP_INFLUENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "kcp/backend.h"
#include "kcp/density.h"
#include "kcp/influence_geometry.h"
#include "kcp/measurement.h"
#include "kcp/points.h"
#include "kcp/progress.h"
#include "kcp/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum kcp_influence_method {
  KCP_INFLUENCE_SPARSE,  /* a cell counts for the pairs of its own nearest sites */
  KCP_INFLUENCE_PAIRWISE /* the paper's: every pair looks at every cell */
};

/* The sites of a set, those of one place and one weight as one group: they have the same region.
 * Groups are in the order of x, y, weight. Columns of `count` elements, owned. */
struct kcp_site_groups {
  uint64_t count;
  uint64_t site_count;
  double *x, *y;
  double *squared_weight; /* w * w */
  double *inverse_square; /* 1 / (w * w) */
  uint64_t *multiplicity; /* sites of the group */
  uint8_t *selected;      /* whether one of its sites belongs to the chosen subset (P' or Q') */
  uint64_t selected_count;
  uint32_t *group_of; /* per site, in the order of the file */
};

/* Groups `sites`, whose coordinates are x, y and, with three, the weight (else 1). `chosen` has a
 * flag a site; NULL chooses all. The caller frees with kcp_site_groups_free. */
enum kcp_status kcp_site_groups_make(const struct kcp_points *sites, const bool *chosen,
                                     struct kcp_site_groups *groups, struct kcp_error *error);
void kcp_site_groups_free(struct kcp_site_groups *groups);

/* A query. What it points to is the caller's and outlives the search. */
struct kcp_influence_plan {
  const struct kcp_site_groups *sets[2]; /* P, Q */
  uint64_t k[2];                         /* k, k': from 1 to the number of sites */
  struct kcp_influence_grid grid;
  const struct kcp_cell_weights *weights; /* of the cells of the grid */
  enum kcp_influence_method method;
  /* Units of weight, of the partners query by the paper's method on the CPU: areas of a p behind
   * the first one below it may be left at 0. 0 for all areas. */
  uint64_t stop_below;
};

/* A pair of groups with what its regions share, in units of weight. */
struct kcp_influence_sum {
  uint32_t p, q; /* groups */
  uint64_t area, lower, upper;
};

/* The pairs of selected groups with an upper bound above 0, by (p, q). Owned: free with free. */
struct kcp_influence_sums {
  struct kcp_influence_sum *pairs;
  uint64_t count;
};

struct kcp_influence_search; /* an engine's state */

/* A backend's part. */
struct kcp_influence_engine {
  enum kcp_status (*create)(const struct kcp_influence_plan *plan,
                            const struct kcp_device_info *device, struct kcp_influence_search **out,
                            struct kcp_error *error);
  void (*destroy)(struct kcp_influence_search *search); /* NULL is allowed */
  /* All pairs on the grid, by the plan's method. Adds to the measurement: "index" are the distances
   * of the nearest sites, "kernel" the areas, "merge" bounds that are computed beside them. */
  enum kcp_status (*run)(struct kcp_influence_search *search, struct kcp_influence_sums *sums,
                         struct kcp_measurement *measurement, struct kcp_progress *progress,
                         struct kcp_error *error);
  /* Exactly the pairs of `wanted`, which are by (p, q), with cells that leave one of them undecided
   * split `depth` >= 1 times. NULL: kcp_influence_run has the CPU's engine split cells. */
  enum kcp_status (*refine)(struct kcp_influence_search *search,
                            const struct kcp_influence_sums *wanted, uint32_t depth,
                            struct kcp_influence_sums *sums, struct kcp_measurement *measurement,
                            struct kcp_progress *progress, struct kcp_error *error);
};

/* Puts areas[i * m' + j] of the i-th selected group of P and the j-th of Q, as a method found them,
 * in the place of those of the listed pairs. */
enum kcp_status kcp_influence_set_areas(const struct kcp_influence_plan *plan,
                                        const uint64_t *areas, struct kcp_influence_sums *sums,
                                        struct kcp_error *error);

/* How close the bounds shall come. */
struct kcp_influence_goal {
  bool has_tolerance;
  double tolerance; /* upper - lower of every pair */
  bool decide;      /* no threshold in lower < W0 <= upper of any pair */
  const double *thresholds;
  uint32_t threshold_count;
  bool partners; /* only whole rows of Q' matter: pairs of a p that fails need no decision */
};

struct kcp_influence_answer {
  struct kcp_influence_sums sums;
  uint32_t depth;     /* times that cells were split */
  uint64_t undecided; /* pairs with a threshold in lower < W0 <= upper */
  double widest;      /* the largest upper - lower */
};

/* Runs the search on the grid and splits cells until the goal is met. KCP_FAILED, saying how near
 * it came, when it is not met after KCP_INFLUENCE_DEEPEST splits. The caller frees
 * answer->sums.pairs. */
#define KCP_INFLUENCE_DEEPEST 20
enum kcp_status kcp_influence_run(const struct kcp_influence_engine *engine,
                                  struct kcp_influence_search *search,
                                  const struct kcp_influence_plan *plan,
                                  const struct kcp_influence_goal *goal,
                                  struct kcp_influence_answer *answer,
                                  struct kcp_measurement *measurement,
                                  struct kcp_progress *progress, struct kcp_error *error);

#ifdef __cplusplus
}
#endif
#endif

#include "kcp/algorithm.h"

#include <string.h>

#include "kcp/influence_query.h"
#include "kcp/pair_search.h"
#include "kcp/range_join.h"
#include "kcp/threshold_search.h"
#include "kcp/top_k.h"

#define PAIR_OPTIONS                                                                     \
  "k", "metric", "self", "max-distance", "buffer", "kernel", "order-d2", "d1-partition", \
      "d2-partition", "block-threads"

static const char *const threshold_options[] = {"k", "metric", "self", "max-distance", NULL};
static const char *const brute_force_options[] = {PAIR_OPTIONS, NULL};
static const char *const dspp_options[] = {PAIR_OPTIONS, "subpartitions", NULL};
static const char *const overlap_options[] = {PAIR_OPTIONS, "subpartitions", "streams", NULL};
static const char *const group_options[] = {PAIR_OPTIONS, "subpartitions", "streams",
                                            "points-per-thread", NULL};

static const struct kcp_pair_variant dbfs = {KCP_TRAVERSE_ALL, false, false, false, false};
static const struct kcp_pair_variant dbf = {KCP_TRAVERSE_ALL, true, false, false, false};
static const struct kcp_pair_variant dspp = {KCP_TRAVERSE_SUBPARTITIONS, true, false, false, false};
static const struct kcp_pair_variant dspp_plus = {KCP_TRAVERSE_SUBPARTITIONS, true, true, false,
                                                  false};
static const struct kcp_pair_variant dspp_p = {KCP_TRAVERSE_SUBPARTITIONS, true, true, true, false};
static const struct kcp_pair_variant dspp_pea = {KCP_TRAVERSE_SUBPARTITIONS, true, true, true,
                                                 true};

#define PAIR_ROW(VARIANT, OPTIONS)                                                  \
  .query = KCP_QUERY_CLOSEST_PAIRS, .backends = KCP_BACKEND_CPU | KCP_BACKEND_CUDA, \
  .options = (OPTIONS), .buffers = "list heap", .variant = &(VARIANT),              \
  .supports = kcp_pair_supports, .prepare = kcp_pair_prepare, .run = kcp_pair_run,  \
  .release = kcp_pair_release

static const char *const top_k_options[] = {"k", "order", "resident", NULL};

static const enum kcp_top_k_method by_sort = KCP_TOP_K_SORT;
static const enum kcp_top_k_method by_bitonic = KCP_TOP_K_BITONIC;
static const enum kcp_top_k_method by_select = KCP_TOP_K_SELECT;

#define TOP_K_ROW(METHOD)                                                   \
  .query = KCP_QUERY_TOP_K, .backends = KCP_BACKEND_CPU | KCP_BACKEND_CUDA, \
  .options = top_k_options, .buffers = "-", .variant = &(METHOD)

static const char *const influence_options[] = {
    "k",         "k2",         "min-weight",   "p-select",   "q-select",
    "density",   "density-is", "domain",       "grid",       "method",
    "tolerance", "decide",     "site-weights", "list-areas", "map",
    "map-show",  "add",        "remove",       "reweight",   NULL};

static const enum kcp_influence_answer_kind influence_pairs = KCP_INFLUENCE_PAIRS;
static const enum kcp_influence_answer_kind influence_partners = KCP_INFLUENCE_PARTNERS;

#define INFLUENCE_ROW(KIND)                                                     \
  .query = KCP_QUERY_INFLUENCE, .backends = KCP_BACKEND_CPU | KCP_BACKEND_CUDA, \
  .options = influence_options, .buffers = "-", .variant = &(KIND)
static const char *const range_options[] = {"eps", "selectivity", "result", NULL};

static const char *const dual_tree_options[] = {"eps", "selectivity", "reorder", "result", NULL};

static const char *const range_grid_options[] = {"eps",       "selectivity", "reorder",
                                                 "grid-dims", "result",      NULL};

static const char *const rt_hiss_options[] = {
    "eps",       "selectivity", "reorder",      "kd-height",       "index",
    "bound",     "refine",      "result",       "work-per-thread", "shared-memory",
    "sort-work", "fixed-work",  "copy-threads", "pinned",          "host-memory",
    NULL};

static const enum kcp_range_method by_brute_force = KCP_RANGE_BRUTE;
static const enum kcp_range_method by_grid = KCP_RANGE_GRID;
static const enum kcp_range_method by_primitives = KCP_RANGE_RT_HISS;
static const enum kcp_range_method by_dual_tree = KCP_RANGE_DUAL_TREE;

#define RANGE_ROW(METHOD, OPTIONS) \
  .query = KCP_QUERY_RANGE_JOIN, .options = (OPTIONS), .buffers = "-", .variant = &(METHOD)

const struct kcp_algorithm kcp_algorithms[] = {
    {.name = "dbfs",
     .summary = "k closest pairs, brute force, both sets in device memory",
     .description =
         "Evaluates every pair with one thread a D2 point, each with a list of its k best. "
         "Both sets and all lists must fit in device memory.",
     .source = "k-CP 2.3.1, Algorithms 1-2",
     PAIR_ROW(dbfs, brute_force_options)},
    {.name = "dbf",
     .summary = "k closest pairs, brute force, D1 in partitions",
     .description = "Evaluates every pair like dbfs, but takes D1 partition by partition. "
                    "D2 and all lists must fit in device memory.",
     .source = "k-CP 2.3.2, Algorithm 3",
     PAIR_ROW(dbf, brute_force_options)},
    {.name = "dspp",
     .summary = "k closest pairs, D1 partitions sorted by x, pruned by sub-partition",
     .description =
         "Sorts each D1 partition by x and walks its sub-partitions from the nearest outwards "
         "until the x gap alone is too large. D2 and all lists must fit in device memory.",
     .source = "k-CP 2.4.1, Algorithms 4-5",
     PAIR_ROW(dspp, dspp_options)},
    {.name = "dspp+",
     .spelling = "dspp-plus",
     .summary = "dspp with D2 in partitions too: any size of data",
     .description = "Searches every D2 partition against every D1 partition with the walk of dspp. "
                    "Lists are kept for one D2 partition only, so nothing needs to fit as a whole.",
     .source = "k-CP 2.4.2, Algorithm 6",
     PAIR_ROW(dspp_plus, dspp_options)},
    {.name = "dspp+p",
     .spelling = "dspp-p",
     .summary = "dspp+ with pinned buffers and streams: transfers overlap the search",
     .description =
         "Reads D2 partitions into pinned buffers and searches a batch of them in concurrent "
         "streams. Otherwise as dspp+.",
     .source = "k-CP 2.4.3",
     PAIR_ROW(dspp_p, overlap_options)},
    {.name = "dspp+pea",
     .spelling = "dspp-pea",
     .summary = "dspp+p with several D2 points a thread sharing one list",
     .description =
         "Each thread searches a group of D2 points with one shared list, so that fewer lists "
         "have tighter thresholds. Otherwise as dspp+p.",
     .source = "k-CP 2.4.4",
     PAIR_ROW(dspp_pea, group_options)},
    {.name = "global-threshold",
     .summary = "k closest pairs with one threshold: hashed cells, no lists",
     .description =
         "Guesses the k-th distance from a sample, lets only points near the other set through a "
         "bitmap of cells, and joins the few that are left. Counting confirms the guess or "
         "repeats.",
     .source = "this project",
     .query = KCP_QUERY_CLOSEST_PAIRS,
     .backends = KCP_BACKEND_CPU | KCP_BACKEND_CUDA,
     .options = threshold_options,
     .buffers = "-",
     .supports = kcp_threshold_supports,
     .prepare = kcp_threshold_prepare,
     .run = kcp_threshold_run,
     .release = kcp_threshold_release},
    {.name = "sort",
     .summary = "first k values of an array: sorts them all, the paper's baseline",
     .description = "Radix sort of all values with their indices, of which the first k are taken.",
     .source = "top-k 3",
     TOP_K_ROW(by_sort)},
    {.name = "bitonic",
     .summary = "first k values of an array: sorted runs of k, merged by halves",
     .description = "Bitonic networks sort runs of k values; two runs are merged by keeping the "
                    "better half, which is sorted again, until one is left.",
     .source = "top-k 3-6",
     TOP_K_ROW(by_bitonic)},
    {.name = "select",
     .summary = "first k values of an array: reads it once",
     .description = "A sample gives a threshold that a few more than k values pass; one read keeps "
                    "these and counts the rest, and they are sorted.",
     .source = "kcp's own",
     TOP_K_ROW(by_select)},
    {.name = "influence-pairs",
     .summary = "pairs of weighted sites whose influence regions share enough weight",
     .description =
         "The k-influence region of p is where p is among its k nearest sites in weighted distance "
         "(1/w) d; prints the pairs of P' x Q' whose regions share a weighted area of at least "
         "--min-weight, with bounds that hold it for certain.",
     .source = "influence 2-3",
     INFLUENCE_ROW(influence_pairs)},
    {.name = "influence-partners",
     .summary = "sites of P that share enough weight with every site of Q",
     .description =
         "Prints the sites p of P' whose influence region shares a weighted area of at least "
         "--min-weight with that of every q of Q'.",
     .source = "influence 2-3",
     INFLUENCE_ROW(influence_partners)},
    {.name = "rt-hiss",
     .summary = "all pairs within eps, in many dimensions: primitives, then refinement",
     .description =
         "Groups points by a kd-tree in three dimensions, finds the groups whose neighbourhood "
         "holds a query through a hierarchy of boxes, and ranks the query against their points.",
     .source = "RT-HiSS IV",
     .backends = KCP_BACKEND_CPU | KCP_BACKEND_CUDA,
     RANGE_ROW(by_primitives, rt_hiss_options)},
    {.name = "range-brute",
     .summary = "all pairs within eps: brute force",
     .description = "Ranks every pair of a point and a query. The baseline of range joins.",
     .source = "RT-HiSS II-B",
     .backends = KCP_BACKEND_CPU | KCP_BACKEND_CUDA,
     RANGE_ROW(by_brute_force, range_options)},
    {.name = "range-grid",
     .summary = "all pairs within eps: cells of side eps in up to 6 dimensions",
     .description = "Sorts points by cell, in the dimensions in which they are spread most, and "
                    "ranks each query against the points of the cells around its own.",
     .source = "RT-HiSS II-B, GDS-Join",
     .backends = KCP_BACKEND_CPU,
     RANGE_ROW(by_grid, range_grid_options)},
    {.name = "range-dual-tree",
     .summary = "all pairs within eps: leaves of a kd-tree against the tree",
     .description = "Groups points by a kd-tree with boxes in all dimensions; skips nodes out of "
                    "reach of a leaf, counts those wholly in reach, tests the rest leaf by leaf.",
     .source = "this project",
     .backends = KCP_BACKEND_CPU,
     RANGE_ROW(by_dual_tree, dual_tree_options)},
    {.name = NULL}};

const struct kcp_algorithm *kcp_algorithm_find(const char *name) {
  for (const struct kcp_algorithm *row = kcp_algorithms; row->name != NULL; ++row)
    if (strcmp(name, row->name) == 0 || (row->spelling != NULL && strcmp(name, row->spelling) == 0))
      return row;
  return NULL;
}

const struct kcp_algorithm *kcp_range_choose(const struct kcp_backend *backend) {
  return kcp_algorithm_find(backend->kind == KCP_BACKEND_CPU ? "range-dual-tree" : "rt-hiss");
}

const struct kcp_algorithm *kcp_algorithm_choose(const struct kcp_request *request,
                                                 const struct kcp_backend *backend) {
  (void)request;
  return kcp_algorithm_find(backend->threshold != NULL ? "global-threshold" : "dspp+pea");
}

/* A thread takes 16 streamed points at a time, which are neighbours, and descends by the box around
 * them: 16 children are tested with vector instructions, a leaf's 16 points are ranked likewise. */
#include "box_tree.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/candidate.h"
#include "kcp/interrupt.h"
#include "rank_block.h"
#include "vectors.h"

#define STACK_ENTRIES (KCP_TREE_FANOUT * KCP_TREE_LEVELS)
#define LOCAL_PAIRS 512 /* that a thread collects before it takes a place for them */

struct box {
  double low[KCP_MAX_AXES], high[KCP_MAX_AXES];
};

static uint64_t minimum(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

enum kcp_status kcp_box_tree_create(uint64_t points, struct kcp_box_tree *tree,
                                    struct kcp_error *error) {
  uint64_t nodes = 0, level = points > 0 ? points : 1;
  do {
    level = (level + KCP_TREE_FANOUT - 1) / KCP_TREE_FANOUT;
    nodes += level;
  } while (level > 1);
  memset(tree, 0, sizeof *tree);
  tree->capacity = nodes;
  tree->corners = malloc(nodes * 2 * KCP_MAX_AXES * sizeof *tree->corners);
  if (tree->corners == NULL)
    return kcp_out_of_memory(error, "the tree", nodes * 2 * KCP_MAX_AXES * sizeof *tree->corners);
  return KCP_OK;
}

void kcp_box_tree_free(struct kcp_box_tree *tree) {
  free(tree->corners);
  memset(tree, 0, sizeof *tree);
}

static double *low_corner(const struct kcp_box_tree *tree, uint32_t axis) {
  return tree->corners + axis * tree->capacity;
}

static double *high_corner(const struct kcp_box_tree *tree, uint32_t axis) {
  return tree->corners + (KCP_MAX_AXES + axis) * tree->capacity;
}

/* The least and the greatest of a few numbers each. */
static void bound(const double *lows, const double *highs, uint64_t count, double *low,
                  double *high) {
  double least = INFINITY, greatest = -INFINITY;
  for (uint64_t i = 0; i < count; ++i) {
    least = lows[i] < least ? lows[i] : least;
    greatest = highs[i] > greatest ? highs[i] : greatest;
  }
  *low = least;
  *high = greatest;
}

static void build_level(struct kcp_box_tree *tree, const struct kcp_cells *axes,
                        const struct kcp_point_set *set, uint32_t level) {
  uint64_t children = level == 0 ? set->count : tree->count[level - 1];
  for (uint32_t j = 0; j < axes->axes; ++j) {
    const double *lows = set->columns + axes->axis[j] * set->stride, *highs = lows;
    double *low = low_corner(tree, j) + tree->first[level];
    double *high = high_corner(tree, j) + tree->first[level];
    if (level > 0) {
      lows = low_corner(tree, j) + tree->first[level - 1];
      highs = high_corner(tree, j) + tree->first[level - 1];
    }
#pragma omp parallel for if (tree->count[level] > 1024)
    for (uint64_t node = 0; node < tree->count[level]; ++node) {
      uint64_t first = node * KCP_TREE_FANOUT;
      bound(lows + first, highs + first, minimum(KCP_TREE_FANOUT, children - first), low + node,
            high + node);
    }
  }
}

void kcp_box_tree_build(struct kcp_box_tree *tree, const struct kcp_cells *axes,
                        const struct kcp_point_set *set) {
  uint64_t nodes = 0, level_nodes = set->count;
  tree->level_count = 0;
  if (set->count == 0) return;
  do {
    level_nodes = (level_nodes + KCP_TREE_FANOUT - 1) / KCP_TREE_FANOUT;
    tree->first[tree->level_count] = nodes;
    tree->count[tree->level_count++] = level_nodes;
    nodes += level_nodes;
  } while (level_nodes > 1);
  for (uint32_t level = 0; level < tree->level_count; ++level) build_level(tree, axes, set, level);
}

/* ---- the join ---- */

/* One thread's pairs on their way to the room that all share. */
struct emitter {
  struct kcp_pair_room *room;
  uint32_t count;
  struct kcp_record_pair pairs[LOCAL_PAIRS];
};

static void flush(struct emitter *emitter) {
  struct kcp_pair_room *room = emitter->room;
  if (emitter->count == 0) return;
  uint64_t place = __atomic_fetch_add(&room->count, emitter->count, __ATOMIC_RELAXED);
  if (place < room->capacity)
    memcpy(room->pairs + place, emitter->pairs,
           minimum(emitter->count, room->capacity - place) * sizeof *emitter->pairs);
  emitter->count = 0;
}

static bool is_out_of_room(const struct kcp_pair_room *room) {
  return __atomic_load_n(&room->count, __ATOMIC_RELAXED) > room->capacity;
}

static bool is_within(enum kcp_join_kind kind, double rank, double limit) {
  if (kind == KCP_JOIN_WITHIN) return rank <= limit;
  return kind == KCP_JOIN_BEFORE ? rank < limit : rank == limit;
}

static bool counts(const struct kcp_join *join, uint64_t h, uint64_t q) {
  if (!join->self) return true;
  uint64_t held_record = kcp_set_record(join->held, h);
  uint64_t streamed_record = kcp_set_record(join->streamed, q);
  if (join->kind != KCP_JOIN_TIES) return held_record < streamed_record;
  return kcp_self_pair_counts(kcp_set_id(join->streamed, q), streamed_record,
                              kcp_set_id(join->held, h), held_record);
}

static void emit(const struct kcp_join *join, uint64_t h, uint64_t q, double rank,
                 struct emitter *emitter) {
  if (!is_within(join->kind, rank, join->rank) || !counts(join, h, q)) return;
  if (emitter->count == LOCAL_PAIRS) flush(emitter);
  emitter->pairs[emitter->count++] = (struct kcp_record_pair){rank, kcp_set_record(join->held, h),
                                                              kcp_set_record(join->streamed, q)};
}

/* The streamed points of a group against a leaf. */
static uint64_t join_leaf(const struct kcp_join *join, uint64_t leaf, uint64_t group,
                          const double *points, struct emitter *emitter) {
  uint64_t first = leaf * KCP_TREE_FANOUT, begin = group * KCP_TREE_FANOUT;
  uint32_t count = (uint32_t)minimum(KCP_TREE_FANOUT, join->held->count - first);
  uint32_t queries = (uint32_t)minimum(KCP_TREE_FANOUT, join->streamed->count - begin);
  double ranks[KCP_TREE_FANOUT];
  for (uint32_t q = 0; q < queries; ++q) {
    uint32_t within =
        kcp_rank_block(join->metric, join->dimensions, join->held->columns + first,
                       join->held->stride, count, points + q * join->dimensions, join->rank, ranks);
    for (uint32_t i = 0; within > 0 && i < count; ++i)
      emit(join, first + i, begin + q, ranks[i], emitter);
  }
  return (uint64_t)count * queries;
}

#define DEFINE_BOUND_RANKS(NAME, KIND)                                                          \
  KCP_WIDEST_VECTORS static void NAME(const double *lows, const double *highs, uint32_t count,  \
                                      double low, double high, uint32_t power, double *ranks) { \
    for (uint32_t i = 0; i < count; ++i) {                                                      \
      double left = lows[i] - high, right = low - highs[i];                                     \
      double gap = left > right ? left : right;                                                 \
      gap = gap > 0 ? gap : 0;                                                                  \
      ranks[i] = kcp_metric_combine(KIND, ranks[i], kcp_metric_term(KIND, power, gap));         \
    }                                                                                           \
  }
DEFINE_BOUND_RANKS(bound_ranks_l1, KCP_L1)
DEFINE_BOUND_RANKS(bound_ranks_l2, KCP_L2)
DEFINE_BOUND_RANKS(bound_ranks_linf, KCP_LINF)
DEFINE_BOUND_RANKS(bound_ranks_lp, KCP_LP)

/* Lower bounds of the ranks between any point of the box and any of the nodes first .. + count,
 * rounding included, since the axes ascend (axes.h). */
static void bound_ranks(const struct kcp_join *join, const struct box *box, uint64_t first,
                        uint32_t count, double *ranks) {
  static void (*const add[])(const double *, const double *, uint32_t, double, double, uint32_t,
                             double *) = {[KCP_L1] = bound_ranks_l1,
                                          [KCP_L2] = bound_ranks_l2,
                                          [KCP_LINF] = bound_ranks_linf,
                                          [KCP_LP] = bound_ranks_lp};
  for (uint32_t i = 0; i < count; ++i) ranks[i] = 0;
  for (uint32_t j = 0; j < join->axes->axes; ++j)
    add[join->metric.kind](low_corner(join->tree, j) + first, high_corner(join->tree, j) + first,
                           count, box->low[j], box->high[j], join->metric.power, ranks);
}

static struct box box_of_group(const struct kcp_join *join, uint64_t group) {
  struct box box;
  uint64_t begin = group * KCP_TREE_FANOUT;
  uint64_t count = minimum(KCP_TREE_FANOUT, join->streamed->count - begin);
  for (uint32_t j = 0; j < join->axes->axes; ++j) {
    const double *column =
        join->streamed->columns + join->axes->axis[j] * join->streamed->stride + begin;
    bound(column, column, count, &box.low[j], &box.high[j]);
  }
  return box;
}

/* The streamed points of a group, one after the other. */
static void gather_group(const struct kcp_join *join, uint64_t group, double *points) {
  uint64_t begin = group * KCP_TREE_FANOUT;
  uint64_t count = minimum(KCP_TREE_FANOUT, join->streamed->count - begin);
  for (uint32_t j = 0; j < join->dimensions; ++j)
    for (uint64_t q = 0; q < count; ++q)
      points[q * join->dimensions + j] =
          join->streamed->columns[j * join->streamed->stride + begin + q];
}

/* Whether pairs of ranks from `least` on can be of the kind. */
static bool may_hold(const struct kcp_join *join, double least) {
  return join->kind == KCP_JOIN_BEFORE ? least < join->rank : least <= join->rank;
}

static uint64_t join_group(const struct kcp_join *join, uint64_t group, const double *points,
                           struct emitter *emitter) {
  struct {
    uint32_t level;
    uint64_t node;
  } stack[STACK_ENTRIES];
  struct box box = box_of_group(join, group);
  const struct kcp_box_tree *tree = join->tree;
  uint64_t evaluated = 0;
  uint32_t depth = 0;
  stack[depth].level = tree->level_count - 1;
  stack[depth++].node = 0;
  while (depth > 0) {
    uint32_t level = stack[--depth].level;
    uint64_t node = stack[depth].node;
    if (level == 0) {
      if (is_out_of_room(emitter->room) || kcp_interrupted()) return evaluated;
      evaluated += join_leaf(join, node, group, points, emitter);
      continue;
    }
    uint64_t first = node * KCP_TREE_FANOUT;
    uint32_t children = (uint32_t)minimum(KCP_TREE_FANOUT, tree->count[level - 1] - first);
    double ranks[KCP_TREE_FANOUT];
    bound_ranks(join, &box, tree->first[level - 1] + first, children, ranks);
    for (uint32_t i = 0; i < children; ++i) {
      if (!may_hold(join, ranks[i])) continue;
      stack[depth].level = level - 1;
      stack[depth++].node = first + i;
    }
  }
  return evaluated;
}

enum kcp_status kcp_box_tree_join(const struct kcp_join *join, struct kcp_pair_room *room,
                                  uint64_t *evaluated, struct kcp_error *error) {
  uint64_t groups = (join->streamed->count + KCP_TREE_FANOUT - 1) / KCP_TREE_FANOUT;
  uint64_t group_values = KCP_TREE_FANOUT * (uint64_t)join->dimensions, sum = 0;
  if (join->held->count == 0 || groups == 0) return KCP_OK;
  uint64_t bytes = (uint64_t)omp_get_max_threads() * group_values * sizeof(double);
  double *scratch = malloc(bytes);
  if (scratch == NULL) return kcp_out_of_memory(error, "joining", bytes);
#pragma omp parallel reduction(+ : sum)
  {
    struct emitter emitter = {.room = room};
    double *points = scratch + (uint64_t)omp_get_thread_num() * group_values;
#pragma omp for schedule(dynamic, 4)
    for (uint64_t group = 0; group < groups; ++group) {
      if (is_out_of_room(room) || kcp_interrupted()) continue;
      gather_group(join, group, points);
      sum += join_group(join, group, points, &emitter);
    }
    flush(&emitter);
  }
  free(scratch);
  *evaluated += sum;
  return kcp_interrupted() ? kcp_fail(error, KCP_INTERRUPTED, "interrupted") : KCP_OK;
}

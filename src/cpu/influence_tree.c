#include "influence_tree.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "cell_shares.h"
#include "kcp/interrupt.h"
#include "pair_table.h"

#define MATRIX_PAIRS 4096   /* pairs whose sums a thread keeps in one matrix */
#define ITEMS_PER_THREAD 64 /* cells to deal to threads */
#define LEAST_DEALT_CELLS 64
#define NO_SLOT UINT32_MAX

/* What a set has at a cell. */
struct side {
  struct kcp_competitors near; /* what can decide the undecided, these included */
  uint64_t closer;             /* sites surely closer than every undecided one */
  uint32_t undecided_count, certain_count;
  uint32_t *undecided; /* places in `near` */
  uint32_t *certain;   /* selected groups whose regions hold the cell */
};

struct node {
  struct kcp_cell cell;
  uint64_t weight;
  uint32_t depth; /* splits below the grid */
  struct side sides[2];
};

/* Sums of the pairs of a few groups. */
struct matrix {
  bool in_use;
  uint32_t counts[2];
  uint32_t *groups[2];             /* by slot */
  struct kcp_pair_weight *weights; /* MATRIX_PAIRS */
  uint8_t *wanted;                 /* a flag a pair, with wanted pairs */
};

struct worker {
  const struct kcp_influence_descent *descent;
  struct kcp_pair_table table;
  struct kcp_arena arena;
  struct matrix matrix;
  uint32_t *slot_of[2]; /* by group; NO_SLOT outside the matrix */
  double *low, *high;
  uint8_t *shares;
  uint64_t evaluations;
  bool short_of_memory;
  struct kcp_pair_weight nowhere; /* for what memory is short of */
};

static bool is_leaf(const struct worker *worker, const struct node *node) {
  return node->depth == worker->descent->depth && node->cell.right - node->cell.left <= 1 &&
         node->cell.top - node->cell.bottom <= 1;
}

/* --- sums ------------------------------------------------------------------------------------- */

static struct kcp_pair_weight *weight_at(struct worker *worker, uint32_t p, uint32_t q) {
  struct matrix *matrix = &worker->matrix;
  if (matrix->in_use)
    return &matrix->weights[(uint64_t)worker->slot_of[0][p] * matrix->counts[1] +
                            worker->slot_of[1][q]];
  struct kcp_pair_weight *weight = kcp_pair_table_at(&worker->table, p, q);
  if (weight == NULL) worker->short_of_memory = true;
  return weight != NULL ? weight : &worker->nowhere;
}

static void add_sure(struct worker *worker, const uint32_t *p, uint32_t p_count, const uint32_t *q,
                     uint32_t q_count, uint64_t weight) {
  for (uint32_t i = 0; i < p_count; ++i)
    for (uint32_t j = 0; j < q_count; ++j) weight_at(worker, p[i], q[j])->sure += weight;
}

static void add_matrix_to_table(struct worker *worker) {
  struct matrix *matrix = &worker->matrix;
  const bool all = worker->descent->wanted == NULL;
  for (uint32_t i = 0; i < matrix->counts[0]; ++i)
    for (uint32_t j = 0; j < matrix->counts[1]; ++j) {
      const uint64_t place = (uint64_t)i * matrix->counts[1] + j;
      const struct kcp_pair_weight *weight = &matrix->weights[place];
      if (weight->sure + weight->unsure == 0 || !(all || matrix->wanted[place])) continue;
      struct kcp_pair_weight *sum =
          kcp_pair_table_at(&worker->table, matrix->groups[0][i], matrix->groups[1][j]);
      if (sum == NULL) {
        worker->short_of_memory = true;
        return;
      }
      sum->sure += weight->sure;
      sum->unsure += weight->unsure;
      sum->centre += weight->centre;
    }
}

/* The first wanted pair of p >= group. */
static uint64_t first_wanted(const struct kcp_influence_sums *wanted, uint32_t group) {
  uint64_t low = 0, high = wanted->count;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (wanted->pairs[middle].p < group)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void mark_wanted(struct worker *worker) {
  const struct kcp_influence_sums *wanted = worker->descent->wanted;
  struct matrix *matrix = &worker->matrix;
  memset(matrix->wanted, 0, MATRIX_PAIRS);
  for (uint32_t i = 0; i < matrix->counts[0]; ++i) {
    const uint32_t group = matrix->groups[0][i];
    for (uint64_t w = first_wanted(wanted, group); w < wanted->count && wanted->pairs[w].p == group;
         ++w) {
      const uint32_t slot = worker->slot_of[1][wanted->pairs[w].q];
      if (slot != NO_SLOT) matrix->wanted[(uint64_t)i * matrix->counts[1] + slot] = 1;
    }
  }
}

/* Keeps the sums of the node's pairs in the matrix from here down, when they are few enough.
 * Returns whether it does. */
static bool open_matrix(struct worker *worker, const struct node *node) {
  struct matrix *matrix = &worker->matrix;
  uint64_t pairs = 1;
  for (int s = 0; s < 2; ++s)
    pairs *= (uint64_t)node->sides[s].certain_count + node->sides[s].undecided_count;
  if (matrix->in_use || pairs > MATRIX_PAIRS) return false;
  for (int s = 0; s < 2; ++s) {
    const struct side *side = &node->sides[s];
    uint32_t count = 0;
    for (uint32_t i = 0; i < side->certain_count; ++i)
      matrix->groups[s][count++] = side->certain[i];
    for (uint32_t i = 0; i < side->undecided_count; ++i)
      matrix->groups[s][count++] = side->near.group[side->undecided[i]];
    for (uint32_t slot = 0; slot < count; ++slot)
      worker->slot_of[s][matrix->groups[s][slot]] = slot;
    matrix->counts[s] = count;
  }
  matrix->in_use = true;
  memset(matrix->weights, 0, pairs * sizeof *matrix->weights);
  if (worker->descent->wanted != NULL) mark_wanted(worker);
  return true;
}

static void close_matrix(struct worker *worker) {
  struct matrix *matrix = &worker->matrix;
  add_matrix_to_table(worker);
  for (int s = 0; s < 2; ++s)
    for (uint32_t slot = 0; slot < matrix->counts[s]; ++slot)
      worker->slot_of[s][matrix->groups[s][slot]] = NO_SLOT;
  matrix->in_use = false;
}

/* --- shares ----------------------------------------------------------------------------------- */

static void *take(struct worker *worker, struct kcp_arena *arena, uint64_t count, size_t size) {
  void *taken = kcp_arena_take(arena, count, size);
  if (taken == NULL) worker->short_of_memory = true;
  return taken;
}

static bool take_competitors(struct worker *worker, struct kcp_arena *arena, uint32_t capacity,
                             struct kcp_competitors *near) {
  near->count = 0;
  near->x = take(worker, arena, capacity, sizeof *near->x);
  near->y = take(worker, arena, capacity, sizeof *near->y);
  near->squared_weight = take(worker, arena, capacity, sizeof *near->squared_weight);
  near->inverse_square = take(worker, arena, capacity, sizeof *near->inverse_square);
  near->multiplicity = take(worker, arena, capacity, sizeof *near->multiplicity);
  near->group = take(worker, arena, capacity, sizeof *near->group);
  return !worker->short_of_memory;
}

static void copy_competitor(const struct kcp_competitors *from, uint32_t i,
                            struct kcp_competitors *to) {
  const uint32_t place = to->count++;
  to->x[place] = from->x[i];
  to->y[place] = from->y[i];
  to->squared_weight[place] = from->squared_weight[i];
  to->inverse_square[place] = from->inverse_square[i];
  to->multiplicity[place] = from->multiplicity[i];
  to->group[place] = from->group[i];
}

/* Keeps of the parent's competitors those that can decide the child's undecided ones, whose places
 * in the parent are listed in child->undecided. */
static bool keep_competitors(struct worker *worker, struct kcp_arena *arena,
                             const struct side *parent, double limit, struct side *child) {
  const double *low = worker->low, *high = worker->high;
  double least_low = INFINITY;
  uint32_t next = 0, kept = 0;
  child->near.count = 0;
  child->closer = parent->closer;
  if (child->undecided_count == 0) return true;
  for (uint32_t i = 0; i < child->undecided_count; ++i)
    least_low = fmin(least_low, low[child->undecided[i]]);
  for (uint32_t i = 0; i < parent->near.count; ++i)
    kept += low[i] <= limit && !(high[i] < least_low);
  if (!take_competitors(worker, arena, kept, &child->near)) return false;
  for (uint32_t i = 0; i < parent->near.count; ++i) {
    if (high[i] < least_low) {
      child->closer += parent->near.multiplicity[i];
    } else if (low[i] <= limit) {
      if (next < child->undecided_count && child->undecided[next] == i)
        child->undecided[next++] = child->near.count;
      copy_competitor(&parent->near, i, &child->near);
    }
  }
  return true;
}

/* The bounds of the parent's competitors over a cell within it, into worker->low and high. */
static void find_bounds(struct worker *worker, const struct side *parent, struct kcp_cell place) {
  kcp_competitor_bounds(&parent->near, place, worker->low, worker->high);
  worker->evaluations += parent->near.count;
}

/* From them the shares of its undecided sites, into worker->shares. */
static void find_shares(struct worker *worker, uint64_t k, const struct side *parent,
                        const double *limit) {
  kcp_shares_of(&parent->near, worker->low, worker->high, parent->undecided,
                parent->undecided_count, parent->closer, k, limit, worker->shares);
}

/* What a side has at a cell within its parent. The certain ones of the child are those of the
 * parent, then new ones. */
static bool narrow_side(struct worker *worker, struct kcp_arena *arena, uint64_t k,
                        const struct side *parent, struct kcp_cell place, struct side *child) {
  *child = (struct side){.certain = parent->certain, .certain_count = parent->certain_count};
  if (parent->undecided_count == 0) return true;
  find_bounds(worker, parent, place);
  const double limit = kcp_outside_limit(&parent->near, worker->high, parent->closer, k);
  find_shares(worker, k, parent, &limit);
  uint32_t inside = 0;
  for (uint32_t i = 0; i < parent->undecided_count; ++i)
    inside += worker->shares[i] == KCP_CELL_INSIDE;
  child->undecided = take(worker, arena, parent->undecided_count, sizeof *child->undecided);
  if (inside > 0) {
    child->certain = take(worker, arena, parent->certain_count + inside, sizeof *child->certain);
    if (child->certain != NULL && parent->certain_count > 0)
      memcpy(child->certain, parent->certain, parent->certain_count * sizeof *child->certain);
  }
  if (worker->short_of_memory) return false;
  for (uint32_t i = 0; i < parent->undecided_count; ++i) {
    const uint32_t site = parent->undecided[i];
    if (worker->shares[i] == KCP_CELL_INSIDE)
      child->certain[child->certain_count++] = parent->near.group[site];
    else if (worker->shares[i] == KCP_CELL_UNDECIDED)
      child->undecided[child->undecided_count++] = site;
  }
  return keep_competitors(worker, arena, parent, limit, child);
}

/* Whether an undecided pair of the node is wanted. Outside a matrix all are taken to be. */
static bool has_wanted_pair(const struct worker *worker, const struct node *node) {
  const struct matrix *matrix = &worker->matrix;
  const struct side *p = &node->sides[0], *q = &node->sides[1];
  if (worker->descent->wanted == NULL || !matrix->in_use) return true;
  for (uint32_t i = 0; i < p->certain_count + p->undecided_count; ++i) {
    const bool certain = i < p->certain_count;
    const uint32_t group =
        certain ? p->certain[i] : p->near.group[p->undecided[i - p->certain_count]];
    const uint8_t *row = matrix->wanted + (uint64_t)worker->slot_of[0][group] * matrix->counts[1];
    for (uint32_t j = certain ? q->certain_count : 0; j < q->certain_count + q->undecided_count;
         ++j) {
      const uint32_t other =
          j < q->certain_count ? q->certain[j] : q->near.group[q->undecided[j - q->certain_count]];
      if (row[worker->slot_of[1][other]]) return true;
    }
  }
  return false;
}

/* The node of a cell within the parent: adds the pairs that it settles. False when nothing is left
 * to decide in it, or memory is short. */
static bool narrow(struct worker *worker, struct kcp_arena *arena, const struct node *parent,
                   struct node *child) {
  const struct kcp_influence_plan *plan = worker->descent->plan;
  const struct kcp_cell place = kcp_cell_place(&plan->grid, child->cell);
  if (child->weight == 0) return false;
  for (int s = 0; s < 2; ++s) {
    if (!narrow_side(worker, arena, plan->k[s], &parent->sides[s], place, &child->sides[s]))
      return false;
    if (child->sides[s].certain_count + child->sides[s].undecided_count == 0) return false;
  }
  const struct side *p = &child->sides[0], *q = &child->sides[1];
  const uint32_t old_p = parent->sides[0].certain_count, old_q = parent->sides[1].certain_count;
  add_sure(worker, p->certain + old_p, p->certain_count - old_p, q->certain, q->certain_count,
           child->weight);
  add_sure(worker, p->certain, old_p, q->certain + old_q, q->certain_count - old_q, child->weight);
  return p->undecided_count + q->undecided_count > 0 && has_wanted_pair(worker, child);
}

/* --- leaves ----------------------------------------------------------------------------------- */

/* What a side has at a cell that is not split: selected sites that are not outside, the certain
 * ones first, and whether the centre lies in their regions. */
struct leaf_side {
  uint32_t count, old_count, certain_count; /* certain before the leaf, and in all */
  uint32_t *groups;
  uint8_t *centre;
};

static bool settle_side(struct worker *worker, uint64_t k, const struct side *parent,
                        struct kcp_cell place, double x, double y, struct leaf_side *leaf) {
  const uint32_t room = parent->certain_count + parent->undecided_count;
  uint32_t left = 0;
  uint32_t *undecided = take(worker, &worker->arena, parent->undecided_count, sizeof *leaf->groups);
  leaf->groups = take(worker, &worker->arena, room, sizeof *leaf->groups);
  leaf->centre = take(worker, &worker->arena, room, sizeof *leaf->centre);
  if (worker->short_of_memory) return false;
  leaf->old_count = leaf->certain_count = parent->certain_count;
  for (uint32_t i = 0; i < parent->certain_count; ++i) leaf->groups[i] = parent->certain[i];
  if (parent->undecided_count > 0) {
    find_bounds(worker, parent, place);
    find_shares(worker, k, parent, NULL);
  }
  for (uint32_t i = 0; i < parent->undecided_count; ++i) {
    const uint32_t site = parent->undecided[i];
    if (worker->shares[i] == KCP_CELL_INSIDE)
      leaf->groups[leaf->certain_count++] = parent->near.group[site];
    else if (worker->shares[i] == KCP_CELL_UNDECIDED)
      undecided[left++] = site;
  }
  leaf->count = leaf->certain_count + left;
  memset(leaf->centre, 1, leaf->certain_count);
  if (left == 0) return true;
  for (uint32_t i = 0; i < left; ++i)
    leaf->groups[leaf->certain_count + i] = parent->near.group[undecided[i]];
  kcp_competitor_ranks(&parent->near, x, y, worker->low);
  kcp_insides_of(&parent->near, worker->low, undecided, left, parent->closer, k,
                 leaf->centre + leaf->certain_count);
  worker->evaluations += parent->near.count;
  return true;
}

static void settle(struct worker *worker, const struct node *parent, const struct node *leaf) {
  const struct kcp_influence_plan *plan = worker->descent->plan;
  const struct kcp_cell place = kcp_cell_place(&plan->grid, leaf->cell);
  const double x = kcp_cell_centre_x(&plan->grid, leaf->cell);
  const double y = kcp_cell_centre_y(&plan->grid, leaf->cell);
  struct leaf_side p, q;
  if (leaf->weight == 0) return;
  if (!settle_side(worker, plan->k[0], &parent->sides[0], place, x, y, &p) || p.count == 0) return;
  if (!settle_side(worker, plan->k[1], &parent->sides[1], place, x, y, &q)) return;
  for (uint32_t i = 0; i < p.count; ++i)
    for (uint32_t j = i < p.old_count ? q.old_count : 0; j < q.count; ++j) {
      struct kcp_pair_weight *weight = weight_at(worker, p.groups[i], q.groups[j]);
      if (i < p.certain_count && j < q.certain_count) {
        weight->sure += leaf->weight;
      } else {
        weight->unsure += leaf->weight;
        if (p.centre[i] && q.centre[j]) weight->centre += leaf->weight;
      }
    }
}

/* --- the walk --------------------------------------------------------------------------------- */

static uint64_t weight_of_cells(const struct kcp_influence_plan *plan, struct kcp_cell cell) {
  return kcp_cell_weights_sum(plan->weights, (uint32_t)cell.bottom, (uint32_t)cell.top,
                              (uint32_t)cell.left, (uint32_t)cell.right);
}

/* The parts of a node: cells of the grid are halved between grid lines, then quartered. */
static uint32_t split(const struct kcp_influence_plan *plan, const struct node *node,
                      struct node parts[4]) {
  const struct kcp_cell *cell = &node->cell;
  double x = 0.5 * (cell->left + cell->right), y = 0.5 * (cell->bottom + cell->top);
  const bool many = cell->right - cell->left > 1 || cell->top - cell->bottom > 1;
  uint64_t quarters[4];
  uint32_t count = 0;
  if (many) {
    x = floor(x);
    y = floor(y);
  } else {
    kcp_cell_weights_split(plan->weights, *cell, node->weight, quarters);
  }
  for (uint32_t i = 0; i < 4; ++i) {
    const struct kcp_cell part = {i % 2 == 0 ? cell->left : x, i % 2 == 0 ? x : cell->right,
                                  i / 2 == 0 ? cell->bottom : y, i / 2 == 0 ? y : cell->top};
    if (part.left == part.right || part.bottom == part.top) continue;
    parts[count].cell = part;
    parts[count].weight = many ? weight_of_cells(plan, part) : quarters[i];
    parts[count++].depth = node->depth + (many ? 0 : 1);
  }
  return count;
}

static void descend(struct worker *worker, const struct node *node) {
  struct node parts[4];
  const uint32_t count = split(worker->descent->plan, node, parts);
  const bool opened = open_matrix(worker, node);
  const bool stopped = opened && kcp_interrupted();
  for (uint32_t i = 0; i < count && !worker->short_of_memory && !stopped; ++i) {
    const struct kcp_arena_mark mark = kcp_arena_mark(&worker->arena);
    if (is_leaf(worker, &parts[i]))
      settle(worker, node, &parts[i]);
    else if (narrow(worker, &worker->arena, node, &parts[i]))
      descend(worker, &parts[i]);
    kcp_arena_return(&worker->arena, mark);
  }
  if (opened) close_matrix(worker);
}

/* --- threads ---------------------------------------------------------------------------------- */

/* A node to be dealt to a thread, with the memory of its lists. */
struct item {
  struct node node;
  struct kcp_arena arena;
  bool open; /* something is left to decide */
};

static void free_worker(struct worker *worker) {
  kcp_pair_table_free(&worker->table);
  kcp_arena_free(&worker->arena);
  for (int s = 0; s < 2; ++s) {
    free(worker->slot_of[s]);
    free(worker->matrix.groups[s]);
  }
  free(worker->matrix.weights);
  free(worker->matrix.wanted);
  free(worker->low);
  free(worker->high);
  free(worker->shares);
}

static bool make_worker(const struct kcp_influence_descent *descent, struct worker *worker) {
  const struct kcp_influence_plan *plan = descent->plan;
  uint64_t most = 1;
  memset(worker, 0, sizeof *worker);
  worker->descent = descent;
  for (int s = 0; s < 2; ++s) {
    const uint64_t count = plan->sets[s]->count;
    if (count > most) most = count;
    worker->slot_of[s] = malloc(count * sizeof *worker->slot_of[s]);
    worker->matrix.groups[s] = malloc(MATRIX_PAIRS * sizeof *worker->matrix.groups[s]);
    if (worker->slot_of[s] == NULL || worker->matrix.groups[s] == NULL) return false;
    memset(worker->slot_of[s], 0xff, count * sizeof *worker->slot_of[s]);
  }
  worker->matrix.weights = malloc(MATRIX_PAIRS * sizeof *worker->matrix.weights);
  worker->matrix.wanted = malloc(MATRIX_PAIRS);
  worker->low = malloc(most * sizeof *worker->low);
  worker->high = malloc(most * sizeof *worker->high);
  worker->shares = malloc(most);
  return worker->matrix.weights != NULL && worker->matrix.wanted != NULL && worker->low != NULL &&
         worker->high != NULL && worker->shares != NULL;
}

/* The groups that the descent asks about: the selected ones, or those of wanted pairs. */
static bool list_asked(const struct kcp_influence_descent *descent, int s, struct side *side,
                       struct kcp_arena *arena) {
  const struct kcp_site_groups *set = descent->plan->sets[s];
  side->undecided = kcp_arena_take(arena, set->count, sizeof *side->undecided);
  uint8_t *asked = kcp_arena_take(arena, set->count, 1);
  if (side->undecided == NULL || asked == NULL) return false;
  if (descent->wanted == NULL) {
    memcpy(asked, set->selected, set->count);
  } else {
    memset(asked, 0, set->count);
    for (uint64_t i = 0; i < descent->wanted->count; ++i)
      asked[s == 0 ? descent->wanted->pairs[i].p : descent->wanted->pairs[i].q] = 1;
  }
  side->undecided_count = 0;
  for (uint32_t group = 0; group < set->count; ++group)
    if (asked[group]) side->undecided[side->undecided_count++] = group;
  return true;
}

/* Above the domain: every asked site undecided, every site a competitor. */
static bool make_root(const struct kcp_influence_descent *descent, struct item *root) {
  const struct kcp_influence_plan *plan = descent->plan;
  *root = (struct item){.open = true};
  root->node.cell = (struct kcp_cell){0, plan->grid.columns, 0, plan->grid.rows};
  root->node.weight = plan->weights->total;
  for (int s = 0; s < 2; ++s) {
    const struct kcp_site_groups *set = plan->sets[s];
    struct side *side = &root->node.sides[s];
    side->near = (struct kcp_competitors){.count = (uint32_t)set->count,
                                          .x = set->x,
                                          .y = set->y,
                                          .squared_weight = set->squared_weight,
                                          .inverse_square = set->inverse_square,
                                          .multiplicity = set->multiplicity};
    side->near.group = kcp_arena_take(&root->arena, set->count, sizeof *side->near.group);
    if (side->near.group == NULL || !list_asked(descent, s, side, &root->arena)) return false;
    for (uint32_t group = 0; group < set->count; ++group) side->near.group[group] = group;
  }
  return true;
}

/* Large enough to be split before it is dealt. */
static bool is_large(const struct node *node) {
  return (node->cell.right - node->cell.left) * (node->cell.top - node->cell.bottom) >
         LEAST_DEALT_CELLS;
}

/* Copies what the item shares with its parent, whose memory ends before it. */
static void own_lists(struct worker *worker, const struct node *parent, struct item *item) {
  for (int s = 0; s < 2; ++s) {
    struct side *side = &item->node.sides[s];
    if (side->certain_count == 0 || side->certain != parent->sides[s].certain) continue;
    uint32_t *own = take(worker, &item->arena, side->certain_count, sizeof *own);
    if (own != NULL) memcpy(own, side->certain, side->certain_count * sizeof *own);
    side->certain = own;
  }
}

/* The items of the next level; `items` are used up. NULL when memory is short. */
static struct item *split_items(struct worker *workers, struct item *items, uint64_t *count) {
  struct item *next = calloc(4 * *count, sizeof *next);
  uint64_t kept = 0;
#pragma omp parallel for schedule(dynamic)
  for (uint64_t i = 0; i < *count; ++i) {
    struct worker *worker = &workers[omp_get_thread_num()];
    struct node parts[4];
    if (next == NULL) continue;
    const uint32_t parts_count = split(worker->descent->plan, &items[i].node, parts);
    for (uint32_t part = 0; part < parts_count; ++part) {
      struct item *item = &next[4 * i + part];
      item->node = parts[part];
      item->open = narrow(worker, &item->arena, &items[i].node, &item->node);
      if (item->open) own_lists(worker, &items[i].node, item);
    }
  }
  for (uint64_t i = 0; i < *count; ++i) kcp_arena_free(&items[i].arena);
  free(items);
  for (uint64_t i = 0; next != NULL && i < 4 * *count; ++i) {
    if (next[i].open)
      next[kept++] = next[i];
    else
      kcp_arena_free(&next[i].arena);
  }
  *count = next != NULL ? kept : 0;
  return next;
}

static bool is_short_of_memory(const struct worker *workers, int count) {
  for (int i = 0; i < count; ++i)
    if (workers[i].short_of_memory) return true;
  return false;
}

static void walk_items(struct worker *workers, const struct item *items, uint64_t count,
                       struct kcp_progress *progress) {
  uint64_t done = 0;
#pragma omp parallel for schedule(dynamic)
  for (uint64_t i = 0; i < count; ++i) {
    struct worker *worker = &workers[omp_get_thread_num()];
    if (kcp_interrupted()) continue;
    if (is_leaf(worker, &items[i].node)) /* a grid of one cell */
      settle(worker, &items[i].node, &items[i].node);
    else
      descend(worker, &items[i].node);
#pragma omp critical(kcp_influence_progress)
    {
      ++done;
      kcp_progress_update(progress, "search", done, count, done);
    }
  }
}

enum kcp_status kcp_influence_descend(const struct kcp_influence_descent *descent,
                                      struct kcp_influence_sums *sums, uint64_t *evaluations,
                                      struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  const int threads = omp_get_max_threads();
  struct worker *workers = calloc((size_t)threads, sizeof *workers);
  const struct kcp_pair_table **tables = calloc((size_t)threads, sizeof *tables);
  struct item *items = calloc(1, sizeof *items);
  uint64_t count = 1;
  bool ready = workers != NULL && tables != NULL && items != NULL;
  for (int i = 0; i < threads && ready; ++i) {
    ready = make_worker(descent, &workers[i]);
    tables[i] = &workers[i].table;
  }
  if (ready) ready = make_root(descent, &items[0]);
  if (!ready) {
    status = kcp_out_of_memory(error, "the search", 0);
    goto cleanup;
  }
  while (count > 0 && count < (uint64_t)threads * ITEMS_PER_THREAD && is_large(&items[0].node) &&
         !kcp_interrupted())
    items = split_items(workers, items, &count);
  if (items != NULL && !is_short_of_memory(workers, threads))
    walk_items(workers, items, count, descent->progress);
  if (kcp_interrupted())
    status = kcp_fail(error, KCP_INTERRUPTED, "stopped");
  else if (items == NULL || is_short_of_memory(workers, threads))
    status = kcp_out_of_memory(error, "the search", 0);
  else
    status = kcp_pair_tables_collect(tables, (uint32_t)threads, sums, error);
  for (int i = 0; i < threads; ++i) *evaluations += workers[i].evaluations;

cleanup:
  for (uint64_t i = 0; items != NULL && i < count; ++i) kcp_arena_free(&items[i].arena);
  free(items);
  for (int i = 0; i < threads && workers != NULL; ++i) free_worker(&workers[i]);
  free(workers);
  free(tables);
  return status;
}

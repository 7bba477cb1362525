#include "kcp/influence.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The place of each group among the selected ones. */
static uint32_t *number_selected(const struct kcp_site_groups *set) {
  uint32_t *numbers = malloc((set->count + 1) * sizeof *numbers);
  uint32_t next = 0;
  for (uint64_t group = 0; group < set->count && numbers != NULL; ++group) {
    numbers[group] = next;
    next += set->selected[group];
  }
  return numbers;
}

enum kcp_status kcp_influence_set_areas(const struct kcp_influence_plan *plan,
                                        const uint64_t *areas, struct kcp_influence_sums *sums,
                                        struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  uint32_t *numbers[2] = {number_selected(plan->sets[0]), number_selected(plan->sets[1])};
  if (numbers[0] == NULL || numbers[1] == NULL)
    status =
        kcp_out_of_memory(error, "the pairs", 4 * (plan->sets[0]->count + plan->sets[1]->count));
  for (uint64_t i = 0; i < sums->count && status == KCP_OK; ++i) {
    struct kcp_influence_sum *pair = &sums->pairs[i];
    pair->area = areas[numbers[0][pair->p] * plan->sets[1]->selected_count + numbers[1][pair->q]];
  }
  free(numbers[0]);
  free(numbers[1]);
  return status;
}

static bool leaves_open(const struct kcp_cell_weights *weights,
                        const struct kcp_influence_sum *pair, double threshold) {
  return kcp_cell_weights_real(weights, pair->lower) < threshold &&
         threshold <= kcp_cell_weights_real(weights, pair->upper);
}

static double width_of(const struct kcp_cell_weights *weights,
                       const struct kcp_influence_sum *pair) {
  return kcp_cell_weights_real(weights, pair->upper - pair->lower);
}

/* The pairs of one p. */
struct row {
  const struct kcp_influence_sum *pairs;
  uint64_t count;
};

static struct row row_at(const struct kcp_influence_sums *sums, uint64_t first) {
  struct row row = {&sums->pairs[first], 1};
  while (first + row.count < sums->count && sums->pairs[first + row.count].p == row.pairs->p)
    ++row.count;
  return row;
}

/* Whether some area of the row is below the threshold for certain. A pair that is not listed has
 * no area. */
static bool has_failed(const struct kcp_influence_plan *plan, struct row row, double threshold) {
  if (row.count < plan->sets[1]->selected_count) return true;
  for (uint64_t i = 0; i < row.count; ++i)
    if (kcp_cell_weights_real(plan->weights, row.pairs[i].upper) < threshold) return true;
  return false;
}

/* Sets a flag for each pair that leaves a threshold open, and returns how many do. */
static uint64_t find_open(const struct kcp_influence_plan *plan,
                          const struct kcp_influence_goal *goal,
                          const struct kcp_influence_sums *sums, bool *open) {
  uint64_t count = 0;
  memset(open, 0, sums->count * sizeof *open);
  for (uint64_t first = 0; first < sums->count;) {
    const struct row row = row_at(sums, first);
    for (uint32_t t = 0; t < goal->threshold_count; ++t) {
      const double threshold = goal->thresholds[t];
      if (goal->partners && has_failed(plan, row, threshold)) continue;
      for (uint64_t i = 0; i < row.count; ++i)
        open[first + i] |= leaves_open(plan->weights, &row.pairs[i], threshold);
    }
    first += row.count;
  }
  for (uint64_t i = 0; i < sums->count; ++i) count += open[i];
  return count;
}

/* The pairs that the goal wants to know better, in order. */
static uint64_t list_wanted(const struct kcp_influence_plan *plan,
                            const struct kcp_influence_goal *goal,
                            const struct kcp_influence_sums *sums, const bool *open,
                            struct kcp_influence_sum *wanted) {
  uint64_t count = 0;
  for (uint64_t i = 0; i < sums->count; ++i) {
    const struct kcp_influence_sum *pair = &sums->pairs[i];
    if ((goal->has_tolerance && width_of(plan->weights, pair) > goal->tolerance) ||
        (goal->decide && open[i]))
      wanted[count++] = *pair;
  }
  return count;
}

static void replace(struct kcp_influence_sums *sums, const struct kcp_influence_sums *closer) {
  uint64_t place = 0;
  for (uint64_t i = 0; i < closer->count; ++i) {
    while (sums->pairs[place].p != closer->pairs[i].p || sums->pairs[place].q != closer->pairs[i].q)
      ++place;
    sums->pairs[place] = closer->pairs[i];
  }
}

static void drop_empty(struct kcp_influence_sums *sums) {
  uint64_t kept = 0;
  for (uint64_t i = 0; i < sums->count; ++i)
    if (sums->pairs[i].upper > 0) sums->pairs[kept++] = sums->pairs[i];
  sums->count = kept;
}

static double widest_of(const struct kcp_influence_plan *plan,
                        const struct kcp_influence_sums *sums) {
  double widest = 0;
  for (uint64_t i = 0; i < sums->count; ++i)
    widest = fmax(widest, width_of(plan->weights, &sums->pairs[i]));
  return widest;
}

static enum kcp_status not_reached(const struct kcp_influence_plan *plan,
                                   const struct kcp_influence_sums *wanted,
                                   struct kcp_error *error) {
  return kcp_fail(error, KCP_FAILED,
                  "%" PRIu64
                  " pair%s not decided after cells were split %d times: bounds are "
                  "still up to %g apart; allow a larger --tolerance",
                  wanted->count, wanted->count == 1 ? " is" : "s are", KCP_INFLUENCE_DEEPEST,
                  widest_of(plan, wanted));
}

/* Who splits cells: the engine, or the CPU's where it does not. */
struct splitting {
  const struct kcp_influence_engine *engine;
  struct kcp_influence_search *search;
  struct kcp_influence_search *own; /* of the CPU's engine; NULL without one */
};

static enum kcp_status splitting_open(struct splitting *splitting,
                                      const struct kcp_influence_plan *plan,
                                      struct kcp_error *error) {
  struct kcp_device_info device;
  if (splitting->engine->refine != NULL) return KCP_OK;
  const struct kcp_backend *cpu = kcp_backend_cpu();
  enum kcp_status status = cpu->probe(0, &device, error);
  if (status == KCP_OK) status = cpu->influence->create(plan, &device, &splitting->own, error);
  if (status != KCP_OK) return status;
  splitting->engine = cpu->influence;
  splitting->search = splitting->own;
  return KCP_OK;
}

enum kcp_status kcp_influence_run(const struct kcp_influence_engine *engine,
                                  struct kcp_influence_search *search,
                                  const struct kcp_influence_plan *plan,
                                  const struct kcp_influence_goal *goal,
                                  struct kcp_influence_answer *answer,
                                  struct kcp_measurement *measurement,
                                  struct kcp_progress *progress, struct kcp_error *error) {
  struct kcp_influence_sums *sums = &answer->sums;
  struct kcp_influence_sums wanted = {NULL, 0};
  struct splitting splitting = {engine, search, NULL};
  bool *open = NULL;
  memset(answer, 0, sizeof *answer);
  enum kcp_status status = engine->run(search, sums, measurement, progress, error);
  if (status != KCP_OK) goto cleanup;
  wanted.pairs = malloc((sums->count + 1) * sizeof *wanted.pairs);
  open = malloc((sums->count + 1) * sizeof *open);
  if (wanted.pairs == NULL || open == NULL) {
    status = kcp_out_of_memory(error, "the pairs", (sums->count + 1) * sizeof *wanted.pairs);
    goto cleanup;
  }
  for (;;) {
    answer->undecided = find_open(plan, goal, sums, open);
    wanted.count = list_wanted(plan, goal, sums, open, wanted.pairs);
    if (wanted.count == 0) break;
    if (answer->depth == KCP_INFLUENCE_DEEPEST) {
      status = not_reached(plan, &wanted, error);
      goto cleanup;
    }
    struct kcp_influence_sums closer;
    status = splitting_open(&splitting, plan, error);
    if (status != KCP_OK) goto cleanup;
    status = splitting.engine->refine(splitting.search, &wanted, ++answer->depth, &closer,
                                      measurement, progress, error);
    if (status != KCP_OK) goto cleanup;
    replace(sums, &closer);
    free(closer.pairs);
  }
  answer->widest = widest_of(plan, sums);
  drop_empty(sums);

cleanup:
  if (splitting.own != NULL) splitting.engine->destroy(splitting.own);
  free(wanted.pairs);
  free(open);
  if (status != KCP_OK) {
    free(sums->pairs);
    memset(sums, 0, sizeof *sums);
  }
  return status;
}

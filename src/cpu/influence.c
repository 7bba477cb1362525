/* Common influence regions on the CPU: the descent of a tree of cells, and the paper's pairs. */
#include "kcp/influence.h"

#include <stdlib.h>
#include <string.h>

#include "influence_pairs.h"
#include "influence_tree.h"

struct kcp_influence_search {
  const struct kcp_influence_plan *plan;
};

static enum kcp_status create(const struct kcp_influence_plan *plan,
                              const struct kcp_device_info *device,
                              struct kcp_influence_search **out, struct kcp_error *error) {
  (void)device;
  struct kcp_influence_search *search = malloc(sizeof *search);
  if (search == NULL) return kcp_out_of_memory(error, "the search", sizeof *search);
  search->plan = plan;
  *out = search;
  return KCP_OK;
}

static void destroy(struct kcp_influence_search *search) {
  free(search);
}

static enum kcp_status descend(const struct kcp_influence_plan *plan,
                               const struct kcp_influence_sums *wanted, uint32_t depth,
                               struct kcp_influence_sums *sums, enum kcp_phase phase,
                               struct kcp_measurement *measurement, struct kcp_progress *progress,
                               struct kcp_error *error) {
  const double started = kcp_now();
  const struct kcp_influence_descent descent = {
      .plan = plan, .depth = depth, .wanted = wanted, .progress = progress};
  enum kcp_status status =
      kcp_influence_descend(&descent, sums, &measurement->distance_evaluations, error);
  measurement->phase_s[phase] += kcp_now() - started;
  return status;
}

static enum kcp_status run_pairs(const struct kcp_influence_plan *plan,
                                 struct kcp_influence_sums *sums,
                                 struct kcp_measurement *measurement, struct kcp_progress *progress,
                                 struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  const uint64_t cells = (uint64_t)plan->grid.rows * plan->grid.columns;
  const uint64_t pairs = plan->sets[0]->selected_count * plan->sets[1]->selected_count;
  double *kth[2] = {malloc(cells * sizeof *kth[0]), malloc(cells * sizeof *kth[1])};
  uint64_t *areas = malloc(pairs * sizeof *areas);
  if (kth[0] == NULL || kth[1] == NULL || areas == NULL) {
    status = kcp_out_of_memory(error, "the pairs", 16 * cells + 8 * pairs);
    goto cleanup;
  }
  double started = kcp_now();
  for (int set = 0; set < 2 && status == KCP_OK; ++set)
    status = kcp_kth_ranks(plan, set, kth[set], error);
  measurement->phase_s[KCP_PHASE_INDEX] += kcp_now() - started;
  if (status != KCP_OK) goto cleanup;
  started = kcp_now();
  const double *const found[2] = {kth[0], kth[1]};
  status = kcp_pair_areas(plan, found, plan->stop_below, areas, progress, error);
  measurement->phase_s[KCP_PHASE_KERNEL] += kcp_now() - started;
  measurement->distance_evaluations +=
      cells * (plan->sets[0]->count + plan->sets[1]->count) + 2 * cells * pairs;
  if (status == KCP_OK)
    status = descend(plan, NULL, 0, sums, KCP_PHASE_MERGE, measurement, progress, error);
  if (status == KCP_OK) status = kcp_influence_set_areas(plan, areas, sums, error);

cleanup:
  free(kth[0]);
  free(kth[1]);
  free(areas);
  return status;
}

static enum kcp_status run(struct kcp_influence_search *search, struct kcp_influence_sums *sums,
                           struct kcp_measurement *measurement, struct kcp_progress *progress,
                           struct kcp_error *error) {
  const struct kcp_influence_plan *plan = search->plan;
  memset(sums, 0, sizeof *sums);
  if (plan->method == KCP_INFLUENCE_PAIRWISE)
    return run_pairs(plan, sums, measurement, progress, error);
  return descend(plan, NULL, 0, sums, KCP_PHASE_KERNEL, measurement, progress, error);
}

static bool precedes(const struct kcp_influence_sum *a, const struct kcp_influence_sum *b) {
  return a->p < b->p || (a->p == b->p && a->q < b->q);
}

/* Leaves the wanted pairs alone, those that were not found with sums of 0. Both are in order. */
static enum kcp_status match_wanted(const struct kcp_influence_sums *wanted,
                                    struct kcp_influence_sums *sums, struct kcp_error *error) {
  uint64_t next = 0;
  struct kcp_influence_sum *pairs = malloc((wanted->count + 1) * sizeof *pairs);
  if (pairs == NULL) return kcp_out_of_memory(error, "the pairs", wanted->count * sizeof *pairs);
  for (uint64_t i = 0; i < wanted->count; ++i) {
    pairs[i] = (struct kcp_influence_sum){.p = wanted->pairs[i].p, .q = wanted->pairs[i].q};
    while (next < sums->count && precedes(&sums->pairs[next], &pairs[i])) ++next;
    if (next < sums->count && !precedes(&pairs[i], &sums->pairs[next]))
      pairs[i] = sums->pairs[next];
  }
  free(sums->pairs);
  sums->pairs = pairs;
  sums->count = wanted->count;
  return KCP_OK;
}

static enum kcp_status refine(struct kcp_influence_search *search,
                              const struct kcp_influence_sums *wanted, uint32_t depth,
                              struct kcp_influence_sums *sums, struct kcp_measurement *measurement,
                              struct kcp_progress *progress, struct kcp_error *error) {
  memset(sums, 0, sizeof *sums);
  enum kcp_status status =
      descend(search->plan, wanted, depth, sums, KCP_PHASE_MERGE, measurement, progress, error);
  return status == KCP_OK ? match_wanted(wanted, sums, error) : status;
}

const struct kcp_influence_engine kcp_cpu_influence_engine = {create, destroy, run, refine};

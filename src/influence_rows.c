#include <stdlib.h>
#include <string.h>

#include "cpu/radix_sort.h"
#include "kcp/influence_query.h"

/* A chosen site: its id and its group. */
struct choice {
  uint64_t id;
  uint32_t group;
};

struct choices {
  struct choice *sites; /* owned */
  uint64_t count;
};

static int compare_ids(const void *a, const void *b) {
  const uint64_t left = ((const struct choice *)a)->id, right = ((const struct choice *)b)->id;
  return left < right ? -1 : left > right;
}

static int compare_groups(const void *a, const void *b) {
  const struct choice *left = a, *right = b;
  if (left->group != right->group) return left->group < right->group ? -1 : 1;
  return compare_ids(a, b);
}

static bool list_choices(const struct kcp_site_file *file, const struct kcp_site_groups *groups,
                         int (*compare)(const void *, const void *), struct choices *choices) {
  choices->count = 0;
  choices->sites = malloc((file->chosen_count + 1) * sizeof *choices->sites);
  if (choices->sites == NULL) return false;
  for (uint64_t i = 0; i < file->sites.count; ++i)
    if (file->chosen[i])
      choices->sites[choices->count++] = (struct choice){file->sites.ids[i], groups->group_of[i]};
  qsort(choices->sites, choices->count, sizeof *choices->sites, compare);
  return true;
}

/* Where the pairs of each group of P begin; one more element than groups. */
static uint64_t *index_pairs(const struct kcp_influence_sums *sums, uint64_t groups) {
  uint64_t *first = malloc((groups + 1) * sizeof *first);
  uint64_t pair = 0;
  for (uint64_t group = 0; group <= groups && first != NULL; ++group) {
    while (pair < sums->count && sums->pairs[pair].p < group) ++pair;
    first[group] = pair;
  }
  return first;
}

/* Where the chosen sites of each group of Q begin among those in the order of groups. */
static uint64_t *index_choices(const struct choices *choices, uint64_t groups) {
  uint64_t *first = malloc((groups + 1) * sizeof *first);
  uint64_t site = 0;
  for (uint64_t group = 0; group <= groups && first != NULL; ++group) {
    while (site < choices->count && choices->sites[site].group < group) ++site;
    first[group] = site;
  }
  return first;
}

void kcp_influence_row_weigh(struct kcp_influence_row *row,
                             const struct kcp_cell_weights *weights) {
  row->area = kcp_cell_weights_real(weights, row->units[KCP_UNITS_AREA]);
  row->lower = kcp_cell_weights_real(weights, row->units[KCP_UNITS_LOWER]);
  row->upper = kcp_cell_weights_real(weights, row->units[KCP_UNITS_UPPER]);
}

static struct kcp_influence_row row_of(const struct kcp_cell_weights *weights,
                                       const struct kcp_influence_sum *pair, uint64_t id1,
                                       uint64_t id2) {
  struct kcp_influence_row row = {
      .id1 = id1, .id2 = id2, .units = {pair->area, pair->lower, pair->upper}};
  kcp_influence_row_weigh(&row, weights);
  return row;
}

static int compare_second_ids(const void *a, const void *b) {
  const uint64_t left = ((const struct kcp_influence_row *)a)->id2;
  const uint64_t right = ((const struct kcp_influence_row *)b)->id2;
  return left < right ? -1 : left > right;
}

/* Everything needed to go from pairs of groups to rows of sites. */
struct making {
  const struct kcp_influence_plan *plan;
  const struct kcp_influence_sums *sums;
  struct choices p, q;    /* by id, by group */
  uint64_t *first_pair;   /* by group of P */
  uint64_t *first_choice; /* by group of Q */
};

static uint64_t count_rows(const struct making *making) {
  uint64_t count = 0;
  for (uint64_t i = 0; i < making->p.count; ++i) {
    const uint32_t group = making->p.sites[i].group;
    for (uint64_t pair = making->first_pair[group]; pair < making->first_pair[group + 1]; ++pair) {
      const uint32_t q = making->sums->pairs[pair].q;
      count += making->first_choice[q + 1] - making->first_choice[q];
    }
  }
  return count;
}

static void make_pairs(const struct making *making, struct kcp_influence_result *result) {
  for (uint64_t i = 0; i < making->p.count; ++i) {
    const struct choice *p = &making->p.sites[i];
    const uint64_t first_row = result->row_count;
    for (uint64_t pair = making->first_pair[p->group]; pair < making->first_pair[p->group + 1];
         ++pair) {
      const struct kcp_influence_sum *sum = &making->sums->pairs[pair];
      for (uint64_t j = making->first_choice[sum->q]; j < making->first_choice[sum->q + 1]; ++j)
        result->rows[result->row_count++] =
            row_of(making->plan->weights, sum, p->id, making->q.sites[j].id);
    }
    qsort(result->rows + first_row, result->row_count - first_row, sizeof *result->rows,
          compare_second_ids);
  }
}

/* A site of P shares nothing with a chosen site of Q when a pair is not listed. */
static void make_partners(const struct making *making, struct kcp_influence_result *result) {
  for (uint64_t i = 0; i < making->p.count; ++i) {
    const struct choice *p = &making->p.sites[i];
    const uint64_t first = making->first_pair[p->group], end = making->first_pair[p->group + 1];
    const struct kcp_influence_sum *least = NULL;
    if (end - first < making->plan->sets[1]->selected_count) continue;
    for (uint64_t pair = first; pair < end; ++pair)
      if (least == NULL || making->sums->pairs[pair].area < least->area)
        least = &making->sums->pairs[pair];
    if (least == NULL) continue;
    result->rows[result->row_count++] = row_of(making->plan->weights, least, p->id,
                                               making->q.sites[making->first_choice[least->q]].id);
  }
}

/* The largest areas first; equal ones by id. */
static enum kcp_status sort_by_area(struct kcp_influence_result *result, struct kcp_error *error) {
  const uint64_t count = result->row_count;
  struct kcp_radix_sorter sorter;
  double *keys = malloc((count + 1) * sizeof *keys);
  struct kcp_influence_row *sorted = malloc((count + 1) * sizeof *sorted);
  enum kcp_status status = kcp_radix_sorter_create(count, &sorter, error);
  if (status == KCP_OK && (keys == NULL || sorted == NULL))
    status = kcp_out_of_memory(error, "the pairs", count * sizeof *sorted);
  if (status == KCP_OK) {
    for (uint64_t i = 0; i < count; ++i) keys[i] = -result->rows[i].area;
    const uint32_t *order = kcp_radix_sort(&sorter, keys, count);
    for (uint64_t i = 0; i < count; ++i) sorted[i] = result->rows[order[i]];
    free(result->rows);
    result->rows = sorted;
    sorted = NULL;
  }
  kcp_radix_sorter_free(&sorter);
  free(keys);
  free(sorted);
  return status;
}

bool kcp_influence_reaches(const struct kcp_influence_row *row, double min_weight) {
  return min_weight > 0 ? row->area >= min_weight : row->area > 0;
}

static void count_answers(struct kcp_influence_result *result) {
  const struct kcp_min_weights *weights = &result->options->min_weights;
  const uint32_t count = weights->count > 0 ? weights->count : 1;
  for (uint32_t w = 0; w < count; ++w) {
    const double least = weights->count > 0 ? weights->values[w] : 0;
    result->answer_counts[w] = 0;
    for (uint64_t i = 0; i < result->row_count; ++i)
      result->answer_counts[w] += kcp_influence_reaches(&result->rows[i], least);
  }
}

enum kcp_status kcp_influence_take_rows(const struct kcp_influence_plan *plan,
                                        const struct kcp_influence_sums *sums,
                                        struct kcp_influence_result *result,
                                        struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  struct making making = {.plan = plan, .sums = sums};
  const bool partners = result->kind == KCP_INFLUENCE_PARTNERS && !result->options->list_areas;
  bool ready = list_choices(result->files[0], plan->sets[0], compare_ids, &making.p);
  ready &= list_choices(result->files[1], plan->sets[1], compare_groups, &making.q);
  making.first_pair = index_pairs(sums, plan->sets[0]->count);
  if (ready) making.first_choice = index_choices(&making.q, plan->sets[1]->count);
  if (!ready || making.first_pair == NULL || making.first_choice == NULL) {
    status = kcp_out_of_memory(error, "the pairs", 0);
    goto cleanup;
  }
  const uint64_t capacity = partners ? making.p.count : count_rows(&making);
  result->row_count = 0;
  result->rows = malloc((capacity + 1) * sizeof *result->rows);
  if (result->rows == NULL) {
    status = kcp_out_of_memory(error, "the pairs", capacity * sizeof *result->rows);
    goto cleanup;
  }
  if (partners)
    make_partners(&making, result);
  else
    make_pairs(&making, result);
  if (result->options->list_areas) status = sort_by_area(result, error);
  count_answers(result);

cleanup:
  free(making.p.sites);
  free(making.q.sites);
  free(making.first_pair);
  free(making.first_choice);
  return status;
}

#include <stdlib.h>
#include <string.h>

#include "kcp/influence.h"

struct site {
  double x, y, weight;
  uint64_t index; /* in the file */
};

static int compare_reals(double a, double b) {
  return a < b ? -1 : a > b;
}

static int compare_places(const struct site *a, const struct site *b) {
  int order = compare_reals(a->x, b->x);
  if (order == 0) order = compare_reals(a->y, b->y);
  return order != 0 ? order : compare_reals(a->weight, b->weight);
}

static int compare_sites(const void *left, const void *right) {
  const struct site *a = left, *b = right;
  int order = compare_places(a, b);
  return order != 0 ? order : a->index < b->index ? -1 : a->index > b->index;
}

static void add_group(struct kcp_site_groups *groups, const struct site *site) {
  const uint64_t group = groups->count++;
  groups->x[group] = site->x;
  groups->y[group] = site->y;
  groups->squared_weight[group] = site->weight * site->weight;
  groups->inverse_square[group] = kcp_inverse_square(groups->squared_weight[group]);
  groups->multiplicity[group] = 0;
  groups->selected[group] = 0;
}

static enum kcp_status allocate(uint64_t count, struct kcp_site_groups *groups,
                                struct kcp_error *error) {
  memset(groups, 0, sizeof *groups);
  double **columns[] = {&groups->x, &groups->y, &groups->squared_weight, &groups->inverse_square};
  const uint64_t room = count > 0 ? count : 1;
  bool there = true;
  for (int i = 0; i < 4; ++i) {
    *columns[i] = malloc(room * sizeof(double));
    there &= *columns[i] != NULL;
  }
  groups->multiplicity = malloc(room * sizeof *groups->multiplicity);
  groups->selected = malloc(room * sizeof *groups->selected);
  groups->group_of = malloc(room * sizeof *groups->group_of);
  there &= groups->multiplicity != NULL && groups->selected != NULL && groups->group_of != NULL;
  return there ? KCP_OK : kcp_out_of_memory(error, "the sites", 45 * room);
}

enum kcp_status kcp_site_groups_make(const struct kcp_points *sites, const bool *chosen,
                                     struct kcp_site_groups *groups, struct kcp_error *error) {
  const uint64_t count = sites->count;
  struct site *sorted = malloc((count > 0 ? count : 1) * sizeof *sorted);
  enum kcp_status status = allocate(count, groups, error);
  if (status == KCP_OK && sorted == NULL)
    status = kcp_out_of_memory(error, "the sites", count * sizeof *sorted);
  if (status != KCP_OK) goto cleanup;
  for (uint64_t i = 0; i < count; ++i)
    sorted[i] = (struct site){kcp_points_column(sites, 0)[i], kcp_points_column(sites, 1)[i],
                              sites->dimensions > 2 ? kcp_points_column(sites, 2)[i] : 1, i};
  qsort(sorted, count, sizeof *sorted, compare_sites);
  groups->site_count = count;
  for (uint64_t i = 0; i < count; ++i) {
    if (i == 0 || compare_places(&sorted[i - 1], &sorted[i]) != 0) add_group(groups, &sorted[i]);
    const uint64_t group = groups->count - 1;
    ++groups->multiplicity[group];
    groups->group_of[sorted[i].index] = (uint32_t)group;
    if (chosen == NULL || chosen[sorted[i].index]) groups->selected[group] = 1;
  }
  for (uint64_t i = 0; i < groups->count; ++i) groups->selected_count += groups->selected[i];

cleanup:
  free(sorted);
  if (status != KCP_OK) kcp_site_groups_free(groups);
  return status;
}

void kcp_site_groups_free(struct kcp_site_groups *groups) {
  free(groups->x);
  free(groups->y);
  free(groups->squared_weight);
  free(groups->inverse_square);
  free(groups->multiplicity);
  free(groups->selected);
  free(groups->group_of);
  memset(groups, 0, sizeof *groups);
}

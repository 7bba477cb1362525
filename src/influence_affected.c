#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cell_shares.h"
#include "kcp/influence_what_if.h"

#define SMALLEST_NODE 16 /* cells a side below which a cell is not looked at closer */

struct place {
  double x, y, inverse_square;
};

/* Sites that can matter in a node, and the rest of a walk. */
struct marking {
  const struct kcp_influence_grid *grid;
  uint64_t k;
  const struct place *changed; /* before and after */
  uint64_t changed_count;
  uint8_t *mask;
  bool short_of_memory;
};

struct node {
  uint32_t left, right, bottom, top; /* lines of the grid */
  const struct place *common;        /* unchanged sites */
  uint32_t count;
};

static struct place place_of(const struct kcp_points *sites, uint64_t i) {
  const double weight = kcp_points_column(sites, 2)[i];
  return (struct place){kcp_points_column(sites, 0)[i], kcp_points_column(sites, 1)[i],
                        kcp_inverse_square(weight * weight)};
}

/* A rank that k unchanged sites do not exceed in the node; +inf when there are fewer. */
static double limit_of(const struct marking *marking, const struct node *node,
                       struct kcp_cell place, double *highs, uint64_t *ones) {
  for (uint32_t i = 0; i < node->count; ++i) {
    highs[i] =
        kcp_rank_high(node->common[i].x, node->common[i].y, node->common[i].inverse_square, place);
    ones[i] = 1;
  }
  return kcp_nth_value(highs, ones, node->count, marking->k);
}

static bool can_matter(const struct place *site, struct kcp_cell place, double limit) {
  return kcp_rank_low(site->x, site->y, site->inverse_square, place) <= limit;
}

static bool is_affected(const struct marking *marking, struct kcp_cell place, double limit) {
  for (uint64_t i = 0; i < marking->changed_count; ++i)
    if (can_matter(&marking->changed[i], place, limit)) return true;
  return false;
}

static void mark_cells(const struct marking *marking, const struct node *node) {
  for (uint32_t row = node->bottom; row < node->top; ++row)
    memset(marking->mask + (uint64_t)row * marking->grid->columns + node->left, 1,
           node->right - node->left);
}

static void mark(struct marking *marking, const struct node *node) {
  const struct kcp_cell cell = {node->left, node->right, node->bottom, node->top};
  const struct kcp_cell place = kcp_cell_place(marking->grid, cell);
  double *highs = malloc((node->count + 1) * sizeof *highs);
  uint64_t *ones = malloc((node->count + 1) * sizeof *ones);
  struct place *common = malloc((node->count + 1) * sizeof *common);
  if (highs == NULL || ones == NULL || common == NULL) {
    marking->short_of_memory = true;
    goto cleanup;
  }
  const double limit = limit_of(marking, node, place, highs, ones);
  if (!is_affected(marking, place, limit)) goto cleanup;
  if (node->right - node->left <= SMALLEST_NODE && node->top - node->bottom <= SMALLEST_NODE) {
    mark_cells(marking, node);
    goto cleanup;
  }
  uint32_t count = 0;
  for (uint32_t i = 0; i < node->count; ++i)
    if (can_matter(&node->common[i], place, limit)) common[count++] = node->common[i];
  const uint32_t x = node->left + (node->right - node->left) / 2;
  const uint32_t y = node->bottom + (node->top - node->bottom) / 2;
  for (int part = 0; part < 4; ++part) {
    const struct node child = {part % 2 == 0 ? node->left : x,
                               part % 2 == 0 ? x : node->right,
                               part / 2 == 0 ? node->bottom : y,
                               part / 2 == 0 ? y : node->top,
                               common,
                               count};
    if (child.left < child.right && child.bottom < child.top) mark(marking, &child);
  }

cleanup:
  free(highs);
  free(ones);
  free(common);
}

enum kcp_status kcp_mark_affected(const struct kcp_influence_grid *grid, uint64_t k,
                                  const struct kcp_site_file *before,
                                  const struct kcp_site_file *after, const bool *kept,
                                  uint8_t *mask, struct kcp_error *error) {
  const uint64_t all = before->sites.count + after->sites.count;
  struct place *common = malloc((all + 1) * sizeof *common);
  struct place *changed = malloc((all + 1) * sizeof *changed);
  struct marking marking = {grid, k, changed, 0, mask, false};
  enum kcp_status status = KCP_OK;
  uint64_t common_count = 0;
  if (common == NULL || changed == NULL) {
    status = kcp_out_of_memory(error, "the sites", 2 * all * sizeof *common);
    goto cleanup;
  }
  for (uint64_t i = 0; i < before->sites.count; ++i) {
    if (kept[i])
      common[common_count++] = place_of(&before->sites, i);
    else
      changed[marking.changed_count++] = place_of(&before->sites, i);
  }
  /* Kept sites come first and in their order; what follows is new. */
  for (uint64_t i = common_count; i < after->sites.count; ++i)
    changed[marking.changed_count++] = place_of(&after->sites, i);
  if (marking.changed_count > 0) {
    const struct node root = {0, grid->columns, 0, grid->rows, common, (uint32_t)common_count};
    mark(&marking, &root);
    if (marking.short_of_memory) status = kcp_out_of_memory(error, "the sites", 0);
  }

cleanup:
  free(common);
  free(changed);
  return status;
}

#include "kcp/influence_what_if.h"

#include <stdlib.h>
#include <string.h>

static bool precedes(const struct kcp_influence_row *a, const struct kcp_influence_row *b) {
  return a->id1 < b->id1 || (a->id1 == b->id1 && a->id2 < b->id2);
}

/* Goes through rows in the order of ids. */
struct row_cursor {
  const struct kcp_influence_row *rows;
  uint64_t count, at;
};

static struct row_cursor rows_of(const struct kcp_influence_result *result) {
  return (struct row_cursor){result->rows, result->row_count, 0};
}

static const struct kcp_influence_row *earlier(const struct kcp_influence_row *best,
                                               const struct row_cursor *cursor) {
  if (cursor->at == cursor->count) return best;
  const struct kcp_influence_row *row = &cursor->rows[cursor->at];
  return best == NULL || precedes(row, best) ? row : best;
}

/* The row of these ids, which is passed; NULL when the next one is another's. */
static const struct kcp_influence_row *take(struct row_cursor *cursor, uint64_t id1, uint64_t id2) {
  if (cursor->at == cursor->count) return NULL;
  const struct kcp_influence_row *row = &cursor->rows[cursor->at];
  if (row->id1 != id1 || row->id2 != id2) return NULL;
  ++cursor->at;
  return row;
}

enum kcp_status kcp_influence_combine(const struct kcp_influence_result *before,
                                      const struct kcp_influence_result *old_part,
                                      const struct kcp_influence_result *new_part,
                                      const struct kcp_cell_weights *weights,
                                      struct kcp_influence_result *after, struct kcp_error *error) {
  struct row_cursor all = rows_of(before), old = rows_of(old_part), new = rows_of(new_part);
  const uint64_t capacity = all.count + new.count + 1;
  after->row_count = 0;
  after->rows = malloc(capacity * sizeof *after->rows);
  if (after->rows == NULL)
    return kcp_out_of_memory(error, "the pairs", capacity * sizeof *after->rows);
  for (;;) {
    const struct kcp_influence_row *next = earlier(earlier(NULL, &all), &new);
    if (next == NULL) return KCP_OK;
    const uint64_t id1 = next->id1, id2 = next->id2;
    const struct kcp_influence_row *parts[3] = {take(&all, id1, id2), take(&old, id1, id2),
                                                take(&new, id1, id2)};
    struct kcp_influence_row row = {.id1 = id1, .id2 = id2};
    for (int i = 0; i < 3; ++i)
      row.units[i] = (parts[0] != NULL ? parts[0]->units[i] : 0) -
                     (parts[1] != NULL ? parts[1]->units[i] : 0) +
                     (parts[2] != NULL ? parts[2]->units[i] : 0);
    if (row.units[KCP_UNITS_UPPER] == 0) continue;
    kcp_influence_row_weigh(&row, weights);
    after->rows[after->row_count++] = row;
  }
}

/* --- differences ------------------------------------------------------------------------------ */

static void add_row(struct kcp_influence_difference *difference, enum kcp_change change,
                    const struct kcp_changed_row *row) {
  difference->rows[difference->count] = *row;
  difference->rows[difference->count++].change = change;
  ++difference->counts[change];
}

static double least_of(const struct kcp_influence_result *result) {
  return result->options->min_weights.count > 0 ? result->options->min_weights.values[0] : 0;
}

static bool reaches(const struct kcp_influence_row *row, double least) {
  return row != NULL && kcp_influence_reaches(row, least);
}

static void compare_pairs(const struct kcp_influence_result *before,
                          const struct kcp_influence_result *after,
                          struct kcp_influence_difference *difference) {
  struct row_cursor old = rows_of(before), new = rows_of(after);
  const double least = least_of(before);
  for (;;) {
    const struct kcp_influence_row *next = earlier(earlier(NULL, &old), &new);
    if (next == NULL) return;
    const struct kcp_changed_row row = {.id1 = next->id1, .id2 = next->id2};
    const struct kcp_influence_row *a = take(&old, row.id1, row.id2);
    const struct kcp_influence_row *b = take(&new, row.id1, row.id2);
    struct kcp_changed_row changed = row;
    changed.before = a != NULL ? a->area : 0;
    changed.after = b != NULL ? b->area : 0;
    if (reaches(a, least) && !reaches(b, least))
      add_row(difference, KCP_CHANGE_LOST, &changed);
    else if (!reaches(a, least) && reaches(b, least))
      add_row(difference, KCP_CHANGE_GAINED, &changed);
    else if (reaches(a, least) && changed.before != changed.after)
      add_row(difference, KCP_CHANGE_AREA, &changed);
  }
}

/* The pairs of `id1` at the cursor, which are passed, that reach W0. */
static uint64_t count_partners(struct row_cursor *cursor, uint64_t id1, double least) {
  uint64_t count = 0;
  for (; cursor->at < cursor->count && cursor->rows[cursor->at].id1 == id1; ++cursor->at)
    count += kcp_influence_reaches(&cursor->rows[cursor->at], least);
  return count;
}

static void compare_partners(const struct kcp_influence_result *before,
                             const struct kcp_influence_result *after,
                             struct kcp_influence_difference *difference) {
  struct row_cursor old = rows_of(before), new = rows_of(after);
  const double least = least_of(before);
  for (;;) {
    const struct kcp_influence_row *next = earlier(earlier(NULL, &old), &new);
    if (next == NULL) return;
    const struct kcp_changed_row row = {.id1 = next->id1};
    const bool was = count_partners(&old, row.id1, least) == before->files[1]->chosen_count;
    const bool is = count_partners(&new, row.id1, least) == after->files[1]->chosen_count;
    difference->partners_before += was;
    if (was && !is) add_row(difference, KCP_CHANGE_LOST, &row);
    if (!was && is) add_row(difference, KCP_CHANGE_GAINED, &row);
  }
}

enum kcp_status kcp_influence_compare(const struct kcp_influence_result *before,
                                      const struct kcp_influence_result *after,
                                      struct kcp_influence_difference *difference,
                                      struct kcp_error *error) {
  const uint64_t capacity = before->row_count + after->row_count + 1;
  difference->rows = malloc(capacity * sizeof *difference->rows);
  if (difference->rows == NULL)
    return kcp_out_of_memory(error, "the changes", capacity * sizeof *difference->rows);
  if (before->kind == KCP_INFLUENCE_PAIRS)
    compare_pairs(before, after, difference);
  else
    compare_partners(before, after, difference);
  return KCP_OK;
}

/* --- the run ---------------------------------------------------------------------------------- */

/* The sets after the changes, and the affected cells. */
struct variant {
  struct kcp_site_file files[2];    /* owned */
  struct kcp_site_groups groups[2]; /* owned */
  bool *kept[2];                    /* owned */
  uint8_t *mask;                    /* owned */
  struct kcp_cell_weights weights;  /* of affected cells; owned */
};

static enum kcp_status check_after(const struct kcp_influence_plan *plan, int set,
                                   const struct kcp_site_file *file,
                                   const struct kcp_domain *domain, struct kcp_error *error) {
  if (plan->k[set] > file->sites.count)
    return kcp_fail(
        error, KCP_BAD_INPUT, "after --remove, k %llu is more than the %llu sites left of %s",
        (unsigned long long)plan->k[set], (unsigned long long)file->sites.count, file->path);
  if (file->chosen_count == 0)
    return kcp_fail(error, KCP_BAD_INPUT, "after --remove, no site of %s is chosen", file->path);
  return kcp_site_file_check_domain(file, domain, error);
}

static enum kcp_status make_variant(const struct kcp_influence_plan *plan,
                                    const struct kcp_influence_result *before,
                                    const struct kcp_site_changes *changes, struct variant *variant,
                                    struct kcp_error *error) {
  const uint64_t cells = (uint64_t)plan->grid.rows * plan->grid.columns;
  variant->mask = calloc(cells, sizeof *variant->mask);
  if (variant->mask == NULL) return kcp_out_of_memory(error, "the affected cells", cells);
  for (int set = 0; set < 2; ++set) {
    struct kcp_site_file *file = &variant->files[set];
    enum kcp_status status =
        kcp_site_changes_apply(changes, set, before->files[set], file, &variant->kept[set], error);
    if (status == KCP_OK) status = check_after(plan, set, file, &before->domain, error);
    if (status == KCP_OK)
      status = kcp_site_groups_make(&file->sites, file->chosen, &variant->groups[set], error);
    if (status == KCP_OK)
      status = kcp_mark_affected(&plan->grid, plan->k[set], before->files[set], file,
                                 variant->kept[set], variant->mask, error);
    if (status != KCP_OK) return status;
  }
  return kcp_cell_weights_mask(plan->weights, variant->mask, &variant->weights, error);
}

/* All pairs of a plan on the grid, as rows of their own. */
static enum kcp_status run_part(const struct kcp_influence_engine *engine,
                                const struct kcp_device_info *device,
                                const struct kcp_influence_plan *plan,
                                struct kcp_influence_result *result,
                                struct kcp_measurement *measurement, struct kcp_error *error) {
  const struct kcp_influence_goal goal = {.thresholds = NULL};
  struct kcp_influence_search *search = NULL;
  struct kcp_influence_answer answer;
  enum kcp_status status = engine->create(plan, device, &search, error);
  if (status != KCP_OK) return status;
  status = kcp_influence_run(engine, search, plan, &goal, &answer, measurement, NULL, error);
  if (status == KCP_OK) status = kcp_influence_take_rows(plan, &answer.sums, result, error);
  free(answer.sums.pairs);
  engine->destroy(search);
  return status;
}

static struct kcp_influence_result empty_result(const struct kcp_influence_result *like,
                                                const struct kcp_site_file *p,
                                                const struct kcp_site_file *q) {
  struct kcp_influence_result result = *like;
  result.kind = KCP_INFLUENCE_PAIRS;
  result.files[0] = p;
  result.files[1] = q;
  result.rows = NULL;
  result.row_count = 0;
  return result;
}

static enum kcp_status run_parts(const struct kcp_influence_engine *engine,
                                 const struct kcp_device_info *device,
                                 const struct kcp_influence_plan *plan,
                                 const struct kcp_influence_result *before,
                                 const struct variant *variant,
                                 struct kcp_influence_difference *difference,
                                 struct kcp_measurement *measurement, struct kcp_error *error) {
  const struct kcp_site_file *const *files = before->files;
  struct kcp_influence_result old = empty_result(before, files[0], files[1]);
  struct kcp_influence_result new = empty_result(before, &variant->files[0], &variant->files[1]);
  struct kcp_influence_result after = new;
  struct kcp_influence_plan part = *plan;
  part.weights = &variant->weights;
  enum kcp_status status = run_part(engine, device, &part, &old, measurement, error);
  for (int set = 0; set < 2; ++set) part.sets[set] = &variant->groups[set];
  if (status == KCP_OK) status = run_part(engine, device, &part, &new, measurement, error);
  if (status == KCP_OK)
    status = kcp_influence_combine(before, &old, &new, plan->weights, &after, error);
  if (status == KCP_OK) status = kcp_influence_compare(before, &after, difference, error);
  free(old.rows);
  free(new.rows);
  free(after.rows);
  return status;
}

enum kcp_status kcp_influence_what_if(
    const struct kcp_influence_engine *engine, const struct kcp_device_info *device,
    const struct kcp_influence_plan *plan, const struct kcp_influence_result *before,
    const struct kcp_site_changes *changes, struct kcp_influence_difference *difference,
    struct kcp_measurement *measurement, struct kcp_error *error) {
  const uint64_t cells = (uint64_t)plan->grid.rows * plan->grid.columns;
  struct variant variant = {.mask = NULL};
  memset(difference, 0, sizeof *difference);
  enum kcp_status status = make_variant(plan, before, changes, &variant, error);
  if (status == KCP_OK)
    status = run_parts(engine, device, plan, before, &variant, difference, measurement, error);
  for (uint64_t i = 0; i < cells && status == KCP_OK; ++i) difference->cells += variant.mask[i];
  for (int set = 0; set < 2; ++set) {
    kcp_site_file_free(&variant.files[set]);
    kcp_site_groups_free(&variant.groups[set]);
    free(variant.kept[set]);
  }
  kcp_cell_weights_free(&variant.weights);
  free(variant.mask);
  return status;
}

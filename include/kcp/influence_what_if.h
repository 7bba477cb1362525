/* What-if analysis of common influence regions: sites added, removed or reweighted, and what that
 * changes. Only cells in which a changed site can matter are looked at again. */
#ifndef KCP_INFLUENCE_WHAT_IF_H
#define KCP_INFLUENCE_WHAT_IF_H

#include <stdio.h>

#include "kcp/influence_query.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --add "id,x,y,w;...", --remove "id;...", --reweight "id,w;...", of P, or of Q with q: before the
 * id. NULL where not given. */
struct kcp_site_changes {
  const char *add, *remove, *reweight;
};

/* The sites after the changes; added ones are chosen. New memory: kcp_site_file_free. `kept` is
 * new, with a flag for each site of `before`: whether it is there unchanged. KCP_BAD_INPUT for
 * what cannot be changed so. */
enum kcp_status kcp_site_changes_apply(const struct kcp_site_changes *changes, int set,
                                       const struct kcp_site_file *before,
                                       struct kcp_site_file *after, bool **kept,
                                       struct kcp_error *error);

/* Sets mask[cell] for cells in which a changed site of the set can be among the k nearest, before
 * or after; leaves others as they are. */
enum kcp_status kcp_mark_affected(const struct kcp_influence_grid *grid, uint64_t k,
                                  const struct kcp_site_file *before,
                                  const struct kcp_site_file *after, const bool *kept,
                                  uint8_t *mask, struct kcp_error *error);

enum kcp_change { KCP_CHANGE_GAINED, KCP_CHANGE_LOST, KCP_CHANGE_AREA };

struct kcp_changed_row {
  enum kcp_change change;
  uint64_t id1, id2; /* of partners, the site of P alone */
  double before, after;
};

struct kcp_influence_difference {
  struct kcp_changed_row *rows; /* owned: free; by (id1, id2) */
  uint64_t count;
  uint64_t counts[3]; /* by enum kcp_change */
  uint64_t cells;     /* looked at again */
  uint64_t partners_before;
};

/* Rows after = before - old + new, where old and new are the rows over the affected cells alone;
 * sums are exact. `after` becomes result->rows of a query with the changed sites. */
enum kcp_status kcp_influence_combine(const struct kcp_influence_result *before,
                                      const struct kcp_influence_result *old_part,
                                      const struct kcp_influence_result *new_part,
                                      const struct kcp_cell_weights *weights,
                                      struct kcp_influence_result *after, struct kcp_error *error);

/* What differs between two lists of pairs, for one W0 (0: any area). */
enum kcp_status kcp_influence_compare(const struct kcp_influence_result *before,
                                      const struct kcp_influence_result *after,
                                      struct kcp_influence_difference *difference,
                                      struct kcp_error *error);

/* The whole of it: what the changes make of `before`, the rows of all pairs on the plan's grid. */
enum kcp_status kcp_influence_what_if(const struct kcp_influence_engine *engine,
                                      const struct kcp_device_info *device,
                                      const struct kcp_influence_plan *plan,
                                      const struct kcp_influence_result *before,
                                      const struct kcp_site_changes *changes,
                                      struct kcp_influence_difference *difference,
                                      struct kcp_measurement *measurement, struct kcp_error *error);

/* `change,id1,id2,area_before,area_after` lines, or `change,id` of partners; or JSON objects. */
void kcp_difference_write_csv(FILE *stream, const struct kcp_influence_result *result,
                              const struct kcp_influence_difference *difference);
void kcp_difference_write_json(FILE *stream, const struct kcp_influence_result *result,
                               const struct kcp_influence_difference *difference);

/* A line of the summary. */
void kcp_difference_summary(FILE *stream, const struct kcp_influence_result *result,
                            const struct kcp_influence_difference *difference);

#ifdef __cplusplus
}
#endif
#endif

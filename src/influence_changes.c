#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/influence_what_if.h"

/* A change as it was written. */
struct change {
  int set;
  uint64_t id;
  double numbers[3];
};

/* Goes through "q:7,1.5;8,2": ids with `number_count` numbers behind each. */
struct change_cursor {
  const char *flag, *at;
  int number_count;
};

static enum kcp_status malformed(const struct change_cursor *cursor, struct kcp_error *error) {
  static const char *const forms[] = {"ID", "ID,WEIGHT", "", "ID,X,Y,WEIGHT"};
  return kcp_fail(error, KCP_BAD_INPUT,
                  "--%s takes %s, several with ; between and q: before an id of Q, not '%s'",
                  cursor->flag, forms[cursor->number_count], cursor->at);
}

static enum kcp_status next_change(struct change_cursor *cursor, struct change *change,
                                   struct kcp_error *error) {
  const char *at = cursor->at;
  char *end;
  change->set = 0;
  if (strncmp(at, "p:", 2) == 0 || strncmp(at, "q:", 2) == 0) {
    change->set = *at == 'q';
    at += 2;
  }
  if (*at < '0' || *at > '9') return malformed(cursor, error);
  errno = 0;
  change->id = strtoull(at, &end, 10);
  if (errno != 0) return malformed(cursor, error);
  for (int i = 0; i < cursor->number_count; ++i) {
    if (*end != ',' || end[1] == '\0' || strchr("0123456789.+-", end[1]) == NULL)
      return malformed(cursor, error);
    at = end + 1;
    change->numbers[i] = strtod(at, &end);
    if (end == at || !isfinite(change->numbers[i])) return malformed(cursor, error);
  }
  if (*end != '\0' && *end != ';') return malformed(cursor, error);
  cursor->at = *end == ';' ? end + 1 : end;
  return KCP_OK;
}

/* A file under change. */
struct edit {
  struct kcp_site_file *file;
  bool *removed; /* a flag a site of it */
};

static uint64_t find_id(const struct kcp_site_file *file, const bool *removed, uint64_t id) {
  for (uint64_t i = 0; i < file->sites.count; ++i)
    if (file->sites.ids[i] == id && !removed[i]) return i;
  return UINT64_MAX;
}

static enum kcp_status check_weight(const struct change_cursor *cursor, double weight,
                                    struct kcp_error *error) {
  if (weight >= KCP_SMALLEST_SITE_WEIGHT && weight <= KCP_LARGEST_SITE_WEIGHT) return KCP_OK;
  return kcp_fail(error, KCP_BAD_INPUT, "--%s: a weight of %g; weights are more than 0, %g to %g",
                  cursor->flag, weight, KCP_SMALLEST_SITE_WEIGHT, KCP_LARGEST_SITE_WEIGHT);
}

static void put_site(struct edit *edit, uint64_t place, const struct change *change, double weight,
                     bool chosen) {
  struct kcp_points *sites = &edit->file->sites;
  sites->ids[place] = change->id;
  kcp_points_column(sites, 0)[place] = change->numbers[0];
  kcp_points_column(sites, 1)[place] = change->numbers[1];
  kcp_points_column(sites, 2)[place] = weight;
  edit->file->chosen[place] = chosen;
  edit->removed[place] = false;
}

/* A site that is changed goes, and comes again at the end. */
static enum kcp_status make_change(struct edit *edit, const struct change_cursor *cursor,
                                   struct change *change, struct kcp_error *error) {
  struct kcp_points *sites = &edit->file->sites;
  const bool adds = cursor->number_count == 3, reweights = cursor->number_count == 1;
  const uint64_t place = find_id(edit->file, edit->removed, change->id);
  double weight = change->numbers[adds ? 2 : 0];
  bool chosen = true;
  if ((place == UINT64_MAX) != adds)
    return kcp_fail(error, KCP_BAD_INPUT, "--%s: %s has %s site of id %" PRIu64, cursor->flag,
                    edit->file->path, adds ? "already a" : "no", change->id);
  if (adds || reweights) {
    enum kcp_status status = check_weight(cursor, weight, error);
    if (status != KCP_OK) return status;
  }
  if (!adds) {
    chosen = edit->file->chosen[place];
    edit->removed[place] = true;
  }
  if (reweights) {
    change->numbers[0] = kcp_points_column(sites, 0)[place];
    change->numbers[1] = kcp_points_column(sites, 1)[place];
  }
  if (adds || reweights) put_site(edit, sites->count++, change, weight, chosen);
  return KCP_OK;
}

static enum kcp_status make_changes(struct edit *edit, int set, struct change_cursor cursor,
                                    struct kcp_error *error) {
  while (cursor.at != NULL && *cursor.at != '\0') {
    struct change change = {0};
    enum kcp_status status = next_change(&cursor, &change, error);
    if (status == KCP_OK && change.set == set) status = make_change(edit, &cursor, &change, error);
    if (status != KCP_OK) return status;
  }
  return KCP_OK;
}

static uint64_t count_changes(const char *text) {
  uint64_t count = text != NULL;
  for (; text != NULL && *text != '\0'; ++text) count += *text == ';';
  return count;
}

static void drop_removed(struct edit *edit) {
  struct kcp_site_file *file = edit->file;
  uint64_t kept = 0;
  file->chosen_count = 0;
  for (uint64_t i = 0; i < file->sites.count; ++i) {
    if (edit->removed[i]) continue;
    file->sites.ids[kept] = file->sites.ids[i];
    for (uint32_t j = 0; j < 3; ++j)
      kcp_points_column(&file->sites, j)[kept] = kcp_points_column(&file->sites, j)[i];
    file->chosen[kept] = file->chosen[i];
    file->chosen_count += file->chosen[kept++];
  }
  file->sites.count = kept;
}

static enum kcp_status copy_file(const struct kcp_site_file *before, uint64_t capacity,
                                 struct kcp_site_file *after, struct kcp_error *error) {
  *after = *before;
  memset(&after->sites, 0, sizeof after->sites);
  after->chosen = calloc(capacity, sizeof *after->chosen);
  enum kcp_status status = kcp_points_allocate(capacity, 3, &after->sites, error);
  if (status == KCP_OK && after->chosen == NULL)
    status = kcp_out_of_memory(error, "the sites", capacity);
  if (status != KCP_OK) return status;
  const uint64_t count = before->sites.count;
  after->sites.count = count;
  memcpy(after->sites.ids, before->sites.ids, count * sizeof *after->sites.ids);
  memcpy(after->chosen, before->chosen, count * sizeof *after->chosen);
  for (uint32_t j = 0; j < 3; ++j)
    memcpy(kcp_points_column(&after->sites, j), kcp_points_column(&before->sites, j),
           count * sizeof(double));
  return KCP_OK;
}

enum kcp_status kcp_site_changes_apply(const struct kcp_site_changes *changes, int set,
                                       const struct kcp_site_file *before,
                                       struct kcp_site_file *after, bool **kept,
                                       struct kcp_error *error) {
  const uint64_t capacity =
      before->sites.count + 1 + count_changes(changes->add) + count_changes(changes->reweight);
  struct edit edit = {after, calloc(capacity, sizeof(bool))};
  *kept = calloc(before->sites.count + 1, sizeof **kept);
  enum kcp_status status = copy_file(before, capacity, after, error);
  if (status == KCP_OK && (edit.removed == NULL || *kept == NULL))
    status = kcp_out_of_memory(error, "the sites", capacity);
  if (status == KCP_OK)
    status = make_changes(&edit, set, (struct change_cursor){"remove", changes->remove, 0}, error);
  if (status == KCP_OK)
    status =
        make_changes(&edit, set, (struct change_cursor){"reweight", changes->reweight, 1}, error);
  if (status == KCP_OK)
    status = make_changes(&edit, set, (struct change_cursor){"add", changes->add, 3}, error);
  if (status == KCP_OK) {
    for (uint64_t i = 0; i < before->sites.count; ++i) (*kept)[i] = !edit.removed[i];
    drop_removed(&edit);
  }
  free(edit.removed);
  if (status != KCP_OK) {
    kcp_site_file_free(after);
    free(*kept);
    *kept = NULL;
  }
  return status;
}

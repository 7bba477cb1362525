#include "kcp/site_file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/dataset.h"
#include "kcp/repeats.h"

/* Squares of coordinates and weights, and their quotients, stay within binary64. */
#define LARGEST_COORDINATE 1e75

#define COLUMN_PREFIX "column:"

static const char *column_of(const struct kcp_site_file_options *options) {
  const size_t length = strlen(COLUMN_PREFIX);
  if (options->select == NULL || strncmp(options->select, COLUMN_PREFIX, length) != 0) return NULL;
  return options->select + length;
}

/* --- the points ------------------------------------------------------------------------------- */

static enum kcp_status open_with(const char *path, const struct kcp_site_file_options *options,
                                 const char *const *attributes, uint32_t count,
                                 struct kcp_dataset **dataset, struct kcp_error *error) {
  const struct kcp_dataset_options reading = {.columns = options->columns,
                                              .text_layout = KCP_TEXT_ID_FIRST,
                                              .attributes = attributes,
                                              .attribute_count = count};
  return kcp_dataset_open(path, &reading, dataset, error);
}

/* Opens it so that the columns are x, y, the weight when there is one, and the chosen column last
 * when one is named. */
static enum kcp_status open_sites(const char *path, const struct kcp_site_file_options *options,
                                  struct kcp_dataset **dataset, bool *has_weights,
                                  struct kcp_error *error) {
  const char *const names[2] = {"weight", column_of(options)};
  enum kcp_status status = open_with(path, options, names, 1, dataset, error);
  if (status != KCP_OK) return status;
  const uint32_t dimensions = kcp_dataset_dimensions(*dataset);
  if (dimensions < 2 || dimensions > 3)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "%s has %" PRIu32
                    " coordinates a record; a site has x, y and a weight (--columns can choose)",
                    path, dimensions);
  *has_weights = dimensions == 3;
  if (names[1] == NULL) return KCP_OK;
  kcp_dataset_close(*dataset);
  *dataset = NULL;
  const uint32_t first = *has_weights ? 0 : 1;
  status = open_with(path, options, names + first, 2 - first, dataset, error);
  if (status == KCP_OK && kcp_dataset_dimensions(*dataset) != dimensions + 1)
    status = kcp_fail(error, KCP_BAD_INPUT, "--%s: %s has no column '%s'", options->select_flag,
                      path, names[1]);
  return status;
}

static enum kcp_status check_ids(const struct kcp_site_file *file, struct kcp_error *error) {
  uint64_t repeats = 0;
  enum kcp_status status = kcp_count_repeated_ids(&file->sites, &repeats, error);
  if (status != KCP_OK || repeats == 0) return status;
  return kcp_fail(error, KCP_BAD_INPUT,
                  "%s: %" PRIu64 " site%s the id of an earlier one; ids of sites are unique",
                  file->path, repeats, repeats == 1 ? " has" : "s have");
}

static enum kcp_status check_numbers(const struct kcp_site_file *file, struct kcp_error *error) {
  const struct kcp_points *sites = &file->sites;
  for (uint64_t i = 0; i < sites->count; ++i) {
    const double weight = kcp_points_column(sites, 2)[i];
    for (uint32_t j = 0; j < 2; ++j)
      if (fabs(kcp_points_column(sites, j)[i]) > LARGEST_COORDINATE)
        return kcp_fail(error, KCP_BAD_INPUT,
                        "%s: %c of record %" PRIu64 " (id %" PRIu64
                        ") is %g; influence regions "
                        "take coordinates up to %g",
                        file->path, "xy"[j], i, sites -> ids[i], kcp_points_column(sites, j)[i],
                        LARGEST_COORDINATE);
    if (!(weight > 0))
      return kcp_fail(error, KCP_BAD_INPUT,
                      "%s: the weight of record %" PRIu64 " (id %" PRIu64
                      ") is %g; weights are more than 0 (--site-weights equal ignores them)",
                      file->path, i, sites->ids[i], weight);
    if (weight > KCP_LARGEST_SITE_WEIGHT || weight < KCP_SMALLEST_SITE_WEIGHT)
      return kcp_fail(
          error, KCP_BAD_INPUT,
          "%s: the weight of record %" PRIu64 " (id %" PRIu64 ") is %g, not between %g and %g",
          file->path, i, sites->ids[i], weight, KCP_SMALLEST_SITE_WEIGHT, KCP_LARGEST_SITE_WEIGHT);
  }
  return KCP_OK;
}

static void set_equal_weights(struct kcp_points *sites) {
  for (uint64_t i = 0; i < sites->count; ++i) kcp_points_column(sites, 2)[i] = 1;
}

/* Reads all records; `mark` is the column that chooses, when one is named. */
static enum kcp_status read_sites(struct kcp_dataset *dataset,
                                  const struct kcp_site_file_options *options,
                                  struct kcp_site_file *file, struct kcp_error *error) {
  const uint64_t count = kcp_dataset_count(dataset);
  const uint32_t dimensions = kcp_dataset_dimensions(dataset);
  struct kcp_points records = {0};
  enum kcp_status status = kcp_points_allocate(count, dimensions, &records, error);
  if (status == KCP_OK) status = kcp_points_allocate(count, 3, &file->sites, error);
  if (status == KCP_OK) status = kcp_dataset_read(dataset, 0, count, &records, error);
  file->chosen = calloc(count + 1, sizeof *file->chosen);
  if (status == KCP_OK && file->chosen == NULL)
    status = kcp_out_of_memory(error, "the sites", count);
  if (status != KCP_OK) goto cleanup;
  file->sites.count = count;
  memcpy(file->sites.ids, records.ids, count * sizeof *records.ids);
  for (uint32_t j = 0; j < 3; ++j)
    if (j < 2 || file->has_weights)
      memcpy(kcp_points_column(&file->sites, j), kcp_points_column(&records, j),
             count * sizeof(double));
  if (!file->has_weights || options->equal_weights) set_equal_weights(&file->sites);
  for (uint64_t i = 0; i < count; ++i)
    file->chosen[i] =
        options->select == NULL ||
        (column_of(options) != NULL && kcp_points_column(&records, dimensions - 1)[i] != 0);

cleanup:
  kcp_points_free(&records);
  return status;
}

/* --- the choice ------------------------------------------------------------------------------- */

struct id_place {
  uint64_t id, place;
};

static int compare_ids(const void *a, const void *b) {
  const uint64_t left = ((const struct id_place *)a)->id, right = ((const struct id_place *)b)->id;
  return left < right ? -1 : left > right;
}

static bool is_separator(char c) {
  return c == ',' || c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ';';
}

static int length_of_word(const char *text) {
  int length = 0;
  while (text[length] != '\0' && !is_separator(text[length]) && length < 40) ++length;
  return length;
}

/* Chooses the sites whose ids are listed in `text`. */
static enum kcp_status choose_listed(const char *text, const struct kcp_site_file_options *options,
                                     struct kcp_site_file *file, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  const uint64_t count = file->sites.count;
  struct id_place *places = malloc((count + 1) * sizeof *places);
  if (places == NULL) return kcp_out_of_memory(error, "the sites", count * sizeof *places);
  for (uint64_t i = 0; i < count; ++i) places[i] = (struct id_place){file->sites.ids[i], i};
  qsort(places, count, sizeof *places, compare_ids);
  while (status == KCP_OK) {
    char *end;
    while (is_separator(*text)) ++text;
    if (*text == '\0') break;
    errno = 0;
    const struct id_place wanted = {*text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0, 0};
    if (!(*text >= '0' && *text <= '9') || errno != 0 || (*end != '\0' && !is_separator(*end))) {
      status = kcp_fail(error, KCP_BAD_INPUT, "--%s: '%.*s' is no id", options->select_flag,
                        length_of_word(text), text);
      break;
    }
    text = end;
    const struct id_place *found = bsearch(&wanted, places, count, sizeof *places, compare_ids);
    if (found == NULL)
      status = kcp_fail(error, KCP_BAD_INPUT, "--%s: %s has no site of id %" PRIu64,
                        options->select_flag, file->path, wanted.id);
    else
      file->chosen[found->place] = true;
  }
  free(places);
  return status;
}

/* The text of a file, to be freed. */
static enum kcp_status read_text(const char *path, char **text, struct kcp_error *error) {
  FILE *stream = fopen(path, "rb");
  size_t used = 0, capacity = 4096;
  *text = NULL;
  if (stream == NULL) return kcp_fail(error, KCP_BAD_INPUT, "%s: %s", path, strerror(errno));
  enum kcp_status status = KCP_OK;
  for (;;) {
    char *larger = realloc(*text, capacity + 1);
    if (larger == NULL) {
      status = kcp_out_of_memory(error, "a list of ids", capacity);
      break;
    }
    *text = larger;
    used += fread(*text + used, 1, capacity - used, stream);
    (*text)[used] = '\0';
    if (used < capacity) break;
    capacity *= 2;
  }
  if (status == KCP_OK && ferror(stream))
    status = kcp_fail(error, KCP_BAD_INPUT, "%s: cannot be read", path);
  fclose(stream);
  return status;
}

/* A list of ids has digits and commas alone; else it is a file's name. */
static bool is_list(const char *select) {
  return strspn(select, "0123456789,") == strlen(select);
}

static enum kcp_status choose(const struct kcp_site_file_options *options,
                              struct kcp_site_file *file, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  char *text = NULL;
  if (options->select != NULL && column_of(options) == NULL) {
    if (!is_list(options->select)) status = read_text(options->select, &text, error);
    if (status == KCP_OK)
      status = choose_listed(text != NULL ? text : options->select, options, file, error);
  }
  free(text);
  if (status != KCP_OK) return status;
  for (uint64_t i = 0; i < file->sites.count; ++i) file->chosen_count += file->chosen[i];
  if (file->chosen_count == 0 && options->select != NULL)
    return kcp_fail(error, KCP_BAD_INPUT, "--%s %s: no site of %s is chosen", options->select_flag,
                    options->select, file->path);
  return KCP_OK;
}

/* --- all -------------------------------------------------------------------------------------- */

enum kcp_status kcp_site_file_read(const char *path, const struct kcp_site_file_options *options,
                                   struct kcp_site_file *file, struct kcp_error *error) {
  struct kcp_dataset *dataset = NULL;
  memset(file, 0, sizeof *file);
  file->path = path;
  enum kcp_status status = open_sites(path, options, &dataset, &file->has_weights, error);
  if (status != KCP_OK) goto cleanup;
  file->format = kcp_dataset_format(dataset);
  file->file_bytes = kcp_dataset_file_bytes(dataset);
  if (kcp_dataset_count(dataset) >= UINT32_MAX) {
    status = kcp_fail(error, KCP_BAD_INPUT, "%s: influence regions take fewer than 2^32 - 1 sites",
                      path);
    goto cleanup;
  }
  status = read_sites(dataset, options, file, error);
  if (status == KCP_OK) status = check_ids(file, error);
  if (status == KCP_OK) status = check_numbers(file, error);
  if (status == KCP_OK) status = choose(options, file, error);

cleanup:
  kcp_dataset_close(dataset);
  if (status != KCP_OK) kcp_site_file_free(file);
  return status;
}

void kcp_site_file_free(struct kcp_site_file *file) {
  kcp_points_free(&file->sites);
  free(file->chosen);
  memset(file, 0, sizeof *file);
}

enum kcp_status kcp_site_file_check_domain(const struct kcp_site_file *file,
                                           const struct kcp_domain *domain,
                                           struct kcp_error *error) {
  const double *x = kcp_points_column(&file->sites, 0), *y = kcp_points_column(&file->sites, 1);
  for (uint64_t i = 0; i < file->sites.count; ++i) {
    if (x[i] >= domain->x0 && x[i] <= domain->x1 && y[i] >= domain->y0 && y[i] <= domain->y1)
      continue;
    return kcp_fail(error, KCP_BAD_INPUT,
                    "%s: record %" PRIu64 " (id %" PRIu64
                    ") at (%.17g, %.17g) lies outside the domain %.17g,%.17g,%.17g,%.17g; sites "
                    "lie within it",
                    file->path, i, file->sites.ids[i], x[i], y[i], domain->x0, domain->y0,
                    domain->x1, domain->y1);
  }
  return KCP_OK;
}

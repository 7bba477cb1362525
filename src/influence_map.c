#include "kcp/influence_map.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kcp/picture.h"

#define LONGEST_SIDE 1000 /* pixels of a picture */
#define NO_SITE UINT64_MAX

static const struct kcp_colour black = {0, 0, 0}, grey = {128, 128, 128}, red = {214, 39, 40},
                               blue = {31, 87, 200}, green = {20, 160, 60}, orange = {255, 140, 0};

/* --- what to show ----------------------------------------------------------------------------- */

static enum kcp_status find_site(const struct kcp_site_file *file, uint64_t id, uint64_t *place,
                                 struct kcp_error *error) {
  for (*place = 0; *place < file->sites.count; ++*place)
    if (file->sites.ids[*place] == id) return KCP_OK;
  return kcp_fail(error, KCP_BAD_INPUT, "--map-show: %s has no site of id %" PRIu64, file->path,
                  id);
}

/* An id at `*text`, which is left behind it. */
static bool read_id(const char **text, uint64_t *id) {
  char *end;
  if (**text < '0' || **text > '9') return false;
  errno = 0;
  *id = strtoull(*text, &end, 10);
  *text = end;
  return errno == 0;
}

static bool skip_word(const char **text, const char *word) {
  const size_t length = strlen(word);
  if (strncmp(*text, word, length) != 0) return false;
  *text += length;
  return true;
}

enum kcp_status kcp_map_subject_find(const char *text, const struct kcp_site_file *const files[2],
                                     struct kcp_map_subject *subject, struct kcp_error *error) {
  const char *at = text;
  uint64_t ids[2] = {0, 0};
  bool wanted[2] = {false, false};
  subject->sites[0] = subject->sites[1] = NO_SITE;
  if (text == NULL) return KCP_OK;
  bool right = false;
  if (skip_word(&at, "pair:"))
    right = wanted[0] = wanted[1] =
        read_id(&at, &ids[0]) && skip_word(&at, ",") && read_id(&at, &ids[1]);
  else if (skip_word(&at, "p:"))
    right = wanted[0] = read_id(&at, &ids[0]);
  else if (skip_word(&at, "q:"))
    right = wanted[1] = read_id(&at, &ids[1]);
  if (!right || *at != '\0')
    return kcp_fail(error, KCP_BAD_INPUT, "--map-show takes p:ID, q:ID or pair:ID1,ID2, not '%s'",
                    text);
  enum kcp_status status = KCP_OK;
  for (int set = 0; set < 2 && status == KCP_OK; ++set)
    if (wanted[set]) status = find_site(files[set], ids[set], &subject->sites[set], error);
  return status;
}

static bool has_ending(const char *path, const char *ending) {
  const char *dot = strrchr(path, '.');
  return dot != NULL && strcasecmp(dot, ending) == 0;
}

enum kcp_status kcp_map_check_path(const char *path, struct kcp_error *error) {
  if (has_ending(path, ".png")) return kcp_picture_png_check(error);
  if (has_ending(path, ".asc")) return KCP_OK;
  return kcp_fail(error, KCP_BAD_INPUT,
                  "--map %s: a map is written as .png or .asc; end the name so", path);
}

/* --- regions ---------------------------------------------------------------------------------- */

/* Whether fewer than k groups' sites are closer to (x, y) than the group. */
static bool is_in_region(const struct kcp_site_groups *set, uint32_t group, uint64_t k, double x,
                         double y) {
  const double own =
      kcp_weighted_rank(set->x[group] - x, set->y[group] - y, set->squared_weight[group]);
  uint64_t closer = 0;
  for (uint64_t i = 0; i < set->count && closer < k; ++i)
    if (kcp_weighted_rank(set->x[i] - x, set->y[i] - y, set->squared_weight[i]) < own)
      closer += set->multiplicity[i];
  return closer < k;
}

/* A bit for each set, a byte a cell: 1 in the region of the subject of P, 2 in that of Q. */
static uint8_t *find_regions(const struct kcp_influence_plan *plan,
                             const struct kcp_map_subject *subject) {
  const struct kcp_influence_grid *grid = &plan->grid;
  uint8_t *regions = calloc((uint64_t)grid->rows * grid->columns, 1);
  if (regions == NULL) return NULL;
#pragma omp parallel for schedule(dynamic)
  for (uint32_t row = 0; row < grid->rows; ++row)
    for (uint32_t column = 0; column < grid->columns; ++column) {
      const struct kcp_cell cell = {column, column + 1.0, row, row + 1.0};
      const double x = kcp_cell_centre_x(grid, cell), y = kcp_cell_centre_y(grid, cell);
      for (int set = 0; set < 2; ++set)
        if (subject->sites[set] != NO_SITE &&
            is_in_region(plan->sets[set], plan->sets[set]->group_of[subject->sites[set]],
                         plan->k[set], x, y))
          regions[(uint64_t)row * grid->columns + column] |= (uint8_t)(1 << set);
    }
  return regions;
}

/* --- a picture -------------------------------------------------------------------------------- */

/* A picture of the domain, and where its points are in it. */
struct canvas {
  struct kcp_picture picture;
  const struct kcp_influence_grid *grid;
  double scale; /* pixels a unit */
};

static enum kcp_status open_canvas(const struct kcp_influence_grid *grid, struct canvas *canvas,
                                   struct kcp_error *error) {
  const double width = grid->step_x * grid->columns, height = grid->step_y * grid->rows;
  canvas->grid = grid;
  canvas->scale = LONGEST_SIDE / fmax(width, height);
  return kcp_picture_create((uint32_t)fmax(1, round(width * canvas->scale)),
                            (uint32_t)fmax(1, round(height * canvas->scale)), &canvas->picture,
                            error);
}

/* The cell of the grid under a pixel, as its number. */
static uint64_t cell_under(const struct canvas *canvas, uint32_t x, uint32_t y) {
  const struct kcp_influence_grid *grid = canvas->grid;
  const double column = (x + 0.5) / canvas->picture.width * grid->columns;
  const double row = (1 - (y + 0.5) / canvas->picture.height) * grid->rows;
  const uint64_t last_column = grid->columns - 1, last_row = grid->rows - 1;
  const uint64_t i = (uint64_t)column < last_column ? (uint64_t)column : last_column;
  const uint64_t j = (uint64_t)row < last_row ? (uint64_t)row : last_row;
  return j * grid->columns + i;
}

static void paint_cells(struct canvas *canvas, const struct kcp_cell_weights *weights,
                        const uint8_t *regions) {
  static const struct kcp_colour dark = {185, 185, 185}, light = {250, 250, 250};
  const uint64_t count = (uint64_t)canvas->grid->rows * canvas->grid->columns;
  uint64_t densest = 1;
  for (uint64_t i = 0; i < count; ++i)
    if (weights->cells[i] > densest) densest = weights->cells[i];
  const struct kcp_colour colours[4] = {black, blue, red, green};
  for (uint32_t y = 0; y < canvas->picture.height; ++y)
    for (uint32_t x = 0; x < canvas->picture.width; ++x) {
      const uint64_t cell = cell_under(canvas, x, y);
      const struct kcp_colour ground =
          kcp_colour_blend(dark, light, (double)weights->cells[cell] / (double)densest);
      const uint8_t region = regions[cell];
      canvas->picture.pixels[(uint64_t)y * canvas->picture.width + x] =
          region == 0 ? ground : kcp_colour_blend(ground, colours[region], region == 3 ? 0.6 : 0.3);
    }
}

typedef void (*draw_shape)(struct kcp_picture *picture, int64_t x, int64_t y, int radius,
                           struct kcp_colour fill, struct kcp_colour outline);

static void draw_site(struct canvas *canvas, const struct kcp_site_file *file, uint64_t site,
                      draw_shape draw, int radius, struct kcp_colour fill) {
  const double x = kcp_points_column(&file->sites, 0)[site] - canvas->grid->x0;
  const double y = kcp_points_column(&file->sites, 1)[site] - canvas->grid->y0;
  draw(&canvas->picture, (int64_t)(x * canvas->scale),
       (int64_t)canvas->picture.height - 1 - (int64_t)(y * canvas->scale), radius, fill, black);
}

/* Small when there are many. */
static int radius_for(uint64_t sites) {
  return sites <= 1000 ? 4 : sites <= 10000 ? 2 : 1;
}

static int compare_ids(const void *a, const void *b) {
  const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
  return left < right ? -1 : left > right;
}

/* The sites of P in the answer for the least W0, by place in the file. NULL when memory is short.
 */
static bool *find_answers(const struct kcp_influence_result *result) {
  const struct kcp_points *sites = &result->files[0]->sites;
  const struct kcp_min_weights *weights = &result->options->min_weights;
  const double least = weights->count > 0 ? weights->values[0] : 0;
  bool *answers = calloc(sites->count + 1, sizeof *answers);
  uint64_t *ids = malloc((result->row_count + 1) * sizeof *ids);
  uint64_t count = 0;
  if (answers != NULL && ids != NULL) {
    for (uint64_t i = 0; i < result->row_count; ++i)
      if (kcp_influence_reaches(&result->rows[i], least)) ids[count++] = result->rows[i].id1;
    qsort(ids, count, sizeof *ids, compare_ids);
    for (uint64_t i = 0; i < sites->count; ++i)
      answers[i] = bsearch(&sites->ids[i], ids, count, sizeof *ids, compare_ids) != NULL;
  } else {
    free(answers);
    answers = NULL;
  }
  free(ids);
  return answers;
}

static void draw_sites(struct canvas *canvas, const struct kcp_influence_result *result,
                       const bool *answers, const struct kcp_map_subject *subject) {
  const struct kcp_site_file *p = result->files[0], *q = result->files[1];
  const int least = radius_for(p->sites.count + q->sites.count);
  for (int chosen = 0; chosen < 2; ++chosen) {
    const int radius = chosen ? least + least / 2 : least;
    for (uint64_t i = 0; i < p->sites.count; ++i)
      if (p->chosen[i] == (chosen == 1))
        draw_site(canvas, p, i, kcp_picture_square, radius,
                  answers[i] ? orange
                  : chosen   ? grey
                             : red);
    for (uint64_t i = 0; i < q->sites.count; ++i)
      if (q->chosen[i] == (chosen == 1))
        draw_site(canvas, q, i, kcp_picture_triangle, radius, chosen ? green : blue);
  }
  for (int set = 0; set < 2; ++set)
    if (subject->sites[set] != NO_SITE)
      draw_site(canvas, result->files[set], subject->sites[set],
                set == 0 ? kcp_picture_square : kcp_picture_triangle, 2 * least, black);
}

static enum kcp_status write_picture(FILE *stream, const struct kcp_influence_plan *plan,
                                     const struct kcp_influence_result *result,
                                     const struct kcp_map_subject *subject, const uint8_t *regions,
                                     struct kcp_error *error) {
  struct canvas canvas;
  enum kcp_status status = open_canvas(&plan->grid, &canvas, error);
  if (status != KCP_OK) return status;
  bool *answers = find_answers(result);
  if (answers == NULL) {
    status = kcp_out_of_memory(error, "a picture", result->files[0]->sites.count);
  } else {
    paint_cells(&canvas, plan->weights, regions);
    draw_sites(&canvas, result, answers, subject);
    status = kcp_picture_write_png(&canvas.picture, stream, error);
  }
  free(answers);
  kcp_picture_free(&canvas.picture);
  return status;
}

/* --- a grid ----------------------------------------------------------------------------------- */

static void write_grid(FILE *stream, const struct kcp_influence_grid *grid,
                       const uint8_t *regions) {
  fprintf(stream, "ncols %" PRIu32 "\nnrows %" PRIu32 "\nxllcorner %.17g\nyllcorner %.17g\n",
          grid->columns, grid->rows, grid->x0, grid->y0);
  if (grid->step_x == grid->step_y)
    fprintf(stream, "cellsize %.17g\n", grid->step_x);
  else
    fprintf(stream, "dx %.17g\ndy %.17g\n", grid->step_x, grid->step_y);
  for (uint32_t row = grid->rows; row-- > 0;)
    for (uint32_t column = 0; column < grid->columns; ++column)
      fprintf(stream, "%d%c", regions[(uint64_t)row * grid->columns + column],
              column + 1 < grid->columns ? ' ' : '\n');
}

enum kcp_status kcp_map_write(FILE *stream, const char *path, const struct kcp_influence_plan *plan,
                              const struct kcp_influence_result *result,
                              const struct kcp_map_subject *subject, struct kcp_error *error) {
  uint8_t *regions = find_regions(plan, subject);
  enum kcp_status status = KCP_OK;
  if (regions == NULL)
    return kcp_out_of_memory(error, "a map", (uint64_t)plan->grid.rows * plan->grid.columns);
  if (has_ending(path, ".png"))
    status = write_picture(stream, plan, result, subject, regions, error);
  else
    write_grid(stream, &plan->grid, regions);
  free(regions);
  return status;
}

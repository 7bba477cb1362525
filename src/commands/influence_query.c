/* The driver of a query for common influence regions: sites and density are read, the search runs,
 * and its answer is checked, written and told about. */
#include "kcp/influence_query.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/backend_choice.h"
#include "kcp/commands.h"
#include "kcp/influence_map.h"
#include "kcp/influence_what_if.h"
#include "kcp/measured_runs.h"
#include "kcp/output_file.h"
#include "query_ending.h"

/* A domain narrower than this share of the largest coordinate has no exact grid. */
#define NARROWEST_DOMAIN 1e-12

struct influence_query {
  const struct kcp_request *request;
  struct kcp_site_file files[2];    /* owned */
  struct kcp_site_groups groups[2]; /* owned */
  struct kcp_raster raster;         /* owned */
  struct kcp_cell_weights weights;  /* owned */
  struct kcp_influence_plan plan;
  struct kcp_influence_goal goal;
  const struct kcp_influence_engine *engine;
  struct kcp_influence_search *search;        /* owned */
  struct kcp_influence_answer answer;         /* owned */
  struct kcp_influence_result facts;          /* its rows are owned */
  struct kcp_influence_difference difference; /* of a what-if; its rows are owned */
  struct kcp_result result;                   /* owned */
  struct kcp_progress progress;
  struct kcp_output_file out; /* --out */
  struct kcp_query_ending ending;
  struct kcp_output_file map;     /* --map */
  struct kcp_map_subject subject; /* --map-show */
  double read_s;
};

bool kcp_asks_for_influence(const struct kcp_request *request) {
  const struct kcp_algorithm *algorithm = kcp_algorithm_find(request->algorithm);
  return algorithm != NULL && algorithm->query == KCP_QUERY_INFLUENCE;
}

static enum kcp_influence_answer_kind kind_of(const struct kcp_request *request) {
  return *(const enum kcp_influence_answer_kind *)kcp_algorithm_find(request->algorithm)->variant;
}

static bool same_path(const char *a, const char *b) {
  return a != NULL && b != NULL && strcmp(a, b) == 0;
}

static enum kcp_status check_map(const struct kcp_request *request, struct kcp_error *error) {
  const char *map = request->influence.map_path;
  if (map == NULL)
    return request->influence.map_show == NULL
               ? KCP_OK
               : kcp_fail(error, KCP_BAD_INPUT, "--map-show needs --map FILE.png or FILE.asc");
  if (same_path(map, request->out_path) || same_path(map, request->json_path) ||
      same_path(map, request->inputs[0]) || same_path(map, request->inputs[1]) ||
      same_path(map, request->influence.density_path))
    return kcp_fail(error, KCP_BAD_INPUT, "--map %s: another file of this run has that name", map);
  return kcp_map_check_path(map, error);
}

static bool asks_what_if(const struct kcp_request *request) {
  const struct kcp_influence_options *options = &request->influence;
  return options->add != NULL || options->remove != NULL || options->reweight != NULL;
}

static enum kcp_status check_what_if(const struct kcp_request *request, struct kcp_error *error) {
  const struct kcp_influence_options *options = &request->influence;
  if (!asks_what_if(request)) return KCP_OK;
  if (options->tolerance > 0 || options->decide || options->list_areas ||
      options->map_path != NULL || options->min_weights.count > 1)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "--add, --remove and --reweight compare answers on the grid for one W0: leave "
                    "out --tolerance, --decide, --list-areas, --map and further W0");
  return KCP_OK;
}

/* What can be said before a file is opened. */
static enum kcp_status check_request(const struct kcp_request *request, struct kcp_error *error) {
  const struct kcp_influence_options *options = &request->influence;
  if (request->self)
    return kcp_fail(error, KCP_BAD_INPUT, "%s takes two files, P and Q, not --self",
                    request->algorithm);
  if (kind_of(request) == KCP_INFLUENCE_PARTNERS && options->min_weights.count == 0 &&
      !options->list_areas)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "%s needs --min-weight W0, the least weighted area of every pair",
                    request->algorithm);
  if (options->decide && options->min_weights.count == 0)
    return kcp_fail(error, KCP_BAD_INPUT, "--decide needs --min-weight W0 to decide about");
  enum kcp_status status = check_what_if(request, error);
  return status == KCP_OK ? check_map(request, error) : status;
}

/* --- input ------------------------------------------------------------------------------------ */

static enum kcp_status read_sites(struct influence_query *query, struct kcp_error *error) {
  const struct kcp_request *request = query->request;
  const struct kcp_influence_options *options = &request->influence;
  const char *const selections[2] = {options->p_select, options->q_select};
  static const char *const flags[2] = {"p-select", "q-select"};
  for (int set = 0; set < 2; ++set) {
    const struct kcp_site_file_options reading = {
        .columns = request->columns,
        .select = selections[set],
        .select_flag = flags[set],
        .equal_weights = options->site_weights == KCP_WEIGHTS_EQUAL};
    enum kcp_status status =
        kcp_site_file_read(request->inputs[set], &reading, &query->files[set], error);
    if (status != KCP_OK) return status;
  }
  return KCP_OK;
}

static bool is_empty(const struct influence_query *query) {
  return query->files[0].sites.count == 0 || query->files[1].sites.count == 0;
}

/* The box around all sites. */
static struct kcp_domain domain_of_sites(const struct influence_query *query) {
  struct kcp_domain domain = {INFINITY, INFINITY, -INFINITY, -INFINITY};
  for (int set = 0; set < 2; ++set) {
    const struct kcp_points *sites = &query->files[set].sites;
    for (uint64_t i = 0; i < sites->count; ++i) {
      const double x = kcp_points_column(sites, 0)[i], y = kcp_points_column(sites, 1)[i];
      domain.x0 = fmin(domain.x0, x);
      domain.x1 = fmax(domain.x1, x);
      domain.y0 = fmin(domain.y0, y);
      domain.y1 = fmax(domain.y1, y);
    }
  }
  return domain;
}

static enum kcp_status read_density(struct influence_query *query, struct kcp_error *error) {
  const struct kcp_influence_options *options = &query->request->influence;
  if (options->density_path == NULL) return KCP_OK;
  enum kcp_status status =
      kcp_raster_read(options->density_path, options->domain.given ? &options->domain.domain : NULL,
                      &query->raster, error);
  if (status == KCP_OK)
    kcp_raster_set_kind(&query->raster, (enum kcp_density_kind)options->density_is);
  return status;
}

static enum kcp_status choose_domain(struct influence_query *query, struct kcp_error *error) {
  const struct kcp_influence_options *options = &query->request->influence;
  struct kcp_domain *domain = &query->facts.domain;
  *domain = options->domain.given           ? options->domain.domain
            : options->density_path != NULL ? query->raster.extent
                                            : domain_of_sites(query);
  const double largest =
      fmax(fmax(fabs(domain->x0), fabs(domain->x1)), fmax(fabs(domain->y0), fabs(domain->y1)));
  const double narrowest = fmin(domain->x1 - domain->x0, domain->y1 - domain->y0);
  if (!(narrowest > NARROWEST_DOMAIN * largest) || narrowest < 1e-75)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "the domain %.17g,%.17g,%.17g,%.17g is too narrow; give one with --domain "
                    "x0,y0,x1,y1",
                    domain->x0, domain->y0, domain->x1, domain->y1);
  for (int set = 0; set < 2; ++set) {
    enum kcp_status status = kcp_site_file_check_domain(&query->files[set], domain, error);
    if (status != KCP_OK) return status;
  }
  return KCP_OK;
}

/* --- plan ------------------------------------------------------------------------------------- */

static enum kcp_status choose_k(struct influence_query *query, struct kcp_error *error) {
  static const char *const flags[2] = {"k", "k2"};
  const struct kcp_request *request = query->request;
  query->plan.k[0] = request->k;
  query->plan.k[1] = request->influence.k2 > 0 ? request->influence.k2 : request->k;
  for (int set = 0; set < 2; ++set) {
    query->facts.k[set] = query->plan.k[set];
    if (query->plan.k[set] > query->files[set].sites.count)
      return kcp_fail(error, KCP_BAD_INPUT,
                      "--%s %" PRIu64 " is more than the %" PRIu64 " site%s of %s%s", flags[set],
                      query->plan.k[set], query->files[set].sites.count,
                      query->files[set].sites.count == 1 ? "" : "s", query->files[set].path,
                      set == 1 && request->influence.k2 == 0 ? " (as --k; --k2 is that of Q)" : "");
  }
  return KCP_OK;
}

static double weight_of_domain(const struct kcp_raster *raster, const struct kcp_domain *domain) {
  const struct kcp_cell place = {domain->x0, domain->x1, domain->y0, domain->y1};
  return kcp_raster_weight(raster, place);
}

static enum kcp_status make_grid(struct influence_query *query, struct kcp_error *error) {
  const struct kcp_influence_options *options = &query->request->influence;
  const struct kcp_domain *domain = &query->facts.domain;
  const struct kcp_raster *raster = options->density_path != NULL ? &query->raster : NULL;
  query->plan.grid =
      (struct kcp_influence_grid){.x0 = domain->x0,
                                  .y0 = domain->y0,
                                  .step_x = (domain->x1 - domain->x0) / options->grid.columns,
                                  .step_y = (domain->y1 - domain->y0) / options->grid.rows,
                                  .columns = options->grid.columns,
                                  .rows = options->grid.rows};
  enum kcp_status status = kcp_cell_weights_make(&query->plan.grid, raster, &query->weights, error);
  if (status != KCP_OK) return status;
  query->plan.weights = &query->weights;
  query->facts.total_weight = kcp_cell_weights_real(&query->weights, query->weights.total);
  if (raster != NULL) {
    query->facts.nodata_count = raster->nodata_count;
    query->facts.outside_weight =
        weight_of_domain(raster, &raster->extent) - weight_of_domain(raster, domain);
  }
  return KCP_OK;
}

/* The least number of units that comes to at least `weight`. */
static uint64_t units_reaching(const struct kcp_cell_weights *weights, double weight) {
  uint64_t low = 0, high = weights->total + 1;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (kcp_cell_weights_real(weights, middle) >= weight)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static void choose_goal(struct influence_query *query) {
  const struct kcp_influence_options *options = &query->request->influence;
  const bool partners = query->facts.kind == KCP_INFLUENCE_PARTNERS && !options->list_areas;
  query->goal = (struct kcp_influence_goal){.has_tolerance = options->tolerance > 0,
                                            .tolerance = options->tolerance,
                                            .decide = options->decide,
                                            .thresholds = options->min_weights.values,
                                            .threshold_count = options->min_weights.count,
                                            .partners = partners};
  query->plan.method = (enum kcp_influence_method)options->method;
  if (partners && options->min_weights.count == 1 && !asks_what_if(query->request))
    query->plan.stop_below = units_reaching(&query->weights, options->min_weights.values[0]);
}

static enum kcp_status choose_device(struct influence_query *query, struct kcp_error *error) {
  struct kcp_backend_choice choice;
  struct kcp_result *result = &query->result;
  enum kcp_status status = kcp_choose_backend(query->request, &choice, error);
  if (status != KCP_OK) return status;
  result->algorithm = kcp_algorithm_find(query->request->algorithm);
  result->backend = choice.backend;
  result->device = choice.device;
  result->no_gpu = choice.no_gpu;
  query->engine = choice.backend->influence;
  return KCP_OK;
}

static void take_facts(struct influence_query *query) {
  struct kcp_influence_result *facts = &query->facts;
  facts->kind = kind_of(query->request);
  facts->options = &query->request->influence;
  query->result.influence = facts;
  query->result.dataset_count = 2;
  for (int set = 0; set < 2; ++set) {
    const struct kcp_site_file *file = &query->files[set];
    facts->files[set] = file;
    query->result.datasets[set] = (struct kcp_dataset_facts){.path = file->path,
                                                             .format = file->format,
                                                             .count = file->sites.count,
                                                             .dimensions = 2,
                                                             .file_bytes = file->file_bytes};
  }
}

static enum kcp_status make_plan(struct influence_query *query, struct kcp_error *error) {
  const double started = kcp_now();
  enum kcp_status status = check_request(query->request, error);
  if (status == KCP_OK) status = choose_device(query, error);
  if (status == KCP_OK) status = read_sites(query, error);
  if (status != KCP_OK) return status;
  take_facts(query);
  status = kcp_map_subject_find(query->request->influence.map_show, query->facts.files,
                                &query->subject, error);
  if (status == KCP_OK) status = read_density(query, error);
  if (status != KCP_OK || is_empty(query)) return status;
  status = choose_domain(query, error);
  if (status == KCP_OK) status = choose_k(query, error);
  if (status == KCP_OK) status = make_grid(query, error);
  for (int set = 0; set < 2 && status == KCP_OK; ++set) {
    query->plan.sets[set] = &query->groups[set];
    status = kcp_site_groups_make(&query->files[set].sites, query->files[set].chosen,
                                  &query->groups[set], error);
  }
  if (status != KCP_OK) return status;
  choose_goal(query);
  query->read_s = kcp_now() - started;
  return query->engine->create(&query->plan, &query->result.device, &query->search, error);
}

/* --- run -------------------------------------------------------------------------------------- */

static enum kcp_status open_outputs(struct influence_query *query, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  if (query->request->out_path != NULL)
    status = kcp_output_file_open(query->request->out_path, &query->out, error);
  if (status == KCP_OK) status = kcp_query_open_report(&query->ending, error);
  if (status == KCP_OK && query->request->influence.map_path != NULL && !is_empty(query))
    status = kcp_output_file_open(query->request->influence.map_path, &query->map, error);
  return status;
}

/* The rows of all pairs, and what the changes make of them. */
static enum kcp_status compare_variant(struct influence_query *query,
                                       struct kcp_measurement *measurement,
                                       struct kcp_error *error) {
  const struct kcp_influence_options *options = &query->request->influence;
  const struct kcp_site_changes changes = {options->add, options->remove, options->reweight};
  const enum kcp_influence_answer_kind kind = query->facts.kind;
  free(query->difference.rows);
  query->difference.rows = NULL;
  query->facts.kind = KCP_INFLUENCE_PAIRS;
  enum kcp_status status =
      kcp_influence_take_rows(&query->plan, &query->answer.sums, &query->facts, error);
  query->facts.kind = kind;
  if (status != KCP_OK) return status;
  status = kcp_influence_what_if(query->engine, &query->result.device, &query->plan, &query->facts,
                                 &changes, &query->difference, measurement, error);
  query->facts.difference = &query->difference;
  if (kind == KCP_INFLUENCE_PARTNERS)
    query->facts.answer_counts[0] = query->difference.partners_before;
  return status;
}

/* One run into query->answer, and its rows. */
static enum kcp_status run_once(void *context, uint64_t number, struct kcp_measurement *measurement,
                                uint64_t *checksum, struct kcp_error *error) {
  struct influence_query *query = context;
  const double started = kcp_now();
  (void)number;
  free(query->answer.sums.pairs);
  free(query->facts.rows);
  query->answer.sums.pairs = NULL;
  query->facts.rows = NULL;
  enum kcp_status status =
      kcp_influence_run(query->engine, query->search, &query->plan, &query->goal, &query->answer,
                        measurement, &query->progress, error);
  measurement->phase_s[KCP_PHASE_READ] = query->read_s;
  if (status != KCP_OK) return status;
  query->facts.depth = query->answer.depth;
  query->facts.undecided = query->answer.undecided;
  query->facts.widest = query->answer.widest;
  if (asks_what_if(query->request))
    status = compare_variant(query, measurement, error);
  else
    status = kcp_influence_take_rows(&query->plan, &query->answer.sums, &query->facts, error);
  measurement->total_s = query->read_s + kcp_now() - started;
  if (status == KCP_OK) *checksum = kcp_influence_checksum(&query->facts);
  return status;
}

static enum kcp_status search(struct influence_query *query, struct kcp_error *error) {
  struct kcp_result *result = &query->result;
  if (is_empty(query)) return KCP_OK;
  enum kcp_status status = kcp_measure_runs(query->request, result, run_once, query, error);
  kcp_progress_finish(&query->progress);
  if (status == KCP_INTERRUPTED)
    return kcp_fail(error, status, "stopped at %.0f%%; nothing written",
                    100 * query->progress.fraction);
  result->peak_host_bytes = kcp_peak_host_bytes();
  return status;
}

static enum kcp_status verify(void *context, struct kcp_error *error) {
  struct influence_query *query = context;
  struct kcp_influence_result checked = query->facts;
  if (asks_what_if(query->request)) checked.kind = KCP_INFLUENCE_PAIRS; /* as its rows are */
  return kcp_verify_influence(&query->plan, &checked, error);
}

/* --- output ----------------------------------------------------------------------------------- */

static void warn(void *context) {
  const struct influence_query *query = context;
  const struct kcp_influence_options *options = &query->request->influence;
  const struct kcp_influence_result *facts = &query->facts;
  for (int set = 0; set < 2; ++set)
    if (!query->files[set].has_weights && options->site_weights == KCP_WEIGHTS_FROM_FILE)
      kcp_warn(query->request, "%s has no weights; every site weighs 1", query->files[set].path);
  if (facts->outside_weight > 1e-9 * facts->total_weight)
    kcp_warn(query->request, "%s: a weight of %g lies outside the domain and counts nothing",
             options->density_path, facts->outside_weight);
}

static void write_rows(void *context, FILE *stream, bool as_json) {
  const struct influence_query *query = context;
  if (asks_what_if(query->request) && as_json)
    kcp_difference_write_json(stream, &query->facts, &query->difference);
  else if (asks_what_if(query->request))
    kcp_difference_write_csv(stream, &query->facts, &query->difference);
  else if (as_json)
    kcp_influence_write_json(stream, &query->facts);
  else
    kcp_influence_write_csv(stream, &query->facts);
}

static enum kcp_status write_map(struct influence_query *query, struct kcp_error *error) {
  if (query->map.stream == NULL) return KCP_OK;
  enum kcp_status status = kcp_map_write(query->map.stream, query->request->influence.map_path,
                                         &query->plan, &query->facts, &query->subject, error);
  if (status == KCP_OK) status = kcp_output_file_commit(&query->map, error);
  return status;
}

static enum kcp_status write_answer(void *context, struct kcp_error *error) {
  struct influence_query *query = context;
  enum kcp_status status = write_map(query, error);
  return status == KCP_OK
             ? kcp_query_write_answer(query->request, &query->out, write_rows, query, error)
             : status;
}

static enum kcp_status run(struct influence_query *query, struct kcp_error *error) {
  enum kcp_status status = make_plan(query, error);
  if (status == KCP_OK) status = open_outputs(query, error);
  if (status == KCP_OK) status = search(query, error);
  if (status != KCP_OK) return status;
  query->ending.algorithm = query->result.algorithm;
  query->ending.verify = is_empty(query) ? NULL : verify;
  status = kcp_query_end(&query->ending, error);
  if (status == KCP_OK && !query->request->quiet && asks_what_if(query->request))
    kcp_difference_summary(stderr, &query->facts, &query->difference);
  return status;
}

enum kcp_status kcp_influence_query(const struct kcp_request *request, struct kcp_error *error) {
  struct influence_query query = {.request = request};
  query.ending = (struct kcp_query_ending){.request = request,
                                           .result = &query.result,
                                           .query = &query,
                                           .warn = warn,
                                           .write_answer = write_answer};
  kcp_progress_start(&query.progress, kcp_shows_progress(request));
  enum kcp_status status = run(&query, error);
  kcp_output_file_discard(&query.out);
  kcp_output_file_discard(&query.ending.report);
  kcp_output_file_discard(&query.map);
  kcp_result_free(&query.result);
  free(query.answer.sums.pairs);
  free(query.facts.rows);
  free(query.difference.rows);
  if (query.search != NULL) query.engine->destroy(query.search);
  kcp_cell_weights_free(&query.weights);
  kcp_raster_free(&query.raster);
  for (int set = 0; set < 2; ++set) {
    kcp_site_groups_free(&query.groups[set]);
    kcp_site_file_free(&query.files[set]);
  }
  return status;
}

#include "kcp/args.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/algorithm.h"
#include "kcp/commands.h"
#include "kcp/range_query.h"
#include "kcp/text.h"
#include "kcp/top_k_query.h"

#define QUERY KCP_COMMAND_QUERY
#define ASKING (KCP_COMMAND_QUERY | KCP_CHANGES_ANSWER)
#define BENCH KCP_COMMAND_BENCH
#define GEN KCP_COMMAND_GEN
#define MAKING (KCP_COMMAND_GEN | KCP_COMMAND_GEN_VALUES)
#define READING (KCP_COMMAND_QUERY | KCP_COMMAND_INFO | KCP_COMMAND_CONVERT)
#define WORKING (READING | MAKING)
#define FIELD(NAME) offsetof(struct kcp_request, NAME)
#define ANY_COUNT 18446744073709551615.0
#define PARTITION_LIMIT 2147483648.0 /* points of a partition are numbered with 32 bits */

/* clang-format off */
const struct kcp_flag kcp_flags[] = {
    {"algo", KCP_FLAG_ALGORITHM, QUERY, FIELD(algorithm), 0, 0,
     "NAME", NULL, "auto", "algorithm; kcp list shows all"},
    {"k", KCP_FLAG_COUNT, ASKING, FIELD(k), 1, ANY_COUNT,
     "N", NULL, "10", "how many closest pairs, or first values"},
    {"self", KCP_FLAG_SWITCH, ASKING, FIELD(self), 0, 0,
     NULL, NULL, "off", "one file: pairs of distinct records, each once"},
    {"metric", KCP_FLAG_METRIC, ASKING, FIELD(metric), 3, 16,
     "l2|l1|linf|lp:T", NULL, "l2", "distance; T a whole number from 3 to 16"},
    {"max-distance", KCP_FLAG_REAL, ASKING, FIELD(max_distance), 0, INFINITY,
     "R", "units of the data", "none", "only pairs at most this far apart"},
    {"order", KCP_FLAG_CHOICE, ASKING, FIELD(value_order), 0, 0,
     "largest|smallest", NULL, "largest", "top-k: which values come first"},
    {"resident", KCP_FLAG_SWITCH, QUERY, FIELD(resident), 0, 0,
     NULL, NULL, "off", "top-k: values stay in place between --runs, which time the search alone"},
    {"k2", KCP_FLAG_COUNT, ASKING, FIELD(influence.k2), 1, ANY_COUNT,
     "N", NULL, "as k", "influence: k' of Q"},
    {"min-weight", KCP_FLAG_MIN_WEIGHTS, ASKING, FIELD(influence.min_weights), 0, 0,
     "W[,W...]", "weight", "any", "influence: least weighted area W0; several give a sweep"},
    {"p-select", KCP_FLAG_TEXT, ASKING, FIELD(influence.p_select), 0, 0,
     "IDS|FILE|column:NAME", NULL, "all", "influence: P', e.g. 3,17 or a file of ids"},
    {"q-select", KCP_FLAG_TEXT, ASKING, FIELD(influence.q_select), 0, 0,
     "IDS|FILE|column:NAME", NULL, "all", "influence: Q'"},
    {"density", KCP_FLAG_TEXT, ASKING, FIELD(influence.density_path), 0, 0,
     "FILE", NULL, "plain area", "influence: weights of the domain, .asc or .npy"},
    {"density-is", KCP_FLAG_CHOICE, ASKING, FIELD(influence.density_is), 0, 0,
     "density|count", NULL, "density", "a value of it is per unit of area, or of its whole region"},
    {"domain", KCP_FLAG_DOMAIN, ASKING, FIELD(influence.domain), 0, 0,
     "X0,Y0,X1,Y1", "units of the data", "the density's", "influence: the domain"},
    {"grid", KCP_FLAG_GRID, ASKING, FIELD(influence.grid), 0, 0,
     "HxW", "cells", "400x400", "influence: rows and columns of the grid"},
    {"method", KCP_FLAG_CHOICE, QUERY, FIELD(influence.method), 0, 0,
     "sparse|pairs", NULL, "sparse", "pairs is the paper's: every pair looks at every cell"},
    {"tolerance", KCP_FLAG_REAL, ASKING, FIELD(influence.tolerance), 5e-324, INFINITY,
     "W", "weight", "the grid's", "influence: split cells until upper - lower is at most this"},
    {"decide", KCP_FLAG_SWITCH, ASKING, FIELD(influence.decide), 0, 0,
     NULL, NULL, "off", "influence: split cells until every W0 is decided for certain"},
    {"site-weights", KCP_FLAG_CHOICE, ASKING, FIELD(influence.site_weights), 0, 0,
     "file|equal", NULL, "file", "equal ignores the weights of the sites"},
    {"list-areas", KCP_FLAG_SWITCH, ASKING, FIELD(influence.list_areas), 0, 0,
     NULL, NULL, "off", "influence: all pairs, largest area first"},
    {"add", KCP_FLAG_TEXT, ASKING, FIELD(influence.add), 0, 0,
     "ID,X,Y,W[;...]", NULL, "none", "influence, what if: sites more, of P or (q:ID) of Q"},
    {"remove", KCP_FLAG_TEXT, ASKING, FIELD(influence.remove), 0, 0,
     "ID[;...]", NULL, "none", "influence, what if: sites fewer"},
    {"reweight", KCP_FLAG_TEXT, ASKING, FIELD(influence.reweight), 0, 0,
     "ID,W[;...]", NULL, "none", "influence, what if: sites of another weight"},
    {"map", KCP_FLAG_TEXT, QUERY, FIELD(influence.map_path), 0, 0,
     "FILE", NULL, "none", "influence: a map, .png or .asc"},
    {"map-show", KCP_FLAG_TEXT, QUERY, FIELD(influence.map_show), 0, 0,
     "p:ID|q:ID|pair:ID1,ID2", NULL, "none", "influence: regions that the map paints"},
    {"eps", KCP_FLAG_REAL, ASKING, FIELD(range.eps), 0, INFINITY,
     "R", "units of the data", "none", "range join: all pairs at most this far apart"},
    {"selectivity", KCP_FLAG_REAL, ASKING, FIELD(range.selectivity), 0, INFINITY,
     "S", "neighbours a query", "none", "range join: find eps for it by sampling"},
    {"reorder", KCP_FLAG_CHOICE, QUERY, FIELD(range.reorder), 0, 0,
     "highest|lowest|random", NULL, "highest", "range join: variance of the dimensions that come first"},
    {"kd-height", KCP_FLAG_COUNT_MAX, QUERY, FIELD(range.kd_height), 1, 64,
     "H|max", "levels", "ln |D|", "rt-hiss: of the kd-tree; max puts one point in a primitive"},
    {"index", KCP_FLAG_CHOICE, QUERY, FIELD(range.index), 0, 0,
     "auto|bvh|grid|optix", NULL, "auto", "rt-hiss: what finds the primitives of a query"},
    {"bound", KCP_FLAG_CHOICE, QUERY, FIELD(range.bound), 0, 0,
     "sphere|box|full", NULL, "sphere", "rt-hiss: around a primitive's points; full: in all dimensions"},
    {"refine", KCP_FLAG_CHOICE, QUERY, FIELD(range.refine), 0, 0,
     "auto|shared-both|shared-primitive|shared-query|shared-none|tensor", NULL, "auto",
     "rt-hiss: points staged in shared memory, or tiles on tensor cores"},
    {"result", KCP_FLAG_CHOICE, QUERY, FIELD(range.result), 0, 0,
     "count|mask|mask-raw|pairs", NULL, "count; mask with --out", "all pairs to host memory, and how"},
    {"sort-work", KCP_FLAG_CHOICE, QUERY, FIELD(range.sort_work), 0, 0,
     "on|off", NULL, "on", "rt-hiss: heavy primitives first"},
    {"fixed-work", KCP_FLAG_CHOICE, QUERY, FIELD(range.fixed_work), 0, 0,
     "on|off", NULL, "on", "rt-hiss: equal work for each block"},
    {"work-per-thread", KCP_FLAG_COUNT, QUERY, FIELD(range.work_per_thread), 1, 1048576,
     "N", "comparisons", "128", "rt-hiss: of a block's threads"},
    {"shared-memory", KCP_FLAG_SIZE, QUERY, FIELD(range.shared_memory_bytes), 1, ANY_COUNT,
     "SIZE", "bytes", "what there is", "rt-hiss: of a block; on the CPU of a thread's stage"},
    {"copy-threads", KCP_FLAG_COUNT, QUERY, FIELD(range.copy_threads), 1, 256,
     "N", NULL, "all cores, at most 16", "rt-hiss on a GPU: threads that copy results"},
    {"pinned", KCP_FLAG_SIZE, QUERY, FIELD(range.pinned_bytes), 1, ANY_COUNT,
     "SIZE", "bytes", "2M a thread", "rt-hiss on a GPU: staging memory that they share"},
    {"host-memory", KCP_FLAG_CHOICE, QUERY, FIELD(range.host_memory), 0, 0,
     "pinned|pageable", NULL, "pinned", "rt-hiss on a GPU: where results are copied to"},
    {"grid-dims", KCP_FLAG_COUNT, QUERY, FIELD(range.grid_dimensions), 1, 6,
     "N", NULL, "6, or all", "range join: dimensions of the grid"},
    {"device", KCP_FLAG_DEVICE, QUERY, 0, 0, 1023,
     "auto|cpu|cuda|cuda:N", NULL, "auto", "auto takes a GPU where there is one"},
    {"memory", KCP_FLAG_SIZE, QUERY, FIELD(memory_bytes), 1, ANY_COUNT,
     "SIZE", "bytes", "what is free", "memory to use on the device, or on the CPU"},
    {"threads", KCP_FLAG_COUNT, WORKING, FIELD(threads), 1, 65536,
     "N", NULL, "all cores", "CPU threads"},
    {"buffer", KCP_FLAG_CHOICE, QUERY, FIELD(buffer), 0, 0,
     "auto|list|heap", NULL, "auto: by k", "how a thread keeps its best k"},
    {"d1-partition", KCP_FLAG_COUNT, QUERY, FIELD(d1_partition), 1, PARTITION_LIMIT,
     "N", "points", "auto: by memory", "size of a D1 partition"},
    {"d2-partition", KCP_FLAG_COUNT, QUERY, FIELD(d2_partition), 1, PARTITION_LIMIT,
     "N", "points", "auto: by memory", "size of a D2 partition"},
    {"subpartitions", KCP_FLAG_COUNT, QUERY, FIELD(subpartitions), 1, PARTITION_LIMIT,
     "N", NULL, "auto: 256 points each", "x-ordered slices of a D1 partition"},
    {"block-threads", KCP_FLAG_COUNT, QUERY, FIELD(block_threads), 1, 1024,
     "N", NULL, "64", "threads per block on the GPU"},
    {"streams", KCP_FLAG_COUNT, QUERY, FIELD(streams), 1, 256,
     "N", NULL, "auto", "D2 partitions in flight"},
    {"points-per-thread", KCP_FLAG_COUNT, QUERY, FIELD(points_per_thread), 1, PARTITION_LIMIT,
     "N", "points", "auto: by |D2| and device", "D2 points that share a list"},
    {"kernel", KCP_FLAG_CHOICE, QUERY, FIELD(kernel), 0, 0,
     "tiled|plain", NULL, "tiled", "plain is the paper's baseline"},
    {"order-d2", KCP_FLAG_CHOICE, QUERY, FIELD(order_d2), 0, 0,
     "x|file", NULL, "x", "order of the points in a D2 partition"},
    {"columns", KCP_FLAG_TEXT, READING | KCP_CHANGES_ANSWER, FIELD(columns), 0, 0,
     "LIST", NULL, "id,x,y[,z] or the header's", "columns of text files, e.g. id,x,y,-,z"},
    {"drop-invalid", KCP_FLAG_SWITCH, KCP_COMMAND_CONVERT, FIELD(drop_invalid), 0, 0,
     NULL, NULL, "off", "leave out records with a coordinate that is not finite"},
    {"out", KCP_FLAG_TEXT, QUERY, FIELD(out_path), 0, 0,
     "FILE", NULL, "stdout", "write the answer to FILE.csv or FILE.json"},
    {"json", KCP_FLAG_TEXT, QUERY | BENCH, FIELD(json_path), 0, 0,
     "FILE", NULL, "none", "write a run report"},
    {"runs", KCP_FLAG_COUNT, QUERY, FIELD(runs), 1, 1000000,
     "N", NULL, "1", "timed repetitions"},
    {"warmup", KCP_FLAG_COUNT, QUERY, FIELD(warmup), 0, 1000000,
     "N", NULL, "0", "runs before those that are timed"},
    {"run-time", KCP_FLAG_REAL, QUERY, FIELD(run_time_s), 0, INFINITY,
     "S", "seconds", "none", "no further repetition once the timed runs took this long"},
    {"verify", KCP_FLAG_SWITCH, QUERY, FIELD(verify), 0, 0,
     NULL, NULL, "off", "check the answer independently; holds both files in memory"},
    {"floor", KCP_FLAG_SWITCH, QUERY, FIELD(floor), 0, 0,
     NULL, NULL, "off", "also time reading and uploading the files, and nothing else"},
    {"quiet", KCP_FLAG_SWITCH, WORKING | BENCH, FIELD(quiet), 0, 0,
     NULL, NULL, "off", "only errors on stderr"},
    {"csv", KCP_FLAG_TEXT, BENCH, FIELD(csv_path), 0, 0,
     "FILE", NULL, "none", "write the results as CSV"},
    {"markdown", KCP_FLAG_TEXT, BENCH, FIELD(markdown_path), 0, 0,
     "FILE", NULL, "none", "write the table as Markdown"},
    {"phase", KCP_FLAG_CHOICE, BENCH, FIELD(phase), 0, 0,
     "total|read|h2d|index|kernel|d2h|merge", NULL, "total", "the time that is compared"},
    {"resume", KCP_FLAG_TEXT, BENCH, FIELD(resume_path), 0, 0,
     "FILE", NULL, "none", "go on from an earlier report, to which the rest is added"},
    {"compare", KCP_FLAG_SWITCH, BENCH, FIELD(compare), 0, 0,
     NULL, NULL, "off", "compare two reports; fails when the second is slower"},
    {"seed", KCP_FLAG_COUNT, MAKING, FIELD(generate.seed), 0, ANY_COUNT,
     "N", NULL, "1", "same seed, same bytes, on every machine"},
    {"dims", KCP_FLAG_COUNT32, GEN, FIELD(generate.dimensions), 2, 3,
     "2|3", NULL, "2", "coordinates; 2 leaves z at 0"},
    {"mean", KCP_FLAG_REAL, GEN, FIELD(generate.gaussian_mean), 0, 1,
     "X", NULL, "0.5", "gaussian: mean"},
    {"deviation", KCP_FLAG_REAL, GEN, FIELD(generate.gaussian_deviation), 0, 10,
     "X", NULL, "0.1", "gaussian: standard deviation"},
    {"probability", KCP_FLAG_REAL, GEN, FIELD(generate.bit_probability), 0, 1,
     "P", NULL, "0.2", "bit: probability of a 1"},
    {"digits", KCP_FLAG_COUNT32, GEN, FIELD(generate.bit_digits), 1, 53,
     "N", NULL, "10", "bit: binary digits of a coordinate"},
    {"percentage", KCP_FLAG_REAL, GEN, FIELD(generate.diagonal_percentage), 0, 1,
     "P", NULL, "0.5", "diagonal: share of points on it"},
    {"buffer", KCP_FLAG_REAL, GEN, FIELD(generate.diagonal_buffer), 0, 10,
     "X", NULL, "0.5", "diagonal: width beside it, 5 standard deviations"},
    {"split-range", KCP_FLAG_REAL, GEN, FIELD(generate.parcel_split_range), 0, 0.5,
     "R", NULL, "0.5", "parcel: a side is split between R and 1 - R"},
    {"dither", KCP_FLAG_REAL, GEN, FIELD(generate.parcel_dither), 0, 1,
     "X", NULL, "0.5", "parcel: how far boxes shrink at random"},
    {.name = NULL}};
/* clang-format on */

enum { FLAG_COUNT = sizeof kcp_flags / sizeof kcp_flags[0] - 1 };
_Static_assert(FLAG_COUNT <= KCP_MAX_GIVEN, "every flag can be given");

const struct kcp_flag *kcp_flag_find(const char *name, unsigned commands) {
  for (const struct kcp_flag *flag = kcp_flags; flag->name != NULL; ++flag)
    if ((flag->commands & commands) != 0 && strcmp(flag->name, name) == 0) return flag;
  return NULL;
}

unsigned kcp_flag_commands(enum kcp_command_kind command) {
  return command == BENCH ? BENCH | QUERY : command;
}

bool kcp_flag_is_swept(const struct kcp_flag *flag) {
  return (flag->commands & (QUERY | BENCH)) == QUERY;
}

struct kcp_request kcp_request_defaults(void) {
  struct kcp_request request = {.command = KCP_COMMAND_QUERY,
                                .algorithm = "auto",
                                .k = 10,
                                .metric = {KCP_L2, 2},
                                .max_distance = INFINITY,
                                .range = {.eps = NAN, .selectivity = NAN},
                                .runs = 1,
                                .run_time_s = INFINITY,
                                .influence = {.grid = {400, 400}},
                                .generate = kcp_generate_defaults()};
  return request;
}

/* Digits alone: no sign, no blank, no fraction. */
static bool parse_digits(const char *text, uint64_t *value, const char **end, bool *too_large) {
  *too_large = false;
  if (*text < '0' || *text > '9') return false;
  uint64_t number = 0;
  for (; *text >= '0' && *text <= '9'; ++text)
    *too_large |= __builtin_mul_overflow(number, 10, &number) ||
                  __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number);
  *value = number;
  *end = text;
  return true;
}

static enum kcp_status parse_count(const struct kcp_flag *flag, const char *text, uint64_t *value,
                                   struct kcp_error *error) {
  const char *end;
  bool too_large;
  uint64_t number;
  if (!parse_digits(text, &number, &end, &too_large) || *end != '\0')
    return kcp_fail(error, KCP_BAD_INPUT, "--%s takes a whole number of at least %.0f, not '%s'",
                    flag->name, flag->minimum, text);
  if (too_large || (double)number > flag->maximum)
    return kcp_fail(error, KCP_BAD_INPUT, "--%s %s is too large; the largest is %llu", flag->name,
                    text,
                    flag->maximum >= ANY_COUNT ? (unsigned long long)UINT64_MAX
                                               : (unsigned long long)flag->maximum);
  if ((double)number < flag->minimum)
    return kcp_fail(error, KCP_BAD_INPUT, "--%s %s is too small; the least is %.0f", flag->name,
                    text, flag->minimum);
  *value = number;
  return KCP_OK;
}

static enum kcp_status parse_size(const struct kcp_flag *flag, const char *text, uint64_t *value,
                                  struct kcp_error *error) {
  static const char suffixes[] = "KMGT";
  const char *end;
  bool too_large;
  uint64_t number;
  bool valid = parse_digits(text, &number, &end, &too_large);
  int shift = 0;
  if (valid && *end != '\0') {
    const char *suffix = strchr(suffixes, *end & ~0x20);
    valid = suffix != NULL && end[1] == '\0';
    if (valid) shift = 10 * (int)(suffix - suffixes + 1);
  }
  if (!valid)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "--%s takes a number of bytes such as 65536, 64K, 512M or 2G, not '%s'",
                    flag->name, text);
  if (too_large || __builtin_mul_overflow(number, UINT64_C(1) << shift, &number))
    return kcp_fail(error, KCP_BAD_INPUT, "--%s %s is too large", flag->name, text);
  if (number == 0) return kcp_fail(error, KCP_BAD_INPUT, "--%s 0 leaves nothing", flag->name);
  *value = number;
  return KCP_OK;
}

static enum kcp_status parse_real(const struct kcp_flag *flag, const char *text, double *value,
                                  struct kcp_error *error) {
  char *end;
  bool starts_well = *text != '\0' && strchr("0123456789.+-", *text) != NULL;
  double number = strtod(text, &end);
  if (!starts_well || end == text || *end != '\0' || !isfinite(number))
    return kcp_fail(error, KCP_BAD_INPUT, "--%s takes a finite number, not '%s'", flag->name, text);
  if (number < flag->minimum || number > flag->maximum) {
    if (isinf(flag->maximum))
      return kcp_fail(error, KCP_BAD_INPUT, "--%s %s is too small; the least is %g", flag->name,
                      text, flag->minimum);
    return kcp_fail(error, KCP_BAD_INPUT, "--%s %s is not between %g and %g", flag->name, text,
                    flag->minimum, flag->maximum);
  }
  *value = number;
  return KCP_OK;
}

/* The words of `list` are separated by '|'. */
static enum kcp_status parse_choice(const struct kcp_flag *flag, const char *text, int *value,
                                    struct kcp_error *error) {
  size_t length = strlen(text);
  const char *word = flag->value;
  for (int place = 0;; ++place) {
    size_t word_length = strcspn(word, "|");
    if (word_length == length && strncmp(word, text, length) == 0) {
      *value = place;
      return KCP_OK;
    }
    if (word[word_length] == '\0') break;
    word += word_length + 1;
  }
  return kcp_fail(error, KCP_BAD_INPUT, "--%s takes %s, not '%s'", flag->name, flag->value, text);
}

static enum kcp_status parse_algorithm(const char *text, const char **value,
                                       struct kcp_error *error) {
  *value = text;
  if (strcmp(text, "auto") == 0 || kcp_algorithm_find(text) != NULL) return KCP_OK;
  struct kcp_suggestion near = kcp_suggestion_for(text);
  kcp_suggestion_offer(&near, "auto");
  for (const struct kcp_algorithm *row = kcp_algorithms; row->name != NULL; ++row) {
    if (row->spelling != NULL) kcp_suggestion_offer(&near, row->spelling);
    kcp_suggestion_offer(&near, row->name);
  }
  if (near.word == NULL)
    return kcp_fail(error, KCP_BAD_INPUT, "no algorithm '%s' (kcp list shows all)", text);
  return kcp_fail(error, KCP_BAD_INPUT,
                  "no algorithm '%s'; did you mean '%s'? (kcp list shows all)", text, near.word);
}

static enum kcp_status parse_metric(const struct kcp_flag *flag, const char *text,
                                    struct kcp_metric *value, struct kcp_error *error) {
  static const struct {
    const char *name;
    struct kcp_metric metric;
  } metrics[] = {{"l1", {KCP_L1, 1}}, {"l2", {KCP_L2, 2}}, {"linf", {KCP_LINF, 1}}};
  for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; ++i)
    if (strcmp(text, metrics[i].name) == 0) {
      *value = metrics[i].metric;
      return KCP_OK;
    }
  const char *end;
  bool too_large;
  uint64_t power = 0;
  bool is_lp = strncmp(text, "lp:", 3) == 0 && parse_digits(text + 3, &power, &end, &too_large) &&
               *end == '\0';
  if (!is_lp || too_large || (double)power < flag->minimum || (double)power > flag->maximum)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "--%s takes l2, l1, linf or lp:T with T from 3 to 16, not '%s'", flag->name,
                    text);
  value->kind = KCP_LP;
  value->power = (uint32_t)power;
  return KCP_OK;
}

static enum kcp_status parse_device(const struct kcp_flag *flag, const char *text,
                                    struct kcp_request *request, struct kcp_error *error) {
  static const char *const names[] = {"auto", "cpu", "cuda"};
  request->device_index = 0;
  for (int i = 0; i < 3; ++i)
    if (strcmp(text, names[i]) == 0) {
      request->device = (enum kcp_device_choice)i;
      return KCP_OK;
    }
  const char *end;
  bool too_large;
  uint64_t number = 0;
  bool numbered = strncmp(text, "cuda:", 5) == 0 &&
                  parse_digits(text + 5, &number, &end, &too_large) && *end == '\0';
  if (!numbered || too_large || (double)number > flag->maximum)
    return kcp_fail(error, KCP_BAD_INPUT, "--%s takes auto, cpu, cuda or cuda:N, not '%s'",
                    flag->name, text);
  request->device = KCP_DEVICE_CUDA;
  request->device_index = (int)number;
  return KCP_OK;
}

enum kcp_status kcp_flag_parse(const struct kcp_flag *flag, const char *text,
                               struct kcp_request *request, struct kcp_error *error) {
  void *field = (char *)request + flag->offset;
  enum kcp_status status = KCP_OK;
  uint64_t number;
  switch (flag->type) {
    case KCP_FLAG_SWITCH: *(bool *)field = true; return KCP_OK;
    case KCP_FLAG_COUNT: return parse_count(flag, text, field, error);
    case KCP_FLAG_COUNT32:
      status = parse_count(flag, text, &number, error);
      if (status == KCP_OK) *(uint32_t *)field = (uint32_t)number;
      return status;
    case KCP_FLAG_COUNT_MAX:
      if (strcmp(text, "max") != 0) return parse_count(flag, text, field, error);
      *(uint64_t *)field = UINT64_MAX;
      return KCP_OK;
    case KCP_FLAG_SIZE: return parse_size(flag, text, field, error);
    case KCP_FLAG_REAL: return parse_real(flag, text, field, error);
    case KCP_FLAG_CHOICE: return parse_choice(flag, text, field, error);
    case KCP_FLAG_ALGORITHM: return parse_algorithm(text, field, error);
    case KCP_FLAG_METRIC: return parse_metric(flag, text, field, error);
    case KCP_FLAG_DEVICE: return parse_device(flag, text, request, error);
    case KCP_FLAG_GRID: return kcp_parse_grid(flag, text, field, error);
    case KCP_FLAG_DOMAIN: return kcp_parse_domain(flag, text, field, error);
    case KCP_FLAG_MIN_WEIGHTS: return kcp_parse_min_weights(flag, text, field, error);
    case KCP_FLAG_TEXT:
      if (*text == '\0')
        return kcp_fail(error, KCP_BAD_INPUT, "--%s needs a value: %s", flag->name, flag->value);
      *(const char **)field = text;
      return KCP_OK;
  }
  return status;
}

enum { LONGEST_NAME = 80 };

/* What the command line has beside flags. */
struct operands {
  const char **words;
  int count;
};

static enum kcp_status unknown_flag(const char *argument, enum kcp_command_kind kind,
                                    struct kcp_error *error) {
  const unsigned commands = kcp_flag_commands(kind);
  char name[LONGEST_NAME];
  const char *start = argument + strspn(argument, "-");
  size_t length = strcspn(start, "=");
  if (length >= sizeof name) length = sizeof name - 1;
  memcpy(name, start, length);
  name[length] = '\0';
  const struct kcp_command *command = kcp_command_of(kind);
  const char *help = kind == QUERY ? "kcp help query" : "kcp help";
  if (kcp_flag_find(name, ~0u) != NULL && argument[1] == '-')
    return kcp_fail(error, KCP_BAD_INPUT, "%s takes no option --%s (kcp help %s lists its options)",
                    command->name, name, command->name);
  struct kcp_suggestion near = kcp_suggestion_for(name);
  for (const struct kcp_flag *flag = kcp_flags; flag->name != NULL; ++flag)
    if ((flag->commands & commands) != 0) kcp_suggestion_offer(&near, flag->name);
  if (kcp_flag_find(name, commands) != NULL) near.word = name; /* one dash for two */
  int shown = (int)(start - argument + (ptrdiff_t)length);
  if (near.word == NULL)
    return kcp_fail(error, KCP_BAD_INPUT, "no option '%.*s' (%s lists all)", shown, argument, help);
  return kcp_fail(error, KCP_BAD_INPUT, "no option '%.*s'; did you mean '--%s'? (%s lists all)",
                  shown, argument, near.word, help);
}

/* The flag of that name of any command. */
static const struct kcp_flag *flag_of_argument(const char *argument) {
  char name[LONGEST_NAME] = "";
  if (strncmp(argument, "--", 2) != 0) return NULL;
  size_t length = strcspn(argument + 2, "=");
  if (length < sizeof name) memcpy(name, argument + 2, length);
  return kcp_flag_find(name, ~0u);
}

/* The last value counts, at the place of the first. */
static void take_given(const struct kcp_flag *flag, const char *value,
                       struct kcp_request *request) {
  int place = 0;
  while (place < request->given_count && request->given[place].flag != flag) ++place;
  request->given[place] = (struct kcp_given_option){flag, value};
  if (place == request->given_count) ++request->given_count;
}

/* One option at `*place`, which is left behind its value. */
static enum kcp_status parse_option(int argument_count, char *const *arguments, int *place,
                                    struct kcp_request *request, struct kcp_error *error) {
  const char *argument = arguments[(*place)++];
  const char *equals = strchr(argument, '=');
  const struct kcp_flag *flag = flag_of_argument(argument);
  if (flag != NULL) flag = kcp_flag_find(flag->name, kcp_flag_commands(request->command));
  if (flag == NULL) return unknown_flag(argument, request->command, error);
  const char *value = NULL;
  if (flag->type == KCP_FLAG_SWITCH) {
    if (equals != NULL) return kcp_fail(error, KCP_BAD_INPUT, "--%s takes no value", flag->name);
  } else if (equals != NULL) {
    value = equals + 1;
  } else if (*place < argument_count) {
    value = arguments[(*place)++];
  } else {
    return kcp_fail(error, KCP_BAD_INPUT, "--%s needs a value: %s", flag->name, flag->value);
  }
  take_given(flag, value, request);
  if (request->command == BENCH && kcp_flag_is_swept(flag)) return KCP_OK;
  return kcp_flag_parse(flag, value, request, error);
}

static bool takes_value(const char *argument) {
  const struct kcp_flag *flag = flag_of_argument(argument);
  return flag != NULL && flag->type != KCP_FLAG_SWITCH && strchr(argument, '=') == NULL;
}

static bool is_option(const char *argument) {
  return argument[0] == '-' && argument[1] != '\0';
}

/* The place of the first word that is neither an option nor its value; argument_count when there is
 * none before "--". */
static int find_first_word(int argument_count, char *const *arguments) {
  for (int i = 1; i < argument_count; ++i) {
    if (strcmp(arguments[i], "--") == 0) return argument_count;
    if (!is_option(arguments[i])) return i;
    if (takes_value(arguments[i])) ++i;
  }
  return argument_count;
}

/* --help and --version are commands wherever they stand before "--". */
static const struct kcp_command *find_command_option(int argument_count, char *const *arguments) {
  for (int i = 1; i < argument_count && strcmp(arguments[i], "--") != 0; ++i) {
    if (strcmp(arguments[i], "--help") == 0 || strcmp(arguments[i], "-h") == 0)
      return kcp_command_of(KCP_COMMAND_HELP);
    if (strcmp(arguments[i], "--version") == 0) return kcp_command_of(KCP_COMMAND_VERSION);
  }
  return NULL;
}

/* A word without a dot or a slash cannot be a point file, whose ending names its format. */
static bool cannot_be_file(const char *word) {
  return strpbrk(word, "./") == NULL;
}

static enum kcp_status unknown_command(const char *word, struct kcp_error *error) {
  struct kcp_suggestion near = kcp_suggestion_for(word);
  for (const struct kcp_command *command = kcp_commands; command->name != NULL; ++command)
    kcp_suggestion_offer(&near, command->name);
  if (near.word == NULL)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "'%s' is neither a command nor a file with an ending such as .bin or .csv "
                    "(kcp help shows the commands)",
                    word);
  return kcp_fail(error, KCP_BAD_INPUT, "no command '%s'; did you mean '%s'? (kcp help shows all)",
                  word, near.word);
}

static enum kcp_status take_range_join(const struct operands *operands, struct kcp_error *error) {
  if (operands->count == 1 || operands->count == 2) return KCP_OK;
  return kcp_fail(error, KCP_BAD_INPUT,
                  "a range join takes one file, joined with itself, or two, but %d were given",
                  operands->count);
}

static enum kcp_status take_query(const struct operands *operands, struct kcp_request *request,
                                  struct kcp_error *error) {
  int wanted = request->self ? 1 : 2;
  for (int i = 0; i < operands->count && i < 2; ++i) request->inputs[i] = operands->words[i];
  request->input_count = operands->count;
  if (kcp_asks_for_top_k(request)) {
    if (operands->count == 1) return KCP_OK;
    return kcp_fail(
        error, KCP_BAD_INPUT,
        "%s takes one file of values (.f32 .f64 .i32 .u32 .i64 .npy), but %d were given",
        request->algorithm, operands->count);
  }
  if (kcp_asks_for_range_join(request)) return take_range_join(operands, error);
  if (operands->count == 0)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "a query takes two files, D1 and D2, or --self and one (kcp help shows "
                    "examples)");
  if (request->self && operands->count > 1)
    return kcp_fail(error, KCP_BAD_INPUT, "--self takes one file, but %d were given",
                    operands->count);
  if (operands->count < wanted)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "a query takes two files: name a second one after %s, or add --self for pairs "
                    "within it",
                    operands->words[0]);
  if (operands->count > wanted)
    return kcp_fail(error, KCP_BAD_INPUT, "a query takes two files; '%s' is one too many",
                    operands->words[wanted]);
  return KCP_OK;
}

static enum kcp_status take_distribution(const char *word, struct kcp_request *request,
                                         struct kcp_error *error) {
  struct kcp_suggestion near = kcp_suggestion_for(word);
  for (int i = 0; kcp_distributions[i] != NULL; ++i) {
    if (strcmp(word, kcp_distributions[i]) == 0) {
      request->generate.distribution = (enum kcp_distribution)i;
      return KCP_OK;
    }
    kcp_suggestion_offer(&near, kcp_distributions[i]);
  }
  if (near.word != NULL)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "no distribution '%s'; did you mean '%s'? (kcp help gen shows all)", word,
                    near.word);
  return kcp_fail(error, KCP_BAD_INPUT, "no distribution '%s' (kcp help gen shows all)", word);
}

/* N of gen: digits, and K, M or G for thousands, millions and thousand millions. */
static enum kcp_status take_count(const char *word, const char *what, struct kcp_request *request,
                                  struct kcp_error *error) {
  static const struct {
    const char *suffix;
    uint64_t factor;
  } units[] = {{"", 1}, {"K", 1000}, {"M", 1000000}, {"G", 1000000000}};
  const char *end;
  bool too_large;
  uint64_t number;
  if (parse_digits(word, &number, &end, &too_large))
    for (size_t i = 0; i < sizeof units / sizeof units[0]; ++i) {
      if (strcmp(end, units[i].suffix) != 0) continue;
      if (too_large || __builtin_mul_overflow(number, units[i].factor, &number))
        return kcp_fail(error, KCP_BAD_INPUT, "%s %s are too many", word, what);
      request->generate.count = number;
      return KCP_OK;
    }
  return kcp_fail(error, KCP_BAD_INPUT,
                  "the number of %s is a whole number such as 1000000 or 1M, not '%s'", what, word);
}

static enum kcp_status take_generate(const struct operands *operands, struct kcp_request *request,
                                     struct kcp_error *error) {
  enum kcp_status status = take_distribution(operands->words[0], request, error);
  if (status == KCP_OK) status = take_count(operands->words[1], "points", request, error);
  if (status == KCP_OK) status = kcp_generate_check(&request->generate, error);
  request->out_path = operands->words[2];
  return status;
}

static enum kcp_status take_generate_values(const struct operands *operands,
                                            struct kcp_request *request, struct kcp_error *error) {
  const char *word = operands->words[0];
  struct kcp_suggestion near = kcp_suggestion_for(word);
  request->out_path = operands->words[2];
  request->value_distribution = -1;
  for (int i = 0; kcp_value_distributions[i] != NULL; ++i) {
    if (strcmp(word, kcp_value_distributions[i]) == 0) request->value_distribution = i;
    kcp_suggestion_offer(&near, kcp_value_distributions[i]);
  }
  if (request->value_distribution < 0)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "no distribution '%s'%s%s%s (kcp help gen-values shows all)", word,
                    near.word != NULL ? "; did you mean '" : "", near.word != NULL ? near.word : "",
                    near.word != NULL ? "'?" : "");
  if (!kcp_is_raw_array(request->out_path))
    return kcp_fail(error, KCP_BAD_INPUT,
                    "%s: its ending is not one of .f32 .f64 .i32 .u32 .i64, which name a type of "
                    "values",
                    request->out_path);
  return take_count(operands->words[1], "values", request, error);
}

static enum kcp_status take_operands(const struct operands *operands, struct kcp_request *request,
                                     struct kcp_error *error) {
  const struct kcp_command *command = kcp_command_of(request->command);
  if (request->command == KCP_COMMAND_QUERY) return take_query(operands, request, error);
  if (operands->count < command->least_operands || operands->count > command->most_operands)
    return kcp_fail(error, KCP_BAD_INPUT, "usage: %s", command->usage);
  if (request->command == KCP_COMMAND_GEN) return take_generate(operands, request, error);
  if (request->command == KCP_COMMAND_GEN_VALUES)
    return take_generate_values(operands, request, error);
  if (request->command == KCP_COMMAND_CONVERT) request->out_path = operands->words[1];
  request->input_count = request->command == KCP_COMMAND_CONVERT ? 1 : operands->count;
  for (int i = 0; i < request->input_count; ++i) request->inputs[i] = operands->words[i];
  return KCP_OK;
}

static bool has_ending(const char *path, const char *ending) {
  size_t path_length = strlen(path), length = strlen(ending);
  return path_length > length && strcmp(path + path_length - length, ending) == 0;
}

static bool same_path(const char *a, const char *b) {
  return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* No file is written twice or over an input. */
static enum kcp_status check_distinct(const struct kcp_request *request, struct kcp_error *error) {
  const struct {
    const char *flag;
    const char *path;
  } outputs[] = {{"out", request->out_path},
                 {"json", request->json_path},
                 {"csv", request->csv_path},
                 {"markdown", request->markdown_path}};
  enum { COUNT = sizeof outputs / sizeof outputs[0] };
  for (int i = 0; i < COUNT; ++i)
    for (int j = 0; j < i; ++j)
      if (same_path(outputs[i].path, outputs[j].path))
        return kcp_fail(error, KCP_BAD_INPUT, "--%s and --%s both name %s", outputs[j].flag,
                        outputs[i].flag, outputs[i].path);
  for (int i = 0; i < COUNT; ++i)
    for (int j = 0; j < request->input_count; ++j)
      if (same_path(outputs[i].path, request->inputs[j]))
        return kcp_fail(error, KCP_BAD_INPUT, "%s is an input and cannot be written to",
                        request->inputs[j]);
  return KCP_OK;
}

static enum kcp_status check_outputs(const struct kcp_request *request, struct kcp_error *error) {
  if (request->command != KCP_COMMAND_QUERY && request->command != BENCH) return KCP_OK;
  const char *out = request->out_path;
  if (kcp_asks_for_range_join(request)) {
    if (out != NULL && !has_ending(out, ".csv") && !has_ending(out, ".npy") &&
        strncmp(out, "/dev/", 5) != 0)
      return kcp_fail(
          error, KCP_BAD_INPUT,
          "--out %s: pairs of a range join are written as .csv or .npy; end the name so", out);
  } else if (out != NULL && !has_ending(out, ".csv") && !has_ending(out, ".json") &&
             strncmp(out, "/dev/", 5) != 0)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "--out %s: an answer is written as .csv or .json; end the name so", out);
  return check_distinct(request, error);
}

/* Chooses the command and returns the place of its word, or 0 when there is none. */
static enum kcp_status choose_command(int argument_count, char *const *arguments,
                                      struct kcp_request *request, int *command_place,
                                      struct kcp_error *error) {
  *command_place = 0;
  int place = find_first_word(argument_count, arguments);
  if (place == argument_count) return KCP_OK;
  const struct kcp_command *command = kcp_command_find(arguments[place]);
  if (command == NULL) {
    /* What follows a mistyped option may be its value. */
    bool after_option = place > 1 && is_option(arguments[place - 1]) &&
                        flag_of_argument(arguments[place - 1]) == NULL;
    bool is_wrong = cannot_be_file(arguments[place]) && !after_option;
    return is_wrong ? unknown_command(arguments[place], error) : KCP_OK;
  }
  request->command = command->kind;
  *command_place = place;
  return KCP_OK;
}

static enum kcp_status parse_rest(int argument_count, char *const *arguments, int command_place,
                                  struct operands *operands, struct kcp_request *request,
                                  struct kcp_error *error) {
  bool options_ended = false;
  for (int i = 1; i < argument_count;) {
    enum kcp_status status = KCP_OK;
    if (i == command_place)
      ++i;
    else if (options_ended || !is_option(arguments[i]))
      operands->words[operands->count++] = arguments[i++];
    else if (strcmp(arguments[i], "--") == 0)
      options_ended = ++i > 0;
    else
      status = parse_option(argument_count, arguments, &i, request, error);
    if (status != KCP_OK) return status;
  }
  return KCP_OK;
}

enum kcp_status kcp_args_parse(int argument_count, char *const *arguments,
                               struct kcp_request *request, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  int command_place = 0;
  struct operands operands = {NULL, 0};
  *request = kcp_request_defaults();
  request->argument_count = argument_count;
  request->arguments = arguments;
  const struct kcp_command *option = find_command_option(argument_count, arguments);
  if (option != NULL || argument_count < 2) {
    request->command = option != NULL ? option->kind : KCP_COMMAND_HELP;
    int place = find_first_word(argument_count, arguments);
    if (place < argument_count && kcp_command_find(arguments[place]) != NULL)
      request->inputs[request->input_count++] = arguments[place];
    return KCP_OK;
  }

  operands.words = calloc((size_t)argument_count, sizeof *operands.words);
  if (operands.words == NULL)
    return kcp_out_of_memory(error, "the command line", (unsigned long long)argument_count);
  status = choose_command(argument_count, arguments, request, &command_place, error);
  if (status == KCP_OK)
    status = parse_rest(argument_count, arguments, command_place, &operands, request, error);
  if (status == KCP_OK) status = take_operands(&operands, request, error);
  if (status == KCP_OK) status = check_outputs(request, error);
  free(operands.words);
  return status;
}

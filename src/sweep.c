#include "kcp/sweep.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDING_OF_STEPS 1e-9 /* of a step: 0.1:0.3:0.1 has three values */

static enum kcp_status append(struct kcp_axis *axis, const char *value, struct kcp_error *error) {
  if (axis->count == KCP_MOST_CONFIGURATIONS)
    return kcp_fail(error, KCP_BAD_INPUT, "--%s lists more than %d values", axis->flag->name,
                    KCP_MOST_CONFIGURATIONS);
  bool is_full = (axis->count & (axis->count - 1)) == 0; /* room doubles: 1, 2, 4, ... */
  if (is_full) {
    uint64_t room = axis->count > 0 ? 2 * axis->count : 1;
    char **values = realloc(axis->values, room * sizeof *values);
    if (values == NULL) return kcp_out_of_memory(error, "a list of values", room * sizeof *values);
    axis->values = values;
  }
  char **place = &axis->values[axis->count];
  *place = value != NULL ? strdup(value) : NULL;
  if (value != NULL && *place == NULL) return kcp_out_of_memory(error, "a value", strlen(value));
  ++axis->count;
  return KCP_OK;
}

/* Text, and what is written with commas in it (X0,Y0,X1,Y1), is one value. */
static bool is_list(const struct kcp_flag *flag) {
  return flag->type != KCP_FLAG_TEXT && (flag->value == NULL || strchr(flag->value, ',') == NULL);
}

static bool has_ranges(const struct kcp_flag *flag) {
  switch (flag->type) {
    case KCP_FLAG_COUNT:
    case KCP_FLAG_COUNT32:
    case KCP_FLAG_SIZE:
    case KCP_FLAG_REAL: return true;
    default: return false;
  }
}

/* The value that the option's own parser made of a text. */
static enum kcp_status parse_whole(const struct kcp_flag *flag, const char *text, uint64_t *value,
                                   struct kcp_error *error) {
  struct kcp_request scratch = kcp_request_defaults();
  enum kcp_status status = kcp_flag_parse(flag, text, &scratch, error);
  if (status != KCP_OK) return status;
  const void *field = (const char *)&scratch + flag->offset;
  *value = flag->type == KCP_FLAG_COUNT32 ? *(const uint32_t *)field : *(const uint64_t *)field;
  return KCP_OK;
}

static enum kcp_status parse_real(const struct kcp_flag *flag, const char *text, double *value,
                                  struct kcp_error *error) {
  struct kcp_request scratch = kcp_request_defaults();
  enum kcp_status status = kcp_flag_parse(flag, text, &scratch, error);
  if (status == KCP_OK) *value = *(const double *)((const char *)&scratch + flag->offset);
  return status;
}

/* A step that leads from a first value up to a last one. */
static enum kcp_status check_range(const struct kcp_flag *flag, bool rises, bool moves,
                                   struct kcp_error *error) {
  if (!rises)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "--%s: a range A:B:STEP goes from the smaller to the "
                    "larger value",
                    flag->name);
  if (!moves)
    return kcp_fail(error, KCP_BAD_INPUT, "--%s: a range needs a step above 0", flag->name);
  return KCP_OK;
}

static enum kcp_status append_whole_range(struct kcp_axis *axis, char *const *parts,
                                          struct kcp_error *error) {
  uint64_t ends[3];
  enum kcp_status status = KCP_OK;
  for (int i = 0; i < 3 && status == KCP_OK; ++i)
    status = parse_whole(axis->flag, parts[i], &ends[i], error);
  if (status == KCP_OK) status = check_range(axis->flag, ends[0] <= ends[1], ends[2] > 0, error);
  for (uint64_t value = ends[0]; status == KCP_OK; value += ends[2]) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    status = append(axis, text, error);
    if (ends[1] - value < ends[2]) break;
  }
  return status;
}

static enum kcp_status append_real_range(struct kcp_axis *axis, char *const *parts,
                                         struct kcp_error *error) {
  double ends[3];
  enum kcp_status status = KCP_OK;
  for (int i = 0; i < 3 && status == KCP_OK; ++i)
    status = parse_real(axis->flag, parts[i], &ends[i], error);
  if (status == KCP_OK) status = check_range(axis->flag, ends[0] <= ends[1], ends[2] > 0, error);
  if (status != KCP_OK) return status;
  double steps = floor((ends[1] - ends[0]) / ends[2] + ROUNDING_OF_STEPS);
  for (double step = 0; step <= steps && status == KCP_OK; ++step) {
    char text[32];
    snprintf(text, sizeof text, "%.15g", ends[0] + step * ends[2]);
    status = append(axis, text, error);
  }
  return status;
}

/* Cuts the text at every `separator` into at most `most` parts; returns how many there are. */
static int cut(char *text, char separator, char **parts, int most) {
  int count = 0;
  for (char *next = text; next != NULL; ++count) {
    char *part = next;
    next = strchr(part, separator);
    if (next != NULL) *next++ = '\0';
    if (count < most) parts[count] = part;
  }
  return count;
}

/* One value or range of a list. */
static enum kcp_status append_item(struct kcp_axis *axis, char *item, struct kcp_error *error) {
  const struct kcp_flag *flag = axis->flag;
  if (*item == '\0')
    return kcp_fail(error, KCP_BAD_INPUT, "--%s: a value of the list is empty", flag->name);
  if (!has_ranges(flag) || strchr(item, ':') == NULL) return append(axis, item, error);
  char *parts[3];
  if (cut(item, ':', parts, 3) != 3)
    return kcp_fail(error, KCP_BAD_INPUT, "--%s: a range has three numbers, A:B:STEP", flag->name);
  return flag->type == KCP_FLAG_REAL ? append_real_range(axis, parts, error)
                                     : append_whole_range(axis, parts, error);
}

static enum kcp_status make_axis(const struct kcp_given_option *option, struct kcp_axis *axis,
                                 struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  axis->flag = option->flag;
  if (option->value == NULL || !is_list(option->flag)) return append(axis, option->value, error);
  char *text = strdup(option->value);
  if (text == NULL) return kcp_out_of_memory(error, "a list of values", strlen(option->value));
  for (char *next = text; next != NULL && status == KCP_OK;) {
    char *item = next;
    next = strchr(item, ',');
    if (next != NULL) *next++ = '\0';
    status = append_item(axis, item, error);
  }
  free(text);
  return status;
}

enum kcp_status kcp_sweep_make(const struct kcp_request *request, struct kcp_sweep *sweep,
                               struct kcp_error *error) {
  memset(sweep, 0, sizeof *sweep);
  sweep->count = 1;
  for (int i = 0; i < request->given_count; ++i) {
    if (!kcp_flag_is_swept(request->given[i].flag)) continue;
    struct kcp_axis *axis = &sweep->axes[sweep->axis_count++];
    enum kcp_status status = make_axis(&request->given[i], axis, error);
    if (status != KCP_OK) return status;
    sweep->count *= axis->count;
    if (sweep->count > KCP_MOST_CONFIGURATIONS)
      return kcp_fail(error, KCP_BAD_INPUT, "these lists make more than %d configurations",
                      KCP_MOST_CONFIGURATIONS);
  }
  return KCP_OK;
}

void kcp_sweep_free(struct kcp_sweep *sweep) {
  for (int i = 0; i < sweep->axis_count; ++i) {
    for (uint64_t j = 0; j < sweep->axes[i].count; ++j) free(sweep->axes[i].values[j]);
    free(sweep->axes[i].values);
  }
  memset(sweep, 0, sizeof *sweep);
}

const char *kcp_sweep_value(const struct kcp_sweep *sweep, int axis, uint64_t number) {
  for (int i = sweep->axis_count - 1; i > axis; --i) number /= sweep->axes[i].count;
  return sweep->axes[axis].values[number % sweep->axes[axis].count];
}

static enum kcp_status add_argument(struct kcp_configuration *configuration, const char *dashes,
                                    const char *text, struct kcp_error *error) {
  char *argument;
  if (asprintf(&argument, "%s%s", dashes, text) < 0)
    return kcp_out_of_memory(error, "a command line", strlen(text));
  configuration->arguments[configuration->argument_count++] = argument;
  return KCP_OK;
}

/* The word query stands first, so that no file is taken for a command. */
static enum kcp_status fill_arguments(const struct kcp_sweep *sweep, uint64_t number,
                                      const struct kcp_request *bench,
                                      struct kcp_configuration *configuration,
                                      struct kcp_error *error) {
  enum kcp_status status = add_argument(configuration, "", "kcp", error);
  if (status == KCP_OK) status = add_argument(configuration, "", "query", error);
  for (int i = 0; i < sweep->axis_count && status == KCP_OK; ++i) {
    const char *value = kcp_sweep_value(sweep, i, number);
    status = add_argument(configuration, "--", sweep->axes[i].flag->name, error);
    if (status == KCP_OK && value != NULL) status = add_argument(configuration, "", value, error);
  }
  bool has_dash = false;
  for (int i = 0; i < bench->input_count; ++i) has_dash |= bench->inputs[i][0] == '-';
  if (status == KCP_OK && has_dash) status = add_argument(configuration, "--", "", error);
  for (int i = 0; i < bench->input_count && status == KCP_OK; ++i)
    status = add_argument(configuration, "", bench->inputs[i], error);
  return status;
}

enum kcp_status kcp_configuration_make(const struct kcp_sweep *sweep, uint64_t number,
                                       const struct kcp_request *bench,
                                       struct kcp_configuration *configuration,
                                       struct kcp_error *error) {
  size_t most = 4 + 2 * (size_t)sweep->axis_count + (size_t)bench->input_count;
  memset(configuration, 0, sizeof *configuration);
  configuration->arguments = calloc(most, sizeof *configuration->arguments);
  if (configuration->arguments == NULL)
    return kcp_out_of_memory(error, "a command line", most * sizeof *configuration->arguments);
  enum kcp_status status = fill_arguments(sweep, number, bench, configuration, error);
  if (status == KCP_OK)
    status = kcp_args_parse(configuration->argument_count, configuration->arguments,
                            &configuration->request, error);
  if (status == KCP_OK && configuration->request.out_path != NULL)
    status = kcp_fail(error, KCP_BAD_INPUT,
                      "bench writes no answers: --out belongs to a query; --json, --csv and "
                      "--markdown take the results");
  return status;
}

void kcp_configuration_free(struct kcp_configuration *configuration) {
  for (int i = 0; i < configuration->argument_count; ++i) free(configuration->arguments[i]);
  free(configuration->arguments);
  configuration->arguments = NULL;
  configuration->argument_count = 0;
}

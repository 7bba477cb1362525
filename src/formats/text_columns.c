#include "formats/text_columns.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "formats/decimal.h"
#include "formats/formats.h"

struct field {
  const char *begin; /* without blanks and quotes around it */
  const char *end;
};

/* Goes through the fields of a line. */
struct field_cursor {
  const char *at;
  const char *end;
  char delimiter;
  bool more;
};

enum field_result {
  FIELD_FOUND,
  FIELD_NONE,
  FIELD_OPEN_QUOTE, /* a quote that its line does not close */
};

/* Where a message points to. */
struct place {
  const char *path;
  uint64_t line_number;
};

static const struct {
  const char *name;
  int32_t role;
} known_names[] = {
    {"id", KCP_COLUMN_ID}, {"x", 0}, {"lon", 0},
    {"longitude", 0},      {"y", 1}, {"lat", 1},
    {"latitude", 1},       {"z", 2}, {"weight", KCP_COLUMN_PASSED_OVER},
};

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

/* A blank that is not the delimiter. */
static bool is_padding(char c, char delimiter) {
  return is_blank(c) && c != delimiter;
}

bool kcp_text_is_blank(const char *line, const char *end) {
  while (line < end && is_blank(*line)) ++line;
  return line == end;
}

static struct field_cursor fields_of(const char *line, const char *end, char delimiter) {
  while (end > line && is_padding(end[-1], delimiter)) --end;
  if (delimiter == ' ')
    while (end > line && is_blank(end[-1])) --end;
  return (struct field_cursor){line, end, delimiter, true};
}

static bool ends_field(char c, char delimiter) {
  return delimiter == ' ' ? is_blank(c) : c == delimiter;
}

/* Behind the quote that closes the one at `at`; a doubled quote is part of the text. */
static const char *after_quotes(const char *at, const char *end) {
  for (++at; at < end; ++at) {
    if (*at != '"') continue;
    if (at + 1 == end || at[1] != '"') return at + 1;
    ++at;
  }
  return NULL;
}

static enum field_result next_field(struct field_cursor *cursor, struct field *field) {
  const char *at = cursor->at;
  const char *end = cursor->end;
  if (!cursor->more) return FIELD_NONE;
  while (at < end &&
         (cursor->delimiter == ' ' ? is_blank(*at) : is_padding(*at, cursor->delimiter)))
    ++at;
  bool quoted = at < end && *at == '"';
  field->begin = at;
  if (quoted) at = after_quotes(at, end);
  if (at == NULL) return FIELD_OPEN_QUOTE;
  while (at < end && !ends_field(*at, cursor->delimiter)) ++at;
  field->end = at;
  while (field->end > field->begin && is_blank(field->end[-1])) --field->end;
  if (quoted && field->end[-1] == '"') {
    ++field->begin;
    --field->end;
    while (field->begin < field->end && is_blank(*field->begin)) ++field->begin;
    while (field->end > field->begin && is_blank(field->end[-1])) --field->end;
  }
  cursor->more = at < end;
  cursor->at = at < end ? at + 1 : at;
  return FIELD_FOUND;
}

static bool parse_whole_number(struct field field, locale_t c_locale, double *value) {
  const char *at = field.begin;
  return field.begin < field.end && kcp_decimal_to_binary64(&at, c_locale, value) &&
         at == field.end;
}

/* A field as a message shows it: cut, and without bytes that a terminal would act on. */
struct shown_field {
  char text[48];
};

static struct shown_field show(struct field field) {
  struct shown_field shown;
  size_t length = (size_t)(field.end - field.begin);
  size_t most = sizeof shown.text - 4;
  size_t kept = length < most ? length : most;
  for (size_t i = 0; i < kept; ++i) {
    unsigned char c = (unsigned char)field.begin[i];
    shown.text[i] = c < 0x20 || c == 0x7F ? '?' : (char)c;
  }
  memcpy(shown.text + kept, "...", 4);
  if (length <= most) shown.text[length] = '\0';
  return shown;
}

static enum kcp_status wrong_count(struct place place, uint64_t found, uint32_t expected,
                                   struct kcp_error *error) {
  return kcp_fail(error, KCP_BAD_INPUT,
                  "%s: line %" PRIu64 ": %" PRIu64 " column%s where %" PRIu32 " %s expected",
                  place.path, place.line_number, found, found == 1 ? "" : "s", expected,
                  expected == 1 ? "was" : "were");
}

static enum kcp_status open_quote(struct place place, uint64_t column, struct kcp_error *error) {
  return kcp_fail(error, KCP_BAD_INPUT,
                  "%s: line %" PRIu64 ", column %" PRIu64 ": a quote is not closed in its line",
                  place.path, place.line_number, column + 1);
}

static bool same_word(struct field field, const char *word) {
  size_t length = strlen(word);
  return (size_t)(field.end - field.begin) == length && strncasecmp(field.begin, word, length) == 0;
}

/* Whether the file's reader asks for a column of that name beside x and y. */
static bool attribute_role(const struct kcp_dataset_options *options, struct field field,
                           int32_t *role) {
  for (uint32_t i = 0; i < options->attribute_count; ++i) {
    if (!same_word(field, options->attributes[i])) continue;
    *role = 2 + (int32_t)i;
    return true;
  }
  return false;
}

static bool known_role(const struct kcp_dataset_options *options, struct field field,
                       int32_t *role) {
  if (attribute_role(options, field, role)) return true;
  for (size_t i = 0; i < sizeof known_names / sizeof known_names[0]; ++i) {
    if (!same_word(field, known_names[i].name)) continue;
    *role = known_names[i].role;
    return true;
  }
  return false;
}

static bool has_outside_quotes(const char *line, const char *end, char wanted) {
  bool inside = false;
  for (; line < end; ++line) {
    if (*line == '"') inside = !inside;
    if (*line == wanted && !inside) return true;
  }
  return false;
}

static char decide_delimiter(const char *line, const char *end,
                             enum kcp_text_delimiter preference) {
  const char *candidates = preference == KCP_TEXT_TAB_FIRST ? "\t,; " : ",;\t ";
  while (line < end && is_blank(*line)) ++line;
  while (end > line && is_blank(end[-1])) --end;
  for (; *candidates != '\0'; ++candidates)
    if (has_outside_quotes(line, end, *candidates)) return *candidates;
  return ',';
}

static enum kcp_status split(struct place place, const char *line, const char *end, char delimiter,
                             struct field **out, uint32_t *count, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  *out = NULL;
  *count = 0;
  struct field *fields = malloc(KCP_TEXT_MOST_COLUMNS * sizeof *fields);
  if (fields == NULL)
    return kcp_out_of_memory(error, "columns", KCP_TEXT_MOST_COLUMNS * sizeof *fields);
  struct field_cursor cursor = fields_of(line, end, delimiter);
  struct field field;
  enum field_result result;
  while ((result = next_field(&cursor, &field)) == FIELD_FOUND) {
    if (*count == KCP_TEXT_MOST_COLUMNS) {
      status = kcp_fail(error, KCP_BAD_INPUT, "%s: line %" PRIu64 ": more than %d columns",
                        place.path, place.line_number, KCP_TEXT_MOST_COLUMNS);
      goto cleanup;
    }
    fields[(*count)++] = field;
  }
  if (result == FIELD_OPEN_QUOTE) {
    status = open_quote(place, *count, error);
    goto cleanup;
  }
  *out = fields;
  fields = NULL;

cleanup:
  free(fields);
  return status;
}

/* A header has words where numbers belong and no number, or at least one name that is known: a
 * first record with one bad number in it must not pass for a header and be lost. */
static bool is_header(const struct kcp_dataset_options *options,
                      const struct kcp_text_columns *columns, const struct field *fields) {
  uint32_t words = 0, numbers = 0, known = 0;
  for (uint32_t i = 0; i < columns->count; ++i) {
    double value;
    int32_t role;
    if (fields[i].begin == fields[i].end) continue;
    if (columns->roles[i] == KCP_COLUMN_PASSED_OVER) continue;
    if (parse_whole_number(fields[i], columns->c_locale, &value)) {
      ++numbers;
      continue;
    }
    ++words;
    known += known_role(options, fields[i], &role);
  }
  return words > 0 && (numbers == 0 || known > 0);
}

static struct kcp_coordinate_name role_name(int32_t role) {
  if (role == KCP_COLUMN_ID) return (struct kcp_coordinate_name){"the id"};
  return kcp_coordinate_name((uint32_t)role < 3 ? 3 : (uint32_t)role + 1, (uint32_t)role);
}

/* Counts the coordinates and checks that each of 0 .. d - 1 is there once, and at most one id. */
static enum kcp_status check_roles(struct kcp_text_columns *columns, const char *whose,
                                   struct kcp_error *error) {
  uint32_t column_of[KCP_TEXT_MOST_DIMENSIONS] = {0}; /* from 1; 0 when there is none */
  uint32_t id_column = 0;
  uint32_t highest = 0;
  for (uint32_t i = 0; i < columns->count; ++i) {
    int32_t role = columns->roles[i];
    if (role == KCP_COLUMN_PASSED_OVER) continue;
    uint32_t *column = role == KCP_COLUMN_ID ? &id_column : &column_of[role];
    if (*column != 0)
      return kcp_fail(error, KCP_BAD_INPUT, "%s: columns %" PRIu32 " and %" PRIu32 " are both %s",
                      whose, *column, i + 1, role_name(role).text);
    *column = i + 1;
    if (role >= 0 && (uint32_t)role + 1 > highest) highest = (uint32_t)role + 1;
  }
  if (highest == 0)
    return kcp_fail(error, KCP_BAD_INPUT, "%s: no column holds a coordinate", whose);
  for (uint32_t j = 0; j < highest; ++j)
    if (column_of[j] == 0)
      return kcp_fail(error, KCP_BAD_INPUT, "%s: no column is %s, but one is %s", whose,
                      kcp_coordinate_name(highest, j).text,
                      kcp_coordinate_name(highest, highest - 1).text);
  columns->dimensions = highest;
  columns->has_ids = id_column != 0;
  return KCP_OK;
}

static enum kcp_status allocate_roles(struct kcp_text_columns *columns, uint32_t count,
                                      struct kcp_error *error) {
  columns->count = count;
  columns->roles = calloc(count, sizeof *columns->roles);
  if (columns->roles == NULL)
    return kcp_out_of_memory(error, "columns", count * sizeof *columns->roles);
  return KCP_OK;
}

/* c0, c1, ...: a coordinate by its number. */
static bool numbered_coordinate(struct field field, int32_t *role) {
  const char *at = field.begin + 1;
  uint64_t number;
  if (field.end - field.begin < 2 || (*field.begin != 'c' && *field.begin != 'C')) return false;
  if (!kcp_decimal_to_uint64(&at, &number) || at != field.end) return false;
  if (number >= KCP_TEXT_MOST_DIMENSIONS) return false;
  *role = (int32_t)number;
  return true;
}

static enum kcp_status roles_of_option(const struct kcp_dataset_options *options,
                                       struct kcp_text_columns *columns, struct kcp_error *error) {
  const char *option = options->columns;
  struct place place = {"--columns", 1};
  struct field *fields = NULL;
  uint32_t count;
  enum kcp_status status =
      split(place, option, option + strlen(option), ',', &fields, &count, error);
  if (status != KCP_OK) return status;
  status = allocate_roles(columns, count, error);
  for (uint32_t i = 0; i < count && status == KCP_OK; ++i) {
    int32_t *role = &columns->roles[i];
    if (same_word(fields[i], "-"))
      *role = KCP_COLUMN_PASSED_OVER;
    else if (!known_role(options, fields[i], role) && !numbered_coordinate(fields[i], role))
      status =
          kcp_fail(error, KCP_BAD_INPUT,
                   "--columns: '%s' is none of id, x, y, z, c0, c1, ..., weight and - (a column "
                   "to pass over)",
                   show(fields[i]).text);
  }
  if (status == KCP_OK) status = check_roles(columns, "--columns", error);
  free(fields);
  return status;
}

/* Names decide. Where a coordinate goes by its name, columns of other names are passed over;
 * else they are the coordinates, in order. */
static void roles_of_header(const struct kcp_dataset_options *options, const struct field *fields,
                            struct kcp_text_columns *columns) {
  bool any_named = false;
  for (uint32_t i = 0; i < columns->count; ++i) {
    int32_t role;
    any_named |= !attribute_role(options, fields[i], &role) &&
                 known_role(options, fields[i], &role) && role >= 0;
  }
  int32_t next = 0;
  for (uint32_t i = 0; i < columns->count; ++i)
    if (!known_role(options, fields[i], &columns->roles[i]))
      columns->roles[i] = any_named ? KCP_COLUMN_PASSED_OVER : next++;
}

static void roles_of_layout(enum kcp_text_layout layout, struct kcp_text_columns *columns) {
  int32_t next = layout == KCP_TEXT_ID_FIRST && columns->count > 2 ? KCP_COLUMN_ID : 0;
  for (uint32_t i = 0; i < columns->count; ++i) columns->roles[i] = next++;
}

static enum kcp_status check_dimensions(struct place place, const struct kcp_text_columns *columns,
                                        struct kcp_error *error) {
  uint32_t coordinates = 0;
  for (uint32_t i = 0; i < columns->count; ++i) coordinates += columns->roles[i] >= 0;
  if (coordinates <= KCP_TEXT_MOST_DIMENSIONS) return KCP_OK;
  return kcp_fail(error, KCP_BAD_INPUT,
                  "%s: line %" PRIu64 ": %" PRIu32 " coordinates, at most %d can be read from text",
                  place.path, place.line_number, coordinates, KCP_TEXT_MOST_DIMENSIONS);
}

/* The columns of a file with a first line, without --columns. */
static enum kcp_status roles_of_file(struct place place, const struct field *fields, uint32_t count,
                                     const struct kcp_dataset_options *options,
                                     struct kcp_text_columns *columns, struct kcp_error *error) {
  char whose[512];
  enum kcp_status status = allocate_roles(columns, count, error);
  if (status != KCP_OK) return status;
  columns->has_header = is_header(options, columns, fields);
  if (columns->has_header)
    roles_of_header(options, fields, columns);
  else
    roles_of_layout(options->text_layout, columns);
  status = check_dimensions(place, columns, error);
  if (status != KCP_OK) return status;
  snprintf(whose, sizeof whose, "%s: line %" PRIu64, place.path, place.line_number);
  return check_roles(columns, whose, error);
}

enum kcp_status kcp_text_columns_decide(const char *path, uint64_t line_number, const char *line,
                                        const char *end, const struct kcp_dataset_options *options,
                                        enum kcp_text_delimiter preference,
                                        struct kcp_text_columns *columns, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  struct place place = {path, line_number};
  struct field *fields = NULL;
  uint32_t count = 0;
  memset(columns, 0, sizeof *columns);
  columns->dimensions = 2;
  columns->delimiter = ',';
  columns->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (columns->c_locale == (locale_t)0) {
    status = kcp_out_of_memory(error, "the C locale", 0);
    goto cleanup;
  }
  if (options->columns != NULL) {
    status = roles_of_option(options, columns, error);
    if (status != KCP_OK) goto cleanup;
  }
  if (line == NULL) goto cleanup;
  columns->delimiter = decide_delimiter(line, end, preference);
  status = split(place, line, end, columns->delimiter, &fields, &count, error);
  if (status != KCP_OK) goto cleanup;
  if (options->columns == NULL) {
    status = roles_of_file(place, fields, count, options, columns, error);
    goto cleanup;
  }
  if (count != columns->count) {
    status = wrong_count(place, count, columns->count, error);
    goto cleanup;
  }
  columns->has_header = is_header(options, columns, fields);

cleanup:
  free(fields);
  return status;
}

void kcp_text_columns_free(struct kcp_text_columns *columns) {
  free(columns->roles);
  if (columns->c_locale != (locale_t)0) freelocale(columns->c_locale);
  memset(columns, 0, sizeof *columns);
}

/* Takes the common row apart without looking for its fields first: no quotes, nothing wrong. False
 * when the careful way has to look at it. */
static bool parse_plain_row(const struct kcp_text_columns *columns, const char *line,
                            const char *end, uint64_t *id, double *coordinates, uint64_t stride) {
  const char delimiter = columns->delimiter;
  const char *at = line;
  for (uint32_t i = 0; i < columns->count; ++i) {
    while (is_blank(*at) && (*at != delimiter || delimiter == ' ')) ++at;
    int32_t role = columns->roles[i];
    if (role >= 0) {
      if (!kcp_decimal_to_binary64(&at, columns->c_locale, &coordinates[(uint64_t)role * stride]))
        return false;
    } else if (role == KCP_COLUMN_ID) {
      if (!kcp_decimal_to_uint64(&at, id)) return false;
    } else {
      while (at < end && !ends_field(*at, delimiter))
        if (*at++ == '"') return false;
    }
    const char *after = at;
    while (is_blank(*at) && (*at != delimiter || delimiter == ' ')) ++at;
    if (i + 1 == columns->count) return at == end;
    if (delimiter == ' ') {
      if (at == after || at == end) return false;
    } else if (*at++ != delimiter) {
      return false;
    }
  }
  return false;
}

static enum kcp_status wrong_field(struct place place, const struct kcp_text_columns *columns,
                                   uint32_t column, struct field field, struct kcp_error *error) {
  char where[64];
  bool is_id = columns->roles[column] == KCP_COLUMN_ID;
  if (is_id)
    snprintf(where, sizeof where, "id");
  else
    snprintf(where, sizeof where, "%s",
             kcp_coordinate_name(columns->dimensions, (uint32_t)columns->roles[column]).text);
  if (field.begin == field.end)
    return kcp_fail(error, KCP_BAD_INPUT, "%s: line %" PRIu64 ", column %" PRIu32 " (%s): is empty",
                    place.path, place.line_number, column + 1, where);
  return kcp_fail(
      error, KCP_BAD_INPUT, "%s: line %" PRIu64 ", column %" PRIu32 " (%s): '%s' is %s", place.path,
      place.line_number, column + 1, where, show(field).text,
      is_id ? "no id; ids are whole numbers from 0 to 18446744073709551615" : "not a number");
}

static enum kcp_status count_fields(struct place place, const struct kcp_text_columns *columns,
                                    const char *line, const char *end, struct kcp_error *error) {
  struct field_cursor cursor = fields_of(line, end, columns->delimiter);
  struct field field;
  uint64_t count = 0;
  enum field_result result;
  while ((result = next_field(&cursor, &field)) == FIELD_FOUND) ++count;
  if (result == FIELD_OPEN_QUOTE) return open_quote(place, count, error);
  if (count != columns->count) return wrong_count(place, count, columns->count, error);
  return KCP_OK;
}

enum kcp_status kcp_text_parse_row(const struct kcp_text_columns *columns, const char *path,
                                   uint64_t line_number, const char *line, const char *end,
                                   uint64_t *id, double *coordinates, uint64_t stride,
                                   struct kcp_error *error) {
  if (parse_plain_row(columns, line, end, id, coordinates, stride)) return KCP_OK;
  struct place place = {path, line_number};
  enum kcp_status status = count_fields(place, columns, line, end, error);
  if (status != KCP_OK) return status;
  struct field_cursor cursor = fields_of(line, end, columns->delimiter);
  for (uint32_t i = 0; i < columns->count; ++i) {
    struct field field;
    next_field(&cursor, &field);
    int32_t role = columns->roles[i];
    const char *at = field.begin;
    bool right = true;
    if (role >= 0)
      right = parse_whole_number(field, columns->c_locale, &coordinates[(uint64_t)role * stride]);
    else if (role == KCP_COLUMN_ID)
      right = at < field.end && kcp_decimal_to_uint64(&at, id) && at == field.end;
    if (!right) return wrong_field(place, columns, i, field, error);
  }
  return KCP_OK;
}

/* .asc: ESRI ASCII grids. Lines `name value` (ncols, nrows, xllcorner or xllcenter, yllcorner or
 * yllcenter, cellsize or dx and dy, nodata_value), then the values, the row of largest y first. */
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "formats/decimal.h"
#include "formats/rasters.h"

enum key {
  NCOLS,
  NROWS,
  XLLCORNER,
  YLLCORNER,
  XLLCENTER,
  YLLCENTER,
  CELLSIZE,
  DX,
  DY,
  NODATA_VALUE,
  KEYS
};
static const char *const key_names[KEYS] = {"ncols",     "nrows",       "xllcorner", "yllcorner",
                                            "xllcenter", "yllcenter",   "cellsize",  "dx",
                                            "dy",        "nodata_value"};

struct text {
  const char *path;
  const char *at, *end;
  uint64_t line; /* of `at`, from 1 */
  locale_t c_locale;
  double header[KEYS];
  bool has[KEYS];
};

static bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_space(struct text *text) {
  while (text->at < text->end && is_space(*text->at)) text->line += *text->at++ == '\n';
}

static int length_of_word(const struct text *text) {
  const char *at = text->at;
  while (at < text->end && !is_space(*at)) ++at;
  return at - text->at < 40 ? (int)(at - text->at) : 40;
}

static enum kcp_status no_number(const struct text *text, struct kcp_error *error) {
  return kcp_fail(error, KCP_BAD_INPUT, "%s: line %" PRIu64 ": '%.*s' is not a number", text->path,
                  text->line, length_of_word(text), text->at);
}

static enum kcp_status read_number(struct text *text, double *number, struct kcp_error *error) {
  const char *at = text->at;
  if (!kcp_decimal_to_binary64(&at, text->c_locale, number) || (at < text->end && !is_space(*at)))
    return no_number(text, error);
  text->at = at;
  return KCP_OK;
}

/* The key at the cursor; KEYS when there is none. */
static enum key key_at(const struct text *text) {
  const size_t length = (size_t)length_of_word(text);
  int key = 0;
  while (key < KEYS &&
         (strlen(key_names[key]) != length || strncasecmp(text->at, key_names[key], length) != 0))
    ++key;
  return (enum key)key;
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A word that begins a value, not a name: numbers, and NaN. */
static bool begins_value(const struct text *text) {
  return !is_letter(*text->at) || strncasecmp(text->at, "nan", 3) == 0;
}

static enum kcp_status read_header(struct text *text, struct kcp_error *error) {
  for (skip_space(text); text->at < text->end && !begins_value(text); skip_space(text)) {
    const enum key key = key_at(text);
    if (key == KEYS)
      return kcp_fail(
          error, KCP_BAD_INPUT,
          "%s: line %" PRIu64
          ": '%.*s' is no name of an ASCII grid's header (ncols, nrows, xllcorner, ...)",
          text->path, text->line, length_of_word(text), text->at);
    text->at += strlen(key_names[key]);
    skip_space(text);
    enum kcp_status status = read_number(text, &text->header[key], error);
    if (status != KCP_OK) return status;
    text->has[key] = true;
  }
  return KCP_OK;
}

static enum kcp_status require(const struct text *text, bool there, const char *name,
                               struct kcp_error *error) {
  return there ? KCP_OK
               : kcp_fail(error, KCP_BAD_INPUT, "%s: its header has no %s", text->path, name);
}

static enum kcp_status wrong_count(const struct text *text, const double *header, const char *how,
                                   struct kcp_error *error) {
  return kcp_fail(error, KCP_BAD_INPUT,
                  "%s: %s values than the %.0f (%.0f x %.0f) that its header states", text->path,
                  how, header[NROWS] * header[NCOLS], header[NROWS], header[NCOLS]);
}

/* Sets the extent; checks sizes. */
static enum kcp_status take_header(struct text *text, struct kcp_raster *raster,
                                   struct kcp_error *error) {
  const double *header = text->header;
  const bool *has = text->has;
  enum kcp_status status = require(text, has[NCOLS], "ncols", error);
  if (status == KCP_OK) status = require(text, has[NROWS], "nrows", error);
  if (status == KCP_OK)
    status = require(text, has[XLLCORNER] || has[XLLCENTER], "xllcorner", error);
  if (status == KCP_OK)
    status = require(text, has[YLLCORNER] || has[YLLCENTER], "yllcorner", error);
  if (status == KCP_OK)
    status = require(text, has[CELLSIZE] || (has[DX] && has[DY]), "cellsize", error);
  if (status != KCP_OK) return status;
  for (int key = NCOLS; key <= NROWS; ++key)
    if (!(header[key] >= 1 && header[key] <= UINT32_MAX && header[key] == floor(header[key])))
      return kcp_fail(error, KCP_BAD_INPUT, "%s: %s is %g, not a whole number from 1", text->path,
                      key_names[key], header[key]);
  const double dx = has[DX] ? header[DX] : header[CELLSIZE];
  const double dy = has[DY] ? header[DY] : header[CELLSIZE];
  if (!(dx > 0 && dy > 0 && isfinite(dx) && isfinite(dy)))
    return kcp_fail(error, KCP_BAD_INPUT, "%s: cellsize is not a number above 0", text->path);
  struct kcp_domain *extent = &raster->extent;
  extent->x0 = has[XLLCORNER] ? header[XLLCORNER] : header[XLLCENTER] - dx / 2;
  extent->y0 = has[YLLCORNER] ? header[YLLCORNER] : header[YLLCENTER] - dy / 2;
  extent->x1 = extent->x0 + header[NCOLS] * dx;
  extent->y1 = extent->y0 + header[NROWS] * dy;
  if (!isfinite(extent->x0) || !isfinite(extent->y0) || !(extent->x0 < extent->x1) ||
      !(extent->y0 < extent->y1))
    return kcp_fail(error, KCP_BAD_INPUT, "%s: its corners lie beyond binary64", text->path);
  /* A value takes a byte and a separator: what cannot be there is not allocated. */
  if (header[NROWS] * header[NCOLS] > (double)(text->end - text->at) / 2 + 1)
    return wrong_count(text, header, "fewer", error);
  return kcp_raster_allocate(text->path, (uint64_t)header[NROWS], (uint64_t)header[NCOLS], raster,
                             error);
}

static bool is_nodata(const struct text *text, double value) {
  return isnan(value) || (text->has[NODATA_VALUE] && value == text->header[NODATA_VALUE]);
}

static enum kcp_status read_values(struct text *text, struct kcp_raster *raster,
                                   struct kcp_error *error) {
  const uint64_t columns = raster->columns, wanted = raster->rows * columns;
  uint64_t count = 0;
  for (skip_space(text); text->at < text->end && count < wanted; skip_space(text), ++count) {
    double value;
    enum kcp_status status = read_number(text, &value, error);
    if (status != KCP_OK) return status;
    const uint64_t row = raster->rows - 1 - count / columns;
    const bool nodata = is_nodata(text, value);
    if (!nodata && !(isfinite(value) && value >= 0))
      return kcp_fail(error, KCP_BAD_INPUT,
                      "%s: line %" PRIu64
                      ": %g is no density; it must be finite and at least 0, or nodata",
                      text->path, text->line, value);
    raster->values[row * columns + count % columns] = nodata ? 0 : value;
    raster->nodata_count += nodata;
  }
  if (count < wanted || text->at < text->end)
    return wrong_count(text, text->header, count < wanted ? "fewer" : "more", error);
  return KCP_OK;
}

static enum kcp_status ascii_read(const struct kcp_dataset *file, struct kcp_raster *raster,
                                  struct kcp_error *error) {
  struct text text = {.path = file->path, .line = 1};
  const size_t size = (size_t)file->file_bytes;
  char *bytes = malloc(size + 1 + KCP_DECIMAL_PADDING);
  if (bytes == NULL) return kcp_out_of_memory(error, "a raster", size);
  memset(bytes + size, 0, 1 + KCP_DECIMAL_PADDING);
  enum kcp_status status = kcp_dataset_pread(file, bytes, size, 0, error);
  text.c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (status == KCP_OK && text.c_locale == (locale_t)0)
    status = kcp_out_of_memory(error, "the C locale", 0);
  text.at = bytes;
  text.end = bytes + size;
  if (status == KCP_OK) status = read_header(&text, error);
  if (status == KCP_OK) status = take_header(&text, raster, error);
  if (status == KCP_OK) status = read_values(&text, raster, error);
  if (text.c_locale != (locale_t)0) freelocale(text.c_locale);
  free(bytes);
  return status;
}

const struct kcp_raster_format kcp_raster_format_ascii = {".asc", true, ascii_read};

/* The columns of a text file of points: what each one holds, and rows taken apart.
 *
 * Lines are given without their end. `line` .. `end` must be followed by a byte that is no part of
 * a number (newline or NUL) and KCP_DECIMAL_PADDING bytes that can be read. */
#ifndef KCP_FORMATS_TEXT_COLUMNS_H
#define KCP_FORMATS_TEXT_COLUMNS_H

#include <locale.h>
#include <stdbool.h>
#include <stdint.h>

#include "kcp/dataset.h"

enum {
  KCP_TEXT_MOST_COLUMNS = 16384,
  KCP_TEXT_MOST_DIMENSIONS = 4096,
};

/* The role of a column: a coordinate by its number, or one of these. */
enum {
  KCP_COLUMN_ID = -1,
  KCP_COLUMN_PASSED_OVER = -2,
};

/* Which delimiter is tried first when the first line has several. */
enum kcp_text_delimiter {
  KCP_TEXT_COMMA_FIRST,
  KCP_TEXT_TAB_FIRST,
};

struct kcp_text_columns {
  char delimiter; /* ' ' stands for runs of blanks */
  bool has_header;
  bool has_ids;
  uint32_t dimensions;
  uint32_t count;
  int32_t *roles; /* `count` of them; owned */
  locale_t c_locale;
};

/* Blanks and the carriage return of CRLF. */
bool kcp_text_is_blank(const char *line, const char *end);

/* Decides from the first line of `path` and the options. NULL for `line` when the file has no line
 * that is not blank. The caller calls kcp_text_columns_free in any case. */
enum kcp_status kcp_text_columns_decide(const char *path, uint64_t line_number, const char *line,
                                        const char *end, const struct kcp_dataset_options *options,
                                        enum kcp_text_delimiter preference,
                                        struct kcp_text_columns *columns, struct kcp_error *error);
void kcp_text_columns_free(struct kcp_text_columns *columns);

/* Takes a row apart: the id, when the columns have one, to `*id`, coordinate j to
 * `coordinates[j * stride]`. KCP_BAD_INPUT naming file, line and column. */
enum kcp_status kcp_text_parse_row(const struct kcp_text_columns *columns, const char *path,
                                   uint64_t line_number, const char *line, const char *end,
                                   uint64_t *id, double *coordinates, uint64_t stride,
                                   struct kcp_error *error);

#endif

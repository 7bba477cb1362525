/* Rows of text in columns: for a terminal, for Markdown and as CSV. */
#ifndef KCP_TABLE_H
#define KCP_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KCP_TABLE_MOST_COLUMNS 96

enum kcp_table_style { KCP_TABLE_ALIGNED, KCP_TABLE_MARKDOWN, KCP_TABLE_CSV };

struct kcp_table_column {
  const char *name;
  int width;       /* of an aligned table, at least; the name's length when that is more */
  bool is_numeric; /* to the right */
};

/* `count` columns, at most KCP_TABLE_MOST_COLUMNS. Errors stay in the stream. Cells are UTF-8;
 * those of CSV are quoted where it is needed. */
void kcp_table_write_head(FILE *stream, enum kcp_table_style style,
                          const struct kcp_table_column *columns, int count);
void kcp_table_write_row(FILE *stream, enum kcp_table_style style,
                         const struct kcp_table_column *columns, int count,
                         const char *const *cells);

#ifdef __cplusplus
}
#endif
#endif

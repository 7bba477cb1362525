#include "kcp/table.h"

#include <string.h>

/* Characters, not bytes. */
static int length_of(const char *text) {
  int length = 0;
  for (; *text != '\0'; ++text) length += (*text & 0xC0) != 0x80;
  return length;
}

static void write_padding(FILE *stream, int count) {
  for (; count > 0; --count) fputc(' ', stream);
}

static void write_aligned(FILE *stream, const struct kcp_table_column *columns, int count,
                          const char *const *cells) {
  for (int i = 0; i < count; ++i) {
    int name_length = length_of(columns[i].name);
    int width = columns[i].width > name_length ? columns[i].width : name_length;
    int padding = width - length_of(cells[i]);
    bool is_last = i == count - 1;
    if (columns[i].is_numeric) write_padding(stream, padding);
    fputs(cells[i], stream);
    if (!columns[i].is_numeric && !is_last) write_padding(stream, padding);
    fputs(is_last ? "\n" : "  ", stream);
  }
}

static void write_markdown(FILE *stream, int count, const char *const *cells) {
  fputc('|', stream);
  for (int i = 0; i < count; ++i) {
    fputc(' ', stream);
    for (const char *c = cells[i]; *c != '\0'; ++c) {
      if (*c == '|') fputc('\\', stream);
      fputc(*c, stream);
    }
    fputs(" |", stream);
  }
  fputc('\n', stream);
}

static void write_csv(FILE *stream, int count, const char *const *cells) {
  for (int i = 0; i < count; ++i) {
    if (i > 0) fputc(',', stream);
    if (strpbrk(cells[i], ",\"\r\n") == NULL) {
      fputs(cells[i], stream);
      continue;
    }
    fputc('"', stream);
    for (const char *c = cells[i]; *c != '\0'; ++c) {
      if (*c == '"') fputc('"', stream);
      fputc(*c, stream);
    }
    fputc('"', stream);
  }
  fputc('\n', stream);
}

void kcp_table_write_row(FILE *stream, enum kcp_table_style style,
                         const struct kcp_table_column *columns, int count,
                         const char *const *cells) {
  switch (style) {
    case KCP_TABLE_ALIGNED: write_aligned(stream, columns, count, cells); break;
    case KCP_TABLE_MARKDOWN: write_markdown(stream, count, cells); break;
    case KCP_TABLE_CSV: write_csv(stream, count, cells); break;
  }
}

void kcp_table_write_head(FILE *stream, enum kcp_table_style style,
                          const struct kcp_table_column *columns, int count) {
  const char *names[KCP_TABLE_MOST_COLUMNS] = {NULL}, *rules[KCP_TABLE_MOST_COLUMNS] = {NULL};
  for (int i = 0; i < count; ++i) {
    names[i] = columns[i].name;
    rules[i] = columns[i].is_numeric ? "---:" : "---";
  }
  kcp_table_write_row(stream, style, columns, count, names);
  if (style == KCP_TABLE_MARKDOWN) kcp_table_write_row(stream, style, columns, count, rules);
}

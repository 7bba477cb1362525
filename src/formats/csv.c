/* .csv, .txt and .tsv: points as lines of text.
 *
 * The file is never in memory as a whole. Opening it counts the lines that are not blank, block by
 * block, and keeps for each block where its first line starts, so that any record can be found by
 * reading one block. A line belongs to the block that holds its first byte. Blocks are the chunks
 * that threads decode. */
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/decimal.h"
#include "formats/formats.h"
#include "formats/text_columns.h"
#include "kcp/interrupt.h"

enum {
  BLOCK_BYTES = 256 * 1024,
  LINE_TAIL_BYTES = 64 * 1024, /* read at a time of a line that leaves its block */
  LONGEST_LINE = 1024 * 1024,
  WRITE_PIECE_ROWS = 1024, /* formatted by one thread at a time */
  WRITE_PIECES = 64,
  LONGEST_NUMBER = 25, /* %.17g with sign, exponent and delimiter */
  LONGEST_ID = 22
};

/* Where the lines of a block start. While the blocks are counted, `line` and `row` are the numbers
 * of lines and of those not blank in the block; afterwards those before it. */
struct block {
  uint64_t offset; /* of the first line that starts in the block */
  uint64_t line;
  uint64_t row;
};

struct text {
  struct kcp_text_columns columns;
  uint64_t text_offset; /* behind the byte order mark */
  struct block *blocks;
};

/* The lines of a block in memory, being gone through. */
struct line_cursor {
  const char *at;
  const char *end;
  uint64_t line_number; /* of the line before `at` */
};

struct line {
  const char *begin;
  const char *end;
};

static bool next_line(struct line_cursor *cursor, struct line *line) {
  if (cursor->at == cursor->end) return false;
  line->begin = cursor->at;
  const char *newline = memchr(cursor->at, '\n', (size_t)(cursor->end - cursor->at));
  line->end = newline != NULL ? newline : cursor->end;
  cursor->at = newline != NULL ? newline + 1 : cursor->end;
  ++cursor->line_number;
  return true;
}

/* A line that is too long counts as one with text, so that it is refused where it stands. */
static bool is_blank_line(struct line line) {
  return line.end - line.begin <= LONGEST_LINE && kcp_text_is_blank(line.begin, line.end);
}

static bool next_line_with_text(struct line_cursor *cursor, struct line *line) {
  while (next_line(cursor, line))
    if (!is_blank_line(*line)) return true;
  return false;
}

static uint64_t block_begin(const struct text *text, uint64_t block) {
  return block > 0 ? block * BLOCK_BYTES : text->text_offset;
}

static uint64_t block_end(const struct kcp_dataset *dataset, uint64_t block) {
  uint64_t end = (block + 1) * BLOCK_BYTES;
  return end < dataset->file_bytes ? end : dataset->file_bytes;
}

/* Whether a line that starts at `begin` and is blank up to `offset`, the end of its block, is blank
 * as a whole. */
static enum kcp_status rest_is_blank(const struct kcp_dataset *dataset, uint64_t begin,
                                     uint64_t offset, bool *is_blank, struct kcp_error *error) {
  char piece[4096];
  bool ended = false;
  *is_blank = true;
  while (*is_blank && !ended && offset < dataset->file_bytes) {
    uint64_t left = dataset->file_bytes - offset;
    size_t bytes = left < sizeof piece ? (size_t)left : sizeof piece;
    enum kcp_status status = kcp_dataset_pread(dataset, piece, bytes, offset, error);
    if (status != KCP_OK) return status;
    const char *newline = memchr(piece, '\n', bytes);
    const char *end = newline != NULL ? newline : piece + bytes;
    ended = newline != NULL;
    offset += (uint64_t)(end - piece);
    *is_blank = kcp_text_is_blank(piece, end) && offset - begin <= LONGEST_LINE;
  }
  return KCP_OK;
}

static enum kcp_status count_block(const struct kcp_dataset *dataset, const struct text *text,
                                   uint64_t number, struct kcp_scratch *scratch,
                                   struct block *block, struct kcp_error *error) {
  uint64_t begin = block_begin(text, number);
  uint64_t end = block_end(dataset, number);
  uint64_t before = number > 0 ? 1 : 0; /* the byte that tells whether a line starts at `begin` */
  size_t bytes = (size_t)(end - begin + before);
  enum kcp_status status = kcp_scratch_reserve(scratch, bytes, error);
  if (status != KCP_OK) return status;
  status = kcp_dataset_pread(dataset, scratch->bytes, bytes, begin - before, error);
  if (status != KCP_OK) return status;

  const char *buffer = (const char *)scratch->bytes;
  struct line_cursor cursor = {.at = buffer, .end = buffer + bytes};
  struct line line;
  if (before > 0) next_line(&cursor, &line);
  *block = (struct block){.offset = begin - before + (uint64_t)(cursor.at - buffer)};
  while (next_line(&cursor, &line)) {
    bool is_blank = is_blank_line(line);
    if (is_blank && line.end == cursor.end) {
      uint64_t line_begin = end - (uint64_t)(line.end - line.begin);
      status = rest_is_blank(dataset, line_begin, end, &is_blank, error);
      if (status != KCP_OK) return status;
    }
    ++block->line;
    block->row += !is_blank;
  }
  return KCP_OK;
}

static enum kcp_status count_blocks(struct kcp_dataset *dataset, const struct text *text,
                                    struct kcp_error *error) {
  enum kcp_status result = KCP_OK;
#pragma omp parallel if (dataset->chunk_count > 1)
  {
    struct kcp_scratch scratch = {0};
#pragma omp for schedule(dynamic)
    for (uint64_t i = 0; i < dataset->chunk_count; ++i) {
      enum kcp_status so_far;
#pragma omp atomic read
      so_far = result;
      if (so_far != KCP_OK) continue;
      struct kcp_error own_error;
      enum kcp_status status =
          kcp_interrupted()
              ? kcp_fail(&own_error, KCP_INTERRUPTED, "%s: stopped while reading", dataset->path)
              : count_block(dataset, text, i, &scratch, &text->blocks[i], &own_error);
      if (status == KCP_OK) continue;
#pragma omp critical(kcp_text_count)
      {
#pragma omp atomic write
        result = status;
        if (error != NULL) *error = own_error;
      }
    }
    kcp_scratch_free(&scratch);
  }
  return result;
}

/* Reads the lines that start in a block into `scratch`, the last one whole unless it is too long,
 * followed by NUL and the padding that numbers need. */
static enum kcp_status load_block(const struct kcp_dataset *dataset, uint64_t number,
                                  struct kcp_scratch *scratch, struct line_cursor *cursor,
                                  struct kcp_error *error) {
  const struct text *text = dataset->state;
  const struct block *block = &text->blocks[number];
  uint64_t offset = block->offset;
  size_t used = (size_t)(block_end(dataset, number) - offset);
  uint64_t rest_of_file = dataset->file_bytes - offset;
  size_t most = BLOCK_BYTES + LONGEST_LINE + 1; /* enough to see that a line is too long */
  if (rest_of_file < most) most = (size_t)rest_of_file;
  enum kcp_status status = kcp_scratch_reserve(scratch, most + 1 + KCP_DECIMAL_PADDING, error);
  if (status != KCP_OK) return status;
  char *buffer = (char *)scratch->bytes;
  status = kcp_dataset_pread(dataset, buffer, used, offset, error);
  if (status != KCP_OK) return status;
  bool whole = used == 0 || buffer[used - 1] == '\n';
  while (!whole && used < most) {
    size_t bytes = most - used < LINE_TAIL_BYTES ? most - used : LINE_TAIL_BYTES;
    status = kcp_dataset_pread(dataset, buffer + used, bytes, offset + used, error);
    if (status != KCP_OK) return status;
    const char *newline = memchr(buffer + used, '\n', bytes);
    whole = newline != NULL;
    used = whole ? (size_t)(newline - buffer) + 1 : used + bytes;
  }
  memset(buffer + used, 0, 1 + KCP_DECIMAL_PADDING);
  *cursor = (struct line_cursor){buffer, buffer + used, block->line};
  return KCP_OK;
}

/* Turns the counts of the blocks into what lies before each; returns the number of rows. */
static uint64_t sum_blocks(struct block *blocks, uint64_t count) {
  uint64_t line = 0;
  uint64_t row = 0;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t lines = blocks[i].line;
    uint64_t rows = blocks[i].row;
    blocks[i].line = line;
    blocks[i].row = row;
    line += lines;
    row += rows;
  }
  return row;
}

static enum kcp_status check_line_length(const struct kcp_dataset *dataset, uint64_t line_number,
                                         struct line line, struct kcp_error *error) {
  if (line.end - line.begin <= LONGEST_LINE) return KCP_OK;
  return kcp_fail(error, KCP_BAD_INPUT, "%s: line %" PRIu64 " is longer than %d bytes",
                  dataset->path, line_number, LONGEST_LINE);
}

/* Decides the columns from the first line with text, if there is one. */
static enum kcp_status decide_columns(struct kcp_dataset *dataset, uint64_t rows,
                                      const struct kcp_dataset_options *options,
                                      enum kcp_text_delimiter preference, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  struct text *text = dataset->state;
  struct kcp_scratch scratch = {0};
  struct line_cursor cursor = {0};
  struct line line = {0};
  if (rows > 0) {
    uint64_t number = 0;
    while (number + 1 < dataset->chunk_count && text->blocks[number + 1].row == 0) ++number;
    status = load_block(dataset, number, &scratch, &cursor, error);
    if (status != KCP_OK) goto cleanup;
    if (!next_line_with_text(&cursor, &line)) {
      status = kcp_fail(error, KCP_FAILED, "%s: changed while it was being read", dataset->path);
      goto cleanup;
    }
    status = check_line_length(dataset, cursor.line_number, line, error);
    if (status != KCP_OK) goto cleanup;
  }
  status = kcp_text_columns_decide(dataset->path, cursor.line_number, line.begin, line.end, options,
                                   preference, &text->columns, error);

cleanup:
  kcp_scratch_free(&scratch);
  return status;
}

static enum kcp_status skip_byte_order_mark(const struct kcp_dataset *dataset, struct text *text,
                                            struct kcp_error *error) {
  unsigned char start[3] = {0};
  size_t bytes = dataset->file_bytes < sizeof start ? (size_t)dataset->file_bytes : sizeof start;
  enum kcp_status status = kcp_dataset_pread(dataset, start, bytes, 0, error);
  if (status != KCP_OK) return status;
  if ((start[0] == 0xFF && start[1] == 0xFE) || (start[0] == 0xFE && start[1] == 0xFF))
    return kcp_fail(error, KCP_BAD_INPUT, "%s: is UTF-16 text; save it as UTF-8", dataset->path);
  if (start[0] == 0xEF && start[1] == 0xBB && start[2] == 0xBF) text->text_offset = 3;
  return KCP_OK;
}

static enum kcp_status open_text(struct kcp_dataset *dataset,
                                 const struct kcp_dataset_options *options,
                                 enum kcp_text_delimiter preference, struct kcp_error *error) {
  struct text *text = calloc(1, sizeof *text);
  if (text == NULL) return kcp_out_of_memory(error, "a text file", sizeof *text);
  dataset->state = text;
  enum kcp_status status = skip_byte_order_mark(dataset, text, error);
  if (status != KCP_OK) return status;

  dataset->chunk_count =
      dataset->file_bytes / BLOCK_BYTES + (dataset->file_bytes % BLOCK_BYTES != 0);
  text->blocks = calloc(dataset->chunk_count + 1, sizeof *text->blocks);
  dataset->chunk_starts = calloc(dataset->chunk_count + 1, sizeof *dataset->chunk_starts);
  if (text->blocks == NULL || dataset->chunk_starts == NULL)
    return kcp_out_of_memory(error, "the lines of a text file", 32 * dataset->chunk_count);
  status = count_blocks(dataset, text, error);
  if (status != KCP_OK) return status;
  uint64_t rows = sum_blocks(text->blocks, dataset->chunk_count);
  status = decide_columns(dataset, rows, options, preference, error);
  if (status != KCP_OK) return status;

  uint64_t header_rows = text->columns.has_header ? 1 : 0;
  for (uint64_t i = 0; i < dataset->chunk_count; ++i) {
    uint64_t row = text->blocks[i].row;
    dataset->chunk_starts[i] = row > header_rows ? row - header_rows : 0;
  }
  dataset->count = rows - header_rows;
  dataset->chunk_starts[dataset->chunk_count] = dataset->count;
  dataset->dimensions = text->columns.dimensions;
  dataset->has_ids = text->columns.has_ids;
  return KCP_OK;
}

static enum kcp_status csv_open(struct kcp_dataset *dataset,
                                const struct kcp_dataset_options *options,
                                struct kcp_error *error) {
  return open_text(dataset, options, KCP_TEXT_COMMA_FIRST, error);
}

static enum kcp_status tsv_open(struct kcp_dataset *dataset,
                                const struct kcp_dataset_options *options,
                                struct kcp_error *error) {
  return open_text(dataset, options, KCP_TEXT_TAB_FIRST, error);
}

static void text_close(struct kcp_dataset *dataset) {
  struct text *text = dataset->state;
  if (text == NULL) return;
  kcp_text_columns_free(&text->columns);
  free(text->blocks);
  free(text);
}

/* Loads the block of a record and moves to the line that holds it. */
static enum kcp_status seek_record(const struct kcp_dataset *dataset, uint64_t record,
                                   struct kcp_scratch *scratch, struct line_cursor *cursor,
                                   struct kcp_error *error) {
  const struct text *text = dataset->state;
  uint64_t number = kcp_dataset_chunk_of(dataset, record);
  enum kcp_status status = load_block(dataset, number, scratch, cursor, error);
  if (status != KCP_OK) return status;
  uint64_t row = record + (text->columns.has_header ? 1 : 0);
  struct line line;
  for (uint64_t passed = text->blocks[number].row; passed < row; ++passed)
    next_line_with_text(cursor, &line);
  return KCP_OK;
}

static enum kcp_status text_read(const struct kcp_dataset *dataset, uint64_t first, uint64_t count,
                                 struct kcp_scratch *scratch, struct kcp_points *points,
                                 struct kcp_error *error) {
  const struct text *text = dataset->state;
  struct line_cursor cursor;
  enum kcp_status status = seek_record(dataset, first, scratch, &cursor, error);
  for (; status == KCP_OK && points->count < count; ++points->count) {
    struct line line;
    if (!next_line_with_text(&cursor, &line))
      return kcp_fail(error, KCP_FAILED, "%s: changed while it was being read", dataset->path);
    status = check_line_length(dataset, cursor.line_number, line, error);
    if (status != KCP_OK) return status;
    status = kcp_text_parse_row(&text->columns, dataset->path, cursor.line_number, line.begin,
                                line.end, points->ids + points->count,
                                points->coordinates + points->count, points->stride, error);
    if (status != KCP_OK) return status;
  }
  return status;
}

static uint64_t text_line_of(const struct kcp_dataset *dataset, uint64_t record) {
  struct kcp_scratch scratch = {0};
  struct line_cursor cursor;
  struct line line;
  bool found = seek_record(dataset, record, &scratch, &cursor, NULL) == KCP_OK &&
               next_line_with_text(&cursor, &line);
  kcp_scratch_free(&scratch);
  return found ? cursor.line_number : 0;
}

static enum kcp_status begin_text(struct kcp_point_writer *writer, char delimiter,
                                  struct kcp_error *error) {
  enum kcp_status status = kcp_point_writer_put(writer, "id", 2, error);
  for (uint32_t j = 0; j < writer->dimensions && status == KCP_OK; ++j) {
    char name[24];
    int length;
    if (writer->dimensions <= 3)
      length = snprintf(name, sizeof name, "%c%c", delimiter, "xyz"[j]);
    else
      length = snprintf(name, sizeof name, "%cc%" PRIu32, delimiter, j);
    status = kcp_point_writer_put(writer, name, (size_t)length, error);
  }
  if (status != KCP_OK) return status;
  return kcp_point_writer_put(writer, "\n", 1, error);
}

static enum kcp_status csv_begin(struct kcp_point_writer *writer, struct kcp_error *error) {
  return begin_text(writer, ',', error);
}

static enum kcp_status tsv_begin(struct kcp_point_writer *writer, struct kcp_error *error) {
  return begin_text(writer, '\t', error);
}

/* Formats points first .. end - 1 and returns the number of bytes. */
static size_t format_rows(const struct kcp_points *points, uint64_t first, uint64_t end,
                          char delimiter, char *text) {
  char *at = text;
  for (uint64_t i = first; i < end; ++i) {
    at += sprintf(at, "%" PRIu64, points->ids[i]);
    for (uint32_t j = 0; j < points->dimensions; ++j)
      at += sprintf(at, "%c%.17g", delimiter, kcp_points_column(points, j)[i]);
    *at++ = '\n';
  }
  return (size_t)(at - text);
}

static enum kcp_status append_text(struct kcp_point_writer *writer, const struct kcp_points *points,
                                   char delimiter, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  size_t row_bytes = LONGEST_ID + (size_t)LONGEST_NUMBER * points->dimensions;
  uint64_t piece_rows = WRITE_PIECE_ROWS / points->dimensions + 1;
  size_t piece_bytes = piece_rows * row_bytes + 1;
  locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (c_locale == (locale_t)0) return kcp_out_of_memory(error, "the C locale", 0);
  status = kcp_scratch_reserve(&writer->scratch, WRITE_PIECES * piece_bytes, error);
  if (status != KCP_OK) goto cleanup;
  char *buffer = (char *)writer->scratch.bytes;
  for (uint64_t first = 0; first < points->count; first += WRITE_PIECES * piece_rows) {
    size_t lengths[WRITE_PIECES];
#pragma omp parallel for schedule(dynamic) if (points->count - first > piece_rows)
    for (int piece = 0; piece < WRITE_PIECES; ++piece) {
      uint64_t begin = first + (uint64_t)piece * piece_rows;
      uint64_t end = begin + piece_rows < points->count ? begin + piece_rows : points->count;
      locale_t previous = uselocale(c_locale);
      lengths[piece] =
          format_rows(points, begin, end, delimiter, buffer + (size_t)piece * piece_bytes);
      uselocale(previous);
    }
    for (int piece = 0; piece < WRITE_PIECES; ++piece) {
      status =
          kcp_point_writer_put(writer, buffer + (size_t)piece * piece_bytes, lengths[piece], error);
      if (status != KCP_OK) goto cleanup;
    }
  }

cleanup:
  freelocale(c_locale);
  return status;
}

static enum kcp_status csv_append(struct kcp_point_writer *writer, const struct kcp_points *points,
                                  struct kcp_error *error) {
  return append_text(writer, points, ',', error);
}

static enum kcp_status tsv_append(struct kcp_point_writer *writer, const struct kcp_points *points,
                                  struct kcp_error *error) {
  return append_text(writer, points, '\t', error);
}

const struct kcp_format kcp_format_csv = {
    .name = "csv",
    .endings = ".csv .txt",
    .open = csv_open,
    .read = text_read,
    .line_of = text_line_of,
    .close = text_close,
    .begin = csv_begin,
    .append = csv_append,
};

const struct kcp_format kcp_format_tsv = {
    .name = "tsv",
    .endings = ".tsv",
    .open = tsv_open,
    .read = text_read,
    .line_of = text_line_of,
    .close = text_close,
    .begin = tsv_begin,
    .append = tsv_append,
};

#include "kcp/point_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/formats.h"

enum kcp_status kcp_point_writer_open(const char *path, uint64_t count, uint32_t dimensions,
                                      struct kcp_point_writer **out, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  *out = NULL;
  const struct kcp_format *format = kcp_format_of_path(path);
  if (format == NULL || format->begin == NULL) {
    char endings[256];
    kcp_format_endings(endings, sizeof endings);
    return kcp_fail(error, KCP_BAD_INPUT, "no writer for '%s'; formats are %s", path, endings);
  }
  if (dimensions == 0)
    return kcp_fail(error, KCP_BAD_INPUT, "%s: points without coordinates cannot be written", path);
  struct kcp_point_writer *writer = calloc(1, sizeof *writer);
  if (writer == NULL) return kcp_out_of_memory(error, "a writer", sizeof *writer);
  writer->format = format;
  writer->expected = count;
  writer->dimensions = dimensions;
  writer->path = strdup(path);
  if (writer->path == NULL) {
    status = kcp_out_of_memory(error, "a file name", strlen(path));
    goto cleanup;
  }
  status = kcp_output_file_open(path, &writer->file, error);
  if (status != KCP_OK) goto cleanup;
  status = format->begin(writer, error);

cleanup:
  if (status == KCP_OK)
    *out = writer;
  else
    kcp_point_writer_discard(writer);
  return status;
}

enum kcp_status kcp_point_writer_append(struct kcp_point_writer *writer,
                                        const struct kcp_points *points, struct kcp_error *error) {
  if (points->dimensions != writer->dimensions)
    return kcp_fail(error, KCP_FAILED,
                    "%s: points of %" PRIu32 " coordinates after points of %" PRIu32, writer->path,
                    points->dimensions, writer->dimensions);
  if (points->count == 0) return KCP_OK;
  enum kcp_status status = writer->format->append(writer, points, error);
  if (status == KCP_OK) writer->written += points->count;
  return status;
}

struct kcp_point_writer_loss kcp_point_writer_loss(const struct kcp_point_writer *writer) {
  return writer->loss;
}

static void free_writer(struct kcp_point_writer *writer) {
  kcp_scratch_free(&writer->scratch);
  free(writer->path);
  free(writer);
}

enum kcp_status kcp_point_writer_commit(struct kcp_point_writer *writer, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  if (writer->format->finish != NULL) status = writer->format->finish(writer, error);
  if (status == KCP_OK)
    status = kcp_output_file_commit(&writer->file, error);
  else
    kcp_output_file_discard(&writer->file);
  free_writer(writer);
  return status;
}

void kcp_point_writer_discard(struct kcp_point_writer *writer) {
  if (writer == NULL) return;
  kcp_output_file_discard(&writer->file);
  free_writer(writer);
}

enum kcp_status kcp_point_writer_put(struct kcp_point_writer *writer, const void *bytes,
                                     size_t count, struct kcp_error *error) {
  if (fwrite(bytes, 1, count, writer->file.stream) == count) return KCP_OK;
  return kcp_fail(error, KCP_FAILED, "cannot write '%s': %s", writer->path, strerror(errno));
}

enum kcp_status kcp_point_writer_rewrite_header(struct kcp_point_writer *writer, const void *bytes,
                                                size_t count, struct kcp_error *error) {
  if (fseeko(writer->file.stream, 0, SEEK_SET) != 0)
    return kcp_fail(error, KCP_FAILED,
                    "cannot correct the record count at the start of '%s': %s; write to a file",
                    writer->path, strerror(errno));
  return kcp_point_writer_put(writer, bytes, count, error);
}

void kcp_point_writer_note_ids(struct kcp_point_writer *writer, const struct kcp_points *points) {
  for (uint64_t i = 0; i < points->count && !writer->loss.ids; ++i)
    writer->loss.ids = points->ids[i] != writer->written + i;
}

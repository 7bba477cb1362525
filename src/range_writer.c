#include "kcp/range_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "kcp/text.h"

#define NPY_HEADER_BYTES 128
#define SHORTEST_LINE 6 /* "0,0,0\n" */

static bool ends_in(const char *path, const char *ending) {
  const size_t length = strlen(path), wanted = strlen(ending);
  return length >= wanted && strcmp(path + length - wanted, ending) == 0;
}

enum kcp_status kcp_range_writer_open(const char *path, struct kcp_range_writer *writer,
                                      struct kcp_error *error) {
  memset(writer, 0, sizeof *writer);
  writer->path = path;
  writer->kind = ends_in(path, ".npy") ? KCP_RANGE_FILE_NPY : KCP_RANGE_FILE_CSV;
  enum kcp_status status = kcp_output_file_open(path, &writer->pairs, error);
  if (status == KCP_OK && writer->kind == KCP_RANGE_FILE_NPY) {
    if (asprintf(&writer->offsets_path, "%.*s.offsets.npy", (int)strlen(path) - 4, path) < 0) {
      writer->offsets_path = NULL;
      status = kcp_out_of_memory(error, "a file name", strlen(path) + 9);
    } else {
      status = kcp_output_file_open(writer->offsets_path, &writer->offsets, error);
    }
  }
  if (status != KCP_OK) kcp_range_writer_discard(writer);
  return status;
}

bool kcp_range_writer_wants_ranks(const struct kcp_range_writer *writer) {
  return writer->kind == KCP_RANGE_FILE_CSV;
}

static unsigned id_bytes_of(const struct kcp_range_runner *runner) {
  const uint64_t count = kcp_dataset_count(runner->reference);
  for (uint64_t i = 0; i < count; ++i)
    if (runner->reference_ids[i] > UINT32_MAX) return 8;
  return 4;
}

/* A header of NPY_HEADER_BYTES for an array of `count` unsigned integers. */
static void write_npy_header(FILE *stream, unsigned element_bytes, uint64_t count) {
  char header[NPY_HEADER_BYTES + 1];
  static const unsigned char preamble[10] = {
      0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, NPY_HEADER_BYTES - sizeof preamble, 0};
  int length = snprintf(header, sizeof header,
                        "{'descr': '<u%u', 'fortran_order': False, 'shape': (%" PRIu64 ",), }",
                        element_bytes, count);
  int padding = NPY_HEADER_BYTES - (int)sizeof preamble - 1 - length;
  fwrite(preamble, 1, sizeof preamble, stream);
  fprintf(stream, "%s%*s\n", header, padding, "");
}

static enum kcp_status check_disk(const struct kcp_range_writer *writer, double needed,
                                  struct kcp_error *error) {
  struct statvfs disk;
  if (writer->pairs.partial_path == NULL || statvfs(writer->pairs.partial_path, &disk) != 0)
    return KCP_OK; /* a pipe or device; errors of writing tell */
  const double room = (double)disk.f_bavail * (double)disk.f_frsize;
  if (needed <= room) return KCP_OK;
  return kcp_fail(error, KCP_FAILED,
                  "--out %s: the pairs take %s%s, %s free there; nothing written", writer->path,
                  writer->kind == KCP_RANGE_FILE_CSV ? "at least " : "",
                  kcp_text_bytes(needed).text, kcp_text_bytes(room).text);
}

enum kcp_status kcp_range_writer_begin(struct kcp_range_writer *writer,
                                       const struct kcp_range_runner *runner, uint64_t pair_count,
                                       struct kcp_error *error) {
  const uint64_t query_count = kcp_dataset_count(runner->query);
  writer->self = runner->self;
  writer->offset = 0;
  if (writer->kind == KCP_RANGE_FILE_CSV) {
    fputs("id1,id2,distance\n", writer->pairs.stream);
    return check_disk(writer, (double)pair_count * SHORTEST_LINE, error);
  }
  writer->id_bytes = id_bytes_of(runner);
  write_npy_header(writer->pairs.stream, writer->id_bytes, pair_count);
  write_npy_header(writer->offsets.stream, sizeof(uint64_t), query_count + 1);
  const uint64_t zero = 0;
  fwrite(&zero, sizeof zero, 1, writer->offsets.stream);
  return check_disk(
      writer,
      (double)pair_count * writer->id_bytes + ((double)query_count + 1) * 8 + 2 * NPY_HEADER_BYTES,
      error);
}

enum kcp_status kcp_range_writer_commit(struct kcp_range_writer *writer, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  /* The pairs are surely on the disk before the offsets get their name. */
  if (fflush(writer->pairs.stream) != 0 || ferror(writer->pairs.stream) != 0)
    return kcp_fail(error, KCP_FAILED, "--out %s: cannot be written: %s", writer->path,
                    strerror(errno));
  if (writer->kind == KCP_RANGE_FILE_NPY) status = kcp_output_file_commit(&writer->offsets, error);
  return status == KCP_OK ? kcp_output_file_commit(&writer->pairs, error) : status;
}

void kcp_range_writer_discard(struct kcp_range_writer *writer) {
  kcp_output_file_discard(&writer->pairs);
  kcp_output_file_discard(&writer->offsets);
  free(writer->offsets_path);
  memset(writer, 0, sizeof *writer);
}

#include <stdio.h>

#include "kcp/commands.h"
#include "kcp/generate.h"
#include "kcp/interrupt.h"
#include "kcp/point_writer.h"
#include "kcp/progress.h"
#include "kcp/scan.h"
#include "kcp/text.h"

#define SLICE_RECORDS 8192 /* what a thread makes at a time */
#define COLUMNS 3

/* Fills the block with records first .. first + count - 1, all cores at it. */
static void generate(const struct kcp_generator *generator, uint64_t first, uint64_t count,
                     struct kcp_points *block) {
#pragma omp parallel for schedule(dynamic)
  for (uint64_t offset = 0; offset < count; offset += SLICE_RECORDS) {
    struct kcp_points slice = *block;
    slice.ids += offset;
    slice.coordinates += offset;
    uint64_t left = count - offset;
    kcp_generate_block(generator, first + offset, left < SLICE_RECORDS ? left : SLICE_RECORDS,
                       &slice);
  }
  block->count = count;
}

static enum kcp_status generate_all(const struct kcp_request *request,
                                    const struct kcp_generator *generator, struct kcp_points *block,
                                    struct kcp_point_writer *writer, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  struct kcp_progress progress;
  uint64_t total = request->generate.count;
  kcp_progress_start(&progress, kcp_shows_progress(request));
  for (uint64_t first = 0; first < total && status == KCP_OK; first += block->stride) {
    uint64_t left = total - first;
    generate(generator, first, left < block->stride ? left : block->stride, block);
    struct kcp_points written = *block;
    written.dimensions = request->generate.dimensions;
    status = kcp_point_writer_append(writer, &written, error);
    kcp_progress_update(&progress, "gen", first + block->count, total, first + block->count);
    if (status == KCP_OK && kcp_interrupted())
      status = kcp_fail(error, KCP_INTERRUPTED, "stopped at %.0f%%; nothing written",
                        100 * progress.fraction);
  }
  kcp_progress_finish(&progress);
  return status;
}

enum kcp_status kcp_command_gen(const struct kcp_request *request, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  struct kcp_generator *generator = NULL;
  struct kcp_point_writer *writer = NULL;
  struct kcp_points block = {0};
  const struct kcp_generate_options *options = &request->generate;
  uint64_t room = kcp_scan_block_records(COLUMNS);
  if (room > options->count) room = options->count;
  status = kcp_generator_create(options, &generator, error);
  if (status != KCP_OK) goto cleanup;
  status = kcp_points_allocate(room, COLUMNS, &block, error);
  if (status != KCP_OK) goto cleanup;
  status =
      kcp_point_writer_open(request->out_path, options->count, options->dimensions, &writer, error);
  if (status != KCP_OK) goto cleanup;
  status = generate_all(request, generator, &block, writer, error);
  if (status != KCP_OK) goto cleanup;
  struct kcp_point_writer_loss loss = kcp_point_writer_loss(writer);
  status = kcp_point_writer_commit(writer, error);
  writer = NULL;
  if (status != KCP_OK) goto cleanup;
  if (loss.rounded_count > 0)
    kcp_warn(request, "%s holds float32: %s coordinates were rounded", request->out_path,
             kcp_text_grouped(loss.rounded_count).text);
  if (!request->quiet)
    fprintf(stderr, "kcp: %s points written to %s\n", kcp_text_grouped(options->count).text,
            request->out_path);

cleanup:
  kcp_point_writer_discard(writer);
  kcp_points_free(&block);
  kcp_generator_free(generator);
  return status;
}

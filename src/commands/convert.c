#include <stdio.h>

#include "kcp/commands.h"
#include "kcp/point_writer.h"
#include "kcp/scan.h"
#include "kcp/text.h"

struct conversion {
  struct kcp_point_writer *writer;
  uint64_t written;
};

static enum kcp_status append_block(void *context, const struct kcp_points *block, uint64_t first,
                                    struct kcp_error *error) {
  struct conversion *conversion = context;
  (void)first;
  conversion->written += block->count;
  return kcp_point_writer_append(conversion->writer, block, error);
}

static void tell(const struct kcp_request *request, const struct kcp_dataset *dataset,
                 const struct kcp_point_writer_loss *loss, uint64_t written) {
  if (loss->ids)
    kcp_warn(request, "%s has no place for ids: records are numbered anew", request->out_path);
  if (loss->rounded_count > 0)
    kcp_warn(request, "%s holds float32: %s coordinates were rounded", request->out_path,
             kcp_text_grouped(loss->rounded_count).text);
  uint64_t dropped = kcp_dataset_dropped(dataset);
  if (dropped > 0)
    kcp_warn(request, "%s record%s with a coordinate that is not finite %s left out",
             kcp_text_grouped(dropped).text, dropped == 1 ? "" : "s",
             dropped == 1 ? "was" : "were");
  if (!request->quiet)
    fprintf(stderr, "kcp: %s points written to %s\n", kcp_text_grouped(written).text,
            request->out_path);
}

enum kcp_status kcp_command_convert(const struct kcp_request *request, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  struct kcp_dataset *dataset = NULL;
  struct conversion conversion = {NULL, 0};
  struct kcp_progress progress;
  struct kcp_dataset_options options = {.columns = request->columns,
                                        .text_layout = KCP_TEXT_ID_FIRST,
                                        .drop_invalid = request->drop_invalid};
  status = kcp_dataset_open(request->inputs[0], &options, &dataset, error);
  if (status != KCP_OK) goto cleanup;
  status = kcp_point_writer_open(request->out_path, kcp_dataset_count(dataset),
                                 kcp_dataset_dimensions(dataset), &conversion.writer, error);
  if (status != KCP_OK) goto cleanup;
  kcp_progress_start(&progress, kcp_shows_progress(request));
  status = kcp_scan(dataset, append_block, &conversion, &progress, error);
  kcp_progress_finish(&progress);
  if (status == KCP_INTERRUPTED)
    kcp_fail(error, status, "stopped at %.0f%%; nothing written", 100 * progress.fraction);
  if (status != KCP_OK) goto cleanup;
  struct kcp_point_writer_loss loss = kcp_point_writer_loss(conversion.writer);
  status = kcp_point_writer_commit(conversion.writer, error);
  conversion.writer = NULL;
  if (status == KCP_OK) tell(request, dataset, &loss, conversion.written);

cleanup:
  kcp_point_writer_discard(conversion.writer);
  kcp_dataset_close(dataset);
  return status;
}

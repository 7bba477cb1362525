#include "kcp/scan.h"

#include <stddef.h>

#include "kcp/interrupt.h"

#define BLOCK_BYTES (UINT64_C(64) << 20)

uint64_t kcp_scan_block_records(uint32_t dimensions) {
  uint64_t record_bytes = 8 + 8 * (uint64_t)dimensions;
  return record_bytes < BLOCK_BYTES ? BLOCK_BYTES / record_bytes : 1;
}

enum kcp_status kcp_scan(struct kcp_dataset *dataset, kcp_block_visitor *visit, void *context,
                         struct kcp_progress *progress, struct kcp_error *error) {
  uint64_t total = kcp_dataset_count(dataset);
  uint64_t room = kcp_scan_block_records(kcp_dataset_dimensions(dataset));
  struct kcp_points block;
  if (room > total) room = total;
  enum kcp_status status =
      kcp_points_allocate(room, kcp_dataset_dimensions(dataset), &block, error);
  for (uint64_t first = 0; first < total && status == KCP_OK; first += room) {
    uint64_t count = total - first < room ? total - first : room;
    status = kcp_dataset_read(dataset, first, count, &block, error);
    if (status == KCP_OK && visit != NULL) status = visit(context, &block, first, error);
    if (status == KCP_OK && kcp_interrupted())
      status = kcp_fail(error, KCP_INTERRUPTED, "interrupted");
    kcp_progress_update(progress, "read", first + count, total, first + count);
  }
  kcp_points_free(&block);
  return status;
}

/* Builds what finds primitives (kcp/range_index.h) on the host, for both backends: primitives are
 * few. */
#ifndef KCP_RANGE_BUILT_INDEX_H
#define KCP_RANGE_BUILT_INDEX_H

#include "kcp/range_index.h"
#include "kcp/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An index and the memory that it points into. */
struct kcp_built_index {
  struct kcp_primitive_index index;
  struct kcp_primitive_box *boxes; /* of the hierarchy, those of the primitives first; owned */
  uint64_t box_count;
  uint32_t *firsts;     /* of the grid: side^3 + 1; owned */
  uint32_t *primitives; /* owned */
  uint64_t entry_count; /* of the grid's lists */
};

/* Over `count` >= 1 primitives in Morton order, whose boxes are copied. */
enum kcp_status kcp_built_index_create(enum kcp_range_index kind,
                                       const struct kcp_primitive_box *boxes, uint64_t count,
                                       struct kcp_built_index *built, struct kcp_error *error);
void kcp_built_index_free(struct kcp_built_index *built); /* a zeroed struct is allowed */

#ifdef __cplusplus
}
#endif

#endif

/* Touching a mapping of a file that may become shorter meanwhile, which raises SIGBUS. */
#ifndef KCP_MAPPING_GUARD_H
#define KCP_MAPPING_GUARD_H

#include <stdbool.h>

/* Call once before the first kcp_touch_mapping, from one thread. */
void kcp_guard_mappings(void);

/* Runs work(context), which neither allocates nor locks; false when it touched what the file no
 * longer has, and was left at that point. */
bool kcp_touch_mapping(void (*work)(void *context), void *context);

#endif

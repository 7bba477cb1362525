/* Short lists of record numbers put into ascending order by one thread (CPU). */
#ifndef KCP_CPU_SORT_RECORDS_H
#define KCP_CPU_SORT_RECORDS_H

#include <stdint.h>

/* `scratch` has room for `count` records when count > KCP_SORT_WITHOUT_SCRATCH, else it may be
 * NULL. */
#define KCP_SORT_WITHOUT_SCRATCH 32
void kcp_sort_records(uint32_t *records, uint64_t count, uint32_t *scratch);

#endif

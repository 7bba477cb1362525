/* SIGINT and SIGTERM ask the program to stop; long loops look here and return KCP_INTERRUPTED. */
#ifndef KCP_INTERRUPT_H
#define KCP_INTERRUPT_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

void kcp_interrupt_install(void);
bool kcp_interrupted(void);

#ifdef __cplusplus
}
#endif
#endif

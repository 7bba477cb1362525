/* Numbers as text for files of many lines: the bytes of printf, some ten times as fast. */
#ifndef KCP_NUMBER_TEXT_H
#define KCP_NUMBER_TEXT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KCP_NUMBER_TEXT_BYTES 32 /* room that any number needs */

/* "%llu" and "%.17g" of a finite value >= 0 to `to`, without an end; return where the text ends. */
char *kcp_write_uint64(uint64_t value, char *to);
char *kcp_write_binary64(double value, char *to);

#ifdef __cplusplus
}
#endif
#endif

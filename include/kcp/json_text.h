/* Text of any bytes as JSON. */
#ifndef KCP_JSON_TEXT_H
#define KCP_JSON_TEXT_H

#include <jansson.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The text, new, owned by the caller: what is not UTF-8 is shown with '?' for its bytes beyond
 * ASCII. NULL without memory. */
json_t *kcp_json_text(const char *value);

#ifdef __cplusplus
}
#endif
#endif

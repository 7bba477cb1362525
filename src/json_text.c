#include "kcp/json_text.h"

#include <stdlib.h>
#include <string.h>

json_t *kcp_json_text(const char *value) {
  json_t *string = json_string(value);
  if (string != NULL) return string;
  char *copy = strdup(value);
  if (copy == NULL) return NULL;
  for (char *c = copy; *c != '\0'; ++c)
    if ((unsigned char)*c >= 0x80) *c = '?';
  string = json_string(copy);
  free(copy);
  return string;
}

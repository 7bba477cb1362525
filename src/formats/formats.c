#include "formats/formats.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct kcp_format *const formats[] = {
    &kcp_format_bin, &kcp_format_csv,   &kcp_format_tsv,
    &kcp_format_npy, &kcp_format_fvecs, &kcp_format_fbin,
};
enum { FORMAT_COUNT = sizeof formats / sizeof formats[0] };

static bool has_ending(const struct kcp_format *format, const char *ending) {
  size_t length = strlen(ending);
  for (const char *candidate = format->endings; *candidate != '\0';) {
    size_t candidate_length = strcspn(candidate, " ");
    if (candidate_length == length && strncasecmp(candidate, ending, length) == 0) return true;
    candidate += candidate_length;
    candidate += strspn(candidate, " ");
  }
  return false;
}

const struct kcp_format *kcp_format_of_path(const char *path) {
  const char *slash = strrchr(path, '/');
  const char *ending = strrchr(slash != NULL ? slash : path, '.');
  if (ending == NULL) return NULL;
  for (size_t i = 0; i < FORMAT_COUNT; ++i)
    if (has_ending(formats[i], ending)) return formats[i];
  return NULL;
}

const struct kcp_format *kcp_format_named(const char *name) {
  for (size_t i = 0; i < FORMAT_COUNT; ++i)
    if (strcmp(formats[i]->name, name) == 0) return formats[i];
  return NULL;
}

void kcp_format_endings(char *text, size_t size) {
  size_t used = 0;
  text[0] = '\0';
  for (size_t i = 0; i < FORMAT_COUNT && used < size; ++i)
    used +=
        (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? " " : "", formats[i]->endings);
}

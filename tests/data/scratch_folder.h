/* A folder that lives as long as a test group, and files in it. */
#ifndef KCP_TESTS_SCRATCH_FOLDER_H
#define KCP_TESTS_SCRATCH_FOLDER_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch_folder[64];

static inline int make_scratch_folder(void **state) {
  (void)state;
  strcpy(scratch_folder, "/tmp/kcp-test-XXXXXX");
  return mkdtemp(scratch_folder) == NULL ? -1 : 0;
}

static inline int count_scratch_files(void) {
  int count = 0;
  DIR *folder = opendir(scratch_folder);
  for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
    count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

static inline void empty_scratch_folder(void) {
  DIR *folder = opendir(scratch_folder);
  for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
      unlinkat(dirfd(folder), entry->d_name, 0);
  closedir(folder);
}

static inline int remove_scratch_folder(void **state) {
  (void)state;
  empty_scratch_folder();
  return rmdir(scratch_folder);
}

/* The path of a file in the folder; the buffer is reused after four calls. */
static inline const char *scratch_path(const char *name) {
  static char paths[4][384];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", scratch_folder, name);
  return path;
}

static inline const char *write_scratch_file(const char *name, const void *bytes, size_t count) {
  const char *path = scratch_path(name);
  FILE *stream = fopen(path, "wb");
  if (stream == NULL || fwrite(bytes, 1, count, stream) != count || fclose(stream) != 0) abort();
  return path;
}

/* The bytes of a file, with a NUL behind them; the caller frees them. */
static inline char *read_scratch_file(const char *name, size_t *count) {
  struct stat facts;
  FILE *stream = fopen(scratch_path(name), "rb");
  if (stream == NULL || fstat(fileno(stream), &facts) != 0) abort();
  char *bytes = calloc((size_t)facts.st_size + 1, 1);
  *count = fread(bytes, 1, (size_t)facts.st_size, stream);
  fclose(stream);
  return bytes;
}

#endif

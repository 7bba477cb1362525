#include "kcp/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PARTIAL_NAME_ATTEMPTS = 100 };

static enum kcp_status cannot_write(struct kcp_error *error, enum kcp_status status,
                                    const char *path, int cause) {
  return kcp_fail(error, status, "cannot write '%s': %s", path, strerror(cause));
}

/* Devices, pipes and the names of open descriptors are written to as they are: renaming a file onto
 * them would put a plain file in their place. */
static bool written_directly(const char *path, const struct stat *facts) {
  return !S_ISREG(facts->st_mode) || strncmp(path, "/dev/", 5) == 0 ||
         strncmp(path, "/proc/", 6) == 0;
}

/* The open descriptor that a path names, whether or not /dev and /proc are there; -1 when it names
 * none. */
static int descriptor_of(const char *path) {
  static const char numbered[] = "/dev/fd/";
  if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
  if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
  if (strncmp(path, numbered, sizeof numbered - 1) != 0) return -1;
  const char *digits = path + sizeof numbered - 1;
  char *end;
  long number = strtol(digits, &end, 10);
  bool is_number = *digits >= '0' && *digits <= '9' && *end == '\0';
  return is_number && number <= INT_MAX ? (int)number : -1;
}

static int open_directly(const char *path) {
  /* A duplicate shares the shell's offset, so that `>>` appends. */
  int descriptor = descriptor_of(path);
  if (descriptor >= 0) return fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  return open(path, O_WRONLY | O_CLOEXEC);
}

/* Creates FILE.PID-N.partial with the first N that is free. Returns -1 with errno on failure. */
static int create_partial(const char *final_path, char **partial_path) {
  for (int attempt = 0; attempt < PARTIAL_NAME_ATTEMPTS; ++attempt) {
    char *name;
    if (asprintf(&name, "%s.%ld-%d.partial", final_path, (long)getpid(), attempt) < 0) {
      errno = ENOMEM;
      return -1;
    }
    int descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0) {
      *partial_path = name;
      return descriptor;
    }
    int cause = errno;
    free(name);
    errno = cause;
    if (cause != EEXIST) return -1;
  }
  return -1;
}

enum kcp_status kcp_output_file_open(const char *path, struct kcp_output_file *file,
                                     struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  int descriptor = -1;
  memset(file, 0, sizeof *file);
  struct stat facts;
  int named = descriptor_of(path);
  bool exists = (named >= 0 ? fstat(named, &facts) : stat(path, &facts)) == 0;
  if (!exists && (errno != ENOENT || named >= 0))
    return cannot_write(error, KCP_BAD_INPUT, path, errno);
  if (exists && S_ISDIR(facts.st_mode)) return cannot_write(error, KCP_BAD_INPUT, path, EISDIR);
  bool directly = exists && written_directly(path, &facts);
  if (exists && !directly && access(path, W_OK) != 0)
    return cannot_write(error, KCP_BAD_INPUT, path, errno);

  /* Through a symbolic link the file that it names is replaced, not the link. */
  if (exists && !directly) file->final_path = realpath(path, NULL);
  if (file->final_path == NULL) file->final_path = strdup(path);
  if (file->final_path == NULL) {
    status = kcp_out_of_memory(error, "a file name", strlen(path));
    goto cleanup;
  }
  descriptor =
      directly ? open_directly(path) : create_partial(file->final_path, &file->partial_path);
  if (descriptor < 0) {
    status = cannot_write(error, KCP_BAD_INPUT, path, errno);
    goto cleanup;
  }
  if (exists && !directly && fchmod(descriptor, facts.st_mode & 0777) != 0) {
    status = cannot_write(error, KCP_FAILED, path, errno);
    goto cleanup;
  }
  file->stream = fdopen(descriptor, "wb");
  if (file->stream == NULL) {
    status = cannot_write(error, KCP_FAILED, path, errno);
    goto cleanup;
  }
  descriptor = -1;

cleanup:
  if (descriptor >= 0) close(descriptor);
  if (status != KCP_OK) kcp_output_file_discard(file);
  return status;
}

enum kcp_status kcp_output_file_commit(struct kcp_output_file *file, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  errno = 0;
  bool broken = ferror(file->stream) != 0;
  broken |= fflush(file->stream) != 0;
  int cause = errno;
  broken |= fclose(file->stream) != 0;
  if (cause == 0) cause = errno;
  file->stream = NULL;
  if (!broken && file->partial_path != NULL && rename(file->partial_path, file->final_path) != 0) {
    broken = true;
    cause = errno;
  }
  if (broken) {
    status = cannot_write(error, KCP_FAILED, file->final_path, cause != 0 ? cause : EIO);
  } else {
    free(file->partial_path);
    file->partial_path = NULL;
  }
  kcp_output_file_discard(file);
  return status;
}

void kcp_output_file_discard(struct kcp_output_file *file) {
  if (file->stream != NULL) fclose(file->stream);
  if (file->partial_path != NULL) unlink(file->partial_path);
  free(file->final_path);
  free(file->partial_path);
  memset(file, 0, sizeof *file);
}

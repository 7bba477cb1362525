#include "kcp/floor.h"

#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kcp/interrupt.h"
#include "kcp/measurement.h"

#define PIECE_BYTES (UINT64_C(4) << 20)

struct file {
  const char *path;
  int descriptor;
  uint64_t bytes;
};

static enum kcp_status open_file(const char *path, struct file *file, struct kcp_error *error) {
  struct stat facts;
  file->path = path;
  file->descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (file->descriptor < 0 || fstat(file->descriptor, &facts) != 0)
    return kcp_fail(error, KCP_FAILED, "%s: %s", path, strerror(errno));
  file->bytes = (uint64_t)facts.st_size;
  return KCP_OK;
}

/* One piece of a file through a lane. */
static enum kcp_status pass_on(const struct kcp_transfer_engine *engine,
                               struct kcp_transfer *transfer, uint32_t lane,
                               const struct file *file, uint64_t offset, struct kcp_error *error) {
  uint64_t left = file->bytes - offset;
  uint64_t bytes = left < PIECE_BYTES ? left : PIECE_BYTES;
  void *buffer;
  enum kcp_status status = engine->buffer(transfer, lane, &buffer, error);
  for (uint64_t done = 0; status == KCP_OK && done < bytes;) {
    ssize_t got =
        pread(file->descriptor, (char *)buffer + done, bytes - done, (off_t)(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return kcp_fail(error, KCP_FAILED, "%s: cannot be read: %s", file->path,
                      got < 0 ? strerror(errno) : "it became shorter");
    done += (uint64_t)got;
  }
  return status == KCP_OK ? engine->send(transfer, lane, bytes, error) : status;
}

static enum kcp_status pass_all(const struct kcp_transfer_engine *engine,
                                struct kcp_transfer *transfer, const struct file *file,
                                struct kcp_error *error) {
  uint64_t pieces = (file->bytes + PIECE_BYTES - 1) / PIECE_BYTES;
  enum kcp_status status = KCP_OK;
#pragma omp parallel for schedule(dynamic)
  for (uint64_t piece = 0; piece < pieces; ++piece) {
    enum kcp_status so_far;
#pragma omp atomic read
    so_far = status;
    if (so_far != KCP_OK || kcp_interrupted()) continue;
    struct kcp_error here;
    enum kcp_status mine =
        pass_on(engine, transfer, (uint32_t)omp_get_thread_num(), file, piece * PIECE_BYTES, &here);
    if (mine == KCP_OK) continue;
#pragma omp critical(kcp_floor_failure)
    {
#pragma omp atomic write
      status = mine;
      *error = here;
    }
  }
  if (kcp_interrupted()) return kcp_fail(error, KCP_INTERRUPTED, "interrupted");
  return status;
}

enum kcp_status kcp_measure_floor(const struct kcp_backend *backend,
                                  const struct kcp_device_info *device, const char *const *paths,
                                  int count, double *seconds, struct kcp_error *error) {
  const struct kcp_transfer_engine *engine = backend->transfer;
  struct kcp_transfer *transfer = NULL;
  enum kcp_status status =
      engine->create(device, (uint32_t)omp_get_max_threads(), PIECE_BYTES, &transfer, error);
  double started = kcp_now();
  for (int i = 0; status == KCP_OK && i < count; ++i) {
    struct file file;
    status = open_file(paths[i], &file, error);
    if (status == KCP_OK) status = pass_all(engine, transfer, &file, error);
    if (file.descriptor >= 0) close(file.descriptor);
  }
  if (status == KCP_OK) status = engine->finish(transfer, error);
  *seconds = kcp_now() - started;
  engine->destroy(transfer);
  return status;
}

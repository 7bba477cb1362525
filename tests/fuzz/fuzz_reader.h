/* What the fuzz target of every format does: the bytes become a file, which is opened, read as a
 * whole and in parts, and must give the same points or the same refusal each time. */
#ifndef KCP_TESTS_FUZZ_READER_H
#define KCP_TESTS_FUZZ_READER_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/formats.h"
#include "kcp/dataset.h"
#include "kcp/points.h"

static inline void fuzz_check(bool holds) {
  if (!holds) abort();
}

/* Elements that are worth reading in one go, so that a header cannot ask for all memory. */
enum { FUZZ_MOST_ELEMENTS = 1 << 20 };

static inline void fuzz_read_parts(struct kcp_dataset *dataset, const struct kcp_points *whole) {
  struct kcp_points part;
  uint64_t count = kcp_dataset_count(dataset);
  uint64_t step = count / 3 + 1;
  if (kcp_points_allocate(step, whole->dimensions, &part, NULL) != KCP_OK) return;
  for (uint64_t first = 0; first < count; first += step) {
    uint64_t size = count - first < step ? count - first : step;
    fuzz_check(kcp_dataset_read(dataset, first, size, &part, NULL) == KCP_OK);
    fuzz_check(part.count == size);
    fuzz_check(memcmp(part.ids, whole->ids + first, size * sizeof *part.ids) == 0);
    for (uint32_t j = 0; j < part.dimensions; ++j)
      fuzz_check(memcmp(kcp_points_column(&part, j), kcp_points_column(whole, j) + first,
                        size * sizeof(double)) == 0);
  }
  kcp_points_free(&part);
}

static inline void fuzz_read(struct kcp_dataset *dataset, bool drop_invalid) {
  struct kcp_points points;
  struct kcp_error error = {{0}};
  uint64_t count = kcp_dataset_count(dataset);
  uint32_t dimensions = kcp_dataset_dimensions(dataset);
  fuzz_check(dimensions > 0);
  if (count > FUZZ_MOST_ELEMENTS / dimensions) return;
  if (kcp_points_allocate(count, dimensions, &points, &error) != KCP_OK) return;
  enum kcp_status status = kcp_dataset_read(dataset, 0, count, &points, &error);
  fuzz_check(status == KCP_OK || (status == KCP_BAD_INPUT && error.message[0] != '\0' &&
                                  strchr(error.message, '\n') == NULL));
  if (status == KCP_OK) {
    fuzz_check(points.count + kcp_dataset_dropped(dataset) == count);
    for (uint32_t j = 0; j < dimensions; ++j)
      for (uint64_t i = 0; i < points.count; ++i)
        fuzz_check(isfinite(kcp_points_column(&points, j)[i]));
    if (!drop_invalid) fuzz_read_parts(dataset, &points);
  }
  kcp_points_free(&points);
}

static inline void fuzz_reader(const uint8_t *bytes, size_t size, const char *format,
                               const struct kcp_dataset_options *options) {
  char path[64];
  struct kcp_dataset *dataset;
  struct kcp_error error = {{0}};
  int descriptor = memfd_create("kcp-fuzz", MFD_CLOEXEC);
  fuzz_check(descriptor >= 0);
  fuzz_check(write(descriptor, bytes, size) == (ssize_t)size);
  snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  enum kcp_status status = kcp_dataset_open_as(path, format, options, &dataset, &error);
  fuzz_check(status == KCP_OK || (status == KCP_BAD_INPUT && error.message[0] != '\0' &&
                                  strchr(error.message, '\n') == NULL));
  if (status == KCP_OK) fuzz_read(dataset, options != NULL && options->drop_invalid);
  kcp_dataset_close(dataset);
  close(descriptor);
}

#endif

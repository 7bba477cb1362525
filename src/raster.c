#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "formats/rasters.h"

#define MOST_REGIONS (UINT64_C(1) << 32)

static const struct kcp_raster_format *const formats[] = {&kcp_raster_format_ascii,
                                                          &kcp_raster_format_npy};
enum { FORMAT_COUNT = sizeof formats / sizeof formats[0] };

enum kcp_status kcp_raster_allocate(const char *path, uint64_t rows, uint64_t columns,
                                    struct kcp_raster *raster, struct kcp_error *error) {
  uint64_t count;
  if (rows == 0 || columns == 0 || rows > UINT32_MAX || columns > UINT32_MAX ||
      __builtin_mul_overflow(rows, columns, &count) || count > MOST_REGIONS)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "%s: a raster of %" PRIu64 " x %" PRIu64 "; kcp reads 1 to 2^32 values", path,
                    rows, columns);
  raster->rows = (uint32_t)rows;
  raster->columns = (uint32_t)columns;
  raster->values = malloc(count * sizeof *raster->values);
  return raster->values != NULL ? KCP_OK : kcp_out_of_memory(error, "a raster", 8 * count);
}

static const struct kcp_raster_format *format_of(const char *path) {
  const char *ending = strrchr(path, '.');
  for (int i = 0; ending != NULL && i < FORMAT_COUNT; ++i)
    if (strcasecmp(ending, formats[i]->ending) == 0) return formats[i];
  return NULL;
}

enum kcp_status kcp_raster_read(const char *path, const struct kcp_domain *extent,
                                struct kcp_raster *raster, struct kcp_error *error) {
  const struct kcp_raster_format *format = format_of(path);
  struct kcp_dataset file = {.path = (char *)path, .descriptor = -1};
  memset(raster, 0, sizeof *raster);
  if (format == NULL)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "%s: a density is an ESRI ASCII grid (.asc) or an array (.npy)", path);
  if (!format->states_extent && extent == NULL)
    return kcp_fail(error, KCP_BAD_INPUT, "%s does not say where it lies; add --domain x0,y0,x1,y1",
                    path);
  if (!format->states_extent) raster->extent = *extent;
  enum kcp_status status = kcp_dataset_open_file(&file, error);
  if (status == KCP_OK) status = format->read(&file, raster, error);
  if (file.descriptor >= 0) close(file.descriptor);
  if (status != KCP_OK) kcp_raster_free(raster);
  return status;
}

/* .npy as a raster: an array of two axes, its first row the one of largest y; NaN is nodata. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "formats/rasters.h"

/* Where the element of a row from above and a column lies in the file. */
static uint64_t element_at(const struct kcp_npy_header *header, uint64_t row, uint64_t column) {
  return header->fortran_order ? column * header->axes[0] + row : row * header->axes[1] + column;
}

static enum kcp_status npy_read(const struct kcp_dataset *file, struct kcp_raster *raster,
                                struct kcp_error *error) {
  struct kcp_npy_header header;
  unsigned char *bytes = NULL;
  double *values = NULL;
  enum kcp_status status = kcp_npy_read_header(file, &header, error);
  if (status != KCP_OK) return status;
  if (header.axis_count != 2)
    return kcp_fail(error, KCP_BAD_INPUT, "%s: an array of one axis; a density has two",
                    file->path);
  status = kcp_raster_allocate(file->path, header.axes[0], header.axes[1], raster, error);
  if (status != KCP_OK) return status;
  const uint64_t count = header.axes[0] * header.axes[1];
  const size_t size = kcp_element_bytes(header.element);
  bytes = malloc(count * size);
  values = malloc(count * sizeof *values);
  if (bytes == NULL || values == NULL) {
    status = kcp_out_of_memory(error, "a raster", count * (size + sizeof *values));
    goto cleanup;
  }
  status = kcp_dataset_pread(file, bytes, count * size, header.data_offset, error);
  if (status != KCP_OK) goto cleanup;
  const uint64_t exact = kcp_elements_to_binary64(header.element, bytes, size, count, values);
  if (exact < count) {
    status =
        kcp_fail(error, KCP_BAD_INPUT, "%s: element %" PRIu64 " is beyond 2^53", file->path, exact);
    goto cleanup;
  }
  for (uint64_t row = 0; row < header.axes[0]; ++row)
    for (uint64_t column = 0; column < header.axes[1]; ++column) {
      const double value = values[element_at(&header, row, column)];
      const uint64_t from_below = header.axes[0] - 1 - row;
      if (!isnan(value) && !(isfinite(value) && value >= 0)) {
        status = kcp_fail(error, KCP_BAD_INPUT,
                          "%s: row %" PRIu64 ", column %" PRIu64
                          ": %g is no density; it must be finite and at least 0, or NaN",
                          file->path, row, column, value);
        goto cleanup;
      }
      raster->values[from_below * header.axes[1] + column] = isnan(value) ? 0 : value;
      raster->nodata_count += isnan(value);
    }

cleanup:
  free(bytes);
  free(values);
  return status;
}

const struct kcp_raster_format kcp_raster_format_npy = {".npy", false, npy_read};

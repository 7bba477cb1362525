/* ESRI ASCII grids: read whole or refused in one line. */
#include "formats/rasters.h"
#include "fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  char path[64];
  struct kcp_raster raster = {0};
  struct kcp_error error = {{0}};
  const int descriptor = memfd_create("kcp-fuzz", MFD_CLOEXEC);
  fuzz_check(descriptor >= 0);
  fuzz_check(write(descriptor, bytes, size) == (ssize_t)size);
  snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  struct kcp_dataset file = {.path = path, .descriptor = -1};
  fuzz_check(kcp_dataset_open_file(&file, &error) == KCP_OK);
  const enum kcp_status status = kcp_raster_format_ascii.read(&file, &raster, &error);
  fuzz_check(status == KCP_OK || (status == KCP_BAD_INPUT && error.message[0] != '\0' &&
                                  strchr(error.message, '\n') == NULL));
  for (uint64_t i = 0; status == KCP_OK && i < (uint64_t)raster.rows * raster.columns; ++i)
    fuzz_check(isfinite(raster.values[i]) && raster.values[i] >= 0);
  kcp_raster_free(&raster);
  close(file.descriptor);
  close(descriptor);
  return 0;
}

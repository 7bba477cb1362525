/* The bytes are --columns of a small file of text. */
#include "fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static const uint8_t text[] = "1,2,3\n4,5,6\n";
  char *columns = calloc(size + 1, 1);
  fuzz_check(columns != NULL);
  memcpy(columns, bytes, size);
  const struct kcp_dataset_options options = {.columns = columns};
  fuzz_reader(text, sizeof text - 1, "csv", &options);
  free(columns);
  return 0;
}

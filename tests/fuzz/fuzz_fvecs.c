#include "fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  const struct kcp_dataset_options drop = {.drop_invalid = true};
  fuzz_reader(bytes, size, "fvecs", NULL);
  fuzz_reader(bytes, size, "fvecs", &drop);
  return 0;
}

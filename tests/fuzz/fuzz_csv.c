#include "fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  const struct kcp_dataset_options variants[] = {
      {.text_layout = KCP_TEXT_ID_FIRST},
      {.text_layout = KCP_TEXT_COORDINATES_ONLY},
      {.columns = "id,-,x,y"},
      {.drop_invalid = true},
  };
  for (size_t i = 0; i < sizeof variants / sizeof variants[0]; ++i)
    fuzz_reader(bytes, size, "csv", &variants[i]);
  return 0;
}

/* Top-k by sorting everything: the baseline of the paper. 32 bytes a value. */
#include <stdlib.h>
#include <string.h>

#include "ranked_keys.h"
#include "top_k_methods.h"

enum kcp_status kcp_cpu_top_k_sort(const struct kcp_top_k_plan *plan,
                                   const struct kcp_value_range *range,
                                   struct kcp_range_answer *answer, struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
  uint64_t n = range->count;
  memset(answer, 0, sizeof *answer);
  struct kcp_ranked_key *keys = malloc((n > 0 ? n : 1) * sizeof *keys);
  struct kcp_ranked_key *spare = malloc((n > 0 ? n : 1) * sizeof *spare);
  if (keys == NULL || spare == NULL) {
    status = kcp_out_of_memory(error, "sorting", n * KCP_CPU_SORT_BYTES);
    goto cleanup;
  }
  status = kcp_read_keys(plan, range, keys, &answer->nan_count, error);
  if (status != KCP_OK) goto cleanup;
  struct kcp_ranked_key *sorted = kcp_ranked_sort(keys, spare, n, KCP_SORT_BY_KEY);
  spare = sorted == keys ? spare : keys;
  keys = NULL;
  uint64_t valid = n - answer->nan_count;
  answer->items = sorted;
  answer->count = plan->k < valid ? plan->k : valid;
  if (answer->count == 0) goto cleanup;
  uint64_t last = sorted[answer->count - 1].key, first_equal = answer->count - 1;
  uint64_t behind = answer->count;
  while (first_equal > 0 && sorted[first_equal - 1].key == last) --first_equal;
  while (behind < valid && sorted[behind].key == last) ++behind;
  answer->equal = behind - first_equal;

cleanup:
  free(keys);
  free(spare);
  return status;
}

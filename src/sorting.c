#include "kcp/sorting.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/radix_sort.h"
#include "kcp/ordered_bits.h"

#define FEW 4096 /* not worth a radix sort */

static int compare_candidates(const void *a, const void *b) {
  const struct kcp_candidate *left = a, *right = b;
  if (kcp_candidate_before(left, right)) return -1;
  return kcp_candidate_before(right, left) ? 1 : 0;
}

/* By id2, then id1, then rank, each pass stable. */
static void sort_order(struct kcp_radix_sorter *sorter, const struct kcp_candidate *candidates,
                       uint64_t count, uint32_t *order) {
  uint64_t *keys = sorter->keys[0];
#pragma omp parallel for
  for (uint64_t i = 0; i < count; ++i) {
    order[i] = (uint32_t)i;
    keys[i] = candidates[i].id2;
  }
  kcp_radix_sort_on(sorter, count, order);
#pragma omp parallel for
  for (uint64_t i = 0; i < count; ++i) keys[i] = candidates[order[i]].id1;
  kcp_radix_sort_on(sorter, count, order);
#pragma omp parallel for
  for (uint64_t i = 0; i < count; ++i) keys[i] = kcp_ordered_bits(candidates[order[i]].rank);
  kcp_radix_sort_on(sorter, count, order);
}

enum kcp_status kcp_sort_candidates(struct kcp_candidate *candidates, uint64_t count,
                                    struct kcp_error *error) {
  if (count <= FEW || count > UINT32_MAX) {
    qsort(candidates, count, sizeof *candidates, compare_candidates);
    return KCP_OK;
  }
  struct kcp_radix_sorter sorter;
  enum kcp_status status = kcp_radix_sorter_create(count, &sorter, error);
  if (status != KCP_OK) return status;
  uint32_t *order = malloc(count * sizeof *order);
  struct kcp_candidate *sorted = malloc(count * sizeof *sorted);
  if (order == NULL || sorted == NULL) {
    status = kcp_out_of_memory(error, "sorting", count * (sizeof *order + sizeof *sorted));
  } else {
    sort_order(&sorter, candidates, count, order);
#pragma omp parallel for
    for (uint64_t i = 0; i < count; ++i) sorted[i] = candidates[order[i]];
    memcpy(candidates, sorted, count * sizeof *sorted);
  }
  free(order);
  free(sorted);
  kcp_radix_sorter_free(&sorter);
  return status;
}

static int compare_ids(const void *a, const void *b) {
  uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
  return left < right ? -1 : left > right;
}

enum kcp_status kcp_sort_ids(uint64_t *ids, uint64_t count, struct kcp_error *error) {
  if (count <= FEW || count > UINT32_MAX) {
    qsort(ids, count, sizeof *ids, compare_ids);
    return KCP_OK;
  }
  struct kcp_radix_sorter sorter;
  const uint64_t *sorted;
  enum kcp_status status = kcp_radix_sorter_create(count, &sorter, error);
  if (status != KCP_OK) return status;
  memcpy(sorter.keys[0], ids, count * sizeof *ids);
  kcp_radix_sort_keys(&sorter, count, &sorted);
  memcpy(ids, sorted, count * sizeof *ids);
  kcp_radix_sorter_free(&sorter);
  return KCP_OK;
}

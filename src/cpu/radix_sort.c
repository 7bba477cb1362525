#include "radix_sort.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/ordered_bits.h"

#define DIGIT_BITS 8
#define BUCKETS (1 << DIGIT_BITS)
#define PASSES (64 / DIGIT_BITS)
#define MAX_WORKERS 256

struct kcp_radix_counts {
  uint64_t of[MAX_WORKERS][BUCKETS];
};

enum kcp_status kcp_radix_sorter_create(uint64_t capacity, struct kcp_radix_sorter *sorter,
                                        struct kcp_error *error) {
  memset(sorter, 0, sizeof *sorter);
  uint64_t room = capacity > 0 ? capacity : 1;
  sorter->capacity = room;
  sorter->counts = malloc(sizeof *sorter->counts);
  for (int copy = 0; copy < 2; ++copy) {
    sorter->keys[copy] = malloc(room * sizeof(uint64_t));
    sorter->indices[copy] = malloc(room * sizeof(uint32_t));
    if (sorter->counts == NULL || sorter->keys[copy] == NULL || sorter->indices[copy] == NULL) {
      kcp_radix_sorter_free(sorter);
      return kcp_out_of_memory(error, "sorting", 2 * room * (sizeof(uint64_t) + sizeof(uint32_t)));
    }
  }
  return KCP_OK;
}

void kcp_radix_sorter_free(struct kcp_radix_sorter *sorter) {
  free(sorter->counts);
  for (int copy = 0; copy < 2; ++copy) {
    free(sorter->keys[copy]);
    free(sorter->indices[copy]);
  }
  memset(sorter, 0, sizeof *sorter);
}

/* One pass over digit `shift`, each worker on its share: count, then scatter in order. */
static void sort_by_digit(struct kcp_radix_sorter *sorter, int from, uint64_t count, int shift,
                          int workers_wanted) {
  const uint64_t *keys = sorter->keys[from];
  const uint32_t *indices = sorter->indices[from];
  uint64_t *keys_out = sorter->keys[1 - from];
  uint32_t *indices_out = sorter->indices[1 - from];
  uint64_t(*offsets)[BUCKETS] = sorter->counts->of;
#pragma omp parallel num_threads(workers_wanted)
  {
    int worker = omp_get_thread_num(), workers = omp_get_num_threads();
    uint64_t first = count * (uint64_t)worker / (uint64_t)workers;
    uint64_t last = count * (uint64_t)(worker + 1) / (uint64_t)workers;
    uint64_t *offset = offsets[worker];
    memset(offset, 0, sizeof offsets[0]);
    for (uint64_t i = first; i < last; ++i) ++offset[(keys[i] >> shift) & (BUCKETS - 1)];
#pragma omp barrier
#pragma omp single
    {
      uint64_t sum = 0;
      for (int bucket = 0; bucket < BUCKETS; ++bucket)
        for (int w = 0; w < workers; ++w) {
          uint64_t here = offsets[w][bucket];
          offsets[w][bucket] = sum;
          sum += here;
        }
    }
    for (uint64_t i = first; i < last; ++i) {
      uint64_t place = offset[(keys[i] >> shift) & (BUCKETS - 1)]++;
      keys_out[place] = keys[i];
      indices_out[place] = indices[i];
    }
  }
}

static int workers_for(uint64_t count) {
  static const uint64_t share_worth_a_thread = 16384;
  uint64_t workers = count / share_worth_a_thread + 1;
  if (workers > (uint64_t)omp_get_max_threads()) workers = (uint64_t)omp_get_max_threads();
  return workers > MAX_WORKERS ? MAX_WORKERS : (int)workers;
}

const uint32_t *kcp_radix_sort_keys(struct kcp_radix_sorter *sorter, uint64_t count,
                                    const uint64_t **sorted) {
  int workers = workers_for(count);
  uint64_t varying = 0;
#pragma omp parallel for num_threads(workers) reduction(| : varying)
  for (uint64_t i = 0; i < count; ++i) {
    sorter->indices[0][i] = (uint32_t)i;
    varying |= sorter->keys[0][i] ^ sorter->keys[0][0];
  }
  int from = 0;
  for (int pass = 0; pass < PASSES; ++pass) {
    int shift = pass * DIGIT_BITS;
    if (((varying >> shift) & (BUCKETS - 1)) == 0) continue; /* all keys agree in this digit */
    sort_by_digit(sorter, from, count, shift, workers);
    from = 1 - from;
  }
  if (sorted != NULL) *sorted = sorter->keys[from];
  return sorter->indices[from];
}

const uint32_t *kcp_radix_sort(struct kcp_radix_sorter *sorter, const double *keys,
                               uint64_t count) {
  int workers = workers_for(count);
#pragma omp parallel for num_threads(workers)
  for (uint64_t i = 0; i < count; ++i) sorter->keys[0][i] = kcp_ordered_bits(keys[i]);
  return kcp_radix_sort_keys(sorter, count, NULL);
}

void kcp_radix_sort_on(struct kcp_radix_sorter *sorter, uint64_t count, uint32_t *order) {
  const uint32_t *places = kcp_radix_sort_keys(sorter, count, NULL);
  uint64_t *moved = sorter->keys[0];
  int workers = workers_for(count);
#pragma omp parallel num_threads(workers)
  {
#pragma omp for
    for (uint64_t i = 0; i < count; ++i) moved[i] = order[places[i]];
#pragma omp for
    for (uint64_t i = 0; i < count; ++i) order[i] = (uint32_t)moved[i];
  }
}

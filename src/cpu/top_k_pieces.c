#include <omp.h>
#include <stdlib.h>

#include "top_k_methods.h"

int kcp_workers_for(uint64_t count) {
  static const uint64_t share_worth_a_thread = 32768;
  if (omp_in_parallel()) return 1;
  uint64_t workers = count / share_worth_a_thread + 1;
  uint64_t most = (uint64_t)omp_get_max_threads();
  return (int)(workers < most ? workers : most);
}

static struct kcp_value_range share_of(const struct kcp_value_range *range, int worker,
                                       int workers) {
  uint64_t each = range->count / (uint64_t)workers;
  uint64_t offset = each * (uint64_t)worker;
  struct kcp_value_range share = *range;
  share.first += offset;
  share.first_index += offset;
  share.count = worker + 1 == workers ? range->count - offset : each;
  return share;
}

static enum kcp_status read_share(const struct kcp_value_range *share, enum kcp_value_type type,
                                  kcp_piece_user *use, void *state, struct kcp_error *error) {
  uint64_t piece_values = KCP_PIECE_BYTES / kcp_value_bytes(type);
  if (piece_values > share->count) piece_values = share->count;
  enum kcp_status status = KCP_OK;
  void *piece = malloc((piece_values > 0 ? piece_values : 1) * kcp_value_bytes(type));
  if (piece == NULL) return kcp_out_of_memory(error, "a piece of the array", KCP_PIECE_BYTES);
  for (uint64_t offset = 0; offset < share->count && status == KCP_OK; offset += piece_values) {
    uint64_t left = share->count - offset;
    uint64_t count = left < piece_values ? left : piece_values;
    status =
        share->source->read(share->source->context, share->first + offset, count, piece, error);
    if (status == KCP_OK) use(state, piece, count, share->first_index + offset);
  }
  free(piece);
  return status;
}

enum kcp_status kcp_read_pieces(const struct kcp_value_range *range, enum kcp_value_type type,
                                kcp_piece_user *use, void *states, size_t state_bytes, int workers,
                                struct kcp_error *error) {
  enum kcp_status status = KCP_OK;
#pragma omp parallel num_threads(workers)
  {
    int worker = omp_get_thread_num();
    struct kcp_error reason;
    struct kcp_value_range share = share_of(range, worker, omp_get_num_threads());
    void *state = (char *)states + (size_t)worker * state_bytes;
    enum kcp_status mine = read_share(&share, type, use, state, &reason);
#pragma omp critical(kcp_read_pieces)
    if (mine != KCP_OK && status == KCP_OK) {
      status = mine;
      if (error != NULL) *error = reason;
    }
  }
  return status;
}

/* Where a thread puts keys: the place of index 0. */
struct key_reader {
  const struct kcp_top_k_plan *plan;
  struct kcp_ranked_key *keys;
  uint64_t first_index;
  uint64_t nan_count;
};

static void take_keys(void *state, const void *values, uint64_t count, uint64_t first_index) {
  struct key_reader *reader = state;
  reader->nan_count +=
      kcp_values_to_keys(reader->plan->type, reader->plan->order, values, count, first_index,
                         reader->keys + (first_index - reader->first_index));
}

enum kcp_status kcp_read_keys(const struct kcp_top_k_plan *plan,
                              const struct kcp_value_range *range, struct kcp_ranked_key *keys,
                              uint64_t *nan_count, struct kcp_error *error) {
  int workers = kcp_workers_for(range->count);
  struct key_reader *readers = calloc((size_t)workers, sizeof *readers);
  if (readers == NULL)
    return kcp_out_of_memory(error, "threads", (unsigned long long)workers * sizeof *readers);
  for (int w = 0; w < workers; ++w)
    readers[w] = (struct key_reader){plan, keys, range->first_index, 0};
  enum kcp_status status =
      kcp_read_pieces(range, plan->type, take_keys, readers, sizeof *readers, workers, error);
  *nan_count = 0;
  for (int w = 0; w < workers; ++w) *nan_count += readers[w].nan_count;
  free(readers);
  return status;
}

struct key_counter {
  const struct kcp_top_k_plan *plan;
  uint64_t key;
  uint64_t equal;
};

static void count_piece(void *state, const void *values, uint64_t count, uint64_t first_index) {
  struct key_counter *counter = state;
  (void)first_index;
  counter->equal +=
      kcp_count_values(counter->plan->type, counter->plan->order, values, count, counter->key);
}

enum kcp_status kcp_count_key(const struct kcp_top_k_plan *plan,
                              const struct kcp_value_range *range, uint64_t key, uint64_t *equal,
                              struct kcp_error *error) {
  int workers = kcp_workers_for(range->count);
  struct key_counter *counters = calloc((size_t)workers, sizeof *counters);
  if (counters == NULL)
    return kcp_out_of_memory(error, "threads", (unsigned long long)workers * sizeof *counters);
  for (int w = 0; w < workers; ++w) counters[w] = (struct key_counter){plan, key, 0};
  enum kcp_status status =
      kcp_read_pieces(range, plan->type, count_piece, counters, sizeof *counters, workers, error);
  *equal = 0;
  for (int w = 0; w < workers; ++w) *equal += counters[w].equal;
  free(counters);
  return status;
}

void kcp_scan_tighten(struct kcp_value_scan *scan, struct kcp_ranked_key limit, uint64_t left_out) {
  scan->equal = (limit.key == scan->limit.key ? scan->equal : 0) + left_out;
  scan->limit = limit;
}

uint64_t kcp_scan_count_key(const struct kcp_value_scan *scan, const struct kcp_ranked_key *items,
                            uint64_t count, uint64_t key) {
  uint64_t equal = key == scan->limit.key ? scan->equal : 0;
  for (uint64_t i = 0; i < count; ++i) equal += items[i].key == key;
  return equal;
}

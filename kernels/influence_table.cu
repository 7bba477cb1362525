/* The pairs of a table, gathered, sorted by (p, q) and brought to the host.
 *
 * A small matrix comes to the host as it is, in order. Else, launch: a thread a slot, twice (count,
 * then gather); a radix sort of 64-bit keys with 32-bit places; a thread a pair to put them in
 * order. Memory: 56 bytes a pair beside the table. */
#include <cub/device/device_radix_sort.cuh>

#include <cstdlib>

#include "influence_table.cuh"

static const int threads = 256;
static const uint64_t matrix_pairs = UINT64_C(1) << 22;
static const uint64_t first_slots = UINT64_C(1) << 22;
static const uint64_t small_matrix = UINT64_C(1) << 16; /* pairs that are gathered on the host */

static uint64_t slots_of(const struct kcp_device_pair_table *table) {
  return table->slots;
}

static enum kcp_status allocate(struct kcp_pair_store *store, struct kcp_error *error) {
  struct kcp_device_pair_table *table = &store->table;
  KCP_TRY(kcp_device_array(&store->memory, slots_of(table), &table->weights, "pairs", error));
  KCP_TRY(kcp_device_array(&store->memory, 1, &table->overflowed, "pairs", error));
  if (table->columns == 0)
    KCP_TRY(kcp_device_array(&store->memory, slots_of(table), &table->keys, "pairs", error));
  return KCP_OK;
}

enum kcp_status kcp_pair_store_create(const struct kcp_device_sites sites[2],
                                      struct kcp_pair_store *store, struct kcp_error *error) {
  const uint64_t pairs = (uint64_t)sites[0].selected_count * sites[1].selected_count;
  const bool is_matrix = pairs <= matrix_pairs;
  store->table = {};
  store->table.columns = is_matrix ? sites[1].selected_count : 0;
  store->table.slots = is_matrix ? pairs : first_slots;
  return allocate(store, error);
}

enum kcp_status kcp_pair_store_clear(const struct kcp_pair_store *store, cudaStream_t stream,
                                     struct kcp_error *error) {
  const struct kcp_device_pair_table *table = &store->table;
  const uint64_t slots = slots_of(table);
  KCP_CUDA_TRY(cudaMemsetAsync(table->weights, 0, slots * sizeof *table->weights, stream));
  KCP_CUDA_TRY(cudaMemsetAsync(table->overflowed, 0, sizeof *table->overflowed, stream));
  if (table->keys != NULL)
    KCP_CUDA_TRY(cudaMemsetAsync(table->keys, 0xff, slots * sizeof *table->keys, stream));
  return KCP_OK;
}

enum kcp_status kcp_pair_store_check(struct kcp_pair_store *store, bool *complete,
                                     cudaStream_t stream, struct kcp_error *error) {
  uint32_t overflowed = 0;
  KCP_CUDA_TRY(cudaMemcpyAsync(&overflowed, store->table.overflowed, sizeof overflowed,
                               cudaMemcpyDeviceToHost, stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(stream));
  *complete = overflowed == 0;
  if (*complete) return KCP_OK;
  kcp_device_memory_free(&store->memory);
  store->table.slots *= 4;
  return allocate(store, error);
}

KCP_HD static struct kcp_influence_sum sum_of(uint64_t p, uint64_t q,
                                              const struct kcp_device_pair_weight weight) {
  struct kcp_influence_sum sum;
  sum.p = (uint32_t)p;
  sum.q = (uint32_t)q;
  sum.lower = weight.sure;
  sum.upper = weight.sure + weight.unsure;
  sum.area = weight.sure + weight.centre;
  return sum;
}

__device__ static bool has_weight(const struct kcp_device_pair_table table, uint64_t slot) {
  return slot < table.slots && table.weights[slot].sure + table.weights[slot].unsure > 0;
}

/* Places of the pairs of a warp, taken together. */
__device__ static unsigned long long take_place(bool wanted, unsigned long long *counter) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t mask = __ballot_sync(0xffffffffu, wanted);
  unsigned long long first = 0;
  if (lane == 0 && mask != 0) first = atomicAdd(counter, (unsigned long long)__popc(mask));
  first = __shfl_sync(0xffffffffu, first, 0);
  return first + __popc(mask & ((1u << lane) - 1));
}

__global__ static void count_pairs(const struct kcp_device_pair_table table,
                                   unsigned long long *counter) {
  const uint64_t slot = (uint64_t)blockIdx.x * threads + threadIdx.x;
  take_place(has_weight(table, slot), counter);
}

__global__ static void gather_pairs(const struct kcp_device_pair_table table,
                                    const struct kcp_device_sites p_sites,
                                    const struct kcp_device_sites q_sites,
                                    unsigned long long *counter, uint64_t *keys, uint32_t *places,
                                    struct kcp_influence_sum *pairs) {
  const uint64_t slot = (uint64_t)blockIdx.x * threads + threadIdx.x;
  const bool wanted = has_weight(table, slot);
  const unsigned long long place = take_place(wanted, counter);
  if (!wanted) return;
  struct kcp_influence_sum pair;
  if (table.keys != NULL) {
    pair.p = (uint32_t)(table.keys[slot] >> 32);
    pair.q = (uint32_t)table.keys[slot];
  } else {
    pair.p = p_sites.selected[slot / table.columns];
    pair.q = q_sites.selected[slot % table.columns];
  }
  pair = sum_of(pair.p, pair.q, table.weights[slot]);
  keys[place] = (uint64_t)pair.p << 32 | pair.q;
  places[place] = (uint32_t)place;
  pairs[place] = pair;
}

__global__ static void order_pairs(const struct kcp_influence_sum *pairs, const uint32_t *order,
                                   uint64_t count, struct kcp_influence_sum *sorted) {
  const uint64_t i = (uint64_t)blockIdx.x * threads + threadIdx.x;
  if (i < count) sorted[i] = pairs[order[i]];
}

/* Scratch of a collection. */
struct collection {
  struct kcp_device_memory memory;
  unsigned long long *counter;
  uint64_t *keys, *sorted_keys;
  uint32_t *places, *order;
  struct kcp_influence_sum *pairs, *sorted;
  void *scratch;
  size_t scratch_bytes;
};

static enum kcp_status take_scratch(uint64_t count, struct collection *collection,
                                    struct kcp_error *error) {
  struct kcp_device_memory *memory = &collection->memory;
  KCP_TRY(kcp_device_array(memory, count, &collection->keys, "pairs", error));
  KCP_TRY(kcp_device_array(memory, count, &collection->sorted_keys, "pairs", error));
  KCP_TRY(kcp_device_array(memory, count, &collection->places, "pairs", error));
  KCP_TRY(kcp_device_array(memory, count, &collection->order, "pairs", error));
  KCP_TRY(kcp_device_array(memory, count, &collection->pairs, "pairs", error));
  KCP_TRY(kcp_device_array(memory, count, &collection->sorted, "pairs", error));
  KCP_CUDA_TRY(cub::DeviceRadixSort::SortPairs(NULL, collection->scratch_bytes, collection->keys,
                                               collection->sorted_keys, collection->places,
                                               collection->order, (int64_t)count));
  return kcp_device_take(memory, collection->scratch_bytes, 1, &collection->scratch, "pairs",
                         error);
}

static uint32_t blocks_of(uint64_t count) {
  return (uint32_t)((count + threads - 1) / threads);
}

static enum kcp_status count_all(const struct kcp_pair_store *store, struct collection *collection,
                                 uint64_t *count, cudaStream_t stream, struct kcp_error *error) {
  unsigned long long found = 0;
  KCP_TRY(kcp_device_array(&collection->memory, 1, &collection->counter, "pairs", error));
  KCP_CUDA_TRY(cudaMemsetAsync(collection->counter, 0, sizeof found, stream));
  count_pairs<<<blocks_of(store->table.slots), threads, 0, stream>>>(store->table,
                                                                     collection->counter);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(
      cudaMemcpyAsync(&found, collection->counter, sizeof found, cudaMemcpyDeviceToHost, stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(stream));
  *count = found;
  if (found > UINT32_MAX)
    return kcp_fail(error, KCP_FAILED, "more than 2^32 pairs share an area; choose fewer sites");
  return KCP_OK;
}

static enum kcp_status sort_all(const struct kcp_pair_store *store,
                                const struct kcp_device_sites sites[2],
                                struct collection *collection, uint64_t count, cudaStream_t stream,
                                struct kcp_error *error) {
  KCP_CUDA_TRY(cudaMemsetAsync(collection->counter, 0, sizeof *collection->counter, stream));
  gather_pairs<<<blocks_of(store->table.slots), threads, 0, stream>>>(
      store->table, sites[0], sites[1], collection->counter, collection->keys, collection->places,
      collection->pairs);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cub::DeviceRadixSort::SortPairs(
      collection->scratch, collection->scratch_bytes, collection->keys, collection->sorted_keys,
      collection->places, collection->order, (int64_t)count, 0, 64, stream));
  order_pairs<<<blocks_of(count), threads, 0, stream>>>(collection->pairs, collection->order, count,
                                                        collection->sorted);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cudaStreamSynchronize(stream));
  return KCP_OK;
}

static enum kcp_status collect(const struct kcp_pair_store *store,
                               const struct kcp_device_sites sites[2],
                               struct collection *collection, struct kcp_influence_sums *sums,
                               struct kcp_measurement *measurement, cudaStream_t stream,
                               struct kcp_error *error) {
  uint64_t count = 0;
  double started = kcp_now();
  KCP_TRY(count_all(store, collection, &count, stream, error));
  sums->pairs = (struct kcp_influence_sum *)malloc((count + 1) * sizeof *sums->pairs);
  if (sums->pairs == NULL) return kcp_out_of_memory(error, "the pairs", count * 32);
  sums->count = count;
  if (count == 0) return KCP_OK;
  KCP_TRY(take_scratch(count, collection, error));
  KCP_TRY(sort_all(store, sites, collection, count, stream, error));
  measurement->phase_s[KCP_PHASE_MERGE] += kcp_now() - started;
  started = kcp_now();
  KCP_CUDA_TRY(cudaMemcpyAsync(sums->pairs, collection->sorted, count * sizeof *sums->pairs,
                               cudaMemcpyDeviceToHost, stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(stream));
  measurement->phase_s[KCP_PHASE_DOWNLOAD] += kcp_now() - started;
  measurement->bytes_downloaded += count * sizeof *sums->pairs;
  return KCP_OK;
}

/* The pairs of a matrix in the order of the selected groups. */
static void list_matrix(const struct kcp_site_groups *const sets[2],
                        const struct kcp_device_pair_weight *weights,
                        struct kcp_influence_sums *sums) {
  uint64_t slot = 0;
  for (uint64_t p = 0; p < sets[0]->count; ++p) {
    if (!sets[0]->selected[p]) continue;
    for (uint64_t q = 0; q < sets[1]->count; ++q) {
      if (!sets[1]->selected[q]) continue;
      const struct kcp_influence_sum sum = sum_of(p, q, weights[slot++]);
      if (sum.upper > 0) sums->pairs[sums->count++] = sum;
    }
  }
}

static enum kcp_status collect_matrix(const struct kcp_pair_store *store,
                                      const struct kcp_site_groups *const sets[2],
                                      struct kcp_influence_sums *sums,
                                      struct kcp_measurement *measurement,
                                      struct kcp_error *error) {
  const uint64_t bytes = store->table.slots * sizeof(struct kcp_device_pair_weight);
  const double started = kcp_now();
  struct kcp_device_pair_weight *weights = (struct kcp_device_pair_weight *)malloc(bytes);
  sums->pairs = (struct kcp_influence_sum *)malloc((store->table.slots + 1) * sizeof *sums->pairs);
  enum kcp_status status = KCP_OK;
  if (weights == NULL || sums->pairs == NULL) {
    status = kcp_out_of_memory(error, "the pairs", 2 * bytes);
  } else {
    const cudaError_t code =
        cudaMemcpy(weights, store->table.weights, bytes, cudaMemcpyDeviceToHost);
    if (code != cudaSuccess)
      status = kcp_cuda_failure(code, "cudaMemcpy", __FILE__, __LINE__, error);
  }
  if (status == KCP_OK) list_matrix(sets, weights, sums);
  free(weights);
  measurement->phase_s[KCP_PHASE_DOWNLOAD] += kcp_now() - started;
  measurement->bytes_downloaded += bytes;
  return status;
}

enum kcp_status kcp_pair_store_collect(const struct kcp_pair_store *store,
                                       const struct kcp_site_groups *const sets[2],
                                       const struct kcp_device_sites sites[2],
                                       struct kcp_influence_sums *sums,
                                       struct kcp_measurement *measurement, uint64_t *device_bytes,
                                       cudaStream_t stream, struct kcp_error *error) {
  struct collection collection = {};
  const bool is_small = store->table.keys == NULL && store->table.slots <= small_matrix;
  enum kcp_status status =
      is_small ? collect_matrix(store, sets, sums, measurement, error)
               : collect(store, sites, &collection, sums, measurement, stream, error);
  *device_bytes = collection.memory.device_bytes;
  kcp_device_memory_free(&collection.memory);
  if (status != KCP_OK) {
    free(sums->pairs);
    sums->pairs = NULL;
    sums->count = 0;
  }
  return status;
}

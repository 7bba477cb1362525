#include "select_candidates.cuh"

#include <thrust/execution_policy.h>
#include <thrust/sort.h>

#include <cmath>
#include <cstring>

static const int threads = 512;
static const int digit_bits = 12;
static const int bucket_count = 1 << digit_bits;
static const int word_bits = 64;
static const int key_words = 3; /* rank, id1, id2 */

/* The bits of the key settled so far: words before `word` in full, and of `word` those of `mask`.
 */
struct prefix {
  int word;
  uint64_t value[key_words];
  uint64_t mask;
};

/* Ranks are >= 0, so their bits are in their order. */
__device__ static uint64_t key_word(const struct kcp_candidate_planes &planes, uint64_t slot,
                                    int word) {
  if (word == 0) return (uint64_t)__double_as_longlong(planes.ranks[slot]);
  return word == 1 ? planes.id1[slot] : planes.id2[slot];
}

/* The word at work when the slot is used and agrees with the prefix. */
__device__ static bool matches(const struct kcp_candidate_planes &planes, uint64_t slot,
                               const struct prefix &settled, uint64_t *word) {
  if (isinf(planes.ranks[slot])) return false;
  for (int w = 0; w < settled.word; ++w)
    if (key_word(planes, slot, w) != settled.value[w]) return false;
  *word = key_word(planes, slot, settled.word);
  return (*word & settled.mask) == settled.value[settled.word];
}

__global__ static void count_digits(const struct kcp_candidate_planes planes,
                                    const struct prefix settled, int shift,
                                    unsigned long long *histogram) {
  __shared__ unsigned counts[bucket_count];
  for (int b = threadIdx.x; b < bucket_count; b += blockDim.x) counts[b] = 0;
  __syncthreads();
  uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t slot = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; slot < planes.count;
       slot += step) {
    uint64_t word;
    if (matches(planes, slot, settled, &word))
      atomicAdd(&counts[word >> shift & (bucket_count - 1)], 1);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < bucket_count; b += blockDim.x)
    if (counts[b] > 0) atomicAdd(&histogram[b], counts[b]);
}

enum relation { BEFORE_PREFIX, AT_PREFIX };

/* Collects the candidates whose key, cut to the settled bits, is before the prefix, or equal to it.
 */
__global__ static void collect(const struct kcp_candidate_planes planes,
                               const struct prefix settled, enum relation wanted, uint64_t capacity,
                               struct kcp_candidate *selected, unsigned long long *count) {
  uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t slot = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; slot < planes.count;
       slot += step) {
    if (isinf(planes.ranks[slot])) continue;
    enum relation relation = AT_PREFIX;
    bool within = true;
    for (int w = 0; w <= settled.word; ++w) {
      uint64_t word = key_word(planes, slot, w);
      if (w == settled.word) word &= settled.mask;
      if (word == settled.value[w]) continue;
      relation = BEFORE_PREFIX;
      within = word < settled.value[w];
      break;
    }
    if (!within || relation != wanted) continue;
    unsigned long long place = atomicAdd(count, 1ull);
    if (place >= capacity) continue;
    selected[place].rank = planes.ranks[slot];
    selected[place].id1 = planes.id1[slot];
    selected[place].id2 = planes.id2[slot];
  }
}

struct candidate_order {
  __device__ bool operator()(const struct kcp_candidate &a, const struct kcp_candidate &b) const {
    return kcp_candidate_before(&a, &b);
  }
};

enum kcp_status kcp_selector_create(struct kcp_device_memory *memory, uint64_t k,
                                    struct kcp_selector *selector, struct kcp_error *error) {
  selector->k = k;
  KCP_TRY(kcp_device_array(memory, bucket_count + 1, &selector->histogram, "merging", error));
  KCP_TRY(kcp_pinned_array(memory, bucket_count + 1, &selector->host_histogram, "merging", error));
  return kcp_device_array(memory, k, &selector->selected, "the answer", error);
}

static unsigned grid_for(uint64_t count) {
  uint64_t blocks = (count + threads - 1) / threads;
  return (unsigned)(blocks < 2048 ? (blocks > 0 ? blocks : 1) : 2048);
}

/* One digit more of the prefix. `wanted` candidates are sought among those that agree with it;
 * reduced by those that lie before the chosen bucket. Sets *exact when the bucket is wanted whole.
 */
static enum kcp_status settle_digit(struct kcp_selector *selector,
                                    const struct kcp_candidate_planes *planes, int shift,
                                    struct prefix *settled, uint64_t *wanted, bool *exact,
                                    struct kcp_error *error) {
  size_t bytes = bucket_count * sizeof *selector->histogram;
  KCP_CUDA_TRY(cudaMemset(selector->histogram, 0, bytes));
  count_digits<<<grid_for(planes->count), threads>>>(*planes, *settled, shift, selector->histogram);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(
      cudaMemcpy(selector->host_histogram, selector->histogram, bytes, cudaMemcpyDeviceToHost));
  uint64_t before = 0, through = 0; /* the chosen bucket: the wanted-th, or the last that is used */
  int bucket = 0;
  for (int b = 0; b < bucket_count && through < *wanted; ++b) {
    if (selector->host_histogram[b] == 0) continue;
    bucket = b;
    before = through;
    through += selector->host_histogram[b];
  }
  *exact = through <= *wanted;
  *wanted -= before;
  settled->value[settled->word] |= (uint64_t)bucket << shift;
  settled->mask |= (uint64_t)(bucket_count - 1) << shift;
  return KCP_OK;
}

/* Settles a word digit by digit, until the bucket is wanted whole or, with `to_the_end`, its last.
 */
static enum kcp_status settle_word(struct kcp_selector *selector,
                                   const struct kcp_candidate_planes *planes, int word,
                                   bool to_the_end, struct prefix *settled, uint64_t *wanted,
                                   bool *exact, struct kcp_error *error) {
  settled->word = word;
  settled->value[word] = settled->mask = 0;
  for (int top = word_bits; top > 0; top -= digit_bits) {
    int shift = top >= digit_bits ? top - digit_bits : 0;
    KCP_TRY(settle_digit(selector, planes, shift, settled, wanted, exact, error));
    if (*exact && !to_the_end) return KCP_OK;
  }
  return KCP_OK;
}

static enum kcp_status settle_prefix(struct kcp_selector *selector,
                                     const struct kcp_candidate_planes *planes,
                                     struct prefix *settled, struct kcp_error *error) {
  uint64_t wanted = selector->k;
  bool exact = false;
  for (int word = 0; word < key_words && !exact; ++word)
    KCP_TRY(settle_word(selector, planes, word, false, settled, &wanted, &exact, error));
  return KCP_OK;
}

enum kcp_status kcp_select_rank(struct kcp_selector *selector, const double *ranks, uint64_t count,
                                uint64_t wanted, double *rank, struct kcp_error *error) {
  struct kcp_candidate_planes planes = {ranks, NULL, NULL, count};
  struct prefix settled = {};
  bool exact = false;
  KCP_TRY(settle_word(selector, &planes, 0, true, &settled, &wanted, &exact, error));
  memcpy(rank, &settled.value[0], sizeof *rank);
  return KCP_OK;
}

enum kcp_status kcp_select_candidates(struct kcp_selector *selector,
                                      const struct kcp_candidate_planes *planes,
                                      struct kcp_candidate *pairs, uint64_t *count,
                                      struct kcp_error *error) {
  struct prefix settled = {};
  unsigned long long *device_count = selector->histogram + bucket_count;
  *count = 0;
  if (planes->count == 0) return KCP_OK;
  KCP_TRY(settle_prefix(selector, planes, &settled, error));
  KCP_CUDA_TRY(cudaMemset(device_count, 0, sizeof *device_count));
  for (enum relation wanted :
       {BEFORE_PREFIX, AT_PREFIX}) /* of equal keys at the end, any will do */
    collect<<<grid_for(planes->count), threads>>>(*planes, settled, wanted, selector->k,
                                                  selector->selected, device_count);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cudaMemcpy(selector->host_histogram + bucket_count, device_count,
                          sizeof *device_count, cudaMemcpyDeviceToHost));
  *count = selector->host_histogram[bucket_count];
  if (*count > selector->k) *count = selector->k;
  try {
    thrust::sort(thrust::device, selector->selected, selector->selected + *count,
                 candidate_order());
  } catch (...) {
    return kcp_fail(error, KCP_FAILED, "out of device memory for sorting %llu pairs",
                    (unsigned long long)*count);
  }
  KCP_CUDA_TRY(
      cudaMemcpy(pairs, selector->selected, *count * sizeof *pairs, cudaMemcpyDeviceToHost));
  return KCP_OK;
}

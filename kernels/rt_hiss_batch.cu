/* Section IV-D of RT-HiSS on the device, on CUDA cores: a thread a query walks the index. With
 * --index optix rays do (rt_hiss_rays.cu); the rest is the same.
 *
 * The first intersection test counts; its prefix sums are every query's place to write to in the
 * second pass, so that no position is found by an atomic, and the first pass of a batch needs no
 * walk of its own. Entries come query after query; a stable radix sort by primitive lists them
 * primitive after primitive: 8 bytes an entry read and written once for each 8 bits of primitives.
 */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include <cstdlib>

#include "range_hunt.cuh"

static const int threads = 256;

static unsigned blocks_for(uint64_t count) {
  return (unsigned)((count + threads - 1) / threads);
}

/* The next primitive that query q meets; the same ones in both passes. */
template <typename T>
__device__ static bool next_met(const struct kcp_range_hunt &hunt, uint64_t q,
                                struct kcp_primitive_walk *walk, uint32_t *primitive) {
  while (kcp_primitive_walk_next(&hunt.index, walk, primitive))
    if (kcp_hunt_reaches<T>(hunt, q, *primitive)) return true;
  return false;
}

template <typename T>
__global__ static void count_hits(struct kcp_range_hunt hunt, uint64_t *hits) {
  const uint64_t q = (uint64_t)blockIdx.x * threads + threadIdx.x;
  if (q > hunt.queries.count) return;
  uint32_t primitive, met = 0;
  if (q < hunt.queries.count) {
    struct kcp_primitive_walk walk = kcp_primitive_walk_begin(&hunt.index, kcp_hunt_point(hunt, q));
    while (next_met<T>(hunt, q, &walk, &primitive)) ++met;
  }
  hits[q] = met;
}

struct kcp_range_hunt kcp_range_make_hunt(const struct kcp_range_join *join) {
  struct kcp_range_hunt hunt = {};
  hunt.index = join->index;
  hunt.frame = join->frame;
  hunt.queries = join->queries;
  hunt.dimensions = join->plan.dimensions;
  hunt.is_narrow = join->is_narrow;
  if (join->plan.options.bound == KCP_BOUND_FULL)
    hunt.bounds = join->buffers[KCP_BUFFER_BOUNDS].memory;
  hunt.beyond = kcp_range_row_limit(join).beyond;
  return hunt;
}

static enum kcp_status count_all(struct kcp_range_join *join, uint64_t *hits,
                                 struct kcp_error *error) {
  if (join->index.kind == KCP_RANGE_INDEX_OPTIX) return kcp_rays_count(join, hits, error);
  void (*kernel)(struct kcp_range_hunt, uint64_t *) =
      join->is_narrow ? count_hits<float> : count_hits<double>;
  kernel<<<blocks_for(join->queries.count + 1), threads, 0, join->stream>>>(
      kcp_range_make_hunt(join), hits);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

enum kcp_status kcp_rt_hiss_first_test(struct kcp_range_join *join, uint64_t *firsts,
                                       struct kcp_error *error) {
  const uint64_t count = join->queries.count;
  uint64_t *hits, *hit_firsts;
  size_t bytes = 0;
  void *scratch;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_HITS, count + 1, &hits, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_HIT_FIRSTS, count + 1, &hit_firsts, error));
  KCP_TRY(count_all(join, hits, error));
  KCP_CUDA_TRY(cub::DeviceScan::ExclusiveSum(NULL, bytes, hits, hit_firsts, (int64_t)(count + 1),
                                             join->stream));
  KCP_TRY(kcp_range_scratch(join, bytes, &scratch, error));
  KCP_CUDA_TRY(cub::DeviceScan::ExclusiveSum(scratch, bytes, hits, hit_firsts, (int64_t)(count + 1),
                                             join->stream));
  KCP_CUDA_TRY(cudaMemcpyAsync(firsts, hit_firsts, (count + 1) * sizeof *firsts,
                               cudaMemcpyDeviceToHost, join->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  return KCP_OK;
}

template <typename T>
__global__ static void write_hits(struct kcp_range_hunt hunt, struct kcp_hunt_listing to) {
  const uint64_t i = (uint64_t)blockIdx.x * threads + threadIdx.x;
  if (i >= to.count) return;
  const uint64_t q = to.first + i;
  uint64_t entry = to.hit_firsts[q] - to.base;
  struct kcp_primitive_walk walk = kcp_primitive_walk_begin(&hunt.index, kcp_hunt_point(hunt, q));
  uint32_t primitive;
  while (next_met<T>(hunt, q, &walk, &primitive)) {
    to.met[entry] = primitive;
    to.met_by[entry] = (uint32_t)q;
    to.numbers[entry] = (uint32_t)entry;
    ++entry;
  }
}

static enum kcp_status write_all(struct kcp_range_join *join, const struct kcp_hunt_listing *to,
                                 struct kcp_error *error) {
  if (join->index.kind == KCP_RANGE_INDEX_OPTIX) return kcp_rays_write(join, to, error);
  void (*kernel)(struct kcp_range_hunt, struct kcp_hunt_listing) =
      join->is_narrow ? write_hits<float> : write_hits<double>;
  kernel<<<blocks_for(to->count), threads, 0, join->stream>>>(kcp_range_make_hunt(join), *to);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

/* The first of the sorted primitives that is not below each primitive. */
__global__ static void find_firsts(uint64_t primitives, const uint32_t *sorted, uint64_t count,
                                   uint64_t *firsts) {
  const uint64_t primitive = (uint64_t)blockIdx.x * threads + threadIdx.x;
  if (primitive > primitives) return;
  uint64_t low = 0, high = count;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (sorted[middle] < primitive)
      low = middle + 1;
    else
      high = middle;
  }
  firsts[primitive] = low;
}

static int bits_of(uint64_t count) {
  int bits = 1;
  while (bits < 32 && UINT64_C(1) << bits < count) ++bits;
  return bits;
}

enum kcp_status kcp_rt_hiss_meet(struct kcp_range_join *join, struct kcp_range_meeting *meeting,
                                 struct kcp_range_work *work, struct kcp_error *error) {
  const uint64_t primitives = join->primitive_count;
  uint64_t entries = meeting->intersections;
  const uint64_t *hit_firsts = kcp_range_array<uint64_t>(join, KCP_BUFFER_HIT_FIRSTS);
  double started = kcp_now();
  uint32_t *met, *met_by, *numbers, *sorted, *listed;
  uint64_t *firsts;
  size_t bytes = 0;
  void *scratch;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_MET, entries, &met, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_MET_BY, entries, &met_by, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_VALUES, entries, &numbers, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_SORTED_MET, entries, &sorted, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_ENTRIES, entries, &listed, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_ENTRY_FIRSTS, primitives + 1, &firsts, error));
  const struct kcp_hunt_listing to = {
      meeting->first, meeting->count, meeting->query_base, hit_firsts, met, met_by, numbers};
  KCP_TRY(write_all(join, &to, error));
  KCP_TRY(kcp_range_lap(join, &started, &work->phase_s[KCP_RANGE_PHASE_FILL_PASS], error));

  const int bits = bits_of(primitives);
  KCP_CUDA_TRY(cub::DeviceRadixSort::SortPairs(NULL, bytes, met, sorted, numbers, listed,
                                               (int64_t)entries, 0, bits, join->stream));
  KCP_TRY(kcp_range_scratch(join, bytes, &scratch, error));
  KCP_CUDA_TRY(cub::DeviceRadixSort::SortPairs(scratch, bytes, met, sorted, numbers, listed,
                                               (int64_t)entries, 0, bits, join->stream));
  if (join->index.kind == KCP_RANGE_INDEX_OPTIX)
    KCP_TRY(kcp_rays_drop_repeats(join, met_by, &sorted, &listed, &entries, error));
  find_firsts<<<blocks_for(primitives + 1), threads, 0, join->stream>>>(primitives, sorted, entries,
                                                                        firsts);
  KCP_CUDA_TRY(cudaGetLastError());
  meeting->entry_firsts = (uint64_t *)malloc((primitives + 1) * sizeof *firsts);
  if (meeting->entry_firsts == NULL)
    return kcp_out_of_memory(error, "intersections", (primitives + 1) * sizeof *firsts);
  KCP_CUDA_TRY(cudaMemcpyAsync(meeting->entry_firsts, firsts, (primitives + 1) * sizeof *firsts,
                               cudaMemcpyDeviceToHost, join->stream));
  meeting->met = met;
  meeting->met_by = met_by;
  meeting->entries = listed;
  work->intersections += entries;
  return kcp_range_lap(join, &started, &work->phase_s[KCP_RANGE_PHASE_COUNT_PASS], error);
}

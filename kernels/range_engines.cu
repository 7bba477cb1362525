/* The engines of range joins on the device: RT-HiSS, and brute force as the join in which every
 * query meets every primitive, a primitive being 256 points in the order of the file. */
#include <cstdlib>
#include <exception>

#include "range_join.cuh"

static const int threads = 256;
static const uint64_t brute_primitive = 256; /* points */
static const uint64_t most_records = UINT32_MAX - 1;

/* Half of the memory for D: its columns, its rows, and what grouping takes; an eighth for queries
 * likewise; the rest for batches. */
static struct kcp_range_capacity capacity(const struct kcp_range_join *join) {
  const uint64_t coordinates = 16 * (uint64_t)join->plan.dimensions, sorting = 64;
  const uint64_t memory = join->plan.memory_bytes;
  struct kcp_range_capacity room = {memory / 2 / (coordinates + sorting),
                                    memory / 8 / (coordinates + sorting)};
  if (room.reference_records < brute_primitive) room.reference_records = brute_primitive;
  if (room.query_records < brute_primitive) room.query_records = brute_primitive;
  if (room.reference_records > most_records) room.reference_records = most_records;
  if (room.query_records > most_records) room.query_records = most_records;
  return room;
}

__global__ static void number_places(uint64_t count, uint32_t *places) {
  const uint64_t i = (uint64_t)blockIdx.x * threads + threadIdx.x;
  if (i < count) places[i] = (uint32_t)i;
}

static enum kcp_status keep_order(struct kcp_range_join *join, struct kcp_device_points *points,
                                  enum kcp_range_buffer which, struct kcp_error *error) {
  uint32_t *places;
  KCP_TRY(kcp_range_room(join, which, points->count, &places, error));
  number_places<<<(unsigned)((points->count + threads - 1) / threads), threads, 0, join->stream>>>(
      points->count, places);
  KCP_CUDA_TRY(cudaGetLastError());
  points->places = places;
  return KCP_OK;
}

/* Primitives of consecutive points. */
static enum kcp_status cut(struct kcp_range_join *join, struct kcp_error *error) {
  const uint64_t count = join->points.count;
  uint32_t *firsts;
  join->primitive_count = (count + brute_primitive - 1) / brute_primitive;
  join->largest_primitive = count < brute_primitive ? count : brute_primitive;
  free(join->firsts);
  join->firsts = (uint32_t *)malloc((join->primitive_count + 1) * sizeof *join->firsts);
  if (join->firsts == NULL)
    return kcp_out_of_memory(error, "primitives", 4 * join->primitive_count);
  for (uint64_t i = 0; i <= join->primitive_count; ++i) {
    const uint64_t first = i * brute_primitive;
    join->firsts[i] = (uint32_t)(first < count ? first : count);
  }
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_FIRSTS, join->primitive_count + 1, &firsts, error));
  KCP_CUDA_TRY(cudaMemcpyAsync(firsts, join->firsts, (join->primitive_count + 1) * sizeof *firsts,
                               cudaMemcpyHostToDevice, join->stream));
  return KCP_OK;
}

static enum kcp_status upload_reference(struct kcp_range_join *join,
                                        const struct kcp_points *reference,
                                        struct kcp_measurement *measurement,
                                        struct kcp_error *error) {
  join->reference = reference;
  join->primitive_count = 0;
  join->points = {};
  join->points.count = reference->count;
  if (reference->count == 0) return KCP_OK;
  KCP_TRY(kcp_range_upload(join, reference, KCP_BUFFER_COLUMNS, measurement, error));
  join->points.columns = kcp_range_array<double>(join, KCP_BUFFER_COLUMNS);
  return KCP_OK;
}

static enum kcp_status index_reference(struct kcp_range_join *join,
                                       const struct kcp_points *reference,
                                       struct kcp_measurement *measurement,
                                       struct kcp_range_work *work, struct kcp_error *error) {
  KCP_TRY(upload_reference(join, reference, measurement, error));
  if (reference->count == 0) return KCP_OK;
  double started = kcp_now();
  KCP_TRY(kcp_rt_hiss_build(join, work, error));
  return kcp_range_lap(join, &started, &measurement->phase_s[KCP_PHASE_INDEX], error);
}

static enum kcp_status cut_reference(struct kcp_range_join *join,
                                     const struct kcp_points *reference,
                                     struct kcp_measurement *measurement,
                                     struct kcp_range_work *work, struct kcp_error *error) {
  KCP_TRY(upload_reference(join, reference, measurement, error));
  if (reference->count == 0) return KCP_OK;
  double started = kcp_now(), lap = started;
  KCP_TRY(kcp_range_order_dimensions(join, KCP_REORDER_HIGHEST, error));
  KCP_TRY(kcp_range_lap(join, &lap, &work->phase_s[KCP_RANGE_PHASE_REORDER], error));
  KCP_TRY(keep_order(join, &join->points, KCP_BUFFER_PLACES, error));
  KCP_TRY(cut(join, error));
  KCP_TRY(kcp_range_make_rows(join, &join->points, KCP_BUFFER_ROWS, &join->point_norm, error));
  KCP_TRY(kcp_range_lap(join, &lap, &work->phase_s[KCP_RANGE_PHASE_REARRANGE], error));
  return kcp_range_lap(join, &started, &measurement->phase_s[KCP_PHASE_INDEX], error);
}

/* Queries to the device in the order of the work; D itself when there are none. */
static enum kcp_status place_queries(struct kcp_range_join *join, bool everyone_meets,
                                     const struct kcp_points *queries,
                                     struct kcp_measurement *measurement, struct kcp_error *error) {
  if (queries == NULL) {
    join->queries = join->points;
    join->query_norm = join->point_norm;
    return KCP_OK;
  }
  join->queries = {};
  join->queries.count = queries->count;
  if (queries->count == 0 || join->primitive_count == 0) return KCP_OK;
  KCP_TRY(kcp_range_upload(join, queries, KCP_BUFFER_QUERY_COLUMNS, measurement, error));
  join->queries.columns = kcp_range_array<double>(join, KCP_BUFFER_QUERY_COLUMNS);
  double started = kcp_now();
  if (everyone_meets)
    KCP_TRY(keep_order(join, &join->queries, KCP_BUFFER_QUERY_PLACES, error));
  else
    KCP_TRY(kcp_rt_hiss_sort_queries(join, error));
  KCP_TRY(
      kcp_range_make_rows(join, &join->queries, KCP_BUFFER_QUERY_ROWS, &join->query_norm, error));
  return kcp_range_lap(join, &started, &measurement->phase_s[KCP_PHASE_INDEX], error);
}

/* C++ containers and threads throw when there is no room for them; the callers are C. */
template <typename F>
static enum kcp_status guarded(struct kcp_error *error, F function) {
  try {
    return function();
  } catch (const std::exception &failure) {
    return kcp_fail(error, KCP_FAILED, "range join: no host memory or threads left (%s)",
                    failure.what());
  }
}

static enum kcp_status join_hiss(struct kcp_range_join *join, const struct kcp_points *queries,
                                 uint64_t *counts, const struct kcp_range_sink *sink,
                                 struct kcp_measurement *measurement, struct kcp_range_work *work,
                                 struct kcp_error *error) {
  return guarded(
      error, [=]() -> enum kcp_status {
        KCP_TRY(place_queries(join, false, queries, measurement, error));
        return kcp_range_join_batches(join, false, counts, sink, measurement, work, error);
      });
}

static enum kcp_status join_brute(struct kcp_range_join *join, const struct kcp_points *queries,
                                  uint64_t *counts, const struct kcp_range_sink *sink,
                                  struct kcp_measurement *measurement, struct kcp_range_work *work,
                                  struct kcp_error *error) {
  return guarded(
      error, [=]() -> enum kcp_status {
        KCP_TRY(place_queries(join, true, queries, measurement, error));
        return kcp_range_join_batches(join, true, counts, sink, measurement, work, error);
      });
}

static enum kcp_status set_hiss(struct kcp_range_join *join, const struct kcp_points *reference,
                                struct kcp_measurement *measurement, struct kcp_range_work *work,
                                struct kcp_error *error) {
  return guarded(
      error, [=]() -> enum kcp_status {
        return index_reference(join, reference, measurement, work, error);
      });
}

static enum kcp_status set_brute(struct kcp_range_join *join, const struct kcp_points *reference,
                                 struct kcp_measurement *measurement, struct kcp_range_work *work,
                                 struct kcp_error *error) {
  return guarded(
      error, [=]() -> enum kcp_status {
        return cut_reference(join, reference, measurement, work, error);
      });
}

static size_t hiss_parameters(const struct kcp_range_join *join, struct kcp_parameter *list) {
  return kcp_range_list_parameters(&join->plan.options, join->height, join->largest_primitive,
                                   list);
}

static size_t brute_parameters(const struct kcp_range_join *join, struct kcp_parameter *list) {
  (void)join;
  (void)list;
  return 0;
}

/* Brute force has one option, --result. */
static enum kcp_status create_brute(const struct kcp_range_plan *plan,
                                    const struct kcp_device_info *device,
                                    struct kcp_range_join **out, struct kcp_error *error) {
  struct kcp_range_plan plain = *plan;
  plain.options.refine = KCP_REFINE_SHARED_BOTH;
  plain.options.sort_work = KCP_SWITCH_OFF; /* it is all the same */
  return kcp_range_join_create(&plain, device, out, error);
}

extern "C" {

extern const struct kcp_range_engine kcp_cuda_rt_hiss;
extern const struct kcp_range_engine kcp_cuda_range_brute;

const struct kcp_range_engine kcp_cuda_rt_hiss = {
    kcp_range_join_create, kcp_range_join_destroy, capacity, hiss_parameters, set_hiss, join_hiss};
const struct kcp_range_engine kcp_cuda_range_brute = {
    create_brute, kcp_range_join_destroy, capacity, brute_parameters, set_brute, join_brute};
}

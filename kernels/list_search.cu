/* The CUDA engine of the list-based k-CP algorithms: memory, streams and launches around the
 * kernels of list_kernels.cuh. */
#include <cstdlib>
#include <cstring>

#include "device.cuh"
#include "frame.cuh"
#include "list_kernels.cuh"
#include "point_order.cuh"
#include "select_candidates.cuh"

/* A partition: where it is read to, as uploaded, and as searched. */
struct partition_buffers {
  struct kcp_points block; /* host */
  bool block_is_pinned;
  double *columns; /* as uploaded; stride is the capacity */
  uint64_t *ids;
  struct kcp_sorted_points sorted;  /* zeroed when the order of the file always serves */
  bool is_sorted;                   /* `sorted` is what is searched */
  uint32_t count;                   /* of the points that are searched */
  struct kcp_point_record *records; /* plain kernel */
  struct kcp_point_sorter sorter;
  uint64_t first_record;
  struct kcp_device_timer upload, index;
};

struct query_slot {
  struct partition_buffers queries;
  cudaStream_t stream;
  double *ranks; /* planes of this slot's lists */
  uint64_t *id1, *id2;
  struct kcp_device_timer kernel;
};

struct kcp_pair_search {
  struct kcp_pair_plan plan;
  struct kcp_device_memory memory;
  struct partition_buffers reference;
  float4 *packed;
  struct kcp_frame *frame;
  unsigned long long *box;
  double *first_x, *last_x;
  cudaEvent_t reference_ready;
  struct query_slot *slots;
  double *ranks; /* the planes of all slots */
  uint64_t *id1, *id2;
  unsigned long long *evaluations;
  struct kcp_selector selector;
  struct kcp_measurement measurement;
};

enum kernel_family { FAMILY_TILED, FAMILY_GENERAL, FAMILY_PLAIN };

static enum kernel_family family_of(const struct kcp_pair_plan *plan) {
  if (plan->kernel == KCP_KERNEL_PLAIN) return FAMILY_PLAIN;
  bool flat_space = plan->dimensions == 2 || plan->dimensions == 3;
  bool coherent = plan->variant.traversal == KCP_TRAVERSE_ALL || plan->order == KCP_ORDER_X;
  if (plan->metric.kind == KCP_L2 && flat_space && coherent) return FAMILY_TILED;
  return FAMILY_GENERAL;
}

static bool sorts_reference(const struct kcp_pair_plan *plan) {
  return plan->variant.traversal == KCP_TRAVERSE_SUBPARTITIONS;
}

static bool sorts_queries(const struct kcp_pair_plan *plan) {
  return sorts_reference(plan) && plan->order == KCP_ORDER_X;
}

static enum kcp_status make_block(struct kcp_pair_search *search, uint64_t capacity, bool pinned,
                                  struct partition_buffers *buffers, struct kcp_error *error) {
  uint32_t dimensions = search->plan.dimensions;
  if (!pinned) return kcp_points_allocate(capacity, dimensions, &buffers->block, error);
  buffers->block_is_pinned = true;
  KCP_TRY(kcp_pinned_array(&search->memory, capacity, &buffers->block.ids, "ids", error));
  KCP_TRY(kcp_pinned_array(&search->memory, capacity * dimensions, &buffers->block.coordinates,
                           "coordinates", error));
  buffers->block.stride = capacity;
  buffers->block.dimensions = dimensions;
  return KCP_OK;
}

static enum kcp_status make_buffers(struct kcp_pair_search *search, uint64_t capacity, bool pinned,
                                    bool sorted, struct partition_buffers *buffers,
                                    struct kcp_error *error) {
  struct kcp_device_memory *memory = &search->memory;
  uint64_t values = capacity * search->plan.dimensions;
  KCP_TRY(make_block(search, capacity, pinned, buffers, error));
  KCP_TRY(kcp_device_array(memory, values, &buffers->columns, "coordinates", error));
  KCP_TRY(kcp_device_array(memory, capacity, &buffers->ids, "ids", error));
  if (sorted) {
    KCP_TRY(kcp_device_array(memory, values, &buffers->sorted.columns, "coordinates", error));
    KCP_TRY(kcp_device_array(memory, capacity, &buffers->sorted.ids, "ids", error));
    KCP_TRY(kcp_device_array(memory, capacity, &buffers->sorted.order, "order", error));
    KCP_TRY(kcp_point_sorter_create(memory, capacity, &buffers->sorter, error));
  }
  if (search->plan.kernel == KCP_KERNEL_PLAIN)
    KCP_TRY(kcp_device_array(memory, capacity, &buffers->records, "records", error));
  KCP_TRY(kcp_device_timer_create(&buffers->upload, error));
  return kcp_device_timer_create(&buffers->index, error);
}

static void release_buffers(struct partition_buffers *buffers) {
  if (!buffers->block_is_pinned) kcp_points_free(&buffers->block);
  kcp_device_timer_destroy(&buffers->upload);
  kcp_device_timer_destroy(&buffers->index);
}

static void destroy(struct kcp_pair_search *search) {
  if (search == NULL) return;
  cudaDeviceSynchronize();
  release_buffers(&search->reference);
  for (uint32_t s = 0; search->slots != NULL && s < search->plan.slots; ++s) {
    release_buffers(&search->slots[s].queries);
    kcp_device_timer_destroy(&search->slots[s].kernel);
    if (search->slots[s].stream != NULL) cudaStreamDestroy(search->slots[s].stream);
  }
  if (search->reference_ready != NULL) cudaEventDestroy(search->reference_ready);
  kcp_device_memory_free(&search->memory);
  free(search->slots);
  free(search);
}

static uint64_t slots_per_plane(const struct kcp_pair_plan *plan) {
  return plan->lists_per_slot * (plan->k + 1);
}

static enum kcp_status make_lists(struct kcp_pair_search *search, struct kcp_error *error) {
  const struct kcp_pair_plan *plan = &search->plan;
  struct kcp_device_memory *memory = &search->memory;
  uint64_t total = slots_per_plane(plan) * plan->slots;
  KCP_TRY(kcp_device_array(memory, total, &search->ranks, "candidate lists", error));
  KCP_TRY(kcp_device_array(memory, total, &search->id1, "candidate lists", error));
  KCP_TRY(kcp_device_array(memory, total, &search->id2, "candidate lists", error));
  for (uint32_t s = 0; s < plan->slots; ++s) {
    search->slots[s].ranks = search->ranks + s * slots_per_plane(plan);
    search->slots[s].id1 = search->id1 + s * slots_per_plane(plan);
    search->slots[s].id2 = search->id2 + s * slots_per_plane(plan);
  }
  return KCP_OK;
}

static enum kcp_status allocate(struct kcp_pair_search *search, struct kcp_error *error) {
  const struct kcp_pair_plan *plan = &search->plan;
  struct kcp_device_memory *memory = &search->memory;
  uint64_t subpartitions = plan->reference_partition / plan->subpartition_size + 1;
  KCP_TRY(make_buffers(search, plan->reference_partition, false, true, &search->reference, error));
  if (sorts_reference(plan)) {
    KCP_TRY(kcp_device_array(memory, subpartitions, &search->first_x, "the index", error));
    KCP_TRY(kcp_device_array(memory, subpartitions, &search->last_x, "the index", error));
  }
  if (family_of(plan) == FAMILY_TILED) {
    KCP_TRY(kcp_device_array(memory, plan->reference_partition, &search->packed,
                             "filter coordinates", error));
    KCP_TRY(kcp_device_array(memory, 1, &search->frame, "the frame", error));
    KCP_TRY(kcp_device_array(memory, 6, &search->box, "the box", error));
  }
  KCP_CUDA_TRY(cudaEventCreateWithFlags(&search->reference_ready, cudaEventDisableTiming));
  for (uint32_t s = 0; s < plan->slots; ++s) {
    struct query_slot *slot = &search->slots[s];
    KCP_CUDA_TRY(cudaStreamCreateWithFlags(&slot->stream, cudaStreamNonBlocking));
    KCP_TRY(make_buffers(search, plan->query_partition, plan->variant.overlaps, sorts_queries(plan),
                         &slot->queries, error));
    KCP_TRY(kcp_device_timer_create(&slot->kernel, error));
  }
  KCP_TRY(make_lists(search, error));
  KCP_TRY(kcp_device_array(memory, 1, &search->evaluations, "counters", error));
  return kcp_selector_create(memory, plan->k, &search->selector, error);
}

static enum kcp_status create(const struct kcp_pair_plan *plan,
                              const struct kcp_device_info *device, struct kcp_pair_search **out,
                              struct kcp_error *error) {
  KCP_CUDA_TRY(cudaSetDevice(device->index));
  struct kcp_pair_search *search = (struct kcp_pair_search *)calloc(1, sizeof *search);
  if (search == NULL) return kcp_out_of_memory(error, "the search", sizeof *search);
  search->plan = *plan;
  search->slots = (struct query_slot *)calloc(plan->slots, sizeof *search->slots);
  enum kcp_status status = search->slots == NULL ? kcp_out_of_memory(error, "streams", plan->slots)
                                                 : allocate(search, error);
  if (status != KCP_OK) {
    destroy(search);
    return status;
  }
  *out = search;
  return KCP_OK;
}

__global__ static void clear_slots(double *ranks, uint64_t *id1, uint64_t *id2, uint64_t count) {
  uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    ranks[i] = INFINITY;
    id1[i] = id2[i] = 0;
  }
}

static enum kcp_status reset(struct kcp_pair_search *search, struct kcp_error *error) {
  uint64_t total = slots_per_plane(&search->plan) * search->plan.slots;
  uint64_t blocks = (total + 255) / 256;
  memset(&search->measurement, 0, sizeof search->measurement);
  clear_slots<<<(unsigned)(blocks < 4096 ? blocks : 4096), 256>>>(search->ranks, search->id1,
                                                                  search->id2, total);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cudaMemset(search->evaluations, 0, sizeof *search->evaluations));
  KCP_CUDA_TRY(cudaDeviceSynchronize());
  return KCP_OK;
}

static struct kcp_points *reference_block(struct kcp_pair_search *search) {
  return &search->reference.block;
}

static struct kcp_points *query_block(struct kcp_pair_search *search, uint32_t slot) {
  return &search->slots[slot].queries.block;
}

static enum kcp_status upload(struct kcp_pair_search *search, struct partition_buffers *buffers,
                              cudaStream_t stream, struct kcp_error *error) {
  const struct kcp_points *block = &buffers->block;
  uint64_t bytes = block->count * sizeof(double);
  KCP_TRY(kcp_device_timer_begin(&buffers->upload, stream, error));
  for (uint32_t j = 0; j < block->dimensions; ++j)
    KCP_CUDA_TRY(cudaMemcpyAsync(buffers->columns + j * block->stride, kcp_points_column(block, j),
                                 bytes, cudaMemcpyHostToDevice, stream));
  KCP_CUDA_TRY(cudaMemcpyAsync(buffers->ids, block->ids, bytes, cudaMemcpyHostToDevice, stream));
  KCP_TRY(kcp_device_timer_end(&buffers->upload, stream, error));
  search->measurement.bytes_uploaded += bytes * (block->dimensions + 1);
  return KCP_OK;
}

__global__ static void fill_index(uint32_t count, uint32_t size, const double *x, double *first_x,
                                  double *last_x) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  uint64_t first = (uint64_t)i * size;
  if (first >= count) return;
  uint64_t last = first + size < count ? first + size : count;
  first_x[i] = x[first];
  last_x[i] = x[last - 1];
}

__global__ static void fill_records(struct kcp_device_points points, uint32_t dimensions,
                                    struct kcp_point_record *records) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= points.count) return;
  struct kcp_point_record record;
  record.id = points.ids[i];
  record.x = points.columns[i];
  record.y = dimensions > 1 ? points.columns[points.stride + i] : 0;
  record.z = dimensions > 2 ? points.columns[2 * points.stride + i] : 0;
  records[i] = record;
}

static struct kcp_device_points as_searched(const struct partition_buffers *buffers) {
  struct kcp_device_points points;
  memset(&points, 0, sizeof points);
  bool sorted = buffers->is_sorted;
  points.columns = sorted ? buffers->sorted.columns : buffers->columns;
  points.ids = sorted ? buffers->sorted.ids : buffers->ids;
  points.order = sorted ? buffers->sorted.order : NULL;
  points.stride = buffers->block.stride;
  points.records = buffers->records;
  points.first_record = buffers->first_record;
  points.count = buffers->count;
  return points;
}

static struct kcp_uploaded_points as_uploaded(const struct partition_buffers *buffers) {
  const struct kcp_points *block = &buffers->block;
  struct kcp_uploaded_points points = {buffers->columns, block->stride, buffers->ids,
                                       (uint32_t)block->count, block->dimensions};
  return points;
}

static enum kcp_status order_reference(const struct kcp_pair_plan *plan,
                                       struct partition_buffers *buffers, cudaStream_t stream,
                                       struct kcp_error *error) {
  struct kcp_uploaded_points points = as_uploaded(buffers);
  buffers->count = points.count;
  buffers->is_sorted = sorts_reference(plan);
  uint64_t of_a_place = plan->kernel == KCP_KERNEL_TILED ? plan->k : UINT64_MAX;
  if (buffers->is_sorted)
    return kcp_order_by_x(&buffers->sorter, &points, of_a_place, &buffers->sorted, &buffers->count,
                          stream, error);
  return kcp_order_by_id(&buffers->sorter, &points, &buffers->sorted, &buffers->is_sorted, stream,
                         error);
}

static enum kcp_status order_queries(const struct kcp_pair_plan *plan,
                                     struct partition_buffers *buffers, cudaStream_t stream,
                                     struct kcp_error *error) {
  struct kcp_uploaded_points points = as_uploaded(buffers);
  buffers->count = points.count;
  buffers->is_sorted = sorts_queries(plan);
  if (!buffers->is_sorted) return KCP_OK;
  return kcp_order_by_coordinates(&buffers->sorter, &points, &buffers->sorted, stream, error);
}

/* For the plain kernel. */
static enum kcp_status make_records(struct partition_buffers *buffers, cudaStream_t stream,
                                    struct kcp_error *error) {
  if (buffers->records == NULL || buffers->count == 0) return KCP_OK;
  fill_records<<<(buffers->count + 255) / 256, 256, 0, stream>>>(
      as_searched(buffers), buffers->block.dimensions, buffers->records);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

static enum kcp_status load_reference(struct kcp_pair_search *search, uint64_t first_record,
                                      struct kcp_error *error) {
  struct partition_buffers *reference = &search->reference;
  cudaStream_t stream = search->slots[0].stream;
  uint32_t size = search->plan.subpartition_size;
  reference->first_record = first_record;
  KCP_TRY(upload(search, reference, stream, error));
  KCP_TRY(kcp_device_timer_begin(&reference->index, stream, error));
  KCP_TRY(order_reference(&search->plan, reference, stream, error));
  KCP_TRY(make_records(reference, stream, error));
  if (sorts_reference(&search->plan) && reference->count > 0) {
    uint32_t subpartitions = (reference->count - 1) / size + 1;
    fill_index<<<(subpartitions + 255) / 256, 256, 0, stream>>>(
        reference->count, size, reference->sorted.columns, search->first_x, search->last_x);
    KCP_CUDA_TRY(cudaGetLastError());
  }
  if (search->packed != NULL) {
    struct kcp_device_points points = as_searched(reference);
    KCP_TRY(kcp_frame_pack(points.count, search->plan.dimensions, points.columns, points.stride,
                           search->box, search->frame, search->packed, stream, error));
  }
  KCP_TRY(kcp_device_timer_end(&reference->index, stream, error));
  KCP_CUDA_TRY(cudaEventRecord(search->reference_ready, stream));
  for (uint32_t s = 1; s < search->plan.slots; ++s)
    KCP_CUDA_TRY(cudaStreamWaitEvent(search->slots[s].stream, search->reference_ready, 0));
  return KCP_OK;
}

static enum kcp_status load_queries(struct kcp_pair_search *search, uint32_t slot_number,
                                    uint64_t first_record, struct kcp_error *error) {
  struct query_slot *slot = &search->slots[slot_number];
  slot->queries.first_record = first_record;
  KCP_TRY(upload(search, &slot->queries, slot->stream, error));
  KCP_TRY(kcp_device_timer_begin(&slot->queries.index, slot->stream, error));
  KCP_TRY(order_queries(&search->plan, &slot->queries, slot->stream, error));
  KCP_TRY(make_records(&slot->queries, slot->stream, error));
  return kcp_device_timer_end(&slot->queries.index, slot->stream, error);
}

typedef void (*search_kernel)(const struct kcp_search_arguments);

template <enum kcp_buffer BUFFER, enum kcp_traversal TRAVERSAL>
static search_kernel choose_kernel(enum kernel_family family, uint32_t dimensions) {
  if (family == FAMILY_PLAIN) return kcp_search_alone<kcp_record_access, false, BUFFER, TRAVERSAL>;
  if (family == FAMILY_GENERAL) return kcp_search_alone<kcp_column_access, true, BUFFER, TRAVERSAL>;
  return dimensions == 2 ? kcp_search_tiled<2, BUFFER, TRAVERSAL>
                         : kcp_search_tiled<3, BUFFER, TRAVERSAL>;
}

static search_kernel kernel_for(const struct kcp_pair_plan *plan, uint32_t dimensions) {
  enum kernel_family family = family_of(plan);
  bool heap = plan->buffer == KCP_BUFFER_HEAP;
  if (plan->variant.traversal == KCP_TRAVERSE_ALL)
    return heap ? choose_kernel<KCP_BUFFER_HEAP, KCP_TRAVERSE_ALL>(family, dimensions)
                : choose_kernel<KCP_BUFFER_LIST, KCP_TRAVERSE_ALL>(family, dimensions);
  return heap ? choose_kernel<KCP_BUFFER_HEAP, KCP_TRAVERSE_SUBPARTITIONS>(family, dimensions)
              : choose_kernel<KCP_BUFFER_LIST, KCP_TRAVERSE_SUBPARTITIONS>(family, dimensions);
}

static enum kcp_status search_slot(struct kcp_pair_search *search, uint32_t slot_number, bool flat,
                                   struct kcp_error *error) {
  const struct kcp_pair_plan *plan = &search->plan;
  struct query_slot *slot = &search->slots[slot_number];
  struct kcp_search_arguments with;
  memset(&with, 0, sizeof with);
  with.reference = as_searched(&search->reference);
  with.reference.packed = search->packed;
  with.queries = as_searched(&slot->queries);
  if (with.reference.count == 0 || with.queries.count == 0) return KCP_OK;
  with.index.first_x = search->first_x;
  with.index.last_x = search->last_x;
  with.index.size = plan->subpartition_size;
  with.index.count = (with.reference.count + plan->subpartition_size - 1) / plan->subpartition_size;
  with.frame = search->frame;
  with.list_ranks = slot->ranks;
  with.list_id1 = slot->id1;
  with.list_id2 = slot->id2;
  with.list_capacity = plan->lists_per_slot;
  with.list_count = (with.queries.count + plan->points_per_thread - 1) / plan->points_per_thread;
  with.k = plan->k;
  with.rank_limit = plan->rank_limit;
  with.metric_kind = plan->metric.kind;
  with.metric_power = plan->metric.power;
  with.dimensions = flat ? 2 : plan->dimensions;
  with.self = plan->self;
  with.evaluations = search->evaluations;
  unsigned blocks = (unsigned)((with.list_count + plan->block_threads - 1) / plan->block_threads);
  size_t queues = family_of(plan) == FAMILY_TILED
                      ? sizeof(uint32_t) * kcp_queue_length * plan->block_threads
                      : 0;
  search_kernel kernel = kernel_for(plan, with.dimensions);
  if (queues > 32 * 1024) /* beside the tile it may pass the 48 KB that need no asking */
    KCP_CUDA_TRY(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)queues));
  KCP_TRY(kcp_device_timer_begin(&slot->kernel, slot->stream, error));
  kernel<<<blocks, plan->block_threads, queues, slot->stream>>>(with);
  KCP_CUDA_TRY(cudaGetLastError());
  return kcp_device_timer_end(&slot->kernel, slot->stream, error);
}

static enum kcp_status synchronize(struct kcp_pair_search *search, struct kcp_error *error) {
  uint32_t slots = search->plan.slots, count = slots + 1;
  double *phases = search->measurement.phase_s;
  KCP_CUDA_TRY(cudaDeviceSynchronize());
  struct kcp_device_timer **timers =
      (struct kcp_device_timer **)calloc(3 * (size_t)count, sizeof *timers);
  if (timers == NULL) return kcp_out_of_memory(error, "timers", 3 * count * sizeof *timers);
  struct kcp_device_timer **uploads = timers, **indexes = timers + count,
                          **kernels = timers + 2 * count;
  for (uint32_t s = 0; s < slots; ++s) {
    uploads[s] = &search->slots[s].queries.upload;
    indexes[s] = &search->slots[s].queries.index;
    kernels[s] = &search->slots[s].kernel;
  }
  uploads[slots] = &search->reference.upload;
  indexes[slots] = &search->reference.index;
  enum kcp_status status =
      kcp_device_timers_collect(uploads, count, &phases[KCP_PHASE_UPLOAD], error);
  if (status == KCP_OK)
    status = kcp_device_timers_collect(indexes, count, &phases[KCP_PHASE_INDEX], error);
  if (status == KCP_OK)
    status = kcp_device_timers_collect(kernels, slots, &phases[KCP_PHASE_KERNEL], error);
  free(timers);
  return status;
}

static enum kcp_status merge(struct kcp_pair_search *search, struct kcp_candidate *pairs,
                             uint64_t *count, struct kcp_measurement *measurement,
                             struct kcp_error *error) {
  struct kcp_candidate_planes planes = {search->ranks, search->id1, search->id2,
                                        slots_per_plane(&search->plan) * search->plan.slots};
  unsigned long long evaluations = 0;
  double started = kcp_now();
  KCP_TRY(kcp_select_candidates(&search->selector, &planes, pairs, count, error));
  KCP_CUDA_TRY(
      cudaMemcpy(&evaluations, search->evaluations, sizeof evaluations, cudaMemcpyDeviceToHost));
  search->measurement.phase_s[KCP_PHASE_MERGE] += kcp_now() - started;
  for (int phase = 0; phase < KCP_PHASE_COUNT; ++phase)
    measurement->phase_s[phase] += search->measurement.phase_s[phase];
  measurement->distance_evaluations += evaluations;
  measurement->bytes_uploaded += search->measurement.bytes_uploaded;
  measurement->bytes_downloaded += *count * sizeof *pairs;
  measurement->peak_device_bytes = search->memory.device_bytes;
  return KCP_OK;
}

extern "C" {
extern const struct kcp_pair_engine kcp_cuda_pair_engine;
const struct kcp_pair_engine kcp_cuda_pair_engine = {
    create,         destroy,      reset,       reference_block, query_block,
    load_reference, load_queries, search_slot, synchronize,     merge};
}

/* Common influence regions on the GPU: both methods over the kernels beside it. Everything of a
 * pass is queued at once; the host looks when it has ended, and repeats it with more room where a
 * list or the table of pairs was too small. Cells are split on the host (kcp_influence_run).
 *
 * Memory: 52 bytes a site, 8 a cell where cells differ in weight, 4 a site and tile that it can
 * matter in, 24 (matrix) or 32 (table) a pair; the paper's method 16 more a cell and 8 a pair. */
#include <cstdlib>
#include <cstring>

#include "influence_pairs.cuh"
#include "kcp/interrupt.h"

struct kcp_influence_search {
  const struct kcp_influence_plan *plan;
  uint32_t multiprocessors;
  struct kcp_device_memory memory;
  struct kcp_device_sites sites[2];
  struct kcp_device_weights weights;
  struct kcp_list_levels levels[2];
  struct kcp_pair_store store;
  struct kcp_paper_method paper;
  unsigned long long *evaluations;
  cudaStream_t stream;
  struct kcp_device_timer upload_timer, index_timer, kernel_timer, bounds_timer;
};

static struct kcp_device_timer *const *timers_of(struct kcp_influence_search *search,
                                                 struct kcp_device_timer *timers[4]) {
  timers[0] = &search->upload_timer;
  timers[1] = &search->index_timer;
  timers[2] = &search->kernel_timer;
  timers[3] = &search->bounds_timer;
  return timers;
}

static uint64_t cells_of(const struct kcp_influence_plan *plan) {
  return (uint64_t)plan->grid.rows * plan->grid.columns;
}

static enum kcp_status prepare(struct kcp_influence_search *search,
                               const struct kcp_device_info *device, struct kcp_error *error) {
  const struct kcp_influence_plan *plan = search->plan;
  struct kcp_device_memory *memory = &search->memory;
  struct kcp_device_timer *timers[4];
  timers_of(search, timers);
  KCP_CUDA_TRY(cudaSetDevice(device->index));
  KCP_CUDA_TRY(cudaStreamCreateWithFlags(&search->stream, cudaStreamNonBlocking));
  for (int i = 0; i < 4; ++i) KCP_TRY(kcp_device_timer_create(timers[i], error));
  for (int set = 0; set < 2; ++set) {
    KCP_TRY(kcp_device_sites_create(plan->sets[set], memory, &search->sites[set], error));
    KCP_TRY(kcp_list_levels_create(&plan->grid, &search->sites[set], plan->k[set],
                                   &search->levels[set], error));
  }
  if (!plan->weights->uniform) {
    uint64_t *cells;
    KCP_TRY(kcp_device_array(memory, cells_of(plan), &cells, "weights of cells", error));
    search->weights.cells = cells;
  }
  search->weights.each = plan->weights->cells[0];
  KCP_TRY(kcp_device_array(memory, 1, &search->evaluations, "counters", error));
  KCP_TRY(kcp_pair_store_create(search->sites, &search->store, error));
  if (plan->method == KCP_INFLUENCE_PAIRWISE)
    KCP_TRY(kcp_paper_method_create(&plan->grid, search->sites, plan->k, memory, &search->paper,
                                    error));
  KCP_CUDA_TRY(cudaDeviceSynchronize());
  return KCP_OK;
}

static void destroy(struct kcp_influence_search *search) {
  struct kcp_device_timer *timers[4];
  if (search == NULL) return;
  timers_of(search, timers);
  for (int i = 0; i < 4; ++i) kcp_device_timer_destroy(timers[i]);
  if (search->stream != NULL) cudaStreamDestroy(search->stream);
  for (int set = 0; set < 2; ++set) kcp_list_levels_free(&search->levels[set]);
  kcp_device_memory_free(&search->store.memory);
  kcp_device_memory_free(&search->memory);
  free(search);
}

static enum kcp_status create(const struct kcp_influence_plan *plan,
                              const struct kcp_device_info *device,
                              struct kcp_influence_search **out, struct kcp_error *error) {
  struct kcp_influence_search *search = (struct kcp_influence_search *)calloc(1, sizeof *search);
  if (search == NULL) return kcp_out_of_memory(error, "the search", sizeof *search);
  search->plan = plan;
  search->multiprocessors = device->units;
  enum kcp_status status = prepare(search, device, error);
  if (status != KCP_OK) {
    destroy(search);
    return status;
  }
  *out = search;
  return KCP_OK;
}

static enum kcp_status upload(struct kcp_influence_search *search,
                              struct kcp_measurement *measurement, struct kcp_error *error) {
  const struct kcp_influence_plan *plan = search->plan;
  KCP_TRY(kcp_device_timer_begin(&search->upload_timer, search->stream, error));
  for (int set = 0; set < 2; ++set)
    KCP_TRY(kcp_device_sites_upload(plan->sets[set], &search->sites[set],
                                    &measurement->bytes_uploaded, search->stream, error));
  if (search->weights.cells != NULL) {
    const uint64_t bytes = cells_of(plan) * sizeof(uint64_t);
    KCP_CUDA_TRY(cudaMemcpyAsync((void *)search->weights.cells, plan->weights->cells, bytes,
                                 cudaMemcpyHostToDevice, search->stream));
    measurement->bytes_uploaded += bytes;
  }
  return kcp_device_timer_end(&search->upload_timer, search->stream, error);
}

/* The distances of the nearest sites: as lists by tile, and as the paper has them. */
static enum kcp_status queue_index(struct kcp_influence_search *search, struct kcp_error *error) {
  const struct kcp_influence_plan *plan = search->plan;
  KCP_TRY(kcp_device_timer_begin(&search->index_timer, search->stream, error));
  for (int set = 0; set < 2; ++set)
    KCP_TRY(kcp_list_levels_launch(&plan->grid, &search->sites[set], plan->k[set],
                                   &search->levels[set], search->stream, error));
  if (plan->method == KCP_INFLUENCE_PAIRWISE)
    KCP_TRY(
        kcp_kth_launch(&plan->grid, search->sites, plan->k, &search->paper, search->stream, error));
  return kcp_device_timer_end(&search->index_timer, search->stream, error);
}

static enum kcp_status queue_pair_areas(struct kcp_influence_search *search,
                                        struct kcp_error *error) {
  KCP_TRY(kcp_device_timer_begin(&search->kernel_timer, search->stream, error));
  KCP_TRY(kcp_pair_areas_launch(&search->plan->grid, search->sites, &search->weights,
                                &search->paper, search->multiprocessors, search->stream, error));
  return kcp_device_timer_end(&search->kernel_timer, search->stream, error);
}

/* The sparse method: the areas, or beside the paper's method the bounds. */
static enum kcp_status queue_cells(struct kcp_influence_search *search,
                                   struct kcp_device_timer *timer, struct kcp_error *error) {
  const struct kcp_influence_plan *plan = search->plan;
  KCP_TRY(kcp_device_timer_begin(timer, search->stream, error));
  KCP_TRY(kcp_pair_store_clear(&search->store, search->stream, error));
  KCP_CUDA_TRY(
      cudaMemsetAsync(search->evaluations, 0, sizeof *search->evaluations, search->stream));
  KCP_TRY(kcp_cells_launch(&plan->grid, search->sites, plan->k, search->levels, &search->weights,
                           &search->store.table, search->evaluations, search->stream, error));
  return kcp_device_timer_end(timer, search->stream, error);
}

static enum kcp_status collect_time(struct kcp_device_timer *timer, double *seconds,
                                    struct kcp_error *error) {
  return kcp_device_timers_collect(&timer, 1, seconds, error);
}

/* One pass; *complete tells whether everything had room. */
static enum kcp_status pass(struct kcp_influence_search *search, bool *complete,
                            struct kcp_measurement *measurement, struct kcp_error *error) {
  const bool is_paper = search->plan->method == KCP_INFLUENCE_PAIRWISE;
  bool lists_fit[2], table_fits;
  KCP_TRY(queue_index(search, error));
  if (is_paper) KCP_TRY(queue_pair_areas(search, error));
  KCP_TRY(queue_cells(search, is_paper ? &search->bounds_timer : &search->kernel_timer, error));
  KCP_CUDA_TRY(cudaStreamSynchronize(search->stream));
  KCP_TRY(collect_time(&search->index_timer, &measurement->phase_s[KCP_PHASE_INDEX], error));
  KCP_TRY(collect_time(&search->kernel_timer, &measurement->phase_s[KCP_PHASE_KERNEL], error));
  KCP_TRY(collect_time(&search->bounds_timer, &measurement->phase_s[KCP_PHASE_MERGE], error));
  const uint64_t bytes = search->memory.device_bytes + search->store.memory.device_bytes +
                         kcp_list_levels_bytes(&search->levels[0]) +
                         kcp_list_levels_bytes(&search->levels[1]);
  if (bytes > measurement->peak_device_bytes) measurement->peak_device_bytes = bytes;
  for (int set = 0; set < 2; ++set)
    KCP_TRY(kcp_list_levels_check(&search->levels[set], &lists_fit[set], search->stream, error));
  KCP_TRY(kcp_pair_store_check(&search->store, &table_fits, search->stream, error));
  *complete = lists_fit[0] && lists_fit[1] && table_fits;
  return kcp_interrupted() ? kcp_fail(error, KCP_INTERRUPTED, "stopped") : KCP_OK;
}

static enum kcp_status take_paper_areas(struct kcp_influence_search *search,
                                        struct kcp_influence_sums *sums,
                                        struct kcp_measurement *measurement,
                                        struct kcp_error *error) {
  const struct kcp_influence_plan *plan = search->plan;
  const uint64_t pairs = plan->sets[0]->selected_count * plan->sets[1]->selected_count;
  uint64_t *areas = (uint64_t *)malloc(pairs * sizeof *areas);
  if (areas == NULL) return kcp_out_of_memory(error, "the areas", pairs * sizeof *areas);
  const cudaError_t code =
      cudaMemcpy(areas, search->paper.areas, pairs * sizeof *areas, cudaMemcpyDeviceToHost);
  enum kcp_status status = KCP_OK;
  if (code != cudaSuccess) status = kcp_cuda_failure(code, "cudaMemcpy", __FILE__, __LINE__, error);
  if (status == KCP_OK) status = kcp_influence_set_areas(plan, areas, sums, error);
  free(areas);
  measurement->bytes_downloaded += pairs * sizeof *areas;
  measurement->distance_evaluations +=
      cells_of(plan) * (plan->sets[0]->count + plan->sets[1]->count + 2 * pairs);
  return status;
}

static enum kcp_status search_all(struct kcp_influence_search *search,
                                  struct kcp_influence_sums *sums,
                                  struct kcp_measurement *measurement, struct kcp_error *error) {
  unsigned long long evaluations = 0;
  uint64_t collection_bytes = 0;
  bool complete = false;
  KCP_TRY(upload(search, measurement, error));
  while (!complete) KCP_TRY(pass(search, &complete, measurement, error));
  KCP_TRY(collect_time(&search->upload_timer, &measurement->phase_s[KCP_PHASE_UPLOAD], error));
  KCP_CUDA_TRY(
      cudaMemcpy(&evaluations, search->evaluations, sizeof evaluations, cudaMemcpyDeviceToHost));
  measurement->distance_evaluations += evaluations;
  KCP_TRY(kcp_pair_store_collect(&search->store, search->plan->sets, search->sites, sums,
                                 measurement, &collection_bytes, search->stream, error));
  measurement->peak_device_bytes += collection_bytes;
  if (search->plan->method != KCP_INFLUENCE_PAIRWISE) return KCP_OK;
  return take_paper_areas(search, sums, measurement, error);
}

static enum kcp_status run(struct kcp_influence_search *search, struct kcp_influence_sums *sums,
                           struct kcp_measurement *measurement, struct kcp_progress *progress,
                           struct kcp_error *error) {
  (void)progress;
  memset(sums, 0, sizeof *sums);
  enum kcp_status status = search_all(search, sums, measurement, error);
  if (status == KCP_OK) return KCP_OK;
  cudaDeviceSynchronize(); /* nothing may still use the host's memory */
  free(sums->pairs);
  memset(sums, 0, sizeof *sums);
  return status;
}

extern "C" const struct kcp_influence_engine kcp_cuda_influence_engine = {create, destroy, run,
                                                                          NULL};

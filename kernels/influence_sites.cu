#include <cstdlib>

#include "influence_sites.cuh"

enum kcp_status kcp_device_sites_create(const struct kcp_site_groups *groups,
                                        struct kcp_device_memory *memory,
                                        struct kcp_device_sites *sites, struct kcp_error *error) {
  const uint64_t count = groups->count;
  double *columns[4];
  uint32_t *numbers[3];
  for (int i = 0; i < 4; ++i) KCP_TRY(kcp_device_array(memory, count, &columns[i], "sites", error));
  for (int i = 0; i < 3; ++i) KCP_TRY(kcp_device_array(memory, count, &numbers[i], "sites", error));
  *sites = {(uint32_t)count, columns[0], columns[1],
            columns[2],      columns[3], numbers[0],
            numbers[1],      numbers[2], (uint32_t)groups->selected_count};
  return KCP_OK;
}

static enum kcp_status copy(const void *to, const void *from, uint64_t bytes, uint64_t *copied,
                            cudaStream_t stream, struct kcp_error *error) {
  KCP_CUDA_TRY(cudaMemcpyAsync((void *)to, from, bytes, cudaMemcpyHostToDevice, stream));
  *copied += bytes;
  return KCP_OK;
}

/* Multiplicities, numbers of the selected, the selected: three columns of 32 bits. */
static void fill_numbers(const struct kcp_site_groups *groups, uint32_t *columns) {
  uint32_t next = 0;
  for (uint64_t group = 0; group < groups->count; ++group) {
    columns[group] = (uint32_t)groups->multiplicity[group];
    columns[groups->count + group] = groups->selected[group] ? next : kcp_not_selected;
    if (groups->selected[group]) columns[2 * groups->count + next++] = (uint32_t)group;
  }
}

static enum kcp_status copy_numbers(const struct kcp_site_groups *groups, const uint32_t *columns,
                                    const struct kcp_device_sites *sites, uint64_t *bytes,
                                    cudaStream_t stream, struct kcp_error *error) {
  const uint64_t size = groups->count * sizeof *columns;
  KCP_TRY(copy(sites->multiplicity, columns, size, bytes, stream, error));
  KCP_TRY(copy(sites->number, columns + groups->count, size, bytes, stream, error));
  KCP_TRY(copy(sites->selected, columns + 2 * groups->count,
               groups->selected_count * sizeof *columns, bytes, stream, error));
  KCP_CUDA_TRY(cudaStreamSynchronize(stream)); /* the columns are about to be freed */
  return KCP_OK;
}

enum kcp_status kcp_device_sites_upload(const struct kcp_site_groups *groups,
                                        const struct kcp_device_sites *sites, uint64_t *bytes,
                                        cudaStream_t stream, struct kcp_error *error) {
  const uint64_t size = groups->count * sizeof(double);
  uint32_t *columns = (uint32_t *)malloc(3 * groups->count * sizeof *columns);
  if (columns == NULL) return kcp_out_of_memory(error, "the sites", 12 * groups->count);
  fill_numbers(groups, columns);
  enum kcp_status status = copy(sites->x, groups->x, size, bytes, stream, error);
  if (status == KCP_OK) status = copy(sites->y, groups->y, size, bytes, stream, error);
  if (status == KCP_OK)
    status = copy(sites->squared_weight, groups->squared_weight, size, bytes, stream, error);
  if (status == KCP_OK)
    status = copy(sites->inverse_square, groups->inverse_square, size, bytes, stream, error);
  if (status == KCP_OK) status = copy_numbers(groups, columns, sites, bytes, stream, error);
  if (status != KCP_OK) cudaStreamSynchronize(stream);
  free(columns);
  return status;
}

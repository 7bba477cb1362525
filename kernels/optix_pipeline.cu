/* Context, module, program groups and pipeline of OptiX for --index optix. */
#include <cstdio>
#include <cstdlib>

#include "kcp/measurement.h"
#include "optix/launch.cuh"
#include "optix_pipeline.cuh"

extern "C" {
/* kernels/optix/rays.cu as PTX, made by the build. */
extern const unsigned char kcp_optix_rays_ptx[];
extern const size_t kcp_optix_rays_ptx_bytes;
}

enum { RAYGEN, MISS, HIT, GROUPS };

static void keep_message(unsigned level, const char *tag, const char *message, void *log) {
  (void)level;
  (void)tag;
  kcp_optix_log_add((struct kcp_optix_log *)log, message);
}

static enum kcp_status open_context(struct kcp_optix *optix, struct kcp_error *error) {
  struct kcp_optix_context_options options = {};
  options.log = keep_message;
  options.log_data = &optix->log;
  options.log_level = KCP_OPTIX_LOG_WARNINGS;
  KCP_CUDA_TRY(cudaFree(NULL)); /* makes the CUDA context that is the current one */
  KCP_OPTIX_TRY(optix, create_context(NULL, &options, &optix->context));
  KCP_OPTIX_TRY(optix, get_property(optix->context, KCP_OPTIX_CORES_VERSION, &optix->cores_version,
                                    sizeof optix->cores_version));
  KCP_OPTIX_TRY(optix, get_property(optix->context, KCP_OPTIX_MOST_PRIMITIVES,
                                    &optix->most_primitives, sizeof optix->most_primitives));
  return KCP_OK;
}

static enum kcp_status make_pipeline(struct kcp_optix *optix, struct kcp_error *error) {
  struct kcp_optix_module_options module_options = {};
  struct kcp_optix_pipeline_options options = {};
  struct kcp_optix_group_options group_options = {};
  struct kcp_optix_group_description groups[GROUPS] = {};
  const struct kcp_optix_link_options link_options = {1};
  char *log = optix->log.returned;
  size_t *log_bytes = &optix->log.returned_bytes;
  module_options.optimisation = KCP_OPTIX_OPTIMISE_FULLY;
  module_options.debugging = KCP_OPTIX_NO_DEBUGGING;
  options.graph = KCP_OPTIX_SINGLE_STRUCTURE;
  options.payload_values = KCP_RAY_PAYLOAD;
  options.attribute_values = 2;
  options.launch_name = KCP_RAY_LAUNCH_NAME;
  options.primitive_types = KCP_OPTIX_CUSTOM_PRIMITIVES;
  KCP_OPTIX_TRY(optix, create_module(optix->context, &module_options, &options,
                                     (const char *)kcp_optix_rays_ptx, kcp_optix_rays_ptx_bytes,
                                     log, log_bytes, &optix->module));
  groups[RAYGEN].kind = KCP_OPTIX_KIND_RAYGEN;
  groups[RAYGEN].single = {optix->module, "__raygen__hunt"};
  groups[MISS].kind = KCP_OPTIX_KIND_MISS;
  groups[MISS].single = {optix->module, "__miss__nothing"};
  groups[HIT].kind = KCP_OPTIX_KIND_HITGROUP;
  groups[HIT].hit.intersection = {optix->module, "__intersection__primitive"};
  KCP_OPTIX_TRY(optix, create_groups(optix->context, groups, GROUPS, &group_options, log, log_bytes,
                                     optix->groups));
  KCP_OPTIX_TRY(optix, create_pipeline(optix->context, &options, &link_options, optix->groups,
                                       GROUPS, log, log_bytes, &optix->pipeline));
  return KCP_OK;
}

/* A record is a header alone: programs get everything from the launch's parameters. */
static enum kcp_status bind_programs(struct kcp_optix *optix, struct kcp_error *error) {
  unsigned char headers[GROUPS * KCP_OPTIX_RECORD_HEADER], *records;
  for (int i = 0; i < GROUPS; ++i)
    KCP_OPTIX_TRY(optix,
                  pack_record_header(optix->groups[i], headers + i * KCP_OPTIX_RECORD_HEADER));
  KCP_TRY(kcp_device_room(&optix->records, sizeof headers, &records, "OptiX", error));
  KCP_CUDA_TRY(cudaMemcpy(records, headers, sizeof headers, cudaMemcpyHostToDevice));
  struct kcp_optix_binding_table *bindings = &optix->bindings;
  bindings->raygen = (kcp_optix_address)(uintptr_t)records;
  bindings->miss = bindings->raygen + MISS * KCP_OPTIX_RECORD_HEADER;
  bindings->miss_stride = KCP_OPTIX_RECORD_HEADER;
  bindings->miss_count = 1;
  bindings->hit = bindings->raygen + HIT * KCP_OPTIX_RECORD_HEADER;
  bindings->hit_stride = KCP_OPTIX_RECORD_HEADER;
  bindings->hit_count = 1;
  return KCP_OK;
}

enum kcp_status kcp_optix_create(struct kcp_optix **out, struct kcp_error *error) {
  const double started = kcp_now();
  struct kcp_optix *optix = (struct kcp_optix *)calloc(1, sizeof *optix);
  *out = NULL;
  if (optix == NULL) return kcp_out_of_memory(error, "OptiX", sizeof *optix);
  enum kcp_status status = kcp_optix_load(optix, error);
  if (status == KCP_OK) status = open_context(optix, error);
  if (status == KCP_OK) status = make_pipeline(optix, error);
  if (status == KCP_OK) status = bind_programs(optix, error);
  if (status != KCP_OK) {
    kcp_optix_destroy(optix);
    return status;
  }
  optix->startup_seconds = kcp_now() - started;
  *out = optix;
  return KCP_OK;
}

void kcp_optix_destroy(struct kcp_optix *optix) {
  if (optix == NULL) return;
  kcp_device_buffer_free(&optix->records);
  if (optix->pipeline != NULL) optix->table.destroy_pipeline(optix->pipeline);
  for (int i = 0; i < GROUPS; ++i)
    if (optix->groups[i] != NULL) optix->table.destroy_group(optix->groups[i]);
  if (optix->module != NULL) optix->table.destroy_module(optix->module);
  if (optix->context != NULL) optix->table.destroy_context(optix->context);
  kcp_optix_unload(optix);
  free(optix);
}

size_t kcp_optix_parameters(const struct kcp_optix *optix, struct kcp_parameter *list) {
  list[0] = {};
  list[0].name = "ray-tracing";
  if (optix->cores_version == 0)
    snprintf(list[0].value, sizeof list[0].value, "software");
  else
    snprintf(list[0].value, sizeof list[0].value, "hardware, version %u.%u",
             optix->cores_version / 10, optix->cores_version % 10);
  list[1] = {};
  list[1].name = "optix-startup-us";
  list[1].is_number = true;
  snprintf(list[1].value, sizeof list[1].value, "%.0f", 1e6 * optix->startup_seconds);
  return 2;
}

enum kcp_status kcp_optix_launch(struct kcp_optix *optix, cudaStream_t stream,
                                 const void *parameters, size_t parameter_bytes, unsigned count,
                                 struct kcp_error *error) {
  KCP_OPTIX_TRY(optix, launch(optix->pipeline, stream, (kcp_optix_address)(uintptr_t)parameters,
                              parameter_bytes, &optix->bindings, count, 1, 1));
  return KCP_OK;
}

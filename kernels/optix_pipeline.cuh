/* OptiX, opened once for a join: the driver's library, a context, and the pipeline of the project's
 * own programs (kernels/optix/rays.cu), which is compiled for the device when it is opened. */
#ifndef KCP_KERNELS_OPTIX_PIPELINE_CUH
#define KCP_KERNELS_OPTIX_PIPELINE_CUH

#include "device_buffer.cuh"
#include "kcp/algorithm.h"
#include "optix_api.cuh"

/* What OptiX had to say since the last call began, in one line. */
struct kcp_optix_log {
  char text[512];
  size_t length;
  char returned[2048]; /* what a function with a log of its own writes there */
  size_t returned_bytes;
};

struct kcp_optix {
  void *library; /* owned */
  struct kcp_optix_table table;
  struct kcp_optix_log log; /* OptiX holds its address */
  kcp_optix_context context;
  kcp_optix_module module;
  kcp_optix_group groups[3]; /* raygen, miss, hit */
  kcp_optix_pipeline pipeline;
  struct kcp_optix_binding_table bindings;
  struct kcp_device_buffer records; /* of the binding table */
  unsigned cores_version;           /* of ray-tracing cores, times 10; 0: rays run in software */
  unsigned most_primitives;         /* of a structure */
  double startup_seconds;
};

/* On the current device. KCP_UNAVAILABLE with the cause where OptiX is not to be had. */
enum kcp_status kcp_optix_create(struct kcp_optix **out, struct kcp_error *error);
void kcp_optix_destroy(struct kcp_optix *optix); /* NULL is allowed */

/* For the report: whether rays run in hardware, and what opening took; returns how many. */
size_t kcp_optix_parameters(const struct kcp_optix *optix, struct kcp_parameter *list);

/* Runs the ray generation program for `count` <= KCP_OPTIX_MOST_LAUNCHED rays; `parameters` is
 * device memory. */
enum kcp_status kcp_optix_launch(struct kcp_optix *optix, cudaStream_t stream,
                                 const void *parameters, size_t parameter_bytes, unsigned count,
                                 struct kcp_error *error);

/* The library and its table (optix_library.cu). */
enum kcp_status kcp_optix_load(struct kcp_optix *optix, struct kcp_error *error);
void kcp_optix_unload(struct kcp_optix *optix);

void kcp_optix_log_clear(struct kcp_optix_log *log);
void kcp_optix_log_add(struct kcp_optix_log *log, const char *message);

/* Records the failed expression, file and line with OptiX's own words, and returns the status. */
enum kcp_status kcp_optix_failure(struct kcp_optix *optix, int code, const char *expression,
                                  const char *file, int line, struct kcp_error *error);

#define KCP_OPTIX_TRY(OPTIX, EXPRESSION)                                                    \
  do {                                                                                      \
    kcp_optix_log_clear(&(OPTIX)->log);                                                     \
    const int kcp_code_ = (OPTIX)->table.EXPRESSION;                                        \
    if (kcp_code_ != KCP_OPTIX_SUCCESS)                                                     \
      return kcp_optix_failure((OPTIX), kcp_code_, #EXPRESSION, __FILE__, __LINE__, error); \
  } while (0)

#endif

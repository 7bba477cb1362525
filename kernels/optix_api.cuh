/* The part of NVIDIA OptiX that kcp calls, declared by the project from what its programming guide
 * and API reference say: the headers may not be passed on, and nobody needs an SDK to build kcp.
 * The functions are in the driver's library, which fills a table of pointers for the ABI asked for;
 * newer drivers keep older ABIs. Every size and offset that the ABI fixes is asserted below.
 *
 * Handles are opaque, device addresses are 64-bit numbers, and a result of 0 is success. */
#ifndef KCP_KERNELS_OPTIX_API_CUH
#define KCP_KERNELS_OPTIX_API_CUH

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#define KCP_OPTIX_ABI 87                   /* of OptiX 8.0 */
#define KCP_OPTIX_LEAST_DRIVER "535"       /* the first that knows it */
#define KCP_OPTIX_RECORD_HEADER 32         /* bytes of a record of the binding table */
#define KCP_OPTIX_MOST_LAUNCHED (1u << 30) /* rays of a launch */

enum kcp_optix_code {
  KCP_OPTIX_SUCCESS = 0,
  KCP_OPTIX_UNSUPPORTED_ABI = 7801,
  KCP_OPTIX_WRONG_TABLE_SIZE = 7802,
  KCP_OPTIX_LIBRARY_NOT_FOUND = 7804
};

enum kcp_optix_property {
  KCP_OPTIX_MOST_PRIMITIVES = 0x2003, /* of a structure */
  KCP_OPTIX_CORES_VERSION = 0x2005    /* of ray-tracing cores, times 10; 0 without any */
};

enum {
  KCP_OPTIX_SINGLE_STRUCTURE = 1,  /* traversable graph: one geometry structure, no instances */
  KCP_OPTIX_CUSTOM_PRIMITIVES = 1, /* primitive types of a pipeline: boxes with a program */
  KCP_OPTIX_INPUT_CUSTOM = 0x2142,
  KCP_OPTIX_OPERATION_BUILD = 0x2161,
  KCP_OPTIX_PREFER_FAST_TRACE = 4,
  KCP_OPTIX_DISABLE_ANYHIT = 1, /* flag of a geometry, and of a ray */
  KCP_OPTIX_RAY_DISABLE_CLOSESTHIT = 8,
  KCP_OPTIX_OPTIMISE_FULLY = 0x2343,
  KCP_OPTIX_NO_DEBUGGING = 0x2350,
  KCP_OPTIX_KIND_RAYGEN = 0x2421,
  KCP_OPTIX_KIND_MISS = 0x2422,
  KCP_OPTIX_KIND_HITGROUP = 0x2424,
  KCP_OPTIX_LOG_WARNINGS = 3 /* and what is worse */
};

typedef struct kcp_optix_context_object *kcp_optix_context;
typedef struct kcp_optix_module_object *kcp_optix_module;
typedef struct kcp_optix_group_object *kcp_optix_group;
typedef struct kcp_optix_pipeline_object *kcp_optix_pipeline;
typedef unsigned long long kcp_optix_address;   /* device memory */
typedef unsigned long long kcp_optix_structure; /* a structure that rays traverse */

struct kcp_optix_context_options {
  void (*log)(unsigned level, const char *tag, const char *message, void *data);
  void *log_data;
  int log_level;
  unsigned validation; /* 0: off */
};

struct kcp_optix_module_options {
  int most_registers; /* 0: as many as it takes */
  int optimisation;
  int debugging;
  const void *bound_values;
  unsigned bound_value_count;
  unsigned payload_type_count;
  const void *payload_types;
};

struct kcp_optix_pipeline_options {
  int motion;
  unsigned graph;
  int payload_values; /* words */
  int attribute_values;
  unsigned exceptions;
  const char *launch_name; /* of the __constant__ that a launch fills */
  unsigned primitive_types;
  int opacity_micromaps;
};

struct kcp_optix_link_options {
  unsigned trace_depth;
};

struct kcp_optix_program {
  kcp_optix_module module;
  const char *entry;
};

struct kcp_optix_group_description {
  int kind;
  unsigned flags;
  union {
    struct kcp_optix_program single; /* raygen, miss */
    struct {
      struct kcp_optix_program closest_hit, any_hit, intersection;
    } hit;
  };
};

struct kcp_optix_group_options {
  const void *payload_type;
};

struct kcp_optix_binding_table {
  kcp_optix_address raygen, exception;
  kcp_optix_address miss;
  unsigned miss_stride, miss_count;
  kcp_optix_address hit;
  unsigned hit_stride, hit_count;
  kcp_optix_address callables;
  unsigned callables_stride, callables_count;
};

struct kcp_optix_boxes {
  const kcp_optix_address *buffers; /* on the host; boxes of 6 floats, the lower corner first */
  unsigned primitives, stride;      /* 0: without gaps */
  const unsigned *flags;            /* by record */
  unsigned records;
  kcp_optix_address record_offsets;
  unsigned record_offset_bytes, record_offset_stride;
  unsigned first_number;
};

struct kcp_optix_build_input {
  int type;
  union {
    struct kcp_optix_boxes boxes;
    unsigned char room[1024];
  };
};

struct kcp_optix_build_options {
  unsigned flags;
  int operation;
  struct {
    uint16_t keys, flags;
    float begin, end;
  } motion;
};

struct kcp_optix_build_sizes {
  size_t output, scratch, update_scratch;
};

struct kcp_optix_emitted {
  kcp_optix_address result;
  int type;
};

typedef void (*kcp_optix_unused)();

/* The library's functions; unused places keep the others where they belong. */
struct kcp_optix_table {
  const char *(*error_name)(int code);
  const char *(*error_text)(int code);
  int (*create_context)(void *of_cuda, const struct kcp_optix_context_options *options,
                        kcp_optix_context *context);
  int (*destroy_context)(kcp_optix_context context);
  int (*get_property)(kcp_optix_context context, int property, void *value, size_t bytes);
  kcp_optix_unused unused_5[7];
  int (*create_module)(kcp_optix_context context, const struct kcp_optix_module_options *options,
                       const struct kcp_optix_pipeline_options *of_pipeline, const char *input,
                       size_t input_bytes, char *log, size_t *log_bytes, kcp_optix_module *module);
  kcp_optix_unused unused_13[2];
  int (*destroy_module)(kcp_optix_module module);
  kcp_optix_unused unused_16[2];
  int (*create_groups)(kcp_optix_context context,
                       const struct kcp_optix_group_description *descriptions, unsigned count,
                       const struct kcp_optix_group_options *options, char *log, size_t *log_bytes,
                       kcp_optix_group *groups);
  int (*destroy_group)(kcp_optix_group group);
  kcp_optix_unused unused_20;
  int (*create_pipeline)(kcp_optix_context context,
                         const struct kcp_optix_pipeline_options *options,
                         const struct kcp_optix_link_options *link_options,
                         const kcp_optix_group *groups, unsigned count, char *log,
                         size_t *log_bytes, kcp_optix_pipeline *pipeline);
  int (*destroy_pipeline)(kcp_optix_pipeline pipeline);
  kcp_optix_unused unused_23;
  int (*measure_structure)(kcp_optix_context context, const struct kcp_optix_build_options *options,
                           const struct kcp_optix_build_input *inputs, unsigned count,
                           struct kcp_optix_build_sizes *sizes);
  int (*build_structure)(kcp_optix_context context, cudaStream_t stream,
                         const struct kcp_optix_build_options *options,
                         const struct kcp_optix_build_input *inputs, unsigned count,
                         kcp_optix_address scratch, size_t scratch_bytes, kcp_optix_address output,
                         size_t output_bytes, kcp_optix_structure *structure,
                         const struct kcp_optix_emitted *emitted, unsigned emitted_count);
  kcp_optix_unused unused_26[3];
  int (*compact_structure)(kcp_optix_context context, cudaStream_t stream, kcp_optix_structure from,
                           kcp_optix_address output, size_t output_bytes,
                           kcp_optix_structure *structure);
  kcp_optix_unused unused_30[8];
  int (*pack_record_header)(kcp_optix_group group, void *header);
  int (*launch)(kcp_optix_pipeline pipeline, cudaStream_t stream, kcp_optix_address parameters,
                size_t parameter_bytes, const struct kcp_optix_binding_table *table, unsigned width,
                unsigned height, unsigned depth);
  kcp_optix_unused unused_40[8];
};

/* The library's one symbol, "optixQueryFunctionTable". */
typedef int (*kcp_optix_query_table)(int abi, unsigned option_count, const int *options,
                                     const void **values, void *table, size_t table_bytes);

#define KCP_OPTIX_SIZE(TYPE, BYTES) static_assert(sizeof(struct TYPE) == (BYTES), #TYPE)
#define KCP_OPTIX_AT(TYPE, FIELD, BYTES) \
  static_assert(offsetof(struct TYPE, FIELD) == (BYTES), #TYPE "." #FIELD)
#define KCP_OPTIX_PLACE(FIELD, PLACE) KCP_OPTIX_AT(kcp_optix_table, FIELD, (PLACE) * sizeof(void *))

KCP_OPTIX_SIZE(kcp_optix_context_options, 24);
KCP_OPTIX_AT(kcp_optix_context_options, log_level, 16);
KCP_OPTIX_SIZE(kcp_optix_module_options, 40);
KCP_OPTIX_AT(kcp_optix_module_options, optimisation, 4);
KCP_OPTIX_AT(kcp_optix_module_options, bound_values, 16);
KCP_OPTIX_AT(kcp_optix_module_options, payload_types, 32);
KCP_OPTIX_SIZE(kcp_optix_pipeline_options, 40);
KCP_OPTIX_AT(kcp_optix_pipeline_options, graph, 4);
KCP_OPTIX_AT(kcp_optix_pipeline_options, payload_values, 8);
KCP_OPTIX_AT(kcp_optix_pipeline_options, exceptions, 16);
KCP_OPTIX_AT(kcp_optix_pipeline_options, launch_name, 24);
KCP_OPTIX_AT(kcp_optix_pipeline_options, primitive_types, 32);
KCP_OPTIX_SIZE(kcp_optix_link_options, 4);
KCP_OPTIX_SIZE(kcp_optix_program, 16);
KCP_OPTIX_SIZE(kcp_optix_group_description, 56);
KCP_OPTIX_AT(kcp_optix_group_description, single, 8);
KCP_OPTIX_AT(kcp_optix_group_description, hit.intersection, 40);
KCP_OPTIX_SIZE(kcp_optix_group_options, 8);
KCP_OPTIX_SIZE(kcp_optix_binding_table, 64);
KCP_OPTIX_AT(kcp_optix_binding_table, miss_stride, 24);
KCP_OPTIX_AT(kcp_optix_binding_table, hit, 32);
KCP_OPTIX_AT(kcp_optix_binding_table, hit_count, 44);
KCP_OPTIX_SIZE(kcp_optix_boxes, 56);
KCP_OPTIX_AT(kcp_optix_boxes, primitives, 8);
KCP_OPTIX_AT(kcp_optix_boxes, flags, 16);
KCP_OPTIX_AT(kcp_optix_boxes, records, 24);
KCP_OPTIX_AT(kcp_optix_boxes, first_number, 48);
KCP_OPTIX_SIZE(kcp_optix_build_input, 1032);
KCP_OPTIX_AT(kcp_optix_build_input, boxes, 8);
KCP_OPTIX_SIZE(kcp_optix_build_options, 20);
KCP_OPTIX_SIZE(kcp_optix_build_sizes, 24);
KCP_OPTIX_SIZE(kcp_optix_emitted, 16);
KCP_OPTIX_SIZE(kcp_optix_table, 48 * sizeof(void *));
KCP_OPTIX_PLACE(create_context, 2);
KCP_OPTIX_PLACE(get_property, 4);
KCP_OPTIX_PLACE(create_module, 12);
KCP_OPTIX_PLACE(destroy_module, 15);
KCP_OPTIX_PLACE(create_groups, 18);
KCP_OPTIX_PLACE(create_pipeline, 21);
KCP_OPTIX_PLACE(destroy_pipeline, 22);
KCP_OPTIX_PLACE(measure_structure, 24);
KCP_OPTIX_PLACE(build_structure, 25);
KCP_OPTIX_PLACE(compact_structure, 29);
KCP_OPTIX_PLACE(pack_record_header, 38);
KCP_OPTIX_PLACE(launch, 39);

#endif

/* Backends: where algorithms run. A backend that is not built in, or whose device is not there,
 * says why when probed; that is not an error for --device auto. */
#ifndef KCP_BACKEND_H
#define KCP_BACKEND_H

#include <stdint.h>

#include "kcp/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum kcp_backend_kind { KCP_BACKEND_CPU = 1, KCP_BACKEND_CUDA = 2 }; /* bits of a set */

struct kcp_device_info {
  char name[128];         /* "AMD EPYC", "NVIDIA H200" */
  char driver[64];        /* CUDA driver version; "" on the CPU */
  int index;              /* CUDA device number; 0 on the CPU */
  uint32_t units;         /* multiprocessors; threads on the CPU */
  uint64_t thread_slots;  /* threads that fill the device: resident threads; cores on the CPU */
  uint64_t memory_bytes;  /* in all */
  uint64_t free_bytes;    /* usable now */
  double startup_seconds; /* what opening the device took (CUDA context) */
};

struct kcp_pair_engine;      /* pair_search.h */
struct kcp_threshold_engine; /* threshold_search.h */
struct kcp_top_k_engine;     /* top_k.h */
struct kcp_transfer_engine;  /* floor.h */
struct kcp_influence_engine; /* influence.h */
struct kcp_range_engine;     /* range_join.h */

struct kcp_backend {
  enum kcp_backend_kind kind;
  const char *name; /* "cpu", "cuda" */
  /* Opens device number `index` and fills `info`. KCP_UNAVAILABLE with the reason. */
  enum kcp_status (*probe)(int index, struct kcp_device_info *info, struct kcp_error *error);
  const struct kcp_pair_engine *pairs; /* k closest pairs with candidate lists */
  const struct kcp_threshold_engine
      *threshold;                       /* k closest pairs with one threshold; may be NULL */
  const struct kcp_top_k_engine *top_k; /* first values of an array */
  const struct kcp_influence_engine *influence; /* common influence regions */
  const struct kcp_range_engine *const
      *range_joins; /* by enum kcp_range_method, NULL where it has none; or NULL */
  const struct kcp_transfer_engine *transfer; /* bytes to the device, to measure the floor */
};

const struct kcp_backend *kcp_backend_cpu(void);
/* Host memory that can be allocated without swapping. */
uint64_t kcp_host_free_bytes(void);
/* Also there when the program was built without CUDA: its probe then says so. */
const struct kcp_backend *kcp_backend_cuda(void);

#ifdef __cplusplus
}
#endif
#endif

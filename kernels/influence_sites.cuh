/* Sites of a set on the device, one row a group (kcp_site_groups). */
#ifndef KCP_KERNELS_INFLUENCE_SITES_CUH
#define KCP_KERNELS_INFLUENCE_SITES_CUH

#include "device.cuh"
#include "kcp/influence.h"

static const uint32_t kcp_not_selected = UINT32_MAX;

/* Columns of `count` elements. */
struct kcp_device_sites {
  uint32_t count;
  const double *x, *y, *squared_weight, *inverse_square;
  const uint32_t *multiplicity;
  const uint32_t *number;   /* place among the selected groups, or kcp_not_selected */
  const uint32_t *selected; /* the selected groups */
  uint32_t selected_count;
};

/* Takes memory for a set. */
enum kcp_status kcp_device_sites_create(const struct kcp_site_groups *groups,
                                        struct kcp_device_memory *memory,
                                        struct kcp_device_sites *sites, struct kcp_error *error);
/* Copies it there; *bytes grows by what was copied. */
enum kcp_status kcp_device_sites_upload(const struct kcp_site_groups *groups,
                                        const struct kcp_device_sites *sites, uint64_t *bytes,
                                        cudaStream_t stream, struct kcp_error *error);

#endif

/* The binary32 copy of a reference partition for the filter of list_kernels.cuh. */
#ifndef KCP_KERNELS_FRAME_CUH
#define KCP_KERNELS_FRAME_CUH

#include "device.cuh"
#include "list_kernels.cuh"

/* Finds centre and scale of `count` >= 1 points of 2 or 3 dimensions and packs them as float4
 * relative to it. `box` is scratch of 6 words. Reads the columns twice, writes 16 bytes a point. */
enum kcp_status kcp_frame_pack(uint32_t count, uint32_t dimensions, const double *columns,
                               uint64_t stride, unsigned long long *box, struct kcp_frame *frame,
                               float4 *packed, cudaStream_t stream, struct kcp_error *error);

#endif

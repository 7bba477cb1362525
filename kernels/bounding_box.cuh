/* The bounding box of columns of points, found on the device. */
#ifndef KCP_KERNELS_BOUNDING_BOX_CUH
#define KCP_KERNELS_BOUNDING_BOX_CUH

#include <cuda_runtime.h>

#include <cstdint>

#include "kcp/ordered_bits.h"

static const int kcp_box_axes = 3;
static const int kcp_box_words = 2 * kcp_box_axes; /* minima, then maxima, as ordered bits */

/* Which columns a box is taken of. */
struct kcp_box_columns {
  uint32_t axes;
  uint32_t axis[kcp_box_axes];
};

/* Launch with kcp_box_words threads. */
__global__ static void kcp_box_clear(unsigned long long *box) {
  box[threadIdx.x] = threadIdx.x < kcp_box_axes ? ~0ull : 0ull;
}

/* Any geometry of whole warps; reads each column once. */
__global__ static void kcp_box_grow(uint32_t count, struct kcp_box_columns which,
                                    const double *columns, uint64_t stride,
                                    unsigned long long *box) {
  for (uint32_t j = 0; j < which.axes; ++j) {
    const double *column = columns + which.axis[j] * stride;
    unsigned long long low = ~0ull, high = 0;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += gridDim.x * blockDim.x) {
      unsigned long long bits = kcp_ordered_bits(column[i]);
      low = min(low, bits);
      high = max(high, bits);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
      low = min(low, __shfl_down_sync(0xffffffffu, low, offset));
      high = max(high, __shfl_down_sync(0xffffffffu, high, offset));
    }
    if (threadIdx.x % 32 == 0) {
      atomicMin(&box[j], low);
      atomicMax(&box[kcp_box_axes + j], high);
    }
  }
}

#endif

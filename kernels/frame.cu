#include "frame.cuh"

static const int threads = 256;

/* Unsigned integers in the order of the doubles, so that atomics find extremes. */
__device__ static unsigned long long ordered_bits(double value) {
  unsigned long long bits = (unsigned long long)__double_as_longlong(value);
  return bits >> 63 ? ~bits : bits | 0x8000000000000000ull;
}

__device__ static double from_ordered_bits(unsigned long long bits) {
  return __longlong_as_double((long long)(bits >> 63 ? bits & 0x7fffffffffffffffull : ~bits));
}

__global__ static void clear_box(unsigned long long *box) {
  box[threadIdx.x] = threadIdx.x < 3 ? ~0ull : 0ull; /* three minima, three maxima */
}

__global__ static void grow_box(uint32_t count, uint32_t dimensions, const double *columns,
                                uint64_t stride, unsigned long long *box) {
  for (uint32_t j = 0; j < dimensions; ++j) {
    unsigned long long low = ~0ull, high = 0;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += gridDim.x * blockDim.x) {
      unsigned long long bits = ordered_bits(columns[j * stride + i]);
      low = min(low, bits);
      high = max(high, bits);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
      low = min(low, __shfl_down_sync(kcp_full_warp, low, offset));
      high = max(high, __shfl_down_sync(kcp_full_warp, high, offset));
    }
    if (threadIdx.x % 32 == 0) {
      atomicMin(&box[j], low);
      atomicMax(&box[3 + j], high);
    }
  }
}

__global__ static void make_frame(uint32_t dimensions, const unsigned long long *box,
                                  struct kcp_frame *frame) {
  double half[3] = {0, 0, 0}, largest = 0;
  for (uint32_t j = 0; j < 3; ++j) {
    frame->origin[j] = 0;
    if (j >= dimensions) continue;
    double low = from_ordered_bits(box[j]), high = from_ordered_bits(box[3 + j]);
    frame->origin[j] = low / 2 + high / 2;
    half[j] = fmax(high - frame->origin[j], frame->origin[j] - low);
    largest = fmax(largest, half[j]);
  }
  frame->scale = 1;
  if (largest > 0) {
    int exponent = ilogb(largest);
    frame->scale = scalbn(1.0, max(-1000, min(1000, -exponent)));
  }
  frame->extent = (half[0] + half[1] + half[2]) * frame->scale;
}

__global__ static void pack(uint32_t count, uint32_t dimensions, const double *columns,
                            uint64_t stride, const struct kcp_frame *frame, float4 *packed) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float4 point;
  point.x = __double2float_rn((columns[i] - frame->origin[0]) * frame->scale);
  point.y = __double2float_rn((columns[stride + i] - frame->origin[1]) * frame->scale);
  point.z = dimensions > 2
                ? __double2float_rn((columns[2 * stride + i] - frame->origin[2]) * frame->scale)
                : 0;
  point.w = 0;
  packed[i] = point;
}

enum kcp_status kcp_frame_pack(uint32_t count, uint32_t dimensions, const double *columns,
                               uint64_t stride, unsigned long long *box, struct kcp_frame *frame,
                               float4 *packed, cudaStream_t stream, struct kcp_error *error) {
  unsigned blocks = (count + threads - 1) / threads;
  clear_box<<<1, 6, 0, stream>>>(box);
  grow_box<<<min(blocks, 1024u), threads, 0, stream>>>(count, dimensions, columns, stride, box);
  make_frame<<<1, 1, 0, stream>>>(dimensions, box, frame);
  pack<<<blocks, threads, 0, stream>>>(count, dimensions, columns, stride, frame, packed);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

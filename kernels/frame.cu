#include "frame.cuh"

#include "bounding_box.cuh"

static const int threads = 256;

__global__ static void make_frame(uint32_t dimensions, const unsigned long long *box,
                                  struct kcp_frame *frame) {
  double half[3] = {0, 0, 0}, largest = 0;
  for (uint32_t j = 0; j < 3; ++j) {
    frame->origin[j] = 0;
    if (j >= dimensions) continue;
    double low = kcp_from_ordered_bits(box[j]), high = kcp_from_ordered_bits(box[kcp_box_axes + j]);
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
  struct kcp_box_columns all = {dimensions, {0, 1, 2}};
  kcp_box_clear<<<1, kcp_box_words, 0, stream>>>(box);
  kcp_box_grow<<<min(blocks, 1024u), threads, 0, stream>>>(count, all, columns, stride, box);
  make_frame<<<1, 1, 0, stream>>>(dimensions, box, frame);
  pack<<<blocks, threads, 0, stream>>>(count, dimensions, columns, stride, frame, packed);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

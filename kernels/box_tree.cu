/* Geometry: building takes a warp a node; joining a warp 32 streamed points, 4 warps a block, each
 * with a stack of 1.8 KB in shared memory.
 * Cost: the tree is 48 bytes for each 32 points and their fraction above; a descent reads 32 boxes
 * of a node at once; a leaf costs 32 ranks a point of the group. History (H200,
 * docs/results/k-cp-h200.md):
 *  1. all warps by the box around their points: gaussian 114.7M x 11.5M, k 140: 927 ms, nearly all
 * of it one warp whose sparse points enclosed the dense centre.
 *  2. warps whose points lie apart take them one by one: 25.6 ms for the whole search. */
#include "box_tree.cuh"

static const int build_threads = 256;
static const int join_threads = 128;
static const int warps_per_block = join_threads / 32;
static const uint32_t stack_entries = 32 * 6 + 32; /* a node's children at each level */
static const double group_width = 8;               /* in distances of the join */
static const unsigned full_warp = 0xffffffffu;

enum kcp_status kcp_box_tree_create(struct kcp_device_memory *memory, uint64_t points,
                                    struct kcp_box_tree *tree, struct kcp_error *error) {
  uint64_t nodes = 0, level = points > 0 ? points : 1;
  do {
    level = (level + kcp_tree_fanout - 1) / kcp_tree_fanout;
    nodes += level;
  } while (level > 1);
  tree->capacity = nodes;
  return kcp_device_array(memory, nodes * 2 * KCP_MAX_AXES, &tree->corners, "the tree", error);
}

__device__ static double *corner(const struct kcp_box_tree &tree, uint32_t axis, bool high) {
  return tree.corners + (high ? KCP_MAX_AXES + axis : axis) * tree.capacity;
}

/* One warp a node: the box of its points, or of its children in the level below. */
__global__ static void build_level(const struct kcp_box_tree tree, const struct kcp_cells axes,
                                   const struct kcp_point_set set, int level) {
  uint32_t node = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (node >= tree.count[level]) return;
  uint32_t child = node * kcp_tree_fanout + lane;
  uint32_t children = level == 0 ? set.count : tree.count[level - 1];
  for (uint32_t j = 0; j < axes.axes; ++j) {
    double low = INFINITY, high = -INFINITY;
    if (child < children) {
      if (level == 0) {
        low = high = set.columns[axes.axis[j] * set.stride + child];
      } else {
        low = corner(tree, j, false)[tree.first[level - 1] + child];
        high = corner(tree, j, true)[tree.first[level - 1] + child];
      }
    }
    for (int offset = 16; offset > 0; offset /= 2) {
      low = fmin(low, __shfl_xor_sync(full_warp, low, offset));
      high = fmax(high, __shfl_xor_sync(full_warp, high, offset));
    }
    if (lane == 0) {
      corner(tree, j, false)[tree.first[level] + node] = low;
      corner(tree, j, true)[tree.first[level] + node] = high;
    }
  }
}

enum kcp_status kcp_box_tree_build(struct kcp_box_tree *tree, const struct kcp_cells *axes,
                                   const struct kcp_point_set *set, cudaStream_t stream,
                                   struct kcp_error *error) {
  uint32_t nodes = 0, level_nodes = set->count;
  tree->level_count = 0;
  if (set->count == 0) return KCP_OK;
  do {
    level_nodes = level_nodes / kcp_tree_fanout + (level_nodes % kcp_tree_fanout != 0);
    tree->first[tree->level_count] = nodes;
    tree->count[tree->level_count++] = level_nodes;
    nodes += level_nodes;
  } while (level_nodes > 1);
  for (uint32_t level = 0; level < tree->level_count; ++level) {
    uint64_t lanes = (uint64_t)tree->count[level] * 32;
    build_level<<<(unsigned)((lanes + build_threads - 1) / build_threads), build_threads, 0,
                  stream>>>(*tree, *axes, *set, (int)level);
  }
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

struct join_arguments {
  struct kcp_box_tree tree;
  struct kcp_cells axes;
  struct kcp_join_question asked;
  double group_extent; /* a warp's points no wider apart than this descend together */
};

/* The box around the warp's streamed points, the same in all threads. */
struct warp_box {
  double low[KCP_MAX_AXES], high[KCP_MAX_AXES];
};

/* A lower bound of the rank of any point in the warp's box and any in the node's, rounding
 * included, since the axes ascend (axes.h). */
__device__ static double box_rank(const struct join_arguments &with, const struct warp_box &box,
                                  uint32_t node) {
  double rank = 0;
  for (uint32_t j = 0; j < with.axes.axes; ++j) {
    double left = corner(with.tree, j, false)[node] - box.high[j];
    double right = box.low[j] - corner(with.tree, j, true)[node];
    double gap = fmax(0.0, fmax(left, right));
    rank =
        kcp_metric_combine(with.asked.metric.kind, rank,
                           kcp_metric_term(with.asked.metric.kind, with.asked.metric.power, gap));
  }
  return rank;
}

/* Appends the pair of each thread that has one. */
__device__ static void emit(const struct kcp_pair_planes &pairs, bool has, double rank,
                            uint64_t held_record, uint64_t streamed_record) {
  unsigned emitting = __ballot_sync(full_warp, has);
  if (emitting == 0) return;
  unsigned lane = threadIdx.x % 32;
  unsigned long long base = 0;
  if (lane == 0) base = atomicAdd(pairs.counter, (unsigned long long)__popc(emitting));
  base = __shfl_sync(full_warp, base, 0);
  uint64_t place = base + __popc(emitting & ((1u << lane) - 1));
  if (!has || place >= pairs.capacity) return;
  pairs.ranks[place] = rank;
  pairs.held[place] = held_record;
  pairs.streamed[place] = streamed_record;
}

/* One pair a thread, where it has one. */
__device__ static void join_pairs(const struct join_arguments &with, bool active, uint32_t h,
                                  uint32_t q) {
  double rank = active ? kcp_rank_of_pair(with.asked, h, q) : 0;
  bool has = active && kcp_pair_belongs(with.asked, h, q, rank);
  if (__any_sync(full_warp, has))
    emit(with.asked.pairs, has, rank, kcp_set_record(with.asked.held, h),
         kcp_set_record(with.asked.streamed, q));
}

enum descent {
  BY_GROUP, /* the warp's 32 points together, each thread its own */
  BY_POINT  /* one point, the threads share its leaf */
};

__device__ static void join_leaf(const struct join_arguments &with, enum descent descent,
                                 uint32_t leaf, uint32_t q, bool active) {
  uint32_t first = leaf * kcp_tree_fanout;
  uint32_t last = min(first + kcp_tree_fanout, with.asked.held.count);
  if (descent == BY_POINT) {
    uint32_t h = first + threadIdx.x % 32;
    join_pairs(with, h < last, min(h, last - 1), q);
    return;
  }
  for (uint32_t h = first; h < last; ++h) join_pairs(with, active, h, q);
}

/* Visits the leaves within reach of the box. False once there is no more room for pairs. */
__device__ static bool descend(const struct join_arguments &with, enum descent descent,
                               const struct warp_box &box, uint2 *stack, uint32_t q, bool active) {
  uint32_t lane = threadIdx.x % 32, depth = 1;
  if (lane == 0) stack[0] = make_uint2(with.tree.level_count - 1, 0); /* level and node */
  __syncwarp();
  while (depth > 0) {
    uint2 entry = stack[--depth];
    __syncwarp();
    if (entry.x == 0) {
      if (*(volatile unsigned long long *)with.asked.pairs.counter > with.asked.pairs.capacity)
        return false;
      join_leaf(with, descent, entry.y, q, active);
      continue;
    }
    uint32_t level = entry.x - 1, child = entry.y * kcp_tree_fanout + lane;
    bool near = child < with.tree.count[level] &&
                kcp_may_belong(with.asked, box_rank(with, box, with.tree.first[level] + child));
    unsigned mask = __ballot_sync(full_warp, near);
    if (near) stack[depth + __popc(mask & ((1u << lane) - 1))] = make_uint2(level, child);
    depth += __popc(mask);
    __syncwarp();
  }
  return true;
}

__device__ static double axis_of(const struct join_arguments &with, uint32_t j, uint32_t q) {
  return with.asked.streamed.columns[with.axes.axis[j] * with.asked.streamed.stride + q];
}

__global__ static void join(const struct join_arguments with) {
  __shared__ uint2 stacks[warps_per_block][stack_entries];
  uint2 *stack = stacks[threadIdx.x / 32];
  uint32_t q = blockIdx.x * blockDim.x + threadIdx.x;
  bool active = q < with.asked.streamed.count;
  unsigned points = __ballot_sync(full_warp, active);
  if (points == 0) return;
  if (!active) q = with.asked.streamed.count - 1;
  struct warp_box box;
  bool compact = true;
  for (uint32_t j = 0; j < with.axes.axes; ++j) {
    double low = axis_of(with, j, q), high = low;
    for (int offset = 16; offset > 0; offset /= 2) {
      low = fmin(low, __shfl_xor_sync(full_warp, low, offset));
      high = fmax(high, __shfl_xor_sync(full_warp, high, offset));
    }
    box.low[j] = low;
    box.high[j] = high;
    compact = compact && high - low <= with.group_extent;
  }
  if (compact) {
    descend(with, BY_GROUP, box, stack, q, active);
    return;
  }
  for (; points != 0; points &= points - 1) {
    uint32_t one = __shfl_sync(full_warp, q, __ffs(points) - 1);
    for (uint32_t j = 0; j < with.axes.axes; ++j) box.low[j] = box.high[j] = axis_of(with, j, one);
    if (!descend(with, BY_POINT, box, stack, one, true)) return;
  }
}

enum kcp_status kcp_box_tree_join(const struct kcp_box_tree *tree, const struct kcp_cells *axes,
                                  const struct kcp_join_question *asked, cudaStream_t stream,
                                  struct kcp_error *error) {
  if (asked->held.count == 0 || asked->streamed.count == 0) return KCP_OK;
  struct join_arguments with = {};
  with.tree = *tree;
  with.axes = *axes;
  with.asked = *asked;
  with.group_extent = group_width * kcp_metric_distance(asked->metric, asked->rank);
  unsigned blocks = (asked->streamed.count + join_threads - 1) / join_threads;
  join<<<blocks, join_threads, 0, stream>>>(with);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

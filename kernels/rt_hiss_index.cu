/* Sections IV-A to IV-C of RT-HiSS on the device.
 *
 * Variances: 64 blocks a dimension, each column read once; sums of fixed parts, so that every run
 * gives the same order. kd-tree: a level is a radix sort of (node, coordinate along the node's
 * longest side), about 12 bytes a point read and written in each of 5 to 8 passes. Bounds: a warp a
 * primitive. Rows: a thread a point. */
#include <cub/device/device_partition.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "bounding_box.cuh"
#include "kcp/range_built_index.h"
#include "kcp/range_order.h"
#include "range_hunt.cuh"

static const int threads = 256;
static const int survey_blocks = 64;

static unsigned blocks_for(uint64_t count) {
  return (unsigned)((count + threads - 1) / threads);
}

/* ---- IV-A: dimensions ---- */

/* Of a part of a column: sums of differences from its first value, and extremes. */
struct column_survey {
  double sum, squares, low, high;
};

__device__ static struct column_survey both_surveys(struct column_survey a,
                                                    struct column_survey b) {
  a.sum += b.sum;
  a.squares += b.squares;
  a.low = fmin(a.low, b.low);
  a.high = fmax(a.high, b.high);
  return a;
}

/* Grid: survey_blocks x dimensions. */
__global__ static void survey_columns(const double *columns, uint64_t count,
                                      struct column_survey *parts) {
  __shared__ struct column_survey shared[threads];
  const double *column = columns + blockIdx.y * count;
  const double base = column[0];
  struct column_survey own = {0, 0, DBL_MAX, -DBL_MAX};
  for (uint64_t i = blockIdx.x * threads + threadIdx.x; i < count; i += survey_blocks * threads) {
    const double value = column[i], difference = value - base;
    own.sum += difference;
    own.squares += difference * difference;
    own.low = fmin(own.low, value);
    own.high = fmax(own.high, value);
  }
  shared[threadIdx.x] = own;
  for (int width = threads / 2; width > 0; width /= 2) {
    __syncthreads();
    if (threadIdx.x < width)
      shared[threadIdx.x] = both_surveys(shared[threadIdx.x], shared[threadIdx.x + width]);
  }
  if (threadIdx.x == 0) parts[blockIdx.y * survey_blocks + blockIdx.x] = shared[0];
}

/* What the survey of every column says, on the host. */
struct dimension_facts {
  std::vector<double> mean, variance, low, high;
};

static struct dimension_facts gather_facts(const std::vector<struct column_survey> &parts,
                                           const std::vector<double> &bases, uint64_t count) {
  const size_t dimensions = bases.size();
  struct dimension_facts facts = {std::vector<double>(dimensions), std::vector<double>(dimensions),
                                  std::vector<double>(dimensions), std::vector<double>(dimensions)};
  for (size_t j = 0; j < dimensions; ++j) {
    double sum = 0, squares = 0, low = DBL_MAX, high = -DBL_MAX;
    for (int block = 0; block < survey_blocks; ++block) {
      const struct column_survey &part = parts[j * survey_blocks + block];
      sum += part.sum;
      squares += part.squares;
      low = fmin(low, part.low);
      high = fmax(high, part.high);
    }
    const double shift = sum / (double)count;
    const double variance = squares / (double)count - shift * shift;
    const double mean = bases[j] + shift;
    facts.mean[j] = isfinite(mean) ? mean : 0;
    facts.variance[j] = isnan(variance) ? INFINITY : fmax(variance, 0);
    facts.low[j] = low;
    facts.high[j] = high;
  }
  return facts;
}

enum kcp_status kcp_range_order_dimensions(struct kcp_range_join *join,
                                           enum kcp_range_reorder reorder,
                                           struct kcp_error *error) {
  const uint32_t dimensions = join->plan.dimensions;
  const uint64_t count = join->points.count;
  struct column_survey *parts;
  uint32_t *device_order;
  double *device_centre;
  std::vector<struct column_survey> host_parts((size_t)survey_blocks * dimensions);
  std::vector<double> bases(dimensions), centre(dimensions);
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_PARTIAL, host_parts.size(), &parts, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_ORDER, dimensions, &device_order, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_CENTRE, dimensions, &device_centre, error));
  for (uint32_t first = 0; first < dimensions; first += 65535) { /* the most of a grid */
    const uint32_t here = dimensions - first < 65535 ? dimensions - first : 65535;
    survey_columns<<<dim3(survey_blocks, here), threads, 0, join->stream>>>(
        join->points.columns + first * count, count, parts + (uint64_t)first * survey_blocks);
    KCP_CUDA_TRY(cudaGetLastError());
  }
  KCP_CUDA_TRY(cudaMemcpyAsync(host_parts.data(), parts, host_parts.size() * sizeof *parts,
                               cudaMemcpyDeviceToHost, join->stream));
  KCP_CUDA_TRY(cudaMemcpy2DAsync(bases.data(), sizeof(double), join->points.columns,
                                 count * sizeof(double), sizeof(double), dimensions,
                                 cudaMemcpyDeviceToHost, join->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  const struct dimension_facts facts = gather_facts(host_parts, bases, count);
  kcp_range_order(facts.variance.data(), dimensions, reorder, join->order);
  join->frame = kcp_range_frame_make(dimensions, join->order, facts.low.data(), facts.high.data());
  for (uint32_t j = 0; j < dimensions; ++j) centre[j] = facts.mean[join->order[j]];
  KCP_CUDA_TRY(cudaMemcpyAsync(device_order, join->order, dimensions * sizeof *device_order,
                               cudaMemcpyHostToDevice, join->stream));
  KCP_CUDA_TRY(cudaMemcpyAsync(device_centre, centre.data(), dimensions * sizeof *device_centre,
                               cudaMemcpyHostToDevice, join->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  return KCP_OK;
}

/* ---- IV-B: the kd-tree ---- */

__device__ static uint32_t ordered_float(float value) {
  const uint32_t bits = __float_as_uint(value);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

__device__ static float from_ordered_float(uint32_t bits) {
  return __uint_as_float(bits >> 31 ? bits & 0x7fffffffu : ~bits);
}

/* The node of a level that holds place p of n; the inverse of kcp_kd_first. */
__device__ static uint32_t node_of(uint64_t n, uint32_t level, uint64_t p) {
  return (uint32_t)((((p + 1) << level) - 1) / n);
}

/* Likewise for units of several points. */
__device__ static uint32_t node_at(const struct kcp_grouping &grouping, uint32_t level,
                                   uint64_t p) {
  const uint64_t units = (grouping.members + grouping.unit - 1) / grouping.unit;
  return node_of(units, level, p / grouping.unit);
}

/* Points along the first axes of the order, near the size of the frame. */
__global__ static void place_on_axes(uint32_t axis_count, const uint32_t *order,
                                     const double *centre, double scale, const double *columns,
                                     uint64_t count, float *axes, uint32_t *places) {
  const uint64_t i = (uint64_t)blockIdx.x * threads + threadIdx.x;
  if (i >= count) return;
  for (uint32_t j = 0; j < axis_count; ++j)
    axes[j * count + i] = (float)((columns[order[j] * count + i] - centre[j]) * scale);
  places[i] = (uint32_t)i;
}

__global__ static void clear_extents(uint32_t nodes, uint32_t axis_count, uint32_t *extents) {
  const uint64_t i = (uint64_t)blockIdx.x * threads + threadIdx.x;
  if (i < (uint64_t)nodes * 2 * axis_count)
    extents[i] = i % (2 * axis_count) < axis_count ? ~0u : 0u;
}

/* extents[node * 2 axes ..]: the least along each axis, then the greatest, as ordered bits. */
__global__ static void grow_extents(struct kcp_grouping grouping, uint32_t level, const float *axes,
                                    const uint32_t *places, uint32_t *extents) {
  const uint64_t p = (uint64_t)blockIdx.x * threads + threadIdx.x;
  const uint64_t count = grouping.count, seen = p < grouping.members ? p : grouping.members - 1;
  const uint32_t axis_count = grouping.axis_count;
  const uint32_t node = node_at(grouping, level, seen), place = places[seen];
  const bool together = __all_sync(~0u, node == __shfl_sync(~0u, node, 0));
  for (uint32_t j = 0; j < axis_count; ++j) {
    const uint32_t bits = ordered_float(axes[j * count + place]);
    uint32_t *least = &extents[(uint64_t)node * 2 * axis_count + j];
    if (!together) {
      atomicMin(least, bits);
      atomicMax(least + axis_count, bits);
      continue;
    }
    uint32_t low = bits, high = bits;
    for (int offset = 16; offset > 0; offset /= 2) {
      low = min(low, __shfl_xor_sync(~0u, low, offset));
      high = max(high, __shfl_xor_sync(~0u, high, offset));
    }
    if (threadIdx.x % 32 == 0) {
      atomicMin(least, low);
      atomicMax(least + axis_count, high);
    }
  }
}

__global__ static void make_keys(struct kcp_grouping grouping, uint32_t level, const float *axes,
                                 const uint32_t *places, const uint32_t *extents, uint64_t *keys) {
  const uint64_t p = (uint64_t)blockIdx.x * threads + threadIdx.x;
  if (p >= grouping.members) return;
  const uint64_t count = grouping.count;
  const uint32_t node = node_at(grouping, level, p), axis_count = grouping.axis_count;
  const uint32_t *least = &extents[(uint64_t)node * 2 * axis_count];
  uint32_t longest = 0;
  float longest_extent = -1;
  for (uint32_t j = 0; j < axis_count; ++j) {
    const float extent = from_ordered_float(least[axis_count + j]) - from_ordered_float(least[j]);
    if (extent <= longest_extent) continue;
    longest_extent = extent;
    longest = j;
  }
  keys[p] = (uint64_t)node << 32 | ordered_float(axes[longest * count + places[p]]);
}

static enum kcp_status sort_pairs(struct kcp_range_join *join, const uint64_t *keys,
                                  uint64_t *sorted_keys, const uint32_t *values,
                                  uint32_t *sorted_values, uint64_t count, int bits,
                                  struct kcp_error *error) {
  size_t bytes = 0;
  void *scratch;
  KCP_CUDA_TRY(cub::DeviceRadixSort::SortPairs(NULL, bytes, keys, sorted_keys, values,
                                               sorted_values, (int64_t)count, 0, bits,
                                               join->stream));
  KCP_TRY(kcp_range_scratch(join, bytes, &scratch, error));
  KCP_CUDA_TRY(cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, sorted_keys, values,
                                               sorted_values, (int64_t)count, 0, bits,
                                               join->stream));
  return KCP_OK;
}

/* Members before the others, in *places and *spare. */
static enum kcp_status part_members(struct kcp_range_join *join,
                                    const struct kcp_grouping *grouping, uint32_t *places,
                                    uint32_t *spare, struct kcp_error *error) {
  size_t bytes = 0;
  void *scratch;
  uint32_t *selected;
  const int64_t count = (int64_t)grouping->count;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_PARTIAL, 1, &selected, error));
  KCP_CUDA_TRY(cub::DevicePartition::Flagged(NULL, bytes, places, grouping->is_member, spare,
                                             selected, count, join->stream));
  KCP_TRY(kcp_range_scratch(join, bytes, &scratch, error));
  KCP_CUDA_TRY(cub::DevicePartition::Flagged(scratch, bytes, places, grouping->is_member, spare,
                                             selected, count, join->stream));
  KCP_CUDA_TRY(cudaMemcpyAsync(places, spare, grouping->count * sizeof *places,
                               cudaMemcpyDeviceToDevice, join->stream));
  return KCP_OK;
}

enum kcp_status kcp_range_group(struct kcp_range_join *join, const struct kcp_grouping *grouping,
                                uint32_t **grouped, struct kcp_error *error) {
  const uint64_t count = grouping->count;
  const unsigned blocks = blocks_for(grouping->members);
  const uint32_t axis_count = grouping->axis_count;
  float *axes;
  uint32_t *places, *sorted, *extents;
  uint64_t *keys, *sorted_keys;
  KCP_TRY(kcp_range_room(join, grouping->axes, count * axis_count, &axes, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_KEYS, count, &keys, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_SORTED_KEYS, count, &sorted_keys, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_VALUES, count, &places, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_QUERY_PLACES, count, &sorted, error));
  place_on_axes<<<blocks_for(count), threads, 0, join->stream>>>(
      axis_count, kcp_range_array<uint32_t>(join, KCP_BUFFER_ORDER),
      kcp_range_array<double>(join, KCP_BUFFER_CENTRE), join->frame.scale, grouping->columns, count,
      axes, places);
  KCP_CUDA_TRY(cudaGetLastError());
  if (grouping->members < count) KCP_TRY(part_members(join, grouping, places, sorted, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_PARTIAL,
                         (UINT64_C(2) * axis_count) << (grouping->height - 1), &extents, error));
  for (uint32_t level = 0; level + 1 < grouping->height; ++level) {
    const uint32_t nodes = 1u << level;
    clear_extents<<<blocks_for(nodes * 2ull * axis_count), threads, 0, join->stream>>>(
        nodes, axis_count, extents);
    grow_extents<<<blocks, threads, 0, join->stream>>>(*grouping, level, axes, places, extents);
    make_keys<<<blocks, threads, 0, join->stream>>>(*grouping, level, axes, places, extents, keys);
    KCP_CUDA_TRY(cudaGetLastError());
    KCP_TRY(sort_pairs(join, keys, sorted_keys, places, sorted, grouping->members, 32 + (int)level,
                       error));
    uint32_t *kept = places;
    places = sorted;
    sorted = kept;
  }
  *grouped = places;
  return KCP_OK;
}

/* Places of points, those of a leaf together, into *grouped (one of two buffers). */
static enum kcp_status group_points(struct kcp_range_join *join, uint32_t **grouped,
                                    struct kcp_error *error) {
  struct kcp_grouping grouping = {};
  grouping.columns = join->points.columns;
  grouping.count = grouping.members = join->points.count;
  grouping.axes = KCP_BUFFER_ROWS;
  grouping.unit = 1;
  grouping.height = join->height;
  grouping.axis_count = kcp_group_axes(join->plan.dimensions, join->plan.options.bound);
  return kcp_range_group(join, &grouping, grouped, error);
}

/* ---- IV-B: primitives ---- */

/* Where leaf i begins. Of a tree with as many leaves as points or more, those with a point are the
 * points. */
__device__ static uint64_t leaf_first(uint64_t count, uint32_t height, uint64_t i) {
  return UINT64_C(1) << (height - 1) < count ? kcp_kd_first(count, height - 1, i) : i;
}

/* A warp a leaf. */
__global__ static void bound_leaves(struct kcp_range_frame frame, uint64_t count, uint32_t height,
                                    uint64_t primitives, const double *columns,
                                    const uint32_t *grouped, double eps, enum kcp_range_bound bound,
                                    struct kcp_primitive_box *boxes, uint64_t *keys,
                                    uint32_t *numbers) {
  const uint64_t leaf = ((uint64_t)blockIdx.x * threads + threadIdx.x) / 32;
  const uint32_t lane = threadIdx.x % 32;
  if (leaf >= primitives) return;
  const uint64_t first = leaf_first(count, height, leaf),
                 last = leaf_first(count, height, leaf + 1);
  double low[KCP_RANGE_AXES] = {0}, high[KCP_RANGE_AXES] = {0}, centre[KCP_RANGE_AXES] = {0};
  for (uint32_t j = 0; j < frame.axes; ++j) {
    const double *column = columns + frame.dimension[j] * count;
    low[j] = high[j] = column[grouped[first]];
    for (uint64_t i = first + lane; i < last; i += 32) {
      low[j] = fmin(low[j], column[grouped[i]]);
      high[j] = fmax(high[j], column[grouped[i]]);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
      low[j] = fmin(low[j], __shfl_xor_sync(~0u, low[j], offset));
      high[j] = fmax(high[j], __shfl_xor_sync(~0u, high[j], offset));
    }
    centre[j] = low[j] + (high[j] - low[j]) / 2;
  }
  double square = 0;
  for (uint64_t i = first + lane; i < last; i += 32) {
    double sum = 0;
    for (uint32_t j = 0; j < frame.axes; ++j) {
      const double difference = columns[frame.dimension[j] * count + grouped[i]] - centre[j];
      sum += difference * difference;
    }
    square = fmax(square, sum);
  }
  for (int offset = 16; offset > 0; offset /= 2)
    square = fmax(square, __shfl_xor_sync(~0u, square, offset));
  if (lane != 0) return;
  boxes[leaf] = kcp_primitive_box_of(&frame, low, high, sqrt(square), eps, bound);
  keys[leaf] = kcp_box_morton_key(&boxes[leaf]);
  numbers[leaf] = (uint32_t)leaf;
}

/* ---- IV-C: order ---- */

__global__ static void measure_leaves(uint64_t count, uint32_t height, uint64_t primitives,
                                      const uint32_t *order, uint32_t *sizes) {
  const uint64_t i = (uint64_t)blockIdx.x * threads + threadIdx.x;
  if (i > primitives) return;
  sizes[i] = i < primitives ? (uint32_t)(leaf_first(count, height, order[i] + 1ull) -
                                         leaf_first(count, height, order[i]))
                            : 0;
}

/* A warp a primitive: its box, and the places of its points. */
__global__ static void move_leaves(uint64_t count, uint32_t height, uint64_t primitives,
                                   const uint32_t *order, const uint32_t *firsts,
                                   const uint32_t *grouped, const struct kcp_primitive_box *boxes,
                                   uint32_t *places, struct kcp_primitive_box *moved_boxes) {
  const uint64_t primitive = ((uint64_t)blockIdx.x * threads + threadIdx.x) / 32;
  const uint32_t lane = threadIdx.x % 32;
  if (primitive >= primitives) return;
  const uint64_t from = leaf_first(count, height, order[primitive]);
  const uint32_t to = firsts[primitive], size = firsts[primitive + 1] - to;
  for (uint32_t i = lane; i < size; i += 32) places[to + i] = grouped[from + i];
  if (lane == 0) moved_boxes[primitive] = boxes[order[primitive]];
}

static enum kcp_status scan_sizes(struct kcp_range_join *join, uint32_t *sizes, uint64_t count,
                                  struct kcp_error *error) {
  size_t bytes = 0;
  void *scratch;
  KCP_CUDA_TRY(
      cub::DeviceScan::ExclusiveSum(NULL, bytes, sizes, sizes, (int64_t)count, join->stream));
  KCP_TRY(kcp_range_scratch(join, bytes, &scratch, error));
  KCP_CUDA_TRY(
      cub::DeviceScan::ExclusiveSum(scratch, bytes, sizes, sizes, (int64_t)count, join->stream));
  return KCP_OK;
}

/* The index over the primitives, built on the host, where they are few, and moved to the device. */
static enum kcp_status place_index(struct kcp_range_join *join, const struct kcp_built_index *built,
                                   struct kcp_error *error) {
  struct kcp_primitive_box *boxes;
  join->index = built->index;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_BOXES, built->box_count, &boxes, error));
  KCP_CUDA_TRY(cudaMemcpyAsync(boxes, built->boxes, built->box_count * sizeof *boxes,
                               cudaMemcpyHostToDevice, join->stream));
  join->index.bvh.boxes = join->index.grid.boxes = boxes;
  if (built->index.kind == KCP_RANGE_INDEX_GRID) {
    const uint64_t side = built->index.grid.side, cells = side * side * side;
    uint32_t *cell_firsts, *lists;
    KCP_TRY(kcp_range_room(join, KCP_BUFFER_CELL_FIRSTS, cells + 1, &cell_firsts, error));
    KCP_TRY(kcp_range_room(join, KCP_BUFFER_CELL_LISTS, built->entry_count, &lists, error));
    KCP_CUDA_TRY(cudaMemcpyAsync(cell_firsts, built->firsts, (cells + 1) * sizeof *cell_firsts,
                                 cudaMemcpyHostToDevice, join->stream));
    KCP_CUDA_TRY(cudaMemcpyAsync(lists, built->primitives, built->entry_count * sizeof *lists,
                                 cudaMemcpyHostToDevice, join->stream));
    join->index.grid.firsts = cell_firsts;
    join->index.grid.primitives = lists;
  }
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  return KCP_OK;
}

static enum kcp_status build_index(struct kcp_range_join *join,
                                   const struct kcp_primitive_box *device_boxes,
                                   struct kcp_error *error) {
  if (join->optix != NULL) return kcp_rays_build(join, device_boxes, error);
  const uint64_t primitives = join->primitive_count;
  std::vector<struct kcp_primitive_box> boxes(primitives);
  struct kcp_built_index built;
  const enum kcp_range_index kind =
      join->plan.options.index == KCP_RANGE_INDEX_GRID ? KCP_RANGE_INDEX_GRID : KCP_RANGE_INDEX_BVH;
  KCP_CUDA_TRY(cudaMemcpyAsync(boxes.data(), device_boxes, primitives * sizeof *device_boxes,
                               cudaMemcpyDeviceToHost, join->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  enum kcp_status status = kcp_built_index_create(kind, boxes.data(), primitives, &built, error);
  if (status == KCP_OK) status = place_index(join, &built, error);
  kcp_built_index_free(&built);
  return status;
}

/* Primitives in Morton order with their points; their boxes into *boxes (device). */
static enum kcp_status rearrange(struct kcp_range_join *join, const uint32_t *grouped,
                                 const struct kcp_primitive_box *leaf_boxes, const uint64_t *keys,
                                 const uint32_t *numbers, struct kcp_primitive_box *boxes,
                                 struct kcp_error *error) {
  const uint64_t primitives = join->primitive_count, count = join->points.count;
  uint64_t *sorted_keys;
  uint32_t *order, *firsts, *places;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_SORTED_KEYS, primitives, &sorted_keys, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_ENTRIES, primitives, &order, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_FIRSTS, primitives + 1, &firsts, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_PLACES, count, &places, error));
  KCP_TRY(sort_pairs(join, keys, sorted_keys, numbers, order, primitives, 64, error));
  measure_leaves<<<blocks_for(primitives + 1), threads, 0, join->stream>>>(
      count, join->height, primitives, order, firsts);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_TRY(scan_sizes(join, firsts, primitives + 1, error));
  move_leaves<<<blocks_for(primitives * 32), threads, 0, join->stream>>>(
      count, join->height, primitives, order, firsts, grouped, leaf_boxes, places, boxes);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cudaMemcpyAsync(join->firsts, firsts, (primitives + 1) * sizeof *firsts,
                               cudaMemcpyDeviceToHost, join->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  join->points.places = places;
  join->largest_primitive = 0;
  for (uint64_t i = 0; i < primitives; ++i)
    if (join->firsts[i + 1] - join->firsts[i] > join->largest_primitive)
      join->largest_primitive = join->firsts[i + 1] - join->firsts[i];
  return KCP_OK;
}

static enum kcp_status reserve_primitives(struct kcp_range_join *join, struct kcp_error *error) {
  const uint64_t count = join->points.count, leaves = UINT64_C(1) << (join->height - 1);
  join->primitive_count = leaves < count ? leaves : count;
  free(join->firsts);
  join->firsts = (uint32_t *)malloc((join->primitive_count + 1) * sizeof *join->firsts);
  if (join->firsts != NULL) return KCP_OK;
  return kcp_out_of_memory(error, "primitives", 4 * join->primitive_count);
}

template <typename T>
static enum kcp_status make_bounds(struct kcp_range_join *join, struct kcp_error *error);

enum kcp_status kcp_rt_hiss_build(struct kcp_range_join *join, struct kcp_range_work *work,
                                  struct kcp_error *error) {
  const uint64_t count = join->points.count;
  double started = kcp_now();
  uint32_t *grouped = NULL, *numbers;
  uint64_t *keys;
  struct kcp_primitive_box *leaf_boxes, *boxes;
  KCP_TRY(kcp_range_order_dimensions(join, join->plan.options.reorder, error));
  KCP_TRY(kcp_range_lap(join, &started, &work->phase_s[KCP_RANGE_PHASE_REORDER], error));

  join->height = kcp_kd_height(count, join->plan.options.kd_height);
  KCP_TRY(reserve_primitives(join, error));
  KCP_TRY(group_points(join, &grouped, error));
  KCP_TRY(kcp_range_lap(join, &started, &work->phase_s[KCP_RANGE_PHASE_KD_TREE], error));

  const uint64_t primitives = join->primitive_count;
  work->primitives += primitives;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_KEYS, primitives, &keys, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_MET, primitives, &numbers, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_MASKS, primitives, &leaf_boxes, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_NEIGHBOURS, primitives, &boxes, error));
  bound_leaves<<<blocks_for(primitives * 32), threads, 0, join->stream>>>(
      join->frame, count, join->height, primitives, join->points.columns, grouped, join->plan.eps,
      join->plan.options.bound, leaf_boxes, keys, numbers);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_TRY(kcp_range_lap(join, &started, &work->phase_s[KCP_RANGE_PHASE_PRIMITIVES], error));

  KCP_TRY(rearrange(join, grouped, leaf_boxes, keys, numbers, boxes, error));
  KCP_TRY(kcp_range_make_rows(join, &join->points, KCP_BUFFER_ROWS, &join->point_norm, error));
  KCP_TRY(kcp_range_lap(join, &started, &work->phase_s[KCP_RANGE_PHASE_REARRANGE], error));

  if (join->plan.options.bound == KCP_BOUND_FULL)
    KCP_TRY(join->is_narrow ? make_bounds<float>(join, error) : make_bounds<double>(join, error));
  KCP_TRY(kcp_range_lap(join, &started, &work->phase_s[KCP_RANGE_PHASE_PRIMITIVES], error));

  KCP_TRY(build_index(join, boxes, error));
  return kcp_range_lap(join, &started, &work->phase_s[KCP_RANGE_PHASE_INDEX], error);
}

/* ---- rows ---- */

template <typename T>
__global__ static void fill_rows(uint64_t count, uint32_t dimensions, const double *columns,
                                 const uint32_t *places, const uint32_t *order,
                                 const double *centre, double scale, T *rows,
                                 unsigned long long *largest) {
  const uint64_t i = (uint64_t)blockIdx.x * threads + threadIdx.x;
  double square = 0;
  if (i < count) {
    const uint64_t place = places[i];
    for (uint32_t j = 0; j < dimensions; ++j) {
      const double value = columns[order[j] * count + place];
      const T moved = centre != NULL ? (T)((value - centre[j]) * scale) : (T)value;
      rows[i * dimensions + j] = moved;
      square += (double)moved * (double)moved;
    }
  }
  /* Not negative, so that their bits are in their order; NaN comes last. */
  unsigned long long bits = kcp_ordered_bits(fabs(square));
  for (int offset = 16; offset > 0; offset /= 2) {
    const unsigned long long other = __shfl_down_sync(~0u, bits, offset);
    bits = bits > other ? bits : other;
  }
  if (threadIdx.x % 32 == 0) atomicMax(largest, bits);
}

template <typename T>
static enum kcp_status make_rows_of(struct kcp_range_join *join, struct kcp_device_points *points,
                                    enum kcp_range_buffer which, bool moves, double *norm,
                                    struct kcp_error *error) {
  T *rows;
  unsigned long long *largest, bits;
  KCP_TRY(kcp_range_room(join, which, points->count * join->plan.dimensions, &rows, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_PARTIAL, 1, &largest, error));
  KCP_CUDA_TRY(cudaMemsetAsync(largest, 0, sizeof *largest, join->stream));
  fill_rows<T><<<blocks_for(points->count), threads, 0, join->stream>>>(
      points->count, join->plan.dimensions, points->columns, points->places,
      kcp_range_array<uint32_t>(join, KCP_BUFFER_ORDER),
      moves ? kcp_range_array<double>(join, KCP_BUFFER_CENTRE) : NULL, join->narrow_scale, rows,
      largest);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cudaMemcpyAsync(&bits, largest, sizeof bits, cudaMemcpyDeviceToHost, join->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  points->rows = rows;
  *norm = sqrt(kcp_from_ordered_bits(bits)) * (1 + 0x1p-20);
  if (isnan(*norm)) *norm = INFINITY;
  return KCP_OK;
}

enum kcp_status kcp_range_make_rows(struct kcp_range_join *join, struct kcp_device_points *points,
                                    enum kcp_range_buffer which, double *norm,
                                    struct kcp_error *error) {
  /* D decides for both: binary32 where its rounding is little against eps. */
  if (points == &join->points) join->is_narrow = true;
  if (join->is_narrow) KCP_TRY(make_rows_of<float>(join, points, which, true, norm, error));
  if (points == &join->points)
    join->is_narrow = kcp_range_narrow_serves(join->plan.eps, join->narrow_scale, *norm);
  if (join->is_narrow) return KCP_OK;
  return make_rows_of<double>(join, points, which, false, norm, error);
}

/* ---- bounds in all dimensions (--bound full) ---- */

/* A warp a primitive, a lane a dimension. */
template <typename T>
__global__ static void bound_fully(uint64_t primitives, uint32_t dimensions, const uint32_t *firsts,
                                   const T *rows, T *bounds) {
  const uint64_t primitive = ((uint64_t)blockIdx.x * threads + threadIdx.x) / 32;
  if (primitive >= primitives) return;
  const uint32_t first = firsts[primitive], last = firsts[primitive + 1];
  for (uint32_t j = threadIdx.x % 32; j < dimensions; j += 32) {
    T low = rows[(uint64_t)first * dimensions + j], high = low;
    for (uint32_t i = first + 1; i < last; ++i) {
      const T value = rows[(uint64_t)i * dimensions + j];
      low = value < low ? value : low;
      high = value > high ? value : high;
    }
    bounds[2 * (primitive * dimensions + j)] = low;
    bounds[2 * (primitive * dimensions + j) + 1] = high;
  }
}

template <typename T>
static enum kcp_status make_bounds(struct kcp_range_join *join, struct kcp_error *error) {
  T *bounds;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_BOUNDS, 2 * join->primitive_count * join->plan.dimensions,
                         &bounds, error));
  bound_fully<T><<<blocks_for(join->primitive_count * 32), threads, 0, join->stream>>>(
      join->primitive_count, join->plan.dimensions,
      kcp_range_array<uint32_t>(join, KCP_BUFFER_FIRSTS), (const T *)join->points.rows, bounds);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

/* ---- queries ---- */

__global__ static void make_query_keys(struct kcp_range_frame frame, const double *columns,
                                       uint64_t count, uint64_t *keys, uint32_t *numbers) {
  const uint64_t i = (uint64_t)blockIdx.x * threads + threadIdx.x;
  if (i >= count) return;
  keys[i] = kcp_frame_morton_key(kcp_frame_point_of(&frame, columns, count, i));
  numbers[i] = (uint32_t)i;
}

enum kcp_status kcp_rt_hiss_sort_queries(struct kcp_range_join *join, struct kcp_error *error) {
  const uint64_t count = join->queries.count;
  uint64_t *keys, *sorted_keys;
  uint32_t *numbers, *places;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_KEYS, count, &keys, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_SORTED_KEYS, count, &sorted_keys, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_VALUES, count, &numbers, error));
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_QUERY_PLACES, count, &places, error));
  make_query_keys<<<blocks_for(count), threads, 0, join->stream>>>(
      join->frame, join->queries.columns, count, keys, numbers);
  KCP_CUDA_TRY(cudaGetLastError());
  join->queries.places = places;
  return sort_pairs(join, keys, sorted_keys, numbers, places, count, 64, error);
}

/* Search kernels of the list-based k-CP algorithms (k-CP paper, Algorithms 2 and 5).
 *
 * Geometry: block_threads threads a block (64, paper 4.1.3), one thread a candidate list; thread t
 * of T searches the query points t, t + T, t + 2T, ... with its list, so that the threads of a warp
 * work on neighbouring points when the queries are ordered by x. Memory: per list (k + 1) * 24
 * bytes, interleaved over threads (plain: in a row).
 *
 * kcp_search_tiled (L2, 2-D and 3-D; queries by x, or brute force): all threads of a warp examine
 * the same reference points, which are 16-byte loads of binary32 coordinates relative to the
 * partition's centre, 8 operations a distance; points that pass are decided in binary64. What
 * passes is queued in shared memory and inserted by all threads of the warp together.
 * kcp_search_general (any metric and dimension, any order): a thread for itself, binary64 columns.
 * kcp_search_plain (the baseline, as the pseudocode reads): records of 32 bytes in global memory, a
 * square root a distance, each thread's list in a row.
 *
 * The binary32 filter loses nothing. Let a, b be coordinates of a reference and a query point minus
 * the centre, times a power of two (exact up to 2^-53). Rounding to binary32 and subtracting err by
 * at most 2^-23 (|a| + |b|) together, so a pair within distance t has binary32 differences within
 * t + e, e = sum over coordinates of 2^-22 (A + |b|), A the largest |a|; the sum of squares adds a
 * relative 2^-21 at most, which the limit's factor covers.
 *
 * History (H200, kernels, medians; docs/results/k-cp-h200.md):
 *  1. plain, as the pseudocode reads: DBF 582 ms on 1M x 100K uniform 3-D, k 20; DSPP 63.5 ms.
 *  2. plain with D2 by x: DSPP 37.1 ms; threads of a warp walk alike, but each loads for itself.
 *  3. tiled: binary32 filter, warp-wide walk, queued insertion: DBF 47.0 ms, DSPP 6.8 ms.
 *  4. D2 by x, then y, z: bit 10 digits 1M x 100K, k 140: DSPP 95.2 to 84.9 ms; 0.2 ms more to
 * index.
 *  5. threads without a query stand at the nearest one: 1M x 500K, l 16: 302 to 18 ms; before, the
 *     last warp could start its walk at the far end of the partition. */
#ifndef KCP_KERNELS_LIST_KERNELS_CUH
#define KCP_KERNELS_LIST_KERNELS_CUH

#include "kcp/pair_search.h"
#include "kcp/subpartition.h"

/* The record of the paper (2.5). */
struct kcp_point_record {
  uint64_t id;
  double x, y, z;
};

/* Centre and scale of a reference partition for the binary32 filter. */
struct kcp_frame {
  double origin[3];
  double scale;  /* a power of two */
  double extent; /* largest |coordinate - origin| * scale, summed over the coordinates */
};

/* A partition on the device. */
struct kcp_device_points {
  const double *columns; /* dimension-major */
  uint64_t stride;
  const uint64_t *ids;
  const uint32_t *order;                  /* where each came from in the partition; NULL: as read */
  const struct kcp_point_record *records; /* for the plain kernel */
  const float4 *packed;                   /* reference only: relative to the frame */
  uint64_t first_record;
  uint32_t count;
};

struct kcp_search_arguments {
  struct kcp_device_points reference, queries;
  struct kcp_subpartition_index index;
  const struct kcp_frame *frame;
  double *list_ranks; /* planes of this slot's lists */
  uint64_t *list_id1, *list_id2;
  uint64_t list_count; /* T: lists in use; planes hold list_capacity */
  uint64_t list_capacity;
  uint64_t k;
  double rank_limit;
  uint32_t metric_power;
  enum kcp_metric_kind metric_kind;
  uint32_t dimensions; /* that differ */
  bool self;
  unsigned long long *evaluations;
};

static const int kcp_queue_length = 16; /* of a thread: points that passed the filter */
static const int kcp_run_length = 8;    /* points examined between two votes */
static const unsigned kcp_full_warp = 0xffffffffu;

__device__ static inline uint64_t kcp_record_of(const struct kcp_device_points *points,
                                                uint64_t i) {
  return points->first_record + (points->order != NULL ? points->order[i] : i);
}

__device__ static inline struct kcp_candidate_list kcp_list_of(
    const struct kcp_search_arguments *with, uint64_t number, bool interleaved) {
  struct kcp_candidate_list list;
  uint64_t offset = interleaved ? number : number * (with->k + 1);
  list.rank = with->list_ranks + offset;
  list.id1 = with->list_id1 + offset;
  list.id2 = with->list_id2 + offset;
  list.stride = interleaved ? with->list_capacity : 1;
  list.k = with->k;
  return list;
}

/* A reference point of known rank: into the list if it belongs there. Returns whether it did. */
__device__ static inline bool kcp_consider(const struct kcp_search_arguments *with,
                                           enum kcp_buffer buffer, uint64_t reference,
                                           uint64_t query, uint64_t query_id, double rank,
                                           const struct kcp_candidate_list *list,
                                           struct kcp_threshold *threshold) {
  struct kcp_candidate candidate;
  candidate.rank = rank;
  candidate.id1 = with->reference.ids[reference];
  candidate.id2 = query_id;
  if (!kcp_threshold_accepts(threshold, &candidate)) return false;
  if (with->self && !kcp_self_pair_counts(candidate.id1, kcp_record_of(&with->reference, reference),
                                          candidate.id2, kcp_record_of(&with->queries, query)))
    return false;
  kcp_list_insert(buffer, list, candidate, threshold);
  return true;
}

__device__ static inline void kcp_count_evaluations(const struct kcp_search_arguments *with,
                                                    unsigned long long evaluated) {
  for (int offset = 16; offset > 0; offset /= 2)
    evaluated += __shfl_down_sync(kcp_full_warp, evaluated, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(with->evaluations, evaluated);
}

/* ---- tiled ---- */

template <int D>
struct kcp_tiled_query {
  float coordinates[D]; /* in the frame */
  double exact[D];
  double error; /* e of the header comment */
  uint64_t id;
  uint64_t index;
  bool active;
};

/* The largest binary32 sum of squares that a pair of rank <= `rank` can have. */
__device__ static inline float kcp_filter_limit(const struct kcp_frame *frame, double error,
                                                double rank) {
  double reach = sqrt(rank) * frame->scale * (1 + 1e-9) + error;
  return __double2float_ru(reach * reach * (1 + 1e-6));
}

template <int D>
__device__ static inline float kcp_filter_rank(const float4 &point, const float *query) {
  float dx = point.x - query[0], dy = point.y - query[1];
  float sum = __fmaf_rn(dy, dy, dx * dx);
  if (D == 3) {
    float dz = point.z - query[D - 1];
    sum = __fmaf_rn(dz, dz, sum);
  }
  return sum;
}

template <int D>
__device__ static inline float4 kcp_load_packed(const float4 *point) {
  if (D == 3) return __ldg(point);
  float2 xy = __ldg((const float2 *)point);
  return make_float4(xy.x, xy.y, 0, 0);
}

/* What a thread of the tiled kernel works with. */
template <int D>
struct kcp_tiled_state {
  struct kcp_candidate_list list;
  struct kcp_threshold threshold;
  struct kcp_tiled_query<D> query;
  float limit;
  int queued;
};

/* Inserts what is queued; all threads of the warp together. */
template <int D, enum kcp_buffer BUFFER>
__device__ static inline void kcp_flush_queue(const struct kcp_search_arguments *with,
                                              const uint32_t *queue,
                                              struct kcp_tiled_state<D> *state) {
  for (int entry = 0; __any_sync(kcp_full_warp, entry < state->queued); ++entry) {
    if (entry >= state->queued) continue;
    uint32_t i = queue[entry * blockDim.x];
    double rank = kcp_metric_rank_of(KCP_L2, 2, D, with->reference.columns, with->reference.stride,
                                     i, state->query.exact);
    if (rank <= state->threshold.last.rank)
      kcp_consider(with, BUFFER, i, state->query.index, state->query.id, rank, &state->list,
                   &state->threshold);
  }
  state->queued = 0;
  if (state->query.active)
    state->limit = kcp_filter_limit(with->frame, state->query.error, state->threshold.last.rank);
}

/* `points` are reference points first .. first + count - 1 in global or shared memory. */
template <int D, enum kcp_buffer BUFFER>
__device__ static inline void kcp_examine_run(const struct kcp_search_arguments *with,
                                              const float4 *points, bool in_shared, uint32_t first,
                                              uint32_t count, uint32_t *queue,
                                              struct kcp_tiled_state<D> *state) {
  uint32_t i = 0;
  for (; i + kcp_run_length <= count; i += kcp_run_length) {
    float ranks[kcp_run_length];
#pragma unroll
    for (int r = 0; r < kcp_run_length; ++r)
      ranks[r] = kcp_filter_rank<D>(in_shared ? points[i + r] : kcp_load_packed<D>(points + i + r),
                                    state->query.coordinates);
    float nearest = ranks[0];
#pragma unroll
    for (int r = 1; r < kcp_run_length; ++r) nearest = fminf(nearest, ranks[r]);
    if (!__any_sync(kcp_full_warp, nearest <= state->limit)) continue;
#pragma unroll
    for (int r = 0; r < kcp_run_length; ++r)
      if (ranks[r] <= state->limit) queue[state->queued++ * blockDim.x] = first + i + r;
    if (__any_sync(kcp_full_warp, state->queued > kcp_queue_length - kcp_run_length))
      kcp_flush_queue<D, BUFFER>(with, queue, state);
  }
  for (; i < count; ++i) {
    float rank = kcp_filter_rank<D>(in_shared ? points[i] : kcp_load_packed<D>(points + i),
                                    state->query.coordinates);
    if (rank <= state->limit) queue[state->queued++ * blockDim.x] = first + i;
  }
  if (__any_sync(kcp_full_warp, state->queued > kcp_queue_length - kcp_run_length))
    kcp_flush_queue<D, BUFFER>(with, queue, state);
}

/* A thread without a query stands at the nearest one, so that the warp's walk begins where the
 * others are. */
template <int D>
__device__ static inline void kcp_load_query(const struct kcp_search_arguments *with, uint64_t base,
                                             uint64_t number, struct kcp_tiled_state<D> *state) {
  struct kcp_tiled_query<D> *query = &state->query;
  uint64_t last = min(base + with->list_count, (uint64_t)with->queries.count) - 1;
  uint64_t source = min(base + number, last);
  query->active = base + number <= last;
  query->index = source;
  query->error = with->frame->extent;
  state->limit = -1;
  query->id = with->queries.ids[source];
#pragma unroll
  for (int j = 0; j < D; ++j) {
    query->exact[j] = with->queries.columns[j * with->queries.stride + source];
    double relative = (query->exact[j] - with->frame->origin[j]) * with->frame->scale;
    query->coordinates[j] = __double2float_rn(relative);
    query->error += fabs(relative);
  }
  query->error *= 1.0 / (1 << 22);
  if (query->active)
    state->limit = kcp_filter_limit(with->frame, query->error, state->threshold.last.rank);
}

/* The walk of DSPP for a warp: a step to the nearer side, as the middle thread sees it, while any
 * thread can still gain from it. */
template <int D, enum kcp_buffer BUFFER>
__device__ static inline unsigned long long kcp_walk_warp(const struct kcp_search_arguments *with,
                                                          uint32_t *queue,
                                                          struct kcp_tiled_state<D> *state) {
  const struct kcp_subpartition_index *index = &with->index;
  const int middle = 16;
  double x = state->query.exact[0];
  double middle_x = __shfl_sync(kcp_full_warp, x, middle);
  struct kcp_walk walk;
  uint32_t current = kcp_walk_start(index, middle_x, &walk);
  unsigned long long evaluated = 0;
  for (;;) {
    uint32_t first = current * index->size;
    uint32_t left_over = with->reference.count - first;
    uint32_t count = left_over < index->size ? left_over : index->size;
    kcp_examine_run<D, BUFFER>(with, with->reference.packed + first, false, first, count, queue,
                               state);
    if (state->query.active) evaluated += count;
    double rank = state->threshold.last.rank;
    bool left = __any_sync(
        kcp_full_warp, state->query.active &&
                           kcp_walk_reaches(KCP_L2, 2, kcp_walk_left_gap(index, &walk, x), rank));
    bool right = __any_sync(
        kcp_full_warp, state->query.active &&
                           kcp_walk_reaches(KCP_L2, 2, kcp_walk_right_gap(index, &walk, x), rank));
    left = left && walk.left > 0;
    right = right && walk.right + 1 < index->count;
    if (!left && !right) return evaluated;
    if (left && right)
      left = kcp_walk_left_gap(index, &walk, middle_x) < kcp_walk_right_gap(index, &walk, middle_x);
    current = left ? --walk.left : ++walk.right;
  }
}

static const int kcp_tile_points = 512;

/* Every reference point, through tiles in shared memory (8 KB). */
template <int D, enum kcp_buffer BUFFER>
__device__ static inline void kcp_examine_tiles(const struct kcp_search_arguments *with,
                                                float4 *tile, uint32_t *queue,
                                                struct kcp_tiled_state<D> *state) {
  for (uint32_t first = 0; first < with->reference.count; first += kcp_tile_points) {
    uint32_t left_over = with->reference.count - first;
    uint32_t count = left_over < kcp_tile_points ? left_over : kcp_tile_points;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x)
      tile[i] = with->reference.packed[first + i];
    __syncthreads();
    kcp_examine_run<D, BUFFER>(with, tile, true, first, count, queue, state);
  }
}

template <int D, enum kcp_buffer BUFFER, enum kcp_traversal TRAVERSAL>
__global__ static void kcp_search_tiled(const struct kcp_search_arguments with) {
  extern __shared__ uint32_t queues[]; /* kcp_queue_length of each thread, interleaved */
  __shared__ float4 tile[TRAVERSAL == KCP_TRAVERSE_ALL ? kcp_tile_points : 1];
  uint64_t number = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t *queue = queues + threadIdx.x;
  bool has_list = number < with.list_count;
  struct kcp_tiled_state<D> state;
  state.list = kcp_list_of(&with, has_list ? number : 0, true);
  state.threshold = kcp_list_threshold(BUFFER, &state.list, with.rank_limit);
  state.queued = 0;
  unsigned long long evaluated = 0;
  for (uint64_t base = 0; base < with.queries.count; base += with.list_count) {
    kcp_load_query<D>(&with, base, number, &state);
    if (TRAVERSAL == KCP_TRAVERSE_ALL) {
      kcp_examine_tiles<D, BUFFER>(&with, tile, queue, &state);
      if (state.query.active) evaluated += with.reference.count;
    } else {
      evaluated += kcp_walk_warp<D, BUFFER>(&with, queue, &state);
    }
    kcp_flush_queue<D, BUFFER>(&with, queue, &state);
  }
  kcp_count_evaluations(&with, evaluated);
}

/* ---- general and plain ---- */

/* How a kernel sees a pair: its rank, and whether it may be within the threshold. */
struct kcp_column_access {
  __device__ static double rank(const struct kcp_search_arguments *with, uint64_t reference,
                                uint64_t query) {
    double sum = 0;
    for (uint32_t j = 0; j < with->dimensions; ++j)
      sum = kcp_metric_combine(
          with->metric_kind, sum,
          kcp_metric_term(with->metric_kind, with->metric_power,
                          with->reference.columns[j * with->reference.stride + reference] -
                              with->queries.columns[j * with->queries.stride + query]));
    return sum;
  }
  __device__ static double query_x(const struct kcp_search_arguments *with, uint64_t query) {
    return with->queries.columns[query];
  }
  __device__ static bool passes(double rank, double threshold_rank) {
    return rank <= threshold_rank;
  }
};

struct kcp_record_access {
  __device__ static double rank(const struct kcp_search_arguments *with, uint64_t reference,
                                uint64_t query) {
    const struct kcp_point_record *a = with->reference.records + reference;
    const struct kcp_point_record *b = with->queries.records + query;
    enum kcp_metric_kind kind = with->metric_kind;
    double sum = kcp_metric_term(kind, with->metric_power, a->x - b->x);
    sum = kcp_metric_combine(kind, sum, kcp_metric_term(kind, with->metric_power, a->y - b->y));
    return kcp_metric_combine(kind, sum, kcp_metric_term(kind, with->metric_power, a->z - b->z));
  }
  __device__ static double query_x(const struct kcp_search_arguments *with, uint64_t query) {
    return with->queries.records[query].x;
  }
  /* The square root is monotone: equal roots of different ranks are told apart afterwards. */
  __device__ static bool passes(double rank, double threshold_rank) {
    return sqrt(rank) <= sqrt(threshold_rank);
  }
};

template <class ACCESS, enum kcp_buffer BUFFER>
__device__ static inline void kcp_examine_alone(const struct kcp_search_arguments *with,
                                                uint32_t first, uint32_t last, uint64_t query,
                                                uint64_t query_id,
                                                const struct kcp_candidate_list *list,
                                                struct kcp_threshold *threshold) {
  for (uint32_t i = first; i < last; ++i) {
    double rank = ACCESS::rank(with, i, query);
    if (ACCESS::passes(rank, threshold->last.rank))
      kcp_consider(with, BUFFER, i, query, query_id, rank, list, threshold);
  }
}

template <class ACCESS, enum kcp_buffer BUFFER>
__device__ static inline unsigned long long kcp_walk_alone(const struct kcp_search_arguments *with,
                                                           uint64_t query, uint64_t query_id,
                                                           const struct kcp_candidate_list *list,
                                                           struct kcp_threshold *threshold) {
  const struct kcp_subpartition_index *index = &with->index;
  double x = ACCESS::query_x(with, query);
  struct kcp_walk walk;
  uint32_t current = kcp_walk_start(index, x, &walk);
  unsigned long long evaluated = 0;
  do {
    uint32_t first = current * index->size;
    uint32_t left_over = with->reference.count - first;
    uint32_t last = first + (left_over < index->size ? left_over : index->size);
    kcp_examine_alone<ACCESS, BUFFER>(with, first, last, query, query_id, list, threshold);
    evaluated += last - first;
  } while (kcp_walk_next(index, with->metric_kind, with->metric_power, x, threshold->last.rank,
                         &walk, &current));
  return evaluated;
}

template <class ACCESS, bool INTERLEAVED, enum kcp_buffer BUFFER, enum kcp_traversal TRAVERSAL>
__global__ static void kcp_search_alone(const struct kcp_search_arguments with) {
  uint64_t number = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long evaluated = 0;
  if (number < with.list_count) {
    struct kcp_candidate_list list = kcp_list_of(&with, number, INTERLEAVED);
    struct kcp_threshold threshold = kcp_list_threshold(BUFFER, &list, with.rank_limit);
    for (uint64_t q = number; q < with.queries.count; q += with.list_count) {
      uint64_t query_id = with.queries.ids[q];
      if (TRAVERSAL == KCP_TRAVERSE_ALL) {
        kcp_examine_alone<ACCESS, BUFFER>(&with, 0, with.reference.count, q, query_id, &list,
                                          &threshold);
        evaluated += with.reference.count;
      } else {
        evaluated += kcp_walk_alone<ACCESS, BUFFER>(&with, q, query_id, &list, &threshold);
      }
    }
  }
  kcp_count_evaluations(&with, evaluated);
}

#endif

/* Range joins on the device: what RT-HiSS and brute force share. */
#ifndef KCP_KERNELS_RANGE_JOIN_CUH
#define KCP_KERNELS_RANGE_JOIN_CUH

#include "device_buffer.cuh"
#include "kcp/range_index.h"
#include "kcp/range_join.h"
#include "kcp/range_limit.h"
#include "kcp/range_primitives.h"
#include "kcp/range_tasks.h"

/* The device memory of a join, by use. */
enum kcp_range_buffer {
  KCP_BUFFER_COLUMNS,     /* D in the order of the file */
  KCP_BUFFER_ROWS,        /* D' */
  KCP_BUFFER_PLACES,      /* of D' among D */
  KCP_BUFFER_FIRSTS,      /* of primitives among D' */
  KCP_BUFFER_BOUNDS,      /* of primitives in all dimensions */
  KCP_BUFFER_BOXES,       /* of the index */
  KCP_BUFFER_CELL_FIRSTS, /* of the index by a grid */
  KCP_BUFFER_CELL_LISTS,
  KCP_BUFFER_ORDER,         /* of dimensions */
  KCP_BUFFER_CENTRE,        /* by dimension in that order */
  KCP_BUFFER_QUERY_COLUMNS, /* Q likewise */
  KCP_BUFFER_QUERY_ROWS,
  KCP_BUFFER_QUERY_PLACES,
  KCP_BUFFER_KEYS, /* of sorts, and what they give */
  KCP_BUFFER_SORTED_KEYS,
  KCP_BUFFER_VALUES,
  KCP_BUFFER_SCRATCH, /* of CUB */
  KCP_BUFFER_PARTIAL, /* of reductions */
  KCP_BUFFER_HITS,    /* of each query */
  KCP_BUFFER_HIT_FIRSTS,
  KCP_BUFFER_MET,    /* primitives of each entry, query after query */
  KCP_BUFFER_MET_BY, /* its query */
  KCP_BUFFER_SORTED_MET,
  KCP_BUFFER_ENTRIES, /* entries, primitive after primitive */
  KCP_BUFFER_ENTRY_FIRSTS,
  KCP_BUFFER_TASKS,
  KCP_BUFFER_MASKS,
  KCP_BUFFER_PAIRS,
  KCP_BUFFER_TOTALS,  /* neighbours of each query of a batch */
  KCP_BUFFER_OFFSETS, /* of their lists */
  KCP_BUFFER_CURSORS,
  KCP_BUFFER_QUERY_FIRSTS, /* entries of the batch's queries */
  KCP_BUFFER_LISTS,        /* of neighbours, not in order yet */
  KCP_BUFFER_RUN_OFFSETS,  /* of the lists of a run of the batch's queries */
  KCP_BUFFER_NEIGHBOURS,   /* of a run, as they are listed, or before they become pairs */
  KCP_BUFFER_RESULTS,      /* of a run, on their way to the host */
  KCP_BUFFER_NEXT_RESULTS, /* of the next run meanwhile */
  KCP_BUFFER_COUNT
};

/* Points on the device: columns in the order of the file, and rows in that of the work. */
struct kcp_device_points {
  uint64_t count;
  const double *columns; /* stride = count */
  const void *rows;      /* binary32 or binary64; dimensions by variance, moved by the centre */
  const uint32_t *places;
};

struct kcp_range_copier;  /* range_copy.cu */
struct kcp_range_results; /* range_results.cu */

/* An engine's state. */
struct kcp_range_join {
  struct kcp_range_plan plan;
  struct kcp_device_info device;
  cudaStream_t stream;
  struct kcp_range_copier *copier; /* owned; NULL before the first transfer */
  struct kcp_device_buffer buffers[KCP_BUFFER_COUNT];
  struct kcp_device_points points, queries;
  const struct kcp_points *reference; /* on the host */
  bool is_narrow;                     /* rows are binary32 */
  double narrow_scale;                /* a power of two: eps becomes 1 to 2 */
  double point_norm, query_norm;      /* the largest of a row, at that scale */
  uint32_t *order;                    /* of dimensions; owned */
  uint32_t height;
  uint64_t primitive_count, largest_primitive;
  uint32_t *firsts; /* of primitives, on the host; owned */
  struct kcp_range_frame frame;
  struct kcp_primitive_index index; /* pointers to the device */
};

template <typename T>
enum kcp_status kcp_range_room(struct kcp_range_join *join, enum kcp_range_buffer which,
                               uint64_t count, T **out, struct kcp_error *error) {
  return kcp_device_room(&join->buffers[which], count, out, "a range join", error);
}

template <typename T>
T *kcp_range_array(const struct kcp_range_join *join, enum kcp_range_buffer which) {
  return (T *)join->buffers[which].memory;
}

/* Scratch for CUB of that many bytes. */
enum kcp_status kcp_range_scratch(struct kcp_range_join *join, size_t bytes, void **scratch,
                                  struct kcp_error *error);

/* ---- the engine's parts (range_engine.cu) ---- */

enum kcp_status kcp_range_join_create(const struct kcp_range_plan *plan,
                                      const struct kcp_device_info *device,
                                      struct kcp_range_join **out, struct kcp_error *error);
void kcp_range_join_destroy(struct kcp_range_join *join);
uint64_t kcp_range_device_bytes(const struct kcp_range_join *join);

/* Columns of points to the device, into a buffer of `count * dimensions`. */
enum kcp_status kcp_range_upload(struct kcp_range_join *join, const struct kcp_points *points,
                                 enum kcp_range_buffer which, struct kcp_measurement *measurement,
                                 struct kcp_error *error);

/* ---- IV-A to IV-C (rt_hiss_index.cu) ---- */

/* Order of dimensions, centre and frame of the points on the device. */
enum kcp_status kcp_range_order_dimensions(struct kcp_range_join *join,
                                           enum kcp_range_reorder reorder, struct kcp_error *error);
/* Rows of points in their places; *norm becomes the largest of a row. */
enum kcp_status kcp_range_make_rows(struct kcp_range_join *join, struct kcp_device_points *points,
                                    enum kcp_range_buffer which, double *norm,
                                    struct kcp_error *error);
enum kcp_status kcp_rt_hiss_build(struct kcp_range_join *join, struct kcp_range_work *work,
                                  struct kcp_error *error);
/* Queries of their own in Morton order: fills join->queries.places. */
enum kcp_status kcp_rt_hiss_sort_queries(struct kcp_range_join *join, struct kcp_error *error);

/* ---- IV-D (rt_hiss_batch.cu) ---- */

/* Queries first .. first + count - 1, and the entries in which they meet primitives. An entry's
 * number is its place query after query; `entries` lists them primitive after primitive. With
 * everyone_meets, entry (q - first) * primitives + p is query q at primitive p, and no list is
 * needed. */
struct kcp_range_meeting {
  uint64_t first, count;
  uint64_t intersections;
  bool everyone_meets;
  const uint32_t *met_by;       /* query of an entry (device) */
  const uint32_t *met;          /* its primitive (device) */
  const uint32_t *entries;      /* (device) */
  const uint64_t *query_firsts; /* of each query of the batch, its first entry plus query_base, and
                                   one behind (host); NULL when everyone meets */
  uint64_t query_base;
  uint64_t *entry_firsts; /* of each primitive among `entries` (host; owned) */
};

/* firsts[q] = the first entry of query q, and behind the last one how many there are (host). The
 * same stays in KCP_BUFFER_HIT_FIRSTS. */
enum kcp_status kcp_rt_hiss_first_test(struct kcp_range_join *join, uint64_t *firsts,
                                       struct kcp_error *error);
/* Both passes for queries first .. first + count - 1 with so many intersections (< 2^32). */
enum kcp_status kcp_rt_hiss_meet(struct kcp_range_join *join, struct kcp_range_meeting *meeting,
                                 struct kcp_range_work *work, struct kcp_error *error);

/* ---- IV-E (range_refine.cu) ---- */

/* What sums of rows may be: at the rows' scale, and for binary32 rounded to the safe side. */
struct kcp_range_limit kcp_range_row_limit(const struct kcp_range_join *join);

/* Masks of entries, or pairs, or counts alone, and the totals of each query of the batch. */
struct kcp_range_found {
  uint32_t mask_words;            /* 32-bit words of an entry */
  uint32_t *masks;                /* by number of the entry; NULL when not wanted */
  unsigned long long *pairs;      /* query << 32 | record; NULL when not wanted */
  unsigned long long *pair_count; /* grows */
  uint32_t *totals;
  unsigned long long *rechecks;
};

/* ---- IV-F2 (range_copy.cu) ---- */

/* Results to host memory, or points to the device: chunks through pinned staging memory, which
 * --copy-threads share, or straight (--host-memory pageable). */

/* One that is under way; it stays where it is until it is done. */
struct kcp_range_transfer {
  char *host, *device;
  cudaMemcpyKind kind;
  uint64_t bytes, dealt, done;
  cudaError_t code; /* of a failure */
  double started, ended;
};

/* Begins when the join's stream is idle, for which it waits; --copy-threads carry it on. */
enum kcp_status kcp_range_copy_begin(struct kcp_range_join *join, void *to, const void *from,
                                     uint64_t bytes, cudaMemcpyKind kind,
                                     struct kcp_range_transfer *transfer, struct kcp_error *error);
/* Waits until it is done; _end also adds it to the measurement. */
void kcp_range_copy_wait(struct kcp_range_join *join, struct kcp_range_transfer *transfer);
enum kcp_status kcp_range_copy_end(struct kcp_range_join *join, struct kcp_range_transfer *transfer,
                                   struct kcp_measurement *measurement, struct kcp_error *error);
void kcp_range_copier_free(struct kcp_range_copier *copier); /* NULL is allowed */

/* Begin and end. */
enum kcp_status kcp_range_copy_in(struct kcp_range_join *join, void *device, const void *host,
                                  uint64_t bytes, struct kcp_measurement *measurement,
                                  struct kcp_error *error);
enum kcp_status kcp_range_copy_out(struct kcp_range_join *join, void *host, const void *device,
                                   uint64_t bytes, struct kcp_measurement *measurement,
                                   struct kcp_error *error);

enum kcp_status kcp_range_refine(struct kcp_range_join *join,
                                 const struct kcp_range_meeting *meeting,
                                 const struct kcp_range_tasks *tasks,
                                 const struct kcp_range_found *found, struct kcp_error *error);

/* ---- the join over batches (range_batches.cu) ---- */

/* Joins join->queries with the primitives. With everyone_meets there is no index. */
enum kcp_status kcp_range_join_batches(struct kcp_range_join *join, bool everyone_meets,
                                       uint64_t *counts, const struct kcp_range_sink *sink,
                                       struct kcp_measurement *measurement,
                                       struct kcp_range_work *work, struct kcp_error *error);

/* ---- IV-F (range_lists.cu) ---- */

/* What the lists of a run of a batch's queries are made from: masks of entries, or lists without
 * order. All pointers are to the device. */
struct kcp_range_listing {
  const uint32_t *masks; /* NULL: there are lists */
  uint32_t mask_words;
  const uint32_t *met;          /* primitives of entries; NULL when everyone meets */
  const uint64_t *query_firsts; /* entries of the batch's queries plus query_base; NULL likewise */
  uint64_t query_base;
  uint64_t primitives;
  const uint32_t *firsts, *places;
  const uint32_t *lists;   /* of the batch's queries, at their offsets */
  const uint64_t *offsets; /* of the batch's queries, and one behind */
  uint64_t first, last;    /* queries of the batch that are listed */
};

/* offsets[i] = neighbours of the batch's queries before query i, i <= count. */
enum kcp_status kcp_range_offsets(struct kcp_range_join *join, const uint32_t *totals,
                                  uint64_t count, uint64_t **offsets, struct kcp_error *error);
/* Lists without order from pairs of queries from number `first_query` on. */
enum kcp_status kcp_range_scatter(struct kcp_range_join *join, const unsigned long long *pairs,
                                  uint64_t total, uint64_t first_query, uint64_t query_count,
                                  const uint64_t *offsets, uint32_t **lists,
                                  struct kcp_error *error);
/* The neighbours of the run, `total` of them, query after query, each list in the order of its
 * records. */
enum kcp_status kcp_range_list(struct kcp_range_join *join, const struct kcp_range_listing *listing,
                               uint64_t total, uint32_t *neighbours, struct kcp_error *error);
/* The same as pairs: query << 32 | record, queries numbered from first_query on. */
enum kcp_status kcp_range_pair_up(struct kcp_range_join *join,
                                  const struct kcp_range_listing *listing, uint64_t first_query,
                                  const uint32_t *neighbours, uint64_t *pairs,
                                  struct kcp_error *error);

/* ---- IV-F (range_results.cu) ---- */

/* The way of a join's results to the sink; what it is given stays the caller's. query_places: of
 * all queries, on the host; room_bytes: of device memory for lists. */
struct kcp_range_results *kcp_range_results_create(
    struct kcp_range_join *join, const struct kcp_range_sink *sink, const uint32_t *query_places,
    uint64_t room_bytes, struct kcp_measurement *measurement, struct kcp_range_work *work);
/* What a batch found, `totals` (host) of each query, goes its way: the last lists may still be on
 * it when this returns. */
enum kcp_status kcp_range_pass_on(struct kcp_range_results *results,
                                  const struct kcp_range_meeting *meeting,
                                  const struct kcp_range_found *found, const uint32_t *totals,
                                  struct kcp_error *error);
/* After the last batch: all is with the sink. */
enum kcp_status kcp_range_results_end(struct kcp_range_results *results, struct kcp_error *error);
/* Waits for what is on its way; NULL is allowed. */
void kcp_range_results_free(struct kcp_range_results *results);

/* Waits for the join's stream and adds what passed since *started to *seconds; *started becomes
 * now. */
enum kcp_status kcp_range_lap(struct kcp_range_join *join, double *started, double *seconds,
                              struct kcp_error *error);

#endif

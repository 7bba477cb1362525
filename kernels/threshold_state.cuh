/* What the parts of the CUDA engine of the global-threshold search share: its state, and how work
 * on its stream is counted and timed. threshold_search.cu lists the parts. */
#ifndef KCP_KERNELS_THRESHOLD_STATE_CUH
#define KCP_KERNELS_THRESHOLD_STATE_CUH

#include "bounding_box.cuh"
#include "box_tree.cuh"
#include "cell_filter.cuh"
#include "cell_join.cuh"
#include "device.cuh"
#include "kcp/axes.h"
#include "kcp/threshold_search.h"
#include "morton_sort.cuh"
#include "select_candidates.cuh"
#include "threshold_guess.cuh"

static const uint64_t kcp_ranks_on_host = UINT64_C(1) << 15;

/* A block of points on its way from a file. */
struct kcp_threshold_block {
  struct kcp_points points; /* pinned */
  double *columns;          /* on the device */
  uint64_t stride;          /* there; even */
  cudaEvent_t done;         /* the device no longer needs it */
  struct kcp_device_timer upload, filter;
};

enum kcp_threshold_order { KCP_ORDER_NONE, KCP_ORDER_MORTON };

/* One side's points after reduce: two buffers for filtering back and forth; of what was kept, joins
 * work on the points of ids up to a limit, which are in the other buffer when they are not all, or
 * not as they lay. */
struct kcp_threshold_side {
  struct kcp_point_set kept; /* in buffers[current] */
  struct kcp_point_set chosen;
  uint64_t first_id, last_id;
  enum kcp_threshold_order order; /* of the chosen */
  double *columns[2];
  uint64_t *records[2];
  uint64_t *ids, *sorted_ids; /* made when first wanted */
  struct kcp_morton_sorter sorter;
  int current;
  uint64_t capacity; /* even */
};

enum kcp_threshold_counter {
  KCP_COUNT_PAIRS,
  KCP_COUNT_SURVIVORS, /* appended by filter */
  KCP_COUNT_HELD,      /* left by a round of filtering */
  KCP_COUNT_STREAMED,
  KCP_COUNT_KEPT, /* of anything else */
  KCP_COUNTERS
};

struct kcp_threshold_engine_state {
  struct kcp_threshold_plan plan;
  uint32_t dimensions; /* of the points since reset */
  struct kcp_device_memory memory;
  cudaStream_t stream;
  struct kcp_threshold_block blocks[2];
  struct kcp_point_set held; /* all that is loaded */
  struct kcp_point_set sample;
  struct kcp_axes axes;                         /* that may index */
  struct kcp_cells cells;                       /* of the last mark; its axes are those that do */
  double low[KCP_MAX_AXES], high[KCP_MAX_AXES]; /* of the held points along the axes */
  double *knots;                                /* of their Morton keys, on the device */
  bool box_known, knots_known;
  bool endless; /* the rank of the last mark reaches everything */
  struct kcp_threshold_side sides[2];
  uint64_t *bitmap;      /* with --self two, one after the other */
  bool bitmap_is_marked; /* with the cells of the last mark */
  uint64_t filtered;     /* points that were streamed since survivors were cleared */
  uint64_t round;        /* seeds the hash of each filtering */
  struct kcp_cell_table table;
  struct kcp_box_tree tree;
  struct kcp_pair_planes pairs, spare_pairs;
  uint64_t pair_count;
  struct kcp_guess guess;
  unsigned long long *box, *counters; /* device */
  unsigned long long *host_words;     /* pinned: the box, then the counters */
  double *host_ranks;                 /* pinned, kcp_ranks_on_host */
  struct kcp_selector selector;       /* of ranks */
  struct kcp_selector first_selector; /* of pairs; made when first wanted */
  struct kcp_device_timer timer, mark_timer;
  struct kcp_measurement measurement;
};

typedef struct kcp_threshold_engine_state engine_state;

/* ---- counting and timing (threshold_memory.cu) ---- */

enum kcp_status kcp_threshold_begin(engine_state *state, struct kcp_error *error);
/* Waits for the stream and adds the time since kcp_threshold_begin to a phase. */
enum kcp_status kcp_threshold_end(engine_state *state, enum kcp_phase phase,
                                  struct kcp_error *error);
/* Sets counters from `first` on (so many of them) to 0. */
enum kcp_status kcp_threshold_clear(engine_state *state, enum kcp_threshold_counter first,
                                    int count, struct kcp_error *error);
/* Waits for the stream; *value = the counter. */
enum kcp_status kcp_threshold_count(engine_state *state, enum kcp_threshold_counter which,
                                    uint64_t *value, struct kcp_error *error);

/* ---- memory (threshold_memory.cu) ---- */

enum kcp_status kcp_threshold_create(const struct kcp_threshold_plan *plan,
                                     const struct kcp_device_info *device, engine_state **out,
                                     struct kcp_error *error);
void kcp_threshold_destroy(engine_state *state);
enum kcp_status kcp_threshold_reset(engine_state *state, uint32_t dimensions,
                                    struct kcp_error *error);
/* Bits of a bitmap that so many points mark. */
uint64_t kcp_threshold_bits(uint64_t points);

static inline struct kcp_point_set kcp_side_buffer(const struct kcp_threshold_side *side,
                                                   int which) {
  struct kcp_point_set set = {};
  set.columns = side->columns[which];
  set.stride = side->capacity;
  set.records = side->records[which];
  return set;
}

/* ---- blocks, the guess and filtering (threshold_filter.cu) ---- */

enum kcp_status kcp_threshold_wait_for_block(engine_state *state, uint32_t which,
                                             struct kcp_points **points, struct kcp_error *error);
enum kcp_status kcp_threshold_clear_held(engine_state *state, struct kcp_error *error);
enum kcp_status kcp_threshold_append_held(engine_state *state, uint32_t which,
                                          uint64_t first_record, struct kcp_error *error);
enum kcp_status kcp_threshold_load_sample(engine_state *state, const struct kcp_points *sample,
                                          struct kcp_error *error);
enum kcp_status kcp_threshold_guess(engine_state *state, uint64_t wanted, double *rank,
                                    struct kcp_error *error);
uint64_t kcp_threshold_held_sampled(const engine_state *state);
enum kcp_status kcp_threshold_mark(engine_state *state, double rank, struct kcp_error *error);
enum kcp_status kcp_threshold_filter(engine_state *state, uint32_t which, uint64_t first_record,
                                     struct kcp_error *error);
enum kcp_status kcp_threshold_survivors(engine_state *state, uint64_t *count,
                                        struct kcp_error *error);
enum kcp_status kcp_threshold_reduce(engine_state *state, double rank, bool *fits,
                                     struct kcp_error *error);
enum kcp_status kcp_threshold_clear_survivors(engine_state *state, struct kcp_error *error);
/* Cells for pairs within `rank`, of which so many points mark some; another hash every time. */
struct kcp_cells kcp_threshold_cells(engine_state *state, double rank, uint64_t points);

/* ---- joining (threshold_join.cu) ---- */

enum kcp_status kcp_threshold_join(engine_state *state, double rank, enum kcp_join_kind kind,
                                   uint64_t *found, struct kcp_error *error);
uint64_t kcp_threshold_side_count(const engine_state *state, enum kcp_side side);
enum kcp_status kcp_threshold_side_records(engine_state *state, enum kcp_side side,
                                           uint64_t *records, struct kcp_error *error);
enum kcp_status kcp_threshold_set_ids(engine_state *state, enum kcp_side side, const uint64_t *ids,
                                      struct kcp_error *error);
enum kcp_status kcp_threshold_restrict_ids(engine_state *state, enum kcp_side side,
                                           uint64_t first_id, uint64_t last_id,
                                           struct kcp_error *error);

/* ---- pairs (threshold_pairs.cu) ---- */

uint64_t kcp_threshold_pair_count(const engine_state *state);
enum kcp_status kcp_threshold_truncate_pairs(engine_state *state, uint64_t count,
                                             struct kcp_error *error);
enum kcp_status kcp_threshold_drop_beyond(engine_state *state, double rank,
                                          struct kcp_error *error);
enum kcp_status kcp_threshold_rank_of(engine_state *state, uint64_t wanted, double *rank,
                                      struct kcp_error *error);
enum kcp_status kcp_threshold_take_first(engine_state *state, enum kcp_side first,
                                         struct kcp_record_pair *pairs, uint64_t *count,
                                         struct kcp_error *error);
enum kcp_status kcp_threshold_download(engine_state *state, struct kcp_record_pair *pairs,
                                       struct kcp_error *error);

#endif

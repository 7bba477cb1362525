/* Which sites can matter in each tile of the grid: lists, from large tiles to small ones. */
#ifndef KCP_KERNELS_INFLUENCE_LISTS_CUH
#define KCP_KERNELS_INFLUENCE_LISTS_CUH

#include "influence_sites.cuh"

static const uint32_t kcp_tile_side = 8; /* cells of the smallest tiles */

/* The lists of one set over all tiles of one size; the selected sites of a tile come first. */
struct kcp_tile_lists {
  uint32_t side; /* cells of a tile */
  uint32_t rows, columns;
  uint64_t *first; /* a tile; places in `pool` */
  uint32_t *count;
  uint32_t *selected;       /* of these, selected */
  uint32_t *pool;           /* groups */
  uint64_t capacity;        /* of the pool */
  unsigned long long *used; /* of the pool, or what would have been: more than it has is too much */
};

enum { KCP_TILE_LEVELS = 8 };

/* All levels of a set. Owns its memory: kcp_list_levels_free. */
struct kcp_list_levels {
  int count;
  struct kcp_tile_lists levels[KCP_TILE_LEVELS]; /* the last are the smallest tiles */
  struct kcp_device_memory memory[KCP_TILE_LEVELS];
};

enum kcp_status kcp_list_levels_create(const struct kcp_influence_grid *grid,
                                       const struct kcp_device_sites *sites, uint64_t k,
                                       struct kcp_list_levels *levels, struct kcp_error *error);
void kcp_list_levels_free(struct kcp_list_levels *levels);
uint64_t kcp_list_levels_bytes(const struct kcp_list_levels *levels);

/* Queues the making of all lists. */
enum kcp_status kcp_list_levels_launch(const struct kcp_influence_grid *grid,
                                       const struct kcp_device_sites *sites, uint64_t k,
                                       const struct kcp_list_levels *levels, cudaStream_t stream,
                                       struct kcp_error *error);

/* Behind the launch: waits, and enlarges pools that were too small. *complete tells that none
 * was. */
enum kcp_status kcp_list_levels_check(struct kcp_list_levels *levels, bool *complete,
                                      cudaStream_t stream, struct kcp_error *error);

#endif

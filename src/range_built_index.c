#include "kcp/range_built_index.h"

#include <stdlib.h>
#include <string.h>

#define MOST_GRID_SIDE 256
#define MOST_ENTRIES_A_PRIMITIVE 64 /* cells that primitives touch on average */

void kcp_built_index_free(struct kcp_built_index *built) {
  free(built->boxes);
  free(built->firsts);
  free(built->primitives);
  memset(built, 0, sizeof *built);
}

static void build_level(struct kcp_primitive_box *boxes, const struct kcp_primitive_bvh *bvh,
                        uint32_t level) {
  const struct kcp_primitive_box *below = boxes + bvh->first[level - 1];
  struct kcp_primitive_box *here = boxes + bvh->first[level];
#pragma omp parallel for schedule(static) if (bvh->count[level] > 4096)
  for (uint32_t node = 0; node < bvh->count[level]; ++node) {
    const uint32_t first = node << KCP_BVH_SHIFT;
    uint32_t last = first + KCP_BVH_FANOUT;
    if (last > bvh->count[level - 1]) last = bvh->count[level - 1];
    here[node] = below[first];
    for (uint32_t child = first + 1; child < last; ++child)
      here[node] = kcp_box_around(&here[node], &below[child]);
  }
}

/* The cells that a box touches: their lowest and highest number along each axis. */
struct cell_range {
  uint32_t low[KCP_RANGE_AXES], high[KCP_RANGE_AXES];
};

static struct cell_range cells_of(const struct kcp_primitive_box *box, uint32_t side) {
  struct cell_range range;
  for (uint32_t j = 0; j < KCP_RANGE_AXES; ++j) {
    range.low[j] = kcp_primitive_cell(side, box->low.axis[j]);
    range.high[j] = kcp_primitive_cell(side, box->high.axis[j]);
  }
  return range;
}

static uint64_t count_entries(const struct kcp_primitive_box *boxes, uint64_t count,
                              uint32_t side) {
  uint64_t entries = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const struct cell_range range = cells_of(&boxes[i], side);
    uint64_t cells = 1;
    for (uint32_t j = 0; j < KCP_RANGE_AXES; ++j) cells *= range.high[j] - range.low[j] + 1;
    entries += cells;
  }
  return entries;
}

/* As many cells as primitives, or fewer when wide boxes would touch too many of them. */
static uint32_t choose_side(const struct kcp_primitive_box *boxes, uint64_t count,
                            uint64_t *entries) {
  uint32_t side = 1;
  while (side < MOST_GRID_SIDE && (uint64_t)side * side * side < count) side *= 2;
  while (side > 1 && count_entries(boxes, count, side) > MOST_ENTRIES_A_PRIMITIVE * count)
    side /= 2;
  *entries = count_entries(boxes, count, side);
  return side;
}

/* Calls for every cell of a box: count it (primitives NULL), or write the primitive there. */
static void visit_cells(const struct kcp_primitive_box *box, uint32_t side, uint32_t primitive,
                        uint32_t *places, uint32_t *primitives) {
  const struct cell_range range = cells_of(box, side);
  for (uint32_t z = range.low[2]; z <= range.high[2]; ++z)
    for (uint32_t y = range.low[1]; y <= range.high[1]; ++y)
      for (uint32_t x = range.low[0]; x <= range.high[0]; ++x) {
        const uint32_t cell = (z * side + y) * side + x;
        if (primitives != NULL) primitives[places[cell]] = primitive;
        ++places[cell];
      }
}

static enum kcp_status build_grid(struct kcp_built_index *built, uint64_t count,
                                  struct kcp_error *error) {
  uint64_t entries;
  const uint32_t side = choose_side(built->boxes, count, &entries);
  const uint64_t cells = (uint64_t)side * side * side;
  built->firsts = calloc(cells + 2, sizeof *built->firsts);
  built->primitives = malloc((entries + 1) * sizeof *built->primitives);
  if (built->firsts == NULL || built->primitives == NULL)
    return kcp_out_of_memory(error, "a grid of primitives", (cells + entries) * 4);
  /* Counts two places on, so that writing moves each cell's beginning to where it belongs. */
  uint32_t *places = built->firsts + 1;
  for (uint64_t i = 0; i < count; ++i) visit_cells(&built->boxes[i], side, 0, places + 1, NULL);
  for (uint64_t cell = 1; cell <= cells; ++cell) places[cell] += places[cell - 1];
  for (uint64_t i = 0; i < count; ++i)
    visit_cells(&built->boxes[i], side, (uint32_t)i, places, built->primitives);
  built->entry_count = entries;
  built->index.grid =
      (struct kcp_primitive_grid){built->boxes, side, built->firsts, built->primitives};
  return KCP_OK;
}

enum kcp_status kcp_built_index_create(enum kcp_range_index kind,
                                       const struct kcp_primitive_box *boxes, uint64_t count,
                                       struct kcp_built_index *built, struct kcp_error *error) {
  memset(built, 0, sizeof *built);
  struct kcp_primitive_bvh *bvh = &built->index.bvh;
  const uint64_t box_count = kind == KCP_RANGE_INDEX_GRID ? count : kcp_bvh_shape(count, bvh);
  built->index.kind = kind;
  built->box_count = box_count;
  built->boxes = malloc(box_count * sizeof *built->boxes);
  if (built->boxes == NULL)
    return kcp_out_of_memory(error, "boxes of primitives", box_count * sizeof *built->boxes);
  memcpy(built->boxes, boxes, count * sizeof *boxes);
  if (kind == KCP_RANGE_INDEX_GRID) return build_grid(built, count, error);
  for (uint32_t level = 1; level < bvh->levels; ++level) build_level(built->boxes, bvh, level);
  bvh->boxes = built->boxes;
  return KCP_OK;
}

#include "arena.h"

#include <stdlib.h>

#define FIRST_BLOCK_BYTES ((size_t)4096)
#define ALIGNMENT ((size_t)64)

struct kcp_arena_block {
  struct kcp_arena_block *before;
  size_t used, capacity;
  unsigned char *bytes;
};

static struct kcp_arena_block *block_make(struct kcp_arena_block *before, size_t least) {
  struct kcp_arena_block *block = malloc(sizeof *block);
  size_t capacity = before != NULL ? 2 * before->capacity : FIRST_BLOCK_BYTES;
  if (capacity < least) capacity = least;
  if (block == NULL) return NULL;
  block->bytes = aligned_alloc(ALIGNMENT, capacity);
  if (block->bytes == NULL) {
    free(block);
    return NULL;
  }
  block->before = before;
  block->used = 0;
  block->capacity = capacity;
  return block;
}

void *kcp_arena_take(struct kcp_arena *arena, uint64_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - ALIGNMENT) return NULL;
  bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  struct kcp_arena_block *block = arena->current;
  if (block == NULL || block->capacity - block->used < bytes) {
    block = block_make(block, bytes > ALIGNMENT ? bytes : ALIGNMENT);
    if (block == NULL) return NULL;
    arena->current = block;
  }
  void *taken = block->bytes + block->used;
  block->used += bytes;
  return taken;
}

struct kcp_arena_mark kcp_arena_mark(const struct kcp_arena *arena) {
  struct kcp_arena_mark mark = {arena->current, arena->current != NULL ? arena->current->used : 0};
  return mark;
}

static void drop_block(struct kcp_arena *arena) {
  struct kcp_arena_block *block = arena->current;
  arena->current = block->before;
  free(block->bytes);
  free(block);
}

void kcp_arena_return(struct kcp_arena *arena, struct kcp_arena_mark mark) {
  while (arena->current != mark.block && arena->current->before != mark.block) drop_block(arena);
  if (arena->current == mark.block) {
    if (mark.block != NULL) arena->current->used = mark.used;
    return;
  }
  /* The block after the marked one stays while the marked one is nearly full: a walk that goes up
   * and down there does not allocate each time. */
  arena->current->used = 0;
}

void kcp_arena_free(struct kcp_arena *arena) {
  while (arena->current != NULL) drop_block(arena);
}

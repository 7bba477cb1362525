/* Memory of a depth-first walk: taken in order, given back in reverse by returning to a mark. */
#ifndef KCP_CPU_ARENA_H
#define KCP_CPU_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct kcp_arena_block;

struct kcp_arena {
  struct kcp_arena_block *current; /* NULL at first */
};

struct kcp_arena_mark {
  struct kcp_arena_block *block;
  size_t used;
};

/* `count` elements of `size` bytes, aligned for any of them; NULL when memory is short. */
void *kcp_arena_take(struct kcp_arena *arena, uint64_t count, size_t size);

struct kcp_arena_mark kcp_arena_mark(const struct kcp_arena *arena);
/* Gives back all that was taken since the mark. */
void kcp_arena_return(struct kcp_arena *arena, struct kcp_arena_mark mark);

void kcp_arena_free(struct kcp_arena *arena);

#endif

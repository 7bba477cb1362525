#include "kcp/range_tasks.h"

#include <stdlib.h>
#include <string.h>

struct load {
  uint64_t comparisons;
  uint32_t primitive;
};

static int heavier_first(const void *a, const void *b) {
  const struct load *left = a, *right = b;
  if (left->comparisons != right->comparisons)
    return left->comparisons > right->comparisons ? -1 : 1;
  return left->primitive < right->primitive ? -1 : left->primitive > right->primitive;
}

/* Entries of a task on a primitive of so many points. */
static uint64_t entries_of_task(const struct kcp_range_options *options, uint64_t points) {
  if (options->fixed_work == KCP_SWITCH_OFF) return UINT64_MAX;
  const uint64_t entries = options->work_per_thread * KCP_RANGE_BLOCK_THREADS / points;
  return entries > 0 ? entries : 1;
}

static uint64_t parts_of(uint64_t entries, uint64_t step) {
  return entries / step + (entries % step != 0);
}

enum kcp_status kcp_range_deal(const struct kcp_range_options *options, uint64_t primitives,
                               const uint32_t *firsts, const uint64_t *entry_firsts,
                               struct kcp_range_tasks *tasks, struct kcp_error *error) {
  struct load *loads = malloc((primitives + 1) * sizeof *loads);
  uint64_t used = 0, task_count = 0;
  memset(tasks, 0, sizeof *tasks);
  if (loads == NULL) return kcp_out_of_memory(error, "work", primitives * sizeof *loads);
  for (uint64_t primitive = 0; primitive < primitives; ++primitive) {
    const uint64_t entries = entry_firsts[primitive + 1] - entry_firsts[primitive];
    const uint64_t points = firsts[primitive + 1] - firsts[primitive];
    if (entries == 0) continue;
    loads[used++] = (struct load){entries * points, (uint32_t)primitive};
    tasks->comparisons += entries * points;
    task_count += parts_of(entries, entries_of_task(options, points));
  }
  if (options->sort_work == KCP_SWITCH_ON) qsort(loads, used, sizeof *loads, heavier_first);
  tasks->tasks = malloc((task_count + 1) * sizeof *tasks->tasks);
  if (tasks->tasks == NULL) {
    free(loads);
    return kcp_out_of_memory(error, "work", task_count * sizeof *tasks->tasks);
  }
  for (uint64_t i = 0; i < used; ++i) {
    const uint32_t primitive = loads[i].primitive;
    const uint64_t last = entry_firsts[primitive + 1];
    const uint64_t step = entries_of_task(options, firsts[primitive + 1] - firsts[primitive]);
    for (uint64_t first = entry_firsts[primitive]; first < last;) {
      const uint64_t end = last - first > step ? first + step : last;
      tasks->tasks[tasks->count++] = (struct kcp_range_task){first, end, primitive};
      first = end;
    }
  }
  free(loads);
  return KCP_OK;
}

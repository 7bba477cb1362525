#include "range_results.h"

#include <stdlib.h>
#include <string.h>

#include "sort_records.h"

void kcp_range_results_free(struct kcp_range_results *results) {
  free(results->queries);
  free(results->offsets);
  free(results->neighbours);
  free(results->scratch);
  memset(results, 0, sizeof *results);
}

static bool grow(void **memory, uint64_t *capacity, uint64_t needed, size_t size) {
  if (needed <= *capacity) return true;
  uint64_t room = needed + needed / 2 + 1024;
  void *larger = realloc(*memory, room * size);
  if (larger == NULL) return false;
  *memory = larger;
  *capacity = room;
  return true;
}

enum kcp_status kcp_range_results_open(struct kcp_range_results *results, uint32_t query,
                                       struct kcp_error *error) {
  uint64_t room = results->query_capacity;
  if (results->query_count + 2 > room) {
    uint64_t offsets_room = room;
    if (!grow((void **)&results->queries, &room, results->query_count + 2,
              sizeof *results->queries) ||
        !grow((void **)&results->offsets, &offsets_room, results->query_count + 2,
              sizeof *results->offsets))
      return kcp_out_of_memory(error, "results", room * sizeof *results->offsets);
    results->query_capacity = room;
  }
  if (results->query_count == 0) results->offsets[0] = 0;
  results->queries[results->query_count] = query;
  results->offsets[results->query_count + 1] = results->offsets[results->query_count];
  ++results->query_count;
  return KCP_OK;
}

uint32_t *kcp_range_results_room(struct kcp_range_results *results, uint64_t count,
                                 struct kcp_error *error) {
  const uint64_t used = results->offsets[results->query_count];
  if (!grow((void **)&results->neighbours, &results->neighbour_capacity, used + count + 1,
            sizeof *results->neighbours)) {
    kcp_out_of_memory(error, "results", (used + count) * sizeof *results->neighbours);
    return NULL;
  }
  return results->neighbours + used;
}

enum kcp_status kcp_range_results_sort(struct kcp_range_results *results, struct kcp_error *error) {
  const uint64_t first = results->offsets[results->query_count - 1];
  const uint64_t count = results->offsets[results->query_count] - first;
  if (!grow((void **)&results->scratch, &results->scratch_capacity, count,
            sizeof *results->scratch))
    return kcp_out_of_memory(error, "results", count * sizeof *results->scratch);
  kcp_sort_records(results->neighbours + first, count, results->scratch);
  return KCP_OK;
}

enum kcp_status kcp_range_results_flush(struct kcp_range_results *results, uint64_t much,
                                        const struct kcp_range_sink *sink,
                                        struct kcp_error *error) {
  if (results->query_count == 0 ||
      (results->query_count < much && results->offsets[results->query_count] < much))
    return KCP_OK;
  const struct kcp_range_batch batch = {results->query_count, results->queries, results->offsets,
                                        results->neighbours};
  results->query_count = 0;
  return sink->take(sink->context, &batch, error);
}

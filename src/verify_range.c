/* The check of a range join: its counts again, by loops that share no code with the joins. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "kcp/interrupt.h"
#include "kcp/range_query.h"
#include "kcp/scan.h"

#define MOST_SQUARES 2e10 /* that are summed, if queries can be left out */
#define LEAST_QUERIES 256

/* Queries first, first + step, ...: all of them or an even sample. */
struct check {
  struct kcp_points queries;
  uint64_t *records; /* of each */
  uint64_t *found;   /* neighbours of each so far */
  uint64_t step;
  double square;
};

/* Keeps every step-th record of a block. */
static enum kcp_status keep(void *context, const struct kcp_points *block, uint64_t first,
                            struct kcp_error *error) {
  struct check *check = context;
  (void)error;
  for (uint64_t i = (check->step - first % check->step) % check->step; i < block->count;
       i += check->step) {
    const uint64_t at = check->queries.count++;
    check->records[at] = first + i;
    for (uint32_t j = 0; j < block->dimensions; ++j)
      kcp_points_column(&check->queries, j)[at] = kcp_points_column(block, j)[i];
  }
  return KCP_OK;
}

static enum kcp_status count_block(void *context, const struct kcp_points *block, uint64_t first,
                                   struct kcp_error *error) {
  struct check *check = context;
  (void)first;
#pragma omp parallel for schedule(dynamic, 8)
  for (uint64_t q = 0; q < check->queries.count; ++q) {
    if (kcp_interrupted()) continue;
    for (uint64_t i = 0; i < block->count; ++i) {
      double total = 0;
      for (uint32_t j = 0; j < block->dimensions && total <= check->square; ++j) {
        const double step =
            kcp_points_column(&check->queries, j)[q] - kcp_points_column(block, j)[i];
        total += step * step;
      }
      check->found[q] += total <= check->square;
    }
  }
  return kcp_interrupted() ? kcp_fail(error, KCP_INTERRUPTED, "interrupted") : KCP_OK;
}

static uint64_t step_of(double queries, double references, double dimensions) {
  const double affordable = fmax(LEAST_QUERIES, MOST_SQUARES / (references * dimensions + 1));
  return queries <= affordable ? 1 : (uint64_t)ceil(queries / affordable);
}

enum kcp_status kcp_verify_range(struct kcp_dataset *reference, struct kcp_dataset *query,
                                 double eps, const uint64_t *counts, struct kcp_error *error) {
  const uint64_t query_count = kcp_dataset_count(query);
  const uint32_t dimensions = kcp_dataset_dimensions(reference);
  struct check check = {.square = eps * eps};
  check.step = step_of((double)query_count, (double)kcp_dataset_count(reference), dimensions);
  const uint64_t kept = query_count / check.step + 1;
  enum kcp_status status = kcp_points_allocate(kept, dimensions, &check.queries, error);
  check.records = calloc(kept, sizeof *check.records);
  check.found = calloc(kept, sizeof *check.found);
  if (status == KCP_OK && (check.records == NULL || check.found == NULL))
    status = kcp_out_of_memory(error, "verifying", kept * sizeof *check.records);
  if (status == KCP_OK) status = kcp_scan(query, keep, &check, NULL, error);
  if (status == KCP_OK) status = kcp_scan(reference, count_block, &check, NULL, error);
  for (uint64_t i = 0; i < check.queries.count && status == KCP_OK; ++i)
    if (counts[check.records[i]] != check.found[i])
      status = kcp_fail(error, KCP_WRONG_ANSWER,
                        "wrong answer: query %" PRIu64 " has %" PRIu64 " neighbours, not %" PRIu64,
                        check.records[i], check.found[i], counts[check.records[i]]);
  kcp_points_free(&check.queries);
  free(check.records);
  free(check.found);
  return status;
}

/* Tests a query against a run of points in tiles, and ranks again what the filter leaves open
 * (CPU). */
#ifndef KCP_CPU_RANGE_SCAN_H
#define KCP_CPU_RANGE_SCAN_H

#include "range_results.h"
#include "range_tiles.h"

/* What is searched: points in tiles, whose point i is the slice's records[i]. */
struct kcp_range_scan {
  const struct kcp_range_tiles *tiles;
  const uint32_t *records;
  const struct kcp_points *slice;
  struct kcp_range_limit limit;
};

struct kcp_range_scan_query {
  const double *values; /* in the order of the tiles' dimensions */
  const struct kcp_points *points;
  uint32_t place; /* among the points */
};

/* Grows as queries are tested. */
struct kcp_range_scan_work {
  uint64_t evaluations;
  uint64_t rechecks;
};

/* Adds the neighbours among points first .. last - 1 of the tiles to *count and, unless results is
 * NULL, to its open list. */
enum kcp_status kcp_range_scan_points(const struct kcp_range_scan *scan,
                                      const struct kcp_range_scan_query *query, uint64_t first,
                                      uint64_t last, uint64_t *count,
                                      struct kcp_range_results *results,
                                      struct kcp_range_scan_work *work, struct kcp_error *error);

#endif

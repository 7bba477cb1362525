/* Brute force k closest pairs for the tests: every pair, its rank in binary64 coordinate by
 * coordinate, the first k in the order (rank, id1, id2).
 *
 * It shares no code and no headers with the program that it checks. Time O(n1 n2 d); memory O(k).
 */
#ifndef KCP_TESTS_ORACLE_H
#define KCP_TESTS_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

enum oracle_metric { ORACLE_L1, ORACLE_L2, ORACLE_LINF, ORACLE_LP };

/* Coordinates lie record after record: coordinate j of record i is coordinates[i * dimensions + j].
 */
struct oracle_points {
  uint64_t count;
  uint32_t dimensions;
  const uint64_t *ids;
  const double *coordinates;
};

struct oracle_question {
  uint64_t k;
  enum oracle_metric metric;
  unsigned power;      /* t of ORACLE_LP */
  bool self;           /* pairs of distinct records of one set */
  double max_distance; /* INFINITY: any */
};

struct oracle_pair {
  double rank;
  uint64_t id1;
  uint64_t id2;
};

/* The answer into `pairs` (room for k); returns how many it has. With self, `query` is the same set
 * as `reference`. */
uint64_t oracle_closest_pairs(const struct oracle_points *reference,
                              const struct oracle_points *query,
                              const struct oracle_question *question, struct oracle_pair *pairs);

/* The rank of one pair of points, and of a distance. */
double oracle_rank(enum oracle_metric metric, unsigned power, uint32_t dimensions, const double *a,
                   const double *b);
double oracle_rank_of_distance(enum oracle_metric metric, unsigned power, double distance);

#endif

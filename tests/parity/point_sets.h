/* Point sets for the parity tests, made in memory, and their files. */
#ifndef KCP_TESTS_POINT_SETS_H
#define KCP_TESTS_POINT_SETS_H

#include <stdint.h>

/* Coordinates lie record after record. The maker owns it: free with points_free. */
struct point_set {
  uint64_t count;
  uint32_t dimensions;
  uint64_t *ids;
  double *coordinates;
};

/* Two sets of one shape lie in the same place, so that they have close pairs and ties. */
enum shape {
  SHAPE_UNIFORM,   /* [0,1) */
  SHAPE_CENTRED,   /* [-1,1) */
  SHAPE_CLUSTERED, /* five clusters of width 1e-3 */
  SHAPE_GRID,      /* whole numbers from -3 to 3: ties */
  SHAPE_EQUAL,     /* all at one place */
  SHAPE_BITS,      /* the paper's bit distribution with 4 digits: many coincident pairs */
  SHAPE_UTM,       /* near 5e6, spaced 1e-3 */
  SHAPE_ULPS,      /* eighths from -1 to 1, and up to two numbers beside them */
  SHAPE_WALL,      /* x constant, the others in [0,1) */
  SHAPE_TINY,      /* [-1e-30, 1e-30) */
  SHAPE_LARGE,     /* [-1e30, 1e30) */
  SHAPE_COUNT
};

enum numbering {
  IDS_ASCENDING,  /* the record number */
  IDS_DESCENDING, /* count - 1 .. 0 */
  IDS_NEAR_TOP,   /* 2^64 - 1, 2^64 - 2, ... */
  IDS_RANDOM,     /* 64 bits */
  IDS_DUPLICATED, /* record number modulo 7 */
  IDS_COUNT
};

enum file_format {
  FILE_BIN, /* 3 dimensions */
  FILE_CSV, /* with ids */
  FILE_NPY  /* ids are record numbers */
};

uint64_t random_next(uint64_t *random);
uint64_t random_below(uint64_t *random, uint64_t limit);
double random_unit(uint64_t *random);

struct point_set points_make(enum shape shape, uint64_t count, uint32_t dimensions, uint64_t seed);
void points_number(struct point_set *points, enum numbering numbering, uint64_t seed);
void points_set_coordinate(struct point_set *points, uint32_t coordinate, double value);
void points_free(struct point_set *points);

/* Writes the set into the scratch folder; the path is good for four calls. */
const char *points_write(const struct point_set *points, enum file_format format, const char *name);

/* The folder of the files: cmocka group set-up and tear-down. */
int points_folder_make(void **state);
int points_folder_remove(void **state);

#endif

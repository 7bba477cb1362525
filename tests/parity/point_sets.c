#include "point_sets.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../data/scratch_folder.h"

uint64_t random_next(uint64_t *random) { /* splitmix64 */
  uint64_t z = *random += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

uint64_t random_below(uint64_t *random, uint64_t limit) {
  return random_next(random) % limit;
}

double random_unit(uint64_t *random) {
  return (double)(random_next(random) >> 11) * 0x1p-53;
}

static double random_bits(uint64_t *random) {
  double sum = 0;
  for (int digit = 1; digit <= 4; ++digit)
    if (random_unit(random) < 0.2) sum += ldexp(1, -digit);
  return sum;
}

static double random_ulps(uint64_t *random) {
  double value = ((double)random_below(random, 17) - 8) / 8;
  uint64_t steps = value == 0 ? 0 : random_below(random, 3); /* not down to subnormal numbers */
  double towards = random_below(random, 2) ? 10 : -10;
  while (steps-- > 0) value = nextafter(value, towards);
  return value;
}

static double coordinate_of(enum shape shape, uint32_t coordinate, uint64_t cluster,
                            uint64_t *random) {
  switch (shape) {
    case SHAPE_UNIFORM: return random_unit(random);
    case SHAPE_CENTRED: return 2 * random_unit(random) - 1;
    case SHAPE_CLUSTERED:
      return (double)((cluster * 7 + coordinate * 3) % 11) + 1e-3 * random_unit(random);
    case SHAPE_GRID: return (double)random_below(random, 7) - 3;
    case SHAPE_EQUAL: return 0.1;
    case SHAPE_BITS: return random_bits(random);
    case SHAPE_UTM: return 5e6 + 1e-3 * (double)random_below(random, 300);
    case SHAPE_ULPS: return random_ulps(random);
    case SHAPE_WALL: return coordinate == 0 ? -7.25 : random_unit(random);
    case SHAPE_TINY: return 1e-30 * (2 * random_unit(random) - 1);
    case SHAPE_LARGE: return 1e30 * (2 * random_unit(random) - 1);
    case SHAPE_COUNT: break;
  }
  abort();
}

struct point_set points_make(enum shape shape, uint64_t count, uint32_t dimensions, uint64_t seed) {
  struct point_set points = {.count = count, .dimensions = dimensions};
  uint64_t random = seed;
  points.ids = malloc((count + 1) * sizeof *points.ids);
  points.coordinates = malloc((count + 1) * dimensions * sizeof *points.coordinates);
  if (points.ids == NULL || points.coordinates == NULL) abort();
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t cluster = random_below(&random, 5);
    points.ids[i] = i;
    for (uint32_t j = 0; j < dimensions; ++j)
      points.coordinates[i * dimensions + j] = coordinate_of(shape, j, cluster, &random);
  }
  return points;
}

void points_number(struct point_set *points, enum numbering numbering, uint64_t seed) {
  uint64_t random = seed;
  for (uint64_t i = 0; i < points->count; ++i) switch (numbering) {
      case IDS_ASCENDING: points->ids[i] = i; break;
      case IDS_DESCENDING: points->ids[i] = points->count - 1 - i; break;
      case IDS_NEAR_TOP: points->ids[i] = UINT64_MAX - i; break;
      case IDS_RANDOM: points->ids[i] = random_next(&random); break;
      case IDS_DUPLICATED: points->ids[i] = i % 7; break;
      case IDS_COUNT: abort();
    }
}

void points_set_coordinate(struct point_set *points, uint32_t coordinate, double value) {
  for (uint64_t i = 0; i < points->count; ++i)
    points->coordinates[i * points->dimensions + coordinate] = value;
}

void points_free(struct point_set *points) {
  free(points->ids);
  free(points->coordinates);
  memset(points, 0, sizeof *points);
}

static void write_bin(const struct point_set *points, FILE *file) {
  if (points->dimensions != 3) abort();
  for (uint64_t i = 0; i < points->count; ++i)
    if (fwrite(&points->ids[i], 8, 1, file) != 1 ||
        fwrite(&points->coordinates[3 * i], 8, 3, file) != 3)
      abort();
}

static void write_csv(const struct point_set *points, FILE *file) {
  fprintf(file, "id");
  for (uint32_t j = 0; j < points->dimensions; ++j) fprintf(file, ",c%" PRIu32, j);
  for (uint64_t i = 0; i < points->count; ++i) {
    fprintf(file, "\n%" PRIu64, points->ids[i]);
    for (uint32_t j = 0; j < points->dimensions; ++j)
      fprintf(file, ",%.17g", points->coordinates[i * points->dimensions + j]);
  }
  fprintf(file, "\n");
}

static void write_npy(const struct point_set *points, FILE *file) {
  char header[119]; /* with what is before it, 128 bytes, as NumPy pads it */
  int length =
      snprintf(header, sizeof header,
               "{'descr': '<f8', 'fortran_order': False, 'shape': (%" PRIu64 ", %" PRIu32 "), }",
               points->count, points->dimensions);
  memset(header + length, ' ', sizeof header - (size_t)length);
  header[117] = '\n';
  fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
  fwrite(header, 1, 118, file);
  fwrite(points->coordinates, sizeof(double) * points->dimensions, points->count, file);
}

const char *points_write(const struct point_set *points, enum file_format format,
                         const char *name) {
  static const char *const endings[] = {"bin", "csv", "npy"};
  char whole_name[64];
  snprintf(whole_name, sizeof whole_name, "%s.%s", name, endings[format]);
  const char *path = scratch_path(whole_name);
  FILE *file = fopen(path, "wb");
  if (file == NULL) abort();
  if (format == FILE_BIN) write_bin(points, file);
  if (format == FILE_CSV) write_csv(points, file);
  if (format == FILE_NPY) write_npy(points, file);
  if (ferror(file) || fclose(file) != 0) abort();
  return path;
}

int points_folder_make(void **state) {
  return make_scratch_folder(state);
}

int points_folder_remove(void **state) {
  return remove_scratch_folder(state);
}

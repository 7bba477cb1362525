#include "kcp/generate.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/random.h"

_Static_assert(FLT_EVAL_METHOD == 0, "same bytes everywhere need plain binary64 arithmetic");

/* Independent sequences of draws: one for (x, y), one for the further set that gives z. */
enum { STREAM_POINT = 0, STREAM_FURTHER_SET = 1, STREAM_FURTHER_ORDER = 2 };

/* A .bin file of more records would pass 2^63 bytes. */
#define LARGEST_COUNT ((UINT64_C(1) << 58) - 1)
#define SQRT_HALF 0.70710678118654752440
#define SQRT_TWO 1.41421356237309504880
#define HALF_SQRT_THREE 0.86602540378443864676
#define LN_TWO 0.69314718055994530942

struct kcp_generator {
  struct kcp_generate_options options;
  uint64_t bit_threshold; /* bit_probability in binary, its first digit in the highest bit */
};

struct plane_point {
  double x, y;
};

struct box {
  double x, y, width, height;
};

/* Fills x[0..count) and, unless NULL, y with records first .. first + count - 1 of a 2-D set. */
typedef void fill_function(const struct kcp_generator *generator, uint32_t stream, uint64_t first,
                           uint64_t count, double *x, double *y);

static bool in_unit_square(struct plane_point point) {
  return point.x >= 0.0 && point.x <= 1.0 && point.y >= 0.0 && point.y <= 1.0;
}

/* Natural logarithm of a normal positive number, relative error below 2^-51, by operations that
 * IEEE 754 rounds correctly: the C library's may differ from machine to machine. */
static double logarithm(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  int exponent = (int)(bits >> 52) - 1023;
  bits = (bits & UINT64_C(0x000FFFFFFFFFFFFF)) | UINT64_C(0x3FF0000000000000);
  double mantissa;
  memcpy(&mantissa, &bits, sizeof mantissa);
  if (mantissa > SQRT_TWO) {
    mantissa *= 0.5;
    ++exponent;
  }
  /* ln m = 2 artanh((m - 1) / (m + 1)); |t| < 0.172, so t^22 / 23 is below 2^-58. */
  const double t = (mantissa - 1.0) / (mantissa + 1.0);
  const double t2 = t * t;
  double series = 1.0 / 21.0;
  series = series * t2 + 1.0 / 19.0;
  series = series * t2 + 1.0 / 17.0;
  series = series * t2 + 1.0 / 15.0;
  series = series * t2 + 1.0 / 13.0;
  series = series * t2 + 1.0 / 11.0;
  series = series * t2 + 1.0 / 9.0;
  series = series * t2 + 1.0 / 7.0;
  series = series * t2 + 1.0 / 5.0;
  series = series * t2 + 1.0 / 3.0;
  return exponent * LN_TWO + 2.0 * (t + t * (t2 * series));
}

/* Two independent N(0, 1) numbers by Marsaglia's polar method, from draws *draw, *draw + 1, ...
 * of record `index`; *draw is left behind the last one used. */
static struct plane_point normal_pair(uint64_t seed, uint32_t stream, uint64_t index,
                                      uint32_t *draw) {
  for (;;) {
    const struct kcp_random_pair bits = kcp_random_pair(seed, stream, index, (*draw)++);
    const double u = 2.0 * kcp_random_unit(bits.first) - 1.0;
    const double v = 2.0 * kcp_random_unit(bits.second) - 1.0;
    const double s = u * u + v * v;
    if (s >= 1.0 || s == 0.0) continue;
    const double factor = sqrt(-2.0 * logarithm(s) / s);
    return (struct plane_point){u * factor, v * factor};
  }
}

static void fill_uniform(const struct kcp_generator *generator, uint32_t stream, uint64_t first,
                         uint64_t count, double *x, double *y) {
  const uint64_t seed = generator->options.seed;
  for (uint64_t i = 0; i < count; ++i) {
    const struct kcp_random_pair bits = kcp_random_pair(seed, stream, first + i, 0);
    x[i] = kcp_random_unit(bits.first);
    if (y) y[i] = kcp_random_unit(bits.second);
  }
}

static void fill_gaussian(const struct kcp_generator *generator, uint32_t stream, uint64_t first,
                          uint64_t count, double *x, double *y) {
  const struct kcp_generate_options *options = &generator->options;
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t draw = 0;
    struct plane_point point;
    do {
      point = normal_pair(options->seed, stream, first + i, &draw);
      point.x = options->gaussian_mean + options->gaussian_deviation * point.x;
      point.y = options->gaussian_mean + options->gaussian_deviation * point.y;
    } while (!in_unit_square(point));
    x[i] = point.x;
    if (y) y[i] = point.y;
  }
}

static void fill_diagonal(const struct kcp_generator *generator, uint32_t stream, uint64_t first,
                          uint64_t count, double *x, double *y) {
  const struct kcp_generate_options *options = &generator->options;
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t draw = 0;
    struct plane_point point;
    do {
      const struct kcp_random_pair bits = kcp_random_pair(options->seed, stream, first + i, draw++);
      const double centre = kcp_random_unit(bits.second);
      double offset = 0.0;
      if (kcp_random_unit(bits.first) >= options->diagonal_percentage) {
        const double normal = normal_pair(options->seed, stream, first + i, &draw).x;
        offset = options->diagonal_buffer / 5.0 * normal * SQRT_HALF;
      }
      point = (struct plane_point){centre + offset, centre - offset};
    } while (!in_unit_square(point));
    x[i] = point.x;
    if (y) y[i] = point.y;
  }
}

/* The smallest 53-bit number k for which U = k 2^-53 is not below the probability, aligned to the
 * highest bit; a probability of 1 does not fit and is told apart by the caller. */
static uint64_t bit_threshold(double probability) {
  return (uint64_t)ceil(probability * 0x1p53) << 11;
}

/* One bit of each coordinate per lane: lane j of a pair of words is 1 when the number whose binary
 * digits are lane j of successive draws is below the threshold. A lane is decided at the first
 * digit that differs from the threshold's, so a record takes about 1 + log2(2 digits) draws. */
static struct kcp_random_pair bernoulli_lanes(uint64_t seed, uint32_t stream, uint64_t index,
                                              uint64_t threshold, uint64_t lanes) {
  struct kcp_random_pair ones = {0, 0};
  struct kcp_random_pair open = {lanes, lanes};
  for (uint32_t draw = 0; threshold && (open.first | open.second); ++draw, threshold <<= 1) {
    const struct kcp_random_pair digit = kcp_random_pair(seed, stream, index, draw);
    if (threshold >> 63) {
      ones.first |= open.first & ~digit.first;
      ones.second |= open.second & ~digit.second;
      open.first &= digit.first;
      open.second &= digit.second;
    } else {
      open.first &= ~digit.first;
      open.second &= ~digit.second;
    }
  }
  return ones;
}

static void fill_bit(const struct kcp_generator *generator, uint32_t stream, uint64_t first,
                     uint64_t count, double *x, double *y) {
  const struct kcp_generate_options *options = &generator->options;
  const uint64_t lanes = (UINT64_C(1) << options->bit_digits) - 1;
  const double weight = 1.0 / (double)(UINT64_C(1) << options->bit_digits);
  for (uint64_t i = 0; i < count; ++i) {
    struct kcp_random_pair ones = {lanes, lanes};
    if (options->bit_probability < 1.0) {
      ones = bernoulli_lanes(options->seed, stream, first + i, generator->bit_threshold, lanes);
    }
    x[i] = (double)ones.first * weight;
    if (y) y[i] = (double)ones.second * weight;
  }
}

/* The chain of midpoints moves half way to corner c_j at step j: record i is where steps i .. i+63
 * lead, older ones weigh less than 2^-63. In binary, bit b of right (of top) says that the step of
 * weight 2^(b-64) went to corner (1, 0) (to corner (1/2, sqrt(3)/2)); a step shifts both. */
static void fill_sierpinski(const struct kcp_generator *generator, uint32_t stream, uint64_t first,
                            uint64_t count, double *x, double *y) {
  enum { WINDOW = 64 };
  uint64_t right = 0, top = 0;
  struct kcp_random_words words = {{0, 0, 0, 0}};
  for (uint64_t step = first; step < first + count + WINDOW - 1; ++step) {
    if (step == first || step % 4 == 0) {
      words = kcp_random_words(generator->options.seed, stream, step / 4, 0);
    }
    const uint64_t fifth = (uint64_t)words.word[step % 4] * 5 >> 32;
    right = right >> 1 | (uint64_t)(fifth == 2 || fifth == 3) << 63;
    top = top >> 1 | (uint64_t)(fifth == 4) << 63;
    if (step - first < WINDOW - 1) continue;
    const uint64_t i = step - first - (WINDOW - 1);
    x[i] = kcp_random_unit(right + (top >> 1));
    if (y) y[i] = kcp_random_unit(top) * HALF_SQRT_THREE;
  }
}

/* The part of its parent's box that node `child` gets. The parent is cut across its longer side at
 * a random place in [r, 1 - r] of the side; even children lie before the cut. */
static struct box parcel_child(const struct kcp_generator *generator, uint32_t stream,
                               struct box box, uint64_t child) {
  const double range = generator->options.parcel_split_range;
  double share = 0.5;
  if (range < 0.5) {
    const uint64_t bits = kcp_random_pair(generator->options.seed, stream, child / 2, 0).first;
    share = range + (1.0 - 2.0 * range) * kcp_random_unit(bits);
  }
  double *start = box.width > box.height ? &box.x : &box.y;
  double *side = box.width > box.height ? &box.width : &box.height;
  const double cut = *side * share;
  if (child % 2 == 0) {
    *side = cut;
  } else {
    *start += cut;
    *side -= cut;
  }
  return box;
}

static int parcel_depth(uint64_t node) {
  return 63 - __builtin_clzll(node);
}

/* Splitting the first box of a queue until it holds n boxes numbers them like a binary heap: node
 * j is split into 2j and 2j + 1, and box i is node n + i. Neighbours share most of their path from
 * the root, which `path` keeps from box to box: about two splits a record. */
struct parcel_walk {
  uint64_t node; /* whose boxes are in path; 0 before the first */
  struct box path[64];
};

static struct box parcel_box(const struct kcp_generator *generator, uint32_t stream, uint64_t node,
                             struct parcel_walk *walk) {
  const int depth = parcel_depth(node);
  int known = 0;
  if (walk->node == 0) {
    walk->path[0] = (struct box){0.0, 0.0, 1.0, 1.0};
  } else if (parcel_depth(walk->node) == depth) {
    known = walk->node == node ? depth : depth - 1 - parcel_depth(walk->node ^ node);
  }
  for (int level = known + 1; level <= depth; ++level) {
    const uint64_t child = node >> (depth - level);
    walk->path[level] = parcel_child(generator, stream, walk->path[level - 1], child);
  }
  walk->node = node;
  return walk->path[depth];
}

/* A pseudorandom permutation of 0 .. count - 1 (a Feistel network on the next even number of bits,
 * walked until it lands inside). */
static uint64_t shuffled(uint64_t seed, uint64_t count, uint64_t index) {
  enum { FEISTEL_ROUNDS = 4 };
  const int half_bits = count > 1 ? parcel_depth(count - 1) / 2 + 1 : 1;
  const uint64_t half_mask = (UINT64_C(1) << half_bits) - 1;
  do {
    uint64_t left = index >> half_bits, right = index & half_mask;
    for (uint32_t round = 0; round < FEISTEL_ROUNDS; ++round) {
      const uint64_t mixed = kcp_random_pair(seed, STREAM_FURTHER_ORDER, right, round).first;
      const uint64_t next = left ^ (mixed & half_mask);
      left = right;
      right = next;
    }
    index = left << half_bits | right;
  } while (index >= count);
  return index;
}

/* Boxes come in the order of the queue, that is of place: the further set is shuffled, or z would
 * follow x. */
static void fill_parcel(const struct kcp_generator *generator, uint32_t stream, uint64_t first,
                        uint64_t count, double *x, double *y) {
  const struct kcp_generate_options *options = &generator->options;
  struct parcel_walk walk = {.node = 0};
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t record = first + i;
    if (stream == STREAM_FURTHER_SET) record = shuffled(options->seed, options->count, record);
    const uint64_t node = options->count + record;
    const struct box box = parcel_box(generator, stream, node, &walk);
    const struct kcp_random_pair bits = kcp_random_pair(options->seed, stream, node, 1);
    const double width = box.width * (1.0 - options->parcel_dither * kcp_random_unit(bits.first));
    const double height =
        box.height * (1.0 - options->parcel_dither * kcp_random_unit(bits.second));
    x[i] = box.x + width / 2.0;
    if (y) y[i] = box.y + height / 2.0;
  }
}

static fill_function *const fill_functions[] = {
    [KCP_UNIFORM] = fill_uniform,   [KCP_GAUSSIAN] = fill_gaussian,     [KCP_BIT] = fill_bit,
    [KCP_DIAGONAL] = fill_diagonal, [KCP_SIERPINSKI] = fill_sierpinski, [KCP_PARCEL] = fill_parcel,
};
#define DISTRIBUTION_COUNT (sizeof fill_functions / sizeof fill_functions[0])

const char *const kcp_distributions[] = {"uniform",    "gaussian", "bit", "diagonal",
                                         "sierpinski", "parcel",   NULL};

struct kcp_generate_options kcp_generate_defaults(void) {
  return (struct kcp_generate_options){
      .distribution = KCP_UNIFORM,
      .seed = 1,
      .dimensions = 2,
      .gaussian_mean = 0.5,
      .gaussian_deviation = 0.1,
      .bit_probability = 0.2,
      .bit_digits = 10,
      .diagonal_percentage = 0.5,
      .diagonal_buffer = 0.5,
      .parcel_split_range = 0.5,
      .parcel_dither = 0.5,
  };
}

enum kcp_status kcp_generate_check(const struct kcp_generate_options *options,
                                   struct kcp_error *error) {
  /* A mean outside the square or a wide spread would draw points again without end. */
  const struct {
    const char *name;
    double value, least, most;
  } ranges[] = {
      {"the mean of gaussian", options->gaussian_mean, 0.0, 1.0},
      {"the deviation of gaussian", options->gaussian_deviation, 0.0, 10.0},
      {"the probability of bit", options->bit_probability, 0.0, 1.0},
      {"the number of digits of bit", options->bit_digits, 1.0, 53.0},
      {"the percentage of diagonal", options->diagonal_percentage, 0.0, 1.0},
      {"the buffer of diagonal", options->diagonal_buffer, 0.0, 10.0},
      {"the split range of parcel", options->parcel_split_range, 0.0, 0.5},
      {"the dither of parcel", options->parcel_dither, 0.0, 1.0},
  };
  for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; ++i) {
    if (ranges[i].value >= ranges[i].least && ranges[i].value <= ranges[i].most) continue;
    return kcp_fail(error, KCP_BAD_INPUT, "%s is %.17g, but must be from %g to %g", ranges[i].name,
                    ranges[i].value, ranges[i].least, ranges[i].most);
  }
  if ((uint64_t)options->distribution >= DISTRIBUTION_COUNT) {
    return kcp_fail(error, KCP_BAD_INPUT, "there is no distribution number %lld",
                    (long long)options->distribution);
  }
  if (options->dimensions != 2 && options->dimensions != 3) {
    return kcp_fail(error, KCP_BAD_INPUT, "points have 2 or 3 dimensions, not %u",
                    options->dimensions);
  }
  if (options->count > LARGEST_COUNT) {
    return kcp_fail(error, KCP_BAD_INPUT, "%llu points are more than the limit of %llu",
                    (unsigned long long)options->count, (unsigned long long)LARGEST_COUNT);
  }
  return KCP_OK;
}

enum kcp_status kcp_generator_create(const struct kcp_generate_options *options,
                                     struct kcp_generator **out, struct kcp_error *error) {
  *out = NULL;
  const enum kcp_status status = kcp_generate_check(options, error);
  if (status) return status;
  struct kcp_generator *generator = malloc(sizeof *generator);
  if (!generator) return kcp_out_of_memory(error, "the generator", sizeof *generator);
  generator->options = *options;
  generator->bit_threshold =
      options->bit_probability < 1.0 ? bit_threshold(options->bit_probability) : 0;
  *out = generator;
  return KCP_OK;
}

void kcp_generator_free(struct kcp_generator *generator) {
  free(generator);
}

void kcp_generate_block(const struct kcp_generator *generator, uint64_t first, uint64_t count,
                        struct kcp_points *points) {
  fill_function *const fill = fill_functions[generator->options.distribution];
  double *const z = kcp_points_column(points, 2);
  points->count = count;
  if (count == 0) return;
  for (uint64_t i = 0; i < count; ++i) points->ids[i] = first + i;
  fill(generator, STREAM_POINT, first, count, kcp_points_column(points, 0),
       kcp_points_column(points, 1));
  if (generator->options.dimensions == 3) {
    fill(generator, STREAM_FURTHER_SET, first, count, z, NULL);
  } else {
    memset(z, 0, count * sizeof *z);
  }
}

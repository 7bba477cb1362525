/* Synthetic point sets with the definitions of the SpiderWeb generator (k-CP paper, section 2.6).
 *
 * Record i is a pure function of (options, i), computed with operations that IEEE 754 rounds
 * correctly: same seed, same bytes, on every machine and thread count. */
#ifndef KCP_GENERATE_H
#define KCP_GENERATE_H

#include <stdint.h>

#include "kcp/points.h"
#include "kcp/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum kcp_distribution {
  KCP_UNIFORM,    /* U on [0,1) */
  KCP_GAUSSIAN,   /* N(mean, deviation) per coordinate, drawn again outside the unit square */
  KCP_BIT,        /* sum over i of b_i 2^-i, b_i = 1 with probability bit_probability */
  KCP_DIAGONAL,   /* on the diagonal with probability percentage, else beside it */
  KCP_SIERPINSKI, /* midpoints towards the corners of a triangle: 2/5, 2/5, 1/5 */
  KCP_PARCEL      /* centres of boxes split again and again across the longer side */
};

/* Their names, in that order; ends with NULL. */
extern const char *const kcp_distributions[];

struct kcp_generate_options {
  enum kcp_distribution distribution;
  uint64_t count;
  uint64_t seed;
  uint32_t dimensions; /* 2: z = 0; 3: z is the x of a further set (paper 2.6) */
  double gaussian_mean, gaussian_deviation;    /* 0.5, 0.1 */
  double bit_probability;                      /* 0.2 */
  uint32_t bit_digits;                         /* 10; at most 53 */
  double diagonal_percentage, diagonal_buffer; /* 0.5, 0.5 */
  double parcel_split_range, parcel_dither;    /* r 0.5, dither 0.5 */
};

struct kcp_generate_options kcp_generate_defaults(void);

/* KCP_BAD_INPUT when a parameter is out of its range. */
enum kcp_status kcp_generate_check(const struct kcp_generate_options *options,
                                   struct kcp_error *error);

/* A generator holds what a distribution needs beyond the options (the boxes of parcel, else
 * nothing); kcp_generate_block is safe to call from several threads. */
struct kcp_generator;
enum kcp_status kcp_generator_create(const struct kcp_generate_options *options,
                                     struct kcp_generator **out, struct kcp_error *error);
void kcp_generator_free(struct kcp_generator *generator); /* NULL is allowed */

/* Writes records first .. first + count - 1 into `points` (caller's memory, 3 columns), ids are
 * record numbers. */
void kcp_generate_block(const struct kcp_generator *generator, uint64_t first, uint64_t count,
                        struct kcp_points *points);

#ifdef __cplusplus
}
#endif
#endif

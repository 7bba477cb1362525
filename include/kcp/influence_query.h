/* An influence query of the command line: what was run, for summary, report and files. */
#ifndef KCP_INFLUENCE_QUERY_H
#define KCP_INFLUENCE_QUERY_H

#include <stdbool.h>
#include <stdio.h>

#include "kcp/influence.h"
#include "kcp/request.h"
#include "kcp/site_file.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kcp_influence_difference; /* influence_what_if.h */

enum kcp_influence_answer_kind { KCP_INFLUENCE_PAIRS, KCP_INFLUENCE_PARTNERS };

/* A pair of sites with what they share, in units of the density; of partners, a site of P with the
 * least that it shares with any chosen site of Q (id2 and bounds are those of one such pair). */
struct kcp_influence_row {
  uint64_t id1, id2;
  double area, lower, upper;
  uint64_t units[3]; /* the same as they were summed, by enum kcp_units_of */
};

enum kcp_units_of { KCP_UNITS_AREA, KCP_UNITS_LOWER, KCP_UNITS_UPPER };

/* Sets area and bounds from the units. */
void kcp_influence_row_weigh(struct kcp_influence_row *row, const struct kcp_cell_weights *weights);

/* What kcp_result has of an influence query in place of pairs. */
struct kcp_influence_result {
  enum kcp_influence_answer_kind kind;
  const struct kcp_influence_options *options;
  uint64_t k[2];
  const struct kcp_site_file *files[2];
  struct kcp_domain domain;
  uint64_t nodata_count; /* regions of the density without a value */
  double total_weight;   /* of the domain */
  double outside_weight; /* of the density outside the domain */

  struct kcp_influence_row *rows; /* owned; by (id1, id2), or by area with --list-areas */
  uint64_t row_count;
  uint64_t answer_counts[KCP_MAX_MIN_WEIGHTS]; /* rows that reach each W0; [0] alone without W0 */

  const struct kcp_influence_difference *difference; /* of a what-if; else NULL */

  uint32_t depth;     /* times that cells were split */
  uint64_t undecided; /* pairs of groups with a W0 between their bounds */
  double widest;      /* the largest upper - lower */
};

bool kcp_asks_for_influence(const struct kcp_request *request);

/* kcp_command_query for common influence regions. */
enum kcp_status kcp_influence_query(const struct kcp_request *request, struct kcp_error *error);

/* Rows of the chosen sites from the sums of their groups. Sets rows, row_count and
 * answer_counts. */
enum kcp_status kcp_influence_take_rows(const struct kcp_influence_plan *plan,
                                        const struct kcp_influence_sums *sums,
                                        struct kcp_influence_result *result,
                                        struct kcp_error *error);

/* Whether a row belongs to the answer for a W0; 0 asks for anything shared. */
bool kcp_influence_reaches(const struct kcp_influence_row *row, double min_weight);

/* `id1,id2,area,lower,upper` lines, or `id` of partners; with several W0 a first column
 * min_weight. Or an array of JSON objects. Errors stay in the stream. */
void kcp_influence_write_csv(FILE *stream, const struct kcp_influence_result *result);
void kcp_influence_write_json(FILE *stream, const struct kcp_influence_result *result);

/* FNV-1a over ids and bits of every row. */
uint64_t kcp_influence_checksum(const struct kcp_influence_result *result);

/* Lines of the summary: what is asked, and what was found. */
void kcp_influence_summary_begin(FILE *stream, const struct kcp_influence_result *result);
void kcp_influence_summary_end(FILE *stream, const struct kcp_influence_result *result,
                               bool verified);

/* Computes the grid's areas of all rows again by brute force with code of its own, or, when cells
 * were split, checks that a finer grid agrees with the bounds. KCP_WRONG_ANSWER says what is
 * wrong. */
enum kcp_status kcp_verify_influence(const struct kcp_influence_plan *plan,
                                     const struct kcp_influence_result *result,
                                     struct kcp_error *error);

#ifdef __cplusplus
}
#endif
#endif

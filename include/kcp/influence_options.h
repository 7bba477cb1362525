/* What the command line says about common influence regions. */
#ifndef KCP_INFLUENCE_OPTIONS_H
#define KCP_INFLUENCE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "kcp/density.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kcp_flag;

#define KCP_MAX_MIN_WEIGHTS 32

/* W0, ascending. */
struct kcp_min_weights {
  double values[KCP_MAX_MIN_WEIGHTS];
  uint32_t count; /* 0: every pair that shares anything */
};

struct kcp_grid_size {
  uint32_t rows, columns;
};

/* --domain; `given` tells whether it was. */
struct kcp_domain_option {
  bool given;
  struct kcp_domain domain;
};

enum kcp_site_weight_choice { KCP_WEIGHTS_FROM_FILE, KCP_WEIGHTS_EQUAL };

struct kcp_influence_options {
  uint64_t k2; /* --k2: k'; 0 = as k */
  struct kcp_min_weights min_weights;
  const char *density_path; /* NULL: plain area */
  int density_is;           /* enum kcp_density_kind */
  struct kcp_domain_option domain;
  struct kcp_grid_size grid;
  int method;           /* enum kcp_influence_method */
  double tolerance;     /* largest upper - lower; 0 = not given */
  bool decide;          /* split cells until every W0 is decided */
  const char *p_select; /* P': ids, column:NAME or a file of ids; NULL = all */
  const char *q_select; /* Q' */
  int site_weights;     /* enum kcp_site_weight_choice */
  bool list_areas;      /* all pairs by area */
  const char *add;      /* --add, --remove, --reweight: what if; NULL = nothing */
  const char *remove;
  const char *reweight;
  const char *map_path; /* .png or .asc; NULL = none */
  const char *map_show; /* "p:ID", "q:ID" or "pair:ID1,ID2"; NULL = no region */
};

/* Values of flags: "400x300", "0,0,10,10", "20,50,100". Each writes to the field of its flag;
 * KCP_BAD_INPUT with one line. */
enum kcp_status kcp_parse_grid(const struct kcp_flag *flag, const char *text, void *field,
                               struct kcp_error *error);
enum kcp_status kcp_parse_domain(const struct kcp_flag *flag, const char *text, void *field,
                                 struct kcp_error *error);
enum kcp_status kcp_parse_min_weights(const struct kcp_flag *flag, const char *text, void *field,
                                      struct kcp_error *error);

#ifdef __cplusplus
}
#endif
#endif

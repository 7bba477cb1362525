/* Files of weighted sites, and the subsets that are chosen from them. */
#ifndef KCP_SITE_FILE_H
#define KCP_SITE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "kcp/density.h"
#include "kcp/points.h"
#include "kcp/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Squares of weights, and their quotients, stay within binary64. */
#define KCP_LARGEST_SITE_WEIGHT 1e75
#define KCP_SMALLEST_SITE_WEIGHT 1e-75

struct kcp_site_file_options {
  const char *columns;     /* --columns, or NULL */
  const char *select;      /* ids "3,17", "column:NAME" or the path of a file of ids; NULL = all */
  const char *select_flag; /* its flag, for messages */
  bool equal_weights;      /* every weight is 1 */
};

struct kcp_site_file {
  const char *path;
  const char *format;
  uint64_t file_bytes;
  struct kcp_points sites; /* three columns: x, y, weight; owned */
  bool has_weights;        /* the file has; else all are 1 */
  bool *chosen;            /* a flag a site; owned */
  uint64_t chosen_count;
};

/* Reads a point file: coordinates x, y, and the weight in a third, or in a column named weight.
 * Checks that ids are unique, coordinates and weights usable (a weight is a number above 0), and
 * the choice not empty. KCP_BAD_INPUT with file and record. The caller frees with
 * kcp_site_file_free. */
enum kcp_status kcp_site_file_read(const char *path, const struct kcp_site_file_options *options,
                                   struct kcp_site_file *file, struct kcp_error *error);
void kcp_site_file_free(struct kcp_site_file *file);

/* KCP_BAD_INPUT naming the first site outside the domain, whose border belongs to it. */
enum kcp_status kcp_site_file_check_domain(const struct kcp_site_file *file,
                                           const struct kcp_domain *domain,
                                           struct kcp_error *error);

#ifdef __cplusplus
}
#endif
#endif

/* Maps of influence regions: a picture as in the paper's figures 1 to 3, or an ESRI ASCII grid. */
#ifndef KCP_INFLUENCE_MAP_H
#define KCP_INFLUENCE_MAP_H

#include <stdio.h>

#include "kcp/influence_query.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Regions to paint: that of a site of P, of Q, or both with what they share. Places in the files;
 * UINT64_MAX for none. */
struct kcp_map_subject {
  uint64_t sites[2];
};

/* Reads --map-show: "p:ID", "q:ID" or "pair:ID1,ID2"; NULL shows no region. KCP_BAD_INPUT when it
 * is none of these, or there is no such site. */
enum kcp_status kcp_map_subject_find(const char *text, const struct kcp_site_file *const files[2],
                                     struct kcp_map_subject *subject, struct kcp_error *error);

/* Whether the path ends in .png or .asc, and this kcp can write that. */
enum kcp_status kcp_map_check_path(const char *path, struct kcp_error *error);

/* Writes the map that the path's ending names. A picture has the density in grey, the lighter the
 * denser (figure 2); sites of P as squares and of Q as triangles, grey and green when chosen, red
 * and blue when not, orange squares for the sites of P in the answer (figure 3); regions in colour,
 * common ones green (figure 1). A grid has 1 where the region of the site of P is, 2 for that of Q,
 * 3 for both, 0 elsewhere; cells need be square, else it has dx and dy. */
enum kcp_status kcp_map_write(FILE *stream, const char *path, const struct kcp_influence_plan *plan,
                              const struct kcp_influence_result *result,
                              const struct kcp_map_subject *subject, struct kcp_error *error);

#ifdef __cplusplus
}
#endif
#endif

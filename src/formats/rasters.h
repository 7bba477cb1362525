/* Raster formats: rows of one table (src/raster.c). */
#ifndef KCP_FORMATS_RASTERS_H
#define KCP_FORMATS_RASTERS_H

#include "formats/formats.h"
#include "kcp/density.h"

struct kcp_raster_format {
  const char *ending; /* ".asc" */
  bool states_extent; /* false: the user has to say where it lies */
  /* Reads `file`, whose path, descriptor and file_bytes are set. raster->extent is the user's,
   * where given. On failure the caller frees what was taken. */
  enum kcp_status (*read)(const struct kcp_dataset *file, struct kcp_raster *raster,
                          struct kcp_error *error);
};

extern const struct kcp_raster_format kcp_raster_format_ascii;
extern const struct kcp_raster_format kcp_raster_format_npy;

/* Takes the values of rows x columns, both >= 1. KCP_BAD_INPUT when they are too many. */
enum kcp_status kcp_raster_allocate(const char *path, uint64_t rows, uint64_t columns,
                                    struct kcp_raster *raster, struct kcp_error *error);

#endif

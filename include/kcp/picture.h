/* A picture of 24-bit pixels, a few shapes, and PNG. */
#ifndef KCP_PICTURE_H
#define KCP_PICTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kcp/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kcp_colour {
  uint8_t red, green, blue;
};

/* Row after row from the top; owned: kcp_picture_free. */
struct kcp_picture {
  uint32_t width, height;
  struct kcp_colour *pixels;
};

enum kcp_status kcp_picture_create(uint32_t width, uint32_t height, struct kcp_picture *picture,
                                   struct kcp_error *error);
void kcp_picture_free(struct kcp_picture *picture);

/* `part` of `over` on the rest of `under`, 0 to 1. */
struct kcp_colour kcp_colour_blend(struct kcp_colour under, struct kcp_colour over, double part);

/* Shapes about (x, y) that reach `radius` pixels, with an outline one pixel wide; what lies beyond
 * the picture is cut off. */
void kcp_picture_square(struct kcp_picture *picture, int64_t x, int64_t y, int radius,
                        struct kcp_colour fill, struct kcp_colour outline);
void kcp_picture_triangle(struct kcp_picture *picture, int64_t x, int64_t y, int radius,
                          struct kcp_colour fill, struct kcp_colour outline);

/* KCP_UNAVAILABLE when kcp was built without libpng. */
enum kcp_status kcp_picture_png_check(struct kcp_error *error);
/* Errors of the stream stay in it. */
enum kcp_status kcp_picture_write_png(const struct kcp_picture *picture, FILE *stream,
                                      struct kcp_error *error);

#ifdef __cplusplus
}
#endif
#endif

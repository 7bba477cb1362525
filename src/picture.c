#include "kcp/picture.h"

#include <stdlib.h>
#include <string.h>

#ifdef KCP_HAVE_PNG
#include <png.h>
#endif

_Static_assert(sizeof(struct kcp_colour) == 3, "pixels are packed");

enum kcp_status kcp_picture_create(uint32_t width, uint32_t height, struct kcp_picture *picture,
                                   struct kcp_error *error) {
  const size_t bytes = (size_t)width * height * sizeof *picture->pixels;
  *picture = (struct kcp_picture){width, height, malloc(bytes)};
  return picture->pixels != NULL ? KCP_OK : kcp_out_of_memory(error, "a picture", bytes);
}

void kcp_picture_free(struct kcp_picture *picture) {
  free(picture->pixels);
  memset(picture, 0, sizeof *picture);
}

static uint8_t blend(uint8_t under, uint8_t over, double part) {
  return (uint8_t)(under + (over - under) * part + 0.5);
}

struct kcp_colour kcp_colour_blend(struct kcp_colour under, struct kcp_colour over, double part) {
  return (struct kcp_colour){blend(under.red, over.red, part), blend(under.green, over.green, part),
                             blend(under.blue, over.blue, part)};
}

static void set_pixel(struct kcp_picture *picture, int64_t x, int64_t y, struct kcp_colour colour) {
  if (x < 0 || y < 0 || x >= picture->width || y >= picture->height) return;
  picture->pixels[(uint64_t)y * picture->width + (uint64_t)x] = colour;
}

void kcp_picture_square(struct kcp_picture *picture, int64_t x, int64_t y, int radius,
                        struct kcp_colour fill, struct kcp_colour outline) {
  for (int dy = -radius; dy <= radius; ++dy)
    for (int dx = -radius; dx <= radius; ++dx) {
      const bool border = abs(dx) == radius || abs(dy) == radius;
      set_pixel(picture, x + dx, y + dy, border ? outline : fill);
    }
}

void kcp_picture_triangle(struct kcp_picture *picture, int64_t x, int64_t y, int radius,
                          struct kcp_colour fill, struct kcp_colour outline) {
  for (int dy = -radius; dy <= radius; ++dy) {
    const int half = (dy + radius) / 2;
    for (int dx = -half; dx <= half; ++dx) {
      const bool border = abs(dx) == half || dy == radius;
      set_pixel(picture, x + dx, y + dy, border ? outline : fill);
    }
  }
}

#ifdef KCP_HAVE_PNG

enum kcp_status kcp_picture_png_check(struct kcp_error *error) {
  (void)error;
  return KCP_OK;
}

enum kcp_status kcp_picture_write_png(const struct kcp_picture *picture, FILE *stream,
                                      struct kcp_error *error) {
  png_image image;
  memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  image.width = picture->width;
  image.height = picture->height;
  image.format = PNG_FORMAT_RGB;
  if (png_image_write_to_stdio(&image, stream, 0, picture->pixels, 0, NULL) != 0) return KCP_OK;
  return kcp_fail(error, KCP_FAILED, "the picture could not be written: %s", image.message);
}

#else

enum kcp_status kcp_picture_png_check(struct kcp_error *error) {
  return kcp_fail(error, KCP_UNAVAILABLE,
                  "this kcp was built without libpng and writes no .png (install libpng-dev and "
                  "build again, or write .asc)");
}

enum kcp_status kcp_picture_write_png(const struct kcp_picture *picture, FILE *stream,
                                      struct kcp_error *error) {
  (void)picture;
  (void)stream;
  return kcp_picture_png_check(error);
}

#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kcp/commands.h"
#include "kcp/interrupt.h"
#include "kcp/output_file.h"
#include "kcp/progress.h"
#include "kcp/random.h"
#include "kcp/text.h"
#include "kcp/value_array.h"

#define BLOCK_VALUES (UINT64_C(1) << 20)

enum value_distribution { UNIFORM, SORTED, REVERSED, EQUAL, DUPLICATES, ADVERSARIAL };

const char *const kcp_value_distributions[] = {"uniform",    "sorted",      "reversed", "equal",
                                               "duplicates", "adversarial", NULL};

/* A number on [0,1) as a value: that number, or for integers its place on their whole range. */
static union kcp_value value_of_unit(enum kcp_value_type type, double unit) {
  union kcp_value value = {.bits = 0};
  switch (type) {
    case KCP_VALUE_F32: value.f32 = (float)(uint32_t)(unit * 0x1p24) * 0x1p-24f; break;
    case KCP_VALUE_F64: value.f64 = unit; break;
    case KCP_VALUE_I32:
      value.i32 = (int32_t)((int64_t)(unit * 0x1p32) - INT64_C(0x80000000));
      break;
    case KCP_VALUE_U32: value.u32 = (uint32_t)(unit * 0x1p32); break;
    default: value.i64 = (int64_t)((unit - 0.5) * 0x1p63) * 2;
  }
  return value;
}

/* Value i of n: a pure function of them and the seed. */
static union kcp_value make_value(enum value_distribution distribution, enum kcp_value_type type,
                                  uint64_t seed, uint64_t i, uint64_t n) {
  const uint64_t bits = kcp_random_pair(seed, 0, i, 0).first;
  union kcp_value value;
  switch (distribution) {
    case SORTED: return value_of_unit(type, (double)i / (double)n);
    case REVERSED: return value_of_unit(type, (double)(n - 1 - i) / (double)n);
    case EQUAL: return value_of_unit(type, 0.75);
    case DUPLICATES: return value_of_unit(type, (double)(bits >> 60) / 16);
    case ADVERSARIAL:
      value = value_of_unit(type, 0.75);
      value.bits += bits % 3; /* the next two values of the type, which 0.75 leaves room for */
      return value;
    default: return value_of_unit(type, kcp_random_unit(bits));
  }
}

/* Fills the block with values first .. first + count - 1, all cores at it. */
static void make_values(const struct kcp_request *request, enum kcp_value_type type, uint64_t first,
                        uint64_t count, unsigned char *block) {
  const size_t size = kcp_value_bytes(type);
#pragma omp parallel for
  for (uint64_t i = 0; i < count; ++i) {
    union kcp_value value = make_value((enum value_distribution)request->value_distribution, type,
                                       request->generate.seed, first + i, request->generate.count);
    memcpy(block + i * size, &value, size);
  }
}

static enum kcp_status write_all(const struct kcp_request *request, enum kcp_value_type type,
                                 unsigned char *block, struct kcp_output_file *file,
                                 struct kcp_error *error) {
  struct kcp_progress progress;
  enum kcp_status status = KCP_OK;
  const uint64_t total = request->generate.count;
  kcp_progress_start(&progress, kcp_shows_progress(request));
  for (uint64_t first = 0; first < total && status == KCP_OK; first += BLOCK_VALUES) {
    uint64_t left = total - first, count = left < BLOCK_VALUES ? left : BLOCK_VALUES;
    make_values(request, type, first, count, block);
    /* an error stays in the stream, and committing tells of it */
    fwrite(block, kcp_value_bytes(type), count, file->stream);
    kcp_progress_update(&progress, "gen-values", first + count, total, first + count);
    if (kcp_interrupted())
      status = kcp_fail(error, KCP_INTERRUPTED, "stopped at %.0f%%; nothing written",
                        100 * progress.fraction);
  }
  kcp_progress_finish(&progress);
  return status;
}

enum kcp_status kcp_command_gen_values(const struct kcp_request *request, struct kcp_error *error) {
  enum kcp_value_type type;
  struct kcp_output_file file = {0};
  unsigned char *block = malloc(BLOCK_VALUES * sizeof(uint64_t));
  enum kcp_status status = KCP_OK;
  if (block == NULL) status = kcp_out_of_memory(error, "values", BLOCK_VALUES * sizeof(uint64_t));
  if (status == KCP_OK && !kcp_value_type_of_path(request->out_path, &type))
    status = kcp_fail(error, KCP_BAD_INPUT, "%s: no type of values", request->out_path);
  if (status == KCP_OK) status = kcp_output_file_open(request->out_path, &file, error);
  if (status == KCP_OK) status = write_all(request, type, block, &file, error);
  if (status == KCP_OK) status = kcp_output_file_commit(&file, error);
  kcp_output_file_discard(&file);
  free(block);
  if (status == KCP_OK && !request->quiet)
    fprintf(stderr, "kcp: %s values written to %s\n",
            kcp_text_grouped(request->generate.count).text, request->out_path);
  return status;
}

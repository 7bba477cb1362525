#include <inttypes.h>
#include <math.h>

#include "kcp/top_k_query.h"

#define FNV_OFFSET UINT64_C(14695981039346656037)
#define FNV_PRIME UINT64_C(1099511628211)

struct kcp_value_text kcp_value_text(enum kcp_value_type type, union kcp_value value) {
  struct kcp_value_text result;
  const size_t size = sizeof result.text;
  switch (type) {
    case KCP_VALUE_F32: snprintf(result.text, size, "%.17g", (double)value.f32); break;
    case KCP_VALUE_F64: snprintf(result.text, size, "%.17g", value.f64); break;
    case KCP_VALUE_I32: snprintf(result.text, size, "%" PRId32, value.i32); break;
    case KCP_VALUE_U32: snprintf(result.text, size, "%" PRIu32, value.u32); break;
    default: snprintf(result.text, size, "%" PRId64, value.i64);
  }
  return result;
}

bool kcp_value_is_finite(enum kcp_value_type type, union kcp_value value) {
  if (type == KCP_VALUE_F32) return isfinite(value.f32);
  return type != KCP_VALUE_F64 || isfinite(value.f64);
}

void kcp_top_k_write_csv(FILE *stream, const struct kcp_top_k_result *result) {
  const struct kcp_top_k_answer *answer = result->answer;
  fputs(result->array.has_rows ? "row,index,value\n" : "index,value\n", stream);
  for (uint64_t row = 0; row < answer->rows; ++row)
    for (uint64_t i = 0; i < answer->certificates[row].count; ++i) {
      const struct kcp_top_value *entry = &answer->values[row * answer->width + i];
      if (result->array.has_rows) fprintf(stream, "%" PRIu64 ",", row);
      fprintf(stream, "%" PRIu64 ",%s\n", entry->index,
              kcp_value_text(result->array.type, entry->value).text);
    }
}

void kcp_top_k_write_json(FILE *stream, const struct kcp_top_k_result *result) {
  const struct kcp_top_k_answer *answer = result->answer;
  const char *separator = "";
  fputs("[", stream);
  for (uint64_t row = 0; row < answer->rows; ++row)
    for (uint64_t i = 0; i < answer->certificates[row].count; ++i) {
      const struct kcp_top_value *entry = &answer->values[row * answer->width + i];
      fprintf(stream, "%s\n{", separator);
      if (result->array.has_rows) fprintf(stream, "\"row\": %" PRIu64 ", ", row);
      fprintf(stream, "\"index\": %" PRIu64 ", \"value\": %s}", entry->index,
              kcp_value_is_finite(result->array.type, entry->value)
                  ? kcp_value_text(result->array.type, entry->value).text
                  : "null");
      separator = ",";
    }
  fputs("\n]\n", stream);
}

static uint64_t hash_word(uint64_t hash, uint64_t word) {
  for (int byte = 0; byte < 8; ++byte) hash = (hash ^ (word >> (8 * byte) & 0xff)) * FNV_PRIME;
  return hash;
}

uint64_t kcp_top_k_checksum(const struct kcp_top_k_answer *answer) {
  uint64_t hash = FNV_OFFSET;
  for (uint64_t row = 0; row < answer->rows; ++row)
    for (uint64_t i = 0; i < answer->certificates[row].count; ++i) {
      hash = hash_word(hash, answer->values[row * answer->width + i].index);
      hash = hash_word(hash, answer->values[row * answer->width + i].value.bits);
    }
  return hash;
}

#include <inttypes.h>
#include <string.h>

#include "kcp/influence_what_if.h"

#define FNV_OFFSET UINT64_C(14695981039346656037)
#define FNV_PRIME UINT64_C(1099511628211)

/* How an answer is written, in one of two formats. */
struct form {
  bool json;
  bool partners;   /* ids alone */
  bool sweep;      /* several W0: each row says which */
  uint64_t number; /* of rows so far */
};

static void write_row(FILE *stream, struct form *form, double min_weight,
                      const struct kcp_influence_row *row) {
  const bool json = form->json;
  if (json) fputs(form->number++ > 0 ? ",\n{" : "\n{", stream);
  if (form->sweep) fprintf(stream, json ? "\"min_weight\": %.17g, " : "%.17g,", min_weight);
  if (form->partners)
    fprintf(stream, json ? "\"id\": %" PRIu64 : "%" PRIu64, row->id1);
  else
    fprintf(stream,
            json ? "\"id1\": %" PRIu64 ", \"id2\": %" PRIu64
                   ", \"area\": %.17g, \"lower\": %.17g, \"upper\": %.17g"
                 : "%" PRIu64 ",%" PRIu64 ",%.17g,%.17g,%.17g",
            row->id1, row->id2, row->area, row->lower, row->upper);
  fputs(json ? "}" : "\n", stream);
}

/* The rows of one W0; all of them with --list-areas. */
static void write_answer(FILE *stream, struct form *form, double min_weight,
                         const struct kcp_influence_result *result) {
  for (uint64_t i = 0; i < result->row_count; ++i)
    if (result->options->list_areas || kcp_influence_reaches(&result->rows[i], min_weight))
      write_row(stream, form, min_weight, &result->rows[i]);
}

static struct form form_of(const struct kcp_influence_result *result, bool json) {
  const bool list = result->options->list_areas;
  struct form form = {.json = json,
                      .partners = result->kind == KCP_INFLUENCE_PARTNERS && !list,
                      .sweep = result->options->min_weights.count > 1 && !list};
  return form;
}

static void write_answers(FILE *stream, struct form form,
                          const struct kcp_influence_result *result) {
  const struct kcp_min_weights *weights = &result->options->min_weights;
  if (!form.sweep) {
    write_answer(stream, &form, weights->count > 0 ? weights->values[0] : 0, result);
    return;
  }
  for (uint32_t w = 0; w < weights->count; ++w)
    write_answer(stream, &form, weights->values[w], result);
}

void kcp_influence_write_csv(FILE *stream, const struct kcp_influence_result *result) {
  const struct form form = form_of(result, false);
  fprintf(stream, "%s%s\n", form.sweep ? "min_weight," : "",
          form.partners ? "id" : "id1,id2,area,lower,upper");
  write_answers(stream, form, result);
}

void kcp_influence_write_json(FILE *stream, const struct kcp_influence_result *result) {
  fputs("[", stream);
  write_answers(stream, form_of(result, true), result);
  fputs("\n]\n", stream);
}

static uint64_t hash_word(uint64_t hash, uint64_t word) {
  for (int byte = 0; byte < 8; ++byte) hash = (hash ^ (word >> (8 * byte) & 0xff)) * FNV_PRIME;
  return hash;
}

static uint64_t hash_real(uint64_t hash, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return hash_word(hash, bits);
}

uint64_t kcp_influence_checksum(const struct kcp_influence_result *result) {
  uint64_t hash = FNV_OFFSET;
  for (uint64_t i = 0; i < result->row_count; ++i) {
    const struct kcp_influence_row *row = &result->rows[i];
    hash = hash_word(hash_word(hash, row->id1), row->id2);
    hash = hash_real(hash_real(hash_real(hash, row->area), row->lower), row->upper);
  }
  return hash;
}

static const char *const change_names[] = {"gained", "lost", "changed"};

static void write_changed(FILE *stream, bool json, bool partners,
                          const struct kcp_changed_row *row) {
  const char *name = change_names[row->change];
  if (partners)
    fprintf(stream, json ? "{\"change\": \"%s\", \"id\": %" PRIu64 "}" : "%s,%" PRIu64 "\n", name,
            row->id1);
  else
    fprintf(stream,
            json ? "{\"change\": \"%s\", \"id1\": %" PRIu64 ", \"id2\": %" PRIu64
                   ", \"area_before\": %.17g, \"area_after\": %.17g}"
                 : "%s,%" PRIu64 ",%" PRIu64 ",%.17g,%.17g\n",
            name, row->id1, row->id2, row->before, row->after);
}

void kcp_difference_write_csv(FILE *stream, const struct kcp_influence_result *result,
                              const struct kcp_influence_difference *difference) {
  const bool partners = result->kind == KCP_INFLUENCE_PARTNERS;
  fputs(partners ? "change,id\n" : "change,id1,id2,area_before,area_after\n", stream);
  for (uint64_t i = 0; i < difference->count; ++i)
    write_changed(stream, false, partners, &difference->rows[i]);
}

void kcp_difference_write_json(FILE *stream, const struct kcp_influence_result *result,
                               const struct kcp_influence_difference *difference) {
  fputs("[", stream);
  for (uint64_t i = 0; i < difference->count; ++i) {
    fputs(i > 0 ? ",\n" : "\n", stream);
    write_changed(stream, true, result->kind == KCP_INFLUENCE_PARTNERS, &difference->rows[i]);
  }
  fputs("\n]\n", stream);
}

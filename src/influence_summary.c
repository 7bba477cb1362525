#include <inttypes.h>

#include "kcp/influence_what_if.h"
#include "kcp/text.h"

void kcp_influence_summary_begin(FILE *stream, const struct kcp_influence_result *result) {
  static const char *const names[2][2] = {{"P", "k"}, {"Q", "k'"}};
  const struct kcp_influence_options *options = result->options;
  for (int set = 0; set < 2; ++set)
    fprintf(stream, "  %s   %s of %s sites chosen, %s %" PRIu64 "\n", names[set][0],
            kcp_text_grouped(result->files[set]->chosen_count).text,
            kcp_text_grouped(result->files[set]->sites.count).text, names[set][1], result->k[set]);
  fprintf(stream, "  domain %g,%g,%g,%g, grid %" PRIu32 " x %" PRIu32 ", weight %.10g in all",
          result->domain.x0, result->domain.y0, result->domain.x1, result->domain.y1,
          options->grid.rows, options->grid.columns, result->total_weight);
  if (result->nodata_count > 0)
    fprintf(stream, "; %s nodata value%s of the density count nothing",
            kcp_text_grouped(result->nodata_count).text, result->nodata_count == 1 ? "" : "s");
  fputs("\n", stream);
}

void kcp_influence_summary_end(FILE *stream, const struct kcp_influence_result *result,
                               bool verified) {
  const struct kcp_min_weights *weights = &result->options->min_weights;
  const bool partners = result->kind == KCP_INFLUENCE_PARTNERS && !result->options->list_areas;
  const uint32_t count = weights->count > 0 ? weights->count : 1;
  for (uint32_t w = 0; w < count; ++w) {
    const uint64_t answers = result->answer_counts[w];
    fprintf(stream, "  %s %s%s", kcp_text_grouped(answers).text, partners ? "partner" : "pair",
            answers == 1 ? "" : "s");
    if (weights->count > 0)
      fprintf(stream, " with a weighted area of at least %g\n", weights->values[w]);
    else
      fputs(" with a weighted area\n", stream);
  }
  fprintf(stream, "  bounds at most %.3g apart, cells split %" PRIu32 " time%s", result->widest,
          result->depth, result->depth == 1 ? "" : "s");
  if (result->undecided > 0)
    fprintf(stream, "; of %s pair%s the bounds hold a minimum weight (--decide settles them)",
            kcp_text_grouped(result->undecided).text, result->undecided == 1 ? "" : "s");
  fputs(verified ? "; verified\n" : "\n", stream);
}

void kcp_difference_summary(FILE *stream, const struct kcp_influence_result *result,
                            const struct kcp_influence_difference *difference) {
  const struct kcp_grid_size *grid = &result->options->grid;
  const double cells = (double)grid->rows * grid->columns;
  fprintf(stream,
          "  what if: %s gained, %s lost, %s with another area; %.3g%% of the cells looked "
          "at again\n",
          kcp_text_grouped(difference->counts[KCP_CHANGE_GAINED]).text,
          kcp_text_grouped(difference->counts[KCP_CHANGE_LOST]).text,
          kcp_text_grouped(difference->counts[KCP_CHANGE_AREA]).text,
          100 * (double)difference->cells / cells);
}

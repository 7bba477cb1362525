#include <math.h>

#include "kcp/report.h"

void kcp_pairs_write_csv(FILE *stream, const struct kcp_job *job, const struct kcp_answer *answer) {
  fputs("id1,id2,distance\n", stream);
  for (uint64_t i = 0; i < answer->count; ++i) {
    const struct kcp_candidate *pair = &answer->pairs[i];
    fprintf(stream, "%llu,%llu,%.17g\n", (unsigned long long)pair->id1,
            (unsigned long long)pair->id2, kcp_job_distance(job, pair->rank));
  }
}

/* By hand, since jansson's integers have a sign and ids use all 64 bits. */
void kcp_pairs_write_json(FILE *stream, const struct kcp_job *job,
                          const struct kcp_answer *answer) {
  fputs("[", stream);
  for (uint64_t i = 0; i < answer->count; ++i) {
    const struct kcp_candidate *pair = &answer->pairs[i];
    double distance = kcp_job_distance(job, pair->rank);
    fprintf(stream, "%s\n{\"id1\": %llu, \"id2\": %llu, \"distance\": ", i > 0 ? "," : "",
            (unsigned long long)pair->id1, (unsigned long long)pair->id2);
    if (isfinite(distance))
      fprintf(stream, "%.17g}", distance);
    else
      fputs("null}", stream); /* beyond the range of binary64 */
  }
  fputs("\n]\n", stream);
}

#include "kcp/measured_runs.h"

#include <inttypes.h>
#include <stdlib.h>

enum kcp_status kcp_measure_runs(const struct kcp_request *request, struct kcp_result *result,
                                 enum kcp_status (*run)(void *query, uint64_t number,
                                                        struct kcp_measurement *measurement,
                                                        uint64_t *checksum,
                                                        struct kcp_error *error),
                                 void *query, struct kcp_error *error) {
  result->warmup_count = request->warmup;
  result->sample_count = 0;
  result->samples = calloc(request->runs, sizeof *result->samples);
  result->scratch = calloc(request->runs, sizeof *result->scratch);
  if (result->samples == NULL || result->scratch == NULL)
    return kcp_out_of_memory(error, "the measurements", request->runs * sizeof *result->samples);
  double started_s = 0;
  for (uint64_t number = 0; number < request->warmup + request->runs; ++number) {
    if (number == request->warmup) started_s = kcp_now();
    if (result->sample_count > 0 && kcp_now() - started_s >= request->run_time_s) break;
    struct kcp_measurement measurement = {0};
    uint64_t checksum = 0;
    enum kcp_status status = run(query, number, &measurement, &checksum, error);
    if (status != KCP_OK) return status;
    if (number == 0) result->checksum = checksum;
    if (checksum != result->checksum)
      return kcp_fail(error, KCP_WRONG_ANSWER,
                      "wrong answer: run %" PRIu64 " differs from the first run", number);
    if (number >= request->warmup) result->samples[result->sample_count++] = measurement;
  }
  return KCP_OK;
}

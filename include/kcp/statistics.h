/* Statistics of repeated measurements. */
#ifndef KCP_STATISTICS_H
#define KCP_STATISTICS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kcp_statistics {
  double median;
  double minimum;
  double maximum;
  double mean;
  double deviation; /* of the sample (n - 1); 0 for one value */
};

/* Of count >= 1 values, `stride` doubles apart from `values` on. The scratch has room for count. */
struct kcp_statistics kcp_statistics_of(const double *values, size_t stride, size_t count,
                                        double *scratch);

#ifdef __cplusplus
}
#endif
#endif

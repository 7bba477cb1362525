#include "kcp/metric.h"

#include <stdio.h>

double kcp_metric_rank(struct kcp_metric metric, double distance) {
  return kcp_metric_term(metric.kind, metric.power, distance);
}

double kcp_metric_distance(struct kcp_metric metric, double rank) {
  if (metric.kind == KCP_L2) return sqrt(rank);
  if (metric.kind == KCP_LP) return metric.power == 3 ? cbrt(rank) : pow(rank, 1.0 / metric.power);
  return rank;
}

uint32_t kcp_metric_degree(struct kcp_metric metric) {
  if (metric.kind == KCP_L2) return 2;
  return metric.kind == KCP_LP ? metric.power : 1;
}

void kcp_metric_name(struct kcp_metric metric, char *name) {
  static const char *const names[] = {"l1", "l2", "linf"};
  if (metric.kind == KCP_LP)
    snprintf(name, 16, "lp:%u", metric.power);
  else
    snprintf(name, 16, "%s", names[metric.kind]);
}

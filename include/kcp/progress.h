/* One moving line on a terminal for work of over a second; silent elsewhere. */
#ifndef KCP_PROGRESS_H
#define KCP_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kcp_progress {
  bool enabled; /* stderr is a terminal and not --quiet */
  bool shown;
  double started_s;
  double last_shown_s;
  double fraction; /* of the work, 0 to 1: for "stopped at 61%" */
};

void kcp_progress_start(struct kcp_progress *progress, bool enabled);
/* `done` of `total` points of D1 (or what `what` names) are finished, `rate_points` were processed
 * so far in all. Cheap: draws at most ten times a second. NULL progress is allowed. */
void kcp_progress_update(struct kcp_progress *progress, const char *what, uint64_t done,
                         uint64_t total, uint64_t rate_points);
/* Shows a line of any text under the same rules. */
void kcp_progress_show(struct kcp_progress *progress, const char *line);
/* Removes the line. */
void kcp_progress_finish(struct kcp_progress *progress);

#ifdef __cplusplus
}
#endif
#endif

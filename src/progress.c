#include "kcp/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kcp/measurement.h"
#include "kcp/text.h"

#define QUIET_SECONDS 1.0   /* shorter work shows nothing */
#define BETWEEN_SECONDS 0.1 /* from one drawing to the next */
#define DEFAULT_WIDTH 80

static int terminal_width(void) {
  struct winsize size;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return DEFAULT_WIDTH;
  return size.ws_col;
}

void kcp_progress_start(struct kcp_progress *progress, bool enabled) {
  memset(progress, 0, sizeof *progress);
  progress->enabled = enabled;
  progress->started_s = kcp_now();
}

static bool is_due(const struct kcp_progress *progress, double now) {
  return progress->enabled && now - progress->started_s >= QUIET_SECONDS &&
         now - progress->last_shown_s >= BETWEEN_SECONDS;
}

static void draw(struct kcp_progress *progress, const char *line, double now) {
  progress->last_shown_s = now;
  progress->shown = true;
  fprintf(stderr, "\r%.*s\033[K", terminal_width() - 1, line);
  fflush(stderr);
}

void kcp_progress_show(struct kcp_progress *progress, const char *line) {
  double now = kcp_now();
  if (is_due(progress, now)) draw(progress, line, now);
}

void kcp_progress_update(struct kcp_progress *progress, const char *what, uint64_t done,
                         uint64_t total, uint64_t rate_points) {
  if (progress == NULL) return;
  progress->fraction = total > 0 ? (double)done / (double)total : 0;
  double now = kcp_now();
  if (!is_due(progress, now)) return;
  double elapsed = now - progress->started_s;
  char line[160];
  int length = snprintf(line, sizeof line, "%s  %2.0f%%  %s of %s   %s points/s", what,
                        100 * progress->fraction, kcp_text_short((double)done).text,
                        kcp_text_short((double)total).text,
                        kcp_text_short((double)rate_points / elapsed).text);
  if (progress->fraction > 0 && length < (int)sizeof line) {
    double left = elapsed / progress->fraction - elapsed;
    snprintf(line + length, sizeof line - (size_t)length, "   %s left", kcp_text_clock(left).text);
  }
  draw(progress, line, now);
}

void kcp_progress_finish(struct kcp_progress *progress) {
  if (!progress->shown) return;
  fputs("\r\033[K", stderr);
  fflush(stderr);
  progress->shown = false;
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "../data/scratch_folder.h"
#include "kcp/progress.h"

/* What `work` writes to stderr; the caller frees it. */
static char *stderr_of(void (*work)(struct kcp_progress *), struct kcp_progress *progress) {
  size_t count;
  fflush(stderr);
  int kept = dup(STDERR_FILENO);
  if (freopen(scratch_path("stderr"), "w", stderr) == NULL) abort();
  work(progress);
  fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
  return read_scratch_file("stderr", &count);
}

static void half_done(struct kcp_progress *progress) {
  kcp_progress_update(progress, "search", 50, 100, 1000);
  kcp_progress_finish(progress);
}

static void short_work_shows_nothing(void **state) {
  (void)state;
  struct kcp_progress progress;
  kcp_progress_start(&progress, true);
  char *text = stderr_of(half_done, &progress);
  assert_string_equal(text, "");
  assert_true(progress.fraction == 0.5);
  free(text);
}

static void long_work_moves_one_line_and_removes_it(void **state) {
  (void)state;
  struct kcp_progress progress;
  kcp_progress_start(&progress, true);
  progress.started_s -= 10;
  char *text = stderr_of(half_done, &progress);
  assert_non_null(strstr(text, "search  50%  50 of 100"));
  assert_non_null(strstr(text, "0:10 left"));
  assert_null(strchr(text, '\n'));
  assert_string_equal(text + strlen(text) - 4, "\r\033[K");
  free(text);
}

static void disabled_progress_still_knows_how_far_it_is(void **state) {
  (void)state;
  struct kcp_progress progress;
  kcp_progress_start(&progress, false);
  progress.started_s -= 10;
  char *text = stderr_of(half_done, &progress);
  assert_string_equal(text, "");
  assert_true(progress.fraction == 0.5);
  free(text);
}

static void no_progress_is_allowed(void **state) {
  (void)state;
  kcp_progress_update(NULL, "search", 1, 2, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(short_work_shows_nothing),
      cmocka_unit_test(long_work_moves_one_line_and_removes_it),
      cmocka_unit_test(disabled_progress_still_knows_how_far_it_is),
      cmocka_unit_test(no_progress_is_allowed),
  };
  return cmocka_run_group_tests(tests, make_scratch_folder, remove_scratch_folder);
}

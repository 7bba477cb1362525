#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../data/scratch_folder.h"
#include "kcp/output_file.h"

static struct kcp_error message;

static int clean(void **state) {
  (void)state;
  empty_scratch_folder();
  return 0;
}

static void assert_content(const char *name, const char *expected) {
  size_t count;
  char *bytes = read_scratch_file(name, &count);
  assert_string_equal(bytes, expected);
  free(bytes);
}

static void a_file_appears_at_commit(void **state) {
  (void)state;
  struct kcp_output_file file;
  const char *path = scratch_path("out.csv");
  assert_int_equal(kcp_output_file_open(path, &file, &message), KCP_OK);
  fputs("whole\n", file.stream);
  assert_int_equal(access(path, F_OK), -1);
  assert_int_equal(count_scratch_files(), 1);
  assert_int_equal(kcp_output_file_commit(&file, &message), KCP_OK);
  assert_content("out.csv", "whole\n");
  assert_int_equal(count_scratch_files(), 1);
}

static void a_discarded_file_leaves_nothing(void **state) {
  (void)state;
  struct kcp_output_file file;
  const char *path = write_scratch_file("out.csv", "old\n", 4);
  assert_int_equal(kcp_output_file_open(path, &file, &message), KCP_OK);
  fputs("new\n", file.stream);
  kcp_output_file_discard(&file);
  kcp_output_file_discard(&file);
  assert_content("out.csv", "old\n");
  assert_int_equal(count_scratch_files(), 1);
}

static void a_replaced_file_keeps_its_mode(void **state) {
  (void)state;
  struct kcp_output_file file;
  struct stat facts;
  const char *path = write_scratch_file("out.csv", "old\n", 4);
  assert_int_equal(chmod(path, 0640), 0);
  assert_int_equal(kcp_output_file_open(path, &file, &message), KCP_OK);
  fputs("new\n", file.stream);
  assert_int_equal(kcp_output_file_commit(&file, &message), KCP_OK);
  assert_content("out.csv", "new\n");
  assert_int_equal(stat(path, &facts), 0);
  assert_int_equal(facts.st_mode & 0777, 0640);
}

static void through_a_link_its_target_is_replaced(void **state) {
  (void)state;
  struct kcp_output_file file;
  struct stat facts;
  const char *target = write_scratch_file("target.csv", "old\n", 4);
  const char *link = scratch_path("link.csv");
  assert_int_equal(symlink(target, link), 0);
  assert_int_equal(kcp_output_file_open(link, &file, &message), KCP_OK);
  fputs("new\n", file.stream);
  assert_int_equal(kcp_output_file_commit(&file, &message), KCP_OK);
  assert_int_equal(lstat(link, &facts), 0);
  assert_true(S_ISLNK(facts.st_mode));
  assert_content("target.csv", "new\n");
}

static void two_writers_do_not_meet(void **state) {
  (void)state;
  struct kcp_output_file first, second;
  const char *path = scratch_path("out.csv");
  assert_int_equal(kcp_output_file_open(path, &first, &message), KCP_OK);
  assert_int_equal(kcp_output_file_open(path, &second, &message), KCP_OK);
  fputs("first\n", first.stream);
  fputs("second\n", second.stream);
  assert_int_equal(kcp_output_file_commit(&second, &message), KCP_OK);
  assert_int_equal(kcp_output_file_commit(&first, &message), KCP_OK);
  assert_content("out.csv", "first\n");
  assert_int_equal(count_scratch_files(), 1);
}

static void devices_are_written_directly(void **state) {
  (void)state;
  struct kcp_output_file file;
  assert_int_equal(kcp_output_file_open("/dev/null", &file, &message), KCP_OK);
  assert_null(file.partial_path);
  fputs("gone\n", file.stream);
  assert_int_equal(kcp_output_file_commit(&file, &message), KCP_OK);
  struct stat facts;
  assert_int_equal(stat("/dev/null", &facts), 0);
  assert_true(S_ISCHR(facts.st_mode));
}

static void standard_output_is_written_directly(void **state) {
  (void)state;
  const char *path = write_scratch_file("redirected.txt", "before\n", 7);
  int saved = dup(STDOUT_FILENO);
  int target = open(path, O_WRONLY | O_APPEND);
  fflush(stdout);
  assert_int_equal(dup2(target, STDOUT_FILENO), STDOUT_FILENO);
  struct kcp_output_file file;
  enum kcp_status opened = kcp_output_file_open("/dev/stdout", &file, &message);
  if (opened == KCP_OK) fputs("result\n", file.stream);
  enum kcp_status committed = opened == KCP_OK ? kcp_output_file_commit(&file, &message) : opened;
  dup2(saved, STDOUT_FILENO);
  close(saved);
  close(target);
  assert_int_equal(committed, KCP_OK);
  assert_content("redirected.txt", "before\nresult\n");
  assert_int_equal(count_scratch_files(), 1);
}

static void pipes_are_written_directly(void **state) {
  (void)state;
  struct kcp_output_file file;
  struct stat facts;
  char bytes[16] = {0};
  const char *path = scratch_path("pipe");
  assert_int_equal(mkfifo(path, 0600), 0);
  int reader = open(path, O_RDONLY | O_NONBLOCK);
  assert_int_equal(kcp_output_file_open(path, &file, &message), KCP_OK);
  fputs("piped\n", file.stream);
  assert_int_equal(kcp_output_file_commit(&file, &message), KCP_OK);
  assert_int_equal(read(reader, bytes, sizeof bytes), 6);
  close(reader);
  assert_string_equal(bytes, "piped\n");
  assert_int_equal(stat(path, &facts), 0);
  assert_true(S_ISFIFO(facts.st_mode));
}

static void open_descriptors_are_written_directly(void **state) {
  (void)state;
  struct kcp_output_file file;
  int ends[2];
  char path[32], bytes[16] = {0};
  assert_int_equal(pipe(ends), 0);
  snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
  assert_int_equal(kcp_output_file_open(path, &file, &message), KCP_OK);
  fputs("piped\n", file.stream);
  assert_int_equal(kcp_output_file_commit(&file, &message), KCP_OK);
  assert_int_equal(read(ends[0], bytes, sizeof bytes), 6);
  assert_string_equal(bytes, "piped\n");
  close(ends[0]);
  close(ends[1]);
  assert_int_equal(kcp_output_file_open(path, &file, &message), KCP_BAD_INPUT);
  assert_non_null(strstr(message.message, "Bad file descriptor"));
}

static void places_that_cannot_be_written_are_refused(void **state) {
  (void)state;
  struct kcp_output_file file;
  assert_int_equal(kcp_output_file_open(scratch_folder, &file, &message), KCP_BAD_INPUT);
  assert_non_null(strstr(message.message, "Is a directory"));
  assert_int_equal(kcp_output_file_open(scratch_path("absent/out.csv"), &file, &message),
                   KCP_BAD_INPUT);
  assert_non_null(strstr(message.message, "No such file or directory"));
  write_scratch_file("plain", "", 0);
  assert_int_equal(kcp_output_file_open(scratch_path("plain/out.csv"), &file, &message),
                   KCP_BAD_INPUT);
  assert_null(file.stream);
  const char *protected_path = write_scratch_file("protected.csv", "old\n", 4);
  assert_int_equal(chmod(protected_path, 0444), 0);
  if (access(protected_path, W_OK) != 0) {
    assert_int_equal(kcp_output_file_open(protected_path, &file, &message), KCP_BAD_INPUT);
    assert_non_null(strstr(message.message, "Permission denied"));
  }
}

static void a_full_disk_is_reported(void **state) {
  (void)state;
  struct kcp_output_file file;
  assert_int_equal(kcp_output_file_open("/dev/full", &file, &message), KCP_OK);
  fputs("lost\n", file.stream);
  assert_int_equal(kcp_output_file_commit(&file, &message), KCP_FAILED);
  assert_non_null(strstr(message.message, "No space left on device"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(a_file_appears_at_commit, clean),
      cmocka_unit_test_setup(a_discarded_file_leaves_nothing, clean),
      cmocka_unit_test_setup(a_replaced_file_keeps_its_mode, clean),
      cmocka_unit_test_setup(through_a_link_its_target_is_replaced, clean),
      cmocka_unit_test_setup(two_writers_do_not_meet, clean),
      cmocka_unit_test_setup(devices_are_written_directly, clean),
      cmocka_unit_test_setup(standard_output_is_written_directly, clean),
      cmocka_unit_test_setup(pipes_are_written_directly, clean),
      cmocka_unit_test_setup(open_descriptors_are_written_directly, clean),
      cmocka_unit_test_setup(places_that_cannot_be_written_are_refused, clean),
      cmocka_unit_test_setup(a_full_disk_is_reported, clean),
  };
  return cmocka_run_group_tests(tests, make_scratch_folder, remove_scratch_folder);
}

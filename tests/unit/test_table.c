#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "kcp/table.h"

static const struct kcp_table_column columns[] = {
    {"name", 6, false}, {"k", 3, true}, {"why", 0, false}};

static void assert_table(enum kcp_table_style style, const char *expected) {
  char *text = NULL;
  size_t size;
  FILE *stream = open_memstream(&text, &size);
  const char *const first[] = {"dbf", "1234", "a|b"}, *const second[] = {"±x", "5", "say \"a, b\""};
  kcp_table_write_head(stream, style, columns, 3);
  kcp_table_write_row(stream, style, columns, 3, first);
  kcp_table_write_row(stream, style, columns, 3, second);
  assert_int_equal(fclose(stream), 0);
  assert_string_equal(text, expected);
  free(text);
}

static void a_terminal_gets_aligned_columns(void **state) {
  (void)state;
  assert_table(KCP_TABLE_ALIGNED,
               "name      k  why\n"
               "dbf     1234  a|b\n"
               "±x        5  say \"a, b\"\n");
}

static void markdown_escapes_bars(void **state) {
  (void)state;
  assert_table(KCP_TABLE_MARKDOWN,
               "| name | k | why |\n"
               "| --- | ---: | --- |\n"
               "| dbf | 1234 | a\\|b |\n"
               "| ±x | 5 | say \"a, b\" |\n");
}

static void csv_quotes_where_it_must(void **state) {
  (void)state;
  assert_table(KCP_TABLE_CSV,
               "name,k,why\n"
               "dbf,1234,a|b\n"
               "±x,5,\"say \"\"a, b\"\"\"\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_terminal_gets_aligned_columns),
      cmocka_unit_test(markdown_escapes_bars),
      cmocka_unit_test(csv_quotes_where_it_must),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

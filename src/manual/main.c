/* kcp_manual KIND FILE: writes the manual page or a completion script. */
#include <stdlib.h>
#include <string.h>

#include "manual.h"

static int write_file(void (*write)(FILE *stream), const char *path) {
  FILE *stream = fopen(path, "w");
  if (stream != NULL) {
    write(stream);
    bool failed = ferror(stream) != 0;
    if (fclose(stream) == 0 && !failed) return EXIT_SUCCESS;
  }
  perror(path);
  return EXIT_FAILURE;
}

int main(int argument_count, char **arguments) {
  static const struct {
    const char *kind;
    void (*write)(FILE *stream);
  } kinds[] = {{"page", manual_write_page},
               {"bash", manual_write_bash},
               {"zsh", manual_write_zsh},
               {"fish", manual_write_fish}};
  for (size_t i = 0; argument_count == 3 && i < sizeof kinds / sizeof kinds[0]; ++i)
    if (strcmp(arguments[1], kinds[i].kind) == 0) return write_file(kinds[i].write, arguments[2]);
  fputs("usage: kcp_manual page|bash|zsh|fish FILE\n", stderr);
  return 2;
}

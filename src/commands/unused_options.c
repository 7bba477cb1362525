#include <string.h>

#include "kcp/args.h"
#include "kcp/commands.h"

static bool reads(const struct kcp_algorithm *algorithm, const char *option) {
  for (const char *const *name = algorithm->options; *name != NULL; ++name)
    if (strcmp(*name, option) == 0) return true;
  return false;
}

static bool some_algorithm_reads(const char *option) {
  for (const struct kcp_algorithm *row = kcp_algorithms; row->name != NULL; ++row)
    if (reads(row, option)) return true;
  return false;
}

void kcp_warn_of_unused_options(const struct kcp_request *request,
                                const struct kcp_algorithm *algorithm) {
  for (int i = 0; i < request->given_count; ++i) {
    const struct kcp_flag *flag = request->given[i].flag;
    if (!some_algorithm_reads(flag->name) || reads(algorithm, flag->name)) continue;
    kcp_warn(request, "%s does not use --%s (kcp help %s lists its options)", algorithm->name,
             flag->name, algorithm->name);
  }
}

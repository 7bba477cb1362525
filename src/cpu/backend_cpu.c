#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kcp/range_join.h"

extern const struct kcp_pair_engine kcp_cpu_pair_engine;           /* list_search.c */
extern const struct kcp_threshold_engine kcp_cpu_threshold_engine; /* threshold_search.c */
extern const struct kcp_top_k_engine kcp_cpu_top_k_engine;         /* top_k.c */
extern const struct kcp_transfer_engine kcp_cpu_transfer_engine;   /* transfer.c */
extern const struct kcp_influence_engine kcp_cpu_influence_engine; /* influence.c */
extern const struct kcp_range_engine kcp_cpu_range_brute;          /* range_brute.c */
extern const struct kcp_range_engine kcp_cpu_range_dual_tree;      /* range_dual_tree.c */
extern const struct kcp_range_engine kcp_cpu_range_grid;           /* range_grid.c */
extern const struct kcp_range_engine kcp_cpu_rt_hiss;              /* rt_hiss.c */

static const struct kcp_range_engine *const range_joins[KCP_RANGE_METHODS] = {
    [KCP_RANGE_BRUTE] = &kcp_cpu_range_brute,
    [KCP_RANGE_GRID] = &kcp_cpu_range_grid,
    [KCP_RANGE_RT_HISS] = &kcp_cpu_rt_hiss,
    [KCP_RANGE_DUAL_TREE] = &kcp_cpu_range_dual_tree};

static void read_processor_name(char *name, size_t size) {
  FILE *file = fopen("/proc/cpuinfo", "r");
  char line[256];
  snprintf(name, size, "CPU");
  if (file == NULL) return;
  while (fgets(line, sizeof line, file) != NULL) {
    char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || colon == NULL) continue;
    line[strcspn(line, "\n")] = '\0';
    snprintf(name, size, "%s", colon + 2);
    break;
  }
  fclose(file);
}

/* What the kernel says can be allocated without swapping. */
static uint64_t available_bytes(uint64_t otherwise) {
  FILE *file = fopen("/proc/meminfo", "r");
  char line[256];
  unsigned long long kilobytes = otherwise / 1024;
  if (file == NULL) return otherwise;
  while (fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "MemAvailable: %llu", &kilobytes) == 1) break;
  fclose(file);
  return (uint64_t)kilobytes * 1024;
}

uint64_t kcp_host_free_bytes(void) {
  return available_bytes((uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
}

static enum kcp_status probe(int index, struct kcp_device_info *info, struct kcp_error *error) {
  (void)error;
  memset(info, 0, sizeof *info);
  info->index = index;
  read_processor_name(info->name, sizeof info->name);
  info->units = (uint32_t)omp_get_max_threads();
  info->thread_slots = info->units;
  info->memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  info->free_bytes = kcp_host_free_bytes();
  return KCP_OK;
}

const struct kcp_backend *kcp_backend_cpu(void) {
  static const struct kcp_backend backend = {.kind = KCP_BACKEND_CPU,
                                             .name = "cpu",
                                             .probe = probe,
                                             .pairs = &kcp_cpu_pair_engine,
                                             .threshold = &kcp_cpu_threshold_engine,
                                             .top_k = &kcp_cpu_top_k_engine,
                                             .influence = &kcp_cpu_influence_engine,
                                             .range_joins = range_joins,
                                             .transfer = &kcp_cpu_transfer_engine};
  return &backend;
}

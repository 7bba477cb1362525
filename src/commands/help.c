#include <stdio.h>
#include <string.h>

#include "kcp/algorithm.h"
#include "kcp/args.h"
#include "kcp/commands.h"
#include "kcp/text.h"
#include "kcp_version.h"

enum { LINE_WIDTH = 96 };

static void print_overview(void) {
  printf("kcp %s: exact proximity queries on large point files, on GPU and CPU\n\n", KCP_VERSION);
  puts("  kcp --k 10 D1.bin D2.bin           the 10 closest pairs between two files");
  puts("  kcp --self --k 10 D.csv            the 10 closest pairs within one file");
  puts("  kcp --k 64 values.f32              the 64 largest values of an array");
  puts("  kcp --eps 0.05 D.csv               all pairs within 0.05 of each other");
  puts("\nusage: kcp [options] D1 D2, or a command:");
  for (const struct kcp_command *command = kcp_commands; command->name != NULL; ++command)
    if (command->kind != KCP_COMMAND_QUERY && command->kind != KCP_COMMAND_HELP)
      printf("  %-10s %s\n", command->name, command->summary);
  puts("\noften used options:");
  puts("  --k N             how many (10)             --metric l2|l1|linf|lp:T  distance (l2)");
  puts("  --algo NAME       algorithm (auto)          --max-distance R  only pairs this near");
  puts("  --device auto|cpu|cuda:N  where (auto)      --out FILE    pairs to .csv or .json");
  puts("  --memory SIZE     limit, such as 2G         --json FILE   report of times and work");
  puts(
      "\nAnswers go to stdout as CSV, all else to stderr. Files: .bin .csv .npy .fvecs .fbin .f32");
  puts("kcp help query lists every option; kcp help NAME tells of a command or algorithm.");
}

/* "--memory SIZE" */
static void write_option(char *text, size_t size, const struct kcp_flag *flag) {
  snprintf(text, size, "--%s%s%s", flag->name, flag->value != NULL ? " " : "",
           flag->value != NULL ? flag->value : "");
}

static void print_option(const struct kcp_flag *flag) {
  char option[80];
  write_option(option, sizeof option, flag);
  printf("  %-30s %s", option, flag->help);
  if (flag->unit != NULL) printf(", in %s", flag->unit);
  printf(" (%s)\n", flag->standard);
}

static const char *const legend =
    "N is a whole number, R X P are real numbers, SIZE is bytes (512M and 2G are powers of 1024).";

/* The text in lines of at most LINE_WIDTH, broken between words. */
static void print_wrapped(const char *text) {
  while (*text != '\0') {
    size_t length = strlen(text);
    if (length > LINE_WIDTH) {
      length = LINE_WIDTH;
      while (length > 0 && text[length] != ' ') --length;
      if (length == 0) length = LINE_WIDTH;
    }
    printf("%.*s\n", (int)length, text);
    text += length;
    text += strspn(text, " ");
  }
}

static void print_options_of_command(const struct kcp_command *command) {
  bool any = false;
  for (const struct kcp_flag *flag = kcp_flags; flag->name != NULL; ++flag) {
    if ((flag->commands & command->kind) == 0) continue;
    if (!any) puts("\noptions (default):");
    any = true;
    print_option(flag);
  }
  if (any) puts(legend);
}

static void print_command(const struct kcp_command *command) {
  printf("%s: %s\n\n", command->usage, command->summary);
  print_wrapped(command->description);
  print_options_of_command(command);
  printf("\nexample:\n  %s\n", command->example);
}

/* What "auto" has to choose from here. */
static void print_device(const struct kcp_algorithm *algorithm) {
  struct kcp_device_info device;
  const struct kcp_backend *backend = kcp_backend_cuda();
  struct kcp_error reason;
  if ((algorithm->backends & KCP_BACKEND_CUDA) == 0 ||
      backend->probe(0, &device, &reason) != KCP_OK) {
    backend = kcp_backend_cpu();
    if (backend->probe(0, &device, &reason) != KCP_OK) return;
  }
  printf("\nauto on this machine: %s, %s, %s threads, %s of memory free\n", backend->name,
         device.name, kcp_text_grouped(device.thread_slots).text,
         kcp_text_bytes((double)device.free_bytes).text);
}

static void print_algorithm(const struct kcp_algorithm *algorithm) {
  printf("%s: %s", algorithm->name, algorithm->summary);
  if (algorithm->spelling != NULL) printf(" (also spelled %s)", algorithm->spelling);
  puts("\n");
  print_wrapped(algorithm->description);
  printf("\nsource:   %s\n", algorithm->source);
  printf("backends: %s%s\n", (algorithm->backends & KCP_BACKEND_CPU) != 0 ? "cpu " : "",
         (algorithm->backends & KCP_BACKEND_CUDA) != 0 ? "cuda" : "");
  printf("buffers:  %s\n", algorithm->buffers);
  puts("\noptions that it reads (default):");
  for (const char *const *option = algorithm->options; *option != NULL; ++option) {
    const struct kcp_flag *flag = kcp_flag_find(*option, KCP_COMMAND_QUERY);
    if (flag != NULL) print_option(flag);
  }
  puts(legend);
  print_device(algorithm);
  const char *name = algorithm->spelling != NULL ? algorithm->spelling : algorithm->name;
  static const char *const rest[] = {[KCP_QUERY_CLOSEST_PAIRS] = "--k 140 D1.bin D2.bin",
                                     [KCP_QUERY_TOP_K] = "--k 140 values.f32",
                                     [KCP_QUERY_INFLUENCE] = "--k 140 --min-weight 20 P.csv Q.csv",
                                     [KCP_QUERY_RANGE_JOIN] = "--eps 0.05 D.csv"};
  printf("\nexample:\n  kcp --algo %s %s\n", name, rest[algorithm->query]);
}

static enum kcp_status unknown_topic(const char *topic, struct kcp_error *error) {
  struct kcp_suggestion near = kcp_suggestion_for(topic);
  for (const struct kcp_command *command = kcp_commands; command->name != NULL; ++command)
    kcp_suggestion_offer(&near, command->name);
  for (const struct kcp_algorithm *row = kcp_algorithms; row->name != NULL; ++row) {
    if (row->spelling != NULL) kcp_suggestion_offer(&near, row->spelling);
    kcp_suggestion_offer(&near, row->name);
  }
  if (near.word == NULL)
    return kcp_fail(error, KCP_BAD_INPUT,
                    "no help on '%s': neither a command (kcp help) nor an algorithm (kcp list)",
                    topic);
  return kcp_fail(error, KCP_BAD_INPUT, "no help on '%s'; did you mean '%s'?", topic, near.word);
}

enum kcp_status kcp_command_help(const struct kcp_request *request, struct kcp_error *error) {
  const char *topic = request->input_count > 0 ? request->inputs[0] : NULL;
  const struct kcp_command *command = topic != NULL ? kcp_command_find(topic) : NULL;
  const struct kcp_algorithm *algorithm = topic != NULL ? kcp_algorithm_find(topic) : NULL;
  if (topic == NULL)
    print_overview();
  else if (command != NULL)
    print_command(command);
  else if (algorithm != NULL)
    print_algorithm(algorithm);
  else
    return unknown_topic(topic, error);
  return kcp_finish_stdout(error);
}

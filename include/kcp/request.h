/* What the user asked for: the parsed and checked command line (src/args.c holds the one table of
 * flags). 0, NULL or the enum's AUTO value mean "not given: choose". */
#ifndef KCP_REQUEST_H
#define KCP_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "kcp/candidate_list.h"
#include "kcp/generate.h"
#include "kcp/influence_options.h"
#include "kcp/metric.h"
#include "kcp/ordered_key.h"
#include "kcp/range_options.h"

enum kcp_device_choice { KCP_DEVICE_AUTO, KCP_DEVICE_CPU, KCP_DEVICE_CUDA };
enum kcp_buffer_choice { KCP_CHOOSE_BUFFER, KCP_CHOOSE_LIST, KCP_CHOOSE_HEAP };
enum kcp_kernel_choice { KCP_KERNEL_TILED, KCP_KERNEL_PLAIN };
enum kcp_query_order { KCP_ORDER_X, KCP_ORDER_FILE };

/* What to do; bits of a set, so that a flag can belong to several. */
enum kcp_command_kind {
  KCP_COMMAND_QUERY = 1,
  KCP_COMMAND_LIST = 2,
  KCP_COMMAND_INFO = 4,
  KCP_COMMAND_GEN = 8,
  KCP_COMMAND_CONVERT = 16,
  KCP_COMMAND_VERSION = 32,
  KCP_COMMAND_HELP = 64,
  KCP_COMMAND_GEN_VALUES = 128,
  KCP_COMMAND_BENCH = 1 << 16
};

struct kcp_flag;

/* An option as it stands on the command line. */
struct kcp_given_option {
  const struct kcp_flag *flag;
  const char *value; /* NULL of a switch */
};
#define KCP_MAX_GIVEN 128

struct kcp_request {
  enum kcp_command_kind command;
  const char *inputs[2]; /* paths, in order; the topic of help */
  int input_count;
  int argument_count; /* the command line as it was, for the report */
  char *const *arguments;
  struct kcp_given_option given[KCP_MAX_GIVEN]; /* in order; of a repeated one the last value */
  int given_count;
  const char *algorithm; /* as given; "auto" */

  /* the query */
  uint64_t k; /* --k, >= 1; 10 */
  struct kcp_metric metric;
  bool self;           /* --self: one file, pairs of distinct records */
  double max_distance; /* --max-distance; +inf when not given */

  enum kcp_value_order value_order; /* --order, of a top-k */
  bool resident;                    /* --resident, of a top-k */

  struct kcp_influence_options influence;
  struct kcp_range_options range;

  /* parameters of the k-CP paper; 0 = automatic */
  enum kcp_buffer_choice buffer;
  enum kcp_kernel_choice kernel;
  enum kcp_query_order order_d2;
  uint64_t d1_partition;      /* points */
  uint64_t d2_partition;      /* points */
  uint64_t subpartitions;     /* nsb: of each D1 partition */
  uint64_t block_threads;     /* threads per block (CUDA); 64 */
  uint64_t streams;           /* S */
  uint64_t points_per_thread; /* l */

  /* where and how */
  enum kcp_device_choice device;
  int device_index;
  uint64_t memory_bytes; /* --memory; 0 = what the device has free */
  uint64_t threads;      /* --threads: CPU threads; 0 = all cores */

  /* input and output */
  const char *columns;
  const char *out_path;
  const char *json_path;
  bool quiet;
  bool verify;
  bool floor;    /* --floor: also time the streaming floor */
  uint64_t runs; /* >= 1 */
  uint64_t warmup;
  double run_time_s; /* --run-time: stops repeating; INFINITY when it is not given */

  /* commands */
  bool drop_invalid; /* convert */
  struct kcp_generate_options generate;
  int value_distribution; /* gen-values; its count and seed are those of generate */

  /* bench; its report goes to json_path */
  const char *csv_path;
  const char *markdown_path;
  const char *resume_path;
  bool compare; /* the inputs are two reports of bench */
  int phase;    /* what is compared: 0 the whole run, else 1 + enum kcp_phase */
};

#endif

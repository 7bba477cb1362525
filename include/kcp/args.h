/* The command line: one table of flags, from which parsing, help and the lists of options come. */
#ifndef KCP_ARGS_H
#define KCP_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include "kcp/request.h"
#include "kcp/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum kcp_flag_type {
  KCP_FLAG_SWITCH,     /* bool; takes no value */
  KCP_FLAG_COUNT,      /* uint64_t, plain digits */
  KCP_FLAG_COUNT32,    /* uint32_t, plain digits */
  KCP_FLAG_COUNT_MAX,  /* uint64_t, plain digits or "max": UINT64_MAX */
  KCP_FLAG_SIZE,       /* uint64_t, bytes: digits with K, M, G or T (powers of 1024) */
  KCP_FLAG_REAL,       /* double, finite */
  KCP_FLAG_CHOICE,     /* enum: the place of the word in `value`, words separated by '|' */
  KCP_FLAG_ALGORITHM,  /* const char *: "auto" or a name in the table of algorithms */
  KCP_FLAG_METRIC,     /* struct kcp_metric */
  KCP_FLAG_DEVICE,     /* the request's device and device_index */
  KCP_FLAG_TEXT,       /* const char * */
  KCP_FLAG_GRID,       /* struct kcp_grid_size */
  KCP_FLAG_DOMAIN,     /* struct kcp_domain_option */
  KCP_FLAG_MIN_WEIGHTS /* struct kcp_min_weights */
};

/* Beside the commands of a flag: two values of it may have two right answers. */
#define KCP_CHANGES_ANSWER (1u << 31)

struct kcp_flag {
  const char *name; /* without dashes */
  enum kcp_flag_type type;
  unsigned commands; /* bits of enum kcp_command_kind, and KCP_CHANGES_ANSWER */
  size_t offset;     /* of its field in struct kcp_request */
  double minimum;    /* of numbers, inclusive */
  double maximum;
  const char *value;    /* its value in help: "N", "list|heap"; NULL for a switch */
  const char *unit;     /* "points", "bytes"; NULL when it has none */
  const char *standard; /* the default, in words */
  const char *help;     /* one line */
};

/* The table; ends with a row whose name is NULL. */
extern const struct kcp_flag kcp_flags[];

/* The row of that name among those of the given commands (bits); NULL when there is none. */
const struct kcp_flag *kcp_flag_find(const char *name, unsigned commands);

/* The commands whose flags the command takes: its own, and those of a query for bench. */
unsigned kcp_flag_commands(enum kcp_command_kind command);

/* Whether bench takes lists of values of the flag: those of a query that are not bench's too. */
bool kcp_flag_is_swept(const struct kcp_flag *flag);

/* Parses and checks one value into the flag's field of the request. KCP_BAD_INPUT with one line. */
enum kcp_status kcp_flag_parse(const struct kcp_flag *flag, const char *text,
                               struct kcp_request *request, struct kcp_error *error);

/* A request with every default. */
struct kcp_request kcp_request_defaults(void);

/* Fills the request from a command line and checks all that can be checked without looking at a
 * file or a device. Strings of the request point into `arguments`. Values that bench sweeps are
 * kept in `given` as they are (sweep.h). KCP_BAD_INPUT with one line. */
enum kcp_status kcp_args_parse(int argument_count, char *const *arguments,
                               struct kcp_request *request, struct kcp_error *error);

#ifdef __cplusplus
}
#endif
#endif

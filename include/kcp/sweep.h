/* Options with lists of values, and the product of them: what kcp bench runs.
 *
 * A value is one value, a list A,B,C or, of numbers, a range A:B:STEP; a list may hold ranges. Text
 * and values that are written with commas themselves are one value whatever they hold. */
#ifndef KCP_SWEEP_H
#define KCP_SWEEP_H

#include "kcp/args.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KCP_MOST_CONFIGURATIONS 100000

/* An option and its values. */
struct kcp_axis {
  const struct kcp_flag *flag;
  char **values; /* owned; one NULL for a switch */
  uint64_t count;
};

struct kcp_sweep {
  struct kcp_axis axes[KCP_MAX_GIVEN]; /* in the order of the command line; the last varies first */
  int axis_count;
  uint64_t count; /* of configurations */
};

/* One command line of a sweep, parsed. */
struct kcp_configuration {
  int argument_count;
  char **arguments; /* owned, as are their texts: kcp query --algo dbf ... D1 D2 */
  struct kcp_request request;
};

/* From the swept options of a bench request. KCP_BAD_INPUT for a list or range that is none, or for
 * too many configurations. Free it whatever the status. */
enum kcp_status kcp_sweep_make(const struct kcp_request *request, struct kcp_sweep *sweep,
                               struct kcp_error *error);
void kcp_sweep_free(struct kcp_sweep *sweep);

/* The value of an axis in configuration `number` < sweep->count; NULL of a switch. */
const char *kcp_sweep_value(const struct kcp_sweep *sweep, int axis, uint64_t number);

/* The query of configuration `number` over the inputs of `bench`, parsed as any command line.
 * KCP_BAD_INPUT for a value that is wrong. Free it whatever the status. */
enum kcp_status kcp_configuration_make(const struct kcp_sweep *sweep, uint64_t number,
                                       const struct kcp_request *bench,
                                       struct kcp_configuration *configuration,
                                       struct kcp_error *error);
void kcp_configuration_free(struct kcp_configuration *configuration);

#ifdef __cplusplus
}
#endif
#endif

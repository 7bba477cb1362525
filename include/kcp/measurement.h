/* What one run of an algorithm took and did: phases, work counters, memory. */
#ifndef KCP_MEASUREMENT_H
#define KCP_MEASUREMENT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum kcp_phase {
  KCP_PHASE_READ,     /* files to host memory */
  KCP_PHASE_UPLOAD,   /* host to device ("h2d") */
  KCP_PHASE_INDEX,    /* sorting and index building */
  KCP_PHASE_KERNEL,   /* the search itself */
  KCP_PHASE_DOWNLOAD, /* device to host ("d2h") */
  KCP_PHASE_MERGE,    /* selection of the answer from the partial results */
  KCP_PHASE_COUNT
};

/* The key of a phase in the report, without unit: "read", "h2d", "index", "kernel", "d2h", "merge".
 */
const char *kcp_phase_name(enum kcp_phase phase);

/* Phases may overlap: their sum need not be the total. */
struct kcp_measurement {
  double phase_s[KCP_PHASE_COUNT];
  double total_s; /* wall clock of the run, from first read to answer */
  uint64_t distance_evaluations;
  uint64_t bytes_read;
  uint64_t bytes_uploaded;
  uint64_t bytes_downloaded;
  uint64_t peak_device_bytes; /* allocated on the device; 0 on the CPU */
};

/* Monotonic wall clock in seconds. */
double kcp_now(void);

#ifdef __cplusplus
}
#endif
#endif

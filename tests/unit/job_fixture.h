/* A job over two .csv files of few points, as the driver would make it. */
#ifndef KCP_TESTS_JOB_FIXTURE_H
#define KCP_TESTS_JOB_FIXTURE_H

#include "../data/scratch_folder.h"
#include "kcp/algorithm.h"
#include "kcp/args.h"

struct job_fixture {
  struct kcp_request request;
  struct kcp_job job;
};

static inline struct kcp_dataset *open_text(const char *name, const char *text) {
  struct kcp_dataset_options options = {.text_layout = KCP_TEXT_ID_FIRST};
  struct kcp_dataset *dataset;
  struct kcp_error error;
  const char *path = write_scratch_file(name, text, strlen(text));
  if (kcp_dataset_open(path, &options, &dataset, &error) != KCP_OK) abort();
  return dataset;
}

/* With `query` NULL, pairs within the first set. */
static inline void open_job(struct job_fixture *fixture, const char *reference, const char *query,
                            uint64_t k) {
  memset(fixture, 0, sizeof *fixture);
  fixture->request = kcp_request_defaults();
  fixture->request.k = k;
  fixture->request.self = query == NULL;
  fixture->job.request = &fixture->request;
  fixture->job.reference = open_text("reference.csv", reference);
  fixture->job.query = query != NULL ? open_text("query.csv", query) : fixture->job.reference;
  uint64_t n = kcp_dataset_count(fixture->job.reference);
  uint64_t m = kcp_dataset_count(fixture->job.query);
  uint64_t pairs = query == NULL ? n * (n - 1) / 2 : n * m;
  fixture->job.pair_count = k < pairs ? k : pairs;
}

static inline void close_job(struct job_fixture *fixture) {
  if (fixture->job.query != fixture->job.reference) kcp_dataset_close(fixture->job.query);
  kcp_dataset_close(fixture->job.reference);
}

#endif

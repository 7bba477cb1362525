/* The driver's OptiX library: found when it is asked for, so that kcp runs where it is not. */
#include <dlfcn.h>

#include <cstring>

#include "optix_pipeline.cuh"

#define INSTEAD "; run with --index bvh"

static const char library_name[] = "libnvoptix.so.1";

/* `dlerror` names the file that is missing; an empty one ("file too short") is what a container
 * gets that was promised the library by a host without it. */
static enum kcp_status missing_library(const char *reason, struct kcp_error *error) {
  return kcp_fail(error, KCP_UNAVAILABLE,
                  "--index optix: no OptiX here: %s; NVIDIA's driver brings it, into containers "
                  "with the driver capability 'graphics' (NVIDIA_DRIVER_CAPABILITIES)" INSTEAD,
                  reason != NULL ? reason : library_name);
}

static enum kcp_status wrong_library(int code, struct kcp_error *error) {
  switch (code) {
    case KCP_OPTIX_UNSUPPORTED_ABI:
      return kcp_fail(
          error, KCP_UNAVAILABLE,
          "--index optix: this driver does not know OptiX ABI %d; it takes driver %s or "
          "newer" INSTEAD,
          KCP_OPTIX_ABI, KCP_OPTIX_LEAST_DRIVER);
    case KCP_OPTIX_WRONG_TABLE_SIZE:
      return kcp_fail(error, KCP_UNAVAILABLE,
                      "--index optix: %s does not take a table of %zu bytes for ABI %d" INSTEAD,
                      library_name, sizeof(struct kcp_optix_table), KCP_OPTIX_ABI);
    case KCP_OPTIX_LIBRARY_NOT_FOUND:
      return kcp_fail(error, KCP_UNAVAILABLE,
                      "--index optix: %s does not find what it needs itself (libnvidia-rtcore, of "
                      "the same driver; in containers the driver capability 'graphics')" INSTEAD,
                      library_name);
    default:
      return kcp_fail(error, KCP_UNAVAILABLE,
                      "--index optix: %s gives no functions for ABI %d (code %d)" INSTEAD,
                      library_name, KCP_OPTIX_ABI, code);
  }
}

enum kcp_status kcp_optix_load(struct kcp_optix *optix, struct kcp_error *error) {
  /* It stays loaded: threads of the driver may still be in it. */
  optix->library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (optix->library == NULL) return missing_library(dlerror(), error);
  kcp_optix_query_table query;
  void *symbol = dlsym(optix->library, "optixQueryFunctionTable");
  if (symbol == NULL) return missing_library(dlerror(), error);
  memcpy(&query, &symbol, sizeof query);
  const int code = query(KCP_OPTIX_ABI, 0, NULL, NULL, &optix->table, sizeof optix->table);
  return code == KCP_OPTIX_SUCCESS ? KCP_OK : wrong_library(code, error);
}

void kcp_optix_unload(struct kcp_optix *optix) {
  if (optix->library != NULL) dlclose(optix->library);
  optix->library = NULL;
}

void kcp_optix_log_clear(struct kcp_optix_log *log) {
  log->length = 0;
  log->text[0] = log->returned[0] = '\0';
  log->returned_bytes = sizeof log->returned;
}

void kcp_optix_log_add(struct kcp_optix_log *log, const char *message) {
  if (log->length > 0 && log->length + 2 < sizeof log->text) {
    memcpy(log->text + log->length, "; ", 2);
    log->length += 2;
  }
  for (const char *c = message; *c != '\0' && log->length + 1 < sizeof log->text; ++c)
    log->text[log->length++] = (unsigned char)*c < ' ' ? ' ' : *c;
  while (log->length > 0 && log->text[log->length - 1] == ' ') --log->length;
  log->text[log->length] = '\0';
}

/* The name of the function called, out of "create_module(...)". */
static int name_length(const char *expression) {
  return (int)strcspn(expression, "(");
}

enum kcp_status kcp_optix_failure(struct kcp_optix *optix, int code, const char *expression,
                                  const char *file, int line, struct kcp_error *error) {
  const char *name = strrchr(file, '/');
  struct kcp_optix_log *log = &optix->log;
  if (code == KCP_OPTIX_LIBRARY_NOT_FOUND) return wrong_library(code, error);
  if (log->length == 0) kcp_optix_log_add(log, log->returned);
  return kcp_fail(error, KCP_FAILED, "OptiX: %s (%.*s at %s:%d)%s%s", optix->table.error_text(code),
                  name_length(expression), expression, name != NULL ? name + 1 : file, line,
                  log->length > 0 ? ": " : "", log->text);
}

execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12
  OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT revision)
  set(revision "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT
"#define KCP_VERSION \"${VERSION}\"
#define KCP_REVISION \"${revision}\"
#define KCP_BUILD_FLAGS \"${FLAGS}\"
#define KCP_CUDA_VERSION \"${CUDA}\"
")

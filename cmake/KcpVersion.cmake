# kcp_version.h in the build folder: version, git revision and build flags, renewed at every build.
add_custom_target(kcp_version
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_CURRENT_SOURCE_DIR} -DVERSION=${PROJECT_VERSION}
          "-DFLAGS=${CMAKE_BUILD_TYPE} ${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}"
          "-DCUDA=$<IF:$<BOOL:${KCP_HAVE_CUDA}>,${CMAKE_CUDA_COMPILER_VERSION},>"
          -DOUTPUT=${CMAKE_CURRENT_BINARY_DIR}/generated/kcp_version.h
          -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/write_version.cmake
  BYPRODUCTS ${CMAKE_CURRENT_BINARY_DIR}/generated/kcp_version.h VERBATIM)

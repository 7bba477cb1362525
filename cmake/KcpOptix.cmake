# The programs of --index optix: PTX for a virtual device, which the driver's OptiX compiles for the
# one that it finds, in a C file that kcp_cuda holds. Virtual devices newer than 7.5 would exclude
# cards; a real one would not build, as ptxas does not know OptiX's intrinsics.
set(kcp_rays ${CMAKE_CURRENT_SOURCE_DIR}/kernels/optix/rays.cu)
set(kcp_rays_ptx ${CMAKE_CURRENT_BINARY_DIR}/generated/rays.ptx)
set(kcp_rays_c ${CMAKE_CURRENT_BINARY_DIR}/generated/optix_rays.c)
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/generated)
add_custom_command(
  OUTPUT ${kcp_rays_ptx}
  COMMAND ${CMAKE_CUDA_COMPILER} -ptx -arch=compute_75 -std=c++17 -O3 -rdc=true -fmad=false -diag-suppress=177,550
          $<$<BOOL:${CMAKE_CUDA_HOST_COMPILER}>:-ccbin=${CMAKE_CUDA_HOST_COMPILER}>
          -I${CMAKE_CURRENT_SOURCE_DIR}/include -I${CMAKE_CURRENT_SOURCE_DIR}/kernels
          -MD -MF ${kcp_rays_ptx}.d -MT ${kcp_rays_ptx} -o ${kcp_rays_ptx} ${kcp_rays}
  DEPENDS ${kcp_rays} DEPFILE ${kcp_rays_ptx}.d
  COMMENT "PTX of optix/rays.cu" COMMAND_EXPAND_LISTS VERBATIM)
add_custom_command(
  OUTPUT ${kcp_rays_c}
  COMMAND ${CMAKE_COMMAND} -DINPUT=${kcp_rays_ptx} -DOUTPUT=${kcp_rays_c} -DNAME=kcp_optix_rays_ptx
          -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed.cmake
  DEPENDS ${kcp_rays_ptx} ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
add_library(kcp_optix_rays OBJECT ${kcp_rays_c}) # without the options of CUDA sources
target_sources(kcp_cuda PRIVATE $<TARGET_OBJECTS:kcp_optix_rays>)
target_link_libraries(kcp_cuda PUBLIC ${CMAKE_DL_LIBS})

# The manual page and the completion scripts, made from the program's own tables.
add_executable(kcp_manual src/manual/main.c src/manual/words.c src/manual/page.c src/manual/bash.c
               src/manual/zsh.c src/manual/fish.c)
target_include_directories(kcp_manual PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/generated)
target_link_libraries(kcp_manual PRIVATE kcp_core)

set(KCP_MANUAL_FOLDER ${CMAKE_CURRENT_BINARY_DIR}/manual)
file(MAKE_DIRECTORY ${KCP_MANUAL_FOLDER})
foreach(file page=kcp.1 bash=kcp.bash zsh=_kcp fish=kcp.fish)
  string(REGEX MATCH "^([a-z]+)=(.*)$" matched ${file})
  set(output ${KCP_MANUAL_FOLDER}/${CMAKE_MATCH_2})
  add_custom_command(OUTPUT ${output} COMMAND kcp_manual ${CMAKE_MATCH_1} ${output}
                     DEPENDS kcp_manual VERBATIM)
  list(APPEND KCP_MANUAL_FILES ${output})
endforeach()
add_custom_target(kcp_manual_files ALL DEPENDS ${KCP_MANUAL_FILES})

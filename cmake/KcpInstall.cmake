# cmake --install, and a Debian package by cpack.
include(GNUInstallDirs)
install(TARGETS kcp RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${KCP_MANUAL_FOLDER}/kcp.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${KCP_MANUAL_FOLDER}/kcp.bash RENAME kcp
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${KCP_MANUAL_FOLDER}/kcp.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
# Debian's zsh looks in vendor-completions for packages, in site-functions below /usr/local.
foreach(folder site-functions vendor-completions)
  install(FILES ${KCP_MANUAL_FOLDER}/_kcp DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${folder})
endforeach()
install(FILES CHANGELOG.md README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/kcp)
install(FILES LICENSE RENAME copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/kcp)

set(KCP_MAINTAINER "kcp maintainers <maintainers@kcp.invalid>" CACHE STRING
    "Maintainer named in packages")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME kcp)
set(CPACK_PACKAGE_CONTACT ${KCP_MAINTAINER})
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "exact proximity queries on large point files")
set(CPACK_PACKAGE_DESCRIPTION
"kcp finds the k closest pairs between two sets of points, or the first k values
of an array, exactly, on a GPU or on the CPU, and measures how fast the known
algorithms do it.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
include(CPack)

# Installed: libraries, public headers, programs, pages, and what CMake and pkg-config need to find
# them.  The SQL is inside the libraries; `tradelock migrate` applies it.
set(TL_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tradelock)

set(exported tradelock tradelock-admin)
if(TARGET tradelock-workflow)
  list(APPEND exported tradelock-workflow)
  install(DIRECTORY workflows/include/tradelock
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
endif()
install(TARGETS ${exported} EXPORT tradelock-targets LIBRARY)
install(DIRECTORY core/include/tradelock core/admin/include/tradelock
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

# The pages keep their folders, so that they find each other.  Headers are installed elsewhere: there
# a page has their names in place of links.
file(GLOB pages RELATIVE ${PROJECT_SOURCE_DIR} *.md)
foreach(room config core sql tests tools workflows)
  file(GLOB_RECURSE more RELATIVE ${PROJECT_SOURCE_DIR} ${room}/*.md)
  list(APPEND pages ${more})
endforeach()
list(FILTER pages EXCLUDE REGEX "/examples/")
foreach(page LICENSE config/grafana-dashboard.json config/prometheus-alerts.yml
    config/tradelock.cnf tools/bench/throughput.svg tools/desk/now.png tools/packaging/Dockerfile
    workflows/picture.svg workflows/sequences.svg)
  get_filename_component(folder ${page} DIRECTORY)
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder})
endforeach()
install(CODE "set(from \"${PROJECT_SOURCE_DIR}\")
set(to \"${CMAKE_INSTALL_DOCDIR}\")
set(pages \"${pages}\")")
install(CODE [==[
foreach(page IN LISTS pages)
  file(READ "${from}/${page}" text)
  string(REGEX REPLACE "[[]([^]\n]*)[]][(][^)\n]*include/(tradelock/[a-z_.]*)[)]" "\\1 (`\\2`)" text "${text}")
  file(WRITE "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${to}/${page}" "${text}")
endforeach()
]==])

# Examples, to be copied; the sample stands alone.
install(DIRECTORY workflows/examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
  USE_SOURCE_PERMISSIONS PATTERN "__pycache__" EXCLUDE)
install(DIRECTORY workflows/withdraw DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(FILES ${TL_SAMPLE_PARTS} DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples/withdraw)

install(EXPORT tradelock-targets NAMESPACE tradelock:: DESTINATION ${TL_CMAKE_DIR})
configure_package_config_file(
  tools/dev/cmake/tradelock-config.cmake.in
  ${PROJECT_BINARY_DIR}/generated/tradelock-config.cmake
  INSTALL_DESTINATION ${TL_CMAKE_DIR})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/generated/tradelock-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/generated/tradelock-config.cmake
  ${PROJECT_BINARY_DIR}/generated/tradelock-config-version.cmake
  DESTINATION ${TL_CMAKE_DIR})

# The .pc files find the prefix from their own place, so the tree can be moved.
file(RELATIVE_PATH up
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" up ${up})
set(TL_PC_PREFIX "\${pcfiledir}/${up}")
foreach(pc tradelock tradelock-workflow tradelock-admin)
  if(TARGET ${pc})
    configure_file(tools/dev/cmake/${pc}.pc.in
      ${PROJECT_BINARY_DIR}/generated/${pc}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/generated/${pc}.pc
      DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  endif()
endforeach()

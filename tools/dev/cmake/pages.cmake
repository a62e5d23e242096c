# The manual pages, made from the programs' --help, the headers and the sample of settings
# (tools/packaging/man), with the reference of calls, and the shells' completions
# (tools/packaging/completion).  Not from programs that do not run here, nor again for each flavour of
# tests.
if(CMAKE_CROSSCOMPILING OR TL_SANITIZE OR TL_TEST_PREFIX OR NOT TARGET tradelock-command)
  return()
endif()

get_property(installed GLOBAL PROPERTY TL_INSTALLED_PROGRAMS)
set(names "")
foreach(program IN LISTS installed)
  list(APPEND names $<TARGET_FILE_NAME:${program}>)
endforeach()
string(TIMESTAMP date "%Y-%m-%d" UTC)
file(GLOB makers ${PROJECT_SOURCE_DIR}/tools/packaging/*.awk)
file(GLOB headers CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/core/include/tradelock/*.h
  ${PROJECT_SOURCE_DIR}/core/admin/include/tradelock/*.h
  ${PROJECT_SOURCE_DIR}/core/admin/include/tradelock/admin/*.h
  ${PROJECT_SOURCE_DIR}/workflows/include/tradelock/*.h)

add_custom_command(
  OUTPUT ${TL_GENERATED}/pages.stamp
  COMMAND ${PROJECT_SOURCE_DIR}/tools/packaging/man --bin ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}
    --out ${PROJECT_BINARY_DIR}/man --reference ${TL_GENERATED}/API.md --date ${date} --version ${PROJECT_VERSION} ${names}
  COMMAND ${PROJECT_SOURCE_DIR}/tools/packaging/completion --bin ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}
    --out ${PROJECT_BINARY_DIR}/completion ${names}
  COMMAND ${CMAKE_COMMAND} -E touch ${TL_GENERATED}/pages.stamp
  DEPENDS ${installed} ${headers} ${makers} ${PROJECT_SOURCE_DIR}/tools/packaging/man
    ${PROJECT_SOURCE_DIR}/tools/packaging/completion ${PROJECT_SOURCE_DIR}/config/tradelock.cnf
  COMMENT "Making manual pages and completions"
  VERBATIM)
add_custom_target(pages ALL DEPENDS ${TL_GENERATED}/pages.stamp)
add_dependencies(programs pages)
install(DIRECTORY ${PROJECT_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR} OPTIONAL)
install(FILES ${TL_GENERATED}/API.md DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
install(DIRECTORY ${PROJECT_BINARY_DIR}/completion/bash/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions OPTIONAL)
install(DIRECTORY ${PROJECT_BINARY_DIR}/completion/zsh/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions OPTIONAL)

# tl_add_program(NAME SOURCES file... [LIBS target...] [NO_INSTALL])
# A program in bin/.  `make programs` (or ninja programs) builds all of them and no tests.
add_custom_target(programs)

function(tl_add_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_INSTALL" "" "SOURCES;LIBS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "tl_add_program(${name}): SOURCES file... [LIBS ...] [NO_INSTALL]")
  endif()
  add_executable(${name} ${arg_SOURCES} ${PROJECT_SOURCE_DIR}/tools/standard_streams.c
    ${PROJECT_SOURCE_DIR}/tools/exact_options.c)
  target_compile_definitions(${name} PRIVATE getopt_long=getopt_long_exact)
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}
    ${PROJECT_SOURCE_DIR}/tools/shared)
  target_link_libraries(${name} PRIVATE tl-flags ${arg_LIBS})
  add_dependencies(programs ${name})
  if(NOT arg_NO_INSTALL)
    install(TARGETS ${name} RUNTIME)
    set_property(GLOBAL APPEND PROPERTY TL_INSTALLED_PROGRAMS ${name})
  endif()
endfunction()

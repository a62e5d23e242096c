# tl_add_test(NAME SOURCES file... [LIBS target...] [NEEDS target...] [ARGS arg...] [LABELS label...]
#             [TIMEOUT seconds] [LONG_TIMEOUT seconds] [ENVIRONMENT NAME=value...]
#             [THREAD_ONLY pattern] [FIRST] [SERVER] [SERIAL] [FILLER] [LEAKS] [BUILD_ALWAYS])
#   One theme, run as one ctest in a process of its own.  All themes of a folder are one executable
#   (support/theme.h), FOLDER-tests; the first of SOURCES, test_THEME.c, has the theme's main.  It
#   links the internal static library, so it may reach behind the public headers, and the library
#   of tests/support.  NEEDS is what has to be built before it runs.  With FIRST it belongs to the
#   first tier of tools/test.  Of a theme with THREAD_ONLY, build/tsan runs the tests whose names
#   match: the others add no threads.  With SERVER the run's shared MariaDB is up and
#   TL_TEST_SERVER_DIR names it (support/server.h); with SERIAL nothing else runs beside it.  With
#   FILLER it takes the processors that other tests leave idle: it runs at a low priority, one
#   filler at a time.  With LEAKS AddressSanitizer also looks for leaks in the programs that it
#   starts.  With BUILD_ALWAYS its theme is built also where the test is not added, for a script
#   that runs it.  Tests with higher limits start earlier.  With LONG_TIMEOUT there is a second test
#   NAME.long, of label long, with the full counts.
#
# tl_add_script_test(NAME script [FIRST] [ARGS arg...] [LABELS ...] [TIMEOUT ...] ...)
#   The same for a script of the source tree.
#
# tl_add_valgrind_test(FOLDER THEME [LABELS ...] [TIMEOUT ...] ...)
#   FOLDER_THEME.valgrind: that test again under valgrind; an error or a leak fails it.  In the
#   tree without sanitizers only.
#
# ${TL_FORKS_BESIDE_THREADS} is an ENVIRONMENT for tests that fork while their threads free memory:
# AddressSanitizer's quarantine of freed memory has a lock that the child may inherit locked.
#
# Every test has TL_BUILD_DIR and TL_SOURCE_DIR in its environment.
#
# The tree build/asan has every test without a label; flavours.txt says what the others have.
# Labels with a meaning:
#   first    set by FIRST: tools/test runs these alone
#   plain    runs in build/plain, without a sanitizer; of FIRST, a share in build/asan too
#   thread   runs in build/tsan as well
#   long     runs only with tools/test --long
#   hooks    needs TL_TEST_HOOKS; is not added to a build without
set(TL_TEST_ONLY "" CACHE STRING "Add only tests with this label")
set(TL_TEST_NOT "" CACHE STRING "Add no test with this label")
option(TL_TEST_FIRST "Add every test of the first tier, whatever its labels" OFF)
set(TL_TIMEOUT_FACTOR 1 CACHE STRING "Multiplies the time limit of every test")
set(TL_FLAVOURS "" CACHE STRING "Other trees below build/ whose tests run with these")

set(TL_FORKS_BESIDE_THREADS ASAN_OPTIONS=quarantine_size_mb=0)

set(TL_TEST_OPTIONS SERVER SERIAL FILLER LEAKS BUILD_ALWAYS FIRST)
set(TL_TEST_VALUES TIMEOUT LONG_TIMEOUT THREAD_ONLY)
set(TL_TEST_LISTS SOURCES LIBS NEEDS ARGS LABELS ENVIRONMENT)

# Whether a test with these labels belongs into this build tree.
function(tl_test_belongs result labels first)
  set(answer TRUE)
  if(first AND TL_TEST_FIRST)
    # It belongs to that tree, whatever its labels are.
  elseif("hooks" IN_LIST labels AND NOT TL_TEST_HOOKS)
    set(answer FALSE)
  elseif(TL_TEST_ONLY AND NOT TL_TEST_ONLY IN_LIST labels)
    set(answer FALSE)
  elseif(TL_TEST_NOT AND TL_TEST_NOT IN_LIST labels)
    set(answer FALSE)
  endif()
  set(${result} ${answer} PARENT_SCOPE)
endfunction()

# The properties that every test has, from the arguments of tl_add_test.
function(tl_set_test_properties name timeout)
  cmake_parse_arguments(PARSE_ARGV 2 arg
    "${TL_TEST_OPTIONS}" "${TL_TEST_VALUES}" "${TL_TEST_LISTS}")
  set(labels ${arg_LABELS})
  if(arg_FIRST AND NOT TL_TEST_PREFIX)
    list(APPEND labels first)
    # Whatever is cheap enough for the first tier need not run there again for the deep one.
    if("plain" IN_LIST labels AND TL_SANITIZE)
      list(APPEND labels share)
    endif()
  endif()
  set(fixtures "")
  set(environment
    TL_BUILD_DIR=${PROJECT_BINARY_DIR} TL_SOURCE_DIR=${PROJECT_SOURCE_DIR} TL_MARIADB_NO_SYNC=1
    ${arg_ENVIRONMENT})
  if(arg_LEAKS)
    list(APPEND environment TL_LEAKS=1)
  endif()
  if(TL_TEST_PREFIX)
    string(REGEX REPLACE "\\.$" "" flavour ${TL_TEST_PREFIX})
    list(APPEND labels ${flavour})
    list(APPEND fixtures ${flavour}.build)
  endif()
  if(arg_SERVER)
    list(APPEND environment TL_TEST_SERVER_DIR=${PROJECT_BINARY_DIR}/test-data/shared)
    list(APPEND fixtures ${TL_TEST_PREFIX}server)
  endif()
  # ctest begins first what others depend on, and tests with a server are what its stop depends
  # on: so that the limits alone say which test starts before which, all tests are.
  if(NOT arg_SERVER)
    set_property(GLOBAL APPEND PROPERTY TL_TESTS_WITHOUT_SERVER ${name})
  endif()
  if(arg_SERIAL)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE)
  endif()
  if(arg_FILLER)
    set_tests_properties(${name} PROPERTIES RESOURCE_LOCK filler)
  endif()
  math(EXPR limit "${timeout} * ${TL_TIMEOUT_FACTOR}")
  # A sanitizer makes a test several times slower.
  if(TL_SANITIZE)
    math(EXPR limit "${limit} * 4")
  endif()
  set_tests_properties(${name} PROPERTIES
    TIMEOUT ${limit}
    COST ${limit}
    LABELS "${labels}"
    ENVIRONMENT "${environment}"
    FIXTURES_REQUIRED "${fixtures}")
endfunction()

# Adds NAME and, where asked for, NAME.long; the command is in the variable `command`.
function(tl_add_ctest name)
  cmake_parse_arguments(PARSE_ARGV 1 arg
    "${TL_TEST_OPTIONS}" "${TL_TEST_VALUES}" "${TL_TEST_LISTS}")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "Test ${name}: unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(arg_FILLER)
    list(PREPEND command nice -n 5)
  endif()
  if(arg_THREAD_ONLY AND TL_SANITIZE STREQUAL "thread")
    list(APPEND arg_ARGS --only=${arg_THREAD_ONLY})
  endif()
  add_test(NAME ${TL_TEST_PREFIX}${name} COMMAND ${command} ${arg_ARGS})
  tl_set_test_properties(${TL_TEST_PREFIX}${name} ${arg_TIMEOUT} ${ARGN})
  # The full counts are run once: in build/plain, and in build/asan what is there alone.
  set(full_counts TRUE)
  if(TL_SANITIZE AND (TL_SANITIZE STREQUAL "thread" OR "plain" IN_LIST arg_LABELS))
    set(full_counts FALSE)
  endif()
  if(arg_LONG_TIMEOUT AND full_counts)
    set(long_name ${TL_TEST_PREFIX}${name}.long)
    list(REMOVE_ITEM ARGN FIRST)
    add_test(NAME ${long_name} COMMAND ${command} ${arg_ARGS})
    tl_set_test_properties(${long_name} ${arg_LONG_TIMEOUT} ${ARGN})
    set_property(TEST ${long_name} APPEND PROPERTY LABELS long)
    set_property(TEST ${long_name} APPEND PROPERTY ENVIRONMENT TL_TEST_TIER=long TL_TEST_LONG=1)
  endif()
endfunction()

# The themes of this folder become one executable, when all of its list has been read: what the
# tests are made of is linked once.
function(tl_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg
    "${TL_TEST_OPTIONS}" "${TL_TEST_VALUES}" "${TL_TEST_LISTS}")
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "tl_add_test(${name}): no SOURCES")
  endif()
  tl_test_belongs(belongs "${arg_LABELS}" "${arg_FIRST}")
  if(NOT belongs AND NOT arg_BUILD_ALWAYS)
    return()
  endif()
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  list(GET arg_SOURCES 0 main)
  string(REGEX REPLACE "^.*test_(.*)\\.c$" "\\1" theme ${main})
  get_property(themes DIRECTORY PROPERTY TL_THEMES)
  if(NOT themes)
    cmake_language(DEFER CALL tl_add_folder)
  endif()
  set_property(DIRECTORY APPEND PROPERTY TL_THEMES ${theme})
  set_property(DIRECTORY APPEND PROPERTY TL_SOURCES ${arg_SOURCES})
  set_property(DIRECTORY APPEND PROPERTY TL_LIBS ${arg_LIBS})
  set_property(DIRECTORY APPEND PROPERTY TL_NEEDS ${arg_NEEDS})
  if(NOT belongs)
    return()
  endif()
  # tools/test --under puts a program such as valgrind before it.
  set(command ${PROJECT_SOURCE_DIR}/tests/support/under $<TARGET_FILE:${folder}-tests> ${theme})
  tl_add_ctest(${name} ${ARGN})
endfunction()

# The executable FOLDER-tests of all themes that tl_add_test collected here.
function(tl_add_folder)
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  set(target ${folder}-tests)
  foreach(property THEMES SOURCES LIBS NEEDS)
    get_property(${property} DIRECTORY PROPERTY TL_${property})
    list(REMOVE_DUPLICATES ${property})
  endforeach()
  list(TRANSFORM THEMES REPLACE "(.+)" "THEME(\\1)" OUTPUT_VARIABLE TL_THEME_LIST)
  list(JOIN TL_THEME_LIST " " TL_THEME_LIST)
  configure_file(${PROJECT_SOURCE_DIR}/tests/support/themes.c.in themes.c @ONLY)
  add_executable(${target} ${CMAKE_CURRENT_BINARY_DIR}/themes.c ${SOURCES})
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_include_directories(${target} PRIVATE
    ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${target} PRIVATE
    tl-flags ${LIBS} test-support tradelock-internal PkgConfig::CMOCKA)
  if(NEEDS)
    add_dependencies(${target} ${NEEDS})
  endif()
endfunction()

function(tl_add_script_test name script)
  cmake_parse_arguments(PARSE_ARGV 2 arg
    "${TL_TEST_OPTIONS}" "${TL_TEST_VALUES}" "${TL_TEST_LISTS}")
  tl_test_belongs(belongs "${arg_LABELS}" "${arg_FIRST}")
  if(NOT belongs)
    return()
  endif()
  get_filename_component(command ${script} ABSOLUTE)
  tl_add_ctest(${name} ${ARGN})
  if(NOT arg_LEAKS)
    set_property(TEST ${TL_TEST_PREFIX}${name} APPEND PROPERTY
      ENVIRONMENT ASAN_OPTIONS=detect_leaks=0:malloc_context_size=5)
  endif()
endfunction()

function(tl_add_valgrind_test folder theme)
  if(TL_SANITIZE OR TL_TEST_PREFIX)
    return()
  endif()
  set(command valgrind --quiet --error-exitcode=99 --leak-check=full
    --errors-for-leak-kinds=definite,indirect,possible
    $<TARGET_FILE:${folder}-tests> ${theme})
  tl_add_ctest(${folder}_${theme}.valgrind ${ARGN})
endfunction()

# One server for all tests of this tree that ask for it with SERVER; each makes databases of its
# own in it.  Called when all tests are there.
function(tl_add_shared_server)
  set(server_dir ${PROJECT_BINARY_DIR}/test-data/shared)
  set(mariadb ${PROJECT_SOURCE_DIR}/tools/dev/mariadb)
  set(start ${TL_TEST_PREFIX}server.start)
  set(stop ${TL_TEST_PREFIX}server.stop)
  get_property(others GLOBAL PROPERTY TL_TESTS_WITHOUT_SERVER)
  add_test(NAME ${start}
    COMMAND sh -c "${mariadb} remove ${server_dir} && ${mariadb} start ${server_dir}")
  add_test(NAME ${stop} COMMAND ${mariadb} remove ${server_dir})
  set_tests_properties(${start} PROPERTIES ENVIRONMENT TL_MARIADB_NO_SYNC=1
    FIXTURES_SETUP ${TL_TEST_PREFIX}server TIMEOUT 120)
  set_tests_properties(${stop} PROPERTIES
    FIXTURES_CLEANUP ${TL_TEST_PREFIX}server TIMEOUT 120 DEPENDS "${others}")
  if(TL_TEST_PREFIX)
    string(REGEX REPLACE "\\.$" "" flavour ${TL_TEST_PREFIX})
    set_tests_properties(${start} ${stop} PROPERTIES LABELS ${flavour})
  endif()
endfunction()

# The other trees are configured by tools/test.  Each is built by a test of its own, which
# all of its tests need, and its list of tests is part of this one's.
function(tl_add_flavours)
  if(NOT TL_FLAVOURS)
    return()
  endif()
  set(includes "")
  set(cost 1000000)
  foreach(flavour IN LISTS TL_FLAVOURS)
    set(tree ${PROJECT_SOURCE_DIR}/build/${flavour})
    add_test(NAME ${flavour}.build
      COMMAND nice -n 5 ${CMAKE_COMMAND} --build ${tree} --parallel)
    set_tests_properties(${flavour}.build PROPERTIES
      FIXTURES_SETUP ${flavour}.build
      LABELS ${flavour}
      RESOURCE_LOCK filler
      COST ${cost}
      TIMEOUT 3600)
    math(EXPR cost "${cost} - 1")
    string(APPEND includes "subdirs(\"${tree}\")\n")
  endforeach()
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY
    TEST_INCLUDE_FILES ${PROJECT_BINARY_DIR}/generated/flavours.cmake)
  file(WRITE ${PROJECT_BINARY_DIR}/generated/flavours.cmake "${includes}")
endfunction()

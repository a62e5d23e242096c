# Warnings, sanitizers and hardening, as one interface target that all our code links.
add_library(tl-flags INTERFACE)

target_compile_options(tl-flags INTERFACE
  -Wall -Wextra -Werror -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
  -Wpointer-arith -Wformat=2 -Wvla -Wundef -Wwrite-strings -fno-common
  -fno-omit-frame-pointer -fstack-protector-strong
  # An exception of a caller's callback passes through, and what is held is let go of.
  -fexceptions)
# Empty, as a source file's own #define of it is, so that both may stand.
target_compile_definitions(tl-flags INTERFACE "_GNU_SOURCE=")
if(TL_TEST_HOOKS)
  target_compile_definitions(tl-flags INTERFACE TL_TEST_HOOKS=1)
endif()

if(TL_SANITIZE STREQUAL "address")
  set(sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all)
elseif(TL_SANITIZE STREQUAL "thread")
  set(sanitizers -fsanitize=thread)
elseif(NOT TL_SANITIZE STREQUAL "")
  message(FATAL_ERROR "TL_SANITIZE is '${TL_SANITIZE}'; it may be address, thread or empty")
endif()

# Tests need lines for their reports, and no variables: a sixth less to compile.
if(TL_TEST_PREFIX)
  set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g1")
endif()
if(TL_SANITIZE)
  # The code that sanitizers add makes gcc guess wrong in these two.
  target_compile_options(tl-flags INTERFACE ${sanitizers}
    $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation -Wno-maybe-uninitialized>)
  target_link_options(tl-flags INTERFACE ${sanitizers})
  set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g1")
else()
  target_compile_definitions(tl-flags INTERFACE _FORTIFY_SOURCE=2)
  # A sanitizer's runtime comes with the program, so only plain libraries can be asked
  # to have every symbol.
  target_link_options(tl-flags INTERFACE
    -Wl,-z,relro,-z,now
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>:-Wl,--no-undefined>)
endif()

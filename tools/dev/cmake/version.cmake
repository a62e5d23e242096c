# The version stands once, in the public header.
function(tl_read_version header result)
  set(version 0.0.0)
  set(path ${CMAKE_CURRENT_SOURCE_DIR}/${header})
  if(EXISTS ${path})
    file(STRINGS ${path} line REGEX "^#define TL_VERSION_STRING ")
    if(line MATCHES "\"([0-9]+\\.[0-9]+\\.[0-9]+)\"")
      set(version ${CMAKE_MATCH_1})
    endif()
    # A changed version must configure anew.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  endif()
  set(${result} ${version} PARENT_SCOPE)
endfunction()

# Writes OUT: the desk's files as texts of a C program.  Run as
#   cmake -DDIR=tools/desk -DOUT=assets.c -P embed.cmake
set(text "/* Made from the files of tools/desk by embed.cmake. */\n#include \"assets.h\"\n\n")
string(APPEND text "#include <stddef.h>\n\n")
set(table "")
foreach(line "desk.css|text/css" "desk.js|text/javascript" "icon.svg|image/svg+xml"
        "../RUNBOOK.md|text/markdown")
  string(REPLACE "|" ";" line ${line})
  list(GET line 0 name)
  list(GET line 1 type)
  file(READ ${DIR}/${name} hex HEX)
  get_filename_component(name ${name} NAME)
  string(REGEX REPLACE "(..)" "0x\\1," bytes ${hex})
  string(REGEX REPLACE "(0x[89a-f])" "(char)\\1" bytes ${bytes}) # beyond ASCII
  string(MAKE_C_IDENTIFIER ${name} identifier)
  string(APPEND text "static const char ${identifier}[] = {${bytes}0};\n")
  string(APPEND table "    {\"/${name}\", \"${type}; charset=utf-8\", ${identifier}},\n")
endforeach()
string(APPEND text "const struct asset assets[] = {\n${table}    {NULL, NULL, NULL},\n};\n")
file(WRITE ${OUT} "${text}")

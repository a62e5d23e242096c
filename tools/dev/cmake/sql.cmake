# The statements, steps, migrations and schema objects of sql/ become sql_text.h and sql_text.c in
# generated/.
file(GLOB TL_QUERIES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/sql/query/*.sql)
file(GLOB TL_STEPS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/sql/step/*.sql)
file(GLOB TL_MIGRATIONS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/sql/schema.sql
  ${PROJECT_SOURCE_DIR}/sql/migrations/*.sql)
file(GLOB TL_OBJECTS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/sql/object/*.sql)
file(GLOB TL_FLEET CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/sql/fleet/*.sql)
file(GLOB TL_GRANTS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/sql/grants.sql)
set(TL_GENERATED ${PROJECT_BINARY_DIR}/generated)

# The list is a file of its own, written when it changes: a removed statement makes the
# sources anew as well.
set(TL_SQL_FILES ${TL_STEPS} ${TL_QUERIES}
  ${TL_MIGRATIONS} ${TL_OBJECTS} ${TL_FLEET} ${TL_GRANTS})
list(JOIN TL_SQL_FILES "\n" TL_SQL_LINES)
file(CONFIGURE OUTPUT ${TL_GENERATED}/sql_files.txt
  CONTENT "@TL_SQL_LINES@\n" @ONLY)

add_custom_command(
  OUTPUT ${TL_GENERATED}/sql_text.h ${TL_GENERATED}/sql_text.c
  COMMAND ${PROJECT_SOURCE_DIR}/tools/dev/embed_sql
    ${TL_GENERATED} ${TL_SQL_FILES}
  DEPENDS ${PROJECT_SOURCE_DIR}/tools/dev/embed_sql
    ${TL_GENERATED}/sql_files.txt ${TL_SQL_FILES}
  COMMENT "Embedding sql/"
  VERBATIM)
add_custom_target(tl-sql DEPENDS ${TL_GENERATED}/sql_text.h ${TL_GENERATED}/sql_text.c)

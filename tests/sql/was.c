/* Reads the old definitions from tests/sql/was, and describes a schema by information_schema. */
#include "was.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const unsigned was_versions[WAS_COUNT] = {8, 11, 12, 13, 14, 15, 17, 18, 19, 22};

static void run_file(MYSQL *connection, unsigned version)
{
    const char *source = getenv("TL_SOURCE_DIR");
    char path[512], *text = NULL;
    size_t space = 0;
    FILE *file;

    snprintf(path, sizeof path, "%s/tests/sql/was/schema_%u.sql", source != NULL ? source : ".",
             version);
    file = fopen(path, "re");
    if (file == NULL || getdelim(&text, &space, '\0', file) < 0)
        server_panic("%s cannot be read", path);
    fclose(file);
    database_run(connection, "%s", text);
    free(text);
}

void was_as_command(MYSQL *connection)
{
    database_run(connection, "SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin, "
                             "sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,"
                             "NO_ZERO_DATE,NO_ZERO_IN_DATE,NO_ENGINE_SUBSTITUTION'");
}

void was_make(MYSQL *connection, unsigned version)
{
    was_as_command(connection);
    run_file(connection, 8);
    if (version > 8)
        run_file(connection, version);
}

char *was_describe(MYSQL *connection)
{
    database_run(connection, "SET SESSION group_concat_max_len = 16000000");
    return database_text(
        connection,
        "SELECT REPLACE(CONCAT_WS('\n',"
        " (SELECT GROUP_CONCAT(CONCAT_WS(' ', 'column', table_name, ordinal_position, column_name,"
        "   column_type, is_nullable, column_default, extra, collation_name, generation_expression)"
        "   ORDER BY table_name, ordinal_position SEPARATOR '\n')"
        "  FROM information_schema.columns WHERE table_schema = DATABASE()),"
        " (SELECT GROUP_CONCAT(CONCAT_WS(' ', 'key', table_name, index_name, seq_in_index,"
        "   column_name, non_unique) ORDER BY table_name, index_name, seq_in_index SEPARATOR '\n')"
        "  FROM information_schema.statistics WHERE table_schema = DATABASE()),"
        " (SELECT GROUP_CONCAT(CONCAT_WS(' ', 'check', table_name, constraint_name, check_clause)"
        "   ORDER BY table_name, constraint_name SEPARATOR '\n')"
        "  FROM information_schema.check_constraints WHERE constraint_schema = DATABASE()),"
        " (SELECT GROUP_CONCAT(CONCAT_WS(' ', 'table', table_name, engine, table_collation,"
        "   row_format, create_options) ORDER BY table_name SEPARATOR '\n')"
        "  FROM information_schema.tables WHERE table_schema = DATABASE()),"
        " (SELECT GROUP_CONCAT(CONCAT_WS(' ', 'trigger', trigger_name, action_timing,"
        "   event_manipulation, event_object_table, sql_mode, action_statement)"
        "   ORDER BY trigger_name SEPARATOR '\n')"
        "  FROM information_schema.triggers WHERE event_object_schema = DATABASE()),"
        " (SELECT GROUP_CONCAT(CONCAT_WS(' ', routine_type, routine_name, dtd_identifier,"
        "   character_set_name, collation_name, sql_data_access, security_type, is_deterministic,"
        "   sql_mode, routine_definition) ORDER BY routine_name SEPARATOR '\n')"
        "  FROM information_schema.routines WHERE routine_schema = DATABASE()),"
        " (SELECT GROUP_CONCAT(CONCAT_WS(' ', 'parameter', specific_name, ordinal_position,"
        "   parameter_mode, parameter_name, dtd_identifier, collation_name)"
        "   ORDER BY specific_name, ordinal_position SEPARATOR '\n')"
        "  FROM information_schema.parameters WHERE specific_schema = DATABASE()),"
        " (SELECT GROUP_CONCAT(CONCAT_WS(' ', 'view', table_name, security_type, view_definition)"
        "   ORDER BY table_name SEPARATOR '\n')"
        "  FROM information_schema.views WHERE table_schema = DATABASE())), DATABASE(), 'here')");
}

static size_t line_size(const char *text)
{
    return strcspn(text, "\n");
}

void was_assert_same(const char *expected, const char *found)
{
    while (*expected != '\0' || *found != '\0') {
        const size_t size = line_size(expected);

        if (size != line_size(found) || strncmp(expected, found, size) != 0)
            fail_msg("not \"%.*s\" but \"%.*s\"", (int)size, expected, (int)line_size(found),
                     found);
        expected += size + (expected[size] == '\n');
        found += size + (found[size] == '\n');
    }
}

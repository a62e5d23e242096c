/* Migrations: many at once, after a crash in the middle, and what a client refuses.
 *
 * This program is of a later version: to the schema it has two migrations more, those of the folder
 * migrations beside it (CMakeLists.txt). */
#include "support/crew.h"
#include "support/database.h"
#include "support/theme.h"

#include "sql_text.h"

#include <tradelock/admin.h>

#include <pthread.h>

#define AT_ONCE 8

static tl_client *open_to_migrate(const database *where)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.config_file = database_option_file(where);
    options.flags = TL_CLIENT_NO_SESSION | TL_CLIENT_NO_SCHEMA;
    if (tl_client_open(&client, &options) != TL_OK)
        server_panic("%s", tl_error_message());
    return client;
}

static tl_status open_status(const database *where)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;
    tl_status status;

    options.config_file = database_option_file(where);
    options.flags = TL_CLIENT_NO_SESSION;
    status = tl_client_open(&client, &options);
    if (status == TL_OK)
        tl_client_close(client);
    return status;
}

static void assert_complete(const database *where)
{
    MYSQL *connection = database_connect(where);

    assert_int_equal(database_number(connection, "SELECT version FROM tl_schema"),
                     sql_migrations[sql_migrations_count - 1].number);
    assert_int_equal(database_number(connection, "SELECT identity LIKE "
                                                 "CONCAT(@@hostname, '%%') FROM tl_schema"),
                     1);
    assert_int_equal(database_number(connection, "SELECT COUNT(*) FROM information_schema.triggers "
                                                 "WHERE trigger_schema = DATABASE()"),
                     23);
    mysql_close(connection);
}

struct migrator {
    const database *where;
    tl_status status;
    tl_migrated migrated;
};

static void *migrate(void *context)
{
    struct migrator *m = context;
    tl_client *client = open_to_migrate(m->where);

    /* Another one's turn may last longer than a call waits: then it is to be called again. */
    do
        m->status = tl_migrate(client, &m->migrated);
    while (m->status == TL_TIMEOUT);
    tl_client_close(client);
    return NULL;
}

/* ----------------------------------------------------- a crash in the middle -- */

/* Sets the connection as the command sets its own, which the server keeps with what is made. */
static void as_command(MYSQL *connection)
{
    database_run(connection, "SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin, "
                             "sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,"
                             "NO_ZERO_DATE,NO_ZERO_IN_DATE,NO_ENGINE_SUBSTITUTION'");
}

/* Everything that the server says of the tables, triggers, routines and views, a line each, definers
 * left out; to be freed with free(). */
static char *describe(const database *where)
{
    MYSQL *connection = database_connect(where);
    char *text;

    database_run(connection, "SET SESSION group_concat_max_len = 16000000");
    text = database_text(
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
    mysql_close(connection);
    return text;
}

static size_t line_size(const char *text)
{
    return strcspn(text, "\n");
}

/* Fails the test where the two differ, and names the first line that does. */
static void assert_same(const char *expected, const char *found)
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

/* A database as a program of schema 1 left it; version 0: an empty one. */
static database *database_was(unsigned version)
{
    database *where = database_new_empty(server_shared(), NULL);
    MYSQL *connection = database_connect(where);

    as_command(connection);
    if (version > 0) {
        database_run(connection, "%s", sql_migrations[0].text);
        for (size_t i = 0; i < sql_objects_count; i++)
            database_run(connection, "%s", sql_objects[i].text);
        database_run(connection, "UPDATE tl_schema SET version = 1");
    }
    mysql_close(connection);
    return where;
}

/* The size of the statement: it ends with a line that ends in ";" and is no comment. */
static size_t statement_size(const char *text)
{
    const char *line = text;

    for (;;) {
        const size_t size = strcspn(line, "\n");

        if (line[size] == '\0' ||
            (size > 0 && line[size - 1] == ';' && strncmp(line, "--", 2) != 0))
            return (size_t)(line + size - text);
        line += size + 1;
    }
}

/* From one cut to the next: each statement of a migration, and some of the schema objects. */
#define ALL_DONE 0
#define AMONG_TABLES 1
#define AMONG_OBJECTS 15

/* Runs what a migration from that version runs, and stops after so many statements. */
static unsigned run_some(MYSQL *connection, unsigned version, unsigned most)
{
    for (size_t i = 0; i < sql_migrations_count; i++)
        for (const char *text = sql_migrations[i].text;
             sql_migrations[i].number > version && text[strspn(text, "\n")] != '\0';
             text += statement_size(text)) {
            if (most-- == 0)
                return AMONG_TABLES;
            database_run(connection, "%.*s", (int)statement_size(text), text);
        }
    for (size_t i = 0; i < sql_objects_count; i++) {
        if (most-- == 0)
            return AMONG_OBJECTS;
        database_run(connection, "%s", sql_objects[i].text);
    }
    return ALL_DONE;
}

/* As a database that `tradelock migrate` made at once; to be freed with free(). */
static char *describe_fresh(void)
{
    database *where = database_was(0);
    struct migrator m = {.where = where};
    char *text;

    migrate(&m);
    assert_int_equal(m.status, TL_OK);
    text = describe(where);
    database_free(where);
    return text;
}

/* The first tier and the deep one cut after a share of the statements. */
static unsigned one_in(void)
{
    return tier_pick(6, 3, 1);
}

/* It ends as expected from wherever it stopped; how many statements were cut after. */
static unsigned cut_after_each(unsigned version, const char *expected)
{
    unsigned more = AMONG_TABLES, cuts = 0;

    for (unsigned cut = 1; more != ALL_DONE; cut += more * one_in(), cuts++) {
        database *where = database_was(version);
        MYSQL *connection = database_connect(where);
        struct migrator m = {.where = where};
        char *found;

        as_command(connection);
        more = run_some(connection, version, cut);
        mysql_close(connection);
        assert_int_not_equal(open_status(where), TL_OK);
        migrate(&m);
        if (m.status != TL_OK)
            print_error("after %u statements: %s\n", cut, tl_error_message());
        assert_int_equal(m.status, TL_OK);
        assert_int_equal(m.migrated.from, version);
        assert_complete(where);
        assert_int_equal(open_status(where), TL_OK);
        found = describe(where);
        assert_same(expected, found);
        free(found);
        database_free(where);
    }
    return cuts;
}

/* -------------------------------------------------------------- many at once -- */

/* One of them does it all, and the others find it done. */
static void migrate_at_once(unsigned version)
{
    database *where = database_was(version);
    struct migrator migrators[AT_ONCE];
    pthread_t threads[AT_ONCE];
    unsigned by = 0;

    for (int i = 0; i < AT_ONCE; i++) {
        migrators[i] = (struct migrator){.where = where};
        assert_int_equal(pthread_create(&threads[i], NULL, migrate, &migrators[i]), 0);
    }
    for (int i = 0; i < AT_ONCE; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(migrators[i].status, TL_OK);
        assert_int_equal(migrators[i].migrated.to, sql_migrations[sql_migrations_count - 1].number);
        by += migrators[i].migrated.from == version;
        assert_int_equal(migrators[i].migrated.mended, 0);
    }
    assert_int_equal(by, 1);
    assert_complete(where);
    database_free(where);
}

TEST(test_many_at_once)
{
    migrate_at_once(0);
    migrate_at_once(1);
}

TEST(test_crash_in_the_middle)
{
    char *expected = describe_fresh();
    unsigned fresh = cut_after_each(0, expected), upgrade = cut_after_each(1, expected);

    print_message("cut after each of %u and %u statements\n", fresh, upgrade);
    assert_true((upgrade + 1) * one_in() >= sql_objects_count / AMONG_OBJECTS + 6);
    assert_true(fresh > upgrade);
    free(expected);
}

/* When each trigger was made. */
static char *created_at(MYSQL *connection)
{
    return database_text(connection,
                         "SELECT GROUP_CONCAT(trigger_name, ' ', created ORDER BY trigger_name) "
                         "FROM information_schema.triggers WHERE trigger_schema = DATABASE()");
}

/* ------------------------------------------------------ what the doctor says -- */

struct doctored {
    char sentence[512], made[512];
    tl_finding_level level, made_level;
};

static int keep_parts(void *context, const tl_finding *finding)
{
    struct doctored *doctored = context;

    if (strcmp(finding->check, "parts") == 0) {
        doctored->level = finding->level;
        snprintf(doctored->sentence, sizeof doctored->sentence, "%s", finding->sentence);
    }
    if (strcmp(finding->check, "definitions") == 0) {
        doctored->made_level = finding->level;
        snprintf(doctored->made, sizeof doctored->made, "%s", finding->sentence);
    }
    return 0;
}

/* What the doctor says of the parts. */
static struct doctored ask_doctor(const database *where)
{
    struct doctored doctored = {.sentence = "nothing was said"};
    tl_client *client = open_to_migrate(where);
    tl_status status = tl_doctor(client, keep_parts, &doctored);

    if (status != TL_OK && status != TL_SERVER_UNSAFE)
        server_panic("the doctor: %s", tl_error_message());
    tl_client_close(client);
    return doctored;
}

/* A trigger that is right is not touched by an upgrade; whatever differs is made anew. */
TEST(test_what_is_right_is_left_alone)
{
    static const char *const changes[] = {
        "CREATE OR REPLACE TRIGGER trade_lock_kept AFTER UPDATE ON trade_lock FOR EACH ROW BEGIN "
        "END",
        "ALTER PROCEDURE tl_purge_trades SQL SECURITY INVOKER",
        "CREATE OR REPLACE FUNCTION tl_account_name(account VARCHAR(38) CHARACTER SET utf8mb4 "
        "COLLATE utf8mb4_bin) RETURNS VARCHAR(384) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin "
        "DETERMINISTIC NO SQL SQL SECURITY INVOKER RETURN NULLIF(LEFT(account, "
        "CHAR_LENGTH(account) - LOCATE('@', REVERSE(account))), '')",
        "CREATE OR REPLACE SQL SECURITY INVOKER VIEW resource_lock_state AS SELECT r.*, 'free' AS "
        "state FROM resource_lock r",
        "CREATE OR REPLACE SQL SECURITY DEFINER VIEW trade_lock_first AS SELECT * FROM "
        "trade_lock_past",
    };
    /* Of a view, and of a routine's parameters, the doctor cannot tell. */
    static const char *const changed[] = {"by another version: trigger trade_lock_kept;",
                                          "by another version: procedure tl_purge_trades;", NULL,
                                          NULL, NULL};
    database *where = database_was(1);
    MYSQL *connection = database_connect(where);
    char *before = created_at(connection), *after, *expected, *found;
    struct migrator m = {.where = where};

    migrate(&m);
    assert_int_equal(m.status, TL_OK);
    after = created_at(connection);
    assert_string_equal(before, after);
    expected = describe(where);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct doctored doctored;

        database_run(connection, "%s", changes[i]);
        doctored = ask_doctor(where);
        if (changed[i] != NULL && strstr(doctored.made, changed[i]) == NULL)
            fail_msg("%s is not told: %s", changed[i], doctored.made);
        assert_int_equal(doctored.made_level,
                         changed[i] != NULL ? TL_FINDING_WARNING : TL_FINDING_OK);
        migrate(&m);
        assert_int_equal(m.status, TL_OK);
        if (m.migrated.mended != 1)
            fail_msg("mended %u after %s", m.migrated.mended, changes[i]);
        found = describe(where);
        assert_same(expected, found);
        free(found);
    }
    free(before);
    free(after);
    free(expected);
    mysql_close(connection);
    database_free(where);
}

TEST(test_a_second_time_changes_nothing)
{
    database *where = database_new_empty(server_shared(), NULL);
    struct migrator m = {.where = where};

    migrate(&m);
    migrate(&m);
    assert_int_equal(m.status, TL_OK);
    assert_int_equal(m.migrated.from, m.migrated.to);
    assert_int_equal(m.migrated.mended, 0);
    database_free(where);
}

/* ------------------------------------------------ beside services and a backup -- */

#define BACKUP_MS 6000
#define BEAT_MS 2500

/* A backup reads a table that is to be altered.  Whoever wants the table meanwhile stands behind
 * the migration, and so do heartbeats: for less time than makes a session uncertain. */
static void assert_beats_go_on(const char *table)
{
    database *where = database_was(1);
    MYSQL *backup = database_connect(where), *beating = database_connect(where);
    struct migrator m = {.where = where};
    const int64_t end_ms = crew_now_ms() + BACKUP_MS;
    int64_t longest_ms = 0;
    pthread_t thread;

    database_run(backup, "START TRANSACTION");
    database_number(backup, "SELECT COUNT(*) FROM %s", table);
    assert_int_equal(pthread_create(&thread, NULL, migrate, &m), 0);
    while (crew_now_ms() < end_ms) {
        const int64_t before_ms = crew_now_ms();

        database_number(beating, "SELECT COUNT(*) FROM %s", table);
        if (crew_now_ms() - before_ms > longest_ms)
            longest_ms = crew_now_ms() - before_ms;
        usleep(10000);
        if (longest_ms > BEAT_MS)
            break;
    }
    database_run(backup, "COMMIT");
    pthread_join(thread, NULL);
    if (longest_ms > BEAT_MS)
        fail_msg("%s was closed for %lld ms", table, (long long)longest_ms);
    assert_int_equal(m.status, TL_OK);
    assert_int_equal(m.migrated.from, 1);
    assert_complete(where);
    mysql_close(backup);
    mysql_close(beating);
    database_free(where);
}

TEST(test_nobody_waits_long_behind_a_migration)
{
    assert_beats_go_on("tl_session");
    assert_beats_go_on("trade_lock");
}

/* Each of them, one after the other, and then all at once. */
TEST(test_what_was_dropped_is_missed_and_made_anew)
{
    database *where = database_new(server_shared(), NULL);
    MYSQL *connection = database_connect(where);
    struct migrator m = {.where = where};
    struct doctored doctored = ask_doctor(where);

    assert_int_equal(doctored.level, TL_FINDING_OK);
    assert_non_null(strstr(doctored.sentence, "is there"));
    /* Whatever the migrations made is one of the parts. */
    assert_int_equal(database_number(connection,
                                     "SELECT (SELECT COUNT(*) FROM information_schema.triggers"
                                     " WHERE trigger_schema = DATABASE())"
                                     " + (SELECT COUNT(*) FROM information_schema.routines"
                                     " WHERE routine_schema = DATABASE())"
                                     " + (SELECT COUNT(*) FROM information_schema.views"
                                     " WHERE table_schema = DATABASE())"),
                     sql_objects_count);
    for (size_t i = 0; i < sql_objects_count; i += tier_pick(12, 6, 1)) {
        const struct sql_object *part = &sql_objects[i];

        database_run(connection, "DROP %s %s", part->kind, part->name);
        doctored = ask_doctor(where);
        assert_int_equal(doctored.level, TL_FINDING_UNSAFE);
        if (strstr(doctored.sentence, part->name) == NULL)
            fail_msg("%s is not missed: %s", part->name, doctored.sentence);
        migrate(&m);
        if (m.status != TL_OK)
            fail_msg("%s: %s", part->name, tl_error_message());
        assert_int_equal(m.migrated.mended, 1);
    }
    for (size_t i = 0; i < sql_objects_count; i++)
        database_run(connection, "DROP %s %s", sql_objects[i].kind, sql_objects[i].name);
    migrate(&m);
    assert_int_equal(m.status, TL_OK);
    assert_int_equal(m.migrated.mended, sql_objects_count);
    doctored = ask_doctor(where);
    assert_int_equal(doctored.level, TL_FINDING_OK);
    assert_complete(where);
    mysql_close(connection);
    database_free(where);
}

/* ----------------------------------------------------- what a client refuses -- */

static void assert_refused(const database *where, tl_status expected, const char *words)
{
    assert_string_equal(tl_status_name(open_status(where)), tl_status_name(expected));
    if (strstr(tl_error_message(), words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", tl_error_message(), words);
}

TEST(test_versions)
{
    database *where = database_new_empty(server_shared(), NULL);
    struct migrator m = {.where = where};
    MYSQL *connection;

    assert_refused(where, TL_NO_SCHEMA, "tradelock migrate");
    migrate(&m);
    connection = database_connect(where);
    /* Newer, and still serving this client: a server is migrated first. */
    database_run(connection, "UPDATE tl_schema SET version = 99, oldest_client = 1");
    assert_int_equal(open_status(where), TL_OK);
    migrate(&m);
    assert_int_equal(m.status, TL_OK);
    assert_int_equal(m.migrated.to, 99);
    /* Newer, and not serving it any more. */
    database_run(connection, "UPDATE tl_schema SET oldest_client = 98");
    assert_refused(where, TL_WRONG_SCHEMA, "serves programs of schema 98");
    migrate(&m);
    assert_int_equal(m.status, TL_WRONG_SCHEMA);
    assert_int_equal(database_number(connection, "SELECT version FROM tl_schema"), 99);
    database_run(connection, "DELETE FROM tl_schema");
    assert_refused(where, TL_NO_SCHEMA, "tradelock migrate");
    mysql_close(connection);
    database_free(where);
}

/* An account without rights gets a sentence, and nothing is left behind. */
TEST(test_without_rights)
{
    database *where = database_new_empty(server_shared(), NULL);
    MYSQL *connection = database_connect(where);
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;
    tl_migrated migrated = {7, 7, 7};
    char path[600];
    FILE *file;

    snprintf(path, sizeof path, "%s.plain", database_option_file(where));
    database_run(connection,
                 "CREATE OR REPLACE USER nobody_much@localhost; GRANT SELECT ON "
                 "%s.* TO nobody_much@localhost",
                 database_name(where));
    file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, "[tradelock-client]\nsocket=%s\nuser=nobody_much\ndatabase=%s\n",
            server_socket(server_shared()), database_name(where));
    fclose(file);
    options.config_file = path;
    options.flags = TL_CLIENT_NO_SESSION | TL_CLIENT_NO_SCHEMA;
    assert_int_equal(tl_client_open(&client, &options), TL_OK);
    assert_int_equal(tl_migrate(client, &migrated), TL_ACCESS_DENIED);
    assert_non_null(strstr(tl_error_message(), "migration schema"));
    assert_int_equal(migrated.from, 7);
    tl_client_close(client);
    assert_int_equal(database_number(connection, "SELECT COUNT(*) FROM "
                                                 "information_schema.tables WHERE "
                                                 "table_schema = DATABASE()"),
                     0);
    database_run(connection, "DROP USER nobody_much@localhost");
    remove(path);
    mysql_close(connection);
    database_free(where);
}

TESTS_OF(migrate, NULL, NULL)

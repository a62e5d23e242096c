/* Migrations: many at once, after a crash in the middle, and what a client refuses. */
#include "support/database.h"

#include "sql_text.h"

#include <tradelock/admin.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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
                     19);
    mysql_close(connection);
}

/* -------------------------------------------------------------- many at once -- */

struct migrator {
    const database *where;
    tl_status status;
    tl_migrated migrated;
};

static void *migrate(void *context)
{
    struct migrator *m = context;
    tl_client *client = open_to_migrate(m->where);

    m->status = tl_migrate(client, &m->migrated);
    tl_client_close(client);
    return NULL;
}

static void test_many_at_once(void **state)
{
    database *where = database_new_empty(server_shared(), NULL);
    struct migrator migrators[AT_ONCE];
    pthread_t threads[AT_ONCE];
    unsigned from_nothing = 0;

    (void)state;
    for (int i = 0; i < AT_ONCE; i++) {
        migrators[i] = (struct migrator){.where = where};
        assert_int_equal(pthread_create(&threads[i], NULL, migrate, &migrators[i]), 0);
    }
    for (int i = 0; i < AT_ONCE; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(migrators[i].status, TL_OK);
        assert_int_equal(migrators[i].migrated.to, sql_migrations[sql_migrations_count - 1].number);
        from_nothing += migrators[i].migrated.from == 0;
        assert_int_equal(migrators[i].migrated.mended, 0);
    }
    assert_int_equal(from_nothing, 1);
    assert_complete(where);
    database_free(where);
}

/* ----------------------------------------------------- a crash in the middle -- */

/* Where the next statement of a migration begins: a line that starts with one of the words that
 * start statements, but for the body of a trigger. */
static const char *next_statement(const char *from)
{
    const char *create = strstr(from, ";\n\nCREATE "), *view = strstr(from, ";\n\nINSERT ");
    const char *comment = strstr(from, ";\n\n--"), *next = NULL;
    const char *const found[] = {create, view, comment};

    for (size_t i = 0; i < 3; i++)
        if (found[i] != NULL && (next == NULL || found[i] < next))
            next = found[i];
    return next != NULL ? next + 1 : NULL;
}

static void crash_after(const database *where, const char *text, size_t size)
{
    MYSQL *connection = database_connect(where);

    database_run(connection, "%.*s", (int)size, text);
    mysql_close(connection);
}

static void test_crash_in_the_middle(void **state)
{
    const char *text = sql_migrations[0].text;
    unsigned cuts = 0;

    (void)state;
    for (const char *cut = next_statement(text); cut != NULL; cut = next_statement(cut)) {
        database *where = database_new_empty(server_shared(), NULL);
        struct migrator m = {.where = where};

        crash_after(where, text, (size_t)(cut - text));
        assert_int_not_equal(open_status(where), TL_OK);
        migrate(&m);
        if (m.status != TL_OK)
            print_error("after %u statements: %s\n", cuts + 1, tl_error_message());
        assert_int_equal(m.status, TL_OK);
        assert_int_equal(m.migrated.from, 0);
        assert_complete(where);
        assert_int_equal(open_status(where), TL_OK);
        database_free(where);
        cuts++;
    }
    print_message("cut after %u statements\n", cuts);
    assert_true(cuts >= 8);
}

static void test_a_second_time_changes_nothing(void **state)
{
    database *where = database_new_empty(server_shared(), NULL);
    struct migrator m = {.where = where};

    (void)state;
    migrate(&m);
    migrate(&m);
    assert_int_equal(m.status, TL_OK);
    assert_int_equal(m.migrated.from, m.migrated.to);
    assert_int_equal(m.migrated.mended, 0);
    database_free(where);
}

/* ------------------------------------------------------ what somebody dropped -- */

struct doctored {
    char sentence[512];
    tl_finding_level level;
};

static int keep_parts(void *context, const tl_finding *finding)
{
    struct doctored *doctored = context;

    if (strcmp(finding->check, "parts") == 0) {
        doctored->level = finding->level;
        snprintf(doctored->sentence, sizeof doctored->sentence, "%s", finding->sentence);
    }
    return 0;
}

/* What the doctor says of the parts. */
static struct doctored ask_doctor(const database *where)
{
    struct doctored doctored = {"nothing was said", TL_FINDING_OK};
    tl_client *client = open_to_migrate(where);
    tl_status status = tl_doctor(client, keep_parts, &doctored);

    if (status != TL_OK && status != TL_SERVER_UNSAFE)
        server_panic("the doctor: %s", tl_error_message());
    tl_client_close(client);
    return doctored;
}

/* Each of them, one after the other, and then all at once. */
static void test_what_was_dropped_is_missed_and_made_anew(void **state)
{
    database *where = database_new(server_shared(), NULL);
    MYSQL *connection = database_connect(where);
    struct migrator m = {.where = where};
    struct doctored doctored = ask_doctor(where);

    (void)state;
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
                     sql_parts_count);
    for (size_t i = 0; i < sql_parts_count; i++) {
        const struct sql_part *part = &sql_parts[i];

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
    for (size_t i = 0; i < sql_parts_count; i++)
        database_run(connection, "DROP %s %s", sql_parts[i].kind, sql_parts[i].name);
    migrate(&m);
    assert_int_equal(m.status, TL_OK);
    assert_int_equal(m.migrated.mended, sql_parts_count);
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

static void test_versions(void **state)
{
    database *where = database_new_empty(server_shared(), NULL);
    struct migrator m = {.where = where};
    MYSQL *connection;

    (void)state;
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
static void test_without_rights(void **state)
{
    database *where = database_new_empty(server_shared(), NULL);
    MYSQL *connection = database_connect(where);
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;
    tl_migrated migrated = {7, 7, 7};
    char path[600];
    FILE *file;

    (void)state;
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
    assert_non_null(strstr(tl_error_message(), "0001_trade_lock"));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_crash_in_the_middle),
        cmocka_unit_test(test_a_second_time_changes_nothing),
        cmocka_unit_test(test_what_was_dropped_is_missed_and_made_anew),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_without_rights),
    };

    return server_report(cmocka_run_group_tests(tests, NULL, NULL));
}

/*
 * Brings the schema up to this library's version.
 *
 * First it runs the missing migrations, which change tables and their rows.  Then it makes each
 * schema object that is missing or differs from this library's.  What rests on both comes then.
 * Last it raises the version.  DDL commits by itself, so all of it can stop half way; each
 * migration can be run again from its start.  A named lock of the server admits one migrating
 * process at a time, and ends with its connection.
 */
#include "admin/migrate.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "base/text.h"
#include "client/client.h"
#include "client/read.h"
#include "client/server.h"
#include "client/schema.h"
#include "sql_text.h"
#include "store/bind.h"
#include "store/server.h"

#include <tradelock/admin/server.h>

#include <stdio.h>
#include <string.h>

static db_answer store_migrate_same(db *connection, const char *kind, const char *name,
                                    const char *other, db_result *result)
{
    if (strcmp(kind, "trigger") == 0)
        return SQL_RUN(connection, result, migrate_same_trigger, .name = db_text(name),
                       .definition = db_text(other));
    if (strcmp(kind, "view") == 0)
        return SQL_RUN(connection, result, migrate_same_view, .name = db_text(name),
                       .other = db_text(other));
    return SQL_RUN(connection, result, migrate_same_routine, .name = db_text(name),
                   .other = db_text(other));
}

/* How long to wait for another process that migrates: shorter than the time after which a silent
 * server counts as lost. */
#define TURN_WAIT_S 25
/* How long to wait for those who use a table, in all and at a time.  While this waits, whoever
 * comes to the table waits behind it, heartbeats too; in the pause they are through. */
#define TABLE_WAIT_MS 20000
#define TABLE_WAIT_ONCE_S 1
#define TABLE_PAUSE_MS 1000
#define BESIDE "tl_compared"

static tl_status wait_for_turn(db *connection)
{
    RESULT result = DB_RESULT_INIT;
    db_answer answer =
        SQL_RUN(connection, NULL, migrate_wait, .wait_s = db_uint(TABLE_WAIT_ONCE_S));

    if (answer == DB_DONE)
        answer = SQL_RUN(connection, &result, migrate_turn, .wait_s = db_uint(TURN_WAIT_S));
    if (answer != DB_DONE)
        TRY(db_error_status(connection, answer, "waiting for the turn to migrate"));
    else if (result.rows != 1 || db_get_int(&result, 0, 0) != 1)
        return error_set(TL_TIMEOUT,
                         "another process has been migrating this database for %d "
                         "seconds: look whether it still runs, then try again",
                         TURN_WAIT_S);
    else if (!db_get_int(&result, 0, 1))
        return error_set(TL_SERVER_UNSAFE, "the schema's statements are longer than the server "
                                           "takes: set max_allowed_packet to 1M or more");
    return TL_OK;
}

/* Takes the turn on a connection of its own, whose closing ends it.  Makes nothing on a server that
 * no client would trust: otherwise whoever migrates would hear of it last. */
tl_status migrate_take_turn(tl_client *client, db **out)
{
    db *connection = NULL;
    tl_status status;

    error_clear();
    TRY(client_check(client));
    TRY(pool_open_extra(client->connections, POOL_BUSINESS, &connection));
    status = server_check_settings(connection);
    if (status == TL_OK)
        status = wait_for_turn(connection);
    if (status == TL_OK)
        *out = connection;
    else
        pool_close_extra(client->connections, connection);
    return status;
}

/* Whether somebody used a table, and after a pause it can be tried again. */
static int may_try_again(db *connection, db_answer answer, int64_t deadline_ms)
{
    if (answer != DB_ERROR || db_error_kind_of(db_errno(connection)) != DB_KIND_REPEAT ||
        clock_left_ms(deadline_ms) == 0)
        return 0;
    clock_sleep_until_ms(clock_deadline(TABLE_PAUSE_MS));
    return 1;
}

/* The text can be run again from its start. */
static db_answer run_text(db *connection, const char *name, const char *text)
{
    const int64_t deadline_ms = clock_deadline(TABLE_WAIT_MS);
    db_answer answer;

    do
        answer = db_run_script(connection, name, text);
    while (may_try_again(connection, answer, deadline_ms));
    return answer;
}

static tl_status apply(db *connection, const struct sql_migration *migration)
{
    db_answer answer = run_text(connection, migration->name, migration->text);

    if (answer == DB_DONE)
        return TL_OK;
    if (answer == DB_UNANSWERED)
        return error_set(TL_UNKNOWN,
                         "the server's answer to migration %s was lost: run `tradelock "
                         "migrate` again, which goes on where it stopped",
                         migration->name);
    return error_prefix(db_error_status(connection, answer, "migrating"), "migration %s",
                        migration->name);
}

static int is_there(const db_result *there, const struct sql_object *object)
{
    for (size_t row = 0; row < there->rows; row++)
        if (schema_objects_have(db_get_text(there, row, 0), object->kind, object->name))
            return 1;
    return 0;
}

/* Makes the same definition under another name.  The server keeps it in its own words, which can be
 * compared with those of the object. */
static db_answer make_beside(db *connection, const struct sql_object *object)
{
    const char *name = strstr(object->text, object->name);
    const size_t size = strlen(object->text) + sizeof BESIDE;
    char *text = memory_new(size);
    db_answer answer;

    if (text == NULL)
        return DB_NO_MEMORY;
    snprintf(text, size, "%.*s" BESIDE "%s", (int)(name - object->text), object->text,
             name + strlen(object->name));
    answer = db_run_script(connection, object->name, text);
    memory_free(text);
    return answer;
}

static db_answer compare(db *connection, const struct sql_object *object, int *same)
{
    const int trigger = strcmp(object->kind, "trigger") == 0;
    RESULT result = DB_RESULT_INIT;
    db_answer answer = trigger ? DB_DONE : make_beside(connection, object);

    if (answer == DB_DONE)
        answer = store_migrate_same(connection, object->kind, object->name,
                                    trigger ? object->text : BESIDE, &result);
    *same = answer == DB_DONE && result.rows == 1 && db_get_int(&result, 0, 0) == 1;
    if (answer == DB_DONE && !trigger) {
        char text[64];

        snprintf(text, sizeof text, "DROP %s IF EXISTS " BESIDE, object->kind);
        answer = db_run_script(connection, object->name, text);
    }
    return answer;
}

/* Makes the object unless it is right already: replacing a trigger waits for everybody who uses its
 * table. */
static db_answer make(db *connection, const struct sql_object *object, const db_result *there,
                      unsigned *made)
{
    db_answer answer = DB_DONE;
    int same = 0;

    if (is_there(there, object))
        answer = compare(connection, object, &same);
    if (answer != DB_DONE || same)
        return answer;
    ++*made;
    return run_text(connection, object->name, object->text);
}

/* Makes these objects.  Triggers come last: they call functions, and services use their tables
 * meanwhile. */
static tl_status make_objects(db *connection, const struct sql_object *objects, size_t count,
                              unsigned *made)
{
    static const char *const kinds[] = {"function", "procedure", "view", "trigger"};
    RESULT there = DB_RESULT_INIT;
    db_answer answer = db_run(connection, &sql_migrate_objects, NULL, 0, &there);

    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
        for (size_t i = 0; i < count && answer == DB_DONE; i++)
            if (strcmp(objects[i].kind, kinds[kind]) == 0 &&
                !(schema_objects_is_rule(&objects[i]) && is_there(&there, &objects[i])))
                answer = make(connection, &objects[i], &there, made);
    return db_error_status(connection, answer, "making the schema's triggers and procedures");
}

tl_status migrate_fleet_objects(db *connection, unsigned *made)
{
    return make_objects(connection, sql_fleet_objects, sql_fleet_objects_count, made);
}

/* A database of no fleet has nothing of it. */
static tl_status mend_fleet(db *connection, unsigned *made)
{
    RESULT of = DB_RESULT_INIT;
    const db_answer answer = db_run(connection, &sql_fleet_of, NULL, 0, &of);

    TRY(read_status(connection, answer, "reading which fleet this is of"));
    if (answer == DB_DONE && of.rows == 1 && !db_is_null(&of, 0, FLEET_OF_NAME))
        TRY(migrate_fleet_objects(connection, made));
    return TL_OK;
}

static tl_status note_identity(db *connection)
{
    return db_error_status(connection, db_run(connection, &sql_schema_identity, NULL, 0, NULL),
                           "noting which server this is");
}

/* Runs the missing migrations.  The version is raised last: until then no program of this version
 * begins, and an interrupted migration starts over. */
static tl_status apply_missing(db *connection, unsigned version, const struct config *config,
                               unsigned *made)
{
    db_answer answer;

    for (size_t i = 0; i < sql_migrations_count; i++)
        if (sql_migrations[i].number > version)
            TRY(apply(connection, &sql_migrations[i]));
    TRY(make_objects(connection, sql_objects, sql_objects_count, made));
    TRY(mend_fleet(connection, made));
    TRY(note_identity(connection));
    answer = SQL_RUN(connection, NULL, migrate_done, .version = db_uint(schema_newest()),
                     .retention_ms = db_int(config->retention_ms),
                     .payload_keep_ms = db_int(config->payload_keep_ms));
    return db_error_status(connection, answer, "raising the schema's version");
}

/* Brings the schema up, unless it is newer: what a newer one consists of is not known here. */
static tl_status bring_up(db *connection, const struct config *config, tl_migrated *migrated)
{
    schema_found found;
    unsigned made = 0;

    TRY(schema_read(connection, &found));
    migrated->from = found.version;
    if (found.version <= schema_newest())
        TRY(apply_missing(connection, found.version, config, &made));
    TRY(schema_read(connection, &found));
    TRY(schema_judge(&found));
    migrated->to = found.version;
    migrated->mended = migrated->from == found.version ? made : 0;
    return TL_OK;
}

tl_status tl_migrate(tl_client *client, tl_migrated *migrated)
{
    tl_migrated done = {0, 0, 0};
    db *connection = NULL;
    tl_status status;

    TRY(migrate_take_turn(client, &connection));
    status = bring_up(connection, &client->config, &done);
    pool_close_extra(client->connections, connection);
    if (status == TL_OK && migrated != NULL)
        *migrated = done;
    return status;
}

/* Roles are of the whole server, so their names carry the database's. */
static db_answer run_for_database(db *connection, const char *name, const char *text)
{
    enum { SERVER_DATABASE = 7 };
    static const char mark[] = "{database}";
    struct text_buffer named;
    RESULT of = DB_RESULT_INIT;
    db_answer answer = db_run(connection, &sql_doctor_server, NULL, 0, &of);

    text_buffer_init(&named);
    for (const char *at; answer == DB_DONE && (at = strstr(text, mark)) != NULL;
         text = at + sizeof mark - 1) {
        text_buffer_append(&named, text, (size_t)(at - text));
        text_buffer_append_text(&named, db_get_text(&of, 0, SERVER_DATABASE));
    }
    text_buffer_append_text(&named, text);
    if (answer == DB_DONE)
        answer =
            named.failed ? DB_NO_MEMORY : db_run_script(connection, name, text_buffer_text(&named));
    text_buffer_free(&named);
    return answer;
}

/* The rule of slots is a fleet's alone, so grants.sql cannot name it. */
static tl_status grant_rule(db *connection)
{
    static const char grants[] =
        "GRANT EXECUTE ON FUNCTION tl_customer_slot TO `{database}_application`;"
        "GRANT EXECUTE ON FUNCTION tl_customer_slot TO `{database}_operator`;"
        "GRANT EXECUTE ON FUNCTION tl_customer_slot TO `{database}_reader`;";
    RESULT of = DB_RESULT_INIT;
    db_answer answer = db_run(connection, &sql_fleet_of, NULL, 0, &of);

    if (answer == DB_DONE && of.rows == 1 && !db_is_null(&of, 0, FLEET_OF_NAME))
        answer = run_for_database(connection, "grants of a fleet", grants);
    return db_error_status(connection, answer, "granting the fleet's rule");
}

tl_status tl_grant_roles(tl_client *client)
{
    db *connection = NULL;
    tl_status status;

    TRY(migrate_take_turn(client, &connection));
    status = db_error_status(connection, run_for_database(connection, "grants", sql_grants),
                             "granting the roles");
    if (status == TL_OK)
        status = grant_rule(connection);
    pool_close_extra(client->connections, connection);
    return status;
}

/* Compares the schema objects that should be there with a list of those that are.  Touches no
 * database: the list is a text. */

size_t schema_objects_count(int of_fleet)
{
    return sql_objects_count + (of_fleet ? sql_fleet_objects_count : 0);
}

static const struct sql_object *object_at(size_t i)
{
    return i < sql_objects_count ? &sql_objects[i] : &sql_fleet_objects[i - sql_objects_count];
}

int schema_objects_is_rule(const struct sql_object *object)
{
    return strcmp(object->name, "tl_customer_slot") == 0;
}

int schema_objects_have(const char *there, const char *kind, const char *name)
{
    char line[128];
    size_t size = (size_t)snprintf(line, sizeof line, "%s %s", kind, name);

    for (const char *at = there; (at = strstr(at, line)) != NULL; at += size)
        if ((at == there || at[-1] == '\n') && (at[size] == '\n' || at[size] == '\0'))
            return 1;
    return 0;
}

static void add_name(char *names, size_t space, const struct sql_object *object)
{
    char name[128];

    snprintf(name, sizeof name, "%s%s %s", names[0] != '\0' ? ", " : "", object->kind,
             object->name);
    (void)text_add(names, space, name);
}

unsigned schema_objects_missing(const char *there, int of_fleet, char *names, size_t space)
{
    unsigned count = 0;

    names[0] = '\0';
    for (size_t i = 0; i < schema_objects_count(of_fleet); i++) {
        if (schema_objects_have(there, object_at(i)->kind, object_at(i)->name))
            continue;
        add_name(names, space, object_at(i));
        count++;
    }
    return count;
}

/* What tl_parts_made() takes into the hash: all of a trigger, of others what follows on the
 * header. The server leaves the character set of literals out.  The caller frees it; NULL: out
 * of memory. */
static char *text_made(const struct sql_object *object)
{
    static const char charset[] = "_ascii ", header[] = "SQL SECURITY ";
    const int trigger = strcmp(object->kind, "trigger") == 0;
    const char *from = trigger ? object->text : strstr(object->text, header), *at;
    char *text = memory_new(strlen(object->text) + 1), *end = text;

    if (text == NULL || from == NULL)
        return text;
    while ((at = strstr(from, charset)) != NULL) {
        memcpy(end, from, (size_t)(at - from));
        end += at - from;
        *end++ = ' ';
        from = at + sizeof charset - 1;
    }
    strcpy(end, from);
    return text;
}

/* -1: out of memory. */
static int is_changed(const struct sql_object *object, const char *made)
{
    char line[160], hash[2 * SHA256_SIZE + 1], *text;
    uint8_t digest[SHA256_SIZE];
    const char *at;

    snprintf(line, sizeof line, "%s %s ", object->kind, object->name);
    at = strstr(made, line);
    while (at != NULL && at != made && at[-1] != '\n')
        at = strstr(at + 1, line);
    if (at == NULL)
        return 0;
    text = text_made(object);
    if (text == NULL)
        return -1;
    sha256_of(digest, text, strlen(text));
    text_hex(hash, digest, sizeof digest);
    memory_free(text);
    return strncmp(at + strlen(line), hash, strlen(hash)) != 0;
}

int schema_objects_changed(const char *made, int of_fleet, char *names, size_t space)
{
    int count = 0;

    names[0] = '\0';
    for (size_t i = 0; i < schema_objects_count(of_fleet); i++) {
        const struct sql_object *object = object_at(i);
        const int changed = schema_objects_is_rule(object) ? 0 : is_changed(object, made);

        if (changed < 0)
            return -1;
        if (changed)
            add_name(names, space, object);
        count += changed;
    }
    return count;
}

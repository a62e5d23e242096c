/* The doctor's examination of the server: settings, version, clock, transport, schema, restore.
 * Reads only. */
#include "admin/doctor.h"

#include "base/error.h"
#include "base/text.h"
#include "client/schema.h"
#include "client/server.h"

#include "sql_text.h"

#include <tradelock/admin/server.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define CLOCK_SKEW_US INT64_C(2000000)
#define SLEPT_US 2000
#define SMALLEST_PACKET (INT64_C(1) << 20)

/* ---------------------------------------------------------------- settings -- */

static int is_on(const char *value)
{
    return strcasecmp(value, "ON") == 0 || strcmp(value, "1") == 0;
}

static int is_off(const char *value)
{
    return strcasecmp(value, "OFF") == 0 || strcmp(value, "0") == 0;
}

static int is_one(const char *value)
{
    return strcmp(value, "1") == 0;
}

static int is_innodb(const char *value)
{
    return strcasecmp(value, "InnoDB") == 0;
}

static int is_strict(const char *value)
{
    return strstr(value, "STRICT_TRANS_TABLES") != NULL ||
           strstr(value, "STRICT_ALL_TABLES") != NULL;
}

static int is_by_row(const char *value)
{
    return strcasecmp(value, "STATEMENT") != 0;
}

static int is_large_packet(const char *value)
{
    return atoll(value) >= SMALLEST_PACKET;
}

static int is_guarded(const char *value)
{
    return strcasecmp(value, "NO") != 0;
}

static int is_anything(const char *value)
{
    (void)value;
    return 1;
}

/* A setting with only_with counts only if that other setting is on. */
static const struct setting {
    const char *name, *only_with;
    int (*good)(const char *value);
    tl_finding_level otherwise;
    const char *good_sentence, *bad_sentence;
} settings[] = {
    {"innodb_flush_log_at_trx_commit", NULL, is_one, TL_FINDING_UNSAFE,
     "every commit is on disk before it is answered",
     "a crash of the server would forget commits that were answered: set it to 1"},
    {"sync_binlog", "log_bin", is_one, TL_FINDING_UNSAFE,
     "the binary log is on disk before a commit is answered",
     "a crash could lose commits from the binary log that the tables have: set it to 1"},
    {"binlog_format", "log_bin", is_by_row, TL_FINDING_UNSAFE,
     "the binary log takes the library's transactions",
     "the server refuses the library's transactions: set it to ROW or MIXED"},
    {"innodb_rollback_on_timeout", NULL, is_off, TL_FINDING_UNSAFE,
     "who meets a locked row loses one statement",
     "whoever meets a locked row would lose the whole transaction: set it to OFF"},
    {"innodb_doublewrite", NULL, is_on, TL_FINDING_WARNING, "torn pages are repaired",
     "a crash while a page is written can destroy rows, unless the file system "
     "guarantees whole pages: set it to ON"},
    {"innodb_force_recovery", NULL, is_off, TL_FINDING_UNSAFE, "normal operation",
     "the server runs in an emergency mode: repair it first"},
    {"read_only", NULL, is_off, TL_FINDING_UNSAFE, "the server takes writes",
     "the server takes no writes, perhaps because it is a replica: name the primary"},
    {"secure_timestamp", NULL, is_guarded, TL_FINDING_UNSAFE, "no account sets a clock of its own",
     "an account may set a clock of its own (SET timestamp), by which what it does is dated and "
     "what "
     "others hold is over: set it to SUPER"},
    {"check_constraint_checks", NULL, is_on, TL_FINDING_WARNING,
     "the tables refuse a fourth status",
     "the tables would take a status other than P, F or Y: set it to ON"},
    {"default_storage_engine", NULL, is_innodb, TL_FINDING_WARNING,
     "new business tables are transactional",
     "business tables made without naming an engine would not roll back: set it to "
     "InnoDB"},
    {"sql_mode", NULL, is_strict, TL_FINDING_WARNING,
     "SQL typed by hand is checked as strictly as the library's own",
     "SQL typed by hand may be cut or changed silently: add STRICT_TRANS_TABLES"},
    {"innodb_snapshot_isolation", NULL, is_anything, TL_FINDING_OK,
     "either value is handled; ON answers 1020 where others would wait", ""},
    {"max_allowed_packet", NULL, is_large_packet, TL_FINDING_WARNING,
     "the largest payload fits into a statement",
     "large payloads or groups would be refused: set it to 1M or more"},
    {"wsrep_on", NULL, is_off, TL_FINDING_WARNING, "no Galera cluster",
     "Galera loses updates when several nodes are written: let all services and workers "
     "write to one and the same node"},
};

static const char *value_of(const db_result *variables, const char *name)
{
    for (size_t row = 0; row < variables->rows; row++)
        if (strcmp(db_get_text(variables, row, 0), name) == 0)
            return db_get_text(variables, row, 1);
    return NULL;
}

static void judge_setting(doctor *d, const struct setting *setting, const db_result *variables)
{
    const char *value = value_of(variables, setting->name);
    const char *needed = setting->only_with != NULL ? value_of(variables, setting->only_with) : "1";

    /* A server that does not know a setting does not have what it switches. */
    if (value == NULL || needed == NULL || !is_on(needed))
        return;
    if (setting->good(value))
        doctor_tell(d, TL_FINDING_OK, setting->name, value, "%s", setting->good_sentence);
    else
        doctor_tell(d, setting->otherwise, setting->name, value, "%s", setting->bad_sentence);
}

tl_status doctor_settings(doctor *d)
{
    RESULT variables = DB_RESULT_INIT;

    TRY(read_run(d->connection, &sql_doctor_variables, &variables,
                 "reading the server's settings"));
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        judge_setting(d, &settings[i], &variables);
    return TL_OK;
}

/* ----------------------------------------------- version, clock, transport -- */

enum {
    SERVER_VERSION,
    SERVER_NOW,
    SERVER_MOVED,
    SERVER_PEER,
    SERVER_CIPHER,
    SERVER_ACCOUNT,
    SERVER_ROLE,
    SERVER_DATABASE
};

static void judge_version(doctor *d, const char *version)
{
    d->serves = server_version_serves(version);
    if (d->serves)
        doctor_tell(d, TL_FINDING_OK, "version", version, "new enough");
    else
        doctor_tell(d, TL_FINDING_UNSAFE, "version", version,
                    "tradelock needs " SERVER_OLDEST " or newer");
}

static void judge_clock(doctor *d, int64_t server_us)
{
    struct timespec now;
    int64_t skew_us;
    char found[48];

    clock_gettime(CLOCK_REALTIME, &now);
    skew_us = server_us - ((int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
    snprintf(found, sizeof found, "%+.3f s", (double)skew_us / 1e6);
    if (skew_us > -CLOCK_SKEW_US && skew_us < CLOCK_SKEW_US)
        doctor_tell(d, TL_FINDING_OK, "clock", found,
                    "server and this machine agree; only the server's clock is used");
    else
        doctor_tell(d, TL_FINDING_WARNING, "clock", found,
                    "the server's clock differs from this machine's: locks are not "
                    "affected, but times in its history do not match yours; check NTP");
}

static void judge_transport(doctor *d, const char *peer, const char *cipher)
{
    const int local = strncmp(peer, "localhost", 9) == 0 || strncmp(peer, "127.", 4) == 0 ||
                      strncmp(peer, "::1", 3) == 0;

    if (cipher[0] != '\0')
        doctor_tell(d, TL_FINDING_OK, "transport", cipher, "the connection is encrypted");
    else if (local)
        doctor_tell(d, TL_FINDING_OK, "transport", peer,
                    "the connection does not leave this machine");
    else
        doctor_tell(d, TL_FINDING_UNSAFE, "transport", peer,
                    "this connection crosses a network unencrypted: set ssl-ca and "
                    "ssl-verify-server-cert in [tradelock-client]");
}

tl_status doctor_server(doctor *d)
{
    RESULT r = DB_RESULT_INIT;

    TRY(read_run(d->connection, &sql_doctor_server, &r, "asking the server about itself"));
    if (r.rows == 1) {
        judge_version(d, db_get_text(&r, 0, SERVER_VERSION));
        judge_clock(d, db_get_int(&r, 0, SERVER_NOW));
        if (db_get_int(&r, 0, SERVER_MOVED) >= SLEPT_US)
            doctor_tell(d, TL_FINDING_OK, "sysdate", "the moment itself",
                        "the log carries the moment of each write");
        else
            doctor_tell(d, TL_FINDING_WARNING, "sysdate", "the start of the statement",
                        "the log carries the start of each statement, not the moment of "
                        "the write: start the server without sysdate-is-now");
        judge_transport(d, db_get_text(&r, 0, SERVER_PEER), db_get_text(&r, 0, SERVER_CIPHER));
        text_copy(d->account, sizeof d->account, db_get_text(&r, 0, SERVER_ACCOUNT));
        text_copy(d->role, sizeof d->role, db_get_text(&r, 0, SERVER_ROLE));
        text_copy(d->database, sizeof d->database, db_get_text(&r, 0, SERVER_DATABASE));
    }
    return TL_OK;
}

/* Tells of the last clock jump on record. */
tl_status doctor_clock(doctor *d)
{
    enum { JUMPS, UNSETTLED, SIZE, AGE, ACTOR };
    RESULT r = DB_RESULT_INIT;
    char found[64];

    TRY(read_run(d->connection, &sql_clock_last, &r, "asking for clock jumps"));
    if (r.rows == 1 && db_get_int(&r, 0, JUMPS) > 0) {
        snprintf(found, sizeof found, "%+.3f s, %.0f s ago", (double)db_get_int(&r, 0, SIZE) / 1e6,
                 (double)db_get_int(&r, 0, AGE) / 1e6);
        if (db_get_int(&r, 0, UNSETTLED) > 0)
            doctor_tell(d, TL_FINDING_UNSAFE, "clock step", found,
                        "the server's clock was set, as %s saw, and the trades in process "
                        "are not looked through yet: nothing is sent again, failed or "
                        "purged; a janitor does that, or `tradelock reap`",
                        db_get_text(&r, 0, ACTOR));
        else
            doctor_tell(d, TL_FINDING_OK, "clock step", found,
                        "the last time that the server's clock was set; every trade in "
                        "process was looked through since");
    }
    return TL_OK;
}

/* ------------------------------------------------------------------ schema -- */

static const char *next_word(const char *from, char *word, size_t space)
{
    const char *end = strchr(from, ' ');

    snprintf(word, space, "%.*s", end != NULL ? (int)(end - from) : (int)strlen(from), from);
    return end != NULL ? end + 1 : from + strlen(from);
}

static void tell_change(char *to, size_t space, const char *part, const char *was, const char *is)
{
    size_t used = strlen(to);

    if (strcmp(was, is) != 0)
        snprintf(to + used, space - used, "%s%s %s -> %s", used > 0 ? ", " : "", part,
                 was[0] != '\0' ? was : "(none)", is);
}

/* Writes which parts of "host id directory" have changed. */
static void tell_changes(char *to, size_t space, const char *was, const char *is)
{
    char old[256], now[256];

    to[0] = '\0';
    was = next_word(was, old, sizeof old);
    is = next_word(is, now, sizeof now);
    tell_change(to, space, "host", old, now);
    was = next_word(was, old, sizeof old);
    is = next_word(is, now, sizeof now);
    tell_change(to, space, "server id", old, now);
    tell_change(to, space, "data directory", was, is);
}

static void judge_identity(doctor *d, const char *was, const char *here)
{
    char changes[420];

    tell_changes(changes, sizeof changes, was, here);
    if (was[0] == '\0')
        doctor_tell(d, TL_FINDING_WARNING, "identity", here,
                    "it is not on record which server the schema was made on: run "
                    "`tradelock migrate`");
    else if (strcmp(was, here) == 0)
        doctor_tell(d, TL_FINDING_OK, "identity", here, "the server that was accepted");
    else
        doctor_tell(d, TL_FINDING_UNSAFE, "identity", here,
                    "it is another server than the one that was accepted (%s): after a "
                    "restore or the promotion of a replica, steps may be missing; "
                    "compare with the channel before anything is sent",
                    changes);
}

static void judge_restore(doctor *d, const db_result *r)
{
    const char *how = db_get_text(r, 0, COLUMN_restore_status_step);

    if (!db_get_int(r, 0, COLUMN_restore_status_restored))
        doctor_tell(d, TL_FINDING_OK, "restore", "none open", "no restore is declared or found");
    else
        doctor_tell(d, TL_FINDING_UNSAFE, "restore", how[0] != '\0' ? how : "found",
                    "a restore is declared or found and not accepted, so that nothing is "
                    "granted, sent or failed: see `tradelock restore status`");
}

tl_status doctor_schema(doctor *d)
{
    schema_found found;
    char text[64];

    TRY(schema_read(d->connection, &found));
    d->schema = schema_judge(&found);
    d->is_newest = found.version == schema_newest();
    snprintf(text, sizeof text, "version %u, serves %u and newer", found.version,
             found.oldest_client);
    if (d->schema != TL_OK) {
        doctor_tell(d, TL_FINDING_UNSAFE, "schema", found.version > 0 ? text : "none", "%s",
                    tl_error_message());
        return TL_OK;
    }
    doctor_tell(d, TL_FINDING_OK, "schema", text, "it serves this program");
    return TL_OK;
}

tl_status doctor_restore(doctor *d)
{
    RESULT r = DB_RESULT_INIT;
    tl_status status =
        read_run(d->connection, &sql_restore_status, &r, "asking which server this is");

    if (status == TL_OK && r.rows == 1) {
        judge_identity(d, db_get_text(&r, 0, COLUMN_restore_status_was),
                       db_get_text(&r, 0, COLUMN_restore_status_is_now));
        judge_restore(d, &r);
    } else if (status == TL_ACCESS_DENIED) {
        /* Every program of this account will get the same error. */
        doctor_tell(d, TL_FINDING_UNSAFE, "restore", "not to be seen", "%s", tl_error_message());
        status = TL_OK;
    }
    return status;
}

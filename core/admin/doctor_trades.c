/* The doctor's examination of the database: schema objects, history, rights, sessions, due work,
 * conflicts.  Writes a probe, which it rolls back. */
#include "admin/doctor.h"

#include "admin/migrate.h"

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "client/blocker.h"
#include "store/bind.h"
#include "store/server.h"
#include "store/store.h"
#include "store/group.h"

#include "sql_text.h"

#include <tradelock/admin/server.h>
#include <tradelock/lane.h>
#include <tradelock/layer.h>

#include <stdio.h>
#include <string.h>

#define DEFINER_GONE 1449
#define PROBE_CUST "tl-doctor"
#define PROBE_CUST_MAX 32
#define PROBE_OP "TL_DOCTOR"

/* ----------------------------------------------------------------- history -- */

/* Whether an ending of a row that is not there is refused, and makes no row. */
static int lost_is_lost(doctor *d, const step *end)
{
    char serial[RANDOM_UUID];
    step lost = *end, *steps[] = {&lost};

    random_uuid(serial);
    lost.serial_no = serial;
    return !d->serves || store_group(d->connection, steps, 1) == DB_ERROR;
}

/*
 * Proves that the triggers keep what a step replaces, and that their definers still have the rights
 * for it.  No other look proves that.  It writes a row and ends it, asks history for the token of
 * the ask, tries to end a row that is not there, and rolls all of it back.  The ask has a remark,
 * since the row itself would keep a first step without one.
 */
static db_answer probe(doctor *d, const char *cust, int *seen, tl_status *refused)
{
    char serial[RANDOM_UUID];
    RESULT result = DB_RESULT_INIT;
    step s = {.kind = STEP_ASK,
              .cust_no = cust,
              .serial_no = serial,
              .op_code = PROBE_OP,
              .thread_no = tl_thread_uuid(),
              .lane = 'S',
              .remark = "probe",
              .max_hold_ms = 1000,
              .deadline_ms = -1};
    step end = {.kind = STEP_FINISH_SYNC,
                .cust_no = cust,
                .serial_no = serial,
                .op_code = PROBE_OP,
                .thread_no = tl_thread_uuid(),
                .lane = 'S',
                .status = 'Y',
                .proof = '-'};
    db_answer answer;

    random_uuid(serial);
    random_token(s.token);
    random_token(end.token);
    memcpy(end.held_token, s.token, STEP_TOKEN);
    answer = db_begin(d->connection);
    if (answer == DB_DONE)
        answer = store_step(d->connection, &s, 0);
    end.held_fence = s.fence;
    if (answer == DB_DONE)
        answer = store_step(d->connection, &end, 0);
    if (answer == DB_DONE)
        answer = store_token_seen(d->connection, &s, &result);
    *seen = answer == DB_DONE && result.rows == 1 && db_get_int(&result, 0, 0) == 1 &&
            lost_is_lost(d, &end);
    if (answer == DB_ERROR) {
        /* The sentence is kept here, since the rollback replaces it. */
        *refused = db_error_status(d->connection, answer, "writing a probe");
        (void)db_rollback(d->connection);
    } else if (answer == DB_DONE) {
        answer = db_rollback(d->connection);
    }
    return answer;
}

static void judge_schema_objects(doctor *d, const char *there)
{
    char found[64], missing[256];
    const size_t all = schema_objects_count(d->of_fleet);
    unsigned count = schema_objects_missing(there, d->of_fleet, missing, sizeof missing);

    d->incomplete = count > 0;
    snprintf(found, sizeof found, "%zu of %zu", all - count, all);
    if (count == 0)
        doctor_tell(d, TL_FINDING_OK, "parts", found,
                    "every trigger, function, procedure and view of the schema is there");
    else
        doctor_tell(d, TL_FINDING_UNSAFE, "parts", found,
                    "missing: %s; run `tradelock migrate` as an administrator, which "
                    "makes them anew",
                    missing);
}

/* A shard of a fleet has triggers of its own. */
static tl_status look_for_fleet(doctor *d)
{
    RESULT r = DB_RESULT_INIT;
    const db_answer answer =
        d->is_newest ? db_run(d->connection, &sql_fleet_of, NULL, 0, &r) : DB_DONE;

    d->of_fleet = answer == DB_DONE && r.rows == 1 && !db_is_null(&r, 0, FLEET_OF_NAME);
    return read_status(d->connection, answer, "looking of which fleet this is a shard");
}

tl_status doctor_schema_objects(doctor *d)
{
    RESULT r = DB_RESULT_INIT;
    db_answer answer;
    db_error_kind kind;

    TRY(look_for_fleet(d));
    answer = db_run(d->connection, &sql_doctor_parts, NULL, 0, &r);
    kind = answer == DB_ERROR ? db_error_kind_of(db_errno(d->connection)) : DB_KIND_OTHER;

    if (answer == DB_DONE && r.rows == 1) {
        judge_schema_objects(d, db_get_text(&r, 0, 0));
    } else if (kind == DB_KIND_SCHEMA) {
        d->incomplete = 1;
        doctor_tell(d, TL_FINDING_UNSAFE, "parts", "unknown",
                    "missing: function tl_parts, and others perhaps; run `tradelock "
                    "migrate` as an administrator, which makes them anew");
    } else if (answer == DB_ERROR && db_errno(d->connection) == DEFINER_GONE) {
        d->incomplete = 1;
        (void)read_status(d->connection, answer, "looking for the schema's objects");
        doctor_tell(d, TL_FINDING_UNSAFE, "definer", "gone", "%s", tl_error_message());
    } else if (kind == DB_KIND_ACCESS) {
        doctor_tell(d, TL_FINDING_WARNING, "parts", "unknown",
                    "%s may not look whether triggers, functions and views are there: "
                    "run `tradelock migrate --grants` as an administrator",
                    d->account);
    } else {
        TRY(read_status(d->connection, answer, "looking for the schema's objects"));
    }
    return TL_OK;
}

/* What a later version makes is not known here. */
tl_status doctor_schema_made(doctor *d)
{
    char changed[256], found[32];
    RESULT r = DB_RESULT_INIT;
    db_answer answer =
        d->is_newest ? db_run(d->connection, &sql_doctor_parts_made, NULL, 0, &r) : DB_DONE;
    int count;

    if (answer == DB_ERROR && (db_error_kind_of(db_errno(d->connection)) == DB_KIND_ACCESS ||
                               db_error_kind_of(db_errno(d->connection)) == DB_KIND_SCHEMA))
        doctor_tell(d, TL_FINDING_WARNING, "definitions", "unknown",
                    "%s may not look whether triggers, functions and procedures are as they were "
                    "made: run `tradelock migrate --grants` as an administrator",
                    d->account);
    else
        TRY(read_status(d->connection, answer, "looking how the schema's objects are made"));
    if (answer == DB_DONE && r.rows == 1) {
        count = schema_objects_changed(db_get_text(&r, 0, 0), d->of_fleet, changed, sizeof changed);
        snprintf(found, sizeof found, "%d changed", count);
        if (count < 0)
            return error_set(TL_NO_MEMORY, "out of memory for comparing the schema's objects");
        if (count == 0)
            doctor_tell(d, TL_FINDING_OK, "definitions", found,
                        "triggers, functions and procedures are as this version makes them");
        else
            doctor_tell(d, TL_FINDING_WARNING, "definitions", found,
                        "changed by hand, or made by another version: %s; run `tradelock migrate` "
                        "as an administrator, which makes them anew",
                        changed);
    }
    return TL_OK;
}

/* A shard takes a probe of its own customers alone; "" where it has no slot. */
static db_answer choose_customer(doctor *d, char cust[PROBE_CUST_MAX + 1])
{
    RESULT r = DB_RESULT_INIT;
    db_answer answer = DB_DONE;

    snprintf(cust, PROBE_CUST_MAX + 1, "%s", d->of_fleet ? "" : PROBE_CUST);
    if (d->of_fleet)
        answer = db_run(d->connection, &sql_fleet_probe, NULL, 0, &r);
    if (answer == DB_DONE && r.rows == 1)
        text_copy(cust, PROBE_CUST_MAX + 1, db_get_text(&r, 0, 0));
    return answer;
}

tl_status doctor_history(doctor *d)
{
    char cust[PROBE_CUST_MAX + 1] = "";
    int seen = 0;
    tl_status refused = TL_OK;
    db_answer answer = store_right(d->connection, STORE_RIGHT_ASK);

    if (answer == DB_ERROR) {
        doctor_tell(d, TL_FINDING_OK, "log", "not tried",
                    "whether steps are recorded can only be tried with the account of a "
                    "service");
        return TL_OK;
    }
    if (answer == DB_DONE)
        answer = choose_customer(d, cust);
    if (answer == DB_DONE && cust[0] == '\0') {
        doctor_tell(d, TL_FINDING_OK, "log", "not tried",
                    "this shard owns no slot now, so nothing is written here");
        return TL_OK;
    }
    if (answer == DB_DONE)
        answer = probe(d, cust, &seen, &refused);
    if (answer == DB_ERROR && refused == TL_OK)
        refused = db_error_status(d->connection, answer, "choosing a customer for a probe");
    if (answer == DB_ERROR && refused == TL_TRY_AGAIN)
        doctor_tell(d, TL_FINDING_WARNING, "log", "a probe had to wait",
                    "an open transaction keeps new locks from being written (%s): look "
                    "for it in information_schema.innodb_trx, end it, and ask again",
                    tl_error_message());
    else if (answer == DB_ERROR)
        doctor_tell(d, TL_FINDING_UNSAFE, "log", "a probe was refused",
                    "locks cannot be written and recorded (%s): the account that ran the "
                    "migration must exist and keep its rights; else drop the triggers "
                    "and run `tradelock migrate` as an administrator, who is their "
                    "definer then",
                    tl_error_message());
    else if (answer == DB_DONE && seen)
        doctor_tell(d, TL_FINDING_OK, "log", "a probe was recorded",
                    "what a step replaces is kept with the rights of the migrating account");
    else if (answer == DB_DONE)
        doctor_tell(d, TL_FINDING_UNSAFE, "log", "a probe was not recorded",
                    "steps leave no trace, or an ending makes the row that it does not "
                    "find: the triggers are not ours; drop them and run `tradelock "
                    "migrate` as an administrator");
    return answer == DB_ERROR ? TL_OK : read_status(d->connection, answer, "trying the log");
}

/* ------------------------------------------------------------------ trades -- */

static tl_status judge_sessions(doctor *d)
{
    char found[64];
    RESULT r = DB_RESULT_INIT;

    TRY(read_run(d->connection, &sql_doctor_sessions, &r, "looking at the sessions"));
    if (r.rows == 1 && db_get_uint(&r, 0, 0) == 0) {
        doctor_tell(d, TL_FINDING_OK, "sessions", "0 silent",
                    "no session is silent that was not ended");
    } else if (r.rows == 1) {
        snprintf(found, sizeof found, "%llu silent", (unsigned long long)db_get_uint(&r, 0, 0));
        doctor_tell(d, TL_FINDING_WARNING, "sessions", found,
                    "processes have been silent for up to %lld s more than their time-out, and "
                    "nobody has ended their sessions or opened their trades: run a worker",
                    (long long)db_get_int(&r, 0, 1));
    }
    return TL_OK;
}

/* An account that may not read which channels are paused was told so above. */
static void judge_drain(doctor *d)
{
    RESULT r = DB_RESULT_INIT;
    const db_answer answer =
        SQL_RUN(d->connection, &r, channel_list, .from_channel = db_text(TL_CHANNEL_ALL),
                .to_channel = db_text(TL_CHANNEL_ALL));

    if (answer == DB_DONE && r.rows == 1 && db_get_int(&r, 0, COLUMN_channel_list_paused) != 0)
        doctor_tell(d, TL_FINDING_WARNING, "drain", "the installation drains",
                    "operators drain the installation (%s: %s), so no trade is begun: `tradelock "
                    "drain --end` ends that",
                    db_get_text(&r, 0, COLUMN_channel_list_account),
                    db_get_text(&r, 0, COLUMN_channel_list_reason));
}

static tl_status judge_site(doctor *d)
{
    RESULT r = DB_RESULT_INIT;
    const tl_status status = read_run(d->connection, &sql_site, &r, "reading the site");
    const char *site = status == TL_OK && r.rows == 1 ? db_get_text(&r, 0, 0) : "";

    if (site[0] != '\0' && strcmp(site, tl_client_site(d->client)) != 0)
        doctor_tell(d, TL_FINDING_WARNING, "site", site,
                    "these settings say site = %s: no process of a service begins with them",
                    tl_client_site(d->client));
    else if (site[0] != '\0')
        doctor_tell(d, TL_FINDING_OK, "site", site, "all channel keys are made with it");
    return status;
}

/* Channels that were registered: what each promises, and whether a trade waits for one that no
 * process has registered any more. */
static tl_status judge_channels(doctor *d)
{
    char found[2 * TL_CHANNEL_MAX + 8];
    RESULT r = DB_RESULT_INIT;

    TRY(read_run(d->connection, &sql_channel_registered, &r, "reading what channels promise"));
    for (size_t row = 0; row < r.rows; row++) {
        const char *channel = db_get_text(&r, row, 0), *op_code = db_get_text(&r, row, 1);
        RESULT waits = DB_RESULT_INIT;

        snprintf(found, sizeof found, "%s for %s", channel, op_code);
        if (db_get_uint(&r, row, 3) == 0)
            TRY(read_status(d->connection,
                            SQL_RUN(d->connection, &waits, channel_waiting,
                                    .channel = db_text(channel), .op_code = db_text(op_code)),
                            "looking whether a trade waits for a channel"));
        if (waits.rows > 0)
            doctor_tell(d, TL_FINDING_WARNING, "channel", found,
                        "trades wait for it, such as %s of %s, and no process that lives has "
                        "registered it: they are sent to no other.  Start the release that has it, "
                        "or register it as a former channel",
                        db_get_text(&waits, 0, 0), db_get_text(&waits, 0, 1));
        else
            doctor_tell(d, TL_FINDING_OK, "channel", found, "%s", db_get_text(&r, row, 2));
    }
    return TL_OK;
}

/* Programs that are older than a kind of decision about channels. */
static tl_status judge_obedience(doctor *d)
{
    static const char *const kinds[] = {"pause", "limit", "breaker"};
    RESULT r = DB_RESULT_INIT;

    TRY(read_run(d->connection, &sql_overview_sessions, &r, "reading the sessions"));
    for (size_t row = 0; row < r.rows; row++)
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
            if (db_get_int(&r, row, 8) || strstr(db_get_text(&r, row, 11), kinds[i]) != NULL)
                continue;
            doctor_tell(d, TL_FINDING_WARNING, "decisions", kinds[i],
                        "%s %llu@%s does not obey a %s of a channel, since its program is older: "
                        "end it, and start today's",
                        db_get_text(&r, row, 1), (unsigned long long)db_get_uint(&r, row, 2),
                        db_get_text(&r, row, 3), kinds[i]);
        }
    return TL_OK;
}

/* How late the oldest due row is; 0: nothing is due.  Finished trades stand between the due rows,
 * so it searches in stretches. */
static tl_status find_overdue(doctor *d, const store_operation *operation, int64_t *late_ms)
{
    const char *op_code = operation->op_code;
    store_stretch stretch = {.from_us = operation->low_water_us};
    RESULT r = DB_RESULT_INIT;
    int empty;

    *late_ms = 0;
    do {
        stretch.to_us = STRETCH_END_US;
        TRY(read_status(d->connection,
                        store_low_water_stretch(d->connection, op_code, &stretch, &empty),
                        "looking for due work"));
        TRY(read_status(d->connection,
                        SQL_RUN(d->connection, &r, doctor_overdue, .op_code = db_text(op_code),
                                .from_us = db_int(stretch.from_us), .to_us = db_int(stretch.to_us)),
                        "looking for due work"));
        if (r.rows == 1) {
            *late_ms = db_get_int(&r, 0, 0);
            break;
        }
        stretch.from_us = stretch.to_us;
    } while (stretch.from_us < operation->now_us);
    return TL_OK;
}

static tl_status judge_operation(doctor *d, const store_operation *operation, unsigned *overdue)
{
    const char *op_code = operation->op_code;
    char found[96];
    int64_t late_ms;

    TRY(find_overdue(d, operation, &late_ms));
    if (late_ms > TL_UNCLAIMED_S * INT64_C(1000)) {
        ++*overdue;
        snprintf(found, sizeof found, "%s, %lld s late", op_code, (long long)(late_ms / 1000));
        /* The lane is late, but a worker registers the operation without "_RETRY". */
        doctor_tell(d, TL_FINDING_WARNING, "due work", found,
                    "nobody claims the due work of %.*s: start a worker that has this "
                    "operation registered, or look at the parked trades",
                    (int)tl_business_op_size(op_code), op_code);
    }
    return TL_OK;
}

static tl_status judge_due_work(doctor *d)
{
    unsigned overdue = 0;
    store_operation operation = {.op_code = ""};
    tl_status status;

    do {
        status = read_status(d->connection, store_operation_next(d->connection, &operation),
                             "reading the operations");
        if (status != TL_OK || operation.op_code[0] == '\0')
            break;
        status = judge_operation(d, &operation, &overdue);
    } while (status == TL_OK);
    if (status == TL_OK && overdue == 0)
        doctor_tell(d, TL_FINDING_OK, "due work", "none is late", "what is due is being claimed");
    return status;
}

static tl_status judge_conflicts(doctor *d)
{
    char found[64];
    RESULT r = DB_RESULT_INIT;

    TRY(read_run(d->connection, &sql_doctor_conflicts, &r, "looking for conflicts"));
    if (r.rows == 1 && db_get_uint(&r, 0, 0) == 0) {
        doctor_tell(d, TL_FINDING_OK, "conflicts", "none", "no evidence contradicts a row");
    } else if (r.rows == 1) {
        snprintf(found, sizeof found, "%llu trades", (unsigned long long)db_get_uint(&r, 0, 0));
        doctor_tell(d, TL_FINDING_WARNING, "conflicts", found,
                    "evidence says that money moved where a row says otherwise: see "
                    "`tradelock ls --conflict`; two operators must decide");
    }
    return TL_OK;
}

/* Where the server does not show it nothing is said. */
static void judge_blocker(doctor *d)
{
    blocker found;

    if (blocker_read(d->connection, &found) != DB_DONE)
        return;
    if (!blocker_is_long(&found))
        doctor_tell(d, TL_FINDING_OK, "transaction", "none is old", "nobody holds rows for long");
    else
        doctor_tell(d, TL_FINDING_WARNING, "transaction", found.account,
                    "asks and heartbeats may wait for it, so end it unless it has to be: %s",
                    found.text);
}

tl_status doctor_trades(doctor *d)
{
    const tl_status sessions = judge_sessions(d);

    /* What locks the sessions is told all the same. */
    judge_drain(d);
    judge_blocker(d);
    TRY(sessions);
    TRY(judge_site(d));
    TRY(judge_channels(d));
    TRY(judge_obedience(d));
    TRY(judge_due_work(d));
    return judge_conflicts(d);
}

/*
 * Declares a restore for an operator, shows it, and lets two operators accept it.  They accept once
 * they have compared the channel's statements.  Writes tl_restore; a procedure of the schema does
 * the rest (sql/object/restore.sql).
 *
 * The first `accept` proposes.  The `accept` of another account confirms, and carries it out in the
 * same transaction with the rights of the schema's owner.  It forgets every "nothing was sent",
 * since the step that sent may be lost.  It takes every lease mutex and read-write lock from its
 * holder, since a later grant may be lost.
 *
 * Both halves are about one restore, on one server; a restore that is declared or found in between
 * voids the proposal.  A half whose answer was lost is found again, so accepting may be repeated.
 */
#include "client/read.h"

#include "base/error.h"
#include "base/text.h"
#include "store/bind.h"
#include "store/position.h"
#include "transition/task.h"

#include "sql_text.h"

#include <tradelock/admin/restore.h>

#include <string.h>

static db_answer store_restore_open(db *connection, const char *how, const char *actor,
                                    const char *reason)
{
    return SQL_RUN(connection, NULL, restore_declare, .how = db_text(how),
                   .reason = db_text(reason), .actor = db_text(actor));
}

/* Operators accept once for all trades, beside endings that go on: a server with many writers, above
 * all Galera, gives this transaction up again and again.  No payment waits for it but these. */
#define PATIENCE_MS 60000

/* Carries out what an operator decided.  TL_OK: it is done. */
static tl_status carry_out(tl_client *client, task *t, const char *actor, const char *reason)
{
    error_clear();
    TRY(client_check(client));
    TRY(read_check_person(actor, reason));
    task_run(client->engine, t,
             client->config.commit_ms > PATIENCE_MS ? client->config.commit_ms : PATIENCE_MS);
    return t->verdict == VERDICT_APPLIED ? TL_OK : t->status;
}

/* ------------------------------------------------------------------- declaring -- */

struct opening {
    int fenced; /* of a promotion */
    const char *actor, *reason;
};

static db_answer run_declaring(task *t, db *connection)
{
    const struct opening *o = t->context;

    return store_restore_open(connection, "declared", o->actor, o->reason);
}

/* If the answer was lost and a restore is declared twice, one accepting still ends it. */
tl_status tl_restore_declare(tl_client *client, const char *actor, const char *reason)
{
    struct opening o = {0, actor, reason};
    static const task_kind kind = {.run = run_declaring};
    task t = {.kind = &kind, .name = "declaring the restore", .context = &o};

    TRY(carry_out(client, &t, actor, reason));
    log_line(&client->logger, TL_ALARM, NULL, 0, "a restore was declared by %s: %s", actor, reason);
    return TL_OK;
}

/* ------------------------------------------------------------------- promoting -- */

#define REFUSED_BY_TRIGGER 1644

static db_answer write_promoting(const struct opening *p, db *connection)
{
    RESULT row = DB_RESULT_INIT;
    db_answer answer = db_run(connection, &sql_restore_status, NULL, 0, &row);
    const int is_promoted =
        answer == DB_DONE && row.rows == 1 &&
        db_get_int(&row, 0, COLUMN_restore_status_is_here) != 0 &&
        strcmp(db_get_text(&row, 0, COLUMN_restore_status_step), "promoted") == 0;
    const int is_accepted =
        is_promoted && db_get_uint(&row, 0, COLUMN_restore_status_restore_no) ==
                           db_get_uint(&row, 0, COLUMN_restore_status_accepted_no);

    if (answer == DB_DONE && !is_promoted)
        answer = store_restore_open(connection, "promoted", p->actor, p->reason);
    if (answer == DB_DONE && p->fenced && !is_accepted) {
        answer = store_restore_open(connection, "fenced", p->actor, p->reason);
        if (answer == DB_ERROR && db_error_kind_of(db_errno(connection)) == DB_KIND_DUPLICATE)
            answer = DB_DONE; /* somebody has said so */
    }
    return answer;
}

/* Promoting twice does no harm: who has attested under the first number attests again.  Nobody sees
 * that it was promoted before it is said that the server before is off. */
static db_answer run_promoting(task *t, db *connection)
{
    char filter[STORE_FILTER_SPACE];
    int has_name;
    db_answer answer = store_connection_filter(connection, filter, sizeof filter, &has_name);

    if (answer == DB_DONE && filter[0] != '\0') {
        task_fail(t, error_set(TL_REFUSED,
                               "this server may lack what was committed before, since its "
                               "replication %s%s: declare a restore",
                               has_name ? "may have filters of " : "has ", filter));
        return DB_DONE;
    }
    if (answer == DB_DONE)
        answer = db_begin(connection);
    if (answer == DB_DONE)
        answer = write_promoting(t->context, connection);
    if (answer == DB_DONE)
        answer = db_commit(connection);
    else if (answer == DB_ERROR)
        answer = db_undo(connection);
    return answer;
}

static int judge_refused(task *t, const db *connection)
{
    if (db_errno(connection) != REFUSED_BY_TRIGGER)
        return 0;
    task_fail(t, error_set(TL_REFUSED, "%s", db_error(connection)));
    return 1;
}

tl_status tl_promote(tl_client *client, int fenced, const char *actor, const char *reason)
{
    struct opening p = {fenced, actor, reason};
    static const task_kind kind = {.run = run_promoting, .judge = judge_refused};
    task t = {.kind = &kind, .name = "promoting the server", .context = &p};

    TRY(carry_out(client, &t, actor, reason));
    log_line(&client->logger, TL_ALARM, NULL, 0, "this server was promoted by %s: %s", actor,
             reason);
    return TL_OK;
}

/* --------------------------------------------------------------------- looking -- */

static void copy(char *to, size_t space, const db_result *row, int column)
{
    text_copy(to, space, db_get_text(row, 0, (size_t)column));
}

static void take_state(tl_restore *to, const db_result *row)
{
    to->open = db_get_int(row, 0, COLUMN_restore_status_restored) != 0;
    to->number = db_get_uint(row, 0, COLUMN_restore_status_restore_no);
    to->accepted = db_get_uint(row, 0, COLUMN_restore_status_accepted_no);
    to->since_us = db_get_int(row, 0, COLUMN_restore_status_since_us);
    to->accepted_us = db_get_int(row, 0, COLUMN_restore_status_accepted_us);
    to->proposed_us = db_get_int(row, 0, COLUMN_restore_status_proposed_us);
    to->own_proposal = db_get_int(row, 0, COLUMN_restore_status_own_proposal) != 0;
    to->doubtful = db_get_uint(row, 0, COLUMN_restore_status_doubtful);
    copy(to->was, sizeof to->was, row, COLUMN_restore_status_was);
    copy(to->is, sizeof to->is, row, COLUMN_restore_status_is_now);
    copy(to->how, sizeof to->how, row, COLUMN_restore_status_step);
    copy(to->reason, sizeof to->reason, row, COLUMN_restore_status_reason);
    copy(to->actor, sizeof to->actor, row, COLUMN_restore_status_actor);
    copy(to->account, sizeof to->account, row, COLUMN_restore_status_account);
    copy(to->proposal, sizeof to->proposal, row, COLUMN_restore_status_proposal);
    copy(to->proposer, sizeof to->proposer, row, COLUMN_restore_status_proposer);
    copy(to->proposer_account, sizeof to->proposer_account, row,
         COLUMN_restore_status_proposer_account);
    copy(to->confirmer_account, sizeof to->confirmer_account, row,
         COLUMN_restore_status_confirmer_account);
}

static tl_status read_state(db *connection, tl_restore *state)
{
    RESULT row = DB_RESULT_INIT;

    TRY(read_run(connection, &sql_restore_status, &row, "looking for a restore"));
    if (row.rows != 1)
        return error_set(TL_NO_SCHEMA, "the row of tl_schema is missing");
    take_state(state, &row);
    return TL_OK;
}

static tl_status read_trades(db *connection, tl_restore_fn each, void *context)
{
    RESULT rows = DB_RESULT_INIT;

    TRY(read_run(connection, &sql_restore_trades, &rows, "counting what is in process"));
    for (size_t row = 0; row < rows.rows; row++) {
        const tl_restore_count count = {
            .op_code = db_get_text(&rows, row, 0),
            .state = db_get_text(&rows, row, 1),
            .count = db_get_uint(&rows, row, 2),
            .currency = db_is_null(&rows, row, 3) ? NULL : db_get_text(&rows, row, 3),
            .sum_minor = db_is_null(&rows, row, 4) ? NULL : db_get_text(&rows, row, 4),
        };

        if (each(context, &count) != 0)
            break;
    }
    return TL_OK;
}

tl_status tl_restore_status(tl_client *client, tl_restore *state, tl_restore_fn each, void *context)
{
    READING at = {.client = client};
    tl_restore found = TL_RESTORE_INIT;

    TRY(read_begin(&at));
    if (state == NULL || state->version != TL_RESTORE_VERSION)
        return error_set(TL_INVALID, "state is NULL or its version is not set");
    TRY(read_state(at.connection, &found));
    if (each != NULL)
        TRY(read_trades(at.connection, each, context));
    *state = found;
    return TL_OK;
}

enum missing_column {
    MISSING_SESSION,
    MISSING_WHOSE,
    MISSING_ATTESTED,
    MISSING_COUNT,
    MISSING_KEPT,
    MISSING_STEP,
    MISSING_CUST,
    MISSING_SERIAL,
    MISSING_OP,
    MISSING_TOKEN
};

static tl_missing missing_of(const db_result *rows, size_t row)
{
    return (tl_missing){
        .session = db_get_text(rows, row, MISSING_SESSION),
        .whose = db_get_text(rows, row, MISSING_WHOSE),
        .attested = db_get_int(rows, row, MISSING_ATTESTED) != 0,
        .missing = db_get_uint(rows, row, MISSING_COUNT),
        .not_kept = !db_is_null(rows, row, MISSING_KEPT) && !db_get_int(rows, row, MISSING_KEPT),
        .step = db_get_text(rows, row, MISSING_STEP),
        .cust_no = db_get_text(rows, row, MISSING_CUST),
        .serial_no = db_get_text(rows, row, MISSING_SERIAL),
        .op_code = db_get_text(rows, row, MISSING_OP),
        .token = db_get_text(rows, row, MISSING_TOKEN),
    };
}

tl_status tl_restore_missing(tl_client *client, uint64_t number, tl_missing_fn each, void *context)
{
    READING at = {.client = client};
    RESULT rows = DB_RESULT_INIT;

    TRY(read_begin(&at));
    TRY(read_check_each(each != NULL));
    TRY(read_status(at.connection,
                    SQL_RUN(at.connection, &rows, attest_list, .number = db_uint(number)),
                    "reading what is missing"));
    for (size_t row = 0; row < rows.rows; row++) {
        const tl_missing missing = missing_of(&rows, row);

        if (each(context, &missing) != 0)
            break;
    }
    return TL_OK;
}

/* ------------------------------------------------------------------- accepting -- */

struct accepting {
    tl_client *client;
    const char *actor, *reason;
    uint64_t number; /* of the restore */
    int confirms;
    uint64_t doubtful;
    tl_status status; /* the result of the transaction */
};

/* Which half this account has to write now.  0: none, and a->status says why. */
static int judge(struct accepting *a, const db_result *row)
{
    int open = db_get_uint(row, 0, COLUMN_restore_status_restore_no) !=
               db_get_uint(row, 0, COLUMN_restore_status_accepted_no);
    int proposed = !db_is_null(row, 0, COLUMN_restore_status_proposed_us);

    a->number = db_get_uint(row, 0, COLUMN_restore_status_restore_no);
    a->confirms = proposed;
    a->doubtful = db_get_uint(row, 0, COLUMN_restore_status_doubtful);
    if (!open) {
        a->status = error_set(TL_REFUSED, "no restore is declared or found, so there is "
                                          "nothing to accept");
        return 0;
    }
    if (proposed && db_get_int(row, 0, COLUMN_restore_status_proposed_elsewhere)) {
        a->status = error_set(TL_LOST, "it was proposed on another server; look again, "
                                       "and declare the restore anew");
        return 0;
    }
    a->status = TL_OK;
    if (proposed && db_get_int(row, 0, COLUMN_restore_status_own_proposal))
        a->status = error_set(TL_PARKED,
                              "%s has proposed to accept it: another operator, "
                              "with an account of their own, must confirm",
                              db_get_text(row, 0, COLUMN_restore_status_proposer_account));
    return a->status == TL_OK;
}

static db_answer write_half(struct accepting *a, db *connection)
{
    RESULT row = DB_RESULT_INIT;
    db_answer answer = SQL_RUN(connection, NULL, restore_half, .number = db_uint(a->number),
                               .half = db_text(a->confirms ? "confirmed" : "proposed"),
                               .reason = db_text(a->reason), .actor = db_text(a->actor));

    if (answer == DB_DONE && a->confirms)
        answer = SQL_RUN(connection, NULL, restore_carry_out,
                         .max_hold_ms = db_int(a->client->policy.max_hold_ms),
                         .thread_no = db_text(tl_thread_uuid()));
    if (answer == DB_DONE)
        answer = db_run(connection, &sql_restore_status, NULL, 0, &row);
    if (answer == DB_DONE)
        a->doubtful = db_get_uint(&row, 0, COLUMN_restore_status_doubtful);
    return answer;
}

static db_answer run_half(task *t, db *connection)
{
    struct accepting *a = t->context;
    RESULT row = DB_RESULT_INIT;
    db_answer answer = db_begin(connection);
    int writes = 0;

    if (answer == DB_DONE)
        answer = db_run(connection, &sql_restore_status, NULL, 0, &row);
    if (answer == DB_DONE)
        writes = judge(a, &row);
    if (answer == DB_DONE && writes)
        answer = write_half(a, connection);
    if (answer == DB_DONE)
        answer = writes ? db_commit(connection) : db_rollback(connection);
    else if (answer == DB_ERROR)
        answer = db_undo(connection);
    return answer;
}

/* Reads whether the half whose answer was lost was written. */
static db_answer read_half(task *t, db *connection)
{
    struct accepting *a = t->context;
    RESULT row = DB_RESULT_INIT;
    db_answer answer = db_run(connection, &sql_restore_status, NULL, 0, &row);

    if (answer == DB_DONE && db_get_uint(&row, 0, COLUMN_restore_status_restore_no) == a->number &&
        db_get_int(&row, 0,
                   a->confirms ? COLUMN_restore_status_own_confirmation
                               : COLUMN_restore_status_own_proposal)) {
        t->verdict = VERDICT_APPLIED;
        a->doubtful = db_get_uint(&row, 0, COLUMN_restore_status_doubtful);
    }
    return answer;
}

tl_status tl_restore_accept(tl_client *client, const char *actor, const char *reason,
                            uint64_t *doubtful)
{
    struct accepting a = {.client = client, .actor = actor, .reason = reason};
    static const task_kind kind = {.run = run_half, .read = read_half, .judge = judge_refused};
    task t = {.kind = &kind, .name = "accepting the server", .context = &a};

    TRY(carry_out(client, &t, actor, reason));
    TRY(a.status);
    log_line(&client->logger, TL_ALARM, NULL, 0, "%s %s to accept this server: %s", actor,
             a.confirms ? "agreed" : "proposed", reason);
    if (!a.confirms)
        return error_set(TL_PARKED, "proposed; another operator, with an account of "
                                    "their own, must confirm");
    if (doubtful != NULL)
        *doubtful = a.doubtful;
    return TL_OK;
}

/*
 * Two accounts close what an audit found, as they decide about a trade: one appends its half to
 * audit_closing, another confirms.  The server tells the accounts.
 */
#include "client/read.h"

#include "base/error.h"
#include "base/text.h"
#include "admin/audit_report.h"
#include "admin/words.h"
#include "store/bind.h"
#include "store/decision.h"
#include "transition/task.h"

#include <tradelock/admin/audit.h>

#include <string.h>

struct closing {
    const tl_closing *said;
    uint8_t finding[STORE_FINDING];
    int which;        /* a store_half */
    tl_status status; /* TL_OK, or why nothing was written */
    int own_done;
};

static tl_status judge_proposed(const db_result *row)
{
    if (db_get_int(row, 0, COLUMN_audit_closing_proposed_own))
        return error_set(TL_REFUSED,
                         "%s proposed it, and whoever proposed to close a finding cannot "
                         "confirm it: another operator, with an account of their own, must",
                         db_get_text(row, 0, COLUMN_audit_closing_proposed_by));
    return TL_OK;
}

static tl_status judge(const struct closing *c, const db_result *row)
{
    int confirms = c->which == STORE_CONFIRMATION;

    if (row->rows == 0)
        return confirms ? error_set(TL_NOT_FOUND, "nobody has proposed to close this finding")
                        : TL_OK;
    if (!db_is_null(row, 0, COLUMN_audit_closing_closed_by))
        return error_set(TL_ALREADY_DONE, "%s has closed it, after %s proposed that",
                         db_get_text(row, 0, COLUMN_audit_closing_closed_by),
                         db_get_text(row, 0, COLUMN_audit_closing_proposed_by));
    if (!confirms)
        return error_set(TL_BUSY, "%s has proposed that already: confirm it",
                         db_get_text(row, 0, COLUMN_audit_closing_proposed_by));
    return judge_proposed(row);
}

/* Notes whether an earlier call has appended this very half. */
static void look_own(struct closing *c, const db_result *row)
{
    c->own_done = row->rows == 1 &&
                  db_get_int(row, 0,
                             c->which == STORE_PROPOSAL ? COLUMN_audit_closing_proposed_own
                                                        : COLUMN_audit_closing_closed_own) != 0;
}

static db_answer run_half(task *t, db *connection)
{
    struct closing *c = t->context;
    RESULT row = DB_RESULT_INIT;
    db_answer answer =
        SQL_RUN(connection, &row, audit_closing, .finding = db_bytes(c->finding, STORE_FINDING));

    c->status = TL_OK;
    if (answer == DB_DONE)
        look_own(c, &row);
    if (answer == DB_DONE && !c->own_done) {
        c->status = judge(c, &row);
        if (c->status == TL_OK)
            answer = SQL_RUN(
                connection, NULL, audit_close, .finding = db_bytes(c->finding, STORE_FINDING),
                .part = db_int(c->which), .rule = db_text(c->said->rule),
                .cust_no = db_text(c->said->key.cust_no),
                .serial_no = db_text(c->said->key.serial_no),
                .op_code = db_text(c->said->key.op_code != NULL ? c->said->key.op_code : ""),
                .rev = db_uint(c->said->rev), .reason = db_text(c->said->reason),
                .actor = db_text(c->said->actor), .thread_no = db_text(tl_thread_uuid()));
    }
    if (answer == DB_ERROR && db_error_kind_of(db_errno(connection)) == DB_KIND_DUPLICATE) {
        c->status = error_set(TL_BUSY, "another operator did that at the same moment");
        answer = DB_DONE;
    }
    return answer;
}

static db_answer read_half(task *t, db *connection)
{
    struct closing *c = t->context;
    RESULT row = DB_RESULT_INIT;
    db_answer answer =
        SQL_RUN(connection, &row, audit_closing, .finding = db_bytes(c->finding, STORE_FINDING));

    if (answer == DB_DONE)
        look_own(c, &row);
    if (answer == DB_DONE && c->own_done)
        t->verdict = VERDICT_APPLIED;
    return answer;
}

static tl_status check(const tl_closing *closing, struct closing *c)
{
    if (closing == NULL || closing->version != TL_CLOSING_VERSION)
        return error_set(TL_INVALID, "closing is NULL or has no known version");
    if (closing->finding == NULL || !words_from_hex(c->finding, STORE_FINDING, closing->finding))
        return error_set(TL_INVALID, "a finding is named by 64 hexadecimal digits");
    if (closing->rule == NULL || strlen(closing->rule) > 31 || closing->key.serial_no == NULL ||
        closing->key.cust_no == NULL)
        return error_set(TL_INVALID, "a finding has a rule and a trade");
    return read_check_person(closing->actor, closing->reason);
}

tl_status tl_audit_close(tl_client *client, const tl_closing *closing)
{
    struct closing c = {.said = closing};
    static const task_kind kind = {.run = run_half, .read = read_half};
    task t = {.kind = &kind, .name = "close", .context = &c};

    error_clear();
    TRY(client_check(client));
    TRY(check(closing, &c));
    c.which = closing->confirms ? STORE_CONFIRMATION : STORE_PROPOSAL;
    task_run(client->engine, &t, client->config.commit_ms);
    return t.verdict == VERDICT_APPLIED ? c.status : t.status;
}

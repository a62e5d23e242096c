/*
 * Two accounts close what an audit found, as they decide about a trade: one appends its half to
 * audit_closing, another confirms.  The server tells the accounts.
 */
#include "client/read.h"

#include "base/error.h"
#include "base/text.h"
#include "admin/audit_report.h"
#include "store/bind.h"
#include "store/decision.h"
#include "transition/task.h"

#include <tradelock/admin/audit.h>

#include <string.h>

struct closing {
    store_closing half;
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
    int confirms = c->half.which == STORE_CONFIRMATION;

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
    c->own_done = row->rows == 1 && db_get_int(row, 0,
                                               c->half.which == STORE_PROPOSAL
                                                   ? COLUMN_audit_closing_proposed_own
                                                   : COLUMN_audit_closing_closed_own) != 0;
}

static db_answer run_half(task *t, db *connection)
{
    struct closing *c = t->context;
    RESULT row = DB_RESULT_INIT;
    db_answer answer = store_audit_closing(connection, c->half.finding, &row);

    c->status = TL_OK;
    if (answer == DB_DONE)
        look_own(c, &row);
    if (answer == DB_DONE && !c->own_done) {
        c->status = judge(c, &row);
        if (c->status == TL_OK)
            answer = SQL_RUN(
                connection, NULL, audit_close, .finding = db_bytes(c->half.finding, STORE_FINDING),
                .part = db_int(c->half.which), .rule = db_text(c->half.rule),
                .cust_no = db_text(c->half.key->cust_no),
                .serial_no = db_text(c->half.key->serial_no),
                .op_code = db_text(c->half.key->op_code != NULL ? c->half.key->op_code : ""),
                .rev = db_uint(c->half.rev), .reason = db_text(c->half.reason),
                .actor = db_text(c->half.actor), .thread_no = db_text(c->half.thread_no));
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
    db_answer answer = store_audit_closing(connection, c->half.finding, &row);

    if (answer == DB_DONE)
        look_own(c, &row);
    if (answer == DB_DONE && c->own_done)
        t->verdict = VERDICT_APPLIED;
    return answer;
}

static int digit(char c)
{
    const char *digits = "0123456789abcdef", *at = c != '\0' ? strchr(digits, c) : NULL;

    return at != NULL ? (int)(at - digits) : -1;
}

static int read_finding(uint8_t to[STORE_FINDING], const char *text)
{
    if (text == NULL || strlen(text) != 2 * (size_t)STORE_FINDING)
        return 0;
    for (size_t i = 0; i < STORE_FINDING; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return 0;
        to[i] = (uint8_t)(high << 4 | low);
    }
    return 1;
}

static tl_status check(const tl_closing *closing, struct closing *c)
{
    if (closing == NULL || closing->version != TL_CLOSING_VERSION)
        return error_set(TL_INVALID, "closing is NULL or has no known version");
    if (!read_finding(c->half.finding, closing->finding))
        return error_set(TL_INVALID, "a finding is named by 64 hexadecimal digits");
    if (closing->rule == NULL || strlen(closing->rule) > 31 || closing->key.serial_no == NULL ||
        closing->key.cust_no == NULL)
        return error_set(TL_INVALID, "a finding has a rule and a trade");
    return read_check_person(closing->actor, closing->reason);
}

tl_status tl_audit_close(tl_client *client, const tl_closing *closing)
{
    char thread_no[TL_UUID_TEXT];
    struct closing c = {.half = {.thread_no = thread_no}};
    static const task_kind kind = {.run = run_half, .read = read_half};
    task t = {.kind = &kind, .name = "close", .context = &c};

    error_clear();
    TRY(client_check(client));
    TRY(check(closing, &c));
    text_copy(thread_no, sizeof thread_no, tl_thread_uuid());
    c.half.which = closing->confirms ? STORE_CONFIRMATION : STORE_PROPOSAL;
    c.half.rule = closing->rule;
    c.half.key = &closing->key;
    c.half.rev = closing->rev;
    c.half.actor = closing->actor;
    c.half.reason = closing->reason;
    task_run(client->engine, &t, client->config.commit_ms);
    return t.verdict == VERDICT_APPLIED ? c.status : t.status;
}

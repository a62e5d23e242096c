/*
 * Two operators decide what no rule can: one proposes, another confirms.
 *
 * Each half is one transaction.  It locks both rows of the trade, checks that they are as the
 * operator saw them, and appends its half to trade_resolution.  A trigger on the confirmation
 * changes the rows as well.  The server tells the account, by a column default; triggers refuse a
 * confirmation by the account that proposed.  A half that was appended is found again if its answer
 * was lost, so each half may be repeated.  A process that dies between the two leaves a proposal
 * and nothing else.
 */
#include "admin/act.h"
#include "admin/words.h"
#include "client/read.h"

#include "base/error.h"
#include "base/text.h"
#include "store/bind.h"
#include "trade_lock/decision.h"
#include "transition/step_task.h"
#include "transition/task.h"

#include "sql_text.h"

#include <tradelock/admin/decisions.h>

#include <string.h>

struct deciding {
    store_resolution half;
    char retry_op[TL_OP_MAX + 1];
    /* Only what this act proposed is confirmed; 0: whatever stands. */
    uint64_t of_act;
    /* TL_OK, or why the transaction wrote nothing. */
    tl_status status;
    /* What the halves say that are there already. */
    int own_done, proposed, own_proposal, proposed_before, decided_failed;
    uint64_t proposed_act;
    char proposer[256];
};

/* ------------------------------------------------------------ what stands there -- */

static void take_half(struct deciding *d, const tl_resolution_row *row)
{
    const store_resolution *half = &d->half;

    if (row->refused) {
        d->decided_failed = 0;
        return;
    }
    /* The last decision of an epoch that a worker has to carry out. */
    if (row->confirms && row->epoch == half->epoch && row->decision != TL_DECISION_CLEAR)
        d->decided_failed = row->decision == TL_DECISION_FAILED;
    if ((char)row->decision != half->decision || row->fence != half->fence)
        return;
    if (row->own && row->confirms == (half->which == STORE_CONFIRMATION) &&
        (row->confirms || row->rev == half->rev) &&
        (half->act_no == 0 || row->act_no == half->act_no))
        d->own_done = 1;
    if (row->confirms)
        return;
    if (!row->stands) {
        d->proposed_before = 1;
        return;
    }
    d->proposed = 1;
    d->own_proposal = row->own;
    d->proposed_act = row->act_no;
    text_copy(d->proposer, sizeof d->proposer, row->account);
}

static db_answer read_halves(struct deciding *d, db *connection)
{
    RESULT rows = DB_RESULT_INIT;
    db_answer answer = store_resolve_list(connection, d->half.key, &rows);

    d->own_done = d->proposed = d->own_proposal = d->proposed_before = 0;
    d->decided_failed = 0;
    for (size_t row = 0; answer == DB_DONE && row < rows.rows; row++) {
        tl_resolution_row one;

        decision_read(&one, &rows, row);
        take_half(d, &one);
    }
    return answer;
}

/* ------------------------------------------------------------------- judging -- */

static tl_status judge_clear(const db_result *row)
{
    return db_get_int(row, 0, COLUMN_resolve_lock_conflict)
               ? TL_OK
               : error_set(TL_REFUSED, "no evidence contradicts this row; there is nothing "
                                       "to clear");
}

/* Every sentence names the epoch: evidence that is filed for the wrong one would be a false
 * success. */
static tl_status judge_paid_in_process(const db_result *row, unsigned epoch)
{
    if (db_get_int(row, 0, COLUMN_resolve_lock_success_filed))
        return error_set(TL_REFUSED,
                         "evidence says that epoch %u, which is in process, was paid: a "
                         "worker ends the trade as paid",
                         epoch);
    if (db_get_int(row, 0, COLUMN_resolve_lock_conflict))
        return error_set(TL_REFUSED,
                         "evidence says that an epoch before %u was paid, and epoch %u "
                         "is in process: decide first that epoch %u failed, then that "
                         "the trade was paid",
                         epoch, epoch, epoch);
    return error_set(TL_REFUSED,
                     "epoch %u is in process: if it was paid, file that with `tradelock "
                     "evidence add --epoch %u --outcome SUCCEEDED`, and a worker ends "
                     "the trade as paid; if an epoch before it was, file that one",
                     epoch, epoch);
}

static tl_status judge_paid(const db_result *row, char status, unsigned epoch)
{
    if (status == 'P')
        return judge_paid_in_process(row, epoch);
    if (db_get_int(row, 0, COLUMN_resolve_lock_conflict) &&
        db_get_int(row, 0, COLUMN_resolve_lock_blanked))
        return error_set(TL_REFUSED, "its contents were blanked, so no worker can book it: book it "
                                     "by hand, then decide `--as clear`");
    if (db_get_int(row, 0, COLUMN_resolve_lock_conflict))
        return TL_OK;
    return error_set(TL_REFUSED,
                     "the trade failed with proof, and no evidence contradicts that: "
                     "file the evidence first, and for the epoch that was paid "
                     "(`tradelock evidence add --epoch N`); the last one is %u",
                     epoch);
}

static tl_status judge_failed(const struct deciding *d, const db_result *row, char status)
{
    if (status == 'F')
        return error_set(TL_FAILED, "the trade has failed already, with proof");
    if (d->decided_failed)
        return error_set(TL_REFUSED, "two operators have decided that already; a worker "
                                     "carries it out");
    if (db_get_int(row, 0, COLUMN_resolve_lock_success_filed))
        return error_set(TL_EVIDENCE, "evidence says that money moved: a worker ends the "
                                      "trade as paid");
    if (db_get_int(row, 0, COLUMN_resolve_lock_may_send))
        return error_set(TL_BUSY, "a sender that was given this trade may still send; look "
                                  "at `send until`, and decide after it");
    if (!db_get_int(row, 0, COLUMN_resolve_lock_lane_open))
        return error_set(TL_REFUSED, "this trade has no open retry lane that could carry "
                                     "the decision out");
    return TL_OK;
}

static tl_status judge_row(const struct deciding *d, db *connection, const db_result *row)
{
    const char status = db_get_text(row, 0, COLUMN_resolve_lock_status)[0];

    if (db_get_uint(row, 0, COLUMN_resolve_lock_fence) != d->half.fence)
        return act_moved_on(connection, d->half.key, d->half.fence);
    if (status == 'Y' && d->half.decision != TL_DECISION_CLEAR)
        return error_set(TL_ALREADY_DONE, "the trade has succeeded, and nobody turns that "
                                          "into anything");
    if (status == 'P' && db_get_int(row, 0, COLUMN_resolve_lock_held))
        return error_set(TL_BUSY, "somebody is at it, or died at it and nobody has opened "
                                  "its lane yet (`tradelock reap` does)");
    switch (d->half.decision) {
    case TL_DECISION_PAID:
        return judge_paid(row, status, d->half.epoch);
    case TL_DECISION_FAILED:
        return judge_failed(d, row, status);
    default:
        return judge_clear(row);
    }
}

static tl_status judge_half(const struct deciding *d)
{
    if (d->half.which == STORE_PROPOSAL)
        return d->proposed
                   ? error_set(TL_BUSY, "%s has proposed that already: confirm it", d->proposer)
                   : TL_OK;
    if (d->proposed && d->own_proposal)
        return error_set(TL_REFUSED,
                         "%s proposed it, and whoever proposed a decision cannot confirm "
                         "it: another operator, with an account of their own, must",
                         d->proposer);
    if ((!d->proposed && d->proposed_before) ||
        (d->proposed && d->of_act != 0 && d->proposed_act != d->of_act))
        return error_set(TL_LOST, "evidence has come in since it was proposed; look at the "
                                  "trade again");
    if (!d->proposed)
        return error_set(TL_NOT_FOUND, "nobody has proposed that of this fence; see "
                                       "`tradelock resolve ls`");
    return TL_OK;
}

/* ------------------------------------------------------------------ deciding -- */

static db_answer write_half(struct deciding *d, db *connection)
{
    const char decision[2] = {d->half.decision, '\0'};

    db_answer answer = SQL_RUN(
        connection, NULL, resolve_insert, .cust_no = db_text(d->half.key->cust_no),
        .serial_no = db_text(d->half.key->serial_no), .op_code = db_text(d->half.key->op_code),
        .rev = db_uint(d->half.rev), .verdict = db_text(decision), .part = db_int(d->half.which),
        .fence = db_uint(d->half.fence), .epoch = db_uint(d->half.epoch),
        .reason = db_text(d->half.reason), .actor = db_text(d->half.actor),
        .thread_no = db_text(d->half.thread_no), .log_no = db_text(d->half.log_no),
        .although_pending = db_int(d->half.although_pending),
        .act_no = d->half.act_no != 0 ? db_uint(d->half.act_no) : db_null(),
        .act_row = d->half.act_no != 0 ? db_uint(d->half.act_row) : db_null());

    if (answer == DB_ERROR && db_error_kind_of(db_errno(connection)) == DB_KIND_DUPLICATE &&
        strcmp(db_duplicate_key(connection), KEY_ONE_PER_CUSTOMER) == 0) {
        d->status = error_set(TL_CUSTOMER_BUSY, "another trade of this customer is in "
                                                "process, and this operation lets one in "
                                                "at a time; confirm again after it");
        return DB_DONE;
    }
    return answer;
}

/* Writes one half and commits; or writes nothing, and d->status says why. */
static db_answer run_half(task *t, db *connection)
{
    struct deciding *d = t->context;
    RESULT row = DB_RESULT_INIT;
    db_answer answer = db_begin(connection);

    d->status = TL_OK;
    if (answer == DB_DONE)
        answer = SQL_RUN(connection, &row, resolve_lock, .retry_op = db_text(d->retry_op),
                         .cust_no = db_text(d->half.key->cust_no),
                         .serial_no = db_text(d->half.key->serial_no),
                         .op_code = db_text(d->half.key->op_code));
    if (answer == DB_DONE && row.rows == 0)
        d->status = error_set(TL_NOT_FOUND, "there is no trade %s %s %s", d->half.key->serial_no,
                              d->half.key->cust_no, d->half.key->op_code);
    if (answer == DB_DONE && row.rows == 1) {
        d->half.epoch = (uint32_t)db_get_uint(&row, 0, COLUMN_resolve_lock_epoch);
        d->half.rev = db_get_uint(&row, 0, COLUMN_resolve_lock_rev);
        answer = read_halves(d, connection);
    }
    /* An earlier call committed this very half; the row may have changed since. */
    if (answer == DB_DONE && d->status == TL_OK && !d->own_done) {
        d->status = judge_row(d, connection, &row);
        if (d->status == TL_OK)
            d->status = judge_half(d);
        if (d->status == TL_OK)
            answer = write_half(d, connection);
    }
    if (answer == DB_DONE)
        answer = d->status == TL_OK ? db_commit(connection) : db_rollback(connection);
    return answer;
}

static db_answer read_half(task *t, db *connection)
{
    struct deciding *d = t->context;
    db_answer answer = read_halves(d, connection);

    if (answer == DB_DONE && d->own_done)
        t->verdict = VERDICT_APPLIED;
    return answer;
}

static tl_status check(const tl_resolution *r)
{
    if (r == NULL || r->version != TL_RESOLUTION_VERSION)
        return error_set(TL_INVALID, "resolution is NULL or has no known version");
    if (tl_decision_name(r->decision)[0] == '\0')
        return error_set(TL_INVALID, "decision %d is not known", (int)r->decision);
    if (r->although_pending && r->decision != TL_DECISION_FAILED)
        return error_set(TL_INVALID, "only `failed` is booked although it is pending");
    return read_check_person(r->actor, r->reason);
}

static tl_status decide(tl_client *client, const tl_resolution *r, const struct deciding *as)
{
    struct deciding d = *as;
    const int which = d.half.which;
    static const task_kind kind = {.run = run_half, .read = read_half};
    task t = {
        .kind = &kind, .name = which == STORE_PROPOSAL ? "propose" : "confirm", .context = &d};

    error_clear();
    TRY(client_check(client));
    TRY(check(r));
    TRY(read_key(&r->key, d.retry_op));
    d.half.thread_no = tl_thread_uuid();
    d.half.log_no = words_or_null(tl_log_uuid());
    d.half.key = &r->key;
    d.half.fence = r->fence;
    d.half.decision = (char)r->decision;
    d.half.actor = r->actor;
    d.half.reason = r->reason;
    d.half.although_pending = which == STORE_CONFIRMATION && r->although_pending;
    task_run(client->engine, &t, client->config.commit_ms);
    if (t.verdict == VERDICT_APPLIED)
        return d.status;
    if (t.status == TL_TRY_AGAIN)
        return error_set(TL_BUSY, "an open transaction is deciding this trade");
    return t.status;
}

tl_status tl_resolution_propose(tl_client *client, const tl_resolution *resolution)
{
    return decide(client, resolution, &(struct deciding){.half.which = STORE_PROPOSAL});
}

tl_status tl_resolution_confirm(tl_client *client, const tl_resolution *resolution)
{
    return decide(client, resolution, &(struct deciding){.half.which = STORE_CONFIRMATION});
}

tl_status tl_act_resolve(tl_client *client, uint64_t act_no, uint64_t row_no,
                         const tl_resolution *resolution, uint64_t proposed_by)
{
    const struct deciding as = {
        .half = {.which = proposed_by == 0 ? STORE_PROPOSAL : STORE_CONFIRMATION,
                 .act_no = act_no,
                 .act_row = row_no},
        .of_act = proposed_by};
    tl_status status;

    error_clear();
    TRY(act_check(act_no, row_no));
    status = decide(client, resolution, &as);
    return status == TL_OK || status == TL_INVALID
               ? status
               : act_left_alone(client, act_no, row_no, &resolution->key, resolution->fence,
                                status);
}

/*
 * Files evidence: what somebody outside of the hold knows of a payment.  The sync row is locked
 * first.  A trigger (sql/object/evidence.sql) then changes the trade in the same transaction:
 *
 *   the row is P and of the same epoch   success is remembered on the row, so that no
 *                                        failure can be written; a waiting or parked lane
 *                                        becomes due at once
 *   it contradicts the row, as the       the conflict is set: nothing is armed, reclaimed or
 *   database says (tl_contradicts)       failed until operators have decided
 *   success, there is no row, and a      accepting the restore makes the row, as a success, so
 *   restore is open                      that nobody is granted the trade again
 *   a holder's, its row is gone, and     the row is made as one in doubt, with all that the
 *   money may have moved                 holder knew: the worker asks and ends it
 */
#include "trade_lock/evidence.h"

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "store/act.h"
#include "store/bind.h"
#include "store/store.h"
#include "trade_lock/lock.h"

#include <stdio.h>
#include <string.h>

struct filing {
    tl_client *client;
    const tl_evidence *given;
    tl_evidence evidence; /* with epoch and channel key filled in */
    char channel_key[TL_CHANNEL_KEY_MAX + 1];
    tl_said said;            /* of the row */
    store_gone *gone;        /* of a holder whose row may be gone; NULL */
    const evidence_act *act; /* of an operator; NULL */
    db *connection;
    int of_holder; /* who does not come again */
    int found, made, conflict, moved, untold;
    uint64_t evidence_id;
};

/* The row met one of the two unique keys. */
static int is_duplicate(const db *connection, db_answer answer)
{
    return answer == DB_ERROR && db_error_kind_of(db_errno(connection)) == DB_KIND_DUPLICATE;
}

/* Money that came back makes no row. */
static int says_success(const tl_evidence *e)
{
    return strcmp(e->outcome, "SUCCEEDED") == 0 &&
           !(e->amount.is_told && e->amount.amount_minor < 0);
}

/* Files success of a trade that was lost in a restore, which accepting makes; where none is open it is
 * taken back. */
static db_answer file_lost(struct filing *f)
{
    RESULT waits = DB_RESULT_INIT;
    db_answer answer;

    if (f->evidence.epoch == 0)
        f->evidence.epoch = 1;
    answer = store_evidence_insert(f->connection, &f->evidence, tl_thread_uuid(), &f->evidence_id,
                                   &f->conflict);
    if (answer == DB_DONE)
        answer = db_run(f->connection, &sql_evidence_waits, NULL, 0, &waits);
    f->made = answer == DB_DONE && waits.rows == 1 && db_get_int(&waits, 0, 0) != 0;
    return answer;
}

/* Makes the row of a holder's trade that was lost in a restore, as it was. */
static db_answer make_row(struct filing *f)
{
    db_answer answer;

    f->gone->evidence = &f->evidence;
    answer = store_file_gone(f->connection, f->gone);
    if (!f->gone->exclusive || !is_duplicate(f->connection, answer) ||
        strcmp(db_duplicate_key(f->connection), KEY_ONE_PER_CUSTOMER) != 0)
        return answer;
    /* Another trade of the customer is in process, as this one was. */
    f->gone->exclusive = 0;
    return store_file_gone(f->connection, f->gone);
}

/* Whether filing would do another thing to the row, which is locked, than the operator saw.  One
 * more attempt at the same payment changes nothing in that; only people change a row that ended. */
static int has_moved(const evidence_act *act, const db_result *row)
{
    const char status = row->rows == 1 ? db_get_text(row, 0, 0)[0] : ' ';

    return act != NULL && act->act_no != 0 &&
           (act->status != status ||
            (row->rows == 1 && (act->epoch != (uint32_t)db_get_uint(row, 0, 1) ||
                                (status != 'P' && act->fence != db_get_uint(row, 0, 3)))));
}

/* Locks the row, and makes it if it is missing and should exist. */
static db_answer find_row(struct filing *f, db_result *row)
{
    db_answer answer = store_evidence_lock(f->connection, &f->evidence.key, row);

    f->moved = answer == DB_DONE && has_moved(f->act, row);
    if (answer != DB_DONE || f->moved || row->rows == 1 ||
        (f->gone == NULL && !says_success(&f->evidence)))
        return answer;
    if (f->gone == NULL)
        return file_lost(f);
    answer = make_row(f);
    if (answer == DB_DONE)
        answer = store_evidence_lock(f->connection, &f->evidence.key, row);
    f->made = answer == DB_DONE && row->rows == 1;
    return answer;
}

/* What an operator filed is on record in the same transaction. */
static db_answer note(const struct filing *f, uint64_t fence)
{
    const char *log_no = tl_log_uuid();
    char said[128];
    const store_act act = {.what = "evidence add",
                           .said = said,
                           .reason = f->given->remark != NULL ? f->given->remark : f->given->source,
                           .actor = f->act != NULL ? f->act->actor : NULL,
                           .log_no = log_no[0] != '\0' ? log_no : NULL};
    const store_act_row row = {.key = &f->given->key,
                               .fence = fence,
                               .result = f->made       ? "made"
                                         : f->conflict ? "conflict"
                                                       : "filed",
                               .done = 1};

    if (f->act == NULL)
        return DB_DONE;
    if (f->act->act_no != 0)
        return store_act_write(f->connection, f->act->act_no, f->act->row_no, &row);
    snprintf(said, sizeof said, "--outcome %s --source %s", f->given->outcome, f->given->source);
    return store_act_note(f->connection, &act, &row);
}

/* The trade may be at another shard: nobody shall hear that there is none.  An account whose rights
 * are of before there were fleets is in none. */
static db_answer look_elsewhere(struct filing *f)
{
    const db_answer answer =
        SQL_RUN(f->connection, NULL, slot_asked, .cust_no = db_text(f->evidence.key.cust_no));

    return answer == DB_ERROR && db_error_kind_of(db_errno(f->connection)) == DB_KIND_ACCESS
               ? DB_DONE
               : answer;
}

/* Whether an operator, who has the bank's word before them, leaves out what was paid of a trade that
 * has an amount: then nothing would be compared. */
static int is_untold(const struct filing *f)
{
    const tl_payment_amount *amount = &f->evidence.amount;

    return f->act != NULL && strcmp(f->evidence.outcome, "SUCCEEDED") == 0 &&
           f->said.currency[0] != '\0' && !(amount->is_told && amount->currency != NULL);
}

/* Files it about the row, which is locked. */
static db_answer file_about(struct filing *f, const db_result *row)
{
    view_said(&f->said, row, 0, 4);
    f->untold = is_untold(f);
    if (f->untold)
        return DB_DONE;
    if (f->evidence.epoch == 0)
        f->evidence.epoch = (uint32_t)db_get_uint(row, 0, 1);
    if (f->evidence.channel_key == NULL && !db_is_null(row, 0, 2) &&
        f->evidence.epoch == db_get_uint(row, 0, 1)) {
        text_copy(f->channel_key, sizeof f->channel_key, db_get_text(row, 0, 2));
        f->evidence.channel_key = f->channel_key;
    }
    return store_evidence_insert(f->connection, &f->evidence, tl_thread_uuid(), &f->evidence_id,
                                 &f->conflict);
}

static db_answer file_statements(struct filing *f)
{
    RESULT row = DB_RESULT_INIT;
    db_answer answer = db_begin(f->connection);

    if (answer == DB_DONE)
        answer = find_row(f, &row);
    f->found = answer == DB_DONE && !f->moved && (row.rows == 1 || f->made);
    if (answer == DB_DONE && !f->found && !f->moved)
        answer = look_elsewhere(f);
    if (f->found && row.rows == 1)
        answer = file_about(f, &row);
    if (f->untold)
        return answer;
    if (f->found && answer == DB_DONE)
        answer = note(f, f->made ? 0 : db_get_uint(&row, 0, 3));
    if (f->found && answer == DB_DONE)
        answer = db_commit(f->connection);
    return answer;
}

/* ------------------------------------------------------------------------ as a task -- */

static db_answer run(task *t, db *connection)
{
    struct filing *f = t->context;

    f->evidence = *f->given;
    f->connection = connection;
    f->found = f->made = f->conflict = f->moved = f->untold = 0;
    f->evidence_id = 0;
    return file_statements(f);
}

static int judge(task *t, const db *connection)
{
    if (!is_duplicate(connection, DB_ERROR))
        return task_judge_passing(t, connection);
    task_fail(t, error_set(TL_TRY_AGAIN, "somebody else has just made the row"));
    t->stage = TASK_AGAIN;
    return 1;
}

static void mark_filed(const task *t, commit_mark *to)
{
    const struct filing *f = t->context;

    to->kind = f->found && !f->untold ? MARK_EVIDENCE : MARK_NONE;
    to->number = f->evidence_id;
    text_copy(to->cust_no, sizeof to->cust_no, f->evidence.key.cust_no);
    text_copy(to->serial_no, sizeof to->serial_no, f->evidence.key.serial_no);
    text_copy(to->op_code, sizeof to->op_code, f->evidence.key.op_code);
    text_copy(to->thread_no, sizeof to->thread_no, tl_thread_uuid());
}

/* A row of an act tells by itself whether it was committed. */
static db_answer read_act_row(task *t, db *connection)
{
    struct filing *f = t->context;
    RESULT row = DB_RESULT_INIT;
    db_answer answer = SQL_RUN(connection, &row, act_row_seen, .act_no = db_uint(f->act->act_no),
                               .row_no = db_uint(f->act->row_no));

    if (answer == DB_DONE && row.rows == 1) {
        f->found = 1;
        f->conflict = strcmp(db_get_text(&row, 0, 0), "conflict") == 0;
        t->verdict = VERDICT_APPLIED;
    }
    return answer;
}

/* Filing the same thing twice does no harm, so that a lost answer is not settled: what is left
 * behind, which may hold the row, or come late, after it was closed again, is ended before the next
 * try.  Only a row of an act happens once. */
static tl_status file(struct filing *f)
{
    static const task_kind kind = {
        .pool = POOL_BUSINESS, .run = run, .judge = judge, .mark = mark_filed};
    static const task_kind of_act = {
        .pool = POOL_BUSINESS, .run = run, .judge = judge, .read = read_act_row};
    task t = {.kind = f->act != NULL && f->act->act_no != 0 ? &of_act : &kind,
              .name = "filing evidence",
              .presses_on = f->of_holder,
              .context = f};

    task_run(f->client->engine, &t, f->client->config.commit_ms);
    return t.verdict == VERDICT_APPLIED ? TL_OK : t.status;
}

static tl_status check_evidence(const tl_client *client, const tl_evidence *e)
{
    static const char *const outcomes[] = {"SUCCEEDED", "FAILED",  "DECLINED", "ACCEPTED",
                                           "PENDING",   "UNKNOWN", "NOT_SENT"};

    TRY(client_check(client));
    if (e == NULL || e->version != TL_EVIDENCE_VERSION)
        return error_set(TL_INVALID, "evidence is NULL or its version is not set");
    TRY(key_check(&e->key));
    if (e->source == NULL || e->source[0] == '\0' || strlen(e->source) > 63)
        return error_set(TL_INVALID, "evidence names its source, in at most 63 bytes");
    if ((e->remark != NULL && strlen(e->remark) > TL_REMARK_MAX) ||
        (e->channel_ref != NULL && strlen(e->channel_ref) > TL_REF_MAX) ||
        (e->channel_key != NULL && strlen(e->channel_key) > TL_CHANNEL_KEY_MAX))
        return error_set(TL_INVALID, "remark, reference or channel key is too long");
    if (text_check_utf8("source", e->source) != TL_OK ||
        text_check_utf8("remark", e->remark) != TL_OK ||
        text_check_utf8("channel_ref", e->channel_ref) != TL_OK)
        return TL_INVALID;
    if (e->amount.currency != NULL && text_check_currency(e->amount.currency) != TL_OK)
        return TL_INVALID;
    if (e->channel_key != NULL &&
        text_check_name("channel key", e->channel_key, TL_CHANNEL_KEY_MAX) != TL_OK)
        return TL_INVALID;
    for (size_t i = 0; e->outcome != NULL && i < sizeof outcomes / sizeof *outcomes; i++)
        if (strcmp(e->outcome, outcomes[i]) == 0)
            return TL_OK;
    return error_set(TL_INVALID,
                     "outcome '%s' is not one of SUCCEEDED, FAILED, DECLINED, "
                     "ACCEPTED, PENDING, UNKNOWN, NOT_SENT",
                     e->outcome != NULL ? e->outcome : "");
}

static tl_status file_evidence(struct filing *f)
{
    const tl_evidence *evidence = f->given;

    TRY(check_evidence(f->client, evidence));
    TRY(file(f));
    if (f->moved)
        return error_set(TL_LOST, "the trade has moved on; look at it again");
    if (!f->found)
        return error_set(TL_NOT_FOUND, "there is no such trade");
    if (f->untold)
        return error_set(TL_INVALID, "the trade is of an amount: success of it tells how much was "
                                     "paid, and of which currency");
    if (!f->conflict)
        return error_over(TL_OK);
    log_said(&f->client->logger, TL_ALARM, &evidence->key, 0, &f->said,
             "conflict: %s says of epoch %u and channel key %s what the row denies",
             evidence->source, f->evidence.epoch,
             f->evidence.channel_key != NULL ? f->evidence.channel_key : "(none)");
    return error_set(TL_IN_CONFLICT, "filed; it contradicts the row, and two operators "
                                     "must decide");
}

tl_status tl_evidence_add(tl_client *client, const tl_evidence *evidence)
{
    struct filing f = {.client = client, .given = evidence};

    error_clear();
    return file_evidence(&f);
}

tl_status evidence_file(tl_client *client, const tl_evidence *evidence, const evidence_act *act)
{
    struct filing f = {.client = client, .given = evidence, .act = act};

    error_clear();
    return file_evidence(&f);
}

/* What an ending of a fenced-out holder says, as evidence. */
static const char *evidence_outcome(const tl_ending *ending)
{
    switch (ending->outcome) {
    case TL_OUTCOME_SUCCESS:
        return "SUCCEEDED";
    case TL_OUTCOME_FAILURE:
        return ending->proof == TL_PROOF_DECLINED ? "DECLINED" : "FAILED";
    case TL_OUTCOME_ACCEPTED:
        return "ACCEPTED";
    case TL_OUTCOME_PENDING:
        return "PENDING";
    case TL_OUTCOME_NOT_SENT:
        return "NOT_SENT";
    default:
        return "UNKNOWN";
    }
}

/* Whether money may have moved, as far as this holder knows.  A compensating attempt that did
 * nothing was not the only one. */
static int may_have_moved(const tl_lock *lock, const tl_ending *ending)
{
    switch (ending->outcome) {
    case TL_OUTCOME_FAILURE:
        return ending->proof == TL_PROOF_NONE;
    case TL_OUTCOME_RETRY_LATER:
    case TL_OUTCOME_NOT_SENT:
        return lock->options.lane == TL_LANE_RETRY;
    default:
        return 1;
    }
}

/* The row as the holder had it, should it be gone: a row in process is never removed, so it went
 * with a restore.  A send may be under way for one more hold. */
static void fill_gone(const tl_lock *lock, const tl_ending *ending, const tl_view *held,
                      store_gone *gone)
{
    gone->thread_no = lock->base.thread_no;
    gone->log_no = lock->base.log_no[0] != '\0' ? lock->base.log_no : NULL;
    gone->channel = held->channel[0] != '\0' ? held->channel : NULL;
    gone->fingerprint = lock->has_fingerprint ? held->fingerprint : NULL;
    gone->payload = held->payload;
    gone->payload_size = held->payload_size;
    lock_said(&gone->said, lock, held);
    gone->exclusive = held->exclusive;
    gone->hold_ms = lock->options.max_hold_ms;
    gone->sends = (held->sends > 0 ? held->sends : 1) + 1; /* as after accepting */
    gone->success = ending->outcome == TL_OUTCOME_SUCCESS;
    gone->seen = held->seen_by_channel || gone->success || ending->outcome == TL_OUTCOME_ACCEPTED ||
                 ending->outcome == TL_OUTCOME_PENDING;
    random_token(gone->token);
}

void lock_file_evidence(tl_lock *lock, const tl_ending *ending, const tl_view *held)
{
    tl_evidence evidence = {
        .version = TL_EVIDENCE_VERSION,
        .key = lock_key(lock),
        .epoch = lock->epoch,
        .channel_key = held->channel_key[0] != '\0' ? held->channel_key : NULL,
        .outcome = evidence_outcome(ending),
        .channel_ref = ending->channel_ref,
        .source = "fenced-out holder",
        .remark = ending->remark,
    };
    struct filing f = {.client = lock->base.client, .given = &evidence, .of_holder = 1};
    store_gone gone = {.evidence = NULL};
    tl_status status;

    if (lock_repeats(lock))
        return; /* a repeatable trade has no money to know about */
    fill_gone(lock, ending, held, &gone);
    f.gone = may_have_moved(lock, ending) ? &gone : NULL;
    status = file_evidence(&f);
    if (gone.evidence != NULL && status == TL_OK)
        lock_log(lock, TL_ALARM, lock->grant.fence,
                 "the row was gone, though it was in process: it was restored away, and "
                 "is made anew as one in doubt");
    if (status != TL_OK && status != TL_IN_CONFLICT)
        lock_log(lock, TL_ALARM, lock->grant.fence,
                 "the evidence '%s' of a fenced-out holder could not be filed: %s",
                 evidence.outcome, tl_error_message());
}

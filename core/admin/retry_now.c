/*
 * Makes a waiting or parked lane due now, for an operator.  It is one step on both rows, bound to
 * the fence that the operator saw.  If the holder died and no janitor has opened the lane yet, the
 * lane is opened instead, due at once.
 */
#include "admin/act.h"
#include "admin/words.h"

#include "client/read.h"

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "store/store.h"
#include "store/view.h"

#include <tradelock/admin/trades.h>

#include <string.h>

struct retry_now {
    tl_client *client;
    const tl_key *key;
    char retry_op[TL_OP_MAX + 1];
    uint64_t fence;
    const char *actor, *reason;
    uint64_t act_no, act_row; /* a row of an act, which says who and why; 0: an act of its own */
};

/* TL_OK: the lane is due.  TL_LOST: the rows are not as the operator saw them.  Else why not. */
static tl_status run_step(const struct retry_now *r)
{
    step_task t = {.step = {.kind = STEP_OPERATOR_RETRY,
                            .cust_no = r->key->cust_no,
                            .serial_no = r->key->serial_no,
                            .op_code = r->key->op_code,
                            .retry_op = r->retry_op,
                            .held_fence = r->fence,
                            .thread_no = tl_thread_uuid(),
                            .log_no = words_or_null(tl_log_uuid()),
                            .actor = r->actor,
                            .remark = r->reason,
                            .act_no = r->act_no,
                            .act_row = r->act_row,
                            .keep_claims = CLAIMS_KEEP}};

    random_token(t.step.token);
    task_run(r->client->engine, step_task_of(&t), r->client->config.commit_ms);
    switch (t.task.verdict) {
    case VERDICT_APPLIED:
        return TL_OK;
    case VERDICT_DECIDING:
        return error_set(TL_BUSY, "an open transaction is deciding this trade");
    case VERDICT_FAILED:
        if (t.task.status == TL_TRY_AGAIN)
            return error_set(TL_BUSY, "an open transaction is deciding this trade");
        return t.task.status;
    case VERDICT_UNKNOWN:
        return t.task.status;
    case VERDICT_REFUSED:
    case VERDICT_CUSTOMER_BUSY:
    case VERDICT_LOST:
        break;
    }
    return TL_LOST;
}

static tl_status read_view(const struct retry_now *r, tl_view *view, view_inside *inside)
{
    READING at = {.client = r->client};
    RESULT result = DB_RESULT_INIT;

    TRY(read_begin(&at));
    TRY(read_status(
        at.connection,
        store_view(at.connection, r->key->cust_no, r->key->serial_no, r->key->op_code, &result),
        "reading the row"));
    if (result.rows == 0)
        return error_set(TL_NOT_FOUND, "there is no trade %s %s %s", r->key->serial_no,
                         r->key->cust_no, r->key->op_code);
    view_read(view, inside, &result, 0);
    return TL_OK;
}

/* Why the step changed nothing; TL_OK: it would succeed now. */
static tl_status explain(const struct retry_now *r)
{
    view_inside inside;
    tl_view view;

    TRY(read_view(r, &view, &inside));
    if (view.status == 'Y')
        return error_set(TL_ALREADY_DONE, "the trade has succeeded; nothing is to be done");
    if (view.status == 'F')
        return error_set(TL_FAILED, "the trade has failed, with proof; nothing is to be "
                                    "done");
    if (view.fence != r->fence)
        return tl_moved_on(r->client, r->key, r->fence);
    if (inside.alive)
        return error_set(TL_BUSY, "%s is at it; nothing is waiting",
                         view.holder[0] != '\0' ? view.holder : "another process");
    if (view.repeatable || (view.session_id[0] != '\0' && view.next_run_us == 0))
        return error_set(TL_NO_TRADE, "this lock has no retry lane: whoever wants it may "
                                      "ask for it again");
    return TL_OK;
}

static tl_status retry(const struct retry_now *r)
{
    tl_status status = run_step(r);

    if (status != TL_LOST)
        return status;
    status = explain(r);
    return status == TL_OK ? tl_moved_on(r->client, r->key, r->fence) : status;
}

tl_status tl_retry_now(tl_client *client, const tl_key *key, uint64_t fence, const char *actor,
                       const char *reason)
{
    struct retry_now r = {
        .client = client, .key = key, .fence = fence, .actor = actor, .reason = reason};

    error_clear();
    TRY(client_check(client));
    TRY(read_key(key, r.retry_op));
    TRY(read_check_person(actor, reason));
    return retry(&r);
}

tl_status tl_act_retry(tl_client *client, uint64_t act_no, uint64_t row_no, const tl_key *key,
                       uint64_t fence)
{
    struct retry_now r = {
        .client = client, .key = key, .fence = fence, .act_no = act_no, .act_row = row_no};

    error_clear();
    TRY(client_check(client));
    TRY(read_key(key, r.retry_op));
    TRY(act_check(act_no, row_no));
    return act_left_alone(client, act_no, row_no, key, fence, retry(&r));
}

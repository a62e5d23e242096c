/* The ending as a part of the caller's own transaction. */
#include "operations.h"

#include "trade_lock/lock.h"

#include "support/theme.h"

enum stage { STAGE_BEGIN, STAGE_UNANSWERED };

static void drop_caller(scene *s)
{
    if (s->caller != NULL)
        mysql_close(s->caller);
    s->caller = NULL;
    s->stage = STAGE_BEGIN;
}

/* What a service does whose connection failed: it does not know. */
static tl_status report_lost(scene *s)
{
    tl_status status;

    s->stage = STAGE_UNANSWERED;
    status = tl_lock_committed(s->lock, TL_COMMIT_UNANSWERED);
    if (status == TL_GRANTED) {
        drop_caller(s);
        return TL_TRY_AGAIN;
    }
    return status;
}

static tl_status settle(scene *s)
{
    tl_status status = tl_lock_settle(s->lock);

    if (status != TL_GRANTED)
        return status;
    drop_caller(s);
    return TL_TRY_AGAIN;
}

static tl_status call_finish_in(scene *s, tl_outcome outcome)
{
    tl_ending ending = scene_ending(outcome);
    tl_status status;

    if (s->stage == STAGE_UNANSWERED)
        return settle(s);
    if (s->caller == NULL)
        s->caller = scene_caller(s);
    if (s->caller == NULL)
        return TL_UNREACHABLE;
    if (mysql_query(s->caller, "START TRANSACTION") != 0) {
        drop_caller(s);
        return TL_UNREACHABLE;
    }
    status = tl_lock_finish_in(s->lock, s->caller, &ending, 0);
    if (status != TL_OK) {
        drop_caller(s);
        return status;
    }
    if (scene_book(s, s->caller) != TL_OK || mysql_query(s->caller, "COMMIT") != 0)
        return report_lost(s);
    return tl_lock_committed(s->lock, TL_COMMIT_OK);
}

static tl_status call_success(scene *s)
{
    return call_finish_in(s, TL_OUTCOME_SUCCESS);
}

static tl_status call_failure(scene *s)
{
    return call_finish_in(s, TL_OUTCOME_FAILURE);
}

static void prepare_held(scene *s)
{
    s->lock = scene_granted(s, s->far, TL_LANE_SYNC, 0);
    s->caller = scene_caller(s);
}

static void prepare_claimed(scene *s)
{
    scene_past(s, TL_OUTCOME_UNKNOWN);
    s->lock = scene_granted(s, s->far, TL_LANE_RETRY, 0);
    s->caller = scene_caller(s);
}

static const operation operations[] = {
    {"finish Y in the caller's transaction", OPERATION_HANG_UP, prepare_held, call_success,
     TL_SUCCEEDED, "Y 1 1", "-", 1, 1, NULL},
    {"finish F in the caller's transaction", OPERATION_HANG_UP, prepare_held, call_failure,
     TL_FAILED, "F 1 1", "-", 1, 1, NULL},
    {"finish Y in the caller's, retry lane", OPERATION_HANG_UP, prepare_claimed, call_success,
     TL_SUCCEEDED, "Y 1 1", "Y 1 0", 2, 1, NULL},
};

const struct operations operations_caller = {"caller", operations,
                                             sizeof operations / sizeof *operations};

/* Every way of ending a hold, cut at every packet. */
#include "operations.h"

#include <tradelock/callback.h>
#include <tradelock/lane.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void prepare_held(scene *s)
{
    s->lock = scene_granted(s, s->far, TL_LANE_SYNC, 0);
}

static void prepare_mutex(scene *s)
{
    s->lock = scene_granted(s, s->far, TL_LANE_SYNC, TL_ASK_REPEATABLE);
}

static void prepare_standalone(scene *s)
{
    s->lock = scene_granted(s, s->far, TL_LANE_RETRY, TL_ASK_STANDALONE);
}

static void prepare_claimed(scene *s)
{
    scene_past(s, TL_OUTCOME_UNKNOWN);
    s->lock = scene_granted(s, s->far, TL_LANE_RETRY, 0);
}

static tl_status finish(scene *s, tl_outcome outcome)
{
    tl_ending ending = scene_ending(outcome);

    return tl_lock_finish(s->lock, &ending);
}

static tl_status call_success(scene *s)
{
    return finish(s, TL_OUTCOME_SUCCESS);
}

static tl_status call_failure(scene *s)
{
    return finish(s, TL_OUTCOME_FAILURE);
}

static tl_status call_unknown(scene *s)
{
    return finish(s, TL_OUTCOME_UNKNOWN);
}

static tl_status call_not_sent(scene *s)
{
    return finish(s, TL_OUTCOME_NOT_SENT);
}

static tl_status finish_with(scene *s, tl_outcome outcome)
{
    tl_ending ending = scene_ending(outcome);

    return tl_lock_finish_with(s->lock, &ending, scene_book, s,
                               tl_client_policy(s->far)->commit_ms);
}

static tl_status call_success_with(scene *s)
{
    return finish_with(s, TL_OUTCOME_SUCCESS);
}

static tl_status call_failure_with(scene *s)
{
    return finish_with(s, TL_OUTCOME_FAILURE);
}

static tl_status call_put_back(scene *s)
{
    tl_ending ending = scene_ending(TL_OUTCOME_PENDING);
    tl_findings findings = {.seen_by_channel = 1};

    return tl_lock_put_back(s->lock, &ending, &findings);
}

static tl_status call_park(scene *s)
{
    tl_ending ending = scene_ending(TL_OUTCOME_UNKNOWN);
    tl_findings findings = {.cancel_tried = 1};

    ending.park_reason = "by test";
    return tl_lock_put_back(s->lock, &ending, &findings);
}

static const operation operations[] = {
    {"finish Y", 0, prepare_held, call_success, TL_SUCCEEDED, "Y 1 1", "-", 1, 0, NULL},
    {"finish F", 0, prepare_held, call_failure, TL_FAILED, "F 1 1", "-", 1, 0, NULL},
    {"finish unknown", 0, prepare_held, call_unknown, TL_IN_DOUBT, "P 1 1", "F 1 0", 2, 0, NULL},
    {"finish not sent", 0, prepare_held, call_not_sent, TL_QUEUED, "P 1 0", "F 1 0", 2, 0, NULL},
    {"finish a mutex", 0, prepare_mutex, call_success, TL_SUCCEEDED, "Y 1 1", "-", 1, 0, NULL},
    {"release a mutex", 0, prepare_mutex, call_unknown, TL_IN_DOUBT, "P 1 1", "-", 1, 0, NULL},
    {"finish standalone", 0, prepare_standalone, call_failure, TL_FAILED, "-", "F 1 1", 1, 0, NULL},
    {"finish Y on the retry lane", 0, prepare_claimed, call_success, TL_SUCCEEDED, "Y 1 1", "Y 1 0",
     2, 0, NULL},
    {"finish F on the retry lane", 0, prepare_claimed, call_failure, TL_FAILED, "F 1 1", "F 1 0", 2,
     0, NULL},
    {"put back", 0, prepare_claimed, call_put_back, TL_IN_DOUBT, "P 1 1", "F 1 0", 2, 0, NULL},
    {"park", 0, prepare_claimed, call_park, TL_PARKED, "P 1 1", "F 1 0", 2, 0, NULL},
    {"finish Y with rows", 0, prepare_held, call_success_with, TL_SUCCEEDED, "Y 1 1", "-", 1, 1,
     NULL},
    {"finish F with rows", 0, prepare_held, call_failure_with, TL_FAILED, "F 1 1", "-", 1, 1, NULL},
    {"finish Y with rows on the retry lane", 0, prepare_claimed, call_success_with, TL_SUCCEEDED,
     "Y 1 1", "Y 1 0", 2, 1, NULL},
    {"finish F with rows on the retry lane", 0, prepare_claimed, call_failure_with, TL_FAILED,
     "F 1 1", "F 1 0", 2, 1, NULL},
};

const struct operations operations_endings = {"endings", operations,
                                              sizeof operations / sizeof *operations};

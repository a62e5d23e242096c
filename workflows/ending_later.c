/* Submits an ending, tries it again, and gives it up.  Touches the trade through its ending. */
#include "ending_later.h"

#include "run.h"
#include "schedule.h"

#include <tradelock/callback.h>
#include <tradelock/layer.h>

#include <string.h>

static void give_up(later_item *item)
{
    ending_later *e = (ending_later *)item;
    RUN_WORK work = work_new();

    work.began = tl_work_adopt(e->log_no) == TL_OK;
    tl_work_say(&e->ending->attempt->said);
    (void)tl_error_report(e->refused, "%s", e->sentence);
    e->over(e->context, ending_answer(ending_give_up(e->ending, e->refused)));
}

static void end_again(later_item *item);

static void put_again(ending_later *e)
{
    e->later.run = end_again;
    e->later.waits = 0;
    e->later.due_ms = schedule_now_ms() + schedule_backoff_ms(&e->delay_ms, ENDING_AGAIN_MOST_MS);
    later_put(e->all, &e->later);
}

static void put_give_up(ending_later *e)
{
    e->later.run = give_up;
    e->later.waits = 1;
    e->later.due_ms = schedule_now_ms();
    if (e->hand_back != NULL)
        e->hand_back(e->context, &e->later);
    else
        later_put(e->all, &e->later);
}

void ending_later_again(ending_later *e, tl_status status)
{
    const char *sentence = tl_error_message();

    if (ending_repeats(status) && schedule_now_ms() < e->until_ms) {
        put_again(e);
    } else if (ending_gives_up(e->ending, status)) {
        e->refused = status;
        memcpy(e->sentence, sentence, strnlen(sentence, sizeof e->sentence - 1));
        put_give_up(e);
    } else {
        e->over(e->context, ending_answer(status));
    }
}

static void ended(void *context, tl_lock *lock, tl_status status)
{
    (void)lock;
    ending_later_again(context, status);
}

static tl_status try_once(ending_later *e)
{
    tl_lock_submit_within(e->ending->lock, schedule_left_ms(e->until_ms));
    return ending_submit(e->ending, ended, e);
}

static void end_again(later_item *item)
{
    ending_later *e = (ending_later *)item;
    RUN_WORK work = work_new();
    tl_status status;

    work.began = tl_work_adopt(e->log_no) == TL_OK;
    status = try_once(e);
    if (status != TL_OK)
        ending_later_again(e, status);
}

tl_status ending_later_submit(ending_later *e)
{
    e->delay_ms = 0;
    e->until_ms = schedule_now_ms() + e->ending->attempt->workflow->given.policy.commit_ms;
    memset(e->sentence, 0, sizeof e->sentence);
    return try_once(e);
}

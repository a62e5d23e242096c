/* Submits an ending, tries it again, and gives it up.  Touches the trade through its ending. */
#include "ending_later.h"

#include "run.h"
#include "schedule.h"

#include <tradelock/callback.h>
#include <tradelock/layer.h>

#include <string.h>

static void put_later(ending_later *e, int64_t pause_ms, int waits, void (*run)(later_item *item))
{
    e->later.run = run;
    e->later.waits = waits;
    e->later.due_ms = schedule_now_ms() + pause_ms;
    later_put(e->all, &e->later);
}

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

static void ended(void *context, tl_lock *lock, tl_status status)
{
    ending_later *e = context;
    const char *sentence = tl_error_message();

    (void)lock;
    if (ending_repeats(status) && schedule_now_ms() < e->until_ms) {
        put_later(e, schedule_backoff_ms(&e->delay_ms, ENDING_AGAIN_MOST_MS), 0, end_again);
    } else if (ending_gives_up(e->ending, status)) {
        e->refused = status;
        memcpy(e->sentence, sentence, strnlen(sentence, sizeof e->sentence - 1));
        put_later(e, 0, 1, give_up);
    } else {
        e->over(e->context, ending_answer(status));
    }
}

static void try_once(ending_later *e)
{
    const tl_status status = ending_submit(e->ending, ended, e);

    if (status != TL_OK)
        ended(e, e->ending->lock, status);
}

static void end_again(later_item *item)
{
    ending_later *e = (ending_later *)item;
    RUN_WORK work = work_new();

    work.began = tl_work_adopt(e->log_no) == TL_OK;
    try_once(e);
}

void ending_later_submit(ending_later *e)
{
    e->delay_ms = 0;
    e->until_ms = schedule_now_ms() + e->ending->attempt->workflow->given.policy.commit_ms;
    memset(e->sentence, 0, sizeof e->sentence);
    try_once(e);
}

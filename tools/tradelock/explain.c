/* Sentences about a trade's state: why it hangs, what happens next, and when. */
#include "explain.h"

#include "print.h"

#include <stdio.h>
#include <string.h>

int is_in_doubt_or_parked(const tl_view *view)
{
    return view->state == TL_STATE_IN_DOUBT || view->state == TL_STATE_PARKED;
}

/* What the retry lane does next. */
static void explain_next(char *to, size_t space, const tl_view *view, const char *doing)
{
    char when[TIME_TEXT], distance[TIME_TEXT];

    /* Opening takes the dead holder off the row. */
    if (view->session_id[0] != '\0')
        snprintf(to, space,
                 "its retry lane is not open yet: the janitor of any running "
                 "service or worker opens it, or `tradelock retry`");
    else if (view->next_run_us == 0)
        snprintf(to, space, "it has no retry lane; whoever wants the lock may ask for it");
    else if (view->next_run_us <= view->now_us)
        snprintf(to, space,
                 "a retry worker that has %s registered could %s since %s (%s); if nothing "
                 "happens, none is running",
                 view->op_code, doing, time_text(when, view->next_run_us),
                 distance_text(distance, view->now_us, view->next_run_us));
    else
        snprintf(to, space, "a retry worker will %s at %s (%s)", doing,
                 time_text(when, view->next_run_us),
                 distance_text(distance, view->now_us, view->next_run_us));
}

int is_past_deadline(const tl_view *view)
{
    return view->deadline_us != 0 && view->now_us >= view->deadline_us;
}

static void explain_in_doubt(char *to, size_t space, const tl_view *view)
{
    char next[EXPLANATION / 2];

    explain_next(next, sizeof next, view, "ask the channel");
    snprintf(to, space,
             "Money may have moved: %u send%s may have left and nobody holds the trade any "
             "more, so nothing is paid anew before the channel was asked; %s.%s",
             view->sends, view->sends == 1 ? "" : "s", next,
             is_past_deadline(view) ? "  Its deadline is over: nothing is sent for it any more."
                                    : "");
}

static void explain_queued(char *to, size_t space, const tl_view *view)
{
    char next[EXPLANATION / 2];

    explain_next(next, sizeof next, view, is_past_deadline(view) ? "end it as failed" : "send it");
    snprintf(to, space, "Nothing has been sent%s, and nobody holds the trade; %s.",
             is_past_deadline(view) ? " before its deadline, and nothing will be" : "", next);
}

static void explain_held(char *to, size_t space, const tl_view *view)
{
    char until[TIME_TEXT], distance[TIME_TEXT], silence[64] = "";

    if (view->holder_silent_ms >= 0)
        snprintf(silence, sizeof silence, " (last heartbeat %.1f s ago)",
                 (double)view->holder_silent_ms / 1000);
    snprintf(to, space,
             "%s%s %s and may do so until %s (%s); if it dies before, the retry lane is "
             "opened.",
             view->holder[0] != '\0' ? view->holder : "A living session", silence,
             view->state == TL_STATE_WORKING ? "runs a compensating attempt" : "holds the lock",
             time_text(until, view->max_hold_until_us),
             distance_text(distance, view->now_us, view->max_hold_until_us));
}

static void explain_retry_row(char *to, size_t space, const tl_view *view)
{
    char next[EXPLANATION / 2];

    if (view->state == TL_STATE_WAITING) {
        explain_next(next, sizeof next, view, "try again");
        snprintf(to, space, "The compensating attempt waits: %s.", next);
    } else {
        snprintf(to, space, "No compensating attempt is needed: the lane is closed.");
    }
}

static void explain_state(char *to, size_t space, const tl_view *view)
{
    switch (view->state) {
    case TL_STATE_ABSENT:
        snprintf(to, space, "There is no such trade.");
        break;
    case TL_STATE_LIVE:
    case TL_STATE_WORKING:
        explain_held(to, space, view);
        break;
    case TL_STATE_IN_DOUBT:
        explain_in_doubt(to, space, view);
        break;
    case TL_STATE_QUEUED:
        explain_queued(to, space, view);
        break;
    case TL_STATE_PARKED:
        snprintf(to, space,
                 "It waits for a person after %u compensating attempt%s, because: %s.  %u "
                 "send%s may have left; look at the channel, then let the lane run with "
                 "`tradelock retry`, which %s, or decide with a second "
                 "operator, with `tradelock resolve`.",
                 view->attempts, view->attempts == 1 ? "" : "s", view->parked, view->sends,
                 view->sends == 1 ? "" : "s",
                 is_past_deadline(view)
                     ? "asks the channel and sends nothing, since the deadline is over"
                     : "asks before it sends");
        break;
    case TL_STATE_FAILED:
        snprintf(to, space, "It failed, with proof: %s; %s.", tl_proof_text((tl_proof)view->proof),
                 view->retryable ? "the service may try it anew, as the next epoch"
                                 : "it is not tried anew");
        break;
    case TL_STATE_SUCCEEDED:
        snprintf(to, space, "It succeeded, once and for good; nothing happens any more.");
        break;
    case TL_STATE_WAITING:
    case TL_STATE_CLOSED:
        explain_retry_row(to, space, view);
        break;
    }
}

void explain(char to[EXPLANATION], const tl_view *view)
{
    size_t size;

    to[0] = '\0';
    explain_state(to, EXPLANATION, view);
    size = strlen(to);
    if (view->being_decided)
        snprintf(to + size, EXPLANATION - size,
                 "  An open transaction holds the row at this moment, and nothing can be "
                 "done with it before that ends; `SELECT * FROM "
                 "information_schema.innodb_trx ORDER BY trx_started` finds it.");
    size = strlen(to);
    if (view->conflict)
        snprintf(to + size, EXPLANATION - size,
                 "  Evidence contradicts this row: nothing is sent or tried anew before "
                 "two operators have decided.");
}

/* Why a trade is where it is, what happens next, and what would end it.  Only formats. */
#include "admin/explain.h"

#include "admin/metrics_rows.h"
#include "admin/words.h"

#include <stdio.h>
#include <string.h>

static int is_past_deadline(const tl_view *view)
{
    return view->deadline_us != 0 && view->now_us >= view->deadline_us;
}

static const char *plural(unsigned count)
{
    return count == 1 ? "" : "s";
}

/* -------------------------------------------------------------------- the state -- */

static void say_held(explaining *e)
{
    const tl_view *v = &e->view;
    char until[2 * WORDS], since[WORDS], silence[64 + WORDS] = "", what[64] = "holds the lock";

    if (v->state == TL_STATE_WORKING)
        snprintf(what, sizeof what, "runs a compensating attempt (%s of %s)",
                 WORDS_COUNT(v->attempts), WORDS_COUNT(e->attempts_max));
    if (v->holder_silent_ms >= 0)
        snprintf(silence, sizeof silence, " (last heartbeat %s ago)",
                 tl_span_text(since, v->holder_silent_ms * 1000, TL_SPAN_WORDS));
    explain_say(e, TL_TOPIC_STATE, "",
                "%s%s %s and may do so until %s; if it dies before, the retry lane is opened.",
                v->holder[0] != '\0' ? v->holder : "A living session", silence, what,
                words_when(until, v->now_us, v->max_hold_until_us));
}

static void say_parked(explaining *e)
{
    const tl_view *v = &e->view;
    char since[2 * WORDS] = "";

    if (e->parked_us != 0)
        words_when(since, v->now_us, e->parked_us);
    explain_say(e, TL_TOPIC_STATE, "",
                "It waits for a person%s%s after %s compensating attempt%s, because: %s.",
                since[0] != '\0' ? " since " : "", since, WORDS_COUNT(v->attempts),
                plural(v->attempts), v->parked);
    if (v->sends == 0)
        explain_say(e, TL_TOPIC_STATE, "", "Nothing was sent.");
    else
        explain_say(e, TL_TOPIC_STATE, "", "%s send%s may have left.", WORDS_COUNT(v->sends),
                    plural(v->sends));
}

static void say_open(explaining *e)
{
    const tl_view *v = &e->view;

    if (v->state == TL_STATE_IN_DOUBT)
        explain_say(e, TL_TOPIC_STATE, "",
                    "Money may have moved: %s send%s may have left and nobody holds the trade any "
                    "more, so nothing is paid anew before the channel was asked.%s",
                    WORDS_COUNT(v->sends), plural(v->sends),
                    is_past_deadline(v) ? "  Its deadline is over: nothing is sent for it any more."
                                        : "");
    else
        explain_say(e, TL_TOPIC_STATE, "", "Nothing has been sent%s, and nobody holds the trade.",
                    is_past_deadline(v) ? " before its deadline, and nothing will be" : "");
    if (v->session_id[0] != '\0' && v->holder[0] != '\0')
        explain_say(e, TL_TOPIC_STATE, "", "%s held it last, and is dead or was too late.",
                    v->holder);
}

static void say_ended(explaining *e)
{
    const tl_view *v = &e->view;
    char when[2 * WORDS];

    words_when(when, v->now_us, e->ended_us != 0 ? e->ended_us : v->updated_us);
    if (v->state == TL_STATE_SUCCEEDED)
        explain_say(e, TL_TOPIC_STATE, "", "It succeeded, once and for good, at %s.", when);
    else
        explain_say(e, TL_TOPIC_STATE, "", "It failed, with proof: %s; at %s.",
                    tl_proof_text((tl_proof)v->proof), when);
}

static void say_retry_row(explaining *e)
{
    explain_say(e, TL_TOPIC_STATE, "", "%s",
                e->view.state == TL_STATE_WAITING ? "The compensating attempt waits."
                                                  : "No compensating attempt is needed: the lane "
                                                    "is closed.");
}

static void say_hindrances(explaining *e)
{
    if (e->view.being_decided)
        explain_say(e, TL_TOPIC_STATE, "",
                    "An open transaction holds the row at this moment, and nothing can be done "
                    "with it before that ends.");
    if (e->view.conflict)
        explain_say(e, TL_TOPIC_STATE, "",
                    "Evidence contradicts this row: nothing is sent or tried anew before two "
                    "operators have decided.");
    if (e->restored)
        explain_say(e, TL_TOPIC_STATE, "tradelock restore status",
                    "A restore of the server is open: nothing is granted, sent or failed before "
                    "two operators accept the server.");
}

void explain_state(explaining *e)
{
    switch (e->view.state) {
    case TL_STATE_LIVE:
    case TL_STATE_WORKING:
        say_held(e);
        break;
    case TL_STATE_IN_DOUBT:
    case TL_STATE_QUEUED:
        say_open(e);
        break;
    case TL_STATE_PARKED:
        say_parked(e);
        break;
    case TL_STATE_FAILED:
    case TL_STATE_SUCCEEDED:
        say_ended(e);
        break;
    case TL_STATE_WAITING:
    case TL_STATE_CLOSED:
    case TL_STATE_ABSENT:
        say_retry_row(e);
    }
    say_hindrances(e);
}

/* ------------------------------------------------------------------ what is next -- */

int explain_is_waiting(const tl_view *v)
{
    return v->state == TL_STATE_IN_DOUBT || v->state == TL_STATE_QUEUED ||
           v->state == TL_STATE_WAITING;
}

/* "attempt 11 of 12, then parked" */
static void number_text(char to[96], const explaining *e)
{
    const unsigned next = e->view.attempts + 1;

    snprintf(to, 96, "attempt %s of %s%s", WORDS_COUNT(next), WORDS_COUNT(e->attempts_max),
             next >= e->attempts_max ? "; if that does not decide it, it is parked"
                                     : ", then parked");
}

static void say_lane(explaining *e, const char *doing)
{
    const tl_view *v = &e->view;
    char when[2 * WORDS], number[96] = "";

    if (e->has_sync)
        number_text(number, e);
    /* Opening takes the dead holder off the row. */
    if (v->session_id[0] != '\0')
        explain_say(
            e, TL_TOPIC_NEXT, "",
            "Nobody can go on, since its retry lane is not open yet: the janitor of any running "
            "service or worker opens it, or `tradelock retry`.");
    else if (v->next_run_us == 0)
        explain_say(e, TL_TOPIC_NEXT, "",
                    "It has no retry lane; whoever wants the lock may ask for it.");
    else if (v->next_run_us <= v->now_us)
        explain_say(e, TL_TOPIC_NEXT, "",
                    "A retry worker that has %s registered could %s since %s%s%s%s.", v->op_code,
                    doing, words_when(when, v->now_us, v->next_run_us),
                    number[0] != '\0' ? ", " : "", number,
                    e->is_unserved ? "" : "; if nothing happens, none is running");
    else
        explain_say(e, TL_TOPIC_NEXT, "", "A retry worker will %s at %s%s%s.", doing,
                    words_when(when, v->now_us, v->next_run_us), number[0] != '\0' ? ": " : "",
                    number);
    if (e->is_unserved)
        explain_say(e, TL_TOPIC_NEXT, "tradelock ps",
                    "No process that has %s registered is alive, so nothing happens before a retry "
                    "worker is started.",
                    e->key.op_code);
}

/* No worker claims it, so there is nothing that could happen before the resume. */
static void say_paused(explaining *e)
{
    char when[2 * WORDS];

    explain_say(e, TL_TOPIC_NEXT, "tradelock channel ls",
                "Operators have paused %s, since %s: %s (%s).  Nothing new is sent, it is not "
                "claimed and no attempt is used up; it goes on after `tradelock %s`.",
                e->paused.name, words_when(when, e->view.now_us, e->paused.row.decided_us),
                e->paused.why, e->paused.by,
                strcmp(e->paused.name, "all channels") == 0 ? "drain --end" : "channel resume");
    if (e->view.deadline_us != 0 && !is_past_deadline(&e->view))
        explain_say(e, TL_TOPIC_NEXT, "", "Its deadline goes on: after %s nothing is sent for it.",
                    words_when(when, e->view.now_us, e->view.deadline_us));
}

static int is_full(const tl_pause_row *row)
{
    return row->sends > 0 && row->permits >= row->sends;
}

/* Where all permits are out: when one comes back. */
static void say_full(explaining *e, const explain_hold *limit)
{
    const tl_pause_row *row = &limit->row;
    char ended[160] = "", free[2 * WORDS], hold[WORDS];

    if (row->permits_ended > 0)
        snprintf(ended, sizeof ended, "  %s of them %s of processes that ended: free at %s.",
                 WORDS_COUNT(row->permits_ended), row->permits_ended == 1 ? "is" : "are",
                 words_when(free, e->view.now_us, row->ended_free_us));
    explain_say(e, TL_TOPIC_NEXT, "tradelock channel ls",
                "Its send waits for a permit: operators limit %s to %s send%s at a time (%s, %s), "
                "and %s of %s permits are out.  One comes back as soon as a send ends, and "
                "none takes longer than %s.%s  Until then a worker puts it off, and uses up no "
                "attempt.",
                limit->name, WORDS_COUNT(row->sends), plural((unsigned)row->sends), limit->why,
                limit->by, WORDS_COUNT(row->permits), WORDS_COUNT(row->sends),
                tl_span_text(hold, row->longest_hold_ms * 1000, TL_SPAN_WORDS), ended);
}

/* One after the other, all that is due is sent by then. */
static int64_t turn_us(const explaining *e, const tl_pause_row *row)
{
    const int64_t now_us = e->view.now_us, next_us = row->next_us > now_us ? row->next_us : now_us;
    const int64_t from_us = e->view.next_run_us > next_us ? e->view.next_run_us : next_us;

    return from_us + e->due * 1000000 / row->per_second;
}

static void say_limit(explaining *e, const explain_hold *limit)
{
    const tl_pause_row *row = &limit->row;
    char out[64] = "", when[2 * WORDS];

    if (is_full(row))
        say_full(e, limit);
    else if (row->sends > 0)
        explain_say(e, TL_TOPIC_NEXT, "",
                    "Operators limit %s to %s send%s at a time (%s, %s); %s of %s permits are "
                    "out, so that does not hold it up now.",
                    limit->name, WORDS_COUNT(row->sends), plural((unsigned)row->sends), limit->why,
                    limit->by, WORDS_COUNT(row->permits), WORDS_COUNT(row->sends));
    if (row->per_second == 0)
        return;
    if (e->due > 0)
        snprintf(out, sizeof out, "%s%s attempt%s due", WORDS_COUNT(e->due),
                 e->due >= METRICS_OVERDUE_ROWS ? " or more" : "", e->due == 1 ? " is" : "s are");
    explain_say(e, TL_TOPIC_NEXT, is_full(row) ? "" : "tradelock channel ls",
                "Operators limit %s to %s send%s a second (%s, %s): %s, so its turn may come at "
                "about %s.  What is put off until then uses up no attempt.",
                limit->name, WORDS_COUNT(row->per_second), plural((unsigned)row->per_second),
                limit->why, limit->by, e->due > 0 ? out : "no other attempt is due",
                words_when(when, e->view.now_us, turn_us(e, row)));
}

/* What the probes of an open breaker came to so far. */
static const char *probes_text(char to[96 + 2 * WORDS], const explaining *e,
                               const tl_pause_row *row)
{
    char when[2 * WORDS];

    if (row->probed_us == 0)
        return "none was made yet";
    snprintf(to, 96 + 2 * WORDS, "%s had no answer, and %s %s", WORDS_COUNT(row->silent_probes),
             row->probes ? "one goes on since" : "the last one began at",
             words_when(when, e->view.now_us, row->probed_us));
    return to;
}

/* A worker claims it only as the probe. */
static void say_breaker(explaining *e, const explain_hold *breaker)
{
    const tl_view *v = &e->view;
    const tl_pause_row *row = &breaker->row;
    char since[2 * WORDS], probes[96 + 2 * WORDS], next[64 + 2 * WORDS] = "now";
    char due[32 + 2 * WORDS] = "", when[2 * WORDS];

    if (row->probe_us > v->now_us)
        snprintf(next, sizeof next, "%s %s",
                 row->probes ? "once that ends, at the latest at" : "at",
                 words_when(when, v->now_us, row->probe_us));
    if (v->next_run_us != 0)
        snprintf(due, sizeof due, ", due %s %s,", v->next_run_us <= v->now_us ? "since" : "at",
                 words_when(when, v->now_us, v->next_run_us));
    explain_say(e, TL_TOPIC_NEXT, "tradelock channel ls",
                "The breaker of %s is open since %s, since outcomes of its sends were unknown (%s, "
                "%s).  Nothing new is sent, and the channel is asked nothing, but for one call of "
                "all processes at a time, a probe: %s.  The next one may begin %s.  This trade%s "
                "may be it; before, it is not claimed and no attempt is used up.  An answer closes "
                "the breaker, and all goes on.",
                breaker->name, words_when(since, v->now_us, row->opened_us), breaker->why,
                breaker->by, probes_text(probes, e, row), next, due);
}

static void say_failed_next(explaining *e)
{
    if (e->view.conflict)
        explain_say(e, TL_TOPIC_NEXT, "", "Nothing happens before two operators have decided.");
    else
        explain_say(e, TL_TOPIC_NEXT, "", "Nothing happens by itself; %s.",
                    e->view.retryable ? "the service may try it anew, as the next epoch"
                                      : "it is not tried anew");
}

static void say_proposed(explaining *e, const explain_proposal *proposal)
{
    explain_say(e, TL_TOPIC_NEXT, "",
                "%s has proposed that it %s: that waits for a second person, and changes nothing "
                "before.",
                proposal->proposer, explain_decided(proposal->decision));
}

static void say_decision(explaining *e)
{
    for (unsigned i = 0; i < e->proposal_count; i++)
        say_proposed(e, &e->proposals[i]);
    if (e->decided != 0 && e->view.status == 'P')
        explain_say(
            e, TL_TOPIC_NEXT, "",
            "Two operators decided that it %s: a worker that has %s registered carries that "
            "out, with its books%s.",
            explain_decided(e->decided), e->view.op_code,
            e->decided == TL_DECISION_FAILED ? ", and asks the channel first where it can" : "");
}

void explain_next(explaining *e)
{
    const tl_view *v = &e->view;

    if (e->is_strange && explain_is_waiting(v))
        explain_say(
            e, TL_TOPIC_NEXT, "tradelock doctor",
            "Its channel is \"%s\", which no process that lives has registered for %s: it is "
            "not asked, and nothing is sent to another one.  It waits, uses up no attempt, and "
            "goes on once a process has registered that channel, as a former one at least.",
            v->channel, e->key.op_code);
    if (e->paused.name[0] != '\0' && explain_is_waiting(v)) {
        say_paused(e);
        say_decision(e);
        return;
    }
    for (unsigned i = 0; i < e->breaker_count && explain_is_waiting(v); i++)
        say_breaker(e, &e->breakers[i]);
    /* Its lane is open, and told of with the breaker. */
    if (e->breaker_count > 0 && explain_is_waiting(v) && v->session_id[0] == '\0' &&
        v->next_run_us != 0) {
        say_decision(e);
        return;
    }
    for (unsigned i = 0; i < e->limit_count && explain_is_waiting(v); i++)
        say_limit(e, &e->limits[i]);
    switch (v->state) {
    case TL_STATE_IN_DOUBT:
        say_lane(e, "ask the channel");
        break;
    case TL_STATE_QUEUED:
        say_lane(e, is_past_deadline(v) ? "end it as failed" : "send it");
        break;
    case TL_STATE_WAITING:
        say_lane(e, "try again");
        break;
    case TL_STATE_PARKED:
        explain_say(e, TL_TOPIC_NEXT, "", "Nothing happens before a person acts.");
        break;
    case TL_STATE_LIVE:
    case TL_STATE_WORKING:
        explain_say(e, TL_TOPIC_NEXT, "",
                    "Its holder ends it, or puts it back into the retry lane.");
        break;
    case TL_STATE_FAILED:
        say_failed_next(e);
        break;
    case TL_STATE_SUCCEEDED:
        explain_say(e, TL_TOPIC_NEXT, "", "Nothing happens any more.");
        break;
    case TL_STATE_ABSENT:
    case TL_STATE_CLOSED:
        break;
    }
    say_decision(e);
}

/* ------------------------------------------------------------------ the two ends -- */

/* Which of the ways to F are open; the channel's declaration is the workflow's own. */
static void say_failing(explaining *e)
{
    const tl_view *v = &e->view;
    char when[2 * WORDS];

    if (v->sends == 0) {
        if (v->deadline_us != 0)
            explain_say(e, TL_TOPIC_END, "", "It becomes F if it was not sent by its deadline, %s.",
                        words_when(when, v->now_us, v->deadline_us));
        return;
    }
    explain_say(
        e, TL_TOPIC_END, "",
        "It becomes F only with proof: the channel says that it failed; or that it does not "
        "know the payment, where that is declared final, for the whole grace; or that it "
        "cancelled it; or two operators decide.");
    if (v->send_until_us > v->now_us)
        explain_say(e, TL_TOPIC_END, "",
                    "\"Not found\" counts only after %s: until then a request may be on its way.",
                    words_when(when, v->now_us, v->send_until_us));
    if (v->not_found_since_us != 0)
        explain_say(e, TL_TOPIC_END, "", "The channel does not know it since %s.",
                    words_when(when, v->now_us, v->not_found_since_us));
}

void explain_end(explaining *e)
{
    if (e->view.status == 'P' && e->has_sync && !e->view.repeatable) {
        explain_say(
            e, TL_TOPIC_END, "",
            "It becomes Y once the channel says that it was paid, when it is sent or asked, "
            "or as evidence.");
        say_failing(e);
    } else if (e->view.status == 'F' && e->has_sync) {
        explain_say(e, TL_TOPIC_END, "",
                    "F is undone only by evidence of success and two operators%s.",
                    e->view.retryable ? ", or tried anew" : "");
    }
}

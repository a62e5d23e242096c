/* What an operator may do now about a trade, each with its command.  Reads which open transaction
 * is the oldest, where one is in the way. */
#include "admin/explain.h"

#include "admin/words.h"

#include <tradelock/money.h>

#include <stdio.h>

#define COMMAND 1024

/* "tradelock WHAT SERIAL CUST OP" */
static void begin_command(char to[COMMAND], const explaining *e, const char *what)
{
    char serial[4 * TL_SERIAL_MAX + 3], cust[4 * TL_CUST_MAX + 3], op[4 * TL_OP_MAX + 3];

    (void)tl_shell_quote(serial, sizeof serial, e->key.serial_no);
    (void)tl_shell_quote(cust, sizeof cust, e->key.cust_no);
    (void)tl_shell_quote(op, sizeof op, e->key.op_code);
    snprintf(to, COMMAND, "tradelock %s %s %s %s", what, serial, cust, op);
}

static void add_fence(char to[COMMAND], const explaining *e)
{
    char fence[64];

    snprintf(fence, sizeof fence, " --fence %llu --reason 'REASON'",
             (unsigned long long)e->view.fence);
    text_add(to, COMMAND, fence);
}

static void say_decide(explaining *e, const char *verb, const char *as, const char *text)
{
    char command[COMMAND], what[32], option[32];

    snprintf(what, sizeof what, "resolve %s", verb);
    snprintf(option, sizeof option, " --as %s", as);
    begin_command(command, e, what);
    text_add(command, COMMAND, option);
    add_fence(command, e);
    explain_say(e, TL_TOPIC_ACT, command, "%s", text);
}

static void say_retry(explaining *e)
{
    char command[COMMAND];
    const tl_view *v = &e->view;
    const int late = v->deadline_us != 0 && v->now_us >= v->deadline_us;

    begin_command(command, e, "retry");
    add_fence(command, e);
    explain_say(e, TL_TOPIC_ACT, command, "Have it looked at %s%s; that %s.",
                e->breaker_count > 0 ? "with a probe" : "now",
                v->parked[0] != '\0' ? ", and lift the parking" : "",
                v->sends == 0 && !late ? "sends it"
                : v->sends == 0        ? "ends it as failed, since its deadline is over"
                : late ? "asks the channel and sends nothing, since the deadline is over"
                       : "asks before it sends");
}

static void say_evidence(explaining *e, const char *text)
{
    const tl_view *v = &e->view;
    char command[COMMAND], paid[TL_AMOUNT_TEXT];

    begin_command(command, e, "evidence add");
    text_add(command, COMMAND, " --outcome SUCCEEDED --source 'SOURCE' --ref 'REFERENCE'");
    if (v->currency[0] != '\0') {
        text_add(command, COMMAND, " --amount '");
        text_add(command, COMMAND, tl_amount_text(paid, v->amount_minor, v->currency));
        text_add(command, COMMAND, "'");
    }
    explain_say(e, TL_TOPIC_ACT, command, "%s", text);
}

/* ---------------------------------------------------------------- transactions -- */

/* The account that migrated may lack the right PROCESS. */
static void say_transaction(explaining *e)
{
    blocker found = {.connection = 0};
    const db_answer answer = explain_blocker(e->client, &found);
    char age[WORDS];

    if (answer != DB_DONE && e->view.being_decided)
        explain_say(e, TL_TOPIC_ACT, "",
                    "An administrator finds and ends the open transaction; the account that "
                    "migrated may not see it, since it lacks the right PROCESS.");
    else if (e->view.being_decided && found.waits_for_replica)
        explain_say(
            e, TL_TOPIC_ACT, "",
            "A commit has been waiting for the replica for %s, and ends once that is back.  "
            "Do not kill it: the server would answer it as done, and others with it.",
            tl_span_text(age, found.age_us, TL_SPAN_WORDS));
    else if (blocker_is_long(&found) || (found.connection != 0 && e->view.being_decided))
        explain_say(e, TL_TOPIC_ACT, "", "Others may wait for this: %s.", found.text);
}

/* ---------------------------------------------------------------------- deciding -- */

/* Whoever made a proposal cannot confirm it. */
static void say_proposals(explaining *e)
{
    for (unsigned i = 0; i < e->proposal_count; i++)
        say_decide(e, "confirm", tl_decision_name(e->proposals[i].decision),
                   e->proposals[i].own
                       ? "A second person, with an account of their own, confirms what this "
                         "account proposed:"
                       : "Confirm what was proposed, or do nothing:");
}

static void say_may_fail(explaining *e)
{
    const tl_view *v = &e->view;
    char when[2 * WORDS];

    if (v->session_id[0] != '\0' || !e->retry_waits)
        return;
    if (v->send_until_us > v->now_us)
        explain_say(e, TL_TOPIC_ACT, "",
                    "After %s two operators may decide that it failed; until then a request may be "
                    "on its way.",
                    words_when(when, v->now_us, v->send_until_us));
    else
        say_decide(e, "propose", "failed",
                   "If it is certain that no money moved or will, propose that it failed; a second "
                   "person confirms:");
}

/* Nothing of its own helps it on before a probe is answered. */
static void say_breakers(explaining *e)
{
    char command[COMMAND], channel[4 * TL_CHANNEL_MAX + 3], op[4 * TL_OP_MAX + 3];

    (void)tl_shell_quote(channel, sizeof channel, e->view.channel);
    (void)tl_shell_quote(op, sizeof op, e->key.op_code);
    for (unsigned i = 0; i < e->breaker_count; i++) {
        const int is_of_op = e->breakers[i].is_of_op;

        snprintf(command, sizeof command,
                 "tradelock channel breaker %s%s%s --none --reason 'REASON'", channel,
                 is_of_op ? " --op " : "", is_of_op ? op : "");
        explain_say(e, TL_TOPIC_ACT, command,
                    "Find out what is wrong with %s; wait for a probe that is answered.  Only if "
                    "the channel is known to work again, and that is too late: take its breaker "
                    "away, and all that is due is sent and asked at once:",
                    e->breakers[i].name);
    }
}

static void act_in_process(explaining *e)
{
    const tl_view *v = &e->view;
    char when[2 * WORDS];

    if (v->state == TL_STATE_LIVE || v->state == TL_STATE_WORKING) {
        explain_say(e, TL_TOPIC_ACT, "", "Wait for its holder, at most until %s.",
                    words_when(when, v->now_us, v->max_hold_until_us));
        return;
    }
    say_breakers(e);
    say_retry(e);
    if (e->decided != 0)
        return;
    if (v->sends > 0)
        say_evidence(e,
                     "If the channel's statement says that it was paid, file that; a worker then "
                     "ends it as paid:");
    if (v->conflict)
        say_decide(e, "propose", "clear",
                   "If the evidence is wrong, propose to clear the conflict:");
    say_may_fail(e);
}

static void act_failed(explaining *e)
{
    if (!e->view.conflict) {
        say_evidence(e, "Only if the channel paid it all the same, file that:");
        return;
    }
    say_decide(e, "propose", "paid", "If it was paid after all, propose that:");
    say_decide(e, "propose", "clear", "If the evidence is wrong, propose to clear the conflict:");
}

/* What no worker does, since nothing tells it that business rows are missing. */
static int say_book(explaining *e)
{
    if (e->by_hand)
        explain_say(e, TL_TOPIC_ACT, "tradelock audit --statement FILE.csv",
                    "SQL changed it, and no business row followed.  Unless that was done: compare "
                    "it with the channel, book by hand what is missing, and let two operators "
                    "close the finding:");
    else if (e->filed)
        explain_say(e, TL_TOPIC_ACT, "",
                    "Book its business rows by hand, unless that was done: they were lost in the "
                    "restore, and no worker books them.");
    return e->by_hand || e->filed;
}

void explain_act(explaining *e)
{
    const tl_view *v = &e->view;
    int books;

    say_transaction(e);
    if (!e->has_sync || v->repeatable) {
        explain_say(e, TL_TOPIC_ACT, "", "Nothing: whoever wants this lock asks for it.");
        return;
    }
    say_proposals(e);
    if (e->proposal_count > 0)
        return;
    books = v->status != 'P' && say_book(e);
    if (v->status == 'P')
        act_in_process(e);
    else if (v->status == 'F')
        act_failed(e);
    else if (v->conflict)
        say_decide(e, "propose", "clear",
                   "If the evidence is wrong, propose to clear the conflict:");
    else if (!books)
        explain_say(e, TL_TOPIC_ACT, "", "Nothing has to be done.");
}

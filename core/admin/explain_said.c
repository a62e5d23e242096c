/* What the channel said, and who tried, from the history of a trade.  Only formats. */
#include "admin/explain.h"

#include "admin/words.h"

#include <stdio.h>
#include <string.h>

static int begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* ------------------------------------------------------------------ the answers -- */

/* The steps that give a trade back, and what each says of a send; core/trade_lock/ending.c names
 * them.  NULL: it is none. */
static const char *sent_word(const char *step)
{
    static const char *const words[][2] = {{"accepted", "accepted"},
                                           {"pending", "pending"},
                                           {"retry later", "retry later"},
                                           {"not sent", "not sent"},
                                           {"unknown", "no clear answer"}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(step, words[i][0]) == 0)
            return words[i][1];
    return NULL;
}

/* workflows/compensate.c puts the answer in front of what a callback remarked: "asked: pending;
 * HTTP 200".  A remark without such a word is what a send was told. */
static void read_answer(explain_answer *answer, const char *word, const char *remark)
{
    const char *rest = remark, *end;

    memset(answer, 0, sizeof *answer);
    answer->verb = strcmp(word, "not sent") == 0 ? 'n' : 's';
    if (begins(remark, "asked: ") || begins(remark, "cancel: ")) {
        answer->verb = remark[0];
        word = strchr(remark, ' ') + 1;
        end = strchr(word, ';');
        rest = end == NULL ? "" : end[1] == ' ' ? end + 2 : end + 1;
        snprintf(answer->word, sizeof answer->word, "%.*s",
                 (int)(end != NULL ? end - word : (ptrdiff_t)strlen(word)), word);
    } else {
        text_copy(answer->word, sizeof answer->word, word);
    }
    text_copy(answer->detail, sizeof answer->detail, rest);
}

static void take_answer(explaining *e, const char *word, const char *remark, int64_t when_us)
{
    explain_answer *answer = e->answers, one;

    /* A step without a remark leaves the last one on the row; it was not it who heard "pending". */
    if (begins(remark, "asked: pending") && strcmp(word, "pending") != 0)
        return;
    read_answer(&one, word, remark);
    while (answer < e->answers + e->answer_count &&
           (answer->verb != one.verb || strcmp(answer->word, one.word) != 0))
        answer++;
    if (answer == e->answers + EXPLAIN_ANSWERS)
        return;
    if (answer == e->answers + e->answer_count) {
        e->answer_count++;
        *answer = one;
        answer->first_us = when_us;
    }
    text_copy(answer->detail, sizeof answer->detail, one.detail);
    answer->count++;
    answer->last_us = when_us;
}

/* -------------------------------------------------------------------- the steps -- */

static void take_holder(explaining *e, const tl_step *step, int first_lane)
{
    const char *name = step->holder != NULL ? step->holder : "A process that is gone";
    explain_holder *one = e->holders;

    while (one < e->holders + e->holder_count &&
           (one->first_lane != first_lane || strcmp(one->name, name) != 0))
        one++;
    if (one == e->holders + EXPLAIN_HOLDERS) {
        e->other_holders++;
        return;
    }
    if (one == e->holders + e->holder_count)
        e->holder_count++;
    text_copy(one->name, sizeof one->name, name);
    one->first_lane = first_lane;
    one->last_us = step->logged_us;
    one->count++;
}

static void take_by_hand(explaining *e, const tl_step *step)
{
    char when[2 * WORDS];

    e->by_hand = 1;
    text_buffer_append_format(&e->people, "At %s %s changed the row of %s by hand, with SQL.",
                              words_when(when, e->view.now_us, step->logged_us), step->account,
                              step->op_code);
    text_buffer_append(&e->people, "", 1);
}

static void take_sync_step(explaining *e, const tl_step *step)
{
    const char *word = sent_word(step->step);

    e->filed = strcmp(step->step, "filed") == 0;
    if (strcmp(step->step, "ask") == 0 || strcmp(step->step, "reclaim") == 0) {
        /* A payment that is tried anew is another one for the channel. */
        e->answer_count = e->arms = 0;
        e->first_sent_us = e->last_sent_us = 0;
        take_holder(e, step, 1);
        if (step->sends > 0)
            e->first_sent_us = e->last_sent_us = step->logged_us;
    } else if (strcmp(step->step, "claim") == 0) {
        take_holder(e, step, 0);
    } else if (strcmp(step->step, "arm") == 0) {
        e->arms += e->first_sent_us != 0;
        e->last_sent_us = step->logged_us;
        if (e->first_sent_us == 0)
            e->first_sent_us = step->logged_us;
    } else if (word != NULL) {
        if (step->sends == 0)
            e->first_sent_us = 0;
        take_answer(e, word, step->remark != NULL ? step->remark : "", step->logged_us);
    } else if (strcmp(step->step, "reap") == 0) {
        e->deaths++;
    } else if (strcmp(step->step, "end") == 0) {
        e->ended_us = step->logged_us;
    }
}

static void take_retry_step(explaining *e, const tl_step *step)
{
    char when[2 * WORDS];

    if (step->parked == NULL)
        e->parked_us = 0;
    else if (e->parked_us == 0)
        e->parked_us = step->logged_us;
    if (strcmp(step->step, "operator") != 0)
        return;
    text_buffer_append_format(&e->people, "At %s %s%s%s%s made it due: %s.",
                              words_when(when, e->view.now_us, step->logged_us), step->account,
                              step->actor != NULL ? " (as " : "",
                              step->actor != NULL ? step->actor : "",
                              step->actor != NULL ? ")" : "",
                              step->remark != NULL ? step->remark : "no reason on record");
    text_buffer_append(&e->people, "", 1);
}

void explain_take_step(explaining *e, const tl_step *step)
{
    if (strcmp(step->step, "by hand") == 0)
        take_by_hand(e, step);
    if (text_is_retry_op(step->op_code))
        take_retry_step(e, step);
    else
        take_sync_step(e, step);
}

/* -------------------------------------------------------------------- telling -- */

static const char *channel_name(const explaining *e)
{
    return e->view.channel[0] != '\0' ? e->view.channel : "the channel";
}

static void say_sent(explaining *e)
{
    char first[2 * WORDS], last[2 * WORDS] = "";
    const tl_view *v = &e->view;

    if (e->first_sent_us == 0) {
        explain_say(e, TL_TOPIC_CHANNEL, "", "%s request%s to %s may have left.",
                    WORDS_COUNT(v->sends), v->sends == 1 ? "" : "s", channel_name(e));
        return;
    }
    words_when(first, v->now_us, e->first_sent_us);
    if (e->arms > 0)
        words_when(last, v->now_us, e->last_sent_us);
    if (e->arms > 0)
        explain_say(
            e, TL_TOPIC_CHANNEL, "",
            "It was sent to %s at %s, and %s time%s more, last at %s, each time with key %s.",
            channel_name(e), first, WORDS_COUNT(e->arms), e->arms == 1 ? "" : "s", last,
            v->channel_key);
    else
        explain_say(e, TL_TOPIC_CHANNEL, "", "It was sent to %s at %s%s%s.", channel_name(e), first,
                    v->channel_key[0] != '\0' ? ", with key " : "", v->channel_key);
}

/* "Asked, it said "pending"", "It answered "accepted"". */
static void begin_answer(char *to, size_t space, const explain_answer *a)
{
    const int silent = begins(a->word, "no ");

    if (a->verb == 'n')
        snprintf(to, space, "It was not sent");
    else if (a->verb == 's')
        snprintf(to, space, silent ? "It gave %s" : "It answered \"%s\"", a->word);
    else
        snprintf(to, space, silent ? "%s, it gave %s" : "%s, it said \"%s\"",
                 a->verb == 'c' ? "Told to cancel" : "Asked", a->word);
}

static void say_answer(explaining *e, const explain_answer *a)
{
    char what[96], when[2 * WORDS], first[WORDS], times[64 + WORDS] = "";

    begin_answer(what, sizeof what, a);
    words_when(when, e->view.now_us, a->last_us);
    if (a->count > 1)
        snprintf(times, sizeof times, "%s times since %s, last ", WORDS_COUNT(a->count),
                 words_moment(first, e->view.now_us, a->first_us));
    explain_say(e, TL_TOPIC_CHANNEL, "", "%s %sat %s%s%s.", what, times, when,
                a->detail[0] != '\0' ? ": " : "", a->detail);
}

void explain_channel(explaining *e)
{
    const tl_view *v = &e->view;

    if (!e->has_sync || v->repeatable)
        return;
    if (!e->has_log && v->status == 'P' && v->remark[0] != '\0')
        explain_say(e, TL_TOPIC_CHANNEL, "", "The last remark is: %s.", v->remark);
    if (v->sends > 0)
        say_sent(e);
    if (v->channel_ref[0] != '\0')
        explain_say(e, TL_TOPIC_CHANNEL, "", "The channel's reference is %s.", v->channel_ref);
    for (unsigned i = 0; i < e->answer_count; i++)
        say_answer(e, &e->answers[i]);
    if (v->status != 'P' && v->remark[0] != '\0')
        explain_say(e, TL_TOPIC_CHANNEL, "", "Of its end it is on record: %s.", v->remark);
    if (e->has_log && v->status == 'P' && v->sends > 0 && e->answer_count == 0)
        explain_say(e, TL_TOPIC_CHANNEL, "", "No answer of %s is on record.", channel_name(e));
    if (!e->has_log)
        explain_say(e, TL_TOPIC_CHANNEL, "",
                    "What it said before, and who tried, an operator's or a reader's account is "
                    "shown.");
}

static void say_holder(explaining *e, const explain_holder *one)
{
    char when[2 * WORDS], times[48] = "";

    words_when(when, e->view.now_us, one->last_us);
    if (one->count > 1)
        snprintf(times, sizeof times, "%s times, last ", WORDS_COUNT(one->count));
    explain_say(e, TL_TOPIC_BEFORE, "", "%s %s %sat %s.", one->name,
                one->first_lane ? "asked for it" : "tried to find out what became of it", times,
                when);
}

void explain_before(explaining *e)
{
    for (unsigned i = 0; i < e->holder_count; i++)
        say_holder(e, &e->holders[i]);
    if (e->other_holders > 0)
        explain_say(e, TL_TOPIC_BEFORE, "", "Others held it %s more times.",
                    WORDS_COUNT(e->other_holders));
    if (e->deaths > 0)
        explain_say(e, TL_TOPIC_BEFORE, "",
                    "%s hold%s ended without an answer: the process died, or was too late.",
                    WORDS_COUNT(e->deaths), e->deaths == 1 ? "" : "s");
    for (size_t at = 0; at < e->people.size; at += strlen(e->people.data + at) + 1)
        explain_say(e, TL_TOPIC_BEFORE, "", "%s", e->people.data + at);
}

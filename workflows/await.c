/*
 * Waits for outcomes of trades.  All who wait on a registry are in one list; the registry's thread
 * for reads reads for all, in rounds, and whoever's trade has ended leaves.  Reads only.
 *
 * A server that has fallen silent keeps that thread for as long as the connection's own time-outs
 * allow, and nobody who waits: their time is their own.
 *
 * During a round its statements are under way without the mutex.  Meanwhile
 *   - others come: they are read in the next round, since a round that began before them may show
 *     what was before their question;
 *   - others leave, since their time is over: a round knows keys and numbers, not waiters, and
 *     gives what it read to those of it who are still in the list.
 */
#include "await.h"

#include "memory.h"
#include "questions.h"
#include "schedule.h"

#include <tradelock/layer.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EVERY_MS 100
/* The keys of a statement, and how long each statement of a round puts off the next round. */
#define KEYS_AT_ONCE 64
#define STATEMENT_MS 10
/* A wait that is shorter than this goes on for so long until its trade was read once. */
#define FIRST_READ_MS 1000

struct texts {
    char serial_no[TL_SERIAL_MAX + 1], cust_no[TL_CUST_MAX + 1], op_code[TL_OP_MAX + 1];
};

struct awaiting {
    /* Under the mutex of the list. */
    struct awaiting *next, *previous;
    uint64_t number;
    const await_question *first; /* NULL: nothing is to be asked before its trade is read */
    int in_round;                /* of the round under way */
    int over;
    tl_status status; /* of the last round; TL_TIMEOUT: no round has read it yet */
    char sentence[256];
    tl_trade trade;
    /* Its own. */
    pthread_cond_t wake;
    struct texts key;
    int64_t until_ms, read_by_ms;
};

/* What one statement of a round reads. */
struct reading {
    const struct texts *keys; /* sorted */
    size_t count;
    int seen[KEYS_AT_ONCE];
    tl_trade trades[KEYS_AT_ONCE];
};

static void begin_due(later_item *round);

tl_status awaits_init(awaits *all, tl_workflows *of)
{
    tl_status status;

    *all = (awaits){.of = of, .round = {.run = begin_due}};
    if (pthread_mutex_init(&all->mutex, NULL) != 0)
        return tl_error_report(TL_NO_MEMORY, "no mutex for a workflow registry");
    status = later_init(&all->reader);
    if (status != TL_OK)
        pthread_mutex_destroy(&all->mutex);
    return status;
}

void awaits_destroy(awaits *all)
{
    later_destroy(&all->reader);
    pthread_mutex_destroy(&all->mutex);
}

int awaits_any(awaits *all)
{
    int any;

    pthread_mutex_lock(&all->mutex);
    any = all->first != NULL;
    pthread_mutex_unlock(&all->mutex);
    return any;
}

/* -------------------------------------------------------------------- a round -- */

static int compare(const void *a, const void *b)
{
    const struct texts *x = a, *y = b;
    int order = strcmp(x->serial_no, y->serial_no);

    if (order == 0)
        order = strcmp(x->cust_no, y->cust_no);
    return order != 0 ? order : strcmp(x->op_code, y->op_code);
}

static size_t place_of(const struct reading *r, const struct texts *key)
{
    const struct texts *found = bsearch(key, r->keys, r->count, sizeof *key, compare);

    return found != NULL ? (size_t)(found - r->keys) : r->count;
}

static int take_row(void *context, const tl_view *view)
{
    struct reading *r = context;
    struct texts key;
    size_t i;

    memcpy(key.serial_no, view->serial_no, sizeof key.serial_no);
    memcpy(key.cust_no, view->cust_no, sizeof key.cust_no);
    memcpy(key.op_code, view->op_code, sizeof key.op_code);
    i = place_of(r, &key);
    if (i < r->count) {
        trade_from_view(&r->trades[i], view);
        r->seen[i] = 1;
    }
    return 0;
}

static int is_over(tl_status status)
{
    switch (status) {
    case TL_BUSY:
    case TL_IN_DOUBT:
    case TL_QUEUED:
    case TL_NOT_FOUND:
        return 0;
    default:
        return tl_status_class(status) != TL_CLASS_RETRY;
    }
}

/* Tells one of the round what was read of it, or why not.  Needs: the mutex held. */
static void tell(struct awaiting *one, tl_status status, const tl_trade *trade)
{
    const int first = one->status == TL_TIMEOUT;

    one->status = status;
    snprintf(one->sentence, sizeof one->sentence, "%s", tl_error_message());
    if (trade != NULL) {
        one->trade = *trade;
        one->status = trade->status;
    }
    one->over = is_over(one->status);
    if (one->over || first)
        pthread_cond_signal(&one->wake);
}

/* Tells those of this statement's keys.  Needs: the mutex held. */
static void tell_read(awaits *all, const struct reading *r, tl_status status)
{
    for (struct awaiting *one = all->first; one != NULL; one = one->next) {
        size_t i = one->in_round ? place_of(r, &one->key) : r->count;

        if (i == r->count)
            continue;
        if (status != TL_OK)
            tell(one, status, NULL);
        else
            tell(one, TL_NOT_FOUND, r->seen[i] ? &r->trades[i] : NULL);
    }
}

static void read_some(tl_workflows *workflows, struct reading *r)
{
    awaits *all = &workflows->awaits;
    tl_key keys[KEYS_AT_ONCE];
    tl_status status;

    for (size_t i = 0; i < r->count; i++)
        keys[i] = (tl_key){r->keys[i].serial_no, r->keys[i].cust_no, r->keys[i].op_code};
    memset(r->seen, 0, sizeof r->seen);
    status = tl_show_many(workflows->client, keys, r->count, take_row, r);
    pthread_mutex_lock(&all->mutex);
    tell_read(all, r, status);
    pthread_mutex_unlock(&all->mutex);
}

/* Asks for each who has come what is to be asked first; a refusal is its answer.  Needs: the mutex
 * held; it is let go meanwhile. */
static void ask_first(awaits *all)
{
    struct awaiting *one = all->first;

    while (one != NULL) {
        const uint64_t number = one->number;
        await_question question;
        tl_status status;

        if (one->first == NULL || one->over) {
            one = one->next;
            continue;
        }
        question = *one->first;
        pthread_mutex_unlock(&all->mutex);
        status = question.ask(&question);
        pthread_mutex_lock(&all->mutex);
        for (one = all->first; one != NULL && one->number != number;)
            one = one->next;
        if (one != NULL && status == TL_OK)
            one->first = NULL;
        else if (one != NULL) {
            /* Needs: the mutex held. */
            tell(one, status, NULL);
            one->over = 1;
            pthread_cond_signal(&one->wake);
        }
        one = all->first;
    }
}

/* The keys of all who wait, sorted, each once; NULL: no memory.  Needs: the mutex held. */
static struct texts *begin_round(awaits *all, size_t *count)
{
    struct texts *keys;
    size_t waiting = 0, kept = 0;

    for (const struct awaiting *one = all->first; one != NULL; one = one->next)
        waiting += one->first == NULL;
    keys = workflow_memory((waiting + 1) * sizeof *keys);
    if (keys == NULL)
        return NULL;
    waiting = 0;
    for (struct awaiting *one = all->first; one != NULL; one = one->next) {
        one->in_round = one->first == NULL;
        if (one->in_round)
            keys[waiting++] = one->key;
    }
    qsort(keys, waiting, sizeof *keys, compare);
    for (size_t i = 0; i < waiting; i++)
        if (kept == 0 || compare(&keys[kept - 1], &keys[i]) != 0)
            keys[kept++] = keys[i];
    *count = kept;
    return keys;
}

/* Needs: the mutex held.  Without memory nobody learns anything. */
static void give_up_round(awaits *all)
{
    (void)tl_error_report(TL_NO_MEMORY, "no memory to wait for trades");
    for (struct awaiting *one = all->first; one != NULL; one = one->next)
        tell(one, TL_NO_MEMORY, NULL);
}

/* Needs: the mutex held; it is let go meanwhile. */
static void run_round(tl_workflows *workflows)
{
    awaits *all = &workflows->awaits;
    const int64_t start_ms = schedule_now_ms();
    struct reading *r = workflow_memory(sizeof *r);
    size_t count = 0, statements;
    struct texts *keys;
    int64_t rest_ms;

    ask_first(all);
    keys = r != NULL ? begin_round(all, &count) : NULL;

    if (keys == NULL) {
        give_up_round(all);
        free(r);
        all->round.due_ms = start_ms + EVERY_MS;
        return;
    }
    pthread_mutex_unlock(&all->mutex);
    for (size_t i = 0; i < count; i += KEYS_AT_ONCE) {
        r->keys = keys + i;
        r->count = count - i < KEYS_AT_ONCE ? count - i : KEYS_AT_ONCE;
        read_some(workflows, r);
    }
    free(keys);
    free(r);
    pthread_mutex_lock(&all->mutex);
    for (struct awaiting *one = all->first; one != NULL; one = one->next)
        one->in_round = 0;
    statements = (count + KEYS_AT_ONCE - 1) / KEYS_AT_ONCE;
    rest_ms = (int64_t)statements * STATEMENT_MS;
    all->round.due_ms = start_ms + (rest_ms > EVERY_MS ? rest_ms : EVERY_MS);
}

/* -------------------------------------------------------------------- waiting -- */

static int64_t left_ms(const struct awaiting *me)
{
    const int64_t until_ms =
        me->status == TL_TIMEOUT && me->until_ms < me->read_by_ms ? me->read_by_ms : me->until_ms;
    const int64_t left = until_ms - schedule_now_ms();

    return left > 0 ? left : 0;
}

/* Needs: the mutex held. */
static void sleep_ms(awaits *all, struct awaiting *me, int64_t ms)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(ms / 1000);
    at.tv_nsec += (long)(ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&me->wake, &all->mutex, &at);
}

/* On the thread for reads: a round, and the next one, as long as somebody waits. */
static void begin_due(later_item *round)
{
    awaits *all = (awaits *)((char *)round - offsetof(awaits, round));

    pthread_mutex_lock(&all->mutex);
    if (all->first != NULL)
        run_round(all->of);
    all->is_put = all->first != NULL;
    if (all->is_put)
        later_put(&all->reader, round);
    pthread_mutex_unlock(&all->mutex);
}

/* Needs: the mutex held. */
static void join(awaits *all, struct awaiting *me)
{
    me->number = ++all->came;
    me->next = all->first;
    if (me->next != NULL)
        me->next->previous = me;
    all->first = me;
    if (all->is_put)
        return;
    all->is_put = 1;
    later_put(&all->reader, &all->round);
}

/* Needs: the mutex held. */
static void leave(awaits *all, struct awaiting *me)
{
    if (me->previous != NULL)
        me->previous->next = me->next;
    else
        all->first = me->next;
    if (me->next != NULL)
        me->next->previous = me->previous;
}

static tl_status await_end(awaits *all, struct awaiting *me)
{
    const tl_status status = later_enter(&all->reader);

    if (status != TL_OK)
        return status;
    pthread_mutex_lock(&all->mutex);
    join(all, me);
    while (!me->over && left_ms(me) > 0)
        sleep_ms(all, me, left_ms(me));
    leave(all, me);
    pthread_mutex_unlock(&all->mutex);
    later_leave(&all->reader);
    return TL_OK;
}

static int wake_init(pthread_cond_t *wake)
{
    pthread_condattr_t attributes;
    int failed = pthread_condattr_init(&attributes);

    if (failed != 0)
        return failed;
    failed = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (failed == 0)
        failed = pthread_cond_init(wake, &attributes);
    pthread_condattr_destroy(&attributes);
    return failed;
}

static tl_status check(tl_workflows *workflows, const tl_key *key, int64_t wait_ms,
                       const tl_trade *trade)
{
    tl_status status = trade_check(workflows, key, trade);

    if (status == TL_OK && (wait_ms < 0 || wait_ms > TL_HOLD_MAX_MS))
        status = tl_error_report(TL_INVALID, "wait_ms lies between 0 and a week");
    if (status == TL_OK)
        status = tl_key_check(key);
    /* No row is asked for: whether the client can be used at all, by this process. */
    if (status == TL_OK)
        status = tl_show_many(workflows->client, NULL, 0, take_row, NULL);
    return status;
}

tl_status workflow_await(tl_workflows *workflows, const tl_key *key, int64_t wait_ms,
                         const await_question *first, tl_trade *trade)
{
    struct awaiting me = {.status = TL_TIMEOUT, .first = first};
    tl_status status;

    workflow_call_begins();
    status = check(workflows, key, wait_ms, trade);
    if (status != TL_OK)
        return status;
    if (wait_ms == 0)
        return tl_workflow_look(workflows, key, trade);
    me.until_ms = schedule_now_ms() + wait_ms;
    me.read_by_ms = schedule_now_ms() + FIRST_READ_MS;
    memcpy(me.key.serial_no, key->serial_no, strlen(key->serial_no) + 1);
    memcpy(me.key.cust_no, key->cust_no, strlen(key->cust_no) + 1);
    memcpy(me.key.op_code, key->op_code, strlen(key->op_code) + 1);
    if (wake_init(&me.wake) != 0)
        return tl_error_report(TL_NO_MEMORY, "no condition to wait with");
    status = await_end(&workflows->awaits, &me);
    pthread_cond_destroy(&me.wake);
    if (status != TL_OK)
        return status;
    workflow_call_begins();
    if (me.status == TL_TIMEOUT)
        return tl_error_report(TL_UNREACHABLE, "the server did not answer within %lld ms",
                               (long long)wait_ms);
    if (me.status == TL_NOT_FOUND)
        return tl_error_report(TL_NOT_FOUND, "there is no trade %s %s %s", me.key.serial_no,
                               me.key.cust_no, me.key.op_code);
    if (me.trade.serial_no[0] == '\0' || me.status != me.trade.status)
        return tl_error_report(me.status, "%s", me.sentence);
    *trade = me.trade;
    return me.status;
}

tl_status tl_workflow_await(tl_workflows *workflows, const tl_key *key, int64_t wait_ms,
                            tl_trade *trade)
{
    return workflow_await(workflows, key, wait_ms, NULL, trade);
}

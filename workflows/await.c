/*
 * Waits for outcomes of trades.  All who wait on a registry are in one list; one of their threads
 * reads for all, in rounds, and whoever's trade has ended leaves.  Reads only.
 *
 * The thread that reads is itself one that waits.  When its own wait is over it names another
 * reader; so as long as somebody waits somebody reads, and no thread of the library's own is
 * needed.
 *
 * During a round its statements are under way without the mutex.  Meanwhile
 *   - others come: they are read in the next round, since a round that began before them may show
 *     what was before their question;
 *   - others leave, since their time is over: a round knows keys, not waiters, and gives what it
 *     read to those of it who are still in the list.
 */
#include "await.h"

#include "memory.h"
#include "questions.h"
#include "schedule.h"

#include <tradelock/layer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EVERY_MS 100
/* The keys of a statement, and how long each statement of a round puts off the next round. */
#define KEYS_AT_ONCE 64
#define STATEMENT_MS 10

struct texts {
    char serial_no[TL_SERIAL_MAX + 1], cust_no[TL_CUST_MAX + 1], op_code[TL_OP_MAX + 1];
};

struct awaiting {
    /* Under the mutex of the list. */
    struct awaiting *next, *previous;
    int in_round; /* of the round under way */
    int over;
    tl_status status; /* of the last round; TL_TIMEOUT: no round has read it yet */
    char sentence[256];
    tl_trade trade;
    /* Its own. */
    pthread_cond_t wake;
    struct texts key;
    int64_t until_ms;
};

/* What one statement of a round reads. */
struct reading {
    const struct texts *keys; /* sorted */
    size_t count;
    int seen[KEYS_AT_ONCE];
    tl_trade trades[KEYS_AT_ONCE];
};

int awaits_init(awaits *all)
{
    all->first = NULL;
    all->is_read = 0;
    all->next_ms = 0;
    return pthread_mutex_init(&all->mutex, NULL);
}

void awaits_destroy(awaits *all)
{
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
    one->status = status;
    snprintf(one->sentence, sizeof one->sentence, "%s", tl_error_message());
    if (trade != NULL) {
        one->trade = *trade;
        one->status = trade->status;
    }
    if (!is_over(one->status))
        return;
    one->over = 1;
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

/* The keys of all who wait, sorted, each once; NULL: no memory.  Needs: the mutex held. */
static struct texts *begin_round(awaits *all, size_t *count)
{
    struct texts *keys;
    size_t waiting = 0, kept = 0;

    for (const struct awaiting *one = all->first; one != NULL; one = one->next)
        waiting++;
    keys = workflow_memory(waiting * sizeof *keys);
    if (keys == NULL)
        return NULL;
    waiting = 0;
    for (struct awaiting *one = all->first; one != NULL; one = one->next) {
        one->in_round = 1;
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
    struct texts *keys = r != NULL ? begin_round(all, &count) : NULL;
    int64_t rest_ms;

    if (keys == NULL) {
        give_up_round(all);
        free(r);
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
    all->next_ms = start_ms + (rest_ms > EVERY_MS ? rest_ms : EVERY_MS);
}

/* -------------------------------------------------------------------- waiting -- */

static int64_t left_ms(const struct awaiting *me)
{
    const int64_t left = me->until_ms - schedule_now_ms();

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

/* Reads for all, until its own wait is over.  Needs: the mutex held. */
static void read_for_all(tl_workflows *workflows, struct awaiting *me)
{
    awaits *all = &workflows->awaits;

    all->is_read = 1;
    while (!me->over && left_ms(me) > 0) {
        const int64_t pause_ms = all->next_ms - schedule_now_ms(), left = left_ms(me);

        if (pause_ms > 0)
            sleep_ms(all, me, pause_ms < left ? pause_ms : left);
        else
            run_round(workflows);
    }
    all->is_read = 0;
}

/* Needs: the mutex held. */
static void join(awaits *all, struct awaiting *me)
{
    me->next = all->first;
    if (me->next != NULL)
        me->next->previous = me;
    all->first = me;
}

/* Needs: the mutex held.  If nobody reads, the next one is to. */
static void leave(awaits *all, struct awaiting *me)
{
    struct awaiting *heir;

    if (me->previous != NULL)
        me->previous->next = me->next;
    else
        all->first = me->next;
    if (me->next != NULL)
        me->next->previous = me->previous;
    for (heir = all->first; heir != NULL && heir->over; heir = heir->next)
        ;
    if (heir != NULL && !all->is_read)
        pthread_cond_signal(&heir->wake);
}

static void await_end(tl_workflows *workflows, struct awaiting *me)
{
    awaits *all = &workflows->awaits;

    pthread_mutex_lock(&all->mutex);
    join(all, me);
    while (!me->over && left_ms(me) > 0) {
        if (!all->is_read)
            read_for_all(workflows, me);
        else
            sleep_ms(all, me, left_ms(me));
    }
    leave(all, me);
    pthread_mutex_unlock(&all->mutex);
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

tl_status tl_workflow_await(tl_workflows *workflows, const tl_key *key, int64_t wait_ms,
                            tl_trade *trade)
{
    struct awaiting me = {.status = TL_TIMEOUT};
    tl_status status;

    workflow_call_begins();
    status = check(workflows, key, wait_ms, trade);
    if (status != TL_OK)
        return status;
    me.until_ms = schedule_now_ms() + wait_ms;
    memcpy(me.key.serial_no, key->serial_no, strlen(key->serial_no) + 1);
    memcpy(me.key.cust_no, key->cust_no, strlen(key->cust_no) + 1);
    memcpy(me.key.op_code, key->op_code, strlen(key->op_code) + 1);
    if (wait_ms > 0) {
        if (wake_init(&me.wake) != 0)
            return tl_error_report(TL_NO_MEMORY, "no condition to wait with");
        await_end(workflows, &me);
        pthread_cond_destroy(&me.wake);
    }
    /* It came and went between two rounds. */
    if (me.status == TL_TIMEOUT)
        return tl_workflow_look(workflows, key, trade);
    workflow_call_begins();
    if (me.status == TL_NOT_FOUND)
        return tl_error_report(TL_NOT_FOUND, "there is no trade %s %s %s", me.key.serial_no,
                               me.key.cust_no, me.key.op_code);
    if (me.trade.serial_no[0] == '\0' || me.status != me.trade.status)
        return tl_error_report(me.status, "%s", me.sentence);
    *trade = me.trade;
    return me.status;
}

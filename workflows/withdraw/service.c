/* The threads of the service: each takes the next line, runs its workflow, and repeats what may
 * be repeated; then all wait for what is open. */
#include "service.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAUSE_MS 50
#define PAUSE_MOST_MS 1000

typedef struct service {
    const host *host;
    const options *with;
    rows *all;
    atomic_size_t next;
    atomic_size_t taken; /* rows that were not told to come again */
    atomic_int stopped;  /* nothing was taken for so long: what is left is not begun */
    pthread_mutex_t mutex;
    /* Under the mutex: rows whose shard could not take them, as a ring; first come first served. */
    row **later;
    size_t later_first, later_count;
} service;

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void pause_ms(int64_t wait_ms)
{
    struct timespec left = {.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

/* ---------------------------------------------------------------- one withdrawal -- */

static tl_key row_key(const row *of)
{
    tl_key key = {of->columns[COL_SERIAL], of->columns[COL_CUST], of->columns[COL_OP]};

    return key;
}

/* Over a fleet the row of a shard that is down, or of a customer who is being handed over, is tried
 * again later, so that the thread can serve the others meanwhile.  0: its time is over. */
static int defer(service *self, row *of)
{
    if (self->host->all == NULL || now_ms() >= of->give_up_ms)
        return 0;
    of->tried_ms = now_ms();
    pthread_mutex_lock(&self->mutex);
    self->later[(self->later_first + self->later_count++) % self->all->count] = of;
    pthread_mutex_unlock(&self->mutex);
    return 1;
}

static row *take_deferred(service *self)
{
    row *of = NULL;
    int64_t left_ms;

    pthread_mutex_lock(&self->mutex);
    if (self->later_count > 0) {
        of = self->later[self->later_first];
        self->later_first = (self->later_first + 1) % self->all->count;
        self->later_count--;
    }
    pthread_mutex_unlock(&self->mutex);
    left_ms = of != NULL ? of->tried_ms + PAUSE_MS - now_ms() : 0;
    if (left_ms > 0)
        pause_ms(left_ms);
    return of;
}

/* What the server could not take is asked again: nothing had happened.  So is what it does not
 * grant before it is accepted.  An answer that was lost is settled with the same answer, which
 * never pays anew.  A limited channel takes one row after the other, so the patience is with it as
 * long as it takes none. */
static tl_status run_patiently(service *self, const tl_request *request, tl_answer *answer)
{
    int64_t end_ms = now_ms() + self->with->patience_ms;
    size_t taken = atomic_load(&self->taken), before;
    tl_status status = host_run(self->host, request, answer);

    while (now_ms() < end_ms) {
        if (status == TL_UNKNOWN && answer->run != NULL) {
            tl_status settled = host_settle(self->host, answer);

            if (settled == TL_WRONG_STATE)
                break;
            status = settled;
        } else if ((tl_status_class(status) == TL_CLASS_RETRY && self->host->all == NULL) ||
                   status == TL_ASK_CHANNEL) {
            pause_ms(answer->next_look_ms < PAUSE_MS        ? PAUSE_MS
                     : answer->next_look_ms > PAUSE_MOST_MS ? PAUSE_MOST_MS
                                                            : answer->next_look_ms);
            before = taken;
            taken = atomic_load(&self->taken);
            if (taken != before)
                end_ms = now_ms() + self->with->patience_ms;
            tl_answer_clear(answer);
            status = host_run(self->host, request, answer);
        } else {
            break;
        }
    }
    return status;
}

/* Of another batch: the serial number was used up there, whatever became of it. */
static int is_of_another_batch(const options *with, const tl_answer *answer)
{
    return with->batch != NULL && answer->view.epoch != 0 &&
           strcmp(answer->view.batch, with->batch) != 0;
}

static void note_answer(const service *self, row *of, tl_status status, const tl_answer *answer)
{
    char sentence[256];

    of->status = status;
    of->kind = answer_kind(status, answer->own);
    if (is_of_another_batch(self->with, answer)) {
        snprintf(sentence, sizeof sentence, "serial number %.64s was used in batch \"%.64s\"",
                 of->columns[COL_SERIAL], answer->view.batch);
        row_note(of, ROW_REFUSED, sentence);
    } else if (of->kind == ROW_BAD || of->kind == ROW_ERROR || of->kind == ROW_OPEN) {
        row_note(of, of->kind, tl_error_message());
    } else if (status == TL_PARKED) {
        row_note(of, of->kind, answer->view.parked);
    } else if (status == TL_MISMATCH) {
        row_note(of, of->kind, "this serial was used with another amount or payee");
    } else if (status == TL_CUSTOMER_BUSY) {
        row_note(of, of->kind, "another withdrawal of this customer is in process");
    } else if (answer->view.remark[0] != '\0') {
        row_note(of, of->kind, answer->view.remark);
    }
}

/* No refusal, and no word about the trade.  Not every slot that no shard has is being moved. */
static void note_moving(row *of)
{
    char sentence[1024];

    snprintf(sentence, sizeof sentence, "try again: %s", tl_error_message());
    of->status = TL_MISDIRECTED;
    row_note(of, ROW_ERROR, sentence);
}

static void run_row(service *self, row *of)
{
    tl_request request = TL_REQUEST_INIT;
    tl_answer answer = TL_ANSWER_INIT;
    char *payload = withdraw_order_write(&of->order);
    tl_status status, moving;

    of->status = TL_NO_MEMORY;
    of->kind = ROW_ERROR;
    if (payload == NULL)
        return;
    request.key = row_key(of);
    request.payload = payload;
    request.payload_size = strlen(payload);
    request.amount_minor = of->order.amount_minor;
    request.currency = of->order.currency;
    request.batch = self->with->batch;
    request.wait_ms = self->with->wait_ms;
    if (of->give_up_ms == 0)
        of->give_up_ms = now_ms() + self->with->patience_ms;
    status = run_patiently(self, &request, &answer);
    moving = host_moving(self->host, &request.key, status);
    if ((tl_status_class(status) != TL_CLASS_RETRY && moving == TL_OK) || !defer(self, of)) {
        if (moving == TL_MISDIRECTED)
            note_moving(of);
        else
            note_answer(self, of, status, &answer);
        if (tl_status_class(status) != TL_CLASS_RETRY && status != TL_ASK_CHANNEL)
            atomic_fetch_add(&self->taken, 1);
        else if (self->host->all == NULL)
            atomic_store(&self->stopped, 1);
    }
    tl_answer_clear(&answer);
    free(payload);
}

static void *thread_main(void *argument)
{
    service *self = argument;
    size_t turn;
    row *next;

    while (!atomic_load(&self->stopped) &&
           (turn = atomic_fetch_add(&self->next, 1)) < self->all->count) {
        next = &self->all->list[turn];
        if (next->kind == ROW_OPEN)
            run_row(self, next);
    }
    while ((next = take_deferred(self)) != NULL)
        run_row(self, next);
    return NULL;
}

/* --------------------------------------------------------------------- all of them -- */

int service_run(const host *self, const options *with, rows *all)
{
    service run = {.host = self, .with = with, .all = all};
    pthread_t *threads = calloc((size_t)with->threads, sizeof *threads);
    int64_t started = 0;

    run.later = calloc(all->count > 0 ? all->count : 1, sizeof *run.later);
    pthread_mutex_init(&run.mutex, NULL);
    while (threads != NULL && run.later != NULL && started < with->threads &&
           pthread_create(&threads[started], NULL, thread_main, &run) == 0)
        started++;
    for (int64_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    free(run.later);
    pthread_mutex_destroy(&run.mutex);
    return started > 0 ? 0 : -1;
}

/* ----------------------------------------------------------------- the final state -- */

static int note_state(void *context, const tl_view *view)
{
    row *of = context;
    const int is_contradicted = view->status == 'F' && view->conflict;
    const char *name = is_contradicted ? "in conflict" : tl_state_name(view->state);
    size_t at = 0;

    for (; name[at] != '\0' && at + 1 < sizeof of->final; at++)
        of->final[at] = name[at] == ' ' ? '_' : (char)tolower((unsigned char)name[at]);
    of->final[at] = '\0';
    if (is_contradicted)
        row_note(of, of->kind, "evidence says that it was paid after all: two operators decide");
    return 0;
}

static int is_final(const row *of)
{
    static const char *const finals[] = {"succeeded", "failed", "in_conflict", "parked", "none"};

    for (size_t i = 0; i < sizeof finals / sizeof finals[0]; i++)
        if (strcmp(of->final, finals[i]) == 0)
            return 1;
    return 0;
}

/* 0: there is no server to ask. */
static int look(const host *self, row *of)
{
    tl_key key = row_key(of);
    tl_client *client = NULL;
    tl_status status = host_client(self, key.cust_no, &client);

    if (status == TL_OK)
        status = tl_show(client, &key, TL_LANE_SYNC, note_state, of);
    if (status == TL_NOT_FOUND)
        strcpy(of->final, "none");
    return tl_status_class(status) != TL_CLASS_RETRY || self->fleet != NULL;
}

size_t service_settle(const host *self, const options *with, rows *all)
{
    int64_t end_ms = now_ms() + with->final_wait_ms;

    for (;;) {
        size_t open = 0;
        int answers = 1;

        for (size_t i = 0; i < all->count; i++) {
            row *of = &all->list[i];

            if (of->kind == ROW_BAD || is_final(of))
                continue;
            answers = answers && look(self, of);
            open += !is_final(of);
        }
        if (open == 0 || now_ms() >= end_ms)
            return open;
        pause_ms(PAUSE_MS);
    }
}

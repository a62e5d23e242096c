/*
 * A service that pays one payment after the other until a file is there, and measures what its
 * customers see: how long nothing was paid, how often they were refused, and for how long one of
 * them at most. 
 *
 *   runbook-load SETTINGS PREFIX STOP-FILE
 *
 * A customer who is refused comes again after 20 ms, with the same serial number.  So does one
 * whose answer was lost.  What is in process is left to the worker.
 */
#include "withdraw.h"

#include <tradelock/plugin.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define AGAIN_MS 20
#define PAUSE_MS 10 /* between two payments of a thread: the machine is shared */

static struct {
    tl_workflows *workflows;
    const char *prefix, *stop;
    atomic_uint next;
    pthread_mutex_t mutex;
    /* Under the mutex. */
    unsigned paid, refused, lost, left;
    long long last_ms, gap_ms, waited_ms;
    char words[200]; /* of the last refusal */
} load = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static long long now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void wait_ms(long ms)
{
    const struct timespec pause = {.tv_nsec = ms * 1000000};

    nanosleep(&pause, NULL);
}

static int is_over(void)
{
    return access(load.stop, F_OK) == 0;
}

static void print_log(void *context, const tl_log_line *said)
{
    struct timespec now;
    char at[16];

    (void)context;
    clock_gettime(CLOCK_REALTIME, &now);
    strftime(at, sizeof at, "%T", gmtime(&now.tv_sec));
    if (said->level >= TL_WARNING)
        fprintf(stderr, "%s.%03ld %s\n", at, now.tv_nsec / 1000000, said->message);
}

static void note_paid(long long since_ms)
{
    const long long at_ms = now_ms();

    pthread_mutex_lock(&load.mutex);
    load.paid++;
    if (load.last_ms != 0 && at_ms - load.last_ms > load.gap_ms)
        load.gap_ms = at_ms - load.last_ms;
    load.last_ms = at_ms;
    if (at_ms - since_ms > load.waited_ms)
        load.waited_ms = at_ms - since_ms;
    pthread_mutex_unlock(&load.mutex);
}

static void note_refused(tl_status status)
{
    pthread_mutex_lock(&load.mutex);
    if (status == TL_UNKNOWN)
        load.lost++;
    else
        load.refused++;
    snprintf(load.words, sizeof load.words, "%s: %s", tl_status_name(status), tl_error_message());
    pthread_mutex_unlock(&load.mutex);
}

/* TL_ASK_CHANNEL: a server that was promoted is not accepted yet, and what it has says nothing. */
static int may_come_again(tl_status status)
{
    return tl_status_class(status) == TL_CLASS_RETRY || status == TL_UNKNOWN ||
           status == TL_ASK_CHANNEL;
}

static void pay(unsigned number)
{
    tl_request request = TL_REQUEST_INIT;
    tl_answer answer = TL_ANSWER_INIT;
    const withdraw_order order = {1, "EUR", "DE89370400440532013000"};
    char serial[64], *payload = withdraw_order_write(&order);
    long long refused_ms = 0;
    tl_status status;

    snprintf(serial, sizeof serial, "%s-%u", load.prefix, number);
    request.key = (tl_key){serial, "HOUSE", WITHDRAW_OP};
    request.payload = payload;
    request.payload_size = payload != NULL ? strlen(payload) : 0;
    request.amount_minor = order.amount_minor;
    request.currency = order.currency;
    do {
        tl_answer_clear(&answer);
        status = tl_workflow_run(load.workflows, &request, &answer);
        if (status == TL_UNKNOWN && answer.run != NULL)
            status = tl_workflow_settle(load.workflows, &answer);
        if (!may_come_again(status))
            break;
        if (refused_ms == 0)
            refused_ms = now_ms();
        note_refused(status);
        wait_ms(AGAIN_MS);
    } while (!is_over());
    if (status == TL_SUCCEEDED || status == TL_ALREADY_DONE) {
        note_paid(refused_ms != 0 ? refused_ms : now_ms());
    } else {
        pthread_mutex_lock(&load.mutex);
        load.left++;
        pthread_mutex_unlock(&load.mutex);
        fprintf(stderr, "load: %s: %s: %s\n", serial, tl_status_name(status), tl_error_message());
    }
    tl_answer_clear(&answer);
    free(payload);
}

static void *pay_on(void *unused)
{
    while (!is_over()) {
        pay(atomic_fetch_add(&load.next, 1));
        wait_ms(PAUSE_MS);
    }
    return unused;
}

int main(int argc, char **argv)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    pthread_t threads[THREADS];
    tl_client *client = NULL;
    void *state = NULL;
    tl_status status;

    if (argc != 4) {
        fputs("usage: runbook-load SETTINGS PREFIX STOP-FILE\n", stderr);
        return 2;
    }
    load.prefix = argv[2];
    load.stop = argv[3];
    options.config_file = argv[1];
    options.program = "load";
    options.operations = WITHDRAW_OP;
    options.log = print_log;
    status = tl_client_open(&client, &options);
    if (status == TL_OK)
        status = tl_workflows_new(&load.workflows, client);
    if (status == TL_OK)
        status = tradelock_plugin.open(client, load.workflows, argv[1], &state);
    if (status != TL_OK) {
        fprintf(stderr, "load: %s\n", tl_error_message());
        return 1;
    }
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, pay_on, NULL) != 0)
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%s: paid %u, longest without a payment %lld ms, refused %u answers, one customer for "
           "%lld ms at most, lost answers %u, left to the worker %u\n",
           load.prefix, load.paid, load.gap_ms, load.refused, load.waited_ms, load.lost, load.left);
    if (load.words[0] != '\0')
        printf("%s: the last refusal: %s\n", load.prefix, load.words);
    tl_workflows_free(load.workflows);
    tradelock_plugin.close(state);
    tl_client_close(client);
    return 0;
}

/* The withdrawals of `books` from an event loop: one thread has many of them under way. */
#include "books.h"
#include "client.h"

#include <tradelock/submit.h>
#include <tradelock/workflow.h>

#include <poll.h>
#include <stddef.h>
#include <stdlib.h>

#define POLL_MS 60000

struct payment {
    tl_answer answer;
    char serial[64], cust[32];
    int rich;
};

static tl_workflows *workflows;
static books_run run;
static struct payment *payments; /* bench.group of them */
static unsigned under_way;
static uint64_t number;

static int open_loop(const bench_options *options)
{
    tl_workflow workflow = TL_WORKFLOW_INIT;

    if (options->callers != 1)
        bench_fail("the loop is one caller; --group says how many payments are under way");
    books_begin(&run, options);
    client_open(0);
    books_declare(&workflow);
    payments = calloc(options->group, sizeof *payments);
    if (payments == NULL || tl_workflows_new(&workflows, bench_client) != TL_OK ||
        tl_workflow_register(workflows, &workflow) != TL_OK)
        bench_fail("%s", tl_error_message());
    return 0;
}

static void submit(struct payment *p)
{
    const tl_answer empty = TL_ANSWER_INIT;
    tl_request request = TL_REQUEST_INIT;

    p->answer = empty;
    p->rich = books_key(0, number++, p->serial, p->cust);
    request.key = (tl_key){p->serial, p->cust, "WITHDRAW"};
    request.payload = "100.00 EUR";
    request.payload_size = 10;
    request.amount_minor = BOOKS_AMOUNT;
    request.currency = BOOKS_CURRENCY;
    if (tl_workflow_submit(workflows, &request, &p->answer, p) != TL_OK)
        bench_fail("submit: %s", tl_error_message());
}

static void send_it(struct payment *p)
{
    const tl_attempt *attempt;
    tl_reply *reply;

    if (tl_workflow_send_begin(workflows, &p->answer, &attempt, &reply) != TL_OK ||
        tl_workflow_send_end(workflows, &p->answer, TL_EXECUTE_SUCCEEDED) != TL_OK)
        bench_fail("send: %s", tl_error_message());
}

/* 1: the payment is over. */
static int go_on(const tl_completion *done)
{
    struct payment *p = done->context;

    if (done->status == TL_GRANTED) {
        send_it(p);
        return 0;
    }
    if (done->status != (p->rich ? TL_SUCCEEDED : TL_REFUSED))
        bench_fail("run: %s %s", tl_status_name(done->status), tl_answer_sentence(&p->answer));
    if (p->rich)
        atomic_fetch_add(&run.paid, 1);
    else
        bench_count_refused();
    tl_answer_clear(&p->answer);
    return 1;
}

/* Until some are over; *over: which.  How many. */
static unsigned take(struct payment **over, unsigned most)
{
    struct pollfd readable = {.fd = tl_client_completed_fd(bench_client), .events = POLLIN};
    tl_completion done[64];
    unsigned count = 0;

    while (count == 0) {
        const size_t taken = tl_client_completed(bench_client, done, most < 64 ? most : 64);

        if (taken == 0 && poll(&readable, 1, POLL_MS) != 1)
            bench_fail("nothing is completed any more");
        for (size_t i = 0; i < taken; i++)
            if (go_on(&done[i]))
                over[count++] = done[i].context;
    }
    return count;
}

static int cycle(unsigned caller, uint64_t number_of)
{
    struct payment *over[64];
    unsigned count;

    (void)caller;
    (void)number_of;
    while (under_way < bench.group)
        submit(&payments[under_way++]);
    count = take(over, 64);
    for (unsigned i = 0; i < count; i++)
        submit(over[i]);
    return (int)count;
}

static void check(void)
{
    struct payment *over[64];

    while (under_way > 0)
        under_way -= take(over, 64);
    books_check(&run);
}

static void close_loop(void)
{
    free(payments);
    tl_workflows_free(workflows);
    tl_client_close(bench_client);
}

const contestant contestant_books_loop = {
    .name = "books-loop",
    .what = "the same from one thread with an event loop; --group: how many are under way",
    .open = open_loop,
    .cycle = cycle,
    .close = close_loop,
    .after = check};

/*
 * One caller who does a cycle, or a whole workflow, now with tradelock and now by hand, at
 * random.  The mood of the machine changes within seconds, by more than the two differ; this
 * way both meet it, and the caches are cold for both.
 */
#include "bench.h"

#include <stdlib.h>

enum { LIBRARY, BY_HAND, SIDES };
static const contestant *sides[SIDES];

static int open_both(const bench_options *options, const contestant *library,
                     const contestant *hand)
{
    bench_options by_hand = *options;

    sides[LIBRARY] = library;
    sides[BY_HAND] = hand;
    /* The janitor of tradelock's client does not look through what is written by hand. */
    if (options->hand_database != NULL)
        by_hand.database = options->hand_database;
    sides[LIBRARY]->open(options);
    sides[BY_HAND]->open(&by_hand);
    return 0;
}

static int open_cycles(const bench_options *options)
{
    return open_both(options, &contestant_tradelock, &contestant_handwritten);
}

static int open_workflows(const bench_options *options)
{
    return open_both(options, &contestant_workflow, &contestant_workflow_hand);
}

static int open_books(const bench_options *options)
{
    return open_both(options, &contestant_books, &contestant_books_hand);
}

static void check_both(void)
{
    for (int i = 0; i < SIDES; i++)
        sides[i]->after();
}

static void close_both(void)
{
    for (int i = 0; i < SIDES; i++)
        sides[i]->close();
}

/* So many cycles, or for so long. */
static void run_cycles(uint64_t cycles, int64_t run_ms, double *took_us, double *done)
{
    static unsigned seed = 1;
    static uint64_t number;
    const uint64_t until_us = bench_now_us() + (uint64_t)run_ms * 1000;

    for (int i = 0; i < SIDES; i++)
        took_us[i] = done[i] = 0;
    for (uint64_t i = 0; cycles > 0 ? i < cycles : bench_now_us() < until_us; i++) {
        const int side = rand_r(&seed) / 8 % SIDES;
        const uint64_t start_us = bench_now_us();

        done[side] += sides[side]->cycle(0, number++);
        took_us[side] += (double)(bench_now_us() - start_us);
    }
}

static void measure(void)
{
    static const char *const names[SIDES] = {"tradelock_per_second", "handwritten_per_second"};
    double took_us[SIDES], done[SIDES];

    if (bench.cycles == 0)
        run_cycles(0, bench.warm_up_ms, took_us, done);
    run_cycles((uint64_t)bench.cycles, bench.run_ms, took_us, done);
    for (int i = 0; i < SIDES; i++) {
        if (done[i] < 1)
            bench_fail("%s had no cycle", sides[i]->name);
        bench_note(names[i], done[i] / took_us[i] * 1e6);
    }
    bench_note("done", done[LIBRARY] + done[BY_HAND]);
    bench_note("ratio", (done[LIBRARY] / took_us[LIBRARY]) / (done[BY_HAND] / took_us[BY_HAND]));
}

const contestant contestant_in_turn = {
    .name = "in-turn",
    .what = "one caller, a cycle of tradelock or a hand-written one at random",
    .open = open_cycles,
    .measure = measure,
    .close = close_both};

const contestant contestant_workflow_in_turn = {
    .name = "workflow-in-turn",
    .what = "the same with a workflow and its transactions hand-written",
    .open = open_workflows,
    .measure = measure,
    .close = close_both};

const contestant contestant_books_in_turn = {
    .name = "books-in-turn",
    .what = "the same with declared books and their transactions hand-written",
    .open = open_books,
    .measure = measure,
    .close = close_both,
    .after = check_both};

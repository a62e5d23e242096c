/*
 * A house with one operation, whose channel is the test's own callbacks, and on which operators
 * decide: they limit it, or break it.  Several processes pay through it at once.
 */
#ifndef TESTS_WORKFLOWS_GATE_H
#define TESTS_WORKFLOWS_GATE_H

#include "house.h"

#include "support/crew.h"

#include <stdatomic.h>

#define GATE_OP "PAYOUT"
#define GATE_PROCESSES 3

/* What the channel sees, of all processes. */
struct gate_shared {
    atomic_int stop, inside, most, mood;
    atomic_int hangs, hung; /* the process whose calls do not come back; how many did not */
    atomic_long serial, sends, queries, paid[GATE_PROCESSES], refused[GATE_PROCESSES];
};

extern struct gate {
    house house;
    tl_workflow workflow; /* what each process registers */
    struct gate_shared *shared;
    int callers;         /* of each process */
    int hang_most;       /* so many calls hang, of the process that does */
    useconds_t takes_us; /* a call; 10000 at the begin of each test */
} gate;

/* The channel of the tests of a file. */
void gate_of(const char *channel, tl_execute_fn execute, tl_query_fn query);

/* Set-ups: with beats; one in which no hold ends on a busy machine; one in which a process is soon
 * found dead; one in which no beat comes. */
int gate_open(void **state);
int gate_open_patient(void **state);
int gate_open_mortal(void **state);
int gate_open_silent(void **state);
int gate_close(void **state);

/* This process opens its client, and registers; house_leave() ends that, before a fork. */
void gate_come_back(void);
/* The same in a child, which ends with its parent. */
void gate_come_as_child(void);

/* What a callback does: it counts itself, takes its time, and may hang. */
void gate_come_in(void);

/* When this thread asked last. */
extern _Thread_local int64_t gate_asked_us;
int64_t gate_now_us(void);
/* One payment.  again_ms: when to come again; or NULL. */
tl_status gate_run(const char *serial, int64_t *again_ms);
void gate_expect(const char *serial, tl_status expected);
void gate_expect_many(const char *prefix, int count, tl_status expected);
/* A process whose callers pay until they are told to stop.  Each trade is paid or in doubt. */
pid_t gate_serve(int process);

/* Until this process has told and heard: ten beats. */
void gate_await_beats(void);
/* How many statements a hundred payments take. */
uint64_t gate_cost(const char *prefix);

#endif

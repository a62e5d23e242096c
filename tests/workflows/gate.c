#include "gate.h"

#include "support/theme.h"

#include <signal.h>
#include <sys/prctl.h>

#define SETTINGS(beat, session, holds)                                                             \
    "site=test\nbeat_ms=" beat "\nsession_ms=" session "\n" holds                                  \
    "deadline_ms=600s\nschedule=50ms,100ms\nattempts=3\ngrace_ms=200ms\nclock_margin_ms=50ms\n"
#define SHORT "max_hold_ms=4s\nexecute_ms=2s\ncommit_ms=1s\n"

struct gate gate;
_Thread_local int64_t gate_asked_us;

/* ------------------------------------------------------------------- open and close -- */

void gate_of(const char *channel, tl_execute_fn execute, tl_query_fn query)
{
    const tl_workflow empty = TL_WORKFLOW_INIT;

    gate.workflow = empty;
    gate.workflow.op_code = GATE_OP;
    gate.workflow.channel.name = channel;
    gate.workflow.channel.idempotent = 1;
    gate.workflow.channel.can_query = query != NULL;
    gate.workflow.execute = execute;
    gate.workflow.query = query;
}

static int open_with(const char *settings)
{
    gate.shared = crew_share(sizeof *gate.shared);
    gate.takes_us = 10000;
    house_open_bare(&gate.house, settings, NULL);
    CREW_STATUS(tl_workflow_register(gate.house.workflows, &gate.workflow), TL_OK);
    return 0;
}

int gate_open(void **state)
{
    (void)state;
    return open_with(SETTINGS("100ms", "30s", SHORT));
}

int gate_open_patient(void **state)
{
    (void)state;
    return open_with(SETTINGS("100ms", "1m", "max_hold_ms=1m\nexecute_ms=20s\ncommit_ms=10s\n"));
}

int gate_open_mortal(void **state)
{
    (void)state;
    return open_with(SETTINGS("100ms", "2s", SHORT));
}

int gate_open_silent(void **state)
{
    (void)state;
    return open_with(SETTINGS("1m", "10m", SHORT));
}

int gate_close(void **state)
{
    (void)state;
    house_close(&gate.house);
    crew_unshare(gate.shared, sizeof *gate.shared);
    return 0;
}

void gate_come_back(void)
{
    house_reopen(&gate.house);
    CREW_STATUS(tl_workflow_register(gate.house.workflows, &gate.workflow), TL_OK);
}

void gate_come_as_child(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
    gate_come_back();
}

/* --------------------------------------------------------------------- the channel -- */

int64_t gate_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void gate_come_in(void)
{
    struct gate_shared *shared = gate.shared;
    const int inside = atomic_fetch_add(&shared->inside, 1) + 1;
    int most = atomic_load(&shared->most);

    while (inside > most && !atomic_compare_exchange_weak(&shared->most, &most, inside))
        continue;
    usleep(gate.takes_us);
    if (atomic_load(&shared->hangs) == getpid() &&
        atomic_fetch_add(&shared->hung, 1) < gate.hang_most)
        while (atomic_load(&shared->hangs) == getpid())
            usleep(1000);
    atomic_fetch_sub(&shared->inside, 1);
}

/* ----------------------------------------------------------------- who pays through it -- */

tl_status gate_run(const char *serial, int64_t *again_ms)
{
    tl_answer answer = TL_ANSWER_INIT;
    tl_request request = TL_REQUEST_INIT;
    tl_status status;

    request.key = (tl_key){serial, "C1", GATE_OP};
    request.payload = "x";
    request.payload_size = 1;
    gate_asked_us = gate_now_us();
    status = tl_workflow_run(gate.house.workflows, &request, &answer);
    if (again_ms != NULL)
        *again_ms = answer.next_look_ms;
    tl_answer_clear(&answer);
    return status;
}

void gate_expect(const char *serial, tl_status expected)
{
    assert_status(gate_run(serial, NULL), expected);
}

void gate_expect_many(const char *prefix, int count, tl_status expected)
{
    for (int i = 0; i < count; i++)
        gate_expect(text_of("%s%d", prefix, i).is, expected);
}

static void pay_on(void *context, int caller)
{
    const int process = *(const int *)context;
    struct gate_shared *shared = gate.shared;

    (void)caller;
    while (!atomic_load(&shared->stop)) {
        int64_t again_ms = 0;
        const tl_status status =
            gate_run(text_of("G%ld", atomic_fetch_add(&shared->serial, 1)).is, &again_ms);

        if (status == TL_OVERLOADED) {
            CREW_CHECK(again_ms > 0);
            atomic_fetch_add(&shared->refused[process], 1);
            usleep(3000);
        } else if (gate.workflow.query != NULL && status == TL_IN_DOUBT) {
            continue;
        } else {
            CREW_STATUS(status, TL_SUCCEEDED);
            atomic_fetch_add(&shared->paid[process], 1);
        }
    }
}

static void serve(void *context, int process)
{
    (void)context;
    gate_come_as_child();
    crew_threads(gate.callers, pay_on, &process);
    house_leave(&gate.house);
}

pid_t gate_serve(int process)
{
    return crew_fork(serve, NULL, process);
}

/* -------------------------------------------------------------------- one process -- */

static tl_stats stats(void)
{
    tl_stats now = {.version = TL_STATS_VERSION};

    assert_status(tl_client_stats(gate.house.client, &now), TL_OK);
    return now;
}

void gate_await_beats(void)
{
    const uint64_t before = stats().beats;

    AWAIT_WHILE(stats().beats < before + 10);
}

uint64_t gate_cost(const char *prefix)
{
    const uint64_t before = stats().statements;

    gate_expect_many(prefix, 100, TL_SUCCEEDED);
    return stats().statements - before;
}

/*
 * The retry worker: one thread that claims, and N that compensate.  Touches trades through their
 * locks, and its own threads.
 *
 * It claims as many trades as there are free threads, and as many more as these will be done with
 * in the next moment (job_queue.h).  Those wait in a queue; one that waits for long is given back.
 * A thread hands its ending over, if no callback writes it (ending.h), and takes the next
 * trade; what is given up then, as when the books refused it, returns to a thread.
 *
 * Trades during whose last hold the holder died (suspects) are claimed one at a time, one after the
 * other, and only while nothing else is in flight: a death then accuses this one trade.  If
 * suspects have waited for long, the worker claims nothing until nothing is.  While an attempt does
 * not return although its hold is over, the worker serves no suspects: they would take one thread
 * after the other.  After a death all that its worker held are suspects, also what was claimed
 * ahead: that an attempt began is not on the row, since writing it would cost a commit for each.
 */
#include "compensate.h"
#include "job_queue.h"
#include "memory.h"
#include "overdue.h"
#include "schedule.h"

#include <tradelock/lane.h>
#include <tradelock/layer.h>
#include <tradelock/test_hooks.h>
#include <tradelock/worker.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS_DEFAULT 4u
#define IDLE_DEFAULT_MS 1000
/* Under steady load the worker lets all threads become free this long after it last served
 * suspects, and serves no more of them after as long a time: they may be slow. */
#define SUSPECTS_EVERY_MS 5000
/* If due work could not be claimed, since somebody else claims it: look again after this time. */
#define CONTENDED_MS 20
#define ERROR_MOST_MS 1000
/* A round may wait for a suspect as long as this one may be held, and a moment besides. */
#define ROUND_MARGIN_MS 10000
/* So many endings, and one for each thread, are handed over at most; then a thread waits for its
 * own.  After a death all of them are suspects. */
#define HANDED_MOST TL_CLAIM_MAX

/* Until the worker is stopped, few are busy, or few are in flight. */
enum until { UNTIL_STOP, UNTIL_FREE, UNTIL_ALONE };

enum stage { WORKS, STOPPING, OVER };

struct tl_worker {
    /* Fixed after the start. */
    tl_workflows *workflows;
    tl_client *client;
    pid_t process;
    int64_t idle_max_ms, unclaimed_ms;
    pthread_t claimer;
    int claimer_started;

    pthread_mutex_t mutex;
    pthread_cond_t work;    /* a job was queued, or closing: runners */
    pthread_cond_t changed; /* a job was done, or a stop: claimer, waiters */
    /* Under the mutex. */
    pthread_t runners[TL_CLAIM_MAX];
    unsigned threads, runners_started;
    job_queue queue;
    enum until until; /* the claimer sleeps, */
    unsigned awaited; /* and how many are not in its way */
    enum stage stage;
    tl_status status; /* why the worker is over */
    int64_t round_ms; /* when a round of claiming ended last, or the first began */
    int claims_fail;  /* the last round ended with an error */
    tl_worker_counts counts;

    /* The claimer's own. */
    unsigned turn; /* which operation comes first; they take turns */
    int64_t error_delay_ms, error_since_ms, suspects_ms, overdue_ms;
};

/* ------------------------------------------------------------------ the runners -- */

/* Needs: worker->mutex held. */
static void count_ending(tl_worker_counts *counts, tl_status status)
{
    switch (status) {
    case TL_SUCCEEDED:
        counts->succeeded++;
        break;
    case TL_FAILED:
        counts->failed++;
        break;
    case TL_IN_DOUBT:
    case TL_QUEUED:
        counts->waiting++;
        break;
    case TL_PARKED:
        counts->parked++;
        break;
    case TL_LOST:
        counts->lost++;
        break;
    default:
        counts->unknown++;
    }
}

/* An attempt goes on under the trade's log UUID, which the claimed row tells. */
static void begin_work(const tl_lock *lock)
{
    if (tl_work_adopt(tl_lock_view(lock)->log_no) != TL_OK)
        (void)tl_work_begin();
}

static void unlock(tl_worker *const *worker)
{
    pthread_mutex_unlock(&(*worker)->mutex);
}

/* Holds worker->mutex until the end of the function. */
#define LOCKED(worker)                                                                             \
    __attribute__((cleanup(unlock))) tl_worker *const locked = (worker);                           \
    pthread_mutex_lock(&locked->mutex)

static int may_hand_over(tl_worker *worker)
{
    LOCKED(worker);
    return worker->queue.in_flight < worker->queue.busy + HANDED_MOST;
}

static unsigned room_for(tl_worker *worker, const workflow *of)
{
    LOCKED(worker);
    return job_queue_room(&worker->queue, of, worker->threads);
}

static int is_in_flight(tl_worker *worker, const workflow *of)
{
    LOCKED(worker);
    return job_queue_has(&worker->queue, of);
}

/* Whether the operation has all the threads that are for it. */
static int is_held_back(tl_worker *worker, const workflow *of)
{
    LOCKED(worker);
    return job_queue_is_held_back(&worker->queue, of, worker->threads);
}

static int64_t longest_ms(tl_worker *worker)
{
    LOCKED(worker);
    return job_queue_longest_ms(&worker->queue);
}

static unsigned flying(tl_worker *worker)
{
    LOCKED(worker);
    return worker->queue.in_flight;
}

static unsigned count_busy(tl_worker *worker)
{
    LOCKED(worker);
    return worker->queue.busy;
}

static int something_hangs(tl_worker *worker)
{
    LOCKED(worker);
    return worker->queue.hung > 0;
}

static int is_stopping(tl_worker *worker)
{
    LOCKED(worker);
    return worker->stage != WORKS;
}

/* Whether the claimer has to sleep on.  Needs: worker->mutex held. */
static int is_awaited(const tl_worker *worker)
{
    if (worker->stage != WORKS)
        return 0;
    return worker->until == UNTIL_STOP ||
           (worker->until == UNTIL_ALONE ? worker->queue.in_flight : worker->queue.busy) >
               worker->awaited;
}

/* Needs: worker->mutex held. */
static void tell_change(tl_worker *worker)
{
    if (!is_awaited(worker))
        pthread_cond_broadcast(&worker->changed);
}

/* On any thread.  Once nothing is in flight the worker may be freed. */
static void job_over(void *context, tl_status status)
{
    job *over = context;
    tl_worker *worker = over->worker;

    tl_lock_free(over->lock);
    LOCKED(worker);
    count_ending(&worker->counts, status);
    worker->counts.queries += over->calls.queries;
    worker->counts.cancels += over->calls.cancels;
    worker->counts.sends += over->calls.sends;
    job_queue_over(&worker->queue, over);
    tell_change(worker);
}

/* Called when what was handed over is given up.  A runner goes on with it, so that the thread of
 * later.c serves others. */
static void job_returns(void *context, later_item *item)
{
    job *returned = context;
    tl_worker *worker = returned->worker;

    LOCKED(worker);
    job_queue_return(&worker->queue, returned, item);
    pthread_cond_signal(&worker->work);
}

/* The thread is done with a job that it began then. */
static void job_ran(tl_worker *worker, const workflow *of, int64_t since_us)
{
    LOCKED(worker);
    job_queue_ran(&worker->queue, of, schedule_now_us() - since_us);
    tell_change(worker);
}

static void give_back(job *unbegun)
{
    tl_status status;

    begin_work(unbegun->lock);
    status = compensate_give_back(unbegun->lock);
    tl_work_end(0);
    job_over(unbegun, status);
}

static void attempt(job *begun)
{
    tl_worker *worker = begun->worker;
    compensate_call call = {.client = worker->client,
                            .lock = begun->lock,
                            .of = begun->of,
                            .calls = &begun->calls,
                            .over = job_over,
                            .hand_back = job_returns,
                            .context = begun};

    if (may_hand_over(worker))
        call.all = &worker->workflows->later;
    begin_work(begun->lock);
    compensate(&call);
    tl_work_end(0);
}

/* A job that is late is given back: half of its hold is over, as in a process that was stopped, and
 * what is left might not do.  The claim's own answer may have come late, so the queue's time says
 * too little.  The trade may be over before the thread is back. */
static void run_job(job *next)
{
    tl_worker *worker = next->worker;
    const workflow *of = next->of;
    const int64_t since_us = schedule_now_us();

    if (next->item != NULL)
        next->item->run(next->item);
    else if (tl_lock_remaining_ms(next->lock) < of->given.policy.max_hold_ms / 2)
        give_back(next);
    else
        attempt(next);
    job_ran(worker, of, since_us);
}

/* NULL: there will be no more. */
static job *next_job(tl_worker *worker)
{
    job *next;

    LOCKED(worker);
    while ((next = job_queue_take(&worker->queue, worker->threads)) == NULL &&
           worker->stage != OVER)
        pthread_cond_wait(&worker->work, &worker->mutex);
    return next;
}

static void *runner_main(void *argument)
{
    job *next;

    while ((next = next_job(argument)) != NULL)
        run_job(next);
    return NULL;
}

/* ------------------------------------------------------------------ the claimer -- */

static void hand_out(tl_worker *worker, const workflow *of, tl_lock **locks, size_t count)
{
    const int64_t now_ms = schedule_now_ms();

    LOCKED(worker);
    for (size_t i = 0; i < count; i++)
        job_queue_add(&worker->queue, of, locks[i], now_ms)->worker = worker;
    worker->counts.claimed += count;
    pthread_cond_broadcast(&worker->work);
}

/* Claims work of one operation, TL_CLAIM_MAX trades at most, and adds to
 * *claimed.  What is due for a channel that is paused waits. */
static tl_status claim_operation(tl_worker *worker, const workflow *of, int suspects, size_t most,
                                 size_t *claimed)
{
    tl_claim_options options = TL_CLAIM_OPTIONS_INIT;
    tl_lock *locks[TL_CLAIM_MAX];
    size_t count = workflow_may_claim(of, most);
    tl_status status;

    /* Of a channel with an open breaker one at a time. */
    if (count == 0 || (workflow_may_claim(of, 2) == 1 && is_in_flight(worker, of)))
        return TL_OK;
    options.op_code = of->op_code;
    options.max_hold_ms = of->given.policy.max_hold_ms;
    options.suspects = suspects;
    status = tl_claim_due(worker->client, &options, locks, &count);
    if (status != TL_OK)
        return status;
    hand_out(worker, of, locks, count);
    *claimed += count;
    return TL_OK;
}

static unsigned count_operations(tl_worker *worker)
{
    unsigned count = 0;

    while (workflows_at(worker->workflows, count) != NULL)
        count++;
    return count;
}

/* Claims one suspect, or as many other trades as there is room for, of all operations, beginning
 * with another operation each time. */
static tl_status claim(tl_worker *worker, int suspects, size_t *claimed)
{
    const size_t before = *claimed;
    unsigned operations = count_operations(worker);
    tl_status status = TL_OK;

    worker->turn++;
    for (unsigned i = 0; i < operations && status == TL_OK; i++) {
        const workflow *of = workflows_at(worker->workflows, (worker->turn + i) % operations);
        unsigned most = suspects ? *claimed == before : room_for(worker, of);

        if (most > 0)
            status = claim_operation(worker, of, suspects, most, claimed);
    }
    return status;
}

/* With how many busy jobs a claim is worth it: when a thread is free; or, if jobs of some
 * operation are short, when nothing waits for one. */
static unsigned begin_of(tl_worker *worker)
{
    const workflow *of;
    unsigned quick = 0; /* of any */

    LOCKED(worker);
    for (unsigned i = 0; (of = workflows_at(worker->workflows, i)) != NULL; i++) {
        job_queue_know(&worker->queue, of);
        quick |= (unsigned)job_queue_is_quick(&worker->queue, of, worker->threads);
    }
    return worker->threads - 1 + quick;
}

/* The claimer waits for this, for a stop, or until the time is over. */
static void sleep_until(tl_worker *worker, enum until until, unsigned most, int64_t wait_ms)
{
    const int64_t end_ms = schedule_now_ms() + wait_ms;
    int64_t left_ms;

    LOCKED(worker);
    worker->until = until;
    worker->awaited = most;
    while (is_awaited(worker) && (left_ms = end_ms - schedule_now_ms()) > 0)
        schedule_wait(&worker->changed, &worker->mutex, left_ms);
}

/* How long to sleep: until the next row is due, at most idle_max_ms, with jitter.  What is due of
 * an operation that waits for its share of the threads is looked for when one of them ends. */
static tl_status next_look_ms(tl_worker *worker, int64_t *wait_ms)
{
    int64_t least_ms = worker->idle_max_ms;
    tl_status status = TL_OK;
    const workflow *of;

    for (unsigned i = 0; (of = workflows_at(worker->workflows, i)) != NULL; i++) {
        int64_t due_ms;

        if (workflow_may_claim(of, 2) < 2 || is_held_back(worker, of))
            continue;
        status = tl_next_due_ms(worker->client, of->op_code, &due_ms);
        if (status != TL_OK)
            return status;
        if (due_ms >= 0 && due_ms < least_ms)
            least_ms = due_ms;
    }
    if (least_ms < CONTENDED_MS)
        least_ms = CONTENDED_MS;
    *wait_ms = schedule_jitter_ms(least_ms, 10, schedule_random());
    return TL_OK;
}

static job *take_stuck(tl_worker *worker)
{
    LOCKED(worker);
    return job_queue_take_stuck(&worker->queue, schedule_now_ms());
}

/* What waits for stuck threads is given back, due at once: another worker may be free. */
static void give_back_stuck(tl_worker *worker)
{
    job *stuck;

    while ((stuck = take_stuck(worker)) != NULL)
        give_back(stuck);
}

static unsigned hang(tl_worker *worker)
{
    LOCKED(worker);
    return job_queue_hang(&worker->queue);
}

static void give_up_waiting(tl_worker *worker)
{
    const unsigned hung = hang(worker);

    if (hung > 0)
        tl_client_log(worker->client, TL_ALARM, NULL, 0,
                      "%u attempts do not return although their hold is over: until they do, this "
                      "worker serves no trade whose last holder died",
                      hung);
}

/* Waits for a moment until nothing is in flight.  0: what was in flight since begin_ms hangs, and
 * is awaited no more. */
static int wait_on(tl_worker *worker, int64_t begin_ms)
{
    const int64_t longest = longest_ms(worker);

    if (longest > 0 && schedule_now_ms() - begin_ms > longest) {
        give_up_waiting(worker);
        return 0;
    }
    sleep_until(worker, UNTIL_ALONE, 0, JOB_STUCK_MS);
    give_back_stuck(worker);
    return 1;
}

/* Waits until nothing is in flight, or the worker is stopped. */
static void wait_until_alone(tl_worker *worker)
{
    const int64_t begin_ms = schedule_now_ms();

    while (flying(worker) > 0 && !is_stopping(worker) && wait_on(worker, begin_ms))
        continue;
}

static tl_status look_for_suspects(tl_worker *worker, int *due)
{
    tl_status status = TL_OK;
    const workflow *of;

    *due = 0;
    for (unsigned i = 0;
         status == TL_OK && !*due && (of = workflows_at(worker->workflows, i)) != NULL; i++)
        if (workflow_may_claim(of, 1) > 0)
            status = tl_suspects_due(worker->client, of->op_code, due);
    return status;
}

/* Under steady load the threads are never free by themselves.  Another worker may serve the
 * suspects meanwhile. */
static tl_status make_room_for_suspects(tl_worker *worker)
{
    const int64_t begin_ms = schedule_now_ms();
    tl_status status = TL_OK;
    int due = 1;

    if (begin_ms - worker->suspects_ms < SUSPECTS_EVERY_MS || something_hangs(worker))
        return TL_OK;
    worker->suspects_ms = begin_ms;
    while (status == TL_OK && flying(worker) > 0 && !is_stopping(worker)) {
        status = look_for_suspects(worker, &due);
        if (status != TL_OK || !due || !wait_on(worker, begin_ms))
            break;
    }
    return status;
}

/* Suspects run alone: the first is claimed when nothing is in flight, each other one when the one
 * before it is over. */
static tl_status serve_suspects(tl_worker *worker, size_t *claimed)
{
    tl_status status = flying(worker) > 0 ? make_room_for_suspects(worker) : TL_OK;
    const int64_t begin_ms = schedule_now_ms();
    size_t before = *claimed;

    while (status == TL_OK && flying(worker) == 0 && !is_stopping(worker) &&
           schedule_now_ms() - begin_ms < SUSPECTS_EVERY_MS) {
        status = claim(worker, 1, claimed);
        worker->suspects_ms = schedule_now_ms();
        if (*claimed == before)
            break;
        before = *claimed;
        wait_until_alone(worker);
    }
    return status;
}

/* There is nothing to claim: waits for a stop, or until the time is over.  If an operation waits
 * for its share of the threads, the end of any attempt ends the wait, and what waits in vain is
 * given back. */
static void wait_for_work(tl_worker *worker, int64_t wait_ms)
{
    const unsigned busy = count_busy(worker);
    const workflow *of;
    int held_back = 0;

    for (unsigned i = 0; (of = workflows_at(worker->workflows, i)) != NULL; i++)
        held_back |= is_held_back(worker, of);
    if (!held_back || busy == 0) {
        sleep_until(worker, UNTIL_STOP, 0, wait_ms);
        return;
    }
    sleep_until(worker, UNTIL_FREE, busy - 1, wait_ms < JOB_STUCK_MS ? wait_ms : JOB_STUCK_MS);
    give_back_stuck(worker);
}

/* One round of claiming; *wait_ms: how long there is nothing to do.  *is_round: it was one; it is
 * none while there is no room, so that threads which all hang are heard of. */
static tl_status claim_round(tl_worker *worker, int64_t *wait_ms, int *is_round)
{
    const unsigned begin = begin_of(worker);
    size_t claimed = 0;
    tl_status status;

    *wait_ms = 0;
    *is_round = 0;
    if (count_busy(worker) > begin) {
        sleep_until(worker, UNTIL_FREE, begin,
                    worker->idle_max_ms < JOB_STUCK_MS ? worker->idle_max_ms : JOB_STUCK_MS);
        give_back_stuck(worker);
        return TL_OK;
    }
    *is_round = 1;
    status = serve_suspects(worker, &claimed);
    if (status != TL_OK || is_stopping(worker))
        return status;
    status = claim(worker, 0, &claimed);
    if (status == TL_OK && claimed == 0)
        status = next_look_ms(worker, wait_ms);
    /* Suspects may be due that are not served now. */
    if (*wait_ms > 0 && something_hangs(worker))
        *wait_ms = worker->idle_max_ms;
    return status;
}

static void look_for_overdue(tl_worker *worker)
{
    int64_t now_ms = schedule_now_ms();

    if (now_ms - worker->overdue_ms < worker->unclaimed_ms)
        return;
    worker->overdue_ms = now_ms;
    overdue_alarm(worker->workflows, worker->unclaimed_ms);
}

static void mention_claims_again(tl_worker *worker)
{
    if (worker->error_delay_ms != 0)
        tl_client_log(worker->client, TL_WARNING, NULL, 0,
                      "due work is claimed again, after %" PRId64 " s",
                      (schedule_now_ms() - worker->error_since_ms + 500) / 1000);
    worker->error_delay_ms = 0;
}

/* Pauses after an error, since any error may pass.  It is told once. */
static void pause_after(tl_worker *worker, tl_status status)
{
    const int is_first = worker->error_delay_ms == 0;
    int64_t delay_ms = schedule_backoff_ms(&worker->error_delay_ms, ERROR_MOST_MS);

    if (is_first) {
        worker->error_since_ms = schedule_now_ms();
        tl_client_log(worker->client, TL_WARNING, NULL, 0,
                      "claiming due work fails since now: %s: %s", tl_status_name(status),
                      tl_error_message());
    }
    sleep_until(worker, UNTIL_STOP, 0, delay_ms);
}

static void note_round(tl_worker *worker, tl_status status, int is_round)
{
    LOCKED(worker);
    worker->claims_fail = status != TL_OK;
    if (status == TL_OK && is_round)
        worker->round_ms = schedule_now_ms();
}

static tl_status claim_until_stopped(tl_worker *worker)
{
    while (!is_stopping(worker)) {
        int64_t wait_ms = 0;
        int is_round;
        tl_status status = claim_round(worker, &wait_ms, &is_round);

        note_round(worker, status, is_round);
        if (status == TL_WRONG_PROCESS)
            return status;
        if (status != TL_OK) {
            pause_after(worker, status);
            continue;
        }
        mention_claims_again(worker);
        if (wait_ms > 0)
            wait_for_work(worker, wait_ms);
        look_for_overdue(worker);
    }
    return TL_OK;
}

/* Waits until what the worker holds is finished, or given back. */
static void finish_held(tl_worker *worker)
{
    while (flying(worker) > 0) {
        pthread_mutex_lock(&worker->mutex);
        if (worker->queue.in_flight > 0)
            schedule_wait(&worker->changed, &worker->mutex, JOB_STUCK_MS);
        pthread_mutex_unlock(&worker->mutex);
        give_back_stuck(worker);
    }
}

static void set_stage(tl_worker *worker, enum stage stage)
{
    LOCKED(worker);
    if (worker->stage < stage)
        worker->stage = stage;
    pthread_cond_broadcast(&worker->work);
    pthread_cond_broadcast(&worker->changed);
}

static void *claimer_main(void *argument)
{
    tl_worker *worker = argument;
    tl_status status = claim_until_stopped(worker);

    set_stage(worker, STOPPING);
    finish_held(worker);
    pthread_mutex_lock(&worker->mutex);
    if (status != TL_OK)
        worker->status = status;
    status = worker->status;
    pthread_mutex_unlock(&worker->mutex);
    set_stage(worker, OVER);
    if (status != TL_OK)
        tl_client_log(worker->client, TL_ALARM, NULL, 0, "the worker has stopped: %s",
                      tl_status_text(status));
    return NULL;
}

/* --------------------------------------------------------------- start and stop -- */

static int init_conditions(tl_worker *worker)
{
    return pthread_mutex_init(&worker->mutex, NULL) != 0 ||
           schedule_condition(&worker->work) != 0 || schedule_condition(&worker->changed) != 0;
}

/* Needs: worker->mutex held. */
static tl_status start_runners(tl_worker *worker)
{
    while (worker->runners_started < worker->threads) {
        if (tl_test_allocation() || pthread_create(&worker->runners[worker->runners_started], NULL,
                                                   runner_main, worker) != 0)
            return tl_error_report(TL_NO_MEMORY, "no thread for the worker");
        worker->runners_started++;
    }
    return TL_OK;
}

static tl_status start_threads(tl_worker *worker)
{
    tl_status status;

    pthread_mutex_lock(&worker->mutex);
    status = start_runners(worker);
    pthread_mutex_unlock(&worker->mutex);
    if (status != TL_OK)
        return status;
    if (tl_test_allocation() || pthread_create(&worker->claimer, NULL, claimer_main, worker) != 0)
        return tl_error_report(TL_NO_MEMORY, "no thread for the worker");
    worker->claimer_started = 1;
    return TL_OK;
}

static tl_status check_options(tl_worker **out, const tl_workflows *workflows,
                               const tl_worker_options *options)
{
    if (out == NULL || workflows == NULL || options == NULL ||
        options->version != TL_WORKER_OPTIONS_VERSION)
        return tl_error_report(TL_INVALID, "a worker needs a place, a registry, and "
                                           "options made with TL_WORKER_OPTIONS_INIT");
    if (options->threads > TL_CLAIM_MAX)
        return tl_error_report(TL_INVALID, "a worker has %d threads at most", TL_CLAIM_MAX);
    if (options->idle_max_ms < 0 || options->unclaimed_ms < 0)
        return tl_error_report(TL_INVALID, "a worker's times are not negative");
    return TL_OK;
}

static void stand_on_registry(tl_worker *worker, int stands)
{
    tl_workflows *workflows = worker->workflows;

    pthread_mutex_lock(&workflows->mutex);
    if (stands)
        workflows->workers++;
    else
        workflows->workers--;
    pthread_mutex_unlock(&workflows->mutex);
}

tl_status tl_worker_start(tl_worker **out, tl_workflows *workflows,
                          const tl_worker_options *options)
{
    tl_worker *worker;
    tl_status status;

    workflow_call_begins();
    status = check_options(out, workflows, options);
    if (status != TL_OK)
        return status;
    if (workflows_at(workflows, 0) == NULL)
        return tl_error_report(TL_UNKNOWN_OPERATION,
                               "a worker without registered operations has nothing to do");
    worker = workflow_memory(sizeof *worker);
    if (worker == NULL || init_conditions(worker) != 0) {
        free(worker);
        return tl_error_report(TL_NO_MEMORY, "no memory for a worker");
    }
    worker->workflows = workflows;
    stand_on_registry(worker, 1);
    worker->client = workflows->client;
    worker->process = getpid();
    job_queue_init(&worker->queue);
    worker->threads = options->threads != 0 ? options->threads : THREADS_DEFAULT;
    worker->idle_max_ms = options->idle_max_ms != 0 ? options->idle_max_ms : IDLE_DEFAULT_MS;
    worker->unclaimed_ms =
        options->unclaimed_ms != 0 ? options->unclaimed_ms : TL_UNCLAIMED_S * INT64_C(1000);
    worker->overdue_ms = schedule_now_ms();
    worker->round_ms = schedule_now_ms();
    status = start_threads(worker);
    if (status != TL_OK) {
        tl_worker_free(worker);
        return status;
    }
    *out = worker;
    return TL_OK;
}

void tl_worker_stop(tl_worker *worker)
{
    if (worker != NULL)
        set_stage(worker, STOPPING);
}

tl_status tl_worker_wait(tl_worker *worker, int64_t wait_ms)
{
    int64_t end_ms = schedule_now_ms() + wait_ms;
    tl_status status;

    workflow_call_begins();
    if (worker == NULL)
        return tl_error_report(TL_INVALID, "worker is NULL");
    pthread_mutex_lock(&worker->mutex);
    while (worker->stage != OVER && schedule_now_ms() < end_ms)
        schedule_wait(&worker->changed, &worker->mutex, schedule_left_ms(end_ms));
    status = worker->stage == OVER ? worker->status : TL_TIMEOUT;
    pthread_mutex_unlock(&worker->mutex);
    return status;
}

static void end_threads(tl_worker *worker)
{
    tl_worker_stop(worker);
    if (worker->claimer_started)
        pthread_join(worker->claimer, NULL);
    set_stage(worker, OVER);
    for (unsigned i = 0; i < worker->runners_started; i++)
        pthread_join(worker->runners[i], NULL);
    pthread_cond_destroy(&worker->work);
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->mutex);
}

void tl_worker_free(tl_worker *worker)
{
    if (worker == NULL)
        return;
    /* In the child of a fork the worker's threads are the parent's. */
    if (worker->process == getpid())
        end_threads(worker);
    stand_on_registry(worker, 0);
    free(worker);
}

tl_status tl_worker_count(tl_worker *worker, tl_worker_counts *counts)
{
    workflow_call_begins();
    if (worker == NULL || counts == NULL || counts->version != TL_WORKER_COUNTS_VERSION)
        return tl_error_report(TL_INVALID, "counts need a worker and a known version");
    pthread_mutex_lock(&worker->mutex);
    *counts = worker->counts;
    counts->in_flight = worker->queue.in_flight;
    pthread_mutex_unlock(&worker->mutex);
    counts->version = TL_WORKER_COUNTS_VERSION;
    return TL_OK;
}

/* The longest hold of what is registered, under way or not. */
static int64_t longest_hold_ms(tl_worker *worker)
{
    int64_t longest = 0;
    const workflow *of;

    for (unsigned i = 0; (of = workflows_at(worker->workflows, i)) != NULL; i++)
        if (of->given.policy.max_hold_ms > longest)
            longest = of->given.policy.max_hold_ms;
    return longest;
}

/* Two rounds in a row may each take their time before a moment of sleep is over. */
tl_status tl_worker_check(tl_worker *worker)
{
    int64_t silent_ms, allowed_ms;
    int stopping, claims_fail;

    workflow_call_begins();
    if (worker == NULL)
        return tl_error_report(TL_INVALID, "worker is NULL");
    allowed_ms = 2 * worker->idle_max_ms + longest_hold_ms(worker) + ROUND_MARGIN_MS;
    pthread_mutex_lock(&worker->mutex);
    silent_ms = schedule_now_ms() - worker->round_ms;
    stopping = worker->stage != WORKS;
    claims_fail = worker->claims_fail;
    pthread_mutex_unlock(&worker->mutex);
    if (stopping)
        return tl_error_report(TL_WRONG_STATE, "the worker was told to stop, or has stopped");
    if (tl_client_alive_ms(worker->client) <= 0)
        return tl_error_report(TL_UNREACHABLE,
                               "heartbeats are not confirmed: the session is not certain");
    if (claims_fail)
        return tl_error_report(TL_UNREACHABLE, "claiming due work fails since %" PRId64 " ms",
                               silent_ms);
    if (silent_ms > allowed_ms)
        return tl_error_report(TL_TIMEOUT, "no round of claiming has ended for %" PRId64 " ms",
                               silent_ms);
    return TL_OK;
}

/*
 * Asking for a mutex.  One statement when nobody is in the way, which asks and unlocks of other
 * threads may share; for several resources one transaction of one statement.  A refusal wrote
 * nothing.  Then the rows that refused are read, and where all of their holders are dead it is
 * asked again, naming them.
 */
#include "lease_mutex/mutex.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "client/restored.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WAIT_KEY_SPACE (TL_RESOURCE_MAX + 2)
#define WAIT_MAX_MS TL_HOLD_MAX_MS
#define DEAD_SPACE (TL_RESOURCES_MAX * (TL_RESOURCE_MAX + 24) + 3)

struct asking {
    tl_mutex *m;
    resource_step step;
    resource_row row;        /* what a group gets of it */
    int is_refused_in_group; /* the first ask was made there */
    uint64_t fences[TL_RESOURCES_MAX];
    int taken, is_mine[TL_RESOURCES_MAX];
    size_t refused;
    char dead[DEAD_SPACE];
    int64_t before_ms, lease_left_ms, hold_left_ms; /* of a step that was settled */
};

/* ------------------------------------------------------------------ asking once -- */

/* A row is ours when it carries our token. */
static void read_rows(struct asking *a, const db_result *result)
{
    a->taken = result->rows == a->step.count;
    a->refused = 0;
    for (size_t i = 0; i < result->rows; i++) {
        size_t size;
        const void *token = db_get_bytes(result, i, 0, &size);

        a->fences[i] = db_get_uint(result, i, 1);
        a->is_mine[i] = size == RESOURCE_TOKEN && memcmp(token, a->step.token, RESOURCE_TOKEN) == 0;
        if (a->taken && !a->is_mine[i]) {
            a->taken = 0;
            a->refused = i;
        }
    }
}

static db_answer ask_rows(struct asking *a, db *connection)
{
    db_result result = DB_RESULT_INIT;
    int several = a->step.count > 1;
    db_answer answer = several ? db_begin(connection) : DB_DONE;

    if (answer == DB_DONE)
        answer = store_resource_ask(connection, &a->step, &result);
    if (answer == DB_DONE)
        read_rows(a, &result);
    db_result_free(&result);
    if (answer == DB_DONE && several)
        answer = a->taken ? db_commit(connection) : db_rollback(connection);
    return answer;
}

/* Whether all that refused have dead holders; then a->dead names them. */
static db_answer find_dead(struct asking *a, db *connection, int *all_dead)
{
    db_result result = DB_RESULT_INIT;
    db_answer answer = DB_DONE;
    size_t used = 0;

    *all_dead = 1;
    for (size_t i = 0; i < a->step.count && answer == DB_DONE && *all_dead; i++) {
        tl_resource_view view;

        if (a->is_mine[i])
            continue;
        answer = store_resource_show(connection, a->step.resources[i], &result);
        *all_dead = answer == DB_DONE && result.rows == 1;
        if (!*all_dead)
            break;
        resource_view_read(&view, &result, 0);
        *all_dead = view.state == TL_RESOURCE_EXPIRED;
        a->refused = i;
        used += (size_t)snprintf(a->dead + used, sizeof a->dead - used, "  %s %" PRIu64,
                                 view.resource, view.fence);
    }
    snprintf(a->dead + used, sizeof a->dead - used, "  ");
    db_result_free(&result);
    return answer;
}

static db_answer run_ask(void *context, db *connection)
{
    struct asking *a = context;
    int all_dead = 0;
    db_answer answer = DB_DONE;

    a->step.dead = NULL;
    if (!a->is_refused_in_group)
        answer = ask_rows(a, connection);
    a->is_refused_in_group = 0;
    if (answer == DB_DONE && !a->taken)
        answer = find_dead(a, connection, &all_dead);
    if (answer != DB_DONE || !all_dead)
        return answer;
    a->step.dead = a->dead;
    return ask_rows(a, connection);
}

/* Refused in a group, it goes on by reading the row that refused. */
static int take_row(void *context)
{
    struct asking *a = context;

    a->taken = a->is_mine[0] = a->row.changed;
    a->fences[0] = a->row.fence;
    a->is_refused_in_group = !a->taken;
    return a->taken;
}

/* What one resource says of an ask whose answer was lost: whether it was committed, and whether it
 * is still worth anything. */
static db_answer read_one(struct asking *a, db *connection, size_t i, int *committed)
{
    const char *resource = a->step.resources[i];
    db_result result = DB_RESULT_INIT;
    db_answer answer = store_resource_now(connection, resource, a->step.token, &result);

    if (answer == DB_DONE && result.rows == 1 && db_get_int(&result, 0, 0)) {
        *committed = 1;
        a->fences[i] = db_get_uint(&result, 0, 2);
        a->hold_left_ms = db_get_int(&result, 0, 3);
        a->lease_left_ms = db_is_null(&result, 0, 4) ? CLOCK_NEVER : db_get_int(&result, 0, 4);
        if (a->hold_left_ms <= 0 || a->lease_left_ms <= 0)
            a->taken = 0;
    } else if (answer == DB_DONE) {
        a->taken = 0;
        a->refused = i;
        answer = store_resource_token_seen(connection, resource, a->step.token, &result);
        if (answer == DB_DONE && result.rows == 1 && db_get_int(&result, 0, 0))
            *committed = 1;
    }
    db_result_free(&result);
    return answer;
}

static db_answer read_ask(void *context, db *connection, int *committed)
{
    struct asking *a = context;
    db_answer answer = DB_DONE;

    a->taken = 1;
    a->before_ms = clock_boottime_ms();
    for (size_t i = 0; i < a->step.count && answer == DB_DONE; i++)
        answer = read_one(a, connection, i, committed);
    return answer;
}

static tl_status granted(tl_mutex *m, const struct asking *a, int settled)
{
    hold *h = m->hold;
    leases *l;
    tl_status status = leases_of(m->client, &l);

    if (status != TL_OK)
        return status;
    leases_lock(l);
    memcpy(h->token, a->step.token, RESOURCE_TOKEN);
    memcpy(h->fences, a->fences, h->count * sizeof *h->fences);
    h->owner = mutex_thread();
    h->life = m->life;
    h->hold_until_ms = a->before_ms + (settled ? a->hold_left_ms : a->step.max_hold_ms);
    h->lease_until_ms = CLOCK_NEVER;
    if (a->step.lease_ms > 0)
        h->lease_until_ms = a->before_ms + (settled ? a->lease_left_ms : a->step.lease_ms);
    h->depth = m->depth = 1;
    memset(&h->renewing, 0, sizeof h->renewing);
    atomic_store(&h->lost, 0);
    leases_unlock(l);
    m->state = MUTEX_HELD;
    status = leases_add(l, h);
    if (status != TL_OK) {
        /* A lock that nobody watches is not what was asked for. */
        (void)tl_mutex_unlock(m);
        return status;
    }
    client_add(&m->client->counters.grants, 1);
    log_line(&m->client->logger, TL_INFO, NULL, h->fences[0], "%s%s locked", h->resources[0],
             h->count > 1 ? " and others" : "");
    return TL_GRANTED;
}

/* The ask was committed, and is over already: whoever has the rows now answers for them; what is
 * left of it is given back. */
static void give_rest_back(tl_mutex *m, const struct asking *a)
{
    memcpy(m->hold->token, a->step.token, RESOURCE_TOKEN);
    (void)mutex_release(m, m->client->config.pool_wait_ms);
}

/* Nobody can have taken over what a certain session renews, or before its time is over. */
static int is_certain(const tl_mutex *m, const struct asking *a, int settled)
{
    int64_t left_ms = settled ? a->hold_left_ms : a->step.max_hold_ms;
    int64_t lease_ms = settled ? a->lease_left_ms : a->step.lease_ms;

    if (a->step.lease_ms <= 0 && life_left_ms(m->life) <= 0)
        return 0;
    if (a->step.lease_ms > 0 && lease_ms < left_ms)
        left_ms = lease_ms;
    return clock_left_ms(a->before_ms + left_ms) > 0;
}

/*
 * The answer came too late to be certain, this process having been stopped perhaps.  A hold whose
 * time is over is one as long as nobody else has taken it; under a session that may be dead it is
 * none.  TL_OK: it is one; TL_BUSY: it is none.
 */
static tl_status check_late(tl_mutex *m, struct asking *a)
{
    int64_t wait_ms = m->client->config.pool_wait_ms;
    int mine = a->step.lease_ms > 0 || life_left_ms(m->life) > 0;
    db_result result = DB_RESULT_INIT;
    db *connection = NULL;
    db_answer answer = DB_DONE;
    tl_status status = pool_get(m->client->connections, POOL_QUICK, wait_ms, &connection);

    for (size_t i = 0; i < a->step.count && status == TL_OK && mine; i++) {
        answer = store_resource_now(connection, a->step.resources[i], a->step.token, &result);
        if (answer != DB_DONE)
            status = db_error_status(connection, answer, "reading the row");
        else
            mine = result.rows == 1 && db_get_int(&result, 0, 0) != 0;
        a->refused = i;
    }
    db_result_free(&result);
    pool_put(m->client->connections, connection);
    if (status == TL_OK)
        return mine ? TL_OK : TL_BUSY;
    /* Asking again with this token settles it: its connection has answered, so a name that nobody
     * has says as much. */
    m->state = MUTEX_ASK_UNKNOWN;
    random_uuid(m->lost_connection);
    return error_prefix(TL_UNKNOWN, "granted, but the row could not be read");
}

static tl_status applied(tl_mutex *m, struct asking *a, int settled)
{
    tl_status late = TL_OK;

    if (a->taken && !is_certain(m, a, settled))
        late = check_late(m, a);
    if (late == TL_UNKNOWN)
        return late;
    if (a->taken && late == TL_OK)
        return granted(m, a, settled);
    if (settled || late == TL_BUSY)
        give_rest_back(m, a);
    m->refused = a->refused;
    m->state = MUTEX_NEW;
    return TL_BUSY;
}

tl_status mutex_ask_once(tl_mutex *m)
{
    struct asking a = {.m = m};
    work w = {.name = "lock", .run = run_ask, .read = read_ask, .context = &a, .asks = 1};

    if (m->state != MUTEX_ASK_UNKNOWN)
        m->life = session_life(m->client->session);
    mutex_begin_step(m, &a.step, m->state != MUTEX_ASK_UNKNOWN);
    w.life = m->life;
    if (m->state == MUTEX_ASK_UNKNOWN)
        memcpy(w.lost_connection, m->lost_connection, sizeof w.lost_connection);
    mutex_offer_group(&w, &a.row, &a.step, take_row);
    a.before_ms = clock_boottime_ms();
    work_run(m->client->transitions, &w, m->client->config.pool_wait_ms);
    m->state = MUTEX_NEW;
    switch (w.verdict) {
    case VERDICT_APPLIED:
        return applied(m, &a, w.settled);
    case VERDICT_DECIDING:
        m->refused = 0;
        return TL_BUSY;
    case VERDICT_UNKNOWN:
        m->state = MUTEX_ASK_UNKNOWN;
        memcpy(m->lost_connection, w.lost_connection, sizeof m->lost_connection);
        client_add(&m->client->counters.unknown, 1);
        return TL_UNKNOWN;
    default:
        return w.status != TL_OK ? w.status : TL_INTERNAL;
    }
}

/* --------------------------------------------------------------------- waiting -- */

/* The turn on every resource, in their order, so that two sets of this process never wait for each
 * other.  1, or 0 when the deadline came. */
static tl_status take_turns(tl_mutex *m, waiter **turns, int64_t deadline_ms)
{
    for (size_t i = 0; i < m->hold->count; i++) {
        char key[WAIT_KEY_SPACE];

        /* No trade's key begins with a blank. */
        snprintf(key, sizeof key, " %s", m->hold->resources[i]);
        turns[i] = waiters_join(m->client->waiting, key);
        if (turns[i] == NULL)
            return error_set(TL_NO_MEMORY, "out of memory for waiting");
        if (!waiters_turn(turns[i], deadline_ms)) {
            m->refused = i;
            return TL_BUSY;
        }
    }
    return TL_OK;
}

static void leave_turns(tl_mutex *m, waiter **turns)
{
    for (size_t i = 0; i < m->hold->count; i++)
        if (turns[i] != NULL)
            waiters_leave(turns[i]);
}

static tl_status ask_waiting(tl_mutex *m, int64_t wait_ms)
{
    const struct config *config = &m->client->config;
    int64_t deadline_ms = clock_deadline(wait_ms), pause_ms = config->ask_wait_min_ms;
    waiter *turns[TL_RESOURCES_MAX] = {NULL};
    tl_status status = take_turns(m, turns, deadline_ms);

    while (status == TL_OK) {
        int64_t until_ms;

        status = mutex_ask_once(m);
        if (status != TL_BUSY || clock_left_ms(deadline_ms) == 0)
            break;
        status = TL_OK;
        until_ms = clock_deadline(random_jitter_ms(pause_ms, 50));
        waiters_pause(turns[m->refused], until_ms < deadline_ms ? until_ms : deadline_ms);
        pause_ms = pause_ms * 2 < config->ask_wait_max_ms ? pause_ms * 2 : config->ask_wait_max_ms;
    }
    leave_turns(m, turns);
    return status;
}

/* ------------------------------------------------------------ why it was refused -- */

static tl_status explain(tl_mutex *m, tl_status status)
{
    const char *resource = m->hold->resources[m->refused];
    tl_client *client = m->client;
    db *connection;
    int there;

    memset(&m->view, 0, sizeof m->view);
    m->view.version = TL_RESOURCE_VIEW_VERSION;
    if (pool_get(client->connections, POOL_QUICK, client->config.pool_wait_ms, &connection) !=
        TL_OK)
        return error_set(status, "%s is locked", resource);
    there = store_resource_show(connection, resource, &m->row) == DB_DONE && m->row.rows == 1;
    if (there)
        resource_view_read(&m->view, &m->row, 0);
    pool_put(client->connections, connection);
    if (there && m->view.state == TL_RESOURCE_HELD)
        return error_set(status, "%s is locked by %s", resource,
                         m->view.holder[0] != '\0' ? m->view.holder : "another process");
    if (there && m->view.state == TL_RESOURCE_KEPT)
        return error_set(status, "%s is free, and kept until its minimum hold is over", resource);
    m->view.being_decided = 1;
    return error_set(status, "%s is just changing hands", resource);
}

/* ------------------------------------------------------------------- re-entrance -- */

static tl_status enter_again(tl_mutex *m, leases *l, hold *h)
{
    tl_status status = TL_GRANTED;

    if (hold_remaining_ms(h) == 0)
        status = error_set(TL_LOST, "the time of this lock is over; unlock it as often as "
                                    "it was granted, then ask anew");
    leases_lock(l);
    if (status == TL_GRANTED) {
        if (h != m->hold) {
            m->hold = h;
            if (h != m->own)
                h->refs++;
        }
        h->depth++;
        m->depth++;
        m->state = MUTEX_HELD;
    }
    leases_unlock(l);
    return status;
}

/* Whether the lock is held already, by this handle or for this thread; then *status is the
 * answer. */
static int is_held_already(tl_mutex *m, leases *l, tl_status *status)
{
    hold *h;

    if (!(m->options.flags & TL_MUTEX_BY_THREAD)) {
        if (m->state != MUTEX_HELD)
            return 0;
        *status = enter_again(m, l, m->hold);
        return 1;
    }
    leases_lock(l);
    h = leases_find(l, m->own->resources[0], mutex_thread());
    leases_unlock(l);
    if (m->state == MUTEX_HELD && h != m->hold) {
        *status = error_set(TL_WRONG_STATE, "this handle's lock belongs to another thread");
        return 1;
    }
    if (h == NULL)
        return 0;
    *status = enter_again(m, l, h);
    return 1;
}

static tl_status check_asking(tl_mutex *m, int64_t wait_ms)
{
    tl_status status = mutex_check(m);

    if (status == TL_OK)
        status = client_check_asking(m->client);
    if ((status == TL_UNREACHABLE || status == TL_SESSION_LOST) && m->state == MUTEX_ASK_UNKNOWN)
        status = error_prefix(TL_UNKNOWN, "the earlier ask is not settled");
    if (status == TL_OK && m->state != MUTEX_HELD)
        status = restored_check_resource(m->client);
    if (status == TL_OK && (wait_ms < 0 || wait_ms > WAIT_MAX_MS))
        status = error_set(TL_INVALID, "wait_ms is %lld; it must be 0 to %lld", (long long)wait_ms,
                           (long long)WAIT_MAX_MS);
    if (status == TL_OK && m->state == MUTEX_UNLOCK_UNKNOWN)
        status = error_set(TL_WRONG_STATE, "the answer to the last unlock was lost; unlock "
                                           "again first");
    return status;
}

tl_status tl_mutex_lock(tl_mutex *m, int64_t wait_ms)
{
    leases *l;
    tl_status status;

    error_clear();
    status = check_asking(m, wait_ms);
    if (status == TL_OK)
        status = leases_of(m->client, &l);
    if (status != TL_OK)
        return status;
    if (is_held_already(m, l, &status))
        return status;
    status = mutex_own_hold(m, l);
    if (status != TL_OK)
        return status;
    client_add(&m->client->counters.asks, 1);
    status = wait_ms > 0 ? ask_waiting(m, wait_ms) : mutex_ask_once(m);
    if (status != TL_BUSY)
        return status;
    client_add(&m->client->counters.refusals, 1);
    return explain(m, wait_ms > 0 ? TL_TIMEOUT : TL_BUSY);
}

/*
 * Asks for a mutex, by one statement if nobody is in the way; asks and unlocks of other threads may
 * share it.  Several resources take one transaction of one statement.  A refusal wrote nothing; the
 * rows that refused are then read, and if all of them are free or their holders dead the ask is
 * repeated, naming them.
 */
#include "lease_mutex/mutex.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEAD_SPACE (TL_RESOURCES_MAX * (TL_RESOURCE_MAX + 24) + 3)

struct asking {
    lock_ask base;
    resource_step step;
    resource_row row;        /* what a batch gets of it */
    int is_refused_in_group; /* the first ask was refused in a batch */
    uint64_t fences[TL_RESOURCES_MAX];
    int is_mine[TL_RESOURCES_MAX];
    char dead[DEAD_SPACE];
};

/* ------------------------------------------------------------------ asking once -- */

/* A row is ours when it carries our token. */
static void read_rows(struct asking *a, const db_result *result)
{
    a->base.taken = result->rows == a->step.count;
    a->base.refused = 0;
    for (size_t i = 0; i < result->rows; i++) {
        size_t size;
        const void *token = db_get_bytes(result, i, 0, &size);

        a->fences[i] = db_get_uint(result, i, 1);
        a->is_mine[i] = size == RESOURCE_TOKEN && memcmp(token, a->step.token, RESOURCE_TOKEN) == 0;
        if (a->base.taken && !a->is_mine[i]) {
            a->base.taken = 0;
            a->base.refused = i;
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
        answer = a->base.taken ? db_commit(connection) : db_rollback(connection);
    return answer;
}

/* Whether nobody holds the row, and its minimum hold is over.  That a session has ended is final;
 * that a time is over must be true by a clock that was not set, too. */
static int is_to_be_had(tl_client *client, const tl_resource_view *view)
{
    const int64_t latest_us = clock_watch_latest_us(client);
    const int64_t now_us = latest_us < view->now_us ? latest_us : view->now_us;

    if (view->free_us > now_us || view->state == TL_RESOURCE_HELD)
        return 0;
    if (view->state == TL_RESOURCE_FREE || view->max_hold_until_us <= now_us)
        return 1;
    return view->lease_until_us != 0 ? view->lease_until_us <= now_us
                                     : view->max_hold_until_us > view->now_us;
}

/* Whether all that refused are to be had; then a->dead names them. */
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
        *all_dead = is_to_be_had(a->base.lock->client, &view);
        a->base.refused = i;
        used += (size_t)snprintf(a->dead + used, sizeof a->dead - used, "  %s %" PRIu64,
                                 view.resource, view.rev);
    }
    snprintf(a->dead + used, sizeof a->dead - used, "  ");
    db_result_free(&result);
    return answer;
}

static db_answer run_ask(task *t, db *connection)
{
    struct asking *a = t->context;
    int all_dead = 0;
    db_answer answer = DB_DONE;

    a->step.dead = NULL;
    if (!a->is_refused_in_group)
        answer = ask_rows(a, connection);
    a->is_refused_in_group = 0;
    if (answer == DB_DONE && !a->base.taken)
        answer = find_dead(a, connection, &all_dead);
    if (answer != DB_DONE || !all_dead)
        return answer;
    a->step.dead = a->dead;
    return ask_rows(a, connection);
}

/* After a refusal in a batch the task goes on by reading the row that refused. */
static int take_row(void *context)
{
    struct asking *a = context;

    a->base.taken = a->is_mine[0] = a->row.changed;
    a->fences[0] = a->row.fence;
    a->is_refused_in_group = !a->base.taken;
    return a->base.taken;
}

static db_answer read_row(const void *ask, db *connection, size_t i, db_result *result)
{
    const struct asking *a = ask;

    return store_resource_now(connection, a->step.resources[i], a->step.token, result);
}

static db_answer look_for_token(const void *ask, db *connection, size_t i, int *seen)
{
    const struct asking *a = ask;
    db_result result = DB_RESULT_INIT;
    db_answer answer =
        store_resource_token_seen(connection, a->step.resources[i], a->step.token, &result);

    *seen = answer == DB_DONE && result.rows == 1 && db_get_int(&result, 0, 0);
    db_result_free(&result);
    return answer;
}

static void mark_ask(const task *t, commit_mark *to)
{
    const struct asking *a = t->context;

    if (a->base.taken)
        mutex_mark(&a->step, to);
    else
        to->kind = MARK_NONE;
}

static tl_status granted(lock_handle *handle, void *ask)
{
    tl_mutex *m = (tl_mutex *)handle;
    const struct asking *a = ask;
    hold *h = m->hold;
    leases *l;
    tl_status status = leases_of(handle->client, &l);

    if (status == TL_OK) {
        leases_lock(l);
        memcpy(h->fences, a->fences, h->grant.count * sizeof *h->fences);
        h->owner = mutex_thread();
        h->depth = m->depth = 1;
        leases_unlock(l);
        status = leases_add(l, h);
    }
    if (status != TL_OK) {
        /* The caller asked for a watched lock. */
        (void)tl_mutex_unlock(m);
        return status;
    }
    log_line(&handle->client->logger, TL_INFO, NULL, h->grant.fence, "%s%s locked",
             h->grant.names[0], h->grant.count > 1 ? " and others" : "");
    return TL_GRANTED;
}

/* Called when the ask was refused, or was granted and is over already. */
static void refused(lock_handle *h, const void *ask, int settled)
{
    if (settled)
        resource_give_back(h, ask);
}

static void give_back(lock_handle *h, const void *ask)
{
    (void)ask;
    (void)mutex_release((tl_mutex *)h, h->client->config.pool_wait_ms);
}

tl_status mutex_ask_once(tl_mutex *m)
{
    struct asking a = {.base = {.lock = &m->base, .claims = 1}};

    a.base.fences = a.fences;
    resource_begin_ask(&m->base);
    mutex_fill_step(m, &a.step);
    mutex_share(&a.base.work, &a.row, &a.step, take_row);
    a.base.offer.by_session = a.step.lease_ms <= 0;
    a.base.offer.hold_left_ms = a.base.offer.left_ms = a.step.max_hold_ms;
    if (a.step.lease_ms > 0)
        a.base.offer.left_ms = a.step.lease_ms;
    return resource_ask_once(&m->base, &a.base);
}

static tl_status ask_again(void *m)
{
    return mutex_ask_once(m);
}

/* ------------------------------------------------------------ why it was refused -- */

static tl_status explain(lock_handle *h, tl_status status)
{
    tl_mutex *m = (tl_mutex *)h;
    const char *resource = h->grant->names[h->refused];
    tl_client *client = h->client;
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

static const resource_method statements = {
    .ask = {.check = task_check_lock,
            .run = run_ask,
            .read = resource_read_ask,
            .mark = mark_ask,
            .batch = mutex_batch},
    .now = read_row,
    .seen = look_for_token,
    .refused = refused,
    .give_back = give_back,
    .release = {.run = mutex_run_unlock,
                .read = mutex_read_unlock,
                .mark = mutex_mark_unlock,
                .batch = mutex_batch},
    .lost_at_release = "the lock had been taken over or taken away",
    .lost_at_change = "the lock was taken over or taken away, or its time was over",
};

const lock_method mutex_method = {
    .wait_prefix = " ",
    .lost = "the lock was taken over or taken away",
    .ask_unknown = "whether the lock was granted is not known yet: ask again first, or free the "
                   "handle",
    .look = resource_look,
    .gone = resource_gone,
    .granted = granted,
    .explain = explain,
    .resource = &statements,
};

/* ------------------------------------------------------------------- re-entrance -- */

static tl_status enter_again(tl_mutex *m, leases *l, hold *h)
{
    tl_status status = TL_GRANTED;

    if (grant_left_ms(&h->grant) == 0)
        status = error_set(TL_LOST, "the time of this lock is over; unlock it as often as "
                                    "it was granted, then ask anew");
    leases_lock(l);
    if (status == TL_GRANTED) {
        if (h != m->hold) {
            mutex_use_hold(m, h);
            if (h != m->own)
                h->refs++;
        }
        h->depth++;
        m->depth++;
        if (m->base.state != LOCK_HELD)
            handle_become(&m->base, LOCK_NEW);
        handle_become(&m->base, LOCK_HELD);
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
        if (m->base.state != LOCK_HELD)
            return 0;
        *status = enter_again(m, l, m->hold);
        return 1;
    }
    leases_lock(l);
    h = leases_find(l, m->own->grant.names[0], mutex_thread());
    leases_unlock(l);
    if (m->base.state == LOCK_HELD && h != m->hold) {
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
        status = handle_check_asking(&m->base);
    if (status == TL_OK)
        status = handle_check_wait(wait_ms);
    if (status == TL_OK && m->base.state == LOCK_END_UNKNOWN)
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
        status = leases_of(m->base.client, &l);
    if (status != TL_OK)
        return status;
    if (is_held_already(m, l, &status))
        return status;
    status = mutex_own_hold(m, l);
    if (status != TL_OK)
        return status;
    client_add(&m->base.client->counters.asks, 1);
    status = wait_ms > 0 ? lock_wait(&m->base, wait_ms, ask_again, m) : mutex_ask_once(m);
    return resource_answer(&m->base, status, wait_ms);
}

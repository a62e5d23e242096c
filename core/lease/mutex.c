/*
 * The mutex.  One statement asks if nobody is in the way; asks and unlocks of other threads may
 * share it.  Several resources take one transaction of one statement.  A refusal wrote nothing; the
 * rows that refused are then read, and if all of them are free or their holders dead the ask is
 * repeated, naming them.
 */
#include "lease/lease.h"

#include "base/error.h"
#include "base/memory.h"
#include "store/bind.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEAD_SPACE (TL_RESOURCES_MAX * (TL_RESOURCE_MAX + 24) + 3)

struct tl_mutex {
    lease lease; /* first */
    int by_thread;
    tl_mutex_loss_fn loss;
    void *loss_context;
    tl_resource_view view;
    db_result row; /* what the view's payload points into */
};

struct asking {
    lease_asking base;       /* first */
    int is_refused_in_group; /* the first ask was refused in a batch */
    int is_mine[TL_RESOURCES_MAX];
    char dead[DEAD_SPACE];
};

/* ------------------------------------------------------------------ asking once -- */

/* A row is ours when it carries our token. */
static void read_rows(struct asking *a, const db_result *result)
{
    a->base.taken = result->rows == a->base.step.count;
    a->base.refused = 0;
    for (size_t i = 0; i < result->rows; i++) {
        a->base.fences[i] = db_get_uint(result, i, 1);
        a->is_mine[i] = db_is_bytes(result, i, 0, a->base.step.token, LEASE_TOKEN);
        if (a->base.taken && !a->is_mine[i]) {
            a->base.taken = 0;
            a->base.refused = i;
        }
    }
}

static db_answer ask_rows(struct asking *a, db *connection)
{
    RESULT result = DB_RESULT_INIT;
    int several = a->base.step.count > 1;
    db_answer answer = several ? db_begin(connection) : DB_DONE;

    if (answer == DB_DONE)
        answer = store_resource_ask(connection, &a->base.step, &result);
    if (answer == DB_DONE)
        read_rows(a, &result);
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
    RESULT result = DB_RESULT_INIT;
    db_answer answer = DB_DONE;
    size_t used = 0;

    *all_dead = 1;
    for (size_t i = 0; i < a->base.step.count && answer == DB_DONE && *all_dead; i++) {
        tl_resource_view view;

        if (a->is_mine[i])
            continue;
        answer =
            SQL_RUN(connection, &result, resource_show, .resource = db_text(a->base.step.names[i]));
        *all_dead = answer == DB_DONE && result.rows == 1;
        if (!*all_dead)
            break;
        resource_view_read(&view, &result, 0);
        *all_dead = is_to_be_had(a->base.lease->base.client, &view);
        a->base.refused = i;
        used += (size_t)snprintf(a->dead + used, sizeof a->dead - used, "  %s %" PRIu64,
                                 view.resource, view.rev);
    }
    snprintf(a->dead + used, sizeof a->dead - used, "  ");
    return answer;
}

static db_answer run_ask(task *t, db *connection)
{
    struct asking *a = t->context;
    int all_dead = 0;
    db_answer answer = DB_DONE;

    a->base.step.dead = NULL;
    if (!a->is_refused_in_group)
        answer = ask_rows(a, connection);
    a->is_refused_in_group = 0;
    if (answer == DB_DONE && !a->base.taken)
        answer = find_dead(a, connection, &all_dead);
    if (answer != DB_DONE || !all_dead)
        return answer;
    a->base.step.dead = a->dead;
    return ask_rows(a, connection);
}

/* After a refusal in a batch the task goes on by reading the row that refused. */
static int take_row(lease_work *work)
{
    struct asking *a = (struct asking *)work;

    a->base.taken = a->is_mine[0] = work->row.changed;
    a->base.fences[0] = work->row.fence;
    a->is_refused_in_group = !a->base.taken;
    return a->base.taken;
}

static void granted(lease *l, const lease_asking *a)
{
    const tl_mutex *m = (const tl_mutex *)l;
    hold *h = l->hold;

    (void)a;
    h->loss = m->loss;
    h->loss_context = m->loss_context;
    h->by_thread = m->by_thread;
    h->owner = lease_thread();
    log_line(&l->base.client->logger, TL_INFO, NULL, h->grant.fence, "%s%s locked",
             h->grant.names[0], h->grant.count > 1 ? " and others" : "");
}

/* What an ask was granted whose answer was lost, and which is over already. */
static void refused(lease *l, const lease_asking *a, int settled)
{
    if (settled)
        lease_give_back(l, a);
}

static tl_status ask_once(lease *l, int waits)
{
    struct asking a = {.base.claims = 1};

    (void)waits;
    lease_begin_ask(l, &a.base);
    a.base.token = a.base.step.token;
    lease_share(&a.base.work, &a.base.step, 0, take_row);
    return lease_run_ask(&a.base);
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
    there = SQL_RUN(connection, &m->row, resource_show, .resource = db_text(resource)) == DB_DONE &&
            m->row.rows == 1;
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

static const lease_kind kind = {
    .statements = &store_mutexes,
    .mark = MARK_RESOURCE,
    .ask = {.check = task_check_lock,
            .run = run_ask,
            .read = lease_read_ask,
            .mark = lease_mark_ask,
            .batch = lease_batch},
    .ask_once = ask_once,
    .granted = granted,
    .refused = refused,
    .shares = 1,
    .noun = "mutex",
    .lost_at_release = "the lock had been taken over or taken away",
    .lost_at_change = "the lock was taken over or taken away, or its time was over",
};

static const lock_method mutex_method = {
    .wait_prefix = " ",
    .lost = "the lock was taken over or taken away",
    .ask_unknown = "whether the lock was granted is not known yet: ask again first, or free the "
                   "handle",
    .look = lease_look,
    .gone = lease_gone,
    .granted = lease_granted,
    .explain = explain,
    .lease = &kind,
};

/* ------------------------------------------------------------ making a handle -- */

static tl_status check_options(const tl_mutex_options *o, size_t count)
{
    if (o == NULL || o->version != TL_MUTEX_OPTIONS_VERSION)
        return error_set(TL_INVALID, "options is NULL or was not made with "
                                     "TL_MUTEX_OPTIONS_INIT");
    if (o->flags & ~TL_MUTEX_BY_THREAD)
        return error_set(TL_INVALID, "flags has bits that this version does not know");
    if ((o->flags & TL_MUTEX_BY_THREAD) && count > 1)
        return error_set(TL_INVALID, "a lock of several resources is re-entrant by its "
                                     "handle only");
    if (o->payload_size > TL_RESOURCE_PAYLOAD_MAX)
        return error_set(TL_INVALID, "the payload has %zu bytes; at most %d are kept",
                         o->payload_size, TL_RESOURCE_PAYLOAD_MAX);
    if (o->payload == NULL && o->payload_size > 0)
        return error_set(TL_INVALID, "payload is NULL and payload_size is not 0");
    TRY(lease_check_terms(o->lease_ms, o->max_hold_ms, o->remark, o->actor));
    if (o->min_hold_ms < 0 || o->min_hold_ms > TL_HOLD_MAX_MS)
        return error_set(TL_INVALID, "min_hold_ms is %lld; it must be 0 to %lld",
                         (long long)o->min_hold_ms, (long long)TL_HOLD_MAX_MS);
    return TL_OK;
}

static tl_status set_options(tl_mutex *m, const tl_mutex_options *o)
{
    lease_set_terms(&m->lease, o->lease_ms, o->max_hold_ms, o->remark, o->actor);
    m->lease.min_hold_ms = o->min_hold_ms;
    m->by_thread = (o->flags & TL_MUTEX_BY_THREAD) != 0;
    m->loss = o->loss;
    m->loss_context = o->loss_context;
    m->view.version = TL_RESOURCE_VIEW_VERSION;
    if (o->payload_size == 0)
        return TL_OK;
    m->lease.payload = memory_dup(o->payload, o->payload_size);
    m->lease.payload_size = o->payload_size;
    return m->lease.payload != NULL ? TL_OK
                                    : error_set(TL_NO_MEMORY, "out of memory for the payload");
}

tl_status tl_mutex_new_set(tl_mutex **out, tl_client *client, const char *const *resources,
                           size_t count, const tl_mutex_options *options)
{
    tl_mutex *m;
    tl_status status;

    error_clear();
    if (out == NULL)
        return error_set(TL_INVALID, "out is NULL");
    TRY(client_check(client));
    TRY(lease_check_names(resources, count));
    TRY(check_options(options, count));
    m = memory_new(sizeof *m);
    if (m == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for a mutex");
    status = lease_init(&m->lease, &mutex_method, client, resources, count);
    if (status == TL_OK)
        status = set_options(m, options);
    if (status == TL_OK)
        *out = m;
    else
        tl_mutex_free(m);
    return status;
}

tl_status tl_mutex_new(tl_mutex **out, tl_client *client, const char *resource,
                       const tl_mutex_options *options)
{
    return tl_mutex_new_set(out, client, &resource, 1, options);
}

void tl_mutex_free(tl_mutex *m)
{
    if (m == NULL)
        return;
    lease_clear(&m->lease);
    db_result_free(&m->row);
    memory_free(m);
}

/* ------------------------------------------------------------------- re-entrance -- */

static tl_status check(const tl_mutex *m)
{
    if (m == NULL)
        return error_set(TL_INVALID, "mutex is NULL");
    return client_check(m->lease.base.client);
}

/* Needs: the holds' mutex held. */
static tl_status enter_again(lease *l, hold *h)
{
    if (grant_left_ms(&h->grant) == 0)
        return error_set(TL_LOST, "the time of this lock is over; unlock it as often as "
                                  "it was granted, then ask anew");
    if (h != l->hold)
        lease_use_hold(l, h);
    h->depth++;
    l->depth++;
    if (l->base.state != LOCK_HELD)
        handle_become(&l->base, LOCK_NEW);
    handle_become(&l->base, LOCK_HELD);
    return TL_GRANTED;
}

/* The answer if the lock is held already, by this handle or for this thread; else TL_OK.  Needs:
 * the holds' mutex held. */
static tl_status enter_held(tl_mutex *m)
{
    lease *l = &m->lease;
    const int is_held = l->base.state == LOCK_HELD;
    hold *h = is_held ? l->hold : NULL;

    if (m->by_thread)
        h = holds_find(l->holds, l->hold->grant.names[0], lease_thread());
    if (is_held && h != l->hold)
        return error_set(TL_WRONG_STATE, "this handle's lock belongs to another thread");
    return h != NULL ? enter_again(l, h) : TL_OK;
}

/* --------------------------------------------------------------------- the calls -- */

tl_status tl_mutex_lock(tl_mutex *m, int64_t wait_ms)
{
    lease *l;
    tl_status status;

    error_clear();
    TRY(check(m));
    l = &m->lease;
    TRY(handle_check_asking(&l->base));
    TRY(handle_check_wait(wait_ms));
    if (l->base.state == LOCK_END_UNKNOWN)
        return error_set(TL_WRONG_STATE, "the answer to the last unlock was lost; unlock "
                                         "again first");
    holds_lock(l->holds);
    status = enter_held(m);
    holds_unlock(l->holds);
    TRY(status);
    return lease_answer(l, lease_ask(l, wait_ms), wait_ms);
}

tl_status tl_mutex_unlock(tl_mutex *m)
{
    error_clear();
    TRY(check(m));
    return lease_unlock(&m->lease);
}

tl_status tl_mutex_renew(tl_mutex *m, int64_t lease_ms)
{
    error_clear();
    TRY(check(m));
    return lease_renew(&m->lease, lease_ms);
}

tl_status tl_mutex_guard(tl_mutex *m, struct st_mysql *connection, unsigned flags)
{
    const lease *l;

    error_clear();
    TRY(check(m));
    l = &m->lease;
    if (l->base.state == LOCK_LOST)
        return error_set(TL_ROLL_BACK, "roll back: the lock is lost");
    if (l->base.state != LOCK_HELD && l->base.state != LOCK_OVER)
        return error_set(TL_NOT_HELD, "the lock is not held by this handle");
    TRY(lease_check_held(l));
    return lease_prove(&m->lease, connection, flags, "guarding the transaction",
                       store_mutexes.guard);
}

/* ------------------------------------------------------------------ what it knows -- */

int64_t tl_mutex_remaining_ms(const tl_mutex *m)
{
    return check(m) == TL_OK ? lease_remaining_ms(&m->lease) : 0;
}

unsigned tl_mutex_depth(const tl_mutex *m)
{
    return m != NULL ? m->lease.depth : 0;
}

uint64_t tl_mutex_fence(const tl_mutex *m, const char *resource)
{
    const hold *h;

    if (m == NULL || !lease_is_held(&m->lease))
        return 0;
    h = m->lease.hold;
    for (size_t i = 0; i < h->grant.count; i++)
        if (resource == NULL || strcmp(h->grant.names[i], resource) == 0)
            return h->fences[i];
    return 0;
}

const tl_resource_view *tl_mutex_view(const tl_mutex *m)
{
    static const tl_resource_view nothing = {.version = TL_RESOURCE_VIEW_VERSION};

    return m != NULL ? &m->view : &nothing;
}

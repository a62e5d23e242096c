/*
 * The row lock.  It uses two connections: the library's own makes and commits the resource's row,
 * and the caller's locks it.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "base/thread_context.h"
#include "client/caller.h"
#include "client/client.h"
#include "store/lease.h"
#include "transition/task.h"

static tl_status check(const tl_client *client, const char *resource, int64_t wait_s)
{
    TRY(client_check(client));
    TRY(text_check_name("resource", resource, TL_RESOURCE_MAX));
    if (wait_s < TL_ROW_LOCK_BLOCK || wait_s > TL_ROW_LOCK_WAIT_MAX_S)
        return error_set(TL_INVALID,
                         "wait_s is %lld; it must be TL_ROW_LOCK_BLOCK, "
                         "TL_ROW_LOCK_NOWAIT, or up to %d",
                         (long long)wait_s, TL_ROW_LOCK_WAIT_MAX_S);
    return client_check_asking(client);
}

/* Makes the row if a read does not find it.  The read comes first: an INSERT would wait for a user
 * who has the row locked. */
static db_answer run_make(task *t, db *connection)
{
    const char *resource = t->context;
    int there;
    db_answer answer = store_row_lock_there(connection, resource, &there);

    return answer == DB_DONE && !there ? store_row_lock_make(connection, resource) : answer;
}

/* Nobody misses the row where it is lost: who needs it next makes it. */
static void mark_none(const task *t, commit_mark *to)
{
    (void)t;
    to->kind = MARK_NONE;
}

/* A lost answer needs no settling: making the row twice leaves one row. */
static tl_status make_row(tl_client *client, const char *resource)
{
    static const task_kind kind = {.run = run_make, .mark = mark_none};
    task t = {.kind = &kind, .name = "row lock", .context = (void *)(uintptr_t)resource};

    task_run(client->engine, &t, client->config.pool_wait_ms);
    if (t.verdict == VERDICT_APPLIED)
        return TL_OK;
    if (t.verdict == VERDICT_UNKNOWN)
        return error_set(TL_UNREACHABLE,
                         "the row of %s could not be made: the answer "
                         "was lost",
                         resource);
    return t.status != TL_OK ? t.status : TL_INTERNAL;
}

static tl_status lock_row(const tl_client *client, const char *resource, db *borrowed,
                          int64_t wait_s)
{
    int locked = 0;
    db_answer answer = store_row_lock(borrowed, resource, wait_s, &locked);

    if (answer != DB_DONE)
        return caller_must_roll_back(borrowed, answer, "locking the row");
    if (!locked)
        return error_set(TL_ROLL_BACK,
                         "roll back: %s has no row in the database of this connection; "
                         "is it the client's?",
                         resource);
    log_line(&client->logger, TL_DEBUG, NULL, 0, "%s locked in a transaction", resource);
    return TL_GRANTED;
}

tl_status tl_row_lock(tl_client *client, const char *resource, struct st_mysql *connection,
                      int64_t wait_s, unsigned flags)
{
    db *borrowed = NULL;
    int64_t own_ms = 0;
    tl_status status;

    error_clear();
    TRY(check(client, resource, wait_s));
    if (wait_s > 0)
        own_ms =
            thread_context_await_until(clock_deadline(wait_s * 1000 + client->config.pool_wait_ms));
    status = caller_open(&borrowed, connection, flags, session_life(client->session));
    if (status == TL_OK)
        status = make_row(client, resource);
    if (status == TL_OK)
        status = lock_row(client, resource, borrowed, wait_s);
    if (wait_s > 0)
        (void)thread_context_await_until(own_ms);
    db_close(borrowed);
    return status;
}

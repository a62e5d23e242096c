/*
 * Lease mutexes for operators: lists who holds what, and takes one away.  Reads resource_lock, and
 * writes one row of it.
 */
#include "client/read.h"

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "store/act.h"
#include "store/bind.h"
#include "store/resource.h"
#include "transition/task.h"

#include <tradelock/admin/locks.h>
#include <tradelock/resource.h>

#include <string.h>

#define PAGE_ROWS 256
#define LIMIT_DEFAULT 100
/* An ask locks the row for a moment; a transaction with a guard locks it for longer. */
#define FORCE_BUDGET_MS 2000

/* -------------------------------------------------------------------- reading -- */

struct listing {
    const tl_resource_filter *filter;
    tl_resource_fn each;
    void *context;
    db *connection;
    unsigned left;
    char after[TL_RESOURCE_MAX + 1];
};

/* Whether the name lies beyond all names with the prefix.  Those stand together, and the prefix
 * itself is the first. */
static int is_past(const char *name, const char *prefix)
{
    return prefix != NULL && strncmp(name, prefix, strlen(prefix)) > 0;
}

/* Shows a page; 1 to go on with the next. */
static int show_page(struct listing *list, const db_result *rows)
{
    const char *prefix = list->filter->prefix;

    for (size_t row = 0; row < rows->rows; row++) {
        tl_resource_view view;

        resource_view_read(&view, rows, row);
        text_copy(list->after, sizeof list->after, view.resource);
        if (is_past(view.resource, prefix))
            return 0;
        if (!(prefix == NULL || strncmp(view.resource, prefix, strlen(prefix)) == 0) ||
            (!list->filter->all && view.state == TL_RESOURCE_FREE))
            continue;
        if (list->each(list->context, &view) != 0 || --list->left == 0)
            return 0;
    }
    return rows->rows == PAGE_ROWS;
}

/* A page begins after a name: one that stands before all names with the prefix, and after most
 * others. */
static void begin_at(struct listing *list)
{
    const char *prefix = list->filter->prefix;
    size_t size = prefix != NULL ? strlen(prefix) : 0;

    if (size == 0)
        return;
    text_copy(list->after, sizeof list->after, prefix);
    list->after[size - 1]--;
    if (size < TL_RESOURCE_MAX) {
        list->after[size] = '~';
        list->after[size + 1] = '\0';
    }
}

static tl_status check_filter(const tl_resource_filter *filter, tl_resource_fn each)
{
    if (each == NULL)
        return error_set(TL_INVALID, "each is NULL");
    if (filter->version != TL_RESOURCE_FILTER_VERSION)
        return error_set(TL_INVALID, "the filter's version is not set");
    if (filter->prefix != NULL && filter->prefix[0] != '\0')
        return text_check_name("prefix", filter->prefix, TL_RESOURCE_MAX);
    return TL_OK;
}

static int list_all(void *context)
{
    struct listing *list = context;
    db_result rows = DB_RESULT_INIT;
    tl_status status = TL_OK;
    int more = 1;

    while (status == TL_OK && more) {
        status = read_status(list->connection,
                             SQL_RUN(list->connection, &rows, resource_list,
                                     .after = db_text(list->after), .most = db_uint(PAGE_ROWS)),
                             "listing resources");
        if (status == TL_OK)
            more = show_page(list, &rows);
    }
    db_result_free(&rows);
    return (int)status;
}

tl_status tl_resource_list(tl_client *client, const tl_resource_filter *filter, tl_resource_fn each,
                           void *context)
{
    static const tl_resource_filter all = {.version = TL_RESOURCE_FILTER_VERSION};
    struct listing list = {
        .filter = filter != NULL ? filter : &all, .each = each, .context = context};
    tl_status status = check_filter(list.filter, each);

    if (status == TL_OK)
        status = read_begin(client, &list.connection);
    if (status != TL_OK)
        return status;
    list.left = list.filter->limit != 0 ? list.filter->limit : LIMIT_DEFAULT;
    begin_at(&list);
    status = read_and_show(client, list.connection, list_all, &list);
    read_end(client, list.connection);
    return status;
}

tl_status tl_resource_show(tl_client *client, const char *resource, tl_resource_fn each,
                           void *context)
{
    db_result row = DB_RESULT_INIT;
    db *connection = NULL;
    tl_status status = text_check_name("resource", resource, TL_RESOURCE_MAX);

    if (status == TL_OK && each == NULL)
        status = error_set(TL_INVALID, "each is NULL");
    if (status == TL_OK)
        status = read_begin(client, &connection);
    if (status != TL_OK)
        return status;
    status = read_status(connection, store_resource_show(connection, resource, &row),
                         "reading the resource");
    read_end(client, connection);
    if (status == TL_OK && row.rows == 0)
        status = error_set(TL_NOT_FOUND, "no resource %s was ever locked", resource);
    if (status == TL_OK) {
        tl_resource_view view;

        resource_view_read(&view, &row, 0);
        (void)each(context, &view);
    }
    db_result_free(&row);
    return status;
}

/* ------------------------------------------------------------------ taking away -- */

struct forcing {
    resource_step step;
    uint64_t fence;
    int changed;
};

static db_answer run_force(task *t, db *connection)
{
    struct forcing *f = t->context;
    db_result result = DB_RESULT_INIT;
    db_answer answer = db_begin(connection);

    f->changed = 0;
    if (answer == DB_DONE)
        answer = SQL_RUN(
            connection, &result, resource_force, .thread_no = db_text(f->step.thread_no),
            .log_no = db_text(f->step.log_no), .token = db_bytes(f->step.token, RESOURCE_TOKEN),
            .remark = db_text(f->step.remark), .actor = db_text(f->step.actor),
            .resource = db_text(f->step.resources[0]), .seen_fence = db_uint(f->fence));
    if (answer == DB_DONE)
        f->changed = result.affected > 0;
    if (answer == DB_DONE)
        answer = f->changed ? db_commit(connection) : db_rollback(connection);
    db_result_free(&result);
    return answer;
}

static db_answer read_force(task *t, db *connection)
{
    struct forcing *f = t->context;
    db_result result = DB_RESULT_INIT;
    db_answer answer =
        store_resource_token_seen(connection, f->step.resources[0], f->step.token, &result);

    if (answer == DB_DONE)
        f->changed = result.rows == 1 && db_get_int(&result, 0, 0) != 0;
    if (answer == DB_DONE && f->changed)
        t->verdict = VERDICT_APPLIED;
    db_result_free(&result);
    return answer;
}

static int keep_view(void *context, const tl_resource_view *view)
{
    *(tl_resource_view *)context = *view;
    return 0;
}

/* Why nothing was changed. */
static tl_status explain(tl_client *client, const char *resource, uint64_t fence)
{
    tl_resource_view view;

    TRY(tl_resource_show(client, resource, keep_view, &view));
    if (view.fence != fence)
        return error_set(TL_LOST,
                         "%s has moved on: its fence is %llu now, not %llu; look "
                         "at it again",
                         resource, (unsigned long long)view.fence, (unsigned long long)fence);
    return error_set(TL_NOT_HELD, "%s is free", resource);
}

static tl_status force(tl_client *client, struct forcing *f)
{
    static const task_kind kind = {.run = run_force, .read = read_force};
    task t = {.kind = &kind, .name = "force unlock", .context = f};

    task_run(client->engine, &t, FORCE_BUDGET_MS);
    if (t.verdict == VERDICT_APPLIED)
        return f->changed ? TL_OK : explain(client, f->step.resources[0], f->fence);
    if (t.status == TL_TRY_AGAIN)
        return error_set(TL_BUSY, "an open transaction, a guarded one perhaps, holds %s",
                         f->step.resources[0]);
    return t.status;
}

tl_status tl_resource_unlock(tl_client *client, const char *resource, uint64_t fence,
                             const char *actor, const char *reason)
{
    char thread_no[TL_UUID_TEXT], log_no[TL_UUID_TEXT];
    uint8_t token[RESOURCE_TOKEN];
    struct forcing f = {.step = {.resources = &resource,
                                 .count = 1,
                                 .token = token,
                                 .thread_no = thread_no,
                                 .remark = reason,
                                 .actor = actor},
                        .fence = fence};

    error_clear();
    TRY(client_check(client));
    TRY(text_check_name("resource", resource, TL_RESOURCE_MAX));
    TRY(read_check_person(actor, reason));
    random_token(token);
    text_copy(thread_no, sizeof thread_no, tl_thread_uuid());
    text_copy(log_no, sizeof log_no, tl_log_uuid());
    f.step.log_no = log_no[0] != '\0' ? log_no : NULL;
    return force(client, &f);
}

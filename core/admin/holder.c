/* Read-write locks for operators: lists who reads, writes and waits, and takes the lock from one of
 * them. */
#include "client/read.h"

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "store/act.h"
#include "store/rw.h"
#include "transition/task.h"

#include <tradelock/admin/locks.h>
#include <tradelock/resource.h>
#include <tradelock/rw_lock.h>

#include <stdio.h>
#include <string.h>

#define PAGE_ROWS 256
#define LIMIT_DEFAULT 100
/* An ask keeps the gate for a moment; a transaction with "done" keeps its row for longer. */
#define FORCE_BUDGET_MS 2000

/* -------------------------------------------------------------------- reading -- */

struct listing {
    tl_holder_fn each;
    void *context;
    db *connection;
    int all_resources;
    int all;
    unsigned left, slot;
    char resource[TL_RESOURCE_MAX + 1];
};

/* Shows a page; 1 to go on with the next. */
static int show_page(struct listing *list, const db_result *rows)
{
    for (size_t row = 0; row < rows->rows; row++) {
        tl_holder_view view;

        holder_view_read(&view, rows, row);
        text_copy(list->resource, sizeof list->resource, view.resource);
        list->slot = view.slot;
        if (!list->all && view.state == TL_HOLDER_FREE)
            continue;
        if (list->each(list->context, &view) != 0 || --list->left == 0)
            return 0;
    }
    return rows->rows == PAGE_ROWS;
}

static int list_all(void *context)
{
    struct listing *list = context;
    db_result rows = DB_RESULT_INIT;
    tl_status status = TL_OK;
    int more = 1;

    while (status == TL_OK && more) {
        status = read_status(list->connection,
                             store_rw_list(list->connection, list->resource, list->slot,
                                           list->all_resources, PAGE_ROWS, &rows),
                             "listing holders");
        if (status == TL_OK)
            more = show_page(list, &rows);
    }
    db_result_free(&rows);
    return (int)status;
}

tl_status tl_holder_list(tl_client *client, const char *resource, int all, unsigned limit,
                         tl_holder_fn each, void *context)
{
    struct listing list = {.each = each,
                           .context = context,
                           .all_resources = resource == NULL,
                           .all = all,
                           .left = limit != 0 ? limit : LIMIT_DEFAULT};
    tl_status status = read_check_each(each != NULL);

    if (status == TL_OK && resource != NULL)
        status = text_check_name("resource", resource, TL_RESOURCE_MAX);
    if (status == TL_OK)
        status = read_begin(client, &list.connection);
    if (status != TL_OK)
        return status;
    text_copy(list.resource, sizeof list.resource, resource);
    status = read_and_show(client, list.connection, list_all, &list);
    read_end(client, list.connection);
    return status;
}

/* ------------------------------------------------------------------ taking away -- */

struct forcing {
    rw_step step;
    uint64_t fence; /* the one that was seen */
    int there;
    uint64_t changed;
};

/* Takes the lock away behind the gate, which is waited for a moment only. */
static db_answer run_force(task *t, db *connection)
{
    struct forcing *f = t->context;
    db_answer answer = db_begin(connection);

    f->changed = 0;
    if (answer == DB_DONE)
        answer = store_rw_gate(connection, f->step.resource, &f->there);
    if (answer == DB_DONE && f->there)
        answer = store_rw_force(connection, &f->step, f->fence, &f->changed);
    if (answer != DB_DONE)
        return answer;
    return f->changed > 0 ? db_commit(connection) : db_rollback(connection);
}

static db_answer read_force(task *t, db *connection)
{
    struct forcing *f = t->context;
    int seen = 0;
    db_answer answer =
        store_rw_token_seen(connection, f->step.resource, f->step.slot, f->step.token, &seen);

    f->changed = seen != 0;
    if (seen)
        t->verdict = VERDICT_APPLIED;
    return answer;
}

struct finding {
    unsigned slot;
    tl_holder_view view;
};

static int find_slot(void *context, const tl_holder_view *view)
{
    struct finding *found = context;

    if (view->slot != found->slot)
        return 0;
    found->view = *view;
    return 1;
}

/* Why nothing was changed. */
static tl_status explain(tl_client *client, const struct forcing *f)
{
    struct finding found = {.slot = f->step.slot};

    TRY(tl_holder_list(client, f->step.resource, 1, UINT16_MAX, find_slot, &found));
    if (found.view.slot == 0)
        return error_set(TL_NOT_FOUND, "%s never had a reader or writer number %u",
                         f->step.resource, f->step.slot);
    if (found.view.fence != f->fence)
        return error_set(TL_LOST,
                         "number %u of %s has moved on: its fence is %llu now, not %llu; "
                         "look at it again",
                         f->step.slot, f->step.resource, (unsigned long long)found.view.fence,
                         (unsigned long long)f->fence);
    return error_set(TL_NOT_HELD, "number %u of %s is free", f->step.slot, f->step.resource);
}

static tl_status force(tl_client *client, struct forcing *f)
{
    static const task_kind kind = {.run = run_force, .read = read_force};
    task t = {.kind = &kind, .name = "force unlock", .context = f};

    task_run(client->engine, &t, FORCE_BUDGET_MS);
    if (t.verdict == VERDICT_APPLIED)
        return f->changed > 0 ? TL_OK : explain(client, f);
    if (t.status == TL_TRY_AGAIN)
        return error_set(TL_BUSY,
                         "an open transaction, one with \"business done\" perhaps, holds "
                         "number %u of %s",
                         f->step.slot, f->step.resource);
    return t.status;
}

tl_status tl_holder_unlock(tl_client *client, const char *resource, unsigned slot, uint64_t fence,
                           const char *actor, const char *reason)
{
    char thread_no[TL_UUID_TEXT], log_no[TL_UUID_TEXT];
    uint8_t token[RW_TOKEN];
    struct forcing f = {.step = {.resource = resource,
                                 .slot = slot,
                                 .token = token,
                                 .thread_no = thread_no,
                                 .remark = reason,
                                 .actor = actor},
                        .fence = fence};

    error_clear();
    TRY(client_check(client));
    TRY(text_check_name("resource", resource, TL_RESOURCE_MAX));
    if (slot == 0 || slot > UINT16_MAX)
        return error_set(TL_INVALID, "slot is %u; it must be 1 to %d", slot, UINT16_MAX);
    TRY(read_check_person(actor, reason));
    random_token(token);
    text_copy(thread_no, sizeof thread_no, tl_thread_uuid());
    text_copy(log_no, sizeof log_no, tl_log_uuid());
    f.step.log_no = log_no[0] != '\0' ? log_no : NULL;
    return force(client, &f);
}

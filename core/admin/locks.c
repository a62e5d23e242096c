/*
 * Mutexes and read-write locks for operators: lists who holds what and who waits, and takes a lock
 * away.  Reads resource_lock and resource_holder, and writes one row of them.
 */
#include "admin/words.h"
#include "client/read.h"

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "store/bind.h"
#include "store/lease.h"
#include "transition/task.h"

#include <tradelock/admin/locks.h>

#include <string.h>

#define PAGE_ROWS 256
#define LIMIT_DEFAULT 100
/* An ask locks the row, or keeps the gate, for a moment; a transaction with a guard or with "done"
 * keeps a row for longer. */
#define FORCE_BUDGET_MS 2000

/* -------------------------------------------------------------------- reading -- */

struct listing {
    const char *doing;
    /* Reads the page after the row that was shown last. */
    db_answer (*read_page)(const struct listing *list, db_result *rows);
    /* Shows a row; 1 to go on with the next. */
    int (*show)(struct listing *list, const db_result *rows, size_t row);
    void *context;
    db *connection;
    unsigned left;
    char after[TL_RESOURCE_MAX + 1]; /* the name of the row that was shown last */

    /* Of mutexes. */
    const tl_resource_filter *filter;
    tl_resource_fn each_resource;

    /* Of holders. */
    tl_holder_fn each_holder;
    int all_resources, all;
    unsigned slot;
};

static int list_all(void *context)
{
    struct listing *list = context;
    RESULT rows = DB_RESULT_INIT;
    tl_status status = TL_OK;
    int more = 1;

    while (status == TL_OK && more) {
        status = read_status(list->connection, list->read_page(list, &rows), list->doing);
        for (size_t row = 0; status == TL_OK && more && row < rows.rows; row++)
            more = list->show(list, &rows, row);
        more = more && rows.rows == PAGE_ROWS;
    }
    return (int)status;
}

static tl_status run_list(tl_client *client, struct listing *list, unsigned limit)
{
    READING at = {.client = client};

    TRY(read_begin(&at));
    list->connection = at.connection;
    list->left = limit != 0 ? limit : LIMIT_DEFAULT;
    return read_and_show(list_all, list);
}

/* Whether the name lies beyond all names with the prefix.  Those stand together, and the prefix
 * itself is the first. */
static int is_past(const char *name, const char *prefix)
{
    return prefix != NULL && strncmp(name, prefix, strlen(prefix)) > 0;
}

static db_answer read_resources(const struct listing *list, db_result *rows)
{
    return SQL_RUN(list->connection, rows, resource_list, .after = db_text(list->after),
                   .most = db_uint(PAGE_ROWS));
}

static int show_resource(struct listing *list, const db_result *rows, size_t row)
{
    const char *prefix = list->filter->prefix;
    tl_resource_view view;

    resource_view_read(&view, rows, row);
    text_copy(list->after, sizeof list->after, view.resource);
    if (is_past(view.resource, prefix))
        return 0;
    if (!(prefix == NULL || strncmp(view.resource, prefix, strlen(prefix)) == 0) ||
        (!list->filter->all && view.state == TL_RESOURCE_FREE))
        return 1;
    return list->each_resource(list->context, &view) == 0 && --list->left > 0;
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

tl_status tl_resource_list(tl_client *client, const tl_resource_filter *filter, tl_resource_fn each,
                           void *context)
{
    static const tl_resource_filter all = {.version = TL_RESOURCE_FILTER_VERSION};
    struct listing list = {.doing = "listing resources",
                           .read_page = read_resources,
                           .show = show_resource,
                           .context = context,
                           .filter = filter != NULL ? filter : &all,
                           .each_resource = each};

    TRY(check_filter(list.filter, each));
    begin_at(&list);
    return run_list(client, &list, list.filter->limit);
}

tl_status tl_resource_show(tl_client *client, const char *resource, tl_resource_fn each,
                           void *context)
{
    READING at = {.client = client};
    RESULT row = DB_RESULT_INIT;
    tl_resource_view view;

    TRY(text_check_name("resource", resource, TL_RESOURCE_MAX));
    TRY(read_check_each(each != NULL));
    TRY(read_begin(&at));
    TRY(read_status(at.connection,
                    SQL_RUN(at.connection, &row, resource_show, .resource = db_text(resource)),
                    "reading the resource"));
    read_end(&at);
    if (row.rows == 0)
        return error_set(TL_NOT_FOUND, "no resource %s was ever locked", resource);
    resource_view_read(&view, &row, 0);
    (void)each(context, &view);
    return TL_OK;
}

static db_answer read_holders(const struct listing *list, db_result *rows)
{
    return store_rw_list(list->connection, list->after, list->slot, list->all_resources, PAGE_ROWS,
                         rows);
}

static int show_holder(struct listing *list, const db_result *rows, size_t row)
{
    tl_holder_view view;

    holder_view_read(&view, rows, row);
    text_copy(list->after, sizeof list->after, view.resource);
    list->slot = view.slot;
    if (!list->all && view.state == TL_HOLDER_FREE)
        return 1;
    return list->each_holder(list->context, &view) == 0 && --list->left > 0;
}

tl_status tl_holder_list(tl_client *client, const char *resource, int all, unsigned limit,
                         tl_holder_fn each, void *context)
{
    struct listing list = {.doing = "listing holders",
                           .read_page = read_holders,
                           .show = show_holder,
                           .context = context,
                           .each_holder = each,
                           .all_resources = resource == NULL,
                           .all = all};

    TRY(read_check_each(each != NULL));
    if (resource != NULL)
        TRY(text_check_name("resource", resource, TL_RESOURCE_MAX));
    text_copy(list.after, sizeof list.after, resource);
    return run_list(client, &list, limit);
}

/* ------------------------------------------------------------------ taking away -- */

struct forcing {
    const lease_statements *statements;
    lease_step step;
    uint64_t seen_fence;
    int changed;
};

/* Names what resource_force and rw_force have in common. */
#define FORCE(f)                                                                                   \
    .thread_no = db_text((f)->step.thread_no), .log_no = db_text((f)->step.log_no),                \
    .token = db_bytes((f)->step.token, LEASE_TOKEN), .remark = db_text((f)->step.remark),          \
    .actor = db_text((f)->step.actor), .resource = db_text((f)->step.names[0]),                    \
    .seen_fence = db_uint((f)->seen_fence)

/* Takes a holder's lock away behind the gate, which is waited for a moment only. */
static db_answer run_force(task *t, db *connection)
{
    struct forcing *f = t->context;
    const int has_gate = f->step.slot != 0;
    RESULT result = DB_RESULT_INIT;
    int there = 1;
    db_answer answer = db_begin(connection);

    f->changed = 0;
    if (answer == DB_DONE && has_gate)
        answer = store_rw_gate(connection, f->step.names[0], &there);
    if (answer == DB_DONE && there)
        answer = has_gate ? SQL_RUN(connection, &result, rw_force, FORCE(f),
                                    .slot = db_uint(f->step.slot))
                          : SQL_RUN(connection, &result, resource_force, FORCE(f));
    if (answer != DB_DONE)
        return answer;
    f->changed = result.affected > 0;
    return f->changed ? db_commit(connection) : db_rollback(connection);
}

static db_answer read_force(task *t, db *connection)
{
    struct forcing *f = t->context;
    db_answer answer =
        f->statements->seen(connection, f->step.names[0], f->step.slot, f->step.token, &f->changed);

    if (f->changed)
        t->verdict = VERDICT_APPLIED;
    return answer;
}

/* Checks what was said.  TL_OK and whether it was changed; TL_TRY_AGAIN: an open transaction holds the
 * row. */
static tl_status force(tl_client *client, struct forcing *f, int *changed)
{
    static const task_kind kind = {.run = run_force, .read = read_force};
    task t = {.kind = &kind, .name = "force unlock", .context = f};
    uint8_t token[LEASE_TOKEN];

    TRY(client_check(client));
    TRY(text_check_name("resource", f->step.names[0], TL_RESOURCE_MAX));
    TRY(read_check_person(f->step.actor, f->step.remark));
    random_token(token);
    f->step.token = token;
    f->step.thread_no = tl_thread_uuid();
    f->step.log_no = words_or_null(tl_log_uuid());
    task_run(client->engine, &t, FORCE_BUDGET_MS);
    *changed = f->changed;
    return t.verdict == VERDICT_APPLIED ? TL_OK : t.status;
}

static int keep_view(void *context, const tl_resource_view *view)
{
    *(tl_resource_view *)context = *view;
    return 0;
}

tl_status tl_resource_unlock(tl_client *client, const char *resource, uint64_t fence,
                             const char *actor, const char *reason)
{
    struct forcing f = {.statements = &store_mutexes,
                        .step = {.names = &resource, .count = 1, .remark = reason, .actor = actor},
                        .seen_fence = fence};
    tl_resource_view view;
    tl_status status;
    int changed;

    error_clear();
    status = force(client, &f, &changed);
    if (status == TL_TRY_AGAIN)
        return error_set(TL_BUSY, "an open transaction, a guarded one perhaps, holds %s", resource);
    if (status != TL_OK || changed)
        return status;
    TRY(tl_resource_show(client, resource, keep_view, &view));
    if (view.fence != fence)
        return error_set(TL_LOST,
                         "%s has moved on: its fence is %llu now, not %llu; look "
                         "at it again",
                         resource, (unsigned long long)view.fence, (unsigned long long)fence);
    return error_set(TL_NOT_HELD, "%s is free", resource);
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

tl_status tl_holder_unlock(tl_client *client, const char *resource, unsigned slot, uint64_t fence,
                           const char *actor, const char *reason)
{
    struct forcing f = {
        .statements = &store_holders,
        .step = {.names = &resource, .count = 1, .slot = slot, .remark = reason, .actor = actor},
        .seen_fence = fence};
    struct finding found = {.slot = slot};
    tl_status status;
    int changed;

    error_clear();
    if (slot == 0 || slot > UINT16_MAX)
        return error_set(TL_INVALID, "slot is %u; it must be 1 to %d", slot, UINT16_MAX);
    status = force(client, &f, &changed);
    if (status == TL_TRY_AGAIN)
        return error_set(TL_BUSY,
                         "an open transaction, one with \"business done\" perhaps, holds "
                         "number %u of %s",
                         slot, resource);
    if (status != TL_OK || changed)
        return status;
    TRY(tl_holder_list(client, resource, 1, UINT16_MAX, find_slot, &found));
    if (found.view.slot == 0)
        return error_set(TL_NOT_FOUND, "%s never had a reader or writer number %u", resource, slot);
    if (found.view.fence != fence)
        return error_set(TL_LOST,
                         "number %u of %s has moved on: its fence is %llu now, not %llu; "
                         "look at it again",
                         slot, resource, (unsigned long long)found.view.fence,
                         (unsigned long long)fence);
    return error_set(TL_NOT_HELD, "number %u of %s is free", slot, resource);
}

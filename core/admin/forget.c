/*
 * Forgets a customer, as two operators: one proposes, another confirms, and both are acts.  What they
 * propose is no decision about a trade, so it stands in no table of its own: a procedure blanks page by
 * page, and asks each time for the other's word (sql/object/blank.sql).
 */
#include "admin/act.h"
#include "admin/purge.h"
#include "admin/words.h"

#include "base/error.h"
#include "base/text.h"
#include "client/read.h"
#include "store/bind.h"

#include "sql_text.h"

#include <tradelock/admin/decisions.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct forgetting {
    db *connection;
    const char *cust_no;
    store_act act;
    tl_forgotten done;
};

static tl_status check(const char *cust_no, const char *actor, const char *reason)
{
    TRY(read_check_person(actor, reason));
    TRY(text_check_name("cust_no", cust_no, TL_CUST_MAX));
    return strstr(reason, cust_no) == NULL
               ? TL_OK
               : error_set(TL_INVALID,
                           "the reason names the customer, and stays on record: name the "
                           "request that came in");
}

/* Takes what there is of the customer; TL_OK: all of it may be forgotten. */
static tl_status look(struct forgetting *f)
{
    RESULT row = DB_RESULT_INIT;
    uint64_t open;

    TRY(read_status(f->connection,
                    SQL_RUN(f->connection, &row, forget_seen, .cust_no = db_text(f->cust_no)),
                    "looking at the customer's trades"));
    text_copy(f->done.name, sizeof f->done.name, db_get_text(&row, 0, COLUMN_forget_seen_name));
    f->done.trades = db_get_uint(&row, 0, COLUMN_forget_seen_trades);
    open = db_get_uint(&row, 0, COLUMN_forget_seen_open);
    if (f->done.trades == 0)
        return error_set(TL_NOT_FOUND, "customer %s has no trade", f->cust_no);
    return open == 0
               ? TL_OK
               : error_set(TL_REFUSED,
                           "customer %s has %" PRIu64 " trades that are in process, parked, in "
                           "conflict or may be tried anew, and must not be forgotten yet: end "
                           "them first",
                           f->cust_no, open);
}

static tl_status propose(struct forgetting *f)
{
    uint64_t act_no = 0;

    f->act.what = "forget propose";
    TRY(act_begin(f->connection, &f->act, 0, &act_no));
    return act_end(f->connection, act_no, NULL);
}

static tl_status look_for_proposal(struct forgetting *f)
{
    RESULT row = DB_RESULT_INIT;

    TRY(read_status(f->connection,
                    SQL_RUN(f->connection, &row, forget_proposed, .name = db_text(f->done.name)),
                    "looking for the proposal"));
    if (db_get_int(&row, 0, COLUMN_forget_proposed_by_other))
        return TL_OK;
    if (db_get_int(&row, 0, COLUMN_forget_proposed_by_own))
        return error_set(TL_REFUSED,
                         "whoever proposed it cannot confirm it: another operator, with "
                         "an account of their own, must");
    return error_set(TL_NOT_FOUND, "nobody has proposed that within the last seven days; see "
                                   "`tradelock inbox`");
}

static tl_status run_page(struct forgetting *f, uint64_t act_no, store_list_place *after,
                          unsigned *seen)
{
    RESULT told = DB_RESULT_INIT;
    char cust_no[TL_CUST_MAX + 1];
    unsigned repeats = 0, blanked = 0;
    tl_status status;

    do
        status = read_status(f->connection,
                             SQL_RUN(f->connection, NULL, forget_page, .act_no = db_uint(act_no),
                                     .most = db_uint(PURGE_PAGE), .cust_no = db_text(f->cust_no),
                                     .serial_no = db_text(after->serial_no),
                                     .op_code = db_text(after->op_code)),
                             "forgetting");
    while (purge_may_repeat(status, &repeats));
    TRY(status);
    TRY(read_run(f->connection, &sql_purge_result, &told, "reading what was forgotten"));
    if (sscanf(db_get_text(&told, 0, 0), "%u %u %32s %64s %32s", &blanked, seen, cust_no,
               after->serial_no, after->op_code) < 2)
        return error_set(TL_INTERNAL, "the procedure did not say what it did");
    f->done.blanked += blanked;
    return TL_OK;
}

static tl_status confirm(struct forgetting *f)
{
    store_list_place after = {.us = 0};
    unsigned seen = PURGE_PAGE;
    uint64_t act_no = 0;

    f->act.what = "forget confirm";
    TRY(look_for_proposal(f));
    TRY(act_begin(f->connection, &f->act, f->done.trades, &act_no));
    while (seen == PURGE_PAGE)
        TRY(run_page(f, act_no, &after, &seen));
    return act_end(f->connection, act_no, NULL);
}

static tl_status forget(tl_client *client, const char *cust_no, const char *actor,
                        const char *reason, tl_forgotten *forgotten,
                        tl_status (*half)(struct forgetting *f))
{
    READING at = {.client = client};
    struct forgetting f = {.cust_no = cust_no};

    TRY(read_begin(&at));
    TRY(check(cust_no, actor, reason));
    f.connection = at.connection;
    f.act = (store_act){.said = f.done.name,
                        .reason = reason,
                        .actor = actor,
                        .log_no = words_or_null(tl_log_uuid())};
    TRY(look(&f));
    TRY(half(&f));
    if (forgotten != NULL)
        *forgotten = f.done;
    return TL_OK;
}

tl_status tl_forget_propose(tl_client *client, const char *cust_no, const char *actor,
                            const char *reason, tl_forgotten *forgotten)
{
    error_clear();
    return forget(client, cust_no, actor, reason, forgotten, propose);
}

tl_status tl_forget_confirm(tl_client *client, const char *cust_no, const char *actor,
                            const char *reason, tl_forgotten *forgotten)
{
    error_clear();
    return forget(client, cust_no, actor, reason, forgotten, confirm);
}

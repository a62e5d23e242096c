/* Tells how much waits, who is alive, and what waits for a second person.  Reads only, and holds no
 * connection while it tells. */
#include "admin/metrics_rows.h"

#include "base/text.h"
#include "client/read.h"
#include "client/blocker.h"
#include "store/bind.h"
#include "store/record.h"

#include <tradelock/admin/overview.h>

#include <string.h>

/* -------------------------------------------------------------------- what waits -- */

static int tell_groups(const char *op_code, const db_result *r, tl_waiting_fn each, void *context)
{
    for (size_t row = 0; row < r->rows; row++) {
        const tl_waiting one = {.op_code = op_code,
                                .state = db_get_text(r, row, METRICS_STATE),
                                .channel = db_get_text(r, row, METRICS_CHANNEL),
                                .currency = db_get_text(r, row, METRICS_CURRENCY),
                                .age = (unsigned)db_get_uint(r, row, METRICS_AGE),
                                .count = db_get_uint(r, row, METRICS_COUNT),
                                .sum_minor = db_get_text(r, row, METRICS_MINOR),
                                .oldest_s = db_get_int(r, row, METRICS_OLDEST_S),
                                .deadline_us = db_get_int(r, row, METRICS_DEADLINE_US),
                                .late = db_get_uint(r, row, METRICS_LATE)};

        /* Repeatable trades guard no money. */
        if (strcmp(one.state, "other") != 0 && each(context, &one) != 0)
            return 1;
    }
    return 0;
}

static int tell_conflicts(const db_result *r, tl_waiting_fn each, void *context)
{
    for (size_t row = 0; row < r->rows; row++) {
        const tl_waiting one = {.op_code = db_get_text(r, row, CONFLICT_OP),
                                .state = "conflict",
                                .channel = db_get_text(r, row, CONFLICT_CHANNEL),
                                .currency = db_get_text(r, row, CONFLICT_CURRENCY),
                                .count = db_get_uint(r, row, CONFLICT_COUNT),
                                .sum_minor = db_get_text(r, row, CONFLICT_MINOR)};

        if (each(context, &one) != 0)
            return 1;
    }
    return 0;
}

static void tell_waiting(const metrics_rows *rows, tl_waiting_fn each, void *context)
{
    int stopped = 0;

    for (size_t i = 0; i < rows->count && !stopped; i++) {
        const metrics_operation *o = &rows->operations[i];

        stopped = tell_groups(o->op_code, &o->unheld, each, context) ||
                  tell_groups(o->op_code, &o->working, each, context);
    }
    if (!stopped)
        (void)tell_conflicts(&rows->conflicts, each, context);
}

static void take_sessions(tl_overview *o, const db_result *r)
{
    for (size_t row = 0; row < r->rows; row++) {
        const char *state = db_get_text(r, row, 1);
        const uint64_t count = db_get_uint(r, row, 2);

        if (strcmp(state, "alive") == 0)
            o->alive += count;
        else if (strcmp(state, "silent") == 0)
            o->silent += count;
        else
            o->ended += count;
    }
}

/* What operators let wait is not late. */
static void take_due(tl_overview *o, const metrics_rows *rows, const metrics_operation *one)
{
    for (size_t row = 0; row < one->due.rows; row++) {
        const int64_t due_us = db_get_int(&one->due, row, 2);

        o->due += db_get_uint(&one->due, row, 1);
        if (due_us > o->due_us &&
            !metrics_is_paused(rows, db_get_text(&one->due, row, 0), one->op_code))
            o->due_us = due_us;
    }
}

static void take_all(tl_overview *o, const metrics_rows *rows)
{
    *o = (tl_overview)TL_OVERVIEW_INIT;
    o->fit = rows->is_fit;
    metrics_audits(rows, &o->audit, &o->statement);
    if (rows->server.rows == 1) {
        o->restore_open = db_get_int(&rows->server, 0, 0) != 0;
        o->clock_jumps = (unsigned)db_get_uint(&rows->server, 0, 2);
        o->clock_jumps_open = (unsigned)db_get_uint(&rows->server, 0, 3);
    }
    for (size_t i = 0; i < rows->count; i++) {
        const metrics_operation *one = &rows->operations[i];

        take_due(o, rows, one);
        o->overdue += (uint64_t)one->overdue;
        o->cut |= one->is_cut != 0;
        o->now_us = one->now_us;
    }
    take_sessions(o, &rows->sessions);
}

tl_status tl_overview_read(tl_client *client, tl_overview *overview, tl_waiting_fn each,
                           void *context)
{
    READING at = {.client = client};
    metrics_rows rows = {0};
    blocker found;
    tl_status status;

    TRY(read_begin(&at));
    if (overview == NULL || overview->version != TL_OVERVIEW_VERSION)
        return error_set(TL_INVALID, "overview is NULL or its version is not set");
    TRY(read_check_each(each != NULL));
    status = metrics_read(&rows, at.connection);
    if (status == TL_OK) {
        const db_answer answer = blocker_read(at.connection, &found);

        if (answer != DB_ERROR)
            status = read_status(at.connection, answer, "looking who holds rows");
    }
    read_end(&at);
    if (status == TL_OK) {
        take_all(overview, &rows);
        if (blocker_is_long(&found)) {
            overview->blocker = found.connection;
            overview->blocker_us = found.age_us;
            text_copy(overview->blocker_account, sizeof overview->blocker_account, found.account);
            text_copy(overview->blocker_text, sizeof overview->blocker_text, found.text);
        }
        tell_waiting(&rows, each, context);
    }
    metrics_free(&rows);
    return status;
}

/* ------------------------------------------------------------- sessions and inbox -- */

#define AT(member) COLUMN_overview_sessions_##member

static void take_session(tl_session_row *to, const db_result *result, size_t row)
{
    TL_SESSION_MAP(RECORD_READ)
    to->state = db_get_int(result, row, AT(is_ended))   ? "ended"
                : to->silent_us > to->timeout_ms * 1000 ? "silent"
                                                        : "alive";
}

#undef AT

static uint64_t permits_of(const db_result *permits, const char *session_id)
{
    for (size_t row = 0; row < permits->rows; row++)
        if (strcmp(db_get_text(permits, row, 0), session_id) == 0)
            return db_get_uint(permits, row, 1);
    return 0;
}

tl_status tl_session_list(tl_client *client, tl_session_fn each, void *context)
{
    READING at = {.client = client};
    RESULT r = DB_RESULT_INIT, permits = DB_RESULT_INIT;
    tl_session_row one;

    error_clear();
    TRY(read_check_each(each != NULL));
    TRY(read_begin(&at));
    TRY(read_run(at.connection, &sql_overview_sessions, &r, "reading the sessions"));
    TRY(read_run(at.connection, &sql_channel_permits, &permits, "reading the sessions' permits"));
    read_end(&at);
    for (size_t row = 0; row < r.rows; row++) {
        take_session(&one, &r, row);
        one.permits = permits_of(&permits, one.session_id);
        if (each(context, &one) != 0)
            break;
    }
    return TL_OK;
}

#define AT(member) COLUMN_overview_inbox_##member

tl_status tl_inbox(tl_client *client, tl_proposal_fn each, void *context)
{
    READING at = {.client = client};
    RESULT all = DB_RESULT_INIT;
    const db_result *const result = &all;

    TRY(read_begin(&at));
    TRY(read_check_each(each != NULL));
    TRY(read_run(at.connection, &sql_overview_inbox, &all, "reading what was proposed"));
    read_end(&at);
    for (size_t row = 0; row < result->rows; row++) {
        tl_proposal one, *to = &one;

        TL_PROPOSAL_MAP(RECORD_READ)
        if (each(context, &one) != 0)
            break;
    }
    return TL_OK;
}

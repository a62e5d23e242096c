/* Operators pause a channel, have it go on, limit it, and give it a breaker: one row, which a
 * procedure writes that checks it (sql/object/channel.sql).  Touches trade_channel,
 * trade_channel_limit and trade_channel_breaker. */
#include "admin/words.h"
#include "client/read.h"

#include "base/error.h"
#include "base/text.h"
#include "store/bind.h"
#include "store/record.h"
#include "transition/task.h"

#include "sql_text.h"

#include <tradelock/admin/channels.h>
#include <tradelock/layer.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct store_channel_decision {
    const char *channel, *op_code; /* op_code "": the channel as a whole */
    const char *log_no;            /* NULL: none */
    const char *actor, *reason;
    enum { PAUSES, LIMITS, BREAKS } kind;
    int pauses;                /* 0: it goes on */
    int64_t sends, per_second; /* 0: none */
    /* unknowns 0: none any more; share and window_s 0: no share. */
    int64_t unknowns, share, window_s, probe_s;
} store_channel_decision;

static db_value number_or_null(int64_t number)
{
    return number != 0 ? db_int(number) : db_text(NULL);
}

static db_answer store_channel_decide(db *connection, const store_channel_decision *d)
{
    if (d->kind == BREAKS)
        return SQL_RUN(connection, NULL, channel_breaker, .channel = db_text(d->channel),
                       .op_code = db_text(d->op_code), .unknowns = number_or_null(d->unknowns),
                       .share = number_or_null(d->share), .window_s = number_or_null(d->window_s),
                       .probe_s = db_int(d->probe_s), .log_no = db_text(d->log_no),
                       .actor = db_text(d->actor), .reason = db_text(d->reason));
    if (d->kind == LIMITS)
        return SQL_RUN(connection, NULL, channel_limit, .channel = db_text(d->channel),
                       .op_code = db_text(d->op_code), .sends = number_or_null(d->sends),
                       .per_second = number_or_null(d->per_second), .log_no = db_text(d->log_no),
                       .actor = db_text(d->actor), .reason = db_text(d->reason));
    return SQL_RUN(connection, NULL, channel_decide, .channel = db_text(d->channel),
                   .op_code = db_text(d->op_code), .paused = db_int(d->pauses),
                   .log_no = db_text(d->log_no), .actor = db_text(d->actor),
                   .reason = db_text(d->reason));
}

static db_answer store_channel_list(db *connection, const char *channel, db_result *result)
{
    return SQL_RUN(
        connection, result, channel_list, .from_channel = db_text(channel != NULL ? channel : ""),
        .to_channel = db_text(channel != NULL ? channel : "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~"));
}

#define REFUSED_BY_PROCEDURE 1644

struct deciding {
    store_channel_decision half;
    int sent; /* an earlier try may have been carried out */
    tl_status status;
};

static int is_all(const store_channel_decision *d)
{
    return strcmp(d->channel, TL_CHANNEL_ALL) == 0;
}

static const char *name_of(char to[160], const store_channel_decision *d)
{
    if (is_all(d))
        snprintf(to, 160, "the installation");
    else if (d->op_code[0] == '\0')
        snprintf(to, 160, "channel %s", d->channel);
    else
        snprintf(to, 160, "channel %s for %s", d->channel, d->op_code);
    return to;
}

/* The row of an operation, or SIZE_MAX. */
static size_t row_of(const db_result *rows, const char *op_code)
{
    for (size_t row = 0; row < rows->rows; row++)
        if (strcmp(db_get_text(rows, row, COLUMN_channel_list_op_code), op_code) == 0)
            return row;
    return SIZE_MAX;
}

static int64_t number_of(const db_result *rows, size_t row, unsigned column)
{
    return row != SIZE_MAX ? db_get_int(rows, row, column) : 0;
}

#define NUMBER(column) number_of(rows, row, COLUMN_channel_list_##column)

/* Whether it is as it is to be. */
static int is_so(const store_channel_decision *d, const db_result *rows, size_t row)
{
    switch (d->kind) {
    case LIMITS:
        return NUMBER(sends) == d->sends && NUMBER(per_second) == d->per_second;
    case BREAKS:
        return NUMBER(unknowns) == d->unknowns &&
               (d->unknowns == 0 || (NUMBER(share) == d->share && NUMBER(window_s) == d->window_s &&
                                     NUMBER(probe_s) == d->probe_s));
    case PAUSES:
        break;
    }
    return (NUMBER(paused) != 0) == d->pauses;
}

/* The row says what was to be said, in the own name. */
static int is_own(const store_channel_decision *d, const db_result *rows)
{
    static const struct {
        unsigned own, reason, actor;
    } by[] = {
        [PAUSES] = {COLUMN_channel_list_own, COLUMN_channel_list_reason, COLUMN_channel_list_actor},
        [LIMITS] = {COLUMN_channel_list_limit_own, COLUMN_channel_list_limit_reason,
                    COLUMN_channel_list_limit_actor},
        [BREAKS] = {COLUMN_channel_list_breaker_own, COLUMN_channel_list_breaker_reason,
                    COLUMN_channel_list_breaker_actor}};
    const size_t row = row_of(rows, d->op_code);

    return row != SIZE_MAX && is_so(d, rows, row) && db_get_int(rows, row, by[d->kind].own) != 0 &&
           strcmp(db_get_text(rows, row, by[d->kind].reason), d->reason) == 0 &&
           strcmp(db_get_text(rows, row, by[d->kind].actor), d->actor) == 0;
}

static tl_status is_so_already(const store_channel_decision *d, const db_result *rows, size_t row,
                               const char *name)
{
    const size_t whole = row_of(rows, "");

    if (d->kind == BREAKS)
        return error_set(TL_ALREADY_DONE, "%s has such a breaker already, or none at all", name);
    if (d->kind == LIMITS)
        return error_set(TL_ALREADY_DONE, "%s is limited so already, or not at all", name);
    if (d->pauses)
        return error_set(TL_ALREADY_DONE,
                         is_all(d) ? "%s drains already, by %s: %s"
                                   : "%s is paused already, by %s: %s",
                         name, db_get_text(rows, row, COLUMN_channel_list_account),
                         db_get_text(rows, row, COLUMN_channel_list_reason));
    if (d->op_code[0] != '\0' && number_of(rows, whole, COLUMN_channel_list_paused) != 0)
        return error_set(TL_ALREADY_DONE,
                         "%s is not paused by itself: channel %s is paused as a whole, and goes "
                         "on as a whole",
                         name, d->channel);
    return error_set(TL_ALREADY_DONE, is_all(d) ? "%s does not drain" : "%s is not paused", name);
}

static tl_status judge(const store_channel_decision *d, const db_result *rows)
{
    const size_t row = row_of(rows, d->op_code);
    char name[160];

    name_of(name, d);
    if (rows->rows == 0 && !is_all(d))
        return error_set(TL_NOT_FOUND,
                         "no workflow has registered channel %s: `tradelock channel "
                         "ls` names those that are known",
                         d->channel);
    if (row == SIZE_MAX && d->op_code[0] != '\0')
        return error_set(TL_NOT_FOUND,
                         "no workflow has registered %s: `tradelock channel ls` names "
                         "the operations that are known",
                         name);
    return is_so(d, rows, row) ? is_so_already(d, rows, row, name) : TL_OK;
}

/* In one transaction with its record.  What the procedure refuses was decided meanwhile. */
static db_answer write_decision(struct deciding *d, db *connection)
{
    db_answer answer = db_begin(connection);

    d->sent = 1;
    if (answer == DB_DONE)
        answer = store_channel_decide(connection, &d->half);
    if (answer == DB_ERROR && db_errno(connection) == REFUSED_BY_PROCEDURE) {
        d->status = error_set(TL_BUSY, "another operator decided about it at the same moment");
        return db_rollback(connection);
    }
    return answer == DB_DONE ? db_commit(connection) : answer;
}

static db_answer run_decision(task *t, db *connection)
{
    struct deciding *d = t->context;
    RESULT rows = DB_RESULT_INIT;
    db_answer answer = store_channel_list(connection, d->half.channel, &rows);

    d->status = TL_OK;
    if (answer == DB_DONE && !(d->sent && is_own(&d->half, &rows))) {
        d->status = judge(&d->half, &rows);
        if (d->status == TL_OK)
            answer = write_decision(d, connection);
    }
    return answer;
}

static db_answer read_decision(task *t, db *connection)
{
    struct deciding *d = t->context;
    RESULT rows = DB_RESULT_INIT;
    db_answer answer = store_channel_list(connection, d->half.channel, &rows);

    if (answer == DB_DONE && d->sent && is_own(&d->half, &rows))
        t->verdict = VERDICT_APPLIED;
    return answer;
}

static tl_status check(const store_channel_decision *d)
{
    if (d->channel == NULL || d->channel[0] == '\0' || strlen(d->channel) > TL_CHANNEL_MAX ||
        text_check_name("the channel", d->channel, TL_CHANNEL_MAX) != TL_OK)
        return error_set(TL_INVALID, "a channel has a name of at most %d printable characters",
                         TL_CHANNEL_MAX);
    if (d->op_code[0] != '\0' && text_check_name("the operation", d->op_code, TL_OP_MAX) != TL_OK)
        return TL_INVALID;
    if (is_all(d) && d->op_code[0] != '\0')
        return error_set(TL_INVALID, "a drain is of all operations, not of %s", d->op_code);
    return read_check_person(d->actor, d->reason);
}

static tl_status decide(tl_client *client, const store_channel_decision *half, const char *what)
{
    struct deciding d = {.half = *half};
    static const task_kind kind = {.run = run_decision, .read = read_decision};
    task t = {.kind = &kind, .name = what, .context = &d};

    if (d.half.op_code == NULL)
        d.half.op_code = "";
    d.half.log_no = words_or_null(tl_log_uuid());
    TRY(check(&d.half));
    task_run(client->engine, &t, client->config.commit_ms);
    return t.verdict == VERDICT_APPLIED ? d.status : t.status;
}

/* What each kind of decision says of itself. */
#define ABOUT(said)                                                                                \
    .channel = (said)->channel, .op_code = (said)->op_code, .actor = (said)->actor,                \
    .reason = (said)->reason

static tl_status pause_or_resume(tl_client *client, const tl_pause *pause, int pauses)
{
    error_clear();
    TRY(client_check(client));
    if (pause == NULL || pause->version != TL_PAUSE_VERSION)
        return error_set(TL_INVALID, "pause is NULL or has no known version");
    return decide(client, &(store_channel_decision){ABOUT(pause), .pauses = pauses},
                  pauses ? "pause" : "resume");
}

tl_status tl_channel_pause(tl_client *client, const tl_pause *pause)
{
    return pause_or_resume(client, pause, 1);
}

tl_status tl_channel_resume(tl_client *client, const tl_pause *pause)
{
    return pause_or_resume(client, pause, 0);
}

tl_status tl_channel_limit(tl_client *client, const tl_limit *limit)
{
    error_clear();
    TRY(client_check(client));
    if (limit == NULL || limit->version != TL_LIMIT_VERSION)
        return error_set(TL_INVALID, "limit is NULL or has no known version");
    if (limit->sends < 0 || limit->sends > TL_LIMIT_SENDS_MAX || limit->per_second < 0 ||
        limit->per_second > TL_LIMIT_PER_SECOND_MAX)
        return error_set(TL_INVALID,
                         "a limit is 1 to %d sends at a time, and 1 to %d a second; 0 is none",
                         TL_LIMIT_SENDS_MAX, TL_LIMIT_PER_SECOND_MAX);
    if (limit->channel != NULL && strcmp(limit->channel, TL_CHANNEL_ALL) == 0)
        return error_set(TL_INVALID, "a limit is of one channel");
    return decide(client,
                  &(store_channel_decision){ABOUT(limit), .kind = LIMITS, .sends = limit->sends,
                                            .per_second = limit->per_second},
                  "limit");
}

static tl_status check_breaker(const tl_breaker *b)
{
    if (b->unknowns < 0 || b->unknowns > TL_BREAKER_UNKNOWNS_MAX)
        return error_set(TL_INVALID, "a breaker opens after 1 to %d unknown outcomes; 0 is none",
                         TL_BREAKER_UNKNOWNS_MAX);
    if (b->share < 0 || b->share > 100)
        return error_set(TL_INVALID, "a share is 1 to 100 per cent; 0 is none");
    if (b->window_s < 0 || b->window_s > TL_BREAKER_SECONDS_MAX || b->probe_s < 0 ||
        b->probe_s > TL_BREAKER_SECONDS_MAX)
        return error_set(TL_INVALID, "a window, and what is between two probes, is 1 to %d s",
                         TL_BREAKER_SECONDS_MAX);
    if ((b->share > 0) != (b->window_s > 0))
        return error_set(TL_INVALID, "a share and its window go together");
    if (b->unknowns == 0 && (b->share > 0 || b->probe_s > 0))
        return error_set(TL_INVALID, "no breaker has neither share nor probes");
    return TL_OK;
}

tl_status tl_channel_breaker(tl_client *client, const tl_breaker *breaker)
{
    error_clear();
    TRY(client_check(client));
    if (breaker == NULL || breaker->version != TL_BREAKER_VERSION)
        return error_set(TL_INVALID, "breaker is NULL or has no known version");
    TRY(check_breaker(breaker));
    return decide(client,
                  &(store_channel_decision){
                      ABOUT(breaker), .kind = BREAKS, .unknowns = breaker->unknowns,
                      .share = breaker->share, .window_s = breaker->window_s,
                      .probe_s = breaker->probe_s > 0 ? breaker->probe_s : TL_BREAKER_PROBE_S},
                  "breaker");
}

/* ------------------------------------------------------------------------- the list -- */

#define AT(member) COLUMN_channel_list_##member

static void take_row(tl_pause_row *to, const db_result *result, size_t row)
{
    const int same =
        to->channel != NULL && strcmp(to->channel, db_get_text(result, row, AT(channel))) == 0;

    TL_CHANNEL_MAP(RECORD_READ)
    TL_BREAKER_MAP(RECORD_READ)
    /* The channel as a whole comes first. */
    to->as_whole = to->op_code[0] == '\0' ? to->paused : same && to->as_whole;
    if (to->unknowns == 0)
        to->probe_s = 0;
}

#undef AT
#define AT(member) COLUMN_channel_use_##member

/* What is not limited has no row of use.  Limits are few. */
static void take_use(tl_pause_row *to, const db_result *result)
{
    to->permits = to->wanted = to->permits_ended = 0;
    to->ended_free_us = to->longest_hold_ms = to->next_us = 0;
    for (size_t row = 0; row < result->rows; row++) {
        if (strcmp(db_get_text(result, row, AT(channel)), to->channel) != 0 ||
            strcmp(db_get_text(result, row, AT(op_code)), to->op_code) != 0)
            continue;
        TL_CHANNEL_USE_MAP(RECORD_READ)
        return;
    }
}

#undef AT

static int is_any_limited(const db_result *r)
{
    for (size_t row = 0; row < r->rows; row++)
        if (db_get_int(r, row, COLUMN_channel_list_sends) > 0 ||
            db_get_int(r, row, COLUMN_channel_list_per_second) > 0)
            return 1;
    return 0;
}

tl_status tl_pause_list(tl_client *client, tl_pause_fn each, void *context)
{
    READING at = {.client = client};
    RESULT r = DB_RESULT_INIT, use = DB_RESULT_INIT;
    tl_pause_row one = {.channel = NULL};

    TRY(read_begin(&at));
    TRY(read_check_each(each != NULL));
    TRY(read_status(at.connection, store_channel_list(at.connection, NULL, &r),
                    "reading which channels are paused"));
    if (is_any_limited(&r))
        TRY(read_run(at.connection, &sql_channel_use, &use,
                     "reading how much of the channels' limits is used"));
    read_end(&at);
    for (size_t row = 0; row < r.rows; row++) {
        take_row(&one, &r, row);
        take_use(&one, &use);
        if (each(context, &one) != 0)
            break;
    }
    return TL_OK;
}

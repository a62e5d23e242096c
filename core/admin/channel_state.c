/* Tells what becomes of the trades at each channel: what ended lately, what waits, and since when a
 * channel gives no answer.  Reads only, and holds no connection while it tells. */
#include "admin/metrics_rows.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "client/read.h"
#include "store/bind.h"

#include <tradelock/admin/overview.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of one operation, so many of the trades of the last minutes are looked at: for a rate; for the
 * minutes since somebody looked; and for three hours at once. */
enum ended_rows { ENDED_ROWS = 500, ENDED_ROWS_PACE = 2000, ENDED_ROWS_DEEP = 20000 };
#define MINUTE_US INT64_C(60000000)

enum waits_column {
    WAITS_CHANNEL,
    WAITS_COUNT,
    WAITS_ANSWERED,
    WAITS_SILENT,
    WAITS_ANSWERED_US,
    WAITS_SILENT_US,
    WAITS_FIRST_SILENT_US,
    WAITS_LOOKED_AT,
    WAITS_ASKED_MINUTE,
    WAITS_NOW
};

enum ended_column {
    ENDED_NOW,
    ENDED_MINUTE,
    ENDED_CHANNEL,
    ENDED_SUCCEEDED,
    ENDED_DECLINED,
    ENDED_FAILED,
    ENDED_ANSWERED_US,
    ENDED_LOOKED_AT,
    ENDED_EARLIEST,
    ENDED_LATE_MINUTE,
    ENDED_TRADES
};

struct channel {
    char name[TL_CHANNEL_MAX + 1], op_code[TL_OP_MAX + 1];
    tl_channel_state state;
    int64_t silent_us, first_silent_us;
    int64_t from_us; /* all that ended since then was looked at; 0: all of the last minutes */
};

struct reading {
    struct channel *channels;
    size_t count, first; /* first: of the operation that is read now */
    int cut;             /* of that operation more was there than was looked at */
    unsigned minutes;
    enum ended_rows most;
    tl_pace pace;
    db_result rows;
};

/* The entry of a channel of the operation, made on first use; NULL: out of memory. */
static struct channel *channel_of(struct reading *reading, const char *op_code, const char *name)
{
    struct channel *one;

    for (size_t i = reading->first; i < reading->count; i++)
        if (strcmp(reading->channels[i].name, name) == 0)
            return &reading->channels[i];
    if (!memory_room(&reading->channels, reading->count, sizeof *reading->channels)) {
        error_set(TL_NO_MEMORY, "out of memory for the channels");
        return NULL;
    }
    one = &reading->channels[reading->count++];
    *one = (struct channel){.state.cut = reading->cut};
    text_copy(one->name, sizeof one->name, name);
    text_copy(one->op_code, sizeof one->op_code, op_code);
    return one;
}

static void cut(struct reading *reading)
{
    reading->cut = 1;
    for (size_t i = reading->first; i < reading->count; i++)
        reading->channels[i].state.cut = 1;
}

/* Whoever was asked for in this minute or the one before may still be in time. */
static void count_late(struct reading *reading, int64_t this_minute, int64_t asked_minute,
                       uint64_t trades)
{
    const int64_t ago = this_minute - asked_minute;

    if (ago > 1 && ago < TL_PACE_MINUTES)
        reading->pace.late[ago] += trades;
}

/* ------------------------------------------------------------------ what waits -- */

static void keep_later(int64_t *us, int64_t other_us)
{
    if (other_us > *us)
        *us = other_us;
}

static tl_status take_waits(struct reading *reading, const char *op_code)
{
    const db_result *r = &reading->rows;
    uint64_t looked_at = 0;

    for (size_t row = 0; row < r->rows; row++) {
        struct channel *one = channel_of(reading, op_code, db_get_text(r, row, WAITS_CHANNEL));
        int64_t first_us;

        if (one == NULL)
            return TL_NO_MEMORY;
        one->state.waits += db_get_uint(r, row, WAITS_COUNT);
        one->state.answered += db_get_uint(r, row, WAITS_ANSWERED);
        one->state.silent += db_get_uint(r, row, WAITS_SILENT);
        keep_later(&one->state.answered_us, db_get_int(r, row, WAITS_ANSWERED_US));
        keep_later(&one->silent_us, db_get_int(r, row, WAITS_SILENT_US));
        first_us = db_get_int(r, row, WAITS_FIRST_SILENT_US);
        if (first_us != 0 && (one->first_silent_us == 0 || first_us < one->first_silent_us))
            one->first_silent_us = first_us;
        count_late(reading, db_get_int(r, row, WAITS_NOW), db_get_int(r, row, WAITS_ASKED_MINUTE),
                   db_get_uint(r, row, WAITS_COUNT));
        looked_at += db_get_uint(r, row, WAITS_LOOKED_AT);
    }
    if (looked_at >= METRICS_OVERDUE_ROWS)
        cut(reading);
    return TL_OK;
}

/* What a compensating attempt holds waits as well. */
static tl_status take_working(struct reading *reading, const char *op_code)
{
    const db_result *r = &reading->rows;

    for (size_t row = 0; row < r->rows; row++) {
        struct channel *one;

        if (strcmp(db_get_text(r, row, METRICS_STATE), "working") != 0)
            continue;
        one = channel_of(reading, op_code, db_get_text(r, row, METRICS_CHANNEL));
        if (one == NULL)
            return TL_NO_MEMORY;
        one->state.waits += db_get_uint(r, row, METRICS_COUNT);
    }
    return TL_OK;
}

static tl_status read_waits(struct reading *reading, db *connection, const char *op_code)
{
    char retry_op[TL_OP_MAX + sizeof TL_RETRY_SUFFIX];

    TRY(read_status(connection,
                    SQL_RUN(connection, &reading->rows, channel_waits, .op_code = db_text(op_code),
                            .minutes = db_uint(TL_RATE_MINUTES),
                            .most = db_uint(METRICS_OVERDUE_ROWS)),
                    "reading what waits for the channels"));
    snprintf(retry_op, sizeof retry_op, "%s%s", op_code, TL_RETRY_SUFFIX);
    TRY(take_waits(reading, op_code));
    TRY(read_status(connection,
                    SQL_RUN(connection, &reading->rows, metrics_working,
                            .op_code = db_text(op_code), .retry_op = db_text(retry_op),
                            .most = db_uint(METRICS_ROWS)),
                    "counting trades that are worked on"));
    return take_working(reading, op_code);
}

/* ------------------------------------------------------------------ what ended -- */

/* How many of the last minutes are counted whole: what ended in the minute of the earliest end was
 * perhaps cut off. */
static unsigned whole_minutes(const struct reading *reading)
{
    const db_result *r = &reading->rows;
    int64_t back = 0;
    uint64_t looked_at = 0;

    for (size_t row = 0; row < r->rows; row++) {
        const int64_t ago = db_get_int(r, row, ENDED_NOW) - db_get_int(r, row, ENDED_EARLIEST);

        looked_at += db_get_uint(r, row, ENDED_LOOKED_AT);
        if (ago > back)
            back = ago;
    }
    return looked_at < reading->most || back > reading->minutes ? reading->minutes : (unsigned)back;
}

static tl_status take_ended(struct reading *reading, const char *op_code)
{
    const db_result *r = &reading->rows;
    tl_pace *pace = &reading->pace;
    const unsigned whole = whole_minutes(reading);

    for (size_t row = 0; row < r->rows; row++) {
        struct channel *one = channel_of(reading, op_code, db_get_text(r, row, ENDED_CHANNEL));
        int64_t ago;

        if (one == NULL)
            return TL_NO_MEMORY;
        if (pace->minute_us == 0)
            pace->minute_us = db_get_int(r, row, ENDED_NOW) * MINUTE_US;
        ago = pace->minute_us / MINUTE_US - db_get_int(r, row, ENDED_MINUTE);
        if (ago >= 0 && ago < TL_PACE_MINUTES)
            pace->paid[ago] += db_get_uint(r, row, ENDED_SUCCEEDED);
        keep_later(&one->state.answered_us, db_get_int(r, row, ENDED_ANSWERED_US));
        count_late(reading, db_get_int(r, row, ENDED_NOW), db_get_int(r, row, ENDED_LATE_MINUTE),
                   db_get_uint(r, row, ENDED_TRADES));
        if (ago >= TL_RATE_MINUTES)
            continue;
        one->state.succeeded += db_get_uint(r, row, ENDED_SUCCEEDED);
        one->state.declined += db_get_uint(r, row, ENDED_DECLINED);
        one->state.failed += db_get_uint(r, row, ENDED_FAILED);
    }
    if (whole < pace->whole)
        pace->whole = whole;
    if (whole < TL_RATE_MINUTES)
        cut(reading);
    for (size_t i = reading->first; whole < TL_RATE_MINUTES && i < reading->count; i++)
        reading->channels[i].from_us = pace->minute_us - whole * MINUTE_US;
    return TL_OK;
}

static tl_status read_ended(struct reading *reading, db *connection, const char *op_code)
{
    TRY(read_status(connection,
                    SQL_RUN(connection, &reading->rows, channel_ended, .op_code = db_text(op_code),
                            .minutes = db_uint(reading->minutes), .most = db_uint(reading->most)),
                    "counting what ended"));
    return take_ended(reading, op_code);
}

static tl_status read_channels(struct reading *reading, db *connection)
{
    store_operation next = {.op_code = ""};

    for (;;) {
        TRY(read_status(connection, store_operation_next(connection, &next),
                        "reading the operations"));
        if (next.op_code[0] == '\0')
            return TL_OK;
        if (text_is_retry_op(next.op_code))
            continue;
        reading->first = reading->count;
        reading->cut = 0;
        TRY(read_waits(reading, connection, next.op_code));
        TRY(read_ended(reading, connection, next.op_code));
    }
}

/* -------------------------------------------------------------------- telling -- */

static int by_name(const void *one, const void *other)
{
    const struct channel *a = one, *b = other;
    const int by_op = strcmp(a->op_code, b->op_code);

    return by_op != 0 ? by_op : strcmp(a->name, b->name);
}

/* No answer since the last one, or since the first trade that got none; as far back as was looked. */
static int64_t down_since(const struct channel *channel)
{
    const int64_t answered_us = channel->state.answered_us > channel->from_us
                                    ? channel->state.answered_us
                                    : channel->from_us;

    if (channel->silent_us <= answered_us)
        return 0;
    return channel->first_silent_us > answered_us ? channel->first_silent_us : answered_us;
}

static void tell(struct reading *reading, tl_channel_fn each, void *context)
{
    if (reading->count > 1)
        qsort(reading->channels, reading->count, sizeof reading->channels[0], by_name);
    for (size_t i = 0; i < reading->count; i++) {
        struct channel *one = &reading->channels[i];
        tl_channel_state *state = &one->state;

        state->op_code = one->op_code;
        state->channel = one->name;
        state->down_since_us = down_since(one);
        if (state->waits + state->succeeded + state->declined + state->failed > 0 &&
            each(context, state) != 0)
            return;
    }
}

tl_status tl_channel_list(tl_client *client, tl_pace *pace, tl_channel_fn each, void *context)
{
    struct reading reading = {.minutes = pace != NULL ? TL_PACE_MINUTES : TL_RATE_MINUTES,
                              .most = pace == NULL    ? ENDED_ROWS
                                      : pace->is_deep ? ENDED_ROWS_DEEP
                                                      : ENDED_ROWS_PACE,
                              .pace = TL_PACE_INIT,
                              .rows = DB_RESULT_INIT};
    READING at = {.client = client};
    tl_status status;

    TRY(read_begin(&at));
    if (pace != NULL && pace->version != TL_PACE_VERSION)
        return error_set(TL_INVALID, "the version of pace is not set");
    TRY(read_check_each(each != NULL));
    reading.pace.whole = reading.minutes;
    status = read_channels(&reading, at.connection);
    read_end(&at);
    if (status == TL_OK && pace != NULL)
        *pace = reading.pace;
    if (status == TL_OK)
        tell(&reading, each, context);
    db_result_free(&reading.rows);
    memory_free(reading.channels);
    return status;
}

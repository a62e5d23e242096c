/* Compares the server's clock with CLOCK_BOOTTIME, and has its jumps recorded and rows adjusted.
 * Touches tl_clock, rows of trades through tl_clock_settle(), and its own mutex. */
#include "client/clock_watch.h"

#include "base/clock.h"
#include "base/error.h"
#include "client/client.h"
#include "store/bind.h"
#include "store/store.h"
#include "store/clock.h"

#include <stdio.h>
#include <string.h>

#define PAGE 1000
/* How long ago a jump may have been if no process of this boot lived then: nobody knows.  Nor does
 * anybody infer a larger one from rows, which whoever writes rows could bring about. */
#define LONG_AGO_US (366 * INT64_C(86400000000))
/* A silent session may have died, or the clock jumped.  After this many looks every living session
 * has beaten. */
#define TRIAL_LOOKS 2
#define RECORD_AGAIN_MS 10

void clock_watch_init(clock_watch *self)
{
    pthread_mutex_init(&self->turn, NULL);
    pthread_mutex_init(&self->mutex, NULL);
    clock_boot_id(self->boot_id, sizeof self->boot_id);
}

void clock_watch_end(clock_watch *self)
{
    pthread_mutex_destroy(&self->mutex);
    pthread_mutex_destroy(&self->turn);
}

static int64_t margin_us(const tl_client *client)
{
    return client->config.clock_margin_ms * 1000;
}

/* No row is written by the clock of such a server.  What is recorded with the rights of the schema's
 * owner would be written there all the same, and end its replication. */
static int takes_no_writes(const db *connection)
{
    const db_server *server = db_server_of(connection);

    return server != NULL && atomic_load(&server->takes_no_writes);
}

/* Reads the server's clock, and notes the moments of ours before and after. */
static tl_status read_clock(db *connection, const char *boot_id, store_clock *found,
                            steady_look *look)
{
    db_answer answer;

    look->before_us = clock_boottime_us();
    answer = boot_id != NULL ? store_clock_open(connection, boot_id, found)
                             : store_clock_look(connection, found);
    look->after_us = clock_boottime_us();
    look->other_us = found->now_us;
    return db_read_status(connection, answer, "looking at the server's clock");
}

/* Whoever learns of a jump here knows at once that rows are not adjusted to it.  Needs:
 * watch->mutex held. */
static void believe(tl_client *client, const store_clock *found, const steady_look *look)
{
    clock_watch *watch = &client->clock;

    if (found->unsettled > 0)
        atomic_store(&watch->unclear, 1);
    memset(&watch->steady, 0, sizeof watch->steady);
    watch->doubt_us = 0;
    steady_learn(&watch->steady, look);
    watch->jumps = found->jumps;
}

/* The clock counts as clear unless rows are not adjusted, a new process has to look again, or a
 * claim met a moment that does not fit since the look began.  Needs: watch->turn and watch->mutex
 * held. */
static void be_clear(clock_watch *watch, int adjusted)
{
    atomic_store(&watch->unclear,
                 !adjusted || watch->trial > 0 || watch->doubt_us != 0 || watch->opens_later);
}

/* How far the clock was set; 0: it was not, or another process has recorded it.  Needs:
 * watch->mutex held. */
static int64_t judge(tl_client *client, const store_clock *found, const steady_look *look)
{
    clock_watch *watch = &client->clock;
    int64_t off_us;

    if (!watch->steady.known || found->jumps != watch->jumps) {
        believe(client, found, look);
        return 0;
    }
    off_us = steady_off_us(&watch->steady, look, margin_us(client));
    if (off_us == 0)
        steady_learn(&watch->steady, look);
    /* A claim saw the clock set, and it was set right again before this look. */
    if (off_us == 0)
        off_us = -watch->doubt_us;
    return off_us;
}

/* The row of tl_clock is taken while a page of rows is adjusted: whoever cannot come later waits.
 * since_us: the clock was set after this moment of CLOCK_BOOTTIME. */
static tl_status record(tl_client *client, db *connection, uint32_t known, int64_t size_us,
                        int64_t since_us, int64_t wait_ms)
{
    const int64_t deadline_ms = clock_deadline(wait_ms);
    db_answer answer;

    for (;;) {
        answer = SQL_RUN(
            connection, NULL, clock_stepped, .known = db_uint(known), .size_us = db_int(size_us),
            .before_us = db_int(clock_boottime_us() - since_us), .actor = db_text(client->actor));
        if (answer != DB_ERROR || !db_row_is_taken(connection) || clock_left_ms(deadline_ms) == 0)
            break;
        clock_sleep_until_ms(clock_deadline(RECORD_AGAIN_MS));
    }
    if (answer != DB_DONE)
        return db_error_status(connection, answer, "recording a clock jump");
    log_line(&client->logger, TL_ALARM, NULL, 0,
             "the server's clock was set %s by %lld.%03d s: nothing is sent again, "
             "failed or purged until every trade in process was looked through",
             size_us < 0 ? "back" : "forward",
             (long long)((size_us < 0 ? -size_us : size_us) / 1000000),
             (int)((size_us < 0 ? -size_us : size_us) / 1000 % 1000));
    return TL_OK;
}

/* The clock counts as unclear even if recording fails: the next look tries again.  What is believed
 * is the look that showed the jump, so the next one shows whatever was set since. */
static tl_status record_and_believe(tl_client *client, db *connection, int64_t size_us,
                                    int64_t since_us, int64_t wait_ms, store_clock *found,
                                    const steady_look *look)
{
    atomic_store(&client->clock.unclear, 1);
    TRY(record(client, connection, found->jumps, size_us, since_us, wait_ms));
    found->jumps++;
    found->unsettled++;
    pthread_mutex_lock(&client->clock.mutex);
    believe(client, found, look);
    pthread_mutex_unlock(&client->clock.mutex);
    return TL_OK;
}

/* A process that begins goes on from what the last process of this boot knew.  A moment of
 * CLOCK_BOOTTIME that is yet to come belongs to another one, such as a container's, and is ignored.
 * Needs: watch->mutex held. */
static void take_over(clock_watch *watch, const store_clock *found, const steady_look *look)
{
    if (watch->steady.known || !found->has_kept || found->kept_at_us > look->after_us)
        return;
    watch->steady = (steady){1, found->kept_least_us, found->kept_most_us, found->kept_at_us};
    watch->jumps = found->kept_jumps;
}

/* Whether a jump that rows alone tell of is larger than is believed: then it is not recorded, and
 * the clock stays unclear until it is, or until no row tells of it. */
static int is_too_large(tl_client *client, int64_t size_us, int is_new)
{
    if (size_us >= -LONG_AGO_US && size_us <= LONG_AGO_US)
        return 0;
    atomic_store(&client->clock.unclear, 1);
    if (is_new)
        log_line(&client->logger, TL_ALARM, NULL, 0,
                 "rows tell that the server's clock was set by %lld days, which is not believed: "
                 "nothing is sent again, failed or purged until somebody has looked at tl_session, "
                 "trade_lock_low_water and trade_lock for moments of another time",
                 (long long)(size_us / INT64_C(86400000000)));
    return 1;
}

static tl_status look_once(tl_client *client, db *connection, int opening)
{
    clock_watch *watch = &client->clock;
    int64_t size_us, since_us;
    store_clock found;
    steady_look look;
    tl_status status;
    const int is_new = !watch->opens_later;

    opening |= watch->opens_later;
    if (takes_no_writes(connection)) {
        watch->opens_later = opening;
        if (opening)
            atomic_store(&watch->unclear, 1);
        return TL_OK;
    }
    status = read_clock(connection, opening ? watch->boot_id : NULL, &found, &look);
    if (status != TL_OK)
        return status;
    watch->opens_later = 0;
    pthread_mutex_lock(&watch->mutex);
    take_over(watch, &found, &look);
    since_us = watch->steady.at_us - margin_us(client);
    size_us = judge(client, &found, &look);
    /* Rows written while the clock was set forward and back show a larger jump. */
    if (opening && found.behind_us > margin_us(client) && -found.behind_us < size_us) {
        size_us = -found.behind_us;
        since_us = look.after_us - LONG_AGO_US;
    }
    if (opening && found.silent)
        watch->trial = TRIAL_LOOKS;
    else if (watch->trial > 0)
        watch->trial--;
    pthread_mutex_unlock(&watch->mutex);
    if (opening && is_too_large(client, size_us, is_new)) {
        watch->opens_later = 1;
        return TL_OK;
    }
    if (size_us != 0)
        status = record_and_believe(client, connection, size_us, since_us,
                                    opening ? client->config.pool_wait_ms : 0, &found, &look);
    if (status == TL_OK) {
        pthread_mutex_lock(&watch->mutex);
        be_clear(watch, found.unsettled == 0);
        pthread_mutex_unlock(&watch->mutex);
    }
    return status;
}

static tl_status look(tl_client *client, int opening)
{
    db *connection = NULL;
    tl_status status;

    pthread_mutex_lock(&client->clock.turn);
    status = pool_get(client->connections, POOL_QUICK,
                      opening ? client->config.pool_wait_ms : client->config.beat_ms, &connection);
    if (status == TL_OK)
        status = look_once(client, connection, opening);
    pool_put(client->connections, connection);
    pthread_mutex_unlock(&client->clock.turn);
    return status;
}

tl_status clock_watch_open(tl_client *client)
{
    return look(client, 1);
}

tl_status clock_watch_look(tl_client *client)
{
    return look(client, 0);
}

static tl_status search(db *connection, int64_t *future_us)
{
    store_operation operation = {.op_code = ""};
    int64_t found_us;
    db_answer answer;

    *future_us = 0;
    do {
        answer = store_operation_next(connection, &operation);
        if (answer != DB_DONE || operation.op_code[0] == '\0')
            break;
        answer = store_clock_future(connection, operation.op_code, &found_us);
        if (answer == DB_DONE && found_us > *future_us)
            *future_us = found_us;
    } while (answer == DB_DONE);
    return db_read_status(connection, answer, "looking for rows from the future");
}

tl_status clock_watch_search(tl_client *client)
{
    db *connection = NULL;
    store_clock found;
    steady_look now;
    int64_t future_us;
    tl_status status;

    pthread_mutex_lock(&client->clock.turn);
    status = pool_get(client->connections, POOL_QUICK, client->config.beat_ms, &connection);
    future_us = 0;
    if (status == TL_OK && !takes_no_writes(connection))
        status = search(connection, &future_us);
    if (status == TL_OK && future_us > margin_us(client) && !is_too_large(client, -future_us, 1)) {
        status = read_clock(connection, NULL, &found, &now);
        if (status == TL_OK && found.unsettled == 0)
            status = record_and_believe(client, connection, -future_us, now.after_us - LONG_AGO_US,
                                        0, &found, &now);
    }
    pool_put(client->connections, connection);
    pthread_mutex_unlock(&client->clock.turn);
    return status;
}

/* Tells how many jumps are left after a page.  TL_TRY_AGAIN: another process adjusts rows, or has a
 * row of the page locked. */
static tl_status adjust_page(tl_client *client, db *connection, unsigned *left,
                             unsigned long *changed)
{
    RESULT result = DB_RESULT_INIT;
    unsigned rows = 0, mine = 0;
    db_answer answer =
        SQL_RUN(connection, NULL, clock_settle, .most = db_uint(PAGE),
                .thread_no = db_text(tl_thread_uuid()), .actor = db_text(client->actor));
    tl_status status;

    if (answer == DB_DONE)
        answer = db_run(connection, &sql_clock_settled, NULL, 0, &result);
    status = db_error_status(connection, answer, "adjusting rows after a clock jump");
    if (status == TL_OK && sscanf(db_get_text(&result, 0, 0), "%u %u %u", left, &rows, &mine) != 3)
        status = error_set(TL_INTERNAL, "tl_clock_settle() did not say what it did");
    else if (status == TL_OK && !mine)
        status = error_set(TL_TRY_AGAIN, "another process adjusts rows after a clock jump");
    *changed += rows;
    return status;
}

/* It uses a connection that waits for rows, since among so many rows one would always be locked. */
static tl_status adjust(tl_client *client, int64_t budget_ms, unsigned long *changed)
{
    const int64_t deadline_ms = clock_deadline(budget_ms);
    db *connection = NULL;
    unsigned left = 1;
    tl_status status =
        pool_get(client->connections, POOL_BUSINESS, client->config.beat_ms, &connection);

    if (status == TL_OK && takes_no_writes(connection))
        status = error_set(TL_READ_ONLY, "the server takes no writes: no rows are adjusted to its "
                                         "clock");
    while (status == TL_OK && left > 0 && clock_left_ms(deadline_ms) > 0)
        status = adjust_page(client, connection, &left, changed);
    pool_put(client->connections, connection);
    if (status == TL_OK && left > 0)
        return error_set(TL_TRY_AGAIN, "rows are not yet adjusted to a jump of the server's clock");
    return status;
}

tl_status clock_watch_adjust(tl_client *client, int64_t budget_ms)
{
    clock_watch *watch = &client->clock;
    unsigned long changed = 0;
    tl_status status;

    pthread_mutex_lock(&watch->turn);
    status = adjust(client, budget_ms, &changed);
    if (status == TL_OK && changed > 0)
        log_line(&client->logger, TL_WARNING, NULL, 0,
                 "a jump of the server's clock is over: %lu rows were adjusted", changed);
    if (status == TL_OK) {
        pthread_mutex_lock(&watch->mutex);
        be_clear(watch, 1);
        pthread_mutex_unlock(&watch->mutex);
    }
    pthread_mutex_unlock(&watch->turn);
    return status;
}

tl_status clock_watch_unclear(void)
{
    return error_set(TL_TRY_AGAIN, "the server's clock was set, and the trades in process "
                                   "are not looked through yet");
}

int clock_watch_is_clear(const tl_client *client)
{
    return !atomic_load(&client->clock.unclear);
}

tl_status clock_watch_check(const tl_client *client)
{
    return clock_watch_is_clear(client) ? TL_OK : clock_watch_unclear();
}

/* How far the moments of a row lie beyond the latest that is possible; 0 or less: not at all. */
static int64_t too_late_us(const tl_view *view)
{
    const int64_t sent_us = view->send_until_us - view->now_us - TL_HOLD_MAX_MS * INT64_C(1000);
    const int64_t asked_us = view->not_found_since_us - view->now_us;

    return sent_us > asked_us ? sent_us : asked_us;
}

/* How far the moment that the server told after before_us lies from where its clock must be.
 * Needs: watch->mutex held. */
static int64_t off_us(tl_client *client, int64_t server_us, int64_t before_us)
{
    const steady_look seen = {server_us, before_us, clock_boottime_us()};

    return steady_off_us(&client->clock.steady, &seen, margin_us(client));
}

/* Needs: watch->mutex held. */
static void doubt_clock(clock_watch *watch, int64_t by_us)
{
    watch->doubt_us = by_us;
    atomic_store(&watch->unclear, 1);
}

int clock_watch_fits(tl_client *client, const tl_view *view, int64_t before_us)
{
    clock_watch *watch = &client->clock;
    const int64_t late_us = too_late_us(view);
    int64_t by_us;

    pthread_mutex_lock(&watch->mutex);
    by_us = off_us(client, view->now_us, before_us);
    if (by_us == 0 && late_us > margin_us(client) && !is_too_large(client, -late_us, 1))
        by_us = late_us;
    if (by_us != 0)
        doubt_clock(watch, by_us);
    pthread_mutex_unlock(&watch->mutex);
    return by_us == 0 && late_us <= margin_us(client);
}

int clock_watch_was_back(tl_client *client, int64_t server_us, int64_t before_us)
{
    clock_watch *watch = &client->clock;
    int64_t by_us;

    pthread_mutex_lock(&watch->mutex);
    by_us = off_us(client, server_us, before_us);
    if (by_us < 0)
        doubt_clock(watch, by_us);
    pthread_mutex_unlock(&watch->mutex);
    return by_us < 0;
}

void clock_watch_keep(void *context, store_session_clock *kept)
{
    clock_watch *watch = &((tl_client *)context)->clock;

    pthread_mutex_lock(&watch->mutex);
    *kept = (store_session_clock){
        .boot_id = watch->steady.known && watch->boot_id[0] != '\0' ? watch->boot_id : NULL,
        .at_us = watch->steady.at_us,
        .least_us = watch->steady.least_us,
        .most_us = watch->steady.most_us,
        .jumps = watch->jumps,
    };
    pthread_mutex_unlock(&watch->mutex);
}

void clock_watch_now(tl_client *client, int64_t *least_us, int64_t *most_us)
{
    clock_watch *watch = &client->clock;

    pthread_mutex_lock(&watch->mutex);
    if (!steady_now(&watch->steady, clock_boottime_us(), margin_us(client), least_us, most_us)) {
        *least_us = 0;
        *most_us = STRETCH_END_US;
    }
    pthread_mutex_unlock(&watch->mutex);
}

int64_t clock_watch_latest_us(tl_client *client)
{
    clock_watch *watch = &client->clock;
    int64_t least_us, most_us;

    pthread_mutex_lock(&watch->mutex);
    if (atomic_load(&watch->unclear))
        most_us = 0;
    else if (!steady_now(&watch->steady, clock_boottime_us(), 0, &least_us, &most_us))
        most_us = STRETCH_END_US;
    pthread_mutex_unlock(&watch->mutex);
    return most_us;
}

uint32_t clock_watch_jumps(tl_client *client)
{
    uint32_t jumps;

    pthread_mutex_lock(&client->clock.mutex);
    jumps = client->clock.jumps;
    pthread_mutex_unlock(&client->clock.mutex);
    return jumps;
}

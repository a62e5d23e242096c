/* Reads which channels are paused, and keeps it for the process.  Touches trade_channel, which it
 * only reads but for the names that a workflow makes known. */
#include "client/pauses.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "client/breakers.h"
#include "client/client.h"
#include "client/limits.h"
#include "store/bind.h"
#include "store/channel.h"

#include <tradelock/layer.h>

#include <assert.h>
#include <string.h>

struct pause {
    char channel[TL_CHANNEL_MAX + 1], op_code[TL_OP_MAX + 1]; /* "": the channel as a whole */
    char reason[TL_REMARK_MAX + 1], account[128];
    int64_t since_us;
    /* Of a drain: it holds from this moment on, by the clock of the boot, and did so once. */
    int64_t from_ms;
    int holds;
};

void pauses_init(channel_pauses *all)
{
    pthread_mutex_init(&all->mutex, NULL);
}

void pauses_end(channel_pauses *all)
{
    memory_free(all->list);
    all->list = NULL;
    pthread_mutex_destroy(&all->mutex);
}

static tl_status copy_rows(struct pause **list, const db_result *r, int64_t notice_ms)
{
    *list = NULL;
    if (r->rows == 0)
        return TL_OK;
    *list = memory_new_array(r->rows, sizeof **list);
    if (*list == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for the channels that are paused");
    for (size_t row = 0; row < r->rows; row++) {
        struct pause *one = &(*list)[row];
        /* What is left of the notice that a drain gives. */
        const int64_t for_ms = db_get_int(r, row, PAUSED_FOR_US) / 1000;

        text_copy(one->channel, sizeof one->channel, db_get_text(r, row, PAUSED_CHANNEL));
        text_copy(one->op_code, sizeof one->op_code, db_get_text(r, row, PAUSED_OP));
        text_copy(one->reason, sizeof one->reason, db_get_text(r, row, PAUSED_REASON));
        text_copy(one->account, sizeof one->account, db_get_text(r, row, PAUSED_ACCOUNT));
        one->since_us = db_get_int(r, row, PAUSED_SINCE_US);
        one->from_ms = clock_deadline(for_ms < 0 || for_ms > notice_ms ? 0 : notice_ms - for_ms);
    }
    return TL_OK;
}

static int is_among(const struct pause *one, const struct pause *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(one->channel, list[i].channel) == 0 &&
            strcmp(one->op_code, list[i].op_code) == 0)
            return 1;
    return 0;
}

static int drains(const struct pause *one)
{
    return strcmp(one->channel, TL_CHANNEL_ALL) == 0;
}

/* What was read of a drain first stays: no clock that is set back makes it hold later. */
static void keep_moment(struct pause *is, const channel_pauses *was)
{
    for (size_t i = 0; i < was->count; i++) {
        const struct pause *one = &was->list[i];

        if (!drains(one) || one->since_us != is->since_us)
            continue;
        is->holds = one->holds;
        if (one->from_ms < is->from_ms)
            is->from_ms = one->from_ms;
    }
}

static void tell_begin(const struct tl_client *client, const struct pause *one)
{
    if (drains(one))
        log_line(&client->logger, TL_WARNING, NULL, 0,
                 "operators drain the installation (%s), and in a moment nothing new is begun: %s",
                 one->account, one->reason);
    else if (one->op_code[0] != '\0')
        log_line(&client->logger, TL_WARNING, NULL, 0,
                 "channel %s is paused for %s by %s, and nothing new is sent: %s", one->channel,
                 one->op_code, one->account, one->reason);
}

static void tell_end(const struct tl_client *client, const struct pause *one)
{
    if (drains(one))
        log_line(&client->logger, TL_WARNING, NULL, 0, "the drain is over");
    else if (one->op_code[0] != '\0')
        log_line(&client->logger, TL_WARNING, NULL, 0, "channel %s goes on for %s", one->channel,
                 one->op_code);
}

/* Says once what this process does differently from now on. */
static void tell_changes(const struct tl_client *client, const channel_pauses *was,
                         const channel_pauses *is)
{
    for (size_t i = 0; i < is->count; i++)
        if (!is_among(&is->list[i], was->list, was->count))
            tell_begin(client, &is->list[i]);
    for (size_t i = 0; i < was->count; i++)
        if (!is_among(&was->list[i], is->list, is->count))
            tell_end(client, &was->list[i]);
}

static void take(struct tl_client *client, struct pause *list, size_t count)
{
    channel_pauses *all = &client->pauses, is = {.list = list, .count = count};
    struct pause *old;
    int is_drained = 0;

    pthread_mutex_lock(&all->mutex);
    for (size_t i = 0; i < count; i++)
        if (drains(&list[i])) {
            is_drained = 1;
            keep_moment(&list[i], all);
        }
    tell_changes(client, all, &is);
    old = all->list;
    all->list = list;
    all->count = count;
    if (!is_drained)
        all->drained_ms = 0;
    else if (all->drained_ms == 0)
        all->drained_ms = clock_boottime_ms();
    if (all->fails)
        log_line(&client->logger, TL_WARNING, NULL, 0, "paused channels are seen again");
    all->fails = 0;
    atomic_store(&all->any, count > 0);
    pthread_mutex_unlock(&all->mutex);
    memory_free(old);
}

static tl_status failed(struct tl_client *client, tl_status status)
{
    channel_pauses *all = &client->pauses;

    pthread_mutex_lock(&all->mutex);
    if (!all->fails)
        log_line(&client->logger, TL_ALARM, NULL, 0,
                 "which channels are paused cannot be read, so what was read last holds: %s",
                 tl_error_message());
    all->fails = 1;
    pthread_mutex_unlock(&all->mutex);
    return status;
}

static tl_status look(struct tl_client *client, db *connection, int64_t notice_ms)
{
    db_result r = DB_RESULT_INIT;
    struct pause *list = NULL;
    tl_status status =
        db_read_status(connection, db_run(connection, &sql_channel_paused, NULL, 0, &r),
                       "reading which channels are paused");
    size_t count = r.rows;

    if (status == TL_OK)
        status = copy_rows(&list, &r, notice_ms);
    db_result_free(&r);
    if (status != TL_OK)
        return failed(client, status);
    take(client, list, count);
    return TL_OK;
}

tl_status pauses_look(struct tl_client *client, db *connection)
{
    return look(client, connection, 0);
}

tl_status pauses_look_again(struct tl_client *client)
{
    db *connection = NULL;
    tl_status status =
        pool_get(client->connections, POOL_QUICK, client->config.beat_ms, &connection);

    status =
        status == TL_OK ? look(client, connection, client->config.beat_ms) : failed(client, status);
    if (status == TL_OK)
        status = limits_look(client, connection);
    if (status == TL_OK)
        status = breakers_look(client, connection);
    pool_put(client->connections, connection);
    return status;
}

/* Decided under the mutex and never taken back: whoever looked before is counted already.  Needs:
 * the mutex held. */
static int holds(struct pause *one)
{
    one->holds |= clock_left_ms(one->from_ms) == 0;
    return one->holds;
}

static int fits(struct pause *one, const char *channel, const char *op_code)
{
    if (drains(one))
        return holds(one);
    return (channel == NULL || strcmp(one->channel, channel) == 0) &&
           (strcmp(one->op_code, op_code) == 0 || (channel != NULL && one->op_code[0] == '\0'));
}

/* No customer hears an operator's reason. */
static tl_status refuse(const struct pause *one, const char *op_code)
{
    if (drains(one))
        return error_set(TL_OVERLOADED, "operators drain the installation: nothing was written; "
                                        "try again later");
    return error_set(
        TL_OVERLOADED,
        "operators have paused channel %s for %s: nothing was written; try again later",
        one->channel, op_code);
}

tl_status pauses_check(struct tl_client *client, const char *channel, const char *op_code)
{
    channel_pauses *all = &client->pauses;
    tl_status status = TL_OK;

    /* Not of class RETRY: the trade may be paid at the other one. */
    if (atomic_load(&all->is_copy))
        return error_set(TL_BAD_CONFIG, "another shard of the settings leads to this database, or "
                                        "to a copy of it: nothing was written");
    if (!atomic_load(&all->any))
        return TL_OK;
    pthread_mutex_lock(&all->mutex);
    for (size_t i = 0; i < all->count && status == TL_OK; i++)
        if (fits(&all->list[i], channel, op_code))
            status = refuse(&all->list[i], op_code);
    pthread_mutex_unlock(&all->mutex);
    return status;
}

/* Who is refused is not counted, so that the count comes to 0 while callers try again and again.
 * Counted first and looked at then, in one order for all threads: an ask that the count did not
 * have sees the drain. */
tl_status pauses_enter(struct tl_client *client, const char *channel, const char *op_code)
{
    tl_status status = pauses_check(client, channel, op_code);

    if (status != TL_OK)
        return status;
    pauses_stay(client);
    status = pauses_check(client, channel, op_code);
    if (status != TL_OK)
        pauses_leave(client);
    return status;
}

void pauses_set_copy(struct tl_client *client, int is_copy)
{
    atomic_store(&client->pauses.is_copy, is_copy);
}

void pauses_stay(struct tl_client *client)
{
    atomic_fetch_add(&client->pauses.under_way, 1);
}

void pauses_leave(struct tl_client *client)
{
    const unsigned before = atomic_fetch_sub(&client->pauses.under_way, 1);

    assert(before > 0);
    (void)before;
}

int64_t pauses_obeyed(struct tl_client *client)
{
    channel_pauses *all = &client->pauses;
    int64_t since_us = 0;

    if (!atomic_load(&all->any))
        return 0;
    pthread_mutex_lock(&all->mutex);
    for (size_t i = 0; i < all->count; i++)
        if (drains(&all->list[i]) && holds(&all->list[i]))
            since_us = all->list[i].since_us;
    if (since_us != 0 && atomic_load(&all->under_way) == 0)
        all->obeyed_us = since_us;
    if (since_us != all->obeyed_us)
        since_us = 0;
    pthread_mutex_unlock(&all->mutex);
    return since_us;
}

int pauses_drains(struct tl_client *client)
{
    channel_pauses *all = &client->pauses;
    int is;

    if (!atomic_load(&all->any))
        return 0;
    pthread_mutex_lock(&all->mutex);
    is = all->drained_ms != 0;
    pthread_mutex_unlock(&all->mutex);
    return is;
}

int pauses_just_drains(struct tl_client *client)
{
    channel_pauses *all = &client->pauses;
    int just;

    if (!atomic_load(&all->any))
        return 0;
    pthread_mutex_lock(&all->mutex);
    just = all->drained_ms != 0 && clock_boottime_ms() - all->drained_ms < PAUSES_HURRY_MS;
    pthread_mutex_unlock(&all->mutex);
    return just;
}

/* ------------------------------------------------------------------- for layers above -- */

tl_status tl_channel_check(tl_client *client, const char *channel, const char *op_code)
{
    tl_status status;

    error_clear();
    status = client_check(client);
    if (status == TL_OK && op_code == NULL)
        status = error_set(TL_INVALID, "op_code is NULL");
    if (status == TL_OK)
        status = pauses_check(client, channel, op_code);
    return status == TL_OK ? breakers_check(client, channel, op_code, NULL) : status;
}

int tl_channel_may_probe(tl_client *client, const char *channel, const char *op_code)
{
    return client_check(client) == TL_OK && channel != NULL && op_code != NULL &&
           pauses_check(client, channel, op_code) == TL_OK &&
           breakers_may_probe(client, channel, op_code, 0);
}

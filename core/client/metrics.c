/* Writes what a client counted, as Prometheus reads it.  Reads counters and the clock; touches
 * neither the server nor any handle. */
#include "base/metrics.h"

#include "base/error.h"
#include "client/calls.h"
#include "client/client.h"

#include <ctype.h>
#include <string.h>

#define LABEL_SPACE 32

static int64_t value_of(const atomic_uint_fast64_t *counter)
{
    return (int64_t)atomic_load_explicit(counter, memory_order_relaxed);
}

static void counter(metrics_text *m, const char *name, const char *help,
                    const atomic_uint_fast64_t *value)
{
    metrics_one(m, name, "counter", help, value_of(value), 0);
}

/* ---------------------------------------------------------------------- statuses -- */

/* Values of labels are in small letters. */
static const char *lower(char to[LABEL_SPACE], const char *word)
{
    size_t i = 0;

    for (; word[i] != '\0' && i < LABEL_SPACE - 1; i++)
        to[i] = (char)tolower((unsigned char)word[i]);
    to[i] = '\0';
    return to;
}

/* Those that are usual are written from the beginning, so that a rate can be told of the first. */
static void by_status(metrics_text *m, const char *name, const char *label,
                      const atomic_uint_fast64_t counts[TL_STATUS_LAST_], const tl_status *usual,
                      size_t usual_count)
{
    char word[LABEL_SPACE];

    for (int status = 0; status < TL_STATUS_LAST_; status++) {
        int is_usual = 0;

        for (size_t i = 0; i < usual_count; i++)
            is_usual |= usual[i] == (tl_status)status;
        if (is_usual || value_of(&counts[status]) > 0)
            metrics_line(m, name, value_of(&counts[status]), 0, label,
                         lower(word, tl_status_name((tl_status)status) + strlen("TL_")), NULL);
    }
}

#define BY_STATUS(m, name, label, counts, ...)                                                     \
    by_status(m, name, label, counts, (const tl_status[]){__VA_ARGS__},                            \
              sizeof((const tl_status[]){__VA_ARGS__}) / sizeof(tl_status))

static void write_locks(metrics_text *m, const client_counters *c)
{
    counter(m, "tradelock_asks_total", "Asks for a lock of any kind.", &c->asks);
    counter(m, "tradelock_grants_total", "Locks that were granted.", &c->grants);
    metrics_begin(m, "tradelock_refusals_total", "counter", "Asks that were refused, by reason.");
    BY_STATUS(m, "tradelock_refusals_total", "reason", c->refused_as, TL_FAILED, TL_ALREADY_DONE,
              TL_BUSY, TL_CUSTOMER_BUSY, TL_MISMATCH, TL_IN_DOUBT, TL_QUEUED, TL_PARKED,
              TL_IN_CONFLICT, TL_ASK_CHANNEL, TL_MISDIRECTED);
    metrics_begin(m, "tradelock_endings_total", "counter",
                  "Holds of trades that were ended, by what the trade became.");
    BY_STATUS(m, "tradelock_endings_total", "outcome", c->ended_as, TL_SUCCEEDED, TL_FAILED,
              TL_IN_DOUBT, TL_QUEUED, TL_PARKED);
    counter(m, "tradelock_locks_lost_total", "Holds that were taken over before they were ended.",
            &c->lost);
    counter(m, "tradelock_unknown_total", "Calls that were answered TL_UNKNOWN.", &c->unknown);
    counter(m, "tradelock_lanes_opened_total", "Trades that were left to the retry lane.",
            &c->opened);
    counter(m, "tradelock_claims_total", "Trades that were claimed from the retry lane.",
            &c->claimed);
    counter(m, "tradelock_arms_total", "Sends that were allowed on the retry lane.", &c->armed);
    metrics_begin(m, "tradelock_ask_duration_seconds", "histogram",
                  "How long asks for trades took, waiting for a lock included.");
    metrics_histogram(m, "tradelock_ask_duration_seconds", &histogram_of_times, &c->asks_took,
                      NULL);
    metrics_begin(m, "tradelock_ending_duration_seconds", "histogram",
                  "How long the database work of endings of trades took.");
    metrics_histogram(m, "tradelock_ending_duration_seconds", &histogram_of_times, &c->endings_took,
                      NULL);
}

static void write_breakers(metrics_text *m, tl_client *client)
{
    static const char name[] = "tradelock_channel_breaker_open";
    const struct gate *one = NULL;
    gate_counts counts;

    metrics_begin(m, name, "gauge",
                  "1: this process takes the channel's breaker for open.  The operation is empty "
                  "for one of all operations together.");
    while ((one = gates_next(&client->gates, one, &counts)) != NULL)
        if (counts.has_breaker)
            metrics_line(m, name, counts.is_open, 0, "channel", counts.channel, "operation",
                         counts.op_code, NULL);
    counter(m, "tradelock_channel_breaker_refusals_total",
            "Asks that met an open breaker; most of them were refused.", &client->counters.broken);
}

/* ------------------------------------------------------------------ database work -- */

static void write_engine(metrics_text *m, const transition_counters *t)
{
    static const char lost[] = "tradelock_lost_answers_total";

    metrics_begin(m, "tradelock_group_tasks", "histogram",
                  "Tasks that shared one statement and one commit.");
    metrics_histogram(m, "tradelock_group_tasks", &histogram_of_tasks, &t->group_tasks, NULL);
    metrics_begin(m, lost, "counter",
                  "Tasks whose answer was lost, by what was found out: applied, superseded, "
                  "not_done, or unknown so far.");
    metrics_line(m, lost, value_of(&t->lost_applied), 0, "found", "applied", NULL);
    metrics_line(m, lost, value_of(&t->lost_superseded), 0, "found", "superseded", NULL);
    metrics_line(m, lost, value_of(&t->lost_not_done), 0, "found", "not_done", NULL);
    metrics_line(m, lost, value_of(&t->lost_unknown), 0, "found", "unknown", NULL);
    counter(m, "tradelock_repeats_total", "Tries after a statement that the server undid.",
            &t->repeats);
    counter(m, "tradelock_connections_killed_total",
            "Connections that were ended to settle a lost answer.", &t->killed);
}

static void write_server(metrics_text *m, pool *connections)
{
    static const char errors[] = "tradelock_server_errors_total";
    db_counters sum;
    uint64_t reconnects;

    pool_count(connections, &sum, &reconnects);
    metrics_one(m, "tradelock_statements_total", "counter", "Statements that were sent.",
                (int64_t)sum.statements, 0);
    metrics_one(m, "tradelock_reconnects_total", "counter", "Lost connections that were replaced.",
                (int64_t)reconnects, 0);
    metrics_begin(m, errors, "counter",
                  "Errors after which work is repeated: 1213 deadlock, 1205 lock wait, 1020 "
                  "changed since read.");
    metrics_line(m, errors, (int64_t)sum.deadlocks, 0, "code", "1213", NULL);
    metrics_line(m, errors, (int64_t)sum.lock_waits, 0, "code", "1205", NULL);
    metrics_line(m, errors, (int64_t)sum.snapshot_conflicts, 0, "code", "1020", NULL);
}

static void write_pool(metrics_text *m, pool *connections)
{
    pool_waits waits[POOL_BEAT];

    for (int kind = 0; kind < POOL_BEAT; kind++)
        waits[kind] = pool_count_waits(connections, (pool_kind)kind);
    metrics_begin(m, "tradelock_pool_waits_total", "counter",
                  "Calls that had to wait for a free connection.");
    for (int kind = 0; kind < POOL_BEAT; kind++)
        metrics_line(m, "tradelock_pool_waits_total", (int64_t)waits[kind].waits, 0, "pool",
                     pool_kind_name((pool_kind)kind), NULL);
    metrics_begin(m, "tradelock_pool_wait_seconds_total", "counter", "How long they waited.");
    for (int kind = 0; kind < POOL_BEAT; kind++)
        metrics_line(m, "tradelock_pool_wait_seconds_total", (int64_t)waits[kind].waited_us, 6,
                     "pool", pool_kind_name((pool_kind)kind), NULL);
    metrics_begin(m, "tradelock_pool_timeouts_total", "counter",
                  "Calls for which no connection became free in time.");
    for (int kind = 0; kind < POOL_BEAT; kind++)
        metrics_line(m, "tradelock_pool_timeouts_total", (int64_t)waits[kind].timeouts, 0, "pool",
                     pool_kind_name((pool_kind)kind), NULL);
}

static void write_session(metrics_text *m, const tl_client *client)
{
    session_counters beats;

    session_count(client->session, &beats);
    metrics_begin(m, "tradelock_beats_total", "counter", "Heartbeats of this process, by answer.");
    metrics_line(m, "tradelock_beats_total", (int64_t)beats.beats, 0, "answer", "confirmed", NULL);
    metrics_line(m, "tradelock_beats_total", (int64_t)beats.unreachable, 0, "answer", "none", NULL);
    metrics_one(m, "tradelock_sessions_ended_total", "counter",
                "Silent sessions of other processes that this one ended.",
                (int64_t)beats.ended_others, 0);
    metrics_one(m, "tradelock_session_left_seconds", "gauge",
                "How long this process is certainly alive without another heartbeat.",
                life_left_ms(session_life(client->session)), 3);
}

/* ----------------------------------------------------------------------- channels -- */

static void write_answers(metrics_text *m, const struct tl_calls *c)
{
    char word[LABEL_SPACE];

    for (unsigned i = 0; i < c->answer_count; i++)
        metrics_line(m, "tradelock_channel_answers_total", value_of(&c->answered[i]), 0, "channel",
                     c->channel, "operation", c->op_code, "call", c->call, "answer",
                     lower(word, c->answers[i]), NULL);
}

static void write_calls(metrics_text *m, const struct tl_calls *first)
{
    if (first == NULL)
        return;
    metrics_begin(m, "tradelock_channel_answers_total", "counter",
                  "What a channel answered, by call.");
    for (const struct tl_calls *c = first; c != NULL; c = c->next)
        write_answers(m, c);
    metrics_begin(m, "tradelock_channel_duration_seconds", "histogram",
                  "How long calls of a channel took.");
    for (const struct tl_calls *c = first; c != NULL; c = c->next)
        metrics_histogram(m, "tradelock_channel_duration_seconds", &histogram_of_times, &c->took,
                          "channel", c->channel, "operation", c->op_code, "call", c->call, NULL);
}

static void write_limits(metrics_text *m, channel_gates *all)
{
    static const char sends[] = "tradelock_channel_sends_under_way",
                      refused[] = "tradelock_channel_limit_refusals_total";
    static const char *const lanes[GATE_LANES] = {"sync", "retry"};
    static const char *const limits[GATE_NUMBERS] = {"sends", "per_second"};
    const struct gate *one = NULL;
    gate_counts counts;
    int are_any = 0;

    while ((one = gates_next(all, one, &counts)) != NULL)
        are_any |= counts.was_limited;
    if (!are_any)
        return;
    metrics_begin(
        m, sends, "gauge",
        "Sends of this process that are under way through a channel that operators limit.");
    while ((one = gates_next(all, one, &counts)) != NULL)
        if (counts.was_limited)
            metrics_line(m, sends, (int64_t)counts.used, 0, "channel", counts.channel, "operation",
                         counts.op_code, NULL);
    metrics_begin(m, refused, "counter",
                  "Asks that were refused for a channel's limit, and compensating attempts that "
                  "were put off.");
    while ((one = gates_next(all, one, &counts)) != NULL)
        for (int lane = 0; lane < GATE_LANES && counts.was_limited; lane++)
            for (int number = 0; number < GATE_NUMBERS; number++)
                metrics_line(m, refused, (int64_t)counts.refused[lane][number], 0, "channel",
                             counts.channel, "operation", counts.op_code, "lane", lanes[lane],
                             "limit", limits[number], NULL);
}

/* -------------------------------------------------------------------------- calls -- */

tl_status tl_metrics_write(const tl_client *client, tl_metrics_fn write, void *context)
{
    metrics_text m = {.write = write, .context = context};

    error_clear();
    TRY(client_check(client));
    if (write == NULL)
        return error_set(TL_INVALID, "write is NULL");
    metrics_begin(&m, "tradelock_build_info", "gauge", "The version of the library.");
    metrics_line(&m, "tradelock_build_info", 1, 0, "version", tl_version(), NULL);
    write_locks(&m, &client->counters);
    write_breakers(&m, (tl_client *)client); /* the gates lock their mutex */
    write_engine(&m, transition_count(client->engine));
    write_server(&m, client->connections);
    write_pool(&m, client->connections);
    write_session(&m, client);
    write_calls(&m, atomic_load(&client->calls));
    write_limits(&m, &((tl_client *)client)->gates);
    return metrics_end(&m);
}

const char *tl_metrics_listen(const tl_client *client)
{
    return client != NULL ? client->config.metrics_listen : "";
}

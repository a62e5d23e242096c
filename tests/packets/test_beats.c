/*
 * The heartbeat, cut at every packet.
 *
 * For n = 1, 2, ... until a client has beaten undisturbed, and for each way of disturbing it, on a
 * session that lives, one that was ended or removed before the beat, and one that is ended while
 * the beat travels.  A beat has three answers, and none may be false: what is counted as confirmed
 * was carried out, what this client believes to be certain of its life is certain by the row too, a
 * living session is never taken for lost, and an ended one hears of it once, for good.
 */
#include "scene.h"
#include "sweep.h"

#include "base/clock.h"
#include "support/theme.h"

#include <poll.h>
#include <stdatomic.h>

#define BEATS 3 /* the first prepares its statements, the others do not */
#define SETTINGS                                                                                   \
    "beat_ms=20ms\nsession_ms=3s\nconnect_timeout_s=1\nread_timeout_s=1\n"                         \
    "pool_wait_ms=1s\n"
#define PACKETS_MAX 400
#define STRIDE 11

enum fate { LIVES, ENDED, REMOVED, ENDED_MEANWHILE, FATES };

static const char *const fate_names[FATES] = {"lives", "was ended", "was removed",
                                              "is ended meanwhile"};

static const struct beat_way {
    const char *name;
    wire_fault fault;
    int rare; /* costs a second */
} ways[] = {
    {"cut before", {0, WIRE_CUT_BEFORE, 0}, 0},
    {"cut after", {0, WIRE_CUT_AFTER, 0}, 0},
    {"late", {0, WIRE_LATE, 0}, 0},
    {"cut before, line down", {0, WIRE_CUT_BEFORE, 1}, 0},
    {"cut after, line down", {0, WIRE_CUT_AFTER, 1}, 0},
    {"late, line down", {0, WIRE_LATE, 1}, 0},
    {"stalled", {0, WIRE_STALL, 0}, 1},
};

static struct figures {
    unsigned cases, requests, packets;
    unsigned long long confirmed, unreachable, lost;
} figures;

/* One session under trial. */
struct trial {
    tl_client *client;
    char session[TL_UUID_TEXT];
    atomic_int losses;
    const char *way;
    enum fate fate;
    unsigned packet;
    int struck;
    long long most_beats; /* as the row had them when it was there */
    int64_t end_ms;
};

static database *base;
static MYSQL *sql;
static wire *line;
static char *file;

static void set_up_all(void)
{
    base = database_new(server_shared(), SETTINGS);
    sql = database_connect(base);
    line = wire_start(server_socket(server_shared()));
    file = database_option_file_at(base, wire_socket(line), SETTINGS);
}

static void tear_down_all(void)
{
    wire_free(line);
    remove(file);
    free(file);
    mysql_close(sql);
    database_free(base);
}

__attribute__((format(printf, 2, 3))) static void wrong(const struct trial *t, const char *format,
                                                        ...)
{
    char what[300];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    server_panic("a session that %s, packet %u %c, %s: %s", fate_names[t->fate], t->packet,
                 t->struck != 0 ? t->struck : '-', t->way, what);
}

static void count_loss(void *context)
{
    atomic_fetch_add(&((struct trial *)context)->losses, 1);
}

static void begin(struct trial *t)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;

    options.config_file = file;
    options.program = "beats";
    options.flags = TL_CLIENT_NO_JANITOR;
    options.loss = count_loss;
    options.loss_context = t;
    if (tl_client_open(&t->client, &options) != TL_OK)
        server_panic("no client: %s", tl_error_message());
    snprintf(t->session, sizeof t->session, "%s", tl_client_session(t->client));
    t->end_ms = clock_deadline(PATIENCE_MS);
}

static tl_stats stats_of(const struct trial *t)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    if (tl_client_stats(t->client, &stats) != TL_OK)
        wrong(t, "%s", tl_error_message());
    return stats;
}

/* Whether the client goes on under another session than the trial's. */
static int is_anew(const struct trial *t)
{
    return strcmp(tl_client_session(t->client), t->session) != 0;
}

/* What is believed is read before what is true: both only grow older.  What it believes of its next
 * session is another's row. */
static void check_belief(struct trial *t)
{
    long long believed = (long long)stats_of(t).beats, beats, row_ms;
    int64_t before_ms = clock_boottime_ms(), alive_ms = tl_client_alive_ms(t->client);
    char *row =
        database_text(sql,
                      "SELECT CONCAT(beat, ' ', TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), "
                      "alive_until) DIV 1000) FROM tl_session WHERE session_id = '%s'",
                      t->session);

    if (is_anew(t)) {
        free(row);
        return;
    }
    if (row != NULL && sscanf(row, "%lld %lld", &beats, &row_ms) == 2) {
        t->most_beats = beats;
        if (alive_ms > 0 && alive_ms > row_ms + (clock_boottime_ms() - before_ms) + 2)
            wrong(t, "it believes in %lld ms, the row in %lld", (long long)alive_ms, row_ms);
    }
    free(row);
    if (believed > t->most_beats)
        wrong(t, "%lld beats are counted as confirmed, %lld were carried out", believed,
              t->most_beats);
    if (t->fate == LIVES && atomic_load(&t->losses) != 0)
        wrong(t, "a living session was taken for lost");
    if (clock_left_ms(t->end_ms) == 0)
        wrong(t, "it does not come to an end; %lld beats, %d losses", believed,
              atomic_load(&t->losses));
}

static long long number_of(const struct trial *t, const char *what)
{
    return database_number(
        sql, "SELECT COALESCE((SELECT %s FROM tl_session WHERE session_id = '%s'), -1)", what,
        t->session);
}

static void end_by_another(struct trial *t)
{
    if (t->fate == REMOVED) {
        t->most_beats = database_number(
            sql, "DELETE FROM tl_session WHERE session_id = '%s' RETURNING beat", t->session);
        return;
    }
    database_run(sql, "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6) WHERE session_id = '%s'",
                 t->session);
    t->most_beats = number_of(t, "beat");
}

static void await_strike(struct trial *t)
{
    uint64_t enough = stats_of(t).beats + BEATS;

    while (!wire_struck(line) && stats_of(t).beats < enough && !atomic_load(&t->losses))
        check_belief(t);
    t->struck = wire_struck(line);
}

static void await_outcome(struct trial *t)
{
    uint64_t enough = stats_of(t).beats + 2;

    if (t->fate == LIVES || (t->fate == ENDED_MEANWHILE && !t->struck)) {
        while (stats_of(t).beats < enough || tl_client_alive_ms(t->client) == 0)
            check_belief(t);
        return;
    }
    while (!atomic_load(&t->losses))
        check_belief(t);
}

static void check_end(struct trial *t)
{
    struct pollfd loss = {tl_client_loss_fd(t->client), POLLIN, 0};
    int lost = t->fate != LIVES && !(t->fate == ENDED_MEANWHILE && !t->struck);

    if (lost) {
        while (!is_anew(t) || tl_client_alive_ms(t->client) == 0)
            if (clock_left_ms(t->end_ms) == 0)
                wrong(t, "it is lost and takes no new session");
    }
    check_belief(t);
    if (atomic_load(&t->losses) != lost || (poll(&loss, 1, 0) == 1) != lost)
        wrong(t, "it heard of its loss %d times", atomic_load(&t->losses));
    if (lost && database_number(sql,
                                "SELECT COUNT(*) FROM tl_session WHERE session_id = '%s' AND "
                                "ended_at IS NULL",
                                tl_client_session(t->client)) != 1)
        wrong(t, "it goes on under a session that is not there");
    if (t->fate == ENDED || (t->fate == ENDED_MEANWHILE && t->struck)) {
        if (number_of(t, "ended_at IS NOT NULL") != 1)
            wrong(t, "the end was taken back");
        if (number_of(t, "beat") != t->most_beats)
            wrong(t, "an ended session was renewed");
    } else if (t->fate == LIVES && number_of(t, "ended_at IS NULL") != 1) {
        wrong(t, "a living session was ended");
    }
}

/* Returns 0 when it was not disturbed. */
static int run_trial(const struct beat_way *way, enum fate fate, unsigned packet)
{
    struct trial t = {.way = way->name, .fate = fate, .packet = packet};
    wire_fault fault = way->fault;
    tl_stats stats;

    begin(&t);
    fault.packet = packet;
    check_belief(&t);
    if (fate == ENDED || fate == REMOVED)
        end_by_another(&t);
    wire_arm(line, &fault);
    await_strike(&t);
    if (t.struck && fate == ENDED_MEANWHILE)
        end_by_another(&t);
    wire_arm(line, NULL); /* what has not struck yet shall not do so later */
    (void)wire_release(line);
    wire_down(line, 0);
    await_outcome(&t);
    check_end(&t);
    stats = stats_of(&t);
    figures.confirmed += stats.beats;
    figures.unreachable += stats.beats_unreachable;
    figures.lost += (unsigned)atomic_load(&t.losses);
    figures.cases += t.struck != 0;
    figures.requests += t.struck == '>';
    tl_client_close(t.client);
    wire_reset(line);
    return t.struck != 0;
}

static void sweep_fate(enum fate fate)
{
    static unsigned offset;
    int is_long = tier_is_long();

    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        unsigned stride = is_long ? 1 : tier_pick(5, 1, 1) * STRIDE * (ways[w].rare ? 3 : 1), n;

        /* A session that was ended beats once, in a few packets. */
        if (fate == ENDED || fate == REMOVED)
            stride = 1;
        for (n = stride > 1 ? 1 + offset++ % stride : 1; n < PACKETS_MAX; n += stride) {
            if (!run_trial(&ways[w], fate, n))
                break;
            figures.packets = n > figures.packets ? n : figures.packets;
        }
    }
}

#define TEST_FATE(name, fate)                                                                      \
    static void test_a_session_that_##name(void **state)                                           \
    {                                                                                              \
        (void)state;                                                                               \
        sweep_fate(fate);                                                                          \
    }

TEST_FATE(lives, LIVES)
TEST_FATE(was_ended, ENDED)
TEST_FATE(was_removed, REMOVED)
TEST_FATE(is_ended_meanwhile, ENDED_MEANWHILE)

TEST_MAIN(beats)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_session_that_lives),
        cmocka_unit_test(test_a_session_that_was_ended),
        cmocka_unit_test(test_a_session_that_was_removed),
        cmocka_unit_test(test_a_session_that_is_ended_meanwhile),
    };
    int failed;

    set_up_all();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    tear_down_all();
    printf("beats: %u cuts (%u of requests), the last at packet %u; %llu beats confirmed, "
           "%llu unreachable, %llu sessions lost\n",
           figures.cases, figures.requests, figures.packets, figures.confirmed, figures.unreachable,
           figures.lost);
    return server_report(failed);
}

/* What a process can say of its commits when another server than its own is promoted: which commits
 * and steps it keeps; that it looks each of them up, and misses what has not arrived; and whether
 * its old server had answered none before the promoted one had it. */
#include "pair.h"

#include "client/client.h"
#include "client/position.h"
#include "client/restored.h"
#include "db/db.h"
#include "support/crew.h"
#include "support/theme.h"
#include "transition/engine.h"
#include "transition/marks.h"
#include "transition/settle.h"

#include <tradelock/resource.h>
#include <tradelock/row_lock.h>
#include <tradelock/rw_lock.h>

#include <pthread.h>
#include <stdatomic.h>

/* The first beat is some seconds away. */
#define SLOW_START "beat_ms=5s\nsession_ms=30s\nread_timeout_s=2\nconnect_timeout_s=4\n"
#define SHORT_SESSION_MS 4000
#define SHORT "beat_ms=100ms\nsession_ms=4s\nread_timeout_s=2\nconnect_timeout_s=4\n"

/* ------------------------------------------------------------------------------- the marks -- */

static commit_mark mark_of(const char *serial)
{
    commit_mark m = {.kind = MARK_EVIDENCE};

    snprintf(m.serial_no, sizeof m.serial_no, "%s", serial);
    return m;
}

/* Of commits that were under way at the same time each is kept, of others only the last. */
TEST(test_which_commits_are_kept)
{
    static commit_marks noted;
    db_server old = {DB_SERVER_WHOLE, 0}, promoted = {DB_SERVER_MAY_LACK, 0};
    commit_mark a = mark_of("a"), b = mark_of("b"), c = mark_of("c"), *all;
    uint64_t one, other;
    size_t count;

    marks_init(&noted);
    one = marks_begin(&noted);
    other = marks_begin(&noted);
    assert_true(marks_note(&noted, &a, &old, one));
    assert_true(marks_note(&noted, &b, &old, other)); /* was sent before the first was answered */
    assert_true(marks_of_others(&noted, &promoted, &all, &count));
    assert_int_equal(count, 2);
    free(all);
    assert_true(marks_note(&noted, &c, &old, marks_begin(&noted)));
    assert_true(marks_of_others(&noted, &promoted, &all, &count));
    assert_int_equal(count, 1);
    assert_string_equal(all[0].serial_no, "c");
    free(all);
    assert_true(marks_of_others(&noted, &old, &all, &count));
    assert_int_equal(count, 0);
    free(all);
    /* What the old one answers once it was given up counts for nothing. */
    one = marks_begin(&noted);
    atomic_store(&old.state, DB_SERVER_LEFT);
    assert_false(marks_note(&noted, &a, &old, one));
    assert_true(marks_of_others(&noted, &promoted, &all, &count));
    assert_int_equal(count, 1);
    free(all);
    marks_forget_left(&noted);
    assert_true(marks_of_others(&noted, &promoted, &all, &count));
    assert_int_equal(count, 0);
    free(all);
    /* More at a time than there is room for: then it cannot say any more what it was told, before a
     * commit covers them all. */
    for (size_t i = 0; i <= COMMIT_MARKS_MAX; i++)
        assert_true(marks_note(&noted, &a, &promoted, 0));
    assert_false(marks_of_others(&noted, &old, &all, &count));
    free(all);
    assert_true(marks_note(&noted, &a, &promoted, marks_begin(&noted) - 1));
    assert_false(marks_of_others(&noted, &old, &all, &count));
    free(all);
    assert_true(marks_note(&noted, &a, &promoted, marks_begin(&noted)));
    assert_true(marks_of_others(&noted, &old, &all, &count));
    assert_int_equal(count, 1);
    free(all);
    marks_end(&noted);
}

static size_t kept_of(commit_marks *noted, const db_server *other)
{
    commit_mark *all;
    size_t count;

    assert_true(marks_of_others(noted, other, &all, &count));
    free(all);
    return count;
}

/* Each step of a trade is kept until a round closed it, and a beat came after that. */
TEST(test_which_steps_are_kept)
{
    static commit_marks noted;
    db_server old = {DB_SERVER_WHOLE, 0}, promoted = {DB_SERVER_MAY_LACK, 0};
    commit_mark done = mark_of("a"), beat = mark_of("b"), *all;
    uint64_t round;
    size_t count;

    done.kind = MARK_TRADE;
    beat.kind = MARK_BEAT;
    marks_init(&noted);
    for (size_t i = 0; i < 1 << 15; i++) /* more than there is room for */
        assert_true(marks_note(&noted, &done, &old, marks_begin(&noted)));
    assert_false(marks_of_others(&noted, &promoted, &all, &count));
    free(all);
    marks_closed(&noted, &old, marks_begin(&noted));
    assert_false(marks_drop_closed(&noted, &old));
    for (size_t i = 0; i < 3 * COMMIT_MARKS_MAX; i++)
        assert_true(marks_note(&noted, &done, &old, marks_begin(&noted)));
    assert_true(marks_note(&noted, &beat, &old, marks_begin(&noted)));
    assert_int_equal(kept_of(&noted, &promoted), 3 * COMMIT_MARKS_MAX + 1);
    assert_true(marks_drop_closed(&noted, &old));
    round = marks_begin(&noted);
    assert_true(marks_note(&noted, &done, &old, round)); /* beside the round */
    marks_closed(&noted, &old, round);
    assert_int_equal(kept_of(&noted, &promoted), 3 * COMMIT_MARKS_MAX + 1);
    assert_true(marks_note(&noted, &beat, &old, marks_begin(&noted)));
    assert_false(marks_drop_closed(&noted, &promoted));
    assert_true(marks_drop_closed(&noted, &old));
    assert_int_equal(kept_of(&noted, &promoted), 2);
    marks_closed(&noted, &old, marks_begin(&noted));
    assert_false(marks_drop_closed(&noted, &old));
    assert_int_equal(kept_of(&noted, &promoted), 1);
    marks_end(&noted);
}

static void close_round(commit_marks *noted, const db_server *server)
{
    marks_closed(noted, server, marks_begin(noted));
    assert_false(marks_drop_closed(noted, server));
}

/* One that leaves no receipt is kept until the trade's next step, or until its hold is over; one that
 * stands for others, too, until then. */
TEST(test_which_steps_last)
{
    static commit_marks noted;
    db_server old = {DB_SERVER_WHOLE, 0}, promoted = {DB_SERVER_MAY_LACK, 0};
    commit_mark armed = mark_of("a"), ended = mark_of("a"), other = mark_of("b");

    armed.kind = ended.kind = other.kind = MARK_TRADE;
    armed.lasts_until_ms = INT64_MAX;
    ended.token[0] = 1;
    marks_init(&noted);
    assert_true(marks_note(&noted, &armed, &old, marks_begin(&noted)));
    close_round(&noted, &old);
    marks_follow(&noted, &armed);
    marks_follow(&noted, &other);
    close_round(&noted, &old);
    assert_int_equal(kept_of(&noted, &promoted), 1);
    marks_follow(&noted, &ended);
    close_round(&noted, &old);
    assert_int_equal(kept_of(&noted, &promoted), 0);
    armed.of_many = 1;
    assert_true(marks_note(&noted, &armed, &old, marks_begin(&noted)));
    armed.of_many = 0;
    armed.lasts_until_ms = 1; /* it is over */
    assert_true(marks_note(&noted, &armed, &old, marks_begin(&noted)));
    marks_follow(&noted, &ended);
    close_round(&noted, &old);
    assert_int_equal(kept_of(&noted, &promoted), 1);
    marks_end(&noted);
}

static void mark_nothing(const task *t, commit_mark *to)
{
    (void)t;
    to->kind = MARK_NONE;
}

static void mark_trade(const task *t, commit_mark *to)
{
    *to = mark_of(t->name);
}

/* Of a batch the first step that was committed stands for all, and not one that found nothing to
 * do, nor one that nobody can look up. */
TEST(test_which_of_a_batch_is_kept)
{
    static commit_marks noted;
    static const task_kind nothing = {.mark = mark_nothing}, trade = {.mark = mark_trade},
                           untold = {.mark = NULL};
    task tasks[] = {{.kind = &nothing, .name = "a"},
                    {.kind = &untold, .name = "b"},
                    {.kind = &trade, .name = "c"},
                    {.kind = &trade, .name = "d"}};
    const task *const all_of[] = {&tasks[0], &tasks[1], &tasks[2], &tasks[3]};
    struct task_engine engine = {.noted = &noted};
    db_server old = {DB_SERVER_WHOLE, 0};
    commit_mark *all;
    size_t count;

    marks_init(&noted);
    assert_true(settle_note(&engine, all_of, 1, &old, marks_begin(&noted)));
    assert_true(marks_of_others(&noted, NULL, &all, &count));
    assert_int_equal(count, 0);
    free(all);
    assert_true(settle_note(&engine, all_of, 2, &old, marks_begin(&noted)));
    assert_true(marks_of_others(&noted, NULL, &all, &count));
    assert_int_equal(count, 1);
    assert_int_equal(all[0].kind, MARK_UNTOLD);
    free(all);
    assert_true(settle_note(&engine, all_of, 4, &old, marks_begin(&noted)));
    assert_true(marks_of_others(&noted, NULL, &all, &count));
    assert_int_equal(count, 1);
    assert_string_equal(all[0].serial_no, "c");
    free(all);
    /* What the old one answers once it was given up is believed of none. */
    atomic_store(&old.state, DB_SERVER_LEFT);
    assert_false(settle_note(&engine, all_of, 4, &old, marks_begin(&noted)));
    marks_end(&noted);
}

/* ------------------------------------------------------------------ each step is looked up -- */

static tl_mutex *held_mutex;
static tl_rw *held_rw;
static tl_lock *held_trade;
static MYSQL *business;

static void do_ask_trade(void)
{
    tl_lock_options options = sync_options("x");

    held_trade = granted(pair.first, "held", "c1", &options);
}

static void do_evidence(void)
{
    tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                            .key = {"held", "c1", "WITHDRAW"},
                            .outcome = "ACCEPTED",
                            .source = "a web-hook"};

    assert_status(tl_evidence_add(pair.first, &evidence), TL_OK);
}

static void do_end_trade(void)
{
    assert_status(finish(held_trade, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(held_trade);
}

static void do_lock(void)
{
    assert_status(tl_mutex_lock(held_mutex, 0), TL_GRANTED);
}

static void do_renew(void)
{
    assert_status(tl_mutex_renew(held_mutex, 20000), TL_OK);
}

static void do_unlock(void)
{
    assert_status(tl_mutex_unlock(held_mutex), TL_OK);
}

static void do_write(void)
{
    assert_status(tl_rw_write(held_rw, 0), TL_GRANTED);
}

static void do_renew_rw(void)
{
    assert_status(tl_rw_renew(held_rw, 20000), TL_OK);
}

static void do_downgrade(void)
{
    assert_status(tl_rw_downgrade(held_rw), TL_OK);
}

static void do_unlock_rw(void)
{
    assert_status(tl_rw_unlock(held_rw), TL_OK);
}

static void do_read(void)
{
    assert_status(tl_rw_read(held_rw, 0), TL_GRANTED);
}

/* Another one waits to write what is read. */
static void do_intent(void)
{
    tl_rw_options options = TL_RW_OPTIONS_INIT;
    tl_rw *writer;

    options.lease_ms = 10000;
    assert_status(tl_rw_new(&writer, pair.first, "shared", &options), TL_OK);
    assert_status(tl_rw_write(writer, 1), TL_TIMEOUT);
    tl_rw_free(writer);
}

static void do_row_lock(void)
{
    database_run(business, "BEGIN");
    assert_status(
        tl_row_lock(pair.first, "account", business, TL_ROW_LOCK_NOWAIT, TL_GUARD_ANY_IDLE),
        TL_GRANTED);
    database_run(business, "ROLLBACK");
}

static unsigned missing_at_copy(db *connection)
{
    unsigned missing;

    assert_status(position_count_missing(pair.first, connection, &missing), TL_OK);
    return missing;
}

static db *connect_to_copy(void)
{
    db_options options = {.option_file = file_at_copy(),
                          .group = "tradelock-client",
                          .connect_timeout_s = 10,
                          .read_timeout_s = 10};
    db *connection;

    assert_status(db_open(&connection, &options), TL_OK);
    return connection;
}

static void make_handles(void)
{
    tl_mutex_options mutex = TL_MUTEX_OPTIONS_INIT;
    tl_rw_options rw = TL_RW_OPTIONS_INIT;

    mutex.lease_ms = rw.lease_ms = 10000;
    mutex.max_hold_ms = rw.max_hold_ms = 600000;
    assert_status(tl_mutex_new(&held_mutex, pair.first, "job", &mutex), TL_OK);
    assert_status(tl_rw_new(&held_rw, pair.first, "shared", &rw), TL_OK);
}

/* One process, whose beats are a minute apart. */
static void open_slow(void)
{
    open_pair(0);
    tl_client_close(pair.second);
    tl_client_close(pair.first);
    pair.second = NULL;
    pair.first = open_with(file_with(both(), SLOW), 0);
}

/* Whatever was done last, before any beat: where it has not arrived it is missed, and where it has,
 * nothing is.  Of what costs nobody anything where it is lost, nothing is ever missed. */
TEST(test_each_step_is_looked_up)
{
    static const struct {
        const char *name;
        void (*run)(void);
        int is_missed;
    } steps[] = {{"ask", do_ask_trade, 1},
                 {"evidence", do_evidence, 1},
                 {"ending", do_end_trade, 1},
                 {"lock", do_lock, 1},
                 {"renew", do_renew, 1},
                 {"renew again", do_renew, 1},
                 {"unlock", do_unlock, 1},
                 {"write", do_write, 1},
                 {"renew a writer", do_renew_rw, 1},
                 {"downgrade", do_downgrade, 1},
                 {"renew a reader", do_renew_rw, 1},
                 {"unlock a reader", do_unlock_rw, 1},
                 {"read", do_read, 1},
                 {"wait to write", do_intent, 1},
                 {"row lock", do_row_lock, 0}};
    db *at_copy;

    open_slow();
    business = database_connect(pair.db);
    at_copy = connect_to_copy();
    make_handles();
    await_copy();
    assert_int_equal(missing_at_copy(at_copy), 0);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        unsigned missed;

        database_run(pair.sql_copy, "STOP SLAVE SQL_THREAD");
        steps[i].run();
        missed = missing_at_copy(at_copy);
        database_run(pair.sql_copy, "START SLAVE SQL_THREAD");
        await_copy();
        if (missed != (unsigned)steps[i].is_missed || missing_at_copy(at_copy) != 0)
            fail_msg("%s: %u were missing before it was applied, and %u after it", steps[i].name,
                     missed, missing_at_copy(at_copy));
    }
    db_close(at_copy);
    tl_mutex_free(held_mutex);
    tl_rw_free(held_rw);
    mysql_close(business);
    close_pair();
}

/* The primary is gone, and the other one takes writes, though nobody has promoted it yet. */
static void lose_primary(void)
{
    server_kill9(pair.primary);
    take_writes();
    open_ops();
}

/* Evidence that is lost is missed, though other evidence was filed on the new server, and has its
 * number there. */
TEST(test_evidence_whose_number_another_has)
{
    tl_lock_options options = sync_options("x");
    tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                            .key = {"other", "c2", "WITHDRAW"},
                            .outcome = "ACCEPTED",
                            .source = "a web-hook"};
    tl_lock *other;
    db *at_copy;

    open_slow();
    at_copy = connect_to_copy();
    do_ask_trade();
    other = granted(pair.first, "other", "c2", &options);
    await_copy();
    database_run(pair.sql_copy, "STOP SLAVE SQL_THREAD");
    do_evidence();
    assert_int_equal(missing_at_copy(at_copy), 1);
    lose_primary();
    assert_status(tl_evidence_add(pair.ops, &evidence), TL_OK);
    assert_int_equal(missing_at_copy(at_copy), 1);
    db_close(at_copy);
    tl_lock_free(held_trade);
    tl_lock_free(other);
    close_pair();
}

/* A renewal that is lost, and a grant before it, are missed, though the lock's row was changed as
 * often on the new server: there it was unlocked. */
TEST(test_a_renewal_that_is_lost)
{
    db *at_copy;

    open_slow();
    make_handles();
    at_copy = connect_to_copy();
    do_lock();
    await_copy();
    database_run(pair.sql_copy, "STOP SLAVE SQL_THREAD");
    do_ask_trade();
    do_renew();
    assert_int_equal(missing_at_copy(at_copy), 2);
    lose_primary();
    do_unlock();
    assert_int_equal(missing_at_copy(at_copy), 2);
    db_close(at_copy);
    tl_lock_free(held_trade);
    tl_mutex_free(held_mutex);
    tl_rw_free(held_rw);
    close_pair();
}

/* The same of a read-write lock: there the writer became a reader, and then it was unlocked. */
TEST(test_a_renewal_of_a_writer_that_is_lost)
{
    db *at_copy;

    open_slow();
    make_handles();
    at_copy = connect_to_copy();
    do_write();
    await_copy();
    database_run(pair.sql_copy, "STOP SLAVE SQL_THREAD");
    do_ask_trade();
    do_renew_rw();
    assert_int_equal(missing_at_copy(at_copy), 2);
    lose_primary();
    do_downgrade();
    assert_int_equal(missing_at_copy(at_copy), 2);
    do_unlock_rw();
    assert_int_equal(missing_at_copy(at_copy), 2);
    db_close(at_copy);
    tl_lock_free(held_trade);
    tl_mutex_free(held_mutex);
    tl_rw_free(held_rw);
    close_pair();
}

/* --------------------------------------------------------- what it says of the two servers -- */

/* One that began a moment ago has seen no round yet: it knows all the same that the primary waited
 * for its replica. */
TEST(test_a_process_just_begins)
{
    char mine[64];
    tl_client *late;

    open_pair(1);
    await_rounds();
    late = open_with(file_with(both(), SLOW_START), 0);
    snprintf(mine, sizeof mine, "%s", tl_client_session(late));
    server_kill9(pair.primary);
    assert_int_equal(beats(late), 0);
    apply_all();
    take_writes();
    promote();
    await_accepted();
    await_grant(pair.first, "s1");
    await_grant(late, "s2");
    assert_string_equal(tl_client_session(late), mine);
    tl_client_close(late);
    close_pair();
}

/* Its callers had every connection for longer than a session lives: it has seen all the same that
 * the primary waited for its replica. */
TEST(test_all_connections_are_lent)
{
    db *lent[64];
    size_t count = 0;

    open_pair(1);
    tl_client_close(pair.second);
    pair.second = open_with(file_with(both(), SHORT), 0);
    await_rounds();
    while (pool_get(pair.second->connections, POOL_QUICK, 0, &lent[count]) == TL_OK)
        assert_true(++count < sizeof lent / sizeof lent[0]);
    assert_true(count > 0);
    usleep((SHORT_SESSION_MS + QUIET_MS) * 1000);
    server_kill9(pair.primary);
    while (count > 0)
        pool_put(pair.second->connections, lent[--count]);
    apply_all();
    take_writes();
    promote();
    await_accepted();
    await_grant(pair.first, "s1");
    await_grant(pair.second, "s2");
    close_pair();
}

/* The others accept it while the answer to this process' own attestation is on its way: the session
 * waits, until it has looked itself. */
TEST(test_accepted_before_it_knows)
{
    restored_servers *all;
    const db_server *from, *to;

    open_pair(1);
    await_rounds();
    from = life_server(session_life(pair.first->session));
    stop_writes();
    take_writes();
    promote();
    await_accepted();
    await_grant(pair.first, "s1");
    to = life_server(session_life(pair.first->session));
    assert_ptr_not_equal(from, to);
    all = &pair.first->servers;
    for (int i = 0; i < 100; i++) { /* its own looks come between */
        pthread_mutex_lock(&all->mutex);
        all->has_attested = 0;
        pthread_mutex_unlock(&all->mutex);
        assert_int_not_equal(restored_follow(pair.first, from, to, 0), SESSION_LEAVES);
    }
    await_rounds();
    assert_int_equal(restored_follow(pair.first, from, to, 0), SESSION_MOVES);
    close_pair();
}

/* The session went on at the new server, and a connection of the caller's leads to the old one. */
TEST(test_an_ending_at_the_old_server)
{
    tl_lock_options options = sync_options("x");
    tl_ending success = TL_ENDING_INIT;
    tl_lock *lock;

    open_pair(1);
    lock = granted(pair.first, "held", "c1", &options);
    await_rounds();
    stop_writes();
    take_writes();
    promote();
    await_accepted();
    await_grant(pair.first, "s0");
    database_run(pair.sql, "SET GLOBAL rpl_semi_sync_master_enabled = 0; SET GLOBAL read_only = 0; "
                           "START TRANSACTION; UPDATE row_lock SET resource = resource");
    success.outcome = TL_OUTCOME_SUCCESS;
    assert_status(tl_lock_finish_in(lock, pair.sql, &success, TL_GUARD_ANY_IDLE), TL_ROLL_BACK);
    database_run(pair.sql, "ROLLBACK");
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    assert_int_equal(database_number(pair.sql_copy, "SELECT COUNT(*) FROM trade_lock "
                                                    "WHERE serial_no = 'held' AND status = 'Y'"),
                     1);
    tl_lock_free(lock);
    close_pair();
}

/* A replica of which nobody waits: a process of which nobody knows may have paid. */
TEST(test_nobody_waited_for_the_replica)
{
    struct found found;

    open_pair(0);
    await_rounds();
    await_copy();
    database_run(pair.sql, "SET GLOBAL read_only = 1");
    await_copy();
    take_writes();
    promote();
    expect_veto(2);
    found = what_is_missing();
    assert_int_equal(found.not_kept, 2);
    assert_int_equal(found.steps, 0);
    close_pair();
}

/* -------------------------------------------------------------------------- a third server -- */

#define SLAVES                                                                                     \
    "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS "                                 \
    "WHERE VARIABLE_NAME = 'SLAVES_CONNECTED'"

static server *third;

/* A third server, which has all that there is: behind the second one, or asynchronous behind the
 * first, and away while processes look.  Both processes begin anew, and know the primary and this
 * one; or, with a split, one of them knows the second instead. */
static void open_third(int is_behind_copy, int is_split)
{
    unsigned port;
    MYSQL *sql;

    third = start_at(3, NULL, &port);
    follow(is_behind_copy ? pair.port_copy : pair.port_primary, third, is_behind_copy);
    sql = server_connect(third);
    await_at(sql);
    if (!is_behind_copy)
        database_run(sql, "STOP SLAVE");
    mysql_close(sql);
    tl_client_close(pair.second);
    tl_client_close(pair.first);
    pair.first = open_with(file_with(hosts_with(is_split ? pair.port_copy : port), SHORT), 0);
    pair.second = open_with(file_with(hosts_with(port), SHORT), 0);
    await_rounds();
}

/* From now on the third one is the one that is promoted. */
static void take_third(void)
{
    server *other = pair.copy;

    pair.copy = third;
    third = other;
    mysql_close(pair.sql_copy);
    pair.sql_copy = server_connect(pair.copy);
    database_run(pair.sql_copy, "USE %s", database_name(pair.db));
    tl_client_close(pair.ops);
    pair.ops = NULL;
}

static void close_three(void)
{
    close_pair();
    server_free(third);
    third = NULL;
}

/* A server that has all, and that nobody had waited for: a process of which nobody knows may have
 * been told of more, by the one that was waited for. */
static void promote_another(int is_behind_copy)
{
    struct found found;

    open_pair(1);
    open_third(is_behind_copy, 0);
    database_run(pair.sql, "SET GLOBAL read_only = 1");
    await_copy();
    take_third();
    database_run(pair.sql_copy, "START SLAVE");
    await_copy();
    server_kill9(pair.primary);
    take_writes();
    promote_as(1);
    expect_veto(2);
    found = what_is_missing();
    assert_int_equal(found.not_kept, 2);
    assert_int_equal(found.steps, 0);
    close_three();
}

TEST(test_one_behind_the_replica)
{
    promote_another(1);
}

TEST(test_one_that_was_away)
{
    promote_another(0);
}

static int find_promotion(void *context, const tl_finding *finding)
{
    if (strcmp(finding->check, "promotion") == 0)
        snprintf(context, 64, "%s", finding->found);
    return 0;
}

/* Who keeps the primary's commits, as each look at it finds. */
static void expect_keeper(const char *wanted)
{
    tl_client *client = open_with(database_option_file(pair.db), TL_CLIENT_NO_SESSION);
    char found[64] = "";

    (void)tl_doctor(client, find_promotion, found);
    assert_string_equal(found, wanted);
    tl_client_close(client);
}

/* The one replica that acknowledges is away, and one that does not is the only one there. */
TEST(test_the_only_one_acknowledges_nothing)
{
    MYSQL *sql;

    open_pair(1);
    open_third(0, 0);
    tl_client_close(pair.second);
    tl_client_close(pair.first);
    pair.first = pair.second = NULL;
    expect_keeper("server 2");
    sql = server_connect(third);
    database_run(sql, "START SLAVE");
    await_number(pair.sql, SLAVES, 2);
    expect_keeper("by operators");
    database_run(pair.sql_copy, "STOP SLAVE");
    while (database_number(pair.sql, SLAVES) != 1)
        database_run(pair.sql, "FLUSH BINARY LOGS"); /* a sender finds nobody there */
    expect_keeper("by operators");
    mysql_close(sql);
    close_three();
}

/* On each side of a split somebody promotes a server that has all, with the primary off for certain:
 * one of the two is accepted. */
TEST(test_two_sides_of_a_split)
{
    open_pair(1);
    open_third(1, 1);
    database_run(pair.sql, "SET GLOBAL read_only = 1");
    await_copy();
    server_kill9(pair.primary);
    take_writes();
    promote_as(1);
    await_accepted();
    await_grant(pair.first, "s1");
    take_third();
    take_writes();
    promote_as(1);
    /* It says so under each of its sessions; one may have begun before the server was promoted. */
    await_number(pair.sql_copy,
                 "SELECT COUNT(*) > 0 AND MAX(kept) = 0 FROM tl_attestation "
                 "WHERE attested_at IS NOT NULL "
                 "AND restore_no = (SELECT MAX(restore_no) FROM tl_attestation)",
                 1);
    await_number(pair.sql_copy,
                 "SELECT COUNT(*) FROM tl_attestation a JOIN tl_session x USING (session_id) "
                 "WHERE a.attested_at IS NULL AND x.ended_at IS NULL",
                 0);
    usleep(QUIET_MS * 1000);
    assert_true(is_restored());
    assert_int_not_equal(ask_now(pair.second, "s1"), TL_GRANTED);
    close_three();
}

TESTS_OF(position, NULL, NULL)

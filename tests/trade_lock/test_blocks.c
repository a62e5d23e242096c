/*
 * Blocks of statements, and a procedure, that meet an error in their midst: one that the server's
 * handlers see and one that passes them by (a recursion that is too deep, 1436), in the first
 * statement, in the second, and while the row is read.  Whatever happens, no transaction is left
 * open, what was answered is on the rows, and the next grant on the same connection is one that
 * others see.
 */
#include "fixture.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/callback.h>

static fixture f;

/* The next statement that comes by goes wrong, once: the table knows no transactions. */
static const char *const accident[] = {
    "CREATE TABLE accident (place VARCHAR(16) NOT NULL, kind VARCHAR(16) NOT NULL) "
    "ENGINE = Aria TRANSACTIONAL = 0",
    "INSERT INTO accident VALUES ('', '')",
    "CREATE PROCEDURE deep(n INT) BEGIN IF n > 0 THEN CALL deep(n - 1); END IF; END",
    "CREATE PROCEDURE accident_at(here VARCHAR(16)) BEGIN "
    "  DECLARE what VARCHAR(16) DEFAULT (SELECT kind FROM accident WHERE place = here); "
    "  IF what IS NOT NULL THEN "
    "    UPDATE accident SET place = ''; "
    "    CASE what "
    "    WHEN 'signal' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'an accident'; "
    "    WHEN 'memory' THEN SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1290, "
    "      MESSAGE_TEXT = 'running with the --max-session-mem-used option'; "
    "    WHEN 'disk' THEN SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1026, "
    "      MESSAGE_TEXT = 'no space for what would be committed'; "
    "    WHEN 'read-only' THEN SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1290, "
    "      MESSAGE_TEXT = 'running with the --read-only option'; "
    "    ELSE SET SESSION max_sp_recursion_depth = 255; CALL deep(250); "
    "    END CASE; "
    "  END IF; "
    "END",
    "CREATE TRIGGER accident_updated AFTER UPDATE ON trade_lock FOR EACH ROW BEGIN "
    "  IF NEW.lane = 'S' THEN CALL accident_at('first'); END IF; END",
    "CREATE TRIGGER accident_inserted AFTER INSERT ON trade_lock FOR EACH ROW "
    "  CALL accident_at(IF(NEW.lane = 'R', 'second', 'asked'))",
    "CREATE TRIGGER accident_deleted AFTER DELETE ON trade_lock FOR EACH ROW BEGIN "
    "  IF OLD.serial_no = 'old-1' THEN CALL accident_at('purge'); END IF; END",
    "CREATE FUNCTION accident_reading() RETURNS INT MODIFIES SQL DATA BEGIN "
    "  CALL accident_at('reading'); RETURN 1; END",
    "CREATE TABLE note (serial VARCHAR(64) NOT NULL) ENGINE = InnoDB",
    "RENAME TABLE trade_lock_state TO quiet_state",
    "CREATE SQL SECURITY DEFINER VIEW trade_lock_state AS "
    "  SELECT * FROM quiet_state WHERE accident_reading() = 1",
};

/* One connection for everything, so that the next statement meets what was left. */
static tl_client *client;

FIXTURE(setup)
{
    fixture_open(&f, "pool_size=1\nsession_ms=2m\npool_wait_ms=1m\ncommit_ms=1m\n");
    for (size_t i = 0; i < sizeof accident / sizeof accident[0]; i++)
        database_run(f.sql, "%s", accident[i]);
    client = client_of(database_option_file(f.db), TL_CLIENT_NO_JANITOR);
}

FIXTURE(teardown)
{
    assert_log_whole(&f);
    tl_client_close(client);
    fixture_close(&f);
}

static void plan(const char *place, const char *kind)
{
    database_run(f.sql, "UPDATE accident SET place = '%s', kind = '%s'", place, kind);
}

/* It has happened. */
static void assert_happened(void)
{
    database_expect(f.sql, 0, "SELECT COUNT(*) FROM accident WHERE place <> ''");
}

/* Connections that sleep within a transaction.  A heartbeat's may be one for a moment. */
static long long asleep_within(void)
{
    return database_transactions(f.sql, "ACTIVE", "command = 'Sleep'");
}

static void assert_nothing_left(const char *next)
{
    int64_t until_ms = crew_now_ms() + PATIENCE_MS;
    long long asleep;
    tl_lock *after;

    while ((asleep = asleep_within()) > 0 && crew_now_ms() < until_ms)
        crew_sleep_ms(20);
    assert_int_equal(asleep, 0);
    after = granted(client, next, "c2", SYNC);
    assert_row(&f, next, "c2", "WITHDRAW", "P 1 1");
    assert_status(finish(after, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    assert_row(&f, next, "c2", "WITHDRAW", "Y 1 1");
    tl_lock_free(after);
}

/* A trade of this name is made ready; then the call that the accident happens to. */
struct block {
    const char *name;
    void (*prepare)(const char *serial);
    tl_status (*call)(const char *serial);
    tl_status done;      /* the answer once it is done */
    const char *rows[2]; /* of both lanes, before and after */
    const char *places[3];
};

static tl_lock *lock;

static void ask_for(const char *serial)
{
    lock = granted(client, serial, "c1", SYNC);
}

static void leave_waiting(const char *serial)
{
    tl_lock_options retry = retry_options();

    ask_for(serial);
    end_in_doubt(lock);
    lock = lock_new(client, serial, "c1", &retry);
}

static void leave_failed(const char *serial)
{
    tl_lock_options options = sync_options("x");
    tl_ending ending = TL_ENDING_INIT;

    ask_for(serial);
    ending.outcome = TL_OUTCOME_FAILURE;
    ending.proof = TL_PROOF_DECLINED;
    ending.retryable = 1;
    assert_status(tl_lock_finish(lock, &ending), TL_FAILED);
    tl_lock_free(lock);
    options.flags = TL_ASK_RECLAIM;
    options.reclaim_epoch = 1;
    lock = lock_new(client, serial, "c1", &options);
}

static tl_status put_back(const char *serial)
{
    (void)serial;
    return finish(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE);
}

static tl_status ask_again(const char *serial)
{
    (void)serial;
    return tl_lock_ask(lock, 0);
}

/* With business rows: the block begins their transaction. */

static void think_of(const char *serial)
{
    lock = lock_new(client, serial, "c1", SYNC);
}

static void leave_claimed(const char *serial)
{
    leave_waiting(serial);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
}

static tl_status write_note(void *serial, struct st_mysql *connection)
{
    database_run(connection, "INSERT INTO note VALUES ('%s')", (const char *)serial);
    return TL_OK;
}

static tl_status ask_with_note(const char *serial)
{
    return tl_lock_ask_with(lock, write_note, text_of("%s", serial).is, 0);
}

static tl_status finish_with_note(const char *serial)
{
    tl_ending ending = TL_ENDING_INIT;
    struct text note = text_of("%s", serial);

    ending.outcome = TL_OUTCOME_SUCCESS;
    return tl_lock_finish_with(lock, &ending, write_note, note.is, 60000);
}

static void assert_both(const char *serial, const char *row, const char *retry_row)
{
    assert_row(&f, serial, "c1", "WITHDRAW", row);
    assert_row(&f, serial, "c1", "WITHDRAW_RETRY", retry_row);
}

static const struct block blocks[] = {
    {"open", ask_for, put_back, TL_IN_DOUBT, {"P 1 1/-", "P 1 1/F 1 0"}, {"first", "second", NULL}},
    {"claim",
     leave_waiting,
     ask_again,
     TL_GRANTED,
     {"P 1 1/F 1 0", "P 1 1/P 1 0"},
     {"first", "reading", NULL}},
    {"reclaim",
     leave_failed,
     ask_again,
     TL_GRANTED,
     {"F 1 1/-", "P 2 1/-"},
     {"first", "reading", NULL}},
    {"ask-with", think_of, ask_with_note, TL_GRANTED, {"-/-", "P 1 1/-"}, {"asked", NULL, NULL}},
    {"reclaim-with",
     leave_failed,
     ask_with_note,
     TL_GRANTED,
     {"F 1 1/-", "P 2 1/-"},
     {"first", NULL, NULL}},
    {"finish-with",
     ask_for,
     finish_with_note,
     TL_SUCCEEDED,
     {"P 1 1/-", "Y 1 1/-"},
     {"first", NULL, NULL}},
    {"finish-retry-with",
     leave_claimed,
     finish_with_note,
     TL_SUCCEEDED,
     {"P 1 1/P 1 0", "Y 1 1/Y 1 0"},
     {"first", NULL, NULL}},
};

static void assert_rows(const char *serial, const char *both)
{
    const char *slash = strchr(both, '/');

    assert_both(serial, text_of("%.*s", (int)(slash - both), both).is, slash + 1);
}

/* What failed did not happen, and is said to have failed; what could not be read has. */
static void meet(const struct block *b, const char *place, const char *kind)
{
    char next[48];
    tl_status status;
    const struct text serial = text_of("%s-%s-%s", b->name, place, kind);

    snprintf(next, sizeof next, "%s-next", serial.is);
    b->prepare(serial.is);
    plan(place, kind);
    status = b->call(serial.is);
    assert_happened();
    if (strcmp(place, "reading") != 0) {
        assert_status(status, TL_SERVER_ERROR);
        assert_non_null(strstr(tl_error_message(), "(error "));
        assert_rows(serial.is, b->rows[0]);
        assert_nothing_left(next);
        status = b->call(serial.is);
    }
    assert_status(status, b->done);
    assert_rows(serial.is, b->rows[1]);
    database_expect(f.sql, strstr(b->name, "-with") != NULL,
                    "SELECT COUNT(*) FROM note WHERE serial = '%s'", serial.is);
    if (b->done == TL_GRANTED) {
        if (strstr(b->name, "-with") == NULL)
            assert_int_equal(tl_lock_view(lock)->payload_size, 1);
        assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    }
    tl_lock_free(lock);
    strcat(next, "2");
    assert_nothing_left(next);
}

TEST(test_accidents)
{
    static const char *const kinds[] = {"signal", "memory", "deep"};

    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
        for (int place = 0; blocks[b].places[place] != NULL; place++)
            for (int kind = 0; kind < 3; kind++)
                meet(&blocks[b], blocks[b].places[place], kinds[kind]);
    /* Doubtful where a statement commits; these only begin. */
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
        if (strstr(blocks[b].name, "-with") != NULL)
            meet(&blocks[b], blocks[b].places[0], "disk");
}

/* A purge that breaks off in the midst of a batch has purged nothing of it. */
TEST(test_purge)
{
    tl_purge_options options = TL_PURGE_OPTIONS_INIT;
    tl_purged purged = {0};

    options.older_ms = INT64_C(31536000000);
    for (int i = 0; i < 3; i++) {
        ask_for(text_of("old-%d", i).is);
        end_paid(lock);
    }
    database_run(f.sql, "UPDATE trade_lock SET updated_at = updated_at - INTERVAL 2 YEAR, "
                        "next_run_at = next_run_at - INTERVAL 2 YEAR, send_until = NULL WHERE "
                        "serial_no LIKE 'old-%%'");
    plan("purge", "deep");
    assert_status(tl_purge(client, &options, &purged), TL_SERVER_ERROR);
    assert_happened();
    assert_nothing_left("purge-next");
    database_expect(f.sql, 3, "SELECT COUNT(*) FROM trade_lock WHERE serial_no LIKE 'old-%%'");
    assert_status(tl_purge(client, &options, &purged), TL_OK);
    assert_int_equal(purged.trades, 3);
}

/* An error that says why nothing was done is believed at once. */
TEST(test_read_only)
{
    tl_lock_options options = sync_options("x"), retry = retry_options();
    tl_status status;

    lock = granted(client, "read-only", "c1", &options);
    plan("first", "read-only");
    assert_status(finish(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_READ_ONLY);
    assert_row(&f, "read-only", "c1", "WITHDRAW", "P 1 1");
    assert_nothing_left("read-only-next-1");
    end_in_doubt(lock);
    plan("first", "read-only");
    lock = ask(client, "read-only", "c1", &retry, &status);
    assert_status(status, TL_READ_ONLY);
    assert_row(&f, "read-only", "c1", "WITHDRAW_RETRY", "F 1 0");
    assert_nothing_left("read-only-next-2");
    tl_lock_free(lock);
}

TESTS_OF(blocks, setup, teardown)

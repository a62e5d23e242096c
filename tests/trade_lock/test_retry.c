/* The retry-compensation lock: opened, claimed, reclaimed, ended; and the janitor. */
#include "fixture.h"

#include "client/client.h"
#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/lane.h>
#include <tradelock/layer.h>

#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

WHOLE_FIXTURE_OF_ALL("beat_ms=100\nsession_ms=6s\n")

static void refused(const char *serial, tl_status expected)
{
    tl_lock_options options = retry_options();
    tl_status status;
    tl_lock *lock = ask(f.other, serial, "c1", &options, &status);

    assert_status(status, expected);
    tl_lock_free(lock);
}

static tl_lock *claim(const char *serial)
{
    tl_lock_options options = retry_options();

    return granted(f.other, serial, "c1", &options);
}

/* Claims what is due, at most so many; how many there were. */
static size_t claim_most(tl_client *client, tl_lock **locks, size_t most)
{
    tl_claim_options wanted = TL_CLAIM_OPTIONS_INIT;

    wanted.op_code = "WITHDRAW";
    wanted.max_hold_ms = 60000;
    assert_status(tl_claim_due(client, &wanted, locks, &most), TL_OK);
    return most;
}

static void end_all_paid(tl_lock **locks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        end_paid(locks[i]);
}

static void open_lanes(const char *prefix, int count)
{
    database_run(f.sql, "DELETE FROM trade_lock");
    for (int i = 0; i < count; i++)
        end_in_doubt(granted(f.client, text_of("%s%d", prefix, i).is, "c9", SYNC));
}

TEST(test_the_articles_way)
{
    tl_ending ending = TL_ENDING_INIT;
    tl_lock *lock, *retry;

    refused("r1", TL_NO_TRADE);
    lock = granted(f.client, "r1", "c1", SYNC);
    refused("r1", TL_BUSY);
    /* The channel timed out. */
    end_in_doubt(lock);
    retry = claim("r1");
    assert_row(&f, "r1", "c1", "WITHDRAW_RETRY", "P 1 0");
    refused("r1", TL_BUSY);
    /* The retry failed: F, and the next one takes F -> P. */
    end_lock(retry, TL_OUTCOME_FAILURE, TL_PROOF_NONE, TL_IN_DOUBT);
    assert_row(&f, "r1", "c1", "WITHDRAW_RETRY", "F 1 0");
    assert_row(&f, "r1", "c1", "WITHDRAW", "P 1 1");
    retry = claim("r1");
    ending.outcome = TL_OUTCOME_UNKNOWN;
    ending.next_run_ms = 60000;
    assert_status(tl_lock_finish(retry, &ending), TL_IN_DOUBT);
    tl_lock_free(retry);
    refused("r1", TL_NOT_DUE);
    database_run(f.sql, "UPDATE trade_lock SET next_run_at = UTC_TIMESTAMP(6) WHERE "
                        "op_code = 'WITHDRAW_RETRY' AND serial_no = 'r1'");
    retry = claim("r1");
    assert_status(tl_lock_arm(retry, 60000), TL_OK);
    assert_row(&f, "r1", "c1", "WITHDRAW", "P 1 2");
    end_paid(retry);
    assert_row(&f, "r1", "c1", "WITHDRAW", "Y 1 2");
    assert_row(&f, "r1", "c1", "WITHDRAW_RETRY", "Y 1 0");
    refused("r1", TL_ALREADY_DONE);
}

TEST(test_proven_failure_closes_the_lane)
{
    tl_lock *retry;

    end_in_doubt(granted(f.client, "r2", "c1", SYNC));
    retry = claim("r2");
    end_lock(retry, TL_OUTCOME_FAILURE, TL_PROOF_NOT_FOUND, TL_FAILED);
    assert_row(&f, "r2", "c1", "WITHDRAW", "F 1 1");
    assert_row(&f, "r2", "c1", "WITHDRAW_RETRY", "F 1 0");
    refused("r2", TL_FAILED);
    database_expect(
        f.sql, 1,
        "SELECT next_run_at IS NULL FROM trade_lock WHERE serial_no = 'r2' AND lane = 'R'");
}

TEST(test_parked)
{
    tl_lock_options over = retry_options();
    tl_ending ending = TL_ENDING_INIT;
    tl_lock *retry;
    tl_status status;

    end_in_doubt(granted(f.client, "r3", "c1", SYNC));
    retry = claim("r3");
    ending.park_reason = "attempts used up";
    assert_status(tl_lock_finish(retry, &ending), TL_PARKED);
    tl_lock_free(retry);
    retry = ask(f.client, "r3", "c1", SYNC, &status);
    assert_status(status, TL_PARKED);
    assert_string_equal(tl_lock_view(retry)->parked, "attempts used up");
    over.flags = TL_ASK_OVERRIDE;
    over.override_fence = tl_lock_view(retry)->fence;
    tl_lock_free(retry);
    refused("r3", TL_PARKED);
    retry = ask(f.other, "r3", "c1", &over, &status);
    assert_status(status, TL_GRANTED);
    end_paid(retry);
}

/* It waits for a person, and so for no moment: a list would show it twice, parked and due. */
TEST(test_what_is_parked_is_not_due)
{
    static const char parked[] =
        "SELECT COUNT(*) FROM trade_lock WHERE serial_no = '%s' AND lane = "
        "'R' AND parked = 'by hand' AND next_run_at IS NULL";
    tl_ending ending = TL_ENDING_INIT;
    tl_lock *lock;

    ending.park_reason = "by hand";
    ending.next_run_ms = 1000;
    lock = granted(f.client, "p7", "c1", SYNC);
    assert_status(tl_lock_finish(lock, &ending), TL_PARKED);
    tl_lock_free(lock);
    database_expect(f.sql, 1, parked, "p7");
    end_in_doubt(granted(f.client, "p8", "c1", SYNC));
    lock = claim("p8");
    assert_status(tl_lock_finish(lock, &ending), TL_PARKED);
    tl_lock_free(lock);
    database_expect(f.sql, 1, parked, "p8");
}

TEST(test_forgotten_lock_is_opened_at_max_hold)
{
    tl_lock_options options = sync_options("x");
    tl_reaped reaped;
    tl_lock *lock, *retry;

    options.max_hold_ms = 50;
    lock = granted(f.client, "r4", "c1", &options);
    usleep(100 * 1000);
    assert_false(tl_may_send(lock, 0));
    tl_log_trace_set(TRACE);
    assert_status(tl_reap(f.other, &reaped), TL_OK);
    assert_string_equal(tl_log_trace(), TRACE); /* whatever it told of meanwhile */
    tl_log_trace_set(NULL);
    assert_int_equal(reaped.opened, 1);
    assert_int_equal(reaped.sessions, 0);
    retry = claim("r4");
    end_paid(retry);
    /* The forgetful holder wakes up. */
    end_lock(lock, TL_OUTCOME_FAILURE, TL_PROOF_DECLINED, TL_LOST);
    assert_row(&f, "r4", "c1", "WITHDRAW", "Y 1 1");
    database_expect(
        f.sql, 1,
        "SELECT COUNT(*) FROM trade_evidence WHERE serial_no='r4' AND outcome='DECLINED'");
}

TEST(test_a_dead_session_is_swept)
{
    tl_client *dying = client_new(&f, TL_CLIENT_NO_JANITOR);
    tl_lock *lock = granted(dying, "r5", "c1", SYNC);
    tl_reaped reaped;

    tl_lock_free(lock);
    refused("r5", TL_BUSY);
    tl_client_close(dying);
    assert_status(tl_reap(f.other, &reaped), TL_OK);
    assert_int_equal(reaped.opened, 1);
    refused("r5", TL_GRANTED);
    database_expect(
        f.sql, 0,
        "SELECT COUNT(*) FROM tl_session WHERE ended_at IS NOT NULL AND swept_at IS NULL");
}

TEST(test_batches)
{
    tl_lock *first[8], *second[8];
    int64_t due_ms;

    open_lanes("b", 8);
    assert_status(tl_next_due_ms(f.client, "WITHDRAW", &due_ms), TL_OK);
    assert_int_equal(due_ms, 0);
    assert_int_equal(claim_most(f.client, first, 5), 5);
    assert_int_equal(claim_most(f.other, second, 8), 3);
    assert_memory_equal(tl_lock_view(second[0])->payload, "x", 1);
    assert_int_equal(tl_lock_view(second[0])->attempts, 1);
    assert_int_equal(tl_lock_view(second[0])->state, TL_STATE_WORKING);
    end_all_paid(first, 5);
    end_all_paid(second, 3);
    assert_status(tl_next_due_ms(f.client, "WITHDRAW", &due_ms), TL_OK);
    assert_int_equal(due_ms, -1);
}

/* Counted is what waited for so long, in this lane, and is at nobody's hands. */
TEST(test_overdue)
{
    tl_overdue found;
    tl_lock *claimed;

    database_run(f.sql, "DELETE FROM trade_lock");
    assert_status(tl_lane_overdue(f.client, "WITHDRAW", 0, &found), TL_OK);
    assert_int_equal(found.count, 0);
    assert_int_equal(found.late_ms, 0);
    open_lanes("o", 3);
    assert_status(tl_lane_overdue(f.client, "WITHDRAW", 60000, &found), TL_OK);
    assert_int_equal(found.count, 0);
    usleep(1100000);
    assert_status(tl_lane_overdue(f.client, "WITHDRAW", 1000, &found), TL_OK);
    assert_int_equal(found.count, 3);
    assert_in_range(found.late_ms, 1000, 60000);
    assert_status(tl_lane_overdue(f.client, "PAYOUT", 1000, &found), TL_OK);
    assert_int_equal(found.count, 0);
    assert_int_equal(claim_most(f.client, &claimed, 1), 1);
    assert_status(tl_lane_overdue(f.client, "WITHDRAW", 1000, &found), TL_OK);
    assert_int_equal(found.count, 2);
    end_paid(claimed);
    assert_status(tl_lane_overdue(f.client, "WITHDRAW", -1, &found), TL_INVALID);
}

static void pause_channel(const char *channel, const char *op_code)
{
    database_run(f.sql,
                 "REPLACE INTO trade_channel (channel, op_code, paused, decided_at, reason, actor, "
                 "account) VALUES ('%s', '%s', 1, UTC_TIMESTAMP(6), 'r', 'a', 'a@h')",
                 channel, op_code);
    while (tl_channel_check(f.client, channel, op_code[0] != '\0' ? op_code : "WITHDRAW") == TL_OK)
        usleep(10000);
}

/* What operators let wait is not overdue, and hides nothing that is due besides, however much of it
 * there is. */
TEST(test_overdue_beside_a_paused_channel)
{
    tl_lock_options options = sync_options("x");
    tl_overdue found;

    database_run(f.sql, "DELETE FROM trade_lock");
    for (int i = 0; i < TL_OVERDUE_MAX + 2; i++) {
        const struct text serial = text_of("p%d", i);

        options.channel = i < TL_OVERDUE_MAX + 1 ? "shut" : "open";
        end_in_doubt(granted(f.client, serial.is, "c9", &options));
    }
    usleep(100000);
    assert_status(tl_lane_overdue(f.client, "WITHDRAW", 50, &found), TL_OK);
    assert_int_equal(found.count, TL_OVERDUE_MAX);
    pause_channel("shut", "WITHDRAW");
    pause_channel("open", "OTHER");
    assert_status(tl_lane_overdue(f.client, "WITHDRAW", 50, &found), TL_OK);
    assert_int_equal(found.count, 1);
    pause_channel("open", "");
    assert_status(tl_lane_overdue(f.client, "WITHDRAW", 50, &found), TL_OK);
    assert_int_equal(found.count, 0);
    assert_int_equal(found.late_ms, 0);
    database_run(f.sql, "DELETE FROM trade_channel");
}

static struct {
    tl_lock *locks[TL_CLAIM_MAX];
    size_t count;
} held;

/* Claims `count` trades, which must be there.  Of the first: its serial number. */
static void claim_oldest(size_t count, char serial[TL_SERIAL_MAX + 1])
{
    tl_lock **first = &held.locks[held.count];

    assert_int_equal(claim_most(f.client, first, count), count);
    strcpy(serial, tl_lock_view(*first)->serial_no);
    held.count += count;
}

static void end_claims(void)
{
    end_all_paid(held.locks, held.count);
    held.count = 0;
}

/* Left by claims that began then; it holds for DUE_MARK_MS. */
static void assert_mark(int64_t begun_ms)
{
    const int64_t mark = due_mark_get(&f.client->due_marks, "WITHDRAW");

    if (crew_now_ms() - begun_ms < DUE_MARK_MS)
        assert_int_not_equal(mark, 0);
}

static void due_since_an_hour_ago(const char *serial)
{
    database_run(f.sql,
                 "UPDATE trade_lock SET next_run_at = UTC_TIMESTAMP(6) - INTERVAL 1 HOUR "
                 "WHERE serial_no = '%s' AND lane = 'R'",
                 serial);
}

static void file(const char *serial, const char *outcome)
{
    tl_evidence evidence = TL_EVIDENCE_INIT;

    evidence.key = (tl_key){serial, "c9", "WITHDRAW"};
    evidence.outcome = outcome;
    evidence.source = "test";
    assert_status(tl_evidence_add(f.client, &evidence), TL_OK);
}

/* Somebody is at one lane's retry row and at another's sync row: the claim steps over both and
 * takes the rest. */
TEST(test_claim_steps_over_locked_rows)
{
    MYSQL *other = database_connect(f.db);
    tl_lock *locks[8];

    open_lanes("l", 4);
    database_run(other, "BEGIN; SELECT 1 FROM trade_lock WHERE cust_no = 'c9' AND "
                        "serial_no = 'l0' AND op_code = 'WITHDRAW_RETRY' FOR UPDATE; "
                        "SELECT 1 FROM trade_lock WHERE cust_no = 'c9' AND "
                        "serial_no = 'l1' AND op_code = 'WITHDRAW' FOR UPDATE");
    assert_int_equal(claim_most(f.client, locks, 8), 2);
    database_run(other, "ROLLBACK");
    mysql_close(other);
    end_all_paid(locks, 2);
    assert_int_equal(claim_most(f.client, locks, 8), 2);
    tl_lock_free(locks[0]);
    tl_lock_free(locks[1]);
}

/* What was claimed and not begun goes to the front again, not behind all that is due. */
TEST(test_what_is_given_back_keeps_its_place)
{
    const tl_findings not_begun = {.not_counted = 1, .due_as_before = 1};
    tl_ending unknown = TL_ENDING_INIT;
    char serial[TL_SERIAL_MAX + 1];
    tl_lock *lock;

    open_lanes("g", 4);
    due_since_an_hour_ago("g2");
    assert_int_equal(claim_most(f.other, &lock, 1), 1);
    assert_string_equal(tl_lock_view(lock)->serial_no, "g2");
    unknown.outcome = TL_OUTCOME_UNKNOWN;
    assert_status(tl_lock_put_back(lock, &unknown, &not_begun), TL_IN_DOUBT);
    tl_lock_free(lock);
    database_expect(f.sql, 0,
                    "SELECT attempts FROM trade_lock WHERE serial_no = 'g2' AND lane = 'R'");
    usleep((DUE_MARK_MS + 50) * 1000);
    claim_oldest(1, serial);
    assert_string_equal(serial, "g2");
    claim_oldest(3, serial);
    assert_string_equal(serial, "g0");
    end_claims();
}

/* A suspect that was not begun is the suspect that it was; a trade that was none is none. */
TEST(test_what_is_given_back_is_no_more_suspect)
{
    const tl_findings not_begun = {.not_counted = 1, .due_as_before = 1};
    tl_claim_options wanted = TL_CLAIM_OPTIONS_INIT;
    tl_ending unknown = TL_ENDING_INIT;

    open_lanes("k", 1);
    wanted.op_code = "WITHDRAW";
    wanted.max_hold_ms = 60000;
    unknown.outcome = TL_OUTCOME_UNKNOWN;
    for (int claims = 0; claims < 3; claims++) {
        tl_lock *lock = NULL;
        size_t count = 1;
        int due = -1;

        database_run(f.sql,
                     "UPDATE trade_lock SET claims = %d, rev = rev + 1, step = 'set' WHERE "
                     "serial_no = 'k0' AND lane = 'R'",
                     claims);
        assert_status(tl_suspects_due(f.client, "WITHDRAW", &due), TL_OK);
        assert_int_equal(due, claims > 0);
        wanted.suspects = claims > 0;
        assert_status(tl_claim_due(f.client, &wanted, &lock, &count), TL_OK);
        assert_int_equal(count, 1);
        assert_status(tl_suspects_due(f.client, "WITHDRAW", &due), TL_OK);
        assert_int_equal(due, 0);
        assert_status(tl_lock_put_back(lock, &unknown, &not_begun), TL_IN_DOUBT);
        tl_lock_free(lock);
        database_expect(f.sql, claims,
                        "SELECT claims FROM trade_lock WHERE serial_no = 'k0' AND lane = 'R'");
    }
}

/* A claim begins where the last one found the oldest.  What is older is found all the same: soon,
 * and at once if nothing else is due. */
TEST(test_claims_begin_where_the_last_one_did)
{
    char serial[TL_SERIAL_MAX + 1];
    int64_t begun_ms;

    open_lanes("m", 8);
    usleep((DUE_MARK_MS + 50) * 1000);
    begun_ms = crew_now_ms();
    claim_oldest(2, serial);
    assert_string_equal(serial, "m0");
    assert_mark(begun_ms);
    due_since_an_hour_ago("m7");
    usleep((DUE_MARK_MS + 50) * 1000);
    begun_ms = crew_now_ms();
    claim_oldest(1, serial);
    assert_string_equal(serial, "m7");
    claim_oldest(4, serial);
    assert_string_equal(serial, "m2");
    assert_mark(begun_ms);
    due_since_an_hour_ago("m6");
    claim_oldest(1, serial);
    assert_string_equal(serial, "m6");
    end_claims();
}

/* A claim says of each trade whether anything is on file, however much there is. */
TEST(test_a_claim_knows_what_is_on_file)
{
    tl_lock *locks[8];

    open_lanes("f", 4);
    file("f1", "PENDING");
    file("f1", "ACCEPTED");
    file("f1", "SUCCEEDED");
    /* Half a decision. */
    database_run(f.sql, "INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, "
                        "part, fence, epoch, reason, actor, thread_no) SELECT cust_no, serial_no, "
                        "op_code, rev, 'F', 1, fence, epoch, 'why', 'ann', thread_no "
                        "FROM trade_lock WHERE serial_no = 'f2' AND lane = 'S'");
    assert_int_equal(claim_most(f.client, locks, 8), 4);
    for (size_t i = 0; i < 4; i++) {
        const char *serial = tl_lock_view(locks[i])->serial_no;

        assert_int_equal(tl_lock_on_file(locks[i]), serial[1] == '1' || serial[1] == '2');
        assert_memory_equal(tl_lock_view(locks[i])->payload, "x", 1);
        end_paid(locks[i]);
    }
    database_run(f.sql, "DELETE FROM trade_resolution");
    assert_int_equal(tl_lock_on_file(NULL), 1);
}

TEST(test_standalone)
{
    tl_lock_options options = retry_options();
    tl_lock *lock;
    tl_status status;

    options.flags = TL_ASK_STANDALONE;
    lock = granted(f.client, "r6", "c1", &options);
    assert_row(&f, "r6", "c1", "WITHDRAW_RETRY", "P 1 1");
    assert_row(&f, "r6", "c1", "WITHDRAW", "-");
    tl_lock_free(ask(f.other, "r6", "c1", &options, &status));
    assert_status(status, TL_BUSY);
    /* Operators decide of trades, and here is none. */
    assert_status(finish(lock, TL_OUTCOME_FAILURE, TL_PROOF_OPERATORS), TL_INVALID);
    assert_row(&f, "r6", "c1", "WITHDRAW_RETRY", "P 1 1");
    end_lock(lock, TL_OUTCOME_FAILURE, TL_PROOF_NONE, TL_FAILED);
    lock = granted(f.other, "r6", "c1", &options);
    assert_row(&f, "r6", "c1", "WITHDRAW_RETRY", "P 2 1");
    end_paid(lock);
    tl_lock_free(ask(f.other, "r6", "c1", &options, &status));
    assert_status(status, TL_ALREADY_DONE);
}

/* A standalone row in the place of a trade's retry row: it is not the trade's until the trade has
 * to be opened, and then it is nobody else's any more. */
TEST(test_standalone_beside_a_trade)
{
    tl_lock_options alone = retry_options();
    tl_lock *mutex, *trade, *again;
    tl_status status;

    alone.flags = TL_ASK_STANDALONE;
    mutex = granted(f.client, "r7", "c1", &alone);
    trade = granted(f.client, "r7", "c1", SYNC);
    end_paid(trade);
    refused("r7", TL_ALREADY_DONE); /* which closes a retry row that the trade left */
    assert_row(&f, "r7", "c1", "WITHDRAW_RETRY", "P 1 1");
    end_paid(mutex);

    mutex = granted(f.client, "r8", "c1", &alone);
    trade = granted(f.client, "r8", "c1", SYNC);
    again = ask(f.other, "r8", "c1", SYNC, &status);
    assert_status(status, TL_BUSY);
    assert_int_equal(tl_lock_view(again)->state, TL_STATE_LIVE);
    assert_false(tl_lock_view(again)->has_retry_row);
    tl_lock_free(again);
    end_in_doubt(trade);
    end_lock(mutex, TL_OUTCOME_SUCCESS, TL_PROOF_NONE, TL_LOST);
    tl_lock_free(ask(f.other, "r8", "c1", &alone, &status));
    assert_status(status, TL_MISMATCH);
    trade = claim("r8");
    end_paid(trade);
}

static void file_success(const char *serial, uint32_t epoch, tl_status expected)
{
    tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                            .key = {serial, "c1", "WITHDRAW"},
                            .epoch = epoch,
                            .outcome = "SUCCEEDED",
                            .source = "statement"};

    assert_status(tl_evidence_add(f.client, &evidence), expected);
}

TEST(test_evidence)
{
    tl_lock *lock;

    /* Success seen while the holder is about to fail: the failure is refused. */
    lock = granted(f.client, "v1", "c1", SYNC);
    file_success("v1", 1, TL_OK);
    assert_status(finish(lock, TL_OUTCOME_FAILURE, TL_PROOF_DECLINED), TL_EVIDENCE);
    end_paid(lock);
    /* Success of a trade that failed: conflict, and nobody reclaims it. */
    end_lock(granted(f.client, "v2", "c1", SYNC), TL_OUTCOME_FAILURE, TL_PROOF_DECLINED, TL_FAILED);
    file_success("v2", 1, TL_IN_CONFLICT);
    refused("v2", TL_IN_CONFLICT);
    /* A waiting lane becomes due at once, and nothing is armed any more. */
    lock = granted(f.client, "v3", "c1", SYNC);
    {
        tl_ending ending = TL_ENDING_INIT;

        ending.next_run_ms = 60000;
        assert_status(tl_lock_finish(lock, &ending), TL_IN_DOUBT);
    }
    tl_lock_free(lock);
    refused("v3", TL_NOT_DUE);
    file_success("v3", 1, TL_OK);
    lock = claim("v3");
    assert_status(tl_lock_arm(lock, 1000), TL_EVIDENCE);
    end_paid(lock);
}

static void file_final(const char *serial, const char *outcome)
{
    tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                            .key = {serial, "c1", "WITHDRAW"},
                            .outcome = outcome,
                            .final = strcmp(outcome, "FAILED") == 0,
                            .source = "web-hook"};

    assert_status(tl_evidence_add(f.client, &evidence), TL_OK);
}

static void put_back_for_a_minute(tl_lock *lock, int apply_failed)
{
    const tl_findings findings = {.apply_failed = apply_failed};
    tl_ending ending = TL_ENDING_INIT;

    ending.next_run_ms = 60000;
    assert_status(tl_lock_put_back(lock, &ending, &findings), TL_IN_DOUBT);
    tl_lock_free(lock);
}

/* What is filed during an attempt, on either lane, before or after a send is armed, makes the lane
 * due as soon as it is opened.  What an attempt knew when it began does not, or it would be claimed
 * again and again; nor does what the business rows refused. */
TEST(test_evidence_during_an_attempt)
{
    static const char *const outcomes[] = {"FAILED", "DECLINED"};

    for (int i = 0; i < 2; i++) {
        const char *serial = i == 0 ? "e1" : "e2";
        tl_lock *lock = granted(f.client, serial, "c1", SYNC);

        file_final(serial, outcomes[i]);
        put_back_for_a_minute(lock, 0);
        lock = claim(serial);
        file_final(serial, outcomes[i]);
        assert_status(tl_lock_arm(lock, 60000), TL_OK);
        put_back_for_a_minute(lock, 0);
        lock = claim(serial);
        assert_status(tl_lock_arm(lock, 60000), TL_OK);
        file_final(serial, outcomes[i]);
        put_back_for_a_minute(lock, 0);
        lock = claim(serial);
        assert_status(tl_lock_arm(lock, 60000), TL_OK);
        put_back_for_a_minute(lock, 0);
        refused(serial, TL_NOT_DUE);
        lock = granted(f.client, i == 0 ? "e3" : "e4", "c1", SYNC);
        file_final(i == 0 ? "e3" : "e4", outcomes[i]);
        put_back_for_a_minute(lock, 1);
        refused(i == 0 ? "e3" : "e4", TL_NOT_DUE);
    }
}

/* Each process knows of the jump, and rows are not adjusted to it: no conflict is told.  A janitor
 * may be faster, so it is tried several times. */
TEST(test_arming_while_a_clock_jump_is_open)
{
    tl_ending ending = TL_ENDING_INIT;
    tl_lock *lock = granted(f.client, "j1", "c1", SYNC);
    tl_status status = TL_OK;

    ending.next_run_ms = 1;
    assert_status(tl_lock_finish(lock, &ending), TL_IN_DOUBT);
    tl_lock_free(lock);
    database_run(f.sql, "INSERT INTO tl_clock_step VALUES (1, 1, UTC_TIMESTAMP(6), "
                        "UTC_TIMESTAMP(6), 'test', 'test')");
    database_run(f.sql, "UPDATE tl_clock SET steps = 1, settled = 1");
    while (clock_watch_jumps(f.other) != 1)
        usleep(10000);
    lock = claim("j1");
    for (int i = 0; i < 50 && status == TL_OK; i++) {
        database_run(f.sql, "UPDATE tl_clock SET settled = 0");
        status = tl_lock_arm(lock, 1000);
    }
    assert_status(status, TL_TRY_AGAIN);
    assert_non_null(strstr(tl_error_message(), "clock was set"));
    tl_lock_free(lock);
}

TESTS_OF(retry, open_all, close_all)

/*
 * The server's clock jumps around a claim, and the jump is on record and settled before the claim
 * ends.  No failure may rest on what its row said of moments; all other endings stay as they are.
 */
#include "stepping.h"

#include "client/client.h"
#include "workflows/compensate_now.h"
#include "registry.h"
#include "support/crew.h"
#include "support/theme.h"
#include "trade_lock/lock.h"
#include "workflows/house.h"

#include <tradelock/callback.h>

#include <pthread.h>
#include <stdatomic.h>

/* Nobody but the test looks at the clock. */
#define SETTINGS                                                                                   \
    "site=clock\nbeat_ms=60s\nsession_ms=10m\njanitor=0\nmax_hold_ms=30s\nexecute_ms=800ms\n"      \
    "commit_ms=5s\nschedule=100ms\nattempts=500\nbusiness_lock_wait_s=5\ngrace_ms=10m\n"           \
    "deadline_ms=20s\n"
#define JUMP_MS 760000

static stepping *server_here;
static house self;

FIXTURE(close_house)
{
    house_close(&self);
    server_free(stepping_server(server_here));
    stepping_free(server_here);
}

/* A payment in doubt, whose channel said "no such payment" once, just now.  It is on its way. */
static void open_grace(void)
{
    server_here = stepping_start();
    house_open(&self, WITHDRAW_WINDOW, SETTINGS, stepping_server(server_here));
    house_account(&self, "C1", 1000000);
    house_rule(&self, "{\"kind\":\"drop_before\",\"count\":1}");
    house_expect(&self, "W1", "C1", 10, TL_IN_DOUBT);
    database_run(self.sql, "UPDATE trade_lock SET not_found_since = UTC_TIMESTAMP(6), "
                           "send_until = UTC_TIMESTAMP(6) WHERE lane = 'S'");
    database_run(self.sql, "UPDATE trade_lock SET next_run_at = UTC_TIMESTAMP(6) WHERE lane = 'R'");
}

static tl_lock *ask_by_key(const char *serial_no, tl_lane lane)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_key key = {serial_no, "C1", WITHDRAW_OP};
    tl_lock *lock = NULL;

    options.max_hold_ms = 30000;
    options.lane = lane;
    assert_status(tl_lock_new(&lock, self.client, &key, &options), TL_OK);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    return lock;
}

static tl_lock *claim_by_key(void)
{
    return ask_by_key("W1", TL_LANE_RETRY);
}

static tl_status finish(tl_lock *lock, tl_outcome outcome, tl_proof proof)
{
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = outcome;
    ending.proof = proof;
    return tl_lock_finish(lock, &ending);
}

/* As a heartbeat and a janitor do. */
static void record_and_settle(void)
{
    assert_status(clock_watch_look(self.client), TL_OK);
    assert_int_equal(database_number(self.sql, "SELECT steps FROM tl_clock"), 1);
    assert_status(clock_watch_adjust(self.client, PATIENCE_MS), TL_OK);
    assert_status(clock_watch_check(self.client), TL_OK);
}

/* Claimed by the new clock, believed anew: the view has the old start of the grace. */
TEST_IN(a_settled_jump_ends_no_grace, NULL, close_house)
{
    compensate_calls calls = {0};
    tl_lock *lock;

    open_grace();
    stepping_set(server_here, JUMP_MS);
    lock = claim_by_key();
    record_and_settle();
    assert_status(
        compensate_now(self.client, workflows_find(self.workflows, WITHDRAW_OP), lock, &calls),
        TL_IN_DOUBT);
    tl_lock_free(lock);
    assert_int_equal(calls.queries, 1);
    house_row(&self, "W1", "P 1 1 -");
    house_retry_row(&self, "W1", "F", "");
    /* It was no attempt, and is due by schedule. */
    assert_int_equal(database_number(self.sql, "SELECT attempts = 0 AND next_run_at IS NOT NULL "
                                               "FROM trade_lock WHERE lane = 'R'"),
                     1);
}

/* The claim shows by the old clock that every send is over.  By the new one it is not, so "no such
 * payment" begins no grace: it would be over with the send. */
TEST_IN(no_grace_begins_beside_a_jump, NULL, close_house)
{
    compensate_calls calls = {0};
    tl_lock *lock;

    open_grace();
    database_run(self.sql, "UPDATE trade_lock SET not_found_since = NULL WHERE lane = 'S'");
    stepping_set(server_here, JUMP_MS);
    lock = claim_by_key();
    record_and_settle();
    assert_status(
        compensate_now(self.client, workflows_find(self.workflows, WITHDRAW_OP), lock, &calls),
        TL_IN_DOUBT);
    tl_lock_free(lock);
    assert_int_equal(calls.queries, 1);
    assert_int_equal(database_number(self.sql, "SELECT not_found_since IS NULL FROM trade_lock"
                                               " WHERE lane = 'S'"),
                     1);
}

/* The row was written while the clock was an hour ahead, and adjusted after this claim read it. */
TEST_IN(no_wait_is_longer_than_hold_and_grace, NULL, close_house)
{
    compensate_calls calls = {0};
    tl_lock *lock;

    open_grace();
    database_run(self.sql, "UPDATE trade_lock SET not_found_since = NULL, send_until = "
                           "UTC_TIMESTAMP(6) + INTERVAL 1 HOUR WHERE lane = 'S'");
    lock = claim_by_key();
    assert_status(
        compensate_now(self.client, workflows_find(self.workflows, WITHDRAW_OP), lock, &calls),
        TL_IN_DOUBT);
    tl_lock_free(lock);
    assert_int_equal(calls.queries, 1);
    assert_int_equal(database_number(self.sql,
                                     "SELECT next_run_at <= UTC_TIMESTAMP(6) + INTERVAL 20 MINUTE "
                                     "AND attempts = 0 FROM trade_lock WHERE lane = 'R'"),
                     1);
}

/* Every proof that is absence or age is refused; the lock stays held, and may succeed. */
TEST_IN(what_rests_on_moments_is_refused, NULL, close_house)
{
    static const tl_proof proofs[] = {TL_PROOF_NOT_FOUND, TL_PROOF_NEVER_LEFT, TL_PROOF_DECLINED,
                                      TL_PROOF_OPERATORS};
    tl_lock *lock;

    open_grace();
    stepping_set(server_here, JUMP_MS);
    lock = claim_by_key();
    record_and_settle();
    for (size_t i = 0; i < sizeof proofs / sizeof *proofs; i++)
        assert_status(finish(lock, TL_OUTCOME_FAILURE, proofs[i]), TL_ASK_CHANNEL);
    house_row(&self, "W1", "P 1 1 -");
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
    house_row(&self, "W1", "Y 1 1 -");
}

/* The row was read by the old clock, and is read again by the new one, which nobody has looked
 * at. */
TEST_IN(a_row_that_is_read_again_is_doubted, NULL, close_house)
{
    tl_lock *lock;

    open_grace();
    lock = claim_by_key();
    stepping_set(server_here, JUMP_MS);
    assert_status(tl_lock_arm(lock, 30000), TL_TRY_AGAIN);
    assert_int_equal(database_number(self.sql, "SELECT steps FROM tl_clock"), 0);
    assert_status(finish(lock, TL_OUTCOME_FAILURE, TL_PROOF_NOT_FOUND), TL_ASK_CHANNEL);
    assert_status(finish(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_IN_DOUBT);
    tl_lock_free(lock);
}

/* The linker puts it before the library's own. */
int __real_clock_watch_fits(tl_client *client, const tl_view *view, int64_t before_us);
int __wrap_clock_watch_fits(tl_client *client, const tl_view *view, int64_t before_us);
static int looked_before;

int __wrap_clock_watch_fits(tl_client *client, const tl_view *view, int64_t before_us)
{
    int fits = __real_clock_watch_fits(client, view, before_us);

    if (looked_before)
        atomic_store(&client->clock.unclear, 0);
    return fits;
}

uint32_t __real_clock_watch_jumps(tl_client *client);
uint32_t __wrap_clock_watch_jumps(tl_client *client);
static int jumps_meanwhile;

/* Once, between the number that a step has and the step. */
uint32_t __wrap_clock_watch_jumps(tl_client *client)
{
    const uint32_t jumps = __real_clock_watch_jumps(client);

    if (jumps_meanwhile) {
        jumps_meanwhile = 0;
        stepping_set(server_here, JUMP_MS);
        record_and_settle();
    }
    return jumps;
}

/* It was set forward and back: no look sees that, but the row was read in between. */
TEST_IN(a_jump_there_and_back_is_remembered, NULL, close_house)
{
    tl_lock *lock;

    open_grace();
    stepping_set(server_here, JUMP_MS);
    lock = claim_by_key();
    stepping_set(server_here, 0);
    assert_status(finish(lock, TL_OUTCOME_FAILURE, TL_PROOF_NOT_FOUND), TL_ASK_CHANNEL);
    assert_status(finish(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_IN_DOUBT);
    tl_lock_free(lock);
}

/* What the channel answered to this hold's own send is true by any clock; so is a receipt. */
TEST_IN(an_answer_is_booked_by_any_clock, NULL, close_house)
{
    tl_lock *lock;

    open_grace();
    lock = claim_by_key();
    assert_status(tl_lock_arm(lock, 30000), TL_OK);
    stepping_set(server_here, JUMP_MS);
    record_and_settle();
    assert_status(finish(lock, TL_OUTCOME_FAILURE, TL_PROOF_DECLINED), TL_FAILED);
    tl_lock_free(lock);
    house_row(&self, "W1", "F 1 2 D");
}

static tl_status book_nothing(void *context, struct st_mysql *connection)
{
    (void)context;
    (void)connection;
    return TL_OK;
}

/* Somebody has the clock's row, as while a jump is recorded; a success reads nothing of it. */
TEST_IN(a_success_asks_no_clock, NULL, close_house)
{
    tl_ending ending = TL_ENDING_INIT;
    MYSQL *holding;
    tl_status status;
    tl_lock *lock;

    open_grace();
    holding = database_connect(self.db);
    lock = claim_by_key();
    database_run(holding, "BEGIN; SELECT one FROM tl_clock FOR UPDATE");
    ending.outcome = TL_OUTCOME_SUCCESS;
    status = tl_lock_finish_with(lock, &ending, book_nothing, NULL, 2000);
    mysql_close(holding);
    assert_status(status, TL_SUCCEEDED);
    tl_lock_free(lock);
    house_row(&self, "W1", "Y 1 1 -");
}

/* ---------------------------------------------------------------- a claim of a batch -- */

struct claiming {
    tl_lock *lock;
    size_t count;
    tl_status status;
};

static void *claim_due(void *context)
{
    struct claiming *c = context;
    tl_claim_options options = TL_CLAIM_OPTIONS_INIT;

    options.op_code = WITHDRAW_OP;
    options.max_hold_ms = 30000;
    c->count = 1;
    c->status = tl_claim_due(self.client, &options, &c->lock, &c->count);
    return NULL;
}

/* Of an operation that nobody has.  A claim's connection that is new looks for a restore first. */
static void claim_nothing(void)
{
    tl_claim_options options = TL_CLAIM_OPTIONS_INIT;
    tl_lock *lock = NULL;
    size_t count = 1;

    options.op_code = "NOTHING";
    options.max_hold_ms = 30000;
    assert_status(tl_claim_due(self.client, &options, &lock, &count), TL_OK);
    assert_int_equal(count, 0);
}

/* The claim is committed, and its row not read yet. */
static void await_reader(void)
{
    AWAIT_WHILE(database_number(self.sql,
                                "SELECT COUNT(*) FROM information_schema.processlist WHERE "
                                "state = 'Waiting for table metadata lock'") == 0);
}

/* A heartbeat records the jump and believes the clock anew while the claim waits for the table. */
static void claim_beside_the_record(const char *table)
{
    struct claiming c = {.lock = NULL};
    MYSQL *holding;
    pthread_t thread;

    open_grace();
    holding = database_connect(self.db);
    claim_nothing();
    stepping_set(server_here, JUMP_MS);
    database_run(holding, "LOCK TABLES %s WRITE", table);
    assert_int_equal(pthread_create(&thread, NULL, claim_due, &c), 0);
    await_reader();
    assert_status(clock_watch_look(self.client), TL_OK);
    database_run(holding, "UNLOCK TABLES");
    pthread_join(thread, NULL);
    mysql_close(holding);
    assert_status(c.status, TL_OK);
    assert_int_equal(c.count, 0);
    house_row(&self, "W1", "P 1 1 -");
    house_retry_row(&self, "W1", "F", "");
    assert_int_equal(
        database_number(self.sql, "SELECT COUNT(*) FROM trade_lock_log WHERE step = 'claim'"), 2);
}

/* The claim is committed, and its row is being read. */
TEST_IN(a_claim_beside_the_record_is_given_back, NULL, close_house)
{
    claim_beside_the_record("tl_session");
}

/* The claim found the clock clear, and has not begun to look for rows. */
TEST_IN(a_claim_before_the_record_is_given_back, NULL, close_house)
{
    claim_beside_the_record("trade_lock");
}

/* The process knows of the jump, and the claimed row does not. */
TEST_IN(a_claim_before_the_adjustment_is_doubted, NULL, close_house)
{
    tl_ending ending = TL_ENDING_INIT;
    tl_lock *lock;

    open_grace();
    stepping_set(server_here, JUMP_MS);
    assert_status(clock_watch_look(self.client), TL_OK);
    lock = claim_by_key();
    assert_status(clock_watch_adjust(self.client, PATIENCE_MS), TL_OK);
    assert_status(finish(lock, TL_OUTCOME_FAILURE, TL_PROOF_NOT_FOUND), TL_ASK_CHANNEL);
    /* Nor does its lane wait for what the row said of moments. */
    ending.outcome = TL_OUTCOME_UNKNOWN;
    ending.next_run_ms = JUMP_MS;
    assert_status(tl_lock_finish(lock, &ending), TL_IN_DOUBT);
    tl_lock_free(lock);
    assert_int_equal(database_number(self.sql,
                                     "SELECT next_run_at <= UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE "
                                     "FROM trade_lock WHERE lane = 'R'"),
                     1);
}

/* An arming has begun by the old clock.  It is carried out when all rows are adjusted. */
TEST_IN(an_arming_across_a_jump_is_refused, NULL, close_house)
{
    tl_lock *lock;

    open_grace();
    lock = claim_by_key();
    jumps_meanwhile = 1;
    assert_status(tl_lock_arm(lock, 60000), TL_TRY_AGAIN);
    assert_int_equal(jumps_meanwhile, 0);
    house_row(&self, "W1", "P 1 1 -");
    tl_lock_free(lock);
}

/* A heartbeat looked before the jump, and says only now that all is well.  Nothing was armed, so
 * nothing may be sent. */
TEST_IN(what_was_not_armed_is_not_sent, NULL, close_house)
{
    tl_lock *lock;

    open_grace();
    lock = claim_by_key();
    stepping_set(server_here, JUMP_MS);
    looked_before = 1;
    assert_status(tl_lock_arm(lock, 30000), TL_TRY_AGAIN);
    looked_before = 0;
    assert_int_equal(
        database_number(self.sql, "SELECT COUNT(*) FROM trade_lock_log WHERE step = 'arm'"), 0);
    tl_lock_free(lock);
}

/* Asked for while the clock was set back, and set right before anybody looked: for others this hold
 * is over, and what is not found of its payment counts soon.  So nothing is sent under it. */
TEST_IN(what_was_asked_by_another_clock_is_not_sent, NULL, close_house)
{
    tl_lock *lock;

    open_grace();
    lock = ask_by_key("B1", TL_LANE_SYNC);
    assert_true(tl_may_send(lock, 1000));
    assert_status(finish(lock, TL_OUTCOME_NOT_SENT, TL_PROOF_NONE), TL_QUEUED);
    tl_lock_free(lock);
    stepping_set(server_here, -JUMP_MS);
    lock = ask_by_key("B2", TL_LANE_SYNC);
    stepping_set(server_here, 0);
    assert_false(tl_may_send(lock, 1));
    assert_status(finish(lock, TL_OUTCOME_NOT_SENT, TL_PROOF_NONE), TL_QUEUED);
    tl_lock_free(lock);
}

TESTS_OF(claims, NULL, NULL)

/*
 * The desk over a fleet of two shards, each a MariaDB of its own: lists and sums over both, a trade
 * and what is decided about it at the shard that has its customer, a customer that moves, a shard
 * that is down, and accounts that are not the same everywhere.
 */
#include "cli/command.h"
#include "fleet/shards.h"
#include "trade_lock/fixture.h"
#include "visitor.h"
#include "support/theme.h"

#include <tradelock/layer.h>

#include <signal.h>

#define HOUR_MS 3600000
#define OP "WITHDRAW"

enum { A, B, SHARDS };

static shards fleet;
static struct desk_process desk;
static tl_client *clients[SHARDS];
static char customers[SHARDS][2][TL_CUST_MAX + 1];

/* ------------------------------------------------------------------------- set-up -- */

static void make_account(size_t shard, const char *name, const char *role)
{
    database_run(fleet.sql[shard],
                 "CREATE USER %s@localhost IDENTIFIED BY 'secret'; GRANT %s TO %s@localhost; "
                 "SET DEFAULT ROLE %s FOR %s@localhost",
                 name, role, name, role, name);
}

static void make_accounts(void)
{
    for (size_t i = 0; i < SHARDS; i++) {
        ENDS(RUN("migrate", "--grants", "--shard", shards_names[i], "--config", fleet.file), 0);
        make_account(i, "ann", "{database}_operator");
        make_account(i, "bob", "{database}_operator");
        make_account(i, "eve", i == A ? "{database}_operator" : "{database}_reader");
        make_account(i, "sam", i == A ? "{database}_operator" : "{database}_application");
    }
    make_account(A, "joe", "{database}_operator");
}

static tl_client *open_client(size_t shard)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.config_file = database_option_file(fleet.db[shard]);
    if (tl_client_open(&client, &options) != TL_OK)
        server_panic("no client: %s", tl_error_message());
    return client;
}

FIXTURE(set_up)
{
    shards_open(&fleet, SHARDS);
    make_accounts();
    for (size_t i = 0; i < SHARDS; i++) {
        clients[i] = open_client(i);
        for (unsigned n = 0; n < 2; n++)
            shards_cust(&fleet, i, n, customers[i][n]);
    }
    desk_start(&desk, fleet.file, NULL);
}

FIXTURE(tear_down)
{
    desk_stop(&desk);
    for (size_t i = 0; i < SHARDS; i++)
        tl_client_close(clients[i]);
    shards_close(&fleet);
}

/* Each test has its own rows alone, and the slots as they were joined.  The picture of Now that the
 * test before left is old by then. */
FIXTURE(clear)
{
    for (int i = 0; i < SHARDS; i++)
        database_run(fleet.sql[i],
                     "TRUNCATE trade_lock; TRUNCATE trade_lock_past; DELETE FROM trade_evidence; "
                     "DELETE FROM trade_resolution; DELETE FROM tl_slot; "
                     "INSERT INTO tl_slot (slot, state) SELECT %d + seq, 'owned' FROM seq_0_to_511",
                     i * 512);
}

/* ------------------------------------------------------------------------- trades -- */

static tl_lock *held(int shard, const char *serial, const char *cust_no, const char *batch)
{
    tl_lock_options options = sync_options("pay");

    options.amount_minor = 1000;
    options.currency = "EUR";
    options.batch = batch;
    return granted(clients[shard], serial, cust_no, &options);
}

static void end(tl_lock *lock, const tl_ending *ending, tl_status expected)
{
    assert_status(tl_lock_finish(lock, ending), expected);
    tl_lock_free(lock);
}

static void make_paid(int shard, const char *serial, const char *cust_no, const char *batch)
{
    tl_ending paid = TL_ENDING_INIT;

    paid.outcome = TL_OUTCOME_SUCCESS;
    end(held(shard, serial, cust_no, batch), &paid, TL_SUCCEEDED);
}

static void make_failed(int shard, const char *serial, const char *cust_no)
{
    tl_ending failed = TL_ENDING_INIT;

    failed.outcome = TL_OUTCOME_FAILURE;
    failed.proof = TL_PROOF_DECLINED;
    end(held(shard, serial, cust_no, NULL), &failed, TL_FAILED);
}

/* As if the time in which its sender could still send were over. */
static void make_parked(int shard, const char *serial, const char *cust_no)
{
    tl_ending parked = TL_ENDING_INIT;

    parked.park_reason = "no answer";
    end(held(shard, serial, cust_no, NULL), &parked, TL_PARKED);
    database_run(fleet.sql[shard],
                 "UPDATE trade_lock SET send_until = UTC_TIMESTAMP(6), rev = rev + 1, "
                 "step = 'test' WHERE serial_no = '%s'",
                 serial);
}

static long long count(int shard, const char *table)
{
    return database_number(fleet.sql[shard], "SELECT COUNT(*) FROM %s", table);
}

/* ------------------------------------------------------------------------ visitors -- */

/* Looks for it, and opens the list. */
static void search_for(struct visitor *v, const char *value)
{
    char token[64], path[128];
    const char *at;

    visitor_get(v, "/trades");
    snprintf(token, sizeof token, "%s", visitor_field(v, "token"));
    visitor_post(v, "/search", NULL, "token", token, "find", value);
    EXPECT_PAGE(v, 303, "");
    at = strstr(v->headers, "/trades?r=");
    assert_non_null(at);
    snprintf(path, sizeof path, "%.*s", (int)strcspn(at, "\r"), at);
    visitor_get(v, path);
}

/* Opens the trade's page, or the page Decide; returns its reference. */
static const char *open_page(struct visitor *v, const char *page, const char *serial)
{
    static char ref[64];
    char path[128];

    search_for(v, serial);
    snprintf(ref, sizeof ref, "%s", strchr(visitor_link(v, "/trade?r="), '=') + 1);
    snprintf(path, sizeof path, "/%s?r=%s", page, ref);
    visitor_get(v, path);
    return ref;
}

/* As the page Decide that was got last sends it, but for the shard. */
static void send_to(struct visitor *v, const char *act, const char *as, const char *ref,
                    const char *shard)
{
    char token[64], epoch[16], fence[32], amount[24];

    snprintf(token, sizeof token, "%s", visitor_field(v, "token"));
    snprintf(epoch, sizeof epoch, "%s", visitor_field(v, "epoch"));
    snprintf(amount, sizeof amount, "%s", visitor_field(v, "amount"));
    snprintf(fence, sizeof fence, "%s", visitor_field(v, "fence"));
    visitor_post(v, "/decide", NULL, "token", token, "r", ref, "act", act, "as", as, "fence", fence,
                 "epoch", epoch, "reason", "the bank's letter", "outcome", "SUCCEEDED", "source",
                 "letter", "shard", shard, "amount", amount);
}

static void send_it(struct visitor *v, const char *act, const char *as, const char *ref)
{
    char shard[40];

    snprintf(shard, sizeof shard, "%s", visitor_field(v, "shard"));
    send_to(v, act, as, ref, shard);
}

/* -------------------------------------------------------------------------- lists -- */

TEST_IN(test_lists, clear, NULL)
{
    struct visitor v;

    make_paid(A, "A1", customers[A][0], NULL);
    make_parked(A, "A2", customers[A][0]);
    make_paid(B, "B1", customers[B][0], NULL);
    visitor_come_in(&v, &desk, "ann");
    visitor_get(&v, "/trades");
    EXPECT_PAGE(&v, 200, "<th scope=\"col\">Shard</th>");
    EXPECT_PAGE(&v, 200, ">A1</a>");
    EXPECT_PAGE(&v, 200, ">A2</a>");
    EXPECT_PAGE(&v, 200, "<td data-l=\"Shard\">b</td>");
    EXPECT_NONE(&v, "is missing on this page");
    /* A key finds its shard. */
    search_for(&v, "B1");
    EXPECT_NONE(&v, ">A1</a>");
    EXPECT_NONE(&v, "<td data-l=\"Shard\">a</td>");
    visitor_get(&v, visitor_link(&v, "/trade?r="));
    EXPECT_PAGE(&v, 200, "<dt>Shard</dt><dd>b</dd>");
    EXPECT_PAGE(&v, 200, "&quot;shard&quot;: &quot;b&quot;");
    search_for(&v, customers[A][0]);
    EXPECT_PAGE(&v, 200, ">A2</a>");
    EXPECT_NONE(&v, ">B1</a>");
    visitor_get(&v, "/trades?show=parked");
    EXPECT_PAGE(&v, 200, ">A2</a>");
    EXPECT_NONE(&v, ">A1</a>");
    EXPECT_NONE(&v, ">B1</a>");
    search_for(&v, "NONE");
    EXPECT_PAGE(&v, 200, "No trade is like that");
    visitor_leave(&v);
}

/* A page behind the first is of one shard, as a place of `ls` is. */
TEST_IN(test_pages_of_a_shard, clear, NULL)
{
    struct visitor v;
    const char *at;
    char path[128];

    make_paid(A, "A1", customers[A][0], NULL);
    database_run(fleet.sql[B],
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                 "thread_no, token, fence, rev, proof, session_id, max_hold_until, next_run_at, "
                 "created_at, updated_at) SELECT '%s', CONCAT('B', seq), '" OP "', 'S', 'F', "
                 "'ask', UUID(), 'x', 1, 1, 'D', UUID(), UTC_TIMESTAMP(6), "
                 "'2030-01-01' + INTERVAL seq SECOND, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) "
                 "FROM seq_1_to_60",
                 customers[B][0]);
    visitor_come_in(&v, &desk, "ann");
    visitor_get(&v, "/trades");
    EXPECT_PAGE(&v, 200, ">B60</a>");
    EXPECT_NONE(&v, ">B10</a>");
    EXPECT_NONE(&v, "of shard a</a>");
    EXPECT_PAGE(&v, 200, "Next page of shard b</a>");
    at = strstr(v.body, "rel=\"next\" href=\"") + strlen("rel=\"next\" href=\"");
    snprintf(path, sizeof path, "%.*s", (int)strcspn(at, "\""), at);
    visitor_get(&v, path);
    EXPECT_PAGE(&v, 200, ">B10</a>");
    EXPECT_PAGE(&v, 200, "Page 2");
    EXPECT_PAGE(&v, 200, "Previous page");
    EXPECT_NONE(&v, ">A1</a>");
    visitor_leave(&v);
}

TEST_IN(test_batch, clear, NULL)
{
    struct visitor v;

    make_paid(A, "A1", customers[A][0], "march");
    make_paid(B, "B1", customers[B][0], "march");
    tl_lock_free(held(B, "B2", customers[B][1], "march"));
    visitor_come_in(&v, &desk, "ann");
    search_for(&v, "march");
    EXPECT_PAGE(&v, 200, "Not complete: 1 of 3 are open.");
    EXPECT_PAGE(&v, 200, "<td data-l=\"Shard\">b</td><td data-l=\"State\">paid</td>");
    search_for(&v, "april");
    EXPECT_PAGE(&v, 200, "No trade is like that");
    EXPECT_NONE(&v, "omplete:");
    visitor_leave(&v);
}

TEST_IN(test_now_adds_up, clear, NULL)
{
    struct visitor v;

    make_parked(A, "A1", customers[A][0]);
    make_parked(B, "B1", customers[B][0]);
    make_parked(B, "B2", customers[B][1]);
    /* Until the picture before is old. */
    visitor_come_in(&v, &desk, "ann");
    do {
        visitor_get(&v, "/");
        EXPECT_PAGE(&v, 200, "as of");
    } while (strstr(v.body, ">A1</a>") == NULL || strstr(v.body, ">See all 2</a>") == NULL);
    EXPECT_PAGE(
        &v, 200,
        "waits for a person · 1</span><span>Shard a: <span class=\"money\">10.00\u00a0EUR</span>");
    EXPECT_PAGE(
        &v, 200,
        "waits for a person · 2</span><span>Shard b: <span class=\"money\">20.00\u00a0EUR</span>");
    EXPECT_PAGE(&v, 200, "<th scope=\"row\">b: <strong>");
    EXPECT_PAGE(&v, 200, "<div class=\"strip\">Shard b: ");
    visitor_leave(&v);
}

/* ----------------------------------------------------------------------- deciding -- */

TEST_IN(test_two_decide, clear, NULL)
{
    struct visitor ann, bob;
    char ref[64];

    make_parked(B, "B1", customers[B][0]);
    visitor_come_in(&ann, &desk, "ann");
    visitor_come_in(&bob, &desk, "bob");
    snprintf(ref, sizeof ref, "%s", open_page(&ann, "decide", "B1"));
    EXPECT_PAGE(&ann, 200, "name=\"shard\" value=\"b\"");
    send_it(&ann, "propose", "failed", ref);
    EXPECT_PAGE(&ann, 303, "");
    snprintf(ref, sizeof ref, "%s", open_page(&bob, "decide", "B1"));
    EXPECT_PAGE(&bob, 200, "Confirm: 10.00 EUR goes back to ");
    send_it(&bob, "confirm", "failed", ref);
    EXPECT_PAGE(&bob, 303, "");
    assert_int_equal(count(B, "trade_resolution"), 2);
    assert_int_equal(count(A, "trade_resolution"), 0);
    make_parked(A, "A1", customers[A][0]);
    snprintf(ref, sizeof ref, "%s", open_page(&ann, "decide", "A1"));
    send_it(&ann, "retry", "", ref);
    EXPECT_PAGE(&ann, 303, "");
    assert_int_equal(database_number(fleet.sql[A], "SELECT COUNT(*) FROM trade_lock WHERE "
                                                   "serial_no = 'A1' AND parked IS NOT NULL"),
                     0);
    visitor_leave(&ann);
    visitor_leave(&bob);
}

static void expect_nothing_filed(void)
{
    for (int i = 0; i < SHARDS; i++) {
        assert_int_equal(count(i, "trade_evidence"), 0);
        assert_int_equal(count(i, "trade_resolution"), 0);
    }
}

TEST_IN(test_not_at_another_shard, clear, NULL)
{
    static const char *const bad[] = {"c", "", "A", "a "};
    struct visitor v;
    char ref[64];

    make_parked(B, "B1", customers[B][0]);
    visitor_come_in(&v, &desk, "ann");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(ref, sizeof ref, "%s", open_page(&v, "decide", "B1"));
        send_to(&v, "evidence", "", ref, bad[i]);
        EXPECT_PAGE(&v, 400, "What was sent names no shard of this fleet. Nothing was done.");
    }
    snprintf(ref, sizeof ref, "%s", open_page(&v, "decide", "B1"));
    send_to(&v, "evidence", "", ref, "a");
    EXPECT_PAGE(&v, 409,
                "<strong>Nothing was done.</strong> The page that you decided on was made "
                "at shard a, and the customer is at shard b now.");
    expect_nothing_filed();
    /* The page that says so is of the right one. */
    send_it(&v, "evidence", "", ref);
    EXPECT_PAGE(&v, 303, "");
    assert_int_equal(count(B, "trade_evidence"), 1);
    assert_int_equal(count(A, "trade_evidence"), 0);
    visitor_leave(&v);
}

/* ------------------------------------------------------------------------- moving -- */

static unsigned slot_of(const char *cust_no)
{
    return (unsigned)database_number(fleet.sql[A], "SELECT tl_customer_slot('%s')", cust_no);
}

/* Until it is handed over it is decided where the rows are, or nothing would ever end there. */
TEST_IN(test_customer_that_leaves, clear, NULL)
{
    const unsigned slot = slot_of(customers[A][0]);
    struct visitor v;
    char ref[64];

    make_parked(A, "A1", customers[A][0]);
    database_run(fleet.sql[A],
                 "UPDATE tl_slot SET state = 'leaving', other = 'b', version = 2 WHERE slot = %u",
                 slot);
    visitor_come_in(&v, &desk, "ann");
    snprintf(ref, sizeof ref, "%s", open_page(&v, "decide", "A1"));
    EXPECT_PAGE(&v, 200, "name=\"shard\" value=\"a\"");
    send_it(&v, "evidence", "", ref);
    EXPECT_PAGE(&v, 303, "");
    assert_int_equal(count(A, "trade_evidence"), 1);
    visitor_leave(&v);
}

/* The row stands where its customer's slot is not, and where it is there is none. */
TEST_IN(test_trade_that_is_not_there, clear, NULL)
{
    struct visitor v;

    char path[128];

    make_failed(A, "A1", customers[A][0]);
    visitor_come_in(&v, &desk, "ann");
    snprintf(path, sizeof path, "/trade?r=%s", open_page(&v, "trade", "A1"));
    shards_hand_over(&fleet, A, B, slot_of(customers[A][0]));
    visitor_get(&v, path);
    EXPECT_PAGE(&v, 404, "Shard b, which has this customer, has no such trade");
    visitor_leave(&v);
}

static void expect_nobody(struct visitor *v, const char *ref)
{
    char path[128];

    snprintf(path, sizeof path, "/decide?r=%s", ref);
    visitor_get(v, path);
    EXPECT_PAGE(v, 409, "No shard has this customer now: it is being moved");
}

/* The page was made where the customer was.  What is there still is not decided about. */
TEST_IN(test_customer_moves_meanwhile, clear, NULL)
{
    const char *customer = customers[A][0];
    const unsigned slot = slot_of(customer);
    struct visitor v, late;
    char ref[64];

    make_failed(A, "A1", customer);
    visitor_come_in(&v, &desk, "ann");
    visitor_come_in(&late, &desk, "bob");
    snprintf(ref, sizeof ref, "%s", open_page(&late, "decide", "A1"));
    open_page(&v, "decide", "A1");
    EXPECT_PAGE(&v, 200, "name=\"shard\" value=\"a\"");
    assert_status(shards_move(&fleet, A, B, slot, NULL, NULL), TL_OK);
    send_it(&v, "evidence", "", ref);
    EXPECT_PAGE(&v, 409, "was made at shard a, and the customer is at shard b now.");
    EXPECT_PAGE(&v, 409, "name=\"shard\" value=\"b\"");
    expect_nothing_filed();
    send_it(&v, "evidence", "", ref);
    EXPECT_PAGE(&v, 303, "");
    assert_int_equal(count(B, "trade_evidence"), 1);
    /* A row is left behind, and is in no list. */
    search_for(&v, "A1");
    EXPECT_NONE(&v, "<td data-l=\"Shard\">a</td>");
    visitor_get(&v, visitor_link(&v, "/trade?r="));
    EXPECT_PAGE(&v, 200, "<dt>Shard</dt><dd>b</dd>");
    EXPECT_PAGE(&v, 200, ">conflict</span>");
    /* Between the two ends it is nobody's. */
    database_run(fleet.sql[B], "UPDATE tl_slot SET state = 'arriving' WHERE slot = %u", slot);
    expect_nobody(&v, ref);
    send_it(&late, "evidence", "", ref);
    EXPECT_PAGE(&late, 409, "Nothing was done: ");
    assert_int_equal(count(B, "trade_evidence"), 1);
    assert_int_equal(count(A, "trade_evidence"), 0);
    visitor_leave(&v);
    visitor_leave(&late);
}

/* A list of what waits, its sum, its CSV, and what is decided about all of it. */
static void expect_lists_once(struct visitor *v)
{
    char path[128];

    visitor_get(v, "/trades?show=conflict");
    EXPECT_PAGE(v, 200, ">a: 1 trade: <span class=\"money\">10.00\u00a0EUR</span>, the oldest");
    EXPECT_PAGE(v, 200, ">b: 1 trade: <span class=\"money\">10.00\u00a0EUR</span>, the oldest");
    visitor_get(v, "/trades?show=conflict&csv=1");
    EXPECT_PAGE(v, 200, "\nA1,");
    EXPECT_PAGE(v, 200, "\nA2,");
    assert_null(strstr(strstr(v->body, "\nA1,") + 1, "\nA1,"));
    visitor_get(v, "/trades?show=conflict");
    visitor_get(v, visitor_link(v, "/trades?r="));
    snprintf(path, sizeof path, "/many?act=propose&as=paid&shard=a&r=%s",
             strchr(visitor_link(v, "/trades?r="), '=') + 1);
    visitor_get(v, path);
    EXPECT_PAGE(v, 200, "Propose paid: 1 trade");
    EXPECT_PAGE(v, 200, ">A2</a>");
}

/* What a conflict left behind is not another one. */
TEST_IN(test_copies_are_counted_once, clear, NULL)
{
    const char *customer = customers[A][1];
    struct visitor v;
    char ref[64];

    make_failed(A, "A1", customer);
    make_failed(A, "A2", customers[A][0]);
    visitor_come_in(&v, &desk, "ann");
    for (int i = 1; i <= 2; i++) {
        snprintf(ref, sizeof ref, "%s", open_page(&v, "decide", i == 1 ? "A1" : "A2"));
        send_it(&v, "evidence", "", ref);
        EXPECT_PAGE(&v, 303, "");
    }
    visitor_get(&v, "/");
    EXPECT_PAGE(&v, 200, "in conflict · 2</span>");
    assert_status(shards_move(&fleet, A, B, slot_of(customer), NULL, NULL), TL_OK);
    assert_int_equal(
        database_number(fleet.sql[A], "SELECT COUNT(*) FROM trade_lock WHERE conflict"), 2);
    do
        search_for(&v, "A1");
    while (strstr(v.body, "<td data-l=\"Shard\">a</td>") != NULL);
    /* So that the pictures before are old. */
    snprintf(ref, sizeof ref, "%s", open_page(&v, "decide", "A2"));
    send_it(&v, "evidence", "", ref);
    EXPECT_PAGE(&v, 303, "");
    visitor_get(&v, "/");
    EXPECT_NONE(&v, "in conflict · 2</span>");
    EXPECT_PAGE(&v, 200, ">A1</a>");
    EXPECT_PAGE(&v, 200, ">A2</a>");
    assert_ptr_equal(strstr(strstr(v.body, ">A1</a>") + 1, ">A1</a>"), NULL);
    expect_lists_once(&v);
    visitor_leave(&v);
}

TEST_IN(test_batch_counts_no_copies, clear, NULL)
{
    struct visitor v;

    make_paid(A, "A1", customers[A][0], "march");
    make_paid(B, "B1", customers[B][0], "march");
    tl_lock_free(held(B, "B2", customers[B][1], "march"));
    assert_status(shards_move(&fleet, A, B, slot_of(customers[A][0]), NULL, NULL), TL_OK);
    assert_int_equal(
        database_number(fleet.sql[A], "SELECT COUNT(*) FROM trade_lock WHERE batch = 'march'"), 1);
    visitor_come_in(&v, &desk, "ann");
    search_for(&v, "march");
    EXPECT_PAGE(&v, 200, "Not complete: 1 of 3 are open.");
    visitor_leave(&v);
}

/* A service may have its own rule; the databases' counts. */
TEST_IN(test_other_rule, clear, NULL)
{
    char customer[TL_CUST_MAX + 1] = "";
    struct visitor v;

    for (unsigned n = 0; slot_of(customer) != 511; n++)
        snprintf(customer, sizeof customer, "R%u", n);
    for (int i = 0; i < SHARDS; i++)
        database_run(fleet.sql[i],
                     "CREATE OR REPLACE FUNCTION tl_customer_slot(cust VARCHAR(32) CHARACTER SET "
                     "ascii COLLATE ascii_nopad_bin) RETURNS SMALLINT UNSIGNED DETERMINISTIC "
                     "NO SQL SQL SECURITY INVOKER RETURN (CRC32(cust) + 1) %% 1024");
    make_parked(B, "B1", customer);
    visitor_come_in(&v, &desk, "ann");
    open_page(&v, "trade", "B1");
    EXPECT_PAGE(&v, 200, "<dt>Shard</dt><dd>b</dd>");
    visitor_get(&v, "/trades");
    EXPECT_PAGE(&v, 200, ">B1</a>");
    visitor_leave(&v);
    for (int i = 0; i < SHARDS; i++)
        database_run(fleet.sql[i],
                     "CREATE OR REPLACE FUNCTION tl_customer_slot(cust VARCHAR(32) CHARACTER SET "
                     "ascii COLLATE ascii_nopad_bin) RETURNS SMALLINT UNSIGNED DETERMINISTIC "
                     "NO SQL SQL SECURITY INVOKER RETURN CRC32(cust) %% 1024");
}

/* -------------------------------------------------------------- channels and audits -- */

TEST_IN(test_channel_of_a_shard, clear, NULL)
{
    struct visitor v;
    char token[64];

    for (int i = 0; i < SHARDS; i++)
        assert_status(tl_channel_add(clients[i], "bank", OP, NULL), TL_OK);
    visitor_come_in(&v, &desk, "ann");
    visitor_get(&v, "/channels");
    EXPECT_PAGE(&v, 200, "<h2>Shard a</h2>");
    EXPECT_PAGE(&v, 200, "--shard b</code>");
    snprintf(token, sizeof token, "%s", visitor_field(&v, "token"));
    visitor_post(&v, "/channels", NULL, "token", token, "act", "pause", "channel", "bank", "op", "",
                 "reason", "letter", "shard", "c");
    EXPECT_PAGE(&v, 400, "names no shard of this fleet");
    visitor_post(&v, "/channels", NULL, "token", token, "act", "pause", "channel", "bank", "op", "",
                 "reason", "letter", "shard", "b");
    EXPECT_PAGE(&v, 303, "");
    visitor_get(&v, "/");
    EXPECT_PAGE(&v, 200, "<th scope=\"row\">b: <strong>bank</strong>");
    EXPECT_PAGE(&v, 200, "<span class=\"state doubt\">paused by ann, ");
    EXPECT_NONE(&v, "<th scope=\"row\">a: <strong>bank</strong>");
    visitor_get(&v, "/channels");
    visitor_post(&v, "/channels", NULL, "token", token, "act", "resume", "channel", "bank", "op",
                 "", "reason", "letter", "shard", "b");
    EXPECT_PAGE(&v, 303, "");
    visitor_leave(&v);
}

static void await_audit(struct visitor *v)
{
    if (v->status != 303)
        return;
    do
        visitor_get(v, "/audit");
    while (strstr(v->body, "An audit is running") != NULL);
}

static void audit(struct visitor *v, const char *shard)
{
    char token[64];

    visitor_get(v, "/audit");
    snprintf(token, sizeof token, "%s", visitor_field(v, "token"));
    visitor_post(v, "/audit", NULL, "token", token, "shard", shard);
    await_audit(v);
}

static void compare(struct visitor *v, const char *text)
{
    char token[64];

    visitor_get(v, "/audit");
    snprintf(token, sizeof token, "%s", visitor_field(v, "token"));
    visitor_post_file(v, "/statement", token, "bank.csv", text, strlen(text));
    await_audit(v);
}

/* Sends the form of the page Finding. */
static void propose_to_close(struct visitor *v)
{
    char token[64], finding[80], shard[16];

    snprintf(token, sizeof token, "%s", visitor_field(v, "token"));
    snprintf(finding, sizeof finding, "%s", visitor_field(v, "f"));
    snprintf(shard, sizeof shard, "%s", visitor_field(v, "shard"));
    visitor_post(v, "/finding", NULL, "token", token, "f", finding, "shard", shard, "act",
                 "propose", "reason", "ticket");
}

TEST_IN(test_audit, clear, NULL)
{
    struct visitor v;

    make_paid(A, "A1", customers[A][0], NULL);
    make_paid(B, "B1", customers[B][0], NULL);
    database_run(fleet.sql[B], "UPDATE trade_lock SET fence = fence + 1 WHERE serial_no = 'B1'");
    visitor_come_in(&v, &desk, "ann");
    audit(&v, "c");
    EXPECT_PAGE(&v, 400, "names no shard of this fleet");
    audit(&v, "a");
    EXPECT_PAGE(&v, 200, "<h2>Last run of shard a</h2>");
    EXPECT_PAGE(&v, 200, "The books are in order.");
    audit(&v, "b");
    EXPECT_PAGE(&v, 200, "<h2>Last run of shard b</h2>");
    EXPECT_PAGE(&v, 200, "by-hand");
    audit(&v, "");
    EXPECT_PAGE(&v, 200, "<h2>Last run of all shards, each by itself</h2>");
    EXPECT_PAGE(&v, 200, "<strong>2 violations.</strong>");
    EXPECT_PAGE(&v, 200, "<td data-l=\"Shard\">b</td><td data-l=\"Rule\">by-hand</td>");
    EXPECT_PAGE(&v, 200, "2 rows, ");
    visitor_get(&v, visitor_link(&v, "/finding?shard=b&amp;f="));
    EXPECT_PAGE(&v, 200, "; shard b");
    EXPECT_PAGE(&v, 200, "--shard b</code>");
    propose_to_close(&v);
    EXPECT_PAGE(&v, 303, "");
    assert_int_equal(count(B, "audit_closing"), 1);
    assert_int_equal(count(A, "audit_closing"), 0);
    database_run(fleet.sql[B], "DELETE FROM audit_closing");
    visitor_leave(&v);
}

/* A customer who moved leaves the rows behind, and the same finding stands at both shards: each is
 * closed at its own. */
TEST_IN(test_one_finding_at_two_shards, clear, NULL)
{
    struct visitor v;

    make_paid(A, "A1", customers[A][0], NULL);
    database_run(fleet.sql[A], "UPDATE trade_lock SET fence = fence + 1 WHERE serial_no = 'A1'");
    assert_status(shards_move(&fleet, A, B, slot_of(customers[A][0]), NULL, NULL), TL_OK);
    visitor_come_in(&v, &desk, "ann");
    audit(&v, "");
    visitor_get(&v, visitor_link(&v, "/finding?shard=b&amp;f="));
    EXPECT_PAGE(&v, 200, "; shard b");
    propose_to_close(&v);
    EXPECT_PAGE(&v, 303, "");
    assert_int_equal(count(B, "audit_closing"), 1);
    assert_int_equal(count(A, "audit_closing"), 0);
    visitor_get(&v, "/audit");
    visitor_get(&v, visitor_link(&v, "/finding?shard=a&amp;f="));
    EXPECT_PAGE(&v, 200, "; shard a");
    propose_to_close(&v);
    EXPECT_PAGE(&v, 303, "");
    assert_int_equal(count(A, "audit_closing"), 1);
    visitor_get(&v, "/finding?f=00");
    EXPECT_PAGE(&v, 404, "No such finding");
    for (int i = 0; i < SHARDS; i++)
        database_run(fleet.sql[i], "DELETE FROM audit_closing");
    visitor_leave(&v);
}

/* ----------------------------------------------------------------------- accounts -- */

TEST_IN(test_accounts_differ, clear, NULL)
{
    struct visitor v;
    char ref[64], token[64];

    make_parked(A, "A1", customers[A][0]);
    make_parked(B, "B1", customers[B][0]);
    /* Eve decides at a, and looks at b. */
    visitor_come_in(&v, &desk, "eve");
    snprintf(ref, sizeof ref, "%s", open_page(&v, "decide", "B1"));
    EXPECT_PAGE(&v, 200, "Your account may look, and not decide.");
    open_page(&v, "trade", "B1");
    EXPECT_NONE(&v, "href=\"/decide?r=");
    snprintf(token, sizeof token, "%s", visitor_field(&v, "token"));
    visitor_post(&v, "/decide", NULL, "token", token, "r", ref, "act", "evidence", "fence", "1",
                 "epoch", "1", "outcome", "SUCCEEDED", "source", "letter", "shard", "b");
    EXPECT_PAGE(&v, 403,
                "Your account may look at this shard, and not decide there. Nothing was done.");
    expect_nothing_filed();
    snprintf(ref, sizeof ref, "%s", open_page(&v, "decide", "A1"));
    send_it(&v, "evidence", "", ref);
    EXPECT_PAGE(&v, 303, "");
    assert_int_equal(count(A, "trade_evidence"), 1);
    visitor_leave(&v);
    /* Sam is no operator at b, Joe nobody there. */
    visitor_open(&v, &desk);
    visitor_login(&v, "sam", "secret");
    EXPECT_PAGE(&v, 403, "shard b: This account has no role for operators");
    visitor_login(&v, "joe", "secret");
    EXPECT_PAGE(&v, 403, "Name and password do not fit");
    visitor_login(&v, "ann", "wrong");
    EXPECT_PAGE(&v, 403, "Name and password do not fit");
    visitor_get(&v, "/trades");
    EXPECT_PAGE(&v, 303, "");
    visitor_close(&v);
}

/* ---------------------------------------------------------------------- bad input -- */

TEST_IN(test_settings, clear, NULL)
{
    static const char *const one[] = {"--shard", "b", NULL};
    static const size_t straight[] = {A, B}, swapped[] = {B, A};
    struct desk_process other;
    struct visitor v;

    make_paid(A, "A1", customers[A][0], NULL);
    make_paid(B, "B1", customers[B][0], NULL);
    ENDS(RUN("desk", "--config", fleet.file, "--shard", "c"), 2,
         "! these settings name no shard c");
    /* Of one shard it is as if there were no fleet. */
    desk_start(&other, fleet.file, one);
    visitor_come_in(&v, &other, "ann");
    visitor_get(&v, "/trades");
    EXPECT_PAGE(&v, 200, ">B1</a>");
    EXPECT_NONE(&v, ">A1</a>");
    EXPECT_NONE(&v, "Shard");
    visitor_leave(&v);
    desk_stop(&other);
    shards_write(&fleet, "a, b", swapped, NULL);
    visitor_open(&v, &desk);
    visitor_login(&v, "ann", "secret");
    EXPECT_PAGE(&v, 503, "the settings lead to shard");
    shards_write(&fleet, "a, b", straight, NULL);
    visitor_close(&v);
}

/* ------------------------------------------------------------------------ one down -- */

static void expect_b_missing(struct visitor *v)
{
    EXPECT_PAGE(v, 200, "<strong>Shard b is missing on this page.</strong>");
    EXPECT_NONE(v, "Shard a is missing");
}

/* at_b: a trade of b. */
static void expect_lists_without_b(struct visitor *v, const char *at_b)
{
    visitor_get(v, "/trades");
    expect_b_missing(v);
    EXPECT_PAGE(v, 200, ">A1</a>");
    visitor_get(v, "/");
    expect_b_missing(v);
    EXPECT_PAGE(v, 200, "<h1>Shard b: The database does not answer since ");
    /* What b may have of it nobody knows. */
    search_for(v, "march");
    expect_b_missing(v);
    EXPECT_PAGE(v, 200, "<td data-l=\"Shard\">a</td><td data-l=\"State\">paid</td>");
    EXPECT_NONE(v, "omplete:");
    visitor_get(v, "/channels");
    EXPECT_PAGE(v, 200,
                "<h2>Shard b</h2>\n<div class=\"offers\">\n</div>\n"
                "<p class=\"notice bad\">This cannot be read now: ");
    visitor_get(v, at_b);
    EXPECT_PAGE(v, 503, "This cannot be read now");
}

static void expect_audits_without_b(struct visitor *v)
{
    audit(v, "");
    EXPECT_PAGE(v, 200,
                "It did not come to its end everywhere, and proves nothing there.</strong> "
                "Shard b: ");
    EXPECT_PAGE(v, 200, " grants read by ann@localhost in ");
    EXPECT_NONE(v, "The books are in order.");
    audit(v, "b");
    EXPECT_PAGE(v, 200, "It did not come to its end, and proves nothing.</strong> Shard b: ");
    EXPECT_NONE(v, "rows, ");
}

/* Nobody comes in by a shard that is down.  Bob is in afterwards, and both are down. */
static void expect_door_without_b(struct visitor *bob)
{
    struct visitor none;

    visitor_open(bob, &desk);
    visitor_login(bob, "bob", "wrong");
    EXPECT_PAGE(bob, 403, "Name and password do not fit");
    visitor_login(bob, "bob", "secret");
    EXPECT_PAGE(bob, 303, "");
    visitor_get(bob, "/trades");
    expect_b_missing(bob);
    shards_kill(&fleet, A);
    visitor_open(&none, &desk);
    visitor_login(&none, "eve", "wrong");
    EXPECT_PAGE(&none, 503, "role=\"alert\">shard b: ");
    visitor_close(&none);
}

/* A desk of one database, which is away: what was known last stands below that. */
static void expect_away(struct visitor *v)
{
    /* A picture is good for three seconds. */
    do
        visitor_get(v, "/");
    while (v->status == 200 && strstr(v->body, "does not answer since") == NULL);
    EXPECT_PAGE(v, 200,
                "<section class=\"card worst bad\"><div><h1>The database does not answer since ");
    EXPECT_PAGE(v, 200, "Below is what the desk knew last, as of ");
    EXPECT_PAGE(v, 200, ">B1</a>");
    visitor_get(v, "/wall");
    EXPECT_PAGE(v, 200, "The database does not answer since ");
}

TEST_IN(test_shard_is_down, clear, NULL)
{
    static const char *const of_b[] = {"--shard", "b", NULL};
    struct desk_process other;
    struct visitor ann, bob, alone;
    char ref[64], at_b[64], path[128];

    make_paid(A, "A1", customers[A][0], "march");
    make_parked(A, "A2", customers[A][0]);
    make_parked(B, "B1", customers[B][0]);
    visitor_come_in(&ann, &desk, "ann");
    snprintf(at_b, sizeof at_b, "%s", open_page(&ann, "decide", "B1"));
    snprintf(path, sizeof path, "/trade?r=%s", at_b);
    desk_start(&other, fleet.file, of_b);
    visitor_come_in(&alone, &other, "ann");
    visitor_get(&alone, "/");
    EXPECT_PAGE(&alone, 200, ">B1</a>");
    EXPECT_NONE(&alone, "does not answer since");
    shards_kill(&fleet, B);
    expect_away(&alone);
    send_it(&ann, "evidence", "", at_b);
    EXPECT_PAGE(&ann, 503, "Nothing was done: ");
    expect_lists_without_b(&ann, path);
    snprintf(ref, sizeof ref, "%s", open_page(&ann, "decide", "A2"));
    send_it(&ann, "evidence", "", ref);
    EXPECT_PAGE(&ann, 303, "");
    assert_int_equal(count(A, "trade_evidence"), 1);
    expect_audits_without_b(&ann);
    expect_door_without_b(&bob);
    shards_restart(&fleet, A);
    shards_restart(&fleet, B);
    /* It is used again by itself, by whoever is logged in. */
    do
        visitor_get(&bob, "/trades");
    while (strstr(bob.body, "is missing on this page") != NULL);
    EXPECT_PAGE(&bob, 200, ">B1</a>");
    do
        visitor_get(&ann, path);
    while (ann.status != 200);
    EXPECT_PAGE(&ann, 200, "<dt>Shard</dt><dd>b</dd>");
    do
        visitor_get(&alone, "/");
    while (strstr(alone.body, "does not answer since") != NULL);
    EXPECT_PAGE(&alone, 200, ">B1</a>");
    visitor_leave(&ann);
    visitor_leave(&bob);
    visitor_leave(&alone);
    desk_stop(&other);
}

/* One that stands still holds a page up until it counts as down, and no longer. */
TEST_IN(test_shard_stands_still, clear, NULL)
{
    struct visitor v;

    make_paid(A, "A1", customers[A][0], NULL);
    visitor_come_in(&v, &desk, "ann");
    shards_stop(&fleet, B);
    visitor_get(&v, "/trades");
    shards_go_on(&fleet, B);
    expect_b_missing(&v);
    EXPECT_PAGE(&v, 200, ">A1</a>");
    do
        visitor_get(&v, "/trades");
    while (strstr(v.body, "is missing on this page") != NULL);
    visitor_leave(&v);
}

/* Each payment is compared where its customer is, and what is no customer once. */
TEST_IN(test_statement, clear, NULL)
{
    struct visitor v;
    char text[512];

    make_paid(A, "A1", customers[A][0], NULL);
    make_paid(A, "A2", customers[A][1], NULL);
    make_paid(B, "B1", customers[B][0], NULL);
    visitor_come_in(&v, &desk, "ann");
    snprintf(text, sizeof text, "serial_no,cust_no\nB1,%s\nA1,%s\nA2,%s\n", customers[B][0],
             customers[A][0], customers[A][1]);
    compare(&v, text);
    EXPECT_PAGE(&v, 200, "<h2>Last statement of all shards</h2>");
    EXPECT_PAGE(&v, 200, "The statement and the trades agree.");
    EXPECT_PAGE(&v, 200, "bank.csv</span>: 3 payments beside 3 rows, ");
    snprintf(text, sizeof text, "serial_no,cust_no\nB1,%s\nA1,%s\nB9,%s\nX1,\xc3\xa4\n",
             customers[B][0], customers[A][0], customers[B][1]);
    compare(&v, text);
    EXPECT_PAGE(&v, 200, "<strong>3 differences.</strong>");
    EXPECT_PAGE(&v, 200, "<td data-l=\"Shard\">a</td><td data-l=\"Rule\">unpaid-success</td>");
    EXPECT_NONE(&v, "<td data-l=\"Shard\">b</td><td data-l=\"Rule\">unpaid-success</td>");
    EXPECT_PAGE(&v, 200, "<td data-l=\"Shard\">a</td><td data-l=\"Rule\">unknown-payment</td>");
    EXPECT_PAGE(&v, 200, "<td data-l=\"Shard\">b</td><td data-l=\"Rule\">unknown-payment</td>");
    audit(&v, "");
    EXPECT_PAGE(&v, 200, "The books are in order.");
    visitor_leave(&v);
}

/* What a customer left behind is compared where the customer is; whose slot is nobody's, nowhere. */
TEST_IN(test_statement_of_one_who_moved, clear, NULL)
{
    const unsigned slot = slot_of(customers[A][0]);
    struct visitor v;
    char text[256];

    make_paid(A, "A1", customers[A][0], NULL);
    assert_status(shards_move(&fleet, A, B, slot, NULL, NULL), TL_OK);
    assert_int_equal(count(A, "trade_lock"), 1);
    make_paid(A, "A2", customers[A][1], NULL);
    visitor_come_in(&v, &desk, "ann");
    snprintf(text, sizeof text, "serial_no,cust_no\nA1,%s\nA2,%s\n", customers[A][0],
             customers[A][1]);
    compare(&v, text);
    EXPECT_PAGE(&v, 200, "The statement and the trades agree.");
    compare(&v, "serial_no,cust_no\n");
    EXPECT_PAGE(&v, 200, "<strong>2 differences.</strong>");
    database_run(fleet.sql[A], "DELETE FROM tl_slot WHERE slot = %u", slot_of(customers[A][1]));
    compare(&v, text);
    EXPECT_PAGE(&v, 200, "since no shard that answers has their customers now: 1.");
    EXPECT_NONE(&v, "The statement and the trades agree.");
    visitor_leave(&v);
}

/* Who may not decide at one of the shards files nothing at the other. */
TEST_IN(test_each_shard_files_its_own, clear, NULL)
{
    struct visitor eve, ann;
    char text[512], seen[32], token[64];

    make_parked(A, "A1", customers[A][0]);
    make_parked(B, "B1", customers[B][0]);
    visitor_come_in(&eve, &desk, "eve");
    visitor_come_in(&ann, &desk, "ann");
    snprintf(text, sizeof text,
             "serial_no,cust_no,op_code,channel_ref,amount_minor,currency\nB1,%s,WITHDRAW,b1,1000,"
             "EUR\nA1,%s,WITHDRAW,a1,1000,EUR\n",
             customers[B][0], customers[A][0]);
    compare(&ann, text);
    visitor_get(&eve, "/file");
    EXPECT_PAGE(&eve, 200, "Your account may look, and not decide");
    visitor_get(&ann, "/file");
    EXPECT_PAGE(&ann, 200, "<td data-l=\"Shard\">a</td><td data-l=\"Serial\">");
    EXPECT_PAGE(&ann, 200, "<td data-l=\"Shard\">b</td><td data-l=\"Serial\">");
    snprintf(seen, sizeof seen, "%s", visitor_field(&ann, "seen"));
    snprintf(token, sizeof token, "%s", visitor_field(&eve, "token"));
    visitor_post(&eve, "/file", NULL, "token", token, "seen", seen, "source", "bank", "reason",
                 "x");
    EXPECT_PAGE(&eve, 403, "Nothing was done");
    expect_nothing_filed();
    snprintf(token, sizeof token, "%s", visitor_field(&ann, "token"));
    visitor_post(&ann, "/file", NULL, "token", token, "seen", seen, "source", "bank", "reason",
                 "x");
    EXPECT_PAGE(&ann, 303, "");
    visitor_get(&ann, "/file");
    EXPECT_PAGE(&ann, 200, "2 of 2 filed, on record as act ");
    EXPECT_PAGE(&ann, 200, " at shard a, act ");
    EXPECT_PAGE(&ann, 200, "2 known already");
    visitor_get(&ann, "/acts");
    EXPECT_PAGE(&ann, 200, "<h2>Shard b</h2>");
    EXPECT_PAGE(&ann, 200, " desk: --statement bank.csv --source bank");
    snprintf(text, sizeof text, "%s", visitor_link(&ann, "/acts?no="));
    visitor_get(&ann, text);
    EXPECT_PAGE(&ann, 200, ">A1</a>");
    EXPECT_NONE(&ann, ">B1</a>");
    visitor_get(&ann, "/acts?no=1&shard=c");
    EXPECT_PAGE(&ann, 404, "This link is of no act.");
    visitor_get(&ann, "/inbox");
    EXPECT_PAGE(&ann, 200, "<h2>Shard b</h2>");
    for (int i = 0; i < SHARDS; i++)
        assert_int_equal(count(i, "trade_evidence"), 1);
    visitor_leave(&eve);
    visitor_leave(&ann);
}

TESTS_OF(fleet, set_up, tear_down)

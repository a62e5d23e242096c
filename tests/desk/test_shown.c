/* What the desk shows, over HTTP on a real house: Now, lists page by page, and a trade at any
 * moment. What it costs the server is counted. */
#include "cli/operators.h"
#include "visitor.h"
#include "support/theme.h"

#include <tradelock/layer.h>
#include <tradelock/record.h>

#include <pthread.h>
#include <stdatomic.h>

static struct desk_process desk;

FIXTURE(set_up)
{
    operators_set_up(state);
    desk_start(&desk, operators.config[ANN], NULL);
}

static int tear_down(void **state)
{
    desk_stop(&desk);
    return operators_tear_down(state);
}

/* ------------------------------------------------------------------------ now -- */

/* Looks until it is there: channels are counted three times a minute. */
static void await_words(struct visitor *v, const char *path, const char *words)
{
    for (int i = 0; i < PATIENCE_MS / 100; i++) {
        visitor_get(v, path);
        if (v->status == 200 && strstr(v->body, words) != NULL)
            return;
        usleep(100000);
    }
    EXPECT_PAGE(v, 200, words);
}

/* Of each channel what ended in the last hour, what waits, and since when no answer came. */
TEST(test_now_shows_channels)
{
    struct visitor ann;

    house_expect(&operators.h, "TRADE-C1", "C1", 1, TL_SUCCEEDED);
    house_expect(&operators.h, "TRADE-C2", "C1", 1, TL_SUCCEEDED);
    /* One that was late. */
    database_run(
        operators.h.sql,
        "UPDATE trade_lock SET created_at = created_at - INTERVAL 10 MINUTE, rev = rev + 1, "
        "step = 'test' WHERE serial_no = 'TRADE-C2' AND lane = 'S'");
    operators_make_failed("TRADE-C3");
    house_rule(&operators.h, "{\"kind\":\"drop_after\",\"endpoint\":\"pay\"}");
    house_rule(&operators.h, "{\"kind\":\"drop_before\",\"endpoint\":\"query\",\"count\":0,"
                             "\"serial_no\":\"TRADE-C4\"}");
    house_expect(&operators.h, "TRADE-C4", "C1", 1, TL_IN_DOUBT);
    house_work(&operators.h, 1, 30000);
    visitor_come_in(&ann, &desk, operators.user[ANN]);
    visitor_get(&ann, "/");
    EXPECT_PAGE(&ann, 200, "<strong>idempotent</strong> <span class=\"quiet\">" WITHDRAW_OP);
    EXPECT_PAGE(&ann, 200, "the last hour: 2 paid, 1 declined, 0 failed</span>");
    EXPECT_PAGE(&ann, 200, "<b>2</b> in three hours");
    EXPECT_PAGE(&ann, 200, "no end a minute after the ask <b>0</b>, <b>1</b> in three hours");
    EXPECT_PAGE(&ann, 200, "<polygon class=\"late\" points=\"");
    EXPECT_PAGE(&ann, 200, "<rect class=\"outage\" y=\"0\"");
    /* It stands first, although nothing more ends. */
    EXPECT_PAGE(
        &ann, 200,
        "<section class=\"card worst bad\"><div><h1>Channel idempotent has not answered for ");
    EXPECT_PAGE(&ann, 200, "1 payment waits for its answer: <span class=\"money\">0.01\u00a0EUR");
    EXPECT_PAGE(&ann, 200, "<span class=\"state bad\">no answer for ");
    EXPECT_PAGE(&ann, 200, "href=\"/channels#channel--idempotent-" WITHDRAW_OP "\">Pause…</a>");
    EXPECT_PAGE(&ann, 200, ">Pause the channel…</a>");
    EXPECT_PAGE(&ann, 200, "href=\"/runbook#channel-down\">");
    EXPECT_PAGE(&ann, 200, "<span>no audit is on record</span>");
    visitor_get(&ann, "/channels");
    EXPECT_PAGE(&ann, 200, "In the last hour: 2 paid, 1 declined, 0 failed. Waiting: 1.");
    EXPECT_PAGE(&ann, 200, "Waiting: 1. <strong>No answer since ");
    EXPECT_NONE(&ann, "Success rate");
    EXPECT_PAGE(&ann, 200, "id=\"channel--idempotent-" WITHDRAW_OP "\"");
    visitor_get(&ann, "/runbook");
    EXPECT_PAGE(&ann, 200, "<h2 id=\"channel-down\">Channel down</h2>");
    EXPECT_PAGE(&ann, 200, "tradelock channel pause idempotent --reason");
    visitor_leave(&ann);
}

/* Trades a day in a chart, their sums in a table, and what is wrong with the days that are asked. */
TEST(test_reports)
{
    struct visitor ann;

    house_expect(&operators.h, "TRADE-R1", "C1", 150, TL_SUCCEEDED);
    database_run(operators.h.sql, "INSERT INTO tl_act (what, said, reason, actor, account, done, "
                                  "counts, begun_at, ended_at) VALUES ('purge', '--older 1d', '', "
                                  "'job', 'job', 1, 'trades=1 x=0', UTC_TIMESTAMP(6), "
                                  "UTC_TIMESTAMP(6))");
    visitor_come_in(&ann, &desk, operators.user[ANN]);
    visitor_get(&ann, "/reports");
    EXPECT_PAGE(&ann, 200, "<svg class=\"bar-chart\" role=\"img\" height=\"18\"><title>paid: ");
    EXPECT_PAGE(&ann, 200, "<td data-l=\"Channel\">idempotent</td>");
    EXPECT_PAGE(&ann, 200, " were purged.</strong>");
    EXPECT_PAGE(&ann, 200, "tradelock report --since ");
    visitor_get(&ann, "/reports?since=2025-03-01&until=2025-03-05&at=booked");
    EXPECT_PAGE(&ann, 200, "No trade is of these days.");
    EXPECT_PAGE(&ann, 200, "<option value=\"booked\" selected>");
    visitor_get(&ann, "/reports?since=2025-02-30");
    EXPECT_PAGE(&ann, 400, "A day is written as 2026-03-01.");
    visitor_get(&ann, "/reports?since=2025-03-01&until=2025-03-01");
    EXPECT_PAGE(&ann, 400, "The last day is not behind the first.");
    visitor_get(&ann, "/reports?since=9000-03-01");
    EXPECT_PAGE(&ann, 400, "The first day lies in the future.");
    visitor_get(&ann, "/reports?since=2001-01-01");
    EXPECT_PAGE(&ann, 400, "A page is of 92 days at most");
    visitor_leave(&ann);
}

/* Also of a trade that is neither parked nor in conflict. */
TEST(test_now_shows_what_is_proposed)
{
    struct visitor ann, bob;
    char fence[32], ref[64], words[160];

    operators_make_doubtful("TRADE-N1");
    visitor_come_in(&ann, &desk, operators.user[ANN]);
    visitor_come_in(&bob, &desk, operators.user[BOB]);
    visitor_get(&bob, "/");
    EXPECT_NONE(&bob, ">TRADE-N1</a>");
    snprintf(ref, sizeof ref, "%s", visitor_decide(&ann, "TRADE-N1"));
    snprintf(fence, sizeof fence, "%s", visitor_field(&ann, "fence"));
    visitor_send_half(&ann, "propose", ref, "failed", fence);
    EXPECT_PAGE(&ann, 303, "");
    visitor_get(&bob, "/");
    EXPECT_PAGE(&bob, 200, ">TRADE-N1</a>");
    snprintf(words, sizeof words, "<span class=\"state bad\">%s proposed · 1</span>",
             operators.user[ANN]);
    EXPECT_PAGE(&bob, 200, words);
    EXPECT_PAGE(&bob, 200, "“failed”: ");
    EXPECT_PAGE(&bob, 200, ">Confirm…</a>");
    visitor_get(&ann, "/");
    EXPECT_NONE(&ann, ">Confirm…</a>");
    visitor_leave(&ann);
    visitor_leave(&bob);
}

static void make_parked(const char *op, const char *serial, const char *cause, int count)
{
    database_run(operators.h.sql,
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                 "thread_no, token, fence, rev, sends, proof, parked, amount_minor, currency, "
                 "channel, created_at, updated_at) SELECT 'CUSTOMER-9', CONCAT('%s-', seq), "
                 "IF(lane = 'S', '%s', '%s_RETRY'), lane, IF(lane = 'S', 'P', 'F'), 'test', "
                 "UUID(), 'x', 1, 1, 1, IF(lane = 'S', '-', 'D'), IF(lane = 'S', NULL, '%s'), "
                 "1005, 'EUR', 'bank', UTC_TIMESTAMP(6) - INTERVAL 7200 + seq SECOND, "
                 "UTC_TIMESTAMP(6) "
                 "FROM seq_1_to_%d, (SELECT 'S' AS lane UNION SELECT 'R') lanes",
                 serial, op, op, cause, count);
}

/* Whatever waits for one cause is one line, with its money. */
TEST(test_one_cause_is_one_group)
{
    struct visitor ann;
    char many[256], list[128], csv[160];

    make_parked("GROUP", "GROUP", "past the <deadline>", 30);
    make_parked("GROUP", "OTHER", "no answer", 1);
    visitor_come_in(&ann, &desk, operators.user[ANN]);
    await_words(&ann, "/", "waits for a person · 30</span>");
    EXPECT_PAGE(&ann, 200, ">301.50\u00a0EUR</span> <span class=\"quiet\">past the &lt;deadline");
    EXPECT_PAGE(&ann, 200, ">See all 30</a>");
    EXPECT_PAGE(&ann, 200, ">OTHER-1</a>");
    EXPECT_NONE(&ann, ">GROUP-30</a>");
    EXPECT_PAGE(&ann, 200,
                "class=\"heat heat3\" data-l=\"1 h – 1 day\"><div><strong>31</strong><br><span "
                "class=\"money\">311.55");
    snprintf(many, sizeof many, "%s", visitor_link(&ann, "/many?act=propose&amp;as=failed"));
    snprintf(list, sizeof list, "%s", visitor_link(&ann, "/trades?r="));
    visitor_get(&ann, list);
    EXPECT_PAGE(&ann, 200, "<h1>Trades of channel bank: past the &lt;deadline&gt;</h1>");
    EXPECT_PAGE(&ann, 200, ">GROUP-30</a>");
    EXPECT_NONE(&ann, ">OTHER-1</a>");
    EXPECT_PAGE(&ann, 200, "30 trades: <span class=\"money\">301.50\u00a0EUR</span>, the oldest");
    assert_true(strstr(ann.body, ">GROUP-30</a>") < strstr(ann.body, ">GROUP-29</a>"));
    assert_non_null(strstr(ann.body, "download=\"trades.csv\""));
    snprintf(csv, sizeof csv, "%s&csv=1", list);
    visitor_get(&ann, csv);
    EXPECT_PAGE(&ann, 200,
                "serial,customer,operation,state,amount,currency,channel,created,parked\n"
                "GROUP-30,CUSTOMER-9,GROUP,parked,1005,EUR,bank,");
    assert_non_null(strstr(ann.headers, "Content-Type: text/csv"));
    visitor_get(&ann, many);
    EXPECT_PAGE(&ann, 200, "Propose failed: 30 trades: <span class=\"money\">301.50");
    database_run(operators.h.sql, "DELETE FROM trade_lock WHERE cust_no = 'CUSTOMER-9'");
    visitor_leave(&ann);
}

/* A screen for everybody: nothing to click, and the browser reads it again. */
TEST(test_the_wall)
{
    struct visitor ann;

    operators_make_doubtful("TRADE-V1");
    visitor_come_in(&ann, &desk, operators.user[ANN]);
    visitor_get(&ann, "/wall");
    EXPECT_PAGE(&ann, 200, "<meta http-equiv=\"refresh\" content=\"10\">");
    EXPECT_PAGE(&ann, 200, "<h1>");
    EXPECT_PAGE(&ann, 200, "Where money waits, and for how long");
    EXPECT_NONE(&ann, "<form");
    EXPECT_NONE(&ann, "<script");
    EXPECT_NONE(&ann, "class=\"button");
    visitor_get(&ann, "/");
    visitor_leave(&ann);
}

struct looking {
    struct visitor visitor;
    atomic_int is_done;
};

static void *look_at_now(void *context)
{
    struct looking *looking = context;

    visitor_get(&looking->visitor, "/");
    atomic_store(&looking->is_done, 1);
    return NULL;
}

/* The next picture of Now has to be a new one. */
static void change_something(struct visitor *visitor)
{
    char fence[32], ref[64];

    snprintf(ref, sizeof ref, "%s", visitor_decide(visitor, "TRADE-W1"));
    snprintf(fence, sizeof fence, "%s", visitor_field(visitor, "fence"));
    visitor_send_half(visitor, "retry", ref, "", fence);
    EXPECT_PAGE(visitor, 303, "");
}

/* Ann's reading waits for a table.  Whether Bob was shown the picture before, while it did. */
static int is_overtaken(struct looking *ann, struct visitor *bob)
{
    pthread_t thread;
    int overtaken = 0;

    visitor_get(bob, "/");
    EXPECT_PAGE(bob, 200, "as of");
    change_something(&ann->visitor);
    atomic_store(&ann->is_done, 0);
    database_run(operators.h.sql, "LOCK TABLES trade_resolution WRITE");
    assert_int_equal(pthread_create(&thread, NULL, look_at_now, ann), 0);
    while (!atomic_load(&ann->is_done) &&
           database_number(operators.h.sql,
                           "SELECT COUNT(*) FROM information_schema.processlist WHERE user = '%s' "
                           "AND state = 'Waiting for table metadata lock'",
                           operators.user[ANN]) == 0)
        usleep(10000);
    visitor_get(bob, "/");
    overtaken = bob->status == 200 && !atomic_load(&ann->is_done);
    database_run(operators.h.sql, "UNLOCK TABLES");
    pthread_join(thread, NULL);
    return overtaken;
}

/* A reading that the server lets wait does not let the others wait.  On a busy machine it may have
 * given up before Bob comes. */
TEST(test_now_waits_for_nobody)
{
    struct looking ann = {.is_done = 0};
    struct visitor bob;
    int tries = 0;

    operators_make_doubtful("TRADE-W1");
    visitor_come_in(&ann.visitor, &desk, operators.user[ANN]);
    visitor_come_in(&bob, &desk, operators.user[BOB]);
    while (!is_overtaken(&ann, &bob))
        assert_true(++tries < 10);
    visitor_get(&bob, "/");
    EXPECT_PAGE(&bob, 200, "as of");
    visitor_leave(&ann.visitor);
    visitor_leave(&bob);
}

/* ---------------------------------------------------------------------- lists -- */

/* Finished trades by hand, the first the oldest. */
static void make_finished(const char *op, const char *serial, char status, int count)
{
    database_run(operators.h.sql,
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                 "thread_no, token, fence, rev, proof, session_id, max_hold_until, next_run_at, "
                 "created_at, updated_at) SELECT 'CUSTOMER-9', CONCAT('%s', seq), '%s', 'S', '%c', "
                 "'ask', UUID(), 'x', 1, 1, 'D', UUID(), UTC_TIMESTAMP(6), "
                 "'2030-01-01' + INTERVAL seq SECOND, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) "
                 "FROM seq_1_to_%d",
                 serial, op, status, count);
}

static void search_for(struct visitor *visitor, const char *value, const char *show)
{
    char token[64], path[128];

    visitor_get(visitor, "/trades");
    snprintf(token, sizeof token, "%s", visitor_field(visitor, "token"));
    visitor_post(visitor, "/search", NULL, "token", token, "find", value, "show", show);
    EXPECT_PAGE(visitor, 303, "");
    snprintf(path, sizeof path, "%.*s", (int)strcspn(strstr(visitor->headers, "/trades?r="), "\r"),
             strstr(visitor->headers, "/trades?r="));
    visitor_get(visitor, path);
    EXPECT_PAGE(visitor, 200, "");
}

/* Goes where a link says that begins so, and says where that is. */
static const char *follow(struct visitor *visitor, const char *rel)
{
    static char path[256];
    char begins[64];
    const char *at;

    snprintf(begins, sizeof begins, "rel=\"%s\" href=\"", rel);
    at = strstr(visitor->body, begins);
    assert_non_null(at);
    at += strlen(begins);
    snprintf(path, sizeof path, "%.*s", (int)strcspn(at, "\""), at);
    assert_null(strstr(path, "CUSTOMER"));
    visitor_get(visitor, path);
    EXPECT_PAGE(visitor, 200, "");
    return path;
}

/* Each row once, the newest first; a page costs what the first one did, forth and back. */
TEST(test_pages_of_a_list)
{
    struct visitor ann, bob;
    char before[64];
    long long reads[6], rows[6];

    database_run(operators.h.sql, "SET GLOBAL userstat = 1");
    make_finished("PAGED", "PG-", 'Y', 230);
    visitor_come_in(&ann, &desk, operators.user[ANN]);
    visitor_come_in(&bob, &desk, operators.user[BOB]);
    search_for(&ann, "PAGED", "all");
    for (int i = 0; i < 5; i++) {
        char first[32], last[32];

        snprintf(first, sizeof first, ">PG-%d</a>", 230 - 50 * i);
        snprintf(last, sizeof last, ">PG-%d</a>", i < 4 ? 181 - 50 * i : 1);
        EXPECT_PAGE(&ann, 200, first);
        EXPECT_PAGE(&ann, 200, last);
        snprintf(before, sizeof before, ">PG-%d</a>", 231 - 50 * i);
        EXPECT_NONE(&ann, before);
        reads[i] = statistic(operators.user[ANN], "select_commands");
        rows[i] = statistic(operators.user[ANN], "rows_read");
        if (i < 4)
            follow(&ann, "next");
    }
    EXPECT_NONE(&ann, "rel=\"next\"");
    EXPECT_PAGE(&ann, 200, "Page 5");
    for (int i = 2; i < 4; i++) {
        assert_true(reads[i] - reads[i - 1] <= reads[1] - reads[0] + 1);
        assert_true(rows[i] - rows[i - 1] <= rows[1] - rows[0] + 10);
    }
    /* A colleague is sent the link, and goes back. */
    visitor_get(&bob, follow(&ann, "prev"));
    EXPECT_PAGE(&bob, 200, ">PG-80</a>");
    follow(&bob, "prev");
    EXPECT_PAGE(&bob, 200, "Page 3");
    EXPECT_PAGE(&bob, 200, ">PG-130</a>");
    database_run(operators.h.sql, "SET GLOBAL userstat = 0");
    visitor_leave(&ann);
    visitor_leave(&bob);
}

/* Something rare among much takes more pages, not a long one. */
TEST(test_a_page_looks_at_few)
{
    struct visitor v;
    int pages = 0;

    make_finished("RARE", "RARE-Y", 'Y', 5000);
    make_finished("RARE", "RARE-F", 'F', 2);
    database_run(operators.h.sql, "SET GLOBAL userstat = 1");
    visitor_come_in(&v, &desk, operators.user[ANN]);
    search_for(&v, "RARE", "failed");
    EXPECT_PAGE(&v, 200, "No trade of this page is like that");
    while (strstr(v.body, ">RARE-F2</a>") == NULL) {
        const long long before = statistic(operators.user[ANN], "rows_read");

        EXPECT_PAGE(&v, 200, "Look further");
        follow(&v, "next");
        assert_true(statistic(operators.user[ANN], "rows_read") - before < 3000);
        assert_true(++pages < 10);
    }
    EXPECT_PAGE(&v, 200, ">RARE-F1</a>");
    search_for(&v, "NOT-THERE", "all");
    EXPECT_PAGE(&v, 200, "No trade is like that");
    EXPECT_NONE(&v, "rel=\"next\"");
    database_run(operators.h.sql, "SET GLOBAL userstat = 0");
    database_run(operators.h.sql, "DELETE FROM trade_lock WHERE op_code IN ('RARE', 'PAGED')");
    visitor_leave(&v);
}

/* A page of what waits says that it is of a part, goes on, and its CSV has all. */
TEST(test_more_waits_than_is_read)
{
    char list[64], csv[80];
    struct visitor ann;
    unsigned lines = 0, trades = 0;

    make_parked("LOOKS", "LOOKS-A", "one cause", 1990);
    make_parked("LOOKS", "LOOKS-B", "no answer", 70);
    visitor_come_in(&ann, &desk, operators.user[ANN]);
    await_words(&ann, "/", ">See all 10</a>");
    snprintf(list, sizeof list, "%.*s", (int)strlen("/trades?r=1234567890123456789012"),
             strstr(ann.body, "\">See all 10</a>") - strlen("/trades?r=1234567890123456789012"));
    visitor_get(&ann, list);
    EXPECT_PAGE(&ann, 200,
                ">10 trades of more: <span class=\"money\">100.50\u00a0EUR</span>, the "
                "oldest of these first. ");
    EXPECT_PAGE(&ann, 200, ">CSV of all</a>");
    follow(&ann, "next");
    EXPECT_PAGE(&ann, 200,
                ">60 trades of more: <span class=\"money\">603.00\u00a0EUR</span>, the "
                "oldest of these first. ");
    EXPECT_PAGE(&ann, 200, "Page 2");
    follow(&ann, "next");
    EXPECT_PAGE(&ann, 200, "Page 3");
    EXPECT_PAGE(&ann, 200, ">60 trades of more: ");
    EXPECT_NONE(&ann, "rel=\"next\"");
    snprintf(csv, sizeof csv, "%s&csv=1", list);
    visitor_get(&ann, csv);
    for (const char *at = ann.body; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    for (const char *at = ann.body; (at = strstr(at, "\nLOOKS-B-")) != NULL; at++)
        trades++;
    assert_int_equal(trades, 70);
    assert_int_equal(lines, 71);
    database_run(operators.h.sql, "DELETE FROM trade_lock WHERE cust_no = 'CUSTOMER-9'");
    visitor_leave(&ann);
}

/* However many ended in the last hour. */
TEST(test_status_reads_few)
{
    long long rows;

    make_finished("MANY", "MANY-Y", 'Y', 5000);
    database_run(operators.h.sql, "SET GLOBAL userstat = 1");
    rows = statistic(operators.user[BOB], "rows_read");
    ENDS(RUN("status", "--config", operators.config[BOB]), ANY_CODE,
         "these are the newest of each operation");
    rows = statistic(operators.user[BOB], "rows_read") - rows;
    database_run(operators.h.sql, "SET GLOBAL userstat = 0");
    database_run(operators.h.sql, "DELETE FROM trade_lock WHERE op_code = 'MANY'");
    if (rows >= 2000)
        fail_msg("%lld rows", rows);
}

/* One box finds what people call a trade, tells how it looked, and offers what differs in letters. */
TEST(test_one_box_finds)
{
    static const char *const words[] = {" FOUND-1 ", "FOUND",     "CUSTOMER-9",
                                        "REF <i>",   "12.34 EUR", "EUR 12.34"};
    char large[10001];
    char token[64], path[] = "/trades?r=1234567890123456789012";
    const char *at;
    struct visitor v;

    database_run(
        operators.h.sql,
        "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
        "thread_no, token, fence, rev, proof, created_at, updated_at, amount_minor, "
        "currency, channel_ref, log_no) VALUES ('CUSTOMER-9', 'FOUND-1', 'SEARCHED', 'S', 'Y', "
        "'ask', UUID(), 'x', 1, 1, 'D', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), 1234, 'EUR', "
        "'REF <i>', '0e3a1d5c-7b1f-4a52-9a35-000000000001')");
    visitor_come_in(&v, &desk, operators.user[ANN]);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        search_for(&v, words[i], "all");
        EXPECT_PAGE(&v, 200, ">FOUND-1</a>");
        assert_null(strstr(v.headers, "FOUND"));
    }
    EXPECT_NONE(&v, "It was looked for");
    search_for(&v, "REF <i>", "failed");
    EXPECT_PAGE(&v, 200, "value=\"REF &lt;i&gt;\"");
    EXPECT_PAGE(&v, 200, "as: channel reference, batch, label.");
    search_for(&v, "found-1", "all");
    EXPECT_PAGE(&v, 200, "A serial number differs in blanks or letters alone: ");
    EXPECT_PAGE(&v, 200, ">FOUND-1</a>");
    search_for(&v, "0e3a1d5c-7b1f-4a52-9a35-000000000001", "all");
    EXPECT_NONE(&v, ">FOUND-1</a>");
    EXPECT_PAGE(&v, 200, "\">Look for it as a log UUID</a>");
    at = strstr(v.body, "\">Look for it as a log UUID</a>") - strlen(path);
    visitor_get(&v, memcpy(path, at, strlen(path)));
    EXPECT_PAGE(&v, 200, ">FOUND-1</a>");
    /* It stands on every page, and refuses what no name can be. */
    visitor_get(&v, "/audit");
    EXPECT_PAGE(&v, 200, "name=\"find\"");
    snprintf(token, sizeof token, "%s", visitor_field(&v, "token"));
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    visitor_post(&v, "/search", NULL, "token", token, "find", large);
    EXPECT_PAGE(&v, 400, "longer than any such name can be");
    visitor_post(&v, "/search", NULL, "token", token, "find", "a\x01z");
    EXPECT_PAGE(&v, 400, "byte 2 is a control character");
    database_run(operators.h.sql, "DELETE FROM trade_lock WHERE op_code = 'SEARCHED'");
    visitor_leave(&v);
}

/* A trade that a session holds, by an SQL expression of it, and held when all others of its
 * operation had ended. */
static void make_held(const char *op, const char *serial, const char *session)
{
    database_run(operators.h.sql,
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                 "thread_no, token, fence, rev, sends, session_id, max_hold_until, send_until, "
                 "next_run_at, created_at, updated_at) VALUES ('CUSTOMER-9', '%s', '%s', 'S', 'P', "
                 "'ask', UUID(), 'x', 1, 1, 1, %s, '2031-01-01', UTC_TIMESTAMP(6), "
                 "'2031-01-01', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
                 serial, op, session);
}

/* A list that is read while a janitor opens the trade may miss it; the next one does not. */
static void expect_in_doubt(struct visitor *v, const char *op, const char *link)
{
    for (int lists = 0; lists < 3; lists++) {
        search_for(v, op, "doubt");
        for (int pages = 0;
             pages < 10 && strstr(v->body, link) == NULL && strstr(v->body, "rel=\"next\"") != NULL;
             pages++)
            follow(v, "next");
        if (strstr(v->body, link) != NULL)
            return;
        usleep(100000);
    }
    EXPECT_PAGE(v, 200, link);
}

TEST(test_a_busy_service)
{
    struct visitor v;
    long long before;

    make_finished("CROWD", "BUSY-Y", 'Y', 5000);
    make_held("CROWD", "BUSY-HELD",
              "(SELECT session_id FROM tl_session WHERE ended_at IS NULL LIMIT 1)");
    visitor_come_in(&v, &desk, operators.user[ANN]);
    search_for(&v, "CROWD", "process");
    EXPECT_PAGE(&v, 200, ">BUSY-HELD</a>");
    search_for(&v, "CROWD", "all");
    EXPECT_PAGE(&v, 200, ">BUSY-HELD</a>");
    EXPECT_PAGE(&v, 200, ">BUSY-Y5000</a>");
    /* Its holder lives, so it is in no doubt, nor is any other that is held. */
    database_run(operators.h.sql, "SET GLOBAL userstat = 1");
    before = statistic(operators.user[ANN], "rows_read");
    search_for(&v, "CROWD", "doubt");
    EXPECT_PAGE(&v, 200, "No trade is like that");
    EXPECT_NONE(&v, "rel=\"next\"");
    assert_true(statistic(operators.user[ANN], "rows_read") - before < 1000);
    database_run(operators.h.sql, "SET GLOBAL userstat = 0");
    /* Of a holder that died it is, before and after a janitor opens it. */
    make_held("CROWD", "BUSY-DEAD", "UUID()");
    database_run(
        operators.h.sql,
        "INSERT INTO tl_session (session_id, program, host, pid, connection_name, "
        "timeout_ms, started_at, alive_until, ended_at) SELECT session_id, 'dead', 'host', "
        "1, UUID(), 1000, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) "
        "FROM trade_lock WHERE serial_no = 'BUSY-DEAD'");
    expect_in_doubt(&v, "CROWD", ">BUSY-DEAD</a>");
    database_run(operators.h.sql, "DELETE FROM trade_lock WHERE op_code LIKE 'CROWD%%'");
    visitor_leave(&v);
}

static void make_batch(const char *batch, char status, int count, const char *ref)
{
    database_run(operators.h.sql,
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                 "thread_no, token, fence, rev, proof, created_at, updated_at, amount_minor, "
                 "currency, batch, channel_ref) SELECT 'CUSTOMER-9', CONCAT('BT-%c', seq), "
                 "'BATCHED', 'S', '%c', 'ask', UUID(), 'x', 1, 1, 'D', UTC_TIMESTAMP(6), "
                 "UTC_TIMESTAMP(6), 105, 'EUR', '%s', '%s' FROM seq_1_to_%d",
                 status, status, batch, ref, count);
}

/* A search by batch shows how far all of it is; the address names neither batch nor reference. */
TEST(test_a_batch_and_a_reference)
{
    struct visitor v;
    long long rows;

    make_batch("payroll <b>", 'Y', 120, "REF-Y");
    make_batch("payroll <b>", 'F', 3, "REF-F");
    visitor_come_in(&v, &desk, operators.user[ANN]);
    search_for(&v, "payroll <b>", "all");
    assert_null(strstr(v.headers, "payroll"));
    EXPECT_PAGE(&v, 200, ">BT-Y99</a>");
    EXPECT_PAGE(&v, 200, "Batch payroll &lt;b&gt;</h2>");
    EXPECT_PAGE(&v, 200, "Complete: none of 123 is open.");
    EXPECT_PAGE(&v, 200,
                "<td data-l=\"State\">paid</td>"
                "<td data-l=\"Trades\" class=\"number\">120</td>");
    EXPECT_PAGE(&v, 200, ">126.00\u00a0EUR<");
    EXPECT_PAGE(&v, 200,
                "<td data-l=\"State\">failed</td>"
                "<td data-l=\"Trades\" class=\"number\">3</td>");
    EXPECT_NONE(&v, "payroll <b>");
    follow(&v, "next");
    EXPECT_NONE(&v, "Complete:");
    database_run(operators.h.sql, "UPDATE trade_lock SET conflict = 1, rev = rev + 1 WHERE "
                                  "serial_no = 'BT-F2'");
    search_for(&v, "payroll <b>", "failed");
    EXPECT_PAGE(&v, 200, "Not complete: 1 of 123 are open.");
    EXPECT_PAGE(&v, 200, ">BT-F1</a>");
    EXPECT_NONE(&v, ">BT-Y99</a>");
    search_for(&v, "no such batch", "all");
    EXPECT_PAGE(&v, 200, "No trade is like that");
    /* Found by its index, however many others there are. */
    make_finished("RARE", "RARE-Y", 'Y', 5000);
    search_for(&v, "REF-F", "all");
    EXPECT_PAGE(&v, 200, ">BT-F1</a>");
    EXPECT_NONE(&v, "BT-Y");
    EXPECT_NONE(&v, "Look further");
    /* So are all of a large one, page after page. */
    database_run(operators.h.sql, "DELETE FROM trade_lock WHERE op_code = 'BATCHED'");
    make_batch("paid", 'Y', 3000, "REF-Y");
    make_batch("paid", 'P', 1, "REF-P");
    search_for(&v, "paid", "all");
    EXPECT_PAGE(&v, 200, "Not complete: 1 of 3,001 are open.");
    EXPECT_PAGE(&v, 200, ">BT-Y999</a>");
    EXPECT_PAGE(&v, 200, "Next page");
    search_for(&v, "paid", "process");
    EXPECT_NONE(&v, ">BT-Y999</a>");
    database_run(operators.h.sql, "DELETE FROM trade_lock WHERE op_code = 'BATCHED'");
    make_batch("large", 'P', 5001, "REF-P");
    database_run(operators.h.sql, "SET GLOBAL userstat = 1");
    rows = statistic(operators.user[ANN], "rows_read");
    search_for(&v, "large", "all");
    rows = statistic(operators.user[ANN], "rows_read") - rows;
    database_run(operators.h.sql, "SET GLOBAL userstat = 0");
    if (rows > 12000)
        fail_msg("%lld rows", rows);
    EXPECT_PAGE(&v, 200, "More than 5,000 trades are of it.");
    EXPECT_PAGE(&v, 200, "tradelock ls --batch large");
    database_run(operators.h.sql, "DELETE FROM trade_lock WHERE op_code IN ('RARE', 'BATCHED')");
    visitor_leave(&v);
}

/* -------------------------------------------------------------------- a trade -- */

/* What it is, what the channel said last, and what is next; the rest is folded. */
static void expect_three_sentences(const char *body)
{
    const char *at = strstr(body, "<section class=\"card why\"><p>"), *end;
    int paragraphs = -1; /* the first one is the state's word */

    assert_non_null(at);
    end = strstr(at, "</section>");
    for (; (at = strstr(at, "<p")) != NULL && at < end; at++)
        paragraphs++;
    assert_int_equal(paragraphs, 3);
    assert_non_null(strstr(body, "The whole explanation"));
}

/* Its rows, history, evidence, decisions and channel, who registered that, and who is in the way are
 * read once each. */
TEST(test_a_trade_is_read_once)
{
    struct visitor v;
    char path[128];
    long long reads, explains[2];

    operators_make_doubtful("TRADE-O1");
    visitor_come_in(&v, &desk, operators.user[ANN]);
    snprintf(path, sizeof path, "/trade?r=%s", visitor_find(&v, "TRADE-O1"));
    database_run(operators.h.sql, "SET GLOBAL userstat = 1");
    reads = statistic(operators.user[ANN], "select_commands");
    visitor_get(&v, path);
    EXPECT_PAGE(&v, 200, "Money may have moved");
    EXPECT_PAGE(&v, 200, "<span class=\"lane\">from either end</span>");
    expect_three_sentences(v.body);
    reads = statistic(operators.user[ANN], "select_commands") - reads;
    if (reads < 5 || reads > 11)
        fail_msg("%lld reads", reads);
    /* The command shows what was asked for, which JSON leaves out, by the same reading. */
    for (int i = 0; i < 2; i++) {
        const long long before = statistic(operators.user[BOB], "select_commands");

        ENDS(RUN("explain", "TRADE-O1", "C1", WITHDRAW_OP, "--config", operators.config[BOB],
                 i == 0 ? "--json" : NULL),
             6);
        explains[i] = statistic(operators.user[BOB], "select_commands") - before;
    }
    assert_int_equal(explains[0], explains[1]);
    database_run(operators.h.sql, "SET GLOBAL userstat = 0");
    visitor_leave(&v);
}

/* On the line of time, too, each epoch counts its sends anew. */
TEST(test_each_epoch_sends)
{
    tl_answer answer = TL_ANSWER_INIT;
    struct visitor v;
    char path[128];
    int sends = 0;

    operators_make_failed("TRADE-E1");
    database_run(operators.h.sql, "UPDATE trade_lock SET retryable = 1, rev = rev + 1, step = "
                                  "'test' WHERE serial_no = 'TRADE-E1' AND lane = 'S'");
    assert_status(house_run(&operators.h, "TRADE-E1", "C1", 100, 1, &answer), TL_SUCCEEDED);
    tl_answer_clear(&answer);
    visitor_come_in(&v, &desk, operators.user[ANN]);
    snprintf(path, sizeof path, "/trade?r=%s", visitor_find(&v, "TRADE-E1"));
    visitor_get(&v, path);
    for (const char *at = v.body; (at = strstr(at, "<circle class=\"send\" cy")) != NULL; at++)
        sends++;
    assert_int_equal(sends, 2);
    /* Nothing is folded where all of it stands on top. */
    database_run(operators.h.sql,
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                 "thread_no, token, fence, rev, proof, created_at, updated_at) VALUES ('C1', "
                 "'TRADE-E2', 'TOLD', 'S', 'Y', 'test', UUID(), 'x', 1, 1, 'D', UTC_TIMESTAMP(6), "
                 "UTC_TIMESTAMP(6))");
    snprintf(path, sizeof path, "/trade?r=%s", visitor_find(&v, "TRADE-E2"));
    visitor_get(&v, path);
    EXPECT_PAGE(&v, 200, "It succeeded, once and for good");
    EXPECT_NONE(&v, "The whole explanation");
    database_run(operators.h.sql, "DELETE FROM trade_lock WHERE op_code = 'TOLD'");
    visitor_leave(&v);
}

/* What the map says of a request's texts. */
static const struct said_text {
    const char *member, *group, *json, *column, *heading, *label, *fact;
} said_texts[] = {
#define SAID_MONEY(name, ...)
#define SAID_TEXT(name, ...) {.member = #name, __VA_ARGS__},
#define SAID(type, ...) SAID_##type(__VA_ARGS__)
#define JSON(name) .json = name
#define LIST(name, title) .column = name, .heading = title
#define SHOW(name) .label = name
#define DESK(name) .fact = name
#define IN(name) .group = #name
    TL_SAID_MAP(SAID)};
#define SAID_TEXTS (sizeof said_texts / sizeof said_texts[0])

static void expect_said(struct visitor *v, const struct said_text *said)
{
    char column[64], words[160], json[160], fact[240];

    assert_non_null(said->fact);
    assert_non_null(said->label);
    snprintf(column, sizeof column, "serial,%s", said->column);
    snprintf(words, sizeof words, "said-%s", said->member);
    snprintf(json, sizeof json, "\"%s\": \"said-%s\"", said->json, said->member);
    ENDS(RUN("show", "TRADE-S1", "--config", operators.config[ANN]), 0, said->label, words);
    ENDS(RUN("show", "TRADE-S1", "--json", "--config", operators.config[ANN]), 0, json);
    ENDS(RUN("ls", "--serial", "TRADE-S1", "--columns", column, "--config", operators.config[ANN]),
         0, said->heading, words);
    snprintf(fact, sizeof fact, "<dt>%s</dt><dd>%s</dd>", said->fact, words);
    EXPECT_PAGE(v, 200, fact);
    snprintf(json, sizeof json, "&quot;%s&quot;: &quot;said-%s&quot;", said->json, said->member);
    EXPECT_PAGE(v, 200, json);
}

/* Whatever a line of the map adds arrives at the command, in JSON and on the desk. */
TEST(test_what_a_request_says_is_shown)
{
    struct visitor v;
    char path[128];

    house_expect(&operators.h, "TRADE-S1", "C1", 1, TL_SUCCEEDED);
    for (size_t i = 0; i < SAID_TEXTS; i++)
        if (strcmp(said_texts[i].member, "currency") != 0)
            database_run(operators.h.sql,
                         "UPDATE trade_lock SET %s = 'said-%s', rev = rev + 1, step = 'test' WHERE "
                         "serial_no = 'TRADE-S1'",
                         said_texts[i].member, said_texts[i].member);
    visitor_come_in(&v, &desk, operators.user[ANN]);
    snprintf(path, sizeof path, "/trade?r=%s", visitor_find(&v, "TRADE-S1"));
    visitor_get(&v, path);
    for (size_t i = 0; i < SAID_TEXTS; i++)
        if (strcmp(said_texts[i].member, "currency") != 0)
            expect_said(&v, &said_texts[i]);
    visitor_leave(&v);
}

static void expect_location(const struct visitor *visitor, const char *begins)
{
    const char *at = strstr(visitor->headers, "Location: ");

    EXPECT_PAGE(visitor, 303, "");
    assert_non_null(at);
    if (strncmp(at + strlen("Location: "), begins, strlen(begins)) != 0)
        fail_msg("%s", at);
}

TEST(test_any_past_moment)
{
    struct visitor ann, bob;
    char ref[64], path[256], past[256], now[128];

    operators_make_doubtful("TRADE-M1");
    visitor_come_in(&ann, &desk, operators.user[ANN]);
    visitor_come_in(&bob, &desk, operators.user[BOB]);
    snprintf(ref, sizeof ref, "%s", visitor_find(&ann, "TRADE-M1"));
    snprintf(now, sizeof now, "/trade?r=%s", ref);
    visitor_get(&ann, now);
    EXPECT_PAGE(&ann, 200, "in doubt</span>");
    EXPECT_PAGE(&ann, 200, "type=\"range\"");
    EXPECT_PAGE(&ann, 200, "class=\"answer\"");
    /* The slider's first place is a moment, which can be sent to a colleague. */
    snprintf(path, sizeof path, "%s&step=0", now);
    visitor_get(&ann, path);
    snprintf(past, sizeof past, "%s&at=", now);
    expect_location(&ann, past);
    assert_null(strstr(ann.headers, "TRADE-M1"));
    snprintf(past, sizeof past, "%.*s", (int)strcspn(strstr(ann.headers, "/trade?r="), "\r"),
             strstr(ann.headers, "/trade?r="));
    visitor_get(&bob, past);
    EXPECT_PAGE(&bob, 200, "As it was at ");
    EXPECT_PAGE(&bob, 200, "live</span>");
    EXPECT_PAGE(&bob, 200, "class=\"moment\"");
    EXPECT_PAGE(&bob, 200, "tradelock show TRADE-M1 C1 " WITHDRAW_OP " --as-of 20");
    EXPECT_NONE(&bob, "in doubt</span>");
    EXPECT_NONE(&bob, "/decide?r=");
    /* The place behind all moments is now, and so is what is yet to come. */
    snprintf(path, sizeof path, "%s&step=99", now);
    visitor_get(&ann, path);
    expect_location(&ann, now);
    assert_null(strstr(ann.headers, "at="));
    snprintf(path, sizeof path, "%s&at=9000000000000000", now);
    visitor_get(&ann, path);
    expect_location(&ann, now);
    snprintf(path, sizeof path, "%s&at=2001-01-01", now);
    visitor_get(&ann, path);
    EXPECT_PAGE(&ann, 404, "Not there yet");
    snprintf(path, sizeof path, "%s&at=yesterday", now);
    visitor_get(&ann, path);
    EXPECT_PAGE(&ann, 400, "Not a moment");
    snprintf(path, sizeof path, "%s&at=999999999999999999999999", now);
    visitor_get(&ann, path);
    EXPECT_PAGE(&ann, 400, "Not a moment");
    /* A trade that is gone. */
    database_run(operators.h.sql, "DELETE FROM trade_lock WHERE serial_no = 'TRADE-M1'");
    visitor_get(&ann, now);
    EXPECT_PAGE(&ann, 404, "No such trade");
    visitor_leave(&ann);
    visitor_leave(&bob);
}

/* -------------------------------------------------------------------- channels -- */

#define BANKS 30

static void limit_to(const char *sends, const char *reason)
{
    ENDS(sends != NULL ? RUN("channel", "limit", "idempotent", "--op", WITHDRAW_OP, "--sends",
                             sends, "--reason", reason, "--config", operators.config[ANN])
                       : RUN("channel", "limit", "idempotent", "--op", WITHDRAW_OP, "--none",
                             "--reason", reason, "--config", operators.config[ANN]),
         0);
}

/* How much is limited, and used of it; and on its page, that a trade waits for it. */
TEST(test_a_limit_is_shown)
{
    struct visitor bob;
    char path[160];

    operators_make_doubtful("TRADE-L1");
    visitor_come_in(&bob, &desk, operators.user[BOB]);
    visitor_get(&bob, "/channels");
    EXPECT_NONE(&bob, "Limited to");
    limit_to("2", "<b>their</b> contract");
    /* As two of a service's processes have them. */
    database_run(operators.h.sql,
                 "INSERT INTO trade_channel_permit SELECT 'idempotent', '" WITHDRAW_OP
                 "', session_id, 2, 5, 600000 FROM tl_session WHERE ended_at IS NULL LIMIT 1");
    visitor_get(&bob, "/channels");
    EXPECT_PAGE(&bob, 200, "<strong>Limited to 2 at a time</strong> since ");
    EXPECT_PAGE(&bob, 200, "&lt;b&gt;their&lt;/b&gt; contract");
    EXPECT_PAGE(&bob, 200,
                "<strong>Full:</strong> 2 of 2 permits are out, so other sends wait until one "
                "comes back.");
    snprintf(path, sizeof path, "/trade?r=%s", visitor_find(&bob, "TRADE-L1"));
    visitor_get(&bob, path);
    EXPECT_PAGE(&bob, 200, "Its send waits for a permit: operators limit channel idempotent for ");
    EXPECT_PAGE(&bob, 200, "2 of 2 permits are out");
    EXPECT_PAGE(&bob, 200, "&lt;b&gt;their&lt;/b&gt; contract");
    database_run(operators.h.sql, "DELETE FROM trade_channel_permit");
    limit_to(NULL, "over");
    visitor_get(&bob, "/channels");
    EXPECT_NONE(&bob, "Limited to");
    visitor_leave(&bob);
}

/* That a channel does not answer, on the page Now, on its own and on the trade's. */
TEST(test_a_breaker_is_shown)
{
    struct visitor bob;
    char path[160];

    operators_make_doubtful("TRADE-B1");
    ENDS(RUN("channel", "breaker", "idempotent", "--unknowns", "3", "--share", "50", "--window",
             "60", "--probe-every", "600", "--reason", "<b>falls</b> silent", "--config",
             operators.config[ANN]),
         0);
    visitor_come_in(&bob, &desk, operators.user[BOB]);
    visitor_get(&bob, "/channels");
    EXPECT_PAGE(&bob, 200, "<strong>Breaker closed</strong>: opens after 3 unknown outcomes in a ");
    EXPECT_PAGE(&bob, 200, "or 50 % of a window of 60 s (&lt;b&gt;falls&lt;/b&gt; silent, ");
    EXPECT_NONE(&bob, "--none");
    /* As a process tells it. */
    database_run(operators.h.sql, "CALL tl_channel_told('idempotent', '', (SELECT era FROM "
                                  "trade_channel_breaker), 0, 0, 3, 3, 3, @state)");
    usleep(3100000); /* a picture is as old as that */
    visitor_get(&bob, "/");
    EXPECT_PAGE(&bob, 200, "<h1>Channel idempotent has not answered for ");
    EXPECT_PAGE(&bob, 200, "Its breaker is open: but for one probe at a time nothing is sent");
    EXPECT_PAGE(&bob, 200, "<span class=\"state bad\">breaker open for ");
    EXPECT_PAGE(&bob, 200, "No probe was made yet. The next one may begin at ");
    visitor_get(&bob, "/channels");
    EXPECT_PAGE(&bob, 200, "<strong>Breaker open</strong> since ");
    EXPECT_PAGE(&bob, 200, "tradelock channel breaker idempotent --none --reason TEXT");
    snprintf(path, sizeof path, "/trade?r=%s", visitor_find(&bob, "TRADE-B1"));
    visitor_get(&bob, path);
    EXPECT_PAGE(&bob, 200, "The breaker of channel idempotent is open since ");
    EXPECT_PAGE(&bob, 200, "it is not claimed and no attempt is used up");
    database_run(operators.h.sql,
                 "UPDATE trade_channel_breaker SET next_at = UTC_TIMESTAMP(6); "
                 "CALL tl_channel_probe('idempotent', '', 0, 60000, 4102444800000000, @state)");
    visitor_get(&bob, "/channels");
    EXPECT_PAGE(&bob, 200, "Probes without an answer: 0; one goes on since ");
    EXPECT_PAGE(&bob, 200, "The next one begins no later than ");
    ENDS(RUN("channel", "breaker", "idempotent", "--none", "--reason", "over", "--config",
             operators.config[ANN]),
         0);
    visitor_get(&bob, "/channels");
    EXPECT_NONE(&bob, "Breaker");
    visitor_leave(&bob);
    /* Until this process has heard of it. */
    while (tl_channel_check(operators.h.client, "idempotent", WITHDRAW_OP) != TL_OK)
        usleep(10000);
}

/* Now shows the first, Channels all of them. */
TEST(test_many_channels)
{
    struct visitor ann;

    for (int i = 0; i < BANKS; i++) {
        char serial[32];

        snprintf(serial, sizeof serial, "TRADE-K%d", i);
        house_expect(&operators.h, serial, "C1", 1, TL_SUCCEEDED);
        database_run(operators.h.sql,
                     "UPDATE trade_lock SET channel = 'many-%02d', rev = rev + 1, step = 'test' "
                     "WHERE serial_no = '%s'; INSERT INTO trade_channel (channel, op_code) VALUES "
                     "('many-%02d', '" WITHDRAW_OP "')",
                     i, serial, i);
    }
    visitor_come_in(&ann, &desk, operators.user[ANN]);
    await_words(&ann, "/", "There are more channels than stand here: <a href=\"/channels\">");
    EXPECT_NONE(&ann, "many-29");
    visitor_get(&ann, "/channels");
    for (int i = 0; i < BANKS; i++) {
        char words[240];

        snprintf(words, sizeof words,
                 "<h2>many-%02d, " WITHDRAW_OP "</h2>\n<p><strong>open</strong></p>\n"
                 "<p>In the last hour: 1 paid, 0 declined, 0 failed. Waiting: 0. "
                 "Success rate: 100.0 %%",
                 i);
        EXPECT_PAGE(&ann, 200, words);
    }
    EXPECT_NONE(&ann, "There are more channels than");
    visitor_leave(&ann);
}

/* The last one: the house has left. */
TEST(test_nobody_is_alive)
{
    struct visitor ann;

    visitor_come_in(&ann, &desk, operators.user[ANN]);
    house_leave(&operators.h);
    await_words(&ann, "/", "<section class=\"card worst bad\"><div><h1>No process is alive.</h1>");
    EXPECT_PAGE(&ann, 200, "href=\"/runbook#no-worker\">");
    house_reopen(&operators.h);
    visitor_leave(&ann);
}

TESTS_OF(shown, set_up, tear_down)

/* The desk over HTTP, on a real house: rights, forms, bad input, and that nothing is done which the
 * page did not show.  Whatever is refused leaves the row as it was. */
#include "cli/operators.h"
#include "visitor.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/layer.h>

#include <sys/stat.h>
#include <sys/wait.h>

#define SCRIPT "<script>alert(1)</script>"

static struct desk_process desk;
static char reader[32], nobody[32], sealed[32];

FIXTURE(set_up)
{
    operators_set_up(state);
    snprintf(reader, sizeof reader, "rea%ld", (long)getpid());
    snprintf(nobody, sizeof nobody, "nob%ld", (long)getpid());
    snprintf(sealed, sizeof sealed, "sea%ld", (long)getpid());
    database_run(operators.h.sql,
                 "CREATE USER %s@localhost IDENTIFIED BY 'secret';"
                 "GRANT {database}_reader TO %s@localhost;"
                 "SET DEFAULT ROLE {database}_reader FOR %s@localhost;"
                 "CREATE USER %s@localhost IDENTIFIED BY 'secret';"
                 "CREATE USER %s@localhost IDENTIFIED BY 'secret';"
                 "GRANT SELECT ON tl_schema TO %s@localhost",
                 reader, reader, reader, nobody, sealed, sealed);
    desk_start(&desk, operators.config[ANN], NULL);
}

static int tear_down(void **state)
{
    desk_stop(&desk);
    database_run(operators.h.sql, "DROP USER %s@localhost, %s@localhost, %s@localhost", reader,
                 nobody, sealed);
    return operators_tear_down(state);
}

/* Everything that decisions could change. */
static char *all_rows(void)
{
    return database_text(operators.h.sql,
                         "SELECT CONCAT((SELECT GROUP_CONCAT(fence, ':', rev, ':', conflict "
                         "ORDER BY serial_no, op_code) FROM trade_lock), ' ', "
                         "(SELECT COUNT(*) FROM trade_resolution), ' ', "
                         "(SELECT COUNT(*) FROM trade_evidence))");
}

static void expect_unchanged(char *before)
{
    char *after = all_rows();

    assert_string_equal(before, after);
    free(before);
    free(after);
}

/* -------------------------------------------------------------------- people -- */

TEST(test_who_may_come_in)
{
    struct visitor v;

    visitor_open(&v, &desk);
    visitor_get(&v, "/");
    EXPECT_PAGE(&v, 303, "");
    visitor_login(&v, operators.user[ANN], "wrong");
    EXPECT_PAGE(&v, 403, "Name and password do not fit");
    visitor_login(&v, "nobody-at-all", "secret");
    EXPECT_PAGE(&v, 403, "Name and password do not fit");
    visitor_login(&v, operators.user[ANN], "");
    EXPECT_PAGE(&v, 403, "Please type the name and the password");
    visitor_login(&v, nobody, "secret");
    EXPECT_PAGE(&v, 403, "the account has no role");
    visitor_login(&v, sealed, "secret");
    EXPECT_PAGE(&v, 403, "the account has no role");
    visitor_login(&v, operators.user[SERVICE], "secret");
    EXPECT_PAGE(&v, 403, "This account has no role for operators");
    /* The server lets the administrator in as whoever runs the desk, whatever the password. */
    visitor_login(&v, server_user(server_shared()), "whatever");
    EXPECT_PAGE(&v, 403, "without its password");
    visitor_get(&v, "/");
    EXPECT_PAGE(&v, 303, "");
    /* A form from nowhere. */
    visitor_post(&v, "/login", NULL, "user", operators.user[ANN], "password", "secret");
    EXPECT_PAGE(&v, 403, "This form was too old");
    visitor_login(&v, operators.user[ANN], "secret");
    EXPECT_PAGE(&v, 303, "");
    assert_non_null(strstr(v.headers, "HttpOnly; SameSite=Strict"));
    visitor_get(&v, "/");
    EXPECT_PAGE(&v, 200, "operator</span>");
    visitor_post(&v, "/logout", NULL, "token", visitor_field(&v, "token"));
    EXPECT_PAGE(&v, 303, "");
    visitor_get(&v, "/");
    EXPECT_PAGE(&v, 303, "");
    visitor_close(&v);
}

TEST(test_a_reader_has_no_button)
{
    struct visitor v;
    char ref[64], path[128], token[64], *before;

    operators_make_doubtful("TRADE-R1");
    visitor_come_in(&v, &desk, reader);
    visitor_get(&v, "/");
    EXPECT_PAGE(&v, 200, "reader</span>");
    snprintf(ref, sizeof ref, "%s", visitor_find(&v, "TRADE-R1"));
    snprintf(path, sizeof path, "/trade?r=%s", ref);
    visitor_get(&v, path);
    EXPECT_PAGE(&v, 200, "Money may have moved");
    EXPECT_NONE(&v, "/decide");
    snprintf(path, sizeof path, "/decide?r=%s", ref);
    visitor_get(&v, path);
    EXPECT_PAGE(&v, 200, "Your account may look, and not decide");
    EXPECT_NONE(&v, "action=\"/decide\"");
    before = all_rows();
    snprintf(token, sizeof token, "%s", visitor_field(&v, "token"));
    visitor_post(&v, "/decide", NULL, "token", token, "r", ref, "act", "propose", "as", "failed",
                 "fence", "1", "epoch", "1", "reason", "x");
    EXPECT_PAGE(&v, 403, "Your account may look, and not decide");
    expect_unchanged(before);
    visitor_close(&v);
}

/* One operator pauses a channel, in one step; a reader and a stale page do nothing. */
TEST(test_a_channel_is_paused)
{
    struct visitor ann, v;
    char token[64], stale[64];

    visitor_come_in(&ann, &desk, operators.user[ANN]);
    visitor_come_in(&v, &desk, reader);
    visitor_get(&v, "/channels");
    EXPECT_PAGE(&v, 200, "Your account may look, and not decide");
    EXPECT_PAGE(&v, 200, "<strong>open</strong>");
    EXPECT_NONE(&v, "action=\"/channels\"");
    visitor_get(&v, "/");
    snprintf(token, sizeof token, "%s", visitor_field(&v, "token"));
    visitor_post(&v, "/channels", NULL, "token", token, "channel", "idempotent", "op", WITHDRAW_OP,
                 "act", "pause", "reason", "x");
    EXPECT_PAGE(&v, 403, "Your account may look, and not decide");
    visitor_get(&ann, "/channels");
    EXPECT_PAGE(&ann, 200, "tradelock channel pause idempotent --op " WITHDRAW_OP " --reason TEXT");
    snprintf(stale, sizeof stale, "%s", visitor_field(&ann, "token"));
    visitor_post(&ann, "/channels", NULL, "token", "forged", "channel", "idempotent", "op",
                 WITHDRAW_OP, "act", "pause", "reason", "x");
    EXPECT_PAGE(&ann, 403, "was not sent by a page of yours");
    visitor_post(&ann, "/channels", NULL, "token", stale, "channel", "idempotent", "op",
                 WITHDRAW_OP, "act", "pause", "reason", "");
    EXPECT_PAGE(&ann, 400, "Nothing was done");
    visitor_post(&ann, "/channels", NULL, "token", stale, "channel", "none", "op", WITHDRAW_OP,
                 "act", "pause", "reason", "x");
    EXPECT_PAGE(&ann, 404, "no workflow has registered channel none");
    visitor_post(&ann, "/channels", NULL, "token", stale, "channel", "idempotent", "op",
                 WITHDRAW_OP, "act", "burn", "reason", "x");
    EXPECT_PAGE(&ann, 400, "Not a form of this desk");
    database_run(operators.h.sql,
                 "INSERT INTO tl_session (session_id, program, host, pid, connection_name, "
                 "timeout_ms, started_at, alive_until) VALUES (UUID(), 'old', 'h', 17, UUID(), "
                 "86400000, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 1 DAY)");
    visitor_post(&ann, "/channels", NULL, "token", stale, "channel", "idempotent", "op",
                 WITHDRAW_OP, "act", "pause", "reason", "they <b>pay</b> twice");
    EXPECT_PAGE(&ann, 303, "");
    visitor_get(&ann, "/channels");
    EXPECT_PAGE(&ann, 200,
                "old 17@h does not obey: its program is older than such decisions.  End it.");
    database_run(operators.h.sql,
                 "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6) WHERE program = 'old'");
    visitor_get(&v, "/");
    EXPECT_PAGE(&v, 200, "<span class=\"state doubt\">paused by ann");
    EXPECT_NONE(&v, ">Resume…</a>");
    EXPECT_PAGE(&v, 200, "they &lt;b&gt;pay&lt;/b&gt; twice");
    visitor_post(&ann, "/channels", NULL, "token", stale, "channel", "idempotent", "op",
                 WITHDRAW_OP, "act", "pause", "reason", "again");
    EXPECT_PAGE(&ann, 409, "is paused already");
    EXPECT_PAGE(&ann, 409, "tradelock channel resume idempotent --op " WITHDRAW_OP);
    visitor_post(&ann, "/channels", NULL, "token", stale, "channel", "idempotent", "op",
                 WITHDRAW_OP, "act", "resume", "reason", "they promised");
    EXPECT_PAGE(&ann, 303, "");
    visitor_get(&ann, "/");
    EXPECT_NONE(&ann, "paused by");
    while (tl_channel_check(operators.h.client, "idempotent", WITHDRAW_OP) != TL_OK)
        usleep(10000);
    visitor_close(&ann);
    visitor_close(&v);
}

TEST(test_many_sessions_of_one_account)
{
    struct visitor v[9];

    for (int i = 0; i < 9; i++) {
        visitor_open(&v[i], &desk);
        visitor_login(&v[i], operators.user[BOB], "secret");
        EXPECT_PAGE(&v[i], i < 8 ? 303 : 503, i < 8 ? "" : "this account too often");
    }
    for (int i = 0; i < 8; i++) {
        visitor_get(&v[i], "/audit");
        visitor_post(&v[i], "/logout", NULL, "token", visitor_field(&v[i], "token"));
        EXPECT_PAGE(&v[i], 303, "");
    }
    for (int i = 0; i < 9; i++)
        visitor_close(&v[i]);
}

/* ------------------------------------------------------------------ deciding -- */

TEST(test_two_people_resolve_it)
{
    struct visitor ann, bob;
    char fence[32], ref[64];

    operators_make_doubtful("TRADE-D1");
    visitor_come_in(&ann, &desk, operators.user[ANN]);
    visitor_come_in(&bob, &desk, operators.user[BOB]);
    snprintf(ref, sizeof ref, "%s", visitor_decide(&ann, "TRADE-D1"));
    EXPECT_PAGE(&ann, 200, "Propose “failed”");
    EXPECT_PAGE(&ann, 200,
                "tradelock resolve propose TRADE-D1 C1 " WITHDRAW_OP " --as failed --fence");
    snprintf(fence, sizeof fence, "%s", visitor_field(&ann, "fence"));
    visitor_send_half(&ann, "propose", ref, "failed", fence);
    EXPECT_PAGE(&ann, 303, "");
    visitor_decide(&ann, "TRADE-D1");
    EXPECT_PAGE(&ann, 200, "You proposed “failed”");
    EXPECT_NONE(&ann, "value=\"confirm\"");
    /* Own confirmation, by a form that the page does not have. */
    visitor_send_half(&ann, "confirm", ref, "failed", fence);
    EXPECT_PAGE(&ann, 409, "whoever proposed a decision cannot confirm");
    visitor_decide(&bob, "TRADE-D1");
    EXPECT_PAGE(&bob, 200, "1.00 EUR goes back to C1");
    visitor_send_half(&bob, "confirm", ref, "failed", fence);
    EXPECT_PAGE(&bob, 303, "");
    house_work(&operators.h, 1, 60000);
    house_row(&operators.h, "TRADE-D1", "F 1 1 O");
    /* The worker sent what the trades of other tests wait for, and only that. */
    house_balance(&operators.h, "C1", "900 0");
    house_books(&operators.h, 1);
    visitor_get(&bob, "/audit");
    visitor_post(&bob, "/audit", NULL, "token", visitor_field(&bob, "token"));
    EXPECT_PAGE(&bob, 303, "");
    for (int i = 0; i < PATIENCE_MS / 50; i++) {
        visitor_get(&bob, "/audit");
        if (strstr(bob.body, "Last run") != NULL)
            break;
        usleep(50000);
    }
    EXPECT_PAGE(&bob, 200, "Last run");
    visitor_close(&ann);
    visitor_close(&bob);
}

/* By the form of another tab, say: nobody stays behind in a browser that has forgotten them. */
TEST(test_a_second_login_ends_the_first)
{
    char token[64], cookie[160];
    struct visitor v, other;

    visitor_open(&v, &desk);
    visitor_get(&v, "/login");
    snprintf(token, sizeof token, "%s", visitor_field(&v, "login_token"));
#define LOG_IN(name, word)                                                                         \
    visitor_post(&v, "/login", NULL, "login_token", token, "user", name, "password", word)
    LOG_IN(operators.user[ANN], "secret");
    EXPECT_PAGE(&v, 303, "");
    snprintf(cookie, sizeof cookie, "Cookie: %.*s",
             (int)strcspn(strstr(v.headers, "tl_desk="), ";"), strstr(v.headers, "tl_desk="));
    LOG_IN(operators.user[BOB], "wrong");
    EXPECT_PAGE(&v, 403, "do not fit");
    snprintf(token, sizeof token, "%s", visitor_field(&v, "login_token"));
    visitor_get(&v, "/audit");
    EXPECT_PAGE(&v, 200, operators.user[ANN]);
    LOG_IN(operators.user[BOB], "secret");
    EXPECT_PAGE(&v, 303, "");
    visitor_get(&v, "/audit");
    EXPECT_PAGE(&v, 200, operators.user[BOB]);
    visitor_open(&other, &desk);
    visitor_get_with(&other, "/audit", cookie);
    EXPECT_PAGE(&other, 403, "You are not logged in any more");
    visitor_close(&other);
    visitor_leave(&v);
}

TEST(test_a_stale_page)
{
    struct visitor v;
    char fence[32], ref[64], *before;

    operators_make_doubtful("TRADE-S1");
    visitor_come_in(&v, &desk, operators.user[ANN]);
    snprintf(ref, sizeof ref, "%s", visitor_decide(&v, "TRADE-S1"));
    snprintf(fence, sizeof fence, "%s", visitor_field(&v, "fence"));
    database_run(operators.h.sql,
                 "UPDATE trade_lock SET fence = fence + 1, rev = rev + 1, step = 'test' "
                 "WHERE serial_no = 'TRADE-S1' AND lane = 'S'");
    before = all_rows();
    visitor_send_half(&v, "propose", ref, "failed", fence);
    EXPECT_PAGE(&v, 409, "It was refused: the trade has moved on: root@localhost went on with it");
    assert_true(strtoull(visitor_field(&v, "fence"), NULL, 10) == operators_fence("TRADE-S1"));
    /* What was typed stands in its form. */
    EXPECT_NONE(&v, "You wrote");
    visitor_send_half(&v, "retry", ref, "", fence);
    EXPECT_PAGE(&v, 409, "It was refused: the trade has moved on: root@localhost went on with it");
    visitor_post(&v, "/decide", NULL, "token", visitor_field(&v, "token"), "r", ref, "act",
                 "evidence", "fence", fence, "epoch", "1", "outcome", "SUCCEEDED", "source", "me");
    EXPECT_PAGE(&v, 409, "It was refused: the trade has moved on: root@localhost went on with it");
    expect_unchanged(before);
    visitor_close(&v);
}

TEST(test_evidence_and_looking_again)
{
    struct visitor v;
    char fence[32], ref[64], token[64];

    operators_make_doubtful("EVIDENCE-1");
    visitor_come_in(&v, &desk, operators.user[ANN]);
    snprintf(ref, sizeof ref, "%s", visitor_decide(&v, "EVIDENCE-1"));
    snprintf(fence, sizeof fence, "%s", visitor_field(&v, "fence"));
    snprintf(token, sizeof token, "%s", visitor_field(&v, "token"));
    visitor_post(&v, "/decide", NULL, "token", token, "r", ref, "act", "evidence", "fence", fence,
                 "epoch", "1", "outcome", "MAYBE", "source", "me");
    EXPECT_PAGE(&v, 400, "It was refused");
    visitor_post(&v, "/decide", NULL, "token", token, "r", ref, "act", "evidence", "fence", fence,
                 "epoch", "1", "outcome", "PENDING", "source", "the bank's desk");
    EXPECT_PAGE(&v, 303, "");
    assert_int_equal(
        database_number(
            operators.h.sql,
            "SELECT COUNT(*) FROM tl_act JOIN tl_act_row USING (act_no) "
            "WHERE what = 'evidence add' AND serial_no = 'EVIDENCE-1' AND account LIKE '%s@%%'",
            operators.user[ANN]),
        1);
    visitor_get(&v, "/audit");
    EXPECT_PAGE(&v, 200, "PENDING is on record");
    visitor_get(&v, "/audit");
    EXPECT_NONE(&v, "PENDING is on record");
    visitor_decide(&v, "EVIDENCE-1");
    snprintf(fence, sizeof fence, "%s", visitor_field(&v, "fence"));
    visitor_send_half(&v, "retry", ref, "", fence);
    EXPECT_PAGE(&v, 303, "");
    visitor_close(&v);
}

/* A person confirms what the bank paid: it is stored as told, and compared. */
TEST(test_evidence_tells_the_amount)
{
    static const struct {
        const char *amount, *said;
        unsigned code;
    } tried[] = {{"", "how much was paid", 400},
                 {"100", "of which currency", 400},
                 {"x EUR", "is not written as 1,250.00 EUR", 400},
                 {"1.005 EUR", "is none in EUR", 400},
                 {"0.99 EUR", "", 303}};
    struct visitor v;
    char fence[32], ref[64], token[64];

    operators_make_doubtful("EVIDENCE-2");
    visitor_come_in(&v, &desk, operators.user[ANN]);
    snprintf(ref, sizeof ref, "%s", visitor_decide(&v, "EVIDENCE-2"));
    EXPECT_PAGE(&v, 200, "The trade is of 1.00 EUR");
    assert_string_equal(visitor_field(&v, "amount"), "1.00 EUR");
    snprintf(fence, sizeof fence, "%s", visitor_field(&v, "fence"));
    snprintf(token, sizeof token, "%s", visitor_field(&v, "token"));
    for (size_t i = 0; i < sizeof tried / sizeof tried[0]; i++) {
        visitor_post(&v, "/decide", NULL, "token", token, "r", ref, "act", "evidence", "fence",
                     fence, "epoch", "1", "outcome", "SUCCEEDED", "source", "letter", "amount",
                     tried[i].amount);
        EXPECT_PAGE(&v, tried[i].code, tried[i].said);
    }
    assert_int_equal(database_number(operators.h.sql,
                                     "SELECT SUM(amount_minor) FROM trade_evidence WHERE "
                                     "serial_no = 'EVIDENCE-2' AND currency = 'EUR' AND "
                                     "contradicts = 2"),
                     99);
    visitor_close(&v);
}

/* Opens the list of what is found so. */
static void look_for(struct visitor *v, const char *find, const char *show)
{
    char token[64], path[128];

    visitor_get(v, "/trades");
    snprintf(token, sizeof token, "%s", visitor_field(v, "token"));
    visitor_post(v, "/search", NULL, "token", token, "find", find, "show", show);
    snprintf(path, sizeof path, "%s", strstr(v->headers, "/trades?r="));
    path[strcspn(path, "\r\n")] = '\0';
    visitor_get(v, path);
}

static void send_many(struct visitor *v, const char *act, const char *no, const char *seen)
{
    char token[64], ref[64];

    snprintf(token, sizeof token, "%s", visitor_field(v, "token"));
    snprintf(ref, sizeof ref, "%s", visitor_field(v, "r"));
    visitor_post(v, "/many", NULL, "token", token, "act", act, "as", "failed", "no", no, "r", ref,
                 "seen", seen, "count", "2", "reason", "the letter");
}

/* One proposes of all that a list shows, another confirms that act; what moved on is left out. */
TEST(test_many_at_once)
{
    struct visitor ann, bob, looks;
    char seen[32], no[24], path[64], propose[256], *before;

    operators_make_doubtful("MANY-1");
    operators_make_doubtful("MANY-2");
    database_run(operators.h.sql, "UPDATE trade_lock SET channel = 'many', rev = rev + 1, step = "
                                  "'test' WHERE serial_no LIKE 'MANY-_' AND lane = 'S'");
    visitor_come_in(&looks, &desk, reader);
    visitor_come_in(&ann, &desk, operators.user[ANN]);
    visitor_come_in(&bob, &desk, operators.user[BOB]);
    before = all_rows();
    look_for(&looks, "MANY-", "doubt");
    EXPECT_NONE(&looks, "/many?");
    look_for(&ann, "MANY-", "doubt");
    snprintf(propose, sizeof propose, "%s", visitor_link(&ann, "/many?act=propose&amp;as=failed"));
    visitor_get(&looks, propose);
    EXPECT_PAGE(&looks, 200, "Your account may look");
    EXPECT_NONE(&looks, "name=\"seen\"");
    visitor_leave(&looks);
    visitor_get(&ann, propose);
    EXPECT_PAGE(&ann, 200, "Propose failed: 2 trades");
    EXPECT_PAGE(&ann, 200, "MANY-2");
    send_many(&ann, "propose", "", "0");
    EXPECT_PAGE(&ann, 409, "The list was of 2 trades, and has changed since.");
    visitor_get(&ann, "/many?act=propose&as=failed");
    EXPECT_PAGE(&ann, 404, "of no list that can be decided about");
    expect_unchanged(before);
    visitor_get(&ann, propose);
    snprintf(seen, sizeof seen, "%s", visitor_field(&ann, "seen"));
    send_many(&ann, "propose", "", seen);
    EXPECT_PAGE(&ann, 303, "");
    /* The list that was looked for stands on record, and is there again. */
    assert_non_null(strstr(ann.headers, "Location: /trades?r="));
    assert_int_equal(database_number(operators.h.sql,
                                     "SELECT COUNT(*) FROM tl_act WHERE said = '--as failed desk: "
                                     "doubt find=MANY-'"),
                     1);
    snprintf(no, sizeof no, "%lld",
             database_number(operators.h.sql, "SELECT MAX(act_no) FROM tl_act WHERE done = 2 AND "
                                              "planned = 2 AND what = 'resolve propose'"));
    snprintf(path, sizeof path, "/many?act=confirm&no=%s", no);
    visitor_get(&ann, path);
    EXPECT_PAGE(&ann, 200, "You proposed it.");
    EXPECT_NONE(&ann, "name=\"seen\"");
    visitor_get(&bob, "/");
    EXPECT_PAGE(&bob, 200, "proposed “failed” for 2 trades");
    visitor_get(&bob, path);
    EXPECT_PAGE(&bob, 200, "<section class=\"card offer last\"><h2>Confirm failed: 2 trades");
    snprintf(seen, sizeof seen, "%s", visitor_field(&bob, "seen"));
    database_run(operators.h.sql, "UPDATE trade_lock SET fence = fence + 1, rev = rev + 1, step = "
                                  "'test' WHERE serial_no = 'MANY-2' AND lane = 'S'");
    send_many(&bob, "confirm", no, seen);
    EXPECT_PAGE(&bob, 409, "has changed since");
    snprintf(seen, sizeof seen, "%s", visitor_field(&bob, "seen"));
    send_many(&bob, "confirm", no, seen);
    EXPECT_PAGE(&bob, 303, "");
    assert_int_equal(database_number(operators.h.sql,
                                     "SELECT COUNT(*) * 10 + SUM(serial_no = 'MANY-1') FROM "
                                     "trade_resolution WHERE serial_no LIKE 'MANY-_' AND part = 2"),
                     11);
    /* The record of both acts says that nothing is left. */
    assert_int_equal(database_number(operators.h.sql,
                                     "SELECT COUNT(*) FROM tl_act WHERE said LIKE '--as failed %%' "
                                     "AND counts = 'left=0' AND ended_at IS NOT NULL"),
                     2);
    database_run(operators.h.sql,
                 "UPDATE trade_lock t JOIN trade_lock o ON o.serial_no = 'EVIDENCE-1' AND o.lane = "
                 "'S' SET t.channel = o.channel, t.rev = t.rev + 1, t.step = 'test' WHERE "
                 "t.serial_no LIKE 'MANY-_' AND t.lane = 'S'");
    visitor_close(&ann);
    visitor_close(&bob);
}

/* ----------------------------------------------------------------- bad input -- */

TEST(test_forged_forms)
{
    struct visitor v;
    char fence[32], ref[64], token[64], *before;

    operators_make_doubtful("TRADE-G1");
    visitor_come_in(&v, &desk, operators.user[ANN]);
    snprintf(ref, sizeof ref, "%s", visitor_decide(&v, "TRADE-G1"));
    snprintf(fence, sizeof fence, "%s", visitor_field(&v, "fence"));
    snprintf(token, sizeof token, "%s", visitor_field(&v, "token"));
    before = all_rows();
#define FORGED(header, token)                                                                      \
    visitor_post(&v, "/decide", header, "token", token, "r", ref, "act", "propose", "as",          \
                 "failed", "fence", fence, "epoch", "1", "reason", "forged")
    FORGED(NULL, "");
    EXPECT_PAGE(&v, 403, "Nothing was done");
    FORGED(NULL, "AAAAAAAAAAAAAAAAAAAAAA");
    EXPECT_PAGE(&v, 403, "Nothing was done");
    FORGED("Origin: http://evil.example", token);
    EXPECT_PAGE(&v, 403, "Nothing was done");
    FORGED("Origin: null", token);
    EXPECT_PAGE(&v, 403, "Nothing was done");
    FORGED("Sec-Fetch-Site: cross-site", token);
    EXPECT_PAGE(&v, 403, "Nothing was done");
    FORGED("Content-Type: text/plain", token);
    EXPECT_PAGE(&v, 403, "Nothing was done");
    visitor_post(&v, "/decide", NULL, "token", token, "r", ref, "act", "burn", "fence", fence,
                 "epoch", "1");
    EXPECT_PAGE(&v, 400, "Nothing was done");
    visitor_post(&v, "/decide", NULL, "token", token, "r", ref, "act", "propose", "as", "failed",
                 "fence", "-1", "epoch", "1");
    EXPECT_PAGE(&v, 400, "Nothing was done");
    visitor_send_half(&v, "propose", "AAAAAAAAAAAAAAAAAAAAAA", "failed", fence);
    EXPECT_PAGE(&v, 404, "Nothing was done");
    visitor_get(&v, "/decide");
    EXPECT_PAGE(&v, 404, "No such trade");
    visitor_get(&v, "/trade?r=../../etc/passwd");
    EXPECT_PAGE(&v, 404, "No such trade");
    visitor_get(&v, "/trades?r=nothing&page=99999999999999999999");
    EXPECT_PAGE(&v, 404, "No such list");
    visitor_get(&v, "/etc/passwd");
    EXPECT_PAGE(&v, 404, "no such page");
    visitor_get(&v, "/search");
    EXPECT_PAGE(&v, 405, "Nothing was done");
    visitor_post_bytes(&v, "/decide", (size_t)10 * 1024 * 1024);
    EXPECT_PAGE(&v, 413, "longer than any form");
    visitor_post_bytes(&v, "/decide", 100);
    EXPECT_PAGE(&v, 403, "Nothing was done");
    expect_unchanged(before);
    visitor_close(&v);
}

static void expect_not_logged(const char *words)
{
    char line[1024];
    FILE *log = fopen(desk.log, "re");

    assert_non_null(log);
    while (fgets(line, sizeof line, log) != NULL)
        if (strstr(line, words) != NULL)
            fail_msg("the desk logged: %s", line);
    fclose(log);
}

/* Customers choose their serial numbers. */
TEST(test_a_script_is_text)
{
    struct visitor v;
    char path[128], ref[64];

    operators_make_doubtful(SCRIPT);
    visitor_come_in(&v, &desk, operators.user[ANN]);
    snprintf(ref, sizeof ref, "%s", visitor_decide(&v, SCRIPT));
    EXPECT_PAGE(&v, 200, "&#39;&lt;script&gt;alert(1)&lt;/script&gt;&#39;");
    EXPECT_NONE(&v, SCRIPT);
    snprintf(path, sizeof path, "/trade?r=%s", ref);
    visitor_get(&v, path);
    EXPECT_PAGE(&v, 200, "&lt;script&gt;alert(1)");
    EXPECT_NONE(&v, SCRIPT);
    assert_non_null(strstr(v.headers, "Content-Security-Policy: default-src 'none';"));
    assert_non_null(strstr(v.headers, "Cache-Control: no-store"));
    visitor_get(&v, "/trades");
    EXPECT_NONE(&v, SCRIPT);
    visitor_get(&v, "/");
    EXPECT_NONE(&v, SCRIPT);
    expect_not_logged("script");
    visitor_close(&v);
}

TEST(test_an_expired_session)
{
    static const char *const idle[] = {"--idle", "2s", NULL};
    struct desk_process other;
    struct visitor v;
    char token[64], *before;

    desk_start(&other, operators.config[ANN], idle);
    visitor_open(&v, &other);
    visitor_login(&v, operators.user[ANN], "secret");
    EXPECT_PAGE(&v, 303, "");
    visitor_get(&v, "/audit");
    snprintf(token, sizeof token, "%s", visitor_field(&v, "token"));
    before = all_rows();
    /* The page's own refreshing is nobody's hand. */
    for (int i = 0; i < 200 && v.status != 403; i++) {
        usleep(100000);
        visitor_get_with(&v, "/audit", "X-Desk-Refresh: 1");
    }
    EXPECT_PAGE(&v, 403, "You are not logged in any more");
    visitor_post(&v, "/decide", NULL, "token", token, "act", "propose");
    EXPECT_PAGE(&v, 403, "Nothing was done");
    expect_unchanged(before);
    visitor_close(&v);
    desk_stop(&other);
}

TEST(test_too_many_wrong_passwords)
{
    struct desk_process other;
    struct visitor v;

    desk_start(&other, operators.config[ANN], NULL);
    visitor_open(&v, &other);
    for (int i = 0; i < 5; i++) {
        visitor_login(&v, operators.user[BOB], "guess");
        EXPECT_PAGE(&v, 403, "do not fit");
    }
    visitor_login(&v, operators.user[BOB], "secret");
    EXPECT_PAGE(&v, 429, "Too many wrong passwords");
    assert_non_null(strstr(v.headers, "Retry-After: 60"));
    visitor_login(&v, operators.user[ANN], "secret");
    EXPECT_PAGE(&v, 303, "");
    visitor_close(&v);
    desk_stop(&other);
}

/* Beyond loopback too, with a certificate; then cookies go over TLS only. */
TEST(test_tls)
{
    char certificate[300], key[300], command[1024];
    const char *const options[] = {"--tls-cert", certificate, "--tls-key", key,
                                   "--listen",   "0.0.0.0:0", NULL};
    struct desk_process other;
    struct visitor v;

    snprintf(certificate, sizeof certificate, "%s/desk-%ld.crt", test_build_dir(), (long)getpid());
    snprintf(key, sizeof key, "%s/desk-%ld.key", test_build_dir(), (long)getpid());
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -addext "
             "subjectAltName=IP:127.0.0.1 -days 2 -keyout '%s' "
             "-out '%s' 2>/dev/null",
             key, certificate);
    assert_int_equal(system(command), 0);
    desk_start(&other, operators.config[ANN], options);
    visitor_open(&v, &other);
    visitor_login(&v, operators.user[ANN], "secret");
    EXPECT_PAGE(&v, 303, "");
    assert_non_null(strstr(v.headers, "SameSite=Strict; Secure"));
    assert_non_null(strstr(v.headers, "Strict-Transport-Security"));
    visitor_get(&v, "/");
    EXPECT_PAGE(&v, 200, "Needs a person");
    visitor_close(&v);
    desk_stop(&other);
    unlink(certificate);
    unlink(key);
}

static tl_status open_as(const char *user, const char *password, tl_account *account)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;
    tl_status status;

    options.config_file = operators.config[ANN];
    options.flags = TL_CLIENT_NO_SESSION;
    options.user = user;
    options.password = password;
    status = tl_client_open(&client, &options);
    if (status == TL_OK)
        status = tl_account_look(client, account);
    tl_client_close(client);
    return status;
}

/* No password of the settings file lets somebody else in. */
TEST(test_an_account_beside_the_file)
{
    tl_account account = TL_ACCOUNT_INIT;
    char name[64];

    assert_status(open_as(NULL, NULL, &account), TL_OK);
    snprintf(name, sizeof name, "%s@localhost", operators.user[ANN]);
    assert_string_equal(account.name, name);
    assert_string_equal(account.database, database_name(operators.h.db));
    assert_true(account.may_read && account.may_decide && account.needs_password);
    assert_status(open_as(operators.user[BOB], "secret", &account), TL_OK);
    snprintf(name, sizeof name, "%s@localhost", operators.user[BOB]);
    assert_string_equal(account.name, name);
    assert_status(open_as(reader, "secret", &account), TL_OK);
    assert_true(account.may_read && !account.may_decide && account.needs_password);
    assert_status(open_as(operators.user[SERVICE], "secret", &account), TL_OK);
    assert_true(!account.may_read && !account.may_decide);
    assert_status(open_as(server_user(server_shared()), "", &account), TL_OK);
    assert_true(!account.needs_password);
    assert_status(open_as(operators.user[ANN], "", &account), TL_ACCESS_DENIED);
    assert_status(open_as(operators.user[ANN], "wrong", &account), TL_ACCESS_DENIED);
    assert_status(open_as(operators.user[ANN], NULL, &account), TL_INVALID);
    assert_status(open_as(NULL, "secret", &account), TL_INVALID);
    assert_status(open_as("", "secret", &account), TL_INVALID);
}

/* One sentence on stderr and this exit code, for the options up to NULL. */
static void expect_refused(int code, const char *words, const char *const *options)
{
    const char *arguments[16] = {"desk", "--config", operators.config[ANN]};
    size_t count = 3;
    output *o;

    while (*options != NULL)
        arguments[count++] = *options++;
    arguments[count] = NULL;
    o = command_run(NULL, arguments);
    EXPECT_CODE(o, code);
    if (strstr(o->err, words) == NULL)
        fail_msg("no \"%s\" in: %s", words, o->err);
    assert_string_equal(o->out, "");
    output_free(o);
}
#define REFUSED(code, words, ...)                                                                  \
    expect_refused(code, words, (const char *const[]){__VA_ARGS__, NULL})

TEST(test_how_it_is_started_wrongly)
{
    REFUSED(2, "Address already in use", "--listen", strchr(desk.url, '1'));
    REFUSED(2, "passwords would travel for all to read", "--listen", "0.0.0.0:0");
    REFUSED(2, "go together", "--tls-cert", operators.config[ANN]);
    REFUSED(2, "cannot be read", "--tls-cert", "/nowhere", "--tls-key", "/nowhere");
    REFUSED(2, "certificate and key cannot be used", "--listen", "127.0.0.1:0", "--tls-cert",
            operators.config[ANN], "--tls-key", operators.config[ANN]);
    REFUSED(2, "IPv4 address and a port", "--listen", "8080");
    REFUSED(2, "no IPv4 address", "--listen", "localhost:80");
    REFUSED(2, "from 1s to 12h", "--idle", "never");
    REFUSED(2, "takes no operand", "here");
    REFUSED(2, "unknown option", "--nonsense");
}

TESTS_OF(http, set_up, tear_down)

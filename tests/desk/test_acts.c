/* What operators do at the desk besides deciding about trades, over HTTP: lists of it, limits,
 * breakers, the drain, and the screen on the wall. */
#include "cli/operators.h"
#include "visitor.h"
#include "support/theme.h"

#include <tradelock/layer.h>

static struct desk_process desk;
static char reader[32];

FIXTURE(set_up)
{
    operators_set_up(state);
    snprintf(reader, sizeof reader, "rea%ld", (long)getpid());
    database_run(operators.h.sql,
                 "CREATE USER %s@localhost IDENTIFIED BY 'secret';"
                 "GRANT {database}_reader TO %s@localhost;"
                 "SET DEFAULT ROLE {database}_reader FOR %s@localhost",
                 reader, reader, reader);
    desk_start(&desk, operators.config[ANN], NULL);
}

static int tear_down(void **state)
{
    desk_stop(&desk);
    database_run(operators.h.sql, "DROP USER %s@localhost", reader);
    return operators_tear_down(state);
}

/* -------------------------------------------------------------------- lists -- */

TEST(test_the_inbox)
{
    struct visitor ann, bob, looking;
    char fence[32], ref[64];

    operators_make_doubtful("LIST-1");
    visitor_come_in(&ann, &desk, operators.user[ANN]);
    visitor_come_in(&bob, &desk, operators.user[BOB]);
    visitor_come_in(&looking, &desk, reader);
    visitor_get(&bob, "/inbox");
    EXPECT_PAGE(&bob, 200, "Nothing waits for a second person.");
    EXPECT_PAGE(&bob, 200, "<a href=\"/inbox\" aria-current=\"page\">Inbox</a>");
    snprintf(ref, sizeof ref, "%s", visitor_decide(&ann, "LIST-1"));
    snprintf(fence, sizeof fence, "%s", visitor_field(&ann, "fence"));
    visitor_send_half(&ann, "propose", ref, "failed", fence);
    EXPECT_PAGE(&ann, 303, "");
    visitor_get(&ann, "/inbox");
    EXPECT_PAGE(&ann, 200, "<td data-l=\"You may\">no, a second person</td>");
    visitor_get(&bob, "/inbox");
    EXPECT_PAGE(&bob, 200, "<td data-l=\"You may\">yes</td>");
    EXPECT_PAGE(&bob, 200, ">LIST-1</a>");
    visitor_get(&bob, visitor_link(&bob, "/decide?r="));
    EXPECT_PAGE(&bob, 200, "<button class=\"button main\">Confirm</button>");
    visitor_get(&looking, "/inbox");
    EXPECT_PAGE(&looking, 200, ">LIST-1</a>");
    visitor_leave(&ann);
    visitor_leave(&bob);
    visitor_leave(&looking);
}

/* The latest first, a page at a time, and what became of each trade of one. */
TEST(test_acts_and_their_rows)
{
    struct visitor v;
    char path[64];

    database_run(
        operators.h.sql,
        "INSERT INTO tl_act (act_no, what, said, reason, actor, account, planned, done, "
        "begun_at, ended_at) SELECT 1000 + seq, 'retry', CONCAT('parked <b>', seq), 'why', "
        "'me', 'zoe@h', 2, 1, UTC_TIMESTAMP(6) - INTERVAL seq DAY, UTC_TIMESTAMP(6) "
        "FROM seq_1_to_60;"
        "INSERT INTO tl_act_row SELECT 1003, seq, 'C1', CONCAT('ROW-', seq), 'PAY', 7, "
        "'moved on', UTC_TIMESTAMP(6) FROM seq_1_to_60");
    visitor_come_in(&v, &desk, reader);
    visitor_get(&v, "/acts");
    EXPECT_PAGE(&v, 200, "<td data-l=\"By\">zoe</td>");
    EXPECT_PAGE(&v, 200, "retry parked &lt;b&gt;1: 1 of 2 (why)</td>");
    EXPECT_PAGE(&v, 200, "href=\"/acts?no=1003&amp;shard=\">1003</a>");
    EXPECT_NONE(&v, "&lt;b&gt;60:");
    snprintf(path, sizeof path, "%s", visitor_link(&v, "/acts?r="));
    visitor_get(&v, path);
    EXPECT_PAGE(&v, 200, "&lt;b&gt;60:");
    EXPECT_NONE(&v, "&lt;b&gt;1:");
    visitor_get(&v, "/acts?no=1003");
    EXPECT_PAGE(&v, 200, "<h1>Act 1003</h1>");
    EXPECT_PAGE(&v, 200, ">ROW-50</a>");
    EXPECT_PAGE(&v, 200, "<td data-l=\"Result\">moved on</td>");
    EXPECT_NONE(&v, ">ROW-51</a>");
    visitor_get(&v, visitor_link(&v, "/acts?no=1003&amp;after=50"));
    EXPECT_PAGE(&v, 200, ">ROW-60</a>");
    EXPECT_NONE(&v, ">ROW-50</a>");
    visitor_get(&v, "/acts?no=999");
    EXPECT_PAGE(&v, 200, "No such act has rows.");
    visitor_get(&v, "/acts?no=x");
    EXPECT_PAGE(&v, 404, "This link is of no act.");
    visitor_get(&v, "/acts?r=AAAAAAAAAAAAAAAAAAAAAA");
    EXPECT_PAGE(&v, 404, "This page is older than the desk.");
    visitor_leave(&v);
}

TEST(test_the_doctor)
{
    struct visitor v;

    visitor_come_in(&v, &desk, operators.user[ANN]);
    visitor_get(&v, "/doctor");
    EXPECT_PAGE(&v, 200, "<td data-l=\"Level\"><span class=\"state good\">ok</span></td>");
    EXPECT_PAGE(&v, 200, "<td data-l=\"Check\">schema</td>");
    EXPECT_PAGE(&v, 200, "<td data-l=\"What it means\">");
    visitor_leave(&v);
}

/* ----------------------------------------------------------------- channels -- */

static void decide(struct visitor *v, const char *act, const char *channel, const char *const *more)
{
    const char *fields[24] = {"token",   visitor_field(v, "token"),
                              "act",     act,
                              "channel", channel,
                              "op",      strcmp(channel, TL_CHANNEL_ALL) == 0 ? "" : WITHDRAW_OP};
    size_t count = 8;

    while (*more != NULL)
        fields[count++] = *more++;
    fields[count] = NULL;
    visitor_get(v, "/channels");
    fields[1] = visitor_field(v, "token");
    visitor_post_fields(v, "/channels", NULL, fields);
}
#define DECIDE(v, act, ...) decide(v, act, "idempotent", (const char *const[]){__VA_ARGS__, NULL})

TEST(test_a_limit_is_set)
{
    struct visitor ann, looking;

    visitor_come_in(&ann, &desk, operators.user[ANN]);
    visitor_come_in(&looking, &desk, reader);
    visitor_get(&looking, "/channels");
    EXPECT_NONE(&looking, "name=\"sends\"");
    DECIDE(&looking, "limit", "sends", "2", "reason", "x");
    EXPECT_PAGE(&looking, 403, "Your account may look, and not decide");
    DECIDE(&ann, "limit", "sends", "0", "reason", "their letter");
    EXPECT_PAGE(&ann, 400, "“Sends at a time” is a number from 1 to 1,000,000");
    EXPECT_PAGE(&ann, 400, "<details open>");
    EXPECT_PAGE(&ann, 400, "value=\"their letter\"");
    DECIDE(&ann, "limit", "sends", "2x", "reason", "their letter");
    EXPECT_PAGE(&ann, 400, "Nothing was done.");
    DECIDE(&ann, "limit", "sends", "", "reason", "their letter");
    EXPECT_PAGE(&ann, 400, "say a number, or that there is none any more");
    DECIDE(&ann, "limit", "sends", "2", "reason", "");
    EXPECT_PAGE(&ann, 400, "Nothing was done.");
    visitor_get(&ann, "/channels");
    EXPECT_NONE(&ann, "Limited to");
    DECIDE(&ann, "limit", "sends", "2", "per_second", "10", "reason", "their letter");
    EXPECT_PAGE(&ann, 303, "");
    visitor_get(&ann, "/channels");
    EXPECT_PAGE(&ann, 200, "idempotent sends 2 at a time, 10 a second within a heartbeat");
    EXPECT_PAGE(&ann, 200, "<strong>Limited to 2 at a time, 10 a second</strong> since ");
    EXPECT_PAGE(&ann, 200, ": their letter. ");
    EXPECT_PAGE(&ann, 200, "name=\"per_second\" value=\"10\"");
    DECIDE(&ann, "limit", "sends", "2", "per_second", "10", "reason", "again");
    EXPECT_PAGE(&ann, 409, "value=\"again\"");
    DECIDE(&ann, "limit", "sends", "2", "none", "1", "reason", "over");
    EXPECT_PAGE(&ann, 303, "");
    visitor_get(&ann, "/channels");
    EXPECT_PAGE(&ann, 200, "idempotent sends as much as there is");
    EXPECT_NONE(&ann, "Limited to");
    visitor_leave(&ann);
    visitor_leave(&looking);
}

TEST(test_a_breaker_is_set)
{
    struct visitor ann;

    visitor_come_in(&ann, &desk, operators.user[ANN]);
    DECIDE(&ann, "breaker", "share", "50", "window", "60", "reason", "silent");
    EXPECT_PAGE(&ann, 400, "say after how many unknown outcomes it opens");
    EXPECT_PAGE(&ann, 400, "name=\"share\" value=\"50\"");
    DECIDE(&ann, "breaker", "unknowns", "5", "share", "50", "reason", "silent");
    EXPECT_PAGE(&ann, 400, "a share and its window go together");
    DECIDE(&ann, "breaker", "unknowns", "5", "share", "101", "window", "60", "reason", "silent");
    EXPECT_PAGE(&ann, 400, "is a number from 1 to 100");
    DECIDE(&ann, "breaker", "unknowns", "5", "share", "50", "window", "60", "probe", "7", "reason",
           "silent");
    EXPECT_PAGE(&ann, 303, "");
    visitor_get(&ann, "/channels");
    EXPECT_PAGE(&ann, 200, "idempotent has this breaker within a heartbeat");
    EXPECT_PAGE(&ann, 200, "opens after 5 unknown outcomes in a row, or 50 % of a window of 60 s");
    EXPECT_PAGE(&ann, 200, "name=\"probe\" value=\"7\"");
    DECIDE(&ann, "breaker", "none", "1", "reason", "over");
    EXPECT_PAGE(&ann, 303, "");
    visitor_get(&ann, "/channels");
    EXPECT_PAGE(&ann, 200, "idempotent has no breaker");
    EXPECT_NONE(&ann, "<strong>Breaker");
    visitor_leave(&ann);
}

/* Deadlines are told before a pause; and what was typed outlives a page that was too old. */
TEST(test_before_a_pause)
{
    struct visitor ann;

    operators_make_doubtful("DEAD-1");
    database_run(operators.h.sql,
                 "UPDATE trade_lock SET deadline_at = UTC_TIMESTAMP(6) + INTERVAL 2 HOUR, "
                 "rev = rev + 1, step = 'test' WHERE serial_no = 'DEAD-1' AND lane = 'S'");
    visitor_come_in(&ann, &desk, operators.user[ANN]);
    visitor_get(&ann, "/channels");
    EXPECT_PAGE(&ann, 200, "<p class=\"quiet\">Deadlines go on: of ");
    DECIDE(&ann, "pause", "reason", "");
    EXPECT_PAGE(&ann, 400, "Nothing was done.");
    DECIDE(&ann, "resume", "reason", "they <b>answer</b>");
    EXPECT_PAGE(&ann, 409, "You wrote: “they &lt;b&gt;answer&lt;/b&gt;”");
    DECIDE(&ann, "pause", "reason", "down");
    EXPECT_PAGE(&ann, 303, "");
    visitor_get(&ann, "/channels");
    EXPECT_PAGE(&ann, 200, "<p class=\"notice warn\">Deadlines go on: of ");
    DECIDE(&ann, "pause", "reason", "silent");
    EXPECT_PAGE(&ann, 409, "You wrote: “silent”");
    DECIDE(&ann, "resume", "reason", "up");
    EXPECT_PAGE(&ann, 303, "");
    visitor_leave(&ann);
}

/* It stands there before anybody decided about it, and says what is still held. */
TEST(test_a_drain)
{
    static const char *const reason[] = {"reason", "new server", NULL};
    struct visitor ann;

    visitor_come_in(&ann, &desk, operators.user[ANN]);
    visitor_get(&ann, "/channels");
    EXPECT_PAGE(&ann, 200, "id=\"channel--*-\"><h2>All channels (drain), as a whole</h2>");
    EXPECT_PAGE(&ann, 200, "A drain stops everything");
    EXPECT_PAGE(&ann, 200, "<button class=\"button main\">Stop everything</button>");
    EXPECT_PAGE(&ann, 200, "tradelock drain --reason TEXT");
    EXPECT_NONE(&ann, "Trades that are still held");
    database_run(operators.h.sql,
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                 "thread_no, token, fence, rev, proof, session_id, max_hold_until, created_at, "
                 "updated_at) SELECT 'C1', 'HELD-1', 'HELD', 'S', 'P', 'ask', UUID(), 'x', 1, 1, "
                 "'-', session_id, UTC_TIMESTAMP(6) + INTERVAL 1 HOUR, UTC_TIMESTAMP(6), "
                 "UTC_TIMESTAMP(6) FROM tl_session WHERE ended_at IS NULL LIMIT 1");
    decide(&ann, "pause", TL_CHANNEL_ALL, reason);
    EXPECT_PAGE(&ann, 303, "");
    visitor_get(&ann, "/channels");
    EXPECT_PAGE(&ann, 200, "The installation pauses within a heartbeat");
    EXPECT_PAGE(&ann, 200, "<strong>Trades that are still held: 1.</strong>");
    EXPECT_PAGE(&ann, 200, "tradelock drain --end --reason TEXT");
    database_run(operators.h.sql, "DELETE FROM trade_lock WHERE op_code = 'HELD'");
    for (int i = 0; i < PATIENCE_MS / 100; i++) {
        visitor_get(&ann, "/channels");
        if (strstr(ann.body, "held: 0.</strong> Processes that have not said yet that nothing "
                             "begins there: 0.") != NULL)
            break;
        usleep(100000);
    }
    EXPECT_PAGE(&ann, 200,
                "held: 0.</strong> Processes that have not said yet that nothing begins "
                "there: 0.");
    decide(&ann, "resume", TL_CHANNEL_ALL, reason);
    EXPECT_PAGE(&ann, 303, "");
    while (tl_channel_check(operators.h.client, "idempotent", WITHDRAW_OP) != TL_OK)
        usleep(10000);
    visitor_leave(&ann);
}

/* --------------------------------------------------------------------- wall -- */

/* A reader's is not logged out, over some rounds of the sweep; an operator's is, and the reader's
 * with any other page. */
TEST(test_a_wall_stays)
{
    static const char *const options[] = {"--longest", "2s", NULL};
    struct desk_process other;
    struct visitor ann, looking;

    desk_start(&other, operators.config[ANN], options);
    visitor_come_in(&looking, &other, reader);
    visitor_come_in(&ann, &other, operators.user[ANN]);
    for (int i = 0; i < 25 || ann.status != 403; i++) {
        visitor_get(&looking, "/wall");
        EXPECT_PAGE(&looking, 200, "Where money waits");
        visitor_get(&ann, "/wall");
        usleep(500000);
    }
    visitor_get(&looking, "/trades");
    EXPECT_PAGE(&looking, 403, "You are not logged in any more");
    visitor_close(&ann);
    visitor_close(&looking);
    desk_stop(&other);
}

TESTS_OF(acts, set_up, tear_down)

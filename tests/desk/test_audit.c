/* The page Audit over HTTP: a bank's statement beside the trades, and findings that two people
 * close.  Whatever is refused changes nothing. */
#include "cli/operators.h"
#include "visitor.h"
#include "support/theme.h"

#include <netinet/in.h>
#include <sys/socket.h>

#define UNKNOWN "The statement has it, the house has not"
#define MISSING "The house has it, the statement has not"

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

static void come_in(struct visitor *visitor, const char *user)
{
    visitor_open(visitor, &desk);
    visitor_login(visitor, user, "secret");
    EXPECT_PAGE(visitor, 303, "");
}

/* Everything that the page could change. */
static char *all_rows(void)
{
    return database_text(operators.h.sql,
                         "SELECT CONCAT((SELECT GROUP_CONCAT(serial_no, fence, ':', rev, ':', "
                         "conflict ORDER BY serial_no, op_code) FROM trade_lock), ' ', "
                         "(SELECT COUNT(*) FROM trade_evidence), ' ', "
                         "(SELECT COUNT(*) FROM audit_closing))");
}

static void expect_unchanged(char *before)
{
    char *after = all_rows();

    assert_string_equal(before, after);
    free(before);
    free(after);
}

static const char *token_of(struct visitor *visitor)
{
    static char token[64];

    visitor_get(visitor, "/audit");
    snprintf(token, sizeof token, "%s", visitor_field(visitor, "token"));
    return token;
}

static void wait_for_end(struct visitor *visitor)
{
    for (int i = 0; i < PATIENCE_MS / 50; i++) {
        visitor_get(visitor, "/audit");
        if (strstr(visitor->body, "An audit is running") == NULL)
            return;
        usleep(50000);
    }
    fail_msg("the audit does not end");
}

static void audit(struct visitor *visitor)
{
    visitor_post(visitor, "/audit", NULL, "token", token_of(visitor));
    EXPECT_PAGE(visitor, 303, "");
    wait_for_end(visitor);
    EXPECT_PAGE(visitor, 200, "Last run");
}

static void send_statement(struct visitor *visitor, const char *text)
{
    visitor_post_file(visitor, "/statement", token_of(visitor), "bank.csv", text, strlen(text));
}

/* Whether the words stand behind one heading, and before the other if there is one. */
static void expect_between(const struct visitor *visitor, const char *from, const char *to,
                           const char *words)
{
    const char *begin = strstr(visitor->body, from);
    const char *end = begin != NULL && to != NULL ? strstr(begin, to) : NULL;
    const char *at = begin != NULL ? strstr(begin, words) : NULL;

    if (at == NULL || (end != NULL && at > end))
        fail_msg("\"%s\" does not stand under \"%s\": %s", words, from, visitor->body);
}

/* --------------------------------------------------------------- statements -- */

TEST(test_a_statement_and_the_trades)
{
    struct visitor v;
    char *before, path[256];

    house_expect(&operators.h, "OK1", "C1", 100, TL_SUCCEEDED);
    house_expect(&operators.h, "OK2", "C1", 100, TL_SUCCEEDED);
    operators_make_failed("BAD1");
    before = all_rows();
    come_in(&v, reader);
    EXPECT_NONE(&v, "Last statement");
    send_statement(&v, "serial_no,cust_no,op_code\nOK1,C1," WITHDRAW_OP "\nBAD1,C1," WITHDRAW_OP
                       "\n<i>NOBODY</i>,C1,\n");
    EXPECT_PAGE(&v, 303, "");
    assert_non_null(strstr(v.headers, "Location: /audit\r\n"));
    wait_for_end(&v);
    EXPECT_PAGE(&v, 200, "3 differences.");
    EXPECT_PAGE(&v, 200, "bank.csv");
    EXPECT_PAGE(&v, 200, "3 payments");
    EXPECT_PAGE(&v, 200, "; not on record, which an operator’s account could write");
    expect_between(&v, UNKNOWN, MISSING, "&lt;i&gt;NOBODY&lt;/i&gt;");
    expect_between(&v, UNKNOWN, MISSING, "paid-failure");
    expect_between(&v, UNKNOWN, MISSING, "BAD1</a>");
    expect_between(&v, MISSING, "Last run", "OK2</a>");
    EXPECT_PAGE(&v, 200, "The books are in order.");
    EXPECT_NONE(&v, "OK1</a>");
    EXPECT_NONE(&v, "NOBODY</a>");
    /* A link leads to the trade, and tells nothing in its address. */
    snprintf(path, sizeof path, "%s", visitor_link(&v, "/trade?r="));
    assert_null(strstr(path, "BAD1"));
    visitor_get(&v, path);
    EXPECT_PAGE(&v, 200, "BAD1");
    /* The next run leaves what the statement showed. */
    audit(&v);
    EXPECT_PAGE(&v, 200, "3 differences.");
    send_statement(&v, "serial_no,cust_no\nOK1,C1\nOK2,C1\n");
    wait_for_end(&v);
    EXPECT_PAGE(&v, 200, "The statement and the trades agree.");
    expect_unchanged(before);
    visitor_close(&v);
}

TEST(test_bad_statements)
{
    static const char *const bad[][2] = {
        {"", "bank.csv:1: it is empty"},
        {"serial,cust\nA,B\n", "the first line names no columns serial_no and cust_no"},
        {"serial_no,cust_no\nA\n", "bank.csv:2: the line has 1 cells"},
        {"serial_no,cust_no\nA,B,C\n", "bank.csv:2: the line has 3 cells"},
        {"serial_no,cust_no\n\"A,B\n", "a quote is not closed"},
        {"serial_no,cust_no,status\nA,B,REJECTED\n", "is not known: what it says"},
        {"serial_no,cust_no\nA,B", "bank.csv:2: the last line has no end"},
    };
    const size_t size = (size_t)10 * 1024 * 1024;
    char *large = malloc(size), *before = all_rows();
    struct visitor v, stranger;

    come_in(&v, operators.user[ANN]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        send_statement(&v, bad[i][0]);
        EXPECT_PAGE(&v, 400, bad[i][1]);
        EXPECT_PAGE(&v, 400, "Nothing was done.");
    }
    /* No file was chosen: browsers send an empty one without a name. */
    visitor_post_file(&v, "/statement", token_of(&v), "", "", 0);
    EXPECT_PAGE(&v, 400, "Choose the file of the statement first");
    visitor_post(&v, "/statement", NULL, "token", token_of(&v));
    EXPECT_PAGE(&v, 400, "Choose the file of the statement first");
    visitor_get(&v, "/statement");
    EXPECT_PAGE(&v, 405, "Nothing was done");
    assert_non_null(large);
    memset(large, 'a', size);
    memcpy(large, "serial_no,cust_no\n", 18);
    visitor_post_file(&v, "/statement", token_of(&v), "bank.csv", large, size);
    EXPECT_PAGE(&v, 413, "A statement has at most 8 MiB here");
    /* A file where none is expected, and more than any file. */
    visitor_post_file(&v, "/decide", token_of(&v), "bank.csv", large, size);
    EXPECT_PAGE(&v, 413, "longer than any form");
    /* Forged, and from somebody who is not logged in. */
    visitor_post_file(&v, "/statement", "AAAAAAAAAAAAAAAAAAAAAA", "bank.csv", "a", 1);
    EXPECT_PAGE(&v, 403, "Nothing was done");
    visitor_open(&stranger, &desk);
    visitor_post_file(&stranger, "/statement", token_of(&v), "bank.csv", large, size);
    EXPECT_PAGE(&stranger, 403, "You are not logged in any more. Nothing was done");
    visitor_close(&stranger);
    visitor_get(&v, "/audit");
    EXPECT_NONE(&v, "An audit is running");
    expect_unchanged(before);
    free(large);
    visitor_close(&v);
}

/* Few bytes make many payments, each of which takes memory and time. */
TEST(test_a_statement_of_too_many_lines)
{
    static const char head[] = "serial_no,cust_no\n";
    const size_t lines = 100001, size = sizeof head - 1 + 4 * lines;
    char *text = malloc(size);
    struct visitor v;

    assert_non_null(text);
    memcpy(text, head, sizeof head - 1);
    for (size_t i = 0; i < lines; i++)
        memcpy(text + sizeof head - 1 + 4 * i, "A,B\n", 4);
    come_in(&v, operators.user[ANN]);
    visitor_post_file(&v, "/statement", token_of(&v), "bank.csv", text, size);
    EXPECT_PAGE(&v, 400, "bank.csv:100002: there are more than 100,000 payments");
    visitor_post_file(&v, "/statement", token_of(&v), "bank.csv", text, size - 4);
    EXPECT_PAGE(&v, 303, "");
    wait_for_end(&v);
    EXPECT_PAGE(&v, 200, "100,000 payments");
    visitor_get(&v, "/");
    EXPECT_PAGE(&v, 200, "<span class=\"alarm\">last statement <b>");
    EXPECT_PAGE(&v, 200, ", 100,003 differences</b></span>");
    EXPECT_PAGE(&v, 200, "<span class=\"alarm\">last audit <b>");
    EXPECT_NONE(&v, "no audit is on record");
    free(text);
    visitor_close(&v);
}

/* It waits for a table that an administrator has locked when somebody stops it. */
TEST(test_an_audit_that_is_stopped)
{
    struct visitor v;
    char token[64];

    come_in(&v, operators.user[ANN]);
    snprintf(token, sizeof token, "%s", token_of(&v));
    database_run(operators.h.sql, "LOCK TABLES tl_clock_step WRITE");
    visitor_post(&v, "/audit", NULL, "token", token);
    EXPECT_PAGE(&v, 303, "");
    visitor_get(&v, "/audit");
    EXPECT_PAGE(&v, 200, "Stop it");
    visitor_post(&v, "/audit", NULL, "token", token, "stop", "1");
    EXPECT_PAGE(&v, 303, "");
    database_run(operators.h.sql, "UNLOCK TABLES");
    wait_for_end(&v);
    EXPECT_PAGE(&v, 200, "it was stopped");
    audit(&v);
    EXPECT_NONE(&v, "it was stopped");
    visitor_close(&v);
}

/* Begins to send a file of somebody who is logged in, and never ends; a socket to be closed. */
static int begin_file(const struct visitor *visitor, const char *session)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char text[1024];
    int size;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)strtoul(strrchr(visitor->url, ':') + 1, NULL, 10));
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    size = snprintf(text, sizeof text,
                    "POST /statement HTTP/1.1\r\nHost: desk\r\nCookie: %s\r\n"
                    "Content-Type: multipart/form-data; boundary=file\r\n"
                    "Content-Length: 100000\r\n\r\n--file\r\n",
                    session);
    assert_int_equal(write(fd, text, (size_t)size), size);
    return fd;
}

/* Each file is kept in memory while it arrives. */
TEST(test_two_files_at_once)
{
    struct visitor v;
    char session[128];
    const char *at;
    int sockets[100];
    int count = 0;

    come_in(&v, operators.user[ANN]);
    at = strstr(v.headers, "tl_desk=");
    assert_non_null(at);
    snprintf(session, sizeof session, "%.*s", (int)strcspn(at, ";"), at);
    /* The desk reads headers when it likes: the visitor's own file may take a place before them. */
    while (count < 100 && v.status != 503) {
        sockets[count++] = begin_file(&v, session);
        usleep(20000);
        send_statement(&v, "no header\n");
    }
    EXPECT_PAGE(&v, 503, "Others are sending statements just now");
    while (count > 0)
        close(sockets[--count]);
    for (int i = 0; i < PATIENCE_MS / 20 && v.status != 400; i++) {
        send_statement(&v, "no header\n");
        usleep(20000);
    }
    EXPECT_PAGE(&v, 400, "names no columns");
    visitor_close(&v);
}

/* ------------------------------------------------------------------ closing -- */

static void change_by_hand(const char *serial)
{
    database_run(operators.h.sql,
                 "UPDATE trade_lock SET remark = CONCAT(COALESCE(remark, ''), '!') WHERE "
                 "serial_no = '%s' AND lane = 'S'",
                 serial);
}

/* The name of the first finding about this trade, and the path of its page. */
static void finding_of(const struct visitor *visitor, const char *serial, char finding[80],
                       char path[160])
{
    const char *at = strstr(visitor->body, serial);

    at = at != NULL ? strstr(at, "/finding?f=") : NULL;
    if (at == NULL) {
        fail_msg("no finding about %s: %s", serial, visitor->body);
        return;
    }
    snprintf(path, 160, "%.*s", (int)strcspn(at, "\""), at);
    snprintf(finding, 80, "%s", strchr(path, '=') + 1);
    assert_int_equal(strlen(finding), 64);
}

/* Sends the form of the page Finding. */
static void send_half(struct visitor *visitor, const char *act, const char *finding,
                      const char *reason)
{
    char token[64];

    snprintf(token, sizeof token, "%s", token_of(visitor));
    visitor_post(visitor, "/finding", NULL, "token", token, "f", finding, "act", act, "reason",
                 reason);
}

/* Forms that do nothing. */
static void refused_halves(struct visitor *ann, struct visitor *bob, const char *path,
                           const char *finding)
{
    char command[160];

    visitor_get(ann, path);
    EXPECT_PAGE(ann, 200, "Propose to close it");
    snprintf(command, sizeof command, "tradelock audit close propose %.16s --reason TEXT", finding);
    EXPECT_PAGE(ann, 200, command);
    visitor_post(ann, "/finding", NULL, "token", "AAAAAAAAAAAAAAAAAAAAAA", "f", finding, "act",
                 "propose", "reason", "forged");
    EXPECT_PAGE(ann, 403, "Nothing was done");
    send_half(ann, "burn", finding, "x");
    EXPECT_PAGE(ann, 400, "Nothing was done");
    send_half(ann, "propose", finding, "");
    EXPECT_PAGE(ann, 400, "Nothing was done");
    send_half(bob, "confirm", finding, "x");
    EXPECT_PAGE(bob, 404, "nobody has proposed");
    send_half(ann, "propose", "0123456789abcdef", "x");
    EXPECT_PAGE(ann, 404, "Nothing was done");
}

/* What waits for a second operator stands there, and Now leads to it. */
static void expect_in_inbox(struct visitor *visitor)
{
    visitor_get(visitor, "/inbox");
    EXPECT_PAGE(visitor, 200, "<td data-l=\"What\">audit</td>");
    EXPECT_PAGE(visitor, 200, "the ticket &lt;b&gt;4711&lt;/b&gt;");
    for (int i = 0;
         i < PATIENCE_MS / 100 && (i == 0 || strstr(visitor->body, "to be closed") == NULL); i++) {
        visitor_get(visitor, "/");
        usleep(100000);
    }
    EXPECT_PAGE(visitor, 200,
                "1 finding of an audit waits for a second operator, to be closed: "
                "<a href=\"/inbox\">Inbox</a>");
}

TEST(test_two_close_a_finding)
{
    struct visitor ann, bob, looking;
    char path[160], finding[80], digits[40], *before;

    operators_make_failed("HAND1");
    change_by_hand("HAND1");
    come_in(&ann, operators.user[ANN]);
    come_in(&bob, operators.user[BOB]);
    come_in(&looking, reader);
    audit(&ann);
    EXPECT_PAGE(&ann, 200, "1 violation.");
    EXPECT_PAGE(&ann, 200, "; on record");
    ENDS(RUN("status", "--config", operators.config[BOB]), ANY_CODE, "Audit ", operators.user[ANN],
         "1 violations");
    finding_of(&ann, "HAND1", finding, path);
    /* By the digits that the command takes. */
    snprintf(digits, sizeof digits, "<code>%.16s</code>", finding);
    EXPECT_PAGE(&ann, 200, digits);
    visitor_get(&ann, path);
    EXPECT_PAGE(&ann, 200, digits);
    before = all_rows();
    visitor_get(&looking, path);
    EXPECT_PAGE(&looking, 200, "Your account may look, and not decide");
    EXPECT_NONE(&looking, "action=\"/finding\"");
    send_half(&looking, "propose", finding, "x");
    EXPECT_PAGE(&looking, 403, "Your account may look, and not decide");
    refused_halves(&ann, &bob, path, finding);
    expect_unchanged(before);
    send_half(&ann, "propose", finding, "the ticket <b>4711</b>");
    EXPECT_PAGE(&ann, 303, "");
    visitor_get(&ann, "/audit");
    EXPECT_PAGE(&ann, 200, "Proposed: another operator has to confirm it");
    EXPECT_PAGE(&ann, 200, "proposes to close it: the ticket &lt;b&gt;4711&lt;/b&gt;");
    visitor_get(&ann, path);
    EXPECT_PAGE(&ann, 200, "You proposed to close it");
    EXPECT_NONE(&ann, "action=\"/finding\"");
    expect_in_inbox(&bob);
    before = all_rows();
    send_half(&ann, "confirm", finding, "me too");
    EXPECT_PAGE(&ann, 409, "cannot confirm it");
    send_half(&bob, "propose", finding, "me too");
    EXPECT_PAGE(&bob, 409, "has proposed that already");
    expect_unchanged(before);
    visitor_get(&bob, path);
    EXPECT_PAGE(&bob, 200, "Confirm to close it");
    EXPECT_PAGE(&bob, 200, "because: the ticket &lt;b&gt;4711&lt;/b&gt;.");
    send_half(&bob, "confirm", finding, "read the ticket");
    EXPECT_PAGE(&bob, 303, "");
    visitor_get(&bob, path);
    EXPECT_PAGE(&bob, 404, "two operators have closed it");
    audit(&bob);
    EXPECT_PAGE(&bob, 200, "The books are in order.");
    EXPECT_PAGE(&bob, 200, "; 1 closed by two operators");
    operators_audit(0, "1 closed by two operators");
    visitor_close(&ann);
    visitor_close(&bob);
    visitor_close(&looking);
}

/* What the last run does not find any more cannot be closed, nor what the command has closed. */
TEST(test_a_stale_finding)
{
    struct visitor ann, bob;
    char path[160], finding[80], *before;

    operators_make_failed("STALE1");
    come_in(&ann, operators.user[ANN]);
    come_in(&bob, operators.user[BOB]);
    send_statement(&ann, "serial_no,cust_no\nSTALE1,C1\n");
    wait_for_end(&ann);
    finding_of(&ann, "STALE1", finding, path);
    visitor_get(&ann, path);
    EXPECT_PAGE(&ann, 200, "--reason TEXT --statement FILE.csv");
    send_statement(&bob, "serial_no,cust_no\n");
    wait_for_end(&bob);
    before = all_rows();
    send_half(&ann, "propose", finding, "as it was");
    EXPECT_PAGE(&ann, 404, "The last audit did not find it");
    expect_unchanged(before);
    change_by_hand("STALE1");
    audit(&ann);
    finding_of(&ann, "STALE1", finding, path);
    for (int who = ANN; who <= BOB; who++) {
        ENDS(RUN("audit", "close", who == ANN ? "propose" : "confirm", finding, "--reason", "seen",
                 "--config", operators.config[who]),
             0);
    }
    send_half(&bob, "propose", finding, "again");
    EXPECT_PAGE(&bob, 409, "has closed it, after");
    visitor_get(&bob, path);
    EXPECT_PAGE(&bob, 404, "two operators have closed it");
    visitor_close(&ann);
    visitor_close(&bob);
}

/* By the rules of a section of the settings, without a customer, in Latin-1. */
TEST(test_a_statement_as_a_bank_writes_it)
{
    static const char section[] = "\n[statement-%s]\nencoding = latin1\ndelimiter = ;\n"
                                  "decimal = ,\nmap = key=Zweck,amount=Betrag,sign=Art\n"
                                  "ignore = Empf\303\244nger\ncurrency = EUR\npaid = S\n"
                                  "received = H\n%s";
    FILE *settings = fopen(operators.config[ANN], "ae");
    struct visitor v;
    char *key, *text, *before;

    assert_non_null(settings);
    fprintf(settings, section, "sparkasse", "");
    fprintf(settings, section, "other", "channel = other\n");
    fclose(settings);
    house_expect(&operators.h, "BANK1", "C1", 100, TL_SUCCEEDED);
    key = database_text(operators.h.sql, "SELECT channel_key FROM trade_lock WHERE serial_no = "
                                         "'BANK1' AND lane = 'S'");
    assert_true(asprintf(&text, "Zweck;Betrag;Art;Empf\344nger\n%s;1,00;S;M\374ller\nx;5,00;H;x\n",
                         key) > 0);
    before = all_rows();
    come_in(&v, reader);
    visitor_get(&v, "/audit");
    EXPECT_PAGE(&v, 200, "<option>sparkasse</option>");
    visitor_post_file_as(&v, "/statement", token_of(&v), "bank.csv", text, strlen(text),
                         "sparkasse", "");
    EXPECT_PAGE(&v, 400, "bank.csv:3: money was received: nothing is done until");
    visitor_post_file_as(&v, "/statement", token_of(&v), "bank.csv", text, strlen(text),
                         "volksbank", "");
    EXPECT_PAGE(&v, 400, "has no section [statement-volksbank]");
    visitor_post_file_as(&v, "/statement", token_of(&v), "bank.csv", text, strlen(text),
                         "sparkasse", "received");
    EXPECT_PAGE(&v, 303, "");
    wait_for_end(&v);
    EXPECT_NONE(&v, "BANK1</a>");
    EXPECT_PAGE(&v, 200, "Payments of the file: 1: <span class=\"money\">1.00\u00a0EUR");
    EXPECT_PAGE(&v, 200, "Trades that they are of: 1: <span class=\"money\">1.00\u00a0EUR");
    EXPECT_PAGE(&v, 200, "Lines that were left out: 1 received");
    visitor_post_file_as(&v, "/statement", token_of(&v), "bank.csv", text, strlen(text), "other",
                         "received");
    EXPECT_PAGE(&v, 303, "");
    wait_for_end(&v);
    EXPECT_PAGE(&v, 200, "there is no such trade");
    expect_unchanged(before);
    free(key);
    free(text);
    visitor_close(&v);
}

/* ------------------------------------------------------------------- filing -- */

#define PAID "serial_no,cust_no,op_code,channel_ref,amount_minor,currency\n"

static void compare(struct visitor *visitor, const char *text)
{
    send_statement(visitor, text);
    EXPECT_PAGE(visitor, 303, "");
    wait_for_end(visitor);
}

static void file_it(struct visitor *visitor, const char *seen, const char *source,
                    const char *reason)
{
    visitor_post(visitor, "/file", NULL, "token", token_of(visitor), "seen", seen, "count", "2",
                 "source", source, "reason", reason);
}

/* What does nothing, and a statement that is another one by now. */
static void refused_filings(struct visitor *ann, struct visitor *looking, const char *seen)
{
    visitor_get(looking, "/audit");
    EXPECT_NONE(looking, "href=\"/file\"");
    visitor_get(looking, "/file");
    EXPECT_PAGE(looking, 200, "Your account may look, and not decide");
    EXPECT_NONE(looking, "name=\"seen\"");
    file_it(looking, seen, "bank", "daily");
    EXPECT_PAGE(looking, 403, "Nothing was done");
    visitor_post(ann, "/file", NULL, "token", "AAAAAAAAAAAAAAAAAAAAAA", "seen", seen, "source",
                 "bank", "reason", "forged");
    EXPECT_PAGE(ann, 403, "Nothing was done");
    file_it(ann, "0", "bank", "daily");
    EXPECT_PAGE(ann, 409, "The page showed 2 payments, and the statement or its trades are others");
    EXPECT_PAGE(ann, 409, "value=\"daily\"");
    file_it(ann, seen, "", "daily");
    EXPECT_PAGE(ann, 400, "Nobody is named who says so");
    file_it(ann, seen, "bank", "");
    EXPECT_PAGE(ann, 400, "Nothing was done");
    compare(looking, PAID "FILE1,C1," WITHDRAW_OP ",f1,100,EUR\n");
    file_it(ann, seen, "bank", "daily");
    EXPECT_PAGE(ann, 409, "the statement or its trades are others since");
    EXPECT_PAGE(ann, 409, "File 1 payment</button>");
}

/* The file's count and sums beside those of the trades, and what becomes of its payments. */
static void expect_preview(const struct visitor *visitor)
{
    EXPECT_PAGE(visitor, 200, "Payments of the file: 3: <span class=\"money\">2.00\u00a0EUR");
    EXPECT_PAGE(visitor, 200, "Trades that they are of: 2: <span class=\"money\">2.00\u00a0EUR");
    EXPECT_PAGE(visitor, 200,
                "Trades that are taken for paid: 1: <span class=\"money\">1.00\u00a0EUR");
    EXPECT_PAGE(visitor, 200, "Of them 1 contradict the row");
    EXPECT_PAGE(visitor, 200,
                "0 known already (0 as contradicting),\n1 without a trade, 1 told twice");
    EXPECT_PAGE(visitor, 200, ">FILE1</a>");
    EXPECT_PAGE(visitor, 200, "contradicts the trade: a conflict");
    EXPECT_PAGE(visitor, 200, "File 2 payments</button>");
}

/* What is new in it becomes evidence once, and another amount a conflict. */
TEST(test_a_statement_is_filed)
{
    static const char text[] = PAID "FILE1,C1," WITHDRAW_OP ",f1,100,EUR\n"
                                    "FILE2,C1," WITHDRAW_OP ",f2,99,EUR\n"
                                    "FILE2,C1," WITHDRAW_OP ",f2,99,EUR\n"
                                    "FILE3,C1," WITHDRAW_OP ",f3,1,EUR\n";
    struct visitor ann, looking;
    char seen[32], *before;

    operators_make_doubtful("FILE1");
    operators_make_doubtful("FILE2");
    come_in(&ann, operators.user[ANN]);
    come_in(&looking, reader);
    compare(&ann, "serial_no,cust_no\nFILE1,C1\n");
    EXPECT_PAGE(&ann, 200,
                "Its payments cannot be filed: bank.csv:1: the first line names no "
                "columns amount_minor");
    visitor_get(&ann, "/file");
    EXPECT_PAGE(&ann, 409, "Its payments cannot be filed: bank.csv:1: ");
    compare(&ann, text);
    EXPECT_PAGE(&ann, 200, "href=\"/file\">File its payments…</a>");
    visitor_get(&ann, "/file");
    expect_preview(&ann);
    snprintf(seen, sizeof seen, "%s", visitor_field(&ann, "seen"));
    /* A trade that moved on. */
    database_run(operators.h.sql, "UPDATE trade_lock SET fence = fence + 1, rev = rev + 1, step = "
                                  "'test' WHERE serial_no = 'FILE1' AND lane = 'S'");
    file_it(&ann, seen, "bank", "daily");
    EXPECT_PAGE(&ann, 409, "the statement or its trades are others since");
    snprintf(seen, sizeof seen, "%s", visitor_field(&ann, "seen"));
    before = all_rows();
    refused_filings(&ann, &looking, seen);
    expect_unchanged(before);
    compare(&looking, text);
    file_it(&ann, seen, "bank", "daily");
    EXPECT_PAGE(&ann, 303, "");
    visitor_get(&ann, "/file");
    EXPECT_PAGE(&ann, 200, "2 of 2 filed, on record as act ");
    EXPECT_PAGE(&ann, 200, "1 contradicts the row: two operators have to decide.");
    EXPECT_PAGE(&ann, 200, "2 known already (1 as contradicting)");
    EXPECT_PAGE(&ann, 200, "Nothing of it is new.");
    EXPECT_NONE(&ann, "name=\"seen\"");
    before = all_rows();
    file_it(&ann, seen, "bank", "daily");
    EXPECT_PAGE(&ann, 409, "2 known already (1 as contradicting)");
    expect_unchanged(before);
    assert_int_equal(operators_conflict("FILE1"), 0);
    assert_int_equal(operators_conflict("FILE2"), 1);
    assert_int_equal(
        database_number(operators.h.sql,
                        "SELECT COUNT(*) FROM tl_act JOIN tl_act_row USING (act_no) WHERE what = "
                        "'evidence add' AND said = 'desk: --statement bank.csv --source bank' AND "
                        "reason = 'daily' AND planned = 2 AND ended_at IS NOT NULL"),
        2);
    visitor_close(&ann);
    visitor_close(&looking);
}

/* More than are filed at once: the same again does the rest. */
TEST(test_a_long_statement_is_filed)
{
    struct visitor ann;
    char seen[32], *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    assert_non_null(to);
    fputs(PAID, to);
    for (int i = 1; i <= 302; i++)
        fprintf(to, "LONG%d,C1," WITHDRAW_OP ",l%d,100,EUR\n", i, i);
    fclose(to);
    database_run(operators.h.sql,
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                 "thread_no, token, fence, rev, epoch, sends, proof, amount_minor, currency, "
                 "channel_key, created_at, updated_at) SELECT 'C1', CONCAT('LONG', seq), "
                 "'" WITHDRAW_OP "', 'S', 'F', 'test', UUID(), 'x', 1, 1, 1, 1, 'D', 100, 'EUR', "
                 "CONCAT('key', seq), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) FROM seq_1_to_302");
    come_in(&ann, operators.user[ANN]);
    compare(&ann, text);
    visitor_get(&ann, "/file");
    EXPECT_PAGE(&ann, 200, "302 payments would be filed</h2>");
    EXPECT_PAGE(&ann, 200, "At once the first 300 are filed; the same again does the rest.");
    EXPECT_PAGE(&ann, 200, "and 252 more</p>");
    EXPECT_PAGE(&ann, 200, "File 300 payments</button>");
    snprintf(seen, sizeof seen, "%s", visitor_field(&ann, "seen"));
    file_it(&ann, seen, "bank", "monthly");
    EXPECT_PAGE(&ann, 303, "");
    visitor_get(&ann, "/file");
    EXPECT_PAGE(&ann, 200, "300 of 300 filed, on record as act ");
    EXPECT_PAGE(&ann, 200, "300 known already (300 as contradicting)");
    EXPECT_PAGE(&ann, 200, "File 2 payments</button>");
    snprintf(seen, sizeof seen, "%s", visitor_field(&ann, "seen"));
    file_it(&ann, seen, "bank", "monthly");
    EXPECT_PAGE(&ann, 303, "");
    assert_int_equal(database_number(operators.h.sql, "SELECT SUM(conflict) FROM trade_lock WHERE "
                                                      "serial_no LIKE 'LONG%%' AND lane = 'S'"),
                     302);
    database_run(operators.h.sql, "DELETE FROM trade_lock WHERE serial_no LIKE 'LONG%%'");
    visitor_close(&ann);
    free(text);
}

TESTS_OF(audit, set_up, tear_down)

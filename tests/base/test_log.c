/* What arrives at the caller's log function. */
#include "check.h"

#include "base/error.h"
#include "base/log.h"
#include "support/theme.h"

#define TRACE_ID "0af7651916cd43dd8448eb211c80319c"
#define HASH_C1001 "2f3dc65c3c71d780" /* its HMAC by "key", as openssl dgst -sha256 -hmac key */

static struct {
    int count;
    tl_level level;
    char message[2000], thread_uuid[TL_UUID_TEXT], log_uuid[TL_UUID_TEXT];
    char serial_no[100], cust_no[100], op_code[100];
    char trace_id[40], currency[8], batch[100];
    int64_t amount_minor;
    uint64_t fence;
} last;

static void keep(void *context, const tl_log_line *line)
{
    ++*(int *)context;
    last.level = line->level;
    last.fence = line->fence;
    strcpy(last.message, line->message);
    strcpy(last.thread_uuid, line->thread_uuid);
    strcpy(last.log_uuid, line->log_uuid);
    strcpy(last.serial_no, line->serial_no);
    strcpy(last.cust_no, line->cust_no);
    strcpy(last.op_code, line->op_code);
    strcpy(last.trace_id, line->trace_id);
    strcpy(last.currency, line->currency);
    strcpy(last.batch, line->batch);
    last.amount_minor = line->amount_minor;
}

static const tl_key key = {"W1", "C1001", "WITHDRAW"};

TEST(test_plain)
{
    struct logger logger = {keep, &last.count, NULL, TL_DEBUG};

    error_set(TL_BUSY, "the sentence");
    last.count = 0;
    log_line(&logger, TL_WARNING, &key, 42, "beat %d of %s", 3, "C1001");
    assert_int_equal(last.count, 1);
    assert_int_equal(last.level, TL_WARNING);
    assert_string_equal(last.message, "beat 3 of C1001");
    assert_string_equal(last.thread_uuid, tl_thread_uuid());
    assert_string_equal(last.log_uuid, "");
    assert_string_equal(last.serial_no, "W1");
    assert_string_equal(last.cust_no, "C1001");
    assert_string_equal(last.op_code, "WITHDRAW");
    assert_int_equal(last.fence, 42);
    assert_string_equal(tl_error_message(), "the sentence");

    assert_int_equal(tl_work_begin(), 1);
    log_line(&logger, TL_ALARM, NULL, 0, "no key");
    assert_string_equal(last.log_uuid, tl_log_uuid());
    assert_string_equal(last.serial_no, "");
    assert_string_equal(last.cust_no, "");
    assert_string_equal(last.op_code, "");
    tl_work_end(0);
    assert_int_equal(last.count, 2);
}

TEST(test_nobody_listens)
{
    struct logger silent = {NULL, NULL, "key", TL_DEBUG};

    last.count = 0;
    log_line(NULL, TL_ALARM, &key, 1, "nobody");
    log_line(&silent, TL_ALARM, &key, 1, "nobody");
    assert_int_equal(last.count, 0);
}

/* Of what nobody reads not even the arguments are looked at. */
TEST(test_below_the_level)
{
    struct logger logger = {keep, &last.count, "key", TL_WARNING};

    last.count = 0;
    log_line(&logger, TL_DEBUG, &key, 1, "%s", (const char *)1);
    log_line(&logger, TL_INFO, &key, 1, "%s", (const char *)1);
    assert_int_equal(last.count, 0);
    assert_int_equal(log_wanted(&logger, TL_INFO), 0);
    log_line(&logger, TL_WARNING, &key, 1, "a warning");
    log_line(&logger, TL_ALARM, &key, 1, "an alarm");
    assert_int_equal(last.count, 2);
}

TEST(test_half_a_key)
{
    struct logger logger = {keep, &last.count, "key", TL_DEBUG};
    tl_key half = {"W1", NULL, NULL};

    log_line(&logger, TL_INFO, &half, 0, "half");
    assert_string_equal(last.serial_no, "W1");
    assert_string_equal(last.cust_no, "");
    assert_string_equal(last.op_code, "");
    assert_string_equal(last.message, "half");
}

TEST(test_hashed)
{
    struct logger logger = {keep, &last.count, "key", TL_DEBUG};
    char hash[LOG_CUST_HASH];

    log_hash_cust(hash, "key", "C1001");
    assert_string_equal(hash, HASH_C1001);
    log_line(&logger, TL_INFO, &key, 0, "granted");
    assert_string_equal(last.cust_no, HASH_C1001);
    assert_string_equal(last.message, "granted");
    assert_string_equal(last.serial_no, "W1");
}

/* The message of a server's error quotes the key. */
TEST(test_hidden_in_the_message)
{
    static const struct {
        const char *cust_no, *message, *wanted_format;
    } cases[] = {
        {"C1001", "Duplicate entry 'C1001-W1-WITHDRAW' for key",
         "Duplicate entry "
         "'%s-W1-WITHDRAW' for key"},
        {"C1001", "C1001", "%s"},
        {"C1001", "C1001 and C1001.", "%1$s and %1$s."},
        {"C1001", "C10012 AC1001 C1001x", "C10012 AC1001 C1001x"},
        {"7", "row 7 of 77, 17, 70", "row %s of 77, 17, 70"},
        {"#", "a#b", "a%sb"},
        {"C1001", "", ""},
    };
    struct logger logger = {keep, &last.count, "key", TL_DEBUG};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tl_key about = {"W1", cases[i].cust_no, "WITHDRAW"};
        char hash[LOG_CUST_HASH], wanted[200] = "", *to = wanted;

        log_hash_cust(hash, "key", cases[i].cust_no);
        for (const char *from = cases[i].wanted_format; *from != '\0';) {
            size_t skip = strncmp(from, "%1$s", 4) == 0 ? 4 : strncmp(from, "%s", 2) == 0 ? 2 : 0;
            if (skip > 0)
                to = stpcpy(to, hash);
            else
                *to++ = *from;
            from += skip > 0 ? skip : 1;
            *to = '\0';
        }
        log_line(&logger, TL_INFO, &about, 0, "%s", cases[i].message);
        assert_string_equal(last.message, wanted);
    }
}

TEST(test_long_message)
{
    struct logger logger = {keep, &last.count, "key", TL_DEBUG};
    char text[1900];

    for (size_t i = 0; i + 6 < sizeof(text); i += 6)
        memcpy(text + i, "C1001 ", 7);
    log_line(&logger, TL_INFO, &key, 0, "%s", text);
    assert_in_range(strlen(last.message), 500, 1900);
    assert_null(strstr(last.message, "C1001"));
}

static void expect_said(int64_t amount_minor, const char *currency, const char *batch,
                        const char *trace_id)
{
    assert_int_equal(last.amount_minor, amount_minor);
    assert_string_equal(last.currency, currency);
    assert_string_equal(last.batch, batch);
    assert_string_equal(last.trace_id, trace_id);
}

/* A line about a key has what the trade says of itself, or what the thread's work does. */
TEST(test_said)
{
    struct logger logger = {keep, &last.count, "key", TL_DEBUG};
    const tl_said of_thread = {.amount_minor = 7,
                               .currency = "JPY",
                               .batch = "friday",
                               .traceparent = "00-" TRACE_ID "-b7ad6b7169203331-01"};
    const tl_said of_trade = {.amount_minor = INT64_MAX, .currency = "EUR", .batch = "monday"};

    tl_log_context_set(&of_thread);
    log_line(&logger, TL_INFO, &key, 0, "the work's");
    expect_said(7, "JPY", "friday", TRACE_ID);
    log_said(&logger, TL_INFO, &key, 0, &of_trade, "the trade's");
    expect_said(INT64_MAX, "EUR", "monday", "");
    log_said(&logger, TL_INFO, &key, 0, &(tl_said){.amount_minor = 9}, "%s", "it says nothing");
    expect_said(0, "", "", "");
    log_line(&logger, TL_INFO, NULL, 0, "of no trade");
    expect_said(0, "", "", "");
    tl_log_trace_set(NULL);
    log_line(&logger, TL_INFO, &key, 0, "the rest stays");
    expect_said(7, "JPY", "friday", "");
    tl_log_context_set(NULL);
    log_line(&logger, TL_INFO, &key, 0, "nothing");
    expect_said(0, "", "", "");
    tl_log_context_set(&of_thread);
    tl_work_end(0);
    log_line(&logger, TL_INFO, &key, 0, "over");
    expect_said(0, "", "", "");
}

/* SQL typed by hand may have put anything on a row: a line stays a line, and UTF-8. */
TEST(test_hostile_batch)
{
    static const struct {
        const char *batch, *wanted;
    } cases[] = {
        {"a \"b\" 'c' ]} \\ %s %n", "a \"b\" 'c' ]} \\ %s %n"},
        {"one\ntwo\r\tthree\033[31m\177", "one?two??three?[31m?"},
        {"next\xc2\x85line", "next??line"},
        {"L\xc3\xb6hne \xe2\x82\xac", "L\xc3\xb6hne \xe2\x82\xac"},
        {"\xff\xc3", "??"},
    };
    struct logger logger = {keep, &last.count, "key", TL_DEBUG};
    tl_said said = {.amount_minor = 5};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        strcpy(said.batch, cases[i].batch);
        log_said(&logger, TL_INFO, &key, 0, &said, "one");
        expect_said(0, "", cases[i].wanted, "");
    }
    memset(said.batch, 'x', sizeof said.batch); /* without an end */
    memcpy(said.currency, "E\nR!", 4);
    tl_log_context_set(&said);
    log_line(&logger, TL_INFO, &key, 0, "one");
    assert_int_equal(strlen(last.batch), TL_BATCH_MAX);
    assert_string_equal(last.currency, "E?R");
    tl_log_context_set(NULL);
}

/* What a stranger gave begins no line of its own, and steers no terminal. */
TEST(test_hostile_message)
{
    struct logger logger = {keep, &last.count, NULL, TL_DEBUG};

    log_line(&logger, TL_ALARM, &key, 1, "%s says: \303\274", "web\033[2J\nhook\377");
    assert_string_equal(last.message, "web?[2J?hook? says: \303\274");
}

TESTS_OF(log, NULL, NULL)

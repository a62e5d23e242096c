/* What callbacks write is bounded, and made storable whatever a channel says. */
#include "attempt.h"

#include "support/theme.h"

TEST(takes_what_fits)
{
    tl_reply *reply = calloc(1, sizeof *reply);
    char text[TL_REF_MAX + 2];

    memset(text, 'x', sizeof text);
    text[TL_REF_MAX] = '\0';
    assert_int_equal(tl_reply_ref(reply, text), TL_OK);
    assert_string_equal(reply->channel_ref, text);
    text[TL_REF_MAX] = 'x';
    text[TL_REF_MAX + 1] = '\0';
    assert_int_equal(tl_reply_ref(reply, text), TL_INVALID);
    assert_int_equal(strlen(reply->channel_ref), TL_REF_MAX);
    assert_int_equal(tl_reply_ref(reply, NULL), TL_INVALID);
    free(reply);
}

/* What would not be stored as it is, is refused, and the reference before it stays. */
TEST(refuses_references_that_are_no_text)
{
    static const char *const bad[] = {"R\xff", "R\xe9\x74\xe9", "R\xc3", "R\n1", "R\x7f"};
    tl_reply *reply = calloc(1, sizeof *reply);

    assert_int_equal(tl_reply_ref(reply, "R\xc3\xa9-1"), TL_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(tl_reply_ref(reply, bad[i]), TL_INVALID);
        assert_non_null(strstr(tl_error_message(), "byte 2 of a channel reference"));
        assert_string_equal(reply->channel_ref, "R\xc3\xa9-1");
    }
    free(reply);
}

TEST(takes_times_up_to_the_limit)
{
    static const struct {
        int64_t told_ms, kept_ms;
    } cases[] = {{0, 0},
                 {1, 1},
                 {TL_RETRY_AFTER_MAX_MS, TL_RETRY_AFTER_MAX_MS},
                 {TL_RETRY_AFTER_MAX_MS + 1, TL_RETRY_AFTER_MAX_MS},
                 {INT64_MAX, TL_RETRY_AFTER_MAX_MS}};
    tl_reply *reply = calloc(1, sizeof *reply);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(tl_reply_retry_after(reply, cases[i].told_ms), TL_OK);
        assert_int_equal(reply->retry_after_ms, cases[i].kept_ms);
        assert_int_equal(tl_reply_retry_after(reply, -1), TL_INVALID);
        assert_int_equal(reply->retry_after_ms, cases[i].kept_ms);
    }
    assert_int_equal(tl_reply_retry_after(NULL, 1), TL_INVALID);
    /* A callback that writes the field itself. */
    reply->retry_after_ms = INT64_MIN;
    reply_clean(reply);
    assert_int_equal(reply->retry_after_ms, 0);
    reply->retry_after_ms = INT64_MAX;
    reply_clean(reply);
    assert_int_equal(reply->retry_after_ms, TL_RETRY_AFTER_MAX_MS);
    free(reply);
}

TEST(takes_results_up_to_the_limit)
{
    tl_reply *reply = calloc(1, sizeof *reply);
    unsigned char *bytes = calloc(1, TL_RESULT_MAX + 1);

    bytes[TL_RESULT_MAX - 1] = 7;
    assert_int_equal(tl_reply_result(reply, bytes, TL_RESULT_MAX), TL_OK);
    assert_int_equal(reply->result_size, TL_RESULT_MAX);
    assert_int_equal(reply->result[TL_RESULT_MAX - 1], 7);
    assert_int_equal(tl_reply_result(reply, bytes, TL_RESULT_MAX + 1), TL_INVALID);
    assert_int_equal(reply->result_size, TL_RESULT_MAX);
    assert_int_equal(tl_reply_result(reply, NULL, 1), TL_INVALID);
    assert_int_equal(tl_reply_result(reply, NULL, 0), TL_OK);
    assert_int_equal(reply->result_size, 0);
    free(bytes);
    free(reply);
}

TEST(cuts_remarks_between_characters)
{
    tl_reply *reply = calloc(1, sizeof *reply);
    char text[400];

    tl_reply_remark(reply, "code %d", 51);
    assert_string_equal(reply->remark, "code 51");
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    memcpy(text + TL_REMARK_MAX - 1, "\xc3\xa9", 2); /* would be cut in two */
    tl_reply_remark(reply, "%s", text);
    assert_int_equal(strlen(reply->remark), TL_REMARK_MAX - 1);
    memcpy(text + TL_REMARK_MAX - 2, "a\xe2\x82\xac", 4);
    tl_reply_remark(reply, "%s", text);
    assert_int_equal(strlen(reply->remark), TL_REMARK_MAX - 1);
    free(reply);
}

static const char *cleaned(tl_reply *reply, const char *text)
{
    memcpy(reply->remark, text, strlen(text) + 1);
    reply_clean(reply);
    return reply->remark;
}

TEST(cleans_odd_bytes)
{
    tl_reply *reply = calloc(1, sizeof *reply);

    assert_string_equal(cleaned(reply, "plain"), "plain");
    assert_string_equal(cleaned(reply, "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x92\xb6"),
                        "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x92\xb6");
    assert_string_equal(cleaned(reply, "a\nb\tc\x7f"), "a?b?c?");
    assert_string_equal(cleaned(reply, "caf\xe9!"), "caf?!");        /* Latin-1 */
    assert_string_equal(cleaned(reply, "\xc0\xaf"), "??");           /* over-long */
    assert_string_equal(cleaned(reply, "\xe0\x80\xaf"), "???");      /* over-long */
    assert_string_equal(cleaned(reply, "\xed\xa0\x80"), "???");      /* surrogate */
    assert_string_equal(cleaned(reply, "\xf4\x90\x80\x80"), "????"); /* too high */
    assert_string_equal(cleaned(reply, "x\xe2\x82"), "x??");         /* cut off */
    free(reply);
}

TEST(bounds_what_was_written_past_the_functions)
{
    tl_reply *reply = calloc(1, sizeof *reply);

    memset(reply->channel_ref, 'r', sizeof reply->channel_ref);
    memset(reply->remark, 'm', sizeof reply->remark);
    reply->result_size = SIZE_MAX;
    reply_clean(reply);
    assert_string_equal(reply->channel_ref, ""); /* never another payment's */
    assert_int_equal(strlen(reply->remark), TL_REMARK_MAX);
    assert_int_equal(reply->result_size, TL_RESULT_MAX);
    memcpy(reply->channel_ref, "R\n1", 4);
    reply_clean(reply);
    assert_string_equal(reply->channel_ref, "");
    free(reply);
}

TESTS_OF(reply, NULL, NULL)

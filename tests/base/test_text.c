/* Keys of every bad kind, copying, hexadecimal, growing text, near names. */
#include "check.h"

#include "base/text.h"
#include "support/theme.h"

#define ONLY "; only printable ASCII without blanks is allowed"

static char long_text[200]; /* 199 times x */

static tl_status try_key(const char *serial_no, const char *cust_no, const char *op_code)
{
    tl_key key = {serial_no, cust_no, op_code};

    return key_check(&key);
}

static const char *of_size(size_t size)
{
    return long_text + sizeof(long_text) - 1 - size;
}

TEST(test_good_keys)
{
    assert_int_equal(try_key("W20240001", "C1001", "WITHDRAW"), TL_OK);
    assert_int_equal(try_key("1", "2", "3"), TL_OK);
    assert_int_equal(try_key("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "a", "A"), TL_OK);
    assert_int_equal(try_key(of_size(TL_SERIAL_MAX), of_size(TL_CUST_MAX), of_size(TL_OP_MAX - 6)),
                     TL_OK);
    assert_int_equal(try_key("1", "2", "RETRY"), TL_OK);
    assert_int_equal(try_key("1", "2", "X_RETRY_X"), TL_OK);
    assert_int_equal(try_key("1_RETRY", "2_RETRY", "_retry"), TL_OK);
}

TEST(test_parts_missing)
{
    assert_problem(key_check(NULL), TL_INVALID, "key: is missing");
    assert_problem(try_key(NULL, "c", "o"), TL_INVALID, "serial_no: is missing");
    assert_problem(try_key("s", NULL, "o"), TL_INVALID, "cust_no: is missing");
    assert_problem(try_key("s", "c", NULL), TL_INVALID, "op_code: is missing");
    assert_problem(try_key("", "c", "o"), TL_INVALID, "serial_no: is empty");
    assert_problem(try_key("s", "", "o"), TL_INVALID, "cust_no: is empty");
    assert_problem(try_key("s", "c", ""), TL_INVALID, "op_code: is empty");
}

TEST(test_too_long)
{
    assert_problem(try_key(of_size(TL_SERIAL_MAX + 1), "c", "o"), TL_INVALID,
                   "serial_no: is longer than 64 bytes");
    assert_problem(try_key("s", of_size(TL_CUST_MAX + 1), "o"), TL_INVALID,
                   "cust_no: is longer than 32 bytes");
    assert_problem(try_key("s", "c", of_size(TL_OP_MAX + 1)), TL_INVALID,
                   "op_code: is longer than 32 bytes");
    assert_problem(try_key("s", "c", of_size(TL_OP_MAX - 5)), TL_INVALID,
                   "op_code: is longer than 26 bytes, so that \"_RETRY\" does not fit "
                   "behind it");
}

TEST(test_bad_bytes)
{
    assert_problem(try_key("s", "C1 1", "o"), TL_INVALID, "cust_no: byte 3 is a blank (0x20)" ONLY);
    assert_problem(try_key(" s", "c", "o"), TL_INVALID, "serial_no: byte 1 is a blank (0x20)" ONLY);
    assert_problem(try_key("s", "a ", "o"), TL_INVALID, "cust_no: byte 2 is a blank (0x20)" ONLY);
    assert_problem(try_key("s\n", "c", "o"), TL_INVALID,
                   "serial_no: byte 2 is a control character (0x0a)" ONLY);
    assert_problem(try_key("s", "\t", "o"), TL_INVALID,
                   "cust_no: byte 1 is a control character (0x09)" ONLY);
    assert_problem(try_key("s", "c", "o\x7f"), TL_INVALID,
                   "op_code: byte 2 is a control character (0x7f)" ONLY);
    assert_problem(try_key("s", "c", "\xc3\xa4"), TL_INVALID,
                   "op_code: byte 1 is not ASCII (0xc3)" ONLY);
    assert_problem(try_key("s", "c\xff", "o"), TL_INVALID,
                   "cust_no: byte 2 is not ASCII (0xff)" ONLY);
    /* Every byte that is not printable is refused, every other one taken. */
    for (int byte = 1; byte < 256; byte++) {
        char text[2] = {(char)byte, '\0'};

        assert_int_equal(try_key(text, "c", "o"), byte > ' ' && byte < 0x7f ? TL_OK : TL_INVALID);
    }
}

TEST(test_retry_suffix)
{
    const char *sentence = "op_code: ends in \"_RETRY\", which is the name of a retry lane; "
                           "give the business operation";

    assert_problem(try_key("s", "c", "WITHDRAW_RETRY"), TL_INVALID, sentence);
    assert_problem(try_key("s", "c", "_RETRY"), TL_INVALID, sentence);
}

TEST(test_copy)
{
    char to[8];

    assert_int_equal(text_copy(to, sizeof(to), "1234567"), 1);
    assert_string_equal(to, "1234567");
    assert_int_equal(text_copy(to, sizeof(to), "12345678"), 0);
    assert_string_equal(to, "1234567");
    assert_int_equal(text_copy(to, sizeof(to), NULL), 1);
    assert_string_equal(to, "");
    assert_int_equal(text_copy(to, 0, "x"), 0);
    assert_int_equal(text_copy(to, 1, "x"), 0);
    assert_string_equal(to, "");
    /* A character is kept whole or left out. */
    assert_int_equal(text_copy(to, sizeof(to), "12345\xc3\xa4"), 1);
    assert_string_equal(to, "12345\xc3\xa4");
    assert_int_equal(text_copy(to, sizeof(to), "123456\xc3\xa4"), 0);
    assert_string_equal(to, "123456");
    assert_int_equal(text_copy(to, sizeof(to), "12345\xe2\x82\xac"), 0);
    assert_string_equal(to, "12345");
}

TEST(test_hex)
{
    char to[9];

    text_hex(to, "\x00\x1f\xab\xff", 4);
    assert_string_equal(to, "001fabff");
    text_hex(to, NULL, 0);
    assert_string_equal(to, "");
}

TEST(test_uuid)
{
    static const char *const bad[] = {
        "",
        "01234567-89ab-4cde-8f01-23456789abc",
        "01234567-89ab-4cde-8f01-23456789abcde",
        "0123456789ab4cde8f0123456789abcd",
        "01234567-89ab-4cde-8f01023456789abcd",
        "0123456-789ab-4cde-8f01-23456789abcd",
        "01234567-89ab-4cde-8f01-23456789abcg",
        "{1234567-89ab-4cde-8f01-23456789abcd",
    };
    uint8_t back[TEXT_UUID];

    assert_int_equal(text_from_uuid(back, "01234567-89ab-4CDE-8f01-23456789abCD"), 1);
    assert_memory_equal(back, "\x01\x23\x45\x67\x89\xab\x4c\xde\x8f\x01\x23\x45\x67\x89\xab\xcd",
                        16);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(text_from_uuid(back, bad[i]), 0);
}

TEST(test_buffer)
{
    struct text_buffer buffer;
    char wanted[8000] = "";

    text_buffer_init(&buffer);
    assert_string_equal(text_buffer_text(&buffer), "");
    text_buffer_append(&buffer, NULL, 0);
    assert_string_equal(text_buffer_text(&buffer), "");
    for (int i = 0; i < 1000; i++) {
        text_buffer_append_format(&buffer, "%d,", i);
        snprintf(wanted + strlen(wanted), sizeof(wanted) - strlen(wanted), "%d,", i);
    }
    text_buffer_append_text(&buffer, "end");
    strcat(wanted, "end");
    text_buffer_append(&buffer, "a\0b", 3);
    assert_string_equal(text_buffer_text(&buffer), strcat(wanted, "a"));
    assert_int_equal(buffer.size, strlen(wanted) + 2);
    assert_int_equal(buffer.data[buffer.size], 0);
    text_buffer_clear(&buffer);
    assert_string_equal(text_buffer_text(&buffer), "");
    assert_int_equal(buffer.size, 0);
    text_buffer_append(&buffer, "x", SIZE_MAX - 3);
    assert_true(buffer.failed);
    text_buffer_append_text(&buffer, "more");
    assert_string_equal(text_buffer_text(&buffer), "");
    text_buffer_free(&buffer);
    assert_null(buffer.data);
    text_buffer_free(&buffer);
}

TEST(test_nearest)
{
    const char *const names[] = {"pool_size", "business_pool_size", "beat_ms", "site"};

    assert_string_equal(text_nearest("pool-size", names, 4), "pool_size");
    assert_string_equal(text_nearest("poolsize", names, 4), "pool_size");
    assert_string_equal(text_nearest("beat", (const char *const[]){"beats"}, 1), "beats");
    assert_string_equal(text_nearest("sight", (const char *const[]){"site", "night"}, 2), "night");
    assert_string_equal(text_nearest("site", names, 4), "site");
    assert_null(text_nearest("colour", names, 4));
    assert_string_equal(text_nearest("sit", names, 4), "site");
    assert_null(text_nearest("siet", names, 4)); /* half of it is wrong */
    assert_null(text_nearest("x", names, 4));
    assert_null(text_nearest("", names, 4));
}

TEST(test_utf8)
{
    static const char *const bad[] = {
        "\xff",
        "\xc3",
        "\xe2\x82",
        "\xf0\x9f\x98",
        "\xc0\x80",
        "\xe0\x80\x80",
        "\x80",
        "\xed\xa0\x80",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xf0\x80\x80\x80",
    };

    assert_int_equal(text_check_utf8("remark", NULL), TL_OK);
    assert_int_equal(text_check_utf8("remark", ""), TL_OK);
    assert_int_equal(text_check_utf8("remark", "a\n\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"), TL_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(text_check_utf8("remark", bad[i]), TL_INVALID);
    assert_problem(text_check_utf8("remark", "R\xe9sum\xe9"), TL_INVALID,
                   "remark: byte 2 is not UTF-8 (0xe9)");
}

TEST_MAIN(text)
{
    memset(long_text, 'x', sizeof(long_text) - 1);
    return tests_run(NULL, NULL);
}

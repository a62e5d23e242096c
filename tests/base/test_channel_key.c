/* SHA-256 and the channel key. */
#include "check.h"

#include "base/sha256.h"
#include "base/text.h"
#include "support/theme.h"

/* The examples of the standard (FIPS 180). */
TEST(test_sha256)
{
    uint8_t digest[SHA256_SIZE];
    char digits[2 * SHA256_SIZE + 1];

    sha256_of(digest, "abc", 3);
    text_hex(digits, digest, sizeof(digest));
    assert_string_equal(digits, "ba7816bf8f01cfea414140de5dae2223"
                                "b00361a396177a9cb410ff61f20015ad");
    sha256_of(digest, NULL, 0);
    text_hex(digits, digest, sizeof(digest));
    assert_string_equal(digits, "e3b0c44298fc1c149afbf4c8996fb924"
                                "27ae41e4649b934ca495991b7852b855");
}

static const tl_key sample = {"W20240001", "C1001", "WITHDRAW"};

TEST(test_vectors)
{
    char key[TL_CHANNEL_KEY_MAX + 1];

    assert_int_equal(tl_channel_key(key, 64, "bank-a", "fastpay", &sample, 1), TL_OK);
    assert_string_equal(key, TL_CHANNEL_KEY_VECTOR_1);
    assert_int_equal(tl_channel_key(key, 64, "bank-a", "fastpay", &sample, 2), TL_OK);
    assert_string_equal(key, TL_CHANNEL_KEY_VECTOR_2);
}

TEST(test_cut)
{
    char key[TL_CHANNEL_KEY_MAX + 1];

    for (unsigned chars = 20; chars <= 64; chars++) {
        memset(key, '?', sizeof(key));
        assert_int_equal(tl_channel_key(key, chars, "bank-a", "fastpay", &sample, 1), TL_OK);
        assert_int_equal(strlen(key), chars);
        assert_memory_equal(key, TL_CHANNEL_KEY_VECTOR_1, chars);
        if (chars < 64)
            assert_int_equal(key[chars + 1], '?'); /* nothing behind the end */
    }
}

/* Each part counts, and none can lend a letter to its neighbour. */
TEST(test_parts_do_not_mix)
{
    static const struct {
        const char *site, *channel;
        tl_key key;
        uint32_t epoch;
    } variants[] = {
        {"ab", "cd", {"ef", "gh", "ij"}, 1},          {"a", "bcd", {"ef", "gh", "ij"}, 1},
        {"abc", "d", {"ef", "gh", "ij"}, 1},          {"ab", "cde", {"f", "gh", "ij"}, 1},
        {"ab", "cd", {"efg", "h", "ij"}, 1},          {"ab", "cd", {"ef", "ghi", "j"}, 1},
        {"cd", "ab", {"ef", "gh", "ij"}, 1},          {"ab", "cd", {"gh", "ef", "ij"}, 1},
        {"ab", "cd", {"ef", "gh", "ij"}, 2},          {"ab", "cd", {"ef", "gh", "ij"}, 256},
        {"AB", "cd", {"ef", "gh", "ij"}, 1},          {"ab", "cd", {"ef", "gh", "iJ"}, 1},
        {"ab", "cd", {"ef", "gh", "ij"}, UINT32_MAX},
    };
    enum { COUNT = sizeof(variants) / sizeof(variants[0]) };
    char keys[COUNT][TL_CHANNEL_KEY_MAX + 1];

    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(tl_channel_key(keys[i], 64, variants[i].site, variants[i].channel,
                                        &variants[i].key, variants[i].epoch),
                         TL_OK);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(keys[i], keys[j]);
    }
}

static char *repeat(size_t size)
{
    static char texts[4][80];
    static int next;
    char *text = texts[next++ % 4];

    memset(text, 'k', size);
    text[size] = '\0';
    return text;
}

TEST(test_longest)
{
    tl_key key = {repeat(TL_SERIAL_MAX), repeat(TL_CUST_MAX), repeat(TL_OP_MAX - 6)};
    char out[TL_CHANNEL_KEY_MAX + 1];

    assert_int_equal(
        tl_channel_key(out, 64, repeat(64), "12345678901234567890123456789012", &key, 1), TL_OK);
    assert_int_equal(strspn(out, "0123456789abcdef"), 64);
}

TEST(test_bad_arguments)
{
    char out[TL_CHANNEL_KEY_MAX + 1] = "untouched";
    tl_key bad = {"W1", "C 1", "WITHDRAW"};

    assert_problem(tl_channel_key(out, 19, "a", "b", &sample, 1), TL_INVALID,
                   "channel key: has 20 to 64 characters, not 19");
    assert_problem(tl_channel_key(out, 65, "a", "b", &sample, 1), TL_INVALID,
                   "channel key: has 20 to 64 characters, not 65");
    assert_problem(tl_channel_key(NULL, 64, "a", "b", &sample, 1), TL_INVALID,
                   "channel key: there is no place for it");
    assert_problem(tl_channel_key(out, 64, "a", "b", &sample, 0), TL_INVALID,
                   "channel key: epochs are counted from 1");
    assert_problem(tl_channel_key(out, 64, NULL, "b", &sample, 1), TL_INVALID, "site: is missing");
    assert_problem(tl_channel_key(out, 64, repeat(65), "b", &sample, 1), TL_INVALID,
                   "site: is longer than 64 bytes");
    assert_problem(tl_channel_key(out, 64, "a", "", &sample, 1), TL_INVALID, "channel: is empty");
    assert_problem(tl_channel_key(out, 64, "a", repeat(33), &sample, 1), TL_INVALID,
                   "channel: is longer than 32 bytes");
    assert_problem(tl_channel_key(out, 64, "a", "b", NULL, 1), TL_INVALID, "key: is missing");
    assert_problem(tl_channel_key(out, 64, "a", "b", &bad, 1), TL_INVALID,
                   "cust_no: byte 2 is a blank (0x20); only printable ASCII without "
                   "blanks is allowed");
    assert_string_equal(out, "untouched");
}

TESTS_OF(channel_key, NULL, NULL)

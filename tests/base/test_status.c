/* Names, classes and texts; the error sentence of a thread. */
#include "check.h"

#include "base/error.h"
#include "support/theme.h"

#include <ctype.h>
#include <pthread.h>

struct known {
    int number;
    const char *name, *class_name;
};

static const struct known all[] = {
#define KNOWN(number, name, class_, payment, text) {number, "TL_" #name, #class_},
    TL_STATUS_MAP(KNOWN)
#undef KNOWN
};

#define COUNT (sizeof(all) / sizeof(all[0]))

/* Written by hand, so that a number that moves is noticed: numbers are a promise. */
TEST(test_numbers_are_stable)
{
    assert_int_equal(TL_OK, 0);
    assert_int_equal(TL_GRANTED, 1);
    assert_int_equal(TL_FAILED, 3);
    assert_int_equal(TL_BUSY, 20);
    assert_int_equal(TL_LOST, 28);
    assert_int_equal(TL_TIMEOUT, 40);
    assert_int_equal(TL_UNKNOWN, 50);
    assert_int_equal(TL_ROLL_BACK, 60);
    assert_int_equal(TL_INVALID, 70);
    assert_int_equal(TL_BAD_CONFIG, 76);
    assert_int_equal(TL_NO_MEMORY, 90);
    assert_int_equal(TL_INTERNAL, 97);
}

TEST(test_names)
{
    assert_string_equal(tl_status_name(TL_GRANTED), "TL_GRANTED");
    assert_string_equal(tl_status_text(TL_GRANTED), "the lock is yours");
    assert_string_equal(tl_status_name((tl_status)12345), "TL_?");
    assert_string_equal(tl_status_name((tl_status)-1), "TL_?");
    assert_non_null(tl_status_text((tl_status)12345));
    for (size_t i = 0; i < COUNT; i++) {
        tl_status status = (tl_status)all[i].number;

        assert_string_equal(tl_status_name(status), all[i].name);
        assert_true(strlen(tl_status_text(status)) > 3);
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(all[i].number, all[j].number);
            assert_string_not_equal(tl_status_text(status),
                                    tl_status_text((tl_status)all[j].number));
        }
    }
}

TEST(test_classes)
{
    assert_int_equal(tl_status_class(TL_OK), TL_CLASS_DONE);
    assert_int_equal(tl_status_class(TL_ALREADY_DONE), TL_CLASS_DONE);
    assert_int_equal(tl_status_class(TL_IN_DOUBT), TL_CLASS_CONFLICT);
    assert_int_equal(tl_status_class(TL_TIMEOUT), TL_CLASS_RETRY);
    assert_int_equal(tl_status_class(TL_UNKNOWN), TL_CLASS_UNKNOWN);
    assert_int_equal(tl_status_class(TL_ROLL_BACK), TL_CLASS_ROLL_BACK);
    assert_int_equal(tl_status_class(TL_INVALID), TL_CLASS_CALLER);
    assert_int_equal(tl_status_class(TL_NO_MEMORY), TL_CLASS_BROKEN);
    assert_int_equal(tl_status_class((tl_status)12345), TL_CLASS_BROKEN);
    for (size_t i = 0; i < COUNT; i++) {
        const char *name = tl_class_name(tl_status_class((tl_status)all[i].number));

        for (size_t k = 0; all[i].class_name[k] != '\0'; k++) {
            char wanted = (char)tolower(all[i].class_name[k]);

            assert_int_equal(name[k], wanted == '_' ? ' ' : wanted);
        }
    }
    assert_string_equal(tl_class_name((tl_class)99), "?");
}

/* Written by hand: each status that says of a payment what it came to.  All others, of whatever
 * class, may be the answer of a trade that is paid. */
TEST(test_payments)
{
    for (int number = -2; number < 1000; number++) {
        const tl_status status = (tl_status)number;

        assert_int_equal(tl_paid(status), status == TL_SUCCEEDED || status == TL_ALREADY_DONE);
        assert_int_equal(tl_not_paid(status), status == TL_FAILED || status == TL_REFUSED);
    }
}

TEST(test_states_and_proofs)
{
    assert_string_equal(tl_state_name(TL_STATE_ABSENT), "absent");
    assert_string_equal(tl_state_name(TL_STATE_IN_DOUBT), "in doubt");
    assert_string_equal(tl_state_name((tl_state)77), "?");
    for (int i = TL_STATE_ABSENT; i <= TL_STATE_CLOSED; i++)
        for (int j = TL_STATE_ABSENT; j < i; j++)
            assert_string_not_equal(tl_state_name((tl_state)i), tl_state_name((tl_state)j));
    assert_string_equal(tl_proof_name(TL_PROOF_NEVER_LEFT), "NEVER_LEFT");
    assert_string_equal(tl_proof_text(TL_PROOF_DECLINED), "the channel declined");
    assert_int_equal(TL_PROOF_OPERATORS, 'O');
    assert_string_equal(tl_proof_name((tl_proof)'!'), "?");
    assert_non_null(tl_proof_text((tl_proof)'!'));
}

TEST(test_version)
{
    char version[32];

    snprintf(version, sizeof(version), "%d.%d.%d", TL_VERSION_MAJOR, TL_VERSION_MINOR,
             TL_VERSION_PATCH);
    assert_string_equal(tl_version(), version);
}

TEST(test_sentence)
{
    error_clear();
    assert_string_equal(tl_error_message(), "");
    assert_int_equal(error_set(TL_BUSY, "row %d is %s", 7, "held"), TL_BUSY);
    assert_string_equal(tl_error_message(), "row 7 is held");
    assert_int_equal(error_prefix(TL_LOST, "line %d", 3), TL_LOST);
    assert_string_equal(tl_error_message(), "line 3: row 7 is held");
    /* The old sentence may be part of the new one. */
    error_set(TL_BUSY, "%s, twice: %s", tl_error_message(), tl_error_message());
    assert_string_equal(tl_error_message(), "line 3: row 7 is held, twice: line 3: row 7 is held");
    error_clear();
    error_prefix(TL_BUSY, "alone");
    assert_string_equal(tl_error_message(), "alone: ");
}

TEST(test_long_sentence)
{
    char text[5000];

    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    error_set(TL_BUSY, "%s", text);
    size_t size = strlen(tl_error_message());
    assert_in_range(size, 500, 2000);
    assert_string_equal(tl_error_message() + size - 4, "x...");
    error_prefix(TL_BUSY, "%s", text);
    assert_int_equal(strlen(tl_error_message()), size);
    error_set(TL_BUSY, "short");
    error_prefix(TL_BUSY, "%s", text);
    assert_string_equal(tl_error_message() + size - 4, "x...");
}

static void *other_thread(void *context)
{
    (void)context;
    if (strcmp(tl_error_message(), "") != 0)
        return (void *)"began with a sentence";
    error_set(TL_BUSY, "of the other thread");
    return strcmp(tl_error_message(), "of the other thread") == 0 ? NULL : (void *)"lost";
}

TEST(test_sentence_of_each_thread)
{
    pthread_t thread;
    void *problem;

    error_set(TL_BUSY, "of this thread");
    assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, &problem), 0);
    assert_null(problem);
    assert_string_equal(tl_error_message(), "of this thread");
}

TESTS_OF(status, NULL, NULL)

/* How often somebody may try a password at the desk's door, directly and behind a proxy. */
#include "cli/operators.h"
#include "visitor.h"
#include "support/theme.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Another name each time, since after five a name waits. */
static void guess(struct visitor *visitor, unsigned times)
{
    static unsigned number;
    char name[32];

    for (unsigned i = 0; i < times; i++) {
        snprintf(name, sizeof name, "guess%u", number++);
        visitor_login(visitor, name, "wrong");
        EXPECT_PAGE(visitor, 403, "Name and password do not fit");
    }
}

static void test_twenty_from_one_address(void **state)
{
    struct desk_process desk;
    struct visitor v, ann;

    (void)state;
    desk_start(&desk, operators.config[ANN], NULL);
    visitor_open(&v, &desk);
    visitor_open(&ann, &desk);
    guess(&v, 19);
    visitor_login(&ann, operators.user[ANN], "secret");
    EXPECT_PAGE(&ann, 303, "");
    guess(&v, 1);
    visitor_login(&v, operators.user[ANN], "secret");
    EXPECT_PAGE(&v, 429, "Too many wrong passwords");
    assert_non_null(strstr(v.headers, "Retry-After: 60"));
    visitor_close(&v);
    visitor_close(&ann);
    desk_stop(&desk);
}

#define GUESSERS 40

/* Each with a connection of its own; they press the button together. */
struct guesser {
    struct visitor visitor;
    char token[64];
    pthread_barrier_t *together;
};

static void *guess_one_name(void *context)
{
    struct guesser *g = context;

    pthread_barrier_wait(g->together);
    visitor_post(&g->visitor, "/login", NULL, "login_token", g->token, "user", "one", "password",
                 "wrong");
    return NULL;
}

/* Five for a name, and those that were being tried when the fifth was found wrong. */
static void test_a_crowd_at_the_door(void **state)
{
    static struct guesser guessers[GUESSERS];
    pthread_t threads[GUESSERS];
    pthread_barrier_t together;
    struct desk_process desk;
    int tried = 0;

    (void)state;
    desk_start(&desk, operators.config[ANN], NULL);
    pthread_barrier_init(&together, NULL, GUESSERS);
    for (int i = 0; i < GUESSERS; i++) {
        guessers[i].together = &together;
        visitor_open(&guessers[i].visitor, &desk);
        visitor_get(&guessers[i].visitor, "/login");
        snprintf(guessers[i].token, sizeof guessers[i].token, "%s",
                 visitor_field(&guessers[i].visitor, "login_token"));
    }
    for (int i = 0; i < GUESSERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, guess_one_name, &guessers[i]), 0);
    for (int i = 0; i < GUESSERS; i++) {
        pthread_join(threads[i], NULL);
        tried += guessers[i].visitor.status == 403;
        assert_true(guessers[i].visitor.status == 403 || guessers[i].visitor.status == 429);
        visitor_close(&guessers[i].visitor);
    }
    assert_in_range(tried, 5, 5 + 3);
    pthread_barrier_destroy(&together);
    desk_stop(&desk);
}

/* All come from the proxy's address, so that only names and the sum are counted. */
static void test_a_hundred_behind_a_proxy(void **state)
{
    static const char *const options[] = {"--behind-proxy", NULL};
    struct desk_process desk;
    struct visitor v, ann;
    char token[64];

    (void)state;
    desk_start(&desk, operators.config[ANN], options);
    visitor_open(&v, &desk);
    visitor_open(&ann, &desk);
    guess(&v, 40);
    visitor_login(&ann, operators.user[ANN], "secret");
    EXPECT_PAGE(&ann, 303, "");
    assert_non_null(strstr(ann.headers, "SameSite=Strict; Secure"));
    assert_non_null(strstr(ann.headers, "Strict-Transport-Security"));
    /* Browsers there speak TLS to the proxy, and say so. */
    visitor_get(&v, "/login");
    snprintf(token, sizeof token, "%s", visitor_field(&v, "login_token"));
    visitor_post(&v, "/login", "Origin: http://127.0.0.1", "login_token", token, "user", "x",
                 "password", "x");
    EXPECT_PAGE(&v, 403, "This form was not sent by a page of this desk");
    guess(&v, 60);
    visitor_login(&v, operators.user[ANN], "secret");
    EXPECT_PAGE(&v, 429, "Too many wrong passwords");
    visitor_close(&v);
    visitor_close(&ann);
    desk_stop(&desk);
}

TEST_MAIN(door)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_twenty_from_one_address),
        cmocka_unit_test(test_a_crowd_at_the_door),
        cmocka_unit_test(test_a_hundred_behind_a_proxy),
    };

    return server_run_tests(tests, operators_set_up, operators_tear_down);
}

/* Every fault: what the client sees, what was paid, and that chance can be repeated. */
#include "fixture.h"
#include "support/theme.h"

#include <pthread.h>
#include <time.h>

static void add_rule(const char *rule)
{
    sim_expect(&sim, NULL, "/v1/faults", rule, 201, NULL, NULL);
}

/* Two sends of one key, the first with the fault: what each sees, and the payments. */
static const struct pay_fault {
    const char *kind;
    long first;
    const char *outcome; /* of the first, or NULL */
    int paid_after_first;
    long second;
    int64_t slower_than_ms;
} pay_faults[] = {
    {"slow", 200, "succeeded", 1, 200, 100},
    {"slow_paying", 200, "succeeded", 1, 200, 100},
    {"slow_answer", 200, "succeeded", 1, 200, 100},
    {"decline", 200, "declined", 0, 200, 0},
    {"accepted", 202, "accepted", 0, 202, 0},
    {"accepted_declined", 202, "accepted", 0, 202, 0},
    {"error_before", 503, NULL, 0, 200, 0},
    {"error_after", 500, NULL, 1, 200, 0},
    {"drop_before", 0, NULL, 0, 200, 0},
    {"drop_after", 0, NULL, 1, 200, 0},
    {"duplicate_in_progress", 409, "duplicate_in_progress", 0, 200, 0},
    {"rate_limit", 429, "rate_limited", 0, 200, 0},
};

#define PAY_FAULTS (sizeof(pay_faults) / sizeof(pay_faults[0]))

static void check_pay_fault(const struct pay_fault *fault, bool plain)
{
    bool later = strncmp(fault->kind, "accepted", 8) == 0;
    bool declined = strcmp(fault->kind, "decline") == 0;
    int expected = fault->paid_after_first;
    char rule[256], key[64];
    int64_t started_ms;

    snprintf(key, sizeof(key), "key-of-%s", fault->kind);
    snprintf(rule, sizeof(rule), "{\"kind\":\"%s\",\"channel_key\":\"%s\"%s}", fault->kind, key,
             later ? ",\"delay_ms\":3600000" : "");
    add_rule(rule);
    pay_expect(&sim, "another-key", 200, "outcome", "succeeded");
    started_ms = now_ms();
    pay_expect(&sim, key, fault->first, fault->outcome ? "outcome" : NULL, fault->outcome);
    assert_true(now_ms() - started_ms >= fault->slower_than_ms);
    assert_int_equal(ledger_count(&sim, key), expected);
    if (later && plain) /* the second would be a payment of its own */
        return;
    pay_expect(&sim, key, fault->second, NULL, NULL);
    if (!later && !(declined && !plain))
        expected = plain ? expected + 1 : 1;
    assert_int_equal(ledger_count(&sim, key), expected);
    assert_int_equal(sim_faults(&sim, fault->kind), 1);
}

TEST_IN(test_pay_faults, set_up, tear_down)
{
    static const char *const kinds[] = {"idempotent", "window", "plain"};

    for (size_t i = 0; i < 3; i++) {
        const char *const arguments[] = {"--kind", kinds[i], "--slow-ms", "100", NULL};

        sim_start(&sim, arguments);
        for (size_t j = 0; j < PAY_FAULTS; j++)
            check_pay_fault(&pay_faults[j], i == 2);
        start_anew();
    }
}

TEST_IN(test_query_faults, set_up, tear_down)
{
    static const char path[] = "/v1/payments/K1";

    sim_start(&sim, NULL);
    pay_expect(&sim, "K1", 200, "outcome", "succeeded");
    add_rule("{\"kind\":\"not_found_first\",\"count\":2}");
    sim_expect(&sim, NULL, path, NULL, 404, "status", "not_found");
    sim_expect(&sim, NULL, path, NULL, 404, "status", "not_found");
    sim_expect(&sim, NULL, path, NULL, 200, "status", "succeeded");
    add_rule("{\"kind\":\"pending\"}");
    sim_expect(&sim, NULL, path, NULL, 200, "status", "pending");
    add_rule("{\"kind\":\"unreachable\"}");
    sim_expect(&sim, NULL, path, NULL, 503, NULL, NULL);
    add_rule("{\"kind\":\"drop_before\",\"endpoint\":\"query\"}");
    sim_expect(&sim, NULL, path, NULL, 0, NULL, NULL);
    add_rule("{\"kind\":\"rate_limit\",\"endpoint\":\"query\"}");
    sim_expect(&sim, NULL, path, NULL, 429, "outcome", "rate_limited");
    /* Nobody can call a payment pending that the channel never saw. */
    add_rule("{\"kind\":\"pending\"}");
    sim_expect(&sim, NULL, "/v1/payments/K2", NULL, 404, "status", "not_found");
    assert_int_equal(sim_faults(&sim, "pending"), 1);
    sim_expect(&sim, NULL, path, NULL, 200, "status", "succeeded");
}

/* Pays and asks until the payment is seen; how often it was not. */
static int64_t queries_until_seen(const char *key)
{
    int64_t started_ms = now_ms(), not_found = 0;
    char path[64];

    snprintf(path, sizeof(path), "/v1/payments/%s", key);
    pay_expect(&sim, key, 200, "outcome", "succeeded");
    for (;; not_found++) {
        struct answer answer = sim_ask(&sim, NULL, path, NULL, 10000);

        answer_free(&answer);
        if (answer.status == 200)
            break;
        assert_int_equal(answer.status, 404);
        assert_true(now_ms() - started_ms < 60000);
        sleep_ms(20);
    }
    assert_true(now_ms() - started_ms >= 1000);
    return not_found;
}

/* When the first query comes too late to miss the payment, another one is made. */
TEST_IN(test_not_found_for_a_time, set_up, tear_down)
{
    char key[32];
    int number = 1;

    sim_start(&sim, NULL);
    add_rule("{\"kind\":\"not_found_first\",\"count\":0,\"for_ms\":1000}");
    do
        snprintf(key, sizeof(key), "K%d", number++);
    while (queries_until_seen(key) == 0);
}

TEST_IN(test_cancel_faults, set_up, tear_down)
{
    static const char path[] = "/v1/payments/K1/cancel";

    sim_start(&sim, NULL);
    add_rule("{\"kind\":\"error_before\",\"endpoint\":\"cancel\"}");
    add_rule("{\"kind\":\"drop_before\",\"endpoint\":\"cancel\"}");
    add_rule("{\"kind\":\"rate_limit\",\"endpoint\":\"cancel\"}");
    sim_expect(&sim, "POST", path, NULL, 503, NULL, NULL);
    sim_expect(&sim, "POST", path, NULL, 0, NULL, NULL);
    sim_expect(&sim, "POST", path, NULL, 429, NULL, NULL);
    assert_int_equal(sim_stat(&sim, "cancels"), 0);
    add_rule("{\"kind\":\"drop_after\",\"endpoint\":\"cancel\"}");
    sim_expect(&sim, "POST", path, NULL, 0, NULL, NULL);
    assert_int_equal(sim_stat(&sim, "cancels"), 1);
    pay_expect(&sim, "K1", 200, "code", "cancelled");
    add_rule("{\"kind\":\"error_after\",\"endpoint\":\"cancel\"}");
    sim_expect(&sim, "POST", "/v1/payments/K2/cancel", NULL, 500, NULL, NULL);
    pay_expect(&sim, "K2", 200, "code", "cancelled");
}

TEST_IN(test_rules_match, set_up, tear_down)
{
    sim_start(&sim, NULL);
    add_rule("{\"kind\":\"rate_limit\",\"serial_no\":\"S-K1\",\"skip\":1,\"count\":2}");
    add_rule("{\"kind\":\"error_before\",\"cust_no\":\"C2\"}");
    pay_expect(&sim, "K1", 200, NULL, NULL);
    pay_expect(&sim, "K2", 200, NULL, NULL);
    pay_expect(&sim, "K1", 429, NULL, NULL);
    pay_expect(&sim, "K1", 429, NULL, NULL);
    pay_expect(&sim, "K1", 200, NULL, NULL);
    add_rule("{\"kind\":\"unreachable\",\"serial_no\":\"S-K2\"}");
    sim_expect(&sim, NULL, "/v1/payments/K1", NULL, 200, NULL, NULL);
    sim_expect(&sim, NULL, "/v1/payments/K2", NULL, 503, NULL, NULL);
    /* The first two sends of each key, however they mix. */
    add_rule("{\"kind\":\"rate_limit\",\"count\":2,\"per_key\":true}");
    pay_expect(&sim, "A", 429, NULL, NULL);
    pay_expect(&sim, "B", 429, NULL, NULL);
    pay_expect(&sim, "A", 429, NULL, NULL);
    pay_expect(&sim, "A", 200, NULL, NULL);
    pay_expect(&sim, "B", 429, NULL, NULL);
    pay_expect(&sim, "B", 200, NULL, NULL);
    sim_expect(&sim, "DELETE", "/v1/faults", NULL, 200, NULL, NULL);
    pay_expect(&sim, "C", 200, NULL, NULL);
}

TEST_IN(test_clearing_ends_chance, set_up, tear_down)
{
    static const char *const arguments[] = {"--faults", "1", NULL};

    sim_start(&sim, arguments);
    sim_expect(&sim, "DELETE", "/v1/faults", NULL, 200, NULL, NULL);
    for (int i = 0; i < 20; i++) {
        char key[16];

        snprintf(key, sizeof(key), "K%d", i);
        pay_expect(&sim, key, 200, "outcome", "succeeded");
    }
    sim_expect(&sim, NULL, "/v1/faults", "{\"rate\":1,\"seed\":3}", 200, NULL, NULL);
    for (int i = 0; i < 20; i++) {
        struct answer answer;
        char path[64];

        snprintf(path, sizeof(path), "/v1/payments/K%d", i);
        answer = sim_ask(&sim, NULL, path, NULL, 10000);
        answer_free(&answer);
    }
    assert_true(sim_faults(&sim, "unreachable") > 0);
}

#define CHANCE_KEYS 300
#define CHANCE_SENDS 2
#define CHANCE_THREADS 8

static long seen[CHANCE_KEYS][CHANCE_SENDS];

/* Each thread sends for its own keys, so threads mix freely and sends of a key do not. */
static void *send_share(void *context)
{
    for (int i = *(int *)context; i < CHANCE_KEYS; i += CHANCE_THREADS) {
        for (int send = 0; send < CHANCE_SENDS; send++) {
            char key[32], *body;
            struct answer answer;

            snprintf(key, sizeof(key), "key-%d", i);
            body = order_text(key, key, "C1", 100);
            answer = sim_ask(&sim, NULL, "/v1/pay", body, 10000);
            seen[i][send] = answer.status;
            answer_free(&answer);
            free(body);
        }
    }
    return NULL;
}

/* Runs all sends with so many threads; the faults counted, as the program's own text. */
static char *run_chance(const char *seed, int threads, char **payments)
{
    const char *const arguments[] = {"--kind",    "plain", "--faults",    "0.5", "--seed", seed,
                                     "--slow-ms", "2",     "--settle-ms", "0",   NULL};
    const char *const export[] = {"--export-csv", sim.ledger, NULL};
    pthread_t thread[CHANCE_THREADS];
    int number[CHANCE_THREADS];
    struct answer answer;
    char *text;

    sim_start(&sim, arguments);
    for (int i = 0; i < CHANCE_THREADS; i++) {
        number[i] = i;
        if (threads == 1)
            send_share(&number[i]);
        else
            assert_int_equal(pthread_create(&thread[i], NULL, send_share, &number[i]), 0);
    }
    for (int i = 0; threads > 1 && i < CHANCE_THREADS; i++)
        pthread_join(thread[i], NULL);
    while (sim_stat(&sim, "accepted_open") > 0)
        ;
    answer = sim_ask(&sim, NULL, "/v1/stats", NULL, 10000);
    text = json_dumps(json_object_get(answer.json, "faults"), JSON_SORT_KEYS);
    answer_free(&answer);
    assert_int_equal(sim_run(export, payments), 0);
    start_anew();
    return text;
}

TEST_IN(test_chance_repeats, set_up, tear_down)
{
    static const char *const must_happen[] = {
        "slow",        "slow_paying",       "slow_answer",  "decline",
        "accepted",    "accepted_declined", "error_before", "error_after",
        "drop_before", "drop_after",        "rate_limit",   "duplicate_in_progress"};
    long before[CHANCE_KEYS][CHANCE_SENDS];
    char *one, *many, *other, *payments;
    int64_t paid;
    json_t *faults;

    one = run_chance("42", 1, &payments);
    paid = text_count(payments, "\n");
    free(payments);
    memcpy(before, seen, sizeof(seen));
    many = run_chance("42", CHANCE_THREADS, &payments);
    assert_int_equal(text_count(payments, "\n"), paid);
    free(payments);
    assert_string_equal(one, many);
    assert_memory_equal(before, seen, sizeof(seen));
    other = run_chance("43", CHANCE_THREADS, &payments);
    free(payments);
    assert_string_not_equal(one, other);
    faults = json_loads(one, 0, NULL);
    for (size_t i = 0; i < sizeof(must_happen) / sizeof(must_happen[0]); i++) {
        if (json_integer_value(json_object_get(faults, must_happen[i])) == 0)
            print_error("%s never happened\n", must_happen[i]);
        assert_true(json_integer_value(json_object_get(faults, must_happen[i])) > 0);
    }
    json_decref(faults);
    free(one);
    free(many);
    free(other);
}

/* By chance a query never takes back what a client was told about the key. */
TEST_IN(test_chance_does_not_contradict, set_up, tear_down)
{
    static const char *const arguments[] = {"--faults", "0.9",      "--seed", "5", "--slow-ms",
                                            "1",        "--lag-ms", "60000",  NULL};
    int told = 0, hidden = 0;

    sim_start(&sim, arguments);
    for (int i = 0; i < 200; i++) {
        char key[32], path[64], *body;
        struct answer paid, asked;

        snprintf(key, sizeof(key), "key-%d", i);
        snprintf(path, sizeof(path), "/v1/payments/%s", key);
        body = order_text(key, key, "C1", 100);
        paid = sim_ask(&sim, NULL, "/v1/pay", body, 10000);
        asked = sim_ask(&sim, NULL, path, NULL, 10000);
        if (paid.status == 200 || paid.status == 202) {
            assert_int_not_equal(asked.status, 404);
            told++;
        } else if (asked.status == 404 && ledger_count(&sim, key) == 1) {
            hidden++;
        }
        answer_free(&paid);
        answer_free(&asked);
        free(body);
    }
    assert_true(told > 20);
    assert_true(hidden > 10);
}

TESTS_OF(faults, NULL, NULL)

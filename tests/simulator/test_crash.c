/* Nothing is answered before the ledger has it: kills, torn lines, full disks, two simulators, many
 * clients. */
#include "fixture.h"
#include "support/theme.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define CLIENTS 8
#define ORDERS_MAX 4000
#define KILLS 8
#define ANSWERS 7 /* at least, in each life */

static atomic_int kills_left;
static atomic_int orders, answers;
static char answered[ORDERS_MAX][40]; /* the reference each order was answered with */

/* Sends one order until it is answered, and keeps the reference. */
static void pay_until_answered(int order)
{
    char key[32], *body;

    snprintf(key, sizeof(key), "key-%d", order);
    body = order_text(key, key, "C1", order + 1);
    for (;;) {
        struct answer answer = sim_ask(&sim, NULL, "/v1/pay", body, 10000);
        const char *ref = json_string_value(json_object_get(answer.json, "channel_ref"));

        if (answer.status == 200 && ref) {
            snprintf(answered[order], sizeof(answered[order]), "%s", ref);
            answers++;
        }
        answer_free(&answer);
        if (answered[order][0])
            break;
        sleep_ms(2);
    }
    free(body);
}

/* A client pays order after order until the last kill is over. */
static void *client_run(void *context)
{
    int order;

    (void)context;
    while (kills_left > 0 && (order = orders++) < ORDERS_MAX)
        pay_until_answered(order);
    return NULL;
}

/* How many payments of the key there are with this reference. */
static int64_t paid_with(const char *csv, int order)
{
    char wanted[128];

    snprintf(wanted, sizeof(wanted), ",%.39s,key-%d,key-%d,C1,WITHDRAW,%d,EUR,", answered[order],
             order, order, order + 1);
    return text_count(csv, wanted);
}

static void run_kills(const char *kind)
{
    const char *const arguments[] = {"--kind", kind, NULL};
    const char *const export[] = {"--export-csv", sim.ledger, NULL};
    pthread_t client[CLIENTS];
    char *csv, *requests;
    int sent = 0;
    int64_t paid;

    memset(answered, 0, sizeof(answered));
    orders = 0;
    answers = 0;
    kills_left = KILLS;
    sim_start(&sim, arguments);
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_create(&client[i], NULL, client_run, NULL), 0);
    while (kills_left > 0) {
        /* In each life some are answered, however slow the disk is. */
        while (answers < (KILLS - kills_left + 1) * ANSWERS)
            sleep_ms(5);
        sleep_ms(60 + 7 * kills_left);
        sim_kill(&sim);
        sim_start(&sim, arguments);
        kills_left--;
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(client[i], NULL);
    sim_stop(&sim, 0);
    assert_int_equal(sim_run(export, &csv), 0);
    for (int order = 0; order < ORDERS_MAX && answered[order][0]; order++) {
        char key[32];

        snprintf(key, sizeof(key), ",key-%d,key-%d,", order, order);
        /* What was answered is there, once; a plain channel may have paid more often. */
        assert_int_equal(paid_with(csv, order), 1);
        if (strcmp(kind, "plain") != 0)
            assert_int_equal(text_count(csv, key), 1);
        sent++;
    }
    assert_true(sent >= KILLS * ANSWERS);
    paid = text_count(csv, "\n") - 1;
    requests = file_read(sim.request_log);
    assert_true(text_count(requests, "\"event\":\"received\"") >= paid);
    assert_true(text_count(requests, "\"outcome\":\"succeeded\"") >= sent);
    if (strcmp(kind, "plain") != 0)
        assert_int_equal(paid, sent);
    free(requests);
    free(csv);
}

TEST_IN(test_kills_idempotent, set_up, tear_down)
{
    run_kills("idempotent");
}

TEST_IN(test_kills_window, set_up, tear_down)
{
    run_kills("window");
}

TEST_IN(test_kills_plain, set_up, tear_down)
{
    run_kills("plain");
}

static void write_prefix(const char *text, size_t size)
{
    FILE *file = fopen(sim.ledger, "we");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* A ledger that ends anywhere is the ledger of its complete lines. */
TEST_IN(test_torn_lines, set_up, tear_down)
{
    char *whole, *cut;
    size_t size, first, second;

    sim_start(&sim, NULL);
    pay_expect(&sim, "K1", 200, "channel_ref", "P0000000002");
    pay_expect(&sim, "K2", 200, "channel_ref", "P0000000003");
    sim_kill(&sim);
    whole = file_read(sim.ledger);
    size = strlen(whole);
    first = (size_t)(strchr(whole, '\n') - whole) + 1;
    second = (size_t)(strchr(whole + first, '\n') - whole) + 1;
    for (size_t end = 0; end <= size; end++) {
        bool edge = end + 2 > size || (end + 2 > first && end < first + 2) ||
                    (end + 2 > second && end < second + 2);
        size_t complete = end < first ? 0 : end < second ? first : end < size ? second : size;

        if (!edge && end % 23 != 0)
            continue;
        write_prefix(whole, end);
        sim_start(&sim, NULL);
        assert_int_equal(sim_stat(&sim, "payments"), complete == size     ? 2
                                                     : complete == second ? 1
                                                                          : 0);
        cut = file_read(sim.ledger);
        if (complete > 0) {
            assert_int_equal(strlen(cut), complete);
            assert_memory_equal(cut, whole, complete);
        }
        free(cut);
        pay_expect(&sim, "K2", 200, "outcome", "succeeded");
        sim_kill(&sim);
        sim_start(&sim, NULL);
        assert_int_equal(ledger_count(&sim, "K2"), 1);
        sim_stop(&sim, 0);
    }
    free(whole);
}

TEST_IN(test_one_ledger_one_simulator, set_up, tear_down)
{
    const char *const arguments[] = {"--ledger", sim.ledger, NULL};
    char *output;

    sim_start(&sim, NULL);
    assert_int_equal(sim_run(arguments, &output), 1);
    assert_non_null(strstr(output, "is in use by another simulator\n"));
    free(output);
    pay_expect(&sim, "K1", 200, "outcome", "succeeded");
    /* A killed one leaves no lock behind. */
    sim_kill(&sim);
    sim_start(&sim, NULL);
    pay_expect(&sim, "K1", 200, "channel_ref", "P0000000002");
}

/* Without room for the ledger it stops, and what it answered was paid. */
TEST_IN(test_full_disk, set_up, tear_down)
{
    char key[32], *errors;
    int paid = 0, status;

    sim.file_limit = 20000;
    sim_start(&sim, NULL);
    for (;; paid++) {
        struct answer answer;
        char *body;

        snprintf(key, sizeof(key), "key-%d", paid);
        body = order_text(key, key, "C1", 5);
        answer = sim_ask(&sim, NULL, "/v1/pay", body, 10000);
        free(body);
        answer_free(&answer);
        if (answer.status == 0)
            break;
        assert_int_equal(answer.status, 200);
        assert_true(paid < 1000);
    }
    assert_true(waitpid(sim.pid, &status, 0) == sim.pid);
    sim.pid = 0;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    errors = file_read(sim.errors);
    assert_int_equal(text_count(errors, "cannot write the ledger"), 1);
    assert_non_null(strstr(errors, ": File too large; stopping, since nobody can know"));
    free(errors);
    sim.file_limit = 0;
    sim_start(&sim, NULL);
    assert_true(paid > 20);
    for (int i = 0; i < paid; i++) {
        snprintf(key, sizeof(key), "/v1/payments/key-%d", i);
        sim_expect(&sim, NULL, key, NULL, 200, "status", "succeeded");
    }
    assert_int_equal(ledger_count(&sim, NULL), paid);
    pay_expect(&sim, "another", 200, "outcome", "succeeded");
}

#define CROWD 64
#define CROWD_KEYS 20

static void *crowd_run(void *context)
{
    int start = *(int *)context;

    for (int i = 0; i < CROWD_KEYS; i++) {
        char key[32];

        snprintf(key, sizeof(key), "K%d", (start + i) % CROWD_KEYS);
        pay_expect(&sim, key, 200, "outcome", "succeeded");
    }
    return NULL;
}

/* 64 clients send the same 20 orders at once. */
static void check_crowd(const char *kind, int64_t expected, int64_t twice)
{
    const char *const arguments[] = {"--kind", kind, NULL};
    pthread_t thread[CROWD];
    int number[CROWD];
    char *requests;

    sim_start(&sim, arguments);
    for (int i = 0; i < CROWD; i++) {
        number[i] = i;
        assert_int_equal(pthread_create(&thread[i], NULL, crowd_run, &number[i]), 0);
    }
    for (int i = 0; i < CROWD; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(sim_stat(&sim, "payments"), expected);
    assert_int_equal(sim_stat(&sim, "paid_twice"), twice);
    sim_kill(&sim);
    assert_int_equal(ledger_count(&sim, NULL), expected);
    requests = file_read(sim.request_log);
    assert_int_equal(text_count(requests, "\"endpoint\":\"pay\""), CROWD * CROWD_KEYS);
    assert_int_equal(text_count(requests, "\"outcome\":\"succeeded\""), CROWD * CROWD_KEYS);
    free(requests);
    start_anew();
}

TEST_IN(test_crowd, set_up, tear_down)
{
    check_crowd("idempotent", CROWD_KEYS, 0);
    check_crowd("plain", CROWD * CROWD_KEYS, CROWD_KEYS);
}

/* A stop does not wait for slow requests, and they have not paid. */
static void *slow_run(void *context)
{
    (void)context;
    pay_expect(&sim, "K1", 0, NULL, NULL);
    return NULL;
}

static void check_stop(const char *rule, const char *fault, int64_t open)
{
    const char *const arguments[] = {"--rule", rule, NULL};
    int64_t started_ms;
    pthread_t slow;

    sim_start(&sim, arguments);
    assert_int_equal(pthread_create(&slow, NULL, slow_run, NULL), 0);
    while (sim_faults(&sim, fault) == 0)
        sleep_ms(5);
    started_ms = now_ms();
    sim_stop(&sim, 0);
    pthread_join(slow, NULL);
    assert_true(now_ms() - started_ms < 30000);
    assert_int_equal(ledger_count(&sim, NULL), 0);
    assert_int_not_equal(access(sim.port_file, F_OK), 0);
    sim_start(&sim, NULL);
    assert_int_equal(sim_stat(&sim, "accepted_open"), open);
    start_anew();
}

TEST_IN(test_stop_under_way, set_up, tear_down)
{
    check_stop("{\"kind\":\"slow\",\"delay_ms\":60000}", "slow", 0);
    /* This one is in the ledger already, and goes on after the next start. */
    check_stop("{\"kind\":\"slow_paying\",\"delay_ms\":60000}", "slow_paying", 1);
}

TESTS_OF(crash, NULL, NULL)

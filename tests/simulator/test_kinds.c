/* What each kind of channel does with a repeated key, a cancel and an expiry, and that it still
 * knows after a restart. */
#include "fixture.h"
#include "support/theme.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#define WINDOW_MS 4000 /* as window has it */
#define TRAVEL_MS 1000
#define TRAVEL_RULE(kind) "{\"kind\":\"" kind "\",\"delay_ms\":1000}"

static const char *const idempotent[] = {NULL};
static const char *const window[] = {"--kind", "window", "--window-ms", "4000", NULL};
static const char *const plain[] = {"--kind", "plain", NULL};
static const char *const *const kinds[] = {idempotent, window, plain};

static void restart(const char *const arguments[])
{
    sim_kill(&sim);
    sim_start(&sim, arguments);
}

TEST_IN(test_idempotent_replays_for_ever, set_up, tear_down)
{
    sim_start(&sim, idempotent);
    pay_expect(&sim, "K1", 200, "channel_ref", "P0000000002");
    pay_expect(&sim, "K1", 200, "channel_ref", "P0000000002");
    restart(idempotent);
    pay_expect(&sim, "K1", 200, "channel_ref", "P0000000002");
    assert_int_equal(ledger_count(&sim, NULL), 1);
    assert_int_equal(sim_stat(&sim, "payments"), 1);
    assert_int_equal(sim_stat(&sim, "paid_twice"), 0);
}

TEST_IN(test_idempotent_replays_a_decline, set_up, tear_down)
{
    static const char rule[] = "{\"kind\":\"decline\",\"code\":\"closed\"}";

    sim_start(&sim, idempotent);
    sim_expect(&sim, NULL, "/v1/faults", rule, 201, NULL, NULL);
    pay_expect(&sim, "K1", 200, "code", "closed");
    restart(idempotent);
    pay_expect(&sim, "K1", 200, "code", "closed");
    sim_expect(&sim, NULL, "/v1/payments/K1", NULL, 200, "status", "failed");
    assert_int_equal(ledger_count(&sim, NULL), 0);
}

/* Pays K1 and keeps the reference; returns when it was answered. */
static int64_t pay_for_ref(char ref[40])
{
    char *body = order_text("K1", "S-K1", "C1", 10000);
    struct answer answer = sim_ask(&sim, NULL, "/v1/pay", body, 10000);
    const char *found = json_string_value(json_object_get(answer.json, "channel_ref"));

    assert_int_equal(answer.status, 200);
    assert_non_null(found);
    snprintf(ref, 40, "%s", found);
    answer_free(&answer);
    free(body);
    return now_ms();
}

/* false: the machine was so slow that the window was over when the key came again. */
static bool check_window(void)
{
    char first[40], again[40], later[40], anew[40], anew_again[40];
    int64_t sent_ms, answered_ms, sent_anew_ms;

    sim_start(&sim, window);
    sent_ms = now_ms();
    answered_ms = pay_for_ref(first);
    (void)pay_for_ref(again);
    /* The window goes on from the first send, whatever happens to the process. */
    sleep_ms(2500);
    restart(window);
    if (pay_for_ref(later) - sent_ms >= WINDOW_MS)
        return false;
    assert_string_equal(first, "P0000000002");
    assert_string_equal(again, "P0000000002");
    assert_string_equal(later, "P0000000002");
    while ((sent_anew_ms = now_ms()) - answered_ms <= WINDOW_MS)
        sleep_ms(20);
    (void)pay_for_ref(anew);
    assert_string_equal(anew, "P0000000003");
    if (pay_for_ref(anew_again) - sent_anew_ms >= WINDOW_MS)
        return false;
    assert_string_equal(anew_again, "P0000000003");
    return true;
}

TEST_IN(test_window_pays_again_after_it, set_up, tear_down)
{
    while (!check_window())
        start_anew();
    sim_expect(&sim, NULL, "/v1/payments/K1", NULL, 200, "status", "succeeded");
    assert_int_equal(ledger_count(&sim, "K1"), 2);
    assert_int_equal(sim_stat(&sim, "paid_twice"), 1);
    restart(window);
    assert_int_equal(sim_stat(&sim, "paid_twice"), 1);
}

TEST_IN(test_plain_pays_every_time, set_up, tear_down)
{
    sim_start(&sim, plain);
    pay_expect(&sim, "K1", 200, "channel_ref", "P0000000002");
    pay_expect(&sim, "K1", 200, "channel_ref", "P0000000003");
    restart(plain);
    pay_expect(&sim, "K1", 200, "channel_ref", "P0000000004");
    sim_expect(&sim, NULL, "/v1/payments/K1", NULL, 200, "status", "succeeded");
    assert_int_equal(ledger_count(&sim, "K1"), 3);
    assert_int_equal(sim_stat(&sim, "paid_twice"), 1);
}

/* Twice is counted by serial and customer: two keys of one trade, one key a trade. */
TEST_IN(test_twice_is_counted_by_trade, set_up, tear_down)
{
    char *first = order_text("K1", "S1", "C1", 5), *second = order_text("K2", "S1", "C1", 5);
    char *other = order_text("K3", "S1", "C2", 5);

    sim_start(&sim, idempotent);
    sim_expect(&sim, NULL, "/v1/pay", first, 200, "outcome", "succeeded");
    sim_expect(&sim, NULL, "/v1/pay", other, 200, "outcome", "succeeded");
    assert_int_equal(sim_stat(&sim, "paid_twice"), 0);
    sim_expect(&sim, NULL, "/v1/pay", second, 200, "outcome", "succeeded");
    sim_expect(&sim, NULL, "/v1/pay", second, 200, "outcome", "succeeded");
    assert_int_equal(sim_stat(&sim, "payments"), 3);
    assert_int_equal(sim_stat(&sim, "trades_paid"), 2);
    assert_int_equal(sim_stat(&sim, "paid_twice"), 1);
    free(first);
    free(second);
    free(other);
}

TEST_IN(test_mismatch, set_up, tear_down)
{
    char *other = order_text("K1", "S-K1", "C1", 10001);

    sim_start(&sim, idempotent);
    pay_expect(&sim, "K1", 200, "outcome", "succeeded");
    sim_expect(&sim, NULL, "/v1/pay", other, 422, "outcome", "key_mismatch");
    sim_expect(&sim, NULL, "/v1/pay", other, 422, "field", "amount_minor");
    restart(idempotent);
    sim_expect(&sim, NULL, "/v1/pay", other, 422, "field", "amount_minor");
    free(other);
    other = order_text("K1", "S-K1", "C2", 10000);
    sim_expect(&sim, NULL, "/v1/pay", other, 422, "field", "cust_no");
    free(other);
    assert_int_equal(ledger_count(&sim, NULL), 1);
}

TEST_IN(test_cancel_holds_for_ever, set_up, tear_down)
{
    for (size_t i = 0; i < 3; i++) {
        sim_start(&sim, kinds[i]);
        sim_expect(&sim, "POST", "/v1/payments/K1/cancel", NULL, 200, "outcome", "cancelled");
        sim_expect(&sim, "POST", "/v1/payments/K1/cancel", NULL, 200, "outcome", "cancelled");
        pay_expect(&sim, "K1", 200, "code", "cancelled");
        restart(kinds[i]);
        pay_expect(&sim, "K1", 200, "code", "cancelled");
        sim_expect(&sim, NULL, "/v1/payments/K1", NULL, 200, "status", "failed");
        pay_expect(&sim, "K2", 200, "outcome", "succeeded");
        sim_expect(&sim, "POST", "/v1/payments/K2/cancel", NULL, 200, "outcome", "already_done");
        assert_int_equal(ledger_count(&sim, NULL), 1);
        assert_int_equal(sim_stat(&sim, "cancels"), 1);
        start_anew();
    }
}

/* A send that is held up on its way arrives after the cancel and must not pay. */
static void *send_late(void *context)
{
    char *body = order_text("K1", "S-K1", "C1", 10000);

    *(struct answer *)context = sim_ask(&sim, NULL, "/v1/pay", body, 10000);
    free(body);
    return NULL;
}

static void expect_text(const struct answer *answer, const char *field, const char *value)
{
    const char *found = json_string_value(json_object_get(answer->json, field));

    assert_non_null(found);
    assert_string_equal(found, value);
}

/* false: the send had arrived before the cancel did. */
static bool check_travelling(const char *kind, const char *rule, const char *status)
{
    const char *const arguments[] = {"--kind", kind, "--rule", rule, NULL};
    struct answer sent, queried, cancelled;
    pthread_t sender;
    int64_t sent_ms;
    bool in_time;

    sim_start(&sim, arguments);
    sent_ms = now_ms();
    assert_int_equal(pthread_create(&sender, NULL, send_late, &sent), 0);
    while (sim_stat(&sim, "payments") == 0 && sim_faults(&sim, "slow") == 0 &&
           sim_faults(&sim, "slow_paying") == 0)
        sleep_ms(5);
    queried = sim_ask(&sim, NULL, "/v1/payments/K1", NULL, 10000);
    cancelled = sim_ask(&sim, "POST", "/v1/payments/K1/cancel", NULL, 10000);
    in_time = now_ms() - sent_ms < TRAVEL_MS;
    pthread_join(sender, NULL);
    if (in_time) {
        assert_int_equal(queried.status, status ? 200 : 404);
        expect_text(&queried, "status", status ? status : "not_found");
        assert_int_equal(cancelled.status, 200);
        expect_text(&cancelled, "outcome", "cancelled");
        assert_int_equal(sent.status, 200);
        expect_text(&sent, "code", "cancelled");
        assert_int_equal(ledger_count(&sim, NULL), 0);
    }
    answer_free(&sent);
    answer_free(&queried);
    answer_free(&cancelled);
    start_anew();
    return in_time;
}

TEST_IN(test_cancel_stops_travelling_sends, set_up, tear_down)
{
    for (size_t i = 0; i < 3; i++) {
        const char *kind = i == 0 ? "idempotent" : i == 1 ? "window" : "plain";

        while (!check_travelling(kind, TRAVEL_RULE("slow"), NULL))
            ;
        while (!check_travelling(kind, TRAVEL_RULE("slow_paying"), "pending"))
            ;
    }
}

static void expiring_expect(const char *channel_key, int64_t expires_at_ms, const char *field,
                            const char *value)
{
    char body[512];

    snprintf(body, sizeof(body),
             "{\"channel_key\":\"%s\",\"serial_no\":\"S1\",\"cust_no\":\"C1\",\"op_code\":"
             "\"WITHDRAW\",\"amount_minor\":7,\"currency\":\"EUR\",\"payee\":\"x\","
             "\"expires_at_ms\":%" PRId64 "}",
             channel_key, expires_at_ms);
    sim_expect(&sim, NULL, "/v1/pay", body, 200, field, value);
}

TEST_IN(test_expiry, set_up, tear_down)
{
    sim_start(&sim, idempotent);
    expiring_expect("K1", now_ms() - 1, "code", "expired");
    /* The first answer is final, a later expiry changes nothing. */
    expiring_expect("K1", now_ms() + 60000, "code", "expired");
    expiring_expect("K2", now_ms() + 60000, "outcome", "succeeded");
    expiring_expect("K2", now_ms() - 1, "outcome", "succeeded");
    /* It counts when the send arrives, not when it leaves. */
    sim_expect(&sim, NULL, "/v1/faults", "{\"kind\":\"slow\",\"delay_ms\":300}", 201, NULL, NULL);
    expiring_expect("K3", now_ms() + 100, "code", "expired");
    assert_int_equal(ledger_count(&sim, NULL), 1);
    assert_int_equal(ledger_count(&sim, "K2"), 1);
}

static void wait_for_status(const char *path, const char *wanted)
{
    int64_t limit_ms = now_ms() + PATIENCE_MS;

    for (;;) {
        struct answer answer = sim_ask(&sim, NULL, path, NULL, 10000);
        const char *status = json_string_value(json_object_get(answer.json, "status"));
        bool same = status && strcmp(status, wanted) == 0;

        answer_free(&answer);
        if (same)
            return;
        assert_true(now_ms() < limit_ms);
        sleep_ms(10);
    }
}

TEST_IN(test_accepted_survives_a_kill, set_up, tear_down)
{
    /* Long enough for all requests and a restart on a busy machine. */
    for (size_t i = 0; i < 3; i++) {
        sim_start(&sim, kinds[i]);
        sim_expect(&sim, NULL, "/v1/faults", "{\"kind\":\"accepted\",\"delay_ms\":6000}", 201, NULL,
                   NULL);
        sim_expect(&sim, NULL, "/v1/faults", "{\"kind\":\"accepted_declined\",\"delay_ms\":6000}",
                   201, NULL, NULL);
        sim_expect(&sim, NULL, "/v1/faults", "{\"kind\":\"accepted\",\"delay_ms\":6000}", 201, NULL,
                   NULL);
        pay_expect(&sim, "K1", 202, "outcome", "accepted");
        pay_expect(&sim, "K2", 202, "outcome", "accepted");
        pay_expect(&sim, "K3", 202, "outcome", "accepted");
        if (kinds[i] != plain)
            pay_expect(&sim, "K1", 202, "outcome", "accepted");
        sim_expect(&sim, "POST", "/v1/payments/K3/cancel", NULL, 200, "outcome", "cancelled");
        restart(kinds[i]);
        assert_int_equal(sim_stat(&sim, "accepted_open"), 2);
        sim_expect(&sim, NULL, "/v1/payments/K1", NULL, 200, "status", "pending");
        wait_for_status("/v1/payments/K1", "succeeded");
        wait_for_status("/v1/payments/K2", "failed");
        wait_for_status("/v1/payments/K3", "failed");
        restart(kinds[i]);
        assert_int_equal(sim_stat(&sim, "accepted_open"), 0);
        assert_int_equal(ledger_count(&sim, NULL), 1);
        assert_int_equal(ledger_count(&sim, "K1"), 1);
        start_anew();
    }
}

static size_t ignore(char *data, size_t size, size_t count, void *context)
{
    (void)data;
    (void)context;
    return size * count;
}

/* One connection serves many requests. */
TEST_IN(test_keep_alive, set_up, tear_down)
{
    CURL *curl = curl_easy_init();
    char url[128], *body = order_text("K1", "S1", "C1", 5);
    long connects, total = 0;

    sim_start(&sim, plain);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/v1/pay", sim.port);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, ignore);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(curl_easy_perform(curl), CURLE_OK);
        curl_easy_getinfo(curl, CURLINFO_NUM_CONNECTS, &connects);
        total += connects;
    }
    assert_int_equal(total, 1);
    assert_int_equal(ledger_count(&sim, "K1"), 50);
    curl_easy_cleanup(curl);
    free(body);
}

TEST_IN(test_download_is_the_export, set_up, tear_down)
{
    const char *const arguments[] = {"--export-csv", sim.ledger, NULL};
    struct answer answer;
    char *output;

    sim_start(&sim, plain);
    for (int i = 0; i < 5; i++)
        pay_expect(&sim, "K,\\\"1", 200, "outcome", "succeeded");
    sim_expect(&sim, NULL, "/v1/payments/K%2C%221", NULL, 200, "status", "succeeded");
    answer = sim_ask(&sim, NULL, "/v1/ledger", NULL, 10000);
    assert_int_equal(sim_run(arguments, &output), 0);
    assert_string_equal(answer.text, output);
    assert_int_equal(text_count(output, "Z,P0"), 5);
    assert_int_equal(text_count(output, ",\"K,\"\"1\",\"S-K,\"\"1\",C1,WITHDRAW,10000,EUR,"
                                        "\"DE02 1203, \"\"x\"\"\"\n"),
                     5);
    free(output);
    answer_free(&answer);
}

TESTS_OF(kinds, NULL, NULL)

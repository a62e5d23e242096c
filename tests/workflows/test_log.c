/*
 * One UUID through the life of a trade: the service's log, the worker's log, the rows and their
 * history.
 */
#include "house.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/layer.h>

#include <pthread.h>

#define LINES_MAX 512
#define CUSTOMER "4711-customer"

/* One process of the house, and its log. */
struct site {
    tl_client *client;
    tl_workflows *workflows;
    withdraw *withdraw;
    pthread_mutex_t mutex;
    /* Under the mutex. */
    struct line {
        tl_level level;
        char message[300], log_uuid[TL_UUID_TEXT], serial_no[TL_SERIAL_MAX + 1];
        char cust_no[TL_CUST_MAX + 1], trace_id[40];
        char currency[TL_CURRENCY + 1], batch[TL_BATCH_MAX + 1];
        int64_t amount_minor;
    } lines[LINES_MAX];
    unsigned count;
};

static house self;
static struct site service, office;

static void keep(void *context, const tl_log_line *from)
{
    struct site *site = context;
    struct line *to;

    pthread_mutex_lock(&site->mutex);
    if (site->count < LINES_MAX) {
        to = &site->lines[site->count++];
        to->level = from->level;
        snprintf(to->message, sizeof to->message, "%s", from->message);
        snprintf(to->log_uuid, sizeof to->log_uuid, "%s", from->log_uuid);
        snprintf(to->serial_no, sizeof to->serial_no, "%s", from->serial_no);
        snprintf(to->cust_no, sizeof to->cust_no, "%s", from->cust_no);
        snprintf(to->trace_id, sizeof to->trace_id, "%s", from->trace_id);
        snprintf(to->currency, sizeof to->currency, "%s", from->currency);
        snprintf(to->batch, sizeof to->batch, "%s", from->batch);
        to->amount_minor = from->amount_minor;
    }
    pthread_mutex_unlock(&site->mutex);
}

static void site_open(struct site *site, const char *program, withdraw_kind kind)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    withdraw_options sample = {.channel_url = self.url, .kind = kind, .window_ms = HOUSE_WINDOW_MS};

    memset(site, 0, sizeof *site);
    pthread_mutex_init(&site->mutex, NULL);
    options.config_file = database_option_file(self.db);
    options.program = program;
    options.log = keep;
    options.log_context = site;
    assert_status(tl_client_open(&site->client, &options), TL_OK);
    assert_status(tl_workflows_new(&site->workflows, site->client), TL_OK);
    sample.client = site->client;
    assert_status(withdraw_new(&site->withdraw, site->workflows, &sample), TL_OK);
}

static void site_close(struct site *site)
{
    tl_workflows_free(site->workflows);
    withdraw_free(site->withdraw);
    tl_client_close(site->client);
    pthread_mutex_destroy(&site->mutex);
}

static void open_sites(withdraw_kind kind)
{
    house_open(&self, kind, HOUSE_SETTINGS "log_cust=hashed\nlog_cust_key=0123456789abcdef\n",
               NULL);
    house_account(&self, CUSTOMER, 100000);
    site_open(&service, "service", kind);
    site_open(&office, "worker", kind);
}

FIXTURE(open_idempotent)
{
    open_sites(WITHDRAW_IDEMPOTENT);
}

FIXTURE(open_plain)
{
    open_sites(WITHDRAW_PLAIN);
}

FIXTURE(close_sites)
{
    site_close(&office);
    site_close(&service);
    house_close(&self);
}

static void withdraw_at(struct site *site, const char *serial, tl_status wanted)
{
    tl_client *client = self.client;
    tl_workflows *workflows = self.workflows;

    self.client = site->client;
    self.workflows = site->workflows;
    house_expect(&self, serial, CUSTOMER, 100, wanted);
    self.client = client;
    self.workflows = workflows;
}

/* The worker's process until nothing is in process any more. */
static void work(void)
{
    tl_worker *worker = house_worker(office.workflows, 2);

    AWAIT_WHILE(database_number(self.sql, "SELECT COUNT(*) FROM trade_lock WHERE "
                                          "status = 'P'") > 0);
    tl_worker_free(worker);
}

/* The site's lines about a trade, all of them under its UUID and without its customer; whether
 * there is one of this level with these words in it. */
static int told(struct site *site, const char *serial, const char *uuid, tl_level level,
                const char *words)
{
    int found = 0;

    pthread_mutex_lock(&site->mutex);
    assert_in_range(site->count, 1, LINES_MAX - 1);
    for (unsigned i = 0; i < site->count; i++) {
        const struct line *line = &site->lines[i];

        assert_null(strstr(line->message, CUSTOMER));
        assert_null(strstr(line->cust_no, CUSTOMER));
        assert_null(strstr(line->message, "Anna")); /* of the payload */
        if (strcmp(line->serial_no, serial) != 0)
            continue;
        if (strcmp(line->log_uuid, uuid) != 0)
            fail_msg("'%s' is under '%s', not '%s'", line->message, line->log_uuid, uuid);
        found |= line->level == level && strstr(line->message, words) != NULL;
    }
    pthread_mutex_unlock(&site->mutex);
    return found;
}

/* The UUID of the trade's ask, which every step of both its rows carries. */
static void only_uuid(const char *serial, char uuid[TL_UUID_TEXT])
{
    char *text = database_text(self.sql,
                               "SELECT first_log_no FROM trade_lock WHERE "
                               "serial_no = '%s' AND lane = 'S'",
                               serial);

    assert_non_null(text);
    snprintf(uuid, TL_UUID_TEXT, "%s", text);
    free(text);
    assert_int_equal(strlen(uuid), TL_UUID_TEXT - 1);
    text = database_text(self.sql,
                         "SELECT GROUP_CONCAT(step, ' ', COALESCE(log_no, 'none')) FROM "
                         "trade_lock_log WHERE serial_no = '%s' AND NOT log_no <=> '%s'",
                         serial, uuid);
    assert_string_equal(text != NULL ? text : "", "");
    free(text);
}

TEST_IN(one_uuid_through_a_trade_that_is_sent_again, open_idempotent, close_sites)
{
    char uuid[TL_UUID_TEXT];

    house_rule(&self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\"}");
    withdraw_at(&service, "W1", TL_IN_DOUBT);
    work();
    house_row(&self, "W1", "Y 1 2 -");
    only_uuid("W1", uuid);
    assert_true(told(&service, "W1", uuid, TL_INFO, "trade-sync lock granted"));
    assert_true(told(&service, "W1", uuid, TL_INFO, "execute answered UNKNOWN after "));
    assert_true(told(&service, "W1", uuid, TL_INFO, " ms (attempt 0, sends 1)"));
    assert_true(told(&service, "W1", uuid, TL_INFO, tl_status_text(TL_IN_DOUBT)));
    assert_true(told(&office, "W1", uuid, TL_INFO, "retry-compensation lock granted"));
    assert_true(told(&office, "W1", uuid, TL_INFO, "query answered NOT_FOUND after "));
    assert_true(told(&office, "W1", uuid, TL_INFO, "armed: send 2 may leave within "));
    assert_true(told(&office, "W1", uuid, TL_INFO, "execute answered SUCCEEDED after "));
    assert_true(told(&office, "W1", uuid, TL_INFO, ", sends 2, reference "));
    assert_true(told(&office, "W1", uuid, TL_INFO, tl_status_text(TL_SUCCEEDED)));
    house_books(&self, 1);
}

TEST_IN(one_uuid_through_a_trade_that_is_cancelled, open_plain, close_sites)
{
    char uuid[TL_UUID_TEXT];

    house_rule(&self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\"}");
    withdraw_at(&service, "W1", TL_IN_DOUBT);
    work();
    house_row(&self, "W1", "F 1 1 C");
    only_uuid("W1", uuid);
    assert_true(told(&service, "W1", uuid, TL_INFO, "execute answered UNKNOWN after "));
    assert_true(told(&office, "W1", uuid, TL_INFO, "cancel answered CANCELLED after "));
    assert_true(told(&office, "W1", uuid, TL_INFO, tl_status_text(TL_FAILED)));
}

/* Two trades of two asks do not mix, whichever thread of the worker takes them. */
TEST_IN(each_trade_has_its_own, open_idempotent, close_sites)
{
    char uuids[8][TL_UUID_TEXT], serial[8];

    house_rule(&self, "{\"kind\":\"drop_after\",\"count\":8}");
    for (int i = 0; i < 8; i++) {
        snprintf(serial, sizeof serial, "W%d", i);
        withdraw_at(&service, serial, TL_IN_DOUBT);
    }
    work();
    for (int i = 0; i < 8; i++) {
        snprintf(serial, sizeof serial, "W%d", i);
        only_uuid(serial, uuids[i]);
        assert_true(told(&service, serial, uuids[i], TL_INFO, "execute answered"));
        assert_true(told(&office, serial, uuids[i], TL_INFO, "query answered SUCCEEDED"));
        for (int j = 0; j < i; j++)
            assert_string_not_equal(uuids[i], uuids[j]);
    }
    house_books(&self, 8);
}

#define TRACE_ID "0af7651916cd43dd8448eb211c80319c"
#define TRACE "00-" TRACE_ID "-b7ad6b7169203331-01"

/* How many lines the site has about the trade; all of them, and no others, have this trace id. */
static unsigned traced(struct site *site, const char *serial, const char *trace_id)
{
    unsigned count = 0;

    pthread_mutex_lock(&site->mutex);
    for (unsigned i = 0; i < site->count; i++) {
        const struct line *line = &site->lines[i];

        if (line->serial_no[0] == '\0')
            assert_string_equal(line->trace_id, "");
        if (strcmp(line->serial_no, serial) != 0)
            continue;
        count++;
        if (strcmp(line->trace_id, trace_id) != 0)
            fail_msg("'%s' is of trace '%s', not '%s'", line->message, line->trace_id, trace_id);
    }
    pthread_mutex_unlock(&site->mutex);
    return count;
}

/* Each line about a trade, in the service and in the worker, has its trace id; about another trade
 * it has that one's, or none.  Whoever asks again under another trace is told under that. */
TEST_IN(one_trace_through_a_trade, open_idempotent, close_sites)
{
    static const char other[] = "00-11111111111111111111111111111111-2222222222222222-00";

    house_rule(&self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\",\"count\":3}");
    self.traceparent = TRACE;
    withdraw_at(&service, "W1", TL_IN_DOUBT);
    self.traceparent = NULL;
    withdraw_at(&service, "W2", TL_IN_DOUBT);
    self.traceparent = other;
    withdraw_at(&service, "W3", TL_IN_DOUBT);
    work();
    self.traceparent = NULL;
    withdraw_at(&service, "W1", TL_ALREADY_DONE);
    assert_true(traced(&service, "W1", TRACE_ID) >= 3);
    assert_true(traced(&office, "W1", TRACE_ID) >= 5);
    assert_true(traced(&service, "W2", "") >= 3);
    assert_true(traced(&office, "W2", "") >= 5);
    assert_true(traced(&service, "W3", "11111111111111111111111111111111") >= 3);
    assert_true(traced(&office, "W3", "11111111111111111111111111111111") >= 5);
}

/* How many lines the site has about the trade; all of them, and no others, say this. */
static unsigned said(struct site *site, const char *serial, int64_t amount_minor,
                     const char *currency, const char *batch)
{
    unsigned count = 0;

    pthread_mutex_lock(&site->mutex);
    for (unsigned i = 0; i < site->count; i++) {
        const struct line *line = &site->lines[i];

        if (line->serial_no[0] == '\0')
            assert_true(line->amount_minor == 0 && line->currency[0] == '\0' &&
                        line->batch[0] == '\0');
        if (strcmp(line->serial_no, serial) != 0)
            continue;
        count++;
        if (line->amount_minor != amount_minor || strcmp(line->currency, currency) != 0 ||
            strcmp(line->batch, batch) != 0)
            fail_msg("'%s' says %lld %s, batch '%s'", line->message, (long long)line->amount_minor,
                     line->currency, line->batch);
    }
    pthread_mutex_unlock(&site->mutex);
    return count;
}

/* Each line about a trade, in the service and in the worker, says its amount and its batch, each of
 * them alone too.  Whoever asks again and names others is told under those of the trade. */
TEST_IN(amount_and_batch_through_a_trade, open_idempotent, close_sites)
{
    house_rule(&self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\",\"count\":4}");
    self.batch = "payroll \"11\"]";
    withdraw_at(&service, "W1", TL_IN_DOUBT);
    self.says_nothing = 1;
    withdraw_at(&service, "W2", TL_IN_DOUBT);
    self.batch = NULL;
    withdraw_at(&service, "W3", TL_IN_DOUBT);
    self.says_nothing = 0;
    withdraw_at(&service, "W4", TL_IN_DOUBT);
    work();
    self.batch = "another";
    withdraw_at(&service, "W1", TL_ALREADY_DONE);
    withdraw_at(&service, "W3", TL_ALREADY_DONE);
    assert_true(said(&service, "W1", 100, "EUR", "payroll \"11\"]") >= 3);
    assert_true(said(&office, "W1", 100, "EUR", "payroll \"11\"]") >= 5);
    assert_true(said(&service, "W2", 0, "", "payroll \"11\"]") >= 3);
    assert_true(said(&office, "W2", 0, "", "payroll \"11\"]") >= 5);
    assert_true(said(&service, "W3", 0, "", "") >= 3);
    assert_true(said(&office, "W3", 0, "", "") >= 5);
    assert_true(said(&service, "W4", 100, "EUR", "") >= 3);
    assert_true(said(&office, "W4", 100, "EUR", "") >= 5);
}

/* A janitor of any process tells of a dead holder under the trade's trace. */
TEST_IN(the_janitor_tells_the_trace, open_idempotent, close_sites)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_key key = {"DEAD", CUSTOMER, WITHDRAW_OP};
    tl_lock *lock = NULL;

    house_leave(&self);
    options.max_hold_ms = 1;
    options.traceparent = TRACE;
    options.amount_minor = 7;
    options.currency = "JPY";
    options.batch = "monday";
    assert_status(tl_lock_new(&lock, service.client, &key, &options), TL_OK);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    tl_lock_free(lock);
    AWAIT_WHILE(traced(&service, "DEAD", TRACE_ID) + traced(&office, "DEAD", TRACE_ID) < 2);
    assert_true(said(&service, "DEAD", 7, "JPY", "monday") +
                    said(&office, "DEAD", 7, "JPY", "monday") >=
                2);
}

/* A thread that works for one trade tells of another, which has no trace, without one. */
TEST_IN(another_trade_without_a_trace, open_idempotent, close_sites)
{
    const tl_key key = {"OTHER", CUSTOMER, "OTHER"};
    const tl_said other = {
        .amount_minor = 9, .currency = "USD", .batch = "b", .traceparent = TRACE};
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_evidence evidence = TL_EVIDENCE_INIT;
    tl_ending paid = TL_ENDING_INIT;
    tl_lock *lock = NULL;

    paid.outcome = TL_OUTCOME_SUCCESS;
    options.max_hold_ms = 10000;
    evidence.key = key;
    evidence.epoch = 2;
    evidence.outcome = "SUCCEEDED";
    evidence.source = "test";
    tl_log_context_set(&other);
    assert_status(tl_lock_new(&lock, service.client, &key, &options), TL_OK);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    assert_status(tl_lock_finish(lock, &paid), TL_SUCCEEDED);
    tl_lock_free(lock);
    assert_true(traced(&service, "OTHER", "") >= 2);
    assert_status(tl_evidence_add(service.client, &evidence), TL_IN_CONFLICT);
    assert_true(traced(&service, "OTHER", "") >= 3);
    assert_true(said(&service, "OTHER", 0, "", "") >= 3);
    tl_work_end(0);
}

/* What a service said of its thread holds again behind each call, also a refused one. */
TEST_IN(a_thread_keeps_its_trace, open_idempotent, close_sites)
{
    const tl_said mine = {
        .amount_minor = 9, .currency = "USD", .batch = "mine", .traceparent = TRACE};
    tl_answer answer = TL_ANSWER_INIT;

    tl_log_context_set(&mine);
    withdraw_at(&service, "W1", TL_SUCCEEDED);
    assert_string_equal(tl_log_trace(), TRACE);
    assert_int_equal(tl_log_context()->amount_minor, 9);
    assert_string_equal(tl_log_context()->currency, "USD");
    assert_string_equal(tl_log_context()->batch, "mine");
    assert_true(traced(&service, "W1", "") >= 2);
    assert_true(said(&service, "W1", 100, "EUR", "") >= 2);
    assert_int_equal(tl_work_begin(), 1);
    tl_log_trace_set(TRACE);
    self.traceparent = "00-11111111111111111111111111111111-2222222222222222-00";
    withdraw_at(&service, "W2", TL_SUCCEEDED);
    self.traceparent = NULL;
    assert_string_equal(tl_log_trace(), TRACE);
    assert_status(tl_workflow_run(service.workflows, NULL, &answer), TL_INVALID);
    assert_string_equal(tl_log_trace(), TRACE);
    assert_status(tl_workflow_settle(service.workflows, &answer), TL_WRONG_STATE);
    assert_string_equal(tl_log_trace(), TRACE);
    tl_work_end(0);
    assert_string_equal(tl_log_trace(), "");
}

static void pay_in_vain(void *context, int number)
{
    tl_answer answer = TL_ANSWER_INIT;

    (void)context;
    (void)house_run(&self, text_of("VAIN%d", number).is, CUSTOMER, 100, 0, &answer);
    tl_answer_clear(&answer);
}

/* Five threads fail together: that is said, and not that it took no time. */
TEST_IN(a_channel_fails_five_threads_at_once, open_idempotent, close_sites)
{
    house_rule(&self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\",\"count\":5}");
    crew_threads(5, pay_in_vain, NULL);
    assert_true(house_alarmed(&self, "has been failing for "));
    assert_false(house_alarmed(&self, "failing for 0."));
}

TESTS_OF(log, NULL, NULL)

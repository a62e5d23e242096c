#include "house.h"

#include "support/theme.h"

#include <pthread.h>

static const char *const kind_names[] = {"idempotent", "window", "plain"};

/* Alarms are kept for the tests; the rest only helps whoever reads a failure. */
static void keep_alarm(void *context, const tl_log_line *line)
{
    house *self = context;

    if (line->level != TL_ALARM)
        return;
    pthread_mutex_lock(&self->mutex);
    if (self->alarm_count < ALARMS_MAX)
        snprintf(self->alarms[self->alarm_count++], sizeof self->alarms[0], "%s (%s)",
                 line->message, line->serial_no);
    pthread_mutex_unlock(&self->mutex);
}

int house_alarmed(house *self, const char *part)
{
    int found = 0;

    pthread_mutex_lock(&self->mutex);
    for (unsigned i = 0; i < self->alarm_count; i++)
        found |= strstr(self->alarms[i], part) != NULL;
    pthread_mutex_unlock(&self->mutex);
    return found;
}

static void open_client(house *self)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    withdraw_options sample = {.channel_url = self->url,
                               .kind = self->kind,
                               .window_ms = HOUSE_WINDOW_MS,
                               .exclusive = self->exclusive};
    tl_status status;

    options.config_file = database_option_file(self->db);
    options.program = "test";
    options.log = keep_alarm;
    options.log_context = self;
    status = tl_client_open(&self->client, &options);
    if (status == TL_OK)
        status = tl_workflows_new(&self->workflows, self->client);
    sample.client = self->client;
    if (status == TL_OK && self->sim.port != 0)
        status = withdraw_new(&self->withdraw, self->workflows, &sample);
    if (status != TL_OK)
        server_panic("no workflow: %s: %s", tl_status_name(status), tl_error_message());
}

void house_leave(house *self)
{
    tl_workflows_free(self->workflows);
    withdraw_free(self->withdraw);
    tl_client_close(self->client);
    self->workflows = NULL;
    self->withdraw = NULL;
    self->client = NULL;
}

static void make_tables(house *self)
{
    char path[512], *schema;

    snprintf(path, sizeof path, "%s/workflows/withdraw/schema.sql", test_source_dir());
    schema = file_read(path);
    database_run(self->sql, "%s", schema);
    free(schema);
}

static void make_database(house *self, const char *settings, server *where)
{
    memset(self, 0, sizeof *self);
    pthread_mutex_init(&self->mutex, NULL);
    self->own = where;
    self->db = database_new(where != NULL ? where : server_shared(),
                            settings != NULL ? settings : HOUSE_SETTINGS);
    self->sql = database_connect(self->db);
}

void house_open_bare(house *self, const char *settings, server *where)
{
    make_database(self, settings, where);
    open_client(self);
}

void house_open(house *self, withdraw_kind kind, const char *settings, server *where)
{
    char window[32];
    const char *const arguments[] = {
        "--kind", kind_names[kind], "--window-ms", window, "--settle-ms",
        "100",    "--slow-ms",      "100",         NULL};

    snprintf(window, sizeof window, "%d", HOUSE_WINDOW_MS);
    make_database(self, settings, where);
    self->kind = kind;
    make_tables(self);
    sim_prepare(&self->sim);
    sim_start(&self->sim, arguments);
    snprintf(self->url, sizeof self->url, "http://127.0.0.1:%u", self->sim.port);
    sim_name_in(&self->sim, database_option_file(self->db), "channel=idempotent\n");
    open_client(self);
}

void house_close(house *self)
{
    house_leave(self);
    if (self->sim.port != 0)
        sim_remove(&self->sim);
    mysql_close(self->sql);
    database_free(self->db);
    pthread_mutex_destroy(&self->mutex);
}

void house_reopen(house *self)
{
    house_leave(self);
    open_client(self);
}

tl_client *house_operator(const house *self)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.config_file = database_option_file(self->db);
    options.flags = TL_CLIENT_NO_SESSION;
    assert_status(tl_client_open(&client, &options), TL_OK);
    return client;
}

void house_account(house *self, const char *cust, int64_t balance_minor)
{
    database_run(self->sql,
                 "INSERT INTO account (cust_no, currency, balance_minor) "
                 "VALUES ('%s', 'EUR', %lld)",
                 cust, (long long)balance_minor);
}

tl_status house_run(house *self, const char *serial, const char *cust, int64_t amount_minor,
                    uint32_t reclaim_epoch, tl_answer *answer)
{
    tl_request request = TL_REQUEST_INIT;
    withdraw_order order = {.amount_minor = amount_minor, .currency = "EUR", .payee = "Anna"};
    char *payload = withdraw_order_write(&order);
    tl_status status;

    request.key = (tl_key){serial, cust, WITHDRAW_OP};
    request.payload = payload;
    request.payload_size = strlen(payload);
    if (!self->says_nothing) {
        request.amount_minor = amount_minor;
        request.currency = "EUR";
    }
    request.batch = self->batch;
    request.traceparent = self->traceparent;
    request.reclaim_epoch = reclaim_epoch;
    request.wait_ms = self->wait_ms;
    status = tl_workflow_run(self->workflows, &request, answer);
    free(payload);
    return status;
}

void house_expect(house *self, const char *serial, const char *cust, int64_t amount_minor,
                  tl_status expected)
{
    tl_answer answer = TL_ANSWER_INIT;

    assert_status(house_run(self, serial, cust, amount_minor, 0, &answer), expected);
    tl_answer_clear(&answer);
}

/* Trades that a worker has to do with still. */
static long long count_open(house *self)
{
    return database_number(self->sql, "SELECT COUNT(*) FROM trade_lock_state WHERE "
                                      "lane = 'S' AND status = 'P' AND state <> 'PARKED'");
}

tl_worker *house_worker(tl_workflows *workflows, unsigned threads)
{
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_worker *worker = NULL;
    tl_status status;

    options.threads = threads;
    options.idle_max_ms = 50;
    status = tl_worker_start(&worker, workflows, &options);
    if (status != TL_OK)
        server_panic("no worker: %s: %s", tl_status_name(status), tl_error_message());
    return worker;
}

tl_worker_counts house_work(house *self, unsigned threads, int64_t wait_ms)
{
    tl_worker_counts counts = {.version = TL_WORKER_COUNTS_VERSION};
    int64_t end_ms = now_ms() + wait_ms;
    tl_worker *worker = house_worker(self->workflows, threads);

    while (count_open(self) > 0 && now_ms() < end_ms)
        usleep(20000);
    tl_worker_stop(worker);
    assert_status(tl_worker_wait(worker, PATIENCE_MS), TL_OK);
    assert_status(tl_worker_count(worker, &counts), TL_OK);
    tl_worker_free(worker);
    assert_int_equal(counts.in_flight, 0);
    return counts;
}

void house_leave_in_doubt(house *self, const char *op, const char *channel, const char *prefix,
                          int count)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_ending ending = TL_ENDING_INIT;

    options.max_hold_ms = PATIENCE_MS;
    options.channel = channel;
    options.payload = "x";
    options.payload_size = 1;
    for (int i = 0; i < count; i++) {
        const struct text serial = text_of("%s%d", prefix, i);
        const tl_key key = {serial.is, "C1", op};
        tl_lock *lock = NULL;

        assert_status(tl_lock_new(&lock, self->client, &key, &options), TL_OK);
        assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
        assert_status(tl_lock_finish(lock, &ending), TL_IN_DOUBT);
        tl_lock_free(lock);
    }
}

void house_row(house *self, const char *serial, const char *expected)
{
    database_expect_text(self->sql, expected,
                         "SELECT CONCAT_WS(' ', status, epoch, sends, proof) FROM trade_lock "
                         "WHERE serial_no = '%s' AND lane = 'S'",
                         serial);
}

void house_retry_row(house *self, const char *serial, const char *status, const char *parked)
{
    database_expect_text(self->sql, text_of("%s %s", status, parked).is,
                         "SELECT CONCAT(status, ' ', COALESCE(parked, '')) FROM trade_lock "
                         "WHERE serial_no = '%s' AND lane = 'R'",
                         serial);
}

void house_key(house *self, const char *serial, char key[TL_CHANNEL_KEY_MAX + 1])
{
    char *text = database_text(
        self->sql, "SELECT channel_key FROM trade_lock WHERE serial_no = '%s' AND lane = 'S'",
        serial);

    assert_non_null(text);
    snprintf(key, TL_CHANNEL_KEY_MAX + 1, "%s", text);
    free(text);
}

void house_balance(house *self, const char *cust, const char *expected)
{
    database_expect_text(self->sql, expected,
                         "SELECT CONCAT(balance_minor, ' ', frozen_minor) FROM account WHERE "
                         "cust_no = '%s' AND currency = 'EUR'",
                         cust);
}

void house_rule(house *self, const char *rule)
{
    struct answer answer = sim_ask(&self->sim, NULL, "/v1/faults", rule, 5000);

    if (answer.status != 201)
        fail_msg("rule %s: %ld %s", rule, answer.status, answer.text);
    answer_free(&answer);
}

/* serial, customer, amount, reference of each ledger line is a payment of the channel. */
void house_books(house *self, int64_t payments)
{
    MYSQL_RES *result;
    MYSQL_ROW row;
    char *paid;

    assert_int_equal(sim_stat(&self->sim, "payments"), payments);
    assert_int_equal(sim_stat(&self->sim, "paid_twice"), 0);
    if (mysql_query(self->sql, "SELECT serial_no, channel_ref FROM ledger") != 0)
        fail_msg("%s", mysql_error(self->sql));
    result = mysql_store_result(self->sql);
    assert_int_equal(mysql_num_rows(result), payments);
    paid = ledger_text(&self->sim);
    while ((row = mysql_fetch_row(result)) != NULL) {
        assert_int_equal(ledger_holds(paid, row[0]), 1);
        assert_int_equal(ledger_holds(paid, row[1]), 1);
    }
    mysql_free_result(result);
    free(paid);
}

#include "bank.h"

#include "support/crew.h"
#include "support/theme.h"

void bank_open(bank *self, size_t count)
{
    static const char *const arguments[] = {"--kind",    "idempotent", "--settle-ms", "100",
                                            "--slow-ms", "100",        NULL};

    memset(self, 0, sizeof *self);
    shards_open(&self->shards, count);
    sim_prepare(&self->sim);
    sim_start(&self->sim, arguments);
    snprintf(self->url, sizeof self->url, "http://127.0.0.1:%u", self->sim.port);
}

void bank_close(bank *self)
{
    sim_remove(&self->sim);
    shards_close(&self->shards);
}

static tl_status open_sample(void *context, const char *shard, tl_client *client,
                             tl_workflows *registry, void **state)
{
    const branch *self = context;
    withdraw_options sample = {0};

    (void)shard;
    sample.client = client;
    sample.channel_url = self->of->url;
    sample.kind = WITHDRAW_IDEMPOTENT;
    return withdraw_new((withdraw **)state, registry, &sample);
}

static void close_sample(void *context, void *state)
{
    (void)context;
    withdraw_free(state);
}

void branch_open(branch *self, bank *of, unsigned calls)
{
    tl_fleet_workflows_options options = TL_FLEET_WORKFLOWS_OPTIONS_INIT;

    self->of = of;
    CREW_STATUS(shards_fleet(&of->shards, &self->fleet), TL_OK);
    options.fleet = self->fleet;
    options.open = open_sample;
    options.close = close_sample;
    options.context = self;
    options.calls = calls;
    CREW_STATUS(tl_fleet_workflows_new(&self->workflows, &options), TL_OK);
}

void branch_close(branch *self)
{
    tl_fleet_workflows_free(self->workflows);
    CREW_CHECK(tl_error_message()[0] == '\0');
    tl_fleet_close(self->fleet);
    CREW_CHECK(tl_error_message()[0] == '\0');
}

tl_status branch_pay(branch *self, const char *serial, const char *cust_no, int64_t amount_minor)
{
    withdraw_order order = {.amount_minor = amount_minor, .currency = "EUR", .payee = "Anna"};
    tl_request request = TL_REQUEST_INIT;
    tl_answer answer = TL_ANSWER_INIT;
    char *payload = withdraw_order_write(&order);
    tl_status status;

    request.key = (tl_key){serial, cust_no, WITHDRAW_OP};
    request.payload = payload;
    request.payload_size = strlen(payload);
    request.amount_minor = amount_minor;
    request.currency = "EUR";
    status = tl_fleet_workflow_run(self->workflows, &request, &answer);
    while (status == TL_UNKNOWN && answer.run != NULL) {
        tl_status settled = tl_fleet_workflow_settle(self->workflows, &answer);

        if (settled == TL_WRONG_STATE || settled == TL_UNKNOWN)
            break;
        status = settled;
    }
    tl_answer_clear(&answer);
    free(payload);
    return status;
}

void bank_rule(bank *self, const char *rule)
{
    struct answer answer = sim_ask(&self->sim, NULL, "/v1/faults", rule, 5000);

    if (answer.status != 201)
        fail_msg("rule %s: %ld %s", rule, answer.status, answer.text);
    answer_free(&answer);
}

long long bank_open_trades(bank *self)
{
    long long open = 0;

    for (size_t i = 0; i < self->shards.count; i++)
        open += database_number(self->shards.sql[i],
                                "SELECT COUNT(*) FROM trade_lock_state WHERE lane = 'S' AND "
                                "status = 'P' AND state <> 'PARKED'");
    return open;
}

static void check_ledger(bank *self, size_t i, const char *payments)
{
    char wanted[2][192];
    MYSQL_RES *result;
    MYSQL_ROW row;

    if (mysql_query(self->shards.sql[i], "SELECT serial_no, channel_ref FROM ledger") != 0)
        fail_msg("%s", mysql_error(self->shards.sql[i]));
    result = mysql_store_result(self->shards.sql[i]);
    while ((row = mysql_fetch_row(result)) != NULL) {
        for (unsigned k = 0; k < 2; k++) {
            snprintf(wanted[k], sizeof wanted[k], ",%s,", row[k]);
            if (text_count(payments, wanted[k]) != 1)
                fail_msg("%s is %ld times in the channel's ledger", row[k],
                         (long)text_count(payments, wanted[k]));
        }
    }
    mysql_free_result(result);
}

void bank_books(bank *self, int64_t payments)
{
    const char *const arguments[] = {"--export-csv", self->sim.ledger, NULL};
    long long booked = 0, money = 0;
    char *paid;

    assert_int_equal(sim_run(arguments, &paid), 0);
    assert_int_equal(sim_stat(&self->sim, "payments"), payments);
    assert_int_equal(sim_stat(&self->sim, "paid_twice"), 0);
    for (size_t i = 0; i < self->shards.count; i++) {
        MYSQL *sql = self->shards.sql[i];

        booked += database_number(sql, "SELECT COUNT(*) FROM ledger");
        money += database_number(sql, "SELECT COALESCE(SUM(amount_minor), 0) FROM ledger");
        /* A customer of another shard has nothing here. */
        database_expect(sql, 0,
                        "SELECT COUNT(*) FROM trade_lock t LEFT JOIN tl_slot s ON s.slot = "
                        "tl_customer_slot(t.cust_no) AND s.state = 'owned' WHERE s.slot IS NULL");
        database_expect(sql, 0,
                        "SELECT COUNT(*) FROM account a LEFT JOIN (SELECT cust_no, "
                        "SUM(amount_minor) AS paid FROM ledger GROUP BY cust_no) l ON l.cust_no = "
                        "a.cust_no WHERE a.balance_minor <> 100000000 - COALESCE(l.paid, 0)");
        database_expect(sql, database_number(sql, "SELECT COUNT(*) FROM ledger"),
                        "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'Y'");
        check_ledger(self, i, paid);
    }
    free(paid);
    assert_int_equal(booked, payments);
    assert_true(money > 0);
}

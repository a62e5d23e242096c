/* What a request says of its amount reaches every callback of its trade: of the service, of a
 * worker in another process' place, and of the next epoch. */
#include "house.h"

#include "cmocka_all.h"

#include <string.h>

static int open_house(void **state)
{
    static house self;

    house_open(&self, WITHDRAW_IDEMPOTENT, NULL, NULL);
    *state = &self;
    return 0;
}

static int close_house(void **state)
{
    house_close(*state);
    return 0;
}

enum { PREPARED, EXECUTED, QUERIED, APPLIED, FAILED_AND_APPLIED, CALLBACKS };

static struct {
    int64_t amount_minor[CALLBACKS], created_us[CALLBACKS];
    char currency[CALLBACKS][TL_CURRENCY + 1];
    tl_query answer;
} said;

static void note(int callback, const tl_attempt *attempt)
{
    said.amount_minor[callback] = attempt->amount_minor;
    said.created_us[callback] = attempt->created_us;
    strcpy(said.currency[callback], attempt->currency);
}

static tl_status note_prepare(void *context, const tl_attempt *attempt, tl_reply *reply,
                              struct st_mysql *connection)
{
    (void)context;
    (void)reply;
    (void)connection;
    note(PREPARED, attempt);
    return TL_OK;
}

static tl_execute note_execute(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)reply;
    note(EXECUTED, attempt);
    return attempt->epoch == 1 ? TL_EXECUTE_UNKNOWN : TL_EXECUTE_SUCCEEDED;
}

static tl_query note_query(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    reply->retryable = 1;
    note(QUERIED, attempt);
    return said.answer;
}

static tl_status note_success(void *context, const tl_attempt *attempt, const tl_reply *reply,
                              struct st_mysql *connection)
{
    (void)context;
    (void)reply;
    (void)connection;
    note(APPLIED, attempt);
    return TL_OK;
}

static tl_status note_failure(void *context, const tl_attempt *attempt, const tl_reply *reply,
                              tl_proof proof, struct st_mysql *connection)
{
    (void)proof;
    (void)context;
    (void)reply;
    (void)connection;
    note(FAILED_AND_APPLIED, attempt);
    return TL_OK;
}

static void register_notes(house *self)
{
    tl_workflow workflow = TL_WORKFLOW_INIT;

    workflow.op_code = "PAYOUT";
    workflow.channel.name = "c";
    workflow.channel.idempotent = 1;
    workflow.channel.can_query = 1;
    workflow.prepare = note_prepare;
    workflow.execute = note_execute;
    workflow.query = note_query;
    workflow.apply_success = note_success;
    workflow.apply_failure = note_failure;
    assert_status(tl_workflow_register(self->workflows, &workflow), TL_OK);
}

static void run_payout(house *self, int64_t amount_minor, const char *currency, uint32_t epoch,
                       tl_status expected)
{
    tl_request request = TL_REQUEST_INIT;
    tl_answer answer = TL_ANSWER_INIT;

    request.key = (tl_key){"W1", "C1", "PAYOUT"};
    request.payload = "x";
    request.payload_size = 1;
    request.amount_minor = amount_minor;
    request.currency = currency;
    request.reclaim_epoch = epoch;
    memset(&said.amount_minor, 0, sizeof said.amount_minor);
    memset(&said.created_us, 0, sizeof said.created_us);
    memset(&said.currency, 0, sizeof said.currency);
    assert_status(tl_workflow_run(self->workflows, &request, &answer), expected);
    tl_answer_clear(&answer);
}

static void assert_noted(int callback, int64_t amount_minor, const char *currency,
                         int64_t created_us)
{
    assert_string_equal(said.currency[callback], currency);
    assert_true(said.amount_minor[callback] == amount_minor);
    assert_true(said.created_us[callback] == created_us);
}

/* What the first request said, in each callback, by the service, a worker and a trade that is tried
 * anew by a request that says something else. */
static void tell_all_epochs(house *self, int64_t amount_minor, const char *currency)
{
    const char *told = currency != NULL ? currency : "";
    int64_t created_us;

    register_notes(self);
    said.answer = TL_QUERY_FAILED;
    run_payout(self, amount_minor, currency, 0, TL_IN_DOUBT);
    created_us = database_number(self->sql, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', "
                                            "created_at) FROM trade_lock WHERE op_code = 'PAYOUT'");
    assert_noted(PREPARED, amount_minor, told, 0);
    assert_noted(EXECUTED, amount_minor, told, created_us);
    house_reopen(self);
    register_notes(self);
    house_work(self, 1, HOUSE_PATIENCE_MS);
    assert_noted(QUERIED, amount_minor, told, created_us);
    assert_noted(FAILED_AND_APPLIED, amount_minor, told, created_us);
    run_payout(self, 3, "USD", 1, TL_SUCCEEDED);
    assert_noted(PREPARED, amount_minor, told, created_us);
    assert_noted(EXECUTED, amount_minor, told, created_us);
    assert_noted(APPLIED, amount_minor, told, created_us);
}

static void every_attempt_is_told_the_amount(void **state)
{
    tell_all_epochs(*state, 1050, "EUR");
}

static void nothing_is_told_of_what_was_not_said(void **state)
{
    tell_all_epochs(*state, 0, NULL);
}

static void half_an_amount_is_refused(void **state)
{
    house *self = *state;

    register_notes(self);
    run_payout(self, 5, NULL, 0, TL_INVALID);
    assert_non_null(strstr(tl_error_message(), "both, or neither"));
    run_payout(self, -5, "EUR", 0, TL_INVALID);
    assert_non_null(strstr(tl_error_message(), "amount_minor is -5"));
    run_payout(self, 5, "euro", 0, TL_INVALID);
    assert_int_equal(database_number(self->sql, "SELECT COUNT(*) FROM trade_lock"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_attempt_is_told_the_amount, open_house, close_house),
        cmocka_unit_test_setup_teardown(nothing_is_told_of_what_was_not_said, open_house,
                                        close_house),
        cmocka_unit_test_setup_teardown(half_an_amount_is_refused, open_house, close_house),
    };

    return server_report(cmocka_run_group_tests(tests, NULL, NULL));
}

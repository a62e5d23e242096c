/*
 * Business rows that are declared: what each callback of a workflow writes, what refuses an ask or
 * spoils it, and what whoever asks twice hears.  After each answer the rows are compared with it.
 */
#include "payout.h"

#include "support/theme.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* ------------------------------------------------------------------------ what is written -- */

TEST_IN(each_moment_has_its_rows, payout_house, payout_house_close)
{
    house *self = *state;

    payout_pay(self, "W1", 100, TL_SUCCEEDED);
    assert_string_equal(tl_error_message(), "");
    house_row(self, "W1", "Y 1 1 -");
    payout_purse(self, "900 0");
    payout_entries(self, "W1", "1P 1Y");

    payout_say(TL_EXECUTE_DECLINED, TL_QUERY_UNREACHABLE);
    payout_pay(self, "W2", 200, TL_FAILED);
    house_row(self, "W2", "F 1 1 D");
    payout_purse(self, "900 0");
    payout_entries(self, "W2", "1P 1F");
    database_expect(
        self->sql, 1,
        "SELECT COUNT(*) FROM entry WHERE serial_no = 'W2' AND what = 'F' AND proof = %d",
        TL_PROOF_DECLINED);
}

/* What a statement can name without being given it is what the row says. */
TEST_IN(the_trade_knows_its_own_values, payout_house, payout_house_close)
{
    house *self = *state;
    tl_workflow workflow = payout_workflow();
    tl_request other = payout_request("W2", 100);

    workflow.op_code = other.key.op_code = "PAYOUT-2";
    assert_status(tl_workflow_register(self->workflows, &workflow), TL_OK);
    payout_pay(self, "W1", 100, TL_SUCCEEDED);
    payout_expect(self, &other, TL_SUCCEEDED, NULL);
    database_expect(
        self->sql, 4,
        "SELECT COUNT(*) FROM entry e JOIN trade_lock t ON t.serial_no = e.serial_no AND t.cust_no "
        "= e.cust_no AND t.op_code = e.op AND t.epoch = e.epoch AND t.amount_minor = e.amount AND "
        "t.currency = e.currency AND t.channel_key = e.channel_key WHERE t.lane = 'S'");
    database_expect(self->sql, 4,
                    "SELECT COUNT(*) FROM entry WHERE (serial_no, op, what, ref) IN (('W1', "
                    "'PAYOUT', 'P', ''), ('W1', 'PAYOUT', 'Y', 'W1'), ('W2', 'PAYOUT-2', 'P', ''), "
                    "('W2', 'PAYOUT-2', 'Y', 'W2'))");
}

TEST_IN(the_worker_writes_the_same, payout_house, payout_house_close)
{
    house *self = *state;

    payout_say(TL_EXECUTE_UNKNOWN, TL_QUERY_SUCCEEDED);
    payout_pay(self, "W1", 100, TL_IN_DOUBT);
    payout_entries(self, "W1", "1P");
    payout_purse(self, "1000 100");
    house_work(self, 1, PATIENCE_MS);
    house_row(self, "W1", "Y 1 1 -");
    payout_entries(self, "W1", "1P 1Y");
    payout_purse(self, "900 0");

    payout_say(TL_EXECUTE_UNKNOWN, TL_QUERY_FAILED);
    payout_pay(self, "W2", 100, TL_IN_DOUBT);
    house_work(self, 1, PATIENCE_MS);
    house_row(self, "W2", "F 1 1 D");
    payout_entries(self, "W2", "1P 1F");
    payout_purse(self, "900 0");
}

static tl_status count_by_select(void *context, const tl_attempt *attempt, const tl_reply *reply,
                                 struct st_mysql *connection)
{
    char text[160];

    (void)context;
    (void)reply;
    snprintf(text, sizeof text,
             "INSERT INTO counted SELECT '%s', COUNT(*) FROM entry WHERE serial_no = '%s'",
             attempt->key.serial_no, attempt->key.serial_no);
    return mysql_query(connection, text) == 0 ? TL_OK : TL_CALLBACK_FAILED;
}

/* A workflow chooses for each moment. */
TEST_IN(moments_may_differ, payout_house, payout_house_close)
{
    house *self = *state;
    tl_workflow workflow = payout_workflow();
    tl_request request = payout_request("W1", 100);

    database_run(self->sql, "CREATE TABLE counted (serial_no VARCHAR(64), n INT)");
    workflow.op_code = request.key.op_code = "MIXED";
    workflow.book_success = NULL;
    workflow.sql_success = count_by_select;
    assert_status(tl_workflow_register(self->workflows, &workflow), TL_OK);
    payout_expect(self, &request, TL_SUCCEEDED, NULL);
    payout_purse(self, "1000 100");
    database_expect(self->sql, 1, "SELECT n FROM counted WHERE serial_no = 'W1'");
    script.execute = TL_EXECUTE_DECLINED;
    request.key.serial_no = "W2";
    payout_expect(self, &request, TL_FAILED, NULL);
    payout_entries(self, "W2", "1P 1F");
}

/* --------------------------------------------------------------------------- refused asks -- */

static void assert_nothing_was_left(house *self, const char *serial)
{
    house_row(self, serial, "none");
    payout_entries(self, serial, "none");
    payout_purse(self, "1000 0");
    assert_int_equal(atomic_load(&script.sent), 0);
}

TEST_IN(a_statement_refuses, payout_house, payout_house_close)
{
    house *self = *state;
    tl_request request = payout_request("W1", 1001);

    payout_expect(self, &request, TL_REFUSED, "too little money");
    assert_string_equal(tl_error_message(), "too little money");
    assert_nothing_was_left(self, "W1");
    /* The remark of a callback that did not refuse says more. */
    script.remark = "1001 of 1000";
    payout_expect(self, &request, TL_REFUSED, "1001 of 1000");
    assert_nothing_was_left(self, "W1");
    database_run(self->sql, "UPDATE purse SET balance = 2000");
    payout_expect(self, &request, TL_SUCCEEDED, NULL);
    payout_purse(self, "999 0");
}

TEST_IN(a_callback_refuses, payout_house, payout_house_close)
{
    house *self = *state;
    tl_request request = payout_request("W1", 100);

    script.answer[AT_P] = TL_REFUSED;
    script.remark = "closed today";
    payout_expect(self, &request, TL_REFUSED, "closed today");
    assert_string_equal(tl_error_message(), "the workflow's prepare refused; no row was left");
    assert_nothing_was_left(self, "W1");
    script.answer[AT_P] = TL_OK;
    payout_expect(self, &request, TL_SUCCEEDED, NULL);
}

/* ------------------------------------------------------------------------------ bad lines -- */

TEST_IN(bad_lines_leave_no_trade, payout_house, payout_house_close)
{
    house *self = *state;

    for (size_t i = 0; i < PAYOUT_BAD_LINES; i++) {
        script.spoil[AT_P] = payout_bad_lines[i].spoil;
        payout_pay(self, "W1", 100, TL_CALLBACK_FAILED);
        print_message("%s\n", tl_error_message());
        payout_said(payout_bad_lines[i].words);
        assert_nothing_was_left(self, "W1");
    }
    script.spoil[AT_P] = NULL;
    payout_pay(self, "W1", 100, TL_SUCCEEDED);
}

TEST_IN(a_callback_that_cannot_leaves_no_trade, payout_house, payout_house_close)
{
    static const tl_status answers[] = {TL_TRY_AGAIN, TL_NO_MEMORY, TL_SUCCEEDED, TL_UNKNOWN,
                                        (tl_status)12345};
    house *self = *state;

    for (size_t i = 0; i < LENGTH(answers); i++) {
        script.answer[AT_P] = answers[i];
        payout_pay(self, "W1", 100, TL_CALLBACK_FAILED);
        payout_said("book_prepare answered");
        assert_nothing_was_left(self, "W1");
    }
    script.sentence = "no such payee";
    payout_pay(self, "W1", 100, TL_CALLBACK_FAILED);
    assert_string_equal(tl_error_message(), "book_prepare: no such payee");
    assert_nothing_was_left(self, "W1");
}

/* ------------------------------------------------------------------- what the row says first -- */

static tl_lock *hold(house *self, const char *serial)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_key key = {serial, "C1", PAYOUT_OP};
    tl_lock *lock = NULL;

    options.max_hold_ms = 60000;
    options.payload = "y";
    options.payload_size = 1;
    assert_status(tl_lock_new(&lock, self->client, &key, &options), TL_OK);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    return lock;
}

static void ask_for_all_three(house *self)
{
    tl_request other = payout_request("PAID", 100);

    payout_pay(self, "PAID", 100, TL_ALREADY_DONE);
    payout_pay(self, "HELD", 100, TL_BUSY);
    payout_pay(self, "DOUBT", 100, TL_IN_DOUBT);
    other.payload = "n";
    payout_expect(self, &other, TL_MISMATCH, NULL);
}

/* "Refused" says that there is no row.  So whoever asks twice hears what the row says. */
TEST_IN(a_duplicate_hears_what_the_row_says, payout_house, payout_house_close)
{
    house *self = *state;
    tl_lock *lock;

    payout_pay(self, "PAID", 100, TL_SUCCEEDED);
    script.execute = TL_EXECUTE_UNKNOWN;
    payout_pay(self, "DOUBT", 100, TL_IN_DOUBT);
    lock = hold(self, "HELD");
    ask_for_all_three(self);
    script.answer[AT_P] = TL_REFUSED;
    ask_for_all_three(self);
    script.answer[AT_P] = TL_CALLBACK_FAILED;
    ask_for_all_three(self);
    script.answer[AT_P] = TL_OK;
    script.spoil[AT_P] = spoil_statement;
    ask_for_all_three(self);
    script.spoil[AT_P] = spoil_by_null;
    ask_for_all_three(self);
    script.spoil[AT_P] = NULL;
    database_run(self->sql, "UPDATE purse SET balance = frozen");
    ask_for_all_three(self);
    tl_lock_free(lock);
    assert_int_equal(atomic_load(&script.sent), 2);
}

/* ------------------------------------------------------------------------------ registration -- */

TEST_IN(what_the_schema_refuses_is_not_registered, payout_house, payout_house_close)
{
    house *self = *state;
    tl_statement spoilt[PAYOUT_STATEMENTS];
    tl_workflow workflow = payout_workflow();
    tl_request request = payout_request("W1", 100);

    memcpy(spoilt, payout_statements, sizeof payout_statements);
    spoilt[2].sql = "UPDATE purse SET frosen = 0 WHERE cust_no = :cust_no";
    workflow.op_code = request.key.op_code = "OTHER";
    workflow.statements = spoilt;
    assert_status(tl_workflow_register(self->workflows, &workflow), TL_INVALID);
    payout_said("release");
    payout_said("frosen");
    payout_expect(self, &request, TL_UNKNOWN_OPERATION, NULL);
    workflow.statements = payout_statements;
    assert_status(tl_workflow_register(self->workflows, &workflow), TL_OK);
    assert_status(tl_workflow_register(self->workflows, &workflow), TL_INVALID);
    payout_said("registered already");
    payout_expect(self, &request, TL_SUCCEEDED, NULL);
}

/* An argument: only the tests whose names fit it, as TEST or *PART*. */
TESTS_OF(books, NULL, NULL)

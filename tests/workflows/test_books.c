/*
 * Business rows that are declared, in every callback of a workflow: written, refused, broken, put
 * right and written later; tried anew; by many threads.  After each answer the rows are compared with
 * it: all of a moment's rows are there, or none.
 */
#include "house.h"
#include "support/crew.h"

#include "cmocka_all.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OP "PAYOUT"
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const tl_statement statements[] = {
    {.name = "freeze",
     .sql = "UPDATE purse SET frozen = frozen + :amount_minor WHERE cust_no = :cust_no"
            " AND balance - frozen >= :amount_minor",
     .refused = "too little money"},
    {.name = "take",
     .sql = "UPDATE purse SET balance = balance - :amount_minor, frozen = frozen - :amount_minor"
            " WHERE cust_no = :cust_no"},
    {.name = "release",
     .sql = "UPDATE purse SET frozen = frozen - :amount_minor WHERE cust_no = :cust_no"},
    {.name = "enter",
     .sql = "INSERT INTO entry (cust_no, serial_no, epoch, what, amount, currency, channel_key,"
            " ref, proof) VALUES (:cust_no, :serial_no, :epoch, :what, :amount_minor, :currency,"
            " :channel_key, :channel_ref, :proof)",
     .values = "what text, proof int"},
};

static const char tables[] =
    "CREATE TABLE purse (cust_no VARCHAR(32) PRIMARY KEY, balance BIGINT NOT NULL,"
    " frozen BIGINT NOT NULL DEFAULT 0, CHECK (frozen BETWEEN 0 AND balance)); "
    "CREATE TABLE entry (cust_no VARCHAR(32), serial_no VARCHAR(64), epoch INT,"
    " what VARCHAR(8) CHARACTER SET utf8mb4 NOT NULL, amount BIGINT NOT NULL,"
    " currency CHAR(3) NOT NULL, channel_key VARCHAR(64) NOT NULL, ref VARCHAR(128) NOT NULL,"
    " proof INT NULL, PRIMARY KEY (cust_no, serial_no, epoch, what)); "
    "INSERT INTO purse (cust_no, balance) VALUES ('C1', 1000)";

/* ------------------------------------------------------------------------ the workflow -- */

enum moment { AT_P, AT_Y, AT_F, MOMENTS };

/* What the callbacks do. */
static struct {
    void (*spoil[MOMENTS])(tl_book *book); /* besides the right lines; or NULL */
    tl_status answer[MOMENTS];             /* TL_OK by itself */
    const char *remark, *sentence;
    tl_execute execute;
    tl_query query;
    server *dies; /* while money moves */
    atomic_uint sent;
} script;

static void enter(tl_book *book, const char *what)
{
    tl_book_line(book, "enter");
    tl_book_text(book, "what", what);
    tl_book_null(book, "proof");
}

static tl_status answer_at(enum moment moment, tl_book *book)
{
    if (script.spoil[moment] != NULL)
        script.spoil[moment](book);
    if (script.sentence != NULL)
        return tl_error_report(script.answer[moment], "%s", script.sentence);
    return script.answer[moment];
}

/* In another order than declared. */
static tl_status prepare(void *context, const tl_attempt *attempt, tl_reply *reply, tl_book *book)
{
    (void)context;
    (void)attempt;
    enter(book, "P");
    tl_book_line(book, "freeze");
    if (script.remark != NULL)
        tl_reply_remark(reply, "%s", script.remark);
    return answer_at(AT_P, book);
}

static tl_execute execute(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    if (script.dies != NULL)
        server_kill9(script.dies);
    atomic_fetch_add(&script.sent, 1);
    tl_reply_ref(reply, attempt->key.serial_no);
    reply->retryable = 1;
    return script.execute;
}

/* The payload says what became of it, where the script says so. */
static tl_query query(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    tl_reply_ref(reply, attempt->key.serial_no);
    if (script.query == TL_QUERY_PENDING)
        return *(const char *)attempt->payload == 'y' ? TL_QUERY_SUCCEEDED : TL_QUERY_FAILED;
    return script.query;
}

static tl_status success(void *context, const tl_attempt *attempt, const tl_reply *reply,
                         tl_book *book)
{
    (void)context;
    (void)attempt;
    (void)reply;
    enter(book, "Y");
    tl_book_line(book, "take");
    return answer_at(AT_Y, book);
}

static tl_status failure(void *context, const tl_attempt *attempt, const tl_reply *reply,
                         tl_proof proof, tl_book *book)
{
    (void)context;
    (void)attempt;
    (void)reply;
    tl_book_line(book, "release");
    tl_book_line(book, "enter");
    tl_book_text(book, "what", "F");
    tl_book_int(book, "proof", (int64_t)proof);
    return answer_at(AT_F, book);
}

static tl_workflow payout(void)
{
    tl_workflow workflow = TL_WORKFLOW_INIT;

    workflow.op_code = OP;
    workflow.channel.name = "c";
    workflow.channel.idempotent = 1;
    workflow.channel.can_query = 1;
    workflow.channel.replays_first_answer = 1;
    workflow.execute = execute;
    workflow.query = query;
    workflow.statements = statements;
    workflow.statement_count = LENGTH(statements);
    workflow.book_prepare = prepare;
    workflow.book_success = success;
    workflow.book_failure = failure;
    return workflow;
}

static void say(tl_execute executed, tl_query queried)
{
    memset(&script, 0, sizeof script);
    script.execute = executed;
    script.query = queried;
}

static void register_payout(house *self)
{
    tl_workflow workflow = payout();

    assert_status(tl_workflow_register(self->workflows, &workflow), TL_OK);
}

static int open_house(void **state)
{
    static house self;

    say(TL_EXECUTE_SUCCEEDED, TL_QUERY_UNREACHABLE);
    house_open(&self, WITHDRAW_IDEMPOTENT, NULL, NULL);
    database_run(self.sql, "%s", tables);
    register_payout(&self);
    *state = &self;
    return 0;
}

static int close_house(void **state)
{
    house_close(*state);
    return 0;
}

/* ------------------------------------------------------------------------- what is asked -- */

static tl_request request_of(const char *serial, int64_t amount_minor)
{
    tl_request request = TL_REQUEST_INIT;

    request.key = (tl_key){serial, "C1", OP};
    request.payload = "y";
    request.payload_size = 1;
    request.amount_minor = amount_minor;
    request.currency = "EUR";
    return request;
}

static void expect(house *self, const tl_request *request, tl_status expected, const char *remark)
{
    tl_answer answer = TL_ANSWER_INIT;

    assert_status(tl_workflow_run(self->workflows, request, &answer), expected);
    if (remark != NULL)
        assert_string_equal(answer.remark, remark);
    tl_answer_clear(&answer);
}

static void pay(house *self, const char *serial, int64_t amount_minor, tl_status expected)
{
    tl_request request = request_of(serial, amount_minor);

    expect(self, &request, expected, NULL);
}

static void purse(house *self, const char *expected)
{
    char *text = database_text(
        self->sql, "SELECT CONCAT(balance, ' ', frozen) FROM purse WHERE cust_no = 'C1'");

    assert_string_equal(text != NULL ? text : "none", expected);
    free(text);
}

/* "1P 1Y" = epoch and moment of each entry. */
static void entries(house *self, const char *serial, const char *expected)
{
    char *text = database_text(self->sql,
                               "SELECT GROUP_CONCAT(epoch, what ORDER BY epoch, FIELD(what, 'P', "
                               "'F', 'Y') SEPARATOR ' ') FROM entry WHERE serial_no = '%s'",
                               serial);

    assert_string_equal(text != NULL ? text : "none", expected);
    free(text);
}

static void assert_said(const char *words)
{
    if (strstr(tl_error_message(), words) == NULL)
        fail_msg("expected \"%s\" in \"%s\"", words, tl_error_message());
}

/* ------------------------------------------------------------------------ what is written -- */

static void each_moment_has_its_rows(void **state)
{
    house *self = *state;

    pay(self, "W1", 100, TL_SUCCEEDED);
    assert_string_equal(tl_error_message(), "");
    house_row(self, "W1", "Y 1 1 -");
    purse(self, "900 0");
    entries(self, "W1", "1P 1Y");

    say(TL_EXECUTE_DECLINED, TL_QUERY_UNREACHABLE);
    pay(self, "W2", 200, TL_FAILED);
    house_row(self, "W2", "F 1 1 D");
    purse(self, "900 0");
    entries(self, "W2", "1P 1F");
    assert_int_equal(database_number(self->sql,
                                     "SELECT COUNT(*) FROM entry WHERE serial_no = 'W2' "
                                     "AND what = 'F' AND proof = %d",
                                     TL_PROOF_DECLINED),
                     1);
}

/* What a statement can name without being given it is what the row says. */
static void the_trade_knows_its_own_values(void **state)
{
    house *self = *state;

    pay(self, "W1", 100, TL_SUCCEEDED);
    assert_int_equal(database_number(self->sql,
                                     "SELECT COUNT(*) FROM entry e JOIN trade_lock t ON "
                                     "t.serial_no = e.serial_no AND t.cust_no = e.cust_no AND "
                                     "t.epoch = e.epoch AND t.amount_minor = e.amount AND "
                                     "t.currency = e.currency AND t.channel_key = e.channel_key "
                                     "WHERE t.lane = 'S'"),
                     2);
    assert_int_equal(database_number(self->sql, "SELECT COUNT(*) FROM entry WHERE (what, ref) IN "
                                                "(('P', ''), ('Y', 'W1'))"),
                     2);
}

static void the_worker_writes_the_same(void **state)
{
    house *self = *state;

    say(TL_EXECUTE_UNKNOWN, TL_QUERY_SUCCEEDED);
    pay(self, "W1", 100, TL_IN_DOUBT);
    entries(self, "W1", "1P");
    purse(self, "1000 100");
    house_work(self, 1, HOUSE_PATIENCE_MS);
    house_row(self, "W1", "Y 1 1 -");
    entries(self, "W1", "1P 1Y");
    purse(self, "900 0");

    say(TL_EXECUTE_UNKNOWN, TL_QUERY_FAILED);
    pay(self, "W2", 100, TL_IN_DOUBT);
    house_work(self, 1, HOUSE_PATIENCE_MS);
    house_row(self, "W2", "F 1 1 D");
    entries(self, "W2", "1P 1F");
    purse(self, "900 0");
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
static void moments_may_differ(void **state)
{
    house *self = *state;
    tl_workflow workflow = payout();
    tl_request request = request_of("W1", 100);

    database_run(self->sql, "CREATE TABLE counted (serial_no VARCHAR(64), n INT)");
    workflow.op_code = request.key.op_code = "MIXED";
    workflow.book_success = NULL;
    workflow.apply_success = count_by_select;
    assert_status(tl_workflow_register(self->workflows, &workflow), TL_OK);
    expect(self, &request, TL_SUCCEEDED, NULL);
    purse(self, "1000 100");
    assert_int_equal(database_number(self->sql, "SELECT n FROM counted WHERE serial_no = 'W1'"), 1);
    script.execute = TL_EXECUTE_DECLINED;
    request.key.serial_no = "W2";
    expect(self, &request, TL_FAILED, NULL);
    entries(self, "W2", "1P 1F");
}

/* --------------------------------------------------------------------------- refused asks -- */

static void assert_nothing_was_left(house *self, const char *serial)
{
    house_row(self, serial, "none");
    entries(self, serial, "none");
    purse(self, "1000 0");
    assert_int_equal(atomic_load(&script.sent), 0);
}

static void a_statement_refuses(void **state)
{
    house *self = *state;
    tl_request request = request_of("W1", 1001);

    expect(self, &request, TL_REFUSED, "too little money");
    assert_string_equal(tl_error_message(), "too little money");
    assert_nothing_was_left(self, "W1");
    /* The remark of a callback that did not refuse says more. */
    script.remark = "1001 of 1000";
    expect(self, &request, TL_REFUSED, "1001 of 1000");
    assert_nothing_was_left(self, "W1");
    database_run(self->sql, "UPDATE purse SET balance = 2000");
    expect(self, &request, TL_SUCCEEDED, NULL);
    purse(self, "999 0");
}

static void a_callback_refuses(void **state)
{
    house *self = *state;
    tl_request request = request_of("W1", 100);

    script.answer[AT_P] = TL_REFUSED;
    script.remark = "closed today";
    expect(self, &request, TL_REFUSED, "closed today");
    assert_string_equal(tl_error_message(), "the workflow's prepare refused; no row was left");
    assert_nothing_was_left(self, "W1");
    script.answer[AT_P] = TL_OK;
    expect(self, &request, TL_SUCCEEDED, NULL);
}

/* ------------------------------------------------------------------------------ bad lines -- */

static void undeclared_statement(tl_book *book)
{
    tl_book_line(book, "fly");
}

static void missing_value(tl_book *book)
{
    tl_book_line(book, "enter");
    tl_book_text(book, "what", "Z");
}

static void missing_value_before_another_line(tl_book *book)
{
    missing_value(book);
    enter(book, "Q");
}

static void value_given_twice(tl_book *book)
{
    enter(book, "Z");
    tl_book_text(book, "what", "Z");
}

static void value_of_another_type(tl_book *book)
{
    tl_book_line(book, "enter");
    tl_book_int(book, "what", 1);
    tl_book_null(book, "proof");
}

static void value_of_the_trade(tl_book *book)
{
    enter(book, "Z");
    tl_book_text(book, "cust_no", "C2");
}

static void value_without_a_line(tl_book *book)
{
    tl_book_clear(book);
    tl_book_text(book, "what", "Z");
}

static void null_where_the_column_has_none(tl_book *book)
{
    enter(book, NULL);
}

static void not_utf8(tl_book *book)
{
    enter(book, "\xc3(");
}

static void too_many_lines(tl_book *book)
{
    char what[8];

    for (unsigned i = 0; i <= TL_BOOK_LINES; i++) {
        snprintf(what, sizeof what, "%u", i);
        enter(book, what);
    }
}

static void too_long_for_its_column(tl_book *book)
{
    enter(book, "123456789");
}

static void key_that_is_there(tl_book *book)
{
    enter(book, "Z");
    enter(book, "Z");
}

static void one_that_may_refuse(tl_book *book)
{
    tl_book_line(book, "freeze");
}

static const struct bad {
    void (*spoil)(tl_book *book);
    const char *words;
} bad_lines[] = {
    {undeclared_statement, "fly"},
    {missing_value, "proof"},
    {missing_value_before_another_line, "proof"},
    {value_given_twice, "what"},
    {value_of_another_type, "what"},
    {value_of_the_trade, "cust_no"},
    {value_without_a_line, "what"},
    {null_where_the_column_has_none, "enter"},
    {not_utf8, "what"},
    {too_many_lines, "256"},
    {too_long_for_its_column, "enter"},
    {key_that_is_there, "enter"},
};

static void bad_lines_leave_no_trade(void **state)
{
    house *self = *state;

    for (size_t i = 0; i < LENGTH(bad_lines); i++) {
        script.spoil[AT_P] = bad_lines[i].spoil;
        pay(self, "W1", 100, TL_CALLBACK_FAILED);
        print_message("%s\n", tl_error_message());
        assert_said(bad_lines[i].words);
        assert_nothing_was_left(self, "W1");
    }
    script.spoil[AT_P] = NULL;
    pay(self, "W1", 100, TL_SUCCEEDED);
}

static void a_callback_that_cannot_leaves_no_trade(void **state)
{
    static const tl_status answers[] = {TL_TRY_AGAIN, TL_NO_MEMORY, TL_SUCCEEDED, TL_UNKNOWN,
                                        (tl_status)12345};
    house *self = *state;

    for (size_t i = 0; i < LENGTH(answers); i++) {
        script.answer[AT_P] = answers[i];
        pay(self, "W1", 100, TL_CALLBACK_FAILED);
        assert_said("book_prepare answered");
        assert_nothing_was_left(self, "W1");
    }
    script.sentence = "no such payee";
    pay(self, "W1", 100, TL_CALLBACK_FAILED);
    assert_string_equal(tl_error_message(), "book_prepare: no such payee");
    assert_nothing_was_left(self, "W1");
}

/* ------------------------------------------------------------------- what the row says first -- */

static tl_lock *hold(house *self, const char *serial)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_key key = {serial, "C1", OP};
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
    tl_request other = request_of("PAID", 100);

    pay(self, "PAID", 100, TL_ALREADY_DONE);
    pay(self, "HELD", 100, TL_BUSY);
    pay(self, "DOUBT", 100, TL_IN_DOUBT);
    other.payload = "n";
    expect(self, &other, TL_MISMATCH, NULL);
}

/* "Refused" says that there is no row.  So whoever asks twice hears what the row says. */
static void a_duplicate_hears_what_the_row_says(void **state)
{
    house *self = *state;
    tl_lock *lock;

    pay(self, "PAID", 100, TL_SUCCEEDED);
    script.execute = TL_EXECUTE_UNKNOWN;
    pay(self, "DOUBT", 100, TL_IN_DOUBT);
    lock = hold(self, "HELD");
    ask_for_all_three(self);
    script.answer[AT_P] = TL_REFUSED;
    ask_for_all_three(self);
    script.answer[AT_P] = TL_CALLBACK_FAILED;
    ask_for_all_three(self);
    script.answer[AT_P] = TL_OK;
    script.spoil[AT_P] = undeclared_statement;
    ask_for_all_three(self);
    script.spoil[AT_P] = null_where_the_column_has_none;
    ask_for_all_three(self);
    script.spoil[AT_P] = NULL;
    database_run(self->sql, "UPDATE purse SET balance = frozen");
    ask_for_all_three(self);
    tl_lock_free(lock);
    assert_int_equal(atomic_load(&script.sent), 2);
}

/* ----------------------------------------------------------------------- endings that fail -- */

static long long evidence(house *self, const char *serial, const char *outcome)
{
    return database_number(self->sql,
                           "SELECT COUNT(*) FROM trade_evidence WHERE serial_no = '%s' AND "
                           "outcome = '%s'",
                           serial, outcome);
}

/* The outcome is on record, its rows are not; once they can be written, they are. */
static void expect_written_later(house *self, const char *serial, enum moment moment,
                                 void (*mend)(house *self))
{
    const int paid = moment == AT_Y;
    unsigned sent;

    script.execute = paid ? TL_EXECUTE_SUCCEEDED : TL_EXECUTE_DECLINED;
    script.query = paid ? TL_QUERY_UNREACHABLE : TL_QUERY_FAILED;
    pay(self, serial, 1, TL_IN_DOUBT);
    sent = atomic_load(&script.sent);
    assert_true(house_alarmed(self, paid ? "the books refused the outcome SUCCEEDED"
                                         : "the books refused the outcome FAILED"));
    assert_int_equal(evidence(self, serial, paid ? "SUCCEEDED" : "FAILED"), 1);
    house_row(self, serial, "P 1 1 -");
    entries(self, serial, "1P");
    mend(self);
    house_work(self, 1, HOUSE_PATIENCE_MS);
    house_row(self, serial, paid ? "Y 1 1 -" : "F 1 1 D");
    entries(self, serial, paid ? "1P 1Y" : "1P 1F");
    assert_int_equal(atomic_load(&script.sent), sent);
    self->alarm_count = 0;
}

static void mend_callbacks(house *self)
{
    (void)self;
    for (int i = 0; i < MOMENTS; i++) {
        script.spoil[i] = NULL;
        script.answer[i] = TL_OK;
    }
}

static void spoil_both_endings(house *self, void (*spoil)(tl_book *book), tl_status answer,
                               unsigned number)
{
    char serial[16];

    for (enum moment moment = AT_Y; moment <= AT_F; moment++) {
        snprintf(serial, sizeof serial, "W%u-%d", number, (int)moment);
        script.spoil[moment] = spoil;
        script.answer[moment] = answer;
        expect_written_later(self, serial, moment, mend_callbacks);
    }
}

static void bad_lines_of_an_ending_are_written_later(void **state)
{
    house *self = *state;

    for (unsigned i = 0; i < LENGTH(bad_lines); i++)
        spoil_both_endings(self, bad_lines[i].spoil, TL_OK, i);
    spoil_both_endings(self, one_that_may_refuse, TL_OK, 100);
    assert_int_equal(database_number(self->sql, "SELECT frozen FROM purse"), 0);
}

static void a_callback_that_cannot_ends_later(void **state)
{
    static const tl_status answers[] = {TL_TRY_AGAIN, TL_REFUSED, TL_NO_MEMORY, TL_CALLBACK_FAILED,
                                        (tl_status)12345};
    house *self = *state;

    for (unsigned i = 0; i < LENGTH(answers); i++)
        spoil_both_endings(self, NULL, answers[i], i);
    assert_int_equal(database_number(self->sql, "SELECT frozen FROM purse"), 0);
}

static void put_purse_back(house *self)
{
    database_run(self->sql, "UPDATE purse SET cust_no = 'C1'");
}

static void hide_purse(tl_book *book)
{
    tl_book_clear(book);
    tl_book_line(book, "release"); /* of nothing: see below */
}

/* A row that must be there is not. */
static void an_ending_that_changes_no_row_is_broken(void **state)
{
    house *self = *state;

    script.execute = TL_EXECUTE_UNKNOWN;
    script.query = TL_QUERY_SUCCEEDED;
    pay(self, "W1", 100, TL_IN_DOUBT);
    database_run(self->sql, "UPDATE purse SET cust_no = 'C9'");
    for (int i = 0; i < 1000 && evidence(self, "W1", "SUCCEEDED") == 0; i++)
        house_work(self, 1, 100);
    assert_int_equal(evidence(self, "W1", "SUCCEEDED"), 1);
    assert_true(house_alarmed(self, "'take'"));
    house_row(self, "W1", "P 1 1 -");
    entries(self, "W1", "1P");
    put_purse_back(self);
    house_work(self, 1, HOUSE_PATIENCE_MS);
    house_row(self, "W1", "Y 1 1 -");
    entries(self, "W1", "1P 1Y");
    purse(self, "900 0");
}

static void books_that_stay_broken_are_parked(void **state)
{
    house *self = *state;
    tl_worker_counts counts;

    script.spoil[AT_Y] = hide_purse;
    database_run(self->sql, "CREATE TRIGGER shut BEFORE UPDATE ON purse FOR EACH ROW "
                            "IF NEW.frozen < OLD.frozen THEN SIGNAL SQLSTATE '45000' "
                            "SET MESSAGE_TEXT = 'the purse is shut'; END IF");
    pay(self, "W1", 100, TL_IN_DOUBT);
    assert_true(house_alarmed(self, "the purse is shut"));
    counts = house_work(self, 1, HOUSE_PATIENCE_MS);
    assert_int_equal(counts.parked, 1);
    house_retry_row(self, "W1", "F", "apply failed");
    pay(self, "W1", 100, TL_PARKED);
    entries(self, "W1", "1P");
    purse(self, "1000 100");
}

/* ------------------------------------------------------------------------------- tried anew -- */

static void each_epoch_has_its_rows(void **state)
{
    house *self = *state;
    tl_request request = request_of("W1", 100);

    script.execute = TL_EXECUTE_DECLINED;
    expect(self, &request, TL_FAILED, NULL);
    entries(self, "W1", "1P 1F");
    /* The trade keeps what its first request said. */
    request.reclaim_epoch = 1;
    request.amount_minor = 3;
    request.currency = "USD";
    expect(self, &request, TL_FAILED, NULL);
    entries(self, "W1", "1P 1F 2P 2F");
    script.execute = TL_EXECUTE_SUCCEEDED;
    request.reclaim_epoch = 2;
    expect(self, &request, TL_SUCCEEDED, NULL);
    house_row(self, "W1", "Y 3 1 -");
    entries(self, "W1", "1P 1F 2P 2F 3P 3Y");
    purse(self, "900 0");
    assert_int_equal(database_number(self->sql, "SELECT COUNT(*) FROM entry WHERE amount <> 100 OR "
                                                "currency <> 'EUR'"),
                     0);
    assert_int_equal(database_number(self->sql, "SELECT COUNT(DISTINCT channel_key) FROM entry"),
                     3);
}

static void a_refusal_leaves_the_failure_as_it_was(void **state)
{
    house *self = *state;
    tl_request request = request_of("W1", 100);

    script.execute = TL_EXECUTE_DECLINED;
    expect(self, &request, TL_FAILED, NULL);
    request.reclaim_epoch = 1;
    database_run(self->sql, "UPDATE purse SET balance = 99");
    expect(self, &request, TL_REFUSED, "too little money");
    script.answer[AT_P] = TL_REFUSED;
    script.remark = "closed today";
    expect(self, &request, TL_REFUSED, "closed today");
    script.answer[AT_P] = TL_OK;
    script.remark = NULL;
    script.spoil[AT_P] = key_that_is_there;
    expect(self, &request, TL_CALLBACK_FAILED, NULL);
    house_row(self, "W1", "F 1 1 D");
    entries(self, "W1", "1P 1F");
    purse(self, "99 0");
    script.spoil[AT_P] = NULL;
    script.execute = TL_EXECUTE_SUCCEEDED;
    database_run(self->sql, "UPDATE purse SET balance = 100");
    expect(self, &request, TL_SUCCEEDED, NULL);
    entries(self, "W1", "1P 1F 2P 2Y");
    purse(self, "0 0");
}

/* -------------------------------------------------------------------------------- many at once -- */

#define THREADS 16
#define EACH 12
#define POOR 4 /* so many trades of a thread are of a customer without money */

static house *busy;

/* Of customers whom all threads share; a third of them fail. */
static void pay_many(void *context, int number)
{
    (void)context;
    for (int i = 0; i < EACH; i++) {
        char serial[24], cust[8];
        tl_request request = request_of(serial, 10);
        tl_answer answer = TL_ANSWER_INIT;
        const int poor = i % (EACH / POOR) == 0;

        snprintf(serial, sizeof serial, "M%d-%d", number, i);
        snprintf(cust, sizeof cust, poor ? "POOR" : "C%d", 2 + i % 2);
        request.key.cust_no = cust;
        request.payload = i % 3 == 1 ? "n" : "y";
        request.wait_ms = 60000;
        do {
            tl_answer_clear(&answer);
            (void)tl_workflow_run(busy->workflows, &request, &answer);
        } while (tl_status_class(answer.status) == TL_CLASS_RETRY);
        CREW_STATUS(answer.status, poor ? TL_REFUSED : TL_IN_DOUBT);
        tl_answer_clear(&answer);
    }
}

static void many_are_written_once_each(void **state)
{
    const int asked = THREADS * (EACH - POOR), failed = THREADS * EACH / 3;
    house *self = *state;
    tl_worker_counts counts;

    busy = self;
    say(TL_EXECUTE_UNKNOWN, TL_QUERY_PENDING);
    database_run(self->sql, "INSERT INTO purse (cust_no, balance) VALUES ('C2', 10000), "
                            "('C3', 10000), ('POOR', 9)");
    crew_threads(THREADS, pay_many, NULL);
    assert_int_equal(database_number(self->sql, "SELECT SUM(frozen) FROM purse"), 10 * asked);
    assert_int_equal(database_number(self->sql, "SELECT COUNT(*) FROM trade_lock WHERE "
                                                "lane = 'S' AND status = 'P'"),
                     asked);
    counts = house_work(self, THREADS, HOUSE_PATIENCE_MS);
    assert_int_equal(counts.failed, failed);
    assert_int_equal(counts.succeeded, asked - failed);
    assert_int_equal(database_number(self->sql, "SELECT SUM(frozen) FROM purse"), 0);
    assert_int_equal(database_number(self->sql, "SELECT SUM(balance) FROM purse WHERE cust_no IN "
                                                "('C2', 'C3')"),
                     20000 - 10 * (asked - failed));
    assert_int_equal(database_number(self->sql, "SELECT COUNT(*) FROM entry"), 2 * asked);
    assert_int_equal(database_number(self->sql,
                                     "SELECT COUNT(*) FROM trade_lock t JOIN entry e ON "
                                     "e.serial_no = t.serial_no AND e.what = t.status WHERE "
                                     "t.lane = 'S'"),
                     asked);
}

/* ------------------------------------------------------------------- the server dies meanwhile -- */

static void an_ending_is_settled_with_its_rows(void **state)
{
    static house self;
    server *own = server_start(NULL);
    tl_request request = request_of("W1", 100);
    tl_answer answer = TL_ANSWER_INIT;
    tl_status status;
    int64_t end_ms;

    (void)state;
    house_open(&self, WITHDRAW_IDEMPOTENT,
               "beat_ms=100ms\nsession_ms=30s\nmax_hold_ms=60s\nexecute_ms=1s\n"
               "commit_ms=300ms\npool_wait_ms=200ms\n",
               own);
    database_run(self.sql, "%s", tables);
    register_payout(&self);
    say(TL_EXECUTE_SUCCEEDED, TL_QUERY_UNREACHABLE);
    script.dies = own;
    assert_status(tl_workflow_run(self.workflows, &request, &answer), TL_UNKNOWN);
    assert_true(answer.own);
    server_restart(own);
    end_ms = now_ms() + HOUSE_PATIENCE_MS;
    do {
        status = tl_workflow_settle(self.workflows, &answer);
    } while (status == TL_UNKNOWN && now_ms() < end_ms);
    assert_status(status, TL_SUCCEEDED);
    tl_answer_clear(&answer);
    mysql_close(self.sql);
    self.sql = database_connect(self.db);
    house_row(&self, "W1", "Y 1 1 -");
    entries(&self, "W1", "1P 1Y");
    purse(&self, "900 0");
    house_close(&self);
    server_free(own);
}

/* -------------------------------------------------------------------------------- registration -- */

static void what_the_schema_refuses_is_not_registered(void **state)
{
    house *self = *state;
    tl_statement spoilt[LENGTH(statements)];
    tl_workflow workflow = payout();
    tl_request request = request_of("W1", 100);

    memcpy(spoilt, statements, sizeof statements);
    spoilt[2].sql = "UPDATE purse SET frosen = 0 WHERE cust_no = :cust_no";
    workflow.op_code = request.key.op_code = "OTHER";
    workflow.statements = spoilt;
    assert_status(tl_workflow_register(self->workflows, &workflow), TL_INVALID);
    assert_said("release");
    assert_said("frosen");
    expect(self, &request, TL_UNKNOWN_OPERATION, NULL);
    workflow.statements = statements;
    assert_status(tl_workflow_register(self->workflows, &workflow), TL_OK);
    assert_status(tl_workflow_register(self->workflows, &workflow), TL_INVALID);
    assert_said("registered already");
    expect(self, &request, TL_SUCCEEDED, NULL);
}

#define IN_HOUSE(test) cmocka_unit_test_setup_teardown(test, open_house, close_house)

/* An argument: only the tests whose names fit it, as TEST or *PART*. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        IN_HOUSE(each_moment_has_its_rows),
        IN_HOUSE(the_trade_knows_its_own_values),
        IN_HOUSE(the_worker_writes_the_same),
        IN_HOUSE(moments_may_differ),
        IN_HOUSE(a_statement_refuses),
        IN_HOUSE(a_callback_refuses),
        IN_HOUSE(bad_lines_leave_no_trade),
        IN_HOUSE(a_callback_that_cannot_leaves_no_trade),
        IN_HOUSE(a_duplicate_hears_what_the_row_says),
        IN_HOUSE(bad_lines_of_an_ending_are_written_later),
        IN_HOUSE(a_callback_that_cannot_ends_later),
        IN_HOUSE(an_ending_that_changes_no_row_is_broken),
        IN_HOUSE(books_that_stay_broken_are_parked),
        IN_HOUSE(each_epoch_has_its_rows),
        IN_HOUSE(a_refusal_leaves_the_failure_as_it_was),
        IN_HOUSE(many_are_written_once_each),
        cmocka_unit_test(an_ending_is_settled_with_its_rows),
        IN_HOUSE(what_the_schema_refuses_is_not_registered),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return server_report(cmocka_run_group_tests(tests, NULL, NULL));
}

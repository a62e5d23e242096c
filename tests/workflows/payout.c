#include "payout.h"

#include "support/theme.h"

const tl_statement payout_statements[PAYOUT_STATEMENTS] = {
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
     .sql = "INSERT INTO entry (cust_no, serial_no, op, epoch, what, amount, currency,"
            " channel_key, ref, proof) VALUES (:cust_no, :serial_no, :op_code, :epoch, :what,"
            " :amount_minor, :currency, :channel_key, :channel_ref, :proof)",
     .values = "what text, proof int"},
};

static const char tables[] =
    "CREATE TABLE purse (cust_no VARCHAR(32) PRIMARY KEY, balance BIGINT NOT NULL,"
    " frozen BIGINT NOT NULL DEFAULT 0, CHECK (frozen BETWEEN 0 AND balance)); "
    "CREATE TABLE entry (cust_no VARCHAR(32), serial_no VARCHAR(64), op VARCHAR(32) NOT NULL,"
    " epoch INT,"
    " what VARCHAR(8) CHARACTER SET utf8mb4 NOT NULL, amount BIGINT NOT NULL,"
    " currency CHAR(3) NOT NULL, channel_key VARCHAR(64) NOT NULL, ref VARCHAR(128) NOT NULL,"
    " proof INT NULL, PRIMARY KEY (cust_no, serial_no, epoch, what)); "
    "INSERT INTO purse (cust_no, balance) VALUES ('C1', 1000)";

/* ------------------------------------------------------------------------ the workflow -- */

struct script script;

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

static tl_execute_result execute(void *context, const tl_attempt *attempt, tl_reply *reply)
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
static tl_query_result query(void *context, const tl_attempt *attempt, tl_reply *reply)
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

tl_workflow payout_workflow(void)
{
    tl_workflow workflow = TL_WORKFLOW_INIT;

    workflow.op_code = PAYOUT_OP;
    workflow.channel.name = "c";
    workflow.channel.idempotent = 1;
    workflow.channel.can_query = 1;
    workflow.channel.replays_first_answer = 1;
    workflow.execute = execute;
    workflow.query = query;
    workflow.statements = payout_statements;
    workflow.statement_count = PAYOUT_STATEMENTS;
    workflow.book_prepare = prepare;
    workflow.book_success = success;
    workflow.book_failure = failure;
    return workflow;
}

void payout_say(tl_execute_result executed, tl_query_result queried)
{
    memset(&script, 0, sizeof script);
    script.execute = executed;
    script.query = queried;
}

void payout_open(house *self)
{
    tl_workflow workflow = payout_workflow();

    database_run(self->sql, "%s", tables);
    assert_status(tl_workflow_register(self->workflows, &workflow), TL_OK);
}

int payout_house(void **state)
{
    static house self;

    payout_say(TL_EXECUTE_SUCCEEDED, TL_QUERY_UNREACHABLE);
    house_open_bare(&self, NULL, NULL);
    payout_open(&self);
    *state = &self;
    return 0;
}

int payout_house_close(void **state)
{
    house_close(*state);
    return 0;
}

/* ------------------------------------------------------------------------- what is asked -- */

tl_request payout_request(const char *serial, int64_t amount_minor)
{
    tl_request request = TL_REQUEST_INIT;

    request.key = (tl_key){serial, "C1", PAYOUT_OP};
    request.payload = "y";
    request.payload_size = 1;
    request.amount_minor = amount_minor;
    request.currency = "EUR";
    return request;
}

void payout_expect(house *self, const tl_request *request, tl_status expected, const char *remark)
{
    tl_answer answer = TL_ANSWER_INIT;

    assert_status(tl_workflow_run(self->workflows, request, &answer), expected);
    if (remark != NULL)
        assert_string_equal(answer.view.remark, remark);
    tl_answer_clear(&answer);
}

void payout_pay(house *self, const char *serial, int64_t amount_minor, tl_status expected)
{
    tl_request request = payout_request(serial, amount_minor);

    payout_expect(self, &request, expected, NULL);
}

void payout_purse(house *self, const char *expected)
{
    database_expect_text(self->sql, expected,
                         "SELECT CONCAT(balance, ' ', frozen) FROM purse WHERE cust_no = 'C1'");
}

/* "1P 1Y" = epoch and moment of each entry. */
void payout_entries(house *self, const char *serial, const char *expected)
{
    database_expect_text(self->sql, expected,
                         "SELECT GROUP_CONCAT(epoch, what ORDER BY epoch, FIELD(what, 'P', 'F', "
                         "'Y') SEPARATOR ' ') FROM entry WHERE serial_no = '%s'",
                         serial);
}

void payout_said(const char *words)
{
    if (strstr(tl_error_message(), words) == NULL)
        fail_msg("expected \"%s\" in \"%s\"", words, tl_error_message());
}

/* ------------------------------------------------------------------------------ bad lines -- */

void spoil_statement(tl_book *book)
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

void spoil_by_null(tl_book *book)
{
    enter(book, NULL);
}

static void not_utf8(tl_book *book)
{
    enter(book, "\xc3(");
}

static void too_many_lines(tl_book *book)
{
    for (unsigned i = 0; i <= TL_BOOK_LINES; i++)
        enter(book, text_of("%u", i).is);
}

static void too_long_for_its_column(tl_book *book)
{
    enter(book, "123456789");
}

void spoil_key(tl_book *book)
{
    enter(book, "Z");
    enter(book, "Z");
}

void spoil_by_refusing(tl_book *book)
{
    tl_book_line(book, "freeze");
}

const bad_lines payout_bad_lines[PAYOUT_BAD_LINES] = {
    {spoil_statement, "fly"},
    {missing_value, "proof"},
    {missing_value_before_another_line, "proof"},
    {value_given_twice, "what"},
    {value_of_another_type, "what"},
    {value_of_the_trade, "cust_no"},
    {value_without_a_line, "before a line"},
    {spoil_by_null, "enter"},
    {not_utf8, "what"},
    {too_many_lines, "256"},
    {too_long_for_its_column, "enter"},
    {spoil_key, "enter"},
};

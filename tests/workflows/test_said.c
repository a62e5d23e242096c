/* What a request says of itself (TL_SAID_MAP) reaches every callback of its trade:
 * of the service, of a worker in another process, and of the next epoch. */
#include "house.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/layer.h>

#include <sys/mman.h>

enum { PREPARED, EXECUTED, QUERIED, APPLIED, FAILED_AND_APPLIED, CALLBACKS };

struct told {
    tl_said by[CALLBACKS];
    int64_t created_us[CALLBACKS];
    tl_query_result answer;
};

#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define SEVENTY "0123456789012345678901234567890123456789012345678901234567890123456789"
#define OTHER_TRACE "00-11111111111111111111111111111111-2222222222222222-00"

/* What callbacks were shown, in memory that processes share. */
static struct told *said;

FIXTURE(open_house)
{
    static house self;

    said = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(said != MAP_FAILED);
    house_open_bare(&self, NULL, NULL);
    *state = &self;
}

FIXTURE(close_house)
{
    house_close(*state);
    munmap(said, 4096);
}

static void note(int callback, const tl_attempt *from)
{
    tl_said *to = &said->by[callback];

    TL_SAID_MAP(TL_KEEP)
    said->created_us[callback] = from->created_us;
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

static tl_execute_result note_execute(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)reply;
    note(EXECUTED, attempt);
    return attempt->epoch == 1 ? TL_EXECUTE_UNKNOWN : TL_EXECUTE_SUCCEEDED;
}

static tl_query_result note_query(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    reply->retryable = 1;
    note(QUERIED, attempt);
    return said->answer;
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
    workflow.sql_prepare = note_prepare;
    workflow.execute = note_execute;
    workflow.query = note_query;
    workflow.sql_success = note_success;
    workflow.sql_failure = note_failure;
    assert_status(tl_workflow_register(self->workflows, &workflow), TL_OK);
}

static void say(tl_request *to, const tl_request *from)
{
    TL_SAID_MAP(TL_PASS)
}

static void run_saying(house *self, const tl_request *what, uint32_t epoch, tl_status expected)
{
    const tl_query_result found = said->answer;
    tl_request request = TL_REQUEST_INIT;
    tl_answer answer = TL_ANSWER_INIT;

    request.key = (tl_key){"W1", "C1", "PAYOUT"};
    request.payload = "x";
    request.payload_size = 1;
    say(&request, what);
    request.reclaim_epoch = epoch;
    memset(said, 0, sizeof *said);
    said->answer = found;
    assert_status(tl_workflow_run(self->workflows, &request, &answer), expected);
    tl_answer_clear(&answer);
}

#define SAME(type, member, ...) SAME_##type(member)
#define SAME_MONEY(member) assert_true(found->member == what->member);
#define SAME_TEXT(member)                                                                          \
    assert_string_equal(found->member, what->member != NULL ? what->member : "");

static void assert_noted(int callback, const tl_request *what, int64_t created_us)
{
    const tl_said *found = &said->by[callback];

    TL_SAID_MAP(SAME)
    assert_true(said->created_us[callback] == created_us);
}

/* A worker in a process of its own. */
static void work_in_child(void *context, int number)
{
    house *self = context;

    (void)number;
    self->sql = database_connect(self->db);
    house_reopen(self);
    register_notes(self);
    house_work(self, 1, PATIENCE_MS);
    house_leave(self);
}

/* What the first request said, in each callback, by the service, a worker in another process and a
 * trade that is tried anew by a request that says something else. */
static void tell_all_epochs(house *self, const tl_request *what)
{
    static const tl_request other = {
        .amount_minor = 3, .currency = "USD", .batch = "another batch", .traceparent = OTHER_TRACE};
    int64_t created_us;

    register_notes(self);
    said->answer = TL_QUERY_FAILED;
    run_saying(self, what, 0, TL_IN_DOUBT);
    created_us = database_number(self->sql, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', "
                                            "created_at) FROM trade_lock WHERE op_code = 'PAYOUT'");
    assert_noted(PREPARED, what, 0);
    assert_noted(EXECUTED, what, created_us);
    house_leave(self);
    assert_int_equal(crew_wait(crew_fork(work_in_child, self, 0)), 0);
    assert_noted(QUERIED, what, created_us);
    assert_noted(FAILED_AND_APPLIED, what, created_us);
    house_reopen(self);
    register_notes(self);
    run_saying(self, &other, 1, TL_SUCCEEDED);
    assert_noted(PREPARED, what, created_us);
    assert_noted(EXECUTED, what, created_us);
    assert_noted(APPLIED, what, created_us);
}

TEST_IN(every_attempt_is_told_all, open_house, close_house)
{
    static const tl_request all = {.amount_minor = 1050,
                                   .currency = "EUR",
                                   .batch = "payroll \xc3\xa9t\xc3\xa9 11/2026",
                                   .traceparent = TRACE,
                                   .label = "order \xe2\x84\x96 7"};

    tell_all_epochs(*state, &all);
}

TEST_IN(every_attempt_is_told_the_amount, open_house, close_house)
{
    static const tl_request amount = {.amount_minor = 1050, .currency = "EUR"};

    tell_all_epochs(*state, &amount);
}

TEST_IN(every_attempt_is_told_batch_and_trace, open_house, close_house)
{
    static const tl_request texts = {.batch = "B", .traceparent = TRACE, .label = "L"};

    tell_all_epochs(*state, &texts);
}

TEST_IN(nothing_is_told_of_what_was_not_said, open_house, close_house)
{
    static const tl_request nothing = {.version = 0};

    tell_all_epochs(*state, &nothing);
}

/* The row says what no request may, typed by hand: it is tried anew all the same, and keeps it. */
TEST_IN(what_was_typed_by_hand_stays, open_house, close_house)
{
    static const char *const typed[] = {"batch = 'a\nb'", "traceparent = 'short'", "batch = ''",
                                        "label = 'a\nb'"};
    static const tl_request what = {
        .amount_minor = 1050, .currency = "EUR", .batch = "B", .traceparent = TRACE};
    house *self = *state;

    register_notes(self);
    for (size_t i = 0; i < sizeof typed / sizeof typed[0]; i++) {
        database_run(self->sql, "TRUNCATE trade_lock");
        said->answer = TL_QUERY_FAILED;
        run_saying(self, &what, 0, TL_IN_DOUBT);
        house_work(self, 1, PATIENCE_MS);
        database_run(self->sql, "UPDATE trade_lock SET %s WHERE op_code = 'PAYOUT'", typed[i]);
        run_saying(self, &what, 1, TL_SUCCEEDED);
        database_expect(
            self->sql, 1,
            "SELECT COUNT(*) FROM trade_lock WHERE %s AND status = 'Y' AND amount_minor = 1050",
            typed[i]);
    }
}

TEST_IN(what_cannot_be_said_is_refused, open_house, close_house)
{
    static const struct {
        tl_request what;
        const char *words;
    } bad[] = {
        {{.amount_minor = 5}, "both, or neither"},
        {{.amount_minor = -5, .currency = "EUR"}, "amount_minor is -5"},
        {{.amount_minor = 5, .currency = "euro"}, "three capital letters"},
        {{.batch = ""}, "batch: is empty"},
        {{.batch = "a\nb"}, "batch: byte 2 is a control character (0x0a)"},
        {{.label = ""}, "label: is empty"},
        {{.label = SEVENTY}, "label: is longer than 64 bytes"},
        {{.label = "\xff"}, "label: byte 1 is not UTF-8 (0xff)"},
    };
    house *self = *state;

    register_notes(self);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        run_saying(self, &bad[i].what, 0, TL_INVALID);
        if (strstr(tl_error_message(), bad[i].words) == NULL)
            fail_msg("%zu: %s", i, tl_error_message());
    }
    database_expect(self->sql, 0, "SELECT COUNT(*) FROM trade_lock");
}

/* A trace header that is none: it is paid without, and no callback hands it on. */
TEST_IN(a_trace_that_is_none_refuses_nothing, open_house, close_house)
{
    static const tl_request given = {.amount_minor = 1050,
                                     .currency = "EUR",
                                     .batch = "B",
                                     .traceparent = "00-0AF7651916CD43DD8448EB211C80319C-1"};
    static const tl_request kept = {.amount_minor = 1050, .currency = "EUR", .batch = "B"};
    house *self = *state;

    register_notes(self);
    said->answer = TL_QUERY_SUCCEEDED;
    run_saying(self, &given, 0, TL_IN_DOUBT);
    assert_noted(PREPARED, &kept, 0);
    assert_noted(EXECUTED, &kept, said->created_us[EXECUTED]);
    database_expect(
        self->sql, 1,
        "SELECT COUNT(*) FROM trade_lock WHERE op_code = 'PAYOUT' AND traceparent IS NULL");
}

TESTS_OF(said, NULL, NULL)

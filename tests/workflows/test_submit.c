/*
 * Submitted runs, from one thread with an event loop: what each answer leaves is what
 * tl_workflow_run() leaves, a key pays once whoever else asks for it, and what a killed process or
 * a cut connection leaves is brought to its end.
 */
#include "payout.h"

#include "channel.h"
#include "later.h"
#include "support/crew.h"
#include "support/metric.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/layer.h>
#include <tradelock/submit.h>

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#define MANY 1000
#define SOME 400 /* against others, and with cut connections */
#define KEYS 40
#define CUTS 12 /* and then it goes on */
#define POLL_MS 60000

/* ------------------------------------------------------------------------------ the loop -- */

/* A channel that pays each time it is sent something, and tells the truth. */
#define PLAIN_OP "PLAIN"
static atomic_uint paid_of[MANY];
static const char *op_code = PAYOUT_OP;

static unsigned number_of(const char *serial)
{
    return (unsigned)strtoul(serial + 1, NULL, 10);
}

static tl_execute_result plain_execute(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    atomic_fetch_add(&paid_of[number_of(attempt->key.serial_no)], 1);
    tl_reply_ref(reply, attempt->key.serial_no);
    return TL_EXECUTE_SUCCEEDED;
}

static tl_query_result plain_query(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    tl_reply_ref(reply, attempt->key.serial_no);
    return atomic_load(&paid_of[number_of(attempt->key.serial_no)]) > 0 ? TL_QUERY_SUCCEEDED
                                                                        : TL_QUERY_NOT_FOUND;
}

typedef struct one {
    tl_answer answer;
    char serial[16];
    tl_status said; /* of the last completion */
    int completed;  /* how many */
} one;

static void one_begin(one *self, const char *serial)
{
    const tl_answer empty = TL_ANSWER_INIT;

    memset(self, 0, sizeof *self);
    self->answer = empty;
    snprintf(self->serial, sizeof self->serial, "%s", serial);
}

/* Waits for one completion, as a loop does. */
static one *next(house *self)
{
    struct pollfd readable = {.fd = tl_client_completed_fd(self->client), .events = POLLIN};
    tl_completion done;
    one *of;

    while (tl_client_completed(self->client, &done, 1) == 0)
        assert_int_equal(poll(&readable, 1, POLL_MS), 1);
    assert_null(done.lock);
    of = done.context;
    of->said = done.status;
    of->completed++;
    return of;
}

static tl_status submit(house *self, one *of, int64_t amount_minor)
{
    tl_request request = payout_request(of->serial, amount_minor);

    request.key.op_code = op_code;
    return tl_workflow_submit(self->workflows, &request, &of->answer, of);
}

/* What execute() of the script does. */
static tl_status send_begin(house *self, one *of)
{
    const tl_attempt *attempt = NULL;
    tl_reply *reply = NULL;
    tl_status status = tl_workflow_send_begin(self->workflows, &of->answer, &attempt, &reply);

    if (status != TL_OK)
        return status;
    assert_string_equal(attempt->key.serial_no, of->serial);
    assert_true(tl_attempt_left_ms(attempt) > 0);
    assert_int_equal(attempt->sends, 1);
    if (strcmp(op_code, PAYOUT_OP) == 0)
        atomic_fetch_add(&script.sent, 1);
    else
        (void)plain_execute(NULL, attempt, reply);
    assert_status(tl_reply_ref(reply, of->serial), TL_OK);
    reply->retryable = 1;
    return TL_OK;
}

static void send_end(house *self, one *of)
{
    assert_status(tl_workflow_send_end(self->workflows, &of->answer, script.execute), TL_OK);
}

/* One payment to its end; the answer stays. */
static void pay(house *self, one *of, const char *serial, int64_t amount_minor, tl_status expected)
{
    one_begin(of, serial);
    assert_status(submit(self, of, amount_minor), TL_OK);
    assert_ptr_equal(next(self), of);
    if (of->said == TL_GRANTED) {
        assert_status(send_begin(self, of), TL_OK);
        send_end(self, of);
        assert_ptr_equal(next(self), of);
    }
    assert_status(of->said, expected);
    assert_status(of->answer.status, expected);
}

static void pay_only(house *self, const char *serial, int64_t amount_minor, tl_status expected)
{
    one of;

    pay(self, &of, serial, amount_minor, expected);
    tl_answer_clear(&of.answer);
}

/* ------------------------------------------------------------------- what an answer leaves -- */

static int patient_house(void **state);
static int waiting_house(void **state);
static int plain_house(void **state);
static int plain_house_close(void **state);
static void killed_in_the_middle(withdraw_kind kind, int hold);

/* First: before there are threads. */
TEST(a_kill_leaves_what_a_call_leaves)
{
    killed_in_the_middle(WITHDRAW_IDEMPOTENT, 0);
    killed_in_the_middle(WITHDRAW_IDEMPOTENT, 15);
    killed_in_the_middle(WITHDRAW_WINDOW, 15);
    killed_in_the_middle(WITHDRAW_PLAIN, 15);
}

TEST_IN(each_answer_leaves_what_a_call_leaves, patient_house, payout_house_close)
{
    static const struct {
        tl_execute_result execute;
        tl_status status;
        const char *row, *entries;
    } cases[] = {
        {TL_EXECUTE_SUCCEEDED, TL_SUCCEEDED, "Y 1 1 -", "1P 1Y"},
        {TL_EXECUTE_DECLINED, TL_FAILED, "F 1 1 D", "1P 1F"},
        {TL_EXECUTE_UNKNOWN, TL_IN_DOUBT, "P 1 1 -", "1P"},
        {TL_EXECUTE_ACCEPTED, TL_IN_DOUBT, "P 1 1 -", "1P"},
        {TL_EXECUTE_RETRY_LATER, TL_QUEUED, "P 1 0 -", "1P"},
        {TL_EXECUTE_NOT_SENT, TL_QUEUED, "P 1 0 -", "1P"},
    };
    house *self = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_request request;
        tl_answer answer = TL_ANSWER_INIT;
        one of;
        const struct text called = text_of("C%zu", i);
        const struct text submitted = text_of("S%zu", i);

        request = payout_request(called.is, 10);
        payout_say(cases[i].execute, TL_QUERY_UNREACHABLE);
        assert_status(tl_workflow_run(self->workflows, &request, &answer), cases[i].status);
        pay(self, &of, submitted.is, 10, cases[i].status);
        house_row(self, called.is, cases[i].row);
        house_row(self, submitted.is, cases[i].row);
        payout_entries(self, submitted.is, cases[i].entries);
        assert_int_equal(of.completed, 2);
        assert_int_equal(of.answer.own, answer.own);
        assert_int_equal(of.answer.view.epoch, answer.view.epoch);
        assert_int_equal(of.answer.view.proof, answer.view.proof);
        assert_int_equal(of.answer.view.retryable, answer.view.retryable);
        assert_true((of.answer.next_look_ms > 0) == (answer.next_look_ms > 0));
        assert_string_equal(of.answer.view.channel_ref, submitted.is);
        assert_string_equal(tl_answer_sentence(&of.answer), "");
        tl_answer_clear(&of.answer);
        tl_answer_clear(&answer);
    }
}

TEST_IN(the_worker_ends_it, payout_house, payout_house_close)
{
    house *self = *state;

    payout_say(TL_EXECUTE_UNKNOWN, TL_QUERY_SUCCEEDED);
    pay_only(self, "W1", 100, TL_IN_DOUBT);
    payout_purse(self, "1000 100");
    house_work(self, 1, PATIENCE_MS);
    house_row(self, "W1", "Y 1 1 -");
    payout_entries(self, "W1", "1P 1Y");
    payout_purse(self, "900 0");
}

/* Each refusal with the words that a call has, also when several are refused together. */
TEST_IN(a_refusal_says_why, patient_house, payout_house_close)
{
    enum { TOGETHER = 12 };
    house *self = *state;
    static one many[TOGETHER];
    one of;

    pay(self, &of, "W1", 1001, TL_REFUSED);
    assert_string_equal(of.answer.view.remark, "too little money");
    assert_string_equal(tl_answer_sentence(&of.answer), "too little money");
    assert_int_equal(of.completed, 1);
    tl_answer_clear(&of.answer);
    script.answer[AT_P] = TL_REFUSED;
    script.remark = "closed today";
    pay(self, &of, "W1", 100, TL_REFUSED);
    assert_string_equal(of.answer.view.remark, "closed today");
    tl_answer_clear(&of.answer);
    payout_say(TL_EXECUTE_SUCCEEDED, TL_QUERY_UNREACHABLE);
    for (size_t i = 0; i < PAYOUT_BAD_LINES; i++) {
        script.spoil[AT_P] = payout_bad_lines[i].spoil;
        pay(self, &of, "W1", 100, TL_CALLBACK_FAILED);
        if (strstr(tl_answer_sentence(&of.answer), payout_bad_lines[i].words) == NULL)
            fail_msg("no \"%s\" in \"%s\"", payout_bad_lines[i].words,
                     tl_answer_sentence(&of.answer));
        tl_answer_clear(&of.answer);
    }
    house_row(self, "W1", "none");
    for (int i = 0; i < TOGETHER; i++) {
        one_begin(&many[i], text_of("T%d", i).is);
        script.spoil[AT_P] = i % 3 == 1 ? payout_bad_lines[0].spoil : NULL;
        assert_status(submit(self, &many[i], i % 3 == 0 ? 1001 : 1), TL_OK);
    }
    for (int i = 0; i < TOGETHER; i++) {
        one *done = next(self);
        const int kind = (int)(done - many) % 3;

        assert_status(done->said, kind == 0   ? TL_REFUSED
                                  : kind == 1 ? TL_CALLBACK_FAILED
                                              : TL_GRANTED);
        if (kind == 0)
            assert_string_equal(tl_answer_sentence(&done->answer), "too little money");
        if (kind == 1)
            assert_non_null(strstr(tl_answer_sentence(&done->answer), payout_bad_lines[0].words));
        if (kind == 2)
            assert_status(send_begin(self, done), TL_OK);
    }
    script.spoil[AT_P] = NULL;
    for (int i = 2; i < TOGETHER; i += 3)
        send_end(self, &many[i]);
    for (int i = 2; i < TOGETHER; i += 3)
        assert_status(next(self)->said, TL_SUCCEEDED);
    for (int i = 0; i < TOGETHER; i++)
        tl_answer_clear(&many[i].answer);
    payout_purse(self, "996 0");
}

/* The outcome is true all the same: it is filed, and booked once the books accept it. */
TEST_IN(books_that_refuse_a_success_leave_it_on_file, payout_house, payout_house_close)
{
    house *self = *state;

    script.spoil[AT_Y] = spoil_key;
    pay_only(self, "W1", 100, TL_IN_DOUBT);
    assert_true(house_alarmed(self, "the books refused the outcome SUCCEEDED"));
    payout_entries(self, "W1", "1P");
    script.spoil[AT_Y] = NULL;
    house_work(self, 1, PATIENCE_MS);
    house_row(self, "W1", "Y 1 1 -");
    payout_entries(self, "W1", "1P 1Y");
    payout_purse(self, "900 0");
    assert_int_equal(atomic_load(&script.sent), 1);
}

TEST_IN(who_asks_twice_hears_what_the_row_says, patient_house, payout_house_close)
{
    house *self = *state;
    tl_request request = payout_request("W1", 100);
    one first, second;

    one_begin(&first, "W1");
    assert_status(submit(self, &first, 100), TL_OK);
    one_begin(&second, "W1");
    assert_status(submit(self, &second, 100), TL_OK);
    /* One is granted, in whatever order; the other is told. */
    for (int i = 0; i < 2; i++)
        (void)next(self);
    assert_true((first.said == TL_GRANTED) != (second.said == TL_GRANTED));
    assert_status(first.said == TL_GRANTED ? second.said : first.said, TL_BUSY);
    payout_expect(self, &request, TL_BUSY, NULL);
    if (second.said == TL_GRANTED) {
        tl_answer_clear(&first.answer);
        assert_status(send_begin(self, &second), TL_OK);
        send_end(self, &second);
    } else {
        tl_answer_clear(&second.answer);
        assert_status(send_begin(self, &first), TL_OK);
        send_end(self, &first);
    }
    assert_status(next(self)->said, TL_SUCCEEDED);
    tl_answer_clear(&first.answer);
    tl_answer_clear(&second.answer);
    pay_only(self, "W1", 100, TL_ALREADY_DONE);
    one_begin(&first, "W1");
    request.payload = "n";
    assert_status(tl_workflow_submit(self->workflows, &request, &first.answer, &first), TL_OK);
    assert_status(next(self)->said, TL_MISMATCH);
    tl_answer_clear(&first.answer);
    assert_int_equal(atomic_load(&script.sent), 1);
}

/* "P 0" = status and sends of the sync row. */
static void house_row_of(house *self, const char *serial, const char *op, const char *expected)
{
    char *text = database_text(self->sql,
                               "SELECT CONCAT(status, ' ', sends) FROM trade_lock WHERE "
                               "lane = 'S' AND serial_no = '%s' AND op_code = '%s'",
                               serial, op);

    assert_string_equal(text != NULL ? text : "none", expected);
    free(text);
}

/* Nothing is sent when too little is left of the hold; the library puts it back by itself. */
TEST_IN(too_late_to_send, payout_house, payout_house_close)
{
    house *self = *state;
    tl_workflow workflow = payout_workflow();
    tl_request request = payout_request("W1", 100);
    const tl_attempt *attempt;
    tl_reply *reply;
    one of;

    workflow.op_code = request.key.op_code = "SHORT";
    workflow.policy.max_hold_ms = 1600;
    workflow.policy.execute_ms = 600;
    workflow.policy.commit_ms = 900;
    assert_status(tl_workflow_register(self->workflows, &workflow), TL_OK);
    one_begin(&of, "W1");
    assert_status(tl_workflow_submit(self->workflows, &request, &of.answer, &of), TL_OK);
    assert_status(next(self)->said, TL_GRANTED);
    usleep(1200000);
    assert_status(tl_workflow_send_begin(self->workflows, &of.answer, &attempt, &reply),
                  TL_TIMEOUT);
    (void)next(self);
    /* A machine that stood still for longer finds it lost. */
    assert_true(of.said == TL_QUEUED || of.said == TL_LOST || of.said == TL_IN_DOUBT);
    assert_status(tl_workflow_send_end(self->workflows, &of.answer, TL_EXECUTE_SUCCEEDED),
                  TL_WRONG_STATE);
    assert_int_equal(atomic_load(&script.sent), 0);
    if (of.said == TL_QUEUED) {
        assert_non_null(strstr(of.answer.view.remark, "not sent"));
        house_row_of(self, "W1", "SHORT", "P 0");
    }
    tl_answer_clear(&of.answer);
    payout_entries(self, "W1", "1P");
}

TEST_IN(a_paused_channel_answers_at_once, patient_house, payout_house_close)
{
    house *self = *state;
    tl_pause pause = TL_PAUSE_INIT;
    int64_t begun_ms, end_ms;

    pay_only(self, "W0", 1, TL_SUCCEEDED);
    pause.channel = "c";
    pause.actor = "ann";
    pause.reason = "maintenance";
    assert_status(tl_channel_pause(self->client, &pause), TL_OK);
    end_ms = now_ms() + PATIENCE_MS;
    while (tl_channel_check(self->client, "c", PAYOUT_OP) == TL_OK) {
        assert_true(now_ms() < end_ms);
        usleep(5000);
    }
    begun_ms = now_ms();
    pay_only(self, "W1", 100, TL_OVERLOADED);
    assert_true(now_ms() - begun_ms < PATIENCE_MS);
    house_row(self, "W1", "none");
    pay_only(self, "W0", 1, TL_ALREADY_DONE);
    pause.reason = "over";
    assert_status(tl_channel_resume(self->client, &pause), TL_OK);
    end_ms = now_ms() + PATIENCE_MS;
    while (tl_channel_check(self->client, "c", PAYOUT_OP) != TL_OK) {
        assert_true(now_ms() < end_ms);
        usleep(5000);
    }
    pay_only(self, "W1", 100, TL_SUCCEEDED);
}

/* -------------------------------------------------------------------- others in the way -- */

#define WAIT_S 40

/* Another workflow of the same books, on a channel of its own. */
static void register_other(house *self, const char *op, const char *name, int64_t commit_ms)
{
    tl_workflow workflow = payout_workflow();

    workflow.op_code = op;
    workflow.channel.name = name;
    workflow.policy.commit_ms = commit_ms;
    workflow.policy.execute_ms = 5000;
    workflow.policy.max_hold_ms = 60000;
    assert_status(tl_workflow_register(self->workflows, &workflow), TL_OK);
}

static tl_status submit_to(house *self, one *of, const char *op)
{
    tl_request request = payout_request(of->serial, 1);

    request.key.op_code = op;
    return tl_workflow_submit(self->workflows, &request, &of->answer, of);
}

/* Submitted from the client's own thread, so that both come together. */
static struct {
    house *of;
    one ask, ending;
    const char *op;
    atomic_int failed;
} beside;

static void submit_beside(void *context, tl_lock *lock, tl_status status)
{
    (void)context;
    (void)lock;
    if (status != TL_GRANTED || submit_to(beside.of, &beside.ask, beside.op) != TL_OK ||
        tl_workflow_send_end(beside.of->workflows, &beside.ending.answer, script.execute) != TL_OK)
        atomic_store(&beside.failed, 1);
}

/* An ask of `op` and the ending of another trade, in one batch. */
static tl_lock *ask_beside_an_ending(house *self, const char *op)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    const tl_key key = {"L1", "C2", "LOCK"};
    tl_lock *lock = NULL;

    beside.of = self;
    beside.op = op;
    atomic_store(&beside.failed, 0);
    one_begin(&beside.ask, "B1");
    one_begin(&beside.ending, "B2");
    assert_status(submit(self, &beside.ending, 1), TL_OK);
    assert_status(next(self)->said, TL_GRANTED);
    assert_status(send_begin(self, &beside.ending), TL_OK);
    options.max_hold_ms = 60000;
    options.payload = "x";
    options.payload_size = 1;
    assert_status(tl_lock_new(&lock, self->client, &key, &options), TL_OK);
    assert_status(tl_lock_ask_submit(lock, submit_beside, NULL), TL_OK);
    return lock;
}

static void await_limit(house *self, const char *name)
{
    char line[128];

    snprintf(line, sizeof line, "tradelock_channel_sends_under_way{channel=\"%s\",operation=\"\"}",
             name);
    AWAIT_WHILE(metric_of(self->client, line) < 0);
}

/* An ask that takes its share of a limit waits where somebody has the limit's row locked.  The
 * ending beside it does not. */
TEST_IN(a_limit_holds_up_no_ending, waiting_house, payout_house_close)
{
    house *self = *state;
    tl_limit limit = TL_LIMIT_INIT;
    MYSQL *holder = database_connect(self->db);
    int64_t begun_ms;
    tl_lock *lock;

    register_other(self, "NARROW", "narrow", 5000);
    limit.channel = "narrow";
    limit.sends = 5;
    limit.actor = "ann";
    limit.reason = "the contract";
    assert_status(tl_channel_limit(self->client, &limit), TL_OK);
    await_limit(self, "narrow");
    database_run(holder, "START TRANSACTION; SELECT * FROM trade_channel_limit FOR UPDATE");
    begun_ms = now_ms();
    lock = ask_beside_an_ending(self, "NARROW");
    assert_ptr_equal(next(self), &beside.ending);
    assert_status(beside.ending.said, TL_SUCCEEDED);
    assert_true(now_ms() - begun_ms < WAIT_S * 1000 / 2);
    assert_int_equal(beside.ask.completed, 0);
    database_run(holder, "ROLLBACK");
    assert_ptr_equal(next(self), &beside.ask);
    assert_status(beside.ask.said, TL_GRANTED);
    assert_int_equal(atomic_load(&beside.failed), 0);
    op_code = "NARROW";
    assert_status(send_begin(self, &beside.ask), TL_OK);
    op_code = PAYOUT_OP;
    send_end(self, &beside.ask);
    assert_status(next(self)->said, TL_SUCCEEDED);
    tl_answer_clear(&beside.ask.answer);
    tl_answer_clear(&beside.ending.answer);
    tl_lock_free(lock);
    mysql_close(holder);
    payout_purse(self, "998 0");
}

TEST_IN(a_pause_refuses_beside_an_ending, patient_house, payout_house_close)
{
    house *self = *state;
    tl_pause pause = TL_PAUSE_INIT;
    tl_lock *lock;

    register_other(self, "SHUT", "shut", 5000);
    pause.channel = "shut";
    pause.actor = "ann";
    pause.reason = "maintenance";
    assert_status(tl_channel_pause(self->client, &pause), TL_OK);
    AWAIT_WHILE(tl_channel_check(self->client, "shut", "SHUT") == TL_OK);
    lock = ask_beside_an_ending(self, "SHUT");
    while (beside.ending.completed < 2 || beside.ask.completed < 1)
        (void)next(self);
    assert_int_equal(atomic_load(&beside.failed), 0);
    assert_status(beside.ending.said, TL_SUCCEEDED);
    assert_status(beside.ask.said, TL_OVERLOADED);
    assert_non_null(strstr(tl_answer_sentence(&beside.ask.answer), "paused"));
    house_row(self, "B1", "none");
    house_row(self, "B2", "Y 1 1 -");
    tl_answer_clear(&beside.ask.answer);
    tl_answer_clear(&beside.ending.answer);
    tl_lock_free(lock);
}

/* ----------------------------------------------------------------- a row that somebody has -- */

#define STUCK 6 /* asks, and as many endings */
#define FREE 30

static void take_purse(MYSQL *holder)
{
    database_run(holder,
                 "START TRANSACTION; SELECT 1 FROM purse WHERE cust_no = 'HELD' FOR UPDATE");
}

static tl_status submit_stuck(house *self, one *of, char kind, int number)
{
    tl_request request;

    one_begin(of, text_of("%c%d", kind, number).is);
    request = payout_request(of->serial, 1);
    request.key.cust_no = "HELD";
    return tl_workflow_submit(self->workflows, &request, &of->answer, of);
}

static void go_on(house *self, one *of)
{
    if (of->said == TL_GRANTED) {
        assert_status(send_begin(self, of), TL_OK);
        send_end(self, of);
    } else {
        assert_status(of->said, TL_SUCCEEDED);
        tl_answer_clear(&of->answer);
    }
}

/* Neither the asks nor the endings that meet it keep the library's thread from what others submit,
 * and they go on once it is free. */
TEST_IN(a_held_row_stops_no_other_run, waiting_house, payout_house_close)
{
    static one endings[STUCK], asks[STUCK];
    house *self = *state;
    MYSQL *holder = database_connect(self->db);

    database_run(self->sql, "INSERT INTO purse (cust_no, balance) VALUES ('HELD', 100)");
    for (int i = 0; i < STUCK; i++)
        assert_status(submit_stuck(self, &endings[i], 'E', i), TL_OK);
    for (int i = 0; i < STUCK; i++)
        assert_status(next(self)->said, TL_GRANTED);
    take_purse(holder);
    for (int i = 0; i < STUCK; i++) {
        go_on(self, &endings[i]);
        assert_status(submit_stuck(self, &asks[i], 'A', i), TL_OK);
    }
    for (int i = 0; i < FREE; i++)
        pay_only(self, text_of("F%d", i).is, 1, TL_SUCCEEDED);
    database_run(holder, "ROLLBACK");
    for (int i = 0; i < 3 * STUCK; i++)
        go_on(self, next(self));
    mysql_close(holder);
    payout_purse(self, "970 0");
    database_expect(self->sql, 100 - 2 * STUCK,
                    "SELECT balance FROM purse WHERE cust_no = 'HELD' AND frozen = 0");
    database_expect(self->sql, 2 * (FREE + 2 * STUCK), "SELECT COUNT(*) FROM entry");
}

/* A workflow's own budget holds for its endings, whatever the client's is. */
TEST_IN(an_ending_is_given_up_in_its_workflows_time, waiting_house, payout_house_close)
{
    tl_workflow workflow = payout_workflow();
    house *self = *state;
    MYSQL *holder = database_connect(self->db);
    one of;

    workflow.op_code = op_code = "SHORT";
    workflow.policy.commit_ms = 300;
    assert_status(tl_workflow_register(self->workflows, &workflow), TL_OK);
    one_begin(&of, "W1");
    assert_status(submit(self, &of, 1), TL_OK);
    op_code = PAYOUT_OP;
    assert_ptr_equal(next(self), &of);
    database_run(holder, "START TRANSACTION; SELECT 1 FROM purse WHERE cust_no = 'C1' FOR UPDATE");
    assert_status(of.said, TL_GRANTED);
    go_on(self, &of);
    assert_ptr_equal(next(self), &of);
    assert_status(of.said, TL_IN_DOUBT);
    tl_answer_clear(&of.answer);
    mysql_close(holder);
    assert_true(house_alarmed(self, "the books refused the outcome SUCCEEDED"));
}

static tl_status debit(void *context, const tl_attempt *attempt, const tl_reply *reply,
                       tl_book *book)
{
    (void)context;
    (void)attempt;
    (void)reply;
    tl_book_line(book, "debit");
    return TL_OK;
}

/* An operation whose endings all change one row. */
static void register_shared(house *self)
{
    static const tl_statement statements[] = {
        {.name = "debit",
         .sql = "UPDATE purse SET balance = balance - :amount_minor WHERE cust_no = 'HELD'",
         .shared = 1}};
    tl_workflow workflow = payout_workflow();

    workflow.op_code = PLAIN_OP;
    workflow.channel = (tl_channel){.name = "plain", .can_query = 1, .not_found_final = 1};
    workflow.execute = plain_execute;
    workflow.query = plain_query;
    workflow.statements = statements;
    workflow.statement_count = 1;
    workflow.book_prepare = NULL;
    workflow.book_success = debit;
    workflow.book_failure = NULL;
    assert_status(tl_workflow_register(self->workflows, &workflow), TL_OK);
}

/* What may wait for such a row waits in the server, and nobody else with it. */
TEST_IN(a_held_shared_row_stops_no_other_run, waiting_house, payout_house_close)
{
    static one stuck[STUCK];
    house *self = *state;
    MYSQL *holder = database_connect(self->db);

    database_run(self->sql, "INSERT INTO purse (cust_no, balance) VALUES ('HELD', 100)");
    register_shared(self);
    take_purse(holder);
    for (int i = 0; i < STUCK; i++) {
        char serial[16];

        snprintf(serial, sizeof serial, "S%d", i);
        one_begin(&stuck[i], serial);
        op_code = PLAIN_OP;
        assert_status(submit(self, &stuck[i], 1), TL_OK);
        assert_ptr_equal(next(self), &stuck[i]);
        assert_status(stuck[i].said, TL_GRANTED);
        go_on(self, &stuck[i]);
        op_code = PAYOUT_OP;
        snprintf(serial, sizeof serial, "F%d", i);
        pay_only(self, serial, 1, TL_SUCCEEDED);
    }
    database_run(holder, "ROLLBACK");
    for (int i = 0; i < STUCK; i++)
        go_on(self, next(self));
    mysql_close(holder);
    database_expect(self->sql, 100 - STUCK, "SELECT balance FROM purse WHERE cust_no = 'HELD'");
}

static MYSQL *hold_row(house *self, const char *serial)
{
    MYSQL *holder = database_connect(self->db);

    database_run(holder,
                 "START TRANSACTION; SELECT 1 FROM trade_lock WHERE serial_no = '%s' FOR UPDATE",
                 serial);
    return holder;
}

/* An ending that met a row somebody holds is tried again by the registry's thread. */
TEST_IN(the_row_names_who_submitted, payout_house, payout_house_close)
{
    house *self = *state;
    MYSQL *holder;
    one of;

    register_other(self, "HELD", "held", 30000);
    one_begin(&of, "W1");
    assert_status(submit_to(self, &of, "HELD"), TL_OK);
    assert_status(next(self)->said, TL_GRANTED);
    assert_status(send_begin(self, &of), TL_OK);
    holder = hold_row(self, "W1");
    send_end(self, &of);
    usleep(3500000); /* three times as long as a try waits */
    database_run(holder, "ROLLBACK");
    mysql_close(holder);
    assert_status(next(self)->said, TL_SUCCEEDED);
    tl_answer_clear(&of.answer);
    database_expect(self->sql, 1,
                    "SELECT status = 'Y' AND thread_no = '%s' FROM trade_lock WHERE serial_no = "
                    "'W1' AND lane = 'S'",
                    tl_thread_uuid());
}

TEST_IN(an_unknown_ending_is_settled, payout_house, payout_house_close)
{
    house *self = *state;
    MYSQL *holder;
    one of;

    register_other(self, "HELD", "held", 500);
    payout_say(TL_EXECUTE_UNKNOWN, TL_QUERY_UNREACHABLE);
    one_begin(&of, "W1");
    assert_status(submit_to(self, &of, "HELD"), TL_OK);
    assert_status(next(self)->said, TL_GRANTED);
    assert_status(send_begin(self, &of), TL_OK);
    holder = hold_row(self, "W1");
    send_end(self, &of);
    assert_status(next(self)->said, TL_UNKNOWN);
    assert_true(tl_answer_sentence(&of.answer)[0] != '\0');
    database_run(holder, "ROLLBACK");
    mysql_close(holder);
    assert_status(tl_workflow_settle(self->workflows, &of.answer), TL_IN_DOUBT);
    assert_status(of.answer.status, TL_IN_DOUBT);
    assert_string_equal(tl_answer_sentence(&of.answer), "");
    assert_status(tl_workflow_settle(self->workflows, &of.answer), TL_WRONG_STATE);
    tl_answer_clear(&of.answer);
    assert_int_equal(atomic_load(&script.sent), 1);
}

/* ----------------------------------------------------------------------- what is noted -- */

/* A service that closes gives its payments up. */
TEST_IN(what_is_not_sent_says_nothing_of_the_channel, patient_house, payout_house_close)
{
    house *self = *state;

    payout_say(TL_EXECUTE_NOT_SENT, TL_QUERY_UNREACHABLE);
    for (int i = 0; i < 8; i++) {
        char serial[16];

        snprintf(serial, sizeof serial, "N%d", i);
        pay_only(self, serial, 1, TL_QUEUED);
    }
    assert_false(house_alarmed(self, "has been failing"));
    payout_say(TL_EXECUTE_UNKNOWN, TL_QUERY_UNREACHABLE);
    for (int i = 0; i < 5; i++) {
        char serial[16];

        snprintf(serial, sizeof serial, "U%d", i);
        pay_only(self, serial, 1, TL_IN_DOUBT);
    }
    assert_true(house_alarmed(self, "has been failing"));
}

/* ----------------------------------------------------------------- the registry's thread -- */

#define ITEMS 4
static struct {
    later_item item[ITEMS], gate;
    atomic_int open, count;
    int order[ITEMS];
    sigset_t blocked;
} in_turn;

static void wait_at_gate(later_item *item)
{
    (void)item;
    pthread_sigmask(SIG_BLOCK, NULL, &in_turn.blocked);
    while (!atomic_load(&in_turn.open))
        usleep(1000);
}

static void note_turn(later_item *item)
{
    in_turn.order[atomic_load(&in_turn.count)] = (int)(item - in_turn.item);
    atomic_fetch_add(&in_turn.count, 1);
}

/* What is due first comes first, and what waits for the database after all others. */
TEST(later_goes_in_turn)
{
    static const int64_t due_ms[ITEMS] = {1, 3, 2, 2};
    static const int waits[ITEMS] = {1, 0, 0, 0};
    static const int expected[ITEMS] = {2, 3, 1, 0};
    static later all;

    assert_status(later_init(&all), TL_OK);
    assert_status(later_enter(&all), TL_OK);
    in_turn.gate.run = wait_at_gate;
    later_put(&all, &in_turn.gate);
    for (int i = 0; i < ITEMS; i++) {
        in_turn.item[i] = (later_item){.due_ms = due_ms[i], .waits = waits[i], .run = note_turn};
        later_put(&all, &in_turn.item[i]);
    }
    atomic_store(&in_turn.open, 1);
    while (atomic_load(&in_turn.count) < ITEMS)
        usleep(1000);
    assert_memory_equal(in_turn.order, expected, sizeof expected);
    /* A signal of the service is taken by its own threads. */
    assert_int_equal(sigismember(&in_turn.blocked, SIGTERM), 1);
    later_leave(&all);
    later_destroy(&all);
}

/* -------------------------------------------------------------------------------- misuse -- */

TEST_IN(bad_input_writes_nothing, patient_house, payout_house_close)
{
    static const tl_answer empty = TL_ANSWER_INIT;
    house *self = *state;
    tl_workflow workflow = payout_workflow();
    tl_request request = payout_request("W1", 100);
    const tl_attempt *attempt;
    tl_reply *reply;
    tl_answer answer = empty;

#define REFUSED(status, words)                                                                     \
    do {                                                                                           \
        assert_status(tl_workflow_submit(self->workflows, &request, &answer, NULL), status);       \
        payout_said(words);                                                                        \
        assert_memory_equal(&answer, &empty, sizeof answer);                                       \
        request = payout_request("W1", 100);                                                       \
    } while (0)
    request.wait_ms = 1;
    REFUSED(TL_INVALID, "wait_ms");
    request.reclaim_epoch = 1;
    REFUSED(TL_INVALID, "reclaim_epoch");
    request.payload = NULL;
    REFUSED(TL_INVALID, "payload");
    request.version = 0;
    REFUSED(TL_INVALID, "TL_REQUEST_INIT");
    request.key.op_code = "NONE";
    REFUSED(TL_UNKNOWN_OPERATION, "NONE");
    request.currency = "eur";
    REFUSED(TL_INVALID, "currency");
    workflow.op_code = "MIXED";
    workflow.book_success = NULL;
    workflow.sql_success = (tl_sql_success_fn)(void *)abort;
    assert_status(tl_workflow_register(self->workflows, &workflow), TL_OK);
    request.key.op_code = "MIXED";
    REFUSED(TL_INVALID, "connection");
    assert_status(tl_workflow_submit(NULL, &request, &answer, NULL), TL_INVALID);
    assert_status(tl_workflow_submit(self->workflows, NULL, &answer, NULL), TL_INVALID);
    assert_status(tl_workflow_submit(self->workflows, &request, NULL, NULL), TL_INVALID);
    assert_status(tl_workflow_send_begin(self->workflows, &answer, &attempt, &reply),
                  TL_WRONG_STATE);
    assert_status(tl_workflow_send_begin(self->workflows, NULL, &attempt, &reply), TL_INVALID);
    assert_status(tl_workflow_send_end(self->workflows, &answer, TL_EXECUTE_SUCCEEDED),
                  TL_WRONG_STATE);
    assert_status(tl_workflow_send_end(NULL, &answer, TL_EXECUTE_SUCCEEDED), TL_INVALID);
    assert_string_equal(tl_answer_sentence(NULL), "");
    assert_string_equal(tl_answer_sentence(&answer), "");
    house_row(self, "W1", "none");
#undef REFUSED
}

static int call_in_child(house *self, one *of)
{
    const tl_attempt *attempt;
    tl_reply *reply;
    tl_answer other = TL_ANSWER_INIT;
    tl_request request = payout_request("W2", 1);

    if (tl_workflow_send_begin(self->workflows, &of->answer, &attempt, &reply) != TL_WRONG_PROCESS)
        return 1;
    if (tl_workflow_send_end(self->workflows, &of->answer, TL_EXECUTE_SUCCEEDED) !=
        TL_WRONG_PROCESS)
        return 2;
    if (tl_workflow_submit(self->workflows, &request, &other, NULL) != TL_WRONG_PROCESS)
        return 3;
    return 0;
}

TEST_IN(a_run_under_way_is_kept, patient_house, payout_house_close)
{
    house *self = *state;
    const tl_attempt *attempt;
    tl_reply *reply;
    int status;
    pid_t child;
    one of;

    one_begin(&of, "W1");
    assert_status(submit(self, &of, 100), TL_OK);
    assert_status(next(self)->said, TL_GRANTED);
    tl_answer_clear(&of.answer);
    assert_true(house_alarmed(self, "the answer is not cleared"));
    tl_workflows_free(self->workflows);
    assert_true(house_alarmed(self, "the registry is not freed"));
    assert_status(tl_workflow_settle(self->workflows, &of.answer), TL_WRONG_STATE);
    assert_status(tl_workflow_send_end(self->workflows, &of.answer, TL_EXECUTE_SUCCEEDED),
                  TL_WRONG_STATE);
    assert_status(tl_workflow_send_begin(self->workflows, &of.answer, NULL, &reply), TL_INVALID);
    assert_string_equal(tl_answer_sentence(&of.answer), "");
    child = fork();
    if (child == 0)
        _exit(call_in_child(self, &of));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_status(send_begin(self, &of), TL_OK);
    assert_status(tl_workflow_send_begin(self->workflows, &of.answer, &attempt, &reply),
                  TL_WRONG_STATE);
    /* A number that is no answer is UNKNOWN. */
    assert_status(tl_workflow_send_end(self->workflows, &of.answer, (tl_execute_result)99), TL_OK);
    assert_status(next(self)->said, TL_IN_DOUBT);
    tl_answer_clear(&of.answer);
    house_row(self, "W1", "P 1 1 -");
}

/* ------------------------------------------------------------------------ many at a time -- */

static int many; /* of them are used */

struct rivals {
    house *of;
    atomic_uint paid, other;
};

static void serial_of(char serial[16], int i)
{
    snprintf(serial, 16, "M%d", i);
}

/* Two threads go through one half of the keys, two through the other. */
static void run_all(void *context, int number)
{
    struct rivals *rivals = context;

    for (int i = 0; i < many / 2; i++) {
        char serial[16];
        tl_request request;
        tl_answer answer = TL_ANSWER_INIT;
        tl_status status;

        serial_of(serial, number % 2 == 0 ? i : many - 1 - i);
        request = payout_request(serial, 1);
        request.key.op_code = op_code;
        status = tl_workflow_run(rivals->of->workflows, &request, &answer);
        if (status == TL_SUCCEEDED)
            atomic_fetch_add(&rivals->paid, 1);
        else if (status != TL_ALREADY_DONE && status != TL_BUSY)
            atomic_fetch_add(&rivals->other, 1);
        tl_answer_clear(&answer);
    }
}

static void *run_rivals(void *context)
{
    crew_threads(4, run_all, context);
    return NULL;
}

static int threads_now(void)
{
    char line[128];
    int count = 0;
    FILE *file = fopen("/proc/self/status", "r");

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        (void)sscanf(line, "Threads: %d", &count);
    if (file != NULL)
        fclose(file);
    return count;
}

static one ones[MANY];

/* All are submitted before one is sent, so that as many as are granted are held at once. */
static unsigned pay_many(house *self, int *most_threads)
{
    unsigned paid = 0;
    int asked = many, granted = 0;

    for (int i = 0; i < many; i++) {
        char serial[16];

        serial_of(serial, i);
        one_begin(&ones[i], serial);
        assert_status(submit(self, &ones[i], 1), TL_OK);
    }
    for (; asked > 0; asked--) {
        one *of = next(self);

        granted += of->said == TL_GRANTED;
        if (of->said != TL_GRANTED && of->said != TL_BUSY && of->said != TL_ALREADY_DONE)
            fail_msg("%s: %s", tl_status_name(of->said), tl_answer_sentence(&of->answer));
    }
    if (most_threads != NULL)
        *most_threads = threads_now();
    for (int i = 0; i < many; i++) {
        if (ones[i].said != TL_GRANTED)
            continue;
        assert_status(send_begin(self, &ones[i]), TL_OK);
        send_end(self, &ones[i]);
    }
    for (; granted > 0; granted--) {
        one *of = next(self);

        assert_status(of->said, TL_SUCCEEDED);
        paid++;
    }
    for (int i = 0; i < many; i++)
        tl_answer_clear(&ones[i].answer);
    return paid;
}

/* What the channel paid is what is booked, and nothing is paid twice. */
static void each_key_is_paid_once(house *self, unsigned expected)
{
    unsigned paid = 0;

    for (int i = 0; i < many; i++) {
        assert_true(atomic_load(&paid_of[i]) <= 1);
        paid += atomic_load(&paid_of[i]);
    }
    assert_int_equal(paid, expected);
    database_expect(self->sql, paid,
                    "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'Y'");
    database_expect(self->sql, paid, "SELECT COUNT(*) FROM entry WHERE what = 'Y'");
    payout_purse(self, text_of("%u 0", 10000 - paid).is);
}

TEST_IN(a_thousand_from_one_thread, plain_house, plain_house_close)
{
    house *self = *state;
    const int before = threads_now();
    tl_stats stats = {.version = TL_STATS_VERSION}, was = stats;
    int most = 0;

    many = MANY;
    tl_client_stats(self->client, &was);
    assert_int_equal(pay_many(self, &most), MANY);
    tl_client_stats(self->client, &stats);
    each_key_is_paid_once(self, MANY);
    /* Three carry out steps, one waits for what is tried again. */
    assert_true(most <= before + 4);
    print_message("%d runs in flight: %d threads more, %llu groups of %llu steps\n", MANY,
                  most - before, (unsigned long long)(stats.groups - was.groups),
                  (unsigned long long)(stats.grouped - was.grouped));
    assert_true(stats.groups - was.groups < MANY / 2);
}

TEST_IN(against_threads_with_the_same_keys, plain_house, plain_house_close)
{
    house *self = *state;
    struct rivals rivals = {.of = self};
    pthread_t thread;
    unsigned paid;

    many = SOME;
    assert_int_equal(pthread_create(&thread, NULL, run_rivals, &rivals), 0);
    paid = pay_many(self, NULL);
    pthread_join(thread, NULL);
    print_message("the loop paid %u, threads %u\n", paid, atomic_load(&rivals.paid));
    assert_int_equal(paid + atomic_load(&rivals.paid), SOME);
    assert_int_equal(atomic_load(&rivals.other), 0);
    each_key_is_paid_once(self, SOME);
}

/* ------------------------------------------------------- a real channel, and real trouble -- */

/* The loop of a service: it sends with the sample's HTTP, and ends what it has sent.  sent: counted
 * after each send; hold: so many sends, then none until it is killed. */
static void work_through(house *self, int count, atomic_int *sent, int hold)
{
    channel *line = NULL;
    int left = 2 * count;

    assert_status(channel_new(&line, self->client, self->url), TL_OK);
    for (int i = 0; i < count; i++) {
        withdraw_order order = {.amount_minor = 1, .currency = "EUR", .payee = "Anna"};
        char *payload = withdraw_order_write(&order), serial[16];
        tl_request request = TL_REQUEST_INIT;

        serial_of(serial, i);
        one_begin(&ones[i], serial);
        request.key = (tl_key){ones[i].serial, "C1", WITHDRAW_OP};
        request.payload = payload;
        request.payload_size = strlen(payload);
        request.amount_minor = 1;
        request.currency = "EUR";
        assert_status(tl_workflow_submit(self->workflows, &request, &ones[i].answer, &ones[i]),
                      TL_OK);
        free(payload);
    }
    while (left > 0) {
        const tl_attempt *attempt;
        tl_reply *reply;
        one *of = next(self);

        left--;
        if (of->said != TL_GRANTED) {
            left -= of->completed == 1; /* no second one comes */
            continue;
        }
        while (atomic_load(sent) >= hold)
            pause();
        if (tl_workflow_send_begin(self->workflows, &of->answer, &attempt, &reply) != TL_OK)
            continue;
        assert_status(tl_workflow_send_end(self->workflows, &of->answer,
                                           channel_execute(line, attempt, reply)),
                      TL_OK);
        atomic_fetch_add(sent, 1);
    }
    for (int i = 0; i < count; i++)
        tl_answer_clear(&ones[i].answer);
    channel_free(line);
}

struct killed {
    house *of;
    int hold;
    atomic_int *sent;
};

static void service(void *context, int number)
{
    struct killed *killed = context;

    (void)number;
    house_reopen(killed->of);
    work_through(killed->of, KEYS, killed->sent, killed->hold);
}

/* Whatever became of each trade, channel and books agree. */
static void all_is_right(house *self, int count)
{
    long long paid;

    const int64_t begun_ms = now_ms();

    house_work(self, 4, 2 * PATIENCE_MS);
    print_message("all have ended after %lld ms\n", (long long)(now_ms() - begun_ms));
    paid = database_number(self->sql, "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND "
                                      "status = 'Y'");
    database_expect(self->sql, 0,
                    "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND status = 'P'");
    house_books(self, paid);
    for (int i = 0; i < count; i++) {
        char serial[16];
        tl_answer answer = TL_ANSWER_INIT;
        tl_status status;

        serial_of(serial, i);
        status = house_run(self, serial, "C1", 1, 0, &answer);
        paid += status == TL_SUCCEEDED;
        if (status != TL_SUCCEEDED && status != TL_ALREADY_DONE && status != TL_FAILED)
            fail_msg("%s is %s: %s", serial, tl_status_name(status), tl_error_message());
        tl_answer_clear(&answer);
    }
    house_books(self, paid);
    house_balance(self, "C1", text_of("%lld 0", 100000 - paid).is);
}

/* hold: how many have been sent when it is killed; of the others those that came first are P. */
static void killed_in_the_middle(withdraw_kind kind, int hold)
{
    static house self;
    struct killed killed = {.of = &self, .hold = hold, .sent = crew_share(sizeof(atomic_int))};
    const int64_t begun_ms = now_ms();
    int64_t end_ms = begun_ms + PATIENCE_MS;
    int status;
    pid_t child;

    house_open(&self, kind, HOUSE_SETTINGS_OF("5s"), NULL);
    house_account(&self, "C1", 100000);
    house_leave(&self);
    child = crew_fork(service, &killed, 0);
    while (atomic_load(killed.sent) < hold ||
           database_number(self.sql, "SELECT COUNT(*) FROM trade_lock") < 2 * hold + 2) {
        assert_true(now_ms() < end_ms);
        usleep(2000);
    }
    print_message("%d sent, killed after %lld ms\n", hold, (long long)(now_ms() - begun_ms));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    database_set(self.db, HOUSE_SETTINGS);
    house_reopen(&self);
    all_is_right(&self, KEYS);
    house_close(&self);
    crew_unshare(killed.sent, sizeof(atomic_int));
}

struct cutter {
    house *of;
    MYSQL *own;
    atomic_int stop, cut;
};

/* All connections to this database, but the test's. */
static void *cut_all(void *argument)
{
    struct cutter *cutter = argument;

    for (int i = 0; i < CUTS && !atomic_load(&cutter->stop); i++) {
        char *kills = database_text(
            cutter->own,
            "SELECT GROUP_CONCAT('KILL ', id SEPARATOR ';') FROM information_schema.processlist "
            "WHERE db = DATABASE() AND id NOT IN (CONNECTION_ID(), %lu)",
            mysql_thread_id(cutter->of->sql));

        for (char *rest = NULL, *at = kills != NULL ? strtok_r(kills, ";", &rest) : NULL;
             at != NULL; at = strtok_r(NULL, ";", &rest))
            atomic_fetch_add(&cutter->cut, mysql_query(cutter->own, at) == 0);
        free(kills);
        usleep(50000);
    }
    return NULL;
}

/* Whoever is told that nothing happened, or hears nothing, asks again. */
static unsigned pay_the_others(house *self)
{
    unsigned paid = 0;

    for (int i = 0; i < many; i++) {
        char serial[16];
        tl_request request;
        tl_answer answer = TL_ANSWER_INIT;
        tl_status status;

        serial_of(serial, i);
        request = payout_request(serial, 1);
        request.key.op_code = op_code;
        status = tl_workflow_run(self->workflows, &request, &answer);
        if (status != TL_SUCCEEDED && status != TL_ALREADY_DONE && status != TL_FAILED)
            fail_msg("%s is %s: %s", serial, tl_status_name(status), tl_error_message());
        paid += status != TL_FAILED;
        tl_answer_clear(&answer);
    }
    return paid;
}

TEST_IN(a_lost_answer_is_settled, plain_house, plain_house_close)
{
    house *self = *state;
    struct cutter cutter = {.of = self, .own = database_connect(self->db)};
    tl_stats stats = {.version = TL_STATS_VERSION};
    int left = 2 * SOME, ended = 0;
    pthread_t thread;

    many = SOME;
    assert_int_equal(pthread_create(&thread, NULL, cut_all, &cutter), 0);
    for (int i = 0; i < many; i++) {
        char serial[16];

        serial_of(serial, i);
        one_begin(&ones[i], serial);
        assert_status(submit(self, &ones[i], 1), TL_OK);
    }
    while (left > 0) {
        one *of = next(self);

        left--;
        if (of->said != TL_GRANTED) {
            left -= of->completed == 1;
            ended += of->said == TL_SUCCEEDED;
        } else if (send_begin(self, of) == TL_OK) {
            send_end(self, of);
        }
    }
    atomic_store(&cutter.stop, 1);
    pthread_join(thread, NULL);
    mysql_close(cutter.own);
    tl_client_stats(self->client, &stats);
    print_message("%d connections cut, %llu steps repeated, %llu settled; %d succeeded at once\n",
                  atomic_load(&cutter.cut), (unsigned long long)stats.repeats,
                  (unsigned long long)stats.settled, ended);
    assert_true(stats.repeats + stats.settled > 0);
    for (int i = 0; i < many; i++)
        tl_answer_clear(&ones[i].answer);
    house_work(self, 4, 2 * PATIENCE_MS);
    each_key_is_paid_once(self, pay_the_others(self));
}

/* ------------------------------------------------------------------------------ the tests -- */

FIXTURE(patient_house)
{
    static house self;

    payout_say(TL_EXECUTE_SUCCEEDED, TL_QUERY_UNREACHABLE);
    house_open_bare(&self, HOUSE_PATIENT_SETTINGS, NULL);
    payout_open(&self);
    *state = &self;
}

/* Whoever waits for a row waits long. */
FIXTURE(waiting_house)
{
    static house self;

    payout_say(TL_EXECUTE_SUCCEEDED, TL_QUERY_UNREACHABLE);
    house_open_bare(&self,
                    "site=test\nbeat_ms=100ms\nsession_ms=2m\nmax_hold_ms=3m\nexecute_ms=20s\n"
                    "commit_ms=100s\ndeadline_ms=10m\nschedule=50ms,100ms\nattempts=8\n"
                    "grace_ms=200ms\nclock_margin_ms=50ms\nbusiness_lock_wait_s=40\n"
                    "read_timeout_s=60\n",
                    NULL);
    payout_open(&self);
    *state = &self;
}

FIXTURE(plain_house)
{
    tl_workflow workflow = payout_workflow();
    house *self;

    (void)patient_house(state);
    self = *state;
    workflow.op_code = op_code = PLAIN_OP;
    workflow.channel = (tl_channel){.name = "plain", .can_query = 1, .not_found_final = 1};
    workflow.execute = plain_execute;
    workflow.query = plain_query;
    assert_status(tl_workflow_register(self->workflows, &workflow), TL_OK);
    database_run(self->sql, "UPDATE purse SET balance = 10000");
    for (int i = 0; i < MANY; i++)
        atomic_store(&paid_of[i], 0);
}

static int plain_house_close(void **state)
{
    op_code = PAYOUT_OP;
    return payout_house_close(state);
}

TESTS_OF(submit, NULL, NULL)

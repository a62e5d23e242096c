/*
 * Every allocation within every call of the workflow layer fails once, those of the library below
 * and the starts of threads among them.  At the end, when the process is gone and another one has
 * put things right, money has moved exactly where the row says so.
 */
#include "base/clock.h"
#include "base/fault.h"
#include "fake_channel.h"
#include "support/theme.h"

#include <tradelock/questions.h>
#include <tradelock/struct.h>
#include <tradelock/submit.h>
#include <tradelock/worker.h>

#include <poll.h>

#define ALLOCATIONS_MAX 400
#define POLL_MS 5

/* Whoever puts things right looks often. */
#define NURSE                                                                                      \
    "beat_ms=100ms\nsession_ms=60s\nschedule=50ms,100ms\nexecute_ms=1s\ncommit_ms=2s\n"            \
    "max_hold_ms=60s\ngrace_ms=100ms\nclock_margin_ms=50ms\ndeadline_ms=1h\nattempts="             \
    "1000\npoison=100\n"

static scene s;
static char *nurse_file;
/* The near client's and the test's own. */
static long long connections_before;

static tl_request request_of(uint32_t reclaim_epoch)
{
    tl_request request = TL_REQUEST_INIT;

    request.key = (tl_key){s.serial, s.cust, "WITHDRAW"};
    request.payload = "100 EUR";
    request.payload_size = 7;
    request.reclaim_epoch = reclaim_epoch;
    return request;
}

/* --------------------------------------------------------------------- the case -- */

static unsigned number; /* of the allocation that fails, for a sentence */

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_message("allocation %u: not so: %s; ", number, #condition);                      \
            print_message(__VA_ARGS__);                                                            \
            print_message(" (%s)\n", tl_error_message());                                          \
            server_print_work(s.where);                                                            \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

/* Counted from here; 0: none fails. */
static void fail_allocation(unsigned n)
{
    char text[16];

    snprintf(text, sizeof text, "%u", n);
    setenv("TL_FAULT_ALLOC", text, 1);
    fault_reload();
}

/* hasty: a client that soon gives up a line that is down. */
static void begin(unsigned n, int hasty)
{
    number = n;
    channel_begin();
    scene_begin(&s, hasty);
}

static long long connections(void)
{
    return database_number(s.sql,
                           "SELECT COUNT(*) FROM information_schema.processlist "
                           "WHERE db = '%s'",
                           database_name(s.db));
}

/* The client is gone, and with it all of its connections. */
static void end_client(void)
{
    int64_t end_ms = clock_deadline(PATIENCE_MS);
    long long left;

    scene_end(&s);
    for (;;) {
        left = connections();
        if (left <= connections_before || clock_left_ms(end_ms) == 0)
            break;
        clock_sleep_until_ms(clock_deadline(POLL_MS));
    }
    CHECK(left <= connections_before, "%lld connections are left, %lld belong there", left,
          connections_before);
}

static char status_now(void)
{
    char row[64];

    scene_row(&s, "WITHDRAW", row, sizeof row);
    return row[0];
}

/* Another process finishes what is open: by evidence, query and proof, as always. */
static void nurse(void)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_worker_options with = TL_WORKER_OPTIONS_INIT;
    int64_t end_ms = clock_deadline(PATIENCE_MS);
    tl_workflows *workflows;
    tl_client *client = NULL;
    tl_worker *worker = NULL;

    if (status_now() != 'P')
        return;
    options.config_file = nurse_file;
    while (tl_client_open(&client, &options) != TL_OK)
        CHECK(clock_left_ms(end_ms) > 0, "no client");
    workflows = channel_registry(client);
    with.idle_max_ms = 50;
    CHECK(tl_worker_start(&worker, workflows, &with) == TL_OK, "no worker");
    while (status_now() == 'P' && clock_left_ms(end_ms) > 0)
        clock_sleep_until_ms(clock_deadline(POLL_MS));
    tl_worker_free(worker);
    tl_workflows_free(workflows);
    tl_client_close(client);
    CHECK(status_now() != 'P', "nobody could end it");
}

/* Money moved once exactly where the row and the books say so. */
static void check_books(void)
{
    char status = status_now();
    unsigned paid = atomic_load(&channel.paid);

    CHECK(paid <= 1, "paid %u times", paid);
    CHECK((status == 'Y') == (paid == 1), "status %c, paid %u times", status, paid);
    CHECK(scene_ledger(&s) == (long long)paid, "booked %lld times, paid %u times", scene_ledger(&s),
          paid);
}

/* Until it is decided, as a caller would: a busy machine needs more than one call. */
static tl_status go_on(tl_workflows *workflows, const tl_request *request, tl_answer *answer,
                       tl_status status)
{
    int64_t end_ms = clock_deadline(PATIENCE_MS);

    while (clock_left_ms(end_ms) > 0) {
        if (status == TL_UNKNOWN) {
            status = tl_workflow_settle(workflows, answer);
        } else if (tl_status_class(status) == TL_CLASS_RETRY) {
            tl_answer_clear(answer);
            status = tl_workflow_run(workflows, request, answer);
        } else {
            break;
        }
    }
    return status;
}

/* A trade of its own, with the same client: an allocation that failed broke nothing. */
static void check_still_works(tl_workflows *workflows)
{
    tl_answer answer = TL_ANSWER_INIT;
    tl_request request;
    struct channel kept = channel;
    tl_status status;
    char serial[sizeof s.serial], cust[sizeof s.cust];

    memcpy(serial, s.serial, sizeof serial);
    memcpy(cust, s.cust, sizeof cust);
    scene_next_trade(&s);
    channel.answer = TL_EXECUTE_SUCCEEDED;
    channel.within_prepare = channel.within_execute = NULL;
    request = request_of(0);
    status = tl_workflow_run(workflows, &request, &answer);
    status = go_on(workflows, &request, &answer, status);
    CHECK(status == TL_SUCCEEDED, "the next payment: %s", tl_status_name(status));
    CHECK(scene_ledger(&s) == 1, "the next payment is not booked");
    tl_answer_clear(&answer);
    channel.answer = kept.answer;
    atomic_store(&channel.sent, atomic_load(&kept.sent));
    atomic_store(&channel.paid, atomic_load(&kept.paid));
    memcpy(s.serial, serial, sizeof serial);
    memcpy(s.cust, cust, sizeof cust);
}

static int is_no(tl_status status)
{
    tl_class class_ = tl_status_class(status);

    return class_ == TL_CLASS_RETRY || class_ == TL_CLASS_CALLER || status == TL_FAILED ||
           status == TL_REFUSED;
}

/* "Nothing happened, ask again" is only said where that is so. */
static void check_undecided(tl_status status)
{
    CHECK(!is_no(status) || atomic_load(&channel.paid) == 0, "%s, and it was paid",
          tl_status_name(status));
    CHECK(tl_status_class(status) != TL_CLASS_RETRY ||
              (atomic_load(&channel.sent) == 0 && status_now() != 'Y'),
          "%s, and it was sent", tl_status_name(status));
}

/* What a payment may answer with a single allocation missing, after it was settled. */
static void check_answer(tl_status status, tl_status final, const tl_answer *answer)
{
    unsigned sent = atomic_load(&channel.sent);

    check_undecided(status);
    /* What the channel said is never forgotten for want of memory. */
    CHECK(sent == 0 || status == final, "sent, and then %s", tl_status_name(status));
    CHECK(sent > 0 || status == TL_NO_MEMORY, "not sent, and %s", tl_status_name(status));
    CHECK(status != TL_SUCCEEDED ||
              (answer->own && answer->view.result_size == 4 && status_now() == 'Y'),
          "succeeded, and the answer is not whole");
}

/* -------------------------------------------------------------------- the tests -- */

struct figures {
    unsigned failed, all_the_same, no_memory, settled;
};

static void report(const char *what, const struct figures *f, int all_repeated)
{
    print_message("%s: %u allocations failed; done all the same %u, no memory %u, "
                  "settled %u\n",
                  what, f->failed, f->all_the_same, f->no_memory, f->settled);
    assert_in_range(f->failed, 1, ALLOCATIONS_MAX - 2);
    /* Some cannot be done without; a settling is always repeated. */
    assert_true((f->no_memory == 0) == all_repeated);
}

static void count(struct figures *f, tl_status status, tl_status final)
{
    f->failed++;
    f->all_the_same += status == final;
    f->no_memory += status == TL_NO_MEMORY;
}

static tl_status try_to_register(tl_workflows *workflows, const char *op_code)
{
    tl_workflow w = channel_workflow(op_code);
    tl_status status = tl_workflow_register(workflows, &w);

    /* Memory for what the server says is missing: it counts as not said. */
    CHECK(status == TL_OK || status == TL_NO_MEMORY || status == TL_UNREACHABLE, "%s",
          tl_status_name(status));
    return status;
}

/* Registered or not, and never half: now it is known, or it can be. */
static void check_registered(tl_workflows *workflows, const char *op_code, int known)
{
    tl_workflow w = channel_workflow(op_code);

    if (!known)
        CHECK(tl_workflow_register(workflows, &w) == TL_OK, "not even now");
    CHECK(tl_workflow_register(workflows, &w) == TL_INVALID, "registered twice");
}

static void test_registering(void **state)
{
    struct figures figures = {0};
    unsigned counted;

    (void)state;
    scene_begin(&s, 0);
    number = 0;
    do {
        tl_status status, first = TL_NO_MEMORY, second = TL_NO_MEMORY;
        tl_workflows *workflows = NULL;

        fail_allocation(++number);
        status = tl_workflows_new(&workflows, s.far);
        CHECK((status == TL_OK) == (workflows != NULL), "%s", tl_status_name(status));
        if (status == TL_OK) {
            first = try_to_register(workflows, "WITHDRAW");
            second = try_to_register(workflows, "TRANSFER");
        }
        counted = (unsigned)fault_allocations();
        fail_allocation(0);
        if (counted >= number)
            count(&figures, TL_NO_MEMORY, TL_OK);
        CHECK((first == TL_OK && second == TL_OK) == (counted < number), "%s, %s",
              tl_status_name(first), tl_status_name(second));
        if (status == TL_OK) {
            check_registered(workflows, "WITHDRAW", first == TL_OK);
            check_registered(workflows, "TRANSFER", second == TL_OK);
        }
        tl_workflows_free(workflows);
    } while (counted >= number && number < ALLOCATIONS_MAX);
    scene_end(&s);
    report("registering", &figures, 0);
    if (!channel.declared)
        assert_int_equal(figures.failed, 9); /* the registry, and what is stored of each */
}

/* One payment without its n-th allocation; whether there was one of that number. */
static int pay_without(unsigned n, uint32_t reclaim_epoch, tl_workflows *workflows, tl_status final,
                       struct figures *figures)
{
    tl_answer answer = TL_ANSWER_INIT;
    tl_request request = request_of(reclaim_epoch);
    tl_status status;
    int failed;

    fail_allocation(n);
    status = tl_workflow_run(workflows, &request, &answer);
    failed = fault_allocations() >= n;
    fail_allocation(0);
    figures->settled += status == TL_UNKNOWN;
    check_undecided(status);
    status = go_on(workflows, &request, &answer, status);
    if (failed)
        count(figures, status, final);
    else
        CHECK(status == final, "%s without any fault", tl_status_name(status));
    check_answer(status, final, &answer);
    tl_answer_clear(&answer);
    return failed;
}

static void sweep_payment(const char *what, tl_execute_result said, int pays, tl_status final)
{
    struct figures figures = {0};
    int failed = 1;

    for (unsigned n = 1; n < ALLOCATIONS_MAX && failed; n++) {
        tl_workflows *workflows;

        begin(n, 0);
        channel.answer = said;
        channel.pays = pays;
        workflows = channel_registry(s.far);
        failed = pay_without(n, 0, workflows, final, &figures);
        check_still_works(workflows);
        tl_workflows_free(workflows);
        end_client();
        nurse();
        check_books();
    }
    report(what, &figures, 0);
}

static void test_paying(void **state)
{
    (void)state;
    sweep_payment("paying", TL_EXECUTE_SUCCEEDED, 1, TL_SUCCEEDED);
}

static void test_a_decline(void **state)
{
    (void)state;
    sweep_payment("a decline", TL_EXECUTE_DECLINED, 0, TL_FAILED);
}

static void test_a_lost_answer(void **state)
{
    (void)state;
    sweep_payment("an answer that was lost", TL_EXECUTE_UNKNOWN, 1, TL_IN_DOUBT);
}

/* A failure that rests on "there is no such payment" is tried anew: the old key is queried
 * first. */
static void test_trying_anew(void **state)
{
    struct figures figures = {0};
    int failed = 1;

    (void)state;
    for (unsigned n = 1; n < ALLOCATIONS_MAX && failed; n++) {
        tl_ending ending = scene_ending(TL_OUTCOME_FAILURE);
        tl_workflows *workflows;
        tl_lock *lock;

        begin(n, 0);
        lock = scene_granted(&s, s.near, TL_LANE_SYNC, 0);
        ending.proof = TL_PROOF_NOT_FOUND;
        CHECK(tl_lock_finish(lock, &ending) == TL_FAILED, "no failure");
        tl_lock_free(lock);
        workflows = channel_registry(s.far);
        failed = pay_without(n, 1, workflows, TL_SUCCEEDED, &figures);
        CHECK(atomic_load(&channel.sent) == 0 || atomic_load(&channel.queried) > 0,
              "sent anew, and the old key was not asked for");
        check_still_works(workflows);
        tl_workflows_free(workflows);
        end_client();
        nurse();
        check_books();
    }
    report("trying anew", &figures, 0);
}

/* ------------------------------------------------------------- an event loop -- */

static tl_status await_completion(tl_client *client)
{
    struct pollfd done = {tl_client_completed_fd(client), POLLIN, 0};
    const int64_t end_ms = clock_deadline(PATIENCE_MS);
    tl_completion completion;

    while (tl_client_completed(client, &completion, 1) == 0) {
        CHECK(clock_left_ms(end_ms) > 0, "no completion");
        (void)poll(&done, 1, 100);
    }
    CHECK(completion.lock == NULL, "it is of a lock");
    return completion.status;
}

/* The service's part: what execute does, within its loop. */
static tl_status send_in_loop(tl_workflows *workflows, tl_answer *answer)
{
    const tl_attempt *attempt = NULL;
    tl_reply *reply = NULL;
    tl_status status = tl_workflow_send_begin(workflows, answer, &attempt, &reply);

    CHECK(status == TL_OK || status == TL_TIMEOUT, "%s", tl_status_name(status));
    if (status == TL_OK) {
        atomic_fetch_add(&channel.sent, 1);
        atomic_fetch_add(&channel.paid, 1);
        tl_reply_ref(reply, attempt->key.serial_no);
        tl_reply_result(reply, "paid", 4);
        status = tl_workflow_send_end(workflows, answer, TL_EXECUTE_SUCCEEDED);
        CHECK(status == TL_OK, "%s", tl_status_name(status));
    }
    return await_completion(s.far);
}

static tl_status run_in_loop(tl_workflows *workflows, tl_answer *answer)
{
    const tl_request request = request_of(0);
    tl_status status = tl_workflow_submit(workflows, &request, answer, NULL);

    if (status != TL_OK)
        return status;
    status = await_completion(s.far);
    return status == TL_GRANTED ? send_in_loop(workflows, answer) : status;
}

static void test_a_submitted_run(void **state)
{
    struct figures figures = {0};
    int failed = 1;

    (void)state;
    for (unsigned n = 1; n < ALLOCATIONS_MAX && failed; n++) {
        tl_answer answer = TL_ANSWER_INIT;
        const tl_request request = request_of(0);
        tl_workflows *workflows;
        tl_status status;

        begin(n, 0);
        workflows = channel_registry(s.far);
        fail_allocation(n);
        status = run_in_loop(workflows, &answer);
        failed = fault_allocations() >= n;
        fail_allocation(0);
        figures.settled += status == TL_UNKNOWN;
        check_undecided(status);
        if (status == TL_UNKNOWN)
            status = go_on(workflows, &request, &answer, status);
        if (failed)
            count(&figures, status, TL_SUCCEEDED);
        else
            CHECK(status == TL_SUCCEEDED, "%s without any fault", tl_status_name(status));
        check_answer(status, TL_SUCCEEDED, &answer);
        tl_answer_clear(&answer);
        check_still_works(workflows);
        tl_workflows_free(workflows);
        end_client();
        nurse();
        check_books();
    }
    report("a submitted run", &figures, 0);
}

/* ------------------------------------------------------------ structs by name -- */

static tl_status fill_workflow(tl_workflow **workflow)
{
    void *made = NULL;
    tl_status status = tl_struct_new(&made, "tl_workflow");

    *workflow = made;
    if (status == TL_OK)
        status = tl_struct_set_bytes(made, "op_code", "WITHDRAW", 8);
    if (status == TL_OK)
        status = tl_struct_set_number(made, "statements.0.rows", 1);
    if (status == TL_OK)
        status = tl_struct_set_bytes(made, "statements.1.sql", "SELECT 1", 8);
    if (status == TL_OK)
        status = tl_struct_set_pointer(made, "context", &s);
    return status;
}

/* What could not be copied is not there, and whatever is there can be read and freed. */
static void test_structs(void **state)
{
    struct figures figures = {0};
    int failed = 1;

    (void)state;
    for (unsigned n = 1; n < ALLOCATIONS_MAX && failed; n++) {
        tl_workflow *workflow = NULL;
        const void *sql = NULL;
        int64_t constant = 0;
        size_t size = 0;
        tl_status status;

        fail_allocation(n);
        status = fill_workflow(&workflow);
        failed = fault_allocations() >= n;
        fail_allocation(0);
        CHECK(tl_constant("TL_OK", &constant) == TL_OK && constant == TL_OK, "no constant");
        if (failed)
            count(&figures, status, TL_OK);
        CHECK(status == (failed ? TL_NO_MEMORY : TL_OK), "%s", tl_status_name(status));
        CHECK((workflow != NULL) == (n > 1), "half a struct");
        if (workflow != NULL && workflow->statement_count == 2)
            CHECK(tl_struct_bytes("tl_workflow", workflow, "statements.1.sql", &sql, &size) ==
                          TL_OK &&
                      (sql == NULL) == failed,
                  "a text that was not copied");
        CHECK(workflow == NULL || failed ||
                  tl_struct_number("tl_workflow", workflow, "statements.0.rows", &constant) ==
                      TL_OK,
              "a number is lost");
        tl_struct_free(workflow);
    }
    report("structs by name", &figures, 0);
}

/* ----------------------------------------------------------------- questions -- */

static int count_trade(void *context, const tl_trade *trade)
{
    (void)trade;
    ++*(int *)context;
    return 0;
}

/* The first that is not answered ends it. */
static tl_status ask_questions(tl_workflows *workflows, int *listed)
{
    const tl_key key = {s.serial, s.cust, "WITHDRAW"};
    tl_trades which = TL_TRADES_INIT;
    tl_batch_total total = TL_BATCH_TOTAL_INIT;
    tl_trade trade = TL_TRADE_INIT;
    char next[TL_TRADES_NEXT];
    tl_status status = tl_workflow_look(workflows, &key, &trade);

    which.cust_no = s.cust;
    if (status == TL_SUCCEEDED)
        status = tl_workflow_await(workflows, &key, 0, &trade);
    if (status == TL_SUCCEEDED)
        status = tl_workflow_list(workflows, &which, count_trade, listed, next);
    if (status == TL_OK)
        status = tl_workflow_batch(workflows, s.cust, &total, NULL, NULL);
    CHECK(status != TL_OK || (total.trades == 1 && total.complete), "%d trades", (int)total.trades);
    return status;
}

/* Not enough memory to look is not "there is no such trade". */
static void test_questions(void **state)
{
    struct figures figures = {0};
    tl_answer answer = TL_ANSWER_INIT;
    tl_request request;
    tl_workflows *workflows;
    int failed = 1;

    (void)state;
    begin(0, 0);
    channel.answer = TL_EXECUTE_SUCCEEDED;
    channel.pays = 1;
    workflows = channel_registry(s.far);
    request = request_of(0);
    request.batch = s.cust;
    CHECK(tl_workflow_run(workflows, &request, &answer) == TL_SUCCEEDED, "no payment");
    tl_answer_clear(&answer);
    for (number = 1; number < ALLOCATIONS_MAX && failed; number++) {
        tl_status status;
        int listed = 0;

        fail_allocation(number);
        status = ask_questions(workflows, &listed);
        failed = fault_allocations() >= number;
        fail_allocation(0);
        /* UNREACHABLE: the answer was there, and nothing to keep it in. */
        CHECK(status == TL_OK || (failed && (status == TL_NO_MEMORY || status == TL_UNREACHABLE)),
              "%s", tl_status_name(status));
        CHECK(status != TL_OK || listed == 1, "%d were listed", listed);
        if (failed)
            count(&figures, status, TL_OK);
    }
    tl_workflows_free(workflows);
    end_client();
    check_books();
    report("questions", &figures, 0);
}

/* ------------------------------------------------------------------ settling -- */

static unsigned lost_packet; /* counted from a callback */

/* From this packet on nobody gets through. */
static void cut_the_line(void)
{
    wire_fault fault = {lost_packet, WIRE_CUT_AFTER, 1};

    wire_arm(s.line, &fault);
}

/* Settling without its n-th allocation, again and again until it is known. */
static int settle_without(unsigned n, tl_workflows *workflows, tl_answer *answer,
                          struct figures *figures)
{
    tl_request request = request_of(0);
    tl_status status;
    int failed;

    fail_allocation(n);
    status = tl_workflow_settle(workflows, answer);
    failed = fault_allocations() >= n;
    fail_allocation(0);
    figures->settled += status == TL_UNKNOWN;
    check_undecided(status);
    status = go_on(workflows, &request, answer, status);
    if (failed)
        count(figures, status, TL_SUCCEEDED);
    else
        CHECK(status == TL_SUCCEEDED, "%s without any fault", tl_status_name(status));
    check_answer(status, TL_SUCCEEDED, answer);
    return failed;
}

/* A payment whose line is cut once, within the ask or within the ending. */
static tl_status run_and_cut(tl_workflows *workflows, int within_ask, tl_answer *answer)
{
    tl_request request = request_of(0);
    tl_status status;

    if (within_ask)
        channel.within_prepare = cut_the_line;
    else
        channel.within_execute = cut_the_line;
    status = tl_workflow_run(workflows, &request, answer);
    channel.within_prepare = channel.within_execute = NULL;
    wire_arm(s.line, NULL);
    wire_down(s.line, 0);
    return status;
}

/* The same until the answer of a commit is lost.  A declared ask has sent nothing yet when its
 * callback is called, and what goes before its commit is lost without harm. */
static tl_workflows *lose_an_answer(unsigned n, int within_ask, tl_answer *answer)
{
    for (;;) {
        tl_workflows *workflows;
        tl_status status;

        begin(n, 1);
        workflows = channel_registry_of(s.far, 200);
        status = run_and_cut(workflows, within_ask, answer);
        if (status == TL_UNKNOWN && status_now() != '-')
            return workflows;
        CHECK(channel.declared && within_ask && status_now() == '-',
              "the line was cut at packet %u, and the answer is %s", lost_packet,
              tl_status_name(status));
        tl_answer_clear(answer);
        tl_workflows_free(workflows);
        end_client();
        lost_packet++;
    }
}

static void sweep_settling(const char *what, int within_ask)
{
    struct figures figures = {0};
    int failed = 1;

    lost_packet = 1;
    for (unsigned n = 1; n < ALLOCATIONS_MAX && failed; n++) {
        tl_answer answer = TL_ANSWER_INIT;
        tl_workflows *workflows = lose_an_answer(n, within_ask, &answer);

        failed = settle_without(n, workflows, &answer, &figures);
        tl_answer_clear(&answer);
        check_still_works(workflows);
        tl_workflows_free(workflows);
        end_client();
        nurse();
        check_books();
    }
    report(what, &figures, 1);
}

static void test_settling_an_ask(void **state)
{
    (void)state;
    sweep_settling("settling an ask", 1);
}

static void test_settling_an_ending(void **state)
{
    (void)state;
    sweep_settling("settling an ending", 0);
}

/* ---------------------------------------------------------------- the worker -- */

/* A worker that starts brings the trade to its end, whatever failed on the way; nobody else would:
 * this process lives, and nothing opens the lane of a claim it forgot. */
static int work_without(unsigned n, tl_workflows *workflows, tl_status *started)
{
    tl_worker_options with = TL_WORKER_OPTIONS_INIT;
    tl_worker_counts counts = {.version = TL_WORKER_COUNTS_VERSION};
    int64_t end_ms = clock_deadline(PATIENCE_MS);
    tl_worker *worker = NULL;
    int failed;

    with.threads = 2;
    with.idle_max_ms = 50;
    fail_allocation(n);
    *started = tl_worker_start(&worker, workflows, &with);
    CHECK((*started == TL_OK) == (worker != NULL), "%s", tl_status_name(*started));
    while (worker != NULL && status_now() == 'P' && clock_left_ms(end_ms) > 0)
        clock_sleep_until_ms(clock_deadline(POLL_MS));
    failed = fault_allocations() >= n;
    if (worker != NULL) {
        tl_worker_stop(worker);
        CHECK(tl_worker_wait(worker, PATIENCE_MS) == TL_OK, "it does not stop");
        CHECK(tl_worker_count(worker, &counts) == TL_OK, "no counts");
        CHECK(counts.in_flight == 0, "%u in flight", counts.in_flight);
        CHECK(counts.succeeded == 1 && status_now() == 'Y', "not done, %llu claimed",
              (unsigned long long)counts.claimed);
    }
    fail_allocation(0);
    tl_worker_free(worker);
    return failed;
}

static void test_the_worker(void **state)
{
    struct figures figures = {0};
    int failed = 1;

    (void)state;
    for (unsigned n = 1; n < ALLOCATIONS_MAX && failed; n++) {
        tl_workflows *workflows;
        tl_status started;

        begin(n, 0);
        scene_past(&s, TL_OUTCOME_UNKNOWN);
        atomic_store(&channel.paid, 1);
        workflows = channel_registry(s.far);
        failed = work_without(n, workflows, &started);
        if (failed)
            count(&figures, started == TL_OK ? TL_SUCCEEDED : started, TL_SUCCEEDED);
        CHECK(started == TL_OK || (failed && started == TL_NO_MEMORY), "%s",
              tl_status_name(started));
        check_still_works(workflows);
        tl_workflows_free(workflows);
        end_client();
        nurse();
        check_books();
    }
    report("the worker", &figures, 0);
}

/* The far clients' connections end by and by; what is left then belongs there. */
static void await_stillness(void)
{
    for (int same = 0; same < 40;) {
        long long now = connections();

        same = now == connections_before ? same + 1 : 0;
        connections_before = now;
        clock_sleep_until_ms(clock_deadline(POLL_MS));
    }
}

FIXTURE(setup)
{
    scene_open(&s, NULL);
    /* The near client opens what connections it needs. */
    for (int i = 0; i < 2; i++) {
        scene_begin(&s, 0);
        scene_past(&s, i == 0 ? TL_OUTCOME_SUCCESS : TL_OUTCOME_FAILURE);
        scene_end(&s);
    }
    await_stillness();
    nurse_file = database_option_file_at(s.db, server_socket(s.where), NURSE);
}

FIXTURE(teardown)
{
    assert_int_equal(scene_log_problems(&s), 0);
    free(nurse_file);
    scene_close(&s);
}

/* "declared": the business rows are. */
TEST_MAIN(workflow_memory)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registering),        cmocka_unit_test(test_paying),
        cmocka_unit_test(test_a_decline),          cmocka_unit_test(test_a_lost_answer),
        cmocka_unit_test(test_trying_anew),        cmocka_unit_test(test_settling_an_ask),
        cmocka_unit_test(test_settling_an_ending), cmocka_unit_test(test_the_worker),
        cmocka_unit_test(test_questions),          cmocka_unit_test(test_structs),
    };
    /* Only what is declared can be submitted. */
    const struct CMUnitTest declared[] = {cmocka_unit_test(test_a_submitted_run)};
    int failed;

    channel.declared = argc > 1 && strcmp(argv[1], "declared") == 0;
    failed = channel.declared ? cmocka_run_group_tests(declared, setup, teardown) : 0;
    return server_run_tests(tests, setup, teardown) + failed;
}

/*
 * Each safety rule switched off, one at a time: the same run that passes with all rules on then
 * pays twice, loses a trade, or lets two in.  Without these, a test that passes would not show what
 * its passing rests on.
 */
#include "support/crew.h"
#include "support/tap.h"
#include "support/theme.h"
#include "town.h"

#include "base/fault.h"

#include <tradelock/tradelock.h>

#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

static town self;

/* ------------------------------------------------------------------ whole houses -- */

/* How many payments were one too many, and how many contradict their trade. */
static void find(const char *what, int paid_twice, int paid_failure)
{
    char *audit;
    int code = town_audit(&self, &audit);
    int twice = text_count(audit, "paid-twice") > 0;
    int failure = text_count(audit, "paid-failure") > 0;

    if (twice != paid_twice || failure != paid_failure ||
        (code != 0) != (paid_twice || paid_failure))
        fail_msg("%s: exit %d\n%s", what, code, audit);
    print_message("%s: %s\n", what,
                  paid_twice     ? "paid twice"
                  : paid_failure ? "paid, and called failed"
                                 : "passes");
    free(audit);
}

static void open_town(const char *kind)
{
    town_open(&self, kind, NULL);
}

/* Every withdrawal comes twice, from eight threads. */
static void double_taps(const char *mutation)
{
    const char *const environment[] = {mutation, NULL};
    char *rows = town_rows(&self, 12), *text = file_read(rows);
    FILE *file = fopen(rows, "ae");
    child service;

    fputs(strchr(text, '\n') + 1, file);
    fclose(file);
    free(text);
    service = town_service(&self, self.service_config, rows, 8, environment);
    assert_int_not_equal(child_wait(&service, PATIENCE_MS), -1);
    if (mutation == NULL)
        town_finish(&self, 30000);
    free(rows);
}

TEST(without_the_lock)
{
    char *books;

    open_town("plain");
    double_taps(NULL);
    find("with the lock", 0, 0);
    double_taps("TL_MUTATION=lock");
    find("without the lock", 1, 0);
    assert_int_equal(town_books(&self, &books), 1);
    assert_non_null(strstr(books, "paid twice: 12"));
    free(books);
    town_close(&self);
}

/* Pays, and the answer is lost; then a worker, with or without a rule. */
static void lose_answers(const char *rule)
{
    char *rows = town_rows(&self, 3);
    child service;

    town_rule(&self, rule);
    service = town_service(&self, self.service_config, rows, 3, NULL);
    assert_int_not_equal(child_wait(&service, PATIENCE_MS), -1);
    free(rows);
}

static void work_with(const char *mutation)
{
    const char *const environment[] = {mutation, NULL};
    child worker = town_worker(&self, self.worker_config, 2, environment);

    town_await_ready(&worker);
    for (int i = 0; i < PATIENCE_MS / 20 && town_open_trades(&self) > 0; i++)
        usleep(20000);
    child_signal(&worker, SIGTERM);
    assert_int_equal(child_wait(&worker, PATIENCE_MS), 0);
    assert_int_equal(town_open_trades(&self), 0);
}

TEST(without_query_first)
{
    static const char lost[] = "{\"kind\":\"drop_after\",\"count\":3,\"endpoint\":\"pay\"}";

    open_town("plain");
    lose_answers(lost);
    work_with(NULL);
    find("with query-first", 0, 0);
    lose_answers(lost);
    work_with("TL_MUTATION=query-first");
    find("without query-first", 1, 0);
    town_close(&self);
}

/* A channel whose queries lag, within send_until and grace. */
TEST(without_the_grace)
{
    static const char lost[] = "{\"kind\":\"drop_after\",\"count\":3,\"endpoint\":\"pay\"}";
    static const char lags[] = "{\"kind\":\"not_found_first\",\"count\":0,\"for_ms\":700}";
    /* However late the worker comes. */
    static const char lags_on[] = "{\"kind\":\"not_found_first\",\"count\":0}";

    open_town("window");
    town_rule(&self, lags);
    lose_answers(lost);
    work_with(NULL);
    find("with the grace", 0, 0);
    town_no_rules(&self);
    town_rule(&self, lags_on);
    lose_answers(lost);
    work_with("TL_MUTATION=grace");
    find("without the grace", 0, 1);
    town_close(&self);
}

/* Sleeps between its grant and its send, before it looks whether it may or after, until the trade
 * was ended as never arrived. */
static void sleep_before_sending(const char *point, const char *mutation)
{
    const char *const environment[] = {point, "TL_FAULT_STOP=1", mutation, NULL};
    char *rows = town_rows(&self, 1);
    child zombie = town_service(&self, self.service_config, rows, 1, environment);
    int status;

    assert_int_equal(waitpid(zombie.pid, &status, WUNTRACED), zombie.pid);
    assert_true(WIFSTOPPED(status));
    town_finish(&self, 30000);
    child_signal(&zombie, SIGCONT);
    assert_int_not_equal(child_wait(&zombie, PATIENCE_MS), -1);
    free(rows);
}

static void pay_after_the_failure(const char *rule, const char *point, const char *mutation)
{
    open_town("window");
    sleep_before_sending(point, NULL);
    find(rule, 0, 0);
    sleep_before_sending(point, mutation);
    /* What the zombie learned contradicts the failure, which the library files. */
    assert_int_equal(database_number(self.sql,
                                     "SELECT COUNT(*) FROM trade_lock WHERE status = 'F' AND "
                                     "lane = 'S' AND conflict = 1"),
                     1);
    assert_int_equal(sim_stat(&self.sim, "payments"), 1);
    print_message("%s, taken out: paid, and called failed\n", rule);
    town_close(&self);
}

TEST(without_the_session)
{
    pay_after_the_failure("the session check", "TL_FAULT_ONLY=granted/after",
                          "TL_MUTATION=session");
}

TEST(without_the_moment_to_send_by)
{
    pay_after_the_failure("the moment to send by", "TL_FAULT_ONLY=execute/before",
                          "TL_MUTATION=send-by");
}

/* ------------------------------------------------------------- single handles -- */

static tl_client *clients[2];

static void mutate(const char *rules)
{
    setenv("TL_MUTATION", rules, 1);
    fault_reload();
}

FIXTURE(open_clients)
{
    open_town("plain");
    mutate("");
    for (int i = 0; i < 2; i++) {
        tl_client_options options = TL_CLIENT_OPTIONS_INIT;

        options.config_file = self.service_config;
        if (tl_client_open(&clients[i], &options) != TL_OK)
            server_panic("%s", tl_error_message());
    }
}

FIXTURE(close_clients)
{
    mutate("");
    tl_client_close(clients[0]);
    tl_client_close(clients[1]);
    town_close(&self);
}

static tl_lock *handle_of(tl_client *client, const char *serial, const tl_lock_options *options)
{
    tl_key key = {serial, "C1", "PAYOUT"};
    tl_lock *lock = NULL;

    if (tl_lock_new(&lock, client, &key, options) != TL_OK)
        server_panic("%s", tl_error_message());
    return lock;
}

static tl_lock *handle(int client, const char *serial, const tl_lock_options *options)
{
    return handle_of(clients[client], serial, options);
}

static tl_lock_options sync_options(int64_t max_hold_ms)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;

    options.max_hold_ms = max_hold_ms;
    options.payload = "x";
    options.payload_size = 1;
    options.channel = "bank";
    return options;
}

static tl_status end(tl_lock *lock, tl_outcome outcome, tl_proof proof)
{
    tl_ending ending = TL_ENDING_INIT;
    tl_status status;

    ending.outcome = outcome;
    ending.proof = proof;
    ending.retryable = outcome == TL_OUTCOME_FAILURE;
    status = tl_lock_finish(lock, &ending);
    tl_lock_free(lock);
    return status;
}

/*
 * The same ending within a group: endings that are submitted while the library's thread completes
 * an ending are carried out together, as one statement.  The neighbours' endings succeed, whatever
 * becomes of this one.
 */
#define NEIGHBOURS 7

static struct {
    tl_lock *first, *locks[NEIGHBOURS + 1];
    tl_ending endings[NEIGHBOURS + 1];
    tl_status answers[NEIGHBOURS + 1];
    int submitted; /* how many were taken */
} together;

static void submit_together(void *context, tl_lock *lock, tl_status status)
{
    (void)context;
    (void)lock;
    if (status != TL_SUCCEEDED)
        return;
    for (int i = 0; i <= NEIGHBOURS; i++)
        together.submitted += tl_lock_finish_submit(together.locks[i], &together.endings[i], NULL,
                                                    &together.answers[i]) == TL_OK;
}

static void await_completions(tl_client *client, int left)
{
    for (int i = 0; i < PATIENCE_MS && left > 0; i++) {
        tl_completion done;

        while (tl_client_completed(client, &done, 1) == 1) {
            *(tl_status *)done.context = done.status;
            left--;
        }
        usleep(1000);
    }
    assert_int_equal(left, 0);
}

static uint64_t grouped(tl_client *client, uint64_t *groups)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    assert_int_equal(tl_client_stats(client, &stats), TL_OK);
    *groups = stats.groups;
    return stats.grouped;
}

/* A compensating attempt of a trade that was left in doubt, if it was not before. */
static tl_lock *compensating(int client, const char *serial, int64_t max_hold_ms, int first)
{
    tl_lock_options options = sync_options(60000), retry = TL_LOCK_OPTIONS_INIT;
    tl_lock *lock;

    if (first) {
        lock = handle(client, serial, &options);
        assert_int_equal(tl_lock_ask(lock, 0), TL_GRANTED);
        assert_int_equal(end(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_IN_DOUBT);
    }
    retry.lane = TL_LANE_RETRY;
    retry.max_hold_ms = max_hold_ms;
    lock = handle(client, serial, &retry);
    assert_int_equal(tl_lock_ask(lock, 0), TL_GRANTED);
    return lock;
}

/* The neighbours' keys surround it, so that it is neither the first nor the last row. */
static void make_neighbours(const char *serial, tl_lane lane)
{
    tl_lock_options options = sync_options(60000);
    char name[64];

    for (int i = 0; i < NEIGHBOURS; i++) {
        snprintf(name, sizeof name, "%c%s-%d", i % 2 == 0 ? 'A' : 'Z', serial, i);
        if (lane == TL_LANE_RETRY) {
            together.locks[i + 1] = compensating(0, name, 60000, 1);
        } else {
            together.locks[i + 1] = handle(0, name, &options);
            assert_int_equal(tl_lock_ask(together.locks[i + 1], 0), TL_GRANTED);
        }
        together.endings[i + 1] = (tl_ending)TL_ENDING_INIT;
        together.endings[i + 1].outcome = TL_OUTCOME_SUCCESS;
    }
    snprintf(name, sizeof name, "%s-first", serial);
    together.first = handle(0, name, &options);
    assert_int_equal(tl_lock_ask(together.first, 0), TL_GRANTED);
}

static tl_status end_in_group(tl_lock *lock, tl_outcome outcome, tl_proof proof)
{
    uint64_t groups_before, groups, before = grouped(clients[0], &groups_before);
    tl_ending success = TL_ENDING_INIT;
    int steps = NEIGHBOURS + 1;

    together.submitted = 0;
    together.locks[0] = lock;
    together.endings[0] = (tl_ending)TL_ENDING_INIT;
    together.endings[0].outcome = outcome;
    together.endings[0].proof = proof;
    together.endings[0].retryable = outcome == TL_OUTCOME_FAILURE;
    success.outcome = TL_OUTCOME_SUCCESS;
    assert_int_equal(tl_lock_finish_submit(together.first, &success, submit_together, NULL), TL_OK);
    await_completions(clients[0], steps);
    assert_int_equal(together.submitted, steps);
    /* One statement for all of them; the ending before them was alone. */
    assert_int_equal(grouped(clients[0], &groups) - before, steps);
    assert_int_equal(groups - groups_before, 1);
    for (int i = 1; i <= NEIGHBOURS; i++)
        assert_int_equal(together.answers[i], TL_SUCCEEDED);
    for (int i = 0; i <= NEIGHBOURS; i++)
        tl_lock_free(together.locks[i]);
    tl_lock_free(together.first);
    return together.answers[0];
}

#define assert_status(got, expected)                                                               \
    assert_string_equal(tl_status_name(got), tl_status_name(expected))

/* Either of fence and token keeps the row for its holder.  What the late one is told rests on the
 * token alone: without it every row seems to carry its own. */
static tl_status of_the_holder(const char *rules)
{
    return strcmp(rules, "fence,token") == 0 ? TL_LOST : TL_SUCCEEDED;
}

/*
 * A holder stalls, its trade fails by the retry lane and is tried anew by another.  Then the first
 * one ends what it believes to hold, over the payment under way: as a failure, or as a success of
 * which nothing is told, which has a shorter form of the statement.
 */
static tl_status end_over_the_next(const char *serial, const char *rules, int in_group,
                                   tl_outcome outcome)
{
    const tl_proof proof = outcome == TL_OUTCOME_FAILURE ? TL_PROOF_DECLINED : TL_PROOF_NONE;
    tl_lock_options first = sync_options(50), again = sync_options(60000);
    tl_lock_options retry = TL_LOCK_OPTIONS_INIT;
    tl_lock *stalled = handle(0, serial, &first), *worker, *next;
    tl_status status;

    assert_status(tl_lock_ask(stalled, 0), TL_GRANTED);
    usleep(80000);
    retry.lane = TL_LANE_RETRY;
    retry.max_hold_ms = 60000;
    worker = handle(1, serial, &retry);
    assert_status(tl_lock_ask(worker, 0), TL_GRANTED);
    assert_status(end(worker, TL_OUTCOME_FAILURE, TL_PROOF_DECLINED), TL_FAILED);
    again.flags = TL_ASK_RECLAIM;
    again.reclaim_epoch = 1;
    next = handle(1, serial, &again);
    assert_status(tl_lock_ask(next, 0), TL_GRANTED);
    if (in_group)
        make_neighbours(serial, TL_LANE_SYNC);
    mutate(rules);
    status = in_group ? end_in_group(stalled, outcome, proof) : end(stalled, outcome, proof);
    mutate("");
    /* The one that holds it has paid now. */
    assert_status(end(next, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), of_the_holder(rules));
    return status;
}

static void expect_over_the_next(const char *serial, int in_group, tl_outcome outcome)
{
    const int fails = outcome == TL_OUTCOME_FAILURE;
    char name[4][16];

    for (int i = 0; i < 4; i++)
        snprintf(name[i], sizeof name[i], "%s%d", serial, i + 1);
    assert_status(end_over_the_next(name[0], "", in_group, outcome), TL_LOST);
    /* Either of the two is enough. */
    assert_status(end_over_the_next(name[1], "fence", in_group, outcome), TL_LOST);
    assert_status(end_over_the_next(name[2], "token", in_group, outcome),
                  fails ? TL_FAILED : TL_SUCCEEDED);
    assert_status(end_over_the_next(name[3], "fence,token", in_group, outcome),
                  fails ? TL_FAILED : TL_SUCCEEDED);
    assert_int_equal(database_number(self.sql,
                                     "SELECT COUNT(*) FROM trade_lock WHERE serial_no = '%s' "
                                     "AND lane = 'S' AND status = '%c' AND epoch = 2",
                                     name[3], fails ? 'F' : 'Y'),
                     1);
}

TEST_IN(without_fence_and_token, open_clients, close_clients)
{
    expect_over_the_next("E", 0, TL_OUTCOME_FAILURE);
    expect_over_the_next("ES", 0, TL_OUTCOME_SUCCESS);
    print_message("without fence and token: paid, and called failed\n");
}

TEST_IN(without_fence_and_token_in_a_group, open_clients, close_clients)
{
    expect_over_the_next("G", 1, TL_OUTCOME_FAILURE);
    expect_over_the_next("GS", 1, TL_OUTCOME_SUCCESS);
    print_message("without fence and token, in a group: paid, and called failed\n");
}

/* A compensating attempt stalls, and another one goes on in its place; then the first one ends both
 * rows, in a group. */
static tl_status end_over_the_next_attempt(const char *serial, const char *rules,
                                           tl_outcome outcome)
{
    tl_lock *stalled = compensating(0, serial, 50, 1), *next;
    tl_status status;

    usleep(80000);
    next = compensating(1, serial, 60000, 0);
    make_neighbours(serial, TL_LANE_RETRY);
    mutate(rules);
    status = end_in_group(stalled, outcome,
                          outcome == TL_OUTCOME_FAILURE ? TL_PROOF_DECLINED : TL_PROOF_NONE);
    mutate("");
    assert_status(end(next, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), of_the_holder(rules));
    return status;
}

TEST_IN(without_fence_and_token_on_the_retry_lane, open_clients, close_clients)
{
    assert_status(end_over_the_next_attempt("R1", "", TL_OUTCOME_FAILURE), TL_LOST);
    assert_status(end_over_the_next_attempt("R2", "fence", TL_OUTCOME_FAILURE), TL_LOST);
    assert_status(end_over_the_next_attempt("R3", "token", TL_OUTCOME_FAILURE), TL_FAILED);
    assert_status(end_over_the_next_attempt("R4", "fence,token", TL_OUTCOME_FAILURE), TL_FAILED);
    assert_status(end_over_the_next_attempt("R5", "", TL_OUTCOME_SUCCESS), TL_LOST);
    assert_status(end_over_the_next_attempt("R6", "fence,token", TL_OUTCOME_SUCCESS), TL_SUCCEEDED);
    assert_int_equal(database_number(self.sql, "SELECT COUNT(*) FROM trade_lock WHERE serial_no = "
                                               "'R4' AND status = 'F'"),
                     2);
    print_message("without fence and token, of compensating attempts in a group: paid, and "
                  "called failed\n");
}

/* Two operators decide on what they saw; the second one's view is old. */
static tl_status override_by_an_old_view(const char *serial, const char *rules)
{
    tl_lock_options first = sync_options(60000), retry = TL_LOCK_OPTIONS_INIT;
    tl_ending ending = TL_ENDING_INIT;
    tl_lock *lock = handle(0, serial, &first);
    tl_status status;
    uint64_t seen;

    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    ending.park_reason = "by hand";
    assert_status(tl_lock_finish(lock, &ending), TL_PARKED);
    tl_lock_free(lock);
    seen = (uint64_t)database_number(
        self.sql, "SELECT fence FROM trade_lock WHERE serial_no = '%s' AND lane = 'S'", serial);
    retry.lane = TL_LANE_RETRY;
    retry.max_hold_ms = 60000;
    retry.flags = TL_ASK_OVERRIDE;
    retry.override_fence = seen;
    lock = handle(0, serial, &retry);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    assert_status(tl_lock_finish(lock, &ending), TL_PARKED);
    tl_lock_free(lock);
    lock = handle(1, serial, &retry);
    mutate(rules);
    status = tl_lock_ask(lock, 0);
    mutate("");
    tl_lock_free(lock);
    return status;
}

/*
 * A payment failed since the channel did not know it.  Before it is tried anew the channel is asked
 * once more, and knows nothing still; then the one who asked sleeps.  Meanwhile the payment
 * arrives, its web-hook contradicts the failure, and two operators take that for a mistake and
 * clear it.  The sleeper goes on with what it saw.  How often is paid?
 */
static unsigned try_anew_by_an_old_view(const char *serial, const char *rules)
{
    tl_lock_options options = sync_options(60000);
    tl_evidence hook = {.version = TL_EVIDENCE_VERSION,
                        .key = {serial, "C1", "PAYOUT"},
                        .outcome = "SUCCEEDED",
                        .source = "web-hook"};
    tl_lock *lock = handle(0, serial, &options);
    unsigned paid = 1; /* by the request that was late */
    tl_status status;

    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    assert_status(end(lock, TL_OUTCOME_FAILURE, TL_PROOF_NOT_FOUND), TL_FAILED);
    options.flags = TL_ASK_RECLAIM;
    options.reclaim_epoch = 1;
    options.reclaim_fence = (uint64_t)database_number(
        self.sql, "SELECT fence FROM trade_lock WHERE serial_no = '%s' AND lane = 'S'", serial);
    assert_status(tl_evidence_add(clients[1], &hook), TL_IN_CONFLICT);
    lock = handle(0, serial, &options);
    assert_status(tl_lock_ask(lock, 0), TL_IN_CONFLICT);
    tl_lock_free(lock);
    /* As resolve_clear.sql does, by two accounts. */
    database_run(self.sql,
                 "UPDATE trade_lock SET step = 'resolve clear', conflict = 0, "
                 "success_epoch = NULL, token = RANDOM_BYTES(16), fence = fence + 1, "
                 "rev = rev + 1 WHERE serial_no = '%s' AND lane = 'S'",
                 serial);
    lock = handle(0, serial, &options);
    mutate(rules);
    status = tl_lock_ask(lock, 0);
    mutate("");
    assert_status(status, rules[0] == '\0' ? TL_FAILED : TL_GRANTED);
    if (status == TL_GRANTED && tl_may_send(lock, 1000))
        paid++;
    tl_lock_free(lock);
    return paid;
}

TEST_IN(without_the_fence, open_clients, close_clients)
{
    assert_int_equal(try_anew_by_an_old_view("N1", ""), 1);
    assert_int_equal(try_anew_by_an_old_view("N2", "fence"), 2);
    print_message("without the fence: paid twice\n");
    assert_status(override_by_an_old_view("O1", ""), TL_PARKED);
    assert_status(override_by_an_old_view("O2", "fence"), TL_GRANTED);
    print_message("without the fence: a decision on what is no more takes effect\n");
}

static tl_client *client_through(const tap *line, int pool_size, char **file)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;
    char settings[200];

    snprintf(settings, sizeof settings,
             "site=town\npool_size=%d\nbeat_ms=1m\nsession_ms=10m\npool_wait_ms=10s\ncommit_ms=1s\n"
             "connect_timeout_s=5\nread_timeout_s=5\n",
             pool_size);
    *file = database_option_file_at(self.db, tap_socket(line), settings);
    options.config_file = *file;
    options.flags = TL_CLIENT_NO_JANITOR;
    if (tl_client_open(&client, &options) != TL_OK)
        server_panic("%s", tl_error_message());
    return client;
}

/*
 * Three threads of a client with one connection.  The first one's request is held up; what the two
 * others want, an ending and a mutex, goes out together then.  Who asks for a mutex makes that the
 * other statement.
 */
enum { HELD_UP, MUTEX, ENDS, THREADS, RELEASES = THREADS };

static struct {
    tap *line;
    tl_client *client;
    char *file;
    tl_lock *locks[THREADS];
    tl_status answers[THREADS];
    atomic_int threads[THREADS]; /* by gettid(), as they are about to call */
} queue;

static void open_queue(const char *serial)
{
    tl_lock_options options = sync_options(60000), mutex = sync_options(60000);
    char name[64];

    memset(&queue, 0, sizeof queue);
    queue.line = tap_start(server_socket(self.own));
    queue.client = client_through(queue.line, 1, &queue.file);
    snprintf(name, sizeof name, "%s-mutex", serial);
    mutex.flags |= TL_ASK_REPEATABLE;
    queue.locks[MUTEX] = handle_of(queue.client, name, &mutex);
    queue.locks[ENDS] = handle_of(queue.client, serial, &options);
    snprintf(name, sizeof name, "%s-held-up", serial);
    queue.locks[HELD_UP] = handle_of(queue.client, name, &options);
    tap_rule(queue.line, name, 0, TAP_DELAY_REQUEST, 0);
}

static void close_queue(void)
{
    for (int i = 0; i < THREADS; i++)
        tl_lock_free(queue.locks[i]);
    tl_client_close(queue.client);
    tap_free(queue.line);
    unlink(queue.file);
    free(queue.file);
}

static void await_held_up(void)
{
    for (int i = 0; i < PATIENCE_MS && !tap_done(queue.line); i++)
        crew_sleep_ms(1);
}

static void queue_up(void *context, int number)
{
    (void)context;
    if (number != HELD_UP)
        await_held_up();
    if (number == RELEASES) {
        crew_await_asleep(&queue.threads[MUTEX]);
        crew_await_asleep(&queue.threads[ENDS]);
        tap_release(queue.line);
        return;
    }
    atomic_store(&queue.threads[number], gettid());
    if (number == ENDS) {
        tl_ending ending = TL_ENDING_INIT;

        ending.outcome = TL_OUTCOME_SUCCESS;
        queue.answers[number] = tl_lock_finish(queue.locks[number], &ending);
    } else {
        queue.answers[number] = tl_lock_ask(queue.locks[number], 0);
    }
}

static tl_status end_beside_a_mutex(void)
{
    uint64_t groups_before, groups, before = grouped(queue.client, &groups_before);

    crew_threads(THREADS + 1, queue_up, NULL);
    assert_int_equal(grouped(queue.client, &groups) - before, 2);
    assert_int_equal(groups - groups_before, 1);
    assert_status(queue.answers[HELD_UP], TL_GRANTED);
    assert_status(queue.answers[MUTEX], TL_GRANTED);
    return queue.answers[ENDS];
}

/*
 * Two lives of a key: the first one's row was removed, and the server's clock stood where it had
 * stood before, so both lives have one fence.
 */
static tl_status end_the_other_life(const char *serial, const char *rules, int in_group)
{
    tl_lock_options options = sync_options(60000);
    tl_lock *old, *now;
    unsigned long long fence;
    tl_status status;

    if (in_group)
        open_queue(serial);
    old = in_group ? queue.locks[ENDS] : handle(0, serial, &options);

    assert_status(tl_lock_ask(old, 0), TL_GRANTED);
    fence = (unsigned long long)database_number(
        self.sql, "SELECT fence FROM trade_lock WHERE serial_no = '%s'", serial);
    database_run(self.sql,
                 "DELETE FROM trade_lock WHERE serial_no = '%s'; "
                 "DELETE FROM trade_lock_past WHERE serial_no = '%s'",
                 serial, serial);
    now = handle(1, serial, &options);
    assert_status(tl_lock_ask(now, 0), TL_GRANTED);
    /* As if it had been made at the same microsecond. */
    database_run(self.sql, "UPDATE trade_lock SET fence = %llu WHERE serial_no = '%s'", fence,
                 serial);
    mutate(rules);
    status = in_group ? end_beside_a_mutex() : end(old, TL_OUTCOME_SUCCESS, TL_PROOF_NONE);
    mutate("");
    if (in_group)
        close_queue();
    tl_lock_free(now);
    return status;
}

/* Until it is known; what the line did to connections may need more than one call. */
static tl_status finish_patiently(tl_lock *lock, const tl_ending *ending)
{
    tl_status status = TL_UNKNOWN;

    for (int i = 0; i < 120; i++) {
        tl_class class_;

        status = tl_lock_finish(lock, ending);
        class_ = tl_status_class(status);
        if (class_ != TL_CLASS_UNKNOWN && class_ != TL_CLASS_RETRY)
            break;
    }
    return status;
}

/* What the retry lane says once nobody is at the trade any more. */
static tl_status compensate(const char *serial)
{
    tl_lock_options retry = TL_LOCK_OPTIONS_INIT;
    tl_status status = TL_BUSY;

    retry.lane = TL_LANE_RETRY;
    retry.max_hold_ms = 60000;
    for (int i = 0; i < PATIENCE_MS / 10 && (status == TL_BUSY || status == TL_NOT_DUE); i++) {
        tl_lock *lock = handle(1, serial, &retry);

        status = tl_lock_ask(lock, 0);
        if (status == TL_GRANTED)
            assert_true(tl_may_send(lock, 1000));
        tl_lock_free(lock);
        usleep(10000);
    }
    return status;
}

/*
 * A failure's ending never reaches the server, and nobody can say so as long as the line is
 * down.  Then the holder looks what became of it.  What it says must be on the row: after
 * "failed" its caller may pay by other means, and the retry lane pays what is still in process.
 */
static tl_status look_after_a_lost_ending(const char *serial, const char *rules)
{
    tap *line = tap_start(server_socket(self.own));
    char *file;
    tl_client *client = client_through(line, 4, &file);
    tl_lock_options options = sync_options(2000);
    tl_lock *lock = handle_of(client, serial, &options);
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = TL_OUTCOME_FAILURE;
    ending.proof = TL_PROOF_DECLINED;
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    tap_rule(line, serial, 0, TAP_LOSE_REQUEST, 1);
    assert_status(tl_lock_finish(lock, &ending), TL_UNKNOWN);
    assert_true(tap_done(line));
    tap_down(line, 0);
    mutate(rules);
    assert_status(finish_patiently(lock, &ending), TL_FAILED);
    mutate("");
    tl_lock_free(lock);
    tl_client_close(client);
    tap_free(line);
    unlink(file);
    free(file);
    return compensate(serial);
}

TEST_IN(without_the_token, open_clients, close_clients)
{
    assert_status(look_after_a_lost_ending("LOST-ENDING-1", ""), TL_FAILED);
    assert_status(look_after_a_lost_ending("LOST-ENDING-2", "token"), TL_GRANTED);
    print_message("without the token: called failed, and paid by the retry lane\n");
    assert_status(end_the_other_life("L1", "", 0), TL_LOST);
    assert_status(end_the_other_life("L2", "token", 0), TL_SUCCEEDED);
    assert_status(end_the_other_life("L3", "", 1), TL_LOST);
    assert_status(end_the_other_life("L4", "token", 1), TL_SUCCEEDED);
    print_message("without the token: a holder ends the hold of another\n");
}

TESTS_OF(mutations, NULL, NULL)

/*
 * Payments over two real servers and one real channel: several processes, a shard that stands still
 * or dies under load, one whose customer was handed over; and what registering at a shard may say.
 */
#include "bank.h"

#include "support/crew.h"
#include "support/theme.h"

#include <pthread.h>
#include <stdatomic.h>

#define CUSTOMERS 6 /* of each shard */
#define BALANCE 100000000
#define PROCESSES 3
#define THREADS 8
#define CALLS 3

static bank town;

#define assert_status(got, expected)                                                               \
    assert_string_equal(tl_status_name(got), tl_status_name(expected))

FIXTURE(set_up)
{
    char cust[TL_CUST_MAX + 1];

    bank_open(&town, 2);
    for (size_t i = 0; i < 2; i++)
        for (unsigned n = 0; n < CUSTOMERS; n++)
            shards_account(&town.shards, i, shards_cust(&town.shards, i, n, cust), BALANCE);
}

FIXTURE(tear_down)
{
    bank_close(&town);
}

static tl_fleet_worker *start_worker(branch *self, unsigned threads)
{
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_fleet_worker *worker = NULL;

    options.threads = threads;
    options.idle_max_ms = 50;
    assert_status(tl_fleet_worker_start(&worker, self->workflows, &options), TL_OK);
    return worker;
}

static void finish(tl_fleet_worker *worker)
{
    AWAIT_WHILE(bank_open_trades(&town) > 0);
    tl_fleet_worker_stop(worker);
    assert_status(tl_fleet_worker_wait(worker, PATIENCE_MS), TL_OK);
    assert_status(tl_fleet_worker_check(worker), TL_WRONG_STATE);
    tl_fleet_worker_free(worker);
}

/* ---------------------------------------------------------------- several processes -- */

#define SERIALS 60

static void pay_all(void *context, int number)
{
    branch *self = context;
    char cust[TL_CUST_MAX + 1];

    for (unsigned i = 0; i < SERIALS; i++) {
        const unsigned k = (i + 17 * (unsigned)number) % SERIALS;
        const struct text serial = text_of("all-%u", k);

        shards_cust(&town.shards, k % 2, k / 2 % CUSTOMERS, cust);
        (void)branch_pay(self, serial.is, cust, 100 + k);
    }
}

static void one_process(void *context, int number)
{
    branch self;

    (void)context;
    branch_open(&self, &town, 0);
    crew_threads(4, pay_all, &self);
    branch_close(&self);
    (void)number;
}

/* Each serial is asked for by all threads of all processes. */
TEST(test_several_processes)
{
    branch self;
    char cust[TL_CUST_MAX + 1];
    tl_trade trade = TL_TRADE_INIT;
    tl_key key = {"all-3", cust, WITHDRAW_OP};

    bank_rule(&town, "{\"kind\":\"drop_after\",\"count\":8}");
    assert_int_equal(crew_run(PROCESSES, one_process, NULL), 0);
    branch_open(&self, &town, 0);
    finish(start_worker(&self, 4));
    shards_cust(&town.shards, 1, 1, cust);
    assert_status(tl_fleet_workflow_look(self.workflows, &key, &trade), TL_SUCCEEDED);
    assert_int_equal(trade.amount_minor, 103);
    assert_status(tl_fleet_workflow_await(self.workflows, &key, 1000, &trade), TL_SUCCEEDED);
    key.serial_no = "nobody";
    assert_status(tl_fleet_workflow_look(self.workflows, &key, &trade), TL_NOT_FOUND);
    assert_status(tl_fleet_workflow_look(self.workflows, NULL, &trade), TL_INVALID);
    branch_close(&self);
    bank_books(&town, SERIALS);
}

/* ------------------------------------------------------------------ one shard is gone -- */

typedef struct crowd {
    branch branch;
    const char *name;
    atomic_int over;
    atomic_uint serial, paid[2], unreachable, full;
} crowd;

/* Customers of both shards in turn, each with a serial of its own until that is paid. */
static void crowd_pay(void *context, int number)
{
    crowd *self = context;
    char cust[TL_CUST_MAX + 1];

    while (!atomic_load(&self->over)) {
        const unsigned n = atomic_fetch_add(&self->serial, 1);
        const size_t shard = n % 2;
        tl_status status;

        status = branch_pay(&self->branch, text_of("%s-%u-%d", self->name, n, number).is,
                            shards_cust(&town.shards, shard, n / 2 % CUSTOMERS, cust), 10 + n % 7);
        if (status == TL_SUCCEEDED)
            atomic_fetch_add(&self->paid[shard], 1);
        if (shard == 1 && status == TL_UNREACHABLE)
            atomic_fetch_add(&self->unreachable, 1);
        if (shard == 1 && status == TL_OVERLOADED)
            atomic_fetch_add(&self->full, 1);
        /* The shard that answers has no reason to say so. */
        CREW_CHECK(shard == 1 || (status != TL_UNREACHABLE && status != TL_MISDIRECTED));
        crew_sleep_ms(status == TL_SUCCEEDED ? 5 : 1);
    }
}

static void *crowd_main(void *context)
{
    crew_threads(THREADS, crowd_pay, context);
    return NULL;
}

static void await_more(atomic_uint *number, unsigned more)
{
    const unsigned from = atomic_load(number);

    AWAIT_WHILE(atomic_load(number) - from < more);
}

static uint64_t ended_at(tl_fleet_worker *worker, size_t shard)
{
    tl_worker_counts counts = TL_WORKER_COUNTS_INIT;

    assert_status(tl_fleet_worker_count_at(worker, shard, &counts), TL_OK);
    return counts.succeeded;
}

/* The lanes of the shard that answers are worked off while the other one does not. */
static void await_lane(tl_fleet_worker *worker, uint64_t from, uint64_t more)
{
    AWAIT_WHILE(ended_at(worker, 0) - from < more);
}

static void lose_a_shard(const char *name, int kills)
{
    crowd self = {.name = name};
    tl_fleet_worker *worker;
    pthread_t thread;
    unsigned before;
    uint64_t lanes;

    branch_open(&self.branch, &town, CALLS);
    worker = start_worker(&self.branch, 4);
    assert_int_equal(pthread_create(&thread, NULL, crowd_main, &self), 0);
    await_more(&self.paid[0], 20);
    await_more(&self.paid[1], 20);
    assert_status(tl_fleet_worker_check(worker), TL_OK);
    if (kills)
        shards_kill(&town.shards, 1);
    else
        shards_stop(&town.shards, 1);
    before = atomic_load(&self.paid[1]);
    lanes = ended_at(worker, 0);
    bank_rule(&town, "{\"kind\":\"drop_after\",\"count\":10}");
    await_more(&self.paid[0], 50);
    await_lane(worker, lanes, 5);
    await_more(&self.unreachable, 200);
    await_more(&self.paid[0], 50);
    assert_true(atomic_load(&self.paid[1]) - before <= CALLS);
    /* Ending the process would help nobody. */
    assert_status(tl_fleet_worker_check(worker), TL_OK);
    if (kills)
        shards_restart(&town.shards, 1);
    else
        shards_go_on(&town.shards, 1);
    await_more(&self.paid[1], 30);
    atomic_store(&self.over, 1);
    pthread_join(thread, NULL);
    finish(worker);
    branch_close(&self.branch);
    print_message("%s: paid %u at a and %u at b; b was unreachable for %u, and full for %u\n", name,
                  atomic_load(&self.paid[0]), atomic_load(&self.paid[1]),
                  atomic_load(&self.unreachable), atomic_load(&self.full));
    bank_books(&town, sim_stat(&town.sim, "payments"));
}

TEST(test_a_shard_that_stands_still)
{
    lose_a_shard("stop", 0);
}

TEST(test_a_shard_that_is_killed)
{
    lose_a_shard("kill", 1);
}

/* A worker that began while a shard was down serves it once it is up. */
TEST(test_a_shard_that_comes_up_later)
{
    char cust[TL_CUST_MAX + 1], own[TL_CUST_MAX + 1];
    tl_workflows *registry = NULL;
    tl_fleet_worker *worker;
    branch self;
    tl_status status;

    shards_cust(&town.shards, 0, 0, own);
    shards_cust(&town.shards, 1, 0, cust);
    shards_kill(&town.shards, 1);
    branch_open(&self, &town, 0);
    worker = start_worker(&self, 1);
    assert_status(branch_pay(&self, "late-1", own, 5), TL_SUCCEEDED);
    assert_status(branch_pay(&self, "late-2", cust, 5), TL_UNREACHABLE);
    assert_status(tl_fleet_workflows_at(self.workflows, 1, &registry), TL_UNREACHABLE);
    shards_restart(&town.shards, 1);
    bank_rule(&town, "{\"kind\":\"drop_after\",\"count\":1}");
    AWAIT_WHILE((status = branch_pay(&self, "late-2", cust, 5)) == TL_UNREACHABLE);
    assert_status(status, TL_IN_DOUBT);
    finish(worker);
    assert_status(branch_pay(&self, "late-2", cust, 5), TL_ALREADY_DONE);
    branch_close(&self);
    bank_books(&town, sim_stat(&town.sim, "payments"));
}

/* ------------------------------------------------------------------------- moved away -- */

TEST(test_a_customer_that_was_moved)
{
    char cust[TL_CUST_MAX + 1];
    branch self;
    tl_workflows *before = NULL, *after = NULL;

    shards_cust(&town.shards, 0, 100, cust);
    shards_account(&town.shards, 1, cust, BALANCE);
    branch_open(&self, &town, 0);
    assert_status(tl_fleet_workflows_of(self.workflows, cust, &before), TL_OK);
    shards_hand_over(&town.shards, 0, 1, tl_fleet_slot(self.fleet, cust));
    assert_status(branch_pay(&self, "moved", cust, 77), TL_SUCCEEDED);
    assert_status(tl_fleet_workflows_of(self.workflows, cust, &after), TL_OK);
    assert_ptr_not_equal(before, after);
    database_expect(town.shards.sql[1], 1,
                    "SELECT COUNT(*) FROM trade_lock WHERE serial_no = 'moved' AND status = 'Y'");
    database_expect(town.shards.sql[0], 0,
                    "SELECT COUNT(*) FROM trade_lock WHERE serial_no = 'moved'");
    /* To a shard that the settings do not name. */
    database_run(town.shards.sql[1],
                 "UPDATE tl_slot SET state = 'gone', other = 'z', version = "
                 "version + 1 WHERE slot = %u",
                 tl_fleet_slot(self.fleet, cust));
    assert_status(branch_pay(&self, "moved-2", cust, 77), TL_MISDIRECTED);
    database_run(town.shards.sql[1],
                 "UPDATE tl_slot SET state = 'owned', other = NULL, version = "
                 "version + 1 WHERE slot = %u",
                 tl_fleet_slot(self.fleet, cust));
    assert_status(branch_pay(&self, "moved-2", cust, 77), TL_SUCCEEDED);
    branch_close(&self);
}

/* ------------------------------------------------------------- a look by an old map -- */

static tl_status look_for(branch *self, const char *serial, const char *cust, int64_t wait_ms)
{
    const tl_key key = {serial, cust, WITHDRAW_OP};
    tl_trade trade = TL_TRADE_INIT;

    return wait_ms > 0 ? tl_fleet_workflow_await(self->workflows, &key, wait_ms, &trade)
                       : tl_fleet_workflow_look(self->workflows, &key, &trade);
}

static void own(size_t at, unsigned slot, const char *state)
{
    database_run(town.shards.sql[at], "UPDATE tl_slot SET state = '%s' WHERE slot = %u", state,
                 slot);
}

typedef struct giver {
    unsigned slot;
    atomic_int asked;
} giver;

static void *own_later(void *context)
{
    giver *self = context;

    while (!atomic_load(&self->asked))
        crew_sleep_ms(1);
    crew_sleep_ms(300);
    own(1, self->slot, "owned");
    return NULL;
}

/* Rows that the shard's server has read. */
static long long reads_at(size_t i)
{
    return database_number(town.shards.sql[i],
                           "SELECT SUM(VARIABLE_VALUE) FROM information_schema.GLOBAL_STATUS "
                           "WHERE VARIABLE_NAME LIKE 'HANDLER_READ%%'");
}

#define OLD_SETTINGS                                                                               \
    "site=fleet\nbeat_ms=60s\nsession_ms=10m\nmax_hold_ms=3s\nexecute_ms=1s\ncommit_ms=1s\n"       \
    "deadline_ms=1m\ngrace_ms=200ms\nclock_margin_ms=50ms\n"

/* It does not beat, so its map stays as it was until it is read anew for a reason. */
TEST(test_a_look_by_an_old_map)
{
    static const size_t straight[] = {0, 1};
    char cust[TL_CUST_MAX + 1];
    branch old, other;
    giver later = {0};
    pthread_t thread;
    tl_client *client = NULL;
    size_t shard = 9;
    long long before;

    shards_cust(&town.shards, 0, 101, cust);
    shards_account(&town.shards, 0, cust, BALANCE);
    shards_write(&town.shards, "a, b", straight, OLD_SETTINGS);
    branch_open(&old, &town, 0);
    shards_write(&town.shards, "a, b", straight, NULL);
    later.slot = tl_fleet_slot(old.fleet, cust);
    assert_status(tl_fleet_confirm(old.fleet, cust, 0), TL_OK);
    assert_status(tl_fleet_confirm(old.fleet, cust, 1), TL_MISDIRECTED);
    assert_status(tl_fleet_confirm(old.fleet, cust, 2), TL_INVALID);
    assert_status(tl_fleet_confirm(old.fleet, "two words", 0), TL_INVALID);
    assert_status(look_for(&old, "old-map", cust, 0), TL_NOT_FOUND);
    assert_int_equal(shards_move(&town.shards, 0, 1, later.slot, NULL, NULL), TL_OK);
    branch_open(&other, &town, 0);
    assert_status(branch_pay(&other, "old-map", cust, 88), TL_SUCCEEDED);
    branch_close(&other);
    assert_status(tl_fleet_owner(old.fleet, cust, &shard), TL_OK);
    assert_int_equal(shard, 0);
    assert_status(look_for(&old, "old-map", cust, 0), TL_SUCCEEDED);
    assert_status(tl_fleet_owner(old.fleet, cust, &shard), TL_OK);
    assert_int_equal(shard, 1);
    /* Nobody owns it: it is not told what stands at either end. */
    own(1, later.slot, "arriving");
    assert_status(look_for(&old, "old-map", cust, 0), TL_MISDIRECTED);
    before = reads_at(0);
    assert_status(look_for(&old, "old-map", cust, 2000), TL_MISDIRECTED);
    /* About eight times all of its slots, and not each 20 ms. */
    assert_in_range(reads_at(0) - before, 1, 16LL * (TL_FLEET_SLOTS / 2));
    assert_int_equal(pthread_create(&thread, NULL, own_later, &later), 0);
    atomic_store(&later.asked, 1);
    assert_status(look_for(&old, "old-map", cust, PATIENCE_MS), TL_SUCCEEDED);
    pthread_join(thread, NULL);
    assert_status(tl_fleet_client(old.fleet, cust, &client), TL_OK);
    branch_close(&old);
    assert_int_equal(shards_move(&town.shards, 1, 0, later.slot, NULL, NULL), TL_OK);
    shards_clean(&town.shards);
}

/* A shard that falls silent keeps nobody beyond their time; its connections wait for half a
 * minute. */
TEST(test_a_silent_shard_prolongs_no_wait)
{
    static const size_t straight[] = {0, 1};
    static const int64_t waits_ms[] = {1500, 10, 3000};
    char cust[TL_CUST_MAX + 1];
    branch old;

    shards_cust(&town.shards, 0, 102, cust);
    shards_write(&town.shards, "a, b", straight, OLD_SETTINGS);
    branch_open(&old, &town, 0);
    shards_write(&town.shards, "a, b", straight, NULL);
    assert_status(look_for(&old, "silent", cust, 500), TL_NOT_FOUND);
    shards_stop(&town.shards, 0);
    for (size_t i = 0; i < 3; i++) {
        const int64_t start_ms = crew_now_ms();

        assert_status(look_for(&old, "silent", cust, waits_ms[i]), TL_UNREACHABLE);
        assert_true(crew_now_ms() - start_ms < 15000);
    }
    shards_go_on(&town.shards, 0);
    assert_status(look_for(&old, "silent", cust, 3000), TL_NOT_FOUND);
    branch_close(&old);
}

/* --------------------------------------------------------------------------- registering -- */

typedef struct script {
    tl_status say[2]; /* by shard: while left is above 0 */
    atomic_int left, opens, closes;
    int registers, sends;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int inside, may_go; /* under the mutex */
} script;

static tl_execute_result execute_slowly(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    script *self = context;

    (void)attempt;
    (void)reply;
    pthread_mutex_lock(&self->mutex);
    self->inside++;
    pthread_cond_broadcast(&self->changed);
    while (!self->may_go)
        pthread_cond_wait(&self->changed, &self->mutex);
    self->inside--;
    pthread_mutex_unlock(&self->mutex);
    return TL_EXECUTE_SUCCEEDED;
}

static tl_status open_script(void *context, const char *shard, tl_client *client,
                             tl_workflows *registry, void **state)
{
    script *self = context;
    tl_workflow workflow = TL_WORKFLOW_INIT;
    tl_status say = self->say[strcmp(shard, "b") == 0];

    (void)client;
    *state = self;
    if (say != TL_OK && atomic_fetch_sub(&self->left, 1) > 0)
        return tl_error_report(say, "the script says so");
    atomic_fetch_add(&self->opens, 1);
    if (!self->registers)
        return TL_OK;
    workflow.op_code = "SLOW";
    workflow.channel.name = "slow";
    workflow.channel.idempotent = 1;
    workflow.context = self;
    workflow.execute = execute_slowly;
    workflow.policy.max_hold_ms = 60000;
    workflow.policy.execute_ms = 50000;
    workflow.policy.deadline_ms = 300000;
    return tl_workflow_register(registry, &workflow);
}

static void close_script(void *context, void *state)
{
    script *self = context;

    if (state == self)
        atomic_fetch_add(&self->closes, 1);
}

static tl_status try_script(script *self, tl_fleet *fleet, tl_fleet_workflows **workflows,
                            unsigned calls)
{
    tl_fleet_workflows_options options = TL_FLEET_WORKFLOWS_OPTIONS_INIT;

    options.fleet = fleet;
    options.open = open_script;
    options.close = close_script;
    options.context = self;
    options.calls = calls;
    return tl_fleet_workflows_new(workflows, &options);
}

TEST(test_what_registering_says)
{
    script self = {.registers = 1, .say = {TL_OK, TL_UNSAFE}, .left = 1000};
    tl_fleet_workflows_options none = TL_FLEET_WORKFLOWS_OPTIONS_INIT;
    tl_fleet_workflows *workflows = NULL;
    tl_workflows *registry = NULL;
    tl_fleet *fleet = NULL;

    assert_status(shards_fleet(&town.shards, &fleet), TL_OK);
    assert_status(try_script(&self, fleet, &workflows, 0), TL_UNSAFE);
    assert_string_equal(tl_error_message(), "shard b: the script says so");
    assert_null(workflows);
    assert_int_equal(atomic_load(&self.opens), atomic_load(&self.closes));
    self.registers = 0;
    self.say[1] = TL_OK;
    assert_status(try_script(&self, fleet, &workflows, 0), TL_INVALID);
    assert_non_null(strstr(tl_error_message(), "no workflow was registered"));
    assert_int_equal(atomic_load(&self.opens), atomic_load(&self.closes));
    /* What may pass is tried again by itself. */
    self.registers = 1;
    self.say[1] = TL_UNREACHABLE;
    self.left = 3;
    assert_status(try_script(&self, fleet, &workflows, 0), TL_OK);
    assert_status(tl_fleet_workflows_at(workflows, 0, &registry), TL_OK);
    AWAIT_WHILE(tl_fleet_workflows_at(workflows, 1, &registry) == TL_UNREACHABLE);
    assert_status(tl_fleet_workflows_at(workflows, 1, &registry), TL_OK);
    assert_status(tl_fleet_workflows_at(workflows, 2, &registry), TL_INVALID);
    assert_status(tl_fleet_workflows_of(workflows, "a b", &registry), TL_INVALID);
    /* Nothing is closed under those who stand on it. */
    tl_fleet_close(fleet);
    assert_non_null(strstr(tl_error_message(), "the fleet is not closed"));
    tl_fleet_workflows_free(workflows);
    assert_int_equal(atomic_load(&self.opens), atomic_load(&self.closes));
    tl_fleet_close(fleet);
    assert_status(tl_fleet_workflows_new(&workflows, &none), TL_INVALID);
    assert_status(tl_fleet_workflows_new(&workflows, NULL), TL_INVALID);
}

typedef struct asker {
    tl_fleet_workflows *workflows;
    const char *serial, *cust;
    tl_status status;
} asker;

static void *ask(void *context)
{
    asker *self = context;
    tl_request request = TL_REQUEST_INIT;
    tl_answer answer = TL_ANSWER_INIT;

    request.key = (tl_key){self->serial, self->cust, "SLOW"};
    request.payload = "x";
    request.payload_size = 1;
    self->status = tl_fleet_workflow_run(self->workflows, &request, &answer);
    tl_answer_clear(&answer);
    return NULL;
}

/* ------------------------------------------------------- a map that turns meanwhile -- */

typedef struct turn {
    tl_fleet *fleet;
    const char *cust;
    unsigned slot, calls, at; /* it turns in the call of that number; 0: never */
} turn;

static _Thread_local int is_watched;

static void *await_turn(void *context)
{
    const turn *self = context;
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    size_t owner = 0;

    while (owner != 1) {
        CREW_CHECK(crew_now_ms() < end_ms);
        (void)tl_fleet_look_again(self->fleet);
        (void)tl_fleet_owner(self->fleet, self->cust, &owner);
    }
    return NULL;
}

/* The fleet's rule: in that call of the watched thread the slot is given away, and the other shard
 * does not have it yet, and the map is read. */
static uint16_t turning_slot(void *context, const char *cust_no)
{
    turn *self = context;
    pthread_t thread;

    (void)cust_no;
    if (is_watched && ++self->calls == self->at) {
        shards_hand_over(&town.shards, 0, 1, self->slot);
        own(1, self->slot, "arriving");
        CREW_CHECK(pthread_create(&thread, NULL, await_turn, self) == 0);
        pthread_join(thread, NULL);
    }
    return (uint16_t)self->slot;
}

static void give_back(unsigned slot)
{
    database_run(town.shards.sql[1], "DELETE FROM tl_slot WHERE slot = %u", slot);
    database_run(town.shards.sql[0],
                 "UPDATE tl_slot SET state = 'owned', other = NULL WHERE slot = %u", slot);
}

static tl_status watch(tl_fleet_workflows *workflows, const char *serial, turn *self)
{
    const tl_key key = {serial, self->cust, "SLOW"};
    tl_trade trade = TL_TRADE_INIT;
    tl_status status;

    self->calls = 0;
    self->at = 3; /* whose it is, whether it is there, and after the answer */
    is_watched = 1;
    status = tl_fleet_workflow_look(workflows, &key, &trade);
    is_watched = 0;
    self->at = 0;
    return status;
}

/* A trade was seen paid at a shard that had it: it is told so, wherever the customer goes to. */
TEST(test_a_final_answer_of_before)
{
    script self = {.registers = 1,
                   .may_go = 1,
                   .mutex = PTHREAD_MUTEX_INITIALIZER,
                   .changed = PTHREAD_COND_INITIALIZER};
    tl_client_options client = TL_CLIENT_OPTIONS_INIT;
    tl_fleet_options options = TL_FLEET_OPTIONS_INIT;
    tl_fleet_workflows *workflows = NULL;
    char cust[TL_CUST_MAX + 1];
    turn with = {.cust = cust};
    asker paid = {.serial = "final-1", .cust = cust};

    shards_cust(&town.shards, 0, 102, cust);
    with.slot =
        (unsigned)database_number(town.shards.sql[0], "SELECT tl_customer_slot('%s')", cust);
    client.config_file = town.shards.file;
    options.client = &client;
    options.slot = turning_slot;
    options.slot_context = &with;
    assert_status(tl_fleet_open(&with.fleet, &options), TL_OK);
    assert_status(try_script(&self, with.fleet, &workflows, 0), TL_OK);
    paid.workflows = workflows;
    (void)ask(&paid);
    assert_status(paid.status, TL_SUCCEEDED);
    assert_status(watch(workflows, "final-1", &with), TL_SUCCEEDED);
    give_back(with.slot);
    AWAIT_WHILE(tl_fleet_look_again(with.fleet) == TL_TIMEOUT);
    /* Busy for another reason is said with its reason. */
    database_run(town.shards.sql[0], "BEGIN");
    database_number(town.shards.sql[0], "SELECT COUNT(*) FROM trade_lock FOR UPDATE");
    paid.serial = "final-2";
    (void)ask(&paid);
    assert_status(paid.status, TL_BUSY);
    assert_string_equal(tl_error_message(), "an open transaction is deciding this trade");
    database_run(town.shards.sql[0], "ROLLBACK");
    /* That there is none proves nothing of the other shard. */
    assert_status(watch(workflows, "final-2", &with), TL_MISDIRECTED);
    database_expect(town.shards.sql[0], 1,
                    "SELECT COUNT(*) FROM tl_slot WHERE slot = %u AND state = 'gone'", with.slot);
    give_back(with.slot);
    tl_fleet_workflows_free(workflows);
    tl_fleet_close(with.fleet);
}

TEST(test_a_shard_that_is_full)
{
    script self = {
        .registers = 1, .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    char full[TL_CUST_MAX + 1], other[TL_CUST_MAX + 1];
    asker first = {.serial = "full-1", .cust = full}, second = {.serial = "full-2", .cust = full},
          third = {.serial = "full-3", .cust = other};
    tl_fleet_workflows *workflows = NULL;
    tl_fleet *fleet = NULL;
    pthread_t thread, another;

    shards_cust(&town.shards, 1, 60, full);
    shards_cust(&town.shards, 0, 60, other);
    assert_status(shards_fleet(&town.shards, &fleet), TL_OK);
    assert_status(try_script(&self, fleet, &workflows, 1), TL_OK);
    first.workflows = second.workflows = third.workflows = workflows;
    assert_int_equal(pthread_create(&thread, NULL, ask, &first), 0);
    pthread_mutex_lock(&self.mutex);
    while (self.inside < 1)
        pthread_cond_wait(&self.changed, &self.mutex);
    pthread_mutex_unlock(&self.mutex);
    (void)ask(&second);
    assert_status(second.status, TL_OVERLOADED);
    assert_string_equal(tl_error_message(),
                        "shard b: 1 calls are under way there, and no more are let in");
    database_expect(town.shards.sql[1], 0,
                    "SELECT COUNT(*) FROM trade_lock WHERE serial_no = 'full-2'");
    tl_fleet_workflows_free(workflows);
    assert_non_null(strstr(tl_error_message(), "1 calls are under way"));
    assert_int_equal(pthread_create(&another, NULL, ask, &third), 0);
    pthread_mutex_lock(&self.mutex);
    while (self.inside < 2)
        pthread_cond_wait(&self.changed, &self.mutex);
    self.may_go = 1;
    pthread_cond_broadcast(&self.changed);
    pthread_mutex_unlock(&self.mutex);
    pthread_join(thread, NULL);
    pthread_join(another, NULL);
    assert_status(first.status, TL_SUCCEEDED);
    assert_status(third.status, TL_SUCCEEDED);
    (void)ask(&second);
    assert_status(second.status, TL_SUCCEEDED);
    tl_fleet_workflows_free(workflows);
    tl_fleet_close(fleet);
}

TEST(test_bad_arguments)
{
    tl_request request = TL_REQUEST_INIT;
    tl_answer answer = TL_ANSWER_INIT;
    tl_worker_counts counts = TL_WORKER_COUNTS_INIT;
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_fleet_worker *worker = NULL;
    branch self;

    branch_open(&self, &town, 0);
    assert_status(tl_fleet_workflow_run(self.workflows, NULL, &answer), TL_INVALID);
    assert_status(tl_fleet_workflow_run(self.workflows, &request, NULL), TL_INVALID);
    assert_status(tl_fleet_workflow_run(NULL, &request, &answer), TL_INVALID);
    assert_status(tl_fleet_workflow_run(self.workflows, &request, &answer), TL_INVALID);
    assert_status(tl_fleet_workflow_settle(self.workflows, &answer), TL_WRONG_STATE);
    assert_status(tl_fleet_worker_start(&worker, NULL, &options), TL_INVALID);
    options.threads = 10000;
    assert_status(tl_fleet_worker_start(&worker, self.workflows, &options), TL_INVALID);
    assert_null(worker);
    assert_status(tl_fleet_worker_count(NULL, &counts), TL_INVALID);
    assert_status(tl_fleet_worker_wait(NULL, 0), TL_INVALID);
    assert_status(tl_fleet_worker_check(NULL), TL_INVALID);
    tl_fleet_worker_free(NULL);
    tl_fleet_worker_stop(NULL);
    worker = start_worker(&self, 2);
    assert_status(tl_fleet_worker_count_at(worker, 2, &counts), TL_INVALID);
    assert_status(tl_fleet_worker_count(worker, &counts), TL_OK);
    assert_status(tl_fleet_worker_wait(worker, 10), TL_TIMEOUT);
    tl_fleet_workflows_free(self.workflows);
    assert_non_null(strstr(tl_error_message(), "1 workers stand on them"));
    tl_fleet_worker_free(worker);
    branch_close(&self);
}

TESTS_OF(workflows, set_up, tear_down)

/* Closing and freeing in the wrong order, and twice. */
#include "support/crew.h"
#include "support/database.h"
#include "support/theme.h"

#include <tradelock/callback.h>
#include <tradelock/rw_lock.h>
#include <tradelock/worker.h>
#include <tradelock/workflow.h>

#include <pthread.h>
#include <stdatomic.h>

static database *db;
static atomic_int alarms;

static void keep_alarms(void *context, const tl_log_line *line)
{
    (void)context;
    if (line->level == TL_ALARM)
        atomic_fetch_add(&alarms, 1);
}

FIXTURE(setup)
{
    db = database_new(server_shared(), NULL);
}

FIXTURE(teardown)
{
    database_free(db);
}

static tl_client *open_client(void)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.config_file = database_option_file(db);
    options.flags = TL_CLIENT_NO_JANITOR;
    options.log = keep_alarms;
    CREW_STATUS(tl_client_open(&client, &options), TL_OK);
    atomic_store(&alarms, 0);
    return client;
}

static void assert_refused(const char *words)
{
    assert_int_equal(atomic_load(&alarms), 1);
    assert_non_null(strstr(tl_error_message(), words));
    atomic_store(&alarms, 0);
}

TEST(test_twice)
{
    tl_client *client = open_client();

    tl_client_close(client);
    assert_string_equal(tl_error_message(), "");
    tl_client_close(client);
    assert_non_null(strstr(tl_error_message(), "closed already"));
}

/* ------------------------------------------------------------------------- handles -- */

static tl_lock *lock_of(tl_client *client, const char *serial)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_key key = {serial, "C-1", "WITHDRAW"};
    tl_lock *lock = NULL;

    options.max_hold_ms = 60000;
    CREW_STATUS(tl_lock_new(&lock, client, &key, &options), TL_OK);
    return lock;
}

/* The session ends, and the handle says so for the rest of its days. */
TEST(test_a_trade_lock_is_alive)
{
    tl_client *client = open_client();
    tl_lock *lock = lock_of(client, "S-1");
    tl_ending ending = TL_ENDING_INIT;

    CREW_STATUS(tl_lock_ask(lock, 0), TL_GRANTED);
    tl_client_close(client);
    assert_int_equal(tl_may_send(lock, 1), 0);
    assert_int_equal(tl_lock_remaining_ms(lock), 0);
    CREW_STATUS(tl_lock_finish(lock, &ending), TL_WRONG_STATE);
    assert_non_null(strstr(tl_error_message(), "closed"));
    CREW_STATUS(tl_lock_ask(lock, 0), TL_WRONG_STATE);
    assert_int_equal(tl_lock_view(lock)->status, 'P');
    tl_lock_free(lock);
}

TEST(test_a_mutex_is_alive)
{
    tl_client *client = open_client();
    tl_mutex_options options = TL_MUTEX_OPTIONS_INIT;
    tl_mutex *mutex = NULL;

    options.max_hold_ms = 60000;
    CREW_STATUS(tl_mutex_new(&mutex, client, "one", &options), TL_OK);
    CREW_STATUS(tl_mutex_lock(mutex, 0), TL_GRANTED);
    tl_client_close(client);
    assert_refused("stand on it");
    assert_true(tl_client_alive_ms(client) > 0);
    CREW_STATUS(tl_mutex_unlock(mutex), TL_OK);
    tl_mutex_free(mutex);
    tl_client_close(client);
    assert_string_equal(tl_error_message(), "");
}

TEST(test_a_read_write_lock_is_alive)
{
    tl_client *client = open_client();
    tl_rw_options options = TL_RW_OPTIONS_INIT;
    tl_rw *rw = NULL;

    options.max_hold_ms = 60000;
    CREW_STATUS(tl_rw_new(&rw, client, "one", &options), TL_OK);
    tl_client_close(client);
    assert_refused("stand on it");
    CREW_STATUS(tl_rw_read(rw, 0), TL_GRANTED);
    tl_rw_free(rw);
    tl_client_close(client);
    assert_string_equal(tl_error_message(), "");
}

/* ------------------------------------------------------------ registry and worker -- */

static tl_execute_result pay(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)attempt;
    (void)reply;
    return TL_EXECUTE_SUCCEEDED;
}

static tl_workflows *registry_of(tl_client *client)
{
    tl_workflow workflow = TL_WORKFLOW_INIT;
    tl_workflows *workflows = NULL;

    workflow.op_code = "WITHDRAW";
    workflow.channel.name = "fastpay";
    workflow.channel.idempotent = 1;
    workflow.execute = pay;
    CREW_STATUS(tl_workflows_new(&workflows, client), TL_OK);
    CREW_STATUS(tl_workflow_register(workflows, &workflow), TL_OK);
    return workflows;
}

TEST(test_a_worker_is_alive)
{
    tl_client *client = open_client();
    tl_workflows *workflows = registry_of(client);
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_worker *worker = NULL;
    tl_request request = TL_REQUEST_INIT;
    tl_answer answer = TL_ANSWER_INIT;

    CREW_STATUS(tl_worker_start(&worker, workflows, &options), TL_OK);
    tl_client_close(client);
    assert_refused("stand on it");
    tl_workflows_free(workflows);
    assert_refused("1 workers stand on it");
    /* Everything goes on. */
    request.key = (tl_key){"S-2", "C-1", "WITHDRAW"};
    request.payload = "1";
    request.payload_size = 1;
    CREW_STATUS(tl_workflow_run(workflows, &request, &answer), TL_SUCCEEDED);
    tl_answer_clear(&answer);
    CREW_STATUS(tl_worker_wait(worker, 0), TL_TIMEOUT);
    tl_worker_free(worker);
    tl_client_close(client);
    assert_refused("stand on it");
    tl_workflows_free(workflows);
    assert_int_equal(atomic_load(&alarms), 0);
    tl_client_close(client);
    assert_string_equal(tl_error_message(), "");
}

/* An answer outlives both, and is cleared whenever its owner likes. */
TEST(test_an_answer_is_alive)
{
    tl_client *client = open_client();
    tl_workflows *workflows = registry_of(client);
    tl_request request = TL_REQUEST_INIT;
    tl_answer answer = TL_ANSWER_INIT;

    request.key = (tl_key){"S-3", "C-1", "WITHDRAW"};
    request.payload = "1";
    request.payload_size = 1;
    CREW_STATUS(tl_workflow_run(workflows, &request, &answer), TL_SUCCEEDED);
    tl_workflows_free(workflows);
    tl_client_close(client);
    assert_string_equal(tl_error_message(), "");
    tl_answer_clear(&answer);
}

/* ---------------------------------------------------------- a connection is in use -- */

static tl_client *in_use; /* its memory stays to the end */
static tl_lock *of_in_use;
static pthread_barrier_t barrier;
static atomic_int later;

static tl_status stay(void *context, struct st_mysql *connection)
{
    (void)context, (void)connection;
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return TL_OK;
}

static void *ask_and_stay(void *unused)
{
    (void)unused;
    (void)tl_lock_ask_with(of_in_use, stay, NULL, 0);
    atomic_store(&later, (int)tl_lock_ask(of_in_use, 0));
    return NULL;
}

TEST(test_a_thread_is_inside)
{
    pthread_t thread;

    in_use = open_client();
    of_in_use = lock_of(in_use, "S-4");
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, ask_and_stay, NULL), 0);
    pthread_barrier_wait(&barrier);
    tl_client_close(in_use);
    assert_refused("in use");
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&later), (int)TL_WRONG_STATE);
    tl_lock_free(of_in_use);
    pthread_barrier_destroy(&barrier);
}

TESTS_OF(close, setup, teardown)

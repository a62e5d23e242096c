/* Waiting: who comes in when, how long it takes, and that nobody is starved. */
#include "rw_lock/fixture.h"
#include "support/crew.h"
#include "support/theme.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

static fixture f;

FIXTURE(setup)
{
    fixture_open(&f, "ask_wait_min_ms=5ms\nask_wait_max_ms=20ms\nbeat_ms=100ms\n"
                     "session_ms=30s\n");
}

FIXTURE(teardown)
{
    assert_holders_whole(&f, 0);
    fixture_close(&f);
}

static long long waiting_rows(const char *resource)
{
    return database_number(f.sql,
                           "SELECT COUNT(*) FROM resource_holder WHERE resource = '%s' "
                           "AND status = 'W'",
                           resource);
}

TEST(test_bounded)
{
    tl_rw *reader = reading(f.client, "bounded", 0), *writer = rw_new(f.other, "bounded", 0);
    int64_t begun_ms = crew_now_ms();

    assert_status(tl_rw_write(writer, 200), TL_TIMEOUT);
    assert_in_range(crew_now_ms() - begun_ms, 190, 30000);
    assert_true(tl_rw_view(writer)->mode == TL_RW_READ);
    /* A writer that gave up keeps nobody out. */
    assert_int_equal(waiting_rows("bounded"), 0);
    assert_status(try_read(f.other, "bounded"), TL_GRANTED);
    tl_rw_free(reader);
    tl_rw_free(writer);
}

struct asker {
    tl_rw *rw;
    int writes;
    int64_t wait_ms;
    tl_status status;
    pthread_t thread;
};

static void *ask_in_thread(void *argument)
{
    struct asker *asker = argument;

    asker->status = asker->writes ? tl_rw_write(asker->rw, asker->wait_ms)
                                  : tl_rw_read(asker->rw, asker->wait_ms);
    return NULL;
}

static void start_asking(struct asker *asker, tl_client *client, const char *resource, int writes)
{
    asker->rw = rw_new(client, resource, 0);
    asker->writes = writes;
    asker->wait_ms = 30000;
    pthread_create(&asker->thread, NULL, ask_in_thread, asker);
}

/* A process that was stopped within its ask keeps the gate until the server ends its transaction:
 * whoever waits goes on waiting. */
TEST(test_a_gate_that_is_held)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    char *file = database_option_file_at(f.db, server_socket(server_shared()),
                                         "pool_wait_ms=500ms\nsession_ms=30s\n");
    MYSQL *stopped = database_connect(f.db);
    tl_client *client = NULL;
    struct asker asker;
    tl_rw *rw;

    options.config_file = file;
    options.flags = TL_CLIENT_NO_JANITOR;
    assert_status(tl_client_open(&client, &options), TL_OK);
    assert_status(write_when_free(client, "gate"), TL_GRANTED);
    database_run(stopped, "BEGIN");
    database_run(stopped, "SELECT * FROM rw_lock WHERE resource = 'gate' FOR UPDATE");
    rw = rw_new(client, "gate", 0);
    assert_status(tl_rw_write(rw, 0), TL_BUSY);
    start_asking(&asker, client, "gate", 1);
    crew_sleep_ms(3000);
    database_run(stopped, "ROLLBACK");
    pthread_join(asker.thread, NULL);
    assert_status(asker.status, TL_GRANTED);
    tl_rw_free(asker.rw);
    tl_rw_free(rw);
    tl_client_close(client);
    mysql_close(stopped);
    remove(file);
    free(file);
}

/* How long the writer's intent is good for; 0 without one. */
static int64_t intent_left_ms(const char *resource)
{
    return database_number(f.sql,
                           "SELECT GREATEST(0, TIMESTAMPDIFF(MICROSECOND, "
                           "UTC_TIMESTAMP(6), over_at) DIV 1000) FROM resource_holder "
                           "WHERE resource = '%s' AND status = 'W'",
                           resource);
}

/* Waits until the server shows the writer's intent, made or renewed just now: a commit may take a
 * part of its time. */
static void await_intent(const char *resource)
{
    int64_t until_ms = crew_now_ms() + PATIENCE_MS;

    while (intent_left_ms(resource) < 2500 && crew_now_ms() < until_ms)
        crew_sleep_ms(2);
    assert_true(intent_left_ms(resource) > 0);
    assert_int_equal(waiting_rows(resource), 1);
}

TEST(test_a_waiting_writer_keeps_new_readers_out)
{
    tl_rw *reader = reading(f.client, "intent", 0), *late;
    struct asker writer;

    start_asking(&writer, f.other, "intent", 1);
    await_intent("intent");
    late = rw_new(f.client, "intent", 0);
    assert_status(tl_rw_read(late, 0), TL_BUSY);
    assert_true(tl_rw_view(late)->state == TL_HOLDER_WAITING);
    /* The one who reads already is not disturbed. */
    assert_true(tl_rw_remaining_ms(reader) > 0);
    assert_status(tl_rw_unlock(reader), TL_OK);
    pthread_join(writer.thread, NULL);
    assert_status(writer.status, TL_GRANTED);
    assert_int_equal(waiting_rows("intent"), 0);
    assert_status(tl_rw_read(late, 0), TL_BUSY);
    assert_status(tl_rw_unlock(writer.rw), TL_OK);
    assert_status(tl_rw_read(late, 0), TL_GRANTED);
    tl_rw_free(late);
    tl_rw_free(reader);
    tl_rw_free(writer.rw);
}

#define STREAM 6

static atomic_int stop_reading;
static atomic_uint reads;

/* One of several that always leave somebody reading. */
static void *read_again_and_again(void *argument)
{
    tl_rw *rw = rw_new(argument, "stream", 0);

    while (!atomic_load(&stop_reading))
        if (tl_rw_read(rw, 100) == TL_GRANTED) {
            atomic_fetch_add(&reads, 1);
            crew_sleep_ms(20);
            (void)tl_rw_unlock(rw);
        }
    tl_rw_free(rw);
    return NULL;
}

TEST(test_writers_are_not_starved)
{
    tl_rw *writer = rw_new(f.other, "stream", 0);
    pthread_t threads[STREAM];
    int64_t begun_ms = crew_now_ms();

    for (int i = 0; i < STREAM; i++)
        pthread_create(&threads[i], NULL, read_again_and_again, i % 2 ? f.client : f.other);
    while (atomic_load(&reads) < STREAM && crew_now_ms() - begun_ms < 10000)
        crew_sleep_ms(2);
    for (int i = 0; i < 3; i++) {
        unsigned before = atomic_load(&reads);

        assert_status(tl_rw_write(writer, 20000), TL_GRANTED);
        assert_status(tl_rw_unlock(writer), TL_OK);
        /* And readers come in again. */
        begun_ms = crew_now_ms();
        while (atomic_load(&reads) < before + STREAM && crew_now_ms() - begun_ms < 20000)
            crew_sleep_ms(2);
        assert_true(atomic_load(&reads) >= before + STREAM);
    }
    atomic_store(&stop_reading, 1);
    for (int i = 0; i < STREAM; i++)
        pthread_join(threads[i], NULL);
    tl_rw_free(writer);
}

/* Of the waiters of one process only the first asks the server. */
TEST(test_one_asks_for_all)
{
    struct asker askers[8];
    tl_rw *writer = writing(f.other, "queue", 0);
    tl_stats before = {.version = TL_STATS_VERSION}, after = before;
    int64_t begun_ms, polls;

    for (int i = 0; i < 8; i++)
        start_asking(&askers[i], f.client, "queue", 0);
    crew_sleep_ms(100);
    begun_ms = crew_now_ms();
    tl_client_stats(f.client, &before);
    crew_sleep_ms(400);
    tl_client_stats(f.client, &after);
    polls = (crew_now_ms() - begun_ms) / 20 + 2;
    /* A poll is at most six statements and a pause of 20 ms or more. */
    assert_true((int64_t)(after.statements - before.statements) <= polls * 6);
    assert_status(tl_rw_unlock(writer), TL_OK);
    for (int i = 0; i < 8; i++) {
        pthread_join(askers[i].thread, NULL);
        assert_status(askers[i].status, TL_GRANTED);
        tl_rw_free(askers[i].rw);
    }
    tl_rw_free(writer);
}

/* A writer that dies while it waits, and whose session nobody has seen dead yet, keeps readers out
 * until its intent is over and no longer. */
TEST(test_a_writer_that_dies_waiting)
{
    tl_rw *reader = reading(f.client, "dying", 0), *late = rw_new(f.client, "dying", 0);
    int64_t begun_ms, left_ms;
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        tl_client *client = client_new(&f);

        (void)tl_rw_write(rw_new(client, "dying", 0), 60000);
        _exit(0);
    }
    await_intent("dying");
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    begun_ms = crew_now_ms();
    left_ms = intent_left_ms("dying");
    assert_true(left_ms > 0);
    assert_status(tl_rw_read(late, 0), TL_BUSY);
    assert_status(tl_rw_read(late, 20000), TL_GRANTED);
    assert_in_range(crew_now_ms() - begun_ms, left_ms, 20000);
    tl_rw_free(late);
    tl_rw_free(reader);
}

TESTS_OF(wait, setup, teardown)

/* `tradelock resource` and `tradelock run`, as operators and cron use them. */
#include "cli/command.h"
#include "cli/fields.h"
#include "fixture.h"
#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/money.h>
#include <tradelock/admin.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static fixture f;
static const char *config;
static char program[512];

FIXTURE(setup)
{
    fixture_open(&f, "beat_ms=100\nsession_ms=1m\n");
    config = database_option_file(f.db);
    snprintf(program, sizeof program, "%s/bin/tradelock", test_build_dir());
}

FIXTURE(teardown)
{
    fixture_close(&f);
}

/* -------------------------------------------------------------------- resource -- */

TEST(test_ls_show_unlock)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex;
    char fence[32];

    options.payload = "batch 7";
    options.payload_size = 7;
    mutex = locked(f.client, "nightly/interest", &options);
    assert_status(try_once(f.client, "free-one"), TL_GRANTED);
    snprintf(fence, sizeof fence, "%llu", (unsigned long long)tl_mutex_fence(mutex, NULL));
    ENDS(RUN("resource", "ls", "--config", config), 0, "nightly/interest", fence,
         WITHOUT("free-one"));
    ENDS(RUN("resource", "ls", "--all", "--prefix", "free", "--config", config), ANY_CODE,
         "free-one", WITHOUT("nightly"));
    ENDS(RUN("resource", "show", "nightly/interest", "--config", config), 0, "batch 7",
         "its session renews the lock");
    ENDS(RUN("resource", "unlock", "nightly/interest", "--fence", fence, "--reason", "hangs",
             "--actor", "ann", "--config", config),
         0);
    EXPECT_REFUSED(RUN("resource", "unlock", "nightly/interest", "--fence", fence, "--reason",
                       "hangs", "--config", config),
                   1, "moved on");
    assert_status(tl_mutex_unlock(mutex), TL_LOST);
    ENDS(RUN("acts", "--limit", "1", "--config", config), ANY_CODE,
         "resource unlock nightly/interest (hangs)");
    tl_mutex_free(mutex);
}

/* Readers and writers have rows of their own. */
TEST(test_readers_and_writers)
{
    tl_rw_options options = {.version = TL_RW_OPTIONS_VERSION, .max_hold_ms = 60000};
    tl_rw *one = NULL, *two = NULL;

    assert_status(tl_rw_new(&one, f.client, "loan/7", &options), TL_OK);
    assert_status(tl_rw_new(&two, f.other, "loan/7", &options), TL_OK);
    assert_status(tl_rw_read(one, 0), TL_GRANTED);
    assert_status(tl_rw_read(two, 0), TL_GRANTED);
    ENDS(RUN("resource", "ls", "--prefix", "loan", "--config", config), 0, "read", "loan/7");
    assert_status(tl_rw_unlock(one), TL_OK);
    assert_status(tl_rw_unlock(two), TL_OK);
    assert_status(tl_rw_write(one, 0), TL_GRANTED);
    ENDS(RUN("resource", "show", "loan/7", "--config", config), 0, "write", "held");
    EXPECT_REFUSED(RUN("resource", "show", "nobodys", "--config", config), 1, "nobodys");
    EXPECT_REFUSED(RUN("resource", "show", "nobodys", "--json", "--config", config), 1, "nobodys");
    tl_rw_free(one);
    tl_rw_free(two);
}

TEST(test_unlock_one_reader)
{
    tl_rw_options options = {.version = TL_RW_OPTIONS_VERSION, .max_hold_ms = 60000};
    tl_rw *one = NULL, *two = NULL;
    char fence[32];

    assert_status(tl_rw_new(&one, f.client, "loan/8", &options), TL_OK);
    assert_status(tl_rw_new(&two, f.other, "loan/8", &options), TL_OK);
    assert_status(tl_rw_read(one, 0), TL_GRANTED);
    assert_status(tl_rw_read(two, 0), TL_GRANTED);
    snprintf(fence, sizeof fence, "%llu", (unsigned long long)tl_rw_fence(two));
    ENDS(RUN("resource", "show", "loan/8", "--config", config), ANY_CODE, "SLOT", fence);
    EXPECT_REFUSED(RUN("resource", "unlock", "loan/8", "--slot", "1", "--fence", fence, "--reason",
                       "hangs", "--config", config),
                   1, "moved on");
    ENDS(RUN("resource", "unlock", "loan/8", "--slot", "2", "--fence", fence, "--reason", "hangs",
             "--config", config),
         0, "number 2");
    assert_status(tl_rw_unlock(two), TL_LOST);
    assert_status(tl_rw_unlock(one), TL_OK);
    ENDS(RUN("acts", "--limit", "1", "--config", config), ANY_CODE,
         "resource unlock loan/8 --slot 2 (hangs)");
    ENDS(RUN("resource", "show", "loan/8", "--json", "--config", config), ANY_CODE, "force unlock");
    tl_rw_free(one);
    tl_rw_free(two);
}

/* ----------------------------------------------------------------------- purge -- */

static void expect_purged(unsigned resources)
{
    char words[128], count[TL_AMOUNT_TEXT];
    output *o = RUN("purge", "--older", "90d", "--config", config);

    snprintf(words, sizeof words, "%s resources purged", tl_count_text(count, resources));
    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, words);
    output_free(o);
}

/* As if nothing had happened to these for a year. */
static void make_old(const char *prefix)
{
    database_run(f.sql,
                 "UPDATE resource_lock SET updated_at = updated_at - INTERVAL 1 YEAR, "
                 "max_hold_until = max_hold_until - INTERVAL 1 YEAR, "
                 "free_at = free_at - INTERVAL 1 YEAR, fence = fence + 5, rev = rev + 1 "
                 "WHERE resource LIKE '%s-dead%%' OR resource LIKE '%s-idle%%';"
                 "UPDATE resource_lock SET updated_at = updated_at - INTERVAL 1 YEAR, "
                 "rev = rev + 1 WHERE resource LIKE '%s%%' AND resource NOT LIKE '%s-dead%%' "
                 "AND resource NOT LIKE '%s-idle%%' AND resource NOT LIKE '%s-young%%';"
                 "UPDATE resource_holder SET updated_at = updated_at - INTERVAL 1 YEAR, "
                 "rev = rev + 1 WHERE resource LIKE '%s%%' AND resource NOT LIKE '%s-young%%';"
                 "UPDATE rw_lock SET created_at = created_at - INTERVAL 1 YEAR",
                 prefix, prefix, prefix, prefix, prefix, prefix, prefix, prefix);
}

static long long rows_of(const char *resource)
{
    return database_number(f.sql,
                           "SELECT (SELECT COUNT(*) FROM resource_lock WHERE resource = '%s') + "
                           "(SELECT COUNT(*) FROM resource_log WHERE resource = '%s') + "
                           "(SELECT COUNT(*) FROM rw_lock WHERE resource = '%s') + "
                           "(SELECT COUNT(*) FROM resource_holder WHERE resource = '%s') + "
                           "(SELECT COUNT(*) FROM resource_holder_log WHERE resource = '%s')",
                           resource, resource, resource, resource, resource);
}

static tl_rw *rw_for(const char *resource)
{
    tl_rw_options options = {.version = TL_RW_OPTIONS_VERSION, .max_hold_ms = 60000};
    tl_rw *rw = NULL;

    assert_status(tl_rw_new(&rw, f.client, resource, &options), TL_OK);
    assert_status(tl_rw_write(rw, 0), TL_GRANTED);
    return rw;
}

TEST(test_purge_leaves_who_is_held)
{
    tl_mutex_options options = lease_options(0), kept = lease_options(0);
    tl_mutex *held = locked(f.client, "p-held", &options),
             *dead = locked(f.client, "p-dead", &options), *again;
    tl_rw *writer = rw_for("p-writer"), *idle = rw_for("p-idle"), *young = rw_for("p-young");
    uint64_t fence = tl_rw_fence(idle), mutex_fence;
    MYSQL *other = database_connect(f.db);

    assert_status(try_once(f.client, "p-idle"), TL_GRANTED);
    assert_status(try_once(f.client, "p-busy"), TL_GRANTED);
    assert_status(try_once(f.client, "p-young"), TL_GRANTED);
    kept.min_hold_ms = 3600000;
    tl_mutex_free(locked(f.client, "p-kept", &kept));
    assert_status(tl_rw_unlock(idle), TL_OK);
    assert_status(tl_rw_unlock(young), TL_OK);
    make_old("p");
    mutex_fence = (uint64_t)database_number(
        f.sql, "SELECT MAX(fence) FROM resource_log WHERE resource = 'p-idle'");
    database_run(other, "SET SESSION idle_transaction_timeout = 60; START TRANSACTION; "
                        "SELECT 1 FROM resource_lock WHERE resource = 'p-busy' "
                        "FOR UPDATE");
    /* p-idle twice, a mutex and a read-write lock, and p-dead. */
    expect_purged(3);
    assert_int_equal(rows_of("p-idle") + rows_of("p-dead"), 0);
    assert_true(rows_of("p-held") > 0 && rows_of("p-writer") > 0 && rows_of("p-kept") > 0 &&
                rows_of("p-young") > 0 && rows_of("p-busy") > 0);
    database_run(other, "ROLLBACK");
    mysql_close(other);
    expect_purged(1);
    /* Who held it goes on; who was purged has lost it; a name that comes back begins above all that
     * it had. */
    assert_status(tl_mutex_unlock(held), TL_OK);
    assert_status(tl_mutex_unlock(dead), TL_LOST);
    assert_status(tl_rw_unlock(writer), TL_OK);
    again = locked(f.client, "p-idle", &options);
    assert_true(tl_mutex_fence(again, NULL) > mutex_fence);
    assert_status(tl_rw_write(idle, 0), TL_GRANTED);
    assert_true(tl_rw_fence(idle) > fence);
    tl_mutex_free(again);
    tl_mutex_free(held);
    tl_mutex_free(dead);
    tl_rw_free(idle);
    tl_rw_free(writer);
    tl_rw_free(young);
}

/* More than a page, and the procedures themselves refuse what no setting may allow. */
TEST(test_purge_by_pages)
{
    database_run(f.sql,
                 "INSERT INTO resource_lock (resource, status, step, thread_no, token, fence, "
                 "rev, "
                 "locked_at, created_at, updated_at) SELECT CONCAT('q/', seq), 'U', 'unlock', "
                 "UUID(), UNHEX(MD5(seq)), 1, 1, NOW(6), NOW(6), NOW(6) - INTERVAL 1 YEAR FROM "
                 "seq_1_to_500;"
                 "INSERT INTO rw_lock (resource, created_at) SELECT CONCAT('q/', seq), "
                 "NOW(6) - INTERVAL 1 YEAR FROM seq_1_to_500");
    expect_purged(1000);
    assert_int_not_equal(mysql_query(f.sql, "CALL tl_purge_mutexes(0, 1000, 10, '', @purged)"), 0);
    assert_non_null(strstr(mysql_error(f.sql), "nothing younger than the retention"));
    assert_int_not_equal(mysql_query(f.sql, "CALL tl_purge_rw_locks(0, 1000, 10, '', @purged)"), 0);
    assert_non_null(strstr(mysql_error(f.sql), "nothing younger than the retention"));
}

TEST(test_json)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex;
    tl_rw_options rw_options = {.version = TL_RW_OPTIONS_VERSION, .max_hold_ms = 60000};
    tl_rw *rw = NULL;
    json_t *set = json_object(), *document;
    char fence[32];
    output *o;

    options.payload = "\0\1";
    options.payload_size = 2;
    mutex = locked(f.client, "json-hex", &options);
    assert_status(tl_rw_new(&rw, f.client, "json-rw", &rw_options), TL_OK);
    assert_status(tl_rw_read(rw, 0), TL_GRANTED);
    snprintf(fence, sizeof fence, "%llu", (unsigned long long)tl_mutex_fence(mutex, NULL));
    o = RUN("resource", "ls", "--json", "--config", config);
    fields_add(set, document = output_json(o));
    json_decref(document);
    output_free(o);
    o = RUN("resource", "show", "nightly/interest", "--json", "--config", config);
    fields_add(set, document = output_json(o));
    json_decref(document);
    output_free(o);
    o = RUN("resource", "unlock", "json-hex", "--fence", fence, "--reason", "test", "--json",
            "--config", config);
    fields_add(set, document = output_json(o));
    json_decref(document);
    output_free(o);
    fields_expect(set, "resource");
    json_decref(set);
    tl_rw_free(rw);
    tl_mutex_free(mutex);
}

TEST(test_bad_input)
{
    static const struct {
        const char *arguments[6], *words;
    } cases[] = {
        {{"resource"}, "ls, show or unlock"},
        {{"resource", "drop"}, "ls, show or unlock"},
        {{"resource", "show"}, "one name"},
        {{"resource", "unlock", "x"}, "--fence is missing"},
        {{"resource", "unlock", "x", "--fence", "1"}, "--reason is missing"},
        {{"resource", "ls", "--limit", "0"}, "--limit"},
        {{"resource", "unlock", "x", "--slot", "0"}, "--slot"},
        {{"run", "--", "true"}, "--lock is missing"},
        {{"run", "--lock", "x"}, "the command is missing"},
        {{"run", "--lock", "x", "true"}, "stands after --"},
        {{"run", "--lock", "x", "--wait", "soon"}, "duration"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        EXPECT_USAGE(command_run(NULL, cases[i].arguments), cases[i].words);
    }
    {
        EXPECT_USAGE(RUN("run", "--lock", "two words", "--config", config, "--", "true"),
                     "resource");
    }
    {
        EXPECT_REFUSED(RUN("resource", "show", "never", "--config", config), 1, "never");
    }
}

/* ------------------------------------------------------------------------- run -- */

static void run_and_expect(const char *shell, int code)
{
    ENDS(RUN("run", "--lock", "job", "--config", config, "--", "sh", "-c", shell), code);
}

TEST(test_exit_code_of_the_command)
{
    output *o;

    run_and_expect("exit 0", 0);
    run_and_expect("exit 7", 7);
    run_and_expect("kill -9 $$", 128 + SIGKILL);
    o = RUN("run", "--lock", "job", "--config", config, "--", "echo", "--wait", "out");
    EXPECT_CODE(o, 0);
    assert_string_equal(o->out, "--wait out\n");
    assert_string_equal(o->err, "");
    output_free(o);
    ENDS(RUN("run", "--lock", "job", "--config", config, "--", "/no/such/command"), 127);
    ENDS(RUN("run", "--lock", "job", "--config", config, "--", "/etc"), 126);
    assert_int_equal(database_number(f.sql,
                                     "SELECT COUNT(*) FROM resource_lock WHERE resource='job' "
                                     "AND status='U'"),
                     1);
}

TEST(test_the_lock_was_not_got)
{
    output *o;
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = locked(f.client, "taken", &options);
    int64_t begun_ms = crew_now_ms();
    EXPECT_REFUSED(RUN("run", "--lock", "taken", "--config", config, "--", "echo", "ran"), 75,
                   "taken is locked by test");
    EXPECT_REFUSED(
        RUN("run", "--lock", "taken", "--wait", "400ms", "--config", config, "--", "echo", "ran"),
        75, "taken");
    assert_true(crew_now_ms() - begun_ms >= 400);
    tl_mutex_free(mutex);
    o = RUN("run", "--lock", "taken", "--config", "/no/such.cnf", "--", "echo", "ran");
    EXPECT_CODE(o, 2);
    assert_string_equal(o->out, "");
    output_free(o);
}

TEST(test_minimum_hold)
{
    ENDS(RUN("run", "--lock", "cron", "--min-hold", "1m", "--config", config, "--", "true"), 0);
    EXPECT_REFUSED(
        RUN("run", "--lock", "cron", "--min-hold", "1m", "--config", config, "--", "echo", "ran"),
        75, "minimum hold");
}

/* Starts it in the background, with stdin from nowhere. */
static pid_t start(const char *const arguments[])
{
    const char *all[24] = {program};
    size_t count = 1;
    pid_t pid;

    for (; arguments[count - 1] != NULL; count++)
        all[count] = arguments[count - 1];
    pid = fork();
    if (pid == 0) {
        int nothing = open("/dev/null", O_RDWR);

        dup2(nothing, STDIN_FILENO);
        dup2(nothing, STDERR_FILENO);
        execv(program, (char *const *)(uintptr_t)all);
        _exit(99);
    }
    return pid;
}

static int end_of(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static uint64_t wait_until_locked(const char *resource)
{
    for (int i = 0; i < PATIENCE_MS / 20; i++) {
        long long fence = database_number(
            f.sql, "SELECT fence FROM resource_lock WHERE resource='%s' AND status='L'", resource);

        if (fence != 0)
            return (uint64_t)fence;
        crew_sleep_ms(20);
    }
    fail_msg("%s is not locked", resource);
    return 0;
}

/* A file that a command makes when it is so far, or that lets it go on. */
static const char *mark(void)
{
    static char path[640];

    snprintf(path, sizeof path, "%s.mark", config);
    return path;
}

static void wait_for_mark(void)
{
    AWAIT_WHILE(access(mark(), F_OK) != 0);
    assert_int_equal(unlink(mark()), 0);
}

TEST(test_a_lost_lock_ends_the_command)
{
    static const char *const shells[] = {": >\"$0\"; sleep 30",
                                         "trap '' TERM; : >\"$0\"; sleep 30 & wait; sleep 30"};

    for (int i = 0; i < 2; i++) {
        const char *const arguments[] = {"run",      "--lock", "lost", "--kill-after", "500ms",
                                         "--config", config,   "--",   "sh",           "-c",
                                         shells[i],  mark(),   NULL};
        int64_t begun_ms;
        pid_t pid = start(arguments);
        uint64_t fence = wait_until_locked("lost");

        wait_for_mark();
        begun_ms = crew_now_ms();
        assert_status(tl_resource_unlock(f.client, "lost", fence, "ann", "test"), TL_OK);
        assert_int_equal(end_of(pid), 76);
        assert_in_range(crew_now_ms() - begun_ms, 0, 20000);
    }
}

TEST(test_signals_are_passed_on)
{
    const char *const arguments[] = {
        "run",      "--lock", "signals",
        "--config", config,   "--",
        "sh",       "-c",     "trap 'exit 43' TERM; : >\"$0\"; while :; do sleep 0.05; done",
        mark(),     NULL};
    pid_t pid = start(arguments);

    wait_for_mark();
    kill(pid, SIGTERM);
    assert_int_equal(end_of(pid), 43);
    assert_status(try_once(f.client, "signals"), TL_GRANTED);
}

TEST(test_a_signal_while_waiting)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = locked(f.client, "waiting", &options);
    const char *const arguments[] = {"run",      "--lock", "waiting", "--wait", "1m",
                                     "--config", config,   "--",      "true",   NULL};
    pid_t pid = start(arguments);
    int64_t begun_ms;

    /* Who has a session asks next. */
    while (database_number(f.sql, "SELECT COUNT(*) FROM tl_session WHERE pid = %ld", (long)pid) ==
           0)
        crew_sleep_ms(20);
    crew_sleep_ms(300);
    begun_ms = crew_now_ms();
    kill(pid, SIGINT);
    assert_int_equal(end_of(pid), 128 + SIGINT);
    assert_in_range(crew_now_ms() - begun_ms, 0, 30000);
    tl_mutex_free(mutex);
}

/* The processes of a job say their numbers here, one a line. */
static void wait_for_numbers(pid_t *pids, int count)
{
    int got = 0;

    for (int i = 0; i < PATIENCE_MS / 20 && got < count; i++) {
        FILE *file = fopen(mark(), "re");

        for (got = 0; file != NULL && got < count && fscanf(file, "%d", &pids[got]) == 1;)
            got++;
        if (file != NULL)
            fclose(file);
        crew_sleep_ms(20);
    }
    assert_int_equal(got, count);
    assert_int_equal(unlink(mark()), 0);
}

#define JOB                                                                                        \
    "trap '' TERM; (echo $BASHPID >>\"$0\"; exec sleep 1000) & "                                   \
    "setsid sh -c 'echo $$ >>\"$0\"; sleep 1000' \"$0\" & echo $$ >>\"$0\"; "

#define NEXT ": >\"$0\""

static pid_t run_under_lease(const char *lease)
{
    const char *const arguments[] = {"run",
                                     "--lock",
                                     "lease",
                                     "--lease",
                                     lease,
                                     "--config",
                                     config,
                                     "--",
                                     "sh",
                                     "-c",
                                     "while [ -e \"$0\" ]; do sleep 0.05; done",
                                     mark(),
                                     NULL};
    FILE *file = fopen(mark(), "we");

    assert_non_null(file);
    fclose(file);
    return start(arguments);
}

static long long renewals(void)
{
    return database_number(f.sql, "SELECT COUNT(*) FROM resource_log WHERE "
                                  "resource='lease' AND step='renew'");
}

/* A lease of its own is renewed for as long as the command runs. */
TEST(test_lease)
{
    pid_t pid = run_under_lease("6s");
    tl_status status;

    wait_until_locked("lease");
    /* A third of the lease lies between them. */
    while (renewals() < 3 && waitpid(pid, NULL, WNOHANG) == 0)
        crew_sleep_ms(20);
    assert_status(try_once(f.client, "lease"), TL_BUSY);
    assert_int_equal(unlink(mark()), 0);
    assert_int_equal(end_of(pid), 0);
    /* Killed itself, it leaves no command behind, and the lease frees the lock. */
    pid = run_under_lease("2s");
    wait_until_locked("lease");
    kill(pid, SIGKILL);
    assert_int_equal(end_of(pid), 1000 + SIGKILL);
    while ((status = try_once(f.client, "lease")) == TL_BUSY)
        crew_sleep_ms(20);
    assert_status(status, TL_GRANTED);
    assert_int_equal(unlink(mark()), 0);
}

/* None of the job outlives the lock: a child that deafened itself, and one of another session. */
TEST(test_a_killed_run_ends_all)
{
    static const char *const kinds[] = {JOB "wait", JOB "exit 0"};

    for (int i = 0; i < 2; i++) {
        const char *const arguments[] = {"run",      "--lock", "killed", "--lease", "4s",
                                         "--config", config,   "--",     "bash",    "-c",
                                         kinds[i],   mark(),   NULL};
        pid_t pid = start(arguments), pids[3];
        tl_status status;

        wait_for_numbers(pids, 3);
        kill(pid, SIGKILL);
        assert_int_equal(end_of(pid), 1000 + SIGKILL);
        while ((status = try_once(f.client, "killed")) == TL_BUSY)
            crew_sleep_ms(20);
        assert_status(status, TL_GRANTED);
        for (int j = 0; j < 3; j++)
            if (kill(pids[j], 0) == 0)
                fail_msg("process %d of job %d works on without the lock", j, i);
    }
}

/* A run that is stopped renews nothing: its job is over before the next one has the lock. */
TEST(test_a_stopped_run_ends_its_job)
{
    const char *const arguments[] = {"run",      "--lock", "stopped", "--lease", "6s",
                                     "--config", config,   "--",      "bash",    "-c",
                                     JOB "wait", mark(),   NULL};
    const char *const next[] = {"run", "--lock", "stopped", "--wait", "1m",   "--config", config,
                                "--",  "sh",     "-c",      NEXT,     mark(), NULL};
    pid_t pid = start(arguments), pids[3], other;

    wait_for_numbers(pids, 3);
    kill(pid, SIGSTOP);
    other = start(next);
    wait_for_mark();
    for (int j = 0; j < 3; j++)
        if (kill(pids[j], 0) == 0)
            print_error("process %d works on, and another one has its lock\n", j);
    for (int j = 0; j < 3; j++)
        assert_int_not_equal(kill(pids[j], 0), 0);
    assert_int_equal(end_of(other), 0);
    kill(pid, SIGCONT);
    assert_int_equal(end_of(pid), 76);
}

/* The process between the two is killed: the one with the lock ends the job. */
TEST(test_a_killed_keeper_leaves_nobody)
{
    const char *const arguments[] = {"run",      "--lock", "kept", "--kill-after", "500ms",
                                     "--config", config,   "--",   "bash",         "-c",
                                     JOB "wait", mark(),   NULL};
    pid_t pid = start(arguments), pids[3], keeper = 0;
    char path[64];
    FILE *file;

    wait_for_numbers(pids, 3);
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &keeper), 1);
    fclose(file);
    kill(keeper, SIGKILL);
    assert_int_equal(end_of(pid), 128 + SIGKILL);
    for (int j = 0; j < 3; j++)
        assert_int_not_equal(kill(pids[j], 0), 0);
    assert_status(try_once(f.client, "kept"), TL_GRANTED);
}

/* As flock(1) does: what the command leaves behind is part of the job. */
TEST(test_the_lock_is_held_for_all)
{
    const char *const arguments[] = {
        "run",
        "--lock",
        "left",
        "--config",
        config,
        "--",
        "sh",
        "-c",
        "echo $$ >>\"$0\"; (while [ ! -e \"$0.go\" ]; do sleep 0.05; done) & exit 7",
        mark(),
        NULL};
    pid_t pid = start(arguments), command;
    char go[700];
    FILE *file;

    wait_for_numbers(&command, 1);
    while (kill(command, 0) == 0)
        crew_sleep_ms(20);
    crew_sleep_ms(300); /* in which it would end */
    assert_status(try_once(f.client, "left"), TL_BUSY);
    snprintf(go, sizeof go, "%s.go", mark());
    file = fopen(go, "we");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(end_of(pid), 7);
    assert_status(try_once(f.client, "left"), TL_GRANTED);
    assert_int_equal(unlink(go), 0);
}

/* A job waits for the operator as well. */
TEST(test_run_after_a_restore)
{
    output *o;

    assert_status(tl_restore_declare(f.other, "ann", "backup of monday"), TL_OK);
    o = RUN("run", "--lock", "restored", "--config", config, "--", "echo", "ran");
    EXPECT_CODE(o, 1);
    assert_non_null(strstr(o->err, "restore accept"));
    assert_string_equal(o->out, "");
    output_free(o);
    database_propose(f.sql);
    assert_status(tl_restore_accept(f.other, "ann", "compared", NULL), TL_OK);
    run_and_expect("exit 0", 0);
}

TESTS_OF(resource, setup, teardown)

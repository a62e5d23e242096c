/*
 * The sample's service and worker, and a plug-in, as real processes over two shards: killed at
 * random, a shard killed with them; then the books.  And settings that they refuse.
 */
#include "bank.h"

#include "support/crew.h"
#include "support/theme.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define CUSTOMERS 8
#define BALANCE 100000000
#define ROWS 240
#define WORDS_MOST 24

static bank town;
static char said[640];   /* a file: what the last program printed */
static char sample[640]; /* a file: the plug-in of the sample */
static char out[640];    /* a file: what became of each line */

FIXTURE(set_up)
{
    char cust[TL_CUST_MAX + 1];

    bank_open(&town, 2);
    snprintf(said, sizeof said, "%s/said", town.sim.directory);
    snprintf(out, sizeof out, "%s/out", town.sim.directory);
    snprintf(sample, sizeof sample, "%s/lib/withdraw.so", test_build_dir());
    for (size_t i = 0; i < 2; i++)
        for (unsigned n = 0; n < CUSTOMERS; n++)
            shards_account(&town.shards, i, shards_cust(&town.shards, i, n, cust), BALANCE);
}

FIXTURE(tear_down)
{
    unlink(said);
    unlink(out);
    bank_close(&town);
}

/* Its output goes to the end of `said`. */
static pid_t start(const char *program, const char *const words[])
{
    const char *all[WORDS_MOST] = {program, "--config", town.shards.file};
    char path[640];
    size_t count = 3;
    pid_t child;

    sim_name_in(&town.sim, town.shards.file, "channel=idempotent\n");
    snprintf(path, sizeof path, "%s/bin/%s", test_build_dir(), program);
    for (; *words != NULL && count + 1 < WORDS_MOST; words++)
        all[count++] = *words;
    child = fork();
    if (child == 0) {
        const int fd = open(said, O_WRONLY | O_CREAT | O_APPEND, 0600);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
        execv(path, (char *const *)(uintptr_t)all);
        _exit(127);
    }
    assert_true(child > 0);
    return child;
}

static int await_end(pid_t child)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    int status;

    for (;;) {
        const pid_t ended = waitpid(child, &status, WNOHANG);

        if (ended == child)
            return status;
        if (crew_now_ms() > end_ms) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            fail_msg("it does not end: %s", file_read(said));
        }
        crew_sleep_ms(10);
    }
}

static void await_said(const char *words)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;

    for (;;) {
        char *text = access(said, R_OK) == 0 ? file_read(said) : NULL;
        const int found = text != NULL && strstr(text, words) != NULL;

        if (!found && crew_now_ms() > end_ms)
            fail_msg("no '%s' in '%s'", words, text);
        free(text);
        if (found)
            return;
        crew_sleep_ms(20);
    }
}

static void kill_it(pid_t child)
{
    int status;

    kill(child, SIGKILL);
    waitpid(child, &status, 0);
}

static void stop_it(pid_t child)
{
    int status;

    kill(child, SIGTERM);
    status = await_end(child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("ended with %x: %s", (unsigned)status, file_read(said));
}

static char *write_rows(const char *name, unsigned count)
{
    char *path = malloc(128), cust[TL_CUST_MAX + 1];
    FILE *file;

    snprintf(path, 128, "%s/%s.csv", town.sim.directory, name);
    file = fopen(path, "we");
    assert_non_null(file);
    fputs("serial_no,cust_no,op,amount_minor,currency,payee\n", file);
    for (unsigned i = 0; i < count; i++)
        fprintf(file, "%s-%u,%s,WITHDRAW,%u,EUR,Anna\n", name, i,
                shards_cust(&town.shards, i % 2, i / 2 % CUSTOMERS, cust), 10 + i);
    assert_int_equal(fclose(file), 0);
    return path;
}

static long long paid_at(size_t i)
{
    return database_number(town.shards.sql[i], "SELECT COUNT(*) FROM ledger");
}

static void await_paid(size_t i, long long most)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;

    while (paid_at(i) < most) {
        if (crew_now_ms() > end_ms)
            fail_msg("%lld paid at shard %zu, %lld wanted: %s", paid_at(i), i, most,
                     file_read(said));
        crew_sleep_ms(10);
    }
}

static void await_over(void)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;

    while (bank_open_trades(&town) > 0) {
        if (crew_now_ms() > end_ms)
            fail_msg("%lld trades are open: %s", bank_open_trades(&town), file_read(said));
        crew_sleep_ms(50);
    }
}

static pid_t start_service(const char *rows)
{
    const char *const words[] = {"--threads", "6", "--patience-ms", "60000", rows, NULL};

    return start("tradelock-withdraw", words);
}

static pid_t start_worker(const char *shard)
{
    const char *const words[] = {
        "--plugin", sample, "--threads", "4", "--idle-ms", "50", shard != NULL ? "--shard" : NULL,
        shard,      NULL};

    return start("tradelock-worker", words);
}

TEST(test_service_and_worker_that_are_killed)
{
    char *rows = write_rows("kill", ROWS);
    pid_t service, worker;
    int status;
    long long before;

    bank_rule(&town, "{\"kind\":\"slow\",\"count\":200}");
    bank_rule(&town, "{\"kind\":\"drop_after\",\"endpoint\":\"pay\",\"count\":12}");
    worker = start_worker(NULL);
    await_said("ready");
    for (unsigned deaths = 0; deaths < 3; deaths++) {
        before = paid_at(0) + paid_at(1);
        service = start_service(rows);
        await_paid(deaths % 2, paid_at(deaths % 2) + 4);
        kill_it(service);
        assert_true(paid_at(0) + paid_at(1) > before);
    }
    kill_it(worker);
    worker = start_worker(NULL);
    /* With a shard that dies under it, while the other one's customers are paid. */
    service = start_service(rows);
    shards_kill(&town.shards, 1);
    await_paid(0, ROWS / 2);
    shards_restart(&town.shards, 1);
    await_paid(1, ROWS / 2);
    status = await_end(service);
    assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 6));
    await_over();
    /* The same lines once more. */
    service = start_service(rows);
    status = await_end(service);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    stop_it(worker);
    bank_books(&town, ROWS);
    unlink(rows);
    free(rows);
}

/* ------------------------------------------------------------- a slot that is handed over -- */

#define MOVED 40  /* lines of customers that move, at the head of the file */
#define STAYED 40 /* of others, at its end */

typedef struct handing {
    const char *rows;
    pid_t service;
    long long begun; /* paid at b before */
} handing;

/* The file of MOVED lines of one customer, and after them of others of shard b. */
static char *write_moving(const char *name, const char *cust, unsigned others)
{
    char *path = malloc(128), other[TL_CUST_MAX + 1];
    FILE *file;

    snprintf(path, 128, "%s/%s.csv", town.sim.directory, name);
    file = fopen(path, "we");
    assert_non_null(file);
    fputs("serial_no,cust_no,op,amount_minor,currency,payee\n", file);
    for (unsigned i = 0; i < MOVED + others; i++)
        fprintf(file, "%s-%u,%s,WITHDRAW,%u,EUR,Anna\n", name, i,
                i < MOVED ? cust : shards_cust(&town.shards, 1, i % CUSTOMERS, other), 10 + i);
    assert_int_equal(fclose(file), 0);
    return path;
}

static pid_t start_service_for(const char *rows, const char *patience_ms)
{
    const char *const words[] = {
        "--threads", "6", "--patience-ms", patience_ms, "--final-wait-ms", "60000", "--out", out,
        rows,        NULL};

    return start("tradelock-withdraw", words);
}

/* Nobody owns the slot until the lines behind those of its customer are paid: each thread of the
 * service was told so by then, at either end. */
static int serve_when_gone(void *context, const char *step, const tl_slot_moved *moved)
{
    handing *self = context;

    (void)moved;
    if (strcmp(step, "gone") == 0) {
        self->service = start_service_for(self->rows, "100000");
        await_paid(1, self->begun + STAYED);
    }
    return 0;
}

static void expect_said(const char *words)
{
    char *text = file_read(said);

    if (strstr(text, words) == NULL)
        fail_msg("no '%s' in '%s'", words, text);
    free(text);
}

static long long owned_by(size_t i, unsigned slot)
{
    return database_number(town.shards.sql[i],
                           "SELECT COUNT(*) FROM tl_slot WHERE slot = %u AND state = 'owned'",
                           slot);
}

/* The line of a customer whom nobody owns for a moment is asked for again, and paid. */
TEST(test_a_customer_who_is_handed_over)
{
    char cust[TL_CUST_MAX + 1];
    handing self = {0};
    char *rows;
    unsigned slot;
    int status;

    shards_cust(&town.shards, 0, 0, cust);
    slot = (unsigned)database_number(town.shards.sql[0], "SELECT tl_customer_slot('%s')", cust);
    self.rows = rows = write_moving("hand", cust, STAYED);
    self.begun = paid_at(1);
    unlink(said);
    assert_int_equal(shards_move(&town.shards, 0, 1, slot, serve_when_gone, &self), TL_OK);
    status = await_end(self.service);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("ended with %x: %s", (unsigned)status, file_read(said));
    expect_said("lines 80 = new 80 + repeated 0 + mismatch 0 + refused 0 + bad 0 + error 0");
    assert_int_equal(owned_by(1, slot), 1);
    assert_int_equal(shards_move(&town.shards, 1, 0, slot, NULL, NULL), TL_OK);
    shards_clean(&town.shards);
    bank_books(&town, sim_stat(&town.sim, "payments"));
    unlink(rows);
    free(rows);
}

/* A mover that was killed between the two: after its patience the service says to try again. */
static int stop_when_gone(void *context, const char *step, const tl_slot_moved *moved)
{
    (void)context;
    (void)moved;
    return strcmp(step, "gone") == 0;
}

TEST(test_a_customer_whom_nobody_owns)
{
    char cust[TL_CUST_MAX + 1], *rows, *answers;
    const char *words[] = {"--threads", "1", "--patience-ms", "500", "--out", out, "", NULL};
    unsigned slot;
    int status;

    shards_cust(&town.shards, 0, 0, cust);
    slot = (unsigned)database_number(town.shards.sql[0], "SELECT tl_customer_slot('%s')", cust);
    words[6] = rows = write_moving("nobody", cust, 0);
    unlink(said);
    assert_int_not_equal(shards_move(&town.shards, 0, 1, slot, stop_when_gone, NULL), TL_OK);
    status = await_end(start("tradelock-withdraw", words));
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) != 70)
        fail_msg("ended with %x: %s", (unsigned)status, file_read(said));
    expect_said("lines 40 = new 0 + repeated 0 + mismatch 0 + refused 0 + bad 0 + error 40");
    answers = file_read(out);
    assert_int_equal(text_count(answers, ",misdirected,,error,try again: "), MOVED);
    free(answers);
    /* The same lines once more, after the same command has ended the move. */
    words[3] = "100000";
    assert_int_equal(shards_move(&town.shards, 0, 1, slot, NULL, NULL), TL_OK);
    status = await_end(start("tradelock-withdraw", words));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    expect_said("lines 40 = new 40 + repeated 0 + mismatch 0 + refused 0 + bad 0 + error 0");
    assert_int_equal(shards_move(&town.shards, 1, 0, slot, NULL, NULL), TL_OK);
    shards_clean(&town.shards);
    bank_books(&town, sim_stat(&town.sim, "payments"));
    unlink(rows);
    free(rows);
}

/* What the service says of one line, after its patience. */
static void expect_answer(const char *rows, const char *words)
{
    const char *const with[] = {"--threads", "1", "--patience-ms", "500", "--out", out, rows, NULL};
    char *answers;

    assert_true(WIFEXITED(await_end(start("tradelock-withdraw", with))));
    answers = file_read(out);
    if (text_count(answers, words) != MOVED)
        fail_msg("not %d of '%s' in '%s'", MOVED, words, answers);
    free(answers);
}

/* What looks like a move and is none is not called one. */
TEST(test_what_is_no_move)
{
    char cust[TL_CUST_MAX + 1], *rows, words[160];
    long long version;
    unsigned slot;

    /* Another slot than those that are moved. */
    shards_cust(&town.shards, 0, 1, cust);
    slot = (unsigned)database_number(town.shards.sql[0], "SELECT tl_customer_slot('%s')", cust);
    rows = write_moving("still", cust, 0);
    version =
        database_number(town.shards.sql[0], "SELECT version FROM tl_slot WHERE slot = %u", slot);
    /* No shard was given that slot. */
    database_run(town.shards.sql[0], "DELETE FROM tl_slot WHERE slot = %u", slot);
    snprintf(words, sizeof words,
             ",misdirected,,error,try again: no shard that the settings name has slot %u alone",
             slot);
    expect_answer(rows, words);
    database_run(town.shards.sql[0],
                 "INSERT INTO tl_slot (slot, state, version) VALUES (%u, 'owned', %lld)", slot,
                 version);
    /* Another attempt's transaction is open. */
    database_run(town.shards.sql[0], "BEGIN");
    database_number(town.shards.sql[0], "SELECT COUNT(*) FROM trade_lock FOR UPDATE");
    expect_answer(rows, ",busy,none,repeated,");
    database_run(town.shards.sql[0], "ROLLBACK");
    unlink(rows);
    free(rows);
}

/* Each line of the output is of a payment, or of one that failed, which the channel never heard of:
 * on a loaded machine the time of an attempt may be over before it sends. */
static void expect_paid(int may_fail)
{
    char *text = file_read(out), *rest = NULL;

    assert_non_null(text);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        const int failed = strstr(line, ",failed,") != NULL;

        if (failed)
            print_message("%s\n", line);
        if (strstr(line, ",succeeded,") == NULL && strncmp(line, "serial_no,", 10) != 0 &&
            !(failed && may_fail))
            fail_msg("not paid: %s", line);
    }
    free(text);
}

/* Back and forth under load. */
TEST(test_a_slot_that_moves_under_load)
{
    char cust[TL_CUST_MAX + 1], *rows = write_rows("load", ROWS);
    const long long before = sim_stat(&town.sim, "payments");
    const long long begun = paid_at(0) + paid_at(1);
    pid_t service, worker;
    unsigned slot;
    int status;

    shards_cust(&town.shards, 0, 0, cust);
    slot = (unsigned)database_number(town.shards.sql[0], "SELECT tl_customer_slot('%s')", cust);
    unlink(said);
    bank_rule(&town, "{\"kind\":\"slow\",\"count\":200}");
    bank_rule(&town, "{\"kind\":\"drop_after\",\"endpoint\":\"pay\",\"count\":12}");
    worker = start_worker(NULL);
    service = start_service_for(rows, "100000");
    while (paid_at(0) + paid_at(1) < begun + 8)
        crew_sleep_ms(10);
    for (size_t from = 0, moves = 0; moves < 4; moves++, from = 1 - from)
        assert_int_equal(shards_move(&town.shards, from, 1 - from, slot, NULL, NULL), TL_OK);
    status = await_end(service);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("ended with %x: %s", (unsigned)status, file_read(said));
    await_over();
    expect_said("mismatch 0 + refused 0 + bad 0 + error 0");
    expect_paid(1);
    /* The same lines once more. */
    unlink(said);
    status = await_end(start_service_for(rows, "100000"));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    await_over();
    stop_it(worker);
    expect_paid(0);
    shards_clean(&town.shards);
    assert_int_equal(sim_stat(&town.sim, "payments"), before + ROWS);
    bank_books(&town, before + ROWS);
    unlink(rows);
    free(rows);
}

/* Leaves trades in doubt at both shards, with a channel that hides its answers. */
static void leave_in_doubt(const char *name, unsigned count)
{
    char *rows = write_rows(name, count), rule[128];
    int status;

    snprintf(rule, sizeof rule, "{\"kind\":\"drop_after\",\"endpoint\":\"pay\",\"count\":%u}",
             count);
    bank_rule(&town, rule);
    status = await_end(start_service(rows));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 6);
    assert_int_equal(bank_open_trades(&town), count);
    unlink(rows);
    free(rows);
}

/* Until so many trades are due at each shard. */
static void await_due(int64_t count)
{
    for (size_t i = 0; i < 2; i++)
        while (
            database_number(town.shards.sql[i],
                            "SELECT COUNT(*) FROM trade_lock WHERE lane = 'R' AND next_run_at <= "
                            "UTC_TIMESTAMP(6)") < count)
            crew_sleep_ms(10);
}

TEST(test_a_worker_of_one_shard)
{
    pid_t worker;

    leave_in_doubt("one", 8);
    worker = start_worker("b");
    while (bank_open_trades(&town) > 4)
        crew_sleep_ms(20);
    crew_sleep_ms(500);
    assert_int_equal(bank_open_trades(&town), 4);
    stop_it(worker);
    worker = start_worker("a");
    await_over();
    stop_it(worker);
    bank_books(&town, sim_stat(&town.sim, "payments"));
}

/* A plug-in that knows nothing of fleets. */
TEST(test_a_plug_in)
{
    static const size_t straight[] = {0, 1};
    char plugin[640], tail[256];
    const char *const words[] = {"--plugin", plugin, "--idle-ms", "50", NULL};
    const char *const dry[] = {"--plugin", plugin, "--dry-run", NULL};
    FILE *file;
    pid_t worker;
    int status;

    snprintf(plugin, sizeof plugin, "%s/tests/plugin/handlers.so", test_build_dir());
    leave_in_doubt("plug", 6);
    await_due(3);
    file = fopen(town.shards.file, "ae");
    assert_non_null(file);
    snprintf(tail, sizeof tail, "[service-handlers]\nchannel_url = %s\n", town.url);
    fputs(tail, file);
    assert_int_equal(fclose(file), 0);
    unlink(said);
    status = await_end(start("tradelock-worker", dry));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    await_said("shard a\nWITHDRAW: 3 due");
    await_said("shard b\nWITHDRAW: 3 due");
    worker = start("tradelock-worker", words);
    await_over();
    stop_it(worker);
    shards_write(&town.shards, "a, b", straight, NULL);
    bank_books(&town, sim_stat(&town.sim, "payments"));
}

static void expect_refused(const char *program, const char *const words[], const char *sentence)
{
    const char *const none[] = {"--plugin", sample, NULL};
    int status;

    unlink(said);
    status = await_end(start(program, words != NULL ? words : none));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 2)
        fail_msg("%s ended with %x: %s", program, (unsigned)status, file_read(said));
    await_said(sentence);
    assert_int_equal(text_count(file_read(said), "\n"), 1);
}

TEST(test_what_is_refused)
{
    static const size_t straight[] = {0, 1}, swapped[] = {1, 0};
    const char *const unknown[] = {"--plugin", sample, "--shard", "c", NULL};
    char *rows = write_rows("refused", 2);
    const char *const service[] = {"--metrics", rows, NULL};
    const long long before = paid_at(0) + paid_at(1);

    expect_refused("tradelock-worker", unknown, "there is no shard 'c': fleet payouts has a, b");
    shards_write(&town.shards, "a, b", straight, SHARDS_SETTINGS "metrics_listen=127.0.0.1:0\n");
    expect_refused("tradelock-worker", NULL, "metrics_listen: metrics are served for one shard");
    expect_refused("tradelock-withdraw", service, "--metrics: metrics are served for one");
    shards_write(&town.shards, "a, b", swapped, NULL);
    expect_refused("tradelock-worker", NULL, "the database there is shard");
    expect_refused("tradelock-withdraw", service, "the database there is shard");
    shards_write(&town.shards, "a, b", straight, NULL);
    assert_int_equal(paid_at(0) + paid_at(1), before);
    unlink(rows);
    free(rows);
}

TESTS_OF(programs, set_up, tear_down)

/*
 * Every statement of sql/ on a large table: how the server plans it, and what it really reads
 * when it is run.  A statement without a case here fails the test.
 */
#include "plan_case.h"

#include "support/database.h"
#include "support/theme.h"

#include <time.h>

#define ROWS 100000
#define TURNS 6

struct bench {
    server *own;
    database *where;
    db *connection;
    MYSQL *other;
    unsigned idle_reads; /* what asking for the counters reads itself */
};

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t space = 0;

    if (file == NULL)
        server_panic("%s cannot be read", path);
    if (getdelim(&text, &space, '\0', file) < 0)
        server_panic("%s is empty", path);
    fclose(file);
    return text;
}

static void fill(const database *where)
{
    char path[512];
    MYSQL *connection = database_connect(where);
    struct timespec begin, end;
    char *script;

    snprintf(path, sizeof path, "%s/tests/sql/plan_data.sql", test_source_dir());
    script = read_text(path);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    database_run(connection, "SET @rows = %d", ROWS);
    database_run(connection, "%s", script);
    clock_gettime(CLOCK_MONOTONIC, &end);
    print_message("%lld lock rows, %lld of log, in %ld s\n",
                  database_number(connection, "SELECT COUNT(*) FROM trade_lock"),
                  database_number(connection, "SELECT COUNT(*) FROM trade_lock_log"),
                  (long)(end.tv_sec - begin.tv_sec));
    free(script);
    mysql_close(connection);
}

/* How many partitions the tables get whose unique keys all have the customer; 0: none. */
static int partitions(void)
{
    const char *text = getenv("TL_PARTITIONS");

    return text != NULL ? atoi(text) : 0;
}

static void divide(const database *where)
{
    static const char *const tables[] = {"trade_lock", "trade_lock_past", "trade_resolution"};
    MYSQL *connection = database_connect(where);

    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        database_run(connection, "ALTER TABLE %s PARTITION BY KEY (cust_no) PARTITIONS %d",
                     tables[i], partitions());
    database_run(connection, "ANALYZE TABLE trade_lock, trade_lock_past, trade_resolution");
    /* Its primary key has no customer. */
    if (mysql_query(connection, "ALTER TABLE trade_evidence PARTITION BY KEY (cust_no)") == 0 ||
        mysql_errno(connection) != 1503)
        server_panic("evidence was divided: %s", mysql_error(connection));
    mysql_close(connection);
}

static db_answer run_plain(struct bench *bench, const char *sql, db_result *result)
{
    return db_run_text(bench->connection, "test", sql, strlen(sql), result);
}

/* The server's own count of what this connection read since FLUSH STATUS. */
static unsigned handler_reads(struct bench *bench)
{
    db_result result = DB_RESULT_INIT;
    uint64_t sum = 0;

    if (run_plain(bench, "SHOW SESSION STATUS LIKE 'Handler_read%'", &result) != DB_DONE)
        server_panic("no counters: %s", db_error(bench->connection));
    for (size_t row = 0; row < result.rows; row++)
        sum += db_get_uint(&result, row, 1);
    db_result_free(&result);
    return (unsigned)sum;
}

static db *open_connection(const database *where)
{
    db_options options = {.group = "tradelock-client",
                          .option_file = database_option_file(where),
                          .idle_transaction_s = 600,
                          .connect_timeout_s = 10,
                          .read_timeout_s = 120};
    db *connection;

    if (db_open(&connection, &options) != TL_OK)
        server_panic("%s", tl_error_message());
    return connection;
}

FIXTURE(set_up)
{
    static struct bench bench;

    /* The statistics of ANALYZE are the last ones.  Switched off later, the server would still come
     * to tables that it took note of before, ten seconds after the last time. */
    bench.own = server_start((const char *const[]){"--innodb-stats-auto-recalc=OFF", NULL});
    bench.where = database_new(bench.own, NULL);
    fill(bench.where);
    if (partitions() > 0)
        divide(bench.where);
    bench.other = database_connect(bench.where);
    bench.connection = open_connection(bench.where);
    /* Purges belong to an act that is under way. */
    if (run_plain(&bench, "CALL tl_act_begin('purge', '', '', 'job', NULL, 0, @tl_act)", NULL) !=
            DB_DONE ||
        run_plain(&bench, "FLUSH STATUS", NULL) != DB_DONE)
        server_panic("%s", db_error(bench.connection));
    bench.idle_reads = handler_reads(&bench);
    *state = &bench;
}

FIXTURE(tear_down)
{
    struct bench *bench = *state;

    db_close(bench->connection);
    mysql_close(bench->other);
    database_free(bench->where);
}

/* ------------------------------------------------------------------- plans -- */

enum {
    EXPLAIN_ID,
    EXPLAIN_SELECT,
    EXPLAIN_TABLE,
    EXPLAIN_TYPE,
    EXPLAIN_POSSIBLE,
    EXPLAIN_KEY,
    EXPLAIN_KEY_LEN,
    EXPLAIN_REF,
    EXPLAIN_ROWS,
    EXPLAIN_EXTRA
};

/* ALL reads a whole table, index a whole index. */
static int is_full(const db_result *plan, size_t row)
{
    const char *type = db_get_text(plan, row, EXPLAIN_TYPE);
    const char *table = db_get_text(plan, row, EXPLAIN_TABLE);

    if (strcmp(db_get_text(plan, row, EXPLAIN_SELECT), "INSERT") == 0 || table[0] == '<' ||
        strcmp(table, "tl_schema") == 0)
        return 0;
    /* A list of keys that is a parameter: no table of ours. */
    if (strstr(db_get_text(plan, row, EXPLAIN_EXTRA), "Table function: json_table") != NULL)
        return 0;
    return strcmp(type, "ALL") == 0 || strcmp(type, "index") == 0;
}

/* EXPLAIN and the statement, with its values written into it. */
static char *explain_text(const plan_case *c)
{
    size_t space = strlen(c->statement->text) + 16;
    db_value room[STEP_FIELDS];
    step_uuids uuids;
    const db_value *values = plan_values(c, room, uuids);
    const unsigned char *mark = c->statement->marks;
    unsigned marked = 0;
    char *text, *end;

    for (unsigned i = 0; i < c->statement->mark_count; i++)
        space += db_literal_size(&values[mark[i]]);
    text = malloc(space);
    if (text == NULL)
        server_panic("out of memory");
    end = stpcpy(text, "EXPLAIN ");
    for (const char *from = c->statement->text; *from != '\0'; from++) {
        if (*from != '?')
            *end++ = *from;
        else if (marked < c->statement->mark_count)
            end = db_literal(end, &values[mark[marked++]]);
        else
            server_panic("%s: a question mark is no value", c->statement->name);
    }
    *end = '\0';
    return text;
}

static unsigned judge_plan(struct bench *bench, const plan_case *c)
{
    db_result plan = DB_RESULT_INIT;
    char *text = explain_text(c);
    unsigned bad = 0;

    if (run_plain(bench, text, &plan) != DB_DONE) {
        print_error("%s: EXPLAIN: %s\n", c->statement->name, db_error(bench->connection));
        bad++;
    }
    for (size_t row = 0; row < plan.rows; row++)
        if (is_full(&plan, row) && c->plan != PLAN_WALK) {
            print_error("%s %s: full scan of %s (%s, key %s, %s rows; %s)\n", c->statement->name,
                        c->what, db_get_text(&plan, row, EXPLAIN_TABLE),
                        db_get_text(&plan, row, EXPLAIN_TYPE), db_get_text(&plan, row, EXPLAIN_KEY),
                        db_get_text(&plan, row, EXPLAIN_ROWS),
                        db_get_text(&plan, row, EXPLAIN_EXTRA));
            bad++;
        }
    db_result_free(&plan);
    free(text);
    return bad;
}

/* ------------------------------------------------------------------- reads -- */

static int run_case(struct bench *bench, const plan_case *c, unsigned *rows)
{
    db_result result = DB_RESULT_INIT;
    db_value room[STEP_FIELDS];
    step_uuids uuids;
    db_answer answer = db_run(bench->connection, c->statement, plan_values(c, room, uuids),
                              c->statement->values, &result);

    if (answer != DB_DONE)
        print_error("%s %s: %s\n", c->statement->name, c->what, db_error(bench->connection));
    *rows = (unsigned)(result.columns > 0 ? result.rows : result.affected);
    db_result_free(&result);
    return answer == DB_DONE;
}

/* Somebody else's trades come and end meanwhile, as they do wherever this runs.  An ended trade
 * keeps its holder and its moment. */
static void grow(struct bench *bench)
{
    static unsigned number;

    for (unsigned i = 0; i < 10; i++)
        database_run(bench->other,
                     "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, "
                     "step, thread_no, token, session_id, fence, rev, next_run_at, created_at, "
                     "updated_at) VALUES ('zz', 'grown-%u', 'WITHDRAW', 'S', 'Y', 'ask', UUID(), "
                     "RANDOM_BYTES(16), 'b0000000-0000-4000-8000-000000000001', 1, 1, "
                     "'2020-12-01', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
                     number++);
}

/* Run several times and undone each time.  The first run is not counted, since it also loads
 * definitions and statistics.  All others are, in a table that grows: the server plans a prepared
 * statement anew at each execution, and not always as well. */
static unsigned judge_reads(struct bench *bench, const plan_case *c)
{
    /* And the rule of slots, which a shard has. */
    const unsigned wanted = c->rows == EVERY_PART ? (unsigned)sql_objects_count + 1 : c->rows;
    unsigned rows = 0, reads = 0, bad = 0;

    for (int turn = 0; turn < TURNS; turn++) {
        unsigned now;

        grow(bench);
        /* In this order: FLUSH commits. */
        if (run_plain(bench, "FLUSH STATUS", NULL) != DB_DONE ||
            (!c->statement->block && db_begin(bench->connection) != DB_DONE))
            server_panic("%s", db_error(bench->connection));
        if (!run_case(bench, c, &rows))
            bad = 1;
        now = handler_reads(bench) - bench->idle_reads;
        if (turn > 0 && now > reads)
            reads = now;
        if (db_in_transaction(bench->connection))
            (void)db_rollback(bench->connection);
    }
    if (rows != wanted) {
        print_error("%s %s: %u rows, not %u: the case is not what it means to be\n",
                    c->statement->name, c->what, rows, wanted);
        bad = 1;
    }
    if (reads > c->reads) {
        print_error("%s %s: read %u rows, at most %u allowed, for %u\n", c->statement->name,
                    c->what, reads, c->reads, rows);
        bad = 1;
    }
    return bad;
}

/* What reads more in tables that are divided by customer: lists of all customers and counts, since
 * each partition has an index of its own.  No step of a trade, no claim, nothing of a janitor's but
 * one entry more where it looks for the end of a stretch. */
static int reads_more(const char *name)
{
    static const char *const names[] = {
        "operation_next", "low_water_stretch", "list_serial",    "list_batch",  "list_ref",
        "list_trace",     "list_amount",       "list_made",      "list_parked", "list_recent",
        "list_due",       "list_held",         "list_idle",      "acts",        "report_end",
        "channel_waits",  "metrics_trades",    "report_made_end"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0)
            return 1;
    return 0;
}

/* In divided tables exactly the statements above read more than they may; they still return what
 * they should. */
static unsigned judge_divided(struct bench *bench, size_t first, size_t last)
{
    const char *const name = plan_cases[first].statement->name;
    unsigned bad = 0;

    for (size_t i = first; i <= last; i++)
        bad += judge_reads(bench, &plan_cases[i]);
    if ((bad > 0) == reads_more(name))
        return 0;
    print_error("%s: %s than in one table\n", name, bad > 0 ? "more is read" : "no more is read");
    return 1;
}

TEST(test_every_statement_has_a_case)
{
    unsigned missing = 0;

    for (size_t i = 0; i < sql_texts_count; i++) {
        int found = 0;

        for (size_t j = 0; j < plan_cases_count; j++)
            found |= plan_cases[j].statement == sql_texts[i];
        if (!found) {
            print_error("the statement %s has no case in tests/sql/plan_case.c\n",
                        sql_texts[i]->name);
            missing++;
        }
    }
    assert_int_equal(missing, 0);
}

/* A statement that may not wait for rows, and passes over one, is refused its COMMIT by the server. */
TEST(test_what_passes_over_rows_might_wait)
{
    struct bench *bench = *state;
    char *calls = database_text(
        bench->other,
        "WITH RECURSIVE p AS (SELECT routine_name AS name FROM information_schema.routines"
        " WHERE routine_schema = '%s' AND routine_type = 'PROCEDURE'"
        " AND routine_definition LIKE '%%SKIP LOCKED%%' UNION SELECT r.routine_name"
        " FROM information_schema.routines r JOIN p ON r.routine_definition"
        " LIKE CONCAT('%%CALL ', p.name, '(%%') WHERE r.routine_schema = '%s')"
        " SELECT GROUP_CONCAT('CALL ', name, '(' SEPARATOR '\\n') FROM p",
        database_name(bench->where), database_name(bench->where));
    unsigned found = 0, bad = 0;
    char *rest = NULL;

    for (char *call = strtok_r(calls, "\n", &rest); call; call = strtok_r(NULL, "\n", &rest))
        for (size_t i = 0; i < sql_texts_count; i++) {
            /* For a step that found no row: that one has no slot which it passes over. */
            if (strstr(sql_texts[i]->text, call) == NULL || sql_texts[i] == &sql_slot_asked)
                continue;
            found++;
            if (strstr(sql_texts[i]->text, "SET STATEMENT innodb_lock_wait_timeout") != NULL)
                continue;
            print_error("%s: %s...) might wait for no row\n", sql_texts[i]->name, call);
            bad++;
        }
    free(calls);
    assert_true(found > 5);
    assert_int_equal(bad, 0);
}

TEST(test_plans)
{
    struct bench *bench = *state;
    unsigned bad = 0;

    for (size_t i = 0; i < plan_cases_count; i++)
        if (plan_cases[i].plan != PLAN_NONE)
            bad += judge_plan(bench, &plan_cases[i]);
    assert_int_equal(bad, 0);
}

/* Where a table is small, or seems so, the server would rather read all of it.  What changes rows
 * would then lock those of others, and be refused by theirs. */
TEST(test_plans_of_a_small_table)
{
    struct bench *bench = *state, small = *bench;
    unsigned bad = 0, judged = 0;
    db_result result = DB_RESULT_INIT;

    small.where = database_new(bench->own, NULL);
    small.connection = open_connection(small.where);
    if (run_plain(&small,
                  "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, "
                  "step, thread_no, token, fence, rev, created_at, updated_at) VALUES "
                  "('C7', 'K7', 'WITHDRAW', 'S', 'P', 'ask', UUID(), RANDOM_BYTES(16), 1, "
                  "1, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
                  &result) != DB_DONE)
        server_panic("%s", db_error(small.connection));
    for (size_t i = 0; i < plan_cases_count; i++)
        if (strncmp(plan_cases[i].statement->text, "UPDATE (SELECT", 14) == 0 ||
            plan_cases[i].statement == &sql_open_lane_many ||
            plan_cases[i].statement == &sql_tokens_seen) {
            bad += judge_plan(&small, &plan_cases[i]);
            judged++;
        }
    assert_int_equal(bad, 0);
    assert_true(judged >= 8);
    db_result_free(&result);
    db_close(small.connection);
    database_free(small.where);
}

/* Whoever looks for the schema's parts leaves the other databases of the server alone. */
TEST(test_parts_of_one_database)
{
    struct bench *bench = *state;
    db_result plan = DB_RESULT_INIT;
    char text[1024];
    int one = 0;

    snprintf(text, sizeof text, "EXPLAIN %s", sql_migrate_objects.text);
    if (run_plain(bench, text, &plan) != DB_DONE)
        server_panic("%s", db_error(bench->connection));
    for (size_t row = 0; row < plan.rows; row++) {
        const char *extra = db_get_text(&plan, row, EXPLAIN_EXTRA);

        assert_null(strstr(extra, "all databases"));
        one += strstr(extra, "Scanned 1 database") != NULL;
    }
    assert_int_equal(one, 2); /* triggers and views; routines stand in a table */
    db_result_free(&plan);
}

TEST(test_reads)
{
    struct bench *bench = *state;
    const size_t each = tier_pick(3, 1, 1);
    unsigned bad = 0;

    for (size_t i = 0; i < plan_cases_count; i += each) {
        const size_t first = i;

        while (partitions() > 0 && i + 1 < plan_cases_count &&
               plan_cases[i + 1].statement == plan_cases[first].statement)
            i++;
        bad +=
            partitions() > 0 ? judge_divided(bench, first, i) : judge_reads(bench, &plan_cases[i]);
    }
    assert_int_equal(bad, 0);
}

/* The test must be able to see a scan: one that is planted is found. */
TEST(test_a_scan_is_seen)
{
    static const unsigned char first[] = {0};
    static const struct sql_text scan = {
        .name = "scan",
        .text = "SELECT COUNT(*) FROM trade_lock WHERE serial_no = ? AND remark IS NULL",
        .values = 1,
        .outside = 1,
        .mark_count = 1,
        .marks = first};
    const db_value serial = {DB_TEXT, 0, "W7", 2};
    const plan_case planted = {&scan, "planted", 1, 12, PLAN_KEYS, .values = &serial};
    struct bench *bench = *state;

    print_message("the next two complaints are wanted:\n");
    assert_int_equal(judge_plan(bench, &planted), 1);
    assert_int_equal(judge_reads(bench, &planted), 1);
}

TESTS_OF(plans, set_up, tear_down)

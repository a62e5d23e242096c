/* Lists whose pages look at few rows, and whose query somebody kills.  The rest of them is
 * transcripts/lists.txt. */
#include "command.h"

#include "trade_lock/fixture.h"
#include "support/theme.h"

#include <tradelock/admin.h>

#include <pthread.h>

#define HOUR_MS 3600000

static fixture f;
static const char *config;

#define LS(...) RUN("ls", "--json", "--config", config, __VA_ARGS__)

FIXTURE(set_up)
{
    fixture_open(&f, "janitor=0\ncommit_ms=1s\n");
    config = database_option_file(f.db);
}

FIXTURE(tear_down)
{
    fixture_close(&f);
}

/* Each test lists its own rows alone. */
FIXTURE(clear)
{
    database_run(f.sql, "TRUNCATE trade_lock; TRUNCATE trade_lock_past; "
                        "DELETE FROM trade_evidence");
}

static tl_lock *held_for(const char *serial, const char *cust, int64_t minor, const char *currency)
{
    tl_lock_options options = sync_options("pay");

    if (currency != NULL) {
        options.amount_minor = minor;
        options.currency = currency;
    }
    return granted(f.client, serial, cust, &options);
}

static void end(tl_lock *lock, const tl_ending *ending, tl_status expected)
{
    assert_status(tl_lock_finish(lock, ending), expected);
    tl_lock_free(lock);
}

static void make_doubtful(const char *serial, const char *cust, int64_t minor, const char *currency)
{
    tl_ending unknown = TL_ENDING_INIT;

    unknown.next_run_ms = HOUR_MS;
    end(held_for(serial, cust, minor, currency), &unknown, TL_IN_DOUBT);
}

/* "SERIAL/lane SERIAL/lane", in the order in which they are listed. */
static char *rows_of(output *o)
{
    json_t *document, *row;
    static char got[4096];
    size_t i;

    EXPECT_CODE(o, 0);
    document = output_json(o);
    got[0] = '\0';
    json_array_foreach(json_object_get(document, "rows"), i, row)
    {
        const size_t size = strlen(got);

        snprintf(got + size, sizeof got - size, "%s%s/%s", i > 0 ? " " : "",
                 json_string_value(json_object_get(row, "serial_no")),
                 json_string_value(json_object_get(row, "lane")));
    }
    assert_int_equal(json_integer_value(json_object_get(document, "count")), i);
    json_decref(document);
    output_free(o);
    return got;
}

#define EXPECT_ROWS(o, expected) assert_string_equal(rows_of(o), expected)

/* -------------------------------------------------------------------- pages -- */

static const char insert_rows[] =
    "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, token, "
    "fence, rev, session_id, parked, conflict, proof, max_hold_until, next_run_at, created_at, "
    "updated_at) SELECT CONCAT('P', seq MOD 7), CONCAT('%s', seq), '%s', '%s', '%s', 'ask', "
    "UUID(), "
    "'x', 1, 1, %s, %s, %s, 'D', UTC_TIMESTAMP(6), %s, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) "
    "FROM seq_1_to_%d";

#define A_SESSION "'a0000000-0000-4000-8000-000000000001'"

static int is_seen(const json_t *seen, const char *name)
{
    return json_object_get(seen, name) != NULL;
}

static int count_row(void *context, const tl_view *view)
{
    json_t *seen = context;
    char name[192];

    snprintf(name, sizeof name, "%s %s %s", view->serial_no, view->cust_no, view->op_code);
    assert_false(is_seen(seen, name));
    json_object_set_new(seen, name, json_true());
    return 0;
}

/* Pages that look at few rows show few of a rare kind, each once, and go on behind the last one. */
TEST_IN(test_pages_that_look_at_few, clear, NULL)
{
    char next[TL_NEXT_TEXT] = "";
    tl_filter filter = TL_FILTER_INIT;
    tl_list_end end = TL_LIST_END_INIT;
    json_t *seen = json_object();
    unsigned pages = 0;

    for (int i = 0; i < 2; i++) {
        const char *op = i == 0 ? "LOOK_A" : "LOOK_B";

        database_run(f.sql, insert_rows, "Y", op, "S", "Y", A_SESSION, "NULL", "0",
                     "'2030-01-01' + INTERVAL seq DIV 3 SECOND", 400);
        database_run(f.sql, insert_rows, "F", op, "S", "F", A_SESSION, "NULL", "0",
                     "'2030-01-01' + INTERVAL seq * 9 SECOND", 11);
        database_run(f.sql, insert_rows, "I", op, "S", "F", "NULL", "NULL", "0", "NULL", 5);
    }
    filter.lane = 'S';
    filter.status = 'F';
    filter.limit = 3;
    filter.look_most = 40;
    do {
        filter.after = next[0] != '\0' ? next : NULL;
        assert_status(tl_list_page(f.client, &filter, count_row, seen, &end), TL_OK);
        assert_true(end.rows <= 3);
        snprintf(next, sizeof next, "%s", end.next);
        assert_true(++pages < 100);
    } while (end.more);
    assert_int_equal(json_object_size(seen), 32);
    assert_true(pages > 15); /* 832 rows, of which a page looks at some 50 */
    json_decref(seen);
}

/* ------------------------------------------------------------------- killed -- */

static const char *const locks[] = {"LOCK TABLES trade_lock WRITE", "LOCK TABLES tl_schema WRITE"};

struct killing {
    MYSQL *locks, *kills;
};

/* Kills the query of a younger connection that waits for the table, then lets the table go. */
static void *kill_one(void *context)
{
    const struct killing *killing = context;
    char kill[64];
    long long id = 0;

    while (id == 0)
        id = database_number(killing->kills,
                             "SELECT COALESCE(MAX(id), 0) FROM information_schema.processlist "
                             "WHERE state = 'Waiting for table metadata lock' AND db = '%s' "
                             "AND id > CONNECTION_ID()",
                             database_name(f.db));
    snprintf(kill, sizeof kill, "KILL QUERY %lld", id);
    database_run(killing->kills, "%s", kill);
    database_run(killing->locks, "UNLOCK TABLES");
    return NULL;
}

/* Somebody tidies up with KILL QUERY: a page is read once more, and a client opened once more. */
TEST_IN(test_a_killed_query_is_repeated, clear, NULL)
{
    struct killing killing = {database_connect(f.db), database_connect(f.db)};
    pthread_t killer;
    output *o;

    make_doubtful("KILLED", "C1", 100, "EUR");
    for (size_t i = 0; i < sizeof locks / sizeof locks[0]; i++) {
        database_run(killing.locks, "%s", locks[i]);
        assert_int_equal(pthread_create(&killer, NULL, kill_one, &killing), 0);
        o = LS("--lane", "all", "--serial", "KILLED");
        pthread_join(killer, NULL);
        EXPECT_ROWS(o, "KILLED/retry KILLED/sync");
    }
    mysql_close(killing.locks);
    mysql_close(killing.kills);
}

TESTS_OF(lists, set_up, tear_down)

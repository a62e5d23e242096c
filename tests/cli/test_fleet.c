/*
 * The command over a fleet of two shards, each a MariaDB of its own, with real rows: lists over
 * both, one trade's commands at the shard that has its customer, what no shard can tell alone, and a
 * shard that is down.
 */
#include "command.h"
#include "fields.h"

#include "trade_lock/fixture.h"
#include "support/theme.h"

#include <tradelock/admin.h>

#include <signal.h>
#include <sys/stat.h>

#define HOUR_MS 3600000
#define OP "WITHDRAW"

enum { A, B, SHARDS };

static struct shard {
    server *where;
    database *db;
    MYSQL *sql;
    tl_client *client;
    char cust[3][TL_CUST_MAX + 1]; /* customers of it */
} shards[SHARDS];

static char config[512], swapped[512], twice[512];

#define FLEET(...) RUN(__VA_ARGS__, "--config", config)

/* ------------------------------------------------------------------- set-up -- */

/* a and b: which database each name leads to. */
static void write_settings_of(char *path, const char *name, int a, int b, const char *user)
{
    const int of[] = {a, b};
    mode_t mask = umask(077);
    FILE *file;

    snprintf(path, sizeof config, "%s/%s.cnf", server_dir(shards[A].where), name);
    file = fopen(path, "we");
    umask(mask);
    if (file == NULL)
        server_panic("%s cannot be written", path);
    fprintf(file, "[tradelock]\nsite = test\nfleet = payouts\nshards = a, b\n"
                  "connect_timeout_s = 2\nretention_ms = 1d\n[tradelock-client]\n");
    for (int i = 0; i < SHARDS; i++)
        fprintf(file, "[tradelock-client-%c]\nuser = %s\n%ssocket = %s\ndatabase = %s\n", 'a' + i,
                user != NULL ? user : server_user(shards[of[i]].where),
                user != NULL ? "password = secret\n" : "", server_socket(shards[of[i]].where),
                database_name(shards[of[i]].db));
    fclose(file);
}

static void write_settings(char *path, const char *name, int a, int b)
{
    write_settings_of(path, name, a, b, NULL);
}

static tl_client *open_client(const struct shard *shard, unsigned flags)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.config_file = database_option_file(shard->db);
    options.flags = flags;
    if (tl_client_open(&client, &options) != TL_OK)
        server_panic("no client: %s", tl_error_message());
    return client;
}

static void join_fleet(void)
{
    tl_client *clients[SHARDS];

    for (int i = 0; i < SHARDS; i++)
        clients[i] = open_client(&shards[i], TL_CLIENT_NO_SESSION);
    for (int i = 0; i < SHARDS; i++) {
        tl_fleet_joining joining = TL_FLEET_JOINING_INIT;
        unsigned char slots[TL_FLEET_SLOTS] = {0};
        tl_fleet_joined joined = {0};

        memset(slots + i * TL_FLEET_SLOTS / 2, 1, TL_FLEET_SLOTS / 2);
        joining.fleet = "payouts";
        joining.shard = i == A ? "a" : "b";
        joining.reason = "test";
        joining.slots = slots;
        if (tl_fleet_join(clients, SHARDS, (size_t)i, &joining, &joined) != TL_OK)
            server_panic("not joined: %s", tl_error_message());
    }
    for (int i = 0; i < SHARDS; i++)
        tl_client_close(clients[i]);
}

static void choose_customers(void)
{
    int found[SHARDS] = {0};

    for (int i = 0; found[A] < 3 || found[B] < 3; i++) {
        char name[16];
        int of;

        snprintf(name, sizeof name, "c%d", i);
        of = database_number(shards[A].sql, "SELECT tl_customer_slot('%s') < 512", name) == 1 ? A
                                                                                              : B;
        if (found[of] < 3)
            snprintf(shards[of].cust[found[of]++], sizeof shards[of].cust[0], "%s", name);
    }
}

FIXTURE(set_up)
{
    for (int i = 0; i < SHARDS; i++) {
        shards[i].where = server_start(NULL);
        shards[i].db = database_new(shards[i].where, "janitor=0\nsite=test\n");
        shards[i].sql = database_connect(shards[i].db);
        database_run(shards[i].sql, "UPDATE tl_schema SET retention_ms = 86400000");
    }
    write_settings(config, "fleet", A, B);
    write_settings(swapped, "swapped", B, A);
    write_settings(twice, "twice", A, A);
    join_fleet();
    choose_customers();
    for (int i = 0; i < SHARDS; i++)
        shards[i].client = open_client(&shards[i], 0);
}

FIXTURE(tear_down)
{
    for (int i = 0; i < SHARDS; i++) {
        tl_client_close(shards[i].client);
        mysql_close(shards[i].sql);
        database_free(shards[i].db);
    }
}

/* Each test has its own rows alone, and the slots as they were joined. */
FIXTURE(clear)
{
    for (int i = 0; i < SHARDS; i++) {
        database_run(shards[i].sql,
                     "TRUNCATE trade_lock; TRUNCATE trade_lock_past; DELETE FROM trade_evidence; "
                     "DELETE FROM tl_slot");
        for (int slot = i * 512; slot < (i + 1) * 512; slot += 128)
            database_run(shards[i].sql,
                         "INSERT INTO tl_slot (slot, state) SELECT %d + seq, 'owned' "
                         "FROM seq_0_to_127",
                         slot);
    }
}

/* ------------------------------------------------------------------- trades -- */

static const char *cust(int shard, int number)
{
    return shards[shard].cust[number];
}

static tl_lock *held(int shard, const char *serial, const char *cust_no, const char *batch)
{
    tl_lock_options options = sync_options("pay");

    options.amount_minor = 1000;
    options.currency = "EUR";
    options.batch = batch;
    return granted(shards[shard].client, serial, cust_no, &options);
}

static void end(tl_lock *lock, const tl_ending *ending, tl_status expected)
{
    assert_status(tl_lock_finish(lock, ending), expected);
    tl_lock_free(lock);
}

static void make_paid_in(int shard, const char *serial, const char *cust_no, const char *batch)
{
    tl_ending paid = TL_ENDING_INIT;

    paid.outcome = TL_OUTCOME_SUCCESS;
    end(held(shard, serial, cust_no, batch), &paid, TL_SUCCEEDED);
}

static void make_paid(int shard, const char *serial, const char *cust_no)
{
    make_paid_in(shard, serial, cust_no, NULL);
}

static void make_doubtful(int shard, const char *serial, const char *cust_no)
{
    tl_ending unknown = TL_ENDING_INIT;

    unknown.next_run_ms = HOUR_MS;
    end(held(shard, serial, cust_no, NULL), &unknown, TL_IN_DOUBT);
}

static void make_parked(int shard, const char *serial, const char *cust_no)
{
    tl_ending parked = TL_ENDING_INIT;

    parked.park_reason = "no answer";
    end(held(shard, serial, cust_no, NULL), &parked, TL_PARKED);
}

static const char *fence_of(int shard, const char *serial)
{
    static char number[24];

    snprintf(number, sizeof number, "%lld",
             database_number(shards[shard].sql,
                             "SELECT fence FROM trade_lock WHERE serial_no = '%s' AND lane = 'S'",
                             serial));
    return number;
}

/* -------------------------------------------------------------------- JSON -- */

static json_t *document_of(output *o, int code)
{
    json_t *document;

    EXPECT_CODE(o, code);
    document = output_json(o);
    output_free(o);
    return document;
}

/* "SERIAL/shard SERIAL/shard" of a list. */
static const char *rows_in(const json_t *list)
{
    static char got[2048];
    const json_t *row;
    size_t i;

    got[0] = '\0';
    json_array_foreach(list, i, row)
    {
        const char *serial = json_string_value(json_object_get(row, "serial_no"));
        const char *shard = json_string_value(json_object_get(row, "shard"));
        const size_t size = strlen(got);

        snprintf(got + size, sizeof got - size, "%s%s/%s", i > 0 ? " " : "",
                 serial != NULL ? serial : "-", shard != NULL ? shard : "-");
    }
    return got;
}

static void expect_missing(const json_t *document, const char *shard)
{
    const json_t *missing = json_object_get(document, "missing");

    assert_int_equal(json_array_size(missing), shard != NULL);
    if (shard != NULL)
        assert_string_equal(json_string_value(json_array_get(missing, 0)), shard);
}

/* What is printed of one database, and what a fleet adds to it. */
static void expect_fields(json_t *document, const char *name, const char *of_fleet)
{
    json_t *set = json_object();

    fields_add(set, document);
    if (of_fleet != NULL)
        fields_expect_more(set, name, of_fleet);
    else
        fields_expect(set, name);
    json_decref(set);
}

/* The same, but for what stands in each shard's page. */
static void expect_fields_of_pages(json_t *document, const char *of_fleet)
{
    json_object_set_new(document, "shards", json_pack("[{s:s}]", "shard", "a"));
    expect_fields(document, of_fleet, NULL);
}

/* ------------------------------------------------------------------- lists -- */

TEST_IN(test_list, clear, NULL)
{
    json_t *document;
    output *o;

    make_paid(A, "A1", cust(A, 0));
    make_parked(A, "A2", cust(A, 0));
    make_paid(B, "B1", cust(B, 0));
    make_parked(B, "B2", cust(B, 1));

    /* Shard by shard, each as in one database. */
    document = document_of(FLEET("ls", "--lane", "sync", "--json"), 0);
    assert_string_equal(rows_in(json_object_get(document, "rows")), "A2/a A1/a B2/b B1/b");
    assert_int_equal(json_integer_value(json_object_get(document, "trades")), 4);
    assert_int_equal(json_integer_value(json_object_get(
                         json_array_get(json_object_get(document, "money"), 0), "sum_minor")),
                     4000);
    expect_missing(document, NULL);
    expect_fields(document, "ls+row", "fleet ls");
    json_decref(document);

    o = FLEET("ls");
    EXPECT_CODE(o, 0);
    assert_ptr_equal(strstr(o->out, "SHARD SERIAL"), o->out);
    EXPECT_WORDS(o, "\nb     B1");
    EXPECT_WORDS(o, "4 trades");
    output_free(o);

    /* Of one shard it is as if there were no fleet. */
    ENDS(FLEET("ls", "--shard", "b"), 0, WITHOUT("SHARD"), WITHOUT("A1"), "B1");
    document = document_of(FLEET("ls", "--shard", "b", "--json"), 0);
    assert_null(json_object_get(document, "missing"));
    assert_null(json_object_get(document, "ends"));
    json_decref(document);

    o = FLEET("ls", "-o", "csv", "--columns", "shard,serial");
    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, "shard,serial\na,A2\n");
    EXPECT_WORDS(o, "\nb,B1\n");
    output_free(o);
}

TEST_IN(test_limit_is_of_each_shard, clear, NULL)
{
    json_t *document, *ends;
    char place[TL_NEXT_TEXT];
    output *o;

    make_paid(A, "A1", cust(A, 0));
    make_paid(A, "A2", cust(A, 0));
    make_paid(B, "B1", cust(B, 0));
    document = document_of(FLEET("ls", "--limit", "1", "--json"), 0);
    assert_string_equal(rows_in(json_object_get(document, "rows")), "A2/a B1/b");
    assert_true(json_is_true(json_object_get(document, "more")));
    ends = json_object_get(document, "ends");
    assert_true(json_is_true(json_object_get(json_array_get(ends, 0), "more")));
    assert_false(json_is_true(json_object_get(json_array_get(ends, 1), "more")));
    snprintf(place, sizeof place, "%s",
             json_string_value(json_object_get(json_array_get(ends, 0), "next")));
    json_decref(document);

    EXPECT_USAGE(FLEET("ls", "--after", place), "--after wants --shard");
    document = document_of(FLEET("ls", "--after", place, "--shard", "a", "--json"), 0);
    assert_string_equal(rows_in(json_object_get(document, "rows")), "A1/-");
    json_decref(document);
    o = FLEET("ls", "--limit", "1");
    EXPECT_CODE(o, 0);
    assert_non_null(strstr(o->err, "first 1 of shard a, there are more: the same with --shard a "));
    assert_null(strstr(o->err, "shard b"));
    output_free(o);
}

TEST_IN(test_batch_is_over_all, clear, NULL)
{
    json_t *document, *batch;

    make_paid_in(A, "A1", cust(A, 0), "march");
    make_paid_in(B, "B1", cust(B, 0), "march");
    tl_lock_free(held(B, "B2", cust(B, 1), "march"));
    document = document_of(FLEET("ls", "--batch", "march", "--json"), 0);
    batch = json_object_get(document, "batch");
    assert_false(json_is_true(json_object_get(batch, "complete")));
    assert_int_equal(json_integer_value(json_object_get(batch, "trades")), 3);
    assert_int_equal(json_integer_value(json_object_get(batch, "open")), 1);
    assert_int_equal(json_array_size(json_object_get(batch, "parts")), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *part = json_array_get(json_object_get(batch, "parts"), i);
        const int is_paid =
            strcmp(json_string_value(json_object_get(part, "state")), "succeeded") == 0;

        assert_int_equal(json_integer_value(json_object_get(part, "sum_minor")),
                         is_paid ? 2000 : 1000);
    }
    json_decref(document);
}

TEST_IN(test_other_lists, clear, NULL)
{
    json_t *document, *row;
    size_t i;
    int seen = 0;

    document = document_of(FLEET("ps", "--json"), 0);
    json_array_foreach(json_object_get(document, "sessions"), i, row) seen |=
        1 << (json_string_value(json_object_get(row, "shard"))[0] - 'a');
    assert_int_equal(seen, 3);
    expect_fields(document, "ps", "fleet rows");
    json_decref(document);
    ENDS(FLEET("ps"), 0, "SHARD STATE");

    make_parked(B, "B1", cust(B, 0));
    /* As if the time in which its sender could still send were over. */
    database_run(shards[B].sql, "UPDATE trade_lock SET send_until = UTC_TIMESTAMP(6), "
                                "rev = rev + 1, step = 'test' WHERE serial_no = 'B1'");
    ENDS(FLEET("resolve", "propose", "B1", cust(B, 0), OP, "--as", "failed", "--fence",
               fence_of(B, "B1"), "--reason", "letter"),
         0);
    document = document_of(FLEET("inbox", "--json"), 0);
    assert_string_equal(rows_in(json_object_get(document, "proposals")), "B1/b");
    expect_fields(document, "inbox", "fleet rows");
    json_decref(document);
}

TEST_IN(test_forgetting_is_the_owners, clear, NULL)
{
    static const char blanked[] = "SELECT COUNT(*) FROM trade_lock WHERE blanked_rev = rev";

    make_paid(A, "A1", cust(A, 0));
    make_paid(B, "B1", cust(B, 0));
    ENDS(FLEET("forget", "propose", "--cust", cust(B, 0), "--reason", "request 17"), 0,
         "Proposed to forget 1 trades");
    ENDS(FLEET("forget", "confirm", "--cust", cust(B, 0), "--reason", "request 17"), 1);
    database_run(shards[B].sql, "UPDATE tl_act SET account = 'somebody@localhost' "
                                "WHERE what = 'forget propose'");
    ENDS(FLEET("forget", "confirm", "--cust", cust(B, 0), "--reason", "request 17"), 0,
         "the contents of 1 trades");
    assert_int_equal(database_number(shards[A].sql, "%s", blanked), 0);
    assert_int_equal(database_number(shards[B].sql, "%s", blanked), 1);
}

/* ---------------------------------------------------------------- documents -- */

TEST_IN(test_pages, clear, NULL)
{
    json_t *document, *pages;
    output *o;

    make_parked(B, "B1", cust(B, 0));
    document = document_of(FLEET("status", "--json"), 6);
    pages = json_object_get(document, "shards");
    assert_int_equal(json_array_size(pages), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(pages, 1), "shard")), "b");
    assert_int_equal(json_array_size(json_object_get(json_array_get(pages, 0), "waiting")), 0);
    assert_int_equal(json_array_size(json_object_get(json_array_get(pages, 1), "waiting")), 1);
    expect_missing(document, NULL);
    expect_fields_of_pages(document, "fleet pages");
    json_decref(document);
    o = FLEET("status");
    EXPECT_CODE(o, 6);
    assert_ptr_equal(strstr(o->out, "Shard a\n\ntradelock at"), o->out);
    EXPECT_WORDS(o, "\nShard b\n\ntradelock at");
    output_free(o);

    make_paid(A, "A1", cust(A, 0));
    for (int i = 0; i < SHARDS; i++)
        database_run(shards[i].sql, "UPDATE trade_lock SET created_at = created_at - INTERVAL 9 "
                                    "DAY, updated_at = updated_at - INTERVAL 9 DAY, rev = rev + 1");
    document = document_of(FLEET("purge", "--older", "2d", "--dry-run", "--json"), 0);
    assert_int_equal(json_array_size(json_object_get(document, "shards")), 2);
    assert_true(json_is_true(
        json_object_get(json_array_get(json_object_get(document, "shards"), 1), "dry_run")));
    expect_fields_of_pages(document, "fleet pages");
    json_decref(document);
    ENDS(FLEET("purge", "--older", "2d"), 0, "Shard b\n");
}

/* -------------------------------------------------------------- one trade's -- */

TEST_IN(test_one_trade, clear, NULL)
{
    json_t *document;

    make_parked(A, "A1", cust(A, 0));
    make_parked(B, "B1", cust(B, 0));
    document = document_of(FLEET("show", "B1", cust(B, 0), OP, "--json"), 6);
    assert_string_equal(json_string_value(json_object_get(document, "shard")), "b");
    json_decref(document);
    document = document_of(FLEET("show", "A1", "--json"), 6);
    assert_string_equal(json_string_value(json_object_get(document, "shard")), "a");
    json_decref(document);
    ENDS(FLEET("show", "B"), 6, "shard             b\n");
    ENDS(FLEET("explain", "A1", cust(A, 0), OP), 6);
    /* The other shard has no such trade. */
    ENDS(FLEET("explain", "A1", cust(B, 0), OP), 1);
    ENDS(FLEET("explain", "A1", cust(A, 0), OP, "--shard", "b"), 1);

    ENDS(FLEET("retry", "B1", cust(B, 0), OP, "--fence", fence_of(B, "B1"), "--reason", "ready"),
         0);
    assert_int_equal(database_number(shards[B].sql, "SELECT COUNT(*) FROM trade_lock WHERE "
                                                    "serial_no = 'B1' AND parked IS NOT NULL"),
                     0);
    ENDS(FLEET("evidence", "add", "A1", cust(A, 0), OP, "--outcome", "SUCCEEDED", "--source",
               "statement", "--amount", "10.00 EUR"),
         0);
    assert_int_equal(database_number(shards[A].sql, "SELECT COUNT(*) FROM trade_evidence"), 1);
    assert_int_equal(database_number(shards[B].sql, "SELECT COUNT(*) FROM trade_evidence"), 0);
    ENDS(FLEET("evidence", "ls", "A1", cust(A, 0), OP), 0, "SUCCEEDED");
}

static long long last_act(int shard)
{
    return database_number(shards[shard].sql, "SELECT MAX(act_no) FROM tl_act");
}

/* Each shard has acts of its own. */
TEST_IN(test_many_at_both, clear, NULL)
{
    char path[512], acts[64];

    make_parked(A, "A1", cust(A, 0));
    make_parked(B, "B1", cust(B, 0));
    for (int i = 0; i < SHARDS; i++)
        database_run(shards[i].sql,
                     "GRANT ALL ON *.* TO second@localhost IDENTIFIED BY 'secret'; UPDATE "
                     "trade_lock SET send_until = UTC_TIMESTAMP(6), rev = rev + 1, step = 'test'");
    write_settings_of(path, "second", A, B, "second");
    ENDS(FLEET("resolve", "propose", "--all", "--parked", "--as", "failed", "--reason", "r",
               "--yes", "2"),
         0, "2 of 2 done");
    snprintf(acts, sizeof acts, "a:%lld,b:%lld", last_act(A), last_act(B));
    ENDS(FLEET("resolve", "propose", "--all", "--parked", "--as", "failed", "--reason", "r"), 1,
         "2 proposed already");
    ENDS(RUN("inbox", "--config", path), 0, " 1 trades");
    ENDS(
        FLEET("resolve", "confirm", "--as", "failed", "--act", acts, "--reason", "r", "--yes", "2"),
        1, "! cannot confirm it");
    ENDS(RUN("resolve", "confirm", "--as", "failed", "--act", acts, "--reason", "r", "--yes", "2",
             "--config", path),
         0, "2 of 2 done");
    for (int i = 0; i < SHARDS; i++)
        assert_int_equal(database_number(shards[i].sql, "SELECT COUNT(*) FROM trade_lock WHERE "
                                                        "step = 'resolve failed' AND lane = 'S'"),
                         1);
    make_parked(A, "A2", cust(A, 1));
    make_parked(B, "B2", cust(B, 1));
    ENDS(FLEET("retry", "--all", "--parked", "--reason", "r", "--yes", "2"), 0, "2 of 2 done",
         " of shard a, act ");
}

/* Several of one serial number: each is named with its shard. */
TEST_IN(test_several_match, clear, NULL)
{
    make_paid(A, "X1", cust(A, 0));
    make_paid(B, "X2", cust(B, 0));
    ENDS(FLEET("show", "X"), 1, "\na     X1", "\nb     X2");
}

/* -------------------------------------------------------------- a statement -- */

static const char *write_statement(const char *lines)
{
    static char path[512];
    FILE *file;

    snprintf(path, sizeof path, "%s/statement.csv", server_dir(shards[A].where));
    file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, "serial_no,cust_no,op_code,channel_ref,amount_minor,currency\n%s", lines);
    fclose(file);
    return path;
}

static const char *statement_of(const char *const serials[], const int of[], const char *more)
{
    char lines[1024] = "";

    for (size_t i = 0; serials[i] != NULL; i++)
        snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "%s,%s," OP ",R%s,1000,EUR\n",
                 serials[i], cust(of[i], 0), serials[i]);
    strcat(lines, more);
    return write_statement(lines);
}

TEST_IN(test_statement, clear, NULL)
{
    static const char *const serials[] = {"A1", "B1", "B2", NULL};
    static const int of[] = {A, B, B};
    json_t *document, *acts;
    const char *path;
    output *o;

    make_doubtful(A, "A1", cust(A, 0));
    make_doubtful(B, "B1", cust(B, 0));
    make_paid(B, "B2", cust(B, 0));
    path = statement_of(serials, of, "NEVER,c1," OP ",RN,1000,EUR\n");
    o = FLEET("evidence", "add", "--statement", path, "--source", "s", "--reason", "r", "--yes",
              "3");
    EXPECT_CODE(o, 1); /* it would be two */
    assert_non_null(strstr(o->err, "it would be 2 trades, not 3"));
    output_free(o);
    assert_int_equal(database_number(shards[B].sql, "SELECT COUNT(*) FROM trade_evidence"), 0);

    document = document_of(FLEET("evidence", "add", "--statement", path, "--source", "s",
                                 "--reason", "r", "--yes", "2", "--json"),
                           1); /* one is unknown */
    assert_int_equal(json_integer_value(json_object_get(document, "done")), 2);
    assert_int_equal(json_integer_value(json_object_get(document, "unknown")), 1);
    assert_int_equal(json_integer_value(json_object_get(document, "known")), 1);
    acts = json_object_get(document, "acts");
    assert_int_equal(json_array_size(acts), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(acts, 1), "shard")), "b");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(acts, 1), "done")), 1);
    expect_fields(document, "many+evidence statement", "fleet statement");
    json_decref(document);
    for (int i = 0; i < SHARDS; i++)
        assert_int_equal(database_number(shards[i].sql, "SELECT COUNT(*) FROM trade_evidence"), 1);
}

TEST_IN(test_audit_with_statement, clear, NULL)
{
    static const char *const serials[] = {"A1", "B1", NULL};
    static const int of[] = {A, B};
    json_t *document, *pages;

    make_paid(A, "A1", cust(A, 0));
    make_paid(B, "B1", cust(B, 0));
    ENDS(FLEET("audit", "--statement", statement_of(serials, of, "")), 0, "Shard a\n\naudited by",
         "0 violations: keys on two shards");
    document =
        document_of(FLEET("audit", "--json", "--statement", statement_of(serials, of, "")), 0);
    pages = json_object_get(document, "shards");
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(json_integer_value(json_object_get(json_array_get(pages, i), "payments")),
                         1);
    expect_missing(document, NULL);
    json_decref(document);

    /* What nobody asked for is told once, by the owner of its customer; and what a customer cannot
     * be called, too. */
    document =
        document_of(FLEET("audit", "--json", "--statement",
                          statement_of(serials, of, "NEVER,no such customer," OP ",RN,1000,EUR\n")),
                    1);
    pages = json_object_get(document, "shards");
    assert_string_equal(rows_in(json_object_get(json_array_get(pages, 0), "violations")),
                        "NEVER/a");
    assert_string_equal(rows_in(json_object_get(json_array_get(pages, 1), "violations")), "");
    json_decref(document);
    /* Without its payment a success of b is found. */
    ENDS(FLEET("audit", "--statement", write_statement("")), 1, "unpaid-success");
}

/* -------------------------------------------------- what no shard tells alone -- */

static void set_slot(int shard, const char *cust_no, const char *slot_state, int version)
{
    database_run(shards[shard].sql,
                 "REPLACE INTO tl_slot (slot, state, version, other) VALUES "
                 "(tl_customer_slot('%s'), '%s', %d, IF('%s' = 'owned', NULL, '%s'))",
                 cust_no, slot_state, version, slot_state, shard == A ? "b" : "a");
}

static void expect_fleet(int code, const char *rule, const char *serial)
{
    json_t *document = document_of(FLEET("audit", "--json"), code), *row;
    size_t i, found = 0;

    json_array_foreach(json_object_get(document, "fleet"), i, row)
    {
        const char *its = json_string_value(json_object_get(row, "serial_no"));

        found += strcmp(json_string_value(json_object_get(row, "rule")), rule) == 0 &&
                 (serial == NULL || (its != NULL && strcmp(its, serial) == 0));
    }
    assert_int_equal(found, 1);
    if (serial != NULL)
        expect_fields_of_pages(document, "fleet audit");
    json_decref(document);
}

static void expect_doctor(int code, const char *check, const char *level)
{
    json_t *document = document_of(FLEET("doctor", "--json"), code), *row;
    size_t i;
    int found = 0;

    json_array_foreach(json_object_get(document, "findings"), i, row) found |=
        strcmp(json_string_value(json_object_get(row, "check")), check) == 0 &&
        strcmp(json_string_value(json_object_get(row, "level")), level) == 0 &&
        json_is_null(json_object_get(row, "shard"));
    assert_true(found);
    expect_fields(document, "doctor", "fleet rows");
    json_decref(document);
}

/* A slot that two shards own, with a trade at both: it may have been paid twice. */
TEST_IN(test_slot_owned_twice, clear, NULL)
{
    const char *customer = cust(A, 0);

    expect_doctor(0, "fleet slots", "ok");
    expect_doctor(0, "fleet rule", "ok");
    set_slot(B, customer, "owned", 1);
    make_paid(A, "T1", customer);
    make_paid(B, "T1", customer);
    make_paid(B, "T2", customer);
    expect_fleet(1, "slot-twice", NULL);
    expect_fleet(1, "two-shards", "T1");
    expect_doctor(5, "slot-twice", "unsafe");
    ENDS(FLEET("audit"), 1, "two-shards", "2 violations: keys on two shards");
}

/* Of one that was restored to a moment at which the slot was leaving: what was in process there is
 * sent, while the other one pays. */
TEST_IN(test_slot_that_leaves_still, clear, NULL)
{
    const char *customer = cust(A, 0);

    set_slot(B, customer, "owned", 2);
    make_paid(A, "T1", customer);
    make_paid(B, "T1", customer);
    make_paid(B, "T2", customer);
    set_slot(A, customer, "leaving", 1);
    expect_fleet(1, "slot-twice", NULL);
    expect_fleet(1, "two-shards", "T1");
    expect_doctor(5, "slot-twice", "unsafe");
    /* Where it arrives only, it is a move as any other. */
    set_slot(B, customer, "arriving", 1);
    ENDS(FLEET("audit"), 0);
    expect_doctor(0, "slot-moves", "warning");
}

TEST_IN(test_stray, clear, NULL)
{
    const char *customer = cust(A, 0);

    set_slot(B, customer, "owned", 1);
    make_paid(B, "T1", customer);
    database_run(shards[B].sql, "DELETE FROM tl_slot WHERE slot = tl_customer_slot('%s')",
                 customer);
    expect_fleet(1, "stray", "T1");
    make_paid(A, "T1", customer);
    expect_fleet(1, "two-shards", "T1");
}

TEST_IN(test_slot_of_nobody, clear, NULL)
{
    database_run(shards[B].sql, "DELETE FROM tl_slot WHERE slot = tl_customer_slot('%s')",
                 cust(B, 0));
    expect_fleet(1, "slot-nobody", NULL);
    expect_doctor(0, "slot-nobody", "warning");
    EXPECT_REFUSED(FLEET("show", "T1", cust(B, 0), OP), 1, "no shard has slot");
}

/* What was copied to the new owner is on two shards, and is told by it alone. */
TEST_IN(test_moved_slot, clear, NULL)
{
    static const char *const serials[] = {"T1", NULL};
    static const int of[] = {A};
    const char *customer = cust(A, 0);
    json_t *document;

    make_paid(A, "T1", customer);
    set_slot(B, customer, "owned", 1);
    make_paid(B, "T1", customer);
    set_slot(A, customer, "gone", 2);
    set_slot(B, customer, "owned", 2);
    ENDS(FLEET("audit", "--statement", statement_of(serials, of, "")), 0);
    document = document_of(FLEET("show", "T1", "--json"), 0);
    assert_string_equal(json_string_value(json_object_get(document, "shard")), "b");
    json_decref(document);

    /* Between the two ends nobody owns it: that is no broken promise. */
    set_slot(B, customer, "arriving", 2);
    ENDS(FLEET("audit"), 0);
    expect_doctor(0, "slot-moves", "warning");
}

TEST_IN(test_rules_differ, clear, NULL)
{
    database_run(shards[B].sql,
                 "CREATE OR REPLACE FUNCTION tl_customer_slot(cust VARCHAR(32) CHARACTER SET ascii "
                 "COLLATE ascii_nopad_bin) RETURNS SMALLINT UNSIGNED DETERMINISTIC NO SQL "
                 "SQL SECURITY INVOKER RETURN (CRC32(cust) + 1) %% 1024");
    expect_doctor(5, "fleet rule", "unsafe");
    database_run(shards[B].sql,
                 "CREATE OR REPLACE FUNCTION tl_customer_slot(cust VARCHAR(32) CHARACTER SET ascii "
                 "COLLATE ascii_nopad_bin) RETURNS SMALLINT UNSIGNED DETERMINISTIC NO SQL "
                 "SQL SECURITY INVOKER RETURN CRC32(cust) %% 1024");
    expect_doctor(0, "fleet rule", "ok");
}

/* ----------------------------------------------------------------- accounts -- */

/* A reader reads everything, and changes nothing at any shard. */
TEST_IN(test_reader, clear, NULL)
{
    char path[512];
    json_t *document;

    make_parked(A, "A1", cust(A, 0));
    make_paid(B, "B1", cust(B, 0));
    for (int i = 0; i < SHARDS; i++) {
        ENDS(FLEET("migrate", "--grants", "--shard", i == A ? "a" : "b"), 0);
        database_run(shards[i].sql, "CREATE USER reader@localhost IDENTIFIED BY 'secret'; "
                                    "GRANT {database}_reader TO reader@localhost; "
                                    "SET DEFAULT ROLE {database}_reader FOR reader@localhost");
    }
    write_settings_of(path, "reader", A, B, "reader");
    document = document_of(RUN("ls", "--json", "--lane", "sync", "--config", path), 0);
    assert_string_equal(rows_in(json_object_get(document, "rows")), "A1/a B1/b");
    json_decref(document);
    document = document_of(RUN("show", "B1", cust(B, 0), OP, "--json", "--config", path), 0);
    assert_string_equal(json_string_value(json_object_get(document, "shard")), "b");
    json_decref(document);
    ENDS(RUN("audit", "--config", path), 0, "! shard b: this audit is not on record");
    ENDS(RUN("retry", "A1", cust(A, 0), OP, "--fence", fence_of(A, "A1"), "--reason", "r",
             "--config", path),
         1);
    assert_int_equal(database_number(shards[A].sql, "SELECT COUNT(*) FROM trade_lock WHERE "
                                                    "serial_no = 'A1' AND parked IS NOT NULL"),
                     1);
    unlink(path);
    for (int i = 0; i < SHARDS; i++)
        database_run(shards[i].sql, "DROP USER reader@localhost");
}

/* ---------------------------------------------------------------- bad input -- */

TEST_IN(test_bad_input, clear, NULL)
{
    static const struct {
        const char *arguments[10];
        const char *words;
    } cases[] = {
        {{"migrate"}, "name one of its shards, by --shard: a, b"},
        {{"restore", "status"}, "by --shard"},
        {{"promote", "--reason", "r"}, "by --shard"},
        {{"drain", "--reason", "r"}, "by --shard"},
        {{"channel", "ls"}, "by --shard"},
        {{"channel", "pause", "x", "--reason", "r"}, "by --shard"},
        {{"resource", "ls"}, "by --shard"},
        {{"run", "--lock", "x", "--", "true"}, "by --shard"},
        {{"reap"}, "by --shard"},
        {{"acts"}, "by --shard"},
        {{"ls", "--shard", "all"}, "--shard names one shard: without it a command goes over all"},
        {{"drain", "--shard", "all"}, "or is called once for each"},
        {{"resolve", "confirm", "--act", "7", "--as", "failed", "--reason", "r"},
         "--act names acts of these shards, as a:7,b:3, not 7"},
        {{"purge", "--older", "9d", "--archive", "/tmp"}, "--archive wants --shard"},
        {{"audit", "--archive", "/tmp"}, "--archive wants --shard"},
        {{"audit", "close", "propose", "0123456789abcdef", "--reason", "r"}, "wants --shard"},
        {{"ls", "--shard", "c"}, "there is no shard 'c': fleet payouts has a, b"},
        {{"show", "X", "--shard", ""}, "there is no shard ''"},
    };
    output *o;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *arguments[16] = {NULL};
        size_t n = 0, from = 0;

        for (; cases[i].arguments[from] != NULL; from++) {
            if (n == 1) { /* options before the operands of `run` */
                arguments[n++] = "--config";
                arguments[n++] = config;
            }
            arguments[n++] = cases[i].arguments[from];
        }
        if (n == 1) {
            arguments[n++] = "--config";
            arguments[n++] = config;
        }
        o = command_run(NULL, arguments);
        print_message("%s\n", cases[i].arguments[0]);
        EXPECT_SENTENCE(o, 2, cases[i].words);
        output_free(o);
    }
    /* A file of one database has no shards. */
    EXPECT_USAGE(RUN("ls", "--shard", "a", "--config", database_option_file(shards[A].db)),
                 "there is no shard 'a'");
}

TEST_IN(test_settings_that_lead_elsewhere, clear, NULL)
{
    ENDS(RUN("ls", "--config", swapped), 2,
         "! shard a: ", "! shard b: ", "! is shard b of fleet payouts");
    /* One database under two names: the second one is refused. */
    ENDS(RUN("doctor", "--config", twice), 2, "! shard b: ", "! is shard a of fleet payouts");
    EXPECT_USAGE(RUN("status", "--shard", "b", "--config", twice), "is shard a of fleet payouts");
}

/* ----------------------------------------------------------------- the exporter -- */

#define UP "# HELP tradelock_up "

static output *expect_metrics(const char *up_of_b)
{
    output *o = FLEET("exporter", "--once");
    char *rest = NULL, *text;

    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, "\ntradelock_up{shard=\"a\"} 1\n");
    EXPECT_WORDS(o, up_of_b);
    EXPECT_WORDS(o, "\ntradelock_trades{shard=\"a\",operation=\"" OP "\",state=");
    /* Each metric is told of once. */
    assert_ptr_equal(strstr(strstr(o->out, UP) + 1, UP), NULL);
    text = strdup(o->out);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        if (line[0] != '#' && strstr(line, "{shard=\"") == NULL)
            fail_msg("no label: %s", line);
    free(text);
    return o;
}

/* One page of both; one that stands still is down, and the other one's lines are there. */
TEST_IN(test_exporter, clear, NULL)
{
    output *o;

    make_doubtful(A, "A1", cust(A, 0));
    make_doubtful(B, "B1", cust(B, 0));
    o = expect_metrics("\ntradelock_up{shard=\"b\"} 1\n");
    EXPECT_WORDS(o, "\ntradelock_trades{shard=\"b\",operation=\"" OP "\",state=");
    assert_string_equal(o->err, "");
    output_free(o);
    ENDS(FLEET("exporter", "--once", "--shard", "b"), 0, "\ntradelock_up 1\n");
    server_freeze(shards[B].where);
    o = expect_metrics("\ntradelock_up{shard=\"b\"} 0\n");
    server_thaw(shards[B].where);
    output_free(o);
    write_settings(config, "fleet", B, A);
    o = FLEET("exporter", "--once");
    /* Nothing of one is told as the other's. */
    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, "tradelock_up{shard=\"a\"} 0\ntradelock_up{shard=\"b\"} 0\n");
    assert_null(strstr(o->out, "tradelock_trades"));
    if (strstr(o->err, "tradelock-exporter warning: shard a: the settings lead to shard a of fleet "
                       "payouts, but the "
                       "database there is shard b") == NULL)
        fail_msg("%s", o->err);
    output_free(o);
    write_settings(config, "fleet", A, B);
}

/* ------------------------------------------------------------------ one down -- */

static void expect_incomplete(output *o, const char *words)
{
    EXPECT_CODE(o, 3);
    if (strstr(o->err, "tradelock: shard b: ") == NULL)
        fail_msg("%s", o->err);
    EXPECT_WORDS(o, words);
    output_free(o);
}

static void expect_lists_without_b(void)
{
    json_t *document;

    expect_incomplete(FLEET("ls"), "a     A1");
    expect_incomplete(FLEET("status"), "Shard a\n");
    expect_incomplete(FLEET("ps"), "a     alive");
    expect_incomplete(FLEET("audit"), "Shard a\n");
    expect_incomplete(FLEET("doctor"), "a     ok");
    expect_incomplete(FLEET("purge", "--older", "9d", "--dry-run"), "Shard a\n");
    document = document_of(FLEET("ls", "--json"), 3);
    expect_missing(document, "b");
    json_decref(document);
    document = document_of(FLEET("status", "--json"), 3);
    expect_missing(document, "b");
    assert_int_equal(json_array_size(json_object_get(document, "shards")), 1);
    json_decref(document);
    document = document_of(FLEET("audit", "--json"), 3);
    expect_missing(document, "b");
    /* What b owns is not of nobody. */
    assert_int_equal(json_array_size(json_object_get(document, "fleet")), 0);
    json_decref(document);
}

/* Customers of a are as ever, those of b cannot be asked for. */
static void expect_trades_without_b(void)
{
    ENDS(FLEET("show", "A1", cust(A, 0), OP), 0);
    ENDS(FLEET("retry", "A2", cust(A, 0), OP, "--fence", fence_of(A, "A2"), "--reason", "r"), 0);
    ENDS(FLEET("show", "B1", cust(B, 0), OP), 3, "! no shard that answers has slot");
    /* Nobody knows whether b has another one that begins so. */
    ENDS(FLEET("show", "A1"), 3);
}

TEST_IN(test_shard_is_down, clear, NULL)
{
    static const char *const serials[] = {"A1", "A2", "B1", NULL};
    static const int of[] = {A, A, B};
    json_t *document;
    output *o;

    make_paid(A, "A1", cust(A, 0));
    make_doubtful(A, "A2", cust(A, 0));
    make_doubtful(B, "B1", cust(B, 0));
    server_kill9(shards[B].where);
    expect_lists_without_b();
    expect_trades_without_b();
    o = expect_metrics("\ntradelock_up{shard=\"b\"} 0\n");
    if (strstr(o->err, "tradelock-exporter warning: shard b: ") == NULL)
        fail_msg("%s", o->err);
    output_free(o);

    document = document_of(FLEET("evidence", "add", "--statement", statement_of(serials, of, ""),
                                 "--source", "s", "--reason", "r", "--yes", "1", "--json"),
                           3);
    assert_int_equal(json_integer_value(json_object_get(document, "done")), 1);
    assert_int_equal(json_integer_value(json_object_get(document, "unknown")), 1);
    expect_missing(document, "b");
    json_decref(document);
    /* A payment of b is not "unknown" at a. */
    ENDS(FLEET("audit", "--statement", statement_of(serials, of, "")), 3,
         "! 1 payments of the statement are of no shard that could be", WITHOUT("unknown-payment"));

    server_restart(shards[B].where);
    mysql_close(shards[B].sql);
    shards[B].sql = database_connect(shards[B].db);
    ENDS(FLEET("evidence", "add", "--statement", statement_of(serials, of, ""), "--source", "s",
               "--reason", "r", "--yes", "1"),
         0);
    assert_int_equal(database_number(shards[B].sql, "SELECT COUNT(*) FROM trade_evidence"), 1);
}

TESTS_OF(fleet, set_up, tear_down)

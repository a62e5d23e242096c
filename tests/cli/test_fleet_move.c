/*
 * `tradelock fleet`: two databases become shards, their slots are listed, and one of them moves
 * there and back.
 */
#include "command.h"
#include "fields.h"

#include "support/database.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { A, B, SHARDS };

static database *db[SHARDS];
static MYSQL *sql[SHARDS];
static char config[512];

#define FLEET(...) RUN("fleet", __VA_ARGS__, "--config", config)
#define BAD(words, ...) expect(FLEET(__VA_ARGS__), 2, words)
#define REFUSED(words, ...) expect(FLEET(__VA_ARGS__), 1, words)

static void expect(output *o, int code, const char *words)
{
    EXPECT_SENTENCE(o, code, words);
    output_free(o);
}

static void expect_done(output *o, const char *words)
{
    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, words);
    output_free(o);
}

static void expect_listed(json_t *document, const char *name, json_t *other)
{
    json_t *set = json_object();

    fields_add(set, document);
    if (other != NULL)
        fields_add(set, other);
    fields_expect(set, name);
    json_decref(set);
}

static void write_settings(const int at[SHARDS])
{
    const mode_t mask = umask(077);
    FILE *file;

    snprintf(config, sizeof config, "%s.fleet", database_option_file(db[A]));
    file = fopen(config, "we");
    umask(mask);
    if (file == NULL)
        server_panic("%s cannot be written", config);
    fprintf(file,
            "[tradelock]\nsite = test\nfleet = payouts\nshards = a, b\n[tradelock-client]\n"
            "user = %s\nsocket = %s\n",
            server_user(server_shared()), server_socket(server_shared()));
    for (int i = 0; i < SHARDS; i++)
        fprintf(file, "[tradelock-client-%c]\ndatabase = %s\n", 'a' + i, database_name(db[at[i]]));
    fclose(file);
}

static const int straight[SHARDS] = {A, B}, one[SHARDS] = {A, A};

static int set_up(void **state)
{
    (void)state;
    for (int i = 0; i < SHARDS; i++) {
        db[i] = database_new(server_shared(), NULL);
        sql[i] = database_connect(db[i]);
    }
    write_settings(straight);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    remove(config);
    for (int i = 0; i < SHARDS; i++) {
        mysql_close(sql[i]);
        database_free(db[i]);
    }
    return 0;
}

static void test_bad_input(void **state)
{
    (void)state;
    BAD("say what", "turn");
    BAD("say what", "--reason", "x");
    BAD("two operands", "join", "payouts");
    BAD("of fleet payouts, not of others", "join", "others", "a");
    BAD("no shard c", "join", "payouts", "c");
    BAD("--slots is a list", "join", "payouts", "a", "--slots", "0-1024");
    BAD("--slots is a list", "join", "payouts", "a", "--slots", "5-4");
    BAD("--slots is a list", "join", "payouts", "a", "--slots", "1,,2");
    BAD("--slots is a list", "join", "payouts", "a", "--slots", "1,");
    BAD("--slots and --reason alone", "join", "payouts", "a", "--to", "b");
    BAD("no operand", "ls", "all");
    BAD("a slot, or --cust", "move", "--to", "b", "--reason", "x");
    BAD("a slot, or --cust", "move", "7", "--cust", "c", "--to", "b", "--reason", "x");
    BAD("from 0 to 1023", "move", "1024", "--to", "b", "--reason", "x");
    BAD("from 0 to 1023", "move", "seven", "--to", "b", "--reason", "x");
    BAD("--to is missing", "move", "7", "--reason", "x");
    BAD("no shard c", "move", "7", "--to", "c", "--reason", "x");
    BAD("--reason is missing", "move", "7", "--to", "b");
    BAD("--back takes no", "move", "7", "--to", "b", "--back", "--reason", "x");
    BAD("a duration", "move", "7", "--to", "b", "--for", "long", "--reason", "x");
    BAD("takes no --shard", "ls", "--shard", "a");
    expect(RUN("fleet", "ls", "--config", database_option_file(db[A])), 2, "name no shards");
    assert_int_equal(database_number(sql[A], "SELECT COUNT(*) FROM tl_slot"), 0);
}

/* Both sections lead to a: before the first join no name tells. */
static void test_one_database_for_two(void **state)
{
    (void)state;
    write_settings(one);
    BAD("lead to one database, or to a copy of it", "join", "payouts", "a");
    BAD("lead to one database, or to a copy of it", "join", "payouts", "b", "--slots", "5");
    assert_int_equal(database_number(sql[A], "SELECT COUNT(*) FROM tl_slot"), 0);
    assert_int_equal(database_number(sql[A], "SELECT COUNT(fleet) FROM tl_schema"), 0);
    write_settings(straight);
}

static void test_join(void **state)
{
    output *o;
    json_t *json;

    (void)state;
    expect_done(FLEET("join", "payouts", "a", "--slots", "0-511,600", "--reason", "new"),
                "owns 513 slots");
    REFUSED("slot 600 is another shard's", "join", "payouts", "b", "--slots", "600-601");
    assert_int_equal(database_number(sql[B], "SELECT COUNT(*) FROM tl_slot"), 0);
    o = FLEET("join", "payouts", "b", "--json");
    EXPECT_CODE(o, 0);
    json = output_json(o);
    expect_listed(json, "fleet join", NULL);
    assert_int_equal(json_integer_value(json_object_get(json, "owned")), 511);
    json_decref(json);
    output_free(o);
    o = FLEET("ls", "--json");
    EXPECT_CODE(o, 0);
    json = output_json(o);
    assert_int_equal(json_array_size(json_object_get(json, "slots")), 4);
    expect_listed(json, "fleet slots", NULL);
    json_decref(json);
    output_free(o);
    expect_done(FLEET("ls"), "0-511");
}

static void insert_trade(const char *cust)
{
    database_run(sql[A],
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                 "thread_no, token, fence, rev, created_at, updated_at) VALUES ('%s', 's', "
                 "'WITHDRAW', 'S', 'P', 'ask', UUID(), 'x', 1, 1, UTC_TIMESTAMP(6), "
                 "UTC_TIMESTAMP(6))",
                 cust);
}

static void test_move(void **state)
{
    char *cust = database_text(sql[A], "SELECT CONCAT('c', seq) FROM seq_1_to_9999 WHERE "
                                       "tl_customer_slot(CONCAT('c', seq)) = 7 LIMIT 1");
    output *o;
    json_t *json, *back;

    (void)state;
    insert_trade(cust);
    o = FLEET("move", "--cust", cust, "--to", "b", "--for", "1s", "--reason", "r");
    EXPECT_CODE(o, 1);
    assert_non_null(strstr(o->err, "in process"));
    output_free(o);
    assert_int_equal(database_number(sql[A], "SELECT state = 'owned' FROM tl_slot WHERE slot = 7"),
                     1);
    database_run(sql[A], "UPDATE trade_lock SET status = 'Y', rev = rev + 1");
    REFUSED("already at shard a", "move", "7", "--to", "a", "--reason", "r");
    expect_done(FLEET("move", "--cust", cust, "--to", "b", "--reason", "r"),
                "Slot 7 is at shard b");
    assert_int_equal(database_number(sql[B], "SELECT COUNT(*) FROM trade_lock WHERE status = 'Y'"),
                     1);
    expect_done(FLEET("ls"), "gone");
    /* Nothing is left to be done. */
    REFUSED("already at shard b", "move", "7", "--to", "b", "--reason", "r");
    o = FLEET("move", "7", "--to", "a", "--reason", "r", "--json");
    EXPECT_CODE(o, 0);
    json = output_json(o);
    output_free(o);
    REFUSED("is not leaving", "move", "7", "--back", "--reason", "r");
    database_run(sql[A], "UPDATE tl_slot SET state = 'leaving', other = 'b' WHERE slot = 7");
    o = FLEET("move", "7", "--back", "--reason", "r", "--json");
    EXPECT_CODE(o, 0);
    back = output_json(o);
    expect_listed(json, "fleet move", back);
    json_decref(json);
    json_decref(back);
    output_free(o);
    assert_int_equal(database_number(sql[A], "SELECT state = 'owned' FROM tl_slot WHERE slot = 7"),
                     1);
    free(cust);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_one_database_for_two),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_move),
    };

    return server_run_tests(tests, set_up, tear_down);
}

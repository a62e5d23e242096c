/*
 * `tradelock fleet`: two databases become shards, their slots are listed, and one of them moves
 * there and back.
 */
#include "command.h"
#include "fields.h"

#include "support/database.h"
#include "support/theme.h"

#include <sys/stat.h>

enum { A, B, C, SHARDS };

static database *db[SHARDS];
static MYSQL *sql[SHARDS];
static char config[512], one[512], three[512], one_down[512], reader[512];

#define READER "fleet_reader"
#define FLEET(...) RUN("fleet", __VA_ARGS__, "--config", config)
#define BAD(words, ...) EXPECT_REFUSED(FLEET(__VA_ARGS__), 2, words)
#define AT_ONE(...) RUN("fleet", __VA_ARGS__, "--config", one)
#define REFUSED(words, ...) EXPECT_REFUSED(FLEET(__VA_ARGS__), 1, words)

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

static const char *user_of_settings; /* NULL: the administrator */

/* at: whose database each section leads to. */
static void write_settings(char to[512], const char *ending, const char *shards,
                           const char *socket_of_c, const int at[SHARDS])
{
    const mode_t mask = umask(077);
    FILE *file;

    snprintf(to, sizeof config, "%s.%s", database_option_file(db[A]), ending);
    file = fopen(to, "we");
    umask(mask);
    if (file == NULL)
        server_panic("%s cannot be written", to);
    fprintf(file,
            "[tradelock]\nsite = test\nfleet = payouts\nshards = %s\n[tradelock-client]\n"
            "user = %s\n",
            shards, user_of_settings != NULL ? user_of_settings : server_user(server_shared()));
    for (int i = 0; i < SHARDS && (i < C || strchr(shards, 'c') != NULL); i++)
        fprintf(file, "[tradelock-client-%c]\ndatabase = %s\nsocket = %s\n", 'a' + i,
                database_name(db[at[i]]), i == C ? socket_of_c : server_socket(server_shared()));
    fclose(file);
}

static const int straight[SHARDS] = {A, B, C}, all_at_a[SHARDS] = {A, A, A};

FIXTURE(set_up)
{
    for (int i = 0; i < SHARDS; i++) {
        db[i] = database_new(server_shared(), NULL);
        sql[i] = database_connect(db[i]);
    }
    write_settings(config, "fleet", "a, b", "", straight);
    write_settings(one, "one", "a, b", "", all_at_a);
    write_settings(three, "three", "a, b, c", server_socket(server_shared()), straight);
    write_settings(one_down, "down", "a, b, c", "/nowhere/s", straight);
    user_of_settings = READER;
    write_settings(reader, "reader", "a, b, c", server_socket(server_shared()), straight);
    database_run(sql[A], "CREATE OR REPLACE USER " READER "@localhost");
    for (int i = 0; i < SHARDS; i++)
        database_run(sql[A], "GRANT SELECT, EXECUTE ON `%s`.* TO " READER "@localhost",
                     database_name(db[i]));
}

FIXTURE(tear_down)
{
    database_run(sql[A], "DROP USER " READER "@localhost");
    remove(config);
    remove(one);
    remove(three);
    remove(one_down);
    remove(reader);
    for (int i = 0; i < SHARDS; i++) {
        mysql_close(sql[i]);
        database_free(db[i]);
    }
}

TEST(test_bad_input)
{
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
    BAD("--at is for clean", "move", "7", "--to", "b", "--at", "a", "--reason", "x");
    BAD("a slot, or --cust", "clean", "--at", "a", "--reason", "x");
    BAD("from 0 to 1023", "clean", "1024", "--at", "a", "--reason", "x");
    BAD("--at is missing", "clean", "7", "--reason", "x");
    BAD("no shard c", "clean", "7", "--at", "c", "--reason", "x");
    BAD("--reason is missing", "clean", "7", "--at", "a");
    BAD("number of rows", "clean", "7", "--at", "a", "--yes", "all", "--reason", "x");
    BAD("clean takes no", "clean", "7", "--at", "a", "--to", "b", "--reason", "x");
    BAD("clean takes no", "clean", "7", "--at", "a", "--table", "t", "--reason", "x");
    BAD("--slots and --reason alone", "join", "payouts", "a", "--at", "a");
    EXPECT_REFUSED(RUN("fleet", "ls", "--config", database_option_file(db[A])), 2,
                   "name no shards");
    assert_int_equal(database_number(sql[A], "SELECT COUNT(*) FROM tl_slot"), 0);
}

/* Both sections lead to a: before the first join no name tells. */
TEST(test_one_database_for_two)
{
    static const char both[] = "lead to one database, or to a copy of it";

    EXPECT_REFUSED(AT_ONE("join", "payouts", "a"), 2, both);
    EXPECT_REFUSED(AT_ONE("join", "payouts", "b", "--slots", "5"), 2, both);
    assert_int_equal(database_number(sql[A], "SELECT COUNT(*) FROM tl_slot"), 0);
    assert_int_equal(database_number(sql[A], "SELECT COUNT(fleet) FROM tl_schema"), 0);
}

TEST(test_join)
{
    output *o;
    json_t *json;

    expect_done(FLEET("join", "payouts", "a", "--slots", "0-511,600", "--reason", "new"),
                "owns 513 slots");
    REFUSED("slot 600 is another shard's", "join", "payouts", "b", "--slots", "600-601");
    assert_int_equal(database_number(sql[B], "SELECT COUNT(*) FROM tl_slot"), 0);
    json = output_ended(FLEET("join", "payouts", "b", "--json"), 0);
    expect_listed(json, "fleet join", NULL);
    assert_int_equal(json_integer_value(json_object_get(json, "owned")), 511);
    json_decref(json);
    json = output_ended(FLEET("ls", "--json"), 0);
    assert_int_equal(json_array_size(json_object_get(json, "slots")), 4);
    expect_listed(json, "fleet slots", NULL);
    json_decref(json);
    o = FLEET("ls");
    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, "0-511");
    /* One column says which shard. */
    assert_int_equal(strncmp(o->out, "SHARD ", 6), 0);
    assert_null(strstr(o->out + 6, "SHARD"));
    output_free(o);
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

TEST(test_move)
{
    char *cust = database_text(sql[A], "SELECT CONCAT('c', seq) FROM seq_1_to_9999 WHERE "
                                       "tl_customer_slot(CONCAT('c', seq)) = 7 LIMIT 1");
    json_t *json, *back;

    insert_trade(cust);
    ENDS(FLEET("move", "--cust", cust, "--to", "b", "--for", "1s", "--reason", "r"), 1,
         "! in process");
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
    json = output_ended(FLEET("move", "7", "--to", "a", "--reason", "r", "--json"), 0);
    REFUSED("is not leaving", "move", "7", "--back", "--reason", "r");
    database_run(sql[A], "UPDATE tl_slot SET state = 'leaving', other = 'b' WHERE slot = 7");
    back = output_ended(FLEET("move", "7", "--back", "--reason", "r", "--json"), 0);
    expect_listed(json, "fleet move", back);
    json_decref(json);
    json_decref(back);
    assert_int_equal(database_number(sql[A], "SELECT state = 'owned' FROM tl_slot WHERE slot = 7"),
                     1);
    free(cust);
}

static void set_slot(int shard, unsigned slot, const char *state, unsigned version,
                     const char *other)
{
    database_run(sql[shard],
                 "REPLACE INTO tl_slot (slot, state, version, other) VALUES (%u, '%s', %u, "
                 "NULLIF('%s', ''))",
                 slot, state, version, other);
}

static void expect_slot(int shard, unsigned slot, const char *expected)
{
    char *is = database_text(sql[shard],
                             "SELECT COALESCE((SELECT CONCAT_WS(' ', state, version, other) FROM "
                             "tl_slot WHERE slot = %u), 'none')",
                             slot);

    assert_string_equal(is, expected);
    free(is);
}

#define THREE(...) RUN("fleet", __VA_ARGS__, "--reason", "r", "--config", three)
#define DOWN(...) RUN("fleet", __VA_ARGS__, "--reason", "r", "--config", one_down)

/* Beside the sentence that names the shard that is down. */
static void expect_refused(output *o, int code, const char *words)
{
    EXPECT_CODE(o, code);
    if (strstr(o->err, words) == NULL)
        fail_msg("not \"%s\", but: %s", words, o->err);
    output_free(o);
}

/* A shard that is down may own the slot under a later version than whoever answers, also where a
 * move has begun: a database that was restored says of it what is long over.  So nobody comes to own
 * a slot before all have been asked. */
TEST(test_third_is_down)
{
    expect_done(THREE("join", "payouts", "c"), "owns 0 slots");
    set_slot(A, 8, "leaving", 1, "b");
    expect_refused(DOWN("move", "8", "--to", "b"), 3, "shard c");
    expect_refused(DOWN("move", "8", "--back"), 3, "shard c");
    expect_slot(A, 8, "leaving 1 b");
    expect_done(THREE("move", "8", "--to", "b"), "Slot 8 is at shard b");
    expect_slot(A, 8, "gone 2 b");
    expect_slot(B, 8, "owned 2");
    set_slot(A, 9, "gone", 2, "b");
    set_slot(B, 9, "arriving", 1, "a");
    expect_refused(DOWN("move", "9", "--back"), 1, "was handed over");
    expect_refused(DOWN("move", "9", "--to", "b"), 3, "shard c");
    expect_slot(B, 9, "arriving 1 a");
    expect_done(THREE("move", "9", "--to", "b"), "Slot 9 is at shard b");
    expect_slot(B, 9, "owned 2");
    set_slot(A, 10, "leaving", 1, "b");
    expect_done(THREE("move", "10", "--back"), "owned by shard a again");
    expect_slot(A, 10, "owned 1");
    expect_refused(DOWN("move", "10", "--to", "b"), 3, "shard c");
    set_slot(A, 11, "leaving", 1, "c");
    expect_refused(DOWN("move", "11", "--back"), 3, "shard c");
    set_slot(A, 12, "leaving", 1, "b");
    set_slot(B, 12, "gone", 3, "c");
    expect_refused(DOWN("move", "12", "--back"), 3, "shard c");
    expect_refused(DOWN("move", "12", "--to", "b"), 3, "shard c");
    set_slot(A, 13, "gone", 2, "b");
    expect_refused(DOWN("move", "13", "--to", "b"), 3, "shard c");
    expect_slot(B, 13, "none");
    for (unsigned slot = 10; slot < 14; slot++)
        set_slot(A, slot, "owned", 1, "");
    database_run(sql[B], "DELETE FROM tl_slot WHERE slot = 12");
}

/* The slot went a, b, c, and c pays.  Then one end is as it was in the middle of a move of before:
 * the target arrives still, or the source leaves still. */
TEST(test_end_that_went_back_in_time)
{
    set_slot(A, 14, "gone", 2, "b");
    set_slot(B, 14, "arriving", 1, "a");
    set_slot(C, 14, "owned", 3, "");
    expect_refused(DOWN("move", "14", "--to", "b"), 3, "shard c");
    expect_slot(B, 14, "arriving 1 a");
    /* All are asked: it comes from where it is. */
    expect_done(THREE("move", "14", "--to", "b"), "Slot 14 is at shard b");
    expect_slot(B, 14, "owned 4");
    expect_slot(C, 14, "gone 4 b");
    set_slot(A, 15, "leaving", 1, "b");
    set_slot(C, 15, "owned", 2, "");
    expect_refused(DOWN("move", "15", "--to", "b"), 3, "shard c");
    expect_refused(DOWN("move", "15", "--back"), 3, "shard c");
    expect_slot(A, 15, "leaving 1 b");
    EXPECT_REFUSED(THREE("move", "15", "--back"), 1, "declare a restore there");
    expect_done(THREE("move", "15", "--to", "b"), "Slot 15 is at shard b");
    expect_slot(A, 15, "leaving 1 b");
    expect_slot(B, 15, "owned 3");
    for (unsigned slot = 14; slot < 16; slot++) {
        set_slot(A, slot, "owned", 1, "");
        for (int i = B; i <= C; i++)
            database_run(sql[i], "DELETE FROM tl_slot WHERE slot = %u", slot);
    }
}

#define AT_B(...) RUN(__VA_ARGS__, "--shard", "b", "--config", three)

static void write_payment(char path[600], const char *cust)
{
    FILE *file;

    snprintf(path, 600, "%s.csv", three);
    file = fopen(path, "we");
    if (file == NULL)
        server_panic("%s cannot be written", path);
    fprintf(file, "serial_no,cust_no,op_code,amount_minor,currency\nlost,%s,WITHDRAW,1,EUR\n",
            cust);
    fclose(file);
}

/* b paid, and was restored to before it owned the slot.  What RESTORE.md says, in its order, with a
 * look whether another order is refused. */
TEST(test_target_went_back_in_time)
{
    static const struct {
        const char *state, *other;
        unsigned version;
    } was[] = {{"arriving", "a", 3}, {"gone", "c", 2}, {"none", "", 0}};
    char *cust = database_text(sql[A], "SELECT CONCAT('c', seq) FROM seq_1_to_9999 WHERE "
                                       "tl_customer_slot(CONCAT('c', seq)) = 16 LIMIT 1");
    char path[600];

    write_payment(path, cust);
    for (size_t i = 0; i < sizeof was / sizeof was[0]; i++) {
        set_slot(A, 16, "gone", 4, "b");
        if (was[i].version > 0)
            set_slot(B, 16, was[i].state, was[i].version, was[i].other);
        if (strcmp(was[i].state, "arriving") != 0)
            expect_refused(THREE("move", "16", "--to", "b"), 1, "declare a restore there");
        expect_refused(THREE("move", "16", "--back"), 1,
                       "was handed over: complete the move with --to b");
        expect_done(AT_B("restore", "declare", "--reason", "r"), "Declared");
        expect_refused(
            RUN("restore", "accept", "--reason", "r", "--shard", "b", "--config", one_down), 3,
            "shard c");
        database_propose(sql[B]);
        expect_refused(AT_B("restore", "accept", "--reason", "r"), 1, "fleet move 16 --to b");
        expect_done(THREE("move", "16", "--to", "b"), "Slot 16 is at shard b");
        expect_slot(B, 16, "owned 4");
        output_free(RUN("evidence", "add", "--statement", path, "--source", "s", "--reason", "r",
                        "--yes", "1", "--config", three));
        database_propose(sql[B]); /* what was filed voids the proposal */
        expect_done(AT_B("restore", "accept", "--reason", "r"), "Accepted");
        assert_int_equal(database_number(sql[B],
                                         "SELECT COUNT(*) FROM trade_lock WHERE serial_no = "
                                         "'lost' AND status = 'Y'"),
                         1);
        database_run(sql[B], "DELETE FROM trade_lock WHERE serial_no = 'lost'; "
                             "DELETE FROM trade_lock_past WHERE serial_no = 'lost'; "
                             "DELETE FROM trade_evidence WHERE serial_no = 'lost'; "
                             "DELETE FROM tl_slot WHERE slot = 16");
    }
    set_slot(A, 16, "owned", 4, "");
    remove(path);
    free(cust);
}

/* A mover died for good, and the operator gave up: what arrives nowhere does not shut the shard
 * out. */
TEST(test_stale_arrival)
{
    json_t *json, *rest;

    set_slot(B, 20, "arriving", 1, "a");
    EXPECT_REFUSED(THREE("move", "21", "--back"), 1, "is not leaving");
    expect_done(DOWN("move", "20", "--back"), "owned by shard a, and arrives nowhere");
    expect_slot(A, 20, "owned 1");
    expect_slot(B, 20, "gone 1 a");
    expect_done(THREE("move", "20", "--to", "b"), "Slot 20 is at shard b");
    /* Of a move that is left at both ends, both are ended. */
    set_slot(A, 22, "leaving", 1, "b");
    set_slot(B, 22, "arriving", 1, "a");
    json = output_ended(THREE("move", "22", "--back", "--json"), 0);
    assert_int_equal(json_array_size(json_object_get(json, "given_up")), 1);
    rest = json_pack("{s:i, s:s, s:s, s:i, s:i}", "slot", 1, "from", "", "to", "", "customers", 0,
                     "rows", 0);
    expect_listed(json, "fleet move", rest);
    json_decref(json);
    json_decref(rest);
    expect_slot(B, 22, "gone 1 a");
    /* Or it is left, and the slot goes its way, over a third one and to the very shard. */
    set_slot(B, 23, "arriving", 1, "a");
    expect_done(THREE("move", "23", "--to", "c"), "Slot 23 is at shard c");
    expect_done(THREE("move", "23", "--to", "b"), "Slot 23 is at shard b");
    expect_slot(B, 23, "owned 3");
    /* It may be handed over still: by a shard that is not asked, or that let it go. */
    set_slot(B, 24, "arriving", 2, "c");
    EXPECT_REFUSED(THREE("move", "24", "--back"), 1, "may be handed over to shard b still");
    set_slot(C, 24, "gone", 3, "b");
    EXPECT_REFUSED(THREE("move", "24", "--back"), 1, "was handed over");
    expect_slot(B, 24, "arriving 2 c");
    database_run(sql[B], "DELETE FROM tl_slot WHERE slot = 24");
    database_run(sql[C], "DELETE FROM tl_slot WHERE slot = 24");
}

/* A customer of a slot, to be freed. */
static char *cust_of(unsigned slot)
{
    return database_text(sql[A],
                         "SELECT CONCAT('c', seq) FROM seq_1_to_9999 WHERE "
                         "tl_customer_slot(CONCAT('c', seq)) = %u LIMIT 1",
                         slot);
}

static const char *const name_of[] = {"a", "b", "c"};

/* And somebody else proposes to accept it. */
static void declare_at(int shard)
{
    expect_done(
        RUN("restore", "declare", "--reason", "r", "--shard", name_of[shard], "--config", three),
        "Declared");
    database_propose(sql[shard]);
}

static output *accept_at(int shard)
{
    return RUN("restore", "accept", "--reason", "r", "--shard", name_of[shard], "--config", three);
}

static void expect_acts(int shard, const char *what, int count)
{
    assert_int_equal(database_number(sql[shard],
                                     "SELECT COUNT(*) FROM tl_act WHERE what = '%s' AND reason = "
                                     "'r' AND account <> ''",
                                     what),
                     count);
}

static void expect_found(const char *command, int code, const char *rule)
{
    ENDS(RUN(command, "--config", three), code, rule);
}

static void forget_slot(unsigned slot)
{
    set_slot(A, slot, "owned", 1, "");
    for (int i = B; i <= C; i++)
        database_run(sql[i], "DELETE FROM tl_slot WHERE slot = %u", slot);
}

/* b has the slot, and a was restored to before it let it go. */
TEST(test_stale_claim)
{
    static const struct {
        const char *state, *other;
    } was[] = {{"owned", ""}, {"leaving", "b"}, {"leaving", "c"}};

    for (size_t i = 0; i < sizeof was / sizeof was[0]; i++) {
        set_slot(A, 50, was[i].state, 1, was[i].other);
        set_slot(B, 50, "owned", 3, "");
        expect_refused(THREE("move", "50", "--back"), 1, "declare a restore there");
        expect_slot(A, 50, i == 0 ? "owned 1" : (i == 1 ? "leaving 1 b" : "leaving 1 c"));
        declare_at(A);
        expect_refused(accept_at(A), 1, "fleet move 50 --back");
        expect_done(THREE("move", "50", "--back"), "owned by shard b, and by no other");
        expect_slot(A, 50, "gone 3 b");
        expect_slot(B, 50, "owned 3");
        expect_acts(A, "fleet claim given up", (int)i + 1);
        expect_acts(B, "fleet claim given up", (int)i + 1);
        expect_refused(THREE("move", "50", "--back"), 1, "is not leaving shard b");
        expect_done(accept_at(A), "Accepted");
    }
    expect_done(THREE("move", "50", "--to", "a"), "Slot 50 is at shard a");
    expect_slot(A, 50, "owned 4");
    forget_slot(50);
}

/* Who has the slot keeps it, whatever the others say, and whoever does not answer. */
TEST(test_owner_keeps_its_claim)
{
    declare_at(A);
    set_slot(A, 51, "owned", 1, "");
    set_slot(C, 51, "owned", 2, "");
    expect_refused(DOWN("move", "51", "--back"), 1, "is not leaving shard a");
    expect_slot(A, 51, "owned 1");
    set_slot(B, 51, "gone", 2, "c");
    expect_refused(DOWN("move", "51", "--back"), 3, "shard c");
    expect_slot(A, 51, "owned 1");
    /* Whoever it went to has not got it yet, or has forgotten that. */
    set_slot(B, 51, "gone", 3, "c");
    expect_refused(THREE("move", "51", "--back"), 1,
                   "was handed over: complete the move with --to c");
    expect_slot(A, 51, "owned 1");
    expect_slot(C, 51, "owned 2");
    database_run(sql[B], "DELETE FROM tl_slot WHERE slot = 51");
    /* Under one version nobody can tell. */
    set_slot(A, 51, "owned", 2, "");
    expect_refused(THREE("move", "51", "--back"), 1, "by several shards under one version");
    expect_refused(accept_at(A), 1, "under one version");
    expect_slot(A, 51, "owned 2");
    expect_slot(C, 51, "owned 2");
    forget_slot(51);
    expect_done(accept_at(A), "Accepted");
}

/* Sent by a step with this token. */
static void insert_sent(int shard, const char *cust, const char *serial, const char *token)
{
    database_run(sql[shard],
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                 "thread_no, token, fence, rev, sends, created_at, updated_at) VALUES ('%s', '%s', "
                 "'WITHDRAW', 'S', 'P', 'ask', UUID(), '%s', 1, 1, 1, UTC_TIMESTAMP(6), "
                 "UTC_TIMESTAMP(6))",
                 cust, serial, token);
}

/* And again. */
static void step_to(int shard, const char *serial, const char *status, const char *token, int sends)
{
    database_run(sql[shard],
                 "UPDATE trade_lock SET status = '%s', proof = 'D', step = IF(status = 'P', 'arm', "
                 "'end'), rev = rev + 1, token = '%s', sends = sends + %d WHERE serial_no = '%s'",
                 status, token, sends, serial);
}

static void insert_paid(int shard, const char *cust, const char *serial)
{
    insert_sent(shard, cust, serial, serial);
    step_to(shard, serial, "Y", "paid", 0);
}

static void remove_trades(int shard, unsigned slot, const char *serial)
{
    database_run(sql[shard],
                 "CREATE TABLE was AS SELECT * FROM tl_slot WHERE slot = %u; REPLACE INTO tl_slot "
                 "(slot, state, version) VALUES (%u, 'owned', 1);"
                 "DELETE FROM trade_lock WHERE serial_no = '%s'; DELETE FROM trade_lock_past WHERE "
                 "serial_no = '%s'; REPLACE INTO tl_slot SELECT * FROM was; DROP TABLE was",
                 slot, slot, serial, serial);
}

/* In each case its claim stands anew afterwards. */
static void expect_paid_is_told(const char *cust)
{
    insert_paid(A, cust, "own");
    expect_refused(THREE("move", "52", "--back"), 1, "1 trades that shard a paid");
    expect_refused(THREE("move", "52", "--back"), 1, ", paid\n");
    expect_refused(THREE("move", "52", "--back", "--yes", "2"), 1, "--yes 1");
    expect_slot(A, 52, "owned 1");
    /* The owner knows the send, and not yet that it was paid. */
    insert_sent(B, cust, "own", "own");
    expect_refused(THREE("move", "52", "--back"), 1, "1 trades that shard a paid");
    /* It paid by a send of its own. */
    step_to(B, "own", "P", "another", 1);
    step_to(B, "own", "Y", "end", 0);
    expect_done(THREE("move", "52", "--back"), "and by no other");
    set_slot(A, 52, "owned", 1, "");
    remove_trades(B, 52, "own");
    insert_sent(B, cust, "own", "another");
    step_to(B, "own", "Y", "end", 0);
    expect_refused(THREE("move", "52", "--back"), 1, "1 trades that shard a paid");
    /* It was filed there. */
    remove_trades(B, 52, "own");
    insert_sent(B, cust, "own", "another");
    database_run(sql[B], "UPDATE trade_lock SET status = 'Y', sends = 0, rev = rev + 1 WHERE "
                         "serial_no = 'own'");
    expect_done(THREE("move", "52", "--back"), "and by no other");
    set_slot(A, 52, "owned", 1, "");
}

/* In doubt: as the owner got it, asked about since, and sent once more. */
static void expect_sent_is_told(const char *cust)
{
    insert_sent(A, cust, "doubt", "first");
    insert_sent(B, cust, "doubt", "first");
    step_to(B, "doubt", "F", "failed", 0);
    step_to(A, "doubt", "P", "claimed", 0);
    expect_done(THREE("move", "52", "--back"), "and by no other");
    set_slot(A, 52, "owned", 1, "");
    step_to(A, "doubt", "P", "restored", 1);
    step_to(A, "doubt", "P", "claimed", 0);
    expect_refused(THREE("move", "52", "--back"), 1, "(WITHDRAW), sent\n");
    ENDS(THREE("move", "52", "--back", "--yes", "1"), 0);
}

/* It has not all that the owner got: nothing is completed from it, but from whoever let it go, also
 * where the other one is named first. */
static void expect_completed_from_another(const char *cust)
{
    set_slot(B, 52, "gone", 1, "a");
    declare_at(B);
    expect_refused(THREE("move", "52", "--to", "b"), 1, "was removed from shard a");
    set_slot(C, 52, "owned", 1, "");
    insert_paid(C, cust, "more");
    set_slot(C, 52, "gone", 2, "b");
    expect_done(THREE("move", "52", "--to", "b"), "Slot 52 is at shard b");
    assert_int_equal(
        database_number(sql[B], "SELECT COUNT(*) FROM trade_lock WHERE cust_no = '%s'", cust), 1);
}

/* What the stale end paid or sent on its own is told before it counts for nothing. */
TEST(test_stale_claim_that_paid)
{
    char *cust = cust_of(52);

    set_slot(B, 52, "owned", 2, "");
    declare_at(A);
    expect_paid_is_told(cust);
    expect_sent_is_told(cust);
    expect_slot(A, 52, "gone 2 b");
    assert_int_equal(database_number(sql[A], "SELECT COUNT(*) FROM tl_act WHERE said LIKE 'slot 52 "
                                             "from a to b: 1 trades here are not known there'"),
                     1);
    expect_done(accept_at(A), "Accepted");
    expect_completed_from_another(cust);
    for (int i = A; i <= C; i++) {
        remove_trades(i, 52, "own");
        remove_trades(i, 52, "doubt");
        remove_trades(i, 52, "more");
    }
    forget_slot(52);
    expect_done(accept_at(B), "Accepted");
    free(cust);
}

/* c let the slot go to b, which was restored to when it had it before, or was about to let it go. */
TEST(test_owner_that_is_behind)
{
    static const char *const was[] = {"owned", "leaving"};
    char *cust = cust_of(53);
    const char *yes = "0";

    set_slot(A, 53, "gone", 2, "b");
    for (size_t i = 0; i < 2; i++) {
        set_slot(C, 53, "owned", 3, "");
        insert_paid(C, cust, "later");
        set_slot(C, 53, "gone", 4, "b");
        set_slot(B, 53, was[i], 2, i == 1 ? "c" : "");
        expect_found("doctor", 5, "slot-behind");
        expect_found("audit", 1, "slot-behind");
        expect_refused(THREE("move", "53", "--to", "a"), 1, "first --to b");
        expect_refused(THREE("move", "53", "--back"), 1, "complete the move with --to b");
        expect_refused(THREE("move", "53", "--to", "b"), 1, "declare a restore there first");
        expect_slot(B, 53, i == 0 ? "owned 2" : "leaving 2 c");
        declare_at(B);
        expect_refused(accept_at(B), 1, "fleet move 53 --to b");
        /* Accepted as it stood, it has paid on its own. */
        set_slot(B, 53, "owned", 2, "");
        insert_paid(B, cust, "own");
        set_slot(B, 53, was[i], 2, i == 1 ? "c" : "");
        expect_refused(THREE("move", "53", "--to", "b"), 1, "1 trades that shard b paid");
        expect_slot(B, 53, i == 0 ? "owned 2" : "leaving 2 c");
        if (i == 0)
            remove_trades(B, 53, "own");
        else
            yes = "1";
        expect_done(THREE("move", "53", "--to", "b", "--yes", yes), "Slot 53 is at shard b");
        expect_slot(B, 53, "owned 4");
        assert_int_equal(database_number(sql[B],
                                         "SELECT COUNT(*) FROM trade_lock WHERE cust_no = "
                                         "'%s' AND serial_no = 'later' AND status = 'Y'",
                                         cust),
                         1);
        expect_done(accept_at(B), "Accepted");
        for (int j = B; j <= C; j++)
            remove_trades(j, 53, "later");
    }
    forget_slot(53);
    free(cust);
}

/* What a slot left behind goes with a purge, as soon as it is old enough, and nothing at the owner
 * does because of it. */
TEST(test_purge_of_what_was_left)
{
    char *cust = database_text(sql[A], "SELECT CONCAT('c', seq) FROM seq_1_to_9999 WHERE "
                                       "tl_customer_slot(CONCAT('c', seq)) = 30 LIMIT 1");
    long long left, steps;

    insert_trade(cust);
    database_run(sql[A],
                 "UPDATE trade_lock SET status = 'Y', step = 'end', rev = rev + 1 WHERE "
                 "cust_no = '%s'",
                 cust);
    database_run(sql[A],
                 "INSERT INTO trade_evidence (cust_no, serial_no, op_code, epoch, outcome, source, "
                 "account, filed_at) VALUES ('%s', 's', 'WITHDRAW', 1, 'SUCCEEDED', 'test', 'x', "
                 "UTC_TIMESTAMP(6))",
                 cust);
    expect_done(THREE("move", "30", "--to", "b"), "Slot 30 is at shard b");
    for (int i = A; i <= B; i++)
        assert_int_equal(database_number(sql[i],
                                         "SELECT (SELECT COUNT(*) FROM trade_lock WHERE "
                                         "cust_no = '%s') + (SELECT COUNT(*) FROM "
                                         "trade_evidence WHERE cust_no = '%s')",
                                         cust, cust),
                         2);
    expect_done(RUN("purge", "--older", "90d", "--shard", "a", "--config", three), "0 trades");
    /* As if it had been left long ago.  A gone slot's rows do not change any more. */
    set_slot(A, 30, "owned", 2, "");
    database_run(sql[A],
                 "UPDATE trade_lock SET created_at = created_at - INTERVAL 99 DAY, "
                 "updated_at = updated_at - INTERVAL 99 DAY, rev = rev + 1 WHERE cust_no = "
                 "'%s'",
                 cust);
    set_slot(A, 30, "gone", 2, "b");
    steps =
        database_number(sql[B], "SELECT COUNT(*) FROM trade_lock_log WHERE cust_no = '%s'", cust);
    expect_done(RUN("purge", "--older", "90d", "--shard", "a", "--config", three), "1 trade");
    left = database_number(sql[A],
                           "SELECT (SELECT COUNT(*) FROM trade_lock WHERE cust_no = '%s') + "
                           "(SELECT COUNT(*) FROM trade_lock_past WHERE cust_no = '%s') + "
                           "(SELECT COUNT(*) FROM trade_evidence WHERE cust_no = '%s')",
                           cust, cust, cust);
    assert_int_equal(left, 0);
    assert_int_equal(database_number(sql[B],
                                     "SELECT COUNT(*) FROM trade_lock WHERE cust_no = "
                                     "'%s' AND status = 'Y'",
                                     cust),
                     1);
    assert_int_equal(database_number(sql[B],
                                     "SELECT COUNT(*) FROM trade_lock_log WHERE cust_no = "
                                     "'%s'",
                                     cust),
                     steps);
    expect_slot(A, 30, "gone 2 b");
    free(cust);
}

/* Slot 40 went from a to b, with 2 rows of a business table; 2 more of ours are left. */
static char *leave_slot(void)
{
    char *cust = database_text(sql[A], "SELECT CONCAT('c', seq) FROM seq_1_to_9999 WHERE "
                                       "tl_customer_slot(CONCAT('c', seq)) = 40 LIMIT 1");

    for (int i = A; i <= B; i++)
        database_run(sql[i], "CREATE TABLE wallet (id INT PRIMARY KEY, cust_no VARCHAR(32), "
                             "KEY (cust_no)) ENGINE = InnoDB");
    insert_trade(cust);
    database_run(sql[A],
                 "UPDATE trade_lock SET status = 'Y', step = 'end', rev = rev + 1 WHERE "
                 "cust_no = '%s';"
                 "INSERT INTO trade_evidence (cust_no, serial_no, op_code, epoch, outcome, source, "
                 "account, filed_at) VALUES ('%s', 's', 'WITHDRAW', 1, 'SUCCEEDED', 'test', 'x', "
                 "UTC_TIMESTAMP(6));"
                 "INSERT INTO wallet VALUES (1, '%s'), (2, '%s'), (3, 'stays')",
                 cust, cust, cust, cust);
    expect_done(THREE("move", "40", "--to", "b", "--table", "wallet"), "fleet clean 40 --at a");
    return cust;
}

static void expect_left(int shard, const char *cust, long long wallets, long long ours)
{
    assert_int_equal(
        database_number(sql[shard], "SELECT COUNT(*) FROM wallet WHERE cust_no = '%s'", cust),
        wallets);
    assert_int_equal(database_number(sql[shard],
                                     "SELECT (SELECT COUNT(*) FROM trade_lock WHERE cust_no = "
                                     "'%s') + (SELECT COUNT(*) FROM trade_evidence WHERE cust_no "
                                     "= '%s')",
                                     cust, cust),
                     ours);
}

/* Nobody but whoever has the slot at a later version vouches for what is removed. */
TEST(test_clean_refused)
{
    char *cust = leave_slot();

    EXPECT_REFUSED(THREE("clean", "40", "--at", "b", "--yes", "1"), 1, "is not gone from shard b");
    EXPECT_REFUSED(THREE("clean", "40", "--at", "c", "--yes", "1"), 1, "it is 'none' there");
    expect_refused(DOWN("clean", "40", "--at", "a", "--yes", "1"), 3, "shard c");
    /* The owner is down, or was restored to before it had the slot. */
    set_slot(A, 40, "gone", 2, "c");
    set_slot(B, 40, "gone", 2, "c");
    set_slot(C, 40, "owned", 2, "");
    expect_refused(DOWN("clean", "40", "--at", "a", "--yes", "1"), 3, "shard c");
    database_run(sql[C], "DELETE FROM tl_slot WHERE slot = 40");
    EXPECT_REFUSED(THREE("clean", "40", "--at", "a", "--yes", "1"), 1,
                   "shard c does not own slot 40");
    set_slot(A, 40, "gone", 2, "b");
    set_slot(B, 40, "arriving", 1, "a");
    EXPECT_REFUSED(THREE("clean", "40", "--at", "a", "--yes", "1"), 1,
                   "shard b does not own slot 40");
    set_slot(B, 40, "owned", 1, "");
    EXPECT_REFUSED(THREE("clean", "40", "--at", "a", "--yes", "1"), 1, "under an earlier version");
    set_slot(B, 40, "owned", 2, "");
    set_slot(C, 40, "owned", 3, "");
    EXPECT_REFUSED(THREE("clean", "40", "--at", "a", "--yes", "1"), 1, "owned by several shards");
    database_run(sql[C], "DELETE FROM tl_slot WHERE slot = 40");
    expect_left(A, cust, 2, 2);
    free(cust);
}

TEST(test_clean)
{
    char *cust = database_text(sql[B], "SELECT cust_no FROM wallet LIMIT 1"), yes[24];
    long long rows;
    output *o;
    json_t *json;

    database_run(sql[A], "UPDATE tl_slot SET tables = 'wallet' WHERE slot = 40");
    o = THREE("clean", "40", "--at", "a", "--json");
    EXPECT_CODE(o, 1);
    assert_non_null(strstr(o->err, "nothing was changed: the same with --yes"));
    json = output_json(o);
    expect_listed(json, "fleet clean", NULL);
    rows = (long long)json_integer_value(json_object_get(json, "rows"));
    assert_int_equal(json_integer_value(json_object_get(json, "customers")), 1);
    assert_false(json_is_true(json_object_get(json, "removed")));
    assert_true(rows >= 4);
    json_decref(json);
    output_free(o);
    ENDS(THREE("clean", "--cust", cust, "--at", "a", "--yes", "1"), 1, "\nwallet", "! not 1");
    snprintf(yes, sizeof yes, "%lld", rows);
    /* Who may read everything, and write nothing. */
    ENDS(
        RUN("fleet", "clean", "40", "--at", "a", "--yes", yes, "--reason", "r", "--config", reader),
        1, "! lacks a right");
    assert_int_equal(
        database_number(sql[B], "SELECT COUNT(*) FROM tl_act WHERE what = 'fleet clean'"), 0);
    expect_left(A, cust, 2, 2);
    expect_done(THREE("clean", "40", "--at", "a", "--yes", yes),
                "Nothing of slot 40 is at shard a");
    expect_left(A, cust, 0, 0);
    expect_left(B, cust, 2, 2);
    assert_int_equal(database_number(sql[A], "SELECT COUNT(*) FROM wallet"), 1);
    expect_done(RUN("acts", "--shard", "a", "--config", three), "fleet clean");
    expect_done(RUN("acts", "--shard", "b", "--config", three), "fleet clean");
    /* Nothing is left, so nothing is asked. */
    expect_done(THREE("clean", "40", "--at", "a"), "Nothing of slot 40 is at shard a");
    expect_slot(A, 40, "gone 2 b");
    free(cust);
}

TESTS_OF(fleet_move, set_up, tear_down)

/* The operator's way through a restore, by two real accounts with the command. */
#include "fields.h"
#include "operators.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/admin.h>

#include <pthread.h>

static output *restore_by(int who, const char *verb)
{
    return RUN("restore", verb, "--reason", "the backup of Monday", "--actor",
               who == ANN ? "Ann" : "Bob", "--config", operators.config[who]);
}

static void restore_says(int who, const char *verb, int code, const char *words)
{
    output *o = restore_by(who, verb);

    EXPECT_CODE(o, code);
    if (code == 0)
        EXPECT_WORDS(o, words);
    else
        assert_non_null(strstr(o->err, words));
    output_free(o);
}

static void status_says(const char *words)
{
    ENDS(RUN("restore", "status", "--config", operators.config[BOB]), 0, words);
}

static void make_doubtful_with(const char *serial, const char *amount)
{
    operators_make_doubtful(serial);
    database_run(operators.h.sql,
                 "UPDATE trade_lock SET %s, rev = rev + 1, step = 'test' WHERE serial_no = '%s' "
                 "AND lane = 'S'",
                 amount, serial);
}

static void expect_money(const json_t *money, size_t at, const char *currency, const char *sum,
                         int count)
{
    const json_t *row = json_array_get(money, at);
    const json_t *told = json_object_get(row, "currency"), *minor;

    minor = json_object_get(row, "sum_minor");
    if (currency != NULL) {
        assert_string_equal(json_string_value(told), currency);
        if (json_is_string(minor)) /* beyond 64 bits */
            assert_string_equal(json_string_value(minor), sum);
        else
            assert_int_equal(json_integer_value(minor), strtoll(sum, NULL, 10));
    } else {
        assert_true(json_is_null(told) && json_is_null(minor));
    }
    assert_int_equal(json_integer_value(json_object_get(row, "count")), count);
}

/* Sums by currency, also beyond 64 bits, and how many trades told no amount; what is over is not
 * in doubt. */
TEST(test_the_money_in_doubt)
{
    json_t *document, *money;

    house_expect(&operators.h, "OVER", "C1", 77, TL_SUCCEEDED);
    operators_make_doubtful("EUR1"); /* 100 */
    make_doubtful_with("EUR2", "amount_minor = 9223372036854775807");
    make_doubtful_with("EUR3", "amount_minor = 9223372036854775807");
    make_doubtful_with("USD1", "amount_minor = 5, currency = 'USD'");
    make_doubtful_with("NONE1", "amount_minor = NULL, currency = NULL");
    make_doubtful_with("NONE2", "amount_minor = NULL, currency = NULL");
    document =
        output_ended(RUN("restore", "status", "--json", "--config", operators.config[BOB]), 0);
    money = json_object_get(document, "money");
    assert_int_equal(json_array_size(money), 3);
    expect_money(money, 0, NULL, NULL, 2);
    expect_money(money, 1, "EUR", "18446744073709551714", 3);
    expect_money(money, 2, "USD", "5", 1);
    assert_int_equal(json_array_size(json_object_get(document, "counts")), 3);
    json_decref(document);
    database_run(operators.h.sql, "DELETE FROM trade_lock");
}

static void file_statement(const char *path, const char *yes, int code, const char *words)
{
    ENDS(RUN("evidence", "add", "--statement", path, "--op", WITHDRAW_OP, "--source",
             "statement of Monday", "--reason", "restored", "--yes", yes, "--config",
             operators.config[ANN]),
         code, words);
}

static void write_statement(char *path)
{
    int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;

    assert_non_null(file);
    fprintf(file, "serial_no,cust_no,channel_ref,amount_minor,currency\n"
                  "GONE1,C1,ref-1,200,EUR\nGONE2,C1,ref-2,300,EUR\nHANGS,C1,ref-3,100,EUR\n");
    fclose(file);
}

/* What ends a restore is the procedure's, which looks whether two of them agreed. */
static void nobody_goes_round_it(void)
{
    static const char *const tries[] = {
        "UPDATE tl_schema SET identity = 'x'",
        "UPDATE tl_schema SET accepted_no = restore_no",
        "UPDATE tl_restore SET account = 'bob@localhost'",
        "INSERT INTO tl_restore (step, account) VALUES ('confirmed', 'bob@localhost')",
        "INSERT INTO tl_restore (restore_no, step, reason) VALUES (1, 'confirmed', 'r')",
        "DELETE FROM tl_restore",
        "CALL tl_restore_accept(1000, UUID())",
    };
    MYSQL *ann = mysql_init(NULL);

    assert_non_null(ann);
    assert_non_null(mysql_real_connect(ann, NULL, operators.user[ANN], "secret",
                                       database_name(operators.h.db), 0,
                                       server_socket(server_shared()), 0));
    assert_int_equal(mysql_query(ann, "START TRANSACTION"), 0);
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++)
        assert_int_not_equal(mysql_query(ann, tries[i]), 0);
    mysql_close(ann);
}

/* What the other one sees before accepting it. */
static void expect_filed(void)
{
    output *o = RUN("restore", "status", "--json", "--config", operators.config[BOB]);
    json_t *document = output_json(o), *filed = json_object_get(document, "filed");
    char account[48];

    snprintf(account, sizeof account, "%s@localhost", operators.user[ANN]);
    assert_int_equal(json_array_size(filed), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(filed, 0), "account")),
                        account);
    expect_money(filed, 0, "EUR", "500", 2);
    json_decref(document);
    output_free(o);
}

TEST(test_the_whole_way)
{
    char path[] = "/tmp/tradelock-statement-XXXXXX";

    operators_make_doubtful("HANGS");
    write_statement(path);
    restore_says(ANN, "accept", 1, "no restore is declared or found");
    file_statement(path, "1", 1, "2 without a trade");
    restore_says(ANN, "declare", 0, "Declared.");
    status_says("A restore was declared at ");
    status_says("Nobody has proposed");
    status_says("in doubt");
    status_says("The money in doubt, as the trades told it:");
    status_says("1.00 EUR 1\n");
    ENDS(RUN("doctor", "--config", operators.config[ANN]), 5,
         "a restore is declared or found and not accepted");
    file_statement(path, "2", 0, "2 make\na trade that was lost.  Left alone: 1 known already");
    file_statement(path, "0", 0, "3 known already");
    status_says("Filed of lost trades, which accepting makes paid, by these accounts:");
    expect_filed();
    restore_says(BOB, "accept", 0, "Proposed.");
    restore_says(ANN, "accept", 1, "whoever filed a payment without a trade does not confirm");
    restore_says(ANN, "declare", 0, "Declared.");
    expect_filed();
    restore_says(ANN, "accept", 0, "Proposed.");
    restore_says(ANN, "accept", 0, "Proposed.");
    status_says("proposed at ");
    nobody_goes_round_it();
    restore_says(BOB, "accept", 0, "Accepted. 1 trades are in process");
    restore_says(BOB, "accept", 1, "no restore is declared or found");
    status_says("No restore is declared or found.");
    ENDS(RUN("acts", "--config", operators.config[ANN]), ANY_CODE, "restore accept confirm",
         "restore accept propose", "restore declare (the backup of Monday)");
    ENDS(RUN("doctor", "--config", operators.config[ANN]), 0);
    unlink(path);
}

static output *promote(const char *option, const char *value)
{
    return RUN("promote", "--actor", "Ann", "--config", operators.config[ANN], option, value);
}

/* Another transaction holds what the command needs for longer than its settings let it try, or wait
 * for an answer, and for less long than it is told to wait. */
static void *let_go(void *argument)
{
    MYSQL *holder = argument;

    usleep(2500 * 1000);
    database_run(holder, "COMMIT; UNLOCK TABLES");
    return NULL;
}

static void promoted_while_held(const char *held, const char *setting)
{
    MYSQL *holder = database_connect(operators.h.db);
    char path[sizeof operators.config[ANN] + 8];
    pthread_t thread;
    output *o;

    snprintf(path, sizeof path, "%s.hasty", operators.config[ANN]);
    crew_shell("{ cat %s; echo %s; } >%s && chmod 600 %s", operators.config[ANN], setting, path,
               path);
    database_run(holder, "%s", held);
    assert_int_equal(pthread_create(&thread, NULL, let_go, holder), 0);
    o = RUN("promote", "--reason", "the primary is gone", "--wait", "8s", "--config", path);
    pthread_join(thread, NULL);
    EXPECT_CODE(o, 5);
    EXPECT_WORDS(o, "Offered.");
    output_free(o);
    assert_int_equal(database_number(holder, "SELECT COUNT(*) FROM tl_restore WHERE step = "
                                             "'promoted' AND restore_no = (SELECT restore_no FROM "
                                             "tl_schema)"),
                     1);
    mysql_close(holder);
    unlink(path);
}

/* Once it was said to be off, nobody gets an answer for longer than the command's settings let it
 * wait for one. */
static void *keep_silent(void *argument)
{
    MYSQL *holder = argument;

    while (database_number(holder, "SELECT COUNT(*) FROM tl_restore WHERE step = 'fenced'") == 0)
        usleep(10 * 1000);
    database_run(holder, "LOCK TABLES tl_schema WRITE, tl_restore WRITE, tl_attestation WRITE");
    usleep(2500 * 1000);
    database_run(holder, "UNLOCK TABLES");
    return NULL;
}

static void promoted_while_silent(void)
{
    MYSQL *holder = database_connect(operators.h.db);
    char path[sizeof operators.config[ANN] + 8];
    pthread_t thread;
    output *o;

    snprintf(path, sizeof path, "%s.silent", operators.config[ANN]);
    crew_shell("{ cat %s; echo read_timeout_s=1; } >%s && chmod 600 %s", operators.config[ANN],
               path, path);
    assert_int_equal(pthread_create(&thread, NULL, keep_silent, holder), 0);
    o = RUN("promote", "--fenced", "--reason", "it is off", "--wait", "10s", "--config", path);
    pthread_join(thread, NULL);
    EXPECT_CODE(o, 5);
    EXPECT_WORDS(o, "Offered.");
    output_free(o);
    mysql_close(holder);
    unlink(path);
}

/* Nobody sees it promoted before it is known whether the one before is off. */
static void promoted_whole(void)
{
    database_run(operators.h.sql,
                 "CREATE TRIGGER not_off BEFORE INSERT ON tl_restore FOR EACH ROW FOLLOWS "
                 "tl_restore_inserted IF NEW.step = 'fenced' THEN SIGNAL SQLSTATE '45000' SET "
                 "MYSQL_ERRNO = 1644, MESSAGE_TEXT = 'not yet'; END IF");
    ENDS(RUN("promote", "--fenced", "--reason", "it is off", "--config", operators.config[ANN]), 1,
         "! not yet");
    database_run(operators.h.sql, "DROP TRIGGER not_off");
    assert_int_equal(database_number(operators.h.sql, "SELECT COUNT(*) FROM tl_restore WHERE step "
                                                      "= 'promoted'"),
                     0);
}

/* The commands of whoever promotes; that it is accepted has a test with two servers.  The
 * last one here, as it is not accepted. */
TEST(test_it_is_promoted)
{
    json_t *document, *set = json_object();

    EXPECT_USAGE(promote("--wait", "1s"), "--reason is missing");
    EXPECT_USAGE(
        RUN("promote", "--reason", "r", "--wait", "soon", "--config", operators.config[ANN]),
        "--wait is a time");
    EXPECT_USAGE(RUN("promote", "now", "--reason", "r", "--config", operators.config[ANN]),
                 "takes no operand");
    EXPECT_REFUSED(promote("--reason", "by mistake"), 1,
                   "this server is the accepted one, so it is not promoted");
    database_run(operators.h.sql,
                 "UPDATE tl_schema SET identity = 'elsewhere 1 /x'; "
                 "INSERT INTO tl_session (session_id, program, host, pid, connection_name, "
                 "timeout_ms, started_at, alive_until) VALUES (UUID(), 'gone', 'h', 7, UUID(), "
                 "1000, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))");
    promoted_whole();
    promoted_while_held("LOCK TABLES tl_attestation WRITE", "read_timeout_s=1");
    database_run(operators.h.sql, "DELETE FROM tl_restore; DELETE FROM tl_attestation; UPDATE "
                                  "tl_schema SET restore_no = accepted_no");
    promoted_while_held("BEGIN; SELECT one FROM tl_schema FOR UPDATE", "commit_ms=200ms");
    ENDS(promote("--reason", "the primary is gone"), 0, "Offered.");
    document = output_ended(RUN("promote", "--reason", "again", "--wait", "100ms", "--json",
                                "--config", operators.config[ANN]),
                            5);
    fields_add(set, document);
    fields_expect(set, "promote");
    assert_string_equal(json_string_value(json_object_get(document, "promote")), "offered");
    json_decref(document);
    json_decref(set);
    assert_int_equal(database_number(operators.h.sql, "SELECT COUNT(*) FROM tl_restore "
                                                      "WHERE step = 'promoted'"),
                     1);
    promoted_while_silent();
    status_says("This server was promoted at ");
    status_says("It is not accepted by itself, since:");
    status_says("gone 7@h");
    status_says("has not attested");
    ENDS(RUN("acts", "--config", operators.config[ANN]), ANY_CODE, "promote (the primary is gone)");
}

TESTS_OF(restore, operators_set_up, operators_tear_down)

/* `tradelock status`, `ps` and `inbox` on real trades, a real channel and two accounts. */
#include "fields.h"
#include "operators.h"
#include "support/theme.h"

#define STATUS(who) RUN("status", "--config", operators.config[who])

static output *json_of(const char *command, int who, int code)
{
    output *o = RUN(command, "--json", "--config", operators.config[who]);

    EXPECT_CODE(o, code);
    return o;
}

/* How many trades, and how much money, of this state. */
static void expect_waiting(const char *state, json_int_t count, json_int_t minor)
{
    output *o = RUN("status", "--json", "--config", operators.config[ANN]);
    json_t *document = output_json(o), *one;
    json_int_t found = 0, money = 0;
    size_t i;

    json_array_foreach(json_object_get(document, "waiting"), i, one)
    {
        if (strcmp(json_string_value(json_object_get(one, "state")), state) != 0)
            continue;
        found += json_integer_value(json_object_get(one, "count"));
        money += json_integer_value(json_object_get(one, "amount_minor"));
        assert_string_equal(json_string_value(json_object_get(one, "currency")), "EUR");
        assert_string_equal(json_string_value(json_object_get(one, "op_code")), WITHDRAW_OP);
    }
    json_decref(document);
    output_free(o);
    assert_int_equal(found, count);
    assert_int_equal(money, minor);
}

TEST(test_nothing_waits)
{
    ENDS(STATUS(ANN), 0, "nothing waits", "fit for money; clock never set; no restore open",
         "Process  1 alive, 0 silent");
    EXPECT_REFUSED(RUN("inbox", "--config", operators.config[ANN]), 0,
                   "nothing waits for a second person");
}

/* The one channel, as `status` tells it; the caller frees the document. */
static const json_t *the_channel(json_t **document, int code)
{
    output *o = json_of("status", ANN, code);
    const json_t *channels;

    *document = output_json(o);
    output_free(o);
    channels = json_object_get(*document, "channels");
    assert_int_equal(json_array_size(channels), 1);
    return json_array_get(channels, 0);
}

static void expect_counts(const json_t *channel, const char *expected)
{
    static const char *const names[] = {"succeeded", "declined", "failed", "waits"};
    char counts[120] = "", *end = counts;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const json_t *count = json_object_get(channel, names[i]);

        assert_true(json_is_integer(count));
        end += sprintf(end, "%s%s=%lld", i > 0 ? " " : "", names[i],
                       (long long)json_integer_value(count));
    }
    assert_string_equal(counts, expected);
}

/* What ended in the last hour, by a service or a worker; not what ended before. */
TEST(test_how_many_succeed)
{
    static const char *const paid[] = {"R1", "R2", "R3", "R4"};
    const json_t *channel;
    json_t *document;

    for (size_t i = 0; i < 4; i++)
        house_expect(&operators.h, paid[i], "C1", 1, TL_SUCCEEDED);
    operators_make_failed("R5");
    operators_make_doubtful("R6");
    channel = the_channel(&document, 0);
    expect_counts(channel, "succeeded=4 declined=1 failed=0 waits=1");
    json_decref(document);
    operators_decide_together("R6", "failed");
    house_work(&operators.h, 1, 30000);
    house_row(&operators.h, "R6", "F 1 1 O");
    /* More than an hour ago. */
    database_run(operators.h.sql,
                 "UPDATE trade_lock SET updated_at = updated_at - INTERVAL 61 MINUTE, rev = rev + "
                 "1, step = 'test' WHERE serial_no = 'R4'");
    channel = the_channel(&document, 0);
    expect_counts(channel, "succeeded=3 declined=1 failed=1 waits=0");
    assert_true(json_real_value(json_object_get(channel, "rate")) == 3.0 / 5.0);
    assert_true(json_is_null(json_object_get(channel, "down_since")));
    assert_true(json_is_false(json_object_get(channel, "cut")));
    json_decref(document);
    ENDS(STATUS(ANN), 0, "idempotent WITHDRAW  3    1        1      60.0 % 0     0");
}

/* What comes of one channel says nothing of another, nor of a trade without one. */
TEST(test_rates_of_two_channels)
{
    json_t *document, *channels;
    output *o;

    database_run(operators.h.sql, "UPDATE trade_lock SET channel = NULL, rev = rev + 1, step = "
                                  "'test' WHERE serial_no IN ('R1', 'R5')");
    o = json_of("status", ANN, 0);
    document = output_json(o);
    output_free(o);
    channels = json_object_get(document, "channels");
    assert_int_equal(json_array_size(channels), 2);
    expect_counts(json_array_get(channels, 0), "succeeded=2 declined=0 failed=1 waits=0");
    expect_counts(json_array_get(channels, 1), "succeeded=1 declined=1 failed=0 waits=0");
    assert_string_equal(json_string_value(json_object_get(json_array_get(channels, 1), "channel")),
                        "unknown");
    json_decref(document);
    database_run(operators.h.sql, "UPDATE trade_lock s JOIN trade_lock o ON o.serial_no = 'R2' SET "
                                  "s.channel = o.channel, s.rev = s.rev + 1, s.step = 'test' WHERE "
                                  "s.serial_no IN ('R1', 'R5')");
}

/* What a worker ends by itself is no alarm; what waits for a person is. */
TEST(test_what_waits)
{
    const json_t *channel;
    json_t *document;

    operators_make_doubtful("D1");
    expect_waiting("in_doubt", 1, 100);
    ENDS(STATUS(ANN), 0, "in doubt  EUR            1               100     1     0");
    /* But not for ever. */
    database_run(operators.h.sql, "UPDATE trade_lock SET created_at = created_at - INTERVAL 16 "
                                  "MINUTE WHERE serial_no = 'D1'");
    ENDS(STATUS(ANN), 6, "oldest 16 min");
    database_run(operators.h.sql, "UPDATE trade_lock SET created_at = created_at + INTERVAL 16 "
                                  "MINUTE WHERE serial_no = 'D1'");
    house_rule(&operators.h, "{\"kind\":\"accepted\",\"endpoint\":\"pay\",\"delay_ms\":600000}");
    house_rule(&operators.h, "{\"kind\":\"pending\",\"endpoint\":\"query\",\"count\":0,"
                             "\"serial_no\":\"P1\"}");
    house_expect(&operators.h, "P1", "C1", 150, TL_IN_DOUBT);
    house_work(&operators.h, 1, 30000);
    expect_waiting("parked", 1, 150);
    ENDS(STATUS(ANN), 6, "parked    EUR            1               150");
    channel = the_channel(&document, 6);
    assert_int_equal(json_integer_value(json_object_get(channel, "answered")), 1);
    assert_int_equal(json_integer_value(json_object_get(channel, "unanswered")), 0);
    json_decref(document);
}

static void expect_eighty_columns(void)
{
    const char *const arguments[] = {"status", "--config", operators.config[ANN], NULL};
    output *o = command_run("COLUMNS=80", arguments);
    char *rest = o->out, *line;

    while ((line = strsep(&rest, "\n")) != NULL)
        if (strlen(line) > 80)
            fail_msg("%zu columns: %s", strlen(line), line);
    output_free(o);
}

/* Since when a channel gives no answer, by what the last attempts were told. */
TEST(test_a_channel_that_is_down)
{
    output *o;

    house_rule(&operators.h, "{\"kind\":\"drop_after\",\"endpoint\":\"pay\"}");
    house_rule(&operators.h, "{\"kind\":\"drop_before\",\"endpoint\":\"query\",\"count\":0,"
                             "\"serial_no\":\"N1\"}");
    house_expect(&operators.h, "N1", "C1", 50, TL_IN_DOUBT);
    house_work(&operators.h, 1, 30000);
    o = json_of("status", ANN, 6);
    {
        json_t *document = output_json(o);
        json_t *one = json_array_get(json_object_get(document, "channels"), 0);

        assert_int_equal(json_integer_value(json_object_get(one, "unanswered")), 1);
        assert_int_equal(json_integer_value(json_object_get(one, "answered")), 1);
        assert_true(json_is_string(json_object_get(one, "down_since")));
        /* Not since the last of its attempts, of which a worker makes ever new ones. */
        assert_int_equal(
            database_number(operators.h.sql,
                            "SELECT ABS(TIMESTAMPDIFF(MICROSECOND, created_at, STR_TO_DATE('%s', "
                            "'%%Y-%%m-%%dT%%H:%%i:%%s.%%fZ'))) < 1000 FROM trade_lock WHERE "
                            "serial_no = 'N1' AND lane = 'S'",
                            json_string_value(json_object_get(one, "down_since"))),
            1);
        json_decref(document);
    }
    output_free(o);
    ENDS(STATUS(ANN), ANY_CODE, "DOWN SINCE");
    expect_eighty_columns();
}

/* A payment that ends by the channel's word is an answer as well. */
TEST(test_a_channel_that_is_back)
{
    const json_t *channel;
    json_t *document;

    house_expect(&operators.h, "B1", "C1", 1, TL_SUCCEEDED);
    channel = the_channel(&document, 6);
    assert_int_equal(json_integer_value(json_object_get(channel, "unanswered")), 1);
    assert_true(json_is_null(json_object_get(channel, "down_since")));
    json_decref(document);
}

/* How many trades had no answer last, and whether their channel is down. */
static json_int_t unanswered(int *down)
{
    output *o = json_of("status", ANN, 6);
    json_t *document = output_json(o);
    const json_t *one = json_array_get(json_object_get(document, "channels"), 0);
    const json_int_t count = json_integer_value(json_object_get(one, "unanswered"));

    *down = json_is_string(json_object_get(one, "down_since"));
    json_decref(document);
    output_free(o);
    return count;
}

TEST(test_inbox)
{
    unsigned long long fence;
    json_t *document, *one;
    output *o;

    database_run(operators.h.sql, "UPDATE trade_lock SET send_until = UTC_TIMESTAMP(6), rev = "
                                  "rev + 1, step = 'test' WHERE serial_no = 'P1' AND lane = 'S'");
    fence = operators_fence("P1");
    operators_decide(ANN, "propose", "P1", "failed", fence);
    ENDS(STATUS(BOB), 6, "1 proposal for a second person");
    ENDS(RUN("inbox", "--config", operators.config[ANN]), 0, "no, a second person");
    o = json_of("inbox", BOB, 0);
    document = output_json(o);
    one = json_array_get(json_object_get(document, "proposals"), 0);
    assert_false(json_is_true(json_object_get(one, "own")));
    assert_int_equal(json_integer_value(json_object_get(one, "fence")), (json_int_t)fence);
    assert_string_equal(json_string_value(json_object_get(one, "said")), "failed");
    json_decref(document);
    output_free(o);
    /* A trade that has moved on voids the proposal. */
    database_run(operators.h.sql, "UPDATE trade_lock SET rev = rev + 1, step = 'test' WHERE "
                                  "serial_no = 'P1' AND lane = 'S'");
    EXPECT_REFUSED(RUN("inbox", "--config", operators.config[BOB]), 0, "nothing waits");
}

/* Each proposal is told once, and the oldest first: about a trade
 * whose lane waits, one in conflict, and one whose parked lane is looked at again. */
TEST(test_inbox_tells_each_once)
{
    static const char *const serials[] = {"I1", "I2", "P1"}, *const said[] = {"failed", "clear",
                                                                              "failed"};
    json_t *document, *proposals;
    output *o;

    operators_make_doubtful("I1");
    operators_make_failed("I2");
    operators_say_paid("I2", "B-I2");
    database_run(operators.h.sql, "UPDATE trade_lock SET next_run_at = UTC_TIMESTAMP(6) + INTERVAL "
                                  "1 HOUR, rev = rev + 1, step = 'test' WHERE serial_no = 'P1' AND "
                                  "lane = 'R'");
    for (size_t i = 0; i < 3; i++)
        operators_decide(ANN, "propose", serials[i], said[i], operators_fence(serials[i]));
    o = json_of("inbox", BOB, 0);
    document = output_json(o);
    proposals = json_object_get(document, "proposals");
    assert_int_equal(json_array_size(proposals), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *one = json_array_get(proposals, i);

        assert_string_equal(json_string_value(json_object_get(one, "serial_no")), serials[i]);
        assert_string_equal(json_string_value(json_object_get(one, "said")), said[i]);
    }
    json_decref(document);
    output_free(o);
    operators_decide(BOB, "confirm", "I2", "clear", operators_fence("I2"));
    o = RUN("inbox", "--config", operators.config[BOB]);
    EXPECT_CODE(o, 0);
    assert_null(strstr(o->out, "I2"));
    output_free(o);
}

TEST(test_ps)
{
    output *o = RUN("ps", "--config", operators.config[BOB]);
    char pid[24];

    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, "alive");
    snprintf(pid, sizeof pid, " %ld ", (long)getpid());
    EXPECT_WORDS(o, pid);
    output_free(o);
    database_run(
        operators.h.sql,
        "INSERT INTO tl_session (session_id, program, host, pid, connection_name, "
        "timeout_ms, started_at, alive_until) VALUES (UUID(), 'lost', 'far', 7, UUID(), "
        "3600000, UTC_TIMESTAMP(6) - INTERVAL 3 HOUR, UTC_TIMESTAMP(6) - INTERVAL 1 HOUR)");
    ENDS(RUN("ps", "--config", operators.config[BOB]), ANY_CODE, "lost", "silent");
    database_run(operators.h.sql, "DELETE FROM tl_session WHERE program = 'lost'");
}

TEST(test_eighty_columns)
{
    expect_eighty_columns();
}

/* In place until nobody reads it any more; then it ends without a word. */
TEST(test_watch)
{
    char environment[300];
    output *o;

    snprintf(environment, sizeof environment, "TRADELOCK_CONFIG=%s", operators.config[ANN]);
    o = command_shell(environment, "tradelock status --watch --every 100ms | head -40");
    EXPECT_CODE(o, 0);
    assert_string_equal(o->err, "");
    assert_non_null(strstr(strstr(o->out, "tradelock at") + 1, "tradelock at"));
    output_free(o);
    o = command_shell(environment,
                      "trap '' PIPE; tradelock status --watch --every 100ms | head -40");
    EXPECT_CODE(o, 0);
    assert_string_equal(o->err, "");
    output_free(o);
}

TEST(test_bad_input)
{
    EXPECT_USAGE(RUN("status", "--every", "now", "--config", operators.config[ANN]),
                 "--every is a duration");
    EXPECT_USAGE(RUN("ps", "all", "--config", operators.config[ANN]), "no operand: all");
    EXPECT_USAGE(RUN("inbox", "all", "--config", operators.config[ANN]), "no operand: all");
}

/* A channel that takes no connection is down as well, though nothing was sent or asked. */
TEST(test_a_channel_without_a_connection)
{
    json_int_t before;
    int down;

    before = unanswered(&down);
    sim_stop(&operators.h.sim, 0);
    house_expect(&operators.h, "U1", "C1", 50, TL_QUEUED);
    assert_int_equal(unanswered(&down), before + 1);
    assert_true(down);
}

/* What was asked hours ago, and by nobody since, says nothing of the channel. */
TEST(test_an_old_attempt_says_nothing)
{
    json_int_t before;
    int down;

    before = unanswered(&down);
    assert_true(down);
    database_run(operators.h.sql,
                 "UPDATE trade_lock SET updated_at = updated_at - INTERVAL 2 HOUR, rev = rev + 1, "
                 "step = step");
    assert_int_equal(unanswered(&down), before);
    assert_false(down);
}

static void expect_fields(const char *command)
{
    output *o = RUN(command, "--json", "--config", operators.config[BOB]);
    json_t *document = output_json(o), *set = json_object();

    fields_add(set, document);
    fields_expect(set, command);
    json_decref(set);
    json_decref(document);
    output_free(o);
}

/* Whoever may read may lock what is read, from any database: heartbeats wait, and it is said for
 * whom, and how to end it. */
TEST(test_who_holds_rows)
{
    MYSQL *reader = mysql_init(NULL);
    char words[160], kill[40];
    output *o;

    mysql_options(reader, MYSQL_READ_DEFAULT_FILE, operators.config[BOB]);
    mysql_options(reader, MYSQL_READ_DEFAULT_GROUP, "tradelock-client");
    if (mysql_real_connect(reader, NULL, NULL, NULL, NULL, 0, NULL, 0) == NULL)
        server_panic("%s", mysql_error(reader));
    snprintf(kill, sizeof kill, "KILL %lu", mysql_thread_id(reader));
    snprintf(words, sizeof words, "connection %lu of %s@localhost holds rows for",
             mysql_thread_id(reader), operators.user[BOB]);
    database_run(reader, "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    database_run(reader, "START TRANSACTION");
    database_run(reader, "SELECT COUNT(*) FROM (SELECT * FROM tl_session) x");
    database_run(reader, "USE information_schema");
    for (o = STATUS(ANN); strstr(o->out, words) == NULL; o = STATUS(ANN))
        output_free(o);
    EXPECT_CODE(o, 6);
    EXPECT_WORDS(o, kill);
    output_free(o);
    ENDS(RUN("doctor", "--config", operators.config[ANN]), ANY_CODE,
         "an open transaction holds rows", kill);
    database_run(reader, "ROLLBACK");
    mysql_close(reader);
    o = STATUS(ANN);
    assert_null(strstr(o->out, "holds rows for"));
    output_free(o);
}

static void expect_elsewhere(const char *config, int code, const char *words)
{
    ENDS(RUN("doctor", "--config", config), code, words);
}

/* Nobody has temporary tables here.  Roles are of the whole server: one with rights in two databases
 * of tradelock is named, also where it has them by another role; by the account itself, and to
 * whoever may read mysql.*. */
TEST(test_rights_elsewhere)
{
    database *other = database_new(server_shared(), NULL);
    const char *const name = database_name(other);
    char words[200];

    expect_elsewhere(operators.admin, 0, "rights elsewhere               none");
    database_run(operators.h.sql, "GRANT CREATE TEMPORARY TABLES ON {database}.* TO %s@localhost",
                 operators.user[BOB]);
    expect_elsewhere(operators.admin, 5, "may make temporary tables in this database");
    expect_elsewhere(operators.config[BOB], 5, "may make temporary tables in this database");
    database_run(operators.h.sql,
                 "REVOKE CREATE TEMPORARY TABLES ON {database}.* FROM %s@localhost",
                 operators.user[BOB]);
    database_run(operators.h.sql, "GRANT SELECT ON %s.trade_lock TO {database}_operator", name);
    snprintf(words, sizeof words, "%s_operator also has rights in the database %s,",
             database_name(operators.h.db), name);
    expect_elsewhere(operators.admin, 5, words);
    database_run(operators.h.sql, "GRANT SELECT ON %s.tl_schema TO {database}_operator", name);
    expect_elsewhere(operators.config[ANN], 5, words);
    database_run(operators.h.sql,
                 "REVOKE SELECT ON %s.trade_lock FROM {database}_operator; "
                 "REVOKE SELECT ON %s.tl_schema FROM {database}_operator; "
                 "CREATE ROLE %s_reader; GRANT SELECT ON %s.* TO %s_reader; "
                 "GRANT %s_reader TO {database}_operator",
                 name, name, name, name, name, name);
    expect_elsewhere(operators.admin, 5, words);
    database_run(operators.h.sql, "DROP ROLE %s_reader", name);
    expect_elsewhere(operators.config[ANN], 0, "of others not visible");
    database_free(other);
}

/* A restore, or a server that is not fit, is worse than all that waits. */
TEST(test_a_restore)
{
    output *o;

    ENDS(RUN("restore", "declare", "--reason", "test", "--config", operators.config[ANN]), 0);
    o = RUN("restore", "accept", "--reason", "test", "--config", operators.config[ANN]);
    output_free(o);
    ENDS(STATUS(BOB), 5, "a RESTORE is open");
    ENDS(RUN("inbox", "--config", operators.config[BOB]), ANY_CODE, "restore");
}

TEST(test_fields)
{
    ENDS(RUN("channel", "pause", "idempotent", "--reason", "test", "--config",
             operators.config[ANN]),
         0);
    ENDS(RUN("channel", "limit", "idempotent", "--sends", "4", "--reason", "test", "--config",
             operators.config[ANN]),
         0);
    ENDS(RUN("channel", "breaker", "idempotent", "--unknowns", "3", "--reason", "test", "--config",
             operators.config[ANN]),
         0);
    database_run(operators.h.sql, "CALL tl_channel_told('idempotent', '', (SELECT era FROM "
                                  "trade_channel_breaker), 0, 0, 3, 3, 3, @state)");
    expect_fields("status");
    expect_fields("ps");
    expect_fields("inbox");
}

TESTS_OF(status, operators_set_up, operators_tear_down)

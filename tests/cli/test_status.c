/* What `tradelock status` and the doctor say while a channel is gone, rows are held, or rights are
 * elsewhere.  The rest is transcripts/status.txt. */
#include "operators.h"
#include "support/theme.h"

#define STATUS(who) RUN("status", "--config", operators.config[who])

/* How many trades had no answer last, and whether their channel is down. */
static json_int_t unanswered(int *down)
{
    output *o = RUN("status", "--json", "--config", operators.config[ANN]);
    json_t *document = output_json(o);
    const json_t *one = json_array_get(json_object_get(document, "channels"), 0);
    const json_int_t count = json_integer_value(json_object_get(one, "unanswered"));

    *down = json_is_string(json_object_get(one, "down_since"));
    json_decref(document);
    output_free(o);
    return count;
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
    ENDS(STATUS(ANN), ANY_CODE, WITHOUT("holds rows for"));
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

TESTS_OF(status, operators_set_up, operators_tear_down)

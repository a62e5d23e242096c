/* What `tradelock status` and the doctor say while a channel is gone, rows are held, or rights are
 * elsewhere.  The rest is transcripts/status.txt. */
#include "operators.h"
#include "support/crew.h"
#include "support/theme.h"

#include <pthread.h>

#define STATUS(who) RUN("status", "--config", operators.config[who])
#define CHANNEL(verb)                                                                              \
    RUN("channel", verb, "idempotent", "--reason", "away", "--config", operators.config[ANN])

/* How many trades had no answer last, and whether their channel is down. */
static json_int_t unanswered(int *down)
{
    output *o = RUN("status", "--json", "--config", operators.config[ANN]);
    json_t *document = output_json(o);
    const json_t *one = json_array_get(json_object_get(document, "channels"), 0);
    const json_int_t count = json_integer_value(json_object_get(one, "unanswered"));

    *down = json_is_string(json_object_get(one, "down_since"));
    if (*down)
        EXPECT_CODE(o, 6);
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

/* Nothing is sent to a channel that operators have paused: its silence calls nobody, as on the desk,
 * before the pause is too long. */
TEST(test_a_paused_channel_calls_nobody)
{
    ENDS(STATUS(ANN), 6, "DOWN SINCE");
    ENDS(CHANNEL("pause"), 0, "Channel idempotent pauses");
    ENDS(STATUS(ANN), 0, "DOWN SINCE", "Channels through which nothing new is sent");
    ENDS(CHANNEL("resume"), 0, "Channel idempotent goes on");
    ENDS(STATUS(ANN), 6, "DOWN SINCE");
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

static MYSQL *connect_with(const char *config)
{
    MYSQL *connection = mysql_init(NULL);

    mysql_options(connection, MYSQL_READ_DEFAULT_FILE, config);
    mysql_options(connection, MYSQL_READ_DEFAULT_GROUP, "tradelock-client");
    if (mysql_real_connect(connection, NULL, NULL, NULL, NULL, 0, NULL, CLIENT_MULTI_STATEMENTS) ==
        NULL)
        server_panic("%s", mysql_error(connection));
    return connection;
}

/* Whoever may read may lock what is read, from any database, and whoever may lock tables does so
 * without a transaction.  Asks and heartbeats wait, and it is said for whom, and how to end it. */
static const struct hold {
    enum { BY_BOB, BY_ADMIN } by;
    const char *sql, *later; /* what another connection then waits with */
} holds[] = {
    {BY_BOB, "START TRANSACTION; SELECT session_id FROM tl_session FOR UPDATE", NULL},
    {BY_BOB, "START TRANSACTION; SELECT one FROM tl_schema LOCK IN SHARE MODE", NULL},
    {BY_BOB,
     "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE; START TRANSACTION; "
     "SELECT COUNT(*) FROM (SELECT * FROM trade_lock) x; USE information_schema",
     NULL},
    /* a gap, into which no trade can be written */
    {BY_BOB, "START TRANSACTION; SELECT step FROM trade_lock WHERE cust_no > 'GAP' FOR UPDATE",
     NULL},
    {BY_ADMIN, "LOCK TABLES tl_session READ", NULL},
    {BY_ADMIN, "LOCK TABLES trade_lock WRITE", NULL},
    {BY_ADMIN, "FLUSH TABLES tl_beat WITH READ LOCK", NULL},
    {BY_BOB, "START TRANSACTION; SELECT COUNT(*) FROM tl_session", "ALTER TABLE tl_session FORCE"},
};

static int is_named(output *o, const char *kill)
{
    const int is = strstr(o->out, kill) != NULL || strstr(o->err, kill) != NULL;

    output_free(o);
    return is;
}

static void *run_later(void *sql)
{
    MYSQL *connection = connect_with(operators.admin);

    mysql_query(connection, sql);
    while (mysql_next_result(connection) == 0)
        ;
    mysql_close(connection);
    return NULL;
}

static void expect_holder(const struct hold *hold)
{
    MYSQL *holder = connect_with(hold->by == BY_BOB ? operators.config[BOB] : operators.admin);
    const int64_t end_ms = crew_now_ms() + 30000;
    char kill[40], words[160];
    pthread_t later;

    print_message("%s\n", hold->sql);
    snprintf(kill, sizeof kill, "KILL SOFT %lu", mysql_thread_id(holder));
    database_run(holder, "%s", hold->sql);
    if (hold->later != NULL)
        assert_int_equal(pthread_create(&later, NULL, run_later, (void *)hold->later), 0);
    do
        assert_true(crew_now_ms() < end_ms);
    while (!is_named(STATUS(ANN), kill));
    if (hold->by == BY_BOB && hold->later == NULL) {
        snprintf(words, sizeof words, "connection %lu of %s@localhost holds rows for",
                 mysql_thread_id(holder), operators.user[BOB]);
        ENDS(STATUS(ANN), 6, words, kill);
    }
    assert_true(is_named(RUN("doctor", "--config", operators.config[ANN]), kill));
    assert_true(is_named(
        RUN("explain", "GAP-1", "GAP-1", "WITHDRAW", "--config", operators.config[ANN]), kill));
    database_run(operators.h.sql, "%s", kill);
    if (hold->later != NULL)
        pthread_join(later, NULL);
    database_run(operators.h.sql, "UPDATE trade_lock, tl_session, tl_beat, tl_schema "
                                  "SET tl_schema.version = tl_schema.version");
    mysql_close(holder);
    ENDS(STATUS(ANN), ANY_CODE, WITHOUT("KILL"));
}

TEST(test_who_is_in_the_way)
{
    for (size_t i = 0; i < sizeof holds / sizeof holds[0]; i++)
        expect_holder(&holds[i]);
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

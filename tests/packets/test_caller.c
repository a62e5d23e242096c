/* The ending as a part of the caller's own transaction, settled on a server that has given the
 * caller's connection id to somebody else, and while others hold the row. */
#include "scene.h"
#include "support/theme.h"

/* The caller's transaction with the ending in it, committed or not. */
static unsigned long begin_ending(scene *s, int commit)
{
    tl_ending ending = scene_ending(TL_OUTCOME_SUCCESS);
    MYSQL *caller = database_connect(s->db);
    unsigned long id = mysql_thread_id(caller);

    s->lock = scene_granted(s, s->near, TL_LANE_SYNC, 0);
    database_run(caller, "START TRANSACTION");
    assert_int_equal(tl_lock_finish_in(s->lock, caller, &ending, TL_GUARD_ANY_IDLE), TL_OK);
    assert_int_equal(scene_book(s, caller), TL_OK);
    if (commit)
        database_run(caller, "COMMIT");
    mysql_close(s->sql);
    server_kill9(s->where);
    mysql_close(caller);
    server_restart(s->where);
    s->sql = database_connect(s->db);
    return id;
}

/* Somebody who has nothing to do with it, and whose connection has that id now. */
static MYSQL *innocent_with_id(scene *s, unsigned long id)
{
    MYSQL *innocent = database_connect(s->db);

    while (mysql_thread_id(innocent) < id) {
        mysql_close(innocent);
        innocent = database_connect(s->db);
    }
    assert_int_equal(mysql_thread_id(innocent), id);
    database_run(innocent, "START TRANSACTION; INSERT INTO ledger (serial_no) VALUES "
                           "('innocent')");
    return innocent;
}

static void settle_after_restart(int commit)
{
    scene s;
    server *own = server_start(NULL);
    MYSQL *innocent;
    unsigned long id;

    scene_open(&s, own);
    /* The ids of a young server are all small. */
    for (int i = 0; i < 60; i++)
        mysql_close(database_connect(s.db));
    scene_next_trade(&s);
    id = begin_ending(&s, commit);
    innocent = innocent_with_id(&s, id);
    assert_int_equal(tl_lock_committed(s.lock, TL_COMMIT_UNANSWERED),
                     commit ? TL_SUCCEEDED : TL_GRANTED);
    database_run(innocent, "COMMIT");
    assert_int_equal(database_number(s.sql, "SELECT COUNT(*) FROM ledger WHERE "
                                            "serial_no='innocent'"),
                     1);
    assert_int_equal(scene_ledger(&s), commit);
    mysql_close(innocent);
    scene_end_trade(&s);
    scene_close(&s);
    server_free(own);
}

TEST(test_restart_before_the_commit)
{
    settle_after_restart(0);
}

TEST(test_restart_after_the_commit)
{
    settle_after_restart(1);
}

/* The caller's transaction is still open: the connection is ended, and not before. */
TEST(test_an_open_transaction_is_ended)
{
    tl_ending ending = scene_ending(TL_OUTCOME_SUCCESS);
    MYSQL *caller;
    scene s;

    scene_open(&s, NULL);
    scene_next_trade(&s);
    caller = database_connect(s.db);
    s.lock = scene_granted(&s, s.near, TL_LANE_SYNC, 0);
    database_run(caller, "START TRANSACTION");
    assert_int_equal(tl_lock_finish_in(s.lock, caller, &ending, TL_GUARD_ANY_IDLE), TL_OK);
    assert_int_equal(tl_lock_committed(s.lock, TL_COMMIT_UNANSWERED), TL_GRANTED);
    assert_int_not_equal(mysql_query(caller, "COMMIT"), 0);
    mysql_close(caller);
    assert_int_equal(tl_lock_finish(s.lock, &ending), TL_SUCCEEDED);
    scene_end_trade(&s);
    scene_close(&s);
}

/* Somebody else's row lock is in the way, and the caller's connection id is not to be trusted:
 * UNKNOWN, nobody is killed, and the truth when the way is free. */
TEST(test_a_row_that_others_hold)
{
    tl_ending ending = scene_ending(TL_OUTCOME_SUCCESS);
    MYSQL *caller, *other;
    scene s;

    scene_open(&s, NULL);
    scene_next_trade(&s);
    caller = database_connect(s.db);
    other = database_connect(s.db);
    s.lock = scene_granted(&s, s.near, TL_LANE_SYNC, 0);
    database_run(caller, "START TRANSACTION");
    assert_int_equal(tl_lock_finish_in(s.lock, caller, &ending, TL_GUARD_ANY_IDLE), TL_OK);
    database_run(caller, "COMMIT");
    mysql_close(caller);
    database_run(other,
                 "START TRANSACTION; SELECT 1 FROM trade_lock WHERE cust_no='%s' FOR "
                 "UPDATE",
                 s.cust);
    assert_int_equal(tl_lock_committed(s.lock, TL_COMMIT_UNANSWERED), TL_UNKNOWN);
    database_run(other, "COMMIT");
    assert_int_equal(tl_lock_settle(s.lock), TL_SUCCEEDED);
    mysql_close(other);
    scene_end_trade(&s);
    scene_close(&s);
}

TESTS_OF(caller, NULL, NULL)
